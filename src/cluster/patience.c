/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost streams of all clients. Patient ones wait for a reply as long as the server is
 * alive; the others as long as the driver's timeouts allow.
 *
 * An index build or a query may take hours, so the reply has no deadline. But a server that
 * hangs keeps its connections open and never replies. So a stream that waits sends a hello on
 * another connection every few seconds. When the server has answered none of them for the time in
 * sl_patience, the stream fails with a timeout.
 *
 * The stream initiator replaces the innermost of the driver's streams and the outermost, the buffer
 * (checked_stream.c); the driver's own TLS stream is between them. The socket is blocking, with
 * timeouts: a wait for a reply is one system call, where the driver's own stream needs three. A
 * connection that is lost while its server is alive (a router was restarted) is detected by
 * keep-alive.
 *
 * The open streams of each client are in a list, for exchange.c. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#define STREAM_TYPE 101 /* not a type of the driver */
#define CHECK_MS 5000   /* interval of the hello on another connection */

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
    int64_t asked;      /* when the request without an answer was sent; 0: there is none */
    bool heard;         /* has it answered? */
    bool timed_out;
} patient_stream;

/* The open streams of one client. They are opened, used and closed by the thread that has borrowed
 * the client. */
struct sl_streams {
    struct sl_streams *next; /* of another client */
    const mongoc_client_t *client;
    const sl_patience *patience;
    patient_stream *first;
};

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

/* Sets a timeout of the socket (SO_RCVTIMEO, SO_SNDTIMEO), unless `*current` is the same. */
static void set_timeout(const patient_stream *self, int option, int64_t *current,
                        int64_t milliseconds) {
    if (*current != milliseconds && sl_socket_set_timeout(self->socket, option, milliseconds))
        *current = milliseconds;
}

/* ---- the driver's operations ---- */

static int on_close(mongoc_stream_t *stream) {
    patient_stream *self = (patient_stream *)stream;
    int result = self->socket < 0 ? 0 : close(self->socket);
    self->socket = -1;
    return result;
}

static void on_destroy(mongoc_stream_t *stream) {
    patient_stream *self = (patient_stream *)stream, **link = &self->owner->first;
    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
    if (self->asked && bson_get_monotonic_time() - self->asked >= self->connect_ms * INT64_C(900))
        sl_silent_host_add(self->host.host_and_port);
    on_close(stream);
    bson_free(self);
}

static int on_flush(mongoc_stream_t *stream) {
    (void)stream;
    return 0;
}

static void on_failed(mongoc_stream_t *stream) {
    mongoc_stream_destroy(stream);
}

static int on_setsockopt(mongoc_stream_t *stream, int level, int option, void *value,
                         mongoc_socklen_t length) {
    return setsockopt(((patient_stream *)stream)->socket, level, option, value, length);
}

/* Has the server closed the connection? */
static bool on_check_closed(mongoc_stream_t *stream) {
    char byte;
    ssize_t got =
        recv(((patient_stream *)stream)->socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static bool on_timed_out(mongoc_stream_t *stream) {
    return ((patient_stream *)stream)->timed_out;
}

static ssize_t on_poll(mongoc_stream_poll_t *streams, size_t count, int32_t timeout_ms) {
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
static ssize_t on_writev(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
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

static void note_answer(patient_stream *self) {
    self->asked = 0;
    if (!self->heard)
        sl_silent_host_remove(self->host.host_and_port);
    self->heard = true;
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
        if (got >= 0)
            note_answer(self);
        if (got >= 0 || !is_timeout(code) || bson_get_monotonic_time() >= expiry) {
            self->timed_out = got < 0 && is_timeout(code);
            errno = code;
            return got;
        }
        if (patient && sl_server_answers(self->patience->uri, &self->host)) {
            alive = bson_get_monotonic_time();
        } else if (bson_get_monotonic_time() >= give_up) {
            self->timed_out = true;
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

static ssize_t on_readv(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count, size_t least,
                        int32_t timeout_ms) {
    patient_stream *self = (patient_stream *)stream;
    int64_t expiry = expiry_of(timeout_ms);
    size_t got = 0;
    self->timed_out = false;
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

/* ---- connecting ---- */

static mongoc_stream_t *wrap_in_tls(mongoc_stream_t *inner, const mongoc_uri_t *uri,
                                    const char *host, int32_t timeout_ms, bson_error_t *error) {
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
    *made = (patient_stream){.vtable = {.type = STREAM_TYPE,
                                        .destroy = on_destroy,
                                        .close = on_close,
                                        .flush = on_flush,
                                        .writev = on_writev,
                                        .readv = on_readv,
                                        .setsockopt = on_setsockopt,
                                        .check_closed = on_check_closed,
                                        .poll = on_poll,
                                        .failed = on_failed,
                                        .timed_out = on_timed_out,
                                        .should_retry = on_timed_out},
                             .next = owner->first,
                             .owner = owner,
                             .socket = socket,
                             .patience = owner->patience,
                             .host = *host};
    made->host.next = NULL;
    owner->first = made;
    return made;
}

/* Never returns NULL for a host without a connection, but a stream that is closed: when the driver
 * (1.23) looks for the servers, and the initiator fails while it repeats a hello, the driver waits
 * for a lock that it holds itself. */
static mongoc_stream_t *open_stream(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
                                    void *context, bson_error_t *error) {
    int32_t timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, 10000);
    sl_streams *owner = context;
    sl_socket_failure failure = {.in_time = true};
    int socket = sl_silent_host_is_passed_over(uri, host->host_and_port, timeout_ms)
                     ? -1
                     : sl_socket_connect(host, timeout_ms, &failure);
    if (socket >= 0)
        sl_socket_keep_alive(socket);
    else if (!failure.in_time)
        sl_silent_host_add(host->host_and_port);
    patient_stream *made = make_stream(owner, host, socket);
    made->connect_ms = timeout_ms;
    mongoc_stream_t *stream = &made->vtable;
    if (socket >= 0 && mongoc_uri_get_tls(uri))
        stream = wrap_in_tls(stream, uri, host->host, timeout_ms, error);
    if (!stream) {
        made = make_stream(owner, host, -1);
        stream = &made->vtable;
    }
    made->outermost = sl_checked_stream_new(stream, host->host_and_port);
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
        bson_free(streams);
    }
    pthread_mutex_destroy(&patience->lock);
}

void sl_patience_attach(sl_patience *patience, mongoc_client_t *client) {
    sl_streams *streams = bson_malloc0(sizeof *streams);
    pthread_mutex_lock(&patience->lock);
    *streams = (sl_streams){patience->clients, client, patience, NULL};
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

mongoc_stream_t *sl_streams_find(const sl_streams *streams, const char *host_and_port) {
    patient_stream *stream = find(streams, host_and_port);
    return stream ? stream->outermost : NULL;
}

void sl_streams_shut_down(const sl_streams *streams, const char *host_and_port) {
    patient_stream *stream = find(streams, host_and_port);
    if (stream && stream->socket >= 0)
        shutdown(stream->socket, SHUT_RDWR);
}
