/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that are run one at a time: timed runs on one connection, their entries in a report, and
 * their tables on standard output. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/estimate.h"
#include "util/grow.h"
#include "util/print.h"
#include "util/process.h"
#include "util/text_table.h"

#include "operation.h"
#include "query.h"

/* ---- runs ----
 *
 * Runs a query repeatedly on one connection. Each run is timed from sending the command to the last
 * document of the last batch. */

#define CODE_NAMESPACE_NOT_FOUND 26
#define CODE_NO_COUNT 40481 /* of a collection that does not exist, before server 5.0 */
#define CODE_COMMAND_NOT_FOUND 59
#define CODE_COMMAND_NOT_SUPPORTED 115

/* The documents of one run's answer, up to SL_RESULT_BYTES_MAX. */
typedef struct collected {
    bson_t *documents;
    uint32_t count;
    bool truncated;
} collected;

static bool collect(void *context, const bson_t *document) {
    collected *so_far = context;
    char room[SL_ARRAY_KEY_ROOM];
    const char *key = sl_array_key(so_far->count++, room);
    so_far->truncated = so_far->truncated ||
                        (uint64_t)so_far->documents->len + document->len > SL_RESULT_BYTES_MAX ||
                        !BSON_APPEND_DOCUMENT(so_far->documents, key, document);
    return true;
}

/* The state of all runs of a query. */
typedef struct session {
    sl_connection *connection;
    sl_runner runner;
    sl_query_target target;
    const sl_query *query;
    const sl_query_options *options;
} session;

static bool run_once(session *s, collected *answer, sl_result *result, double *milliseconds,
                     sl_error *error) {
    bson_t statistic = BSON_INITIALIZER;
    bool ok;
    int64_t start = sl_clock_ns();
    if (s->query->statistic)
        ok = sl_statistic_run(s->connection, s->query, &s->target, s->options->documents,
                              &statistic, result, error);
    else
        ok = sl_runner_run(&s->runner, collect, answer, result, error);
    *milliseconds = (double)(sl_clock_ns() - start) / 1e6;
    if (ok && s->query->statistic && !bson_empty(&statistic))
        collect(answer, &statistic);
    bson_destroy(&statistic);
    return ok;
}

static void check_answer(sl_query_run *run, const sl_query *query, const bson_t *expected) {
    char hash[SL_ANSWER_HASH_ROOM];
    if (!expected && !query->expected_hash)
        return;
    run->answer = SL_ANSWER_OK;
    if (run->truncated) {
        run->answer = SL_ANSWER_WRONG;
        run->differences.count = 1;
        snprintf(run->differences.text[0], sizeof run->differences.text[0],
                 "the answer is larger than 64 MiB and cannot be compared");
    } else if (expected) {
        if (!sl_answer_compare(expected, run->documents, &run->differences))
            run->answer = SL_ANSWER_WRONG;
    } else if (strcmp(sl_answer_hash(run->documents, hash), query->expected_hash) != 0) {
        run->answer = SL_ANSWER_WRONG;
        run->differences.count = 1;
        snprintf(run->differences.text[0], sizeof run->differences.text[0],
                 "the answer's hash is %s, expected %.40s", hash, query->expected_hash);
    }
}

static bool run_cold_command(const char *command, sl_error *error) {
    int status = 0;
    pid_t child = command ? sl_process_start_shell(command, false) : 0;
    if (child < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "--cold: no process can be started");
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0 ||
           sl_error_set(error, SL_EXIT_USAGE, "--cold: the command failed (status %d)", status);
}

