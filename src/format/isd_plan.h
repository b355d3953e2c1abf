/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the ISD formats: name maps, the compiled plan, the walk over a record's sections, the
 * writer of documents. */
#ifndef SHARDLOAD_ISD_PLAN_H
#define SHARDLOAD_ISD_PLAN_H

#include "bson/bson_writer.h"
#include "isd.h"

/* ---- name maps ---- */

/* New names for keys, from YAML:
 *
 *   name: isd-names-blog
 *   names:
 *     pressure: atmosphericPressure    # path of the key in the document: its new name
 *     wind.speed.rate: metresPerSecond
 */
typedef struct sl_isd_names sl_isd_names;

/* Maximum length of a new name, in bytes. */
#define SL_ISD_NAME_BYTES_MAX 46

void sl_isd_names_destroy(sl_isd_names *names); /* NULL is fine */

/* The name of the key at `path`: the new name, or the path's last key if there is none or `names`
 * is NULL. It notes that the key exists: a map with other keys is refused (isd_names_check in
 * isd_plan.c), so call it for all keys first. The result is valid as long as `names` and `path`. */
const char *sl_isd_name(sl_isd_names *names, const char *path);

/* ---- the plan ---- */

typedef enum sl_isd_step_kind {
    SL_ISD_END,
    SL_ISD_INT,           /* type n */
    SL_ISD_SIGNED_INT,    /* s */
    SL_ISD_MINUS_INT,     /* m */
    SL_ISD_DOUBLE,        /* n with a divisor */
    SL_ISD_SIGNED_DOUBLE, /* s with a divisor */
    SL_ISD_TEXT,          /* c q f d */
    SL_ISD_TRIMMED,       /* t */
    SL_ISD_OPEN,          /* a document begins */
    SL_ISD_CLOSE,         /* a document ends; it is removed if it is empty */
} sl_isd_step_kind;

/* Writes an element of a document, or begins or ends an embedded document. */
typedef struct sl_isd_step {
    uint8_t prefix[SL_ISD_NAME_BYTES_MAX + 2]; /* of the element; padded with zeros */
    uint8_t kind;                              /* sl_isd_step_kind */
    uint8_t prefix_length;                     /* for a CLOSE, the length of its OPEN's prefix */
    uint8_t offset;                            /* of the field */
    uint8_t width;
    uint8_t shift; /* in bits, of eight loaded bytes, so that only the field or its digits remain */
    bool nullable;
    bool follows; /* "9" is left out if the previous field was left out */
    uint8_t factor;
    uint16_t divisor;
    int32_t missing; /* the number that means "no value" */
} sl_isd_step;

_Static_assert(sizeof(sl_isd_step) == 64, "a step fills a cache line");

#define SL_ISD_DEPTH_MAX 4 /* of documents in a group's document */

typedef struct sl_isd_group_plan {
    uint8_t prefix[SL_BSON_PREFIX_STEP * 4]; /* of the key */
    const sl_isd_step *steps;
    uint32_t bound; /* upper bound of the bytes of the group's document with its key or index */
    uint8_t prefix_length;
    uint8_t width;  /* of the data after the id */
    uint8_t family; /* the same number for all groups with this key */
    bool repeats;   /* the key's value is an array */
} sl_isd_group_plan;

#define SL_ISD_IDS (26u * 26u * 10u)
#define SL_ISD_GROUPS_MAX 255u
#define SL_ISD_FAMILY_WORDS 4u /* 64-bit words in a set of families */

