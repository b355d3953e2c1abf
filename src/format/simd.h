/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets. The parsers' inner loops are built once for each of them, and one of these
 * versions is selected when the program starts.
 *
 * By default, the fastest one that the processor supports is used. The environment variable
 * SHARDLOAD_SIMD selects another one, for tests and benchmarks: portable, sse2, avx2 (on
 * 64-bit x86), neon (on 64-bit ARM). All of them produce the same documents. */
#ifndef SHARDLOAD_SIMD_H
#define SHARDLOAD_SIMD_H

#include <stddef.h>

#include "util/error.h"

typedef struct sl_simd sl_simd;

/* All versions built, best first, ended by NULL. The processor may not support some of them. */
extern const sl_simd *const sl_simds[];

bool sl_simd_supported(const sl_simd *simd);
const char *sl_simd_name(const sl_simd *simd);

/* The version of sl_utf8_valid, without the position, for this instruction set. */
typedef bool sl_simd_utf8(const char *text, size_t length);
sl_simd_utf8 *sl_simd_utf8_valid(const sl_simd *simd);

/* Selects a version. False with error (SL_EXIT_USAGE) set when SHARDLOAD_SIMD names a version that
 * was not built or that this processor does not support. */
bool sl_simd_choose(const sl_simd **simd, sl_error *error);

#endif
