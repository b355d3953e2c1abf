/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/grow.h"

#define PATH_ROOM 4096

/* ---- items and notes ---- */

bool sl_dump_note_add(sl_dump *dump, const char *what, bool lost, const char *why,
                      sl_error *error) {
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
    bson_destroy(item->options);
    bson_destroy(item->later);
    bson_destroy(item->indexes);
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
    *dump = (sl_dump){0};
}

static void remove_item(sl_dump *dump, size_t index) {
    clear_item(&dump->items[index]);
    memmove(&dump->items[index], &dump->items[index + 1],
            (dump->count - index - 1) * sizeof *dump->items);
    dump->count--;
}

sl_namespace *sl_dump_find(const sl_dump *dump, const char *database, const char *collection) {
    for (size_t i = dump->count; i-- > 0;) {
        if (strcmp(dump->items[i].collection, collection) == 0 &&
            strcmp(dump->items[i].database, database) == 0)
            return &dump->items[i];
    }
    return NULL;
}

sl_namespace *sl_dump_get(sl_dump *dump, const char *database, const char *collection) {
    sl_namespace *found = sl_dump_find(dump, database, collection);
    if (found)
        return found;
    sl_namespace *items = sl_grow(dump->items, dump->count, &dump->room, sizeof *dump->items);
    if (!items)
        return NULL;
    dump->items = items;
    sl_namespace *made = &items[dump->count];
    *made = (sl_namespace){.database = strdup(database),
                           .collection = strdup(collection),
                           .options = bson_new(),
                           .later = bson_new(),
                           .indexes = bson_new()};
    dump->count++;
    return made->database && made->collection ? made : NULL;
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

const char *sl_dump_not_restored(const char *database, const char *collection) {
    if (strcmp(database, "admin") == 0)
        return "users, roles and settings of a server are not restored";
    if (strcmp(database, "config") == 0)
        return "the metadata of a sharded cluster are not restored; --shard-keys shards "
               "collections";
    if (strcmp(database, "local") == 0)
        return "the server's own database is not restored";
    if (strncmp(collection, "$admin.", 7) == 0)
        return "users and roles are not restored";
    if (strcmp(collection, "system.profile") == 0)
        return "the profiler's records are not restored";
    if (strcmp(database, "shardload") == 0 && strcmp(collection, "balancer") == 0)
        return "the state of the balancer during a load is not restored";
    return NULL;
}

static bool add_file(sl_dump *dump, const char *database, const char *name, const char *path,
                     uint64_t bytes, sl_error *error) {
    char collection[PATH_ROOM];
    snprintf(collection, sizeof collection, "%s", name);
    bool zipped = cut(collection, ".gz");
    bool data = cut(collection, ".bson");
    bool metadata = !data && cut(collection, ".metadata.json");
    if (!data && !metadata)
        return sl_dump_note_add(dump, path, true, "no .bson and no .metadata.json file", error);
    unescape(collection);
    const char *why = sl_dump_not_restored(database, collection);
    if (why)
        return !data || sl_dump_note_add(dump, path, false, why, error);
    if (strcmp(collection, "system.indexes") == 0)
        return sl_dump_note_add(dump, path, true,
                                "indexes of a dump older than 3.0 are not restored", error);
    if (data && zipped && bytes == 0)
        return sl_dump_note_add(dump, path, true,
                                "an empty file, but the compressed documents of an empty "
                                "collection are not empty: the file is truncated",
                                error);
    sl_namespace *item = sl_dump_get(dump, database, collection);
    char **field = item ? data ? &item->data : &item->metadata : NULL;
    if (!item)
        return sl_error_memory(error, "listing the dump");
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
    char database[PATH_ROOM]; /* "" in the dump's own folder */
    size_t databases, files;
} walk;

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
            return add_file(w->dump, w->database, name, path, (uint64_t)facts.st_size, error);
        return sl_dump_note_add(w->dump, path, true, "no file", error);
    }
    if (S_ISDIR(facts.st_mode)) {
        char log[PATH_ROOM + 20];
        snprintf(log, sizeof log, "%s/shardload.log", path);
        if (access(log, F_OK) == 0) /* the work directory of a restore in the dump's folder */
            return true;
        snprintf(w->database, sizeof w->database, "%s", name); /* mongodump does not escape it */
        w->databases++;
        bool ok = visit(w, path, error);
        w->database[0] = '\0';
        return ok;
    }
    w->files += strstr(name, ".bson") != NULL;
    return sl_dump_note_add(
        w->dump, path, true,
        strncmp(name, "oplog.bson", 10) == 0
            ? "the writes during the dump (mongodump --oplog) are not replayed, so the collections "
              "are not from one point in time"
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

/* Gives the documents of system.buckets.NAME to the collection NAME. */
static bool join_buckets(sl_dump *dump, sl_error *error) {
    for (size_t i = dump->count; i-- > 0;) {
        sl_namespace *buckets = &dump->items[i];
        size_t prefix = strlen(SL_BUCKETS);
        if (strncmp(buckets->collection, SL_BUCKETS, prefix) != 0 || !buckets->data)
            continue;
        size_t count = dump->count;
        sl_namespace *item = sl_dump_get(dump, buckets->database, buckets->collection + prefix);
        if (!item)
            return sl_error_memory(error, "listing the dump");
        buckets = &dump->items[i];
        bool known = dump->count == count && item->kind == SL_NAMESPACE_TIME_SERIES && !item->data;
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
            remove_item(dump, count);
        remove_item(dump, i);
    }
    return true;
}

static bool check_data(sl_dump *dump, sl_error *error) {
    for (size_t i = dump->count; i-- > 0;) {
        sl_namespace *item = &dump->items[i];
        bool view = item->kind == SL_NAMESPACE_VIEW;
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
        remove_item(dump, i);
    }
    return true;
}

static int compare_items(const void *one, const void *other) {
    const sl_namespace *a = one, *b = other;
    int views = (a->kind == SL_NAMESPACE_VIEW) - (b->kind == SL_NAMESPACE_VIEW);
    int databases = strcmp(a->database, b->database);
    return views ? views : databases ? databases : strcmp(a->collection, b->collection);
}

void sl_dump_sort(sl_dump *dump) {
    if (dump->count > 0)
        qsort(dump->items, dump->count, sizeof *dump->items, compare_items);
}

bool sl_dump_open_folder(sl_dump *dump, const char *folder, sl_error *error) {
    walk w = {.dump = dump};
    if (!visit(&w, folder, error))
        return false;
    if (w.databases == 0 && w.files > 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s contains .bson files: name its parent folder, with one folder for each database, "
            "and choose with --ns-include 'DATABASE.*'; one file is loaded by `shardload load`",
            folder);
    char problems[1000] = "";
    size_t used = 0;
    sl_error why;
    for (size_t i = 0; i < dump->count; i++) {
        if (!sl_metadata_read(&dump->items[i], &why))
            used += sl_print_text(problems + used, sizeof problems - used, SL_LINES SL_LINES,
                                  used ? "\n" : "", why.message);
    }
    if (used > 0)
        return sl_error_set(error, SL_EXIT_SOURCE, SL_LINES, problems);
    if (!join_buckets(dump, error) || !check_data(dump, error))
        return false;
    sl_dump_sort(dump);
    return true;
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