/* Keys outside the groups, one row each: the constant, the path in the document, the type. */
/* clang-format off */
#define SL_ISD_KEY_ROWS(row) \
    row(SL_ISD_KEY_ST, "st", SL_BSON_TEXT) \
    row(SL_ISD_KEY_TS, "ts", SL_BSON_DATE) \
    row(SL_ISD_KEY_USAF, "usaf", SL_BSON_TEXT) \
    row(SL_ISD_KEY_WBAN, "wban", SL_BSON_TEXT) \
    row(SL_ISD_KEY_NAME, "name", SL_BSON_TEXT) /* only in global-hourly tables */ \
    row(SL_ISD_KEY_POSITION, "position", SL_BSON_DOCUMENT) \
    row(SL_ISD_KEY_SECTIONS, "sections", SL_BSON_ARRAY) \
    row(SL_ISD_KEY_REMARKS, "remarks", SL_BSON_DOCUMENT) \
    /* the six types of remarks, in the order of isd_remark_type */ \
    row(SL_ISD_KEY_SYN, "remarks.syn", SL_BSON_TEXT) \
    row(SL_ISD_KEY_AWY, "remarks.awy", SL_BSON_TEXT) \
    row(SL_ISD_KEY_MET, "remarks.met", SL_BSON_TEXT) \
    row(SL_ISD_KEY_SOD, "remarks.sod", SL_BSON_TEXT) \
    row(SL_ISD_KEY_SOM, "remarks.som", SL_BSON_TEXT) \
    row(SL_ISD_KEY_HPD, "remarks.hpd", SL_BSON_TEXT) \
    row(SL_ISD_KEY_ELEMENT_QUALITY, "elementQuality", SL_BSON_ARRAY) \
    row(SL_ISD_KEY_QUALITY_ID, "elementQuality.id", SL_BSON_TEXT) \
    row(SL_ISD_KEY_QUALITY_VALUE, "elementQuality.value", SL_BSON_TEXT) \
    row(SL_ISD_KEY_QUALITY_REASON, "elementQuality.reason", SL_BSON_TEXT) \
    row(SL_ISD_KEY_QUALITY_PARAMETER, "elementQuality.parameter", SL_BSON_TEXT) \
    row(SL_ISD_KEY_QUALITY_RAW, "elementQuality.raw", SL_BSON_TEXT) \
    row(SL_ISD_KEY_ORIGINAL, "originalObservation", SL_BSON_ARRAY) \
    row(SL_ISD_KEY_ORIGINAL_ELEMENT, "originalObservation.element", SL_BSON_TEXT) \
    row(SL_ISD_KEY_ORIGINAL_FLAGS, "originalObservation.flags", SL_BSON_TEXT) \
    row(SL_ISD_KEY_ORIGINAL_VALUE, "originalObservation.value", SL_BSON_TEXT) \
    row(SL_ISD_KEY_UNPARSED, "unparsed", SL_BSON_TEXT) \
    /* from here on: keys of ISD-Lite, in addition to st and ts */ \
    row(SL_ISD_LITE_TEMPERATURE, "airTemperature", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_TEMPERATURE_VALUE, "airTemperature.value", SL_BSON_DOUBLE) \
    row(SL_ISD_LITE_DEW_POINT, "dewPoint", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_DEW_POINT_VALUE, "dewPoint.value", SL_BSON_DOUBLE) \
    row(SL_ISD_LITE_PRESSURE, "pressure", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_PRESSURE_VALUE, "pressure.value", SL_BSON_DOUBLE) \
    row(SL_ISD_LITE_WIND, "wind", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_DIRECTION, "wind.direction", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_ANGLE, "wind.direction.angle", SL_BSON_INT32) \
    row(SL_ISD_LITE_SPEED, "wind.speed", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_RATE, "wind.speed.rate", SL_BSON_DOUBLE) \
    row(SL_ISD_LITE_SKY_COVER, "skyCover", SL_BSON_DOCUMENT) \
    row(SL_ISD_LITE_CODE, "skyCover.code", SL_BSON_INT32) \
    row(SL_ISD_LITE_PRECIPITATION, "liquidPrecipitation", SL_BSON_ARRAY) \
    row(SL_ISD_LITE_PERIOD, "liquidPrecipitation.period", SL_BSON_INT32) \
    row(SL_ISD_LITE_DEPTH, "liquidPrecipitation.depth", SL_BSON_DOUBLE) \
    row(SL_ISD_LITE_CONDITION, "liquidPrecipitation.condition", SL_BSON_TEXT)
/* clang-format on */

#define SL_ISD_KEY_CONSTANT(key, path, type) key,
typedef enum sl_isd_key { SL_ISD_KEY_ROWS(SL_ISD_KEY_CONSTANT) SL_ISD_KEYS } sl_isd_key;
#undef SL_ISD_KEY_CONSTANT

