// SPDX-License-Identifier: Apache-2.0
//
// Draws MOT tests with the published frequencies.
//
// A test is either the first of a new vehicle or the re-test of one that failed: failed vehicles
// wait in a pool from which re-tests are taken. Age and mileage come from one number each in 0 ..
// 2^32-1, read as a rank in the published distribution. The rank of the mileage is that of the age
// plus noise, reflected at both ends, which keeps every rank equally likely: so both distributions
// are as published, and older vehicles have higher mileages. The probability to pass is computed
// from the published ones by age and by mileage, with a small fixed difference for each model.
#include <string.h>

#include "mot.h"

// ---- the irregularities of real files ----
//
// Each has its published rate and the dialects in which it occurs; a record has at most one. A
// loader must load all of them.

enum kind {
    BLANK_MILEAGE,
    ZERO_MILEAGE,
    BLANK_CAPACITY,
    ZERO_CAPACITY,
    BLANK_FIRST_USE,
    BLANK_TEST_DATE,
    UNKNOWN_FIRST_USE,
    ODD_FIRST_USE,
    QUOTE,
    COMMA,
    PIPES,
    ODD_BYTE,
    EDGE_BLANK,
    LOWER_CASE,
    DOUBLE_BLANK,
    REPEATED_HEADER,
    KIND_COUNT
};

// Rates in a thousand million. Heavy dirt is two thousand times as frequent, but no kind is on more
// than one record in fifty.
static const struct {
    uint32_t rate;
    unsigned dialects;
} kinds[KIND_COUNT] = {
    [BLANK_MILEAGE] = {7500000, IN_NEWER},
    [ZERO_MILEAGE] = {12000000, IN_A},
    [BLANK_CAPACITY] = {500000, IN_NEWER}, // beside the electric cars, which have none
    [ZERO_CAPACITY] = {35000, IN_A | IN_NEWER},
    [BLANK_FIRST_USE] = {16000, IN_A | IN_NEWER},
    [BLANK_TEST_DATE] = {600, IN_A},
    [UNKNOWN_FIRST_USE] = {1000000, IN_A | IN_NEWER}, // 1971-01-01; rate estimated
    [ODD_FIRST_USE] = {1000, IN_NEWER},               // rate estimated
    [QUOTE] = {1000, IN_F | IN_COMMA},
    [COMMA] = {4800, IN_F | IN_COMMA},
    [PIPES] = {1000, IN_B | IN_TAB},
    [ODD_BYTE] = {425, IN_NEWER},
    [EDGE_BLANK] = {29000, IN_NEWER},
    [LOWER_CASE] = {2300000, IN_NEWER},
    [DOUBLE_BLANK] = {39000, IN_NEWER},
    [REPEATED_HEADER] = {2700, IN_G1},
};
enum { HEAVY_FACTOR = 2000, HEAVY_LIMIT = 20000000 };

void mot_set_dirt(struct mot_fleet *fleet, enum dirt_level level) {
    uint64_t sum = 0;
    for (int i = 0; i < KIND_COUNT; i++) {
        uint64_t rate = level == DIRT_NONE ? 0 : kinds[i].rate;
        if (level == DIRT_HEAVY) {
            rate = rate * HEAVY_FACTOR < HEAVY_LIMIT ? rate * HEAVY_FACTOR : HEAVY_LIMIT;
        }
        if ((kinds[i].dialects & fleet->dialect->bit) != 0) {
            sum += rate;
        }
        fleet->dirt[i] = (uint32_t)((sum << 32) / 1000000000);
    }
    fleet->dirt_any = fleet->dirt[KIND_COUNT - 1];
}

#define CHOOSE(list, bits) ((list)[scale32((bits), sizeof(list) / sizeof((list)[0]))])

