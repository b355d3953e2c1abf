/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of the records to embed, as the file "sources" (JSON) records them: of each the
 * fingerprint and the identity, as in a journal, and a hash of all their text. It is written before
 * "complete", so every store has one. */
#ifndef SHARDLOAD_EMBED_SOURCES_H
#define SHARDLOAD_EMBED_SOURCES_H

#include "job/job.h"
#include "ledger/earlier_run.h"

/* Writes "sources" into the folder of the store. `text`: the sum of sl_divided_text. */
bool sl_embed_sources_write(const char *folder, const sl_job *records, uint64_t text,
                            sl_error *error);

/* Did the load with this run record read the sources of the job `records`, and are they unchanged
 * since the job has opened them? An error if not. */
bool sl_embed_sources_were_read(const sl_job *records, const bson_t *run_record, sl_error *error);

/* Compares the sources with those of the store. `*same`: they are equal; otherwise `difference`
 * describes how they differ. With `exact`, files with another inode or ctime count as different;
 * otherwise their text is read and compared, as that of the main sources is. */
bool sl_embed_sources_compare(const char *folder, sl_job *records, bool exact, bool *same,
                              sl_sources_difference *difference, sl_error *error);

#endif
