/* SPDX-License-Identifier: Apache-2.0 */
/* The records of --embed on disk, by their join key. */
#include "embed_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "bson/bson_number.h"
#include "bson/bson_writer.h"
#include "report/json.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/private_file.h"

/* The types of the values in keys. */
static const struct key_type {
    char letter;
    bson_type_t type;
    /* Bytes after the letter, as in the union of bson_value_t; for text and binary data without the
     * bytes that their length counts. */
    size_t size;
    const char *name;
} types[] = {
    {'i', BSON_TYPE_INT64, 8, "an integer"},
    {'d', BSON_TYPE_DOUBLE, 8, "a number with a fraction"},
    {'s', BSON_TYPE_UTF8, 4, "text"},
    {'t', BSON_TYPE_DATE_TIME, 8, "a date"},
    {'b', BSON_TYPE_BOOL, 1, "true or false"},
    {'x', BSON_TYPE_BINARY, 5, "binary data"},
    {'o', BSON_TYPE_OID, 12, "an ObjectId"},
    {'n', BSON_TYPE_DECIMAL128, 16, "a decimal128"},
    {'p', BSON_TYPE_TIMESTAMP, 8, "a timestamp"},
};
#define TYPES (sizeof types / sizeof types[0])

typedef struct sl_key_writer {
    uint8_t *key;
    size_t used;
} sl_key_writer;

static bool put_bytes(sl_key_writer *to, const void *bytes, size_t length) {
    if (length > SL_JOIN_KEY_ROOM - to->used)
        return false;
    memcpy(to->key + to->used, bytes, length);
    to->used += length;
    return true;
}

static bool put_typed(sl_key_writer *to, char letter, const void *bytes, size_t length) {
    return put_bytes(to, &letter, 1) && put_bytes(to, bytes, length);
}

static bool put_number(sl_key_writer *to, const bson_iter_t *iter) {
    const sl_number number = sl_number_of(iter);
    switch (number.kind) {
    case SL_NUMBER_INTEGER:
        return put_typed(to, 'i', &number.value.integer, sizeof number.value.integer);
    case SL_NUMBER_DOUBLE:
        return put_typed(to, 'd', &number.value.real, sizeof number.value.real);
    case SL_NUMBER_DECIMAL:
        return put_typed(to, 'n', &number.value.decimal, sizeof number.value.decimal);
    case SL_NUMBER_NONE:
        break;
    }
    return false;
}

static bool put_value(sl_key_writer *to, bson_iter_t *iter) {
    bson_type_t type = bson_iter_type(iter);
    if (BSON_ITER_HOLDS_NUMBER(iter) || type == BSON_TYPE_DECIMAL128)
        return put_number(to, iter);
    size_t i = 0;
    while (i < TYPES && types[i].type != type)
        i++;
    if (i == TYPES)
        return false;
    const bson_value_t *value = bson_iter_value(iter);
    if (type == BSON_TYPE_UTF8)
        return put_typed(to, 's', &value->value.v_utf8.len, sizeof(uint32_t)) &&
               put_bytes(to, value->value.v_utf8.str, value->value.v_utf8.len);
    if (type == BSON_TYPE_BINARY) {
        uint8_t subtype = (uint8_t)value->value.v_binary.subtype;
        return put_typed(to, 'x', &value->value.v_binary.data_len, sizeof(uint32_t)) &&
               put_bytes(to, &subtype, 1) &&
               put_bytes(to, value->value.v_binary.data, value->value.v_binary.data_len);
    }
    return put_typed(to, types[i].letter, &value->value, types[i].size);
}

size_t sl_join_key_of(const bson_t *document, const char *const *names, size_t count,
                      uint8_t *key) {
    sl_key_writer writer = {.key = key};
    for (size_t i = 0; i < count; i++) {
        bson_iter_t found;
        if (!sl_look_set(document, names[i], &found) || !put_value(&writer, &found))
            return 0;
    }
    return writer.used;
}

/* ---- reading keys ---- */

