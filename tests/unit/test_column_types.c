/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of column types. An error here stores a value that differs from the text of the file,
 * which would not be noticed later. */
#include "parse_text.h"

#include "format/column_types.h"
#include "format/convert.h"
#include "format/scratch.h"
#include "format/typing.h"

/* The type of a column with these values, separated by '|'. */
static const char *type_of(const char *values) {
    static char out[SL_TYPE_ROOM];
    sl_column_guess guess = SL_COLUMN_GUESS;
    sl_schema_column column = {.name = "x"};
    for (const char *at = values;; at++) {
        size_t length = strcspn(at, "|");
        char *copy = malloc(length + 1); /* the sanitizer watches its end */
        assert_non_null(copy);
        memcpy(copy, at, length);
        sl_column_guess_add(&guess, (sl_text){copy, length}, NULL);
        free(copy);
        at += length;
        if (*at == '\0')
            break;
    }
    sl_column_guess_decide(&guess, &column);
    sl_column_type_write(&column, out);
    sl_schema_column again = {0};
    char word[SL_TYPE_ROOM];
    assert_true(sl_column_type_read(out, &again)); /* as --resume does */
    assert_string_equal(sl_column_type_write(&again, word), out);
    assert_int_equal(again.lossless, column.lossless);
    assert_int_equal(again.zone, column.zone);
    return out;
}

/* The room for a document is computed from the bounds of the rows. */
TEST(values_of_each_type_keep_within_its_bound) {
    static const char *const texts[] = {"1",
                                        "-9223372036854775808",
                                        "-1.25",
                                        "yes",
                                        "2016-01-15",
                                        "2016-01-15T10:00:00.123Z",
                                        "-1.234567890123456789012345678901234E+60",
                                        "0123456789abcdef01234567",
                                        "c8edabc3-f738-4ca3-b68d-ab92a91478a3",
                                        "any text \xC3\xA9",
                                        "{1,2}",
                                        "t",
                                        "AAECAw==",
                                        "MZXW6YQ=",
                                        "\\xDEAD"};
    const sl_dialect dialect = {0};
    sl_schema_column schema = {.minimum = INT64_MIN, .maximum = INT64_MAX, .yes = "yes"};
    for (size_t i = 0; sl_column_types[i].word; i++) {
        const sl_column_type *row = &sl_column_types[i];
        unsigned fitting = 0;
        schema.type = (sl_type)i;
        assert_true(row->value_bytes >= 5); /* of any value that is stored as text */
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            char text[SL_SLACK + 64] = {0}; /* with the readable bytes after a field */
            uint8_t to[2048], type = (uint8_t)row->bson;
            bool transcoded = false;
            sl_scratch scratch = {0};
            size_t length = strlen(texts[k]);
            memcpy(text, texts[k], length);
            const sl_value value = {.dialect = &dialect,
                                    .schema = &schema,
                                    .field = {text, length},
                                    .scratch = &scratch,
                                    .limit = to + 1024,
                                    .type = &type,
                                    .transcoded = &transcoded};
            const uint8_t *end = row->put(&value, to);
            sl_scratch_clear(&scratch);
            if (end && !row->grows && (size_t)(end - to) > row->value_bytes + length)
                fail_msg("%s: %s takes %td bytes", row->word, texts[k], end - to);
            fitting += end != NULL;
        }
        if (fitting == 0)
            fail_msg("%s: add a value to the texts", row->word);
    }
}

