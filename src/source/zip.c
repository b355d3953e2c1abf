/* SPDX-License-Identifier: Apache-2.0 */
/* Zip archives: the check of the central directory, and the entries that libarchive does not unpack
 * as it should. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/hash.h"
#include "util/text.h"

#include "unpack.h"

/* ---- Deflate64 ---- */

/* Deflate64. The bits stay in the input's buffer until they have been used: a symbol is decoded
 * from the next 57 bits or more, which one load of 8 bytes and a shift return. So the input's
 * position is always that of the next symbol, in messages and at the end.
 *
 * Matches are copied from the bytes that the same call has unpacked, or from the window, which
 * receives the output at the end of each call. */

#define LITERALS 286u /* and end of block, and lengths; the fixed code has two more, never used */
#define DISTANCES 32u
#define END_OF_BLOCK 256u
#define CODE_BITS_MAX 15u

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

void sl_inflate64_begin(sl_inflate64 *inflate, sl_input *input) {
    inflate->input = input;
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

/* ---- zip archives ---- */

/* Reads the central directory of a zip archive once, from its first record to the end of the input
 * (memory holds one record); and unpacks the entries packed with Deflate64, LZMA and xz. */

#define RECORD_BYTES 46u       /* central directory record, without name, extra fields, comment */
#define END_BYTES 22u          /* end of central directory record, without comment */
#define END64_BYTES 56u        /* zip64 end of central directory record */
#define LOCATOR_BYTES 20u      /* zip64 end of central directory locator */
#define FIELD_MAX 65535u       /* of a name, extra fields, a comment */
#define PADDING_MAX (1u << 10) /* zeros after the archive */
/* Bytes at the end of the file, searched for the end record. */
#define TAIL_BYTES (END_BYTES + FIELD_MAX + PADDING_MAX)
#define DESCRIPTOR_BYTES 24u /* data descriptor with signature and 64-bit sizes */
#define FLAG_DESCRIPTOR 8u   /* a data descriptor follows the data */
#define STORED 0u            /* method: not compressed */
#define DEFLATE64 9u         /* methods */
#define LZMA 14u
#define XZ 95u
#define FLAG_END_MARKER 2u /* of an LZMA entry */
#define LZMA_PROPERTIES 5u /* of an LZMA stream: parameters and size of the dictionary */
#define MADE_BY_UNIX 3

/* A record of the central directory. */
typedef struct zip_record {
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, size, offset; /* bytes of the data, stored and unpacked; of the local header */
    size_t name_length, extra_length;
    unsigned char *name, *extra; /* FIELD_MAX bytes of room each */
} zip_record;

typedef struct zip_walk {
    sl_input *input;
    sl_reader_times *times;
    sl_error *error;
    bool check_entries; /* compare each record with its entry, by input->read_at */
    bool needed;        /* see sl_zip_check_file */
    bool limited;       /* an entry is packed with LZMA or xz */
    zip_record record;
    sl_positions starts; /* of the listed entries, then of the directory */
    sl_positions ends;   /* position 0, then the end of each listed entry; if check_entries */
    /* From the end records; UINT64_MAX: not read yet. */
    uint64_t entry_count, table, size; /* `table`: offset of the directory; `size`: its bytes */
    uint64_t end64;                    /* offset of the zip64 end record */
} zip_walk;

static unsigned u16(const unsigned char *at) {
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t u32(const unsigned char *at) {
    return u16(at) | (uint32_t)u16(at + 2) << 16;
}

static uint64_t u64(const unsigned char *at) {
    return u32(at) | (uint64_t)u32(at + 4) << 32;
}

static bool has_signature(const unsigned char *at, const char *signature) {
    return memcmp(at, signature, 4) == 0;
}

/* Does an entry or the central directory begin there? */
static bool begins_header(const unsigned char *at, size_t length) {
    return length >= 4 && (has_signature(at, "PK\3\4") || has_signature(at, "PK\1\2"));
}

/* The length of the data descriptor at `at`; 0: none with this checksum and these sizes. */
static size_t descriptor_length(const unsigned char *at, size_t length, uint32_t crc,
                                uint64_t packed, uint64_t size) {
    for (size_t signature = 0; signature <= 4; signature += 4) {
        const unsigned char *from = at + signature;
        if (length < signature + 12 || (signature && !has_signature(at, "PK\7\10")) ||
            u32(from) != crc)
            continue;
        if (length >= signature + 20 && u64(from + 4) == packed && u64(from + 12) == size)
            return signature + 20;
        if (u32(from + 4) == (uint32_t)packed && u32(from + 8) == (uint32_t)size)
            return signature + 12;
    }
    return 0;
}

/* UINT32_MAX in a local header: the size is in its zip64 extra field, which is not read, or in the
 * central directory. */
static bool same_size(uint32_t declared, uint64_t size) {
    return declared == UINT32_MAX || declared == size;
}

void sl_positions_add(sl_positions *positions, uint64_t position) {
    positions->count++;
    positions->sum += sl_random_word(position + SL_HASH_A);
}

static bool table_damaged(const zip_walk *walk, const char *detail) {
    return sl_error_set(
        walk->error, SL_EXIT_SOURCE,
        "%s: the table of contents of the zip archive is damaged or truncated near "
        "byte %llu (%s); fetch the file again, or repair it: zip -FF FILE --out NEW",
        walk->input->name, (unsigned long long)sl_input_position(walk->input), detail);
}

static bool disagrees(const zip_walk *walk, const char *detail) {
    return sl_error_set(
        walk->error, SL_EXIT_SOURCE,
        "%s: the entry at byte %llu of the zip archive and the table of contents at its end "
        "disagree (%s): the file is damaged or truncated: fetch it again, or repair "
        "it: zip -FF FILE --out NEW",
        walk->input->name, (unsigned long long)walk->record.offset, detail);
}

/* Reads the next `length` bytes of the input. */
static bool take(const zip_walk *walk, void *out, size_t length) {
    size_t got;
    return sl_input_take(walk->input, out, length, &got, walk->times, walk->error) &&
           (got == length || table_damaged(walk, "it ends early"));
}

static bool skip(const zip_walk *walk, uint64_t length) {
    unsigned char room[512];
    while (length > 0) {
        size_t piece = length < sizeof room ? (size_t)length : sizeof room;
        if (!take(walk, room, piece))
            return false;
        length -= piece;
    }
    return true;
}

/* Reads up to `room` bytes at `offset`; returns their number. */
static size_t read_at(const zip_walk *walk, uint64_t offset, void *out, size_t room) {
    return walk->input->read_at(walk->input, offset, out, room);
}

/* Replaces the values that are UINT32_MAX by those of the zip64 extra field (type 1). */
static bool read_zip64(zip_record *record) {
    uint64_t *values[] = {&record->size, &record->packed, &record->offset};
    const unsigned char *at = record->extra, *end = at + record->extra_length;
    while (end - at >= 4 && u16(at) != 1)
        at += 4 + (u16(at + 2) < end - at - 4 ? u16(at + 2) : end - at - 4);
    size_t left = end - at >= 4 ? u16(at + 2) : 0;
    if (left > (size_t)(end - at))
        return false;
    at += left > 0 ? 4 : 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (*values[i] != UINT32_MAX)
            continue;
        if (left < 8 || end - at < 8)
            return left == 0; /* no zip64 field: the value really is UINT32_MAX */
        *values[i] = u64(at);
        at += 8;
        left -= 8;
    }
    return true;
}

/* ---- an entry compared with its record ---- */

static bool check_entry(zip_walk *walk) {
    const zip_record *record = &walk->record;
    unsigned char head[SL_ZIP_LOCAL_BYTES + FIELD_MAX], descriptor[DESCRIPTOR_BYTES];
    size_t length = SL_ZIP_LOCAL_BYTES + record->name_length;
    if (read_at(walk, record->offset, head, length) < length || !has_signature(head, "PK\3\4"))
        return disagrees(walk, "no entry begins there");
    if (u16(head + 26) != record->name_length ||
        memcmp(head + SL_ZIP_LOCAL_BYTES, record->name, record->name_length) != 0)
        return disagrees(walk, "its name");
    if (u16(head + 8) != record->method || ((u16(head + 6) ^ record->flags) & 1) != 0)
        return disagrees(walk, "its method");
    bool described = (u16(head + 6) & FLAG_DESCRIPTOR) != 0;
    if (!described &&
        (u32(head + 14) != record->crc || !same_size(u32(head + 18), record->packed) ||
         !same_size(u32(head + 22), record->size)))
        return disagrees(walk, "its size or checksum");
    uint64_t end = record->offset + length + u16(head + 28) + record->packed;
    if (described) {
        size_t got = read_at(walk, end, descriptor, sizeof descriptor);
        size_t more = descriptor_length(descriptor, got, record->crc, record->packed, record->size);
        if (more == 0 && !begins_header(descriptor, got))
            return disagrees(walk, "its size or checksum");
        end += more;
    }
    sl_positions_add(&walk->ends, end);
    return true;
}

/* ---- the central directory ---- */

/* Each take_ function reads one structure after its signature. */

static bool take_record(zip_walk *walk) {
    zip_record *record = &walk->record;
    unsigned char head[RECORD_BYTES];
    if (!take(walk, head + 4, sizeof head - 4))
        return false;
    record->flags = u16(head + 8);
    record->method = u16(head + 10);
    record->crc = u32(head + 16);
    record->packed = u32(head + 20);
    record->size = u32(head + 24);
    record->name_length = u16(head + 28);
    record->extra_length = u16(head + 30);
    record->offset = u32(head + 42);
    if (!take(walk, record->name, record->name_length) ||
        !take(walk, record->extra, record->extra_length) || !skip(walk, u16(head + 32)))
        return false;
    if (!read_zip64(record))
        return table_damaged(walk, "a size is missing");
    sl_positions_add(&walk->starts, record->offset);
    unsigned type = head[5] == MADE_BY_UNIX ? u16(head + 40) & 0170000 : 0;
    bool folder = record->name_length > 0 && record->name[record->name_length - 1] == '/';
    walk->needed = walk->needed || (type != 0 && type != 0100000 && !(type == 0040000 && folder)) ||
                   (record->method == STORED && (record->flags & FLAG_DESCRIPTOR));
    walk->limited = walk->limited || record->method == LZMA || record->method == XZ;
    return !walk->check_entries || check_entry(walk);
}

static bool take_end(zip_walk *walk) {
    unsigned char end[END_BYTES];
    if (!take(walk, end + 4, sizeof end - 4) || !skip(walk, u16(end + 20)))
        return false;
    if (u16(end + 4) != 0 || u16(end + 6) != 0)
        return table_damaged(walk, "it spans several files");
    if (walk->entry_count == UINT64_MAX || u16(end + 10) != 0xFFFF)
        walk->entry_count = u16(end + 10);
    if (walk->size == UINT64_MAX || u32(end + 12) != UINT32_MAX)
        walk->size = u32(end + 12);
    if (walk->table == UINT64_MAX || u32(end + 16) != UINT32_MAX)
        walk->table = u32(end + 16);
    return true;
}

static bool take_end64(zip_walk *walk) {
    unsigned char end[END64_BYTES];
    walk->end64 = sl_input_position(walk->input) - 4;
    if (!take(walk, end + 4, sizeof end - 4))
        return false;
    if (u64(end + 4) < END64_BYTES - 12)
        return table_damaged(walk, "a record is too short");
    walk->entry_count = u64(end + 32);
    walk->size = u64(end + 40);
    walk->table = u64(end + 48);
    return skip(walk, u64(end + 4) - (END64_BYTES - 12));
}

/* The digital signature of the central directory. */
static bool take_digital_signature(zip_walk *walk) {
    unsigned char length[2];
    return take(walk, length, sizeof length) && skip(walk, u16(length));
}

static bool take_locator(zip_walk *walk) {
    unsigned char locator[LOCATOR_BYTES];
    return take(walk, locator + 4, sizeof locator - 4) &&
           (u64(locator + 8) == walk->end64 ||
            table_damaged(walk, "a record is not at its expected position"));
}

/* Reads the central directory and the end records, to the end of the input. */
static bool walk_table(zip_walk *walk) {
    static const struct {
        const char *signature;
        bool (*take)(zip_walk *walk);
        bool last;
    } parts[] = {{"PK\1\2", take_record, false},
                 {"PK\6\6", take_end64, false},
                 {"PK\6\7", take_locator, false},
                 {"PK\5\5", take_digital_signature, false},
                 {"PK\5\6", take_end, true}};
    uint64_t start = sl_input_position(walk->input), end = start; /* of the records */
    size_t i = 0;
    walk->entry_count = walk->table = walk->size = walk->end64 = UINT64_MAX;
    for (bool last = false; !last; last = parts[i].last) {
        unsigned char signature[4];
        if (!take(walk, signature, sizeof signature))
            return false;
        i = 0;
        while (i < sizeof parts / sizeof parts[0] && !has_signature(signature, parts[i].signature))
            i++;
        if (i == sizeof parts / sizeof parts[0])
            return table_damaged(walk, "no record begins there");
        if (!parts[i].take(walk))
            return false;
        if (i == 0)
            end = sl_input_position(walk->input);
    }
    if (!sl_input_skip_zeros(walk->input, walk->times, walk->error))
        return false;
    if (sl_input_left(walk->input) > 0)
        return table_damaged(walk, "data other than zeros follows its end");
    /* Archives of more than 65,535 entries without zip64 records declare the number's low 16
     * bits. */
    if (walk->entry_count != walk->starts.count &&
        walk->entry_count != (walk->starts.count & 0xFFFF))
        return table_damaged(walk, "its number of records is not the one declared");
    if (walk->table != start || walk->size < end - start) /* larger: with a digital signature */
        return table_damaged(walk, "it is not at the offset declared");
    sl_positions_add(&walk->starts, start);
    return true;
}

static bool begin_walk(zip_walk *walk) {
    walk->record.name = malloc(2 * (size_t)FIELD_MAX);
    walk->record.extra = walk->record.name + FIELD_MAX;
    return walk->record.name || sl_error_memory(walk->error, "opening archives");
}

/* Compares the starts of the listed entries and of the directory with `expected`: without gaps and
 * unlisted entries, they are position 0 and the end of each entry. */
static bool same_positions(const zip_walk *walk, const sl_positions *expected) {
    return (expected->count == walk->starts.count && expected->sum == walk->starts.sum) ||
           sl_error_set(
               walk->error, SL_EXIT_SOURCE,
               "%s: the table of contents at byte %llu of the zip archive lists %llu entries, "
               "which "
               "are not the entries that the archive contains: the file is damaged or truncated, "
               "and entries would be lost. Fetch it again, or repair it: zip -FF FILE --out NEW",
               walk->input->name, (unsigned long long)walk->table,
               (unsigned long long)walk->starts.count - 1);
}

bool sl_zip_check_table(sl_input *input, const sl_positions *starts, sl_reader_times *times,
                        sl_error *error) {
    zip_walk walk = {.input = input, .times = times, .error = error};
    sl_positions expected = *starts;
    sl_positions_add(&expected, sl_input_position(input));
    bool ok = begin_walk(&walk) && walk_table(&walk) && same_positions(&walk, &expected);
    free(walk.record.name);
    return ok;
}

/* ---- the offset of the central directory ---- */

/* Is there an end record at `at`, which is byte `position` of the file and has `length` bytes up to
 * the file's end? Sets `*table` to the directory's offset. */
static bool is_end(const zip_walk *walk, const unsigned char *at, size_t length, uint64_t position,
                   uint64_t *table) {
    if (length < END_BYTES || !has_signature(at, "PK\5\6"))
        return false;
    uint64_t size = u32(at + 12), end_record = position;
    unsigned char locator[LOCATOR_BYTES], end64[END64_BYTES];
    *table = u32(at + 16);
    if (position >= LOCATOR_BYTES &&
        read_at(walk, position - LOCATOR_BYTES, locator, sizeof locator) == sizeof locator &&
        has_signature(locator, "PK\6\7")) {
        end_record = u64(locator + 8);
        if (read_at(walk, end_record, end64, sizeof end64) < sizeof end64 ||
            !has_signature(end64, "PK\6\6"))
            return false;
        size = u64(end64 + 40);
        *table = u64(end64 + 48);
    }
    /* `size` does not include a digital signature. */
    return *table <= end_record && end_record - *table >= size;
}

static bool find_table(const zip_walk *walk, uint64_t *table) {
    uint64_t size;
    if (!walk->input->seek(walk->input, 0, SEEK_END, &size))
        return table_damaged(walk, "its end cannot be read");
    uint64_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    unsigned char *tail = malloc(TAIL_BYTES);
    if (!tail)
        return sl_error_memory(walk->error, "opening archives");
    size_t length = read_at(walk, from, tail, TAIL_BYTES);
    bool found = false;
    for (size_t at = length; !found && at-- > 0;)
        found = is_end(walk, tail + at, length - at, from + at, table);
    free(tail);
    return found ||
           sl_error_set(walk->error, SL_EXIT_SOURCE,
                        "%s: the zip archive has no table of contents at its end: the file "
                        "is truncated, or other data follows the archive: fetch it again, "
                        "or repair it: zip -FF FILE --out NEW",
                        walk->input->name);
}

bool sl_zip_check_file(sl_input *input, bool *needed, sl_reader_times *times, sl_error *error) {
    zip_walk walk = {.input = input, .times = times, .error = error, .check_entries = true};
    uint64_t table = 0, where;
    sl_positions_add(&walk.ends, 0);
    bool ok = begin_walk(&walk) && find_table(&walk, &table);
    if (ok && !input->seek(input, (int64_t)table, SEEK_SET, &where))
        ok = table_damaged(&walk, "it cannot be read");
    ok = ok && walk_table(&walk) && same_positions(&walk, &walk.ends);
    if (ok && !input->seek(input, 0, SEEK_SET, &where))
        ok = table_damaged(&walk, "the archive cannot be read");
    *needed = walk.needed;
    free(walk.record.name);
    if (ok && walk.needed && walk.limited)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: entries packed with LZMA or xz are not supported in an archive "
                            "with links or stored entries of unknown size; unpack it first (7z x)",
                            input->name);
    return ok;
}

