/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of a load's delimited texts; see dialects.h. */
#include "dialects.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/grow.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/print.h"

#define WARNINGS_MAX 3u /* about texts of one kind */
#define SKIPPED_SHOWN 5u
#define NAMES_ROOM 240
#define KINDS_MAX 4096u /* each text is compared with the texts of at most this many kinds */

/* Texts with the same columns that also agree in the fields up to `blanks`. */
typedef struct text_kind {
    char **columns; /* their names, sorted by compare_names; one allocation */
    size_t count;
    bool header, generated; /* generated: the names are column1, column2, ... */
    bool ordered;           /* the columns have the order of the schema */
    char delimiter;
    uint8_t blanks;
    char quote;                  /* of the first text, or of the first one whose fields show it */
    bool shown;                  /* fields of a text show the quote */
    const sl_notation *notation; /* of the first text, or of the first one that shows it */
    bool notation_shown;
    bool superseded;   /* its texts are read again in the notation of another kind */
    bool late;         /* texts were added before one that shows the quote */
    bool fixed;        /* known before the load began */
    unsigned warnings; /* about quotes of its texts */
    bool entry;        /* the first text is an entry of an archive */
    uint64_t unread;   /* hash of the line of unread_line; 0: there is none */
    char unread_text[60];
    char *first;            /* name of the first text, or of the first one that shows the quote */
    char names[NAMES_ROOM]; /* of the columns, for messages */
} text_kind;

struct sl_dialects {
    pthread_mutex_t lock; /* guards the fields below */
    text_kind *kinds;
    size_t count, room;
    bool fixed;
    uint64_t shown[SKIPPED_SHOWN]; /* hashes of the names of texts whose skipped lines are shown */
    size_t shown_count;
    bool unread_shown; /* a warning of different lines that are not read was logged */
    unsigned warnings; /* about columns that only one of two kinds has */
};

bool sl_dialects_create(sl_dialects **dialects, sl_error *error) {
    *dialects = calloc(1, sizeof **dialects);
    if (!*dialects)
        return sl_error_memory(error, "examining the sources");
    pthread_mutex_init(&(*dialects)->lock, NULL);
    return true;
}

static void kind_clear(text_kind *kind) {
    free(kind->columns);
    free(kind->first);
}

void sl_dialects_destroy(sl_dialects *dialects) {
    if (!dialects)
        return;
    for (size_t i = 0; i < dialects->count; i++)
        kind_clear(&dialects->kinds[i]);
    free(dialects->kinds);
    pthread_mutex_destroy(&dialects->lock);
    free(dialects);
}

void sl_dialects_fix(sl_dialects *dialects) {
    pthread_mutex_lock(&dialects->lock);
    dialects->fixed = true;
    pthread_mutex_unlock(&dialects->lock);
}

static int compare_names(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    const int order = strcasecmp(x, y);
    return order ? order : strcmp(x, y);
}

static bool has_column(const text_kind *kind, const char *name) {
    return bsearch(&name, kind->columns, kind->count, sizeof name, compare_names) != NULL;
}

/* Has the dialect the columns of the schema, in its order? */
static bool is_ordered(const sl_plan *plan, const sl_dialect *d) {
    const sl_schema *schema = plan->schema_count > 0 ? plan->schemas[0] : NULL;
    bool same = true;
    for (size_t i = 0; schema && same && i < d->column_count; i++)
        same = i < schema->column_count && d->columns[i].schema.name == schema->columns[i].name;
    return same;
}

static bool kind_of(const sl_plan *plan, const sl_dialect *d, text_kind *kind, sl_error *error) {
    *kind = (text_kind){.count = d->column_count,
                        .header = d->header_length > 0,
                        .generated = d->header_length == 0 && !plan->options.columns &&
                                     plan->schema_count == 0,
                        .ordered = is_ordered(plan, d),
                        .delimiter = d->delimiter,
                        .blanks = d->blanks,
                        .notation = d->notation,
                        .notation_shown = d->why[0] != '\0',
                        .quote = d->quote};
    size_t room = d->column_count * sizeof *kind->columns;
    for (size_t i = 0; i < d->column_count; i++)
        room += strlen(d->columns[i].published) + 1;
    kind->columns = malloc(room);
    if (!kind->columns)
        return sl_error_memory(error, "examining the sources");
    char *at = (char *)(kind->columns + d->column_count);
    for (size_t i = 0; i < d->column_count; i++) {
        kind->columns[i] = at;
        at = stpcpy(at, d->columns[i].published) + 1;
    }
    qsort(kind->columns, kind->count, sizeof *kind->columns, compare_names);
    size_t used = 0, i = 0;
    for (; i < d->column_count && used < NAMES_ROOM - 70; i++)
        used += sl_print_text(kind->names + used, NAMES_ROOM - used, "%s%.60s", i > 0 ? ", " : "",
                              d->columns[i].published);
    if (i < d->column_count)
        sl_print_text(kind->names + used, NAMES_ROOM - used, " ...");
    return true;
}

