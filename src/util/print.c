/* SPDX-License-Identifier: Apache-2.0 */
/* printf with escaped texts: interprets the format itself, writes %s and %c escaped, and formats
 * each number by snprintf. */
#include "print.h"

#include <stdbool.h>
#include <string.h>

#include "context.h"
#include "text.h"

/* Where the output goes: a stream, or a buffer. */
typedef struct output {
    FILE *file;
    char *text;
    size_t room, used;
    bool full; /* a piece did not fit: all later pieces are dropped too */
} output;

static void put(output *to, const char *bytes, size_t length) {
    if (to->file) {
        fwrite(bytes, 1, length, to->file);
    } else if (to->full || length >= to->room - to->used) {
        to->full = true;
    } else {
        memcpy(to->text + to->used, bytes, length);
        to->used += length;
    }
}

/* Writes text of the format; into a buffer, as many complete characters as fit. */
static void put_literal(output *to, const char *bytes, size_t length) {
    if (to->file) {
        put(to, bytes, length);
        return;
    }
    for (size_t at = 0, next; at < length; at = next) {
        for (next = at + 1; next < length && ((unsigned char)bytes[next] & 0xC0) == 0x80;)
            next++;
        put(to, bytes + at, next - at);
    }
}

static void put_blanks(output *to, size_t count) {
    while (count-- > 0)
        put(to, " ", 1);
}

/* LONG also for z and t, LONG_LONG also for j. */
typedef enum length_modifier { NONE, LONG, LONG_LONG } length_modifier;

_Static_assert(sizeof(size_t) == sizeof(long), "a size_t is fetched as unsigned long");

typedef struct conversion {
    bool left;            /* the flag '-' */
    int width, precision; /* -1 when not given */
    length_modifier length;
    char kind;
    char spec[40]; /* for snprintf: width and precision as digits, integers as long long */
} conversion;

static void put_text(output *to, const conversion *c, const char *argument) {
    const char *known = argument ? argument : "(null)";
    sl_text text = {known, c->precision < 0 ? strlen(known) : strnlen(known, (size_t)c->precision)};
    bool lines = c->left && c->width < 0; /* SL_LINES */
    char piece[SL_ESCAPED_ROOM];
    size_t blanks = 0;
    if (c->width > 0) {
        size_t width = 0;
        for (size_t at = 0; at < text.length;) {
            size_t length = sl_text_next_printable(text, &at, piece);
            width += sl_letters((sl_text){piece, length});
        }
        blanks = (size_t)c->width > width ? (size_t)c->width - width : 0;
    }
    if (!c->left)
        put_blanks(to, blanks);
    for (size_t at = 0; at < text.length;) {
        if (lines && text.bytes[at] == '\n') {
            put(to, "\n", 1);
            at++;
        } else {
            put(to, piece, sl_text_next_printable(text, &at, piece));
        }
    }
    if (c->left)
        put_blanks(to, blanks);
}

/* Reads a width or precision at `*format`: digits, or the next argument for '*'. Negative: none. */
#define TAKE_NUMBER(format, arguments, number)                                                     \
    do {                                                                                           \
        (number) = -1;                                                                             \
        if (*(format) == '*') {                                                                    \
            (number) = va_arg(arguments, int);                                                     \
            (format)++;                                                                            \
        }                                                                                          \
        while (*(format) >= '0' && *(format) <= '9')                                               \
            (number) = ((number) < 0 ? 0 : (number)) * 10 + (*(format)++ - '0');                   \
    } while (0)

/* Fetches the next argument, an integer of the modifier's length; `sign`: signed or unsigned. */
#define TAKE_INTEGER(sign, modifier, arguments)                                                    \
    ((modifier) == LONG        ? va_arg(*(arguments), sign long)                                   \
     : (modifier) == LONG_LONG ? va_arg(*(arguments), sign long long)                              \
                               : va_arg(*(arguments), sign int))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* Writes a number or a character. `shown` has room for any double with the precisions and widths
 * that take_conversion allows. */
static void put_number(output *to, const conversion *c, va_list *arguments) {
    char shown[512];
    int length = 0;
    switch (c->kind) {
    case 'd':
    case 'i':
        length = snprintf(shown, sizeof shown, c->spec,
                          (long long)TAKE_INTEGER(signed, c->length, arguments));
        break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        length = snprintf(shown, sizeof shown, c->spec,
                          (unsigned long long)TAKE_INTEGER(unsigned, c->length, arguments));
        break;
    case 'f':
    case 'e':
    case 'g':
        length = snprintf(shown, sizeof shown, c->spec, va_arg(*arguments, double));
        break;
    case 'c': {
        char one[2] = {(char)va_arg(*arguments, int)};
        put_text(to, c, one);
        return;
    }
    default:
        break;
    }
    if (length > 0)
        put_literal(to, shown, (size_t)length < sizeof shown ? (size_t)length : sizeof shown - 1);
}

#pragma GCC diagnostic pop

/* Reads the conversion after a percent sign, and moves `*format` to the text after it. */
static void take_conversion(const char **format, conversion *c, va_list *arguments) {
    const char *at = *format;
    size_t flags = strspn(at, "-+ #0");
    char precision[16] = "", width[16] = "";
    c->left = memchr(at, '-', flags) != NULL;
    const char *begin = at;
    at += flags;
    TAKE_NUMBER(at, *arguments, c->width);
    c->precision = -1;
    if (*at == '.') {
        bool argument = *++at == '*';
        TAKE_NUMBER(at, *arguments, c->precision);
        if (c->precision < 0 && !argument)
            c->precision = 0;
        if (c->precision >= 0)
            snprintf(precision, sizeof precision, ".%d", c->precision < 99 ? c->precision : 99);
    }
    if (c->width >= 0)
        snprintf(width, sizeof width, "%d", c->width < 400 ? c->width : 400);
    c->length = NONE;
    for (; *at && strchr("hlzjt", *at); at++) {
        if (*at == 'j' || (*at == 'l' && c->length == LONG))
            c->length = LONG_LONG;
        else if (*at != 'h')
            c->length = LONG;
    }
    c->kind = *at;
    *format = at + (*at != '\0');
    snprintf(c->spec, sizeof c->spec, "%%%.*s%s%s%s%c", (int)flags, begin, width, precision,
             strchr("diuxXo", c->kind) ? "ll" : "", c->kind);
}

static void print(output *to, const char *format, va_list *arguments) {
    for (;;) {
        size_t plain = strcspn(format, "%");
        put_literal(to, format, plain);
        format += plain;
        if (*format++ == '\0')
            return;
        conversion c;
        take_conversion(&format, &c, arguments);
        if (c.kind == '%')
            put(to, "%", 1);
        else if (c.kind == 's')
            put_text(to, &c, va_arg(*arguments, const char *));
        else
            put_number(to, &c, arguments);
    }
}

void sl_print(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(&(output){.file = sl_output()}, format, &arguments);
    va_end(arguments);
}

void sl_print_to(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(&(output){.file = out}, format, &arguments);
    va_end(arguments);
}

size_t sl_print_text_v(char *out, size_t room, const char *format, va_list arguments) {
    if (room == 0)
        return 0;
    output to = {.text = out, .room = room};
    va_list copy; /* a parameter of type va_list may be a pointer: its address has another type */
    va_copy(copy, arguments);
    print(&to, format, &copy);
    va_end(copy);
    out[to.used] = '\0';
    return sl_hide_secrets(out) ? strlen(out) : to.used;
}

size_t sl_print_text(char *out, size_t room, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t used = sl_print_text_v(out, room, format, arguments);
    va_end(arguments);
    return used;
}