/* ---- entries packed with Deflate64, LZMA and xz ---- */

static bool entry_damaged(const sl_zip_entry *entry, const char *label, const char *why,
                          sl_error *error) {
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the zip archive is damaged near byte %llu (%s); fetch the file again",
                        label, (unsigned long long)sl_input_position(entry->input), why);
}

bool sl_zip_is_header(const unsigned char header[SL_ZIP_LOCAL_BYTES]) {
    return has_signature(header, "PK\3\4");
}

bool sl_zip_is_own(const unsigned char header[SL_ZIP_LOCAL_BYTES]) {
    unsigned method = u16(header + 8);
    return method == DEFLATE64 || method == LZMA || method == XZ;
}

sl_zip_entry *sl_zip_entry_create(void) {
    sl_zip_entry *entry = malloc(sizeof *entry);
    if (entry)
        entry->lzma = (lzma_stream)LZMA_STREAM_INIT;
    return entry;
}

void sl_zip_entry_destroy(sl_zip_entry *entry) {
    if (entry)
        lzma_end(&entry->lzma);
    free(entry);
}

/* Runs the decoder on the bytes set in entry->lzma. */
static bool run_lzma(sl_zip_entry *entry, const char *label, sl_error *error) {
    char needed[SL_HUMAN_ROOM];
    switch (lzma_code(&entry->lzma, LZMA_RUN)) {
    case LZMA_STREAM_END:
        entry->lzma_ended = true;
        return true;
    case LZMA_OK:
    case LZMA_BUF_ERROR: /* no progress without more input */
        return true;
    case LZMA_MEM_ERROR:
        return sl_error_memory(error, "unpacking sources");
    case LZMA_MEMLIMIT_ERROR:
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: unpacking this entry takes %s of memory, more than %u MiB, the "
                            "limit for one source; unpack the archive first (7z x)",
                            label, sl_human_bytes((double)lzma_memusage(&entry->lzma), needed),
                            (unsigned)(SL_DECODER_MEMORY_MAX >> 20));
    default:
        return entry_damaged(entry, label, "bad LZMA data", error);
    }
}

