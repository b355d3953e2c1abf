/* SPDX-License-Identifier: Apache-2.0 */
/* shardload: the command line of the loader. One table of options; each command turns them into a
 * configuration and calls the floor below. It is long because the table is: a row of help for each
 * option, with the checks that rows name and the code that takes their values, in one place. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bson/bson.h>

#include <shardload/bson_writer.h>
#include <shardload/json.h>
#include <shardload/load.h>
#include <shardload/log.h>
#include <shardload/options.h>
#include <shardload/text.h>

#include "connection_string.h"
#include "secrets.h"

enum { LOAD = 1, INSPECT = 2, VERIFY = 4, READING = LOAD | INSPECT | VERIFY };

#define SKEW_MAX 10
#define MADE_UP "Made-up records"

#define SCHEMA_BYTES_MAX ((size_t)1 << 20)

/* ---- what must be true of values; the rows below name these ---- */

/* A key: an object with at least one field, each a direction or a kind of index. */
static bson_t *parse_key(const char *text) {
    bson_error_t why;
    bson_t *key = sl_json_parse(text, strlen(text), &why);
    bool good = key && bson_count_keys(key) > 0;
    bson_iter_t iter;
    for (bool more = good && bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        static const char *const kinds[] = {"hashed", "2dsphere", "2d", "text"};
        bool known = BSON_ITER_HOLDS_NUMBER(&iter) && bson_iter_as_int64(&iter) != 0;
        for (size_t i = 0; BSON_ITER_HOLDS_UTF8(&iter) && i < sizeof kinds / sizeof kinds[0]; i++)
            known = known || strcmp(bson_iter_utf8(&iter, NULL), kinds[i]) == 0;
        good = good && known;
    }
    if (good)
        return key;
    bson_destroy(key);
    return NULL;
}

static bool check_key(const char *text, char *problem, size_t room) {
    bson_t *key = parse_key(text);
    bson_destroy(key);
    if (!key)
        snprintf(problem, room, "%s is not a key; write it like {\"st\": 1, \"ts\": -1} or "
                 "{\"st\": \"hashed\"}", text);
    return key != NULL;
}

static bool check_shard_key(const char *text, char *problem, size_t room) {
    return strcmp(text, "none") == 0 || check_key(text, problem, room);
}

static bool check_sink(const char *text, char *problem, size_t room) {
    if (strcmp(text, "cluster") == 0 || strcmp(text, "null") == 0 ||
        (strncmp(text, "bson:", 5) == 0 && text[5]))
        return true;
    snprintf(problem, room, "\"%s\" is not one of cluster, null, bson:FILE", text);
    return false;
}

static bool check_database(const char *text, char *problem, size_t room) {
    size_t length = strlen(text);
    if (length > 0 && length < 64 && strcspn(text, "/\\. \"$*<>:|?") == length)
        return true;
    snprintf(problem, room, "\"%s\" cannot be the name of a database: it has 1 to 63 bytes, none of "
             "them a blank or one of /\\.\"$*<>:|?", text);
    return false;
}

static bool check_collection(const char *text, char *problem, size_t room) {
    size_t length = strlen(text);
    if (length > 0 && length < 200 && !strchr(text, '$') && text[0] != '.' &&
        text[length - 1] != '.' && strncmp(text, "system.", 7) != 0)
        return true;
    snprintf(problem, room, "\"%s\" cannot be the name of a collection: it must not be empty, longer "
             "than 200 bytes, begin or end with a dot, begin with system., or hold a $", text);
    return false;
}

/* Seven digits at most: then a double has the number to the letter, wherever it is told. */
static bool check_skew(const char *text, char *problem, size_t room) {
    char *end;
    double skew = strtod(text, &end);
    size_t length = strlen(text);
    if (length > 0 && length <= 8 && strspn(text, "0123456789.") == length && !*end &&
        end != text && skew <= SKEW_MAX)
        return true;
    snprintf(problem, room, "\"%s\" is not a skew: a number from 0 to %d, of 8 characters at most",
             text, SKEW_MAX);
    return false;
}

