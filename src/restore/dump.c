/* SPDX-License-Identifier: Apache-2.0 */
/* A dump: which namespaces are restored, and under which names; their options and indexes; the
 * files of a folder. */
#include "dump.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "bson/dump_archive.h"
#include "bson/extjson.h"
#include "format/format.h"
#include "format/simd.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

/* ---- what namespaces are ---- */

const sl_kind sl_kinds[] = {
    [SL_NAMESPACE_COLLECTION] = {.name = "collection", .type = "collection", .stored = ""},
    [SL_NAMESPACE_TIME_SERIES] = {.name = "time series",
                                  .type = "timeseries",
                                  .stored = SL_BUCKETS},
    [SL_NAMESPACE_VIEW] = {.name = "view", .type = "view", .stored = "", .no_documents = true},
    [SL_NAMESPACE_ROLES] = {.name = "roles",
                            .type = "collection",
                            .stored = "",
                            .merged_by = "tempRolesCollection"},
    [SL_NAMESPACE_USERS] = {.name = "users",
                            .type = "collection",
                            .stored = "",
                            .merged_by = "tempUsersCollection"},
};

#define DATABASE_USERS "--restore-db-users-and-roles restores the users and roles of a database"

/* By name, in which a * at the end stands for any text. The first row that matches. */
static const struct special {
    const char *database, *collection;
    sl_namespace_kind kind;
    const char *why;     /* it is not restored; NULL: it is */
    bool database_users; /* it is restored if these are wanted */
} special[] = {
    {"admin", "system.users", .kind = SL_NAMESPACE_USERS},
    {"admin", "system.roles", .kind = SL_NAMESPACE_ROLES},
    {"admin", "system.version", .why = "the server's own record of its versions"},
    {"admin", "system.*", .why = "a collection of the server itself"},
    {"config", "*",
     .why = "the metadata of a sharded cluster are not restored; --shard-keys shards collections"},
    {"local", "*", .why = "the server's own database is not restored"},
    {"__mdb_internal*", "*", .why = "the server's own database is not restored"},
    {"*", "$admin.system.users", SL_NAMESPACE_USERS, DATABASE_USERS, true},
    {"*", "$admin.system.roles", SL_NAMESPACE_ROLES, DATABASE_USERS, true},
    {"*", "$admin.*", .why = "the server's own record of its versions"},
    {"*", "system.profile", .why = "the profiler's records are not restored"},
    {"shardload", "balancer", .why = "the state of the balancer during a load is not restored"},
};

static bool has_name(const char *name, const char *row) {
    size_t length = strcspn(row, "*");
    return row[length] ? strncmp(name, row, length) == 0 : strcmp(name, row) == 0;
}

/* NULL: an ordinary name. */
static const struct special *find_special(const char *database, const char *collection) {
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (has_name(database, special[i].database) && has_name(collection, special[i].collection))
            return &special[i];
    }
    return NULL;
}

sl_namespace_kind sl_dump_kind(const char *database, const char *collection) {
    const struct special *found = find_special(database, collection);
    return found ? found->kind : SL_NAMESPACE_COLLECTION;
}

const char *sl_dump_not_restored(const sl_name_options *names, const char *database,
                                 const char *collection) {
    const struct special *found = find_special(database, collection);
    return !found || (found->database_users && names->database_users) ? NULL : found->why;
}

/* ---- patterns ---- */

#define WILDCARDS_MAX 16

/* A wildcard of a pattern and the text that it matches. */
typedef struct wildcard {
    sl_text name; /* of $name$; length 0: a * */
    sl_text text;
} wildcard;

typedef struct matching {
    bool named;  /* $name$ is a wildcard */
    bool failed; /* the text after a wildcard does not match, however long the wildcard is */
    wildcard found[WILDCARDS_MAX];
    size_t count;
} matching;

/* The name at `pattern`, which begins with $; length 0: there is none. */
static sl_text name_at(const char *pattern) {
    const char *end = strchr(pattern + 1, '$');
    if (!end || end == pattern + 1 || memchr(pattern + 1, '*', (size_t)(end - pattern - 1)) ||
        memchr(pattern + 1, '.', (size_t)(end - pattern - 1)))
        return (sl_text){"", 0};
    return (sl_text){pattern + 1, (size_t)(end - pattern - 1)};
}

/* Is there a wildcard at `pattern`? `*length`: its bytes. */
static bool wildcard_at(const char *pattern, bool named, sl_text *name, size_t *length) {
    *name = (sl_text){"", 0};
    *length = 1;
    if (*pattern == '*')
        return true;
    if (*pattern != '$' || !named)
        return false;
    *name = name_at(pattern);
    *length = name->length + 2;
    return name->length > 0;
}

static bool match(matching *m, const char *pattern, const char *name) {
    sl_text variable;
    size_t length;
    for (; *pattern; pattern++, name++) {
        if (wildcard_at(pattern, m->named, &variable, &length)) {
            if (m->count == WILDCARDS_MAX)
                return false;
            wildcard *here = &m->found[m->count++];
            size_t count = m->count, taken = 0;
            do {
                m->count = count;
                *here = (wildcard){variable, {name, taken}};
                if (match(m, pattern + length, name + taken))
                    return true;
            } while (!m->failed && name[taken++]);
            /* Earlier wildcards match the shortest text; if they matched more, even less text would
             * be left here. */
            m->failed = true;
            return false;
        }
        if (*pattern == '\\' && pattern[1])
            pattern++;
        if (*pattern != *name)
            return false;
    }
    return *name == '\0';
}

/* Does the name match the pattern? */
static bool name_matches(const char *pattern, const char *name) {
    matching m = {.named = false};
    return match(&m, pattern, name);
}

/* ---- renaming ---- */

/* The wildcards of a pattern, in order. False: more than WILDCARDS_MAX. */
static bool list_wildcards(const char *pattern, bool named, matching *m) {
    sl_text name;
    size_t length;
    *m = (matching){.named = named};
    for (const char *at = pattern; *at; at++) {
        if (wildcard_at(at, named, &name, &length)) {
            if (m->count == WILDCARDS_MAX)
                return false;
            m->found[m->count++].name = name;
            at += length - 1;
        } else if (*at == '\\' && at[1]) {
            at++;
        }
    }
    return true;
}

/* The n-th * of the matching, or the wildcard of this name; NULL: none. */
static const wildcard *find(const matching *m, sl_text name, size_t n) {
    for (size_t i = 0; i < m->count; i++) {
        if (!sl_text_equal(m->found[i].name, name))
            continue;
        if (name.length > 0 || n-- == 0)
            return &m->found[i];
    }
    return NULL;
}

static size_t count_stars(const matching *m) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->found[i].name.length == 0;
    return count;
}

