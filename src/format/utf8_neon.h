/* SPDX-License-Identifier: Apache-2.0 */
/* The vector operations of utf8_lookup.h with NEON. */
#ifndef SHARDLOAD_UTF8_NEON_H
#define SHARDLOAD_UTF8_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8x16_t utf8_vec;
#define UTF8_VEC sizeof(utf8_vec)
#define utf8_load(bytes) vld1q_u8((const uint8_t *)(bytes))
#define utf8_set(byte) vdupq_n_u8(byte)
#define utf8_zero() vdupq_n_u8(0)
#define utf8_or(a, b) vorrq_u8(a, b)
#define utf8_and(a, b) vandq_u8(a, b)
#define utf8_xor(a, b) veorq_u8(a, b)
#define utf8_less(a, b) vqsubq_u8(a, b)
#define utf8_upper(a) vshrq_n_u8(a, 4)
#define utf8_lookup(table, numbers) vqtbl1q_u8(vld1q_u8(table), numbers)
#define utf8_before(now, last, n) vextq_u8(last, now, 16 - (n))
#define utf8_any(a) (vmaxvq_u8(a) != 0)
#define utf8_any_high(a) (vmaxvq_u8(a) > 0x7F)

#include "utf8_lookup.h"

#endif
