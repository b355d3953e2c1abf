/* SPDX-License-Identifier: Apache-2.0 */
#include "read_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sl_read_stream(FILE *file, size_t most, sl_exit code, sl_text *text, sl_error *error) {
    struct stat facts;
    size_t room = most + 1;
    if (fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 &&
        (size_t)facts.st_size < most)
        room = (size_t)facts.st_size + 1; /* one byte more, so that a file that grows is noticed */
    char *bytes = malloc(room + 1);
    if (!bytes)
        return sl_error_memory(error, "reading a file");
    setvbuf(file, NULL, _IONBF, 0);
    size_t length = fread(bytes, 1, room, file);
    if (!ferror(file) && length < room) {
        bytes[length] = '\0';
        text->bytes = bytes;
        text->length = length;
        return true;
    }
    if (ferror(file))
        sl_error_set(error, sl_exit_of_errno(errno, code), "%s", strerror(errno));
    else if (room <= most)
        sl_error_set(error, code, "the file has grown while it was read");
    else
        sl_error_set(error, code, "larger than %zu MiB", most >> 20);
    explicit_bzero(bytes, length);
    free(bytes);
    return false;
}

bool sl_read_file(const char *path, size_t most, sl_exit code, sl_text *text, sl_error *error) {
    FILE *file = fopen(path, "rbe");
    if (!file)
        return sl_error_set(error, sl_exit_of_errno(errno, code), "%s", strerror(errno));
    bool ok = sl_read_stream(file, most, code, text, error);
    fclose(file);
    return ok;
}

size_t sl_read_at(int file, void *out, size_t room, uint64_t offset) {
    size_t filled = 0;
    errno = 0;
    while (filled < room) {
        ssize_t got = pread(file, (char *)out + filled, room - filled, (off_t)(offset + filled));
        if (got < 0 && errno != EINTR)
            break;
        errno = 0;
        if (got == 0)
            break;
        filled += got > 0 ? (size_t)got : 0;
    }
    return filled;
}
