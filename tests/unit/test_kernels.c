/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of each instruction set, compared with the portable ones on the same generated
 * rows: documents, rejects and counts must be equal byte for byte. A difference would store
 * different documents on different processors.
 *
 * A second test compares two functions of one set that read the same records.
 *
 * There are two tests per instruction set; sets that this build or this processor lacks are
 * skipped. */
#include "unit.h"

#include <bson/bson.h>

#include "format/format.h"
#include "util/document_id.h"

#include "format/kernels.h"
#include "simd_rows.h"

#define ROUNDS 12u        /* texts per layout */
#define PIECES 400u       /* pieces per text that are checked for UTF-8 */
#define ROWS 700u         /* rows per text */
#define BATCH_BYTES 70000 /* more than the document of any row */

/* ---- a growing buffer ---- */

typedef struct bytes {
    char *at;
    size_t used, room;
} bytes;

static void add(bytes *to, const void *from, size_t length) {
    if (to->room - to->used < length) {
        to->room = (to->room + length) * 2;
        to->at = realloc(to->at, to->room);
        assert_non_null(to->at);
    }
    if (length > 0)
        memcpy(to->at + to->used, from, length);
    to->used += length;
}

static void add_text(bytes *to, const char *text) {
    add(to, text, strlen(text));
}

/* ---- generated rows ---- */

static uint64_t state;

/* A random number below `limit`, by xorshift, so that all machines generate the same rows. */
static uint32_t draw(uint32_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % limit;
}

/* Short lengths, and lengths around the widths of vectors. */
static size_t draw_length(void) {
    static const uint8_t widths[] = {16, 32, 64, 128};
    return draw(3) ? draw(14) : (size_t)widths[draw(4)] + draw(4) - 2;
}

static void add_word(bytes *to, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char letter = (char)('a' + draw(26));
        add(to, &letter, 1);
    }
}

static void add_number(bytes *to) {
    static const char *const whole[] = {"0",
                                        "-1",
                                        "2147483647",
                                        "-2147483648",
                                        "2147483648",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "007",
                                        "+5"};
    char text[40];
    if (draw(4) == 0)
        snprintf(text, sizeof text, "%s", whole[draw(9)]);
    else
        snprintf(text, sizeof text, "%s%u", draw(5) ? "" : "-", draw(1u << draw(31)));
    add_text(to, text);
}

static void add_decimal(bytes *to) {
    static const char *const odd[] = {"1e308", "-0.0", ".5", "5.", "1e", "0x1", "nan", "1.5.2"};
    char text[40];
    if (draw(4) == 0)
        snprintf(text, sizeof text, "%s", odd[draw(8)]);
    else
        snprintf(text, sizeof text, "%u.%0*u", draw(100000), (int)draw(9) + 1, draw(10000));
    add_text(to, text);
}

static void add_date(bytes *to) {
    static const char *const odd[] = {"NULL",       "2021-02-29", "2020-13-01",
                                      "2020-1-1",   "0000-00-00", "2020-02-29T12:00:00.123Z",
                                      "9999-12-31", "20200101"};
    char text[64];
    if (draw(4) == 0)
        snprintf(text, sizeof text, "%s", odd[draw(8)]);
    else
        snprintf(text, sizeof text, draw(2) ? "%04u-%02u-%02u" : "%04u-%02u-%02u %02u:00:59",
                 1900 + draw(200), 1 + draw(12), 1 + draw(28), draw(24));
    add_text(to, text);
}

/* Characters of two to four bytes, and invalid sequences, at any position of a vector. */
static void add_unicode(bytes *to) {
    static const char *const pieces[] = {
        "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x9A\x97", "\xEF\xBB\xBF", "\xC2\x80", "\xED\x9F\xBF",
        "\xF4\x8F\xBF\xBF",
        /* not UTF-8: */
        "\xE9", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x9A", "\xC0\xAF", "\xE0\x80\xAF",
        "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xF8\x88\x80\x80\x80"};
    add_word(to, draw(70));
    add_text(to, pieces[draw(10) ? draw(7) : draw(18)]);
    add_word(to, draw(4) ? draw(3) : draw(70));
}

static void add_quoted(bytes *to, char delimiter) {
    add_text(to, "\"");
    for (uint32_t i = draw(5); i > 0; i--) {
        add_word(to, draw_length());
        if (draw(2))
            add_text(to, draw(3) ? "\"\"" : "\\\"");
        if (draw(2))
            add(to, &delimiter, 1);
        if (draw(200) == 0)
            add_text(to, "\n");
    }
    add_text(to, draw(30) ? "\"" : draw(2) ? "\"x" : "");
}

