/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321), for the hashes of hashed shard keys. Not used for security. */
#ifndef SHARDLOAD_MD5_H
#define SHARDLOAD_MD5_H

#include <stddef.h>
#include <stdint.h>

#define SL_MD5_BYTES 16

typedef struct sl_md5 {
    uint32_t state[4];
    uint64_t length;   /* bytes added so far */
    uint8_t block[64]; /* the last (length modulo 64) bytes, not yet hashed */
} sl_md5;

void sl_md5_begin(sl_md5 *md5);
/* Any number of calls; `length` may be 0. */
void sl_md5_add(sl_md5 *md5, const void *bytes, size_t length);
/* Call sl_md5_begin before `md5` is used again. */
void sl_md5_end(sl_md5 *md5, uint8_t digest[SL_MD5_BYTES]);
/* The MD5 of a text, as hexadecimal digits. Returns hex. */
const char *sl_md5_text(const char *text, char hex[2 * SL_MD5_BYTES + 1]);

#endif
