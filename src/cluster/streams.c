/* SPDX-License-Identifier: Apache-2.0 */
/* Checks each message of a server before the driver reads it.
 *
 * The driver (libmongoc 1.23) trusts its server: it crashes or aborts on a document whose length is
 * wrong, and on fields of replies that have another type than expected. So a message is checked
 * completely: its length, its only section, every embedded document, and the fields of a reply that
 * the driver or this program relies on. A compressed message is decompressed here, within a limit,
 * because the driver aborts if the declared size is false; the driver gets the plain message. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "util/grow.h"
#include "util/print.h"

#include "internal.h"

#define OP_REPLY 1
#define OP_QUERY 2004
#define OP_COMPRESSED 2012
#define OP_MSG 2013
#define HEADER_BYTES SL_MESSAGE_HEADER
#define REPLY_BYTES (HEADER_BYTES + 20)     /* the fields of an OP_REPLY before its documents */
#define COMPRESSED_BYTES (HEADER_BYTES + 9) /* the fields of an OP_COMPRESSED before its data */
#define KNOWN_FLAGS 0x0000FFFFu             /* a reader must know these; the others are optional */
#define NESTING_MAX 250                     /* servers nest documents up to level 200 */
#define ITERATIONS_MAX 1000000              /* of SCRAM; servers use 10000 and 15000 */
#define LIST_MAX 1000                       /* entries of a list of a reply */
#define NAMESPACE_MAX 1024                  /* bytes; servers allow 255 */

static uint32_t get_u32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

static void put_u32(uint8_t *to, uint32_t value) {
    value = BSON_UINT32_TO_LE(value);
    memcpy(to, &value, sizeof value);
}

__attribute__((format(printf, 2, 3))) static bool wrong(char why[SL_MESSAGE_WHY],
                                                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(why, SL_MESSAGE_WHY, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- documents ---- */

/* Is it a document that servers store, although libbson cannot read all of it? */
static bool is_storable(const uint8_t *bytes, size_t length) {
    sl_bson_facts facts;
    return sl_bson_check_alone(bytes, length, &facts) == SL_BSON_VALID && facts.old_binary;
}

/* Checks the lengths, terminators and values of a document and of all documents in it. */
static bool check_document(const uint8_t *bytes, size_t length, unsigned level,
                           char why[SL_MESSAGE_WHY]) {
    bson_t document;
    bson_iter_t iter;
    if (level > NESTING_MAX)
        return wrong(why, "its documents are nested deeper than %d levels", NESTING_MAX);
    if (!bson_init_static(&document, bytes, length) || !bson_iter_init(&iter, &document))
        return wrong(why, "a document in it declares a wrong length or is not terminated");
    while (bson_iter_next(&iter)) {
        const uint8_t *inner;
        uint32_t inner_length;
        if (!sl_inner_at(&iter, &inner, &inner_length))
            continue;
        if (!inner || !check_document(inner, inner_length, level + 1, why))
            return inner ? false
                         : wrong(why, "a document in it declares fewer bytes than the least");
    }
    return iter.err_off == 0 || (level >= SL_STORED_LEVEL && is_storable(bytes, length)) ||
           wrong(why, "a document in it is not valid BSON at byte %u", iter.err_off);
}

/* ---- fields of replies ---- */

/* A field that the driver or this program reads from replies, and what is accepted. */
typedef struct sl_rule sl_rule;
struct sl_rule {
    const char *name;
    bool (*check)(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]);
    int64_t least, most; /* of a number */
};

static bool check_number(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    if (BSON_ITER_HOLDS_NULL(field))
        return true;
    if (!BSON_ITER_HOLDS_NUMBER(field))
        return wrong(why, "its %s is not a number", rule->name);
    const double value = bson_iter_as_double(field);
    return (value >= (double)rule->least && value <= (double)rule->most) ||
           wrong(why, "its %s is %.15g, and this program accepts %" PRId64 " to %" PRId64,
                 rule->name, value, rule->least, rule->most);
}

/* The driver keeps this document, and sends it with each command, also to other servers. */
static bool check_small(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    uint32_t length = 0;
    const uint8_t *bytes;
    if (!BSON_ITER_HOLDS_DOCUMENT(field))
        return wrong(why, "its %s is not a document", rule->name);
    bson_iter_document(field, &length, &bytes);
    return length <= rule->most || wrong(why, "its %s has %u bytes", rule->name, length);
}

static bool open_array(const bson_iter_t *field, const char *name, bson_iter_t *item,
                       char why[SL_MESSAGE_WHY]) {
    return (BSON_ITER_HOLDS_ARRAY(field) && bson_iter_recurse(field, item)) ||
           wrong(why, "its %s are not an array", name);
}

/* The number of strings is limited because the driver compares each label of an error with all
 * labels before it. */
static bool check_strings(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    size_t count = 0;
    if (!open_array(field, rule->name, &item, why))
        return false;
    while (bson_iter_next(&item)) {
        if (!BSON_ITER_HOLDS_UTF8(&item))
            return wrong(why, "its %s contains a value that is not a string", rule->name);
        if (++count > LIST_MAX)
            return wrong(why, "its %s are more than %d", rule->name, LIST_MAX);
    }
    return true;
}

static bool check_hosts(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    if (!check_strings(field, rule, why) || !open_array(field, rule->name, &item, why))
        return false;
    while (bson_iter_next(&item)) {
        const char *host = bson_iter_utf8(&item, NULL);
        if (!sl_hosts_are_valid(host, false))
            return wrong(why, "its %s contain \"%s\", which is not HOST:PORT", rule->name, host);
    }
    return true;
}

static bool check_set_name(const bson_iter_t *field, const sl_rule *rule,
                           char why[SL_MESSAGE_WHY]) {
    const char *name = BSON_ITER_HOLDS_UTF8(field) ? bson_iter_utf8(field, NULL) : "";
    return sl_set_name_is_valid(name, strlen(name)) ||
           wrong(why, "its %s \"%s\" is not a name of a replica set (1 to %d bytes)", rule->name,
                 name, SL_SET_NAME_MAX);
}

static bool check_topology_version(const bson_iter_t *field, const sl_rule *rule,
                                   char why[SL_MESSAGE_WHY]) {
    bson_iter_t inner;
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &inner))
        return wrong(why, "its %s is not a document", rule->name);
    while (bson_iter_next(&inner)) {
        if ((BSON_ITER_IS_KEY(&inner, "processId") && !BSON_ITER_HOLDS_OID(&inner)) ||
            (BSON_ITER_IS_KEY(&inner, "counter") && !BSON_ITER_HOLDS_INT64(&inner)))
            return wrong(why, "the %s of its %s has a wrong type", bson_iter_key(&inner),
                         rule->name);
    }
    return true;
}

/* The driver aborts on a code that is 0 in 32 bits, also on that of a reply that is no error. */
static bool check_code(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    if (!BSON_ITER_HOLDS_NUMBER(field))
        return true;
    const double code = bson_iter_as_double(field);
    if (code >= INT32_MIN && code <= INT32_MAX && (int32_t)code != 0)
        return true;
    return wrong(why, "its %s is %.15g, which is not that of an error", rule->name, code);
}

/* Is the message of the error, if it has one, a string? The driver reads an index of another type
 * as 0. The code of a writeConcernError must not be 0; that of a write error is only shown. */
