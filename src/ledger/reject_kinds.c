/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of rejects. Two reasons are of one kind when they differ only in the values in them: quoted
 * texts and numbers. The pattern without values is compared for each reject; rejects are few, and
 * writing them takes much longer. */
#include "reject_kinds.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/log.h"
#include "util/private_file.h"

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

static sl_reject_kind *find(sl_reject_kinds *kinds, const char *pattern, const char *reason,
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

void sl_reject_kinds_add(sl_reject_kinds *kinds, sl_text reason, sl_text column,
                         void (*write_place)(const void *context, char *out, size_t room),
                         const void *context) {
    char why[sizeof kinds->items->reason], pattern[sizeof why];
    char name[sizeof kinds->items->column];
    sl_text_printable(reason, why, sizeof why);
    sl_text_printable(column, name, sizeof name);
    write_pattern(why, pattern, sizeof pattern);
    sl_reject_kind *kind = find(kinds, pattern, why, name);
    if (!kind) {
        if (!kinds->items)
            kinds->items = calloc(SL_REJECT_KINDS_MAX, sizeof *kinds->items);
        if (!kinds->items || kinds->count == SL_REJECT_KINDS_MAX) {
            kinds->others++;
            return;
        }
        kind = &kinds->items[kinds->count++];
        memcpy(kind->reason, why, sizeof why);
        memcpy(kind->first_reason, why, sizeof why);
        memcpy(kind->column, name, sizeof name);
        write_place(context, kind->first_place, sizeof kind->first_place);
        end_at_character(kind->first_place);
    }
    kind->count++;
}

/* ---- rejects of an earlier run ---- */

/* The cells of a row: source, line, offset, column, reason, record. */
enum { SOURCE, LINE, OFFSET, COLUMN, REASON, CELLS };

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
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    uint64_t at = 0;
    while (file && at < bytes && (length = getline(&line, &room, file)) > 0) {
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
        at += (uint64_t)length;
    }
    free(line);
    if (file)
        fclose(file);
}

/* ---- order ---- */

void sl_reject_kinds_order(const sl_reject_kinds *kinds, size_t order[SL_REJECT_KINDS_MAX]) {
    for (size_t i = 0; i < kinds->count; i++) {
        size_t at = i;
        for (; at > 0 && kinds->items[order[at - 1]].count < kinds->items[i].count; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* ---- the summary, and the section of the record; both show the same figures ---- */

#define SHOWN 10 /* kinds in the summary; the record has all */

static uint64_t not_written(const sl_reject_kinds *kinds, uint64_t all) {
    uint64_t sum = sl_reject_kinds_sum(kinds);
    return all > sum ? all - sum : 0;
}

static void log_count(uint64_t count, const char *what) {
    char human[SL_HUMAN_ROOM];
    if (count > 0)
        sl_log_info("  %12s  %s", sl_human_count(count, human), what);
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
    sl_log_info("  rejects%s%s by reason, with the first one of each", of ? " of " : "",
                of ? of : "");
    for (sl_walk walk = sl_walk_start(record, "rejects.kinds"); sl_walk_next(&walk);) {
        const char *column = sl_look_string(&walk.item, "column");
        uint64_t count = count_at(&walk.item, "count");
        if (shown++ >= SHOWN) {
            others += count;
            continue;
        }
        sl_log_info("  %12s  %s%s%s", sl_human_count(count, human), column, column[0] ? ": " : "",
                    sl_look_string(&walk.item, "reason"));
        sl_log_info("                %s%s%s", sl_look_string(&walk.item, "firstPlace"),
                    count > 1 ? ": " : "",
                    count > 1 ? sl_look_string(&walk.item, "firstReason") : "");
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
    BSON_APPEND_INT64(&section, "notCompleted", (int64_t)not_written(kinds, all));
    bson_append_document_end(record, &section);
}
