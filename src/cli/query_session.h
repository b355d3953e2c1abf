/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of measuring of `shardquery run` share: suites, connection, report. */
#ifndef SHARDLOAD_CLI_QUERY_SESSION_H
#define SHARDLOAD_CLI_QUERY_SESSION_H

#include <stdatomic.h>

#include <shardload/options.h>
#include <shardload/query.h>

#define SL_STEPS_MAX 64 /* numbers in a list such as --clients 8,16,32 */

typedef struct sl_query_session {
    const sl_options *options;
    sl_suite **suites;
    size_t suite_count;
    bson_t *answers_file; /* NULL without --answers */
    char *uri;            /* a secret: sl_secret_free */
    sl_connection *connection;
    bson_t *queries;      /* of the report */
    int64_t started;      /* sl_wall_clock_ms */
    bool wrong;           /* an answer was */
    bool failed;          /* a query or an operation did */
} sl_query_session;

/* Set by Ctrl-C and SIGTERM: no further run is begun. A second one ends the program at once. */
extern _Atomic bool sl_query_stop;
void sl_query_listen(void);

/* Prints the error and returns its exit code. */
int sl_query_fail(sl_error *error);

/* Reads and checks everything that can be checked without a server. */
bool sl_query_session_open(sl_query_session *session, sl_error *error);
/* Connects with room for `clients` clients. */
bool sl_query_session_connect(sl_query_session *session, unsigned clients, sl_error *error);
void sl_query_session_close(sl_query_session *session);

/* Is this query among those that --query names, or are none named? */
bool sl_query_selected(const sl_options *options, const sl_query *query);
/* --db and --collection, or what the suite says. */
const char *sl_query_database(const sl_query_session *session, const sl_suite *suite);
const char *sl_query_collection(const sl_query_session *session, const sl_suite *suite);
/* The answer that a query must give, from the file first, then from the suite. The array lives as
 * long as they do. */
bool sl_query_expected(const sl_query_session *session, const sl_query *query, bson_t *array);
/* The collection's documents; `*documents` 0 when they are not known. False when there is no such
 * collection, or no server. */
bool sl_query_count(const sl_query_session *session, const sl_suite *suite, uint64_t *documents,
                    sl_error *error);

/* A list of numbers, "8,16,32", of an option that has been checked. Returns how many. */
size_t sl_query_numbers(const sl_options *options, const char *option,
                        uint64_t numbers[SL_STEPS_MAX]);
bool sl_query_check_numbers(const char *text, char *problem, size_t room);

/* Writes the report so far, and at the end the page and the table of figures. */
bool sl_query_write_report(const sl_query_session *session, bool complete, sl_error *error);

/* The ways of measuring, for one suite. False when the run has to end. */
bool sl_query_repeat_suite(sl_query_session *session, const sl_suite *suite, sl_error *error);
bool sl_query_load_suite(sl_query_session *session, sl_suite *suite, sl_error *error);
/* Is the run one of clients at the same time (--clients or --rate)? */
bool sl_query_is_load(const sl_options *options);

/* Commands with a file of their own. */
int sl_query_compare(const sl_options *options);

#endif
