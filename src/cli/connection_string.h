/* SPDX-License-Identifier: Apache-2.0 */
/* The connection string: what --uri says, with what the options about users, TLS and compression add. Both
 * programs take these options, under the names that the vendor's tools give them. */
#ifndef SHARDLOAD_CLI_CONNECTION_STRING_H
#define SHARDLOAD_CLI_CONNECTION_STRING_H

#include <shardload/options.h>

/* Rows of a table of options, for the commands that connect. */
#define SL_CONNECTION_ROWS(mask)                                                                   \
    {.name = "username", .letter = 'u', .kind = SL_OPTION_STRING, .argument = "NAME",              \
     .commands = mask, .group = "Connection",                                                      \
     .help = "User. Wins, like the other options here, over what --uri says."},                    \
    {.name = "password", .letter = 'p', .kind = SL_OPTION_STRING, .argument = "PASSWORD",          \
     .commands = mask, .group = "Connection",                                                      \
     .help = "Password. Better leave it out: it is then asked for on the terminal. Other users "   \
             "may see it on a command line before it is wiped there.",                             \
     .secret = SL_SECRET},                                                                         \
    {.name = "password-file", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = mask,      \
     .group = "Connection",                                                                        \
     .help = "Take the password from the first line of this file."},                               \
    {.name = "authenticationDatabase", .kind = SL_OPTION_STRING, .argument = "NAME",               \
     .commands = mask, .group = "Connection",                                                      \
     .help = "Database that the user belongs to. Without it the one of --uri, or admin."},         \
    {.name = "authenticationMechanism", .kind = SL_OPTION_CHOICE, .argument = "NAME",              \
     .choices = "SCRAM-SHA-1|SCRAM-SHA-256|MONGODB-X509", .commands = mask,                        \
     .group = "Connection",                                                                        \
     .help = "How the user proves to be who it is: SCRAM-SHA-1, SCRAM-SHA-256, or MONGODB-X509 "   \
             "by its certificate. Without it, whichever SCRAM the server prefers."},               \
    {.name = "tls", .kind = SL_OPTION_FLAG, .commands = mask, .group = "Connection",               \
     .help = "Encrypt all connections. The options below imply it."},                              \
    {.name = "tlsCAFile", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = mask,          \
     .group = "Connection",                                                                        \
     .help = "Authorities to trust, in PEM, instead of those of this machine."},                   \
    {.name = "tlsCertificateKeyFile", .kind = SL_OPTION_STRING, .argument = "FILE",                \
     .commands = mask, .group = "Connection",                                                      \
     .help = "The client's certificate and its key, in one PEM file."},                            \
    {.name = "tlsCertificateKeyFilePassword", .kind = SL_OPTION_STRING, .argument = "PASSWORD",    \
     .commands = mask, .group = "Connection",                                                      \
     .help = "What that key is encrypted with; asked for when empty.",                             \
     .secret = SL_SECRET},                                                                         \
    {.name = "tlsAllowInvalidHostnames", .kind = SL_OPTION_FLAG, .commands = mask,                 \
     .group = "Connection",                                                                        \
     .help = "Accept a certificate made out to another name, as through a tunnel. Whoever has "    \
             "any certificate of a trusted authority can then pose as the server."},               \
    {.name = "plain-without-tls", .kind = SL_OPTION_FLAG, .commands = mask,                        \
     .group = "Connection",                                                                        \
     .help = "Allow authMechanism=PLAIN in --uri without TLS: the password then crosses the "      \
             "network unencrypted."},                                                              \
    {.name = "wire-compression", .kind = SL_OPTION_CHOICE, .argument = "NAME",                     \
     .choices = "none|snappy|zlib|zstd", .commands = mask, .group = "Connection",                  \
     .help = "Compress what goes over the network, where the server allows it: worth it when the " \
             "network is slow. Without it, what compressors= in --uri says; the two are not "      \
             "taken together."}

/* Makes the connection string that the driver takes, with user and password in it, asking for
 * what is missing. Free it with sl_secret_free. False with the error set. */
bool sl_connection_string(const sl_options *options, char **uri, sl_error *error);

#endif
