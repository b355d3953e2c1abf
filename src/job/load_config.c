/* SPDX-License-Identifier: Apache-2.0 */
/* Values derived from the parameters of a load. */
#include "load_config.h"

#include <stdio.h>
#include <string.h>

#include "format/head.h"
#include "util/md5.h"

#define BATCH_BYTES_LEAST ((size_t)1 << 20)

size_t sl_load_batch_room(const sl_load_config *config, uint32_t shards) {
    size_t whole = config->batch_bytes;
    size_t share = whole / shards;
    if (share < BATCH_BYTES_LEAST)
        share = BATCH_BYTES_LEAST;
    return share < whole ? share : whole;
}

static void append_schema(bson_t *options, const char *text) {
    uint8_t digest[SL_MD5_BYTES];
    char hex[2 * SL_MD5_BYTES + 1] = "none";
    if (text) {
        sl_md5 md5;
        sl_md5_begin(&md5);
        sl_md5_add(&md5, text, strlen(text));
        sl_md5_end(&md5, digest);
        for (size_t i = 0; i < SL_MD5_BYTES; i++)
            snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
    BSON_APPEND_UTF8(options, "schema", hex);
}

void sl_load_append_options(const sl_load_config *config, bson_t *options) {
    const sl_format_options *format = &config->format_options;
    BSON_APPEND_UTF8(options, "format", config->format);
    append_schema(options, format->schema_text);
    BSON_APPEND_UTF8(options, "names", format->long_names ? "long" : "short");
    BSON_APPEND_UTF8(options, "encoding", format->latin1 ? "latin-1" : "utf-8");
    BSON_APPEND_UTF8(options, "trim", format->trim ? "yes" : "no");
    BSON_APPEND_UTF8(options, "quotedLines", format->quoted_lines ? "yes" : "auto");
    const char escape[] = {format->escape, '\0'};
    BSON_APPEND_UTF8(options, "escape", format->escape ? escape : "none");
    const char delimiter[] = {format->delimiter, '\0'}, quote[] = {format->quote, '\0'};
    BSON_APPEND_UTF8(options, "delimiter", delimiter); /* also not in old journals */
    BSON_APPEND_UTF8(options, "quote", format->quote == SL_QUOTE_NONE ? "none" : quote);
    static const char *const headers[] = {"auto", "yes", "no"};
    char lines[24];
    snprintf(lines, sizeof lines, "%llu", (unsigned long long)format->skip_lines);
    BSON_APPEND_UTF8(options, "header", headers[format->header]);
    BSON_APPEND_UTF8(options, "columns", format->columns ? format->columns : "");
    BSON_APPEND_UTF8(options, "skip-lines", lines);
    BSON_APPEND_UTF8(options, "ragged", format->pad ? "pad" : "reject");
    BSON_APPEND_UTF8(options, "types", format->infer_types ? "auto" : "text");
    if (config->embed_field) {
        BSON_APPEND_UTF8(options, "embed", config->embed_field);
        BSON_APPEND_UTF8(options, "on", config->embed_on);
    }
    BSON_APPEND_UTF8(options, "missing", format->keep_missing ? "raw" : "omit");
    /* Journals of earlier versions lack these fields; a missing field counts as empty. */
    bool inserts = format->mode == SL_MODE_INSERT;
    BSON_APPEND_UTF8(options, "id-field", format->id_fields ? format->id_fields : "");
    BSON_APPEND_UTF8(options, "mode", inserts ? "" : sl_mode_names[format->mode]);
    BSON_APPEND_UTF8(options, "match-fields", format->match_fields ? format->match_fields : "");
}

bool sl_load_open_connection(const sl_load_config *config, sl_access access,
                             const char *application, unsigned pool_size,
                             sl_connection **connection, sl_error *error) {
    return sl_connection_open(&(sl_connection_options){.uri = config->uri,
                                                       .application = application,
                                                       .pool_size = pool_size,
                                                       .timeout_seconds = config->timeout_seconds,
                                                       .wait_seconds = config->wait_seconds,
                                                       .writes = access == SL_FOR_WRITING},
                              connection, error);
}
