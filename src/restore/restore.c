/* SPDX-License-Identifier: Apache-2.0 */
/* The restore of a dump from start to end: several namespaces at the same time, their progress, the
 * tables and the record. */
#include "restore.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "ledger/ledger.h"
#include "load/status.h"
#include "report/json.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text_table.h"

#include "oplog.h"
#include "restoring.h"

/* ---- several namespaces at once ---- */

/* Restores several namespaces at the same time.
 *
 * A team of threads takes the collections in the order of their names; each thread has a connection
 * that all its loads use, one after the other. The main thread is one of them. It creates the views
 * at the end, alone, and restores roles and users.
 *
 * Each namespace is restored in its own context (util/context.h), because a load sets the log file,
 * the log level and the listeners for interrupts of its context. Its log lines are also written to
 * the restore's log, after the name of the namespace; a request to stop is passed on to the
 * contexts of all namespaces that are being restored (restore_interrupt).
 *
 * Progress: one line for all loads on a terminal, one log line per load, or JSON with the name of
 * the namespace. A hook, which runs under the log's lock, erases the line on the terminal before
 * each log line and draws it again afterwards. So nothing may be logged while `screen` is held. */

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
        text + used, room - used, "%s  %s/s",
        sl_plural((uint64_t)sl_look_amount(figures, "documents", 0), "document"),
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

/* Passes a request to stop on to the loads that run. For the restore's listener. */
static void restore_interrupt(sl_restore *restore, bool at_once) {
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
                                     .completed = sl_exit_is_complete(outcome->code)};
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
            bool loading = restore->step != SL_RESTORE_FINISH;
            if (loading)
                begin_status(restore, index);
            bool going = sl_restore_namespace(restore, m->connection, index);
            if (loading)
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
    if (!(m->connection = sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, error)))
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

/* Executes the restore's current step for all namespaces. False: not for all of them. */
static bool run_step(sl_restore *restore, sl_restore_step step, size_t count, size_t collections) {
    restore->step = step;
    restore->team->next = 0;
    run_team(restore->team, count, collections);
    run_team(restore->team, 1, restore->dump.count);
    return restore->team->next == restore->dump.count;
}

/* Replays the oplog, unless documents of the dump are missing. */
static bool replay(sl_restore *restore) {
    sl_error error = {0};
    for (size_t i = 0; i < restore->dump.count; i++) {
        sl_exit code = restore->outcomes[i].code;
        if (!sl_exit_is_complete(code)) {
            sl_log_error("the oplog is not replayed, because not all namespaces are restored");
            return false;
        }
    }
    sl_status_phase(restore->status, "oplog");
    if (sl_oplog_replay(restore, &error))
        return true;
    sl_log_error(SL_LINES, error.message);
    restore->oplog_code = error.code;
    return false;
}

/* Restores all namespaces, up to --collections-at-once at a time. False: not all were begun. */
static bool restore_at_once(sl_restore *restore) {
    const sl_dump *dump = &restore->dump;
    size_t collections = 0, chosen = 0, namespaces = 0;
    for (size_t i = 0; i < dump->count; i++) {
        bool alone = sl_restored_alone(&dump->items[i]);
        collections += !alone;
        chosen += !alone && !dump->items[i].left_out;
        namespaces += !dump->items[i].left_out;
        restore->bytes += dump->items[i].left_out ? 0 : dump->items[i].data_bytes;
    }
    size_t count = restore->config->at_once < chosen ? restore->config->at_once : chosen;
    count = count > 0 ? count : 1;
    restore->at_once = (unsigned)count;
    struct sl_restore_team *team = create(restore, count);
    if (!team) {
        sl_log_error("out of memory");
        restore->oplog_code = SL_EXIT_RESOURCES;
        return false;
    }
    sl_status_restore(restore->status, namespaces, restore->bytes);
    restore->team = team;
    bool all = restore->oplog
                   ? run_step(restore, SL_RESTORE_LOAD, count, collections) && replay(restore) &&
                         run_step(restore, SL_RESTORE_FINISH, count, collections)
                   : run_step(restore, SL_RESTORE_ALL, count, collections);
    progress_destroy(team->progress);
    team->progress = NULL;
    if (!all && !sl_interrupt_requested())
        sl_log_warning("the restore stops: the remaining namespaces are not begun");
    return all;
}

