/* SPDX-License-Identifier: Apache-2.0 */
/* The dialects of a load's delimited texts, which are files and entries of archives. Texts with the
 * same columns are one table, and share the byte that quotes fields. Each text is compared with all
 * texts before it: of a table divided into pieces, only the first piece may have the header.
 *
 * First the texts that can be read again are added, then sl_dialects_fix is called. From then on
 * any thread may add texts. */
#ifndef SHARDLOAD_DIALECTS_H
#define SHARDLOAD_DIALECTS_H

#include "delimited.h"

typedef struct sl_dialects sl_dialects;

bool sl_dialects_create(sl_dialects **dialects, sl_error *error);
void sl_dialects_destroy(sl_dialects *dialects); /* NULL is fine */

/* Adds a text, which begins with `head`. If its fields do not show by what they are quoted, but
 * those of another text of the table do, `*dialect` is replaced by a dialect with these quotes.
 * `name` is for messages; `entry`: the text is an archive's entry. False with error
 * (SL_EXIT_SOURCE) if the text may be a piece of another one without its header, or if texts of
 * the table have been read, and cannot be read again, without its quotes. */
bool sl_dialects_add(sl_dialects *dialects, const sl_plan *plan, const char *name, bool entry,
                     sl_text head, bool whole, sl_dialect **dialect, sl_error *error);

/* Is the text, which has not been added yet, of a table like that of an earlier text? Tables are
 * alike if they share more than two thirds of the larger one's columns, or all of the smaller one's
 * (at least three, and half of the larger one's); without names, if they have as many. With a
 * schema all are alike, and so are texts that may be pieces of one, which sl_dialects_add refuses.
 * For a table unlike all earlier ones, the result is true with a warning if a user has `named` the
 * text, else false with error (SL_EXIT_SOURCE). Both messages list the columns. */
bool sl_dialects_are_alike(sl_dialects *dialects, const sl_plan *plan, const char *name, bool named,
                           const sl_dialect *dialect, sl_error *error);

/* Have texts of this dialect's table been added before its quotes were known? False without
 * memory. */
bool sl_dialects_are_late(sl_dialects *dialects, const sl_plan *plan, const sl_dialect *dialect,
                          bool *late, sl_error *error);

/* From now on, texts that have been added are not read again. */
void sl_dialects_fix(sl_dialects *dialects);

/* ---- columns in messages ---- */

#define SL_NAMES_SHOWN 5u

typedef struct sl_column_names {
    char shown[1000]; /* "a, b"; ends in " ..." if there are more */
    size_t used, count;
} sl_column_names;

/* `as`: another name, which follows in brackets; "": none. */
void sl_column_names_add_as(sl_column_names *columns, const char *name, const char *as);
static inline void sl_column_names_add(sl_column_names *columns, const char *name) {
    sl_column_names_add_as(columns, name, "");
}

/* For messages: how to rename columns. Its %s is "embed-" or "", for --embed-schema. */
#define SL_RENAMING                                                                                \
    "by --columns, with --skip-lines 1 for the header, or by `short` in a schema (inspect "        \
    "--write-schema FILE, then --%sschema FILE). To store them as other fields, declare their "    \
    "types there"

/* Warns of columns that only `of` (`fresh`) or only `than` has; `more`: further sentences. */
void sl_columns_warn(const char *of, const char *than, const sl_column_names *fresh,
                     const sl_column_names *missing, const char *more);

#endif
