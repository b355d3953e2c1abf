/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the records of --embed that are in no document, as JSON lines. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "embed.h"
#include "embed_partitions.h"
#include "util/interrupt.h"
#include "util/private_file.h"

typedef struct sl_orphans {
    const sl_embed *embed;
    const char *path;
    FILE *file; /* NULL before the first record */
    uint64_t count;
    sl_error *error;
} sl_orphans;

static bool cannot(const sl_orphans *orphans, const char *what, const char *path) {
    return sl_error_errno(orphans->error, SL_EXIT_USAGE, "cannot %s %s", what, path);
}

static bool write_line(sl_orphans *orphans, const bson_t *document, uint64_t records) {
    if (!orphans->file) {
        int file = sl_private_file_open(orphans->path, O_WRONLY | O_APPEND, orphans->error);
        orphans->file = file >= 0 ? fdopen(file, "a") : NULL;
        if (file < 0)
            return false;
        if (!orphans->file) {
            close(file);
            return cannot(orphans, "write", orphans->path);
        }
    }
    char *json = bson_as_relaxed_extended_json(document, NULL);
    if (!json)
        return sl_error_memory(orphans->error, "writing records without a document");
    bool ok = (fputs(json, orphans->file) >= 0 && fputc('\n', orphans->file) >= 0) ||
              cannot(orphans, "write", orphans->path);
    bson_free(json);
    orphans->count += records;
    return ok;
}

/* Writes a document of the key's fields and the array. */
static bool write_group(sl_orphans *orphans, const uint8_t *key, size_t key_length,
                        const bson_t *array, uint64_t records) {
    const sl_embed *embed = orphans->embed;
    bson_t document = BSON_INITIALIZER;
    sl_join_key_append(key, key_length, embed->join.documents, embed->join.count, &document);
    bool ok = bson_append_array(&document, embed->field, -1, array) ||
              sl_error_memory(orphans->error, "writing records without a document");
    ok = ok && write_line(orphans, &document, records);
    bson_destroy(&document);
    return ok;
}

static bool write_unused(sl_orphans *orphans) {
    const sl_store *store = orphans->embed->store;
    bool ok = true;
    for (const sl_group *group = sl_store_next(store, NULL); ok && group;
         group = sl_store_next(store, group)) {
        bson_t array;
        if (group->array_length > 0 && !sl_store_is_used(store, group) &&
            bson_init_static(&array, sl_group_array(group), group->array_length))
            ok = write_group(orphans, sl_group_key(group), group->key_length, &array,
                             group->records);
        if (ok && group->ordinal % 4096 == 0 && sl_interrupt_requested())
            ok = sl_error_set(orphans->error, SL_EXIT_INTERRUPTED,
                              "interrupted: all documents are loaded, but the records that are in "
                              "no document have not been written to %s",
                              orphans->path);
    }
    return ok;
}

/* Writes the records of the partition "apart", each as one line. */
static bool write_apart(sl_orphans *orphans, FILE *from, const char *path) {
    uint8_t *record = NULL;
    size_t room = 0;
    sl_partition_head head;
    bool ok = true;
    while (ok && fread(&head, sizeof head, 1, from) == 1) {
        size_t rest = head.length - sizeof head;
        if (rest > room) {
            uint8_t *more = realloc(record, rest);
            if (!more) {
                ok = sl_error_memory(orphans->error, "writing records without a document");
                break;
            }
            record = more;
            room = rest;
        }
        bson_t document, array = BSON_INITIALIZER;
        ok = fread(record, rest, 1, from) == 1 || cannot(orphans, "read", path);
        ok = ok && bson_init_static(&document, record + head.key_length, rest - head.key_length) &&
             BSON_APPEND_DOCUMENT(&array, "0", &document) &&
             write_group(orphans, record, head.key_length, &array, 1);
        bson_destroy(&array);
    }
    free(record);
    return ok && (!ferror(from) || cannot(orphans, "read", path));
}

bool sl_embed_write_orphans(const sl_embed *embed, const char *folder, const char *path,
                            uint64_t *count, sl_error *error) {
    sl_orphans orphans = {.embed = embed, .path = path, .error = error};
    char records[SL_PARTITION_PATH], apart[SL_PARTITION_PATH];
    snprintf(records, sizeof records, "%s/records", folder);
    unlink(path);
    FILE *from = fopen(sl_partition_path(records, SL_PARTITIONS, apart), "rbe");
    bool ok = from || cannot(&orphans, "read", apart);
    ok = ok && write_unused(&orphans) && write_apart(&orphans, from, apart);
    if (from)
        fclose(from);
    if (orphans.file) {
        bool closed = fflush(orphans.file) == 0 && fsync(fileno(orphans.file)) == 0;
        closed = fclose(orphans.file) == 0 && closed;
        ok = ok && (closed || cannot(&orphans, "write", path));
    }
    *count = orphans.count;
    return ok;
}
