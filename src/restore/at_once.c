/* SPDX-License-Identifier: Apache-2.0 */
/* Restores several namespaces at the same time.
 *
 * A team of threads takes the collections in the order of their names; each thread has a connection
 * that all its loads use, one after the other. The main thread is one of them. It creates the views
 * at the end, alone.
 *
 * Each namespace is restored in its own context (util/context.h), because a load sets the log file,
 * the log level and the listeners for interrupts of its context. Its log lines are also written to
 * the restore's log, after the name of the namespace; a request to stop is passed on to the
 * contexts of all namespaces that are being restored (sl_restore_interrupt).
 *
 * Progress: one line for all loads on a terminal, one log line per load, or JSON with the name of
 * the namespace. A hook, which runs under the log's lock, erases the line on the terminal before
 * each log line and draws it again afterwards. So nothing may be logged while `screen` is held. */
#include "restoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "load/status.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/print.h"
#include "util/text.h"

#define FIRST_NS INT64_C(3000000000) /* time until the first log line of a namespace */
#define NEXT_NS INT64_C(10000000000)

/* ---- progress ---- */

/* The latest progress of one thread's namespace. Initialise with zeros. */
typedef struct progress_line {
    struct progress_line *next; /* of the same restore */
    const char *name;           /* borrowed; NULL: nothing is restored by this thread */
    char text[120];
    int64_t due; /* when the next line is logged, by sl_clock_ns */
    bool listed;
} progress_line;

typedef struct restore_progress {
    sl_progress_kind kind;
    pthread_mutex_t screen; /* guards the fields below, and the line on the terminal */
    progress_line *lines;
    char drawn[1024]; /* "": nothing */
} restore_progress;

static void on_screen(bool before, void *context) {
    restore_progress *progress = context;
    if (before)
        pthread_mutex_lock(&progress->screen);
    if (progress->drawn[0]) {
        fputs(before ? "\r\033[K" : progress->drawn, sl_screen_stream());
        fflush(sl_screen_stream());
    }
    if (!before)
        pthread_mutex_unlock(&progress->screen);
}

/* NULL for SL_PROGRESS_NONE, and without memory: then there is no progress. All functions accept
 * NULL. They are called in the context of the restore. */
static restore_progress *progress_create(sl_progress_kind kind) {
    const sl_context *context = sl_context_current();
    if (context && sl_context_surroundings(context)->progress)
        kind = SL_PROGRESS_JSON;
    if (kind == SL_PROGRESS_AUTO)
        kind = sl_screen_is_terminal() ? SL_PROGRESS_TERMINAL : SL_PROGRESS_PLAIN;
    restore_progress *made = kind == SL_PROGRESS_NONE ? NULL : calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->kind = kind;
    pthread_mutex_init(&made->screen, NULL);
    sl_log_set_screen_hook(on_screen, made);
    return made;
}

static void progress_destroy(restore_progress *progress) {
    if (!progress)
        return;
    sl_log_set_screen_hook(NULL, NULL);
    pthread_mutex_destroy(&progress->screen);
    free(progress);
}

