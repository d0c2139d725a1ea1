/* Containers of the catalogue: made, replaced, dropped, opened.
 *
 * Making one decides everything first (definition, offer, how many partitions), then makes the
 * partitions, then commits the record: the one moment from which it exists. */
#include "catalogue/catalogue_private.h"
#include "catalogue/container_usage.h"
#include "catalogue/placed.h"
#include "catalogue/resident.h"
#include "catalogue/shares.h"
#include "catalogue/spread.h"
#include "catalogue/withheld.h"
#include "document/order.h"
#include "partition/lookup.h"

static bool is_given(const struct offer_request *request)
{
    return request && (request->given || request->autoscale_given);
}

static uint32_t sharing_count(const struct database *database)
{
    uint32_t count = 0;

    for (size_t i = 0; i < database->state.child_count; i++)
        count += !catalogue_state_container(database->state.children[i])->has_offer;
    return count;
}

/* Its own offer, or its part in the database's. */
static bool offer_decide(const struct definition_limits *limits, const struct database *database,
                         const struct definition *definition, const struct offer_request *request,
                         struct container *container, struct error *err)
{
    struct offer_subject subject = {.fixed = definition_fields(definition)->key.system_key};

    if (!database->has_offer || is_given(request))
        return offer_new(limits, &subject, request, &container->offer, &container->has_offer, err);
    if (request && request->ru_per_minute)
        return error_set(err, ERROR_BAD_REQUEST,
                         "RU per minute is an addition to throughput of the container's own");
    if (sharing_count(database) >= limits->shared_containers_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "the throughput of database \"%.*s\" is shared by %u containers, as many "
                         "as may be: give the container throughput of its own",
                         SLICE_ARG(database->state.info.id), limits->shared_containers_max);
    container->offer = database->offer;
    return true;
}

static bool directory_check(const struct definition_limits *limits,
                            const struct partition_definition *key, struct error *err)
{
    if (key->lookup && key->lookup->line_count > limits->directory_lines_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "a directory of %zu lines is over the limit of %u",
                         key->lookup->line_count, limits->directory_lines_max);
    return true;
}

/* As many as the throughput needs, or as its creator's bounds make. */
static bool partitions_decide(const struct definition_limits *limits,
                              const struct container *container, uint32_t *ret_count,
                              struct error *err)
{
    const struct partition_definition *key = &definition_fields(container->definition)->key;
    uint32_t count =
        container_is_fixed(container) ? 1 : offer_partitions_initial(limits, &container->offer);

    if (key->bound_count + 1 > limits->container_partitions_max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "%zu bounds make %zu physical partitions; the limit is %u",
                         key->bound_count, key->bound_count + 1, limits->container_partitions_max);
    if (count > limits->container_partitions_max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "throughput of %llu RU/s needs %u physical partitions; the limit is %u",
                         (unsigned long long)container->offer.ru, count,
                         limits->container_partitions_max);
    *ret_count = MAX(count, (uint32_t)key->bound_count + 1);
    return directory_check(limits, key, err);
}

/* All that can be refused before anything is written. */
static bool container_prepare(struct catalogue_change *change, const struct catalogue_found *found,
                              struct definition *definition, const struct offer_request *request,
                              struct catalogue_state **ret_state, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct catalogue *catalogue = change->catalogue;
    struct slice id = definition_fields(definition)->id;
    struct container *container;
    uint32_t number, count = 0;

    if (!catalogue_id_check(&catalogue->limits, id, err) ||
        !catalogue_name_free(&found->database->state, "container", id, err) ||
        !catalogue_resident_lets_create(definition, err) ||
        !account_room(&catalogue->limits, found->account, err) ||
        !account_bytes_room(&catalogue->limits, found->account, 0,
                            definition_fields(definition)->document.len, err) ||
        !catalogue_number_take(&catalogue->head.next_container, (1u << RID_OWNER_BITS) - 1,
                               "containers", &number, err))
        return false;
    state = catalogue_state_new(STATE_CONTAINER, id, number);
    container = catalogue_state_container(state);
    container->account = found->account->state.info.number;
    container->database = found->database->state.info.number;
    container->database_name = arena_copy(state->arena, found->database->state.info.id);
    container->policy_version = 1;
    container->writers = 1;
    container->definition = definition_ref(definition);
    container->catalogue = catalogue;
    if (!offer_decide(&catalogue->limits, found->database, definition, request, container, err) ||
        !container_throughput_check(&catalogue->limits, definition, NULL, &container->offer, err) ||
        !partitions_decide(&catalogue->limits, container, &count, err))
        return false;
    if (container->has_offer) {
        container->offer.number = catalogue_offer_number_take(&catalogue->head, found->account);
        container->offer.database = container->database;
        container->offer.container = number;
    }
    if (!catalogue_partitions_make(catalogue, definition, count, &container->map, err))
        return false;
    *ret_state = TAKE(state);
    return true;
}

