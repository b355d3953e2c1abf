/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: convert the text of a source into BSON documents.
 *
 * A format does not depend on files or servers. The caller compiles the options into a plan once,
 * sniffs each source's first bytes to determine its dialect, and then passes blocks of complete
 * records, from any number of threads at once. The format writes documents into a sink as BSON
 * bytes. */
#ifndef SHARDLOAD_FORMAT_H
#define SHARDLOAD_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/load_counts.h"
#include "util/splitter.h"
#include "util/text.h"
#include "util/write_modes.h"

/* Number of bytes at a source's beginning that a sniff reads. */
#define SL_SNIFF_BYTES 65536
#define SL_CREATE_TABLE "CREATE TABLE" /* the name of a schema that this statement declares */

/* Generated records (format `ycsb`). */
typedef struct sl_ycsb_options {
    uint64_t records;
    uint64_t seed;
    uint32_t field_count;    /* fields of random bytes, up to SL_YCSB_FIELDS_MAX */
    uint32_t field_length;   /* bytes of each of these fields; unused if document_bytes > 0 */
    uint32_t document_bytes; /* of BSON, shared by these fields; 0: field_length decides */
    uint32_t integer_count;  /* up to SL_YCSB_FIELDS_MAX */
    double skew;             /* exponent of the integers' distribution, 0 to 10; up to 7 digits */
} sl_ycsb_options;

#define SL_YCSB_FIELDS_MAX 999u

typedef enum sl_header_choice { SL_HEADER_AUTO, SL_HEADER_YES, SL_HEADER_NO } sl_header_choice;

typedef struct sl_format_options {
    bool long_names;                    /* long keys in documents: test_mileage instead of m */
    const char *encoding;               /* of delimited text (encoding.h); NULL: UTF-8. Borrowed */
    const struct sl_notation *notation; /* delimited (notation.h); NULL: recognised */
    const char *const
        *nulls; /* delimited: unquoted fields that are NULL; borrowed, as their list */
    size_t null_count;
    bool store_null;   /* missing values are stored as null; else left out */
    bool quoted_lines; /* delimited: quoted fields may contain line ends in all sources */
    char escape;       /* delimited: in quoted fields, the byte after it is data; 0: none */
    char delimiter;    /* delimited, without schema: separates fields; 0: detected */
    char quote;        /* the same: the byte that quotes fields, or SL_QUOTE_AUTO (head.h) */
    bool trim;         /* remove blanks at both ends of every field, in every dialect */
    sl_header_choice
        header;           /* delimited, without schema, like the next three: is there a header? */
    const char *columns;  /* names, separated by commas; NULL: not given. Borrowed */
    uint64_t skip_lines;  /* lines before the table */
    bool pad;             /* lines with too few fields have missing values; else rejected */
    const char *declared; /* types of columns and JSON (declared.h); NULL: none. Borrowed */
    const char *array;    /* --embed: the field of the array of these records; NULL. Borrowed */
    bool infer_types;     /* delimited, without schema: columns may get types (typing.h) */
    bool keep_missing;    /* ISD: load the numbers and codes that mean "no value" */
    const char *schema_text; /* a YAML schema given by the user, or NULL. Borrowed */
    const char *schema_name; /* its file name, for messages; or SL_CREATE_TABLE. Borrowed */
    const char *id_fields;   /* that become the _id, separated by commas; NULL: none. Borrowed */
    sl_mode mode;
    const char *match_fields; /* with other modes than insert; NULL: _id. Borrowed */
    sl_ycsb_options ycsb;
} sl_format_options;

typedef struct sl_block {
    /* Complete records, each ended by LF, except perhaps a source's last one; for a format with
     * `splitter`, the records that it has found. Followed by SL_SLACK readable bytes. For generated
     * records `bytes` is NULL, and `length` is record_bytes() per record. */
    sl_text text;
    uint64_t offset;      /* of text.bytes[0] in the source's uncompressed stream */
    int64_t id_base;      /* a record's _id is id_base + (its offset modulo SL_BLOCK_BYTES) */
    uint64_t split_state; /* of a source with a splitter: sl_split.state at text.bytes[0]; else 0 */
    bool divided;         /* by a splitter */
    /* The fields that identify a document (key_fields.h); NULL: no document is changed. Dialects
     * whose columns have other names than the fields have their own keys. */
    const struct sl_key_fields *keys;
} sl_block;

/* The line number of a reject of a format whose records are not lines. */
#define SL_NO_LINE (UINT32_MAX - 1)
/* The line number of a document that was rejected after the parser had written it: by the server,
 * or because of --embed. Its record is the document as JSON, not text of the source. */
#define SL_REJECT_LINE_UNKNOWN UINT32_MAX
/* Added to the line of a document that the server has refused. */
#define SL_REJECT_OF_SERVER (1u << 31)

