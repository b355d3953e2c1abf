/* SPDX-License-Identifier: Apache-2.0 */
/* The connection string: --uri, completed by the options about users, TLS and compression. Both
 * programs take these options, under the names that MongoDB's own tools use. */
#ifndef SHARDLOAD_CLI_CONNECTION_STRING_H
#define SHARDLOAD_CLI_CONNECTION_STRING_H

#include "options.h"

/* Rows of an option table, for the commands that connect. */
/* clang-format off */
#define SL_CONNECTION_ROWS(mask)                                                                   \
    {.name = "username", SL_ROW_COMMON, .letter = 'u', SL_ROW_TEXT("NAME"), SL_ROW_OF(mask, "Connection", NONE),  \
     .help = "User name. This option and those below override the settings in --uri."},            \
    {.name = "password", SL_ROW_COMMON, .letter = 'p', SL_ROW_TEXT("PASSWORD"), SL_ROW_OF(mask, "Connection", NONE),\
     .help = "Password. Without this option the program prompts for it on the terminal, which is " \
             "safer: other users may see a password on the command line before the program "       \
             "overwrites it.",                                                                     \
     .secret = SL_SECRET},                                                                         \
    {.name = "password-file", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(mask, "Connection", NONE),      \
     .help = "Read the password from the first line of this file."},                               \
    {.name = "authenticationDatabase", SL_ROW_TEXT("NAME"), SL_ROW_OF(mask, "Connection", NONE),   \
     .help = "Database in which the user was created. Without this option, the database of "       \
             "--uri, or admin."},                                                                  \
    {.name = "authenticationMechanism",                                                            \
     SL_ROW_CHOICE("NAME", "SCRAM-SHA-1|SCRAM-SHA-256|MONGODB-X509"),                              \
     SL_ROW_OF(mask, "Connection", NONE),                                                          \
     .help = "How the user is authenticated: by password (SCRAM-SHA-1, SCRAM-SHA-256) or by "      \
             "client certificate (MONGODB-X509). Without this option, the SCRAM mechanism that "   \
             "the server prefers."},                                                               \
    {.name = "tls", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(mask, "Connection", NONE),                              \
     .help = "Encrypt all connections. The tls... options below imply it."},                       \
    {.name = "tlsCAFile", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(mask, "Connection", NONE),          \
     .help = "PEM file of the certificate authorities to trust, instead of those of this "         \
             "machine."},                                                                          \
    {.name = "tlsCertificateKeyFile", SL_ROW_FILE("FILE", READ), SL_ROW_OF(mask, "Connection", NONE),\
     .help = "PEM file with the client's certificate and its key."},                               \
    {.name = "tlsCertificateKeyFilePassword", SL_ROW_TEXT("PASSWORD"),                             \
     SL_ROW_OF(mask, "Connection", NONE),                                                          \
     .help = "Password of the key in --tlsCertificateKeyFile. If it is empty, the program "        \
             "prompts for it.",                                                                    \
     .secret = SL_SECRET},                                                                         \
    {.name = "tlsAllowInvalidHostnames", SL_ROW_FLAG, SL_ROW_OF(mask, "Connection", NONE),         \
     .help = "Accept a server certificate issued for another host name, as through a tunnel. "     \
             "Then anyone with a certificate of a trusted authority can impersonate the server."}, \
    {.name = "plain-without-tls", SL_ROW_FLAG, SL_ROW_OF(mask, "Connection", NONE),                \
     .help = "Allow authMechanism=PLAIN in --uri without TLS, which sends the password over the "  \
             "network unencrypted."},                                                              \
    {.name = "wait", SL_ROW_TIME, .fallback = "0s", SL_ROW_OF(mask, "Connection", NONE),           \
     .help = "How long to try again if no server can be reached, such as 90s or 10m, for servers " \
             "that are still starting. Without this option, a host that does not exist or does "   \
             "not listen is an error at once, and a server that does not answer is an error "      \
             "after a few seconds."},                                                              \
    {.name = "wire-compression", SL_ROW_CHOICE("NAME", SL_COMPRESSORS),                            \
     SL_ROW_OF(mask, "Connection", NONE),                                                          \
     .help = "Compress network traffic, if the server allows it; worthwhile on a slow network. "   \
             "Without this option, compressors= in --uri applies. Give only one of the two."}
/* clang-format on */

/* Builds the connection string for the driver, with user and password; asks for a password that is
 * missing. Free it with sl_secret_free. False with the error set. */
bool sl_connection_string(const sl_options *options, char **uri, sl_error *error);

#endif
