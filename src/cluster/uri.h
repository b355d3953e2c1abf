/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection string means, as the driver's own parser reads it. */
#ifndef SHARDLOAD_CLUSTER_URI_H
#define SHARDLOAD_CLUSTER_URI_H

#include <stdbool.h>

typedef struct sl_uri_facts {
    bool valid; /* the driver accepts it; otherwise no field has a meaning */
    bool tls;
    char mechanism[32];   /* of authentication; "" for the default */
    char compressors[64]; /* "snappy,zstd": those that the driver has */
} sl_uri_facts;

void sl_uri_read(const char *text, sl_uri_facts *facts);

/* The text after the first "compressors=" of a connection string; NULL if it names none. The
 * driver's parser drops compressors that it does not have, so only the text shows that one is
 * named. */
const char *sl_uri_named_compressors(const char *text);

#endif
