/* SPDX-License-Identifier: Apache-2.0 */
/* The sample for inferred types, and the types of a job's sources; see types.h.
 *
 * The first SL_SNIFF_BYTES of every source are added when its format is recognised. Then the MiB
 * blocks of all plain files are numbered in one series, and one block is read from each of up to
 * PLAIN_BLOCKS equal stretches of it. Of a compressed file or an archive the first blocks are read;
 * of a pipe only the first bytes are known, since its text cannot be read twice. Failures to read
 * are ignored here; the load will report them. */
#include "types.h"
#include "document_sample.h"
#include "embed.h"
#include "sources.h"
#include "type_notes.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bson/bson_lookup.h"
#include "format/declared.h"
#include "format/delimited.h"
#include "format/key_fields.h"
#include "report/run_record.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/name_index.h"
#include "util/text.h"

#define PLAIN_BLOCKS UINT64_C(64)
#define SAMPLE_BYTES ((size_t)4 << 20) /* of all plain files */
#define PIECE_LEAST ((size_t)64 << 10) /* of a block that is read */
#define SEQUENTIAL_BLOCKS 4u           /* of one source; of an archive, blocks of several entries */
#define SEQUENTIAL_SOURCES 16u
#define ENTRIES_WARNED 3u

sl_plan *sl_types_plan(const sl_job *job) {
    sl_plan *plan = sl_sources_plan(job, &sl_format_delimited);
    return plan && plan->typing ? plan : NULL;
}

sl_typing_walk sl_types_columns(const sl_job *job) {
    const sl_plan *plan = sl_types_plan(job);
    return (sl_typing_walk){.typing = plan ? plan->typing : NULL};
}

static bool is_typed(const sl_job *job, const sl_job_source *source) {
    return source->format == &sl_format_delimited && sl_types_plan(job) != NULL;
}

/* The complete records at the beginning of a text at this offset, in at most `most` bytes; or only
 * the first record if it is longer. `whole`: a last record without line end is complete. */
static sl_text records_of(const sl_dialect *dialect, uint64_t offset, sl_text text, bool whole,
                          size_t most) {
    if (whole && text.length <= most)
        return text;
    if (dialect->quoted_lines) {
        size_t from = offset < dialect->body_offset ? (size_t)(dialect->body_offset - offset) : 0;
        return (sl_text){text.bytes, sl_quoted_records(dialect, text, from, whole, most)};
    }
    const char escape = dialect->bare_escape;
    size_t length = text.length < most ? text.length : most;
    while (length > 0 && (text.bytes[length - 1] != '\n' ||
                          (escape && sl_is_escaped(text.bytes, text.bytes + length - 1, escape))))
        length--;
    if (length == 0) {
        const char *stop = text.bytes + text.length,
                   *end = sl_find_bare(text.bytes, stop, '\n', escape);
        length = end < stop ? (size_t)(end - text.bytes) + 1 : whole ? text.length : 0;
    }
    return (sl_text){text.bytes, length};
}

/* Makes the column text if it has this name, and holds dates without loss. */
static bool keep_column(sl_schema_column *column, const char *name) {
    if (column->type != SL_TYPE_DATETIME || !column->lossless || strcmp(column->name, name) != 0)
        return false;
    column->type = SL_TYPE_TEXT;
    column->lossless = false;
    return column->cut = true;
}

/* Would dates of the column be cut? Values that are no dates, such as infinity, do not count. */
static bool is_cut(const sl_typed_column *column) {
    const sl_column_rest *rest = &column->rests[SL_REST_USUAL];
    return sl_column_guess_is_cut(rest->misfits ? &rest->guess : &column->guess);
}

/* Makes the columns text whose sample has dates that would be cut: in the schema of the plan, which
 * other sources and entries get, and in the sources so far. */
static bool keep_digits(const sl_job *job, sl_plan *plan, const sl_typed_layout *layout,
                        sl_error *error) {
    bool ok = true;
    for (size_t k = 0; ok && k < layout->count; k++) {
        const sl_typed_column *typed = &layout->columns[k];
        sl_schema *schema = plan->schemas[0];
        const bool cut = is_cut(typed);
        for (size_t i = 0; cut && i < schema->column_count; i++)
            keep_column(&schema->columns[i], typed->name);
        for (size_t s = 0; ok && cut && s < sl_source_set_count(job->set); s++) {
            sl_dialect *dialect = job->sources[s].dialect;
            bool changed = false;
            for (size_t i = 0; dialect && i < dialect->column_count; i++)
                changed |= keep_column(&dialect->columns[i].schema, typed->name);
            ok = !changed || sl_dialect_compile(dialect, plan->options.long_names, error);
        }
    }
    return ok;
}

/* Samples the beginning of a table whose types CREATE TABLE declares. */
static bool add_table(const sl_job *job, sl_job_source *source, sl_text lines, sl_error *error) {
    sl_plan *plan = sl_sources_plan(job, source->format);
    sl_typing *typing = NULL;
    bool ok = sl_typing_create(&typing, error) &&
              sl_typing_add(typing, plan, source->dialect, lines, 0, 0, error) &&
              keep_digits(job, plan, sl_typing_at(typing, 0), error);
    sl_typing_destroy(typing);
    return ok;
}

bool sl_types_add_head(const sl_job *job, sl_job_source *source, sl_text head, bool whole,
                       sl_error *error) {
    if (source->format != &sl_format_delimited)
        return true;
    sl_text lines = records_of(source->dialect, 0, head, whole, head.length);
    if (!is_typed(job, source)) {
        const char *name = sl_sources_plan(job, source->format)->options.schema_name;
        return !name || strcmp(name, SL_CREATE_TABLE) != 0 || add_table(job, source, lines, error);
    }
    sl_plan *plan = sl_types_plan(job);
    source->sampled = lines.length;
    return sl_typing_add(plan->typing, plan, source->dialect, lines,
                         (size_t)(source - job->sources), 0, error);
}

void sl_types_forget(const sl_job *job, const sl_job_source *source) {
    if (is_typed(job, source))
        sl_typing_forget(sl_types_plan(job)->typing, source->dialect);
}

/* Adds the beginning of a block, without the text that has been added as the head. */
static bool add_block(sl_job *job, const sl_dialect *dialect, const sl_source_block *block,
                      size_t most, sl_error *error) {
    sl_plan *plan = sl_types_plan(job);
    const sl_job_source *source = &job->sources[block->source];
    sl_text text = block->text;
    uint64_t offset = block->offset;
    if (block->last || block->entry_last)
        sl_sources_replace_end_mark(job, block->source, text);
    if (offset - source->sampled_from < source->sampled) {
        uint64_t skip = source->sampled - (offset - source->sampled_from);
        if (skip >= text.length)
            return true;
        text.bytes += skip;
        text.length -= (size_t)skip;
        offset += skip;
    }
    text = records_of(dialect, offset, text, true, most);
    if (!block->entry && !dialect->quoted_lines && dialect->quote && !dialect->stray_quotes)
        job->spans_lines =
            job->spans_lines || sl_record_spans_lines(text, dialect->delimiter, dialect->quote,
                                                      dialect->escape, dialect->column_count);
    return sl_typing_add(plan->typing, plan, dialect, text, block->source, offset, error);
}

/* ---- plain files ---- */