// Names from real files, or similar to them.
static const char *const with_quotes[][2] = {
    {"PEUGEOT", "STREETZONE 50 2T 12\""}, {"LAND ROVER", "88\""}, {"LAND ROVER", "109\" S.W."},
    {"HUPMOBILE", "\"A\"  COUPE"},        {"FORD", "\"T\""},      {"MG", "B \"GT\" V8"},
};
static const char *const with_commas[][2] = {
    {"LAND ROVER", "SERIES 1, 80 INCH"},
    {"KIA", "CEE,D"},
    {"FORD", ","},
    {"ROVER, MG", "ZR"},
    {"AUSTIN,", "SEVEN,"},
};
static const char *const with_odd_bytes[][2] = {
    {"KAWASAKI", "Z\x1AR 1400"},    {"\xC5\xBBUK", "FS LUBIN"},
    {"MORRIS", "MP\xC2\xA3"},       {"SSANGYONG", "RODIUS TURISMO ES \tMK2 (A100)"},
    {"MERCEDES-BENZ", "\tC63 AMG"},
};
enum { ODD_BYTES_WITHOUT_TABS = 3 };

static void set_name(struct mot_name *name, const char *const words[2]) {
    strcpy(name->make, words[0]);
    strcpy(name->model, words[1]);
}

static void lower(char *text) {
    for (; *text != '\0'; text++) {
        if (*text >= 'A' && *text <= 'Z') {
            *text = (char)(*text - 'A' + 'a');
        }
    }
}

// Puts `count` blanks at `at`, when there is room.
static void insert_blanks(char *text, size_t at, size_t count) {
    size_t length = strlen(text);
    if (length + count < NAME_BYTES) {
        memmove(text + at + count, text + at, length - at + 1);
        memset(text + at, ' ', count);
    }
}

static void append(char *text, const char *more) {
    if (strlen(text) + strlen(more) < NAME_BYTES) {
        strcat(text, more);
    }
}

// Adds one blank to the first inside the text, or a word after two blanks.
static void double_blank(char *text) {
    const char *blank = strchr(text, ' ');
    if (blank != NULL) {
        insert_blanks(text, (size_t)(blank - text), 1);
    } else {
        append(text, "  II");
    }
}

static void change_name(enum kind kind, uint32_t bits, const struct mot_dialect *dialect,
                        struct mot_name *name) {
    static const char *const pipes[] = {" ||", "|", " || TD", "||GT"};
    bool model = (bits & 3) != 0; // usually the model is irregular, else the make
    char *text = model ? name->model : name->make;
    switch (kind) {
    case QUOTE:
        set_name(name, CHOOSE(with_quotes, bits));
        break;
    case COMMA:
        set_name(name, CHOOSE(with_commas, bits));
        break;
    case PIPES:
        append(name->model, CHOOSE(pipes, bits));
        break;
    case ODD_BYTE:
        if (dialect->delimiter == '\t') {
            set_name(name, with_odd_bytes[scale32(bits, ODD_BYTES_WITHOUT_TABS)]);
        } else {
            set_name(name, CHOOSE(with_odd_bytes, bits));
        }
        break;
    case EDGE_BLANK:
        insert_blanks(text, (bits & 4) != 0 ? strlen(text) : 0, 1);
        break;
    case LOWER_CASE:
        lower((bits & 4) != 0 && *text != '\0' ? text + 1 : text);
        break;
    case DOUBLE_BLANK:
        double_blank(text);
        break;
    default:
        break;
    }
}

// Makes `row` irregular; `bits`, below dirt_any, select how.
static void make_odd(struct mot_fleet *fleet, uint32_t bits, struct mot_row *row) {
    enum kind kind = 0;
    while (bits >= fleet->dirt[kind]) {
        kind++;
    }
    uint32_t more = high32(rng_next(&fleet->rng));
    switch (kind) {
    case BLANK_MILEAGE:
        row->mileage = -1;
        break;
    case ZERO_MILEAGE:
        row->mileage = 0;
        break;
    case BLANK_CAPACITY:
        row->capacity = -1;
        break;
    case ZERO_CAPACITY:
        row->capacity = 0;
        break;
    case BLANK_FIRST_USE:
        row->first_use = DAY_MISSING;
        break;
    case BLANK_TEST_DATE:
        row->test_day = DAY_MISSING;
        break;
    case UNKNOWN_FIRST_USE:
        row->first_use = 71 * 365 + 17; // 1971-01-01
        break;
    case ODD_FIRST_USE:
        // One of the impossible dates, or one after the test.
        row->first_use = more % 3 < 2 ? fleet->calendar.count + (int32_t)(more % 3)
                                      : row->test_day + 1 + (int32_t)(more >> 24);
        break;
    case REPEATED_HEADER:
        row->repeated_header = true;
        break;
    default:
        fleet->odd_name = *row->name;
        change_name(kind, more, fleet->dialect, &fleet->odd_name);
        row->name = &fleet->odd_name;
    }
}

