/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the documents of a load: for estimates, for splits at quantiles, and for the check of
 * the shard key. */
#include "document_sample.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "format/declared.h"
#include "util/document_id.h"
#include "util/grow.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#include "sources.h"

#define SAMPLED_BLOCKS UINT64_C(64)
#define KEYS_PER_BLOCK 100u

struct sl_document_sample {
    sl_job *job;
    sl_sampled_documents *receive;
    void *context;
    sl_reader *reader;
    uint8_t *bytes; /* room + SL_SLACK */
    size_t room;
    uint64_t bson_bytes;          /* of the current block */
    const sl_source_block *block; /* the current block */
    bool no_memory;
    sl_error misread, first; /* of a misread line; of the first other reject */
};

bool sl_document_sample_create(sl_job *job, sl_sampled_documents *receive, void *context,
                               sl_document_sample **sample, sl_error *error) {
    sl_document_sample *made = calloc(1, sizeof *made);
    *sample = made;
    if (!made)
        return sl_error_memory(error, "examining the sources");
    made->job = job;
    made->receive = receive;
    made->context = context;
    made->room = SL_BLOCK_BYTES;
    made->bytes = malloc(made->room + SL_SLACK);
    if (!made->bytes)
        return sl_error_memory(error, "examining the sources");
    return sl_reader_create(job->set, &made->reader, error);
}

void sl_document_sample_destroy(sl_document_sample *sample) {
    if (!sample)
        return;
    sl_reader_destroy(sample->reader);
    sl_sources_forget_entries(sample->job);
    free(sample->bytes);
    free(sample);
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_document_sample *s = sink->context;
    s->bson_bytes += (uint64_t)(sink->cursor - s->bytes);
    if (s->receive && !s->receive(s->context, s->bytes, sink->cursor, sink->documents))
        s->no_memory = true;
    if (need > s->room) {
        uint8_t *bytes = realloc(s->bytes, need + SL_SLACK);
        s->no_memory = s->no_memory || !bytes;
        s->bytes = bytes ? bytes : s->bytes;
        s->room = bytes ? need : s->room;
    }
    sink->cursor = s->bytes;
    sink->limit = s->bytes + s->room;
    sink->documents = 0;
    return !s->no_memory;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_document_sample *s = sink->context;
    if (reject->misread || !s->first.code)
        sl_line_ends_error(s->job, s->block, reject, reject->misread ? &s->misread : &s->first);
}

sl_read_result sl_document_sample_read(sl_document_sample *s, size_t source, uint64_t sequence,
                                       sl_sampled_block *into, sl_error *error) {
    sl_job *job = s->job;
    sl_source_block block;
    const sl_dialect *dialect;
    sl_read_result result = sl_reader_next_of(s->reader, source, sequence, &block, error);
    if (result != SL_READ_BLOCK)
        return result;
    *into = (sl_sampled_block){.text_bytes = block.text.length, .last = block.last};
    if (!sl_sources_dialect(job, &block, &dialect, error))
        return SL_READ_FAILED;
    s->bson_bytes = 0;
    s->block = &block;
    sl_sink sink = {.cursor = s->bytes,
                    .limit = s->bytes + s->room,
                    .documents_limit = UINT32_MAX,
                    .full = on_full,
                    .reject = on_reject,
                    .context = s};
    bool parsed =
        !dialect || block.text.length == 0 ||
        (sl_sources_parse(job, &block, dialect, &sink, &into->counts) && on_full(&sink, 0));
    if (!parsed && s->misread.code)
        *error = s->misread;
    else if (!parsed)
        sl_error_memory(error, "examining the sources");
    sl_sources_done_with(job, &block);
    into->bson_bytes = s->bson_bytes;
    return parsed ? SL_READ_BLOCK : SL_READ_FAILED;
}

/* ---- shard keys ---- */

/* Offers some of the documents, evenly spread. */
static bool offer(void *context, const uint8_t *documents, const uint8_t *end, uint32_t count) {
    uint32_t step = count / KEYS_PER_BLOCK + 1, i = 0;
    bool ok = true;
    for (const uint8_t *at = documents; ok && at < end; at += sl_bson_length(at))
        ok = i++ % step != 0 || sl_key_sample_offer(context, at);
    return ok;
}

