/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of processes and hosts: does the process that left a lock or a file still run? Starts
 * the commands of a user. */
#ifndef SHARDLOAD_PROCESS_H
#define SHARDLOAD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The start time of a process of this host, in kernel ticks since boot; 0 when there is no such
 * process, -1 when the process exists but its start time is not known. Distinguishes a process from
 * a later one with the same pid. */
int64_t sl_process_start(int64_t pid);

/* Writes an identifier of the set of processes in which pids are unique: the beginning of the host
 * name, for readers, and a hash of the full host name, the kernel's boot id (`boot`) and the inode
 * of the pid namespace. Containers may share host name and boot id. Letters, digits, dashes
 * only. */
#define SL_HOST_ROOM 33
void sl_host_identity(char out[SL_HOST_ROOM]);
void sl_host_identity_of(const char *name, const char *boot, uint64_t pid_namespace,
                         char out[SL_HOST_ROOM]);

/* Starts /bin/sh with a command of the user, which may contain passwords. The shell gets it in its
 * environment, and removes it there before it executes it: all users can see the arguments of a
 * process, its environment only its own user. With `apart`, the shell leads a process group of its
 * own, and writes its output to standard error. Returns the process, or -1 with errno. */
pid_t sl_process_start_shell(const char *command, bool apart);

#endif
