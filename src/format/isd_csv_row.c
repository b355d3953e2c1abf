/* SPDX-License-Identifier: Apache-2.0 */
/* Packs a row of a global-hourly table into a record. */
#include "isd_csv.h"

#include "convert.h"

#include <math.h>
#include <stdio.h>

/* A record without any value. */
static const char no_record[] = "0000"
                                "99999999999"
                                "000000000000"
                                "9+99999+999999"
                                "99999"
                                "+9999"
                                "99999"
                                "    "
                                "999999999999999999999999999"
                                "+99999"
                                "+99999"
                                "999999";

_Static_assert(sizeof no_record == SL_ISD_FIXED_BYTES + 1, "the fixed part of a record");

/* ---- a row's cells ---- */

size_t sl_isd_csv_split(const char *line, size_t length, sl_text *cells, char *scratch) {
    size_t count = 0, at = 0;
    for (;; at++) {
        sl_text cell = {line + at, 0};
        if (at < length && line[at] == '"') {
            cell.bytes = ++at + line;
            char *copy = NULL;
            for (;; at++) {
                const char *quote = at < length ? memchr(line + at, '"', length - at) : NULL;
                if (!quote)
                    return SIZE_MAX;
                bool doubled = quote + 1 < line + length && quote[1] == '"';
                size_t part = (size_t)(quote - line) - at + doubled;
                if (doubled || copy) {
                    copy = copy ? copy : scratch;
                    memcpy(scratch, line + at, part);
                    scratch += part;
                }
                at += part;
                if (!doubled)
                    break;
            }
            cell = copy ? (sl_text){copy, (size_t)(scratch - copy)}
                        : (sl_text){cell.bytes, (size_t)(line + at - cell.bytes)};
            if (++at < length && line[at] != ',')
                return SIZE_MAX;
        } else {
            while (at < length && line[at] != ',')
                at++;
            cell.length = (size_t)(line + at - cell.bytes);
        }
        if (count < COLUMNS_MAX)
            cells[count] = cell;
        count++;
        if (at >= length)
            return count;
    }
}

/* ---- cells into a record ---- */

static void append(builder *b, const char *bytes, size_t length) {
    b->full |= (size_t)(b->limit - b->to) < length;
    if (b->full)
        return;
    memcpy(b->to, bytes, length);
    b->to += length;
}

static bool is_text(const sl_isd_field *field) {
    return field->type == 't' || field->width >= 4;
}

/* Packs one field, padded to its width: numbers with leading zeros, texts with trailing blanks.
 * False for codes that are too short and fields that are too long. */
static bool pack_field(const sl_isd_field *field, sl_text text, char *to) {
    size_t width = field->width;
    if (text.length == 0 || text.length > width)
        return false;
    if (text.length == width) {
        memcpy(to, text.bytes, width);
        return true;
    }
    if (!strchr("nsm", field->type)) {
        memset(to, ' ', width);
        memcpy(to, text.bytes, text.length);
        return is_text(field);
    }
    bool sign = *text.bytes == '+' || *text.bytes == '-';
    if (sign ? field->type == 'n' : field->type == 's')
        return false;
    memset(to, '0', width);
    if (sign)
        to[0] = *text.bytes;
    for (size_t i = sign; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        to[width - text.length + i] = text.bytes[i];
    }
    return text.length > sign;
}

/* Packs all fields of a cell, without the commas. Returns their number of bytes; 0: they are not
 * the column's fields. */
static size_t pack_cell(const column *c, sl_text cell, char *to) {
    const char *start = to, *at = cell.bytes, *end = cell.bytes + cell.length;
    for (size_t f = 0; f < c->field_count; f++) {
        bool last = f + 1u == c->field_count;
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if (last ? comma != NULL : comma == NULL)
            return 0;
        const char *stop = last ? end : comma;
        if (!pack_field(c->fields[f], (sl_text){at, (size_t)(stop - at)}, to))
            return 0;
        to += c->fields[f]->width;
        at = stop + 1;
    }
    return (size_t)(to - start);
}

static void keep_raw(row *r, const column *c, sl_text cell) {
    if (r->unparsed.to > r->surplus)
        append(&r->unparsed, "; ", 2);
    append(&r->unparsed, c->name.bytes, c->name.length);
    append(&r->unparsed, "=", 1);
    append(&r->unparsed, cell.bytes, cell.length);
}

static void add_group(row *r, const column *c, sl_text cell) {
    char group[3 + UINT8_MAX];
    memcpy(group, c->name.bytes, 3);
    size_t width = pack_cell(c, cell, group + 3);
    if (width == 0) {
        keep_raw(r, c, cell);
        return;
    }
    if (r->sections.to == r->record + SL_ISD_FIXED_BYTES)
        append(&r->sections, "ADD", 3);
    append(&r->sections, group, 3 + width);
}

