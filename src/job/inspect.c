/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection: the format of each source, its first documents and rejects, and an estimate of its
 * number of documents. Only the first block is read, and no server is needed. Archives are read to
 * their end, to list the entries that a load would skip. */
#include "inspect.h"
#include "job.h"
#include "numbers.h"
#include "sources.h"
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "format/column_types.h"
#include "format/delimited.h"
#include "format/typing.h"
#include "report/json.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

#define REJECTS_SHOWN 5

typedef struct sl_inspection {
    const char *types; /* the summary of the types of all columns */
    unsigned documents_max;
    unsigned documents_shown;
    unsigned rejects_shown;
    uint8_t *bytes; /* room + SL_SLACK */
    size_t room;
    uint64_t bson_bytes;
    sl_job *job;
    const sl_source_block *block;
    sl_error *error;
} sl_inspection;

static void show_documents(sl_inspection *inspection, const uint8_t *end) {
    for (const uint8_t *at = inspection->bytes; at < end;) {
        uint32_t length = sl_bson_length(at);
        bson_t view;
        if (inspection->documents_shown < inspection->documents_max &&
            bson_init_static(&view, at, length)) {
            char *json = sl_json_line(&view);
            if (json)
                sl_print("  %s\n", json);
            else
                sl_error_memory(inspection->error, "showing documents");
            free(json);
            inspection->documents_shown++;
        }
        at += length;
    }
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_inspection *inspection = sink->context;
    inspection->bson_bytes += (uint64_t)(sink->cursor - inspection->bytes);
    show_documents(inspection, sink->cursor);
    if (need > inspection->room) {
        uint8_t *bytes = realloc(inspection->bytes, need + SL_SLACK);
        if (!bytes)
            return sl_error_memory(inspection->error, "making room for a large document");
        inspection->bytes = bytes;
        inspection->room = need;
    }
    sink->cursor = inspection->bytes;
    sink->limit = inspection->bytes + inspection->room;
    sink->documents = 0;
    return true;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_inspection *inspection = sink->context;
    if (reject->misread)
        sl_line_ends_error(inspection->job, inspection->block, reject, inspection->error);
    if (reject->misread || inspection->rejects_shown++ >= REJECTS_SHOWN)
        return;
    char record[200], line[32] = "";
    sl_text_printable(reject->record, record, sizeof record);
    if (reject->line != SL_NO_LINE)
        snprintf(line, sizeof line, "line %u, ", reject->line + 1);
    sl_print("  reject: %sbyte %llu%s%s: %s\n          %s\n", line,
             (unsigned long long)reject->offset, reject->column ? ", " : "",
             reject->column ? reject->column : "", reject->reason, record);
}

static void on_doubt(sl_sink *sink, const sl_reject *record) {
    const sl_inspection *inspection = sink->context;
    sl_line_ends_doubt(inspection->job, inspection->block, record);
}

static void print_estimates(const sl_source *source, const sl_parse_counts *counts,
                            const sl_inspection *inspection, size_t sample_bytes,
                            uint64_t sample_stored) {
    char b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM];
    if (counts->records == 0)
        sl_print("  no records in its first block\n");
    if (counts->documents == 0 || sample_bytes == 0)
        return;
    double per_document = (double)inspection->bson_bytes / (double)counts->documents;
    if (source->kind == SL_SOURCE_GENERATED) {
        uint64_t records = sl_source_records(source);
        sl_print("  in all %s, %s of BSON\n", sl_plural(records, "document"),
                 sl_human_bytes((double)records * per_document, b));
        return;
    }
    sl_print("  a document has %.0f bytes on average, a record %.0f bytes of text\n", per_document,
             (double)sample_bytes / (double)counts->records);
    if (source->kind == SL_SOURCE_PIPE || sample_stored == 0)
        return;
    bool whole = sample_stored >= source->stored_bytes;
    double scale = whole ? 1 : (double)source->stored_bytes / (double)sample_stored;
    sl_print("  %s %s, %s of text, %s of BSON%s\n", whole ? "in all" : "in all about",
             sl_plural((uint64_t)((double)counts->documents * scale), "document"),
             sl_human_bytes((double)sample_bytes * scale, b),
             sl_human_bytes((double)inspection->bson_bytes * scale, c),
             whole ? "" : " (estimated from its beginning)");
}

