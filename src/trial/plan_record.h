/* SPDX-License-Identifier: Apache-2.0 */
/* plan.json. Internal to src/trial. */
#ifndef SHARDLOAD_TRIAL_PLAN_RECORD_H
#define SHARDLOAD_TRIAL_PLAN_RECORD_H

#include "plan.h"

/* Appends the plan to `record`, which has been initialised. `prediction` and `from` are NULL when
 * no rates are known. */
void sl_plan_record(const sl_preview *preview, const sl_plan_times *prediction, const char *from,
                    bson_t *record);

#endif