/* Does the warm-up runs and the timed runs. The first wrong answer is kept in `run`. */
static bool run_all(session *s, sl_query_run *run) {
    const sl_query_options *options = s->options;
    unsigned runs = options->warm_up + options->repeat;
    for (unsigned i = 0; i < runs; i++) {
        if (options->stop && atomic_load(options->stop))
            return sl_error_set(&run->error, SL_EXIT_INTERRUPTED, "interrupted");
        if (options->progress)
            options->progress(options->context, i + 1, runs);
        collected answer = {.documents = bson_new()};
        sl_result result = {0};
        double milliseconds;
        if (!run_cold_command(options->cold, &run->error) ||
            !(sl_runner_prepare(&s->runner) || sl_error_memory(&run->error, "preparing a query")) ||
            !run_once(s, &answer, &result, &milliseconds, &run->error)) {
            bool unsupported =
                result.code == CODE_COMMAND_NOT_FOUND || result.code == CODE_COMMAND_NOT_SUPPORTED;
            run->answer = unsupported ? SL_ANSWER_UNSUPPORTED : SL_ANSWER_NONE;
            bson_destroy(answer.documents);
            return false;
        }
        if (i < options->warm_up || run->answer == SL_ANSWER_WRONG) {
            bson_destroy(answer.documents);
        } else {
            bson_destroy(run->documents);
            run->documents = answer.documents;
            run->document_count = answer.count;
            run->bytes = result.bytes;
            run->truncated = answer.truncated;
            check_answer(run, s->query, options->expected);
        }
        if (i >= options->warm_up)
            run->timings[run->count++] = milliseconds;
    }
    return true;
}

bool sl_query_execute(sl_connection *connection, sl_query *query, const sl_query_options *options,
                      sl_query_run *run) {
    *run = (sl_query_run){.answer = SL_ANSWER_NOT_CHECKED};
    run->timings = malloc((size_t)2 * options->repeat * sizeof *run->timings);
    run->documents = bson_new();
    if (!run->timings)
        return sl_error_memory(&run->error, "timing a query");
    session s = {.connection = connection,
                 .query = query,
                 .options = options,
                 .target = {.database = options->database,
                            .collection = options->collection,
                            .read_preference = options->read_preference,
                            .limit = options->limit,
                            .seed = options->seed}};
    if (!sl_query_sample(connection, query, &s.target, &run->error)) {
        run->answer = SL_ANSWER_NONE;
        return false;
    }
    mongoc_client_t *client = sl_connection_borrow(connection);
    bool ok = sl_runner_init(&s.runner, connection, client, query, &s.target, 0, 1, &run->error) &&
              (!options->explain || sl_explain_query(&s.runner, options->documents, run)) &&
              run_all(&s, run);
    if (!ok && run->answer != SL_ANSWER_UNSUPPORTED)
        run->answer = SL_ANSWER_NONE;
    if (run->count > 0) {
        double *sorted = run->timings + options->repeat; /* `timings` keep their order */
        memcpy(sorted, run->timings, run->count * sizeof *sorted);
        run->sample = sl_sample_of(sorted, run->count);
    }
    sl_runner_clear(&s.runner);
    sl_connection_return(connection, client);
    return ok;
}

void sl_query_run_clear(sl_query_run *run) {
    free(run->timings);
    bson_destroy(run->documents);
    bson_destroy(run->explained);
    *run = (sl_query_run){.answer = SL_ANSWER_NOT_CHECKED};
}

bool sl_query_count_documents(sl_connection *connection, const char *database,
                              const char *collection, uint64_t *count, bool *exists,
                              sl_error *error) {
    *count = 0;
    *exists = false;
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(collection), "pipeline", "[", "{", "$collStats", "{",
                 "count", "{", "}", "}", "}", "{", "$group", "{", "_id", BCON_NULL, "n", "{",
                 "$sum", "$count", "}", "}", "}", "]", "cursor", "{", "}");
    bson_t reply;
    bson_iter_t found;
    int32_t code;
    sl_error failure = {0};
    bool ok = sl_connection_command(connection, database, command, &reply, &code, &failure);
    if (ok && sl_look_find(&reply, "cursor.firstBatch.0.n", &found)) {
        const double number = sl_value_number(&found);
        *exists = true;
        *count = number > 0 && number < SL_VALUE_MAX ? (uint64_t)number : 0;
    }
    bson_destroy(&reply);
    bson_destroy(command);
    if (!ok && code != CODE_NAMESPACE_NOT_FOUND && code != CODE_NO_COUNT)
        return sl_error_set(error, failure.code, "counting documents: " SL_LINES, failure.message);
    return true;
}