/* Reads an archive to its end and adds the entries that would not be loaded to job->not_loaded. */
static bool walk_archive(sl_job *job, size_t index, sl_error *error) {
    sl_reader *reader;
    sl_source_block block = {.last = false};
    sl_read_result result = SL_READ_BLOCK;
    if (!sl_reader_create(job->set, &reader, error))
        return false;
    for (uint64_t i = 0; result == SL_READ_BLOCK && !block.last; i++) {
        const sl_dialect *dialect;
        result = sl_reader_next_of(reader, index, i, &block, error);
        if (result == SL_READ_BLOCK && !sl_sources_dialect(job, &block, &dialect, error))
            result = SL_READ_FAILED;
        if (result == SL_READ_BLOCK)
            sl_sources_done_with(job, &block);
    }
    sl_reader_destroy(reader);
    return result != SL_READ_FAILED;
}

static void print_not_loaded(const sl_job *job, size_t index) {
    const sl_not_loaded *list = &job->not_loaded;
    for (size_t i = 0; i < list->kept_count; i++) {
        const sl_not_loaded_item *one = &list->kept[i];
        if (one->source == index)
            sl_print("  not loaded: %s%s" SL_LINES "\n", one->entry ? one->entry : "",
                     one->entry ? ": " : "", one->reason);
    }
}

/* Prints the type of each column, if it was inferred or is that of a dump. */
static void print_types(const sl_job *job, const sl_job_source *source, const char *summary) {
    uint64_t records = sl_types_sampled_of(job, source);
    char type[SL_TYPE_ROOM];
    const bool of_dump = sl_source_set_at(job->set, (size_t)(source - job->sources))->schema;
    if (records == 0 && !of_dump)
        return;
    if (!of_dump)
        sl_print("  %s\n", summary);
    for (size_t i = 0; i < source->dialect->column_count; i++) {
        const sl_bound_column *column = &source->dialect->columns[i];
        sl_print("    %-28s %s", column->published, sl_column_type_write(&column->schema, type));
        if (column->schema.mixed[0])
            sl_print("; for %s declare %s", sl_column_mixed_kind(&column->schema),
                     column->schema.mixed);
        sl_print("%s%s\n", column->repaired ? ", stored as " : "",
                 column->repaired ? column->repaired : "");
    }
}

/* The reason why a source cannot share a schema with the first one; NULL if it can. */
static const char *differs(const sl_dialect *first, const sl_dialect *d, bool same_columns) {
    if (first->delimiter != d->delimiter || first->quote != d->quote ||
        first->blanks != d->blanks || first->skip_lines != d->skip_lines)
        return "its delimiter, quotes or lines before the table differ from those of the first "
               "source: write a schema for each of them, and load each with its own";
    if (first->notation != d->notation)
        return "its dialect differs from that of the first source: name one for all with "
               "--dialect, or write a schema for each of them, and load each with its own";
    if (!same_columns && (first->header_length == 0 || d->header_length == 0))
        return "its columns differ from those of the first source, and without a header nothing "
               "names them: give --columns NAME,... for each, and load each with its own schema";
    return NULL;
}

/* Writes the inferred types of all sources as a schema, into a malloc'd text. */
static bool make_schema(const sl_job *job, char **schema, sl_error *error) {
    const size_t all = sl_source_set_count(job->set);
    const sl_typed_layout **layouts = calloc(all + 1, sizeof *layouts), *layout;
    const sl_dialect **dialects = calloc(all + 1, sizeof *dialects);
    const sl_plan *plan = NULL;
    const char *problem = NULL;
    size_t count = 0, i = 0;
    uint64_t records = 0;
    *schema = NULL;
    for (; layouts && dialects && !problem && i < all; i++) {
        const sl_job_source *source = &job->sources[i];
        size_t k = 0;
        if (source->skipped)
            continue;
        if (sl_types_sampled_of(job, source) == 0) {
            problem = "no types are inferred for it; this needs the format delimited, without "
                      "--schema and --types text";
            continue;
        }
        plan = sl_sources_plan(job, source->format);
        layout = sl_typing_layout_of(plan->typing, source->dialect);
        while (k < count && layouts[k] != layout)
            k++;
        problem = count > 0 ? differs(dialects[0], source->dialect, k < count) : NULL;
        records += k == count ? layout->records : 0;
        layouts[k] = layout;
        dialects[k] = k == count ? source->dialect : dialects[k];
        count += k == count;
    }
    if (!problem && count > 0)
        *schema = sl_typing_write_schema(plan, dialects, count, "records", records);
    free(layouts);
    free(dialects);
    if (problem)
        return sl_error_set(error, SL_EXIT_USAGE, "--write-schema: %s: %s",
                            sl_source_set_at(job->set, i - 1)->shown, problem);
    return *schema || sl_error_memory(error, "writing the schema");
}

static bool write_schema(const sl_job *job, const char *path, sl_error *error) {
    char *text;
    bool ok =
        make_schema(job, &text, error) && sl_private_file_replace(path, text, strlen(text), error);
    free(text);
    if (ok)
        sl_log_info("the schema has been written to %s", path);
    return ok;
}

