/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: read from the terminal without echo, or from a file; core dumps are disabled. */
#include "secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "util/context.h"
#include "util/log.h"
#include "util/print.h"

/* ---- the terminal ---- */

/* These signals end the program. Their handler first restores the terminal's echo (tcsetattr is
 * async-signal-safe), then raises the signal again, now with its default action. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING = sizeof ending / sizeof ending[0] };

static struct {
    int file;
    struct termios before; /* with echo */
} terminal;

static void restore_terminal(int number) {
    tcsetattr(terminal.file, TCSANOW, &terminal.before);
    raise(number); /* SA_RESETHAND has restored the default action */
}

static void hide_input(struct sigaction before[ENDING]) {
    const struct sigaction act = {.sa_handler = restore_terminal, .sa_flags = (int)SA_RESETHAND};
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &act, NULL);
    }
    struct termios hidden = terminal.before;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
    tcsetattr(terminal.file, TCSAFLUSH, &hidden);
}

/* Reads a line into `secret`, without its newline. False when it is empty or too long. */
static bool read_line(char secret[SL_SECRET_ROOM]) {
    size_t used = 0;
    for (;;) {
        char byte;
        ssize_t count = read(terminal.file, &byte, 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0 || used + 1 == SL_SECRET_ROOM)
            return false;
        if (byte == '\n')
            break;
        secret[used++] = byte;
    }
    secret[used] = '\0';
    return used > 0;
}

bool sl_secret_ask(const char *whose, char secret[SL_SECRET_ROOM], sl_error *error) {
    bool may_ask = sl_context_current() && sl_context_surroundings(sl_context_current())->screen;
    terminal.file = may_ask ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
    if (terminal.file < 0 || tcgetattr(terminal.file, &terminal.before) != 0) {
        if (terminal.file >= 0)
            close(terminal.file);
        return sl_error_set(error, SL_EXIT_USAGE,
                            "the password of %s is needed, and there is no terminal to ask for it; "
                            "docs/security.md lists the other ways to give it",
                            whose);
    }
    struct sigaction before[ENDING];
    hide_input(before);
    char prompt[500];
    size_t length = sl_print_text(prompt, sizeof prompt, "Password of %s: ", whose);
    bool ok = write(terminal.file, prompt, length) == (ssize_t)length && read_line(secret);
    tcsetattr(terminal.file, TCSANOW, &terminal.before);
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    dprintf(terminal.file, "\n");
    close(terminal.file);
    if (ok)
        return true;
    explicit_bzero(secret, SL_SECRET_ROOM);
    return sl_error_set(error, SL_EXIT_USAGE, "no password was given");
}

/* ---- files ---- */

static void warn_of_readers(const char *path, const struct stat *about) {
    if (!S_ISREG(about->st_mode))
        return;
    if (about->st_mode & 077)
        sl_log_warning("%s contains a password and can be read by other users; run chmod 600 on it",
                       path);
    else if (about->st_uid != geteuid() && about->st_uid != 0)
        sl_log_warning("%s contains a password and belongs to another user, who can read it; use a "
                       "file of your own",
                       path);
}

void sl_secret_warn_of_readers(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0)
        warn_of_readers(path, &about);
}

bool sl_secret_read_file(const char *path, char secret[SL_SECRET_ROOM], sl_error *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "--password-file %s: %s",
                            path, strerror(errno));
    struct stat about;
    if (fstat(file, &about) == 0)
        warn_of_readers(path, &about);
    size_t used = 0;
    ssize_t count;
    while ((count = read(file, secret + used, SL_SECRET_ROOM - used)) != 0) {
        if (count < 0 && errno != EINTR)
            break;
        used += count > 0 ? (size_t)count : 0;
        if (used == SL_SECRET_ROOM || memchr(secret, '\n', used))
            break;
    }
    int why = errno;
    close(file);
    size_t length = used;
    const char *end = memchr(secret, '\n', used);
    if (end)
        length = (size_t)(end - secret);
    if (length > 0 && secret[length - 1] == '\r')
        length--;
    bool fits = length < SL_SECRET_ROOM && !memchr(secret, '\0', length);
    if (count >= 0 && fits && length > 0) {
        explicit_bzero(secret + length, SL_SECRET_ROOM - length);
        return true;
    }
    explicit_bzero(secret, SL_SECRET_ROOM);
    return sl_error_set(error, sl_exit_of_errno(why, SL_EXIT_USAGE), "--password-file %s: %s", path,
                        count < 0 ? strerror(why)
                        : fits    ? "its first line is empty"
                                  : "its first line is not a password: it is too long, or contains "
                                    "a NUL byte");
}

/* ---- the process ---- */

void sl_secret_guard_process(void) {
    prctl(PR_SET_DUMPABLE, 0);
}
