/* SPDX-License-Identifier: Apache-2.0 */
#include "decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "format/delimited.h"
#include "format/key_fields.h"
#include "format/typing.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include "document_sample.h"
#include "load_config.h"
#include "numbers.h"
#include "sources.h"
#include "types.h"

static bool batches_fit(const sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_load_config *config = job->config;
    const sl_server *server = sl_connection_server(destination->connection);
    return config->adapt_batches ||
           config->batch_documents <= (uint32_t)server->max_batch_documents ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--batch-size %u is more than the server accepts (%d documents)",
                        config->batch_documents, server->max_batch_documents);
}

/* An existing unsharded collection is sharded only if the user asked for it. */
static bool decide_sharding(const sl_job *job, sl_destination *destination, sl_target_view *view,
                            sl_error *error) {
    sl_target *target = &destination->target;
    if (!sl_target_look(destination->connection, target, view, error))
        return false;
    if ((view->change == SL_SHARDING_NEW || view->change == SL_SHARDING_EXISTING) &&
        job->key_problem.code) {
        *error = job->key_problem;
        return false;
    }
    if (view->change != SL_SHARDING_LEFT)
        return true;
    target->shard_key = NULL;
    return !job->config->only_shards ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--only-shards: %s.%s exists and is not sharded; --shard-existing "
                        "shards it, or share the load with --part",
                        target->database, target->collection);
}

static bool records_have(void *context, const char *field) {
    return sl_documents_type(context, field, NULL) != 0;
}

/* Types that the server compares with each other; the name of each is one for $type. */
#define TEXTS (1u << BSON_TYPE_UTF8)
static const struct match_type {
    const char *alias, *word; /* word: of --types */
    uint64_t types;           /* bit set of BSON types below 64 */
} match_types[] = {
    {"number", "int",
     1 << BSON_TYPE_DOUBLE | 1 << BSON_TYPE_INT32 | 1 << BSON_TYPE_INT64 |
         1 << BSON_TYPE_DECIMAL128},
    {"string", "text", TEXTS},
    {"objectId", "objectid", 1 << BSON_TYPE_OID},
    {"date", "datetime", 1 << BSON_TYPE_DATE_TIME},
    {"bool", "flag", 1 << BSON_TYPE_BOOL},
    {"binData", "uuid", 1 << BSON_TYPE_BINARY},
};

static const struct match_type *match_type_of(int type) {
    for (size_t i = 0; i < sizeof match_types / sizeof match_types[0]; i++) {
        if (type > 0 && type < 64 && match_types[i].types >> type & 1)
            return &match_types[i];
    }
    return NULL;
}

/* A stored document with the field; of this type, unless NULL. NULL: there is none. */
static bson_t *document_with(const sl_destination *destination, const char *field,
                             const char *type) {
    bson_t *found = NULL;
    bson_t *filter = type ? BCON_NEW(field, "{", "$type", BCON_UTF8(type), "}")
                          : BCON_NEW(field, "{", "$exists", BCON_BOOL(true), "}");
    sl_error ignored = {0};
    sl_document_find(destination->connection, &destination->target, filter, &found, &ignored);
    bson_destroy(filter);
    return found;
}

static bool has_type(const sl_destination *destination, const char *field, const char *type) {
    bson_t *found = document_with(destination, field, type);
    bson_destroy(found);
    return found != NULL;
}

/* The type of the field in the stored documents, if no document has it in the type `own`. */
static const struct match_type *stored_type(const sl_destination *destination, const char *field,
                                            const char *own) {
    bson_t *found =
        has_type(destination, field, own) ? NULL : document_with(destination, field, NULL);
    bson_iter_t value;
    const struct match_type *type = found && sl_look_find(found, field, &value)
                                        ? match_type_of((int)bson_iter_type(&value))
                                        : NULL;
    bson_destroy(found);
    return type && strcmp(type->alias, own) != 0 ? type : NULL;
}

/* Warns of documents that have the field, which has an index, in a type with the same values. */
static void warn_of_other_types(const sl_destination *destination, const char *field,
                                const char *column, const struct match_type *own) {
    char word[400];
    for (size_t i = 0; i < sizeof match_types / sizeof match_types[0]; i++) {
        const struct match_type *other = &match_types[i];
        if (other != own && (own->types == TEXTS || other->types == TEXTS) &&
            has_type(destination, field, other->alias))
            sl_log_warning("the field %s of some documents has the type %s: these do not match "
                           "the records, which have the type %s; records with --types %s=%s do",
                           field, other->alias, own->alias,
                           sl_shell_word(column, word, sizeof word), other->word);
    }
}

