/* SPDX-License-Identifier: Apache-2.0 */
/* Options: --help, the manual page (--man) and the completions of shells, generated from the tables
 * of commands and options. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

/* ---- help and manual page ---- */

/* The default that --help and the manual show; NULL: none. 0 is the default of a count that is not
 * used unless it is given. */
static const char *shown_default(const sl_option_row *row) {
    bool shown = row->fallback && row->kind != SL_OPTION_FLAG && strcmp(row->fallback, "0") != 0;
    return shown ? row->fallback : NULL;
}

/* Which rows a page shows: those of the commands in the bit set, or only the common ones. */
typedef struct sl_rows_shown {
    unsigned commands;
    bool common;
} sl_rows_shown;

static bool shows(sl_rows_shown shown, const sl_option_row *row) {
    return (row->commands & shown.commands) && (row->common || !shown.common);
}

/* The next row of the same group. NULL: it was the last. The rows of a group need not be
 * adjacent. */
static const sl_option_row *next_in_group(const sl_option_row *row, sl_rows_shown shown) {
    const char *group = row->group;
    while ((++row)->name) {
        if (shows(shown, row) && strcmp(row->group, group) == 0)
            return row;
    }
    return NULL;
}

/* Is the row shown, and the first one of its group? */
static bool begins_group(const sl_program *program, const sl_option_row *row, sl_rows_shown shown) {
    const sl_option_row *first = program->rows;
    while (first != row && (!shows(shown, first) || strcmp(first->group, row->group) != 0))
        first++;
    return first == row && shows(shown, row);
}

/* The length of the first sentence without its full stop. */
static size_t sentence_length(const char *text) {
    const char *end = strstr(text, ". ");
    size_t length = end ? (size_t)(end - text) : strlen(text);
    return length > 0 && text[length - 1] == '.' ? length - 1 : length;
}

/* ---- --help ---- */

/* Wraps at 96 columns; `column` is the current one, and lines begin at `indent`. */
static void print_wrapped(FILE *out, const char *text, int indent, int column) {
    const int width = 96;
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)length > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += (int)length;
        text += length;
        while (*text == ' ')
            text++;
        if (*text == '\n') {
            text++;
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
    }
    fputc('\n', out);
}

/* The values that the option takes, and its default, in brackets; "" if there is neither. */
static void write_values(const sl_option_row *row, bool choices, char *out, size_t room) {
    const char *shown = shown_default(row);
    const char *words = choices && row->kind == SL_OPTION_CHOICE ? row->choices : NULL;
    snprintf(out, room, "%s%s%s%s%s%s", words || shown ? " (" : "", words ? words : "",
             words && shown ? "; " : "", shown ? "default: " : "", shown ? shown : "",
             words || shown ? ")" : "");
}

static void print_row(FILE *out, const sl_option_row *row, bool all) {
    char left[120];
    int used = row->letter ? snprintf(left, sizeof left, "  -%c, ", row->letter)
                           : snprintf(left, sizeof left, "      ");
    snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", row->name,
             row->argument ? " " : "", row->argument ? row->argument : "");
    fprintf(out, "%-34s", left);
    int column = (int)strlen(left) > 33 ? 0 : 34;
    if (column == 0)
        fprintf(out, "\n%34s", "");
    char help[1200], values[200];
    write_values(row, !all, values, sizeof values);
    int length = (int)(all ? strlen(row->help) : sentence_length(row->help));
    snprintf(help, sizeof help, "%.*s%s%s", length, row->help, values, all ? "" : ".");
    print_wrapped(out, help, 34, 34);
}

/* A command with more options than this has a short help. */
#define OPTIONS_MANY 24

