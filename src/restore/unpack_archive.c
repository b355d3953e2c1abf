/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of an archive, and the list of its unpacked files, with which a resumed restore
 * finds them. The list is one BSON document, written when all files are complete and synced. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lzma.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "bson/dump_archive.h"
#include "report/run_record.h"
#include "source/source.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#include "oplog.h"

#define LIST "list.bson"

/* ---- namespaces ---- */

/* Adds a namespace of an archive. `metadata`: the text of its metadata, or "". Its documents are
 * those of sl_dump_find_item with the same names. */
static bool dump_add_item(sl_dump *dump, const char *database, const char *collection,
                          const char *metadata, sl_error *error) {
    sl_namespace *item = sl_dump_get(dump, database, collection, error);
    size_t length = strlen(metadata);
    char name[600];
    if (!item || !sl_dump_keep(dump, length, error))
        return false;
    char *text = calloc(1, length + SL_SLACK);
    if (!text)
        return sl_error_memory(error, "listing the dump");
    memcpy(text, metadata, length);
    free(item->metadata);
    item->metadata = text;
    snprintf(name, sizeof name, "metadata of %s.%s", database, collection);
    if (length > 0 && (!sl_metadata_parse(item, name, text, length, error) ||
                       !sl_dump_keep_metadata(dump, item, error)))
        return false;
    const char *series = sl_without_buckets(item->collection);
    if (item->kind == SL_NAMESPACE_TIME_SERIES)
        memmove(item->collection, series, strlen(series) + 1);
    return true;
}

static sl_namespace *dump_find_item(const sl_dump *dump, const char *database,
                                    const char *collection) {
    return database[0]                        ? sl_oplog_namespace(dump, database, collection)
           : strcmp(collection, "oplog") == 0 ? dump->oplog
                                              : NULL;
}

/* ---- the list ---- */

bool sl_dump_write_list(const sl_dump *dump, const char *folder, sl_error *error) {
    bson_t list = BSON_INITIALIZER, array, one;
    char path[600];
    BSON_APPEND_ARRAY_BEGIN(&list, "items", &array);
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        sl_record_begin_item(&array, i, &one);
        BSON_APPEND_UTF8(&one, "db", item->database);
        BSON_APPEND_UTF8(&one, "collection", item->collection);
        BSON_APPEND_UTF8(&one, "metadata", item->metadata ? item->metadata : "");
        if (item->data)
            BSON_APPEND_UTF8(&one, "data", item->data);
        BSON_APPEND_INT64(&one, "bytes", (int64_t)item->data_bytes);
        BSON_APPEND_BOOL(&one, "leftOut", item->left_out);
        BSON_APPEND_BOOL(&one, "damaged", item->damaged);
        bson_append_document_end(&array, &one);
    }
    bson_append_array_end(&list, &array);
    BSON_APPEND_ARRAY_BEGIN(&list, "notes", &array);
    for (size_t i = 0; i < dump->note_count; i++) {
        sl_record_begin_item(&array, i, &one);
        BSON_APPEND_UTF8(&one, "what", dump->notes[i].what);
        BSON_APPEND_UTF8(&one, "why", dump->notes[i].why);
        BSON_APPEND_BOOL(&one, "lost", dump->notes[i].lost);
        bson_append_document_end(&array, &one);
    }
    bool ok = bson_append_array_end(&list, &array) || sl_error_memory(error, "listing the dump");
    if (dump->oplog && dump->oplog->data)
        BSON_APPEND_UTF8(&list, "oplog", dump->oplog->data);
    if (dump->oplog)
        BSON_APPEND_BOOL(&list, "oplogDamaged", dump->oplog->damaged);
    BSON_APPEND_INT64(&list, "crc", (int64_t)dump->crc);
    snprintf(path, sizeof path, "%s/" LIST, folder);
    ok = ok && sl_private_file_replace(path, (const char *)bson_get_data(&list), list.len, error);
    bson_destroy(&list);
    return ok;
}

/* Sets the item's file to that of the name of `path` in `folder`. A list that somebody changed must
 * not lead to another folder: the files are removed after use. */
static bool set_data(sl_namespace *item, const char *folder, const char *path, sl_error *error) {
    const char *name = sl_base_name(path);
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || strcmp(name + digits, ".bson") != 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s/" LIST " is damaged: it has the file %s; start again with another "
                            "--work-dir",
                            folder, path);
    free(item->data);
    if (asprintf(&item->data, "%s/%s", folder, name) >= 0)
        return true;
    item->data = NULL;
    return sl_error_memory(error, "reading the list");
}

