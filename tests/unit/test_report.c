/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of records: ticks are round numbers, rates add up to the counted documents, text of a
 * record never becomes markup, and pictures stay within their frames. */
#include <math.h>

#include "bson/bson_lookup.h"
#include "report/report.h"
#include "report/run_record.h"
#include "unit.h"

#include "report/page.h"
#include "report/sections.h"

TEST(ticks_are_round) {
    static const struct {
        double maximum;
        unsigned steps;
        sl_unit unit;
        double step;
        unsigned count;
    } cases[] = {
        {100, 5, SL_UNIT_COUNT, 20, 5},
        {101, 5, SL_UNIT_COUNT, 50, 3},
        {1, 5, SL_UNIT_COUNT, 1, 1},
        {0, 5, SL_UNIT_COUNT, 1, 1},
        {0.4, 4, SL_UNIT_SHARE, 0.1, 4},
        {1, 5, SL_UNIT_SHARE, 0.2, 5},
        {60, 6, SL_UNIT_SECONDS, 10, 6},
        {61, 4, SL_UNIT_SECONDS, 30, 3},
        {7200, 4, SL_UNIT_SECONDS, 1800, 4},
        {0.04, 4, SL_UNIT_SECONDS, 0.01, 4},
        {864000, 5, SL_UNIT_SECONDS, 172800, 5},
        {2.5e9, 5, SL_UNIT_BYTES, 5e8, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_ticks ticks = sl_ticks_for(cases[i].maximum, cases[i].steps, cases[i].unit);
        assert_true(fabs(ticks.step - cases[i].step) < 1e-9 * cases[i].step);
        assert_int_equal(ticks.count, cases[i].count);
    }
    static const double odd[] = {-1, NAN, INFINITY, -INFINITY, 1e-300, 1e18, 1e300};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        for (int unit = SL_UNIT_COUNT; unit <= SL_UNIT_SHARE; unit++) {
            sl_ticks ticks = sl_ticks_for(odd[i], 5, (sl_unit)unit);
            assert_true(ticks.step > 0 && ticks.count > 0 && ticks.count <= 12);
        }
    }
}

TEST(ticks_cover_every_maximum) {
    for (double maximum = 0.0123; maximum < 1e12; maximum *= 1.37) {
        for (int unit = SL_UNIT_COUNT; unit <= SL_UNIT_SHARE; unit++) {
            sl_ticks ticks = sl_ticks_for(maximum, 5, (sl_unit)unit);
            assert_true(ticks.top >= maximum * (1 - 1e-6));
            assert_true(ticks.count >= 1 && ticks.count <= 6);
            assert_true(ticks.top - ticks.step < maximum); /* by less than one step */
        }
    }
}

TEST(labels_of_ticks_differ) {
    for (double maximum = 0.0123; maximum < 1e12; maximum *= 1.37) {
        for (int unit = SL_UNIT_COUNT; unit <= SL_UNIT_SHARE; unit++) {
            sl_ticks ticks = sl_ticks_for(maximum, 5, (sl_unit)unit);
            char before[SL_HUMAN_ROOM] = "", text[SL_HUMAN_ROOM];
            for (unsigned i = 0; i <= ticks.count; i++) {
                sl_tick_text(i * ticks.step, &ticks, (sl_unit)unit, text);
                if (strcmp(before, text) == 0)
                    fail_msg("two ticks are both %s: step %g of unit %d", text, ticks.step, unit);
                strcpy(before, text);
            }
        }
    }
}

