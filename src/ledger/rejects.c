/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects, in order and with line numbers.
 *
 * Threads complete blocks in any order, but a line number is known only when the lines of all
 * earlier blocks have been counted. Blocks are drawn in order and completed within seconds of each
 * other; a block whose earlier blocks are not completed waits here in an ordered list. One lock,
 * which is taken once per block, guards all of it. The file of a source's raw
 * rejects is closed with its last block, so that only a few files are open at a time even if
 * thousands of sources have a reject.
 *
 * The entry of a block with rejects is passed on to the journal after they have been written, with
 * the sizes that the files then have. A resumed load truncates the files to the sizes in the
 * journal and loads the other blocks again: no reject is lost, and none is written twice. */
#include "rejects.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/lookup.h"
#include "util/grow.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/read_file.h"

/* ==== the rejects of one block, packed one after the other ==== */

/* An entry of a list; the reason, the record, the column's name and the text follow it. */
typedef struct sl_entry {
    uint64_t offset;
    uint32_t line;
    uint32_t reason_length;
    size_t record_length, column_length, text_length;
} sl_entry;

static bool make_room(sl_reject_list *list, size_t need) {
    if (list->room - list->used >= need)
        return true;
    size_t room = (list->room + need) * 2;
    char *bytes = realloc(list->bytes, room);
    if (!bytes)
        return false;
    list->bytes = bytes;
    list->room = room;
    return true;
}

bool sl_reject_list_begin(sl_reject_list *list, sl_text header) {
    if (header.length == 0 || !make_room(list, header.length))
        return header.length == 0;
    memcpy(list->bytes, header.bytes, header.length);
    list->header = list->used = header.length;
    return true;
}

static size_t size_of_entry(const sl_entry *entry) {
    size_t size = sizeof *entry + entry->reason_length + entry->record_length +
                  entry->column_length + entry->text_length;
    return (size + _Alignof(sl_entry) - 1) / _Alignof(sl_entry) * _Alignof(sl_entry);
}

bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject) {
    sl_entry made = {.offset = reject->offset,
                     .line = reject->line,
                     .reason_length = (uint32_t)strlen(reject->reason),
                     .record_length = reject->record.length,
                     .column_length = reject->column ? strlen(reject->column) : 0,
                     .text_length = reject->text.length};
    size_t need = size_of_entry(&made);
    if (!make_room(list, need))
        return false;
    char *at = list->bytes + list->used;
    memcpy(at, &made, sizeof made);
    memcpy(at + sizeof made, reject->reason, made.reason_length);
    if (made.record_length > 0)
        memcpy(at + sizeof made + made.reason_length, reject->record.bytes, made.record_length);
    /* The name is copied: the dialect that owns it may be freed before it is written. */
    if (made.column_length > 0)
        memcpy(at + sizeof made + made.reason_length + made.record_length, reject->column,
               made.column_length);
    if (made.text_length > 0)
        memcpy(at + sizeof made + made.reason_length + made.record_length + made.column_length,
               reject->text.bytes, made.text_length);
    list->used += need;
    list->count++;
    return true;
}

/* Reads the entry at `*at`, which begins as 0, and advances `*at`. False at the end. */
static bool reject_list_next(const sl_reject_list *list, size_t *at, sl_listed_reject *reject) {
    sl_entry entry;
    if (*at == 0)
        *at = list->header;
    if (*at >= list->used)
        return false;
    const char *bytes = list->bytes + *at;
    memcpy(&entry, bytes, sizeof entry);
    bytes += sizeof entry;
    *reject = (sl_listed_reject){
        .offset = entry.offset,
        .line = entry.line,
        .reason = {bytes, entry.reason_length},
        .record = {bytes + entry.reason_length, entry.record_length},
        .column = {bytes + entry.reason_length + entry.record_length, entry.column_length},
        .text = {bytes + entry.reason_length + entry.record_length + entry.column_length,
                 entry.text_length},
    };
    *at += size_of_entry(&entry);
    return true;
}

void sl_reject_list_clear(sl_reject_list *list) {
    free(list->bytes);
    memset(list, 0, sizeof *list);
}

/* ==== the files ==== */

/* How many reasons are shown on the screen, each with its first reject. */
#define SHOWN_MAX 5

#define RAW_REJECTS "the raw rejects"

/* The default limit on the bytes of rejects: this, and so many times the stored bytes of the
 * sources that have been read. A few kilobytes of compressed data can hold millions of rejects. */
#define BYTES_BASE ((uint64_t)64 << 20)
#define BYTES_PER_STORED 4u

typedef struct sl_early_block {
    struct sl_early_block *next;
    sl_source_block block; /* its text is no longer valid */
    sl_journal_entry entry;
    sl_reject_list list;
    char entry_name[]; /* with rejects: copy of the entry's name, to which block.entry points */
} sl_early_block;

