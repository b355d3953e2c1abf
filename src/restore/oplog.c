/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entries of an oplog, and puts the operations of transactions where they take effect.
 *
 * A transaction is one entry {c, applyOps} or several with the same session and number: those
 * before the last one have partialTxn. A prepared transaction ends with commitTransaction or
 * abortTransaction, other ones with their last applyOps. The entries of open transactions are kept
 * in memory. */
#include "oplog.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "source/source.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/name_index.h"
#include "util/text.h"

#define ENTRY_BYTES_MAX ((size_t)(16 << 20) + (16 << 10)) /* the largest document plus its entry */
#define CONTAINED_LEVELS 5 /* from an entry to the documents of an applyOps within applyOps */
#define NESTED_MAX 10      /* applyOps within applyOps */
#define OPEN_BYTES_MAX ((size_t)256 << 20) /* of open transactions, in memory */

/* The entries of a transaction that has not ended. */
typedef struct transaction {
    uint64_t hash;   /* of the session */
    bson_t *session; /* {lsid}; NULL: there is none, until the session begins another one */
    int64_t number;
    bson_t **entries;
    size_t count, room, bytes;
    bool prepared;
} transaction;

typedef struct reading {
    const char *path;
    uint64_t limit;
    bool (*visit)(void *context, const sl_oplog_operation *operation, sl_error *error);
    void *context;
    sl_oplog_totals *totals;
    sl_dump_pieces text;
    bool stop; /* at the limit */
    uint64_t timestamp, entry_at;
    transaction *open;
    size_t open_count, open_room, open_bytes;
    sl_name_index sessions; /* places of `open` */
} reading;

static bool fail(const reading *r, sl_error *error, const char *what) {
    return sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %llu (timestamp %llu:%llu): " SL_LINES,
                        r->path, (unsigned long long)r->entry_at,
                        (unsigned long long)(r->timestamp >> 32),
                        (unsigned long long)(r->timestamp & UINT32_MAX), what);
}

/* ---- transactions ---- */

static void clear_transaction(const transaction *t) {
    for (size_t i = 0; i < t->count; i++)
        bson_destroy(t->entries[i]);
    free(t->entries);
    bson_destroy(t->session);
}

static void end_transaction(reading *r, transaction *t) {
    r->open_bytes -= t->bytes;
    clear_transaction(t);
    *t = (transaction){.hash = t->hash};
}

/* The place of the session; NULL: it has none. */
static transaction *place_of(reading *r, const bson_t *session, uint64_t *hash) {
    uint64_t at = *hash = sl_seeded_hash(bson_get_data(session), session->len, sl_process_seed());
    for (size_t i; (i = sl_name_index_next(&r->sessions, &at)) != SIZE_MAX;) {
        transaction *t = &r->open[i];
        if (t->hash == *hash && (!t->session || bson_equal(t->session, session)))
            return t;
    }
    return NULL;
}

/* The open transaction with this session and number; NULL: there is none. If the session has an
 * open transaction with a lower number, it has given that one up: removes it. */
static transaction *find_transaction(reading *r, const bson_t *session, int64_t number) {
    uint64_t hash;
    transaction *t = place_of(r, session, &hash);
    if (t && t->session && t->number < number)
        end_transaction(r, t);
    return t && t->session && t->number == number ? t : NULL;
}

/* Removes the places without a transaction, and makes room in the index. */
static bool list_sessions(reading *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->open_count; i++) {
        if (r->open[i].session)
            r->open[kept++] = r->open[i];
    }
    r->open_count = kept;
    if (!sl_name_index_reset(&r->sessions, kept))
        return false;
    for (size_t i = 0; i < kept; i++)
        sl_name_index_add(&r->sessions, r->open[i].hash, i);
    return true;
}

static transaction *begin_transaction(reading *r, const bson_t *session, int64_t number) {
    uint64_t hash;
    transaction *t = place_of(r, session, &hash);
    if (t && t->session)
        end_transaction(r, t);
    if (!t && sl_name_index_is_full(&r->sessions) && !list_sessions(r))
        return NULL;
    transaction *open = t ? r->open : sl_grow(r->open, r->open_count, &r->open_room, sizeof *open);
    bson_t *copy = open ? bson_copy(session) : NULL;
    if (open)
        r->open = open;
    if (!copy)
        return NULL;
    if (!t) {
        sl_name_index_add(&r->sessions, hash, r->open_count);
        t = &open[r->open_count++];
    }
    *t = (transaction){.session = copy, .hash = hash, .number = number};
    return t;
}

static bool keep_entry(reading *r, transaction *t, const bson_t *entry, sl_error *error) {
    const size_t bytes = sizeof *t + t->session->len + sizeof(bson_t) + entry->len;
    t->bytes += bytes;
    r->open_bytes += bytes;
    if (r->open_bytes > OPEN_BYTES_MAX)
        return fail(r, error,
                    "the transactions that have not ended here have more than 256 MiB. "
                    "--oplog-limit replays the entries before a time");
    bson_t **entries = sl_grow(t->entries, t->count, &t->room, sizeof(bson_t *));
    if (!entries)
        return sl_error_memory(error, "reading a transaction of the oplog");
    t->entries = entries;
    entries[t->count] = bson_copy(entry);
    return entries[t->count++] || sl_error_memory(error, "reading a transaction of the oplog");
}

