/* SPDX-License-Identifier: Apache-2.0 */
/* What a restore prints: the dump, and the outcome of each namespace. */
#include "restoring.h"

#include <math.h>
#include <string.h>

#include "report/run_record.h"
#include "util/context.h"
#include "util/log.h"
#include "util/text_table.h"

static const char *const kinds[] = {"collection", "time series", "view"};

/* The options of a namespace in words, such as "capped, validator". */
static const char *options_of(const sl_namespace *item, char out[400]) {
    static const char *const hidden[] = {"size", "max", "pipeline"}; /* of capped, viewOn */
    size_t used = 0;
    bson_iter_t iter;
    out[0] = '\0';
    for (bool more = bson_iter_init(&iter, item->options); more && bson_iter_next(&iter);) {
        bool shown = true;
        for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
            shown = shown && strcmp(bson_iter_key(&iter), hidden[i]) != 0;
        if (shown)
            used += sl_print_text(out + used, 400 - used, "%s%s", used ? ", " : "",
                                  bson_iter_key(&iter));
    }
    for (bool more = bson_iter_init(&iter, item->later); more && bson_iter_next(&iter);) {
        if (strncmp(bson_iter_key(&iter), "validation", 10) != 0)
            used += sl_print_text(out + used, 400 - used, "%s%s", used ? ", " : "",
                                  bson_iter_key(&iter));
    }
    if (item->shard_key) {
        char *key = bson_as_relaxed_extended_json(item->shard_key, NULL);
        sl_print_text(out + used, 400 - used, "%ssharded by %s%s", used ? ", " : "", key ? key : "",
                      item->shard_unique ? ", unique" : "");
        bson_free(key);
    }
    return out;
}

static void print_table(sl_text_table *table) {
    sl_text_table_rule(table, NULL);
    sl_text_table_print(table, sl_output(), 0);
    sl_text_table_destroy(table);
}

void sl_restore_print_plan(const sl_restore *restore) {
    static const sl_text_column columns[] = {{"namespace", .left = true},
                                             {"kind", .left = true, .least = 11},
                                             {"data", .least = 10, .unit = SL_UNIT_BYTES},
                                             {"indexes", .unit = SL_UNIT_COUNT},
                                             {"becomes; options", .left = true},
                                             {0}};
    char name[2 * SL_NAME_ROOM], target[2 * SL_NAME_ROOM], words[400];
    sl_text_table *table = sl_text_table_create(columns);
    size_t shown = 0;
    sl_text_table_limit(table, SL_TEXT_UNLIMITED);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (item->left_out)
            continue;
        shown++;
        sl_namespace_name(item, name);
        sl_namespace_target(item, target);
        options_of(item, words);
        bool renamed = strcmp(name, target) != 0;
        sl_text_table_cell(table, "%s", name);
        sl_text_table_cell(table, "%s", kinds[item->kind]);
        sl_text_table_number(table,
                             item->data || item->data_bytes > 0 ? (double)item->data_bytes : NAN);
        sl_text_table_number(table, item->index_count);
        sl_text_table_cell(table, "%s%s%s%s", renamed ? "becomes " : "", renamed ? target : "",
                           renamed && words[0] ? "; " : "", words);
    }
    print_table(table);
    sl_print("%zu of %zu namespaces; nothing has been changed\n", shown, restore->dump.count);
}

static void add_outcome(sl_text_table *table, const char *name, const sl_restored *o,
                        double seconds, const char *note) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_number(table, (double)o->records);
    sl_text_table_number(table, (double)o->inserted);
    sl_text_table_number(table, (double)o->already_stored);
    sl_text_table_number(table, (double)o->rejected);
    sl_text_table_number(table, o->indexes);
    sl_text_table_number(table, seconds);
    sl_text_table_cell(table, "%s", note);
}