static const sl_option_row rows[] = {
    {"uri", 0, SL_OPTION_STRING, "URI", "mongodb://127.0.0.1:27017", NULL, 0, 0, LOAD | VERIFY,
     "Target", "Connection string of the cluster: name all its routers. Also a replica set or a lone "
     "mongod.", SL_CREDENTIALS, NULL},
    {"db", 'd', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, LOAD | VERIFY, "Target", "Database.",
     false, check_database},
    {"collection", 'c', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, LOAD | VERIFY, "Target",
     "Collection.", false, check_collection},
    {"drop", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Target",
     "Drop the collection first.", false, NULL},
    {"again", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Target",
     "Load sources that have been loaded before: their documents keep their ids, so what is there "
     "stays and what is missing comes back.", false, NULL},
    {"sink", 0, SL_OPTION_STRING, "WHERE", "cluster", NULL, 0, 0, LOAD, "Target",
     "cluster; null (parse and encode only, to measure the client); bson:FILE (a BSON dump; "
     "bson:- for standard output).", false, check_sink},

    SL_CONNECTION_ROWS(LOAD | VERIFY),

    {"format", 0, SL_OPTION_CHOICE, "NAME", "auto", "auto|mot|isd|isd-lite|isd-csv|delimited|ycsb",
     0, 0, READING, "Source",
     "auto looks at each file. mot: MOT vehicle tests. isd, isd-lite, isd-csv: NOAA weather records, "
     "packed, simplified or as global-hourly tables. delimited: any file with a header or a "
     "--schema. ycsb: no file; --records are made up.", false, NULL},
    {"schema", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, READING, "Source",
     "Columns and their types for --format delimited, or other key names for isd, in YAML.", false,
     NULL},
    {"names", 0, SL_OPTION_CHOICE, "KIND", "short", "short|long", 0, 0, READING, "Source",
     "Keys of the documents: short (m) or as published (test_mileage).", false, NULL},
    {"encoding", 0, SL_OPTION_CHOICE, "NAME", "utf-8", "utf-8|latin-1", 0, 0, READING,
     "Source", "What text that is not UTF-8 means: with utf-8 its record is rejected, with latin-1 "
     "it is read as windows-1252, which contains Latin-1.", false, NULL},
    {"trim", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, READING, "Source",
     "Cut blanks at both ends of every field.", false, NULL},
    {"missing", 0, SL_OPTION_CHOICE, "KIND", "omit", "omit|raw", 0, 0, READING, "Source",
     "isd: leave out what is missing, or keep the published numbers that stand for it (999.9).",
     false, NULL},
    {"include", 0, SL_OPTION_STRING, "GLOB", NULL, NULL, 0, 0, READING, "Source",
     "Of the files found in folders, take only those whose name matches.", false, NULL},
    {"documents", 0, SL_OPTION_COUNT, "N", "3", NULL, 0, 1000000, INSPECT, "Source",
     "How many documents to show of each source.", false, NULL},

    {"records", 0, SL_OPTION_COUNT, "N", NULL, NULL, 1, 100000000000000, READING, MADE_UP,
     "For --format ycsb: how many records, like 100M. Instead of a SOURCE.", false, NULL},
    {"field-count", 0, SL_OPTION_COUNT, "N", "8", NULL, 0, SL_YCSB_FIELDS_MAX, READING,
     MADE_UP, "Fields of random bytes, f0 and so on.", false, NULL},
    {"field-length", 0, SL_OPTION_BYTES, "SIZE", "100", NULL, 0, SL_BSON_DOCUMENT_MAX,
     READING, MADE_UP, "Bytes of each of them.", false, NULL},
    {"integer-count", 0, SL_OPTION_COUNT, "N", "8", NULL, 0, SL_YCSB_FIELDS_MAX, READING,
     MADE_UP, "Integers from 0 to 65535, n0 and so on.", false, NULL},
    {"skew", 0, SL_OPTION_STRING, "THETA", "0.99", NULL, 0, 0, READING, MADE_UP,
     "Exponent of Zipf's law for the integers: k is (k+1)^THETA times less frequent than 0. With 0 "
     "all are alike.", false, check_skew},
    {"seed", 0, SL_OPTION_COUNT, "N", "1", NULL, 0, 0, READING, MADE_UP,
     "Another seed makes other records. The same options always make the same.", false, NULL},

    {"threads", 'j', SL_OPTION_COUNT, "N", "auto", "auto", 1, 1024, LOAD | VERIFY, "Speed",
     "Worker threads, each with a connection of its own. auto: two per core.", false, NULL},
    {"batch-size", 0, SL_OPTION_COUNT, "N", "10000", NULL, 1, 100000, LOAD, "Speed",
     "Documents per insert.", false, NULL},
    {"batch-bytes", 0, SL_OPTION_BYTES, "SIZE", "16MiB", NULL, 65536, 47000000, LOAD, "Speed",
     "Bytes per insert; whichever of the two is reached first.", false, NULL},

    {"shard-key", 0, SL_OPTION_STRING, "JSON", "{\"_id\": 1}", NULL, 0, 0, LOAD, "Layout",
     "On a sharded cluster. {\"_id\": 1} is pre-split so that all shards are busy from the first "
     "second; none leaves the collection unsharded.", false, check_shard_key},
    {"index", 0, SL_OPTION_LIST, "JSON", NULL, NULL, 0, 0, LOAD, "Layout",
     "Build this index after the load, like {\"v\": 1}. May be given several times.", false, check_key},
    {"compressor", 0, SL_OPTION_CHOICE, "NAME", NULL, "none|snappy|zlib|zstd", 0, 0, LOAD, "Layout",
     "Block compressor of the collection, instead of the server's default.", false, NULL},
    {"clustered", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Layout",
     "Make the collection clustered by _id (server 5.3 and later): no index of _id beside the "
     "documents, and a faster load.", false, NULL},

    {"write-concern", 0, SL_OPTION_COUNT, "W", "majority", "majority", 1, 50, LOAD, "Delivery",
     "Members that must have a batch before it counts. majority means, on a lone mongod, in the "
     "journal.", false, NULL},
    {"max-rejects", 0, SL_OPTION_COUNT, "N|P%", "unlimited", "unlimited|P%", 0, 0, LOAD, "Delivery",
     "Stop when more records than this, or than this percentage, are rejected.", false, NULL},
    {"work-dir", 0, SL_OPTION_STRING, "DIR", NULL, NULL, 0, 0, LOAD | VERIFY, "Delivery",
     "Folder for rejects.tsv, the raw rejected records, run.json and the log. Without it, one named "
     "after target and time is made here. verify: for problems.tsv and verify.json, if it is given.",
     false, NULL},
    {"resume", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Delivery",
     "Complete the load that was interrupted, whose journal is in --work-dir: the same command again. "
     "What is known to be there is not sent again; --drop then drops nothing.", false, NULL},
    {"timeout", 0, SL_OPTION_COUNT, "SECONDS", "120", NULL, 1, 86400, LOAD, "Delivery",
     "How long a batch may wait for the server's answer before the connection is given up and the "
     "batch sent again on another.", false, NULL},
    {"retry-timeout", 0, SL_OPTION_COUNT, "SECONDS", "300", NULL, 1, 86400, LOAD, "Delivery",
     "How long a batch that cannot be delivered (an election, a server that restarts) is tried again "
     "before the load stops, to be resumed.", false, NULL},
    {"content", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, VERIFY, "Verification",
     "Compare every document to the byte, instead of counting.", false, NULL},
    {"max-problems", 0, SL_OPTION_COUNT, "N", "100", NULL, 0, 1000000000, VERIFY, "Verification",
     "How many problems to show; with --work-dir all of them are in problems.tsv.", false, NULL},
    {"no-verify", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, LOAD, "Delivery",
     "Do not count the documents of each range at the end.", false, NULL},

    {"progress", 0, SL_OPTION_CHOICE, "KIND", "auto", "auto|tty|plain|json|none", 0, 0, LOAD | VERIFY,
     "Output", "A line that stays (tty), lines (plain), a JSON object per second (json); auto "
     "chooses tty on a terminal and plain elsewhere.", false, NULL},
    {"report", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, LOAD | VERIFY, "Output",
     "Write the run record here too.", false, NULL},
    {0},
};