static bool same_columns(const text_kind *a, const text_kind *b) {
    bool same = a->count == b->count && a->header == b->header && a->ordered == b->ordered;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->columns[i], b->columns[i]) == 0;
    return same;
}

static bool same_marks(const text_kind *a, const text_kind *b) {
    return a->delimiter == b->delimiter && a->blanks == b->blanks;
}

static text_kind *find(const sl_dialects *dialects, const text_kind *kind) {
    for (size_t i = 0; i < dialects->count; i++) {
        text_kind *one = &dialects->kinds[i];
        if (same_columns(one, kind) && same_marks(one, kind) && one->notation == kind->notation)
            return one;
    }
    return NULL;
}

/* ---- notations ---- */

/* May both be texts of one table, of which only `shows` shows how values are written? */
static bool may_share_notation(const text_kind *shows, const text_kind *other) {
    return shows->notation_shown && !other->notation_shown && same_marks(shows, other) &&
           shows->count == other->count && shows->notation != other->notation;
}

/* A text as it is read in one notation. */
typedef struct reading {
    bool tried;
    sl_dialect *dialect; /* NULL: it cannot be read so */
    text_kind kind;
} reading;

static bool read_as(reading *r, const sl_plan *plan, sl_text head, bool whole,
                    const sl_notation *notation, sl_error *error) {
    sl_error why = {0};
    const bool tried = r->tried;
    r->tried = true;
    return tried || !sl_delimited_sniff_as(plan, head, whole, notation, &r->dialect, &why) ||
           kind_of(plan, r->dialect, &r->kind, error);
}

/* Has the text backslashes that the notation of its table does not write? Then they are data. */
static bool is_strange(text_kind *known, const sl_dialect *d, const char *name, sl_text head) {
    const char *at = d->bare_escape ? sl_notation_strange(d->notation, d->strict, head) : NULL;
    const bool end =
        at && at[1] == '.' && (at == head.bytes || at[-1] == '\n'); /* of COPY's data */
    char escape[12];
    if (!at || end)
        return false;
    sl_text_printable((sl_text){at, 2}, escape, sizeof escape);
    if (known->warnings++ < WARNINGS_MAX)
        sl_log_warning("%s: %s is no escape of the dialect %s, which %s of the same table shows: "
                       "backslashes of this text are data. If those of all texts are, give "
                       "--dialect csv; otherwise --dialect %s",
                       name, escape, d->notation->name, known->first, d->notation->name);
    return true;
}

/* Reads a text that does not show how values are written in the notation of its table. */
static bool share_notation(sl_dialects *dialects, const sl_plan *plan, const char *name,
                           sl_text head, bool whole, text_kind *kind, sl_dialect **dialect,
                           sl_error *error) {
    reading readings[SL_NOTATIONS] = {{0}}; /* once in each, however many kinds have it */
    bool ok = true, found = false;
    for (size_t i = 0; ok && !found && i < dialects->count; i++) {
        text_kind *one = &dialects->kinds[i];
        if (one->superseded || !may_share_notation(one, kind))
            continue;
        reading *r = &readings[one->notation - sl_notations];
        ok = read_as(r, plan, head, whole, one->notation, error);
        found = ok && r->dialect && same_columns(&r->kind, one) && same_marks(&r->kind, one) &&
                !is_strange(one, r->dialect, name, head);
        if (found) {
            const reading before = {.dialect = *dialect, .kind = *kind};
            *dialect = r->dialect;
            *kind = r->kind;
            *r = before;
            snprintf((*dialect)->why, sizeof(*dialect)->why, "as the other texts of the table");
        }
    }
    for (size_t i = 0; i < SL_NOTATIONS; i++) {
        sl_delimited_dialect_destroy(readings[i].dialect);
        kind_clear(&readings[i].kind);
    }
    return ok;
}

