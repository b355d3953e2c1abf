/* SPDX-License-Identifier: Apache-2.0 */
/* Options: precedence of command line, environment and file; all errors are reported at once. */
#include "cli/commands.h"
#include "cli/query_session.h"
#include "unit.h"
#include "util/text.h"

enum { EAT = 1, DRINK = 2 };

static const sl_option_row rows[] = {
    {.name = "uri",
     SL_ROW_TEXT("URI"),
     .fallback = "mongodb://localhost/",
     SL_ROW_OF(EAT, "A", NONE),
     .help = "Where.",
     .secret = SL_CREDENTIALS},
    {.name = "threads",
     .letter = 'j',
     SL_ROW_COUNT("N", 1, 64),
     .fallback = "auto",
     .choices = "auto",
     SL_ROW_OF(EAT | DRINK, "A", NONE),
     .help = "How many."},
    {.name = "size",
     .letter = 's',
     SL_ROW_BYTES(1024, 0),
     .fallback = "1MiB",
     SL_ROW_OF(EAT, "A", NONE),
     .help = "How big."},
    {.name = "kind",
     SL_ROW_CHOICE("KIND", "red|green"),
     .fallback = "red",
     SL_ROW_OF(EAT, "B", NONE),
     .help = "Which."},
    {.name = "limit",
     SL_ROW_COUNT("N|P%", 0, 0),
     .fallback = "none",
     .choices = "none|P%",
     SL_ROW_OF(EAT, "B", NONE),
     .help = "How many."},
    {.name = "index", SL_ROW_LIST("KEY"), SL_ROW_OF(EAT, "B", NONE), .help = "Which ones."},
    {.name = "drop",
     .letter = 'd',
     SL_ROW_FLAG,
     SL_ROW_OF(EAT, "B", NONE),
     .help = "Away with it."},
    {.name = "wait", SL_ROW_TIME, SL_ROW_OF(EAT, "B", NONE), .help = "How long."},
    {.name = "password",
     .letter = 'p',
     SL_ROW_TEXT("WORD"),
     SL_ROW_OF(EAT, "B", NONE),
     .help = "Secret.",
     .secret = SL_SECRET},
    {.name = "sauce", SL_ROW_TEXT("NAME"), SL_ROW_OF(EAT, "B", DOCUMENTS), .help = "With what."},
    {.name = "glass", SL_ROW_TEXT("NAME"), SL_ROW_OF(DRINK, "B", NONE), .help = "From what."},
    {0},
};

static int nothing(const sl_options *options) {
    (void)options;
    return 0;
}

static const sl_command commands[] = {
    {"eat", EAT, "[options] DISH...", "Eat.", "Details.", true, nothing},
    {"drink", DRINK, "[options]", "Drink.", "Details.", false, nothing},
    {0},
};

static const sl_program program = {"meal", "1.0", "a meal", "MEAL", commands, rows, NULL, NULL};

static sl_error error;

static char *words[32]; /* arguments of the line that was parsed last */
static int count;

RELEASER(destroy_options, sl_options_destroy)

