/* SPDX-License-Identifier: Apache-2.0 */
/* A session of `shardquery run`: suites, connection and report, for repeated runs and for
 * measurements under load. */
#ifndef SHARDLOAD_CLI_QUERY_SESSION_H
#define SHARDLOAD_CLI_QUERY_SESSION_H

#include <stdatomic.h>

#include "options.h"
#include "query/query.h"

/* The option table of shardquery, and the commands' bits in
 * sl_option_row.commands. */
enum { SL_QUERY_RUN = 1, SL_QUERY_COMPARE = 2, SL_QUERY_LIST = 4 };
extern const sl_option_row sl_query_rows[];

#define SL_STEPS_MAX 64 /* numbers in a list such as --clients 8,16,32 */

typedef struct sl_query_session {
    const sl_options *options;
    sl_suite **suites;
    size_t suite_count;
    bson_t *answers_file; /* NULL without --answers */
    char *uri;            /* a secret: sl_secret_free */
    sl_connection *connection;
    bson_t *queries; /* the results so far, an array of the report */
    int64_t started; /* sl_wall_clock_ms */
    bool wrong;      /* an answer was wrong */
    bool failed;     /* a query or an operation failed */
    _Atomic bool stop;
} sl_query_session;

/* shardquery.c: lets the first SIGINT (Ctrl-C) or SIGTERM set `stop`; the second ends the
 * program. */
void sl_query_listen(_Atomic bool *stop);

/* `shardquery run`; returns the exit code. `listen` (or NULL) arranges that a signal sets `stop`,
 * which an interrupt of the context also does; then no further run is started. `report`, if it is
 * not NULL, receives the JSON report. */
int sl_query_command(const sl_options *options, void (*listen)(_Atomic bool *stop), bson_t *report);

/* Logs the error and returns its exit code. */
int sl_query_fail(sl_error *error);

/* Opens the suites and the answers, and checks everything that needs no server. */
bool sl_query_session_open(sl_query_session *session, sl_error *error);
/* Connects with room for `clients` clients. */
bool sl_query_session_connect(sl_query_session *session, unsigned clients, sl_error *error);
void sl_query_session_close(sl_query_session *session);

/* Is the query named by --query, or is --query not given? */
bool sl_query_selected(const sl_options *options, const sl_query *query);
/* --db and --collection, or else the suite's. */
const char *sl_query_database(const sl_query_session *session, const sl_suite *suite);
const char *sl_query_collection(const sl_query_session *session, const sl_suite *suite);
/* The expected answer of a query, from the answers file, or else from the suite. False without
 * either. The array lives as long as the session. */
bool sl_query_expected(const sl_query_session *session, const sl_query *query, bson_t *array);
/* The number of documents in the collection; 0 when it cannot be counted, as for a view. False when
 * the collection does not exist. */
bool sl_query_count(const sl_query_session *session, const sl_suite *suite, uint64_t *documents,
                    sl_error *error);

/* Prints the beginning of a suite's first line: its name, the collection, `documents` ("?" for 0)
 * and the server. */
void sl_query_print_heading(const sl_query_session *session, const sl_suite *suite,
                            uint64_t documents);

/* Parses the list of numbers ("8,16,32") of an option that has been checked. Returns their
 * number. */
size_t sl_query_numbers(const sl_options *options, const char *option,
                        uint64_t numbers[SL_STEPS_MAX]);

/* Makes the report of the results so far. */
bool sl_query_make_report(const sl_query_session *session, bool complete, bson_t *report);
/* Writes --report with the results so far. With `complete`, also writes --html and --csv; otherwise
 * only checks that these files can be written. */
bool sl_query_write_report(const sl_query_session *session, bool complete, sl_error *error);

/* Writes the figures in `queries`, an array of that name in a report, as CSV (RFC 4180): a header
 * line, then one line per query and measurement. Replaces the file as sl_private_file_replace does;
 * false with the error set. */
bool sl_query_csv_write(const bson_t *queries, const char *path, sl_error *error);

/* Is this a measurement under load (--clients or --rate)? */
bool sl_query_is_load(const sl_options *options);

/* The command `compare`; returns the exit code. */
int sl_query_compare(const sl_options *options);

#endif
