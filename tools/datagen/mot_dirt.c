// SPDX-License-Identifier: Apache-2.0
//
// The irregularities of real files. Each has its published rate and the dialects in which it
// occurs; a record has at most one. A loader must load all of them, so the answers include them.
#include <string.h>

#include "mot.h"

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

void mot_dirt_init(struct mot_dirt *dirt, enum dirt_level level,
                   const struct mot_dialect *dialect) {
    dirt->dialect = dialect;
    uint64_t sum = 0;
    for (int i = 0; i < KIND_COUNT; i++) {
        uint64_t rate = level == DIRT_NONE ? 0 : kinds[i].rate;
        if (level == DIRT_HEAVY) {
            rate = rate * HEAVY_FACTOR < HEAVY_LIMIT ? rate * HEAVY_FACTOR : HEAVY_LIMIT;
        }
        if ((kinds[i].dialects & dialect->bit) != 0) {
            sum += rate;
        }
        dirt->thresholds[i] = (uint32_t)((sum << 32) / 1000000000);
    }
    dirt->any = dirt->thresholds[KIND_COUNT - 1];
}

// A make and model being changed.
struct draft {
    char make[NAME_BYTES];
    char model[NAME_BYTES];
};

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

static void set_draft(struct draft *draft, const char *const name[2]) {
    strcpy(draft->make, name[0]);
    strcpy(draft->model, name[1]);
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
                        struct draft *draft) {
    static const char *const pipes[] = {" ||", "|", " || TD", "||GT"};
    bool model = (bits & 3) != 0; // usually the model is irregular, else the make
    char *text = model ? draft->model : draft->make;
    switch (kind) {
    case QUOTE:
        set_draft(draft, CHOOSE(with_quotes, bits));
        break;
    case COMMA:
        set_draft(draft, CHOOSE(with_commas, bits));
        break;
    case PIPES:
        append(draft->model, CHOOSE(pipes, bits));
        break;
    case ODD_BYTE:
        if (dialect->delimiter == '\t') {
            set_draft(draft, with_odd_bytes[scale32(bits, ODD_BYTES_WITHOUT_TABS)]);
        } else {
            set_draft(draft, CHOOSE(with_odd_bytes, bits));
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

bool mot_dirt_apply(const struct mot_dirt *dirt, uint32_t bits, struct rng *rng,
                    const struct mot_calendar *calendar, struct mot_names *names,
                    struct mot_row *row) {
    enum kind kind = 0;
    while (bits >= dirt->thresholds[kind]) {
        kind++;
    }
    uint32_t more = high32(rng_next(rng));
    row->plain = false;
    switch (kind) {
    case BLANK_MILEAGE:
        row->mileage = -1;
        return true;
    case ZERO_MILEAGE:
        row->mileage = 0;
        return true;
    case BLANK_CAPACITY:
        row->capacity = -1;
        return true;
    case ZERO_CAPACITY:
        row->capacity = 0;
        return true;
    case BLANK_FIRST_USE:
        row->first_use = DAY_MISSING;
        return true;
    case BLANK_TEST_DATE:
        row->test_day = DAY_MISSING;
        return true;
    case UNKNOWN_FIRST_USE:
        row->first_use = 71 * 365 + 17;
        return true; // 1971-01-01
    case ODD_FIRST_USE:
        // One of the impossible dates, or one after the test.
        row->first_use = more % 3 < 2 ? calendar->count + (int32_t)(more % 3)
                                      : row->test_day + 1 + (int32_t)(more >> 24);
        return true;
    case REPEATED_HEADER:
        row->repeated_header = true;
        return true;
    default:
        break;
    }
    struct draft draft = {{0}, {0}};
    const struct name *model = &names->models.items[row->name];
    const struct name *make = &names->makes.items[model->owner];
    if (make->length < NAME_BYTES && model->length < NAME_BYTES) {
        memcpy(draft.make, make->text, make->length);
        memcpy(draft.model, model->text, model->length);
        change_name(kind, more, dirt->dialect, &draft);
        row->name =
            mot_names_add(names, draft.make, strlen(draft.make), draft.model, strlen(draft.model));
    }
    return row->name != NAME_NONE;
}