bool sl_rename_check(const char *from, const char *to, sl_error *error) {
    matching in_from, in_to;
    if (!list_wildcards(from, true, &in_from) || !list_wildcards(to, true, &in_to))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-from %s, --ns-to %s: at most %d wildcards are possible", from, to,
                            WILDCARDS_MAX);
    if (count_stars(&in_from) != count_stars(&in_to))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-from %s has %zu *, and --ns-to %s has %zu: they must have the "
                            "same number",
                            from, count_stars(&in_from), to, count_stars(&in_to));
    for (size_t i = 0; i < in_from.count + in_to.count; i++) {
        bool of_from = i < in_from.count;
        sl_text name = (of_from ? in_from.found[i] : in_to.found[i - in_from.count]).name;
        if (name.length > 0 && !find(of_from ? &in_to : &in_from, name, 0))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--ns-from %s, --ns-to %s: $%.*s$ must be in both", from, to,
                                (int)name.length, name.bytes);
        if (of_from && name.length > 0 && find(&in_from, name, 0) != &in_from.found[i])
            return sl_error_set(error, SL_EXIT_USAGE, "--ns-from %s: $%.*s$ may occur once", from,
                                (int)name.length, name.bytes);
    }
    return true;
}

/* Writes the new name, if the name matches `from`. False if it does not match. */
static bool new_name(const char *from, const char *to, const char *name, char out[SL_NAME_ROOM]) {
    matching m = {.named = true};
    sl_text variable;
    size_t length, used = 0, stars = 0;
    if (!match(&m, from, name))
        return false;
    for (const char *at = to; *at; at++) {
        sl_text put = {at, 1};
        if (wildcard_at(at, true, &variable, &length)) {
            const wildcard *found = find(&m, variable, stars);
            stars += variable.length == 0;
            put = found ? found->text : (sl_text){"", 0};
            at += length - 1;
        } else if (*at == '\\' && at[1]) {
            put.bytes = ++at;
        }
        if (put.length > SL_NAME_ROOM - 1 - used)
            put.length = SL_NAME_ROOM - 1 - used;
        memcpy(out + used, put.bytes, put.length);
        used += put.length;
    }
    out[used] = '\0';
    return true;
}

bool sl_name_pattern_check(const char *option, const char *pattern, sl_error *error) {
    matching stars;
    return list_wildcards(pattern, false, &stars) ||
           sl_error_set(error, SL_EXIT_USAGE, "--%s %.300s: at most %d * are possible", option,
                        pattern, WILDCARDS_MAX);
}

/* ---- all namespaces ---- */

/* A pattern that no namespace matches may contain a typing error. */
static void warn_of_unused(const char *option, const char *const *patterns, size_t count,
                           const sl_dump *dump) {
    for (size_t i = 0; i < count; i++) {
        bool used = false;
        for (size_t k = 0; k < dump->count && !used; k++) {
            char name[2 * SL_NAME_ROOM], renamed[SL_NAME_ROOM];
            snprintf(name, sizeof name, "%s.%s", dump->items[k].database,
                     dump->items[k].collection);
            used = strcmp(option, "--ns-from") == 0 ? new_name(patterns[i], "", name, renamed)
                                                    : name_matches(patterns[i], name);
        }
        if (!used)
            sl_log_warning("%s %.300s: no namespace that can be restored matches this pattern",
                           option, patterns[i]);
    }
}

static bool is_any(const char *const *patterns, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (name_matches(patterns[i], name))
            return true;
    }
    return false;
}

static bool set_target(sl_namespace *item, const char *name, const char *target, sl_error *error) {
    const char *dot = strchr(target, '.');
    if (strlen(target) > 255)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s would become %.300s, which is longer than the 255 bytes that a "
                            "server accepts",
                            name, target);
    if (!dot || dot == target || !dot[1])
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-to: %s would become %s, which is not of the form "
                            "DATABASE.COLLECTION",
                            name, target);
    item->to_database = strndup(target, (size_t)(dot - target));
    item->to_collection = strdup(dot + 1);
    if (!item->to_database || !item->to_collection)
        return sl_error_memory(error, "listing the dump");
    const struct special *to = find_special(item->to_database, item->to_collection);
    return !to || target == name ||
           sl_error_set(error, SL_EXIT_USAGE, "--ns-to: %s would become %s: %s", name, target,
                        to->why ? to->why : "only users and roles are restored there");
}

static bool list_targets(sl_dump *dump, size_t except, sl_error *error) {
    if (!sl_name_index_reset(&dump->targets, dump->count))
        return sl_error_memory(error, "listing the dump");
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        if (i != except && item->to_collection && !item->left_out)
            sl_name_index_add(&dump->targets, sl_name_hash(item->to_database, item->to_collection),
                              i);
    }
    return true;
}

static bool check_unique(sl_dump *dump, size_t index, sl_error *error) {
    const sl_namespace *item = &dump->items[index];
    const uint64_t hash = sl_name_hash(item->to_database, item->to_collection);
    uint64_t at = hash;
    if (sl_name_index_is_full(&dump->targets) && !list_targets(dump, index, error))
        return false;
    for (size_t i; (i = sl_name_index_next(&dump->targets, &at)) != SIZE_MAX;) {
        const sl_namespace *other = &dump->items[i];
        if (i != index && !other->left_out &&
            strcmp(other->to_collection, item->to_collection) == 0 &&
            strcmp(other->to_database, item->to_database) == 0)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s.%s and %s.%s would both become %s.%s: change --ns-from and "
                                "--ns-to, or leave one of them out with --ns-exclude",
                                other->database, other->collection, item->database,
                                item->collection, item->to_database, item->to_collection);
    }
    sl_name_index_add(&dump->targets, hash, index);
    return true;
}

bool sl_namespace_leave_out(const sl_name_options *options, sl_namespace *item, sl_error *error) {
    bson_iter_t iter;
    if (options->no_indexes) {
        bson_reinit(item->indexes);
        item->index_count = 0;
    }
    if (!options->no_options)
        return true;
    bson_t *rest = bson_new();
    bool ok = true;
    for (bool more = bson_iter_init(&iter, item->options); ok && more && bson_iter_next(&iter);)
        ok = !sl_list_has("viewOn|pipeline|timeseries", '|', sl_text_of(bson_iter_key(&iter))) ||
             bson_append_iter(rest, bson_iter_key(&iter), -1, &iter);
    bson_destroy(item->options);
    item->options = rest;
    bson_reinit(item->later);
    item->capped = item->collated = false;
    return ok || sl_error_memory(error, "listing the dump");
}

