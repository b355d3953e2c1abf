/* SPDX-License-Identifier: Apache-2.0 */
/* The project's own look at TLS, beside the driver's: certificates and keys read, a server tried.
 *
 * The driver encrypts every connection by itself. But where a handshake fails it knows little more
 * than that, and it tries for ten seconds; here the reason is found out, once, before it begins. */
#ifndef SHARDLOAD_CLUSTER_TLS_H
#define SHARDLOAD_CLUSTER_TLS_H

#include <mongoc/mongoc.h>
#include <openssl/ssl.h>

#include <shardload/error.h>

/* What the URI says of TLS: authorities to trust, a client certificate with its key, read and
 * checked against each other and the calendar. Free it with SSL_CTX_free. False with the error set:
 * SL_EXIT_USAGE where a file cannot be used, SL_EXIT_CLUSTER where a certificate is out of date. */
bool sl_tls_context(const mongoc_uri_t *uri, SSL_CTX **context, sl_error *error);

/* A context that verifies nothing and presents nothing: to see whether there is TLS at all. */
SSL_CTX *sl_tls_bare_context(void);

/* Is the server that a handshake has been made with who it should be? `host` is its name as in the
 * URI. What the URI allows to be wrong is not looked at. */
bool sl_tls_check_peer(SSL *tls, const mongoc_uri_t *uri, const char *host, sl_error *error);

/* The subject of the certificate in the file that the URI names, as the server writes it in the
 * name of a user ("CN=loader,O=clients"), into `out`; "" when there is none. */
void sl_tls_subject(const mongoc_uri_t *uri, char *out, size_t room);

#endif
