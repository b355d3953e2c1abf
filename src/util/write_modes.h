/* SPDX-License-Identifier: Apache-2.0 */
/* The modes of a load: how it writes a record's document (docs/modes.md). All that depends on the
 * mode is a property of its row: options and help, checks, commands, totals, summary and pages. */
#ifndef SHARDLOAD_WRITE_MODES_H
#define SHARDLOAD_WRITE_MODES_H

#include <stdbool.h>

typedef struct sl_mode_row {
    const char *name;       /* in --mode and run.json */
    const char *command;    /* of the server */
    const char *statements; /* the command's array of statements; NULL: the driver encodes it */

    bool matches;     /* writes to the stored document that the match fields identify, so a repeated
                         record is not stored twice; else each record is a new document */
    bool creates;     /* inserts a record that matches no stored document */
    bool removes;     /* removes the stored document; no document is sent */
    bool sets_fields; /* changes only the fields that the record has */
    bool must_match;  /* a record that matches no stored document is a reject */

    /* Labels of the outcomes of a document; NULL: there is no such outcome. */
    const char *inserted, *changed, *already_stored;

    /* On pages: the first words for the exit codes 0 and 1 (NULL: those of error.h); participles;
     * the sum of the outcomes. */
    const char *complete, *with_rejects, *done, *doing, *documents;
} sl_mode_row;

/* row(ID, name, help, properties...) */
/* clang-format off */
#define SL_MODE_LOADS .done = "loaded", .doing = "loading", .documents = "documents"
#define SL_MODE_UPDATES .command = "update", .statements = "updates", .matches = true,             \
        .changed = "modified", .already_stored = "unchanged", SL_MODE_LOADS
#define SL_MODES(row)                                                                              \
    row(INSERT, "insert", "insert each document",                                                  \
        .command = "insert", .creates = true, .inserted = "inserted",                              \
        .already_stored = "already stored", SL_MODE_LOADS)                                         \
    row(UPSERT, "upsert", "replace the document that matches, or insert",                          \
        .creates = true, .inserted = "inserted", SL_MODE_UPDATES)                                  \
    row(MERGE, "merge", "set the record's fields in the document that matches, or insert",         \
        .creates = true, .sets_fields = true,                                                      \
        .inserted = "inserted with the record's fields only", SL_MODE_UPDATES)                     \
    row(UPDATE, "update",                                                                          \
        "as merge, but if none matches, the record is rejected",                                   \
        .must_match = true, .sets_fields = true, SL_MODE_UPDATES)                                  \
    row(REPLACE, "replace",                                                                        \
        "replace the document that matches; if none matches, the record is rejected",              \
        .must_match = true, SL_MODE_UPDATES)                                                       \
    row(DELETE, "delete", "delete the document that matches",                                      \
        .command = "delete", .statements = "deletes", .matches = true, .removes = true,            \
        .changed = "deleted", .already_stored = "not found",                                       \
        .complete = "Everything was deleted", .with_rejects = "Deleted, with rejects",             \
        .done = "deleted", .doing = "deleting", .documents = "deleted or not found")
/* clang-format on */

#define SL_MODE_ID(id, ...) SL_MODE_##id,
typedef enum sl_mode { SL_MODES(SL_MODE_ID) SL_MODE_COUNT } sl_mode;
#undef SL_MODE_ID

/* The table, by sl_mode. */
extern const sl_mode_row sl_modes[SL_MODE_COUNT];

/* The mode of this name; SL_MODE_INSERT for NULL and for unknown names. */
sl_mode sl_mode_named(const char *name);

/* For the table of options: the names, separated by |, and a sentence for each mode. */
#define SL_MODE_CHOICE(id, mode_name, ...) "|" mode_name
#define SL_MODE_CHOICES (&(SL_MODES(SL_MODE_CHOICE))[1])
#define SL_MODE_SENTENCE(id, mode_name, help, ...) " " mode_name ": " help "."
#define SL_MODE_SENTENCES SL_MODES(SL_MODE_SENTENCE)

#endif
