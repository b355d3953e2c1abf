/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a job: finds them, recognises the format of each and of the entries of archives,
 * and refuses text that cannot be split into records. */
#include "sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/delimited.h"
#include "format/dialects.h"
#include "format/head.h"
#include "format/key_fields.h"
#include "format/typing.h"
#include "source/sql_dump.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

#include "document_sample.h"
#include "embed.h"
#include "types.h"

/* Text that cannot be split into records at its line ends: quoted line ends, lines that end in CR
 * alone. Such text ends a load, an inspection or a verification with an error: before anything is
 * sent if it is in the head of a source, otherwise when the parser reaches it. */

#define DOUBTS_SHOWN 5u
#define COUNTED_BYTES_MAX ((uint64_t)1 << 30) /* text read again to count its lines */

/* Does a source with unsupported line ends contain NUL bytes? Then it is a binary file, which is
 * skipped like other files without text if --skip-other is given. */
static bool line_ends_is_binary(sl_text head) {
    return head.length > 0 && memchr(head.bytes, '\0', head.length);
}

void sl_sources_replace_end_mark(const sl_job *job, size_t index, sl_text text) {
    size_t end = text.length;
    while (end > 0 && memchr("\r\n", text.bytes[end - 1], 2))
        end--;
    size_t first = end;
    while (first > 0 && text.bytes[first - 1] == '\x1A')
        first--;
    if (first == end || (end < text.length && first > 0 && text.bytes[first - 1] != '\n'))
        return;
    memset((char *)(uintptr_t)text.bytes + first, '\n', end - first);
    if (!atomic_exchange(&job->sources[index].ends_at_mark, true))
        sl_log_info("%s ends with Ctrl-Z (0x1A), the end of a text in DOS; it is skipped",
                    sl_source_set_at(job->set, index)->shown);
}

/* If the lines of a source end in CR alone, declares that, and replaces the CRs in its head. In
 * archives such lines are not supported. */
static void line_ends_detect(const sl_job *job, size_t index, const char *name, char *head,
                             size_t length, bool whole) {
    const sl_source *source = sl_source_set_at(job->set, index);
    sl_text text = {head, length};
    if (length == 0 || line_ends_is_binary(text))
        return;
    if (!memchr(head, '\n', length) && memchr(head, '\r', length) &&
        source->kind != SL_SOURCE_ARCHIVE &&
        strcmp(name, source->path) == 0) { /* not an archive in a pipe */
        sl_source_set_cr_lines(job->set, index);
        sl_source_replace_cr(head, length);
    }
    if (whole)
        sl_sources_replace_end_mark(job, index, text);
}

/* Counts the line ends, LF or `other`, in the first `bytes` of a plain file; false if these cannot
 * be read. */
static bool count_lines(const char *path, uint64_t bytes, char other, uint64_t *lines) {
    char buffer[65536];
    FILE *file = fopen(path, "r");
    *lines = 0;
    while (file && bytes > 0) {
        size_t got = fread(buffer, 1, bytes < sizeof buffer ? bytes : sizeof buffer, file);
        for (size_t i = 0; i < got; i++)
            *lines += buffer[i] == '\n' || buffer[i] == other;
        if (got == 0)
            break;
        bytes -= got;
    }
    if (file)
        fclose(file);
    return file && bytes == 0;
}

uint64_t sl_sources_line_at(const sl_job *job, size_t index, uint64_t offset) {
    const sl_source *source = sl_source_set_at(job->set, index);
    uint64_t before;
    bool known = source->kind == SL_SOURCE_PLAIN && offset <= COUNTED_BYTES_MAX &&
                 count_lines(source->path, offset, source->cr_lines ? '\r' : '\n', &before);
    return known ? before + 1 : 0;
}

void sl_sources_reading_options(const sl_job *job, size_t index, const char *given, char *out,
                                size_t room) {
    const sl_job_source *source = &job->sources[index];
    const sl_dialect *d = source->format == &sl_format_delimited ? source->dialect : NULL;
    const char quote[2] = {d && d->quote ? d->quote : '\0', '\0'};
    char delimiter[2] = {d && !d->blanks ? d->delimiter : '\0', '\0'};
    const bool by_schema = strstr(given, " --schema ") != NULL, tab = *delimiter == '\t';
    const struct {
        const char *name, *value;
        bool needed;
    } options[] = {
        {"format", source->format->name, true},
        {"header", d && d->header_length > 0 ? "yes" : "no", d && !by_schema},
        {"delimiter", tab ? "tab" : delimiter, *delimiter && !by_schema},
        {"quote", quote, *quote && (tab || *delimiter == '|' || *quote == '\'')},
        {"dialect", d && d->notation ? d->notation->name : "", d && d->notation && d->why[0]},
    };
    *out = '\0';
    for (size_t i = 0, used = 0; i < sizeof options / sizeof options[0]; i++) {
        char name[32], word[60];
        snprintf(name, sizeof name, " --%s ", options[i].name);
        sl_shell_word(options[i].value, word, sizeof word);
        if (options[i].needed && !strstr(given, name) && used < room)
            used += (size_t)snprintf(out + used, room - used, "%s%s", name, word);
    }
}

bool sl_line_ends_error(const sl_job *job, const sl_source_block *block, const sl_reject *reject,
                        sl_error *error) {
    const sl_source *source = sl_source_set_at(job->set, block->source);
    char line[40] = "";
    const uint64_t first = block->sequence == 0 || block->entry_start
                               ? 1
                               : sl_sources_line_at(job, block->source, block->offset);
    if (first > 0)
        snprintf(line, sizeof line, "line %" PRIu64 ", ", first + reject->line);
    sl_error_set(error, SL_EXIT_SOURCE, "%s%s%s, %sbyte %" PRIu64 ": %s", source->shown,
                 block->entry ? ": " : "", block->entry ? block->entry : "", line, reject->offset,
                 reject->reason);
    error->afresh = true;
    return false;
}

void sl_line_ends_doubt(sl_job *job, const sl_source_block *block, const sl_reject *record) {
    sl_error where;
    pthread_mutex_lock(&job->entries_lock);
    unsigned shown = !record->once ? ++job->doubts : job->doubted_once ? DOUBTS_SHOWN + 1 : 1;
    job->doubted_once = job->doubted_once || record->once;
    pthread_mutex_unlock(&job->entries_lock);
    if (shown > DOUBTS_SHOWN)
        return;
    sl_line_ends_error(job, block, record, &where);
    sl_log_warning(SL_LINES "%s", where.message,
                   shown == DOUBTS_SHOWN ? " (not shown for further records)" : "");
}