bool sl_names_apply_to(const sl_name_options *options, sl_dump *dump, size_t index,
                       sl_error *error) {
    sl_namespace *item = &dump->items[index];
    char name[2 * SL_NAME_ROOM], renamed[SL_NAME_ROOM];
    snprintf(name, sizeof name, "%s.%s", item->database, item->collection);
    item->left_out =
        (options->database && strcmp(options->database, item->database) != 0) ||
        (options->collection && strcmp(options->collection, item->collection) != 0) ||
        (options->include_count > 0 && !is_any(options->include, options->include_count, name)) ||
        is_any(options->exclude, options->exclude_count, name);
    const char *target = name;
    bool renamed_if_matched = !sl_kinds[item->kind].merged_by; /* users keep their database */
    for (size_t k = 0; renamed_if_matched && k < options->rename_count && target == name; k++) {
        if (new_name(options->from[k], options->to[k], name, renamed))
            target = renamed;
    }
    return item->left_out ||
           (set_target(item, name, target, error) && check_unique(dump, index, error) &&
            sl_namespace_leave_out(options, item, error));
}

bool sl_names_apply(const sl_name_options *options, sl_dump *dump, sl_error *error) {
    warn_of_unused("--ns-include", options->include, options->include_count, dump);
    warn_of_unused("--ns-exclude", options->exclude, options->exclude_count, dump);
    warn_of_unused("--ns-from", options->from, options->rename_count, dump);
    bool ok = true;
    for (size_t i = 0; ok && i < dump->count; i++)
        ok = sl_names_apply_to(options, dump, i, error);
    return ok;
}

/* ---- options and indexes of a namespace ---- */

/* Metadata of a namespace: Extended JSON with the options of the collection and its indexes.
 *
 * The options are those that listCollections returned. `create` accepts them unchanged, except some
 * that only old servers support. The validator is set after the load, because the dump may contain
 * documents that it would refuse: documents stored before the validator existed, or while it only
 * warned. expireAfterSeconds of clustered and time-series collections is also set after the load:
 * otherwise the server would remove documents before they have been counted. */

#define METADATA_BYTES_MAX ((size_t)64 << 20)

bool sl_dump_head(const char *path, char *head, size_t room, size_t *length, bool *whole,
                  sl_error *error) {
    sl_source_set *set = NULL;
    bool ok = sl_source_set_create(&path, 1, NULL, &set, error) &&
              sl_source_head(set, 0, head, room, length, whole, NULL, error);
    sl_source_set_destroy(set);
    return ok;
}

/* The text is read in pieces of any length. */
static size_t find_end(sl_split *split, sl_text text, size_t least, bool ended) {
    (void)split;
    return text.length >= least ? least : ended ? text.length : 0;
}

bool sl_dump_pieces_open(sl_dump_pieces *pieces, sl_error *error) {
    static const sl_splitter splitter = {.find_end = find_end, .binary = true};
    pieces->bytes = calloc(1, SL_BSON_SLACK);
    if (!pieces->bytes)
        return sl_error_memory(error, "reading a dump");
    sl_source_set_splitter(pieces->set, 0, &splitter, NULL, false);
    return sl_reader_create(pieces->set, &pieces->reader, error);
}

bool sl_dump_pieces_more(sl_dump_pieces *pieces, sl_error *error) {
    sl_source_block block;
    pieces->used -= pieces->at;
    memmove(pieces->bytes, pieces->bytes + pieces->at, pieces->used);
    pieces->at = 0;
    sl_read_result result = sl_reader_next(pieces->reader, &block, error);
    pieces->ended = result != SL_READ_BLOCK;
    if (pieces->ended)
        return result == SL_READ_END;
    const sl_text text = block.text;
    if (pieces->room - pieces->used < text.length) {
        size_t more = 2 * (pieces->used + text.length);
        uint8_t *grown = realloc(pieces->bytes, more + SL_BSON_SLACK);
        if (!grown)
            return sl_error_memory(error, "reading a dump");
        pieces->bytes = grown;
        pieces->room = more;
    }
    memcpy(pieces->bytes + pieces->used, text.bytes, text.length);
    pieces->used += text.length;
    memset(pieces->bytes + pieces->used, 0, SL_BSON_SLACK);
    return true;
}

void sl_dump_pieces_clear(sl_dump_pieces *pieces) {
    sl_reader_destroy(pieces->reader);
    sl_source_set_destroy(pieces->set);
    free(pieces->bytes);
}

bool sl_dump_open_documents(const char *path, sl_source_set **set, sl_reader **reader,
                            sl_error *error) {
    bool lines;
    *reader = NULL;
    if (!sl_source_set_create(&path, 1, NULL, set, error))
        return false;
    sl_source_set_splitter(*set, 0, sl_format_bson.splitter(NULL, &lines), NULL, false);
    return sl_reader_create(*set, reader, error);
}

static bool each_document(const char *path, bool sound, sl_document_visit *each, void *context,
                          sl_error *error) {
    sl_source_set *set = NULL;
    sl_reader *reader = NULL;
    sl_source_block block;
    bool ok = sl_dump_open_documents(path, &set, &reader, error), more = ok;
    while (ok && more) {
        sl_read_result result = sl_reader_next(reader, &block, error);
        ok = result != SL_READ_FAILED;
        more = result == SL_READ_BLOCK;
        for (size_t at = 0; ok && more && at < block.text.length;) {
            sl_bson_facts facts;
            bson_t document;
            const uint8_t *bytes = (const uint8_t *)block.text.bytes + at;
            const bool valid =
                sl_bson_check(bytes, block.text.length - at, &facts) == SL_BSON_VALID &&
                bson_init_static(&document, bytes, facts.length);
            if (sound && !valid)
                break;
            ok = valid ? each(context, &document, &facts, error)
                       : sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %llu: damaged", path,
                                      (unsigned long long)block.offset + at);
            more = !sound || !sl_interrupt_requested();
            at += facts.length;
        }
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    return ok;
}

bool sl_dump_each_document(const char *path, sl_document_visit *each, void *context,
                           sl_error *error) {
    return each_document(path, false, each, context, error);
}

bool sl_dump_each_sound_document(const char *path, sl_document_visit *each, void *context,
                                 sl_error *error) {
    return each_document(path, true, each, context, error);
}

/* ---- options ---- */

#define CONVERSIONS_BYTES_MAX ((size_t)64 << 10) /* later conversions are not described */

/* Describes what is changed for current servers. */
static bool note_conversion(sl_namespace *item, const char *what, const char *name,
                            const char *how) {
    char *joined;
    const char *before = item->conversions ? item->conversions : "";
    if (strnlen(before, CONVERSIONS_BYTES_MAX) == CONVERSIONS_BYTES_MAX)
        return true;
    if (asprintf(&joined, "%s%s%s%s%s", before, before[0] ? "; " : "", what, name, how) < 0)
        return false;
    free(item->conversions);
    item->conversions = joined;
    return true;
}

