/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the connection string. --uri is split only as far as the options require; the driver's
 * parser decides what it means (cluster/uri.h). Text without "://" is passed to the driver
 * unchanged. */
#include "connection_string.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/uri.h"
#include "util/text.h"

#include "secrets.h"

/* Parts of the text of --uri. */
typedef struct parts {
    sl_text scheme;   /* "mongodb://" */
    sl_text user;     /* as written, that is, percent-encoded */
    sl_text password; /* after the colon; bytes is NULL when there is no colon */
    sl_text hosts;
    sl_text path;  /* "/db", or empty */
    sl_text query; /* without the question mark */
} parts;

static bool split_uri(const char *uri, parts *p) {
    *p = (parts){.scheme = {.bytes = uri}};
    const char *rest = strstr(uri, "://");
    if (!rest)
        return false;
    rest += 3;
    p->scheme.length = (size_t)(rest - uri);
    size_t authority = strcspn(rest, "/?");
    const char *at = memrchr(rest, '@', authority);
    p->hosts = (sl_text){rest, authority};
    if (at) {
        size_t length = (size_t)(at - rest);
        const char *colon = memchr(rest, ':', length);
        p->user = (sl_text){rest, colon ? (size_t)(colon - rest) : length};
        if (colon)
            p->password = (sl_text){colon + 1, (size_t)(at - colon - 1)};
        p->hosts = (sl_text){at + 1, authority - length - 1};
    }
    rest += authority;
    p->path = (sl_text){rest, strcspn(rest, "?")};
    rest += p->path.length;
    if (*rest)
        p->query = (sl_text){rest + 1, strlen(rest + 1)};
    return true;
}

/* The new connection string. Its room is allocated once: realloc would leave copies of a
 * password. */
typedef struct writer {
    char *text;
    size_t used;
} writer;

static void put(writer *w, const char *text, size_t length) {
    if (length > 0)
        memcpy(w->text + w->used, text, length);
    w->used += length;
    w->text[w->used] = '\0';
}

static void put_encoded(writer *w, const char *text) {
    for (; *text; text++) {
        char code[4] = {*text};
        if (!isalnum((unsigned char)*text) && !strchr("-._~", *text))
            snprintf(code, sizeof code, "%%%02X", (unsigned char)*text);
        put(w, code, strlen(code));
    }
}

/* Appends an option; in a connection string the last option of a name counts. */
static void put_option(writer *w, const char *name, const char *value) {
    if (!value)
        return;
    char last = w->text[w->used - 1];
    if (last != '?' && last != '&')
        put(w, "&", 1);
    put(w, name, strlen(name));
    put(w, "=", 1);
    put_encoded(w, value);
}

/* Does the authentication mechanism need a password? The default mechanism is SCRAM. */
static bool needs_password(const sl_options *options, const sl_uri_facts *facts) {
    const char *option = sl_option_string(options, "authenticationMechanism");
    const char *name = facts->valid ? facts->mechanism : option ? option : "";
    return !*name || strncasecmp(name, "SCRAM", 5) == 0 || strcasecmp(name, "PLAIN") == 0;
}

/* Copies the given password to `secret`, or asks for one when it is empty. */
static bool copy_or_ask(const char *given, const char *whose, char secret[SL_SECRET_ROOM],
                        sl_error *error) {
    if (!*given)
        return sl_secret_ask(whose, secret, error);
    if (strlen(given) >= SL_SECRET_ROOM)
        return sl_error_set(error, SL_EXIT_USAGE, "the password of %s is longer than %d bytes",
                            whose, SL_SECRET_ROOM - 1);
    strcpy(secret, given);
    return true;
}

/* For a connection that needs no password: a password option is an error. One in the environment is
 * ignored, because it may be meant for other commands. */
static bool check_unused(const sl_options *options, const char *given_by, bool has_user,
                         sl_error *error) {
    if (!given_by || sl_option_origin_of(options, given_by) == SL_FROM_ENVIRONMENT)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        has_user ? "--%s: this authentication mechanism takes no password"
                                 : "--%s without --username: name the user it belongs to",
                        given_by);
}

