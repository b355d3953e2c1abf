/* SPDX-License-Identifier: Apache-2.0 */
/* The match fields of a load with another mode than insert. Two conditions make such a load
 * correct, and are checked before it changes anything:
 *
 * - The fields contain the shard key. Then the router sends a statement to the one shard that can
 * hold the document. Otherwise the router would refuse the statement, or send it to all shards, and
 * an upsert could store a second document of the same fields on another shard.
 * - The fields contain _id, or all fields of a unique index. Then one document at most matches.
 *   Otherwise a delete that is sent twice would remove two documents, and two upserts at the same
 *   time would insert two. */
#include <stdio.h>
#include <string.h>

#include "collection.h"
#include "internal.h"

static bool contains(const char *const *fields, size_t count, const char *field) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i], field) == 0)
            return true;
    }
    return false;
}

/* Writes the fields of the key that are not among `fields`, separated by commas. Returns their
 * number. */
static size_t lacking(const bson_t *key, const char *const *fields, size_t count, char *out,
                      size_t room) {
    bson_iter_t iter;
    size_t lacks = 0, used = 0;
    *out = '\0';
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        if (contains(fields, count, bson_iter_key(&iter)))
            continue;
        if (used < room)
            used += (size_t)snprintf(out + used, room - used, "%s%s", lacks ? "," : "",
                                     bson_iter_key(&iter));
        lacks++;
    }
    return lacks;
}

/* The fields as they are given to --match-fields. */
static char *list(const char *const *fields, size_t count, char *out, size_t room) {
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? "," : "", fields[i]);
    return out;
}

static bool check_shard_key(const sl_target *target, const bson_t *key, const char *const *fields,
                            size_t count, sl_error *error) {
    char lacks[300], given[300];
    if (!key || lacking(key, fields, count, lacks, sizeof lacks) == 0)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%.255s.%.255s is sharded by a key with %s, which is not among the fields "
                        "that match, %s: without it the shard of a document is not known. Add it: "
                        "--match-fields %s,%s",
                        target->database, target->collection, lacks,
                        list(fields, count, given, sizeof given), given, lacks);
}

/* Does the index compare strings in the same way as the statements? Statements use the collation of
 * the collection, which is that of its index _id_. Without a collation they compare bytes, and any
 * unique index suffices. */
static bool is_comparable(const bson_t *index, const bson_t *by_id) {
    bson_t own, collation;
    return !sl_look_inside(by_id, "collation", &collation) ||
           (sl_look_inside(index, "collation", &own) && bson_equal(&own, &collation));
}

/* Does the index allow one document of these fields only? `by_id`: the index _id_. */
static bool identifies(const bson_t *index, const bson_t *by_id, const char *const *fields,
                       size_t count) {
    bson_t key;
    char lacks[300];
    return sl_look_flag(index, "unique") && !sl_look_flag(index, "sparse") &&
           !bson_has_field(index, "partialFilterExpression") && is_comparable(index, by_id) &&
           sl_look_inside(index, "key", &key) &&
           lacking(&key, fields, count, lacks, sizeof lacks) == 0;
}

static bool has_unique_index(sl_connection *connection, const sl_target *target,
                             const char *const *fields, size_t count, bool *has, sl_error *error) {
    bson_t indexes, by_id = BSON_INITIALIZER;
    *has = false;
    bool ok = sl_collection_indexes(connection, target, &indexes, error);
    for (sl_walk walk = sl_walk_of(&indexes); sl_walk_next(&walk);) {
        if (strcmp(sl_look_string(&walk.item, "name"), "_id_") == 0)
            bson_concat(&by_id, &walk.item);
    }
    for (sl_walk walk = sl_walk_of(&indexes); !*has && sl_walk_next(&walk);)
        *has = identifies(&walk.item, &by_id, fields, count);
    bson_destroy(&by_id);
    bson_destroy(&indexes);
    return ok;
}

bool sl_check_match(sl_connection *connection, const sl_target *target, bool must_exist,
                    const char *const *fields, size_t count, sl_error *error) {
    sl_sharding sharding;
    bool exists, unique = contains(fields, count, "_id");
    char given[300];
    if (!sl_target_exists(connection, target, &exists, error))
        return false;
    if (!exists && must_exist)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%.255s.%.255s does not exist: there are no documents to match",
                            target->database, target->collection);
    exists = exists && !target->drop;
    if (!sl_sharding_read(connection, target, &sharding, error)) {
        sl_sharding_clear(&sharding);
        return false;
    }
    const bson_t *key = exists && sharding.sharded ? &sharding.key : target->shard_key;
    bool ok = check_shard_key(target, key, fields, count, error);
    sl_sharding_clear(&sharding);
    if (!ok || unique)
        return ok;
    if (exists && !has_unique_index(connection, target, fields, count, &unique, error))
        return false;
    return unique ||
           sl_error_set(
               error, SL_EXIT_USAGE,
               "--match-fields %s: %.255s.%.255s %s, so several documents could match, and "
               "a batch that is sent again after a failure could change a second document. "
               "Match by _id, or create a unique index of these fields first",
               list(fields, count, given, sizeof given), target->database, target->collection,
               exists ? "has no unique index of these fields" : "is new");
}
