/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a running load: control.json in its work directory, written atomically by `shardload
 * status` and removed by the load, which then shows the request's id in status.json. */
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/json.h"
#include "util/log.h"
#include "util/private_file.h"

#define CONTROL_BYTES_MAX 4096
#define RATE_MAX 1000000000000

static char *path_of(const char *directory, char path[600]) {
    snprintf(path, 600, "%s/" SL_CONTROL_FILE, directory);
    return path;
}

bool sl_control_write(const char *directory, const sl_control_request *request, sl_error *error) {
    char path[600];
    struct stat facts;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "request", request->id);
    if (request->rate_limit > 0)
        BSON_APPEND_INT64(&document, "rateLimit", (int64_t)request->rate_limit);
    else
        BSON_APPEND_NULL(&document, "rateLimit");
    char *text = sl_json_text(&document, error);
    bson_destroy(&document);
    bool ok = text && sl_file_publish(path_of(directory, path), text, strlen(text), false, error);
    free(text);
    /* Root may send a request to another user's load; that load must be able to read and remove the
     * file. */
    if (ok && geteuid() == 0 && stat(directory, &facts) == 0 && facts.st_uid != 0 &&
        chown(path, facts.st_uid, facts.st_gid) != 0)
        return sl_error_set(error, SL_EXIT_USAGE, "%s: cannot be given to the owner of %s: %s",
                            path, directory, strerror(errno));
    return ok;
}

/* Reads a small regular file. False when there is no file, or it is not small and regular. */
static bool read_small(const char *path, char text[CONTROL_BYTES_MAX + 1], size_t *length) {
    struct stat facts;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    bool ok = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
              (facts.st_uid == geteuid() || facts.st_uid == 0);
    ssize_t got = ok ? read(file, text, CONTROL_BYTES_MAX) : -1;
    close(file);
    *length = got > 0 ? (size_t)got : 0;
    return got >= 0;
}

static bool parse(const char *text, size_t length, sl_control_request *request) {
    bson_error_t wrong;
    bson_iter_t iter;
    uint32_t id_length = 0;
    bson_t *document = sl_json_parse(text, length, &wrong);
    bool ok =
        document && bson_iter_init_find(&iter, document, "request") && BSON_ITER_HOLDS_UTF8(&iter);
    if (ok) {
        const char *id = bson_iter_utf8(&iter, &id_length);
        ok = id_length > 0 && id_length < sizeof request->id;
        if (ok)
            memcpy(request->id, id, id_length + 1);
    }
    ok = ok && bson_iter_init_find(&iter, document, "rateLimit");
    if (ok && BSON_ITER_HOLDS_NULL(&iter)) {
        request->rate_limit = 0;
    } else if (ok) {
        int64_t rate = BSON_ITER_HOLDS_INT(&iter) ? bson_iter_as_int64(&iter) : 0;
        ok = rate > 0 && rate <= RATE_MAX;
        request->rate_limit = (uint64_t)rate;
    }
    bson_destroy(document);
    return ok;
}

bool sl_control_take(const char *directory, sl_control_request *request) {
    char path[600], text[CONTROL_BYTES_MAX + 1];
    size_t length;
    if (!read_small(path_of(directory, path), text, &length))
        return false;
    unlink(path);
    if (parse(text, length, request))
        return true;
    sl_log_warning("%s: not a request of `shardload status`; the file has been removed", path);
    return false;
}
