/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of many tables; see tables.h. */
#include "tables.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "format/notation.h"
#include "job/preview.h"
#include "job/sources.h"
#include "ledger/ledger.h"
#include "ledger/work_directory.h"
#include "report/json.h"
#include "report/lookup.h"
#include "send/rate_limit.h"
#include "source/source.h"
#include "source/sql_dump.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"
#include "util/text_table.h"

#include "load.h"

#define LEFT_OUT_SHOWN 20u
#define FOLDER_ROOM 140u /* of the name of a table's work directory */
#define UNPACKED_MAX ((uint64_t)16 << 40)
#define PATH_ROOM 4096u /* of a text beside which its CREATE TABLE may be */

typedef struct table {
    char *name; /* of the collection */
    char *path;
    char *include; /* the pattern for this table alone; NULL: all of the file */
    char *schema;  /* for a text without names; or of a dump's table */
    char *id_fields;
    bool of_dump;
    sl_sql_map map;      /* of the file when its tables were listed */
    sl_sql_table *owned; /* the tables of a dump */
    bool begun, no_resume, loaded_before;
    sl_exit code;
    uint64_t records, inserted, changed, stored, rejected;
} table;

typedef struct tables {
    const sl_load_config *config;
    table *items;
    size_t count, room;
    char directory[SL_WORK_DIRECTORY_ROOM];
    sl_work_directory_lock lock;
    sl_rate_limit limit; /* of all loads: `shardload status --rate-limit` changes it */
    bool how_logged;     /* a load has logged how it is completed */
    bool single;         /* all tables go to one collection, or not to a cluster */
    bool others;         /* `single`: sources that only the load reads, since they are no dumps */
    size_t left_out;     /* files of folders that have no data of a known format */
    unsigned loaded_before; /* tables that are stored, and were not loaded again */
    _Atomic bool anew;      /* the load has begun in the directory, and resumes no other */
    _Atomic bool stopped, running;
} tables;

/* ---- the list ---- */

/* Adds a table; `name` is copied. NULL with error. With --collection it has no collection. */
static table *add(tables *all, const char *name, const char *path, sl_error *error) {
    for (size_t i = 0; i < all->count && !all->config->collection; i++) {
        if (strcmp(all->items[i].name, name) == 0) {
            sl_error_set(error, SL_EXIT_USAGE,
                         "%s and %s would both become the collection %s: load them separately, or "
                         "give --collection",
                         all->items[i].path, path, name);
            return NULL;
        }
    }
    if (!all->config->collection && strstr(path, ".metadata.json")) {
        sl_error_set(error, SL_EXIT_SOURCE,
                     "%s: this belongs to a dump of mongodump: shardload restore FOLDER restores "
                     "it, with the options and indexes of its collections. To load the file, give "
                     "--collection",
                     path);
        return NULL;
    }
    if (!all->single && (!sl_is_collection_name(name) || sl_is_registry_name(name))) {
        sl_error_set(
            error, SL_EXIT_USAGE,
            "%s: the table %s cannot become a collection of this name: load it separately, "
            "with --include and --collection",
            path, name);
        return NULL;
    }
    table *items = sl_grow(all->items, all->count, &all->room, sizeof *items);
    if (!items) {
        sl_error_memory(error, "listing tables");
        return NULL;
    }
    all->items = items;
    table *item = &items[all->count++];
    *item = (table){.name = strdup(name), .path = strdup(path)};
    if (item->name && item->path)
        return item;
    sl_error_memory(error, "listing tables");
    return NULL;
}

/* A pattern for fnmatch that only this name matches. NULL without memory. */
static char *pattern_of(const char *name) {
    char *pattern = malloc(2 * strlen(name) + 1), *to = pattern;
    for (const char *at = name; pattern && *at; at++) {
        if (strchr("*?[\\", *at))
            *to++ = '\\';
        *to++ = *at;
    }
    if (pattern)
        *to = '\0';
    return pattern;
}

/* Warns if a database may hold other rows than the dump has. */
static void warn_of_rows(const table *item) {
    const sl_sql_rows *rows = &item->map.table->rows;
    char shown[80];
    sl_text_printable(sl_text_of(item->name), shown, sizeof shown);
    if (rows->partial)
        sl_log_warning("%s: the rows of the table %s, from line %llu on, leave out columns, "
                       "whose default values in the database are not loaded",
                       item->path, shown, (unsigned long long)rows->lines + 1);
    if (rows->replaces)
        sl_log_warning("%s: of the rows of the table %s, from line %llu on, a database keeps one "
                       "for each key (REPLACE: the last; IGNORE: the first). All are loaded, and "
                       "with --id-field one of them. If keys repeat, run the statements in a "
                       "database, and export that",
                       item->path, shown, (unsigned long long)rows->lines + 1);
}

