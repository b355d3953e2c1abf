/* SPDX-License-Identifier: Apache-2.0 */
/* Problems: missing, different and extra documents, with their position in the source. All are
 * written to problems.tsv, ordered only within a block; the first ones are also logged. */
#include "verification.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

#define DETAIL_ROOM 600

static const char *const names[] = {"missing", "different", "extra"};

struct sl_problems {
    pthread_mutex_t lock;
    const sl_source_set *set;
    FILE *table; /* or NULL */
    uint64_t count, shown_max;
};

void sl_problem_clear(sl_problem *problem) {
    free(problem->id);
    bson_free(problem->detail);
}

/* Sets the position of a problem from its _id. */
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

sl_problem sl_problem_of(const sl_job *job, sl_finding finding, size_t likely,
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

bool sl_problems_open(const char *directory, const sl_source_set *set, uint64_t shown_max,
                      sl_problems **problems, sl_error *error) {
    sl_problems *made = *problems = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "starting");
    pthread_mutex_init(&made->lock, NULL);
    made->set = set;
    made->shown_max = shown_max;
    if (!directory)
        return true;
    char path[600];
    snprintf(path, sizeof path, "%s/problems.tsv", directory);
    made->table = sl_private_file_stream(path, O_WRONLY | O_TRUNC, error);
    if (!made->table)
        return false;
    fputs("problem\tsource\toffset\t_id\tdetail\n", made->table);
    return true;
}

void sl_problems_add(sl_problems *problems, const sl_problem *problem) {
    const char *unit = ", byte ";
    char place[1200] = "", offset[32] = "", id[300], detail[DETAIL_ROOM] = "", path[1100];
    sl_text_printable(sl_text_of(problem->id ? problem->id : ""), id, sizeof id);
    if (problem->detail)
        sl_text_printable(sl_text_of(problem->detail), detail, sizeof detail);
    if (problem->placed) {
        const sl_source *source = sl_source_set_at(problems->set, problem->source);
        snprintf(path, sizeof path, "%s%s%s", source->path, problem->entry ? ": " : "",
                 problem->entry ? problem->entry : "");
        sl_text_printable(sl_text_of(path), place, sizeof place);
        bool generated = source->kind == SL_SOURCE_GENERATED;
        if (generated)
            unit = ", record ";
        snprintf(offset, sizeof offset, "%llu",
                 (unsigned long long)(generated ? problem->offset / source->record_bytes
                                                : problem->offset));
    }
    pthread_mutex_lock(&problems->lock);
    if (problems->table)
        sl_print_to(problems->table, "%s\t%s\t%s\t%s\t%s\n", names[problem->finding], place, offset,
                    id, detail);
    if (problems->count++ < problems->shown_max) {
        sl_log_warning("%s%s%s%s_id %s: %s%s%s", place, problem->placed ? unit : "", offset,
                       problem->placed ? ", " : "", id, names[problem->finding],
                       *detail ? ": " : "", detail);
    } else if (problems->count == problems->shown_max + 1) {
        sl_log_warning("further problems are %s",
                       problems->table ? "in problems.tsv only"
                                       : "only counted; with --work-dir, problems.tsv there lists "
                                         "all");
    }
    pthread_mutex_unlock(&problems->lock);
}

bool sl_problems_close(sl_problems *problems, sl_error *error) {
    bool ok = true;
    if (!problems)
        return true;
    if (problems->table) {
        ok = !ferror(problems->table);
        ok = fclose(problems->table) == 0 && ok;
    }
    if (!ok)
        sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write problems.tsv: %s",
                     errno ? strerror(errno) : "the disk may be full");
    pthread_mutex_destroy(&problems->lock);
    free(problems);
    return ok;
}