static bool check_error(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t inner;
    static const sl_rule code = {.name = "writeConcernError.code"};
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &inner))
        return wrong(why, "its %s is not a document", rule->name);
    while (bson_iter_next(&inner)) {
        if (BSON_ITER_IS_KEY(&inner, "errmsg") && !BSON_ITER_HOLDS_UTF8(&inner))
            return wrong(why, "the errmsg of its %s is not a string", rule->name);
        if (BSON_ITER_IS_KEY(&inner, "index") && !BSON_ITER_HOLDS_INT32(&inner))
            return wrong(why, "the index of its %s is not an integer of 32 bits", rule->name);
        if (BSON_ITER_IS_KEY(&inner, "code") && rule->check == check_error &&
            !check_code(&inner, &code, why))
            return false;
    }
    return true;
}

static bool check_errors(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    if (!open_array(field, rule->name, &item, why))
        return false;
    while (bson_iter_next(&item)) {
        if (!check_error(&item, rule, why))
            return false;
    }
    return true;
}

/* The server chooses how many hashes the client computes for SCRAM: "r=...,s=...,i=15000". If the
 * text ends in a name without "=", the driver reads on after its end, until the process crashes. */
static bool check_scram(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    const uint8_t *bytes;
    uint32_t length;
    (void)rule;
    if (!BSON_ITER_HOLDS_BINARY(field))
        return true;
    bson_iter_binary(field, NULL, &length, &bytes);
    if (length > 0 && bytes[length - 1] != ',' && (length == 1 || bytes[length - 2] == ','))
        return wrong(why, "its SCRAM payload ends in an attribute without a value");
    for (uint32_t at = 0; at + 2 < length; at++) {
        if ((at > 0 && bytes[at - 1] != ',') || bytes[at] != 'i' || bytes[at + 1] != '=')
            continue;
        uint64_t count = 0;
        for (at += 2; at < length && bytes[at] >= '0' && bytes[at] <= '9'; at++)
            count = count > ITERATIONS_MAX ? count : count * 10 + (uint64_t)(bytes[at] - '0');
        if (count > ITERATIONS_MAX || (at < length && bytes[at] != ','))
            return wrong(why,
                         "it demands more than %d SCRAM iterations, the most that this program "
                         "computes; lower scramIterationCount or scramSHA256IterationCount of the "
                         "server, and set the password again",
                         ITERATIONS_MAX);
    }
    return true;
}

static bool check_speculative(const bson_iter_t *field, const sl_rule *rule,
                              char why[SL_MESSAGE_WHY]) {
    bson_iter_t inner;
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &inner))
        return wrong(why, "its %s is not a document", rule->name);
    while (bson_iter_next(&inner)) {
        if (BSON_ITER_IS_KEY(&inner, "payload") && !check_scram(&inner, rule, why))
            return false;
    }
    return true;
}

/* Is the namespace of a cursor DATABASE.COLLECTION? The driver asks for more of this collection. */
static bool is_namespace(const bson_iter_t *field) {
    uint32_t length = 0;
    const char *name = BSON_ITER_HOLDS_UTF8(field) ? bson_iter_utf8(field, &length) : NULL;
    const char *dot = name ? strchr(name, '.') : NULL;
    return dot && dot > name && dot[1] && strlen(name) == length && length <= NAMESPACE_MAX;
}

static bool check_batch(const bson_iter_t *field, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &item))
        return wrong(why, "the %s of its cursor is not an array", bson_iter_key(field));
    while (bson_iter_next(&item)) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&item))
            return wrong(why, "the %s of its cursor contains a value that is not a document",
                         bson_iter_key(field));
    }
    return true;
}

static bool check_cursor(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t inner;
    bool named = false, open = false; /* open: more batches can be asked for */
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &inner))
        return wrong(why, "its %s is not a document", rule->name);
    while (bson_iter_next(&inner)) {
        if (BSON_ITER_IS_KEY(&inner, "id") && !BSON_ITER_HOLDS_NUMBER(&inner))
            return wrong(why, "the id of its cursor is not a number");
        if (BSON_ITER_IS_KEY(&inner, "ns") && !is_namespace(&inner))
            return wrong(why, "the ns of its cursor is not DATABASE.COLLECTION");
        if ((BSON_ITER_IS_KEY(&inner, "firstBatch") || BSON_ITER_IS_KEY(&inner, "nextBatch")) &&
            !check_batch(&inner, why))
            return false;
        named = named || BSON_ITER_IS_KEY(&inner, "ns");
        open = open || (BSON_ITER_IS_KEY(&inner, "id") && bson_iter_as_int64(&inner) != 0);
    }
    return named || !open || wrong(why, "its cursor has no ns");
}

/* The limits of numbers are far outside of what servers send, and inside of what the driver and
 * this program can handle. */
static const sl_rule rules[] = {
    {"maxBsonObjectSize", check_number, 1 << 20, 1 << 26},
    {"maxMessageSizeBytes", check_number, 1 << 20, 1 << 28},
    {"maxWriteBatchSize", check_number, 1, 10000000},
    {"minWireVersion", check_number, 0, 1000},
    {"maxWireVersion", check_number, 0, 1000},
    {"logicalSessionTimeoutMinutes", check_number, 1, 10000000},
    {"hosts", check_hosts, 0, 0},
    {"passives", check_hosts, 0, 0},
    {"arbiters", check_hosts, 0, 0},
    {"setName", check_set_name, 0, 0},
    {"compression", check_strings, 0, 0},
    {"topologyVersion", check_topology_version, 0, 0},
    {"$clusterTime", check_small, 0, 4096},
    {"code", check_code, 0, 0},
    {"writeConcernError", check_error, 0, 0},
    {"writeErrors", check_errors, 0, 0},
    {"errorLabels", check_strings, 0, 0},
    {"payload", check_scram, 0, 0},
    {"speculativeAuthenticate", check_speculative, 0, 0},
    {"cursor", check_cursor, 0, 0},
};

/* The check of the fields with this name; NULL: there is none. */
static const sl_rule *rule_of(const char *name) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    }
    return NULL;
}

/* A reply to a hello may lack any field, so it is not recognised by one: every reply is checked for
 * all fields. A name may occur twice, and some readers take the first field, others the last: so
 * each one is checked. */
static bool check_reply(const bson_t *reply, char why[SL_MESSAGE_WHY]) {
    bson_iter_t field;
    bool any = false, succeeds = true, error = false; /* the fields "ok"; a code or a message */
    for (bool more = bson_iter_init(&field, reply); more && bson_iter_next(&field);) {
        const sl_rule *rule = rule_of(bson_iter_key(&field));
        if (rule && !rule->check(&field, rule, why))
            return false;
        const bool ok = BSON_ITER_IS_KEY(&field, "ok");
        any |= ok;
        succeeds &= !ok || sl_value_number(&field) == 1 ||
                    (BSON_ITER_HOLDS_BOOL(&field) && bson_iter_bool(&field));
        error |= (BSON_ITER_IS_KEY(&field, "code") && BSON_ITER_HOLDS_NUMBER(&field)) ||
                 (BSON_ITER_IS_KEY(&field, "errmsg") && BSON_ITER_HOLDS_UTF8(&field));
    }
    /* The driver takes a reply without an error for a success, whatever its "ok" is. */
    return (any && succeeds) || error || wrong(why, "its ok is not 1, and it has no error");
}

