/* SPDX-License-Identifier: Apache-2.0 */
/* Is the server new enough for the collections of a dump? */
#include "server_needs.h"

bool sl_dump_fits_server(const sl_dump *dump, const sl_server *server, sl_error *error) {
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        bool series = item->kind == SL_NAMESPACE_TIME_SERIES;
        bool clustered = item->options && bson_has_field(item->options, "clusteredIndex");
        unsigned minor = clustered ? 3 : 0;
        if (item->left_out || (!series && !clustered) || sl_server_at_least(server, 5, minor))
            continue;
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s.%s is a %s collection, which needs server 5.%u or later, and this "
                            "is %s; nothing was changed. Leave it out with --ns-exclude, or "
                            "restore into a newer server",
                            item->database, item->collection, series ? "time-series" : "clustered",
                            minor, server->version);
    }
    return true;
}
