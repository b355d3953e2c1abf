/* SPDX-License-Identifier: Apache-2.0 */
/* An encoding is a table of 128 code points, which iconv fills once: parsers need no iconv. */
#include "encoding.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"

/* The bytes 0x80 to 0x9F, in which windows-1252 differs from Latin-1. */
static const uint16_t windows_1252[32] = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
};

/* Names without the characters between letters and digits, in small letters. */
static const char *const names_of_utf8[] = {"utf8", NULL};
static const char *const names_of_latin_1[] = {"latin1", "l1", "iso88591", "88591", NULL};
static const char *const names_of_windows_1252[] = {"cp1252", "windows1252", "1252", "ansi", NULL};

static bool is_one_of(const char *const *names, const char *name) {
    char plain[32];
    size_t used = 0;
    for (; *name && used + 1 < sizeof plain; name++) {
        if (isalnum((unsigned char)*name))
            plain[used++] = (char)tolower((unsigned char)*name);
    }
    plain[used] = '\0';
    while (*names && strcmp(*names, plain) != 0)
        names++;
    return *names != NULL;
}

/* The code point of a byte; 0: it is undefined. False: the byte is not a character of its own. */
static bool code_of(iconv_t converter, char byte, uint32_t *code) {
    uint8_t out[16];
    char *from = &byte, *to = (char *)out;
    size_t left = 1, room = sizeof out;
    *code = 0;
    iconv(converter, NULL, NULL, NULL, NULL);
    if (iconv(converter, &from, &left, &to, &room) == (size_t)-1)
        return errno == EILSEQ;
    iconv(converter, NULL, NULL, &to, &room); /* a letter that waits for its accent */
    if (sizeof out - room != 4)
        return false;
    *code =
        (uint32_t)out[0] | (uint32_t)out[1] << 8 | (uint32_t)out[2] << 16 | (uint32_t)out[3] << 24;
    return *code <= UINT16_MAX;
}

/* Fills the table. False: this is no single-byte encoding that contains ASCII. */
static bool fill(sl_encoding *encoding, iconv_t converter) {
    for (unsigned byte = 1; byte < 256; byte++) {
        uint32_t code;
        if (!code_of(converter, (char)byte, &code) || (byte < 0x80 && code != byte))
            return false;
        if (byte >= 0x80)
            encoding->codes[byte - 0x80] = (uint16_t)code;
    }
    return true;
}

static bool fill_by_iconv(sl_encoding *encoding, const char *name, sl_error *error) {
    iconv_t converter = iconv_open("UTF-32LE", name);
    if (converter == (iconv_t)-1)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--encoding %s: iconv knows no encoding of this name on this machine; "
                            "iconv --list shows the names",
                            name);
    bool ok = fill(encoding, converter);
    iconv_close(converter);
    return ok || sl_error_set(error, SL_EXIT_USAGE,
                              "--encoding %s: its characters are not single bytes that contain "
                              "ASCII; convert the text first, and load the result: iconv -f %s -t "
                              "UTF-8 FILE | shardload load ... -",
                              name, name);
}

bool sl_encoding_create(const char *name, sl_encoding **result, sl_error *error) {
    *result = NULL;
    if (!name || is_one_of(names_of_utf8, name))
        return true;
    sl_encoding *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "reading --encoding");
    const bool latin_1 = is_one_of(names_of_latin_1, name);
    made->mixed = latin_1 || is_one_of(names_of_windows_1252, name);
    snprintf(made->name, sizeof made->name, "%s", made->mixed ? "windows-1252" : name);
    for (unsigned i = 0; made->mixed && i < 128; i++)
        made->codes[i] = i < 32 ? windows_1252[i] : (uint16_t)(0x80 + i);
    if (!made->mixed && !fill_by_iconv(made, name, error)) {
        free(made);
        return false;
    }
    /* A text with the control characters U+0080 to U+009F has another encoding. */
    for (unsigned i = 0; !latin_1 && i < 128; i++) {
        if (made->codes[i] >= 0x80 && made->codes[i] <= 0x9F)
            made->codes[i] = 0;
    }
    *result = made;
    return true;
}

uint8_t *sl_encoding_put(const sl_encoding *encoding, uint8_t *to, sl_text text, size_t *where) {
    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = (uint8_t)text.bytes[i];
        uint16_t code = byte < 0x80 ? byte : encoding->codes[byte - 0x80];
        if (code == 0 && byte != 0) {
            *where = i;
            return NULL;
        }
        to = sl_utf8_put(to, code);
    }
    return to;
}

/* ---- advice for text that is not UTF-8 ---- */

#define READING_BYTES 40u /* of the text that are converted */

/* May the text be in the encoding cp850 of DOS? It has letters with accents at 0x80 to 0x9F, where
 * the Windows encodings have few letters. All characters of `reading`, the text read as cp850, that
 * are not ASCII must be letters of Europe (U+00C0 to U+024F). */
static bool may_be_dos(sl_text text, const char *reading) {
    bool dos = false, letters = true;
    for (size_t i = 0; i < text.length; i++)
        dos = dos || ((uint8_t)text.bytes[i] >= 0x80 && (uint8_t)text.bytes[i] < 0xA0);
    for (const uint8_t *at = (const uint8_t *)reading; *at; at++)
        letters = letters && (*at < 0xC0 || (*at >= 0xC3 && *at <= 0xC9));
    return dos && letters;
}

#define KNOWN 4u

/* Encodings that texts often have; made once, because iconv loads a module each time that it is
 * opened. A name "" is not known to iconv on this machine. */
static sl_encoding known[KNOWN];
static pthread_once_t known_once = PTHREAD_ONCE_INIT;

static void make_known(void) {
    static const char *const names[] = {"windows-1252", "windows-1250", "windows-1251", "cp850"};
    sl_error ignored;
    for (size_t i = 0; i < KNOWN; i++) {
        if (fill_by_iconv(&known[i], names[i], &ignored))
            snprintf(known[i].name, sizeof known[i].name, "%s", names[i]);
    }
}

void sl_encoding_readings_write(sl_text text, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM], reading[3 * READING_BYTES + 1];
    size_t used = 0, bad = 0, where;
    pthread_once(&known_once, make_known);
    sl_utf8_valid(text.bytes, text.length, &bad);
    bad -= bad < READING_BYTES / 2 ? bad : READING_BYTES / 2;
    text = (sl_text){text.bytes + bad, text.length - bad};
    if (text.length > READING_BYTES)
        text.length = READING_BYTES;
    snprintf(out, room, "the name of the encoding");
    for (size_t i = 0; i < KNOWN && used < room; i++) {
        uint8_t *end = sl_encoding_put(&known[i], (uint8_t *)reading, text, &where);
        if (!end || !known[i].name[0])
            continue;
        *end = '\0';
        if (i < KNOWN - 1 || may_be_dos(text, reading))
            used += (size_t)snprintf(out + used, room - used, "%s%s for %s", used ? ", " : "",
                                     known[i].name, sl_quoted(sl_text_of(reading), quoted));
    }
}
