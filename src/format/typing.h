/* SPDX-License-Identifier: Apache-2.0 */
/* The inferred types of a load's delimited sources. A layout is a set of column names, in any
 * order; columns of one name have one type in all layouts.
 *
 * First samples of all sources are added, then the types are decided; from then on nothing changes,
 * and any thread may apply them. */
#ifndef SHARDLOAD_TYPING_H
#define SHARDLOAD_TYPING_H

#include "column_types.h"
#include "delimited.h"

typedef struct sl_typing sl_typing;

/* How the values of a column are written. A decimal comma cannot stand between commas without
 * quotes, so there the points in numbers are decimal points. */
#define SL_BETWEEN_COMMAS 1u
#define SL_BETWEEN_OTHERS 2u /* other delimiters */
#define SL_BETWEEN_QUOTES 4u

typedef struct sl_typed_column {
    char *name;
    char *path; /* of the field in the documents, for records to embed after the array's name;
                   without indexes of elements */
    const struct sl_typed_column *element; /* the column of this field in the first element of an
                                              array, whose type it has; NULL: none, or itself */
    const struct sl_typed_column *other;   /* of the same name, with numbers in another form */
    size_t first;  /* the first layout with this name, whose numbers have the same form */
    size_t second; /* in the first column of a name: the first layout with this name and the other
                      kind of delimiter (comma or not); 0: none */
    sl_column_guess guess;
    sl_column_rest rests[SL_RESTS];
    sl_column_guess trimmed;    /* of the values without blanks at their ends, if one is `padded` */
    bool padded;                /* once the types are decided: only blanks make the column text */
    bool blanks;                /* once they are decided: a value has blanks at its ends */
    bool unbroken;              /* a value has no-break spaces at its ends, which --trim keeps */
    bool stored;                /* the collection has the column: its type is used */
    uint8_t written;            /* bit set of SL_BETWEEN_COMMAS ... */
    sl_schema_column schema;    /* valid once the types are decided; has the name of the column */
    const sl_column_rest *rest; /* the column is text because of its misfits; else NULL. Of the
                                   first one of several columns of one name */
    sl_schema_column type_of_rest;
} sl_typed_column;

/* A value of the sample that the text is perhaps read wrongly. */
typedef struct sl_typing_doubt {
    char shown[60]; /* the first such value; "": there is none */
    size_t source;
    uint64_t line, offset; /* the number of its line, or 0 */
} sl_typing_doubt;

typedef struct sl_typed_layout {
    sl_typed_column *columns; /* sorted by name */
    size_t count;
    uint64_t hash;            /* of the names, in any order */
    char delimiter;           /* a comma, another one (;), or 0: any */
    uint64_t records;         /* sampled */
    uint64_t shorter;         /* lines with fewer fields, which are rejected */
    sl_typing_doubt quotes;   /* around values, which are kept */
    uint64_t quoted;          /* records that cannot be read without such quotes */
    bool unquoted;            /* a line cannot be read with them */
    sl_typing_doubt escapes;  /* as databases write them, which are kept */
    bool pairs, batch, paths; /* backslashes before backslashes; before n and t; before others */
} sl_typed_layout;

bool sl_typing_create(sl_typing **typing, sl_error *error);
void sl_typing_destroy(sl_typing *typing); /* NULL is fine */

/* Warns of texts in which many lines have too few fields. A few may be totals. NULL
 * is fine. */
void sl_typing_log_shorter(const sl_typing *typing);

/* Adds the records of some lines to the sample. A header among them, blank lines, and lines that
 * are not records are ignored. `lines` is followed by SL_SLACK readable bytes; `offset`: of its
 * first byte in source number `source`. */
bool sl_typing_add(sl_typing *typing, const sl_plan *plan, const sl_dialect *dialect, sl_text lines,
                   size_t source, uint64_t offset, sl_error *error);

/* Drops the sample of the dialect's columns. */
void sl_typing_forget(sl_typing *typing, const sl_dialect *dialect);

/* Must texts that are read without quotes be read with double quotes? At least two sampled records
 * have a delimiter, a line end or a doubled quote within them, and no line contradicts it. */
bool sl_typing_shows_quotes(const sl_typing *typing);

/* Adds a layout with types that are known, as sl_column_type_write writes them. False with error
 * (SL_EXIT_USAGE) if a type is unknown. `array`: as in sl_format_options; `delimiter`: as in the
 * layout. */
bool sl_typing_restore(sl_typing *typing, const char *array, char delimiter,
                       const char *const *names, const char *const *types, size_t count,
                       sl_error *error);

/* Decides the types. Columns of one name have one type, also in different layouts, but for numbers
 * that have a decimal point between commas, and a decimal comma between other delimiters. */
void sl_typing_decide(sl_typing *typing);

/* The layout of a dialect's columns; NULL if no source with these columns was sampled. */
sl_typed_layout *sl_typing_layout_of(const sl_typing *typing, const sl_dialect *dialect);

/* Gives the columns of a dialect their types; in an unknown layout, those of their names in others.
 * Columns without a type become text; then `*known` (may be NULL) is false. */
bool sl_typing_apply(const sl_typing *typing, bool long_names, sl_dialect *dialect, bool *known,
                     sl_error *error);

/* The layouts, in the order of their first samples. */
size_t sl_typing_count(const sl_typing *typing);
sl_typed_layout *sl_typing_at(const sl_typing *typing, size_t index);

/* A walk over the columns of all layouts; begins with {typing}. */
typedef struct sl_typing_walk {
    const sl_typing *typing; /* may be NULL: there are no columns */
    size_t layout, column;
} sl_typing_walk;

/* The next column, but only the first of each name; NULL at the end. */
const sl_typed_column *sl_typing_next(sl_typing_walk *walk);

/* Writes the columns of all dialects, the form of the first one, and the options of the plan as a
 * schema in YAML. Returns a malloc'd string; NULL without memory. */
char *sl_typing_write_schema(const sl_plan *plan, const sl_dialect *const *dialects, size_t count,
                             const char *name, uint64_t records);

#endif
