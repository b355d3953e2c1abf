/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shardload-yardstick-json: converts JSON lines to BSON with libbson, one after the other.
 *
 * tools/bench compares the loader's parser with it. The documents are discarded.
 */
#include <bson/bson.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: shardload-yardstick-json FILE\n\n"
                "Converts each line of FILE to BSON with libbson and prints one line of JSON:\n"
                "documents, bytes. Exit status: 0 all lines were converted, 1 not all, 2 "
                "usage.\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "r");
    if (!file) {
        perror(argv[1]);
        return 2;
    }
    char *line = NULL;
    size_t room = 0;
    uint64_t documents = 0, bytes = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) > 0) {
        bson_error_t error;
        bson_t *document = bson_new_from_json((const uint8_t *)line, length, &error);
        if (!document) {
            fprintf(stderr, "shardload-yardstick-json: line %" PRIu64 ": %s\n", documents + 1,
                    error.message);
            return 1;
        }
        documents++;
        bytes += document->len;
        bson_destroy(document);
    }
    free(line);
    fclose(file);
    printf("{\"documents\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n", documents, bytes);
    return 0;
}
