/* SPDX-License-Identifier: Apache-2.0 */
/* The format `bson`: a sequence of BSON documents, as mongodump and --sink bson:FILE write them.
 *
 * Two passes must find the same starts of records. `find_end` runs under the source's lock and
 * reads little more than the lengths of the documents: if a document is followed by the end of the
 * text, or by bytes with which a document may begin, it is not examined further; otherwise it is
 * checked completely. `parse` checks every document completely, in any thread.
 *
 * Damage. If the length of a damaged document leads to the beginning of another document, and no
 * valid documents begin before that, only the damaged one is rejected. Otherwise the damage extends
 * to the next position at which two consecutive valid documents begin, or one valid document that
 * ends with the text. (A document embedded in a damaged one is followed by other bytes.) The last
 * bytes of a truncated document may be an embedded document, so after the start of a truncated
 * document only the first condition counts. The damaged bytes are one reject, or one reject per
 * MiB. The `state` of sl_split shows that a block begins within damage. */
#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_check.h"
#include "bson/bson_writer.h"
#include "util/document_id.h"

#include "key_fields.h"

/* Values of sl_split.state. */
enum {
    IN_DOCUMENTS,
    IN_DAMAGE,
    IN_TRUNCATED, /* damage that began with the beginning of a truncated document */
};

#define HEADER_BYTES 5u /* of a document: its length, and the type of its first element */
#define ID_BYTES 13u    /* of an element {_id: <int64>} */

/* ---- recognising a source ---- */

static bool has_suffix(const char *name, const char *suffix) {
    size_t length = strlen(name), more = strlen(suffix);
    return length >= more && strcmp(name + length - more, suffix) == 0;
}

/* Does the source have the name of a dump? Then it is read even if its first document is
 * damaged. */
static bool is_named_bson(const char *name) {
    static const char *const suffixes[] = {".bson",    ".bson.gz",  ".bson.zst",
                                           ".bson.xz", ".bson.bz2", ".bson.lz4"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (has_suffix(name, suffixes[i]))
            return true;
    }
    return false;
}

/* Is the part of the first document that is in the head valid? */
static bool begins_with_document(sl_text head, bool whole, sl_error *error) {
    sl_bson_facts facts;
    sl_bson_verdict verdict = sl_bson_check_alone((const uint8_t *)head.bytes, head.length, &facts);
    if (verdict == SL_BSON_INVALID && !facts.why)
        return sl_error_memory(error, "reading BSON");
    if (verdict == SL_BSON_INVALID)
        return sl_error_set(error, SL_EXIT_SOURCE, "not BSON: %s (byte %u)", facts.why,
                            facts.wrong_at);
    if (verdict == SL_BSON_MORE && whole)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "not BSON: it has %zu bytes, but its first document would have %u; if "
                            "it is a damaged dump, rename it to end in .bson",
                            head.length, facts.length);
    return true;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)plan;
    if (!is_named_bson(name) && !begins_with_document(head, whole, error))
        return false;
    *dialect = calloc(1, 1); /* all sources have the same layout */
    return *dialect || sl_error_memory(error, "reading BSON");
}

/* ---- dividing a text ---- */

/* Do two valid documents begin at `bytes`, or one that ends with the text? The second case does not
 * count after a truncated document. SL_BSON_MORE: more text is needed to decide. */
static sl_bson_verdict check_two(const uint8_t *bytes, size_t available, bool ended,
                                 uint64_t damage) {
    sl_bson_facts first, second;
    sl_bson_verdict verdict = sl_bson_check(bytes, available, &first);
    if (verdict == SL_BSON_VALID && first.not_utf8) /* more likely to be damaged bytes */
        return SL_BSON_INVALID;
    if (verdict == SL_BSON_VALID && !(ended && first.length == available && damage != IN_TRUNCATED))
        verdict = sl_bson_check(bytes + first.length, available - first.length, &second);
    return verdict == SL_BSON_MORE && ended ? SL_BSON_INVALID : verdict;
}

/* The length of the document at `bytes`, if its length, its last byte and the bytes after it are
 * plausible. 0: it must be checked completely, or, with `*more`, more text is needed. */
static size_t pass(const uint8_t *bytes, size_t available, bool ended, bool *more) {
    if (available < HEADER_BYTES) {
        *more = !ended;
        return 0;
    }
    if (!sl_bson_may_begin(bytes))
        return 0;
    size_t length = sl_bson_length(bytes);
    *more = !ended && length + HEADER_BYTES > available;
    if (*more || length > available || bytes[length - 1] != 0)
        return 0;
    if (length == available)
        return length;
    return length + HEADER_BYTES <= available && sl_bson_may_begin(bytes + length) ? length : 0;
}