static bool check_body(const uint8_t *bytes, size_t length, char why[SL_MESSAGE_WHY]) {
    bson_t reply;
    return check_document(bytes, length, 1, why) &&
           (!bson_init_static(&reply, bytes, length) || check_reply(&reply, why));
}

/* ---- messages ---- */

bool sl_message_length(const uint8_t header[SL_MESSAGE_HEADER], size_t *length,
                       char why[SL_MESSAGE_WHY]) {
    *length = get_u32(header);
    return (*length > HEADER_BYTES && *length <= SL_MESSAGE_MAX) ||
           wrong(why, "it declares a length of %d bytes, and this program accepts %d to %d",
                 (int32_t)get_u32(header), HEADER_BYTES + 1, SL_MESSAGE_MAX);
}

/* An old form, in which servers may reply to the first hello: a number of documents. */
static bool check_op_reply(const uint8_t *message, size_t length, char why[SL_MESSAGE_WHY]) {
    if (length < REPLY_BYTES + 5 || get_u32(message + HEADER_BYTES + 16) != 1)
        return wrong(why, "it does not contain one document");
    return check_body(message + REPLY_BYTES, length - REPLY_BYTES, why);
}

bool sl_message_check(const uint8_t *message, size_t length, char why[SL_MESSAGE_WHY]) {
    const uint32_t operation = length < HEADER_BYTES ? 0 : get_u32(message + 12);
    if (operation == OP_REPLY)
        return check_op_reply(message, length, why);
    if (operation != OP_MSG)
        return wrong(why, "it is of the unknown kind %u", operation);
    if (length < HEADER_BYTES + 5 + 5 || message[HEADER_BYTES + 4] != 0)
        return wrong(why, "it does not contain one document");
    if (get_u32(message + HEADER_BYTES) & KNOWN_FLAGS)
        return wrong(why, "it has the flags 0x%x, which were not requested",
                     get_u32(message + HEADER_BYTES));
    return check_body(message + HEADER_BYTES + 5, length - HEADER_BYTES - 5, why);
}

bool sl_message_answers(const uint8_t *message, uint32_t request, uint32_t expected,
                        char why[SL_MESSAGE_WHY]) {
    const uint32_t kind = get_u32(message + 12), to = get_u32(message + 8);
    return (kind == expected && to == request) ||
           wrong(why, "it is of the kind %u for request %u, not of the kind %u for request %u",
                 kind, to, expected, request);
}

/* ---- compression ---- */

/* Snappy: a size, then elements, each a literal or a copy of earlier output. */
typedef struct snappy {
    const uint8_t *at, *end;
    uint8_t *out;
    size_t used, room;
} snappy;

