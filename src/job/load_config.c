/* SPDX-License-Identifier: Apache-2.0 */
/* Values derived from the parameters of a load, and the check of its work directory. */
#include "load_config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "util/private_file.h"

#define BATCH_BYTES_LEAST ((size_t)1 << 20)

size_t sl_load_batch_room(const sl_load_config *config, uint32_t shards) {
    size_t whole = config->batch_bytes;
    size_t share = whole / shards;
    if (share < BATCH_BYTES_LEAST)
        share = BATCH_BYTES_LEAST;
    return share < whole ? share : whole;
}

sl_connection *sl_load_open_connection(const sl_load_config *config, sl_access access,
                                       const char *application, unsigned pool_size,
                                       sl_error *error) {
    const sl_connection_options options = {.uri = config->uri,
                                           .application = application,
                                           .pool_size = pool_size,
                                           .timeout_seconds = config->timeout_seconds,
                                           .wait_seconds = config->wait_seconds,
                                           .writes = access == SL_FOR_WRITING};
    sl_connection *connection;
    if (sl_connection_open(&options, &connection, error) && access != SL_FOR_EXAMINING)
        sl_topology_may_be_read(connection);
    return connection;
}

bool sl_is_collection_name(const char *name) {
    const size_t length = strlen(name);
    return length > 0 && length < 200 && !strchr(name, '$') && name[0] != '.' &&
           name[length - 1] != '.' && strncmp(name, "system.", 7) != 0;
}

/* ---- the work directory ---- */

/* Every work directory has a log. Without it (it may have been deleted), a journal shows what the
 * folder is; its first record contains these bytes. */
static bool is_journal(int folder) {
    static const char mark[] = "shardloadjournal";
    char head[64];
    int file = openat(folder, SL_WORK_JOURNAL, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t length = file >= 0 ? read(file, head, sizeof head) : 0;
    if (file >= 0)
        close(file);
    return length > 0 && memmem(head, (size_t)length, mark, sizeof mark - 1);
}

/* The name of a user's file in the folder; "" if it holds none. */
static void find_users_file(DIR *folder, char found[NAME_MAX + 1]) {
    found[0] = '\0';
    rewinddir(folder);
    for (const struct dirent *entry; !found[0] && (entry = readdir(folder)) != NULL;) {
        /* The root folder of a file system may have a folder lost+found. */
        if (!sl_list_has(".|..|lost+found", '|', sl_text_of(entry->d_name)))
            snprintf(found, NAME_MAX + 1, "%s", entry->d_name);
    }
}

bool sl_outputs_check_folder(const char *directory, sl_error *error) {
    struct stat facts;
    char found[NAME_MAX + 1];
    DIR *folder = opendir(directory);
    if (!folder)
        return true;
    int at = dirfd(folder);
    bool ours, exists;
    do { /* again, if a load whose start failed has removed its files, the log last, meanwhile */
        find_users_file(folder, found);
        ours = !found[0] || fstatat(at, SL_WORK_LOG, &facts, AT_SYMLINK_NOFOLLOW) == 0 ||
               is_journal(at);
        exists = ours || fstatat(at, found, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    } while (!exists);
    closedir(folder);
    return ours || sl_error_set(error, SL_EXIT_USAGE,
                                "--work-dir: %s holds files, such as %s, but no %s: it is no work "
                                "directory of this program, whose files might replace them. "
                                "Nothing has been changed; name a new or an empty folder",
                                directory, found, SL_WORK_LOG);
}
