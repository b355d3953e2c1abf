/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of shardload: a row for each option, with its commands and its help. */
#include "commands.h"

#include "bson/bson_writer.h"
#include "job/load_config.h"

#include "connection_string.h"
#include "option_checks.h"

/* Groups of commands. */
enum {
    LOAD = SL_COMMAND_LOAD,
    PLAN = SL_COMMAND_PLAN,
    INSPECT = SL_COMMAND_INSPECT,
    VERIFY = SL_COMMAND_VERIFY,
    TUNE = SL_COMMAND_TUNE,
    RELOAD = SL_COMMAND_RELOAD,
    REPORT = SL_COMMAND_REPORT,
    RESTORE = SL_COMMAND_RESTORE,
    DOCTOR = SL_COMMAND_DOCTOR,
    MANAGING = DOCTOR | SL_COMMAND_FORGET,
    LOADING = LOAD | TUNE | RELOAD,
    RUNNING = LOADING | VERIFY,
    TARGETED = RUNNING | PLAN, /* one collection */
    CONNECTED = TARGETED | RESTORE,
    READING = TARGETED | INSPECT | DOCTOR,
    SENDING = LOADING | RESTORE,
    STATUS = SL_COMMAND_STATUS,
};

#define GENERATED "Generated records"
#define FORMAT_CHOICE(id, name, help) "|" name
#define FORMAT_HELP(id, name, help) " " name ": " help "."

/* clang-format off */
#define PROGRESS_CHOICE(id, word) "|" word
#define PROGRESS_CHOICES (&(SL_PROGRESS_KINDS(PROGRESS_CHOICE))[1])

