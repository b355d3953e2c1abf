/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the decoder of Deflate64: data give the same bytes, position and outcome however they are
 * divided into pieces of input and output. The first two bytes are the sizes of the pieces. */
#include "source/zip.h"
#include "util/hash.h"

#include "check.h"

#define INPUT_MAX ((size_t)1 << 16)
#define OUTPUT_MAX ((size_t)1 << 18)
#define ROOM ((size_t)1 << 16)

typedef struct memory {
    const uint8_t *bytes;
    size_t left, piece;
} memory;

static bool fetch(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    memory *from = input->context;
    (void)times, (void)error;
    size_t piece = from->left < from->piece ? from->left : from->piece;
    *got = piece < room ? piece : room;
    memcpy(out, from->bytes, *got);
    from->bytes += *got;
    from->left -= *got;
    return true;
}

typedef struct outcome {
    uint64_t hash, total, position;
    bool ok;
} outcome;

static outcome unpack(const uint8_t *bytes, size_t size, size_t piece, size_t room) {
    memory from = {bytes, size, piece};
    sl_input input = {.fetch = fetch, .context = &from, .name = "input"};
    sl_inflate64 *inflate = malloc(sizeof *inflate);
    uint8_t *all = malloc(OUTPUT_MAX);
    sl_error error = {0};
    sl_reader_times times = {0};
    require(inflate && all && sl_input_init(&input, 512, &error), "allocation succeeds");
    sl_inflate64_begin(inflate, &input);
    outcome o = {.ok = true};
    size_t got = 1;
    while (o.ok && got > 0 && o.total < OUTPUT_MAX) {
        size_t left = OUTPUT_MAX - (size_t)o.total;
        uint8_t *out = malloc(room); /* of its own, so that a write behind its end is found */
        require(out != NULL, "allocation succeeds");
        size_t most = room < left ? room : left;
        o.ok = sl_inflate64_read(inflate, out, most, &got, "a", &times, &error);
        require(got <= most, "the output has room");
        memcpy(all + o.total, out, got);
        o.total += got;
        free(out);
    }
    if (!o.ok)
        check_error(&error);
    o.hash = sl_hash(all, o.total);
    o.position = got == 0 && o.ok ? sl_input_position(&input) : 0;
    require(o.position <= size, "the position is in the input");
    sl_input_clear(&input);
    free(inflate);
    free(all);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > INPUT_MAX)
        return 0;
    outcome large = unpack(data + 2, size - 2, INPUT_MAX, ROOM);
    outcome small = unpack(data + 2, size - 2, 1 + (size_t)data[0], 1 + (size_t)data[1] * 8);
    require(large.ok == small.ok && large.total == small.total && large.hash == small.hash &&
                large.position == small.position,
            "the bytes depend on the data only");
    return 0;
}
