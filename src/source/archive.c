/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, through libarchive: its callbacks, and the entries of an archive, one by one. */
#include "archive.h"

#include <archive_entry.h>
#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/log.h"
#include "util/text.h"

#include "source_set.h"
#include "zip.h"

/* ---- how libarchive reads an input ---- */

/* The callbacks by which libarchive reads from an input. A piece given to libarchive stays in the
 * input's buffer until libarchive asks for the next one. Bytes of it that libarchive has copied but
 * not consumed by then also stay in the buffer, so that the input can continue where libarchive
 * stops. */

#define KEPT_MAX ((size_t)1 << 10) /* far below the room of any input */

/* Number of bytes given to libarchive that it has not consumed. */
static size_t unused(const sl_bridge *bridge) {
    uint64_t handed = bridge->input->offset - sl_input_left(bridge->input);
    la_int64_t read = archive_filter_bytes(bridge->library, -1);
    uint64_t used = bridge->base + (uint64_t)(read >= 0 ? read : 0);
    return read >= 0 && used < handed ? (size_t)(handed - used) : 0;
}

static void copy_next(sl_bridge *bridge, const unsigned char *bytes, size_t length) {
    size_t room = bridge->copy_room - bridge->copied;
    size_t piece = length < room ? length : room;
    memcpy(bridge->copy + bridge->copied, bytes, piece);
    bridge->copied += piece;
}

/* Copies the next `room` bytes that libarchive consumes to `out`, which is borrowed until
 * sl_bridge_copied ends this and returns the number of bytes copied. Not for libraries that
 * seek. */
static void bridge_copy_next(sl_bridge *bridge, unsigned char *out, size_t room) {
    const sl_input *input = bridge->input;
    size_t kept = unused(bridge);
    bridge->copy = out;
    bridge->copied = 0;
    bridge->copy_room = kept <= input->used ? room : 0;
    if (bridge->copy_room > 0)
        copy_next(bridge, input->buffer + input->used - kept, kept);
}

static size_t bridge_copied(sl_bridge *bridge) {
    size_t copied = bridge->copied;
    bridge->copy_room = bridge->copied = 0;
    return copied;
}

static la_ssize_t on_read(struct archive *library, void *context, const void **bytes) {
    sl_bridge *bridge = context;
    sl_input *input = bridge->input;
    size_t kept = unused(bridge);
    if (kept > KEPT_MAX || kept > input->used)
        kept = 0;
    input->used -= kept;
    if (!sl_input_peek(input, kept + 1, bridge->times, bridge->error)) {
        bridge->input_failed = true;
        archive_set_error(library, EIO, "the input failed");
        return ARCHIVE_FATAL;
    }
    size_t left = sl_input_left(input) - kept;
    *bytes = sl_input_at(input) + kept;
    if (bridge->copied < bridge->copy_room)
        copy_next(bridge, *bytes, left);
    input->used = input->length;
    bridge->ran_out = left == 0;
    return (la_ssize_t)left;
}

static la_int64_t on_seek(struct archive *library, void *context, la_int64_t offset, int whence) {
    sl_bridge *bridge = context;
    uint64_t where;
    if (!bridge->input->seek(bridge->input, offset, whence, &where)) {
        archive_set_error(library, EIO, "cannot seek to byte %lld", (long long)offset);
        return ARCHIVE_FATAL;
    }
    bridge->ran_out = false;
    return (la_int64_t)where;
}

bool sl_bridge_open(sl_bridge *bridge) {
    struct archive *library = bridge->library;
    archive_read_set_read_callback(library, on_read);
    if (bridge->input->seek)
        archive_read_set_seek_callback(library, on_seek);
    archive_read_set_callback_data(library, bridge);
    return archive_read_open1(library) == ARCHIVE_OK;
}

void sl_bridge_enter(sl_bridge *bridge, sl_reader_times *times, sl_error *error) {
    bridge->times = times;
    bridge->error = error;
    bridge->began = sl_clock_ns();
    bridge->spent_before = times->reading + times->inflating;
}