/* Could --types convert records with this value to the type? */
static bool converts(const char *text, const struct match_type *to) {
    char digits[SL_SAMPLED_TEXT_ROOM];
    if (strcmp(to->word, "objectid") == 0 && sscanf(text, "ObjectId(%59[^)])", digits) == 1)
        text = digits;
    const size_t length = strlen(text);
    const bool hexadecimal = length > 0 && strspn(text, "0123456789abcdefABCDEF-") == length;
    if (strcmp(to->word, "objectid") == 0)
        return hexadecimal && length == 24 && !strchr(text, '-');
    if (strcmp(to->word, "uuid") == 0)
        return hexadecimal && (length == 32 || length == 36);
    if (strcmp(to->word, "int") == 0)
        return length > 0 && strspn(text, "0123456789-") == length;
    return true;
}

/* Does --types declare the column of the records? */
static bool is_declared(const sl_dialect *d, const char *column) {
    sl_error ignored = {0};
    const size_t at = sl_delimited_column_named(d, column, "types", &ignored);
    return at != SIZE_MAX && d->columns[at].schema.declared;
}

/* Another program may have stored 17 as "17", which no record matches. Sets job->match_problem,
 * which ends a load with inferred types at once. */
static bool types_match(sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_format_options *options = &job->config->format_options;
    const sl_key_names *ids = &job->keys->id, *match = &job->keys->match;
    const sl_job_source *source = sl_sources_first(job);
    const bool table = source && source->format == &sl_format_delimited;
    bool refused = false;
    for (size_t i = 0; i < match->count && !job->match_problem.code; i++) {
        const char *name = match->names[i];
        char text[SL_SAMPLED_TEXT_ROOM], advice[600];
        const struct match_type *own = match_type_of(sl_documents_type(job, name, text));
        const struct match_type *stored = own ? stored_type(destination, name, own->alias) : NULL;
        const char *column = strcmp(name, "_id") == 0 && ids->count == 1 ? ids->names[0] : name;
        if (own && !stored && match->count == 1)
            warn_of_other_types(destination, name, column, own);
        if (!stored)
            continue;
        refused =
            table && !is_declared(source->dialect, column) && !options->schema_text && !job->schema;
        if (text[0] && !converts(text, stored))
            snprintf(advice, sizeof advice,
                     "A value such as %s cannot be read as %s: match by other fields "
                     "(--match-fields), or, to store both types, declare that of the records: "
                     "--types %s=%s",
                     text, stored->alias, column, own->word);
        else
            snprintf(advice, sizeof advice, "%s%s=%s",
                     table || own->types == TEXTS
                         ? "Declare the stored type: --types "
                         : "Convert the records to that type before, as to --types ",
                     column, stored->word);
        sl_error_set(&job->match_problem, SL_EXIT_SOURCE,
                     "no stored document matches: the field %s of %s.%s has the type %s, and that "
                     "of the records has the type %s. %s",
                     name, destination->target.database, destination->target.collection,
                     stored->alias, own->alias, advice);
    }
    if (refused)
        *error = job->match_problem;
    else if (job->match_problem.code)
        sl_log_warning("%s", job->match_problem.message);
    return !refused;
}

static bool matches(const sl_job *job) {
    return job->keys && sl_modes[job->keys->mode].matches;
}

static sl_matching matching_of(sl_job *job) {
    const sl_key_fields *keys = job->keys;
    return (sl_matching){.fields = (const char *const *)keys->match.names,
                         .count = keys->match.count,
                         .mode = &sl_modes[keys->mode],
                         .indexes = job->config->indexes,
                         .index_count = job->config->index_count,
                         .records_have = records_have,
                         .context = job};
}

/* With another mode than insert: can the documents be matched by the fields? */
static bool may_match(sl_job *job, sl_destination *destination, sl_error *error) {
    if (!matches(job))
        return true;
    const sl_matching match = matching_of(job);
    return sl_check_match(destination->connection, &destination->target, &match, error) &&
           (job->resumed || destination->target.drop || types_match(job, destination, error));
}

bool sl_match_again(sl_job *job, const sl_destination *destination, sl_error *error) {
    if (!matches(job))
        return true;
    const sl_matching match = matching_of(job);
    return sl_check_match_again(destination->connection, &destination->target, &match, error);
}

/* ---- where the _ids of the collection come from ----
 *
 * The registry has a list of origins, as texts: the fields of --id-field; "_id" if the records have
 * an _id; "" for the position of the record in its file. A load with another origin would store
 * records a second time, or match other documents. Older registries have no such list. */

#define OWN_ID "_id"
#define ORIGIN_ROOM 1000

/* Writes where the _ids of this load come from. False if this cannot contradict other loads: the
 * documents get their _id from a server, or are not matched by it. */
