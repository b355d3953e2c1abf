/* SPDX-License-Identifier: Apache-2.0 */
/* Deflate64. The bits stay in the input's buffer until they have been used: a symbol is decoded
 * from the next 57 bits or more, which one load of 8 bytes and a shift return. So the input's
 * position is always that of the next symbol, in messages and at the end.
 *
 * Matches are copied from the bytes that the same call has unpacked, or from the window, which
 * receives the output at the end of each call. */
#include "inflate64.h"

#include <string.h>

#define LITERALS 286u /* and end of block, and lengths; the fixed code has two more, never used */
#define DISTANCES 32u
#define END_OF_BLOCK 256u
#define CODE_BITS_MAX 15u
#define PIECE_BITS 7u /* of the code of code lengths, at most */

enum { BLOCK_HEAD, STORED, SYMBOLS, END };

typedef struct extra_bits {
    uint32_t base;
    unsigned bits;
} extra_bits;

/* Lengths of the symbols from 257 on. */
static const extra_bits lengths[] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {3, 16}};

static const extra_bits distances[DISTANCES] = {
    {1, 0},      {2, 0},      {3, 0},      {4, 0},     {5, 1},     {7, 1},     {9, 2},
    {13, 2},     {17, 3},     {25, 3},     {33, 4},    {49, 4},    {65, 5},    {97, 5},
    {129, 6},    {193, 6},    {257, 7},    {385, 7},   {513, 8},   {769, 8},   {1025, 9},
    {1537, 9},   {2049, 10},  {3073, 10},  {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12},
    {16385, 13}, {24577, 13}, {32769, 14}, {49153, 14}};

/* One call of sl_inflate64_read. */
typedef struct call {
    sl_inflate64 *inflate;
    sl_input *input;
    const char *label;
    sl_reader_times *times;
    sl_error *error;
    const size_t *got;  /* bytes unpacked by this call */
    uint64_t bits;      /* the next bits of the input, the first one lowest; zeros after its end */
    unsigned available; /* number of valid bits */
} call;

static bool damaged(const call *c, const char *why) {
    return sl_error_set(c->error, SL_EXIT_SOURCE,
                        "%s: the Deflate64 data are damaged near byte %llu of the archive (%s); "
                        "fetch the file again",
                        c->label, (unsigned long long)sl_input_position(c->input), why);
}

static bool breaks_off(const call *c) {
    return sl_error_set(c->error, SL_EXIT_SOURCE,
                        "%s: the Deflate64 data end early at byte %llu of the archive, after %llu "
                        "bytes of contents; the file is truncated: fetch it again",
                        c->label, (unsigned long long)c->input->offset,
                        (unsigned long long)c->inflate->total + *c->got);
}

