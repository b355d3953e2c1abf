/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered inputs, the input that reads a file or pipe, and streams, which read the text of a
 * source. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/read_file.h"

#include "archive.h"
#include "source_set.h"
#include "sql_dump.h"
#include "unpack.h"

/* ---- inputs ---- */

#define FILE_BUFFER_BYTES ((size_t)256 << 10)
#define FILE_BUFFER_BYTES_MIN ((size_t)4 << 10)
#define HEAD_BYTES ((size_t)64 << 10) /* by which kinds of texts are recognised */
#define PIPE_POLL_MS 200 /* interval at which a reader waiting for a pipe checks `stopped` */

typedef struct file_state {
    int file;
    off_t start; /* file offset of the input's first byte; above 0 if stdin was read before */
    bool pipe;   /* reading may block */
    const _Atomic bool *stopped;
} file_state;

bool sl_input_init(sl_input *input, size_t room, sl_error *error) {
    input->buffer = malloc(room);
    input->room = room;
    return input->buffer || sl_error_memory(error, "opening sources");
}

void sl_input_clear(sl_input *input) {
    free(input->buffer);
    input->buffer = NULL;
}

bool sl_input_peek(sl_input *input, size_t count, sl_reader_times *times, sl_error *error) {
    while (sl_input_left(input) < count && !input->ended) {
        if (input->used > 0) {
            input->length -= input->used;
            memmove(input->buffer, input->buffer + input->used, input->length);
            input->used = 0;
        }
        size_t got;
        if (!input->fetch(input, input->buffer + input->length, input->room - input->length, &got,
                          times, error))
            return false;
        input->length += got;
        input->offset += got;
        input->ended = got == 0;
    }
    return true;
}

bool sl_input_take(sl_input *input, void *out, size_t room, size_t *length, sl_reader_times *times,
                   sl_error *error) {
    unsigned char *to = out;
    size_t filled = 0;
    while (filled < room) {
        size_t left = sl_input_left(input), got;
        if (left > 0) {
            got = left < room - filled ? left : room - filled;
            memcpy(to + filled, sl_input_at(input), got);
            input->used += got;
            filled += got;
        } else if (input->ended) {
            break;
        } else if (room - filled < input->room) {
            if (!sl_input_peek(input, 1, times, error))
                return false;
        } else { /* a large piece bypasses the buffer */
            if (!input->fetch(input, to + filled, room - filled, &got, times, error))
                return false;
            filled += got;
            input->offset += got;
            input->ended = got == 0;
        }
    }
    *length = filled;
    return true;
}

bool sl_input_skip_zeros(sl_input *input, sl_reader_times *times, sl_error *error) {
    do {
        while (input->used < input->length && input->buffer[input->used] == 0)
            input->used++;
    } while (sl_input_left(input) == 0 && !input->ended && sl_input_peek(input, 1, times, error));
    return sl_input_left(input) > 0 || input->ended;
}

static bool fetch_from_file(sl_input *input, unsigned char *out, size_t room, size_t *got,
                            sl_reader_times *times, sl_error *error) {
    const file_state *state = input->context;
    int64_t start = sl_clock_ns();
    ssize_t result;
    do {
        while (state->pipe && !atomic_load(state->stopped)) {
            struct pollfd waiting = {.fd = state->file, .events = POLLIN};
            if (poll(&waiting, 1, PIPE_POLL_MS) > 0)
                break;
        }
        if (state->pipe && atomic_load(state->stopped))
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "%s: reading was stopped", input->name);
        result = read(state->file, out, room);
    } while (result < 0 && (errno == EINTR || errno == EAGAIN));
    times->reading += sl_clock_ns() - start;
    if (result < 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu", input->name,
                              (unsigned long long)input->offset);
    *got = (size_t)result;
    return true;
}

static bool seek_in_file(sl_input *input, int64_t offset, int whence, uint64_t *where) {
    const file_state *state = input->context;
    off_t to = (off_t)offset + (whence == SEEK_SET ? state->start : 0);
    if (whence == SEEK_CUR)
        to -= (off_t)sl_input_left(input);
    off_t result = lseek(state->file, to, whence);
    if (result < state->start)
        return false;
    input->used = input->length = 0;
    input->ended = false;
    input->offset = *where = (uint64_t)(result - state->start);
    return true;
}

static size_t read_file_at(sl_input *input, uint64_t offset, void *out, size_t room) {
    const file_state *state = input->context;
    return sl_read_at(state->file, out, room, (uint64_t)state->start + offset);
}

