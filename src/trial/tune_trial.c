/* SPDX-License-Identifier: Apache-2.0 */
/* A single trial: makes the configuration of a load from a setting, runs it, and reads its figures
 * from its record. */
#include "tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/uri.h"
#include "format/ycsb.h"
#include "report/lookup.h"
#include "util/clock.h"
#include "util/document_id.h"
#include "util/interrupt.h"
#include "util/phase_names.h"
#include "util/private_file.h"
#include "util/text.h"

/* The names of the dimensions, and the types of their values in tune.json. */
static const struct {
    const char *option;
    const char *key;
    enum { NUMBER, TRUTH, WORD } kind;
} names[SL_TUNE_DIMENSIONS] = {
    [SL_TUNE_THREADS] = {"threads", "threads", NUMBER},
    [SL_TUNE_BATCH_SIZE] = {"batch-size", "batchSize", NUMBER},
    [SL_TUNE_COMPRESSOR] = {"compressor", "compressor", WORD},
    [SL_TUNE_CLUSTERED] = {"clustered", "clustered", TRUTH},
    [SL_TUNE_WRITE_CONCERN] = {"write-concern", "writeConcern", WORD},
    [SL_TUNE_ROUTE] = {"route", "route", WORD},
    [SL_TUNE_WIRE_COMPRESSION] = {"wire-compression", "wireCompression", WORD},
};

const char *sl_tune_option(sl_tune_dimension dimension) {
    return names[dimension].option;
}

const char *sl_tune_key(sl_tune_dimension dimension) {
    return names[dimension].key;
}

static const char *value_at(const sl_tune *tune, const size_t *at, sl_tune_dimension dimension) {
    return tune->config->values[dimension].items[at[dimension]];
}

size_t sl_tune_cell(const sl_tune *tune, const size_t *at) {
    size_t cell = 0;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        cell = cell * tune->dimensions[d].count + at[d];
    return cell;
}

const char *sl_tune_value(const sl_tune *tune, size_t cell, sl_tune_dimension dimension) {
    return value_at(tune, tune->search.cells[cell].at, dimension);
}

void sl_tune_append_value(bson_t *document, const char *key, sl_tune_dimension dimension,
                          const char *value) {
    if (names[dimension].kind == NUMBER)
        bson_append_int64(document, key, -1, strtoll(value, NULL, 10));
    else if (names[dimension].kind == TRUTH)
        bson_append_bool(document, key, -1, strcmp(value, "true") == 0);
    else if (*value)
        bson_append_utf8(document, key, -1, value, -1);
    else
        bson_append_null(document, key, -1); /* the default of the server or connection string */
}

void sl_tune_append_setting(const sl_tune *tune, const size_t *at, bson_t *document) {
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        sl_tune_append_value(document, names[d].key, d, value_at(tune, at, d));
}

/* ---- a setting as a configuration ---- */

/* The connection string, with a compressor unless it names one already. Free the result. */
static char *with_wire_compression(const char *uri, const char *compressor) {
    size_t room = strlen(uri) + strlen(compressor) + 32;
    char *made = malloc(room);
    if (!made)
        return NULL;
    const char *hosts = strstr(uri, "://");
    const char *slash = hosts ? strchr(hosts + 3, '/') : NULL;
    const char *query = strchr(uri, '?');
    const char *joint = query ? "&" : slash ? "?" : "/?";
    bool named = sl_uri_named_compressors(uri) != NULL;
    if (*compressor && strcmp(compressor, "none") != 0 && !named)
        snprintf(made, room, "%s%scompressors=%s", uri, joint, compressor);
    else
        snprintf(made, room, "%s", uri);
    return made;
}

/* The options for the trial's record: those of the command, with the values of the setting. */
static void make_options(const sl_tune *tune, const size_t *at, bson_t *options) {
    bson_init(options);
    bson_copy_to_excluding_noinit(tune->config->load->options, options, names[0].option,
                                  names[1].option, names[2].option, names[3].option,
                                  names[4].option, names[5].option, names[6].option, NULL);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        sl_tune_append_value(options, names[d].option, d, value_at(tune, at, d));
}

static void apply(const sl_tune *tune, const size_t *at, sl_load_config *load) {
    const char *compressor = value_at(tune, at, SL_TUNE_COMPRESSOR);
    load->threads = (unsigned)strtoul(value_at(tune, at, SL_TUNE_THREADS), NULL, 10);
    load->batch_documents = (uint32_t)strtoul(value_at(tune, at, SL_TUNE_BATCH_SIZE), NULL, 10);
    load->compressor = *compressor ? compressor : NULL;
    load->clustered = strcmp(value_at(tune, at, SL_TUNE_CLUSTERED), "true") == 0;
    load->write_concern = value_at(tune, at, SL_TUNE_WRITE_CONCERN);
    load->direct = strcmp(value_at(tune, at, SL_TUNE_ROUTE), "direct") == 0;
}

