/* SPDX-License-Identifier: Apache-2.0 */
/* Converts options to a configuration. All problems are reported together. */
#include "load_setup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "format/encoding.h"
#include "format/notation.h"
#include "format/schema.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/read_file.h"
#include "util/text.h"

#include "commands.h"
#include "connection_string.h"
#include "option_checks.h"

#define SCHEMA_BYTES_MAX ((size_t)1 << 20)

#define BATCH_DOCUMENTS 20000 /* with --batch-size auto, at the start */

/* With --threads auto a load may use up to four threads per core, or twice as many as at the start,
 * within these limits: a small client of a distant server needs many batches in flight, and very
 * many threads gain nothing. */
#define THREADS_FEW 16
#define THREADS_MANY 64

static char *read_text(const char *option, const char *path, sl_error *error) {
    char prefix[340];
    sl_text text;
    sl_error why;
    if (sl_read_file(path, SCHEMA_BYTES_MAX, SL_EXIT_USAGE, &text, &why))
        return (char *)text.bytes;
    snprintf(prefix, sizeof prefix, "--%s %.300s: ", option, path);
    sl_option_failed(error, prefix, &why);
    return NULL;
}

/* The options of --format ycsb, which generates its records; other formats need sources instead. */
static void set_up_generated(sl_load_config *config, const sl_options *options, sl_error *error) {
    bool generated = strcmp(config->format, "ycsb") == 0;
    if (!generated)
        sl_options_refuse(options, SL_FROM_CONFIG, "Generated records", "is for --format ycsb only",
                          error);
    if (!generated && config->path_count == 0)
        sl_option_problem(error, "no source is given: name files or folders, or - for standard "
                                 "input");
    if (generated && config->path_count > 0)
        sl_option_problem(error, "--format ycsb generates its records: leave out the sources");
    if (generated && !sl_option_given(options, "records"))
        sl_option_problem(error, "--format ycsb needs --records, the number of records");
    if (sl_option_given(options, "document-size") && sl_option_given(options, "field-length"))
        sl_option_problem(error, "--document-size determines the lengths of the fields: leave out "
                                 "--field-length");
    if (generated && !error->code)
        config->format_options.ycsb = (sl_ycsb_options){
            .records = sl_option_number(options, "records"),
            .seed = sl_option_number(options, "seed"),
            .field_count = (uint32_t)sl_option_number(options, "field-count"),
            .field_length = (uint32_t)sl_option_number(options, "field-length"),
            .document_bytes = (uint32_t)sl_option_number(options, "document-size"),
            .integer_count = (uint32_t)sl_option_number(options, "integer-count"),
            .skew = strtod(sl_option_string(options, "skew"), NULL),
        };
}

static sl_header_choice header_named(const char *word) {
    return strcmp(word, "yes") == 0  ? SL_HEADER_YES
           : strcmp(word, "no") == 0 ? SL_HEADER_NO
                                     : SL_HEADER_AUTO;
}

/* Reads a schema, for the options in it. NULL if it cannot be read, or belongs to another format
 * than delimited: then the format reads it, and reports errors. */
static sl_schema *schema_of(const char *text, const char *name) {
    sl_schema *schema = NULL;
    sl_error ignored;
    if (text && !sl_schema_read(sl_text_of(text), name, &schema, &ignored))
        return NULL;
    return schema;
}

/* Do two names mean one encoding, as latin1 and cp1252? */
static bool is_same_encoding(const char *name, const char *other) {
    sl_encoding *a = NULL, *b = NULL;
    sl_error ignored;
    bool same = sl_encoding_create(name, &a, &ignored) && sl_encoding_create(other, &b, &ignored) &&
                (a && b ? (a->mixed && b->mixed) || memcmp(a->codes, b->codes, sizeof a->codes) == 0
                        : a == b);
    free(a);
    free(b);
    return same;
}