static bool wants_primary_key(const sl_load_config *config) {
    const char *id = config->format_options.id_fields;
    return id && strcmp(id, SL_PRIMARY_KEY) == 0;
}

/* Adds the tables of a dump that have rows. */
static bool add_tables(tables *all, sl_sql_dump *dump, const char *path, sl_error *error) {
    sl_reader_times times = {0};
    const size_t first = all->count;
    sl_input *rows;
    size_t empty = 0;
    uint64_t unpacked = 0; /* to reach the rows of each table */
    char text[600];
    for (;;) {
        if (!sl_sql_dump_next(dump, &rows, &times, error) ||
            (rows && !sl_input_peek(rows, 1, &times, error)))
            return false;
        if (!rows)
            break;
        if (sl_input_left(rows) == 0) {
            empty++;
            continue;
        }
        table *item = add(all, sl_sql_dump_name(dump), path, error);
        if (!item)
            return false;
        item->of_dump = true;
        item->map.table = sl_sql_dump_table(dump);
        item->include = pattern_of(item->name);
        item->schema = strdup(sl_sql_dump_schema(dump));
        if (!item->include || !item->schema)
            return sl_error_memory(error, "listing tables");
    }
    const size_t count = all->count - first;
    for (size_t i = first; i < all->count; i++) { /* pg_dump writes the keys last */
        const char *key = all->items[i].map.table->primary_key;
        unpacked += sl_sql_dump_is_packed(dump) ? all->items[i].map.table->rows.begin : 0;
        if (unpacked > UNPACKED_MAX)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: it is compressed, and to load its tables one after the other "
                                "more than %llu TiB are unpacked: unpack the file before, or "
                                "select tables with --include",
                                path, (unsigned long long)(UNPACKED_MAX >> 40));
        if (key && !(all->items[i].id_fields = strdup(key)))
            return sl_error_memory(error, "listing tables");
        warn_of_rows(&all->items[i]);
    }
    if (count > 0)
        all->items[first].owned = sl_sql_dump_take_tables(dump);
    sl_log_info("%s: %s with rows, %zu without; statements passed over: %s", path,
                sl_plural(count, "table"), empty, sl_sql_dump_passed_over(dump, text, sizeof text));
    return true;
}

/* The name of the collection of a file: without folders, and without endings. */
static void name_of_file(const char *path, char *name, size_t room) {
    static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2", ".lz4", ".lz", ".Z"};
    const char *base = sl_base_name(path);
    size_t base_length = strnlen(base, room - 1);
    memcpy(name, base, base_length);
    name[base_length] = '\0';
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        size_t length = strlen(name), end = strlen(packed[i]);
        if (length > end && strcmp(name + length - end, packed[i]) == 0)
            name[length - end] = '\0';
    }
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
}

/* Leaves out a file of a folder that has no data of a known format. */
static bool leave_out(tables *all, sl_error *error) {
    sl_log(all->left_out++ < LEFT_OUT_SHOWN ? SL_LOG_WARNING : SL_LOG_DETAIL,
           "not loaded: " SL_LINES, error->message);
    *error = (sl_error){0};
    return true;
}

/* Does this file of a folder become a table? */
static bool is_table(tables *all, const char *path, bool *left_out, sl_error *error) {
    sl_load_config config = *all->config;
    bool empty;
    config.paths = &path;
    config.path_count = 1;
    config.include = NULL;
    if (sl_source_is_recognised(&config, left_out, &empty, error))
        return true;
    if (*left_out && empty && !all->config->drop) { /* that is no reason to refuse a folder */
        sl_log_warning("%s: empty; nothing to load", path);
        *error = (sl_error){0};
    } else if (*left_out) {
        leave_out(all, error);
    }
    return false;
}