/* --- Copies: what migration.c publishes ------------------------------------------------------ */

static struct catalogue_found parents_of(const struct catalogue_change *change,
                                         const struct container *container)
{
    struct catalogue_state *account = catalogue_state_find_number(change->root, container->account);
    struct catalogue_state *database = catalogue_state_find_number(account, container->database);

    return (struct catalogue_found){.account = catalogue_state_account(account),
                                    .database = catalogue_state_database(database)};
}

bool catalogue_container_copy_check(const struct catalogue_change *change,
                                    const struct container *of, struct slice id, struct error *err)
{
    const struct definition_limits *limits = &change->catalogue->limits;
    const struct catalogue_found found = parents_of(change, of);

    if (definition_fields(of->definition)->view.form != DEFINITION_VIEW_NONE)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "container \"%.*s\" is a view, which follows from its sources, and cannot "
                         "be copied",
                         SLICE_ARG(of->state.info.id));
    if (of->promotions.count)
        return error_set(
            err, ERROR_PROMOTION_UNFIT,
            "container \"%.*s\" is tied to another by a promotion and cannot be copied",
            SLICE_ARG(of->state.info.id));
    if (!of->has_offer && sharing_count(found.database) >= limits->shared_containers_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "the throughput of database \"%.*s\" is shared by %u containers, as many "
                         "as may be",
                         SLICE_ARG(found.database->state.info.id), limits->shared_containers_max);
    return catalogue_id_check(limits, id, err) &&
           catalogue_name_free(&found.database->state, "container", id, err) &&
           account_room(limits, found.account, err) &&
           account_bytes_room(limits, found.account, 0,
                              definition_fields(of->definition)->document.len, err);
}

bool catalogue_container_copy(struct catalogue_change *change, const struct container *of,
                              struct slice id, struct partition_map *map,
                              struct container **ret_copy, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct catalogue *catalogue = change->catalogue;
    const struct catalogue_found found = parents_of(change, of);
    struct container *copy;
    uint32_t number;

    if (!catalogue_container_copy_check(change, of, id, err) ||
        !definition_renamed(of->definition, id, &definition, err) ||
        !catalogue_number_take(&catalogue->head.next_container, (1u << RID_OWNER_BITS) - 1,
                               "containers", &number, err))
        return false;
    copy = catalogue_state_container(catalogue_state_new(STATE_CONTAINER, id, number));
    copy->account = of->account;
    copy->database = of->database;
    copy->database_name = arena_copy(copy->state.arena, found.database->state.info.id);
    copy->policy_version = of->policy_version;
    copy->writers = of->writers;
    copy->definition = TAKE(definition);
    for (uint32_t i = 0; i < of->before_count; i++)
        copy->before[copy->before_count++] = definition_ref(of->before[i]);
    copy->catalogue = catalogue;
    copy->map = partition_map_ref(map);
    copy->has_offer = of->has_offer;
    copy->offer = of->offer;
    if (copy->has_offer) {
        copy->offer.number = catalogue_offer_number_take(&catalogue->head, found.account);
        copy->offer.container = number;
    }
    catalogue_change_tell(change, HISTORY_CREATE, copy, SLICE_NONE);
    catalogue_change_put_record(change, container_address(copy),
                                catalogue_record_container_write(copy, false, change->arena));
    if (copy->has_offer)
        catalogue_change_put_offer(change, container_address(copy), &copy->offer);
    *ret_copy = copy;
    return true;
}