static bool origin_of(const sl_job *job, char out[ORIGIN_ROOM]) {
    const sl_key_fields *keys = job->keys;
    const bool by_id = keys && keys->match.count == 1 && strcmp(keys->match.names[0], OWN_ID) == 0;
    bool own = false;
    size_t used = 0;
    out[0] = '\0';
    if (job->config->part_of_trial || (keys && sl_modes[keys->mode].matches && !by_id))
        return false;
    for (size_t i = 0; keys && i < keys->id.count; i++)
        used +=
            sl_print_text(out + used, ORIGIN_ROOM - used, "%s%s", i ? "," : "", keys->id.names[i]);
    for (size_t i = 0; used == 0 && i < sl_source_set_count(job->set); i++)
        own = own || (!job->sources[i].skipped && job->sources[i].format->own_ids);
    if (own)
        strcpy(out, OWN_ID);
    return !own || (!by_id && sl_documents_type((sl_job *)job, OWN_ID, NULL) != 0);
}

/* Could a record have another _id than it got from an earlier load? A column and the _id of other
 * documents may be the same field. */
static bool contradicts(const bson_t *known, const char *origin) {
    const bool field = origin[0] && strcmp(origin, OWN_ID) != 0;
    bool other = false, position = false, own = false;
    for (sl_walk walk = sl_walk_of(known); sl_walk_next(&walk);) {
        const char *one = sl_look_string(&walk.item, "from");
        if (strcasecmp(one, origin) == 0) /* a header with other capitals */
            return false;
        position = position || !one[0];
        own = own || strcmp(one, OWN_ID) == 0;
        other = other || (one[0] && strcmp(one, OWN_ID) != 0);
    }
    return field ? other || (position && !own) : origin[0] ? position && !other : other || own;
}

/* Writes an origin for a message. Returns the number of bytes. */
static size_t put_origin(const char *origin, char *out, size_t room) {
    if (!origin[0])
        return sl_print_text(out, room, "the position of the record in its file (no --id-field)");
    if (strcmp(origin, OWN_ID) == 0)
        return sl_print_text(out, room, "the _id of the record");
    char word[SL_WORD_ROOM(ORIGIN_ROOM)];
    return sl_print_text(out, room, "--id-field %s", sl_shell_word(origin, word, sizeof word));
}

static bool refuse_ids(const sl_job *job, const sl_destination *destination, const bson_t *known,
                       const char *origin, sl_error *error) {
    const sl_mode_row *mode = sl_load_mode(job->config);
    char before[600], now[ORIGIN_ROOM], advice[700] = "", word[SL_WORD_ROOM(ORIGIN_ROOM)];
    size_t used = 0, given = 0;
    for (sl_walk walk = sl_walk_of(known); sl_walk_next(&walk);) {
        const char *one = sl_look_string(&walk.item, "from");
        used += sl_print_text(before + used, sizeof before - used, "%s", used ? " and " : "");
        used += put_origin(one, before + used, sizeof before - used);
        if (one[0] && given == 0)
            given = sl_print_text(advice, sizeof advice, "Give --id-field %s%s. ",
                                  strcmp(one, OWN_ID) == 0 ? "NAME"
                                                           : sl_shell_word(one, word, sizeof word),
                                  strcmp(one, OWN_ID) == 0 ? ", the field with the _id" : "");
    }
    if (given == 0 && origin[0] && strcmp(origin, OWN_ID) != 0)
        sl_print_text(advice, sizeof advice,
                      mode->matches ? "Give --match-fields %s instead. " : "Leave out --id-field. ",
                      sl_shell_word(origin, word, sizeof word));
    put_origin(origin, now, sizeof now);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%.255s.%.255s: earlier loads have taken the _id from %s, and this load "
                        "takes it from %.600s: a record that is already stored %s. %s%s",
                        destination->target.database, destination->target.collection, before, now,
                        mode->creates ? "would be stored a second time"
                                      : "would not be found, or another one in its place",
                        advice,
                        mode->creates ? "For records that are not stored yet, --again loads them "
                                        "with such an _id"
                                      : "--again matches by this _id nevertheless");
}

static bool check_ids(sl_job *job, const sl_destination *destination, sl_error *error) {
    char origin[ORIGIN_ROOM];
    bson_t known;
    bool ok = sl_registry_list(destination->registry, SL_REGISTRY_IDS, &known, NULL, error);
    if (ok && !bson_empty(&known) && origin_of(job, origin) && contradicts(&known, origin)) {
        job->other_ids = job->config->again;
        ok = job->config->again || refuse_ids(job, destination, &known, origin, error);
    }
    bson_destroy(&known);
    return ok;
}

