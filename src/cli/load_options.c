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
    {.name = "uri", .kind = SL_OPTION_STRING, .argument = "URI",
     .fallback = "mongodb://127.0.0.1:27017", .commands = CONNECTED, .group = "Target",
     .help = "Connection string of the cluster: name all its routers. Also a replica set or a "
             "lone mongod.",
     .secret = SL_CREDENTIALS},
    {.name = "db", .letter = 'd', .kind = SL_OPTION_STRING, .argument = "NAME",
     .commands = CONNECTED, .group = "Target",
     .help = "Database.",
     .check = sl_check_database},
    {.name = "collection", .letter = 'c', .kind = SL_OPTION_STRING, .argument = "NAME",
     .commands = CONNECTED, .group = "Target",
     .help = "Collection.",
     .check = sl_check_collection},
    {.name = "drop", .kind = SL_OPTION_FLAG, .commands = LOAD | RELOAD | PLAN, .group = "Target",
     .help = "Drop the collection first."},
    {.name = "again", .kind = SL_OPTION_FLAG, .commands = LOAD | PLAN, .group = "Target",
     .help = "Load sources that have been loaded before: their documents keep their ids, so what "
             "is there stays and what is missing comes back."},
    {.name = "another-pipe", .kind = SL_OPTION_FLAG, .commands = LOAD | RELOAD,
     .group = "Target",
     .help = "Load a pipe although the load of another one into the collection has not been "
             "completed: its documents are stored beside those. Without it that is refused, "
             "since it may be the same data."},
    {.name = "sink", .kind = SL_OPTION_STRING, .argument = "WHERE", .fallback = "cluster",
     .commands = LOAD, .group = "Target",
     .help = "cluster; null (parse and encode only, to measure the client); bson:FILE (a BSON "
             "dump; bson:- for standard output).",
     .check = sl_check_sink},

    SL_CONNECTION_ROWS(CONNECTED),

    {.name = "format", .kind = SL_OPTION_CHOICE, .argument = "NAME", .fallback = "auto",
     .choices = "auto|mot|isd|isd-lite|isd-csv|delimited|ycsb", .commands = READING,
     .group = "Source",
     .help = "auto looks at each file. mot: MOT vehicle tests. isd, isd-lite, isd-csv: NOAA "
             "weather records, packed, simplified or as global-hourly tables. delimited: any "
             "file with a header or a --schema. ycsb: no file; --records are made up."},
    {.name = "schema", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = READING,
     .group = "Source",
     .help = "Columns and their types for --format delimited, or other key names for isd, in "
             "YAML."},
    {.name = "names", .kind = SL_OPTION_CHOICE, .argument = "KIND", .fallback = "short",
     .choices = "short|long", .commands = READING, .group = "Source",
     .help = "Keys of the documents: short (m) or as published (test_mileage)."},
    {.name = "encoding", .kind = SL_OPTION_CHOICE, .argument = "NAME", .fallback = "utf-8",
     .choices = "utf-8|latin-1", .commands = READING, .group = "Source",
     .help = "What text that is not UTF-8 means: with utf-8 its record is rejected, with latin-1 "
             "it is read as windows-1252, which contains Latin-1."},
    {.name = "trim", .kind = SL_OPTION_FLAG, .commands = READING, .group = "Source",
     .help = "Cut blanks at both ends of every field."},
    {.name = "missing", .kind = SL_OPTION_CHOICE, .argument = "KIND", .fallback = "omit",
     .choices = "omit|raw", .commands = READING, .group = "Source",
     .help = "isd: leave out what is missing, or keep the published numbers that stand for it "
             "(999.9)."},
    {.name = "include", .kind = SL_OPTION_STRING, .argument = "GLOB", .commands = READING,
     .group = "Source",
     .help = "Of the files found in folders, take only those whose name matches."},
    {.name = "skip-other", .kind = SL_OPTION_FLAG, .commands = LOAD | RELOAD | PLAN | VERIFY,
     .group = "Source",
     .help = "Files of folders and entries of archives that are not recognised, or hold other "
             "records than the first one, are listed and not loaded. Without it they end the "
             "load with exit code 3."},
    {.name = "documents", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "3",
     .maximum = 1000000, .commands = INSPECT, .group = "Source",
     .help = "How many documents to show of each source."},

    {.name = "records", .kind = SL_OPTION_COUNT, .argument = "N", .minimum = 1,
     .maximum = 100000000000000, .commands = READING, .group = MADE_UP,
     .help = "For --format ycsb: how many records, like 100M. Instead of a SOURCE."},
    {.name = "field-count", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "8",
     .maximum = SL_YCSB_FIELDS_MAX, .commands = READING, .group = MADE_UP,
     .help = "Fields of random bytes, f0 and so on."},
    {.name = "field-length", .kind = SL_OPTION_BYTES, .argument = "SIZE", .fallback = "100",
     .maximum = SL_BSON_DOCUMENT_MAX, .commands = READING, .group = MADE_UP,
     .help = "Bytes of each of them."},
    {.name = "integer-count", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "8",
     .maximum = SL_YCSB_FIELDS_MAX, .commands = READING, .group = MADE_UP,
     .help = "Integers from 0 to 65535, n0 and so on."},
    {.name = "skew", .kind = SL_OPTION_STRING, .argument = "THETA", .fallback = "0.99",
     .commands = READING, .group = MADE_UP,
     .help = "Exponent of Zipf's law for the integers: k is (k+1)^THETA times less frequent than "
             "0. With 0 all are alike.",
     .check = sl_check_skew},
    {.name = "seed", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "1",
     .commands = READING, .group = MADE_UP,
     .help = "Another seed makes other records. The same options always make the same."},

    {.name = "threads", .letter = 'j', .kind = SL_OPTION_COUNT, .argument = "N",
     .fallback = "auto", .choices = "auto", .minimum = 1, .maximum = SL_THREADS_MAX,
     .commands = RUNNING, .group = "Speed",
     .help = "Worker threads, each with a connection of its own. auto: two per core; a load goes "
             "on to more or fewer of them while it runs, where that is faster. It begins with "
             "the number of the configuration file, if there is one (-j auto --config fast.yaml)."},
    {.name = "batch-size", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "auto",
     .choices = "auto", .minimum = 1, .maximum = SL_BATCH_SIZE_MAX, .commands = LOADING,
     .group = "Speed",
     .help = "Documents per insert. auto: 20,000, or the number of the configuration file; a "
             "load goes on to more or fewer where that is faster."},
    {.name = "batch-bytes", .kind = SL_OPTION_BYTES, .argument = "SIZE", .fallback = "16MiB",
     .minimum = 65536, .maximum = 47000000, .commands = LOADING, .group = "Speed",
     .help = "Bytes per insert; whichever of the two is reached first."},

    {.name = "shard-key", .kind = SL_OPTION_STRING, .argument = "JSON",
     .fallback = "{\"_id\": 1}", .commands = LOADING | PLAN, .group = "Layout",
     .help = "On a sharded cluster: fields that are 1, one of which may be \"hashed\". {\"_id\": "
             "1} is pre-split so that all shards are busy from the first second; none leaves the "
             "collection unsharded.",
     .check = sl_check_shard_key},
    {.name = "shard-existing", .kind = SL_OPTION_FLAG, .commands = LOADING | PLAN,
     .group = "Layout",
     .help = "Shard the collection by --shard-key also where it exists and is not sharded. "
             "Without this option such a collection stays unsharded, and is refused where "
             "--shard-key is given."},
    {.name = "index", .kind = SL_OPTION_LIST, .argument = "JSON", .commands = LOADING | PLAN,
     .group = "Layout",
     .help = "Build this index after the load, like {\"v\": 1}. May be given several times.",
     .check = sl_check_key},
    {.name = "compressor", .kind = SL_OPTION_CHOICE, .argument = "NAME",
     .choices = "none|snappy|zlib|zstd", .commands = LOADING | PLAN, .group = "Layout",
     .help = "Block compressor of the collection, instead of the server's default."},
    {.name = "clustered", .kind = SL_OPTION_FLAG, .commands = LOADING | PLAN, .group = "Layout",
     .help = "Make the collection clustered by _id (server 5.3 and later): no index of _id "
             "beside the documents, and a faster load."},

    {.name = "route", .kind = SL_OPTION_CHOICE, .argument = "WAY", .fallback = "mongos",
     .choices = "mongos|direct", .commands = LOADING, .group = "Delivery",
     .help = "Which way batches take: through the routers of --uri, or straight to the primary "
             "of the shard that owns them. direct spares the routers; it needs shards that can "
             "be reached from here and let the user in, and nothing may move chunks meanwhile, "
             "which is checked."},
    {.name = "part", .kind = SL_OPTION_STRING, .argument = "K/N", .commands = LOAD,
     .group = "Delivery",
     .help = "One load shared by N loaders, on as many machines: this one takes the K-th part of "
             "the blocks. All get the same sources and the same N, and a work directory each.",
     .check = sl_check_part},
    {.name = "only-shards", .kind = SL_OPTION_STRING, .argument = "NAME,...", .commands = LOAD,
     .group = "Delivery",
     .help = "One load shared by loaders beside their shards: this one takes the blocks whose "
             "documents lie on the shards named. All get the same sources, and a work directory "
             "each; each shard is named to one of them. For collections sharded by {\"_id\": 1}.",
     .check = sl_check_shard_names},
    {.name = "write-concern", .kind = SL_OPTION_COUNT, .argument = "W", .fallback = "majority",
     .choices = "majority", .minimum = 1, .maximum = 50, .commands = LOADING,
     .group = "Delivery",
     .help = "Members that must have a batch before it counts. majority means, on a lone mongod, "
             "in the journal."},
    {.name = "rate-limit", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "unlimited",
     .choices = "unlimited", .minimum = 1, .maximum = 1000000000000, .commands = LOAD | RELOAD,
     .group = "Delivery",
     .help = "Documents per second, over all threads: leave the rest of the cluster to others."},
    {.name = "max-rejects", .kind = SL_OPTION_COUNT, .argument = "N|P%", .fallback = "unlimited",
     .choices = "unlimited|P%", .commands = LOADING, .group = "Delivery",
     .help = "Stop when more records than this, or than this percentage, are rejected."},
    {.name = "work-dir", .kind = SL_OPTION_STRING, .argument = "DIR", .commands = RUNNING,
     .group = "Delivery",
     .help = "Folder for rejects.tsv, the raw rejected records, run.json and the log. Without "
             "it, one named after target and time is made here. verify: for problems.tsv and "
             "verify.json, if it is given."},
    {.name = "resume", .kind = SL_OPTION_FLAG, .commands = LOAD, .group = "Delivery",
     .help = "Complete the load that was interrupted, whose journal is in --work-dir: the same "
             "command again. What is known to be there is not sent again; --drop then drops "
             "nothing."},
    {.name = "timeout", .kind = SL_OPTION_COUNT, .argument = "SECONDS", .fallback = "120",
     .minimum = 1, .maximum = 86400, .commands = CONNECTED, .group = "Delivery",
     .help = "How long a batch or a command may wait for the server's answer before the "
             "connection is given up and it is sent again on another. Where an answer may take "
             "long (index builds, moves of chunks, counts): how long the server may be silent on "
             "other connections too."},
    {.name = "retry-timeout", .kind = SL_OPTION_COUNT, .argument = "SECONDS", .fallback = "300",
     .minimum = 1, .maximum = 86400, .commands = LOADING, .group = "Delivery",
     .help = "How long a batch that cannot be delivered (an election, a server that restarts) is "
             "tried again before the load stops, to be resumed."},
    {.name = "suite", .kind = SL_OPTION_LIST, .argument = "NAME|FILE", .commands = TUNE | RELOAD,
     .group = "Queries",
     .help = "A YAML file, or the name of a suite that is built in (`shardquery list`). reload: "
             "the queries that must be answered. tune, with --try-compressors: those to time on "
             "what each of them stores; may be given several times."},
    {.name = "answers", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = RELOAD,
     .group = "Drill",
     .help = "JSON file whose object \"answers\" has the expected documents of queries by name; "
             "wins over what the suite expects."},
    {.name = "repeat", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "1", .minimum = 1,
     .maximum = 1000000, .commands = RELOAD, .group = "Drill",
     .help = "How often each query runs. The first run counts; nobody warms up after a disaster."},
    {.name = "objective", .kind = SL_OPTION_SECONDS, .argument = "TIME", .commands = RELOAD,
     .group = "Drill",
     .help = "How long it may take from nothing to the first correct query, like 90s, 15m or 4h. "
             "Exit code 5 when it takes longer."},
    {.name = "sample", .kind = SL_OPTION_STRING, .argument = "P%", .commands = RELOAD,
     .group = "Drill",
     .help = "Load this share of the sources only, like 5%, into throw-away collections beside "
             "the target, and predict the whole.",
     .check = sl_check_share},
    {.name = "compare", .kind = SL_OPTION_STRING, .argument = "LAST.json", .commands = RELOAD,
     .group = "Drill",
     .help = "Compare with an earlier drill, by its reload.json."},
    {.name = "content", .kind = SL_OPTION_FLAG, .commands = VERIFY, .group = "Verification",
     .help = "Compare every document to the byte, instead of counting."},
    {.name = "max-problems", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "100",
     .maximum = 1000000000, .commands = VERIFY, .group = "Verification",
     .help = "How many problems to show; with --work-dir all of them are in problems.tsv."},
    {.name = "no-verify", .kind = SL_OPTION_FLAG, .commands = LOAD | RELOAD | PLAN,
     .group = "Delivery",
     .help = "Do not count the documents of each range, and those of no source, at the end."},
    {.name = "allow-other-writers", .kind = SL_OPTION_FLAG, .commands = LOAD | RELOAD,
     .group = "Delivery",
     .help = "Another program writes to the collection while it is loaded: documents of no "
             "source that come or go meanwhile are reported, instead of ending the load with "
             "exit code 5."},

    {.name = "shards", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "1", .minimum = 1,
     .maximum = 4096, .commands = PLAN, .group = "Plan",
     .help = "Without --uri: lay out for this many shards, all empty."},
    {.name = "blocks", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "256", .minimum = 1,
     .maximum = 1000000, .commands = PLAN, .group = "Plan",
     .help = "How many MiB of the sources' text to look at, about, evenly spread. More make the "
             "ranges narrower."},
    {.name = "from", .kind = SL_OPTION_STRING, .argument = "RECORD.json", .commands = PLAN,
     .group = "Plan",
     .help = "Predict by what this load (run.json), reload or tune showed, on the same cluster "
             "or one like it."},
    {.name = "rate", .kind = SL_OPTION_COUNT, .argument = "N", .minimum = 1, .commands = PLAN,
     .group = "Plan",
     .help = "Predict by this many documents a second."},
    {.name = "model", .kind = SL_OPTION_STRING, .argument = "NAME|FILE", .commands = PLAN,
     .group = "Capacity model",
     .help = "Compute this model: isd-one-server, isd-hundred-shards, isd-hundred-shards-direct, "
             "petabyte, mot-micro-shards, mot-replica-sets, or a YAML file. Sources, if any, "
             "take the place of its documents."},
    {.name = "set", .kind = SL_OPTION_LIST, .argument = "NAME=VALUE", .commands = PLAN,
     .group = "Capacity model",
     .help = "What if: shards=100, router-rate=120k..270k..540k. May be given several times."},
    {.name = "sweep", .kind = SL_OPTION_STRING, .argument = "NAME=V,V,...", .commands = PLAN,
     .group = "Capacity model",
     .help = "A table of what each of these values would make of it, like shards=1,2,4,8,16."},
    {.name = "try-threads", .kind = SL_OPTION_LIST, .argument = "N,N,...", .commands = TUNE,
     .group = TRIALS,
     .help = "Numbers of threads to try. Without it powers of two around the number of cores, or "
             "what --threads says.",
     .check = sl_check_thread_counts},
    {.name = "try-batch-sizes", .kind = SL_OPTION_LIST, .argument = "N,N,...", .commands = TUNE,
     .group = TRIALS,
     .help = "Documents per insert to try. Without it 100 to 30000, or what --batch-size says.",
     .check = sl_check_batch_sizes},
    {.name = "try-compressors", .kind = SL_OPTION_LIST, .argument = "NAME,...", .commands = TUNE,
     .group = TRIALS,
     .help = "Block compressors to try: none, snappy, zlib, zstd. What they store is compared as "
             "well.",
     .check = sl_check_compressors},
    {.name = "try-clustered", .kind = SL_OPTION_FLAG, .commands = TUNE, .group = TRIALS,
     .help = "Try the collection clustered by _id and not."},
    {.name = "try-write-concerns", .kind = SL_OPTION_LIST, .argument = "W,...", .commands = TUNE,
     .group = TRIALS,
     .help = "Write concerns to try, like 1,majority.",
     .check = sl_check_write_concerns},
    {.name = "try-routes", .kind = SL_OPTION_LIST, .argument = "WAY,...", .commands = TUNE,
     .group = TRIALS,
     .help = "Ways to try that batches take: mongos,direct.",
     .check = sl_check_routes},
    {.name = "try-wire-compression", .kind = SL_OPTION_LIST, .argument = "NAME,...",
     .commands = TUNE, .group = TRIALS,
     .help = "Values of --wire-compression to try: none, snappy, zlib, zstd. The server must "
             "allow them, or nothing is compressed.",
     .check = sl_check_compressors},
    {.name = "search", .kind = SL_OPTION_CHOICE, .argument = "KIND", .fallback = "adaptive",
     .choices = "adaptive|grid", .commands = TUNE, .group = TRIALS,
     .help = "adaptive: each trial is chosen by what is known already, a quarter of the grid at "
             "most, but 8 where that is more. grid: every setting, --repeats times."},
    {.name = "repeats", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "3", .minimum = 1,
     .maximum = 20, .commands = TUNE, .group = TRIALS,
     .help = "Trials of each setting in a full grid."},
    {.name = "max-trials", .kind = SL_OPTION_COUNT, .argument = "N", .minimum = 1,
     .maximum = 100000, .commands = TUNE, .group = TRIALS,
     .help = "Trials of an adaptive search at most, instead of a quarter of the full grid's or 8."},
    {.name = "max-time", .kind = SL_OPTION_SECONDS, .argument = "TIME", .commands = TUNE,
     .group = TRIALS,
     .help = "Stop after this time, like 15m, with what is known by then."},
    {.name = "trial-bytes", .kind = SL_OPTION_BYTES, .argument = "SIZE", .minimum = 1 << 20,
     .commands = TUNE, .group = TRIALS,
     .help = "Text of the sources that each trial loads. Without it, some seconds' worth."},
    {.name = "save", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = TUNE,
     .group = "Output",
     .help = "Write the recommended options here, as YAML for --config, instead of printing them."},

    {.name = "progress", .kind = SL_OPTION_CHOICE, .argument = "KIND", .fallback = "auto",
     .choices = "auto|tty|plain|json|none", .commands = RUNNING & ~TUNE, .group = "Output",
     .help = "A line that stays (tty), lines (plain), a JSON object per second (json); auto "
             "chooses tty on a terminal and plain elsewhere."},
    {.name = "report", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = CONNECTED,
     .group = "Output",
     .help = "Write the run record here too."},
    {.name = "html", .kind = SL_OPTION_STRING, .argument = "FILE",
     .commands = LOADING | SL_COMMAND_REPORT, .group = "Output",
     .help = "Write a page of pictures here, to be opened in a browser: one file that needs no "
             "network. report: - for standard output; without it, text for a terminal."},
    {.name = "title", .kind = SL_OPTION_STRING, .argument = "TEXT",
     .commands = SL_COMMAND_REPORT, .group = "Output",
     .help = "Title of the report."},
    {.name = "ascii", .kind = SL_OPTION_FLAG, .commands = SL_COMMAND_REPORT, .group = "Output",
     .help = "Draw with ASCII characters only; without it, as the locale allows."},
    {0},
};
