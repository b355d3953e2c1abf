/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the way to the servers: latency, bandwidth, compression, and, with --write, inserts.
 *
 * The bandwidth is measured with a ping that has a large comment, which the server reads and
 * discards. It is the bandwidth in the direction that a load uses. The bytes are random, so that
 * they cannot be compressed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/clock.h"
#include "util/estimate.h"
#include "util/text.h"

#include "examine.h"

#define PINGS 40
#define PING_SECONDS 2.0 /* no further ping is sent after this time */
#define SMALL_BYTES ((size_t)256 << 10)
#define LARGE_BYTES ((size_t)8 << 20)
#define LARGE_SECONDS 2.0 /* the large ping is sent if it will not take longer */
#define LATENCY_WARNING_MS 20.0
#define BANDWIDTH_WARNING 20e6 /* bytes per second */
#define INSERTS 200
#define INSERT_BYTES 1000

sl_verdict sl_judge_latency(double median_ms) {
    return median_ms >= LATENCY_WARNING_MS ? SL_VERDICT_WARNING : SL_VERDICT_OK;
}

sl_verdict sl_judge_bandwidth(double bytes_per_second) {
    return bytes_per_second < BANDWIDTH_WARNING ? SL_VERDICT_WARNING : SL_VERDICT_OK;
}

/* Seconds that a ping takes; NAN, with `why` set, when it fails. */
static double ping(const sl_examined_server *server, const uint8_t *comment, size_t length,
                   char *why, size_t room) {
    bson_t command = BSON_INITIALIZER;
    sl_answer answer;
    BSON_APPEND_INT32(&command, "ping", 1);
    if (length > 0)
        bson_append_binary(&command, "comment", -1, BSON_SUBTYPE_BINARY, comment, (uint32_t)length);
    int64_t start = sl_clock_ns();
    sl_ask(server, "admin", &command, &answer);
    double seconds = sl_seconds_since(start);
    if (!answer.ok)
        snprintf(why, room, "%s", answer.why);
    bson_destroy(&answer.reply);
    return answer.ok ? seconds : NAN;
}

/* The times of pings in milliseconds, sorted. Returns their number. */
static size_t measure_pings(const sl_examined_server *server, double times[PINGS], char *why,
                            size_t room) {
    size_t count = 0;
    for (int64_t start = sl_clock_ns(); count < PINGS && sl_seconds_since(start) < PING_SECONDS;) {
        double seconds = ping(server, NULL, 0, why, room);
        if (isnan(seconds))
            break;
        times[count++] = 1000 * seconds;
    }
    qsort(times, count, sizeof *times, sl_by_value);
    return count;
}

void sl_check_latency(const sl_examined_server *server, sl_findings *findings) {
    double times[PINGS];
    char why[400] = "";
    size_t count = measure_pings(server, times, why, sizeof why);
    if (count < 5) {
        sl_find_unknown(findings, why[0] ? why : "a ping takes too long", "");
        return;
    }
    double median = times[count / 2], high = times[(count * 95 + 99) / 100 - 1];
    sl_verdict verdict = sl_judge_latency(median);
    sl_finding *finding =
        sl_find(findings, verdict,
                verdict == SL_VERDICT_WARNING
                    ? "each batch waits at least this long: use more threads (--threads 32), or "
                      "load from a "
                      "machine nearby"
                    : "a batch waits for its inserts, not for the network",
                "median %.2f ms, 95th percentile %.2f ms (%zu pings of %s)", median, high, count,
                server->name);
    BSON_APPEND_DOUBLE(finding->values, "medianMs", median);
    BSON_APPEND_DOUBLE(finding->values, "p95Ms", high);
}

/* xorshift: fast, and not compressible. */
static void fill_random(uint8_t *bytes, size_t length) {
    uint64_t state = (uint64_t)sl_clock_ns() | 1;
    for (size_t i = 0; i + 8 <= length; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(bytes + i, &state, 8);
    }
}

void sl_check_bandwidth(const sl_examined_server *server, sl_findings *findings) {
    char why[400] = "", human[SL_HUMAN_ROOM], sent[SL_HUMAN_ROOM];
    uint8_t *bytes = calloc(1, LARGE_BYTES);
    if (!bytes)
        return;
    fill_random(bytes, LARGE_BYTES);
    double none = ping(server, NULL, 0, why, sizeof why);
    double seconds = ping(server, bytes, SMALL_BYTES, why, sizeof why);
    size_t length = SMALL_BYTES;
    if (seconds * ((double)LARGE_BYTES / (double)SMALL_BYTES) < LARGE_SECONDS) {
        seconds = ping(server, bytes, LARGE_BYTES, why, sizeof why);
        length = LARGE_BYTES;
    }
    free(bytes);
    if (isnan(seconds) || isnan(none)) {
        sl_find_unknown(findings, why, "it limits a load over a slow network");
        return;
    }
    double rate = (double)length / fmax(seconds - none, seconds / 10);
    sl_verdict verdict = sl_judge_bandwidth(rate);
    sl_finding *finding =
        sl_find(findings, verdict,
                verdict == SL_VERDICT_WARNING
                    ? "the network limits the load: try --wire-compression zstd, or load from a "
                      "machine nearby"
                    : "of one connection; a load uses several",
                "%s/s to %s (%s sent)", sl_human_bytes(rate, human), server->name,
                sl_human_bytes((double)length, sent));
    BSON_APPEND_DOUBLE(finding->values, "bytesPerSecond", rate);
}

