/* SPDX-License-Identifier: Apache-2.0 */
/* Every threshold of the checks of `shardload doctor`, from both sides: the figures as the servers
 * report them, and the verdict. */
#include <math.h>

#include "doctor/examine.h"
#include "unit.h"

#define GIB 1073741824.0

/* One server, and what it has replied. */
typedef struct scene {
    sl_examined_server server;
    sl_examined examined;
    sl_check_findings findings;
    char figure[400]; /* of the finding */
} scene;

/* Sets the reply to a question, in JSON. */
static void reply(scene *s, sl_question question, const char *json) {
    s->server.answers[question].ok = true;
    bson_destroy(&s->server.answers[question].reply);
    bson_copy_to(unit_json(json), &s->server.answers[question].reply);
}

static void begin(scene *s) {
    *s = (scene){.server = {.name = "h:1", .shard = "s0", .role = SL_ROLE_PRIMARY}};
    for (size_t i = 0; i < SL_QUESTIONS; i++)
        bson_init(&s->server.answers[i].reply);
    s->examined = (sl_examined){.servers = &s->server, .count = 1};
    s->findings = (sl_check_findings){.examined = &s->examined, .check = "check"};
    s->findings.spare.values = bson_new();
}

/* Runs the check of this name, and returns the verdict of its only finding. */
static sl_check_verdict end(scene *s, const char *name) {
    const sl_check *check = NULL;
    for (size_t i = 0; i < sl_check_count; i++)
        check = strcmp(sl_checks[i].name, name) == 0 ? &sl_checks[i] : check;
    assert_non_null(check);
    if (check->all)
        check->all(&s->examined, &s->findings);
    else
        check->each(&s->server, &s->findings);
    assert_int_equal(s->findings.count, 1);
    sl_check_verdict verdict = s->findings.items[0].verdict;
    snprintf(s->figure, sizeof s->figure, "%s", s->findings.items[0].figure);
    bson_destroy(s->findings.items[0].values);
    bson_destroy(s->findings.spare.values);
    free(s->findings.items);
    for (size_t i = 0; i < SL_QUESTIONS; i++)
        bson_destroy(&s->server.answers[i].reply);
    return verdict;
}

typedef struct row {
    double figure;
    sl_check_verdict verdict;
} row;

#define ROWS(...)                                                                                  \
    (const row[]) {                                                                                \
        __VA_ARGS__, {                                                                             \
            NAN, SL_CHECK_OK                                                                       \
        }                                                                                          \
    }

/* The check's verdict for a reply in which the figure of each row is inserted. */
static void each_row(const row *rows, sl_question question, const char *format, const char *check) {
    for (; !isnan(rows->figure); rows++) {
        scene s;
        char json[400];
        begin(&s);
        snprintf(json, sizeof json, format, rows->figure);
        reply(&s, question, json);
        sl_check_verdict verdict = end(&s, check);
        if (verdict != rows->verdict)
            print_message("# figure %g\n", rows->figure);
        assert_int_equal(verdict, rows->verdict);
    }
}