/* after the listener has ended */
static void restore_team_destroy(sl_restore *restore) {
    struct sl_restore_team *team = restore->team;
    if (!team)
        return;
    pthread_mutex_destroy(&team->lock);
    free(team);
}

/* ---- tables and record ---- */

/* What a restore prints: the dump, and the outcome of each namespace. */

/* The options of a namespace in words, such as "capped, validator". */
static const char *options_of(const sl_namespace *item, char out[400]) {
    size_t used = 0;
    bson_iter_t iter;
    out[0] = '\0';
    for (bool more = bson_iter_init(&iter, item->options); more && bson_iter_next(&iter);) {
        if (!sl_list_has("size|max|pipeline", '|', sl_text_of(bson_iter_key(&iter))))
            used += sl_print_text(out + used, 400 - used, "%s%s", used ? ", " : "",
                                  bson_iter_key(&iter));
    }
    for (bool more = bson_iter_init(&iter, item->later); more && bson_iter_next(&iter);) {
        if (strncmp(bson_iter_key(&iter), "validation", 10) != 0)
            used += sl_print_text(out + used, 400 - used, "%s%s", used ? ", " : "",
                                  bson_iter_key(&iter));
    }
    if (item->shard_key) {
        char *key = sl_document_json(item->shard_key);
        sl_print_text(out + used, 400 - used, "%ssharded by %s%s", used ? ", " : "", key ? key : "",
                      item->shard_unique ? ", unique" : "");
        bson_free(key);
    }
    return out;
}

static void print_table(sl_text_table *table) {
    sl_text_table_rule(table, NULL);
    sl_text_table_print(table, sl_output(), 0);
}

/* Prints the dump (--dry-run). */
static void restore_print_plan(const sl_restore *restore) {
    static const sl_text_column columns[] = {{"namespace", .left = true},
                                             {"kind", .left = true, .least = 11},
                                             {"data", .least = 10, .unit = SL_UNIT_BYTES},
                                             {"indexes", .unit = SL_UNIT_COUNT},
                                             {"becomes; options", .left = true},
                                             {0}};
    char name[2 * SL_NAME_ROOM], target[2 * SL_NAME_ROOM], words[400];
    sl_text_table *table = sl_text_table_create(columns);
    size_t shown = 0;
    sl_text_table_limit(table, SL_TEXT_UNLIMITED);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (item->left_out)
            continue;
        shown++;
        sl_namespace_name(item, name);
        sl_namespace_target(item, target);
        options_of(item, words);
        bool renamed = strcmp(name, target) != 0;
        sl_text_table_cell(table, "%s", name);
        sl_text_table_cell(table, "%s", sl_kinds[item->kind].name);
        sl_text_table_number(table,
                             item->data || item->data_bytes > 0 ? (double)item->data_bytes : NAN);
        sl_text_table_number(table, item->index_count);
        sl_text_table_cell(table, "%s%s%s%s", renamed ? "becomes " : "", renamed ? target : "",
                           renamed && words[0] ? "; " : "", words);
    }
    print_table(table);
    sl_print("%zu of %zu namespaces; nothing has been changed\n", shown, restore->dump.count);
}

static void add_outcome(sl_text_table *table, const char *name, const sl_restored *o,
                        double seconds, const char *note) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_number(table, (double)o->records);
    sl_text_table_number(table, (double)o->inserted);
    sl_text_table_number(table, (double)o->already_stored);
    sl_text_table_number(table, (double)o->rejected);
    sl_text_table_number(table, o->indexes);
    sl_text_table_number(table, seconds);
    sl_text_table_cell(table, "%s", note);
}

