/* SPDX-License-Identifier: Apache-2.0 */
/* Threads open the same path at different times, and a load takes hours. If a file is replaced,
 * appended to, truncated or rewritten meanwhile, the load would contain a mixture of two texts. So
 * each source has an identity, taken when the set is created. After bytes are read from a
 * descriptor, its identity is compared: if it is unchanged, the bytes are text of the original
 * file.
 *
 * The ctime shows changes that size, mtime and inode do not: contents rewritten at the same size
 * with the mtime restored, and an open file whose path was given to another file (this removes a
 * link, which changes the ctime). A file of which only the permissions or links have changed is
 * refused as well; a resume then compares its text. */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/read_file.h"

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

sl_source_identity sl_identity_of(const struct stat *facts) {
    if (!S_ISREG(facts->st_mode))
        return (sl_source_identity){0};
    return (sl_source_identity){.device = facts->st_dev,
                                .inode = facts->st_ino,
                                .size = (uint64_t)facts->st_size,
                                .modified_ns = nanoseconds(facts->st_mtim),
                                .changed_ns = nanoseconds(facts->st_ctim)};
}

sl_source_identity sl_source_identity_at(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? sl_identity_of(&facts) : (sl_source_identity){0};
}

_Static_assert(sizeof(sl_source_identity) == 5 * sizeof(uint64_t), "memcmp must not see padding");

bool sl_source_same_identity(const sl_source_identity *a, const sl_source_identity *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

const char *sl_file_time_shown(int64_t ns, char out[SL_FILE_TIME_ROOM]) {
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm utc;
    char day[32] = "?";
    if (gmtime_r(&seconds, &utc))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, SL_FILE_TIME_ROOM, "%s.%09lldZ", day, (long long)(ns % 1000000000));
    return out;
}

/* Sets the error to the most important change; returns false. `now` NULL: the file no longer
 * exists. */
static bool report_change(sl_source_set *set, size_t index, const sl_source_identity *now,
                          sl_error *error) {
    const sl_source *source = &set->states[index].source;
    const sl_source_identity *was = &source->identity;
    char how[300], before[SL_FILE_TIME_ROOM], after[SL_FILE_TIME_ROOM];
    if (!now)
        snprintf(how, sizeof how, "was removed or renamed");
    else if (now->inode == 0)
        snprintf(how, sizeof how, "was replaced by something that is not a regular file");
    else if (now->device != was->device || now->inode != was->inode)
        snprintf(how, sizeof how,
                 "was replaced by another file (inode %llu, before: %llu; %llu bytes, before: "
                 "%llu)",
                 (unsigned long long)now->inode, (unsigned long long)was->inode,
                 (unsigned long long)now->size, (unsigned long long)was->size);
    else if (now->size != was->size)
        snprintf(how, sizeof how, "has %s from %llu to %llu bytes",
                 now->size > was->size ? "grown" : "shrunk", (unsigned long long)was->size,
                 (unsigned long long)now->size);
    else if (now->modified_ns != was->modified_ns)
        snprintf(how, sizeof how, "was modified at %s (before: %s) at the same size of %llu bytes",
                 sl_file_time_shown(now->modified_ns, after),
                 sl_file_time_shown(was->modified_ns, before), (unsigned long long)now->size);
    else
        snprintf(how, sizeof how,
                 "had its status changed at %s (before: %s): its permissions, owner, links or "
                 "times, or its contents with the times restored",
                 sl_file_time_shown(now->changed_ns, after),
                 sl_file_time_shown(was->changed_ns, before));
    atomic_store(&set->changed, true);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: %s while it was being read; do not change sources until the command "
                        "has ended",
                        source->shown, how);
}

static bool has_identity(const sl_source *source) {
    return source->identity.inode != 0;
}

bool sl_identity_check_path(sl_source_set *set, size_t index, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    struct stat facts;
    if (!has_identity(source))
        return true;
    bool standard_input = strcmp(source->path, "-") == 0;
    if ((standard_input ? fstat(0, &facts) : stat(source->path, &facts)) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? report_change(set, index, NULL, error)
                   : sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    sl_source_identity now = sl_identity_of(&facts);
    return sl_source_same_identity(&source->identity, &now) ||
           report_change(set, index, &now, error);
}

bool sl_identity_check_open(sl_source_set *set, size_t index, int file, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    struct stat facts;
    if (!has_identity(source))
        return true;
    if (fstat(file, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    sl_source_identity now = sl_identity_of(&facts);
    if (sl_source_same_identity(&source->identity, &now))
        return true;
    /* If the path now names another file, the descriptor shows only a new ctime: report the
     * path. */
    return sl_identity_check_path(set, index, error) && report_change(set, index, &now, error);
}

bool sl_source_set_unchanged(sl_source_set *set, sl_error *error) {
    for (size_t i = 0; i < set->count; i++) {
        if (!set->states[i].skip && !sl_identity_check_path(set, i, error))
            return false;
    }
    return true;
}

bool sl_source_set_has_changed(const sl_source_set *set) {
    return atomic_load(&set->changed);
}

/* ---- comparing two files ---- */

#define COMPARED_BYTES ((size_t)1 << 20)

bool sl_source_same_text(sl_source_set *set, size_t a, size_t b, bool *same, uint64_t *where,
                         sl_error *error) {
    const size_t indexes[2] = {a, b};
    int files[2] = {-1, -1};
    char *bytes = malloc(2 * COMPARED_BYTES);
    bool ok = bytes || sl_error_memory(error, "comparing sources");
    *same = true;
    *where = 0;
    if (set->states[a].source.kind == SL_SOURCE_GENERATED) {
        free(bytes);
        return ok;
    }
    for (int i = 0; ok && i < 2; i++) {
        const sl_source *source = &set->states[indexes[i]].source;
        files[i] = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ok = files[i] >= 0 || sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    }
    for (bool more = true; ok && more && *same;) {
        size_t got[2] = {0, 0};
        for (int i = 0; ok && i < 2; i++) {
            char *to = bytes + (size_t)i * COMPARED_BYTES;
            got[i] = sl_read_at(files[i], to, COMPARED_BYTES, *where);
            ok = got[i] == COMPARED_BYTES || errno == 0 ||
                 sl_error_errno(error, SL_EXIT_SOURCE, "%s", set->states[indexes[i]].source.shown);
        }
        size_t common = got[0] < got[1] ? got[0] : got[1], at = 0;
        while (ok && at < common && bytes[at] == bytes[COMPARED_BYTES + at])
            at++;
        *same = at == common && got[0] == got[1];
        *where += at;
        more = common == COMPARED_BYTES;
    }
    for (int i = 0; i < 2; i++) {
        ok = ok && sl_identity_check_open(set, indexes[i], files[i], error);
        if (files[i] >= 0)
            close(files[i]);
    }
    free(bytes);
    return ok;
}