bool sl_namespace_take_options(sl_namespace *item, const bson_t *options, sl_error *error) {
    /* Options of servers before 4.0, and options that the server sets itself. */
    static const char dropped[] = "autoIndexId|flags|temp|uuid|create";
    static const char later[] = "validator|validationLevel|validationAction|expireAfterSeconds";
    bson_iter_t iter;
    for (bool ok = bson_iter_init(&iter, options); ok && bson_iter_next(&iter);) {
        const char *key = bson_iter_key(&iter);
        if (!sl_option_name_check(key, error))
            return false;
        if (strcmp(key, "autoIndexId") == 0 && !bson_iter_as_bool(&iter) &&
            !note_conversion(item, "option ", key,
                             ": false becomes true; servers since 4.0 need the index of _id"))
            return sl_error_memory(error, "reading metadata");
        if (sl_list_has(dropped, '|', sl_text_of(key)))
            continue;
        bson_t *to = sl_list_has(later, '|', sl_text_of(key)) ? item->later : item->options;
        if (!bson_append_iter(to, key, -1, &iter))
            return sl_error_memory(error, "reading metadata");
        item->capped = item->capped || (strcmp(key, "capped") == 0 && bson_iter_as_bool(&iter));
        item->collated = item->collated || strcmp(key, "collation") == 0;
        if (strcmp(key, "viewOn") == 0)
            item->kind = SL_NAMESPACE_VIEW;
        else if (strcmp(key, "timeseries") == 0)
            item->kind = SL_NAMESPACE_TIME_SERIES;
    }
    return true;
}

/* ---- indexes ---- */

bool sl_index_is_of_id(const bson_t *index) {
    bson_t key;
    return sl_look_flag(index, "clustered") ||
           (sl_look_inside(index, "key", &key) && bson_count_keys(&key) == 1 &&
            sl_look_int64(&key, "_id", 0) == 1);
}

#define INDEX_FIELDS_MAX 100u /* servers allow 32 */

/* Options that servers know. They refuse others, which old servers stored. */
static const char index_options[] =
    "v|key|name|expireAfterSeconds|partialFilterExpression|collation|storageEngine|"
    "weights|default_language|language_override|textIndexVersion|"
    "2dsphereIndexVersion|coarsestIndexedLevel|finestIndexedLevel|bits|min|max|"
    "bucketSize|wildcardProjection|columnstoreProjection|prepareUnique|clustered";

/* May be a number, which servers store as a boolean. */
static const char index_flags[] = "unique|sparse|hidden|background";

/* Is the value of a field of an index's key one that current servers refuse? Old servers treated it
 * as 1. */
static bool is_old_direction(const bson_iter_t *value) {
    char text[BSON_DECIMAL128_STRING];
    bson_decimal128_t decimal;
    if (BSON_ITER_HOLDS_UTF8(value))
        return !*bson_iter_utf8(value, NULL);
    if (bson_iter_decimal128(value, &decimal)) {
        bson_decimal128_to_string(&decimal, text);
        return strtod(text, NULL) == 0;
    }
    bool number = BSON_ITER_HOLDS_NUMBER(value);
    return !number || bson_iter_as_double(value) == 0 || isnan(bson_iter_as_double(value));
}

static bool append_key(bson_t *made, const bson_t *key, bool *converted) {
    bson_t to;
    bson_iter_t iter;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(made, "key", &to);
    for (bool more = ok && bson_iter_init(&iter, key); ok && more && bson_iter_next(&iter);) {
        bool old = is_old_direction(&iter);
        *converted = *converted || old;
        ok = old ? BSON_APPEND_INT32(&to, bson_iter_key(&iter), 1)
                 : bson_append_iter(&to, bson_iter_key(&iter), -1, &iter);
    }
    return ok && bson_append_document_end(made, &to);
}

/* Writes an index of the dump as current servers accept it. `converted`: its key was changed;
 * `removed`: the names of options that they do not know. */
static bool convert_index(const sl_namespace *item, const bson_t *index, bson_t *made,
                          bool *converted, char removed[200]) {
    bson_iter_t iter;
    bson_t key;
    size_t used = 0;
    bool ok = true;
    removed[0] = '\0';
    for (bool more = bson_iter_init(&iter, index); ok && more && bson_iter_next(&iter);) {
        const char *name = bson_iter_key(&iter);
        if (strcmp(name, "key") == 0 && sl_document_at(&iter, &key))
            ok = append_key(made, &key, converted);
        else if (strcmp(name, "v") == 0 && bson_iter_as_int64(&iter) < 2)
            ok = BSON_APPEND_INT32(made, "v", 2);
        else if (sl_list_has(index_flags, '|', sl_text_of(name)))
            ok = BSON_APPEND_BOOL(made, name, bson_iter_as_bool(&iter));
        else if (sl_list_has(index_options, '|', sl_text_of(name)))
            ok = bson_append_iter(made, name, -1, &iter);
        else if (strcmp(name, "ns") != 0) /* the namespace, which servers before 4.4 include */
            used += sl_print_text(removed + used, 200 - used, "%s%s", used ? ", " : "", name);
    }
    /* An index without collation in the dump has the simple collation. `createIndexes` would give
     * it the collation of the collection. */
    if (ok && item->collated && !bson_has_field(index, "collation")) {
        bson_t simple = BSON_INITIALIZER;
        ok = BSON_APPEND_UTF8(&simple, "locale", "simple") &&
             BSON_APPEND_DOCUMENT(made, "collation", &simple);
        bson_destroy(&simple);
    }
    return ok;
}

bool sl_index_has_key(const bson_t *index, const bson_t *key) {
    bson_t own;
    bson_iter_t of_a, of_b;
    bool same = sl_look_inside(index, "key", &own) &&
                bson_count_keys(&own) == bson_count_keys(key) && bson_iter_init(&of_a, &own) &&
                bson_iter_init(&of_b, key);
    while (same && bson_iter_next(&of_a) && bson_iter_next(&of_b))
        same = strcmp(bson_iter_key(&of_a), bson_iter_key(&of_b)) == 0 &&
               BSON_ITER_HOLDS_UTF8(&of_a) == BSON_ITER_HOLDS_UTF8(&of_b) &&
               bson_iter_as_double(&of_a) == bson_iter_as_double(&of_b);
    return same;
}

static bool has_key_of(const sl_namespace *item, const bson_t *index) {
    bson_t key;
    bool found = false, has = sl_look_inside(index, "key", &key);
    for (sl_walk walk = sl_walk_of(item->indexes); has && !found && sl_walk_next(&walk);)
        found = sl_index_has_key(&walk.item, &key);
    return found;
}

/* Adds an index, unless it is in `pass` 0 and its key must be converted, or in pass 1 and not: an
 * index with a converted key is left out if another index has that key. */
