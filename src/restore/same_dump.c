/* SPDX-License-Identifier: Apache-2.0 */
/* Is the dump of a resumed restore the dump with which the restore began? Otherwise the collections
 * on the server would be those of two dumps, or some would be missing.
 *
 * Before anything is changed on the server, the work directory gets a list: one BSON document,
 *
 *   {hash: of the entries of the oplog that is replayed,
 *    namespaces: [{db, collection, leftOut, data: {path, identity, ends}, metadata: {path, hash}}]}
 *
 * For an archive, the list has only the hash: it is not read again once it has been unpacked.
 *
 * `identity` is that of the journal of a load; `ends` is a hash of the first and last 64 KiB, or
 * of all of a file that is restored at once, without a journal;
 * `hash` is one of the whole text. As in a resumed load, a data file must have the same size,
 * modification time and ends. If it has another inode or ctime, it has been copied: what has been
 * loaded of it is read again and compared with the journal of its load. */
#include "restoring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "report/lookup.h"
#include "report/run_record.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/read_file.h"

#define END_BYTES ((size_t)64 << 10)

/* Marks of the namespaces of the dump. */
enum { LISTED = 1, COPIED = 2 };

/* ---- files ---- */

/* A hash of the first and last bytes of a file, or of all; 0: not readable. The restore of its
 * collection then reports why. */
static int64_t hash_of_ends(const char *path, uint64_t size) {
    const size_t most = size > SL_AT_ONCE_BYTES ? END_BYTES : SL_AT_ONCE_BYTES;
    char *bytes = malloc(most);
    int file = bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    size_t length = size < most ? (size_t)size : most;
    uint64_t hash = size;
    for (int end = 0; end < 2; end++) {
        off_t at = end == 0 ? 0 : (off_t)(size - length);
        bool read = file >= 0 && pread(file, bytes, length, at) == (ssize_t)length;
        hash = read && hash != 0 ? sl_hash_mix(hash ^ SL_HASH_A, sl_hash_text(bytes, length)) : 0;
    }
    if (file >= 0)
        close(file);
    free(bytes);
    return (int64_t)hash;
}

/* The path of a file in the folder of the dump; its name, if the dump is one file. */
static const char *inside(const sl_restore *restore, const char *path) {
    size_t length = strlen(restore->config->dump);
    if (strncmp(path, restore->config->dump, length) == 0 && path[length] == '/')
        return path + length + 1;
    return sl_base_name(path);
}

bool sl_restore_same_file(const char *path, const sl_source_identity *was, sl_error *error) {
    static const sl_source_identity none;
    if (sl_source_same_identity(was, &none))
        return true;
    sl_source_identity now = sl_source_identity_at(path);
    if (sl_source_same_identity(was, &now))
        return true;
    now.changed_ns = was->changed_ns;
    if (sl_source_same_identity(was, &now))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: its permissions, owner or links were changed after the restore "
                            "began, or its content, with its time set back. --resume compares the "
                            "file and restores the collection",
                            path);
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s: was replaced or changed after the restore began; do not change a dump "
                 "until its restore has ended. Give the unchanged dump to a new restore, "
                 "with another --work-dir and --drop",
                 path);
    error->no_resume = true;
    return false;
}

/* ---- writing ---- */

static void append_namespace(const sl_restore *restore, sl_namespace *item, bson_t *one) {
    bson_t file;
    BSON_APPEND_UTF8(one, "db", item->database);
    BSON_APPEND_UTF8(one, "collection", item->collection);
    if (item->left_out)
        return;
    if (item->data) {
        item->identity = sl_source_identity_at(item->data);
        BSON_APPEND_DOCUMENT_BEGIN(one, "data", &file);
        BSON_APPEND_UTF8(&file, "path", inside(restore, item->data));
        BSON_APPEND_INT64(&file, "ends", hash_of_ends(item->data, item->identity.size));
        sl_resume_append_identity(&file, &item->identity);
        bson_append_document_end(one, &file);
    }
    if (item->metadata) {
        BSON_APPEND_DOCUMENT_BEGIN(one, "metadata", &file);
        BSON_APPEND_UTF8(&file, "path", inside(restore, item->metadata));
        BSON_APPEND_INT64(&file, "hash", (int64_t)item->metadata_hash);
        bson_append_document_end(one, &file);
    }
}

