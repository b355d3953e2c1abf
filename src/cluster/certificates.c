/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the client's certificate, checks the certificates of servers, and sets error messages that
 * name the option to change. */
#include "tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

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

bool sl_tls_context(const mongoc_uri_t *uri, SSL_CTX **context, sl_error *error) {
    const char *authority = option(uri, MONGOC_URI_TLSCAFILE);
    const char *certificate = option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE);
    ERR_clear_error();
    *context = sl_tls_bare_context();
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

SSL_CTX *sl_tls_bare_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context) /* certificates are checked after the handshake */
        SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    return context;
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

static bool is_for_host(X509 *certificate, const char *host) {
    return X509_check_ip_asc(certificate, host, 0) == 1 ||
           X509_check_host(certificate, host, strlen(host), 0, NULL) == 1;
}

/* The names in a certificate: "localhost, 127.0.0.1". */
static void names_of(X509 *certificate, char *out, size_t room) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
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

bool sl_tls_check_peer(SSL *tls, const mongoc_uri_t *uri, const char *host, sl_error *error) {
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
    if (allowed(uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES) ||
        allowed(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES) || is_for_host(certificate, host))
        return true;
    names_of(certificate, text, sizeof text);
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the server's certificate is for %s, not for %s; connect by a name "
                        "in the certificate (or give --tlsAllowInvalidHostnames, if you connect "
                        "through your own tunnel)",
                        text, host);
}
