/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a dump with the cluster, namespace by namespace. verify.h compares the documents. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "report/run_record.h"
#include "restoring.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "verify/verify.h"

typedef struct comparison {
    sl_restore *restore;
    const sl_namespace *item;
    char name[2 * SL_NAME_ROOM];
    bool differs;
    sl_target target;
} comparison;

static void report(comparison *c, const char *what, const char *in_dump, const char *on_server) {
    c->differs = true;
    sl_log_warning("%s: %s: in the dump %.300s, on the server %.300s", c->name, what,
                   in_dump ? in_dump : "none", on_server ? on_server : "none");
}

/* ---- options ---- */

/* Options of collections and indexes that mean the same as no such option. */
static const struct {
    const char *name, *json;
} defaults[] = {
    {"validationLevel", "\"strict\""},
    {"validationAction", "\"error\""},
    {"capped", "false"},
    {"validator", "{}"},
    {"autoIndexId", "true"},
    {"sparse", "false"},
    {"unique", "false"},
    {"hidden", "false"},
    {"background", "false"},
    {"background", "true"}, /* servers since 4.2 build all indexes in the same way */
    {"collation", "{\"locale\": \"simple\"}"},
};

static bool is_default(const bson_iter_t *value) {
    const char *name = bson_iter_key(value);
    char *json = sl_json_value(value);
    bool found = strcmp(name, "ns") == 0; /* servers before 4.4 add it to an index */
    for (size_t i = 0; json && !found && i < sizeof defaults / sizeof defaults[0]; i++)
        found = strcmp(name, defaults[i].name) == 0 && strcmp(json, defaults[i].json) == 0;
    free(json);
    return found;
}

/* Are the values equal? Numbers of several types may be: servers before 5.0 keep the doubles of old
 * clients. The order of the fields of an object means nothing, except in the key of an index. */
static bool same_value(const bson_iter_t *one, const bson_iter_t *other) {
    bson_t a, b;
    bson_iter_t of_a, of_b;
    const bool ordered = strcmp(bson_iter_key(one), "key") == 0;
    if (BSON_ITER_HOLDS_NUMBER(one) && BSON_ITER_HOLDS_NUMBER(other))
        return bson_iter_as_double(one) == bson_iter_as_double(other);
    if (sl_document_at(one, &a) && sl_document_at(other, &b)) {
        bool same = bson_count_keys(&a) == bson_count_keys(&b) && bson_iter_init(&of_b, &b);
        for (bool more = bson_iter_init(&of_a, &a); same && more && bson_iter_next(&of_a);)
            same = (ordered ? bson_iter_next(&of_b) &&
                                  strcmp(bson_iter_key(&of_a), bson_iter_key(&of_b)) == 0
                            : bson_iter_init_find(&of_b, &b, bson_iter_key(&of_a))) &&
                   same_value(&of_a, &of_b);
        return same;
    }
    char *here = sl_json_value(one), *there = sl_json_value(other);
    bool same = here && there && strcmp(here, there) == 0;
    free(here);
    free(there);
    return same;
}

static void difference(const bson_iter_t *here, const bson_iter_t *there,
                       sl_difference_handler handler, void *context) {
    char *a = here ? sl_json_value(here) : NULL, *b = there ? sl_json_value(there) : NULL;
    handler(context, bson_iter_key(here ? here : there), a, b);
    free(a);
    free(b);
}

/* Calls the handler for the fields that differ. */
static void compare_fields(const bson_t *dump, const bson_t *server, sl_difference_handler handler,
                           void *context) {
    bson_iter_t here, there;
    for (bool more = bson_iter_init(&here, dump); more && bson_iter_next(&here);) {
        bool found = bson_iter_init_find(&there, server, bson_iter_key(&here));
        if (found ? !same_value(&here, &there) : !is_default(&here))
            difference(&here, found ? &there : NULL, handler, context);
    }
    for (bool more = bson_iter_init(&there, server); more && bson_iter_next(&there);) {
        if (!bson_iter_init_find(&here, dump, bson_iter_key(&there)) && !is_default(&there))
            difference(NULL, &there, handler, context);
    }
}

