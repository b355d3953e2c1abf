/* SPDX-License-Identifier: Apache-2.0 */
/* The format `ycsb`: generates records for key-value benchmarks.
 *
 * The source has a name and no bytes. The name contains all options that the documents depend on,
 * and the number of the first record. A block's length gives the number of its records, since each
 * counts as the same number of bytes. So threads share no state: each computes the position of a
 * block's first record in the sequence of random words, and continues from there. */
#include "ycsb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/document_id.h"
#include "util/hash.h"

#define WORD sizeof(uint64_t)
#define NAME_START "ycsb records "

/* The bytes before a field's value: type, key of at most four letters, NUL, and for binary data its
 * length and subtype. */
typedef struct prefix {
    uint8_t bytes[SL_BSON_PREFIX_STEP];
    uint32_t length;
} prefix;

_Static_assert(1 + 5 + 4 + 1 <= SL_BSON_PREFIX_STEP, "a prefix is copied in one step");
_Static_assert(SL_BSON_PREFIX_STEP + WORD <= SL_SLACK, "bytes written after a document's end");

struct sl_plan {
    sl_ycsb_options options; /* with the field_length that document_bytes leave */
    uint32_t last_length;    /* of the last field of bytes */
    uint32_t record_bytes;   /* that each record counts as */
    size_t document_bytes;
    uint64_t record_words; /* words of the random sequence per record */
    sl_zipf zipf;          /* only if there are integers */
    prefix prefixes[];     /* of the fields of bytes, then of the integers */
};

typedef struct ycsb_dialect {
    const sl_plan *plan;
    uint64_t first; /* record */
} ycsb_dialect;

/* ---- Zipf's law ---- */

/* Draws integers by Zipf's law. Each value gets an integer share of 2^64; the value 0 gets the
 * remainder, so that the shares add up to exactly 2^64. Walker's alias method, with Vose's two
 * lists, then distributes the shares over as many slots as there are values, each of size 2^48,
 * with at most two values per slot: a value whose share does not fill its slot is paired with a
 * value whose share is larger than a slot. The computation uses integers, so it is exact. */

#define SLOT (UINT64_C(1) << (64 - SL_ZIPF_BITS))

/* Computes the shares. Adds small terms first, for precision. shares[0] wraps from 0 to its
 * share. */
static void make_shares(uint64_t *shares, double skew) {
    double sum = 0;
    for (uint32_t k = SL_ZIPF_VALUES; k-- > 0;)
        sum += pow(k + 1.0, -skew);
    shares[0] = 0;
    for (uint32_t k = SL_ZIPF_VALUES; --k > 0;) {
        shares[k] = (uint64_t)ldexp(pow(k + 1.0, -skew) / sum, 64);
        shares[0] -= shares[k];
    }
}

/* Fills the table for the exponent `skew` (0 to 10): the value k is drawn 1 / (k+1)^skew times as
 * often as the value 0. Each value's probability has a relative error of at most 2^-36 plus an
 * absolute error of at most 2^-48. False without memory. */
static bool make_zipf(sl_zipf *table, double skew, sl_error *error) {
    uint64_t *shares = malloc(SL_ZIPF_VALUES * sizeof *shares);
    uint32_t *lists = malloc(SL_ZIPF_VALUES * sizeof *lists);
    if (!shares || !lists) {
        free(shares);
        free(lists);
        return sl_error_memory(error, "generating records");
    }
    make_shares(shares, skew);
    /* Two stacks in one array: from the left the values whose share is smaller than a slot, from
     * the right the other values. */
    uint32_t small = 0, large = SL_ZIPF_VALUES;
    for (uint32_t k = 0; k < SL_ZIPF_VALUES; k++) {
        table->slots[k] = k; /* threshold 0, and its own alias: always gives k */
        if (shares[k] < SLOT)
            lists[small++] = k;
        else
            lists[--large] = k;
    }
    while (small > 0) { /* the shares' sum is exact, so a value with more than a slot exists too */
        uint32_t under = lists[--small], over = lists[large];
        table->slots[under] = shares[under] << SL_ZIPF_BITS | over;
        shares[over] -= SLOT - shares[under];
        if (shares[over] < SLOT) {
            large++;
            lists[small++] = over;
        }
    }
    free(shares);
    free(lists);
    return true;
}

/* ---- the plan ---- */

static uint64_t words_of(uint32_t length) {
    return (length + WORD - 1) / WORD;
}