// ---- tests ----

enum { OLD_TIMER = 30 }; // years

// A rank near `rank`: noise of up to 0.45 of the range either way, reflected at the ends.
static uint32_t near_rank(uint32_t rank, uint32_t noise) {
    const int64_t top = INT64_C(1) << 32;
    int64_t near = (int64_t)rank + ((int64_t)noise - (top >> 1)) * 9 / 10;
    if (near < 0) {
        near = -1 - near;
    } else if (near >= top) {
        near = 2 * top - 1 - near;
    }
    return (uint32_t)near;
}

static int32_t mileage_at(const struct mot_fleet *fleet, uint32_t rank) {
    uint32_t step = rank >> 20;
    int64_t low = fleet->mileage_steps[step];
    int64_t high = fleet->mileage_steps[step + 1];
    return (int32_t)(low + (((high - low) * (int64_t)(rank & 0xFFFFF)) >> 20));
}

// Turns a pass or a fail into the result as published: of the passes some were put right at the
// station, and of all tests a few were given up.
static uint8_t result_of(const struct mot_fleet *fleet, bool pass, bool first, uint64_t bits) {
    uint32_t rare = low32(bits);
    if (rare < 24500000) { // 0.57 %
        uint32_t which = scale32(high32(bits), 10000);
        if (which >= 9997) {
            return fleet->dialect->era <= ERA_2015 ? RESULT_R : RESULT_ABRVE;
        }
        return which < 8950 ? RESULT_ABR : RESULT_ABA;
    }
    if (!pass) {
        return RESULT_F;
    }
    uint32_t put_right = first ? 343597384u : 42949673u; // 8 % and 1 % of the passes
    return high32(bits) < put_right ? RESULT_PRS : RESULT_P;
}

// The probability to pass, in 10,000. Two factors correct for the correlation of age and mileage.
static int pass_chance(const struct mot_fleet *fleet, uint32_t age, int32_t mileage) {
    int by_age = fleet->age_pass[age] - fleet->published_mean;
    int by_mileage = fleet->mileage_pass[(mileage + 5000) / 10000] - fleet->published_mean;
    return fleet->mean_pass + (75 * by_age + 45 * by_mileage) / 100;
}

