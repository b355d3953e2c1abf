/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan as text. Internal to src/trial. */
#ifndef SHARDLOAD_TRIAL_PLAN_PRINT_H
#define SHARDLOAD_TRIAL_PLAN_PRINT_H

#include <stdio.h>

#include "plan.h"

/* False without memory. */
bool sl_plan_print_sources(const sl_preview *preview, FILE *out);
void sl_plan_print_target(const sl_preview *preview, const sl_load_config *config, FILE *out);
void sl_plan_print_layout(const sl_preview *preview, FILE *out);
/* `prediction` is NULL when no rates are known. `from` names the source of the rates. */
void sl_plan_print_times(const sl_plan_times *prediction, const char *from, FILE *out);

#endif
