/* SPDX-License-Identifier: Apache-2.0 */
/* Options: the manual page (--man), generated from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "options_internal.h"

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
    if (sl_shown_default(row)) {
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
        if (!sl_begins_group(program, row, UINT_MAX))
            continue;
        print_titled(".SS", row->group);
        for (const sl_option_row *one = row; one; one = sl_next_in_group(one, UINT_MAX))
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
