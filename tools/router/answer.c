/* SPDX-License-Identifier: Apache-2.0 */

/* Server-style replies and error codes: see answer.h. */

#include "answer.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    enum server_code code;
    const char *name;
} code_names[] = {
    {CODE_INTERNAL_ERROR, "InternalError"},
    {CODE_BAD_VALUE, "BadValue"},
    {CODE_HOST_UNREACHABLE, "HostUnreachable"},
    {CODE_FAILED_TO_PARSE, "FailedToParse"},
    {CODE_TYPE_MISMATCH, "TypeMismatch"},
    {CODE_ILLEGAL_OPERATION, "IllegalOperation"},
    {CODE_NAMESPACE_NOT_FOUND, "NamespaceNotFound"},
    {CODE_CURSOR_NOT_FOUND, "CursorNotFound"},
    {CODE_COMMAND_NOT_FOUND, "CommandNotFound"},
    {CODE_SHARD_KEY_NOT_FOUND, "ShardKeyNotFound"},
    {CODE_SHARD_NOT_FOUND, "ShardNotFound"},
    {CODE_INVALID_NAMESPACE, "InvalidNamespace"},
    {CODE_NAMESPACE_NOT_SHARDED, "NamespaceNotSharded"},
    {CODE_FAILED_TO_SATISFY_READ_PREFERENCE, "FailedToSatisfyReadPreference"},
    {CODE_UNSUPPORTED_OP_QUERY, "UnsupportedOpQueryCommand"},
    {CODE_NOT_WRITABLE_PRIMARY, "NotWritablePrimary"},
    {CODE_OBJECT_TOO_LARGE, "BSONObjectTooLarge"},
    {CODE_STALE_CONFIG, "StaleConfig"},
    {CODE_NOT_PRIMARY_NO_SECONDARY_OK, "NotPrimaryNoSecondaryOk"},
};

void answer_ok(bson_t *reply) {
    bson_init(reply);
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
}

bool answer_error(bson_t *reply, enum server_code code, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    bson_init(reply);
    BSON_APPEND_DOUBLE(reply, "ok", 0.0);
    BSON_APPEND_UTF8(reply, "errmsg", text);
    BSON_APPEND_INT32(reply, "code", (int32_t)code);
    for (size_t i = 0; i < sizeof code_names / sizeof code_names[0]; i++) {
        if (code_names[i].code == code) {
            BSON_APPEND_UTF8(reply, "codeName", code_names[i].name);
        }
    }
    return false;
}

void answer_add_retryable_label(bson_t *reply) {
    bson_t labels;
    if (!bson_has_field(reply, "errorLabels")) {
        BSON_APPEND_ARRAY_BEGIN(reply, "errorLabels", &labels);
        BSON_APPEND_UTF8(&labels, "0", "RetryableWriteError");
        bson_append_array_end(reply, &labels);
    }
}

int answer_code(const bson_t *reply) {
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, reply, "ok") && bson_iter_as_bool(&iter)) {
        return CODE_OK;
    }
    if (bson_iter_init_find(&iter, reply, "code") && BSON_ITER_HOLDS_NUMBER(&iter)) {
        int code = (int)bson_iter_as_int64(&iter);
        return code != CODE_OK ? code : CODE_INTERNAL_ERROR;
    }
    return CODE_INTERNAL_ERROR;
}

bool answer_was_not_run(int code) {
    return code == CODE_NOT_WRITABLE_PRIMARY || code == CODE_NOT_PRIMARY_NO_SECONDARY_OK ||
           code == 10058 /* LegacyNotPrimary */ || code == 13436 /* NotPrimaryOrSecondary */;
}

bool answer_is_not_primary(int code) {
    return answer_was_not_run(code) || code == 91 /* ShutdownInProgress */ ||
           code == 189 /* PrimarySteppedDown */ || code == 11600 /* InterruptedAtShutdown */ ||
           code == 11602 /* InterruptedDueToReplStateChange */;
}
