# SPDX-License-Identifier: Apache-2.0
# shardload_install_page(<page.1>) installs a manual page, compressed if there is a gzip. The page is the
# output of a custom command.
find_program(GZIP gzip)
function(shardload_install_page page)
    if(GZIP)
        add_custom_command(OUTPUT ${page}.gz COMMAND ${GZIP} -9cn ${page} > ${page}.gz DEPENDS ${page}
            VERBATIM)
        get_filename_component(name ${page} NAME)
        add_custom_target(${name}.gz ALL DEPENDS ${page}.gz)
        set(page ${page}.gz)
    endif()
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
endfunction()