static void add_fixed(row *r, const column *c, sl_text cell) {
    char fields[SL_ISD_FIXED_BYTES];
    size_t width = pack_cell(c, cell, fields);
    if (width > 0)
        memcpy(r->record + c->at, fields, width);
    else
        keep_raw(r, c, cell);
}

static void add_degrees(row *r, const column *c, sl_text cell, size_t which, double limit) {
    double *degrees = &r->position[which];
    r->has_position[which] =
        sl_convert_double(cell.bytes, cell.length, degrees) && fabs(*degrees) <= limit;
    if (!r->has_position[which])
        keep_raw(r, c, cell);
}

static void add_elevation(row *r, const column *c, sl_text cell) {
    double metres;
    char digits[16];
    if (!sl_convert_double(cell.bytes, cell.length, &metres) || !(fabs(metres) < 9999.5)) {
        keep_raw(r, c, cell);
        return;
    }
    snprintf(digits, sizeof digits, "%+05ld", lround(metres));
    memcpy(r->record + c->at, digits, 5);
}

/* False when the cell is required and invalid. */
static bool add_cell(row *r, const column *c, sl_text cell) {
    if (cell.length == 0)
        return c->role != ROLE_STATION && c->role != ROLE_DATE;
    switch (c->role) {
    case ROLE_STATION:
        memcpy(r->record + c->at, cell.bytes, cell.length == 11 ? 11 : 0);
        return cell.length == 11;
    case ROLE_DATE:
        return sl_convert_datetime(cell.bytes, cell.length, &r->milliseconds);
    case ROLE_NAME:
        r->name = cell;
        break;
    case ROLE_LATITUDE:
        add_degrees(r, c, cell, 1, 90);
        break;
    case ROLE_LONGITUDE:
        add_degrees(r, c, cell, 0, 180);
        break;
    case ROLE_ELEVATION:
        add_elevation(r, c, cell);
        break;
    case ROLE_FIXED:
        add_fixed(r, c, cell);
        break;
    case ROLE_GROUP:
        add_group(r, c, cell);
        break;
    case ROLE_UNKNOWN:
        keep_raw(r, c, cell);
        break;
    default:
        break; /* add_sections adds the sections, in their order */
    }
    return true;
}

static void add_sections(row *r, const sl_dialect *dialect) {
    static const char tags[][4] = {"REM", "EQD", "QNN"};
    for (unsigned s = 0; s < 3; s++) {
        for (size_t k = 0; k < dialect->column_count; k++) {
            if (dialect->columns[k].role != ROLE_REMARKS + s || r->cells[k].length == 0)
                continue;
            append(&r->sections, tags[s], 3);
            append(&r->sections, r->cells[k].bytes, r->cells[k].length);
        }
    }
}

/* Packs the station's position, if it is known. */
static void add_position(row *r) {
    bool dummy = fabs(r->position[0]) + fabs(r->position[1]) <= 0;
    r->has_position[0] = r->has_position[0] && r->has_position[1] && !dummy;
    if (!r->has_position[0])
        return;
    char digits[32];
    snprintf(digits, sizeof digits, "%+06ld%+07ld", lround(r->position[1] * 1000),
             lround(r->position[0] * 1000));
    memcpy(r->record + 28, digits, 13);
}

bool sl_isd_csv_pack(row *r, const sl_dialect *dialect, size_t *end, size_t *length,
                     const column **refused) {
    memcpy(r->record, no_record, SL_ISD_FIXED_BYTES);
    r->sections =
        (builder){r->record + SL_ISD_FIXED_BYTES, r->record + SL_ISD_RECORD_BYTES_MAX, false};
    r->unparsed = (builder){r->surplus, r->surplus + sizeof r->surplus, false};
    r->name = (sl_text){"", 0};
    r->has_position[0] = r->has_position[1] = false;
    r->position[0] = r->position[1] = 0;
    for (size_t k = 0; k < dialect->column_count; k++) {
        *refused = &dialect->columns[k];
        if (!add_cell(r, &dialect->columns[k], r->cells[k]))
            return false;
    }
    *refused = NULL;
    add_sections(r, dialect);
    add_position(r);
    *end = (size_t)(r->sections.to - r->record);
    append(&r->sections, r->surplus, (size_t)(r->unparsed.to - r->surplus));
    *length = (size_t)(r->sections.to - r->record);
    return !r->sections.full && !r->unparsed.full;
}