TEST(values_as_people_write_them) {
    char out[SL_HUMAN_ROOM];
    assert_string_equal(sl_short_text(0, out), "0");
    assert_string_equal(sl_short_text(999, out), "999");
    assert_string_equal(sl_short_text(1000, out), "1.00k");
    assert_string_equal(sl_short_text(45678, out), "45.7k");
    assert_string_equal(sl_short_text(456789, out), "457k");
    assert_string_equal(sl_short_text(999700, out), "1.00M");
    assert_string_equal(sl_value_text(1234567, SL_UNIT_COUNT, out), "1,234,567");
    assert_string_equal(sl_value_text(NAN, SL_UNIT_COUNT, out), "-");
    assert_string_equal(sl_value_text(-1, SL_UNIT_SECONDS, out), "-");
    assert_string_equal(sl_value_text(1e30, SL_UNIT_COUNT, out), "1e+30");
    assert_string_equal(sl_value_text(0.0123, SL_UNIT_MILLISECONDS, out), "0.012 ms");
    assert_string_equal(sl_value_text(12345.6, SL_UNIT_MILLISECONDS, out), "12,346 ms");
    /* A share that is not 0 or 100 % must not be shown as 0 or 100 %. */
    assert_string_equal(sl_share_text(0.999999, out), "99.999 %");
    assert_string_equal(sl_share_text(0.99998, out), "99.998 %");
    assert_string_equal(sl_share_text(1, out), "100.0 %");
    assert_string_equal(sl_share_text(0.00002, out), "0.002 %");
    assert_string_equal(sl_share_text(0, out), "0.0 %");
}

/* ---- series ---- */

/* For any number of points, and of points kept, the area under the curve is the number of
 * documents. */
TEST(rates_add_up) {
    static const struct {
        unsigned points;
        double step;
    } cases[] = {{1, 0.01}, {1, 1}, {2, 0.3}, {10, 1}, {7200, 1}, {50, 0.09}, {1000, 36.5}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        bson_t record = BSON_INITIALIZER, list, point, shards;
        uint64_t documents = 0;
        BSON_APPEND_ARRAY_BEGIN(&record, "series", &list);
        for (unsigned i = 0; i < cases[c].points; i++) {
            char key[16];
            snprintf(key, sizeof key, "%u", i);
            documents += 1000 + 37 * (i % 11);
            bson_append_document_begin(&list, key, -1, &point);
            BSON_APPEND_DOUBLE(&point, "seconds", cases[c].step * (i + 1));
            BSON_APPEND_INT64(&point, "documents", (int64_t)documents);
            BSON_APPEND_ARRAY_BEGIN(&point, "shardDocuments", &shards);
            BSON_APPEND_INT64(&shards, "0", (int64_t)documents / 2);
            bson_append_array_end(&point, &shards);
            bson_append_document_end(&list, &point);
        }
        bson_append_array_end(&record, &list);
        sl_page *page = sl_page_create();
        sl_series series = sl_series_read(page, &record, 300);
        double sum = 0;
        assert_in_range(series.intervals, 1, 302);
        assert_int_equal(series.shards, 1);
        for (size_t i = 0; i < series.intervals; i++) {
            assert_true(series.borders[i + 1] > series.borders[i]);
            sum += sl_series_rate(&series, SL_SERIES_DOCUMENTS, i) *
                   (series.borders[i + 1] - series.borders[i]);
        }
        assert_true(fabs(sum - (double)documents) < 1e-6 * (double)documents);
        sl_page_destroy(page);
        bson_destroy(&record);
    }
}

TEST(points_of_a_long_series_are_equally_far_apart) {
    sl_run_record *made = sl_run_record_create();
    bson_t record = BSON_INITIALIZER;
    int expected = 1;
    for (int i = 1; i <= 30000; i++)
        sl_run_record_point(made, &(sl_run_point){.seconds = i}, &(uint64_t){1}, 1);
    sl_run_record_copy(made, &record);
    for (sl_walk walk = sl_walk_start(&record, "series"); sl_walk_next(&walk); expected += 8)
        assert_int_equal((int)sl_look_number(&walk.item, "seconds"), expected);
    assert_int_equal(expected, 30001);
    bson_destroy(&record);
    sl_run_record_destroy(made);
}

