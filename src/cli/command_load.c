/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload load`, `shardload verify` and `shardload inspect`: turns their
 * options into a configuration. */
#include "commands.h"

#include "job/inspect.h"
#include "load/load.h"
#include "util/log.h"
#include "verify/verify.h"

#include "load_setup.h"

int sl_command_load(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    int code;
    if (sl_set_up_load(&setup, options, &error)) {
        code = sl_load_run(&setup.config);
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_setup_clear(&setup);
    return code;
}

int sl_command_verify(const sl_options *options, bson_t *record) {
    if (sl_option_given(options, "dump"))
        return sl_command_verify_dump(options);
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    static const char *const for_dumps[] = {"ns-include", "ns-exclude", "ns-from", "ns-to"};
    for (size_t i = 0; i < sizeof for_dumps / sizeof for_dumps[0]; i++) {
        if (sl_option_given(options, for_dumps[i]))
            sl_option_problem(&error, "--%s is for --dump only", for_dumps[i]);
    }
    if (sl_set_up_source(&setup, options, &error)) {
        sl_set_up_target(&setup, options, &error);
        sl_set_up_run(&setup, options);
        sl_set_up_embed(&setup, options, &error);
    }
    int code = error.code;
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    else
        code = sl_verify_run(&setup.config, sl_option_flag(options, "content"),
                             sl_option_number(options, "max-problems"));
    sl_setup_clear(&setup);
    return code;
}

int sl_command_inspect(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    int code;
    if (sl_set_up_source(&setup, options, &error) && !error.code) {
        code = sl_inspect_run(&setup.config, (unsigned)sl_option_number(options, "documents"),
                              sl_option_string(options, "write-schema"));
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_setup_clear(&setup);
    return code;
}
