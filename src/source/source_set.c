/* SPDX-License-Identifier: Apache-2.0 */
/* Which sources there are: paths turned into files, and who each of them is. */
#include "source_set.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/document_id.h>
#include <shardload/log.h>

#define END_BYTES ((size_t)65536)

const char *sl_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static source_state *add(sl_source_set *set, const char *path) {
    if (set->count == set->room) {
        size_t room = set->room ? set->room * 2 : 64;
        source_state *states = realloc(set->states, room * sizeof *states);
        if (!states)
            return NULL;
        set->states = states;
        set->room = room;
    }
    source_state *state = &set->states[set->count];
    memset(state, 0, sizeof *state);
    state->source.path = strdup(path);
    if (!state->source.path)
        return NULL;
    set->count++;
    return state;
}

/* What a regular file is: plain, gzip, or something that has to be unpacked first. */
static bool look_inside(source_state *state, sl_error *error) {
    const char *path = state->source.path;
    unsigned char magic[8];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, magic, sizeof magic);
    int reason = errno;
    if (file >= 0)
        close(file);
    if (got < 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", path, strerror(reason));
    const char *advice = sl_container_advice(magic, (size_t)got);
    if (advice)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: this is %s", path, advice);
    if (got >= 2 && magic[0] == 0x1F && magic[1] == 0x8B)
        state->source.kind = SL_SOURCE_GZIP;
    else if (state->source.stored_bytes > SL_SOURCE_BYTES_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: a source may hold 1 TiB at most; split the file", path);
    return true;
}

static bool add_file(sl_source_set *set, const char *path, const struct stat *facts, bool named,
                     sl_error *error) {
    source_state *state = add(set, path);
    if (!state)
        return sl_error_memory(error, "listing sources");
    state->source.named = named;
    if (S_ISREG(facts->st_mode)) {
        state->source.stored_bytes = (uint64_t)facts->st_size;
        if (look_inside(state, error))
            return true;
        free(state->source.path);
        set->count--;
        return false;
    }
    state->source.kind = SL_SOURCE_PIPE;
    return true;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool add_folder(sl_source_set *set, const char *path, const char *include,
                       sl_error *error) {
    size_t before = set->count, seen = 0;
    char *roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", path, strerror(errno));
    bool ok = true;
    FTSENT *entry;
    while (ok && (entry = fts_read(walk)) != NULL) {
        bool hidden = entry->fts_level > 0 &&
                      (entry->fts_name[0] == '.' || strcmp(entry->fts_name, "__MACOSX") == 0);
        sl_error why = {0};
        switch (entry->fts_info) {
        case FTS_D:
            if (hidden)
                fts_set(walk, entry, FTS_SKIP);
            break;
        case FTS_DC:
            sl_log_warning("%s: leads back to a folder above it; not followed", entry->fts_path);
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            ok = sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", entry->fts_path,
                              strerror(entry->fts_errno));
            break;
        case FTS_F:
            if (hidden || (include && fnmatch(include, entry->fts_name, 0) != 0))
                break;
            seen++;
            if (!add_file(set, entry->fts_path, entry->fts_statp, false, &why)) {
                sl_log_warning("%s; left out", why.message);
                set->left_out++;
            }
            break;
        default: /* links to nowhere, sockets, devices: not data */
            break;
        }
    }
    fts_close(walk);
    if (ok && set->count == before)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: this folder holds no %s%s%s", path,
                            seen ? "file that can be read" : "files",
                            include ? " that match --include " : "", include ? include : "");
    return ok;
}

bool sl_source_set_create(const char *const *paths, size_t count, const char *include,
                          sl_source_set **result, sl_error *error) {
    *result = NULL;
    sl_source_set *set = calloc(1, sizeof *set);
    if (!set)
        return sl_error_memory(error, "listing sources");
    pthread_mutex_init(&set->lock, NULL);
    char report[sizeof error->message] = "";
    size_t used = 0;
    bool piped = false;
    for (size_t i = 0; i < count; i++) {
        sl_error why = {0};
        struct stat facts;
        bool is_pipe = strcmp(paths[i], "-") == 0;
        bool ok;
        if (is_pipe && piped)
            ok = sl_error_set(&why, SL_EXIT_SOURCE, "-: standard input can be read only once");
        else if ((is_pipe ? fstat(STDIN_FILENO, &facts) : stat(paths[i], &facts)) != 0)
            ok = sl_error_set(&why, SL_EXIT_SOURCE, "%s: %s", paths[i], strerror(errno));
        else if (is_pipe) {
            facts.st_mode = S_IFIFO;
            ok = add_file(set, paths[i], &facts, true, &why);
        } else if (S_ISDIR(facts.st_mode))
            ok = add_folder(set, paths[i], include, &why);
        else
            ok = add_file(set, paths[i], &facts, true, &why);
        piped = piped || is_pipe;
        if (!ok && used < sizeof report)
            used += (size_t)snprintf(report + used, sizeof report - used, "%s%s", used ? "\n" : "",
                                     why.message);
    }
    if (used > 0) {
        sl_source_set_destroy(set);
        return sl_error_set(error, SL_EXIT_SOURCE, "%s", report);
    }
    for (size_t i = 0; i < set->count; i++)
        set->stored_bytes += set->states[i].source.stored_bytes;
    *result = set;
    return true;
}