bool sl_ids_allow_verify(const sl_job *job, const sl_destination *destination, sl_error *error) {
    bson_t known;
    char word[SL_WORD_ROOM(ORIGIN_ROOM)];
    const char *first = NULL;
    bool ok = sl_registry_list(destination->registry, SL_REGISTRY_IDS, &known, NULL, error);
    bool fields = ok && (!job->keys || job->keys->id.count == 0);
    for (sl_walk walk = sl_walk_of(&known); fields && sl_walk_next(&walk);) {
        const char *one = sl_look_string(&walk.item, "from");
        fields = one[0] && strcmp(one, OWN_ID) != 0;
        first = first ? first : one;
    }
    if (fields && first)
        ok = sl_error_set(error, SL_EXIT_SOURCE,
                          "%.255s.%.255s: the loads have taken the _id of its documents from "
                          "--id-field %s; give the same option to verify",
                          destination->target.database, destination->target.collection,
                          sl_shell_word(first, word, sizeof word));
    bson_destroy(&known);
    return ok;
}

bool sl_ids_record(const sl_job *job, const sl_destination *destination, sl_error *error) {
    char origin[ORIGIN_ROOM];
    const char *registry = destination->target.registry;
    const bool none = registry && !registry[0];
    bool done = none || !sl_load_mode(job->config)->creates || !origin_of(job, origin), ok = true;
    for (unsigned attempt = 0; ok && !done; attempt++) {
        bson_t was, now = BSON_INITIALIZER, item;
        bool listed = false;
        ok = sl_registry_list(destination->registry, SL_REGISTRY_IDS, &was, &done, error);
        if (ok)
            bson_concat(&now, &was);
        for (sl_walk walk = sl_walk_of(&now); sl_walk_next(&walk);)
            listed = listed || strcmp(sl_look_string(&walk.item, "from"), origin) == 0;
        if (ok && !done && !listed && contradicts(&now, origin) && !job->config->again)
            ok = refuse_ids(job, destination, &now, origin, error);
        if (!listed) {
            sl_record_begin_item(&now, bson_count_keys(&now), &item);
            BSON_APPEND_UTF8(&item, "from", origin);
            bson_append_document_end(&now, &item);
        }
        if (ok && !done)
            ok = sl_registry_set_list(destination->registry, SL_REGISTRY_IDS, &was, &now, attempt,
                                      &done, error);
        bson_destroy(&was);
        bson_destroy(&now);
    }
    return ok;
}

/* ---- columns without names ---- */

/* Writes the names of so many columns in their order, as --columns takes them: those of a document
 * that has all of them, and no field of other programs. Nothing if none is found. */
static void write_in_order(const sl_destination *destination, const bson_t *list, size_t count,
                           char *out, size_t room) {
    bson_t reply, documents;
    bson_iter_t field;
    sl_error ignored = {0};
    *out = '\0';
    if (sl_documents_sample(destination->connection, &destination->target, &reply, &ignored) &&
        sl_look_inside(&reply, "cursor.firstBatch", &documents)) {
        for (sl_walk walk = sl_walk_of(&documents); !*out && sl_walk_next(&walk);) {
            size_t used = 0, names = 0;
            bool ok = bson_iter_init(&field, &walk.item);
            while (ok && bson_iter_next(&field)) {
                const char *name = bson_iter_key(&field);
                if (strcmp(name, "_id") == 0)
                    continue;
                ok = sl_registry_lists(list, name) && !strchr(name, ',') &&
                     used + strlen(name) + 1 < room;
                if (ok)
                    used +=
                        sl_print_text(out + used, room - used, "%s%s", names++ ? "," : "", name);
            }
            if (!ok || names != count)
                *out = '\0';
        }
    }
    bson_destroy(&reply);
}

/* May the text be a part of the table of earlier loads? True if it has none of their columns, and
 * no header, or a line that is only assumed to be one. */
static bool may_be_part(const sl_dialect *d, const bson_t *list) {
    bool other =
        d->header_length > 0 ? d->header_assumed : strcmp(d->columns[0].published, "column1") == 0;
    for (sl_walk walk = sl_walk_of(list); other && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "column");
        for (size_t i = 0; other && i < d->column_count; i++)
            other = strcasecmp(d->columns[i].published, name) != 0 &&
                    strcasecmp(d->columns[i].key, name) != 0;
    }
    return other;
}