typedef struct sl_source_rejects {
    uint64_t next_sequence;
    uint64_t lines; /* before block next_sequence, in its file or archive entry; UINT64_MAX: not
                       known, because an earlier block is not loaded */
    sl_early_block *early, *latest; /* first and last of a list, by sequence */
    sl_text header;
    bool binary;        /* no line ends between the raw rejects */
    FILE *raw;          /* NULL until the first reject */
    uint64_t raw_entry; /* whose rejects `raw` receives */
    /* The bytes that an earlier run has written for each entry of an archive, in order; for entry 0
     * outside archives. */
    struct sl_kept_file {
        uint64_t entry, bytes;
    } * kept;
    size_t kept_count, kept_room;
} sl_source_rejects;

struct sl_reject_files {
    pthread_mutex_t lock;
    sl_source_set *set;
    sl_source_rejects *sources;
    char *directory; /* NULL: no files */
    FILE *table;     /* rejects.tsv; opened at once, so that an unusable folder is an early error */
    bool to_disk;    /* each file is synced when it is closed */
    sl_journal_entry *for_journal; /* of blocks whose rejects have been written */
    size_t for_journal_count, for_journal_room;
    bool dirty;       /* data has not been synced to disk */
    bool named;       /* the names of new files have not been synced to disk */
    sl_error failure; /* of the first failed write; later blocks must not reach the journal */
    uint64_t written;
    uint64_t bytes; /* in all files, including those of an earlier run */
    bool limited;   /* see sl_rejects_limit_bytes */
    uint64_t shown; /* reasons on the screen; more: has it said that there are more rejects? */
    bool more;
    sl_reject_kinds *kinds; /* may be NULL */
    sl_row_lines row_lines;
};

/* Is a file still at least `kept` bytes long, the part that an earlier run has written? If no line
 * of a text ends there, a user has corrected it, and records have become longer. */
static bool holds_kept(const char *path, uint64_t kept, bool binary, sl_error *error) {
    struct stat facts = {.st_size = 0};
    char holds[64] = "was removed or moved", last = '\n';
    if (kept == 0)
        return true;
    if (stat(path, &facts) == 0)
        snprintf(holds, sizeof holds, "holds %llu bytes", (unsigned long long)facts.st_size);
    bool ok = (uint64_t)facts.st_size >= kept;
    if (ok && !binary) {
        int file = sl_private_file_open(path, O_RDONLY, error);
        if (file < 0)
            return false;
        ok = pread(file, &last, 1, (off_t)kept - 1) != 1 || last == '\n';
        close(file);
        snprintf(holds, sizeof holds, "was changed");
    }
    return ok ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: %s, but the interrupted run has written %llu bytes of rejects to it, "
                        "which would be lost; restore the file, or start a new load: with --drop, "
                        "or without --resume with another --work-dir",
                        path, holds, (unsigned long long)kept);
}

/* Truncates a file to its first `kept` bytes and opens it for appending. */
static FILE *open_file(const char *path, uint64_t kept, bool binary, sl_error *error) {
    int file =
        holds_kept(path, kept, binary, error) ? sl_private_file_open(path, O_WRONLY, error) : -1;
    if (file < 0)
        return NULL;
    bool ok = ftruncate(file, (off_t)kept) == 0 && lseek(file, (off_t)kept, SEEK_SET) >= 0;
    FILE *stream = ok ? fdopen(file, "w") : NULL;
    if (!stream) {
        sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write %s: %s", path,
                     strerror(errno));
        close(file);
    }
    return stream;
}

static bool cannot_write(const char *what, sl_error *error) {
    return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                        "cannot write %s: %s; free space on the disk, or name another --work-dir",
                        what, errno ? strerror(errno) : "the disk may be full");
}

/* Detects a failed write at once, instead of when the file is closed hours later. */
static bool flush(FILE *file, const char *what, sl_error *error) {
    errno = 0;
    return !file || (fflush(file) == 0 && !ferror(file)) || cannot_write(what, error);
}

bool sl_rejects_open(const char *directory, sl_source_set *set, bool to_disk, uint64_t table_kept,
                     sl_reject_files **result, sl_error *error) {
    *result = NULL;
    sl_reject_files *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the reject file");
    pthread_mutex_init(&made->lock, NULL);
    made->set = set;
    made->to_disk = to_disk;
    made->sources = calloc(sl_source_set_count(set), sizeof *made->sources);
    if (!made->sources) {
        sl_error_memory(error, "opening the reject file");
        goto fail;
    }
    if (directory) {
        made->directory = strdup(directory);
        char path[1024];
        snprintf(path, sizeof path, "%s/" SL_WORK_REJECTS, directory);
        made->table = open_file(path, table_kept, false, error);
        if (!made->table || !made->directory)
            goto fail;
        if (table_kept == 0)
            fputs("source\tline\toffset\tcolumn\treason\trecord\n", made->table);
        made->named = true;
        made->bytes = table_kept;
        if (!flush(made->table, path, error)) /* detects a full disk before the load begins */
            goto fail;
    }
    *result = made;
    return true;
fail:
    sl_rejects_close(made, NULL, NULL);
    return false;
}

void sl_rejects_count_kinds(sl_reject_files *rejects, sl_reject_kinds *kinds) {
    char path[1024];
    rejects->kinds = kinds;
    snprintf(path, sizeof path, "%s/" SL_WORK_REJECTS,
             rejects->directory ? rejects->directory : "");
    off_t kept = rejects->table ? ftello(rejects->table) : 0;
    sl_reject_kinds_read(kinds, path, kept > 0 ? (uint64_t)kept : 0);
}