static void restore_print_outcomes(const sl_restore *restore) {
    static const sl_text_column columns[] = {
        {"namespace", .left = true},
        {"documents", .least = 14},
        {"inserted", .least = 14},
        {"already stored", .least = 14},
        {"rejected", .least = 10},
        {"indexes", .least = 7},
        {"time", .least = 9, .unit = SL_UNIT_SECONDS},
        {"", .left = true},
        {0},
    };
    sl_text_table *table = sl_text_table_create(columns);
    sl_restored sum = {.code = SL_EXIT_OK};
    char name[2 * SL_NAME_ROOM];
    sl_text_table_limit(table, SL_TEXT_UNLIMITED);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (item->left_out)
            continue;
        const char *note = !o->begun                       ? "not begun"
                           : !sl_exit_is_complete(o->code) ? "incomplete"
                           : o->earlier                    ? "earlier run"
                           : o->loaded                     ? "indexes follow the oplog"
                           : sl_restored_alone(item)       ? sl_kinds[item->kind].name
                           : o->existed                    ? "existed"
                                                           : "";
        add_outcome(table, sl_namespace_target(item, name), o,
                    o->earlier || !o->begun ? NAN : o->seconds, note);
        sum.records += o->records;
        sum.inserted += o->inserted;
        sum.already_stored += o->already_stored;
        sum.rejected += o->rejected;
        sum.indexes += o->indexes;
    }
    add_outcome(table, "total", &sum, restore->seconds, "");
    sl_print("\n");
    print_table(table);
}

/* The number of parts that were not restored for the same reason as note `index`. 0: that reason
 * has been counted for an earlier note. */
static size_t same_reason(const sl_dump *dump, size_t index) {
    size_t count = 0;
    for (size_t i = 0; i < dump->note_count; i++) {
        bool same = strcmp(dump->notes[i].why, dump->notes[index].why) == 0;
        if (same && i < index)
            return 0;
        count += same;
    }
    return count;
}

/* Prints one line: what was not restored, and why. */
static void restore_print_missing(const sl_restore *restore) {
    const sl_dump *dump = &restore->dump;
    size_t incomplete = 0, not_begun = 0;
    const char *before = "not restored: ";
    for (size_t i = 0; i < dump->count; i++) {
        const sl_restored *o = &restore->outcomes[i];
        bool failed = !sl_exit_is_complete(o->code);
        incomplete += !dump->items[i].left_out && o->begun && failed;
        not_begun += !dump->items[i].left_out && !o->begun;
    }
    const struct {
        size_t count;
        const char *what;
    } counts[] = {{incomplete, "incomplete (errors above)"}, {not_begun, "not begun"}};
    for (size_t i = 0; i < 2; i++) {
        if (counts[i].count > 0) {
            sl_print("%s%s %s", before, sl_plural(counts[i].count, "namespace"), counts[i].what);
            before = "; ";
        }
    }
    for (size_t i = 0; i < dump->note_count; i++) {
        size_t count = same_reason(dump, i);
        if (count == 0)
            continue;
        sl_print("%s", before);
        sl_print("%s (%s)", count == 1 ? dump->notes[i].what : sl_plural(count, "part"),
                 dump->notes[i].why);
        before = "; ";
    }
    if (before[0] == ';')
        sl_print("\n");
}

/* Logs which namespaces have rejects, and where these are. */
static void restore_log_rejects(const sl_restore *restore) {
    char name[2 * SL_NAME_ROOM], folder[SL_RESTORE_DIRECTORY_ROOM + 80];
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (item->left_out || o->rejected == 0)
            continue;
        sl_namespace_folder(restore->directory, item, folder, sizeof folder);
        sl_log_warning("%s: %s rejected, with the reasons in %s/" SL_WORK_REJECTS,
                       sl_namespace_target(item, name), sl_plural(o->rejected, "document"), folder);
    }
}

/* Logs the notes. */
static void restore_log_notes(const sl_restore *restore) {
    for (size_t i = 0; i < restore->dump.note_count; i++) {
        const sl_dump_note *note = &restore->dump.notes[i];
        sl_log(note->lost ? SL_LOG_WARNING : SL_LOG_INFO, "not restored: %s: %s", note->what,
               note->why);
    }
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (!item->left_out && item->conversions)
            sl_log_warning("%s.%s: converted for current servers: %s", item->database,
                           item->collection, item->conversions);
    }
}