const sl_option_row sl_load_rows[] = {
    {.name = "uri", SL_ROW_COMMON, SL_ROW_TEXT("URI"), .fallback = "mongodb://127.0.0.1:27017",
     SL_ROW_OF(CONNECTED | MANAGING, "Target", NONE), .secret = SL_CREDENTIALS,
     .help = "Connection string. For a sharded cluster name all its routers. A replica set or a "
             "standalone mongod works too."},
    {.name = "db", SL_ROW_COMMON, .letter = 'd', SL_ROW_TEXT("NAME"), SL_ROW_OF(CONNECTED | MANAGING, "Target", NONE),
     .help = "Database. restore: only this one of the dump; the name of the database, if the dump is the "
             "folder or a file of one database."},
    {.name = "collection", SL_ROW_COMMON, .letter = 'c', SL_ROW_TEXT("NAME"),
     SL_ROW_OF(CONNECTED | MANAGING, "Target", NONE),
     .help = "Collection. restore: only this one of --db; its name, if the dump is one BSON file."},
    {.name = "drop", .once = true, SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(LOAD | RELOAD | PLAN | RESTORE, "Target", NONE),
     .help = "Drop the collection first. It is refused if other programs have given it options, "
             "indexes or a shard key that the command does not name. restore: drop each collection "
             "and view that is restored."},
    {.name = "again", .once = true, SL_ROW_FLAG, SL_ROW_OF(LOAD | PLAN, "Target", NONE),
     .help = "Load sources that have been loaded before. Each document gets the same _id as in "
             "the earlier load: stored documents are kept, and missing documents are inserted. "
             "(If the file now has another name, its documents get other _ids, and are stored a "
             "second time.)"},
    {.name = "another-pipe", .once = true, SL_ROW_FLAG, SL_ROW_OF(LOAD | RELOAD, "Target", NONE),
     .help = "Load a pipe although an earlier load of a pipe into this collection was not "
             "completed. Without this option the load is refused, because both pipes may contain "
             "the same data, which would then be stored twice."},
    {.name = "mode", SL_ROW_COMMON, SL_ROW_CHOICE("MODE", SL_MODE_CHOICES),
     .fallback = "insert", SL_ROW_OF(LOAD | PLAN, "Target", DOCUMENTS),
     .help = "How documents are written; modes other than insert match stored documents by "
             "--match-fields." SL_MODE_SENTENCES},
    {.name = "match-fields", SL_ROW_COMMON, SL_ROW_TEXT("NAME,..."), SL_ROW_OF(LOAD | PLAN, "Target", DOCUMENTS),
     .help = "Fields that modes other than insert compare; without this option, _id. They must contain the shard key, and either _id or all fields of a unique "
             "index.",
     .check = sl_check_key_names},
    {.name = "sink", .once = true, SL_ROW_FILE("WHERE", WRITTEN), .file_after = "bson:", .prints = LOAD, .fallback = "cluster", SL_ROW_OF(LOAD, "Target", NONE),
     .help = "Where the documents go: cluster; null (parse and encode only, to measure the "
             "client); bson:FILE (a BSON dump; bson:- for standard output).",
     .check = sl_check_sink},

    SL_CONNECTION_ROWS(CONNECTED | MANAGING),

    {.name = "format", .once = true, SL_ROW_COMMON, SL_ROW_CHOICE("NAME", "auto" SL_FORMATS(FORMAT_CHOICE)),
     .fallback = "auto", SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Format of the sources. auto: detect that of each file." SL_FORMATS(FORMAT_HELP)},
    {.name = "schema", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(READING, "Source", FILE),
     .help = "YAML file with the columns and their types for --format delimited, or with other "
             "key names for isd."},
    {.name = "types", SL_ROW_COMMON, SL_ROW_TEXT("auto|text|NAME=TYPE,..."), .fallback = "auto",
     SL_ROW_OF(READING, "Source", DOCUMENTS), .check = sl_check_types, .joined = true,
     .help = "Types of delimited text without --schema. auto: infer the type of each column from a "
             "sample of all sources; a type is used only if it changes none of the sampled "
             "values. text: load all columns as text. NAME=TYPE declares the type of a column, or "
             "of a text in JSON: date, datetime, int, double, decimal, uuid, json, array, hex, base64, "
             "bool, flag:Y:N, double:1.234,5, date:%d.%m.%Y and others."},
    {.name = "header", SL_ROW_COMMON, SL_ROW_CHOICE("KIND", "auto|yes|no"), .fallback = "auto",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "For --format delimited without --schema: whether the first line names the columns. "
             "auto: compare the first line with the lines below it. no: the columns are column1, "
             "column2 and so on, or those of --columns."},
    {.name = "columns", SL_ROW_TEXT("NAME,..."), SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Names of the columns of a text without header; with --header yes they replace the "
             "names in the header."},
    {.name = "skip-lines", .once = true, SL_ROW_COUNT("N", 0, 1000), .fallback = "0",
     SL_ROW_OF(READING, "Source", DOCUMENTS), .help = "Number of lines before the table. Without this option they are detected."},
    {.name = "ragged", SL_ROW_CHOICE("KIND", "reject|pad"), .fallback = "reject",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Lines with too few fields. reject: reject them. pad: load them without the last "
             "fields."},
    {.name = "write-schema", SL_ROW_COMMON, SL_ROW_FILE("FILE", WRITTEN), SL_ROW_OF(INSPECT, "Source", NONE),
     .help = "Write the inferred types to a YAML file, to edit and to load with --schema."},
    {.name = "names", SL_ROW_CHOICE("KIND", "short|long"), .fallback = "short",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Keys of the documents: short (m) or as published (test_mileage)."},
    {.name = "encoding", SL_ROW_COMMON, SL_ROW_TEXT("NAME"), .fallback = "utf-8",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: the encoding of text that is not UTF-8: latin-1 or cp1252 (both are "
             "windows-1252), iso-8859-15, windows-1251, koi8-r, or any single-byte encoding that "
             "iconv knows."},
    {.name = "trim", SL_ROW_FLAG, SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Remove blanks from both ends of every field."},
    {.name = "delimiter", SL_ROW_COMMON, SL_ROW_TEXT("CHAR"), .fallback = "auto", SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: what separates the fields: one ASCII character, tab, or a code such as "
             "\\x01.",
     .check = sl_check_delimiter},
    {.name = "dialect", SL_ROW_COMMON, SL_ROW_CHOICE("NAME", "auto|csv|sql-csv|postgres|mysql|mysql-batch|excel"),
     .fallback = "auto", SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: how the program that wrote the text writes NULL and line ends in values. "
             "auto: as the first 64 KiB show. csv: no NULL. sql-csv: nothing is NULL, \"\" is empty "
             "text (PostgreSQL, DuckDB). postgres: COPY, text format. mysql: mysqldump --tab, INTO "
             "OUTFILE. mysql-batch: mysql --batch. excel: spreadsheets."},
    {.name = "null", SL_ROW_LIST("TEXT"), SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: an unquoted field with this text is NULL."},
    {.name = "null-as", SL_ROW_CHOICE("KIND", "missing|null"), .fallback = "missing",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: leave fields without a value out of the document, or store them as null."},
    {.name = "quote", SL_ROW_TEXT("CHAR"), .fallback = "auto", SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: the character around quoted fields, or none. auto: a double quote; with "
             "tabs or pipes, or if it is a single quote, only where the first 64 KiB show it.",
     .check = sl_check_quote},
    {.name = "escape", SL_ROW_TEXT("CHAR"), .fallback = "none", SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: the character in quoted fields after which a quote is data: none, "
             "backslash, or one character. Two quotes are always one.",
     .check = sl_check_escape},
    {.name = "quoted-lines", SL_ROW_CHOICE("WHEN", "auto|yes"), .fallback = "auto",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "delimited: quoted fields may contain line ends. auto: in sources with a quoted field "
             "in their first 64 KiB. yes: in all sources; this takes more time."},
    {.name = "missing", SL_ROW_CHOICE("KIND", "omit|raw"), .fallback = "omit",
     SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "isd: omit missing values, or store the published numbers that mark them as missing "
             "(999.9)."},
    {.name = "include", .once = true, SL_ROW_TEXT("GLOB"), SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "If SOURCE is a folder or an archive, load only the files or entries whose names "
             "match."},
    {.name = "skip-other", .once = true, SL_ROW_FLAG, SL_ROW_OF(LOAD | RELOAD | PLAN | VERIFY | RESTORE, "Source", NONE),
     .help = "Skip and list files in folders and entries of archives that are not recognised, or "
             "that contain another kind of records than the first one, and pipes, devices and "
             "dangling links in folders. Without this option they end the load with exit code 3."},
    {.name = "id-field", SL_ROW_COMMON, SL_ROW_TEXT("NAME,..."), SL_ROW_OF(READING, "Source", DOCUMENTS),
     .help = "Use this column or field as the _id of the documents; several become an embedded "
             "document in the given order. Records without it are rejected. Without this option "
             "documents keep their own _id (json, bson), or get one that is computed from their "
             "position.",
     .check = sl_check_key_names},
    {.name = "embed", SL_ROW_FILE("FIELD=FILE", READ), .file_after = "=", SL_ROW_OF(LOAD | VERIFY, "Source", FIELD),
     .help = "Embed the records of a second source as an array in the documents that have the "
             "same values of the fields of --on. The second source is first stored by key in the "
             "work directory; neither source has to be sorted. Records that belong to no "
             "document are counted, and written to embed/unmatched.json in the work directory.",
     .check = sl_check_embed},
    {.name = "on", SL_ROW_TEXT("NAME,..."), SL_ROW_OF(LOAD | VERIFY, "Source", DOCUMENTS),
     .help = "The fields by which --embed joins, such as test_id. If the names differ between the "
             "sources, give the name in SOURCE first: o_orderkey=l_orderkey."},
    {.name = "embed-schema", SL_ROW_FILE("FILE", READ), SL_ROW_OF(LOAD | VERIFY, "Source", FILE),
     .help = "As --schema, for the source of --embed."},
    {.name = "documents", SL_ROW_COMMON, SL_ROW_COUNT("N", 0, 1000000), .fallback = "3",
     SL_ROW_OF(INSPECT, "Source", NONE), .help = "Number of documents to show of each source."},

    {.name = "archive", SL_ROW_FILE("FILE", READ), SL_ROW_OF(RESTORE, "Source", NONE),
     .help = "The archive to restore, - for standard input. The same as naming it as DUMP."},
    {.name = "gzip", SL_ROW_FLAG, SL_ROW_OF(RESTORE, "Source", NONE),
     .help = "Accepted for users of mongorestore. Compressed dumps are recognised without it."},
    {.name = "ns-include", SL_ROW_COMMON, SL_ROW_LIST("PATTERN"), SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Select only namespaces that match, such as 'shop.*'; * stands for any text. May be "
             "given several times."},
    {.name = "ns-exclude", SL_ROW_COMMON, SL_ROW_LIST("PATTERN"), SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Leave out namespaces that match. May be given several times."},
    {.name = "ns-from", SL_ROW_LIST("PATTERN"), SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Rename namespaces that match: 'shop.*' with --ns-to 'test.*', or with variables as "
             "in 'shop.$month$_orders' and 'orders.$month$'. May be given several times; the "
             "first pattern that matches is used."},
    {.name = "ns-to", SL_ROW_LIST("PATTERN"), SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "The new name of the namespaces that match --ns-from."},
    {.name = "restore-db-users-and-roles", SL_ROW_FLAG,
     SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Also restore the users and roles of a database, which mongodump --dumpDbUsersAndRoles has put "
             "into its folder. Those of a dump of all databases are restored without this option; "
             "--ns-exclude 'admin.system.*' leaves them out. Existing users are kept; with --drop they are "
             "replaced, and those that the dump does not have are removed."},
    {.name = "no-options-restore", SL_ROW_FLAG, SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Leave out the options of collections (validator, capped, collation ...). What makes a namespace a "
             "view or a time-series collection is restored."},
    {.name = "no-index-restore", SL_ROW_FLAG, SL_ROW_OF(RESTORE | VERIFY, "Source", DOCUMENTS),
     .help = "Leave out the indexes of collections, except that of _id."},
    {.name = "oplog-replay", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(RESTORE, "Source", DOCUMENTS),
     .help = "Replay the oplog that mongodump --oplog wrote, after the documents are loaded, so "
             "that the collections are from one point in time."},
    {.name = "oplog-limit", SL_ROW_TEXT("SECONDS[:ORDINAL]"), SL_ROW_OF(RESTORE, "Source", DOCUMENTS),
     .help = "Replay only the entries of the oplog before this timestamp, in seconds since 1970.",
     .check = sl_check_timestamp},
    {.name = "oplog-file", SL_ROW_FILE("FILE", READ), SL_ROW_OF(RESTORE, "Source", DOCUMENTS),
     .help = "The oplog to replay, if the dump has none: a BSON file, compressed or not."},
    {.name = "dry-run", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(RESTORE, "Source", NONE),
     .help = "Show what would be restored, and under which names. No server is contacted."},

    {.name = "records", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, 100000000000000), SL_ROW_OF(READING, GENERATED, DOCUMENTS),
     .help = "For --format ycsb: the number of records to generate, such as 100M, instead of a "
             "SOURCE."},
    {.name = "field-count", SL_ROW_COUNT("N", 0, SL_YCSB_FIELDS_MAX), .fallback = "8",
     SL_ROW_OF(READING, GENERATED, DOCUMENTS), .help = "Number of fields of random bytes: f0, f1, ..."},
    {.name = "field-length", SL_ROW_BYTES(0, SL_BSON_DOCUMENT_MAX), .fallback = "100",
     SL_ROW_OF(READING, GENERATED, DOCUMENTS), .help = "Size of each field of random bytes."},
    {.name = "document-size", SL_ROW_BYTES(1, SL_BSON_DOCUMENT_MAX), SL_ROW_OF(READING, GENERATED, DOCUMENTS),
     .help = "Size of each document as BSON, such as 147KB, up to 16MiB, instead of "
             "--field-length: the fields of random bytes fill the bytes that the _id, the "
             "integers and the names do not need."},
    {.name = "integer-count", SL_ROW_COUNT("N", 0, SL_YCSB_FIELDS_MAX), .fallback = "8",
     SL_ROW_OF(READING, GENERATED, DOCUMENTS),
     .help = "Number of fields with an integer from 0 to 65535: n0, n1, ..."},
    {.name = "skew", SL_ROW_TEXT("THETA"), .fallback = "0.99", SL_ROW_OF(READING, GENERATED, DOCUMENTS),
     .help = "Exponent of the Zipf distribution of the integers: k is (k+1)^THETA times less "
             "frequent than 0. With 0 all integers are equally frequent.",
     .check = sl_check_skew},
    {.name = "seed", SL_ROW_COUNT("N", 0, 0), .fallback = "1", SL_ROW_OF(READING, GENERATED, DOCUMENTS),
     .help = "Seed of the random values. The same seed and options always give the same records."},

    {.name = "threads", SL_ROW_COMMON, .letter = 'j', SL_ROW_COUNT("N", 1, SL_THREADS_MAX), .choices = "auto",
     .fallback = "auto", SL_ROW_OF(RUNNING | RESTORE, "Speed", NONE),
     .help = "Worker threads, each with its own connection. auto: two per core, or the number in "
             "the configuration file (-j auto --config fast.yaml); a load then changes the "
             "number while it runs, if that is faster."},
    {.name = "collections-at-once", SL_ROW_COUNT("N", 1, 64), .fallback = "4",
     SL_ROW_OF(RESTORE, "Speed", NONE),
     .help = "How many collections are restored at the same time, each by -j threads; with -j auto "
             "they share the threads by their size. 1 restores one after the other, in the order "
             "of their names. Views are always restored last."},
    {.name = "batch-size", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, SL_BATCH_SIZE_MAX), .choices = "auto",
     .fallback = "auto", SL_ROW_OF(SENDING, "Speed", NONE),
     .help = "Largest number of documents per insert. auto: 20,000, or the number in the "
             "configuration file; a load then changes it while it runs, if that is faster."},
    {.name = "batch-bytes", SL_ROW_BYTES(65536, 47000000), .fallback = "16MiB",
     SL_ROW_OF(SENDING, "Speed", NONE),
     .help = "Largest size of an insert. An insert ends at this size or at --batch-size, whichever "
             "comes first."},

    {.name = "shard-key", SL_ROW_COMMON, SL_ROW_TEXT("JSON"), .fallback = "{\"_id\": 1}",
     SL_ROW_OF(LOADING | PLAN, "Layout", NONE),
     .help = "Shard key on a sharded cluster: fields with 1 or \"hashed\"; or "
             "{\"key\": {\"sku\": 1}, \"unique\": true}. {\"_id\": 1} is pre-split, so that all shards receive documents from the start. none leaves the "
             "collection unsharded.",
     .check = sl_check_shard_key},
    {.name = "shard-existing", SL_ROW_FLAG, SL_ROW_OF(LOADING | PLAN, "Layout", NONE),
     .help = "Shard an existing, unsharded collection by --shard-key. Without this option it "
             "stays unsharded, and a load with --shard-key is refused."},
    {.name = "index", SL_ROW_COMMON, SL_ROW_LIST("JSON"), SL_ROW_OF(LOADING | PLAN, "Layout", NONE),
     .help = "Build this index after the load, such as {\"v\": 1}, or with options, such as {\"key\": "
             "{\"v\": 1}, \"unique\": true}: unique indexes are built before the load, so that a "
             "duplicate is a reject. May be given several times.",
     .check = sl_check_index},
    {.name = "shard-keys", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(RESTORE, "Layout", FILE),
     .help = "YAML file with the shard keys of collections: 'shop.orders: {key: {customer: 1}}', "
             "also {_id: hashed}, and unique: true beside key. Collections that are not in the "
             "file are not sharded."},
    {.name = "compressor", SL_ROW_CHOICE("NAME", SL_COMPRESSORS),
     SL_ROW_OF(LOADING | PLAN, "Layout", NONE),
     .help = "Block compressor of the collection. Without this option, the server's default."},
    {.name = "clustered", SL_ROW_FLAG, SL_ROW_OF(LOADING | PLAN, "Layout", NONE),
     .help = "Create a clustered collection (server 5.3 and later): documents are stored in the "
             "order of _id, without a separate index of _id, and load faster."},

    {.name = "route", SL_ROW_CHOICE("ROUTE", "mongos|direct"), .fallback = "mongos",
     SL_ROW_OF(SENDING, "Delivery", NONE),
     .help = "mongos: send batches through the routers of --uri. direct: send each batch to the "
             "primary of the shard that owns its documents. direct relieves the routers; this "
             "machine must reach the shards, and the user must exist on them. Chunks must not move "
             "during the load, which is checked."},
    {.name = "part", SL_ROW_TEXT("K/N"), SL_ROW_OF(LOAD, "Delivery", DOCUMENTS),
     .help = "Share one load among N loaders on N machines: this one loads the K-th part of the "
             "blocks. Give all loaders the same sources and the same N, and each its own work "
             "directory.",
     .check = sl_check_part},
    {.name = "only-shards", SL_ROW_TEXT("NAME,..."), SL_ROW_OF(LOAD, "Delivery", DOCUMENTS),
     .help = "Share one load among loaders that run beside their shards: this one loads the "
             "blocks whose documents belong to the named shards. Give all loaders the same "
             "sources, and each its own work directory. Each shard must be named by exactly one "
             "loader. For collections sharded by {\"_id\": 1}.",
     .check = sl_check_shard_names},
    {.name = "write-concern", SL_ROW_COUNT("W", 1, 50), .choices = "majority",
     .fallback = "majority", SL_ROW_OF(SENDING, "Delivery", NONE),
     .help = "Number of replica set members that must acknowledge a batch, or majority. On a "
             "standalone mongod majority means written to the journal."},
    {.name = "rate-limit", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, 1000000000000), .choices = "unlimited",
     .fallback = "unlimited", SL_ROW_OF(LOAD | RELOAD | RESTORE | STATUS | DOCTOR, "Delivery", NONE),
     .help = "Largest number of documents per second, over all threads, to leave capacity for "
             "other clients of the cluster. status: the new limit of the running load; unlimited "
             "removes the limit. doctor: the planned rate."},
    {.name = "max-rejects", SL_ROW_COMMON, SL_ROW_COUNT("N|P%", 0, 0), .choices = "auto|unlimited|P%",
     .fallback = "auto", SL_ROW_OF(SENDING, "Delivery", NONE),
     .help = "Stop when more than this number or percentage of the records is rejected. auto: when "
             "the files of rejected records are larger than 64 MiB and four times the bytes that "
             "have been read from the sources."},
    {.name = "work-dir", SL_ROW_COMMON, SL_ROW_FILE("DIR", WORK_DIRECTORY), SL_ROW_OF(RUNNING | RESTORE, "Delivery", NONE),
     .help = "Work directory: the folder for rejects.tsv, the unchanged rejected records, "
             "run.json and the log. Without this option, a folder named after the target and the "
             "time is created in the current folder. verify: the folder for problems.tsv and "
             "verify.json, which are not written without this option."},
    {.name = "resume", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(LOAD | RESTORE, "Delivery", NONE),
     .help = "Complete an interrupted load: give the same command again, with --resume and the "
             "--work-dir that contains its journal. Batches that the journal lists as stored are "
             "not sent again, and --drop, which is to be repeated, does not drop again."},
    {.name = "timeout", SL_ROW_COUNT("SECONDS", 1, 86400), .fallback = "120",
     SL_ROW_OF(CONNECTED | MANAGING, "Delivery", NONE),
     .help = "How long a batch or a command may wait for the server's reply. After this time the "
             "connection is closed, and the batch or command is sent again on another one. A "
             "command that may take long (index builds, chunk moves, counts) fails only when the "
             "server does not reply on another connection either for this time. doctor: 10 if "
             "not given."},
    {.name = "retry-timeout", SL_ROW_COUNT("SECONDS", 1, 86400), .fallback = "300",
     SL_ROW_OF(SENDING, "Delivery", NONE),
     .help = "How long to retry a batch that cannot be delivered (election, server restart) before "
             "the load stops. --resume completes it later."},
    {.name = "suite", SL_ROW_COMMON, SL_ROW_LIST("NAME|FILE"), .file = SL_FILE_READ, SL_ROW_OF(TUNE | RELOAD, "Queries", NONE),
     .help = "Query suite: a YAML file, or the name of a built-in suite (`shardquery list`). "
             "reload: the queries that must be answered. tune with --try-compressors: the "
             "queries to time with each compressor; may be given several times."},
    {.name = "answers", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "JSON file with an object \"answers\" that maps names of queries to their expected "
             "documents. Overrides the answers in the suite."},
    {.name = "repeat", SL_ROW_COUNT("N", 1, 1000000), .fallback = "1", SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "How often each query runs. Only the first run counts for the time of the reload, "
             "because caches are cold after a disaster."},
    {.name = "objective", SL_ROW_COMMON, SL_ROW_TIME, SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "Longest allowed time from the start to the first correct answer, such as 90s, 15m "
             "or 4h. If the reload takes longer, the exit code is 5."},
    {.name = "sample", SL_ROW_COMMON, SL_ROW_TEXT("P%"), SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "Load only this share of the sources, such as 5%, into temporary collections beside "
             "the target, and predict the time of a full reload.",
     .check = sl_check_share},
    {.name = "sample-runs", SL_ROW_COUNT("N", 2, 9), .fallback = "3", SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "How often --sample loads the sample, and a quarter of it. Runs of the same size "
             "show how much the times of loads vary; more runs narrow the predicted range."},
    {.name = "compare", SL_ROW_FILE("LAST.json", READ), SL_ROW_OF(RELOAD, "Reload", NONE),
     .help = "Compare with an earlier reload, given as its reload.json."},
    {.name = "content", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(VERIFY, "Verification", NONE),
     .help = "Compare every document byte by byte, instead of counting."},
    {.name = "dump", SL_ROW_COMMON, SL_ROW_FILE("DUMP", READ), SL_ROW_OF(VERIFY, "Verification", NONE),
     .help = "Compare a mongodump folder or archive with the cluster, instead of sources: kinds, "
             "options, indexes and documents of all namespaces, or of those that --ns-include "
             "and --ns-exclude select."},
    {.name = "max-problems", SL_ROW_COUNT("N", 0, 1000000000), .fallback = "10",
     SL_ROW_OF(VERIFY, "Verification", NONE),
     .help = "Number of problems to print. With --work-dir, problems.tsv in that folder lists "
             "all of them, up to 64 MiB."},
    {.name = "no-verify", SL_ROW_FLAG, SL_ROW_OF(LOAD | RELOAD | PLAN | RESTORE, "Delivery", NONE),
     .help = "Skip the counts after the load: documents per range of _id, and documents that "
             "belong to no source."},
    {.name = "allow-other-writers", SL_ROW_FLAG, SL_ROW_OF(LOAD | RELOAD | RESTORE, "Delivery", NONE),
     .help = "Accept that other programs write to the collection during the load: documents "
             "outside of all sources that appear or disappear are only reported. Without this "
             "option they end the load with exit code 5."},

    {.name = "shards", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, 4096), .fallback = "1", SL_ROW_OF(PLAN, "Plan", NONE),
     .help = "Without --uri: plan for this number of empty shards."},
    {.name = "blocks", SL_ROW_COUNT("N", 1, 1000000), .fallback = "256",
     SL_ROW_OF(PLAN | DOCTOR, "Plan", NONE),
     .help = "Size of the sample: about this number of MiB of the sources' text, evenly spread. A "
             "larger sample narrows the predicted ranges."},
    {.name = "from", SL_ROW_COMMON, SL_ROW_FILE("RECORD.json", READ), SL_ROW_OF(PLAN, "Plan", NONE),
     .help = "Predict the time from an earlier run on the same or a similar cluster: its run.json, "
             "reload.json or tune.json. With --model: the figures of that load (run.json) replace "
             "those of the model."},
    {.name = "rate", SL_ROW_COUNT("N", 1, 0), SL_ROW_OF(PLAN, "Plan", NONE),
     .help = "Predict the time from this number of documents per second."},
    {.name = "model", SL_ROW_COMMON, SL_ROW_FILE("NAME|FILE", READ), SL_ROW_OF(PLAN, "Capacity model", NONE),
     .help = "Compute this model: isd-one-server, isd-hundred-shards, petabyte, mot-micro-shards, "
             "cluster, or a YAML file. If sources are given, the number and size of their "
             "documents replace the model's."},
    {.name = "set", SL_ROW_LIST("NAME=VALUE"), SL_ROW_OF(PLAN, "Capacity model", NONE),
     .help = "Change an input of the model: shards=100, or low..likely..high such as "
             "shard-rate=70k..100k..150k. May be given several times."},
    {.name = "sweep", SL_ROW_TEXT("NAME=V,V,..."), SL_ROW_OF(PLAN, "Capacity model", NONE),
     .help = "Compute the model for each of these values of an input, and print a table: "
             "shards=1,2,4,8,16."},

    {.name = "try-threads", SL_ROW_COMMON, SL_ROW_LIST("N,N,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Numbers of threads to try. Without this option: powers of two around the number of "
             "cores, or only the number of --threads.",
     .check = sl_check_thread_counts},
    {.name = "try-batch-sizes", SL_ROW_COMMON, SL_ROW_LIST("N,N,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Numbers of documents per insert to try. Without this option: 100 to 30000, or only "
             "the number of --batch-size.",
     .check = sl_check_batch_sizes},
    {.name = "try-compressors", SL_ROW_LIST("NAME,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Block compressors to try: none, snappy, zlib, zstd. Their storage sizes are compared "
             "too.",
     .check = sl_check_compressors},
    {.name = "try-clustered", SL_ROW_FLAG, SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Try both with and without --clustered."},
    {.name = "try-write-concerns", SL_ROW_LIST("W,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Write concerns to try, such as 1,majority.", .check = sl_check_write_concerns},
    {.name = "try-routes", SL_ROW_LIST("ROUTE,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Values of --route to try: mongos,direct.", .check = sl_check_routes},
    {.name = "try-wire-compression", SL_ROW_LIST("NAME,..."), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Values of --wire-compression to try: none, snappy, zlib, zstd. A compression that "
             "the server does not allow has no effect.",
     .check = sl_check_compressors},
    {.name = "search", SL_ROW_COMMON, SL_ROW_CHOICE("KIND", "adaptive|grid"), .fallback = "adaptive",
     SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "adaptive: choose each trial by the results so far; runs at most a quarter of the "
             "grid's trials, or 8 if that is more. grid: try every combination, --repeats times."},
    {.name = "repeats", SL_ROW_COUNT("N", 1, 20), .fallback = "3", SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "With --search grid: trials of each combination."},
    {.name = "max-trials", SL_ROW_COUNT("N", 1, 100000), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "With --search adaptive: largest number of trials."},
    {.name = "max-time", SL_ROW_COMMON, SL_ROW_TIME, SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Stop after this time, such as 15m, and recommend a setting from the trials so far."},
    {.name = "trial-bytes", SL_ROW_COMMON, SL_ROW_BYTES(1000000, 0), SL_ROW_OF(TUNE, "Trials", NONE),
     .help = "Amount of source text that each trial loads. Without this option, as much as takes "
             "some seconds to load."},
    {.name = "save", SL_ROW_COMMON, SL_ROW_FILE("FILE", WRITTEN), SL_ROW_OF(TUNE, "Output", NONE),
     .help = "Write the recommended options to this YAML file, for --config, instead of printing "
             "them."},

    {.name = "progress", SL_ROW_COMMON, SL_ROW_CHOICE("KIND", PROGRESS_CHOICES), .fallback = "auto",
     SL_ROW_OF((RUNNING & ~TUNE) | RESTORE, "Output", NONE),
     .help = "How progress is shown. tty: one line that is updated. plain: a new line each time. json: a JSON object per "
             "second, alone on standard output; results go to standard error. auto: tty on a "
             "terminal, otherwise plain."},
    {.name = "quiet", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(~0u, "Output", NONE),
     .help = "Print errors only: no results, progress or warnings."},
    {.name = "verbose", SL_ROW_FLAG, SL_ROW_OF(~0u, "Output", NONE),
     .help = "Print the tables and details that a command prints only if it takes some seconds."},
    {.name = "metrics-file", SL_ROW_FILE("FILE", WRITTEN), SL_ROW_OF(LOAD | RESTORE, "Output", NONE),
     .help = "Write the figures of the load to this file every second and at its end, in the text "
             "format of Prometheus, for the textfile collector of node_exporter (which reads "
             "files named *.prom)."},
    {.name = "report", SL_ROW_COMMON, SL_ROW_FILE("FILE", WRITTEN), SL_ROW_OF(CONNECTED, "Output", NONE),
     .help = "Write the JSON record of the run to this file too."},
    {.name = "html", SL_ROW_COMMON, SL_ROW_FILE("FILE", WRITTEN), .prints = REPORT, SL_ROW_OF(LOADING | REPORT, "Output", NONE),
     .help = "Write an HTML page with charts: one file, readable offline. report: - writes the "
             "page to standard output; without this option the report is printed as text."},
    {.name = "write", SL_ROW_FLAG, SL_ROW_OF(DOCTOR, "Target", NONE),
     .help = "Also time an insert of 200 documents with write concern majority, into a temporary "
             "collection shardload.doctor.ID of --db."},
    {.name = "json", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(STATUS | DOCTOR, "Output", NONE),
     .help = "Print the status, or the findings, as JSON instead of text."},
    {.name = "title", SL_ROW_TEXT("TEXT"), SL_ROW_OF(REPORT, "Output", NONE),
     .help = "Title of the report."},
    {.name = "ascii", SL_ROW_FLAG, SL_ROW_OF(REPORT, "Output", NONE),
     .help = "Use ASCII characters only. Without this option they are used if the locale is not "
             "UTF-8."},
    {0},
};
/* clang-format on */
