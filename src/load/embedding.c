/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the records to embed, and reports their outcome. A separate load reads these records, so
 * this file and load.c call each other. */
#include "embedding.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "format/key_fields.h"
#include "job/embed_store.h"
#include "job/sources.h"
#include "job/types.h"
#include "ledger/rejects.h"
#include "report/json.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#include "load.h"
#include "worker.h"

#define HEAD_DOCUMENTS 100u /* examined before a load begins */
#define HEAD_ROOM (SL_SNIFF_BYTES * 64)

typedef struct sl_preparation {
    sl_job *job;
    sl_embed *embed;
    char folder[SL_PARTITION_PATH], records[SL_PARTITION_PATH], load[SL_PARTITION_PATH];
    sl_error *error;
} sl_preparation;

/* ---- the first documents ---- */

static bool no_more(sl_sink *sink, size_t need) {
    (void)sink, (void)need;
    return false;
}

static void ignore_reject(sl_sink *sink, const sl_reject *reject) {
    (void)sink, (void)reject;
}

/* The names of a document's fields, separated by commas. */
static char *list_fields(const bson_t *document, char *out, size_t room) {
    bson_iter_t iter;
    size_t used = 0;
    out[0] = '\0';
    for (bool more = bson_iter_init(&iter, document) && bson_iter_next(&iter); more && used < room;
         more = bson_iter_next(&iter))
        used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "",
                                 bson_iter_key(&iter));
    return out;
}

/* Does the header or the schema name the field, or the JSON that contains it? */
static bool is_column(const sl_job_source *source, const char *name) {
    char part[400];
    if (source->format->key_of(source->dialect, name))
        return true;
    const size_t length = strcspn(name, ".");
    if (!name[length] || length >= sizeof part)
        return false;
    memcpy(part, name, length);
    part[length] = '\0';
    return source->format->key_of(source->dialect, part) != NULL;
}

/* Are all these fields columns? Then later records may have them. */
static bool are_columns(const sl_job *job, const sl_job_source *source, const char *const *names,
                        size_t count) {
    const bool ids = job->config->format_options.id_fields != NULL;
    size_t known = 0;
    while (known < count && source->format->key_of &&
           ((ids && strncmp(names[known], "_id", 3) == 0) || is_column(source, names[known])))
        known++;
    return known == count;
}

/* The types of the keys in the first documents of a job, as sl_join_key_letters; "": unknown,
 * because the records are not lines, or the first lines of a table have empty fields. An error if
 * none of these documents has a key and no column has its name. */
static bool look_at_head(sl_job *job, const char *const *names, size_t count,
                         char letters[SL_JOIN_FIELDS_MAX + 1], sl_error *error) {
    size_t length;
    bool whole;
    const sl_job_source *source = sl_sources_first(job);
    const size_t index = (size_t)(source - job->sources);
    letters[0] = '\0';
    if (source->divided && source->format->key_of && !are_columns(job, source, names, count))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--on: %s has no column of this name; shardload inspect shows its "
                            "columns",
                            sl_source_set_at(job->set, index)->shown);
    if (source->divided)
        return true;
    char *head = malloc(SL_SNIFF_BYTES + SL_SLACK);
    uint8_t *bytes = malloc(HEAD_ROOM + SL_SLACK);
    uint64_t offsets[HEAD_DOCUMENTS];
    bool ok = (head && bytes) || sl_error_memory(error, "examining the sources");
    ok = ok && sl_source_head(job->set, index, head, SL_SNIFF_BYTES, &length, &whole, NULL, error);
    if (ok) {
        while (!whole && length > 0 && head[length - 1] != '\n')
            length--;
        memset(head + length, 0, SL_SLACK);
        sl_sink sink = {.cursor = bytes,
                        .limit = bytes + HEAD_ROOM,
                        .documents_limit = HEAD_DOCUMENTS,
                        .offsets = offsets,
                        .full = no_more,
                        .reject = ignore_reject};
        sl_parse_counts counts = {0};
        const sl_block block = {.text = {head, length}};
        source->format->parse(sl_sources_plan(job, source->format), source->dialect, &block, &sink,
                              &counts);
        const uint8_t *at = bytes;
        bson_t document;
        uint8_t key[SL_JOIN_KEY_ROOM];
        size_t key_length = 0;
        for (uint32_t i = 0; key_length == 0 && i < sink.documents; i++) {
            bson_init_static(&document, at, sl_bson_length(at));
            key_length = sl_join_key_of(&document, names, count, key);
            at += document.len;
        }
        sl_join_key_letters(key, key_length, letters);
        if (sink.documents > 0 && key_length == 0 && !are_columns(job, source, names, count)) {
            char fields[400], wanted[200] = "";
            for (size_t i = 0; i < count; i++)
                snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s",
                         i ? ", " : "", names[i]);
            ok = sl_error_set(error, SL_EXIT_USAGE,
                              "--on: the first %u records of %s have no %s; their fields are %s",
                              sink.documents, sl_source_set_at(job->set, index)->shown, wanted,
                              list_fields(&document, fields, sizeof fields));
        }
    }
    free(head);
    free(bytes);
    return ok;
}