void sl_rejects_set_header(sl_reject_files *rejects, size_t source, sl_text header, bool binary) {
    rejects->sources[source].header = header;
    rejects->sources[source].binary = binary;
}

void sl_rejects_limit_bytes(sl_reject_files *rejects) {
    rejects->limited = rejects->table != NULL;
}

static bool check_bytes(const sl_reject_files *rejects, sl_error *error) {
    uint64_t read = sl_source_set_consumed_bytes(rejects->set);
    uint64_t most = BYTES_BASE + BYTES_PER_STORED * read;
    char limit[SL_HUMAN_ROOM], stored[SL_HUMAN_ROOM];
    return !rejects->limited || rejects->bytes <= most ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the rejects are larger than %s, the limit after %s of the sources: "
                        "64 MiB and four times the bytes read. See the first ones above, and those "
                        "in %s/rejects.tsv; --max-rejects with a number, a percentage or unlimited "
                        "replaces this limit",
                        rejects->directory, sl_human_bytes((double)most, limit),
                        sl_human_bytes((double)read, stored), rejects->directory);
}

/* Text as one cell of a tab-separated file. */
static void put_cell(sl_reject_files *rejects, sl_text text, char end) {
    char shown[4096];
    sl_text_printable(text, shown, sizeof shown);
    fputs(shown, rejects->table);
    fputc(end, rejects->table);
    rejects->bytes += strlen(shown) + 1;
}

static void put_number(sl_reject_files *rejects, uint64_t number, bool known) {
    char digits[24] = "";
    if (known)
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    put_cell(rejects, sl_text_of(digits), '\t');
}

/* Where a reject is. */
typedef struct sl_reject_place {
    const char *path, *entry;
    uint64_t line, offset; /* line 0: not known */
} sl_reject_place;

static void write_reject_place(const void *context, char *out, size_t room) {
    const sl_reject_place *place = context;
    sl_print_text(out, room, place->line > 0 ? "%s%s%s, line %llu" : "%s%s%s, byte %llu",
                  sl_base_name(place->path), place->entry ? ": " : "",
                  place->entry ? place->entry : "",
                  (unsigned long long)(place->line > 0 ? place->line : place->offset));
}

/* Logs a reject if it is the first one for its reason; of the others only that there are some. */
static void show(sl_reject_files *rejects, bool first, const sl_source *from,
                 const sl_reject_place *place, sl_text named, sl_text reason) {
    if (!first || rejects->shown == SHOWN_MAX) {
        if (!rejects->more)
            sl_log_warning("further rejects like these are %s%s%s",
                           rejects->table ? "in " : "counted only",
                           rejects->table ? rejects->directory : "",
                           rejects->table ? "/rejects.tsv only" : "");
        rejects->more = true;
        return;
    }
    char why[400], column[300];
    sl_text_printable(reason, why, sizeof why);
    sl_text_printable(named, column, sizeof column);
    sl_log_warning("%s%s%s, %s %llu%s%s: %s; rejected", from->shown, place->entry ? ": " : "",
                   place->entry ? place->entry : "", place->line > 0 ? "line" : "byte",
                   (unsigned long long)(place->line > 0 ? place->line : place->offset),
                   *column ? ", " : "", column, why);
    rejects->shown++;
}

static void put_row(sl_reject_files *rejects, size_t source, const char *entry, uint64_t line,
                    uint64_t offset, sl_text named, sl_text reason, sl_text record) {
    const sl_source *from = sl_source_set_at(rejects->set, source);
    const sl_reject_place place = {from->path, entry, line, offset};
    char path[PATH_MAX + 1024], why[sizeof((sl_reject *)NULL)->reason + 60];
    rejects->written++;
    bool first = !rejects->kinds ||
                 sl_reject_kinds_add(rejects->kinds, reason, named, write_reject_place, &place);
    const uint64_t dump_line =
        entry && line > 0
            ? sl_source_line_of_row(rejects->set, &rejects->row_lines, source, entry, line)
            : 0;
    if (dump_line > 0) {
        snprintf(why, sizeof why, "%.*s; line %llu of the dump", (int)reason.length, reason.bytes,
                 (unsigned long long)dump_line);
        reason = sl_text_of(why);
    }
    if (rejects->table) {
        snprintf(path, sizeof path, "%s%s%s", from->path, entry ? ": " : "", entry ? entry : "");
        put_cell(rejects, sl_text_of(path), '\t');
        put_number(rejects, line, line > 0);
        put_number(rejects, offset, true);
        put_cell(rejects, named, '\t');
        put_cell(rejects, reason, '\t');
        put_cell(rejects, record, '\n');
    }
    show(rejects, first, from, &place, named, reason);
}

void sl_rejects_show(sl_reject_files *rejects, const sl_source_block *block,
                     const sl_reject_list *list) {
    const sl_source *from = sl_source_set_at(rejects->set, block->source);
    sl_listed_reject one;
    sl_reject_kinds kinds = {0};
    for (size_t at = 0; reject_list_next(list, &at, &one);) {
        const sl_reject_place place = {from->path, block->entry, 0, one.offset};
        show(rejects,
             sl_reject_kinds_add(&kinds, one.reason, one.column, write_reject_place, &place), from,
             &place, one.column, one.reason);
    }
    sl_reject_kinds_clear(&kinds);
}