/* The text shows how values are written: earlier texts that may be of its table are read again. */
static bool supersede(sl_dialects *dialects, const text_kind *kind, const char *name,
                      sl_error *error) {
    for (size_t i = 0; i < dialects->count; i++) {
        text_kind *one = &dialects->kinds[i];
        if (one->superseded || !may_share_notation(kind, one))
            continue;
        if (dialects->fixed)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s and %s may be one table, but only %s shows that values are "
                                "written as by %s: give --dialect",
                                one->first, name, name, kind->notation->name);
        one->superseded = one->late = true;
    }
    return true;
}

/* ---- pieces of one table ---- */

/* The number of columns whose names are equal, ignoring case. Texts without header have all columns
 * in common if they have the same number, and otherwise none. If `other` is not NULL, it receives
 * the names that differ in case, as ONE (OTHER). */
static size_t common_columns(const text_kind *a, const text_kind *b, sl_column_names *other) {
    size_t common = 0;
    if (a->generated || b->generated)
        return a->generated && b->generated && a->count == b->count ? a->count : 0;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        const char *x = a->columns[i], *y = b->columns[k];
        const int order = strcasecmp(x, y);
        if (other && order == 0 && !has_column(b, x) && !has_column(a, y))
            sl_column_names_add_as(other, x, y);
        common += order == 0;
        i += order <= 0;
        k += order >= 0;
    }
    return common;
}

/* May they be pieces of one text, of which only the first has the header, so that a record of the
 * other one is taken for its header? With a schema, a text without header is read in the order of
 * the schema: a header with another order shows that this is wrong. */
static bool may_be_pieces(const text_kind *a, const text_kind *b, const sl_plan *plan) {
    const bool schema = plan->schema_count > 0;
    if (!same_marks(a, b) || a->count != b->count || a->count == 1 ||
        plan->options.header != SL_HEADER_AUTO || plan->options.columns)
        return false;
    if (a->header != b->header)
        return !schema || !a->ordered || !b->ordered;
    return !schema && a->header && common_columns(a, b, NULL) == 0;
}

static bool refuse_pieces(const text_kind *before, const text_kind *kind, const char *name,
                          bool schema, sl_error *error) {
    if (schema)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the header of %s names the columns in another order than the schema, "
                            "and %s has no header: are they pieces of one file? Give the schema "
                            "the order of the columns, or each file its header",
                            before->header ? before->first : name,
                            before->header ? name : before->first);
    const char *join = before->entry || kind->entry
                           ? "unpack the archives, and load the files joined"
                           : "load them joined: cat FIRST SECOND | shardload load ... -";
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s and %s have the same number of columns, and none of the same name: "
                        "are they pieces of one file, with one header? Then %s. If each has a "
                        "header of its own, give --header yes; if none has one, --header no. The "
                        "columns are %s, and %s",
                        before->first, name, join, before->names, kind->names);
}

/* Refuses a text that may be a piece of an earlier one, or that has column names of an earlier one
 * in another case: each of these columns would be stored as two fields. */
static bool check_columns(const sl_dialects *dialects, const sl_plan *plan, const text_kind *kind,
                          const char *name, sl_error *error) {
    const bool schema = plan->schema_count > 0;
    sl_column_names other = {.count = 0};
    for (size_t i = 0; i < dialects->count; i++) {
        const text_kind *one = &dialects->kinds[i];
        if (one->superseded)
            continue;
        common_columns(kind, one, &other);
        if (other.count > 0 && !schema)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: the header of %s has the names of these columns in another "
                                "case, so they would be two fields: %s. Name the columns as it "
                                "does: " SL_RENAMING,
                                name, one->first, other.shown, plan->options.array ? "embed-" : "");
        if (may_be_pieces(one, kind, plan))
            return refuse_pieces(one, kind, name, schema, error);
    }
    return true;
}

/* ---- sources with different tables ---- */

static bool share_most(const text_kind *a, const text_kind *b, size_t common) {
    return 3 * common > 2 * (a->count > b->count ? a->count : b->count);
}

