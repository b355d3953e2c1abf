/* SPDX-License-Identifier: Apache-2.0 */
/* The source set: finds the files in the given paths, opens them, computes their fingerprints. */
#include "source_set.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/grow.h"

#include "folder.h"
#include "identity.h"
#include "reader.h"

#define END_BYTES ((size_t)65536)

static source_state *add(sl_source_set *set, const char *path, sl_error *error) {
    source_state *states = sl_grow(set->states, set->count, &set->room, sizeof *states);
    if (!states) {
        sl_error_memory(error, "listing sources");
        return NULL;
    }
    set->states = states;
    source_state *state = &states[set->count];
    char shown[SL_SHOWN_ROOM];
    const char *kept = sl_names_add(&set->paths, path);
    *state = (source_state){.source = {.path = kept, .shown = kept},
                            .spread = set->count * UINT64_C(0xC13FA9A902A6328F)};
    if (kept && strcmp(sl_path_shown(path, shown), path) != 0)
        state->source.shown = sl_names_add(&set->paths, shown);
    if (!kept || !state->source.shown) {
        sl_error_memory(error, "listing sources");
        return NULL;
    }
    set->count++;
    return state;
}

bool sl_source_set_open(sl_source_set *set, size_t index, sl_stream **stream, sl_error *error) {
    sl_source *source = &set->states[index].source;
    const char *special = set->states[index].special;
    bool not_text;
    *stream = NULL;
    if (special)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", source->shown, special);
    if (!sl_identity_check_path(set, index, error)) /* otherwise a pipe at this path could block */
        return false;
    /* `include` has matched the name of an archive found in a folder: all its entries are read. */
    if (sl_stream_open(source->path, source->shown, source->named ? set->include : NULL, set->dumps,
                       &set->stopped, &not_text, stream, error)) {
        if (sl_identity_check_open(set, index, sl_stream_file(*stream), error))
            return true;
        sl_stream_close(*stream);
        *stream = NULL;
        return false;
    }
    if (!sl_identity_check_path(set, index, error)) /* a change explains the failure: report it */
        return false;
    if (not_text) {
        pthread_mutex_lock(&set->lock);
        source->kind = SL_SOURCE_NOT_TEXT;
        pthread_mutex_unlock(&set->lock);
    }
    return false;
}