static bool append_index(sl_namespace *item, const bson_t *index, int pass, sl_error *error) {
    bson_t made = BSON_INITIALIZER;
    bool converted = false;
    char number[16], removed[200], how[300];
    const char *name = sl_look_string(index, "name");
    bson_t key;
    if ((pass == 0 && item->listed++ == SL_INDEXES_MAX) ||
        (sl_look_inside(index, "key", &key) && bson_count_keys(&key) > INDEX_FIELDS_MAX))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "a collection has more than %u indexes, or an index of more than %u "
                            "fields; the dump of a server has far fewer",
                            SL_INDEXES_MAX, INDEX_FIELDS_MAX);
    bool ok = convert_index(item, index, &made, &converted, removed);
    if (ok && converted == (pass > 0) && !sl_index_is_of_id(&made)) {
        bool twice = converted && has_key_of(item, &made);
        if (converted)
            ok = note_conversion(item, "index ", name,
                                 twice ? ": left out, because another index has its key after the "
                                         "conversion"
                                       : ": values of its key that servers refuse now become 1");
        snprintf(how, sizeof how, ": unknown options left out (%s)", removed);
        if (ok && !twice && removed[0])
            ok = note_conversion(item, "index ", name, how);
        snprintf(number, sizeof number, "%u", item->index_count);
        ok = ok && (twice || BSON_APPEND_DOCUMENT(item->indexes, number, &made));
        item->index_count += ok && !twice;
    }
    bson_destroy(&made);
    return ok || sl_error_memory(error, "reading indexes");
}

bool sl_namespace_add_index(sl_namespace *item, const bson_t *index, sl_error *error) {
    return append_index(item, index, 0, error) && append_index(item, index, 1, error);
}

static bool take_indexes(sl_namespace *item, const bson_iter_t *field, const char *name,
                         sl_error *error) {
    bson_iter_t iter;
    for (int pass = 0; pass < 2; pass++) {
        if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &iter))
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: \"indexes\" is not an array", name);
        while (bson_iter_next(&iter)) {
            bson_t index;
            if (!sl_document_at(&iter, &index))
                return sl_error_set(error, SL_EXIT_SOURCE, "%s: index %s is not an object", name,
                                    bson_iter_key(&iter));
            if (!bson_has_field(&index, "key") || !bson_has_field(&index, "name"))
                return sl_error_set(error, SL_EXIT_SOURCE, "%s: index %s has no key or no name",
                                    name, bson_iter_key(&iter));
            if (!append_index(item, &index, pass, error))
                return sl_error_prefix(error, "%s", name);
        }
    }
    return true;
}

/* ---- the text ---- */

static bool take_fields(sl_namespace *item, const bson_t *document, const char *name,
                        sl_error *error) {
    bson_iter_t iter;
    const char *own_name = sl_look_text(document, "collectionName");
    if (!own_name && bson_has_field(document, "collectionName"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: \"collectionName\" is not a text without NUL bytes", name);
    if (own_name) {
        char *collection = strdup(own_name);
        if (!collection)
            return sl_error_memory(error, "reading metadata");
        free(item->collection);
        item->collection = collection;
    }
    const char *uuid = sl_look_string(document, "uuid"); /* of a view "" */
    if (strlen(uuid) == sizeof item->uuid - 1)
        memcpy(item->uuid, uuid, sizeof item->uuid);
    if (bson_iter_init_find(&iter, document, "options")) {
        bson_t options;
        if (!sl_document_at(&iter, &options))
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: \"options\" is not an object", name);
        if (!sl_namespace_take_options(item, &options, error))
            return sl_error_prefix(error, "%s", name);
    }
    return !bson_iter_init_find(&iter, document, "indexes") ||
           take_indexes(item, &iter, name, error);
}

bool sl_metadata_parse(sl_namespace *item, const char *name, const char *text, size_t length,
                       sl_error *error) {
    const sl_simd *simd;
    sl_extjson *parser = NULL;
    const char *end = text + length, *after;
    while (end > text && strchr(" \t\r\n", end[-1]))
        end--;
    while (text < end && strchr(" \t\r\n", *text))
        text++;
    if (text == end || *text != '{' || end[-1] != '}')
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: metadata must be one JSON object", name);
    size_t room = 2 * (size_t)(end - text) + 4096 + SL_EXTJSON_MARGIN;
    uint8_t *bytes = NULL, *written;
    bool own_id;
    if (!sl_simd_choose(&simd, error) ||
        !sl_extjson_create(sl_simd_name(simd), sl_simd_utf8_valid(simd), &parser, error))
        return false;
    sl_extjson_status status = SL_EXTJSON_NO_ROOM;
    while (status == SL_EXTJSON_NO_ROOM) {
        free(bytes);
        bytes = malloc(room + SL_SLACK);
        if (!bytes)
            break;
        status = sl_extjson_document(parser, text, end, NULL, bytes, bytes + room, &after, &written,
                                     &own_id);
        room *= 2;
    }
    bson_t document;
    bool ok = bytes || sl_error_memory(error, "reading metadata");
    if (ok && status == SL_EXTJSON_INVALID) {
        const sl_extjson_fault *why = sl_extjson_why(parser);
        ok = sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %zu: %s", name, (size_t)(why->at - text),
                          why->reason);
    }
    if (ok && after != end)
        ok = sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %zu: text follows the object", name,
                          (size_t)(after - text));
    ok = ok && bson_init_static(&document, bytes, (size_t)(written - bytes)) &&
         take_fields(item, &document, name, error);
    free(bytes);
    sl_extjson_destroy(parser);
    return ok;
}

/* Reads options and indexes of a namespace from its metadata file, if it has one. */
static bool metadata_read(sl_dump *dump, sl_namespace *item, sl_error *error) {
    size_t length = 0;
    bool whole = false;
    char *text = NULL;
    if (!item->metadata)
        return true;
    for (size_t room = METADATA_BYTES_MAX >> 9; !whole && room <= METADATA_BYTES_MAX; room *= 8) {
        free(text);
        text = malloc(room + SL_SLACK);
        if (!text)
            return sl_error_memory(error, "reading metadata");
        if (!sl_dump_head(item->metadata, text, room, &length, &whole, error)) {
            free(text);
            return false;
        }
    }
    item->metadata_hash = sl_hash_text(text, length);
    bool ok = whole ? sl_metadata_parse(item, item->metadata, text, length, error)
                    : sl_error_set(error, SL_EXIT_SOURCE, "%s: larger than %zu MiB", item->metadata,
                                   METADATA_BYTES_MAX >> 20);
    free(text);
    return ok && sl_dump_keep_metadata(dump, item, error);
}

/* ---- dumps ---- */

#define PATH_ROOM 4096

/* ---- items and notes ---- */

bool sl_dump_keep(sl_dump *dump, size_t bytes, sl_error *error) {
    dump->kept += bytes;
    return dump->kept <= SL_DUMP_KEPT_MAX ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "the dump has more than %zu MiB of names, options, indexes and damage; the "
                        "dump of a server has far less",
                        SL_DUMP_KEPT_MAX >> 20);
}

bool sl_dump_keep_metadata(sl_dump *dump, const sl_namespace *item, sl_error *error) {
    return sl_dump_keep(dump, item->options->len + item->later->len + item->indexes->len, error);
}

