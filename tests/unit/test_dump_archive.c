/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of mongodump archives: generated archives, read in pieces, truncated and damaged. */
#include "unit.h"

#include <bson/bson.h>

#include "bson/bson_writer.h"
#include "bson/dump_archive.h"

typedef struct archive_text {
    uint8_t bytes[4096];
    size_t length;
} archive_text;

static void put(archive_text *text, const void *bytes, size_t length) {
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void put_document(archive_text *text, bson_t *document) {
    put(text, bson_get_data(document), document->len);
    bson_destroy(document);
}

static void put_number(archive_text *text, uint32_t number) {
    put(text, &number, sizeof number);
}

static void put_header(archive_text *text, const char *collection, bool end, uint64_t crc) {
    put_document(text, BCON_NEW("db", BCON_UTF8("d"), "collection", BCON_UTF8(collection), "EOF",
                                BCON_BOOL(end), "CRC", BCON_INT64((int64_t)crc)));
}

/* CRC-64 (ECMA-182), bit by bit. */
static uint64_t crc_of(uint64_t crc, const uint8_t *bytes, size_t length) {
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ UINT64_C(0xC96C5795D7870F42) : crc >> 1;
    }
    return ~crc;
}

/* Two collections, whose documents are interleaved: a has 1, 3; b has 2. */
static archive_text make_archive(void) {
    archive_text text = {.length = 0};
    uint64_t crc[2] = {0, 0};
    static const char *const names[] = {"a", "b"};
    put_number(&text, SL_DUMP_ARCHIVE_MAGIC);
    put_document(&text, BCON_NEW("version", BCON_UTF8("0.1")));
    for (int i = 0; i < 2; i++)
        put_document(&text, BCON_NEW("db", BCON_UTF8("d"), "collection", BCON_UTF8(names[i]),
                                     "metadata", BCON_UTF8("{}")));
    put_number(&text, UINT32_MAX);
    for (int i = 0; i < 3; i++) {
        put_header(&text, names[i % 2], false, 0);
        size_t begin = text.length;
        put_document(&text, BCON_NEW("_id", BCON_INT32(i + 1)));
        crc[i % 2] = crc_of(crc[i % 2], text.bytes + begin, text.length - begin);
        put_number(&text, UINT32_MAX);
    }
    for (int i = 0; i < 2; i++) {
        put_header(&text, names[i], true, crc[i]);
        put_number(&text, UINT32_MAX);
    }
    return text;
}

typedef struct reading {
    unsigned events[SL_DUMP_NO_MEMORY + 1];
    char documents[64]; /* "a1 b2 " */
    char why[100];
} reading;

/* Reads an archive whose bytes become known in pieces of `step` bytes. */
static reading read_archive(const archive_text *text, size_t step) {
    reading all = {0};
    sl_dump_archive *archive = sl_dump_archive_create();
    sl_dump_event event = SL_DUMP_MORE;
    assert_non_null(archive);
    for (size_t at = 0, known = 0; event < SL_DUMP_END;) {
        uint8_t *copy = malloc(known - at + SL_BSON_SLACK);
        sl_dump_item item;
        memcpy(copy, text->bytes + at, known - at);
        memset(copy + (known - at), 0xFF, SL_BSON_SLACK);
        event = sl_dump_next(archive, copy, known - at, known == text->length, &item);
        all.events[event]++;
        if (event == SL_DUMP_MORE)
            known = known + step < text->length ? known + step : text->length;
        else
            at += item.length;
        if (event == SL_DUMP_DOCUMENT) {
            size_t used = strlen(all.documents);
            snprintf(all.documents + used, sizeof all.documents - used, "%s%u ",
                     item.of->collection, item.document[9]);
        }
        if (event == SL_DUMP_DAMAGED)
            snprintf(all.why, sizeof all.why, "%s", item.why);
        if (event == SL_DUMP_END)
            assert_int_equal(at, text->length);
        free(copy);
    }
    sl_dump_archive_destroy(archive);
    return all;
}

