/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line is a row of parts. The four parts that are always shown have a short form that
 * fits into 40 columns; each part has a rank, and the parts are added by rank while they fit. The
 * bar takes the columns that are left. */
#include "progress_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/print.h"
#include "util/text.h"

#define NARROWEST 40
#define BAR_LEAST 10 /* with its brackets */
#define BAR_MOST 34
#define PART_ROOM 200
#define LOG_SHARDS 16

/* "812", "85.2k", "1.31M". */
static char *short_number(double value, char out[SL_HUMAN_ROOM]) {
    if (!(value >= 0))
        value = 0;
    if (value < 999.5)
        snprintf(out, SL_HUMAN_ROOM, "%.0f", value);
    else if (value < 999950)
        snprintf(out, SL_HUMAN_ROOM, "%.1fk", value / 1e3);
    else if (value < 999.995e6)
        snprintf(out, SL_HUMAN_ROOM, "%.2fM", value / 1e6);
    else
        snprintf(out, SL_HUMAN_ROOM, "%.1fG", value / 1e9);
    return out;
}

/* "42s", "3m20s", "4h05m", "12d03h", "?": at most six characters. */
static char *short_time(double seconds, char out[SL_HUMAN_ROOM]) {
    bool known = seconds >= 0 && seconds < 99.5 * 86400;
    unsigned long long s = known ? (unsigned long long)(seconds + 0.5) : 0;
    if (!known)
        snprintf(out, SL_HUMAN_ROOM, "%s", seconds < 0 ? "?" : ">99d");
    else if (s < 60)
        snprintf(out, SL_HUMAN_ROOM, "%llus", s);
    else if (s < 3600)
        snprintf(out, SL_HUMAN_ROOM, "%llum%02llus", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, SL_HUMAN_ROOM, "%lluh%02llum", s / 3600, s / 60 % 60);
    else
        snprintf(out, SL_HUMAN_ROOM, "%llud%02lluh", s / 86400, s / 3600 % 24);
    return out;
}

/* A share below 1 is never shown as 100 %. */
static double percent(double share) {
    double shown = 100 * share;
    return share < 1 && shown > 99.9 ? 99.9 : shown > 100 ? 100 : shown;
}

typedef enum part_name {
    PART_BAR,
    PART_SHARE,
    PART_DOCUMENTS,
    PART_RATE,
    PART_BYTES,
    PART_LEFT,
    PART_REJECTS,
    PART_THREADS,
    PART_WAITS,
    PART_SECOND,
    PART_SHARDS,
    PARTS,
} part_name;

/* The order in which parts are added. Those of the first row are always there. */
static const part_name ranks[] = {
    PART_SHARE,     PART_RATE,  PART_LEFT,   PART_WAITS,   PART_REJECTS,
    PART_DOCUMENTS, PART_BYTES, PART_SECOND, PART_THREADS, PART_SHARDS,
};
enum { ALWAYS = 4, RANKS = sizeof ranks / sizeof ranks[0] };

typedef struct parts {
    char text[PARTS][PART_ROOM];
    const char *gap; /* between two parts */
} parts;

static void put(parts *all, part_name part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put(parts *all, part_name part, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(all->text[part], PART_ROOM, format, arguments);
    va_end(arguments);
}

static void put_shards(parts *all, const sl_progress_facts *facts) {
    char rate[SL_HUMAN_ROOM];
    size_t used = 0;
    for (size_t i = 0; i < facts->shard_count && i < LOG_SHARDS; i++)
        used += sl_print_text(all->text[PART_SHARDS] + used, PART_ROOM - used, "%s%s %s/s",
                              i ? "  " : "", facts->shards[i],
                              short_number(facts->shard_rates[i], rate));
}

/* The parts for a terminal. */
static void make_parts(parts *all, const sl_progress_facts *facts) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (facts->share >= 0) {
        put(all, PART_SHARE, "%.1f %%", percent(facts->share));
        put(all, PART_DOCUMENTS, "%s docs", short_number((double)facts->documents, a));
    } else {
        put(all, PART_SHARE, "%s docs", short_number((double)facts->documents, a));
    }
    put(all, PART_RATE, "%s/s", short_number(facts->rate_now, a));
    put(all, PART_LEFT, "ETA %s", short_time(facts->left, a));
    if (facts->waits[0])
        put(all, PART_WAITS, "%s %.0f %%", facts->waits[0], 100 * facts->waits_share[0]);
    else
        put(all, PART_WAITS, "starting");
    if (facts->waits[0] && facts->waits[1] && facts->waits_share[1] >= 0.005)
        put(all, PART_SECOND, "%s %.0f %%", facts->waits[1], 100 * facts->waits_share[1]);
    put(all, PART_BYTES, "%s/s", sl_human_bytes(facts->bytes_now, a));
    if (facts->rejects > 0)
        put(all, PART_REJECTS, "%s rejects", short_number((double)facts->rejects, a));
    if (facts->threads > 0)
        put(all, PART_THREADS, "%u thread%s", facts->threads, facts->threads == 1 ? "" : "s");
    if (facts->rate_limit > 0)
        put(all, PART_THREADS, "limit %s/s", short_number((double)facts->rate_limit, b));
    put_shards(all, facts);
}

