/* SPDX-License-Identifier: Apache-2.0 */
/* Unpackers: which one an input needs, and those that libarchive has. Each input is unpacked with
 * the one filter that its first bytes ask for. */
#include "unpack.h"

#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define OUTPUT_BYTES ((size_t)64 << 10)

static const struct compression {
    const char *name;
    const char *magic;
    size_t length;
    int (*enable)(struct archive *library); /* NULL: zlib's */
} compressions[] = {
    {"gzip", "\x1F\x8B", 2, NULL},
    {"xz", "\xFD""7zXZ\0", 6, archive_read_support_filter_xz},
    {"zstd", "\x28\xB5\x2F\xFD", 4, archive_read_support_filter_zstd},
    {"bzip2", "BZh", 3, archive_read_support_filter_bzip2},
    {"lz4", "\x04\x22\x4D\x18", 4, archive_read_support_filter_lz4},
    {"compress", "\x1F\x9D", 2, archive_read_support_filter_compress},
    {"lzip", "LZIP\x01", 5, archive_read_support_filter_lzip},
};

struct sl_unpacker {
    const struct compression *compression;
    sl_input output;
    sl_bridge bridge; /* not for gzip */
    bool header_read, empty;
};

static const struct compression *find(const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < sizeof compressions / sizeof compressions[0]; i++) {
        const struct compression *one = &compressions[i];
        if (length < one->length || memcmp(bytes, one->magic, one->length) != 0)
            continue;
        /* Text may well begin with "BZh": bzip2 goes on with its level and a block or the end. */
        if (strcmp(one->name, "bzip2") == 0 &&
            (length < 5 || bytes[3] < '1' || bytes[3] > '9' ||
             (bytes[4] != 0x31 && bytes[4] != 0x17)))
            continue;
        return one;
    }
    return NULL;
}

const char *sl_compression_of(const unsigned char *bytes, size_t length) {
    const struct compression *found = find(bytes, length);
    return found ? found->name : NULL;
}

static bool fail(sl_unpacker *unpacker, sl_error *error) {
    sl_bridge *bridge = &unpacker->bridge;
    if (bridge->input_failed)
        return false;
    const sl_input *packed = bridge->input;
    if (bridge->ran_out)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the %s data breaks off at byte %llu, after %llu bytes of text "
                            "(%s); the file is truncated: fetch it again",
                            packed->name, unpacker->compression->name,
                            (unsigned long long)packed->offset,
                            (unsigned long long)unpacker->output.offset, sl_bridge_reason(bridge));
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the %s data is damaged near byte %llu, after %llu bytes of text (%s); "
                        "fetch the file again",
                        packed->name, unpacker->compression->name,
                        (unsigned long long)sl_input_position(packed),
                        (unsigned long long)unpacker->output.offset, sl_bridge_reason(bridge));
}

/* libarchive sees an archive of the format "raw", with one member, or none when it is empty. */
static bool read_header(sl_unpacker *unpacker) {
    struct archive_entry *entry;
    if (!sl_bridge_open(&unpacker->bridge))
        return false;
    int result = archive_read_next_header(unpacker->bridge.library, &entry);
    unpacker->header_read = true;
    unpacker->empty = result == ARCHIVE_EOF;
    return unpacker->empty || result == ARCHIVE_OK;
}

static bool fetch(sl_input *output, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    sl_unpacker *unpacker = output->context;
    sl_bridge *bridge = &unpacker->bridge;
    sl_bridge_enter(bridge, times, error);
    la_ssize_t result = -1;
    if (unpacker->header_read || read_header(unpacker))
        result = unpacker->empty ? 0 : archive_read_data(bridge->library, out, room);
    sl_bridge_leave(bridge);
    *got = result > 0 ? (size_t)result : 0;
    return result >= 0 || fail(unpacker, error);
}

bool sl_unpacker_create(sl_input *packed, sl_unpacker **result, sl_error *error) {
    sl_unpacker *unpacker = calloc(1, sizeof *unpacker);
    *result = unpacker;
    if (!unpacker)
        return sl_error_memory(error, "opening compressed sources");
    unpacker->compression = find(sl_input_at(packed), sl_input_left(packed));
    bool ok;
    if (!unpacker->compression->enable) {
        ok = sl_gunzip_init(&unpacker->output, packed, error);
    } else {
        struct archive *library = archive_read_new();
        unpacker->bridge = (sl_bridge){.library = library, .input = packed};
        unpacker->output = (sl_input){.fetch = fetch, .name = packed->name, .context = unpacker};
        ok = (library && archive_read_support_format_raw(library) == ARCHIVE_OK &&
              archive_read_support_format_empty(library) == ARCHIVE_OK) ||
             sl_error_memory(error, "opening compressed sources");
        /* ARCHIVE_WARN: this libarchive would start another program for it. */
        if (ok && unpacker->compression->enable(library) != ARCHIVE_OK)
            ok = sl_error_set(error, SL_EXIT_SOURCE,
                              "%s: compressed with %s, which the installed libarchive cannot read; "
                              "unpack the file first", packed->name, unpacker->compression->name);
        ok = ok && sl_input_init(&unpacker->output, OUTPUT_BYTES, error);
    }
    if (ok)
        return true;
    sl_unpacker_destroy(unpacker);
    *result = NULL;
    return false;
}

void sl_unpacker_destroy(sl_unpacker *unpacker) {
    if (!unpacker)
        return;
    if (unpacker->compression->enable) {
        archive_read_free(unpacker->bridge.library);
        sl_input_clear(&unpacker->output);
    } else {
        sl_gunzip_clear(&unpacker->output);
    }
    free(unpacker);
}

bool sl_unpacker_sees_cuts(const sl_unpacker *unpacker) {
    return strcmp(unpacker->compression->name, "compress") != 0;
}

sl_input *sl_unpacker_output(sl_unpacker *unpacker) {
    return &unpacker->output;
}
