/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The MongoDB wire protocol, as far as a router needs it: parsing and building messages. These
 * functions use no sockets, and no input makes them read outside the given bytes.
 *
 * A message is a 16-byte header (length, request id, id of the request it answers, operation code)
 * and a body. OP_MSG carries flags, exactly one section of kind 0 (the command, one BSON document)
 * and any number of sections of kind 1 (a named sequence of documents). OP_QUERY and OP_REPLY are
 * the older pair that drivers still use for their first handshake.
 */

#ifndef ROUTER_WIRE_H
#define ROUTER_WIRE_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "stream.h"

enum {
    WIRE_HEADER_SIZE = 16,
    WIRE_MAX_MESSAGE = 48000000, /* the server's own limit, in bytes, header included */
    /*
     * What rewriting a command adds to a message at most: "insert" becomes "clusterInsert", and a
     * write without a write concern gets the default one. The limit that the router announces to
     * clients is smaller by this number, so that the largest message still fits after the
     * rewriting.
     */
    WIRE_RENAME_ROOM = 64,
};

enum wire_opcode {
    OP_REPLY = 1,
    OP_QUERY = 2004,
    OP_MSG = 2013,
};

enum wire_flag {
    WIRE_CHECKSUM_PRESENT = 1u << 0,
    WIRE_MORE_TO_COME = 1u << 1,
    WIRE_EXHAUST_ALLOWED = 1u << 16,
};

struct wire_header {
    uint32_t length; /* of the complete message, checked to be within the limits */
    int32_t request_id;
    int32_t response_to;
    int32_t opcode;
};

/*
 * A parsed OP_MSG; all pointers are into the parsed bytes. Must not be copied: a libbson view
 * contains pointers to itself.
 */
struct wire_message {
    struct wire_header header;
    uint32_t flags;
    bson_t body;           /* a view: never destroyed */
    const uint8_t *before; /* the sections before the command, verbatim */
    size_t before_length;
    const uint8_t *after; /* the sections after the command, without a checksum */
    size_t after_length;
};

/* A parsed OP_QUERY, likewise. */
struct wire_query {
    struct wire_header header;
    const char *collection; /* "db.$cmd" */
    bson_t body;
};

/* Reads a header. False when there are not enough bytes or the length field is out of bounds. */
bool wire_parse_header(const uint8_t *bytes, size_t length, struct wire_header *header);

/*
 * Parses an OP_MSG. False if it is malformed: unknown required flags, a section that does not fit,
 * no command or two, a command that is not a BSON document, a wrong checksum. Documents of a
 * sequence are not checked; the server does that.
 */
bool wire_parse_message(const uint8_t *bytes, size_t length, struct wire_message *message);

/* Parses an OP_QUERY. False if it is malformed. */
bool wire_parse_query(const uint8_t *bytes, size_t length, struct wire_query *query);

/* True when `bytes` is a document whose own elements are well-formed; `document` becomes a view. */
bool wire_view_document(const uint8_t *bytes, size_t length, bson_t *document);

/* Puts `reply` into an OP_MSG, or into an OP_REPLY if that is the `opcode`. False when out of
 * memory. */
bool wire_build_reply(struct buffer *out, int32_t response_to, int32_t opcode, const bson_t *reply);

/* The bytes before a command's document in an OP_MSG: header, flags and section kind. */
enum { WIRE_PREFIX_SIZE = WIRE_HEADER_SIZE + 4 + 1 };

/*
 * Describes an OP_MSG made of `body` and of the document sequences of `original` (NULL: none)
 * without copying any of them. `prefix` and `parts` are filled in and must live, with body and
 * original, until the parts are written. Returns the number of parts, or 0 when the message would
 * be too long.
 */
int wire_gather(const bson_t *body, int32_t request_id, const struct wire_message *original,
                uint8_t prefix[WIRE_PREFIX_SIZE], struct iovec parts[4]);

#endif