/* ---- from options to a configuration ---- */

typedef struct load_setup {
    sl_load_config config;
    bson_t options;
    bson_t *shard_key;
    bson_t **indexes;
    const char **paths;
    char *schema_text;
    char *uri;
} load_setup;

static void setup_clear(load_setup *setup) {
    bson_destroy(&setup->options);
    bson_destroy(setup->shard_key);
    for (size_t i = 0; i < setup->config.index_count; i++)
        bson_destroy(setup->indexes[i]);
    free(setup->indexes);
    free(setup->paths);
    free(setup->schema_text);
    sl_secret_free(setup->uri);
}

/* Adds an item to an option that has been recorded already. */
static void record_item(bson_t *options, bson_iter_t *recorded, const char *name,
                        const char *value) {
    bson_t others = BSON_INITIALIZER, list = BSON_INITIALIZER;
    bson_iter_t items;
    if (BSON_ITER_HOLDS_ARRAY(recorded) && bson_iter_recurse(recorded, &items)) {
        while (bson_iter_next(&items))
            BSON_APPEND_UTF8(&list, bson_iter_key(&items), bson_iter_utf8(&items, NULL));
    } else {
        BSON_APPEND_UTF8(&list, "0", bson_iter_utf8(recorded, NULL));
    }
    char key[16];
    snprintf(key, sizeof key, "%u", bson_count_keys(&list));
    BSON_APPEND_UTF8(&list, key, value);
    bson_copy_to_excluding_noinit(options, &others, name, NULL);
    BSON_APPEND_ARRAY(&others, name, &list);
    bson_destroy(&list);
    bson_destroy(options);
    bson_steal(options, &others);
}