/* Checks the end of the first line, except in exports whose values may contain CRs. */
static bool first_line_ends(const sl_job *job, sl_text head, bool whole, sl_error *error) {
    const sl_format_options *options = &job->config->format_options;
    char found, why[SL_NOTATION_WHY_ROOM];
    if (sl_first_line_end_check(head, whole, error))
        return true;
    const sl_notation *notation =
        options->notation ? options->notation
                          : sl_notation_recognise(head, whole, options->delimiter, &found, why);
    return notation->cr_is_data;
}

/* ---- the likeliest format ---- */

/* A format that does not fit, and why. */
typedef struct sl_misfit {
    const char *format; /* its name in --format */
    sl_error why;
    unsigned weight; /* its likelihood; set by misfits_sort */
} sl_misfit;

/* The likelihood of formats, from hints: endings and parts of the source's name, and its first
 * bytes. */

#define HEAD_BYTES 4096 /* examined */

/* A hint by the name: it ends in, or contains, this text. */
static const struct {
    const char *text;
    bool ending;
    const char *format;
    unsigned weight;
} names[] = {
    {".bson", true, "bson", 4},         {".json", true, "json", 4},
    {".jsonl", true, "json", 4},        {".ndjson", true, "json", 4},
    {".geojson", true, "json", 4},      {".csv", true, "delimited", 4},
    {".tsv", true, "delimited", 4},     {".tab", true, "delimited", 4},
    {".psv", true, "delimited", 4},     {".txt", true, "delimited", 1},
    {"test_result", false, "mot", 5},   {"test_item", false, "mot", 5},
    {"isd-lite", false, "isd-lite", 5}, {"-99999-", false, "isd", 2},
};

/* Endings of compressed files, which follow the ending that names the format. */
static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2", ".lz4", ".Z"};

static bool ends_in(sl_text text, const char *ending) {
    size_t length = strlen(ending);
    return text.length >= length &&
           sl_text_equal_ignoring_case((sl_text){text.bytes + text.length - length, length},
                                       sl_text_of(ending));
}

static unsigned by_name(const char *format, sl_text name) {
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        if (ends_in(name, packed[i]))
            name.length -= strlen(packed[i]);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].format, format) == 0 &&
            (names[i].ending
                 ? ends_in(name, names[i].text)
                 : memmem(name.bytes, name.length, names[i].text, strlen(names[i].text)) != NULL))
            sum += names[i].weight;
    }
    return sum;
}

/* The format that the first bytes look like. */
static const char *looks_like(sl_text head) {
    size_t length = head.length < HEAD_BYTES ? head.length : HEAD_BYTES, at = 0;
    if (length > 0 && memchr(head.bytes, '\0', length))
        return "bson";
    while (at < length && strchr(" \t\r\n", head.bytes[at]))
        at++;
    return at < length && (head.bytes[at] == '{' || head.bytes[at] == '[') ? "json" : "delimited";
}

/* Orders the misfits, the likeliest format first, by the name of the source and the first bytes of
 * its text. */
static void misfits_sort(sl_misfit *misfits, size_t count, const char *name, sl_text head) {
    const char *likely = looks_like(head);
    for (size_t i = 0; i < count; i++) {
        sl_misfit one = misfits[i];
        one.weight = by_name(one.format, sl_text_of(name)) + (strcmp(likely, one.format) ? 0 : 3);
        size_t at = i;
        for (; at > 0 && misfits[at - 1].weight < one.weight; at--)
            misfits[at] = misfits[at - 1];
        misfits[at] = one;
    }
}

/* ---- the sources ---- */

/* The sources of a load: finds them, recognises their formats, and leaves out repeated ones. */

/* Each source has a number, ranges and an entry in the registry. */
#define GENERATED_SOURCES_MAX 65536u

#define ONE(id, name, help) 1 +

static size_t format_index(const sl_format *format) {
    size_t i = 0;
    while (sl_formats[i] && sl_formats[i] != format)
        i++;
    return i;
}

sl_plan *sl_sources_plan(const sl_job *job, const sl_format *format) {
    return job->plans ? job->plans[format_index(format)] : NULL;
}

/* The plan of a format, which is compiled by the first call. */
static bool plan_of(const sl_job *job, const sl_format *format, const sl_plan **plan,
                    sl_error *error) {
    sl_plan **kept = &job->plans[format_index(format)];
    sl_format_options options = job->config->format_options;
    if (job->schema && !options.schema_text) {
        options.schema_text = job->schema;
        options.schema_name = SL_CREATE_TABLE;
    }
    if (!*kept && !sl_format_plan_create(format, &options, kept, error))
        return job->schema && sl_error_prefix(error, "%s", sl_source_set_at(job->set, 0)->shown);
    *plan = *kept;
    return true;
}

/* Does `--format auto` leave the format out? */
static bool is_left_out(const sl_job *job, const sl_format *format) {
    return format->name_records ||
           ((job->config->format_options.schema_text || job->schema) && !format->takes_schema);
}

char *sl_source_describe(const sl_job *job, const sl_job_source *source, char *out, size_t room) {
    if (!sl_source_set_at(job->set, (size_t)(source - job->sources))->schema)
        return sl_format_describe(source->format, source->dialect, out, room);
    snprintf(out, room, "a table of an SQL dump: %zu columns", source->dialect->column_count);
    return out;
}

bool sl_sources_parse(const sl_job *job, const sl_source_block *block, const sl_dialect *dialect,
                      sl_sink *sink, sl_parse_counts *counts) {
    const sl_job_source *source = &job->sources[block->source];
    sl_block view = {
        .text = block->text,
        .offset = block->offset,
        .id_base = sl_document_id(source->number, block->offset) & ~(int64_t)(SL_BLOCK_BYTES - 1),
        .split_state = block->split_state,
        .divided = source->divided,
        .keys = job->keys,
    };
    const sl_plan *plan = sl_sources_plan(job, source->format);
    if ((block->last || block->entry_last) && !source->format->binary && view.text.bytes)
        sl_sources_replace_end_mark(job, block->source, view.text);
    if (job->embed)
        return sl_embed_parse(job->embed, source->format, plan, dialect, &view, sink, counts);
    return source->format->parse(plan, dialect, &view, sink, counts);
}

sl_text sl_sources_record(const sl_job *job, size_t index, sl_text text) {
    const sl_job_source *source = &job->sources[index];
    const char escape = sl_source_set_at(job->set, index)->line_escape;
    sl_split split = {.context = source->dialect};
    bool lines;
    size_t end = 0;
    const sl_splitter *splitter =
        source->divided ? source->format->splitter(source->dialect, &lines) : NULL;
    if (splitter)
        end = splitter->find_end(&split, text, 1, true);
    while (!splitter && end < text.length && text.bytes[end] != '\n')
        end += escape && text.bytes[end] == escape ? 2 : 1;
    end = end < text.length ? end : text.length;
    end -= splitter && end > 0 && text.bytes[end - 1] == '\n';
    while (end > 0 && memchr("\r\x1A", text.bytes[end - 1], 2))
        end--;
    return (sl_text){text.bytes, end};
}

