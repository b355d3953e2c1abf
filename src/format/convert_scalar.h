/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop's converters in plain C. */
#ifndef SHARDLOAD_CONVERT_SCALAR_H
#define SHARDLOAD_CONVERT_SCALAR_H

#include "convert.h"

#define convert_digits sl_convert_digits
#define convert_date sl_convert_date
#define convert_seconds sl_convert_seconds
#define convert_decimal sl_convert_short_decimal

#endif