/* A number of `bytes` bytes, little-endian. */
static bool snappy_number(snappy *s, size_t bytes, size_t *value) {
    *value = 0;
    if ((size_t)(s->end - s->at) < bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        *value |= (size_t)*s->at++ << (8 * i);
    return true;
}

static bool snappy_literal(snappy *s, size_t length) {
    if (length >= 60 && !snappy_number(s, length - 59, &length))
        return false;
    length++;
    if ((size_t)(s->end - s->at) < length || s->room - s->used < length)
        return false;
    memcpy(s->out + s->used, s->at, length);
    s->at += length;
    s->used += length;
    return true;
}

static bool snappy_copy(snappy *s, size_t length, size_t distance) {
    if (distance == 0 || distance > s->used || s->room - s->used < length)
        return false;
    for (; length > 0; length--, s->used++) /* the ranges may overlap */
        s->out[s->used] = s->out[s->used - distance];
    return true;
}

static bool snappy_expand(const uint8_t *data, size_t length, uint8_t *out, size_t room) {
    snappy s = {data, data + length, out, 0, room};
    size_t declared = 0, distance;
    for (unsigned shift = 0;; shift += 7) {
        if (s.at == s.end || shift > 28)
            return false;
        declared |= (size_t)(*s.at & 0x7F) << shift;
        if (!(*s.at++ & 0x80))
            break;
    }
    bool ok = declared == room;
    while (ok && s.at < s.end) {
        const unsigned tag = *s.at++, kind = tag & 3;
        if (kind == 0)
            ok = snappy_literal(&s, tag >> 2);
        else if (kind == 1)
            ok = snappy_number(&s, 1, &distance) &&
                 snappy_copy(&s, 4 + ((tag >> 2) & 7), (size_t)(tag >> 5) << 8 | distance);
        else
            ok = snappy_number(&s, kind == 2 ? 2 : 4, &distance) &&
                 snappy_copy(&s, (tag >> 2) + 1, distance);
    }
    return ok && s.used == room;
}

/* Decompresses all of the data, to exactly `room` bytes. */
static bool expand(unsigned compressor, const uint8_t *data, size_t length, uint8_t *out,
                   size_t room) {
    uLongf used = room;
    uLong read = length;
    switch (compressor) {
    case 0:
        if (length == room)
            memcpy(out, data, room);
        return length == room;
    case 1:
        return snappy_expand(data, length, out, room);
    case 2:
        return uncompress2(out, &used, data, &read) == Z_OK && used == room && read == length;
    case 3:
        return ZSTD_decompress(out, room, data, length) == room;
    default:
        return false;
    }
}

bool sl_message_expand(const uint8_t *message, size_t length, uint8_t **plain, size_t *plain_length,
                       char why[SL_MESSAGE_WHY]) {
    *plain = NULL;
    if (length < HEADER_BYTES || get_u32(message + 12) != OP_COMPRESSED)
        return true;
    const size_t room = length < COMPRESSED_BYTES ? 0 : get_u32(message + HEADER_BYTES + 4);
    if (room == 0 || room > SL_MESSAGE_MAX - HEADER_BYTES)
        return wrong(why, "it is compressed and declares a length of %zu bytes", room);
    uint8_t *made = malloc(HEADER_BYTES + room);
    if (!made)
        return wrong(why, "there is no memory for its %zu bytes", room);
    memcpy(made, message, HEADER_BYTES);
    put_u32(made, (uint32_t)(HEADER_BYTES + room));
    memcpy(made + 12, message + HEADER_BYTES, 4); /* the operation */
    if (!expand(message[HEADER_BYTES + 8], message + COMPRESSED_BYTES, length - COMPRESSED_BYTES,
                made + HEADER_BYTES, room)) {
        free(made);
        return wrong(why, "its compressed data does not have the declared %zu bytes", room);
    }
    *plain = made;
    *plain_length = HEADER_BYTES + room;
    return true;
}

/* ---- the streams of a client ---- */

/* One client: its open streams, which the thread that has borrowed it opens, uses and closes, and
 * the members of its replica set. */
struct sl_streams {
    struct sl_streams *next; /* of another client */
    const mongoc_client_t *client;
    const sl_patience *patience;
    struct patient_stream *first;
    char *members[LIST_MAX]; /* all that servers have named */
    size_t member_count;
    int64_t lost_ms;    /* waited for members without a connection; see SILENT_MAX */
    int64_t lost_until; /* by the driver's clock: when lost_ms begins again */
};

/* Adds a member, unless it is known. False: there are too many. */
static bool add_member(sl_streams *streams, const char *host) {
    for (size_t i = 0; i < streams->member_count; i++) {
        if (strcmp(streams->members[i], host) == 0)
            return true;
    }
    if (streams->member_count == LIST_MAX)
        return false;
    streams->members[streams->member_count++] = bson_strdup(host);
    return true;
}

/* ---- streams that check messages ---- */

/* The outermost stream of a connection: a buffer that delivers only messages that were checked.
 *
 * It receives each message completely, checks it, and only then gives its bytes to the driver. It
 * must be the only reply to the last request. The driver does not check that, and would use numbers
 * in a message of another kind as pointers. A message that is refused is a failure of the stream,
 * so the driver closes the connection. The reason is kept for the thread, because the driver's
 * error cannot contain it: until it was reported, the next command begins, or the same server is
 * asked again. */

#define CHECKED_TYPE 102   /* not a type of the driver */
#define BUFFER_BYTES 16384 /* read at once: a reply with one document needs one system call */
#define KEPT_BYTES 1048576 /* a larger buffer is freed after its message */

typedef struct checked_stream {
    mongoc_stream_t vtable; /* the first member, so that a pointer to it is one to the struct */
    mongoc_stream_t *inner;
    uint8_t *bytes;         /* received */
    size_t room, used, end; /* of `bytes`; the message that is delivered ends at `end` */
    uint8_t *plain;         /* the decompressed message; NULL: it is not compressed */
    size_t plain_length;
    size_t delivered;       /* of the message */
    size_t unsent;          /* bytes of the request */
    uint32_t request, kind; /* its number; the kind of its reply, or 0: none is expected */
    sl_streams *owner;
    int64_t *deadline; /* of the innermost stream */
    char host[BSON_HOST_NAME_MAX + 8];
} checked_stream;

/* The reason why this thread refused a message or a certificate, and its server; empty if there is
 * none. */
static _Thread_local struct {
    char text[BSON_HOST_NAME_MAX + SL_MESSAGE_WHY + 64];
    char host[BSON_HOST_NAME_MAX + 8];
    bool certificate; /* a certificate was refused: kept until one of the host is accepted, as other
                         clients of the thread may still have earlier connections */
} refusal;

const char *sl_message_refusal(void) {
    return refusal.text;
}

void sl_message_forget_refusal(void) {
    refusal.text[0] = refusal.certificate ? refusal.text[0] : '\0';
}

__attribute__((format(printf, 2, 3))) static void note_refusal(const char *host, const char *format,
                                                               ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(refusal.text, sizeof refusal.text, format, arguments);
    va_end(arguments);
    snprintf(refusal.host, sizeof refusal.host, "%s", host);
    refusal.certificate = false;
}

static void forget_refusal_of(const char *host) {
    if (refusal.text[0] && strcmp(host, refusal.host) == 0)
        sl_message_forget_refusal();
}

static checked_stream *of(mongoc_stream_t *stream) {
    return (checked_stream *)stream;
}

static void release(checked_stream *self) {
    free(self->plain);
    free(self->bytes);
    free(self);
}

static void checked_destroy(mongoc_stream_t *stream) {
    mongoc_stream_destroy(of(stream)->inner);
    release(of(stream));
}

static void checked_failed(mongoc_stream_t *stream) {
    mongoc_stream_failed(of(stream)->inner);
    release(of(stream));
}

static int checked_close(mongoc_stream_t *stream) {
    return mongoc_stream_close(of(stream)->inner);
}

static int checked_flush(mongoc_stream_t *stream) {
    return mongoc_stream_flush(of(stream)->inner);
}

/* Notes the request that begins with these parts. */
static void note_request(checked_stream *self, const mongoc_iovec_t *parts, size_t count) {
    uint8_t head[HEADER_BYTES] = {0};
    for (size_t i = 0, used = 0; i < count && used < sizeof head; i++) {
        size_t left = sizeof head - used, part = parts[i].iov_len < left ? parts[i].iov_len : left;
        memcpy(head + used, parts[i].iov_base, part);
        used += part;
    }
    self->unsent = get_u32(head);
    self->request = get_u32(head + 4);
    self->kind = get_u32(head + 12) == OP_QUERY ? OP_REPLY : OP_MSG;
}

static ssize_t checked_writev(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                              int32_t timeout_ms) {
    checked_stream *self = of(stream);
    if (self->unsent == 0)
        note_request(self, parts, count);
    ssize_t sent = mongoc_stream_writev(self->inner, parts, count, timeout_ms);
    if (sent > 0) {
        forget_refusal_of(self->host);
        self->unsent -= (size_t)sent;
    }
    return sent;
}

static int checked_setsockopt(mongoc_stream_t *stream, int level, int option, void *value,
                              mongoc_socklen_t length) {
    return mongoc_stream_setsockopt(of(stream)->inner, level, option, value, length);
}

static mongoc_stream_t *checked_get_base(mongoc_stream_t *stream) {
    return of(stream)->inner;
}

static bool checked_check_closed(mongoc_stream_t *stream) {
    return mongoc_stream_check_closed(of(stream)->inner);
}

static bool checked_timed_out(mongoc_stream_t *stream) {
    mongoc_stream_t *inner = of(stream)->inner;
    return inner->timed_out && inner->timed_out(inner);
}

static bool checked_should_retry(mongoc_stream_t *stream) {
    return mongoc_stream_should_retry(of(stream)->inner);
}

static int64_t expiry_of(int32_t timeout_ms) {
    return timeout_ms < 0    ? INT64_MAX
           : timeout_ms == 0 ? 0
                             : bson_get_monotonic_time() + (int64_t)timeout_ms * 1000;
}

/* The milliseconds from now until `expiry`, rounded up; at most `max_ms`, and 0 when it has
 * passed. */
static int64_t remaining_ms(int64_t expiry, int64_t max_ms) {
    int64_t left = expiry - bson_get_monotonic_time();
    return left <= 0 ? 0 : left >= max_ms * 1000 ? max_ms : (left + 999) / 1000;
}

/* Reads until `need` bytes are in the buffer, or until `*expiry`, even if single bytes arrive. Each
 * RENEWING bytes renew it, for large replies over slow networks. A patient stream has no time limit
 * until a reply begins, and then that of others. Returns 1, 0 at the end of the connection, or
 * -1. */
#define RENEWING ((size_t)64 << 10)
static ssize_t fill(checked_stream *self, size_t need, int32_t timeout_ms, int64_t *expiry) {
    size_t renewed = self->used;
    const int64_t patience = self->owner->patience->milliseconds;
    const size_t room = need > BUFFER_BYTES ? need : BUFFER_BYTES;
    if (room > self->room) {
        uint8_t *grown = realloc(self->bytes, room);
        if (!grown) {
            errno = ENOMEM;
            return -1;
        }
        self->bytes = grown;
        self->room = room;
    }
    while (self->used < need) {
        if (patience > 0 && self->used > 0 && expiry_of((int32_t)patience) < *expiry)
            *expiry = expiry_of((int32_t)patience); /* the reply has begun */
        *self->deadline = *expiry;
        ssize_t got =
            mongoc_stream_read(self->inner, self->bytes + self->used, self->room - self->used, 1,
                               (int32_t)remaining_ms(*expiry, INT32_MAX));
        *self->deadline = INT64_MAX;
        if (got <= 0)
            return got;
        self->used += (size_t)got;
        if (self->used - renewed >= RENEWING) {
            renewed = self->used;
            *expiry = expiry_of(timeout_ms);
        }
    }
    return 1;
}

/* Removes the delivered message from the buffer. */
static void forget_message(checked_stream *self) {
    free(self->plain);
    self->plain = NULL;
    self->used -= self->end;
    if (self->used > 0)
        memmove(self->bytes, self->bytes + self->end, self->used);
    self->end = self->delivered = 0;
    if (self->used == 0 && self->room > KEPT_BYTES) {
        free(self->bytes);
        self->bytes = NULL;
        self->room = 0;
    }
}

/* The driver asks each member of a replica set that a server names, keeps it, and asks it for more
 * members, in the same search: so their number is limited over all replies to a client. */
static bool note_members(sl_streams *owner, const uint8_t *message, size_t length,
                         char why[SL_MESSAGE_WHY]) {
    const size_t head = get_u32(message + 12) == OP_REPLY ? REPLY_BYTES : HEADER_BYTES + 5;
    size_t named = 0; /* also those that are repeated: each is compared with all that are known */
    bson_t reply;
    bson_iter_t field, item;
    for (bool more = bson_init_static(&reply, message + head, length - head) &&
                     bson_iter_init(&field, &reply);
         more && bson_iter_next(&field);) {
        const sl_rule *rule = rule_of(bson_iter_key(&field));
        const bool members = rule && rule->check == check_hosts && bson_iter_recurse(&field, &item);
        while (members && bson_iter_next(&item)) {
            if (++named > 3 * LIST_MAX || !add_member(owner, bson_iter_utf8(&item, NULL)))
                return wrong(why,
                             "its replica set names more than %d members, or some again and again",
                             LIST_MAX);
        }
    }
    return true;
}

/* Receives the next message and checks it. Returns as fill does; with 1, the message can be
 * delivered. */
static ssize_t next_message(checked_stream *self, int32_t timeout_ms) {
    char why[SL_MESSAGE_WHY] = "";
    size_t length;
    forget_message(self);
    int64_t expiry = expiry_of(timeout_ms);
    ssize_t result = fill(self, SL_MESSAGE_HEADER, timeout_ms, &expiry);
    if (result <= 0)
        return result;
    bool ok = sl_message_length(self->bytes, &length, why);
    result = ok ? fill(self, length, timeout_ms, &expiry) : 1;
    if (result <= 0)
        return result;
    ok = ok && sl_message_expand(self->bytes, length, &self->plain, &self->plain_length, why);
    const uint8_t *message = self->plain ? self->plain : self->bytes;
    const size_t whole = self->plain ? self->plain_length : length;
    ok = ok && sl_message_check(message, whole, why) &&
         sl_message_answers(message, self->request, self->kind, why) &&
         note_members(self->owner, message, whole, why);
    self->kind = 0;
    if (ok) {
        self->end = length;
        sl_message_forget_refusal();
        return 1;
    }
    note_refusal(self->host, "a message of %s is refused: %s", self->host, why);
    errno = EPROTO;
    return -1;
}

static ssize_t checked_readv(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                             size_t least, int32_t timeout_ms) {
    checked_stream *self = of(stream);
    size_t got = 0;
    for (size_t i = 0; i < count;) {
        size_t ready = (self->plain ? self->plain_length : self->end) - self->delivered;
        if (ready == 0) {
            ssize_t result = got > 0 && got >= least ? 0 : next_message(self, timeout_ms);
            if (result <= 0)
                return got > 0 && got >= least ? (ssize_t)got : result;
            continue;
        }
        size_t part = parts[i].iov_len < ready ? parts[i].iov_len : ready;
        memcpy(parts[i].iov_base, (self->plain ? self->plain : self->bytes) + self->delivered,
               part);
        self->delivered += part;
        got += part;
        parts[i].iov_base = (char *)parts[i].iov_base + part;
        parts[i].iov_len -= part;
        i += parts[i].iov_len == 0;
    }
    if (self->delivered == (self->plain ? self->plain_length : self->end))
        forget_message(self);
    return (ssize_t)got;
}

/* A buffered stream that checks each message before it delivers it. Owns `inner`. NULL without
 * memory. */
static mongoc_stream_t *checked_stream_new(mongoc_stream_t *inner, sl_streams *owner,
                                           int64_t *deadline, const char *host_and_port) {
    checked_stream *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->vtable = (mongoc_stream_t){.type = CHECKED_TYPE,
                                     .destroy = checked_destroy,
                                     .close = checked_close,
                                     .flush = checked_flush,
                                     .writev = checked_writev,
                                     .readv = checked_readv,
                                     .setsockopt = checked_setsockopt,
                                     .get_base_stream = checked_get_base,
                                     .check_closed = checked_check_closed,
                                     .failed = checked_failed,
                                     .timed_out = checked_timed_out,
                                     .should_retry = checked_should_retry};
    made->inner = inner;
    made->owner = owner;
    made->deadline = deadline;
    snprintf(made->host, sizeof made->host, "%s", host_and_port);
    forget_refusal_of(made->host);
    return &made->vtable;
}

/* ---- patience ---- */

/* The innermost streams of all clients. Patient ones wait for a reply as long as the server is
 * alive; the others as long as the driver's timeouts allow.
 *
 * An index build or a query may take hours, so the reply has no deadline. But a server that
 * hangs keeps its connections open and never replies. So a stream that waits sends a hello on
 * another connection every few seconds. When the server has answered none of them for the time in
 * sl_patience, the stream fails with a timeout.
 *
 * The stream initiator replaces the innermost of the driver's streams and the outermost, the buffer
 * (checked_stream); the driver's own TLS stream is between them. The socket is blocking, with
 * timeouts: a wait for a reply is one system call, where the driver's own stream needs three. A
 * connection that is lost while its server is alive (a router was restarted) is detected by
 * keep-alive.
 *
 * The open streams of each client are in a list, for short reads. */

#define PATIENT_TYPE 101 /* not a type of the driver */
#define CHECK_MS 5000    /* interval of the hello on another connection */

typedef struct patient_stream {
    mongoc_stream_t vtable;      /* the first member, so that a pointer to it is also a pointer to
                                    the struct */
    struct patient_stream *next; /* in the list of its client */
    sl_streams *owner;
    mongoc_stream_t *outermost;  /* the stream that the driver uses; NULL while connecting */
    int socket;                  /* -1: closed */
    int64_t receive_ms, send_ms; /* timeouts of the socket; 0: none set yet */
    const sl_patience *patience;
    mongoc_host_list_t host;
    int32_t connect_ms; /* a host that has not answered for this time is silent */
    int64_t deadline;   /* of what is received: a record of TLS that the server sends byte by byte
                           would renew the timeout of each read; INT64_MAX: none */
    int64_t asked;      /* when the request without an answer was sent; 0: there is none */
    bool heard;         /* has it answered? */
    bool timed_out;
} patient_stream;

/* Sets a timeout of the socket (SO_RCVTIMEO, SO_SNDTIMEO), unless `*current` is the same. */
static void set_timeout(const patient_stream *self, int option, int64_t *current,
                        int64_t milliseconds) {
    if (*current != milliseconds && sl_socket_set_timeout(self->socket, option, milliseconds))
        *current = milliseconds;
}

/* ---- the driver's operations on a patient stream ---- */

static int patient_close(mongoc_stream_t *stream) {
    patient_stream *self = (patient_stream *)stream;
    int result = self->socket < 0 ? 0 : close(self->socket);
    self->socket = -1;
    return result;
}

static void patient_destroy(mongoc_stream_t *stream) {
    patient_stream *self = (patient_stream *)stream, **link = &self->owner->first;
    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
    if (self->asked && bson_get_monotonic_time() - self->asked >= self->connect_ms * INT64_C(900))
        sl_silent_host_add(self->host.host_and_port);
    patient_close(stream);
    bson_free(self);
}

static int patient_flush(mongoc_stream_t *stream) {
    (void)stream;
    return 0;
}

static int patient_setsockopt(mongoc_stream_t *stream, int level, int option, void *value,
                              mongoc_socklen_t length) {
    return setsockopt(((patient_stream *)stream)->socket, level, option, value, length);
}

/* Has the server closed the connection? */
static bool patient_check_closed(mongoc_stream_t *stream) {
    char byte;
    ssize_t got =
        recv(((patient_stream *)stream)->socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static bool patient_timed_out(mongoc_stream_t *stream) {
    return ((patient_stream *)stream)->timed_out;
}

static ssize_t patient_poll(mongoc_stream_poll_t *streams, size_t count, int32_t timeout_ms) {
    struct pollfd *files = calloc(count, sizeof *files);
    if (!files) {
        errno = ENOMEM;
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        files[i] = (struct pollfd){.fd = ((patient_stream *)streams[i].stream)->socket,
                                   .events = (short)streams[i].events};
    bool closed = false;
    for (size_t i = 0; i < count; i++)
        closed = closed || files[i].fd < 0;
    int ready = poll(files, count, closed ? 0 : timeout_ms);
    for (size_t i = 0; ready >= 0 && i < count; i++) {
        streams[i].revents = files[i].fd < 0 ? POLLHUP : files[i].revents;
        ready += files[i].fd < 0;
    }
    free(files);
    return ready;
}

static bool is_timeout(int code) {
    return code == ETIMEDOUT || code == EAGAIN || code == EWOULDBLOCK;
}

/* The time in milliseconds that the server may be silent. */
static int64_t patience_of(const patient_stream *self) {
    return self->patience->milliseconds ? self->patience->milliseconds : INT32_MAX;
}

/* Removes the first `sent` bytes of the parts. Returns the number of parts that are left. */
static size_t skip_bytes(mongoc_iovec_t **parts, size_t count, size_t sent) {
    for (; count > 0 && sent >= (*parts)->iov_len; count--, (*parts)++)
        sent -= (*parts)->iov_len;
    if (count > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + sent;
        (*parts)->iov_len -= sent;
    }
    return count;
}

/* Requests are small: a server that does not receive one within the patience hangs. */
static ssize_t patient_writev(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                              int32_t timeout_ms) {
    patient_stream *self = (patient_stream *)stream;
    const int64_t limit_ms = patience_of(self);
    int64_t expiry = expiry_of(timeout_ms), own = expiry_of((int32_t)limit_ms);
    ssize_t total = 0;
    expiry = own < expiry ? own : expiry;
    if (!self->asked)
        self->asked = bson_get_monotonic_time();
    for (count = skip_bytes(&parts, count, 0); count > 0;) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count < IOV_MAX ? count : IOV_MAX};
        int64_t wait = remaining_ms(expiry, limit_ms);
        set_timeout(self, SO_SNDTIMEO, &self->send_ms, wait ? wait : 1);
        ssize_t sent = sendmsg(self->socket, &message, MSG_NOSIGNAL);
        if (sent < 0 && (errno != EINTR || wait == 0)) {
            self->timed_out = is_timeout(errno);
            return -1;
        }
        total += sent > 0 ? sent : 0;
        count = skip_bytes(&parts, count, sent > 0 ? (size_t)sent : 0);
    }
    return total;
}

/* Waits for bytes until `expiry`, or until the server is not alive. */
static ssize_t receive(patient_stream *self, mongoc_iovec_t *into, int64_t expiry) {
    const bool patient = self->patience->milliseconds != 0;
    int64_t alive = bson_get_monotonic_time(); /* when the server was last known to be alive */
    for (;;) {
        int64_t give_up = alive + patience_of(self) * 1000;
        int64_t wait =
            remaining_ms(give_up < expiry ? give_up : expiry, patient ? CHECK_MS : INT32_MAX);
        if (wait)
            set_timeout(self, SO_RCVTIMEO, &self->receive_ms, wait);
        ssize_t got = recv(self->socket, into->iov_base, into->iov_len, wait ? 0 : MSG_DONTWAIT);
        int code = errno;
        if (got < 0 && code == EINTR && wait)
            continue;
        if (got >= 0) {
            self->asked = 0;
            if (!self->heard)
                sl_silent_host_remove(self->host.host_and_port);
            self->heard = true;
        }
        if (got >= 0 || !is_timeout(code) || bson_get_monotonic_time() >= expiry) {
            self->timed_out = got < 0 && is_timeout(code);
            errno = code;
            return got;
        }
        if (patient && sl_server_answers(self->patience->uri, &self->host, self->socket)) {
            alive = bson_get_monotonic_time();
        } else if (bson_get_monotonic_time() >= give_up) {
            self->timed_out = true;
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

static ssize_t patient_readv(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                             size_t least, int32_t timeout_ms) {
    patient_stream *self = (patient_stream *)stream;
    const int64_t own = expiry_of(timeout_ms), expiry = own < self->deadline ? own : self->deadline;
    size_t got = 0;
    self->timed_out = self->patience->ending;
    if (self->timed_out) {
        errno = ETIMEDOUT;
        return -1;
    }
    for (size_t i = 0; i < count;) {
        ssize_t more = receive(self, &parts[i], expiry);
        if (more <= 0)
            return got > 0 && got >= least ? (ssize_t)got : more < 0 ? -1 : (ssize_t)got;
        got += (size_t)more;
        parts[i].iov_base = (char *)parts[i].iov_base + more;
        parts[i].iov_len -= (size_t)more;
        if (parts[i].iov_len == 0)
            i++;
        else if (got >= least)
            break;
    }
    return (ssize_t)got;
}

/* ---- connecting patient streams ---- */

/* A member is silent if no connection to it is made in time. What counts is the time, also that of
 * slow refusals, of names that are resolved slowly, and of connections that are made late. */
#define PATIENT_MAX 8   /* after 8 silent members, each other one has only BRIEF_MS to connect */
#define BRIEF_MS 250    /* milliseconds */
#define SILENT_MAX 64   /* after 64 silent members, the others are not asked */
#define PROMPT_MS 10    /* a refusal within this time counts as no lost time */
#define LATE_MS 50      /* and a connection within this time */
#define SILENT_MS 10000 /* the count begins again after this time without a silent member */

/* What `internal` of mongoc_ssl_opt_t refers to in all versions 1.x of the driver; no function sets
 * it. Without it, the driver asks the OCSP responder that a certificate names, without encryption,
 * and keeps a reply of any length in memory. */
typedef struct sl_tls_internal {
    bool no_revocation_check, no_responder;
} sl_tls_internal;
_Static_assert(MONGOC_MAJOR_VERSION == 1, "compare sl_tls_internal with the driver's source");

static mongoc_stream_t *wrap_in_tls(mongoc_stream_t *inner, const mongoc_uri_t *uri,
                                    const char *host, int32_t timeout_ms, bson_error_t *error) {
    sl_tls_internal internal = {
        .no_revocation_check = mongoc_uri_get_option_as_bool(
            uri, MONGOC_URI_TLSDISABLECERTIFICATEREVOCATIONCHECK, false),
        .no_responder = true,
    };
    bool insecure = mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSINSECURE, false);
    mongoc_ssl_opt_t options = {
        .pem_file = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL),
        .pem_pwd =
            mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD, NULL),
        .ca_file = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCAFILE, NULL),
        .weak_cert_validation = insecure || mongoc_uri_get_option_as_bool(
                                                uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES, false),
        .allow_invalid_hostname = insecure || mongoc_uri_get_option_as_bool(
                                                  uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES, false),
        .internal = &internal,
    };
    mongoc_stream_t *tls = mongoc_stream_tls_new_with_hostname(inner, host, &options, 1);
    if (!tls) {
        bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
                       "TLS cannot be set up");
        mongoc_stream_destroy(inner);
        return NULL;
    }
    if (mongoc_stream_tls_handshake_block(tls, host, timeout_ms, error))
        return tls;
    mongoc_stream_destroy(tls);
    return NULL;
}