static bool compare_types(const sl_preparation *preparation, const char *documents,
                          const char *records) {
    for (size_t i = 0; documents[i] && records[i]; i++) {
        if (!sl_join_may_equal(documents[i], records[i]))
            return sl_error_set(
                preparation->error, SL_EXIT_USAGE,
                "--on: %s is %s, and %s of %s is %s, so they are never equal; give "
                "both one type, with --schema and --embed-schema",
                preparation->embed->join.documents[i], sl_join_letter_name(documents[i]),
                preparation->embed->join.records[i], preparation->job->config->embed_path,
                sl_join_letter_name(records[i]));
    }
    return true;
}

/* ---- the file "sources" ----
 *
 * It has of each source of the records the fingerprint and the identity, as in a journal, and a
 * hash of all their text. It is written before "complete", so every store has one. A fingerprint
 * covers only the beginning and the end of a file. So the rules are those of the journal
 * (ledger.c). */

#define TEXT_ROOM sizeof((sl_embed *)NULL)->text /* 16 hexadecimal digits */

static const char *path_of(const char *folder, char path[SL_PARTITION_PATH + 16]) {
    snprintf(path, SL_PARTITION_PATH + 16, "%s/sources", folder);
    return path;
}

static const char *digits_of(uint64_t text, char out[TEXT_ROOM]) {
    snprintf(out, TEXT_ROOM, "%016llx", (unsigned long long)text);
    return out;
}

/* `text`: the sum of sl_divided_text. */
static bool sources_write(const char *folder, const sl_job *records, uint64_t text,
                          sl_error *error) {
    char path[SL_PARTITION_PATH + 16], digits[TEXT_ROOM];
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "text", digits_of(text, digits));
    sl_earlier_append_sources(&document, records);
    sl_types_append(records, &document);
    bool ok = sl_json_write_file(path_of(folder, path), &document, error);
    bson_destroy(&document);
    return ok;
}

/* Reads the hash of the text of the records in the store. */
static bool sources_read_text(const char *folder, char text[TEXT_ROOM], sl_error *error) {
    char path[SL_PARTITION_PATH + 16];
    bson_t *stored;
    if (!sl_json_read_private(path_of(folder, path), &stored, error))
        return false;
    snprintf(text, TEXT_ROOM, "%s", sl_look_string(stored, "text"));
    bson_destroy(stored);
    return true;
}

/* Did the load with this run record read these sources, and are they unchanged since the job has
 * opened them? The identities show a change only if they were taken before the load began. */
static bool sources_were_read(const sl_job *records, const bson_t *run_record, sl_error *error) {
    size_t index = 0, count = sl_source_set_count(records->set);
    bool same = true;
    for (sl_walk walk = sl_walk_start(run_record, "sources"); same && sl_walk_next(&walk);
         index++) {
        const char *text = sl_look_string(&walk.item, "fingerprint");
        const sl_job_source *source = &records->sources[index];
        same = index < count && strcmp(text, source->skipped ? "" : source->fingerprint) == 0;
    }
    if (!same || index != count)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s has changed while it was read; start the load again",
                            records->config->paths[0]);
    return sl_source_set_unchanged(records->set, error);
}

/* Reads all sources, and computes the sum that `sl_divided.text` was while the store was made. */
static bool hash_text(sl_job *records, uint64_t *sum, sl_error *error) {
    sl_reader *reader = NULL;
    sl_source_block block;
    sl_read_result result = SL_READ_BLOCK;
    *sum = 0;
    sl_source_set_report_skipped(records->set, NULL, NULL); /* reported when the store was made */
    bool ok = sl_reader_create(records->set, &reader, error);
    while (ok && result == SL_READ_BLOCK) {
        result = sl_reader_next(reader, &block, error);
        ok = result != SL_READ_FAILED;
        if (result == SL_READ_BLOCK)
            *sum += sl_divided_text(&block);
        if (ok && sl_interrupt_requested())
            ok = sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    }
    sl_reader_destroy(reader);
    return ok && sl_source_set_unchanged(records->set, error);
}