/* A table that gained columns has all of the earlier one's, and at most twice as many. */
static bool is_alike(const text_kind *a, const text_kind *b, const sl_plan *plan) {
    const bool more = a->count > b->count;
    const size_t larger = more ? a->count : b->count, smaller = more ? b->count : a->count;
    const size_t common = common_columns(a, b, NULL);
    const bool grown = common == smaller && smaller > 2 && 2 * smaller >= larger;
    return may_be_pieces(a, b, plan) || grown || share_most(a, b, common);
}

bool sl_dialects_are_alike(sl_dialects *dialects, const sl_plan *plan, const char *name, bool named,
                           const sl_dialect *dialect, sl_error *error) {
    text_kind kind;
    sl_error warning;
    if (plan->schema_count > 0)
        return true;
    if (!kind_of(plan, dialect, &kind, error))
        return false;
    pthread_mutex_lock(&dialects->lock);
    bool alike = dialects->count == 0;
    for (size_t i = 0; i < dialects->count && !alike; i++)
        alike = is_alike(&dialects->kinds[i], &kind, plan);
    if (!alike)
        sl_error_set(named ? &warning : error, SL_EXIT_SOURCE,
                     "%sanother table than %s: its columns are %s, and those of the other are %s%s",
                     named ? "holds " : "", dialects->kinds[0].first, kind.names,
                     dialects->kinds[0].names,
                     named ? "; both are loaded into one collection"
                           : ". Load each table into a separate collection: name the files, or "
                             "select them with --include. To load both into one collection, name "
                             "both files instead of their folder or archive");
    if (!alike && named)
        sl_log_warning("%s " SL_LINES, name, warning.message);
    pthread_mutex_unlock(&dialects->lock);
    kind_clear(&kind);
    return alike || named;
}

/* ---- lines that are not read ---- */

/* The line before the records, if it does not name the columns: with --columns, or with skipped
 * lines and no header. Length 0: there is none, or it has another number of fields, as a title. */
