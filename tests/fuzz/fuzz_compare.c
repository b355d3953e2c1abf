/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the comparison of a load's documents with those that a server returns: arbitrary
 * documents, in any order, against a generated sequence. Each expected document is reported as
 * missing or different, or is found; each returned document is equal, or reported as different or
 * extra; and every difference has a description. */
#include "documents.h"
#include "send/duplicates.h"

#define EXPECTED_MAX 8u
#define FOUND_MAX 2000u

typedef struct seen {
    size_t missing, different, extra;
    const uint8_t *last; /* the expected document that was reported last */
} seen;

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    seen *all = context;
    char words[400];
    require(expected || finding == SL_EXTRA, "only an extra document was not expected");
    require((found == NULL) == (finding == SL_MISSING), "only a missing document was not found");
    if (expected) {
        require(!all->last || expected > all->last, "each document is reported once, in order");
        all->last = expected;
    }
    if (finding == SL_DIFFERENT) {
        sl_difference(expected, found, words, sizeof words);
        require(words[0], "a difference has a description");
        CHECK_TEXT(words);
        sl_difference(expected, found, words, 5);
        require(memchr(words, '\0', 5) != NULL, "a truncated description is NUL-terminated");
    }
    all->missing += finding == SL_MISSING;
    all->different += finding == SL_DIFFERENT;
    all->extra += finding == SL_EXTRA;
}

/* Appends documents with ascending ids. Returns their number. */
static size_t make_expected(input *in, bson_t *all) {
    int64_t id = (int64_t)(int8_t)take_byte(in);
    size_t count = take_byte(in) % (EXPECTED_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        uint8_t step = take_byte(in);
        bson_t document = BSON_INITIALIZER, inner;
        BSON_APPEND_INT64(&document, "_id", id);
        BSON_APPEND_INT32(&document, "m", step);
        BSON_APPEND_UTF8(&document, "s", "text");
        BSON_APPEND_DOCUMENT_BEGIN(&document, "w", &inner);
        BSON_APPEND_DOUBLE(&inner, "t", step / 10.0);
        bson_append_document_end(&document, &inner);
        BSON_APPEND_DOCUMENT(all, "", &document);
        bson_destroy(&document);
        id += 1 + step % 4;
    }
    return count;
}

/* Concatenates the documents of an array. */
static uint8_t *concatenate(const bson_t *all, const uint8_t **end) {
    bson_iter_t iter;
    uint8_t *bytes = malloc(all->len), *at = bytes;
    require(bytes && bson_iter_init(&iter, all), "allocation succeeds");
    while (bson_iter_next(&iter)) {
        const uint8_t *document;
        uint32_t length;
        bson_iter_document(&iter, &length, &document);
        memcpy(at, document, length);
        at += length;
    }
    *end = at;
    return bytes;
}

/* Passes a selection of the expected documents to the comparison. Returns their number. */
static size_t find_some(input *in, const bson_t *all, sl_comparison *comparison) {
    bson_iter_t iter;
    size_t found = 0;
    for (bool more = bson_iter_init(&iter, all); more && bson_iter_next(&iter);) {
        bson_t view;
        const uint8_t *document;
        uint32_t length;
        bson_iter_document(&iter, &length, &document);
        require(bson_init_static(&view, document, length), "a document can be read");
        if (take_byte(in) & 1) {
            sl_compare_found(comparison, &view);
            found++;
        }
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    uint8_t flags = begin(&in, data, size);
    bson_t all = BSON_INITIALIZER;
    const uint8_t *end;
    size_t expected = make_expected(&in, &all), found = 0;
    uint8_t *bytes = concatenate(&all, &end);
    seen seen = {0};
    sl_comparison comparison = {
        .expected = bytes, .end = end, .report = on_finding, .context = &seen};
    if (flags & 2)
        found = find_some(&in, &all, &comparison);
    for (; in.at < in.end && found < FOUND_MAX; found++) {
        sl_compare_found(&comparison, take_document(&in));
        release_document(&in);
    }
    if (flags & 4)
        sl_compare_clear(&comparison); /* the scan failed */
    else
        sl_compare_end(&comparison);
    require(comparison.held == NULL, "no document stays allocated");
    require(seen.missing + seen.different <= expected, "an expected document is reported once");
    require(seen.different + seen.extra <= found, "a returned document is reported once");
    if (!(flags & 4))
        require(expected - seen.missing + seen.extra == found,
                "expected - missing = found - extra = equal + different");
    free(bytes);
    bson_destroy(&all);
    return 0;
}