/* Adds a problem if an option that is given differs from the schema. */
static void check_contradiction(const sl_options *options, const char *name, const char *given,
                                const char *declared, const char *file, sl_error *error) {
    if (!sl_option_given(options, name) || strcmp(given, declared) == 0 ||
        (strcmp(name, "encoding") == 0 && is_same_encoding(given, declared)))
        return;
    char word[300];
    sl_option_problem(error,
                      "--%s %s contradicts the schema %s, which declares %s: leave out the option, "
                      "or change the schema",
                      name, sl_shell_word(given, word, sizeof word), file, declared);
}

/* The value of an option that a schema can declare too. */
static const char *declared_or_given(const sl_options *options, const char *name,
                                     const char *declared, const char *file, sl_error *error) {
    char where[340];
    const char *given = sl_option_string(options, name);
    snprintf(where, sizeof where, "%.300s: %s", file ? file : "", name);
    if (!declared || !sl_option_accepts(options, name, declared, where, error))
        return given;
    check_contradiction(options, name, given ? given : "", declared, file, error);
    return declared;
}

/* Replaces options of the command line by those of a schema, or NULL. */
static void take_schema_options(const sl_options *options, const sl_schema *schema,
                                sl_format_options *into, sl_error *error) {
    static const sl_schema none = {0};
    const char *file = into->schema_name;
    const sl_schema *of = schema ? schema : &none;
#define VALUE(key, option)                                                                         \
    const char *key = declared_or_given(options, option, of->key, file, error);
    SL_SCHEMA_OPTIONS(VALUE)
#undef VALUE
    into->encoding = is_same_encoding(encoding, "utf-8") ? NULL : encoding;
    into->id_fields = id_field;
    into->escape = sl_option_escape(escape);
    into->store_null = strcmp(null_as, "null") == 0;
    into->quoted_lines = strcmp(quoted_lines, "yes") == 0;
    into->pad = strcmp(ragged, "pad") == 0;
    bool same = into->null_count == of->nulls.count;
    for (size_t i = 0; same && i < of->nulls.count; i++)
        same = strcmp(into->nulls[i], of->nulls.words[i]) == 0;
    if (of->nulls.count > 0 && into->null_count > 0 && !same)
        sl_option_problem(error,
                          "--null differs from `null` in the schema %s: leave out the option, or "
                          "change the schema",
                          file);
    if (of->nulls.count > 0) {
        into->nulls = of->nulls.words;
        into->null_count = of->nulls.count;
    }
}

void sl_set_up_source(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    config->path_count = sl_options_argument_count(options);
    config->paths = sl_options_arguments(options);
    config->include = sl_option_string(options, "include");
    config->skip_other = sl_option_flag(options, "skip-other");
    config->format = sl_option_string(options, "format");
    config->format_options = (sl_format_options){
        .long_names = strcmp(sl_option_string(options, "names"), "long") == 0,
        .trim = sl_option_flag(options, "trim"),
        .notation = sl_notation_named(sl_option_string(options, "dialect")),
        .delimiter = sl_option_delimiter(sl_option_string(options, "delimiter")),
        .quote = sl_option_quote(sl_option_string(options, "quote")),
        .header = header_named(sl_option_string(options, "header")),
        .columns = sl_option_string(options, "columns"),
        .skip_lines = sl_option_number(options, "skip-lines"),
        .infer_types = strcmp(sl_option_string(options, "types"), "text") != 0 &&
                       strncmp(sl_option_string(options, "types"), "text,", 5) != 0,
        .declared = sl_option_declared(sl_option_string(options, "types")),
        .keep_missing = strcmp(sl_option_string(options, "missing"), "raw") == 0,
        .schema_name = sl_option_string(options, "schema"),
        .nulls = sl_option_list(options, "null"),
        .null_count = sl_option_list_count(options, "null"),
    };
    if (config->format_options.schema_name) {
        setup->schema_text = read_text("schema", config->format_options.schema_name, error);
        config->format_options.schema_text = setup->schema_text;
        sl_options_refuse(options, SL_FROM_CONFIG, "delimiter|quote|header|columns|skip-lines",
                          "is for text without --schema", error);
    }
    setup->schema = schema_of(setup->schema_text, config->format_options.schema_name);
    take_schema_options(options, setup->schema, &config->format_options, error);
    const sl_format_options *format = &config->format_options;
    if (format->delimiter && format->delimiter == format->quote)
        sl_option_problem(error, "--quote and --delimiter: %c cannot be both", format->quote);
    set_up_generated(config, options, error);
    if (config->format_options.id_fields && strcmp(config->format, "ycsb") == 0)
        sl_option_problem(error, "--id-field: generated records have no column that could become "
                                 "the _id");
}

