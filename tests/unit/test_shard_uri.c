/* SPDX-License-Identifier: Apache-2.0 */
/* The URI of a shard has the shard's hosts and replica set, and all other options of the routers'
 * URI. */
#include "cluster/internal.h"
#include "unit.h"

static void destroy_uri(void *uri) {
    mongoc_uri_destroy(uri);
}

/* Valid until the end of the test. */
static const mongoc_uri_t *shard_uri(const char *host, const char *like) {
    sl_shard shard = {.name = (char[]){"s1"}, .host = unit_keep(strdup(host))};
    bson_error_t why;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(like, &why);
    assert_non_null(uri);
    mongoc_uri_t *made = sl_shard_uri(&shard, uri);
    mongoc_uri_destroy(uri);
    unit_release_later(destroy_uri, made);
    return made;
}

TEST(hosts_and_replica_set_are_those_of_the_shard) {
    const mongoc_uri_t *made = shard_uri("s1/a.example:27018,b.example:27019,[::1]:27020",
                                         "mongodb://router1,router2/?directConnection=false"
                                         "&replicaSet=routers&readPreference=secondary");
    static const char *const expected[] = {"a.example:27018", "b.example:27019", "[::1]:27020"};
    size_t count = 0;
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(made); host; host = host->next) {
        assert_true(count < 3);
        assert_string_equal(host->host_and_port, expected[count++]);
    }
    assert_int_equal(count, 3);
    assert_string_equal(mongoc_uri_get_replica_set(made), "s1");
    assert_false(mongoc_uri_has_option(made, MONGOC_URI_DIRECTCONNECTION));
}

TEST(the_user_is_the_same) {
    const mongoc_uri_t *made =
        shard_uri("s1/a:1", "mongodb://j%40ne:p%2Fss@router/?authSource=users"
                            "&authMechanism=SCRAM-SHA-256");
    assert_string_equal(mongoc_uri_get_username(made), "j@ne");
    assert_string_equal(mongoc_uri_get_password(made), "p/ss");
    assert_string_equal(mongoc_uri_get_auth_source(made), "users");
    assert_string_equal(mongoc_uri_get_auth_mechanism(made), "SCRAM-SHA-256");
    made = shard_uri("s1/a:1", "mongodb://jane:secret@router/library");
    assert_string_equal(mongoc_uri_get_auth_source(made), "library");
    made = shard_uri("s1/a:1", "mongodb://jane:secret@router/");
    assert_string_equal(mongoc_uri_get_auth_source(made), "admin");
}

TEST(certificates_compressors_and_timeouts_are_the_same) {
    const mongoc_uri_t *made = shard_uri(
        "s1/a:1", "mongodb://router/?tls=true&tlsCAFile=/ca.pem&tlsCertificateKeyFile=/me.pem"
                  "&tlsCertificateKeyFilePassword=x&tlsAllowInvalidHostnames=true"
                  "&authMechanism=MONGODB-X509&compressors=zstd,snappy&zlibCompressionLevel=3"
                  "&serverSelectionTimeoutMS=1234");
    assert_true(mongoc_uri_get_tls(made));
    static const char *const texts[][2] = {{MONGOC_URI_TLSCAFILE, "/ca.pem"},
                                           {MONGOC_URI_TLSCERTIFICATEKEYFILE, "/me.pem"},
                                           {MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD, "x"}};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(mongoc_uri_get_option_as_utf8(made, texts[i][0], ""), texts[i][1]);
    assert_true(mongoc_uri_get_option_as_bool(made, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES, false));
    assert_string_equal(mongoc_uri_get_auth_mechanism(made), "MONGODB-X509");
    assert_string_equal(mongoc_uri_get_auth_source(made), "$external");
    assert_int_equal(mongoc_uri_get_option_as_int32(made, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 0),
                     1234);
    assert_true(bson_has_field(mongoc_uri_get_compressors(made), "snappy"));
    assert_int_equal(bson_count_keys(mongoc_uri_get_compressors(made)), 2);
}

TEST(invalid_hosts_are_refused) {
    static const char *const hosts[] = {"s1/", "s1/a:99999999", ""};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        assert_null(shard_uri(hosts[i], "mongodb://router/"));
}
