/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of processes and hosts: does the process that left a lock or a file still run? */
#ifndef SHARDLOAD_PROCESS_H
#define SHARDLOAD_PROCESS_H

#include <stdint.h>

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

#endif
