/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes `shardload report`: JSON that may be a record of a run, and a last byte that chooses how it
 * is shown. It is drawn, or refused in words; and whatever it says, the page has the elements of the
 * page and none of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/json.h>
#include <shardload/report.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t occurrences(const char *text, const char *of) {
    size_t count = 0;
    for (; (text = strstr(text, of)); text++)
        count++;
    return count;
}

/* Tags are balanced, and there is none that the renderer does not write. */
static void look_at(const char *html) {
    static const char *const pairs[][2] = {{"<svg ", "</svg>"},       {"<figure>", "</figure>"},
                                           {"<text ", "</text>"},     {"<table>", "</table>"},
                                           {"<td ", "</td>"},         {"<title>", "</title>"},
                                           {"<p", "</p>"},            {"<ul ", "</ul>"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t opened = occurrences(html, pairs[i][0]);
        if (strcmp(pairs[i][0], "<p") == 0)
            opened -= occurrences(html, "<path");
        if (opened != occurrences(html, pairs[i][1]))
            abort();
    }
    if (strstr(html, "<script"))
        abort();
    /* Quotes of a record are escaped, so these can only be the renderer's. */
    static const char *const places[] = {"=\"nan", "=\"-nan", "=\"inf", "d=\"Mnan", "d=\"M-nan",
                                         "d=\"Minf"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strstr(html, places[i]))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    bson_error_t wrong;
    sl_error error = {0};
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    uint8_t flags = size > 0 ? data[size - 1] : 0;
    bson_t *record = sl_json_parse((const char *)data, size > 0 ? size - 1 : 0, &wrong);
    if (!record)
        return 0;
    const bson_t *const records[] = {record, record};
    const sl_report report = {.records = records, .count = 1 + (flags & 1)};
    bool shown;
    if (flags & 2) {
        const sl_report_terminal terminal = {flags, (flags & 4) != 0};
        shown = sl_report_text(&report, &terminal, nowhere, &error);
    } else {
        char *html = sl_report_html(&report, &error);
        shown = html != NULL;
        if (html)
            look_at(html);
        free(html);
    }
    if (!shown && (error.code == SL_EXIT_OK || !error.message[0]))
        abort();
    bson_destroy(record);
    return 0;
}