static void record_option(void *context, const char *name, const char *value, const char *origin) {
    (void)origin;
    bson_t *options = context;
    bson_iter_t iter;
    char shown[PATH_MAX];
    if (value && !sl_utf8_valid(value, strlen(value), NULL)) { /* a path may be any bytes */
        sl_text_printable(sl_text_of(value), shown, sizeof shown);
        value = shown;
    }
    if (bson_iter_init_find(&iter, options, name)) { /* a list: its items, one after the other */
        record_item(options, &iter, name, value);
    } else if (value) {
        BSON_APPEND_UTF8(options, name, value);
    } else {
        BSON_APPEND_NULL(options, name);
    }
}

static bool add_problem(sl_error *error, const char *text) {
    size_t used = error->code ? strlen(error->message) : 0;
    error->code = SL_EXIT_USAGE;
    snprintf(error->message + used, sizeof error->message - used, "%s%s", used ? "\n" : "", text);
    return false;
}

static char *read_text(const char *path, sl_error *error) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t used = 0, room = 0;
    while (file) {
        if (room - used < 4096) {
            room = room * 2 + 8192;
            char *more = realloc(text, room);
            if (!more)
                break;
            text = more;
        }
        size_t got = fread(text + used, 1, room - used - 1, file);
        used += got;
        if (got == 0 || used > SCHEMA_BYTES_MAX)
            break;
    }
    if (text)
        text[used] = '\0';
    if (!file || ferror(file) || used > SCHEMA_BYTES_MAX) {
        char problem[400];
        snprintf(problem, sizeof problem, "--schema %.300s: %s", path,
                 used > SCHEMA_BYTES_MAX ? "larger than 1 MiB: this is no schema"
                                         : "cannot be read");
        add_problem(error, problem);
    }
    if (file)
        fclose(file);
    return text;
}

/* What belongs to --format ycsb, and what does not. */
static void set_up_made_up(sl_load_config *config, const sl_options *options, sl_error *error) {
    static const char *const names[] = {"records", "field-count", "field-length", "integer-count",
                                        "skew", "seed"};
    bool made_up = strcmp(config->format, "ycsb") == 0;
    for (size_t i = 0; !made_up && i < sizeof names / sizeof names[0]; i++) {
        char problem[100];
        snprintf(problem, sizeof problem, "--%s is for --format ycsb only", names[i]);
        if (sl_option_given(options, names[i]))
            add_problem(error, problem);
    }
    if (!made_up && config->path_count == 0)
        add_problem(error, "which sources? Name files or folders, or - for standard input");
    if (made_up && config->path_count > 0)
        add_problem(error, "--format ycsb makes its records up: name no source");
    if (made_up && !sl_option_given(options, "records"))
        add_problem(error, "--format ycsb: --records is missing: how many?");
    if (made_up && !error->code)
        config->format_options.ycsb = (sl_ycsb_options){
            .records = sl_option_number(options, "records"),
            .seed = sl_option_number(options, "seed"),
            .field_count = (uint32_t)sl_option_number(options, "field-count"),
            .field_length = (uint32_t)sl_option_number(options, "field-length"),
            .integer_count = (uint32_t)sl_option_number(options, "integer-count"),
            .skew = strtod(sl_option_string(options, "skew"), NULL),
        };
}

