/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of a load: one row for each. The counters of workers and their sums, the fields of the
 * journal, `accounting` in run.json, the progress as JSON, the metrics, the summary on the screen
 * and its table on pages follow from the rows. docs/run-record.md describes the keys. */
#ifndef SHARDLOAD_LOAD_COUNTS_H
#define SHARDLOAD_LOAD_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"
#include "write_modes.h"

/* The phases of a load, as run.json names them. */
#define SL_PHASE_SOURCES "sources"
#define SL_PHASE_EMBED "embed"
#define SL_PHASE_CONNECT "connect"
#define SL_PHASE_PREPARE "prepare"
#define SL_PHASE_LOAD "load"
#define SL_PHASE_INDEXES "indexes"
#define SL_PHASE_BALANCER "balancer"
#define SL_PHASE_UNMATCHED "unmatched"
#define SL_PHASE_VERIFY "verify"

/* Where a count is shown. */
enum { SL_ON_SCREEN = 1, SL_ON_PAGES = 2, SL_EVERYWHERE = SL_ON_SCREEN | SL_ON_PAGES };

typedef struct sl_count_row {
    const char *key;     /* in `accounting` of run.json; NULL: not there */
    const char *label;   /* on the screen and on pages; NULL: not shown, except for an outcome */
    size_t outcome;      /* offset of its label in sl_mode_row; 0: the label is the same in all
                            modes */
    unsigned zero_shown; /* where it is shown even if it is 0 */
    unsigned hidden;     /* where it is never shown */
    bool of_records;     /* a part of the records: pages show its share */
    bool of_earlier;     /* also in `earlierRuns` */
    bool if_matching;    /* in run.json only of a mode that matches stored documents */
    bool if_own_ids;     /* in run.json only of documents with their own _ids */
    bool live;           /* in the progress as JSON, under the same key */
    /* The metric of this run, a label of it with its value, and what it counts; NULL: none. */
    const char *metric, *metric_label, *metric_value, *help;
} sl_count_row;

#define SL_OUTCOME(member) .outcome = offsetof(sl_mode_row, member)

/* OWNER(place, field, properties...), in the order of the summary. `place` is the number of the
 * field in a journal entry (docs/internals/delivery.md): a new count that is kept there takes the
 * next number; 0: it is not kept. The owner is where it is counted:
 *
 *   PARSED   sl_parse_counts, by the formats
 *   SENT     sl_worker_counters, when a batch is acknowledged; of earlier runs sl_recovered
 *   DERIVED  likewise, but recovered from the other counts of a journal entry
 *   RUN      sl_worker_counters, of this run only
 *   LIVE     likewise; for the progress only
 *   END      sl_load_counts, when the load has ended */
