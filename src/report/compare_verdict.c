/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a comparison of loads, with its uncertainty. A load is one measurement; how much
 * its rate varies is estimated from ten parts of equal length. Their mean and standard error give
 * an interval for the ratio of two rates (Student's t, relative errors added in squares). The
 * interval does not include the variation between runs, which the text states. */
#include "sections.h"

#include <math.h>

#include "lookup.h"
#include "series.h"

#define PARTS 10
#define PARTS_LEAST 5

/* The 97.5 % quantile of Student's t for PARTS_LEAST - 1 to PARTS - 1 degrees of freedom. */
static const double quantiles[] = {2.776, 2.571, 2.447, 2.365, 2.306, 2.262};

typedef struct spread {
    double relative; /* standard error over mean; NAN: too few parts */
    size_t parts;
} spread;

static spread spread_of(sl_page *page, const bson_t *record) {
    sl_series series = sl_series_read(page, record, PARTS);
    double sum = 0, squares = 0;
    size_t count = series.intervals;
    for (size_t i = 0; i < count; i++)
        sum += sl_series_rate(&series, SL_SERIES_DOCUMENTS, i);
    double mean = count ? sum / (double)count : 0;
    for (size_t i = 0; i < count; i++) {
        double off = sl_series_rate(&series, SL_SERIES_DOCUMENTS, i) - mean;
        squares += off * off;
    }
    if (count < PARTS_LEAST || !(mean > 0))
        return (spread){NAN, count};
    double deviation = sqrt(squares / (double)(count - 1));
    return (spread){deviation / sqrt((double)count) / mean, count};
}

static void compare(sl_page *page, const sl_records *records, size_t index, const spread *first) {
    const bson_t *record = records->items[index];
    double rate = sl_section_rate(record), base = sl_section_rate(records->items[0]);
    const char *name = records->names[index];
    if (!(rate > 0) || !(base > 0))
        return;
    double ratio = rate / base;
    spread other = spread_of(page, record);
    if (isnan(first->relative) || isnan(other.relative)) {
        sl_page_add_text(
            page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
            sl_page_text(page,
                         "%.200s loaded at %.2f times the rate of the first run. One of "
                         "them was too short to estimate the uncertainty.",
                         name, ratio));
        return;
    }
    size_t parts = other.parts < first->parts ? other.parts : first->parts;
    double t = quantiles[(parts > PARTS ? PARTS : parts) - PARTS_LEAST];
    double half =
        ratio * t * sqrt(first->relative * first->relative + other.relative * other.relative);
    double low = ratio - half > 0 ? ratio - half : 0, high = ratio + half;
    bool differs = low > 1 || high < 1;
    sl_page_add_text(
        page, SL_BLOCK_VERDICT,
        !differs    ? SL_TONE_PLAIN
        : ratio > 1 ? SL_TONE_GOOD
                    : SL_TONE_BAD,
        sl_page_text(page,
                     "%.200s loaded %s: %.2f times the rate of the first run (95 %%: %.2f to "
                     "%.2f).",
                     name,
                     !differs    ? "at a rate that does not differ significantly"
                     : ratio > 1 ? "faster"
                                 : "more slowly",
                     ratio, low, high));
}

void sl_section_compare_rates(sl_page *page, const sl_records *records) {
    spread first = spread_of(page, records->items[0]);
    for (size_t i = 1; i < records->count; i++)
        compare(page, records, i, &first);
    sl_page_add_text(
        page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
        "The ranges come from the variation of the rate within each run. Different runs also vary: "
        "before a decision, repeat each run and compare runs with the same settings.");
}

void sl_section_compare_times(sl_page *page, const sl_records *records) {
    double first = sl_section_phase_seconds(records->items[0], "phases", NULL);
    double share = sl_look_amount(records->items[0], "sample", 1);
    for (size_t i = 1; i < records->count && first > 0; i++) {
        double seconds = sl_section_phase_seconds(records->items[i], "phases", NULL);
        bool same = fabs(sl_look_amount(records->items[i], "sample", 1) - share) < 1e-9;
        if (seconds > 0 && same)
            sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
                             sl_page_text(page,
                                          "%.200s took %.2f times as long as the first drill. The "
                                          "uncertainty is not known, because each side is a single "
                                          "drill.",
                                          records->names[i], seconds / first));
    }
}
