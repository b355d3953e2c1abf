/* SPDX-License-Identifier: Apache-2.0 */
/* The first hello to the hosts of a URI, without the driver: sockets, certificates, and why a
 * server cannot be used. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "util/clock.h"

#include "internal.h"

/* ---- sockets ---- */

/* Waits until the connection is made. Returns 0 or an errno. */
static int await_connection(int file, int milliseconds) {
    int error = 0;
    socklen_t size = sizeof error;
    struct pollfd ready = {.fd = file, .events = POLLOUT};
    int count = poll(&ready, 1, milliseconds);
    if (count == 0)
        return ETIMEDOUT;
    return count < 0 || getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* Connects to one address. Returns a blocking socket, or -1 with errno set. */
static int connect_to(const struct sockaddr *address, socklen_t length, int milliseconds) {
    int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return -1;
    int code = connect(file, address, length) == 0 ? 0 : errno;
    if (code == EINPROGRESS)
        code = await_connection(file, milliseconds);
    if (code == 0 && fcntl(file, F_SETFL, 0) == 0)
        return file;
    close(file);
    errno = code ? code : EBADF;
    return -1;
}

static int connect_to_path(const char *path, int milliseconds) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, length);
    return connect_to((struct sockaddr *)&address, sizeof address, milliseconds);
}

#define ADDRESS_MS 250 /* milliseconds that each of several addresses has at least */

/* Connects to the first address that accepts. All addresses together have this time, because DNS
 * can return thousands. */
static int connect_to_any(const struct addrinfo *addresses, int milliseconds) {
    const int64_t start = sl_clock_ns();
    int file = -1, count = 0, left = milliseconds;
    for (const struct addrinfo *one = addresses; one; one = one->ai_next)
        count++;
    for (const struct addrinfo *one = addresses; one && file < 0 && left > 0; one = one->ai_next) {
        int share = left / count--, least = left < ADDRESS_MS ? left : ADDRESS_MS;
        file = connect_to(one->ai_addr, one->ai_addrlen, share > least ? share : least);
        left = milliseconds - (int)((sl_clock_ns() - start) / 1000000);
    }
    return file;
}

/* Sets the reason why a connection failed. A missing reply may still arrive later; all other
 * reasons are final. */
static void explain(int code, int milliseconds, sl_socket_failure *failure) {
    *failure = (sl_socket_failure){.in_time = code != ETIMEDOUT};
    switch (code) {
    case ECONNREFUSED:
        snprintf(failure->why, sizeof failure->why, "no server listens there (connection refused)");
        return;
    case ENOENT:
        snprintf(failure->why, sizeof failure->why, "there is no such socket");
        return;
    case ETIMEDOUT:
        snprintf(failure->why, sizeof failure->why, "no connection within %g s",
                 (double)milliseconds / 1000);
        return;
    default:
        snprintf(failure->why, sizeof failure->why, "%s", strerror(code));
    }
}

static void explain_name(int code, sl_socket_failure *failure) {
    *failure = (sl_socket_failure){.in_time = true};
    if (code == EAI_NONAME)
        snprintf(failure->why, sizeof failure->why, "DNS knows no host of this name");
    else if (code == EAI_AGAIN)
        snprintf(failure->why, sizeof failure->why,
                 "the name cannot be resolved: DNS does not answer");
    else
        snprintf(failure->why, sizeof failure->why, "the name cannot be resolved: %s",
                 code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
}

/* Connects to the server of another connection: its name is not resolved again. */
static int connect_like(int connected, int milliseconds, sl_socket_failure *failure) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int file = -1;
    if (getpeername(connected, (struct sockaddr *)&address, &length) == 0)
        file = connect_to((struct sockaddr *)&address, length, milliseconds);
    if (file < 0)
        explain(errno, milliseconds, failure);
    return file;
}