/* mysqldump --tab writes CREATE TABLE into NAME.sql beside NAME.txt. */
static bool add_file(tables *all, const sl_source *source, sl_error *error) {
    const char *path = source->path;
    char name[300], definition[PATH_ROOM + 4];
    const size_t length = strlen(path);
    const sl_sql_table *defined = NULL;
    char *schema = NULL;
    sl_reader_times times = {0};
    sl_stream *stream = NULL;
    sl_input *rows;
    struct stat facts;
    bool not_text, left_out = false, ok = true;
    name_of_file(path, name, sizeof name);
    snprintf(definition, sizeof definition, "%.*ssql", (int)length - 3, path);
    if (!all->config->format_options.schema_text && length > 4 && length < PATH_ROOM &&
        strcmp(path + length - 4, ".txt") == 0 && stat(definition, &facts) == 0 &&
        S_ISREG(facts.st_mode))
        ok = sl_stream_open(definition, definition, NULL, false, &all->stopped, &not_text, &stream,
                            error);
    sl_sql_dump *dump = ok && stream ? sl_stream_dump(stream) : NULL;
    ok = ok && (!dump || sl_sql_dump_next(dump, &rows, &times, error));
    if (ok && dump && !rows)
        schema = sl_sql_dump_tab_schema(dump, &defined);
    ok = ok && (source->named || schema || is_table(all, path, &left_out, error));
    if (ok && schema && stat(path, &facts) == 0 && facts.st_size == 0) {
        const bool drop = all->config->drop;
        sl_log(drop ? SL_LOG_WARNING : SL_LOG_INFO, "%s: the table %s has no rows%s", path,
               defined->name, drop ? "; documents of an earlier load of it stay" : "");
        free(schema);
        sl_stream_close(stream);
        return true;
    }
    table *item = ok ? add(all, schema ? defined->name : name, path, error) : NULL;
    if (item) {
        const char *key = schema ? defined->primary_key : NULL;
        item->schema = schema;
        item->id_fields = key ? strdup(key) : NULL;
    } else {
        free(schema);
    }
    sl_stream_close(stream);
    return item || left_out;
}

/* Copies the dump that a pipe holds into the work directory, unpacked. */
static bool copy_pipe(sl_stream *stream, const char *path, sl_error *error) {
    char part[SL_WORK_DIRECTORY_ROOM + 40];
    snprintf(part, sizeof part, "%s" SL_WORK_PART, path);
    int file = sl_private_file_open(part, O_WRONLY | O_TRUNC, error);
    if (file < 0)
        return false;
    sl_log_info("the dump is copied to %s, because its tables are loaded one after the other",
                path);
    bool ok = sl_sql_dump_copy(sl_stream_dump(stream), file, NULL, part, error);
    ok = ok && (fsync(file) == 0 || sl_error_errno(error, SL_EXIT_USAGE, "%s", path)) &&
         sl_private_file_rename(part, SL_WORK_STDIN, error);
    close(file);
    return ok;
}

/* With --resume: the pipe must have the dump that was copied, or none. */
static bool compare_copy(sl_stream *stream, const char *path, sl_error *error) {
    bool same = true;
    int file = sl_private_file_open(path, O_RDONLY, error); /* whose is it? */
    if (file < 0)
        return false;
    sl_sql_dump *dump = sl_stream_dump(stream);
    bool ok = !dump || sl_sql_dump_copy(dump, file, &same, path, error);
    close(file);
    return ok && (same || sl_error_set(error, SL_EXIT_SOURCE,
                                       "--resume: the pipe has another dump than the first run, "
                                       "which copied its dump to %s: give none (</dev/null) to "
                                       "complete that one, or load this one without --resume, with "
                                       "another --work-dir",
                                       path));
}

/* The offsets of the tables of a dump are those of the file that was opened, as it was then. */
static bool check_listed(const char *path, int file, const sl_source_identity *opened,
                         sl_error *error) {
    const sl_source_identity still = sl_source_identity_of(file), now = sl_source_identity_at(path);
    return (sl_source_same_identity(opened, &still) && sl_source_same_identity(opened, &now)) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s was replaced by another file or changed while its tables were listed; "
                        "do not change sources until the command has ended",
                        path);
}

