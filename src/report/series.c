/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the series of a load: chooses the points that become borders, and the totals at each.
 * Records are untrusted, so points whose time does not advance are skipped, and totals that fall
 * are corrected. */
#include "series.h"

#include <string.h>

#include "lookup.h"

#include "scale.h"

/* Minimum interval between two borders. */
#define INTERVAL_SECONDS 0.5

static const char *const fixed[SL_SERIES_FIXED] = {"documents", "textBytes", "bsonBytes",
                                                   "storedBytes"};

/* Finds the number of shards and the names of stages. Returns the last time in seconds. */
static double survey(const bson_t *record, sl_series *series) {
    double last = 0;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);) {
        bson_t inner;
        bson_iter_t at;
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        last = seconds > last ? seconds : last;
        sl_look_inside(&walk.item, "shardDocuments", &inner);
        uint32_t shards = bson_count_keys(&inner);
        if (shards > series->shards)
            series->shards = shards < SL_SERIES_SHARDS_MAX ? shards : SL_SERIES_SHARDS_MAX;
        if (series->stages == 0 && sl_look_inside(&walk.item, "workerSeconds", &inner) &&
            bson_iter_init(&at, &inner)) {
            while (series->stages < SL_SERIES_STAGES_MAX && bson_iter_next(&at))
                series->stage_names[series->stages++] = bson_iter_key(&at);
        }
    }
    return last;
}

/* Sets a total, which never falls. */
static void put(sl_series *series, size_t column, double value) {
    double *values = series->columns[column];
    double before = series->intervals ? values[series->intervals - 1] : 0;
    values[series->intervals] = value > before ? value : before;
}

static void take(sl_series *series, const bson_t *point, double seconds) {
    bson_t inner;
    bson_iter_t at;
    series->borders[series->intervals] = seconds;
    for (size_t i = 0; i < SL_SERIES_FIXED; i++)
        put(series, i, sl_look_amount(point, fixed[i], 0));
    sl_look_inside(point, "workerSeconds", &inner);
    for (size_t i = 0; i < series->stages; i++) {
        bool found = bson_iter_init_find(&at, &inner, series->stage_names[i]);
        put(series, sl_series_stage(series, i), found ? sl_value_number(&at) : 0);
    }
    sl_look_inside(point, "shardDocuments", &inner);
    bool more = bson_iter_init(&at, &inner);
    for (size_t i = 0; i < series->shards; i++) {
        more = more && bson_iter_next(&at);
        put(series, sl_series_shard(series, i), more ? sl_value_number(&at) : 0);
    }
}

sl_series sl_series_read(sl_page *page, const bson_t *record, size_t most) {
    sl_series series = {0};
    double span = survey(record, &series);
    double least = span / (double)(most ? most : 1);
    if (least < INTERVAL_SECONDS)
        least = INTERVAL_SECONDS;
    if (span < 2 * INTERVAL_SECONDS)
        least = span / 2;
    size_t columns = SL_SERIES_FIXED + series.stages + series.shards;
    size_t room = (size_t)(span > 0 ? span / least : 0) + 3;
    series.borders = sl_page_memory(page, room * sizeof(double));
    series.columns = sl_page_memory(page, columns * sizeof(double *));
    if (!(span > 0) || !series.borders || !series.columns)
        return series;
    for (size_t i = 0; i < columns; i++) {
        if (!(series.columns[i] = sl_page_memory(page, room * sizeof(double))))
            return series;
    }
    double border = 0;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);) {
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        if (!(seconds > border))
            continue;
        /* A point soon after a border is skipped; the last point of the series replaces it. */
        bool soon = seconds - border < least * (1 - 1e-3);
        if (soon && seconds < span)
            continue;
        if (series.intervals + 2 < room &&
            !(soon && series.intervals > 0 && seconds - border < least / 2)) {
            series.intervals++;
            border = seconds;
        }
        take(&series, &walk.item, seconds);
    }
    return series;
}

double sl_series_rate(const sl_series *series, size_t column, size_t interval) {
    const double *values = series->columns[column];
    double seconds = series->borders[interval + 1] - series->borders[interval];
    double rate = seconds > 0 ? (values[interval + 1] - values[interval]) / seconds : 0;
    return rate <= SL_VALUE_MAX ? rate : 0;
}

void sl_series_curve(sl_page *page, sl_curves *curves, const char *name, const sl_series *series,
                     size_t column, double offset) {
    sl_curve *curve = sl_page_curve(page, curves, name, series->intervals);
    if (!curve)
        return;
    for (size_t i = 0; i <= series->intervals; i++)
        curve->x[i] = series->borders[i] + offset;
    for (size_t i = 0; i < series->intervals; i++)
        curve->y[i] = sl_series_rate(series, column, i);
}

const char *sl_series_step(sl_page *page, const sl_series *series) {
    char human[SL_HUMAN_ROOM];
    double span = series->intervals ? series->borders[series->intervals] : 0;
    return sl_page_text(
        page, "%s",
        sl_human_seconds(series->intervals ? span / (double)series->intervals : 0, human));
}