/* Sets the error for a source that fits no format, with the reason of the most likely one; for a
 * binary file also that of `delimited`, which names its kind. Returns false. */
static bool unknown_format(const char *path, sl_text head, const sl_misfit *misfits, size_t count,
                           sl_error *error) {
    const bool binary = strcmp(looks_like(head), "bson") == 0;
    char reasons[1000] = "", others[300] = "";
    size_t used = 0, named = 0;
    if (count > 0 && misfits->why.recognised)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", path, misfits->why.message);
    for (size_t i = 0; i < count; i++) {
        const char *format = misfits[i].format;
        if (i == 0 || (binary && strcmp(format, sl_format_delimited.name) == 0))
            used += sl_print_text(reasons + used, sizeof reasons - used, "\n  %s: " SL_LINES,
                                  format, misfits[i].why.message);
        else
            named += sl_print_text(others + named, sizeof others - named, "%s%s", named ? ", " : "",
                                   format);
    }
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: its format is not recognised; the most likely:" SL_LINES SL_LINES "%s", path, reasons,
        named ? "\nNor is it one of these (--format NAME shows why): " : "", others);
}

const sl_job_source *sl_sources_first(const sl_job *job) {
    size_t first = 0;
    while (first < sl_source_set_count(job->set) && job->sources[first].skipped)
        first++;
    return first < sl_source_set_count(job->set) ? &job->sources[first] : NULL;
}

const char *sl_sources_advice(const sl_job *job) {
    const sl_job_source *first = sl_sources_first(job);
    const sl_format *format = first ? first->format : NULL;
    return !format                 ? ""
           : format->binary        ? "The file is damaged, or is not BSON"
           : !format->takes_schema ? "`shardload inspect` shows the detected format; check --format"
           : format != &sl_format_delimited
               ? "`shardload inspect` shows the detected format; check --format and --schema"
               : "`shardload inspect` shows the detected format and types; check --format, "
                 "--types, "
                 "--schema, --encoding, --header and --skip-lines";
}

/* Checks that a text has the columns that identify a document, under the keys of other texts. */
static bool check_key_fields(const sl_job *job, const sl_format *format, const sl_dialect *dialect,
                             const char *shown, sl_error *error) {
    size_t ids = job->keys ? job->keys->id.count : 0;
    size_t count = job->keys ? ids + job->keys->match.count : 0;
    for (size_t k = 0; k < count; k++) {
        bool of_id = k < ids;
        const sl_key_names *list = of_id ? &job->keys->id : &job->keys->match;
        const size_t at = of_id ? k : k - ids;
        const char *given = list->given[at], *name = given ? given : list->names[at];
        const char *option = of_id ? "id-field" : "match-fields";
        char column[80];
        bool made = !of_id && strcmp(name, "_id") == 0;
        if (!format->key_of && strchr("$.", *name))
            return sl_error_set(error, SL_EXIT_USAGE, "--%s: the name of a field begins with %c",
                                option, *name);
        if (format->key_of && made && ids == 0)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s: its records have no _id by which stored documents could "
                                "be matched: name the columns with --id-field or --match-fields",
                                shown);
        sl_text_printable(sl_text_of(name), column, sizeof column);
        const char *key = made || !format->key_of ? name : format->key_of(dialect, name);
        if (!key)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s has no column %s, which --%s names; shardload inspect "
                                "shows the columns",
                                shown, column, option);
        if (given && strcmp(key, list->names[at]) != 0)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--%s: %s stores %s as the field %s, and other sources of this "
                                "load store it as %s: load it in a command of its own",
                                option, shown, column, key, list->names[at]);
    }
    return true;
}

/* Replaces the names of columns that identify a document by their keys, which are the same in all
 * sources. */
static bool name_keys(const sl_job *job, sl_error *error) {
    const sl_job_source *source = sl_sources_first(job);
    sl_key_names *const lists[] = {job->keys ? &job->keys->id : NULL,
                                   job->keys ? &job->keys->match : NULL};
    for (size_t k = 0; job->keys && k < 2; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            const char *key = lists[k]->names[i];
            if (source->format->key_of)
                key = source->format->key_of(source->dialect, key);
            if (key && !sl_key_names_rename(lists[k], i, key))
                return sl_error_memory(error, "examining the sources");
        }
    }
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        source = &job->sources[i];
        if (!source->skipped && !check_key_fields(job, source->format, source->dialect,
                                                  sl_source_set_at(job->set, i)->shown, error))
            return false;
    }
    return true;
}

bool sl_sources_read_text(sl_job *job, const sl_format *format, size_t index, const char *name,
                          sl_text head, bool whole, sl_dialect **dialect, bool *fits,
                          sl_error *error) {
    const sl_source *source = sl_source_set_at(job->set, index);
    const char *path = source->shown;
    const bool entry = strcmp(name, source->path) != 0;
    const sl_plan *plan;
    char both[1024];
    *dialect = NULL;
    if (!plan_of(job, format, &plan, error))
        return false;
    *fits = format->sniff(plan, name, head, whole, dialect, error);
    if (!*fits)
        return error->code == SL_EXIT_SOURCE;
    snprintf(both, sizeof both, "%s: %s", path, name);
    const char *shown = entry ? both : path;
    if (format == &sl_format_delimited &&
        !sl_dialects_are_alike(job->dialects, plan, shown, source->named && !entry, *dialect,
                               error)) {
        sl_format_dialect_destroy(format, *dialect);
        *dialect = NULL;
        *fits = false;
        return entry || sl_error_prefix(error, "%s", shown); /* an entry is listed as not loaded */
    }
    if ((format != &sl_format_delimited ||
         sl_dialects_add(job->dialects, plan, shown, entry, head, whole, dialect, error)) &&
        check_key_fields(job, format, *dialect, shown, error))
        return true;
    if (entry && error->code == SL_EXIT_USAGE) /* it may be found after documents were stored */
        error->code = SL_EXIT_SOURCE;
    sl_format_dialect_destroy(format, *dialect);
    *dialect = NULL;
    return false;
}

static char line_escape_of(const sl_format *format, const sl_dialect *dialect) {
    return format->line_escape ? format->line_escape(dialect) : 0;
}

/* The hashes of the first records, for the registry. Lines that begin with a blank, or have a
 * bracket only, are parts of records, and so are those of JSON that do not begin an object. */