static uint64_t blocks_of(const sl_job *job, size_t index) {
    const sl_source *facts = sl_source_set_at(job->set, index);
    if (job->sources[index].skipped || !is_typed(job, &job->sources[index]) ||
        facts->kind != SL_SOURCE_PLAIN || facts->stored_bytes <= job->sources[index].sampled)
        return 0;
    return (facts->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
}

/* Reads block `index` of the series of all plain files' blocks. */
static bool add_plain(sl_job *job, sl_reader *reader, uint64_t index, size_t most,
                      sl_error *error) {
    size_t source = 0;
    for (uint64_t own; index >= (own = blocks_of(job, source)); source++)
        index -= own;
    sl_source_block block;
    sl_error ignored;
    if (sl_reader_next_of(reader, source, index, &block, &ignored) != SL_READ_BLOCK)
        return true;
    return add_block(job, job->sources[source].dialect, &block, most, error);
}

static bool sample_plain(sl_job *job, sl_reader *reader, sl_error *error) {
    uint64_t all = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++)
        all += blocks_of(job, i);
    uint64_t count = all < PLAIN_BLOCKS ? all : PLAIN_BLOCKS;
    size_t most = count > 0 ? SAMPLE_BYTES / (size_t)count : 0;
    if (most < PIECE_LEAST)
        most = PIECE_LEAST;
    bool ok = true;
    for (uint64_t i = 0; ok && i < count; i++)
        ok = add_plain(job, reader, sl_spread_block(i, count, all), most, error);
    return ok;
}

/* ---- sequential sources ---- */

/* Adds a block of an archive that begins an entry. Entries of other formats are ignored. */
static bool add_entry(sl_job *job, const sl_source_block *block, size_t most, sl_error *error) {
    sl_dialect *dialect;
    bool fits;
    sl_text head = {block->text.bytes, block->known_length};
    bool whole = block->known_to_end && head.length <= SL_SNIFF_BYTES;
    if (head.length > SL_SNIFF_BYTES)
        head.length = SL_SNIFF_BYTES;
    if (!sl_sources_read_text(job, &sl_format_delimited, block->source, block->entry, head, whole,
                              &dialect, &fits, error))
        return false;
    if (!fits)
        return true;
    sl_dialect_move(dialect, block->offset);
    bool ok = add_block(job, dialect, block, most, error);
    sl_format_delimited.dialect_destroy(dialect);
    return ok;
}

static bool add_sequential(sl_job *job, sl_reader *reader, size_t index, sl_error *error) {
    bool ok = true;
    sl_error ignored;
    sl_source_block block = {.last = false};
    for (unsigned i = 0; ok && i < SEQUENTIAL_BLOCKS && !block.last; i++) {
        if (sl_reader_next_of(reader, index, i, &block, &ignored) != SL_READ_BLOCK)
            break;
        sl_job_source *source = &job->sources[index];
        const bool decides = !block.entry || block.entry_number == source->deciding;
        if (decides && block.entry_start)
            source->sampled_from = block.offset;
        if (decides)
            ok = add_block(job, source->dialect, &block, block.text.length, error);
        else if (block.entry_start)
            ok = add_entry(job, &block, block.text.length, error);
    }
    return ok;
}

static bool sample_sequential(sl_job *job, sl_reader *reader, sl_error *error) {
    bool ok = true;
    unsigned sampled = 0;
    for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++) {
        sl_source_kind kind = sl_source_set_at(job->set, i)->kind;
        bool readable =
            kind == SL_SOURCE_GZIP || kind == SL_SOURCE_COMPRESSED || kind == SL_SOURCE_ARCHIVE;
        if (readable && !job->sources[i].skipped && is_typed(job, &job->sources[i]) &&
            sampled++ < SEQUENTIAL_SOURCES)
            ok = add_sequential(job, reader, i, error);
    }
    return ok;
}

/* ---- the types ---- */

bool sl_types_apply(const sl_job *job, sl_error *error) {
    const sl_plan *plan = sl_types_plan(job);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        sl_job_source *source = &job->sources[i];
        if (!source->skipped && is_typed(job, source) &&
            !sl_typing_apply(plan->typing, plan->options.long_names, source->dialect, NULL, error))
            return false;
    }
    return true;
}

bool sl_types_infer(sl_job *job, sl_error *error) {
    sl_plan *plan = sl_types_plan(job);
    sl_reader *reader = NULL;
    if (!plan)
        return true;
    job->spans_lines = false;
    bool ok = sl_reader_create(job->set, &reader, error) && sample_plain(job, reader, error) &&
              sample_sequential(job, reader, error);
    sl_reader_destroy(reader);
#ifdef __GLIBC__
    malloc_trim(0); /* the directory of a large zip file is read again by another thread */
#endif
    sl_source_set_reset_consumed(job->set);
    if (ok && (job->again = sl_sources_again(job, plan)) != NULL) /* by the caller */
        return true;
    if (ok)
        sl_typing_decide(plan->typing);
    return ok && sl_types_apply(job, error);
}

bool sl_types_apply_to_entry(sl_job *job, const sl_source_block *block, sl_dialect *dialect,
                             sl_error *error) {
    if (!is_typed(job, &job->sources[block->source]))
        return true;
    const sl_plan *plan = sl_types_plan(job);
    bool known;
    if (!sl_typing_apply(plan->typing, plan->options.long_names, dialect, &known, error))
        return false;
    if (!known) {
        pthread_mutex_lock(&job->entries_lock);
        bool warn = job->untyped_entries++ < ENTRIES_WARNED;
        pthread_mutex_unlock(&job->entries_lock);
        if (warn)
            sl_log_warning("%s: %s: its columns that were not in the sample that types are "
                           "inferred from are loaded as text (see --schema, --types)",
                           sl_source_set_at(job->set, block->source)->shown, block->entry);
    }
    return true;
}

/* ---- the types of the collection ----
 *
 * The registry lists the columns that loads of delimited text have stored, with their types. A load
 * that infers types takes these types, so that a column is stored in one way, whatever the values
 * of a single file look like. A load with declared types is not compared: a column to which it
 * gives a type of another kind is listed with both, and from then on each load has to declare it.
 *
 * Columns that the registry does not list may have been stored by another program, or from JSON.
 * Their types are those of a sample of the stored documents, and are then added to the registry.
 *
 * Several loads may begin at the same time. The list is replaced only if it is still the one that
 * was read, so of two loads with different types the second one reads those of the first. */

#define REFUSED_SHOWN 5u

typedef struct known_type {
    const char *column, *type; /* borrowed */
    size_t order;
    bool sampled; /* not in the list */
    bool missed;  /* another load has already been without the column */
    bool present; /* a source of this load has the column, perhaps by another name in the header */
} known_type;

typedef struct known_types {
    bson_t list; /* of the registry */
    sl_typed_fields stored;
    known_type *items; /* by column, then in the order of the list */
    size_t count;
    const char **names; /* of the items, by name without regard to case; NULL: not yet needed */
} known_types;

