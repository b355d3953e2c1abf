/* SPDX-License-Identifier: Apache-2.0 */
/* Text that cannot be split into records. Errors are of class SL_EXIT_SOURCE. */
#ifndef SHARDLOAD_LINE_ENDS_H
#define SHARDLOAD_LINE_ENDS_H

#include "job.h"

/* If the lines of a source end in CR alone, declares that, and replaces the CRs in its head. In
 * archives such lines are not supported. */
void sl_line_ends_detect(const sl_job *job, size_t index, char *head, size_t length);
/* Does a source with unsupported line ends contain NUL bytes? Then it is a binary file, which is
 * skipped like other files without text if --skip-other is given. */
bool sl_line_ends_is_binary(sl_text head);
/* Sets the error for a reject with `misread`: the parser cannot find the records after it. Returns
 * false. Any thread. */
bool sl_line_ends_error(const sl_job *job, const sl_source_block *block, const sl_reject *reject,
                        sl_error *error);
/* Warns of a record that may hold other records (sl_sink.doubt); of the first ones only. Any
 * thread. */
void sl_line_ends_doubt(sl_job *job, const sl_source_block *block, const sl_reject *record);

#endif