/* ---- figures of the load ---- */

static void read_sources(const bson_t *record, double record_bytes, sl_tune_load *figures) {
    figures->splittable = true;
    for (sl_walk walk = sl_walk_start(record, "sources"); sl_walk_next(&walk);) {
        if (sl_look_truth(&walk.item, "leftOut") == 1)
            continue;
        double text = sl_look_amount(&walk.item, "records", 0) * record_bytes +
                      sl_look_amount(&walk.item, "storedBytes", 0);
        bool splittable = sl_look_truth(&walk.item, "cut") == 1;
        figures->splittable = figures->splittable && splittable;
        figures->source_text += text;
        figures->source_blocks += splittable ? fmax(1, ceil(text / (double)SL_BLOCK_BYTES)) : 1;
    }
}

static bool make_work_directory(sl_tune *tune, sl_tune_purpose purpose, char path[600],
                                sl_error *error) {
    bool probe = purpose == SL_TUNE_FOR_PROBE;
    const char *name = probe ? "probe" : "trial";
    unsigned number = probe ? ++tune->probes : ++tune->loads;
    /* A journal of an earlier, interrupted tuning belongs to a collection that no longer exists. */
    snprintf(path, 600, "%s/%s-%03u/journal", tune->work_directory, name, number);
    sl_private_file_remove(path);
    snprintf(path, 600, "%s/%s-%03u", tune->work_directory, name, number);
    return sl_private_folder_make(path, NULL, error);
}

static bool run(sl_tune *tune, const sl_load_config *load, const bson_t *account,
                sl_tune_load *figures) {
    int64_t start = sl_clock_ns();
    sl_exit code = sl_load_run(load);
    figures->total_seconds = sl_seconds_since(start);
    figures->documents = (uint64_t)sl_look_amount(account, "accounting.inserted", 0);
    figures->text_bytes = (uint64_t)sl_look_amount(account, "accounting.textBytes", 0);
    figures->bson_bytes = (uint64_t)sl_look_amount(account, "accounting.bsonBytes", 0);
    figures->seconds = fmax(0, sl_look_phase_seconds(account, "phases", SL_PHASE_LOAD));
    read_sources(account, sl_ycsb_record_bytes(&tune->config->load->format_options.ycsb), figures);
    if (code == SL_EXIT_INTERRUPTED || sl_interrupt_requested()) {
        tune->interrupted = true;
        return false;
    }
    if (code == SL_EXIT_OK || code == SL_EXIT_REJECTS)
        return true;
    tune->load_failed = true;
    return sl_error_set(&tune->failure, code, "the trial in %s failed", load->work_directory);
}

bool sl_tune_load_once(sl_tune *tune, const size_t *at, double share, sl_tune_purpose purpose,
                       sl_tune_load *figures) {
    bson_t account = BSON_INITIALIZER, options;
    char path[600];
    char *uri = NULL;
    *figures = (sl_tune_load){.documents = 0};
    tune->load_failed = false;
    make_options(tune, at, &options);
    sl_load_config load =
        sl_load_as_trial(tune->config->load, tune->scratch, path, share, &account);
    apply(tune, at, &load);
    bool ok = make_work_directory(tune, purpose, path, &tune->failure);
    if (ok) {
        uri = with_wire_compression(load.uri, value_at(tune, at, SL_TUNE_WIRE_COMPRESSION));
        ok = uri || sl_error_memory(&tune->failure, "starting a trial");
    }
    load.uri = uri;
    load.options = &options;
    load.drop = true;
    load.verify = false;
    load.index_count = purpose == SL_TUNE_FOR_STORAGE ? load.index_count : 0;
    sl_throwaway_register(&tune->throwaway, tune->connection, load.database, tune->scratch);
    ok = ok && run(tune, &load, &account, figures);
    sl_error removing = {0};
    /* Dropped now, so that the drop does not slow down the next trial. */
    if (purpose != SL_TUNE_FOR_STORAGE && !sl_throwaway_drop(&tune->throwaway, &removing) && ok) {
        tune->failure = removing;
        ok = false;
    }
    sl_secret_free(uri);
    bson_destroy(&options);
    bson_destroy(&account);
    return ok;
}

bool sl_tune_time_is_up(const sl_tune *tune) {
    double limit = tune->config->time_max;
    return limit > 0 &&
           sl_seconds_since(tune->begun) + tune->trial_seconds + tune->other_seconds > limit;
}
