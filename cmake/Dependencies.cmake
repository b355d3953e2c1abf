# SPDX-License-Identifier: Apache-2.0
# Finds the libraries through pkg-config, and names the Debian package of each missing one. Defines
# the targets deps::mongoc deps::bson deps::yaml deps::openssl deps::archive deps::zlib deps::cmocka;
# deps::codecs, the libraries of all codecs of compressed sources, with `codec_modules`, their
# pkg-config modules; and deps::isal if ISA-L is found. The global property
# shardload_packages lists the Debian packages of the libraries. tools/setup.sh reads them from here.
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
    message(FATAL_ERROR "pkg-config is missing. On Debian: apt-get install pkg-config")
endif()
find_package(Threads REQUIRED)

set(missing_libraries "")
set(missing_packages "")

# shardload_find(<target> <Debian package> <pkg-config module>...): the first module that exists wins.
function(shardload_find target package)
    foreach(module ${ARGN})
        pkg_check_modules(${target} QUIET IMPORTED_TARGET GLOBAL ${module})
        if(${target}_FOUND)
            add_library(deps::${target} ALIAS PkgConfig::${target})
            message(STATUS "${target}: ${module} ${${target}_VERSION}")
            set(${target}_MODULE ${module} PARENT_SCOPE)
            if(NOT target STREQUAL "cmocka")
                set_property(GLOBAL APPEND PROPERTY shardload_packages ${package})
            endif()
            return()
        endif()
    endforeach()
    list(APPEND missing_libraries ${target})
    list(APPEND missing_packages ${package})
    set(missing_libraries ${missing_libraries} PARENT_SCOPE)
    set(missing_packages ${missing_packages} PARENT_SCOPE)
endfunction()

shardload_find(mongoc libmongoc-dev mongoc2 libmongoc-1.0)
shardload_find(bson libbson-dev bson2 libbson-1.0)
if(TARGET PkgConfig::bson AND bson_MODULE STREQUAL "bson2")
    set(names "SHELL:-include ${CMAKE_SOURCE_DIR}/src/bson/driver_names.h")
    target_compile_options(PkgConfig::bson INTERFACE ${names})
endif()
shardload_find(openssl libssl-dev openssl)
shardload_find(yaml libyaml-dev yaml-0.1)
shardload_find(archive libarchive-dev libarchive)
# Codecs, one row each. Their streams are recognised in src/source/unpack.c.
shardload_find(zlib zlib1g-dev zlib)
shardload_find(lzma liblzma-dev liblzma>=5.4)
shardload_find(zstd libzstd-dev libzstd)
shardload_find(lz4 liblz4-dev liblz4)
set(codecs zlib lzma zstd lz4)
find_package(BZip2 QUIET) # Debian's package has no pkg-config file
if(BZIP2_FOUND)
    set_property(GLOBAL APPEND PROPERTY shardload_packages libbz2-dev)
    add_library(deps::bzip2 ALIAS BZip2::BZip2)
else()
    list(APPEND missing_libraries bzip2)
    list(APPEND missing_packages libbz2-dev)
endif()
if(SHARDLOAD_TESTS)
    shardload_find(cmocka libcmocka-dev cmocka)
endif()

# Optional: zlib is used without it.
set(SHARDLOAD_ISAL AUTO CACHE STRING "Inflate gzip with ISA-L: AUTO (where it is installed), ON, OFF")
set_property(CACHE SHARDLOAD_ISAL PROPERTY STRINGS AUTO ON OFF)
if(SHARDLOAD_ISAL STREQUAL "AUTO")
    pkg_check_modules(isal QUIET IMPORTED_TARGET GLOBAL libisal)
    if(isal_FOUND)
        add_library(deps::isal ALIAS PkgConfig::isal)
        set_property(GLOBAL APPEND PROPERTY shardload_packages libisal-dev)
        message(STATUS "isal: libisal ${isal_VERSION}")
    else()
        message(STATUS "isal: not found; gzip is inflated by zlib, at a third of the speed")
    endif()
elseif(SHARDLOAD_ISAL)
    shardload_find(isal libisal-dev libisal)
endif()

if(missing_libraries)
    string(REPLACE ";" ", " libraries "${missing_libraries}")
    string(REPLACE ";" " " packages "${missing_packages}")
    message(FATAL_ERROR "Missing libraries: ${libraries}.\n"
        "On Debian: apt-get install ${packages}")
endif()

add_library(codecs INTERFACE)
add_library(deps::codecs ALIAS codecs)
target_link_libraries(codecs INTERFACE deps::bzip2)
foreach(codec ${codecs})
    target_link_libraries(codecs INTERFACE deps::${codec})
    string(REGEX REPLACE "[<>=].*" "" module ${${codec}_MODULE}) # without the version
    list(APPEND codec_modules ${module})
endforeach()