/* The type of a letter in a key. */
static const struct key_type *type_of(char letter) {
    size_t i = 0;
    while (i + 1 < TYPES && types[i].letter != letter)
        i++;
    return &types[i];
}

/* The number of bytes of a value after its letter. */
static size_t size_of(const uint8_t *at) {
    bool counted = *at == 's' || *at == 'x';
    return type_of((char)*at)->size + (counted ? sl_bson_length(at + 1) : 0);
}

bool sl_join_key_is_sound(const uint8_t *key, size_t length) {
    const uint8_t *at = key, *end = key + length;
    while (at < end && *at == (uint8_t)type_of((char)*at)->letter &&
           (size_t)(end - at) > type_of((char)*at)->size && size_of(at) < (size_t)(end - at))
        at += 1 + size_of(at);
    return at == end;
}

static void append_value(const uint8_t *at, const char *name, bson_t *to) {
    const struct key_type *type = type_of((char)*at++);
    bson_value_t value = {.value_type = type->type};
    if (type->type == BSON_TYPE_UTF8) {
        value.value.v_utf8.str = (char *)at + 4;
        value.value.v_utf8.len = sl_bson_length(at);
    } else if (type->type == BSON_TYPE_BINARY) {
        value.value.v_binary.data = (uint8_t *)at + 5;
        value.value.v_binary.data_len = sl_bson_length(at);
        value.value.v_binary.subtype = (bson_subtype_t)at[4];
    } else {
        memcpy(&value.value, at, type->size);
    }
    int64_t integer = value.value.v_int64;
    if (type->type == BSON_TYPE_INT64 && integer >= INT32_MIN && integer <= INT32_MAX) {
        value.value_type = BSON_TYPE_INT32;
        value.value.v_int32 = (int32_t)integer;
    }
    bson_append_value(to, name, -1, &value);
}

void sl_join_key_append(const uint8_t *key, size_t length, const char *const *names, size_t count,
                        bson_t *to) {
    const uint8_t *at = key;
    for (size_t i = 0; i < count && at < key + length; i++) {
        append_value(at, names[i], to);
        at += 1 + size_of(at);
    }
}

const char *sl_join_key_letters(const uint8_t *key, size_t length, char *out) {
    size_t count = 0;
    for (const uint8_t *at = key; at < key + length && count < SL_JOIN_FIELDS_MAX;
         at += 1 + size_of(at))
        out[count++] = (char)*at;
    out[count] = '\0';
    return out;
}

bool sl_join_may_equal(char one, char other) {
    static const char numbers[] = "idn";
    return one == other || (strchr(numbers, one) && strchr(numbers, other));
}

const char *sl_join_letter_name(char letter) {
    return type_of(letter)->name;
}

/* ---- partitions ---- */

/* Writes records into files by the hash of their key. */

#define FILES (SL_PARTITIONS + 1) /* with "apart" */

struct sl_partitions {
    unsigned level;
    char folder[SL_PARTITION_PATH];
    int files[FILES];
    pthread_mutex_t locks[FILES]; /* held while a buffer is written */
};

struct sl_partition_writer {
    sl_partitions *to;
    size_t used[FILES];
    uint8_t *buffers; /* FILES times SL_PARTITION_BUFFER */
};

const char *sl_partition_path(const char *folder, unsigned index, char path[SL_PARTITION_PATH]) {
    if (index < SL_PARTITIONS)
        snprintf(path, SL_PARTITION_PATH, "%.600s/%03u", folder, index);
    else
        snprintf(path, SL_PARTITION_PATH, "%.600s/apart", folder);
    return path;
}

void sl_partitions_remove(const char *folder) {
    char path[SL_PARTITION_PATH];
    for (unsigned i = 0; i < FILES; i++)
        sl_private_file_remove(sl_partition_path(folder, i, path));
    sl_private_folder_remove(folder);
}