/* Do the records have the types with which they were stored? */
static bool same_types(const sl_job *records, const bson_t *stored) {
    bson_t now = BSON_INITIALIZER, types, was;
    sl_types_append(records, &now);
    bool is = sl_look_inside(&now, "types", &types), had = sl_look_inside(stored, "types", &was);
    char *here = is ? sl_document_json(&types) : NULL;
    char *there = had ? sl_document_json(&was) : NULL;
    bool same = is == had && (!is || (here && there && strcmp(here, there) == 0));
    bson_free(here);
    bson_free(there);
    bson_destroy(&now);
    return same;
}

/* With `exact`, files with another inode or ctime, and other types count as different. Otherwise
 * the text of such files is read and compared, like the text of the main sources, and the records
 * get the types with which they were stored. */
static bool sources_compare(const char *folder, sl_job *records, bool exact, bool *same,
                            sl_sources_difference *difference, sl_error *error) {
    char path[SL_PARTITION_PATH + 16], digits[TEXT_ROOM];
    bson_t *stored;
    uint64_t text;
    if (!sl_json_read_private(path_of(folder, path), &stored, error))
        return false;
    bool ok = true;
    *same = sl_earlier_compare_sources(stored, records, difference);
    if (*same && exact) {
        *same = difference->compare == 0 && same_types(records, stored);
    } else if (*same && difference->compare > 0) {
        sl_earlier_log_compared(difference, "their records were stored");
        ok = hash_text(records, &text, error);
        *same = ok && strcmp(digits_of(text, digits), sl_look_string(stored, "text")) == 0;
        snprintf(difference->how, sizeof difference->how, "%s",
                 *same ? "" : "its text is not the same");
    }
    ok = ok && (exact || !*same || sl_types_restore(records, stored, error));
    bson_destroy(stored);
    return ok;
}

/* ---- the records to embed ---- */

/* The options of the main load that the load of the records does not get: the field of its
 * configuration is 0, and the content of the store does not depend on the option. All other options
 * that change documents are part of the identity of the store. */
#define NOT_PASSED(option, field)                                                                  \
    { option, offsetof(sl_load_config, field), sizeof((sl_load_config *)NULL)->field }
static const struct not_passed {
    const char *option;
    size_t at, size;
} not_passed[] = {
    NOT_PASSED("format", format),
    NOT_PASSED("include", include),
    NOT_PASSED("schema", format_options.schema_text),
    NOT_PASSED("schema", format_options.schema_name),
    NOT_PASSED("mode", format_options.mode),
    NOT_PASSED("match-fields", format_options.match_fields),
    NOT_PASSED("id-field", format_options.id_fields),
    NOT_PASSED("header", format_options.header),
    NOT_PASSED("columns", format_options.columns),
    NOT_PASSED("skip-lines", format_options.skip_lines),
};
#define NOT_PASSED_COUNT (sizeof not_passed / sizeof not_passed[0])

/* The configuration of the load that reads the records. */
static void configure(sl_preparation *preparation) {
    sl_load_config *config = &preparation->embed->config;
    const sl_load_config *of = preparation->job->config;
    *config = (sl_load_config){
        .program_version = of->program_version,
        .options = of->options,
        .paths = &of->embed_path,
        .path_count = 1,
        .skip_other = of->skip_other,
        .format_options = of->embed_format_options,
        .sink = SL_SINK_DIVIDED,
        .divided = &preparation->embed->divided,
        .database = of->database,
        .collection = of->collection,
        .write_concern = of->write_concern,
        .threads = of->threads,
        .batch_documents = of->batch_documents ? of->batch_documents : 20000,
        .batch_bytes = of->batch_bytes ? of->batch_bytes : (size_t)4 << 20,
        .work_directory = preparation->load,
        .rejects_max = of->rejects_max,
        .rejects_max_share = of->rejects_max_share,
        .rejects_auto = of->rejects_auto,
        .progress = of->progress == SL_PROGRESS_JSON ? SL_PROGRESS_NONE : of->progress,
        .sample = 1,
        .part_of_trial = true,
    };
    config->format_options.declared = NULL; /* of the documents */
    config->format_options.array = of->embed_field;
    for (size_t i = 0; i < NOT_PASSED_COUNT; i++)
        memset((char *)config + not_passed[i].at, 0, not_passed[i].size);
    config->format_options.schema_text = of->embed_format_options.schema_text;
    config->format_options.schema_name = of->embed_format_options.schema_name;
    config->format = config->format_options.schema_text ? "delimited" : "auto";
}