/* Finds the end of the damaged text that begins at split->at: where documents follow again, or 1
 * MiB further. False if the end is not known yet. split->inside[0] is the number of bytes
 * searched. */
static bool find_damage_end(sl_split *split, sl_text text, bool ended, size_t *end) {
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    size_t most = split->at + SL_BLOCK_BYTES;
    size_t at = split->at + split->inside[0];
    for (; at < text.length && at < most; at++) {
        sl_bson_verdict verdict = check_two(bytes + at, text.length - at, ended, split->state);
        split->inside[0] = at - split->at;
        if (verdict == SL_BSON_MORE)
            return false;
        if (verdict == SL_BSON_VALID) {
            split->state = IN_DOCUMENTS;
            break;
        }
    }
    *end = at;
    return at < text.length || at == most || ended;
}

static size_t find_end(sl_split *split, sl_text text, size_t least, bool ended) {
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    while (split->at < least && split->at < text.length) {
        size_t left = text.length - split->at, length = 0;
        bool more = false;
        if (split->state == IN_DOCUMENTS) {
            length = pass(bytes + split->at, left, ended, &more);
            if (more)
                return 0;
        }
        if (length == 0 && split->state == IN_DOCUMENTS) {
            sl_bson_facts facts;
            sl_bson_verdict verdict = sl_bson_check(bytes + split->at, left, &facts);
            if (verdict == SL_BSON_VALID)
                length = facts.length;
            else
                split->state = verdict == SL_BSON_MORE ? IN_TRUNCATED : IN_DAMAGE;
        }
        if (length == 0) {
            size_t end;
            if (!find_damage_end(split, text, ended, &end))
                return 0;
            length = end - split->at;
            split->inside[0] = 0;
        }
        split->at += length;
    }
    return split->at < least && !ended ? 0 : split->at;
}

static const sl_splitter *splitter(const sl_dialect *dialect, bool *lines) {
    static const sl_splitter documents = {.find_end = find_end, .binary = true};
    (void)dialect;
    *lines = false;
    return &documents;
}

/* ---- parsing ---- */

/* The state of parsing one block. */
typedef struct parsing {
    const sl_block *block;
    sl_sink *sink;
    sl_parse_counts *counts;
} parsing;

static void reject(const parsing *p, size_t at, size_t length, const char *column,
                   const char *reason) {
    sl_reject made = {.offset = p->block->offset + at,
                      .line = SL_NO_LINE,
                      .column = column,
                      .record = {p->block->text.bytes + at, length}};
    snprintf(made.reason, sizeof made.reason, "%s", reason);
    p->counts->records++;
    p->counts->rejects++;
    p->sink->reject(p->sink, &made);
}

/* Why a valid document cannot be stored; NULL: it can. */
static const char *flaw_of(const uint8_t *document, const sl_bson_facts *facts) {
    if (facts->id_twice)
        return "the document has two fields _id";
    if (facts->id_at == 0)
        return facts->length + ID_BYTES > SL_BSON_DOCUMENT_MAX
                   ? "the document would be larger than 16 MiB with an _id"
                   : NULL;
    switch (document[facts->id_at]) {
    case 0x04:
        return "an _id must not be an array";
    case 0x06:
        return "an _id must not be undefined";
    case 0x0B:
        return "an _id must not be a regular expression";
    default:
        return NULL;
    }
}

/* Writes the document with its _id as first field. Returns its end. */
static uint8_t *put_document(uint8_t *to, const uint8_t *document, const sl_bson_facts *facts,
                             int64_t position) {
    uint8_t *start = to;
    uint32_t length = facts->length;
    if (facts->id_at == 0) {
        to = sl_bson_begin_with_id(to, position);
        memcpy(to, document + 4, length - 4);
        sl_bson_put_int32(start, (int32_t)(length + ID_BYTES));
        return start + length + ID_BYTES;
    }
    if (facts->id_at == 4) {
        memcpy(to, document, length);
        return start + length;
    }
    uint32_t id_bytes = facts->id_end - facts->id_at;
    memcpy(to, document, 4);
    memcpy(to + 4, document + facts->id_at, id_bytes);
    memcpy(to + 4 + id_bytes, document + 4, facts->id_at - 4);
    memcpy(to + facts->id_end, document + facts->id_end, length - facts->id_end);
    return start + length;
}

/* Changes the document at the sink's cursor by the block's key fields. False: it is refused, and
 * has been rejected. */
static bool apply_keys(const parsing *p, size_t at, const sl_bson_facts *facts, uint8_t **end) {
    sl_reject refused = {0};
    if (sl_key_fields_apply(p->block->keys, facts->id_at > 0, p->sink->cursor, end, &refused))
        return true;
    reject(p, at, facts->length, refused.column, refused.reason);
    return false;
}

