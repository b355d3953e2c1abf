/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to parsed documents the records of their join key; writes the records that are in none. */
#include "embed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "format/key_fields.h"
#include "util/interrupt.h"
#include "util/private_file.h"

#define BUFFER_BYTES ((size_t)256 << 10) /* of parsed documents; fits into the cache of one core */
#define BUFFER_DOCUMENTS 4096u           /* maximum of buffered documents */

/* ---- --on ---- */

bool sl_join_parse(const char *text, sl_join *join, sl_error *error) {
    *join = (sl_join){.text = strdup(text)};
    if (!join->text)
        return sl_error_memory(error, "reading --on");
    for (char *at = join->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        char *equals = strchr(at, '=');
        if (equals)
            *equals++ = '\0';
        if (!*at || (equals && !*equals) || join->count == SL_JOIN_FIELDS_MAX)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--on %s: give up to %d fields like test_id or "
                                "o_orderkey=l_orderkey, separated by commas",
                                text, SL_JOIN_FIELDS_MAX);
        join->documents[join->count] = at;
        join->records[join->count++] = equals ? equals : at;
    }
    return true;
}

void sl_embed_destroy(sl_embed *embed) {
    if (!embed)
        return;
    for (size_t i = 0; i < SL_JOIN_FIELDS_MAX; i++)
        free((char *)embed->divided.keys[i]);
    sl_job_clear(&embed->records);
    sl_store_close(embed->store);
    free(embed->join.text);
    free(embed);
}

static const char *key_named(const sl_format *format, const sl_dialect *dialect, const char *name) {
    const char *key = format->key_of ? format->key_of(dialect, name) : NULL;
    return key ? key : name;
}

void sl_embed_keys_find(const sl_format *format, const sl_dialect *dialect,
                        const sl_key_names *id_fields, const char *const *names, size_t count,
                        sl_embed_keys *keys) {
    const size_t ids = id_fields ? id_fields->count : 0;
    for (size_t i = 0; i < count; i++) {
        keys->names[i] = key_named(format, dialect, names[i]);
        for (size_t k = 0; k < ids; k++) {
            const char *id = key_named(format, dialect, id_fields->names[k]);
            const char *dot = strrchr(id, '.');
            if (strcmp(keys->names[i], id) != 0)
                continue;
            sl_print_text(keys->made[i], sizeof keys->made[i], ids == 1 ? "_id" : "_id.%s",
                          dot ? dot + 1 : id);
            keys->names[i] = keys->made[i];
            break;
        }
    }
}

/* ---- the documents of a block ---- */

typedef struct sl_completion {
    sl_embed *embed;
    sl_embed_keys keys;
    sl_sink *to;
    sl_sink sink; /* the block is parsed into this sink */
    uint8_t *bytes;
    size_t room;
    uint64_t offsets[BUFFER_DOCUMENTS];
    uint64_t documents, embedded, keyless, refused;
    bool stopped; /* `to` takes no more documents, or no memory is left */
} sl_completion;

/* Rejects a parsed document. */
static void refuse(sl_completion *completion, const bson_t *document, uint64_t offset,
                   const char *reason) {
    char *json = sl_document_json(document);
    sl_reject reject = {.offset = offset,
                        .line = SL_REJECT_LINE_UNKNOWN,
                        .column = completion->embed->field,
                        .record = sl_text_of(json ? json : "")};
    snprintf(reject.reason, sizeof reject.reason, "%s", reason);
    completion->to->reject(completion->to, &reject);
    completion->refused++;
    bson_free(json);
}

/* The group of a document, or NULL. */
static const sl_group *group_of(sl_completion *completion, const bson_t *document) {
    uint8_t key[SL_JOIN_KEY_ROOM];
    sl_embed *embed = completion->embed;
    size_t length = sl_join_key_of(document, completion->keys.names, embed->join.count, key);
    completion->keyless += embed->counting && length == 0;
    return length > 0 ? sl_store_find(embed->store, key, length) : NULL;
}

/* Writes a document, with the array of its group (may be NULL), to the block's sink. */
static bool write_document(sl_completion *completion, const uint8_t *from, size_t length,
                           const sl_group *group, uint64_t offset) {
    sl_sink *to = completion->to;
    const char *field = completion->embed->field;
    size_t name = strlen(field) + 1;
    size_t need = length + (group ? 1 + name + group->array_length : 0);
    if (((size_t)(to->limit - to->cursor) < need || to->documents >= to->documents_limit) &&
        !to->full(to, need))
        return false;
    uint8_t *at = to->cursor;
    memcpy(at, from, length);
    if (group) {
        at += length - 1; /* to the document's last byte, a 0 */
        *at++ = SL_BSON_ARRAY;
        memcpy(at, field, name);
        memcpy(at + name, sl_group_array(group), group->array_length);
        at[name + group->array_length] = 0;
        sl_bson_put_int32(to->cursor, (int32_t)need);
    }
    if (to->offsets)
        to->offsets[to->documents] = offset;
    to->cursor += need;
    to->documents++;
    return true;
}

