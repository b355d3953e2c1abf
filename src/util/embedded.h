/* SPDX-License-Identifier: Apache-2.0 */
/* Text files that are built into the programs: schemas/, queries/ and models/. */
#ifndef SHARDLOAD_EMBEDDED_H
#define SHARDLOAD_EMBEDDED_H

#include <stddef.h>

typedef struct sl_embedded {
    const char *name; /* file name without folder; NULL ends a table */
    const char *text; /* NUL-terminated */
    size_t length;    /* bytes without that NUL */
} sl_embedded;

extern const sl_embedded sl_embedded_schemas[];
extern const sl_embedded sl_embedded_queries[];
extern const sl_embedded sl_embedded_models[];

#endif