static bool inspect_source(sl_job *job, size_t index, sl_reader *reader, sl_inspection *inspection,
                           sl_error *error) {
    const sl_job_source *source = &job->sources[index];
    const sl_source *facts = sl_source_set_at(job->set, index);
    char text[400], bytes[SL_HUMAN_ROOM];
    sl_source_block block;
    uint64_t before = sl_source_set_consumed_bytes(job->set), sequence = 0;
    do { /* of the first entry that a format recognises */
        if (sl_reader_next_of(reader, index, sequence++, &block, error) != SL_READ_BLOCK)
            return false;
    } while (block.entry && block.entry_number < source->deciding && !block.last);
    /* The stored bytes that the block was read from; inexact for a small file, since a stream reads
     * ahead. */
    uint64_t stored = sl_source_set_consumed_bytes(job->set) - before;
    if (block.last)
        stored = facts->stored_bytes;
    else if (stored < block.text.length && facts->kind == SL_SOURCE_PLAIN)
        stored = block.text.length; /* with the rest of a long record */
    const bool archive = facts->kind == SL_SOURCE_ARCHIVE;
    sl_text_printable(sl_text_of(facts->path), text, sizeof text);
    if (facts->kind == SL_SOURCE_GENERATED)
        sl_print("%s\n", text);
    else
        sl_print("%s (%s%s%s)\n", text, sl_human_bytes((double)facts->stored_bytes, bytes),
                 facts->storage || (archive && !facts->schema) ? ", " : "",
                 facts->storage              ? facts->storage
                 : archive && !facts->schema ? "archive"
                                             : "");
    sl_source_describe(job, source, text, sizeof text);
    sl_print("  %s%s%s\n", facts->schema ? "" : source->format->name, facts->schema ? "" : ": ",
             text);
    print_types(job, source, inspection->types);
    sl_sink sink = {.cursor = inspection->bytes,
                    .limit = inspection->bytes + inspection->room,
                    .documents_limit = UINT32_MAX,
                    .full = on_full,
                    .reject = on_reject,
                    .doubt = on_doubt,
                    .context = inspection};
    sl_parse_counts counts = {0};
    inspection->job = job;
    inspection->block = &block;
    inspection->error = error;
    sl_sources_parse(job, &block, source->dialect, &sink, &counts);
    on_full(&sink, 0);
    if (error->code)
        return false;
    if (inspection->rejects_shown > REJECTS_SHOWN)
        sl_print("  ... and %s in the first block\n",
                 sl_plural(inspection->rejects_shown - REJECTS_SHOWN, "more reject"));
    print_estimates(facts, &counts, inspection, block.text.length, stored);
    return !archive || walk_archive(job, index, error);
}

sl_exit sl_inspect_run(const sl_load_config *config, unsigned documents, const char *schema) {
    sl_error error = {0};
    sl_job job;
    sl_job_init(&job, config);
    char types[SL_TYPES_SUMMARY_ROOM] = "";
    bool ok = sl_sources_open(&job, &error) && sl_sources_number_offline(&job, &error);
    if (ok) {
        sl_types_log_doubts(&job);
        sl_types_summary(&job, types);
    }
    ok = ok && (!schema || write_schema(&job, schema, &error));
    sl_reader *reader = NULL;
    sl_inspection inspection = {.bytes = malloc(SL_BLOCK_BYTES + SL_SLACK), .room = SL_BLOCK_BYTES};
    ok = ok && (inspection.bytes || sl_error_memory(&error, "inspecting")) &&
         sl_reader_create(job.set, &reader, &error);
    for (size_t i = 0; ok && i < sl_source_set_count(job.set); i++) {
        inspection = (struct sl_inspection){.types = types,
                                            .documents_max = documents,
                                            .bytes = inspection.bytes,
                                            .room = inspection.room};
        if (job.sources[i].skipped)
            sl_print("%s\n", sl_source_set_at(job.set, i)->shown);
        else
            ok = inspect_source(&job, i, reader, &inspection, &error);
        if (ok)
            print_not_loaded(&job, i);
    }
    if (job.not_loaded.count > job.not_loaded.kept_count)
        sl_print("... and %llu more files and entries not loaded\n",
                 (unsigned long long)(job.not_loaded.count - job.not_loaded.kept_count));
    ok = ok && sl_source_set_unchanged(job.set, &error);
    sl_reader_destroy(reader);
    free(inspection.bytes);
    if (!ok) {
        sl_error_missing(&error, "the inspection");
        sl_log_error(SL_LINES, error.message);
    }
    sl_job_clear(&job);
    return ok ? SL_EXIT_OK : error.code;
}