bool sl_compare_options(const sl_namespace *item, const bson_t *server,
                        sl_difference_handler handler, void *context, sl_error *error) {
    bson_t expected = BSON_INITIALIZER;
    bool ok = (bson_concat(&expected, item->options) && bson_concat(&expected, item->later)) ||
              sl_error_memory(error, "comparing options");
    if (ok)
        compare_fields(&expected, server, handler, context);
    bson_destroy(&expected);
    return ok;
}

typedef struct reporting {
    comparison *comparison;
    const char *what;
} reporting;

static void on_difference(void *context, const char *key, const char *dumped, const char *stored) {
    const reporting *r = context;
    char what[400];
    snprintf(what, sizeof what, "%s %s", r->what, key);
    report(r->comparison, what, dumped, stored);
}

/* ---- indexes ---- */

/* Finds the index of this name in an array. */
static bool find_index(const bson_t *indexes, const char *name, bson_t *found) {
    for (sl_walk walk = sl_walk_of(indexes); sl_walk_next(&walk);) {
        if (strcmp(sl_look_string(&walk.item, "name"), name) == 0)
            return sl_document_at(&walk.at, found);
    }
    return false;
}

static bool compare_indexes(comparison *c, sl_error *error) {
    bson_t stored, other;
    if (sl_kinds[c->item->kind].no_documents)
        return true;
    bool ok = sl_collection_indexes(c->restore->connection, &c->target, &stored, error);
    for (sl_walk walk = sl_walk_of(c->item->indexes); ok && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "name");
        char what[300];
        snprintf(what, sizeof what, "index %s", name);
        if (find_index(&stored, name, &other))
            compare_fields(&walk.item, &other, on_difference, &(reporting){c, what});
        else
            report(c, what, "one", NULL);
    }
    for (sl_walk walk = sl_walk_of(&stored); ok && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "name");
        if (strcmp(name, "_id_") != 0 && !bson_has_field(&walk.item, "clustered") &&
            !find_index(c->item->indexes, name, &other))
            sl_log_info("%s: index %s is not in the dump", c->name, name);
    }
    bson_destroy(&stored);
    return ok;
}

/* ---- documents ---- */

static sl_exit compare_documents(comparison *c, bool content, uint64_t problems_shown) {
    const char *paths[] = {c->item->data};
    char folder[SL_RESTORE_DIRECTORY_ROOM + 80], collection[SL_NAME_ROOM + 16];
    sl_load_config config = *c->restore->config->load;
    snprintf(collection, sizeof collection, "%s%s", sl_kinds[c->item->kind].stored,
             c->item->to_collection);
    config.paths = paths;
    config.path_count = 1;
    config.format = "bson";
    config.database = c->item->to_database;
    config.collection = collection;
    config.unregistered = true;
    config.report = NULL;
    if (config.work_directory) {
        sl_namespace_folder(c->restore->directory, c->item, folder, sizeof folder);
        config.work_directory = folder;
    }
    sl_exit code = sl_verify_run(&config, content, problems_shown);
    if (config.work_directory) { /* its log has replaced this one */
        char path[SL_WORK_DIRECTORY_ROOM + 32];
        snprintf(path, sizeof path, "%s/" SL_WORK_LOG, c->restore->directory);
        sl_log_open_file(path, NULL); /* on failure only the terminal is left */
    }
    return code;
}

static bool compare_documents_of_none(comparison *c, sl_error *error) {
    bool empty;
    if (!sl_collection_is_empty(c->restore->connection, &c->target, &empty, error))
        return false;
    if (!empty)
        report(c, "documents", "none", "some");
    return true;
}

/* ---- users and roles ---- */