/* Invalid series: time that stands still or goes back, counters that decrease, wrong types. */
TEST(invalid_series_are_accepted) {
    static const char *const series[] = {
        "{}",
        "{\"series\": 7}",
        "{\"series\": []}",
        "{\"series\": [1, null, {}]}",
        "{\"series\": [{\"seconds\": 0, \"documents\": 9}]}",
        "{\"series\": [{\"seconds\": -5}, {\"seconds\": {\"$numberDouble\": \"NaN\"}}]}",
        "{\"series\": [{\"seconds\": 3, \"documents\": 9}, {\"seconds\": 2, \"documents\": 99},"
        "{\"seconds\": 9, \"documents\": 1, \"shardDocuments\": [\"x\", 5],"
        "\"workerSeconds\": {\"a\": \"b\"}}]}",
        "{\"series\": [{\"seconds\": 1e-300, \"documents\": 1e18}, {\"seconds\": 1e18}]}",
        "{\"series\": [{\"seconds\": 1e300}]}",
    };
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) {
        bson_t *record = unit_json(series[i]);
        sl_page *page = sl_page_create();
        sl_series read = sl_series_read(page, record, 300);
        for (size_t k = 0; k < read.intervals; k++) {
            double rate = sl_series_rate(&read, SL_SERIES_DOCUMENTS, k);
            assert_true(rate >= 0 && rate <= SL_VALUE_MAX);
        }
        sl_page_destroy(page);
    }
}

/* ---- text that is not markup ---- */

static void markup(const char *text, size_t most, const char *expected) {
    char *shown = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&shown, &length);
    assert_non_null(out);
    sl_markup_text(out, text, most);
    fclose(out);
    assert_string_equal(shown, expected);
    free(shown);
}

TEST(text_is_never_markup) {
    markup("<script>alert('x')</script>", 100, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    markup("a & \"b\"", 100, "a &amp; &quot;b&quot;");
    markup("caf\xc3\xa9 \xff \x1b[31m", 100, "caf\xc3\xa9 \\xff \\x1b[31m");
    markup("abcdef", 4, "abc\xe2\x80\xa6");
    markup("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4, "\xc3\xa9\xc3\xa9\xc3\xa9\xe2\x80\xa6");
    markup("abcd", 4, "abcd");
    markup(NULL, 4, "");
}

/* ---- records ---- */

static const char smallest[] = "{\"program\": \"shardload\", \"phases\": [], \"accounting\": {}}";

TEST(the_kind_of_a_record_is_recognised) {
    static const struct {
        const char *json, *message; /* NULL: the record is valid */
    } cases[] = {
        {smallest, NULL},
        {"{\"program\": \"shardload\", \"command\": \"tune\", \"settings\": []}", NULL},
        {"{\"program\": \"shardload\", \"command\": \"reload\", \"phases\": []}", NULL},
        {"{\"program\": \"shardquery\", \"command\": \"run\", \"queries\": []}", NULL},
        {"{\"program\": \"bench\", \"command\": \"shards\", \"rows\": []}", "bench shards"},
        {"{}", "\"program\""},
        {"{\"program\": 7}", "\"program\""},
        {"{\"program\": \"shardquery\"}", "shardquery"},
        {"{\"program\": \"shardload\", \"command\": \"verify\"}", "shardload verify"},
        {"{\"program\": \"shardload\", \"phases\": []}", "\"accounting\" is missing"},
        {"{\"program\": \"shardload\", \"phases\": {}, \"accounting\": {}}",
         "\"phases\" is missing"},
        {"{\"program\": \"shardquery\", \"command\": \"run\"}", "\"queries\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t *record = unit_json(cases[i].json);
        const bson_t *const records[] = {record};
        sl_report report = {.records = records, .count = 1};
        sl_error error = {0};
        char *html = sl_report_html(&report, &error);
        assert_int_equal(sl_report_check_record(record, NULL), html != NULL);
        if (cases[i].message) {
            assert_null(html);
            assert_int_equal(error.code, SL_EXIT_SOURCE);
            if (!strstr(error.message, cases[i].message))
                fail_msg("%s is not in: %s", cases[i].message, error.message);
        } else {
            assert_non_null(html);
            assert_non_null(strstr(html, "</html>"));
        }
        free(html);
    }
}

TEST(terminals_of_any_width) {
    bson_t *record = unit_json(smallest);
    const bson_t *const records[] = {record, record};
    for (unsigned columns = 0; columns < 1000; columns += 37) {
        for (size_t count = 1; count <= 2; count++) {
            sl_report report = {.records = records, .count = count};
            sl_report_terminal terminal = {columns, columns % 2 == 0};
            char *text = NULL;
            size_t length = 0;
            FILE *out = open_memstream(&text, &length);
            assert_true(sl_report_text(&report, &terminal, out, NULL));
            fclose(out);
            assert_true(length > 0);
            free(text);
        }
    }
}