typedef struct sl_isd_prefix {
    uint8_t bytes[SL_ISD_NAME_BYTES_MAX + 2];
    uint32_t length;
} sl_isd_prefix;

struct sl_plan {
    bool keep_missing;
    char *foreign_schema; /* name of a schema that is not a name map, else NULL */
    sl_isd_names *names;
    sl_isd_step *steps; /* owns all steps */
    const sl_isd_step *fixed;
    /* Upper bounds, in bytes: */
    uint32_t fixed_bound;    /* a document without groups, section entries and texts */
    uint32_t quality_bound;  /* an entry of elementQuality */
    uint32_t original_bound; /* an entry of originalObservation */
    uint32_t lite_bound;     /* a document of ISD-Lite */
    sl_isd_prefix keys[SL_ISD_KEYS];
    sl_isd_group_plan groups[SL_ISD_GROUPS_MAX];
    uint8_t rows[SL_ISD_IDS]; /* index into `groups`, plus 1; 0: no such id */
};

/* The plan functions of the ISD formats. */
bool sl_isd_plan_create(const sl_format_options *options, sl_plan **plan, sl_error *error);
void sl_isd_plan_destroy(sl_plan *plan);

/* False, with error set, when the options contain a schema that is not a name map. */
bool sl_isd_plan_fits(const sl_plan *plan, sl_error *error);

/* The index of a group in plan->groups by the three bytes of its id, plus 1; 0: no such group. */
static inline unsigned sl_isd_row(const sl_plan *plan, const char *id) {
    unsigned first = (unsigned)(uint8_t)id[0] - 'A', second = (unsigned)(uint8_t)id[1] - 'A';
    unsigned digit = (unsigned)(uint8_t)id[2] - '0';
    if (first >= 26 || second >= 26 || digit >= 10)
        return 0;
    return plan->rows[(first * 26 + second) * 10 + digit];
}

/* ---- lines (isd.c) ---- */

/* The state of parsing one block. */
typedef struct sl_isd_parser {
    const sl_plan *plan;
    const sl_dialect *dialect;
    const sl_block *block;
    sl_sink *sink;
    sl_parse_counts counts;
} sl_isd_parser;

/* Parses one line without its line feed. False: stop, as for sl_format.parse. */
typedef bool sl_isd_take(sl_isd_parser *parser, const char *line, size_t length);

/* Calls `take` for all lines of the block, and adds to `counts`. */
bool sl_isd_parse_lines(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts, sl_isd_take *take);

int64_t sl_isd_line_id(const sl_isd_parser *parser, const char *line);

/* Counts the line if it is blank, else rejects it. `column` may be NULL. */
void sl_isd_refuse(sl_isd_parser *parser, const char *line, size_t length, const char *column,
                   const char *reason, ...) __attribute__((format(printf, 5, 6)));
/* Adds the document of a line, which ends at `end`, to the sink, and counts it. False: its key
 * fields are refused, and the line has been rejected. */
bool sl_isd_keep(sl_isd_parser *parser, const char *line, size_t length, uint8_t *end);

/* Refuses a line that continues in the next line (head.h), with its opening quote at `open`: the
 * load must end. Returns false. */
bool sl_isd_refuse_open_quote(sl_isd_parser *parser, const char *line, size_t length, size_t open);

/* Are at least half of the first lines records? *record is then the first such line; otherwise the
 * error quotes the first line and `expected`. */
bool sl_isd_sniff_lines(sl_text head, bool whole, bool (*looks_like_record)(sl_text line),
                        const char *expected, sl_text *record, sl_error *error);

/* The fields of a row of SL_FORMATS, of a format with the functions sniff, describe and parse. */
#define SL_ISD_FUNCTIONS                                                                           \
    .takes_schema = true, .plan_create = sl_isd_plan_create, .plan_destroy = sl_isd_plan_destroy,  \
    .sniff = sniff, .describe = describe, .parse = parse

/* ---- the walk (isd.c) ---- */

typedef struct sl_isd_span {
    uint16_t from, to; /* offsets in the record; equal: empty */
} sl_isd_span;