/* ---- entries of a report ----
 *
 * The entries contain every timing, so that
 * reports can be compared. */

sl_sample sl_sample_of(double *values, size_t count) {
    double sum = 0, squares = 0;
    qsort(values, count, sizeof *values, sl_by_value);
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (sl_sample){
        .count = count,
        .minimum = values[0],
        .median = (values[(count - 1) / 2] + values[count / 2]) / 2,
        .mean = mean,
        .deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0,
        .maximum = values[count - 1],
    };
}

/* Documents examined per millisecond, over the timed runs. False when the number of examined
 * documents is unknown, there is no timing, or memory ran out. */
static bool outcome_rate(const sl_query_outcome *outcome, sl_sample *rate) {
    const sl_query_run *run = outcome->run;
    double *rates =
        run->examined_known && run->count > 0 ? malloc(run->count * sizeof *rates) : NULL;
    if (!rates)
        return false;
    for (size_t i = 0; i < run->count; i++)
        rates[i] = (double)run->examined / (run->timings[i] > 1e-6 ? run->timings[i] : 1e-6);
    *rate = sl_sample_of(rates, run->count);
    free(rates);
    return true;
}

static bool append_timings(bson_t *entry, const sl_query_run *run) {
    bson_t timings;
    if (!BSON_APPEND_ARRAY_BEGIN(entry, "timingsMs", &timings))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        if (!bson_append_double(&timings, sl_array_key(i, room), -1, run->timings[i]))
            return false;
    }
    if (!bson_append_array_end(entry, &timings))
        return false;
    const sl_sample *sample = &run->sample;
    return run->count == 0 || (BSON_APPEND_DOUBLE(entry, "minMs", sample->minimum) &&
                               BSON_APPEND_DOUBLE(entry, "medianMs", sample->median) &&
                               BSON_APPEND_DOUBLE(entry, "meanMs", sample->mean) &&
                               BSON_APPEND_DOUBLE(entry, "deviationMs", sample->deviation) &&
                               BSON_APPEND_DOUBLE(entry, "maxMs", sample->maximum));
}