/* Refuses such texts without given names, if earlier loads have named their columns. */
static bool check_names(const sl_job *job, const sl_destination *destination, bool exists,
                        sl_error *error) {
    const sl_format_options *options = &job->config->format_options;
    bson_t list = BSON_INITIALIZER;
    char names[600], word[SL_WORD_ROOM(sizeof names)];
    bool ok = !exists || options->schema_text || options->columns || job->schema ||
              job->config->part_of_trial ||
              sl_registry_list(destination->registry, SL_REGISTRY_COLUMNS, &list, NULL, error);
    for (size_t i = 0; ok && !bson_empty(&list) && i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        const sl_dialect *d = source->dialect;
        if (source->skipped || source->format != &sl_format_delimited || !may_be_part(d, &list))
            continue;
        write_in_order(destination, &list, d->column_count, names, sizeof names);
        const bool header = d->header_length > 0;
        ok = sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s: %s, and its %s would be stored as %.80s and so on, but earlier loads into %s.%s "
            "have named their columns%s. Give the names in the order of the file, %s: --columns "
            "%s. If the first line names them, give --header yes%s",
            sl_source_set_at(job->set, i)->shown,
            header ? "the first line is only assumed to be a header" : "no header is found",
            sl_plural(d->column_count, "column"), d->columns[0].published,
            destination->target.database, destination->target.collection,
            header ? " otherwise (are they pieces of one file, with one header?)" : "",
            *names ? "if it is that of the stored documents" : "as the documents do",
            *names ? sl_shell_word(names, word, sizeof word) : "NAME,...",
            header ? "" : ". To store them as column1 and so on, name them so");
    }
    bson_destroy(&list);
    return ok;
}

/* A sharded collection has, or gets, chunks on every shard. */
static bool shards_answer(const sl_destination *destination, sl_error *error) {
    return sl_connection_server(destination->connection)->deployment != SL_SHARDED ||
           !destination->target.shard_key || sl_shards_answer(destination->connection, error);
}

/* ---- what --drop removes besides documents ---- */

static bool has_key(const bson_t *indexes, const bson_t *key) {
    bson_t own;
    bool found = false;
    for (sl_walk walk = sl_walk_of(indexes); !found && sl_walk_next(&walk);)
        found = sl_look_inside(&walk.item, "key", &own) && sl_keys_equal(&own, key);
    return found;
}

/* What --drop would remove for good: the collection has it, and the command does not name it. */
typedef struct lost {
    bson_t items;      /* texts, such as "--index '{...}'" */
    bool key, options; /* a shard key; options or zones that no load gives a collection */
    bool known;        /* another --shard-key is given */
} lost;

static void add_lost(lost *l, const char *what, const char *value) {
    const size_t room = SL_WORD_ROOM(strlen(value));
    char *word = bson_malloc(room);
    char *item = bson_strdup_printf("%s %s", what, sl_shell_word(value, word, room));
    BSON_APPEND_UTF8(&l->items, "", item);
    bson_free(item);
    bson_free(word);
}

static void add_lost_json(lost *l, const char *what, const bson_t *value) {
    char *json = sl_document_json(value);
    add_lost(l, what, json ? json : "");
    bson_free(json);
}

static void find_lost_indexes(const sl_job *job, const sl_destination *destination,
                              const bson_t *shard_key, lost *l) {
    const sl_load_config *config = job->config;
    const sl_target *target = &destination->target;
    bson_t indexes, key, shown;
    sl_error ignored;
    sl_collection_indexes(destination->connection, target, &indexes, &ignored);
    for (sl_walk walk = sl_walk_of(&indexes); sl_walk_next(&walk);) {
        if (!sl_look_inside(&walk.item, "key", &key) || sl_key_is_id(&key) ||
            sl_keys_equal(&key, shard_key))
            continue;
        const bool of_given = target->shard_key && sl_keys_equal(&key, target->shard_key);
        bool named = of_given && (target->shard_key_unique || !sl_look_flag(&walk.item, "unique"));
        for (size_t i = 0; !named && i < config->index_count; i++) {
            bson_t own;
            named = sl_look_inside(config->indexes[i], "key", &own) && sl_keys_equal(&own, &key) &&
                    sl_index_has_options(&walk.item, config->indexes[i]);
        }
        if (named)
            continue;
        bson_init(&shown);
        bson_copy_to_excluding_noinit(&walk.item, &shown, "v", "ns", "name", "background",
                                      "textIndexVersion", "2dsphereIndexVersion", NULL);
        add_lost_json(l, of_given ? "--shard-key" : "--index",
                      bson_count_keys(&shown) == 1 ? &key : &shown);
        bson_destroy(&shown);
    }
    bson_destroy(&indexes);
}

