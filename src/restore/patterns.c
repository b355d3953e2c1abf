/* SPDX-License-Identifier: Apache-2.0 */
#include "patterns.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/text.h"

#define WILDCARDS_MAX 16

/* A wildcard of a pattern and the text that it matches. */
typedef struct wildcard {
    sl_text name; /* of $name$; length 0: a * */
    sl_text text;
} wildcard;

typedef struct matching {
    bool named;  /* $name$ is a wildcard */
    bool failed; /* the text after a wildcard does not match, however long the wildcard is */
    wildcard found[WILDCARDS_MAX];
    size_t count;
} matching;

/* The name at `pattern`, which begins with $; length 0: there is none. */
static sl_text name_at(const char *pattern) {
    const char *end = strchr(pattern + 1, '$');
    if (!end || end == pattern + 1 || memchr(pattern + 1, '*', (size_t)(end - pattern - 1)) ||
        memchr(pattern + 1, '.', (size_t)(end - pattern - 1)))
        return (sl_text){"", 0};
    return (sl_text){pattern + 1, (size_t)(end - pattern - 1)};
}

/* Is there a wildcard at `pattern`? `*length`: its bytes. */
static bool wildcard_at(const char *pattern, bool named, sl_text *name, size_t *length) {
    *name = (sl_text){"", 0};
    *length = 1;
    if (*pattern == '*')
        return true;
    if (*pattern != '$' || !named)
        return false;
    *name = name_at(pattern);
    *length = name->length + 2;
    return name->length > 0;
}

static bool match(matching *m, const char *pattern, const char *name) {
    sl_text variable;
    size_t length;
    for (; *pattern; pattern++, name++) {
        if (wildcard_at(pattern, m->named, &variable, &length)) {
            if (m->count == WILDCARDS_MAX)
                return false;
            wildcard *here = &m->found[m->count++];
            size_t count = m->count, taken = 0;
            do {
                m->count = count;
                *here = (wildcard){variable, {name, taken}};
                if (match(m, pattern + length, name + taken))
                    return true;
            } while (!m->failed && name[taken++]);
            /* Earlier wildcards match the shortest text; if they matched more, even less text would
             * be left here. */
            m->failed = true;
            return false;
        }
        if (*pattern == '\\' && pattern[1])
            pattern++;
        if (*pattern != *name)
            return false;
    }
    return *name == '\0';
}

bool sl_name_matches(const char *pattern, const char *name) {
    matching m = {.named = false};
    return match(&m, pattern, name);
}

/* ---- renaming ---- */

/* The wildcards of a pattern, in order. False: more than WILDCARDS_MAX. */
static bool list_wildcards(const char *pattern, bool named, matching *m) {
    sl_text name;
    size_t length;
    *m = (matching){.named = named};
    for (const char *at = pattern; *at; at++) {
        if (wildcard_at(at, named, &name, &length)) {
            if (m->count == WILDCARDS_MAX)
                return false;
            m->found[m->count++].name = name;
            at += length - 1;
        } else if (*at == '\\' && at[1]) {
            at++;
        }
    }
    return true;
}

/* The n-th * of the matching, or the wildcard of this name; NULL: none. */
static const wildcard *find(const matching *m, sl_text name, size_t n) {
    for (size_t i = 0; i < m->count; i++) {
        if (!sl_text_equal(m->found[i].name, name))
            continue;
        if (name.length > 0 || n-- == 0)
            return &m->found[i];
    }
    return NULL;
}

static size_t count_stars(const matching *m) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->found[i].name.length == 0;
    return count;
}

bool sl_rename_check(const char *from, const char *to, sl_error *error) {
    matching in_from, in_to;
    if (!list_wildcards(from, true, &in_from) || !list_wildcards(to, true, &in_to))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-from %s, --ns-to %s: at most %d wildcards are possible", from, to,
                            WILDCARDS_MAX);
    if (count_stars(&in_from) != count_stars(&in_to))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-from %s has %zu *, and --ns-to %s has %zu: they must have the "
                            "same number",
                            from, count_stars(&in_from), to, count_stars(&in_to));
    for (size_t i = 0; i < in_from.count + in_to.count; i++) {
        bool of_from = i < in_from.count;
        sl_text name = (of_from ? in_from.found[i] : in_to.found[i - in_from.count]).name;
        if (name.length > 0 && !find(of_from ? &in_to : &in_from, name, 0))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--ns-from %s, --ns-to %s: $%.*s$ must be in both", from, to,
                                (int)name.length, name.bytes);
        if (of_from && name.length > 0 && find(&in_from, name, 0) != &in_from.found[i])
            return sl_error_set(error, SL_EXIT_USAGE, "--ns-from %s: $%.*s$ may occur once", from,
                                (int)name.length, name.bytes);
    }
    return true;
}

