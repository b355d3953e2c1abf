/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files in a folder and the folders below it. */
#ifndef SHARDLOAD_SOURCE_FOLDER_H
#define SHARDLOAD_SOURCE_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "util/error.h"

/* Called for everything that is not a folder; false ends the walk with its error. `facts` are those
 * of the file, of a link that leads to no file, or all zero for a file that has been removed since
 * its folder was listed. */
typedef bool sl_folder_visit(void *context, const char *path, const struct stat *facts,
                             sl_error *error);

/* Visits all files below `path` whose names match the shell pattern `include` (NULL: all), in order
 * of name, folder by folder; also pipes, sockets and devices. Follows links, except links that lead
 * back to a folder above. Skips hidden files, __MACOSX, and the files of work directories. Logs its
 * progress every two seconds. Opens no file. */
bool sl_folder_walk(const char *path, const char *include, sl_folder_visit *visit, void *context,
                    sl_error *error);

#endif
