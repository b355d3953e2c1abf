/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: passwords read from the terminal or from a file, and protected against other
 * processes. */
#ifndef SHARDLOAD_CLI_SECRETS_H
#define SHARDLOAD_CLI_SECRETS_H

#include "util/error.h"
#include "util/text.h" /* sl_secret_free */

/* Longer passwords than this are refused. */
#define SL_SECRET_ROOM 1024

/* Asks for the password of `whose` on the controlling terminal (/dev/tty), without echo. False with
 * the error set when there is no terminal or nothing was typed. */
bool sl_secret_ask(const char *whose, char secret[SL_SECRET_ROOM], sl_error *error);

/* Reads the first line of the file given as --password-file. Warns when other users may read the
 * file. False with the error set when the line is empty, too long or contains a NUL byte. */
bool sl_secret_read_file(const char *path, char secret[SL_SECRET_ROOM], sl_error *error);

/* Warns when a file that contains a secret may be read by other users than its owner. */
void sl_secret_warn_of_readers(const char *path);

/* Disables core dumps of this process, and access to its memory and environment by other processes
 * of the same user. The programs call it at their start; the library leaves this to the program
 * that calls it. A program that the process starts is not affected. */
void sl_secret_guard_process(void);

#endif
