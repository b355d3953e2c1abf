/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host: is the one that left something behind still there? And which host is it? */
#ifndef SHARDLOAD_PROCESS_H
#define SHARDLOAD_PROCESS_H

#include <stdint.h>

/* When a process of this host began, in the kernel's ticks since it was booted; 0 when there is no
 * such process, -1 when there is one but the time is not known. It tells a process from a later one
 * of the same number. */
int64_t sl_process_start(int64_t pid);

/* What tells this host, as far as process numbers go, from every other one: the beginning of its
 * name, to be read, and a hash of its full name, of this run of its kernel (`boot`), and of the
 * inode of the space in which its process numbers hold, since containers may share the other two.
 * Letters, digits and dashes only. */
#define SL_HOST_ROOM 33
void sl_host_identity(char out[SL_HOST_ROOM]);
void sl_host_identity_of(const char *name, const char *boot, uint64_t space,
                         char out[SL_HOST_ROOM]);

#endif
