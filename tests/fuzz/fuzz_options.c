/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the options of `shardload load`. The input up to the first NUL is a configuration file;
 * then follow the arguments of the command line, separated by NULs. Parsing fails with an error
 * message, or each option has a value that its row of the option table allows. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "cli/commands.h"
#include "util/text.h"

static const sl_command commands[] = {
    {.name = "load",
     .bit = SL_COMMAND_LOAD,
     .synopsis = "[options] SOURCE...",
     .summary = "Load.",
     .details = "",
     .takes_arguments = true},
    {0},
};

static const sl_program program = {
    .name = "shardload",
    .version = "fuzz",
    .summary = "",
    .environment_prefix = "SHARDLOAD",
    .commands = commands,
    .rows = sl_load_rows,
    .epilogue = "",
};

#define WORDS_MAX 24

static void check_value(const sl_options *options, const sl_option_row *row) {
    if (row->kind == SL_OPTION_FLAG) {
        sl_option_flag(options, row->name);
    } else if (row->kind == SL_OPTION_CHOICE) {
        const char *word = sl_option_string(options, row->name);
        require(!word || sl_list_has(row->choices, '|', sl_text_of(word)),
                "a value is one of the choices");
    } else if (row->kind == SL_OPTION_SECONDS) {
        require(sl_option_seconds(options, row->name) >= 0, "a time is not negative");
    } else if (row->kind == SL_OPTION_LIST) {
        for (size_t i = 0; i < sl_option_list_count(options, row->name); i++)
            require(sl_option_list_item(options, row->name, i) != NULL, "a list item is not NULL");
    } else if (row->kind == SL_OPTION_STRING) {
        sl_option_string(options, row->name);
    } else if (row->kind == SL_OPTION_COUNT && sl_option_is_percentage(options, row->name)) {
        require(sl_option_number(options, row->name) <= 10000, "a percentage is at most 100");
    } else if (!row->choices && sl_option_given(options, row->name)) {
        uint64_t number = sl_option_number(options, row->name);
        require(number >= row->minimum && (row->maximum == 0 || number <= row->maximum),
                "a number is in its range");
    }
}

/* Reads the strings to their ends, so that the address sanitizer checks them. */
static void read_option(void *context, const sl_option_row *row, const char *value,
                        sl_option_origin origin) {
    require(!context && row->name && origin <= SL_FROM_COMMAND_LINE,
            "an option has a name and an origin");
    require(!value || strlen(value) < SIZE_MAX, "a value is NUL-terminated");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    static char *words[WORDS_MAX + 1];
    if (file < 0) {
        file = memfd_create("config", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        require(file >= 0 && freopen("/dev/null", "w", stdout), "files can be opened");
    }
    const uint8_t *cut = memchr(data, 0, size);
    size_t config = cut ? (size_t)(cut - data) : size;
    require(ftruncate(file, 0) == 0 && pwrite(file, data, config, 0) == (ssize_t)config,
            "the file can be written");

    char *line = calloc(size - config + 1, 1);
    require(line != NULL, "allocation succeeds");
    if (cut)
        memcpy(line, cut + 1, size - config - 1);
    int count = 0;
    words[count++] = "shardload";
    words[count++] = "load";
    words[count++] = "--config";
    words[count++] = path;
    for (char *at = line; at < line + (size - config) && count < WORDS_MAX; at += strlen(at) + 1)
        words[count++] = at;
    words[count] = NULL;

    sl_options *options;
    sl_error error = {0};
    switch (sl_options_parse(&program, count, words, &options, &error)) {
    case SL_OPTIONS_RUN:
        for (const sl_option_row *row = sl_load_rows; row->name; row++) {
            if (row->commands & SL_COMMAND_LOAD)
                check_value(options, row);
        }
        sl_options_each(options, read_option, NULL);
        sl_options_destroy(options);
        break;
    case SL_OPTIONS_FAILED:
        check_error(&error);
        require(error.code == SL_EXIT_USAGE, "a wrong option is an error of usage");
        break;
    case SL_OPTIONS_SHOWN:
        break;
    }
    free(line);
    return 0;
}
