/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of servers, and dumps that a server is too old for. */
#include "unit.h"

#include "restore/dump.h"

static sl_server server_of(const char *version) {
    sl_server server = {0};
    snprintf(server.version, sizeof server.version, "%s", version);
    return server;
}

TEST(versions_are_compared_by_their_numbers) {
    static const struct {
        const char *version;
        bool at_least; /* 5.3 */
    } rows[] = {{"5.3.0", true},  {"5.10.1", true},  {"6.0.5", true},  {"10.0.0", true},
                {"5.2.9", false}, {"4.4.30", false}, {"3.6.8", false}, {"", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_server server = server_of(rows[i].version);
        assert_int_equal(sl_server_at_least(&server, 5, 3), rows[i].at_least);
    }
}

TEST(a_dump_is_refused_by_a_server_that_is_too_old) {
    bson_t none = BSON_INITIALIZER,
           *clustered = unit_keep_bson(BCON_NEW("clusteredIndex", "{", "}"));
    sl_namespace items[] = {
        {.database = "d", .collection = "plain", .options = &none},
        {.database = "d", .collection = "t", .options = &none, .kind = SL_NAMESPACE_TIME_SERIES},
        {.database = "d", .collection = "c", .options = clustered}};
    const sl_dump dump = {.items = items, .count = 3};
    sl_server old = server_of("4.4.2"), middle = server_of("5.0.9"), new = server_of("5.3.1");
    sl_error error = {0};
    assert_true(sl_dump_fits_server(&dump, &new, &error));
    assert_false(sl_dump_fits_server(&dump, &middle, &error));
    assert_int_equal(error.code, SL_EXIT_CLUSTER);
    assert_non_null(strstr(error.message, "d.c is a clustered collection, which needs server 5.3"));
    assert_false(sl_dump_fits_server(&dump, &old, &error));
    assert_non_null(
        strstr(error.message, "d.t is a time-series collection, which needs server 5.0"));
    assert_non_null(strstr(error.message, "this is 4.4.2"));
    items[1].left_out = items[2].left_out = true;
    assert_true(sl_dump_fits_server(&dump, &old, &error));
}
