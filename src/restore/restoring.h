/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a running restore. The main thread prepares and ends it. In between, several threads
 * restore one namespace each. */
#ifndef SHARDLOAD_RESTORING_H
#define SHARDLOAD_RESTORING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bson/bson.h>

#include "ledger/work_directory.h"
#include "send/rate_limit.h"
#include "util/text.h"

#include "dump.h"
#include "restore.h"

#define SL_RESTORE_DIRECTORY_ROOM 384 /* less than a load's: it holds work directories of loads */

/* A collection of at most these bytes may be restored at once, without a journal. */
#define SL_AT_ONCE_BYTES ((uint64_t)1 << 20)

/* --shard-keys: a YAML file that maps namespaces, as they are named on the server, to shard keys:
 *
 *   shop.orders: {key: {customer: 1, _id: 1}}
 *   shop.log: {key: {_id: hashed}}
 *   shop.users: {key: {email: 1}, unique: true}
 */
typedef struct sl_shard_entry {
    char *name;
    bson_t *key;
    bool unique;
} sl_shard_entry;

typedef struct sl_shard_keys {
    sl_shard_entry *items;
    size_t count, room;
} sl_shard_keys;

/* An oplog that has been read (oplog.h). */
typedef struct sl_oplog_totals {
    uint64_t operations; /* those passed to `visit` */
    uint64_t bytes;      /* read */
    uint64_t hash;       /* of these bytes */
    uint64_t last;       /* timestamp of the last entry before the limit */
    uint64_t open;       /* transactions that do not end before the end: not replayed */
} sl_oplog_totals;

/* The steps of a restore. Without an oplog, all steps of a namespace follow each other. */
typedef enum sl_restore_step {
    SL_RESTORE_ALL,
    SL_RESTORE_LOAD,   /* before the oplog is replayed: the documents */
    SL_RESTORE_FINISH, /* after it: indexes, and the options that follow the load */
} sl_restore_step;

/* The outcome of a namespace. */
typedef struct sl_restored {
    sl_exit code;
    bool begun, earlier; /* earlier: completed by an earlier run */
    bool loaded;         /* its documents are loaded, and the oplog is not replayed yet */
    bool no_resume;      /* --resume alone cannot complete it */
    bool existed;        /* documents were added to a collection that existed before */
    uint64_t records;    /* in the dump */
    uint64_t inserted, already_stored, rejected;
    uint32_t indexes; /* built, without that of _id */
    double seconds;
} sl_restored;

typedef struct sl_restore {
    const sl_restore_config *config;
    char directory[SL_WORK_DIRECTORY_ROOM]; /* the work directory; "": none */
    sl_work_directory_lock lock;
    sl_dump dump;
    uint64_t bytes;   /* of the documents of all chosen namespaces, */
    unsigned at_once; /* and how many of these are restored at a time */
    sl_shard_keys shard_keys;
    sl_restored *outcomes;             /* one per namespace of the dump */
    sl_connection *_Atomic connection; /* NULL until it is open. Read by the thread of signals */
    sl_restore_step step;
    const char *oplog;                 /* path of the oplog that is replayed; NULL: none */
    sl_source_identity oplog_identity; /* before it was planned */
    sl_oplog_totals oplog_totals;
    sl_exit oplog_code;    /* of the replay, or of a start without memory */
    uint64_t oplog_done;   /* operations that are replayed */
    uint64_t oplog_missed; /* updates of documents that did not exist */
    bool verifying;        /* verify_dump.c: an archive is always unpacked again */
    atomic_bool unpacking; /* an archive is read */
    double seconds;
    sl_rate_limit limit;      /* of all loads together */
    pthread_mutex_t sharding; /* held while chunks are distributed: a shard moves one at a time */
    /* The threads that restore namespaces; NULL: none yet. Read by the signal thread. */
    struct sl_restore_team *_Atomic team;
    struct sl_status *_Atomic status; /* NULL: none is written. Read by the thread of signals */
} sl_restore;

/* Restores one namespace (restore_one.c), unless an earlier run has completed it. Logs errors.
 * False: the restore must stop. `connection` is used by no other thread meanwhile. */
bool sl_restore_namespace(sl_restore *restore, sl_connection *connection, size_t index);

/* The name of the collection in database admin into which users or roles are loaded, and from which
 * the server merges them. */
