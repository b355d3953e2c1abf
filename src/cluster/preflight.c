/* SPDX-License-Identifier: Apache-2.0 */
/* Preflight: sends a hello to the servers of the URI without the driver, before the driver
 * connects.
 *
 * Some connection errors are permanent: a certificate of an untrusted authority, or plain text to a
 * server that requires TLS. The driver treats them like an unreachable server: it retries until its
 * timeout and then reports that no server was suitable. The preflight finds their cause at once. It
 * also finds hosts that do not exist, and hosts without a server. It ends when one of the servers
 * has answered. Then the driver connects.
 *
 * The hello contains no user and no secret. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

#include "util/clock.h"

#include "internal.h"
#include "tls.h"

#define CONNECT_MS 1000
#define ANSWER_MS 3000
#define TLS_MS 9000     /* for the handshake and the reply together */
#define HEADER_BYTES 16 /* of a wire message */

typedef enum answer {
    ANSWERS, /* it replied to the hello */
    CLOSED,  /* it closed the connection without a reply */
    FOREIGN, /* its reply is not that of a MongoDB server */
    ABSENT,  /* it cannot be connected to */
    SILENT,  /* no connection or no reply in time */
} answer;

/* Connects within CONNECT_MS, and sets ANSWER_MS as the timeout of reads and writes. Returns the
 * socket, or -1 if the host does not accept the connection. */
static int connect_to(const mongoc_host_list_t *host, sl_socket_failure *failure) {
    int file = sl_socket_connect(host, CONNECT_MS, failure);
    if (file < 0 || (sl_socket_set_timeout(file, SO_RCVTIMEO, ANSWER_MS) &&
                     sl_socket_set_timeout(file, SO_SNDTIMEO, ANSWER_MS)))
        return file;
    close(file);
    return -1;
}

/* An OP_MSG with {hello: 1, $db: "admin"}. Returns its length. */
static size_t make_hello(uint8_t out[128]) {
    const uint8_t operation[] = {0xDD, 0x07, 0, 0}; /* 2013 */
    bson_t *hello = BCON_NEW("hello", BCON_INT32(1), "$db", "admin");
    size_t length = HEADER_BYTES + 5 + hello->len;
    memset(out, 0, 128);
    out[0] = (uint8_t)length;
    out[4] = 1; /* number of the request */
    memcpy(out + 12, operation, sizeof operation);
    memcpy(out + HEADER_BYTES + 5, bson_get_data(hello), hello->len); /* flags 0, a body */
    bson_destroy(hello);
    return length;
}

/* A reply begins with a header whose last field is OP_MSG, or OP_REPLY. An HTTP server sends
 * text. */
static bool is_foreign(const uint8_t reply[HEADER_BYTES], ssize_t length) {
    unsigned operation = reply[12] | (unsigned)reply[13] << 8;
    return length == HEADER_BYTES && operation != 2013 && operation != 1;
}

static answer plain_hello(const mongoc_host_list_t *host, sl_socket_failure *failure) {
    uint8_t message[128], reply[HEADER_BYTES];
    int file = connect_to(host, failure);
    if (file < 0)
        return failure->in_time ? ABSENT : SILENT;
    size_t length = make_hello(message);
    answer result = CLOSED;
    if (send(file, message, length, MSG_NOSIGNAL) == (ssize_t)length) {
        ssize_t got = recv(file, reply, sizeof reply, MSG_WAITALL);
        if (got > 0)
            result = is_foreign(reply, got) ? FOREIGN : ANSWERS;
        else if (got < 0 && errno != ECONNRESET)
            result = SILENT;
    }
    close(file);
    snprintf(failure->why, sizeof failure->why, "%s",
             result == CLOSED ? "it ends the connection without a reply (is it a MongoDB server, "
                                "and has it reached its limit of connections?)"
             : result == FOREIGN ? "the program that answers there is not a MongoDB server"
                                 : "it does not answer");
    return result;
}

/* Runs `function` with SIGPIPE blocked: OpenSSL writes without MSG_NOSIGNAL. */
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

/* A BIO_callback_fn_ex whose argument is a time by sl_clock_ns: after it, reads fail as if nothing
 * had arrived. The timeout of the socket is that of one read, which a server can satisfy with one
 * byte. */
static long stop_reading(BIO *bio, int operation, const char *bytes, size_t length, int argi,
                         long argl, int result, size_t *processed) {
    const int64_t *end = (const int64_t *)(const void *)BIO_get_callback_arg(bio);
    (void)bytes, (void)length, (void)argi, (void)argl, (void)processed;
    if (operation != BIO_CB_READ || sl_clock_ns() < *end)
        return result;
    BIO_set_retry_read(bio);
    return -1;
}

typedef struct trial {
    const mongoc_uri_t *uri; /* NULL: only test whether the server speaks TLS */
    const mongoc_host_list_t *host;
    SSL_CTX *context;
    bool silent; /* result: the server did not complete the test, for an unknown reason */
    sl_socket_failure failure; /* if silent */
    sl_error *error;
} trial;

/* Sets the error when the server refused the client's certificate, or the lack of one: it ended the
 * handshake with an alert, or closed the connection after it (`closed`). With TLS 1.3, and always
 * in mongod, the client's certificate is checked only after the handshake. Returns whether the
 * server refused it. */