static sl_text unread_line(const sl_plan *plan, const sl_dialect *d, sl_text head) {
    const bool skips =
        plan->schema_count > 0 ? plan->schemas[0]->skip_lines > 0 : d->skip_lines > 0;
    const bool unread = plan->options.columns || (d->header_length == 0 && skips);
    size_t end = (size_t)d->body_offset;
    if (!unread || d->body_offset > head.length)
        return (sl_text){"", 0};
    while (end > 0 && strchr("\r\n", head.bytes[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && head.bytes[start - 1] != '\n')
        start--;
    const sl_text line = {head.bytes + start, end - start};
    const bool fits = d->blanks || sl_fields_split(line, d->delimiter, d->quote, d->escape, NULL,
                                                   0) == d->column_count;
    return fits ? line : (sl_text){"", 0};
}

/* Hashes the letters and digits of this line, ignoring the case of ASCII. If the line of another
 * file of the load differs, the files may have different columns, or one of the lines is a record.
 * If the line was taken for a header (--header yes), this is refused; if it was only skipped, it
 * may be a title, and there is a warning. */
static bool check_unread(sl_dialects *dialects, const sl_plan *plan, const sl_dialect *d,
                         sl_text head, const char *name, text_kind *kind, sl_error *error) {
    const sl_text line = unread_line(plan, d, head);
    char text[900];
    for (size_t i = sl_byte_order_mark(line); i < line.length; i++) {
        const uint8_t byte = (uint8_t)line.bytes[i];
        if (byte >= 0x80 || isalnum(byte))
            kind->unread = (kind->unread ^ (uint64_t)tolower(byte)) * UINT64_C(0x100000001b3) + 1;
    }
    sl_text_printable(line, kind->unread_text, sizeof kind->unread_text);
    for (size_t i = 0; kind->unread && i < dialects->count; i++) {
        const text_kind *one = &dialects->kinds[i];
        if (!one->unread || one->unread == kind->unread)
            continue;
        sl_print_text(
            text, sizeof text,
            "the columns are named by their position, and the lines before the records differ: "
            "`%s` in %s, `%s` in %s. If one of them is a record, its file has no header: "
            "load this file by a separate command",
            one->unread_text, one->first, kind->unread_text, name);
        if (d->header_length > 0)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                SL_LINES ". If they are headers of different columns, load each "
                                         "file by a separate command, with its own names",
                                text);
        if (!dialects->unread_shown)
            sl_log_warning(SL_LINES, text);
        dialects->unread_shown = true;
    }
    return true;
}

/* ---- quotes ---- */

static const char *quote_text(char quote, char room[2]) {
    room[0] = quote;
    room[1] = '\0';
    return quote ? room : "none";
}

/* Reads the text with the quotes of its table, unless its own fields contradict them. */
static bool adopt(text_kind *known, const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    char room[2];
    sl_dialect *other = NULL;
    sl_error why = {0};
    bool fits = sl_delimited_sniff_quoted(plan, head, whole, known->quote, &other, &why);
    if (!fits && why.code != SL_EXIT_SOURCE) {
        *error = why;
        return false;
    }
    if (fits && other->column_count == known->count && sl_quoted_closes(other, head, whole)) {
        sl_delimited_dialect_destroy(*dialect);
        *dialect = other;
        return true;
    }
    sl_delimited_dialect_destroy(other);
    if (known->warnings++ < WARNINGS_MAX)
        sl_log_warning(
            "%s: the fields of %s, which has the same columns, are quoted by %s; quotes of "
            "this text do not form fields, and are kept as data: check them, or give --quote",
            name, known->first, quote_text(known->quote, room));
    return true;
}

/* Compares the quotes of a text with those of earlier texts of its kind. */
static bool match_quotes(const sl_dialects *dialects, text_kind *known, const text_kind *kind,
                         const char *name, bool *adopts, sl_error *error) {
    char one[2], other[2];
    if (kind->quote == known->quote) {
        known->shown = known->shown || kind->shown;
        return true;
    }
    if (kind->shown && known->shown) {
        if (known->warnings++ < WARNINGS_MAX)
            sl_log_warning(
                "%s and %s have the same columns, but their fields are quoted by %s and %s",
                known->first, name, quote_text(known->quote, one), quote_text(kind->quote, other));
        return true;
    }
    if (dialects->fixed && (kind->shown || !known->fixed))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s and %s have the same columns, but only the fields of %s are quoted "
                            "by %s: give --quote with this character if it quotes the fields of "
                            "both, and --quote none if it is data",
                            known->first, name, kind->shown ? name : known->first,
                            quote_text(kind->shown ? kind->quote : known->quote, one));
    *adopts = !kind->shown && known->shown;
    if (kind->shown) {
        char *first = strdup(name);
        if (!first)
            return sl_error_memory(error, "examining the sources");
        free(known->first);
        known->first = first;
        known->quote = kind->quote;
        known->late = known->shown = true;
    }
    return true;
}

/* ---- a text ---- */

/* Reports lines before the table that are not loaded: they may be records. A text may be added
 * several times. */
static void show_skipped(sl_dialects *dialects, const sl_dialect *d, const char *name) {
    const uint64_t hash = sl_hash_text(name, strlen(name));
    bool again = dialects->shown_count == SKIPPED_SHOWN;
    for (size_t i = 0; i < dialects->shown_count; i++)
        again = again || dialects->shown[i] == hash;
    if (d->skipped_text[0] == '\0' || again)
        return;
    dialects->shown[dialects->shown_count++] = hash;
    sl_log_warning("%s: %s before the table not loaded: `" SL_LINES "`; if these are "
                   "records, give --header no%s%s",
                   name, sl_plural(d->skip_lines, "line"), d->skipped_text,
                   d->advice ? d->advice : "",
                   dialects->shown_count == SKIPPED_SHOWN ? " (not shown for further texts)" : "");
}

void sl_column_names_add_as(sl_column_names *columns, const char *name, const char *as) {
    char *at = columns->shown + columns->used;
    const size_t room = sizeof columns->shown - columns->used;
    if (columns->count++ < SL_NAMES_SHOWN)
        columns->used += sl_print_text(at, room, "%s%.80s%s%.80s%s", columns->used ? ", " : "",
                                       name, *as ? " (" : "", as, *as ? ")" : "");
    else
        sl_print_text(at, room, " ...");
}

