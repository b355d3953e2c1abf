/* SPDX-License-Identifier: Apache-2.0 */
/* A dump that is restored: its namespaces (collections and views), with their options, indexes and
 * data files, and its parts that are not restored. Layout of a folder (that of mongodump):
 *
 *   DATABASE/NAME.bson[.gz]            the documents of a collection
 *   DATABASE/NAME.metadata.json[.gz]   {options, indexes, uuid, collectionName, type}
 *
 * Bytes of a collection's name that a file name cannot contain are written as %XX. The name of a
 * database is the unchanged name of its folder, in which a percent sign is an ordinary character. A
 * time-series collection NAME has its documents in system.buckets.NAME.bson; a view has no
 * documents. A dump may also be the folder of one database, or one file NAME.bson beside its
 * metadata. One thread. */
#ifndef SHARDLOAD_RESTORE_DUMP_H
#define SHARDLOAD_RESTORE_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "bson/bson_check.h"
#include "cluster/cluster.h"
#include "cluster/connection.h"
#include "source/source.h"
#include "util/error.h"
#include "util/name_index.h"

/* What a namespace of a dump is, in the order in which they are restored. */
typedef enum sl_namespace_kind {
    SL_NAMESPACE_COLLECTION,
    SL_NAMESPACE_TIME_SERIES,
    SL_NAMESPACE_VIEW,
    SL_NAMESPACE_ROLES, /* admin.system.roles, or DATABASE.$admin.system.roles */
    SL_NAMESPACE_USERS,
} sl_namespace_kind;

/* The properties of a kind. */
typedef struct sl_kind {
    const char *name;   /* in tables and records */
    const char *type;   /* as the server lists it */
    const char *stored; /* the beginning of the name of the collection with its documents */
    bool no_documents;
    const char *merged_by; /* users and roles: a parameter of sl_merge_users; NULL: a collection */
} sl_kind;
extern const sl_kind sl_kinds[]; /* by sl_namespace_kind */

/* Strings and documents belong to it. */
typedef struct sl_namespace {
    char *database, *collection;       /* in the dump */
    char *to_database, *to_collection; /* on the server */
    sl_namespace_kind kind;
    char *data;                  /* path of its documents; NULL: none */
    uint64_t data_bytes;         /* size of that file */
    sl_source_identity identity; /* of that file when the restore began; zero: not taken */
    char *metadata;         /* path of its metadata; NULL: none. For an archive, the text of the
                               metadata */
    uint64_t metadata_hash; /* of the text of a metadata file */
    bool unpacked;          /* `data` is a file of the work directory, removed after the restore */
    bson_t *options;        /* of the command `create`, without those in `later` */
    bson_t *later;          /* options that are set after the load: validator ... */
    bson_t *indexes;        /* array of index specifications, without the index of _id */
    uint32_t index_count;
    uint32_t listed;            /* indexes, also those that are left out */
    char *conversions;          /* what was changed for current servers; NULL: nothing */
    bool capped, collated;      /* collated: the collection has a default collation */
    bool left_out;              /* by a filter */
    bool damaged;               /* its documents in the archive are not complete, or changed */
    bool oplog_only;            /* the dump does not have it, but its oplog */
    bool apart;                 /* ... and the dump restores nothing of its database */
    bool made;                  /* the oplog creates it, or renames another one to it */
    bool replaced;              /* the oplog drops or renames it, or renames another one to it */
    bool gone;                  /* of `after`: it is dropped, renamed, or not created yet */
    bool known;                 /* of `after`: the oplog has created, dropped or replaced it */
    char uuid[SL_UUID_ROOM];    /* of the dumped collection; "": not known */
    uint64_t other;             /* timestamp of the first change of another UUID; 0: none */
    struct sl_namespace *after; /* its options, `later` and indexes after the oplog; NULL: the oplog
                                   does not change them */
    const bson_t *shard_key;    /* from --shard-keys, borrowed; NULL: not sharded */
    bool shard_unique;
    bool removed; /* while a dump is opened: it is no namespace of its own */
} sl_namespace;

/* Is it restored after all collections, alone? */
static inline bool sl_restored_alone(const sl_namespace *item) {
    return item->kind >= SL_NAMESPACE_VIEW;
}

/* A part of a dump that is not restored. */
typedef struct sl_dump_note {
    char *what, *why;
    bool lost; /* the user may miss it: the restore ends with exit code 3 unless --skip-other */
} sl_dump_note;

