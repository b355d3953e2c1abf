/* SPDX-License-Identifier: Apache-2.0 */
/* The types of columns: a table with a row for each type, and the inference of a column's type. */
#ifndef SHARDLOAD_COLUMN_TYPES_H
#define SHARDLOAD_COLUMN_TYPES_H

#include "delimited.h"
#include "schema.h"

/* ---- the table ---- */

/* The classes of a summary. */
typedef enum sl_type_class {
    SL_CLASS_NUMBERS,
    SL_CLASS_DATES,
    SL_CLASS_FLAGS,
    SL_CLASS_TEXT,
    SL_CLASS_EMPTY,
    SL_CLASSES,
} sl_type_class;

/* A coordinate of a GeoJSON point. */
typedef enum sl_axis { SL_AXIS_NONE, SL_AXIS_LONGITUDE, SL_AXIS_LATITUDE } sl_axis;

/* A field whose value is written. */
typedef struct sl_value {
    const sl_dialect *dialect;
    const sl_schema_column *schema;
    sl_text field; /* not a missing value */
    bool quoted;
    struct sl_scratch *scratch; /* of types that grow: memory, */
    uint8_t *limit;             /* and the end of the room; NULL: there is none */
    uint8_t *type;              /* of the element; changed if the value determines the type */
    bool *transcoded;           /* set to true if the text was not UTF-8 */
} sl_value;

struct sl_column_guess;

/* A type. Schemas, their messages, binding, conversion, the reasons of rejects and inference use
 * only this row. */
typedef struct sl_column_type {
    const char *word;    /* in schemas and messages */
    sl_bson_type bson;   /* of an element, unless the value determines it */
    uint8_t value_bytes; /* upper bound of a value's bytes, without those of the field's text; at
                              least 5, because any value may be stored as text */
    uint8_t step;        /* sl_field_step: the fast conversion, */
    uint8_t strict_step; /* and that of columns which are lossless, or have `offset` */
    sl_type_class class; /* SL_CLASS_TEXT also if it is none of the others */
    sl_axis axis;        /* of a coordinate */
    bool any_text;       /* stores every text */
    bool empty;          /* an empty field is a value, if another text stands for NULL */
    bool has_format;     /* a schema may give a format of dates */
    bool grows;          /* a value may have more bytes than the text and value_bytes */
    bool has_words;      /* a schema gives the words of `yes` and `no` */
    /* Writes the value at `to`; returns the end. NULL: the field does not fit the type. */
    uint8_t *(*put)(const sl_value *value, uint8_t *to);
    /* Writes the reason for refusing a field. NULL: "does not fit the type". */
    void (*explain)(const sl_schema_column *schema, sl_text field, char *out, size_t room);
    /* Is it the narrowest type for the values of the guess? Then sets the column. NULL: columns
     * never get this type by inference. */
    bool (*infer)(const struct sl_column_guess *guess, sl_schema_column *column);
} sl_column_type;

/* In the order of sl_type; ended by a row without word. */
extern const sl_column_type sl_column_types[];

/* Sets the type of that word, or of the server's word for it, such as long. */
bool sl_column_type_named(const char *word, sl_type *type);

/* Writes "a type: text, int, ..." Returns out. */
const char *sl_column_type_list(char *out, size_t room);

/* Is column->format one that the type may have? */
bool sl_column_format_valid(const sl_schema_column *column);

/* "dates" or "numbers": what column->mixed declares. */
const char *sl_column_mixed_kind(const sl_schema_column *column);

/* Do two formats of a column read the field as different dates? Then it is rejected. */
bool sl_column_formats_differ(const sl_schema_column *schema, sl_text field);

/* ---- inference ---- */

/* A type is inferred from a sample of a column's values: the narrowest type that stores each of
 * them without loss. A number converts back to the same number (convert.h), a date to the same
 * instant. If no type does, or the order of day and month is not certain, the column is text. */

/* What the numbers of a column show. */
typedef struct sl_number_facts {
    bool finite;             /* a value is a number other than infinity */
    bool pointed;            /* a value has a form that only numbers have */
    bool coded;              /* a value has a form that codes have, too: 1E5, -0 */
    bool few_digits;         /* a value has at most 15 digits */
    uint8_t fractions[2][4]; /* bit sets of numbers of digits after the point, 7: or more; [1]: with
                                0 at the end; [.][0]: below 1, else digits before it, at most 3 */
} sl_number_facts;

