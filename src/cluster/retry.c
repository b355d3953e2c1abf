/* SPDX-License-Identifier: Apache-2.0 */
/* How commands are repeated after a failure: which errors are transient, and how long to wait. */
#include <time.h>

#include "internal.h"

bool sl_backoff(unsigned attempt, bool (*keep_on)(void *context), void *context) {
    /* Quarters of a second: 1 + 2 + 4 + 8 + 6 * 16 is 28 s in all. */
    static const unsigned char quarters[] = {1, 2, 4, 8, 16, 16, 16, 16, 16, 16};
    if (attempt >= sizeof quarters)
        return false;
    for (unsigned i = 0; i < quarters[attempt]; i++) {
        if (keep_on && !keep_on(context))
            return false;
        const struct timespec quarter = {.tv_nsec = 250000000};
        nanosleep(&quarter, NULL);
    }
    return true;
}

bool sl_code_is_transient(int32_t code) {
    static const int32_t codes[] = {
        0,     /* no code from a server: the connection broke, or no server answers */
        6,     /* HostUnreachable */
        7,     /* HostNotFound */
        24,    /* LockTimeout */
        46,    /* LockBusy */
        50,    /* MaxTimeMSExpired */
        63,    /* StaleShardVersion */
        64,    /* WriteConcernFailed */
        89,    /* NetworkTimeout */
        90,    /* CallbackCanceled */
        91,    /* ShutdownInProgress */
        96,    /* OperationFailed: a chunk move that another operation interrupted */
        112,   /* WriteConflict */
        117,   /* ConflictingOperationInProgress */
        133,   /* FailedToSatisfyReadPreference */
        134,   /* ReadConcernMajorityNotAvailableYet */
        150,   /* StaleEpoch */
        189,   /* PrimarySteppedDown */
        202,   /* NetworkInterfaceExceededTimeLimit */
        234,   /* RetryChangeStream, also for other lost cursors */
        249,   /* StaleDbVersion */
        262,   /* ExceededTimeLimit */
        317,   /* ConnectionPoolExpired */
        365,   /* TemporarilyUnavailable */
        371,   /* UserWritesBlocked: by setUserWriteBlockMode, perhaps for a short time */
        384,   /* ConnectionError */
        402,   /* ResourceExhausted */
        407,   /* PooledConnectionAcquisitionExceededTimeLimit */
        9001,  /* SocketException */
        10107, /* NotWritablePrimary */
        11600, /* InterruptedAtShutdown */
        11602, /* InterruptedDueToReplStateChange */
        13388, /* StaleConfig */
        13435, /* NotPrimaryNoSecondaryOk */
        13436, /* NotPrimaryOrSecondary */
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] == code)
            return true;
    }
    return false;
}