static int by_column(const void *a, const void *b) {
    const known_type *x = a, *y = b;
    int order = strcmp(x->column, y->column);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void known_clear(known_types *known) {
    bson_destroy(&known->list);
    free(known->stored.items);
    free(known->items);
    free(known->names);
}

static int by_name_ignoring_case(const void *a, const void *b) {
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* A field of the documents with the name of the column in another case; NULL: there is none. */
static const char *name_in_other_case(known_types *known, const char *column) {
    if (!known->names && (known->names = calloc(known->count + 1, sizeof *known->names)) != NULL) {
        for (size_t i = 0; i < known->count; i++)
            known->names[i] = known->items[i].column;
        qsort(known->names, known->count, sizeof *known->names, by_name_ignoring_case);
    }
    const char **found = known->names ? bsearch(&column, known->names, known->count,
                                                sizeof *known->names, by_name_ignoring_case)
                                      : NULL;
    return found ? *found : NULL;
}

/* The types of a column; `*count` is their number. */
static known_type *known_of(const known_types *known, const char *column, size_t *count) {
    size_t low = 0, high = known->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(known->items[middle].column, column) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < known->count; ++*count) {
        if (strcmp(known->items[low + *count].column, column) != 0)
            break;
    }
    return known->count > 0 ? known->items + low : NULL;
}

/* Adds the documents of a reply, and destroys it. Returns their number. */
static size_t add_reply(sl_typed_fields *fields, bool ok, bson_t *reply) {
    bson_t documents;
    size_t count = 0;
    if (ok && sl_look_inside(reply, "cursor.firstBatch", &documents)) {
        for (sl_walk walk = sl_walk_of(&documents); sl_walk_next(&walk); count++)
            sl_fields_add(fields, &walk.item);
    }
    bson_destroy(reply);
    return count;
}

#define LOOKED_FOR 200u /* columns */

/* Appends conditions for columns with values that are not listed, and that no document seen has.
 * Returns their number. */
static size_t append_unseen(const sl_job *job, const known_types *known, bson_t *conditions) {
    const sl_typed_fields *seen = &known->stored;
    sl_typing_walk walk = sl_types_columns(job);
    bson_t item, exists;
    size_t count = 0;
    for (const sl_typed_column *column;
         count < LOOKED_FOR && (column = sl_typing_next(&walk)) != NULL;) {
        const char *name = column->path;
        bool found = !*name || *name == '$' || strlen(name) >= SL_FIELD_ROOM ||
                     column->guess.values == 0 || sl_registry_lists(&known->list, name);
        for (size_t f = 0; f < seen->count && !found; f++)
            found = strcmp(seen->items[f].name, name) == 0;
        if (found)
            continue;
        sl_record_begin_item(conditions, count++, &item);
        BSON_APPEND_DOCUMENT_BEGIN(&item, name, &exists);
        BSON_APPEND_BOOL(&exists, "$exists", true);
        bson_append_document_end(&item, &exists);
        bson_append_document_end(conditions, &item);
    }
    return count;
}

#define ROUNDS 4u

/* Adds the types of stored documents, in columns that are not listed. Of columns that few documents
 * have, documents with them are looked for. */
static void known_sample(const sl_job *job, const sl_destination *destination, known_types *known) {
    sl_typed_fields *stored = &known->stored;
    bson_t reply;
    sl_error ignored = {0};
    stored->ids = job->keys ? &job->keys->id : NULL;
    bool ok = sl_documents_sample(destination->connection, &destination->target, &reply, &ignored);
    size_t count = add_reply(stored, ok, &reply), left = SIZE_MAX, before = SIZE_MAX;
    for (unsigned round = 0; round < ROUNDS && count >= SL_SAMPLE_DOCUMENTS; round++) {
        bson_t conditions = BSON_INITIALIZER;
        before = left;
        left = append_unseen(job, known, &conditions);
        if (left > 0 && left < before) {
            ok = sl_documents_having(destination->connection, &destination->target, &conditions,
                                     &reply, &ignored);
            add_reply(stored, ok, &reply);
        } else {
            count = 0;
        }
        bson_destroy(&conditions);
    }
}

/* Reads the types that the registry lists; with `sampled` also those of other columns. Clear it in
 * any case. */
static bool known_read(const sl_job *job, const sl_destination *destination, bool sampled,
                       known_types *known, sl_error *error) {
    *known = (known_types){.count = 0};
    if (!sl_registry_list(destination->registry, SL_REGISTRY_COLUMNS, &known->list, NULL, error))
        return false;
    if (sampled)
        known_sample(job, destination, known);
    const sl_typed_fields *stored = &known->stored;
    size_t room = bson_count_keys(&known->list) + stored->count * SL_FIELD_KINDS, listed, all = 0;
    known->items = calloc(room + 1, sizeof *known->items);
    if (!known->items)
        return sl_error_memory(error, "reading the types of the collection");
    for (sl_walk walk = sl_walk_of(&known->list); sl_walk_next(&walk); all++)
        known->items[all] = (known_type){.column = sl_look_string(&walk.item, "column"),
                                         .type = sl_look_string(&walk.item, "type"),
                                         .order = all,
                                         .missed = sl_look_flag(&walk.item, "missed")};
    known->count = all;
    qsort(known->items, known->count, sizeof *known->items, by_column);
    for (size_t i = 0; i < stored->count; i++) {
        known_of(known, stored->items[i].name, &listed);
        for (size_t k = 0; listed == 0 && k < SL_FIELD_KINDS; k++) {
            if (stored->items[i].types & sl_field_kinds[k].bson_types) {
                const bool wide = stored->items[i].types == 1u << BSON_TYPE_INT64;
                known->items[all] = (known_type){.column = stored->items[i].name,
                                                 .type = wide ? "int64" : sl_field_kinds[k].type,
                                                 .order = all,
                                                 .sampled = true};
                all++;
            }
        }
    }
    known->count = all;
    qsort(known->items, known->count, sizeof *known->items, by_column);
    return true;
}

/* Are all types of one kind? */
static bool one_kind(const known_type *types, size_t count) {
    sl_schema_column first = {0}, other = {0};
    for (size_t i = 0; i < count; i++) {
        sl_column_type_read(types[i].type, i == 0 ? &first : &other);
        if (i > 0 && !sl_column_same_kind(&first, &other))
            return false;
    }
    return true;
}

/* Is it a type that texts have only by declaration, such as objectid (but for ObjectId(...))? */
static bool is_only_declared(const sl_schema_column *type) {
    return type->type != SL_TYPE_TEXT &&
           (type->type == SL_TYPE_OBJECT_ID ||
            !(sl_column_types[type->type].infer || sl_column_class(type) == SL_CLASS_NUMBERS));
}

/* Can a value have a form of both types, and mean another date or number in each? */
static bool contradict(const sl_schema_column *a, const sl_schema_column *b) {
    const char *one = a->format ? a->format : "1234.5", *two = b->format ? b->format : "1234.5";
    if (sl_column_class(a) == SL_CLASS_NUMBERS) /* what separates the fraction? */
        return one[strlen(one) - 2] != two[strlen(two) - 2];
    return sl_column_class(a) == SL_CLASS_DATES && a->format && b->format && strcmp(one, two) != 0;
}

/* Is it a type of numbers with a decimal mark? */
static bool has_decimal_mark(const sl_schema_column *type) {
    return type->type == SL_TYPE_DOUBLE || type->type == SL_TYPE_DECIMAL ||
           (type->format && sl_column_class(type) == SL_CLASS_NUMBERS);
}

/* Are the values numbers, in a form that the column itself proves? Points between commas are
 * decimal points; between other delimiters, points before three digits may separate groups. */
static bool proves_form(const sl_typed_column *column) {
    return has_decimal_mark(&column->schema) &&
           (column->written == SL_BETWEEN_COMMAS ||
            !sl_column_guess_is_grouped(&column->guess, false));
}

/* Can the values be read with a decimal point and with a decimal comma, and has the collection
 * numbers that were read in another way than these, or in both ways? */
static bool is_doubtful(const known_type *types, size_t count, const sl_typed_column *column) {
    sl_column_guess guess = column->guess;
    sl_schema_column readings[SL_READINGS], read[2] = {{0}, {0}};
    size_t marked = 0;
    bool both = false;
    const bool inferred = has_decimal_mark(&column->schema);
    if (inferred && !sl_column_guess_is_grouped(&guess, false))
        return false;
    if (inferred)
        guess.kinds = 0;
    if (sl_column_guess_readings(&guess, readings) < 2 ||
        sl_column_class(&readings[0]) != SL_CLASS_NUMBERS ||
        !contradict(&readings[0], &readings[1]))
        return false;
    for (size_t i = 0; i < count; i++) {
        sl_column_type_read(types[i].type, &read[marked > 0]);
        if (types[i].sampled || !has_decimal_mark(&read[marked > 0]))
            continue;
        both = both || (marked > 0 && contradict(&read[0], &read[1])) ||
               (inferred && contradict(&column->schema, &read[marked > 0]));
        marked++;
    }
    return both;
}

/* Finds the type, of those that the collection has, which stores the sampled values without loss;
 * otherwise one of the same kind as the inferred type, which is then kept. False if there is none.
 * A form of numbers that the file proves is kept. Of an unlisted column the inferred type is kept
 * before, because another program stores 1 and 1.5, unless all its numbers have one wider type; and
 * a type that is only declared is not used. None, too, if two types read the values differently,
 * but when the load is compared: it took the first one, the only one then. */
static bool choose(const known_type *types, size_t count, const sl_typed_column *column,
                   bool comparing, sl_schema_column *chosen) {
    const bool empty = column->guess.values == 0, proven = !empty && proves_form(column);
    bool same = empty, found = false;
    *chosen = column->schema;
    if (!empty && !comparing && !proven && is_doubtful(types, count, column))
        return false;
    for (size_t i = 0; i < count; i++) {
        sl_schema_column type = {0};
        bool read = sl_column_type_read(types[i].type, &type);
        if (type.type == SL_TYPE_DECIMAL && (!type.format || proven))
            type.format = column->schema.format; /* of numbers, if the values are decimals */
        if (types[i].sampled && is_only_declared(&type) && type.type != column->schema.type)
            continue;
        const bool widens = count == 1 && column->schema.type == SL_TYPE_INT;
        if (widens && types[i].sampled)
            type.format = column->schema.format;
        bool keep =
            types[i].sampled && !empty && !widens && sl_column_same_kind(&type, &column->schema);
        bool fits = read && !keep && !(proven && contradict(&column->schema, &type)) &&
                    sl_column_guess_fits(&column->guess, &type);
        bool doubtful = sl_column_class(&column->schema) == SL_CLASS_TEXT ||
                        sl_column_guess_is_grouped(&column->guess, false);
        if (fits && found && doubtful && !empty && !comparing && contradict(chosen, &type))
            return false;
        if (fits && !found) {
            *chosen = type;
            sl_column_guess_group(&column->guess, chosen);
        }
        found = found || fits;
        same = same || sl_column_same_kind(&type, &column->schema);
    }
    return found || same;
}

/* Finds the type of a load that is compared: the only one that the registry lists, although the
 * values would be of another kind by inference, because the load declared it. */
static bool choose_declared(const sl_job *job, const known_type *types, size_t count,
                            const sl_typed_column *column, sl_schema_column *chosen) {
    sl_typing_walk walk = sl_types_columns(job);
    const sl_typed_column *one;
    sl_schema_column type = {0};
    const bool read = sl_column_type_read(types[0].type, &type);
    char named[SL_FIELD_ROOM + SL_TYPE_ROOM], word[SL_WORD_ROOM(sizeof named)];
    if (count != 1 || types[0].sampled ||
        (read && (sl_column_guess_fits(&column->guess, &type) ||
                  sl_column_same_kind(&type, &column->schema))))
        return false;
    if (!read && (type.type == SL_TYPE_TEXT || strpbrk(types[0].type, " :"))) {
        while ((one = sl_typing_next(&walk)) != NULL && one != column)
            ;
        if (one && sl_declaration_write("", column->name, types[0].type, type.type, named,
                                        sizeof named)) /* the first layout with the column */
            sl_log_warning("column %s: a load declared the type %s; to compare its values, give "
                           "--types %s",
                           column->name, types[0].type, sl_shell_word(named, word, sizeof word));
        return false;
    }
    type.lossless = false;
    type.zone = SL_CHOICE_UNSET;
    if (sl_column_types[type.type].any_text)
        type.missing.count = 0;
    *chosen = type;
    return true;
}

typedef struct refusal {
    char shown[1500];
    size_t used, count;
    sl_column_names cases; /* columns with the names of fields in another case */
    bool sampled;          /* another program has stored a column */
    char types[400]; /* NAME=TYPE,... of columns with one stored type, if only some values do not
                        fit it, it is never inferred, or the column is a key of numbers */
    char own[400];   /* the same, of all columns but keys with their types in this load */
    size_t keys;     /* columns that identify documents */
} refusal;

static void write_stored(const known_type *types, size_t count, char *out, size_t room) {
    for (size_t i = 0, used = 0; i < count; i++)
        used += sl_print_text(out + used, room - used, "%s%s", i ? " and " : "", types[i].type);
}

/* Adds a column to the refusal: its types in the collection and in this load, with a value. */
static void refuse_column(const sl_job *job, const sl_typed_layout *layout,
                          const sl_typed_column *column, const known_type *types, size_t count,
                          refusal *refused) {
    char name[200], here[SL_TYPE_ROOM], stored[200] = "", readings[400];
    char named[SL_FIELD_ROOM + SL_TYPE_ROOM], word[SL_WORD_ROOM(sizeof named)];
    const char *source = "";
    sl_schema_column only = {0};
    const bool usual = sl_column_type_read(types[0].type, &only);
    refused->sampled = refused->sampled || types[0].sampled;
    const bool decimal = only.type == SL_TYPE_DECIMAL && one_kind(types, count);
    sl_schema_column own = column->schema;
    if (decimal && sl_column_class(&own) == SL_CLASS_NUMBERS)
        own.type = SL_TYPE_DECIMAL;
    const bool key = job->keys && (sl_key_names_have(&job->keys->id, column->path) ||
                                   sl_key_names_have(&job->keys->match, column->path));
    const bool reads =
        usual && !column->guess.unnumbered && sl_column_types[only.type].class == SL_CLASS_NUMBERS;
    if (count == 1 && (is_only_declared(&only) || (key && reads) ||
                       (column->rest && sl_column_same_kind(&column->type_of_rest, &only))))
        sl_type_declare(column->name, &only, refused->types);
    refused->keys += key;
    if (!key) /* the same key, with another type, would be another key */
        sl_type_declare(column->name, &own, refused->own);
    if (job->config->divided) /* --types is for the documents */
        refused->types[0] = refused->own[0] = '\0';
    if (refused->count++ >= REFUSED_SHOWN)
        return;
    for (size_t i = sl_source_set_count(job->set); i-- > 0;) {
        const sl_job_source *one = &job->sources[i];
        if (!one->skipped && is_typed(job, one) &&
            sl_typing_layout_of(sl_types_plan(job)->typing, one->dialect) == layout)
            source = sl_source_set_at(job->set, i)->shown;
    }
    write_stored(types, count, stored, sizeof stored);
    sl_text_printable(sl_text_of(column->path), name, sizeof name);
    sl_type_write_readings(column, decimal, readings, sizeof readings);
    if (job->config->divided)
        *readings = '\0';
    else if (count == 1 && only.type == SL_TYPE_FLAG && column->schema.type == SL_TYPE_TEXT) {
        if (sl_declaration_write("", column->name, usual ? "flag YES NO" : stored, SL_TYPE_FLAG,
                                 named, sizeof named))
            sl_print_text(readings, sizeof readings, "--types %s%s",
                          sl_shell_word(named, word, sizeof word),
                          usual ? " with the words for true and false" : "");
    }
    refused->used += sl_print_text(
        refused->shown + refused->used, sizeof refused->shown - refused->used,
        "\n  %s%scolumn %s: %s in the collection, %s here, as \"%s\"" SL_LINES "%s", source,
        source[0] ? ": " : "", name, stored, sl_column_type_write(&column->schema, here),
        column->guess.example, *readings ? "; choose " : "", readings);
}

/* Adds a column that the collection does not have, if a field of its documents has the name in
 * another case. A load that deletes only reads the fields that match. */
static void refuse_case(const sl_job *job, known_types *known, const sl_typed_layout *layout,
                        const char *column, refusal *refused) {
    const sl_key_fields *keys = job->keys;
    const bool stored =
        !sl_load_mode(job->config)->removes && !(keys && sl_key_names_have(&keys->id, column));
    const bool matched = keys && sl_key_names_have(&keys->match, column);
    const char *name = stored || matched ? name_in_other_case(known, column) : NULL;
    for (size_t i = 0; name && i < layout->count; i++) /* the table itself has both columns */
        name = strcmp(layout->columns[i].path, name) == 0 ? NULL : name;
    if (name)
        sl_column_names_add_as(&refused->cases, column, name);
}

static bool refuse_types(const sl_job *job, const sl_destination *destination,
                         const refusal *refused, sl_error *error) {
    const sl_target *target = &destination->target;
    const char *embed = job->config->divided ? "embed-" : "";
    char word[SL_WORD_ROOM(sizeof refused->types)], own[sizeof word];
    if (refused->cases.count > 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "fields of the documents in %s.%s have the names of these columns in another case, so "
            "they would be two fields: %s. Name the columns as the documents do: " SL_RENAMING,
            target->database, target->collection, refused->cases.shown, embed);
    if (refused->keys == refused->count)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "the types of these columns differ from those of the documents in %s.%s:" SL_LINES
            "\nA key of another type is another key: %s%s%s",
            target->database, target->collection, refused->shown,
            refused->types[0] ? "declare it: --types "
                              : "export the values in the stored form, or name other columns",
            refused->types[0] ? sl_shell_word(refused->types, word, sizeof word) : "",
            refused->types[0] ? " (values that it cannot read are then rejected)" : "");
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "the types of these columns differ from those of the documents in %s.%s:" SL_LINES SL_LINES
        "\nFor one type in all documents, %s%s%sload %sinto another collection. To store both, "
        "%s%s%sdeclare types with --%sschema FILE (inspect --write-schema FILE writes one), or "
        "load "
        "all columns as text with --types text",
        target->database, target->collection, refused->shown,
        refused->count > REFUSED_SHOWN ? "\n  ..." : "",
        refused->types[0] ? "declare those of the collection: --types " : "",
        refused->types[0] ? sl_shell_word(refused->types, word, sizeof word) : "",
        refused->types[0] ? " (other values are then rejected); or " : "",
        refused->sampled ? "" : "all files by one command with --drop, or ",
        refused->own[0] ? "give --types " : "",
        refused->own[0] ? sl_shell_word(refused->own, own, sizeof own) : "",
        refused->own[0] ? ", " : "", embed);
}