void sl_columns_warn(const char *of, const char *than, const sl_column_names *fresh,
                     const sl_column_names *missing, const char *more) {
    sl_log_warning("%s has other columns than %s: %s%s%s%s%s.%s If a column was renamed, a query "
                   "for one name does not find the other: a schema (inspect --write-schema FILE) "
                   "stores both under one name, with aliases",
                   of, than, fresh->count ? "new: " : "", fresh->shown,
                   fresh->count && missing->count ? "; " : "", missing->count ? "missing: " : "",
                   missing->shown, more);
}

/* Warns of a text whose table is like an earlier one, unless for some earlier text the two differ
 * only by a few columns that one of them lacks. */
static void show_other_columns(sl_dialects *dialects, const sl_plan *plan, const text_kind *kind,
                               const char *name) {
    const text_kind *like = NULL;
    sl_column_names fresh = {.count = 0}, missing = {.count = 0};
    if (plan->schema_count > 0 || dialects->warnings == WARNINGS_MAX)
        return;
    for (size_t i = 0; i < dialects->count; i++) {
        const text_kind *one = &dialects->kinds[i];
        const size_t common = one->superseded ? 0 : common_columns(one, kind, NULL);
        if ((common == one->count || common == kind->count) && share_most(one, kind, common))
            return;
        like = !like && common > 0 && is_alike(one, kind, plan) ? one : like;
    }
    if (!like)
        return;
    dialects->warnings++;
    for (size_t i = 0; i < kind->count; i++) {
        if (!has_column(like, kind->columns[i]))
            sl_column_names_add(&fresh, kind->columns[i]);
    }
    for (size_t i = 0; i < like->count; i++) {
        if (!has_column(kind, like->columns[i]))
            sl_column_names_add(&missing, like->columns[i]);
    }
    sl_columns_warn(name, like->first, &fresh, &missing, "");
}

/* Reports columns that the schema does not have, and those of the schema that the text lacks: they
 * may be the same, and one of the names wrong. */
static void show_extra(const sl_schema *schema, const sl_dialect *d, const char *name) {
    sl_column_names extra = {.count = 0}, lacking = {.count = 0};
    for (size_t i = 0; i < d->column_count; i++) {
        if (d->columns[i].schema.name == d->columns[i].published)
            sl_column_names_add(&extra, d->columns[i].published);
    }
    for (size_t k = 0; k < schema->column_count; k++) {
        bool found = false;
        for (size_t i = 0; i < d->column_count && !found; i++)
            found = d->columns[i].schema.name == schema->columns[k].name;
        if (!found)
            sl_column_names_add(&lacking, schema->columns[k].name);
    }
    if (lacking.count > 0)
        sl_log_warning("%s: not in the schema, loaded as text: %s; in the schema, but not in this "
                       "text: %s. If a column has another name here, correct the name in the "
                       "schema, or add the other one to its aliases",
                       name, extra.shown, lacking.shown);
    else
        sl_log_info("%s: not in the schema, loaded as text: %s", name, extra.shown);
}

/* Reports what may be read wrongly: a first record as a header, quotes as parts of values, a text
 * that another delimiter than the given one fits better, columns that the schema lacks. */
static void show_doubts(const sl_plan *plan, const sl_dialect *d, const char *name, bool sampled) {
    if (d->extra_columns > 0)
        show_extra(plan->schemas[0], d, name);
    const char *repeated = strstr(d->note, "repeated name");
    const char *numbered = repeated ? strstr(repeated, ", as ") : NULL;
    if (numbered)
        sl_log_warning("%s: a name occurs several times in the header: later columns are stored "
                       "with a number%.*s",
                       name, (int)strcspn(numbered, ";"), numbered);
    char header[60];
    sl_text_printable((sl_text){d->header, strcspn(d->header, "\r\n")}, header, sizeof header);
    if (d->header_assumed && d->header_length == 0)
        sl_log_warning("%s: the first line is loaded as a record, as --columns is given without "
                       "--header; if it is a header, give --header yes",
                       name);
    else if (d->header_assumed)
        sl_log_info("%s: the first line is assumed to be a header: `" SL_LINES "`; if it is a "
                    "record, give --header no",
                    name, header);
    if (d->header_missed && d->skip_lines > 0)
        sl_log_info("%s: no header is found, so the columns are named column1, column2, ...; if "
                    "line %zu names them, give --skip-lines %zu --header yes",
                    name, d->skip_lines + 1, d->skip_lines);
    else if (d->header_missed)
        sl_log_info("%s: no header is found, so the columns are named column1, column2, ...; if "
                    "the first line names them, give --header yes",
                    name);
    if (d->quotes_kept && !sampled) /* otherwise the sample for types shows them */
        sl_log_warning("%s: values have quotes, which are kept: --quote '\"' removes them", name);
    const char given[2] = {d->delimiter, '\0'}, other[2] = {d->other, '\0'};
    if (d->other && !plan->options.delimiter)
        sl_log_warning("%s: it is read as one column, and --delimiter %s would divide it evenly "
                       "into %zu",
                       name, d->other == '\t' ? "tab" : other, d->other_fields);
    else if (d->other)
        sl_log_warning("%s: --delimiter %s divides this text into %s, and %s would divide "
                       "it evenly into %zu columns: is the option right?",
                       name, d->delimiter == '\t' ? "tab" : given,
                       sl_plural(d->column_count, "column"), d->other == '\t' ? "tab" : other,
                       d->other_fields);
}

