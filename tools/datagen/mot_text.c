// SPDX-License-Identifier: Apache-2.0
//
// MOT tests as text.
//
// A plain record is copied from prepared pieces, with delimiters: the codes of class, type and
// result, the area, the make and model, the colour, the fuel. Irregular records (with a missing
// value, or a name that is not in the tables) and bad records are written field by field.
#include <stdlib.h>
#include <string.h>

#include "mot.h"

// A record in fields that are not yet quoted.
struct fields {
    int count;
    struct field {
        size_t length;
        bool is_text;
        char text[NAME_BYTES + 40];
    } items[COL_COUNT + 1];
};

// ---- writing ----

static char *put_bytes(char *p, const char *text, size_t length) {
    memcpy(p, text, length);
    return p + length;
}

// Writes a field, quoted as in the dialect.
static char *put_field(const struct mot_dialect *dialect, char *p, const char *text, size_t length,
                       bool is_text) {
    bool quoted = dialect->quoting == QUOTE_ALL_TEXT && is_text;
    if (dialect->quoting == QUOTE_WHEN_NEEDED || (dialect->quoting == QUOTE_ALL_TEXT && !is_text)) {
        quoted =
            memchr(text, '"', length) != NULL || memchr(text, dialect->delimiter, length) != NULL;
    }
    if (!quoted) {
        return put_bytes(p, text, length);
    }
    *p++ = '"';
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            *p++ = '\\';
        }
        *p++ = text[i];
    }
    *p++ = '"';
    return p;
}

static char *put_text(const struct mot_dialect *dialect, char *p, const char *text) {
    p = put_field(dialect, p, text, strlen(text), true);
    *p++ = dialect->delimiter;
    return p;
}

// Copies a piece. The fixed size lets the compiler copy with a few wide moves; the bytes after the
// piece are overwritten by the next piece.
static inline char *put_piece(char *p, const struct piece *piece) {
    memcpy(p, piece->text, 32);
    return p + piece->length;
}

static inline char *put_name_piece(char *p, const struct name_piece *piece) {
    memcpy(p, piece->text, 32);
    if (piece->length > 32) {
        memcpy(p + 32, piece->text + 32, NAME_PIECE_BYTES - 32);
    }
    return p + piece->length;
}

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static inline char *put_number(char *p, uint32_t number) {
    int digits = number < 10           ? 1
                 : number < 100        ? 2
                 : number < 1000       ? 3
                 : number < 10000      ? 4
                 : number < 100000     ? 5
                 : number < 1000000    ? 6
                 : number < 10000000   ? 7
                 : number < 100000000  ? 8
                 : number < 1000000000 ? 9
                                       : 10;
    char *end = p + digits;
    p = end;
    while (number >= 100) {
        p -= 2;
        memcpy(p, &digit_pairs[number % 100 * 2], 2);
        number /= 100;
    }
    if (number >= 10) {
        memcpy(p - 2, &digit_pairs[number * 2], 2);
    } else {
        p[-1] = (char)('0' + number);
    }
    return end;
}

static inline char *put_day(char *p, const struct mot_day *day, bool quoted) {
    if (quoted) {
        *p++ = '"';
    }
    memcpy(p, day->text, 10);
    p += 10;
    if (quoted) {
        *p++ = '"';
    }
    return p;
}

// ---- set-up ----

static void set_piece(struct piece *piece, const struct mot_dialect *dialect, const char *text) {
    piece->length = (uint8_t)(put_text(dialect, piece->text, text) - piece->text);
}

static void make_codes(struct mot_text *text) {
    const struct mot_dialect *dialect = text->dialect;
    for (unsigned class = 0; class < CLASS_IDS; class ++) {
        for (unsigned type = 0; type < TYPE_COUNT; type++) {
            for (unsigned result = 0; result < RESULT_COUNT; result++) {
                struct piece *piece = &text->codes[class][type][result];
                char *p = put_number(piece->text, class);
                *p++ = dialect->delimiter;
                p = put_text(dialect, p, mot_type_code(dialect, (enum mot_type)type));
                p = put_text(dialect, p, mot_results[result]);
                piece->length = (uint8_t)(p - piece->text);
            }
        }
    }
}

