// SPDX-License-Identifier: Apache-2.0
//
// A car's sensor log (OBD-II) as CSV of 40 columns, a row a second, in the layout of phone loggers: "-"
// stands for a missing value.
#include "rows.h"

enum { COLUMNS = 40, DAY = 16340 }; // the 27th of September 2014

// A column: its typical value and its range in hundredths; 0 is a column without values.
static const struct column {
    const char *name;
    int32_t middle, range;
} columns[COLUMNS] = {
    {"Device Time", 0, 0},
    {"GPS Time", 0, 0},
    {"Longitude", 0, 0},
    {"Latitude", 0, 0},
    {"GPS Speed (Meters/second)", 1400, 900},
    {"Horizontal Dilution of Precision", 800, 400},
    {"Altitude", 18000, 3000},
    {"Bearing", 18000, 17900},
    {"G(x)", 10, 300},
    {"G(y)", 480, 300},
    {"G(z)", 860, 200},
    {"G(calibrated)", 2, 10},
    {"Engine Load(%)", 3500, 3000},
    {"Engine Coolant Temperature(\302\260C)", 8800, 400},
    {"Intake Manifold Pressure(kPa)", 5500, 3000},
    {"Engine RPM(rpm)", 180000, 100000},
    {"Mass Air Flow Rate(g/s)", 1200, 900},
    {"Timing Advance(\302\260)", 1500, 1000},
    {"Intake Air Temperature(\302\260C)", 3700, 500},
    {"Fuel trim bank 1 sensor 1(%)", -100, 300},
    {"Fuel trim bank 1 sensor 2(%)", 9900, 50},
    {"Fuel trim bank 1 sensor 3(%)", 0, 0},
    {"Fuel trim bank 1 sensor 4(%)", 0, 0},
    {"Speed (OBD)(km/h)", 6000, 5000},
    {"Throttle Position(Manifold)(%)", 2200, 1500},
    {"Accelerator PedalPosition D(%)", 1900, 1400},
    {"Ambient air temp(\302\260C)", 2100, 200},
    {"Barometric pressure (from vehicle)(kPa)", 9900, 100},
    {"Commanded Equivalence Ratio(lambda)", 100, 5},
    {"Catalyst Temperature (Bank 1 Sensor 1)(\302\260C)", 52000, 15000},
    {"Distance travelled since codes cleared(km)", 812300, 100},
    {"Fuel Level (From Engine ECU)(%)", 4600, 300},
    {"Fuel Rail Pressure(kPa)", 0, 0},
    {"Fuel used (trip)(l)", 320, 300},
    {"Horsepower (At the wheels)(hp)", 3100, 3000},
    {"Kilometers Per Litre(Instant)(kpl)", 1300, 1100},
    {"O2 Volts Bank 1 sensor 1(V)", 45, 40},
    {"Torque(Nm)", 8900, 7000},
    {"Turbo Boost & Vacuum Gauge(psi)", -500, 500},
    {"Voltage (Control Module)(V)", 1390, 40},
};

// A value changes by steps every few seconds, as sensors that are read in turn do.
static int64_t value_of(struct drawer *drawer, const struct column *column, uint64_t number,
                        uint32_t index) {
    drawer_start(drawer, (number / (1 + index % 4)) * COLUMNS + index, 3);
    return column->middle + (int64_t)drawer_below(drawer, (uint32_t)column->range * 2) -
           column->range;
}

static char *put_reading(struct drawer *drawer, uint64_t number, char *p) {
    uint32_t second = (uint32_t)(number % 86400);
    p = put_date(p, DAY + (int64_t)(number / 86400));
    p = put(p, " %02u:%02u:%02u.%03u", second / 3600, second / 60 % 60, second % 60,
            470 + (uint32_t)(number % 11));
    for (uint32_t i = 1; i < COLUMNS; i++) {
        *p++ = ',';
        p = columns[i].range == 0 ? put(p, "-")
                                  : put_hundredths(p, value_of(drawer, &columns[i], number, i));
    }
    return put(p, "\n");
}

static char *put_names(char *p) {
    for (uint32_t i = 0; i < COLUMNS; i++) {
        p = put(p, "%s%s", i > 0 ? "," : "", columns[i].name);
    }
    return put(p, "\n");
}

const struct format sensors_format = {
    .name = "sensors",
    .summary = "a car's sensor log as CSV",
    .help = "  A row a second, 40 columns; schemas/obd.yaml names the columns of the suite "
            "statistics.\n",
    .check = rows_check,
    .write = rows_write,
    .put_header = put_names,
    .put = put_reading,
};
