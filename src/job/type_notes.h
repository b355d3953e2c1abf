/* SPDX-License-Identifier: Apache-2.0 */
/* How messages name columns and their types: as options that can be copied. */
#ifndef SHARDLOAD_TYPE_NOTES_H
#define SHARDLOAD_TYPE_NOTES_H

#include "document_sample.h"

#include "format/dialects.h"
#include "format/typing.h"

/* Adds NAME=TYPE to a list, if there is room, and the name has no character that divides the list.
 * False: it is not added. */
bool sl_type_declare(const char *name, const sl_schema_column *type, char list[400]);
/* Writes the types that the values of a column of text may have, with what they make of one of
 * them; nothing if there are none, or the name cannot be written. `decimal`: numbers are
 * decimal128. */
void sl_type_write_readings(const sl_typed_column *column, bool decimal, char *out, size_t room);

#endif