/* Writes a prefix, without the length of binary data; returns the length of the prefix. */
static uint32_t put_prefix(uint8_t *start, const sl_ycsb_options *options, uint32_t index) {
    bool integer = index >= options->field_count;
    char key[16];
    snprintf(key, sizeof key, "%c%u", integer ? 'n' : 'f',
             integer ? index - options->field_count : index);
    uint8_t *to = sl_bson_put_key(start, integer ? SL_BSON_INT32 : SL_BSON_BINARY, key);
    if (!integer) {
        to = sl_bson_put_int32(to, 0);
        *to++ = 0; /* generic subtype */
    }
    return (uint32_t)(to - start);
}

/* The size of a document whose fields of bytes are empty. */
static size_t frame_bytes(const sl_ycsb_options *options) {
    uint8_t bytes[SL_BSON_PREFIX_STEP];
    size_t sum = SL_BSON_HEAD_BYTES + 1 + (size_t)4 * options->integer_count;
    for (uint32_t i = 0; i < options->field_count + options->integer_count; i++)
        sum += put_prefix(bytes, options, i);
    return sum;
}

/* The size of a document, also if it is too large to be generated. */
static size_t document_bytes(const sl_ycsb_options *options) {
    return options->document_bytes > 0
               ? options->document_bytes
               : frame_bytes(options) + (size_t)options->field_count * options->field_length;
}

uint32_t sl_ycsb_record_bytes(const sl_ycsb_options *options) {
    size_t document = document_bytes(options);
    uint32_t bytes = SL_GENERATED_BYTES;
    while (bytes < SL_BLOCK_BYTES && SL_BLOCK_BYTES / bytes * document > SL_YCSB_BLOCK_BSON_MAX)
        bytes *= 2;
    return bytes;
}

/* Computes the fields' lengths, the prefixes, and what a record needs. */
static void lay_out(sl_plan *plan) {
    sl_ycsb_options *options = &plan->options;
    uint32_t fields = options->field_count;
    plan->document_bytes = document_bytes(options);
    plan->record_bytes = sl_ycsb_record_bytes(options);
    plan->last_length = options->field_length;
    if (options->document_bytes > 0 && fields > 0) {
        uint32_t bytes = options->document_bytes - (uint32_t)frame_bytes(options);
        options->field_length = bytes / fields;
        plan->last_length = options->field_length + bytes % fields;
    }
    for (uint32_t i = 0; i < fields + options->integer_count; i++) {
        prefix *one = &plan->prefixes[i];
        one->length = put_prefix(one->bytes, options, i);
        if (i < fields)
            sl_bson_put_int32(
                one->bytes + one->length - 5,
                (int32_t)(i + 1 < fields ? options->field_length : plan->last_length));
    }
    plan->record_words = options->integer_count;
    if (fields > 0)
        plan->record_words +=
            (fields - 1) * words_of(options->field_length) + words_of(plan->last_length);
}

/* Can the documents be made? */
static bool check_size(const sl_ycsb_options *options, sl_error *error) {
    size_t frame = frame_bytes(options);
    if (document_bytes(options) > SL_BSON_DOCUMENT_MAX)
        return options->document_bytes > 0
                   ? sl_error_set(error, SL_EXIT_USAGE,
                                  "documents of %u bytes are too large; a server accepts at most "
                                  "%zu",
                                  options->document_bytes, SL_BSON_DOCUMENT_MAX)
                   : sl_error_set(
                         error, SL_EXIT_USAGE,
                         "%u fields of %u bytes make documents of %zu bytes; a server accepts at "
                         "most %zu",
                         options->field_count, options->field_length, document_bytes(options),
                         SL_BSON_DOCUMENT_MAX);
    if (options->document_bytes == 0)
        return true;
    if (options->field_count == 0 && options->document_bytes != frame)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--document-size needs fields of random bytes; with --field-count 0 "
                            "documents have %zu bytes",
                            frame);
    return options->document_bytes >= frame ||
           sl_error_set(
               error, SL_EXIT_USAGE,
               "--document-size: documents of %u bytes are too small: the _id, %u integers "
               "and the names of %u fields take %zu; give a larger size or a smaller "
               "--field-count or --integer-count",
               options->document_bytes, options->integer_count, options->field_count, frame);
}

static bool plan_create(const sl_format_options *options, sl_plan **result, sl_error *error) {
    const sl_ycsb_options *ycsb = &options->ycsb;
    *result = NULL;
    if (ycsb->field_count > SL_YCSB_FIELDS_MAX || ycsb->integer_count > SL_YCSB_FIELDS_MAX)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "a record may have at most %u fields of each kind", SL_YCSB_FIELDS_MAX);
    if (!check_size(ycsb, error))
        return false;
    size_t fields = ycsb->field_count + ycsb->integer_count;
    sl_plan *plan = calloc(1, sizeof *plan + fields * sizeof plan->prefixes[0]);
    if (!plan)
        return sl_error_memory(error, "generating records");
    plan->options = *ycsb;
    lay_out(plan);
    bool ok = ycsb->integer_count == 0 || make_zipf(&plan->zipf, ycsb->skew, error);
    if (ok)
        *result = plan;
    else
        free(plan);
    return ok;
}

