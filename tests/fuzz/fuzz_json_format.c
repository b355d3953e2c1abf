/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format json. JSON lines are split at line ends, like other formats. Other texts are
 * split where the splitter finds a position between two documents: these positions are the same for
 * texts read in pieces of any size, and the documents are the same for every split. The first byte
 * of the input selects options. */
#include "parsing.h"

#include "format/json.h"

/* The first end of a document from `least` on, or the position of a fault, if the text becomes
 * known in pieces. */
static size_t boundary(sl_text text, size_t piece, size_t least, const char **fault) {
    sl_split split = {0};
    size_t found = 0;
    *fault = NULL;
    if (!sl_json_splitter.divides(text, true))
        return 0;
    for (size_t end = 0; found == 0 && !split.fault && end < text.length;) {
        end = text.length - end > piece ? end + piece : text.length;
        char *copy = copy_of(text.bytes, end, SL_SLACK, '}');
        found = sl_json_splitter.find_end(&split, (sl_text){copy, end}, least, end == text.length);
        require(found <= end && split.at <= end, "the splitter stays within the text");
        free(copy);
    }
    *fault = split.fault;
    return found > 0 ? found : split.at;
}

/* `boundaries`: also checks that the boundaries are the same for pieces of any size. They do not
 * depend on the plan. Pieces of texts of more than 1,000 bytes have more than one byte, because the
 * time grows with their number. */
static uint64_t check_records(const sl_plan *plan, sl_text text, bool boundaries) {
    sl_dialect *dialect = NULL;
    sl_error error;
    if (!sl_format_json.sniff(plan, "", text, true, &dialect, &error))
        return 0;
    const char *fault, *other;
    boundary(text, text.length, text.length, &fault);
    uint64_t one = 0;
    if (!fault) /* the reader refuses other texts */
        one = parse_blocks(&sl_format_json, plan, dialect, text, text.length, false, false);
    if (parsing_ended) /* with other blocks the end of an invalid document may be certain */
        one = 0;
    size_t step = text.length / CUTS_MAX + 1;
    for (size_t least = 1; least < text.length; least += step) {
        size_t at = boundary(text, text.length, least, &fault);
        size_t shortest = 1 + text.length / 1000;
        for (size_t piece = shortest; boundaries && piece < shortest + 100; piece += 33) {
            require(boundary(text, piece, least, &other) == at && other == fault,
                    "the boundaries do not depend on the pieces");
        }
        if (one != 0 && at > 0)
            require(parse_blocks(&sl_format_json, plan, dialect, text, at, false, least & 1) == one,
                    "every block boundary gives the same result");
    }
    sl_format_dialect_destroy(&sl_format_json, dialect);
    return one;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plans untyped, typed;
    static const sl_format_options options[] = {
        {.declared = NULL},
        {.declared = "a=decimal,b=json,c.d=date,e=array:int,f.g.h=hex,st=double:1.234,5,i=base64"}};
    if (size < 2 || size > INPUT_MAX)
        return 0;
    bool whole = *data & 1, types = *data & 2;
    data++;
    sl_text text = {(const char *)data, --size};
    plans_of(&sl_format_json, &options[types], types ? &typed : &untyped);
    const plans made = types ? typed : untyped;
    if (sl_json_is_lines(text, whole)) {
        check_text(&sl_format_json, &made, "fuzz", text, whole);
        return 0;
    }
    uint64_t best = 0;
    for (size_t i = 0; i < SETS_MAX && made.of[i]; i++) {
        uint64_t hash = check_records(made.of[i], text, i == 0);
        require(i == 0 || hash == best, "all instruction sets give the same result");
        best = hash;
    }
    return 0;
}