/* The options are destroyed after the test. */
static sl_options *parse(const char *line) {
    static char copy[1024];
    count = 0;
    snprintf(copy, sizeof copy, "meal %s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    sl_options *options = NULL;
    error = (sl_error){0};
    sl_options_result result = sl_options_parse(&program, count, words, &options, &error);
    assert_true(result == SL_OPTIONS_RUN ? options != NULL : options == NULL);
    unit_release_later(destroy_options, options);
    return options;
}

TEST(values_in_all_spellings) {
    sl_options *options =
        parse("eat -j4 --size=64k --kind green --limit 0.5% --index {a:1} --index {b:1} -d "
              "--wait 15m soup -- -fish");
    assert_non_null(options);
    assert_int_equal(sl_option_number(options, "threads"), 4);
    assert_false(sl_option_is_word(options, "threads", "auto"));
    assert_int_equal(sl_option_number(options, "size"), 65536);
    assert_string_equal(sl_option_string(options, "kind"), "green");
    assert_true(sl_option_is_percentage(options, "limit"));
    assert_int_equal(sl_option_number(options, "limit"), 50);
    assert_int_equal(sl_option_list_count(options, "index"), 2);
    assert_string_equal(sl_option_list_item(options, "index", 1), "{b:1}");
    assert_true(sl_option_flag(options, "drop"));
    assert_true(sl_option_seconds(options, "wait") == 900);
    assert_int_equal(sl_options_argument_count(options), 2);
    assert_string_equal(sl_options_argument(options, 1), "-fish");
    assert_false(sl_option_given(options, "uri"));
}

TEST(all_errors_are_reported_at_once) {
    assert_null(
        parse("eat --thread 4 -j 0 --size 12 --kind blue --glass x --limit 101% --limit 0.004% "
              "--wait soon -z --sauce a --sauce a --sauce b"));
    static const char *const parts[] = {
        "--thread: there is no such option; did you mean --threads?",
        "--threads: \"0\" is not a whole number from 1 to 64, nor one of auto",
        "--size: \"12\" is not a size of at least 1.0 kB; write it like 500000",
        "--kind: \"blue\" is not one of red|green",
        "--glass does not belong to meal eat",
        "--limit: \"101%\"",
        "--limit: \"0.004%\" is not a whole number, nor one of none|P% (at most two decimals)",
        "--wait: \"soon\" is not a time",
        "-z: there is no such option",
        "--sauce is given as \"a\" and as \"b\": it takes one value (NAME)",
    };
    assert_int_equal(error.code, SL_EXIT_USAGE);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(error.message, parts[i]))
            fail_msg("\"%s\" is not in: %s", parts[i], error.message);
    }
}

TEST(an_option_is_not_the_value_of_another_one) {
    for (const char *const *line = (const char *const[]){"eat --kind --drop", "eat --kind -d",
                                                         "eat --index --size=4k", NULL};
         *line; line++) {
        assert_null(parse(*line));
        assert_non_null(strstr(error.message, "has no value: -"));
    }
    assert_non_null(strstr(error.message, "--index has no value: --size, which follows, is an "
                                          "option. If it is the value, give --index=--size\n"));
    sl_options *options = parse("eat --index=--drop --index --glass --index -5 x");
    assert_non_null(options); /* --glass is not an option of this command */
    assert_int_equal(sl_option_list_count(options, "index"), 3);
    assert_string_equal(sl_option_list_item(options, "index", 0), "--drop");
    assert_false(sl_option_given(options, "drop"));
    options = parse("eat --password --drop x");
    assert_non_null(options);
    assert_string_equal(sl_option_string(options, "password"), "");
    assert_true(sl_option_flag(options, "drop"));
}

TEST(a_missing_value_and_a_missing_command) {
    assert_null(parse("eat --size"));
    assert_non_null(strstr(error.message, "--size needs a value (SIZE)"));
    assert_null(parse("dance"));
    assert_non_null(strstr(error.message, "there is no command \"dance\""));
    assert_null(parse(""));
    assert_non_null(strstr(error.message, "which command?"));
    assert_null(parse("drink water"));
    assert_non_null(strstr(error.message, "takes no arguments"));
}

static sl_options *parse_with_config(const char *text, const char *rest) {
    char line[400];
    const char *path = unit_path("config.yaml");
    unit_write(path, text, strlen(text));
    snprintf(line, sizeof line, "eat --config %s %s", path, rest);
    return parse(line);
}

TEST(command_line_over_environment_over_file_over_default) {
    static const char config[] =
        "threads: 2\nsize: 2MiB\nkind: green\nindex: [x, y]\nglass: tall\n";
    setenv("MEAL_SIZE", "3MiB", 1);
    setenv("MEAL_THREADS", "3", 1);
    sl_options *options = parse_with_config(config, "-j 4");
    assert_non_null(options);
    assert_int_equal(sl_option_number(options, "threads"), 4);       /* command line */
    assert_int_equal(sl_option_number(options, "size"), 3 << 20);    /* environment */
    assert_string_equal(sl_option_string(options, "kind"), "green"); /* file */
    assert_string_equal(sl_option_string(options, "uri"), "mongodb://localhost/"); /* default */
    assert_int_equal(sl_option_list_count(options, "index"), 2);
    options = parse_with_config(
        config, "--index z"); /* a list of the command line replaces that of the file */
    assert_int_equal(sl_option_list_count(options, "index"), 1);
    unsetenv("MEAL_SIZE");
    unsetenv("MEAL_THREADS");
}

