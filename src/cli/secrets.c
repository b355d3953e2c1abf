/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: how they come in without being seen, and go without being left behind. */
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

#include <shardload/log.h>
#include <shardload/print.h>

/* ---- the terminal ---- */

/* A signal that ends the program must not leave the terminal without its echo: the handler puts it
 * back (tcsetattr is safe there), and the signal, raised anew, does what it would have done. */
static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { DEADLY = sizeof deadly / sizeof deadly[0] };

static struct {
    int file;
    struct termios shown; /* how it was */
} terminal;

static void put_terminal_back(int number) {
    tcsetattr(terminal.file, TCSANOW, &terminal.shown);
    raise(number); /* SA_RESETHAND: by now with its usual effect */
}

static void hide_input(struct sigaction before[DEADLY]) {
    const struct sigaction act = {.sa_handler = put_terminal_back, .sa_flags = (int)SA_RESETHAND};
    for (int i = 0; i < DEADLY; i++) {
        sigaction(deadly[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(deadly[i], &act, NULL);
    }
    struct termios hidden = terminal.shown;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
    tcsetattr(terminal.file, TCSAFLUSH, &hidden);
}

static void show_input(const struct sigaction before[DEADLY]) {
    tcsetattr(terminal.file, TCSANOW, &terminal.shown);
    for (int i = 0; i < DEADLY; i++)
        sigaction(deadly[i], &before[i], NULL);
}

/* Reads a line into `secret`, without its end. False when it did not fit or there was none. */
static bool read_line(char secret[SL_SECRET_ROOM]) {
    size_t used = 0;
    for (;;) {
        char byte;
        ssize_t got = read(terminal.file, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || used + 1 == SL_SECRET_ROOM)
            return false;
        if (byte == '\n')
            break;
        secret[used++] = byte;
    }
    secret[used] = '\0';
    return used > 0;
}

bool sl_secret_ask(const char *whose, char secret[SL_SECRET_ROOM], sl_error *error) {
    terminal.file = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal.file < 0 || tcgetattr(terminal.file, &terminal.shown) != 0) {
        if (terminal.file >= 0)
            close(terminal.file);
        return sl_error_set(error, SL_EXIT_USAGE,
                            "the password of %s is needed, and there is no terminal to ask for it; "
                            "docs/security.md lists the other ways to give it",
                            whose);
    }
    struct sigaction before[DEADLY];
    hide_input(before);
    char prompt[500];
    size_t length = sl_print_text(prompt, sizeof prompt, "Password of %s: ", whose);
    bool ok = write(terminal.file, prompt, length) == (ssize_t)length && read_line(secret);
    show_input(before);
    dprintf(terminal.file, "\n");
    close(terminal.file);
    if (ok)
        return true;
    explicit_bzero(secret, SL_SECRET_ROOM);
    return sl_error_set(error, SL_EXIT_USAGE, "no password was given");
}

/* ---- files ---- */

void sl_secret_warn_of_readers(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 077))
        sl_log_warning("%s holds a password and can be read by others; chmod 600 it", path);
}

bool sl_secret_read_file(const char *path, char secret[SL_SECRET_ROOM], sl_error *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "--password-file %s: %s", path, strerror(errno));
    sl_secret_warn_of_readers(path);
    size_t used = 0;
    ssize_t got;
    while ((got = read(file, secret + used, SL_SECRET_ROOM - used)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
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
    if (got >= 0 && fits && length > 0) {
        explicit_bzero(secret + length, SL_SECRET_ROOM - length);
        return true;
    }
    explicit_bzero(secret, SL_SECRET_ROOM);
    return sl_error_set(error, SL_EXIT_USAGE, "--password-file %s: %s", path,
                        got < 0 ? strerror(why)
                        : fits  ? "its first line is empty"
                                : "its first line is no password: too long, or with a NUL byte");
}

/* ---- memory ---- */

void sl_secret_guard_process(void) {
    prctl(PR_SET_DUMPABLE, 0);
}