void catalogue_container_copy_stamp(const struct catalogue_change *change, struct container *copy)
{
    const struct commit_stamp *stamp = &change->part.stamp;

    catalogue_state_stamp(&copy->state, container_rid(copy), stamp->lsn, stamp->wall_ms);
    if (copy->has_offer)
        catalogue_offer_stamp(&copy->offer, stamp->lsn, stamp->wall_ms);
}

struct catalogue_record_address container_address(const struct container *container)
{
    return (struct catalogue_record_address){.kind = RECORD_CONTAINER,
                                             .account = container->account,
                                             .database = container->database,
                                             .container = container->state.info.number};
}

/* Commits the record of a new state, and of its offer if that is new too. */
static bool container_commit_state(struct catalogue_change *change, struct container *container,
                                   bool with_offer, struct error *err)
{
    const struct commit_stamp *stamp = &change->part.stamp;

    catalogue_change_put_record(change, container_address(container),
                                catalogue_record_container_write(container, false, change->arena));
    if (with_offer)
        catalogue_change_put_offer(change, container_address(container), &container->offer);
    if (!catalogue_change_commit(change, err))
        return false;
    catalogue_state_stamp(&container->state, container_rid(container), stamp->lsn, stamp->wall_ms);
    if (with_offer)
        catalogue_offer_stamp(&container->offer, stamp->lsn, stamp->wall_ms);
    return true;
}

static bool container_create(struct catalogue_change *change, const struct catalogue_found *found,
                             struct definition *definition, const struct offer_request *request,
                             struct container **ret_container, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct container *container;

    if (!container_prepare(change, found, definition, request, &state, err))
        return false;
    container = catalogue_state_container(state);
    catalogue_change_tell(change, HISTORY_CREATE, container, SLICE_NONE);
    if (!container_commit_state(change, container, container->has_offer, err)) {
        /* If the outcome is not known, loading again tells whose the partitions are. */
        if (!change->catalogue->in_doubt)
            catalogue_partitions_unmake(change->catalogue, container->map);
        return false;
    }
    *ret_container = container_ref(container);
    catalogue_change_publish(change, container_address(container), TAKE(state));
    return true;
}

/* *ret_again: a source is followed no more, for another view of it was dropped just now. */
static bool view_try(struct catalogue *catalogue, struct slice account, struct slice database,
                     struct definition *definition, const struct offer_request *request,
                     struct container **ret_container, bool *ret_again, struct error *err)
{
    CLEANUP(definition_unref) struct definition *complete = NULL;
    struct catalogue_found found;
    bool followed;

    *ret_again = false;
    if (!catalogue_view_follow(catalogue, account, database, definition, err))
        return false;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_database(change.root, account, database, true, &found, err) ||
        !catalogue_view_complete(&found, definition, change.arena, &complete, &followed, err))
        return false;
    *ret_again = !followed;
    return followed && container_create(&change, &found, complete, request, ret_container, err);
}

enum { VIEW_TRIES = 5 };

static bool view_create(struct catalogue *catalogue, struct slice account, struct slice database,
                        struct definition *definition, const struct offer_request *request,
                        struct container **ret_container, struct error *err)
{
    bool again = true;

    for (int i = 0; i < VIEW_TRIES && again; i++)
        if (view_try(catalogue, account, database, definition, request, ret_container, &again, err))
            return true;
    return !again ? false
                  : error_set(err, ERROR_BUSY, "views of the same source come and go: try again");
}

static bool body_check(const struct definition_limits *limits, struct slice body, struct error *err)
{
    if (body.len > limits->definition_bytes_max)
        return error_set(err, ERROR_TOO_LARGE,
                         "container definition of %zu bytes is over the limit of %u", body.len,
                         limits->definition_bytes_max);
    return true;
}

bool catalogue_container_create(struct catalogue *catalogue, struct slice account,
                                struct slice database, struct slice body,
                                const struct offer_request *request,
                                struct container **ret_container, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct catalogue_found found;

    if (!body_check(&catalogue->limits, body, err) ||
        !definition_new(definition_fresh(body, arena), NULL, &definition, err))
        return false;
    if (definition_fields(definition)->key.formerly)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.formerly is set by a re-key: a new container has no key before");
    if (definition_fields(definition)->view.form)
        return view_create(catalogue, account, database, definition, request, ret_container, err);

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    return catalogue_change_begin(catalogue, &change, err) &&
           catalogue_find_database(change.root, account, database, true, &found, err) &&
           container_create(&change, &found, definition, request, ret_container, err);
}

