// SPDX-License-Identifier: Apache-2.0
//
// MOT tests as text, also bad records.
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

// Writes a field, quoted as in the dialect, and the character after it.
static char *put_field(const struct mot_dialect *dialect, char *p, const struct field *field,
                       char end) {
    const char *text = field->text;
    size_t length = field->length;
    bool quoted = dialect->quoting == QUOTE_ALL_TEXT && field->is_text;
    if (dialect->quoting == QUOTE_WHEN_NEEDED ||
        (dialect->quoting == QUOTE_ALL_TEXT && !field->is_text)) {
        quoted =
            memchr(text, '"', length) != NULL || memchr(text, dialect->delimiter, length) != NULL;
    }
    if (!quoted) {
        memcpy(p, text, length);
        p[length] = end;
        return p + length + 1;
    }
    *p++ = '"';
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            *p++ = '\\';
        }
        *p++ = text[i];
    }
    *p++ = '"';
    *p++ = end;
    return p;
}

static char *put_fields(const struct mot_dialect *dialect, char *p, const struct fields *fields) {
    for (int i = 0; i < fields->count; i++) {
        p = put_field(dialect, p, &fields->items[i],
                      i + 1 < fields->count ? dialect->delimiter : '\n');
    }
    return p;
}

// ---- records ----

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

// A number; an empty field for a missing one.
static void set_number(struct fields *fields, enum mot_column column, int64_t number) {
    char digits[24];
    char *p = digits + sizeof digits;
    for (int64_t left = number; left > 0 || (left == 0 && p == digits + sizeof digits);
         left /= 10) {
        *--p = (char)('0' + left % 10);
    }
    set_field(fields, column, false, p, (size_t)(digits + sizeof digits - p));
}

static void set_day(const struct mot_fleet *fleet, struct fields *fields, enum mot_column column,
                    int32_t day) {
    if (day != DAY_MISSING) {
        set_field(fields, column, true, fleet->calendar.days[day], 10);
    } else if (fleet->dialect->original) {
        set_string(fields, column, "NULL");
    } else {
        // In dialects with quoted texts, a missing text is either "" or an empty field.
        set_field(fields, column, (fields->items[COL_TEST_ID].length & 1) != 0, "", 0);
    }
}

static void make_fields(const struct mot_fleet *fleet, const struct mot_row *row,
                        struct fields *fields) {
    const struct mot_dialect *dialect = fleet->dialect;
    fields->count = dialect->completed ? COL_COUNT : COL_COMPLETED;
    set_number(fields, COL_TEST_ID, row->test_id);
    set_number(fields, COL_VEHICLE_ID, row->vehicle_id);
    set_day(fleet, fields, COL_TEST_DATE, row->test_day);
    set_number(fields, COL_CLASS, row->class_id);
    set_string(fields, COL_TYPE, mot_type_code(dialect, (enum mot_type)row->type));
    set_string(fields, COL_RESULT, mot_results[row->result]);
    set_number(fields, COL_MILEAGE, row->mileage);
    set_string(fields, COL_AREA, fleet->areas.texts[row->area]);
    set_string(fields, COL_MAKE, row->name->make);
    set_string(fields, COL_MODEL, row->name->model);
    set_string(fields, COL_COLOUR, fleet->colours.texts[row->colour]);
    set_string(fields, COL_FUEL, mot_fuel_code(dialect, row->fuel));
    set_number(fields, COL_CAPACITY, row->capacity);
    set_day(fleet, fields, COL_FIRST_USE, row->first_use);
    if (dialect->completed) {
        char completed[64];
        int length = snprintf(completed, sizeof completed, "%.10sT%02u:%02u:%02u",
                              fleet->calendar.days[row->test_day], row->second / 3600,
                              row->second / 60 % 60, row->second % 60);
        set_field(fields, COL_COMPLETED, true, completed, (size_t)length);
    }
}

char *mot_text_header(const struct mot_dialect *dialect, char *p) {
    struct fields fields = {.count = dialect->completed ? COL_COUNT : COL_COMPLETED};
    for (int i = 0; i < fields.count; i++) {
        set_string(&fields, (enum mot_column)i, mot_columns[i]);
    }
    return put_fields(dialect, p, &fields);
}

char *mot_text_row(const struct mot_fleet *fleet, const struct mot_row *row, char *p) {
    struct fields fields;
    make_fields(fleet, row, &fields);
    return put_fields(fleet->dialect, p, &fields);
}

// ---- bad records ----

// The kinds of bad records. A kind with a column writes `text` there.
static const struct spoiler {
    int column; // or -1
    unsigned dialects;
    const char *text;
    int cut; // fields to drop from the end, or -1 to add one
} spoilers[] = {
    {COL_TEST_DATE, IN_A | IN_NEWER, "2013-02-30", 0},
    {COL_MILEAGE, IN_A | IN_NEWER, "45k20", 0},
    {COL_TEST_ID, IN_A | IN_NEWER, "", 0},
    {-1, IN_A | IN_NEWER, "", 3},
    {COL_MODEL, IN_A | IN_NEWER, "CORSA \xFF\xFE", 0},
    {-1, IN_COMMA, "", -1},
    {COL_FIRST_USE, IN_A | IN_NEWER, "2001-13-01", 0},
    {COL_VEHICLE_ID, IN_A | IN_NEWER, "12O450077", 0},
    {COL_TEST_DATE, IN_A | IN_NEWER, "04/11/2012", 0},
    {COL_CAPACITY, IN_A | IN_NEWER, "1.6L", 0},
    {-1, IN_A | IN_NEWER, "", 9},
    {COL_TEST_ID, IN_A | IN_NEWER, "x1002931", 0},
    {COL_MAKE, IN_A | IN_NEWER, "CITRO\xCBN", 0},
    {-1, IN_COMMA, "", -1},
};
enum { SPOILER_COUNT = sizeof spoilers / sizeof spoilers[0] };

char *mot_text_bad(const struct mot_fleet *fleet, const struct mot_row *row, uint64_t which,
                   char *p) {
    unsigned usable[SPOILER_COUNT] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < SPOILER_COUNT; i++) {
        if ((spoilers[i].dialects & fleet->dialect->bit) != 0) {
            usable[count++] = i;
        }
    }
    const struct spoiler *spoiler = &spoilers[usable[which % count]];
    struct fields fields;
    make_fields(fleet, row, &fields);
    if (spoiler->column >= 0) {
        struct field *field = &fields.items[spoiler->column];
        field->length = strlen(spoiler->text);
        memcpy(field->text, spoiler->text, field->length);
    } else if (spoiler->cut < 0) {
        fields.items[fields.count++] = (struct field){.length = 4, .is_text = true, .text = "MORE"};
    } else {
        fields.count -= spoiler->cut;
    }
    return put_fields(fleet->dialect, p, &fields);
}
