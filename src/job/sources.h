/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a job. */
#ifndef SHARDLOAD_SOURCES_H
#define SHARDLOAD_SOURCES_H

#include "job.h"

/* Finds the sources that the config names, recognises their formats, and leaves out repeated ones.
 * Whatever it returns, sl_job_clear closes the sources. */
bool sl_sources_open(sl_job *job, sl_error *error);
void sl_sources_close(sl_job *job);
/* Does a format recognise the only source of the config? `*other`: it has another kind of data, or
 * none (`*empty`), so that it may be left out. */
bool sl_source_is_recognised(const sl_load_config *config, bool *other, bool *empty,
                             sl_error *error);
/* The first source that is loaded; NULL if all are skipped. */
const sl_job_source *sl_sources_first(const sl_job *job);
/* What to check if all records of the first source are rejected, for messages. */
const char *sl_sources_advice(const sl_job *job);
/* NULL if no source of this format was found. */
sl_plan *sl_sources_plan(const sl_job *job, const sl_format *format);
/* Recognises a text of source `index` as one of this format, and makes the checks that all texts of
 * a load, files and archive entries, must pass. `name`: of the archive entry, or the source's
 * path. *fits false: the text has another format, `error` has the reason.
 * Any thread. */
bool sl_sources_read_text(sl_job *job, const sl_format *format, size_t index, const char *name,
                          sl_text head, bool whole, sl_dialect **dialect, bool *fits,
                          sl_error *error);
/* Parses a block of a source; as the `parse` of its format. */
bool sl_sources_parse(const sl_job *job, const sl_source_block *block, const sl_dialect *dialect,
                      sl_sink *sink, sl_parse_counts *counts);
/* The record at the beginning of the text of a source, without its line end. SL_SLACK readable
 * bytes follow the text. */
sl_text sl_sources_record(const sl_job *job, size_t index, sl_text text);

/* Programs of DOS end a text by Ctrl-Z: line ends replace it, in a text that ends there. */
void sl_sources_replace_end_mark(const sl_job *job, size_t index, sl_text text);

/* ---- the dialects of archive entries ----
 *
 * The job's entries_lock guards the entries being read. */

/* The dialect of a block's text; *dialect NULL: the block's entry is not loaded. Valid until
 * sl_sources_done_with, which must be called once for each block. Any thread. */
bool sl_sources_dialect(sl_job *job, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error);
void sl_sources_done_with(sl_job *job, const sl_source_block *block);
/* Forgets the entries that a sample has read in part, whose columns may still get other types. */
void sl_sources_forget_entries(sl_job *job);

/* If the sample for types shows quotes that the first texts did not, changes the plan so that the
 * sources are read again with them, and returns what it shows; else NULL. */
const char *sl_sources_again(const sl_job *job, sl_plan *plan);
/* Warns of quotes and escapes that the sample shows, and that are kept. */
void sl_sources_log_doubts(const sl_job *job, const sl_plan *plan);

/* The number of the line that contains this byte of a plain file; 0: not known. */
uint64_t sl_sources_line_at(const sl_job *job, size_t index, uint64_t offset);

/* Writes, as words of a shell, the options with which the rejected records of a source are read
 * like the source, also where its other records have shown this. Options that `given` contains are
 * left out. */
void sl_sources_reading_options(const sl_job *job, size_t index, const char *given, char *out,
                                size_t room);

/* ---- text that cannot be split into records; errors are of class SL_EXIT_SOURCE ---- */

/* Sets the error for a reject with `misread`: the parser cannot find the records after it. Returns
 * false. Any thread. */
bool sl_line_ends_error(const sl_job *job, const sl_source_block *block, const sl_reject *reject,
                        sl_error *error);
/* Warns of a record that may hold other records (sl_sink.doubt); of the first ones only. Any
 * thread. */
void sl_line_ends_doubt(sl_job *job, const sl_source_block *block, const sl_reject *record);

/* Writes what the text of a source is: its format and dialect, or a table of a dump, whose rows are
 * converted to tabs before they are parsed. Returns out. */
char *sl_source_describe(const sl_job *job, const sl_job_source *source, char *out, size_t room);

#endif
