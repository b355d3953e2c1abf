/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over the parts of an archive; dump_archive.h has the layout. */
#include "dump_archive.h"
#include "bson_lookup.h"

#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>
#include <lzma.h>

#include "bson_check.h"
#include "bson_writer.h"
#include "util/grow.h"
#include "util/name_index.h"

#define TERMINATOR 0xFFFFFFFFu
#define HEADER_BYTES_MAX 2048u /* of a block */
#define NAME_BYTES_MAX 255u    /* of DATABASE.COLLECTION on a server */
#define NAMESPACES_MAX 250000u /* in memory */

typedef enum part { AT_MAGIC, AT_PRELUDE, AT_COLLECTIONS, AT_BLOCK, AT_DOCUMENTS, AT_EOF } part;

struct sl_dump_archive {
    part at;
    sl_dump_namespace *namespaces;
    size_t count, room;
    sl_name_index names;
    size_t current; /* index of the collection of the current block */
};

sl_dump_archive *sl_dump_archive_create(void) {
    return calloc(1, sizeof(sl_dump_archive));
}

void sl_dump_archive_destroy(sl_dump_archive *archive) {
    if (!archive)
        return;
    for (size_t i = 0; i < archive->count; i++) {
        free(archive->namespaces[i].database);
        free(archive->namespaces[i].collection);
    }
    free(archive->namespaces);
    sl_name_index_clear(&archive->names);
    free(archive);
}

static sl_dump_event damaged(sl_dump_item *item, const char *why) {
    item->why = why;
    return SL_DUMP_DAMAGED;
}

static bool list_names(sl_dump_archive *archive) {
    if (!sl_name_index_reset(&archive->names, archive->count))
        return false;
    for (size_t i = 0; i < archive->count; i++) {
        const sl_dump_namespace *one = &archive->namespaces[i];
        sl_name_index_add(&archive->names, sl_name_hash(one->database, one->collection), i);
    }
    return true;
}

const sl_dump_namespace *sl_dump_namespace_of(const sl_dump_archive *archive, const char *database,
                                              const char *collection) {
    uint64_t at = sl_name_hash(database, collection);
    for (size_t i; (i = sl_name_index_next(&archive->names, &at)) != SIZE_MAX;) {
        const sl_dump_namespace *found = &archive->namespaces[i];
        if (strcmp(found->database, database) == 0 && strcmp(found->collection, collection) == 0)
            return found;
    }
    return NULL;
}

/* Finds the namespace, or adds it. False without memory. */
static bool find_namespace(sl_dump_archive *archive, const char *database, const char *collection) {
    const uint64_t hash = sl_name_hash(database, collection);
    const sl_dump_namespace *known = sl_dump_namespace_of(archive, database, collection);
    archive->current = known ? (size_t)(known - archive->namespaces) : archive->count;
    if (known)
        return true;
    if (sl_name_index_is_full(&archive->names) && !list_names(archive))
        return false;
    sl_dump_namespace *namespaces =
        sl_grow(archive->namespaces, archive->count, &archive->room, sizeof *namespaces);
    if (!namespaces)
        return false;
    archive->namespaces = namespaces;
    sl_dump_namespace made = {.database = strdup(database), .collection = strdup(collection)};
    sl_name_index_add(&archive->names, hash, archive->count);
    archive->namespaces[archive->count++] = made;
    return made.database && made.collection;
}

/* Is it the metadata of a view? Before mongodump 4.2 they had no type. */
static bool is_view(const bson_t *document) {
    const char *type = sl_look_text(document, "type"),
               *metadata = sl_look_text(document, "metadata");
    return (type && strcmp(type, "view") == 0) ||
           (!type && metadata && strstr(metadata, "\"viewOn\"") != NULL);
}

/* Enters the namespace that a collection's metadata or a block's header names. */
static sl_dump_event enter(sl_dump_archive *archive, const bson_t *document, sl_dump_item *item) {
    const char *database = sl_look_text(document, "db"),
               *collection = sl_look_text(document, "collection");
    if (!database || !collection)
        return damaged(item, "a header names no database and collection");
    if (strlen(database) + strlen(collection) >= NAME_BYTES_MAX || archive->count == NAMESPACES_MAX)
        return damaged(item, "a name of more than 255 bytes, or more than 250000 collections");
    if (!find_namespace(archive, database, collection))
        return SL_DUMP_NO_MEMORY;
    item->of = &archive->namespaces[archive->current];
    return SL_DUMP_COLLECTION;
}

/* Reads the header of a block. The header of a collection's last block has its CRC. */
static sl_dump_event begin_block(sl_dump_archive *archive, const bson_t *header,
                                 sl_dump_item *item) {
    bson_iter_t iter;
    sl_dump_event event = enter(archive, header, item);
    if (event != SL_DUMP_COLLECTION)
        return event;
    sl_dump_namespace *of = &archive->namespaces[archive->current];
    if (of->complete)
        return damaged(item, "a collection continues after its last block");
    archive->at = AT_DOCUMENTS;
    if (!sl_look_flag(header, "EOF"))
        return SL_DUMP_SKIPPED;
    of->complete = true;
    archive->at = AT_EOF;
    return bson_iter_init_find(&iter, header, "CRC") && BSON_ITER_HOLDS_INT64(&iter) &&
                   (uint64_t)bson_iter_int64(&iter) == of->crc
               ? SL_DUMP_COMPLETE
               : SL_DUMP_WRONG_CRC;
}

