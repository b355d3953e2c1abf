/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Server-style replies: `{ok: 1}`, and `{ok: 0, errmsg, code, codeName}` with the codes that a real
 * mongos uses, so that clients see the same errors.
 */

#ifndef ROUTER_ANSWER_H
#define ROUTER_ANSWER_H

#include <bson/bson.h>
#include <stdbool.h>

enum server_code {
    CODE_OK = 0,
    CODE_INTERNAL_ERROR = 1,
    CODE_BAD_VALUE = 2,
    CODE_HOST_UNREACHABLE = 6,
    CODE_FAILED_TO_PARSE = 9,
    CODE_TYPE_MISMATCH = 14,
    CODE_ILLEGAL_OPERATION = 20,
    CODE_NAMESPACE_NOT_FOUND = 26,
    CODE_CURSOR_NOT_FOUND = 43,
    CODE_COMMAND_NOT_FOUND = 59,
    CODE_SHARD_KEY_NOT_FOUND = 61,
    CODE_SHARD_NOT_FOUND = 70,
    CODE_INVALID_NAMESPACE = 73,
    CODE_NAMESPACE_NOT_SHARDED = 118,
    CODE_FAILED_TO_SATISFY_READ_PREFERENCE = 133,
    CODE_UNSUPPORTED_OP_QUERY = 352,
    CODE_NOT_WRITABLE_PRIMARY = 10107,
    CODE_OBJECT_TOO_LARGE = 10334,
    CODE_STALE_CONFIG = 13388,
    CODE_NOT_PRIMARY_NO_SECONDARY_OK = 13435,
};

/* Initialises `reply` as `{ok: 1}`. */
void answer_ok(bson_t *reply);

/* Initialises `reply` as an error; the text is formatted as by printf. Always returns false. */
bool answer_error(bson_t *reply, enum server_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the error label that makes a driver retry a write. */
void answer_add_retryable_label(bson_t *reply);

/* The code of a reply: CODE_OK for `ok: 1`, CODE_INTERNAL_ERROR for an error without a code. */
int answer_code(const bson_t *reply);

/* True if the reply is the error of a server that is not, or no longer, the primary. */
bool answer_is_not_primary(int code);

/* True if `code` also means that the command was not run. */
bool answer_was_not_run(int code);

#endif