/* Do items that are stored have other entries from now on? */
static bool entries_differ(const struct definition_fields *a, const struct definition_fields *b)
{
    struct document_value policy_a = document_undefined(), policy_b = document_undefined();
    struct document_value texts_a = document_undefined(), texts_b = document_undefined();

    (void)document_find(a->document, SLICE("indexingPolicy"), &policy_a);
    (void)document_find(b->document, SLICE("indexingPolicy"), &policy_b);
    (void)document_find(a->document, SLICE("fullTextPolicy"), &texts_a);
    (void)document_find(b->document, SLICE("fullTextPolicy"), &texts_b);
    return (a->default_ttl > 0) != (b->default_ttl > 0) || a->cells != b->cells ||
           a->terms != b->terms ||
           (a->terms && document_compare(DOCUMENT_ORDER_SQL, &texts_a, &texts_b) != 0) ||
           document_compare(DOCUMENT_ORDER_SQL, &policy_a, &policy_b) != 0 ||
           !definition_indexes_same(a, b);
}

static bool policy_advance(struct container *container, struct definition *definition,
                           uint32_t before_max, struct error *err)
{
    if (!entries_differ(definition_fields(container->definition), definition_fields(definition)))
        return true;
    if (container->before_count >= before_max)
        return error_set(err, ERROR_BUSY,
                         "the index of container \"%.*s\" is still being remade for %u earlier "
                         "policies: try again later",
                         SLICE_ARG(container->state.info.id), before_max);
    container->before[container->before_count++] = definition_ref(container->definition);
    container->policy_version++;
    container->writers++;
    return true;
}

void catalogue_index_numbers(const struct container *container, bool ret_taken[INDEX_NUMBERS])
{
    memset(ret_taken, 0, INDEX_NUMBERS * sizeof *ret_taken);
    for (uint32_t i = 0; i < container->before_count; i++) {
        const struct definition_fields *before = definition_fields(container->before[i]);

        for (size_t n = 0; n < before->index_count; n++)
            ret_taken[before->indexes[n]->number] = true;
    }
}

/* From now on the partitions are written by this version. One that is not open, for its node is
 * away, has no writers. Under change_lock, so that no other change says otherwise. */
static void partitions_require(const struct container *container, uint32_t writers)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);
    struct error unused;

    for (size_t i = 0; i < count; i++) {
        bool open = commit_partition_require(container_commit(container, spans[i].node),
                                             spans[i].id, writers, &unused);

        (void)open;
    }
}

static bool container_publish(struct catalogue_change *change, struct catalogue_state *state,
                              struct error *err)
{
    struct container *container = catalogue_state_container(state);

    if (!container_commit_state(change, container, false, err))
        return false;
    catalogue_change_publish(change, container_address(container), catalogue_state_ref(state));
    return true;
}

/* A writer by the definition before does not know what entries an item has that was written by the
 * next one. So all of them are refused before anybody can know of the next, and wait for it
 * (container_renew). sound: looks, when nobody writes, if it may be published; NULL: it may. */
static bool container_publish_fenced(struct catalogue_change *change, struct container *before,
                                     struct catalogue_state *state,
                                     bool (*sound)(struct container *before, struct error *err),
                                     struct error *err)
{
    struct catalogue *catalogue = change->catalogue;
    const struct container *container = catalogue_state_container(state);
    bool fine;

    if (container->writers == before->writers)
        return container_publish(change, state, err);
    atomic_fetch_add(&catalogue->redefining, 1);
    partitions_require(before, container->writers);
    fine = (!sound || sound(before, err)) && container_publish(change, state, err);
    if (!fine)
        partitions_require(before, before->writers);
    atomic_fetch_sub(&catalogue->redefining, 1);
    WITH_LOCK (&catalogue->published_lock)
        condition_broadcast(&catalogue->published); /* also if there is nothing new to see */
    return fine;
}

