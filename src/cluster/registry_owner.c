/* SPDX-License-Identifier: Apache-2.0 */
/* The collection that a registry belongs to.
 *
 * It belongs to the collection whose UUID its counter has. If that collection was renamed, a load
 * into it is refused until the user has renamed the registry, too; other commands read it under its
 * old name. A load into an empty collection of the old name takes the registry, with a warning. No
 * command renames or replaces a registry: two loaders at once could take away each other's. If no
 * collection has this UUID any more, the collection was dropped, and another one may have its name;
 * or it was restored, resharded or copied (convertToCapped, movePrimary), which keeps the
 * documents. The target's documents decide: if _ids have numbers of the registry, and there are not
 * fewer documents than the registry lists, it is the same collection. If there are fewer, or if the
 * listed sources have _ids that are no positions, the user decides (--again). Otherwise the
 * registry reads as empty, and the next load removes its sources.
 *
 * Each loader of a load settles the registry before it registers a source. Each source has the UUID
 * too, so that a slower loader does not remove the sources of a faster one. */
#include "registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/text.h"

#define REGISTRIES_MOST 1000u /* that are searched for a collection's */

typedef struct claims {
    bool any;                    /* there is a registry */
    uint32_t last;               /* its last number */
    uint64_t stored, registered; /* documents, if they were counted */
    char owner[SL_UUID_ROOM];    /* of the collection that it belongs to; "": not recorded */
    char name[256];              /* the owner's name, if it is not the target's; "" */
    bool taken;                  /* the registry of that name belongs to a third collection */
    char left[SL_UUID_ROOM];     /* or to this one, which no longer exists; "" */
    char other[256];             /* the registry of the target, under another name; "" */
    uint32_t other_last;         /* its last number */
} claims;

/* Reads from a registry to which collection it belongs. */
static bool read_owner(const sl_registry *registry, const char *name, bool *any, uint32_t *last,
                       char owner[SL_UUID_ROOM], sl_error *error) {
    bson_t counter;
    bool ok = sl_find_by_id(registry->connection, registry->database, name, "counter", &counter,
                            any, error);
    *last = (uint32_t)sl_look_int64(&counter, "last", 0);
    snprintf(owner, SL_UUID_ROOM, "%s", sl_look_string(&counter, "collection"));
    bson_destroy(&counter);
    return ok;
}

/* The name of the collection with this UUID; NULL: there is none. */
static const char *name_of(const bson_t *collections, const char *uuid) {
    char found[SL_UUID_ROOM];
    bson_iter_t at;
    for (sl_walk walk = sl_walk_start(collections, "cursor.firstBatch"); sl_walk_next(&walk);) {
        if (sl_look_find(&walk.item, "info.uuid", &at)) {
            sl_uuid_of(&at, found);
            if (strcmp(found, uuid) == 0)
                return sl_look_string(&walk.item, "name");
        }
    }
    return NULL;
}

/* Finds the names of the registry's collection and of the collection's registry. */
static bool find_names(const sl_registry *registry, claims *c, sl_error *error) {
    bson_t reply;
    char owner[SL_UUID_ROOM], theirs[SL_NAMESPACE_ROOM];
    uint32_t last, looked = 0;
    sl_error why;
    bool any, copy = false;
    bson_t *list =
        BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "type", "collection", "}");
    bool ok = sl_cluster_run(registry->connection, registry->database, list, &reply, NULL, error);
    const char *now = ok && c->owner[0] ? name_of(&reply, c->owner) : NULL;
    if (now && strcmp(now, registry->target) != 0)
        snprintf(c->name, sizeof c->name, "%s", now);
    snprintf(theirs, sizeof theirs, "%s" SL_REGISTRY_SUFFIX, c->name);
    for (sl_walk walk = sl_walk_start(&reply, "cursor.firstBatch"); ok && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "name");
        if (!sl_is_registry_name(name) || strcmp(name, registry->collection) == 0 ||
            looked++ >= REGISTRIES_MOST || !read_owner(registry, name, &any, &last, owner, &why))
            continue; /* perhaps this user may not read it */
        if (strcmp(name, theirs) == 0) {
            copy = strcmp(owner, c->owner) == 0; /* both collections have a registry */
            c->taken = !owner[0] || name_of(&reply, owner);
            snprintf(c->left, sizeof c->left, "%s", c->taken ? "" : owner);
        }
        if (registry->uuid[0] && strcmp(owner, registry->uuid) == 0) {
            snprintf(c->other, sizeof c->other, "%s", name);
            c->other_last = last;
        }
    }
    if (copy)
        c->name[0] = '\0';
    bson_destroy(&reply);
    return ok;
}

