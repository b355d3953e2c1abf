/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool sl_text_equal_ignoring_case(sl_text a, sl_text b) {
    return a.length == b.length && (a.length == 0 || strncasecmp(a.bytes, b.bytes, a.length) == 0);
}

bool sl_text_to_u64(sl_text text, uint64_t *value) {
    if (text.length == 0)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned)(unsigned char)text.bytes[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(sum, 10u, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    return true;
}

typedef struct scale {
    const char *suffix;
    uint64_t factor;
} scale;

/* Parses digits followed by one of the suffixes, in any case. */
static bool to_units(sl_text text, const scale *units, size_t unit_count, uint64_t *value) {
    size_t digits = 0;
    while (digits < text.length && isdigit((unsigned char)text.bytes[digits]))
        digits++;
    sl_text suffix = {text.bytes + digits, text.length - digits};
    uint64_t number;
    if (!sl_text_to_u64((sl_text){text.bytes, digits}, &number))
        return false;
    for (size_t i = 0; i < unit_count; i++) {
        uint64_t product;
        if (sl_text_equal_ignoring_case(suffix, sl_text_of(units[i].suffix))) {
            if (__builtin_mul_overflow(number, units[i].factor, &product))
                return false;
            *value = product;
            return true;
        }
    }
    return false;
}

bool sl_text_to_count(sl_text text, uint64_t *count) {
    static const scale units[] = {
        {"", 1}, {"k", 1000ull}, {"m", 1000000ull}, {"g", 1000000000ull}, {"t", 1000000000000ull},
    };
    return to_units(text, units, sizeof units / sizeof units[0], count);
}

bool sl_text_to_bytes(sl_text text, uint64_t *bytes) {
#define PREFIX(letter, power_of_2, power_of_10)                                                    \
    {letter, power_of_2}, {letter "ib", power_of_2}, {                                             \
        letter "b", power_of_10                                                                    \
    }
    static const scale units[] = {
        {"", 1},
        {"b", 1},
        PREFIX("k", 1ull << 10, 1000ull),
        PREFIX("m", 1ull << 20, 1000000ull),
        PREFIX("g", 1ull << 30, 1000000000ull),
        PREFIX("t", 1ull << 40, 1000000000000ull),
    };
#undef PREFIX
    return to_units(text, units, sizeof units / sizeof units[0], bytes);
}

bool sl_text_to_seconds(sl_text text, double *seconds) {
    if (text.length == 0)
        return false;
    static const struct {
        char suffix;
        double factor;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    double factor = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.bytes[text.length - 1] == units[i].suffix) {
            factor = units[i].factor;
            text.length--;
            break;
        }
    }
    uint64_t number;
    if (!sl_text_to_u64(text, &number))
        return false;
    *seconds = (double)number * factor;
    return true;
}

size_t sl_letters(sl_text text) {
    size_t letters = 0;
    for (size_t i = 0; i < text.length; i++)
        letters += ((unsigned char)text.bytes[i] & 0xC0) != 0x80;
    return letters;
}

bool sl_list_has(const char *list, char separator, sl_text word) {
    const char ends[] = {separator, '\0'};
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ends);
        if (sl_text_equal((sl_text){at, length}, word))
            return true;
        at += length + (at[length] == separator);
    }
    return false;
}