TEST(columns_have_the_narrowest_type_that_loses_nothing) {
    static const struct {
        const char *values, *type;
    } rows[] = {
        {"1|2|-3|0", "int"},
        {"9223372036854775807|-9223372036854775808", "int"},
        {"9223372036854775808", "text"},
        {"18446744073709551616|1", "decimal128"},
        {"18446744073709551616|18446744073709551617", "text"}, /* codes, perhaps */
        {"9007199254740993|1", "int"},
        {"9007199254740993|1.5", "decimal128"}, /* above 2^53: not a double */
        {"1|1.5", "double"},
        {"0.1|1e5", "double"},
        {"1|1e5", "text"}, /* codes, perhaps */
        {"1|1e+300|1e-07", "double"},
        {"0.5|-0", "double"},
        {"1E5", "text"},
        {"12E5|13E7", "text"},
        {"12E+5|13E+7", "text"},
        {"-7.324219E-4|6.6666669845581055|77.0", "double"},
        {"9.019607543945313|9.019607543945312", "double"}, /* the same double, either is printed */
        {"0.10000000000000001", "decimal128"},
        {"3.14159265358979323846", "decimal128"},
        {"3.14159265358979323846e+10", "decimal128"},
        {"3.14159265358979323846|NaN|Infinity", "decimal128"},
        {"1.2345678901234567890123456789012345", "text"}, /* 35 digits */
        {"00501|10001", "text"},
        {"-0", "text"},
        {"-0.0|1.0", "double"},
        {"+49|50", "text"},
        {"1,234", "text"},
        {"1,234|12,5", "double 1234,5"},
        {"1.234,5|1.000", "double 1.234,5"},
        {"1 234,5|-12,25", "double 1 234,5"},
        {"1\302\240234,5|12\342\200\257345\302\240678,25|1 234,5|1\240234", "double 1 234,5"},
        {"1\342\200\231234.50|1\222234", "double 1'234.5"},
        {"1'234.50|7", "double 1'234.5"},
        {"1,234,567|12", "int 1,234.5"},
        {"1,234.5|1,234", "double 1,234.5"},
        {"1.234,5|1,234.5", "text"},
        {"12.345.678.901.234.567,25", "decimal128 1.234,5"},
        {"100.200.300", "text"}, /* a code, perhaps */
        {"123 456 789", "text"},
        {"007,5|1,5", "text"},
        {"1.23,5", "text"},
        {"12%|13%", "text"},
        {"$5", "text"},
        {"0x1F", "text"},
        {"100000000000000000000.0|0.000000000000000000001|0.0|10.50", "double"},
        {"1234567890123456789012.5", "decimal128"},
        {"0.1000000000000000000000000|1", "double"},
        {"0000000000000000000000.5", "text"},
        {"5.|6.", "text"},
        {".5|-.25", "double"},
        {" 5", "text"},
        {"5 ", "text"},
        {"1_000", "text"},
        {"1.0|Infinity|-Infinity|\xE2\x88\x9E", "double"},
        {"Infinity", "text"}, /* a word, not a number */
        {"inf|1", "double"},
        {"NaN|1.5", "double"},
        {"true|false|true", "flag true false"},
        {"TRUE|FALSE", "flag TRUE FALSE"},
        {"True", "flag True False"},
        {"true|FALSE", "text"},
        {"yes|no", "text"},
        {"true|1", "text"},
        {"2016-01-15|2016-12-31", "date"},
        {"2016-02-30", "text"},
        {"2016-01-15T10:37:31|2016-01-15 10:37:31.084", "datetime"},
        {"2016-01-15|2016-01-15 10:37", "datetime"},
        {"2016-01-15T10:37:31Z|2016-01-15T10:37:31+01:00", "datetime with offset"},
        {"2016-01-15T10:37:31Z|2016-01-15T10:37:31", "text"}, /* whose time is the second? */
        {"2016-01-15T10:37:31.123456", "text"},
        {"2016-01-15T10:37:31.123000", "datetime"},
        {"2016-1-5|2016-01-15", "date %Y-%m-%d"},
        {"2016-01-15|2016-1-5", "date %Y-%m-%d"},
        {"2016-01-15|15.01.2016", "text"},
        {"15-Jan-2016 10:37:31.084|14-jul-2025 00:00:00.000", "datetime %d-%b-%Y %H:%M:%S"},
        {"Tue Mar 29 06:58:19 GMT+08:00 2022", "datetime %a %b %d %H:%M:%S %z %Y"},
        {"Mon Mar 29 06:58:19 GMT+08:00 2022", "text"}, /* it was a Tuesday */
        {"Tue Mar 29 06:58:19 PDT 2016", "text"},
        {"01/02/2016|03/04/2016", "text"}, /* either order */
        {"01/02/2016|13/04/2016", "date %d/%m/%Y"},
        {"01/02/2016|04/13/2016", "date %m/%d/%Y"},
        {"13/02/2016|04/13/2016", "text"},
        {"31.12.2015 23:59", "datetime %d.%m.%Y %H:%M"},
        {"1/31/2016 1:05:00 PM|2/1/2016 12:00:00 AM", "datetime %m/%d/%Y %I:%M:%S %p"},
        {"01/02/16|13/02/16", "text"}, /* which century? */
        {"10:37:31|11:00:00", "text"},
        {"1453456251084|1453456251", "int"}, /* an epoch is a number */
        {"-|NA|5", "int"},
        {"N/A|null|NULL||7.5", "double"},
        {"-|word", "text"},
        {"-||", "empty"},
        {"", "empty"},
        {"5|word", "text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(type_of(rows[i].values), rows[i].type) != 0)
            fail_msg("%s: %s instead of %s", rows[i].values, type_of(rows[i].values), rows[i].type);
    }
}

TEST(text_columns_keep_words_for_missing_values) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    sl_schema_column column = {0};
    sl_column_guess_add(&guess, sl_text_of("NA"), NULL);
    sl_column_guess_add(&guess, sl_text_of("Windhoek"), NULL);
    sl_column_guess_decide(&guess, &column);
    assert_int_equal(column.missing.count, 0);
    assert_int_equal(sl_column_class(&column), SL_CLASS_TEXT);
}