static patient_stream *make_stream(sl_streams *owner, const mongoc_host_list_t *host, int socket) {
    patient_stream *made = bson_malloc0(sizeof *made);
    *made = (patient_stream){.vtable = {.type = PATIENT_TYPE,
                                        .destroy = patient_destroy,
                                        .close = patient_close,
                                        .flush = patient_flush,
                                        .writev = patient_writev,
                                        .readv = patient_readv,
                                        .setsockopt = patient_setsockopt,
                                        .check_closed = patient_check_closed,
                                        .poll = patient_poll,
                                        .failed = mongoc_stream_destroy,
                                        .timed_out = patient_timed_out,
                                        .should_retry = patient_timed_out},
                             .next = owner->first,
                             .owner = owner,
                             .socket = socket,
                             .patience = owner->patience,
                             .deadline = INT64_MAX,
                             .host = *host};
    made->host.next = NULL;
    owner->first = made;
    return made;
}

/* The time in which a member must accept a connection, in milliseconds; 0: it is not asked. When
 * the driver looks for servers, it waits for one member after another. */
static int32_t time_to_connect(sl_streams *owner, int32_t timeout_ms) {
    const int32_t brief_ms = timeout_ms < BRIEF_MS ? timeout_ms : BRIEF_MS;
    const int64_t patient_ms = (int64_t)timeout_ms * PATIENT_MAX;
    if (bson_get_monotonic_time() >= owner->lost_until)
        owner->lost_ms = 0;
    if (owner->lost_ms >= patient_ms + (int64_t)brief_ms * (SILENT_MAX - PATIENT_MAX))
        return 0;
    return owner->lost_ms >= patient_ms ? brief_ms : timeout_ms;
}

