/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text for people. Internal to the trial floor. */
#ifndef SHARDLOAD_TRIAL_PLAN_PRINT_H
#define SHARDLOAD_TRIAL_PLAN_PRINT_H

#include <stdio.h>

#include <shardload/plan.h>

void sl_plan_print_sources(const sl_preview *preview, FILE *out);
void sl_plan_print_target(const sl_preview *preview, const sl_load_config *config, FILE *out);
void sl_plan_print_layout(const sl_preview *preview, FILE *out);
/* NULL: without rates there is no prediction. */
void sl_plan_print_times(const sl_plan_times *prediction, const char *from, FILE *out);

#endif