int sl_socket_connect(const mongoc_host_list_t *host, int milliseconds,
                      sl_socket_failure *failure) {
    char port[8];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    sl_socket_failure unused;
    int file = -1;
    if (!failure)
        failure = &unused;
    if (strchr(host->host, '/')) {
        file = connect_to_path(host->host, milliseconds);
    } else {
        snprintf(port, sizeof port, "%u", host->port);
        int code = getaddrinfo(host->host, port, &hints, &found);
        if (code != 0) {
            explain_name(code, failure);
            return -1;
        }
        file = connect_to_any(found, milliseconds);
    }
    if (file < 0)
        explain(errno, milliseconds, failure);
    if (found)
        freeaddrinfo(found);
    return file;
}

bool sl_socket_set_timeout(int file, int option, int64_t milliseconds) {
    const struct timeval timeout = {.tv_sec = milliseconds / 1000,
                                    .tv_usec = milliseconds % 1000 * 1000};
    return setsockopt(file, SOL_SOCKET, option, &timeout, sizeof timeout) == 0;
}

void sl_socket_keep_alive(int file) {
    static const struct {
        int level, option, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 120},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                   {IPPROTO_TCP, TCP_KEEPCNT, 9},
                   {IPPROTO_TCP, TCP_NODELAY, 1}};
    /* Failures are ignored: on a Unix socket, setting a TCP option fails. */
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(file, options[i].level, options[i].option, &options[i].value,
                   sizeof options[i].value);
}

/* ---- certificates ---- */

/* Reads the client's certificate, checks the certificates of servers, and sets error messages that
 * name the option to change. */

#define DATE_ROOM 64

static const char *option(const mongoc_uri_t *uri, const char *name) {
    return mongoc_uri_get_option_as_utf8(uri, name, NULL);
}

static bool allowed(const mongoc_uri_t *uri, const char *name) {
    return mongoc_uri_get_option_as_bool(uri, name, false) ||
           mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSINSECURE, false);
}

/* "Jan  1 00:00:00 2002 GMT" into `out`. */
static const char *date_text(const ASN1_TIME *date, char out[DATE_ROOM]) {
    BIO *memory = BIO_new(BIO_s_mem());
    int length = 0;
    if (memory && ASN1_TIME_print(memory, date))
        length = BIO_read(memory, out, DATE_ROOM - 1);
    out[length > 0 ? length : 0] = '\0';
    BIO_free(memory);
    return out;
}

/* ---- the client's files ---- */

typedef struct key_password {
    const char *text; /* NULL for none */
    bool asked;
} key_password;

/* Without a callback OpenSSL would prompt on the terminal, once per connection. */
static int give_password(char *buffer, int size, int writing, void *context) {
    (void)writing;
    key_password *password = context;
    password->asked = true;
    size_t length = password->text ? strlen(password->text) : 0;
    if (length > (size_t)size)
        return 0;
    memcpy(buffer, password->text ? password->text : "", length);
    return (int)length;
}

static bool readable(const char *what, const char *path, sl_error *error) {
    return access(path, R_OK) == 0 || sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                                                   "%s %s: %s", what, path, strerror(errno));
}

static bool check_dates(SSL_CTX *context, const char *path, sl_error *error) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    char date[DATE_ROOM];
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the client certificate in %s expired on %s; get a new one", path,
                            date_text(X509_get0_notAfter(certificate), date));
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the client certificate in %s is not valid before %s; check the clock "
                            "of this machine",
                            path, date_text(X509_get0_notBefore(certificate), date));
    return true;
}

