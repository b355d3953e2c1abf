/* SPDX-License-Identifier: Apache-2.0 */
/* Patient streams wait for a reply as long as the server is alive.
 *
 * An index build or a query may take hours, so the reply has no deadline. But a server that
 * hangs keeps its connections open and never replies. So a stream that waits sends a hello on
 * another connection every few seconds. When the server has answered none of them for the time in
 * sl_patience, the stream fails with a timeout.
 *
 * The stream initiator replaces the innermost of the driver's streams: this one uses the driver's
 * socket, but waits in slices. The TLS stream and the buffered stream around it are the driver's. A
 * connection that is lost while its server is alive (a router was restarted) is detected by the
 * keep-alive that the driver sets on its sockets. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "internal.h"

#define STREAM_TYPE 101 /* not a type of the driver */
#define CHECK_MS 5000   /* interval of the hello on another connection */
#define BUFFER_BYTES 1024

typedef struct patient_stream {
    mongoc_stream_t vtable; /* first, so that a pointer to it is one to this */
    mongoc_socket_t *socket;
    const sl_patience *patience;
    mongoc_host_list_t host;
    bool timed_out;
} patient_stream;

static int64_t expiry_of(int32_t timeout_ms) {
    return timeout_ms < 0    ? INT64_MAX
           : timeout_ms == 0 ? 0
                             : bson_get_monotonic_time() + (int64_t)timeout_ms * 1000;
}

/* ---- the driver's operations ---- */

static void on_destroy(mongoc_stream_t *stream) {
    patient_stream *self = (patient_stream *)stream;
    mongoc_socket_destroy(self->socket);
    bson_free(self);
}

static int on_close(mongoc_stream_t *stream) {
    return mongoc_socket_close(((patient_stream *)stream)->socket);
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
    return mongoc_socket_setsockopt(((patient_stream *)stream)->socket, level, option, value,
                                    length);
}

static bool on_check_closed(mongoc_stream_t *stream) {
    return mongoc_socket_check_closed(((patient_stream *)stream)->socket);
}

static bool on_timed_out(mongoc_stream_t *stream) {
    return ((patient_stream *)stream)->timed_out;
}

static ssize_t on_poll(mongoc_stream_poll_t *streams, size_t count, int32_t timeout_ms) {
    mongoc_socket_poll_t *sockets = calloc(count, sizeof *sockets);
    if (!sockets) {
        errno = ENOMEM;
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        sockets[i] = (mongoc_socket_poll_t){.socket = ((patient_stream *)streams[i].stream)->socket,
                                            .events = streams[i].events};
    ssize_t ready = mongoc_socket_poll(sockets, count, timeout_ms);
    for (size_t i = 0; ready > 0 && i < count; i++)
        streams[i].revents = sockets[i].revents;
    free(sockets);
    return ready;
}

/* Requests are small: a server that does not receive one within the patience hangs. */
static ssize_t on_writev(mongoc_stream_t *stream, mongoc_iovec_t *parts, size_t count,
                         int32_t timeout_ms) {
    patient_stream *self = (patient_stream *)stream;
    int64_t expiry = expiry_of(timeout_ms), own = expiry_of((int32_t)self->patience->milliseconds);
    ssize_t sent = mongoc_socket_sendv(self->socket, parts, count, own < expiry ? own : expiry);
    errno = mongoc_socket_errno(self->socket);
    return sent;
}

static bool is_timeout(int code) {
    return code == ETIMEDOUT || code == EAGAIN || code == EWOULDBLOCK;
}

/* Waits for bytes until `expiry`, or until the server is not alive. */
static ssize_t receive(patient_stream *self, mongoc_iovec_t *into, int64_t expiry) {
    int64_t alive = bson_get_monotonic_time(); /* when the server was last known to be alive */
    for (;;) {
        int64_t now = bson_get_monotonic_time();
        int64_t give_up = alive + (int64_t)self->patience->milliseconds * 1000;
        int64_t check = now + (int64_t)CHECK_MS * 1000;
        if (check > give_up)
            check = give_up;
        ssize_t got = mongoc_socket_recv(self->socket, into->iov_base, into->iov_len, 0,
                                         check < expiry ? check : expiry);
        int code = mongoc_socket_errno(self->socket);
        now = bson_get_monotonic_time();
        if (got >= 0 || !is_timeout(code) || now >= expiry) {
            self->timed_out = got < 0 && is_timeout(code);
            errno = code;
            return got;
        }
        if (sl_server_answers(self->patience->uri, &self->host)) {
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

static mongoc_socket_t *connect_to_file(const mongoc_host_list_t *host, int64_t expiry) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(host->host);
    mongoc_socket_t *made =
        length < sizeof address.sun_path ? mongoc_socket_new(AF_UNIX, SOCK_STREAM, 0) : NULL;
    if (!made)
        return NULL;
    memcpy(address.sun_path, host->host, length);
    if (mongoc_socket_connect(made, (struct sockaddr *)&address, sizeof address, expiry) == 0)
        return made;
    mongoc_socket_destroy(made);
    return NULL;
}

static mongoc_socket_t *connect_to(const mongoc_host_list_t *host, int64_t expiry) {
    char port[8];
    struct addrinfo hints = {.ai_family = host->family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    mongoc_socket_t *connected = NULL;
    if (host->family == AF_UNIX)
        return connect_to_file(host, expiry);
    snprintf(port, sizeof port, "%u", host->port);
    if (getaddrinfo(host->host, port, &hints, &found) != 0)
        return NULL;
    for (const struct addrinfo *one = found; one && !connected; one = one->ai_next) {
        mongoc_socket_t *made =
            mongoc_socket_new(one->ai_family, one->ai_socktype, one->ai_protocol);
        if (made && mongoc_socket_connect(made, one->ai_addr, (mongoc_socklen_t)one->ai_addrlen,
                                          expiry) == 0)
            connected = made;
        else
            mongoc_socket_destroy(made);
    }
    freeaddrinfo(found);
    return connected;
}

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

static mongoc_stream_t *open_stream(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
                                    void *context, bson_error_t *error) {
    int32_t timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, 10000);
    mongoc_socket_t *socket = connect_to(host, expiry_of(timeout_ms));
    if (!socket) {
        bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT,
                       "Failed to connect to: %s", host->host_and_port);
        return NULL;
    }
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
                                        .timed_out = on_timed_out},
                             .socket = socket,
                             .patience = context,
                             .host = *host};
    made->host.next = NULL;
    mongoc_stream_t *stream = &made->vtable;
    if (mongoc_uri_get_tls(uri))
        stream = wrap_in_tls(stream, uri, host->host, timeout_ms, error);
    return stream ? mongoc_stream_buffered_new(stream, BUFFER_BYTES) : NULL;
}

void sl_patience_attach(const sl_patience *patience, mongoc_client_t *client) {
    mongoc_client_set_stream_initiator(client, open_stream, (void *)(uintptr_t)patience);
}
