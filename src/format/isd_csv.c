/* SPDX-License-Identifier: Apache-2.0 */
/* The format `isd-csv`: the global-hourly tables, one per station and year, with a header.
 *
 * A cell contains the fields of one part of a packed record, unscaled and separated by commas: WND
 * is `999,9,V,0005,1`, GF1 `00,99,1,...`. So a row is assembled into a packed record, and the code
 * for packed records writes the document. Cells that do not fit into a record (with another number
 * of fields, or of a column of an unknown group) are appended to the record as `NAME=cell;
 * NAME=cell`, and become `unparsed` in the document.
 *
 * Three things differ from packed records: the position keeps all of its digits, the position 0 / 0
 * means that the station has none, and the station's name comes last in the document. */
#include "isd_plan.h"

#include "convert.h"
#include "head.h"

#include <math.h>
#include <stdlib.h>

#define COLUMNS_MAX 512u
#define FIELDS_MAX 16u /* of a cell */
#define ROW_BYTES_MAX 16384u

typedef enum column_role {
    ROLE_UNKNOWN,
    ROLE_STATION,
    ROLE_DATE,
    ROLE_LATITUDE,
    ROLE_LONGITUDE,
    ROLE_ELEVATION,
    ROLE_NAME,
    ROLE_FIXED, /* fields at fixed positions of the record */
    ROLE_GROUP,
    ROLE_REMARKS, /* this and the next two: sections of the record, in its order */
    ROLE_QUALITY,
    ROLE_ORIGINAL,
} column_role;

typedef struct column {
    sl_text name; /* in the header */
    column_role role;
    uint8_t at; /* offset in the record */
    uint8_t field_count;
    bool identifies; /* a table with this column is global-hourly */
    const sl_isd_field *fields[FIELDS_MAX];
} column;

typedef struct csv_dialect {
    char *header; /* with its line end; owned */
    size_t header_length;
    size_t header_text; /* length without line end */
    uint64_t body_offset;
    size_t column_count;
    size_t group_count; /* number of columns that are groups */
    column columns[];
} csv_dialect;

/* A buffer that bytes are appended to. */
typedef struct builder {
    char *to, *limit;
    bool full;
} builder;

/* A row and the record assembled from it. */
typedef struct row {
    char record[SL_ISD_RECORD_BYTES_MAX + SL_SLACK];
    char surplus[SL_ISD_RECORD_BYTES_MAX];
    char scratch[ROW_BYTES_MAX + SL_SLACK];
    sl_text cells[COLUMNS_MAX];
    sl_text name; /* of the station */
    int64_t milliseconds;
    double position[2]; /* longitude, latitude */
    bool has_position[2];
    double elevation; /* with fractions of a metre, which a record has not; 0: without */
    builder sections; /* appends to the record */
    builder unparsed; /* appends to the surplus */
} row;

/* The columns of every file, and the bytes of the fixed ones in a record. */
static const struct {
    const char *name;
    column_role role;
    uint8_t from, to;
    bool identifies; /* a table with this column is global-hourly */
} known_columns[] = {
    {"STATION", ROLE_STATION, 4, 15, false},
    {"DATE", ROLE_DATE, 0, 0, false},
    {"SOURCE", ROLE_FIXED, 27, 28, false},
    {"LATITUDE", ROLE_LATITUDE, 28, 34, false},
    {"LONGITUDE", ROLE_LONGITUDE, 34, 41, false},
    {"ELEVATION", ROLE_ELEVATION, 46, 51, false},
    {"NAME", ROLE_NAME, 0, 0, false},
    {"REPORT_TYPE", ROLE_FIXED, 41, 46, false},
    {"CALL_SIGN", ROLE_FIXED, 51, 56, false},
    {"QUALITY_CONTROL", ROLE_FIXED, 56, 60, false},
    {"WND", ROLE_FIXED, 60, 70, true},
    {"CIG", ROLE_FIXED, 70, 78, true},
    {"VIS", ROLE_FIXED, 78, 87, true},
    {"TMP", ROLE_FIXED, 87, 93, true},
    {"DEW", ROLE_FIXED, 93, 99, true},
    {"SLP", ROLE_FIXED, 99, 105, false}, /* daily summaries have a column of this name */
    {"REM", ROLE_REMARKS, 0, 0, false},
    {"EQD", ROLE_QUALITY, 0, 0, false},
    {"QNN", ROLE_ORIGINAL, 0, 0, false},
};

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