static bool complete(sl_completion *completion, const uint8_t *bytes, size_t length,
                     uint64_t offset) {
    sl_embed *embed = completion->embed;
    bson_t document;
    bson_iter_t iter;
    char reason[300];
    if (!bson_init_static(&document, bytes, length))
        return true; /* the parser writes no such document */
    if (bson_iter_init_find(&iter, &document, embed->field)) {
        snprintf(reason, sizeof reason,
                 "the document already has a field %.100s; give --embed another field name",
                 embed->field);
        refuse(completion, &document, offset, reason);
        return true;
    }
    const sl_group *group = group_of(completion, &document);
    if (group && (group->array_length == 0 ||
                  length + 2 + strlen(embed->field) + group->array_length > SL_BSON_DOCUMENT_MAX)) {
        snprintf(reason, sizeof reason,
                 "with its %llu records of %.100s the document is larger than 16 MiB",
                 (unsigned long long)group->records, embed->field);
        refuse(completion, &document, offset, reason);
        return true;
    }
    if (!write_document(completion, bytes, length, group, offset))
        return false;
    if (group && embed->counting) {
        sl_store_use(embed->store, group);
        completion->documents++;
        completion->embedded += group->records;
    }
    return true;
}

/* Completes the parsed documents, and empties the buffer. */
static bool drain(sl_completion *completion) {
    sl_sink *sink = &completion->sink;
    const uint8_t *at = completion->bytes;
    for (uint32_t i = 0; i < sink->documents && !completion->stopped; i++) {
        uint32_t length = sl_bson_length(at);
        uint64_t offset = completion->offsets[i];
        if (!sink->offsets) {
            int64_t id;
            memcpy(&id, at + SL_BSON_HEAD_BYTES - sizeof id, sizeof id);
            offset = sl_document_id_offset(id);
        }
        completion->stopped = !complete(completion, at, length, offset);
        at += length;
    }
    sink->cursor = completion->bytes;
    sink->documents = 0;
    return !completion->stopped;
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_completion *completion = sink->context;
    if (!drain(completion))
        return false;
    if (need > completion->room) {
        uint8_t *bytes = realloc(completion->bytes, need + SL_SLACK);
        if (!bytes) /* a request for more than any memory has makes `to` report the error */
            return completion->to->full(completion->to, SIZE_MAX / 2) && false;
        completion->bytes = bytes;
        completion->room = need;
    }
    sink->cursor = completion->bytes;
    sink->limit = completion->bytes + completion->room;
    return true;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_completion *completion = sink->context;
    completion->to->reject(completion->to, reject);
}

static void on_left_out(sl_sink *sink, const char *column, bool kept) {
    sl_completion *completion = sink->context;
    if (completion->to->left_out)
        completion->to->left_out(completion->to, column, kept);
}

static void on_doubt(sl_sink *sink, const sl_reject *record) {
    sl_completion *completion = sink->context;
    if (completion->to->doubt)
        completion->to->doubt(completion->to, record);
}

bool sl_embed_parse(sl_embed *embed, const sl_format *format, const sl_plan *plan,
                    const sl_dialect *dialect, const sl_block *block, sl_sink *sink,
                    sl_parse_counts *counts) {
    sl_completion *completion = malloc(sizeof *completion);
    uint8_t *bytes = malloc(BUFFER_BYTES + SL_SLACK);
    if (!completion || !bytes) {
        free(completion);
        free(bytes);
        return sink->full(sink, SIZE_MAX / 2) && false;
    }
    *completion = (sl_completion){.embed = embed, .to = sink, .bytes = bytes, .room = BUFFER_BYTES};
    completion->sink = (sl_sink){.cursor = bytes,
                                 .limit = bytes + BUFFER_BYTES,
                                 .documents_limit = BUFFER_DOCUMENTS,
                                 .offsets = sink->offsets ? completion->offsets : NULL,
                                 .full = on_full,
                                 .reject = on_reject,
                                 .left_out = on_left_out,
                                 .doubt = on_doubt,
                                 .context = completion};
    sl_embed_keys_find(format, dialect, embed->id_fields, embed->join.documents, embed->join.count,
                       &completion->keys);
    bool ok = format->parse(plan, dialect, block, &completion->sink, counts);
    ok = (completion->stopped || drain(completion)) && ok;
    counts->documents -= completion->refused;
    counts->rejects += completion->refused;
    atomic_fetch_add_explicit(&embed->documents, completion->documents, memory_order_relaxed);
    atomic_fetch_add_explicit(&embed->embedded, completion->embedded, memory_order_relaxed);
    atomic_fetch_add_explicit(&embed->keyless, completion->keyless, memory_order_relaxed);
    free(completion->bytes);
    ok = ok && !completion->stopped;
    free(completion);
    return ok;
}

/* ---- the records that are in no document, as JSON lines ---- */

typedef struct sl_unmatched {
    const sl_embed *embed;
    const char *path;
    FILE *file; /* NULL before the first record */
    uint64_t count;
    sl_error *error;
} sl_unmatched;

