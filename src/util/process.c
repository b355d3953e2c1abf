/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"

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