/* Never returns NULL for a host without a connection, but a stream that is closed: when the driver
 * (1.23) looks for the servers, and the initiator fails while it repeats a hello, the driver waits
 * for a lock that it holds itself. */
static mongoc_stream_t *open_stream(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
                                    void *context, bson_error_t *error) {
    int32_t timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, 10000);
    timeout_ms = timeout_ms < 0 ? INT32_MAX : timeout_ms;
    sl_streams *owner = context;
    const int32_t connect_ms = time_to_connect(owner, timeout_ms);
    const int64_t start = bson_get_monotonic_time();
    sl_socket_failure failure = {.in_time = true};
    int socket = connect_ms == 0 ||
                         /* asked again, DNS may give another answer than to the preflight */
                         (mongoc_uri_get_srv_hostname(uri) &&
                          !sl_hosts_are_valid(host->host_and_port, false)) ||
                         sl_silent_host_is_passed_over(uri, host->host_and_port, timeout_ms)
                     ? -1
                     : sl_socket_connect(host, connect_ms, &failure);
    if (socket >= 0)
        sl_socket_keep_alive(socket);
    else if (!failure.in_time)
        sl_silent_host_add(host->host_and_port);
    patient_stream *made = make_stream(owner, host, socket);
    made->connect_ms = timeout_ms;
    mongoc_stream_t *stream = &made->vtable;
    made->deadline = expiry_of(timeout_ms);
    if (socket >= 0 && mongoc_uri_get_tls(uri))
        stream = wrap_in_tls(stream, uri, host->host, connect_ms, error);
    const int64_t lost_ms = (bson_get_monotonic_time() - start) / 1000;
    if (connect_ms > 0 && lost_ms >= (socket >= 0 && stream ? LATE_MS : PROMPT_MS)) {
        owner->lost_ms += lost_ms;
        owner->lost_until = expiry_of(SILENT_MS);
    }
    if (!stream) {
        made = make_stream(owner, host, -1);
        stream = &made->vtable;
    }
    made->outermost = checked_stream_new(stream, owner, &made->deadline, host->host_and_port);
    if (socket >= 0 && strcmp(host->host_and_port, refusal.host) == 0)
        refusal.certificate = false;
    if (socket >= 0 && made->socket < 0) {
        note_refusal(host->host_and_port, "%s: %s", host->host_and_port, error->message);
        refusal.certificate = true;
    }
    if (made->outermost)
        return made->outermost;
    mongoc_stream_destroy(stream);
    return NULL;
}