typedef struct sl_dump {
    sl_namespace *items; /* sorted by name; views last, then roles and users */
    size_t count, room;
    sl_name_index names;   /* of the items; empty: they have moved */
    sl_name_index targets; /* of the new names of those that are restored */
    sl_dump_note *notes;
    size_t note_count, note_room;
    size_t kept;         /* bytes, of sl_dump_keep */
    uint64_t crc;        /* CRC-64 of the archive, without compression; 0: not known */
    bool replay_oplog;   /* set before the dump is opened: its oplog is needed, too */
    bool skip_other;     /* ... a stream without documents is that of an empty collection */
    sl_namespace *oplog; /* only its data, if an archive has been unpacked; NULL: none */
} sl_dump;

/* The options that select and rename namespaces; patterns as given; borrowed. from[i] and to[i]
 * belong together. */
typedef struct sl_name_options {
    const char *database, *collection; /* only this one; NULL: all */
    bool no_options, no_indexes;       /* of collections: leave them out */
    bool database_users; /* also the users and roles that the dump of one database has */
    const char *const *include;
    size_t include_count; /* 0: all */
    const char *const *exclude;
    size_t exclude_count;
    const char *const *from;
    const char *const *to;
    size_t rename_count;
} sl_name_options;

/* Is the dump read where it is: a folder, or one BSON file? Otherwise it is an archive or a pipe,
 * which is unpacked. */
bool sl_dump_is_in_place(const char *path, const sl_name_options *names);
/* Finds the namespaces of such a dump, reads their metadata, and applies the names. SL_EXIT_SOURCE
 * if it is not a dump or a metadata file cannot be read; the error names all such files. Clear the
 * dump in any case. */
bool sl_dump_open_in_place(sl_dump *dump, const char *path, const sl_name_options *names,
                           sl_error *error);
void sl_dump_clear(sl_dump *dump);

/* Is the server new enough for the collections? SL_EXIT_CLUSTER with the namespace, the version
 * that it needs and the server's version. */
bool sl_dump_fits_server(const sl_dump *dump, const sl_server *server, sl_error *error);

/* Reads an archive of mongodump, compressed or not; `path` may be "-", standard input. If the names
 * have a database and a collection, it may also be the documents of that collection. Applies the
 * names as soon as the collections are known, and writes the documents of each collection that is
 * restored to a file in `folder`, which must exist. With `folder` NULL it reads no documents.
 * Damage is noted, with its offset, and reading continues after it. SL_EXIT_SOURCE if the
 * beginning, with the list of the collections, cannot be read. Needs memory for the largest
 * document. */
bool sl_dump_open_archive(sl_dump *dump, const char *path, const char *folder,
                          const sl_name_options *names, sl_error *error);

/* Writes the list of the unpacked files to `folder`, and reads it. `*found`: the list exists, so
 * the archive has been unpacked completely. */
bool sl_dump_write_list(const sl_dump *dump, const char *folder, sl_error *error);
bool sl_dump_read_list(sl_dump *dump, const char *folder, const sl_name_options *names, bool *found,
                       sl_error *error);
/* Is it the archive whose list has been read? SL_EXIT_SOURCE if not. True if the path names
 * nothing, or an empty pipe or a device: the archive is not needed any more. */
bool sl_dump_same_archive(const sl_dump *dump, const char *path, const char *folder,
                          const sl_name_options *names, sl_error *error);

/* ---- internal functions of these files ---- */

/* The namespace of this name; NULL: none. */
sl_namespace *sl_dump_find(const sl_dump *dump, const char *database, const char *collection);
/* The namespace of this name, which is added if there is none. NULL with error. */
sl_namespace *sl_dump_get(sl_dump *dump, const char *database, const char *collection,
                          sl_error *error);
/* Counts bytes of names, metadata and notes, which are in memory until the restore ends: a small
 * compressed dump can have any number of them. SL_EXIT_SOURCE if they are more than
 * SL_DUMP_KEPT_MAX. */
#define SL_DUMP_KEPT_MAX ((size_t)256 << 20)
#define SL_INDEXES_MAX 1000u /* of a collection; servers allow 64 */
bool sl_dump_keep(sl_dump *dump, size_t bytes, sl_error *error);
/* The same for options and indexes. */
bool sl_dump_keep_metadata(sl_dump *dump, const sl_namespace *item, sl_error *error);
/* Sorts the namespaces; pointers to them become invalid. */
void sl_dump_sort(sl_dump *dump);
/* What a namespace of this name is, if it has no metadata. */
sl_namespace_kind sl_dump_kind(const char *database, const char *collection);
/* The reason why a namespace of this name is not restored; NULL if it is restored. */
const char *sl_dump_not_restored(const sl_name_options *names, const char *database,
                                 const char *collection);