TEST(errors_in_a_file_have_file_and_line) {
    assert_null(parse_with_config("threads: 2\nsiz: 5\nkind: blue\n", ""));
    assert_non_null(strstr(error.message, ":2: siz is not an option; did you mean size?"));
    assert_non_null(strstr(error.message, ":3: kind: \"blue\" is not one of red|green"));
    assert_null(parse_with_config("kind: red\nthreads: 2\nkind: green\n", "")); /* the last won */
    assert_contains(error.message, ":3:1: the key \"kind\" is given twice");
    assert_null(parse_with_config("threads: [1\n", ""));
    assert_contains(error.message, unit_path("config.yaml"));
    assert_null(parse_with_config("- threads\n", ""));
    assert_non_null(strstr(error.message, "expected a mapping"));
    assert_null(parse("eat --config /nowhere.yaml"));
    assert_non_null(strstr(error.message, "/nowhere.yaml"));
}

static void check_shown(void *context, const sl_option_row *row, const char *value,
                        sl_option_origin origin) {
    ++*(unsigned *)context;
    assert_null(value ? strstr(value, "secret") : NULL);
    if (strcmp(row->name, "uri") == 0)
        assert_string_equal(value, "mongodb://***@host/");
    if (strcmp(row->name, "threads") == 0)
        assert_int_equal(origin, SL_FROM_DEFAULT);
}

TEST(recorded_options_contain_no_secret) {
    sl_options *options = parse("eat --uri mongodb://ann:secret@host/ soup");
    unsigned seen = 0;
    sl_options_each(options, check_shown, &seen);
    assert_int_equal(seen, 10);
    assert_null(parse("eat --size secret --uri mongodb://ann:secret@host/ --kind blue"));
    assert_null(strstr(error.message, "ann:"));
}

/* Parsing wipes secrets from the arguments, which other users see in the list of processes. */
TEST(the_command_line_contains_no_secret) {
    static const char *const lines[] = {
        "eat --uri mongodb://ann:secret@host/ --password secret soup",
        "eat --uri=mongodb://ann:secret@host/ --password=secret -psecret",
        "eat -p secret --size none",           /* another option is wrong */
        "drink --password secret",             /* not an option of this command */
        "eat soup mongodb://ann:secret@host/", /* not an argument of this command */
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        sl_options *options = parse(lines[i]);
        assert_true(i < 2 ? options != NULL : options == NULL);
        if (options)
            assert_string_equal(sl_option_string(options, "password"), "secret");
        for (int k = 0; k < count; k++)
            assert_null(strstr(words[k], "secret"));
        assert_null(strstr(error.message, "secret"));
    }
}

TEST(a_password_option_may_lack_a_value) {
    sl_options *options = parse("eat soup -p");
    assert_non_null(options);
    assert_string_equal(sl_option_string(options, "password"), "");
}

/* ---- the tables of the programs ---- */

/* The options whose values are text, but never the name of a file. */
static bool is_plain_text(const char *name) {
    static const char names[] =
        "uri|username|password|authenticationDatabase|tlsCertificateKeyFilePassword|db|collection|"
        "match-fields|columns|encoding|delimiter|quote|escape|include|id-field|on|ns-include|ns-"
        "exclude|"
        "ns-from|ns-to|skew|shard-key|index|part|only-shards|sample|set|sweep|try-threads|"
        "try-batch-sizes|try-compressors|try-write-concerns|try-routes|try-wire-compression|title|"
        "read-preference|query|pipeline|limit|cold|clients|during|oplog-limit|null|types";
    return sl_list_has(names, '|', sl_text_of(name));
}

