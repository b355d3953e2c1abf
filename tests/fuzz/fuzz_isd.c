/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format isd. The first byte selects options; the remaining bytes are the text. A line
 * that starts with ~ becomes a record with the correct length: a fixed part, then the line's bytes
 * as its sections. Mutation would hardly ever produce a correct length. */
#include "parsing.h"

#include "format/isd.h"

#define FIXED_PART                                                                                 \
    "01001099999198801311200"                                                                      \
    "4+70933-008667FM-12+0009ENJA V0203181N00611004501CN0100001V5-00671-"                          \
    "00801101231"

static const char names[] = "names: {liquidPrecipitation: r, wind.speed.rate: "
                            "a name of forty-six bytes which is the longest}";

/* Replaces the ~ of lines by the fixed part of a record. The caller frees the text. */
static sl_text expand_records(const uint8_t *data, size_t size) {
    size_t room = size + 1, used = 0;
    for (size_t i = 0; i < size; i++)
        room += data[i] == '~' ? SL_ISD_FIXED_BYTES : 0;
    char *text = malloc(room);
    require(text != NULL, "allocation succeeds");
    for (size_t at = 0; at < size;) {
        const uint8_t *line = memchr(data + at, '\n', size - at);
        size_t length = line ? (size_t)(line - data) - at : size - at;
        if (data[at] == '~' && length - 1 <= 9999) {
            at++;
            length--;
            used += (size_t)sprintf(text + used, "%04u" FIXED_PART, (unsigned)length);
        }
        length += line != NULL;
        memcpy(text + used, data + at, length);
        used += length;
        at += length;
    }
    require(used <= room, "the text fits into its allocation");
    return (sl_text){text, used};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plans made[4];
    if (size < 1 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data;
    sl_format_options options = {.keep_missing = choice & 1,
                                 .schema_text = choice & 2 ? names : NULL};
    sl_text text = expand_records(data + 1, size - 1);
    check_text(&sl_format_isd, plans_of(&sl_format_isd, &options, &made[choice & 3]), "fuzz", text,
               !(choice & 8));
    free((char *)text.bytes);
    return 0;
}
