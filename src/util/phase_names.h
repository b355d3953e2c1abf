/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a load, as run.json names them: load.c runs them, and other files look their times
 * up or predict them. */
#ifndef SHARDLOAD_PHASE_NAMES_H
#define SHARDLOAD_PHASE_NAMES_H

#define SL_PHASE_SOURCES "sources"
#define SL_PHASE_EMBED "embed"
#define SL_PHASE_CONNECT "connect"
#define SL_PHASE_PREPARE "prepare"
#define SL_PHASE_LOAD "load"
#define SL_PHASE_INDEXES "indexes"
#define SL_PHASE_BALANCER "balancer"
#define SL_PHASE_UNMATCHED "unmatched"
#define SL_PHASE_VERIFY "verify"

#endif