static void add_odd(bytes *to) {
    static const char odd[] = "\0\\\"\r\t \x7F\x01";
    static const char *const words[] = {"n/a", "NULL", "99", "Y", "N", " spaces ", "\t", "   "};
    if (draw(6) == 0)
        add(to, &odd[draw(sizeof odd - 1)], 1);
    else
        add_text(to, words[draw(8)]);
}

/* Adds a field of this kind; sometimes of another kind, or a number or date with a wrong byte,
 * mostly one that is close to a digit. */
static void add_field(bytes *to, char kind, char delimiter) {
    static const char wrong[] = "/:;-+ .\x01\x7F\x80\xB0\xB5\xFF";
    const size_t begin = to->used;
    if (draw(25) == 0)
        kind = "wndtuqo-"[draw(8)];
    switch (kind) {
    case 'n':
        add_number(to);
        break;
    case 'd':
        add_decimal(to);
        break;
    case 't':
        add_date(to);
        break;
    case 'u':
        add_unicode(to);
        break;
    case 'q':
        add_quoted(to, delimiter);
        break;
    case 'o':
        add_odd(to);
        break;
    case 'w':
        add_word(to, draw_length());
        break;
    default:
        break;
    }
    if (strchr("ndt", kind) && draw(15) == 0)
        to->at[begin + draw((uint32_t)(to->used - begin))] = wrong[draw(sizeof wrong - 1)];
}

typedef struct layout {
    const char *name, *format, *schema, *header; /* NULL header: none */
    const char *kinds;                           /* one letter per column, see add_field */
    char delimiter;
    sl_format_options options;
    bool divided; /* as by sl_quoted_splitter: quoted fields may contain line ends */
} layout;

static const char typed[] = "name: typed\n"
                            "columns:\n"
                            "  - {name: i, type: int, minimum: -9}\n"
                            "  - {name: d, type: double}\n"
                            "  - {name: t, type: datetime, missing: [\"NULL\"]}\n"
                            "  - {name: c, type: code, missing: [\"99\"]}\n"
                            "  - {name: u}\n"
                            "  - {name: q}\n"
                            "  - {name: s, missing: [n/a]}\n";
static const char bare[] = "name: bare\n"
                           "delimiter: tab\n"
                           "header: false\n"
                           "trim: true\n"
                           "columns: [{name: w}, {name: u}, {name: n, type: int}]\n";
static const char mot_header[] =
    "test_id|vehicle_id|test_date|test_class_id|test_type|test_result|test_mileage|"
    "postcode_area|make|model|colour|fuel_type|cylinder_capacity|first_use_date";

static const layout layouts[] = {
    {"quoted", "delimited", typed, "i,d,t,c,u,q,s", "ndtnuqo", ',', .options = {0}},
    {"plain", "delimited", NULL, "a|b|c|d", "wnww", '|', .options = {0}},
    {"unicode", "delimited", NULL, "a|b|c", "uwu", '|', .options = {0}},
    {"latin-1, trimmed", "delimited", typed, "i,d,t,c,u,q,s", "ndtnuwo", ',',
     .options = {.encoding = "latin-1", .trim = true}},
    {"without a header", "delimited", bare, NULL, "oun", '\t', .options = {0}},
    {"divided", "delimited", typed, "i,d,t,c,u,q,s", "ndtnuqo", ',', .divided = true},
    {"mot", "mot", NULL, mot_header, "nntnwwnwwuwwnt", '|', .options = {0}},
    {"mot, latin-1", "mot", NULL, mot_header, "nntnwwnwwuwwnt", '|',
     .options = {.encoding = "latin-1"}},
};

static void make_text(const layout *one, uint64_t seed, bytes *text) {
    state = seed * 0x9E3779B97F4A7C15u + 1;
    text->used = 0;
    if (one->header) {
        add_text(text, one->header);
        add_text(text, "\n");
    }
    for (unsigned row = 0; row < ROWS; row++) {
        const size_t kinds = strlen(one->kinds);
        size_t columns = kinds;
        uint32_t luck = draw(60);
        bool clean = row < 4; /* the format is recognised by the first rows */
        if (!clean && luck == 0)
            columns = draw(20);
        for (size_t i = 0; i < columns; i++) {
            if (i > 0)
                add(text, &one->delimiter, 1);
            if (clean && one->kinds[i] != 'n' && one->kinds[i] != 't')
                add_word(text, 3);
            else if (clean)
                add_text(text, one->kinds[i] == 'n' ? "7" : "2020-01-01");
            else
                add_field(text, i < kinds ? one->kinds[i] : 'w', one->delimiter);
        }
        if (!clean && luck == 1)
            add_word(text, 3000); /* a long line */
        add_text(text, !clean && luck == 2 ? "\r\n" : !clean && luck == 3 ? "\n\n" : "\n");
        if (!clean && luck == 4 && one->header) {
            add_text(text, one->header);
            add_text(text, "\n");
        }
    }
    if (seed % 2)
        text->used--; /* no line feed at the end */
}

