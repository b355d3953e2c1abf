/* SPDX-License-Identifier: Apache-2.0 */
/* Options: values from the words of the command line. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/print.h"
#include "util/text.h"

#include "options_internal.h"

/* Does an argument contain a connection string, or credentials without a scheme
 * (user:password@host), and is not the name of a file? Wipes a URI in it. */
static bool holds_credentials(char *word) {
    const char *colon = strchr(word, ':');
    return sl_is_connection_string(word) || sl_hide_secrets(word) ||
           (colon && strchr(colon, '@') && access(word, F_OK) != 0);
}

static void take_argument(sl_options *options, char *word) {
    if (!holds_credentials(word)) {
        options->arguments[options->argument_count++] = word;
        return;
    }
    sl_options_wipe(word, SL_CREDENTIALS);
    sl_option_problem(options->error,
                      "%s: this looks like a connection string, not like a source; give it "
                      "with --uri",
                      word);
}

/* The words that have not been read yet. */
typedef struct words {
    char **next, **end;
} words;

static void take_config(sl_options *options, char *text, words *left) {
    if (!text && left->next < left->end)
        text = *left->next++;
    free(options->config_path);
    options->config_path = text ? strdup(text) : NULL;
    if (!options->config_path)
        sl_option_problem(options->error, "--config needs a file name");
}

/* The row of "--name" or "--name=text"; `*text` is NULL without "=". SIZE_MAX, with the problem
 * added, when no option has that name. */
static size_t find_long(sl_options *options, char *word, size_t length, char **text) {
    *text = word[2 + length] == '=' ? word + 3 + length : NULL;
    size_t index = sl_options_row(options, word + 2, length);
    if (index == SIZE_MAX) {
        const char *near = sl_options_nearest(options->program, word + 2, length);
        char shown[SL_NAME_ROOM];
        sl_option_problem(options->error, "%s: there is no such option%s%s%s",
                          sl_options_shown_name(word, length + 2, shown),
                          near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
    }
    return index;
}

/* The same for "-c", "-ctext" and "-c=text". */
static size_t find_short(sl_options *options, char *word, char **text) {
    size_t index = SIZE_MAX;
    *text = word[2] ? word + 2 + (word[2] == '=') : NULL;
    for (size_t k = 0; k < options->rows; k++) {
        if (options->program->rows[k].letter == word[1])
            index = k;
    }
    if (index == SIZE_MAX)
        sl_option_problem(options->error, "-%c: there is no such option", word[1]);
    return index;
}

/* Reports an option of another command. Its value is skipped too, so that it is not read as a
 * source. */
static void refuse(sl_options *options, const sl_option_row *row, char *text, words *left) {
    sl_option_problem(options->error, "--%s does not belong to %s %s", row->name,
                      options->program->name, options->command->name);
    if (row->kind != SL_OPTION_FLAG && !text && left->next < left->end)
        text = *left->next++;
    if (text)
        sl_options_wipe(text, row->secret);
}

/* Reads an option and its value. False when there is no value to store. */
static bool take_option(sl_options *options, char *word, words *left, sl_option_word *out) {
    char *text;
    size_t index;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        if (length == 6 && memcmp(word + 2, "config", 6) == 0) {
            take_config(options, word[8] == '=' ? word + 9 : NULL, left);
            return false;
        }
        index = find_long(options, word, length, &text);
    } else {
        index = find_short(options, word, &text);
    }
    if (index == SIZE_MAX)
        return false;
    const sl_option_row *row = &options->program->rows[index];
    if (!sl_options_applies(options, index)) {
        refuse(options, row, text, left);
        return false;
    }
    if (!text && row->kind == SL_OPTION_FLAG)
        text = "true";
    else if (!text && left->next < left->end)
        text = *left->next++;
    else if (!text && row->secret == SL_SECRET)
        text = "";
    if (!text)
        return sl_option_problem(options->error, "--%s needs a value (%s)", row->name,
                                 row->argument);
    *out = (sl_option_word){index, strdup(text)};
    if (!out->text)
        return sl_option_memory(options->error, "reading options");
    if (*text && row->kind != SL_OPTION_FLAG)
        sl_options_wipe(text, row->secret);
    return true;
}

size_t sl_options_read_words(sl_options *options, int count, char **all, sl_option_word *out) {
    words left = {all + (count < 2 ? count : 2), all + count};
    bool only_arguments = false;
    size_t found = 0;
    while (left.next < left.end) {
        char *word = *left.next++;
        if (only_arguments || word[0] != '-' || word[1] == '\0')
            take_argument(options, word);
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else if (take_option(options, word, &left, &out[found]))
            found++;
    }
    return found;
}

void sl_options_store_words(sl_options *options, const sl_option_word *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const sl_option_row *row = &options->program->rows[values[i].row];
        char where[160];
        snprintf(where, sizeof where, "--%s", row->name);
        sl_options_store(options, values[i].row, values[i].text, FROM_COMMAND_LINE, where);
        sl_secret_free(values[i].text);
    }
}

/* ---- the words of another process of the program ---- */

bool sl_options_words_to_environment(const sl_program *program, const char **list, size_t *count) {
    sl_error ignored = {0}; /* the other process reports wrong options */
    sl_options options = {.program = program, .error = &ignored};
    size_t kept = 0, i = 0;
    bool ok = true;
    while (program->rows[options.rows].name)
        options.rows++;
    for (; ok && i < *count && strcmp(list[i], "--") != 0; i++) {
        char *word = (char *)(uintptr_t)list[i], *text = NULL, name[SL_VARIABLE_ROOM];
        size_t index = SIZE_MAX;
        if (word[0] == '-' && word[1])
            index = word[1] == '-' ? find_long(&options, word, strcspn(word + 2, "="), &text)
                                   : find_short(&options, word, &text);
        const sl_option_row *row = index == SIZE_MAX ? NULL : &program->rows[index];
        const char *next =
            row && row->kind != SL_OPTION_FLAG && !text && i + 1 < *count ? list[++i] : NULL;
        const char *value = text ? text : next;
        if (row && (row->secret == SL_CREDENTIALS || row->secret == SL_SECRET) && value && *value) {
            ok = setenv(sl_options_variable(program, index, name), value, 1) == 0;
            continue;
        }
        list[kept++] = word;
        if (next)
            list[kept++] = next;
    }
    for (; i < *count; i++)
        list[kept++] = list[i];
    *count = kept;
    return ok;
}
