/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: how the text of a source becomes BSON documents.
 *
 * A format knows nothing of files or servers. The caller compiles the options into a plan once,
 * sniffs each source's first bytes into a dialect, and then hands over blocks of whole records,
 * from any number of threads at once; documents go into a sink as finished BSON bytes. */
#ifndef SHARDLOAD_FORMAT_H
#define SHARDLOAD_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/error.h>
#include <shardload/text.h>

/* A block's text is followed by this many readable bytes (of any value), so that a parser may load
 * whole vectors at its end. A sink's room likewise has this many writable bytes after its limit. */
#define SL_SLACK 64

/* How much of a source's beginning a sniff looks at. */
#define SL_SNIFF_BYTES 65536

/* What made-up records are like (the format `ycsb`). */
typedef struct sl_ycsb_options {
    uint64_t records;
    uint64_t seed;
    uint32_t field_count;   /* fields of random bytes, up to SL_YCSB_FIELDS_MAX */
    uint32_t field_length;  /* bytes of each */
    uint32_t integer_count; /* up to SL_YCSB_FIELDS_MAX */
    double skew;            /* of the integers, 0 to 10; up to 7 digits */
} sl_ycsb_options;

#define SL_YCSB_FIELDS_MAX 999u

typedef struct sl_format_options {
    bool long_names;         /* test_mileage instead of m */
    bool latin1;             /* text that is not UTF-8 is read as windows-1252; else a reject */
    bool trim;               /* cut blanks at both ends of every field, in every dialect */
    bool keep_missing;       /* ISD: load the numbers and codes that stand for no value */
    const char *schema_text; /* a YAML schema given by the user, or NULL. Borrowed */
    const char *schema_name; /* where it came from, for messages. Borrowed */
    sl_ycsb_options ycsb;
} sl_format_options;

typedef struct sl_block {
    sl_text text;       /* whole records, each ended by LF, the very last one of a source perhaps
                           not; followed by SL_SLACK readable bytes. Of made-up records, which
                           have no text, `bytes` is NULL and `length` the room they stand on:
                           SL_MADE_UP_BYTES (document_id.h) for each */
    uint64_t offset;    /* of text.bytes[0] in the source's uncompressed stream */
    int64_t id_base;    /* a record's _id is id_base + (its offset modulo SL_BLOCK_BYTES) */
} sl_block;

typedef struct sl_reject {
    uint64_t offset;    /* of the record in the source's uncompressed stream */
    uint32_t line;      /* lines of the block before the record */
    const char *column; /* the column's published name, or NULL when the whole record is at fault */
    char reason[600];   /* in words, for people */
    bool misread;       /* the lines behind this one would be misread as records: the load must end.
                           Not counted as a record; parse then returns false */
    sl_text record;     /* without its line end; valid during the call only */
} sl_reject;

/* Where documents go. The parser writes a document at `cursor`, moves `cursor` behind it and adds 1
 * to `documents`. Before each document it makes sure that `limit - cursor` covers the document's
 * upper bound and that documents < documents_limit, and otherwise calls `full`. */
typedef struct sl_sink sl_sink;
struct sl_sink {
    uint8_t *cursor;
    uint8_t *limit; /* SL_SLACK more bytes behind it may be scribbled on */
    uint32_t documents;
    uint32_t documents_limit;
    /* Takes the documents away and makes room for at least `need` bytes and one document. False
     * means stop parsing this block now (the load is ending). */
    bool (*full)(sl_sink *sink, size_t need);
    void (*reject)(sl_sink *sink, const sl_reject *reject);
    void *context;
};

/* What a block held. records = documents + rejects. */
typedef struct sl_parse_counts {
    uint64_t lines; /* every line, of whatever kind */
    uint64_t records;
    uint64_t documents;
    uint64_t rejects;
    uint64_t headers;     /* repeated headers that were dropped (not the first line of a source) */
    uint64_t blank_lines; /* dropped */
    uint64_t repaired;    /* records with extra pipes put back into their model */
    uint64_t transcoded;  /* records with text that was read as windows-1252, or (ISD) Latin-1 */
    uint64_t length_mismatches; /* ISD records that have not the length that they tell */
    uint64_t malformed_fields;  /* ISD numbers that are none: left out */
    uint64_t unknown_groups;    /* ISD records of which a part was kept as text */
} sl_parse_counts; /* of uint64_t only */

static inline void sl_parse_counts_add(sl_parse_counts *into, const sl_parse_counts *more) {
    uint64_t *sums = (uint64_t *)into;
    const uint64_t *numbers = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *into / sizeof *sums; i++)
        sums[i] += numbers[i];
}

typedef struct sl_plan sl_plan;       /* options compiled; shared by all threads, read only */
typedef struct sl_dialect sl_dialect; /* how one source is written; shared, read only */

typedef struct sl_format {
    const char *name;    /* as in --format */
    const char *summary; /* one line for --help and messages */

    /* Compiles the options. False with error (SL_EXIT_USAGE) set when they make no sense. */
    bool (*plan_create)(const sl_format_options *options, sl_plan **plan, sl_error *error);
    void (*plan_destroy)(sl_plan *plan); /* NULL is fine */

    /* Looks at the first bytes (up to SL_SNIFF_BYTES; `whole` when that is all there is) of the
     * source called `name`. False with error (SL_EXIT_SOURCE; the message does not name the
     * source) when this is not the format's. */
    bool (*sniff)(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error);
    /* Looks through the same bytes, once they are recognised, for what would be misread as records:
     * line ends in quotes, lines that end in CR alone. False with error (SL_EXIT_SOURCE; with line
     * and byte, without the source's name). May be NULL. */
    bool (*check_head)(const sl_dialect *dialect, sl_text head, bool whole, sl_error *error);
    void (*dialect_destroy)(sl_dialect *dialect); /* NULL is fine */

    /* What kind of record the dialect holds ("test results", "test items"): sources of different
     * kinds do not belong into one collection. A string constant or one that lives as long as the
     * plan. */
    const char *(*record_kind)(const sl_dialect *dialect);
    /* One line for people: "dialect B: pipes, header, 14 columns". Returns out. */
    char *(*describe)(const sl_dialect *dialect, char *out, size_t room);
    /* The bytes of the header line with its line end; length 0 when there is none. */
    sl_text (*header)(const sl_dialect *dialect);

    /* Parses a block. Thread safe. Adds to `counts`. False when the sink said stop or a line would
     * be misread: documents before that point have been counted. */
    bool (*parse)(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts);

    /* Only where records are made up, not read; else NULL. Writes into `out` the name of a source
     * that is the records `first` to `last`. It says all that the bytes of the documents depend on,
     * and the sniff knows the records again by it; there is nothing else to look at. */
    void (*name_records)(const sl_plan *plan, uint64_t first, uint64_t last, char *out,
                         size_t room);
} sl_format;

/* All formats, the particular before the general, ended by NULL. To find out which format a source
 * is in, ask those that read in this order: the first whose sniff takes it is the one, and if none
 * does the first one's reason is the best to tell. Where the options hold a schema, every format
 * that brings its own refuses. */
extern const sl_format *const sl_formats[];

/* By name; NULL when there is no such format. */
const sl_format *sl_format_named(const char *name);

#endif