/* The user gives a registry the name of its collection: `from` becomes `to`. */
static bool refuse_name(const sl_registry *registry, const claims *c, const char *from,
                        const char *to, sl_error *error) {
    const char *database = registry->database;
    const bool theirs = c->name[0], replaced = theirs ? c->left[0] : c->any;
    char copied[2 * SL_MONGOSH_ROOM] = "", before[SL_NAMESPACE_ROOM], after[SL_NAMESPACE_ROOM];
    snprintf(before, sizeof before, "%s.%s", database, from);
    snprintf(after, sizeof after, "%s.%s", database, to);
    if (theirs ? c->taken : c->any && !c->owner[0])
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the registry %s.%s lists the sources of %s.%s, which was renamed, and "
                            "%s.%s may belong to another collection: rename both "
                            "(renameCollection in mongosh), so that each has the name of its "
                            "collection, or remove one that is not needed",
                            database, from, database, theirs ? c->name : registry->target, database,
                            to);
    if (theirs)
        snprintf(copied, sizeof copied,
                 ". If %s.%s has the same documents, as a copy or restored, copy the registry "
                 "instead: %s.aggregate([{$out: %s}])",
                 database, registry->target, sl_mongosh_collection(database, from),
                 sl_mongosh_string(to));
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the registry %s.%s lists the sources of %s.%s, which was renamed: rename "
                        "it, too (mongosh), and give the same command again: db.adminCommand("
                        "{renameCollection: %s, to: %s%s})%s",
                        database, from, database, theirs ? c->name : registry->target,
                        sl_mongosh_string(before), sl_mongosh_string(after),
                        replaced ? ", dropTarget: true" : "", copied);
}

/* Has the collection the documents of the registered sources? `*doubt`: it has documents, but their
 * _ids are no positions, or they are too few. */
static bool find_documents(sl_registry *registry, claims *c, bool counts, bool *found, bool *doubt,
                           sl_error *error) {
    const sl_target target = {.database = registry->database, .collection = registry->target};
    bson_t documents;
    bool empty = false;
    *doubt = false;
    if (!sl_registry_uses_numbers(registry, c->last, c->last, found, error))
        return false;
    bson_t *filter = BCON_NEW("number", "{", "$exists", BCON_BOOL(true), "}", "inRange", BCON_NULL,
                              "$or", "[", "{", "documents", "{", "$gt", BCON_INT64(0), "}", "}",
                              "{", "state", "started", "}", "]");
    bool ok =
        sl_registry_find(registry, filter, BCON_NEW("limit", BCON_INT64(1)), &documents, error) &&
        sl_collection_is_empty(registry->connection, &target, &empty, error);
    *doubt = ok && !*found && !empty && !bson_empty(&documents);
    bson_destroy(&documents);
    bson_destroy(filter);
    if (ok && *found && counts) {
        const bson_t all = BSON_INITIALIZER;
        bool complete;
        ok = sl_count_matching(registry->connection, &target, &all, &c->stored, error) &&
             sl_registry_total(registry, NULL, false, &c->registered, &complete, error);
        *doubt = ok && c->stored < c->registered; /* documents are missing */
        *found = !*doubt;
    }
    return ok;
}

/* Changes or removes the sources that have another UUID. */
static bool change_sources(sl_registry *registry, bool keep, sl_error *error) {
    bson_t command, list, item;
    int64_t matched;
    sl_registry_begin_write(registry, keep ? "update" : "delete", keep ? "updates" : "deletes",
                            &command, &list);
    BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &item);
    BCON_APPEND(&item, "q", "{", "number", "{", "$exists", BCON_BOOL(true), "}", "collection", "{",
                "$ne", BCON_UTF8(registry->uuid), "}", "}");
    if (keep)
        BCON_APPEND(&item, "u", "{", "$set", "{", "collection", BCON_UTF8(registry->uuid), "}", "}",
                    "multi", BCON_BOOL(true));
    else
        BCON_APPEND(&item, "limit", BCON_INT32(0));
    bson_append_document_end(&list, &item);
    return sl_registry_run_write(registry, &command, &list, 1, &matched, NULL, error);
}

