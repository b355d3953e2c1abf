# SPDX-License-Identifier: Apache-2.0
# Options that make errors in memory harder to exploit. Each is used if compiler and linker support it for the
# machine; they follow those of CFLAGS (dpkg-buildflags), so that a lower level of _FORTIFY_SOURCE is replaced.
# Builds with sanitizers do not call this: the sanitizers replace the same functions.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

# shardload_harden(<interface library>)
function(shardload_harden target)
    set(CMAKE_REQUIRED_FLAGS -Werror)
    # The last two mark the targets of indirect branches, on x86-64 and on arm64. The processor checks them only
    # if the C library is built with these options, too; that of Debian on x86-64 is not.
    foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
        string(MAKE_C_IDENTIFIER "compiler${flag}" known)
        check_c_compiler_flag(${flag} ${known})
        if(${known})
            target_compile_options(${target} INTERFACE ${flag})
        endif()
    endforeach()
    # Checks the sizes of buffers. It needs optimization.
    target_compile_options(${target} INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
    # Functions are bound at program start, and their addresses are then read-only. (Binding one at its first
    # call would also save registers on the stack, which may contain parts of a password.)
    foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
        string(MAKE_C_IDENTIFIER "linker${flag}" known)
        check_linker_flag(C ${flag} ${known})
        if(${known})
            target_link_options(${target} INTERFACE ${flag})
        endif()
    endforeach()
    check_pie_supported(LANGUAGES C)
    set(CMAKE_POSITION_INDEPENDENT_CODE ON PARENT_SCOPE)
endfunction()
