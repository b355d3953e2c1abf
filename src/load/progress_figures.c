/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the progress line, computed from counters at given times. */
#include "progress_figures.h"

#define NOW_SAMPLES 4 /* the present rate is that of the last two seconds */

void sl_window_keep(sl_window *window, const sl_progress_sample *sample) {
    window->samples[window->count++ % SL_WINDOW] = *sample;
}

/* The sample `back` positions before the next one, or the oldest; zeros when none was kept. */
static sl_progress_sample sample_before(const sl_window *window, unsigned back) {
    unsigned depth = window->count < SL_WINDOW ? window->count : SL_WINDOW;
    if (depth == 0)
        return (sl_progress_sample){0};
    return window->samples[(window->count - (depth < back ? depth : back)) % SL_WINDOW];
}

sl_figures sl_figures_of(const sl_window *window, const sl_progress_sample *now,
                         uint64_t stored_total) {
    const sl_progress_sample recent = sample_before(window, NOW_SAMPLES);
    const sl_progress_sample older = sample_before(window, SL_WINDOW);
    sl_figures seen = {.left = -1};
    double span = now->seconds - recent.seconds;
    if (span > 0) {
        seen.rate_now = (double)(now->documents - recent.documents) / span;
        seen.bytes_now = (double)(now->bytes - recent.bytes) / span;
    }
    if (now->seconds > 0)
        seen.rate_all = (double)now->documents / now->seconds;
    double busy = 0;
    for (unsigned k = 0; k < STAGES; k++)
        busy += now->stage_seconds[k] - recent.stage_seconds[k];
    for (unsigned k = 0; k < STAGES && busy > 0; k++)
        seen.stage_share[k] = (now->stage_seconds[k] - recent.stage_seconds[k]) / busy;
    if (stored_total == 0)
        return seen;
    seen.share = (double)now->stored_bytes / (double)stored_total;
    double done = (double)(now->stored_bytes - older.stored_bytes);
    if (done > 0 && now->seconds > 1)
        seen.left =
            (double)(stored_total - now->stored_bytes) * (now->seconds - older.seconds) / done;
    return seen;
}
