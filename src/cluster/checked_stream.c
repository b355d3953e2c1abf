/* SPDX-License-Identifier: Apache-2.0 */
/* The outermost stream of a connection: a buffer that delivers only messages that were checked.
 *
 * It receives each message completely, checks it, and only then gives its bytes to the driver. A
 * message that is refused is a failure of the stream, so the driver closes the connection. The
 * reason is kept for the thread, because the driver's error cannot contain it: until it was
 * reported, the next command begins, or the same server is asked again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"

#include "internal.h"

#define STREAM_TYPE 102    /* not a type of the driver */
#define BUFFER_BYTES 16384 /* read at once: a reply with one document needs one system call */
#define KEPT_BYTES 1048576 /* a larger buffer is freed after its message */

typedef struct checked_stream {
    mongoc_stream_t vtable; /* the first member, so that a pointer to it is one to the struct */
    mongoc_stream_t *inner;
    uint8_t *bytes;         /* received */
    size_t room, used, end; /* of `bytes`; the message that is delivered ends at `end` */
    uint8_t *plain;         /* the decompressed message; NULL: it is not compressed */
    size_t plain_length;
    size_t delivered; /* of the message */
    char host[BSON_HOST_NAME_MAX + 8];
} checked_stream;

/* The reason why this thread refused a message, and its server; empty if there is none. */
static _Thread_local struct {
    char text[BSON_HOST_NAME_MAX + SL_MESSAGE_WHY + 64];
    char host[BSON_HOST_NAME_MAX + 8];
} refusal;

const char *sl_message_refusal(void) {
    return refusal.text;
}

void sl_message_forget_refusal(void) {
    refusal.text[0] = '\0';
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

static void on_destroy(mongoc_stream_t *stream) {
    mongoc_stream_destroy(of(stream)->inner);
    release(of(stream));
}

static void on_failed(mongoc_stream_t *stream) {
    mongoc_stream_failed(of(stream)->inner);
    release(of(stream));
}

static int on_close(mongoc_stream_t *stream) {
    return mongoc_stream_close(of(stream)->inner);
}

static int on_flush(mongoc_stream_t *stream) {
    return mongoc_stream_flush(of(stream)->inner);
}

static ssize_t on_writev(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                         int32_t timeout_ms) {
    forget_refusal_of(of(stream)->host);
    return mongoc_stream_writev(of(stream)->inner, parts, count, timeout_ms);
}

static int on_setsockopt(mongoc_stream_t *stream, int level, int option, void *value,
                         mongoc_socklen_t length) {
    return mongoc_stream_setsockopt(of(stream)->inner, level, option, value, length);
}

static mongoc_stream_t *on_get_base(mongoc_stream_t *stream) {
    return of(stream)->inner;
}

static bool on_check_closed(mongoc_stream_t *stream) {
    return mongoc_stream_check_closed(of(stream)->inner);
}

static bool on_timed_out(mongoc_stream_t *stream) {
    mongoc_stream_t *inner = of(stream)->inner;
    return inner->timed_out && inner->timed_out(inner);
}

static bool on_should_retry(mongoc_stream_t *stream) {
    return mongoc_stream_should_retry(of(stream)->inner);
}

/* Reads until `need` bytes are in the buffer. Returns 1, 0 at the end of the connection, or -1. */
static ssize_t fill(checked_stream *self, size_t need, int32_t timeout_ms) {
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
        ssize_t got = mongoc_stream_read(self->inner, self->bytes + self->used,
                                         self->room - self->used, 1, timeout_ms);
        if (got <= 0)
            return got;
        self->used += (size_t)got;
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

/* Receives the next message and checks it. Returns as fill does; with 1, the message can be
 * delivered. */
static ssize_t next_message(checked_stream *self, int32_t timeout_ms) {
    char why[SL_MESSAGE_WHY] = "";
    size_t length;
    forget_message(self);
    ssize_t result = fill(self, SL_MESSAGE_HEADER, timeout_ms);
    if (result <= 0)
        return result;
    bool ok = sl_message_length(self->bytes, &length, why);
    result = ok ? fill(self, length, timeout_ms) : 1;
    if (result <= 0)
        return result;
    ok = ok && sl_message_expand(self->bytes, length, &self->plain, &self->plain_length, why) &&
         sl_message_check(self->plain ? self->plain : self->bytes,
                          self->plain ? self->plain_length : length, why);
    if (ok) {
        self->end = length;
        sl_message_forget_refusal();
        return 1;
    }
    sl_print_text(refusal.text, sizeof refusal.text, "a message of %s is refused: %s", self->host,
                  why);
    snprintf(refusal.host, sizeof refusal.host, "%s", self->host);
    errno = EPROTO;
    return -1;
}

static ssize_t on_readv(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count, size_t least,
                        int32_t timeout_ms) {
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
    return (ssize_t)got;
}

mongoc_stream_t *sl_checked_stream_new(mongoc_stream_t *inner, const char *host_and_port) {
    checked_stream *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->vtable = (mongoc_stream_t){.type = STREAM_TYPE,
                                     .destroy = on_destroy,
                                     .close = on_close,
                                     .flush = on_flush,
                                     .writev = on_writev,
                                     .readv = on_readv,
                                     .setsockopt = on_setsockopt,
                                     .get_base_stream = on_get_base,
                                     .check_closed = on_check_closed,
                                     .failed = on_failed,
                                     .timed_out = on_timed_out,
                                     .should_retry = on_should_retry};
    made->inner = inner;
    snprintf(made->host, sizeof made->host, "%s", host_and_port);
    forget_refusal_of(made->host);
    return &made->vtable;
}
