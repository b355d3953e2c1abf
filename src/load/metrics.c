/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of docs/status.md. The names of counters end in _total; counters start at 0 with the
 * run and only grow. A metric whose value is not known is left out. */
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/memory_stream.h"
#include "util/print.h"

#define PREFIX "shardload_"

static void head(FILE *out, const char *name, const char *type, const char *help) {
    sl_print_to(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void gauge(FILE *out, const char *name, const char *help, double value) {
    head(out, name, "gauge", help);
    sl_print_to(out, PREFIX "%s %.15g\n", name, value);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value) {
    head(out, name, "counter", help);
    sl_print_to(out, PREFIX "%s %llu\n", name, (unsigned long long)value);
}

/* A label's value, with backslash, quote and line end escaped. */
static void label(FILE *out, const char *name, const char *value) {
    char text[2 * 512 + 1];
    size_t used = 0;
    for (; *value && used < sizeof text - 3; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n')
            text[used++] = '\\';
        text[used++] = *value == '\n' ? 'n' : *value;
    }
    text[used] = '\0';
    sl_print_to(out, "%s=\"%s\"", name, text);
}

static void labelled(FILE *out, const char *name, const char *key, const char *value,
                     double number) {
    sl_print_to(out, PREFIX "%s{", name);
    label(out, key, value);
    sl_print_to(out, "} %.15g\n", number);
}

static void write_state(FILE *out, const sl_metrics_facts *facts) {
    head(out, "info", "gauge", "The command that this process runs.");
    sl_print_to(out, PREFIX "info{");
    label(out, "command", facts->command);
    sl_print_to(out, ",");
    label(out, "target", facts->target);
    sl_print_to(out, ",");
    label(out, "version", facts->version);
    sl_print_to(out, "} 1\n");
    head(out, "phase", "gauge", "1 for the phase that runs.");
    labelled(out, "phase", "phase", facts->phase, 1);
    gauge(out, "running", "1 while the command runs, 0 when it has ended.", facts->ended ? 0 : 1);
    if (facts->ended)
        gauge(out, "exit_code", "The exit code of the command.", facts->exit_code);
    gauge(out, "start_time_seconds", "When the command began, in seconds since 1970.",
          facts->started);
    gauge(out, "heartbeat_time_seconds",
          "When this file was written, in seconds since 1970. It is written every second.",
          facts->now);
    gauge(out, "elapsed_seconds", "How long the command has been running.", facts->elapsed);
    gauge(out, "rate_limit_documents_per_second", "The rate limit; 0 without one.",
          (double)facts->rate_limit);
    if (facts->share >= 0)
        gauge(out, "progress_ratio", "Completed share of the sources, from 0 to 1.", facts->share);
    if (facts->left >= 0)
        gauge(out, "remaining_seconds", "Expected time until the sources have been loaded.",
              facts->left);
}

static void write_figures(FILE *out, const sl_view *view) {
    const sl_run_totals *sum = &view->sum;
    counter(out, "records_total", "Records read from the sources, earlier runs included.",
            view->records);
    counter(out, "documents_total",
            "Documents that the server has acknowledged, earlier runs included.", view->documents);
    counter(out, "rejects_total", "Records that were rejected, earlier runs included.",
            view->rejects);
    head(out, "run_documents_total", "counter", "Documents of this run by their outcome.");
    labelled(out, "run_documents_total", "outcome", "inserted", (double)sum->inserted);
    labelled(out, "run_documents_total", "outcome", "already_stored", (double)sum->already_stored);
    labelled(out, "run_documents_total", "outcome", "changed", (double)sum->changed);
    head(out, "run_rejects_total", "counter", "Rejects of this run by who rejected the record.");
    labelled(out, "run_rejects_total", "by", "parser", (double)sum->parser_rejects);
    labelled(out, "run_rejects_total", "by", "server", (double)sum->server_rejects);
    if (!view->generated)
        counter(out, "text_bytes_total", "Text parsed, earlier runs included.", view->text_bytes);
    counter(out, "bson_bytes_total", "BSON sent by this run.", sum->bson_bytes);
    counter(out, "batches_total", "Batches sent by this run.", sum->batches);
    counter(out, "retries_total", "Batches that this run has sent again.", sum->retries);
    if (view->stored_total > 0 && !view->generated) {
        gauge(out, "source_bytes", "Size of the sources as they are stored.",
              (double)view->stored_total);
        counter(out, "source_read_bytes_total", "Part of the sources that is completed.",
                view->stored_bytes);
    }
    gauge(out, "threads", "Worker threads that are active.", view->threads);
    gauge(out, "batch_documents", "Documents at which a batch is sent.", view->batch_documents);
    head(out, "worker_seconds_total", "counter",
         "Time of the worker threads by what they did or waited for.");
    static const char *const activities[STAGES] = {"reading", "inflating", "parsing", "rate_limit",
                                                   "server"};
    for (unsigned k = 0; k < STAGES; k++)
        labelled(out, "worker_seconds_total", "activity", activities[k], sum->stage_seconds[k]);
}

static void write_shards(FILE *out, const sl_run *run, const sl_destination *destination) {
    head(out, "shard_documents_total", "counter", "Documents of this run sent to each shard.");
    for (uint32_t i = 0; i < run->job->shards; i++)
        labelled(out, "shard_documents_total", "shard", destination->topology->shards[i].name,
                 (double)atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed));
}

char *sl_metrics_text(const sl_metrics_facts *facts, const sl_view *view, const sl_run *run,
                      const sl_destination *destination, size_t *length) {
    char *text = NULL;
    FILE *out = sl_memory_stream(&text, length);
    if (!out)
        return NULL;
    write_state(out, facts);
    if (view)
        write_figures(out, view);
    if (run && destination && destination->topology)
        write_shards(out, run, destination);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