static bool take_item(sl_dump *dump, const char *folder, const bson_t *one, sl_error *error) {
    const char *database = sl_look_string(one, "db"),
               *collection = sl_look_string(one, "collection");
    const char *data = sl_look_string(one, "data");
    if (!dump_add_item(dump, database, collection, sl_look_string(one, "metadata"), error))
        return false;
    sl_namespace *item = dump_find_item(dump, database, collection);
    if (!item)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s/" LIST " is damaged: the metadata of %s.%s have another name; "
                            "start again with another --work-dir",
                            folder, database, collection);
    if (data[0] && !set_data(item, folder, data, error))
        return false;
    item->data_bytes = (uint64_t)sl_look_int64(one, "bytes", (int64_t)item->data_bytes);
    item->unpacked = true;
    item->left_out = sl_look_flag(one, "leftOut");
    item->damaged = sl_look_flag(one, "damaged");
    return true;
}

static bool take_note(sl_dump *dump, const char *folder, const bson_t *one, sl_error *error) {
    (void)folder;
    return sl_dump_note_add(dump, sl_look_string(one, "what"), sl_look_flag(one, "lost"),
                            sl_look_string(one, "why"), error);
}

static bool take_array(sl_dump *dump, const char *folder, const bson_t *list, const char *name,
                       bool (*take)(sl_dump *dump, const char *folder, const bson_t *one,
                                    sl_error *error),
                       sl_error *error) {
    bson_iter_t iter, items;
    bool ok = bson_iter_init_find(&iter, list, name) && bson_iter_recurse(&iter, &items);
    if (!ok)
        return sl_error_set(error, SL_EXIT_SOURCE, "the list of unpacked files is damaged");
    while (ok && bson_iter_next(&items)) {
        bson_t one;
        ok = sl_document_at(&items, &one) && take(dump, folder, &one, error);
    }
    return ok;
}

/* A namespace that was left out when the archive was unpacked has no file. */
static bool apply_names(sl_dump *dump, const sl_name_options *names, sl_error *error) {
    bool *left_out = calloc(dump->count + 1, sizeof *left_out);
    if (!left_out)
        return sl_error_memory(error, "listing the dump");
    bool ok = true;
    for (size_t i = 0; ok && i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        left_out[i] = item->left_out;
        ok =
            !sl_dump_not_restored(names, item->database, item->collection) ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "--resume: the list of unpacked files names %s.%s, which is not restored: "
                         "start again with another --work-dir",
                         item->database, item->collection);
    }
    ok = ok && sl_names_apply(names, dump, error);
    for (size_t i = 0; ok && i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        if (left_out[i] && !item->left_out)
            ok = sl_error_set(error, SL_EXIT_USAGE,
                              "--resume: %s.%s was left out when the archive was unpacked: give "
                              "the --ns-include and --ns-exclude of the first run",
                              item->database, item->collection);
    }
    free(left_out);
    return ok;
}

bool sl_dump_read_list(sl_dump *dump, const char *folder, const sl_name_options *names, bool *found,
                       sl_error *error) {
    char path[600];
    snprintf(path, sizeof path, "%s/" LIST, folder);
    sl_text text;
    bson_t list;
    *found = access(path, F_OK) == 0;
    if (!*found)
        return errno == ENOENT || sl_error_errno(error, SL_EXIT_SOURCE, "%s", path);
    if (!sl_private_file_read(path, SL_DUMP_KEPT_MAX, SL_EXIT_SOURCE, &text, error))
        return false;
    bool valid = bson_init_static(&list, (const uint8_t *)text.bytes, text.length) &&
                 sl_document_is_sound(&list);
    const char *oplog = valid ? sl_look_string(&list, "oplog") : "";
    dump->crc = valid ? (uint64_t)sl_look_int64(&list, "crc", 0) : 0; /* 0: of earlier versions */
    bool ok = valid ? take_array(dump, folder, &list, "items", take_item, error) &&
                          take_array(dump, folder, &list, "notes", take_note, error) &&
                          apply_names(dump, names, error) &&
                          (!oplog[0] || (sl_dump_add_oplog(dump, NULL, error) &&
                                         set_data(dump->oplog, folder, oplog, error)))
                    : sl_error_set(error, SL_EXIT_SOURCE,
                                   "%s cannot be read: start again with another --work-dir", path);
    if (ok && dump->oplog)
        dump->oplog->damaged = sl_look_flag(&list, "oplogDamaged");
    free((char *)text.bytes);
    return ok;
}