void sl_set_up_embed(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    if (!(sl_options_command(options)->bit & (SL_COMMAND_LOAD | SL_COMMAND_VERIFY)))
        return;
    const char *text = sl_option_string(options, "embed");
    config->embed_on = sl_option_string(options, "on");
    const char *schema = sl_option_string(options, "embed-schema");
    if (!text) {
        if (config->embed_on || schema)
            sl_option_problem(error, "--on and --embed-schema are for --embed: add --embed "
                                     "FIELD=FILE, or leave them out");
        return;
    }
    size_t length = (size_t)(strchr(text, '=') - text); /* checked when it was read */
    memcpy(setup->embed_field, text, length);
    config->embed_field = setup->embed_field;
    config->embed_path = text + length + 1;
    if (!config->embed_on)
        sl_option_problem(error,
                          "--embed needs --on: name the field by which the records belong to "
                          "documents");
    if (schema)
        setup->embed_schema_text = read_text("embed-schema", schema, error);
    setup->embed_schema = schema_of(setup->embed_schema_text, schema);
    sl_format_options *of_records = &config->embed_format_options;
    *of_records = config->format_options;
    of_records->schema_name = schema;
    of_records->schema_text = setup->embed_schema_text;
    of_records->nulls = sl_option_list(options, "null");
    of_records->null_count = sl_option_list_count(options, "null");
    take_schema_options(options, setup->embed_schema, of_records, error);
    if (!config->work_directory &&
        (config->sink == SL_SINK_NULL || sl_options_command(options)->bit & SL_COMMAND_VERIFY))
        sl_option_problem(error, "--embed needs --work-dir: the records are stored there");
    if (config->parts > 0 || config->only_shards)
        sl_option_problem(error,
                          "--embed with --%s: a loader of a part cannot find the records that are "
                          "in no document; use one loader",
                          config->parts > 0 ? "part" : "only-shards");
}

/* The text of a file that an option names has been read, maybe from a pipe: its hash is listed. */
static void list_option(void *context, const sl_option_row *row, const char *value,
                        sl_option_origin origin) {
    (void)origin;
    sl_setup *setup = context;
    const char *const texts[][2] = {{"schema", setup->schema_text},
                                    {"embed-schema", setup->embed_schema_text},
                                    {"shard-keys", setup->shard_keys_text}};
    char hex[2 * SL_MD5_BYTES + 1], shown[4096];
    sl_text_printable(sl_text_of(value), shown, sizeof shown);
    for (size_t i = 0; row->effect == SL_EFFECT_FILE && i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(row->name, texts[i][0]) == 0 && texts[i][1])
            value = sl_md5_text(texts[i][1], hex);
    }
    BSON_APPEND_UTF8(&setup->document_options, row->name,
                     sl_utf8_valid(value, strlen(value), NULL) ? value : shown);
}

void sl_set_up_document_options(sl_setup *setup, const sl_options *options) {
    sl_options_each_changing(options, list_option, setup);
    setup->config.document_options = &setup->document_options;
}

static void set_up_connection(sl_setup *setup, const sl_options *options, sl_error *error) {
    setup->config.timeout_seconds = (unsigned)sl_option_number(options, "timeout");
    setup->config.wait_seconds = (unsigned)sl_option_seconds(options, "wait");
    if (!error->code && sl_connection_string(options, &setup->uri, error)) /* it may ask the user */
        setup->config.uri = setup->uri;
}