/* The data begin with a version, the length of the properties, and these. The decoder gets them in
 * the header of an .lzma file, which also has the size of the contents (all ones: an end marker
 * follows). */
static bool begin_lzma(sl_zip_entry *entry, uint64_t size, const char *label,
                       sl_reader_times *times, sl_error *error) {
    sl_input *input = entry->input;
    unsigned char head[LZMA_PROPERTIES + 8];
    uint8_t none; /* not written: but without room, the decoder would not read the header */
    if (!sl_input_peek(input, 4 + LZMA_PROPERTIES, times, error))
        return false;
    const unsigned char *at = sl_input_at(input);
    if (sl_input_left(input) < 4 + LZMA_PROPERTIES || u16(at + 2) != LZMA_PROPERTIES)
        return entry_damaged(entry, label, "the header of its LZMA data", error);
    if (u16(entry->header + 6) & FLAG_END_MARKER)
        size = UINT64_MAX;
    else if (size == UINT64_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: LZMA data of unknown size without an end marker; unpack the "
                            "archive first (7z x)",
                            label);
    memcpy(head, at + 4, LZMA_PROPERTIES);
    for (unsigned i = 0; i < 8; i++)
        head[LZMA_PROPERTIES + i] = (unsigned char)(size >> 8 * i);
    input->used += 4 + LZMA_PROPERTIES;
    if (lzma_alone_decoder(&entry->lzma, SL_DECODER_MEMORY_MAX) != LZMA_OK)
        return sl_error_memory(error, "unpacking sources");
    entry->lzma.next_in = head;
    entry->lzma.avail_in = sizeof head;
    entry->lzma.next_out = &none;
    entry->lzma.avail_out = sizeof none;
    return run_lzma(entry, label, error);
}