bool sl_partitions_create(const char *folder, unsigned level, sl_partitions **partitions,
                          sl_error *error) {
    char path[SL_PARTITION_PATH];
    sl_partitions_remove(folder);
    if (!sl_private_folder_make(folder, NULL, error))
        return false;
    sl_partitions *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "dividing the records to embed");
    made->level = level;
    snprintf(made->folder, sizeof made->folder, "%s", folder);
    bool ok = true;
    for (unsigned i = 0; i < FILES; i++) {
        made->files[i] = -1;
        pthread_mutex_init(&made->locks[i], NULL);
    }
    for (unsigned i = 0; ok && i < FILES; i++) {
        made->files[i] =
            sl_private_file_open(sl_partition_path(folder, i, path), O_WRONLY | O_APPEND, error);
        ok = made->files[i] >= 0;
    }
    if (ok)
        *partitions = made;
    else
        sl_partitions_close(made, NULL);
    return ok;
}

static bool cannot_write(const sl_partitions *partitions, unsigned index, sl_error *error) {
    char path[SL_PARTITION_PATH];
    return sl_error_errno(error, SL_EXIT_USAGE, "cannot write %s",
                          sl_partition_path(partitions->folder, index, path));
}

bool sl_partitions_close(sl_partitions *partitions, sl_error *error) {
    bool ok = true;
    if (!partitions)
        return true;
    for (unsigned i = 0; i < FILES; i++) {
        if (partitions->files[i] >= 0 && close(partitions->files[i]) != 0 && ok)
            ok = cannot_write(partitions, i, error);
        pthread_mutex_destroy(&partitions->locks[i]);
    }
    free(partitions);
    return ok;
}

sl_partition_writer *sl_partition_writer_create(sl_partitions *partitions) {
    sl_partition_writer *writer = calloc(1, sizeof *writer);
    uint8_t *buffers = malloc(FILES * SL_PARTITION_BUFFER);
    if (!writer || !buffers) {
        free(writer);
        free(buffers);
        return NULL;
    }
    writer->to = partitions;
    writer->buffers = buffers;
    return writer;
}

void sl_partition_writer_destroy(sl_partition_writer *writer) {
    if (!writer)
        return;
    free(writer->buffers);
    free(writer);
}

static uint8_t *buffer_of(const sl_partition_writer *writer, unsigned index) {
    return writer->buffers + index * SL_PARTITION_BUFFER;
}

/* Writes the buffer of a file and then these pieces, as one unit. */
static bool write_out(sl_partition_writer *writer, unsigned index, const sl_partition_head *head,
                      const uint8_t *key, const uint8_t *document, size_t length, sl_error *error) {
    sl_partitions *to = writer->to;
    pthread_mutex_lock(&to->locks[index]);
    bool ok = sl_write_all(to->files[index], buffer_of(writer, index), writer->used[index]);
    if (ok && head)
        ok = sl_write_all(to->files[index], head, sizeof *head) &&
             sl_write_all(to->files[index], key, head->key_length) &&
             sl_write_all(to->files[index], document, length);
    pthread_mutex_unlock(&to->locks[index]);
    writer->used[index] = 0;
    return ok || cannot_write(to, index, error);
}

bool sl_partition_write(sl_partition_writer *writer, const uint8_t *key, size_t key_length,
                        uint64_t hash, uint64_t position, const uint8_t *document, size_t length,
                        sl_error *error) {
    const sl_partition_head head = {
        .length = (uint32_t)(sizeof head + key_length + length),
        .key_length = (uint32_t)key_length,
        .hash = hash,
        .position = position,
    };
    unsigned index = key_length > 0 ? sl_partition_of(hash, writer->to->level) : SL_PARTITIONS;
    if (head.length > SL_PARTITION_BUFFER)
        return write_out(writer, index, &head, key, document, length, error);
    if (head.length > SL_PARTITION_BUFFER - writer->used[index] &&
        !write_out(writer, index, NULL, NULL, NULL, 0, error))
        return false;
    uint8_t *at = buffer_of(writer, index) + writer->used[index];
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, key, key_length);
    memcpy(at + sizeof head + key_length, document, length);
    writer->used[index] += head.length;
    return true;
}

