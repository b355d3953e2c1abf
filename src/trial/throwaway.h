/* SPDX-License-Identifier: Apache-2.0 */
/* Throw-away collections beside the target: named after the process that made them, so that the next
 * drill knows which of them nobody will remove any more. */
#ifndef SHARDLOAD_THROWAWAY_H
#define SHARDLOAD_THROWAWAY_H

#include <shardload/cluster.h>

#define SL_THROWAWAY_ROOM 256

/* "<collection>.<kind>.<host>.<pid>.<start>.<number>" into `out`: `start` is when this process began,
 * in the kernel's ticks. False (SL_EXIT_USAGE) when that is too long for a name. */
bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error);

/* Removes, with their registries, the throw-away collections of this kind beside the target that
 * processes of this host have left which are gone, and says so. Those of other hosts are named, with
 * what to do about them; those of a process that still runs are left alone. */
bool sl_throwaway_remove_leftovers(sl_connection *connection, const char *database,
                                   const char *collection, const char *kind, sl_error *error);

/* Drops a throw-away collection and its registry. */
bool sl_throwaway_drop(sl_connection *connection, const char *database, const char *name,
                       sl_error *error);

#endif