/* What a program prints for a double is accepted, and gives the same double; a changed last digit
 * is refused unless it is the other half of a tie. */
TEST(numbers_that_programs_print_are_kept) {
    uint64_t seed = 88172645463325252u;
    for (unsigned i = 0; i < 200000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        double value = (double)(int64_t)(seed >> 11) * pow(2, (int)(seed % 80) - 70);
        char text[64];
        int precision = 1;
        do
            snprintf(text, sizeof text, "%.*e", precision - 1, value);
        while (strtod(text, NULL) != value && ++precision <= 17);
        if (precision == 1)
            snprintf(text, sizeof text, "%.1e", value); /* an exponent needs a point */
        double read = 0;
        if (!sl_convert_lossless(text, strlen(text), &read) || read != value)
            fail_msg("%s is not kept", text);
        if (precision < 16)
            continue;
        char *last = strchr(text, 'e') - 1; /* 17 digits, if the number has 16: too many */
        *last = *last == '9' ? '8' : (char)(*last + 1);
        if (*last != '0' && sl_convert_lossless(text, strlen(text), &read)) {
            char shown[64];
            snprintf(shown, sizeof shown, "%.*e", precision - 1, read);
            if (read == value)
                continue; /* a tie: checked in the table above */
            assert_true(strtod(shown, NULL) == read);
        }
    }
}

TEST(short_decimals_are_read_as_by_strtod) {
    uint64_t seed = 1234567;
    for (unsigned i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        char text[80] = {0};
        snprintf(text, sizeof text, "%s%llu.%0*llu", seed & 1 ? "-" : "",
                 (unsigned long long)(seed >> (20 + seed % 40)), (int)(1 + seed % 7),
                 (unsigned long long)(seed >> 7 & 0xFFF));
        double value = 0, exact = strtod(text, NULL);
        if (sl_convert_short_decimal(text, strlen(text), &value) && value != exact)
            fail_msg("%s is read as %.17g", text, value);
        if (sl_convert_lossless(text, strlen(text), &value) && value != exact)
            fail_msg("%s is read as %.17g", text, value);
    }
}