#define SL_COUNTS(PARSED, SENT, DERIVED, RUN, LIVE, END)                                           \
    /* = documents + rejects */                                                                    \
    PARSED(13, records, .key = "records", .label = "records", .zero_shown = SL_EVERYWHERE,         \
           .of_records = true, .of_earlier = true)                                                 \
    END(0, earlier_records, .label = "  of these, in earlier runs")                                \
    SENT(6, inserted, .key = "inserted", SL_OUTCOME(inserted), .zero_shown = SL_EVERYWHERE,        \
         .of_records = true, .of_earlier = true, .metric = "run_documents_total",                  \
         .metric_label = "outcome", .metric_value = "inserted",                                    \
         .help = "Documents of this run by their outcome.")                                        \
    DERIVED(0, changed, .key = "changed", SL_OUTCOME(changed), .zero_shown = SL_EVERYWHERE,        \
            .of_records = true, .of_earlier = true, .if_matching = true,                           \
            .metric = "run_documents_total", .metric_label = "outcome", .metric_value = "changed", \
            .help = "Documents of this run by their outcome.")                                     \
    SENT(7, already_stored, .key = "alreadyStored", SL_OUTCOME(already_stored),                    \
         .zero_shown = SL_ON_PAGES, .of_records = true, .of_earlier = true,                        \
         .metric = "run_documents_total", .metric_label = "outcome",                               \
         .metric_value = "already_stored", .help = "Documents of this run by their outcome.")      \
    PARSED(15, rejects, .key = "rejectedByParser", .label = "+ rejected by the parser",            \
           .zero_shown = SL_EVERYWHERE, .of_records = true, .of_earlier = true)                    \
    LIVE(0, records)                                                                               \
    LIVE(0, parser_rejects, .metric = "run_rejects_total", .metric_label = "by",                   \
         .metric_value = "parser", .help = "Rejects of this run by who rejected the record.")      \
    SENT(8, server_rejects, .key = "rejectedByServer", .label = "+ rejected by the server",        \
         .zero_shown = SL_ON_PAGES, .of_records = true, .of_earlier = true,                        \
         .metric = "run_rejects_total", .metric_label = "by", .metric_value = "server",            \
         .help = "Rejects of this run by who rejected the record.")                                \
    /* of these: identical documents that no earlier attempt has sent */                           \
    RUN(0, repeated, .key = "identicalDuplicates", .label = "  of these, identical duplicates",    \
        .of_records = true, .if_own_ids = true)                                                    \
    END(0, undelivered, .key = "undelivered", .label = "+ read, but not acknowledged",             \
        .of_records = true)                                                                        \
    END(0, not_read, .label = "record[s] not read")                                                \
    END(0, not_read_estimated, .label = "record[s] not read (estimate)")                           \
    /* of all kinds */                                                                             \
    PARSED(12, lines, .key = "lines")                                                              \
    PARSED(14, documents)                                                                          \
    /* repeated headers, dropped (without the first line of a source) */                           \
    PARSED(16, headers, .key = "repeatedHeaders", .label = "repeated header line[s] skipped")      \
    PARSED(17, blank_lines, .key = "blankLines", .label = "blank line[s] skipped")                 \
    /* records whose extra delimiters were kept in the spill column */                             \
    PARSED(18, repaired, .key = "repaired", .label = "record[s] repaired (extra delimiters)",      \
           .of_records = true)                                                                     \
    /* records with text that was read as windows-1252, or (ISD) Latin-1 */                        \
    PARSED(19, transcoded, .key = "transcoded", .label = "record[s] converted to UTF-8",           \
           .of_records = true)                                                                     \
    /* ISD records whose length differs from the declared one */                                   \
    PARSED(20, length_mismatches, .key = "lengthMismatches",                                       \
           .label = "record[s] with a wrong declared length", .of_records = true)                  \
    /* values left out: ISD fields that are no numbers, columns with invalid: missing */           \
    PARSED(21, malformed_fields, .key = "malformedFields", .label = "malformed field[s] left out") \
    /* ISD records with sections that were kept as text */                                         \
    PARSED(22, unknown_groups, .key = "unknownGroups",                                             \
           .label = "record[s] with groups stored as text", .of_records = true)                    \
    /* numbers of JSON with more digits than a double holds */                                     \
    PARSED(23, rounded_numbers, .key = "roundedNumbers", .label = "number[s] rounded to doubles")  \
    SENT(5, text_bytes, .key = "textBytes", .of_earlier = true)                                    \
    RUN(0, bson_bytes, .key = "bsonBytes", .live = true, .metric = "bson_bytes_total",             \
        .help = "BSON sent by this run.")                                                          \
    RUN(0, batches, .key = "batches", .label = "batches", .zero_shown = SL_ON_PAGES,               \
        .hidden = SL_ON_SCREEN, .metric = "batches_total", .help = "Batches sent by this run.")    \
    RUN(0, retries, .key = "retries", .label = "batch[|es] sent again", .live = true,              \
        .metric = "retries_total", .help = "Batches that this run has sent again.")                \
    /* text of blocks that were begun, and completed */                                            \
    LIVE(0, text_begun)                                                                            \
    LIVE(0, text_completed)                                                                        \
    END(0, embedding_documents, .label = "document[s] sent with embedded records")                 \
    END(0, embedded, .label = "record[s] embedded in them")                                        \
    END(0, unmatched, .label = "record[s] unmatched")                                              \
    END(0, embed_rejects, .label = "record[s] to embed, rejected")                                 \
    END(0, embed_left_out, .label = "value[s] left out of records to embed")                       \
    END(0, sources_left_out, .label = "source[s] left out")                                        \
    END(0, not_loaded, .label = "file[s] [or|and] entr[y|ies] not loaded")