bool sl_is_listed(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

const char *sl_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool sl_utf8_valid(const char *bytes, size_t length, size_t *where) {
    const unsigned char *p = (const unsigned char *)bytes;
    size_t i = 0;
    while (i < length) {
        if (p[i] < 0x80) {
            uint64_t word = UINT64_MAX; /* eight bytes, if there are so many */
            if (length - i >= sizeof word)
                memcpy(&word, p + i, sizeof word);
            i += (word & 0x8080808080808080u) == 0 ? sizeof word : 1;
            continue;
        }
        /* Lead byte -> number of continuation bytes and the range of the first of them, which
         * excludes overlong forms, surrogates and values above U+10FFFF. */
        unsigned more;
        unsigned char low = 0x80, high = 0xBF;
        if (p[i] >= 0xC2 && p[i] <= 0xDF) {
            more = 1;
        } else if (p[i] >= 0xE0 && p[i] <= 0xEF) {
            more = 2;
            if (p[i] == 0xE0)
                low = 0xA0;
            if (p[i] == 0xED)
                high = 0x9F;
        } else if (p[i] >= 0xF0 && p[i] <= 0xF4) {
            more = 3;
            if (p[i] == 0xF0)
                low = 0x90;
            if (p[i] == 0xF4)
                high = 0x8F;
        } else {
            goto bad;
        }
        if (length - i <= more || p[i + 1] < low || p[i + 1] > high)
            goto bad;
        for (unsigned k = 2; k <= more; k++) {
            if ((p[i + k] & 0xC0) != 0x80)
                goto bad;
        }
        i += more + 1;
    }
    return true;
bad:
    if (where)
        *where = i;
    return false;
}

/* Does a code point above 0x7F control a terminal, change the order of text, or show nothing? These
 * are C1 controls, separators of lines, and what Unicode calls default ignorable (marks of
 * direction, tags, fillers), but not joiners and variation selectors, which scripts need. */
static bool is_unsafe(uint32_t code) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x80, 0x9F},       {0xAD, 0xAD},      {0x034F, 0x034F}, {0x061C, 0x061C},
                  {0x115F, 0x1160},   {0x17B4, 0x17B5},  {0x180E, 0x180E}, {0x200B, 0x200B},
                  {0x200E, 0x200F},   {0x2028, 0x202E},  {0x2060, 0x206F}, {0x3164, 0x3164},
                  {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},  {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3},
                  {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

uint32_t sl_code_point(const char *bytes, size_t length) {
    uint32_t code = (unsigned char)bytes[0] & (length > 1 ? 0x7Fu >> length : 0xFFu);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)bytes[i] & 0x3Fu);
    return code;
}

/* Decodes a well-formed sequence of two or more bytes at `at`. Returns its length, or 0 if there is
 * none. */
static size_t decode_sequence(sl_text text, size_t at, uint32_t *code) {
    const unsigned char *p = (const unsigned char *)text.bytes + at;
    size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || length > text.length - at || !sl_utf8_valid(text.bytes + at, length, NULL))
        return 0;
    *code = sl_code_point(text.bytes + at, length);
    return length;
}

size_t sl_text_next_printable(sl_text text, size_t *at, char out[SL_ESCAPED_ROOM]) {
    static const char hex[] = "0123456789abcdef";
    const unsigned char *p = (const unsigned char *)text.bytes + *at;
    uint32_t code = *p;
    size_t length = *p < 0x80 ? 1 : decode_sequence(text, *at, &code);
    bool plain = length > 0 && code >= 0x20 && code != 0x7F && !is_unsafe(code);
    if (length == 0)
        length = 1;
    *at += length;
    if (plain) {
        memcpy(out, p, length);
        return length;
    }
    for (size_t i = 0; i < length; i++) {
        out[4 * i] = '\\';
        out[4 * i + 1] = 'x';
        out[4 * i + 2] = hex[p[i] >> 4];
        out[4 * i + 3] = hex[p[i] & 15];
    }
    return 4 * length;
}

size_t sl_text_printable(sl_text text, char *out, size_t room) {
    if (room == 0)
        return 0;
    size_t used = 0;
    size_t cut = 0; /* the last position at which "..." still fits */
    for (size_t i = 0; i < text.length;) {
        char piece[SL_ESCAPED_ROOM];
        if (used + 4 <= room)
            cut = used;
        size_t length = sl_text_next_printable(text, &i, piece);
        if (used + length >= room) {
            used = cut;
            for (int dots = 0; dots < 3 && used + 1 < room; dots++)
                out[used++] = '.';
            break;
        }
        memcpy(out + used, piece, length);
        used += length;
    }
    out[used] = '\0';
    return used;
}

char *sl_shell_word(const char *text, char *out, size_t room) {
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "/._-+:@,";
    const bool quoted = !*text || text[strspn(text, harmless)];
    size_t used = (size_t)snprintf(out, room, quoted ? "'" : "");
    for (; *text && used + 6 <= room; text++) /* with the longest piece, a quote and NUL */
        used += (size_t)snprintf(out + used, room - used, *text == '\'' ? "'\\''" : "%c", *text);
    snprintf(out + used, room - used, quoted ? "'" : "");
    return *text ? strcpy(out, "...") : out;
}