#define RAW_PATH_ROOM SL_REJECTED_PATH_ROOM

const char *sl_rejected_path(const char *directory, char out[SL_REJECTED_PATH_ROOM]) {
    char only[NAME_MAX + 1] = "";
    size_t count = 0;
    snprintf(out, SL_REJECTED_PATH_ROOM, "%s/" SL_WORK_REJECTED, directory);
    DIR *folder = opendir(out);
    for (const struct dirent *one; folder && (one = readdir(folder)) != NULL;) {
        if (one->d_name[0] != '.' && count++ == 0)
            snprintf(only, sizeof only, "%s", one->d_name);
    }
    if (folder)
        closedir(folder);
    if (count == 1)
        snprintf(out, SL_REJECTED_PATH_ROOM, "%s/" SL_WORK_REJECTED "/%s", directory, only);
    return out;
}

/* Each entry of an archive has its own file, because its columns may have another order. The file
 * is named by a number and the name of the source, which is cut if the whole would exceed 255
 * bytes, the limit of file systems. */
static const char *raw_path(const sl_reject_files *rejects, size_t source, uint64_t entry,
                            char out[RAW_PATH_ROOM]) {
    const char *path = sl_source_set_at(rejects->set, source)->path;
    const char *name = strcmp(path, "-") == 0 ? "stdin" : sl_base_name(path);
    char number[24] = "";
    if (entry > 1)
        snprintf(number, sizeof number, "-%llu", (unsigned long long)entry);
    snprintf(out, RAW_PATH_ROOM, "%s/" SL_WORK_REJECTED "/" SL_REJECTED_NUMBER "%.*s%s",
             rejects->directory, source + 1, SL_REJECTED_NAME_MAX, name, number);
    return out;
}

/* The bytes that an earlier run has written to the file of an entry. */
static uint64_t kept_of(const sl_source_rejects *state, uint64_t entry) {
    size_t i = state->kept_count;
    while (i > 0 && state->kept[i - 1].entry > entry)
        i--;
    return i > 0 && state->kept[i - 1].entry == entry ? state->kept[i - 1].bytes : 0;
}

/* Notes these bytes; entries are in order. False without memory. */
static bool keep_bytes(sl_source_rejects *state, uint64_t entry, uint64_t bytes) {
    if (bytes <= kept_of(state, entry))
        return true;
    if (state->kept_count == 0 || state->kept[state->kept_count - 1].entry < entry) {
        struct sl_kept_file *kept =
            sl_grow(state->kept, state->kept_count, &state->kept_room, sizeof *kept);
        if (!kept)
            return false;
        state->kept = kept;
        state->kept_count++;
    }
    state->kept[state->kept_count - 1] = (struct sl_kept_file){entry, bytes};
    return true;
}

bool sl_rejects_all_kept(const sl_reject_files *rejects, sl_error *error) {
    char path[RAW_PATH_ROOM];
    for (size_t i = 0; rejects->directory && i < sl_source_set_count(rejects->set); i++) {
        const sl_source_rejects *state = &rejects->sources[i];
        for (size_t k = 0; k < state->kept_count; k++) {
            const struct sl_kept_file *kept = &state->kept[k];
            if (!holds_kept(raw_path(rejects, i, kept->entry, path), kept->bytes, state->binary,
                            error))
                return false;
        }
    }
    return true;
}

static bool sync_file(FILE *file, const char *what, sl_error *error) {
    return flush(file, what, error) && (fdatasync(fileno(file)) == 0 || cannot_write(what, error));
}

static bool close_file(FILE *file, bool to_disk, const char *what, sl_error *error) {
    if (!file)
        return true;
    bool ok = !to_disk || sync_file(file, what, error);
    bool closed = !ferror(file);
    closed = fclose(file) == 0 && closed;
    return ok && (closed || cannot_write(what, error));
}

static bool close_raw(const sl_reject_files *rejects, sl_source_rejects *state, sl_error *error) {
    bool ok = close_file(state->raw, rejects->to_disk, RAW_REJECTS, error);
    state->raw = NULL;
    return ok;
}

/* Writes the unchanged record, so that the file can be corrected and loaded. */
static bool put_raw(sl_reject_files *rejects, const sl_source_block *block, sl_text header,
                    sl_text record, sl_error *error) {
    sl_source_rejects *state = &rejects->sources[block->source];
    if (!rejects->directory)
        return true;
    if (state->raw && state->raw_entry != block->entry_number && !close_raw(rejects, state, error))
        return false;
    if (!state->raw) {
        char name[RAW_PATH_ROOM];
        snprintf(name, sizeof name, "%s/" SL_WORK_REJECTED, rejects->directory);
        if (!sl_private_folder_make(name, NULL, error))
            return false;
        const uint64_t kept = kept_of(state, block->entry_number);
        raw_path(rejects, block->source, block->entry_number, name);
        state->raw = open_file(name, kept, state->binary, error);
        if (!state->raw)
            return false;
        state->raw_entry = block->entry_number;
        rejects->named = true;
        if (header.length > 0 && kept == 0)
            fwrite(header.bytes, 1, header.length, state->raw);
    }
    rejects->bytes += record.length + !state->binary;
    if (record.length > 0)
        fwrite(record.bytes, 1, record.length, state->raw);
    if (!state->binary)
        fputc('\n', state->raw);
    return true;
}