void sl_restore_print_outcomes(const sl_restore *restore) {
    static const sl_text_column columns[] = {
        {"namespace", .left = true},
        {"documents", .least = 14},
        {"inserted", .least = 14},
        {"already stored", .least = 14},
        {"rejected", .least = 10},
        {"indexes", .least = 7},
        {"time", .least = 9, .unit = SL_UNIT_SECONDS},
        {"", .left = true},
        {0},
    };
    sl_text_table *table = sl_text_table_create(columns);
    sl_restored sum = {.code = SL_EXIT_OK};
    char name[2 * SL_NAME_ROOM];
    sl_text_table_limit(table, SL_TEXT_UNLIMITED);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (item->left_out)
            continue;
        const char *note = !o->begun                                             ? "not begun"
                           : o->code != SL_EXIT_OK && o->code != SL_EXIT_REJECTS ? "incomplete"
                           : o->earlier                                          ? "earlier run"
                           : item->kind == SL_NAMESPACE_VIEW                     ? "view"
                           : o->existed                                          ? "existed"
                                                                                 : "";
        add_outcome(table, sl_namespace_target(item, name), o,
                    o->earlier || !o->begun ? NAN : o->seconds, note);
        sum.records += o->records;
        sum.inserted += o->inserted;
        sum.already_stored += o->already_stored;
        sum.rejected += o->rejected;
        sum.indexes += o->indexes;
    }
    add_outcome(table, "total", &sum, restore->seconds, "");
    sl_print("\n");
    print_table(table);
}

void sl_restore_log_rejects(const sl_restore *restore) {
    char name[2 * SL_NAME_ROOM], folder[SL_RESTORE_DIRECTORY_ROOM + 80], count[SL_HUMAN_ROOM];
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (item->left_out || o->rejected == 0)
            continue;
        sl_namespace_folder(restore->directory, item, folder, sizeof folder);
        sl_log_warning("%s: %s document%s rejected, with the reasons in %s/rejects.tsv",
                       sl_namespace_target(item, name), sl_human_count(o->rejected, count),
                       o->rejected == 1 ? "" : "s", folder);
    }
}

void sl_restore_log_notes(const sl_restore *restore) {
    for (size_t i = 0; i < restore->dump.note_count; i++) {
        const sl_dump_note *note = &restore->dump.notes[i];
        sl_log(note->lost ? SL_LOG_WARNING : SL_LOG_INFO, "not restored: %s: %s", note->what,
               note->why);
    }
}

bool sl_restore_append(const sl_restore *restore, bson_t *record) {
    bson_t array, item;
    char name[2 * SL_NAME_ROOM];
    size_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(record, "namespaces", &array);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *of = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (of->left_out)
            continue;
        sl_record_begin_item(&array, count++, &item);
        BSON_APPEND_UTF8(&item, "dumped", sl_namespace_name(of, name));
        BSON_APPEND_UTF8(&item, "namespace", sl_namespace_target(of, name));
        BSON_APPEND_UTF8(&item, "kind", kinds[of->kind]);
        BSON_APPEND_BOOL(&item, "begun", o->begun);
        BSON_APPEND_BOOL(&item, "existed", o->existed);
        BSON_APPEND_INT64(&item, "records", (int64_t)o->records);
        BSON_APPEND_INT64(&item, "inserted", (int64_t)o->inserted);
        BSON_APPEND_INT64(&item, "alreadyThere", (int64_t)o->already_stored);
        BSON_APPEND_INT64(&item, "rejected", (int64_t)o->rejected);
        BSON_APPEND_INT32(&item, "indexes", (int32_t)o->indexes);
        BSON_APPEND_DOUBLE(&item, "seconds", o->seconds);
        BSON_APPEND_INT32(&item, "exitCode", (int32_t)o->code);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
    BSON_APPEND_ARRAY_BEGIN(record, "notRestored", &array);
    for (size_t i = 0; i < restore->dump.note_count; i++) {
        const sl_dump_note *note = &restore->dump.notes[i];
        char text[400];
        sl_record_begin_item(&array, i, &item);
        sl_text_printable(sl_text_of(note->what), text, sizeof text);
        BSON_APPEND_UTF8(&item, "what", text);
        BSON_APPEND_UTF8(&item, "why", note->why);
        bson_append_document_end(&array, &item);
    }
    return bson_append_array_end(record, &array);
}
