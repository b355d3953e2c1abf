/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reading of a journal: exactly the records before the first damaged record are
 * accepted, and reading only the accepted part gives the same records. In half of the inputs the
 * checksums are corrected, so that the code behind the checksum test is reached. */
#include <zlib.h>

#include "check.h"
#include "ledger/journal.h"

#define HEAD_BYTES 12u

typedef struct seen {
    size_t documents, entries;
    uint64_t sum;
} seen;

static bool on_document(void *context, const bson_t *document) {
    seen *all = context;
    all->documents++;
    all->sum += document->len;
    return !bson_has_field(document, "stop");
}

static bool on_entry(void *context, const sl_journal_entry *entry) {
    seen *all = context;
    all->entries++;
    all->sum += entry->sequence;
    return true;
}

static uint32_t get32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static void correct_checksums(uint8_t *bytes, size_t size) {
    for (size_t at = 0; size - at >= HEAD_BYTES;) {
        uint32_t length = get32(bytes + at);
        if (length > size - at - HEAD_BYTES)
            return;
        uint32_t crc = (uint32_t)crc32_z(crc32(0, bytes + at, 8), bytes + at + HEAD_BYTES, length);
        memcpy(bytes + at + 8, &crc, sizeof crc);
        at += HEAD_BYTES + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    uint8_t *bytes = copy_of(data, size, 0, 0);
    if (data[size - 1] & 1)
        correct_checksums(bytes, size);
    seen first = {0}, second = {0};
    size_t good =
        sl_journal_scan(bytes, size, &(sl_journal_handlers){on_document, on_entry, &first});
    require(good <= size, "the accepted part lies in the file");
    require(sl_journal_scan(bytes, good, &(sl_journal_handlers){on_document, on_entry, &second}) ==
                good,
            "the accepted part is accepted again");
    /* A record that its handler refuses ends the scan and is not accepted. */
    require(second.documents <= first.documents && second.entries <= first.entries &&
                first.documents + first.entries <= second.documents + second.entries + 1,
            "the accepted part has the same records");
    free(bytes);
    return 0;
}