static bool append_differences(bson_t *entry, const sl_differences *differences) {
    bson_t list;
    bool ok = BSON_APPEND_INT64(entry, "differenceCount", (int64_t)differences->count) &&
              BSON_APPEND_ARRAY_BEGIN(entry, "differences", &list);
    for (uint32_t i = 0; ok && i < differences->count && i < SL_DIFFERENCES_KEPT; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        ok = bson_append_utf8(&list, sl_array_key(i, room), -1, differences->text[i], -1);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool fill(bson_t *entry, const sl_query_outcome *outcome) {
    const sl_query *query = outcome->query;
    const sl_query_options *options = outcome->options;
    const sl_query_run *run = outcome->run;
    const char *preference = sl_operation_writes(query->operation) ? NULL
                             : options->read_preference            ? options->read_preference
                                                                   : query->read_preference;
    sl_sample rate;
    bool rated = outcome_rate(outcome, &rate);
    char hash[SL_ANSWER_HASH_ROOM];
    return BSON_APPEND_UTF8(entry, "suite", outcome->suite->name) &&
           BSON_APPEND_UTF8(entry, "name", query->name) &&
           BSON_APPEND_UTF8(entry, "database", options->database) &&
           BSON_APPEND_UTF8(entry, "collection", options->collection) &&
           (!outcome->documents_known ||
            BSON_APPEND_INT64(entry, "documents", (int64_t)outcome->documents)) &&
           BSON_APPEND_UTF8(entry, "operation", sl_operation_name(query->operation)) &&
           (!query->pipeline || BSON_APPEND_ARRAY(entry, "pipeline", query->pipeline)) &&
           (!query->body || BSON_APPEND_DOCUMENT(entry, "body", query->body)) &&
           (options->limit == 0 || BSON_APPEND_INT64(entry, "limit", options->limit)) &&
           BSON_APPEND_DOCUMENT(entry, "options", query->options) &&
           (!preference || BSON_APPEND_UTF8(entry, "readPreference", preference)) &&
           BSON_APPEND_INT64(entry, "warmUp", options->warm_up) &&
           BSON_APPEND_INT64(entry, "repeat", options->repeat) && append_timings(entry, run) &&
           (!run->examined_known || BSON_APPEND_INT64(entry, "examined", (int64_t)run->examined)) &&
           (!rated || (BSON_APPEND_DOUBLE(entry, "documentsPerMs", rate.median) &&
                       BSON_APPEND_DOUBLE(entry, "documentsPerMsMean", rate.mean) &&
                       BSON_APPEND_DOUBLE(entry, "documentsPerMsDeviation", rate.deviation))) &&
           BSON_APPEND_UTF8(entry, "answer", sl_answer_text(run->answer)) &&
           (run->answer != SL_ANSWER_WRONG || append_differences(entry, &run->differences)) &&
           (run->error.code == SL_EXIT_OK ||
            BSON_APPEND_UTF8(entry, "error", run->error.message)) &&
           (!run->explained || BSON_APPEND_DOCUMENT(entry, "explain", run->explained)) &&
           BSON_APPEND_INT64(entry, "resultCount", (int64_t)run->document_count) &&
           BSON_APPEND_INT64(entry, "resultBytes", (int64_t)run->bytes) &&
           (run->truncated || run->count == 0 ||
            BSON_APPEND_UTF8(entry, "answerHash", sl_answer_hash(run->documents, hash))) &&
           BSON_APPEND_BOOL(entry, "resultsComplete", !run->truncated) &&
           BSON_APPEND_ARRAY(entry, "results", run->documents);
}

bool sl_report_add(bson_t *queries, bson_t *entry, bool filled) {
    char room[SL_ARRAY_KEY_ROOM];
    const char *key = sl_array_key(bson_count_keys(queries), room);
    bool ok = filled && BSON_APPEND_DOCUMENT(queries, key, entry);
    bson_destroy(entry);
    return ok;
}

bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome) {
    bson_t *entry = bson_new();
    return sl_report_add(queries, entry, fill(entry, outcome));
}

/* ---- tables of documents ---- */

#define PATH_ROOM 200

typedef struct field {
    char path[PATH_ROOM]; /* "_id.make" */
    bool numbers;         /* all values are numbers or null */
    int decimals;         /* with which all its doubles are printed */
    bson_iter_t value;    /* in the current row */
    bool present;         /* in the current row */
} field;

typedef struct fields {
    field *items; /* room for SL_TEXT_COLUMNS_MAX */
    size_t count;
} fields;

static field *field_at(fields *all, const char *path) {
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].path, path) == 0)
            return &all->items[i];
    }
    if (all->count == SL_TEXT_COLUMNS_MAX)
        return NULL; /* further keys are not shown */
    field *added = &all->items[all->count++];
    *added = (field){.numbers = true};
    snprintf(added->path, sizeof added->path, "%s", path);
    return added;
}

/* Two decimals, or as many (up to 8) as show two significant digits of a small value. */
static int decimals_for(double value) {
    if (value == 0 || !isfinite(value))
        return 2;
    int needed = 1 - (int)floor(log10(fabs(value)));
    return needed < 2 ? 2 : needed > 8 ? 8 : needed;
}

/* Sets the fields to the values of a document, and adds fields for new keys. */
static void read_fields(fields *all, const bson_iter_t *document, const char *prefix) {
    bson_iter_t value;
    bool more = bson_iter_recurse(document, &value);
    while (more && bson_iter_next(&value)) {
        char path[PATH_ROOM];
        bson_iter_t inside;
        int length = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "",
                              bson_iter_key(&value));
        /* An empty key would not lengthen the path, so the recursion would have no bound. */
        bool fits = length < (int)sizeof path && *bson_iter_key(&value);
        if (fits && BSON_ITER_HOLDS_DOCUMENT(&value) && bson_iter_recurse(&value, &inside) &&
            bson_iter_next(&inside)) {
            read_fields(all, &value, path);
            continue;
        }
        field *cell = field_at(all, path);
        if (!cell)
            continue;
        cell->value = value;
        cell->present = true;
        if (!BSON_ITER_HOLDS_NUMBER(&value) && !BSON_ITER_HOLDS_NULL(&value))
            cell->numbers = false;
        if (BSON_ITER_HOLDS_DOUBLE(&value)) {
            int decimals = decimals_for(bson_iter_double(&value));
            cell->decimals = decimals > cell->decimals ? decimals : cell->decimals;
        }
    }
}