void sl_bridge_leave(sl_bridge *bridge) {
    sl_reader_times *times = bridge->times;
    int64_t within = times->reading + times->inflating - bridge->spent_before;
    times->inflating += sl_clock_ns() - bridge->began - within;
    bridge->input->lent = unused(bridge);
}

/* Ends libarchive's reading: the input continues after the last byte that libarchive has consumed.
 * False when the input cannot return to that byte. */
static bool bridge_take_back(sl_bridge *bridge) {
    sl_input *input = bridge->input;
    uint64_t where, position = sl_input_position(input);
    bool buffered = input->lent <= input->used;
    if (buffered)
        input->used -= input->lent;
    input->lent = 0;
    return buffered || (input->seek && input->seek(input, (int64_t)position, SEEK_SET, &where));
}

const char *sl_bridge_reason(sl_bridge *bridge) {
    const char *reason = archive_error_string(bridge->library);
    snprintf(bridge->reason, sizeof bridge->reason, "%s",
             reason && *reason ? reason : "unreadable");
    bridge->reason[strcspn(bridge->reason, "\n")] = '\0';
    return bridge->reason;
}

/* ---- archives ---- */

/* Archives through libarchive, which reads them sequentially. Memory holds one buffer, however
 * large an entry's declared size is, and however many entries there are. A zip file's central
 * directory is checked first. libarchive reads by the central directory, and keeps it in memory,
 * only if some entry cannot be read without it. */

#define ENTRY_BUFFER_BYTES ((size_t)64 << 10)

struct sl_archive {
    const char *kind;
    bool tar;
    const char *include; /* borrowed; NULL: all entries */
    bool ended;
    bool any_used;           /* sl_archive_mark_used was called */
    bool included;           /* the current entry matches `include` */
    uint64_t files;          /* regular files among the entries so far */
    uint64_t visible;        /* those that are not hidden */
    uint64_t unmatched;      /* files that do not match `include` */
    uint64_t number;         /* of the current entry, from 1 */
    uint64_t size;           /* of the current entry of a tar, with holes */
    uint64_t given;          /* bytes of entries, with holes, that were read so far */
    const char *skip_reason; /* see sl_archive_skip_reason */
    sl_path_set paths;       /* of the entries that are read */
    sl_positions starts;     /* of the entries, for check_zip_end */
    locale_t utf8_locale;    /* lets libarchive return UTF-8 names; 0: not available */
    bool by_table;           /* libarchive seeks; Deflate64 is not unpacked */
    bool opened;             /* the bridge is open */
    bool is_own;             /* the current entry is `own_entry`, and the bridge is closed */
    sl_zip_entry *own_entry; /* NULL before the first one */
    sl_bridge bridge;
    sl_input contents;                  /* of the current entry */
    char name[SL_ENTRY_NAME_ROOM];      /* of the current entry */
    char label[SL_ENTRY_NAME_ROOM * 2]; /* "ARCHIVE: ENTRY", for messages */
};

/* Compares a tar header's checksum, the sum of its bytes with the checksum field taken as blanks.
 * All tar variants have it. */
static bool tar_sum_fits(const unsigned char *header) {
    unsigned long sum = 0, declared = 0;
    size_t at = 148;
    while (at < 156 && header[at] == ' ')
        at++;
    size_t digits = at;
    for (; at < 156 && header[at] >= '0' && header[at] <= '7'; at++)
        declared = declared * 8 + (header[at] - '0');
    if (at == digits)
        return false;
    for (size_t i = 0; i < SL_ARCHIVE_HEAD_BYTES; i++)
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    return sum == declared;
}

const char *sl_archive_kind_of(const unsigned char *bytes, size_t length) {
    if (length >= 4 && (memcmp(bytes, "PK\003\004", 4) == 0 || memcmp(bytes, "PK\005\006", 4) == 0))
        return "zip";
    if (length < SL_ARCHIVE_HEAD_BYTES || !memchr(bytes, 0, SL_ARCHIVE_HEAD_BYTES))
        return NULL; /* a tar header is padded with NULs, which text does not contain */
    return memcmp(bytes + 257, "ustar", 5) == 0 || tar_sum_fits(bytes) ? "tar" : NULL;
}