#define SL_MERGED_ROOM 64
bool sl_restore_merged_collection(sl_restore *restore, size_t index, char name[SL_MERGED_ROOM],
                                  sl_error *error);

/* ---- same_dump.c ---- */

/* Writes the list of the files of the dump, before anything is changed on the server. */
bool sl_restore_write_list(sl_restore *restore, sl_error *error);
/* Compares the dump with the list of the interrupted restore. A namespace that is missing or new,
 * a file that differs, and another oplog are errors (SL_EXIT_SOURCE). An archive has no list before
 * it has been unpacked. */
bool sl_restore_same_dump(sl_restore *restore, sl_error *error);
/* Is the file the same as when the restore began? `was`: its identity then; all zero: not known, so
 * every file is accepted. If it is another one, error->no_resume says whether --resume would refuse
 * it, too. */
bool sl_restore_same_file(const char *path, const sl_source_identity *was, sl_error *error);

/* ---- oplog_replay.c ---- */

/* Has an earlier run begun to replay the oplog? */
bool sl_oplog_is_begun(const sl_restore *restore);
/* Is the oplog the one whose hash `was`, of a file in the work directory, has? */
bool sl_oplog_is_same(const sl_restore *restore, const bson_t *was, sl_error *error);

/* Appends the fields of an update that stores the document unchanged (oplog_replay.c explains the
 * command). `key`: of the shards; `id` has the _id. */
void sl_append_update(const bson_t *key, const bson_t *id, const bson_t *document,
                      bson_t *statement);

/* ---- verify_dump.c ---- */

/* A field that differs: its values as JSON; NULL: none. */
typedef void (*sl_difference_handler)(void *context, const char *key, const char *dumped,
                                      const char *stored);

/* Compares the options of the dump with those of the server. The order of fields means nothing, and
 * a default value equals no value. */
bool sl_compare_options(const sl_namespace *item, const bson_t *server,
                        sl_difference_handler handler, void *context, sl_error *error);

/* ---- restore.c ---- */

/* Writes the path of a file in a work directory; returns `path`. */
static inline char *sl_restore_file(const char *folder, const char *name, char path[600]) {
    snprintf(path, 600, "%s/%s", folder, name);
    return path;
}

/* May a command of the restore be repeated? For sl_connection_set_retry_check. */
bool sl_restore_keep_trying(void *context);

/* Creates and locks the work directory; `name` as in sl_work_directory_make. */
bool sl_restore_make_directory(sl_restore *restore, const char *name, sl_error *error);
/* Opens the dump, applies names and shard keys, logs what is not restored. */
bool sl_restore_open_dump(sl_restore *restore, sl_error *error);
/* False, with an error, if parts of the dump are not restored and --skip-other is not given. */
bool sl_restore_all_known(const sl_restore *restore, sl_error *error);
void sl_restore_clear(sl_restore *restore);
/* Is the dump a folder or a BSON file, which is not unpacked? */
bool sl_restore_is_in_place(const sl_restore *restore);

/* Writes the path of the namespace's folder in the work directory. Returns a hash of its name in
 * the dump. (restore_one.c) */
uint64_t sl_namespace_folder(const char *directory, const sl_namespace *item, char *out,
                             size_t room);

/* "database.collection" of a namespace in the dump, or on the server; returns out. */
char *sl_namespace_name(const sl_namespace *item, char out[2 * SL_NAME_ROOM]);
char *sl_namespace_target(const sl_namespace *item, char out[2 * SL_NAME_ROOM]);

/* With --drop: is there no collection for which its restore would be refused after others have been
 * dropped? (restore_one.c) */
bool sl_restore_may_begin(const sl_restore *restore, sl_error *error);

/* ---- restore_one.c: shard keys ---- */

/* Reads the text of the file; `keys` is empty before. Clear it in any case. SL_EXIT_USAGE. */
bool sl_shard_keys_parse(sl_shard_keys *keys, const char *path, sl_text text, sl_error *error);
void sl_shard_keys_clear(sl_shard_keys *keys);

/* Gives the keys to their namespaces. An entry must name a collection that is restored and can be
 * sharded. `keys` must outlive the dump. */
bool sl_shard_keys_apply(const sl_shard_keys *keys, sl_dump *dump, sl_error *error);

#endif
