/* SPDX-License-Identifier: Apache-2.0 */
/* The connection string: what --uri says, with what the options about users, TLS and compression add. Both
 * programs take these options, under the names that the vendor's tools give them. */
#ifndef SHARDLOAD_CLI_CONNECTION_STRING_H
#define SHARDLOAD_CLI_CONNECTION_STRING_H

#include <shardload/options.h>

/* Rows of a table of options, for the commands that connect. */
#define SL_CONNECTION_ROWS(commands)                                                               \
    {"username",                                                                                   \
     'u',                                                                                          \
     SL_OPTION_STRING,                                                                             \
     "NAME",                                                                                       \
     NULL,                                                                                         \
     NULL,                                                                                         \
     0,                                                                                            \
     0,                                                                                            \
     commands,                                                                                     \
     "Connection",                                                                                 \
     "User. Wins, like the other options here, over what --uri says.",                             \
     SL_OPEN,                                                                                      \
     NULL},                                                                                        \
        {"password",                                                                               \
         'p',                                                                                      \
         SL_OPTION_STRING,                                                                         \
         "PASSWORD",                                                                               \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Password. Better leave it out: it is then asked for on the terminal. Other users may "   \
         "see it "                                                                                 \
         "on a command line before it is wiped there.",                                            \
         SL_SECRET,                                                                                \
         NULL},                                                                                    \
        {"password-file",                                                                          \
         0,                                                                                        \
         SL_OPTION_STRING,                                                                         \
         "FILE",                                                                                   \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Take the password from the first line of this file.",                                    \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"authenticationDatabase",                                                                 \
         0,                                                                                        \
         SL_OPTION_STRING,                                                                         \
         "NAME",                                                                                   \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Database that the user belongs to. Without it the one of --uri, or admin.",              \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"authenticationMechanism",                                                                \
         0,                                                                                        \
         SL_OPTION_CHOICE,                                                                         \
         "NAME",                                                                                   \
         NULL,                                                                                     \
         "SCRAM-SHA-1|SCRAM-SHA-256|MONGODB-X509",                                                 \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "How the user proves to be who it is: SCRAM-SHA-1, SCRAM-SHA-256, or MONGODB-X509 by "    \
         "its "                                                                                    \
         "certificate. Without it, whichever SCRAM the server prefers.",                           \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"tls",                                                                                    \
         0,                                                                                        \
         SL_OPTION_FLAG,                                                                           \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Encrypt all connections. The options below imply it.",                                   \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"tlsCAFile",                                                                              \
         0,                                                                                        \
         SL_OPTION_STRING,                                                                         \
         "FILE",                                                                                   \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Authorities to trust, in PEM, instead of those of this machine.",                        \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"tlsCertificateKeyFile",                                                                  \
         0,                                                                                        \
         SL_OPTION_STRING,                                                                         \
         "FILE",                                                                                   \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "The client's certificate and its key, in one PEM file.",                                 \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"tlsCertificateKeyFilePassword",                                                          \
         0,                                                                                        \
         SL_OPTION_STRING,                                                                         \
         "PASSWORD",                                                                               \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "What that key is encrypted with; asked for when empty.",                                 \
         SL_SECRET,                                                                                \
         NULL},                                                                                    \
        {"tlsAllowInvalidHostnames",                                                               \
         0,                                                                                        \
         SL_OPTION_FLAG,                                                                           \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Accept a certificate made out to another name, as through a tunnel. Whoever has any "    \
         "certificate of a trusted authority can then pose as the server.",                        \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
        {"plain-without-tls",                                                                      \
         0,                                                                                        \
         SL_OPTION_FLAG,                                                                           \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         commands,                                                                                 \
         "Connection",                                                                             \
         "Allow authMechanism=PLAIN in --uri without TLS: the password then crosses the network "  \
         "unencrypted.",                                                                           \
         SL_OPEN,                                                                                  \
         NULL},                                                                                    \
    {                                                                                              \
        "wire-compression", 0, SL_OPTION_CHOICE, "NAME", NULL, "none|snappy|zlib|zstd", 0, 0,      \
            commands, "Connection",                                                                \
            "Compress what goes over the network, where the server allows it: worth it when the "  \
            "network "                                                                             \
            "is slow. Without it, what compressors= in --uri says; the two are not taken "         \
            "together.",                                                                           \
            SL_OPEN, NULL                                                                          \
    }

/* Makes the connection string that the driver takes, with user and password in it, asking for
 * what is missing. Free it with sl_secret_free. False with the error set. */
bool sl_connection_string(const sl_options *options, char **uri, sl_error *error);

#endif
