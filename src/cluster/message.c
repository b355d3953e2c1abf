/* SPDX-License-Identifier: Apache-2.0 */
/* Checks each message of a server before the driver reads it.
 *
 * The driver (libmongoc 1.23) trusts its server: it crashes or aborts on a document whose length is
 * wrong, and on fields of replies that have another type than expected. So a message is checked
 * completely: its length, its only section, every embedded document, and the fields of a reply that
 * the driver or this program relies on. A compressed message is decompressed here, within a limit,
 * because the driver aborts if the declared size is false; the driver gets the plain message. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "bson/bson_lookup.h"
#include "util/print.h"

#include "internal.h"

#define OP_REPLY 1
#define OP_COMPRESSED 2012
#define OP_MSG 2013
#define HEADER_BYTES SL_MESSAGE_HEADER
#define REPLY_BYTES (HEADER_BYTES + 20)     /* the fields of an OP_REPLY before its documents */
#define COMPRESSED_BYTES (HEADER_BYTES + 9) /* the fields of an OP_COMPRESSED before its data */
#define KNOWN_FLAGS 0x0000FFFFu             /* a reader must know these; the others are optional */
#define NESTING_MAX 250                     /* servers nest documents up to level 200 */
#define ITERATIONS_MAX 1000000              /* of SCRAM; servers use 10000 and 15000 */
#define HOSTS_MAX 1000                      /* of each list in a hello */
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

static bool wrong(char why[SL_MESSAGE_WHY], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool wrong(char why[SL_MESSAGE_WHY], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(why, SL_MESSAGE_WHY, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- documents ---- */

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
    return iter.err_off == 0 ||
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

static bool open_array(const bson_iter_t *field, const char *name, bson_iter_t *item,
                       char why[SL_MESSAGE_WHY]) {
    return (BSON_ITER_HOLDS_ARRAY(field) && bson_iter_recurse(field, item)) ||
           wrong(why, "its %s are not an array", name);
}

/* The lists of members: of strings, and not too many. */
static bool check_hosts(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    size_t count = 0;
    if (!open_array(field, rule->name, &item, why))
        return false;
    while (bson_iter_next(&item)) {
        const char *host = BSON_ITER_HOLDS_UTF8(&item) ? bson_iter_utf8(&item, NULL) : NULL;
        if (!host || !sl_hosts_are_valid(host))
            return wrong(why, "its %s contain \"%s\", which is not HOST:PORT", rule->name,
                         host ? host : "");
        if (++count > HOSTS_MAX)
            return wrong(why, "its %s are more than %d", rule->name, HOSTS_MAX);
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

/* The compressors of a server. */
static bool check_strings(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    if (!open_array(field, rule->name, &item, why))
        return false;
    while (bson_iter_next(&item)) {
        if (!BSON_ITER_HOLDS_UTF8(&item))
            return wrong(why, "its %s contains a value that is not a string", rule->name);
    }
    return true;
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

/* Is the message of the error, if it has one, a string? The code of a writeConcernError must not be
 * 0; that of a write error is only shown. */
static bool check_error(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t inner;
    static const sl_rule code = {.name = "writeConcernError.code"};
    if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &inner))
        return wrong(why, "its %s is not a document", rule->name);
    while (bson_iter_next(&inner)) {
        if (BSON_ITER_IS_KEY(&inner, "errmsg") && !BSON_ITER_HOLDS_UTF8(&inner))
            return wrong(why, "the errmsg of its %s is not a string", rule->name);
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

static bool check_labels(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    bson_iter_t item;
    return open_array(field, rule->name, &item, why);
}

/* The server chooses how many hashes the client computes for SCRAM: "r=...,s=...,i=15000". */
static bool check_scram(const bson_iter_t *field, const sl_rule *rule, char why[SL_MESSAGE_WHY]) {
    const uint8_t *bytes;
    uint32_t length;
    (void)rule;
    if (!BSON_ITER_HOLDS_BINARY(field))
        return true;
    bson_iter_binary(field, NULL, &length, &bytes);
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
    {"code", check_code, 0, 0},
    {"writeConcernError", check_error, 0, 0},
    {"writeErrors", check_errors, 0, 0},
    {"errorLabels", check_labels, 0, 0},
    {"payload", check_scram, 0, 0},
    {"speculativeAuthenticate", check_speculative, 0, 0},
    {"cursor", check_cursor, 0, 0},
};

/* A reply to a hello may lack any field, so it is not recognised by one: every reply is checked for
 * all fields. A name may occur twice, and some readers take the first field, others the last: so
 * each one is checked. */
static bool check_reply(const bson_t *reply, char why[SL_MESSAGE_WHY]) {
    bson_iter_t field;
    for (bool more = bson_iter_init(&field, reply); more && bson_iter_next(&field);) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            if (BSON_ITER_IS_KEY(&field, rules[i].name) && !rules[i].check(&field, &rules[i], why))
                return false;
        }
    }
    return true;
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

/* Decompresses to exactly `room` bytes. */
static bool expand(unsigned compressor, const uint8_t *data, size_t length, uint8_t *out,
                   size_t room) {
    uLongf used = room;
    switch (compressor) {
    case 0:
        if (length == room)
            memcpy(out, data, room);
        return length == room;
    case 1:
        return snappy_expand(data, length, out, room);
    case 2:
        return uncompress(out, &used, data, length) == Z_OK && used == room;
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