/* Without the right to read them, they are not known. */
static void find_lost(const sl_job *job, const sl_destination *destination, lost *l) {
    const sl_target *target = &destination->target;
    sl_collection_facts facts;
    bson_t key, shown = BSON_INITIALIZER;
    bson_iter_t at;
    bool unique;
    sl_error ignored;
    bson_init(&l->items);
    sl_collection_read(destination->connection, target, &facts, &ignored);
    for (bool more = bson_iter_init(&at, &facts.options); more && bson_iter_next(&at);) {
        const char *name = bson_iter_key(&at);
        if (strcmp(name, "clusteredIndex") == 0 || strcmp(name, "storageEngine") == 0)
            continue; /* of --clustered and --compressor */
        add_lost(l, "the option", name);
        l->options = true;
    }
    sl_collection_facts_clear(&facts);
    char zone[200];
    if (sl_collection_zone(destination->connection, target, zone, sizeof zone, &ignored) &&
        zone[0]) {
        add_lost(l, "its ranges in zones, such as", zone);
        l->options = true;
    }
    sl_collection_shard_key(destination->connection, target, &key, &unique, &ignored);
    const bool same = target->shard_key && sl_keys_equal(&key, target->shard_key);
    l->key = !bson_empty(&key) && (same ? unique && !target->shard_key_unique : !l->known);
    BSON_APPEND_DOCUMENT(&shown, "key", &key);
    BSON_APPEND_BOOL(&shown, "unique", true);
    if (l->key)
        add_lost_json(l, "--shard-key", unique ? &shown : &key);
    find_lost_indexes(job, destination, &key, l);
    bson_destroy(&shown);
    bson_destroy(&key);
}

/* Refuses to drop a collection that was set up by other programs than loads. What the command names
 * will be there again. */
static bool may_be_dropped(const sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_target *target = &destination->target;
    lost l = {.known = target->shard_key_given};
    char list[400] = "", more[90] = "";
    size_t used = 0, left_out = 0;
    bool loads = false;
    bson_iter_t at;
    if (!target->drop || job->config->part_of_trial)
        return true;
    find_lost(job, destination, &l);
    for (bool next = bson_iter_init(&at, &l.items); next && bson_iter_next(&at);) {
        const char *item = bson_iter_utf8(&at, NULL);
        if (used + strlen(item) + 2 < sizeof list)
            used += sl_print_text(list + used, sizeof list - used, "%s%s", used ? ", " : "", item);
        else
            left_out++;
    }
    if (left_out > 0)
        snprintf(more, sizeof more, "%s%zu that getIndexes() in mongosh shows",
                 used ? ", and " : "", left_out);
    const bool lost_any = !bson_empty(&l.items);
    bson_destroy(&l.items);
    if (lost_any && !l.options && !sl_registry_of_loads(destination->registry, &loads, error))
        return false;
    return !lost_any || loads ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--drop would remove %s.%s, which other programs have set up, with what "
                        "this command does not name: %s%s. To keep it, remove its documents "
                        "(deleteMany in mongosh), and load with --again instead of --drop; or add "
                        "the options of this list that begin with --. If nothing of it is needed "
                        "any more, give "
                        "mongosh %s.drop()",
                        target->database, target->collection, list, more,
                        sl_mongosh_collection(target->database, target->collection));
}

/* Of a collection into which loads have loaded. Each item has a line: it is nowhere else. */
static void warn_of_lost(const sl_job *job, const sl_destination *destination) {
    const sl_target *target = &destination->target;
    lost l = {.key = false};
    bson_iter_t at;
    if (job->config->part_of_trial)
        return;
    find_lost(job, destination, &l);
    if (!bson_empty(&l.items))
        sl_log_warning("--drop removes %s.%s%s; to have them again, give", target->database,
                       target->collection,
                       l.key ? ", which has another shard key, with its zones, options and indexes"
                             : " with indexes that this command does not name");
    for (bool more = bson_iter_init(&at, &l.items); more && bson_iter_next(&at);)
        sl_log_warning("  %s", bson_iter_utf8(&at, NULL));
    bson_destroy(&l.items);
}

bool sl_decide(sl_job *job, sl_destination *destination, sl_target_view *view, sl_error *error) {
    sl_connection *connection = destination->connection;
    const sl_target *target = &destination->target;
    const sl_load_config *config = job->config;
    *view = (sl_target_view){.silent = !shards_answer(destination, error)};
    return !view->silent && batches_fit(job, destination, error) &&
           decide_sharding(job, destination, view, error) &&
           sl_registry_open_settled(connection, target,
                                    target->drop ? SL_SETTLE_DROP : SL_SETTLE_LOOK,
                                    config->again || job->resumed, &destination->registry, error) &&
           may_be_dropped(job, destination, error) &&
           sl_sources_find_selections(job, destination, error) &&
           (job->resumed || target->drop ||
            (check_names(job, destination, view->exists, error) &&
             check_ids(job, destination, error) && sl_types_adopt(job, destination, false, error) &&
             sl_types_compare_fields(job, destination, error))) &&
           (destination->topology || sl_topology_read(connection, &destination->topology, error)) &&
           sl_parts_find_shards(job, destination, error) && may_match(job, destination, error) &&
           sl_indexes_may_be_built(connection, target, view->exists, config->indexes,
                                   config->index_count, error) &&
           (!target->drop || sl_load_is_shared(config) || config->part_of_trial ||
            sl_documents_refuse_rejects(job, target, error)) &&
           sl_sources_refuse_loaded(job, destination, error);
}

