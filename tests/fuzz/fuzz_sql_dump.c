/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes src/source/sql_dump.c: the tables of a dump and their rows do not depend on the sizes of
 * the pieces that are read. Rows of INSERT statements end at line ends. A dump that is not
 * understood ends in an error message with a line. */
#include <string.h>

#include "source/sql_dump.h"

#include "check.h"

typedef struct memory {
    const uint8_t *bytes;
    size_t length, at, piece; /* bytes per call */
} memory;

static bool fetch(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    memory *m = input->context;
    size_t length = m->length - m->at < m->piece ? m->length - m->at : m->piece;
    (void)times;
    (void)error;
    *got = length < room ? length : room;
    memcpy(out, m->bytes + m->at, *got);
    m->at += *got;
    return true;
}

static uint64_t hash_of(uint64_t hash, const void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* Reads all tables; returns a hash of their names, schemas and rows. */
static uint64_t read_dump(const uint8_t *data, size_t size, size_t piece) {
    memory m = {data, size, 0, piece};
    sl_input input = {.fetch = fetch, .context = &m, .name = "dump"}, *rows = NULL;
    sl_error error = {0};
    sl_reader_times times = {0};
    sl_sql_dump *dump;
    char text[200], out[1000];
    uint64_t hash = 14695981039346656037u;
    bool ok = true;
    require(sl_input_init(&input, 65536, &error) && sl_sql_dump_create(&input, NULL, &dump, &error),
            "allocation succeeds");
    while (ok && (ok = sl_sql_dump_next(dump, &rows, &times, &error)) && rows) {
        const char *schema = sl_sql_dump_schema(dump);
        hash = hash_of(hash, sl_sql_dump_name(dump), strlen(sl_sql_dump_name(dump)));
        hash = hash_of(hash, schema, strlen(schema));
        size_t got = 1;
        while (ok && got > 0) {
            ok = sl_input_take(rows, out, sizeof out, &got, &times, &error);
            hash = ok ? hash_of(hash, out, got) : hash;
        }
        sl_sql_dump_primary_key(dump, sl_sql_dump_name(dump));
    }
    if (!ok) {
        check_error(&error);
        hash = hash_of(hash, error.message, strlen(error.message));
    }
    sl_sql_dump_passed_over(dump, text, sizeof text);
    sl_sql_dump_destroy(dump);
    sl_input_clear(&input);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    require(read_dump(data, size, 65536) == read_dump(data, size, 7),
            "the tables do not depend on the pieces read");
    return 0;
}
