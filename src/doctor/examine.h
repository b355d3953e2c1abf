/* SPDX-License-Identifier: Apache-2.0 */
/* What `shardload doctor` has read from a target, for the checks; and what a check finds.
 *
 * Figures that several checks need are read once, from all servers at the same time. Then the
 * checks run one after the other, and few of them send further commands. */
#ifndef SHARDLOAD_EXAMINE_H
#define SHARDLOAD_EXAMINE_H

#include "cluster/cluster.h"
#include "cluster/member.h"
#include "doctor.h"
#include "job/preview.h"

typedef enum sl_server_role {
    SL_ROLE_NONE, /* it does not answer, or is not ready */
    SL_ROLE_ROUTER,
    SL_ROLE_PRIMARY, /* also a standalone mongod: it accepts writes */
    SL_ROLE_SECONDARY,
    SL_ROLE_ARBITER,
    SL_ROLES,
} sl_server_role;

/* A reply that a check needs. */
typedef struct sl_server_answer {
    bson_t reply;
    bool ok;
    int32_t code;  /* of the server's error; 0: none */
    char why[400]; /* if not ok: "needs the privilege serverStatus ..." or the error */
} sl_server_answer;

#define SL_ASK_TIMES 10 /* times --timeout: afterwards no other server or name is asked for */

/* What is asked of each server. */
typedef enum sl_question {
    SL_ASK_HELLO,
    SL_ASK_STATUS,        /* serverStatus */
    SL_ASK_REPLICAS,      /* replSetGetStatus; of members of a replica set */
    SL_ASK_STORAGE,       /* dbStats with the disk's size; not of routers and arbiters */
    SL_ASK_OPERATIONS,    /* currentOp: long operations, and whether writes are locked */
    SL_ASK_COMPATIBILITY, /* getParameter featureCompatibilityVersion; of primaries */
    SL_ASK_OPLOG,         /* collStats; of primaries of replica sets */
    SL_QUESTIONS,
} sl_question;

typedef struct sl_examined_server {
    char name[SL_MEMBER_NAME_ROOM];
    char shard[64]; /* "" for a router; without shards "standalone" or the name of the replica
                       set */
    sl_server_role role;
    sl_member *member;
    char not_opened[400]; /* why `member` is NULL */
    sl_server_answer answers[SL_QUESTIONS];
    char version[32];
    double clock_ms; /* the server's clock minus that of this machine; NAN if unknown */
    double error_ms; /* of the above: half the time of the exchange */
} sl_examined_server;

typedef struct sl_examined {
    const sl_doctor_config *config;
    int64_t started; /* milliseconds since 1970 */
    sl_connection *connection;
    const sl_server *server;
    sl_topology *topology; /* NULL: could not be read */
    sl_error topology_why;
    sl_examined_server *servers; /* routers first, then by shard */
    size_t count, room;
    _Atomic uint64_t kept; /* bytes of the answers of all servers */
    sl_preview *preview;   /* of the sources; NULL without sources */
} sl_examined;

/* Connects, finds the servers and asks them. */
bool sl_examine(const sl_doctor_config *config, sl_examined *examined, sl_error *error);
void sl_examined_clear(sl_examined *examined);

/* The server that receives commands about the complete cluster: a router, or the primary; NULL if
 * none answers. */
sl_examined_server *sl_examined_front(const sl_examined *examined);

/* Runs a command of a check on a server, and destroys the command. `answer` is initialised; clear
 * it with bson_destroy of its reply. */
void sl_ask(const sl_examined_server *server, const char *database, bson_t *command,
            sl_server_answer *answer);

/* ---- findings ---- */

typedef enum sl_check_verdict {
    SL_CHECK_OK,
    SL_CHECK_WARNING,
    SL_CHECK_PROBLEM,
    SL_CHECK_UNKNOWN,
    SL_CHECK_VERDICTS,
} sl_check_verdict;

typedef struct sl_check_finding {
    const char *check; /* the name of its row */
    sl_check_verdict verdict;
    char figure[400];
    char meaning[400]; /* for the load */
    bson_t *values;    /* the figures as numbers, for --json. Owned */
} sl_check_finding;

typedef struct sl_check_findings {
    const sl_examined *examined;
    sl_check_finding *items;
    size_t count, room;
    const char *check;      /* the row that runs */
    bool failed;            /* without memory: findings are missing */
    sl_check_finding spare; /* returned instead of a finding that is not stored */
} sl_check_findings;

/* Adds a finding of the row that runs, with the text of `figure` and a meaning. Returns it, so that
 * the caller can append values; without memory it returns a finding that is not stored. */
sl_check_finding *sl_find(sl_check_findings *findings, sl_check_verdict verdict,
                          const char *meaning, const char *figure, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds the finding that the figures of the check are not known, because of `why`. */
void sl_find_unknown(sl_check_findings *findings, const char *why, const char *meaning);

/* ---- verdicts of figures that a check measures itself ---- */

/* The oplog of one primary. NAN: not known. */
typedef struct sl_oplog {
    double seconds;         /* from its first to its last entry */
    double used, size;      /* bytes */
    double added;           /* by the load: bytes of BSON, of this shard */
    double seconds_in_load; /* that it holds while the load runs at the planned rate */
    bool read_by_others;    /* the shard has other members with data */
} sl_oplog;

/* The verdict, and what the oplog means for the load in words. */
sl_check_verdict sl_judge_oplog(const sl_oplog *oplog, char *meaning, size_t room);
sl_check_verdict sl_judge_latency(double median_ms);
sl_check_verdict sl_judge_bandwidth(double bytes_per_second);

/* ---- checks.c: the table of checks ---- */

/* The servers for each of which a check runs. */
typedef enum sl_check_servers {
    SL_CHECK_FRONT,      /* sl_examined_front */
    SL_CHECK_ROUTER,     /* the same, of a sharded cluster */
    SL_CHECK_PRIMARIES,  /* of the shards */
    SL_CHECK_REPLICATED, /* likewise, if they have a replica set */
} sl_check_servers;

/* A check of the complete target, and a check of one server: they add their findings. */
typedef void sl_check_all(const sl_examined *examined, sl_check_findings *findings);
typedef void sl_check_each(const sl_examined_server *server, sl_check_findings *findings);

typedef struct sl_check {
    const char *name;
    sl_check_all *all;   /* runs once; or */
    sl_check_each *each; /* runs for these: */
    sl_check_servers servers;
    sl_question question; /* with `without`: that must have been answered; */
    const char *without;  /* the meaning for the load if it has not been */
} sl_check;

extern const sl_check sl_checks[];
extern const size_t sl_check_count;

#endif