/* The number of blocks of a source; approximate for a compressed source. */
static uint64_t blocks_of(const sl_job *job, size_t index) {
    const sl_source *facts = sl_source_set_at(job->set, index);
    return job->sources[index].skipped || facts->kind == SL_SOURCE_PIPE
               ? 0
               : (facts->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
}

/* Reads `count` of the blocks of a source. Each source ends with its first error. */
static bool read_source(sl_document_sample *sample, size_t index, uint64_t blocks, uint64_t count,
                        sl_error *error) {
    bool splittable = sl_source_is_splittable(sl_source_set_at(sample->job->set, index));
    bool ended = false;
    for (uint64_t i = 0; i < count && !ended && !sl_interrupt_requested(); i++) {
        uint64_t sequence = splittable ? (2 * i + 1) * blocks / (2 * count) : i;
        sl_sampled_block block;
        sl_error why = {0};
        sl_read_result result = sl_document_sample_read(sample, index, sequence, &block, &why);
        if (why.code == SL_EXIT_RESOURCES) {
            *error = why;
            return false;
        }
        ended = result != SL_READ_BLOCK || (block.last && !splittable);
    }
    return true;
}

bool sl_key_sample_take(sl_job *job, sl_key_sample *keys, sl_error *error) {
    sl_document_sample *sample = NULL;
    uint64_t all = 0, before = 0;
    size_t count = sl_source_set_count(job->set);
    bool ok = sl_document_sample_create(job, offer, keys, &sample, error);
    for (size_t i = 0; i < count; i++)
        all += blocks_of(job, i);
    uint64_t wanted = all < SAMPLED_BLOCKS ? all : SAMPLED_BLOCKS;
    for (size_t i = 0; ok && all > 0 && i < count; i++) {
        uint64_t blocks = blocks_of(job, i);
        /* Of the numbers (2 k + 1) * all / (2 * wanted), k < wanted, this source has those in its
         * stretch. */
        uint64_t from = (before * 2 * wanted / all + 1) / 2;
        uint64_t to = ((before + blocks) * 2 * wanted / all + 1) / 2;
        bool splittable = sl_source_is_splittable(sl_source_set_at(job->set, i));
        uint64_t own = to - from;
        if (!splittable &&
            own < SAMPLED_BLOCKS / count) /* it has more bytes of text than stored bytes */
            own = SAMPLED_BLOCKS / count;
        ok = blocks == 0 || read_source(sample, i, blocks, own, error);
        before += blocks;
    }
    sl_document_sample_destroy(sample);
    sl_source_set_reset_consumed(job->set);
    return ok;
}

/* ---- do the documents have the fields of the shard key? ---- */

/* Looks for the fields of the shard key in sampled documents, and finds the most similar names for
 * a field that no document has. Blocks that cannot be read or parsed are left out: the load reports
 * them. */

#define SOURCES 64u        /* sampled at most */
#define CHECKED_BLOCKS 64u /* over all sources */
#define FIELDS_MOST 64u    /* the server allows 32 of a key, and --types 64 */
#define NAMES_MOST 2000u   /* of fields in documents */
#define NAME_ROOM 128      /* bytes of a field name */
#define NESTED_MOST 3
#define NEAREST 3u

typedef struct sampling {
    const char *fields[FIELDS_MOST];
    size_t count, missing;
    int found[FIELDS_MOST];      /* the type of the first value; 0: none */
    const sl_declared *declared; /* --types: its fields, and which were found; or NULL */
    bool paths;                  /* names of fields are paths (sl_nesting_set_paths) */
    char *text;                  /* for the value of the first field; or NULL */
    uint64_t documents;
    bool cut;                 /* the end of a compressed file or an archive was not read */
    char (*names)[NAME_ROOM]; /* seen in documents, without repetition */
    size_t name_count;
} sampling;

/* ---- documents ---- */

static void add_name(sampling *s, const char *path) {
    for (size_t i = 0; i < s->name_count; i++) {
        if (strcmp(s->names[i], path) == 0)
            return;
    }
    if (s->name_count < NAMES_MOST)
        snprintf(s->names[s->name_count++], NAME_ROOM, "%s", path);
}

static void add_names(sampling *s, bson_iter_t *fields, const char *before, int depth) {
    char path[NAME_ROOM];
    bson_iter_t inner;
    while (bson_iter_next(fields)) {
        int length = snprintf(path, sizeof path, "%s%s%s", before, *before ? "." : "",
                              bson_iter_key(fields));
        if (length >= NAME_ROOM)
            continue;
        add_name(s, path);
        if (depth < NESTED_MOST && BSON_ITER_HOLDS_DOCUMENT(fields) &&
            bson_iter_recurse(fields, &inner))
            add_names(s, &inner, path, depth + 1);
    }
}

/* While documents are sampled, the sources have a number that no registry gives. */
static bool is_position(const char *field, const bson_iter_t *value) {
    return strcmp(field, "_id") == 0 && BSON_ITER_HOLDS_INT64(value) &&
           sl_document_id_source(bson_iter_int64(value)) == SL_SOURCE_NUMBER_MAX;
}

static void take_text(const bson_iter_t *value, char *text) {
    if (BSON_ITER_HOLDS_UTF8(value))
        sl_text_printable(sl_text_of(bson_iter_utf8(value, NULL)), text, SL_SAMPLED_TEXT_ROOM);
    else if (BSON_ITER_HOLDS_INT(value))
        snprintf(text, SL_SAMPLED_TEXT_ROOM, "%" PRId64, bson_iter_as_int64(value));
    else if (BSON_ITER_HOLDS_DOUBLE(value))
        snprintf(text, SL_SAMPLED_TEXT_ROOM, "%.17g", bson_iter_double(value));
}

static void look_at(sampling *s, const uint8_t *bytes) {
    bson_t document;
    bson_iter_t iter, field;
    if (!bson_init_static(&document, bytes, sl_bson_length(bytes)))
        return;
    s->documents++;
    for (size_t i = 0; i < s->count; i++) {
        bool found = s->declared ? atomic_load(&s->declared->found[i])
                     : s->paths  ? sl_look_set(&document, s->fields[i], &field)
                                 : sl_look_find(&document, s->fields[i], &field);
        if (s->found[i] || !found || (!s->declared && is_position(s->fields[i], &field)))
            continue;
        s->found[i] = s->declared ? 1 : (int)bson_iter_type(&field);
        if (i == 0 && s->text)
            take_text(&field, s->text);
        s->missing--;
    }
    /* The names of the first documents, and of some later ones: they are needed only for a
     * message. */
    bool some = s->documents <= 100 || s->documents % 1000 == 0;
    if (s->missing > 0 && some && bson_iter_init(&iter, &document))
        add_names(s, &iter, "", 0);
}

static bool look_at_all(void *context, const uint8_t *documents, const uint8_t *end,
                        uint32_t count) {
    sampling *s = context;
    (void)count;
    for (const uint8_t *at = documents; s->missing > 0 && at < end; at += sl_bson_length(at))
        look_at(s, at);
    return true;
}

/* ---- blocks ---- */

/* Reads a block. False without memory. */
static bool look_at_block(sl_document_sample *sample, size_t index, uint64_t sequence, bool *last,
                          sl_error *error) {
    sl_sampled_block block = {.last = true};
    sl_error why = {0};
    uint32_t *number = &sample->job->sources[index].number, known = *number;
    *number = SL_SOURCE_NUMBER_MAX;
    sl_read_result result = sl_document_sample_read(sample, index, sequence, &block, &why);
    *number = known;
    *last = result != SL_READ_BLOCK || block.last;
    if (why.code == SL_EXIT_RESOURCES)
        *error = why;
    return why.code != SL_EXIT_RESOURCES;
}

/* Up to SOURCES sources are sampled. Where blocks can be read in any order, they are spread over
 * the source; compressed files and archives are read from their beginning. False without memory. */
static bool sample_blocks(const sl_job *job, sl_document_sample *sample, sampling *s,
                          sl_error *error) {
    size_t all = sl_source_set_count(job->set), chosen = all < SOURCES ? all : SOURCES;
    uint64_t most = CHECKED_BLOCKS / (chosen > 0 ? chosen : 1);
    for (size_t i = 0; i < chosen && s->missing > 0; i++) {
        size_t index = (2 * i + 1) * all / (2 * chosen);
        const sl_source *facts = sl_source_set_at(job->set, index);
        bool spread = sl_source_is_splittable(facts), last = false;
        uint64_t blocks = (facts->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
        uint64_t count = spread && blocks < most ? blocks : most;
        if (job->sources[index].skipped || facts->kind == SL_SOURCE_PIPE)
            continue;
        for (uint64_t k = 0; k < count && s->missing > 0 && (spread || !last); k++) {
            uint64_t sequence = spread && blocks > most ? k * (blocks / most) : k;
            if (!look_at_block(sample, index, sequence, &last, error))
                return false;
        }
        s->cut = s->cut || (!spread && !last);
    }
    return true;
}

void sl_documents_look(sl_job *job, sl_sampled_documents *receive, void *context) {
    size_t all = sl_source_set_count(job->set), chosen = all < 8 ? all : 8;
    sl_document_sample *sample = NULL;
    sl_error ignored = {0};
    bool ok = sl_document_sample_create(job, receive, context, &sample, &ignored), last;
    for (size_t i = 0; ok && i < chosen; i++) {
        size_t index = (2 * i + 1) * all / (2 * chosen);
        if (!job->sources[index].skipped &&
            sl_source_set_at(job->set, index)->kind != SL_SOURCE_PIPE)
            ok = look_at_block(sample, index, 0, &last, &ignored);
    }
    sl_document_sample_destroy(sample);
    sl_source_set_reset_consumed(job->set);
}

bool sl_documents_refuse_rejects(sl_job *job, const sl_target *target, sl_error *error) {
    size_t all = sl_source_set_count(job->set), chosen = all < SOURCES ? all : SOURCES;
    sl_document_sample *sample = NULL;
    uint64_t rejects = 0;
    bool ok = sl_document_sample_create(job, NULL, NULL, &sample, error), good = false;
    for (size_t i = 0; ok && !good && i < chosen; i++) {
        const size_t index = (2 * i + 1) * all / (2 * chosen);
        const sl_source *facts = sl_source_set_at(job->set, index);
        if (job->sources[index].skipped)
            continue;
        good = facts->kind == SL_SOURCE_PIPE || facts->kind == SL_SOURCE_GENERATED ||
               facts->kind == SL_SOURCE_ARCHIVE;
        const bool spread = sl_source_is_splittable(facts) && facts->stored_bytes > 0;
        const uint64_t last = spread ? (facts->stored_bytes - 1) >> SL_BLOCK_BITS : 0;
        sl_sampled_block block = {0};
        for (uint64_t part = 0; ok && !good && part <= 2 && !block.last; part++) {
            const uint64_t sequence = spread ? last * part / 2 : part;
            if (spread && part > 0 && sequence == 0)
                break;
            const sl_read_result result =
                sl_document_sample_read(sample, index, sequence, &block, error);
            ok = result != SL_READ_FAILED;
            if (result != SL_READ_BLOCK)
                break;
            good = block.counts.documents > 0;
            rejects += block.counts.rejects;
        }
    }
    if (ok && !good && rejects > 0)
        ok = sl_error_set(
            error, SL_EXIT_SOURCE, "%s in the sample %s, so --drop leaves %s.%s as it is: %s. %s",
            sl_plural(rejects, "record"), sl_agreeing(rejects, "[is|are] rejected"),
            target->database, target->collection, sample->first.message, sl_sources_advice(job));
    sl_document_sample_destroy(sample);
    sl_source_set_reset_consumed(job->set);
    return ok;
}

/* ---- the message ---- */

/* The number of single-character changes between two names, of upper and lower case too. */
static unsigned distance(const char *a, const char *b) {
    unsigned row[NAME_ROOM + 1];
    size_t width = strlen(b);
    for (size_t i = 0; i <= width; i++)
        row[i] = (unsigned)i;
    for (size_t i = 1; *a; a++, i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= width; k++) {
            unsigned change = corner + (*a != b[k - 1]);
            corner = row[k];
            unsigned least = row[k] < row[k - 1] ? row[k] + 1 : row[k - 1] + 1;
            row[k] = change < least ? change : least;
        }
    }
    return row[width];
}

/* Lower is more similar. Differences of upper and lower case count little, and so does the path
 * before the last dot. */
static unsigned strangeness(const char *field, const char *name) {
    char low[NAME_ROOM], lower[NAME_ROOM];
    const char *last = strrchr(name, '.');
    size_t i = 0;
    for (; i < NAME_ROOM - 1 && field[i]; i++)
        low[i] = (char)tolower((unsigned char)field[i]);
    low[i] = '\0';
    for (i = 0; name[i]; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    lower[i] = '\0';
    unsigned all = 4 * distance(low, lower) + (distance(field, name) > 0);
    unsigned end = last ? 4 * distance(low, lower + (last + 1 - name)) + 2 : all;
    return all < end ? all : end;
}

/* Appends the most similar names, or the first names if none is similar. */
static void name_nearest(const sampling *s, const char *field, char *out, size_t room) {
    size_t best[NEAREST], count = 0, used = 0;
    unsigned limit = 4 * (unsigned)(strlen(field) / 2 > 2 ? strlen(field) / 2 : 2) + 3;
    for (size_t i = 0; i < s->name_count; i++) {
        unsigned own = strangeness(field, s->names[i]);
        if (own > limit)
            continue;
        size_t at = count < NEAREST ? count++ : NEAREST;
        for (; at > 0 && strangeness(field, s->names[best[at - 1]]) > own; at--) {
            if (at < NEAREST)
                best[at] = best[at - 1];
        }
        if (at < NEAREST)
            best[at] = i;
    }
    if (count > 0)
        used = sl_print_text(out, room, "; similar names: ");
    else
        used = sl_print_text(out, room, "; they have ");
    for (size_t i = 0; i < (count > 0 ? count : s->name_count) && i < 2 * NEAREST; i++)
        used += sl_print_text(out + used, room - used, "%s%s", i > 0 ? ", " : "",
                              s->names[count > 0 ? best[i] : i]);
    if (count == 0 && s->name_count > 2 * NEAREST)
        sl_print_text(out + used, room - used, ", ...");
}

#define PROBLEM_ROOM 800

/* Writes a message about the first field that no document has. False: every field was found, or
 * there are no documents. */
static bool none_has(const sampling *s, char out[PROBLEM_ROOM]) {
    size_t i = 0, used;
    char human[SL_HUMAN_ROOM];
    while (i < s->count && s->found[i])
        i++;
    if (i == s->count || s->documents == 0)
        return false;
    used = sl_print_text(out, PROBLEM_ROOM, "none of the %s%s documents sampled has a field \"%s\"",
                         s->cut ? "first " : "", sl_human_count(s->documents, human), s->fields[i]);
    name_nearest(s, s->fields[i], out + used, PROBLEM_ROOM - used);
    return true;
}

/* Samples the sources until a document with each of the fields was found. Frees nothing of `s`. */
static bool look_for_fields(sl_job *job, sampling *s, sl_error *error) {
    s->paths = sl_load_mode(job->config)->sets_fields;
    sl_document_sample *documents = NULL;
    s->missing = s->count;
    s->names = malloc(NAMES_MOST * sizeof *s->names);
    bool ok = (s->names || sl_error_memory(error, "sampling the sources")) &&
              sl_document_sample_create(job, look_at_all, s, &documents, error) &&
              sample_blocks(job, documents, s, error);
    sl_document_sample_destroy(documents);
    sl_source_set_reset_consumed(job->set);
    return ok;
}

int sl_documents_type(sl_job *job, const char *field, char text[SL_SAMPLED_TEXT_ROOM]) {
    sampling s = {.fields = {field}, .count = 1, .text = text};
    if (text)
        text[0] = '\0';
    sl_error ignored = {0};
    look_for_fields(job, &s, &ignored);
    free(s.names);
    return s.found[0];
}

/* Adds the fields of a shard key that records can have: not _id, and none that --embed adds. */
static void add_key_fields(sampling *s, const sl_load_config *config, const bson_t *shard_key) {
    bson_iter_t key;
    size_t embedded = config->embed_field ? strlen(config->embed_field) : 0;
    for (bool more = bson_iter_init(&key, shard_key);
         more && bson_iter_next(&key) && s->count < FIELDS_MOST;) {
        const char *field = bson_iter_key(&key);
        bool added = embedded > 0 && strncmp(field, config->embed_field, embedded) == 0 &&
                     (field[embedded] == '\0' || field[embedded] == '.');
        if (strcmp(field, "_id") != 0 && !added && strlen(field) < NAME_ROOM)
            s->fields[s->count++] = field;
    }
}

bool sl_shard_key_look(sl_job *job, const sl_target *target, const bson_t *shard_key,
                       sl_error *error) {
    sampling s = {0};
    char none[PROBLEM_ROOM];
    add_key_fields(&s, job->config, shard_key);
    bool ok = s.count == 0 || look_for_fields(job, &s, error);
    if (ok && none_has(&s, none))
        sl_log_warning("%s.%s: the shard key: %s. Documents without it are stored together, on few "
                       "shards",
                       target->database, target->collection, none);
    free(s.names);
    return ok;
}

bool sl_shard_key_check(sl_job *job, sl_error *error) {
    const sl_load_config *config = job->config;
    sampling s = {0};
    if (!config->shard_key_given || !config->shard_key)
        return true;
    if (job->keys && !sl_check_ids(config->shard_key, (const char *const *)job->keys->id.names,
                                   job->keys->id.count, &job->key_problem))
        return true;
    add_key_fields(&s, config, config->shard_key);
    char none[PROBLEM_ROOM];
    bool ok = s.count == 0 || look_for_fields(job, &s, error), lacks = ok && none_has(&s, none);
    if (lacks && s.cut)
        sl_log_warning("--shard-key: %s", none);
    else if (lacks)
        sl_error_set(&job->key_problem, SL_EXIT_USAGE,
                     "--shard-key: %s. If the name is right and the field is rare, create and "
                     "shard the collection beforehand",
                     none);
    free(s.names);
    return ok;
}

bool sl_declared_look(sl_job *job, sl_error *error) {
    sampling s = {0};
    char none[PROBLEM_ROOM];
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_format *format = job->sources[i].skipped ? NULL : job->sources[i].format;
        if (format && !format->declared) /* a table, which has all columns of --types */
            return true;
        if (format)
            s.declared = format->declared(sl_sources_plan(job, format));
    }
    for (; s.declared && s.count < s.declared->count; s.count++)
        s.fields[s.count] = s.declared->columns[s.count].name;
    bool ok = s.count == 0 || look_for_fields(job, &s, error);
    for (size_t i = 0; i < s.count; i++)
        s.found[i] = atomic_load(&s.declared->found[i]); /* also by records that were rejected */
    if (ok && none_has(&s, none))
        sl_log_warning("--types: %s. Its texts stay texts", none);
    free(s.names);
    return ok;
}

/* ---- the types of fields in documents ---- */

#define FIELDS_NOTED 1000u /* fields with different names that are noted */
#define FIELDS_READ 2000u  /* fields of one document that are read */
#define FIELD_LEVELS 4u
#define ELEMENTS_READ 8u /* of an array */
#define LOOKED_AT 1000u  /* documents of a block */

#define UUID 30 /* binary data of this subtype; not a type of BSON */

const struct sl_field_kind sl_field_kinds[SL_FIELD_KINDS] = {
    {"double", 1u << BSON_TYPE_DOUBLE, false},
    {"decimal128", 1u << BSON_TYPE_DECIMAL128, false},
    {"int", 1u << BSON_TYPE_INT32 | 1u << BSON_TYPE_INT64, false},
    {"date", 1u << BSON_TYPE_DATE_TIME, false},
    {"flag true false", 1u << BSON_TYPE_BOOL, false},
    {"text", 1u << BSON_TYPE_UTF8, false},
    {"objectid", 1u << BSON_TYPE_OID, true},
    {"json", 1u << BSON_TYPE_DOCUMENT | 1u << BSON_TYPE_ARRAY, true},
    {"uuid", 1u << UUID, true},
    {"hex", 1u << BSON_TYPE_BINARY, true},
};

static sl_typed_field *field_named(sl_typed_fields *fields, const char *name) {
    for (size_t i = 0; i < fields->count; i++) {
        size_t at = (fields->next + i) % fields->count;
        if (strcmp(fields->items[at].name, name) == 0) {
            fields->next = at + 1;
            return &fields->items[at];
        }
    }
    sl_typed_field *items = fields->count < FIELDS_NOTED ? sl_grow(fields->items, fields->count,
                                                                   &fields->room, sizeof *items)
                                                         : NULL;
    if (!items)
        return NULL;
    fields->items = items;
    sl_typed_field *field = &items[fields->count++];
    *field = (sl_typed_field){.types = 0};
    sl_print_text(field->name, sizeof field->name, "%s", name);
    return field;
}

static void write_example(const bson_iter_t *value, char out[SL_FIELD_EXAMPLE_ROOM]) {
    bson_t alone = BSON_INITIALIZER;
    char *json = bson_append_iter(&alone, "", 0, value) ? sl_document_json(&alone) : NULL;
    size_t length = json ? strlen(json) : 0;
    if (length > 9) /* { "" : 5 } */
        sl_text_printable((sl_text){json + 7, length - 9}, out, SL_FIELD_EXAMPLE_ROOM);
    bson_free(json);
    bson_destroy(&alone);
}

/* The type of BSON of a value, or UUID. */
static int type_of(const bson_iter_t *value) {
    bson_subtype_t subtype = BSON_SUBTYPE_BINARY;
    if (BSON_ITER_HOLDS_BINARY(value))
        bson_iter_binary(value, &subtype, NULL, NULL);
    return subtype == BSON_SUBTYPE_UUID ? UUID : (int)bson_iter_type(value);
}

/* Adds the fields at `at`, and those of embedded documents. Paths leave out the positions in
 * arrays, as those of queries do. */
static void add_fields(sl_typed_fields *fields, bson_iter_t *at, const char *before,
                       unsigned level) {
    const size_t ids = fields->ids ? fields->ids->count : 0;
    uint32_t inferred = 0, known = 0; /* bit sets of types */
    for (size_t i = 0; i < SL_FIELD_KINDS; i++) {
        known |= sl_field_kinds[i].bson_types;
        inferred |= sl_field_kinds[i].declared ? 0 : sl_field_kinds[i].bson_types;
    }
    while (fields->read < FIELDS_READ && bson_iter_next(at)) {
        char name[SL_FIELD_ROOM];
        bson_iter_t inner;
        fields->read++;
        const char *key = bson_iter_key(at), *dot = *before ? "." : "";
        const bool id = level == 0 && strcmp(key, "_id") == 0;
        const int type = type_of(at);
        if (id && ids == 1)
            key = fields->ids->names[0];
        if ((id && ids == 0) || strlen(before) + strlen(key) + 2 > sizeof name)
            continue;
        sl_print_text(name, sizeof name, "%s%s%s", before, dot, id && ids > 1 ? "" : key);
        if (type == BSON_TYPE_DOCUMENT && level + 1 < FIELD_LEVELS && bson_iter_recurse(at, &inner))
            add_fields(fields, &inner, name, level + 1);
        if (type == BSON_TYPE_ARRAY && level + 1 < FIELD_LEVELS && bson_iter_recurse(at, &inner)) {
            for (unsigned i = 0; i < ELEMENTS_READ && bson_iter_next(&inner); i++) {
                bson_iter_t element;
                if (BSON_ITER_HOLDS_DOCUMENT(&inner) && bson_iter_recurse(&inner, &element))
                    add_fields(fields, &element, name, level + 1);
            }
        }
        const uint32_t types = id ? inferred : known; /* decision.c compares the others of an _id */
        if (*name && type > 0 && type < 32 && types >> type & 1) {
            sl_typed_field *field = field_named(fields, name);
            if (field && field->types == 0)
                write_example(at, field->example);
            if (field)
                field->types |= 1u << type;
        }
    }
}

void sl_fields_add(sl_typed_fields *fields, const bson_t *document) {
    bson_iter_t at;
    fields->read = 0;
    if (bson_iter_init(&at, document))
        add_fields(fields, &at, fields->array ? fields->array : "", fields->array ? 1 : 0);
}

bool sl_fields_add_documents(void *context, const uint8_t *documents, const uint8_t *end,
                             uint32_t count) {
    uint32_t step = count / LOOKED_AT + 1, i = 0;
    for (const uint8_t *at = documents; at < end; at += sl_bson_length(at)) {
        bson_t document;
        if (i++ % step == 0 && bson_init_static(&document, at, sl_bson_length(at)))
            sl_fields_add(context, &document);
    }
    return true;
}