bool sl_rename(const char *from, const char *to, const char *name, char out[SL_NAME_ROOM]) {
    matching m = {.named = true};
    sl_text variable;
    size_t length, used = 0, stars = 0;
    if (!match(&m, from, name))
        return false;
    for (const char *at = to; *at; at++) {
        sl_text put = {at, 1};
        if (wildcard_at(at, true, &variable, &length)) {
            const wildcard *found = find(&m, variable, stars);
            stars += variable.length == 0;
            put = found ? found->text : (sl_text){"", 0};
            at += length - 1;
        } else if (*at == '\\' && at[1]) {
            put.bytes = ++at;
        }
        if (put.length > SL_NAME_ROOM - 1 - used)
            put.length = SL_NAME_ROOM - 1 - used;
        memcpy(out + used, put.bytes, put.length);
        used += put.length;
    }
    out[used] = '\0';
    return true;
}

bool sl_name_pattern_check(const char *option, const char *pattern, sl_error *error) {
    matching stars;
    return list_wildcards(pattern, false, &stars) ||
           sl_error_set(error, SL_EXIT_USAGE, "--%s %.300s: at most %d * are possible", option,
                        pattern, WILDCARDS_MAX);
}

/* ---- all namespaces ---- */

/* A pattern that no namespace matches may contain a typing error. */
static void warn_of_unused(const char *option, const char *const *patterns, size_t count,
                           const sl_dump *dump) {
    for (size_t i = 0; i < count; i++) {
        bool used = false;
        for (size_t k = 0; k < dump->count && !used; k++) {
            char name[2 * SL_NAME_ROOM], renamed[SL_NAME_ROOM];
            snprintf(name, sizeof name, "%s.%s", dump->items[k].database,
                     dump->items[k].collection);
            used = strcmp(option, "--ns-from") == 0 ? sl_rename(patterns[i], "", name, renamed)
                                                    : sl_name_matches(patterns[i], name);
        }
        if (!used)
            sl_log_warning("%s %.300s: no namespace that can be restored matches this pattern",
                           option, patterns[i]);
    }
}

static bool is_any(const char *const *patterns, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (sl_name_matches(patterns[i], name))
            return true;
    }
    return false;
}

static bool set_target(sl_namespace *item, const char *name, const char *target, sl_error *error) {
    const char *dot = strchr(target, '.');
    if (strlen(target) > 255)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s would become %.300s, which is longer than the 255 bytes that a "
                            "server accepts",
                            name, target);
    if (!dot || dot == target || !dot[1])
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-to: %s would become %s, which is not of the form "
                            "DATABASE.COLLECTION",
                            name, target);
    bool system = strncmp(target, "admin.", 6) == 0 || strncmp(target, "config.", 7) == 0 ||
                  strncmp(target, "local.", 6) == 0;
    if (system || strcmp(target, "shardload.balancer") == 0)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--ns-to: %s would become %s, but nothing is restored into %s", name,
                            target,
                            system ? "the databases admin, config and local"
                                   : "that collection, which holds the state of the balancer");
    item->to_database = strndup(target, (size_t)(dot - target));
    item->to_collection = strdup(dot + 1);
    return (item->to_database && item->to_collection) || sl_error_memory(error, "listing the dump");
}

static bool check_unique(const sl_dump *dump, size_t index, sl_error *error) {
    const sl_namespace *item = &dump->items[index];
    for (size_t i = 0; i < index; i++) {
        const sl_namespace *other = &dump->items[i];
        if (!other->left_out && strcmp(other->to_collection, item->to_collection) == 0 &&
            strcmp(other->to_database, item->to_database) == 0)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s.%s and %s.%s would both become %s.%s: change --ns-from and "
                                "--ns-to, or leave one of them out with --ns-exclude",
                                other->database, other->collection, item->database,
                                item->collection, item->to_database, item->to_collection);
    }
    return true;
}

bool sl_names_apply(const sl_name_options *options, sl_dump *dump, sl_error *error) {
    warn_of_unused("--ns-include", options->include, options->include_count, dump);
    warn_of_unused("--ns-exclude", options->exclude, options->exclude_count, dump);
    warn_of_unused("--ns-from", options->from, options->rename_count, dump);
    for (size_t i = 0; i < dump->count; i++) {
        sl_namespace *item = &dump->items[i];
        char name[2 * SL_NAME_ROOM], renamed[SL_NAME_ROOM];
        snprintf(name, sizeof name, "%s.%s", item->database, item->collection);
        item->left_out = (options->include_count > 0 &&
                          !is_any(options->include, options->include_count, name)) ||
                         is_any(options->exclude, options->exclude_count, name);
        const char *target = name;
        for (size_t k = 0; k < options->rename_count && target == name; k++) {
            if (sl_rename(options->from[k], options->to[k], name, renamed))
                target = renamed;
        }
        if (!item->left_out &&
            (!set_target(item, name, target, error) || !check_unique(dump, i, error)))
            return false;
    }
    return true;
}