bool sl_dump_note_add(sl_dump *dump, const char *what, bool lost, const char *why,
                      sl_error *error) {
    if (!sl_dump_keep(dump, sizeof *dump->notes + strlen(what) + strlen(why), error))
        return false;
    sl_dump_note *notes =
        sl_grow(dump->notes, dump->note_count, &dump->note_room, sizeof *dump->notes);
    if (notes)
        dump->notes = notes;
    sl_dump_note made = {.what = strdup(what), .why = strdup(why), .lost = lost};
    if (!notes || !made.what || !made.why) {
        free(made.what);
        free(made.why);
        return sl_error_memory(error, "listing the dump");
    }
    notes[dump->note_count++] = made;
    return true;
}

static void clear_item(sl_namespace *item) {
    free(item->database);
    free(item->collection);
    free(item->to_database);
    free(item->to_collection);
    free(item->data);
    free(item->metadata);
    free(item->conversions);
    bson_destroy(item->options);
    bson_destroy(item->later);
    bson_destroy(item->indexes);
    if (item->after) {
        clear_item(item->after);
        free(item->after);
    }
}

void sl_dump_clear(sl_dump *dump) {
    for (size_t i = 0; i < dump->count; i++)
        clear_item(&dump->items[i]);
    for (size_t i = 0; i < dump->note_count; i++) {
        free(dump->notes[i].what);
        free(dump->notes[i].why);
    }
    free(dump->items);
    free(dump->notes);
    sl_name_index_clear(&dump->names);
    sl_name_index_clear(&dump->targets);
    if (dump->oplog)
        clear_item(dump->oplog);
    free(dump->oplog);
    *dump = (sl_dump){0};
}

bool sl_dump_add_oplog(sl_dump *dump, const char *path, sl_error *error) {
    if (dump->oplog)
        return sl_error_set(error, SL_EXIT_SOURCE, "the dump has two oplogs: remove %s or %s",
                            dump->oplog->data ? dump->oplog->data : "one of them", path);
    dump->oplog = calloc(1, sizeof *dump->oplog);
    if (dump->oplog && path)
        dump->oplog->data = strdup(path);
    return (dump->oplog && (!path || dump->oplog->data)) ||
           sl_error_memory(error, "listing the dump");
}

/* Removes the items that are marked. */
static void sweep(sl_dump *dump) {
    size_t kept = 0;
    for (size_t i = 0; i < dump->count; i++) {
        if (dump->items[i].removed)
            clear_item(&dump->items[i]);
        else
            dump->items[kept++] = dump->items[i];
    }
    dump->count = kept;
    sl_name_index_clear(&dump->names);
}

/* The same for a time-series collection and the collection of its buckets: a dump may contain
 * the buckets under either name. */
static uint64_t hash_of(const char *database, const char *collection) {
    return sl_name_hash(database, sl_without_buckets(collection));
}

static bool list_names(sl_dump *dump, sl_error *error) {
    if (!sl_name_index_reset(&dump->names, dump->count))
        return sl_error_memory(error, "listing the dump");
    for (size_t i = 0; i < dump->count; i++)
        sl_name_index_add(&dump->names, hash_of(dump->items[i].database, dump->items[i].collection),
                          i);
    return true;
}

static bool is_named(const sl_namespace *item, const char *database, const char *collection) {
    return strcmp(item->collection, collection) == 0 && strcmp(item->database, database) == 0;
}

sl_namespace *sl_dump_find(const sl_dump *dump, const char *database, const char *collection) {
    uint64_t at = hash_of(database, collection);
    sl_namespace *found = NULL;
    for (size_t i = dump->names.room > 0 ? 0 : dump->count; !found && i-- > 0;)
        found = is_named(&dump->items[i], database, collection) ? &dump->items[i] : NULL;
    for (size_t i; (i = sl_name_index_next(&dump->names, &at)) != SIZE_MAX;) {
        if (is_named(&dump->items[i], database, collection) && (!found || &dump->items[i] > found))
            found = &dump->items[i];
    }
    return found;
}

sl_namespace *sl_dump_get(sl_dump *dump, const char *database, const char *collection,
                          sl_error *error) {
    const size_t bytes = sizeof *dump->items + 3 * sizeof(bson_t);
    if (sl_name_index_is_full(&dump->names) && !list_names(dump, error))
        return NULL;
    sl_namespace *found = sl_dump_find(dump, database, collection);
    if (found)
        return found;
    if (!sl_dump_keep(dump, bytes + strlen(database) + strlen(collection), error))
        return NULL;
    sl_namespace *items = sl_grow(dump->items, dump->count, &dump->room, sizeof *dump->items);
    if (!items && !sl_error_memory(error, "listing the dump"))
        return NULL;
    dump->items = items;
    sl_namespace *made = &items[dump->count];
    *made = (sl_namespace){.database = strdup(database),
                           .collection = strdup(collection),
                           .kind = sl_dump_kind(database, collection),
                           .options = bson_new(),
                           .later = bson_new(),
                           .indexes = bson_new()};
    bool ok = made->database && made->collection;
    sl_name_index_add(&dump->names, hash_of(database, collection), dump->count++);
    return ok || sl_error_memory(error, "listing the dump") ? made : NULL;
}

/* ---- files ---- */

/* Removes `end` from the end of the name, if the name ends with it and is longer. */
static bool cut(char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    if (length <= tail || strcmp(name + length - tail, end) != 0)
        return false;
    name[length - tail] = '\0';
    return true;
}

