/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: files cannot be locked, as in some network file systems. */
#include <errno.h>
#include <sys/file.h>

int flock(int file, int operation) {
    (void)file;
    (void)operation;
    errno = ENOLCK;
    return -1;
}
