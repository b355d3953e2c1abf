// SPDX-License-Identifier: Apache-2.0
//
// MOT test results: the types its parts share. A record is a struct of numbers; texts are numbers
// of tables, dates are numbers of days. Layouts and frequencies follow the published files of
// 2005-2025.
#ifndef DATAGEN_MOT_H
#define DATAGEN_MOT_H

#include "output.h"
#include "random.h"

extern const struct format mot_format;

// How a dialect quotes text fields. Inside quotes a quote is written \" and nothing else is
// escaped.
enum mot_quoting { QUOTE_NEVER, QUOTE_WHEN_NEEDED, QUOTE_ALL_TEXT };

// The years a dialect's frequencies come from.
enum mot_era { ERA_2005, ERA_2015, ERA_2021, ERA_2024, ERA_COUNT };

struct mot_dialect {
    const char *name; // described in the help of mot.c
    int year;         // the default
    char delimiter;
    bool header;
    bool original;   // dialect A: one-letter codes, NULL dates and 0 for what is missing
    bool completed;  // has the 15th column, completed_date
    bool fuel_words; // some fuels are written out
    enum mot_quoting quoting;
    enum mot_era era;
    uint32_t retests; // tests in 10,000 that are re-tests
    unsigned bit;     // this dialect in a set of dialects
};

// Bits of sets of dialects.
enum {
    IN_A = 1,
    IN_B = 2,
    IN_C1 = 4,
    IN_C2 = 8,
    IN_D = 16,
    IN_E = 32,
    IN_F = 64,
    IN_G1 = 128,
    IN_G2 = 256,
    IN_TAB = 512,
    IN_COMMA = IN_C1 | IN_D | IN_E | IN_G1 | IN_G2,
    IN_NEWER = IN_B | IN_C2 | IN_F | IN_TAB | IN_COMMA // all but A
};

// Column names in order; the 15th only where a dialect has it.
enum mot_column {
    COL_TEST_ID,
    COL_VEHICLE_ID,
    COL_TEST_DATE,
    COL_CLASS,
    COL_TYPE,
    COL_RESULT,
    COL_MILEAGE,
    COL_AREA,
    COL_MAKE,
    COL_MODEL,
    COL_COLOUR,
    COL_FUEL,
    COL_CAPACITY,
    COL_FIRST_USE,
    COL_COMPLETED,
    COL_COUNT
};
extern const char *const mot_columns[COL_COUNT];

enum mot_type { TYPE_NORMAL, TYPE_RETEST, TYPE_APPEAL, TYPE_COUNT };
enum mot_result {
    RESULT_P,
    RESULT_F,
    RESULT_PRS,
    RESULT_ABA,
    RESULT_ABR,
    RESULT_ABRVE,
    RESULT_R,
    RESULT_COUNT
};
extern const char *const mot_results[RESULT_COUNT];

// The code of a test type in a dialect.
const char *mot_type_code(const struct mot_dialect *dialect, enum mot_type type);

// Fuels. The weights are cars in about 100,000 per era.
struct mot_fuel {
    const char *code;     // in the newer dialects
    const char *original; // in dialect A
    bool diesel;          // takes a diesel engine's size
    uint32_t weights[ERA_COUNT];
};
enum {
    FUEL_PETROL = 0,
    FUEL_DIESEL = 1,
    FUEL_ELECTRIC = 2,
    FUEL_HYBRID = 3,
    FUEL_HYBRID_WORDS = 4,
    FUEL_COUNT = 15
};
extern const struct mot_fuel mot_fuels[FUEL_COUNT];

// The code of a fuel in a dialect.
const char *mot_fuel_code(const struct mot_dialect *dialect, unsigned fuel);

// Every day from 1900-01-01 to two years after the data as YYYY-MM-DD, not ended, and after those the
// two impossible dates that real files hold.
enum { DAY_BYTES = 12, DAYS_MAX = 75000 }; // to the year 2102
struct mot_calendar {
    char days[DAYS_MAX][DAY_BYTES];
    int32_t count;      // of ordinary days
    int32_t year_start; // the first day of the data's year
    int32_t year_days;
};
enum { DAY_MISSING = -1 };

enum { NAME_BYTES = 56 };
struct mot_name {
    char make[NAME_BYTES], model[NAME_BYTES];
    int16_t pass_bias; // in 10,000
};