/* Writes the rejects of a block. `lines`: the lines before the block, or UINT64_MAX if not
 * known. */
static bool write_list(sl_reject_files *rejects, const sl_source_block *block, uint64_t lines,
                       const sl_reject_list *list, sl_error *error) {
    const sl_text header = list->header > 0 ? (sl_text){list->bytes, list->header}
                                            : rejects->sources[block->source].header;
    sl_listed_reject one;
    for (size_t at = 0; reject_list_next(list, &at, &one);) {
        if (!check_bytes(rejects, error))
            return false;
        bool none = one.line == SL_NO_LINE || one.line == SL_REJECT_LINE_UNKNOWN;
        bool refused = one.line != SL_NO_LINE && (one.line & SL_REJECT_OF_SERVER);
        uint64_t before = one.line & ~SL_REJECT_OF_SERVER; /* lines of the block */
        bool known = lines != UINT64_MAX && !none;
        put_row(rejects, block->source, block->entry, known ? lines + before + 1 : 0, one.offset,
                one.column, one.reason, one.record);
        if ((!refused || one.text.length > 0) &&
            !put_raw(rejects, block, header, refused ? one.text : one.record, error))
            return false;
    }
    return list->count == 0 || (flush(rejects->table, SL_WORK_REJECTS, error) &&
                                flush(rejects->sources[block->source].raw, RAW_REJECTS, error));
}

/* The size of a file that is being written, in bytes; 0 for none. */
static uint64_t size_of(FILE *file) {
    off_t at = file ? ftello(file) : 0;
    return at > 0 ? (uint64_t)at : 0;
}

/* Stores the first failure, and returns it for all later calls. Call it under the lock. */
static bool keep_failure(sl_reject_files *rejects, bool ok, sl_error *error) {
    if (!ok && !rejects->failure.code && error)
        rejects->failure = *error;
    else if (rejects->failure.code && error)
        *error = rejects->failure;
    return ok && !rejects->failure.code;
}

static bool pass_to_journal(sl_reject_files *rejects, const sl_journal_entry *entry,
                            sl_error *error) {
    sl_journal_entry *entries = sl_grow(rejects->for_journal, rejects->for_journal_count,
                                        &rejects->for_journal_room, sizeof *entries);
    if (!entries)
        return sl_error_memory(error, "keeping the journal");
    rejects->for_journal = entries;
    rejects->for_journal[rejects->for_journal_count++] = *entry;
    return true;
}

bool sl_rejects_pass_on(sl_reject_files *rejects, sl_journal *journal) {
    bool ok = true;
    pthread_mutex_lock(&rejects->lock);
    for (size_t i = 0; ok && journal && i < rejects->for_journal_count; i++)
        ok = sl_journal_add(journal, &rejects->for_journal[i]);
    rejects->for_journal_count = 0;
    pthread_mutex_unlock(&rejects->lock);
    return ok;
}

/* Writes the rejects of the next block in order. */
static bool take_block(sl_reject_files *rejects, sl_early_block *early, sl_error *error) {
    const sl_source_block *block = &early->block;
    sl_source_rejects *state = &rejects->sources[block->source];
    if (block->entry_start)
        state->lines = 0;
    bool ok = true;
    if (early->list.count > 0) {
        ok = write_list(rejects, block, state->lines, &early->list, error);
        early->entry.table_bytes = size_of(rejects->table);
        early->entry.raw_bytes = state->raw && state->raw_entry == block->entry_number
                                     ? size_of(state->raw)
                                     : kept_of(state, block->entry_number);
        rejects->dirty = true;
        ok = ok && pass_to_journal(rejects, &early->entry, error);
    }
    state->next_sequence++;
    if (!sl_source_set_selects(rejects->set, block->source, block->sequence, block->offset))
        state->lines = UINT64_MAX;
    else if (state->lines != UINT64_MAX)
        state->lines += early->entry.counts.lines;
    return (!block->last || close_raw(rejects, state, error)) && ok;
}

/* Inserts a block into the list, in order; most belong at its end. */
static void keep_early(sl_source_rejects *state, sl_early_block *early) {
    uint64_t sequence = early->block.sequence;
    sl_early_block **link = &state->early;
    if (state->latest && state->latest->block.sequence < sequence)
        link = &state->latest->next;
    while (*link && (*link)->block.sequence < sequence)
        link = &(*link)->next;
    early->next = *link;
    *link = early;
    if (!early->next)
        state->latest = early;
}

static bool take_early(sl_reject_files *rejects, sl_source_rejects *state, sl_error *error) {
    bool ok = true;
    while (ok && state->early && state->early->block.sequence == state->next_sequence) {
        sl_early_block *early = state->early;
        ok = take_block(rejects, early, error);
        state->early = early->next;
        if (!state->early)
            state->latest = NULL;
        sl_reject_list_clear(&early->list);
        free(early);
    }
    return ok;
}

