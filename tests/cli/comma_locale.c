/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: gives the process the locale of the environment before main begins, as
 * the program that calls the public library may do. The locale must have a decimal comma. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void) {
    if (setlocale(LC_ALL, "") && localeconv()->decimal_point[0] == ',')
        return;
    fputs("comma_locale: the locale of the environment has no decimal comma\n", stderr);
    abort();
}