/* Adds the tables of a source. */
static bool add_source(tables *all, const sl_source *source, sl_error *error) {
    const bool pipe = source->kind == SL_SOURCE_PIPE;
    const bool optional = all->single && !wants_primary_key(all->config);
    char copy[SL_WORK_DIRECTORY_ROOM + 32];
    const char *include = source->named ? all->config->include : NULL;
    sl_stream *stream = NULL;
    bool special = source->kind == SL_SOURCE_NOT_TEXT, not_text = special, ok = true;
    snprintf(copy, sizeof copy, "%s/" SL_WORK_STDIN, all->directory);
    const char *path = source->path;
    if (special)
        sl_error_set(error, SL_EXIT_SOURCE, "%s: a pipe, a device or a link to no file",
                     source->shown);
    const bool opened = !special && !(optional && pipe) &&
                        sl_stream_open(path, source->shown, include, false, &all->stopped,
                                       &not_text, &stream, error);
    sl_sql_dump *dump = opened ? sl_stream_dump(stream) : NULL;
    if (optional && !dump) {
        sl_stream_close(stream);
        *error = (sl_error){0}; /* the load reports it */
        return all->others = true;
    }
    if (!opened)
        return not_text && !source->named && leave_out(all, error);
    const bool copied = pipe && all->directory[0] && access(copy, F_OK) == 0;
    if (pipe && all->directory[0] && (dump || (copied && sl_source_is_none(path)))) {
        ok = (copied ? compare_copy : copy_pipe)(stream, copy, error);
        sl_stream_close(stream);
        stream = NULL;
        path = copy;
        ok = ok &&
             sl_stream_open(copy, copy, include, false, &all->stopped, &not_text, &stream, error);
        dump = ok ? sl_stream_dump(stream) : NULL;
    } else if (pipe) {
        ok = sl_error_set(
            error, SL_EXIT_USAGE,
            copied        ? "%s: --resume needs the dump of the first run, or none (</dev/null); "
                            "this has none: has the program that writes it failed?"
            : all->single ? "%s: --id-field " SL_PRIMARY_KEY " with --collection needs the dump in "
                            "a file: write it to a file, and load that"
                          : "%s: a pipe has no name for a collection: give --collection",
            source->shown);
    }
    if (ok) {
        const size_t first = all->count;
        const sl_source_identity identity = sl_source_identity_of(sl_stream_file(stream));
        ok = (dump ? add_tables(all, dump, path, error) : add_file(all, source, error)) &&
             check_listed(path, sl_stream_file(stream), &identity, error);
        for (size_t i = first; ok && i < all->count; i++) {
            table *item = &all->items[i];
            item->map.identity = identity;
            item->map.files = sl_stream_selects_files(stream) ? include : NULL;
            if (include && !dump && sl_stream_kind(stream) == SL_SOURCE_ARCHIVE)
                ok = (item->include = strdup(include)) || sl_error_memory(error, "listing tables");
        }
    }
    sl_stream_close(stream);
    return ok;
}

static bool check_types(const tables *all, sl_error *error) {
    const sl_format_options *options = &all->config->format_options;
    for (size_t i = 0; (options->declared || !options->infer_types) && i < all->count; i++) {
        if (all->items[i].of_dump)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--types: the columns of a dump have the types of CREATE TABLE; "
                                "for other types export the table as text (docs/from-sql.md)");
    }
    return true;
}

/* Writes the names of all tables, or of those without a primary key. */
static const char *names_of(const tables *all, bool without_key, char list[500]) {
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < all->count; i++) {
        if (!without_key || !all->items[i].id_fields)
            used += sl_print_text(list + used, 500 - used, "%s%s", used ? ", " : "",
                                  all->items[i].name);
    }
    return list;
}

/* With --id-field primary-key, each table needs one. */
static bool check_keys(const tables *all, sl_error *error) {
    char list[500];
    return !wants_primary_key(all->config) || !*names_of(all, true, list) ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--id-field " SL_PRIMARY_KEY ": these tables have no primary key, or none "
                        "is known: %s. Load them separately, with --include, and with the names of "
                        "columns for --id-field, or without it",
                        list);
}

static bool list_tables(tables *all, sl_error *error) {
    const sl_load_config *config = all->config;
    sl_source_set *set = NULL;
    bool ok = sl_source_set_create(config->paths, config->path_count, config->include, &set, error);
    /* The work directory keeps the copy of one pipe. */
    for (size_t i = 0, pipes = 0; ok && i < sl_source_set_count(set); i++) {
        pipes += sl_source_set_at(set, i)->kind == SL_SOURCE_PIPE;
        ok = pipes < 2 || all->single ||
             sl_error_set(error, SL_EXIT_USAGE,
                          "%s: a second pipe: without --collection, one command loads the tables "
                          "of one pipe: load each with a command of its own",
                          sl_source_set_at(set, i)->shown);
    }
    for (size_t i = 0; ok && i < sl_source_set_count(set); i++)
        ok = add_source(all, sl_source_set_at(set, i), error);
    sl_source_set_destroy(set);
    return ok && sl_not_loaded_allowed(config, all->left_out, error) && check_types(all, error) &&
           check_keys(all, error) &&
           (all->count > 0 || all->others ||
            sl_error_set(error, SL_EXIT_SOURCE, "nothing to load: no table with rows%s%s",
                         config->include ? " matches --include " : " was found",
                         config->include ? config->include : ""));
}

/* ---- one collection ---- */

