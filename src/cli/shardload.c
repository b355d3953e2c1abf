/* SPDX-License-Identifier: Apache-2.0 */
/* shardload: the command line of the loader. Each command turns its options into a configuration and
 * calls the floor below. */
#include <shardload/load.h>
#include <shardload/log.h>
#include <shardload/options.h>

#include "commands.h"
#include "load_options.h"
#include "load_setup.h"

static int run_load(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    int code;
    if (sl_set_up_load(&setup, options, &error)) {
        code = sl_load_run(&setup.config);
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_setup_clear(&setup);
    return code;
}

static int run_verify(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    if (sl_set_up_source(&setup, options, &error)) {
        sl_set_up_target(&setup, options, &error);
        sl_set_up_run(&setup, options);
    }
    int code = error.code;
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    else
        code = sl_verify_run(&setup.config, sl_option_flag(options, "content"),
                             sl_option_number(options, "max-problems"));
    sl_setup_clear(&setup);
    return code;
}

static int run_inspect(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    int code;
    if (sl_set_up_source(&setup, options, &error) && !error.code) {
        code = sl_inspect_run(&setup.config, (unsigned)sl_option_number(options, "documents"));
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_setup_clear(&setup);
    return code;
}

/* ---- the program ---- */

static const sl_command commands[] = {
    {"load", SL_COMMAND_LOAD, "[options] SOURCE...", "Load sources into a cluster.",
     "A source is a file, plain or gzipped, a folder of such files, or - for standard input. The\n"
     "collection is made, sharded, pre-split and placed before the load, verified after it.\n\n"
     "  shardload load --uri mongodb://router1,router2/ -d mot -c tests test_result_2013.txt.gz\n"
     "  shardload load -d mot -c tests --drop --clustered --compressor zstd --index '{\"v\": 1}' mot/\n"
     "  zcat *.gz | shardload load -d mot -c tests -\n"
     "  shardload load --sink null test_result.csv         how fast is the client alone?\n"
     "  shardload load -d kv -c records --format ycsb --records 100M         made up, not read\n"
     "  shardload load -d mot -c tests --part 2/4 mot/     the second of four loaders at once\n"
     "  shardload load -d mot -c tests --only-shards s2 mot/     the one beside shard s2",
     true, run_load},
    {"reload", SL_COMMAND_RELOAD, "[options] SOURCE...",
     "The disaster-recovery drill: from nothing to the first correct query.",
     "Loads as `load` does, into a collection that must not exist (or is dropped with --drop), and\n"
     "asks the queries of --suite, each phase timed. With --sample the target is not touched: part\n"
     "of the sources is loaded into throw-away collections beside it, and the time of the whole is\n"
     "predicted, with its error. Exit code 5 when an answer is wrong or --objective is not met.\n\n"
     "  shardload reload -d mot -c tests --suite mot --answers answers.json --objective 4h mot/\n"
     "  shardload reload --sample 5% -d mot -c tests --suite mot --objective 4h mot/\n"
     "  shardload reload --sample 5% -d mot -c tests --suite mot --compare last/reload.json mot/",
     true, sl_command_reload},
    {"tune", SL_COMMAND_TUNE, "[options] SOURCE...", "Find the fastest setting by measured trials.",
     "Loads a sample of the sources again and again into a collection of its own beside the target,\n"
     "which is removed at the end, with other threads and batch sizes each time, and other layouts\n"
     "when asked. Recommends the cheapest setting that is as fast as the fastest, to within 2 %.\n\n"
     "  shardload tune -d mot -c tests --save fast.yaml test_result_2013.txt\n"
     "  shardload tune -d mot -c tests --try-compressors none,snappy,zlib,zstd --suite mot mot/\n"
     "  shardload load --config fast.yaml -d mot -c tests mot/", true, sl_command_tune},
    {"verify", SL_COMMAND_VERIFY, "[options] SOURCE...", "Compare sources with what the cluster holds.",
     "For sources that were loaded before, with the same options that say what documents look like\n"
     "(--names, --schema, ...). By counts per range, or with --content document by document: what is\n"
     "missing, different or extra is told by its place in the source. Nothing is changed.\n\n"
     "  shardload verify --content -d mot -c tests test_result_2013.txt.gz", true, run_verify},
    {"inspect", SL_COMMAND_INSPECT, "[options] SOURCE...", "Show what sources hold; needs no server.",
     "Format and dialect, the first documents as Extended JSON, rejects, estimates.\n\n"
     "  shardload inspect test_result_2013.txt.gz", true, run_inspect},
    {"plan", SL_COMMAND_PLAN, "[options] SOURCE...", "Show what a load would do, and how long it takes.",
     "Sources are judged by a sample of their blocks. With --uri the cluster is asked, and nothing on\n"
     "it is changed; else the layout is that for --shards empty ones. Times come from the record of an\n"
     "earlier load, --from, or from a --rate. A --model, built in (isd-one-server, petabyte, ...) or a\n"
     "file, computes what a load takes on machines that are not here, and needs no source.\n\n"
     "  shardload plan --shards 4 mot/\n"
     "  shardload plan --uri mongodb://router1/ -d mot -c tests --from old/run.json mot/\n"
     "  shardload plan --model isd-hundred-shards --set routers=10 --sweep shards=25,50,100,200",
     true, sl_command_plan},
    {"report", SL_COMMAND_REPORT, "[options] RECORD.json...", "Draw what runs have recorded.",
     "Records are the run.json of loads, tune.json, reload.json, plan.json, and what tools/bench shards\n"
     "writes. Several of one kind are laid side by side. docs/reports.md tells how to read it.\n\n"
     "  shardload report shardload-mot.tests-20240131-101500/run.json\n"
     "  shardload report --html compare.html before/run.json after/run.json", true,
     sl_command_report},
    {0},
};

static const sl_program program = {
    .name = "shardload",
    .version = SHARDLOAD_VERSION,
    .summary = "loads data sets, read from text or made up, into MongoDB sharded clusters",
    .environment_prefix = "SHARDLOAD",
    .commands = commands,
    .rows = sl_load_rows,
    .epilogue = "Exit codes: 0 all loaded; 1 loaded, with rejects; 2 usage; 3 sources; 4 cluster;\n"
                "5 verification; 130 interrupted.",
};

int main(int count, char **words) {
    return sl_options_main(&program, count, words);
}