TEST(lag_in_seconds) {
    static const row rows[] = {{9.9, SL_CHECK_OK},
                               {10.1, SL_CHECK_WARNING},
                               {59.9, SL_CHECK_WARNING},
                               {60.1, SL_CHECK_PROBLEM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        char json[400];
        begin(&s);
        snprintf(json, sizeof json,
                 "{\"members\": [{\"name\": \"a:1\", \"stateStr\": \"PRIMARY\", \"optimeDate\": "
                 "{\"$date\": {\"$numberLong\": \"1000000000\"}}}, {\"name\": \"b:1\", "
                 "\"stateStr\": \"SECONDARY\", \"optimeDate\": {\"$date\": {\"$numberLong\": "
                 "\"%.0f\"}}}]}",
                 1e9 - 1000 * rows[i].figure);
        reply(&s, SL_ASK_REPLICAS, json);
        assert_int_equal(end(&s, "replication lag"), rows[i].verdict);
    }
}

TEST(versions_of_the_servers) {
    static const struct {
        const char *versions[3];
        sl_check_verdict verdict;
        const char *figure;
    } rows[] = {
        {{"6.0.5", "6.0.5", "6.0.5"}, SL_CHECK_OK, "6.0.5 on 3 servers"},
        {{"6.0.5", "6.0.4", "6.0.5"}, SL_CHECK_WARNING, "6.0.5 on 2 servers, 6.0.4 on 1 server"},
        {{"", "6.0.5", ""}, SL_CHECK_OK, "6.0.5 on 1 server; some do not answer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        begin(&s);
        sl_examined_server servers[3] = {s.server, s.server, s.server};
        for (size_t k = 0; k < 3; k++)
            snprintf(servers[k].version, sizeof servers[k].version, "%s", rows[i].versions[k]);
        s.examined = (sl_examined){.servers = servers, .count = 3};
        assert_int_equal(end(&s, "versions"), rows[i].verdict);
        assert_string_equal(s.figure, rows[i].figure);
    }
}

TEST(connections_left) {
    each_row(ROWS({499, SL_CHECK_WARNING}, {500, SL_CHECK_OK}), SL_ASK_STATUS,
             "{\"connections\": {\"current\": 5, \"available\": %.0f}}", "connections");
}

TEST(share_of_the_cache_that_is_dirty) {
    each_row(ROWS({49, SL_CHECK_OK}, {51, SL_CHECK_WARNING}, {199, SL_CHECK_WARNING},
                  {201, SL_CHECK_PROBLEM}),
             SL_ASK_STATUS,
             "{\"wiredTiger\": {\"cache\": {\"maximum bytes configured\": 1000, \"bytes currently "
             "in the cache\": 500, \"tracked dirty bytes in the cache\": %.0f}}}",
             "cache");
}

TEST(flow_control) {
    static const char *const replies[] = {
        "{\"flowControl\": {\"enabled\": true, \"isLagged\": false}}",
        "{\"flowControl\": {\"enabled\": true, \"isLagged\": true}}",
    };
    static const sl_check_verdict verdicts[] = {SL_CHECK_OK, SL_CHECK_WARNING};
    for (size_t i = 0; i < 2; i++) {
        scene s;
        begin(&s);
        reply(&s, SL_ASK_STATUS, replies[i]);
        assert_int_equal(end(&s, "flow control"), verdicts[i]);
    }
}

TEST(operations_of_other_clients) {
    each_row(ROWS({9, SL_CHECK_OK}, {10, SL_CHECK_WARNING}), SL_ASK_STATUS,
             "{\"globalLock\": {\"currentQueue\": {\"writers\": %.0f}}}", "operations");
    each_row(ROWS({0, SL_CHECK_OK}, {1, SL_CHECK_WARNING}), SL_ASK_STATUS,
             "{\"transactions\": {\"currentOpen\": %.0f}}", "operations");
}

TEST(share_of_the_disk_in_use) {
    each_row(ROWS({849, SL_CHECK_OK}, {851, SL_CHECK_WARNING}, {949, SL_CHECK_WARNING},
                  {951, SL_CHECK_PROBLEM}),
             SL_ASK_STORAGE, "{\"fsTotalSize\": 1000, \"fsUsedSize\": %.0f}", "disk room");
}

TEST(difference_of_clocks_in_milliseconds) {
    static const row rows[] = {{999, SL_CHECK_OK},
                               {-999, SL_CHECK_OK},
                               {1001, SL_CHECK_WARNING},
                               {-59999, SL_CHECK_WARNING},
                               {60001, SL_CHECK_PROBLEM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        begin(&s);
        s.server.clock_ms = rows[i].figure;
        assert_int_equal(end(&s, "clock"), rows[i].verdict);
    }
    /* The time of the exchange is no difference. */
    scene s;
    begin(&s);
    s.server.clock_ms = 1400;
    s.server.error_ms = 500;
    assert_int_equal(end(&s, "clock"), SL_CHECK_OK);
}

TEST(network) {
    assert_int_equal(sl_judge_latency(19.9), SL_CHECK_OK);
    assert_int_equal(sl_judge_latency(20), SL_CHECK_WARNING);
    assert_int_equal(sl_judge_bandwidth(19.9e6), SL_CHECK_WARNING);
    assert_int_equal(sl_judge_bandwidth(20e6), SL_CHECK_OK);
}

TEST(oplog) {
    const double hour = 3600, day = 24 * hour;
    const struct {
        sl_oplog oplog;
        sl_check_verdict verdict;
        const char *words;
    } rows[] = {
        /* seconds, used, size, added, seconds in the load, read by others */
        {{day - 60, GIB, GIB, NAN, NAN, true}, SL_CHECK_WARNING, "it is full"},
        {{day + 60, GIB, GIB, NAN, NAN, true}, SL_CHECK_OK, "a load shortens this time"},
        {{day - 60, 0.91 * GIB, GIB, NAN, NAN, true}, SL_CHECK_WARNING, "it is full"},
        {{60, 0.89 * GIB, GIB, NAN, NAN, true}, SL_CHECK_OK, "a load shortens this time"},
        {{60, GIB, GIB, NAN, NAN, false}, SL_CHECK_OK, "no other member reads it"},
        {{9 * day, 0, GIB, 1.01 * GIB, NAN, true}, SL_CHECK_WARNING, "the last 99 % of the load"},
        {{9 * day, 0, GIB, 0.99 * GIB, NAN, true}, SL_CHECK_OK, "it holds all of the load"},
        {{9 * day, 0, GIB, 2 * GIB, hour - 1, true}, SL_CHECK_WARNING, "must copy all data"},
        {{9 * day, 0, GIB, 2 * GIB, hour + 1, true}, SL_CHECK_OK, "at the planned rate"},
        {{9 * day, 0, GIB, 2 * GIB, hour - 1, false}, SL_CHECK_OK, "no other member"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char meaning[400];
        sl_check_verdict verdict = sl_judge_oplog(&rows[i].oplog, meaning, sizeof meaning);
        if (verdict != rows[i].verdict || !strstr(meaning, rows[i].words))
            print_message("# row %zu: %s\n", i, meaning);
        assert_int_equal(verdict, rows[i].verdict);
        assert_non_null(strstr(meaning, rows[i].words));
    }
}
