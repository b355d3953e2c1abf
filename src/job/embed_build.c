/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the store of the records to embed.
 *
 * Partition by partition, the records are sorted by hash, key and position, and the records of each
 * key are written as one array. A partition with more records than fit into memory is divided by
 * the next bits of the hash. If all its records have the same hash, they have the same key, and are
 * too many for a document: even the smallest array of that many records is larger than 16 MiB. */
#include "embed_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bson/bson_writer.h"
#include "embed_partitions.h"
#include "report/json.h"
#include "util/interrupt.h"
#include "util/private_file.h"

/* type, index with 7 digits and NUL, empty document */
_Static_assert(SL_SORTED_AT_ONCE *(1 + 7 + 1 + 5) > SL_BSON_DOCUMENT_MAX,
               "so many records of one key are too many for a document");
#define GROUPS_PER_ENTRY 4 /* of the index, at most, on average */
#define LEVELS_MAX (64 / SL_PARTITION_BITS)

typedef struct sl_store_builder {
    const char *folder;
    size_t sorted_at_once;
    sl_store_facts *facts;
    FILE *groups, *index, *apart;
    uint64_t entries; /* of the index written so far */
    uint8_t *array;   /* of the current group */
    size_t array_room;
    sl_error *error;
} sl_store_builder;

typedef struct sl_sorted {
    uint64_t hash, position;
    const uint8_t *record; /* in the mapped partition */
} sl_sorted;

typedef struct sl_mapped {
    const uint8_t *bytes;
    size_t length;
} sl_mapped;

static sl_partition_head head_of(const uint8_t *record) {
    sl_partition_head head;
    memcpy(&head, record, sizeof head);
    return head;
}

static const uint8_t *key_of(const uint8_t *record) {
    return record + sizeof(sl_partition_head);
}

static bool failed(sl_store_builder *builder, const char *name) {
    return sl_error_errno(builder->error, SL_EXIT_USAGE, "cannot write %s/%s", builder->folder,
                          name);
}

/* ---- groups ---- */

/* Fills the index up to the group that begins at the end of "groups". */
static bool index_up_to(sl_store_builder *builder, uint64_t entry) {
    for (; builder->entries <= entry; builder->entries++) {
        if (fwrite(&builder->facts->group_bytes, sizeof(uint64_t), 1, builder->index) != 1)
            return failed(builder, "index");
    }
    return true;
}

static bool put(sl_store_builder *builder, const void *bytes, size_t length) {
    builder->facts->group_bytes += length;
    return length == 0 || fwrite(bytes, length, 1, builder->groups) == 1 ||
           failed(builder, "groups");
}

/* Writes a group; array_length 0: it has too many records. */
static bool put_group(sl_store_builder *builder, const uint8_t *record, size_t array_length,
                      size_t records) {
    sl_partition_head head = head_of(record);
    sl_store_facts *facts = builder->facts;
    const sl_group group = {.hash = head.hash,
                            .ordinal = facts->keys,
                            .key_length = head.key_length,
                            .array_length = (uint32_t)array_length,
                            .records = records};
    if (facts->keys++ == 0)
        sl_join_key_letters(key_of(record), head.key_length, facts->letters);
    static const uint8_t zeros[8];
    size_t padding = -(head.key_length + array_length) & 7;
    return index_up_to(builder, facts->bits ? head.hash >> (64 - facts->bits) : 0) &&
           put(builder, &group, sizeof group) && put(builder, key_of(record), head.key_length) &&
           put(builder, builder->array, array_length) && put(builder, zeros, padding);
}

/* Writes a record that cannot be embedded to the file "apart". */
static bool put_apart(sl_store_builder *builder, const uint8_t *record) {
    builder->facts->too_many++;
    return fwrite(record, head_of(record).length, 1, builder->apart) == 1 ||
           failed(builder, "records/apart");
}

static bool make_array_room(sl_store_builder *builder, size_t need) {
    if (need <= builder->array_room)
        return true;
    size_t room = need > 2 * builder->array_room ? need : 2 * builder->array_room;
    uint8_t *array = realloc(builder->array, room);
    if (!array)
        return sl_error_memory(builder->error, "joining records");
    builder->array = array;
    builder->array_room = room;
    return true;
}