/* With --collection, the tables of dumps become one collection, and must have the same columns. */
static bool check_alike(const tables *all, sl_error *error) {
    char list[500];
    bool alike = true;
    for (size_t i = 0; i < all->count; i++) {
        const table *item = &all->items[i];
        alike = alike && (!item->of_dump || strcmp(item->schema, all->items[0].schema) == 0) &&
                (!wants_primary_key(all->config) ||
                 strcmp(item->id_fields, all->items[0].id_fields) == 0);
    }
    return alike || sl_error_set(error, SL_EXIT_USAGE,
                                 "these tables have different columns%s: %s. Select one with "
                                 "--include, or leave out --collection: then each table becomes a "
                                 "collection of its name",
                                 wants_primary_key(all->config) ? " or primary keys" : "",
                                 names_of(all, false, list));
}

/* ---- the loads ---- */

/* Sets the fields by which documents get their _id. */
static void set_id_fields(const table *item, sl_load_config *config) {
    if (wants_primary_key(config))
        config->format_options.id_fields = item->id_fields;
}

static void take_totals(table *item, const bson_t *record) {
    item->records = (uint64_t)sl_look_int64(record, "accounting.records", 0);
    item->inserted = (uint64_t)sl_look_int64(record, "accounting.inserted", 0);
    item->changed = (uint64_t)sl_look_int64(record, "accounting.changed", 0);
    item->stored = (uint64_t)sl_look_int64(record, "accounting.alreadyStored", 0);
    item->rejected = (uint64_t)sl_look_int64(record, "accounting.rejectedByParser", 0) +
                     (uint64_t)sl_look_int64(record, "accounting.rejectedByServer", 0);
}

/* The work directory of a table: bytes that file names should not have are written as numbers. */
static void folder_of(const tables *all, size_t index, char *out, size_t room) {
    char name[FOLDER_ROOM + 8];
    size_t used = 0;
    for (const char *at = all->items[index].name; *at && used < FOLDER_ROOM - 8; at++) {
        const bool own = used == 0 && sl_source_is_own_file(at); /* of the work directory */
        bool plain = !own && (((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z') || sl_is_digit(*at) ||
                              strchr("_-", *at) != NULL || (*at == '.' && used > 0));
        used += (size_t)snprintf(name + used, sizeof name - used, plain ? "%c" : "%%%02x",
                                 (unsigned char)*at);
        if (used >= FOLDER_ROOM - 8)
            snprintf(name + used, sizeof name - used, "~%zu", index);
    }
    snprintf(out, room, "%s/%s", all->directory, name);
}

/* Removes the journals of the tables of an earlier load: --resume would take its tables for those
 * of this load. Fails if that has not been completed. */
static bool remove_journals(const tables *all, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + NAME_MAX + 32];
    DIR *folder = opendir(all->directory);
    bool ok = true;
    for (int removes = 0; folder && removes < 2; removes++) {
        rewinddir(folder);
        for (const struct dirent *entry; ok && (entry = readdir(folder)) != NULL;) {
            int length = snprintf(path, sizeof path, "%s/%s", all->directory, entry->d_name);
            strcat(path, "/" SL_WORK_JOURNAL);
            if (entry->d_name[0] == '.' || access(path, F_OK) != 0)
                continue;
            if (removes)
                sl_private_file_remove(path);
            if (removes && access(path, F_OK) == 0)
                ok = sl_error_set(error, SL_EXIT_RESOURCES, "cannot remove %s", path);
            path[length] = '\0';
            ok = ok && (removes || sl_resume_may_begin(path, false, error));
        }
    }
    if (folder)
        closedir(folder);
    return ok;
}

static void remove_copy(const tables *all) {
    static const char *const names[] = {SL_WORK_STDIN, SL_WORK_STDIN SL_WORK_PART};
    char path[SL_WORK_DIRECTORY_ROOM + 40];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", all->directory, names[i]);
        sl_private_file_remove(path);
    }
}

/* Begins a new load in the work directory, or compares the options of the load to complete: tables
 * that have not been begun would be loaded with others. (Earlier versions kept no options.) */
static bool begin_or_resume(tables *all, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    if (all->config->resume) {
        snprintf(path, sizeof path, "%s/" SL_WORK_OPTIONS, all->directory);
        return access(path, F_OK) != 0 ||
               sl_resume_check_options(all->directory, all->config, error);
    }
    snprintf(path, sizeof path, "%s/" SL_WORK_RESTORE, all->directory);
    if (access(path, F_OK) == 0)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s is the work directory of a restore: name another --work-dir",
                            all->directory);
    if (!remove_journals(all, error))
        return false;
    remove_copy(all); /* of another dump */
    atomic_store(&all->anew, true);
    return sl_resume_write_options(all->directory, all->config, error);
}