/* Is it a column of --on? The records to embed have been divided by the inferred type of it. */
static bool is_joined(const sl_job *job, const char *name) {
    const sl_embed *embed = job->embed;
    return embed && sl_is_listed(name, embed->join.documents, embed->join.count);
}

/* Is it a column of the key of records to embed, which are stored without it? */
static bool is_left_out(const sl_job *job, const char *path) {
    const sl_divided *to = job->config->divided;
    return to && sl_is_listed(path + strlen(to->field) + 1, to->keys, to->key_count);
}

/* Reports a form of numbers that no earlier load had, if the earlier ones read values such as
 * 12.500 differently: one of the two may be wrong. */
static void show_other_form(const char *name, const known_type *types, size_t count,
                            const sl_schema_column *chosen) {
    char is[SL_TYPE_ROOM], stored[200];
    bool differs = false, known = false;
    sl_column_type_write(chosen, is);
    for (size_t i = 0; i < count; i++) {
        sl_schema_column type = {0};
        known = known || strcmp(types[i].type, is) == 0;
        differs = differs || (!types[i].sampled && sl_column_type_read(types[i].type, &type) &&
                              has_decimal_mark(&type) && contradict(chosen, &type));
    }
    if (!differs || known || !has_decimal_mark(chosen))
        return;
    write_stored(types, count, stored, sizeof stored);
    sl_log_info(
        "column %s: %s here, %s in earlier loads: each file is read in its own form. Only if "
        "one was read in the wrong form, of values such as 12.500, are stored numbers "
        "wrong; then load all files by one command with --drop",
        name, is, stored);
}