/* Opens the sources of the records, and finds the keys and their types. */
static bool look_at_records(sl_preparation *preparation, char *letters) {
    sl_job *records = &preparation->embed->records;
    sl_error *error = preparation->error;
    sl_join *join = &preparation->embed->join;
    sl_embed_keys keys;
    if (!sl_sources_open(records, error))
        return false;
    if (records->has_pipe)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--embed %s: a pipe cannot be read twice; name a file",
                            preparation->embed->config.paths[0]);
    const sl_job_source *first = sl_sources_first(records);
    sl_embed_keys_find(first->format, first->dialect, NULL, join->records, join->count, &keys);
    for (size_t i = 0; i < join->count; i++) {
        preparation->embed->divided.keys[i] = strdup(keys.names[i]);
        if (!preparation->embed->divided.keys[i])
            return sl_error_memory(error, "reading --on");
    }
    preparation->embed->divided.key_count = join->count;
    return look_at_head(records, keys.names, join->count, letters, error);
}

static bool is_passed(const char *option) {
    for (size_t i = 0; i < NOT_PASSED_COUNT; i++) {
        if (strcmp(not_passed[i].option, option) == 0)
            return false;
    }
    return true;
}

/* A hash of the options that change the content of the store. */
static void identify(sl_preparation *preparation, char *identity, size_t room) {
    bson_t options = BSON_INITIALIZER;
    bson_iter_t iter;
    bool more = bson_iter_init(&iter, preparation->job->config->document_options);
    while (more && bson_iter_next(&iter)) {
        if (is_passed(bson_iter_key(&iter)))
            bson_append_iter(&options, NULL, 0, &iter);
    }
    snprintf(identity, room, "%016llx",
             (unsigned long long)sl_hash(bson_get_data(&options), options.len));
    bson_destroy(&options);
}

/* Reads the records with a separate load, and divides them by key. */
static bool read_records(sl_preparation *preparation, sl_store_facts *facts) {
    const sl_load_config *config = preparation->job->config;
    bson_t record = BSON_INITIALIZER, types = BSON_INITIALIZER;
    sl_error *error = preparation->error;
    char log[SL_PARTITION_PATH + 32];
    sl_types_append(&preparation->embed->records, &types);
    preparation->embed->config.run_record = &record;
    preparation->embed->config.types = &types;
    sl_exit code = sl_load_run(&preparation->embed->config);
    bson_destroy(&types);
    /* The separate load has its own log file. */
    snprintf(log, sizeof log, "%.*s/" SL_WORK_LOG, (int)(strlen(preparation->folder) - 6),
             preparation->folder);
    bool ok = sl_log_open_file(log, error);
    if (ok && code == SL_EXIT_INTERRUPTED)
        ok = sl_error_set(error, code, "interrupted before anything was loaded");
    else if (ok && !sl_exit_is_complete(code))
        ok = sl_error_set(error, code, "--embed: the records of %s could not be read (see above)",
                          config->embed_path);
    ok = ok && sources_were_read(&preparation->embed->records, &record, error);
    facts->rejects = (uint64_t)sl_look_int64(&record, "accounting.rejectedByParser", 0);
    facts->records = (uint64_t)sl_look_int64(&record, "accounting.inserted", 0);
    facts->left_out = (uint64_t)sl_look_int64(&record, "accounting.malformedFields", 0);
    facts->not_loaded = (uint64_t)sl_look_int64(&record, "notLoaded.count", 0);
    facts->without_key = atomic_load(&preparation->embed->divided.without_key);
    bson_destroy(&record);
    return ok;
}

static bool make_store(sl_preparation *preparation, sl_store_facts *facts) {
    char path[SL_PARTITION_PATH + 32];
    const sl_load_config *config = preparation->job->config;
    snprintf(path, sizeof path, "%s/complete", preparation->folder);
    sl_private_file_remove(path);
    sl_private_folder_sync(preparation->folder);
    facts->seed = preparation->embed->divided.seed = sl_process_seed();
    sl_log_info("reading %s, whose records are embedded as %s", config->embed_path,
                config->embed_field);
    sl_types_log(&preparation->embed->records);
    return read_records(preparation, facts) &&
           sources_write(preparation->folder, &preparation->embed->records,
                         atomic_load(&preparation->embed->divided.text), preparation->error) &&
           sl_store_build(preparation->folder, SL_SORTED_AT_ONCE, facts, preparation->error);
}

