// SPDX-License-Identifier: Apache-2.0
//
// ISD weather records: the types its parts share. A record is a struct of numbers; each has the
// unit and scale that it has in the record's text. Layouts follow NOAA's format document of 12
// January 2018 (DS3505); frequencies were counted in 119,511 published records.
#ifndef DATAGEN_ISD_H
#define DATAGEN_ISD_H

#include "output.h"
#include "random.h"

extern const struct format isd_format;

enum {
    DAY_MINUTES = 24 * 60,
    RECORD_FIXED = 105,  // bytes of the control section and the mandatory part
    GROUPS_MAX = 28,     // maximum in a published record
    ISD_STATIONS = 99999 // maximum of --stations
};

// In the order of the columns of data/isd-shares.txt.
enum isd_type {
    TYPE_FM_12,
    TYPE_FM_15,
    TYPE_FM_16,
    TYPE_SAO,
    TYPE_SY_SA,
    TYPE_SOD,
    TYPE_SOM,
    ISD_TYPES
};

// ---- isd_groups.c: the groups of the additional data section ----

enum { FAMILIES_MAX = 128, FIELDS_MAX = 16, INSTANCES_MAX = 9 };

// The groups of one line of schemas/isd-groups.tsv: AA1 to AA4 are a family, IA2 alone is one.
struct isd_family {
    char letters[3];
    char first; // digit
    uint8_t instances;
    uint8_t field_count;
    struct {
        char type; // n s m c q f d t, as the table has them
        uint8_t width;
    } fields[FIELDS_MAX];
    uint8_t drawn_with; // the number of the family with whose random number this one is drawn
    uint32_t shares[ISD_TYPES][INSTANCES_MAX]; // of 65,536 records with additional data
};

// Families that are drawn in a special way.
enum isd_special { SPECIAL_AJ, SPECIAL_AU, SPECIAL_AW, SPECIAL_GF, SPECIAL_MW, SPECIAL_COUNT };

// The properties of a type of reports, in the order of the columns of data/isd-types.txt.
enum isd_share {
    SHARE_BARE,
    SHARE_REMARK,
    SHARE_REMARK_BARE,
    SHARE_ELEMENT_QUALITY,
    SHARE_ORIGINAL,
    SHARE_NO_PRESSURE,
    SHARE_NO_CEILING,
    SHARE_UNLIMITED,
    SHARE_NO_DEW_POINT,
    SHARE_NO_VISIBILITY,
    SHARE_NO_TEMPERATURE,
    SHARE_COUNT
};

struct isd_groups {
    struct isd_family families[FAMILIES_MAX]; // in the order of their ids
    uint8_t count;
    uint8_t special[SPECIAL_COUNT];         // their numbers
    uint32_t types[ISD_TYPES][SHARE_COUNT]; // of 65,536
};

// Reads the tables.
void isd_groups_init(struct isd_groups *groups);

// ---- isd_stations.c: stations ----

enum isd_network { NETWORK_SYNOPTIC, NETWORK_AIRPORT, NETWORK_SAO };

struct isd_station {
    char usaf[12]; // six characters
    char wban[12]; // five
    char call[8];  // five
    int32_t latitude;
    int32_t longitude; // 999999 when missing
    int32_t elevation; // 9999 when missing
    uint8_t network;
    bool central;   // one of those near 30.3 N, 97.7 W
    bool late;      // writes midnight as 2400 of the day before
    bool summaries; // of days and months
    char version;   // of the quality control process: V020, V030
    uint64_t rows;
};

struct isd_world {
    struct isd_station *stations;
    uint32_t station_count;
};

// Generates the stations for the options into a zeroed world. False if memory is exhausted. To be
// cleared in any case.
bool isd_world_init(struct isd_world *world, const struct options *options);
void isd_world_clear(struct isd_world *world);

// ---- records ----

enum isd_weather { WEATHER_DRY, WEATHER_MIST, WEATHER_FOG, WEATHER_RAIN, WEATHER_SNOW };

enum isd_oddity { ODDITY_NONE, ODDITY_LENGTH, ODDITY_UNKNOWN_GROUP };

struct isd_row {
    const struct isd_station *station;
    int32_t minute; // of the year, UTC; the next year's first is possible
    bool late;      // midnight, to be written as 2400
    uint8_t type;

    // The mandatory part, whether shown or not.
    int32_t temperature, dew_point, pressure;
    int32_t wind_direction, wind_speed; // 999 and 0 in a calm
    int32_t ceiling, visibility;
    bool has_temperature, has_dew_point, has_pressure, has_ceiling, has_visibility, has_wind;
    char temperature_quality, wind_quality;

    // Weather that only groups and remarks show.
    uint8_t cover; // oktas
    uint8_t weather;
    uint8_t strength;     // 0 light to 2 heavy
    int32_t rain;         // tenths of a millimetre in the hour
    int32_t snow_depth;   // centimetres; 9999 when missing
    int32_t tendency;     // change of pressure since the last record
    int32_t low_pressure; // of the station, not reduced to sea level

    // Codes of the groups that are drawn in a special way.
    uint8_t total_cover; // code of GF1
    uint8_t manual[7];   // MW
    uint8_t automated[6];
    uint8_t precipitation[9]; // AU

    struct {
        uint8_t family;
        uint8_t instances;
    } groups[GROUPS_MAX];
    uint8_t group_count; // entries of `groups`
    bool bare;           // has no additional data
    bool has_remark, has_element_quality, has_original;
    uint8_t oddity;
};

// ---- isd_draw.c: weather and records ----

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

struct isd_drawer {
    const struct isd_groups *groups;
    struct rng rng;
    int32_t year_start; // day
    int32_t year_days;
    uint32_t odd_lengths, odd_groups, odd_weather; // of 2^32

    const struct isd_station *station;
    uint64_t drawn;     // records of the station
    int32_t step;       // minutes
    uint64_t slots;     // times of the part of the year in which the station reports
    int32_t first_slot; // of the year
    int32_t last_day;   // of the last record, or -1

    struct isd_climate climate;
    struct isd_weather_state at_station;
};

// Borrows the groups.
void isd_drawer_init(struct isd_drawer *drawer, const struct options *options,
                     const struct isd_groups *groups);

// Starts a station, whose records are then drawn in the order of time.
void isd_drawer_start(struct isd_drawer *drawer, const struct isd_station *station);
void isd_draw(struct isd_drawer *drawer, struct isd_row *row);

// ---- isd_text.c: records as text ----

// Writes the data of an instance of a group.
struct isd_part;
typedef char *isd_put_group(const struct isd_part *part, char *p);

struct isd_text {
    const struct isd_groups *groups;
    isd_put_group *put[FAMILIES_MAX]; // of a family; NULL where any values will do
    struct rng rng;
    char days[367][8]; // YYYYMMDD, the next year's first included
};

// Initialises `text`, which borrows the groups.
void isd_text_init(struct isd_text *text, const struct options *options,
                   const struct isd_groups *groups);

// Writes a record, its line feed included, at `p` and returns its end. At most OUTPUT_ROOM bytes.
char *isd_text_row(struct isd_text *text, const struct isd_row *row, char *p);

#endif