static bool is_hidden(const char *path) {
    while (*path) {
        size_t length = strcspn(path, "/");
        bool dots = (length == 1 && path[0] == '.') || (length == 2 && memcmp(path, "..", 2) == 0);
        if ((path[0] == '.' && !dots) || (length == 8 && memcmp(path, "__MACOSX", 8) == 0))
            return true;
        path += length + (path[length] == '/');
    }
    return false;
}

static const char *path_of(struct archive_entry *entry) {
    const char *path = archive_entry_pathname(entry);
    return path ? path : archive_entry_pathname_utf8(entry);
}

/* An unknown type counts as a file: the header is damaged, and its entry must not be skipped. */
static bool is_file(struct archive_entry *entry) {
    switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
    case AE_IFLNK:
    case AE_IFCHR:
    case AE_IFBLK:
    case AE_IFIFO:
    case AE_IFSOCK:
        return false;
    default:
        return !archive_entry_hardlink(entry);
    }
}

static void name_entry(sl_archive *archive, const char *path) {
    if (path)
        sl_text_printable(sl_text_of(path), archive->name, sizeof archive->name);
    else
        snprintf(archive->name, sizeof archive->name, "entry %llu",
                 (unsigned long long)archive->number);
    snprintf(archive->label, sizeof archive->label, "%s: %s", archive->bridge.input->name,
             archive->name);
}

/* Sets the error for libarchive's last call. */
static bool fail(sl_archive *archive, sl_error *error) {
    sl_bridge *bridge = &archive->bridge;
    const sl_input *input = bridge->input;
    const char *reason = sl_bridge_reason(bridge);
    const char *label = archive->number > 0 ? archive->label : input->name;
    if (bridge->input_failed)
        return sl_error_prefix(error, "reading %s", label);
    if (archive_errno(bridge->library) == ENOMEM)
        return sl_error_memory(error, "reading archives");
    if (strstr(reason, "method (9:"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: packed with Deflate64, which is not supported in an archive with "
                            "links or stored entries of unknown size; unpack it first (unzip, or "
                            "7z x), or pipe it in: 7z x -so FILE | shardload load ... -",
                            label);
    if (strstr(reason, "Unsupported ZIP compression method"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: packed with a method that is not supported (%s); unpack the "
                            "archive first",
                            label, reason);
    if (bridge->ran_out)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the %s archive ends early at byte %llu (%s); the file is "
                            "truncated: fetch it again",
                            label, archive->kind, (unsigned long long)input->offset, reason);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the %s archive is damaged near byte %llu (%s); fetch the file again",
                        label, archive->kind, (unsigned long long)sl_input_position(input), reason);
}

static bool fetch_own(sl_archive *archive, unsigned char *out, size_t room, size_t *got,
                      sl_reader_times *times, sl_error *error) {
    int64_t began = sl_clock_ns(), spent = times->reading + times->inflating;
    bool ok = sl_zip_entry_read(archive->own_entry, out, room, got, archive->label, times, error);
    int64_t within = times->reading + times->inflating - spent;
    times->inflating += sl_clock_ns() - began - within;
    return ok;
}

static bool fetch(sl_input *contents, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    sl_archive *archive = contents->context;
    if (archive->is_own)
        return fetch_own(archive, out, room, got, times, error);
    /* More than the archive has: holes. Whether it is text shows in the first buffer. */
    if (contents->offset > 0 && archive->size > contents->offset &&
        archive->given + archive->size - contents->offset >
            sl_input_position(archive->bridge.input) + SL_SOURCE_BYTES_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the sparse files of this archive have holes of more than 1 TiB; "
                            "leave the file out, or unpack the archive and load the folder",
                            archive->label);
    sl_bridge_enter(&archive->bridge, times, error);
    la_ssize_t result = archive_read_data(archive->bridge.library, out, room);
    sl_bridge_leave(&archive->bridge);
    *got = result > 0 ? (size_t)result : 0;
    archive->given += *got;
    return result >= 0 || fail(archive, error);
}

