/* SPDX-License-Identifier: Apache-2.0 */
/* Looks in the run.json of earlier loads for sources with the same content as a source of this
 * load. */
#include "same_content.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/json.h"
#include "report/lookup.h"
#include "util/log.h"
#include "util/text.h"

#define RECORDS_MOST 1000            /* read at most */
#define RECORD_BYTES_MOST (16 << 20) /* longer files are ignored */
#define SHOWN 5

typedef struct content {
    char text[17]; /* 16 hexadecimal digits */
    size_t source;
} content;

typedef struct search {
    const sl_job *job;
    content *contents; /* sorted; of the sources whose content is known */
    size_t count;
    char uuid[SL_UUID_ROOM]; /* of the collection now; "" if there is none */
    bool *known;             /* per source: was found in a record */
    size_t found;            /* sources whose content was loaded under another name */
    bool same_target;        /* some of these were loaded into this collection */
    char list[700];
    size_t used;
} search;

static int by_text(const void *a, const void *b) {
    return strcmp(((const content *)a)->text, ((const content *)b)->text);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Compares a source of a record, which was loaded as `record` describes, with those of the job. */
static void compare(search *s, const bson_t *record, const bson_t *earlier, const char *folder) {
    const char *text = sl_look_text(earlier, "content"), *path = sl_look_text(earlier, "path");
    content key;
    if (!text || !path || strlen(text) >= sizeof key.text)
        return;
    strcpy(key.text, text);
    const content *own = bsearch(&key, s->contents, s->count, sizeof key, by_text);
    if (!own || s->known[own->source])
        return;
    const char *shown = sl_source_set_at(s->job->set, own->source)->shown;
    const char *uuid = sl_look_text(record, "collectionUuid");
    bool same = uuid && s->uuid[0] && strcmp(uuid, s->uuid) == 0;
    if (strcmp(base_name(shown), base_name(path)) == 0)
        return; /* the registry of its collection lists this source */
    const char *database = sl_look_text(record, "options.db");
    const char *collection = sl_look_text(record, "options.collection");
    char when[SL_DATE_ROOM];
    sl_look_date(record, "startedAt", when);
    s->known[own->source] = true;
    s->same_target = s->same_target || same;
    if (s->found++ < SHOWN)
        s->used += sl_print_text(s->list + s->used, sizeof s->list - s->used,
                                 "\n  %s: as %s, into %s.%s%s%s (%s)", shown, path,
                                 database ? database : "?", collection ? collection : "?",
                                 when[0] ? " on " : "", when, folder);
}

/* Reads the record in a folder, if it is the record of a completed load. */
static void read_record(search *s, const char *folder) {
    char path[PATH_MAX + 16];
    struct stat facts;
    bson_t *record;
    sl_error ignored;
    snprintf(path, sizeof path, "%s/run.json", folder);
    if (lstat(path, &facts) != 0 || facts.st_size > RECORD_BYTES_MOST ||
        !sl_json_read_private(path, &record, &ignored))
        return;
    const char *command = sl_look_text(record, "command");
    double code = sl_look_number(record, "exitCode");
    if (command && strcmp(command, "load") == 0 &&
        (code == SL_EXIT_OK || code == SL_EXIT_REJECTS)) {
        for (sl_walk walk = sl_walk_start(record, "sources"); sl_walk_next(&walk);)
            compare(s, record, &walk.item, folder);
    }
    bson_destroy(record);
}

static void read_records(search *s, const char *work_directory) {
    char parent[PATH_MAX], own[PATH_MAX], folder[PATH_MAX];
    if (!realpath(work_directory, own))
        return;
    snprintf(parent, sizeof parent, "%s", own);
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return;
    *slash = '\0';
    DIR *beside = opendir(parent);
    size_t read = 0;
    for (const struct dirent *entry;
         beside && read < RECORDS_MOST && (entry = readdir(beside)) != NULL;) {
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
            (size_t)snprintf(folder, sizeof folder, "%s/%s", parent, entry->d_name) >=
                sizeof folder ||
            strcmp(folder, own) == 0)
            continue;
        read++;
        read_record(s, folder);
    }
    if (beside)
        closedir(beside);
}

static bool collect_contents(search *s, sl_error *error) {
    size_t sources = sl_source_set_count(s->job->set);
    s->contents = calloc(sources + 1, sizeof *s->contents);
    s->known = calloc(sources + 1, sizeof *s->known);
    if (!s->contents || !s->known)
        return sl_error_memory(error, "comparing the sources");
    for (size_t i = 0; i < sources; i++) {
        const sl_source *facts = sl_source_set_at(s->job->set, i);
        if (s->job->sources[i].skipped || facts->content == 0)
            continue;
        snprintf(s->contents[s->count].text, sizeof s->contents->text, "%016llx",
                 (unsigned long long)facts->content);
        s->contents[s->count++].source = i;
    }
    qsort(s->contents, s->count, sizeof *s->contents, by_text);
    return true;
}

bool sl_same_content_check(const sl_job *job, const sl_destination *destination,
                           const char *work_directory, sl_error *error) {
    const sl_target *target = &destination->target;
    search s = {.job = job};
    if (job->resumed || job->config->part_of_trial || !work_directory[0])
        return true;
    bool ok = collect_contents(&s, error) &&
              (s.count == 0 || sl_target_uuid(destination->connection, target, s.uuid, error));
    if (ok && s.count > 0)
        read_records(&s, work_directory);
    /* Documents with their own _ids are recognised if they are already stored. */
    bool twice = s.same_target && !job->own_ids && !target->drop && !job->config->again &&
                 !sl_load_mode(job->config)->matches;
    const char *more = s.found > SHOWN ? "\n  ..." : "";
    if (ok && s.found > 0 && twice)
        ok = sl_error_set(error, SL_EXIT_SOURCE,
                          "%zu of the sources %s the size, beginning and end of a file that was "
                          "loaded into %s.%s before, under another name:" SL_LINES SL_LINES
                          "\nIf it is the same "
                          "file, its documents "
                          "would be stored "
                          "twice. --again "
                          "loads it anyway, "
                          "--drop starts again",
                          s.found, s.found == 1 ? "has" : "have", target->database,
                          target->collection, s.list, more);
    else if (ok && s.found > 0)
        sl_log_info(
            "%zu of the sources %s been loaded before, under another name:" SL_LINES SL_LINES,
            s.found, s.found == 1 ? "has" : "have", s.list, more);
    free(s.contents);
    free(s.known);
    return ok;
}