void sl_check_compression(const sl_examined_server *server, sl_findings *findings) {
    bson_t list;
    bson_iter_t iter;
    char names[100] = "";
    size_t used = 0;
    const bson_t *hello = &server->answers[SL_ASK_HELLO].reply;
    if (sl_look_inside(hello, "compression", &list) && bson_iter_init(&iter, &list)) {
        while (bson_iter_next(&iter)) {
            if (BSON_ITER_HOLDS_UTF8(&iter))
                used += sl_print_text(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                      bson_iter_utf8(&iter, NULL));
        }
    }
    sl_finding *finding = sl_find(
        findings, SL_VERDICT_OK,
        names[0] ? "--wire-compression helps on a slow network, and costs processor time on "
                   "a fast one"
                 : "--wire-compression has no effect",
        "%s%s", names[0] ? "the server allows " : "the server allows none", names);
    BSON_APPEND_UTF8(finding->values, "allowed", names);
}

/* ---- inserts ---- */

/* An insert of INSERTS documents with write concern majority. */
static void make_insert(bson_t *command, const char *collection, const char *field,
                        int32_t limit_ms) {
    bson_t documents;
    BSON_APPEND_UTF8(command, "insert", collection);
    BSON_APPEND_ARRAY_BEGIN(command, "documents", &documents);
    for (uint32_t i = 0; i < INSERTS; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        BCON_APPEND(&documents, sl_array_key(i, room), "{", "_id", BCON_INT32((int32_t)i), "text",
                    BCON_UTF8(field), "}");
    }
    bson_append_array_end(command, &documents);
    BCON_APPEND(command, "writeConcern", "{", "w", "majority", "wtimeout", BCON_INT32(limit_ms),
                "}", "maxTimeMS", BCON_INT32(limit_ms));
}

void sl_check_inserts(const sl_examined_server *server, sl_findings *findings) {
    const char *database = findings->examined->config->load->database;
    char collection[64], field[INSERT_BYTES + 1], oid[25];
    bson_t insert = BSON_INITIALIZER;
    bson_oid_t id;
    sl_answer inserted, dropped;
    if (!findings->examined->config->write)
        return;
    bson_oid_init(&id, NULL);
    bson_oid_to_string(&id, oid);
    snprintf(collection, sizeof collection, "shardload.doctor.%s", oid);
    memset(field, 'x', INSERT_BYTES);
    field[INSERT_BYTES] = '\0';
    /* The server's limit is shorter than the client's, so that the insert does not happen after the
     * client has given up. */
    int32_t limit_ms = (int32_t)findings->examined->config->limit_seconds * 500;
    make_insert(&insert, collection, field, limit_ms);
    int64_t start = sl_clock_ns();
    sl_ask(server, database, &insert, &inserted);
    double seconds = sl_seconds_since(start);
    bson_t *drop = BCON_NEW("drop", BCON_UTF8(collection), "maxTimeMS", BCON_INT32(limit_ms));
    sl_ask(server, database, drop, &dropped);
    double stored = sl_look_amount(&inserted.reply, "n", 0);
    const char *refused = sl_look_text(&inserted.reply, "writeConcernError.errmsg");
    bool ok = inserted.ok && stored >= INSERTS && !refused;
    sl_finding *finding =
        sl_find(findings, ok && dropped.ok ? SL_VERDICT_OK : SL_VERDICT_PROBLEM,
                ok ? "a majority of the members has acknowledged it"
                   : "a load would wait in the same way, and then end",
                "%d documents of 1 kB into %s.%s: %s%s%s", INSERTS, database, collection,
                ok ? "stored" : "",
                ok             ? ""
                : !inserted.ok ? inserted.why
                : refused      ? refused
                               : "not all are stored",
                dropped.ok || !inserted.ok ? "" : "; IT COULD NOT BE DROPPED: drop it");
    if (ok) {
        size_t used = strlen(finding->figure);
        snprintf(finding->figure + used, sizeof finding->figure - used, " within %.0f ms",
                 1000 * seconds);
    }
    BSON_APPEND_DOUBLE(finding->values, "seconds", seconds);
    bson_destroy(&inserted.reply);
    bson_destroy(&dropped.reply);
}
