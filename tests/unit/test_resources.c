/* SPDX-License-Identifier: Apache-2.0 */
/* Exhausted resources: their exit code, and failures without an error, which an overlooked
 * allocation failure leaves. Such a failure must not end a load with exit code 0. */
#include "unit.h"

#include <errno.h>

#include "load/run.h"
#include "util/private_file.h"

TEST(errno_has_a_class) {
    static const int exhausted[] = {ENOMEM, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE};
    for (size_t i = 0; i < sizeof exhausted / sizeof exhausted[0]; i++)
        assert_int_equal(sl_exit_of_errno(exhausted[i], SL_EXIT_SOURCE), SL_EXIT_RESOURCES);
    assert_int_equal(sl_exit_of_errno(EAGAIN, SL_EXIT_SOURCE), SL_EXIT_SOURCE); /* of a read */
    assert_int_equal(sl_exit_of_errno(ENOENT, SL_EXIT_SOURCE), SL_EXIT_SOURCE);
    assert_int_equal(sl_exit_of_errno(EACCES, SL_EXIT_USAGE), SL_EXIT_USAGE);
    assert_int_equal(sl_exit_of_errno(0, SL_EXIT_CLUSTER), SL_EXIT_CLUSTER);
}

TEST(memory_is_a_resource) {
    sl_error error;
    assert_false(sl_error_memory(&error, "counting"));
    assert_int_equal(error.code, SL_EXIT_RESOURCES);
    assert_non_null(strstr(error.message, "out of memory while counting"));
}

TEST(a_missing_error_is_an_error) {
    sl_error error = {0};
    assert_false(sl_error_missing(&error, "a phase"));
    assert_int_equal(error.code, SL_EXIT_RESOURCES);
    assert_non_null(strstr(error.message, "a phase failed without a reason"));
    sl_error_set(&error, SL_EXIT_CLUSTER, "no server");
    assert_false(sl_error_missing(&error, "a phase"));
    assert_int_equal(error.code, SL_EXIT_CLUSTER);
    assert_string_equal(error.message, "no server");
}

TEST(a_worker_that_fails_in_silence_ends_the_run) {
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

TEST(an_existing_folder_is_no_error) {
    char folder[] = "/tmp/shardload-folder-XXXXXX";
    bool created = true;
    sl_error error = {0};
    assert_non_null(mkdtemp(folder));
    assert_true(sl_private_folder_make(folder, &created, &error));
    assert_false(created);
    assert_int_equal(error.code, SL_EXIT_OK);
    assert_string_equal(error.message, "");
    sl_private_folder_remove(folder);
    assert_true(sl_private_folder_make(folder, &created, &error));
    assert_true(created);
    sl_private_folder_remove(folder);
}