/* A quote is not escaped as \\': in the quotes of a shell, that would end the string. */
char *sl_mongosh_string_in(const char *text, char out[SL_MONGOSH_ROOM]) {
    const sl_text all = sl_text_of(text);
    size_t used = 1, i = 0;
    out[0] = '\'';
    while (i < all.length && used + SL_ESCAPED_ROOM < SL_MONGOSH_ROOM - 1) {
        const size_t at = i, length = sl_text_next_printable(all, &i, out + used);
        const uint32_t code = sl_code_point(text + at, i - at);
        used += length == i - at && code != '\'' && code != '"' && code != '\\'
                    ? length
                    : (size_t)snprintf(out + used, SL_ESCAPED_ROOM,
                                       code > 0xFFFF ? "\\u{%x}" : "\\u%04x", code);
    }
    memcpy(out + used, "'", 2);
    return i < all.length ? strcpy(out, "...") : out;
}

char *sl_mongosh_collection_in(const char *database, const char *collection,
                               char out[SL_MONGOSH_ROOM]) {
    const int length = snprintf(out, SL_MONGOSH_ROOM, "db.getSiblingDB(%s).getCollection(%s)",
                                sl_mongosh_string(database), sl_mongosh_string(collection));
    return length >= SL_MONGOSH_ROOM ? strcpy(out, "...") : out;
}