/* A table that an earlier run has begun, and that the sources lack now, would stay incomplete: its
 * journal is never read. (That of a table which they have shows other changes.) */
static bool check_begun(const tables *all, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + NAME_MAX + 32];
    size_t listed = 0, begun = 0;
    for (size_t i = 0; i < all->count; i++) {
        folder_of(all, i, path, sizeof path - 16);
        listed += access(strcat(path, "/" SL_WORK_JOURNAL), F_OK) == 0;
    }
    DIR *folder = opendir(all->directory);
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s/" SL_WORK_JOURNAL, all->directory, entry->d_name);
        begun += entry->d_name[0] != '.' && access(path, F_OK) == 0;
    }
    if (folder)
        closedir(folder);
    return begun <= listed ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "--resume: %zu of the %zu tables whose load began in %s are not in the "
                        "sources now: give the same sources and --include, or load these again, "
                        "with another --work-dir and --drop",
                        begun - listed, begun, all->directory);
}

/* A dump that is replaced between two tables would give tables of different times. (Another file is
 * opened by the load of its only table.) */
static bool check_unchanged(const table *item, sl_error *error) {
    sl_source_identity now = sl_source_identity_at(item->path);
    return !item->of_dump || sl_source_same_identity(&item->map.identity, &now) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s was replaced or changed before the table %s was loaded: load the file "
                        "again, with another --work-dir and --drop",
                        item->path, item->name);
}

/* The configuration of a table's load. */
static sl_load_config config_of(const tables *all, const table *item) {
    sl_load_config config = *all->config;
    set_id_fields(item, &config);
    config.paths = (const char *const *)&item->path;
    config.path_count = 1;
    config.include = item->include;
    config.map = &item->map;
    config.collection = item->name;
    if (item->schema && !item->of_dump) {
        config.format_options.schema_text = item->schema;
        config.format_options.schema_name = SL_CREATE_TABLE;
        if (!config.format_options.notation)
            config.format_options.notation = sl_notation_named("mysql");
    }
    return config;
}

/* With --drop: a load that would be refused is found before any collection is dropped. */
static bool check_refusals(const tables *all, sl_error *error) {
    const bool drops = all->config->drop && !all->config->resume && all->count > 1;
    const sl_log_level shown = sl_log_set_level(SL_LOG_ERROR); /* the loads log it again */
    bool ok = true;
    for (size_t i = 0; drops && ok && i < all->count && !sl_interrupt_requested(); i++) {
        const sl_load_config config = config_of(all, &all->items[i]);
        sl_preview *preview;
        ok = sl_preview_create(&config, 1, 0, &preview, error);
        if (ok && preview->refusal.code) {
            *error = preview->refusal;
            ok = false;
        }
        sl_preview_destroy(preview);
    }
    sl_log_set_level(shown);
    return ok;
}

/* With --drop: warns of documents of tables of which the dump has no rows. They may be those of an
 * earlier dump, or the dump was made without these rows. */
static bool warn_of_tables_without_rows(const tables *all, sl_error *error) {
    const sl_load_config *config = all->config;
    sl_connection *connection = NULL;
    bool ok = true, empty = true;
    for (size_t i = 0; config->drop && i < all->count; i++) {
        for (const sl_sql_table *one = all->items[i].owned; ok && one; one = one->next) {
            const sl_target target = {.database = config->database, .collection = one->name};
            size_t k = 0;
            while (k < all->count && strcmp(all->items[k].name, one->name) != 0)
                k++;
            if (k < all->count || (config->include && fnmatch(config->include, one->name, 0) != 0))
                continue;
            if (!connection)
                connection = sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 1, error);
            ok = connection && sl_collection_is_empty(connection, &target, &empty, error);
            if (ok && !empty)
                sl_log_warning(
                    "the dump has no rows of the table %s: the documents of %s.%s stay. "
                    "If they are those of an earlier dump, remove them: mongosh %s.drop()",
                    one->name, target.database, one->name,
                    sl_mongosh_collection(target.database, one->name));
        }
    }
    if (connection)
        sl_connection_close(connection);
    return ok;
}

