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

/* What is read: nothing is set: all tables with all rows. */
typedef struct reading {
    size_t piece;              /* bytes per call */
    const char *include;       /* only tables of this name */
    const sl_sql_table *known; /* only this table */
    size_t most;               /* bytes of each table; 0: all */
} reading;

/* Returns the sum of a hash of each table's name, schema and rows. `*tables` (may be NULL): those
 * of a dump that is complete; the caller owns them. */
static uint64_t read_dump(const uint8_t *data, size_t size, reading how, sl_sql_table **tables) {
    memory m = {data, size, 0, how.piece ? how.piece : 65536};
    sl_input input = {.fetch = fetch, .context = &m, .name = "dump"}, *rows = NULL;
    sl_error error = {0};
    sl_reader_times times = {0};
    sl_sql_dump *dump;
    char text[200], out[1000];
    uint64_t sum = 0;
    bool ok = true;
    require(sl_input_init(&input, 65536, &error) &&
                sl_sql_dump_create(&input, how.include, &dump, &error),
            "allocation succeeds");
    sl_sql_dump_read_only(dump, how.known);
    while (ok && (ok = sl_sql_dump_next(dump, &rows, &times, &error)) && rows) {
        const char *schema = sl_sql_dump_schema(dump);
        uint64_t hash = hash_of(14695981039346656037u, schema, strlen(schema));
        hash = hash_of(hash, sl_sql_dump_name(dump), strlen(sl_sql_dump_name(dump)));
        require(sl_sql_dump_table(dump), "the table is defined");
        for (size_t got = 1; ok && got > 0;) {
            ok = sl_input_take(rows, out, how.most ? how.most : sizeof out, &got, &times, &error);
            hash = ok ? hash_of(hash, out, got) : hash;
            if (how.most)
                break;
        }
        sum += hash;
    }
    if (!ok) {
        check_error(&error);
        require(!how.known && !how.include, "a table that is known can be read again");
        sum = hash_of(sum, error.message, strlen(error.message));
    } else if (tables) {
        *tables = sl_sql_dump_take_tables(dump);
    }
    sl_sql_dump_passed_over(dump, text, sizeof text);
    sl_sql_dump_destroy(dump);
    sl_input_clear(&input);
    return sum;
}

/* The tables have rows at the same offsets as in a full reading. */
static void compare_ranges(const sl_sql_table *tables, const sl_sql_table *other) {
    for (; other; other = other->next) {
        const sl_sql_table *same = tables;
        while (same && strcmp(same->name, other->name) != 0)
            same = same->next;
        require(same && (other->rows.end == 0 || (other->rows.begin == same->rows.begin &&
                                                  other->rows.end == same->rows.end &&
                                                  other->rows.lines == same->rows.lines)),
                "the rows of a table are at the same offsets in each reading");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_sql_table *tables = NULL, *other = NULL;
    const uint64_t all = read_dump(data, size, (reading){0}, &tables);
    uint64_t each = 0;
    require(all == read_dump(data, size, (reading){.piece = 7}, NULL),
            "the tables do not depend on the pieces read");
    for (const sl_sql_table *table = tables; table; table = table->next) {
        if (table->rows.end == 0)
            continue;
        each += read_dump(data, size, (reading){.known = table}, NULL);
        if (strpbrk(table->name, "*?[\\"))
            continue;
        read_dump(data, size, (reading){.include = table->name, .most = 1}, &other);
        compare_ranges(tables, other);
        sl_sql_tables_destroy(other);
    }
    require(!tables || each == all, "a table that is read alone has the same rows");
    if (tables) {
        read_dump(data, size, (reading){.most = 1}, &other);
        compare_ranges(tables, other);
        sl_sql_tables_destroy(other);
    }
    sl_sql_tables_destroy(tables);
    return 0;
}