static uint64_t hash_records(const sl_job_source *source, sl_text head) {
    const char *at = head.bytes, *stop = at + head.length, *end;
    uint64_t hashes = 0;
    if (source->format->binary)
        return 0;
    if (source->format == &sl_format_delimited)
        at +=
            source->dialect->body_offset < head.length ? source->dialect->body_offset : head.length;
    else if ((end = memchr(at, '\n', head.length)) != NULL)
        at = end + 1; /* it may be a header */
    for (unsigned count = 0; count < 4 && (end = memchr(at, '\n', (size_t)(stop - at)));
         at = end + 1) {
        size_t length = (size_t)(end - at) - (end > at && end[-1] == '\r');
        if (length < 3 || *at == ' ' || *at == '\t' ||
            (source->format->own_ids && (*at != '{' || length == 3)))
            continue;
        const uint64_t hash = sl_hash((const uint8_t *)at, length) & 0xFFFF;
        hashes |= (hash ? hash : 1) << (16 * count++);
    }
    return hashes;
}

/* Prepares a source whose dialect is known for reading. */
static bool begin_source(const sl_job *job, size_t index, sl_text head, bool whole,
                         sl_error *error) {
    sl_job_source *source = &job->sources[index];
    const sl_format *format = source->format;
    const char *encoding = job->config->format_options.encoding;
    char word[120];
    if (encoding && format == &sl_format_json && sl_source_set_count(job->set) == 1)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: --encoding is for delimited text: leave it out if this JSON is "
                            "UTF-8, and otherwise convert it: iconv -f %s -t UTF-8 FILE | "
                            "shardload load ... -",
                            sl_source_set_at(job->set, index)->shown,
                            sl_shell_word(encoding, word, sizeof word));
    bool lines = false;
    const sl_splitter *splitter =
        format->splitter ? format->splitter(source->dialect, &lines) : NULL;
    source->divided = splitter != NULL;
    sl_source_set_splitter(job->set, index, splitter, source->dialect, lines || !splitter);
    sl_source_set_line_escape(job->set, index, line_escape_of(format, source->dialect));
    const char *end = memchr(head.bytes, '\n', head.length);
    bool several = format->own_ids || (end && end + 1 < head.bytes + head.length);
    source->beginning = several ? sl_hash_text(head.bytes, head.length) : 0;
    source->records = hash_records(source, head);
    if (!splitter && format->check_head && !format->check_head(source->dialect, head, whole, error))
        return sl_error_prefix(error, "%s", sl_source_set_at(job->set, index)->shown);
    return sl_types_add_head(job, source, head, whole, error);
}

/* The tables of SQL dumps in one collection have the same columns. Other texts cannot be loaded
 * together with dumps. */
static bool take_schema(sl_job *job, size_t index, sl_error *error) {
    const sl_source *source = sl_source_set_at(job->set, index);
    bool first = !job->plans[format_index(&sl_format_delimited)];
    if (first && !job->schema)
        job->schema = source->schema;
    return (job->schema ? source->schema && strcmp(job->schema, source->schema) == 0
                        : !source->schema) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: an SQL dump is not loaded together with other files into one "
                        "collection, unless these are dumps of tables with the same columns",
                        source->shown);
}

/* Determines the format and dialect of a source by its head. With "auto" all formats are tried in
 * turn; if none recognises the source, the error quotes each one's reason, the likeliest format
 * first. False with SL_EXIT_SOURCE: no format recognises it. Then `*empty` is set if there is no
 * text, and `*damaged` if its data cannot be read; a damaged source must not be left out. `*entry`
 * of an archive has been read. */
static bool recognise_head(sl_job *job, size_t index, char *head, const char **entry, bool *damaged,
                           bool *empty, sl_error *error) {
    sl_job_source *source = &job->sources[index];
    const char *path = sl_source_set_at(job->set, index)->shown;
    size_t length;
    bool whole;
    const char *name;
    *damaged = *empty = false;
    if (!sl_source_head(job->set, index, head, SL_SNIFF_BYTES, &length, &whole, &name, error)) {
        *damaged = sl_source_set_at(job->set, index)->kind != SL_SOURCE_NOT_TEXT;
        return false;
    }
    *entry = strcmp(name, sl_source_set_at(job->set, index)->path) != 0 ? name : NULL;
    *empty = whole && length == 0;
    if (!take_schema(job, index, error)) {
        *damaged = true; /* it is never left out */
        return false;
    }
    sl_text text = {head, length};
    line_ends_detect(job, index, name, head, length, whole);
    sl_misfit misfits[SL_FORMATS(ONE) 0];
    size_t misfit_count = 0;
    bool any = strcmp(job->config->format, "auto") == 0;
    bool checked = false; /* has the first line end been checked? */
    for (size_t i = 0; sl_formats[i]; i++) {
        const sl_format *format = sl_formats[i];
        if (any ? is_left_out(job, format) : strcmp(format->name, job->config->format) != 0)
            continue;
        const sl_plan *plan;
        if (!plan_of(job, format, &plan, error))
            return false;
        if (!format->binary && !checked && !first_line_ends(job, text, whole, error)) {
            *damaged = !line_ends_is_binary(text);
            return sl_error_prefix(error, "%s", path);
        }
        checked = checked || !format->binary;
        sl_error why = {0};
        bool fits;
        if (!sl_sources_read_text(job, format, index, name, text, whole, &source->dialect, &fits,
                                  &why)) {
            *error = why;
            *damaged = true; /* a recognised source is never left out */
            return false;
        }
        if (fits) {
            source->format = format;
            *damaged = true;
            return begin_source(job, index, text, whole, error);
        }
        if (!any)
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: " SL_LINES, path, why.message);
        misfits[misfit_count++] = (sl_misfit){.format = format->name, .why = why};
    }
    misfits_sort(misfits, misfit_count, name, text);
    return unknown_format(path, text, misfits, misfit_count, error);
}

#define HOLDS_DUMP "%s: this archive holds a dump of mongodump: unpack it, and restore the folder"
#define HEADS_MOST 16u /* entries of an archive that are looked at; each reads those before it */

/* As recognise_head; the first entry of an archive that a format recognises decides. */
static bool recognise(sl_job *job, size_t index, char *head, bool *damaged, bool *empty,
                      sl_error *error) {
    unsigned *deciding = &job->sources[index].deciding;
    const sl_source *source = sl_source_set_at(job->set, index);
    const char *entry = NULL, *last;
    *deciding = 1;
    bool ok = recognise_head(job, index, head, &entry, damaged, empty, error), ended = false;
    const bool pipe = source->kind == SL_SOURCE_PIPE, archive = entry && !source->schema;
    while (!ok && archive && !pipe && !*damaged && !ended && *deciding < HEADS_MOST) {
        sl_error why = {0};
        sl_source_set_passed(job->set, index, (*deciding)++);
        ok = recognise_head(job, index, head, &last, damaged, &ended, &why);
        if (!ok && (*damaged || why.code != SL_EXIT_SOURCE))
            *error = why;
    }
    char how[2100];
    const bool dumped = ok && job->sources[index].format == &sl_format_bson;
    if (archive && !pipe &&
        (dumped || strstr(entry, ".metadata.json") || strstr(entry, "prelude.json")) &&
        sl_source_holds_dump(job->set, index, how, sizeof how)) {
        *damaged = true; /* its documents must not be taken for those of one collection */
        return sl_error_set(error, SL_EXIT_SOURCE, HOLDS_DUMP ": %s", source->shown, how);
    }
    if (ok)
        *error = (sl_error){0};
    const bool one = ended && *deciding == 2; /* the archive has this entry only */
    if (ok || !archive || *damaged || error->code != SL_EXIT_SOURCE || one)
        return ok;
    const sl_error first = *error;
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: %s; --include PATTERN selects entries by name. The first one, "
                        "%s:\n" SL_LINES,
                        source->shown,
                        pipe ? "the first entry of an archive in a pipe decides on the format, and "
                               "is not recognised. Name the archive as a file"
                             : "the format of none of its first entries is recognised",
                        entry, first.message);
}

