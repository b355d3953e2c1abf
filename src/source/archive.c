/* SPDX-License-Identifier: Apache-2.0 */
/* Archives through libarchive, which reads them sequentially. Nothing is held but one buffer, however
 * large an entry claims to be, and however many there are. A zip file's table of contents is checked
 * before; libarchive reads by the table, and keeps all of it, only where some entry needs that. */
#include "archive.h"

#include <archive_entry.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/log.h>
#include <shardload/text.h>

#include "bridge.h"
#include "source_set.h"
#include "zip_table.h"

#define MEMBER_BUFFER_BYTES ((size_t)64 << 10)

struct sl_archive {
    const char *kind;
    bool tar;
    const char *include; /* borrowed; NULL: all */
    bool checked;
    bool ended;
    bool any;            /* a member was of use */
    uint64_t files;      /* regular files seen */
    uint64_t unmatched;  /* of those, passed over because of the pattern */
    uint64_t number;     /* of the present member, from 1 */
    const char *advice;  /* why the present member has no contents, or NULL */
    sl_positions begun;  /* where entries begin, of a zip that is no file */
    locale_t names;      /* in which libarchive can give names that are UTF-8; or none */
    sl_bridge bridge;
    sl_input member;
    char name[SL_ENTRY_NAME_ROOM];      /* of the present member */
    char place[SL_ENTRY_NAME_ROOM * 2]; /* archive and member, for messages */
};

/* A tar header's sum of bytes, its own field taken as blanks: true of every kind of tar. */
static bool tar_sum_fits(const unsigned char *header) {
    unsigned long sum = 0, stated = 0;
    size_t at = 148;
    while (at < 156 && header[at] == ' ')
        at++;
    size_t digits = at;
    for (; at < 156 && header[at] >= '0' && header[at] <= '7'; at++)
        stated = stated * 8 + (header[at] - '0');
    if (at == digits)
        return false;
    for (size_t i = 0; i < SL_ARCHIVE_HEAD_BYTES; i++)
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    return sum == stated;
}

const char *sl_archive_kind_of(const unsigned char *bytes, size_t length) {
    if (length >= 4 && (memcmp(bytes, "PK\003\004", 4) == 0 || memcmp(bytes, "PK\005\006", 4) == 0))
        return "zip";
    if (length < SL_ARCHIVE_HEAD_BYTES || !memchr(bytes, 0, SL_ARCHIVE_HEAD_BYTES))
        return NULL; /* a tar header is filled up with NUL, which no text has */
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

/* A type that does not exist is a damaged one; its member is not to be lost over that. */
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

static void name_member(sl_archive *archive, const char *path) {
    if (path)
        sl_text_printable(sl_text_of(path), archive->name, sizeof archive->name);
    else
        snprintf(archive->name, sizeof archive->name, "member %llu",
                 (unsigned long long)archive->number);
    snprintf(archive->place, sizeof archive->place, "%s: %s", archive->bridge.input->name,
             archive->name);
}

/* libarchive's last call failed: what that means for the user. */
static bool fail(sl_archive *archive, sl_error *error) {
    sl_bridge *bridge = &archive->bridge;
    const sl_input *input = bridge->input;
    const char *reason = sl_bridge_reason(bridge);
    const char *place = archive->number > 0 ? archive->place : input->name;
    if (bridge->input_failed)
        return sl_error_prefix(error, "reading %s", place);
    if (strstr(reason, "method (9:"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: packed with Deflate64, which cannot be read here; unpack the "
                            "archive first (unzip, or 7z x), or pipe it in: "
                            "7z x -so FILE | shardload load ... -", place);
    if (strstr(reason, "Unsupported ZIP compression method"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: packed in a way that cannot be read here (%s); unpack the archive "
                            "first", place, reason);
    if (bridge->ran_out)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the %s archive breaks off at byte %llu (%s); the file is "
                            "truncated: fetch it again", place, archive->kind,
                            (unsigned long long)input->offset, reason);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the %s archive is damaged near byte %llu (%s); fetch the file again",
                        place, archive->kind, (unsigned long long)sl_input_position(input), reason);
}

static bool fetch(sl_input *member, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    sl_archive *archive = member->context;
    sl_bridge_enter(&archive->bridge, times, error);
    la_ssize_t result = archive_read_data(archive->bridge.library, out, room);
    sl_bridge_leave(&archive->bridge);
    *got = result > 0 ? (size_t)result : 0;
    return result >= 0 || fail(archive, error);
}

/* Chooses how libarchive reads. */
static bool set_format(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    struct archive *library = archive->bridge.library;
    sl_input *input = archive->bridge.input;
    bool by_table = false;
    if (!archive->tar && input->read_at && !sl_zip_check_file(input, &by_table, times, error))
        return false;
    return (archive->tar ? archive_read_support_format_tar(library)
            : by_table   ? archive_read_support_format_zip(library)
                         : archive_read_support_format_zip_streamable(library)) == ARCHIVE_OK ||
           sl_error_memory(error, "opening archives");
}

bool sl_archive_create(sl_input *input, const char *include, bool checked, sl_archive **result,
                       sl_reader_times *times, sl_error *error) {
    sl_archive *archive = calloc(1, sizeof *archive);
    *result = archive;
    if (!archive)
        return sl_error_memory(error, "opening archives");
    archive->kind = sl_archive_kind_of(sl_input_at(input), sl_input_left(input));
    archive->include = include;
    archive->checked = checked;
    archive->member = (sl_input){.fetch = fetch, .context = archive, .name = archive->place};
    archive->names = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    struct archive *library = archive_read_new();
    archive->bridge = (sl_bridge){.library = library, .input = input};
    archive->tar = strcmp(archive->kind, "tar") == 0;
    if (!library)
        sl_error_memory(error, "opening archives");
    else if (set_format(archive, times, error) &&
             sl_input_init(&archive->member, MEMBER_BUFFER_BYTES, error))
        return true;
    sl_archive_destroy(archive);
    *result = NULL;
    return false;
}

void sl_archive_destroy(sl_archive *archive) {
    if (!archive)
        return;
    archive_read_free(archive->bridge.library);
    if (archive->names)
        freelocale(archive->names);
    sl_input_clear(&archive->member);
    free(archive);
}

/* Reads the next header and its path, which may be NULL; `*entry` NULL at the end. */
static bool next_entry(sl_archive *archive, struct archive_entry **entry, const char **path,
                       sl_reader_times *times, sl_error *error) {
    sl_bridge *bridge = &archive->bridge;
    sl_bridge_enter(bridge, times, error);
    locale_t before = archive->names ? uselocale(archive->names) : (locale_t)0;
    /* ARCHIVE_RETRY, "try the next one", is a header that is damaged: its member would be lost. */
    bool ready = archive->number > 0 || sl_bridge_open(bridge);
    if (ready && archive->number > 0) /* also what stands behind the last one's data */
        ready = archive_read_data_skip(bridge->library) >= ARCHIVE_WARN;
    la_int64_t begin = archive_filter_bytes(bridge->library, 0);
    int result = ready ? archive_read_next_header(bridge->library, entry) : ARCHIVE_FATAL;
    if (result == ARCHIVE_EOF)
        *entry = NULL;
    else if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
        *path = path_of(*entry);
    if (*entry)
        sl_positions_add(&archive->begun, (uint64_t)begin);
    if (before)
        uselocale(before);
    sl_bridge_leave(bridge);
    return result == ARCHIVE_EOF || result == ARCHIVE_OK || result == ARCHIVE_WARN ||
           fail(archive, error);
}

/* Behind the mark that ends a tar archive only zeros may follow. */
static bool check_tar_end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    if (archive->bridge.ran_out)
        return archive->checked ||
               sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the tar archive ends at byte %llu without the mark that ends one; "
                            "the file is truncated: fetch it again", input->name,
                            (unsigned long long)input->offset);
    uint64_t end = sl_input_position(input);
    if (!sl_bridge_take_back(&archive->bridge))
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: what follows the tar archive cannot be read",
                            input->name);
    return sl_input_pass_zeros(input, times, error) &&
           (sl_input_left(input) == 0 ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "%s: the tar archive ends at byte %llu, but data follows at byte %llu, which "
                         "was not read: it may be another archive, or entries behind a damaged "
                         "header. Unpack it first (tar -xif FILE reads on behind the end), or fetch "
                         "the file again", input->name, (unsigned long long)end,
                         (unsigned long long)sl_input_position(input)));
}