/* What becomes a reference container must be small already. */
static bool reference_check(const struct container *container, const struct definition *definition,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    uint64_t max = container_limits(container)->reference_bytes_max;
    struct container_usage usage;

    if (!definition_fields(definition)->reference ||
        definition_fields(container->definition)->reference)
        return true;
    arena = arena_new();
    return container_usage_all(container, arena, &usage, err) &&
           (usage.bytes <= max ||
            error_set(err, ERROR_REFERENCE_FULL,
                      "container \"%.*s\" holds %llu bytes; a reference container holds at most "
                      "%llu (reference.bytes_max)",
                      (int)MIN(container->state.info.id.len, (size_t)64),
                      (const char *)container->state.info.id.data, (unsigned long long)usage.bytes,
                      (unsigned long long)max));
}

bool catalogue_container_redefine(struct catalogue_change *change,
                                  const struct catalogue_found *found,
                                  struct definition *definition, uint32_t before_max,
                                  struct container **ret_container, struct error *err)
{
    const struct definition_limits *limits = &change->catalogue->limits;
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct container *container;

    if (!account_bytes_room(limits, found->account,
                            definition_fields(found->container->definition)->document.len,
                            definition_fields(definition)->document.len, err))
        return false;
    state = catalogue_state_copy(&found->container->state);
    container = catalogue_state_container(state);
    if (!container_throughput_check(limits, definition, container->map, &container->offer, err) ||
        !catalogue_promotions_let_replace(container, definition, err) ||
        !catalogue_placed_lets_replace(container, definition, err) ||
        !catalogue_spread_lets_replace(container, definition, err) ||
        !reference_check(container, definition, err) ||
        !catalogue_resident_lets_replace(change->catalogue, container, definition, err) ||
        !policy_advance(container, definition, before_max, err))
        return false;
    if (definition_fields(container->definition)->followed !=
            definition_fields(definition)->followed ||
        definition_fields(container->definition)->reference !=
            definition_fields(definition)->reference)
        container->writers++;
    definition_unref(container->definition);
    container->definition = definition_ref(definition);
    if (!slice_equal(definition_fields(definition)->mongo,
                     definition_fields(found->container->definition)->mongo))
        catalogue_change_tell(change, HISTORY_MODIFY, container, SLICE_NONE);
    if (!container_publish_fenced(change, found->container, state, NULL, err))
        return false;
    *ret_container = container_ref(container);
    return true;
}

bool catalogue_container_replace(struct catalogue *catalogue, struct slice account,
                                 struct slice database, struct slice id, struct slice body,
                                 struct slice if_match, struct container **ret_container,
                                 struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct catalogue_found found;
    bool taken[INDEX_NUMBERS];

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !body_check(&catalogue->limits, body, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err) ||
        !catalogue_etag_check(found.container->state.info.etag, if_match, err))
        return false;
    catalogue_index_numbers(found.container, taken);
    return definition_replaced(body, found.container->definition, taken, &definition, err) &&
           catalogue_container_redefine(&change, &found, definition, CONTAINER_POLICIES_ASKED_MAX,
                                        ret_container, err);
}

bool catalogue_container_settle(struct catalogue_change *change,
                                const struct catalogue_found *found, struct definition *definition,
                                bool (*sound)(struct container *before, struct error *err),
                                struct error *err)
{
    CLEANUP(catalogue_state_unref)
    struct catalogue_state *state = catalogue_state_copy(&found->container->state);
    struct container *container = catalogue_state_container(state);

    while (container->before_count)
        definition_unref(container->before[--container->before_count]);
    if (definition) {
        definition_unref(container->definition);
        container->definition = definition_ref(definition);
    }
    container->writers += sound != NULL;
    return container_publish_fenced(change, found->container, state, sound, err);
}

/* The container that has the name now, buried in the same commit; NULL: none has. */
static bool target_bury(struct catalogue_change *change, const struct catalogue_found *found,
                        struct slice id, bool drop_target, struct container **ret_target,
                        struct slice *ret_scope, struct error *err)
{
    static const uint8_t nothing[] = {5, 0, 0, 0, 0}; /* the empty document */
    struct catalogue_state *state = catalogue_state_find(&found->database->state, id);
    struct slice scope;

