/* SPDX-License-Identifier: Apache-2.0 */
/* The connection string made of --uri and the options beside it. If this broke, a password with a
 * slash in it would not be accepted, or an option be lost behind one of the URI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "../../src/cli/connection_string.h"
#include "../../src/cli/secrets.h"

static const sl_option_row rows[] = {
    {"uri", 0, SL_OPTION_STRING, "URI", "mongodb://h", NULL, 0, 0, 1, "A", "Where.", SL_CREDENTIALS,
     NULL},
    SL_CONNECTION_ROWS(1),
    {0},
};

static int nothing(const sl_options *options) {
    (void)options;
    return 0;
}

static const sl_command commands[] = {{"go", 1, "", "Go.", "", false, nothing}, {0}};
static const sl_program program = {"test", "1.0", "a test", "SL_TEST", commands, rows, NULL};

/* The string for a command line whose words are separated by blanks, or NULL. */
static char *string_of(const char *line, sl_error *error) {
    char copy[1024], *words[16], *uri = NULL;
    int count = 0;
    sl_options *options;
    *error = (sl_error){0};
    snprintf(copy, sizeof copy, "test go %s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    if (sl_options_parse(&program, count, words, &options, error) == SL_OPTIONS_RUN)
        assert_true(sl_connection_string(options, &uri, error) == (uri != NULL));
    if (uri && options && sl_option_string(options, "password") && strchr(uri, '@')) /* used up */
        assert_string_equal(sl_option_string(options, "password"), "*");
    sl_options_destroy(options);
    return uri;
}

static void options_become_parts_of_the_string(void **state) {
    (void)state;
    static const struct {
        const char *line;
        const char *string;
    } cases[] = {
        {"", "mongodb://h/"},
        {"--uri mongodb://h:1,i:2/db?replicaSet=r", "mongodb://h:1,i:2/db?replicaSet=r"},
        {"--uri mongodb://a:b%40@h/?w=1", "mongodb://a:b%40@h/?w=1"}, /* left as it is */
        {"-u a -p b/:@%", "mongodb://a:b%2F%3A%40%25@h/"},
        {"-u CN=a,O=b --authenticationMechanism MONGODB-X509",
         "mongodb://CN%3Da%2CO%3Db@h/?authMechanism=MONGODB-X509"}, /* and no password is asked for */
        {"--uri mongodb://a@h/?w=1& -p b", "mongodb://a:b@h/?w=1&"},
        {"--uri mongodb://a:old@h -p new", "mongodb://a:new@h/"},
        {"--uri mongodb://a:old@h/ -u b -p c", "mongodb://b:c@h/"}, /* not b with a's password */
        {"--uri mongodb://h?w=1 --tls", "mongodb://h/?w=1&tls=true"},
        {"--uri mongodb://h/?tls=false --tls", "mongodb://h/?tls=false&tls=true"}, /* the last wins */
        {"--tlsCAFile /a/b.pem", "mongodb://h/?tlsCAFile=%2Fa%2Fb.pem&tls=true"},
        {"--uri mongodb+srv://h/ --tlsCertificateKeyFile k --tlsCertificateKeyFilePassword p&",
         "mongodb+srv://h/?tlsCertificateKeyFile=k&tlsCertificateKeyFilePassword=p%26&tls=true"},
        {"-u a -p b --authenticationDatabase c --authenticationMechanism SCRAM-SHA-1",
         "mongodb://a:b@h/?authSource=c&authMechanism=SCRAM-SHA-1"},
        {"--wire-compression zstd", "mongodb://h/?compressors=zstd"},
        {"--wire-compression none", "mongodb://h/"},
        {"--uri mongodb://h?w=1 --tls --wire-compression zlib",
         "mongodb://h/?w=1&tls=true&compressors=zlib"},
        {"--uri mongodb://h/?compressors=zstd&w=1 --wire-compression zstd", /* the same: once */
         "mongodb://h/?compressors=zstd&w=1"},
        {"--uri nonsense -u a -p b", "nonsense"}, /* for the driver to refuse */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_error error;
        char *uri = string_of(cases[i].line, &error);
        assert_non_null(uri);
        assert_string_equal(uri, cases[i].string);
        sl_secret_free(uri);
    }
}

static void a_password_needs_somebody(void **state) {
    (void)state;
    sl_error error;
    assert_null(string_of("-p b", &error));
    assert_non_null(strstr(error.message, "--password without --username"));
    setenv("SL_TEST_PASSWORD", "b", 1); /* which may be there for another command */
    char *uri = string_of("", &error);
    assert_string_equal(uri, "mongodb://h/");
    sl_secret_free(uri);
    unsetenv("SL_TEST_PASSWORD");
}

static void compression_is_said_in_one_place(void **state) {
    (void)state;
    static const char *const lines[] = {
        "--uri mongodb://h/?w=1&compressors=snappy --wire-compression zstd",
        "--uri mongodb://h/?COMPRESSORS=snappy&w=1 --wire-compression none",
        "--uri mongodb://h/?compressors=snappy,zstd --wire-compression zstd"};
    sl_error error;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_null(string_of(lines[i], &error));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        assert_non_null(strstr(error.message, "--uri already has compressors=snappy"));
        assert_non_null(strstr(error.message, "remove one of them"));
    }
}

/* If this broke, a password would cross the network for everybody to read. */
static void plain_needs_tls(void **state) {
    (void)state;
    static const char *const refused[] = {
        "--uri mongodb://a:b@h/?authMechanism=PLAIN",
        "--uri mongodb://a:b@h/?w=1&AUTHMECHANISM=plain",
        "--uri mongodb://a:b@h/?authMechanism=%50LAIN;w=1",
        "--uri mongodb://a@h/?authMechanism=PLAIN&tls=false -p b",
        "--uri mongodb+srv://a:b@h/?tls=false&authMechanism=PLAIN",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=true&ssl=false",
    };
    static const char *const taken[] = {
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=true",
        "--uri mongodb://a:b@h/?ssl=true&authMechanism=PLAIN",
        "--uri mongodb+srv://a:b@h/?authMechanism=PLAIN",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=false --tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --tlsCAFile ca.pem",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --plain-without-tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --authenticationMechanism SCRAM-SHA-256",
        "--uri mongodb://a:b@h/?authMechanism=SCRAM-SHA-256",
        "--uri mongodb://a:b@h/PLAIN?appName=authMechanism=PLAINER",
    };
    sl_error error;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_null(string_of(refused[i], &error));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        assert_non_null(strstr(error.message, "--plain-without-tls"));
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        char *uri = string_of(taken[i], &error);
        assert_non_null(uri);
        sl_secret_free(uri);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_become_parts_of_the_string),
        cmocka_unit_test(a_password_needs_somebody),
        cmocka_unit_test(plain_needs_tls),
        cmocka_unit_test(compression_is_said_in_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