// One test. A missing number or date is -1.
struct mot_row {
    uint32_t test_id;
    uint32_t vehicle_id;
    int32_t test_day;  // of the calendar
    int32_t first_use; // of the calendar
    int32_t mileage;
    int32_t capacity;
    const struct mot_name *name;
    uint32_t second; // of the day, when the test was completed
    uint8_t class_id;
    uint8_t type;
    uint8_t result;
    uint8_t area;
    uint8_t colour;
    uint8_t fuel;
    bool repeated_header; // a stray header line precedes it
};

// ---- mot_fleet.c: the published frequencies as weighted choices and ranks ----

enum {
    POOL_SIZE = 4096,
    RANK_STEPS = 4096,
    AGE_COUNT = 101,
    MILEAGE_COUNT = 101,
    SIZE_COUNT = 1024,
    NAMES_MAX = 1 << 14,
    NAME_SLOTS = 1 << 16,
    TEXTS_MAX = 256,
    TRIMS_MAX = 256
};
enum { ENGINE_PETROL, ENGINE_DIESEL, ENGINE_SMALL, ENGINE_BIKE, ENGINE_VAN, ENGINE_COUNT };

// A test class. The group names its models in the table of models.
struct vehicle_class {
    uint8_t id;
    uint8_t engine; // cars: chosen by the fuel
    const char *group;
    uint32_t share;          // of all tests, in 100,000
    int pass_bonus;          // how much likelier than a car it passes, in 10,000
    uint8_t mileage_divisor; // the mileage of a car divided by that of this class
};
enum { CLASS_COUNT = 6 };
extern const struct vehicle_class mot_classes[CLASS_COUNT];

// The models of a class.
struct mot_models {
    uint32_t count;
    uint32_t names[NAMES_MAX]; // numbers
    uint32_t weights[NAMES_MAX];
    struct alias choice;
};

struct mot_text_table { // short texts of a table
    uint32_t count;
    char texts[TEXTS_MAX][24];
    struct alias choice;
};

// The vehicles from which tests are drawn. Records contain numbers of entries in its tables, and
// pointers to its names, which live as long as the fleet.
struct mot_fleet {
    const struct mot_dialect *dialect;
    struct rng rng;
    struct permutation test_ids;
    struct permutation vehicle_ids;
    uint32_t tests;    // drawn so far
    uint32_t vehicles; // drawn so far
    uint32_t dirt_any; // a record is irregular if its 32 random bits are below this threshold
    uint32_t dirt[32]; // the thresholds of the kinds
    struct mot_name odd_name; // of the last irregular record
    struct mot_calendar calendar;
    struct mot_name names[NAMES_MAX];
    uint32_t name_count;
    uint32_t name_slots[NAME_SLOTS];
    struct alias class_choice;
    struct mot_models models[CLASS_COUNT];
    struct mot_text_table areas, colours;
    struct alias fuel_choice, day_choice;
    int32_t sizes[SIZE_COUNT];
    struct alias size_choice[ENGINE_COUNT];
    uint32_t age_ends[AGE_COUNT]; // the first rank past an age
    uint8_t age_starts[256];      // the age of a rank with these high bits and no low ones
    int age_pass[AGE_COUNT];      // in 10,000
    int32_t mileage_steps[RANK_STEPS + 1];
    int mileage_pass[MILEAGE_COUNT];
    int published_mean; // chance to pass in the tables, in 10,000
    int mean_pass;      // the chance that tests are drawn with
    struct mot_row pool[POOL_SIZE];
    uint32_t pool_count;
};

// Fills a zeroed fleet for a dialect (borrowed), year, seed and dirt.
void mot_fleet_init(struct mot_fleet *fleet, const struct options *options,
                    const struct mot_dialect *dialect);

// ---- mot_draw.c ----

// Sets the thresholds of the irregularities, all of which must load.
void mot_set_dirt(struct mot_fleet *fleet, enum dirt_level level);

// The next test. Its name is valid until the next one.
void mot_draw(struct mot_fleet *fleet, struct mot_row *row);

// ---- mot_text.c: tests as text ----

// Write a line, its line feed included, at `p` and return its end. At most OUTPUT_ROOM / 2 bytes.
char *mot_text_header(const struct mot_dialect *dialect, char *p);
char *mot_text_row(const struct mot_fleet *fleet, const struct mot_row *row, char *p);

// Writes `row` as a bad record of kind `which` modulo the number of kinds of the dialect.
char *mot_text_bad(const struct mot_fleet *fleet, const struct mot_row *row, uint64_t which,
                   char *p);

#endif