/* Loads the next bits, at least 57 unless the input ends before. */
static bool load(call *c) {
    sl_input *input = c->input;
    if (sl_input_left(input) < 8 && !sl_input_peek(input, 8, c->times, c->error))
        return false;
    const unsigned char *at = sl_input_at(input);
    size_t left = sl_input_left(input);
    unsigned used = c->inflate->bit;
    if (left >= 8) {
        uint64_t bits;
        memcpy(&bits, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bits = __builtin_bswap64(bits);
#endif
        c->bits = bits >> used;
        c->available = 64 - used;
        return true;
    }
    c->bits = 0;
    for (size_t i = left; i-- > 0;)
        c->bits = c->bits << 8 | at[i];
    c->bits >>= used;
    c->available = left > 0 ? (unsigned)left * 8 - used : 0;
    return true;
}

/* Uses bits that have been loaded. */
static bool use(call *c, unsigned count) {
    if (count > c->available)
        return breaks_off(c);
    c->bits >>= count;
    c->available -= count;
    unsigned bit = c->inflate->bit + count;
    c->input->used += bit / 8;
    c->inflate->bit = bit % 8;
    return true;
}

/* Reads up to 32 bits, lowest first. */
static bool read_bits(call *c, unsigned count, uint32_t *value) {
    if (c->available < count && !load(c))
        return false;
    *value = (uint32_t)(c->bits & ((UINT64_C(1) << count) - 1));
    return use(c, count);
}

/* ---- prefix codes ---- */

static unsigned reversed(unsigned code, unsigned length) {
    unsigned result = 0;
    for (unsigned i = 0; i < length; i++)
        result |= (code >> i & 1) << (length - 1 - i);
    return result;
}

/* Builds a code from the lengths of its symbols' codes. Fails if the code is not complete.
 * `single`: also accepts a code of one symbol with one bit, and a code without symbols. */
static bool build(sl_code64 *code, const uint8_t *bits, unsigned symbols, bool single) {
    unsigned next[CODE_BITS_MAX + 1], start[CODE_BITS_MAX + 1];
    memset(code->count, 0, sizeof code->count);
    memset(code->fast, 0, sizeof code->fast);
    for (unsigned i = 0; i < symbols; i++)
        code->count[bits[i]]++;
    unsigned unused = symbols - code->count[0];
    code->count[0] = 0;
    unsigned value = 0, index = 0;
    long free_codes = 1;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        value = (value + code->count[length - 1]) << 1;
        next[length] = value;
        start[length] = index;
        index += code->count[length];
        free_codes = free_codes * 2 - code->count[length];
        if (free_codes < 0)
            return false;
    }
    if (free_codes > 0 && !(single && (unused == 0 || (unused == 1 && code->count[1] == 1))))
        return false;
    for (unsigned i = 0; i < symbols; i++) {
        unsigned length = bits[i];
        if (length == 0)
            continue;
        unsigned word = next[length]++;
        code->symbols[start[length]++] = (uint16_t)i;
        if (length > SL_INFLATE64_FAST_BITS)
            continue;
        uint16_t entry = (uint16_t)(i << 4 | length);
        for (unsigned at = reversed(word, length); at < 1u << SL_INFLATE64_FAST_BITS;
             at += 1u << length)
            code->fast[at] = entry;
    }
    return true;
}

/* Finds a symbol whose code is longer than SL_INFLATE64_FAST_BITS. Returns symbol << 4 | length; 0:
 * no code begins like these bits. */
static unsigned find_long(const sl_code64 *code, uint64_t bits) {
    int word = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= CODE_BITS_MAX; length++) {
        int count = code->count[length];
        word |= (int)(bits & 1);
        bits >>= 1;
        if (word - count < first)
            return (unsigned)code->symbols[index + (word - first)] << 4 | length;
        index += count;
        first = (first + count) << 1;
        word <<= 1;
    }
    return 0;
}

/* Decodes a symbol from the loaded bits. */
static bool take_symbol(call *c, const sl_code64 *code, unsigned *symbol) {
    unsigned entry = code->fast[c->bits & ((1u << SL_INFLATE64_FAST_BITS) - 1)];
    if (entry == 0)
        entry = find_long(code, c->bits);
    if (entry == 0) /* zeros follow the end of the input */
        return c->available < CODE_BITS_MAX ? breaks_off(c) : damaged(c, "no code begins there");
    *symbol = entry >> 4;
    return use(c, entry & 15);
}

/* ---- heads of blocks ---- */

static bool begin_stored(call *c) {
    uint32_t skipped, length, check;
    if (!read_bits(c, (8 - c->inflate->bit) % 8, &skipped) || !read_bits(c, 16, &length) ||
        !read_bits(c, 16, &check))
        return false;
    if (length != (~check & 0xFFFF))
        return damaged(c, "the length of a stored block does not match its complement");
    c->inflate->stored_left = length;
    c->inflate->state = STORED;
    return true;
}

static bool begin_fixed(call *c) {
    uint8_t bits[288];
    memset(bits, 8, 144);
    memset(bits + 144, 9, 112);
    memset(bits + 256, 7, 24);
    memset(bits + 280, 8, 8);
    build(&c->inflate->literals, bits, 288, false);
    memset(bits, 5, DISTANCES);
    build(&c->inflate->distances, bits, DISTANCES, false);
    c->inflate->state = SYMBOLS;
    return true;
}

