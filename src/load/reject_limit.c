/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that end because of their rejects: more than --max-rejects allows, or every record. */
#include "reject_limit.h"

#include <stdio.h>
#include <string.h>

/* Records from which on a percentage is checked while the load runs. */
#define SHARE_RECORDS_LEAST 100000u

typedef struct sl_rejected {
    uint64_t records, by_parser, by_server;
} sl_rejected;

/* The counts of all runs of the load, earlier ones included. */
static sl_rejected rejected_so_far(const sl_run *run, const sl_ledger *ledger) {
    sl_run_totals sum = sl_run_sum(run);
    return (sl_rejected){.records = ledger->recovered.counts.records + sum.records,
                         .by_parser = ledger->recovered.counts.rejects + sum.parser_rejects,
                         .by_server = ledger->recovered.server_rejects + sum.server_rejects};
}

char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]) {
    if (config->rejects_max_share < 1)
        snprintf(out, SL_REJECT_LIMIT_ROOM, "%g%%", 100 * config->rejects_max_share);
    else
        snprintf(out, SL_REJECT_LIMIT_ROOM, "%llu", (unsigned long long)config->rejects_max);
    return out;
}

bool sl_rejects_pass_limit(sl_run *run, const sl_ledger *ledger, bool at_end, sl_error *error) {
    const sl_load_config *config = run->job->config;
    sl_rejected sum = rejected_so_far(run, ledger);
    uint64_t rejects = sum.by_parser + sum.by_server;
    bool share = (at_end || sum.records >= SHARE_RECORDS_LEAST) && config->rejects_max_share < 1 &&
                 (double)rejects > config->rejects_max_share * (double)sum.records;
    if (rejects <= config->rejects_max && !share)
        return false;
    char limit[SL_REJECT_LIMIT_ROOM];
    atomic_store(&run->ended_by, SL_ENDED_BY_REJECT_LIMIT);
    sl_error_set(
        error, SL_EXIT_SOURCE,
        "%llu of %llu records rejected, more than --max-rejects %s allows; see the first ones "
        "above%s%s%s",
        (unsigned long long)rejects, (unsigned long long)sum.records,
        sl_reject_limit_text(config, limit),
        ledger->work_directory[0] ? ", and those of completed blocks in " : "",
        ledger->work_directory, ledger->work_directory[0] ? "/rejects.tsv" : "");
    return true;
}

bool sl_rejects_are_all(sl_run *run, const sl_ledger *ledger, const char *reasons,
                        sl_error *error) {
    sl_rejected sum = rejected_so_far(run, ledger);
    /* A part of a shared load may have only a few records, all rejected, while other parts have
     * valid records. */
    if (sum.records == 0 || sum.by_parser + sum.by_server < sum.records ||
        sl_load_is_shared(run->job->config))
        return false;
    atomic_store(&run->ended_by, SL_ENDED_ALL_REJECTED);
    sl_error_set(
        error, SL_EXIT_SOURCE, "all %llu records were rejected%s%s; nothing was loaded. %s%s%s",
        (unsigned long long)sum.records, *reasons ? ", the first ones because: " : "", reasons,
        sum.by_parser ? "Check --format, --schema, --encoding and --missing, for tables also "
                        "--skip-lines, --header and --ragged, and the output of `shardload "
                        "inspect` for the sources"
                      : "",
        sum.by_parser && sum.by_server ? ". " : "",
        sum.by_server ? "Check the collection's validator and unique indexes; where another "
                        "document has the _id, check --names and --schema of the earlier load, "
                        "or load with --drop or into another --collection"
                      : "");
    return true;
}
