/* SPDX-License-Identifier: Apache-2.0 */
/* Dates in any format: formats in the notation of strftime, and ISO 8601 with offsets.
 *
 * A format consists of literal bytes and of
 *
 *   %Y     year, four digits             %H     hour, 0 to 23     %b  month's English name
 *   %m %d  month, day; 1 or 2 digits     %I %p  hour, 1 to 12; AM or PM
 *   %M     minute, two digits            %a     English name of the weekday, which must be right
 *   %S     second, two digits, perhaps with a fraction; digits after the third must be 0
 *   %z     Z, UTC, GMT, +hh:mm, +hhmm, +hh, or GMT+hh:mm; also with minus
 *   %%     a percent sign
 *
 * or the format is one of the words
 *
 *   epoch     seconds since 1970, perhaps with a fraction; digits after the third must be 0
 *   epoch-ms  milliseconds since 1970
 *
 * within 12,000 years of 1970, so that most numbers in milliseconds are refused as seconds.
 *
 * Names may be cut to three letters, in any case. Without %z a time is UTC. */
#ifndef SHARDLOAD_DATE_FORMAT_H
#define SHARDLOAD_DATE_FORMAT_H

#include "util/text.h"

/* Does the format determine a day, and contain only known conversions? */
bool sl_date_format_valid(const char *format);

/* Converts a complete field to milliseconds since 1970. Reads no byte after the field. */
bool sl_convert_formatted(const char *format, sl_text field, int64_t *milliseconds);

typedef enum sl_zone { SL_ZONE_ANY, SL_ZONE_NONE, SL_ZONE_GIVEN } sl_zone;

/* Converts YYYY-MM-DD[Thh:mm[:ss[.f]][zone]], as sl_convert_datetime, but with any zone that %z
 * accepts. SL_ZONE_NONE: none is accepted; SL_ZONE_GIVEN: one is required. A fraction's digits
 * after the third must be 0. Reads no byte after the field. */
bool sl_convert_iso(sl_text field, sl_zone zone, int64_t *milliseconds);

#endif