#define SL_MIXED_FORMATS 5u

/* The types that store all values of a column that have been added. Initialise with
 * SL_COLUMN_GUESS. */
typedef struct sl_column_guess {
    uint64_t values;  /* that are not missing */
    uint64_t missing; /* empty, or a word of sl_missing_words */
    uint16_t words;   /* of these: bit set of their indexes */
    uint32_t kinds;   /* bit set of types */
    uint64_t dates;   /* bit set of date formats */
    uint64_t
        mixed[SL_MIXED_FORMATS]; /* the same, of dates in several formats; UINT64_MAX: unused */
    bool undated;                /* a value is no date, or the column has more formats */
    bool unnumbered;             /* a value is no number in any form */
    bool marked[2];              /* a value is a number only with a decimal point; only a comma */
    sl_number_facts number;
    uint8_t forms;    /* bit set of sl_number_forms */
    uint8_t grouped;  /* of these: digits of a value are in groups */
    uint8_t decimals; /* of these: a value has a fraction, or another column proves the form */
    uint32_t form_kinds[2]; /* types that store the values, with decimal points; with commas */
    bool date_time;         /* a value of ISO 8601 has a time */
    bool comma;             /* a value has a decimal comma and a unit: 2,75 % */
    bool ungrouped;         /* a value has a point that does not separate groups of digits: 2.75 */
    bool minus;             /* a value has its minus at the end: 2,75- */
    uint8_t thousands;      /* bit set of SL_THOUSANDS_... */
    int64_t latest;         /* of dates with years of two digits: the latest one after 1970, which
                               is then the example */
    char example[24];       /* the last value that has removed a type; perhaps its beginning */
} sl_column_guess;

/* Kinds of numbers in a column. Programs write fractions with a fixed number of digits (12.500 and
 * 5.000) or without zeros at the end (12.5 and 5). So in a column with 12.500 and 5, the points
 * separate thousands, unless it also has 12500, which would then be 12.500. */
#define SL_THOUSANDS_FEW 1u  /* 5: at most three digits without a point */
#define SL_THOUSANDS_ZERO 2u /* 12.500: the last digit is 0 */
#define SL_THOUSANDS_MANY 4u /* 12500 */
#define SL_THOUSANDS_THREE                                                                         \
    8u /* 505: three digits without a point, rare in a column of codes (1.100) */

#define SL_COLUMN_GUESS                                                                            \
    (sl_column_guess) {                                                                            \
        .kinds = UINT32_MAX, .dates = UINT64_MAX,                                                  \
        .mixed = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, .forms = 0x3F,      \
        .form_kinds = {                                                                            \
            UINT32_MAX,                                                                            \
            UINT32_MAX                                                                             \
        }                                                                                          \
    }

/* The words that mean "no value" in a column with an inferred type. The first SL_MISSING_TEXTS are
 * neither numbers nor escapes. */
#define SL_MISSING_TEXTS 6u
extern const sl_words sl_missing_words;
sl_words sl_missing_words_of(sl_type type);

/* Adds a value of a text in this notation; NULL: the usual one. */
void sl_column_guess_add(sl_column_guess *guess, sl_text value, const sl_notation *notation);

/* Adds a value that only a text can be, such as an empty one. */
void sl_column_guess_add_text(sl_column_guess *guess);

/* Would the column hold dates if the digits of seconds after the third were cut? */
bool sl_column_guess_is_cut(const sl_column_guess *guess);

/* Is it a number with a decimal comma (2,75 and 1.234,5)? False for 1,234, where the comma may
 * separate groups of digits. */
bool sl_has_decimal_comma(sl_text value);

/* Can the points in all numbers of the column separate thousands, as in 12.500? With `surely`: is
 * that the only reading of all of them? */
bool sl_column_guess_is_grouped(const sl_column_guess *guess, bool surely);

/* In a text with decimal commas, 12.500 and 1.234.567 become int if the column also has a number of
 * three digits (505), none of more without points, and one that ends in 0 or has two points. */
void sl_column_guess_use_comma(sl_column_guess *guess);

/* Has a number of the column a decimal point for certain, as in 2.75? */
bool sl_column_guess_has_point(const sl_column_guess *guess);

