/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a store was made of the present sources. A fingerprint covers only the beginning
 * and the end of a file. So the rules are those of the journal (ledger.c). */
#include "embedding.h"

#include <stdio.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "job/embed_store.h"
#include "report/json.h"
#include "util/interrupt.h"

#define TEXT_ROOM 17 /* 16 hexadecimal digits */

static const char *path_of(const char *folder, char path[SL_PARTITION_PATH + 16]) {
    snprintf(path, SL_PARTITION_PATH + 16, "%s/sources", folder);
    return path;
}

static const char *digits_of(uint64_t text, char out[TEXT_ROOM]) {
    snprintf(out, TEXT_ROOM, "%016llx", (unsigned long long)text);
    return out;
}

bool sl_embed_sources_write(const char *folder, const sl_job *records, uint64_t text,
                            sl_error *error) {
    char path[SL_PARTITION_PATH + 16], digits[TEXT_ROOM];
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "text", digits_of(text, digits));
    sl_earlier_append_sources(&document, records);
    bool ok = sl_json_write_file(path_of(folder, path), &document, error);
    bson_destroy(&document);
    return ok;
}

/* The identities show a change only if they were taken before the load began to read. */
bool sl_embed_sources_were_read(const sl_job *records, const bson_t *run_record, sl_error *error) {
    size_t index = 0, count = sl_source_set_count(records->set);
    bool same = true;
    for (sl_walk walk = sl_walk_start(run_record, "sources"); same && sl_walk_next(&walk);
         index++) {
        const char *text = sl_look_string(&walk.item, "fingerprint");
        const sl_job_source *source = &records->sources[index];
        same = index < count && strcmp(text, source->skipped ? "" : source->fingerprint) == 0;
    }
    if (!same || index != count)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s has changed while it was read; start the load again",
                            records->config->paths[0]);
    return sl_source_set_unchanged(records->set, error);
}

/* Reads all sources, and computes the sum that `sl_divided.text` was while the store was made. */
static bool hash_text(sl_job *records, uint64_t *sum, sl_error *error) {
    sl_reader *reader = NULL;
    sl_source_block block;
    sl_read_result result = SL_READ_BLOCK;
    *sum = 0;
    sl_source_set_report_skipped(records->set, NULL, NULL); /* reported when the store was made */
    bool ok = sl_reader_create(records->set, &reader, error);
    while (ok && result == SL_READ_BLOCK) {
        result = sl_reader_next(reader, &block, error);
        ok = result != SL_READ_FAILED;
        if (result == SL_READ_BLOCK)
            *sum += sl_divided_text(&block);
        if (ok && sl_interrupt_requested())
            ok = sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    }
    sl_reader_destroy(reader);
    return ok && sl_source_set_unchanged(records->set, error);
}

bool sl_embed_sources_compare(const char *folder, sl_job *records, bool exact, bool *same,
                              sl_sources_difference *difference, sl_error *error) {
    char path[SL_PARTITION_PATH + 16], digits[TEXT_ROOM];
    bson_t *stored;
    uint64_t text;
    if (!sl_json_read_private(path_of(folder, path), &stored, error))
        return false;
    bool ok = true;
    *same = sl_earlier_compare_sources(stored, records, difference);
    if (*same && exact) {
        *same = difference->compare == 0;
    } else if (*same && difference->compare > 0) {
        sl_earlier_log_compared(difference, "their records were stored");
        ok = hash_text(records, &text, error);
        *same = ok && strcmp(digits_of(text, digits), sl_look_string(stored, "text")) == 0;
        snprintf(difference->how, sizeof difference->how, "%s",
                 *same ? "" : "its text is not the same");
    }
    bson_destroy(stored);
    return ok;
}