/* ---- operations ---- */

static bool take_operation(reading *r, const bson_t *entry, unsigned nested, sl_error *error);

/* The operations of an entry {o: {applyOps: [...]}}. */
static bool take_nested(reading *r, const bson_t *entry, unsigned nested, sl_error *error) {
    bson_iter_t list;
    bool ok = nested < NESTED_MAX || fail(r, error, "applyOps is nested too deeply");
    if (ok && !(sl_look_find(entry, "o.applyOps", &list) && BSON_ITER_HOLDS_ARRAY(&list)))
        return fail(r, error, "applyOps has no array of operations");
    for (sl_walk walk = sl_walk_start(entry, "o.applyOps"); ok && sl_walk_next(&walk);)
        ok = take_operation(r, &walk.item, nested + 1, error);
    return ok;
}

/* The name of a command is its first field. */
static const char *command_of(const bson_t *object) {
    bson_iter_t first;
    return bson_iter_init(&first, object) && bson_iter_next(&first) ? bson_iter_key(&first) : "";
}

static bool take_operation(reading *r, const bson_t *entry, unsigned nested, sl_error *error) {
    sl_oplog_operation made = {.name = sl_look_string(entry, "ns"),
                               .number = r->totals->operations,
                               .entry = entry,
                               .at = r->entry_at,
                               .timestamp = r->timestamp};
    const char *op = sl_look_string(entry, "op");
    sl_error why = {0};
    /* n is a no-op. The other ones change data of the server itself, such as counts of records. */
    if (op[0] && sl_list_has("n|km|ci|cd|cu", '|', sl_text_of(op)))
        return true;
    bool object = sl_look_inside(entry, "o", &made.object);
    sl_look_inside(entry, "o2", &made.target);
    made.kind = op[0];
    made.command = made.kind == 'c' ? command_of(&made.object) : "";
    if (!object || !op[0] || op[1] || !strchr("iudc", op[0])) {
        sl_error_set(&why, SL_EXIT_SOURCE, "the operation \"%.40s\" is not replayed", op);
        return fail(r, error, why.message);
    }
    if (strcmp(made.command, "applyOps") == 0)
        return take_nested(r, entry, nested, error);
    r->totals->operations++;
    if (r->visit(r->context, &made, &why))
        return true;
    *error = why;
    return why.code == SL_EXIT_SOURCE ? fail(r, error, why.message) : false;
}

/* ---- entries ---- */

/* Is it an entry of a transaction? The applyOps of a retryable write (multiOpType 1) is none. */
static bool is_of_transaction(const bson_t *entry, const char *command, bson_t *session) {
    return sl_look_int64(entry, "txnNumber", -1) >= 0 && sl_look_inside(entry, "lsid", session) &&
           sl_look_int64(entry, "multiOpType", 0) != 1 &&
           sl_list_has("applyOps|commitTransaction|abortTransaction", '|', sl_text_of(command));
}

/* Passes the operations of a transaction that ends with this entry. */
static bool commit(reading *r, transaction *t, const bson_t *last, sl_error *error) {
    bool ok = true;
    for (size_t i = 0; ok && t && i < t->count; i++)
        ok = take_nested(r, t->entries[i], 0, error);
    ok = ok && (!last || take_nested(r, last, 0, error));
    if (t)
        end_transaction(r, t);
    return ok;
}

static bool take_transaction(reading *r, const bson_t *entry, const char *command,
                             const bson_t *session, sl_error *error) {
    int64_t number = sl_look_int64(entry, "txnNumber", 0);
    bool apply = strcmp(command, "applyOps") == 0;
    bool prepare = sl_look_flag(entry, "o.prepare"), first = true;
    bson_iter_t before;
    if (sl_look_find(entry, "prevOpTime.ts", &before) && BSON_ITER_HOLDS_TIMESTAMP(&before)) {
        uint32_t seconds, ordinal;
        bson_iter_timestamp(&before, &seconds, &ordinal);
        first = seconds == 0 && ordinal == 0;
    }
    transaction *t = find_transaction(r, session, number);
    if (strcmp(command, "abortTransaction") == 0) {
        if (t)
            end_transaction(r, t);
        return true;
    }
    if (apply ? !t && !first : !t || !t->prepared)
        return fail(r, error,
                    "the beginning of this transaction is not in the oplog. Dump the oplog from an "
                    "earlier time on, or, if the transaction ended before the dump began, from a "
                    "later one (mongodump --query '{\"ts\": {\"$gt\": ...}}')");
    if (!apply)
        return commit(r, t, NULL, error);
    if (!prepare && !sl_look_flag(entry, "o.partialTxn"))
        return commit(r, t, entry, error);
    t = t ? t : begin_transaction(r, session, number);
    if (!t)
        return sl_error_memory(error, "reading a transaction of the oplog");
    t->prepared = prepare;
    return keep_entry(r, t, entry, error);
}

