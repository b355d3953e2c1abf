/* SPDX-License-Identifier: Apache-2.0 */
/* The format `isd-lite`: one line of 61 bytes for each hour of a station's year. Only the file name
 * identifies the station: USAF-WBAN-YEAR. */
#include "isd_plan.h"

#include "convert.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES 61u
#define NO_VALUE (-9999)

typedef enum column {
    AIR_TEMPERATURE,
    DEW_POINT,
    PRESSURE,
    WIND_DIRECTION,
    WIND_SPEED,
    SKY_COVER,
    DEPTH_1_HOUR,
    DEPTH_6_HOURS,
    COLUMNS,
} column;

/* Column k begins at byte 13 + 6k, right-justified. */
#define COLUMN_START 13u
#define COLUMN_BYTES 6u

typedef struct lite_dialect {
    char st[16];
    char file[24]; /* USAF-WBAN-YEAR */
} lite_dialect;

typedef struct hour {
    int64_t milliseconds;
    int32_t values[COLUMNS];
    bool present[COLUMNS];
} hour;

/* ---- lines ---- */

static bool read_digits(const char *digits, size_t count, unsigned *value) {
    uint64_t number;
    bool right = sl_convert_digits(digits, count, &number);
    *value = (unsigned)number;
    return right;
}

static bool read_time(const char *line, int64_t *milliseconds) {
    unsigned year, month, day, hours;
    int64_t days;
    if (!read_digits(line, 4, &year) || line[4] != ' ' || !read_digits(line + 5, 2, &month) ||
        line[7] != ' ' || !read_digits(line + 8, 2, &day) || line[10] != ' ' ||
        !read_digits(line + 11, 2, &hours) || hours > 23 || !sl_civil_days(year, month, day, &days))
        return false;
    *milliseconds = days * SL_DAY_MS + hours * (SL_DAY_MS / 24);
    return true;
}

/* Converts a right-justified integer; false when the field is not one. */
static bool read_column(const char *field, int32_t *value) {
    size_t start = 0;
    int64_t number;
    while (start < COLUMN_BYTES && field[start] == ' ')
        start++;
    bool right = sl_convert_integer(field + start, COLUMN_BYTES - start, &number);
    *value = right ? (int32_t)number : NO_VALUE;
    return right;
}

static void read_columns(const char *line, bool keep_missing, hour *h, uint64_t *malformed) {
    for (unsigned k = 0; k < COLUMNS; k++) {
        bool right = read_column(line + COLUMN_START + k * COLUMN_BYTES, &h->values[k]);
        *malformed += !right;
        h->present[k] = right && (keep_missing || h->values[k] != NO_VALUE);
    }
}

/* ---- documents ---- */

typedef struct writer {
    const sl_plan *plan;
    const hour *hour;
    uint8_t *out;
} writer;

static uint8_t *open_document(writer *w, sl_isd_key key) {
    uint8_t *start = sl_isd_put_key(w->out, &w->plan->keys[key]);
    w->out = sl_bson_begin(start);
    return start;
}

static void put_double(writer *w, sl_isd_key key, int32_t tenths) {
    w->out = sl_bson_put_double(sl_isd_put_key(w->out, &w->plan->keys[key]), tenths / 10.0);
}

static void put_int(writer *w, sl_isd_key key, int32_t value) {
    w->out = sl_bson_put_int32(sl_isd_put_key(w->out, &w->plan->keys[key]), value);
}

/* Writes the document `outer` with the column's value, if there is one. */
static inline __attribute__((always_inline)) void put_measure(writer *w, column k, sl_isd_key outer,
                                                              sl_isd_key inner) {
    if (!w->hour->present[k])
        return;
    uint8_t *start = open_document(w, outer);
    if (k == WIND_DIRECTION || k == SKY_COVER)
        put_int(w, inner, w->hour->values[k]);
    else
        put_double(w, inner, w->hour->values[k]);
    w->out = sl_bson_end(start, w->out);
}

static void put_wind(writer *w) {
    if (!w->hour->present[WIND_DIRECTION] && !w->hour->present[WIND_SPEED])
        return;
    uint8_t *wind = open_document(w, SL_ISD_LITE_WIND);
    put_measure(w, WIND_DIRECTION, SL_ISD_LITE_DIRECTION, SL_ISD_LITE_ANGLE);
    put_measure(w, WIND_SPEED, SL_ISD_LITE_SPEED, SL_ISD_LITE_RATE);
    w->out = sl_bson_end(wind, w->out);
}

/* A trace (-1) is stored as depth 0 and condition 2, as in the groups AA1 to AA4. */
static void put_precipitation(writer *w) {
    static const struct {
        column column;
        int32_t hours;
    } rows[] = {{DEPTH_1_HOUR, 1}, {DEPTH_6_HOURS, 6}};
    const hour *h = w->hour;
    if (!h->present[DEPTH_1_HOUR] && !h->present[DEPTH_6_HOURS])
        return;
    uint8_t *array = open_document(w, SL_ISD_LITE_PRECIPITATION);
    uint32_t index = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!h->present[rows[i].column])
            continue;
        int32_t tenths = h->values[rows[i].column];
        bool trace = tenths == -1;
        uint8_t *start = sl_isd_put_index(w->out, SL_BSON_DOCUMENT, index++);
        w->out = sl_bson_begin(start);
        put_int(w, SL_ISD_LITE_PERIOD, rows[i].hours);
        put_double(w, SL_ISD_LITE_DEPTH, trace ? 0 : tenths);
        if (trace)
            w->out =
                sl_isd_put_element(w->out, &w->plan->keys[SL_ISD_LITE_CONDITION], "2", 1, true);
        w->out = sl_bson_end(start, w->out);
    }
    w->out = sl_bson_end(array, w->out);
}