/* The names of a collection that is loaded. */
static void set_up_names(sl_load_config *config, const sl_options *options, sl_error *error) {
    char problem[300];
    config->database = sl_option_string(options, "db");
    config->collection = sl_option_string(options, "collection");
    if (config->database && !sl_check_database(config->database, problem, sizeof problem))
        sl_option_problem(error, "--db: %s", problem);
    if (config->collection && !sl_check_collection(config->collection, problem, sizeof problem))
        sl_option_problem(error, "--collection: %s", problem);
}

void sl_set_up_target(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    set_up_names(config, options, error);
    if (!config->database)
        sl_option_problem(
            error, "--db is missing: name the database (one in --uri is for authentication only)");
    const unsigned named = SL_COMMAND_LOAD | SL_COMMAND_VERIFY; /* collections after tables */
    if (!config->collection &&
        (!(sl_options_command(options)->bit & named) || config->path_count == 0))
        sl_option_problem(error, "--collection is missing: name the collection; for a table of an "
                                 "SQL dump, give its name with --include, too");
    if (config->database && config->collection && strcmp(config->database, "shardload") == 0 &&
        strcmp(config->collection, "balancer") == 0)
        sl_option_problem(error, "shardload.balancer stores the balancer's state during a load: "
                                 "choose another name");
    set_up_connection(setup, options, error);
}

void sl_set_up_examined(sl_setup *setup, const sl_options *options, sl_error *error) {
    set_up_names(&setup->config, options, error);
    set_up_connection(setup, options, error);
}

static void set_up_sink(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    const char *sink = sl_option_string(options, "sink");
    if (!sink) /* a command without --sink */
        sink = "cluster";
    if (strcmp(sink, "null") == 0) {
        config->sink = SL_SINK_NULL;
    } else if (strncmp(sink, "bson:", 5) == 0) {
        config->sink = SL_SINK_BSON;
        config->sink_path = sink + 5;
    }
    if (config->sink == SL_SINK_CLUSTER)
        sl_set_up_target(setup, options, error);
}

void sl_set_up_layout(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    const char *shard_key = sl_option_string(options, "shard-key");
    if (strcmp(shard_key, "none") != 0)
        setup->shard_key = sl_option_shard_key(shard_key, &config->shard_key_unique);
    bool complete = setup->shard_key || strcmp(shard_key, "none") == 0;
    config->shard_key = setup->shard_key;
    config->shard_key_given = sl_option_given(options, "shard-key");
    config->shard_existing = sl_option_flag(options, "shard-existing");
    size_t count = sl_option_list_count(options, "index");
    setup->indexes = calloc(count + 1, sizeof *setup->indexes);
    for (size_t i = 0; setup->indexes && i < count; i++) {
        bson_t *index = sl_option_index(sl_option_list_item(options, "index", i));
        if (index)
            setup->indexes[config->index_count++] = index;
    }
    /* All keys were checked when they were read, so only a failed allocation drops one. */
    if (!complete || config->index_count < count)
        sl_option_memory(error, "reading --shard-key and --index");
    config->indexes = (const bson_t *const *)setup->indexes;
    config->compressor = sl_option_string(options, "compressor");
    config->clustered = sl_option_flag(options, "clustered");
}

static sl_progress_kind progress_named(const char *name) {
#define NAME(id, word) word,
    static const char *const names[] = {SL_PROGRESS_KINDS(NAME)};
#undef NAME
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0)
            return (sl_progress_kind)i;
    }
    return SL_PROGRESS_AUTO; /* not reached: the table of options checks the values */
}

static unsigned cores_here(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (unsigned)cores : 1;
}

/* The number of an option at the start of a load. For auto it is the number in the configuration
 * file (saved by `tune`) or the environment, or else `otherwise`. */
