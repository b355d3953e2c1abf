/* SPDX-License-Identifier: Apache-2.0 */
/* Values derived from the parameters of a load. */
#include "load_config.h"

#define BATCH_BYTES_LEAST ((size_t)1 << 20)

size_t sl_load_batch_room(const sl_load_config *config, uint32_t shards) {
    size_t whole = config->batch_bytes;
    size_t share = whole / shards;
    if (share < BATCH_BYTES_LEAST)
        share = BATCH_BYTES_LEAST;
    return share < whole ? share : whole;
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