/* Appends the outcomes and notes to a record. */
static bool restore_append(const sl_restore *restore, bson_t *record) {
    bson_t array, item;
    char name[2 * SL_NAME_ROOM];
    size_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(record, "namespaces", &array);
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *of = &restore->dump.items[i];
        const sl_restored *o = &restore->outcomes[i];
        if (of->left_out)
            continue;
        sl_record_begin_item(&array, count++, &item);
        BSON_APPEND_UTF8(&item, "dumpNamespace", sl_namespace_name(of, name));
        BSON_APPEND_UTF8(&item, "namespace", sl_namespace_target(of, name));
        BSON_APPEND_UTF8(&item, "kind", sl_kinds[of->kind].name);
        BSON_APPEND_BOOL(&item, "begun", o->begun);
        BSON_APPEND_BOOL(&item, "existed", o->existed);
        BSON_APPEND_INT64(&item, "records", (int64_t)o->records);
        BSON_APPEND_INT64(&item, "inserted", (int64_t)o->inserted);
        BSON_APPEND_INT64(&item, "alreadyStored", (int64_t)o->already_stored);
        BSON_APPEND_INT64(&item, "rejected", (int64_t)o->rejected);
        BSON_APPEND_INT32(&item, "indexes", (int32_t)o->indexes);
        BSON_APPEND_DOUBLE(&item, "seconds", o->seconds);
        BSON_APPEND_INT32(&item, "exitCode", (int32_t)o->code);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
    if (restore->oplog) {
        BSON_APPEND_DOCUMENT_BEGIN(record, "oplog", &item);
        BSON_APPEND_INT64(&item, "operations", (int64_t)restore->oplog_totals.operations);
        BSON_APPEND_INT64(&item, "replayed", (int64_t)restore->oplog_done);
        BSON_APPEND_INT64(&item, "updatesWithoutDocument", (int64_t)restore->oplog_missed);
        bson_append_document_end(record, &item);
    }
    BSON_APPEND_ARRAY_BEGIN(record, "notRestored", &array);
    for (size_t i = 0; i < restore->dump.note_count; i++) {
        const sl_dump_note *note = &restore->dump.notes[i];
        char text[400];
        sl_record_begin_item(&array, i, &item);
        sl_text_printable(sl_text_of(note->what), text, sizeof text);
        BSON_APPEND_UTF8(&item, "what", text);
        BSON_APPEND_UTF8(&item, "why", note->why);
        bson_append_document_end(&array, &item);
    }
    return bson_append_array_end(record, &array);
}

/* ---- interrupts ---- */

/* The last status of a restore that a user ends at once. */
static void stop_status(const sl_restore *restore) {
    sl_status_stop(restore->status, SL_EXIT_INTERRUPTED, "interrupted by the user", true);
}

static bool on_first_signal(void *context) {
    const sl_restore *restore = context;
    if (!restore->connection) { /* it may wait for a server */
        stop_status(restore);
        return true;
    }
    if (restore->unpacking) /* unpack_archive.c listens too */
        return false;
    sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    restore_interrupt(context, false);
    return false;
}

/* Can --resume complete the restore without a change of the dump, the options or the documents? */
static bool may_be_resumed(const sl_restore *restore) {
    size_t failed = 0, lost = 0;
    for (size_t i = 0; restore->outcomes && i < restore->dump.count; i++) {
        const sl_restored *outcome = &restore->outcomes[i];
        const bool complete = sl_exit_is_complete(outcome->code);
        failed += restore->dump.items[i].left_out ? 0 : !outcome->begun || !complete;
        lost += !complete && outcome->no_resume;
    }
    return failed == 0 || lost < failed || sl_interrupt_requested();
}

