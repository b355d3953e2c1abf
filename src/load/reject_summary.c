/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rejects, as text for the summary and as a section of the record from which the HTML page
 * is made. Both show the same figures. */
#include "reject_summary.h"

#include "report/lookup.h"
#include "report/run_record.h"
#include "util/log.h"

#define SHOWN 10 /* kinds in the summary; the record has all */

static uint64_t not_written(const sl_reject_kinds *kinds, uint64_t all) {
    uint64_t sum = sl_reject_kinds_sum(kinds);
    return all > sum ? all - sum : 0;
}

static void log_count(uint64_t count, const char *what) {
    char human[SL_HUMAN_ROOM];
    if (count > 0)
        sl_log_info("  %12s  %s", sl_human_count(count, human), what);
}

static uint64_t count_at(const bson_t *document, const char *path) {
    return (uint64_t)sl_look_amount(document, path, 0);
}

void sl_reject_summary_log(const bson_t *record, const char *of) {
    char human[SL_HUMAN_ROOM];
    uint64_t others = count_at(record, "rejects.others"),
             lost = count_at(record, "rejects.notCompleted");
    uint32_t shown = 0;
    if (others + lost == 0 && sl_walk_count(record, "rejects.kinds") == 0)
        return;
    sl_log_info("  rejects%s%s by reason, with the first one of each", of ? " of " : "",
                of ? of : "");
    for (sl_walk walk = sl_walk_start(record, "rejects.kinds"); sl_walk_next(&walk);) {
        const char *column = sl_look_string(&walk.item, "column");
        uint64_t count = count_at(&walk.item, "count");
        if (shown++ >= SHOWN) {
            others += count;
            continue;
        }
        sl_log_info("  %12s  %s%s%s", sl_human_count(count, human), column, column[0] ? ": " : "",
                    sl_look_string(&walk.item, "reason"));
        sl_log_info("                %s%s%s", sl_look_string(&walk.item, "firstPlace"),
                    count > 1 ? ": " : "",
                    count > 1 ? sl_look_string(&walk.item, "firstReason") : "");
    }
    log_count(others, "for other reasons");
    log_count(lost, "in blocks that were not completed");
}

void sl_reject_summary_record(const sl_reject_kinds *kinds, uint64_t all, bson_t *record) {
    size_t order[SL_REJECT_KINDS_MAX];
    bson_t section, list, item;
    if (all == 0)
        return;
    sl_reject_kinds_order(kinds, order);
    BSON_APPEND_DOCUMENT_BEGIN(record, "rejects", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "kinds", &list);
    for (size_t i = 0; i < kinds->count; i++) {
        const sl_reject_kind *kind = &kinds->items[order[i]];
        sl_record_begin_item(&list, i, &item);
        BSON_APPEND_INT64(&item, "count", (int64_t)kind->count);
        BSON_APPEND_UTF8(&item, "column", kind->column);
        BSON_APPEND_UTF8(&item, "reason", kind->reason);
        BSON_APPEND_UTF8(&item, "firstPlace", kind->first_place);
        BSON_APPEND_UTF8(&item, "firstReason", kind->first_reason);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(&section, &list);
    BSON_APPEND_INT64(&section, "others", (int64_t)kinds->others);
    BSON_APPEND_INT64(&section, "notCompleted", (int64_t)not_written(kinds, all));
    bson_append_document_end(record, &section);
}
