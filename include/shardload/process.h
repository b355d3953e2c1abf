/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host, to find out whether the process that created an object still runs; and
 * the host's identity. */
#ifndef SHARDLOAD_PROCESS_H
#define SHARDLOAD_PROCESS_H

#include <stdint.h>

/* The start time of a process of this host, in the kernel's ticks since boot; 0: there is no such
 * process; -1: the process exists, but its start time is not known. Distinguishes a process from a
 * later one with the same number. */
int64_t sl_process_start(int64_t pid);

/* Writes an identity of this host that is unique for its process numbers: the beginning of its
 * name, for people, and a hash of its full name, the kernel's boot id (`boot`) and the inode of the
 * pid namespace, since containers may share name and boot id. Letters, digits and dashes only. */
#define SL_HOST_ROOM 33
void sl_host_identity(char out[SL_HOST_ROOM]);
void sl_host_identity_of(const char *name, const char *boot, uint64_t pid_namespace,
                         char out[SL_HOST_ROOM]);

#endif