static void skip(sl_job *job, size_t index) {
    job->sources[index].skipped = true;
    sl_source_set_skip(job->set, index);
}

/* ---- the same file twice ---- */

static int by_file(const void *a, const void *b) {
    const sl_job_source *x = *(sl_job_source *const *)a, *y = *(sl_job_source *const *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_fingerprint(const void *a, const void *b) {
    const sl_job_source *x = *(sl_job_source *const *)a, *y = *(sl_job_source *const *)b;
    int order = strcmp(x->fingerprint, y->fingerprint);
    return order ? order : (x > y) - (x < y);
}

static int by_beginning(const void *a, const void *b) {
    const sl_job_source *x = *(sl_job_source *const *)a, *y = *(sl_job_source *const *)b;
    if (x->beginning != y->beginning)
        return x->beginning < y->beginning ? -1 : 1;
    return (x > y) - (x < y);
}

static bool same_file(const sl_job_source *x, const sl_job_source *y) {
    return x->inode != 0 && x->inode == y->inode && x->device == y->device;
}

static bool same_fingerprint(const sl_job_source *x, const sl_job_source *y) {
    return strcmp(x->fingerprint, y->fingerprint) == 0;
}

static bool same_beginning(const sl_job_source *x, const sl_job_source *y) {
    return x->beginning != 0 && x->beginning == y->beginning;
}

/* Two paths of one file: it is loaded once. If one of them is standard input, that is an error: the
 * two sources may have different parts of the file left to read, so neither can be left out. */
static bool take_same_file(sl_job *job, size_t first, size_t second, size_t copy, sl_error *error) {
    const sl_source *a = sl_source_set_at(job->set, first), *b = sl_source_set_at(job->set, second);
    (void)copy;
    if (a->kind == SL_SOURCE_PIPE || b->kind == SL_SOURCE_PIPE)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "standard input is the file %s, which is a source as well: its records would "
            "be loaded twice; name it once",
            a->kind == SL_SOURCE_PIPE ? b->shown : a->shown);
    sl_log_warning("%s is the same file as %s; loaded once", b->shown, a->shown);
    skip(job, second);
    return true;
}

/* Two files with equal name and content, such as those of two folders day=1 and day=2, are two
 * sources. The registry knows them by their fingerprints, so those of copies are numbered: `copy`
 * is 2, 3 ... Which file gets which number does not matter, because their documents are the same.
 * But a fingerprint covers only the beginning and the end of a file: if the files differ elsewhere,
 * the numbers would depend on their order, which is an error. */
static bool take_copy(sl_job *job, size_t first, size_t second, size_t copy, sl_error *error) {
    const char *a = sl_source_set_at(job->set, first)->shown,
               *b = sl_source_set_at(job->set, second)->shown;
    char *fingerprint = job->sources[second].fingerprint;
    size_t length = strlen(fingerprint);
    uint64_t where;
    bool same;
    if (!sl_source_same_text(job->set, first, second, &same, &where, error))
        return false;
    if (!same)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s and %s have the same name, size, beginning and end, but differ at "
                            "byte %llu: one collection cannot hold both; rename one of them",
                            a, b, (unsigned long long)where);
    if (job->copies++ < SL_COPIES_SHOWN)
        sl_log_warning("%s is a copy of %s, with the same name and content: %s", b, a,
                       job->config->again
                           ? "with --again, as many such files as earlier loads have stored count "
                             "as stored; rename those to be loaded beside them"
                           : "both are loaded. If only one of them is wanted, name it");
    snprintf(fingerprint + length, SL_FINGERPRINT_ROOM - length, "-%zu", copy);
    return true;
}

/* Two files whose text begins in the same way, such as a.csv, a.csv.gz and a.csv.bak: probably one
 * table. Copies have been reported. */
static bool take_same_beginning(sl_job *job, size_t first, size_t second, size_t copy,
                                sl_error *error) {
    const char *known = job->sources[first].fingerprint;
    (void)copy, (void)error;
    if (strncmp(job->sources[second].fingerprint, known, strlen(known)) == 0)
        return true;
    job->sources[second].like = first + 1;
    if (job->copies++ < SL_COPIES_SHOWN)
        sl_log_warning("%s begins with the same text as %s. If one of them is a copy or an older "
                       "version of the other, name only the other",
                       sl_source_set_at(job->set, second)->shown,
                       sl_source_set_at(job->set, first)->shown);
    return true;
}

/* Finds equal sources, and lets `take` decide about all but the first of them. */
static bool take_repeated(sl_job *job, sl_error *error) {
    static const struct {
        int (*order)(const void *a, const void *b);
        bool (*same)(const sl_job_source *x, const sl_job_source *y);
        bool (*take)(sl_job *job, size_t first, size_t second, size_t copy, sl_error *error);
    } rules[] = {{by_file, same_file, take_same_file},
                 {by_fingerprint, same_fingerprint, take_copy},
                 {by_beginning, same_beginning, take_same_beginning}};
    size_t count = sl_source_set_count(job->set);
    sl_job_source **list = malloc(count * sizeof(sl_job_source *));
    bool ok = list || sl_error_memory(error, "examining the sources");
    for (size_t rule = 0; ok && rule < sizeof rules / sizeof rules[0]; rule++) {
        size_t used = 0, copy = 1;
        for (size_t i = 0; i < count; i++) {
            if (!job->sources[i].skipped)
                list[used++] = &job->sources[i];
        }
        qsort(list, used, sizeof(sl_job_source *), rules[rule].order);
        for (size_t i = 1; ok && i < used; i++) {
            copy = rules[rule].same(list[i - 1], list[i]) ? copy + 1 : 1;
            if (copy == 1)
                continue;
            ok = rules[rule].take(job, (size_t)(list[i - 1] - job->sources),
                                  (size_t)(list[i] - job->sources), copy, error);
            list[i] = list[i - 1]; /* a third one is compared with the first */
        }
    }
    free(list);
    if (job->copies > SL_COPIES_SHOWN)
        sl_log_warning("%zu files are copies of others, or begin with the same text", job->copies);
    return ok;
}

