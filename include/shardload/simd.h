/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets: which of the versions of the parsers' inner loops is used.
 *
 * The best that the processor has, or the one named by the environment variable SHARDLOAD_SIMD:
 * portable, sse2, avx2, avx512 (64-bit x86), neon (64-bit ARM). All give the same documents; the
 * variable is for tests and benchmarks. */
#ifndef SHARDLOAD_SIMD_H
#define SHARDLOAD_SIMD_H

#include <shardload/error.h>

typedef struct sl_simd sl_simd;

/* All that were built, best first, ended by NULL; this processor may not have them all. */
extern const sl_simd *const sl_simds[];

bool sl_simd_supported(const sl_simd *simd);
const char *sl_simd_name(const sl_simd *simd);

/* The one to use. False with error (SL_EXIT_USAGE) set when SHARDLOAD_SIMD names none that was
 * built and that this processor has. */
bool sl_simd_choose(const sl_simd **simd, sl_error *error);

#endif