/* ---- archives ---- */

/* Unpacks an archive: the documents of its collections, which are interleaved, into one file for
 * each collection. Then each collection is loaded as from a folder, with its own journal, and a
 * resumed restore does not read the archive again, which may have been a pipe.
 *
 * Damaged archives: after damage, reading continues at the header of the next block; the documents
 * in between are lost. The following is noted, so that the restore ends with exit code 3: damage
 * with its offset in the uncompressed archive, a collection whose documents do not match their CRC,
 * and a collection without an end. */

#define OUT_BYTES ((size_t)1 << 20)
#define LOG_SECONDS 10.0

typedef struct unpacking {
    sl_dump *dump;
    const char *path, *folder;
    const sl_name_options *names;
    sl_dump_pieces text;
    sl_dump_archive *archive;
    uint64_t offset;    /* of text.bytes in the uncompressed archive */
    bool documents;     /* of the collection that the names have: it is no archive */
    bool listed;        /* the collections are known */
    sl_error unread;    /* why the archive could not be read to its end; code 0: no failure */
    bool searching;     /* for the next block, after damage */
    const char *of;     /* the collection of the last document, as the archive's reader names it */
    sl_namespace *item; /* ... NULL: not restored */
    int out;            /* the file of that item, or -1 */
    uint8_t *written;   /* OUT_BYTES, `waiting` of them not in the file yet */
    size_t waiting, written_files;
    int64_t logged;
} unpacking;

/* ---- reading ---- */

static bool open_source(unpacking *u, sl_error *error) {
    char head[16];
    uint32_t magic = 0;
    size_t length;
    bool whole;
    if (!sl_source_head(u->text.set, 0, head, sizeof head, &length, &whole, NULL, error))
        return false;
    memcpy(&magic, head, length < sizeof magic ? length : sizeof magic);
    char how[2100];
    if (sl_source_holds_dump(u->text.set, 0, how, sizeof how))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: an archive of a dump's folder: unpack it, and restore the folder: "
                            "%s",
                            u->path, how);
    u->documents = u->names->collection && magic != SL_DUMP_ARCHIVE_MAGIC;
    return sl_dump_pieces_open(&u->text, error);
}

/* Reads the next piece. A source that cannot be read to its end is reported as a truncated
 * archive. */
static bool read_more(unpacking *u, sl_error *error) {
    sl_error why = {0};
    const size_t before = u->text.used - u->text.at;
    u->offset += u->text.at;
    if (sl_dump_pieces_more(&u->text, &why)) {
        u->dump->crc = lzma_crc64(u->text.bytes + before, u->text.used - before, u->dump->crc);
        return true;
    }
    if (why.code != SL_EXIT_SOURCE) {
        *error = why;
        return false;
    }
    u->unread = why;
    return sl_dump_note_add(u->dump, u->path, true, why.message, error);
}

/* ---- writing ---- */

static bool flush(unpacking *u, sl_error *error) {
    if (!sl_write_all(u->out, u->written, u->waiting))
        return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_SOURCE),
                            "%s: %s; an archive is unpacked into the work directory, which "
                            "--work-dir names",
                            u->item->data, strerror(errno));
    u->waiting = 0;
    return true;
}

static bool close_file(unpacking *u, sl_error *error) {
    bool ok = u->out < 0 || flush(u, error);
    if (ok && u->out >= 0 && fsync(u->out) != 0)
        ok = sl_error_errno(error, SL_EXIT_SOURCE, "%s", u->item->data);
    if (u->out >= 0)
        close(u->out);
    u->out = -1;
    return ok;
}

/* Makes the collection of a document the current one. */
static bool change_item(unpacking *u, const sl_dump_namespace *of, sl_error *error) {
    char path[600];
    if (!close_file(u, error))
        return false;
    u->of = of->collection;
    u->item = dump_find_item(u->dump, of->database, of->collection);
    if (!u->item || u->item->left_out)
        return true;
    bool begun = u->item->data != NULL;
    if (!begun) {
        snprintf(path, sizeof path, "%s/%06zu.bson", u->folder, u->written_files++);
        sl_private_file_remove(path); /* left by a run that was killed while it unpacked */
        u->item->data = strdup(path);
        u->item->unpacked = true;
        if (!u->item->data)
            return sl_error_memory(error, "unpacking the archive");
    }
    u->out = sl_private_file_open(u->item->data, O_WRONLY | O_APPEND, error);
    return u->out >= 0;
}