static void log_how_to_complete(const sl_restore *restore) {
    char folder[SL_WORD_ROOM(SL_WORK_DIRECTORY_ROOM)];
    if (!may_be_resumed(restore))
        sl_log_warning(
            "--resume alone cannot complete this restore: first the dump, the options or "
            "the stored documents have to change, as the messages say");
    else if (restore->directory[0] && restore->connection)
        sl_log_warning("to complete this restore, give the same command with --resume --work-dir "
                       "%s",
                       sl_shell_word(restore->directory, folder, sizeof folder));
}

static void on_second_signal(void *context) {
    restore_interrupt(context, true);
    log_how_to_complete(context);
    stop_status(context);
}

/* ---- the work directory ---- */

bool sl_restore_make_directory(sl_restore *restore, const char *name, sl_error *error) {
    const char *given = restore->config->load->work_directory;
    if (given && strlen(given) >= SL_RESTORE_DIRECTORY_ROOM) /* it will contain other ones */
        return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %d bytes",
                            SL_RESTORE_DIRECTORY_ROOM - 1);
    return sl_work_directory_make(restore->config->load, name, restore->directory, &restore->lock,
                                  error);
}

bool sl_restore_is_in_place(const sl_restore *restore) {
    return sl_dump_is_in_place(restore->config->dump, &restore->config->names);
}

/* The file `restore` marks a work directory. It is written last. */
static bool begin_or_resume(sl_restore *restore, sl_error *error) {
    char path[600];
    bool begun = access(sl_restore_file(restore->directory, SL_WORK_RESTORE, path), F_OK) == 0;
    bool resume = restore->config->load->resume;
    if (resume && !begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--resume: %s is not the work directory of a restore; leave --resume "
                            "out to start a new restore",
                            restore->directory);
    if (!resume && begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s holds the files of another restore: complete it with --resume, or "
                            "name another --work-dir",
                            restore->directory);
    if (begun)
        return sl_resume_check_options(restore->directory, restore->config->load, error) &&
               sl_restore_same_dump(restore, error);
    return sl_resume_write_options(restore->directory, restore->config->load, error) &&
           (!sl_restore_is_in_place(restore) || sl_restore_write_list(restore, error)) &&
           sl_private_file_replace(path, "", 0, error);
}

/* Nothing has been changed: the work directory becomes as it was, unless it has an archive. */
static void abandon(const sl_restore *restore, const sl_error *error) {
    char path[600];
    sl_private_folder_remove(sl_restore_file(restore->directory, SL_WORK_UNPACKED, path));
    if (restore->config->load->resume || access(path, F_OK) == 0)
        return;
    sl_status_stop(restore->status, error->code, error->message, false);
    sl_private_file_remove(sl_restore_file(restore->directory, SL_WORK_RESTORE, path));
    sl_private_file_remove(sl_restore_file(restore->directory, SL_WORK_DUMP_FILES, path));
    sl_work_directory_abandon(restore->directory, &restore->lock);
}

/* ---- the phases ---- */

/* A view reads the collection that its definition names, even if the restore renames that
 * collection. */
static void warn_of_views(const sl_restore *restore) {
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *view = &restore->dump.items[i];
        const char *on =
            view->kind == SL_NAMESPACE_VIEW ? sl_look_text(view->options, "viewOn") : NULL;
        if (view->left_out || !on)
            continue;
        for (size_t k = 0; k < restore->dump.count; k++) {
            const sl_namespace *item = &restore->dump.items[k];
            if (item->left_out || strcmp(item->collection, on) != 0 ||
                strcmp(item->database, view->database) != 0 ||
                (strcmp(item->to_collection, on) == 0 &&
                 strcmp(item->to_database, view->to_database) == 0))
                continue;
            sl_log_warning("view %s.%s reads %s.%s according to its definition, but %s.%s is "
                           "restored as %s.%s",
                           view->to_database, view->to_collection, view->to_database, on,
                           item->database, item->collection, item->to_database,
                           item->to_collection);
        }
    }
}

