/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host: is the one that left something behind still there? */
#ifndef SHARDLOAD_PROCESS_H
#define SHARDLOAD_PROCESS_H

#include <stdint.h>

/* When a process of this host began, in the kernel's ticks since it was booted; 0 when there is no
 * such process, -1 when there is one but the time is not known. It tells a process from a later one
 * of the same number. */
int64_t sl_process_start(int64_t pid);

#endif
