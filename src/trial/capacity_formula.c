/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a formula of a capacity model by recursive descent, with interval arithmetic for the
 * range: low and high are the bounds of what the operation gives for any operands within theirs. If
 * an input occurs twice with opposite effects, the range is wider than necessary, never
 * narrower. */
#include "capacity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define DEPTH_MAX 60
#define ARGUMENTS_MAX 16

typedef struct parser {
    const char *at;
    unsigned depth;
    sl_capacity_lookup *lookup;
    void *context;
    sl_error *error;
} parser;

static bool sum(parser *p, sl_capacity_value *value);

static bool complain(parser *p, const char *problem) {
    char shown[60];
    sl_text_printable(sl_text_of(*p->at ? p->at : "the end"), shown, sizeof shown);
    return sl_error_set(p->error, SL_EXIT_USAGE, "%s at: %s", problem, shown);
}

/* The character after blanks; 0 at the end. */
static char next(parser *p) {
    p->at += strspn(p->at, " \n");
    return *p->at;
}

static bool accept(parser *p, char wanted) {
    bool found = next(p) == wanted;
    p->at += found;
    return found;
}

bool sl_capacity_number(const char *text, size_t length, double *number) {
    static const char suffixes[] = "kMGTP";
    char copy[40], *end;
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-kMGTP") != length)
        return false;
    *number = strtod(copy, &end);
    const char *suffix = *end && end != copy ? strchr(suffixes, *end) : NULL;
    for (int i = 0; suffix && i <= suffix - suffixes; i++)
        *number *= 1000;
    end += suffix != NULL;
    return end != copy && !*end && isfinite(*number);
}

/* ---- operations ---- */

/* Extends the range of `into` so that it contains x. */
static void include(sl_estimate *into, double x) {
    into->low = fmin(into->low, x);
    into->high = fmax(into->high, x);
}

static sl_estimate add(sl_estimate a, sl_estimate b) {
    return (sl_estimate){a.value + b.value, a.low + b.low, a.high + b.high};
}

static sl_estimate negative(sl_estimate a) {
    return (sl_estimate){-a.value, -a.high, -a.low};
}

static sl_estimate product(sl_estimate a, sl_estimate b) {
    sl_estimate made = sl_estimate_exactly(a.value * b.value);
    include(&made, a.low * b.low);
    include(&made, a.low * b.high);
    include(&made, a.high * b.low);
    include(&made, a.high * b.high);
    return made;
}

/* Checked after each operation, because min and max would drop a value that is not a number. */
static bool is_finite(parser *p, const sl_estimate *a) {
    return (isfinite(a->low) && isfinite(a->value) && isfinite(a->high)) ||
           complain(p, "a value is too large");
}

static double usl(double n, double contention, double coherency) {
    return n / (1 + contention * (n - 1) + coherency * n * (n - 1));
}

/* The law decreases with both of its parameters. With a coherency above 0, it has one maximum in
 * n. */
static bool scalability(parser *p, const sl_estimate *of, sl_estimate *made) {
    if (of[0].low < 1 || of[1].low < 0 || of[1].high > 1 || of[2].low < 0 || of[2].high > 1)
        return complain(p, "usl(n, contention, coherency) needs n >= 1 and parameters of 0 to 1");
    *made = sl_estimate_exactly(usl(of[0].value, of[1].value, of[2].value));
    include(made, usl(of[0].low, of[1].low, of[2].low));
    include(made, usl(of[0].low, of[1].high, of[2].high));
    include(made, usl(of[0].high, of[1].low, of[2].low));
    include(made, usl(of[0].high, of[1].high, of[2].high));
    double best = of[2].low > 0 ? sqrt((1 - of[1].low) / of[2].low) : INFINITY;
    if (best > of[0].low && best < of[0].high)
        include(made, usl(best, of[1].low, of[2].low));
    return true;
}

/* min or max of the arguments; keeps the text of the one that decides. */
static void extreme(bool most, const sl_estimate *of, const sl_text *texts, size_t count,
                    sl_capacity_value *value) {
    double (*choose)(double a, double b) = most ? fmax : fmin;
    size_t decides = 0;
    value->number = of[0];
    for (size_t i = 1; i < count; i++) {
        if (most ? of[i].value > of[decides].value : of[i].value < of[decides].value)
            decides = i;
        value->number = (sl_estimate){choose(value->number.value, of[i].value),
                                      choose(value->number.low, of[i].low),
                                      choose(value->number.high, of[i].high)};
    }
    sl_text_printable(texts[decides], value->decided, sizeof value->decided);
}

/* ---- the grammar ---- */

