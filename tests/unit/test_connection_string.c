/* SPDX-License-Identifier: Apache-2.0 */
/* The connection string that is built from --uri and other options. An error here would refuse a
 * password with a slash, or ignore an option because the URI has it, too. */
#include <pthread.h>

#include <mongoc/mongoc.h>

#include "cli/connection_string.h"
#include "cli/secrets.h"
#include "unit.h"

static const sl_option_row rows[] = {
    {.name = "uri",
     SL_ROW_TEXT("URI"),
     .fallback = "mongodb://h",
     SL_ROW_OF(1, "A", NONE),
     .help = "Where.",
     .secret = SL_CREDENTIALS},
    SL_CONNECTION_ROWS(1),
    {0},
};

static int nothing(const sl_options *options) {
    (void)options;
    return 0;
}

static const sl_command commands[] = {{"go", 1, "", "Go.", "", false, nothing}, {0}};
static const sl_program program = {"test", "1.0", "a test", "SL_TEST", commands, rows, NULL, NULL};

static sl_error error;

RELEASER(free_secret, sl_secret_free)

/* The connection string for a command line (arguments separated by blanks), or NULL. Valid until
 * the end of the test. */
static const char *string_of(const char *line) {
    char copy[1024], *words[16], *uri = NULL;
    int count = 0;
    sl_options *options;
    error = (sl_error){0};
    snprintf(copy, sizeof copy, "test go %s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    if (sl_options_parse(&program, count, words, &options, &error) == SL_OPTIONS_RUN)
        assert_true(sl_connection_string(options, &uri, &error) == (uri != NULL));
    if (uri && options && sl_option_string(options, "password") &&
        strchr(uri, '@')) /* wiped after use */
        assert_string_equal(sl_option_string(options, "password"), "*");
    sl_options_destroy(options);
    unit_release_later(free_secret, uri);
    return uri;
}

TEST(options_are_added_to_the_string) {
    static const struct {
        const char *line;
        const char *string;
    } cases[] = {
        {"", "mongodb://h/"},
        {"--uri mongodb://h:1,i:2/db?replicaSet=r", "mongodb://h:1,i:2/db?replicaSet=r"},
        {"--uri mongodb://a:b%40@h/?w=1", "mongodb://a:b%40@h/?w=1"}, /* unchanged */
        {"-u a -p b/:@%", "mongodb://a:b%2F%3A%40%25@h/"},
        {"-u CN=a,O=b --authenticationMechanism MONGODB-X509",
         "mongodb://CN%3Da%2CO%3Db@h/?authMechanism=MONGODB-X509"}, /* without a password prompt */
        {"--uri mongodb://a@h/?w=1& -p b", "mongodb://a:b@h/?w=1&"},
        {"--uri mongodb://a:old@h -p new", "mongodb://a:new@h/"},
        {"--uri mongodb://a:old@h/ -u b -p c", "mongodb://b:c@h/"}, /* user and password replaced */
        {"--uri mongodb://h?w=1 --tls", "mongodb://h/?w=1&tls=true"},
        {"--uri mongodb://h/?tls=false --tls",
         "mongodb://h/?tls=false&tls=true"}, /* the last wins */
        {"--tlsCAFile /a/b.pem", "mongodb://h/?tlsCAFile=%2Fa%2Fb.pem&tls=true"},
        {"--uri mongodb+srv://h/ --tlsCertificateKeyFile k --tlsCertificateKeyFilePassword p&",
         "mongodb+srv://h/?tlsCertificateKeyFile=k&tlsCertificateKeyFilePassword=p%26&tls=true"},
        {"-u a -p b --authenticationDatabase c --authenticationMechanism SCRAM-SHA-1",
         "mongodb://a:b@h/?authSource=c&authMechanism=SCRAM-SHA-1"},
        {"--wire-compression zstd", "mongodb://h/?compressors=zstd"},
        {"--wire-compression none", "mongodb://h/"},
        {"--uri mongodb://h?w=1 --tls --wire-compression zlib",
         "mongodb://h/?w=1&tls=true&compressors=zlib"},
        {"--uri mongodb://h/?compressors=zstd&w=1 --wire-compression zstd", /* the same value: not
                                                                               repeated */
         "mongodb://h/?compressors=zstd&w=1"},
        {"--uri nonsense -u a -p b", "nonsense"}, /* the driver refuses it later */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *uri = string_of(cases[i].line);
        assert_non_null(uri);
        assert_string_equal(uri, cases[i].string);
    }
}

TEST(a_password_needs_a_user) {
    assert_null(string_of("-p b"));
    assert_non_null(strstr(error.message, "--password without --username"));
    setenv("SL_TEST_PASSWORD", "b", 1); /* may be set for another command, so it is no error */
    assert_string_equal(string_of(""), "mongodb://h/");
    unsetenv("SL_TEST_PASSWORD");
}

TEST(conflicting_compressors_are_refused) {
    static const char *const lines[] = {
        "--uri mongodb://h/?w=1&compressors=snappy --wire-compression zstd",
        "--uri mongodb://h/?COMPRESSORS=snappy&w=1 --wire-compression none",
        "--uri mongodb://h/?compressors=snappy,zstd --wire-compression zstd"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_null(string_of(lines[i]));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        assert_contains(error.message, "--uri already has compressors=snappy");
        assert_non_null(strstr(error.message, "remove one of them"));
    }
}

/* An error here would send a password over the network in plain text. */
TEST(plain_needs_tls) {
    static const char *const refused[] = {
        "--uri mongodb://a:b@h/?authMechanism=PLAIN",
        "--uri mongodb://a:b@h/?w=1&AUTHMECHANISM=plain",
        "--uri mongodb://a:b@h/?authMechanism=%50LAIN&w=1",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=true&tls=0",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&appName=a;tls=true",
        "--uri mongodb://a@h/?authMechanism=PLAIN&tls=false -p b",
        "--uri mongodb+srv://a:b@c.example.net/?tls=false&authMechanism=PLAIN",
    };
    static const char *const accepted[] = {
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=true",
        "--uri mongodb://a:b@h/?ssl=true&authMechanism=PLAIN",
        "--uri mongodb+srv://a:b@c.example.net/?authMechanism=PLAIN",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=false --tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --tlsCAFile ca.pem",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --plain-without-tls",
        "--uri mongodb://a:b@h/?authMechanism=PLAIN --authenticationMechanism SCRAM-SHA-256",
        "--uri mongodb://a:b@h/?authMechanism=SCRAM-SHA-256",
        "--uri mongodb://a:b@h/PLAIN?appName=authMechanism=PLAINER",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_null(string_of(refused[i]));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        assert_non_null(strstr(error.message, "--plain-without-tls"));
    }
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++)
        assert_non_null(string_of(accepted[i]));
    /* Contradicting options: the driver refuses the string. */
    assert_null(
        mongoc_uri_new(string_of("--uri mongodb://a:b@h/?authMechanism=PLAIN&tls=true&ssl=false")));
}

typedef struct composing {
    sl_options *options;
    char *uri;
    bool ok;
    sl_error error;
} composing;

static void *compose(void *context) {
    composing *c = context;
    c->ok = sl_connection_string(c->options, &c->uri, &c->error);
    return NULL;
}

/* The string is composed on a stack that belongs to the test, which looks for the password there
 * afterwards. */
TEST(no_password_stays_on_the_stack) {
    enum { STACK_BYTES = 1 << 20 };
    static const char password[] = "s3cret-of-ann";
    char *words[] = {"test", "go", "-u", "ann", "-p", unit_keep(strdup(password)), NULL};
    composing c = {0};
    void *stack = unit_keep(aligned_alloc(4096, STACK_BYTES));
    pthread_attr_t attributes;
    pthread_t thread;
    memset(stack, 0, STACK_BYTES);
    assert_int_equal(sl_options_parse(&program, 6, words, &c.options, &c.error), SL_OPTIONS_RUN);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, compose, &c), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_true(c.ok);
    assert_non_null(strstr(c.uri, password));
    assert_null(memmem(stack, STACK_BYTES, password, strlen(password)));
    sl_secret_free(c.uri);
    sl_options_destroy(c.options);
}