bool mot_text_init(struct mot_text *text, const struct mot_fleet *fleet) {
    const struct mot_dialect *dialect = fleet->dialect;
    text->dialect = dialect;
    text->fleet = fleet;
    text->columns = dialect->completed ? COL_COUNT : COL_COMPLETED;
    make_codes(text);
    for (uint32_t i = 0; i < fleet->areas.count; i++) {
        set_piece(&text->areas[i], dialect, fleet->areas.texts[i]);
    }
    for (uint32_t i = 0; i < fleet->colours.count; i++) {
        set_piece(&text->colours[i], dialect, fleet->colours.texts[i]);
    }
    for (unsigned i = 0; i < FUEL_COUNT; i++) {
        set_piece(&text->fuels[i], dialect, mot_fuel_code(dialect, i));
    }
    const struct name_set *models = &fleet->names.models;
    text->models = calloc(models->count, sizeof *text->models);
    if (text->models == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < models->count; i++) {
        const struct name *model = &models->items[i];
        const struct name *make = &fleet->names.makes.items[model->owner];
        char *start = text->models[i].text;
        char *p = put_field(dialect, start, make->text, make->length, true);
        *p++ = dialect->delimiter;
        p = put_field(dialect, p, model->text, model->length, true);
        *p++ = dialect->delimiter;
        text->models[i].length = (uint8_t)(p - start);
    }
    return true;
}

// ---- lines ----

char *mot_text_header(const struct mot_text *text, char *p) {
    for (int i = 0; i < text->columns; i++) {
        p = put_text(text->dialect, p, mot_columns[i]);
    }
    p[-1] = '\n';
    return p;
}

// YYYY-MM-DDThh:mm:ss
static char *put_completed(const struct mot_text *text, const struct mot_row *row, char *p) {
    p = put_bytes(p, text->fleet->calendar.days[row->test_day].text, 10);
    const uint32_t parts[] = {row->second / 3600, row->second / 60 % 60, row->second % 60};
    for (int i = 0; i < 3; i++) {
        *p++ = i == 0 ? 'T' : ':';
        p = put_bytes(p, &digit_pairs[parts[i] * 2], 2);
    }
    return p;
}

static void set_field(struct fields *fields, enum mot_column column, bool is_text, const char *text,
                      size_t length) {
    struct field *field = &fields->items[column];
    field->is_text = is_text;
    field->length = length;
    memcpy(field->text, text, length);
}

static void set_string(struct fields *fields, enum mot_column column, const char *text) {
    set_field(fields, column, true, text, strlen(text));
}

// A number, or the dialect's text for a missing one.
static void set_number(struct fields *fields, enum mot_column column, int64_t number) {
    char digits[24];
    int length = number < 0 ? 0 : snprintf(digits, sizeof digits, "%lld", (long long)number);
    set_field(fields, column, false, digits, (size_t)length);
}

static void set_day(const struct mot_text *text, struct fields *fields, enum mot_column column,
                    int32_t day) {
    if (day != DAY_MISSING) {
        set_field(fields, column, true, text->fleet->calendar.days[day].text, 10);
    } else if (text->dialect->original) {
        set_string(fields, column, "NULL");
    } else {
        // In dialects with quoted texts, a missing text is either "" or an empty field.
        set_field(fields, column, (fields->items[COL_TEST_ID].length & 1) != 0, "", 0);
    }
}

static void make_fields(const struct mot_text *text, const struct mot_row *row,
                        struct fields *fields) {
    const struct mot_dialect *dialect = text->dialect;
    const struct name *model = &text->fleet->names.models.items[row->name];
    const struct name *make = &text->fleet->names.makes.items[model->owner];
    fields->count = text->columns;
    set_number(fields, COL_TEST_ID, row->test_id);
    set_number(fields, COL_VEHICLE_ID, row->vehicle_id);
    set_day(text, fields, COL_TEST_DATE, row->test_day);
    set_number(fields, COL_CLASS, row->class_id);
    set_string(fields, COL_TYPE, mot_type_code(dialect, (enum mot_type)row->type));
    set_string(fields, COL_RESULT, mot_results[row->result]);
    set_number(fields, COL_MILEAGE, row->mileage);
    set_string(fields, COL_AREA, text->fleet->areas.texts[row->area]);
    set_field(fields, COL_MAKE, true, make->text, make->length);
    set_field(fields, COL_MODEL, true, model->text, model->length);
    set_string(fields, COL_COLOUR, text->fleet->colours.texts[row->colour]);
    set_string(fields, COL_FUEL, mot_fuel_code(dialect, row->fuel));
    set_number(fields, COL_CAPACITY, row->capacity);
    set_day(text, fields, COL_FIRST_USE, row->first_use);
    if (dialect->completed) {
        char completed[32];
        size_t length = (size_t)(put_completed(text, row, completed) - completed);
        set_field(fields, COL_COMPLETED, true, completed, length);
    }
}

