# SPDX-License-Identifier: Apache-2.0
# The Debian packages `shardload` and `libshardload-dev`, which `cpack -G DEB` makes of a build folder.
# Components: programs and library; debian and debian_dev, which only packages contain; site, files that
# `cmake --install` puts into another folder than the packages.
set(SHARDLOAD_PACKAGER "shardload maintainers <maintainers@shardload.invalid>" CACHE STRING
    "Name and mail address of who makes the packages")
set(SHARDLOAD_PACKAGE_REVISION 1 CACHE STRING "Debian revision of the packages")

set(doc ${CMAKE_INSTALL_DATADIR}/doc)
set(made ${CMAKE_BINARY_DIR}/package)

# docs/: as Markdown, in the folder that the README's links expect.
install(DIRECTORY docs DESTINATION ${doc}/shardload COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES README.md DESTINATION ${doc}/shardload COMPONENT debian EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION ${doc}/libshardload-dev COMPONENT debian_dev EXCLUDE_FROM_ALL)

# SOURCE_DATE_EPOCH, if it is set, is the time of both packages.
string(TIMESTAMP SHARDLOAD_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/debian/changelog.in ${made}/changelog.Debian @ONLY)
if(GZIP)
    foreach(source ${made}/changelog.Debian ${CMAKE_SOURCE_DIR}/CHANGELOG.md)
        get_filename_component(name ${source} NAME)
        string(REPLACE "CHANGELOG.md" "changelog" name ${name})
        execute_process(COMMAND ${GZIP} -9cn ${source} OUTPUT_FILE ${made}/${name}.gz)
    endforeach()
    foreach(package_component shardload:debian libshardload-dev:debian_dev)
        string(REPLACE ":" ";" pair ${package_component})
        list(GET pair 0 package)
        list(GET pair 1 component)
        install(FILES ${made}/changelog.Debian.gz ${made}/changelog.gz cmake/debian/copyright
            DESTINATION ${doc}/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
        if(EXISTS ${CMAKE_SOURCE_DIR}/cmake/debian/${package}.lintian-overrides)
            install(FILES cmake/debian/${package}.lintian-overrides RENAME ${package}
                DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component} EXCLUDE_FROM_ALL)
        endif()
    endforeach()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardload)
set(CPACK_PACKAGE_CONTACT "${SHARDLOAD_PACKAGER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian/modes.cmake)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs library debian debian_dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${SHARDLOAD_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME shardload)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "python3:any") # shardload-localcluster
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "bulk loader for MongoDB sharded clusters
Loads CSV, JSON and BSON files, MOT vehicle tests and ISD weather records,
plain, compressed or in archives, with all cores of the client and all shards
of the cluster. Every record becomes a stored document or a reject with file,
line and reason. Includes shardquery, which times queries and checks their
answers.")

# The library is static, so programs that use it link its dependencies themselves.
get_property(library_packages GLOBAL PROPERTY shardload_packages)
list(JOIN library_packages ", " library_packages)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libshardload-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${library_packages}")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "library of the bulk loader shardload, development files
The public headers, a static library and a pkg-config file: load, verify,
plan, query and report from a program in C.")

set(CPACK_COMPONENT_PROGRAMS_GROUP programs)
set(CPACK_COMPONENT_DEBIAN_GROUP programs)
set(CPACK_COMPONENT_LIBRARY_GROUP library)
set(CPACK_COMPONENT_DEBIAN_DEV_GROUP library)
include(CPack)
