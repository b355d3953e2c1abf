/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shardload: one row each, with its help, for all commands that take it. It is long
 * because the table is. */
#include "load_options.h"

#include <shardload/bson_writer.h>
#include <shardload/ycsb.h>

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
    LOADING = LOAD | TUNE | RELOAD,
    RUNNING = LOADING | VERIFY,
    CONNECTED = RUNNING | PLAN,
    READING = CONNECTED | INSPECT,
};

#define TRIALS "Trials"
#define MADE_UP "Made-up records"

const sl_option_row sl_load_rows[] = {
    {"uri", 0, SL_OPTION_STRING, "URI", "mongodb://127.0.0.1:27017", NULL, 0, 0, CONNECTED,
     "Target",
     "Connection string of the cluster: name all its routers. Also a replica set or a lone "
     "mongod.",
     SL_CREDENTIALS, NULL},
    {"db", 'd', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, CONNECTED, "Target", "Database.", false,
     sl_check_database},
    {"collection", 'c', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, CONNECTED, "Target",
     "Collection.", false, sl_check_collection},
    {"drop", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | RELOAD | PLAN, "Target",
     "Drop the collection first.", false, NULL},
    {"again", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | PLAN, "Target",
     "Load sources that have been loaded before: their documents keep their ids, so what is there "
     "stays and what is missing comes back.",
     false, NULL},
    {"another-pipe", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | RELOAD, "Target",
     "Load a pipe although the load of another one into the collection has not been completed: its "
     "documents are stored beside those. Without it that is refused, since it may be the same "
     "data.",
     false, NULL},
    {"sink", 0, SL_OPTION_STRING, "WHERE", "cluster", NULL, 0, 0, LOAD, "Target",
     "cluster; null (parse and encode only, to measure the client); bson:FILE (a BSON dump; "
     "bson:- for standard output).",
     false, sl_check_sink},

    SL_CONNECTION_ROWS(CONNECTED),

    {"format", 0, SL_OPTION_CHOICE, "NAME", "auto", "auto|mot|isd|isd-lite|isd-csv|delimited|ycsb",
     0, 0, READING, "Source",
     "auto looks at each file. mot: MOT vehicle tests. isd, isd-lite, isd-csv: NOAA weather "
     "records, "
     "packed, simplified or as global-hourly tables. delimited: any file with a header or a "
     "--schema. ycsb: no file; --records are made up.",
     false, NULL},
    {"schema", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, READING, "Source",
     "Columns and their types for --format delimited, or other key names for isd, in YAML.", false,
     NULL},
    {"names", 0, SL_OPTION_CHOICE, "KIND", "short", "short|long", 0, 0, READING, "Source",
     "Keys of the documents: short (m) or as published (test_mileage).", false, NULL},
    {"encoding", 0, SL_OPTION_CHOICE, "NAME", "utf-8", "utf-8|latin-1", 0, 0, READING, "Source",
     "What text that is not UTF-8 means: with utf-8 its record is rejected, with latin-1 "
     "it is read as windows-1252, which contains Latin-1.",
     false, NULL},
    {"trim", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, READING, "Source",
     "Cut blanks at both ends of every field.", false, NULL},
    {"missing", 0, SL_OPTION_CHOICE, "KIND", "omit", "omit|raw", 0, 0, READING, "Source",
     "isd: leave out what is missing, or keep the published numbers that stand for it (999.9).",
     false, NULL},
    {"include", 0, SL_OPTION_STRING, "GLOB", NULL, NULL, 0, 0, READING, "Source",
     "Of the files found in folders, take only those whose name matches.", false, NULL},
    {"skip-other", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | RELOAD | PLAN | VERIFY, "Source",
     "Files of folders and entries of archives that are not recognised, or hold other records than the "
     "first one, are listed and not loaded. Without it they end the load with exit code 3.", false,
     NULL},
    {"documents", 0, SL_OPTION_COUNT, "N", "3", NULL, 0, 1000000, INSPECT, "Source",
     "How many documents to show of each source.", false, NULL},

    {"records", 0, SL_OPTION_COUNT, "N", NULL, NULL, 1, 100000000000000, READING, MADE_UP,
     "For --format ycsb: how many records, like 100M. Instead of a SOURCE.", false, NULL},
    {"field-count", 0, SL_OPTION_COUNT, "N", "8", NULL, 0, SL_YCSB_FIELDS_MAX, READING, MADE_UP,
     "Fields of random bytes, f0 and so on.", false, NULL},
    {"field-length", 0, SL_OPTION_BYTES, "SIZE", "100", NULL, 0, SL_BSON_DOCUMENT_MAX, READING,
     MADE_UP, "Bytes of each of them.", false, NULL},
    {"integer-count", 0, SL_OPTION_COUNT, "N", "8", NULL, 0, SL_YCSB_FIELDS_MAX, READING, MADE_UP,
     "Integers from 0 to 65535, n0 and so on.", false, NULL},
    {"skew", 0, SL_OPTION_STRING, "THETA", "0.99", NULL, 0, 0, READING, MADE_UP,
     "Exponent of Zipf's law for the integers: k is (k+1)^THETA times less frequent than 0. With 0 "
     "all are alike.",
     false, sl_check_skew},
    {"seed", 0, SL_OPTION_COUNT, "N", "1", NULL, 0, 0, READING, MADE_UP,
     "Another seed makes other records. The same options always make the same.", false, NULL},

    {"threads", 'j', SL_OPTION_COUNT, "N", "auto", "auto", 1, SL_THREADS_MAX, RUNNING, "Speed",
     "Worker threads, each with a connection of its own. auto: two per core; a load goes on to "
     "more "
     "or fewer of them while it runs, where that is faster. It begins with the number of the "
     "configuration file, if there is one (-j auto --config fast.yaml).",
     false, NULL},
    {"batch-size", 0, SL_OPTION_COUNT, "N", "auto", "auto", 1, SL_BATCH_SIZE_MAX, LOADING, "Speed",
     "Documents per insert. auto: 20,000, or the number of the configuration file; a load goes on "
     "to "
     "more or fewer where that is faster.",
     false, NULL},
    {"batch-bytes", 0, SL_OPTION_BYTES, "SIZE", "16MiB", NULL, 65536, 47000000, LOADING, "Speed",
     "Bytes per insert; whichever of the two is reached first.", false, NULL},

    {"shard-key", 0, SL_OPTION_STRING, "JSON", "{\"_id\": 1}", NULL, 0, 0, LOADING | PLAN, "Layout",
     "On a sharded cluster: fields that are 1, one of which may be \"hashed\". {\"_id\": 1} is "
     "pre-split so that all shards are busy from the first second; none leaves the collection "
     "unsharded.",
     false, sl_check_shard_key},
    {"shard-existing", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOADING | PLAN, "Layout",
     "Shard the collection by --shard-key also where it exists and is not sharded. Without this "
     "option such a collection stays unsharded, and is refused where --shard-key is given.", false,
     NULL},
    {"index", 0, SL_OPTION_LIST, "JSON", NULL, NULL, 0, 0, LOADING | PLAN, "Layout",
     "Build this index after the load, like {\"v\": 1}. May be given several times.", false,
     sl_check_key},
    {"compressor", 0, SL_OPTION_CHOICE, "NAME", NULL, "none|snappy|zlib|zstd", 0, 0, LOADING | PLAN,
     "Layout", "Block compressor of the collection, instead of the server's default.", false, NULL},
    {"clustered", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOADING | PLAN, "Layout",
     "Make the collection clustered by _id (server 5.3 and later): no index of _id beside the "
     "documents, and a faster load.",
     false, NULL},

    {"route", 0, SL_OPTION_CHOICE, "WAY", "mongos", "mongos|direct", 0, 0, LOADING, "Delivery",
     "Which way batches take: through the routers of --uri, or straight to the primary of the "
     "shard "
     "that owns them. direct spares the routers; it needs shards that can be reached from here and "
     "let the user in, and nothing may move chunks meanwhile, which is checked.",
     false, NULL},
    {"part", 0, SL_OPTION_STRING, "K/N", NULL, NULL, 0, 0, LOAD, "Delivery",
     "One load shared by N loaders, on as many machines: this one takes the K-th part of the "
     "blocks. "
     "All get the same sources and the same N, and a work directory each.",
     false, sl_check_part},
    {"only-shards", 0, SL_OPTION_STRING, "NAME,...", NULL, NULL, 0, 0, LOAD, "Delivery",
     "One load shared by loaders beside their shards: this one takes the blocks whose documents "
     "lie "
     "on the shards named. All get the same sources, and a work directory each; each shard is "
     "named "
     "to one of them. For collections sharded by {\"_id\": 1}.",
     false, sl_check_shard_names},
    {"write-concern", 0, SL_OPTION_COUNT, "W", "majority", "majority", 1, 50, LOADING, "Delivery",
     "Members that must have a batch before it counts. majority means, on a lone mongod, in the "
     "journal.",
     false, NULL},
    {"rate-limit", 0, SL_OPTION_COUNT, "N", "unlimited", "unlimited", 1, 1000000000000,
     LOAD | RELOAD, "Delivery",
     "Documents per second, over all threads: leave the rest of the cluster to others.", false,
     NULL},
    {"max-rejects", 0, SL_OPTION_COUNT, "N|P%", "unlimited", "unlimited|P%", 0, 0, LOADING,
     "Delivery", "Stop when more records than this, or than this percentage, are rejected.", false,
     NULL},
    {"work-dir", 0, SL_OPTION_STRING, "DIR", NULL, NULL, 0, 0, RUNNING, "Delivery",
     "Folder for rejects.tsv, the raw rejected records, run.json and the log. Without it, one "
     "named "
     "after target and time is made here. verify: for problems.tsv and verify.json, if it is "
     "given.",
     false, NULL},
    {"resume", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Delivery",
     "Complete the load that was interrupted, whose journal is in --work-dir: the same command again. "
     "What is known to be there is not sent again; --drop then drops nothing.", false, NULL},
    {"timeout", 0, SL_OPTION_COUNT, "SECONDS", "120", NULL, 1, 86400, CONNECTED, "Delivery",
     "How long a batch or a command may wait for the server's answer before the connection is given "
     "up and it is sent again on another. Where an answer may take long (index builds, moves of "
     "chunks, counts): how long the server may be silent on other connections too.", false, NULL},
    {"retry-timeout", 0, SL_OPTION_COUNT, "SECONDS", "300", NULL, 1, 86400, LOADING, "Delivery",
     "How long a batch that cannot be delivered (an election, a server that restarts) is tried "
     "again "
     "before the load stops, to be resumed.",
     false, NULL},
    {"suite", 0, SL_OPTION_LIST, "NAME|FILE", NULL, NULL, 0, 0, TUNE | RELOAD, "Queries",
     "A YAML file, or the name of a suite that is built in (`shardquery list`). reload: the "
     "queries "
     "that must be answered. tune, with --try-compressors: those to time on what each of them "
     "stores; may be given several times.",
     false, NULL},
    {"answers", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, RELOAD, "Drill",
     "JSON file whose object \"answers\" has the expected documents of queries by name; wins over "
     "what the suite expects.",
     false, NULL},
    {"repeat", 0, SL_OPTION_COUNT, "N", "1", NULL, 1, 1000000, RELOAD, "Drill",
     "How often each query runs. The first run counts; nobody warms up after a disaster.", false,
     NULL},
    {"objective", 0, SL_OPTION_SECONDS, "TIME", NULL, NULL, 0, 0, RELOAD, "Drill",
     "How long it may take from nothing to the first correct query, like 90s, 15m or 4h. Exit code "
     "5 "
     "when it takes longer.",
     false, NULL},
    {"sample", 0, SL_OPTION_STRING, "P%", NULL, NULL, 0, 0, RELOAD, "Drill",
     "Load this share of the sources only, like 5%, into throw-away collections beside the target, "
     "and predict the whole.",
     false, sl_check_share},
    {"compare", 0, SL_OPTION_STRING, "LAST.json", NULL, NULL, 0, 0, RELOAD, "Drill",
     "Compare with an earlier drill, by its reload.json.", false, NULL},
    {"content", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, VERIFY, "Verification",
     "Compare every document to the byte, instead of counting.", false, NULL},
    {"max-problems", 0, SL_OPTION_COUNT, "N", "100", NULL, 0, 1000000000, VERIFY, "Verification",
     "How many problems to show; with --work-dir all of them are in problems.tsv.", false, NULL},
    {"no-verify", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | RELOAD | PLAN, "Delivery",
     "Do not count the documents of each range, and those of no source, at the end.", false, NULL},
    {"allow-other-writers", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD | RELOAD, "Delivery",
     "Another program writes to the collection while it is loaded: documents of no source that come or "
     "go meanwhile are reported, instead of ending the load with exit code 5.", false, NULL},

    {"shards", 0, SL_OPTION_COUNT, "N", "1", NULL, 1, 4096, PLAN, "Plan",
     "Without --uri: lay out for this many shards, all empty.", false, NULL},
    {"blocks", 0, SL_OPTION_COUNT, "N", "256", NULL, 1, 1000000, PLAN, "Plan",
     "How many MiB of the sources' text to look at, about, evenly spread. More make the ranges "
     "narrower.",
     false, NULL},
    {"from", 0, SL_OPTION_STRING, "RECORD.json", NULL, NULL, 0, 0, PLAN, "Plan",
     "Predict by what this load (run.json), reload or tune showed, on the same cluster or one like "
     "it.",
     false, NULL},
    {"rate", 0, SL_OPTION_COUNT, "N", NULL, NULL, 1, 0, PLAN, "Plan",
     "Predict by this many documents a second.", false, NULL},
    {"model", 0, SL_OPTION_STRING, "NAME|FILE", NULL, NULL, 0, 0, PLAN, "Capacity model",
     "Compute this model: isd-one-server, isd-hundred-shards, isd-hundred-shards-direct, petabyte, "
     "mot-micro-shards, mot-replica-sets, or a YAML file. Sources, if any, take the place of its "
     "documents.",
     false, NULL},
    {"set", 0, SL_OPTION_LIST, "NAME=VALUE", NULL, NULL, 0, 0, PLAN, "Capacity model",
     "What if: shards=100, router-rate=120k..270k..540k. May be given several times.", false, NULL},
    {"sweep", 0, SL_OPTION_STRING, "NAME=V,V,...", NULL, NULL, 0, 0, PLAN, "Capacity model",
     "A table of what each of these values would make of it, like shards=1,2,4,8,16.", false, NULL},
    {"try-threads", 0, SL_OPTION_LIST, "N,N,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Numbers of threads to try. Without it powers of two around the number of cores, or what "
     "--threads says.",
     false, sl_check_thread_counts},
    {"try-batch-sizes", 0, SL_OPTION_LIST, "N,N,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Documents per insert to try. Without it 100 to 30000, or what --batch-size says.", false,
     sl_check_batch_sizes},
    {"try-compressors", 0, SL_OPTION_LIST, "NAME,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Block compressors to try: none, snappy, zlib, zstd. What they store is compared as well.",
     false, sl_check_compressors},
    {"try-clustered", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, TUNE, TRIALS,
     "Try the collection clustered by _id and not.", false, NULL},
    {"try-write-concerns", 0, SL_OPTION_LIST, "W,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Write concerns to try, like 1,majority.", false, sl_check_write_concerns},
    {"try-routes", 0, SL_OPTION_LIST, "WAY,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Ways to try that batches take: mongos,direct.", false, sl_check_routes},
    {"try-wire-compression", 0, SL_OPTION_LIST, "NAME,...", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Values of --wire-compression to try: none, snappy, zlib, zstd. The server must allow them, "
     "or "
     "nothing is compressed.",
     false, sl_check_compressors},
    {"search", 0, SL_OPTION_CHOICE, "KIND", "adaptive", "adaptive|grid", 0, 0, TUNE, TRIALS,
     "adaptive: each trial is chosen by what is known already, a quarter of the grid at most, but "
     "8 "
     "where that is more. grid: every setting, --repeats times.",
     false, NULL},
    {"repeats", 0, SL_OPTION_COUNT, "N", "3", NULL, 1, 20, TUNE, TRIALS,
     "Trials of each setting in a full grid.", false, NULL},
    {"max-trials", 0, SL_OPTION_COUNT, "N", NULL, NULL, 1, 100000, TUNE, TRIALS,
     "Trials of an adaptive search at most, instead of a quarter of the full grid's or 8.", false,
     NULL},
    {"max-time", 0, SL_OPTION_SECONDS, "TIME", NULL, NULL, 0, 0, TUNE, TRIALS,
     "Stop after this time, like 15m, with what is known by then.", false, NULL},
    {"trial-bytes", 0, SL_OPTION_BYTES, "SIZE", NULL, NULL, 1 << 20, 0, TUNE, TRIALS,
     "Text of the sources that each trial loads. Without it, some seconds' worth.", false, NULL},
    {"save", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, TUNE, "Output",
     "Write the recommended options here, as YAML for --config, instead of printing them.", false,
     NULL},

    {"progress", 0, SL_OPTION_CHOICE, "KIND", "auto", "auto|tty|plain|json|none", 0, 0,
     RUNNING & ~TUNE, "Output",
     "A line that stays (tty), lines (plain), a JSON object per second (json); auto "
     "chooses tty on a terminal and plain elsewhere.",
     false, NULL},
    {"report", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, CONNECTED, "Output",
     "Write the run record here too.", false, NULL},
    {"html", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, LOADING | SL_COMMAND_REPORT, "Output",
     "Write a page of pictures here, to be opened in a browser: one file that needs no network. "
     "report: - for standard output; without it, text for a terminal.",
     false, NULL},
    {"title", 0, SL_OPTION_STRING, "TEXT", NULL, NULL, 0, 0, SL_COMMAND_REPORT, "Output",
     "Title of the report.", false, NULL},
    {"ascii", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, SL_COMMAND_REPORT, "Output",
     "Draw with ASCII characters only; without it, as the locale allows.", false, NULL},
    {0},
};
