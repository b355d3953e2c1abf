/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes src/source/sql_dump.c: the tables of a dump and their rows do not depend on the sizes of
 * the pieces that are read, nor on the other tables. Rows of INSERT statements end at line ends. A
 * dump that is not understood ends in an error message with a line. */
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

/* Reads all tables, or one that is known; returns the sum of a hash of each one's name, schema and
 * rows. `*tables` (may be NULL): those of a dump that is complete; the caller owns them. */
static uint64_t read_dump(const uint8_t *data, size_t size, size_t piece, const sl_sql_table *known,
                          sl_sql_table **tables) {
    memory m = {data, size, 0, piece};
    sl_input input = {.fetch = fetch, .context = &m, .name = "dump"}, *rows = NULL;
    sl_error error = {0};
    sl_reader_times times = {0};
    sl_sql_dump *dump;
    char text[200], out[1000];
    uint64_t sum = 0;
    bool ok = true;
    require(sl_input_init(&input, 65536, &error) && sl_sql_dump_create(&input, NULL, &dump, &error),
            "allocation succeeds");
    sl_sql_dump_read_only(dump, known);
    while (ok && (ok = sl_sql_dump_next(dump, &rows, &times, &error)) && rows) {
        const char *schema = sl_sql_dump_schema(dump);
        uint64_t hash = hash_of(14695981039346656037u, schema, strlen(schema));
        hash = hash_of(hash, sl_sql_dump_name(dump), strlen(sl_sql_dump_name(dump)));
        require(sl_sql_dump_table(dump), "the table is defined");
        for (size_t got = 1; ok && got > 0;) {
            ok = sl_input_take(rows, out, sizeof out, &got, &times, &error);
            hash = ok ? hash_of(hash, out, got) : hash;
        }
        sum += hash;
    }
    if (!ok) {
        check_error(&error);
        require(!known, "a table that is known can be read again");
        sum = hash_of(sum, error.message, strlen(error.message));
    } else if (tables) {
        *tables = sl_sql_dump_take_tables(dump);
    }
    sl_sql_dump_passed_over(dump, text, sizeof text);
    sl_sql_dump_destroy(dump);
    sl_input_clear(&input);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_sql_table *tables = NULL;
    const uint64_t all = read_dump(data, size, 65536, NULL, &tables);
    uint64_t each = 0;
    require(all == read_dump(data, size, 7, NULL, NULL),
            "the tables do not depend on the pieces read");
    for (const sl_sql_table *table = tables; table; table = table->next)
        each += table->rows.end > 0 ? read_dump(data, size, 65536, table, NULL) : 0;
    require(!tables || each == all, "a table that is read alone has the same rows");
    sl_sql_tables_destroy(tables);
    return 0;
}
