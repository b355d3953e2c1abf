/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload restore`: its options as a configuration. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "restore/restore.h"

#include "load_setup.h"

/* Items of an option that may be repeated. */
typedef struct list {
    const char **items;
    size_t count;
} list;

static bool list_of(const sl_options *options, const char *name, list *out, sl_error *error) {
    out->count = sl_option_list_count(options, name);
    out->items = calloc(out->count + 1, sizeof *out->items);
    if (!out->items)
        return sl_option_memory(error, "reading the options");
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = sl_option_list_item(options, name, i);
    return true;
}

static void check_patterns(const char *option, const list *patterns, sl_error *error) {
    sl_error why;
    for (size_t i = 0; i < patterns->count; i++) {
        if (!sl_name_pattern_check(option, patterns->items[i], &why))
            sl_option_failed(error, "", &why);
    }
}

typedef struct lists {
    list include, exclude, from, to;
} lists;

static void set_up_names(const sl_options *options, lists *names, sl_name_options *to,
                         sl_error *error) {
    if (!list_of(options, "ns-include", &names->include, error) ||
        !list_of(options, "ns-exclude", &names->exclude, error) ||
        !list_of(options, "ns-from", &names->from, error) ||
        !list_of(options, "ns-to", &names->to, error))
        return;
    if (names->from.count != names->to.count)
        sl_option_problem(error,
                          "--ns-from is given %zu times, and --ns-to %zu times: each "
                          "--ns-from needs its --ns-to",
                          names->from.count, names->to.count);
    sl_error why;
    for (size_t i = 0; i < names->from.count && i < names->to.count; i++) {
        if (!sl_rename_check(names->from.items[i], names->to.items[i], &why))
            sl_option_failed(error, "", &why);
    }
    check_patterns("ns-include", &names->include, error);
    check_patterns("ns-exclude", &names->exclude, error);
    *to = (sl_name_options){.include = names->include.items,
                            .include_count = names->include.count,
                            .exclude = names->exclude.items,
                            .exclude_count = names->exclude.count,
                            .from = names->from.items,
                            .to = names->to.items,
                            .rename_count = names->from.count};
}

static void clear_names(lists *names) {
    free(names->include.items);
    free(names->exclude.items);
    free(names->from.items);
    free(names->to.items);
}

static void set_up_dump(const sl_options *options, sl_restore_config *config, sl_error *error) {
    size_t count = sl_options_argument_count(options);
    config->dump = sl_option_string(options, "archive");
    if (count + (config->dump != NULL) > 1)
        sl_option_problem(error, "restore takes one dump, and %zu were given",
                          count + (config->dump != NULL));
    else if (count == 1)
        config->dump = sl_options_argument(options, 0);
    else if (!config->dump)
        sl_option_problem(error, "no dump is given: name the folder or archive that mongodump "
                                 "wrote, or - for an archive in standard input");
}

int sl_command_restore(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    lists names = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    sl_restore_config config = {.load = &setup.config,
                                .shard_keys = sl_option_string(options, "shard-keys"),
                                .at_once =
                                    (unsigned)sl_option_number(options, "collections-at-once"),
                                .dry_run = sl_option_flag(options, "dry-run")};
    set_up_dump(options, &config, &error);
    set_up_names(options, &names, &config.names, &error);
    bool ok = sl_set_up_restore(&setup, options, &error);
    config.shard_keys_text = setup.shard_keys_text;
    sl_exit code = ok ? sl_restore_run(&config) : error.code;
    clear_names(&names);
    return sl_setup_end(&setup, &error, code);
}

int sl_command_verify_dump(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    lists names = {0};
    sl_setup_init(&setup, options);
    sl_restore_config config = {.load = &setup.config, .dump = sl_option_string(options, "dump")};
    if (sl_options_argument_count(options) > 0)
        sl_option_problem(&error, "--dump replaces the sources: leave the sources out");
    sl_options_refuse(options, "db|collection",
                      "does not apply to a dump, which contains the names: choose with "
                      "--ns-include, and rename with --ns-from and --ns-to",
                      &error);
    set_up_names(options, &names, &config.names, &error);
    sl_set_up_verify_dump(&setup, options, &error);
    sl_exit code = error.code;
    if (!error.code)
        code = sl_verify_dump_run(&config, sl_option_flag(options, "content"),
                                  sl_option_number(options, "max-problems"));
    clear_names(&names);
    return sl_setup_end(&setup, &error, code);
}
