/* SPDX-License-Identifier: Apache-2.0 */
/* Text that cannot be split into records at its line ends: quoted line ends, lines that end in CR
 * alone. Such text ends a load, an inspection or a verification with an error: before anything is
 * sent if it is in the head of a source, otherwise when the parser reaches it. */
#include "line_ends.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

#define DOUBTS_SHOWN 5u
#define COUNTED_BYTES_MAX ((uint64_t)1 << 30) /* text read again to count its lines */

bool sl_line_ends_is_binary(sl_text head) {
    return head.length > 0 && memchr(head.bytes, '\0', head.length);
}

void sl_line_ends_detect(const sl_job *job, size_t index, char *head, size_t length) {
    sl_text text = {head, length};
    if (length == 0 || memchr(head, '\n', length) || !memchr(head, '\r', length) ||
        sl_line_ends_is_binary(text) ||
        sl_source_set_at(job->set, index)->kind == SL_SOURCE_ARCHIVE)
        return;
    sl_source_set_cr_lines(job->set, index);
    sl_source_replace_cr(head, length);
}

/* Counts the line ends, LF or `other`, in the first `bytes` of a plain file; false if these cannot
 * be read. */
static bool count_lines(const char *path, uint64_t bytes, char other, uint64_t *lines) {
    char buffer[65536];
    FILE *file = fopen(path, "r");
    *lines = 0;
    while (file && bytes > 0) {
        size_t got = fread(buffer, 1, bytes < sizeof buffer ? bytes : sizeof buffer, file);
        for (size_t i = 0; i < got; i++)
            *lines += buffer[i] == '\n' || buffer[i] == other;
        if (got == 0)
            break;
        bytes -= got;
    }
    if (file)
        fclose(file);
    return file && bytes == 0;
}

bool sl_line_ends_error(const sl_job *job, const sl_source_block *block, const sl_reject *reject,
                        sl_error *error) {
    const sl_source *source = sl_source_set_at(job->set, block->source);
    char line[40] = "";
    uint64_t before = 0;
    bool known =
        block->sequence == 0 || block->entry_start ||
        (source->kind == SL_SOURCE_PLAIN && block->offset <= COUNTED_BYTES_MAX &&
         count_lines(source->path, block->offset, source->cr_lines ? '\r' : '\n', &before));
    if (known)
        snprintf(line, sizeof line, "line %" PRIu64 ", ", before + reject->line + 1);
    return sl_error_set(error, SL_EXIT_SOURCE, "%s%s%s, %sbyte %" PRIu64 ": %s", source->shown,
                        block->entry ? ": " : "", block->entry ? block->entry : "", line,
                        reject->offset, reject->reason);
}

void sl_line_ends_doubt(sl_job *job, const sl_source_block *block, const sl_reject *record) {
    sl_error where;
    pthread_mutex_lock(&job->entries_lock);
    unsigned shown = ++job->doubts;
    pthread_mutex_unlock(&job->entries_lock);
    if (shown > DOUBTS_SHOWN)
        return;
    sl_line_ends_error(job, block, record, &where);
    sl_log_warning(SL_LINES "%s", where.message,
                   shown == DOUBTS_SHOWN ? " (not shown for further records)" : "");
}