/* Unpacks the archive, unless an earlier run has done that. */
static bool open_archive(sl_restore *restore, sl_error *error) {
    const sl_restore_config *config = restore->config;
    char folder[600];
    bool found;
    if (config->dry_run)
        return sl_dump_open_archive(&restore->dump, config->dump, NULL, &config->names, error);
    sl_restore_file(restore->directory, SL_WORK_UNPACKED, folder);
    found = false;
    if (!sl_private_folder_make(folder, NULL, error) ||
        (!restore->verifying &&
         !sl_dump_read_list(&restore->dump, folder, &config->names, &found, error)))
        return false;
    restore->unpacking = true;
    bool ok =
        found ? sl_dump_same_archive(&restore->dump, config->dump, folder, &config->names, error)
              : sl_dump_open_archive(&restore->dump, config->dump, folder, &config->names, error) &&
                    (restore->verifying || sl_dump_write_list(&restore->dump, folder, error));
    restore->unpacking = false;
    return ok;
}

bool sl_restore_open_dump(sl_restore *restore, sl_error *error) {
    const sl_restore_config *config = restore->config;
    restore->dump.replay_oplog = config->oplog_replay;
    restore->dump.skip_other = config->load->skip_other;
    if (!(sl_restore_is_in_place(restore)
              ? sl_dump_open_in_place(&restore->dump, config->dump, &config->names, error)
              : open_archive(restore, error)))
        return false;
    if (config->oplog_replay && !sl_oplog_plan(restore, error))
        return false;
    size_t chosen = 0;
    for (size_t i = 0; i < restore->dump.count; i++)
        chosen += !restore->dump.items[i].left_out;
    if (chosen > 0 && config->shard_keys &&
        (!sl_shard_keys_parse(&restore->shard_keys, config->shard_keys,
                              sl_text_of(config->shard_keys_text), error) ||
         !sl_shard_keys_apply(&restore->shard_keys, &restore->dump, error)))
        return false;
    restore->outcomes = calloc(restore->dump.count + 1, sizeof *restore->outcomes);
    if (!restore->outcomes)
        return sl_error_memory(error, "starting");
    restore_log_notes(restore);
    warn_of_views(restore);
    if (chosen == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            restore->dump.count == 0
                                ? "%s: there is nothing to restore: no collections of users"
                                : "%s: nothing is left to restore: no namespace matches --db, "
                                  "--collection and --ns-include, or all match --ns-exclude; "
                                  "--ns-from 'OLD.*' --ns-to 'NEW.*' rename a database",
                            config->dump);
    return true;
}

/* Parts that cannot be restored are an error at the end of the restore: all other parts are
 * restored first. */
bool sl_restore_all_known(const sl_restore *restore, sl_error *error) {
    size_t lost = 0;
    for (size_t i = 0; i < restore->dump.note_count; i++)
        lost += restore->dump.notes[i].lost;
    return lost == 0 || restore->config->load->skip_other ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s of the dump %s not restored (see the warnings); --skip-other "
                        "accepts that",
                        sl_plural(lost, "part"), sl_agreeing(lost, "[is|are]"));
}

static bool connect_to_server(sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    restore->connection = sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, error);
    if (!restore->connection)
        return false;
    sl_connection_set_retry_check(restore->connection, sl_restore_keep_trying, restore);
    const sl_server *server = sl_connection_server(restore->connection);
    sl_log_detail("%s: %s, server %s", sl_connection_display_uri(restore->connection),
                  sl_deployment_name(server->deployment), server->version);
    return true;
}

/* The most serious outcome: an interrupt, then the first failure, then rejects. */
static sl_exit code_of(const sl_restore *restore) {
    sl_exit code = SL_EXIT_OK;
    for (size_t i = 0; i < restore->dump.count; i++) {
        sl_exit one = restore->outcomes[i].code;
        if (one == SL_EXIT_INTERRUPTED)
            return one;
        if (code == SL_EXIT_OK || (code == SL_EXIT_REJECTS && one != SL_EXIT_OK))
            code = one;
    }
    return code;
}

static sl_exit restore_all(sl_restore *restore) {
    int64_t start = sl_clock_ns();
    sl_status_phase(restore->status, "restore");
    bool going = restore_at_once(restore);
    restore->seconds = sl_seconds_since(start);
    sl_exit code = code_of(restore);
    if (!going && sl_exit_is_complete(code))
        code = restore->oplog_code ? restore->oplog_code : SL_EXIT_INTERRUPTED;
    return code;
}

