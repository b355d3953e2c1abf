/* SPDX-License-Identifier: Apache-2.0 */
/* Files and archive entries that are not loaded: no format recognises them, or they hold no text,
 * or another kind of records. They are listed, and the load fails unless --skip-other is given.
 *
 * The run record lists the first KEPT_MAX of them, the log file all. */
#include "not_loaded.h"
#include "job.h"
#include "report/run_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

#define KEPT_MAX 1000
#define SHOWN_MAX 20 /* on the screen */
#define IN_MESSAGE_MAX 5

void sl_not_loaded_init(sl_not_loaded *list) {
    *list = (sl_not_loaded){0};
    pthread_mutex_init(&list->lock, NULL);
}

void sl_not_loaded_clear(sl_not_loaded *list) {
    for (size_t i = 0; i < list->kept_count; i++) {
        free(list->kept[i].entry);
        free(list->kept[i].reason);
    }
    free(list->kept);
    pthread_mutex_destroy(&list->lock);
}

/* Call it under the lock. Without memory the item is only counted. */
static void keep(sl_not_loaded *list, size_t source, const char *entry, const char *reason) {
    if (list->kept_count == KEPT_MAX)
        return;
    if (!list->kept && !(list->kept = calloc(KEPT_MAX, sizeof *list->kept)))
        return;
    sl_not_loaded_item *made = &list->kept[list->kept_count];
    *made = (sl_not_loaded_item){
        .source = source, .entry = entry ? strdup(entry) : NULL, .reason = strdup(reason)};
    list->kept_count += made->reason && (made->entry || !entry);
}

void sl_not_loaded_add(sl_job *job, size_t source, const char *entry, const char *reason) {
    sl_not_loaded *list = &job->not_loaded;
    pthread_mutex_lock(&list->lock);
    uint64_t number = reason ? ++list->count : ++list->empty;
    if (reason)
        keep(list, source, entry, reason);
    pthread_mutex_unlock(&list->lock);
    sl_log(number <= SHOWN_MAX ? SL_LOG_WARNING : SL_LOG_DEBUG, "%s%s%s: %s" SL_LINES,
           sl_source_set_at(job->set, source)->shown, entry ? ": " : "", entry ? entry : "",
           reason ? "not loaded: " : "empty; nothing to load", reason ? reason : "");
    if (number == SHOWN_MAX)
        sl_log_warning("only the log file lists further %s",
                       reason ? "files and entries that are not loaded"
                              : "empty files and entries");
}

bool sl_not_loaded_check(sl_job *job, sl_error *error) {
    const sl_not_loaded *list = &job->not_loaded;
    char names[1400] = "";
    size_t used = 0;
    if (list->count == 0 || job->config->skip_other)
        return true;
    for (size_t i = 0; i < list->kept_count && i < IN_MESSAGE_MAX && used < sizeof names; i++) {
        const sl_not_loaded_item *one = &list->kept[i];
        used += (size_t)snprintf(names + used, sizeof names - used, "\n  %s%s%s",
                                 sl_source_set_at(job->set, one->source)->shown,
                                 one->entry ? ": " : "", one->entry ? one->entry : "");
    }
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%llu file%s or archive entr%s not loaded:" SL_LINES SL_LINES
                        "\n--skip-other skips them; --include selects files, or entries of the "
                        "named archives, by name",
                        (unsigned long long)list->count, list->count == 1 ? "" : "s",
                        list->count == 1 ? "y is" : "ies are", names,
                        list->count > IN_MESSAGE_MAX ? "\n  ..." : "");
}

void sl_not_loaded_record(const sl_job *job, bson_t *record) {
    const sl_not_loaded *list = &job->not_loaded;
    bson_t section, array, item;
    if (list->count == 0)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(record, "notLoaded", &section);
    BSON_APPEND_INT64(&section, "count", (int64_t)list->count);
    BSON_APPEND_ARRAY_BEGIN(&section, "items", &array);
    for (size_t i = 0; i < list->kept_count; i++) {
        const sl_not_loaded_item *one = &list->kept[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "path", sl_source_set_at(job->set, one->source)->shown);
        if (one->entry)
            BSON_APPEND_UTF8(&item, "entry", one->entry);
        BSON_APPEND_UTF8(&item, "reason", one->reason);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(&section, &array);
    bson_append_document_end(record, &section);
}
