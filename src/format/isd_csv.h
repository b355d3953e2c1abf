/* SPDX-License-Identifier: Apache-2.0 */
/* Global-hourly tables: a row's cells, and how they become a packed record. Private to isd-csv. */
#ifndef SHARDLOAD_ISD_CSV_H
#define SHARDLOAD_ISD_CSV_H

#include "isd_plan.h"

#define COLUMNS_MAX 512u
#define FIELDS_MAX 16u /* of a cell */
#define ROW_BYTES_MAX 16384u

typedef enum column_role {
    ROLE_UNKNOWN,
    ROLE_STATION,
    ROLE_DATE,
    ROLE_LATITUDE,
    ROLE_LONGITUDE,
    ROLE_ELEVATION,
    ROLE_NAME,
    ROLE_FIXED, /* fields at fixed places of the record */
    ROLE_GROUP,
    ROLE_REMARKS, /* sections as they are in the record, in its order */
    ROLE_QUALITY,
    ROLE_ORIGINAL,
} column_role;

typedef struct column {
    sl_text name; /* in the header */
    column_role role;
    uint8_t at; /* in the record */
    uint8_t field_count;
    const sl_isd_field *fields[FIELDS_MAX];
} column;

struct sl_dialect {
    char *header; /* with its line end; owned */
    size_t header_length;
    size_t header_text; /* its length without */
    uint64_t body_offset;
    size_t column_count;
    size_t group_count; /* columns of groups */
    column columns[];
};

/* Bytes put behind each other. */
typedef struct builder {
    char *to, *limit;
    bool full;
} builder;

/* A row while it becomes a record. */
typedef struct row {
    char record[SL_ISD_RECORD_BYTES_MAX + SL_SLACK];
    char surplus[SL_ISD_RECORD_BYTES_MAX];
    char scratch[ROW_BYTES_MAX + SL_SLACK];
    sl_text cells[COLUMNS_MAX];
    sl_text name; /* of the station */
    int64_t milliseconds;
    double place[2]; /* longitude, latitude */
    bool has_place[2];
    builder sections; /* in the record */
    builder rest;     /* in the surplus */
} row;

/* Cuts a line into cells without their quotes, of which it stores COLUMNS_MAX at most; doubled
 * quotes become single ones in `scratch`, which has room for the line. Returns how many cells there
 * are, or SIZE_MAX when a quote is not closed where a cell ends. */
size_t sl_isd_csv_split(const char *line, size_t length, sl_text *cells, char *scratch);

/* Makes a record of the cells, of which there are as many as columns. Its first *end bytes are to
 * be believed. False when the record cannot do without one of them: then *refused is its column, or
 * NULL when the record would be too long. */
bool sl_isd_csv_pack(row *r, const sl_dialect *dialect, size_t *end, size_t *length,
                     const column **refused);

#endif
