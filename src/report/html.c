/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a page as one HTML file, without scripts or external files, for light and dark mode and
 * for print. Text from records is escaped; should that fail, the page's content security policy
 * forbids scripts and requests. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory_stream.h"
#include "util/private_file.h"

#include "page.h"
#include "picture.h"
#include "sections.h"

/* The colours of series are distinguishable with colour blindness (after Okabe and Ito), on white
 * and, in lighter variants, on black. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n";

static const char style[] =
    "<style>\n"
    ":root{--paper:#fff;--ink:#1b1f24;--soft:#5a636e;--rule:#dfe3e8;--tint:#f3f5f7;--heat:#0b4f8a;"
    "--good:#00664b;--warning:#8a5a00;--bad:#a8321a;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#b5548c;--c4:#b07800;--c5:#2c86bd;--c6:#6f6a1f;"
    "--c7:#808890}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e6e9ec;--soft:#a3acb5;"
    "--rule:#343b42;--tint:#1d2227;--heat:#8cc8f5;--good:#4fd0a6;--warning:#f0b848;--bad:#ff8d73;"
    "--c0:#56aee2;--c1:#ff8d47;--c2:#2fc797;--c3:#e39ac6;--c4:#efb93f;--c5:#9bd4f8;--c6:#c2b85a;"
    "--c7:#a5adb5}}\n"
    "@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#ccc;--tint:#f3f5f7;"
    "--heat:#0b4f8a;--good:#00664b;--warning:#8a5a00;--bad:#a8321a;--c0:#0072b2;--c1:#d55e00;"
    "--c2:#008a64;--c3:#b5548c;--c4:#b07800;--c5:#2c86bd;--c6:#6f6a1f;--c7:#808890}"
    "figure,table tr,.facts{break-inside:avoid}h2,h3,figcaption b{break-after:avoid}"
    "body{max-width:none;padding:0}}\n"
    "*{box-sizing:border-box;print-color-adjust:exact;-webkit-print-color-adjust:exact}\n"
    "body{margin:0 auto;max-width:62rem;padding:1rem 1.2rem 3rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
    "sans-serif;overflow-wrap:break-word}\n"
    "h1{font-size:1.5rem;margin:.6rem 0}h2{font-size:1.3rem;margin:2.2rem 0 .6rem;"
    "border-bottom:2px solid var(--ink)}h3{font-size:1.1rem;margin:1.8rem 0 .4rem}\n"
    ".verdict{padding:.6rem .9rem;border-left:.4rem solid var(--soft);background:var(--tint);"
    "font-size:1.1rem}.good{border-color:var(--good)}.warning{border-color:var(--warning)}"
    ".bad{border-color:var(--bad)}\n"
    ".facts{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}.facts div{background:var(--tint);"
    "padding:.4rem .8rem}.facts dt{color:var(--soft);font-size:.85rem}.facts dd{margin:0;"
    "font-size:1.25rem;font-variant-numeric:tabular-nums}\n"
    "figure{margin:1.4rem 0}figcaption{margin-bottom:.3rem}figcaption span,.note{color:var(--soft);"
    "font-size:.9rem;display:block;margin:0}\n"
    ".wide{overflow-x:auto}svg{display:block;width:100%;min-width:40rem;height:auto}\n"
    "table{border-collapse:collapse;margin:.8rem 0;font-size:.92rem;"
    "font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:bold}"
    "th,td{padding:.15rem .9rem .15rem 0;text-align:right;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}th{color:var(--soft);font-weight:normal}"
    ".l{text-align:left;min-width:4rem;max-width:30rem}.r{white-space:nowrap}"
    "th.r{white-space:normal}.em td{font-weight:bold}\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:var(--ink)}.tick,.name{fill:var(--soft)}.small{font-size:10.5px}"
    ".over{fill:var(--paper);font-weight:600}.inside{fill:var(--paper);font-weight:600}\n"
    ".axis{stroke:var(--soft);fill:none}.rule{stroke:var(--rule);fill:none}.band{fill:var(--soft);"
    "fill-opacity:.09}.none{fill:none;pointer-events:all}.empty{fill:none;stroke:var(--rule);"
    "stroke-dasharray:3 3}\n"
    ".area{fill-opacity:.75}.line{fill:none;stroke-width:1.6}.dash{stroke-dasharray:7 3}"
    ".dots{stroke-dasharray:2 3}.part{stroke:var(--paper)}.whisker{stroke:var(--ink);"
    "stroke-width:1.4;fill:none}.limit{stroke:var(--bad);stroke-width:2;stroke-dasharray:6 3}"
    ".heat{fill:var(--heat)}.crisp{shape-rendering:crispEdges}"
    ".marked{stroke:var(--c1);stroke-width:3}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.2rem 0;padding:0;"
    "font-size:.88rem}.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}\n"
    "footer{margin-top:3rem;color:var(--soft);font-size:.85rem}\n";

static void write_style(FILE *out) {
    fputs(style, out);
    for (unsigned i = 0; i < SL_PICTURE_COLOURS; i++)
        fprintf(out, ".f%u{fill:var(--c%u)}.s%u{stroke:var(--c%u)}.b%u{background:var(--c%u)}\n", i,
                i, i, i, i, i);
    fputs("</style>\n", out);
}

static void write_element(FILE *out, const char *tag, const char *class, const char *text) {
    fprintf(out, "<%s", tag);
    if (class)
        fprintf(out, " class=\"%s\"", class);
    fputs(">", out);
    sl_markup_text(out, text, 2000);
    fprintf(out, "</%s>\n", tag);
}

static void write_facts(FILE *out, const sl_page_table *facts) {
    if (facts->count < 2)
        return; /* HTML requires at least one item */
    fputs("<dl class=\"facts\">\n", out);
    for (size_t i = 0; i + 1 < facts->count; i += 2) {
        fputs("<div>", out);
        write_element(out, "dt", NULL, facts->cells[i]);
        write_element(out, "dd", NULL, facts->cells[i + 1]);
        fputs("</div>\n", out);
    }
    fputs("</dl>\n", out);
}