static sl_exit run_one(tables *all, size_t index, sl_table_run *run, void *context) {
    table *item = &all->items[index];
    sl_load_config config = config_of(all, item);
    sl_error error = {0};
    bson_t record = BSON_INITIALIZER, *earlier = NULL;
    char folder[SL_WORK_DIRECTORY_ROOM + FOLDER_ROOM + 16] = "", file[sizeof folder + 16];
    if (!check_unchanged(item, &error)) {
        sl_log_error(SL_LINES, error.message);
        item->no_resume = true;
        return error.code;
    }
    if (all->directory[0]) {
        folder_of(all, index, folder, sizeof folder);
        snprintf(file, sizeof file, "%s/" SL_WORK_JOURNAL, folder);
        config.work_directory = folder;
        config.resume = config.resume_or_begin = all->config->resume && access(file, F_OK) == 0;
        config.resumed_in = all->directory;
    }
    config.run_record = &record;
    config.shared_limit = &all->limit;
    config.no_resume = &item->no_resume;
    config.how_logged = &all->how_logged;
    config.loaded_before = &all->loaded_before;
    const unsigned before = all->loaded_before;
    sl_exit code = run(&config, context);
    if (!sl_exit_is_complete(code) && !check_unchanged(item, &error))
        item->no_resume = true; /* nor its other tables */
    item->loaded_before = all->loaded_before > before;
    snprintf(file, sizeof file, "%s/" SL_WORK_RECORD, folder);
    if (!bson_empty(&record)) {
        take_totals(item, &record);
    } else if (config.resume && sl_json_read_private(file, &earlier, NULL)) {
        take_totals(item, earlier); /* completed by an earlier run */
        bson_destroy(earlier);
    }
    bson_destroy(&record);
    return code;
}

/* The more severe code. */
static sl_exit worse(sl_exit a, sl_exit b) {
    static const sl_exit order[] = {SL_EXIT_OK,      SL_EXIT_REJECTS,    SL_EXIT_VERIFICATION,
                                    SL_EXIT_SOURCE,  SL_EXIT_USAGE,      SL_EXIT_RESOURCES,
                                    SL_EXIT_CLUSTER, SL_EXIT_INTERRUPTED};
#define ONE(...) +1
    _Static_assert(sizeof order / sizeof order[0] == SL_EXITS(ONE), "each code has its place");
#undef ONE
    sl_exit worst = SL_EXIT_OK;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        worst = a == order[i] || b == order[i] ? order[i] : worst;
    return worst;
}

static void log_outcomes(const tables *all) {
    const sl_mode_row *mode = sl_load_mode(all->config);
    const char *titles[] = {"records", mode->inserted, mode->changed, mode->already_stored,
                            "rejected"};
    const size_t count = sizeof titles / sizeof titles[0];
    sl_text_table *shown = sl_text_table_create(NULL);
    sl_text_table_column(shown, &(sl_text_column){"collection", .left = true});
    for (size_t k = 0; k < count; k++) {
        if (titles[k])
            sl_text_table_column(shown, &(sl_text_column){titles[k], .least = 12});
    }
    sl_text_table_column(shown, &(sl_text_column){"", .left = true});
    sl_text_table_limit(shown, SL_TEXT_UNLIMITED);
    for (size_t i = 0; i < all->count; i++) {
        const table *item = &all->items[i];
        sl_text_table_cell(shown, "%s", item->name);
        const uint64_t numbers[] = {item->records, item->inserted, item->changed, item->stored,
                                    item->rejected};
        for (size_t k = 0; k < count; k++) {
            if (titles[k])
                sl_text_table_number(shown, (double)numbers[k]);
        }
        sl_text_table_cell(shown, "%s",
                           !item->begun                      ? "not begun"
                           : item->loaded_before             ? "loaded before"
                           : sl_exit_is_complete(item->code) ? ""
                                                             : "incomplete");
    }
    sl_text_table_log(shown);
}

static sl_exit run_all(tables *all, bool loads, sl_table_run *run, void *context) {
    sl_exit code = SL_EXIT_OK;
    for (size_t i = 0; i < all->count; i++) {
        if (sl_interrupt_requested())
            code = SL_EXIT_INTERRUPTED;
        if (code == SL_EXIT_INTERRUPTED || code == SL_EXIT_CLUSTER || code == SL_EXIT_RESOURCES)
            break;
        table *item = &all->items[i];
        item->begun = true;
        sl_log_info("%zu of %zu: %s", i + 1, all->count, item->name);
        item->code = run_one(all, i, run, context);
        code = worse(code, item->code);
    }
    if (!loads)
        return code;
    log_outcomes(all);
    if (all->loaded_before > 1)
        sl_log_error("%u of %zu tables have been loaded before; the message of the first one says "
                     "how to load them again",
                     all->loaded_before, all->count);
    bool resume = false;
    for (size_t i = 0; i < all->count; i++)
        resume = resume || (!sl_exit_is_complete(all->items[i].code) && !all->items[i].no_resume) ||
                 !all->items[i].begun;
    if (sl_exit_is_complete(code) || !all->directory[0])
        return code;
    if (!resume) {
        sl_log_warning("--resume cannot complete this load: give the command with the changes that "
                       "the messages name%s",
                       all->config->work_directory ? ", and with another --work-dir" : "");
        sl_work_directory_abandon(all->directory, &all->lock); /* unless it has tables */
    } else if (!all->how_logged) {
        sl_log_how_to_resume(all->directory);
    }
    return code;
}