/* Sources with different kinds of records are an error: each kind needs a separate collection. */
static bool check_kinds(const sl_job *job, sl_error *error) {
    const sl_job_source *first = NULL;
    char list[600] = "";
    size_t used = 0;
    bool mixed = false, dump = false;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        if (source->skipped)
            continue;
        dump = dump || strstr(sl_source_set_at(job->set, i)->shown, ".metadata.json");
        const char *kind = sl_format_record_kind(source->format, source->dialect);
        const char *before = first ? sl_format_record_kind(first->format, first->dialect) : kind;
        mixed = mixed || strcmp(kind, before) != 0;
        if (!first || strcmp(kind, before) != 0)
            used += sl_print_text(list + used, sizeof list - used, "\n  %s: %s", kind,
                                  sl_source_set_at(job->set, i)->shown);
        if (!first)
            first = source;
    }
    return !mixed ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "these sources hold different kinds of records:" SL_LINES
               "\nName those of one kind, or select files of a folder with --include. Load "
               "and verify each kind by its own command%s",
               list, dump ? ". A dump of mongodump: shardload restore FOLDER" : "");
}

/* Reads a source again, after its table has shown other quotes than its own text. */
static bool read_again(sl_job *job, size_t index, char *head, sl_error *error) {
    sl_job_source *source = &job->sources[index];
    const char *shown = sl_source_set_at(job->set, index)->shown, *name;
    size_t length;
    bool whole, fits;
    if (sl_source_set_at(job->set, index)->kind == SL_SOURCE_PIPE)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: other sources with the same columns have quoted fields, which "
                            "this one did not show: give --quote with the character",
                            shown);
    if (!sl_source_head(job->set, index, head, SL_SNIFF_BYTES, &length, &whole, &name, error))
        return false;
    line_ends_detect(job, index, name, head, length, whole);
    sl_text text = {head, length};
    sl_format_dialect_destroy(source->format, source->dialect);
    if (!sl_sources_read_text(job, source->format, index, name, text, whole, &source->dialect,
                              &fits, error))
        return false;
    return fits ? begin_source(job, index, text, whole, error)
                : sl_error_prefix(error, "%s", shown);
}

/* Reads the sources again; `late`: those that were read before the quotes of their tables were
 * known. */
static bool read_all_again(sl_job *job, bool late, char *head, sl_error *error) {
    bool ok = true;
    for (int again = 0; ok && again < 2; again++) { /* first all samples are dropped */
        for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++) {
            sl_job_source *source = &job->sources[i];
            bool chosen = sl_source_set_at(job->set, i)->kind != SL_SOURCE_PIPE;
            if (source->skipped || source->format != &sl_format_delimited)
                continue;
            ok = !late || sl_dialects_are_late(job->dialects, sl_sources_plan(job, source->format),
                                               source->dialect, &chosen, error);
            if (ok && chosen && again)
                ok = read_again(job, i, head, error);
            else if (ok && chosen)
                sl_types_forget(job, source);
        }
    }
    return ok;
}

/* Adds the sources of generated records: each holds SL_SOURCE_BYTES_MAX at most. */
static bool add_generated_sources(sl_job *job, const sl_format *format, sl_error *error) {
    uint64_t records = job->config->format_options.ycsb.records;
    const sl_plan *plan;
    if (!plan_of(job, format, &plan, error))
        return false;
    uint32_t each = format->record_bytes(plan);
    uint64_t most = SL_SOURCE_BYTES_MAX / each;
    if (records > most * GENERATED_SOURCES_MAX)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--records: one load generates at most %llu documents of this size; "
                            "generate more with further loads, each with another --seed",
                            (unsigned long long)most * GENERATED_SOURCES_MAX);
    bool ok = sl_source_set_create(NULL, 0, NULL, &job->set, error);
    for (uint64_t first = 0; ok && first < records; first += most) {
        uint64_t count = records - first < most ? records - first : most;
        char name[256];
        format->name_records(plan, first, first + count - 1, name, sizeof name);
        ok = sl_source_set_add_generated(job->set, name, count, each, error);
    }
    return ok;
}

static bool find_sources(sl_job *job, sl_error *error) {
    const sl_load_config *config = job->config;
    const sl_format *format = sl_format_named(config->format); /* NULL: "auto" */
    if (format && format->name_records)
        return add_generated_sources(job, format, error);
    const char *files = config->map ? config->map->files : NULL;
    bool ok = sl_source_set_create(config->paths, config->path_count,
                                   files ? files : config->include, &job->set, error);
    if (ok)
        sl_source_set_use_map(job->set, config->map);
    return ok;
}

/* Leaves out a file found in a folder. An empty file does not fail the load. */
static void leave_out(sl_job *job, size_t index, bool empty, const char *message) {
    const char *path = sl_source_set_at(job->set, index)->shown;
    size_t length = strlen(path); /* the message begins with it */
    if (strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0)
        message += length + 2;
    sl_not_loaded_add(job, index, NULL, empty ? NULL : message);
}

static void on_passed_over(void *context, size_t source, const char *entry, const char *reason) {
    char text[300];
    snprintf(text, sizeof text, "this is %s", reason ? reason : "");
    sl_not_loaded_add(context, source, entry, reason ? text : NULL);
}

/* Can each source be read again, and with double quotes as well as now? */
static bool may_be_quoted(const sl_job *job) {
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_source_kind kind = sl_source_set_at(job->set, i)->kind;
        const sl_dialect *d = job->sources[i].dialect;
        if (job->sources[i].skipped || job->sources[i].format != &sl_format_delimited)
            continue;
        if (kind == SL_SOURCE_PIPE || kind == SL_SOURCE_ARCHIVE || d->blanks || d->bare_escape ||
            (d->quote && d->quote != '"'))
            return false;
    }
    return true;
}

const char *sl_sources_again(const sl_job *job, sl_plan *plan) {
    if (job->spans_lines && !plan->options.quoted_lines) {
        plan->options.quoted_lines = true;
        return "quoted fields have line ends: the sources are read as with --quoted-lines yes";
    }
    if (plan->options.quote != SL_QUOTE_AUTO || !sl_typing_shows_quotes(plan->typing) ||
        !may_be_quoted(job))
        return NULL;
    plan->options.quote = '"';
    return "fields after the first lines are quoted: the sources are read as with --quote '\"'";
}

/* Writes the source, and the place in it, of a value in doubt. */
static void write_place(const sl_job *job, const sl_typing_doubt *doubt, char *out, size_t room) {
    const uint64_t line =
        doubt->line > 0 ? doubt->line : sl_sources_line_at(job, doubt->source, doubt->offset);
    sl_print_text(out, room, "%s, %s %" PRIu64, sl_source_set_at(job->set, doubt->source)->shown,
                  line > 0 ? "line" : "byte", line > 0 ? line : doubt->offset);
}