TEST(dates_are_instants) {
    static const struct {
        const char *format, *text;
        int64_t milliseconds; /* -1: refused */
    } rows[] = {
        {NULL, "1970-01-01T01:00:00+01:00", 0},
        {NULL, "1970-01-01 00:30:00.5-0030", 3600500},
        {NULL, "1970-01-01T00:00:00,250Z", 250},
        {NULL, "1970-01-01T00:00:00+25:00", -1},
        {NULL, "1970-01-01T00:00:60", -1},
        {NULL, "1970-01-01T24:00:00", -1},
        {NULL, "1970-01-01T", -1},
        {NULL, "1970-01-01T00:00:00 x", -1},
        {"%d-%b-%Y %H:%M:%S", "01-January-1970 00:00:01.084", 1084},
        {"%d-%b-%Y %H:%M:%S", "01-Janu-1970 00:00:01", -1},
        {"%d/%m/%Y", "1/1/1970", 0},
        {"%d/%m/%Y", "29/2/1970", -1},
        {"%d/%m/%Y", "1/1/1970 ", -1},
        {"%d.%m.%y", "2.1.70", 86400000},
        {"%d.%m.%y", "31.12.68", 3124137600000},
        {"%d.%m.%y", "2.1.1970", -1},
        {"%m/%d/%Y %I:%M %p", "1/1/1970 12:00 am", 0},
        {"%m/%d/%Y %I:%M %p", "1/1/1970 12:01 PM", 43260000},
        {"%m/%d/%Y %I:%M %p", "1/1/1970 13:01 PM", -1},
        {"%a, %d %b %Y %H:%M:%S %z", "Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"%a, %d %b %Y %H:%M:%S %z", "Fri, 01 Jan 1970 00:00:00 GMT", -1},
        {"100%% %Y%m%d", "100% 19700102", 86400000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].text);
        char *copy = malloc(length + 1);
        memcpy(copy, rows[i].text, length);
        int64_t found = -1;
        bool ok = rows[i].format
                      ? sl_convert_formatted(rows[i].format, (sl_text){copy, length}, &found)
                      : sl_convert_iso((sl_text){copy, length}, SL_ZONE_ANY, false, &found);
        free(copy);
        if (ok != (rows[i].milliseconds >= 0) || (ok && found != rows[i].milliseconds))
            fail_msg("%s: %d, %lld", rows[i].text, ok, (long long)found);
    }
    static const char *const wrong[] = {
        "%d/%m",      "%Y",          "%Y-%m-%d %q",    "%",
        "%Y%Y-%m-%d", "%y.%m.%d %Y", "%Y-%m-%d %I:%M", "%Y-%m-%b-%d"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(sl_date_format_valid(wrong[i]));
    assert_true(sl_date_format_valid("%d.%m.%Y %H:%M:%S"));
}

/* A schema with inferred types is strict: what would be changed is a reject. */
TEST(lossless_columns_refuse_what_they_would_change) {
    static const char schema[] =
        "name: s\nlossless: true\nmissing: [\"-\", NA]\ncolumns:\n"
        "  - {name: i, type: int}\n  - {name: d, type: double}\n"
        "  - {name: t, type: datetime, offset: false}\n"
        "  - {name: z, type: datetime, offset: true}\n"
        "  - {name: m, type: date, format: \"%d/%m/%Y\"}\n  - {name: x, missing: []}\n";
    parsed p = parse_with_schema(
        schema,
        "i,d,t,z,m,x\n-5,1.50,2020-01-01 10:00:00.5,2020-01-01T10:00:00+01:00,31/1/2020,-\n"
        "NA,-,-,-,-,x\n"
        "1234567890123456789,6.6666669845581055,2020-01-01,2020-01-01T10:00:00Z,1/1/2020,\n");
    assert_int_equal(p.documents, 3);
    assert_string_equal(json_at(&p, 0),
                        "{ \"i\" : -5, \"d\" : 1.5, "
                        "\"t\" : { \"$date\" : \"2020-01-01T10:00:00.500Z\" }, "
                        "\"z\" : { \"$date\" : \"2020-01-01T09:00:00Z\" }, "
                        "\"m\" : { \"$date\" : \"2020-01-31T00:00:00Z\" }, \"x\" : \"-\" }");
    assert_string_equal(json_at(&p, 1), "{ \"x\" : \"x\" }");
    static const char *const bad[] = {"007,,,,,",
                                      "+1,,,,,",
                                      "-0,,,,,",
                                      "9223372036854775808,,,,,",
                                      ",1e5x,,,,",
                                      ",0.10000000000000001,,,,",
                                      ",+1.5,,,,",
                                      ",,2020-01-01 10:00:00Z,,,",
                                      ",,2020-01-01 10:00:00.0001,,,",
                                      ",,,2020-01-01 10:00:00,,",
                                      ",,,,2020-01-31,",
                                      ",,,,13/13/2020,"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "i,d,t,z,m,x\n%s\n", bad[i]);
        p = parse_with_schema(schema, text);
        if (p.reject_count != 1)
            fail_msg("%s is not rejected", bad[i]);
    }
}

