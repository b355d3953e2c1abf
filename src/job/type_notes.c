/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of the types of columns; see type_notes.h and types.h. */
#include "type_notes.h"
#include "sources.h"
#include "types.h"

#include <string.h>

#include "format/declared.h"
#include "format/delimited.h"
#include "util/log.h"

/* Writes NAME=TYPE as --types takes it; nothing if that is not possible. */
static void write_declaration(const char *name, const sl_schema_column *type, const char *before,
                              char *out, size_t room) {
    char word[SL_TYPE_ROOM];
    sl_column_type_write(type, word);
    if (type->zone == SL_CHOICE_YES)
        word[strcspn(word, " ")] = '\0';
    *out = '\0';
    if (!type->mixed[0])
        sl_declaration_write(before, name, word, type->type, out, room);
}

void sl_type_write_readings(const sl_typed_column *column, bool decimal, char *out, size_t room) {
    char one[SL_FIELD_ROOM + SL_TYPE_ROOM], word[SL_WORD_ROOM(sizeof one)], reading[100];
    sl_schema_column types[SL_READINGS];
    size_t used = 0;
    *out = '\0';
    if (column->schema.declared || column->stored || column->schema.mixed[0] || column->rest ||
        column->padded || sl_column_class(&column->schema) != SL_CLASS_TEXT)
        return;
    const size_t readings = sl_column_guess_readings(&column->guess, types);
    for (size_t r = 0; r < readings; r++) {
        sl_column_reading_write(&types[r], column->guess.example, reading, sizeof reading);
        if (decimal && sl_column_class(&types[r]) == SL_CLASS_NUMBERS)
            types[r].type = SL_TYPE_DECIMAL;
        write_declaration(column->name, &types[r], "", one, sizeof one);
        if (!*one) /* the name has a comma */
            return;
        used += sl_print_text(out + used, room - used, "%s--types %s%s", r > 0 ? " or " : "",
                              sl_shell_word(one, word, sizeof word), reading);
    }
}

bool sl_type_declare(const char *name, const sl_schema_column *type, char list[400]) {
    char one[SL_FIELD_ROOM + SL_TYPE_ROOM];
    write_declaration(name, type, *list ? "," : "", one, sizeof one);
    return *one && strlen(list) + strlen(one) < 400 && strcat(list, one);
}

/* ---- warnings ---- */

/* Names the columns of CREATE TABLE that are text because of such digits. */
static void log_kept(const sl_job *job) {
    const sl_dialect *dialect = NULL;
    sl_column_names kept = {.count = 0};
    for (size_t i = 0; i < sl_source_set_count(job->set) && !dialect; i++) {
        if (!job->sources[i].skipped && job->sources[i].format == &sl_format_delimited)
            dialect = job->sources[i].dialect;
    }
    for (size_t i = 0; dialect && i < dialect->column_count; i++) {
        if (dialect->columns[i].schema.cut)
            sl_column_names_add(&kept, dialect->columns[i].published);
    }
    if (kept.count > 0)
        sl_log_warning("dates hold milliseconds; the seconds of %s have more digits, so %s "
                       "loaded as text. To cut them, export the table as CSV, and load it with "
                       "--types COLUMN=datetime (docs/from-sql.md)",
                       kept.shown, kept.count == 1 ? "it is" : "they are");
}

/* Names the columns of dates that are text because of digits that a date cannot hold, or because
 * the dates have several formats. */