/* ---- sources ---- */

static void name_records(const sl_plan *plan, uint64_t first, uint64_t last, char *out,
                         size_t room) {
    const sl_ycsb_options *options = &plan->options;
    char size[40];
    if (options->document_bytes > 0)
        snprintf(size, sizeof size, "%u fields, %u", options->field_count, options->document_bytes);
    else
        snprintf(size, sizeof size, "%u x %u", options->field_count, options->field_length);
    snprintf(out, room, NAME_START "%llu to %llu of seed %llu: %s bytes, %u integers, skew %.9g",
             (unsigned long long)first, (unsigned long long)last, (unsigned long long)options->seed,
             size, options->integer_count, options->skew);
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole, sl_dialect **out,
                  sl_error *error) {
    (void)head, (void)whole;
    if (strncmp(name, NAME_START, strlen(NAME_START)) != 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "ycsb generates records and reads no sources");
    ycsb_dialect *dialect = malloc(sizeof *dialect);
    if (!dialect)
        return sl_error_memory(error, "generating records");
    *dialect = (ycsb_dialect){plan, strtoull(name + strlen(NAME_START), NULL, 10)};
    *out = (sl_dialect *)dialect;
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    const sl_plan *plan = ((const ycsb_dialect *)dialect)->plan;
    const sl_ycsb_options *options = &plan->options;
    char last[40] = "";
    if (plan->last_length != options->field_length)
        snprintf(last, sizeof last, " (the last %u)", plan->last_length);
    snprintf(out, room,
             "documents of %zu bytes: %u fields of %u random bytes%s, %u integers of skew %.9g",
             plan->document_bytes, options->field_count, options->field_length, last,
             options->integer_count, options->skew);
    return out;
}

/* ---- documents ---- */

/* Writes a document of exactly document_bytes, and up to SL_SLACK bytes after it. `state` is the
 * position of its record in the random sequence. */
static uint8_t *put_document(const sl_plan *plan, int64_t id, uint64_t state, uint8_t *to) {
    uint8_t *start = to;
    uint32_t fields = plan->options.field_count;
    const prefix *next = plan->prefixes;
    to = sl_bson_begin_with_id(to, id);
    for (uint32_t i = 0; i < fields; i++, next++) {
        size_t length = i + 1 < fields ? plan->options.field_length : plan->last_length;
        to = sl_bson_put_prefix(to, next->bytes, next->length);
        for (size_t at = 0; at < length; at += WORD) {
            uint64_t word = sl_random_word(state += SL_HASH_A);
            memcpy(to + at, &word, WORD);
        }
        to += length;
    }
    for (uint32_t i = 0; i < plan->options.integer_count; i++, next++) {
        to = sl_bson_put_prefix(to, next->bytes, next->length);
        uint64_t word = sl_random_word(state += SL_HASH_A);
        to = sl_bson_put_int32(to, sl_zipf_draw(&plan->zipf, word));
    }
    return sl_bson_end(start, to);
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    size_t need = plan->document_bytes;
    int64_t id = block->id_base + (int64_t)(block->offset % SL_BLOCK_BYTES);
    uint64_t record = ((const ycsb_dialect *)dialect)->first + block->offset / plan->record_bytes;
    uint64_t state = plan->options.seed + record * plan->record_words * SL_HASH_A;
    for (uint64_t left = block->text.length / plan->record_bytes; left > 0; left--) {
        if (!sl_sink_make_room(sink, need))
            return false;
        sink->cursor = put_document(plan, id, state, sink->cursor);
        sink->documents++;
        counts->records++;
        counts->documents++;
        id += plan->record_bytes;
        state += plan->record_words * SL_HASH_A;
    }
    return true;
}

static uint32_t record_bytes(const sl_plan *plan) {
    return plan->record_bytes;
}

const sl_format sl_format_ycsb = {
    .name = "ycsb",
    .summary = "generated key-value records: random bytes, and integers by Zipf's law",
    .kind = "generated records",
    .plan_create = plan_create,
    .sniff = sniff,
    .describe = describe,
    .parse = parse,
    .name_records = name_records,
    .record_bytes = record_bytes,
};
