/* SPDX-License-Identifier: Apache-2.0 */
/* Types that --types declares by name: of the columns of delimited text without a schema, and of
 * the values of JSON, which can write dates and the like only as text. */
#ifndef SHARDLOAD_DECLARED_H
#define SHARDLOAD_DECLARED_H

#include "format.h"
#include "schema.h"
#include "scratch.h"

#define SL_DECLARED_MAX 64u

typedef struct sl_declared {
    sl_schema_column columns[SL_DECLARED_MAX]; /* strings are parts of `memory` */
    size_t count;
    char *memory;
    _Atomic bool *found; /* of each name: a document has the field */
} sl_declared;

/* Reads NAME=TYPE,... NULL in `*declared` if `text` is NULL. A TYPE is a word of sl_column_types,
 * and what belongs to it, behind a colon: flag:Y:N, date:%d.%m.%Y, double:1.234,5, array:int. */
bool sl_declared_create(const char *text, sl_declared **declared, sl_error *error);
void sl_declared_destroy(sl_declared *declared); /* NULL is fine */

/* Writes `before` and NAME=TYPE as --types takes it, from a type as the registry lists it: flag Y N
 * is flag:Y:N. False, and nothing, if there is no room, or --types cannot take the name. */
bool sl_declaration_write(const char *before, const char *name, const char *words, sl_type type,
                          char *out, size_t room);

/* Gives the columns of the dialect their declared types. False with error (SL_EXIT_SOURCE) if a
 * name is that of no column. */
bool sl_declared_apply(const sl_declared *declared, sl_dialect *dialect, sl_error *error);

/* The result of a conversion. */
typedef enum sl_declared_status {
    SL_DECLARED_OK,
    SL_DECLARED_UNFIT,
    SL_DECLARED_NO_ROOM,
} sl_declared_status;

/* Writes the document at `to`, with its texts converted that have declared names; a name with dots
 * is the path of a value in embedded documents. Other values than text remain as they are. UNFIT: a
 * text does not fit; the reject has the reason. `*end`: of the written document. */
sl_declared_status sl_declared_convert(const sl_declared *declared, sl_scratch *scratch,
                                       const uint8_t *document, uint8_t *to, uint8_t *limit,
                                       uint8_t **end, sl_reject *reject);

#endif