/* ---- parsing ---- */

typedef struct outcome {
    bytes documents, rejects;
    sl_parse_counts counts;
    char *batch;
    size_t misread_end; /* end of the line that would be misread and ended the parsing; 0: none */
} outcome;

static bool on_full(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    assert_true(need <= BATCH_BYTES);
    add(&o->documents, o->batch, (size_t)((char *)sink->cursor - o->batch));
    sink->cursor = (uint8_t *)o->batch;
    sink->documents = 0;
    return true;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    outcome *o = sink->context;
    char place[100];
    snprintf(place, sizeof place, "\n%llu:%u:", (unsigned long long)reject->offset, reject->line);
    add_text(&o->rejects, place);
    add_text(&o->rejects, reject->column ? reject->column : "");
    add_text(&o->rejects, reject->reason);
    add(&o->rejects, reject->record.bytes, reject->record.length);
    if (reject->misread)
        o->misread_end = (size_t)reject->offset + reject->record.length;
}

/* Parses the text in blocks of about `step` bytes; 0, or a divided text: in one block. */
static void parse(const layout *one, const char *simd, const bytes *text, size_t step, outcome *o) {
    const sl_format *format = sl_format_named(one->format);
    sl_format_options options = one->options;
    sl_plan *plan = NULL;
    sl_dialect *dialect = NULL;
    sl_error error = {0};
    options.schema_text = one->schema;
    options.schema_name = "kernels.yaml";
    setenv("SHARDLOAD_SIMD", simd, 1);
    memset(o, 0, sizeof *o);
    o->batch = malloc(BATCH_BYTES + SL_SLACK);
    assert_non_null(o->batch);
    if (!sl_format_plan_create(format, &options, &plan, &error) ||
        !format->sniff(plan, "text", (sl_text){text->at, text->used}, true, &dialect, &error))
        fail_msg("%s: %s", one->name, error.message);
    sl_sink sink = {.cursor = (uint8_t *)o->batch,
                    .limit = (uint8_t *)o->batch + BATCH_BYTES,
                    .documents_limit = 50,
                    .full = on_full,
                    .reject = on_reject,
                    .context = o};
    for (size_t at = 0, end; at < text->used; at = end) {
        end = text->used;
        if (step > 0 && !one->divided && at + step < end) {
            const char *line = memchr(text->at + at + step, '\n', end - at - step);
            end = line ? (size_t)(line - text->at) + 1 : end;
        }
        char *copy = malloc(end - at + SL_SLACK);
        assert_non_null(copy);
        memcpy(copy, text->at + at, end - at);
        memset(copy + (end - at), step % 2 ? '"' : '9', SL_SLACK); /* must not affect the result */
        sl_block block = {.text = {copy, end - at},
                          .offset = at,
                          .id_base = sl_document_id(1, 0),
                          .divided = one->divided};
        o->misread_end = 0;
        assert_true(format->parse(plan, dialect, &block, &sink, &o->counts) ==
                    (o->misread_end == 0));
        if (o->misread_end > 0) { /* the next block starts after that line */
            const char *line = memchr(text->at + o->misread_end, '\n', text->used - o->misread_end);
            end = line ? (size_t)(line - text->at) + 1 : text->used;
        }
        free(copy);
    }
    on_full(&sink, 0);
    free(o->batch);
    sl_format_dialect_destroy(format, dialect);
    sl_format_plan_destroy(format, plan);
    unsetenv("SHARDLOAD_SIMD");
}

static void clear(outcome *o) {
    free(o->documents.at);
    free(o->rejects.at);
}

static void assert_same(const char *what, const layout *one, unsigned round, const bytes *a,
                        const bytes *b) {
    size_t shorter = a->used < b->used ? a->used : b->used, at = 0;
    while (at < shorter && a->at[at] == b->at[at])
        at++;
    if (at < a->used || at < b->used)
        fail_msg("%s, text %u: %s differ at byte %zu: %zu bytes instead of %zu", one->name, round,
                 what, at, b->used, a->used);
}

/* ---- the tests ---- */

static const sl_simd *simd_named(const char *name) {
    for (size_t i = 0; sl_simds[i]; i++) {
        if (strcmp(sl_simd_name(sl_simds[i]), name) == 0)
            return sl_simd_supported(sl_simds[i]) ? sl_simds[i] : NULL;
    }
    return NULL;
}

/* Compares the UTF-8 check of random pieces of the text; returns the number of valid pieces.
 * Comparing documents would not detect a wrong "invalid", which only leads to a slower path. */