/* The password of the user; `secret` stays empty when the URI contains it or none is needed. */
static bool find_password(const sl_options *options, const parts *p, const sl_uri_facts *facts,
                          char secret[SL_SECRET_ROOM], sl_error *error) {
    const char *user = sl_option_string(options, "username");
    const char *given = sl_option_string(options, "password");
    const char *file = sl_option_string(options, "password-file");
    bool has_user = user || p->user.length > 0;
    bool needed = needs_password(options, facts);
    if (given && file) {
        if (sl_option_origin_of(options, "password") ==
            sl_option_origin_of(options, "password-file"))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "give --password or --password-file, not both");
        if (sl_option_origin_of(options, "password") >
            sl_option_origin_of(options, "password-file"))
            file = NULL;
        else
            given = NULL;
    }
    if (!has_user && needed && sl_option_given(options, "authenticationMechanism"))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--authenticationMechanism %s needs a user: add --username",
                            sl_option_string(options, "authenticationMechanism"));
    if (!has_user || !needed)
        return check_unused(options,
                            file    ? "password-file"
                            : given ? "password"
                                    : NULL,
                            has_user, error);
    if (file)
        return sl_secret_read_file(file, secret, error);
    if (!given && !user && p->password.bytes)
        return true;
    char whose[400];
    snprintf(whose, sizeof whose, "%.*s at %.*s", user ? (int)strlen(user) : (int)p->user.length,
             user ? user : p->user.bytes, (int)p->hosts.length, p->hosts.bytes);
    return copy_or_ask(given ? given : "", whose, secret, error);
}

static bool find_key_password(const sl_options *options, char secret[SL_SECRET_ROOM],
                              sl_error *error) {
    const char *given = sl_option_string(options, "tlsCertificateKeyFilePassword");
    return !given || copy_or_ask(given, "the client certificate's key", secret, error);
}

/* Warns when the configuration file contains a secret and other users may read it. */
static void check_config_file(const sl_options *options, const parts *p) {
    bool in_uri =
        p->password.length > 0 || (p->query.bytes && strcasestr(p->query.bytes, "password"));
    bool secret = (in_uri && sl_option_origin_of(options, "uri") == SL_FROM_CONFIG) ||
                  sl_option_origin_of(options, "password") == SL_FROM_CONFIG ||
                  sl_option_origin_of(options, "tlsCertificateKeyFilePassword") == SL_FROM_CONFIG;
    if (secret)
        sl_secret_warn_of_readers(sl_options_config_path(options));
}

/* Refuses --wire-compression beside a different compressors= in --uri: either could be meant. */
static bool check_compression(const sl_options *options, const sl_uri_facts *facts,
                              sl_error *error) {
    const char *option = sl_option_string(options, "wire-compression");
    if (!option || !sl_uri_named_compressors(sl_option_string(options, "uri")) ||
        strcmp(facts->compressors, option) == 0)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--wire-compression %s: --uri already has compressors=%s; remove one of "
                        "them",
                        option, facts->compressors);
}

/* PLAIN sends the password unencrypted, so it needs TLS. */
static bool check_plain(const sl_options *options, const sl_uri_facts *facts, sl_error *error) {
    if (strcasecmp(facts->mechanism, "PLAIN") != 0 || facts->tls ||
        sl_option_flag(options, "plain-without-tls"))
        return true;
    return sl_error_set(
        error, SL_EXIT_USAGE,
        "authMechanism=PLAIN in --uri would send the password unencrypted: add --tls, "
        "or --plain-without-tls if the network itself is safe");
}