bool sl_zip_entry_begin(sl_zip_entry *entry, const unsigned char header[SL_ZIP_LOCAL_BYTES],
                        uint64_t start, uint64_t size, sl_input *input, const char *label,
                        sl_reader_times *times, sl_error *error) {
    memcpy(entry->header, header, SL_ZIP_LOCAL_BYTES);
    entry->crc = (uint32_t)crc32(0, NULL, 0);
    entry->ended = entry->lzma_ended = false;
    entry->input = input;
    entry->begin = sl_input_position(input);
    entry->total = 0;
    uint64_t data = start + SL_ZIP_LOCAL_BYTES + u16(header + 26) + u16(header + 28);
    if (entry->begin != data)
        return entry_damaged(entry, label, "an entry does not follow the one before it", error);
    switch (u16(header + 8)) {
    case LZMA:
        return begin_lzma(entry, size, label, times, error);
    case XZ:
        return lzma_stream_decoder(&entry->lzma, SL_DECODER_MEMORY_MAX, 0) == LZMA_OK ||
               sl_error_memory(error, "unpacking sources");
    default:
        sl_inflate64_begin(&entry->inflate, input);
        return true;
    }
}

/* Like sl_inflate64_read, for LZMA and xz. */
static bool read_lzma(sl_zip_entry *entry, unsigned char *out, size_t room, size_t *got,
                      const char *label, sl_reader_times *times, sl_error *error) {
    lzma_stream *stream = &entry->lzma;
    sl_input *input = entry->input;
    stream->next_out = out;
    stream->avail_out = room;
    while (*got == 0 && !entry->lzma_ended) {
        if (!sl_input_peek(input, 1, times, error))
            return false;
        size_t left = sl_input_left(input);
        stream->next_in = sl_input_at(input);
        stream->avail_in = left;
        if (!run_lzma(entry, label, error))
            return false;
        input->used += left - stream->avail_in;
        *got = room - stream->avail_out;
        if (*got == 0 && stream->avail_in == left && !entry->lzma_ended)
            return left > 0 ? entry_damaged(entry, label, "bad LZMA data", error)
                            : sl_error_set(error, SL_EXIT_SOURCE,
                                           "%s: the LZMA data end early at byte %llu of the "
                                           "archive; the file is truncated: fetch it again",
                                           label, (unsigned long long)input->offset);
    }
    return true;
}

