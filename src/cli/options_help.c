/* SPDX-License-Identifier: Apache-2.0 */
/* Options: --help, generated from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "options_internal.h"

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
    const char *shown = sl_shown_default(row);
    snprintf(help, sizeof help, "%s%s%s%s", row->help, shown ? " (default: " : "",
             shown ? shown : "", shown ? ")" : "");
    print_wrapped(out, help, 34, 34);
}

void sl_print_command_help(const sl_program *program, const sl_command *command) {
    printf("usage: %s %s %s\n\n%s\n\n%s\n", program->name, command->name, command->synopsis,
           command->summary, command->details);
    for (const sl_option_row *row = program->rows; row->name; row++) {
        if (!(row->commands & command->bit) || !sl_begins_group(program, row, command->bit))
            continue;
        printf("\n%s:\n", row->group);
        for (const sl_option_row *one = row; one; one = sl_next_in_group(one, command->bit))
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
    if (program->epilogue)
        printf("\n%s\n", program->epilogue);
}

void sl_print_program_help(const sl_program *program) {
    printf("%s %s: %s\n\nusage: %s COMMAND [options] ...\n\nCommands:\n", program->name,
           program->version, program->summary, program->name);
    for (const sl_command *command = program->commands; command->name; command++)
        printf("  %-10s %s\n", command->name, command->summary);
    printf("\n`%s COMMAND --help` lists the options of a command.\n", program->name);
    if (program->epilogue)
        printf("\n%s\n", program->epilogue);
}
