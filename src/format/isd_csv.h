/* SPDX-License-Identifier: Apache-2.0 */
/* Global-hourly tables: splits a row into cells, and packs them into a record. Private to
 * isd-csv. */
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
    ROLE_FIXED, /* fields at fixed positions of the record */
    ROLE_GROUP,
    ROLE_REMARKS, /* this and the next two: sections of the record, in its order */
    ROLE_QUALITY,
    ROLE_ORIGINAL,
} column_role;

typedef struct column {
    sl_text name; /* in the header */
    column_role role;
    uint8_t at; /* offset in the record */
    uint8_t field_count;
    bool identifies; /* a table with this column is global-hourly */
    const sl_isd_field *fields[FIELDS_MAX];
} column;

struct sl_dialect {
    char *header; /* with its line end; owned */
    size_t header_length;
    size_t header_text; /* length without line end */
    uint64_t body_offset;
    size_t column_count;
    size_t group_count; /* number of columns that are groups */
    column columns[];
};

/* A buffer that bytes are appended to. */
typedef struct builder {
    char *to, *limit;
    bool full;
} builder;

/* A row and the record assembled from it. */
typedef struct row {
    char record[SL_ISD_RECORD_BYTES_MAX + SL_SLACK];
    char surplus[SL_ISD_RECORD_BYTES_MAX];
    char scratch[ROW_BYTES_MAX + SL_SLACK];
    sl_text cells[COLUMNS_MAX];
    sl_text name; /* of the station */
    int64_t milliseconds;
    double position[2]; /* longitude, latitude */
    bool has_position[2];
    builder sections; /* appends to the record */
    builder unparsed; /* appends to the surplus */
} row;

/* Splits a line into cells without their quotes, and stores the first COLUMNS_MAX. Cells with
 * doubled quotes are copied to `scratch`, which has room for the line, with single ones. Returns
 * the number of cells, or SIZE_MAX when a closing quote is missing or not at a cell's end. */
size_t sl_isd_csv_split(const char *line, size_t length, sl_text *cells, char *scratch);

/* Assembles a record from the cells, one per column. Its first *end bytes are sections, the other
 * bytes are surplus (unparsed cells). False when a required cell is invalid: *refused is its
 * column; or when the record would be too long: *refused is NULL. */
bool sl_isd_csv_pack(row *r, const sl_dialect *dialect, size_t *end, size_t *length,
                     const column **refused);

#endif