/* Replaces %XX by the byte, in place. */
static void unescape(char *name) {
    char *to = name;
    for (const char *at = name; *at; at++) {
        int high = *at == '%' ? sl_hex_digit(at[1]) : -1,
            low = high >= 0 ? sl_hex_digit(at[2]) : -1;
        if (low >= 0 && high * 16 + low != 0) {
            *to++ = (char)(high * 16 + low);
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

static bool add_file(sl_dump *dump, const sl_name_options *names, const char *database,
                     const char *name, const char *path, uint64_t bytes, sl_error *error) {
    char collection[PATH_ROOM];
    snprintf(collection, sizeof collection, "%s", name);
    bool zipped = cut(collection, ".gz");
    bool data = cut(collection, ".bson");
    bool metadata = !data && cut(collection, ".metadata.json");
    if (!data && !metadata)
        return sl_dump_note_add(dump, path, true, "no .bson and no .metadata.json file", error);
    unescape(collection);
    const char *why = sl_dump_not_restored(names, database, collection);
    if (why)
        return !data || sl_dump_note_add(dump, path, false, why, error);
    if (data && zipped && bytes == 0)
        return sl_dump_note_add(dump, path, true,
                                "an empty file, but the compressed documents of an empty "
                                "collection are not empty: the file is truncated",
                                error);
    sl_namespace *item = sl_dump_get(dump, database, collection, error);
    char **field = item ? data ? &item->data : &item->metadata : NULL;
    if (!item)
        return false;
    if (*field)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s and %s belong to the same collection: remove one of them", *field,
                            path);
    *field = strdup(path);
    if (data)
        item->data_bytes = bytes;
    return *field || sl_error_memory(error, "listing the dump");
}

/* Calls `each` for the visible entries of a folder, in the order of their names. */
typedef struct walk {
    sl_dump *dump;
    const sl_name_options *names;
    char database[PATH_ROOM]; /* "" in the dump's own folder */
    size_t databases;
} walk;

/* Is this the name of a file with documents or metadata? */
static bool is_of_collection(const char *path) {
    char name[PATH_ROOM];
    snprintf(name, sizeof name, "%s", path);
    cut(name, ".gz");
    return cut(name, ".bson") || cut(name, ".metadata.json");
}

/* oplog.bson is in the folder of a dump; a collection of this name has metadata. */
static int is_file_of_collection(const struct dirent *entry) {
    return is_of_collection(entry->d_name) && strcmp(entry->d_name, "oplog.bson") != 0 &&
           strcmp(entry->d_name, "oplog.bson.gz") != 0;
}

/* Does a load or restore keep its files there? */
static bool is_work_directory(const char *folder) {
    static const char *const marks[] = {SL_WORK_LOG, SL_WORK_RESTORE, SL_WORK_JOURNAL};
    bool found[3];
    for (size_t i = 0; i < 3; i++) {
        char path[PATH_ROOM + 20];
        snprintf(path, sizeof path, "%s/%s", folder, marks[i]);
        found[i] = access(path, F_OK) == 0;
    }
    return found[0] && (found[1] || found[2]);
}

/* Is it the folder of one database? */
static bool is_database_folder(const char *folder) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_file_of_collection, alphasort);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count > 0;
}

static bool visit(walk *w, const char *folder, sl_error *error);

