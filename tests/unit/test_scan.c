/* SPDX-License-Identifier: Apache-2.0 */
/* The structural scan: every version of it must find what a plain loop finds. A user would notice a
 * miss as two fields in one, on one kind of processor only. */
#include "parse_text.h"

#include "../../src/format/scan.h"

/* The portable version beside the one this machine uses. */
#undef SHARDLOAD_SCAN_H
#define SL_SCAN_PORTABLE
#define sl_scan portable_scan
#define sl_scan_64 portable_scan_64
#define sl_scan_count portable_scan_count
#define sl_scan_zero_bytes portable_scan_zero_bytes
#include "../../src/format/scan.h"
#undef sl_scan
#undef sl_scan_64
#undef sl_scan_count

static void check(const char *bytes, char delimiter, bool quotes) {
    uint64_t marks = 0, lines = 0;
    bool plain = true, quoted = false;
    for (unsigned i = 0; i < 64; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        uint64_t bit = UINT64_C(1) << i;
        lines |= byte == '\n' ? bit : 0;
        marks |= byte == '\n' || byte == (uint8_t)delimiter || (quotes && byte == '"') ? bit : 0;
        plain &= byte != 0 && byte < 0x80 && !(quotes && byte == '\\');
        quoted |= quotes && byte == '"';
    }
    sl_scan scan = sl_scan_64(bytes, delimiter, quotes);
    assert_true(scan.marks == marks && scan.lines == lines);
    assert_true(scan.plain == plain && scan.quoted == quoted);
    assert_int_equal(sl_scan_count(marks), __builtin_popcountll(marks));
    portable_scan portable = portable_scan_64(bytes, delimiter, quotes);
    assert_true(portable.marks == marks && portable.lines == lines);
    assert_true(portable.plain == plain && portable.quoted == quoted);
    assert_int_equal(portable_scan_count(marks), __builtin_popcountll(marks));
}

static void every_byte_in_every_place(void **state) {
    (void)state;
    char bytes[64];
    memset(bytes, 'x', sizeof bytes);
    for (unsigned at = 0; at < 64; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (char)byte;
            check(bytes, ',', false);
            check(bytes, ',', true);
            check(bytes, '|', false);
        }
        bytes[at] = 'x';
    }
}

/* Neighbours of one another's values, where a carry from byte to byte would show. */
static void crowds(void **state) {
    (void)state;
    static const char crowd[] = "\0\x01\x80\x7F\xFF\n\x0B\x09,-+|}{\"!#\\[]x";
    uint32_t random = 12345;
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[64];
        for (unsigned i = 0; i < 64; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = crowd[(random >> 16) % (sizeof crowd - 1)];
        }
        check(bytes, round % 2 ? ',' : '|', round % 3 == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_in_every_place),
        cmocka_unit_test(crowds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