/* Sets the kind of a regular file from its opened stream. */
static bool set_kind(sl_source_set *set, size_t index, const sl_stream *stream, sl_error *error) {
    sl_source *source = &set->states[index].source;
    sl_source_kind kind = sl_stream_kind(stream);
    if (kind == SL_SOURCE_PLAIN && source->stored_bytes > SL_SOURCE_BYTES_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: a source may hold 1 TiB at most; split the file", source->shown);
    pthread_mutex_lock(&set->lock);
    source->kind = kind;
    pthread_mutex_unlock(&set->lock);
    return true;
}

bool sl_source_set_detect_kind(sl_source_set *set, size_t index, sl_error *error) {
    sl_stream *stream;
    bool ok = sl_source_set_open(set, index, &stream, error) && set_kind(set, index, stream, error);
    sl_stream_close(stream);
    return ok;
}

/* What cannot be read as a file of a folder; NULL for a regular file. */
static const char *special_kind(const struct stat *facts) {
    switch (facts->st_mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case 0:
        return "it was removed after its folder had been listed";
    case S_IFLNK:
        return "this is a link to a file that does not exist";
    case S_IFIFO:
        return "this is a named pipe; only a pipe named as a source is read";
    case S_IFSOCK:
        return "this is a socket";
    default:
        return "this is a device";
    }
}

/* Adds a file found in a folder, without opening it. */
static bool add_from_folder(void *context, const char *path, const struct stat *facts,
                            sl_error *error) {
    sl_source_set *set = context;
    source_state *state = add(set, path, error);
    if (!state)
        return false;
    state->special = special_kind(facts);
    state->source.kind = state->special ? SL_SOURCE_NOT_TEXT : SL_SOURCE_UNOPENED;
    if (state->special)
        return true;
    state->source.identity = sl_identity_of(facts);
    state->source.stored_bytes = (uint64_t)facts->st_size;
    return true;
}

static bool add_folder(sl_source_set *set, const char *path, sl_error *error) {
    size_t before = set->count;
    char shown[SL_SHOWN_ROOM];
    sl_path_shown(path, shown);
    if (!sl_folder_walk(path, set->include, add_from_folder, set, error))
        return false;
    return set->count > before ||
           sl_error_set(error, SL_EXIT_SOURCE, "%s: this folder holds no files%s%s", shown,
                        set->include ? " that match --include " : "",
                        set->include ? set->include : "");
}

static bool add_path(sl_source_set *set, const char *path, bool *piped, sl_error *error) {
    bool standard_input = strcmp(path, "-") == 0;
    if (standard_input && *piped)
        return sl_error_set(error, SL_EXIT_SOURCE, "-: standard input can be read only once");
    *piped = *piped || standard_input;
    struct stat facts;
    char shown[SL_SHOWN_ROOM];
    if ((standard_input ? fstat(STDIN_FILENO, &facts) : stat(path, &facts)) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", sl_path_shown(path, shown));
    if (!standard_input && S_ISDIR(facts.st_mode))
        return add_folder(set, path, error);
    const char *unsupported = S_ISSOCK(facts.st_mode)  ? "socket"
                              : S_ISBLK(facts.st_mode) ? "disk"
                                                       : NULL;
    if (unsupported)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: this is a %s; only files, folders and pipes can be loaded",
                            sl_path_shown(path, shown), unsupported);
    source_state *state = add(set, path, error);
    if (!state)
        return false;
    state->source.named = true;
    state->source.kind = SL_SOURCE_PIPE;
    state->source.identity = sl_identity_of(&facts); /* standard input may be a regular file */
    if (standard_input || !S_ISREG(facts.st_mode))
        return true;
    state->source.stored_bytes = (uint64_t)facts.st_size;
    return sl_source_set_detect_kind(set, set->count - 1, error);
}

static bool create(const char *const *paths, size_t count, const char *include, bool dumps,
                   sl_source_set **result, sl_error *error) {
    *result = NULL;
    sl_source_set *set = calloc(1, sizeof *set);
    if (!set)
        return sl_error_memory(error, "listing sources");
    pthread_mutex_init(&set->lock, NULL);
    set->share = (source_share){.parts = 1, .sample = UINT64_MAX};
    set->dumps = dumps;
    if (include && !(set->include = sl_names_add(&set->paths, include))) {
        sl_source_set_destroy(set);
        return sl_error_memory(error, "listing sources");
    }
    char report[sizeof error->message] = "";
    size_t used = 0;
    bool piped = false;
    sl_exit code = SL_EXIT_SOURCE;
    for (size_t i = 0; i < count; i++) {
        sl_error why = {0};
        if (add_path(set, paths[i], &piped, &why))
            continue;
        if (why.code == SL_EXIT_RESOURCES)
            code = why.code;
        used += sl_print_text(report + used, sizeof report - used, SL_LINES SL_LINES,
                              used ? "\n" : "", why.message);
    }
    if (used > 0) {
        sl_source_set_destroy(set);
        return sl_error_set(error, code, SL_LINES, report);
    }
    for (size_t i = 0; i < set->count; i++)
        set->stored_bytes += set->states[i].source.stored_bytes;
    *result = set;
    return true;
}

bool sl_source_set_create(const char *const *paths, size_t count, const char *include,
                          sl_source_set **set, sl_error *error) {
    return create(paths, count, include, false, set, error);
}

bool sl_source_set_create_dump(const char *path, sl_source_set **set, sl_error *error) {
    return create(&path, 1, NULL, true, set, error);
}

bool sl_source_set_add_generated(sl_source_set *set, const char *name, uint64_t records,
                                 uint32_t record_bytes, sl_error *error) {
    source_state *state = add(set, name, error);
    if (!state)
        return false;
    state->source.kind = SL_SOURCE_GENERATED;
    state->source.named = true;
    state->source.record_bytes = record_bytes;
    state->source.stored_bytes = records * record_bytes;
    set->stored_bytes += state->source.stored_bytes;
    return true;
}

void sl_source_set_destroy(sl_source_set *set) {
    if (!set)
        return;
    while (set->kept) {
        sl_kept_pipe *kept = set->kept;
        set->kept = kept->next;
        sl_kept_pipe_destroy(kept);
    }
    for (size_t i = 0; i < set->open_count; i++)
        sl_open_source_destroy(set->open[i]);
    free(set->open);
    free(set->order);
    free(set->states);
    sl_names_clear(&set->entry_names);
    sl_names_clear(&set->paths);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

size_t sl_source_set_count(const sl_source_set *set) {
    return set->count;
}

const sl_source *sl_source_set_at(const sl_source_set *set, size_t index) {
    return &set->states[index].source;
}

void sl_source_set_report_skipped(sl_source_set *set, sl_skipped_entry_report *report,
                                  void *context) {
    set->report = report;
    set->report_context = context;
}

uint64_t sl_source_set_stored_bytes(const sl_source_set *set) {
    return set->stored_bytes;
}

void sl_source_set_reset_consumed(sl_source_set *set) {
    atomic_store_explicit(&set->consumed_bytes, 0, memory_order_relaxed);
}

uint64_t sl_source_set_consumed_bytes(const sl_source_set *set) {
    return atomic_load_explicit(&set->consumed_bytes, memory_order_relaxed);
}

void sl_source_set_skip(sl_source_set *set, size_t index) {
    if (!set->states[index].skip)
        set->stored_bytes -= set->states[index].source.stored_bytes;
    set->states[index].skip = true;
}

void sl_source_set_splitter(sl_source_set *set, size_t index, const sl_splitter *splitter,
                            const void *context, bool lines) {
    source_state *state = &set->states[index];
    bool plain = state->source.kind == SL_SOURCE_PLAIN;
    state->splitter = plain && lines ? NULL : splitter;
    state->split_context = context;
    state->source.sequential = plain && !lines;
}

void sl_source_set_skip_blocks(sl_source_set *set, size_t index, const uint64_t *done, size_t words,
                               bool compare) {
    source_state *state = &set->states[index];
    state->done = done;
    state->done_words = words;
    state->compare = compare || !sl_source_is_splittable(&state->source);
    uint64_t size = state->source.stored_bytes, skipped = 0;
    for (uint64_t start = 0; !state->compare && start < size; start += SL_BLOCK_BYTES) {
        if (sl_source_block_is_done(state, start >> SL_BLOCK_BITS))
            skipped += size - start < SL_BLOCK_BYTES ? size - start : SL_BLOCK_BYTES;
    }
    atomic_fetch_add_explicit(&set->consumed_bytes, skipped, memory_order_relaxed);
}

/* Keeps a pipe's stream, which the set now owns, and the bytes read from it. */
static bool keep(sl_source_set *set, size_t index, sl_stream *stream, const char *head,
                 size_t length, sl_error *error) {
    sl_kept_pipe *kept = malloc(sizeof *kept);
    char *copy = malloc(length ? length : 1);
    if (!kept || !copy) {
        free(kept);
        free(copy);
        sl_stream_close(stream);
        return sl_error_memory(error, "reading a pipe");
    }
    memcpy(copy, head, length);
    kept->next = set->kept;
    kept->source = index;
    kept->stream = stream;
    kept->head = copy;
    kept->length = length;
    set->kept = kept;
    return true;
}

void sl_source_set_sample(sl_source_set *set, double share) {
    set->share.sample = (uint64_t)(share * 0x1p64);
}

void sl_source_set_part(sl_source_set *set, uint32_t part, uint32_t parts) {
    set->share.part = part - 1;
    set->share.parts = parts;
}

void sl_source_set_filter(sl_source_set *set, sl_block_filter *filter, const void *context) {
    set->filter = filter;
    set->filter_context = context;
}

/* Is the block part of the sample and of the part? Each block has a position from 0 to 1 (in
 * units of 2^-64): its sequence times the golden ratio, plus `spread`, modulo 1. Such positions
 * are evenly distributed for any series of consecutive blocks, and for blocks whose sequences
 * have the same low bits, so each range gets its share (see ranges.c). `spread` differs between
 * sources: otherwise all or none of many files with one block each would be selected. Part k is
 * the interval from k/parts to (k+1)/parts; the sample is the beginning of each part's interval. */
bool sl_source_set_selects(const sl_source_set *set, size_t index, uint64_t sequence,
                           uint64_t offset) {
    uint64_t position = sequence * UINT64_C(0x9E3779B97F4A7C15) + set->states[index].spread;
    unsigned __int128 scaled = (unsigned __int128)position * set->share.parts;
    return (uint64_t)(scaled >> 64) == set->share.part && (uint64_t)scaled <= set->share.sample &&
           (!set->filter || set->filter(set->filter_context, index, offset));
}

void sl_source_set_spread(sl_source_set *set, size_t index, uint64_t spread) {
    set->states[index].spread = spread;
}

void sl_source_set_cr_lines(sl_source_set *set, size_t index) {
    set->states[index].source.cr_lines = true;
}

void sl_source_replace_cr(char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\r')
            text[i] = '\n';
    }
}

void sl_source_set_stop(sl_source_set *set) {
    atomic_store(&set->stopped, true);
}

bool sl_source_head(sl_source_set *set, size_t index, char *head, size_t room, size_t *length,
                    bool *whole, const char **name, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    if (source->kind == SL_SOURCE_GENERATED) {
        *length = 0;
        *whole = true;
        if (name)
            *name = source->path;
        return true;
    }
    bool pipe = source->kind == SL_SOURCE_PIPE;
    sl_reader_times times = {0};
    sl_stream *stream;
    bool more;
    bool ok = sl_source_set_open(set, index, &stream, error);
    if (ok && pipe) /* a file is read again, and its skipped entries are reported at that time */
        sl_stream_report_skipped(stream, set, index);
    if (ok && !pipe) /* the bytes of a pipe are kept, and its format is not known yet */
        sl_stream_add_line_ends(stream);
    ok = ok && (pipe || set_kind(set, index, stream, error)) &&
         sl_stream_next_entry(stream, &more, &times, error) &&
         sl_stream_read(stream, head, room, length, &times, error);
    *whole = ok && *length < room;
    if (ok && name) {
        const char *entry = sl_stream_entry_name(stream);
        *name = entry ? sl_names_add(&set->entry_names, entry) : source->path;
        ok = *name || sl_error_memory(error, "examining the sources");
    }
    if (ok && pipe)
        return keep(set, index, stream, head, *length, error);
    sl_stream_close(stream);
    return ok;
}

/* FNV-1a. */
#define FNV_BASIS UINT64_C(0xCBF29CE484222325)
#define FNV_PRIME UINT64_C(0x100000001B3)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ p[i]) * FNV_PRIME;
    return hash;
}

