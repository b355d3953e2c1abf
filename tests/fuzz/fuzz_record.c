/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes `shardload report`: the input is JSON, a run record or not; its last byte selects the
 * output (HTML or terminal). The report is written, or fails with an error message. Text of the
 * record must not become HTML elements of the page. */
#include "report/json.h"
#include "report/report.h"

#include "check.h"

static size_t occurrences(const char *text, const char *of) {
    size_t count = 0;
    for (; (text = strstr(text, of)); text++)
        count++;
    return count;
}

/* Tags are balanced, there is no <script>, and no coordinate is NaN or infinite. */
static void check_html(const char *html) {
    static const char *const pairs[][2] = {{"<svg ", "</svg>"},   {"<figure>", "</figure>"},
                                           {"<text ", "</text>"}, {"<table>", "</table>"},
                                           {"<td ", "</td>"},     {"<title>", "</title>"},
                                           {"<p", "</p>"},        {"<ul ", "</ul>"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t opened = occurrences(html, pairs[i][0]);
        if (strcmp(pairs[i][0], "<p") == 0)
            opened -= occurrences(html, "<path");
        require(opened == occurrences(html, pairs[i][1]), pairs[i][1]);
    }
    require(!strstr(html, "<script"), "the page has no scripts");
    /* Quotes in the record's text are escaped, so an attribute with a quote is the renderer's. */
    static const char *const bad[] = {"=\"nan",   "=\"-nan",   "=\"inf",
                                      "d=\"Mnan", "d=\"M-nan", "d=\"Minf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        require(!strstr(html, bad[i]), "coordinates are finite");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bson_error_t wrong;
    sl_error error = {0};
    uint8_t flags = size > 0 ? data[size - 1] : 0;
    bson_t *record = sl_json_parse((const char *)data, size > 0 ? size - 1 : 0, &wrong);
    if (!record)
        return 0;
    const bson_t *const records[] = {record, record};
    const sl_report report = {.records = records, .count = 1 + (flags & 1)};
    bool written;
    if (flags & 2) {
        const sl_report_terminal terminal = {flags, (flags & 4) != 0};
        written = sl_report_text(&report, &terminal, null_stream(), &error);
    } else {
        char *html = sl_report_html(&report, &error);
        written = html != NULL;
        if (html)
            check_html(html);
        free(html);
    }
    if (!written)
        check_error(&error);
    bson_destroy(record);
    return 0;
}
