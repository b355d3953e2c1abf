/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: passwords asked for on the terminal or read from a file, and wiped when they are no
 * longer needed. */
#ifndef SHARDLOAD_CLI_SECRETS_H
#define SHARDLOAD_CLI_SECRETS_H

#include <shardload/error.h>
#include <shardload/text.h> /* sl_secret_free */

/* Longer passwords than this are refused. */
#define SL_SECRET_ROOM 1024

/* Asks for the password of `whose` on the terminal of the process, whatever its standard files are,
 * without showing what is typed. False with the error set when there is no terminal or nothing was
 * typed. */
bool sl_secret_ask(const char *whose, char secret[SL_SECRET_ROOM], sl_error *error);

/* The first line of a file. Warns when others may read it. */
bool sl_secret_read_file(const char *path, char secret[SL_SECRET_ROOM], sl_error *error);

/* Warns when a file that holds a secret may be read by others than its owner. */
void sl_secret_warn_of_readers(const char *path);

/* From here on the kernel writes no core of this process, and lets no other process of the same
 * user look into its memory or environment. */
void sl_secret_guard_process(void);

#endif
