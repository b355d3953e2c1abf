/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: the names and types of the columns of a delimited text. A schema is a YAML mapping;
 * docs/schemas.md describes every key and type. */
#ifndef SHARDLOAD_SCHEMA_H
#define SHARDLOAD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yaml.h>

#include "head.h"
#include "util/error.h"
#include "util/name_index.h"
#include "util/text.h"

/* A column's type: the index of its row in sl_column_types (column_types.h). Only the rows that
 * other code mentions have a name here. */
typedef enum sl_type {
    SL_TYPE_TEXT,
    SL_TYPE_INT,
    SL_TYPE_DOUBLE,
    SL_TYPE_DATE,
    SL_TYPE_DATETIME,
    SL_TYPE_CODE,
    SL_TYPE_FLAG,
    SL_TYPE_DECIMAL,
    SL_TYPE_OBJECT_ID,
    SL_TYPE_INT64,
} sl_type;

/* The treatment of a value that does not fit its type: its record is rejected, the value is stored
 * as text, or the value is left out of the document. */
typedef enum sl_invalid { SL_INVALID_REJECT, SL_INVALID_TEXT, SL_INVALID_MISSING } sl_invalid;

typedef enum sl_choice { SL_CHOICE_UNSET, SL_CHOICE_NO, SL_CHOICE_YES } sl_choice;

typedef struct sl_words {
    const char **words;
    size_t count;
} sl_words;

typedef struct sl_schema_column {
    const char *name;
    const char *short_name;
    sl_words aliases;
    sl_type type;
    bool required;
    bool spill;
    sl_words missing;
    int64_t minimum;
    int64_t maximum;
    const char *yes; /* NULL when not given, like `no` */
    const char *no;
    const char *point;  /* of a coordinate: the key of its point */
    char *point_key;    /* of a coordinate: its own key, such as at.coordinates[0]; owned */
    const char *format; /* of dates and numbers (convert.h); NULL: ISO 8601, 1234.5 */
    sl_words formats;   /* of dates, if there are several; the first one is `format` */
    bool trim;          /* remove blanks at both ends of each field */
    sl_choice zone;     /* of ISO dates with time: YES: each has one; NO: none has */
    sl_invalid invalid;
    bool lossless;                          /* values that the type would change are refused */
    sl_choice lossless_choice, trim_choice; /* of the column itself, in the schema */
    bool inferred;                          /* the type was inferred, which messages mention */
    bool adopted;    /* instead of the inferred type: the type that the collection has */
    bool declared;   /* by --types */
    bool cut;        /* a text, because the dates of CREATE TABLE have digits that would be cut */
    char mixed[400]; /* an inferred text, dates in several formats: the type and the formats */
} sl_schema_column;

/* The options of the command line that a schema can declare: row(key of the schema, option). */
#define SL_SCHEMA_OPTIONS(row)                                                                     \
    row(encoding, "encoding") row(id_field, "id-field") row(escape, "escape")                      \
        row(null_as, "null-as") row(quoted_lines, "quoted-lines") row(ragged, "ragged")

typedef struct sl_schema {
    const char *name;
    const char *kind;
    int64_t skip_lines;
    int64_t blanks;
    sl_words missing; /* shared by columns without their own list */
    bool lossless;
    char delimiter; /* 0 when not given */
    char quote;     /* the byte that quotes fields, SL_QUOTE_AUTO or SL_QUOTE_NONE */
    const struct sl_notation *notation; /* NULL: not given */
    sl_choice header;
#define SL_SCHEMA_OPTION_FIELD(key, option) const char *key;
    SL_SCHEMA_OPTIONS(SL_SCHEMA_OPTION_FIELD) /* unchecked; NULL when not given */
#undef SL_SCHEMA_OPTION_FIELD
    sl_words nulls; /* --null */
    bool exact;
    bool trim;
    uint32_t field_counts[8]; /* ended by 0 */
    sl_schema_column *columns;
    size_t column_count;
    sl_name_index index;      /* of the columns, by names and aliases */
    yaml_document_t document; /* owns the strings */
} sl_schema;

/* The maximum number of columns, so that tables on the stack stay small. */
#define SL_COLUMNS_MAX 1024

/* Reads a schema from YAML. `source` is its name in messages. On false `error` (SL_EXIT_USAGE)
 * contains the position (source:line:column) and what was expected. The text is not needed
 * afterwards. */
bool sl_schema_read(sl_text yaml, const char *source, sl_schema **schema, sl_error *error);
void sl_schema_destroy(sl_schema *schema); /* NULL is fine */

/* Is `name` the column's name or one of its aliases, ignoring case? */
bool sl_schema_column_is_named(const sl_schema_column *column, sl_text name);

/* The number of the first column with this name or alias, ignoring case; column_count: none. Sets
 * named[k] for all such columns, unless it is NULL. */
size_t sl_schema_find(const sl_schema *schema, sl_text name, bool *named);

/* Sets the delimiter that a word or a byte names: tab, `\t`, `\x01`, `;`. False: no delimiter has
 * this name. */
bool sl_delimiter_named(const char *word, char *delimiter);

/* Sets the byte that quotes fields. False: the word is not one printable ASCII character, or is a
 * backslash. */
bool sl_quote_named(const char *word, char *quote);

#endif
