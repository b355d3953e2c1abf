/* SPDX-License-Identifier: Apache-2.0 */
/* ISD: the weather observations of the world's stations since 1901, as packed ASCII (NOAA/NCEI,
 * Integrated Surface Data, DS3505; format document of 12 January 2018), as ISD-Lite, and as the tables
 * called global-hourly.
 *
 * A record is a line: 105 bytes at fixed places, then sections whose lengths the record tells. The
 * tables here say which bytes are which field of the document; the formats are compiled from them.
 */
#ifndef SHARDLOAD_ISD_H
#define SHARDLOAD_ISD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/format.h>

#define SL_ISD_FIXED_BYTES 105u
#define SL_ISD_RECORD_BYTES_MAX (SL_ISD_FIXED_BYTES + 9999u)

typedef struct sl_isd_field {
    const char *path; /* in the group's document, with dots */
    char type;        /* n s m: numbers; c q f d t: text. See schemas/isd-groups.tsv */
    uint8_t offset;   /* bytes, in the group's data or in the record */
    uint8_t width;    /* bytes, at most 7 */
    bool nullable;    /* nines (for s behind a plus sign) mean that there is no value */
    uint16_t divisor; /* above 1: the value is a double */
    uint16_t factor;
} sl_isd_field;

typedef struct sl_isd_group {
    char first[4]; /* id: two letters and a digit */
    char last[4];  /* where it is another one, the groups make an array, and digits up to 9 are
                      taken whatever this says */
    const char *key;
    const sl_isd_field *fields;
    uint8_t field_count;
    uint8_t width; /* bytes behind the id */
} sl_isd_group;

/* Groups of the additional data section, in the order of their ids. */
extern const sl_isd_group sl_isd_groups[];
extern const size_t sl_isd_group_count;

/* What stands at fixed places in each record, in the document's order, without what makes `st`,
 * `ts`, `usaf`, `wban` and `position`. Its ids and key are empty. */
extern const sl_isd_group sl_isd_fixed;

extern const sl_format sl_format_isd;
extern const sl_format sl_format_isd_lite;
extern const sl_format sl_format_isd_csv;

#endif