/* ---- the streams of the clients ---- */

void sl_patience_init(sl_patience *patience, const mongoc_uri_t *uri, int64_t milliseconds) {
    *patience = (sl_patience){.uri = uri, .milliseconds = milliseconds};
    pthread_mutex_init(&patience->lock, NULL);
}

void sl_patience_clear(sl_patience *patience) {
    for (sl_streams *streams = patience->clients, *next; streams; streams = next) {
        next = streams->next;
        for (size_t i = 0; i < streams->member_count; i++)
            bson_free(streams->members[i]);
        bson_free(streams);
    }
    pthread_mutex_destroy(&patience->lock);
}

void sl_patience_attach(sl_patience *patience, mongoc_client_t *client) {
    sl_streams *streams = bson_malloc0(sizeof *streams);
    pthread_mutex_lock(&patience->lock);
    *streams = (sl_streams){.next = patience->clients, .client = client, .patience = patience};
    patience->clients = streams;
    pthread_mutex_unlock(&patience->lock);
    mongoc_client_set_stream_initiator(client, open_stream, streams);
}

sl_streams *sl_patience_find(sl_patience *patience, const mongoc_client_t *client) {
    pthread_mutex_lock(&patience->lock);
    sl_streams *streams = patience->clients;
    while (streams && streams->client != client)
        streams = streams->next;
    pthread_mutex_unlock(&patience->lock);
    return streams;
}

static patient_stream *find(const sl_streams *streams, const char *host_and_port) {
    patient_stream *stream = streams->first;
    while (stream && (!stream->outermost || strcmp(stream->host.host_and_port, host_and_port) != 0))
        stream = stream->next;
    return stream;
}