/* Makes the registry that of the collection: with its sources, or without them. `created`: the
 * collection is new. What others have set up in one that existed is theirs. */
static bool take_over(sl_registry *registry, bool any, bool keep, bool created, sl_error *error) {
    if ((any && !change_sources(registry, keep, error)) ||
        !sl_registry_make_counter(registry, error))
        return false;
    bson_t *query =
        BCON_NEW("_id", "counter", "collection", "{", "$ne", BCON_UTF8(registry->uuid), "}");
    bson_t *update =
        keep ? BCON_NEW("$set", "{", "collection", BCON_UTF8(registry->uuid), "}")
             : BCON_NEW("$set", "{", "collection", BCON_UTF8(registry->uuid), "last", BCON_INT64(0),
                        SL_REGISTRY_EXISTED, BCON_BOOL(!created), "}", "$unset", "{",
                        SL_REGISTRY_COLUMNS, "", SL_REGISTRY_IDS, "", "begun", "", "}");
    return sl_registry_change_counter(registry, query, update, false, NULL, error);
}

static bool refuse_doubt(const sl_registry *registry, const claims *c, sl_error *error) {
    char fewer[200] = "";
    if (c->registered > 0)
        snprintf(fewer, sizeof fewer,
                 " It holds %" PRIu64 " documents, and their loads have stored %" PRIu64
                 ": `shardload verify` then shows which sources --again must complete.",
                 c->stored, c->registered);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s has another UUID than the collection whose sources its registry %s.%s lists. If it "
        "holds their documents, because it was restored, resharded or moved, give --again once.%s "
        "If another program has dropped it and made it anew, remove the registry with `shardload "
        "forget`",
        registry->database, registry->target, registry->database, registry->collection, fewer);
}

/* The registry of a collection that was replaced under the name that the collection of this one has
 * now: it must not be taken for that of its successor, which has the same numbers. */
static bool empty_left(const sl_registry *registry, const claims *c, const char *name,
                       sl_error *error) {
    bool found;
    bson_t *query = BCON_NEW("_id", "counter", "collection", BCON_UTF8(c->left));
    bson_t *update = BCON_NEW("$set", "{", "last", BCON_INT64(0), "}");
    bool ok = sl_find_and_modify(registry->connection, registry->database, name, query, update,
                                 false, NULL, &found, error);
    bson_destroy(query);
    bson_destroy(update);
    return ok;
}

/* The registry stays as it is, or is read under its other name, until documents are loaded. */
static bool settle_read(sl_registry *registry, const claims *c, bool documents, bool warns) {
    if (c->other[0]) {
        char *name = strdup(c->other);
        free(name ? registry->collection : NULL);
        registry->collection = name ? name : registry->collection;
        registry->gone = !name;
        return true;
    }
    registry->gone = c->any && !documents;
    if (registry->gone && warns && c->name[0])
        sl_log_warning("the registry %s.%s lists the sources of %s.%s, which had this name",
                       registry->database, registry->collection, registry->database, c->name);
    else if (registry->gone && warns && c->last > 0)
        sl_log_warning("%s.%s %s: the documents of the sources that its registry %s.%s lists no "
                       "longer exist",
                       registry->database, registry->target,
                       registry->uuid[0] ? "is another collection than before (by its UUID)"
                                         : "does not exist any more",
                       registry->database, registry->collection);
    return true;
}

/* The collection that the registry belongs to was renamed, and the target has its old name. An
 * empty target takes the registry: each night a collection may be loaded, and then renamed.
 * `*done`: another loader has taken it meanwhile. */