static void put_date(sl_text_table *table, int64_t milliseconds) {
    time_t seconds = (time_t)(milliseconds / 1000 - (milliseconds % 1000 < 0));
    struct tm parts;
    char text[40];
    const char *format = seconds % 86400 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d";
    if (gmtime_r(&seconds, &parts) && strftime(text, sizeof text, format, &parts) > 0)
        sl_text_table_cell(table, "%s", text);
    else
        sl_text_table_cell(table, "%" PRId64 " ms", milliseconds);
}

static void put_integer(sl_text_table *table, int64_t number, bool in_id) {
    char figure[SL_HUMAN_ROOM];
    if (in_id)
        sl_text_table_cell(table, "%" PRId64, number);
    else
        sl_text_table_cell(
            table, "%s%s", number < 0 ? "-" : "",
            sl_human_count(number < 0 ? -(uint64_t)number : (uint64_t)number, figure));
}

static void put_json(sl_text_table *table, const bson_iter_t *value) {
    char *json = sl_json_value(value);
    sl_text_table_cell(table, "%s", json ? json : "?");
    free(json);
}

static void put_value(sl_text_table *table, const field *cell) {
    bool in_id = strcmp(cell->path, "_id") == 0 || strncmp(cell->path, "_id.", 4) == 0;
    const bson_iter_t *value = &cell->value;
    if (!cell->present)
        sl_text_table_cell(table, "%s", "");
    else if (BSON_ITER_HOLDS_INT(value))
        put_integer(table, bson_iter_as_int64(value), in_id);
    else if (BSON_ITER_HOLDS_DOUBLE(value) && in_id)
        sl_text_table_cell(table, "%.15g", bson_iter_double(value));
    else if (BSON_ITER_HOLDS_DOUBLE(value))
        sl_text_table_figure(table, true, bson_iter_double(value), cell->decimals);
    else if (BSON_ITER_HOLDS_UTF8(value))
        sl_text_table_cell(table, "%s", bson_iter_utf8(value, NULL));
    else if (BSON_ITER_HOLDS_DATE_TIME(value))
        put_date(table, bson_iter_date_time(value));
    else
        put_json(table, value);
}

void sl_table_print_documents(const bson_t *documents, size_t rows, FILE *out, unsigned indent) {
    fields all = {.items = sl_zeroed(SL_TEXT_COLUMNS_MAX, sizeof(field))};
    if (!all.items) {
        sl_context_lost_output();
        return;
    }
    sl_text_table *table = sl_text_table_create(NULL);
    bson_iter_t row;
    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++)
        read_fields(&all, &row, "");
    for (size_t i = 0; i < all.count; i++)
        sl_text_table_column(table,
                             &(sl_text_column){all.items[i].path, .left = !all.items[i].numbers});

    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++) {
        for (size_t k = 0; k < all.count; k++)
            all.items[k].present = false;
        read_fields(&all, &row, "");
        for (size_t k = 0; k < all.count; k++)
            put_value(table, &all.items[k]);
    }
    sl_text_table_print(table, out, indent);
    free(all.items);
}

/* ---- standard output: answers, plans, timings, differences ---- */

/* The unit of time of a table, chosen by its longest run. */
typedef struct unit {
    const char *name;
    double per_millisecond;
} unit;

