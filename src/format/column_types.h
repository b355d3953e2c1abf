/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a column, inferred from a sample of its values: the narrowest type that stores each
 * of them without loss. A number converts back to the same number (convert.h), a date to the same
 * instant. If no type does, or the order of day and month is not certain, the column is text. */
#ifndef SHARDLOAD_COLUMN_TYPES_H
#define SHARDLOAD_COLUMN_TYPES_H

#include "schema.h"

/* The types that store all values of a column that have been added. Initialise with
 * SL_COLUMN_GUESS. */
typedef struct sl_column_guess {
    uint64_t values;  /* that are not missing */
    uint64_t missing; /* empty, or a word of sl_missing_words */
    uint32_t kinds;   /* bit set of types */
    uint64_t dates;   /* bit set of date formats */
    bool finite;      /* a value is a number other than infinity */
    bool date_time;   /* a value of ISO 8601 has a time */
    bool comma;       /* a value has a decimal comma: 2,75 */
    bool ungrouped;   /* a value has a point that does not separate groups of digits: 2.75 */
} sl_column_guess;

#define SL_COLUMN_GUESS                                                                            \
    (sl_column_guess) {                                                                            \
        .kinds = UINT32_MAX, .dates = UINT64_MAX                                                   \
    }

/* The words that mean "no value" in a column with an inferred type. */
extern const sl_words sl_missing_words;

/* Adds a value. Reads no byte after it. */
void sl_column_guess_add(sl_column_guess *guess, sl_text value);

/* Is it a number with a decimal comma (2,75 and 1.234,5)? False for 1,234, where the comma may
 * separate groups of digits. */
bool sl_has_decimal_comma(sl_text value);

/* May the points in all numbers of the column separate groups of digits, as in 12.500? */
bool sl_column_guess_is_grouped(const sl_column_guess *guess);

/* Sets the type of a column, without its names. A column without values becomes text with the words
 * for missing values. */
void sl_column_guess_decide(const sl_column_guess *guess, sl_schema_column *column);

/* Writes a type in words, for summaries, the run record and the journal: "int", "double", "date",
 * "datetime", "datetime with offset", "date %d/%m/%Y", "flag True False", "text", "empty". Returns
 * out. */
#define SL_TYPE_ROOM 64
const char *sl_column_type_write(const sl_schema_column *column, char out[SL_TYPE_ROOM]);

/* The reverse. False for other text. */
bool sl_column_type_read(const char *text, sl_schema_column *column);

/* The classes of a summary. */
typedef enum sl_type_class {
    SL_CLASS_NUMBERS,
    SL_CLASS_DATES,
    SL_CLASS_FLAGS,
    SL_CLASS_TEXT,
    SL_CLASS_EMPTY,
    SL_CLASSES,
} sl_type_class;
sl_type_class sl_column_class(const sl_schema_column *column);

/* What a single value looks like, for the detection of headers: a value with digits and without
 * letters (00501, 12 %, 10:37) is typed, even if its column would be text. */
typedef enum sl_look { SL_LOOKS_MISSING, SL_LOOKS_WORD, SL_LOOKS_TYPED } sl_look;
sl_look sl_value_look(sl_text value);

#endif