    *ret_target = NULL;
    if (!state)
        return true;
    if (!drop_target || state == &found->container->state)
        return catalogue_name_taken(err, "container", id);
    if (!catalogue_promotions_let_drop(catalogue_state_container(state), err) ||
        !catalogue_views_let_drop(found->database, catalogue_state_container(state), err))
        return false;
    scope =
        catalogue_record_key(container_address(catalogue_state_container(state)), change->arena);
    catalogue_change_put(change, catalogue_record_tombstone_key(scope, change->arena),
                         slice_of(nothing, sizeof nothing));
    *ret_target = catalogue_state_container(state);
    *ret_scope = scope;
    return true;
}

static bool container_rename(struct catalogue_change *change, const struct catalogue_found *found,
                             struct slice id, bool drop_target, struct container **ret_container,
                             struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct container *container, *target = NULL;
    struct slice scope = SLICE_NONE;

    if (found->container->migration || found->container->promotions.count)
        return error_set(err, ERROR_BUSY,
                         "container \"%.*s\" cannot be renamed while it is migrated or promoted",
                         SLICE_ARG(found->container->state.info.id));
    if (!catalogue_id_check(&change->catalogue->limits, id, err) ||
        !definition_renamed(found->container->definition, id, &definition, err) ||
        !target_bury(change, found, id, drop_target, &target, &scope, err))
        return false;
    state = catalogue_state_copy(&found->container->state);
    state->info.id = arena_copy(state->arena, id);
    container = catalogue_state_container(state);
    definition_unref(container->definition);
    container->definition = definition_ref(definition);
    catalogue_change_tell_renamed(change, found->container, id, target);
    if (!container_commit_state(change, container, false, err))
        return false;
    if (target)
        catalogue_state_mark_dropped(&target->state);
    catalogue_change_publish_renamed(change, target, container);
    if (target)
        catalogue_purge_queue(change->catalogue, scope);
    *ret_container = container_ref(container);
    return true;
}

bool catalogue_container_rename(struct catalogue *catalogue, struct slice account,
                                struct slice database, struct slice id, struct slice new_id,
                                bool drop_target, struct container **ret_container,
                                struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;

    return catalogue_change_begin(catalogue, &change, err) &&
           catalogue_find_container(change.root, account, database, id, false, &found, err) &&
           container_rename(&change, &found, new_id, drop_target, ret_container, err);
}

bool catalogue_container_tell(struct catalogue *catalogue, struct slice account,
                              struct slice database, struct slice id, enum history_kind kind,
                              struct slice payload, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    catalogue_change_tell(&change, kind, found.container, payload);
    return !change.telling_count || catalogue_change_commit(&change, err);
}

bool catalogue_container_drop(struct catalogue *catalogue, struct slice account,
                              struct slice database, struct slice id, struct slice if_match,
                              struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err) ||
        !catalogue_etag_check(found.container->state.info.etag, if_match, err) ||
        !catalogue_promotions_let_drop(found.container, err) ||
        !catalogue_views_let_drop(found.database, found.container, err))
        return false;
    catalogue_change_tell(&change, HISTORY_DROP, found.container, SLICE_NONE);
    return catalogue_change_drop(&change, container_address(found.container), err);
}

static bool container_open(struct catalogue *catalogue, const struct catalogue_name *asked,
                           bool withheld_too, struct container **ret_container, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct catalogue_found found;
    struct catalogue_name name;

    if (!catalogue_find_container(look.root, asked->account, asked->database, asked->container,
                                  false, &found, err))
        return false;
    name = (struct catalogue_name){found.account->state.info.id, found.database->state.info.id,
                                   found.container->state.info.id};
    if (!withheld_too && catalogue_is_withheld(catalogue, &name))
        return catalogue_not_found(err, false, "container", asked->container);
    *ret_container = container_ref(found.container);
    return true;
}

bool catalogue_container_open(struct catalogue *catalogue, struct slice account,
                              struct slice database, struct slice id,
                              struct container **ret_container, struct error *err)
{
    return container_open(catalogue, &(struct catalogue_name){account, database, id}, false,
                          ret_container, err);
}

bool catalogue_container_open_withheld(struct catalogue *catalogue, struct slice account,
                                       struct slice database, struct slice id,
                                       struct container **ret_container, struct error *err)
{
    return container_open(catalogue, &(struct catalogue_name){account, database, id}, true,
                          ret_container, err);
}
