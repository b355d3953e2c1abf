/* SPDX-License-Identifier: Apache-2.0 */
/* The URI of a shard has the shard's hosts and replica set, and all other options of the routers'
 * URI. */
#include "cluster/internal.h"
#include "unit.h"

RELEASER(destroy_uri, mongoc_uri_destroy)

static sl_error error;

/* Valid until the end of the test. */
static const mongoc_uri_t *shard_uri(const char *host, const char *like) {
    bson_error_t why;
    mongoc_uri_t *uri = mongoc_uri_new_with_error(like, &why);
    assert_non_null(uri);
    mongoc_uri_t *made = sl_uri_of_server(host, uri, &error);
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

/* Text of a server that would be a part of the connection string: options, a user, more hosts. */
TEST(text_of_a_server_is_never_an_option) {
    static const char *const hosts[] = {"s1/",
                                        "s1/a:99999999",
                                        "",
                                        "s1/a:0",
                                        "s1/a:",
                                        "s1/a:1,",
                                        "s1/,a:1",
                                        "a b:1",
                                        "a:1 ",
                                        "s1/a:1/?tlsInsecure=true&appname=a",
                                        "a:1/?tlsInsecure=true",
                                        "s1/a:1?tls=false",
                                        "s1/me:secret@a:1",
                                        "s1/a:1#",
                                        "s1/%61:1",
                                        "s1/[::1:1",
                                        "s1/[g::1]:1",
                                        "s1/[::.]:1",
                                        "[:::::::::::::::::::::::::::::::::::::::::::::::::]:1",
                                        "s1/a:1,b:1/x",
                                        "s 1/a:1",
                                        "s1&tlsInsecure=true/a:1",
                                        "/a:1",
                                        "s1\n/a:1",
                                        "s1/-a:1",
                                        "/tmp/x.sock"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        assert_null(shard_uri(hosts[i], "mongodb://me:x@router/?tls=true&tlsCAFile=/ca.pem"));
        assert_int_equal(error.code, SL_EXIT_CLUSTER);
        assert_null(strchr(error.message, '\n'));
        assert_contains(error.message, "does not have the form HOST:PORT");
    }
    static const char *const accepted[] = {"s1/a.example:27018,10.0.0.1:1", "a_b-c", "[::1]:27017",
                                           "rs_0-a.b/[fe80::1.2.3.4],x:65535", "Shard01/h.:1"};
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        const mongoc_uri_t *made =
            shard_uri(accepted[i], "mongodb://me:x@router/?tls=true&tlsCAFile=/ca.pem&w=2"
                                   "&readPreference=secondary&appname=b&zlibCompressionLevel=2"
                                   "&authMechanismProperties=A:b");
        assert_non_null(made);
        assert_true(mongoc_uri_get_tls(made));
    }
}

/* ---- silent hosts ---- */

static bool is_passed_over(const char *hosts, int32_t trial_ms) {
    const mongoc_uri_t *uri = shard_uri(hosts, "mongodb://router/");
    return sl_silent_host_is_passed_over(uri, "a:1", trial_ms);
}

TEST(a_silent_host_is_passed_over_for_another_host) {
    assert_false(is_passed_over("s1/a:1,b:1", 10000));
    sl_silent_host_add("a:1");
    assert_true(is_passed_over("s1/a:1,b:1", 10000));
    assert_false(is_passed_over("s1/a:1", 10000)); /* it is the only one, so it is tried */
    assert_true(is_passed_over("s1/a:1,b:1", 10000));
    assert_false(is_passed_over("s1/a:1", -1)); /* this trial is over at once */
    assert_false(is_passed_over("s1/a:1,b:1", 10000));
    assert_true(is_passed_over("s1/a:1,b:1", 10000)); /* while another client tries it */
    sl_silent_host_add("b:1");
    assert_false(is_passed_over("s1/a:1,b:1", 10000));
    sl_silent_host_remove("b:1");
    assert_true(is_passed_over("s1/a:1,b:1", 10000));
    sl_silent_host_remove("a:1");
    assert_false(is_passed_over("s1/a:1,b:1", 10000));
}