typedef struct sl_reject {
    uint64_t offset;    /* of the record in the source's uncompressed stream */
    uint32_t line;      /* number of the block's lines before the record, or one of the above */
    const char *column; /* the column's published name; NULL: the record as such is invalid */
    char reason[600];   /* a message for people */
    bool once;          /* of a doubt: one such record is shown, not the first few */
    bool misread;       /* the lines after this one would be misread as records: the load must end.
                           Not counted as a record; parse then returns false */
    sl_text record;     /* without its line end; valid during the call only */
    sl_text text;       /* of a document that the server has refused: its record in the source;
                           empty: not known. `record` is then JSON */
} sl_reject;

/* The buffer that documents are written to. The parser writes a document at `cursor`, moves
 * `cursor` to its end and adds 1 to `documents`. Before each document it checks that `limit -
 * cursor` is at least the document's upper bound and that documents < documents_limit, and
 * otherwise calls `full`. */
typedef struct sl_sink sl_sink;
struct sl_sink {
    uint8_t *cursor;
    uint8_t *limit; /* the SL_SLACK bytes after it may be overwritten */
    uint32_t documents;
    uint32_t documents_limit;
    /* For a format with `own_ids`, or with key fields, one per document in the buffer: the offset
     * of its record in the source's uncompressed stream, as in sl_reject. The parser stores
     * offsets[documents] before it adds 1 to `documents`. NULL: not needed. */
    uint64_t *offsets;
    /* Takes the documents out of the buffer, and makes room for at least `need` bytes and one
     * document. False: the load is ending, stop parsing this block. */
    bool (*full)(sl_sink *sink, size_t need);
    void (*reject)(sl_sink *sink, const sl_reject *reject);
    bool
        unchanged; /* documents are compared as they are: not inserted into a server, which replaces
                       Timestamp(0, 0) in their fields */
    /* Called for each value that does not fit the type of its column, and is left out of its
     * document (`invalid: missing`; malformed_fields counts it too), or kept as text. NULL: no
     * call. */
    void (*left_out)(sl_sink *sink, const char *column, bool kept);
    /* Called for a record, with the position and a reason as of a reject, that is loaded but may
     * hold other records: an unclosed quote may hide their line ends. NULL: no call. */
    void (*doubt)(sl_sink *sink, const sl_reject *record);
    void *context;
};

/* Ensures room for a document of `bound` bytes. False when the sink's `full` returned false. */
static inline bool sl_sink_make_room(sl_sink *sink, size_t bound) {
    if (__builtin_expect((size_t)(sink->limit - sink->cursor) >= bound &&
                             sink->documents < sink->documents_limit,
                         1))
        return true;
    return sink->full(sink, bound);
}

/* Totals of parsed blocks; util/load_counts.h describes them. records = documents + rejects. */
typedef struct sl_parse_counts {
    SL_PARSED_COUNTS(SL_COUNT_FIELD)
} sl_parse_counts; /* of uint64_t only */

static inline void sl_parse_counts_add(sl_parse_counts *into, const sl_parse_counts *more) {
    uint64_t *sums = (uint64_t *)into;
    const uint64_t *numbers = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *into / sizeof *sums; i++)
        sums[i] += numbers[i];
}

typedef struct sl_plan sl_plan; /* the compiled options; shared by all threads, read only */
/* One source's layout; shared by all threads, read only. Only the format knows its type:
 * delimited.h defines this struct for delimited text, the other formats convert the pointer to a
 * type of their own. */
typedef struct sl_dialect sl_dialect;

/* A format sets only the fields that it needs: fields whose description mentions NULL may be left
 * out. If there is a function sl_format_X for field X, callers use that function. */