/* Gives a column the type that the collection has, if it has one. */
static void adopt_column(const sl_job *job, known_types *known, sl_typed_layout *layout,
                         size_t index, bool comparing, refusal *refused) {
    sl_typed_column *column = &layout->columns[index];
    sl_schema_column chosen;
    size_t count;
    const known_type *types = known_of(known, column->path, &count);
    if (is_left_out(job, column->path))
        return;
    if (count == 0 && known->count > 0 && column->guess.values > 0 && !comparing &&
        !column->schema.declared &&
        sl_typing_at(sl_types_plan(job)->typing, column->first) == layout)
        refuse_case(job, known, layout, column->path, refused);
    if (count == 0 || column->schema.declared ||
        (column->guess.values == 0 && !one_kind(types, count)))
        return;
    bool fits = (comparing && choose_declared(job, types, count, column, &chosen)) ||
                choose(types, count, column, comparing, &chosen);
    bool other = fits && (!sl_column_same_kind(&chosen, &column->schema) ||
                          (chosen.type != column->schema.type &&
                           (types[0].sampled || chosen.type == SL_TYPE_INT64)));
    if (!fits && !comparing && has_decimal_mark(&column->schema) &&
        is_doubtful(types, count, column)) {
        column->guess.kinds = 0; /* so both readings are shown */
        sl_column_guess_decide(&column->guess, &column->schema);
    }
    if (!comparing &&
        (!fits || !one_kind(types, count) || (other && is_joined(job, column->name)))) {
        refuse_column(job, layout, column, types, count, refused);
    } else if (fits) {
        char name[200], was[SL_TYPE_ROOM], is[SL_TYPE_ROOM];
        sl_text_printable(sl_text_of(column->path), name, sizeof name);
        if (other && column->guess.values > 0 && !column->element)
            sl_log_info("column %s: %s, as in the collection; of this load's values alone it would "
                        "be %s",
                        name, sl_column_type_write(&chosen, is),
                        sl_column_type_write(&column->schema, was));
        if (!comparing && column->guess.values > 0 && !column->element &&
            sl_typing_at(sl_types_plan(job)->typing, column->first) == layout)
            show_other_form(name, types, count, &chosen);
        sl_column_type_write(&chosen, is);
        chosen.adopted = strcmp(is, sl_column_type_write(&column->schema, was)) != 0;
        column->schema = chosen;
        column->rest = NULL;
        column->padded = false;
        column->stored = true;
    }
}

