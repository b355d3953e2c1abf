/* SPDX-License-Identifier: Apache-2.0 */
/* Members of archives: each is looked at by itself, as the files of a folder are, because the next
 * one may have its columns in another order, or be no data at all.
 *
 * The worker that gets a member's first block sniffs it and makes the result known; a worker that
 * gets a later block of the member waits for that. It does not wait for long, or in vain: blocks
 * are handed out in order, so the first one is in the hands of a worker already, and nothing but
 * the sniff lies between its getting the block and its making the result known. */
#include <stdlib.h>
#include <string.h>

#include <shardload/log.h>

#include "engine.h"

typedef struct sl_member {
    struct sl_member *next;
    const char *name;    /* the set's; the same pointer for all blocks of the member */
    sl_dialect *dialect; /* NULL: not recognised, left out */
} sl_member;

/* Sniffs a member by its first block. Left out, with a warning, when it is not of the source's
 * format or holds another kind of record. */
static bool sniff(const sl_load *load, const sl_load_source *source, const sl_source_block *block,
                  sl_dialect **result) {
    const sl_format *format = source->format;
    sl_error why = {0};
    sl_dialect *dialect = NULL;
    sl_text head = block->text;
    bool whole = head.length <= SL_SNIFF_BYTES;
    if (!whole)
        head.length = SL_SNIFF_BYTES;
    const char *path = sl_source_set_at(load->set, block->source)->shown;
    if (!format->sniff(sl_sources_plan_of(load, source), block->member, head, whole, &dialect,
                       &why)) {
        if (why.code != SL_EXIT_SOURCE) /* no memory: that says nothing of the member */
            return false;
        sl_log_warning("%s: %s: %s; left out", path, block->member, why.message);
    } else if (strcmp(format->record_kind(dialect), format->record_kind(source->dialect)) != 0) {
        sl_log_warning("%s: %s holds %s, not %s; left out", path, block->member,
                       format->record_kind(dialect), format->record_kind(source->dialect));
        format->dialect_destroy(dialect);
        dialect = NULL;
    }
    *result = dialect;
    return true;
}

static const sl_member *find(const sl_load_source *source, const char *name) {
    const sl_member *member = source->members;
    while (member && member->name != name)
        member = member->next;
    return member;
}

bool sl_sources_dialect(sl_load *load, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error) {
    sl_load_source *source = &load->sources[block->source];
    *dialect = source->dialect;
    if (!block->member)
        return true;
    const sl_member *known;
    if (block->member_start) {
        sl_member *made = calloc(1, sizeof *made);
        if (!made || !sniff(load, source, block, &made->dialect)) {
            free(made);
            pthread_mutex_lock(&load->members_lock);
            load->members_failed = true; /* nobody must wait for this member any more */
            pthread_cond_broadcast(&load->members_known);
            pthread_mutex_unlock(&load->members_lock);
            return sl_error_memory(error, "reading an archive");
        }
        made->name = block->member;
        pthread_mutex_lock(&load->members_lock);
        made->next = source->members;
        source->members = made;
        pthread_cond_broadcast(&load->members_known);
        pthread_mutex_unlock(&load->members_lock);
        known = made;
    } else {
        pthread_mutex_lock(&load->members_lock);
        while (!(known = find(source, block->member)) && !load->members_failed)
            pthread_cond_wait(&load->members_known, &load->members_lock);
        pthread_mutex_unlock(&load->members_lock);
    }
    if (!known)
        return sl_error_memory(error, "reading an archive");
    *dialect = known->dialect;
    return true;
}

void sl_members_clear(const sl_load_source *source) {
    for (sl_member *member = source->members; member;) {
        sl_member *next = member->next;
        source->format->dialect_destroy(member->dialect);
        free(member);
        member = next;
    }
}
