/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload doctor`: options to the configuration of an examination. */
#include "commands.h"

#include "doctor/doctor.h"
#include "util/log.h"

#include "load_setup.h"

#define LIMIT_SECONDS 10 /* of each command, unless --timeout is given */

int sl_command_doctor(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_doctor_config config = {.load = &setup.config,
                               .limit_seconds = LIMIT_SECONDS,
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
    int code = error.code ? (int)error.code : (int)sl_doctor_run(&config);
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    sl_setup_clear(&setup);
    return code;
}