static sl_exit write_record(const sl_restore *restore, int64_t started, sl_exit code) {
    const sl_load_config *load = restore->config->load;
    const char *paths[2] = {NULL, load->report};
    char path[600];
    bson_t record = BSON_INITIALIZER;
    sl_error error;
    sl_record_head(&record, "restore", load->program_version, started, load->options);
    restore_append(restore, &record);
    sl_record_tail(&record, code);
    paths[0] = sl_restore_file(restore->directory, SL_WORK_RESTORE_RECORD, path);
    for (int i = 0; i < 2; i++) {
        if (paths[i] && !sl_json_write_file(paths[i], &record, &error)) {
            sl_log_error(SL_LINES, error.message);
            code = sl_exit_is_complete(code) ? error.code : code;
        }
    }
    if (load->run_record)
        bson_concat(load->run_record, &record);
    bson_destroy(&record);
    return code;
}

static bool check_server(const sl_restore *restore, sl_error *error) {
    return sl_dump_fits_server(&restore->dump, sl_connection_server(restore->connection), error);
}

static bool prepare(sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    return connect_to_server(restore, error) && check_server(restore, error) &&
           sl_restore_make_directory(restore, SL_WORK_RESTORE, error) &&
           (!load->report || sl_private_file_may_replace(load->report, error)) &&
           (!load->metrics || sl_private_file_may_replace(load->metrics, error)) &&
           begin_or_resume(restore, error);
}

#define UNSHARDED_SHOWN 3u

/* Names the collections that --shard-keys does not shard. */
static void log_unsharded(const sl_restore *restore) {
    char names[UNSHARDED_SHOWN * 2 * SL_NAME_ROOM] = "";
    size_t used = 0, count = 0;
    if (sl_connection_server(restore->connection)->deployment != SL_SHARDED)
        return;
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (item->left_out || item->shard_key || item->capped || sl_restored_alone(item) ||
            strcmp(item->to_database, "admin") == 0 || sl_is_registry_name(item->to_collection) ||
            count++ >= UNSHARDED_SHOWN)
            continue;
        used += sl_print_text(names + used, sizeof names - used, "%s%s.%s", used > 0 ? ", " : "",
                              item->to_database, item->to_collection);
    }
    if (count > 0)
        sl_log_info("restored unsharded, each on one shard%s: %s%s; --shard-keys FILE shards "
                    "collections, by lines such as `DB.NAME: {key: {_id: hashed}}`",
                    restore->config->load->drop ? "" : ", unless it exists sharded", names,
                    count > UNSHARDED_SHOWN ? " ..." : "");
}

/* The work directory is locked. */
static void start_status(sl_restore *restore) {
    restore->status = sl_status_start(&(sl_status_setup){
        .command = "restore",
        .config = restore->config->load,
        .directory = restore->directory,
        .target = restore->config->dump,
        .metrics = restore->config->load->metrics,
        .resume_command = "the same command",
        .resume_directory = restore->directory,
        .limit = &restore->limit,
        .at_once = restore->config->at_once > 0 ? restore->config->at_once : 1,
    });
}

