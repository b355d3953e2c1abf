/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload restore` and `shardload verify --dump`. A restore loads the namespaces of a dump,
 * several at a time, each with a separate load (load.h). It has a work directory with a folder for
 * each namespace. */
#ifndef SHARDLOAD_RESTORE_H
#define SHARDLOAD_RESTORE_H

#include "dump.h"
#include "job/load_config.h"

/* All pointers are borrowed. */
typedef struct sl_restore_config {
    /* Connection, delivery, work directory, the options to compare, --drop, --resume, --skip-other.
     * Without sources, format and target. */
    const sl_load_config *load;
    const char *dump; /* a folder, a BSON file, an archive, or - for standard input */
    sl_name_options names;
    const char *shard_keys; /* path of a YAML file (restoring.h); NULL: no collection is sharded */
    const char *shard_keys_text; /* its text */
    unsigned at_once;            /* collections that are restored at the same time */
    bool oplog_replay;           /* replay the oplog after the documents are loaded */
    const char *oplog_file;      /* that of another folder; NULL: that of the dump */
    uint64_t oplog_limit; /* timestamp, seconds << 32 | ordinal: only entries before; 0: all */
    bool dry_run;         /* show what would be restored; no server is contacted */
} sl_restore_config;

/* Logs its errors. */
sl_exit sl_restore_run(const sl_restore_config *config);

/* Compares a dump with the cluster, to test a backup: kind, options, validator, indexes and
 * documents (with `content` byte by byte, otherwise their number) of each namespace that is not
 * left out. Changes nothing on the cluster. Logs its errors; SL_EXIT_VERIFICATION if a namespace
 * differs. An archive is unpacked into the work directory, which must then be given. */
sl_exit sl_verify_dump_run(const sl_restore_config *config, bool content, uint64_t problems_shown);

#endif