static bool put(unpacking *u, const sl_dump_item *found, sl_error *error) {
    if (u->of != found->of->collection && !change_item(u, found->of, error))
        return false;
    if (u->out < 0)
        return true;
    u->item->data_bytes += found->length;
    for (size_t done = 0; done < found->length;) {
        size_t count = found->length - done;
        if (u->waiting == OUT_BYTES && !flush(u, error))
            return false;
        if (count > OUT_BYTES - u->waiting)
            count = OUT_BYTES - u->waiting;
        memcpy(u->written + u->waiting, found->document + done, count);
        u->waiting += count;
        done += count;
    }
    return true;
}

/* ---- the parts of the archive ---- */

static bool add_collection(unpacking *u, const sl_dump_item *found, sl_error *error) {
    const char *database = found->of->database, *collection = found->of->collection;
    const char *why = sl_dump_not_restored(u->names, database, collection);
    char name[600];
    bson_t document;
    snprintf(name, sizeof name, "%s.%s", database, collection);
    if (why)
        return sl_dump_note_add(u->dump, name, false, why, error);
    bool oplog = !database[0] && strcmp(collection, "oplog") == 0;
    if (oplog && u->dump->replay_oplog)
        return sl_dump_add_oplog(u->dump, NULL, error);
    if (!database[0])
        return sl_dump_note_add(u->dump, name, true,
                                oplog ? "the writes during the dump (mongodump --oplog) are not "
                                        "replayed, so the collections are not from one point in "
                                        "time; --oplog-replay replays them"
                                      : "a collection without a database",
                                error);
    if (!bson_init_static(&document, found->document, found->length) ||
        !dump_add_item(u->dump, database, collection, sl_look_string(&document, "metadata"), error))
        return false;
    sl_namespace *item = dump_find_item(u->dump, database, collection);
    if (!u->folder && item)
        item->data_bytes = (uint64_t)sl_look_int64(&document, "size", (int64_t)item->data_bytes);
    return true;
}

/* All collections are known. */
static bool list(unpacking *u, sl_error *error) {
    u->listed = true;
    sl_dump_sort(u->dump);
    return sl_names_apply(u->names, u->dump, error);
}

/* Not all documents of the namespace can be restored. False: they shall not be. */
static bool mark_damaged(const unpacking *u, const sl_dump_namespace *of) {
    sl_namespace *item = dump_find_item(u->dump, of->database, of->collection);
    if (item)
        item->damaged = true;
    return !(item && item->left_out) &&
           !sl_dump_not_restored(u->names, of->database, of->collection);
}

static bool note_damage(unpacking *u, const sl_dump_item *found, const char *why, sl_error *error) {
    char what[1000];
    snprintf(what, sizeof what, "%s, byte %llu of the uncompressed archive%s%s%s%s", u->path,
             (unsigned long long)u->offset + u->text.at, found->of ? ", " : "",
             found->of ? found->of->database : "", found->of ? "." : "",
             found->of ? found->of->collection : "");
    return sl_dump_note_add(u->dump, what, true, why, error);
}