/* Sets the type of a column, without its names. A column without values becomes text with the words
 * for missing values. */
void sl_column_guess_decide(const sl_column_guess *guess, sl_schema_column *column);

/* The types that a column of text may have, but no value proves one: 1'234 or 01/02/2024. Returns
 * their number. */
#define SL_READINGS 2u
size_t sl_column_guess_readings(const sl_column_guess *guess, sl_schema_column types[SL_READINGS]);

/* Adds the values of another guess, for columns of one name in different sources. */
void sl_column_guess_merge(sl_column_guess *guess, const sl_column_guess *other);

/* The values of a column without the few after which no type was left. */
typedef struct sl_column_rest {
    sl_column_guess guess; /* of all other values */
    uint64_t misfits;      /* UINT64_MAX: too many. 0: all values have a type in common, see `guess`
                              of the column */
    uint64_t same;         /* later misfits that are the word of the first one: a placeholder */
    char first[40];        /* the first misfit, */
    size_t source;         /* and the record that has it: its source, */
    uint64_t offset, line; /* byte offset, and line; 0: not known */
} sl_column_rest;

/* The types that the rest of a column is compared with. */
typedef enum sl_rest_types {
    SL_REST_USUAL, /* those of `kinds` */
    SL_REST_FORMS, /* numbers in other forms: 1.234,5 */
    SL_REST_MIXED, /* dates in several formats; its type is a text with `mixed` */
    SL_RESTS,
} sl_rest_types;

/* Adds a value that has been added to a guess, which was `before`, to the rest. False: it is the
 * first misfit; the caller sets its source, offset and line. `text_only`: it was added by
 * sl_column_guess_add_text. */
bool sl_column_rest_add(sl_column_rest *rest, sl_rest_types types, const sl_column_guess *before,
                        const sl_column_guess *after, sl_text value, const sl_notation *notation,
                        bool text_only);

/* Adds the values of another column of the name; the guesses are those of the columns. */
void sl_column_rest_merge(sl_column_rest *rest, sl_rest_types types, const sl_column_guess *guess,
                          const sl_column_rest *other, const sl_column_guess *other_guess);

/* Would the column have a type without the misfits, and are these few: at most 5 % of the other
 * values, or at most five and a tenth? A word that is repeated is one misfit, if most values are
 * others. Then sets `column` to that type. */
bool sl_column_rest_decide(const sl_column_rest *rest, sl_schema_column *column);

/* Does the type, which sl_column_type_read has set, store all values without loss? */
bool sl_column_guess_fits(const sl_column_guess *guess, const sl_schema_column *type);
/* Writes what a value becomes by a type of numbers or dates, as " (as 2500)"; "" if it does not
 * fit, or is longer than `example` of a guess. */
void sl_column_reading_write(const sl_schema_column *type, const char *value, char *out,
                             size_t room);

/* Adds groups of digits to a number form with decimal comma if the values have them: 1.234,5 for
 * 1234,5. */
void sl_column_guess_group(const sl_column_guess *guess, sl_schema_column *type);

/* Do columns of both types hold the same kind of values for a server? An int and a double do. */
bool sl_column_same_kind(const sl_schema_column *a, const sl_schema_column *b);

/* Writes a type in words, for summaries, the run record and the journal: "int", "double", "date",
 * "datetime", "datetime with offset", "date %d/%m/%Y", "flag True False", "text", "empty". Returns
 * out. */
#define SL_TYPE_ROOM 64
const char *sl_column_type_write(const sl_schema_column *column, char out[SL_TYPE_ROOM]);

/* The reverse. False for other text; the column then has the type whose word the text begins with,
 * if there is one. */
bool sl_column_type_read(const char *text, sl_schema_column *column);

/* The class of a column in a summary. */
sl_type_class sl_column_class(const sl_schema_column *column);

/* What a single value looks like, for the detection of headers: a value with digits and without
 * letters (00501, 12 %, 10:37) is typed, even if its column would be text. Words for numbers (inf,
 * NaN), which can also be names, are like missing values. */
typedef enum sl_look { SL_LOOKS_MISSING, SL_LOOKS_WORD, SL_LOOKS_TYPED } sl_look;
sl_look sl_value_look(sl_text value);

#endif