bool sl_restore_write_list(sl_restore *restore, sl_error *error) {
    bson_t list = BSON_INITIALIZER, array, one;
    char path[600];
    BSON_APPEND_INT64(&list, "hash", (int64_t)restore->oplog_totals.hash);
    const bool folder = sl_restore_is_in_place(restore);
    if (folder)
        BSON_APPEND_ARRAY_BEGIN(&list, "namespaces", &array);
    for (size_t i = 0; folder && i < restore->dump.count; i++) {
        sl_record_begin_item(&array, i, &one);
        append_namespace(restore, &restore->dump.items[i], &one);
        bson_append_document_end(&array, &one);
    }
    bool ok = (!folder || bson_append_array_end(&list, &array) ||
               sl_error_memory(error, "listing the dump")) &&
              sl_private_file_replace(sl_restore_file(restore->directory, SL_WORK_DUMP_FILES, path),
                                      (const char *)bson_get_data(&list), list.len, error);
    bson_destroy(&list);
    return ok;
}

/* ---- the text of copied files ---- */

/* The blocks of a file do not depend on the threads that read it, so each block must be that of
 * the journal: the same position, length and hash. Blocks that have not been loaded are not
 * compared. */

/* Blocks are read in their order. Reading ends after the last one of the journal. */
static bool compare_blocks(const sl_journal_entry *entries, size_t count, sl_reader *reader,
                           bool *same, uint64_t *where, sl_error *error) {
    size_t at = 0;
    while (at < count && *same) {
        const sl_journal_entry *entry = &entries[at];
        sl_source_block block;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED,
                                "interrupted while the dump was compared");
        sl_read_result result = sl_reader_next(reader, &block, error);
        if (result == SL_READ_FAILED)
            return false;
        *where = result == SL_READ_BLOCK ? block.offset : entry->offset;
        if (result == SL_READ_BLOCK && block.sequence < entry->sequence)
            continue;
        *same = result == SL_READ_BLOCK && block.sequence == entry->sequence &&
                block.offset == entry->offset && block.text.length == entry->text_bytes &&
                sl_resume_check(&block) == entry->check;
        while (at < count && entries[at].sequence == entry->sequence)
            at++;
    }
    return true;
}

/* Reads the data file of a namespace again, and compares it with the journal of its load. `folder`:
 * that of the namespace. `*where`: the byte of the first block that differs. */
static bool same_text(const char *folder, const sl_namespace *item, bool *same, uint64_t *where,
                      sl_error *error) {
    char path[600];
    sl_journal_entry *entries = NULL;
    size_t count = 0;
    sl_source_set *set = NULL;
    sl_reader *reader = NULL;
    *where = 0;
    snprintf(path, sizeof path, "%s/" SL_WORK_RESTORED, folder);
    *same = item->data_bytes <= SL_AT_ONCE_BYTES || access(path, F_OK) != 0;
    snprintf(path, sizeof path, "%s/" SL_WORK_JOURNAL, folder);
    if (access(path, F_OK) != 0)
        return true;
    *same = true;
    bool ok = sl_resume_entries(folder, &entries, &count, error) &&
              sl_dump_open_documents(item->data, &set, &reader, error) &&
              compare_blocks(entries, count, reader, same, where, error);
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    free(entries);
    return ok;
}

/* ---- comparing ---- */