/* Columns have the types of a layout with exactly the same names. */
TEST(types_belong_to_all_columns_of_a_table) {
    static const char *const names[] = {"a", "b", "c"}, *const types[] = {"text", "double", "int"};
    static const struct {
        const char *text;
        size_t known; /* columns of the layout */
        bool fits;
    } rows[] = {{"a,b\n1,2\n", 2, true},      {"b,a\n1,2\n", 2, true},  {"a,b\n1,2\n", 3, false},
                {"a,b,c\n1,2,3\n", 2, false}, {"a,d\n1,2\n", 2, false}, {"a,B\n1,2\n", 2, false},
                {"c,b,a\n1,2,3\n", 3, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_plan *plan = NULL;
        sl_dialect *dialect = NULL;
        sl_typing *typing = NULL;
        sl_error error = {0};
        assert_true(sl_format_delimited.plan_create(&(sl_format_options){0}, &plan, &error));
        assert_true(
            sl_format_delimited.sniff(plan, "x", sl_text_of(rows[i].text), true, &dialect, &error));
        assert_true(sl_typing_create(&typing, &error));
        assert_true(sl_typing_restore(typing, NULL, 0, names, types, rows[i].known, &error));
        if ((sl_typing_layout_of(typing, dialect) != NULL) != rows[i].fits)
            fail_msg("%s, %zu columns", rows[i].text, rows[i].known);
        assert_true(sl_typing_apply(typing, false, dialect, NULL, &error));
        for (size_t k = 0; k < dialect->column_count; k++) /* by their names */
            assert_int_equal(dialect->columns[k].schema.type,
                             strcmp(dialect->columns[k].key, "b") == 0 ? SL_TYPE_DOUBLE
                             : rows[i].known == 3 && dialect->columns[k].key[0] == 'c'
                                 ? SL_TYPE_INT
                                 : SL_TYPE_TEXT);
        sl_typing_destroy(typing);
        sl_format_delimited.dialect_destroy(dialect);
        sl_format_delimited.plan_destroy(plan);
    }
}

/* --resume takes the types of the journal, whatever a new sample would give. */
TEST(types_are_restored) {
    static const char text[] = "b,a\n1,2\n3,x\n";
    static const char *const names[] = {"b", "a"}, *const types[] = {"double", "date %d/%m/%Y"},
                             *const wrong[] = {"double", "datum"};
    sl_plan *plan = NULL;
    sl_dialect *dialect = NULL;
    sl_typing *typing = NULL;
    sl_error error = {0};
    assert_true(sl_format_delimited.plan_create(&(sl_format_options){0}, &plan, &error));
    assert_true(sl_format_delimited.sniff(plan, "x", sl_text_of(text), true, &dialect, &error));
    assert_true(sl_typing_create(&typing, &error));
    assert_true(sl_typing_restore(typing, NULL, 0, names, types, 2, &error));
    assert_true(sl_typing_apply(typing, false, dialect, NULL, &error));
    assert_int_equal(dialect->columns[0].schema.type, SL_TYPE_DOUBLE);
    assert_int_equal(dialect->columns[1].schema.type, SL_TYPE_DATE);
    assert_string_equal(dialect->columns[1].schema.format, "%d/%m/%Y");
    assert_string_equal(dialect->columns[1].key, "a");
    sl_typing_destroy(typing);
    assert_true(sl_typing_create(&typing, &error));
    assert_false(sl_typing_restore(typing, NULL, 0, names, wrong, 2, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    sl_typing_destroy(typing);
    assert_true(sl_typing_create(&typing, &error)); /* a journal without types: text */
    assert_true(sl_typing_apply(typing, false, dialect, NULL, &error));
    assert_int_equal(dialect->columns[0].schema.type, SL_TYPE_TEXT);
    sl_typing_destroy(typing);
    sl_format_delimited.dialect_destroy(dialect);
    sl_format_delimited.plan_destroy(plan);
}