/* The parts that were chosen, with a bar of `bar` columns. Returns the length. */
static size_t join(const parts *all, const bool chosen[PARTS], double share, size_t bar,
                   char out[SL_PROGRESS_LINE_ROOM]) {
    size_t used = 0;
    out[0] = '\0';
    if (bar > 0) {
        size_t inside = bar - 2, full = (size_t)((double)inside * share);
        out[used++] = '[';
        for (size_t i = 0; i < inside; i++)
            out[used++] = i < full ? '=' : i == full ? '>' : ' ';
        out[used++] = ']';
        out[used] = '\0';
    }
    for (part_name part = PART_SHARE; part < PARTS; part++) {
        if (chosen[part] && all->text[part][0])
            used += (size_t)snprintf(out + used, SL_PROGRESS_LINE_ROOM - used, "%s%s",
                                     used ? all->gap : "", all->text[part]);
    }
    return used;
}

/* For narrow terminals: shows what the workers wait for without "the " and without the
 * percentage. */
static void shorten(parts *all, const sl_progress_facts *facts) {
    const char *waits = facts->waits[0];
    if (waits)
        put(all, PART_WAITS, "%s", waits + (strncmp(waits, "the ", 4) == 0 ? 4 : 0));
}

/* For the narrowest terminals: also omits blanks and optional words. */
static void squeeze(parts *all, const sl_progress_facts *facts) {
    char number[SL_HUMAN_ROOM];
    if (facts->share >= 0)
        put(all, PART_SHARE, "%.1f%%", percent(facts->share));
    else
        put(all, PART_SHARE, "%s", short_number((double)facts->documents, number));
    all->gap = " ";
}

static char *terminal_line(const sl_progress_facts *facts, size_t room,
                           char out[SL_PROGRESS_LINE_ROOM]) {
    parts all = {.gap = "  "};
    bool chosen[PARTS] = {false};
    make_parts(&all, facts);
    for (unsigned i = 0; i < ALWAYS; i++)
        chosen[ranks[i]] = true;
    join(&all, chosen, 0, 0, out);
    if (sl_letters(sl_text_of(out)) > room)
        shorten(&all, facts);
    join(&all, chosen, 0, 0, out);
    if (sl_letters(sl_text_of(out)) > room)
        squeeze(&all, facts);
    for (unsigned i = ALWAYS; i < RANKS; i++) {
        chosen[ranks[i]] = true;
        join(&all, chosen, 0, 0, out);
        bool bar_first = ranks[i] != PART_REJECTS && ranks[i] != PART_DOCUMENTS;
        size_t least = facts->share >= 0 && bar_first ? BAR_LEAST + 2 : 0;
        if (sl_letters(sl_text_of(out)) + least > room)
            chosen[ranks[i]] = false;
    }
    join(&all, chosen, 0, 0, out);
    size_t used = sl_letters(sl_text_of(out)), bar = 0;
    if (facts->share >= 0 && used + BAR_LEAST + 2 <= room)
        bar = room - used - 2 < BAR_MOST ? room - used - 2 : BAR_MOST;
    join(&all, chosen, facts->share < 1 ? facts->share : 1, bar, out);
    return out;
}

static void append(char *line, size_t *used, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *line, size_t *used, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    *used += sl_print_text_v(line + *used, SL_PROGRESS_LINE_ROOM - *used, format, arguments);
    va_end(arguments);
}

static char *log_line(const sl_progress_facts *facts, char out[SL_PROGRESS_LINE_ROOM]) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM], d[SL_HUMAN_ROOM];
    size_t used = 0;
    if (facts->share >= 0)
        append(out, &used, "%5.1f %%  ", percent(facts->share));
    append(out, &used, "%s documents  %s/s now, %s/s overall  %s/s%s",
           sl_human_count(facts->documents, a), short_number(facts->rate_now, b),
           short_number(facts->rate_all, c), sl_human_bytes(facts->bytes_now, d),
           facts->bson ? " of BSON" : "");
    append(out, &used, "  ETA %s", facts->left >= 0 ? sl_human_seconds(facts->left, a) : "?");
    if (facts->rejects > 0)
        append(out, &used, "  rejects %s", sl_human_count(facts->rejects, a));
    if (facts->threads > 0)
        append(out, &used, "  %u thread%s", facts->threads, facts->threads == 1 ? "" : "s");
    if (facts->rate_limit > 0)
        append(out, &used, "  limited to %s/s", sl_human_count(facts->rate_limit, a));
    append(out, &used, "  waits for %s", facts->waits[0] ? facts->waits[0] : "?");
    if (facts->waits[0])
        append(out, &used, " %.0f %%", 100 * facts->waits_share[0]);
    if (facts->waits[0] && facts->waits[1])
        append(out, &used, ", %s %.0f %%", facts->waits[1], 100 * facts->waits_share[1]);
    for (size_t i = 0; i < facts->shard_count && i < LOG_SHARDS; i++)
        append(out, &used, "  %s %s/s", facts->shards[i], short_number(facts->shard_rates[i], a));
    return out;
}

char *sl_progress_line(const sl_progress_facts *facts, unsigned columns,
                       char out[SL_PROGRESS_LINE_ROOM]) {
    if (columns == 0)
        return log_line(facts, out);
    size_t width = columns < NARROWEST ? NARROWEST : columns;
    if (width > SL_PROGRESS_LINE_ROOM / 2)
        width = SL_PROGRESS_LINE_ROOM / 2;
    return terminal_line(facts, width - 1, out);
}