static bool refuse(const sl_restore *restore, const char *file, const char *how, sl_error *error) {
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "--resume: %.300s/%.300s %s. So this dump is not that of the interrupted "
                        "restore in %.300s, and nothing has been changed: give it the same dump "
                        "again, or begin a new restore with another --work-dir and --drop",
                        restore->config->dump, file, how, restore->directory);
}

/* Compares what is known without reading the file. `was`: what the list says of it. */
static bool same_data(const sl_restore *restore, sl_namespace *item, const bson_t *was,
                      unsigned char *mark, sl_error *error) {
    char how[400], before_shown[SL_FILE_TIME_ROOM], now_shown[SL_FILE_TIME_ROOM];
    sl_source_identity before = sl_resume_identity_in(was);
    sl_source_identity now = item->identity = sl_source_identity_at(item->data);
    const char *file = inside(restore, item->data), *path = sl_look_text(was, "path");
    if (!path || strcmp(file, path) != 0)
        return refuse(restore, path ? path : file, "is missing or was replaced", error);
    if (now.size != before.size) {
        snprintf(how, sizeof how, "has %llu bytes, but had %llu when the restore began",
                 (unsigned long long)now.size, (unsigned long long)before.size);
        return refuse(restore, file, how, error);
    }
    int64_t was_ends = sl_look_int64(was, "ends", 0), ends = hash_of_ends(item->data, now.size);
    if (was_ends != 0 && ends != 0 && was_ends != ends)
        return refuse(restore, file,
                      "has the same size as when the restore began, but other content", error);
    if (now.modified_ns != before.modified_ns) {
        sl_file_time_shown(before.modified_ns, before_shown);
        snprintf(how, sizeof how,
                 "was modified at %s, but was of %s when the restore began (if you know that its "
                 "content is the same, restore that time with touch -d %s, and what was restored "
                 "will be compared)",
                 sl_file_time_shown(now.modified_ns, now_shown), before_shown, before_shown);
        return refuse(restore, file, how, error);
    }
    if (!sl_source_same_identity(&now, &before))
        *mark |= COPIED;
    return true;
}

/* Does the file `now` (NULL: none) exist exactly if the list has it? `was`: NULL if not. */
static bool same_presence(const sl_restore *restore, const char *now, const bson_t *was,
                          sl_error *error) {
    const char *path = was ? sl_look_text(was, "path") : NULL;
    if (was && !now)
        return refuse(restore, path ? path : "?", "is missing", error);
    return was || !now ||
           refuse(restore, inside(restore, now), "did not exist when the restore began", error);
}

/* Compares a namespace with that of the list. */
static bool same_namespace(const sl_restore *restore, sl_namespace *item, const bson_t *was,
                           unsigned char *mark, sl_error *error) {
    bson_t data, metadata;
    bool had_data = sl_look_inside(was, "data", &data);
    bool had_metadata = sl_look_inside(was, "metadata", &metadata);
    *mark |= LISTED;
    if (item->left_out)
        return true;
    if (!same_presence(restore, item->metadata, had_metadata ? &metadata : NULL, error) ||
        !same_presence(restore, item->data, had_data ? &data : NULL, error))
        return false;
    if (item->metadata && (int64_t)item->metadata_hash != sl_look_int64(&metadata, "hash", 0))
        return refuse(restore, inside(restore, item->metadata),
                      "has other content than when the restore began", error);
    return !item->data || same_data(restore, item, &data, mark, error);
}

/* Every namespace of the list must be in the dump. */
static bool find_all(sl_restore *restore, const bson_t *list, unsigned char *marks,
                     sl_error *error) {
    sl_dump *dump = &restore->dump;
    for (sl_walk walk = sl_walk_start(list, "namespaces"); sl_walk_next(&walk);) {
        sl_namespace *item = sl_dump_find(dump, sl_look_string(&walk.item, "db"),
                                          sl_look_string(&walk.item, "collection"));
        const char *path = sl_look_text(&walk.item, "data.path");
        path = path ? path : sl_look_text(&walk.item, "metadata.path");
        if (item ? !same_namespace(restore, item, &walk.item, &marks[item - dump->items], error)
                 : path && !refuse(restore, path, "is missing", error))
            return false;
    }
    return true;
}