void sl_sources_log_doubts(const sl_job *job, const sl_plan *plan) {
    unsigned shown = 0;
    char place[400];
    for (size_t k = 0; k < sl_typing_count(plan->typing) && shown < DOUBTS_SHOWN; k++) {
        const sl_typed_layout *layout = sl_typing_at(plan->typing, k);
        const sl_dialect *d = job->sources[layout->escapes.source].dialect;
        if (layout->quotes.shown[0]) {
            write_place(job, &layout->quotes, place, sizeof place);
            sl_log_warning("%s: values have quotes, which are kept: --quote '\"' removes them; the "
                           "first is `" SL_LINES "`",
                           place, layout->quotes.shown);
        }
        const bool escapes = layout->escapes.shown[0] && !layout->paths,
                   header = escapes && d->header_length > 0;
        if (escapes && (!header || (layout->pairs && layout->batch))) {
            write_place(job, &layout->escapes, place, sizeof place);
            sl_log_warning("%s: values have backslashes as exports of databases have them, which "
                           "are kept: if it is one, load with --dialect %s, and if backslashes are "
                           "data, with --dialect csv; the first is `" SL_LINES "`",
                           place,
                           header ? "mysql-batch" : "postgres (COPY) or mysql (mysqldump --tab)",
                           layout->escapes.shown);
        }
        shown += layout->quotes.shown[0] || escapes;
    }
}

/* Infers the types. If the sample shows quotes that the first texts do not have, the sources are
 * read again. */
static bool infer_types(sl_job *job, sl_error *error) {
    bool ok = sl_types_infer(job, error);
    char *head = ok && job->again ? malloc(SL_SNIFF_BYTES + SL_SLACK) : NULL;
    if (ok && job->again && !head)
        ok = sl_error_memory(error, "examining the sources");
    while (ok && job->again) {
        sl_log_detail("%s", job->again);
        ok = read_all_again(job, false, head, error) && sl_types_infer(job, error);
    }
    free(head);
    return ok;
}

/* Finds the sources, and allocates what their recognition needs; `*head` is freed by the caller. */
static bool begin_recognition(sl_job *job, char **head, sl_error *error) {
    size_t formats = 0;
    while (sl_formats[formats])
        formats++;
    job->plans = calloc(formats + 1, sizeof(sl_plan *)); /* the last one is NULL */
    if (!job->plans)
        return sl_error_memory(error, "examining the sources");
    if (!sl_dialects_create(&job->dialects, error) ||
        !sl_key_fields_create(&job->config->format_options, &job->keys, error))
        return false;
    job->own_ids = job->keys != NULL;
    if (!find_sources(job, error))
        return false;
    job->sources = calloc(sl_source_set_count(job->set), sizeof *job->sources);
    *head = malloc(SL_SNIFF_BYTES + SL_SLACK);
    return (job->sources && *head) || sl_error_memory(error, "examining the sources");
}

bool sl_source_is_recognised(const sl_load_config *config, bool *other, bool *empty,
                             sl_error *error) {
    const sl_log_level shown = sl_log_set_level(SL_LOG_ERROR); /* the load logs it again */
    sl_job job;
    char *head = NULL;
    bool damaged = true;
    *empty = false;
    sl_job_init(&job, config);
    const bool ok =
        begin_recognition(&job, &head, error) && recognise(&job, 0, head, &damaged, empty, error);
    *other = !ok && error->code == SL_EXIT_SOURCE && !damaged;
    free(head);
    sl_job_clear(&job);
    sl_log_set_level(shown);
    return ok;
}

