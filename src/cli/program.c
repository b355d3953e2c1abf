/* SPDX-License-Identifier: Apache-2.0 */
/* What both programs do at their start and end. */
#include "program.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "signals.h"

/* When standard input, output or error is closed at the start, the next file that is opened gets
 * its descriptor, and messages or documents would be written into that file. So closed descriptors
 * are opened on /dev/null, for reading only: reads return no data, writes fail. */
static void open_standard_files(void) {
    int file;
    do
        file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

int sl_program_main(const sl_program *program, bool signals, int count, char **words) {
    static const char no_memory[] = "out of memory at the start\n";
    sl_surroundings around = {.program = program->name, .output = stdout, .screen = stderr};
    if (signals) {
        around.start_signals = sl_signals_start;
        around.stop_signals = sl_signals_stop;
    }
    sl_memory_begin();
    open_standard_files();
    sl_context *context = sl_context_create(&around);
    if (!context) {
        ssize_t written = write(STDERR_FILENO, no_memory, sizeof no_memory - 1);
        (void)written;
        return sl_memory_end(SL_EXIT_RESOURCES);
    }
    sl_context_bind(context);
    int code = sl_options_main(program, count, words);
    sl_context_bind(NULL);
    sl_context_destroy(context);
    return sl_memory_end(code);
}