static bool set_up_source(load_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    config->path_count = sl_options_argument_count(options);
    setup->paths = calloc(config->path_count + 1, sizeof *setup->paths);
    if (!setup->paths)
        return sl_error_memory(error, "starting");
    for (size_t i = 0; i < config->path_count; i++)
        setup->paths[i] = sl_options_argument(options, i);
    config->paths = setup->paths;
    config->include = sl_option_string(options, "include");
    config->format = sl_option_string(options, "format");
    config->format_options = (sl_format_options){
        .long_names = strcmp(sl_option_string(options, "names"), "long") == 0,
        .latin1 = strcmp(sl_option_string(options, "encoding"), "latin-1") == 0,
        .trim = sl_option_flag(options, "trim"),
        .keep_missing = strcmp(sl_option_string(options, "missing"), "raw") == 0,
        .schema_name = sl_option_string(options, "schema"),
    };
    if (config->format_options.schema_name) {
        setup->schema_text = read_text(config->format_options.schema_name, error);
        config->format_options.schema_text = setup->schema_text;
    }
    set_up_made_up(config, options, error);
    return true;
}

static void set_up_target(load_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    config->database = sl_option_string(options, "db");
    config->collection = sl_option_string(options, "collection");
    if (!config->database)
        add_problem(error, "--db is missing: which database?");
    if (!config->collection)
        add_problem(error, "--collection is missing: which collection?");
    if (!error->code && sl_connection_string(options, &setup->uri, error)) /* it may ask the user */
        config->uri = setup->uri;
}

static void set_up_sink(load_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    const char *sink = sl_option_string(options, "sink");
    if (strcmp(sink, "null") == 0) {
        config->sink = SL_SINK_NULL;
    } else if (strncmp(sink, "bson:", 5) == 0) {
        config->sink = SL_SINK_BSON;
        config->sink_path = sink + 5;
    }
    if (config->sink == SL_SINK_CLUSTER)
        set_up_target(setup, options, error);
}

static void set_up_layout(load_setup *setup, const sl_options *options) {
    sl_load_config *config = &setup->config;
    const char *shard_key = sl_option_string(options, "shard-key");
    if (strcmp(shard_key, "none") != 0)
        setup->shard_key = parse_key(shard_key);
    config->shard_key = setup->shard_key;
    size_t count = sl_option_list_count(options, "index");
    setup->indexes = calloc(count + 1, sizeof *setup->indexes);
    for (size_t i = 0; setup->indexes && i < count; i++) {
        bson_t *key = parse_key(sl_option_list_item(options, "index", i));
        if (key)
            setup->indexes[config->index_count++] = key;
    }
    config->indexes = (const bson_t *const *)setup->indexes;
    config->compressor = sl_option_string(options, "compressor");
    config->clustered = sl_option_flag(options, "clustered");
}

static sl_progress_kind progress_named(const char *name) {
    static const char *const names[] = {"auto", "tty", "plain", "json", "none"};
    unsigned i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    return (sl_progress_kind)i;
}

/* How it runs and what it leaves behind. */
static void set_up_run(load_setup *setup, const sl_options *options) {
    sl_load_config *config = &setup->config;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    config->threads = sl_option_is_word(options, "threads", "auto")
                          ? (unsigned)(cores > 0 ? 2 * cores : 2)
                          : (unsigned)sl_option_number(options, "threads");
    /* Parsing alone has nothing to wait for. */
    if (sl_option_is_word(options, "threads", "auto") && config->sink != SL_SINK_CLUSTER)
        config->threads = cores > 0 ? (unsigned)cores : 1;
    config->work_directory = sl_option_string(options, "work-dir");
    config->report = sl_option_string(options, "report");
    config->progress = progress_named(sl_option_string(options, "progress"));
}

static void set_up_rest(load_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    config->batch_documents = (uint32_t)sl_option_number(options, "batch-size");
    config->batch_bytes = (size_t)sl_option_number(options, "batch-bytes");
    config->write_concern = "majority";
    static char number[24];
    if (!sl_option_is_word(options, "write-concern", "majority")) {
        snprintf(number, sizeof number, "%llu",
                 (unsigned long long)sl_option_number(options, "write-concern"));
        config->write_concern = number;
    }
    config->rejects_max = UINT64_MAX;
    config->rejects_max_share = 1;
    if (!sl_option_is_word(options, "max-rejects", "unlimited")) {
        if (sl_option_is_percentage(options, "max-rejects"))
            config->rejects_max_share =
                (double)sl_option_number(options, "max-rejects") / 10000;
        else
            config->rejects_max = sl_option_number(options, "max-rejects");
    }
    config->drop = sl_option_flag(options, "drop");
    config->again = sl_option_flag(options, "again");
    config->resume = sl_option_flag(options, "resume");
    config->timeout_seconds = (unsigned)sl_option_number(options, "timeout");
    config->retry_seconds = (unsigned)sl_option_number(options, "retry-timeout");
    if (config->resume && !config->work_directory)
        add_problem(error, "--resume needs --work-dir: which load?");
    if (config->resume && config->sink != SL_SINK_CLUSTER)
        add_problem(error, "--resume is for loads into a cluster: other sinks begin anew");
    config->verify = !sl_option_flag(options, "no-verify");
}