void sl_print_command_help(const sl_program *program, const sl_command *command, bool all) {
    sl_rows_shown shown = {.commands = command->bit};
    unsigned rows = 0;
    for (const sl_option_row *row = program->rows; row->name; row++)
        rows += shows(shown, row);
    shown.common = !all && rows > OPTIONS_MANY;
    printf("usage: %s %s %s\n\n%s\n\n%s\n", program->name, command->name, command->synopsis,
           command->summary, command->details);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!begins_group(program, row, shown))
            continue;
        printf("\n%s:\n", row->group);
        for (const sl_option_row *one = row; one; one = next_in_group(one, shown))
            print_row(stdout, one, !shown.common);
    }
    printf("\nAll commands:\n"
           "      --config FILE               Read options from a YAML file: long names as keys.\n"
           "  -h, --help                      Show this text.\n"
           "      --version                   Show the version.\n\n");
    if (shown.common)
        printf("These are the common options. `%s %s --help all` explains all %u options.\n",
               program->name, command->name, rows);
    printf("An option can also be set by the environment variable %s_NAME: its long name in\n"
           "capital letters, with _ instead of -. The command line overrides the environment, and\n"
           "the environment overrides the file of --config.\n",
           program->environment_prefix);
    putchar('\n');
    print_wrapped(stdout, program->epilogue, 0, 0);
}

void sl_print_program_help(const sl_program *program) {
    printf("%s %s: %s\n\nusage: %s COMMAND [options] ...\n\nCommands:\n", program->name,
           program->version, program->summary, program->name);
    for (const sl_command *command = program->commands; command->name; command++)
        printf("  %-10s %s\n", command->name, command->summary);
    printf("\n`%s COMMAND --help` lists the options of a command.\n", program->name);
    putchar('\n');
    print_wrapped(stdout, program->epilogue, 0, 0);
}

/* ---- the manual page ---- */

/* Escapes text that roff must print literally. */
static void print_roff(const char *text) {
    bool line_begins = true;
    for (; *text; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            fputc(*text, stdout);
        line_begins = *text == '\n';
    }
}

static void print_titled(const char *macro, const char *text) {
    printf("%s ", macro);
    print_roff(text);
    putchar('\n');
}

/* Lists the commands that take the option, unless all do. */
static void print_commands(const sl_program *program, const sl_option_row *row) {
    unsigned all = 0;
    for (const sl_command *command = program->commands; command->name; command++)
        all |= command->bit;
    if ((row->commands & all) == all)
        return;
    const char *separator = " For ";
    for (const sl_command *command = program->commands; command->name; command++) {
        if (row->commands & command->bit) {
            printf("%s%s", separator, command->name);
            separator = ", ";
        }
    }
    printf(".");
}

static void print_manual_row(const sl_program *program, const sl_option_row *row) {
    fputs(".TP\n", stdout);
    if (row->letter)
        printf("\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", stdout);
    print_roff(row->name);
    fputs("\\fR", stdout);
    if (row->argument) {
        fputs(" \\fI", stdout);
        print_roff(row->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    print_roff(row->help);
    if (shown_default(row)) {
        fputs(" (default: ", stdout);
        print_roff(row->fallback);
        putchar(')');
    }
    print_commands(program, row);
    putchar('\n');
}

void sl_print_manual(const sl_program *program) {
    printf(".TH %s 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- ", program->name, program->name,
           program->version, program->name);
    print_roff(program->summary);
    printf("\n.SH SYNOPSIS\n");
    for (const sl_command *command = program->commands; command->name; command++) {
        printf(".B %s %s\n", program->name, command->name);
        print_roff(command->synopsis);
        fputs("\n.br\n", stdout);
    }
    fputs(".SH COMMANDS\n", stdout);
    for (const sl_command *command = program->commands; command->name; command++) {
        print_titled(".SS", command->name);
        print_roff(command->summary);
        fputs("\n.PP\n.nf\n", stdout);
        print_roff(command->details);
        fputs("\n.fi\n", stdout);
    }
    const sl_rows_shown everything = {.commands = UINT_MAX};
    fputs(".SH OPTIONS\n", stdout);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!begins_group(program, row, everything))
            continue;
        print_titled(".SS", row->group);
        for (const sl_option_row *one = row; one; one = next_in_group(one, everything))
            print_manual_row(program, one);
    }
    fputs(".SS All commands\n.TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\n"
          "Read options from a YAML file: long names as keys.\n"
          ".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\n"
          "Show the options of a command; show the version.\n"
          ".SH ENVIRONMENT\n",
          stdout);
    printf(
        "An option can also be set by the environment variable %s_NAME: its long name in\n"
        "capital letters, with _ instead of \\-. The command line overrides the environment, and\n"
        "the environment overrides the file of \\-\\-config.\n",
        program->environment_prefix);
    if (program->epilogue) {
        fputs(".SH NOTES\n", stdout);
        print_roff(program->epilogue);
        putchar('\n');
    }
}

