/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload load`, `verify`, `inspect` and `doctor`: their options as a configuration. */
#include "commands.h"

#include "doctor/doctor.h"
#include "job/inspect.h"
#include "load/load.h"
#include "verify/verify.h"

#include "load_setup.h"

#define DOCTOR_SECONDS 10 /* the limit of each command, unless --timeout is given */

int sl_command_load(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    bool ok = sl_set_up_load(&setup, options, &error);
    return sl_setup_end(&setup, &error, ok ? sl_load_run(&setup.config) : SL_EXIT_USAGE);
}

int sl_command_verify(const sl_options *options, bson_t *record) {
    if (sl_option_given(options, "dump"))
        return sl_command_verify_dump(options);
    sl_setup setup;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    sl_options_refuse(options, "ns-include|ns-exclude|ns-from|ns-to", "is for --dump only", &error);
    if (sl_set_up_source(&setup, options, &error)) {
        sl_set_up_target(&setup, options, &error);
        sl_set_up_run(&setup, options);
        sl_set_up_embed(&setup, options, &error);
        sl_set_up_document_options(&setup, options);
    }
    if (!error.code)
        code = sl_verify_run(&setup.config, sl_option_flag(options, "content"),
                             sl_option_number(options, "max-problems"));
    return sl_setup_end(&setup, &error, code);
}

int sl_command_inspect(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_setup_init(&setup, options);
    sl_set_up_source(&setup, options, &error);
    if (!error.code)
        code = sl_inspect_run(&setup.config, (unsigned)sl_option_number(options, "documents"),
                              sl_option_string(options, "write-schema"));
    return sl_setup_end(&setup, &error, code);
}

int sl_command_doctor(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_doctor_config config = {.load = &setup.config,
                               .limit_seconds = DOCTOR_SECONDS,
                               .blocks = sl_option_number(options, "blocks"),
                               .json = sl_option_flag(options, "json"),
                               .write = sl_option_flag(options, "write")};
    if (sl_option_given(options, "timeout"))
        config.limit_seconds = (unsigned)sl_option_number(options, "timeout");
    if (sl_options_argument_count(options) > 0 || sl_option_given(options, "records"))
        sl_set_up_source(&setup, options, &error);
    if (config.write && !sl_option_given(options, "db"))
        sl_option_problem(&error, "--write needs --db: the database of the temporary collection");
    sl_set_up_examined(&setup, options, &error);
    if (!sl_option_is_word(options, "rate-limit", "unlimited"))
        setup.config.rate_limit = sl_option_number(options, "rate-limit");
    setup.config.timeout_seconds = config.limit_seconds;
    return sl_setup_end(&setup, &error, error.code ? SL_EXIT_USAGE : sl_doctor_run(&config));
}