/* Adds the oplog. `path`: NULL: not unpacked yet. */
bool sl_dump_add_oplog(sl_dump *dump, const char *path, sl_error *error);

/* Adds a note. `what` and `why` are copied. */
bool sl_dump_note_add(sl_dump *dump, const char *what, bool lost, const char *why, sl_error *error);

/* Adds options as listCollections returns them to a namespace. False with error. */
bool sl_namespace_take_options(sl_namespace *item, const bson_t *options, sl_error *error);
/* Adds an index to a namespace. False with error. */
bool sl_namespace_add_index(sl_namespace *item, const bson_t *index, sl_error *error);
/* Removes what --no-options-restore and --no-index-restore leave out. What makes a namespace a view
 * or a time-series collection stays. */
bool sl_namespace_leave_out(const sl_name_options *options, sl_namespace *item, sl_error *error);
bool sl_index_has_key(const bson_t *index, const bson_t *key);
/* Is it the index of _id, or the clustered index? Both are created with the collection. */
bool sl_index_is_of_id(const bson_t *index);

/* The same from the text of a metadata file, which is followed by SL_SLACK readable bytes. `name`
 * is used in messages. The namespace is given its name if the text has one. */
bool sl_metadata_parse(sl_namespace *item, const char *name, const char *text, size_t length,
                       sl_error *error);

/* Opens a data file: the blocks that the reader returns hold complete documents, except in damaged
 * text. Destroy both, also after a failure. */
bool sl_dump_open_documents(const char *path, sl_source_set **set, sl_reader **reader,
                            sl_error *error);
/* Calls `each` for the documents of a file, until it returns false. SL_EXIT_SOURCE at damage. */
typedef bool sl_document_visit(void *context, const bson_t *document, const sl_bson_facts *facts,
                               sl_error *error);
bool sl_dump_each_document(const char *path, sl_document_visit *each, void *context,
                           sl_error *error);
/* The same for the documents that can be read, also after damage, until the program is interrupted,
 * which is no error. */
bool sl_dump_each_sound_document(const char *path, sl_document_visit *each, void *context,
                                 sl_error *error);
/* A source that is read in pieces of any length. Set `set` before; clear it in any case. */
typedef struct sl_dump_pieces {
    sl_source_set *set; /* of one source */
    sl_reader *reader;
    uint8_t
        *bytes; /* read and not processed yet, from `at` to `used`; SL_BSON_SLACK bytes follow */
    size_t at, used, room;
    bool ended; /* nothing follows `bytes` */
} sl_dump_pieces;
bool sl_dump_pieces_open(sl_dump_pieces *pieces, sl_error *error);
/* Reads the next piece, and moves the bytes that are not processed to the beginning. */
bool sl_dump_pieces_more(sl_dump_pieces *pieces, sl_error *error);
void sl_dump_pieces_clear(sl_dump_pieces *pieces);
/* The first bytes of a file, up to `room`, uncompressed. `*whole`: these are all of its bytes. */
bool sl_dump_head(const char *path, char *head, size_t room, size_t *length, bool *whole,
                  sl_error *error);

/* ---- which namespaces are restored, and under which names ----
 *
 * --db, --collection, --ns-include, --ns-exclude, --ns-from and --ns-to, with the patterns of
 * mongorestore.
 *
 * In a pattern * matches any text, including dots and the empty text, and \ makes the next
 * character an ordinary one. In --ns-from and --ns-to $name$ also matches any text. The texts of
 * --ns-from are put into --ns-to: those of * in their order, those of $name$ by their names. If a
 * name can be matched in several ways, each wildcard from left to right matches the shortest
 * possible text. */

/* The largest namespace that a server accepts has 255 bytes. */
#define SL_NAME_ROOM 512

/* Checks a pair of --ns-from and --ns-to: the same numbers of *, the same names. SL_EXIT_USAGE. */
bool sl_rename_check(const char *from, const char *to, sl_error *error);

/* Checks a pattern of --ns-include or --ns-exclude: it must not have too many wildcards.
 * SL_EXIT_USAGE. */
bool sl_name_pattern_check(const char *option, const char *pattern, sl_error *error);

/* Sets left_out, to_database and to_collection of all namespaces. Logs a warning for each pattern
 * that no namespace matches. SL_EXIT_USAGE if a new name is not a namespace, or two namespaces get
 * the same name. */
bool sl_names_apply(const sl_name_options *options, sl_dump *dump, sl_error *error);
/* The same for one namespace of the dump, which is compared with those before it. */
bool sl_names_apply_to(const sl_name_options *options, sl_dump *dump, size_t index,
                       sl_error *error);

#endif