/* Takes a valid document. False: the sink's `full` has returned false. */
static bool take_document(const parsing *p, size_t at, const sl_bson_facts *facts) {
    sl_sink *sink = p->sink;
    const uint8_t *document = (const uint8_t *)p->block->text.bytes + at;
    const char *flaw = flaw_of(document, facts);
    if (flaw) {
        reject(p, at, facts->length, "_id", flaw);
        return true;
    }
    if (facts->empty_timestamp > 0 && !sink->unchanged) {
        reject(p, at, facts->length, (const char *)document + facts->empty_timestamp + 1,
               "Timestamp(0, 0): a server replaces it with the current time");
        return true;
    }
    size_t need = facts->length + ID_BYTES;
    if (!sl_sink_make_room(sink, need))
        return false;
    uint64_t offset = p->block->offset + at;
    int64_t position = p->block->id_base + (int64_t)(offset % SL_BLOCK_BYTES);
    uint8_t *end = put_document(sink->cursor, document, facts, position);
    if (p->block->keys && !apply_keys(p, at, facts, &end))
        return true;
    sink->cursor = end;
    if (sink->offsets)
        sink->offsets[sink->documents] = offset;
    sink->documents++;
    p->counts->records++;
    p->counts->documents++;
    return true;
}

/* The end of the damaged text at `at`: where documents follow again, or `end`. */
static size_t find_documents(const parsing *p, size_t at, size_t end, uint64_t damage) {
    sl_text text = p->block->text;
    while (at < end && check_two((const uint8_t *)text.bytes + at, text.length - at, true,
                                 damage) != SL_BSON_VALID)
        at++;
    return at;
}

/* Does the length of a damaged document lead to the beginning of another one? */
static bool is_followed(const parsing *p, size_t at, uint32_t length) {
    size_t left = p->block->text.length - at;
    const uint8_t *next = (const uint8_t *)p->block->text.bytes + at + length;
    return length >= SL_BSON_DOCUMENT_MIN && length <= left &&
           (length == left || (left - length >= HEADER_BYTES && sl_bson_may_begin(next)));
}

static void reject_damage(const parsing *p, size_t at, size_t end, sl_bson_verdict verdict,
                          const sl_bson_facts *facts) {
    char reason[300];
    unsigned long long from = p->block->offset + at, wrong = from + facts->wrong_at;
    if (verdict == SL_BSON_MORE && facts->length > 0)
        snprintf(reason, sizeof reason,
                 "truncated: a document of %u bytes begins here, but only %zu bytes follow",
                 facts->length, end - at);
    else if (verdict == SL_BSON_MORE)
        snprintf(reason, sizeof reason, "truncated: the last %zu bytes are not a document",
                 end - at);
    else if (facts->why)
        snprintf(reason, sizeof reason, "damaged: %s (byte %llu); %zu bytes rejected", facts->why,
                 wrong, end - at);
    else
        snprintf(reason, sizeof reason, "damaged: no document begins here; %zu bytes rejected",
                 end - at);
    reject(p, at, end - at, NULL, reason);
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    (void)plan, (void)dialect;
    const parsing p = {block, sink, counts};
    const uint8_t *bytes = (const uint8_t *)block->text.bytes;
    sl_bson_headers headers;
    size_t at = 0;
    sl_bson_headers_init(&headers, SL_BSON_HEADERS, 0);
    if (block->split_state != IN_DOCUMENTS) {
        at = find_documents(&p, 0, block->text.length, block->split_state);
        if (at > 0)
            reject_damage(&p, 0, at, SL_BSON_INVALID, &(sl_bson_facts){0});
    }
    while (at < block->text.length) {
        sl_bson_facts facts;
        sl_bson_verdict verdict =
            sl_bson_check_next(&headers, bytes + at, block->text.length - at, &facts);
        size_t end = at + facts.length;
        if (verdict == SL_BSON_VALID) {
            if (!take_document(&p, at, &facts))
                return false;
        } else {
            bool followed = verdict == SL_BSON_INVALID && is_followed(&p, at, facts.length);
            end = find_documents(&p, at + 1, followed ? end : block->text.length,
                                 verdict == SL_BSON_MORE ? IN_TRUNCATED : IN_DAMAGE);
            reject_damage(&p, at, end, verdict, &facts);
        }
        at = end;
    }
    return true;
}

const sl_format sl_format_bson = {
    .name = "bson",
    .summary = "BSON documents, as mongodump writes them; their _ids are kept",
    .kind = "BSON documents",
    .own_ids = true,
    .binary = true,
    .sniff = sniff,
    .splitter = splitter,
    .parse = parse,
};
