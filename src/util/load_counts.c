/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of write modes, counts and stages. */
#include "load_counts.h"

#include <stdio.h>
#include <string.h>

#define MODE(id, mode_name, help, ...) [SL_MODE_##id] = {.name = mode_name, __VA_ARGS__},
const sl_mode_row sl_modes[SL_MODE_COUNT] = {SL_MODES(MODE)};

sl_mode sl_mode_named(const char *name) {
    for (sl_mode mode = 0; name && mode < SL_MODE_COUNT; mode++) {
        if (strcmp(sl_modes[mode].name, name) == 0)
            return mode;
    }
    return SL_MODE_INSERT;
}

#define ROW(place, field, ...) {{__VA_ARGS__}, offsetof(sl_load_counts, field)},
const sl_load_count sl_load_count_table[] = {SL_ALL_COUNTS(ROW){.offset = SIZE_MAX}};

uint64_t sl_count_value(const sl_load_counts *counts, const sl_load_count *one) {
    return *(const uint64_t *)((const char *)counts + one->offset);
}

static const char *outcome_of(const sl_count_row *row, const sl_mode_row *mode) {
    return *(const char *const *)((const char *)mode + row->outcome);
}

bool sl_count_is_shown(const sl_count_row *row, const sl_mode_row *mode, unsigned where,
                       bool positive) {
    bool labelled = row->label || row->outcome > 0;
    if (!labelled || (row->hidden & where))
        return false;
    if (row->outcome == 0)
        return positive || (row->zero_shown & where);
    return positive || (outcome_of(row, mode) && ((row->zero_shown & where) || mode->matches));
}

const char *sl_count_label(const sl_count_row *row, const sl_mode_row *mode, bool one,
                           char room[SL_COUNT_LABEL_ROOM]) {
    if (row->outcome == 0)
        return strchr(row->label, '[') ? sl_plural_text(one, row->label, false, room) : row->label;
    const char *label = outcome_of(row, mode);
    bool first = label == (mode->inserted ? mode->inserted : mode->changed);
    snprintf(room, SL_COUNT_LABEL_ROOM, "%c %s", first ? '=' : '+', label ? label : row->key);
    return room;
}

#define KEY(id, key, metric, name) key,
#define METRIC(id, key, metric, name) metric,
#define NAME(id, key, metric, name) name,
const char *const sl_stage_keys[STAGES] = {SL_STAGES(KEY)};
const char *const sl_stage_metrics[STAGES] = {SL_STAGES(METRIC)};
const char *const sl_stage_names[STAGES] = {SL_STAGES(NAME)};

const char *sl_stage_name_of(const char *key) {
    for (unsigned k = 0; k < STAGES; k++) {
        if (strcmp(sl_stage_keys[k], key) == 0)
            return sl_stage_names[k];
    }
    return key;
}