static bool visit_entry(walk *w, const char *folder, const char *name, sl_error *error) {
    char path[PATH_ROOM];
    struct stat facts;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: the path is too long", folder);
    if (stat(path, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", path);
    if (strcmp(name, "prelude.json") == 0 || strcmp(name, "prelude.json.gz") == 0)
        return true; /* versions of the server and of mongodump; in the folder of the database if
                        only one was dumped */
    if (w->database[0]) {
        if (S_ISREG(facts.st_mode))
            return add_file(w->dump, w->names, w->database, name, path, (uint64_t)facts.st_size,
                            error);
        return sl_dump_note_add(w->dump, path, true, "no file", error);
    }
    if (S_ISDIR(facts.st_mode)) {
        if (is_work_directory(path))
            return sl_dump_note_add(w->dump, path, false, "the work directory of a load or restore",
                                    error);
        snprintf(w->database, sizeof w->database, "%s", name); /* mongodump does not escape it */
        w->databases++;
        bool ok = visit(w, path, error);
        w->database[0] = '\0';
        return ok;
    }
    if (w->dump->replay_oplog &&
        (strcmp(name, "oplog.bson") == 0 || strcmp(name, "oplog.bson.gz") == 0))
        return sl_dump_add_oplog(w->dump, path, error);
    return sl_dump_note_add(
        w->dump, path, true,
        strncmp(name, "oplog.bson", 10) == 0
            ? "the writes during the dump (mongodump --oplog) are not replayed, so the collections "
              "are not from one point in time; --oplog-replay replays them"
            : "outside the folder of a database",
        error);
}

static bool visit(walk *w, const char *folder, sl_error *error) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", folder);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        if (ok && entries[i]->d_name[0] != '.')
            ok = visit_entry(w, folder, entries[i]->d_name, error);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

/* ---- time-series collections, views, order ---- */

/* Makes buckets that have metadata of their own, but whose time-series collection has none, that
 * collection. Their options and indexes are those of buckets, which the server creates itself. */
static bool name_series(sl_namespace *buckets, sl_error *error) {
    bson_t options = BSON_INITIALIZER;
    bson_iter_t iter;
    const char *series = buckets->collection + strlen(SL_BUCKETS);
    memmove(buckets->collection, series, strlen(series) + 1);
    bool ok = (bson_iter_init_find(&iter, buckets->options, "timeseries") &&
               bson_append_iter(&options, "timeseries", -1, &iter)) ||
              sl_error_memory(error, "listing the dump");
    bson_destroy(buckets->options);
    buckets->options = bson_copy(&options);
    bson_reinit(buckets->later);
    bson_destroy(&options);
    if (buckets->index_count > 0)
        ok = ok && (note_conversion(buckets, "its indexes", "", ", of buckets, left out") ||
                    sl_error_memory(error, "listing the dump"));
    bson_reinit(buckets->indexes);
    buckets->index_count = 0;
    return ok;
}

/* Gives the documents of system.buckets.NAME to the collection NAME. */
static bool join_buckets(sl_dump *dump, sl_error *error) {
    for (size_t i = dump->count; i-- > 0;) {
        sl_namespace *buckets = &dump->items[i];
        const char *series = sl_without_buckets(buckets->collection);
        if (series == buckets->collection || !buckets->data)
            continue;
        size_t count = dump->count;
        sl_namespace *item = sl_dump_get(dump, buckets->database, series, error);
        if (!item)
            return false;
        buckets = &dump->items[i];
        bool known = dump->count == count && item->kind == SL_NAMESPACE_TIME_SERIES && !item->data;
        if (dump->count > count && buckets->kind == SL_NAMESPACE_TIME_SERIES) {
            dump->items[count].removed = true;
            if (!name_series(&dump->items[i], error))
                return false;
            continue;
        }
        if (known) {
            item->data = buckets->data;
            item->data_bytes = buckets->data_bytes;
            buckets->data = NULL;
        } else if (!sl_dump_note_add(dump, buckets->data, true,
                                     "buckets of a time-series collection without metadata in the "
                                     "dump",
                                     error)) {
            return false;
        }
        if (dump->count > count)
            dump->items[count].removed = true;
        dump->items[i].removed = true;
    }
    sweep(dump);
    return true;
}

static bool check_data(sl_dump *dump, sl_error *error) {
    for (size_t i = dump->count; i-- > 0;) {
        sl_namespace *item = &dump->items[i];
        bool view = sl_kinds[item->kind].no_documents;
        if (view && item->data &&
            sl_dump_note_add(dump, item->data, true,
                             "documents of a namespace that is a view according to its metadata",
                             error))
            free(item->data), item->data = NULL;
        if (view || item->data)
            continue;
        if (!sl_dump_note_add(dump, item->metadata, true,
                              "metadata of a collection whose documents are not in the dump",
                              error))
            return false;
        dump->items[i].removed = true;
    }
    sweep(dump);
    return true;
}

static int compare_items(const void *one, const void *other) {
    const sl_namespace *a = one, *b = other;
    int x = sl_restored_alone(a) ? (int)a->kind : 0, y = sl_restored_alone(b) ? (int)b->kind : 0;
    int databases = strcmp(a->database, b->database);
    return x != y ? x - y : databases ? databases : strcmp(a->collection, b->collection);
}

void sl_dump_sort(sl_dump *dump) {
    if (dump->count > 0)
        qsort(dump->items, dump->count, sizeof *dump->items, compare_items);
    sl_name_index_clear(&dump->targets);
    list_names(dump, NULL); /* without memory, names are compared one by one */
}

/* ---- indexes of dumps before 3.0 ---- */

/* Such a dump has no metadata. Its indexes are the documents of the collection system.indexes of
 * each database. */
typedef struct old_indexes {
    sl_dump *dump;
    const char *database;
    int pass;
} old_indexes;

static bool take_old_index(void *context, const bson_t *index, const sl_bson_facts *facts,
                           sl_error *error) {
    (void)facts;
    const old_indexes *old = context;
    const char *name = sl_look_string(index, "ns");
    size_t length = strlen(old->database);
    if (strncmp(name, old->database, length) != 0 || name[length] != '.')
        return true;
    sl_namespace *item = sl_dump_find(old->dump, old->database, name + length + 1);
    return !item || item->metadata ||
           (sl_dump_keep(old->dump, index->len, error) &&
            (append_index(item, index, old->pass, error) || sl_error_prefix(error, "%s", name)));
}

static bool take_old_indexes(sl_dump *dump, sl_error *error) {
    for (size_t i = dump->count; i-- > 0;) {
        const sl_namespace *item = &dump->items[i];
        bool empty = item->data_bytes == 0;
        if (strcmp(item->collection, "system.indexes") != 0)
            continue;
        for (int pass = 0; pass < 2 && item->data && !empty; pass++) {
            old_indexes old = {dump, item->database, pass};
            if (!sl_dump_each_document(item->data, take_old_index, &old, error))
                return false;
        }
        dump->items[i].removed = true;
    }
    sweep(dump);
    return true;
}

/* ---- reading a dump in its place ---- */

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool sl_dump_is_in_place(const char *path, const sl_name_options *names) {
    struct stat facts;
    char head[4];
    uint32_t magic = 0;
    size_t length = 0;
    bool whole;
    sl_error ignored;
    if (stat(path, &facts) != 0 || S_ISDIR(facts.st_mode))
        return is_folder(path);
    if (!S_ISREG(facts.st_mode) || !(names->collection || is_of_collection(path)) ||
        !sl_dump_head(path, head, sizeof head, &length, &whole, &ignored))
        return false;
    memcpy(&magic, head, length);
    return magic != SL_DUMP_ARCHIVE_MAGIC;
}

/* The files of a collection: `path`, and the metadata beside it. */
static bool add_files(sl_dump *dump, const char *path, const sl_name_options *names,
                      sl_error *error) {
    static const char *const ends[] = {".metadata.json", ".metadata.json.gz"};
    char beside[PATH_ROOM], folder[PATH_ROOM], resolved[PATH_ROOM];
    const char *name = strrchr(path, '/');
    struct stat facts;
    snprintf(folder, sizeof folder, "%.*s", name ? (int)(name - path) : 1, name ? path : ".");
    name = name ? name + 1 : path;
    char *parent = realpath(folder[0] ? folder : "/", resolved) ? strrchr(resolved, '/') : NULL;
    const char *database = names->database ? names->database : parent ? parent + 1 : "";
    if (stat(path, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", path);
    if (!add_file(dump, names, database, name, path, (uint64_t)facts.st_size, error))
        return false;
    snprintf(beside, sizeof beside, "%s", sl_without_buckets(name));
    cut(beside, ".gz");
    cut(beside, ".bson");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char metadata[3 * PATH_ROOM], file[PATH_ROOM + 20];
        snprintf(file, sizeof file, "%s%s", beside, ends[i]);
        snprintf(metadata, sizeof metadata, "%s/%s", folder, file);
        if (access(metadata, F_OK) == 0 &&
            !add_file(dump, names, database, file, metadata, 0, error))
            return false;
    }
    return true;
}

/* Gives the only collection of a file the name of --collection. */
static bool name_collection(sl_dump *dump, const sl_name_options *names, sl_error *error) {
    if (!names->collection || dump->count != 1)
        return true;
    free(dump->items[0].collection);
    dump->items[0].collection = strdup(names->collection);
    return dump->items[0].collection || sl_error_memory(error, "listing the dump");
}

static bool add_folder(sl_dump *dump, const char *folder, const sl_name_options *names,
                       sl_error *error) {
    walk w = {.dump = dump, .names = names};
    bool of_database = is_database_folder(folder);
    if (of_database && names->database)
        snprintf(w.database, sizeof w.database, "%s", names->database);
    if (!visit(&w, folder, error))
        return false;
    return !of_database || names->database || w.databases > 0 ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s is the folder of one database: give the name of the database with "
                        "--db, or name the parent folder",
                        folder);
}

bool sl_dump_open_in_place(sl_dump *dump, const char *path, const sl_name_options *names,
                           sl_error *error) {
    char problems[1000] = "";
    size_t used = 0;
    sl_error why;
    bool folder = is_folder(path);
    if (!(folder ? add_folder : add_files)(dump, path, names, error))
        return false;
    for (size_t i = 0; i < dump->count && dump->kept <= SL_DUMP_KEPT_MAX; i++) {
        if (!metadata_read(dump, &dump->items[i], &why))
            used += sl_print_text(problems + used, sizeof problems - used, SL_LINES SL_LINES,
                                  used ? "\n" : "", why.message);
    }
    if (used > 0)
        return sl_error_set(error, SL_EXIT_SOURCE, SL_LINES, problems);
    if (!take_old_indexes(dump, error) || !join_buckets(dump, error) || !check_data(dump, error) ||
        (!folder && !name_collection(dump, names, error)))
        return false;
    sl_dump_sort(dump);
    return sl_names_apply(names, dump, error);
}

bool sl_dump_fits_server(const sl_dump *dump, const sl_server *server, sl_error *error) {
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        bool series = item->kind == SL_NAMESPACE_TIME_SERIES;
        bool clustered = item->options && bson_has_field(item->options, "clusteredIndex");
        unsigned minor = clustered ? 3 : 0;
        if (item->left_out || (!series && !clustered) || sl_server_at_least(server, 5, minor))
            continue;
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s.%s is a %s collection, which needs server 5.%u or later, and this "
                            "is %s; nothing was changed. Leave it out with --ns-exclude, or "
                            "restore into a newer server",
                            item->database, item->collection, series ? "time-series" : "clustered",
                            minor, server->version);
    }
    return true;
}