void sl_source_set_destroy(sl_source_set *set) {
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->states[i].source.path);
        sl_stream_close(set->states[i].kept);
        free(set->states[i].kept_head);
    }
    for (size_t i = 0; i < set->open_count; i++)
        sl_open_source_destroy(set->open[i]);
    free(set->open);
    free(set->states);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

size_t sl_source_set_count(const sl_source_set *set) {
    return set->count;
}

const sl_source *sl_source_set_at(const sl_source_set *set, size_t index) {
    return &set->states[index].source;
}

uint64_t sl_source_set_stored_bytes(const sl_source_set *set) {
    return set->stored_bytes;
}

uint64_t sl_source_set_consumed_bytes(const sl_source_set *set) {
    return atomic_load_explicit(&set->consumed_bytes, memory_order_relaxed);
}

void sl_source_set_skip(sl_source_set *set, size_t index) {
    if (!set->states[index].skip)
        set->stored_bytes -= set->states[index].source.stored_bytes;
    set->states[index].skip = true;
}

bool sl_source_head(sl_source_set *set, size_t index, char *head, size_t room, size_t *length,
                    bool *whole, sl_error *error) {
    source_state *state = &set->states[index];
    sl_reader_times times = {0};
    sl_stream *stream = NULL;
    if (!sl_stream_open(state->source.path, &stream, error))
        return false;
    bool ok = sl_stream_read(stream, head, room, length, &times, error);
    *whole = ok && *length < room;
    if (!ok || state->source.kind != SL_SOURCE_PIPE) {
        sl_stream_close(stream);
        return ok;
    }
    state->kept = stream;
    state->kept_head = malloc(*length ? *length : 1);
    if (!state->kept_head)
        return sl_error_memory(error, "reading a pipe");
    memcpy(state->kept_head, head, *length);
    state->kept_length = *length;
    return true;
}

/* FNV-1a over the bytes, its bits mixed at the end so that near inputs lie far apart. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ p[i]) * 0x100000001B3u;
    return hash;
}

static uint64_t mix(uint64_t hash) {
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53u;
    return hash ^ (hash >> 33);
}

bool sl_source_fingerprint(const sl_source_set *set, size_t index,
                           char fingerprint[SL_FINGERPRINT_ROOM], sl_error *error) {
    const sl_source *source = &set->states[index].source;
    if (source->kind == SL_SOURCE_PIPE) {
        snprintf(fingerprint, SL_FINGERPRINT_ROOM, "pipe-%" PRIx64 "-%ld",
                 (uint64_t)sl_wall_clock_ms(), (long)getpid());
        return true;
    }
    char *bytes = malloc(END_BYTES);
    if (!bytes)
        return sl_error_memory(error, "reading sources");
    const char *name = sl_base_name(source->path);
    uint64_t hash = hash_bytes(0xCBF29CE484222325u, name, strlen(name) + 1);
    hash = hash_bytes(hash, &source->stored_bytes, sizeof source->stored_bytes);
    uint64_t size = source->stored_bytes;
    uint64_t starts[2] = {0, size > END_BYTES ? size - END_BYTES : 0};
    int file = open(source->path, O_RDONLY | O_CLOEXEC);
    bool ok = file >= 0;
    for (int end = 0; ok && end < (size > END_BYTES ? 2 : 1); end++) {
        ssize_t got = pread(file, bytes, END_BYTES, (off_t)starts[end]);
        ok = got >= 0;
        if (ok)
            hash = hash_bytes(hash, bytes, (size_t)got);
    }
    if (!ok)
        sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", source->path, strerror(errno));
    if (file >= 0)
        close(file);
    free(bytes);
    snprintf(fingerprint, SL_FINGERPRINT_ROOM, "%016" PRIx64 "-%" PRIu64, mix(hash), size);
    return ok;
}