/* Selects libarchive's reader: tar, zip by its central directory, or zip entry by entry. */
static bool set_format(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    struct archive *library = archive->bridge.library;
    sl_input *input = archive->bridge.input;
    if (!archive->tar && !archive->number && input->read_at &&
        !sl_zip_check_file(input, &archive->by_table, times, error))
        return false;
    return (archive->tar ? archive_read_support_format_tar(library)
            : archive->by_table
                ? archive_read_support_format_zip(library)
                : archive_read_support_format_zip_streamable(library)) == ARCHIVE_OK ||
           sl_error_memory(error, "opening archives");
}

bool sl_archive_create(sl_input *input, const char *include, sl_archive **result,
                       sl_reader_times *times, sl_error *error) {
    sl_archive *archive = calloc(1, sizeof *archive);
    *result = archive;
    if (!archive)
        return sl_error_memory(error, "opening archives");
    archive->kind = sl_archive_kind_of(sl_input_at(input), sl_input_left(input));
    archive->include = include;
    archive->contents = (sl_input){.fetch = fetch, .context = archive, .name = archive->label};
    archive->utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    struct archive *library = archive_read_new();
    archive->bridge = (sl_bridge){.library = library, .input = input};
    archive->tar = strcmp(archive->kind, "tar") == 0;
    if (!library)
        sl_error_memory(error, "opening archives");
    else if (set_format(archive, times, error) &&
             sl_input_init(&archive->contents, ENTRY_BUFFER_BYTES, error))
        return true;
    sl_archive_destroy(archive);
    *result = NULL;
    return false;
}

void sl_archive_destroy(sl_archive *archive) {
    if (!archive)
        return;
    archive_read_free(archive->bridge.library);
    if (archive->utf8_locale)
        freelocale(archive->utf8_locale);
    sl_input_clear(&archive->contents);
    sl_path_set_clear(&archive->paths);
    sl_zip_entry_destroy(archive->own_entry);
    free(archive);
}

/* Unpacks the entry that follows in the input, instead of libarchive, which has read its header at
 * byte `start`. */
static bool begin_own(sl_archive *archive, const unsigned char *header, uint64_t start,
                      struct archive_entry *entry, sl_reader_times *times, sl_error *error) {
    uint64_t size =
        archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : UINT64_MAX;
    if (!archive->own_entry && !(archive->own_entry = sl_zip_entry_create()))
        return sl_error_memory(error, "reading archives");
    if (!bridge_take_back(&archive->bridge))
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: its data cannot be read", archive->label);
    archive->is_own = true;
    return sl_zip_entry_begin(archive->own_entry, header, start, size, archive->bridge.input,
                              archive->label, times, error);
}

/* Reads the remainder of such an entry, which also checks it, and lets libarchive
 * continue after it. */
static bool end_own(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    size_t got = 1;
    while (got > 0) {
        if (!fetch_own(archive, archive->contents.buffer, archive->contents.room, &got, times,
                       error))
            return false;
    }
    archive_read_free(archive->bridge.library);
    sl_input *input = archive->bridge.input;
    archive->bridge = (sl_bridge){
        .library = archive_read_new(), .input = input, .base = sl_input_position(input)};
    archive->is_own = archive->opened = false;
    if (!archive->bridge.library)
        return sl_error_memory(error, "opening archives");
    return set_format(archive, times, error);
}