bool sl_partition_flush(sl_partition_writer *writer, sl_error *error) {
    for (unsigned i = 0; i < FILES; i++) {
        if (writer->used[i] > 0 && !write_out(writer, i, NULL, NULL, NULL, 0, error))
            return false;
    }
    return true;
}

/* ---- the store ---- */

struct sl_store {
    sl_store_facts facts;
    const uint8_t *groups;
    const uint64_t *index;
    _Atomic uint64_t *used;
    size_t index_bytes, used_bytes;
};

/* Continues a CRC-32; 0 begins one. */
static uint64_t checksum(uint64_t before, const void *bytes, size_t length) {
    return length == 0 ? before : crc32_z((uLong)before, bytes, length);
}

/* ---- "complete" ---- */

static bool damaged(const char *path, const char *why, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s: %s; start the load again, with another --work-dir", path, why);
}

bool sl_store_read_facts(const char *folder, bool *there, sl_store_facts *facts, sl_error *error) {
    char path[SL_PARTITION_PATH];
    bson_t *document;
    snprintf(path, sizeof path, "%s/complete", folder);
    *there = access(path, F_OK) == 0;
    if (!*there)
        return true;
    if (!sl_json_read_private(path, &document, error))
        return false;
    *facts = (sl_store_facts){.format = (uint64_t)sl_look_int64(document, "format", 0),
                              .records = (uint64_t)sl_look_int64(document, "records", 0),
                              .rejects = (uint64_t)sl_look_int64(document, "rejects", 0),
                              .not_loaded = (uint64_t)sl_look_int64(document, "notLoaded", 0),
                              .left_out = (uint64_t)sl_look_int64(document, "leftOut", 0),
                              .without_key = (uint64_t)sl_look_int64(document, "withoutKey", 0),
                              .too_many = (uint64_t)sl_look_int64(document, "tooMany", 0),
                              .keys = (uint64_t)sl_look_int64(document, "keys", 0),
                              .seed = (uint64_t)sl_look_int64(document, "seed", 0),
                              .bits = (uint64_t)sl_look_int64(document, "bits", 0),
                              .group_bytes = (uint64_t)sl_look_int64(document, "groupBytes", 0),
                              .groups_check = (uint64_t)sl_look_int64(document, "groupsCheck", 0),
                              .index_check = (uint64_t)sl_look_int64(document, "indexCheck", 0)};
    snprintf(facts->identity, sizeof facts->identity, "%s", sl_look_string(document, "identity"));
    bson_destroy(document);
    if (facts->format != SL_STORE_FORMAT)
        *facts = (sl_store_facts){.format = facts->format};
    return (facts->bits <= 40 && (facts->keys > 0) == (facts->group_bytes > 0)) ||
           damaged(path, "its numbers are wrong", error);
}

/* ---- opening ---- */

/* Maps a file of exactly this length. Returns NULL with error, or when the length is 0. */
static void *map_file(const char *folder, const char *name, uint64_t length, int protection,
                      sl_error *error) {
    char path[SL_PARTITION_PATH];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool writable = (protection & PROT_WRITE) != 0;
    int file = sl_private_file_open(path, writable ? O_RDWR : O_RDONLY, error);
    if (file < 0)
        return NULL;
    void *bytes = NULL;
    if (fstat(file, &facts) != 0 || (uint64_t)facts.st_size != length) {
        damaged(path, "it has been truncated or replaced", error);
    } else if (length > 0) {
        bytes = mmap(NULL, length, protection, MAP_SHARED, file, 0);
        if (bytes == MAP_FAILED) {
            sl_error_errno(error, SL_EXIT_USAGE, "cannot map %s", path);
            bytes = NULL;
        }
    }
    close(file);
    return bytes;
}

/* Writes the file "used" with all bits 0. Its blocks are allocated, because a mapped file cannot
 * report that the disk is full. */