char *sl_human_bytes(double bytes, char out[SL_HUMAN_ROOM]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    unsigned unit = 0;
    while (bytes >= 999.95 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    snprintf(out, SL_HUMAN_ROOM, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return out;
}

bool sl_shortest_number(sl_text number, char out[SL_HUMAN_ROOM]) {
    char copy[64], *rest;
    if (number.length >= sizeof copy || !memchr(number.bytes, '.', number.length))
        return false;
    memcpy(copy, number.bytes, number.length);
    copy[number.length] = '\0';
    const double value = strtod(copy, &rest);
    int precision = 15;
    do
        snprintf(out, SL_HUMAN_ROOM, "%.*g", precision, value);
    while (precision++ < 17 && strtod(out, NULL) != value);
    if (!strpbrk(out, ".e")) /* a parser shall read it as a double again */
        strcat(out, ".0");
    return *rest == '\0' && isfinite(value);
}

char *sl_human_count(uint64_t count, char out[SL_HUMAN_ROOM]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *to = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

char *sl_plural_text(uint64_t count, const char *words, bool number, char out[SL_PLURAL_ROOM]) {
    const bool one = count == 1, forms = strchr(words, '[') != NULL;
    size_t used = 0;
    *out = '\0';
    if (number)
        used = (size_t)snprintf(out, SL_PLURAL_ROOM, "%s ", sl_number_text(count));
    while (*words && used < SL_PLURAL_ROOM - 1) {
        const size_t plain = strcspn(words, "["), room = SL_PLURAL_ROOM - used;
        const char *form = words + plain + (words[plain] == '['), *end = form + strcspn(form, "]");
        const char *bar = memchr(form, '|', (size_t)(end - form));
        const char *from = one || !bar ? form : bar + 1, *to = one ? bar ? bar : form : end;
        snprintf(out + used, room, "%.*s%.*s", (int)plain, words, (int)(to - from), from);
        used += strlen(out + used);
        words = end + (*end == ']');
    }
    if (!forms && !one && used < SL_PLURAL_ROOM - 1)
        memcpy(out + used, "s", 2);
    return out;
}

char *sl_human_seconds(double seconds, char out[SL_HUMAN_ROOM]) {
    if (seconds < 9.95) {
        snprintf(out, SL_HUMAN_ROOM, "%.*f s", seconds < 0.0995 ? 3 : 1, seconds);
        return out;
    }
    unsigned long long rounded = (unsigned long long)(seconds + 0.5);
    if (rounded < 60)
        snprintf(out, SL_HUMAN_ROOM, "%llu s", rounded);
    else if (rounded < 3600)
        snprintf(out, SL_HUMAN_ROOM, "%llu min %02llu s", rounded / 60, rounded % 60);
    else
        snprintf(out, SL_HUMAN_ROOM, "%llu h %02llu min", rounded / 3600, rounded / 60 % 60);
    return out;
}

char *sl_short_text(double value, char out[SL_HUMAN_ROOM]) {
    static const char *const suffixes[] = {"", "k", "M", "G", "T", "P", "E"};
    unsigned suffix = 0;
    double size = fabs(value);
    while (size >= 999.5 && suffix + 1 < sizeof suffixes / sizeof suffixes[0]) {
        value /= 1000;
        size /= 1000;
        suffix++;
    }
    int decimals = suffix == 0    ? (size < 10 && value != floor(value) ? 2 : 0)
                   : size < 9.995 ? 2
                   : size < 99.95 ? 1
                                  : 0;
    snprintf(out, SL_HUMAN_ROOM, "%.*f%s", decimals, value, suffixes[suffix]);
    return out;
}

char *sl_share_text(double share, char out[SL_HUMAN_ROOM]) {
    double percent = 100 * share;
    /* A share close to 0 % or 100 % must not be rounded to it. */
    bool close = (percent > 0 && percent < 0.05) || (percent >= 99.95 && percent < 100);
    if (close && percent > 50)
        percent = floor(percent * 1000) / 1000;
    snprintf(out, SL_HUMAN_ROOM, "%.*f %%", close ? 3 : 1, percent);
    return out;
}

/* Milliseconds with three figures. */
static char *milliseconds_text(double value, char out[SL_HUMAN_ROOM]) {
    if (value >= 999.5) {
        size_t used = strlen(sl_human_count((uint64_t)(value + 0.5), out));
        snprintf(out + used, SL_HUMAN_ROOM - used, " ms");
        return out;
    }
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value > 0 && value < 0.0995 ? 3 : 2;
    snprintf(out, SL_HUMAN_ROOM, "%.*f ms", decimals, value);
    return out;
}

char *sl_value_text(double value, sl_unit unit, char out[SL_HUMAN_ROOM]) {
    if (!(value >= 0)) {
        snprintf(out, SL_HUMAN_ROOM, "-");
        return out;
    }
    if (value > SL_VALUE_MAX) {
        snprintf(out, SL_HUMAN_ROOM, "%.3g", value);
        return out;
    }
    switch (unit) {
    case SL_UNIT_COUNT:
        return sl_human_count((uint64_t)(value + 0.5), out);
    case SL_UNIT_BYTES:
        return sl_human_bytes(value, out);
    case SL_UNIT_SECONDS:
        return sl_human_seconds(value, out);
    case SL_UNIT_MILLISECONDS:
        return milliseconds_text(value, out);
    case SL_UNIT_SHARE:
        return sl_share_text(value, out);
    }
    return out;
}

char *sl_figure_text(double value, int decimals, char out[SL_FIGURE_ROOM]) {
    char plain[SL_FIGURE_ROOM];
    int length = snprintf(plain, sizeof plain, "%.*f", decimals, value);
    size_t whole = strcspn(plain, ".");
    size_t first = plain[0] == '-';
    if (!isfinite(value) || length >= (int)sizeof plain || whole + whole / 3 + 10 > sizeof plain) {
        snprintf(out, SL_FIGURE_ROOM, "%.6g", value); /* such as 1e+40 */
        return out;
    }
    char *to = out;
    for (size_t i = 0; i < whole; i++) {
        if (i > first && (whole - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    snprintf(to, SL_FIGURE_ROOM - (size_t)(to - out), "%s", plain + whole);
    return out;
}

/* Words in the names of query options whose values are secret. */
static const char *const secret_words[] = {"password", "passphrase", "authMechanismProperties"};

/* Does the text begin with such an option and "="? */
static bool is_secret_option(const char *text) {
    const size_t name = strcspn(text, "=?&;");
    for (size_t at = 0; at < name && text[name] == '='; at++) {
        for (size_t i = 0; i < sizeof secret_words / sizeof secret_words[0]; i++) {
            if (strncasecmp(text + at, secret_words[i], strlen(secret_words[i])) == 0)
                return true;
        }
    }
    return false;
}

/* Does a secret option begin before `end`? */
static bool has_secret_option(const char *text, const char *end) {
    while ((text = strpbrk(text, "?&;")) && text < end) {
        if (is_secret_option(++text))
            return true;
    }
    return false;
}

/* Is the text "host[:port][,host[:port]...]" up to the first slash or question mark? Text after a
 * colon that is not a port may be a password whose "@" is missing. */
static bool names_hosts_only(const char *text) {
    for (;;) {
        if (*text == '[') { /* an IPv6 address contains colons */
            text += strspn(text + 1, "0123456789abcdefABCDEF:.%") + 1;
            if (*text++ != ']')
                return false;
        }
        text += strcspn(text, ":,/?");
        if (*text == ':') {
            size_t digits = strspn(text + 1, "0123456789");
            text += 1 + digits;
            if (digits == 0 || digits > 5)
                return false;
        }
        if (*text != ',')
            return *text == '\0' || *text == '/' || *text == '?';
        text++;
    }
}

/* Returns the length of "name://" at the start of the text, or 0. */
static size_t scheme_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) ||
           (length > 0 && text[length] && strchr("+-.", text[length])))
        length++;
    return length > 0 && strncmp(text + length, "://", 3) == 0 ? length + 3 : 0;
}

bool sl_is_connection_string(const char *text) {
    return scheme_length(text) > 0 || strncasecmp(text, "mongodb:", 8) == 0 ||
           strncasecmp(text, "mongodb+srv:", 12) == 0;
}

/* Writes at most three asterisks in place of `length` bytes; returns the end. */
static char *put_asterisks(char *to, size_t length) {
    size_t shown = length < 3 ? length : 3;
    memset(to, '*', shown);
    return to + shown;
}

/* Copies the hosts and options from `rest` to `to`, which is not behind it, with the values of
 * secret options hidden: to the next "&", because the driver takes "?" and ";" as parts of a value.
 * Returns the end. */
static char *hide_options(char *to, const char *rest) {
    while (*rest) {
        const bool secret = is_secret_option(rest);
        size_t length = strcspn(rest, secret ? "&" : "?&;");
        size_t shown = secret ? strcspn(rest, "=") + 1 : length;
        char separator = rest[length];
        memmove(to, rest, shown);
        to = put_asterisks(to + shown, length - shown);
        rest += length + (separator != '\0');
        if (separator)
            *to++ = separator;
    }
    return to;
}

void sl_hide_uri(char *uri) {
    char *end = uri + strlen(uri), *rest = strstr(uri, "://");
    rest = rest ? rest + 3 : uri; /* without a scheme, a password must be hidden too */
    /* A password may contain an unescaped @, slash or question mark: everything up to the last @ is
     * hidden, even if that includes hosts or options. */
    char *at = strrchr(rest, '@'), *to = rest;
    if (!at && !names_hosts_only(rest)) {
        to = put_asterisks(to, strlen(rest));
    } else {
        const char *shown = at ? at : rest;
        if (at && has_secret_option(rest, at)) /* the @ may be in its value */
            shown += strcspn(shown, "&");
        if (at)
            to = put_asterisks(to, (size_t)(shown - rest));
        to = hide_options(to, shown);
    }
    explicit_bzero(to, (size_t)(end - to));
}

bool sl_hide_secrets(char *text) {
    bool found = false;
    for (char *uri = text; (uri = strstr(uri, "://"));) {
        char *end = uri + strcspn(uri, " \t\r\n"), after = *end;
        size_t rest = strlen(end);
        *end = '\0';
        if (strchr(uri, '@') || has_secret_option(uri, end)) {
            sl_hide_uri(uri);
            found = true;
        }
        char *shorter = uri + strlen(uri);
        *end = after;
        memmove(shorter, end, rest + 1);
        explicit_bzero(shorter + rest + 1, (size_t)(end - shorter));
        uri = shorter;
    }
    return found;
}

char *sl_redact_uri(const char *uri) {
    char *copy = strdup(uri);
    if (copy)
        sl_hide_uri(copy);
    return copy;
}

void sl_secret_free(char *text) {
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}
