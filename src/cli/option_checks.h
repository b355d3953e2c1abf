/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options that are more than a word or a number: checked, and read. */
#ifndef SHARDLOAD_OPTION_CHECKS_H
#define SHARDLOAD_OPTION_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include <bson/bson.h>

#define SL_THREADS_MAX 1024
#define SL_BATCH_SIZE_MAX 100000

/* The key of an index or of sharding that an option's text gives: an object with at least one field,
 * each a direction or a kind of index. NULL when it is none; else destroy it. */
bson_t *sl_option_key(const char *text);

#define SL_PARTS_MAX 9999
/* Reads "K/N" of --part. False when it is none. */
bool sl_option_parse_part(const char *text, unsigned *part, unsigned *parts);

/* The share, above 0 and up to 1, that "5%" or "0.05" stands for; 0 when it is neither. */
double sl_option_share(const char *text);

/* For sl_option_row.check: true, or false with the problem in words, to follow the option's name. */
bool sl_check_key(const char *text, char *problem, size_t room);
bool sl_check_shard_key(const char *text, char *problem, size_t room);
bool sl_check_sink(const char *text, char *problem, size_t room);
bool sl_check_database(const char *text, char *problem, size_t room);
bool sl_check_collection(const char *text, char *problem, size_t room);
bool sl_check_part(const char *text, char *problem, size_t room);
bool sl_check_shard_names(const char *text, char *problem, size_t room);
bool sl_check_skew(const char *text, char *problem, size_t room);
bool sl_check_share(const char *text, char *problem, size_t room);
bool sl_check_thread_counts(const char *text, char *problem, size_t room);
bool sl_check_batch_sizes(const char *text, char *problem, size_t room);
bool sl_check_compressors(const char *text, char *problem, size_t room);
bool sl_check_routes(const char *text, char *problem, size_t room);
bool sl_check_write_concerns(const char *text, char *problem, size_t room);

#endif