static bool create_used(const char *folder, size_t length, sl_error *error) {
    char path[SL_PARTITION_PATH];
    snprintf(path, sizeof path, "%s/used", folder);
    sl_private_file_remove(path);
    int file = sl_private_file_open(path, O_RDWR, error);
    if (file < 0)
        return false;
    errno = posix_fallocate(file, 0, (off_t)length);
    bool ok = (errno == 0 && fsync(file) == 0) ||
              sl_error_errno(error, SL_EXIT_USAGE, "cannot write %s", path);
    close(file);
    sl_private_parent_sync(path);
    return ok;
}

bool sl_store_open(const char *folder, const sl_store_facts *facts, sl_store_keys keys,
                   sl_store **store, sl_error *error) {
    sl_store *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the records to embed");
    made->facts = *facts;
    made->index_bytes = (((size_t)1 << facts->bits) + 1) * sizeof(uint64_t);
    made->used_bytes = ((size_t)facts->keys / 64 + 1) * sizeof(uint64_t);
    bool ok = keys != SL_STORE_UNUSED || create_used(folder, made->used_bytes, error);
    if (ok && facts->keys > 0) {
        made->groups = map_file(folder, "groups", facts->group_bytes, PROT_READ, error);
        ok = made->groups != NULL;
    }
    if (ok)
        made->index = map_file(folder, "index", made->index_bytes, PROT_READ, error);
    if (ok && made->index && keys != SL_STORE_READ_ONLY)
        made->used = map_file(folder, "used", made->used_bytes, PROT_READ | PROT_WRITE, error);
    ok = ok && made->index && (made->used || keys == SL_STORE_READ_ONLY);
    if (ok && made->index[(size_t)1 << facts->bits] != facts->group_bytes)
        ok = damaged(folder, "its index does not belong to its groups", error);
    if (ok && made->groups)
        madvise((void *)made->groups, facts->group_bytes, MADV_RANDOM);
    if (ok)
        *store = made;
    else
        sl_store_close(made);
    return ok;
}

void sl_store_close(sl_store *store) {
    if (!store)
        return;
    if (store->groups)
        munmap((void *)store->groups, store->facts.group_bytes);
    if (store->index)
        munmap((void *)store->index, store->index_bytes);
    if (store->used)
        munmap((void *)store->used, store->used_bytes);
    free(store);
}

/* ---- groups ---- */

static const sl_group *group_at(const sl_store *store, uint64_t offset) {
    return (const sl_group *)(const void *)(store->groups + offset);
}

static uint64_t bytes_of(const sl_group *group) {
    return sizeof *group + (((uint64_t)group->key_length + group->array_length + 7) & ~UINT64_C(7));
}

/* Are the groups complete and in order, and does the index lead to them? Otherwise another program
 * has written the store. */
static bool is_sound(const sl_store *store) {
    const sl_store_facts *facts = &store->facts;
    uint64_t at = 0, ordinal = 0, entry = 0;
    sl_bson_facts unused;
    while (at < facts->group_bytes) {
        const uint64_t left = facts->group_bytes - at;
        const sl_group *group = group_at(store, at);
        if (left < sizeof *group || bytes_of(group) > left || group->ordinal != ordinal++ ||
            !sl_join_key_is_sound(sl_group_key(group), group->key_length))
            return false;
        const uint32_t length = group->array_length;
        if (length > 0 &&
            (length < 5 || sl_bson_length(sl_group_array(group)) != length ||
             sl_bson_check_alone(sl_group_array(group), length, &unused) != SL_BSON_VALID))
            return false;
        const uint64_t last = facts->bits ? group->hash >> (64 - facts->bits) : 0;
        if (last + 1 < entry)
            return false;
        for (; entry <= last; entry++) {
            if (store->index[entry] != at)
                return false;
        }
        at += bytes_of(group);
    }
    for (; entry <= (uint64_t)1 << facts->bits; entry++) {
        if (store->index[entry] != at)
            return false;
    }
    return ordinal == facts->keys;
}

