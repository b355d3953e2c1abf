/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <stdlib.h>

#include "embed.h"
#include "sources.h"

void sl_job_init(sl_job *job, const sl_load_config *config) {
    *job =
        (sl_job){.config = config, .shards = 1, .hashed_id = BCON_NEW("_id", BCON_UTF8("hashed"))};
    pthread_mutex_init(&job->entries_lock, NULL);
    pthread_cond_init(&job->entries_known, NULL);
    sl_not_loaded_init(&job->not_loaded);
}

void sl_job_clear(sl_job *job) {
    sl_sources_close(job);
    sl_embed_destroy(job->embed);
    bson_destroy(job->hashed_id);
    free(job->own_shards);
    free(job->ranges);
    pthread_mutex_destroy(&job->entries_lock);
    pthread_cond_destroy(&job->entries_known);
    sl_not_loaded_clear(&job->not_loaded);
}

size_t sl_job_range_of(const sl_job *job, int64_t id) {
    size_t low = 0, high = job->range_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->ranges[middle].minimum <= id)
            low = middle;
        else
            high = middle;
    }
    return low;
}