/* Compares the checksum and the sizes with those declared, and moves to the next header. */
static bool end_entry(sl_zip_entry *entry, const char *label, sl_reader_times *times,
                      sl_error *error) {
    sl_input *input = entry->input;
    const unsigned char *header = entry->header;
    uint64_t packed = sl_input_position(input) - entry->begin;
    entry->ended = true;
    if (!sl_input_peek(input, DESCRIPTOR_BYTES, times, error))
        return false;
    if (u16(header + 6) & FLAG_DESCRIPTOR) {
        size_t length = descriptor_length(sl_input_at(input), sl_input_left(input), entry->crc,
                                          packed, entry->total);
        if (length == 0)
            return entry_damaged(entry, label, "the checksum or size after the data differs",
                                 error);
        input->used += length;
    } else if (u32(header + 14) != entry->crc) {
        return entry_damaged(entry, label, "the checksum of the contents differs", error);
    } else if (!same_size(u32(header + 18), (uint32_t)packed) ||
               !same_size(u32(header + 22), (uint32_t)entry->total)) {
        return entry_damaged(entry, label, "the size of the contents differs", error);
    }
    if (!sl_input_peek(input, 4, times, error))
        return false;
    return begins_header(sl_input_at(input), sl_input_left(input)) ||
           entry_damaged(entry, label,
                         "neither an entry nor the table of contents follows the data", error);
}

bool sl_zip_entry_read(sl_zip_entry *entry, unsigned char *out, size_t room, size_t *got,
                       const char *label, sl_reader_times *times, sl_error *error) {
    *got = 0;
    if (entry->ended)
        return true;
    bool deflated = u16(entry->header + 8) == DEFLATE64;
    if (deflated ? !sl_inflate64_read(&entry->inflate, out, room, got, label, times, error)
                 : !read_lzma(entry, out, room, got, label, times, error))
        return false;
    entry->total += *got;
    if (*got == 0)
        return end_entry(entry, label, times, error);
    entry->crc = (uint32_t)crc32(entry->crc, out, (uInt)*got);
    return true;
}