/* With --drop: can the documents that replace the collections be read? Else nothing is dropped. */
static bool check_data(const sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    char name[2 * SL_NAME_ROOM], word[SL_WORD_ROOM(sizeof name)];
    char *head = malloc(SL_AT_ONCE_BYTES);
    size_t length;
    bool whole, ok = head || sl_error_memory(error, "reading a dump");
    if (ok && load->drop && !load->skip_other && restore->dump.oplog &&
        restore->dump.oplog->damaged)
        ok = sl_error_set(
            error, SL_EXIT_SOURCE,
            "the oplog in %s is not complete (see the warnings), so --drop is refused, "
            "and nothing was changed on the server. To replay what could be read, add "
            "--skip-other, and --resume --work-dir %s",
            restore->config->dump, restore->directory);
    for (size_t i = 0; ok && load->drop && i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        if (item->left_out || sl_interrupt_requested())
            continue;
        sl_shell_word(sl_namespace_name(item, name), word, sizeof word);
        if (item->damaged && !load->skip_other)
            ok = sl_error_set(
                error, SL_EXIT_SOURCE,
                "%s: its documents in %s are not complete (see the warnings), so --drop is "
                "refused, and nothing was changed on the server. To replace it by what could be "
                "read, add --skip-other, and --resume --work-dir %s; --ns-exclude %s leaves it out "
                "(with another --work-dir)",
                name, restore->config->dump, restore->directory, word);
        else if (item->data && !item->unpacked)
            ok = sl_dump_head(item->data, head,
                              item->data_bytes > SL_AT_ONCE_BYTES ? 64 : SL_AT_ONCE_BYTES, &length,
                              &whole, error) ||
                 sl_error_prefix(error,
                                 "%s cannot be read, so --drop is refused, and nothing was changed "
                                 "on the server (--ns-exclude %s leaves it out)",
                                 name, word);
    }
    free(head);
    return ok;
}

static sl_exit run(sl_restore *restore) {
    sl_error error = {0};
    int64_t started = sl_wall_clock_ms();
    bool first = restore->config->dry_run || sl_restore_is_in_place(restore);
    /* A folder is read before the work directory is created; an archive is read later, because it
     * is unpacked into the work directory. */
    bool ok = !first || (sl_restore_open_dump(restore, &error) && check_data(restore, &error));
    if (ok && restore->config->dry_run) {
        restore_print_plan(restore);
        return sl_restore_all_known(restore, &error)
                   ? SL_EXIT_OK
                   : (sl_log_error(SL_LINES, error.message), error.code);
    }
    if (ok && !prepare(restore, &error)) {
        ok = false;
        sl_work_directory_abandon(restore->directory, &restore->lock);
    }
    if (ok)
        start_status(restore);
    ok = ok && (first || (sl_restore_open_dump(restore, &error) && check_server(restore, &error) &&
                          sl_restore_same_dump(restore, &error) &&
                          sl_restore_write_list(restore, &error) && check_data(restore, &error)));
    ok = ok && sl_restore_may_begin(restore, &error);
    if (!ok) {
        sl_log_error(SL_LINES, error.message);
        if (error.code == SL_EXIT_INTERRUPTED)
            log_how_to_complete(restore);
        else if (restore->status)
            abandon(restore, &error);
        return error.code;
    }
    log_unsharded(restore);
    sl_exit code = restore_all(restore);
    restore_print_outcomes(restore);
    restore_print_missing(restore);
    restore_log_rejects(restore);
    bool complete = sl_exit_is_complete(code);
    if (!complete)
        log_how_to_complete(restore);
    if (!sl_restore_all_known(restore, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = complete ? error.code : code;
    }
    return write_record(restore, started, code);
}

void sl_restore_clear(sl_restore *restore) {
    sl_dump_clear(&restore->dump);
    sl_shard_keys_clear(&restore->shard_keys);
    free(restore->outcomes);
    sl_work_directory_release(&restore->lock);
    sl_connection_close(restore->connection);
    restore_team_destroy(restore);
    pthread_mutex_destroy(&restore->sharding);
}

sl_exit sl_restore_run(const sl_restore_config *config) {
    sl_restore restore = {.config = config, .sharding = PTHREAD_MUTEX_INITIALIZER};
    sl_error error = {0};
    sl_exit code;
    sl_rate_limit_init(&restore.limit, config->load->rate_limit);
    if (sl_interrupt_listen(on_first_signal, on_second_signal, &restore, &error)) {
        code = run(&restore);
        sl_interrupt_stop_listening();
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    char message[600] = "";
    if (!sl_exit_is_complete(code) && sl_context_current())
        sl_context_first_error(sl_context_current(), message, sizeof message);
    sl_status_end(restore.status, code, message, may_be_resumed(&restore));
    sl_restore_clear(&restore);
    sl_rate_limit_clear(&restore.limit);
    sl_log_close_file();
    return code;
}
