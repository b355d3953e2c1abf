/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shardload-yardstick: measures how fast a server takes documents that are already encoded.
 *
 * It sends a BSON dump as plain OP_MSG inserts directly from memory: no parsing, no driver, no
 * retries, no sessions. tools/bench runs it alternately with the loader, with the same documents,
 * threads and batches; the difference of the two is the loader's own cost.
 *
 *   main.c     options, the result as JSON
 *   dump.c     the dump in memory, divided into batches
 *   sender.c   threads, messages
 *   plain.c    sockets, the clock, error messages
 *   reads.c    another program: point reads
 *   json.c     another program: JSON to BSON with libbson
 */
#include "dump.h"
#include "sender.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, THREADS_MOST = 1024, BATCH_MOST = 100000, BYTES_MOST = 47 * 1000 * 1000 };

static const char usage[] =
    "usage: shardload-yardstick [options] DUMP.bson\n"
    "\n"
    "Sends the documents of a BSON dump to a server as plain inserts, as fast as the server "
    "accepts\n"
    "them, and prints the time. The collection should be empty; it is neither created nor "
    "dropped.\n"
    "\n"
    "  --uri URI              mongodb://HOST:PORT,.../ (default mongodb://127.0.0.1:27017/)\n"
    "  --db NAME, --collection NAME\n"
    "  --threads N            connections, each with one batch in flight (default 1)\n"
    "  --batch-size N         documents per insert (default 10000)\n"
    "  --batch-bytes N        bytes per insert (default 16777216)\n"
    "  --write-concern JSON   default {\"w\": \"majority\"}\n"
    "  --split ID             a batch has either ids below ID or ids from ID on; may be repeated,\n"
    "                         ascending\n"
    "\n"
    "Prints one line of JSON: documents, bytes, batches, threads, seconds (from the first send to\n"
    "the last reply). Exit status: 0 all documents were inserted, 1 not all, 2 usage.\n";

struct options {
    const char *write_concern;
    const char *dump;
    int64_t *splits; /* owned */
    struct target target;
    struct batch_limits limits;
};

static bool wrong(const char *option, const char *value) {
    fprintf(stderr, "shardload-yardstick: %s: %s is not a valid value\n", option, value);
    return false;
}

static bool read_uri(const char *uri, struct options *options) {
    struct target *target = &options->target;
    const char *at = strncmp(uri, "mongodb:/", 9) == 0 ? uri + 9 : "";
    target->address_count = 0;
    do {
        struct address *address = &target->addresses[target->address_count];
        int end = 0;
        if (target->address_count == ADDRESSES_MOST ||
            sscanf(*at ? at + 1 : at, "%255[^:/,@]:%15[0-9]%n", address->host, address->port,
                   &end) != 2)
            return wrong("--uri", uri);
        target->address_count++;
        at += 1 + end;
    } while (*at == ',');
    return *at == '\0' || (*at == '/' && at[1] != '?') || wrong("--uri", uri);
}

static bool read_number(const char *option, const char *text, unsigned long most,
                        unsigned long *number) {
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return (text[0] >= '1' && text[0] <= '9' && *end == '\0' && errno == 0 && *number <= most) ||
           wrong(option, text);
}

static bool add_split(struct options *options, const char *text) {
    char *end;
    errno = 0;
    int64_t split = strtoll(text, &end, 10);
    size_t count = options->limits.split_count;
    if (end == text || *end != '\0' || errno != 0 ||
        (count > 0 && options->splits[count - 1] >= split))
        return wrong("--split", text);
    int64_t *splits = realloc(options->splits, (count + 1) * sizeof *splits);
    if (splits == NULL)
        return wrong("--split", "(memory is exhausted)");
    splits[count] = split;
    options->splits = splits;
    options->limits.splits = splits;
    options->limits.split_count++;
    return true;
}

/* Returns an exit status. EXIT_SUCCESS with `dump` NULL: the usage was printed. */
static int read_options(int count, char **words, struct options *options) {
    static const struct option known[] = {
        {"uri", required_argument, NULL, 'u'},
        {"db", required_argument, NULL, 'd'},
        {"collection", required_argument, NULL, 'c'},
        {"threads", required_argument, NULL, 't'},
        {"batch-size", required_argument, NULL, 'n'},
        {"batch-bytes", required_argument, NULL, 'b'},
        {"write-concern", required_argument, NULL, 'w'},
        {"split", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    unsigned long number = 0;
    bool ok = true;
    for (int option; (option = getopt_long(count, words, "hd:c:", known, NULL)) != -1;) {
        switch (option) {
        case 'u':
            ok = read_uri(optarg, options) && ok;
            break;
        case 'd':
            options->target.database = optarg;
            break;
        case 'c':
            options->target.collection = optarg;
            break;
        case 't':
            ok = read_number("--threads", optarg, THREADS_MOST, &number) && ok;
            options->target.threads = (unsigned)number;
            break;
        case 'n':
            ok = read_number("--batch-size", optarg, BATCH_MOST, &number) && ok;
            options->limits.documents = (uint32_t)number;
            break;
        case 'b':
            ok = read_number("--batch-bytes", optarg, BYTES_MOST, &number) && ok;
            options->limits.bytes = number;
            break;
        case 'w':
            options->write_concern = optarg;
            break;
        case 's':
            ok = add_split(options, optarg) && ok;
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        default:
            ok = false;
        }
    }
    if (ok && (optind != count - 1 || options->target.database == NULL ||
               options->target.collection == NULL)) {
        fprintf(stderr, "shardload-yardstick: --db, --collection and one dump are needed\n");
        ok = false;
    }
    if (!ok)
        return EXIT_USAGE;
    options->dump = words[optind];
    return EXIT_SUCCESS;
}

static bool run(struct options *options) {
    struct dump dump = {0};
    bson_error_t why;
    double seconds = 0;
    bson_t *concern = bson_new_from_json((const uint8_t *)options->write_concern, -1, &why);
    bool ok = concern != NULL || wrong("--write-concern", why.message);
    options->target.write_concern = concern;
    ok = ok && dump_read(&dump, options->dump) && dump_divide(&dump, &options->limits) &&
         send_all(&dump, &options->target, &seconds);
    if (ok)
        printf("{\"documents\": %" PRIu64 ", \"bytes\": %zu, \"batches\": %zu, \"threads\": %u, "
               "\"seconds\": %.6f}\n",
               dump.documents, dump.size, dump.batch_count, options->target.threads, seconds);
    dump_clear(&dump);
    if (concern != NULL)
        bson_destroy(concern);
    return ok;
}

int main(int count, char **words) {
    struct options options = {
        .write_concern = "{\"w\": \"majority\"}",
        .target = {.addresses = {{"127.0.0.1", "27017"}}, .address_count = 1, .threads = 1},
        .limits = {.documents = 10000, .bytes = (size_t)16 << 20},
    };
    int status = read_options(count, words, &options);
    if (status == EXIT_SUCCESS && options.dump != NULL && !run(&options))
        status = EXIT_FAILURE;
    free(options.splits);
    if (fflush(stdout) != 0)
        status = EXIT_FAILURE;
    return status;
}