/* Reads the next header. `*entry` is NULL at the archive's end; `*path` may be NULL. */
static bool next_entry(sl_archive *archive, struct archive_entry **entry, const char **path,
                       sl_reader_times *times, sl_error *error) {
    sl_bridge *bridge = &archive->bridge;
    unsigned char header[SL_ZIP_LOCAL_BYTES];
    if (archive->is_own && !end_own(archive, times, error))
        return false;
    sl_bridge_enter(bridge, times, error);
    locale_t before = archive->utf8_locale ? uselocale(archive->utf8_locale) : (locale_t)0;
    bool ready = archive->opened || sl_bridge_open(bridge);
    if (ready && archive->opened) /* also skips the padding or descriptor after the data */
        ready = archive_read_data_skip(bridge->library) >= ARCHIVE_WARN;
    archive->opened = true;
    uint64_t start = bridge->base + (uint64_t)archive_filter_bytes(bridge->library, 0);
    if (!archive->tar && !archive->by_table)
        bridge_copy_next(bridge, header, sizeof header);
    int result = ready ? archive_read_next_header(bridge->library, entry) : ARCHIVE_FATAL;
    if (result == ARCHIVE_EOF)
        *entry = NULL;
    else if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
        *path = path_of(*entry);
    if (*entry)
        sl_positions_add(&archive->starts, start);
    if (before)
        uselocale(before);
    sl_bridge_leave(bridge);
    bool complete = bridge_copied(bridge) == sizeof header;
    /* ARCHIVE_RETRY reports a damaged header. It is an error: to continue would lose its entry. */
    if (result != ARCHIVE_EOF && result != ARCHIVE_OK && result != ARCHIVE_WARN)
        return fail(archive, error);
    if (!*entry)
        return true;
    archive->number++;
    name_entry(archive, *path);
    archive->size = archive->tar ? (uint64_t)archive_entry_size(*entry) : 0;
    if (archive->tar || archive->by_table)
        return true;
    if (!complete || !sl_zip_is_header(header)) /* libarchive has searched for the next header */
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the zip archive is damaged near byte %llu (an entry does not "
                            "follow the one before it); fetch the file again",
                            archive->label, (unsigned long long)start);
    return !sl_zip_is_own(header) || archive_entry_is_encrypted(*entry) ||
           begin_own(archive, header, start, *entry, times, error);
}

/* After the end-of-archive marker of a tar archive, only zeros may follow. A complete compressed
 * stream may lack the marker: the program that wrote the archive into the compressor was stopped,
 * or the file was cut between two of its compressed streams. */
static bool check_tar_end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    if (archive->bridge.ran_out)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the tar archive ends at byte %llu without an end-of-archive "
                            "marker: the file is truncated, or the program that wrote it was "
                            "stopped. Fetch it or write it again; if no entry is missing, unpack "
                            "it first (tar -xf FILE)",
                            input->name, (unsigned long long)input->offset);
    uint64_t end = sl_input_position(input);
    if (!bridge_take_back(&archive->bridge))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the data after the tar archive cannot be read", input->name);
    return sl_input_skip_zeros(input, times, error) &&
           (sl_input_left(input) == 0 ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "%s: the tar archive ends at byte %llu, but unread data follows at byte "
                         "%llu: another archive, or entries after a damaged header. Unpack it "
                         "first (tar -xif FILE reads past the end), or fetch the file again",
                         input->name, (unsigned long long)end,
                         (unsigned long long)sl_input_position(input)));
}

static bool check_zip_end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    if (input->read_at) /* a file: set_format has checked it */
        return true;
    return (bridge_take_back(&archive->bridge) ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "%s: the table of contents at the end of the zip archive cannot be read",
                         input->name)) &&
           sl_zip_check_table(input, &archive->starts, times, error);
}

/* Ends the archive. Data after the archive in a pipe or a compressed file is read to its end: the
 * writer of a pipe must not get SIGPIPE, and a compressed file's checksum comes last. */
static bool end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    archive->ended = true;
    if (!(archive->tar ? check_tar_end : check_zip_end)(archive, times, error))
        return false;
    if (archive->any_used)
        return true;
    if (archive->files == 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: this %s archive holds no files",
                            input->name, archive->kind);
    if (archive->unmatched == archive->files)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: no file in this %s archive matches --include %s", input->name,
                            archive->kind, archive->include);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: no file in this %s archive can be used: they are hidden, empty or not "
                        "text%s",
                        input->name, archive->kind,
                        archive->include ? ", or do not match --include" : "");
}

static bool is_included(const sl_archive *archive, const char *path) {
    return !archive->include || (path && fnmatch(archive->include, sl_base_name(path), 0) == 0);
}

/* A hard link has no contents of its own. If the entry that it links to is not read, the contents
 * are not loaded, which is reported. */
