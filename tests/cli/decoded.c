/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes files by the loader's own code. For each line "HOW PATH" of standard input it prints a
 * line "CODE LENGTH MD5 MESSAGE": the exit code, and length and MD5 of the text up to the end or an
 * error.
 *
 * HOW: "file"; "pipe": through a pipe; a number: through a pipe, written in pieces of that many
 * bytes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/source.h"
#include "util/hash.h"
#include "util/log.h"

typedef struct feed {
    FILE *from;
    int to;
    size_t piece; /* bytes per write; 0: no pipe */
} feed;

static void *write_feed(void *context) {
    const feed *fed = context;
    char bytes[1 << 16];
    size_t length;
    while ((length = fread(bytes, 1, fed->piece, fed->from)) > 0) {
        /* Up to PIPE_BUF bytes are written atomically; one read may still return several pieces. */
        if (write(fed->to, bytes, length) != (ssize_t)length)
            break;
        if (fed->piece < sizeof bytes)
            usleep(1);
    }
    close(fed->to);
    return NULL;
}

static void decode(const char *path, uint64_t *length, sl_md5 *md5, sl_error *error) {
    sl_source_set *set;
    sl_reader *reader = NULL;
    sl_source_block block;
    sl_read_result result = SL_READ_FAILED;
    if (!sl_source_set_create(&path, 1, NULL, &set, error))
        return;
    if (sl_reader_create(set, &reader, error)) {
        while ((result = sl_reader_next(reader, &block, error)) == SL_READ_BLOCK) {
            *length += block.text.length;
            sl_md5_add(md5, block.text.bytes, block.text.length);
        }
    }
    if (result == SL_READ_END)
        error->code = SL_EXIT_OK;
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

int main(void) {
    char line[4096];
    sl_log_set_level(SL_LOG_ERROR);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *path = strchr(line, ' '), from_pipe[32];
        if (!path)
            return 2;
        *path++ = '\0';
        feed fed = {.piece = strcmp(line, "pipe") == 0 ? 1 << 16 : strtoul(line, NULL, 10)};
        int ends[2] = {-1, -1};
        pthread_t writer;
        if (fed.piece > 0) {
            fed.from = fopen(path, "r");
            if (!fed.from || pipe(ends) != 0)
                return 2;
            fed.to = ends[1];
            pthread_create(&writer, NULL, write_feed, &fed);
            snprintf(from_pipe, sizeof from_pipe, "/dev/fd/%d", ends[0]);
            path = from_pipe;
        }
        uint64_t length = 0;
        uint8_t digest[SL_MD5_BYTES];
        sl_md5 md5;
        sl_error error = {0};
        sl_md5_begin(&md5);
        decode(path, &length, &md5, &error);
        sl_md5_end(&md5, digest);
        if (fed.piece > 0) {
            char rest[4096];
            while (read(ends[0], rest, sizeof rest) > 0) /* unblocks the writer */
                ;
            pthread_join(writer, NULL);
            close(ends[0]);
            fclose(fed.from);
        }
        error.message[strcspn(error.message, "\n")] = '\0';
        printf("%d %llu ", error.code, (unsigned long long)length);
        for (size_t i = 0; i < sizeof digest; i++)
            printf("%02x", digest[i]);
        printf(" %s\n", error.code ? error.message : "");
        fflush(stdout);
    }
    return 0;
}
