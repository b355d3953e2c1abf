/* SPDX-License-Identifier: Apache-2.0 */
/* Delimited text: the engine of all formats whose records are lines of fields between delimiters.
 *
 * A format provides schemas and a `sniff` function, and binds a schema to a source with
 * sl_dialect_bind; its sl_format row contains the engine's functions. Binding compiles the columns,
 * in the source's order, into converters; parsing runs them over the marks found by a structural
 * scan.
 *
 * Lines: one trailing CR is removed. Empty lines, lines of blanks, and repetitions of the header
 * are dropped and counted. The last line needs no line end. Quotes (if the dialect has them): a
 * field that begins with " ends with the next " that is neither doubled nor escaped. Within it, ""
 * means "; with the escape character \, \" means " and \\ means \, and any other \ means itself.
 * In a source that is divided by sl_quoted_splitter, quoted fields may contain line
 * ends. In other sources, a quote that is still open at the end of its line ends the load, since
 * the next line would be misread as a record; with stray_quotes, only the line is rejected. A quote
 * within an unquoted field is an ordinary byte. */
#ifndef SHARDLOAD_DELIMITED_H
#define SHARDLOAD_DELIMITED_H

#include "bson/bson_writer.h"
#include "encoding.h"
#include "format.h"
#include "head.h"
#include "notation.h"
#include "schema.h"
#include "simd.h"
#include "util/splitter.h"

/* The plan of a delimited format. */
struct sl_plan {
    sl_format_options options;
    const sl_simd *simd;
    sl_schema **schemas; /* the format's schemas; owned */
    size_t schema_count;
    sl_encoding *encoding;        /* NULL: UTF-8. Owned */
    struct sl_typing *typing;     /* inferred types (typing.h); NULL: none are inferred. Owned */
    struct sl_declared *declared; /* types of --types (declared.h); NULL: none. Owned */
};

/* At which ends of a field blanks are removed. */
typedef enum sl_trim { SL_TRIM_NOTHING, SL_TRIM_END, SL_TRIM_BOTH } sl_trim;

/* The fast conversion of a field. Fields that it refuses are unusual: sl_put_unusual (fields.h)
 * converts them. */
typedef enum sl_field_step {
    SL_STEP_TEXT,
    SL_STEP_CODE,
    SL_STEP_INT,
    SL_STEP_WHOLE, /* an int without leading zeros */
    SL_STEP_DOUBLE,
    SL_STEP_DATE,
    SL_STEP_DATETIME,
    SL_STEP_ISO, /* a datetime with at most milliseconds, with or without Z as the column
                    requires */
    SL_STEP_UNUSUAL,
    SL_STEP_END, /* after the last column */
} sl_field_step;

#define SL_SHORT_PREFIX 32 /* bytes of an element's type and key that are always copied */

/* A column's data that the parser needs for each record. */
typedef struct sl_converter {
    uint8_t prefix[SL_SHORT_PREFIX]; /* type and key; if longer, the step is SL_STEP_UNUSUAL */
    uint32_t prefix_length;
    uint8_t step;         /* sl_field_step */
    bool skips_empty;     /* an empty field is a missing value, which the column allows */
    bool skips_dash;      /* so is the field "-" */
    bool skips_null;      /* so is a field that is NULL */
    bool refuses[2];      /* SL_STEP_ISO: a value without Z is unusual; a value with Z */
    uint64_t int32_limit; /* integers below it are stored as int32 without further checks */
    uint64_t int64_limit; /* other integers below it are stored as int64 */
} sl_converter;

/* A column's data for unusual fields and messages. */
typedef struct sl_bound_column {
    const char *published;   /* the name in the header, or else in the schema */
    const char *key;         /* in the document */
    const char *repaired;    /* the key instead of a name that no query can reach; NULL */
    sl_bson_type type;       /* of the element; large integers become int64, some codes text */
    sl_schema_column schema; /* strings borrowed from the plan or the dialect */
} sl_bound_column;

