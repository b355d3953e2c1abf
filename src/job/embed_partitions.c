/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records into files by the hash of their key. */
#include "embed_partitions.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/private_file.h"

#define FILES (SL_PARTITIONS + 1) /* with "apart" */

struct sl_partitions {
    unsigned level;
    char folder[SL_PARTITION_PATH];
    int files[FILES];
    pthread_mutex_t locks[FILES]; /* held while a buffer is written */
};

struct sl_partition_writer {
    sl_partitions *to;
    size_t used[FILES];
    uint8_t *buffers; /* FILES times SL_PARTITION_BUFFER */
};

const char *sl_partition_path(const char *folder, unsigned index, char path[SL_PARTITION_PATH]) {
    if (index < SL_PARTITIONS)
        snprintf(path, SL_PARTITION_PATH, "%.600s/%03u", folder, index);
    else
        snprintf(path, SL_PARTITION_PATH, "%.600s/apart", folder);
    return path;
}

void sl_partitions_remove(const char *folder) {
    char path[SL_PARTITION_PATH];
    for (unsigned i = 0; i < FILES; i++)
        sl_private_file_remove(sl_partition_path(folder, i, path));
    sl_private_folder_remove(folder);
}

bool sl_partitions_create(const char *folder, unsigned level, sl_partitions **partitions,
                          sl_error *error) {
    char path[SL_PARTITION_PATH];
    sl_partitions_remove(folder);
    if (!sl_private_folder_make(folder, NULL, error))
        return false;
    sl_partitions *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "dividing the records to embed");
    made->level = level;
    snprintf(made->folder, sizeof made->folder, "%s", folder);
    bool ok = true;
    for (unsigned i = 0; i < FILES; i++) {
        made->files[i] = -1;
        pthread_mutex_init(&made->locks[i], NULL);
    }
    for (unsigned i = 0; ok && i < FILES; i++) {
        made->files[i] =
            sl_private_file_open(sl_partition_path(folder, i, path), O_WRONLY | O_APPEND, error);
        ok = made->files[i] >= 0;
    }
    if (ok)
        *partitions = made;
    else
        sl_partitions_close(made, NULL);
    return ok;
}

static bool cannot_write(const sl_partitions *partitions, unsigned index, sl_error *error) {
    char path[SL_PARTITION_PATH];
    return sl_error_errno(error, SL_EXIT_USAGE, "cannot write %s",
                          sl_partition_path(partitions->folder, index, path));
}

bool sl_partitions_close(sl_partitions *partitions, sl_error *error) {
    bool ok = true;
    if (!partitions)
        return true;
    for (unsigned i = 0; i < FILES; i++) {
        if (partitions->files[i] >= 0 && close(partitions->files[i]) != 0 && ok)
            ok = cannot_write(partitions, i, error);
        pthread_mutex_destroy(&partitions->locks[i]);
    }
    free(partitions);
    return ok;
}

sl_partition_writer *sl_partition_writer_create(sl_partitions *partitions) {
    sl_partition_writer *writer = calloc(1, sizeof *writer);
    uint8_t *buffers = malloc(FILES * SL_PARTITION_BUFFER);
    if (!writer || !buffers) {
        free(writer);
        free(buffers);
        return NULL;
    }
    writer->to = partitions;
    writer->buffers = buffers;
    return writer;
}

void sl_partition_writer_destroy(sl_partition_writer *writer) {
    if (!writer)
        return;
    free(writer->buffers);
    free(writer);
}

static uint8_t *buffer_of(const sl_partition_writer *writer, unsigned index) {
    return writer->buffers + index * SL_PARTITION_BUFFER;
}

/* Writes the buffer of a file and then these pieces, as one unit. */
static bool write_out(sl_partition_writer *writer, unsigned index, const sl_partition_head *head,
                      const uint8_t *key, const uint8_t *document, size_t length, sl_error *error) {
    sl_partitions *to = writer->to;
    pthread_mutex_lock(&to->locks[index]);
    bool ok = sl_write_all(to->files[index], buffer_of(writer, index), writer->used[index]);
    if (ok && head)
        ok = sl_write_all(to->files[index], head, sizeof *head) &&
             sl_write_all(to->files[index], key, head->key_length) &&
             sl_write_all(to->files[index], document, length);
    pthread_mutex_unlock(&to->locks[index]);
    writer->used[index] = 0;
    return ok || cannot_write(to, index, error);
}

bool sl_partition_write(sl_partition_writer *writer, const uint8_t *key, size_t key_length,
                        uint64_t hash, uint64_t position, const uint8_t *document, size_t length,
                        sl_error *error) {
    const sl_partition_head head = {
        .length = (uint32_t)(sizeof head + key_length + length),
        .key_length = (uint32_t)key_length,
        .hash = hash,
        .position = position,
    };
    unsigned index = key_length > 0 ? sl_partition_of(hash, writer->to->level) : SL_PARTITIONS;
    if (head.length > SL_PARTITION_BUFFER)
        return write_out(writer, index, &head, key, document, length, error);
    if (head.length > SL_PARTITION_BUFFER - writer->used[index] &&
        !write_out(writer, index, NULL, NULL, NULL, 0, error))
        return false;
    uint8_t *at = buffer_of(writer, index) + writer->used[index];
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, key, key_length);
    memcpy(at + sizeof head + key_length, document, length);
    writer->used[index] += head.length;
    return true;
}

bool sl_partition_flush(sl_partition_writer *writer, sl_error *error) {
    for (unsigned i = 0; i < FILES; i++) {
        if (writer->used[i] > 0 && !write_out(writer, i, NULL, NULL, NULL, 0, error))
            return false;
    }
    return true;
}
