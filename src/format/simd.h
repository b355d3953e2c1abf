/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets: selects the version of the parsers' inner loops.
 *
 * It is the best version that the processor supports, or the version named by the environment
 * variable SHARDLOAD_SIMD: portable, sse2, avx2, avx512 (64-bit x86), neon (64-bit ARM). All
 * versions produce the same documents; the variable is for tests and benchmarks. */
#ifndef SHARDLOAD_SIMD_H
#define SHARDLOAD_SIMD_H

#include "util/error.h"

typedef struct sl_simd sl_simd;

/* All versions built, best first, ended by NULL. The processor may not support some of them. */
extern const sl_simd *const sl_simds[];

bool sl_simd_supported(const sl_simd *simd);
const char *sl_simd_name(const sl_simd *simd);

/* Selects a version. False with error (SL_EXIT_USAGE) set when SHARDLOAD_SIMD names a version that
 * was not built or that this processor does not support. */
bool sl_simd_choose(const sl_simd **simd, sl_error *error);

#endif