/* The sections after ADD, without their tags. */
typedef struct sl_isd_tail {
    sl_isd_span remarks, qualities, originals;
} sl_isd_tail;

#define SL_ISD_GROUP_BYTES_MIN 6u /* with its id */

/* The positions of a record's parts. */
typedef struct sl_isd_walk {
    const char *record;
    sl_isd_tail tail;
    sl_isd_span lost;       /* bytes that could not be parsed */
    sl_isd_span surplus;    /* bytes after the record's declared length */
    bool interrupted;       /* the groups of a family are not consecutive */
    const double *position; /* longitude and latitude, if known with more digits than the record
                               has; else NULL */
    double elevation;       /* the same; 0: not known */
    uint32_t bound;         /* upper bound of the document's bytes */
    uint32_t group_count;
    struct {
        uint16_t at; /* offset of the id */
        uint8_t row; /* index into the plan's groups */
    } groups[SL_ISD_RECORD_BYTES_MAX / SL_ISD_GROUP_BYTES_MIN];
} sl_isd_walk;

/* Finds the sections of a record of SL_ISD_FIXED_BYTES to SL_ISD_RECORD_BYTES_MAX bytes. Only its
 * first `end` bytes (at least SL_ISD_FIXED_BYTES) are parsed; the bytes after them are surplus. */
void sl_isd_walk_record(const sl_plan *plan, const char *record, size_t end, size_t length,
                        sl_isd_walk *walk);

/* Does the record have lost or surplus bytes? */
static inline bool sl_isd_has_unparsed(const sl_isd_walk *walk) {
    return (walk->lost.from < walk->lost.to) | (walk->surplus.from < walk->surplus.to);
}

#define SL_ISD_REMARK_HEAD 6u /* type and length */
#define SL_ISD_QUALITY_BYTES 16u
#define SL_ISD_ORIGINAL_BYTES 11u

/* ---- the writer (isd.c) ---- */

/* Is every byte from 0x20 to 0x7E? The length is at least 8. */
bool sl_isd_is_plain(const char *record, size_t length);

/* Writes the document of a record; returns its end. `careful`: the record has bytes other than
 * 0x20..0x7E. Adds to *malformed. Reads and writes up to SL_SLACK bytes after record and
 * document. */
uint8_t *sl_isd_put_document(const sl_plan *plan, const sl_isd_walk *walk, int64_t id,
                             int64_t milliseconds, bool careful, uint8_t *start,
                             uint64_t *malformed);

/* Converts Latin-1 to UTF-8. Bytes below 0x20 and 0x7F become blanks. */
uint8_t *sl_isd_put_latin1(uint8_t *to, const char *text, size_t length);

/* Writes the prefix of an array's element with an index from 10 on. */
uint8_t *sl_isd_put_large_index(uint8_t *to, sl_bson_type type, uint32_t index);

/* Writes the prefix of an array's element. */
static inline uint8_t *sl_isd_put_index(uint8_t *to, sl_bson_type type, uint32_t index) {
    if (__builtin_expect(index >= 10, 0))
        return sl_isd_put_large_index(to, type, index);
    to[0] = (uint8_t)type;
    to[1] = (uint8_t)('0' + index);
    to[2] = 0;
    return to + 3;
}

static inline uint8_t *sl_isd_put_key(uint8_t *to, const sl_isd_prefix *prefix) {
    return sl_bson_put_prefix(to, prefix->bytes, prefix->length);
}

/* Writes a string's value. */
static inline uint8_t *sl_isd_put_string(uint8_t *to, const char *text, size_t length,
                                         bool careful) {
    if (!careful)
        return sl_bson_put_text(to, text, length);
    uint8_t *end = sl_isd_put_latin1(to + 4, text, length);
    *end++ = 0;
    sl_bson_put_int32(to, (int32_t)(end - to - 4));
    return end;
}

static inline uint8_t *sl_isd_put_element(uint8_t *to, const sl_isd_prefix *prefix,
                                          const char *text, size_t length, bool careful) {
    return sl_isd_put_string(sl_isd_put_key(to, prefix), text, length, careful);
}

/* The length without trailing blanks. */
static inline size_t sl_isd_trimmed(const char *text, size_t length) {
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return length;
}

#endif