/* Draws the namespaces that are being restored, as many as fit. */
static void draw(restore_progress *progress) {
    size_t used = 0;
    char text[900] = "";
    if (progress->kind != SL_PROGRESS_TERMINAL)
        return;
    pthread_mutex_lock(&progress->screen);
    for (const progress_line *one = progress->lines; one; one = one->next) {
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

/* To be called when a namespace begins. `name` must live until its end. */
static void progress_begin(restore_progress *progress, progress_line *line, const char *name) {
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
static void pass_on(restore_progress *progress, const char *name, const bson_t *figures) {
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

/* Shows the progress of its load, a JSON object (progress.h). */
static void progress_take(restore_progress *progress, progress_line *line, const char *json) {
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

static void progress_end(restore_progress *progress, progress_line *line) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->screen);
    line->name = NULL;
    pthread_mutex_unlock(&progress->screen);
    draw(progress);
}

/* ---- members of the team ---- */

typedef struct member {
    struct sl_restore_team *team;
    sl_connection *connection;
    sl_context *context; /* of its namespace; NULL: none. Guarded by the team's lock */
    progress_line line;
    char name[2 * SL_NAME_ROOM]; /* of the namespace, as it is printed */
    pthread_t thread;
    bool started;
} member;

struct sl_restore_team {
    sl_restore *restore;
    sl_context *context; /* of the restore */
    restore_progress *progress;
    pthread_mutex_t lock;
    size_t next, end; /* the next namespace, and the one at which to stop; guarded by `lock` */
    bool stop;        /* no further namespace is begun; guarded by `lock` */
    size_t count;
    member members[];
};

bool sl_restore_keep_trying(void *context) {
    (void)context;
    return !sl_interrupt_requested();
}

/* ---- the context of a namespace ---- */

static void on_log(void *data, sl_log_level level, const char *text) {
    const member *m = data;
    sl_binding own = sl_context_bind(m->team->context);
    if (strncmp(text, m->name, strlen(m->name)) == 0)
        sl_log(level, SL_LINES, text);
    else
        sl_log(level, SL_LINES ": " SL_LINES, m->name, text);
    sl_context_restore(own);
}

static void on_progress(void *data, const char *json) {
    member *m = data;
    sl_binding own = sl_context_bind(m->team->context);
    progress_take(m->team->progress, &m->line, json);
    sl_context_restore(own);
}

/* Gives the thread a context for a namespace. Passes an earlier request to stop on to it. */
static bool enter(member *m, const sl_namespace *item) {
    struct sl_restore_team *team = m->team;
    char name[2 * SL_NAME_ROOM];
    sl_print_text(m->name, sizeof m->name, "%s", sl_namespace_target(item, name));
    const sl_surroundings surroundings = {
        .program = "shardload",
        .log = on_log,
        .progress = team->progress ? on_progress : NULL,
        .data = m,
    };
    sl_context *made = sl_context_create(&surroundings);
    if (!made)
        return false;
    progress_begin(team->progress, &m->line, m->name);
    pthread_mutex_lock(&team->lock);
    m->context = made;
    pthread_mutex_unlock(&team->lock);
    bool requested = sl_interrupt_requested();
    sl_context_bind(made);
    sl_log_set_level(SL_LOG_DEBUG);
    if (requested)
        sl_interrupt_request(made);
    return true;
}

static void leave(member *m) {
    struct sl_restore_team *team = m->team;
    pthread_mutex_lock(&team->lock);
    sl_context *context = m->context;
    m->context = NULL;
    pthread_mutex_unlock(&team->lock);
    sl_context_bind(team->context);
    sl_context_destroy(context);
    progress_end(team->progress, &m->line);
}

void sl_restore_interrupt(sl_restore *restore, bool at_once) {
    struct sl_restore_team *team = restore->team;
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    for (size_t i = 0; i < team->count; i++) {
        sl_context *context = team->members[i].context;
        if (context && at_once)
            sl_interrupt_request_at_once(context);
        else if (context)
            sl_interrupt_request(context);
    }
    pthread_mutex_unlock(&team->lock);
}

static void begin_status(sl_restore *restore, size_t index) {
    const sl_namespace *item = &restore->dump.items[index];
    char name[2 * SL_NAME_ROOM], folder[SL_RESTORE_DIRECTORY_ROOM + 80];
    sl_namespace_folder(restore->directory, item, folder, sizeof folder);
    sl_status_namespace(restore->status, index, sl_namespace_target(item, name), folder,
                        item->data_bytes);
}

static void end_status(sl_restore *restore, size_t index) {
    const sl_restored *outcome = &restore->outcomes[index];
    const sl_status_outcome ended = {.records = outcome->records,
                                     .documents = outcome->inserted + outcome->already_stored,
                                     .rejects = outcome->rejected,
                                     .completed = outcome->code == SL_EXIT_OK ||
                                                  outcome->code == SL_EXIT_REJECTS};
    sl_status_namespace_end(restore->status, index, &ended);
}

/* ---- the team ---- */

static bool take(struct sl_restore_team *team, size_t *index) {
    const sl_dump *dump = &team->restore->dump;
    pthread_mutex_lock(&team->lock);
    while (team->next < team->end && dump->items[team->next].left_out)
        team->next++;
    bool found = !team->stop && !sl_interrupt_requested() && team->next < team->end;
    if (found)
        *index = team->next++;
    pthread_mutex_unlock(&team->lock);
    return found;
}

static void stop(struct sl_restore_team *team) {
    pthread_mutex_lock(&team->lock);
    team->stop = true;
    pthread_mutex_unlock(&team->lock);
}

/* Restores namespaces until none is left. */
static void *work(void *context) {
    member *m = context;
    sl_restore *restore = m->team->restore;
    size_t index;
    while (take(m->team, &index)) {
        if (!enter(m, &restore->dump.items[index])) {
            restore->outcomes[index] = (sl_restored){.code = SL_EXIT_RESOURCES};
            sl_log_error("%s: out of memory", m->name);
            stop(m->team);
        } else {
            begin_status(restore, index);
            bool going = sl_restore_namespace(restore, m->connection, index);
            end_status(restore, index);
            leave(m);
            if (!going)
                stop(m->team);
        }
    }
    return NULL;
}

static bool join_team(member *m, sl_error *error) {
    const sl_load_config *load = m->team->restore->config->load;
    if (!sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, &m->connection, error))
        return false;
    sl_connection_set_retry_check(m->connection, sl_restore_keep_trying, m->team->restore);
    m->started = sl_thread_start(&m->thread, work, m) == 0;
    return m->started || sl_error_set(error, SL_EXIT_RESOURCES, "cannot start a thread");
}

/* Restores the namespaces up to `end`. If a member cannot be started, the other members do its
 * work. */
static void run_team(struct sl_restore_team *team, size_t count, size_t end) {
    sl_error error = {0};
    team->end = end;
    for (size_t i = 1; i < count; i++) {
        if (!join_team(&team->members[i], &error)) {
            sl_log_warning("%zu instead of %zu collections are restored at once: " SL_LINES, i,
                           count, error.message);
            break;
        }
    }
    work(&team->members[0]);
    for (size_t i = 1; i < count; i++) {
        if (team->members[i].started)
            pthread_join(team->members[i].thread, NULL);
        team->members[i].started = false;
        sl_connection_close(team->members[i].connection);
        team->members[i].connection = NULL;
    }
}

static struct sl_restore_team *create(sl_restore *restore, size_t count) {
    struct sl_restore_team *made = calloc(1, sizeof *made + count * sizeof made->members[0]);
    if (!made)
        return NULL;
    made->restore = restore;
    made->context = sl_context_current();
    made->progress = progress_create(restore->config->load->progress);
    made->count = count;
    pthread_mutex_init(&made->lock, NULL);
    for (size_t i = 0; i < count; i++)
        made->members[i].team = made;
    made->members[0].connection = restore->connection;
    return made;
}

bool sl_restore_all(sl_restore *restore) {
    const sl_dump *dump = &restore->dump;
    size_t collections = 0, views = 0, chosen = 0, namespaces = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < dump->count; i++) {
        views += dump->items[i].kind == SL_NAMESPACE_VIEW;
        chosen += dump->items[i].kind != SL_NAMESPACE_VIEW && !dump->items[i].left_out;
        namespaces += !dump->items[i].left_out;
        bytes += dump->items[i].left_out ? 0 : dump->items[i].data_bytes;
    }
    collections = dump->count - views;
    size_t count = restore->config->at_once < chosen ? restore->config->at_once : chosen;
    count = count > 0 ? count : 1;
    struct sl_restore_team *team = create(restore, count);
    if (!team) {
        sl_log_error("out of memory");
        return false;
    }
    sl_status_restore(restore->status, namespaces, bytes);
    restore->team = team;
    run_team(team, count, collections);
    run_team(team, 1, dump->count);
    bool all = team->next == dump->count;
    progress_destroy(team->progress);
    team->progress = NULL;
    if (!all && !sl_interrupt_requested())
        sl_log_warning("the restore stops: the remaining namespaces are not begun");
    return all;
}

void sl_restore_team_destroy(sl_restore *restore) {
    struct sl_restore_team *team = restore->team;
    if (!team)
        return;
    pthread_mutex_destroy(&team->lock);
    free(team);
}