static void log_cut(const sl_job *job) {
    sl_typing_walk walk = sl_types_columns(job);
    sl_column_names cut = {.count = 0};
    char types[400] = "", word[SL_WORD_ROOM(sizeof types)];
    size_t listed = 0;
    log_kept(job);
    for (const sl_typed_column *typed; (typed = sl_typing_next(&walk)) != NULL;) {
        char name[80];
        const sl_schema_column *column = &typed->schema;
        sl_text_printable(sl_text_of(typed->name), name, sizeof name);
        if (column->mixed[0])
            sl_log_warning("the %s of %s have several formats, so they are loaded as text; to load "
                           "%s, write a schema (inspect --write-schema FILE), and declare there %s",
                           sl_column_mixed_kind(column), name, sl_column_mixed_kind(column),
                           column->mixed);
        if (column->declared || typed->stored || !sl_column_guess_is_cut(&typed->guess))
            continue;
        sl_column_names_add(&cut, typed->name);
        listed +=
            sl_type_declare(typed->name, &(sl_schema_column){.type = SL_TYPE_DATETIME}, types);
    }
    if (cut.count > 0)
        sl_log_warning("dates hold milliseconds; the seconds of %s have more digits, so %s "
                       "loaded as text%s%s%s%s",
                       cut.shown, cut.count == 1 ? "it is" : "they are",
                       listed > 0 ? ": --types " : "",
                       listed > 0 ? sl_shell_word(types, word, sizeof word) : "",
                       listed > 0 ? " cuts them" : "",
                       listed == cut.count ? ""
                                           : "; for all, write a schema (inspect "
                                             "--write-schema FILE), and declare them {type: "
                                             "datetime, lossless: false}");
}

#define RESTS_SHOWN 4u

/* Writes the first value that keeps a column from being of another type. */
static void write_misfit(const sl_job *job, const sl_typed_column *column, char *out, size_t room) {
    const sl_column_rest *rest = column->rest;
    const sl_source *source = sl_source_set_at(job->set, rest->source);
    const char *mixed = column->type_of_rest.mixed;
    char misfits[SL_HUMAN_ROOM], values[SL_HUMAN_ROOM], type[SL_TYPE_ROOM];
    uint64_t line =
        rest->line > 0 ? rest->line : sl_sources_line_at(job, rest->source, rest->offset);
    sl_print_text(out, room,
                  "\n  %s: %s of %s sampled values %s no %s%s%s, the first \"%s\" in %s, %s %llu%s",
                  column->name, sl_human_count(rest->misfits, misfits),
                  sl_human_count(rest->misfits + rest->guess.values, values),
                  rest->misfits == 1 ? "is" : "are", *mixed ? "date (in a schema, " : "",
                  *mixed ? mixed : sl_column_type_write(&column->type_of_rest, type),
                  *mixed ? ")" : "", rest->first, source->shown, line > 0 ? "line" : "byte",
                  (unsigned long long)(line > 0 ? line : rest->offset),
                  rest->same > 0 ? "; if it means \"no value\", give it by --null" : "");
}

/* Warns of columns of text whose values may be numbers or dates, with the types to declare. */
static void log_readings(const sl_job *job) {
    sl_typing_walk walk = sl_types_columns(job);
    char shown[2400] = "", readings[600];
    size_t used = 0, count = 0;
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;) {
        sl_type_write_readings(column, false, readings, sizeof readings);
        if (*readings && count++ < RESTS_SHOWN)
            used += sl_print_text(shown + used, sizeof shown - used, "\n  \"%s\": " SL_LINES,
                                  column->guess.example, readings);
    }
    if (count > 0)
        sl_log_warning("%s loaded as text, because the values may be codes (as 3.1 beside 3.10), "
                       "or can be read in several ways. If they are numbers or dates, declare the "
                       "type:" SL_LINES SL_LINES,
                       sl_plural(count, "column[s] [is|are]"), shown,
                       count > RESTS_SHOWN ? "\n  ..." : "");
}