static bool use_certificate(SSL_CTX *context, const mongoc_uri_t *uri, const char *path,
                            sl_error *error) {
    static const char what[] = "tlsCertificateKeyFile";
    key_password password = {
        .text = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD),
    };
    if (!readable(what, path, error))
        return false;
    if (SSL_CTX_use_certificate_chain_file(context, path) != 1)
        return sl_error_set(error, SL_EXIT_USAGE, "%s %s: there is no certificate in it", what,
                            path);
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, &password);
    bool ok = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1;
    unsigned long reason = ERR_peek_last_error();
    SSL_CTX_set_default_passwd_cb(context, NULL);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (!ok && password.asked)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s %s: its key is encrypted, and %s; see "
                            "--tlsCertificateKeyFilePassword",
                            what, path,
                            password.text ? "the given password is wrong" : "no password is given");
    if (!ok && ERR_GET_REASON(reason) == X509_R_KEY_VALUES_MISMATCH)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s %s: the key in it does not belong to the certificate in it", what,
                            path);
    if (!ok)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s %s: there is no private key in it; certificate and key must both "
                            "be in this file, as PEM",
                            what, path);
    return check_dates(context, path, error);
}

/* A context without verification and without a client certificate: to test whether a server speaks
 * TLS. */
static SSL_CTX *tls_bare_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context) /* certificates are checked after the handshake */
        SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    return context;
}

/* Makes a context from the TLS options of the URI: trusted authorities, and a client certificate,
 * whose key and dates are checked. Free it with SSL_CTX_free. Errors: SL_EXIT_USAGE for a file that
 * cannot be used, SL_EXIT_CLUSTER for a certificate that has expired or is not valid yet. */
static bool tls_context(const mongoc_uri_t *uri, SSL_CTX **context, sl_error *error) {
    const char *authority = option(uri, MONGOC_URI_TLSCAFILE);
    const char *certificate = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE);
    ERR_clear_error();
    *context = tls_bare_context();
    if (!*context)
        return sl_error_memory(error, "starting TLS");
    bool ok = true;
    if (!authority)
        SSL_CTX_set_default_verify_paths(*context);
    else
        ok = readable("tlsCAFile", authority, error) &&
             (SSL_CTX_load_verify_locations(*context, authority, NULL) == 1 ||
              sl_error_set(error, SL_EXIT_USAGE, "tlsCAFile %s: there is no certificate in it",
                           authority));
    ok = ok && (!certificate || use_certificate(*context, uri, certificate, error));
    ERR_clear_error();
    if (!ok) {
        SSL_CTX_free(*context);
        *context = NULL;
    }
    return ok;
}

void sl_tls_subject(const mongoc_uri_t *uri, char *out, size_t room) {
    const char *path = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE);
    FILE *file = path ? fopen(path, "re") : NULL;
    X509 *certificate = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    BIO *memory = certificate ? BIO_new(BIO_s_mem()) : NULL;
    int length = 0;
    if (memory &&
        X509_NAME_print_ex(memory, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
        length = BIO_read(memory, out, (int)room - 1);
    out[length > 0 ? length : 0] = '\0';
    BIO_free(memory);
    X509_free(certificate);
    if (file)
        fclose(file);
    ERR_clear_error();
}

/* ---- the server's certificate ---- */

static bool is_address(const char *host) {
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* The names in a certificate: "localhost, 127.0.0.1". */
static void names_of(X509 *certificate, char *out, size_t room) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_IPADD && name->type != GEN_DNS)
            continue;
        const unsigned char *bytes = ASN1_STRING_get0_data(name->d.ia5);
        int length = ASN1_STRING_length(name->d.ia5);
        char address[64];
        if (name->type == GEN_IPADD && length == 4) {
            length = snprintf(address, sizeof address, "%d.%d.%d.%d", bytes[0], bytes[1], bytes[2],
                              bytes[3]);
            bytes = (unsigned char *)address;
        } else if (name->type != GEN_DNS) {
            continue;
        }
        if (used < room)
            used += (size_t)snprintf(out + used, room - used, "%s%.*s", used ? ", " : "", length,
                                     (const char *)bytes);
    }
    GENERAL_NAMES_free(names);
    if (!used && X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, out,
                                           (int)room) < 0)
        snprintf(out, room, "no name");
}