bool sl_types_adopt(sl_job *job, const sl_destination *destination, bool comparing,
                    sl_error *error) {
    const sl_plan *plan = sl_types_plan(job);
    refusal refused = {.count = 0};
    known_types known = {.list = BSON_INITIALIZER};
    bool exists;
    if (!plan || (job->config->part_of_trial && !job->config->divided))
        return true;
    bool ok = sl_target_exists(destination->connection, &destination->target, &exists, error) &&
              (!exists || known_read(job, destination, !comparing, &known, error));
    for (size_t k = 0; ok && k < sl_typing_count(plan->typing); k++) {
        sl_typed_layout *layout = sl_typing_at(plan->typing, k);
        for (size_t i = 0; i < layout->count; i++)
            adopt_column(job, &known, layout, i, comparing, &refused);
    }
    known_clear(&known);
    return ok &&
           (refused.count + refused.cases.count == 0 ||
            refuse_types(job, destination, &refused, error)) &&
           sl_types_apply(job, error);
}

/* The list that is made of the known one. */
typedef struct recording {
    const known_types *known;
    known_type *added;
    size_t added_count, room;
    sl_name_index index;    /* of `added`, by column */
    sl_column_names second; /* columns of which stored documents have another type */
    bool declared, contradicts, no_memory;
} recording;

/* The next added type of the column, from place *at on, which begins as the hash; NULL: no other
 * one. */
static const known_type *next_added(const recording *r, const char *column, uint64_t *at) {
    for (size_t i; (i = sl_name_index_next(&r->index, at)) != SIZE_MAX;) {
        if (strcmp(r->added[i].column, column) == 0)
            return &r->added[i];
    }
    return NULL;
}

/* Makes room for one more type. */
static bool make_room(recording *r) {
    known_type *added = sl_grow(r->added, r->added_count, &r->room, sizeof *r->added);
    r->added = added ? added : r->added;
    if (!added || !sl_name_index_is_full(&r->index))
        return added != NULL;
    if (!sl_name_index_reset(&r->index, r->added_count))
        return false;
    for (size_t i = 0; i < r->added_count; i++)
        sl_name_index_add(&r->index, sl_process_hash(added[i].column), i);
    return true;
}

static void add_recorded(recording *r, const char *name, const char *type) {
    if (make_room(r)) {
        known_type *added = &r->added[r->added_count];
        *added = (known_type){.column = strdup(name), .type = strdup(type)};
        if (added->column && added->type) {
            sl_name_index_add(&r->index, sl_process_hash(name), r->added_count++);
            return;
        }
        free((char *)added->column);
        free((char *)added->type);
    }
    r->no_memory = true;
}

static void record_column(recording *r, const char *name, const sl_schema_column *schema) {
    char type[SL_TYPE_ROOM];
    size_t count;
    known_type *types = known_of(r->known, name, &count);
    uint64_t at = sl_process_hash(name);
    bool found = next_added(r, name, &at) != NULL; /* in another source */
    for (size_t i = 0; i < count; i++) {
        sl_schema_column other = {0};
        types[i].present = true;
        sl_column_type_read(types[i].type, &other);
        if (types[i].sampled && !found && !sl_column_same_kind(schema, &other))
            add_recorded(r, name, types[i].type); /* of the same kind: as this load stores it */
    }
    bool alike = found = false;
    const bool declared = r->declared || schema->declared;
    if (declared && schema->type == SL_TYPE_TEXT)
        strcpy(type, sl_column_types[SL_TYPE_TEXT].word);
    else if (!declared && sl_column_class(schema) == SL_CLASS_EMPTY)
        return; /* it has no type yet */
    else
        sl_column_type_write(schema, type);
    at = sl_process_hash(name);
    const known_type *one = count > 0 ? types : next_added(r, name, &at);
    for (size_t i = 1; one && !found; i++) {
        sl_schema_column other = {0};
        sl_column_type_read(one->type, &other);
        found = sl_column_same_kind(schema, &other);
        alike = alike || found;
        r->contradicts = r->contradicts || (!found && !declared && !one->sampled);
        found =
            found && !one->sampled && (!contradict(schema, &other) || strcmp(one->type, type) == 0);
        one = i < count ? &types[i] : next_added(r, name, &at);
    }
    if (count > 0 && declared && !alike)
        sl_column_names_add(&r->second, name);
    if (!found)
        add_recorded(r, name, type);
}

static void record_columns(const sl_job *job, recording *r) {
    sl_typing_walk walk = sl_types_columns(job);
    r->declared = !walk.typing;
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;)
        if (!is_left_out(job, column->path))
            record_column(r, column->path, &column->schema);
    for (size_t i = 0; r->declared && i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        if (source->skipped || source->format != &sl_format_delimited)
            continue;
        for (size_t k = 0; k < source->dialect->column_count; k++) {
            const sl_bound_column *column = &source->dialect->columns[k];
            const char *array = job->config->format_options.array;
            char key[1000], path[1000], first[1000];
            snprintf(key, sizeof key - 4, "%s%s%s", array ? array : "", array ? "." : "",
                     column->repaired && !array ? column->published : column->key);
            const bool element = !column->repaired && sl_nesting_is_element(key, path, first);
            if (!array || !is_left_out(job, key))
                record_column(r, element ? path : key, &column->schema);
        }
    }
    if (job->embed)
        record_columns(&job->embed->records, r);
}

#define REPAIRED_SHOWN 4u

/* Is it the only column of an embedded document, whose dot may be no path but an abbreviation, as
 * in Geb.Datum? */
static bool is_nested_alone(const sl_dialect *d, size_t index) {
    const char *key = d->columns[index].key;
    const size_t length = strcspn(key, ".[");
    bool alone = d->nesting && !d->columns[index].repaired && key[length] == '.';
    for (size_t i = 0; i < d->column_count && alone; i++)
        alone = i == index || strncmp(d->columns[i].key, key, length + 1) != 0;
    return alone;
}

/* Writes the columns that are stored under other names: `nested` alone in an embedded document, or
 * repaired because no query could reach theirs. Not those that the collection has already. Returns
 * their number. */
static size_t write_renamed(const sl_dialect *d, bool nested, const known_types *known, char *out,
                            size_t room) {
    size_t used = 0, count = 0, types;
    *out = '\0';
    for (size_t i = 0; i < d->column_count; i++) {
        const sl_bound_column *column = &d->columns[i];
        char published[60], key[60];
        known_of(known, column->published, &types);
        if (!(nested ? is_nested_alone(d, i) : column->repaired != NULL) || types > 0 ||
            count++ >= REPAIRED_SHOWN)
            continue;
        sl_text_printable(sl_text_of(column->published), published, sizeof published);
        sl_text_printable(sl_text_of(column->key), key, sizeof key);
        const char *point = nested ? strchr(key, '.') : NULL;
        used += point ? sl_print_text(out + used, room - used, "%s\"%s\" as {%.*s: {%s: ...}}",
                                      used > 0 ? ", " : "", published, (int)(point - key), key,
                                      point + 1)
                      : sl_print_text(out + used, room - used, "%s\"%s\" as \"%s\"",
                                      used > 0 ? ", " : "", published, key);
    }
    return count;
}

/* Reports such columns of each set of columns. `known` may be NULL. */
static void log_renamed(const sl_job *job, const known_types *known) {
    static const known_types none = {.count = 0};
    char list[400], last[2][400] = {"", ""};
    for (size_t k = 0; k < 2 * sl_source_set_count(job->set); k++) {
        const sl_job_source *source = &job->sources[k / 2];
        const bool nested = k % 2;
        size_t count =
            source->skipped || source->format != &sl_format_delimited
                ? 0
                : write_renamed(source->dialect, nested, known ? known : &none, list, sizeof list);
        if (count == 0 || strcmp(list, last[nested]) == 0)
            continue;
        sl_log_warning(
            "%s: %s stored %s: %s%s", sl_source_set_at(job->set, k / 2)->shown,
            sl_plural(count, "column[s] [is|are]"),
            nested
                ? "in an embedded document, because the name has a dot"
                : "under another name, without dots, $ and line breaks, because no query or index "
                  "could reach it",
            list, count > REPAIRED_SHOWN ? " ..." : "");
        strcpy(last[nested], list);
    }
}

