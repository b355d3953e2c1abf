/* SPDX-License-Identifier: Apache-2.0 */
/* The single-byte encodings of delimited text, as --encoding names them. */
#ifndef SHARDLOAD_ENCODING_H
#define SHARDLOAD_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/text.h"

/* An encoding whose bytes below 0x80 are ASCII, and whose other bytes are one character each. */
typedef struct sl_encoding {
    char name[32];
    /* Text that is UTF-8 is not converted: windows-1252, because exports often mix the two. With
     * other encodings all text is converted: the bytes of "её" in KOI8-R are also UTF-8. */
    bool mixed;
    uint16_t codes[128]; /* the code points of the bytes from 0x80 on; 0: undefined */
} sl_encoding;

/* Creates the encoding of a name that iconv knows, in any case; free it with free(). latin1,
 * iso-8859-1, cp1252 and the like are windows-1252. Bytes that would be the control characters
 * U+0080 to U+009F are undefined; in latin1 they are these. NULL for UTF-8. False (SL_EXIT_USAGE)
 * if there is no such single-byte encoding. */
bool sl_encoding_create(const char *name, sl_encoding **encoding, sl_error *error);

/* Writes the text as UTF-8: at most 3 bytes for each byte. Returns the end of the written bytes;
 * NULL if a byte is undefined: then `*where` is its position. */
uint8_t *sl_encoding_put(const sl_encoding *encoding, uint8_t *to, sl_text text, size_t *where);

/* Ends the advice "give --encoding: " for a text that is not UTF-8: writes what it is in frequent
 * encodings, `windows-1252 for "Größe", ...`; if it fits none, `the name of the encoding`. */
#define SL_READINGS_ROOM 280
void sl_encoding_readings_write(sl_text text, char *out, size_t room);

#endif
