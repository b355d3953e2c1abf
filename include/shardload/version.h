/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library that the program is linked with. */
#ifndef SHARDLOAD_VERSION_H
#define SHARDLOAD_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH"; static. */
const char *shardload_version(void);

#ifdef __cplusplus
}
#endif

#endif
