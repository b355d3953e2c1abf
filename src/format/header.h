/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the first line of a table is a header, by comparing it with the lines below it.
 * Private to src/format. */
#ifndef SHARDLOAD_HEADER_H
#define SHARDLOAD_HEADER_H

#include "table.h"

/* Reads the line at *at, without its line end, and moves *at after it; includes the following lines
 * if a quoted field continues there. False at the end of the head, and for a last line without line
 * end unless the head is the `whole` text. */
bool sl_table_next_line(const sl_table *table, sl_text head, bool whole, size_t *at, sl_text *line);
bool sl_line_is_blank(sl_text line);

/* As sl_header_split, by the delimiter of the table. */
size_t sl_table_split(const sl_table *table, sl_text line, sl_text *fields, size_t limit);

/* What the lines below the first one show. */
typedef struct sl_evidence {
    size_t lines, fitting; /* not blank; with as many fields as the first line */
    size_t longer;         /* with more fields */
    bool contrast;         /* a column has a word in the first line and typed values below it */
    bool typed;            /* a column holds typed values below the first line */
    unsigned repeated;     /* values of the first line that are repeated in their columns */
    bool years;            /* the first line names years, and their columns hold other values */
} sl_evidence;

/* Compares the table's first line, whose fields are `first`, with the lines after it. False without
 * memory. */
bool sl_evidence_collect(const sl_table *table, sl_text head, bool whole, const sl_text *first,
                         sl_evidence *found, sl_error *error);

/* Does one of the fields look typed? */
bool sl_fields_have_typed(const sl_text *fields, size_t count);

/* Is the first line a header? */
bool sl_evidence_of_header(const sl_table *table, const sl_text *fields, const sl_evidence *found);

#endif
