/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespaces of a dump are restored, and under which names: --ns-include, --ns-exclude,
 * --ns-from and --ns-to, with the patterns of mongorestore.
 *
 * In a pattern * matches any text, including dots and the empty text, and \ makes the next
 * character an ordinary one. In --ns-from and --ns-to $name$ also matches any text. The texts of
 * --ns-from are put into --ns-to: those of * in their order, those of $name$ by their names. If a
 * name can be matched in several ways, each wildcard from left to right matches the shortest
 * possible text. */
#ifndef SHARDLOAD_RESTORE_PATTERNS_H
#define SHARDLOAD_RESTORE_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

#include "dump.h"

/* Patterns as given; borrowed. from[i] and to[i] belong together. */
typedef struct sl_name_options {
    const char *const *include;
    size_t include_count; /* 0: all */
    const char *const *exclude;
    size_t exclude_count;
    const char *const *from;
    const char *const *to;
    size_t rename_count;
} sl_name_options;

/* The largest namespace that a server accepts has 255 bytes. */
#define SL_NAME_ROOM 512

/* Does the name match the pattern? */
bool sl_name_matches(const char *pattern, const char *name);

/* Checks a pair of --ns-from and --ns-to: the same numbers of *, the same names. SL_EXIT_USAGE. */
bool sl_rename_check(const char *from, const char *to, sl_error *error);
/* Writes the new name, if the name matches `from`. False if it does not match. */
bool sl_rename(const char *from, const char *to, const char *name, char out[SL_NAME_ROOM]);

/* Checks a pattern of --ns-include or --ns-exclude: it must not have too many wildcards.
 * SL_EXIT_USAGE. */
bool sl_name_pattern_check(const char *option, const char *pattern, sl_error *error);

/* Sets left_out, to_database and to_collection of all namespaces. Logs a warning for each pattern
 * that no namespace matches. SL_EXIT_USAGE if a new name is not a namespace, or two namespaces get
 * the same name. */
bool sl_names_apply(const sl_name_options *options, sl_dump *dump, sl_error *error);

#endif