/* Checks the server's certificate after the handshake: its authority, dates and names. `host` is
 * its name in the URI. Skips the checks that the URI turns off. */
static bool tls_check_peer(SSL *tls, const mongoc_uri_t *uri, const char *host, sl_error *error) {
    X509 *certificate = SSL_get0_peer_certificate(tls);
    long result = SSL_get_verify_result(tls);
    char text[300];
    if (!certificate)
        return sl_error_set(error, SL_EXIT_CLUSTER, "the server sent no certificate");
    if (result != X509_V_OK && !allowed(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES)) {
        const char *authority = option(uri, MONGOC_URI_TLSCAFILE);
        switch (result) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return sl_error_set(
                error, SL_EXIT_CLUSTER,
                "the server's certificate expired on %s; the server needs a new one",
                date_text(X509_get0_notAfter(certificate), text));
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return sl_error_set(error, SL_EXIT_CLUSTER,
                                "the server's certificate is not signed by an authority in %s; "
                                "name the file of its authority with --tlsCAFile",
                                authority ? authority : "this machine's default list");
        default:
            return sl_error_set(error, SL_EXIT_CLUSTER,
                                "the server's certificate is not accepted: %s",
                                X509_verify_cert_error_string(result));
        }
    }
    /* An address must be among the alternative names of type IP address, as the driver requires. */
    if (allowed(uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES) ||
        allowed(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES) ||
        (is_address(host) ? X509_check_ip_asc(certificate, host, 0)
                          : X509_check_host(certificate, host, strlen(host), 0, NULL)) == 1)
        return true;
    names_of(certificate, text, sizeof text);
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the server's certificate is for %s, not for %s%s; connect by a name "
                        "in the certificate (or give --tlsAllowInvalidHostnames, if you connect "
                        "through your own tunnel)",
                        text, is_address(host) ? "the address " : "", host);
}

/* ---- the first hello ---- */

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

#define CONNECT_MS 1000
#define ANSWER_MS 3000
#define TLS_MS 9000 /* for the handshake and the reply together */

typedef enum answer {
    ANSWERS, /* it replied to the hello */
    CLOSED,  /* it closed the connection without a reply */
    FOREIGN, /* its reply is not that of a MongoDB server */
    ABSENT,  /* it cannot be connected to */
    SILENT,  /* no connection or no reply in time */
} answer;

/* Connects within CONNECT_MS, and sets ANSWER_MS as the timeout of reads and writes. `connected`:
 * a socket that is connected to the host; -1: there is none. Returns the socket, or -1 if the host
 * does not accept the connection. */
static int connect_to_ask(const mongoc_host_list_t *host, int connected,
                          sl_socket_failure *failure) {
    int file = connected < 0 ? sl_socket_connect(host, CONNECT_MS, failure)
                             : connect_like(connected, CONNECT_MS, failure);
    if (file < 0 || (sl_socket_set_timeout(file, SO_RCVTIMEO, ANSWER_MS) &&
                     sl_socket_set_timeout(file, SO_SNDTIMEO, ANSWER_MS)))
        return file;
    close(file);
    return -1;
}

/* An OP_MSG with {hello: 1, $db: "admin"}. Returns its length. */
static size_t make_hello(uint8_t out[128]) {
    bson_t *hello = BCON_NEW("hello", BCON_INT32(1), "$db", "admin");
    size_t length = SL_MESSAGE_HEADER + 5 + hello->len;
    memset(out, 0, 128);
    out[0] = (uint8_t)length;
    out[4] = 1; /* number of the request */
    out[12] = 2013 & 255;
    out[13] = 2013 >> 8;
    memcpy(out + SL_MESSAGE_HEADER + 5, bson_get_data(hello), hello->len); /* flags 0, a body */
    bson_destroy(hello);
    return length;
}

/* A reply begins with a header whose last field is OP_MSG, or OP_REPLY. An HTTP server sends text,
 * a server of TLS an alert, which is shorter. */