static uint8_t *put_document(const sl_plan *plan, const char *st, const hour *h, int64_t id,
                             uint8_t *start) {
    writer w = {plan, h, sl_bson_begin_with_id(start, id)};
    w.out = sl_isd_put_element(w.out, &plan->keys[SL_ISD_KEY_ST], st, strlen(st), true);
    w.out = sl_bson_put_int64(sl_isd_put_key(w.out, &plan->keys[SL_ISD_KEY_TS]), h->milliseconds);
    put_measure(&w, AIR_TEMPERATURE, SL_ISD_LITE_TEMPERATURE, SL_ISD_LITE_TEMPERATURE_VALUE);
    put_measure(&w, DEW_POINT, SL_ISD_LITE_DEW_POINT, SL_ISD_LITE_DEW_POINT_VALUE);
    put_measure(&w, PRESSURE, SL_ISD_LITE_PRESSURE, SL_ISD_LITE_PRESSURE_VALUE);
    put_wind(&w);
    put_measure(&w, SKY_COVER, SL_ISD_LITE_SKY_COVER, SL_ISD_LITE_CODE);
    put_precipitation(&w);
    return sl_bson_end(start, w.out);
}

static bool take_line(sl_isd_parser *p, const char *line, size_t length) {
    hour h;
    sl_sink *sink = p->sink;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (sl_isd_trimmed(line, length) != LINE_BYTES) {
        sl_isd_refuse(p, line, length, NULL, "the line has %zu bytes instead of %u",
                      sl_isd_trimmed(line, length), LINE_BYTES);
        return true;
    }
    if (!read_time(line, &h.milliseconds)) {
        char quoted[SL_QUOTED_ROOM];
        sl_isd_refuse(p, line, length, "date and hour", "%s is not a year, month, day and hour",
                      sl_quoted((sl_text){line, COLUMN_START}, quoted));
        return true;
    }
    read_columns(line, p->plan->keep_missing, &h, &p->counts.malformed_fields);
    if (!sl_sink_make_room(sink, p->plan->lite_bound))
        return false;
    sl_isd_keep(p, line, length,
                put_document(p->plan, ((const lite_dialect *)p->dialect)->st, &h,
                             sl_isd_line_id(p, line), sink->cursor));
    return true;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    return sl_isd_parse_lines(plan, dialect, block, sink, counts, take_line);
}

/* ---- sources ---- */

static bool looks_like_record(sl_text line) {
    int64_t milliseconds;
    if (line.length > 0 && line.bytes[line.length - 1] == '\r')
        line.length--;
    return line.length == LINE_BYTES && read_time(line.bytes, &milliseconds);
}

static const char name_form[] = "******-*****-****"; /* * is a letter or a digit */

static bool has_form(const char *file) {
    for (size_t i = 0; name_form[i]; i++) {
        bool alphanumeric =
            (file[i] >= '0' && file[i] <= '9') || (file[i] >= 'A' && file[i] <= 'Z');
        if (name_form[i] == '*' ? !alphanumeric : file[i] != '-')
            return false;
    }
    return true;
}

/* Reads the station from a file name, which must begin with USAF-WBAN-YEAR; or, for a file of
 * rejects, with a number of six digits before it. */
static bool read_name(const char *name, lite_dialect *dialect) {
    const char *file = sl_base_name(name);
    if (!has_form(file) && strspn(file, "0123456789") == 6 && file[6] == '-')
        file += 7;
    if (!has_form(file))
        return false;
    bool has_usaf = memcmp(file, "999999", 6) != 0;
    snprintf(dialect->st, sizeof dialect->st, has_usaf ? "u%.6s" : "w%.5s",
             has_usaf ? file : file + 7);
    snprintf(dialect->file, sizeof dialect->file, "%.*s", (int)(sizeof name_form - 1), file);
    return true;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole, sl_dialect **out,
                  sl_error *error) {
    sl_text record;
    lite_dialect found;
    if (!sl_isd_plan_fits(plan, error))
        return false;
    if (!sl_isd_sniff_lines(head, whole, looks_like_record,
                            "61 bytes that begin with year, month, day and hour", &record, error))
        return sl_error_prefix(error, "this is not ISD-Lite");
    if (!read_name(name, &found))
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "the station of ISD-Lite data is only in the file's name, and this name does not begin "
            "with USAF-WBAN-YEAR, as 029070-99999-1901.gz does");
    lite_dialect *dialect = malloc(sizeof *dialect);
    if (!dialect)
        return sl_error_memory(error, "looking at a source");
    *dialect = found;
    *out = (sl_dialect *)dialect;
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    snprintf(out, room, "hourly weather, lines of 61 bytes; station and year %s",
             ((const lite_dialect *)dialect)->file);
    return out;
}

const sl_format sl_format_isd_lite = {
    .name = "isd-lite",
    .summary = "hourly weather of NOAA's ISD-Lite, one station and year in each file",
    .kind = "hourly weather",
    SL_ISD_FUNCTIONS,
};