/* Writes the records of one key. */
static bool add_group(sl_store_builder *builder, const sl_sorted *records, size_t count) {
    size_t used = 4;
    for (size_t i = 0; i < count && used <= SL_BSON_DOCUMENT_MAX; i++) {
        sl_partition_head head = head_of(records[i].record);
        size_t length = head.length - sizeof head - head.key_length;
        if (!make_array_room(builder, used + 1 + 24 + length + 1))
            return false;
        builder->array[used++] = SL_BSON_DOCUMENT;
        used += (size_t)sprintf((char *)builder->array + used, "%zu", i) + 1;
        memcpy(builder->array + used, key_of(records[i].record) + head.key_length, length);
        used += length;
    }
    if (used + 1 <= SL_BSON_DOCUMENT_MAX) {
        builder->array[used++] = 0;
        uint32_t whole = (uint32_t)used;
        memcpy(builder->array, &whole, sizeof whole);
        return put_group(builder, records[0].record, used, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (!put_apart(builder, records[i].record))
            return false;
    }
    return put_group(builder, records[0].record, 0, count);
}

/* ---- partitions ---- */

static int compare_keys(const uint8_t *a, const uint8_t *b) {
    uint32_t length_a = head_of(a).key_length, length_b = head_of(b).key_length;
    if (length_a != length_b)
        return length_a < length_b ? -1 : 1;
    return memcmp(key_of(a), key_of(b), length_a);
}

static int compare(const void *a, const void *b) {
    const sl_sorted *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    int keys = compare_keys(x->record, y->record);
    if (keys != 0)
        return keys;
    return x->position < y->position ? -1 : x->position > y->position;
}

static bool interrupted(sl_store_builder *builder) {
    return !sl_interrupt_requested() || sl_error_set(builder->error, SL_EXIT_INTERRUPTED,
                                                     "interrupted before anything was loaded");
}

static bool sort_and_write(sl_store_builder *builder, sl_mapped map, size_t count) {
    sl_sorted *records = malloc(count * sizeof *records);
    if (!records)
        return sl_error_memory(builder->error, "sorting the records to embed");
    const uint8_t *at = map.bytes;
    for (size_t i = 0; i < count; i++) {
        sl_partition_head head = head_of(at);
        records[i] = (sl_sorted){.hash = head.hash, .position = head.position, .record = at};
        at += head.length;
    }
    qsort(records, count, sizeof *records, compare);
    bool ok = true;
    for (size_t i = 0, next; ok && i < count; i = next) {
        for (next = i + 1; next < count && records[next].hash == records[i].hash &&
                           compare_keys(records[next].record, records[i].record) == 0;)
            next++;
        ok = add_group(builder, records + i, next - i);
    }
    free(records);
    return ok && interrupted(builder);
}

/* All records have one key, which has too many of them. */
static bool write_too_many(sl_store_builder *builder, sl_mapped map, size_t count) {
    const uint8_t *end = map.bytes + map.length;
    for (const uint8_t *at = map.bytes; at < end; at += head_of(at).length) {
        if (!put_apart(builder, at))
            return false;
    }
    return put_group(builder, map.bytes, 0, count);
}

static bool add_partitions(sl_store_builder *builder, const char *folder, unsigned level);

/* Divides a partition further. */
static bool divide(sl_store_builder *builder, sl_mapped map, unsigned level) {
    char folder[SL_PARTITION_PATH];
    sl_partitions *partitions;
    snprintf(folder, sizeof folder, "%s/level%u", builder->folder, level);
    if (!sl_partitions_create(folder, level, &partitions, builder->error))
        return false;
    sl_partition_writer *writer = sl_partition_writer_create(partitions);
    bool ok = writer || sl_error_memory(builder->error, "dividing the records to embed");
    const uint8_t *end = map.bytes + map.length;
    for (const uint8_t *at = map.bytes; ok && at < end; at += head_of(at).length) {
        sl_partition_head head = head_of(at);
        const uint8_t *document = key_of(at) + head.key_length;
        ok = sl_partition_write(writer, key_of(at), head.key_length, head.hash, head.position,
                                document, (size_t)(at + head.length - document), builder->error);
    }
    ok = ok && sl_partition_flush(writer, builder->error);
    sl_partition_writer_destroy(writer);
    ok = sl_partitions_close(partitions, ok ? builder->error : NULL) && ok;
    ok = ok && interrupted(builder) && add_partitions(builder, folder, level);
    sl_partitions_remove(folder);
    return ok;
}

static bool add_partition(sl_store_builder *builder, sl_mapped map, unsigned level) {
    size_t count = 0;
    bool one_hash = true;
    const uint8_t *end = map.bytes + map.length;
    uint64_t hash = head_of(map.bytes).hash;
    for (const uint8_t *at = map.bytes; at < end; at += head_of(at).length) {
        count++;
        one_hash = one_hash && head_of(at).hash == hash;
    }
    if (count <= builder->sorted_at_once)
        return sort_and_write(builder, map, count);
    if (one_hash || level + 1 >= LEVELS_MAX)
        return write_too_many(builder, map, count);
    return divide(builder, map, level + 1);
}

static bool add_partitions(sl_store_builder *builder, const char *folder, unsigned level) {
    char path[SL_PARTITION_PATH];
    bool ok = true;
    for (unsigned i = 0; ok && i < SL_PARTITIONS; i++) {
        struct stat facts;
        int file = sl_private_file_open(sl_partition_path(folder, i, path), O_RDONLY, NULL);
        ok = file >= 0 && fstat(file, &facts) == 0;
        void *bytes = NULL;
        size_t length = ok ? (size_t)facts.st_size : 0;
        if (ok && length > 0) {
            bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
            ok = bytes != MAP_FAILED;
        }
        if (!ok)
            sl_error_errno(builder->error, SL_EXIT_USAGE, "cannot read %s", path);
        if (file >= 0)
            close(file);
        if (ok && bytes) {
            ok = add_partition(builder, (sl_mapped){bytes, length}, level);
            munmap(bytes, length);
        }
        if (ok)
            sl_private_file_remove(path);
    }
    return ok;
}

/* ---- the store ---- */

static FILE *open_stream(sl_store_builder *builder, const char *name, bool append) {
    char path[SL_PARTITION_PATH];
    snprintf(path, sizeof path, "%s/%s", builder->folder, name);
    if (!append)
        sl_private_file_remove(path);
    return sl_private_file_stream(path, O_WRONLY | O_APPEND, builder->error);
}

static bool close_stream(sl_store_builder *builder, FILE *stream, const char *name, bool ok) {
    if (!stream)
        return false;
    ok = ok && ((fflush(stream) == 0 && fsync(fileno(stream)) == 0) || failed(builder, name));
    return (fclose(stream) == 0 || (ok && failed(builder, name))) && ok;
}

static bool write_facts(const char *folder, const sl_store_facts *facts, sl_error *error) {
    char path[SL_PARTITION_PATH];
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_INT32(&document, "format", SL_STORE_FORMAT);
    BSON_APPEND_UTF8(&document, "identity", facts->identity);
    BSON_APPEND_UTF8(&document, "letters", facts->letters);
    BSON_APPEND_INT64(&document, "records", (int64_t)facts->records);
    BSON_APPEND_INT64(&document, "rejects", (int64_t)facts->rejects);
    BSON_APPEND_INT64(&document, "notLoaded", (int64_t)facts->not_loaded);
    BSON_APPEND_INT64(&document, "leftOut", (int64_t)facts->left_out);
    BSON_APPEND_INT64(&document, "withoutKey", (int64_t)facts->without_key);
    BSON_APPEND_INT64(&document, "tooMany", (int64_t)facts->too_many);
    BSON_APPEND_INT64(&document, "keys", (int64_t)facts->keys);
    BSON_APPEND_INT64(&document, "bits", (int64_t)facts->bits);
    BSON_APPEND_INT64(&document, "groupBytes", (int64_t)facts->group_bytes);
    snprintf(path, sizeof path, "%s/complete", folder);
    bool ok = sl_json_write_file(path, &document, error);
    bson_destroy(&document);
    return ok;
}

bool sl_store_build(const char *folder, size_t sorted_at_once, sl_store_facts *facts,
                    sl_error *error) {
    char records[SL_PARTITION_PATH];
    sl_store_builder builder = {
        .folder = folder, .sorted_at_once = sorted_at_once, .facts = facts, .error = error};
    snprintf(records, sizeof records, "%s/records", folder);
    facts->format = SL_STORE_FORMAT;
    facts->keys = facts->too_many = facts->group_bytes = facts->bits = 0;
    facts->letters[0] = '\0';
    while (facts->bits < 40 && facts->records >> facts->bits > GROUPS_PER_ENTRY)
        facts->bits++;
    builder.groups = open_stream(&builder, "groups", false);
    builder.index = builder.groups ? open_stream(&builder, "index", false) : NULL;
    builder.apart = builder.index ? open_stream(&builder, "records/apart", true) : NULL;
    bool ok = builder.apart && add_partitions(&builder, records, 0) &&
              index_up_to(&builder, (uint64_t)1 << facts->bits);
    ok = close_stream(&builder, builder.groups, "groups", ok) && ok;
    ok = close_stream(&builder, builder.index, "index", ok) && ok;
    ok = close_stream(&builder, builder.apart, "records/apart", ok) && ok;
    free(builder.array);
    return ok && write_facts(folder, facts, error);
}