/* ---- the phase ---- */

/* The error that the sources are not those of the store, which must not be made again. */
static bool refuse_sources(const sl_preparation *preparation,
                           const sl_sources_difference *difference) {
    char restore[200] = "give it again as it was";
    const sl_load_config *config = preparation->job->config;
    if (difference->modified[0])
        snprintf(restore, sizeof restore,
                 "if you know that its text is the same, restore its modification time (touch -d "
                 "%s), and its text will be compared",
                 difference->modified);
    return sl_error_set(
        preparation->error, SL_EXIT_SOURCE,
        config->resume ? "--embed: %.200s has changed since the load began: %s; %s. Otherwise "
                         "start a new load: without --resume, with --drop and another --work-dir"
                       : "--embed: %.200s has changed since its records were stored in the work "
                         "directory: %s; %s. To compare with its present text, name another "
                         "--work-dir; to load that text, start a new load with --drop",
        config->embed_path, difference->how, restore);
}

/* Was the store in the folder made with these options? An error if it was not, and must not be made
 * again (`kept`). */
static bool same_options(sl_preparation *preparation, bool kept, bool *same) {
    const sl_store_facts *facts = &preparation->embed->facts;
    char identity[sizeof facts->identity];
    identify(preparation, identity, sizeof identity);
    *same = facts->format == SL_STORE_FORMAT && strcmp(facts->identity, identity) == 0;
    return *same || !kept ||
           sl_error_set(preparation->error, SL_EXIT_USAGE,
                        facts->format != SL_STORE_FORMAT
                            ? "%s was written by another version of shardload; %s"
                            : "%s has the records of another --embed or --on; %s",
                        preparation->folder,
                        preparation->job->config->resume
                            ? "start a new load: without --resume, with --drop and another "
                              "--work-dir"
                            : "name another --work-dir, in which the records are stored again");
}

/* A store that was made with --skip-other may be without some files and entries. */
static bool has_all(const sl_preparation *preparation) {
    const uint64_t count = preparation->embed->facts.not_loaded;
    const sl_load_config *config = preparation->job->config;
    return count == 0 || config->skip_other ||
           sl_error_set(preparation->error, SL_EXIT_SOURCE,
                        "--embed: %s of %s %s not read when its records "
                        "were stored in %s; --skip-other skips them",
                        sl_plural(count, "file[s] or archive entr[y|ies]"), config->embed_path,
                        sl_agreeing(count, "[was|were]"), preparation->folder);
}

/* Is there a store of these sources and options? Reads its facts. An error if there is another one,
 * and the load is a resume, or a verification, which must not replace the store of a load. */
static bool find_store(sl_preparation *preparation, sl_store_keys used, bool *found) {
    sl_sources_difference difference;
    sl_error *error = preparation->error;
    bool resume = preparation->job->config->resume, kept = resume || used == SL_STORE_READ_ONLY;
    if (!sl_store_read_facts(preparation->folder, found, &preparation->embed->facts, error))
        return false;
    if (!*found)
        return used != SL_STORE_CONTINUED ||
               sl_error_set(error, SL_EXIT_SOURCE,
                            "--embed: the records of %s are no longer in the work directory; load "
                            "without --resume, with another --work-dir",
                            preparation->job->config->embed_path);
    if (!same_options(preparation, kept, found))
        return false;
    if (!*found)
        return true;
    return sources_compare(preparation->folder, &preparation->embed->records, !kept, found,
                           &difference, error) &&
           (*found || !kept || refuse_sources(preparation, &difference)) &&
           (!*found || has_all(preparation));
}

/* Gives the columns of the records the types that they have in the collection. */
static bool adopt_types(sl_preparation *preparation, sl_destination *destination,
                        sl_store_keys used) {
    sl_job *job = preparation->job;
    const bool comparing = used == SL_STORE_READ_ONLY;
    if (!destination->connection || used == SL_STORE_CONTINUED || job->config->part_of_trial ||
        (!comparing && job->config->drop))
        return true;
    if (!comparing)
        sl_target_configure(destination, job, job->resumed);
    return sl_registry_open_settled(destination->connection, &destination->target,
                                    comparing ? SL_SETTLE_READ : SL_SETTLE_LOOK,
                                    job->config->again || job->resumed, &destination->registry,
                                    preparation->error) &&
           sl_types_adopt(&preparation->embed->records, destination, comparing, preparation->error);
}

