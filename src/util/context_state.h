/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a context. Internal to context.c, log.c and interrupt.c. */
#ifndef SHARDLOAD_CONTEXT_STATE_H
#define SHARDLOAD_CONTEXT_STATE_H

#include <stdatomic.h>

#include "context.h"
#include "interrupt.h"

/* Room for lines logged before the file is opened; they are written to it first. */
#define SL_LOG_EARLY_BYTES ((size_t)64 << 10)

/* log.c */
typedef struct sl_log_state {
    pthread_mutex_t lock;
    _Atomic sl_log_level level;
    int file;    /* -1: not open; `lock` guards this and the fields below */
    bool opened; /* a file has been opened */
    char early[SL_LOG_EARLY_BYTES];
    size_t early_used;
    void (*hook)(bool before, void *context);
    void *hook_context;
    char first_error[1200];
} sl_log_state;

typedef struct sl_listener {
    bool (*first)(void *context);
    void (*second)(void *context);
    void *context;
} sl_listener;

/* interrupt.c */
typedef struct sl_interrupt_state {
    _Atomic bool requested;
    _Atomic bool at_once;      /* the second request has come; see interrupt.c */
    _Atomic unsigned changing; /* threads that are changing the cluster */
    pthread_mutex_t lock;      /* held while handlers run; guards the fields below */
    sl_listener listeners[SL_LISTENERS_MAX];
    unsigned count;
} sl_interrupt_state;

struct sl_context {
    sl_surroundings surroundings;
    FILE *nowhere;        /* the stream of a missing output or screen */
    _Atomic bool changed; /* see sl_context_changes */
    _Atomic bool trial;   /* see sl_context_is_trial */
    sl_log_state log;
    sl_interrupt_state interrupt;
};

#endif