/* Compares a user or role with that of the server. Their contents are not shown. */
static bool compare_user(void *context, const bson_t *user, const sl_bson_facts *facts,
                         sl_error *error) {
    (void)facts;
    comparison *c = context;
    bson_t filter = BSON_INITIALIZER, found, there;
    bson_iter_t iter;
    bool has_id = bson_iter_init_find(&iter, user, "_id");
    char *id = has_id ? sl_json_value(&iter) : NULL;
    if (has_id)
        bson_append_iter(&filter, "_id", -1, &iter);
    bool ok =
        sl_connection_find(c->restore->connection, "admin",
                           c->item->kind == SL_NAMESPACE_USERS ? "system.users" : "system.roles",
                           &filter, NULL, &found, error);
    bool exists = ok && bson_iter_init(&iter, &found) && bson_iter_next(&iter) &&
                  sl_document_at(&iter, &there);
    if (ok && (!exists || !bson_equal(user, &there)))
        report(c, "_id", id, exists ? "another one with this _id" : NULL);
    bson_destroy(&found);
    bson_destroy(&filter);
    free(id);
    return ok;
}

/* ---- the dump ---- */

/* Compares one namespace. Returns its exit code. */
static sl_exit compare(comparison *c, bool content, uint64_t problems_shown) {
    sl_restore *restore = c->restore;
    sl_collection_facts facts;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    if (sl_kinds[c->item->kind].merged_by) {
        if (!c->item->data || sl_dump_each_document(c->item->data, compare_user, c, &error))
            return c->differs ? SL_EXIT_VERIFICATION : SL_EXIT_OK;
        sl_log_error(SL_LINES, error.message);
        return error.code;
    }
    bool ok = sl_collection_read(restore->connection, &c->target, &facts, &error);
    const char *type = sl_kinds[c->item->kind].type;
    if (ok && (!facts.exists || strcmp(facts.type, type) != 0)) {
        report(c, "kind", type, facts.exists ? facts.type : NULL);
    } else if (ok) {
        ok = sl_compare_options(c->item, &facts.options, on_difference, &(reporting){c, "option"},
                                &error) &&
             compare_indexes(c, &error);
        if (ok && c->item->data)
            code = compare_documents(c, content, problems_shown);
        else if (ok && !sl_kinds[c->item->kind].no_documents)
            ok = compare_documents_of_none(c, &error);
    }
    sl_collection_facts_clear(&facts);
    if (!ok) {
        sl_log_error(SL_LINES, error.message);
        return error.code;
    }
    return code == SL_EXIT_OK && c->differs ? SL_EXIT_VERIFICATION : code;
}

static bool prepare(sl_restore *restore, sl_error *error) {
    const sl_restore_config *config = restore->config;
    const char *given = config->load->work_directory;
    if (strcmp(config->dump, "-") != 0 && access(config->dump, R_OK) != 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "--dump %s: %s", config->dump, strerror(errno));
    if (!given && !sl_restore_is_in_place(restore))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--dump %s: an archive is unpacked first: name a folder with space for "
                            "its documents with --work-dir",
                            config->dump);
    if (given) {
        char path[4096];
        snprintf(path, sizeof path, "%s/" SL_WORK_RESTORE, given);
        if (access(path, F_OK) == 0) /* its unpacked files would be overwritten and removed */
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--work-dir %s: this is the work directory of a restore, which may "
                                "have to be resumed: name another one",
                                given);
        if (!sl_restore_make_directory(restore, NULL, error))
            return false;
    }
    restore->connection =
        sl_load_open_connection(config->load, SL_FOR_READING, "shardload", 3, error);
    return restore->connection && sl_restore_open_dump(restore, error);
}

/* Removes the folder into which an archive was unpacked, and what is left in it. */
static void remove_unpacked(const sl_restore *restore) {
    char folder[SL_WORK_DIRECTORY_ROOM + 16], file[sizeof folder + 16];
    if (!restore->lock.held) /* there is no work directory, or it is another command's */
        return;
    for (size_t i = 0;; i++) { /* also what a run left that was killed */
        snprintf(file, sizeof file, "%s/" SL_WORK_UNPACKED "/%06zu.bson", restore->directory, i);
        if (i > restore->dump.count && access(file, F_OK) != 0)
            break;
        sl_private_file_remove(file);
    }
    snprintf(folder, sizeof folder, "%s/" SL_WORK_UNPACKED, restore->directory);
    sl_private_folder_remove(folder);
}