void sl_ids_warn(const sl_job *job, const sl_target *target, const bson_t *key) {
    bson_iter_t field;
    bool by_id = true, first = true;
    for (bool more = bson_iter_init(&field, key); more && bson_iter_next(&field); first = false) {
        const char *name = bson_iter_key(&field);
        if (first && strcmp(name, "_id") == 0)
            return;
        by_id = by_id && strncmp(name, "_id.", 4) == 0;
    }
    if (by_id || job->shards < 2 || !job->keys || job->keys->id.count == 0 ||
        !sl_load_mode(job->config)->creates)
        return;
    char *json = sl_document_json(key);
    sl_log_warning("%s.%s is sharded by %s, and a shard compares the _id (--id-field) only with "
                   "its own documents. So records with the same _id and different values of this "
                   "key can be stored as several documents, without a reject. If each _id must "
                   "occur once, shard by it: --shard-key '{\"_id\": \"hashed\"}', and --drop if "
                   "the collection exists",
                   target->database, target->collection, json ? json : "");
    bson_free(json);
}

/* ---- documents that servers delete ---- */

typedef struct expiry {
    const char *field; /* NULL: no TTL index */
    int64_t before;    /* dates before this one have expired, in milliseconds */
    uint64_t records, expired;
} expiry;

static bool count_expired(void *context, const uint8_t *documents, const uint8_t *end,
                          uint32_t count) {
    expiry *seen = context;
    seen->records += count;
    for (const uint8_t *at = documents; at < end; at += sl_bson_length(at)) {
        bson_t document;
        bson_iter_t value;
        if (bson_init_static(&document, at, sl_bson_length(at)) &&
            sl_look_set(&document, seen->field, &value) && BSON_ITER_HOLDS_DATE_TIME(&value))
            seen->expired += bson_iter_date_time(&value) < seen->before ? 1 : 0;
    }
    return true;
}

/* Warns of a TTL index that is not among `existing` (NULL: it exists). Servers ignore
 * expireAfterSeconds of an index of several fields. */
static void warn_of_expiry(sl_job *job, const sl_target *target, const bson_t *existing,
                           const bson_t *index) {
    bson_t key;
    bson_iter_t field;
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], sampled[200] = "";
    const char *name = sl_look_text(index, "name");
    const bool later = job->config->later_indexes != NULL;
    const double seconds = sl_look_amount(index, "expireAfterSeconds", -1);
    if (seconds < 0 || !sl_look_inside(index, "key", &key) || bson_count_keys(&key) != 1 ||
        !bson_iter_init(&field, &key) || !bson_iter_next(&field) ||
        (existing && has_key(existing, &key)))
        return;
    expiry seen = {.field = bson_iter_key(&field),
                   .before = sl_wall_clock_ms() - (int64_t)(seconds * 1000)};
    sl_documents_look(job, count_expired, &seen);
    if (seen.expired > 0)
        snprintf(sampled, sizeof sampled,
                 "; %s of the %s records at the beginning of the sources have such a date already",
                 sl_human_count(seen.expired, a), sl_human_count(seen.records, b));
    sl_log_warning("%s.%s %s the TTL index %.200s: servers delete documents whose field %.200s "
                   "has a date older than %.0f seconds%s, also those of this load%s. To keep them, "
                   "%s",
                   target->database, target->collection, existing ? "gets" : "has",
                   name ? name : seen.field, seen.field, seconds,
                   sl_look_inside(index, "partialFilterExpression", &key)
                       ? " and which match its partialFilterExpression"
                       : "",
                   sampled,
                   !existing ? "drop the index, or raise its expireAfterSeconds (collMod)"
                   : later   ? "restore with --no-index-restore, and build the indexes afterwards"
                             : "leave expireAfterSeconds of --index out, or raise it");
}

static void warn_of_expiries(sl_job *job, const sl_destination *destination, bool exists) {
    const sl_load_config *config = job->config;
    const sl_target *target = &destination->target;
    bson_t indexes = BSON_INITIALIZER;
    sl_error ignored;
    if (exists)
        sl_collection_indexes(destination->connection, target, &indexes, &ignored);
    for (sl_walk walk = sl_walk_of(&indexes); sl_walk_next(&walk);)
        warn_of_expiry(job, target, NULL, &walk.item);
    for (size_t i = 0; i < config->index_count; i++)
        warn_of_expiry(job, target, &indexes, config->indexes[i]);
    const bson_t none = BSON_INITIALIZER;
    for (sl_walk walk = sl_walk_of(config->later_indexes ? config->later_indexes : &none);
         sl_walk_next(&walk);)
        warn_of_expiry(job, target, &indexes, &walk.item);
    bson_destroy(&indexes);
}

