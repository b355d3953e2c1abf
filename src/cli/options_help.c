/* SPDX-License-Identifier: Apache-2.0 */
/* Options: --help and the manual page (--man), generated from the tables of commands and
 * options. */
#include <stdio.h>
#include <string.h>

#include "options_internal.h"

/* The default that --help and the manual show; NULL: none. 0 is the default of a count that is not
 * used unless it is given. */
static const char *shown_default(const sl_option_row *row) {
    bool shown = row->fallback && row->kind != SL_OPTION_FLAG && strcmp(row->fallback, "0") != 0;
    return shown ? row->fallback : NULL;
}

/* The next row of the same group, among those of the commands in the bit set. NULL: it was the
 * last. The rows of a group need not be adjacent. */
static const sl_option_row *next_in_group(const sl_option_row *row, unsigned commands) {
    const char *group = row->group;
    while ((++row)->name) {
        if (row->commands & commands && strcmp(row->group, group) == 0)
            return row;
    }
    return NULL;
}

/* Is the row the first one of its group, among those of the commands in the bit set? */
static bool begins_group(const sl_program *program, const sl_option_row *row, unsigned commands) {
    const sl_option_row *first = program->rows;
    while (!(first->commands & commands) || strcmp(first->group, row->group) != 0)
        first++;
    return first == row;
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

static void print_row(FILE *out, const sl_option_row *row) {
    char left[120];
    int used = row->letter ? snprintf(left, sizeof left, "  -%c, ", row->letter)
                           : snprintf(left, sizeof left, "      ");
    snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", row->name,
             row->argument ? " " : "", row->argument ? row->argument : "");
    fprintf(out, "%-34s", left);
    int column = (int)strlen(left) > 33 ? 0 : 34;
    if (column == 0)
        fprintf(out, "\n%34s", "");
    char help[1200];
    const char *shown = shown_default(row);
    snprintf(help, sizeof help, "%s%s%s%s", row->help, shown ? " (default: " : "",
             shown ? shown : "", shown ? ")" : "");
    print_wrapped(out, help, 34, 34);
}

void sl_print_command_help(const sl_program *program, const sl_command *command) {
    printf("usage: %s %s %s\n\n%s\n\n%s\n", program->name, command->name, command->synopsis,
           command->summary, command->details);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!(row->commands & command->bit) || !begins_group(program, row, command->bit))
            continue;
        printf("\n%s:\n", row->group);
        for (const sl_option_row *one = row; one; one = next_in_group(one, command->bit))
            print_row(stdout, one);
    }
    printf("\nAll commands:\n"
           "      --config FILE               Read options from a YAML file: long names as keys.\n"
           "  -h, --help                      Show this text.\n"
           "      --version                   Show the version.\n\n"
           "An option can also be set by the environment variable %s_NAME: its long name in\n"
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
    fputs(".SH OPTIONS\n", stdout);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!begins_group(program, row, UINT_MAX))
            continue;
        print_titled(".SS", row->group);
        for (const sl_option_row *one = row; one; one = next_in_group(one, UINT_MAX))
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
