/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload verify`: compares the blocks of the sources with the documents that the cluster holds
 * under their ids, searches the ids outside these blocks, lists the differences, and reports the
 * totals. Neither sources nor cluster are changed. */
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/decision.h"
#include "job/job.h"
#include "job/numbers.h"
#include "job/sources.h"
#include "job/types.h"
#include "ledger/unregistered.h"
#include "ledger/work_directory.h"
#include "load/embedding.h"
#include "load/progress.h"
#include "load/record.h"
#include "load/run.h"
#include "report/json.h"
#include "report/run_record.h"
#include "send/duplicates.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/load_counts.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text_table.h"

#define DETAIL_ROOM 600                /* of the text that describes a difference */
#define SLICE_BYTES ((size_t)16 << 20) /* of documents compared at once; few blocks have more */
#define ROWS_SHOWN 40
#define TABLE_BYTES_MAX ((uint64_t)64 << 20)
#define NAME_ROOM 80

static const char *const problem_names[] = {"missing", "different", "extra", "rejected"};

/* One missing, different or extra document. */
typedef struct sl_problem {
    sl_finding finding;
    bool placed;       /* its _id belongs to one of the sources: `source` and `offset` are set */
    size_t source;     /* index into the set */
    const char *entry; /* entry of an archive, or NULL */
    uint64_t offset; /* in the source's uncompressed stream; for generated records, as in the _id */
    char *id;        /* as JSON */
    char *detail;    /* the difference in words, or NULL */
} sl_problem;

/* Problems are written to problems.tsv, ordered only within a block, until it has TABLE_BYTES_MAX
 * bytes: a server may send extra documents without end. The first ones are also logged. */
typedef struct sl_problems {
    pthread_mutex_t lock;
    const sl_source_set *set;
    FILE *table;         /* or NULL */
    uint64_t bytes_left; /* of the table */
    uint64_t count, shown_max;
} sl_problems;

/* The totals of one range. A hash is the sum of the hashes of its documents. */
typedef struct sl_range_totals {
    _Atomic uint64_t expected, found, missing, different, extra;
    _Atomic uint64_t expected_hash, found_hash;
} sl_range_totals;

/* The state of one verification. */
typedef struct sl_verification {
    sl_job job;
    sl_destination destination;
    sl_run run;
    sl_run_record *record;
    char work_directory[SL_WORK_DIRECTORY_ROOM]; /* "" when there is none */
    sl_work_directory_lock directory_lock;
    const char *report;      /* path from the config; NULL if it cannot be written */
    bool content;            /* compare documents, instead of counting them */
    sl_range_totals *ranges; /* one per range of the load, and one for all ids outside the ranges */
    sl_problems *problems;
    bson_t *other_sources; /* those with extra documents, for the record; NULL: none */
    uint32_t *registered;  /* the numbers of all registered sources */
    size_t registered_count;
    uint64_t foreign;      /* documents of other programs that were stored when the load ended */
    uint64_t rejects;      /* records that the parser rejects, and which were not compared */
    bool only_known;       /* none of the documents outside of the registered sources is extra */
    _Atomic uint64_t *ids; /* sums over the _ids of the records found; see add_id */
    _Atomic uint64_t missing_ids, different_ids; /* sl_id_sum over missing; different records */
    bool guessed; /* the _ids of some missing records are not known */
    bool lost;    /* the collection has fewer documents than its loads have stored */

    pthread_mutex_t lock;
    sl_interval *covered; /* intervals that have been compared; guarded by the lock */
    size_t covered_count, covered_room;
} sl_verification;

/* ---- problems: missing, different and extra documents ---- */

static void problem_clear(sl_problem *problem) {
    free(problem->id);
    bson_free(problem->detail);
}

static void set_place(sl_problem *problem, const sl_job *job, size_t likely, int64_t id) {
    uint32_t number = sl_document_id_source(id);
    size_t count = sl_source_set_count(job->set), i = likely;
    if (job->sources[i].number != number)
        i = 0;
    while (i < count && (job->sources[i].skipped || job->sources[i].number != number))
        i++;
    problem->placed = i < count;
    problem->source = i;
    problem->offset = sl_document_id_offset(id);
}

/* Returns a problem, with the position that is its _id; the source with index `likely` is checked
 * first. `expected` and `found` as in duplicates.h. */
static sl_problem problem_of(const sl_job *job, sl_finding finding, size_t likely,
                             const uint8_t *expected, const bson_t *found) {
    sl_problem made = {.finding = finding};
    bson_t view;
    bson_iter_t iter;
    char text[DETAIL_ROOM];
    if (finding == SL_DIFFERENT)
        made.detail = bson_strdup(sl_difference(expected, found, text, sizeof text));
    if (!found && bson_init_static(&view, expected, sl_bson_length(expected)))
        found = &view;
    if (found && bson_iter_init_find(&iter, found, "_id")) {
        made.id = sl_json_value(&iter);
        if (!expected && BSON_ITER_HOLDS_INT64(&iter) && bson_iter_int64(&iter) >= 0)
            set_place(&made, job, likely, bson_iter_int64(&iter));
    }
    if (expected) /* the _id of the found document may have another numeric type */
        set_place(&made, job, likely, sl_expected_id(expected));
    return made;
}

/* Opens the list of problems, which are written to problems.tsv in `directory` (NULL: to no file),
 * and the first `shown_max` to the log. */
static bool problems_open(const char *directory, const sl_source_set *set, uint64_t shown_max,
                          sl_problems **problems, sl_error *error) {
    sl_problems *made = *problems = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "starting");
    pthread_mutex_init(&made->lock, NULL);
    made->set = set;
    made->shown_max = shown_max;
    made->bytes_left = TABLE_BYTES_MAX;
    if (!directory)
        return true;
    char path[600];
    snprintf(path, sizeof path, "%s/" SL_WORK_PROBLEMS, directory);
    made->table = sl_private_file_stream(path, O_WRONLY | O_TRUNC, error);
    if (!made->table)
        return false;
    fputs("problem\tsource\toffset\t_id\tdetail\n", made->table);
    return true;
}

/* Writes a line of the table. Call it under the lock. */
static void write_line(sl_problems *problems, const char *line, size_t length) {
    if (!problems->table || problems->bytes_left == 0)
        return;
    if (length <= problems->bytes_left) {
        problems->bytes_left -= length;
        fwrite(line, 1, length, problems->table);
        return;
    }
    problems->bytes_left = 0;
    sl_log_warning("problems.tsv has 64 MiB: further problems are only counted");
}

/* Any thread. */
static void problems_add(sl_problems *problems, const sl_problem *problem) {
    const char *unit = ", byte ";
    char place[1200] = "", offset[32] = "", id[300], detail[DETAIL_ROOM] = "", path[1100];
    char line[2400];
    sl_text_printable(sl_text_of(problem->id ? problem->id : ""), id, sizeof id);
    if (problem->detail)
        sl_text_printable(sl_text_of(problem->detail), detail, sizeof detail);
    if (problem->placed) {
        const sl_source *source = sl_source_set_at(problems->set, problem->source);
        snprintf(path, sizeof path, "%s%s%s", source->path, problem->entry ? ": " : "",
                 problem->entry ? problem->entry : "");
        sl_text_printable(sl_text_of(path), place, sizeof place);
        const bool generated = source->kind == SL_SOURCE_GENERATED;
        unit = generated ? ", record " : unit;
        snprintf(offset, sizeof offset, "%llu",
                 (unsigned long long)(generated ? problem->offset / source->record_bytes
                                                : problem->offset));
    }
    pthread_mutex_lock(&problems->lock);
    write_line(problems, line,
               sl_print_text(line, sizeof line, "%s\t%s\t%s\t%s\t%s\n",
                             problem_names[problem->finding], place, offset, id, detail));
    if (problems->count++ < problems->shown_max) {
        sl_log_warning("%s%s%s%s%s: %s%s%s", place, problem->placed ? unit : "", offset,
                       !*id              ? ""
                       : problem->placed ? ", _id "
                                         : "_id ",
                       id, problem_names[problem->finding], *detail ? ": " : "", detail);
    } else if (problems->count == problems->shown_max + 1) {
        sl_log_warning("further problems are %s",
                       problems->table ? "in problems.tsv in the work directory"
                                       : "only counted; with --work-dir DIR, DIR/problems.tsv "
                                         "lists them");
    }
    pthread_mutex_unlock(&problems->lock);
}

/* False when the file could not be written. NULL is fine. */
static bool problems_close(sl_problems *problems, sl_error *error) {
    if (!problems)
        return true;
    bool ok = !problems->table || !ferror(problems->table);
    ok = (!problems->table || fclose(problems->table) == 0) && ok;
    if (!ok)
        sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write problems.tsv: %s",
                     errno ? strerror(errno) : "the disk may be full");
    pthread_mutex_destroy(&problems->lock);
    free(problems);
    return ok;
}

/* The totals to which a document with this _id is added. */
static sl_range_totals *verification_totals(sl_verification *verification, int64_t id) {
    const sl_job *job = &verification->job;
    size_t range = sl_job_range_of(job, id);
    bool inside = id >= job->ranges[range].minimum && id < job->ranges[range].maximum;
    return &verification->ranges[inside ? range : job->range_count];
}

/* Records that the interval has been compared. False without memory. Any thread. */
static bool verification_cover(sl_verification *verification, sl_interval interval) {
    pthread_mutex_lock(&verification->lock);
    sl_interval *covered = sl_grow(verification->covered, verification->covered_count,
                                   &verification->covered_room, sizeof *covered);
    if (covered)
        (verification->covered = covered)[verification->covered_count++] = interval;
    pthread_mutex_unlock(&verification->lock);
    return covered != NULL;
}

static bool keep_on(void *context) {
    const sl_run *run = context;
    return !atomic_load(&run->stop);
}

/* After a read that may be repeated: waits. False: the verification ends. */
static bool again(const sl_run *run, unsigned *attempt, const sl_error *why) {
    if (*attempt == 0)
        sl_log_warning(SL_LINES "; trying again", why->message);
    return sl_backoff((*attempt)++, keep_on, (void *)run);
}

/* ---- documents with their own _id ---- */

/* Documents with their own _id form no intervals: those of a block are looked up by their _ids,
 * with the same comparison as re-sent batches (duplicates.h). A record whose document equals that
 * of an earlier one is missing, since a load rejects it (a restore does not): those of the same
 * slice are listed. Extra documents are counted; with --content a record that repeats an _id must
 * not hide one, so all stored _ids are read, and compared in sums. */

#define ID_SUMS_LOG2 18

/* Adds an _id to one of 2^18 sums, chosen by its hash. */
static void add_id(void *sums /* _Atomic uint64_t * */, const bson_t *document) {
    _Atomic uint64_t *to = sums;
    const uint64_t sum = sl_id_sum(document);
    atomic_fetch_add(&to[sum >> (64 - ID_SUMS_LOG2)], sum);
}

/* Views over `count` consecutive documents; *views and *pointers are for free(). */
static bool view(const uint8_t *at, uint32_t count, bson_t **views, const bson_t ***pointers) {
    *views = sl_zeroed(count, sizeof **views);
    *pointers = malloc(count * sizeof **pointers);
    bool ok = *views && *pointers;
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = bson_init_static(&(*views)[i], at, sl_bson_length(at));
        (*pointers)[i] = &(*views)[i];
        at += sl_bson_length(at);
    }
    return ok;
}

static bool look_up(const sl_verification *verification, mongoc_client_t *client,
                    sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count,
                    sl_error *error) {
    const sl_target *target = &verification->destination.target;
    unsigned attempt = 0;
    sl_scan_result result;
    do {
        sl_duplicates_clear(duplicates);
        if (!sl_duplicates_init(duplicates, documents, count, true))
            return sl_error_memory(error, "comparing documents");
        result = sl_duplicates_find_all(duplicates, client, target, error);
    } while (result == SL_SCAN_AGAIN && again(&verification->run, &attempt, error));
    if (result == SL_SCAN_DONE)
        *error = (sl_error){0};
    return result == SL_SCAN_DONE;
}

static void add_problem(sl_verification *verification, const sl_source_block *block,
                        sl_finding finding, uint64_t offset, const bson_t *expected,
                        const char *detail) {
    sl_problem problem = {.finding = finding,
                          .placed = true,
                          .source = block->source,
                          .entry = block->entry,
                          .offset = offset,
                          .detail = detail ? bson_strdup(detail) : NULL};
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, expected, "_id"))
        problem.id = sl_json_value(&iter);
    problems_add(verification->problems, &problem);
    problem_clear(&problem);
}

/* Looks up `count` consecutive documents of a block, whose records begin at `offsets`, and adds the
 * outcome to the totals and the problems. */
static bool verify_slice_by_id(sl_verification *verification, mongoc_client_t *client,
                               const sl_source_block *block, const uint8_t *documents,
                               const uint64_t *offsets, uint32_t count, sl_range_totals *totals,
                               sl_error *error) {
    bson_t *views = NULL;
    const bson_t **pointers = NULL;
    sl_duplicates duplicates = {0};
    if (count == 0)
        return true;
    bool ok =
        view(documents, count, &views, &pointers) || sl_error_memory(error, "comparing documents");
    ok = ok && look_up(verification, client, &duplicates, pointers, count, error);
    for (uint32_t i = 0; ok && i < count; i++) {
        const char *difference = duplicates.difference[i];
        const bool repeated = duplicates.repeated[i] && !verification->job.config->unregistered;
        if (duplicates.missing[i] || repeated) {
            atomic_fetch_add(&totals->missing, 1);
            atomic_fetch_add(&verification->missing_ids, sl_id_sum(pointers[i]));
            add_problem(verification, block, SL_MISSING, offsets[i], pointers[i],
                        repeated ? "an earlier record has an identical document, which is stored"
                                 : NULL);
            continue;
        }
        atomic_fetch_add(&totals->found, 1);
        if (difference) {
            atomic_fetch_add(&totals->different, 1);
            atomic_fetch_add(&verification->different_ids, sl_id_sum(pointers[i]));
            add_problem(verification, block, SL_DIFFERENT, offsets[i], pointers[i], difference);
        } else {
            atomic_fetch_add(&totals->found_hash,
                             sl_hash(bson_get_data(pointers[i]), pointers[i]->len));
        }
        add_id(verification->ids, pointers[i]);
    }
    sl_duplicates_clear(&duplicates);
    free(pointers);
    free(views);
    return ok;
}

/* Subtracts the documents of other programs that were stored when the load ended. */
static uint64_t without_foreign(sl_verification *verification, uint64_t extra) {
    uint64_t known = verification->job.foreign;
    verification->foreign = extra < known ? extra : known;
    return extra - verification->foreign;
}

/* Compares all stored _ids with those of the records that were found. Sets `*all` to the number of
 * stored documents, and `*repeated` to that of records whose _id another record has, too. */
static bool compare_ids(sl_verification *verification, uint64_t found, uint64_t *all,
                        uint64_t *repeated, sl_error *error) {
    const sl_destination *destination = &verification->destination;
    const bson_t everything = BSON_INITIALIZER;
    mongoc_client_t *client = sl_connection_borrow(destination->connection);
    _Atomic uint64_t *sums = NULL;
    sl_scan_result result;
    unsigned attempt = 0;
    uint64_t less = 0;
    do {
        free(sums);
        sums = calloc((size_t)1 << ID_SUMS_LOG2, sizeof *sums);
        result = sums
                     ? sl_scan(client, &destination->target, &everything, true, add_id, sums, error)
                     : SL_SCAN_FAILED;
    } while (result == SL_SCAN_AGAIN && again(&verification->run, &attempt, error));
    sl_connection_return(destination->connection, client);
    for (size_t i = 0; result == SL_SCAN_DONE && i < (size_t)1 << ID_SUMS_LOG2; i++) {
        const uint64_t difference = verification->ids[i] - sums[i];
        const int32_t more = (int32_t)(uint32_t)difference;
        *all += (uint32_t)sums[i];
        less += difference;
        if (more > 0)
            *repeated += (uint32_t)more;
        else if (more == 0 && difference != 0) /* and an _id that no record has */
            ++*repeated;
    }
    verification->guessed = *repeated > 0 && *all + *repeated != found;
    verification->missing_ids += *repeated > 0 ? less : 0;
    if (!sums)
        sl_error_memory(error, "comparing _ids");
    free(sums);
    return result == SL_SCAN_DONE;
}

/* Compares the number of stored documents with those found; without `content`, those expected. */
static bool verify_total_by_id(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    sl_range_totals *outside = &verification->ranges[job->range_count];
    uint64_t found = 0, all = 0, others = 0, repeated = 0, different = 0;
    bool complete = true;
    const bson_t everything = BSON_INITIALIZER;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    for (size_t i = 0; i < job->range_count; i++) {
        sl_range_totals *totals = &verification->ranges[i];
        if (!verification->content)
            atomic_store(&totals->found, atomic_load(&totals->expected));
        found += atomic_load(&totals->found);
        different += atomic_load(&totals->different);
    }
    /* The _ids 1 and 1.0 are equal, with different hashes: not compared if documents differ. */
    if (verification->content && different == 0
            ? !compare_ids(verification, found, &all, &repeated, error)
            : !sl_count_matching(destination->connection, &destination->target, &everything, &all,
                                 error))
        return false;
    found -= repeated;
    if (job->config->unregistered) /* a restore takes a document that occurs twice as stored */
        repeated = 0;
    uint64_t less = !verification->content && all < found ? found - all : 0;
    for (size_t i = 0; i < job->range_count; i++) { /* which range lacks them is not known */
        const uint64_t has = atomic_load(&verification->ranges[i].found),
                       cut = has < less ? has : less;
        atomic_store(&verification->ranges[i].found, has - cut);
        less -= cut;
    }
    atomic_store(&outside->missing, all < found && !verification->content ? found - all : repeated);
    if (repeated > 0)
        sl_log_warning("%s missing: another record of the sources has an identical document, which "
                       "is stored",
                       sl_plural(repeated, "record[s] [is|are]"));
    if (all <= found && job->rejected == 0)
        return true;
    /* `others` is the most that the other sources may have stored: two sources may have records
     * with the same _id. Beside them, a record that repeats an _id is not seen in the sums. */
    if (!job->config->unregistered &&
        !sl_sources_others(job, destination, false, &others, &complete, error))
        return false;
    const bool alone = complete && others == 0 && sl_source_set_count(job->set) == 1;
    verification->lost = alone && all < job->stored;
    others = complete ? others : UINT64_MAX;
    if (all <= found)
        return true;
    if (!job->config->unregistered && job->registered < found)
        found = job->registered;
    uint64_t more = all - found, extra = more > others ? more - others : 0;
    extra = without_foreign(verification, extra);
    atomic_store(&outside->found, extra);
    atomic_store(&outside->extra, extra);
    if (extra > 0)
        sl_log_warning("%s.%s holds %s that no record of the sources has%s%s",
                       destination->target.database, destination->target.collection,
                       sl_plural(extra, "document"),
                       others > 0 ? ", in addition to those of the other registered sources" : "",
                       verification->foreign > 0 ? ", and those of other programs" : "");
    else if (more < others) /* else they are those of the other registered sources */
        sl_log_warning("%s.%s holds %" PRIu64 " documents more than these sources; they may belong "
                       "to the other registered sources, which were not named",
                       destination->target.database, destination->target.collection, more);
    return true;
}

/* ---- block by block ---- */

/* The comparison of the sources with the cluster, block by block.
 *
 * Each thread draws blocks as a load's workers do, parses one, and reads the stored documents in
 * the block's interval. The interval contains all ids that records beginning in the block's text
 * could have. The intervals of all blocks are recorded; verify_gaps searches the ids between
 * them, so that every id is checked exactly once. Two blocks of an archive may share a MiB, if one
 * entry ends in it and the next begins; any other block is alone in its MiB.
 *
 * Threads share nothing per document. The findings of a block are reported only when its interval
 * has been read to the end, because a failed read is repeated. */

typedef struct sl_checker {
    sl_verification *verification;
    sl_job *job;
    sl_destination *destination;
    sl_run *run;
    unsigned index;
    sl_worker_counters *counters;
    sl_reader *reader;
    mongoc_client_t *client;
    uint8_t *bytes; /* the block's documents; room + SL_SLACK */
    size_t room;
    uint64_t *offsets; /* of documents with their own _id; grown by on_full */
    uint32_t offsets_room;
    sl_sink sink;
    sl_error error;

    /* Of the current block. */
    const sl_source_block *block;
    sl_range_totals *totals;
    sl_interval remaining; /* the part of its interval that has not been compared */

    /* Of the current comparison. */
    sl_comparison comparison;
    uint64_t found, found_hash;
    uint64_t findings[3];
    sl_problem *problems;
    size_t problem_count, problem_room;
} sl_checker;

/* ---- the parser's side ---- */

static int64_t last_id(const uint8_t *at, const uint8_t *end) {
    int64_t id = 0;
    for (; at < end; at += sl_bson_length(at))
        id = sl_expected_id(at);
    return id;
}

static bool check_documents(sl_checker *checker, int64_t maximum);

/* Makes room for the offsets of more documents. */
static bool grow_offsets(sl_checker *checker) {
    sl_sink *sink = &checker->sink;
    if (!checker->job->own_ids || sink->documents < checker->offsets_room)
        return true;
    const uint32_t room = checker->offsets_room ? checker->offsets_room * 2 : 4096;
    uint64_t *offsets = realloc(checker->offsets, room * sizeof *offsets);
    if (!offsets)
        return sl_error_memory(&checker->error, "parsing a block");
    checker->offsets = sink->offsets = offsets;
    checker->offsets_room = sink->documents_limit = room;
    return true;
}

/* Most blocks are parsed completely before they are compared. A block of large documents is
 * compared in slices, each up to the id of its last document. */
static bool on_full(sl_sink *sink, size_t need) {
    sl_checker *checker = sink->context;
    size_t used = (size_t)(sink->cursor - checker->bytes);
    if (used > 0 && used + need > SLICE_BYTES) {
        bool own_ids = checker->job->own_ids;
        if (!check_documents(checker, own_ids ? 0 : last_id(checker->bytes, sink->cursor) + 1))
            return false;
        used = 0;
        sink->cursor = checker->bytes;
        sink->documents = 0;
    }
    if (!grow_offsets(checker))
        return false;
    if (need <= checker->room - used) {
        sink->limit = checker->bytes + checker->room;
        return true;
    }
    size_t room = checker->room * 2 > used + need ? checker->room * 2 : used + need;
    uint8_t *bytes = realloc(checker->bytes, room + SL_SLACK);
    if (!bytes)
        return sl_error_memory(&checker->error, "parsing a block");
    checker->bytes = bytes;
    checker->room = room;
    sink->cursor = bytes + used;
    sink->limit = bytes + room;
    return true;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_checker *checker = sink->context;
    if (reject->misread)
        sl_line_ends_error(checker->job, checker->block, reject, &checker->error);
    else if (checker->job->config->unregistered) /* others have been reported by the load */
        add_problem(checker->verification, checker->block, SL_REJECTED, reject->offset,
                    &(const bson_t)BSON_INITIALIZER, reject->reason);
}

static bool parse(sl_checker *checker, const sl_source_block *block, sl_parse_counts *counts) {
    sl_job *job = checker->job;
    const sl_dialect *dialect;
    checker->sink = (sl_sink){.cursor = checker->bytes,
                              .limit = checker->bytes + checker->room,
                              .documents_limit = UINT32_MAX,
                              .unchanged = job->config->unregistered, /* as a restore stores it */
                              .offsets = checker->offsets,
                              .full = on_full,
                              .reject = on_reject,
                              .context = checker};
    if (job->own_ids)
        checker->sink.documents_limit = checker->offsets_room;
    if (!sl_sources_dialect(job, block, &dialect, &checker->error))
        return false;
    if (!dialect || block->text.length == 0)
        return true;
    return sl_sources_parse(job, block, dialect, &checker->sink, counts);
}

static uint64_t hash_of(const uint8_t *at, const uint8_t *end) {
    uint64_t sum = 0;
    for (size_t length; at < end; at += length) {
        length = sl_bson_length(at);
        sum += sl_hash(at, length);
    }
    return sum;
}

/* ---- the cluster's side ---- */

/* The ids of the block. */
static sl_interval interval_of(const sl_job *job, const sl_source_block *block) {
    int64_t id = sl_document_id(job->sources[block->source].number, block->offset);
    int64_t base = id & ~(int64_t)(SL_BLOCK_BYTES - 1);
    uint64_t end = (block->offset & (SL_BLOCK_BYTES - 1)) + block->text.length;
    return (sl_interval){
        .minimum = block->entry_start ? id : base,
        .maximum = base + (int64_t)(end < SL_BLOCK_BYTES ? end : SL_BLOCK_BYTES),
    };
}

static void forget_findings(sl_checker *checker) {
    for (size_t i = 0; i < checker->problem_count; i++)
        problem_clear(&checker->problems[i]);
    checker->problem_count = 0;
    checker->found = checker->found_hash = 0;
    memset(checker->findings, 0, sizeof checker->findings);
    sl_compare_clear(&checker->comparison);
}

static void on_found(void *context, const bson_t *found) {
    sl_checker *checker = context;
    checker->found++;
    checker->found_hash += sl_hash(bson_get_data(found), found->len);
    sl_compare_found(&checker->comparison, found);
}

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    sl_checker *checker = context;
    sl_problem *problems = sl_grow(checker->problems, checker->problem_count,
                                   &checker->problem_room, sizeof *problems);
    if (!problems) {
        sl_error_memory(&checker->error, "keeping problems");
        return;
    }
    checker->problems = problems;
    sl_problem *made = &problems[checker->problem_count++];
    *made = problem_of(checker->job, finding, checker->block->source, expected, found);
    if (finding == SL_EXTRA)
        made->detail = bson_strdup("the source has no such document");
    checker->findings[finding]++;
}

/* Reads the interval and compares it; begins again after failures that may be temporary. */
static bool compare(sl_checker *checker, sl_interval place) {
    const sl_target *target = &checker->destination->target;
    unsigned attempt = 0;
    sl_scan_result result;
    do {
        forget_findings(checker);
        checker->comparison = (sl_comparison){.expected = checker->bytes,
                                              .end = checker->sink.cursor,
                                              .report = on_finding,
                                              .context = checker};
        result = sl_scan_range(checker->client, target, place.minimum, place.maximum, on_found,
                               checker, &checker->error);
    } while (result == SL_SCAN_AGAIN && again(checker->run, &attempt, &checker->error));
    if (result != SL_SCAN_DONE)
        return false;
    checker->error = (sl_error){0};
    sl_compare_end(&checker->comparison);
    return !checker->error.code;
}

static void report_findings(sl_checker *checker) {
    sl_range_totals *totals = checker->totals;
    for (size_t i = 0; i < checker->problem_count; i++) {
        checker->problems[i].entry = checker->block->entry;
        problems_add(checker->verification->problems, &checker->problems[i]);
    }
    atomic_fetch_add(&totals->found, checker->found);
    atomic_fetch_add(&totals->found_hash, checker->found_hash);
    atomic_fetch_add(&totals->missing, checker->findings[SL_MISSING]);
    atomic_fetch_add(&totals->different, checker->findings[SL_DIFFERENT]);
    atomic_fetch_add(&totals->extra, checker->findings[SL_EXTRA]);
    forget_findings(checker);
}

/* Compares the documents parsed so far with the ids from the end of the last slice to before
 * `maximum`. */
static bool check_documents(sl_checker *checker, int64_t maximum) {
    sl_verification *verification = checker->verification;
    const uint8_t *end = checker->sink.cursor;
    sl_interval slice = {checker->remaining.minimum, maximum};
    sl_count(&checker->counters->bson_bytes, (uint64_t)(end - checker->bytes));
    atomic_fetch_add(&checker->totals->expected_hash, hash_of(checker->bytes, end));
    if (verification->content)
        sl_stage_enter(checker->counters, STAGE_SENDING);
    if (checker->job->own_ids) {
        bool ok = !verification->content ||
                  verify_slice_by_id(verification, checker->client, checker->block, checker->bytes,
                                     checker->offsets, checker->sink.documents, checker->totals,
                                     &checker->error);
        sl_stage_enter(checker->counters, STAGE_PARSING);
        return ok;
    }
    if (!verification->content || slice.minimum >= slice.maximum)
        return true;
    if (!compare(checker, slice))
        return false;
    report_findings(checker);
    checker->remaining.minimum = maximum;
    sl_stage_enter(checker->counters, STAGE_PARSING);
    return verification_cover(verification, slice) ||
           sl_error_memory(&checker->error, "recording compared intervals");
}

static bool check_block(sl_checker *checker, const sl_source_block *block) {
    sl_job *job = checker->job;
    const sl_destination *destination = checker->destination;
    const sl_run *run = checker->run;
    sl_parse_counts counts = {0};
    int64_t id = sl_document_id(job->sources[block->source].number, block->offset);
    checker->block = block;
    checker->remaining = interval_of(job, block);
    checker->totals = verification_totals(checker->verification, id);
    if (!parse(checker, block, &counts) || !check_documents(checker, checker->remaining.maximum))
        return false;
    sl_sources_done_with(job, block);
    atomic_fetch_add(&checker->totals->expected, counts.documents);
    sl_count(&checker->counters->text_bytes, block->text.length);
    sl_count(&checker->counters->records, counts.records);
    sl_count(&checker->counters->already_stored, counts.documents);
    sl_count(&checker->counters->parser_rejects, counts.rejects);
    if (job->by_range)
        atomic_fetch_add(&run->shard_documents[sl_shard_map_owner(destination->map, id)],
                         counts.documents);
    sl_parse_counts_add(&run->parsed[checker->index], &counts);
    return true;
}

/* ---- the threads ---- */

static void *check(void *context) {
    sl_checker *checker = context;
    sl_run *run = checker->run;
    sl_source_block block;
    bool ok = true;
    while (ok && !atomic_load_explicit(&run->stop, memory_order_relaxed)) {
        int64_t inflating = sl_reader_spent(checker->reader)->inflating;
        sl_stage_enter(checker->counters, STAGE_READING);
        sl_read_result result = sl_reader_next(checker->reader, &block, &checker->error);
        inflating = sl_reader_spent(checker->reader)->inflating - inflating;
        sl_stage_enter(checker->counters, STAGE_PARSING);
        atomic_fetch_sub(&checker->counters->stage_ns[STAGE_READING], inflating);
        atomic_fetch_add(&checker->counters->stage_ns[STAGE_INFLATING], inflating);
        if (result == SL_READ_END)
            break;
        ok = result == SL_READ_BLOCK && check_block(checker, &block);
    }
    sl_stage_enter(checker->counters, STAGES);
    if (!ok && checker->error.code)
        sl_run_fail(run, &checker->error);
    sl_run_ended(run);
    return NULL;
}

static bool checker_init(sl_checker *checker, sl_verification *verification, unsigned index,
                         sl_error *error) {
    *checker = (sl_checker){.verification = verification,
                            .job = &verification->job,
                            .destination = &verification->destination,
                            .run = &verification->run,
                            .index = index,
                            .counters = &verification->run.counters[index],
                            .room = SL_BLOCK_BYTES};
    checker->bytes = malloc(checker->room + SL_SLACK);
    if (!checker->bytes)
        return sl_error_memory(error, "starting threads");
    if (verification->content)
        checker->client = sl_connection_borrow(verification->destination.connection);
    return sl_reader_create(verification->job.set, &checker->reader, error);
}

static void checker_clear(sl_checker *checker) {
    forget_findings(checker);
    free(checker->problems);
    free(checker->bytes);
    free(checker->offsets);
    if (checker->client)
        sl_connection_return(checker->destination->connection, checker->client);
    sl_reader_destroy(checker->reader);
}

/* Parses all sources; with `content` compares each block with the stored documents of its ids. */
static bool verify_blocks(sl_verification *verification, void (*tick)(void *context), void *context,
                          sl_error *error) {
    sl_run *run = &verification->run;
    unsigned threads = run->threads, made = 0;
    sl_checker *checkers = calloc(threads, sizeof *checkers);
    bool ok = checkers != NULL;
    if (!ok)
        sl_error_memory(error, "starting threads");
    for (; ok && made < threads; made++)
        ok = checker_init(&checkers[made], verification, made, error);
    ok = ok && sl_run_threads(run, check, checkers, sizeof *checkers, tick, context, error);
    for (unsigned i = 0; i < made; i++)
        checker_clear(&checkers[i]);
    free(checkers);
    return ok;
}

/* ---- the ids between and beyond the blocks ---- */

/* Stored documents outside all sources and blocks: after the end of a source, between its blocks,
 * under unregistered source numbers, under ids of other types. All ids are divided into the
 * intervals that have been compared (without --content: the sources that were counted), the ids of
 * other registered sources, and the gaps between these. Each gap is one find, which mostly returns
 * nothing: about 256 finds for a large source, one for a small source. */

/* Which source numbers are those of this verification? For free(); NULL without memory. */
static bool *verified_numbers(const sl_job *job) {
    bool *verified = calloc((size_t)SL_SOURCE_NUMBER_MAX + 1, sizeof *verified);
    for (size_t i = 0; verified && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            verified[job->sources[i].number] = true;
    }
    return verified;
}

/* Marks as covered what is not searched: the registered sources that are not in this verification;
 * with `only_known` all integers that are not _ids of its sources; without `content` also its
 * sources, since these have been counted. */
static bool cover_sources(sl_verification *verification) {
    bool *verified = verified_numbers(&verification->job);
    bool ok = verified != NULL, content = verification->content;
    int64_t low = INT64_MIN;
    for (size_t i = 0; ok && i < verification->registered_count; i++) {
        uint32_t number = verification->registered[i];
        if (!verified[number] || !content)
            ok = verification_cover(verification, sl_interval_of_source(number));
    }
    for (uint32_t number = 0;
         ok && verification->only_known && content && number <= SL_SOURCE_NUMBER_MAX; number++) {
        if (!verified[number])
            continue;
        sl_interval source = sl_interval_of_source(number);
        ok = verification_cover(verification, (sl_interval){low, source.minimum});
        low = source.maximum;
    }
    if (ok && verification->only_known)
        ok = verification_cover(verification, (sl_interval){low, INT64_MAX});
    free(verified);
    return ok;
}

/* Counts the documents whose _id belongs to no registered source. `*allowed` of them are no
 * difference: those of other programs that were stored when the load ended, and those of sources
 * that have _ids of their own. The others are extra; it is not known which, so all are listed. */
static bool count_unregistered(sl_verification *verification, uint64_t *allowed, sl_error *error) {
    sl_job *job = &verification->job;
    sl_unregistered found;
    uint64_t loaded;
    bool complete;
    *allowed = 0;
    if (!sl_sources_others(job, &verification->destination, true, &loaded, &complete, error))
        return false;
    if (loaded + job->foreign == 0)
        return true;
    if (!sl_unregistered_find(&verification->destination, &(sl_unregistered){.known = true}, &found,
                              error))
        return false;
    uint64_t all = found.numbers + found.other_types, more = all > loaded ? all - loaded : 0;
    *allowed = all - without_foreign(verification, more);
    verification->only_known = *allowed == all;
    if (*allowed > 0 && !verification->only_known)
        sl_log_warning("the _ids of %s belong to no source; %s from other programs and loads, but "
                       "it is not known which: all are listed",
                       sl_plural(all, "document"), sl_plural(*allowed, "[is|are]"));
    return true;
}

typedef struct sl_extra_scan {
    sl_verification *verification;
    uint64_t found;
} sl_extra_scan;

static const char *why_extra(const bson_iter_t *id, bool placed) {
    if (!BSON_ITER_HOLDS_INT64(id) || bson_iter_int64(id) < 0)
        return "no source has such an _id";
    return placed ? "no record begins at that byte" : "its source is not in the registry";
}

static void on_extra(void *context, const bson_t *found) {
    sl_extra_scan *state = context;
    sl_verification *verification = state->verification;
    const sl_job *job = &verification->job;
    sl_range_totals *totals = &verification->ranges[job->range_count];
    sl_problem problem = problem_of(job, SL_EXTRA, 0, NULL, found);
    bson_iter_t iter;
    state->found++;
    if (bson_iter_init_find(&iter, found, "_id")) {
        if (BSON_ITER_HOLDS_INT64(&iter))
            totals = verification_totals(verification, bson_iter_int64(&iter));
        problem.detail = bson_strdup(why_extra(&iter, problem.placed));
    }
    atomic_fetch_add(&totals->found, 1);
    atomic_fetch_add(&totals->extra, 1);
    if (verification->content)
        atomic_fetch_add(&totals->found_hash, sl_hash(bson_get_data(found), found->len));
    problems_add(verification->problems, &problem);
    problem_clear(&problem);
}

/* Reports all matching documents as extra. A read that has reported some is not repeated. */
static bool report_extra(sl_verification *verification, mongoc_client_t *client,
                         const bson_t *filter, sl_error *error) {
    sl_extra_scan state = {.verification = verification};
    sl_scan_result result;
    unsigned attempt = 0;
    do {
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
        result = sl_scan(client, &verification->destination.target, filter, !verification->content,
                         on_extra, &state, error);
    } while (result == SL_SCAN_AGAIN && state.found == 0 &&
             again(&verification->run, &attempt, error));
    return result == SL_SCAN_DONE;
}

typedef struct sl_gap_search {
    sl_verification *verification;
    mongoc_client_t *client;
    int64_t logged; /* when progress was logged last, by sl_clock_ns */
} sl_gap_search;

static bool search_gap(void *context, const sl_gap *gap, sl_error *error) {
    sl_gap_search *search = context;
    if (search->verification->only_known && !gap->within)
        return true;
    if (sl_seconds_since(search->logged) > 3) {
        sl_log_info("searching the ids between the blocks: %.0f %%", 100 * gap->share);
        search->logged = sl_clock_ns();
    }
    return report_extra(search->verification, search->client, gap->filter, error);
}

/* Finds the documents outside all compared intervals and all other registered sources. */
static bool verify_gaps(sl_verification *verification, sl_error *error) {
    const sl_destination *destination = &verification->destination;
    sl_range_totals *outside = &verification->ranges[verification->job.range_count];
    uint64_t allowed;
    if (!count_unregistered(verification, &allowed, error))
        return false;
    if (!cover_sources(verification))
        return sl_error_memory(error, "searching between the sources");
    sl_gap_search search = {verification, sl_connection_borrow(destination->connection),
                            sl_clock_ns()};
    bool ok = sl_gaps_walk(verification->covered, verification->covered_count, search_gap, &search,
                           error);
    sl_connection_return(destination->connection, search.client);
    if (allowed > outside->extra) /* none was listed */
        allowed = outside->extra;
    atomic_fetch_sub(&outside->extra, allowed);
    atomic_fetch_sub(&outside->found, allowed);
    return ok;
}

typedef struct sl_others_count {
    sl_verification *verification;
    bool *verified; /* by number */
    int64_t logged;
    uint32_t with_extra;
} sl_others_count;

static void report_other(sl_others_count *count, const sl_registry_entry *entry, uint64_t found) {
    sl_verification *verification = count->verification;
    sl_range_totals *totals = &verification->ranges[verification->job.range_count];
    uint64_t extra = found - entry->in_range;
    char shown[400];
    bson_t item;
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    sl_log_warning("%s, which was not named: %s stored under its _ids, and its load has left %s; "
                   "name it to list the others",
                   shown, sl_plural(found, "document[s] [is|are]"),
                   sl_number_text(entry->in_range));
    atomic_fetch_add(&totals->found, extra);
    atomic_fetch_add(&totals->extra, extra);
    if (!verification->other_sources)
        verification->other_sources = bson_new();
    sl_record_begin_item(verification->other_sources, count->with_extra++, &item);
    BSON_APPEND_UTF8(&item, "name", shown);
    BSON_APPEND_INT64(&item, "expected", (int64_t)entry->in_range);
    BSON_APPEND_INT64(&item, "found", (int64_t)found);
    bson_append_document_end(verification->other_sources, &item);
}

/* Fewer documents are no finding: only a verification of that source shows missing ones. */
static bool count_other(void *context, const sl_registry_entry *entry, sl_error *error) {
    sl_others_count *count = context;
    const sl_destination *destination = &count->verification->destination;
    uint64_t found;
    if (count->verified[entry->number])
        return true;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    if (sl_seconds_since(count->logged) > 3) {
        sl_log_info("counting the documents of sources that were not named");
        count->logged = sl_clock_ns();
    }
    if (!sl_count_range(destination->connection, &destination->target,
                        sl_stripe_first_id(entry->number, 0),
                        sl_stripe_first_id(entry->number, SL_STRIPES), &found, error))
        return false;
    if (found > entry->in_range)
        report_other(count, entry, found);
    return true;
}

/* Counts the documents in the ids of each loaded source that is not verified: more than its load
 * has left there are extra. */
static bool verify_other_sources(sl_verification *verification, sl_error *error) {
    sl_others_count count = {verification, verified_numbers(&verification->job), sl_clock_ns(), 0};
    bool ok = count.verified ? sl_registry_each_loaded(verification->destination.registry,
                                                       count_other, &count, error)
                             : sl_error_memory(error, "counting other sources");
    free(count.verified);
    return ok;
}

/* Counts the documents of each range, for a verification without `content`. */
static bool verify_ranges(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    uint64_t *numbers = calloc(job->range_count + 1, sizeof *numbers);
    bool ok = numbers ? sl_count_ranges(destination->connection, &destination->target, job->ranges,
                                        job->range_count, NULL, numbers, error)
                      : sl_error_memory(error, "counting documents");
    for (size_t i = 0; ok && i < job->range_count; i++) {
        sl_range_totals *totals = &verification->ranges[i];
        const uint64_t expected = atomic_load(&totals->expected), found = numbers[i];
        atomic_store(&totals->found, found);
        atomic_store(&totals->missing, found < expected ? expected - found : 0);
        atomic_store(&totals->extra, found > expected ? found - expected : 0);
    }
    free(numbers);
    return ok;
}

/* ---- the result: a row per range on the screen, and a section of the record ---- */

typedef struct sl_verified_figures {
    uint64_t expected, found, missing, different, extra;
    uint64_t expected_hash, found_hash;
} sl_verified_figures;

/* Adds the totals of a range; returns them. */
static sl_verified_figures add(sl_verified_figures *sum, const sl_range_totals *totals) {
    const sl_verified_figures more = {totals->expected,  totals->found, totals->missing,
                                      totals->different, totals->extra, totals->expected_hash,
                                      totals->found_hash};
    sum->expected += more.expected;
    sum->found += more.found;
    sum->missing += more.missing;
    sum->different += more.different;
    sum->extra += more.extra;
    sum->expected_hash += more.expected_hash;
    sum->found_hash += more.found_hash;
    return more;
}

static bool is_equal(const sl_verified_figures *figures) {
    return figures->missing + figures->different + figures->extra == 0;
}

static const char *shard_of(const sl_job *job, const sl_destination *destination,
                            const sl_range *range) {
    if (!job->by_range)
        return destination->topology->count == 1 ? destination->topology->shards[0].name : "all";
    sl_range whole = *range;
    whole.shard = sl_shard_map_owner(destination->map, range->minimum);
    return sl_range_is_placed(destination->map, &whole)
               ? destination->topology->shards[whole.shard].name
               : "several";
}

/* The label of a range: "year.txt", "year.txt 0-127" (stripes), "a.gz to z.gz". */
static const char *name_of(const sl_job *job, const sl_range *range, char out[NAME_ROOM]) {
    const char *names[2] = {"?", "?"};
    uint32_t numbers[2] = {sl_document_id_source(range->minimum),
                           sl_document_id_source(range->maximum - 1)};
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        for (int k = 0; k < 2; k++) {
            if (job->sources[i].skipped || job->sources[i].number != numbers[k])
                continue;
            const char *path = sl_source_set_at(job->set, i)->shown;
            const char *slash = strrchr(path, '/');
            names[k] = slash && slash[1] ? slash + 1 : path;
        }
    }
    uint32_t from = (uint32_t)(range->minimum >> 32) & 0xFF;
    uint32_t to = (uint32_t)((range->maximum - 1) >> 32) & 0xFF;
    if (numbers[0] != numbers[1])
        snprintf(out, NAME_ROOM, "%.16s to %.16s", names[0], names[1]);
    else if (from == 0 && to == SL_STRIPES - 1)
        snprintf(out, NAME_ROOM, "%.36s", names[0]);
    else
        snprintf(out, NAME_ROOM, "%.28s %u-%u", names[0], from, to);
    return out;
}

static const sl_text_column columns[] = {
    {"range", .left = true, .least = 36},
    {"shard", .left = true, .least = 9},
    {"expected", .least = 13, .unit = SL_UNIT_COUNT},
    {"found", .least = 13, .unit = SL_UNIT_COUNT},
    {"missing", .least = 10, .unit = SL_UNIT_COUNT},
    {"extra", .least = 10, .unit = SL_UNIT_COUNT},
    {"different", .least = 10, .unit = SL_UNIT_COUNT},
    {0},
};

static void add_row(sl_text_table *table, const sl_verification *verification, const char *name,
                    const char *shard, const sl_verified_figures *figures) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%s", shard);
    sl_text_table_number(table, (double)figures->expected);
    sl_text_table_number(table, (double)figures->found);
    sl_text_table_number(table, (double)figures->missing);
    sl_text_table_number(table, (double)figures->extra);
    sl_text_table_number(table, verification->content ? (double)figures->different : NAN);
}

static void append_figures(bson_t *document, const sl_verification *verification,
                           const sl_verified_figures *figures) {
    char hash[20];
    BSON_APPEND_INT64(document, "expected", (int64_t)figures->expected);
    BSON_APPEND_INT64(document, "found", (int64_t)figures->found);
    BSON_APPEND_INT64(document, "missing", (int64_t)figures->missing);
    BSON_APPEND_INT64(document, "extra", (int64_t)figures->extra);
    if (verification->content)
        BSON_APPEND_INT64(document, "different", (int64_t)figures->different);
    snprintf(hash, sizeof hash, "%016" PRIx64, figures->expected_hash);
    BSON_APPEND_UTF8(document, "expectedHash", hash);
    snprintf(hash, sizeof hash, "%016" PRIx64, figures->found_hash);
    if (verification->content)
        BSON_APPEND_UTF8(document, "foundHash", hash);
}

/* Adds a row per range to the table, and records it; if there are many ranges, only those with
 * problems are in the table. Returns the sum. */
static sl_verified_figures report_ranges(sl_verification *verification, bson_t *section,
                                         sl_text_table *table) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    bson_t ranges, item;
    sl_verified_figures sum = {0};
    size_t shown = 0;
    BSON_APPEND_ARRAY_BEGIN(section, "ranges", &ranges);
    for (size_t i = 0; i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        sl_verified_figures figures = add(&sum, &verification->ranges[i]);
        char name[NAME_ROOM];
        const char *shard = shard_of(job, destination, range);
        sl_record_begin_item(&ranges, i, &item);
        BSON_APPEND_INT64(&item, "minimum", range->minimum);
        BSON_APPEND_INT64(&item, "maximum", range->maximum);
        BSON_APPEND_UTF8(&item, "shard", shard);
        append_figures(&item, verification, &figures);
        bson_append_document_end(&ranges, &item);
        if ((job->range_count <= ROWS_SHOWN || !is_equal(&figures)) && shown < ROWS_SHOWN) {
            add_row(table, verification, name_of(job, range, name), shard, &figures);
            shown++;
        }
    }
    bson_append_array_end(section, &ranges);
    if (shown < job->range_count)
        sl_text_table_cell(table, "... and %zu more ranges%s", job->range_count - shown,
                           shown < ROWS_SHOWN ? ", all equal" : "");
    sl_text_table_end_row(table);
    return sum;
}

/* Are the missing records, as many as the loads have rejected, the rejected ones? Compares their
 * _ids if the server has refused as many; otherwise true unless the collection lost documents. */
static bool were_rejected(const sl_verification *verification, bool by_ids, uint64_t missing) {
    const sl_job *job = &verification->job;
    return !job->own_ids || (by_ids && (uint32_t)job->refused_ids == missing
                                 ? verification->missing_ids == job->refused_ids
                                 : !verification->lost);
}

/* Logs the table of ranges, and appends the section "verification" to the record. True when no
 * document is missing, different or extra. */
static bool verify_report(sl_verification *verification) {
    const sl_job *job = &verification->job;
    bson_t section;
    bson_t *record = sl_run_record_document(verification->record);
    for (unsigned i = 0; i < verification->run.threads; i++)
        verification->rejects += verification->run.parsed[i].rejects;
    const uint64_t rejects = verification->rejects;
    const size_t others = /* with `unregistered`, there is no registry */
        job->config->unregistered ? 0 : verification->registered_count - job->active;
    sl_text_table *table = sl_text_table_create(columns);
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    BSON_APPEND_UTF8(&section, "compared", verification->content ? "content" : "counts");
    sl_verified_figures sum = report_ranges(verification, &section, table);
    sl_verified_figures outside = add(&sum, &verification->ranges[job->range_count]);
    const bool by_ids = verification->content && !job->refused_unknown && !verification->guessed,
               as_many = job->rejected == rejects + sum.missing && sum.found >= job->registered,
               others_lost = as_many && !were_rejected(verification, by_ids, sum.missing),
               ok = sum.extra == 0 && sum.different == 0 &&
                    (sum.missing == 0 || (as_many && !others_lost)),
               repeat = job->own_ids && by_ids && sum.different > 0 && /* other records' _ids */
                        verification->missing_ids + verification->different_ids == job->refused_ids;
    if (outside.found > 0)
        add_row(table, verification, "outside all ranges", "", &outside);
    add_row(table, verification, "total", "", &sum);
    if (sl_context_is_long() || !is_equal(&sum) || outside.found > 0)
        sl_text_table_log(table);
    else
        sl_text_table_destroy(table);
    append_figures(&section, verification, &sum);
    BSON_APPEND_INT64(&section, "outsideAllRanges", (int64_t)outside.found);
    BSON_APPEND_INT64(&section, "otherPrograms", (int64_t)verification->foreign);
    BSON_APPEND_INT64(&section, "rejectedByParser", (int64_t)rejects);
    BSON_APPEND_INT64(&section, "otherSources", (int64_t)others);
    if (verification->other_sources)
        BSON_APPEND_ARRAY(&section, "otherSourcesWithExtra", verification->other_sources);
    BSON_APPEND_BOOL(&section, "ok", ok);
    bson_append_document_end(record, &section);

    if (verification->content && job->config->unregistered && is_equal(&sum))
        return true; /* verify --dump reports it */
    if (verification->content)
        sl_log_result("  hash of the sources %016" PRIx64 ", of the cluster %016" PRIx64,
                      sum.expected_hash, sum.found_hash);
    else
        sl_log_result("  documents were counted only; --content also compares them");
    if (!repeat && (sum.different > 0 || (rejects > 0 && !ok)) &&
        !job->config->format_options.schema_text)
        sl_log_result("  documents that --mode merge changed differ; verify needs the options of "
                      "the load that change values: --schema, --types, --encoding, --trim, --null; "
                      "files that separate commands have loaded are verified one by one");
    if (outside.extra > 0)
        sl_log_result("  extra documents outside all ranges: %s; other programs may have stored "
                      "them, or loads with --mode merge or upsert",
                      sl_number_text(outside.extra));
    if (verification->foreign > 0)
        sl_log_result("  %s from other programs, stored when the load ended",
                      sl_plural(verification->foreign, "document[s] [is|are]"));
    if (rejects > 0)
        sl_log_result("  %s rejected by the parser, and expected to be missing",
                      sl_plural(rejects, "record[s] [is|are]"));
    if (others > 0)
        sl_log_result("  %s not named, and not verified",
                      sl_plural(others, "other source[s] of the collection [was|were]"));
    if ((repeat || sum.missing > 0) && job->rejected > rejects)
        sl_log_result("  the load rejected %s of these records%s%s%s",
                      sl_number_text(job->rejected - rejects),
                      repeat ? ": the stored documents with their _ids are those of other records"
                      : ok   ? ": their documents are expected to be missing"
                      : others_lost ? ", and documents of others are missing"
                                    : ": their documents are missing",
                      job->rejected_in[0] ? "; see rejects.tsv in " : "", job->rejected_in);
    verification->rejects += ok ? sum.missing : 0;
    return ok;
}

static bool interrupted(sl_error *error) {
    return sl_error_set(error, SL_EXIT_INTERRUPTED,
                        "interrupted before all documents were verified");
}

static bool on_first_signal(void *context) {
    sl_run *run = context;
    if (!atomic_load(&run->begun)) { /* it may be waiting for a server */
        sl_log_warning("interrupted before anything was verified");
        return true;
    }
    sl_log_warning("stopping; press Ctrl-C again to stop at once");
    sl_run_stop(run);
    return false;
}

/* ---- phases ---- */

/* A pipe has no fingerprint by which the registry could identify it. */
static bool refuse_pipe(const char *path, sl_error *error) {
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: a pipe cannot be verified, because it cannot be identified as the source of a load; "
        "name a file",
        path);
}

static bool look_at_sources(sl_verification *verification, sl_error *error) {
    sl_job *job = &verification->job;
    for (size_t i = 0; i < job->config->path_count; i++) {
        if (strcmp(job->config->paths[i], "-") == 0)
            return refuse_pipe("standard input", error);
    }
    if (!sl_sources_open(job, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (sl_source_set_at(job->set, i)->kind == SL_SOURCE_PIPE)
            return refuse_pipe(sl_source_set_at(job->set, i)->shown, error);
    }
    return true;
}

static bool connect_to_cluster(sl_verification *verification, sl_error *error) {
    sl_job *job = &verification->job;
    sl_destination *destination = &verification->destination;
    const sl_load_config *config = job->config;
    destination->target = (sl_target){
        .database = config->database, .collection = config->collection, .own_ids = job->own_ids};
    if (!(destination->connection = sl_load_open_connection(config, SL_FOR_READING, "shardload",
                                                            config->threads + 2, error)))
        return false;
    sl_record_server(verification->record, destination->connection);
    if (!sl_topology_read(destination->connection, &destination->topology, error) ||
        !sl_registry_open_settled(destination->connection, &destination->target, SL_SETTLE_READ,
                                  true, &destination->registry, error) ||
        !sl_types_adopt(job, destination, true, error))
        return false;
    sl_types_log(job);
    if (!(config->unregistered ? sl_sources_number_offline(job, error)
                               : sl_ids_allow_verify(job, destination, error) &&
                                     sl_sources_number_as_loaded(job, destination, error)) ||
        (!config->unregistered &&
         !sl_registry_numbers(destination->registry, &verification->registered,
                              &verification->registered_count, error)) ||
        !sl_shard_map_read(destination->connection, &destination->target, destination->topology,
                           &destination->map, error))
        return false;
    job->by_range = sl_shard_map_by_id(destination->map);
    job->shards = job->by_range ? (uint32_t)destination->topology->count : 1;
    return sl_ranges_lay_out(job, destination, error);
}

static bool open_embedded(sl_verification *v, sl_error *error) {
    return !v->job.config->embed_field ||
           sl_embedding_open(&v->job, &v->destination, v->work_directory, SL_STORE_READ_ONLY,
                             error);
}

static void on_tick(void *context) {
    sl_progress_tick(context);
}

static bool read_sources(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    sl_run *run = &verification->run;
    verification->ranges = calloc(job->range_count + 1, sizeof *verification->ranges);
    verification->ids = calloc((size_t)1 << ID_SUMS_LOG2, sizeof *verification->ids);
    if (!sl_run_create_counters(run) || !verification->ranges || !verification->ids)
        return sl_error_memory(error, "starting threads");
    atomic_store(&run->begun, true);
    sl_progress *progress =
        sl_progress_start(run, &verification->destination, verification->record);
    bool ok = verify_blocks(verification, on_tick, progress, error);
    sl_progress_end(progress);
    if (ok && sl_interrupt_requested())
        return interrupted(error);
    return ok && sl_source_set_unchanged(job->set, error);
}

static bool count_ranges(sl_verification *verification, sl_error *error) {
    return verification->content || verification->job.own_ids || verify_ranges(verification, error);
}

static bool find_others(sl_verification *verification, sl_error *error) {
    return verification->job.own_ids
               ? verify_total_by_id(verification, error)
               : verify_gaps(verification, error) &&
                     (!verification->content || verify_other_sources(verification, error));
}

static bool run_phases(sl_verification *verification, sl_error *error) {
    static const struct {
        const char *name;
        bool (*run)(sl_verification *verification, sl_error *error);
    } phases[] = {{SL_PHASE_CONNECT, connect_to_cluster},
                  {SL_PHASE_EMBED, open_embedded},
                  {SL_PHASE_SOURCES, read_sources},
                  {"count", count_ranges},
                  {"between", find_others}};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof phases / sizeof phases[0]; i++) {
        int64_t start = sl_clock_ns();
        ok = phases[i].run(verification, error) || sl_error_missing(error, phases[i].name);
        sl_run_record_phase(verification->record, phases[i].name, sl_seconds_since(start));
    }
    if (!ok && sl_interrupt_requested())
        interrupted(error);
    return ok;
}

/* ---- the verification ---- */

static bool write_record(sl_verification *verification, sl_exit code, sl_error *error) {
    char path[600];
    sl_record_tail(sl_run_record_document(verification->record), code);
    if (verification->job.config->run_record)
        sl_run_record_copy(verification->record, verification->job.config->run_record);
    snprintf(path, sizeof path, "%s/" SL_WORK_VERIFY, verification->work_directory);
    const bool ok =
        !verification->work_directory[0] || sl_run_record_write(verification->record, path, error);
    return (!verification->report ||
            sl_run_record_write(verification->record, verification->report, error)) &&
           ok;
}

static void clear(sl_verification *verification) {
    sl_run_clear(&verification->run);
    sl_destination_close(&verification->destination);
    sl_job_clear(&verification->job);
    sl_run_record_destroy(verification->record);
    free(verification->ranges);
    free(verification->ids);
    bson_destroy(verification->other_sources);
    free(verification->registered);
    free(verification->covered);
    sl_work_directory_release(&verification->directory_lock);
    pthread_mutex_destroy(&verification->lock);
}

/* Opens the output files of the verification. */
static bool open_outputs(sl_verification *verification, uint64_t problems_shown, sl_error *error) {
    const sl_load_config *config = verification->job.config;
    char *directory = verification->work_directory;
    return (!config->work_directory ||
            sl_work_directory_make(config, NULL, directory, &verification->directory_lock,
                                   error)) &&
           sl_report_check(&verification->report, error) &&
           problems_open(directory[0] ? directory : NULL, verification->job.set, problems_shown,
                         &verification->problems, error);
}

sl_exit sl_verify_run(const sl_load_config *config, bool content, uint64_t problems_shown) {
    sl_error error = {0};
    sl_verification verification = {.content = content, .report = config->report};
    sl_job_init(&verification.job, config);
    sl_run_init(&verification.run, &verification.job);
    pthread_mutex_init(&verification.lock, NULL);
    verification.record = sl_run_record_create();
    const bool listening = (verification.record || sl_error_memory(&error, "starting")) &&
                           sl_interrupt_listen(on_first_signal, NULL, &verification.run, &error);
    if (listening)
        sl_record_start(verification.record, config, "verify");
    bool ok = listening && look_at_sources(&verification, &error) &&
              open_outputs(&verification, problems_shown, &error) &&
              run_phases(&verification, &error);
    sl_error closing = {0};
    if (!problems_close(verification.problems, &closing) && ok) {
        error = closing;
        ok = false;
    }
    if (verification.record)
        sl_not_loaded_record(&verification.job, sl_run_record_document(verification.record));
    if (ok && !verify_report(&verification))
        ok =
            sl_error_set(&error, SL_EXIT_VERIFICATION, "%s.%s differs from its sources (see above)",
                         config->database, config->collection);
    else if (ok && config->unregistered && verification.rejects > 0)
        ok = sl_error_set(&error, SL_EXIT_SOURCE,
                          "%s.%s: %s of the dump cannot be read or stored, and %s not compared",
                          config->database, config->collection,
                          sl_plural(verification.rejects, "record"),
                          sl_agreeing(verification.rejects, "[was|were]"));
    else if (ok && !config->unregistered)
        sl_log_result("%s.%s %s%s", config->database, config->collection,
                      content ? "is equal to its sources, byte by byte"
                              : "has the number of documents that its sources have",
                      verification.rejects > 0 ? ", without the rejected records" : "");
    /* It is not known whether the collection should hold records of files that are not loaded. */
    ok = ok && sl_not_loaded_check(&verification.job, &error);
    if (!ok) {
        sl_error_missing(&error, "the verification");
        sl_log_error(SL_LINES, error.message);
    }
    sl_exit code = ok ? SL_EXIT_OK : error.code;
    if (verification.record && !write_record(&verification, code, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    if (listening)
        sl_interrupt_stop_listening();
    clear(&verification);
    sl_log_close_file();
    return code;
}