/* ---- completions for bash, zsh and fish (--completion SHELL) ---- */

static void print_words(const char *choices) {
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* Is the value one of a few words? */
static bool has_words(const sl_option_row *row) {
    return row->choices && !strchr(row->choices, '%');
}

/* May the value name a file or a folder? */
static bool takes_file(const sl_option_row *row) {
    return row->file != SL_FILE_NONE && row->file != SL_FILE_READ_WORDS;
}

/* Prints text inside single quotes. Characters in `escaped` get a backslash. */
static void print_quoted(const char *text, size_t length, const char *escaped) {
    for (const char *end = text + length; text < end; text++) {
        if (strchr(escaped, *text))
            printf("\\%c", *text);
        else
            fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, stdout);
    }
}

static void print_sentence(const char *help, const char *escaped) {
    print_quoted(help, sentence_length(help), escaped);
}

/* ---- bash ---- */

static void print_bash(const sl_program *program) {
    printf("# Completion of %s for bash.\n"
           "_%s() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local words=\n"
           "    COMPREPLY=()\n"
           "    case $before in\n",
           program->name, program->name);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!has_words(row) && !row->argument)
            continue;
        if (row->letter)
            printf("    -%c | ", row->letter);
        printf("%s--%s) ", row->letter ? "" : "    ", row->name);
        if (has_words(row)) {
            fputs("words='", stdout);
            print_words(row->choices);
            fputs("' ;;\n", stdout);
        } else {
            fputs("return ;;\n", stdout); /* may be a file: `complete -o default` */
        }
    }
    printf("    --config) return ;;\n"
           "    %s) words='",
           program->name);
    for (const sl_command *command = program->commands; command->name; command++)
        printf("%s ", command->name);
    fputs("--help --version' ;;\n"
          "    *)\n"
          "        [[ $word == -* ]] || return\n"
          "        case ${COMP_WORDS[1]} in\n",
          stdout);
    for (const sl_command *command = program->commands; command->name; command++) {
        printf("        %s) words='", command->name);
        for (const sl_option_row *row = program->rows; row->name; row++) {
            if (row->commands & command->bit)
                printf("--%s ", row->name);
        }
        fputs("--config --help' ;;\n", stdout);
    }
    printf("        esac ;;\n"
           "    esac\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
           "}\n"
           "complete -o default -F _%s %s\n",
           program->name, program->name);
}

/* ---- zsh ---- */

/* The option of a row as an argument of _arguments: '--name=[help]:VALUE:words or files'. */
static void print_zsh_row(const sl_option_row *row) {
    const char *sign = row->argument ? "=" : "";
    const char *several = row->kind == SL_OPTION_LIST || row->joined ? "*" : "";
    if (row->letter)
        printf("            '%s(-%c --%s)'{-%c%s,--%s%s}'[", several, row->letter, row->name,
               row->letter, row->argument ? "+" : "", row->name, sign);
    else
        printf("            '%s--%s%s[", several, row->name, sign);
    print_sentence(row->help, "[]\\");
    putchar(']');
    if (row->argument) {
        putchar(':');
        print_quoted(row->argument, strlen(row->argument), ":\\");
        putchar(':');
        if (has_words(row)) {
            putchar('(');
            print_words(row->choices);
            putchar(')');
        } else if (takes_file(row)) {
            fputs("_files", stdout);
        }
    }
    fputs("'\n", stdout);
}