typedef struct sl_format {
    const char *name;    /* as in --format */
    const char *summary; /* one line for --help and messages */
    /* The kind of its records ("test results", "test items"): a collection must not mix kinds.
     * NULL: record_kind returns it. */
    const char *kind;
    /* Documents may have their own _id, which becomes their first field. A document without one
     * gets the int64 _id of its position, as in all other formats. */
    bool own_ids;
    bool takes_schema; /* otherwise --schema is refused */
    /* Records are not text: rejected ones are written one after the other, without line ends. */
    bool binary;

    /* Compiles the options. False with error (SL_EXIT_USAGE) set when they are invalid. NULL: the
     * format has no options, and its plan is NULL. */
    bool (*plan_create)(const sl_format_options *options, sl_plan **plan, sl_error *error);
    void (*plan_destroy)(sl_plan *plan); /* of NULL too. NULL: free */

    /* Recognises the format by the first bytes of the source `name` (up to SL_SNIFF_BYTES; `whole`:
     * the head is the complete text). False with error (SL_EXIT_SOURCE; the message does not name
     * the source) when the source has another format. */
    bool (*sniff)(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error);
    /* Called after `sniff`, with the same bytes: checks for lines that would be misread as records:
     * line ends in quotes, lines that end in CR only. False with error (SL_EXIT_SOURCE; with line
     * and byte, without the source's name). NULL: there are no such lines. */
    bool (*check_head)(const sl_dialect *dialect, sl_text head, bool whole, sl_error *error);
    void (*dialect_destroy)(sl_dialect *dialect); /* of NULL too. NULL: free */

    /* The kind of the dialect's records: a string constant, or a string that lives as long as the
     * plan. NULL: `kind`. */
    const char *(*record_kind)(const sl_dialect *dialect);
    /* Writes one line for people: "dialect B: pipes, header, 14 columns". Returns out. NULL: the
     * kind of the records. */
    char *(*describe)(const sl_dialect *dialect, char *out, size_t room);
    /* The key that documents have for a column of this name; NULL: there is no such column. NULL
     * function: keys and names are the same. */
    const char *(*key_of)(const sl_dialect *dialect, const char *column);
    /* The header line with its line end; length 0 when there is none. NULL: there never is. */
    sl_text (*header)(const sl_dialect *dialect);

    /* For formats whose records do not end at every line end; else NULL. Returns the splitter of
     * the source's text; its context is the dialect. `*lines`: in a plain file, according to the
     * bytes sniffed, records are lines. NULL: in all texts of this dialect, records are lines. */
    const sl_splitter *(*splitter)(const sl_dialect *dialect, bool *lines);
    /* Can the splitter divide this dialect's texts with the other dialect as context? NULL: yes. */
    bool (*splits_alike)(const sl_dialect *dialect, const sl_dialect *context);
    /* The byte before a line end that is data; 0: there is none. NULL: 0. */
    char (*line_escape)(const sl_dialect *dialect);

    /* Parses a block. Thread safe. Adds to `counts`. False when the sink's `full` returned false,
     * or a line would be misread: the documents before that line have been counted. */
    bool (*parse)(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts);

    /* The types of --types, if they are of fields that documents may lack; else NULL. */
    const struct sl_declared *(*declared)(const sl_plan *plan);

    /* For formats that generate records; else NULL. Writes the name of a source that consists of
     * the records `first` to `last`. The name contains all options that the documents depend on,
     * and `sniff` recognises the source by it. */
    void (*name_records)(const sl_plan *plan, uint64_t first, uint64_t last, char *out,
                         size_t room);
    /* The bytes that each generated record counts as (document_id.h). */
    uint32_t (*record_bytes)(const sl_plan *plan);
} sl_format;

/* The formats, one row each: the X of sl_format_X, the name in --format, its help. Specific formats
 * come before general ones. To detect a source's format, call each `sniff` in this order, without
 * the formats that generate records: the first that succeeds determines the format. If none
 * succeeds, report the error of the first. If the options contain a schema, leave out formats that
 * take no schema; formats with built-in schemas refuse every source. */
#define SL_FORMATS(row)                                                                            \
    row(bson, "bson", "BSON files, as mongodump writes them") row(mot, "mot", "MOT vehicle tests") \
        row(isd, "isd", "NOAA weather records, packed")                                            \
            row(isd_lite, "isd-lite", "the same, simplified")                                      \
                row(isd_csv, "isd-csv", "the same, as global-hourly tables")                       \
                    row(json, "json", "JSON lines, arrays of documents, Extended JSON")            \
                        row(delimited, "delimited", "any other table of text, such as CSV")        \
                            row(ycsb, "ycsb", "no file; --records are generated")

#define SL_FORMAT_DECLARED(id, name, help) extern const sl_format sl_format_##id;
SL_FORMATS(SL_FORMAT_DECLARED)
#undef SL_FORMAT_DECLARED

/* All formats in the order of the rows, ended by NULL. */
extern const sl_format *const sl_formats[];

/* The format of that name; NULL when there is none. */
const sl_format *sl_format_named(const char *name);

/* Call the format's function of that name, or apply the default if it has none. Also refuses a
 * schema for a format that takes none (SL_EXIT_USAGE). */
bool sl_format_plan_create(const sl_format *format, const sl_format_options *options,
                           sl_plan **plan, sl_error *error);
void sl_format_plan_destroy(const sl_format *format, sl_plan *plan);
void sl_format_dialect_destroy(const sl_format *format, sl_dialect *dialect);
const char *sl_format_record_kind(const sl_format *format, const sl_dialect *dialect);
char *sl_format_describe(const sl_format *format, const sl_dialect *dialect, char *out,
                         size_t room);
sl_text sl_format_header(const sl_format *format, const sl_dialect *dialect);

#endif
