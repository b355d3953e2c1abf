# SPDX-License-Identifier: Apache-2.0
# Turns text files into C arrays, so that the programs carry their schemas with them.

# shardload_embed(<output.c> <table name> <file>...) writes a NULL-ended table of
# {file name, text, length in bytes} rows; see include/shardload/embedded.h.
function(shardload_embed output table)
    set(arrays "")
    set(rows "")
    set(index 0)
    foreach(file ${ARGN})
        file(READ ${file} hex HEX)
        get_filename_component(name ${file} NAME)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
        string(APPEND arrays "static const char text_${index}[] = {${bytes}0};\n")
        string(APPEND rows "    {\"${name}\", text_${index}, sizeof text_${index} - 1},\n")
        math(EXPR index "${index} + 1")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endforeach()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"/* Made by CMake from the files named below; do not edit. */
#include <shardload/embedded.h>
${arrays}
const sl_embedded ${table}[] = {
${rows}    {0, 0, 0},
};
")
endfunction()