/* A source's dialect, bound to a schema. */
struct sl_dialect {
    char delimiter;
    char quote;        /* quotes fields; 0: none does */
    bool blank_quotes; /* blanks between delimiters and quotes belong to no field */
    bool stray_quotes; /* the data is known to have fields that begin with an unclosed quote: their
                          lines are rejected. If false, such a field is assumed to contain a line
                          end, and the load ends */
    bool quoted_lines; /* quoted fields may contain line ends: the source has a splitter */
    char escape;       /* in quoted fields, the byte after it is data; 0: none */
    char bare_escape;  /* in other fields, likewise; also before a line end. 0: none */
    uint8_t letters[256];        /* sl_notation_letters, of bare_escape */
    const sl_notation *notation; /* of the text; NULL: the format has none */
    bool notation_given;         /* by an option or a schema */
    char strict;                 /* as in notation.h: not 0 if the notation is not given */
    const char *null;            /* what an unquoted field holds instead of NULL; "": no text */
    size_t null_length;
    const char *const *nulls; /* other such texts; borrowed from the options */
    size_t null_count;
    bool stores_null;    /* missing values are stored as null; else left out */
    bool keeps_cr;       /* a CR before a line feed is data */
    const sl_simd *simd; /* borrowed from the plan */
    sl_trim trim;
    const sl_encoding *encoding; /* of the plan; NULL: UTF-8 */
    const char *kind;
    uint8_t blanks;    /* fields are separated by this many blanks or more; 0: by the delimiter */
    size_t skip_lines; /* before the table */
    char skipped_text[SL_SKIPPED_ROOM]; /* their text, unless it was declared; printable */
    bool pad;                           /* lines with too few fields have missing values */
    char note[240]; /* assumptions about the table, for messages; "" or "; ..." */
    bool header_assumed, header_missed, quotes_kept; /* as in sl_table */
    const char *advice;                              /* as in sl_table */
    char other;
    size_t other_fields;
    char letter[8]; /* name of the publisher's dialect; "": none */
    char *header;   /* the header line with its line end; "" when there is none. Owned */
    size_t header_length;
    char *preamble; /* blank lines that a schema skips, and the header; NULL: it skips none */
    size_t watched_length;  /* the header's length without line end: lines of this length are
                               compared with the header */
    size_t requoted_length; /* the same, with quotes if the header has none, or without them */
    uint64_t body_offset;   /* of the first record in the source */
    size_t column_count;
    bool inferable;           /* without schema: the columns' types may be inferred */
    size_t extra_columns;     /* number of columns not in the schema; loaded as text */
    size_t spill;             /* the column that takes extra delimiters, or SIZE_MAX */
    bool grows;               /* documents may have more bytes than fixed_bytes and the record */
    size_t fixed_bytes;       /* this plus the record's length bounds the document's bytes */
    sl_converter *converters; /* column_count, then one of step SL_STEP_END */
    sl_bound_column *columns;
    char why[SL_NOTATION_WHY_ROOM]; /* what shows the notation; "": nothing, or it is given */
    bool contradict;                /* names would be nested, but contradict each other */
    struct sl_nesting *nesting;     /* NULL: no column is nested (fields.h). Owned */
    struct sl_key_fields
        *keys;      /* of --id-field and --match-fields, by the documents' keys; NULL: no
                                   document is changed. Owned */
    char *names;    /* owns the header's names */
    char *repaired; /* owns the repaired keys; NULL: none is */
};

/* Creates a plan with room for `schema_count` schemas, all NULL. */
bool sl_delimited_plan_create(const sl_format_options *options, size_t schema_count, sl_plan **plan,
                              sl_error *error);
void sl_delimited_plan_destroy(sl_plan *plan); /* NULL is fine */

/* Binds the columns named in a header (`names`, from sl_fields_split) or, if names is NULL, the
 * first `count` columns of the schema. With names, `schema` may be NULL: all columns are then text.
 * Errors: a required column is missing, a name is duplicate, empty or not UTF-8. */
bool sl_dialect_bind(const sl_plan *plan, const sl_schema *schema, const sl_first_line *first,
                     const sl_text *names, size_t count, sl_dialect **dialect, sl_error *error);

/* Declares that the text that was sniffed begins at `offset` of the source: an archive's entry. The
 * parser recognises and skips a header at its first byte. */
void sl_dialect_move(sl_dialect *dialect, uint64_t offset);

/* Compiles the columns into converters again, after their types have been changed. */
bool sl_dialect_compile(sl_dialect *dialect, bool long_names, sl_error *error);

/* Advice appended to SL_LINE_CONTINUES (head.h). */
extern const char sl_delimited_quotes_advice[];

/* For text whose quoted fields may contain line ends: the end of the last record that is complete
 * within the first `most` bytes of the text, whose first record begins at `from`. If the first
 * record is longer, returns its end. `whole`: a last record without line end is complete. */