static unsigned start_number(const sl_options *options, const char *name, unsigned otherwise) {
    if (!sl_option_is_word(options, name, "auto"))
        return (unsigned)sl_option_number(options, name);
    unsigned weaker = (unsigned)sl_option_weaker_number(options, name);
    return weaker > 0 ? weaker : otherwise;
}

void sl_set_up_run(sl_setup *setup, const sl_options *options) {
    sl_load_config *config = &setup->config;
    unsigned cores = cores_here();
    config->threads = start_number(options, "threads", 2 * cores);
    /* Without a cluster, threads never wait, so one per core is enough. */
    if (sl_option_is_word(options, "threads", "auto") && config->sink != SL_SINK_CLUSTER)
        config->threads = cores;
    config->work_directory = sl_option_string(options, "work-dir");
    config->report = sl_option_string(options, "report");
    if (sl_options_command(options)->bit & (SL_COMMAND_LOAD | SL_COMMAND_RELOAD | SL_COMMAND_TUNE))
        config->html = sl_option_string(options, "html");
    if (sl_options_command(options)->bit & (SL_COMMAND_LOAD | SL_COMMAND_RESTORE))
        config->metrics = sl_option_string(options, "metrics-file");
    const char *progress = sl_option_string(options, "progress"); /* NULL for tune */
    config->progress = progress ? progress_named(progress) : SL_PROGRESS_AUTO;
}

/* Threads and batch size may change during a load when they are auto, but not in the trials of
 * tune, which set them. */
static void set_up_pace(sl_load_config *config, const sl_options *options) {
    const unsigned adapting = SL_COMMAND_LOAD | SL_COMMAND_RELOAD | SL_COMMAND_RESTORE;
    bool limited = sl_option_given(options, "rate-limit") &&
                   !sl_option_is_word(options, "rate-limit", "unlimited");
    bool adapt = config->sink == SL_SINK_CLUSTER && !limited &&
                 (sl_options_command(options)->bit & adapting) != 0;
    bool automatic = sl_option_is_word(options, "batch-size", "auto");
    config->batch_documents = start_number(options, "batch-size", BATCH_DOCUMENTS);
    config->batch_bytes = (size_t)sl_option_number(options, "batch-bytes");
    config->adapt_batches = adapt && automatic;
    if (limited)
        config->rate_limit = sl_option_number(options, "rate-limit");
    if (adapt && sl_option_is_word(options, "threads", "auto")) {
        unsigned usual = 2 * cores_here();
        unsigned most = 2 * (config->threads > usual ? config->threads : usual);
        config->threads_most = most < THREADS_FEW    ? THREADS_FEW
                               : most > THREADS_MANY ? THREADS_MANY
                                                     : most;
        if (config->threads_most < config->threads)
            config->threads_most = config->threads;
    }
}

/* --only-shards, and the options that it excludes. */
static void set_up_shards(sl_load_config *config, const sl_options *options, sl_error *error) {
    config->only_shards = sl_option_string(options, "only-shards");
    if (!config->only_shards)
        return;
    if (config->parts > 0)
        sl_option_problem(error, "--only-shards and --part both share a load: choose one of them");
    if (config->sink != SL_SINK_CLUSTER)
        sl_option_problem(error, "--only-shards is for loads into a cluster; with another --sink "
                                 "share the load with --part");
    if (!config->shard_key || !sl_key_is_id(config->shard_key))
        sl_option_problem(error, "--only-shards is for collections sharded by {\"_id\": 1}; with "
                                 "another --shard-key share the load with --part");
}

