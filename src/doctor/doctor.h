/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload doctor`: one page about a target before a large load. Reads only, unless `write` is
 * set. */
#ifndef SHARDLOAD_DOCTOR_H
#define SHARDLOAD_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "job/load_config.h"

typedef struct sl_doctor_config {
    const sl_load_config *load; /* uri; database, collection and sources as far as given */
    unsigned limit_seconds;     /* of each command */
    uint64_t blocks;            /* of the sample of the sources */
    bool json;                  /* print JSON instead of the page */
    bool write;                 /* time inserts into a temporary collection of the database */
} sl_doctor_config;

/* Examines the target and prints the page. Returns SL_EXIT_OK when no check has found a problem,
 * SL_EXIT_VERIFICATION when a check has found one, SL_EXIT_CLUSTER when no server can be
 * reached. */
sl_exit sl_doctor_run(const sl_doctor_config *config);

#endif