static bool call(parser *p, sl_text name, sl_capacity_value *value) {
    sl_estimate of[ARGUMENTS_MAX];
    sl_text texts[ARGUMENTS_MAX];
    size_t count = 0;
    bool fitted = false;
    do {
        sl_capacity_value argument;
        if (count == ARGUMENTS_MAX)
            return complain(p, "too many arguments");
        next(p);
        const char *start = p->at;
        if (!sum(p, &argument))
            return false;
        texts[count] = (sl_text){start, (size_t)(p->at - start)};
        of[count++] = argument.number;
        fitted = fitted || argument.fitted;
    } while (accept(p, ','));
    if (!accept(p, ')'))
        return complain(p, "expected , or )");
    *value = (sl_capacity_value){.fitted = fitted};
    if (sl_text_equal(name, sl_text_of("max")) || sl_text_equal(name, sl_text_of("min"))) {
        extreme(sl_text_equal(name, sl_text_of("max")), of, texts, count, value);
        return true;
    }
    if (!sl_text_equal(name, sl_text_of("usl")) || count != 3)
        return complain(p, "the functions are min, max and usl(n, contention, coherency); before");
    return scalability(p, of, &value->number);
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool named(parser *p, sl_capacity_value *value) {
    const char *start = p->at;
    while (is_letter(*p->at) || sl_is_digit(*p->at) ||
           (*p->at == '-' && (is_letter(p->at[1]) || sl_is_digit(p->at[1]))))
        p->at++;
    sl_text name = {start, (size_t)(p->at - start)};
    if (accept(p, '('))
        return call(p, name, value);
    if (p->lookup(p->context, name.bytes, name.length, value)) {
        value->decided[0] = '\0';
        return true;
    }
    p->at = start;
    return complain(p, "no input, and no result before this one, has the name");
}

static bool number(parser *p, sl_capacity_value *value) {
    size_t length = strspn(p->at, "0123456789.");
    double parsed;
    length += p->at[length] != '\0' && strchr("kMGTP", p->at[length]) != NULL;
    if (!sl_capacity_number(p->at, length, &parsed))
        return complain(p, "expected a number, a name or (");
    p->at += length;
    *value = (sl_capacity_value){.number = sl_estimate_exactly(parsed)};
    return true;
}

static bool factor(parser *p, sl_capacity_value *value) {
    bool ok;
    if (++p->depth > DEPTH_MAX)
        return complain(p, "too deeply nested");
    if (accept(p, '-')) {
        ok = factor(p, value);
        value->number = negative(value->number);
        value->decided[0] = '\0';
    } else if (accept(p, '(')) {
        ok = sum(p, value) && (accept(p, ')') || complain(p, "expected )"));
    } else {
        ok = is_letter(next(p)) ? named(p, value) : number(p, value);
    }
    p->depth--;
    return ok;
}

static bool term(parser *p, sl_capacity_value *value) {
    sl_capacity_value right;
    if (!factor(p, value))
        return false;
    for (char op = next(p); op == '*' || op == '/'; op = next(p)) {
        p->at++;
        if (!factor(p, &right))
            return false;
        sl_estimate by = right.number;
        if (op == '/') {
            if (by.low <= 0 && by.high >= 0)
                return complain(p, "division by a value whose range contains 0");
            by = (sl_estimate){1 / by.value, 1 / by.high, 1 / by.low};
        }
        value->number = product(value->number, by);
        if (!is_finite(p, &by) || !is_finite(p, &value->number))
            return false;
        value->fitted = value->fitted || right.fitted;
        value->decided[0] = '\0';
    }
    return true;
}

static bool sum(parser *p, sl_capacity_value *value) {
    sl_capacity_value right;
    *value = (sl_capacity_value){0};
    if (!term(p, value))
        return false;
    for (char op = next(p); op == '+' || op == '-'; op = next(p)) {
        p->at++;
        if (!term(p, &right))
            return false;
        value->number = add(value->number, op == '+' ? right.number : negative(right.number));
        if (!is_finite(p, &value->number))
            return false;
        value->fitted = value->fitted || right.fitted;
        value->decided[0] = '\0';
    }
    return true;
}

bool sl_capacity_formula(const char *text, sl_capacity_lookup *lookup, void *context,
                         sl_capacity_value *value, sl_error *error) {
    parser p = {.at = text, .lookup = lookup, .context = context, .error = error};
    if (!sum(&p, value))
        return false;
    if (next(&p))
        return complain(&p, "expected + - * / or the end");
    /* Rounding may move a bound beyond the value in the last digit. */
    include(&value->number, value->number.value);
    return true;
}
