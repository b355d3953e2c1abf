/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the columns of delimited sources without schema, inferred from a sample of all sources
 * of the job: the beginning of each, and blocks spread over those that can be read at any position.
 * The same sources give the same types. A resumed load takes the types from its journal. */
#ifndef SHARDLOAD_TYPES_H
#define SHARDLOAD_TYPES_H

#include "job.h"

#include "format/typing.h"

/* The plan of the format `delimited`, if it infers types; else NULL. */
sl_plan *sl_types_plan(const sl_job *job);
/* The columns whose types are inferred. */
sl_typing_walk sl_types_columns(const sl_job *job);

/* Each function does nothing for sources whose types are not inferred. */

/* Adds the first bytes of a source to the sample. */
bool sl_types_add_head(const sl_job *job, sl_job_source *source, sl_text head, bool whole,
                       sl_error *error);
/* Drops the samples of all sources with the same columns. */
void sl_types_forget(const sl_job *job, const sl_job_source *source);
/* Completes the sample, decides, and gives all sources their types. If job->again is set
 * afterwards, nothing has been inferred: the caller reads the sources again and calls it again. */
bool sl_types_infer(sl_job *job, sl_error *error);
/* Gives the columns of all sources the types that have been decided. */
bool sl_types_apply(const sl_job *job, sl_error *error);
/* Compares the types with those that the columns have in the collection: those that the registry
 * lists, and, of other columns, those of a sample of the documents, unless `comparing`. Takes the
 * type of the collection for each column whose sampled values it stores without loss. If a column
 * has values of another kind, or has been stored with several kinds, the sources are refused
 * (SL_EXIT_SOURCE) unless `comparing`, which keeps the inferred type. Changes nothing in the
 * registry. A collection that does not exist has no types. */
bool sl_types_adopt(sl_job *job, const sl_destination *destination, bool comparing,
                    sl_error *error);
/* Reports the columns that are stored under other names than those in the header. */
void sl_types_log_names(const sl_job *job);
/* Warns of fields of JSON and BSON documents with other types than the collection has, and of
 * records of MOT and ISD with other fields. */
bool sl_types_compare_fields(sl_job *job, const sl_destination *destination, sl_error *error);

/* Adds the types of this load to those of the collection, before the first document, and reports
 * columns with other names, as above, that the collection does not have yet. `read_only`: only
 * reports. False with error (SL_EXIT_SOURCE) if a load that began at the same time has added
 * others. */
bool sl_types_record(const sl_job *job, const sl_destination *destination, bool read_only,
                     sl_error *error);

/* Gives the entry of an archive its types. Entries whose columns were not in the sample are text,
 * with a warning. Any thread. */
bool sl_types_apply_to_entry(sl_job *job, const sl_source_block *block, sl_dialect *dialect,
                             sl_error *error);

/* Appends the array "types": for each set of columns the number of sampled records, names and
 * types. */
void sl_types_append(const sl_job *job, bson_t *document);
/* Takes the types from a document of sl_types_append; without types, all columns are text. */
bool sl_types_restore(sl_job *job, const bson_t *document, sl_error *error);

/* Writes "types inferred from 2,832 sampled records: 96 numbers, 2 dates"; "" if none are. Returns
 * out. */
#define SL_TYPES_SUMMARY_ROOM 300
const char *sl_types_summary(const sl_job *job, char out[SL_TYPES_SUMMARY_ROOM]);

/* Warns of text columns that only a few values keep from having a type, and of those whose values
 * may be dates or numbers in more than one way. */
void sl_types_log_doubts(const sl_job *job);
/* Logs the summary, unless it is empty, and warnings. */
void sl_types_log(const sl_job *job);

/* The records that were sampled for the types of a source; 0 if they are not inferred. */
uint64_t sl_types_sampled_of(const sl_job *job, const sl_job_source *source);
/* A hash of the names and inferred types of a source's columns; 0 if they are not inferred. */
uint64_t sl_types_hash(const sl_job *job, const sl_job_source *source);

#endif
