/* SPDX-License-Identifier: Apache-2.0 */
/* shardload: the program's commands and their help. */
#include "commands.h"
#include "program.h"

#include <string.h>

/* With --progress json, standard output contains nothing else. */
static const sl_options *prepared(const sl_options *options) {
    if (strcmp(sl_option_string(options, "progress"), "json") == 0)
        sl_context_progress_to_output(sl_context_current());
    return options;
}

static int run_load(const sl_options *options) {
    return sl_command_load(prepared(options), NULL);
}

static int run_verify(const sl_options *options) {
    return sl_command_verify(prepared(options), NULL);
}

static int run_plan(const sl_options *options) {
    return sl_command_plan(options, NULL);
}

static int run_reload(const sl_options *options) {
    return sl_command_reload(prepared(options));
}

static int run_restore(const sl_options *options) {
    return sl_command_restore(prepared(options), NULL);
}

/* ---- the program ---- */

static const sl_command commands[] = {
    {"load", SL_COMMAND_LOAD, "[options] SOURCE...", "Load sources into a cluster.",
     "A SOURCE is a plain or compressed file, an archive, a folder of such files, or - for\n"
     "standard input. Before the load the collection is created, sharded and pre-split, and\n"
     "its chunks are distributed over the shards. After the load its documents are counted.\n\n"
     "  shardload load --uri mongodb://router1,router2/ -d mot -c tests test_result_2013.txt.gz\n"
     "  shardload load -d mot -c tests --drop --clustered --index '{\"v\": 1}' mot/\n"
     "  zcat *.gz | shardload load -d mot -c tests -\n"
     "  shardload load --sink null test_result.csv\n"
     "      measures the client alone\n"
     "  shardload load -d kv -c records --format ycsb --records 100M\n"
     "      loads generated records\n"
     "  shardload load -d mot -c tests --part 2/4 mot/\n"
     "      the second of four loaders that share one load\n"
     "  shardload load -d mot -c tests --only-shards s2 mot/\n"
     "      the loader beside shard s2",
     true, run_load},
    {"restore", SL_COMMAND_RESTORE, "[options] DUMP",
     "Restore the namespaces of a dump: a mongodump folder, archive or BSON file.",
     "Creates each collection with its options, loads it as `load` does, builds its indexes and\n"
     "sets its validator. Creates views last, and merges users and roles into those of the "
     "server.\n"
     "The databases config and local are not restored. docs/restore.md compares the options with "
     "mongorestore.\n\n"
     "  shardload restore --dry-run dump/\n"
     "  shardload restore --uri mongodb://router1/ --drop dump/\n"
     "  shardload restore --uri mongodb://router1/ shop.archive.gz\n"
     "  shardload restore --ns-include 'shop.*' --ns-from 'shop.*' --ns-to 'test.*' dump/",
     true, run_restore},
    {"reload", SL_COMMAND_RELOAD, "[options] SOURCE...",
     "Measure the time of a disaster recovery: from an empty target to correct answers.",
     "Loads as `load` does, into a collection that must not exist (--drop drops it first), and\n"
     "then runs the queries of --suite. Each phase is timed. With --sample the target is not\n"
     "changed: a part of the sources is loaded into temporary collections beside it, and the\n"
     "time of a full reload is predicted, with a range. The exit code is 5 if an answer is wrong\n"
     "or the reload takes longer than --objective.\n\n"
     "  shardload reload -d mot -c tests --suite mot --answers answers.json --objective 4h mot/\n"
     "  shardload reload --sample 5% -d mot -c tests --suite mot --objective 4h mot/\n"
     "  shardload reload --sample 5% -d mot -c tests --suite mot --compare last/reload.json mot/",
     true, run_reload},
    {"tune", SL_COMMAND_TUNE, "[options] SOURCE...", "Find the fastest options by trial loads.",
     "Loads a sample of the sources several times into a temporary collection beside the\n"
     "target, each time with other numbers of threads and batch sizes, and with the values of\n"
     "other --try-... options. Recommends the cheapest combination that is at most 2 % slower\n"
     "than the fastest.\n\n"
     "  shardload tune -d mot -c tests --save fast.yaml test_result_2013.txt\n"
     "  shardload tune -d mot -c tests --try-compressors none,snappy,zlib,zstd --suite mot mot/\n"
     "  shardload load --config fast.yaml -d mot -c tests mot/",
     true, sl_command_tune},
    {"verify", SL_COMMAND_VERIFY, "[options] SOURCE...",
     "Compare sources with the stored documents.",
     "Checks sources that have been loaded. Give the same options that determine the documents\n"
     "(--names, --schema, ...) as for the load. Counts the documents of each range. With\n"
     "--content, compares every document, and lists missing, different and extra documents\n"
     "with their positions in the sources. Nothing is changed.\n\n"
     "  shardload verify --content -d mot -c tests test_result_2013.txt.gz\n"
     "  shardload verify --content --dump dump/\n"
     "      compares a mongodump folder or archive with the cluster",
     true, run_verify},
    {"inspect", SL_COMMAND_INSPECT, "[options] SOURCE...",
     "Show the format and the first documents of sources, without a server.",
     "Prints the format and dialect, the first documents as Extended JSON, rejects and\n"
     "estimates.\n\n"
     "  shardload inspect test_result_2013.txt.gz",
     true, sl_command_inspect},
    {"plan", SL_COMMAND_PLAN, "[options] SOURCE...",
     "Show what a load would do and how long it takes.",
     "Reads a sample of the sources. With --uri it also reads the state of the cluster, and\n"
     "changes nothing there; without --uri it plans for --shards empty shards. The time is\n"
     "predicted from the record of an earlier load (--from) or from a --rate. With --model it\n"
     "computes the time of a load on other machines, from a built-in model (isd-one-server,\n"
     "petabyte, ...) or a file; a model needs no SOURCE.\n\n"
     "  shardload plan --shards 4 mot/\n"
     "  shardload plan --uri mongodb://router1/ -d mot -c tests --from old/run.json mot/\n"
     "  shardload plan --model isd-hundred-shards --set routers=10 --sweep shards=25,50,100,200",
     true, run_plan},
    {"doctor", SL_COMMAND_DOCTOR, "[options] [SOURCE...]", "Examine a target before a large load.",
     "Prints one page of findings about the servers, replication, disks, caches, operations of\n"
     "other clients, the balancer, the user's privileges and the network, each with its meaning\n"
     "for the load. Only reads, unless --write is given. If sources are named, compares their\n"
     "size with the free space of the disks. A figure that the user may not read is \"unknown\".\n"
     "The exit code is 5 if there is a problem.\n\n"
     "  shardload doctor --uri mongodb://router1,router2/ -d mot -c tests mot/\n"
     "  shardload doctor --uri mongodb://router1/ --json > doctor.json",
     true, sl_command_doctor},
    {"report", SL_COMMAND_REPORT, "[options] RECORD.json...",
     "Show records of runs as tables and charts.",
     "A RECORD is the run.json of a load, a tune.json, reload.json or plan.json, or a report of\n"
     "`shardquery run`. Several records of one kind are shown side by side. Loaders that share a\n"
     "load by --part or --only-shards are one load.\n"
     "docs/reports.md explains the charts.\n\n"
     "  shardload report shardload-mot.tests-20240131-101500/run.json\n"
     "  shardload report --html compare.html before/run.json after/run.json\n"
     "  shardload report --html load.html part-1/run.json part-2/run.json part-3/run.json",
     true, sl_command_report},
    {"status", SL_COMMAND_STATUS, "[options] WORKDIR",
     "Show a running load from another terminal, and change its rate limit.",
     "WORKDIR is the work directory of a load or a restore. Shows its progress, what its threads\n"
     "wait for, and whether its process is still alive. If the process has died, shows how to\n"
     "complete the load. --rate-limit changes the limit of the running load at once.\n"
     "docs/status.md lists the keys of --json. The exit code is 0 if the load runs or has ended,\n"
     "and 130 if it died.\n\n"
     "  shardload status shardload-mot.tests-20240131-101500\n"
     "  shardload status --rate-limit 20k shardload-mot.tests-20240131-101500\n"
     "  shardload status --rate-limit unlimited shardload-mot.tests-20240131-101500\n"
     "  shardload status --json shardload-mot.tests-20240131-101500",
     true, sl_command_status},
    {"forget", SL_COMMAND_FORGET, "[options] [WORKDIR...]",
     "Remove what loads left: registry, temporary collections, work directories.",
     "For a collection (-d and -c): drops the registry of its sources, and the temporary\n"
     "collections that ended trials of this host have left, and restores a balancer that dead\n"
     "loads have left stopped. The documents stay. Afterwards no file counts as loaded, and\n"
     "nothing can be resumed: use it when the collection will not be loaded into again.\n"
     "For work directories: removes the files of their loads, also the rejects.\n"
     "docs/remains.md lists what remains where.\n\n"
     "  shardload forget --uri mongodb://router1/ -d mot -c tests shardload-mot.tests-*",
     true, sl_command_forget},
    {0},
};