/* Reads the lengths of the codes of `count` symbols. */
static bool read_lengths(call *c, const sl_code64 *pieces, uint8_t *bits, unsigned count) {
    static const extra_bits repeats[] = {{3, 2}, {3, 3}, {11, 7}}; /* of the symbols 16 to 18 */
    for (unsigned at = 0; at < count;) {
        unsigned symbol;
        if (!load(c) || !take_symbol(c, pieces, &symbol))
            return false;
        if (symbol < 16) {
            bits[at++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && at == 0)
            return damaged(c, "the first code length is a repetition");
        uint32_t more;
        if (!read_bits(c, repeats[symbol - 16].bits, &more))
            return false;
        more += repeats[symbol - 16].base;
        if (more > count - at)
            return damaged(c, "too many code lengths");
        memset(bits + at, symbol == 16 ? bits[at - 1] : 0, more);
        at += more;
    }
    return true;
}

static bool begin_dynamic(call *c) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    sl_inflate64 *inflate = c->inflate;
    uint8_t bits[LITERALS + DISTANCES] = {0};
    uint32_t literals, distance_codes, pieces;
    if (!read_bits(c, 5, &literals) || !read_bits(c, 5, &distance_codes) ||
        !read_bits(c, 4, &pieces))
        return false;
    literals += 257;
    distance_codes += 1;
    if (literals > LITERALS)
        return damaged(c, "too many codes of lengths");
    for (uint32_t i = 0; i < pieces + 4; i++) {
        uint32_t length;
        if (!read_bits(c, 3, &length))
            return false;
        bits[order[i]] = (uint8_t)length;
    }
    sl_code64 *lengths_code = &inflate->distances; /* used for this until the code of distances is
                                                      built */
    if (!build(lengths_code, bits, sizeof order, false))
        return damaged(c, "the code of code lengths is invalid");
    memset(bits, 0, sizeof order);
    if (!read_lengths(c, lengths_code, bits, literals + distance_codes))
        return false;
    if (bits[END_OF_BLOCK] == 0)
        return damaged(c, "a block has no code for its end");
    if (!build(&inflate->literals, bits, literals, true))
        return damaged(c, "the code of literals is invalid");
    if (!build(&inflate->distances, bits + literals, distance_codes, true))
        return damaged(c, "the code of distances is invalid");
    inflate->state = SYMBOLS;
    return true;
}

static bool begin_block(call *c) {
    static bool (*const begin[])(call *) = {begin_stored, begin_fixed, begin_dynamic};
    uint32_t last, kind;
    if (!read_bits(c, 1, &last) || !read_bits(c, 2, &kind))
        return false;
    c->inflate->last_block = last;
    return kind < 3 ? begin[kind](c) : damaged(c, "a block of an unknown kind");
}

static bool end_block(call *c) {
    sl_inflate64 *inflate = c->inflate;
    inflate->state = inflate->last_block ? END : BLOCK_HEAD;
    uint32_t skipped;
    return !inflate->last_block || read_bits(c, (8 - inflate->bit) % 8, &skipped);
}

/* ---- contents of blocks: each returns bytes of `out`, of which `done` are filled ---- */

static bool copy_stored(call *c, unsigned char *out, size_t room, size_t *done) {
    sl_inflate64 *inflate = c->inflate;
    c->available = 0; /* the input advances without `use` */
    while (inflate->stored_left > 0 && *done < room) {
        if (sl_input_left(c->input) == 0 && !sl_input_peek(c->input, 1, c->times, c->error))
            return false;
        size_t piece = sl_input_left(c->input);
        if (piece == 0)
            return breaks_off(c);
        if (piece > room - *done)
            piece = room - *done;
        if (piece > inflate->stored_left)
            piece = inflate->stored_left;
        memcpy(out + *done, sl_input_at(c->input), piece);
        c->input->used += piece;
        inflate->stored_left -= (uint32_t)piece;
        *done += piece;
    }
    return inflate->stored_left > 0 || end_block(c);
}