static sl_exit compare_all(sl_restore *restore, bool content, uint64_t problems_shown,
                           bson_t *record) {
    bson_t array, one_item;
    char name[2 * SL_NAME_ROOM];
    sl_error error = {0};
    size_t differing = 0, count = 0;
    sl_exit code = SL_EXIT_OK;
    BSON_APPEND_ARRAY_BEGIN(record, "namespaces", &array);
    for (size_t i = 0; i < restore->dump.count; i++) {
        comparison c = {.restore = restore, .item = &restore->dump.items[i]};
        if (c.item->left_out)
            continue;
        if (sl_interrupt_requested()) {
            code = SL_EXIT_INTERRUPTED;
            break;
        }
        c.target =
            (sl_target){.database = c.item->to_database, .collection = c.item->to_collection};
        sl_namespace_target(c.item, c.name);
        sl_exit one = compare(&c, content, problems_shown);
        if (c.item->unpacked && c.item->data)
            sl_private_file_remove(c.item->data);
        const bool equal = one == SL_EXIT_OK && !c.item->damaged;
        sl_print("%s: %s\n", c.name,
                 equal                         ? "equal to the dump"
                 : one == SL_EXIT_VERIFICATION ? "differs"
                                               : "not compared completely");
        sl_record_begin_item(&array, count++, &one_item);
        BSON_APPEND_UTF8(&one_item, "dumpNamespace", sl_namespace_name(c.item, name));
        BSON_APPEND_UTF8(&one_item, "namespace", c.name);
        BSON_APPEND_UTF8(&one_item, "kind", sl_kinds[c.item->kind].name);
        BSON_APPEND_BOOL(&one_item, "equal", equal);
        bson_append_document_end(&array, &one_item);
        differing += !equal;
        code = code == SL_EXIT_OK || code == SL_EXIT_VERIFICATION ? (one ? one : code) : code;
    }
    bson_append_array_end(record, &array);
    if (code == SL_EXIT_INTERRUPTED)
        return code;
    sl_print("%zu of %zu namespaces are equal to the dump%s\n", count - differing, count,
             content ? "" : " (documents: only their number was compared)");
    if (!sl_restore_all_known(restore, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    return code;
}

static sl_exit run(sl_restore *restore, bool content, uint64_t problems_shown) {
    sl_error error = {0};
    const sl_load_config *load = restore->config->load;
    bson_t record = BSON_INITIALIZER;
    sl_record_head(&record, "verify", load->program_version, sl_wall_clock_ms(), load->options);
    bool ok = (!load->report || sl_private_file_may_replace(load->report, &error)) &&
              prepare(restore, &error);
    sl_exit code = ok ? compare_all(restore, content, problems_shown, &record) : error.code;
    sl_record_tail(&record, code);
    if (ok && load->report && !sl_json_write_file(load->report, &record, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    bson_destroy(&record);
    remove_unpacked(restore);
    if (!ok) {
        sl_work_directory_abandon(restore->directory, &restore->lock);
        sl_log_error(SL_LINES, error.message);
    }
    return code;
}

static bool on_first_signal(void *context) {
    const sl_restore *restore = context;
    return !restore->connection;
}

sl_exit sl_verify_dump_run(const sl_restore_config *config, bool content, uint64_t problems_shown) {
    sl_restore restore = {
        .config = config, .verifying = true, .sharding = PTHREAD_MUTEX_INITIALIZER};
    sl_error error = {0};
    sl_exit code;
    if (sl_interrupt_listen(on_first_signal, NULL, &restore, &error)) {
        code = run(&restore, content, problems_shown);
        sl_interrupt_stop_listening();
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_restore_clear(&restore);
    return code;
}
