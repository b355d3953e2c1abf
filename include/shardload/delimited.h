/* SPDX-License-Identifier: Apache-2.0 */
/* Delimited text: one engine for every format whose records are lines of fields between delimiters.
 *
 * A format on top of it brings schemas and sniffs; it binds a schema to a source with
 * sl_dialect_bind and uses the engine's functions as they are in its sl_format row. Binding
 * compiles the columns, in the source's order, into converters; parsing runs them over the marks
 * of a structural scan.
 *
 * Lines: one trailing CR is cut. Empty lines, lines of blanks, and repetitions of the header are
 * dropped and counted. The last line needs no line end.
 * Quotes (where the dialect has them): a field that begins with " ends with the next " that is not
 * escaped by a backslash or doubled. In it, \" and "" stand for ", \\ for \, and any other
 * backslash for itself. No field holds a line end: a quote that is still open at the end of its
 * line ends the load, since the next line would be read as a record; only where the publisher's
 * data has stray quotes it is a reject. A quote inside an unquoted field is an ordinary byte. */
#ifndef SHARDLOAD_DELIMITED_H
#define SHARDLOAD_DELIMITED_H

#include <shardload/bson_writer.h>
#include <shardload/format.h>
#include <shardload/head.h>
#include <shardload/schema.h>
#include <shardload/simd.h>

/* The plan of a delimited format. */
struct sl_plan {
    sl_format_options options;
    const sl_simd *simd;
    sl_schema **schemas; /* to choose from; owned */
    size_t schema_count;
};

typedef enum sl_trim { SL_TRIM_NOTHING, SL_TRIM_END, SL_TRIM_BOTH } sl_trim; /* blanks of fields */

/* How a field is converted; what a step does not take is unusual (record.h). */
typedef enum sl_step {
    SL_STEP_TEXT,
    SL_STEP_CODE,
    SL_STEP_INT,
    SL_STEP_DATE,
    SL_STEP_DATETIME,
    SL_STEP_UNUSUAL,
    SL_STEP_END, /* behind the last column */
} sl_step;

#define SL_SHORT_PREFIX 32 /* bytes of an element's type and key that are copied without asking */

/* What the parser needs of a column for each record. */
typedef struct sl_converter {
    uint8_t prefix[SL_SHORT_PREFIX]; /* of its BSON element; a longer one makes the step unusual */
    uint32_t prefix_length;
    uint8_t step;         /* sl_step */
    uint64_t int32_limit; /* whole numbers below it need no further check and are int32 */
    uint64_t int64_limit; /* and those are int64 */
} sl_converter;

/* What it needs when something is wrong. */
typedef struct sl_column {
    const char *published;   /* as the header has it; else the schema's name */
    const char *key;         /* in the document */
    sl_bson_type type;       /* there; whole numbers may be larger, codes texts */
    sl_schema_column schema; /* strings borrowed from the plan or the dialect */
} sl_column;

/* A source's dialect, bound to a schema. */
struct sl_dialect {
    char delimiter;
    bool quotes;
    bool stray_quotes; /* fields are known to begin with quotes that nothing closes: such a line is
                          a reject. Elsewhere it is taken for a field with line ends in it */
    sl_trim trim;
    bool latin1;
    const char *kind;
    char letter[8]; /* the publisher's dialect, where there is such a thing */
    char *header;   /* the header line with its line end; "" when there is none. Owned */
    size_t header_length;
    size_t watched_length; /* of the header without line end, where all columns are text, so that a
                              repeated header would pass for a record; else 0 */
    uint64_t body_offset;  /* where the records start in the source */
    size_t column_count;
    size_t extra_columns;     /* in no schema; loaded as text */
    size_t spill;             /* column that takes extra delimiters, or SIZE_MAX */
    size_t fixed_bytes;       /* a document has at most these and its record's length */
    sl_converter *converters; /* column_count, and an end */
    sl_column *columns;
    char *names; /* owns the header's names */
};

/* Makes a plan with room for `schema_count` schemas, all NULL. */
bool sl_delimited_plan_create(const sl_format_options *options, size_t schema_count, sl_plan **plan,
                              sl_error *error);
void sl_delimited_plan_destroy(sl_plan *plan); /* NULL is fine */

/* Binds the columns named in a header (`names`, as sl_header_split gave them) or, with names NULL,
 * the first `count` columns of the schema. `schema` may be NULL when there are names: then all is
 * text. Required columns that are missing, doubled and impossible names are errors. */
bool sl_dialect_bind(const sl_plan *plan, const sl_schema *schema, const sl_first_line *first,
                     const sl_text *names, size_t count, sl_dialect **dialect, sl_error *error);

/* What else to do about a quote that stays open. */
extern const char sl_delimited_quotes_advice[];

/* Ready-made functions for sl_format. A block's text must be shorter than 4 GiB. */
void sl_delimited_dialect_destroy(sl_dialect *dialect);
const char *sl_delimited_record_kind(const sl_dialect *dialect);
bool sl_delimited_check_head(const sl_dialect *dialect, sl_text head, bool whole, sl_error *error);
char *sl_delimited_describe(const sl_dialect *dialect, char *out, size_t room);
sl_text sl_delimited_header(const sl_dialect *dialect);
bool sl_delimited_parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts);

extern const sl_format sl_format_mot;
extern const sl_format sl_format_delimited;

#endif
