/* SPDX-License-Identifier: Apache-2.0 */
/* Reads stored documents of the target in the order of their _id.
 *
 * A scan is one find sorted by _id, for which every collection has an index. If the shard key is
 * not _id, the find goes to all shards and the router merges the results. Read concern majority and
 * the primary are always set, whatever the URI says: an election must not roll back a document that
 * a scan has returned. */
#include "internal.h"

/* More documents than fit into a reply, so that only the limit of 16 MiB applies. */
#define DOCUMENTS_PER_REPLY 100000

static bool is_transient(const bson_error_t *why) {
    if (why->domain != MONGOC_ERROR_SERVER)
        return why->domain == MONGOC_ERROR_STREAM || why->domain == MONGOC_ERROR_SERVER_SELECTION ||
               (why->domain == MONGOC_ERROR_CLIENT &&
                why->code == MONGOC_ERROR_CLIENT_AUTHENTICATE); /* authentication has succeeded
                                                                   before, so a failure may be
                                                                   temporary */
    /* A cursor is lost when its server ends, or when chunks of the collection are moved. */
    static const uint32_t of_cursors[] = {43 /* CursorNotFound */, 175 /* QueryPlanKilled */,
                                          237 /* CursorKilled */};
    for (size_t i = 0; i < sizeof of_cursors / sizeof of_cursors[0]; i++) {
        if (why->code == of_cursors[i])
            return true;
    }
    return sl_code_is_transient((int32_t)why->code);
}

sl_scan_result sl_scan(mongoc_client_t *client, const sl_target *target, const bson_t *filter,
                       bool ids_only, void (*each)(void *context, const bson_t *document),
                       void *context, sl_error *error) {
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "batchSize",
                               BCON_INT32(DOCUMENTS_PER_REPLY), "readConcern", "{", "level",
                               BCON_UTF8("majority"), "}");
    if (ids_only)
        BCON_APPEND(options, "projection", "{", "_id", BCON_INT32(1), "}");
    sl_target_append_uuid(target, options);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, target->database, target->collection);
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(collection, filter, options, primary);
    const bson_t *document;
    sl_cursor_reading reading = {.cursor = cursor};
    while (sl_cursor_next(&reading, &document))
        each(context, document);

    bson_error_t why = {0};
    sl_scan_result result = SL_SCAN_DONE;
    if (sl_cursor_failed(&reading, &why)) {
        if (why.domain == MONGOC_ERROR_SERVER && why.code == SL_CODE_COLLECTION_UUID_MISMATCH)
            sl_target_replaced(client, target, error);
        else
            sl_error_from_driver(error, "reading documents back", &why);
        result = is_transient(&why) ? SL_SCAN_AGAIN : SL_SCAN_FAILED;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_read_prefs_destroy(primary);
    mongoc_collection_destroy(collection);
    bson_destroy(options);
    return result;
}

sl_scan_result sl_scan_range(mongoc_client_t *client, const sl_target *target, int64_t minimum,
                             int64_t maximum, void (*each)(void *context, const bson_t *document),
                             void *context, sl_error *error) {
    bson_t *filter = sl_range_filter(minimum, maximum);
    sl_scan_result result = sl_scan(client, target, filter, false, each, context, error);
    bson_destroy(filter);
    return result;
}