/* The next letter of a name, 0 at its end. Dots that are not stored (sl_bound_column.repaired) are
 * skipped; unless `exact`, no-break spaces too, and a letter with an accent is two letters, as it
 * may be written: the second one is 1, whatever the accent. */
static unsigned next_letter(const char **at, bool *accent, bool exact) {
    static const char letters[] = /* without accents, of U+00C0 to U+017F */
        "AAAAAA.CEEEEIIII.NOOOOO..UUUUY..aaaaaa.ceeeeiiii.nooooo..uuuuy.y"
        "AaAaAaCcCcCcCcDd..EeEeEeEeEeGgGgGgGgHh..IiIiIiIiI...JjKk.LlLlLl."
        "...NnNnNn...OoOoOo..RrRrRrSsSsSsSsTtTt..UuUuUuUuUuUuWwYyYZzZzZz.";
    const unsigned char *c = (const unsigned char *)*at;
    if (*accent) {
        *accent = false;
        return 1;
    }
    const size_t dots = strspn(*at, ".");
    if (dots > 0 && (c[dots] == '\0' || c[dots] == ' '))
        c += dots;
    while (!exact && (strncmp((const char *)c, "\xC2\xA0", 2) == 0 ||
                      strncmp((const char *)c, "\xE2\x80\xAF", 3) == 0))
        c += *c == 0xC2 ? 2 : 3;
    const unsigned point =
        *c >= 0xC0 && *c < 0xE0 && c[1] ? (*c & 0x1Fu) << 6 | (c[1] & 0x3Fu) : *c;
    const unsigned letter =
        point >= 0xC0 && point < 0x180 ? (unsigned char)letters[point - 0xC0] : '.';
    *at = (const char *)c + (*c ? 1 + (point != *c) : 0);
    if (exact)
        return point;
    *accent = letter != '.';
    return *accent ? letter : point >= 0x300 && point < 0x370 ? 1 : point;
}

/* Are the names stored as one (`exact`), or do they look like one? */
static bool are_alike(const char *a, const char *b, bool exact) {
    bool accents[2] = {false, false};
    unsigned one, two;
    do {
        one = next_letter(&a, &accents[0], exact);
        two = next_letter(&b, &accents[1], exact);
    } while (one == two && one != 0);
    return one == two;
}

/* A column of earlier loads, which this load does not have, with such a name; or NULL. */
static known_type *alike_of(const known_types *known, const char *column, bool exact) {
    for (size_t i = 0; i < known->count; i++) {
        known_type *type = &known->items[i];
        if (!type->sampled && !type->present && are_alike(type->column, column, exact))
            return type;
    }
    return NULL;
}

/* Warns of columns that no earlier load has stored, and of stored columns that this load lacks: for
 * the first time, or if its mode removes their fields. Not of missing columns with --mode merge and
 * update, whose records may lack some, or with an archive, whose columns are not all known. */
static void warn_of_columns(const sl_job *job, const sl_destination *destination,
                            const recording *r, bool warns) {
    const known_types *known = r->known;
    sl_column_names fresh = {.count = 0}, missing = {.count = 0}, alike = {.count = 0};
    const sl_mode_row *mode = sl_load_mode(job->config);
    const bool replaces = mode->matches && !mode->sets_fields;
    bool partial = mode->sets_fields;
    char than[600], more[1600];
    size_t count, used = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++)
        partial = partial || sl_source_set_at(job->set, i)->kind == SL_SOURCE_ARCHIVE;
    for (size_t i = 0; i < r->added_count; i++) {
        const char *column = r->added[i].column;
        known_of(known, column, &count);
        bool same = count > 0; /* as a stored one */
        for (known_type *type; (type = alike_of(known, column, true)) != NULL;)
            same = type->present = true;
        if (same)
            continue;
        sl_column_names_add(&fresh, column);
        if (alike_of(known, column, false))
            sl_column_names_add(&alike, column);
    }
    for (size_t i = 0; i < known->count && !partial; i++) {
        known_type *type = &known->items[i];
        if (type->sampled || type->present || (type->missed && !replaces))
            continue;
        type->missed = true;
        if (i == 0 || strcmp(type->column, type[-1].column) != 0)
            sl_column_names_add(&missing, type->column);
    }
    if (!warns || known->count == 0 || bson_empty(&known->list) || fresh.count + missing.count == 0)
        return;
    sl_print_text(than, sizeof than, "earlier loads into %s.%s", destination->target.database,
                  destination->target.collection);
    *more = '\0';
    if (replaces && missing.count > 0)
        used = sl_print_text(more, sizeof more,
                             " --mode %s removes the missing fields from the documents that match: "
                             "--mode %s keeps them.",
                             mode->name,
                             sl_modes[mode->creates ? SL_MODE_MERGE : SL_MODE_UPDATE].name);
    if (alike.count > 0)
        sl_print_text(more + used, sizeof more - used,
                      " These look like missing ones: %s; but they are written with other "
                      "characters (accents apart from their letters, or no-break spaces), so they "
                      "are other fields.",
                      alike.shown);
    sl_columns_warn("this load", than, &fresh, &missing, more);
}

/* Adds the types once, unless the registry shall only be read; warns in the first attempt. `*done`:
 * the list in the registry has them all. */
static bool record_once(const sl_job *job, const sl_destination *destination, unsigned attempt,
                        bool read_only, bool *done, sl_error *error) {
    known_types known;
    bson_t now = BSON_INITIALIZER, item;
    recording r = {.known = &known};
    size_t listed, count = 0;
    bool ok = known_read(job, destination, true, &known, error);
    if (ok) {
        record_columns(job, &r);
        if (attempt == 0)
            log_renamed(job, &known);
        if (attempt == 0 && r.second.count > 0 && !sl_load_mode(job->config)->removes)
            sl_log_warning("stored documents of %s.%s have another type in %s: %s. A query for "
                           "one type does not find the other, and later loads are refused: to "
                           "store one type, load all files again with --drop and --types",
                           destination->target.database, destination->target.collection,
                           sl_plural(r.second.count, "column"), r.second.shown);
        warn_of_columns(job, destination, &r, attempt == 0);
    }
    for (sl_walk walk = sl_walk_of(&known.list); known.count > 0 && sl_walk_next(&walk);) {
        const known_type *type = known_of(&known, sl_look_string(&walk.item, "column"), &listed);
        sl_record_begin_item(&now, count++, &item);
        bson_concat(&item, &walk.item);
        if (type->missed && !sl_look_flag(&walk.item, "missed"))
            BSON_APPEND_BOOL(&item, "missed", true);
        bson_append_document_end(&now, &item);
    }
    for (size_t i = 0; i < r.added_count; i++) {
        sl_record_begin_item(&now, count++, &item);
        BSON_APPEND_UTF8(&item, "column", r.added[i].column);
        BSON_APPEND_UTF8(&item, "type", r.added[i].type);
        bson_append_document_end(&now, &item);
    }
    if (ok && r.no_memory)
        ok = sl_error_memory(error, "recording the types of the collection");
    else if (ok && r.contradicts)
        ok = sl_error_set(error, SL_EXIT_SOURCE,
                          "documents in %s.%s have other types in columns of this load than at its "
                          "beginning; give the same command again to compare the types",
                          destination->target.database, destination->target.collection);
    *done = ok && (read_only || count == 0);
    if (ok && !*done)
        ok = sl_registry_set_list(destination->registry, SL_REGISTRY_COLUMNS, &known.list, &now,
                                  attempt, done, error);
    for (size_t i = 0; i < r.added_count; i++) {
        free((char *)r.added[i].column);
        free((char *)r.added[i].type);
    }
    free(r.added);
    sl_name_index_clear(&r.index);
    bson_destroy(&now);
    known_clear(&known);
    return ok;
}