TEST(documents_are_assigned_to_their_collections) {
    archive_text text = make_archive();
    for (size_t step = 1; step < text.length + 9; step += step < 20 ? 1 : 50) {
        reading all = read_archive(&text, step);
        assert_string_equal(all.documents, "a1 b2 a3 ");
        assert_int_equal(all.events[SL_DUMP_PRELUDE], 1);
        assert_int_equal(all.events[SL_DUMP_COLLECTION], 2);
        assert_int_equal(all.events[SL_DUMP_COMPLETE], 2);
        assert_int_equal(all.events[SL_DUMP_END], 1);
    }
}

TEST(names_are_not_longer_than_those_of_servers) {
    char name[300] = "";
    for (size_t length = 253; length <= 254; length++) {
        archive_text text = {.length = 0};
        put_number(&text, SL_DUMP_ARCHIVE_MAGIC);
        put_document(&text, BCON_NEW("version", BCON_UTF8("0.1")));
        memset(name, 'n', length);
        put_document(&text, BCON_NEW("db", BCON_UTF8("d"), "collection", BCON_UTF8(name),
                                     "metadata", BCON_UTF8("{}")));
        reading all = read_archive(&text, text.length);
        assert_int_equal(all.events[SL_DUMP_COLLECTION], length == 253);
    }
}

TEST(every_truncation_is_noticed) {
    archive_text text = make_archive();
    size_t full = text.length;
    for (text.length = 0; text.length < full; text.length++) {
        reading all = read_archive(&text, full);
        assert_int_equal(all.events[SL_DUMP_DAMAGED], 1);
        assert_true(all.why[0] != '\0');
    }
}

TEST(a_changed_byte_of_a_document_is_noticed) {
    archive_text text = make_archive();
    for (size_t at = 0; at < text.length; at++) {
        archive_text changed = text;
        changed.bytes[at] ^= 0x40;
        reading all = read_archive(&changed, text.length);
        /* A changed name, number or text of the metadata remains valid. */
        bool metadata = at < 130;
        assert_true(metadata || all.events[SL_DUMP_DAMAGED] == 1 ||
                    all.events[SL_DUMP_WRONG_CRC] > 0 || strcmp(all.documents, "a1 b2 a3 ") == 0);
    }
}

/* The first document of b is damaged: a3, in the next block, is found; b has a wrong CRC. */
TEST(reading_goes_on_behind_damage) {
    archive_text text = make_archive();
    bson_t *second = BCON_NEW("_id", BCON_INT32(2));
    uint8_t *at = memmem(text.bytes, text.length, bson_get_data(second), second->len);
    bson_destroy(second);
    assert_non_null(at);
    memset(at, 0xFE, 4);
    sl_dump_archive *archive = sl_dump_archive_create();
    char found[64] = "";
    size_t position = 0, length;
    for (sl_dump_event event = SL_DUMP_MORE; event != SL_DUMP_END;) {
        sl_dump_item item;
        uint8_t rest[sizeof text.bytes + SL_BSON_SLACK] = {0};
        memcpy(rest, text.bytes + position, text.length - position);
        event = sl_dump_next(archive, rest, text.length - position, true, &item);
        size_t used = strlen(found);
        if (event == SL_DUMP_DOCUMENT)
            snprintf(found + used, sizeof found - used, "%s%u ", item.of->collection,
                     item.document[9]);
        if (event == SL_DUMP_COMPLETE || event == SL_DUMP_WRONG_CRC)
            snprintf(found + used, sizeof found - used, "%s%s ", item.of->collection,
                     event == SL_DUMP_COMPLETE ? "+" : "?");
        if (event != SL_DUMP_DAMAGED) {
            position += item.length;
            continue;
        }
        assert_ptr_equal(text.bytes + position, at);
        assert_string_equal(item.of->collection, "b");
        assert_true(
            sl_dump_find_block(archive, rest + 1, text.length - position - 1, true, &length));
        position += 1 + length;
    }
    assert_string_equal(found, "a1 a3 a+ b? ");
    sl_dump_archive_destroy(archive);
}