static bool cannot(const sl_unmatched *unmatched, const char *what, const char *path) {
    return sl_error_errno(unmatched->error, SL_EXIT_USAGE, "cannot %s %s", what, path);
}

static bool write_line(sl_unmatched *unmatched, const bson_t *document, uint64_t records) {
    if (!unmatched->file) {
        unmatched->file =
            sl_private_file_stream(unmatched->path, O_WRONLY | O_APPEND, unmatched->error);
        if (!unmatched->file)
            return false;
    }
    char *json = sl_document_json(document);
    bool ok = (fputs(json, unmatched->file) >= 0 && fputc('\n', unmatched->file) >= 0) ||
              cannot(unmatched, "write", unmatched->path);
    bson_free(json);
    unmatched->count += records;
    return ok;
}

/* Writes a document of the key's fields and the array. */
static bool write_group(sl_unmatched *unmatched, const uint8_t *key, size_t key_length,
                        const bson_t *array, uint64_t records) {
    const sl_embed *embed = unmatched->embed;
    bson_t document = BSON_INITIALIZER;
    sl_join_key_append(key, key_length, embed->join.documents, embed->join.count, &document);
    bool ok = bson_append_array(&document, embed->field, -1, array) ||
              sl_error_memory(unmatched->error, "writing records without a document");
    ok = ok && write_line(unmatched, &document, records);
    bson_destroy(&document);
    return ok;
}

static bool write_unused(sl_unmatched *unmatched) {
    const sl_store *store = unmatched->embed->store;
    bool ok = true;
    for (const sl_group *group = sl_store_next(store, NULL); ok && group;
         group = sl_store_next(store, group)) {
        bson_t array;
        if (group->array_length > 0 && !sl_store_is_used(store, group) &&
            bson_init_static(&array, sl_group_array(group), group->array_length))
            ok = write_group(unmatched, sl_group_key(group), group->key_length, &array,
                             group->records);
        if (ok && group->ordinal % 4096 == 0 && sl_interrupt_requested())
            ok = sl_error_set(unmatched->error, SL_EXIT_INTERRUPTED,
                              "interrupted: all documents are loaded, but the records that are in "
                              "no document have not been written to %s",
                              unmatched->path);
    }
    return ok;
}

static bool damaged(const sl_unmatched *unmatched, const char *path) {
    return sl_error_set(unmatched->error, SL_EXIT_USAGE,
                        "%s: it is damaged; start the load again, with another --work-dir", path);
}

/* Writes the records of the partition "apart", each as one line. */
static bool write_apart(sl_unmatched *unmatched, FILE *from, const char *path) {
    uint8_t *record = NULL;
    size_t room = 0;
    sl_partition_head head;
    sl_bson_facts unused;
    bool ok = true;
    while (ok && fread(&head, sizeof head, 1, from) == 1) {
        size_t rest = head.length - sizeof head;
        if (head.length < sizeof head || head.key_length > rest) {
            ok = damaged(unmatched, path);
            break;
        }
        if (rest > room) {
            uint8_t *more = realloc(record, rest);
            if (!more) {
                ok = sl_error_memory(unmatched->error, "writing records without a document");
                break;
            }
            record = more;
            room = rest;
        }
        bson_t document, array = BSON_INITIALIZER;
        ok = fread(record, rest, 1, from) == 1 || cannot(unmatched, "read", path);
        ok = ok &&
             ((sl_join_key_is_sound(record, head.key_length) &&
               sl_bson_check_alone(record + head.key_length, rest - head.key_length, &unused) ==
                   SL_BSON_VALID &&
               bson_init_static(&document, record + head.key_length, rest - head.key_length)) ||
              damaged(unmatched, path)) &&
             BSON_APPEND_DOCUMENT(&array, "0", &document) &&
             write_group(unmatched, record, head.key_length, &array, 1);
        bson_destroy(&array);
    }
    free(record);
    return ok && (!ferror(from) || cannot(unmatched, "read", path));
}

bool sl_embed_write_unmatched(const sl_embed *embed, const char *folder, const char *path,
                              uint64_t *count, sl_error *error) {
    sl_unmatched unmatched = {.embed = embed, .path = path, .error = error};
    char records[SL_PARTITION_PATH], apart[SL_PARTITION_PATH];
    snprintf(records, sizeof records, "%s/records", folder);
    sl_private_file_remove(path);
    FILE *from =
        sl_private_file_stream(sl_partition_path(records, SL_PARTITIONS, apart), O_RDONLY, error);
    bool ok = from && write_unused(&unmatched) && write_apart(&unmatched, from, apart);
    if (from)
        fclose(from);
    if (unmatched.file) {
        bool closed = fflush(unmatched.file) == 0 && fsync(fileno(unmatched.file)) == 0;
        closed = fclose(unmatched.file) == 0 && closed;
        ok = ok && (closed || cannot(&unmatched, "write", path));
    }
    *count = unmatched.count;
    return ok;
}
