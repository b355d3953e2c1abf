# SPDX-License-Identifier: Apache-2.0
# Turns schemas/isd-groups.tsv into the C table that include/shardload/isd.h declares.

# shardload_isd_table(<output.c> <groups.tsv>)
function(shardload_isd_table output file)
    file(STRINGS ${file} lines REGEX "^[^#]")
    set(arrays "")
    set(rows "")
    foreach(line IN LISTS lines)
        string(REPLACE "\t" ";" parts "${line}")
        list(LENGTH parts count)
        if(NOT count EQUAL 4)
            message(FATAL_ERROR "${file}: not four columns: ${line}")
        endif()
        list(GET parts 0 first)
        list(GET parts 1 last)
        list(GET parts 2 key)
        list(GET parts 3 fields)
        string(REPLACE ", " ";" fields "${fields}")
        string(APPEND arrays "static const sl_isd_field fields_${first}[] = {\n")
        set(offset 0)
        foreach(field IN LISTS fields)
            if(NOT field MATCHES
               "^([A-Za-z0-9.]+) ([nsmcqfdt])([0-9]+)(=9+)?(/([0-9]+))?([*]([0-9]+))?( [^ ]+)?$")
                message(FATAL_ERROR "${file}: a field of ${first} is not understood: ${field}")
            endif()
            set(path "${CMAKE_MATCH_1}")
            set(type "${CMAKE_MATCH_2}")
            set(width "${CMAKE_MATCH_3}")
            set(marker "${CMAKE_MATCH_4}")
            set(divisor "${CMAKE_MATCH_6}")
            set(factor "${CMAKE_MATCH_8}")
            set(nullable false)
            if(marker OR type MATCHES "[nsmd]")
                set(nullable true)
            endif()
            if(NOT divisor)
                set(divisor 1)
            endif()
            if(NOT factor)
                set(factor 1)
            endif()
            string(APPEND arrays "    {\"${path}\", '${type}', ${offset}, ${width}, ${nullable}, "
                   "${divisor}, ${factor}},\n")
            math(EXPR offset "${offset} + ${width}")
        endforeach()
        list(LENGTH fields count)
        string(APPEND arrays "};\n")
        string(APPEND rows "    {\"${first}\", \"${last}\", \"${key}\", "
               "fields_${first}, ${count}, ${offset}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"/* Made by CMake from schemas/isd-groups.tsv; do not edit. */
#include <shardload/isd.h>
${arrays}
const sl_isd_group sl_isd_groups[] = {
${rows}};
const size_t sl_isd_group_count = sizeof sl_isd_groups / sizeof sl_isd_groups[0];
")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