/* MurmurHash3's final mix: similar inputs give very different hashes. */
static uint64_t mix(uint64_t hash) {
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53u;
    return hash ^ (hash >> 33);
}

/* Adds a file's first and last END_BYTES bytes to the hashes. */
static bool hash_ends(sl_source_set *set, size_t index, uint64_t *hash, uint64_t *content,
                      sl_error *error) {
    const sl_source *source = &set->states[index].source;
    char *bytes = malloc(END_BYTES);
    if (!bytes)
        return sl_error_memory(error, "reading sources");
    uint64_t size = source->stored_bytes;
    uint64_t starts[2] = {0, size > END_BYTES ? size - END_BYTES : 0};
    int file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = file >= 0;
    for (int end = 0; ok && end < (size > END_BYTES ? 2 : 1); end++) {
        ssize_t got = pread(file, bytes, END_BYTES, (off_t)starts[end]);
        ok = got >= 0;
        for (ssize_t i = 0; i < got; i++) { /* computing both hashes in one loop takes the time of
                                               one */
            *hash = (*hash ^ (unsigned char)bytes[i]) * FNV_PRIME;
            *content = (*content ^ (unsigned char)bytes[i]) * FNV_PRIME;
        }
    }
    if (!ok)
        sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    ok = ok ? sl_identity_check_open(set, index, file, error)
            : sl_identity_check_path(set, index, error) && false;
    if (file >= 0)
        close(file);
    free(bytes);
    return ok;
}

bool sl_source_fingerprint(sl_source_set *set, size_t index, char fingerprint[SL_FINGERPRINT_ROOM],
                           sl_error *error) {
    sl_source *source = &set->states[index].source;
    if (source->kind == SL_SOURCE_PIPE) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            random = (uint64_t)sl_clock_ns() << 16 ^ (uint64_t)getpid();
        snprintf(fingerprint, SL_FINGERPRINT_ROOM, SL_PIPE_FINGERPRINT "%zu-%" PRIx64, index,
                 random);
        return true;
    }
    const char *name = sl_base_name(source->path);
    uint64_t size = source->stored_bytes;
    uint64_t hash = hash_bytes(FNV_BASIS, name, strlen(name) + 1);
    uint64_t content = hash_bytes(FNV_BASIS, &size, sizeof size);
    hash = hash_bytes(hash, &size, sizeof size);
    if (source->kind != SL_SOURCE_GENERATED) {
        if (!hash_ends(set, index, &hash, &content, error))
            return false;
        source->content = mix(content);
    }
    snprintf(fingerprint, SL_FINGERPRINT_ROOM, "%016" PRIx64 "-%" PRIu64, mix(hash), size);
    return true;
}
