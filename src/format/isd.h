/* SPDX-License-Identifier: Apache-2.0 */
/* ISD: the weather observations of the world's stations since 1901, as packed ASCII (NOAA/NCEI,
 * Integrated Surface Data, DS3505; format document of 12 January 2018), as ISD-Lite, and as the
 * global-hourly tables.
 *
 * A record is a line: 105 bytes at fixed positions, then sections whose lengths the record
 * declares. The tables here map bytes to fields of the document; the formats are compiled from
 * them. */
#ifndef SHARDLOAD_ISD_H
#define SHARDLOAD_ISD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

#define SL_ISD_FIXED_BYTES 105u
#define SL_ISD_RECORD_BYTES_MAX (SL_ISD_FIXED_BYTES + 9999u)

typedef struct sl_isd_field {
    const char *path; /* in the group's document, with dots */
    char type;        /* n s m: numbers; c q f d t: text. See schemas/isd-groups.tsv */
    uint8_t offset;   /* bytes, in the group's data or in the record */
    uint8_t width;    /* bytes, at most 7 */
    bool nullable;    /* all nines (for s: after a plus sign) mean "no value" */
    uint16_t divisor; /* above 1: the value is a double */
    uint16_t factor;
} sl_isd_field;

typedef struct sl_isd_group {
    char first[4]; /* id: two letters and a digit */
    char last[4];  /* if different from `first`, the groups form an array, and any last digit from
                      that of `first` to 9 is accepted */
    const char *key;
    const sl_isd_field *fields;
    uint8_t field_count;
    uint8_t width; /* bytes after the id */
} sl_isd_group;

/* Groups of the additional data section, in the order of their ids. */
extern const sl_isd_group sl_isd_groups[];
extern const size_t sl_isd_group_count;

/* The fields at fixed positions of each record, in the document's order, except those that `st`,
 * `ts`, `usaf`, `wban` and `position` are computed from. Its ids and key are empty. */
extern const sl_isd_group sl_isd_fixed;

#endif