static bool is_foreign(const uint8_t reply[SL_MESSAGE_HEADER], ssize_t length) {
    unsigned operation = reply[12] | (unsigned)reply[13] << 8;
    return length < SL_MESSAGE_HEADER || (operation != 2013 && operation != 1);
}

static answer plain_hello(const mongoc_host_list_t *host, int connected,
                          sl_socket_failure *failure) {
    uint8_t message[128], reply[SL_MESSAGE_HEADER];
    int file = connect_to_ask(host, connected, failure);
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
    int connected; /* as for connect_to_ask */
    SSL_CTX *context;
    bool silent; /* result: the server did not complete the test, for an unknown reason */
    sl_socket_failure failure; /* if silent */
    sl_error *error;
} trial;

/* The number of an alert may be one that OpenSSL does not know. */
static const char *reason_text(unsigned long reason) {
    const char *text = ERR_reason_error_string(reason);
    return text ? text : "unknown reason";
}

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
                 alert ? " (" : "", alert ? reason_text(reason) : "", alert ? ")" : "",
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
    uint8_t message[128], reply[SL_MESSAGE_HEADER];
    bool ok = true;
    int file = connect_to_ask(t->host, t->connected, &t->failure);
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
    if (ERR_GET_LIB(reason) == ERR_LIB_SSL)
        snprintf(t->failure.why, sizeof t->failure.why, "the TLS handshake fails (%s)",
                 reason_text(reason));
    if (!t->uri) {
        t->silent = !shaken;
        goto done;
    }
    if (shaken && !tls_check_peer(tls, t->uri, t->host->host, t->error)) {
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
static bool speaks_tls(const mongoc_host_list_t *host, int connected) {
    trial t = {.host = host, .connected = connected, .context = tls_bare_context()};
    bool result = t.context && without_pipe_signal(try_tls, &t) && !t.silent;
    SSL_CTX_free(t.context);
    return result;
}

/* Checks one server. False with the error set when the connection can never succeed. Otherwise
 * `*result` is ANSWERS, or `failure` has the reason why not. */
static bool check_host(const mongoc_uri_t *uri, const mongoc_host_list_t *host, SSL_CTX *context,
                       answer *result, sl_socket_failure *failure, sl_error *error) {
    if (!context) {
        *result = plain_hello(host, -1, failure);
        return (*result != CLOSED && *result != FOREIGN) || !speaks_tls(host, -1) ||
               sl_error_set(error, SL_EXIT_CLUSTER,
                            "the server requires TLS; give --tls, and --tlsCAFile if its "
                            "certificate is signed by a private authority");
    }
    trial t = {.uri = uri, .host = host, .connected = -1, .context = context, .error = error};
    sl_socket_failure unused;
    if (!without_pipe_signal(try_tls, &t))
        return false;
    *failure = t.failure;
    *result = !t.silent ? ANSWERS : failure->in_time ? ABSENT : SILENT;
    return *result != SILENT || mongoc_uri_get_srv_hostname(uri) /* which stands for TLS */ ||
           plain_hello(host, -1, &unused) != ANSWERS ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "the server does not use TLS on this port; leave --tls out, or see its "
                        "net.tls settings");
}

bool sl_preflight(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
                  void (*asking)(void *context, const char *host), void *context, sl_reach *reach,
                  sl_error *error) {
    SSL_CTX *tls = NULL;
    *reach = (sl_reach){.answers = !host};
    if (mongoc_uri_get_tls(uri) && !tls_context(uri, &tls, error))
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

bool sl_server_answers(const mongoc_uri_t *uri, const mongoc_host_list_t *host, int connected) {
    sl_socket_failure failure = {0};
    answer plain;
    if (strchr(host->host, '/'))
        return true;
    if (mongoc_uri_get_tls(uri))
        return speaks_tls(host, connected);
    plain = plain_hello(host, connected, &failure);
    return plain != SILENT && plain != ABSENT;
}
