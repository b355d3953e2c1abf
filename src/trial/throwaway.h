/* SPDX-License-Identifier: Apache-2.0 */
/* Throw-away collections beside the target: the loads into them, and how they are removed again.
 * They are named after the process that made them, so that the next trial knows which of them nobody
 * will remove any more. */
#ifndef SHARDLOAD_THROWAWAY_H
#define SHARDLOAD_THROWAWAY_H

#include <stdint.h>

#include <shardload/cluster.h>
#include <shardload/load.h>

#define SL_THROWAWAY_ROOM 256

/* ---- names ---- */

/* "<collection>.<kind>.<host>.<pid>.<start>.<number>" into `out`: `host` is
 * sl_host_identity, `start` is when this process began, in the kernel's ticks. False (SL_EXIT_USAGE) when that is too long for a name. */
bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error);

/* Removes, with their registries, the throw-away collections of this kind beside the target that
 * processes of this host have left which are gone, and says so. Those of other hosts are named, with
 * what to do about them; those of a process that still runs are left alone. */
bool sl_throwaway_remove_leftovers(sl_connection *connection, const char *database,
                                   const char *collection, const char *kind, sl_error *error);

/* ---- the one that there is ---- */

/* A process has one throw-away collection at a time. What follows may be called by the thread that
 * makes it and by the one that hears signals. */

/* Notes the collection before it is made. All is borrowed but `name`, until the process is done with
 * throw-away collections. */
void sl_litter_note(sl_connection *connection, const char *database, const char *name);

/* Drops the collection that is noted, with its registry; true when there is none. False, with the
 * name and what to do in the error, when it is left: it stays noted, so that this can be tried again. */
bool sl_litter_remove(sl_error *error);

/* The same for the second signal, when a load may be under way whose inserts would make the collection
 * again. To be called by a handler (interrupt.h), when nothing new is sent any more: what is under way
 * is waited for, 5 s at most, then the collection is dropped until it is gone, 10 s at most. */
bool sl_litter_remove_at_once(sl_error *error);

/* ---- loads into it ---- */

/* The configuration of a load of `share` of the blocks that another command runs, from that of the
 * whole: into `collection`, with everything at one setting from start to end, and nothing of what the
 * user wants to have of the whole: no report, no page, no hint how to complete it. The caller says
 * whether to drop and to verify. All is borrowed. */
sl_load_config sl_load_as_trial(const sl_load_config *whole, const char *collection,
                                const char *work_directory, double share, bson_t *account);

#endif
