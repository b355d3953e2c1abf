# SPDX-License-Identifier: Apache-2.0
# CPack runs this before it makes the packages: folders get the mode 0755, whatever the umask is.
file(GLOB_RECURSE folders LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(folder ${folders})
    if(IS_DIRECTORY ${folder})
        file(CHMOD ${folder} DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
            GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
endforeach()
