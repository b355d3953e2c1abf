/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a restore. A hook, which runs under the log's lock, erases the line on the terminal
 * before each log line and draws it again afterwards. So nothing may be logged while `screen` is
 * held. */
#include "restore_progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/print.h"
#include "util/text.h"

#define FIRST_NS INT64_C(3000000000) /* time until the first log line of a namespace */
#define NEXT_NS INT64_C(10000000000)

struct sl_restore_progress {
    sl_progress_kind kind;
    pthread_mutex_t screen; /* guards the fields below, and the line on the terminal */
    sl_restore_line *lines;
    char drawn[1024]; /* "": nothing */
};

static void on_screen(bool before, void *context) {
    sl_restore_progress *progress = context;
    if (before)
        pthread_mutex_lock(&progress->screen);
    if (progress->drawn[0]) {
        fputs(before ? "\r\033[K" : progress->drawn, sl_screen_stream());
        fflush(sl_screen_stream());
    }
    if (!before)
        pthread_mutex_unlock(&progress->screen);
}

sl_restore_progress *sl_restore_progress_create(sl_progress_kind kind) {
    const sl_context *context = sl_context_current();
    if (context && sl_context_surroundings(context)->progress)
        kind = SL_PROGRESS_JSON;
    if (kind == SL_PROGRESS_AUTO)
        kind = sl_screen_is_terminal() ? SL_PROGRESS_TERMINAL : SL_PROGRESS_PLAIN;
    sl_restore_progress *made = kind == SL_PROGRESS_NONE ? NULL : calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->kind = kind;
    pthread_mutex_init(&made->screen, NULL);
    sl_log_set_screen_hook(on_screen, made);
    return made;
}

void sl_restore_progress_destroy(sl_restore_progress *progress) {
    if (!progress)
        return;
    sl_log_set_screen_hook(NULL, NULL);
    pthread_mutex_destroy(&progress->screen);
    free(progress);
}

/* Draws the namespaces that are being restored, as many as fit. */
static void draw(sl_restore_progress *progress) {
    size_t used = 0;
    char text[900] = "";
    if (progress->kind != SL_PROGRESS_TERMINAL)
        return;
    pthread_mutex_lock(&progress->screen);
    for (const sl_restore_line *one = progress->lines; one; one = one->next) {
        if (one->name && one->text[0])
            used += sl_print_text(text + used, sizeof text - used, "%s" SL_LINES ": %s",
                                  used ? "; " : "", one->name, one->text);
    }
    bool erase = used > 0 || progress->drawn[0];
    progress->drawn[0] = '\0';
    if (used)
        snprintf(progress->drawn, sizeof progress->drawn, "\r\033[K%.*s",
                 (int)sl_screen_columns() - 1, text);
    if (erase)
        fputs(used ? progress->drawn : "\r\033[K", sl_screen_stream());
    fflush(sl_screen_stream());
    pthread_mutex_unlock(&progress->screen);
}

void sl_restore_progress_begin(sl_restore_progress *progress, sl_restore_line *line,
                               const char *name) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->screen);
    line->name = name;
    line->text[0] = '\0';
    line->due = sl_clock_ns() + FIRST_NS;
    if (!line->listed) {
        line->next = progress->lines;
        progress->lines = line;
    }
    line->listed = true;
    pthread_mutex_unlock(&progress->screen);
}

static void compose(const bson_t *figures, char *text, size_t room) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    double share = sl_look_amount(figures, "share", -1),
           left = sl_look_amount(figures, "secondsLeft", -1);
    size_t used = 0;
    if (share >= 0)
        used += sl_print_text(text, room, "%.1f %%  ", 100 * share);
    used += sl_print_text(
        text + used, room - used, "%s documents  %s/s",
        sl_human_count((uint64_t)sl_look_amount(figures, "documents", 0), a),
        sl_human_count((uint64_t)sl_look_amount(figures, "documentsPerSecond", 0), b));
    if (left >= 0)
        sl_print_text(text + used, room - used, "  ETA %s", sl_human_seconds(left, a));
}

/* Writes a load's progress unchanged, after the name of its namespace; one line at a time. */
static void pass_on(sl_restore_progress *progress, const char *name, const bson_t *figures) {
    const sl_surroundings *to = sl_context_surroundings(sl_context_current());
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&line, "namespace", name);
    bson_concat(&line, figures);
    char *text = sl_json_line(&line);
    pthread_mutex_lock(&progress->screen);
    if (text && to->progress)
        to->progress(to->data, text);
    else if (text)
        sl_print_to(sl_screen_stream(), SL_LINES "\n", text);
    pthread_mutex_unlock(&progress->screen);
    free(text);
    bson_destroy(&line);
}

void sl_restore_progress_take(sl_restore_progress *progress, sl_restore_line *line,
                              const char *json) {
    bson_t *figures = progress ? bson_new_from_json((const uint8_t *)json, -1, NULL) : NULL;
    if (!figures)
        return;
    pthread_mutex_lock(&progress->screen);
    compose(figures, line->text, sizeof line->text);
    bool due = sl_clock_ns() >= line->due;
    if (due)
        line->due = sl_clock_ns() + NEXT_NS;
    pthread_mutex_unlock(&progress->screen);
    if (progress->kind == SL_PROGRESS_JSON)
        pass_on(progress, line->name, figures);
    else if (progress->kind == SL_PROGRESS_PLAIN && due)
        sl_log_info(SL_LINES ": %s", line->name, line->text);
    draw(progress);
    bson_destroy(figures);
}

void sl_restore_progress_end(sl_restore_progress *progress, sl_restore_line *line) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->screen);
    line->name = NULL;
    pthread_mutex_unlock(&progress->screen);
    draw(progress);
}
