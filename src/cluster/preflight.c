/* SPDX-License-Identifier: Apache-2.0 */
/* Preflight: one hello to the servers of the URI, by hand, before the driver begins.
 *
 * Some mistakes a server will never get over by being asked again: a certificate of another
 * authority, plain text where it wants TLS. The driver takes them for a server that is not there,
 * tries until its time is up, and then says that none was suitable. Here they are told from one
 * another. Whatever is not such a mistake (nobody listens, no answer in time) is left to the
 * driver, and so is everything when one of the servers is fine.
 *
 * Nothing secret is sent: a hello, without a user. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

#include "internal.h"
#include "tls.h"

#define CONNECT_MS 1000
#define ANSWER_SECONDS 3
#define HEADER_BYTES 16 /* of a wire message */

typedef enum answer {
    ANSWERS, /* a hello came back */
    CLOSED,  /* it closed the connection without a word */
    SILENT,  /* nobody there, or no word in time: nothing is known */
} answer;

/* Connects within a second, and lets later reads and writes wait for three. -1 when nobody is
 * there. */
static int connect_to(const mongoc_host_list_t *host) {
    char port[8];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int connected = -1;
    snprintf(port, sizeof port, "%u", host->port);
    if (strchr(host->host, '/') || getaddrinfo(host->host, port, &hints, &found) != 0)
        return -1; /* a socket file has no TLS */
    for (const struct addrinfo *one = found; one && connected < 0; one = one->ai_next) {
        int error = 0;
        socklen_t length = sizeof error;
        int file = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct pollfd ready = {.fd = file, .events = POLLOUT};
        if (file < 0)
            continue;
        bool ok = connect(file, one->ai_addr, one->ai_addrlen) == 0 ||
                  (errno == EINPROGRESS && poll(&ready, 1, CONNECT_MS) == 1 &&
                   getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
        const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
        ok = ok && fcntl(file, F_SETFL, 0) == 0 && /* blocking, from here on */
             setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
             setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
        if (ok)
            connected = file;
        else
            close(file);
    }
    freeaddrinfo(found);
    return connected;
}

/* An OP_MSG with {hello: 1, $db: "admin"}. Returns its length. */
static size_t make_hello(uint8_t out[128]) {
    const uint8_t operation[] = {0xDD, 0x07, 0, 0}; /* 2013 */
    bson_t *hello = BCON_NEW("hello", BCON_INT32(1), "$db", "admin");
    size_t length = HEADER_BYTES + 5 + hello->len;
    memset(out, 0, 128);
    out[0] = (uint8_t)length;
    out[4] = 1; /* the request's number */
    memcpy(out + 12, operation, sizeof operation);
    memcpy(out + HEADER_BYTES + 5, bson_get_data(hello), hello->len); /* flags 0, a body */
    bson_destroy(hello);
    return length;
}

static answer plain_hello(const mongoc_host_list_t *host) {
    uint8_t message[128], reply[HEADER_BYTES];
    int file = connect_to(host);
    if (file < 0)
        return SILENT;
    size_t length = make_hello(message);
    answer result = CLOSED;
    if (send(file, message, length, MSG_NOSIGNAL) == (ssize_t)length) {
        ssize_t got = recv(file, reply, sizeof reply, 0);
        if (got > 0)
            result = ANSWERS;
        else if (got < 0 && errno != ECONNRESET)
            result = SILENT;
    }
    close(file);
    return result;
}

/* TLS sessions write without MSG_NOSIGNAL: runs `function` with SIGPIPE held back. */
static bool without_pipe_signal(bool (*function)(void *context), void *context) {
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    bool result = function(context);
    if (!sigismember(&before, SIGPIPE))
        sigtimedwait(&pipe_signal, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static bool is_address(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

typedef struct trial {
    const mongoc_uri_t *uri; /* NULL: is there TLS at all? */
    const mongoc_host_list_t *host;
    SSL_CTX *context;
    bool silent; /* result: nothing is known */
    sl_error *error;
} trial;

/* The handshake was cut short by an alert, or the connection closed after it: with TLS 1.3, and by
 * mongod always, the client's certificate is judged when the handshake is already over. */
static bool told_off(const mongoc_uri_t *uri, bool after, unsigned long reason, sl_error *error) {
    bool shown = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL);
    bool alert =
        ERR_GET_LIB(reason) == ERR_LIB_SSL && ERR_GET_REASON(reason) > SSL_AD_REASON_OFFSET;
    if (!after && !alert)
        return false;
    sl_error_set(error, SL_EXIT_CLUSTER, "the server ends the connection%s%s%s; %s",
                 alert ? " (" : "", alert ? ERR_reason_error_string(reason) : "", alert ? ")" : "",
                 shown
                     ? "it seems not to accept the client certificate: signed by an authority that "
                       "it does not trust, out of date, or revoked?"
                     : "it seems to want a client certificate: name one with "
                       "--tlsCertificateKeyFile");
    return true;
}

/* True when the server is fine, or nothing is known. */
static bool try_tls(void *context) {
    trial *t = context;
    uint8_t message[128], reply[HEADER_BYTES];
    bool ok = true;
    int file = connect_to(t->host);
    SSL *tls = file < 0 ? NULL : SSL_new(t->context);
    t->silent = true;
    ERR_clear_error();
    if (!tls || SSL_set_fd(tls, file) != 1)
        goto done;
    if (!is_address(t->host->host))
        SSL_set_tlsext_host_name(tls, t->host->host);
    bool shaken = SSL_connect(tls) == 1;
    unsigned long reason = ERR_peek_last_error();
    if (!t->uri) {
        t->silent = !shaken;
        goto done;
    }
    if (shaken && !sl_tls_check_peer(tls, t->uri, t->host->host, t->error)) {
        ok = t->silent = false;
        goto done;
    }
    bool closed = false;
    if (shaken) {
        int length = (int)make_hello(message);
        int result = SSL_write(tls, message, length);
        if (result == length)
            result = SSL_read(tls, reply, sizeof reply);
        if (result > 0) {
            t->silent = false;
            goto done;
        }
        closed = SSL_get_error(tls, result) != SSL_ERROR_WANT_READ; /* that is, time was up */
        reason = ERR_peek_last_error();
    }
    if (told_off(t->uri, closed, reason, t->error))
        ok = t->silent = false;
done:
    ERR_clear_error();
    SSL_free(tls);
    if (file >= 0)
        close(file);
    return ok;
}

/* Is there TLS where the URI says nothing of it? */
static bool speaks_tls(const mongoc_host_list_t *host) {
    trial t = {.host = host, .context = sl_tls_bare_context()};
    bool there = t.context && without_pipe_signal(try_tls, &t) && !t.silent;
    SSL_CTX_free(t.context);
    return there;
}

/* One server. False with the error set when it is a mistake that will stay one; `*fine` when it
 * answered as it should. */
static bool check_host(const mongoc_uri_t *uri, const mongoc_host_list_t *host, SSL_CTX *context,
                       bool *fine, sl_error *error) {
    if (!context) {
        answer plain = plain_hello(host);
        *fine = plain == ANSWERS;
        return plain != CLOSED || !speaks_tls(host) ||
               sl_error_set(error, SL_EXIT_CLUSTER,
                            "the server wants TLS; give --tls, and --tlsCAFile if its certificate "
                            "is signed by an authority of your own");
    }
    trial t = {.uri = uri, .host = host, .context = context, .error = error};
    if (!without_pipe_signal(try_tls, &t))
        return false;
    *fine = !t.silent;
    return !t.silent || plain_hello(host) != ANSWERS ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "the server does not speak TLS here; leave --tls out, or see its net.tls "
                        "settings");
}

bool sl_preflight(const mongoc_uri_t *uri, sl_error *error) {
    SSL_CTX *context = NULL;
    if (mongoc_uri_get_tls(uri) && !sl_tls_context(uri, &context, error))
        return false;
    bool fine = false;
    sl_error first = {0};
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri); host && !fine;
         host = host->next) {
        sl_error found = {0};
        if (!check_host(uri, host, context, &fine, &found) && !first.code) {
            first = found;
            sl_error_prefix(&first, "%s", host->host_and_port);
        }
    }
    SSL_CTX_free(context);
    if (fine || !first.code)
        return true;
    *error = first;
    return false;
}

bool sl_server_answers(const mongoc_uri_t *uri, const mongoc_host_list_t *host) {
    if (strchr(host->host, '/'))
        return true;
    return mongoc_uri_get_tls(uri) ? speaks_tls(host) : plain_hello(host) != SILENT;
}