static void write_uri(writer *w, const sl_options *options, const parts *p, const char *password,
                      const char *key_password) {
    static const struct {
        const char *option;
        const char *name; /* in a URI */
    } texts[] = {
        {"authenticationDatabase", "authSource"},
        {"authenticationMechanism", "authMechanism"},
        {"tlsCAFile", "tlsCAFile"},
        {"tlsCertificateKeyFile", "tlsCertificateKeyFile"},
    };
    const char *user = sl_option_string(options, "username");
    put(w, p->scheme.bytes, p->scheme.length);
    if (user)
        put_encoded(w, user);
    else
        put(w, p->user.bytes, p->user.length);
    if (*password) {
        put(w, ":", 1);
        put_encoded(w, password);
    } else if (!user && p->password.bytes) {
        put(w, ":", 1);
        put(w, p->password.bytes, p->password.length);
    }
    if (user || p->user.length)
        put(w, "@", 1);
    put(w, p->hosts.bytes, p->hosts.length);
    put(w, p->path.length ? p->path.bytes : "/", p->path.length ? p->path.length : 1);
    put(w, "?", 1);
    put(w, p->query.bytes, p->query.length);
    bool tls = sl_option_flag(options, "tls") ||
               sl_option_string(options, "tlsCertificateKeyFilePassword");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *value = sl_option_string(options, texts[i].option);
        put_option(w, texts[i].name, value);
        tls = tls || (value && strncmp(texts[i].name, "tls", 3) == 0);
    }
    bool any_name = sl_option_flag(options, "tlsAllowInvalidHostnames");
    put_option(w, "tlsCertificateKeyFilePassword", *key_password ? key_password : NULL);
    put_option(w, "tlsAllowInvalidHostnames", any_name ? "true" : NULL);
    put_option(w, "tls", tls || any_name ? "true" : NULL);
    const char *compression = sl_option_string(options, "wire-compression");
    if (compression && strcmp(compression, "none") != 0 &&
        !sl_uri_named_compressors(sl_option_string(options, "uri")))
        put_option(w, "compressors", compression);
    if (w->text[w->used - 1] == '?') /* no options at all */
        w->text[--w->used] = '\0';
}

/* Makes the connection string. NULL without memory. */
static char *make_uri(const sl_options *options, const parts *p, const char *password,
                      const char *key_password) {
    static const char *const taken[] = {"uri", "username", "authenticationDatabase", "tlsCAFile",
                                        "tlsCertificateKeyFile"};
    size_t room = 512 + 3 * (strlen(password) + strlen(key_password));
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        const char *value = sl_option_string(options, taken[i]);
        room += value ? 3 * strlen(value) : 0;
    }
    writer w = {.text = calloc(1, room)};
    if (w.text)
        write_uri(&w, options, p, password, key_password);
    return w.text;
}

/* Checks the connection string that is used, as the driver reads it. */
static bool check_uri(const sl_options *options, const char *uri, sl_uri_facts *facts,
                      sl_error *error) {
    if (!uri)
        return sl_error_memory(error, "connecting");
    sl_uri_read(uri, facts);
    return !facts->valid || /* the connection reports the error */
           (check_compression(options, facts, error) && check_plain(options, facts, error));
}

bool sl_connection_string(const sl_options *options, char **uri, sl_error *error) {
    char password[SL_SECRET_ROOM] = "", key_password[SL_SECRET_ROOM] = "";
    sl_uri_facts facts;
    parts p;
    *uri = NULL;
    if (!split_uri(sl_option_string(options, "uri"), &p)) {
        *uri = strdup(sl_option_string(options, "uri"));
        return *uri || sl_error_memory(error, "connecting");
    }
    check_config_file(options, &p);
    /* Checked without the passwords too, so that none is asked for in vain. */
    char *text = make_uri(options, &p, "", "");
    bool ok = check_uri(options, text, &facts, error) &&
              find_password(options, &p, &facts, password, error) &&
              find_key_password(options, key_password, error);
    sl_secret_free(text);
    if (ok) {
        *uri = make_uri(options, &p, password, key_password);
        ok = check_uri(options, *uri, &facts, error);
        sl_options_forget_secrets(options);
    }
    if (!ok) {
        sl_secret_free(*uri);
        *uri = NULL;
    }
    explicit_bzero(password, sizeof password);
    explicit_bzero(key_password, sizeof key_password);
    return ok;
}