void sl_set_up_mode(sl_load_config *config, const sl_options *options, sl_error *error) {
    sl_format_options *format = &config->format_options;
    const char *mode = sl_option_string(options, "mode");
    if (!mode) /* the command has no --mode */
        return;
    format->mode = sl_mode_named(mode);
    const sl_mode_row *row = &sl_modes[format->mode];
    format->match_fields = sl_option_string(options, "match-fields");
    if (!row->matches) {
        if (format->match_fields)
            sl_option_problem(error,
                              "--match-fields is for modes that match stored documents, "
                              "not for --mode %s",
                              mode);
        return;
    }
    if (config->sink != SL_SINK_CLUSTER)
        sl_option_problem(error, "--mode %s is for loads into a cluster", mode);
    if (config->direct)
        sl_option_problem(error, "--mode %s goes through the routers: leave out --route direct",
                          mode);
    if (strcmp(config->format, "ycsb") == 0)
        sl_option_problem(
            error, "--mode %s is for records that exist: --format ycsb generates new ones", mode);
    if (config->drop && !row->creates)
        sl_option_problem(error, "--mode %s needs the stored documents: leave out --drop", mode);
}

static void set_up_delivery(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_load_config *config = &setup->config;
    set_up_pace(config, options);
    config->write_concern = "majority";
    if (!sl_option_is_word(options, "write-concern", "majority")) {
        snprintf(setup->write_concern, sizeof setup->write_concern, "%llu",
                 (unsigned long long)sl_option_number(options, "write-concern"));
        config->write_concern = setup->write_concern;
    }
    config->rejects_max = UINT64_MAX;
    config->rejects_max_share = 1;
    config->rejects_auto = sl_option_is_word(options, "max-rejects", "auto");
    if (!config->rejects_auto && !sl_option_is_word(options, "max-rejects", "unlimited")) {
        if (sl_option_is_percentage(options, "max-rejects"))
            config->rejects_max_share = (double)sl_option_number(options, "max-rejects") / 10000;
        else
            config->rejects_max = sl_option_number(options, "max-rejects");
    }
    config->direct = strcmp(sl_option_string(options, "route"), "direct") == 0;
    if (config->direct && config->sink != SL_SINK_CLUSTER)
        sl_option_problem(error, "--route direct is for loads into a cluster");
    const char *shard_key = sl_option_string(options, "shard-key"); /* NULL for restore */
    if (config->direct && shard_key && strcmp(shard_key, "none") == 0)
        sl_option_problem(error, "--route direct needs a sharded collection: leave out --shard-key "
                                 "none, or --route");
    config->drop = sl_option_flag(options, "drop");
    if (sl_option_given(options, "part"))
        sl_option_parse_part(sl_option_string(options, "part"), &config->part, &config->parts);
    set_up_shards(config, options, error);
    if (config->drop && (config->parts > 0 || config->only_shards))
        sl_option_problem(error,
                          "--drop with --%s would drop the documents of the other loaders: "
                          "drop the collection beforehand",
                          config->parts > 0 ? "part" : "only-shards");
    config->again = sl_option_flag(options, "again");
    config->another_pipe = sl_option_flag(options, "another-pipe");
    config->resume = sl_option_flag(options, "resume");
    config->retry_seconds = (unsigned)sl_option_number(options, "retry-timeout");
    if (config->resume && !config->work_directory)
        sl_option_problem(error, "--resume needs --work-dir: name the work directory of the "
                                 "interrupted load");
    if (config->resume && config->sink != SL_SINK_CLUSTER)
        sl_option_problem(error, "--resume is for loads into a cluster: a load into another --sink "
                                 "cannot be resumed");
    config->verify = !sl_option_flag(options, "no-verify");
    config->allow_other_writers = sl_option_flag(options, "allow-other-writers");
}

/* Appends the options of a load that the load of its corrected rejects must have too. */
static void append_repeated(void *context, const sl_option_row *row, const char *value,
                            sl_option_origin origin) {
    sl_setup *setup = context;
    const size_t used = strlen(setup->corrected_by), room = sizeof setup->corrected_by;
    char word[SL_WORD_ROOM(500)];
    if (used == 0 || origin == SL_FROM_DEFAULT || !value || row->once || row->secret == SL_SECRET ||
        (row->kind == SL_OPTION_FLAG && strcmp(value, "false") == 0) ||
        !sl_list_has("Target|Connection|Source", '|', sl_text_of(row->group)))
        return;
    const bool flag = row->kind == SL_OPTION_FLAG;
    const int length =
        snprintf(setup->corrected_by + used, room - used, " --%s%s%s", row->name, flag ? "" : " ",
                 flag ? "" : sl_shell_word(value, word, sizeof word));
    if (strlen(value) > 500 || (size_t)length >= room - used)
        setup->corrected_by[0] = '\0'; /* a command without one of its options is not shown */
}