/* Splits a line into cells without their quotes, and stores the first COLUMNS_MAX. Cells with
 * doubled quotes are copied to `scratch`, which has room for the line, with single ones. Returns
 * the number of cells, or SIZE_MAX when a closing quote is missing or not at a cell's end. */
static size_t split_row(const char *line, size_t length, sl_text *cells, char *scratch) {
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
        return field->type == 't' || field->width >= 4;
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
    /* No station is so low: -999.9 marks an unknown elevation. 9999 is one, too. */
    if (!sl_convert_double(cell.bytes, cell.length, &metres) ||
        !(metres > -999 && (metres < 9998.5 || (metres >= 9999 && metres <= 9999)))) {
        keep_raw(r, c, cell);
        return;
    }
    snprintf(digits, sizeof digits, "%+05ld", lround(metres));
    memcpy(r->record + c->at, digits, 5);
    r->elevation = metres - floor(metres) > 0 ? metres : 0;
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

static void add_sections(row *r, const csv_dialect *dialect) {
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

/* Packs the station's position, if it is known. One coordinate alone is kept as text. */
static void add_position(row *r, const csv_dialect *dialect) {
    bool dummy = fabs(r->position[0]) + fabs(r->position[1]) <= 0;
    const bool alone = r->has_position[0] != r->has_position[1];
    for (size_t k = 0; alone && k < dialect->column_count; k++) {
        if (dialect->columns[k].role == (r->has_position[0] ? ROLE_LONGITUDE : ROLE_LATITUDE))
            keep_raw(r, &dialect->columns[k], r->cells[k]);
    }
    r->has_position[0] = r->has_position[0] && r->has_position[1] && !dummy;
    if (!r->has_position[0])
        return;
    char digits[32];
    snprintf(digits, sizeof digits, "%+06ld%+07ld", lround(r->position[1] * 1000),
             lround(r->position[0] * 1000));
    memcpy(r->record + 28, digits, 13);
}

/* Assembles a record from the cells, one per column. Its first *end bytes are sections, the other
 * bytes are surplus (unparsed cells). False when a required cell is invalid: *refused is its
 * column; or when the record would be too long: *refused is NULL. */
static bool pack_row(row *r, const csv_dialect *dialect, size_t *end, size_t *length,
                     const column **refused) {
    memcpy(r->record, no_record, SL_ISD_FIXED_BYTES);
    r->sections =
        (builder){r->record + SL_ISD_FIXED_BYTES, r->record + SL_ISD_RECORD_BYTES_MAX, false};
    r->unparsed = (builder){r->surplus, r->surplus + sizeof r->surplus, false};
    r->name = (sl_text){"", 0};
    r->has_position[0] = r->has_position[1] = false;
    r->position[0] = r->position[1] = r->elevation = 0;
    for (size_t k = 0; k < dialect->column_count; k++) {
        *refused = &dialect->columns[k];
        if (!add_cell(r, &dialect->columns[k], r->cells[k]))
            return false;
    }
    *refused = NULL;
    add_sections(r, dialect);
    add_position(r, dialect);
    *end = (size_t)(r->sections.to - r->record);
    append(&r->sections, r->surplus, (size_t)(r->unparsed.to - r->surplus));
    *length = (size_t)(r->sections.to - r->record);
    return !r->sections.full && !r->unparsed.full;
}

/* ---- rows ---- */

static bool put_row(sl_isd_parser *p, const char *line, size_t line_length, const row *r,
                    size_t end, size_t length) {
    const sl_plan *plan = p->plan;
    sl_sink *sink = p->sink;
    sl_isd_walk walk;
    sl_isd_walk_record(plan, r->record, end, length, &walk);
    walk.position = r->has_position[0] ? r->position : NULL;
    walk.elevation = r->elevation;
    if (!sl_sink_make_room(sink, walk.bound + 2 * r->name.length + sizeof(double)))
        return false;
    bool careful = !sl_isd_is_plain(r->record, length);
    uint8_t *start = sink->cursor;
    uint8_t *to = sl_isd_put_document(plan, &walk, sl_isd_line_id(p, line), r->milliseconds,
                                      careful, start, &p->counts.malformed_fields);
    if (r->name.length > 0) /* replaces the document's final NUL */
        to = sl_bson_end(start, sl_isd_put_element(to - 1, &plan->keys[SL_ISD_KEY_NAME],
                                                   r->name.bytes, r->name.length, true));
    if (!sl_isd_keep(p, line, line_length, to))
        return true;
    p->counts.transcoded += careful;
    p->counts.unknown_groups += sl_isd_has_unparsed(&walk);
    return true;
}

static void refuse_cell(sl_isd_parser *p, const char *line, size_t length, const column *c,
                        sl_text cell) {
    bool station = c->role == ROLE_STATION;
    char quoted[SL_QUOTED_ROOM];
    sl_isd_refuse(p, line, length, station ? "STATION" : "DATE", "%s is not a %s",
                  sl_quoted(cell, quoted), station ? "station of 11 characters" : "date and time");
}

static bool take_line(sl_isd_parser *p, const char *line, size_t length) {
    const csv_dialect *d = (const csv_dialect *)p->dialect;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (p->block->offset + (uint64_t)(line - p->block->text.bytes) < d->body_offset)
        return true;
    if (length == d->header_text && memcmp(line, d->header, length) == 0) {
        p->counts.headers++;
        return true;
    }
    row r;
    size_t end, bytes,
        count = length > ROW_BYTES_MAX ? SIZE_MAX : split_row(line, length, r.cells, r.scratch);
    const column *refused = NULL;
    size_t open;
    if (count == SIZE_MAX &&
        sl_line_quotes((sl_text){line, length}, ',', '"', false, &open) == SL_QUOTES_OPEN)
        return sl_isd_refuse_open_quote(p, line, length, open);
    if (length > ROW_BYTES_MAX)
        sl_isd_refuse(p, line, length, NULL, "%zu bytes are too many for a row", length);
    else if (count == SIZE_MAX)
        sl_isd_refuse(p, line, length, NULL, "a quote is not closed where a cell ends");
    else if (count != d->column_count)
        sl_isd_refuse(p, line, length, NULL, "%zu cells, but the header has %zu columns", count,
                      d->column_count);
    else if (pack_row(&r, d, &end, &bytes, &refused))
        return put_row(p, line, length, &r, end, bytes);
    else if (refused)
        refuse_cell(p, line, length, refused, r.cells[refused - d->columns]);
    else
        sl_isd_refuse(p, line, length, NULL, "the row does not fit into a record of %u bytes",
                      SL_ISD_RECORD_BYTES_MAX);
    return true;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    return sl_isd_parse_lines(plan, dialect, block, sink, counts, take_line);
}

/* ---- sources ---- */

static void bind_fixed(column *c, uint8_t from, uint8_t to) {
    c->at = from;
    while (from < to) {
        for (size_t f = 0; f < sl_isd_fixed.field_count; f++) {
            if (sl_isd_fixed.fields[f].offset == from)
                c->fields[c->field_count++] = &sl_isd_fixed.fields[f];
        }
        from = (uint8_t)(from + c->fields[c->field_count - 1]->width);
    }
}

/* Sets the column's role and what follows from it. */
static void bind_column(const sl_plan *plan, column *c) {
    for (size_t i = 0; i < sizeof known_columns / sizeof known_columns[0]; i++) {
        if (!sl_text_equal(c->name, sl_text_of(known_columns[i].name)))
            continue;
        c->role = known_columns[i].role;
        c->at = known_columns[i].from;
        if (c->role == ROLE_FIXED)
            bind_fixed(c, known_columns[i].from, known_columns[i].to);
        c->identifies = known_columns[i].identifies;
        return;
    }
    unsigned group = c->name.length == 3 ? sl_isd_row(plan, c->name.bytes) : 0;
    if (group == 0 || sl_isd_groups[group - 1].field_count > FIELDS_MAX)
        return;
    c->role = ROLE_GROUP;
    for (size_t f = 0; f < sl_isd_groups[group - 1].field_count; f++)
        c->fields[c->field_count++] = &sl_isd_groups[group - 1].fields[f];
}

/* Checks that the columns are those of a global-hourly table, and unique. */
static bool bind(const sl_plan *plan, csv_dialect *d, sl_error *error) {
    bool station = false, date = false, identified = false;
    for (size_t k = 0; k < d->column_count; k++) {
        column *c = &d->columns[k];
        bind_column(plan, c);
        identified |= c->identifies;
        station |= c->role == ROLE_STATION;
        date |= c->role == ROLE_DATE;
        d->group_count += c->role == ROLE_GROUP;
        for (size_t i = 0; i < k; i++) {
            sl_text other = d->columns[i].name;
            if (sl_text_equal(other, c->name))
                return sl_error_set(error, SL_EXIT_SOURCE, "its header has the column %.*s twice",
                                    (int)(other.length < 40 ? other.length : 40), other.bytes);
        }
    }
    if (station && date && identified)
        return true;
    char shown[100];
    sl_text_printable((sl_text){d->header, d->header_text}, shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "its first line is `%s`; expected a header with STATION, DATE and one of "
                        "WND, CIG, VIS, TMP, DEW",
                        shown);
}

#define ROWS_CHECKED 20

/* Checks the values of the columns WND, CIG, VIS, TMP and DEW in the first rows, since other tables
 * have columns of these names: each value of a global-hourly table contains commas, as +0025,1, and
 * none a point. */
static bool check_values(const csv_dialect *d, const sl_first_line *first, sl_text head,
                         sl_error *error) {
    sl_text cells[COLUMNS_MAX], other = {0}, line;
    size_t at = first->end;
    for (size_t i = 0; i < ROWS_CHECKED && sl_next_line(head, true, &at, &line); i++) {
        if (sl_fields_split(line, ',', '"', 0, cells, COLUMNS_MAX) != d->column_count)
            continue;
        for (size_t k = 0; k < d->column_count; k++) {
            if (cells[k].length == 0 || !d->columns[k].identifies)
                continue;
            if (memchr(cells[k].bytes, ',', cells[k].length))
                return true;
            if (memchr(cells[k].bytes, '.', cells[k].length))
                other = cells[k];
        }
    }
    char quoted[SL_QUOTED_ROOM];
    return other.length == 0 ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "its columns WND, CIG, VIS, TMP or DEW hold values such as %s; expected "
                        "values such as \"+0025,1\"",
                        sl_quoted(other, quoted));
}

static void dialect_destroy(sl_dialect *dialect) {
    csv_dialect *own = (csv_dialect *)dialect;
    if (own)
        free(own->header);
    free(own);
}

static csv_dialect *dialect_create(const sl_first_line *first) {
    csv_dialect *d = calloc(1, sizeof *d + first->fields * sizeof d->columns[0]);
    sl_text names[COLUMNS_MAX];
    char *header = malloc(first->header_bytes);
    if (!d || !header) {
        free(d);
        free(header);
        return NULL;
    }
    memcpy(header, first->line.bytes, first->header_bytes);
    d->header = header;
    d->header_length = first->header_bytes;
    d->header_text = first->line.length;
    d->body_offset = first->end;
    d->column_count = first->fields;
    sl_fields_split((sl_text){header, d->header_text}, ',', '"', 0, names, first->fields);
    for (size_t k = 0; k < first->fields; k++)
        d->columns[k].name = names[k];
    return d;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole, sl_dialect **out,
                  sl_error *error) {
    (void)name;
    (void)whole;
    sl_first_line first;
    if (!sl_isd_plan_fits(plan, error) || !sl_first_line_read(head, 0, ",", '"', &first, error))
        return false;
    if (first.fields > COLUMNS_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is not a global-hourly table: its first line has %zu columns",
                            first.fields);
    csv_dialect *dialect = dialect_create(&first);
    if (!dialect)
        return sl_error_memory(error, "looking at a source");
    if (!bind(plan, dialect, error) || !check_values(dialect, &first, head, error)) {
        dialect_destroy((sl_dialect *)dialect);
        return sl_error_prefix(error, "this is not a global-hourly table");
    }
    *out = (sl_dialect *)dialect;
    return true;
}

static bool check_head(const sl_dialect *dialect, sl_text head, bool whole, sl_error *error) {
    sl_lines lines = {.delimiter = ',',
                      .quote = '"',
                      .continues = true,
                      .columns = ((const csv_dialect *)dialect)->column_count,
                      .advice = ""};
    return sl_lines_check(head, whole, &lines, error);
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    const csv_dialect *own = (const csv_dialect *)dialect;
    snprintf(out, room, "weather observations, global-hourly table of %zu columns, %zu of groups",
             own->column_count, own->group_count);
    return out;
}

static sl_text header(const sl_dialect *dialect) {
    const csv_dialect *own = (const csv_dialect *)dialect;
    return (sl_text){own->header, own->header_length};
}

const sl_format sl_format_isd_csv = {
    .name = "isd-csv",
    .summary = "weather observations as NOAA's global-hourly tables",
    .kind = "weather observations",
    SL_ISD_FUNCTIONS,
    .check_head = check_head,
    .dialect_destroy = dialect_destroy,
    .header = header,
};