/* Opens a file or pipe as an input; "-" is standard input. Messages name it `shown`. A read that
 * waits for a pipe ends with SL_EXIT_INTERRUPTED once `*stopped` is true. The arguments are
 * borrowed. Close with sl_input_close_file, also after a failure. */
static bool input_open_file(sl_input *input, const char *path, const char *shown,
                            const _Atomic bool *stopped, sl_error *error) {
    *input = (sl_input){.fetch = fetch_from_file, .name = shown};
    file_state *state = malloc(sizeof *state);
    if (!state)
        return sl_error_memory(error, "opening sources");
    input->context = state;
    struct stat facts;
    /* O_NONBLOCK: a FIFO without a writer must not block here, only in fetch_from_file, where the
     * wait can be stopped. */
    state->file =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (state->file < 0 || fstat(state->file, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", shown);
    size_t room = FILE_BUFFER_BYTES;
    state->stopped = stopped;
    state->pipe = !S_ISREG(facts.st_mode);
    if (S_ISREG(facts.st_mode)) {
        state->start = lseek(state->file, 0, SEEK_CUR);
        if (state->start >= 0) {
            input->seek = seek_in_file;
            input->read_at = read_file_at;
        }
        if ((uint64_t)facts.st_size < room) /* a small buffer saves time and memory for many small
                                               files */
            room = (size_t)facts.st_size < FILE_BUFFER_BYTES_MIN ? FILE_BUFFER_BYTES_MIN
                                                                 : (size_t)facts.st_size;
    }
    return sl_input_init(input, room, error);
}

static void input_close_file(sl_input *input) {
    file_state *state = input->context;
    if (state && state->file >= 0)
        close(state->file);
    free(state);
    sl_input_clear(input);
    input->context = NULL;
}

/* ---- streams ---- */

/* A stream stacks inputs by the first bytes of each, never by the file's name:
 *
 *   file or pipe -> [unpacker] -> text
 *   file or pipe -> [unpacker] -> archive -> entry -> [unpacker] -> text
 *
 * An unpacker is inserted if the bytes are compressed, and an archive if the unpacked bytes are an
 * archive. An SQL dump takes the position of the archive; its entries are not unpacked. It may also
 * be the only entry of an archive. */

struct sl_stream {
    sl_input file;
    sl_unpacker *unpacker;       /* of the file, or NULL */
    sl_archive *archive;         /* or NULL */
    sl_sql_dump *dump;           /* or NULL */
    char *schema;                /* of the dump's tables so far; NULL: there was none */
    sl_unpacker *entry_unpacker; /* of the current entry, or NULL */
    sl_input *entry;             /* the current entry of the archive, or NULL */
    bool entry_is_sql;
    sl_input only;                  /* reads the dump that is the only entry */
    bool of_files;                  /* --include selects files of the archive, not tables */
    const sl_source_set *report_to; /* the set whose `report` is called; NULL: none */
    size_t source;
    sl_input *text; /* of the current entry */
    bool begun;     /* the only entry has been returned; of an archive: `entry` is the next one */
    char last_byte; /* of the current entry, so far */
    bool adds_line_ends;
};

#define BYTES(text) text, sizeof text - 1 /* and their number */
#define DUMP_MAGIC "\x6D\xE2\x99\x81"

/* For an input that begins with these bytes and is not text, returns a phrase that names its kind
 * and the command to convert it. NULL otherwise. */
static const char *not_text_advice(const unsigned char *bytes, size_t length) {
    static const char office[] =
        "a spreadsheet or document; export the table as CSV, or pipe it in: duckdb -json -c \"FROM "
        "read_xlsx('FILE')\" | shardload load ... -";
    static const struct {
        size_t offset;
        const char *magic;
        size_t length;
        const char *advice;
    } containers[] = {
        {0, BYTES("7z\xBC\xAF\x27\x1C"), "a 7-Zip archive; unpack it first (7z x)"},
        {0, BYTES("Rar!\x1A\x07"), "a RAR archive; unpack it first (unrar x, or 7z x)"},
        {0, BYTES(DUMP_MAGIC),
         "a mongodump archive, which holds several collections: `shardload restore` restores it"},
        {0, BYTES("%PDF"), "a PDF document, not text"},
        {0, BYTES("\x1E{"),
         "a JSON text sequence (RFC 7464); pipe it in without its separators: tr -d '\\036' < FILE "
         "| shardload load ... -"},
        {0, BYTES("PAR1\x15"),
         "a Parquet file; pipe it in: duckdb -json -c \"FROM 'FILE'\" | shardload load ... -"},
        {0, BYTES("Obj\x01"),
         "an Avro file; pipe it in: duckdb -json -c \"FROM read_avro('FILE')\" | shardload load "
         "... -"},
        {0, BYTES("SQLite format 3"),
         "an SQLite database; pipe its tables in: sqlite3 FILE .dump | shardload load ... -"},
        {0, BYTES("PGDMP"),
         "an archive of pg_dump; pipe its tables in: pg_restore -f - FILE | shardload load ... -"},
        {0, BYTES("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), office},
        /* The names of the first entries of zip files. */
        {30, BYTES("[Content_Types].xml"), office},
        {30, BYTES("_rels/.rels"), office},
        {30, BYTES("docProps/"), office},
        {30, BYTES("xl/"), office},
        {30, BYTES("mimetypeapplication/vnd.oasis"), office},
        {0, BYTES("\xFF\xFE"),
         "compressed UTF-16 or UTF-32 text; unpack and convert it first: iconv -t UTF-8"},
        {0, BYTES("\xFE\xFF"),
         "compressed UTF-16 text; unpack and convert it first: iconv -f UTF-16 -t UTF-8"},
    };
    const bool zip = length >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        size_t offset = containers[i].offset;
        if (length >= offset + containers[i].length && (zip || offset == 0) &&
            memcmp(bytes + offset, containers[i].magic, containers[i].length) == 0)
            return containers[i].advice;
    }
    return NULL;
}

/* If the bytes of `*input` are compressed, creates an unpacker; `*input` is then its output. Peeks
 * the bytes by which an archive or an SQL dump (`*dump`) is recognised. */
static bool unpack(sl_input **input, sl_unpacker **unpacker, bool *dump, sl_reader_times *times,
                   sl_error *error) {
    if (!sl_input_peek(*input, SL_MAGIC_BYTES, times, error) ||
        !sl_unpacker_create(*input, unpacker, error))
        return false;
    if (*unpacker)
        *input = sl_unpacker_output(*unpacker);
    /* A decoder of UTF-16 needs room for a character. */
    const size_t room = (*input)->room - 16, peeked = room < HEAD_BYTES ? room : HEAD_BYTES;
    if (!sl_input_peek(*input, peeked, times, error))
        return false;
    *dump = sl_sql_text_begins(sl_input_at(*input), sl_input_left(*input));
    return true;
}

/* Moves to the next entry of the archive that is included, or is the first one and a dump whose
 * tables may be included; NULL at the end. */
static bool next_in_archive(sl_stream *stream, sl_reader_times *times, sl_error *error) {
    do {
        sl_unpacker_destroy(stream->entry_unpacker);
        stream->entry_unpacker = NULL;
        if (!sl_archive_next(stream->archive, &stream->entry, times, error))
            return false;
        stream->entry_is_sql = false;
        const bool included = stream->entry && sl_archive_is_included(stream->archive);
        if (included ||
            (stream->entry && !stream->of_files && sl_archive_is_first(stream->archive, false))) {
            const bool ok = unpack(&stream->entry, &stream->entry_unpacker, &stream->entry_is_sql,
                                   times, error);
            if (!ok && (included || error->code != SL_EXIT_SOURCE))
                return false;
            *error = (sl_error){0}; /* of a damaged file that is left out */
        }
        if (included || stream->entry_is_sql)
            return true;
    } while (stream->entry);
    return true;
}

/* Reads the dump that is the only entry of the archive, and checks that it is. */
static bool fetch_only(sl_input *input, unsigned char *out, size_t room, size_t *got,
                       sl_reader_times *times, sl_error *error) {
    sl_stream *stream = input->context;
    sl_input *other = NULL;
    if (!sl_input_peek(stream->entry, 1, times, error))
        return false;
    const size_t left = sl_input_left(stream->entry);
    *got = left < room ? left : room;
    memcpy(out, sl_input_at(stream->entry), *got);
    stream->entry->used += *got;
    return *got > 0 ||
           (sl_archive_next(stream->archive, &other, times, error) &&
            (!other ||
             sl_error_set(
                 error, SL_EXIT_SOURCE,
                 "%s: the archive has an SQL dump and this file, and dumps beside other "
                 "files are not read: leave one of them out with --include (such as '*.csv' or "
                 "'*.sql'), or unpack the archive",
                 input->name)));
}

/* Is the pattern one of files, such as *.csv? One of a single table has no wildcard. */
static bool selects_files(const char *include) {
    return include && strchr(include, '.') && strpbrk(include, "*?[") && !strchr(include, '\\');
}

/* Begins the archive. If its first file is an SQL dump, `include` may be for its tables. */
static bool begin_archive(sl_stream *stream, sl_input *text, const char *include,
                          sl_reader_times *times, sl_error *error) {
    stream->of_files = selects_files(include);
    if (!sl_archive_create(text, include, &stream->archive, times, error) ||
        !next_in_archive(stream, times, error))
        return false;
    stream->begun = true;
    if (!stream->entry || !stream->entry_is_sql ||
        !sl_archive_is_first(stream->archive, stream->of_files) ||
        sl_archive_skip_reason(stream->archive))
        return true;
    sl_archive_mark_used(stream->archive);
    if (!stream->of_files)
        sl_archive_include_all(stream->archive);
    stream->only = (sl_input){.fetch = fetch_only, .context = stream, .name = stream->entry->name};
    return sl_input_init(&stream->only, HEAD_BYTES, error) &&
           sl_sql_dump_create(&stream->only, stream->of_files ? NULL : include, &stream->dump,
                              error);
}

bool sl_stream_open(const char *path, const char *shown, const char *include, bool dumps,
                    const _Atomic bool *stopped, bool *not_text, sl_stream **result,
                    sl_error *error) {
    *result = NULL;
    *not_text = false;
    sl_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return sl_error_memory(error, "opening sources");
    sl_reader_times times = {0};
    sl_input *text = &stream->file;
    bool sql;
    if (!input_open_file(&stream->file, path, shown, stopped, error) ||
        !unpack(&text, &stream->unpacker, &sql, &times, error))
        goto fail;
    const unsigned char *head = sl_input_at(text);
    size_t length = sl_input_left(text);
    bool dump = dumps && length >= 4 && memcmp(head, DUMP_MAGIC, 4) == 0;
    const char *advice = dump ? NULL : not_text_advice(head, length), *base = sl_base_name(path);
    const bool archive = !advice && sl_archive_kind_of(head, length);
    if (archive && !begin_archive(stream, text, include, &times, error))
        goto fail;
    if (archive && stream->entry && strcmp(sl_archive_entry_name(stream->archive), "toc.dat") == 0)
        advice = not_text_advice(sl_input_at(stream->entry), sl_input_left(stream->entry));
    if (advice && !archive && memcmp(head, "PGDMP", 5) == 0 && !strcmp(base, "toc.dat")) {
        char folder[4096], word[4200]; /* its other files are no tables */
        snprintf(folder, sizeof folder, "%.*s%s", (int)(base - path), path, base > path ? "" : ".");
        sl_error_set(error, SL_EXIT_SOURCE,
                     "%s: the folder was written by pg_dump -Fd; pipe its tables in: pg_restore -f "
                     "- %s | shardload load ... -",
                     shown, sl_shell_word(folder, word, sizeof word));
        goto fail;
    }
    if (advice) {
        sl_error_set(error, SL_EXIT_SOURCE, "%s: this is %s", shown, advice);
        *not_text = true;
        goto fail;
    }
    if (!archive && !sql)
        stream->text = text;
    else if (!archive && !sl_sql_dump_create(text, include, &stream->dump, error))
        goto fail;
    *result = stream;
    return true;
fail:
    sl_stream_close(stream);
    return false;
}

void sl_stream_close(sl_stream *stream) {
    if (!stream)
        return;
    sl_unpacker_destroy(stream->entry_unpacker);
    sl_archive_destroy(stream->archive);
    sl_sql_dump_destroy(stream->dump);
    sl_input_clear(&stream->only);
    free(stream->schema);
    sl_unpacker_destroy(stream->unpacker);
    input_close_file(&stream->file);
    free(stream);
}

void sl_stream_report_skipped(sl_stream *stream, const sl_source_set *set, size_t source) {
    stream->report_to = set;
    stream->source = source;
}

sl_source_kind sl_stream_kind(const sl_stream *stream) {
    if (stream->archive || stream->dump)
        return SL_SOURCE_ARCHIVE;
    if (!stream->unpacker)
        return SL_SOURCE_PLAIN;
    bool gzip = strcmp(sl_unpacker_compression(stream->unpacker), "gzip") == 0;
    return gzip ? SL_SOURCE_GZIP : SL_SOURCE_COMPRESSED;
}

const char *sl_stream_storage(const sl_stream *stream) {
    return stream->unpacker && !stream->archive && !stream->dump
               ? sl_unpacker_compression(stream->unpacker)
               : NULL;
}

/* One collection gets tables with the same columns: the rows of other tables end the load. */
static bool check_schema(sl_stream *stream, sl_error *error) {
    const char *schema = sl_sql_dump_schema(stream->dump);
    if (!stream->schema && !(stream->schema = strdup(schema)))
        return sl_error_memory(error, "reading an SQL dump");
    if (strcmp(stream->schema, schema) == 0)
        return true;
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s: the table %s has other columns than the tables before it: select tables with "
                 "--include, or leave out --collection: then each table becomes a collection. For "
                 "--embed, export the table alone (mysqldump DATABASE TABLE, pg_dump -t TABLE)",
                 stream->file.name, sl_sql_dump_shown(stream->dump));
    error->no_resume = true;
    return false;
}

static bool next_table(sl_stream *stream, bool *more, sl_reader_times *times, sl_error *error) {
    for (;;) {
        if (!sl_sql_dump_next(stream->dump, &stream->text, times, error))
            return false;
        *more = stream->text != NULL;
        if (!*more)
            return true;
        if (!sl_input_peek(stream->text, 1, times, error))
            return false;
        if (sl_input_left(stream->text) > 0) {
            stream->last_byte = '\n';
            return check_schema(stream, error);
        }
        if (stream->report_to && stream->report_to->report)
            stream->report_to->report(stream->report_to->report_context, stream->source,
                                      sl_sql_dump_shown(stream->dump), NULL);
    }
}

bool sl_stream_selects_files(const sl_stream *stream) {
    return stream->of_files;
}

const char *sl_stream_schema(const sl_stream *stream) {
    return stream->schema;
}

sl_sql_dump *sl_stream_dump(const sl_stream *stream) {
    return stream->dump;
}

bool sl_stream_next_entry(sl_stream *stream, bool *more, sl_reader_times *times, sl_error *error) {
    if (stream->dump)
        return next_table(stream, more, times, error);
    if (!stream->archive) {
        *more = !stream->begun;
        stream->begun = true;
        return true;
    }
    for (;; stream->begun = false) {
        if (!stream->begun && !next_in_archive(stream, times, error))
            return false;
        sl_input *text = stream->entry;
        *more = text != NULL;
        if (!*more)
            return true;
        const unsigned char *head = sl_input_at(text);
        size_t length = sl_input_left(text);
        const char *advice = sl_archive_skip_reason(stream->archive);
        if (!advice)
            advice = not_text_advice(head, length);
        if (!advice && sl_archive_kind_of(head, length))
            advice = "an archive within the archive; unpack it first";
        if (!advice && stream->entry_is_sql)
            advice = "an SQL dump beside other files: select it with --include (such as '*.sql'), "
                     "or unpack it first, or pipe it in: unzip -p FILE ENTRY (tar -xOf FILE ENTRY) "
                     "| shardload load -d DB -";
        if ((advice || length == 0) && stream->report_to && stream->report_to->report)
            stream->report_to->report(stream->report_to->report_context, stream->source,
                                      sl_archive_entry_name(stream->archive), advice);
        if (advice || length == 0)
            continue;
        stream->text = text;
        stream->last_byte = '\n';
        stream->begun = false;
        sl_archive_mark_used(stream->archive);
        return true;
    }
}

const char *sl_stream_entry_name(const sl_stream *stream) {
    return stream->dump      ? sl_sql_dump_shown(stream->dump)
           : stream->archive ? sl_archive_entry_name(stream->archive)
                             : NULL;
}

void sl_stream_add_line_ends(sl_stream *stream) {
    stream->adds_line_ends = true;
}

bool sl_stream_read(sl_stream *stream, char *out, size_t room, size_t *length,
                    sl_reader_times *times, sl_error *error) {
    if (!sl_input_take(stream->text, out, room, length, times, error))
        return false;
    if (*length > 0)
        stream->last_byte = out[*length - 1];
    if (stream->adds_line_ends && (stream->archive || stream->dump) && *length < room &&
        stream->last_byte != '\n')
        stream->last_byte = out[(*length)++] = '\n';
    return true;
}

int sl_stream_file(const sl_stream *stream) {
    return ((const file_state *)stream->file.context)->file;
}

uint64_t sl_stream_stored_bytes(const sl_stream *stream) {
    return sl_input_position(&stream->file);
}