// The first test of a new vehicle.
static void draw_vehicle(struct mot_fleet *fleet, const struct vehicle_class *class, uint64_t bits,
                         struct mot_row *row) {
    struct rng *rng = &fleet->rng;
    const struct mot_models *models = &fleet->models[class - mot_classes];
    row->vehicle_id = permutation_at(&fleet->vehicle_ids, fleet->vehicles++);
    row->class_id = class->id;
    row->type = TYPE_NORMAL;
    row->name = &fleet->names[models->names[alias_draw(&models->choice, low32(bits))]];

    bits = rng_next(rng);
    row->colour = (uint8_t)alias_draw(&fleet->colours.choice, low32(bits));
    row->area = (uint8_t)alias_draw(&fleet->areas.choice, high32(bits));

    bits = rng_next(rng);
    unsigned engine = class->engine;
    if (class->id == 4) {
        row->fuel = (uint8_t)alias_draw(&fleet->fuel_choice, low32(bits));
        engine = mot_fuels[row->fuel].diesel ? ENGINE_DIESEL : ENGINE_PETROL;
    } else {
        // Nearly every van burns diesel, and no motor cycle does.
        row->fuel = engine == ENGINE_VAN && low32(bits) > 100000000 ? FUEL_DIESEL : FUEL_PETROL;
    }
    row->capacity = fleet->sizes[alias_draw(&fleet->size_choice[engine], high32(bits))];

    bits = rng_next(rng);
    row->test_day =
        fleet->calendar.year_start + (int32_t)alias_draw(&fleet->day_choice, low32(bits));
    uint32_t rank = high32(bits);
    uint32_t age = fleet->age_starts[rank >> 24];
    while (age + 1 < AGE_COUNT && rank >= fleet->age_ends[age]) {
        age++;
    }

    bits = rng_next(rng);
    int32_t days = (int32_t)(age * 1461 + 3) / 4 + (int32_t)(((low32(bits) >> 16) * 365) >> 16);
    row->first_use = row->test_day > days ? row->test_day - days : 0;
    // Classic cars have a low mileage at any rank.
    uint32_t driven = age < OLD_TIMER ? near_rank(rank, high32(bits)) : high32(bits) / 2;
    int32_t mileage = mileage_at(fleet, driven);
    int pass = pass_chance(fleet, age, mileage) + class->pass_bonus + row->name->pass_bias;
    row->mileage = mileage / class->mileage_divisor + (mileage < class->mileage_divisor);
    bool passed = (int)(((low32(bits) & 0xFFFF) * 10000) >> 16) < pass;
    row->result = result_of(fleet, passed, true, rng_next(rng));

    // Nineteen electric cars in twenty have no engine size.
    if (row->fuel == FUEL_ELECTRIC && !fleet->dialect->original && (bits >> 32) % 20 != 0) {
        row->capacity = -1;
    }
}

// The test after a failed one, up to nine days later in the same year.
static void draw_retest(struct mot_fleet *fleet, uint32_t type_bits, struct mot_row *row) {
    uint64_t bits = rng_next(&fleet->rng);
    uint32_t place = scale32(low32(bits), fleet->pool_count);
    uint32_t test_id = row->test_id;
    *row = fleet->pool[place];
    fleet->pool[place] = fleet->pool[--fleet->pool_count];
    row->test_id = test_id;
    row->type = type_bits < 8600 ? TYPE_APPEAL : TYPE_RETEST; // two appeals in a million tests
    int32_t last = fleet->calendar.year_start + fleet->calendar.year_days - 1;
    row->test_day += (int32_t)(bits >> 40) % 10;
    row->test_day = row->test_day < last ? row->test_day : last;
    row->mileage += (int32_t)(bits >> 48) % 25;
    row->mileage = row->mileage < 999999 ? row->mileage : 999999;
    row->result = result_of(fleet, bits >> 56 > 15, false, rng_next(&fleet->rng));
}

void mot_draw(struct mot_fleet *fleet, struct mot_row *row) {
    struct rng *rng = &fleet->rng;
    row->test_id = permutation_at(&fleet->test_ids, fleet->tests++);
    row->repeated_header = false;
    uint64_t kind = rng_next(rng);
    uint64_t type = rng_next(rng);
    uint32_t retests = (uint32_t)(((uint64_t)fleet->dialect->retests << 32) / 10000);
    if (high32(type) < retests && fleet->pool_count > 0) {
        draw_retest(fleet, high32(type), row);
    } else {
        draw_vehicle(fleet, &mot_classes[alias_draw(&fleet->class_choice, low32(kind))], type, row);
    }
    row->second = 8 * 3600 + scale32(low32(kind) * 2654435761u, 10 * 3600);
    if (row->result == RESULT_F) {
        // A full pool drops a vehicle without a re-test.
        uint32_t place =
            fleet->pool_count < POOL_SIZE ? fleet->pool_count++ : high32(rng_next(rng)) % POOL_SIZE;
        fleet->pool[place] = *row;
    }
    if (high32(kind) < fleet->dirt_any) {
        make_odd(fleet, high32(kind), row);
    }
}
