/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what `restore` reads besides documents. The first byte chooses: metadata of a collection,
 * whose text gives options and indexes or an error that names it; or a file of shard keys. */
#include "restore/dump.h"
#include "restore/restoring.h"
#include "util/text.h"

#include "check.h"

static void read_metadata(const char *text, size_t length) {
    sl_namespace item = {.collection = strdup("c"),
                         .options = bson_new(),
                         .later = bson_new(),
                         .indexes = bson_new()};
    sl_error error = {0};
    char *copy = copy_of(text, length, SL_SLACK, '}');
    if (sl_metadata_parse(&item, "name", copy, length, &error)) {
        require(item.index_count == bson_count_keys(item.indexes), "indexes are counted");
        require(bson_validate(item.options, BSON_VALIDATE_NONE, NULL) &&
                    bson_validate(item.later, BSON_VALIDATE_NONE, NULL) &&
                    bson_validate(item.indexes, BSON_VALIDATE_NONE, NULL),
                "options and indexes are BSON");
        require(!bson_has_field(item.options, "validator"), "the validator is kept apart");
    } else {
        require(error.code == SL_EXIT_SOURCE && strncmp(error.message, "name", 4) == 0,
                "an error names the metadata");
    }
    free(copy);
    free(item.collection);
    free(item.conversions);
    bson_destroy(item.options);
    bson_destroy(item.later);
    bson_destroy(item.indexes);
}

static void read_keys(const char *text, size_t length) {
    sl_shard_keys keys = {0};
    sl_error error = {0};
    if (sl_shard_keys_parse(&keys, "keys.yaml", (sl_text){text, length}, &error)) {
        for (size_t i = 0; i < keys.count; i++)
            require(strchr(keys.items[i].name, '.') && !bson_empty(keys.items[i].key),
                    "an entry has a namespace and a key");
    } else {
        require(error.code == SL_EXIT_USAGE && strncmp(error.message, "keys.yaml", 9) == 0,
                "an error names the file");
    }
    sl_shard_keys_clear(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    (data[0] % 2 ? read_keys : read_metadata)((const char *)data + 1, size - 1);
    return 0;
}