static void set_up_corrected_by(sl_setup *setup, const sl_options *options) {
    const sl_load_config *config = &setup->config;
    if (config->embed_field || config->sink != SL_SINK_CLUSTER)
        return;
    strcpy(setup->corrected_by, "shardload load");
    sl_options_each(options, append_repeated, setup);
    setup->config.corrected_by = setup->corrected_by[0] ? setup->corrected_by : NULL;
}

bool sl_set_up_load(sl_setup *setup, const sl_options *options, sl_error *error) {
    sl_set_up_source(setup, options, error);
    set_up_sink(setup, options, error);
    sl_set_up_layout(setup, options, error);
    sl_set_up_run(setup, options);
    set_up_delivery(setup, options, error);
    sl_set_up_embed(setup, options, error);
    sl_set_up_mode(&setup->config, options, error);
    sl_set_up_document_options(setup, options);
    set_up_corrected_by(setup, options);
    if (setup->config.progress == SL_PROGRESS_JSON && setup->config.sink_path &&
        strcmp(setup->config.sink_path, "-") == 0)
        sl_option_problem(error, "--progress json and --sink bson:- both write to standard output: "
                                 "choose one of them");
    return !error->code;
}

bool sl_set_up_restore(sl_setup *setup, const sl_options *options, sl_error *error) {
    const char *shard_keys = sl_option_string(options, "shard-keys");
    if (shard_keys)
        setup->shard_keys_text = read_text("shard-keys", shard_keys, error);
    sl_set_up_document_options(setup, options);
    for (size_t i = 0; i < 2; i++) { /* they select and name what is restored */
        const char *name = i == 0 ? "db" : "collection", *value = sl_option_string(options, name);
        if (value)
            BSON_APPEND_UTF8(&setup->document_options, name, value);
    }
    setup->config.skip_other = sl_option_flag(options, "skip-other");
    sl_set_up_run(setup, options);
    set_up_delivery(setup, options, error);
    if (!sl_option_flag(options, "dry-run"))
        set_up_connection(setup, options, error);
    return !error->code;
}

void sl_set_up_verify_dump(sl_setup *setup, const sl_options *options, sl_error *error) {
    setup->config.skip_other = sl_option_flag(options, "skip-other");
    sl_set_up_run(setup, options);
    set_up_connection(setup, options, error);
}

void sl_setup_init(sl_setup *setup, const sl_options *options) {
    *setup = (sl_setup){.config = {.program_version = SHARDLOAD_VERSION, .sample = 1}};
    bson_init(&setup->options);
    bson_init(&setup->document_options);
    sl_options_append(options, &setup->options);
    setup->config.options = &setup->options;
}

static void clear(sl_setup *setup) {
    bson_destroy(&setup->options);
    bson_destroy(&setup->document_options);
    bson_destroy(setup->shard_key);
    for (size_t i = 0; i < setup->config.index_count; i++)
        bson_destroy(setup->indexes[i]);
    free(setup->indexes);
    sl_schema_destroy(setup->schema);
    sl_schema_destroy(setup->embed_schema);
    free(setup->schema_text);
    free(setup->embed_schema_text);
    free(setup->shard_keys_text);
    sl_secret_free(setup->uri);
}

int sl_setup_end(sl_setup *setup, const sl_error *error, sl_exit code) {
    if (error->code)
        sl_log_error(SL_LINES, error->message);
    clear(setup);
    return error->code ? (int)error->code : (int)code;
}