void sl_types_log_names(const sl_job *job) {
    if (!job->config->part_of_trial)
        log_renamed(job, NULL);
}

static bool has_tables(const sl_job *job) {
    size_t i = 0, count = sl_source_set_count(job->set);
    while (i < count && (job->sources[i].skipped || job->sources[i].format != &sl_format_delimited))
        i++;
    return i < count;
}

bool sl_types_record(const sl_job *job, const sl_destination *destination, bool read_only,
                     sl_error *error) {
    const char *registry = destination->target.registry;
    bool done = job->config->part_of_trial || sl_load_mode(job->config)->removes ||
                (registry && !registry[0]);
    const bool delimited = has_tables(job) || (job->embed && has_tables(&job->embed->records));
    bool ok = true;
    for (unsigned attempt = 0; ok && delimited && !done; attempt++)
        ok = record_once(job, destination, attempt, read_only, &done, error);
    return ok;
}

/* ---- the types of JSON and BSON documents ---- */

/* Do servers compare the values of a field with those of a column? Numbers with numbers, but not
 * with texts; the elements of an array with any value. */
static bool is_comparable(const sl_typed_field *field, const known_type *types, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sl_schema_column known = {0}, own = {0};
        sl_column_type_read(types[i].type, &known);
        for (size_t k = 0; k < SL_FIELD_KINDS; k++) {
            sl_column_type_read(sl_field_kinds[k].type, &own);
            bool same = sl_column_class(&own) == sl_column_class(&known) &&
                        is_only_declared(&own) == is_only_declared(&known);
            if (field->types & sl_field_kinds[k].bson_types &&
                (same || sl_column_types[own.type].bson == SL_BSON_DOCUMENT ||
                 sl_column_types[known.type].bson == SL_BSON_DOCUMENT))
                return true;
        }
    }
    return false;
}

static void write_types(const sl_typed_field *field, char *out, size_t room) {
    size_t used = 0;
    for (size_t k = 0; k < SL_FIELD_KINDS; k++) {
        if (field->types & sl_field_kinds[k].bson_types)
            used += sl_print_text(out + used, room - used, "%s%s", used ? " and " : "",
                                  sl_field_kinds[k].type);
    }
}

static void warn_of_fields(const sl_destination *destination, const known_types *known,
                           const sl_typed_fields *own) {
    refusal different = {.count = 0};
    char types[400] = "", word[SL_WORD_ROOM(sizeof types)];
    for (size_t i = 0; i < own->count; i++) {
        const sl_typed_field *field = &own->items[i];
        char stored[200], here[200];
        sl_schema_column type = {0};
        size_t count;
        const known_type *of = known_of(known, field->name, &count);
        if (count == 0 || is_comparable(field, of, count) || different.count++ >= REFUSED_SHOWN)
            continue;
        write_stored(of, count, stored, sizeof stored);
        write_types(field, here, sizeof here);
        different.used +=
            sl_print_text(different.shown + different.used, sizeof different.shown - different.used,
                          "\n  %s: %s in the collection, %s here, as %s", field->name, stored, here,
                          field->example);
        sl_column_type_read(of[0].type, &type);
        if (field->types == 1u << BSON_TYPE_UTF8)
            sl_type_declare(field->name, &type, types);
    }
    if (different.count > 0)
        sl_log_warning("the documents of this load have other types in these fields than those in "
                       "%s.%s:" SL_LINES SL_LINES
                       "\nA query for one type does not find the other. To "
                       "store one type, change the values in the file%s%s",
                       destination->target.database, destination->target.collection,
                       different.shown, different.count > REFUSED_SHOWN ? "\n  ..." : "",
                       *types ? ", or convert texts: --types " : "",
                       *types ? sl_shell_word(types, word, sizeof word) : "");
}

/* Warns if the records, and also the stored documents, have more fields of their own than both have
 * in common. Optional fields may be missing on one side. */
static void warn_of_names(const sl_destination *destination, const known_types *known,
                          const sl_typed_fields *own) {
    sl_column_names here = {.count = 0}, stored = {.count = 0};
    size_t common = 0, count;
    for (size_t i = 0; i < own->count; i++) {
        known_of(known, own->items[i].name, &count);
        common += count > 0;
        if (count == 0)
            sl_column_names_add(&here, own->items[i].name);
    }
    for (size_t i = 0; i < known->count; i += count) {
        const char *name = known_of(known, known->items[i].column, &count)->column;
        size_t k = 0;
        while (k < own->count && strcmp(own->items[k].name, name) != 0)
            k++;
        if (k == own->count)
            sl_column_names_add(&stored, name);
    }
    if (common < here.count && common < stored.count)
        sl_log_warning("this load has other fields than the documents in %s.%s: %s instead of "
                       "%s. A query for one name does not find the other: earlier loads may have "
                       "had another --names, --schema or --format",
                       destination->target.database, destination->target.collection, here.shown,
                       stored.shown);
}

bool sl_types_compare_fields(sl_job *job, const sl_destination *destination, sl_error *error) {
    known_types known = {.list = BSON_INITIALIZER};
    sl_typed_fields own = {.array = job->config->format_options.array};
    bool documents = false, fixed = false, exists;
    if (job->embed && !sl_types_compare_fields(&job->embed->records, destination, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        documents = documents || (!source->skipped && source->format->own_ids);
        fixed = fixed || (!source->skipped && source->format != &sl_format_delimited);
    }
    if (!(documents || fixed) || (job->config->part_of_trial && !job->config->divided) ||
        sl_load_mode(job->config)->removes)
        return true;
    bool ok = sl_target_exists(destination->connection, &destination->target, &exists, error) &&
              (!exists || known_read(job, destination, true, &known, error));
    if (ok && known.count > 0) {
        sl_documents_look(job, sl_fields_add_documents, &own);
        if (documents)
            warn_of_fields(destination, &known, &own);
        else if (!sl_load_mode(job->config)->sets_fields)
            warn_of_names(destination, &known, &own);
    }
    free(own.items);
    known_clear(&known);
    return ok;
}

uint64_t sl_types_sampled_of(const sl_job *job, const sl_job_source *source) {
    if (!is_typed(job, source))
        return 0;
    const sl_typed_layout *layout =
        sl_typing_layout_of(sl_types_plan(job)->typing, source->dialect);
    return layout ? layout->records : 0;
}

uint64_t sl_types_hash(const sl_job *job, const sl_job_source *source) {
    uint64_t hash = SL_HASH_A;
    if (!is_typed(job, source))
        return 0;
    for (size_t i = 0; i < source->dialect->column_count; i++) {
        const sl_bound_column *column = &source->dialect->columns[i];
        char type[SL_TYPE_ROOM];
        sl_column_type_write(&column->schema, type);
        const char *const texts[] = {column->published, type};
        for (size_t k = 0; k < 2; k++)
            hash = sl_hash_mix(hash ^ sl_hash_text(texts[k], strlen(texts[k])), SL_HASH_B);
    }
    return hash != 0 ? hash : 1;
}