/* Whether an option names a file that is read or written must be in its row: only then is it
 * checked that no output replaces an input. */
TEST(every_option_with_a_file_says_whether_it_is_read_or_written) {
    const sl_option_row *const tables[] = {sl_load_rows, sl_query_rows};
    for (size_t i = 0; i < 2; i++) {
        for (const sl_option_row *row = tables[i]; row->name; row++) {
            bool text = row->kind == SL_OPTION_STRING || row->kind == SL_OPTION_LIST;
            if ((row->file != SL_FILE_NONE) != (text && !is_plain_text(row->name)))
                fail_msg("--%s: set .file in its row, or add it to the names above", row->name);
        }
    }
}

/* ---- options that change documents ---- */

TEST(every_option_states_whether_it_changes_documents) {
    const sl_option_row *tables[] = {sl_load_rows, sl_query_rows};
    for (size_t i = 0; i < 2; i++) {
        for (const sl_option_row *row = tables[i]; row->name; row++) {
            if (row->effect == SL_EFFECT_UNSTATED)
                fail_msg("--%s states no effect", row->name);
        }
    }
}

static const sl_option_row changing_rows[] = {
    {.name = "n", SL_ROW_COUNT("N", 0, 0), .fallback = "1k", SL_ROW_OF(EAT, "A", DOCUMENTS)},
    {.name = "size", SL_ROW_BYTES(0, 0), SL_ROW_OF(EAT, "A", DOCUMENTS)},
    {.name = "trim", SL_ROW_FLAG, SL_ROW_OF(EAT, "A", DOCUMENTS)},
    {.name = "kind", SL_ROW_TEXT("K"), .fallback = "auto", SL_ROW_OF(EAT, "A", DOCUMENTS)},
    {.name = "embed", SL_ROW_TEXT("FIELD=FILE"), SL_ROW_OF(EAT, "A", FIELD)},
    {.name = "schema", SL_ROW_TEXT("FILE"), SL_ROW_OF(EAT, "A", FILE)},
    {.name = "names", SL_ROW_LIST("P"), SL_ROW_OF(EAT, "A", DOCUMENTS)},
    {.name = "threads", SL_ROW_COUNT("N", 0, 0), SL_ROW_OF(EAT, "A", NONE)},
    {.name = "other", SL_ROW_TEXT("K"), .fallback = "x", SL_ROW_OF(DRINK, "A", DOCUMENTS)},
    {0},
};

static void append_changing(void *context, const sl_option_row *row, const char *value,
                            sl_option_origin origin) {
    char *text = context;
    assert_int_not_equal(origin, SL_FROM_DEFAULT);
    snprintf(text + strlen(text), 200 - strlen(text), "%s=%s ", row->name, value);
}

static void check_changing(const char *line, const char *expected) {
    static const sl_program changing = {"meal",   "1.0",         "a meal", "MEAL",
                                        commands, changing_rows, NULL,     NULL};
    char copy[200], text[200] = "", *arguments[16];
    int used = 0;
    sl_options *options = NULL;
    sl_error problem;
    snprintf(copy, sizeof copy, "meal eat %s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        arguments[used++] = word;
    assert_int_equal(sl_options_parse(&changing, used, arguments, &options, &problem),
                     SL_OPTIONS_RUN);
    sl_options_each_changing(options, append_changing, text);
    assert_string_equal(text, expected);
    sl_options_destroy(options);
}

TEST(options_that_change_documents_are_listed_unless_they_have_their_defaults) {
    check_changing("", "");
    check_changing("--threads 4", "");
    check_changing("--n 1000 --kind auto", "");
    check_changing("--n 2k --size 1KiB --trim --kind a", "n=2000 size=1024 trim=yes kind=a ");
    check_changing("--size 1024 --embed items=a/b.csv --schema s.yaml",
                   "size=1024 embed=items schema=s.yaml ");
    check_changing("--names a --names b", "names=a\", \"b ");
    setenv("MEAL_KIND", "b", 1);
    check_changing("", "kind=b ");
    unsetenv("MEAL_KIND");
}
