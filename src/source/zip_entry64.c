/* SPDX-License-Identifier: Apache-2.0 */
/* Entries packed with Deflate64. Layout: PKWARE's APPNOTE.TXT, 4.3.7 to 4.3.9. */
#include "zip_entry64.h"

#include <string.h>
#include <zlib.h>

#define DEFLATE64 9u
#define FLAG_DESCRIPTOR 8u
#define DESCRIPTOR_BYTES 24u /* with signature and 64-bit sizes */

static unsigned u16(const unsigned char *at) {
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t u32(const unsigned char *at) {
    return u16(at) | (uint32_t)u16(at + 2) << 16;
}

static bool has_signature(const unsigned char *at, const char *signature) {
    return memcmp(at, signature, 4) == 0;
}

static bool damaged(const sl_zip_entry64 *entry, const char *label, const char *why,
                    sl_error *error) {
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the zip archive is damaged near byte %llu (%s); fetch the file again",
                        label, (unsigned long long)sl_input_position(entry->inflate.input), why);
}

bool sl_zip_is_entry64(const unsigned char header[SL_ZIP_LOCAL_BYTES]) {
    return has_signature(header, "PK\3\4") && u16(header + 8) == DEFLATE64;
}

bool sl_zip_entry64_begin(sl_zip_entry64 *entry, const unsigned char header[SL_ZIP_LOCAL_BYTES],
                          uint64_t start, sl_input *input, const char *label, sl_error *error) {
    memcpy(entry->header, header, SL_ZIP_LOCAL_BYTES);
    entry->crc = (uint32_t)crc32(0, NULL, 0);
    entry->ended = false;
    sl_inflate64_begin(&entry->inflate, input);
    uint64_t data = start + SL_ZIP_LOCAL_BYTES + u16(header + 26) + u16(header + 28);
    return sl_input_position(input) == data ||
           damaged(entry, label, "an entry does not follow the one before it", error);
}

/* UINT32_MAX in a local header: the size is in its zip64 field, or in the table of contents. */
static bool same_size(uint32_t declared, uint64_t size) {
    return declared == UINT32_MAX || declared == (uint32_t)size;
}

/* The length of the data descriptor at `at`; 0: none with this checksum and these sizes. */
static size_t descriptor_length(const sl_zip_entry64 *entry, uint64_t packed,
                                const unsigned char *at, size_t length) {
    uint64_t size = entry->inflate.total;
    for (size_t signature = 0; signature <= 4; signature += 4) {
        const unsigned char *crc = at + signature;
        if (length < signature + 12 || (signature && !has_signature(at, "PK\7\10")) ||
            u32(crc) != entry->crc)
            continue;
        if (length >= signature + 20 && u32(crc + 4) == (uint32_t)packed &&
            u32(crc + 8) == packed >> 32 && u32(crc + 12) == (uint32_t)size &&
            u32(crc + 16) == size >> 32)
            return signature + 20;
        if (u32(crc + 4) == (uint32_t)packed && u32(crc + 8) == (uint32_t)size)
            return signature + 12;
    }
    return 0;
}

/* Compares the checksum and the sizes with those declared, and moves to the next header. */
static bool end_entry(sl_zip_entry64 *entry, const char *label, sl_reader_times *times,
                      sl_error *error) {
    sl_input *input = entry->inflate.input;
    const unsigned char *header = entry->header;
    uint64_t packed = sl_input_position(input) - entry->inflate.begin;
    entry->ended = true;
    if (!sl_input_peek(input, DESCRIPTOR_BYTES, times, error))
        return false;
    if (u16(header + 6) & FLAG_DESCRIPTOR) {
        size_t length = descriptor_length(entry, packed, sl_input_at(input), sl_input_left(input));
        if (length == 0)
            return damaged(entry, label, "the checksum or size after the data differs", error);
        input->used += length;
    } else if (u32(header + 14) != entry->crc) {
        return damaged(entry, label, "the checksum of the contents differs", error);
    } else if (!same_size(u32(header + 18), packed) ||
               !same_size(u32(header + 22), entry->inflate.total)) {
        return damaged(entry, label, "the size of the contents differs", error);
    }
    if (!sl_input_peek(input, 4, times, error))
        return false;
    const unsigned char *next = sl_input_at(input);
    return (sl_input_left(input) >= 4 &&
            (has_signature(next, "PK\3\4") || has_signature(next, "PK\1\2"))) ||
           damaged(entry, label, "neither an entry nor the table of contents follows the data",
                   error);
}

bool sl_zip_entry64_read(sl_zip_entry64 *entry, unsigned char *out, size_t room, size_t *got,
                         const char *label, sl_reader_times *times, sl_error *error) {
    *got = 0;
    if (entry->ended)
        return true;
    if (!sl_inflate64_read(&entry->inflate, out, room, got, label, times, error))
        return false;
    if (*got == 0)
        return end_entry(entry, label, times, error);
    entry->crc = (uint32_t)crc32(entry->crc, out, (uInt)*got);
    return true;
}