static char *put_fields(const struct mot_dialect *dialect, char *p, const struct fields *fields) {
    for (int i = 0; i < fields->count; i++) {
        const struct field *field = &fields->items[i];
        p = put_field(dialect, p, field->text, field->length, field->is_text);
        *p++ = i + 1 < fields->count ? dialect->delimiter : '\n';
    }
    return p;
}

char *mot_text_row(const struct mot_text *text, const struct mot_row *row, char *p) {
    const char delimiter = text->dialect->delimiter;
    const bool quoted = text->dialect->quoting == QUOTE_ALL_TEXT;
    const struct mot_day *days = text->fleet->calendar.days;
    if (!row->plain) {
        struct fields fields;
        make_fields(text, row, &fields);
        return put_fields(text->dialect, p, &fields);
    }
    p = put_number(p, row->test_id);
    *p++ = delimiter;
    p = put_number(p, row->vehicle_id);
    *p++ = delimiter;
    p = put_day(p, &days[row->test_day], quoted);
    *p++ = delimiter;
    p = put_piece(p, &text->codes[row->class_id][row->type][row->result]);
    p = put_number(p, (uint32_t)row->mileage);
    *p++ = delimiter;
    p = put_piece(p, &text->areas[row->area]);
    p = put_name_piece(p, &text->models[row->name]);
    p = put_piece(p, &text->colours[row->colour]);
    p = put_piece(p, &text->fuels[row->fuel]);
    p = put_number(p, (uint32_t)row->capacity);
    *p++ = delimiter;
    p = put_day(p, &days[row->first_use], quoted);
    if (text->dialect->completed) {
        *p++ = delimiter;
        p = put_completed(text, row, p);
    }
    *p++ = '\n';
    return p;
}

// ---- bad records ----

// The kinds of bad records. A kind with a column writes `text` there.
static const struct spoiler {
    const char *kind;
    int column; // or -1
    unsigned dialects;
    const char *text;
    int cut; // fields to drop from the end, or -1 to add one
} spoilers[] = {
    {"bad date", COL_TEST_DATE, IN_A | IN_NEWER, "2013-02-30", 0},
    {"letters in an integer", COL_MILEAGE, IN_A | IN_NEWER, "45k20", 0},
    {"missing test_id", COL_TEST_ID, IN_A | IN_NEWER, "", 0},
    {"too few fields", -1, IN_A | IN_NEWER, "", 3},
    {"invalid UTF-8", COL_MODEL, IN_A | IN_NEWER, "CORSA \xFF\xFE", 0},
    {"too many fields", -1, IN_COMMA, "", -1},
    {"bad date", COL_FIRST_USE, IN_A | IN_NEWER, "2001-13-01", 0},
    {"letters in an integer", COL_VEHICLE_ID, IN_A | IN_NEWER, "12O450077", 0},
    {"bad date", COL_TEST_DATE, IN_A | IN_NEWER, "04/11/2012", 0},
    {"letters in an integer", COL_CAPACITY, IN_A | IN_NEWER, "1.6L", 0},
    {"too few fields", -1, IN_A | IN_NEWER, "", 9},
    {"letters in an integer", COL_TEST_ID, IN_A | IN_NEWER, "x1002931", 0},
    {"invalid UTF-8", COL_MAKE, IN_A | IN_NEWER, "CITRO\xCBN", 0},
    {"too many fields", -1, IN_COMMA, "", -1},
};
enum { SPOILER_COUNT = sizeof spoilers / sizeof spoilers[0] };

char *mot_text_bad(const struct mot_text *text, const struct mot_row *row, uint64_t which, char *p,
                   struct bad_record *bad) {
    unsigned usable[SPOILER_COUNT] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < SPOILER_COUNT; i++) {
        if ((spoilers[i].dialects & text->dialect->bit) != 0) {
            usable[count++] = i;
        }
    }
    const struct spoiler *spoiler = &spoilers[usable[which % count]];
    struct fields fields;
    make_fields(text, row, &fields);
    if (spoiler->column >= 0) {
        struct field *field = &fields.items[spoiler->column];
        field->length = strlen(spoiler->text);
        memcpy(field->text, spoiler->text, field->length);
    } else if (spoiler->cut < 0) {
        fields.items[fields.count++] = (struct field){.length = 4, .is_text = true, .text = "MORE"};
    } else {
        fields.count -= spoiler->cut;
    }
    bad->column = spoiler->column >= 0 ? mot_columns[spoiler->column] : NULL;
    bad->kind = spoiler->kind;
    return put_fields(text->dialect, p, &fields);
}