/* Under the lock. */
static bool take_or_keep(sl_reject_files *rejects, sl_early_block *given, sl_error *error) {
    sl_source_rejects *state = &rejects->sources[given->block.source];
    if (given->block.sequence == state->next_sequence) {
        bool ok = take_block(rejects, given, error);
        /* Its memory is used for the next block. */
        given->list.header = given->list.used = given->list.count = 0;
        return ok && take_early(rejects, state, error);
    }
    size_t name = given->list.count > 0 && given->block.entry ? strlen(given->block.entry) + 1 : 0;
    sl_early_block *early = malloc(sizeof *early + name);
    if (!early)
        return sl_error_memory(error, "keeping rejects");
    *early = *given;
    early->block.entry = name > 0 ? memcpy(early->entry_name, given->block.entry, name) : NULL;
    keep_early(state, early);
    memset(&given->list, 0, sizeof given->list);
    return true;
}

bool sl_rejects_block_done(sl_reject_files *rejects, const sl_source_block *block,
                           const sl_journal_entry *entry, sl_reject_list *list, sl_error *error) {
    sl_early_block given = {.block = *block, .entry = *entry, .list = *list};
    pthread_mutex_lock(&rejects->lock);
    bool ok =
        keep_failure(rejects, true, error) &&
        /* Blocks of other loaders are not in the journal: a resumed load leaves them out, too. */
        (list->count > 0 || block->unselected || pass_to_journal(rejects, entry, error)) &&
        take_or_keep(rejects, &given, error);
    ok = keep_failure(rejects, ok, error);
    pthread_mutex_unlock(&rejects->lock);
    *list = given.list;
    return ok;
}

bool sl_rejects_block_was_done(sl_reject_files *rejects, const sl_source_block *block,
                               const sl_journal_entry *entry, sl_error *error) {
    sl_early_block given = {.block = *block, .entry = *entry};
    pthread_mutex_lock(&rejects->lock);
    bool ok = keep_bytes(&rejects->sources[block->source], entry->entry, entry->raw_bytes)
                  ? take_or_keep(rejects, &given, error)
                  : sl_error_memory(error, "recovering the journal");
    pthread_mutex_unlock(&rejects->lock);
    return ok;
}

bool sl_rejects_sync(sl_reject_files *rejects, sl_error *error) {
    pthread_mutex_lock(&rejects->lock);
    bool ok = keep_failure(rejects, true, error);
    if (ok && rejects->dirty && rejects->table) {
        ok = sync_file(rejects->table, SL_WORK_REJECTS, error);
        for (size_t i = 0; ok && i < sl_source_set_count(rejects->set); i++) {
            if (rejects->sources[i].raw)
                ok = sync_file(rejects->sources[i].raw, RAW_REJECTS, error);
        }
        if (rejects->named) { /* the names of new files must survive a crash like their contents */
            char name[1024];
            snprintf(name, sizeof name, "%s/" SL_WORK_REJECTED, rejects->directory);
            sl_private_folder_sync(name);
            sl_private_folder_sync(rejects->directory);
            rejects->named = false;
        }
        rejects->dirty = !ok;
        ok = keep_failure(rejects, ok, error);
    }
    pthread_mutex_unlock(&rejects->lock);
    return ok;
}

bool sl_rejects_close(sl_reject_files *rejects, uint64_t *written, sl_error *error) {
    if (!rejects)
        return true;
    bool ok = true;
    for (size_t i = 0; rejects->sources && i < sl_source_set_count(rejects->set); i++) {
        sl_source_rejects *state = &rejects->sources[i];
        /* Blocks are still waiting if the load was stopped before an earlier block was completed.
         * Their rejects have been counted, so they are written, without line numbers. They are not
         * added to the journal: a resumed load loads these blocks again, and writes the line
         * numbers. */
        while (state->early) {
            sl_early_block *early = state->early;
            state->early = early->next;
            ok = write_list(rejects, &early->block, UINT64_MAX, &early->list, error) && ok;
            sl_reject_list_clear(&early->list);
            free(early);
        }
        ok = close_file(state->raw, false, RAW_REJECTS, error) && ok;
        free(state->kept);
    }
    ok = close_file(rejects->table, false, SL_WORK_REJECTS, error) && ok;
    if (written)
        *written = rejects->written;
    sl_row_lines_clear(&rejects->row_lines);
    pthread_mutex_destroy(&rejects->lock);
    free(rejects->sources);
    free(rejects->directory);
    free(rejects->for_journal);
    free(rejects);
    return ok;
}

/* ==== kinds of rejects ==== */

/* Kinds of rejects. Two reasons are of one kind when they differ only in the values in them: quoted
 * texts and numbers. The pattern without values is compared for each reject; rejects are few, and
 * writing them takes much longer. */

void sl_reject_kinds_clear(sl_reject_kinds *kinds) {
    free(kinds->items);
    *kinds = (sl_reject_kinds){0};
}