/* Takes the next item. `*more`: there may be another one. */
static bool take(unpacking *u, bool *more, sl_error *error) {
    sl_dump_item found;
    sl_dump_event event = sl_dump_next(u->archive, u->text.bytes + u->text.at,
                                       u->text.used - u->text.at, u->text.ended, &found);
    bool ok = true;
    *more = event != SL_DUMP_END;
    if (!u->listed &&
        (event == SL_DUMP_DOCUMENT || event == SL_DUMP_END || event == SL_DUMP_COMPLETE ||
         event == SL_DUMP_WRONG_CRC) &&
        !list(u, error))
        return false;
    switch (event) {
    case SL_DUMP_MORE:
        return read_more(u, error);
    case SL_DUMP_COLLECTION:
        ok = add_collection(u, &found, error);
        break;
    case SL_DUMP_DOCUMENT:
        ok = !u->folder || put(u, &found, error);
        *more = u->folder != NULL;
        break;
    case SL_DUMP_WRONG_CRC:
        ok = !mark_damaged(u, found.of) ||
             note_damage(u, &found,
                         "the documents of the collection do not match the CRC in the archive: "
                         "some of them were changed or are missing",
                         error);
        break;
    case SL_DUMP_NO_MEMORY:
        return sl_error_memory(error, "reading the archive");
    case SL_DUMP_DAMAGED:
        if (!u->listed) /* without a list no document can be assigned to a collection */
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s, byte %llu: %s" SL_LINES SL_LINES "\na dump is a folder or an "
                                "archive that mongodump wrote; a BSON file of another name "
                                "needs --db and --collection",
                                u->path, (unsigned long long)u->offset + u->text.at, found.why,
                                u->unread.code ? "\n" : "", u->unread.message);
        if (u->text.at >= u->text.used && u->text.ended) { /* the end; note_incomplete has more */
            *more = false;
            return true;
        }
        u->searching = true;
        if (found.of)
            (void)mark_damaged(u, found.of);
        ok = note_damage(u, &found, found.why, error);
        u->text.at++;
        return ok;
    default:
        break;
    }
    u->text.at += found.length;
    return ok;
}

/* Searches for the next block, after damage. */
static bool search(unpacking *u, bool *more, sl_error *error) {
    size_t length;
    bool found = sl_dump_find_block(u->archive, u->text.bytes + u->text.at,
                                    u->text.used - u->text.at, u->text.ended, &length);
    u->text.at += length;
    u->searching = !found;
    *more = found || !u->text.ended;
    return found || u->text.ended || read_more(u, error);
}

/* Does the archive contain the end of the collection's documents? The documents of a time-series
 * collection have another name than its metadata. */
static bool is_complete(const unpacking *u, const sl_dump_namespace *one) {
    char buckets[600];
    snprintf(buckets, sizeof buckets, SL_BUCKETS "%s", one->collection);
    const sl_dump_namespace *of = sl_dump_namespace_of(u->archive, one->database, buckets);
    return one->complete || (one->view && one->documents == 0) || (of && of->complete);
}

/* Documents of a collection that is not in the list at the beginning, or is a view there, have not
 * been unpacked. The oplog already has a note. */
static bool note_unlisted(unpacking *u, const sl_dump_namespace *one, const sl_namespace *item,
                          sl_error *error) {
    char what[600];
    if (one->documents == 0 || !one->database[0] ||
        sl_dump_not_restored(u->names, one->database, one->collection) ||
        (item && (item->left_out || !sl_kinds[item->kind].no_documents)))
        return true;
    snprintf(what, sizeof what, "%s.%s", one->database, one->collection);
    return sl_dump_note_add(u->dump, what, true,
                            item ? "documents of a namespace that is a view according to its "
                                   "metadata"
                                 : "documents of a collection that the archive does not list",
                            error);
}

/* Collections without an end: the archive is truncated, or the end was in a damaged part. */
static bool note_incomplete(unpacking *u, sl_error *error) {
    size_t count;
    const sl_dump_namespace *all = sl_dump_namespaces(u->archive, &count);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        char what[600], why[200];
        const sl_namespace *item = dump_find_item(u->dump, all[i].database, all[i].collection);
        if (!note_unlisted(u, &all[i], item, error))
            return false;
        if (is_complete(u, &all[i]) || !mark_damaged(u, &all[i]))
            continue;
        snprintf(what, sizeof what, "%s.%s", all[i].database, all[i].collection);
        snprintf(why, sizeof why,
                 "the archive lacks the end of this collection: only %llu documents were found",
                 (unsigned long long)all[i].documents);
        ok = sl_dump_note_add(u->dump, what, true, why, error);
    }
    return ok;
}

static void log_progress(unpacking *u) {
    char human[SL_HUMAN_ROOM];
    if (sl_seconds_since(u->logged) < LOG_SECONDS)
        return;
    u->logged = sl_clock_ns();
    sl_log_info("unpacking the archive: %s",
                sl_human_bytes((double)(u->offset + u->text.at), human));
}