static bool take_name(const sl_registry *registry, const sl_target *target, sl_settling how,
                      bool first, claims *c, bool *done, sl_error *error) {
    char followed[SL_NAMESPACE_ROOM];
    bool empty = how == SL_SETTLE_DROP;
    snprintf(followed, sizeof followed, "%s" SL_REGISTRY_SUFFIX, c->name);
    if (!empty && !c->other[0] &&
        !sl_collection_is_empty(registry->connection, target, &empty, error))
        return false;
    if (!empty && !read_owner(registry, registry->collection, &c->any, &c->last, c->owner, error))
        return false;
    *done = !empty && strcmp(c->owner, registry->uuid) == 0;
    if (*done)
        return true;
    if (c->other[0] || !empty || how == SL_SETTLE_FORGET)
        return refuse_name(registry, c, registry->collection, followed, error);
    if (first)
        sl_log_warning("the registry %s.%s lists the sources of %s.%s, which had this name: it "
                       "becomes that of the new collection. Rename it beforehand to %s%s if later "
                       "loads into %s shall know their sources",
                       registry->database, registry->collection, registry->database, c->name,
                       followed, c->left[0] ? ", with dropTarget," : "", c->name);
    return how != SL_SETTLE_WRITE || !c->left[0] || empty_left(registry, c, followed, error);
}

/* The registry of the target has another name. It is left there, unless the _ids of its sources are
 * positions: then its numbers would be given a second time. */
static bool leave_other(const sl_registry *registry, sl_settling how, bool first, claims *c,
                        sl_error *error) {
    bool used = how == SL_SETTLE_FORGET;
    if (!used && how != SL_SETTLE_DROP && c->other_last > 0 &&
        !sl_registry_uses_numbers(registry, c->other_last, c->other_last, &used, error))
        return false;
    if (used)
        return refuse_name(registry, c, c->other, registry->collection, error);
    if (first)
        sl_log_warning("the registry %s.%s lists the sources of %s.%s, which was renamed: they are "
                       "not known here",
                       registry->database, c->other, registry->database, registry->target);
    c->other[0] = '\0';
    return true;
}

bool sl_registry_settle(sl_registry *registry, const sl_target *target, sl_settling how, bool again,
                        sl_error *error) {
    claims c = {.any = false};
    char own[SL_NAMESPACE_ROOM];
    bool found = false, doubt = false, anew = false;
    const bool first = !registry->gone; /* warnings are given once */
    const bool created = how == SL_SETTLE_CREATED;
    how = created ? SL_SETTLE_WRITE : how;
    bool warns = first && how != SL_SETTLE_DROP;
    sl_error why;
    if (registry->none)
        return true;
    free(registry->collection);
    registry->collection = strdup(sl_target_registry(target, own));
    registry->gone = false;
    if (!registry->collection)
        return sl_error_memory(error, "reading the registry");
    if (how == SL_SETTLE_READ &&
        !sl_target_uuid(registry->connection, target, registry->uuid, &why))
        return true; /* the user may not list collections */
    if ((how != SL_SETTLE_READ &&
         !sl_target_uuid(registry->connection, target, registry->uuid, error)) ||
        !read_owner(registry, own, &c.any, &c.last, c.owner, error))
        return false;
    const char *uuid = registry->uuid;
    if ((!uuid[0] && !c.any) || (uuid[0] && strcmp(c.owner, uuid) == 0))
        return true;
    if ((c.any || how != SL_SETTLE_WRITE) && !find_names(registry, &c, error))
        return false;
    bool done = false;
    if (how != SL_SETTLE_READ && c.name[0]) {
        if (!take_name(registry, target, how, first, &c, &done, error) || done)
            return done;
        warns = false;
    } else if (how != SL_SETTLE_READ && c.other[0]) {
        if (!leave_other(registry, how, first, &c, error))
            return false;
        warns = false, anew = true;
    }
    if (!anew && uuid[0] && c.any && !c.name[0] && !c.other[0] && c.last > 0 &&
        !find_documents(registry, &c, how != SL_SETTLE_DROP, &found, &doubt, error))
        return false;
    if (doubt && c.owner[0] && how != SL_SETTLE_READ && !again) {
        if (how != SL_SETTLE_DROP)
            return refuse_doubt(registry, &c, error);
        doubt = false;
    }
    return how == SL_SETTLE_WRITE ? take_over(registry, c.any, found || doubt, created, error)
                                  : settle_read(registry, &c, found || doubt, warns);
}

bool sl_registry_open_settled(sl_connection *connection, const sl_target *target, sl_settling how,
                              bool again, sl_registry **registry, sl_error *error) {
    return (*registry || sl_registry_open(connection, target, registry, error)) &&
           sl_registry_settle(*registry, target, how, again, error);
}