static uint64_t compare_utf8(const sl_simd *simd, const sl_simd *portable, const bytes *text) {
    uint64_t valid = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        size_t at = draw((uint32_t)text->used), left = text->used - at;
        size_t length = draw(300);
        char *copy = malloc(length + SL_SLACK);
        assert_non_null(copy);
        memset(copy, '\xC3',
               length + SL_SLACK); /* bytes after the piece must not affect the result */
        length = length < left ? length : left;
        memcpy(copy, text->at + at, length);
        bool is = portable->utf8_valid(copy, length);
        if (simd->utf8_valid(copy, length) != is)
            fail_msg("%zu bytes at %zu: %s and portable differ on whether they are UTF-8", length,
                     at, simd->name);
        valid += is;
        free(copy);
    }
    return valid;
}

static void gives_the_same_as_portable(void **named) {
    static const size_t steps[] = {0, 777, 20001};
    const char *name = *named;
    uint64_t documents = 0, rejects = 0, valid = 0;
    bytes text = {0};
    if (!simd_named(name)) {
        print_message("# %s: not supported by this build or processor\n", name);
        skip();
    }
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            outcome portable, other;
            size_t step = steps[round % 3];
            make_text(&layouts[l], l * 1000 + round, &text);
            parse(&layouts[l], "portable", &text, step, &portable);
            parse(&layouts[l], name, &text, step, &other);
            assert_same("documents", &layouts[l], round, &portable.documents, &other.documents);
            assert_same("rejects", &layouts[l], round, &portable.rejects, &other.rejects);
            assert_memory_equal(&portable.counts, &other.counts, sizeof other.counts);
            valid += compare_utf8(simd_named(name), simd_named("portable"), &text);
            documents += other.counts.documents;
            rejects += other.counts.rejects;
            clear(&portable);
            clear(&other);
        }
    }
    free(text.at);
    print_message("# %s: %llu documents and %llu rejects, equal to portable\n", name,
                  (unsigned long long)documents, (unsigned long long)rejects);
    assert_true(documents > 10000 && rejects > 1000 && valid > 10000);
}

/* Records whose quotes are all regular. About every eighth row has a `Q` within a field. */
static void make_regular_text(uint64_t seed, bytes *text) {
    static const char *const inside[] = {"\"\"", ",", "\n", "\r\n", "\xC3\xA9", " "};
    state = seed * 0x9E3779B97F4A7C15u + 1;
    text->used = 0;
    add_text(text, "a,b,c,d\n");
    for (unsigned row = 0; row < ROWS; row++) {
        add_number(text);
        add_text(text, draw(9) ? ",\"" : ",\"\"\"");
        for (uint32_t i = draw(6); i > 0; i--) {
            add_word(text, draw_length());
            add_text(text, inside[draw(6)]);
        }
        add_text(text, "\",");
        add_word(text, draw_length());
        add_text(text, draw(2) ? ",\"\"" : ",");
        if (text->at[text->used - 1] == ',' && draw(4) == 0)
            add_text(text, "oQo");
        add_text(text, draw(20) ? "\n" : "\r\n");
    }
}

static void replace_marks(bytes *text) {
    for (size_t i = 0; i < text->used; i++)
        text->at[i] = text->at[i] == 'Q' ? '"' : text->at[i];
}

/* A quote within a field without quotes makes a stretch irregular, so another function reads it.
 * The results must differ in that letter only. */
static void regular_stretches_give_the_same_as_others(void **named) {
    static const layout regular = {"regular", "delimited", NULL, "a,b,c,d",
                                   "",        ',',         {0},  .divided = true};
    const char *name = *named;
    uint64_t documents = 0;
    bytes text = {0};
    if (!simd_named(name))
        skip();
    for (unsigned round = 0; round < ROUNDS; round++) {
        outcome with, without;
        make_regular_text(round, &text);
        parse(&regular, name, &text, 0, &without);
        replace_marks(&text);
        parse(&regular, name, &text, 0, &with);
        replace_marks(&without.documents);
        replace_marks(&with.documents); /* `Q` may be a byte of an _id */
        assert_same("documents", &regular, round, &without.documents, &with.documents);
        assert_same("rejects", &regular, round, &without.rejects, &with.rejects);
        assert_memory_equal(&without.counts, &with.counts, sizeof with.counts);
        assert_int_equal(with.counts.records, ROWS);
        documents += with.counts.documents;
        clear(&with);
        clear(&without);
    }
    free(text.at);
    assert_true(documents > ROUNDS * ROWS / 2);
}

RUN_TESTS {
    static char names[][9] = {"sse2", "avx2", "neon", "portable"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[2 * COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] = (struct CMUnitTest){names[i], gives_the_same_as_portable, NULL, NULL, names[i]};
        tests[COUNT + i] = (struct CMUnitTest){names[i], regular_stretches_give_the_same_as_others,
                                               NULL, NULL, names[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