bool sl_sources_open(sl_job *job, sl_error *error) {
    char *head = NULL;
    bool ok = begin_recognition(job, &head, error);
    const size_t count = ok ? sl_source_set_count(job->set) : 0;
    if (ok)
        sl_source_set_report_skipped(job->set, on_passed_over, job);
    int64_t logged = sl_clock_ns();
    for (size_t i = 0; ok && i < count; i++) {
        if (sl_seconds_since(logged) > 2) {
            sl_log_info("inspecting the sources: %zu of %zu", i, count);
            logged = sl_clock_ns();
        }
        sl_error why = {0};
        bool damaged, empty;
        if (!recognise(job, i, head, &damaged, &empty, &why)) {
            ok = why.code == SL_EXIT_SOURCE && !damaged && !sl_source_set_at(job->set, i)->named;
            if (ok) {
                leave_out(job, i, empty, why.message);
                skip(job, i);
            } else {
                *error = why;
            }
            continue;
        }
        ok = sl_source_fingerprint(job->set, i, job->sources[i].fingerprint, error);
        const sl_source *source = sl_source_set_at(job->set, i);
        job->sources[i].device = source->identity.device;
        job->sources[i].inode = source->identity.inode;
    }
    ok = ok && read_all_again(job, true, head, error);
    if (job->dialects)
        sl_dialects_fix(job->dialects);
    free(head);
    if (!ok || !take_repeated(job, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        job->active += !job->sources[i].skipped;
        job->own_ids =
            job->own_ids || (!job->sources[i].skipped && job->sources[i].format->own_ids);
        job->has_pipe = job->has_pipe || sl_source_set_at(job->set, i)->kind == SL_SOURCE_PIPE;
    }
    if (job->active == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "nothing to load: the format of none of the %zu files found is "
                            "recognised",
                            count);
    if (!check_kinds(job, error) || !name_keys(job, error))
        return false;
    sl_source_set_report_skipped(job->set, NULL, NULL); /* the load itself will read and report
                                                           these entries again */
    ok = infer_types(job, error) && sl_shard_key_check(job, error) && sl_declared_look(job, error);
    sl_source_set_report_skipped(job->set, on_passed_over, job);
    return ok;
}

typedef struct sl_archive_entry {
    struct sl_archive_entry *next;
    uint64_t number;     /* the same as in its blocks */
    uint64_t first;      /* sequence of its first block */
    uint64_t parsed;     /* blocks; guarded by entries_lock, like the next field */
    uint64_t blocks;     /* UINT64_MAX: its last block has not been read yet */
    sl_dialect *dialect; /* NULL: not loaded */
} sl_archive_entry;

void sl_sources_forget_entries(sl_job *job) {
    for (size_t i = 0; job->sources && i < sl_source_set_count(job->set); i++) {
        sl_job_source *source = &job->sources[i];
        for (sl_archive_entry *entry; (entry = source->entries) != NULL;) {
            source->entries = entry->next;
            sl_format_dialect_destroy(source->format, entry->dialect);
            free(entry);
        }
    }
    job->entries_failed = false;
}

void sl_sources_close(sl_job *job) {
    sl_sources_forget_entries(job);
    for (size_t i = 0; job->sources && i < sl_source_set_count(job->set); i++) {
        free(job->sources[i].done);
        free(job->sources[i].corrected);
        if (job->sources[i].format)
            sl_format_dialect_destroy(job->sources[i].format, job->sources[i].dialect);
    }
    free(job->sources);
    sl_key_fields_destroy(job->keys);
    sl_dialects_destroy(job->dialects);
    for (size_t i = 0; job->plans && sl_formats[i]; i++) {
        if (job->plans[i])
            sl_format_plan_destroy(sl_formats[i], job->plans[i]);
    }
    free(job->plans);
    sl_source_set_destroy(job->set);
}

/* ---- entries of archives ---- */

/* The dialects of archive entries. Each entry is sniffed separately, like the files of a folder,
 * because the next entry may have its columns in another order, or hold no data at all.
 *
 * The worker that draws an entry's first block sniffs it and publishes the dialect; a worker with a
 * later block of the entry waits for that. The wait is short: blocks are drawn in order, so another
 * worker already has the entry's first block, and only sniffs it before it publishes the result.
 *
 * An entry is freed when all of its blocks have been parsed, so that memory holds at most one entry
 * per worker, however many an archive has. The number of an entry's blocks is known when its last
 * block has been read. */

/* Sniffs an entry by its first block. An entry of another format than the source, or with another
 * kind of record, is not loaded. */
static bool sniff(sl_job *job, const sl_job_source *source, const sl_source_block *block,
                  sl_dialect **result, sl_error *error) {
    const sl_format *format = source->format;
    sl_error why = {0};
    sl_dialect *dialect = NULL;
    /* The first block may be short, and hold nothing but blanks: its end depends on its offset. */
    sl_text head = {block->text.bytes, block->known_length};
    bool whole = block->known_to_end && head.length <= SL_SNIFF_BYTES;
    if (head.length > SL_SNIFF_BYTES)
        head.length = SL_SNIFF_BYTES;
    const char *path = sl_source_set_at(job->set, block->source)->shown;
    if (!format->binary && !first_line_ends(job, head, whole, &why)) {
        *result = NULL;
        if (line_ends_is_binary(head)) {
            sl_not_loaded_add(job, block->source, block->entry, why.message);
            return true;
        }
        *error = why;
        return sl_error_prefix(error, "%s: %s", path, block->entry);
    }
    if (format == &sl_format_bson && strstr(block->entry, ".metadata.json")) /* from a pipe */
        return sl_error_set(error, SL_EXIT_SOURCE, HOLDS_DUMP, path);
    bool fits;
    if (!sl_sources_read_text(job, format, block->source, block->entry, head, whole, &dialect,
                              &fits, &why)) {
        *error = why;
        return false;
    }
    if (!fits) {
        sl_not_loaded_add(job, block->source, block->entry, why.message);
    } else if (strcmp(sl_format_record_kind(format, dialect),
                      sl_format_record_kind(format, source->dialect)) != 0) {
        char reason[200];
        snprintf(reason, sizeof reason, "holds %s, not %s", sl_format_record_kind(format, dialect),
                 sl_format_record_kind(format, source->dialect));
        sl_not_loaded_add(job, block->source, block->entry, reason);
        sl_format_dialect_destroy(format, dialect);
        dialect = NULL;
    }
    if (dialect && source->divided && format->splits_alike &&
        !format->splits_alike(dialect, source->dialect)) {
        sl_format_dialect_destroy(format, dialect);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: %s: this entry has another delimiter than the archive's first "
                            "entry, whose fields are quoted; unpack the archive and load its files",
                            path, block->entry);
    }
    if (dialect &&
        line_escape_of(format, dialect) != sl_source_set_at(job->set, block->source)->line_escape) {
        sl_format_dialect_destroy(format, dialect);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: %s: this entry has another dialect than the archive's first "
                            "entry: give --dialect, or unpack the archive and load its files",
                            path, block->entry);
    }
    /* An entry that the splitter has not divided may have an open quote before its first record. */
    bool unused;
    bool divided = source->divided &&
                   (!dialect || !format->splitter || format->splitter(dialect, &unused) != NULL);
    if (dialect && !divided && format->check_head &&
        !format->check_head(dialect, head, whole, error)) {
        sl_format_dialect_destroy(format, dialect);
        return sl_error_prefix(error, "%s: %s", path, block->entry);
    }
    if (dialect && (format == &sl_format_delimited || format == &sl_format_mot))
        sl_dialect_move(dialect, block->offset);
    if (dialect && !sl_types_apply_to_entry(job, block, dialect, error)) {
        sl_format_dialect_destroy(format, dialect);
        return false;
    }
    *result = dialect;
    return true;
}

/* The link to an entry in the source's list; *link is NULL if there is none. */
static sl_archive_entry **find(sl_job_source *source, uint64_t number) {
    sl_archive_entry **link = &source->entries;
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

bool sl_sources_dialect(sl_job *job, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error) {
    sl_job_source *source = &job->sources[block->source];
    *dialect = source->dialect;
    if (!block->entry)
        return true;
    const sl_archive_entry *known;
    if (block->entry_start) {
        sl_archive_entry *made = calloc(1, sizeof *made);
        if (!made)
            sl_error_memory(error, "reading an archive");
        if (!made || !sniff(job, source, block, &made->dialect, error)) {
            free(made);
            pthread_mutex_lock(&job->entries_lock);
            job->entries_failed = true; /* ends the wait for this entry */
            pthread_cond_broadcast(&job->entries_known);
            pthread_mutex_unlock(&job->entries_lock);
            return false;
        }
        made->number = block->entry_number;
        made->first = block->sequence;
        made->blocks = UINT64_MAX;
        pthread_mutex_lock(&job->entries_lock);
        made->next = source->entries;
        source->entries = made;
        pthread_cond_broadcast(&job->entries_known);
        pthread_mutex_unlock(&job->entries_lock);
        known = made;
    } else {
        pthread_mutex_lock(&job->entries_lock);
        while (!(known = *find(source, block->entry_number)) && !job->entries_failed)
            pthread_cond_wait(&job->entries_known, &job->entries_lock);
        pthread_mutex_unlock(&job->entries_lock);
    }
    if (!known) /* the thread that failed reports the reason */
        return false;
    *dialect = known->dialect;
    return true;
}

void sl_sources_done_with(sl_job *job, const sl_source_block *block) {
    sl_job_source *source = &job->sources[block->source];
    if (!block->entry)
        return;
    pthread_mutex_lock(&job->entries_lock);
    sl_archive_entry **link = find(source, block->entry_number), *entry = *link;
    entry->parsed++;
    if (block->entry_last)
        entry->blocks = block->sequence - entry->first + 1;
    bool over = entry->parsed == entry->blocks;
    if (over)
        *link = entry->next;
    pthread_mutex_unlock(&job->entries_lock);
    if (!over)
        return;
    sl_format_dialect_destroy(source->format, entry->dialect);
    free(entry);
}
