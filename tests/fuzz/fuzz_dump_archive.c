/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of mongodump archives: any text gives the same items, whatever the sizes of the
 * pieces in which it arrives, also after damage; reading makes progress, and ends. The first byte
 * is the size of the pieces. */
#include "bson/bson_writer.h"
#include "bson/dump_archive.h"

#include "check.h"

#define INPUT_MAX ((size_t)1 << 16)

/* Searches for the next block from `*at` on. False: there is none. */
static bool find_block(sl_dump_archive *archive, const uint8_t *bytes, size_t size, size_t step,
                       size_t *at, size_t *known) {
    for (;;) {
        size_t length;
        uint8_t *copy = copy_of(bytes + *at, *known - *at, SL_BSON_SLACK, 0x10);
        bool found = sl_dump_find_block(archive, copy, *known - *at, *known == size, &length);
        free(copy);
        require(length <= *known - *at, "a block is in the text");
        *at += length;
        if (found || *known == size)
            return found;
        *known = size - *known > step ? *known + step : size;
    }
}

/* Returns a hash of all items. */
static uint64_t read_archive(const uint8_t *bytes, size_t size, size_t step) {
    uint64_t hash = 1;
    sl_dump_archive *archive = sl_dump_archive_create();
    require(archive != NULL, "allocation succeeds");
    sl_dump_event event = SL_DUMP_MORE;
    for (size_t at = 0, known = 0; event < SL_DUMP_END;) {
        sl_dump_item item;
        uint8_t *copy = copy_of(bytes + at, known - at, SL_BSON_SLACK, 0x10);
        event = sl_dump_next(archive, copy, known - at, known == size, &item);
        require(event != SL_DUMP_MORE || known < size, "the end of the text is an end");
        require(item.length <= known - at, "an item is in the text");
        require((event == SL_DUMP_DAMAGED) == (item.why != NULL), "damage has a reason");
        if (event == SL_DUMP_MORE) {
            known = size - known > step ? known + step : size;
        } else {
            require(event >= SL_DUMP_END || item.length > 0, "reading makes progress");
            at += event == SL_DUMP_DAMAGED ? 0 : item.length;
            hash = ((hash ^ event) * 1099511628211u ^ at) * 1099511628211u;
        }
        if (event == SL_DUMP_DOCUMENT || event == SL_DUMP_COLLECTION)
            require(item.document == copy && item.of && item.of->collection,
                    "a document belongs to a collection");
        free(copy);
        if (event == SL_DUMP_DAMAGED && at < known) {
            at++;
            if (find_block(archive, bytes, size, step, &at, &known))
                event = SL_DUMP_MORE;
        }
    }
    sl_dump_archive_destroy(archive);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > INPUT_MAX)
        return 0;
    require(read_archive(data + 1, size - 1, 1 + (size_t)data[0]) ==
                read_archive(data + 1, size - 1, INPUT_MAX),
            "the items depend on the text only");
    return 0;
}