/* Words of mongoimport, mongorestore and other loaders. Options that differ only in their spelling,
 * such as --nsInclude, are found without a row. */
static const sl_other_word other_words[] = {
    {"import", "did you mean load?", false},
    {"insert", "did you mean load?", false},
    {"mongoimport", "did you mean load?", false},
    {"upsert", "did you mean load --mode upsert?", false},
    {"merge", "did you mean load --mode merge?", false},
    {"delete", "did you mean load --mode delete?", false},
    {"mongorestore", "did you mean restore?", false},
    {"check", "did you mean verify, or doctor?", false},
    {"compare", "did you mean verify, or `shardquery compare`?", false},
    {"count", "did you mean verify, or `shardquery run`?", false},
    {"query", "did you mean `shardquery run`?", false},
    {"resume", "did you mean load --resume?", false},
    {"schema", "did you mean inspect --write-schema?", false},
    {"-h", "did you mean --uri mongodb://HOST/, or --help?", true},
    {"--archive-file", "name the archive as an argument", true},
    {"--batchSize", "did you mean --batch-size?", true},
    {"--bypassDocumentValidation", "documents that the validator refuses are rejects", false},
    {"--columnsHaveTypes", "types are inferred, or declared with --schema", false},
    {"--convertLegacyIndexes", "it is not needed: old options are converted", false},
    {"--dir", "name the folder as an argument", true},
    {"--excludeCollection", "did you mean --ns-exclude?", true},
    {"--excludeCollectionsWithPrefix", "did you mean --ns-exclude?", true},
    {"--fieldFile", "did you mean --schema, or --columns?", true},
    {"--fields", "did you mean --columns?", true},
    {"--file", "name the file as an argument", true},
    {"--fixDottedHashIndex", "it is not needed", false},
    {"--gssapiHostName", "give it in --uri", true},
    {"--gssapiServiceName", "give it in --uri", true},
    {"--awsSessionToken", "give it in --uri", true},
    {"--headerline", "it is not needed: a header is found (--header yes or no otherwise)", false},
    {"--host", "did you mean --uri mongodb://HOST/?", true},
    {"--ignoreBlanks", "it is not needed: empty fields are left out", false},
    {"--jsonArray", "it is not needed: arrays are recognised", false},
    {"--keepIndexVersion", "servers build version 2", false},
    {"--legacy", "older Extended JSON is recognised; shell syntax is not read", false},
    {"--maintainInsertionOrder",
     "blocks are loaded at the same time; -j 1 loads one after the other", false},
    {"--nsTo", "did you mean --ns-to?", true},
    {"--restoreDbUsersAndRoles", "did you mean --restore-db-users-and-roles?", false},
    {"--numInsertionWorkers", "did you mean --threads?", true},
    {"--numInsertionWorkersPerCollection", "did you mean --threads?", true},
    {"--numParallelCollections", "did you mean --collections-at-once?", true},
    {"--objcheck", "it is not needed: documents are always validated", false},
    {"--parseGrace", "did you mean --max-rejects, or `invalid` in a --schema?", true},
    {"--port", "did you mean --uri mongodb://HOST:PORT/?", true},
    {"--preserveUUID", "routers cannot create collections with a UUID", false},
    {"--ssl", "did you mean --tls?", false},
    {"--sslCAFile", "did you mean --tlsCAFile?", true},
    {"--sslCRLFile", "lists of revoked certificates are not supported", true},
    {"--sslFIPSMode", "it is set for the machine", false},
    {"--sslPEMKeyFile", "did you mean --tlsCertificateKeyFile?", true},
    {"--sslPEMKeyPassword", "did you mean --tlsCertificateKeyFilePassword?", true},
    {"--stopOnError", "did you mean --max-rejects 0?", false},
    {"--tlsInsecure", "did you mean --tlsAllowInvalidHostnames?", false},
    {"--type", "it is not needed: the format is recognised (--format otherwise)", true},
    {"--upsert", "did you mean --mode upsert?", false},
    {"--upsertFields", "did you mean --match-fields?", true},
    {"--useArrayIndexFields", "it is not needed: tags[0] and tags.0 are arrays", false},
    {"--workers", "did you mean --threads?", true},
    {0},
};

#define EXIT_TEXT(name, code, shardload, shardquery, tone, words) " " #code " " shardload ";"

static const sl_program program = {
    .name = "shardload",
    .version = SHARDLOAD_VERSION,
    .summary = "loads data sets or generated records into MongoDB sharded clusters",
    .environment_prefix = "SHARDLOAD",
    .commands = commands,
    .rows = sl_load_rows,
    .epilogue = "Exit codes:" SL_EXITS(EXIT_TEXT) " docs/exit-codes.md: what to do",
    .other_words = other_words,
};

int main(int count, char **words) {
    return sl_program_main(&program, true, count, words);
}