static int run_load(const sl_options *options) {
    load_setup setup = {.config = {.program_version = SHARDLOAD_VERSION}};
    sl_error error = {0};
    bson_init(&setup.options);
    sl_options_each(options, record_option, &setup.options);
    setup.config.options = &setup.options;
    int code;
    if (set_up_source(&setup, options, &error)) {
        set_up_sink(&setup, options, &error);
        set_up_layout(&setup, options);
        set_up_run(&setup, options);
        set_up_rest(&setup, options, &error);
    }
    if (error.code) {
        sl_log_error("%s", error.message);
        code = error.code;
    } else {
        code = sl_load_run(&setup.config);
    }
    setup_clear(&setup);
    return code;
}

static int run_verify(const sl_options *options) {
    load_setup setup = {.config = {.program_version = SHARDLOAD_VERSION}};
    sl_error error = {0};
    bson_init(&setup.options);
    sl_options_each(options, record_option, &setup.options);
    setup.config.options = &setup.options;
    if (set_up_source(&setup, options, &error)) {
        set_up_target(&setup, options, &error);
        set_up_run(&setup, options);
    }
    int code = error.code;
    if (error.code)
        sl_log_error("%s", error.message);
    else
        code = sl_verify_run(&setup.config, sl_option_flag(options, "content"),
                             sl_option_number(options, "max-problems"));
    setup_clear(&setup);
    return code;
}

static int run_inspect(const sl_options *options) {
    load_setup setup = {.config = {.program_version = SHARDLOAD_VERSION}};
    sl_error error = {0};
    bson_init(&setup.options);
    int code;
    if (set_up_source(&setup, options, &error) && !error.code) {
        code = sl_inspect_run(&setup.config, (unsigned)sl_option_number(options, "documents"));
    } else {
        sl_log_error("%s", error.message);
        code = error.code;
    }
    setup_clear(&setup);
    return code;
}

/* ---- the program ---- */

static const sl_command commands[] = {
    {"load", LOAD, "[options] SOURCE...", "Load sources into a cluster.",
     "A source is a file, plain or gzipped, a folder of such files, or - for standard input. The\n"
     "collection is made, sharded, pre-split and placed before the load, verified after it.\n\n"
     "  shardload load --uri mongodb://router1,router2/ -d mot -c tests test_result_2013.txt.gz\n"
     "  shardload load -d mot -c tests --drop --clustered --compressor zstd --index '{\"v\": 1}' mot/\n"
     "  zcat *.gz | shardload load -d mot -c tests -\n"
     "  shardload load --sink null test_result.csv         how fast is the client alone?\n"
     "  shardload load -d kv -c records --format ycsb --records 100M         made up, not read",
     true, run_load},
    {"verify", VERIFY, "[options] SOURCE...", "Compare sources with what the cluster holds.",
     "For sources that were loaded before, with the same options that say what documents look like\n"
     "(--names, --schema, ...). By counts per range, or with --content document by document: what is\n"
     "missing, different or extra is told by its place in the source. Nothing is changed.\n\n"
     "  shardload verify --content -d mot -c tests test_result_2013.txt.gz", true, run_verify},
    {"inspect", INSPECT, "[options] SOURCE...", "Show what sources hold; needs no server.",
     "Format and dialect, the first documents as Extended JSON, rejects, estimates.\n\n"
     "  shardload inspect test_result_2013.txt.gz", true, run_inspect},
    {0},
};

static const sl_program program = {
    .name = "shardload",
    .version = SHARDLOAD_VERSION,
    .summary = "loads data sets, read from text or made up, into MongoDB sharded clusters",
    .environment_prefix = "SHARDLOAD",
    .commands = commands,
    .rows = rows,
    .epilogue = "Exit codes: 0 all loaded; 1 loaded, with rejects; 2 usage; 3 sources; 4 cluster;\n"
                "5 verification; 130 interrupted.",
};

int main(int count, char **words) {
    return sl_options_main(&program, count, words);
}
