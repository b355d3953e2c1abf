/* SPDX-License-Identifier: Apache-2.0 */
/* Documents outside of all sources: their _id is of no source that the registry beside the
 * collection knows. A load never writes or removes one, so their number is the same at its end. */
#ifndef SHARDLOAD_OUTSIDE_H
#define SHARDLOAD_OUTSIDE_H

#include "engine.h"

/* Counts them before the first document is sent, into load->outside; where the load has created the
 * collection there are none. With --no-verify nothing is counted. */
bool sl_outside_count(sl_load *load, bool created, sl_error *error);

/* Into and out of the journal's document about the target: a load that is resumed compares with the
 * number at the start of its first run. False where there is none. */
void sl_outside_append(const sl_load *load, bson_t *document);
bool sl_outside_recall(sl_load *load, const bson_t *document);

/* Counts them again, into the section "verification" of the record. False when they cannot be
 * counted. */
bool sl_outside_count_again(sl_load *load, bson_t *section, sl_error *error);

/* Are they as many as before? */
bool sl_outside_is_unchanged(const sl_load *load);

/* Says what has changed: a warning with --allow-other-writers, else an error of class
 * SL_EXIT_VERIFICATION. */
bool sl_outside_judge(sl_load *load, sl_error *error);

#endif
