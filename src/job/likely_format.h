/* SPDX-License-Identifier: Apache-2.0 */
/* The format that a text was probably meant to have, if it fits none: determines the order of the
 * reasons in a message. */
#ifndef SHARDLOAD_LIKELY_FORMAT_H
#define SHARDLOAD_LIKELY_FORMAT_H

#include "util/error.h"
#include "util/text.h"

/* A format that does not fit, and why. */
typedef struct sl_misfit {
    const char *format; /* its name in --format */
    sl_error why;
    unsigned weight; /* its likelihood; set by sl_misfits_sort */
} sl_misfit;

/* Orders the misfits, the likeliest format first, by the name of the source and the first bytes of
 * its text. */
void sl_misfits_sort(sl_misfit *misfits, size_t count, const char *name, sl_text head);

#endif
