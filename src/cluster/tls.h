/* SPDX-License-Identifier: Apache-2.0 */
/* TLS checks in addition to the driver's: reads certificates and keys, and tests a server.
 *
 * The driver encrypts all connections. When a handshake fails, it retries for ten seconds and does
 * not report the cause; these checks find the cause once, before the driver connects. */
#ifndef SHARDLOAD_CLUSTER_TLS_H
#define SHARDLOAD_CLUSTER_TLS_H

#include <mongoc/mongoc.h>
#include <openssl/ssl.h>

#include "util/error.h"

/* Makes a context from the TLS options of the URI: trusted authorities, and a client certificate,
 * whose key and dates are checked. Free it with SSL_CTX_free. Errors: SL_EXIT_USAGE for a file that
 * cannot be used, SL_EXIT_CLUSTER for a certificate that has expired or is not valid yet. */
bool sl_tls_context(const mongoc_uri_t *uri, SSL_CTX **context, sl_error *error);

/* A context without verification and without a client certificate: to test whether a server speaks
 * TLS. */
SSL_CTX *sl_tls_bare_context(void);

/* Checks the server's certificate after the handshake: its authority, dates and names. `host` is
 * its name in the URI. Skips the checks that the URI turns off. */
bool sl_tls_check_peer(SSL *tls, const mongoc_uri_t *uri, const char *host, sl_error *error);

/* Writes the subject of the client certificate that the URI names, in the form of the server's user
 * names ("CN=loader,O=clients"); "" when there is none. */
void sl_tls_subject(const mongoc_uri_t *uri, char *out, size_t room);

#endif
