/* SPDX-License-Identifier: Apache-2.0 */
/* Option values that are more than a word or a number: shard keys, shares, lists. Each has a check
 * and, where needed, a parser. */
#ifndef SHARDLOAD_OPTION_CHECKS_H
#define SHARDLOAD_OPTION_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#define SL_THREADS_MAX 1024
#define SL_BATCH_SIZE_MAX 100000

/* Parses an index: {key: {...}} with options, from the same text or from a key alone. The key of an
 * index is a JSON object with at least one field, each a direction or an index type ("hashed").
 * Destroy the result. NULL when the text is not an index. */
bson_t *sl_option_index(const char *text);
/* Parses a shard key: a key, or {"key": {...}, "unique": true}. The result is the key. */
bson_t *sl_option_shard_key(const char *text, bool *unique);

#define SL_PARTS_MAX 9999
/* Parses "K/N" of --part, with 1 <= K <= N <= SL_PARTS_MAX. False for other text. */
bool sl_option_parse_part(const char *text, unsigned *part, unsigned *parts);

/* Parses a share such as "5%" or "0.05" to a fraction above 0 and below 1; returns 0 for other
 * text. */
double sl_option_share(const char *text);

/* Parses "SECONDS[:ORDINAL]" to a timestamp, seconds << 32 | ordinal. False for other text. */
bool sl_option_parse_timestamp(const char *text, uint64_t *timestamp);

/* Checks for sl_option_row.check. */
bool sl_check_timestamp(const char *text, char *problem, size_t room);
bool sl_check_index(const char *text, char *problem, size_t room);
bool sl_check_key_names(const char *text, char *problem, size_t room);
bool sl_check_shard_key(const char *text, char *problem, size_t room);
bool sl_check_sink(const char *text, char *problem, size_t room);
bool sl_check_database(const char *text, char *problem, size_t room);
bool sl_check_collection(const char *text, char *problem, size_t room);
bool sl_check_embed(const char *text, char *problem, size_t room);
bool sl_check_part(const char *text, char *problem, size_t room);
bool sl_check_shard_names(const char *text, char *problem, size_t room);
/* `auto`, or the name of a delimiter; sl_option_delimiter returns it (0: auto). */
bool sl_check_delimiter(const char *text, char *problem, size_t room);
char sl_option_delimiter(const char *text);

/* `auto`, `none` or one byte; sl_option_quote returns it (head.h: SL_QUOTE_AUTO). */
/* auto, text, and NAME=TYPE,... sl_option_declared returns the latter, or NULL. */
bool sl_check_types(const char *text, char *problem, size_t room);
const char *sl_option_declared(const char *text);
bool sl_check_quote(const char *text, char *problem, size_t room);
char sl_option_quote(const char *text);

/* `none`, `backslash` or one byte; sl_option_escape returns it (0: none). */
bool sl_check_escape(const char *text, char *problem, size_t room);
char sl_option_escape(const char *text);
bool sl_check_skew(const char *text, char *problem, size_t room);
bool sl_check_share(const char *text, char *problem, size_t room);
bool sl_check_thread_counts(const char *text, char *problem, size_t room);
bool sl_check_batch_sizes(const char *text, char *problem, size_t room);
bool sl_check_compressors(const char *text, char *problem, size_t room);
bool sl_check_routes(const char *text, char *problem, size_t room);
bool sl_check_write_concerns(const char *text, char *problem, size_t room);

struct sl_program;

/* The option that a mistyped name may mean, or NULL: the one with the least edit distance
 * (insertions, deletions, replacements), if that is at most a third of the name's length. */
const char *sl_option_nearest(const struct sl_program *program, const char *name, size_t length);
/* Warns of each environment variable whose name is a mistyped one of an option. */
void sl_option_check_variables(const struct sl_program *program);

#endif