/* The rows of some owners: each applies use(place, field, properties...). */
#define SL_NO_COUNT(...)
#define SL_PARSED_COUNTS(use)                                                                      \
    SL_COUNTS(use, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT)
#define SL_WORKER_COUNTS(use) SL_COUNTS(SL_NO_COUNT, use, use, use, use, SL_NO_COUNT)
#define SL_RECOVERED_COUNTS(use)                                                                   \
    SL_COUNTS(SL_NO_COUNT, use, use, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT)
#define SL_RUN_COUNTS(use) SL_COUNTS(SL_NO_COUNT, use, use, use, SL_NO_COUNT, SL_NO_COUNT)
#define SL_JOURNAL_COUNTS(parsed, sent)                                                            \
    SL_COUNTS(parsed, sent, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT, SL_NO_COUNT)
#define SL_ALL_COUNTS(use) SL_COUNTS(use, use, use, use, SL_NO_COUNT, use)

#define SL_COUNT_FIELD(place, field, ...) uint64_t field;

/* All counts of all runs of a load. */
typedef struct sl_load_counts {
    SL_ALL_COUNTS(SL_COUNT_FIELD)
} sl_load_counts;

/* A row with the position of its value in sl_load_counts. */
typedef struct sl_load_count {
    sl_count_row row;
    size_t offset;
} sl_load_count;

/* The counts of sl_load_counts, in the order of the summary; ended by the offset SIZE_MAX. */
extern const sl_load_count sl_load_count_table[];
#define SL_FOR_COUNTS(one)                                                                         \
    for (const sl_load_count *one = sl_load_count_table; one->offset != SIZE_MAX; one++)

uint64_t sl_count_value(const sl_load_counts *counts, const sl_load_count *one);

/* Is a count of this value shown there (one of SL_ON_...), after a load in this mode? */
bool sl_count_is_shown(const sl_count_row *row, const sl_mode_row *mode, unsigned where,
                       bool positive);

/* Its label in this mode, for one of it or for other counts. */
#define SL_COUNT_LABEL_ROOM SL_PLURAL_ROOM
const char *sl_count_label(const sl_count_row *row, const sl_mode_row *mode, bool one,
                           char room[SL_COUNT_LABEL_ROOM]);

/* ---- the time of workers ---- */

/* row(ID, key, metric, name): the activities that a worker's time is divided into: as a key of
 * JSON, as a label of a metric, for people. */
#define SL_STAGES(row)                                                                             \
    row(READING, "reading", "reading", "reading")                                                  \
        row(INFLATING, "unpacking", "unpacking", "unpacking")                                      \
            row(PARSING, "parsing", "parsing", "parsing") /* waiting for --rate-limit */           \
        row(PACING, "rateLimit", "rate_limit", "the rate limit")                                   \
            row(SENDING, "server", "server", "the server")

#define SL_STAGE_ID(id, ...) STAGE_##id,
typedef enum sl_stage { SL_STAGES(SL_STAGE_ID) STAGES } sl_stage;
#undef SL_STAGE_ID

extern const char *const sl_stage_keys[STAGES];
extern const char *const sl_stage_metrics[STAGES];
extern const char *const sl_stage_names[STAGES];

/* The name of a stage for people; `key` itself if it is no key: earlier programs wrote the names as
 * keys. */
const char *sl_stage_name_of(const char *key);

#endif
