/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the completions for bash, zsh and fish (--completion SHELL) from the tables of commands
 * and options. */
#include <stdio.h>
#include <string.h>

#include "options_internal.h"

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
    size_t length = 0;
    while (help[length] && !(help[length] == '.' && (!help[length + 1] || help[length + 1] == ' ')))
        length++;
    print_quoted(help, length, escaped);
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
    const char *several = row->kind == SL_OPTION_LIST ? "*" : "";
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
