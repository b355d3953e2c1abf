/* SPDX-License-Identifier: Apache-2.0 */
/* Exhausted resources: their exit code, and failures without an error, which an overlooked
 * allocation failure leaves. Such a failure must not end a load with exit code 0. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/run.h"

static void errno_has_a_class(void **state) {
    (void)state;
    static const int exhausted[] = {ENOMEM, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE};
    for (size_t i = 0; i < sizeof exhausted / sizeof exhausted[0]; i++)
        assert_int_equal(sl_exit_of_errno(exhausted[i], SL_EXIT_SOURCE), SL_EXIT_RESOURCES);
    assert_int_equal(sl_exit_of_errno(EAGAIN, SL_EXIT_SOURCE), SL_EXIT_SOURCE); /* of a read */
    assert_int_equal(sl_exit_of_errno(ENOENT, SL_EXIT_SOURCE), SL_EXIT_SOURCE);
    assert_int_equal(sl_exit_of_errno(EACCES, SL_EXIT_USAGE), SL_EXIT_USAGE);
    assert_int_equal(sl_exit_of_errno(0, SL_EXIT_CLUSTER), SL_EXIT_CLUSTER);
}

static void memory_is_a_resource(void **state) {
    (void)state;
    sl_error error;
    assert_false(sl_error_memory(&error, "counting"));
    assert_int_equal(error.code, SL_EXIT_RESOURCES);
    assert_non_null(strstr(error.message, "out of memory while counting"));
}

static void a_missing_error_is_an_error(void **state) {
    (void)state;
    sl_error error = {0};
    assert_false(sl_error_missing(&error, "a phase"));
    assert_int_equal(error.code, SL_EXIT_RESOURCES);
    assert_non_null(strstr(error.message, "a phase failed without a reason"));
    sl_error_set(&error, SL_EXIT_CLUSTER, "no server");
    assert_false(sl_error_missing(&error, "a phase"));
    assert_int_equal(error.code, SL_EXIT_CLUSTER);
    assert_string_equal(error.message, "no server");
}

static void a_worker_that_fails_in_silence_ends_the_run(void **state) {
    (void)state;
    sl_error error = {0};
    const sl_load_config config = {.threads = 1, .batch_documents = 10};
    sl_job job;
    sl_run run;
    sl_job_init(&job, &config);
    assert_true(sl_source_set_create(NULL, 0, NULL, &job.set, &error));
    sl_run_init(&run, &job);
    sl_run_fail(&run, &error);
    assert_true(run.stop);
    assert_int_equal(run.failure.code, SL_EXIT_RESOURCES);
    sl_run_clear(&run);
    sl_job_clear(&job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errno_has_a_class),
        cmocka_unit_test(memory_is_a_resource),
        cmocka_unit_test(a_missing_error_is_an_error),
        cmocka_unit_test(a_worker_that_fails_in_silence_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