uint64_t sl_reject_kinds_sum(const sl_reject_kinds *kinds) {
    uint64_t sum = kinds->others;
    for (size_t i = 0; i < kinds->count; i++)
        sum += kinds->items[i].count;
    return sum;
}

/* A truncated text must not end within a character. */
static void end_at_character(char *text) {
    size_t where;
    if (!sl_utf8_valid(text, strlen(text), &where))
        text[where] = '\0';
}

/* The end of the quoted text that begins at `from`, after its closing quote; `from` if it is not
 * closed. */
static const char *end_of_quoted(const char *from) {
    for (const char *at = from + 1; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == *from)
            return at + 1;
    }
    return from;
}

static const char *end_of_number(const char *at) {
    at += *at == '-';
    if (*at == '0' && at[1] == 'x') {
        for (at += 2; isxdigit((unsigned char)*at);)
            at++;
        return at;
    }
    while (sl_is_digit(*at))
        at++;
    for (; *at == '.' && sl_is_digit(at[1]); at++) {
        while (sl_is_digit(at[1]))
            at++;
    }
    return at;
}

/* Writes the reason with "..." for quoted texts and N for numbers. */
static void write_pattern(const char *reason, char *out, size_t room) {
    size_t used = 0;
    char before = ' ';
    for (const char *at = reason; *at && used + 6 < room;) {
        bool quote = *at == '"' || (*at == '\'' && !isalnum((unsigned char)before));
        const char *end = quote ? end_of_quoted(at) : at;
        if (end > at) {
            used += (size_t)snprintf(out + used, room - used, "%c...%c", *at, *at);
            before = *at;
            at = end;
        } else if ((sl_is_digit(*at) || (*at == '-' && sl_is_digit(at[1]))) &&
                   !isalnum((unsigned char)before) && before != '_') {
            out[used++] = 'N';
            before = '0';
            at = end_of_number(at);
        } else {
            before = *at == '-' && isalpha((unsigned char)before) ? 'x' : *at; /* UTF-8 */
            out[used++] = *at++;
        }
    }
    out[used] = '\0';
    end_at_character(out);
}

static sl_reject_kind *find_kind(sl_reject_kinds *kinds, const char *pattern, const char *reason,
                                 const char *column) {
    char other[sizeof kinds->items->reason];
    for (size_t i = 0; i < kinds->count; i++) {
        sl_reject_kind *kind = &kinds->items[i];
        if (strcmp(kind->column, column) != 0)
            continue;
        if (strcmp(kind->reason, reason) == 0 || strcmp(kind->reason, pattern) == 0)
            return kind;
        write_pattern(kind->first_reason, other, sizeof other);
        if (strcmp(other, pattern) != 0)
            continue;
        memcpy(kind->reason, pattern, strlen(pattern) + 1);
        return kind;
    }
    return NULL;
}

bool sl_reject_kinds_add(sl_reject_kinds *kinds, sl_text reason, sl_text column,
                         void (*write_place)(const void *context, char *out, size_t room),
                         const void *context) {
    char why[sizeof kinds->items->reason], pattern[sizeof why];
    char name[sizeof kinds->items->column];
    sl_text_printable(reason, why, sizeof why);
    sl_text_printable(column, name, sizeof name);
    write_pattern(why, pattern, sizeof pattern);
    sl_reject_kind *kind = find_kind(kinds, pattern, why, name);
    if (!kind) {
        if (!kinds->items)
            kinds->items = calloc(SL_REJECT_KINDS_MAX, sizeof *kinds->items);
        if (!kinds->items || kinds->count == SL_REJECT_KINDS_MAX) {
            return kinds->others++ == 0;
        }
        kind = &kinds->items[kinds->count++];
        memcpy(kind->reason, why, sizeof why);
        memcpy(kind->first_reason, why, sizeof why);
        memcpy(kind->column, name, sizeof name);
        write_place(context, kind->first_place, sizeof kind->first_place);
        end_at_character(kind->first_place);
    }
    return kind->count++ == 0;
}

/* ---- rejects of an earlier run ---- */

/* The cells of a row: source, line, offset, column, reason, record. */
enum { SOURCE, LINE, OFFSET, COLUMN, REASON, CELLS };
#define ROW_ROOM (128 << 10)

static void place_of_row(const void *context, char *out, size_t room) {
    const sl_text *cells = context;
    const char *slash =
        cells[SOURCE].length > 0 ? memrchr(cells[SOURCE].bytes, '/', cells[SOURCE].length) : NULL;
    size_t skip = slash ? (size_t)(slash + 1 - cells[SOURCE].bytes) : 0;
    sl_text number = cells[LINE].length > 0 ? cells[LINE] : cells[OFFSET];
    snprintf(out, room, "%.*s, %s %.*s", (int)(cells[SOURCE].length - skip),
             cells[SOURCE].bytes + skip, cells[LINE].length > 0 ? "line" : "byte",
             (int)number.length, number.bytes);
}