void sl_streams_shut_down(const sl_streams *streams, const char *host_and_port) {
    patient_stream *stream = find(streams, host_and_port);
    if (stream && stream->socket >= 0)
        shutdown(stream->socket, SHUT_RDWR);
}

/* ---- short reads without the driver ---- */

/* Reads without the driver, on the driver's own connections.
 *
 * For each command the driver copies the server's description, starts a session and assembles the
 * message from parts. That is more work than the server has with a read of one small document. So
 * an exchange writes the command to the client's connection as one OP_MSG and reads the reply.
 *
 * The driver does everything else: it opens the connection, authenticates, and must have run a
 * command of the same thread on it before the first exchange. When an exchange fails, the
 * connection is shut down, because the rest of a reply may still arrive; the driver finds it broken
 * at its next command and opens another one. Messages are never compressed. */

#define FLAG_BYTES 4

struct sl_exchange {
    sl_streams *streams;
    char host[BSON_HOST_NAME_MAX + 8]; /* of the selected server, with its port */
    int32_t timeout_ms;
    int32_t request; /* number of the last message */
    bson_t fields;   /* appended to each command */
    bson_t message;  /* the last command with these fields */
    uint8_t *reply;
    size_t reply_room;
};

sl_exchange *sl_exchange_create(sl_connection *connection, mongoc_client_t *client) {
    const mongoc_uri_t *uri = sl_connection_uri(connection);
    const bson_t *compressors = mongoc_uri_get_compressors(uri);
    if (compressors && !bson_empty(compressors))
        return NULL;
    sl_exchange *made = sl_zeroed(1, sizeof *made);
    if (!made)
        return NULL;
    made->streams = sl_connection_streams(connection, client);
    made->timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, INT32_MAX);
    if (made->timeout_ms <= 0)
        made->timeout_ms = INT32_MAX;
    bson_init(&made->fields);
    bson_init(&made->message);
    return made;
}

void sl_exchange_destroy(sl_exchange *exchange) {
    if (!exchange)
        return;
    bson_destroy(&exchange->fields);
    bson_destroy(&exchange->message);
    bson_free(exchange->reply);
    free(exchange);
}

/* ---- the fields that the driver appends to a read ---- */

const char *sl_read_mode_name(mongoc_read_mode_t mode) {
    return mode == MONGOC_READ_PRIMARY_PREFERRED     ? "primaryPreferred"
           : mode == MONGOC_READ_SECONDARY           ? "secondary"
           : mode == MONGOC_READ_SECONDARY_PREFERRED ? "secondaryPreferred"
           : mode == MONGOC_READ_NEAREST             ? "nearest"
                                                     : "primary";
}

/* A secondary is selected for the mode "primary" only if it is the only host of the URI (a direct
 * connection). It answers only if the mode allows secondaries. */
static void append_preference(bson_t *fields, const mongoc_read_prefs_t *preference,
                              const char *server_type) {
    mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(preference);
    bool secondary = strcmp(server_type, "RSSecondary") == 0;
    bson_t document;
    if (mode == MONGOC_READ_PRIMARY && secondary)
        mode = MONGOC_READ_PRIMARY_PREFERRED;
    if (mode == MONGOC_READ_PRIMARY || strcmp(server_type, "Standalone") == 0)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(fields, "$readPreference", &document);
    BSON_APPEND_UTF8(&document, "mode", sl_read_mode_name(mode));
    if (!bson_empty0(mongoc_read_prefs_get_tags(preference)))
        BSON_APPEND_ARRAY(&document, "tags", mongoc_read_prefs_get_tags(preference));
    if (mongoc_read_prefs_get_max_staleness_seconds(preference) > 0)
        BSON_APPEND_INT64(&document, "maxStalenessSeconds",
                          mongoc_read_prefs_get_max_staleness_seconds(preference));
    bson_append_document_end(fields, &document);
}

void sl_exchange_select(sl_exchange *exchange, const sl_exchange_target *target,
                        const mongoc_client_t *client) {
    const char *level = mongoc_read_concern_get_level(mongoc_client_get_read_concern(client));
    bson_t concern;
    snprintf(exchange->host, sizeof exchange->host, "%s",
             mongoc_server_description_host(target->server)->host_and_port);
    bson_reinit(&exchange->fields);
    BSON_APPEND_UTF8(&exchange->fields, "$db", target->database);
    if (target->session)
        BSON_APPEND_DOCUMENT(&exchange->fields, "lsid",
                             mongoc_client_session_get_lsid(target->session));
    if (target->read_concern) {
        BSON_APPEND_DOCUMENT(&exchange->fields, "readConcern", target->read_concern);
    } else if (level) {
        BSON_APPEND_DOCUMENT_BEGIN(&exchange->fields, "readConcern", &concern);
        BSON_APPEND_UTF8(&concern, "level", level);
        bson_append_document_end(&exchange->fields, &concern);
    }
    append_preference(&exchange->fields,
                      target->preference ? target->preference
                                         : mongoc_client_get_read_prefs(client),
                      mongoc_server_description_type(target->server));
}

/* ---- command and reply ---- */

static bool send_message(sl_exchange *exchange, mongoc_stream_t *stream) {
    uint8_t head[HEADER_BYTES + FLAG_BYTES + 1] = {0};
    mongoc_iovec_t parts[2] = {{.iov_base = head, .iov_len = sizeof head},
                               {.iov_base = (void *)(uintptr_t)bson_get_data(&exchange->message),
                                .iov_len = exchange->message.len}};
    const size_t length = sizeof head + exchange->message.len;
    exchange->request = exchange->request == INT32_MAX ? 1 : exchange->request + 1;
    put_u32(head, (uint32_t)length);
    put_u32(head + 4, (uint32_t)exchange->request);
    put_u32(head + 12, OP_MSG);
    return mongoc_stream_writev(stream, parts, 2, exchange->timeout_ms) == (ssize_t)length;
}

static bool read_exactly(mongoc_stream_t *stream, uint8_t *into, size_t length, int32_t timeout) {
    return mongoc_stream_read(stream, into, length, length, timeout) == (ssize_t)length;
}

/* The stream has checked that the message is the reply, and contains one document. */
static bool receive_reply(sl_exchange *exchange, mongoc_stream_t *stream, bson_t *reply) {
    uint8_t header[HEADER_BYTES];
    if (!read_exactly(stream, header, sizeof header, exchange->timeout_ms))
        return false;
    size_t length = get_u32(header) - HEADER_BYTES;
    if (length > exchange->reply_room) {
        exchange->reply = bson_realloc(exchange->reply, length);
        exchange->reply_room = length;
    }
    return read_exactly(stream, exchange->reply, length, exchange->timeout_ms) &&
           bson_init_static(reply, exchange->reply + FLAG_BYTES + 1, length - FLAG_BYTES - 1);
}

bool sl_exchange_run(sl_exchange *exchange, const bson_t *command, bson_t *reply) {
    const patient_stream *found = find(exchange->streams, exchange->host);
    if (!found)
        return false;
    mongoc_stream_t *stream = found->outermost;
    bson_reinit(&exchange->message);
    if (bson_concat(&exchange->message, command) &&
        bson_concat(&exchange->message, &exchange->fields) && send_message(exchange, stream) &&
        receive_reply(exchange, stream, reply))
        return true;
    sl_streams_shut_down(exchange->streams, exchange->host);
    return false;
}