/* Adds a kind, whose columns then belong to the list. */
static bool add_kind(sl_dialects *dialects, const sl_plan *plan, text_kind *kind,
                     const sl_dialect *dialect, const char *name, sl_error *error) {
    for (size_t i = 0; i < dialects->count; i++) {
        const text_kind *one = &dialects->kinds[i];
        if (same_columns(one, kind) && !same_marks(one, kind)) {
            sl_log_warning("%s and %s have the same columns, but not the same delimiter; each is "
                           "read with its own",
                           one->first, name);
            break;
        }
    }
    text_kind *kinds =
        sl_grow(dialects->kinds, dialects->count, &dialects->room, sizeof *dialects->kinds);
    kind->first = strdup(name);
    if (kinds)
        dialects->kinds = kinds;
    if (!kinds || !kind->first)
        return sl_error_memory(error, "examining the sources");
    kind->fixed = !dialects->fixed;
    show_doubts(plan, dialect, name, plan->typing && !dialects->fixed);
    show_other_columns(dialects, plan, kind, name);
    dialects->kinds[dialects->count++] = *kind;
    *kind = (text_kind){0};
    return true;
}

bool sl_dialects_add(sl_dialects *dialects, const sl_plan *plan, const char *name, bool entry,
                     sl_text head, bool whole, sl_dialect **dialect, sl_error *error) {
    text_kind kind;
    bool adopts = false;
    if (!kind_of(plan, *dialect, &kind, error))
        return false;
    pthread_mutex_lock(&dialects->lock);
    const bool shares = plan->schema_count == 0 && !plan->options.notation;
    bool ok =
        !shares || (share_notation(dialects, plan, name, head, whole, &kind, dialect, error) &&
                    (!kind.notation_shown || supersede(dialects, &kind, name, error)));
    kind.entry = entry;
    kind.shown = ok && sl_quoted_begins(*dialect, head);
    ok = ok && check_columns(dialects, plan, &kind, name, error) &&
         check_unread(dialects, plan, *dialect, head, name, &kind, error);
    text_kind *known = ok ? find(dialects, &kind) : NULL;
    if (known && !known->unread) {
        known->unread = kind.unread;
        memcpy(known->unread_text, kind.unread_text, sizeof known->unread_text);
    }
    if (ok && known && plan->schema_count == 0 && plan->options.quote == SL_QUOTE_AUTO)
        ok = match_quotes(dialects, known, &kind, name, &adopts, error);
    else if (ok && !known && dialects->count < KINDS_MAX)
        ok = add_kind(dialects, plan, &kind, *dialect, name, error);
    ok = ok && (!adopts || adopt(known, plan, name, head, whole, dialect, error));
    if (ok)
        show_skipped(dialects, *dialect, name);
    pthread_mutex_unlock(&dialects->lock);
    kind_clear(&kind);
    return ok;
}

bool sl_dialects_are_late(sl_dialects *dialects, const sl_plan *plan, const sl_dialect *dialect,
                          bool *late, sl_error *error) {
    text_kind kind;
    if (!kind_of(plan, dialect, &kind, error))
        return false;
    pthread_mutex_lock(&dialects->lock);
    const text_kind *known = find(dialects, &kind);
    *late = known && known->late;
    pthread_mutex_unlock(&dialects->lock);
    kind_clear(&kind);
    return true;
}
