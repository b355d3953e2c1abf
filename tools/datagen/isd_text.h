// SPDX-License-Identifier: Apache-2.0
//
// How ISD text is put together: fields of fixed widths, and the sections of a record. Each function
// writes at `p` and returns the end of what it wrote.
#ifndef DATAGEN_ISD_TEXT_H
#define DATAGEN_ISD_TEXT_H

#include <string.h>

#include "isd.h"

// Writes the data of one group, its instance counted from 1. The bits are random.
typedef char *isd_put_group(const struct isd_row *row, unsigned instance, uint32_t bits, char *p);

struct isd_text {
    const struct isd_groups *groups;
    isd_put_group *put[FAMILIES_MAX]; // of a family; NULL where any values will do
    struct rng rng;
    char days[367][8]; // YYYYMMDD, the next year's first included
};

// Initialises `text`, which borrows the groups.
void isd_text_init(struct isd_text *text, const struct options *options,
                   const struct isd_groups *groups);

// Writes a record, its line feed included, at `p` and returns its end. At most OUTPUT_ROOM bytes.
char *isd_text_row(struct isd_text *text, const struct isd_row *row, char *p);

// Writes `row` as a bad record of kind `which` modulo the number of kinds. Sets column and kind of
// `bad`.
char *isd_text_bad(struct isd_text *text, const struct isd_row *row, uint64_t which, char *p,
                   struct bad_record *bad);

static inline char *put_bytes(char *p, const char *bytes, size_t length) {
    memcpy(p, bytes, length);
    return p + length;
}

static inline char *put_string(char *p, const char *text) {
    return put_bytes(p, text, strlen(text));
}

// Digits with leading zeros. Higher digits than fit are lost.
static inline char *put_digits(char *p, uint32_t value, unsigned width) {
    for (unsigned i = width; i-- > 0; value /= 10) {
        p[i] = (char)('0' + value % 10);
    }
    return p + width;
}

// A sign and width - 1 digits.
static inline char *put_signed(char *p, int32_t value, unsigned width) {
    *p = value < 0 ? '-' : '+';
    return put_digits(p + 1, (uint32_t)(value < 0 ? -value : value), width - 1);
}

static inline char *put_nines(char *p, unsigned width) {
    memset(p, '9', width);
    return p + width;
}

static inline char *put_char(char *p, char c) {
    *p = c;
    return p + 1;
}

// A decimal number: no leading zeros, a minus sign below zero.
char *put_number(char *p, int32_t value);

// isd_groups_text.c: the groups that show the weather; the section ADD.
void isd_find_tellers(struct isd_text *text);
char *isd_put_groups(struct isd_text *text, const struct isd_row *row, char *p);

// isd_remarks.c: the sections REM, EQD and QNN.
char *isd_put_remarks(struct isd_text *text, const struct isd_row *row, char *p);
char *isd_put_element_quality(struct isd_text *text, const struct isd_row *row, char *p);
char *isd_put_original(struct isd_text *text, const struct isd_row *row, char *p);

#endif