static bool open_store(sl_preparation *preparation, sl_destination *destination,
                       sl_store_keys used) {
    sl_embed *embed = preparation->embed;
    sl_store_facts *facts = &embed->facts;
    sl_error *error = preparation->error;
    char documents[SL_JOIN_FIELDS_MAX + 1], records[SL_JOIN_FIELDS_MAX + 1] = "";
    sl_embed_keys keys;
    bool found;
    const sl_job_source *first = sl_sources_first(preparation->job);
    sl_embed_keys_find(first->format, first->dialect, embed->id_fields, embed->join.documents,
                       embed->join.count, &keys);
    if (!look_at_head(preparation->job, keys.names, embed->join.count, documents, error) ||
        !look_at_records(preparation, records) || !compare_types(preparation, documents, records) ||
        !adopt_types(preparation, destination, used) || !find_store(preparation, used, &found))
        return false;
    if (!found) {
        *facts = (sl_store_facts){.records = 0};
        identify(preparation, facts->identity, sizeof facts->identity);
        if (!make_store(preparation, facts))
            return false;
    }
    const sl_load_config *config = preparation->job->config;
    const sl_mode_row *mode = sl_load_mode(config);
    if (facts->records == 0 && used == SL_STORE_UNUSED) {
        if (config->drop || (mode->matches && !mode->sets_fields))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "--embed %s: there is no record in it, only headers and blank "
                                "lines; to remove %s from the stored documents, load without "
                                "--embed",
                                config->embed_path, embed->field);
        sl_log_warning("--embed %s: there is no record in it, so no document has %s",
                       config->embed_path, embed->field);
    }
    if (facts->keys == 0 && facts->records > 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE, "--embed %s: no record has values in all fields of --on %s",
            preparation->job->config->embed_path, preparation->job->config->embed_on);
    return sources_read_text(preparation->folder, embed->text, error) &&
           sl_store_open(preparation->folder, facts, used, &embed->store, error) &&
           (!found || sl_store_check(embed->store, preparation->folder, error));
}

static bool begin(sl_preparation *preparation, const char *work_directory) {
    const sl_load_config *config = preparation->job->config;
    snprintf(preparation->folder, sizeof preparation->folder, "%s/" SL_WORK_EMBED, work_directory);
    snprintf(preparation->records, sizeof preparation->records, "%.600s/records",
             preparation->folder);
    snprintf(preparation->load, sizeof preparation->load, "%.600s/load", preparation->folder);
    preparation->embed = calloc(1, sizeof *preparation->embed);
    if (!preparation->embed)
        return sl_error_memory(preparation->error, "embedding records");
    preparation->embed->divided =
        (sl_divided){.field = config->embed_field, .folder = preparation->records};
    configure(preparation);
    sl_job_init(&preparation->embed->records, &preparation->embed->config);
    stat(config->embed_path, &preparation->embed->source); /* if it fails, so does the reading */
    preparation->embed->field = config->embed_field;
    preparation->embed->id_fields = preparation->job->keys ? &preparation->job->keys->id : NULL;
    return sl_join_parse(config->embed_on, &preparation->embed->join, preparation->error);
}

bool sl_embedding_open(sl_job *job, sl_destination *destination, const char *work_directory,
                       sl_store_keys keys, sl_error *error) {
    sl_preparation preparation = {.job = job, .error = error};
    bool ok = begin(&preparation, work_directory) &&
              sl_private_folder_make(preparation.folder, NULL, error) &&
              open_store(&preparation, destination, keys);
    sl_embed *embed = preparation.embed;
    if (!ok) {
        sl_embed_destroy(embed);
        return false;
    }
    sl_log_info("embedding %s: %s of %s, with %s", embed->field,
                sl_plural(embed->facts.records, "record"), job->config->embed_path,
                sl_plural(embed->facts.keys, "different key"));
    job->embed = embed;
    return true;
}

bool sl_embedding_check(sl_job *job, const char *work_directory, sl_error *error) {
    sl_preparation preparation = {.job = job, .error = error};
    char letters[SL_JOIN_FIELDS_MAX + 1];
    bool there;
    bool ok = begin(&preparation, work_directory) &&
              sl_store_read_facts(preparation.folder, &there, &preparation.embed->facts, error);
    if (ok && there)
        ok = look_at_records(&preparation, letters) &&
             find_store(&preparation, SL_STORE_READ_ONLY, &there);
    sl_embed_destroy(preparation.embed);
    return ok;
}