/* No other namespace may be restored. */
static bool find_no_other(const sl_restore *restore, const unsigned char *marks, sl_error *error) {
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (!item->left_out && !(marks[i] & LISTED))
            return refuse(restore, inside(restore, item->data ? item->data : item->metadata),
                          "is of a collection that was not in the dump when the restore began",
                          error);
    }
    return true;
}

/* Compares the files that have been copied with what was loaded of them. */
static bool same_texts(const sl_restore *restore, const unsigned char *marks, sl_error *error) {
    size_t copied = 0;
    for (size_t i = 0; i < restore->dump.count; i++)
        copied += (marks[i] & COPIED) != 0;
    if (copied > 0)
        sl_log_warning("%zu of the files of the dump %s been copied or moved since the interrupted "
                       "restore, or %s permissions changed: what was restored is read again and "
                       "compared",
                       copied, copied == 1 ? "has" : "have", copied == 1 ? "its" : "their");
    for (size_t i = 0; copied > 0 && i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        char folder[SL_RESTORE_DIRECTORY_ROOM + 80], how[100];
        bool same;
        uint64_t where;
        if (!(marks[i] & COPIED))
            continue;
        sl_namespace_folder(restore->directory, item, folder, sizeof folder);
        if (!same_text(folder, item, &same, &where, error))
            return false;
        snprintf(how, sizeof how, "has another text after byte %llu than was restored",
                 (unsigned long long)where);
        if (!same)
            return refuse(restore, inside(restore, item->data), how, error);
    }
    return true;
}

/* Returns the bytes of the list, which hold `*list`. */
static uint8_t *read_list(const sl_restore *restore, bson_t *list, sl_error *error) {
    char path[600];
    sl_text text = {NULL, 0};
    if (sl_private_file_read(sl_restore_file(restore->directory, SL_WORK_DUMP_FILES, path),
                             SL_DUMP_KEPT_MAX, SL_EXIT_SOURCE, &text, NULL) &&
        bson_init_static(list, (const uint8_t *)text.bytes, text.length) &&
        sl_document_is_sound(list) && bson_has_field(list, "hash"))
        return (uint8_t *)text.bytes;
    free((char *)text.bytes);
    sl_error_set(error, SL_EXIT_SOURCE,
                 "--resume: %s cannot be read: begin a new restore with another --work-dir and "
                 "--drop",
                 path);
    return NULL;
}

static bool same_kind(const sl_restore *restore, const bson_t *list, sl_error *error) {
    const bool folder = bson_has_field(list, "namespaces");
    return folder == sl_restore_is_in_place(restore) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "--resume: %s is a restore of %s, and %s is none: give it the same dump "
                        "again, or begin a new restore with another --work-dir and --drop",
                        restore->directory, folder ? "a folder" : "an archive",
                        restore->config->dump);
}

bool sl_restore_same_dump(sl_restore *restore, sl_error *error) {
    bson_t list;
    char path[600];
    if (!sl_restore_is_in_place(restore) &&
        access(sl_restore_file(restore->directory, SL_WORK_DUMP_FILES, path), F_OK) != 0)
        return true;
    uint8_t *bytes = read_list(restore, &list, error);
    if (!bytes)
        return false;
    unsigned char *marks = calloc(restore->dump.count + 1, 1);
    bool ok = (marks || sl_error_memory(error, "comparing the dump")) &&
              same_kind(restore, &list, error) &&
              (!restore->oplog || sl_oplog_is_same(restore, &list, error));
    if (ok && bson_has_field(&list, "namespaces"))
        ok = find_all(restore, &list, marks, error) && find_no_other(restore, marks, error) &&
             same_texts(restore, marks, error);
    free(marks);
    free(bytes);
    return ok;
}