/* Of a zip file this has been checked before. */
static bool check_zip_end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    if (input->read_at)
        return true;
    return (sl_bridge_take_back(&archive->bridge) ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "%s: the table at the end of the zip archive cannot be read", input->name)) &&
           sl_zip_check_table(input, &archive->begun, times, error);
}

/* The end of the archive. What follows it in a pipe or a compressed file is read nevertheless: the
 * writer of a pipe shall not be cut off, and a checksum may stand at the very end. */
static bool end(sl_archive *archive, sl_reader_times *times, sl_error *error) {
    sl_input *input = archive->bridge.input;
    archive->ended = true;
    if (!(archive->tar ? check_tar_end : check_zip_end)(archive, times, error))
        return false;
    if (archive->any)
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
                        "text%s", input->name, archive->kind,
                        archive->include ? ", or do not match --include" : "");
}

static bool is_included(const sl_archive *archive, const char *path) {
    return !archive->include || (path && fnmatch(archive->include, sl_base_name(path), 0) == 0);
}

/* Another name of an entry (a hard link) has no contents of its own. Where --include picks it and not
 * the entry that has them, they would be lost without a word. */
static const char *linked_away(const sl_archive *archive, struct archive_entry *entry,
                               const char *path) {
    const char *contents = archive_entry_hardlink(entry);
    return contents && is_included(archive, path) && !is_included(archive, contents)
               ? "another name of an entry that --include does not pick; its contents are stored "
                 "under that name"
               : NULL;
}

const char *sl_archive_advice(const sl_archive *archive) {
    return archive->advice;
}

bool sl_archive_next(sl_archive *archive, sl_input **member, sl_reader_times *times,
                     sl_error *error) {
    *member = NULL;
    while (!archive->ended) {
        struct archive_entry *entry = NULL;
        const char *path = NULL;
        if (!next_entry(archive, &entry, &path, times, error))
            return false;
        if (!entry)
            return end(archive, times, error);
        archive->number++;
        name_member(archive, path);
        archive->advice = linked_away(archive, entry, path);
        if (!is_file(entry) && !archive->advice)
            continue;
        archive->files++;
        if (path && is_hidden(path)) {
            sl_log_debug("%s: hidden; passed over", archive->place);
            continue;
        }
        if (!is_included(archive, path)) {
            archive->unmatched++;
            continue;
        }
        if (archive_entry_is_encrypted(entry))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: encrypted; unpack the archive with its password first (7z x)",
                                archive->place);
        archive->member.used = archive->member.length = 0;
        archive->member.offset = 0;
        archive->member.ended = false;
        *member = &archive->member;
        return true;
    }
    return true;
}

void sl_archive_use_member(sl_archive *archive) {
    archive->any = true;
}

const char *sl_archive_member_name(const sl_archive *archive) {
    return archive->name;
}