static const char *missing_target(const sl_archive *archive, struct archive_entry *entry,
                                  const char *path) {
    const char *target = archive_entry_hardlink(entry);
    return target && path && is_included(archive, path) && !is_hidden(path) &&
                   !sl_path_set_has(&archive->paths, target)
               ? "a hard link to an entry that is hidden, does not match --include, is a link too, "
                 "or is not in the archive before the link"
               : NULL;
}

/* An archive may hold several versions of a file: `tar -r` appends, and zip writers can. Unpacking
 * it leaves the last version, but the archive is read from its beginning, so that the text of the
 * first one is loaded before the last one is found. */
static bool refuse_repeated(const sl_archive *archive, sl_error *error) {
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s: the %s archive holds this entry twice, and unpacking it would keep only the "
                 "last one: unpack the archive and load the folder, with --drop if a part of it "
                 "has been stored",
                 archive->label, archive->kind);
    if (error)
        error->no_resume = true;
    return false;
}

/* Keeps the path of an entry that will be read. A path that libarchive cannot decode is NULL. */
static bool keep_path(sl_archive *archive, const char *path, sl_error *error) {
    switch (path ? sl_path_set_add(&archive->paths, path) : SL_PATH_NEW) {
    case SL_PATH_NEW:
        return true;
    case SL_PATH_KNOWN:
        return refuse_repeated(archive, error);
    case SL_PATH_TOO_MANY:
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the %s archive holds more than %zu files, the limit for one "
                            "archive; unpack it and load the folder, or select entries with "
                            "--include",
                            archive->label, archive->kind, SL_PATH_SET_MOST);
    default:
        return sl_error_memory(error, "reading archives");
    }
}

/* A link has no contents, but unpacking it replaces an earlier file of its path. */
static bool replaces_file(const sl_archive *archive, struct archive_entry *entry,
                          const char *path) {
    const char *target = archive_entry_hardlink(entry);
    return archive_entry_filetype(entry) != AE_IFDIR && path &&
           sl_path_set_has(&archive->paths, path) && !(target && sl_path_same(target, path));
}

const char *sl_archive_skip_reason(const sl_archive *archive) {
    return archive->skip_reason;
}

bool sl_archive_next(sl_archive *archive, sl_input **contents, sl_reader_times *times,
                     sl_error *error) {
    *contents = NULL;
    while (!archive->ended) {
        struct archive_entry *entry = NULL;
        const char *path = NULL;
        if (!next_entry(archive, &entry, &path, times, error))
            return false;
        if (!entry)
            return end(archive, times, error);
        archive->skip_reason = missing_target(archive, entry, path);
        if (!is_file(entry) && replaces_file(archive, entry, path))
            return refuse_repeated(archive, error);
        if (!is_file(entry) && !archive->skip_reason)
            continue;
        archive->files++;
        if (path && is_hidden(path)) {
            sl_log_debug("%s: hidden; skipped", archive->label);
            continue;
        }
        archive->visible++;
        archive->included = is_included(archive, path);
        archive->unmatched += !archive->included;
        if (!archive->included &&
            (archive->visible > 1 || !is_file(entry) || archive_entry_is_encrypted(entry)))
            continue;
        if (archive_entry_is_encrypted(entry))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: encrypted; unpack the archive with its password first (7z x)",
                                archive->label);
        if (is_file(entry) && archive->included && !keep_path(archive, path, error))
            return false;
        sl_input_restart(&archive->contents);
        *contents = &archive->contents;
        return true;
    }
    return true;
}

bool sl_archive_is_included(const sl_archive *archive) {
    return archive->included;
}

bool sl_archive_is_first(const sl_archive *archive, bool included) {
    return archive->visible - (included ? archive->unmatched : 0) == 1;
}

void sl_archive_include_all(sl_archive *archive) {
    archive->include = NULL;
}

void sl_archive_mark_used(sl_archive *archive) {
    archive->any_used = true;
}

const char *sl_archive_entry_name(const sl_archive *archive) {
    return archive->name;
}