static void log_misfits(const sl_job *job) {
    sl_typing_walk walk = sl_types_columns(job);
    char shown[2400] = "", types[400] = "", word[SL_WORD_ROOM(sizeof types)], one[600];
    size_t used = 0, count = 0;
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;) {
        if (!column->rest)
            continue;
        sl_type_declare(column->name, &column->type_of_rest, types);
        if (count++ >= RESTS_SHOWN)
            continue;
        write_misfit(job, column, one, sizeof one);
        used += sl_print_text(shown + used, sizeof shown - used, SL_LINES, one);
    }
    if (count > 0)
        sl_log_warning(
            "some values make %s text:" SL_LINES SL_LINES "\nTo reject such records, load with "
            "%s%s. To keep such values as text or to leave them out, write a schema (inspect "
            "--write-schema FILE), and declare the type there with invalid: text or invalid: "
            "missing",
            sl_plural(count, "column"), shown, count > RESTS_SHOWN ? "\n  ..." : "",
            *types ? "--types " : "declared types",
            *types ? sl_shell_word(types, word, sizeof word) : "");
}

static void log_padded(const sl_job *job) {
    sl_typing_walk walk = sl_types_columns(job);
    sl_column_names padded = {.count = 0};
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;) {
        if (column->padded)
            sl_column_names_add(&padded, column->name);
    }
    if (padded.count > 0)
        sl_log_warning("only the blanks around values make %s text: %s. With --trim, "
                       "the values become numbers, dates or flags",
                       sl_plural(padded.count, "column"), padded.shown);
}

/* Warns of words such as NULL, which are texts in some columns, and missing values in others. */
static void log_words(const sl_job *job) {
    sl_column_names texts = {.count = 0};
    const sl_typed_column *column;
    unsigned words[2] = {0, 0}; /* of typed columns; of texts */
    char shown[80] = "", given[80] = "";
    size_t used = 0, options = 0;
    for (sl_typing_walk walk = sl_types_columns(job); (column = sl_typing_next(&walk)) != NULL;) {
        const sl_type_class class = sl_column_class(&column->schema);
        if (class < SL_CLASS_TEXT || column->schema.type == SL_TYPE_TEXT)
            words[class == SL_CLASS_TEXT] |= column->guess.words;
    }
    words[0] &= words[1] & ((1u << SL_MISSING_TEXTS) - 1);
    if (words[0] == 0)
        return;
    for (sl_typing_walk walk = sl_types_columns(job); (column = sl_typing_next(&walk)) != NULL;) {
        if (sl_column_class(&column->schema) == SL_CLASS_TEXT && column->guess.words & words[0])
            sl_column_names_add(&texts, column->name);
    }
    for (unsigned left = words[0]; left; left &= left - 1) {
        const char *word = sl_missing_words.words[__builtin_ctz(left)];
        used += sl_print_text(shown + used, sizeof shown - used, "%s%s", used ? ", " : "", word);
        options += sl_print_text(given + options, sizeof given - options, " --null %s", word);
    }
    sl_log_warning("%s: no value in columns of numbers, dates or flags, but a text in %s. If "
                   "it is no value there either, give%s",
                   shown, texts.shown, given);
}

/* Reports numbers that have a decimal point between commas, and a comma in other files. */
static void log_forms(const sl_job *job) {
    sl_typing_walk walk = sl_types_columns(job);
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;) {
        char name[200], is[SL_TYPE_ROOM], was[SL_TYPE_ROOM];
        sl_text_printable(sl_text_of(column->path), name, sizeof name);
        if (column->other)
            sl_log_info("column %s: %s in files with %s between columns, %s in others: each file "
                        "is read in its own form",
                        name, sl_column_type_write(&column->schema, is),
                        column->written & SL_BETWEEN_COMMAS ? "commas" : "other delimiters",
                        sl_column_type_write(&column->other->schema, was));
    }
}

void sl_types_log_doubts(const sl_job *job) {
    log_forms(job);
    sl_typing_log_shorter(sl_types_columns(job).typing);
    if (sl_types_plan(job))
        sl_sources_log_doubts(job, sl_types_plan(job));
    log_words(job);
    log_padded(job);
    log_readings(job);
    log_misfits(job);
}

void sl_types_log(const sl_job *job) {
    char summary[SL_TYPES_SUMMARY_ROOM];
    log_cut(job);
    sl_types_log_doubts(job);
    if (sl_types_summary(job, summary)[0])
        sl_log_info("%s", summary);
}