static bool take_entry(reading *r, const bson_t *entry, sl_error *error) {
    bson_iter_t at;
    bson_t object, session;
    uint32_t seconds = 0, ordinal = 0;
    if (sl_look_find(entry, "ts", &at) && BSON_ITER_HOLDS_TIMESTAMP(&at))
        bson_iter_timestamp(&at, &seconds, &ordinal);
    uint64_t timestamp = (uint64_t)seconds << 32 | ordinal;
    r->stop = r->limit > 0 && timestamp >= r->limit;
    if (r->stop)
        return true;
    r->totals->last = r->timestamp = timestamp;
    sl_look_inside(entry, "o", &object);
    const char *command = strcmp(sl_look_string(entry, "op"), "c") == 0 ? command_of(&object) : "";
    return is_of_transaction(entry, command, &session)
               ? take_transaction(r, entry, command, &session, error)
               : take_operation(r, entry, 0, error);
}

/* ---- reading ---- */

/* Is the entry valid BSON? It may be larger and deeper than a document that it contains: then its
 * fields are checked one by one. */
static bool is_sound(const uint8_t *bytes, uint32_t length, int levels, sl_bson_facts *facts) {
    sl_bson_facts whole;
    bson_t document;
    bson_iter_t at;
    if (sl_bson_check(bytes, length, &whole) == SL_BSON_VALID && whole.length == length) {
        facts->why = whole.old_binary ? "binary data of subtype 2 has a wrong inner length" : NULL;
        return !whole.old_binary;
    }
    if (levels == CONTAINED_LEVELS)
        *facts = whole;
    if (levels == 0 || !bson_init_static(&document, bytes, length) ||
        !bson_iter_init(&at, &document))
        return false;
    while (bson_iter_next(&at)) {
        const uint8_t *inner;
        uint32_t inner_length;
        if (sl_inner_at(&at, &inner, &inner_length) &&
            (!inner || !is_sound(inner, inner_length, levels - 1, facts)))
            return false;
    }
    return at.err_off == 0;
}

static bool fail_damaged(const reading *r, const sl_bson_facts *facts, sl_error *error) {
    sl_error why;
    sl_error_set(&why, SL_EXIT_SOURCE,
                 "the entry is damaged: %s (byte %u of the entry). Its changes and those after it "
                 "cannot be replayed; --oplog-limit replays the entries before a time",
                 facts->why ? facts->why : "it is truncated", facts->wrong_at);
    return fail(r, error, why.message);
}

/* Takes the next entry, if it is complete in the buffer. */
static bool take_next(reading *r, bool *more, sl_error *error) {
    size_t available = r->text.used - r->text.at;
    const uint8_t *bytes = r->text.bytes + r->text.at;
    uint32_t length = 0;
    sl_bson_facts facts = {0};
    bson_t entry;
    if (available >= sizeof length) {
        memcpy(&length, bytes, sizeof length);
        length = BSON_UINT32_FROM_LE(length);
        facts.why =
            length < SL_BSON_DOCUMENT_MIN || length > ENTRY_BYTES_MAX ? "a wrong length" : NULL;
    }
    *more = !facts.why && (length == 0 || length > available);
    if (*more && !r->text.ended)
        return sl_dump_pieces_more(&r->text, error);
    *more = false;
    if (available == 0)
        return true;
    if (facts.why || length > available || length == 0 ||
        !is_sound(bytes, length, CONTAINED_LEVELS, &facts))
        return fail_damaged(r, &facts, error);
    r->totals->hash =
        sl_hash_mix(r->totals->hash ^ SL_HASH_A, sl_hash_text((const char *)bytes, length));
    r->totals->bytes += length;
    bool ok = bson_init_static(&entry, bytes, length) && take_entry(r, &entry, error);
    r->text.at += length;
    r->entry_at += length;
    *more = ok && !r->stop;
    return ok;
}

static bool read_all(reading *r, sl_error *error) {
    if (!sl_source_set_create(&r->path, 1, NULL, &r->text.set, error) ||
        !sl_dump_pieces_open(&r->text, error))
        return false;
    for (bool more = true; more;) {
        if (!take_next(r, &more, error))
            return false;
    }
    return sl_source_set_unchanged(r->text.set, error);
}

bool sl_oplog_each(const char *path, uint64_t limit,
                   bool (*visit)(void *context, const sl_oplog_operation *operation,
                                 sl_error *error),
                   void *context, sl_oplog_totals *totals, sl_error *error) {
    *totals = (sl_oplog_totals){0};
    reading r = {
        .path = path, .limit = limit, .visit = visit, .context = context, .totals = totals};
    bool ok = read_all(&r, error);
    for (size_t i = 0; i < r.open_count; i++) {
        totals->open += r.open[i].session != NULL;
        clear_transaction(&r.open[i]);
    }
    free(r.open);
    sl_name_index_clear(&r.sessions);
    sl_dump_pieces_clear(&r.text);
    return ok;
}