static void clear(tables *all) {
    for (size_t i = 0; i < all->count; i++) {
        table *item = &all->items[i];
        free(item->name);
        free(item->path);
        free(item->include);
        sl_sql_tables_destroy(item->owned);
        free(item->schema);
        free(item->id_fields);
    }
    free(all->items);
    sl_rate_limit_clear(&all->limit);
    sl_work_directory_release(&all->lock);
}

/* Removes what a load leaves that has not begun. */
static void abandon(tables *all) {
    if (atomic_load(&all->anew))
        remove_copy(all);
    sl_work_directory_abandon(all->directory, &all->lock);
}

/* While the list is made, the process may end at once. */
static bool on_first_request(void *context) {
    tables *all = context;
    atomic_store(&all->stopped, true);
    if (atomic_load(&all->running))
        return false;
    sl_log_error("interrupted before anything was loaded or compared");
    abandon(all);
    return true;
}

static bool is_dump(const char *path, const char *include) {
    sl_stream *stream = NULL;
    bool not_text;
    _Atomic bool stopped = false;
    sl_error unused = {0};
    const bool dump =
        strcmp(path, "-") != 0 && sl_source_identity_at(path).inode != 0 &&
        sl_stream_open(path, "", include, false, &stopped, &not_text, &stream, &unused) &&
        sl_stream_dump(stream);
    sl_stream_close(stream);
    return dump;
}

bool sl_tables_in_dump(const sl_load_config *config) {
    return config->path_count == 1 && is_dump(config->paths[0], config->include);
}

bool sl_tables_are_many(const sl_load_config *config) {
    const bool primary = wants_primary_key(config);
    if (config->sink != SL_SINK_CLUSTER || config->path_count == 0)
        return primary;
    bool many = !config->collection || primary;
    struct stat facts;
    for (size_t i = 0; !many && i < config->path_count; i++) /* a folder may have dumps */
        many = (stat(config->paths[i], &facts) == 0 && S_ISDIR(facts.st_mode)) ||
               is_dump(config->paths[i], config->include);
    return many;
}

/* With --collection, one load of the given sources follows. */
static sl_exit run_single(tables *all, sl_table_run *run, void *context, sl_error *error) {
    sl_load_config config = *all->config;
    if (!check_alike(all, error))
        return error->code;
    if (all->count > 0)
        set_id_fields(&all->items[0], &config);
    return run(&config, context);
}

sl_exit sl_tables_run(const sl_load_config *config, bool loads, sl_table_run *run, void *context) {
    const bool single = config->collection || config->sink != SL_SINK_CLUSTER;
    tables all = {.config = config, .single = single};
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_rate_limit_init(&all.limit, config->rate_limit);
    bool listening = sl_interrupt_listen(on_first_request, NULL, &all, &error);
    bool ok = listening;
    if (ok && !single && (config->report || config->html || config->metrics))
        ok = sl_error_set(&error, SL_EXIT_USAGE,
                          "--report, --html and --metrics-file are for one collection: without "
                          "--collection each table has its %s in the work directory",
                          loads ? SL_WORK_RECORD : SL_WORK_VERIFY);
    ok = ok && (!loads || single ||
                sl_work_directory_make(config, config->database, all.directory, &all.lock, &error));
    ok = ok && (!all.directory[0] || begin_or_resume(&all, &error)) && list_tables(&all, &error) &&
         (!config->resume || !all.directory[0] || check_begun(&all, &error)) &&
         (loads || single || !config->work_directory ||
          sl_work_directory_make(config, NULL, all.directory, &all.lock, &error)) &&
         (!loads || single ||
          (check_refusals(&all, &error) && warn_of_tables_without_rows(&all, &error)));
    atomic_store(&all.running, true);
    if (ok)
        code = single ? run_single(&all, run, context, &error) : run_all(&all, loads, run, context);
    if (error.code) {
        sl_log_error(SL_LINES, error.message);
        abandon(&all);
        code = error.code;
    }
    if (listening)
        sl_interrupt_stop_listening();
    clear(&all);
    return code;
}
