# SPDX-License-Identifier: Apache-2.0
# Finds the libraries through pkg-config and names the Debian package of each that is missing.
# Makes the targets deps::mongoc deps::bson deps::yaml deps::openssl deps::zlib deps::archive deps::cmocka.
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
shardload_find(openssl libssl-dev openssl)
shardload_find(yaml libyaml-dev yaml-0.1)
shardload_find(zlib zlib1g-dev zlib)
shardload_find(archive libarchive-dev libarchive)
if(SHARDLOAD_TESTS)
    shardload_find(cmocka libcmocka-dev cmocka)
endif()

if(missing_libraries)
    string(REPLACE ";" ", " libraries "${missing_libraries}")
    string(REPLACE ";" " " packages "${missing_packages}")
    message(FATAL_ERROR "Missing libraries: ${libraries}.\n"
        "On Debian: apt-get install ${packages}")
endif()