static sl_dump_event take_document(sl_dump_archive *archive, sl_dump_item *item) {
    bson_t view;
    sl_dump_event event;
    sl_dump_namespace *of;
    if (!bson_init_static(&view, item->document, item->length))
        return damaged(item, "a document is damaged");
    switch (archive->at) {
    case AT_PRELUDE:
        archive->at = AT_COLLECTIONS;
        return SL_DUMP_PRELUDE;
    case AT_COLLECTIONS:
        event = enter(archive, &view, item);
        if (event == SL_DUMP_COLLECTION)
            archive->namespaces[archive->current].view = is_view(&view);
        return event;
    case AT_BLOCK:
        event = begin_block(archive, &view, item);
        item->document = NULL;
        return event;
    case AT_DOCUMENTS:
        of = &archive->namespaces[archive->current];
        of->documents++;
        of->crc = lzma_crc64(item->document, item->length, of->crc); /* ECMA-182 */
        item->of = of;
        return SL_DUMP_DOCUMENT;
    default:
        return damaged(item, "a document follows the last block of a collection");
    }
}

static sl_dump_event take_terminator(sl_dump_archive *archive, sl_dump_item *item) {
    item->length = 4;
    if (archive->at == AT_PRELUDE || archive->at == AT_BLOCK)
        return damaged(item, "a terminator is found instead of a document");
    archive->at = AT_BLOCK;
    return SL_DUMP_SKIPPED;
}

static sl_dump_event at_end(const sl_dump_archive *archive, sl_dump_item *item) {
    if (archive->at != AT_BLOCK)
        return damaged(item, "the archive is truncated");
    for (size_t i = 0; i < archive->count; i++) {
        const sl_dump_namespace *one = &archive->namespaces[i];
        if (!one->complete && !(one->view && one->documents == 0)) {
            item->of = &archive->namespaces[i];
            return damaged(item, "the archive is truncated: a collection is not complete");
        }
    }
    return SL_DUMP_END;
}

static sl_dump_event next(sl_dump_archive *archive, const uint8_t *bytes, size_t available,
                          bool ended, sl_dump_item *item) {
    sl_bson_facts facts;
    uint32_t word;
    *item = (sl_dump_item){0};
    if (available < sizeof word)
        return !ended           ? SL_DUMP_MORE
               : available == 0 ? at_end(archive, item)
                                : damaged(item, "the archive is truncated");
    memcpy(&word, bytes, sizeof word);
    if (archive->at == AT_MAGIC) {
        if (word != SL_DUMP_ARCHIVE_MAGIC)
            return damaged(item, "this is not an archive of mongodump");
        archive->at = AT_PRELUDE;
        item->length = sizeof word;
        return SL_DUMP_SKIPPED;
    }
    if (word == TERMINATOR)
        return take_terminator(archive, item);
    switch (sl_bson_check(bytes, available, &facts)) {
    case SL_BSON_MORE:
        return ended ? damaged(item, "the archive is truncated within a document") : SL_DUMP_MORE;
    case SL_BSON_INVALID:
        return damaged(item, facts.why);
    default:
        item->document = bytes;
        item->length = facts.length;
        return take_document(archive, item);
    }
}

sl_dump_event sl_dump_next(sl_dump_archive *archive, const uint8_t *bytes, size_t available,
                           bool ended, sl_dump_item *item) {
    sl_dump_event event = next(archive, bytes, available, ended, item);
    if (event == SL_DUMP_DAMAGED && archive->at == AT_DOCUMENTS && !item->of)
        item->of = &archive->namespaces[archive->current];
    return event;
}

const sl_dump_namespace *sl_dump_namespaces(const sl_dump_archive *archive, size_t *count) {
    *count = archive->count;
    return archive->namespaces;
}

/* ---- after damage ---- */

/* Is a valid header of a block at `bytes`? SL_BSON_MORE: that cannot be decided yet. */
static sl_bson_verdict check_header(const uint8_t *bytes, size_t available, bool ended) {
    sl_bson_facts facts;
    bson_t header;
    bson_iter_t iter;
    uint32_t length;
    if (available < sizeof length)
        return ended ? SL_BSON_INVALID : SL_BSON_MORE;
    memcpy(&length, bytes, sizeof length);
    if (length > HEADER_BYTES_MAX)
        return SL_BSON_INVALID;
    sl_bson_verdict verdict = sl_bson_check(bytes, available, &facts);
    if (verdict != SL_BSON_VALID)
        return verdict == SL_BSON_MORE && !ended ? SL_BSON_MORE : SL_BSON_INVALID;
    return bson_init_static(&header, bytes, facts.length) && sl_look_text(&header, "db") &&
                   sl_look_text(&header, "collection") &&
                   bson_iter_init_find(&iter, &header, "EOF") &&
                   bson_iter_init_find(&iter, &header, "CRC") && BSON_ITER_HOLDS_INT64(&iter)
               ? SL_BSON_VALID
               : SL_BSON_INVALID;
}

bool sl_dump_find_block(sl_dump_archive *archive, const uint8_t *bytes, size_t available,
                        bool ended, size_t *length) {
    size_t at = 0;
    for (; archive->at >= AT_BLOCK && available - at >= 4; at++) {
        uint32_t word;
        memcpy(&word, bytes + at, sizeof word);
        if (word != TERMINATOR)
            continue;
        sl_bson_verdict verdict = check_header(bytes + at + 4, available - at - 4, ended);
        if (verdict == SL_BSON_INVALID)
            continue;
        *length = verdict == SL_BSON_VALID ? at + 4 : at;
        if (verdict == SL_BSON_VALID)
            archive->at = AT_BLOCK;
        return verdict == SL_BSON_VALID;
    }
    *length = ended || archive->at < AT_BLOCK ? available : at;
    return false;
}