void sl_show_run(const sl_query *query, const sl_query_run *run, size_t rows, bool show_plan) {
    sl_print("%s\n", query->name);
    if (query->description)
        sl_print("  %s\n", query->description);
    if (show_plan && run->explained && bson_has_field(run->explained, "plans")) {
        for (sl_walk walk = sl_walk_start(run->explained, "plans"); sl_walk_next(&walk);) {
            const char *shard = sl_look_string(&walk.item, "shard");
            int64_t examined = sl_look_int64(&walk.item, "examined", -1);
            sl_print("  plan%s%s: %s", *shard ? " on " : "", shard,
                     sl_look_string(&walk.item, "plan"));
            if (examined >= 0)
                sl_print(", %s examined", sl_plural((uint64_t)examined, "document"));
            sl_print("\n");
        }
        bool split = sl_look_flag(run->explained, "split");
        sl_print("  the pipeline is %s\n",
                 split ? "split: each shard runs its first part, one server merges"
                       : "not split over shards");
    }
    if (run->answer != SL_ANSWER_NONE && run->answer != SL_ANSWER_UNSUPPORTED) {
        if (rows > 0)
            sl_table_print_documents(run->documents, rows, sl_output(), 2);
        sl_print("  %s%s\n", sl_plural(run->document_count, "document"),
                 rows > 0 && run->document_count > rows ? ", the first ones shown" : "");
    }
    sl_print("\n");
}

void sl_show_timings(const sl_query_outcome *outcomes, size_t count) {
    static const char *const figures[] = {"min", "median", "mean", "st.dev.", "max"};
    static const sl_text_column rates[] = {
        {.title = "documents/ms"}, {.title = "+-"}, {"answer", .left = true}, {0}};
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].run->count > 0 && outcomes[i].run->sample.maximum > longest)
            longest = outcomes[i].run->sample.maximum;
    }
    const unit time_unit = longest >= 100000 ? (unit){"s", 1e-3}
                           : longest < 1     ? (unit){"us", 1e3}
                                             : (unit){"ms", 1};
    sl_text_table *table = sl_text_table_create(NULL);
    sl_text_table_column(table, &(sl_text_column){"query", .left = true});
    bool has_limits = count > 0 && outcomes[0].options->limit > 0;
    if (has_limits)
        sl_text_table_column(table, &(sl_text_column){.title = "limit"});
    sl_text_table_column(table, &(sl_text_column){.title = "examined"});
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char title[32];
        snprintf(title, sizeof title, "%s %s", figures[i], time_unit.name);
        sl_text_table_column(table, &(sl_text_column){.title = title});
    }
    sl_text_table_columns(table, rates);
    for (size_t i = 0; i < count; i++) {
        const sl_query_run *run = outcomes[i].run;
        const sl_sample *sample = &run->sample;
        const double values[] = {sample->minimum, sample->median, sample->mean, sample->deviation,
                                 sample->maximum};
        sl_text_table_cell(table, "%s", outcomes[i].query->name);
        if (has_limits)
            sl_text_table_number(table, (double)outcomes[i].options->limit);
        sl_text_table_number(table, run->examined_known ? (double)run->examined : NAN);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            bool known = run->count > (k == 3 ? 1 : 0); /* a deviation needs two runs */
            sl_text_table_figure(table, known, values[k] * time_unit.per_millisecond, 2);
        }
        sl_sample rate = {0};
        bool rated = outcome_rate(&outcomes[i], &rate);
        int decimals = rate.mean < 100 ? 2 : 0;
        sl_text_table_figure(table, rated, rate.mean, decimals);
        sl_text_table_figure(table, rated && run->count > 1, rate.deviation, decimals);
        sl_text_table_cell(table, "%s", sl_answer_text(run->answer));
    }
    sl_text_table_print(table, sl_output(), 0);
}

void sl_show_differences(const sl_query_outcome *outcome) {
    const sl_differences *differences = &outcome->run->differences;
    if (outcome->run->answer != SL_ANSWER_WRONG)
        return;
    char limit[SL_HUMAN_ROOM];
    bool limited = outcome->options->limit > 0;
    sl_print("\nThe answer of %s%s%s is wrong:\n", outcome->query->name,
             limited ? " with limit " : "",
             limited ? sl_human_count((uint64_t)outcome->options->limit, limit) : "");
    for (uint64_t i = 0; i < differences->count && i < SL_DIFFERENCES_KEPT; i++)
        sl_print("  %s\n", differences->text[i]);
    if (differences->count > SL_DIFFERENCES_KEPT)
        sl_print("  and %" PRIu64 " more\n", differences->count - SL_DIFFERENCES_KEPT);
}
