/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of convert_sse41.h. They are defined in a file of their own, because a compiler
 * that knows their values computes them again for each field. */
#ifndef SHARDLOAD_VECTORS_H
#define SHARDLOAD_VECTORS_H

#include <stdint.h>

/* For a decimal number whose point has a certain index among sixteen bytes. */
typedef struct sl_point {
    uint8_t moves[16];  /* the shuffle that moves the bytes before the point to the point */
    double divisors[2]; /* 10 to the number of digits after the point; the same, negative */
} sl_point;

typedef struct sl_vector_constants {
    char zeros[16];
    char points[16]; /* '.' XOR '0' */
    uint8_t nines[16];
    int8_t tens[16];           /* weights of digits: of each pair, */
    int16_t hundreds[8];       /* of each pair of pairs, */
    int16_t thousands[8];      /* of each pair of these */
    uint8_t ends[32];          /* from index n on: the shuffle that moves n bytes to the end */
    sl_point point[17];        /* 16: there is no point */
    char date_form[16];        /* YYYY-MM-DD: its bytes with all digits 0, */
    uint8_t date_greatest[16]; /* the greatest value of each byte XOR the form's, */
    int8_t date_tens[16];      /* and weights, as above */
    int16_t date_hundreds[8];
    char time_form[16]; /* the same of hh:mm:ss */
    uint8_t time_greatest[16];
    int8_t time_tens[16];
    int16_t time_seconds[8];
} __attribute__((aligned(32))) sl_vector_constants;

extern const sl_vector_constants sl_vectors;

#endif