bool sl_embedding_finish(sl_job *job, const char *work_directory, sl_error *error) {
    char folder[SL_PARTITION_PATH], path[SL_PARTITION_PATH + 16];
    sl_embed *embed = job->embed;
    struct stat now;
    if (!embed)
        return true;
    snprintf(folder, sizeof folder, "%s/" SL_WORK_EMBED, work_directory);
    snprintf(path, sizeof path, "%s/unmatched.json", folder);
    if (!sl_embed_write_unmatched(embed, folder, path, &embed->unmatched, error))
        return false;
    const struct stat *old = &embed->source;
    if (stat(job->config->embed_path, &now) != 0 || now.st_ino != old->st_ino ||
        now.st_size != old->st_size || now.st_mtim.tv_sec != old->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != old->st_mtim.tv_nsec)
        sl_log_warning("%s has changed since its records were read: the documents have them as "
                       "they were",
                       job->config->embed_path);
    if (embed->unmatched > 0)
        sl_log_warning("%s of %s %s in no document: see %s", sl_plural(embed->unmatched, "record"),
                       job->config->embed_path, sl_agreeing(embed->unmatched, "[is|are]"), path);
    if (embed->facts.rejects > 0)
        sl_log_warning("%s of %s %s rejected: see %s/load/" SL_WORK_REJECTS,
                       sl_plural(embed->facts.rejects, "record"), job->config->embed_path,
                       sl_agreeing(embed->facts.rejects, "[is|are]"), folder);
    return true;
}

void sl_embedding_log_rejects(const sl_job *job, const char *work_directory) {
    char path[SL_PARTITION_PATH], of[600];
    bson_t *record;
    sl_error error;
    if (!job->embed || job->embed->facts.rejects == 0)
        return;
    snprintf(path, sizeof path, "%s/" SL_WORK_EMBED "/load/" SL_WORK_RECORD, work_directory);
    if (!sl_json_read_private(path, &record, &error)) /* the reasons are in rejects.tsv, too */
        return;
    snprintf(of, sizeof of, "%.500s (--embed %.60s)", job->config->embed_path,
             job->config->embed_field);
    sl_reject_summary_log(record, of);
    bson_destroy(record);
}

void sl_embedding_record(const sl_job *job, bson_t *record) {
    const sl_embed *embed = job->embed;
    bson_t section;
    if (!embed)
        return;
    const struct {
        const char *name;
        uint64_t number;
    } rows[] = {
        {"records", embed->facts.records + embed->facts.rejects},
        {"rejected", embed->facts.rejects},
        {"valuesLeftOut", embed->facts.left_out},
        {"withoutKey", embed->facts.without_key},
        {"tooManyOfOneKey", embed->facts.too_many},
        {"keys", embed->facts.keys},
        {"unmatched", embed->unmatched},
        {"documentsWith", atomic_load(&embed->documents)},
        {"embedded", atomic_load(&embed->embedded)},
        {"documentsWithoutKey", atomic_load(&embed->keyless)},
        {"storeBytes", embed->facts.group_bytes},
    };
    BSON_APPEND_DOCUMENT_BEGIN(record, "embed", &section);
    BSON_APPEND_UTF8(&section, "field", embed->field);
    BSON_APPEND_UTF8(&section, "source", job->config->embed_path);
    BSON_APPEND_UTF8(&section, "on", job->config->embed_on);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        BSON_APPEND_INT64(&section, rows[i].name, (int64_t)rows[i].number);
    bson_append_document_end(record, &section);
}

/* ---- the sink of the records ---- */

/* The sink of the records to embed: writes each to the partition of its join key.
 *
 * A record is stored in the form in which it will be embedded: without the fields of its key, which
 * the outer document has, and without an _id that was made from its position. */

typedef struct sl_dividing {
    sl_divided *options;
    sl_partitions *partitions;
} sl_dividing;

struct sl_outlet {
    sl_dividing *to;
    sl_partition_writer *writer;
    uint8_t *document; /* the record in the form in which it will be embedded */
    size_t room;
};

static bool divided_open(const sl_sending *sending, void **shared, sl_error *error) {
    sl_dividing *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "dividing the records to embed");
    made->options = sending->config->divided;
    if (!sl_partitions_create(made->options->folder, 0, &made->partitions, error)) {
        free(made);
        return false;
    }
    *shared = made;
    return true;
}

static bool divided_close(void *shared, sl_error *error) {
    sl_dividing *dividing = shared;
    if (!dividing)
        return true;
    bool ok = sl_partitions_close(dividing->partitions, error);
    free(dividing);
    return ok;
}