void sl_reject_kinds_read(sl_reject_kinds *kinds, const char *path, uint64_t bytes) {
    FILE *file = bytes > 0 ? sl_private_file_stream(path, O_RDONLY, NULL) : NULL;
    char *line = malloc(ROW_ROOM);
    size_t length;
    /* A line that is longer than a row, which no program of ours writes, ends the reading. */
    for (uint64_t at = 0; line && file && at < bytes && fgets(line, ROW_ROOM, file) &&
                          (length = strlen(line)) > 0 && line[length - 1] == '\n';
         at += length) {
        sl_text cells[CELLS] = {{0}};
        const char *from = line, *end = line + length;
        size_t count = 0;
        for (; count < CELLS; count++) {
            const char *tab = memchr(from, '\t', (size_t)(end - from));
            if (!tab)
                break;
            cells[count] = (sl_text){from, (size_t)(tab - from)};
            from = tab + 1;
        }
        if (count == CELLS && at > 0) /* after the header */
            sl_reject_kinds_add(kinds, cells[REASON], cells[COLUMN], place_of_row, cells);
    }
    free(line);
    if (file)
        fclose(file);
}

/* ---- order ---- */

#define KINDS_QUOTED 3 /* in an error */

void sl_reject_kinds_order(const sl_reject_kinds *kinds, size_t order[SL_REJECT_KINDS_MAX]) {
    for (size_t i = 0; i < kinds->count; i++) {
        size_t at = i;
        for (; at > 0 && kinds->items[order[at - 1]].count < kinds->items[i].count; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void sl_reject_kinds_text(const sl_reject_kinds *kinds, char out[SL_REJECT_KINDS_ROOM]) {
    size_t order[SL_REJECT_KINDS_MAX], used = 0;
    sl_reject_kinds_order(kinds, order);
    for (size_t i = 0; i < kinds->count && i < KINDS_QUOTED; i++) {
        const sl_reject_kind *kind = &kinds->items[order[i]];
        used += sl_print_text(out + used, SL_REJECT_KINDS_ROOM - used, "%s%s like %s%s%s: %s",
                              used ? "; " : ": ", sl_number_text(kind->count), kind->first_place,
                              kind->column[0] ? ", " : "", kind->column, kind->first_reason);
    }
    out[used] = '\0';
}

/* ---- the summary, and the section of the record; both show the same figures ---- */

#define KINDS_SHOWN 10 /* kinds in the summary; the record has all */

static void log_count(uint64_t count, const char *what) {
    char human[SL_HUMAN_ROOM];
    if (count > 0)
        sl_log_result("  %12s  %s", sl_human_count(count, human), what);
}

static uint64_t count_at(const bson_t *document, const char *path) {
    return (uint64_t)sl_look_amount(document, path, 0);
}

void sl_reject_summary_log(const bson_t *record, const char *of) {
    char human[SL_HUMAN_ROOM];
    uint64_t others = count_at(record, "rejects.others"),
             lost = count_at(record, "rejects.notCompleted");
    uint32_t shown = 0;
    if (others + lost == 0 && sl_walk_count(record, "rejects.kinds") == 0)
        return;
    sl_log_result("  rejects%s%s by reason, with the first one of each", of ? " of " : "",
                  of ? of : "");
    for (sl_walk walk = sl_walk_start(record, "rejects.kinds"); sl_walk_next(&walk);) {
        const char *column = sl_look_string(&walk.item, "column");
        const char *reason = sl_look_string(&walk.item, "reason");
        const char *first = sl_look_string(&walk.item, "firstReason");
        const bool same = strcmp(reason, first) == 0; /* otherwise `reason` is a pattern */
        uint64_t count = count_at(&walk.item, "count");
        if (shown++ >= KINDS_SHOWN) {
            others += count;
            continue;
        }
        sl_log_result("  %12s  %s%s%s", sl_human_count(count, human), column, column[0] ? ": " : "",
                      reason);
        sl_log_result("                %s%s%s", sl_look_string(&walk.item, "firstPlace"),
                      same ? "" : ": ", same ? "" : first);
    }
    log_count(others, "for other reasons");
    log_count(lost, "in blocks that were not completed");
}

void sl_reject_summary_record(const sl_reject_kinds *kinds, uint64_t all, bson_t *record) {
    size_t order[SL_REJECT_KINDS_MAX];
    bson_t section, list;
    if (all == 0)
        return;
    sl_reject_kinds_order(kinds, order);
    BSON_APPEND_DOCUMENT_BEGIN(record, "rejects", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "kinds", &list);
    for (size_t i = 0; i < kinds->count; i++) {
        const sl_reject_kind *kind = &kinds->items[order[i]];
        char room[SL_ARRAY_KEY_ROOM];
        BCON_APPEND(&list, sl_array_key(i, room), "{", "count", BCON_INT64((int64_t)kind->count),
                    "column", BCON_UTF8(kind->column), "reason", BCON_UTF8(kind->reason),
                    "firstPlace", BCON_UTF8(kind->first_place), "firstReason",
                    BCON_UTF8(kind->first_reason), "}");
    }
    bson_append_array_end(&section, &list);
    BSON_APPEND_INT64(&section, "others", (int64_t)kinds->others);
    const uint64_t sum = sl_reject_kinds_sum(kinds);
    BSON_APPEND_INT64(&section, "notCompleted", (int64_t)(all > sum ? all - sum : 0));
    bson_append_document_end(record, &section);
}