static void write_table(FILE *out, const char *title, const sl_page_table *table) {
    fputs("<div class=\"wide\"><table>\n", out);
    if (title)
        write_element(out, "caption", NULL, title);
    fputs("<thead><tr>", out);
    for (size_t i = 0; i < table->columns; i++)
        write_element(out, "th", table->left[i] ? "l" : "r", table->titles[i]);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t row = 0; row < table->count / table->columns; row++) {
        fputs(row == table->emphasized ? "<tr class=\"em\">" : "<tr>", out);
        for (size_t i = 0; i < table->columns; i++)
            write_element(out, "td", table->left[i] ? "l" : "r",
                          table->cells[row * table->columns + i]);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void write_picture(FILE *out, const sl_block *block) {
    fputs("<figure>\n<figcaption>", out);
    write_element(out, "b", NULL, block->text);
    if (block->caption)
        write_element(out, "span", NULL, block->caption);
    fputs("</figcaption>\n<div class=\"wide\">\n", out);
#define DRAW(kind, name)                                                                           \
    case SL_BLOCK_##kind:                                                                          \
        sl_picture_##name(out, block->of.name, block->text);                                       \
        break;
    switch (block->kind) {
        SL_PICTURES(DRAW)
    default:
        break;
    }
#undef DRAW
    fputs("</div>\n</figure>\n", out);
}

static const char *const tones[] = {"verdict", "verdict good", "verdict warning", "verdict bad"};

static void write_block(FILE *out, const sl_block *block) {
    switch (block->kind) {
    case SL_BLOCK_CHAPTER:
        write_element(out, "h2", NULL, block->text);
        break;
    case SL_BLOCK_HEADING:
        write_element(out, "h3", NULL, block->text);
        break;
    case SL_BLOCK_VERDICT:
        write_element(out, "p", tones[block->tone], block->text);
        break;
    case SL_BLOCK_TEXT:
        write_element(out, "p", NULL, block->text);
        break;
    case SL_BLOCK_FACTS:
        write_facts(out, block->of.table);
        break;
    case SL_BLOCK_TABLE:
        write_table(out, block->text, block->of.table);
        break;
    default:
        write_picture(out, block);
    }
}

static void write_page(FILE *out, const sl_page *page, const char *title) {
    fputs(head, out);
    write_element(out, "title", NULL, title);
    write_style(out);
    fputs("</head>\n<body>\n", out);
    write_element(out, "h1", NULL, title);
    for (const sl_block *block = sl_page_first(page); block; block = block->next)
        write_block(out, block);
    fputs("<footer>Made by shardload from the records of the runs. Times of day are UTC; 1 kB is "
          "1,000 bytes.</footer>\n</body>\n</html>\n",
          out);
}

char *sl_report_html(const sl_report *report, sl_error *error) {
    char *text = NULL;
    size_t length = 0;
    const char *title = NULL;
    sl_page *page = sl_page_create();
    bool ok = page ? sl_sections_fill(page, report, &title, error)
                   : sl_error_memory(error, "making a report");
    if (ok) {
        FILE *out = sl_memory_stream(&text, &length);
        if (out)
            write_page(out, page, title);
        if (!out || fclose(out) != 0)
            sl_error_memory(error, "making a report");
    }
    sl_page_destroy(page);
    return text;
}

bool sl_report_html_write(const bson_t *const *records, size_t count, const char *title,
                          const char *path, sl_error *error) {
    sl_report report = {.records = records, .count = count, .title = title};
    char *text = sl_report_html(&report, error);
    bool ok = text && sl_private_file_replace(path, text, strlen(text), error);
    free(text);
    return ok;
}