/* Copies the current match, as far as it fits. */
static void copy_match(sl_inflate64 *inflate, unsigned char *out, size_t room, size_t *done) {
    size_t count = inflate->length < room - *done ? inflate->length : room - *done;
    size_t distance = inflate->distance, at = *done, end = at + count;
    for (; at < end && distance > at; at++) /* bytes before this call */
        out[at] = inflate->window[(inflate->total + at - distance) % SL_INFLATE64_WINDOW];
    if (distance >= end - at) {
        memcpy(out + at, out + at - distance, end - at);
        at = end;
    }
    for (; at < end; at++)
        out[at] = out[at - distance];
    inflate->length -= (uint32_t)count;
    *done = end;
}

static bool take_match(call *c, unsigned symbol, size_t done) {
    sl_inflate64 *inflate = c->inflate;
    uint32_t more;
    if (symbol - 257 >= sizeof lengths / sizeof lengths[0])
        return damaged(c, "an invalid length");
    const extra_bits *length = &lengths[symbol - 257];
    unsigned code;
    if (!read_bits(c, length->bits, &more))
        return false;
    inflate->length = length->base + more;
    if (!load(c) || !take_symbol(c, &inflate->distances, &code))
        return false;
    const extra_bits *distance = &distances[code];
    if (!read_bits(c, distance->bits, &more))
        return false;
    inflate->distance = distance->base + more;
    return inflate->distance <= inflate->total + done ||
           damaged(c, "a distance to before the beginning");
}

static bool copy_symbols(call *c, unsigned char *out, size_t room, size_t *done) {
    sl_inflate64 *inflate = c->inflate;
    while (*done < room) {
        if (inflate->length > 0) {
            copy_match(inflate, out, room, done);
            continue;
        }
        unsigned symbol;
        if ((c->available < CODE_BITS_MAX && !load(c)) ||
            !take_symbol(c, &inflate->literals, &symbol))
            return false;
        if (symbol < END_OF_BLOCK)
            out[(*done)++] = (unsigned char)symbol;
        else if (symbol == END_OF_BLOCK)
            return end_block(c);
        else if (!take_match(c, symbol, *done))
            return false;
    }
    return true;
}

/* ---- interface ---- */

void sl_inflate64_begin(sl_inflate64 *inflate, sl_input *input) {
    inflate->input = input;
    inflate->begin = sl_input_position(input);
    inflate->total = 0;
    inflate->bit = inflate->length = inflate->stored_left = 0;
    inflate->state = BLOCK_HEAD;
    inflate->last_block = false;
}

/* Keeps the end of the output for later matches. */
static void keep(sl_inflate64 *inflate, const unsigned char *out, size_t length) {
    size_t kept = length < SL_INFLATE64_WINDOW ? length : SL_INFLATE64_WINDOW;
    size_t at = (inflate->total + length - kept) % SL_INFLATE64_WINDOW;
    size_t first = kept < SL_INFLATE64_WINDOW - at ? kept : SL_INFLATE64_WINDOW - at;
    memcpy(inflate->window + at, out + length - kept, first);
    memcpy(inflate->window, out + length - kept + first, kept - first);
    inflate->total += length;
}

bool sl_inflate64_read(sl_inflate64 *inflate, unsigned char *out, size_t room, size_t *got,
                       const char *label, sl_reader_times *times, sl_error *error) {
    *got = 0;
    call c = {inflate, inflate->input, label, times, error, got, 0, 0};
    bool ok = true;
    while (ok && *got < room && inflate->state != END) {
        switch (inflate->state) {
        case BLOCK_HEAD:
            ok = begin_block(&c);
            break;
        case STORED:
            ok = copy_stored(&c, out, room, got);
            break;
        default:
            ok = copy_symbols(&c, out, room, got);
        }
    }
    keep(inflate, out, *got);
    return ok;
}
