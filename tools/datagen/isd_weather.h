// SPDX-License-Identifier: Apache-2.0
//
// The weather at stations and ships, and its codes in reports.
#ifndef DATAGEN_ISD_WEATHER_H
#define DATAGEN_ISD_WEATHER_H

#include "isd.h"

// The state that changes from record to record.
struct isd_weather_state {
    int32_t anomaly;  // of the temperature, tenths of a degree
    int32_t spread;   // to the dew point, tenths of a degree
    int32_t pressure; // above 1013.0 hPa, tenths
    int32_t wind;     // tenths of a metre per second
    int32_t direction;
    int32_t cover; // oktas
    int32_t snow;  // millimetres on the ground
    bool wet;
};

// The constant part.
struct isd_climate {
    int32_t mean;    // tenths of a degree
    int32_t season;  // half the difference between winter and summer
    int32_t day;     // half the difference between night and day
    int32_t warmest; // day of the year
};

// The climate at a latitude (thousandths of a degree) and an elevation (metres; 9999 when missing).
struct isd_climate isd_climate_at(int32_t latitude, int32_t elevation);

// Sets the weather of a record, whose station, position and time are set, and advances the state.
void isd_draw_weather(struct isd_weather_state *now, const struct isd_climate *climate,
                      struct rng *rng, struct isd_row *row);

// Codes of the present weather, as a person (MW) and as a machine (AW, AU) reports it, and of the
// cover of the sky (GF). The bits are random.
uint8_t isd_manual_code(const struct isd_row *row, uint32_t bits);
uint8_t isd_automated_code(const struct isd_row *row, uint32_t bits);
uint8_t isd_precipitation_code(const struct isd_row *row, uint32_t bits);
uint8_t isd_cover_code(const struct isd_row *row, uint32_t bits);

#endif