typedef struct embedded_field {
    const sl_key_names *match;
    char name[80];
} embedded_field;

/* Finds a document that is embedded and not a GeoJSON object, which is complete. */
static bool find_embedded(void *context, const uint8_t *documents, const uint8_t *end,
                          uint32_t count) {
    embedded_field *found = context;
    (void)count;
    for (const uint8_t *at = documents; !found->name[0] && at < end; at += sl_bson_length(at)) {
        bson_t document, inner;
        bson_iter_t field;
        for (bool more = bson_init_static(&document, at, sl_bson_length(at)) &&
                         bson_iter_init(&field, &document);
             more && !found->name[0] && bson_iter_next(&field);) {
            const char *name = bson_iter_key(&field);
            if (BSON_ITER_HOLDS_DOCUMENT(&field) && strcmp(name, "_id") != 0 &&
                !sl_key_names_have(found->match, name) && sl_container_at(&field, &inner) &&
                !bson_has_field(&inner, "coordinates"))
                sl_text_printable(sl_text_of(name), found->name, sizeof found->name);
        }
    }
    return true;
}

/* Warns of a column of the _id or the match fields in which sampled values have blanks at their
 * ends: documents whose keys are without them do not match. False: the source has none. */
static bool warn_of_blanks(const sl_job *job, const sl_job_source *source) {
    const sl_plan *plan = sl_sources_plan(job, source->format);
    const sl_dialect *d = source->dialect;
    const sl_typed_layout *layout = sl_typing_layout_of(plan->typing, d);
    char shown[80];
    for (size_t k = 0; layout && k < d->column_count; k++) {
        const char *name = d->columns[k].published;
        if (!sl_key_names_have(&job->keys->id, d->columns[k].key) &&
            !sl_key_names_have(&job->keys->match, d->columns[k].key))
            continue;
        for (size_t i = 0; i < layout->count; i++) {
            const sl_typed_column *column = &layout->columns[i];
            if (!(column->blanks || column->unbroken) || strcmp(column->name, name) != 0)
                continue;
            sl_text_printable(sl_text_of(name), shown, sizeof shown);
            sl_log_warning("values of %s, by which documents are identified, have %s at their "
                           "ends, and do not match values without: %s",
                           shown, column->unbroken ? "no-break spaces" : "blanks",
                           column->unbroken ? "remove them in the file (--trim removes blanks)"
                                            : "--trim removes them");
            return true;
        }
    }
    return false;
}

void sl_decision_log(sl_job *job, const sl_destination *destination, const sl_target_view *view) {
    const sl_target *target = &destination->target;
    if (target->drop)
        warn_of_lost(job, destination);
    if (view->change == SL_SHARDING_EXISTING)
        sl_log_warning("%s.%s exists and is not sharded: --shard-existing shards it now",
                       target->database, target->collection);
    if (view->change == SL_SHARDING_LEFT)
        sl_log_info(
            "%s.%s exists and is not sharded: it stays unsharded; --shard-existing would shard it",
            target->database, target->collection);
    if (view->exists && sl_load_mode(job->config)->sets_fields) {
        embedded_field embedded = {.match = &job->keys->match};
        sl_documents_look(job, find_embedded, &embedded);
        if (embedded.name[0])
            sl_log_warning("--mode %s replaces the embedded document %s as a unit: stored fields "
                           "that it does not have in the records are lost",
                           sl_load_mode(job->config)->name, embedded.name);
    }
    bool warned = false;
    for (size_t i = 0; job->keys && !warned && i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        warned = !source->skipped && source->format == &sl_format_delimited &&
                 sl_sources_plan(job, source->format)->typing && warn_of_blanks(job, source);
    }
    if (view->locale[0] && sl_load_mode(job->config)->matches)
        sl_log_warning("%s.%s compares texts by its collation (locale %s): records with `a` and "
                       "`A`, for example, may change the same document, and the number of such "
                       "records is not shown",
                       target->database, target->collection, view->locale);
    if (view->capped && sl_load_mode(job->config)->creates)
        sl_log_warning("%s.%s is a capped collection: when it is full, servers remove its oldest "
                       "documents, also those that were stored before this load",
                       target->database, target->collection);
    if (!sl_load_mode(job->config)->removes)
        warn_of_expiries(job, destination, view->exists);
}