static bool certificate_refused(const mongoc_uri_t *uri, bool closed, unsigned long reason,
                                sl_error *error) {
    bool sent = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL);
    bool alert =
        ERR_GET_LIB(reason) == ERR_LIB_SSL && ERR_GET_REASON(reason) > SSL_AD_REASON_OFFSET;
    if (!closed && !alert)
        return false;
    sl_error_set(error, SL_EXIT_CLUSTER, "the server ends the connection%s%s%s; %s",
                 alert ? " (" : "", alert ? ERR_reason_error_string(reason) : "", alert ? ")" : "",
                 sent
                     ? "it seems not to accept the client certificate: signed by an authority that "
                       "it does not trust, expired, or revoked?"
                     : "it seems to require a client certificate: name one with "
                       "--tlsCertificateKeyFile");
    return true;
}

/* False with the error set when the server refuses the connection for a permanent reason. */
static bool try_tls(void *context) {
    trial *t = context;
    uint8_t message[128], reply[HEADER_BYTES];
    bool ok = true;
    int file = connect_to(t->host, &t->failure);
    int64_t end = sl_clock_ns() + INT64_C(1000000) * TLS_MS;
    SSL *tls = file < 0 ? NULL : SSL_new(t->context);
    t->silent = true;
    if (file >= 0)
        t->failure = (sl_socket_failure){false, "it does not answer"};
    ERR_clear_error();
    if (!tls || SSL_set_fd(tls, file) != 1)
        goto done;
    BIO_set_callback_ex(SSL_get_rbio(tls), stop_reading);
    BIO_set_callback_arg(SSL_get_rbio(tls), (char *)&end);
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
        closed = SSL_get_error(tls, result) != SSL_ERROR_WANT_READ; /* that is, the time was over */
        reason = ERR_peek_last_error();
    }
    if (certificate_refused(t->uri, closed, reason, t->error))
        ok = t->silent = false;
done:
    ERR_clear_error();
    SSL_free(tls);
    if (file >= 0)
        close(file);
    return ok;
}

/* Does the server accept a TLS handshake, without checks of certificates? */
static bool speaks_tls(const mongoc_host_list_t *host) {
    trial t = {.host = host, .context = sl_tls_bare_context()};
    bool result = t.context && without_pipe_signal(try_tls, &t) && !t.silent;
    SSL_CTX_free(t.context);
    return result;
}

/* Checks one server. False with the error set when the connection can never succeed. Otherwise
 * `*result` is ANSWERS, or `failure` has the reason why not. */
static bool check_host(const mongoc_uri_t *uri, const mongoc_host_list_t *host, SSL_CTX *context,
                       answer *result, sl_socket_failure *failure, sl_error *error) {
    if (!context || strchr(host->host, '/')) { /* a Unix socket is used without TLS */
        *result = plain_hello(host, failure);
        return *result != CLOSED || !speaks_tls(host) ||
               sl_error_set(error, SL_EXIT_CLUSTER,
                            "the server requires TLS; give --tls, and --tlsCAFile if its "
                            "certificate is signed by a private authority");
    }
    trial t = {.uri = uri, .host = host, .context = context, .error = error};
    sl_socket_failure unused;
    if (!without_pipe_signal(try_tls, &t))
        return false;
    *failure = t.failure;
    *result = !t.silent ? ANSWERS : failure->in_time ? ABSENT : SILENT;
    return *result != SILENT || plain_hello(host, &unused) != ANSWERS ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "the server does not use TLS on this port; leave --tls out, or see its "
                        "net.tls settings");
}

bool sl_preflight(const mongoc_uri_t *uri, void (*asking)(void *context, const char *host),
                  void *context, sl_reach *reach, sl_error *error) {
    SSL_CTX *tls = NULL;
    const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
    *reach = (sl_reach){.answers = !host};
    if (mongoc_uri_get_tls(uri) && !sl_tls_context(uri, &tls, error))
        return false;
    sl_error first = {0};
    size_t used = 0;
    for (; host && !reach->answers; host = host->next) {
        sl_error found = {0};
        answer result;
        sl_socket_failure failure = {0};
        if (asking)
            asking(context, host->host_and_port);
        if (!check_host(uri, host, tls, &result, &failure, &found)) {
            if (!first.code) {
                first = found;
                sl_error_prefix(&first, "%s", host->host_and_port);
            }
            continue;
        }
        reach->answers = result == ANSWERS;
        reach->silent = reach->silent || result == SILENT || result == CLOSED;
        used += sl_print_text(reach->why + used, sizeof reach->why - used, "%s%s: %s",
                              used ? "; " : "", host->host_and_port, failure.why);
    }
    SSL_CTX_free(tls);
    if (reach->answers || !first.code)
        return true;
    *error = first;
    return false;
}

bool sl_server_answers(const mongoc_uri_t *uri, const mongoc_host_list_t *host) {
    sl_socket_failure failure;
    answer plain;
    if (strchr(host->host, '/'))
        return true;
    if (mongoc_uri_get_tls(uri))
        return speaks_tls(host);
    plain = plain_hello(host, &failure);
    return plain != SILENT && plain != ABSENT;
}
