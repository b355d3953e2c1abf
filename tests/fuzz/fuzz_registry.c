/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reading of the registry of sources: the reply of a find, and an array of its
 * documents. Each entry stays new or gets a valid number; reading the reply twice gives the same
 * entries; a refusal has an error message. */
#include "util/document_id.h"

#include "cluster/registry.h"
#include "documents.h"

#define SOURCES 4u

static const char *const fingerprints[SOURCES] = {"b", "d", "a", "counter"};

static void reset(sl_registry_entry entries[SOURCES]) {
    memset(entries, 0, SOURCES * sizeof *entries);
    for (size_t i = 0; i < SOURCES; i++) {
        entries[i].fingerprint = fingerprints[i];
        entries[i].name = "name";
    }
}

static void fuzz_reply(const sl_registry *registry, input *in) {
    sl_registry_entry first[SOURCES], second[SOURCES];
    sl_error error = {0};
    const bson_t *reply = take_document(in);
    reset(first);
    reset(second);
    bool ok = sl_registry_fill(registry, reply, first, SOURCES, &error);
    if (!ok)
        check_error(&error);
    for (size_t i = 0; i < SOURCES; i++) {
        const sl_registry_entry *entry = &first[i];
        CHECK_TEXT(entry->when);
        require(entry->number <= SL_SOURCE_NUMBER_MAX, "a number is valid");
        require((entry->number == 0) == (entry->state == SL_SOURCE_NEW),
                "a source has a number unless it is new");
        require(registry->part > 0 || (entry->parts_loaded == 0 && !entry->part_loaded),
                "a load without parts has no loaded parts");
        require(!entry->part_loaded || entry->parts_loaded > 0, "a loaded part is counted");
    }
    require(sl_registry_fill(registry, reply, second, SOURCES, &error) == ok &&
                memcmp(first, second, sizeof first) == 0,
            "reading the reply twice gives the same entries");
}

static void fuzz_numbers(input *in) {
    sl_number_list list = {.count = 0};
    size_t documents = 0;
    for (sl_walk walk = sl_walk_of(take_document(in)); sl_walk_next(&walk); documents++)
        require(sl_registry_add_number(&list, &walk.item), "allocation succeeds");
    require(list.count <= documents, "a document has at most one number");
    for (size_t i = 0; i < list.count; i++)
        require(list.items[i] >= 1 && list.items[i] <= SL_SOURCE_NUMBER_MAX, "a number is valid");
    free(list.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    uint8_t flags = begin(&in, data, size);
    sl_registry registry = {.database = (char *)(uintptr_t) "db",
                            .collection = (char *)(uintptr_t) "c.sources"};
    if (flags & 2)
        sl_registry_set_part(&registry, "3", 2, false);
    fuzz_reply(&registry, &in);
    fuzz_numbers(&in);
    return finish(&in);
}