size_t sl_quoted_records(const sl_dialect *dialect, sl_text text, size_t from, bool whole,
                         size_t most);

/* Functions for sl_format rows. A block's text must be shorter than 4 GiB. */
void sl_delimited_dialect_destroy(sl_dialect *dialect);
const char *sl_delimited_record_kind(const sl_dialect *dialect);
bool sl_delimited_check_head(const sl_dialect *dialect, sl_text head, bool whole, sl_error *error);
char *sl_delimited_describe(const sl_dialect *dialect, char *out, size_t room);
sl_text sl_delimited_header(const sl_dialect *dialect);
/* Writes a name with one blank for line breaks and other control characters within it. Returns the
 * end, behind its 0. */
char *sl_name_put(char *to, const char *name);
/* The column that an option names: as in the header or schema, or by its key. SIZE_MAX: there is
 * none, or several (with error). */
size_t sl_delimited_column_named(const sl_dialect *dialect, const char *name, const char *option,
                                 sl_error *error);
const char *sl_delimited_key_of(const sl_dialect *dialect, const char *column);
bool sl_delimited_parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts);

/* The fields of a row, of a format with the functions plan_create and sniff. */
#define SL_DELIMITED_FUNCTIONS                                                                     \
    .takes_schema = true, .plan_create = plan_create, .plan_destroy = sl_delimited_plan_destroy,   \
    .sniff = sniff, .check_head = sl_delimited_check_head,                                         \
    .dialect_destroy = sl_delimited_dialect_destroy, .record_kind = sl_delimited_record_kind,      \
    .describe = sl_delimited_describe, .key_of = sl_delimited_key_of,                              \
    .header = sl_delimited_header, .parse = sl_delimited_parse

/* As the `sniff` of the format `delimited`, in this notation. */
bool sl_delimited_sniff_as(const sl_plan *plan, sl_text head, bool whole,
                           const sl_notation *notation, sl_dialect **dialect, sl_error *error);

/* As the `sniff` of the format `delimited`, with the quotes given: `quote` 0: none. */
bool sl_delimited_sniff_quoted(const sl_plan *plan, sl_text head, bool whole, char quote,
                               sl_dialect **dialect, sl_error *error);

/* ---- quoted fields with line ends (RFC 4180): where records end. Private to src/format ---- */

/* A field is quoted if its first byte is a quote. In a quoted field, two quotes in a row stand for
 * one quote, and the byte after the escape character, if the dialect has one, is data. A record
 * ends at the first line feed outside quoted fields. A quote in an unquoted field is data. */

/* Where a position lies, according to the bytes before it. */
typedef enum sl_quote_state {
    SL_AT_FIELD, /* a record or field begins here */
    SL_IN_FIELD, /* an unquoted field, or text after a closing quote */
    SL_IN_QUOTES,
    SL_AFTER_ESCAPE, /* in quotes, after the escape character */
    SL_AFTER_QUOTE,  /* after a quote that closes a field, unless another quote follows */
} sl_quote_state;

/* Passes over text[at..length) and returns the position after the first line feed that ends a
 * record and lies at or after `least` - 1. Returns 0 if there is none; then `*state` is the state
 * at `length`. */
size_t sl_quoted_end(const sl_dialect *dialect, const char *text, size_t at, size_t length,
                     size_t least, sl_quote_state *state);

/* Does a quoted field begin in a record of the head? */
bool sl_quoted_begins(const sl_dialect *dialect, sl_text head);

/* Is each quoted field of the complete records of the head closed before a delimiter or the end of
 * its record? */
bool sl_quoted_closes(const sl_dialect *dialect, sl_text head, bool whole);

/* Must a source with this head be divided into blocks by sl_quoted_splitter? True if its records
 * have quoted fields, or, with `always`, may have. The other sources can be read at any offset; a
 * line end within quotes then ends the load. */
bool sl_quoted_divides(const sl_dialect *dialect, sl_text head, bool always);

/* The splitter of such text; its context is the sl_dialect. */
extern const sl_splitter sl_quoted_splitter;

/* Is it the name of an element of an array (items[1]), or of a field in one (items[1].price or
 * items.1.price)? Then `first` is the same name with index 0, items[0].price; `path` is the name
 * without indexes, items.price, or, of an element, the name itself. Both have room for the name and
 * four more bytes. */
bool sl_nesting_is_element(const char *name, char *path, char *first);

#endif