static void print_zsh(const sl_program *program) {
    printf("#compdef %s\n"
           "# Completion of %s for zsh.\n"
           "_%s() {\n"
           "    local -a commands options\n"
           "    commands=(\n",
           program->name, program->name, program->name);
    for (const sl_command *command = program->commands; command->name; command++) {
        printf("        '%s:", command->name);
        print_sentence(command->summary, ":\\");
        fputs("'\n", stdout);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe -t commands command commands\n"
          "        compadd -- --help --version\n"
          "        return\n"
          "    fi\n"
          "    case $words[2] in\n",
          stdout);
    for (const sl_command *command = program->commands; command->name; command++) {
        printf("    %s)\n        options=(\n", command->name);
        for (const sl_option_row *row = program->rows; row->name; row++) {
            if (row->commands & command->bit)
                print_zsh_row(row);
        }
        fputs("        )\n        ;;\n", stdout);
    }
    printf("    *) return 1 ;;\n"
           "    esac\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    _arguments : $options '--config=[Read options from a YAML file]:FILE:_files' \\\n"
           "        '--help[Show the options]' '*:source:_files'\n"
           "}\n"
           "if [[ $funcstack[1] == _%s ]]; then\n"
           "    _%s \"$@\"\n"
           "else\n"
           "    compdef _%s %s\n"
           "fi\n",
           program->name, program->name, program->name, program->name);
}

/* ---- fish ---- */

/* Begins a completion that holds for the commands whose bits are set. */
static void print_fish_condition(const sl_program *program, unsigned commands) {
    printf("complete -c %s -n '__%s_command", program->name, program->name);
    for (const sl_command *command = program->commands; command->name; command++) {
        if (commands & command->bit)
            printf(" %s", command->name);
    }
    putchar('\'');
}

static void print_fish_row(const sl_program *program, const sl_option_row *row) {
    print_fish_condition(program, row->commands);
    if (row->letter)
        printf(" -s %c", row->letter);
    printf(" -l %s", row->name);
    if (row->argument)
        fputs(takes_file(row) ? " -r -F" : " -x", stdout);
    if (has_words(row)) {
        fputs(" -a '", stdout);
        print_words(row->choices);
        putchar('\'');
    }
    fputs(" -d '", stdout);
    print_sentence(row->help, "'\\");
    fputs("'\n", stdout);
}

static void print_fish(const sl_program *program) {
    const char *name = program->name;
    unsigned all = 0;
    printf("# Completion of %s for fish.\n"
           "# Is the command one of the arguments? Without arguments: is there no command yet?\n"
           "function __%s_command\n"
           "    set -l words (commandline -opc)\n"
           "    if test (count $argv) -eq 0\n"
           "        test (count $words) -eq 1\n"
           "        return\n"
           "    end\n"
           "    test (count $words) -ge 2; and contains -- $words[2] $argv\n"
           "end\n",
           name, name);
    for (const sl_command *command = program->commands; command->name; command++) {
        all |= command->bit;
        printf("complete -c %s -n __%s_command -f -a %s -d '", name, name, command->name);
        print_sentence(command->summary, "'\\");
        fputs("'\n", stdout);
    }
    printf("complete -c %s -n __%s_command -f -l version -d 'Show the version'\n"
           "complete -c %s -l help -d 'Show the options'\n",
           name, name, name);
    print_fish_condition(program, all);
    fputs(" -l config -r -F -d 'Read options from a YAML file'\n", stdout);
    for (const sl_option_row *row = program->rows; row->name; row++)
        print_fish_row(program, row);
}

bool sl_print_completion(const sl_program *program, const char *shell) {
    static const struct {
        const char *shell;
        void (*print)(const sl_program *);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].shell) == 0) {
            shells[i].print(program);
            return true;
        }
    }
    return false;
}