static bool outlet_create(const sl_sending *sending, void *shared, sl_outlet **outlet,
                          sl_error *error) {
    (void)sending;
    sl_dividing *dividing = shared;
    sl_outlet *made = calloc(1, sizeof *made);
    if (made) {
        made->to = dividing;
        made->writer = sl_partition_writer_create(dividing->partitions);
    }
    if (!made || !made->writer) {
        free(made);
        return sl_error_memory(error, "starting writers");
    }
    *outlet = made;
    return true;
}

static void outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    sl_partition_writer_destroy(outlet->writer);
    free(outlet->document);
    free(outlet);
}

/* Copies the fields of the record that are embedded; returns the length. `outlet` has room for the
 * complete record. */
static size_t copy_embedded(sl_outlet *outlet, const bson_t *record, bool without_key,
                            bool without_id) {
    const uint8_t *bytes = bson_get_data(record), *from = NULL;
    uint8_t *to = outlet->document + 4;
    bson_iter_t iter;
    bool more = bson_iter_init(&iter, record) && bson_iter_next(&iter);
    while (more) {
        const char *name = bson_iter_key(&iter);
        bool wanted = !(without_key && sl_is_listed(name, outlet->to->options->keys,
                                                    outlet->to->options->key_count)) &&
                      !(without_id && strcmp(name, "_id") == 0);
        from = bytes + bson_iter_offset(&iter);
        more = bson_iter_next(&iter);
        const uint8_t *end = more ? bytes + bson_iter_offset(&iter) : bytes + record->len - 1;
        if (wanted) {
            memcpy(to, from, (size_t)(end - from));
            to += end - from;
        }
    }
    *to++ = 0;
    sl_bson_put_int32(outlet->document, (int32_t)(to - outlet->document));
    return (size_t)(to - outlet->document);
}

static bool write_record(sl_outlet *outlet, const bson_t *record, uint32_t source,
                         const uint64_t *offset, sl_error *error) {
    const sl_divided *options = outlet->to->options;
    uint8_t key[SL_JOIN_KEY_ROOM];
    bson_iter_t iter;
    if (record->len > outlet->room) {
        free(outlet->document);
        outlet->room = 2 * (size_t)record->len;
        outlet->document = malloc(outlet->room);
        if (!outlet->document) {
            outlet->room = 0;
            return sl_error_memory(error, "dividing the records to embed");
        }
    }
    /* The position is in the _id, or beside the document if documents may have their own _id. */
    bool int64_id = bson_iter_init_find(&iter, record, "_id") && BSON_ITER_HOLDS_INT64(&iter);
    int64_t id = int64_id ? bson_iter_int64(&iter) : 0;
    uint64_t at = offset ? *offset : sl_document_id_offset(id);
    bool made_id = int64_id && id == sl_document_id(source, at);
    size_t key_length = sl_join_key_of(record, options->keys, options->key_count, key);
    if (key_length == 0)
        atomic_fetch_add_explicit(&outlet->to->options->without_key, 1, memory_order_relaxed);
    size_t length = copy_embedded(outlet, record, key_length > 0, made_id);
    return sl_partition_write(outlet->writer, key, key_length,
                              sl_seeded_hash(key, key_length, options->seed),
                              sl_record_position(source, at), outlet->document, length, error);
}

uint64_t sl_divided_text(const sl_source_block *block) {
    const uint64_t words[] = {block->source, block->offset, sl_resume_check(block)};
    return block->text.length ? sl_hash((const uint8_t *)words, sizeof words) : 0;
}

/* A batch counts as written once the buffers have been flushed: there may be no next batch to flush
 * them. */
static bool divided_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                         refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context;
    const uint8_t *at = batch->bytes;
    const uint64_t *offset = batch->offsets;
    for (size_t s = 0; s < batch->segment_count; s++) {
        const sl_batch_segment *segment = &batch->segments[s];
        for (uint32_t i = 0; i < segment->documents; i++) {
            bson_t record;
            uint32_t length = sl_bson_length(at);
            uint32_t source = sl_document_id_source(segment->open_block->first_id);
            if (!bson_init_static(&record, at, length) ||
                !write_record(outlet, &record, source, offset, error))
                return error->code ? false
                                   : sl_error_set(error, SL_EXIT_SOURCE,
                                                  "a record to embed is not a valid document");
            at += length;
            if (offset)
                offset++;
        }
    }
    result->inserted = batch->documents;
    return sl_partition_flush(outlet->writer, error);
}

const sl_sink_type sl_sink_divided = {
    .name = "divided",
    .within_load = true,
    .open = divided_open,
    .close = divided_close,
    .outlet_create = outlet_create,
    .outlet_destroy = outlet_destroy,
    .send = divided_send,
};
