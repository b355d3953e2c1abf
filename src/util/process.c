/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "text.h"

#define NAME_SHOWN 16 /* bytes of the host's name in its identity */

void sl_host_identity_of(const char *name, const char *boot, uint64_t pid_namespace,
                         char out[SL_HOST_ROOM]) {
    char all[512];
    int length = snprintf(all, sizeof all, "%.300s %.100s %llu", name, boot,
                          (unsigned long long)pid_namespace);
    uint64_t hash = sl_hash((const uint8_t *)all, (size_t)length);
    snprintf(out, SL_HOST_ROOM, "%.*s-%012llx", NAME_SHOWN, name[0] ? name : "host",
             (unsigned long long)(hash >> 16));
    for (char *at = out; *at; at++) { /* dots separate the parts of the name of a temporary
                                         collection */
        if (!isalnum((unsigned char)*at))
            *at = '-';
    }
}

void sl_host_identity(char out[SL_HOST_ROOM]) {
    char name[256] = "", boot[64] = "";
    struct stat pid_namespace;
    gethostname(name, sizeof name - 1);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = '\0';
        fclose(file);
    }
    bool known = stat("/proc/self/ns/pid", &pid_namespace) == 0;
    sl_host_identity_of(name, boot, known ? (uint64_t)pid_namespace.st_ino : 0, out);
}

int64_t sl_process_start(int64_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return kill((pid_t)pid, 0) == 0 || errno == EPERM ? -1 : 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    /* Field 22. Field 2 is the name in parentheses, which may contain blanks and parentheses. */
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at, NULL, 10) : -1;
}

/* ---- commands of a user ---- */

#define COMMAND "SHARDLOAD_COMMAND" /* the variable with the command */

/* The environment of this process and one more variable, in an array that the caller frees. */
static char **environment_with(char *variable) {
    size_t count = 0;
    while (environ[count])
        count++;
    char **all = calloc(count + 2, sizeof *all);
    if (all) {
        all[0] = variable; /* the first one of a name counts */
        memcpy(all + 1, environ, count * sizeof *all);
    }
    return all;
}

static int spawn_shell(char *const *environment, bool apart, pid_t *child) {
    char *const words[] = {"sh", "-c", "eval \"unset " COMMAND "\n$" COMMAND "\"", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int why = 0;
    if (apart) {
        why = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    }
    if (why == 0)
        why = posix_spawn(child, "/bin/sh", &actions, &attributes, words, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return why;
}

pid_t sl_process_start_shell(const char *command, bool apart) {
    char *variable = NULL;
    if (asprintf(&variable, COMMAND "=%s", command) < 0)
        variable = NULL;
    char **environment = variable ? environment_with(variable) : NULL;
    pid_t child = -1;
    int why = environment ? spawn_shell(environment, apart, &child) : ENOMEM;
    free(environment);
    sl_secret_free(variable);
    errno = why;
    return why == 0 ? child : -1;
}
