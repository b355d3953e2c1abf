/* SPDX-License-Identifier: Apache-2.0 */
/* Version 2 of the driver has renamed functions. The sources use the names of version 1, and this
 * file defines them. With version 2, cmake/Dependencies.cmake makes the compiler include it before
 * each source. */
#ifndef SHARDLOAD_DRIVER_NAMES_H
#define SHARDLOAD_DRIVER_NAMES_H

#include <bson/bson.h>

#ifdef BSON_APPEND_ARRAY_UNSAFE_BEGIN
#undef BSON_APPEND_ARRAY_BEGIN
#define BSON_APPEND_ARRAY_BEGIN BSON_APPEND_ARRAY_UNSAFE_BEGIN
#define bson_append_array_begin bson_append_array_unsafe_begin
#endif

#endif