/* The stream has the documents of one collection. */
static bool unpack_documents(unpacking *u, sl_error *error) {
    sl_dump_namespace only = {0};
    if (!dump_add_item(u->dump, u->names->database, u->names->collection, "", error) ||
        !list(u, error))
        return false;
    only.database = u->dump->items[0].database;
    only.collection = u->dump->items[0].collection;
    if (!u->folder)
        return true;
    for (; !u->text.ended || u->text.at < u->text.used; log_progress(u)) {
        const sl_dump_item piece = {.of = &only,
                                    .document = u->text.bytes + u->text.at,
                                    .length = u->text.used - u->text.at};
        if (piece.length > 0 && !put(u, &piece, error))
            return false;
        u->text.at = u->text.used;
        if (sl_interrupt_requested() || (!u->text.ended && !read_more(u, error)))
            return false;
    }
    u->dump->items[0].damaged = u->unread.code != SL_EXIT_OK;
    if (u->offset + u->text.at == 0 && !u->dump->skip_other)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s has no documents: has the program that writes them failed? "
                            "Nothing was changed on the server. If %s.%s shall be empty, add "
                            "--skip-other",
                            sl_source_set_at(u->text.set, 0)->shown, only.database,
                            only.collection);
    return close_file(u, error) && sl_source_set_unchanged(u->text.set, error);
}

static bool unpack(unpacking *u, sl_error *error) {
    if (u->documents)
        return unpack_documents(u, error);
    for (bool more = true; more;) {
        if (!(u->searching ? search : take)(u, &more, error))
            return false;
        if (sl_interrupt_requested())
            return false;
        log_progress(u);
    }
    return !u->folder || (close_file(u, error) && note_incomplete(u, error) &&
                          sl_source_set_unchanged(u->text.set, error));
}

static bool on_first_signal(void *context) {
    const unpacking *u = context;
    if (!u->folder) /* nothing has been written */
        return true;
    sl_log_warning("stopping; press Ctrl-C again to stop at once");
    sl_source_set_stop(u->text.set); /* it may wait for a pipe */
    return false;
}

static bool read_all(unpacking *u, sl_error *error) {
    if (!sl_source_set_create_dump(u->path, &u->text.set, error) ||
        !sl_interrupt_listen(on_first_signal, NULL, u, error))
        return false;
    bool ok = open_source(u, error) && unpack(u, error);
    sl_interrupt_stop_listening();
    if (!ok && sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED,
                            "interrupted while the archive was unpacked; nothing was changed on "
                            "the server");
    return ok;
}

bool sl_dump_open_archive(sl_dump *dump, const char *path, const char *folder,
                          const sl_name_options *names, sl_error *error) {
    unpacking u = {.dump = dump,
                   .path = path,
                   .folder = folder,
                   .names = names,
                   .archive = sl_dump_archive_create(),
                   .out = -1,
                   .written = malloc(OUT_BYTES),
                   .logged = sl_clock_ns()};
    bool ok = (u.archive && u.written) || sl_error_memory(error, "reading the archive");
    ok = ok && read_all(&u, error);
    if (u.out >= 0)
        close(u.out);
    sl_dump_pieces_clear(&u.text);
    sl_dump_archive_destroy(u.archive);
    free(u.written);
    return ok;
}

bool sl_dump_same_archive(const sl_dump *dump, const char *path, const char *folder,
                          const sl_name_options *names, sl_error *error) {
    sl_dump now = {.crc = 0};
    unpacking u = {.dump = &now, .path = path, .names = names};
    if (sl_source_is_none(path) || dump->crc == 0)
        return true;
    sl_log_info("comparing %s with what was unpacked of it", path);
    bool ok = sl_source_set_create_dump(path, &u.text.set, error) &&
              sl_interrupt_listen(on_first_signal, NULL, &u, error);
    if (ok) {
        ok = sl_dump_pieces_open(&u.text, error);
        while (ok && !u.text.ended && u.unread.code == SL_EXIT_OK) {
            ok = read_more(&u, error);
            u.text.at = u.text.used;
        }
        sl_interrupt_stop_listening();
    }
    const bool same = now.crc == dump->crc;
    sl_dump_pieces_clear(&u.text);
    sl_dump_clear(&now);
    return ok &&
           (same || sl_error_set(error, SL_EXIT_SOURCE,
                                 "--resume: %s is %s the archive that was unpacked into %s: give "
                                 "that archive, or none (</dev/null), or begin a new restore with "
                                 "another --work-dir and --drop",
                                 path, u.offset == 0 ? "empty, not" : "not", folder));
}
