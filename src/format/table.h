/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the table in a delimited text without schema: its delimiter, the lines before it, whether
 * its first line is a header, and the names of its columns. Private to src/format. */
#ifndef SHARDLOAD_TABLE_H
#define SHARDLOAD_TABLE_H

#include "encoding.h"
#include "format.h"
#include "head.h"
#include "notation.h"

#define SL_TABLE_NOTE_ROOM 240

typedef struct sl_table {
    sl_first_line first; /* the table's first line; `text_start` is its offset */
    uint8_t blanks;      /* fields are separated by this many blanks or more; 0: by the delimiter */
    char quote;          /* the byte that quotes fields; 0: none */
    char escape;         /* as in sl_format_options */
    const sl_notation *notation;
    const char *null; /* what stands for NULL although the notation does not know it; or NULL */
    bool cr_lines;    /* all lines of the head end in CR LF */
    char why[SL_NOTATION_WHY_ROOM];     /* what shows the notation; "": nothing */
    size_t skipped;                     /* lines before it */
    char skipped_text[SL_SKIPPED_ROOM]; /* their text, unless it was declared; printable */
    const char *advice;                 /* ends a message about the lines before it; NULL: none */
    bool header;                        /* the first line names the columns */
    bool header_assumed;                /* nothing but its place shows that it does */
    bool header_missed;                 /* none was found, where one is usual */
    bool quotes_kept;                   /* values have quotes that another table would lose */
    sl_text *names; /* unique, not empty; `count` of them. Owned, as is `memory` */
    size_t count;
    const sl_encoding *encoding; /* of lines that are shown; NULL: UTF-8 */
    char *memory;
    char note[SL_TABLE_NOTE_ROOM]; /* assumptions, for messages: "; no header: ..." or "" */
    char other;          /* a delimiter that divides the text evenly, into more columns than the
                            given one; 0: none */
    size_t other_fields; /* their number */
} sl_table;

/* Finds the table at the beginning of a text; `whole`: the head is the complete text. `encoding`
 * (or NULL): of the lines that are shown. False with error (SL_EXIT_SOURCE) if there is none. Clear
 * the table in any case. */
bool sl_table_find(const sl_format_options *options, const sl_encoding *encoding, sl_text head,
                   bool whole, sl_table *table, sl_error *error);
void sl_table_clear(sl_table *table);

/* Extends the table's first line to a complete record, which may have quoted or escaped line
 * ends. */
void sl_table_extend_first(sl_table *table, sl_text head);

/* Sets the notation: the one of the options or of a schema, or what the text shows. Where they are
 * not given, also sets delimiter and quotes (as in sl_format_options). */
void sl_table_set_notation(sl_table *table, const sl_format_options *options,
                           const sl_notation *of_schema, sl_text head, bool whole, char *delimiter,
                           char *quote);

/* Sets the names of the table's columns: unique names made from `given` or, if that is NULL or
 * empty, from the number of the column. */
bool sl_table_set_names(sl_table *table, const sl_text *given, size_t count, sl_error *error);

/* The offset after the first `count` lines of a head. */
size_t sl_after_lines(sl_text head, uint64_t count);

/* Splits a line whose fields are separated by `least` blanks or more; blanks at its ends are
 * ignored. Stores the first `limit` fields; returns their number. */
size_t sl_blanks_split(sl_text line, unsigned least, sl_text *fields, size_t limit);

/* The fields of the table's first line, without quotes. The caller frees them. NULL without
 * memory. */
sl_text *sl_table_fields(const sl_table *table, sl_error *error);

/* As sl_fields_split, by the delimiter of the table. */
size_t sl_table_split(const sl_table *table, sl_text line, sl_text *fields, size_t limit);

/* Is it one column of texts below its name? The name is a word of letters, and all lines below have
 * no delimiter, and a digit or an @. */
bool sl_is_named_column(sl_text head, bool whole);

#endif
