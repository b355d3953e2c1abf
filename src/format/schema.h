/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: the names and types of the columns of a delimited text.
 *
 * A schema is a YAML mapping. Example with every key:
 *
 *     name: parcels            # required
 *     kind: parcels            # the kind of records, for messages; default: the name
 *     delimiter: ","           # one byte, or comma, pipe, tab, semicolon; default: detected
 *     quotes: true             # true: double quotes may surround fields; false: quotes are data;
 *                              #   another byte: this byte may surround fields. Default: true, but
 *                              #   false if the delimiter is | or tab
 *     header: true             # is the first line a header? Default: when it names the columns
 *     skip_lines: 0            # lines before the table
 *     blanks: 0                # 1 or 2: this many blanks or more separate fields
 *     exact: false             # true: match no header that has further columns
 *     trim: false              # true: remove blanks at both ends of every field
 *     field_counts: [3, 4]     # match texts without header that have this many fields
 *     missing: [NULL, n/a]     # for all columns without their own list
 *     lossless: false          # true: for all columns
 *     columns:                 # required, in the order of a text without header
 *     - name: weight_in_grams  # required; the header's name, and the long key of the document
 *       short: w               # the short key; default: the name
 *       aliases: [weight]      # other names in headers
 *       type: int              # text, int, double, date, datetime, code, flag, decimal128,
 *                              #   objectid, uuid, longitude, latitude; default: text
 *       point: at              # for longitude and latitude: the key of the GeoJSON point they form
 *       required: true         # a header must have it, and no field of it may be missing
 *       missing: [NULL, n/a]   # words for a missing value, besides the empty field
 *       minimum: 0             # for int
 *       maximum: 99999
 *       yes: Y                 # for flag: the word for true,
 *       no: N                  #   and for false; other words are refused
 *       format: "%d/%m/%Y"     # for date and datetime: date_format.h; default: ISO 8601
 *       offset: true           # for datetime: each value has an offset (true), none has (false)
 *       lossless: false        # true: refuse what the type would change: 007, 1E5, nanoseconds
 *       invalid: reject        # text: store a value that does not fit the type as text;
 *                              #   missing: leave it out, and count it
 *       spill: false           # true: keeps the extra delimiters of a line with too many fields
 *
 * A `code` is an int when all its bytes are digits and the first one is not a leading zero,
 * otherwise text. docs/schemas.md describes every key for users. */
#ifndef SHARDLOAD_SCHEMA_H
#define SHARDLOAD_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yaml.h>

#include "head.h"
#include "util/error.h"
#include "util/text.h"

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
    SL_TYPE_UUID,
    SL_TYPE_LONGITUDE,
    SL_TYPE_LATITUDE,
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
    const char *format; /* of dates (date_format.h); NULL: ISO 8601 */
    sl_choice zone;     /* of ISO dates with time: YES: each has one; NO: none has */
    sl_invalid invalid;
    bool lossless; /* values that the type would change are refused */
    bool inferred; /* the type was inferred, which messages mention */
} sl_schema_column;

typedef struct sl_schema {
    const char *name;
    const char *kind;
    int64_t skip_lines;
    int64_t blanks;
    sl_words missing; /* shared by columns without their own list */
    bool lossless;
    char delimiter; /* 0 when not given */
    char quote;     /* the byte that quotes fields, SL_QUOTE_AUTO or SL_QUOTE_NONE */
    sl_choice header;
    bool exact;
    bool trim;
    uint32_t field_counts[8]; /* ended by 0 */
    sl_schema_column *columns;
    size_t column_count;
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

/* Is it a longitude or a latitude? */
bool sl_schema_is_coordinate(const sl_schema_column *column);

/* Sets the delimiter that a word or a byte names: tab, `\t`, `\x01`, `;`. False: no delimiter has
 * this name. */
bool sl_delimiter_named(const char *word, char *delimiter);

/* Sets the byte that quotes fields. False: the word is not one printable ASCII character, or is a
 * backslash. */
bool sl_quote_named(const char *word, char *quote);

/* The type's name in schemas, such as "int". */
const char *sl_type_name(sl_type type);

#endif
