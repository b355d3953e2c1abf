/* SPDX-License-Identifier: Apache-2.0 */
/* Files for nobody else: what a load leaves behind holds its data. They are readable by their owner
 * alone whatever the umask, and are never written through what somebody else has put in their
 * place. */
#ifndef SHARDLOAD_PRIVATE_FILE_H
#define SHARDLOAD_PRIVATE_FILE_H

#include <stdbool.h>

#include <shardload/error.h>

/* Opens `path`, which is made with mode 0600 where there is none; `flags`: O_WRONLY or O_RDWR, with
 * O_APPEND or not. Something other than a regular file with one name (a link, a FIFO, a device) is
 * refused, and so is a file that others may read and that cannot be kept from them. The file's
 * descriptor, or -1 with error (SL_EXIT_USAGE). */
int sl_private_file_open(const char *path, int flags, sl_error *error);

/* Makes the folder `path`, mode 0700, or takes the one that is there; a link is refused. */
bool sl_private_folder_make(const char *path, sl_error *error);

#endif