bool sl_store_check(const sl_store *store, const char *folder, sl_error *error) {
    const sl_store_facts *facts = &store->facts;
    return (checksum(0, store->groups, facts->group_bytes) == facts->groups_check &&
            checksum(0, store->index, store->index_bytes) == facts->index_check &&
            is_sound(store)) ||
           damaged(folder, "its files are damaged", error);
}

const sl_group *sl_store_find(const sl_store *store, const uint8_t *key, size_t length) {
    uint64_t hash = sl_seeded_hash(key, length, store->facts.seed);
    uint64_t entry = store->facts.bits ? hash >> (64 - store->facts.bits) : 0;
    uint64_t at = store->index[entry], end = store->index[entry + 1];
    while (at < end) {
        const sl_group *group = group_at(store, at);
        if (group->hash == hash && group->key_length == length &&
            memcmp(sl_group_key(group), key, length) == 0)
            return group;
        at += bytes_of(group);
    }
    return NULL;
}

const sl_group *sl_store_next(const sl_store *store, const sl_group *group) {
    uint64_t at = 0;
    if (group)
        at = (uint64_t)((const uint8_t *)group - store->groups) + bytes_of(group);
    return at < store->facts.group_bytes ? group_at(store, at) : NULL;
}

void sl_store_use(sl_store *store, const sl_group *group) {
    if (!store->used)
        return;
    _Atomic uint64_t *word = &store->used[group->ordinal / 64];
    uint64_t bit = (uint64_t)1 << (group->ordinal % 64);
    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

bool sl_store_is_used(const sl_store *store, const sl_group *group) {
    uint64_t word = atomic_load_explicit(&store->used[group->ordinal / 64], memory_order_relaxed);
    return word >> (group->ordinal % 64) & 1;
}

bool sl_store_sync(sl_store *store, sl_error *error) {
    return msync((void *)store->used, store->used_bytes, MS_SYNC) == 0 ||
           sl_error_errno(error, SL_EXIT_USAGE, "cannot write which records are embedded");
}

/* ---- making a store ---- */

/* Makes the store of the records to embed.
 *
 * Partition by partition, the records are sorted by hash, key and position, and the records of each
 * key are written as one array. A partition with more records than fit into memory is divided by
 * the next bits of the hash. If all its records have the same hash, they have the same key, and are
 * too many for a document: even the smallest array of that many records is larger than 16 MiB. */

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
        const uint64_t *at = &builder->facts->group_bytes;
        if (fwrite(at, sizeof *at, 1, builder->index) != 1)
            return failed(builder, "index");
        builder->facts->index_check = checksum(builder->facts->index_check, at, sizeof *at);
    }
    return true;
}

static bool put(sl_store_builder *builder, const void *bytes, size_t length) {
    builder->facts->group_bytes += length;
    builder->facts->groups_check = checksum(builder->facts->groups_check, bytes, length);
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
    facts->keys++;
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
    BSON_APPEND_INT64(&document, "records", (int64_t)facts->records);
    BSON_APPEND_INT64(&document, "rejects", (int64_t)facts->rejects);
    BSON_APPEND_INT64(&document, "notLoaded", (int64_t)facts->not_loaded);
    BSON_APPEND_INT64(&document, "leftOut", (int64_t)facts->left_out);
    BSON_APPEND_INT64(&document, "withoutKey", (int64_t)facts->without_key);
    BSON_APPEND_INT64(&document, "tooMany", (int64_t)facts->too_many);
    BSON_APPEND_INT64(&document, "keys", (int64_t)facts->keys);
    BSON_APPEND_INT64(&document, "seed", (int64_t)facts->seed);
    BSON_APPEND_INT64(&document, "bits", (int64_t)facts->bits);
    BSON_APPEND_INT64(&document, "groupBytes", (int64_t)facts->group_bytes);
    BSON_APPEND_INT64(&document, "groupsCheck", (int64_t)facts->groups_check);
    BSON_APPEND_INT64(&document, "indexCheck", (int64_t)facts->index_check);
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
    facts->groups_check = facts->index_check = 0;
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
