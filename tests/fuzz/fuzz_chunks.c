/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the chunk map. The input holds the config servers' documents (shards, the collection's
 * entry, its chunks), then documents to be routed. An accepted map has an owner for every id, which
 * is the one that a linear search of the chunks finds. The ids of a range can be assigned to any
 * shard by splitting and moving chunks. Each shard's address becomes a URI or is refused. */
#include "cluster/internal.h"
#include "documents.h"

#define SHARDS_MAX 8u
#define IDS 16u

static void check_addresses(const sl_topology *topology) {
    static mongoc_uri_t *like;
    if (!like &&
        !(like = mongoc_uri_new("mongodb://u:p@h/?authSource=a&ssl=true&compressors=zlib")))
        abort();
    for (size_t i = 0; i < topology->count && i < SHARDS_MAX; i++) {
        require(topology->shards[i].name && topology->shards[i].host, "a shard has name and host");
        mongoc_uri_t *uri = sl_uri_of_server(topology->shards[i].host, like, NULL);
        require(!uri || mongoc_uri_get_hosts(uri), "an address has a host");
        mongoc_uri_destroy(uri);
    }
}

static void check_plan(const sl_shard_map *map, const sl_topology *topology, int64_t first,
                       int64_t last, uint32_t shard) {
    sl_chunk_steps steps = {0};
    sl_error error = {0};
    const sl_range range = {.minimum = first < last ? first : last,
                            .maximum = first < last ? last : first,
                            .shard = shard % (uint32_t)topology->count};
    if (!sl_plan_range(map, &range, &steps, &error))
        check_error(&error);
    for (size_t i = 0; i < steps.count; i++)
        require(!steps.items[i].move || steps.items[i].shard == range.shard,
                "chunks move to the shard of the range");
    free(steps.items);
}

static void check_by_id(const sl_shard_map *map, const sl_topology *topology, input *in) {
    int64_t before = 0;
    require(map->count > 0 && map->chunks[0].first == INT64_MIN, "the first id has an owner");
    for (size_t i = 1; i < map->count; i++)
        require(map->chunks[i - 1].first < map->chunks[i].first, "chunks are in order");
    for (unsigned i = 0; i < IDS; i++) {
        int64_t id = i == 0 ? INT64_MIN : INT64_MAX;
        if (i >= 2)
            take_bytes(in, &id, sizeof id);
        uint32_t shard = sl_shard_map_owner(map, id);
        require(shard < topology->count, "an owner exists");
        size_t at = 0;
        while (at + 1 < map->count && map->chunks[at + 1].first <= id)
            at++;
        require(shard == map->chunks[at].shard, "the owner is that of the id's chunk");
        check_plan(map, topology, before, id, i);
        before = id;
    }
}

static void check_by_key(const sl_shard_map *map, const sl_topology *topology, input *in) {
    static const size_t documents = 4;
    in->raw = false; /* the loader routes only valid documents, its own */
    sl_owner_cache cache = {0};
    for (size_t i = 0; i < documents; i++) {
        sl_owner_cache fresh = {0};
        uint32_t shard = 0, again = 0;
        const uint8_t *document = bson_get_data(take_document(in));
        bool known = sl_shard_map_owner_of(map, document, &cache, &shard);
        require(known == sl_shard_map_owner_of(map, document, &fresh, &again) && shard == again,
                "the cache does not change the owner");
        require(!known || shard < topology->count, "an owner exists");
        release_document(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    begin(&in, data, size);
    const bson_t *shards = take_document(&in), *collection = take_document(&in),
                 *chunks = take_document(&in);
    sl_error error = {0};
    sl_topology *topology = calloc(1, sizeof *topology);
    sl_sharding sharding = {0};
    sl_shard_map *map = NULL;
    require(topology && sl_topology_add_shards(topology, shards, &error), "allocation succeeds");
    require(topology->count <= bson_count_keys(shards), "a document is at most one shard");
    check_addresses(topology);
    bson_copy_to(collection, &sharding.document);
    sl_sharding_parse(&sharding);
    if (sharding.sharded && topology->count > 0) {
        if (!sl_shard_map_of(&sharding, chunks, topology, &map, &error))
            check_error(&error);
        else if (sl_shard_map_route(map) == SL_ROUTE_BY_ID)
            check_by_id(map, topology, &in);
        else if (sl_shard_map_route(map) == SL_ROUTE_BY_KEY)
            check_by_key(map, topology, &in);
        require(map != NULL || error.code != SL_EXIT_OK, "the result is a map or an error");
    }
    sl_shard_map_destroy(map);
    sl_sharding_clear(&sharding);
    sl_topology_destroy(topology);
    return finish(&in);
}
