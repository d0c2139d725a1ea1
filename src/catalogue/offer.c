/* Offers of the catalogue: found by their rid, listed, replaced. Who has one is found by walking
 * the account, which has at most some hundred databases and containers. */
#include "catalogue/catalogue_private.h"
#include "catalogue/shares.h"

/* Whose offer it is: a database, or a container in one. */
struct owner {
    struct database *database;
    struct container *container; /* NULL: the database's own */
};

static struct offer *owner_offer(struct owner owner)
{
    return owner.container ? &owner.container->offer : &owner.database->offer;
}

static bool has_offer(struct owner owner)
{
    return owner.container ? owner.container->has_offer : owner.database->has_offer;
}

/* Calls visit for everything in the account that has an offer, until it says false. */
static bool owners_walk(const struct account *account,
                        bool (*visit)(struct owner owner, void *context), void *context)
{
    for (size_t i = 0; i < account->state.child_count; i++) {
        struct owner owner = {.database = catalogue_state_database(account->state.children[i])};

        if (has_offer(owner) && !visit(owner, context))
            return false;
        for (size_t j = 0; j < owner.database->state.child_count; j++) {
            owner.container = catalogue_state_container(owner.database->state.children[j]);
            if (has_offer(owner) && !visit(owner, context))
                return false;
        }
        owner.container = NULL;
    }
    return true;
}

struct wanted {
    uint32_t number;
    struct owner owner; /* out */
};

static bool wanted_visit(struct owner owner, void *context)
{
    struct wanted *wanted = context;

    if (owner_offer(owner)->number != wanted->number)
        return true;
    wanted->owner = owner;
    return false;
}

uint32_t catalogue_offer_number_take(struct catalogue_head *head, const struct account *account)
{
    struct wanted wanted;

    do {
        wanted = (struct wanted){.number = head->next_offer};
        head->next_offer = head->next_offer % ((1u << RID_OFFER_BITS) - 1) + 1;
    } while (!owners_walk(account, wanted_visit, &wanted));
    return wanted.number;
}

static bool owner_find(struct catalogue_state *root, struct slice account, struct slice rid,
                       struct owner *ret_owner, struct error *err)
{
    struct wanted wanted;
    struct catalogue_found found;
    struct rid parsed;

    if (!catalogue_find_account(root, account, true, &found, err))
        return false;
    if (!rid_parse(rid, &parsed) || parsed.kind != RID_OFFER)
        return error_set(err, ERROR_BAD_REQUEST, "the rid of the offer is not one");
    wanted = (struct wanted){.number = (uint32_t)parsed.number};
    if (owners_walk(found.account, wanted_visit, &wanted))
        return error_set(err, ERROR_NOT_FOUND, "offer \"%.*s\" does not exist", SLICE_ARG(rid));
    *ret_owner = wanted.owner;
    return true;
}

static bool count_visit(struct owner owner UNUSED, void *context)
{
    (*(size_t *)context)++;
    return true;
}

static bool copy_visit(struct owner owner, void *context)
{
    struct offer **at = context;

    *(*at)++ = *owner_offer(owner);
    return true;
}

bool catalogue_offers(struct catalogue *catalogue, struct slice account, struct arena *arena,
                      struct offer **ret_offers, size_t *ret_count, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *root = catalogue_root(catalogue);
    struct offer *at;
    struct catalogue_found found;
    size_t count = 0;

    if (!catalogue_find_account(root, account, true, &found, err))
        return false;
    owners_walk(found.account, count_visit, &count);
    at = *ret_offers = ARENA_ARRAY(arena, struct offer, count);
    owners_walk(found.account, copy_visit, &at);
    *ret_count = count;
    return true;
}

bool catalogue_offer_read(struct catalogue *catalogue, struct slice account, struct slice rid,
                          struct offer *ret_offer, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *root = catalogue_root(catalogue);
    struct owner owner = {0};

    if (!owner_find(root, account, rid, &owner, err))
        return false;
    *ret_offer = *owner_offer(owner);
    return true;
}

static uint32_t span_count(const struct container *container)
{
    size_t count;

    partition_map_spans(container->map, &count);
    return (uint32_t)count;
}

/* What a database may give is bounded by the container with the fewest partitions: it may want all
 * of it. */
static struct offer_subject subject_of(struct owner owner, uint64_t bytes)
{
    struct offer_subject subject = {.shared = !owner.container, .bytes = bytes};

    if (owner.container) {
        subject.fixed = container_is_fixed(owner.container);
        subject.partitions = span_count(owner.container);
        return subject;
    }
    for (size_t i = 0; i < owner.database->state.child_count; i++) {
        struct container *container = catalogue_state_container(owner.database->state.children[i]);
        uint32_t count = span_count(container);

        if (container->has_offer)
            continue;
        subject.containers++;
        if (!container_is_fixed(container))
            subject.partitions = subject.partitions ? MIN(subject.partitions, count) : count;
    }
    return subject;
}

bool catalogue_offer_minimum(struct catalogue *catalogue, struct slice account, struct slice rid,
                             uint64_t bytes, uint64_t *ret_ru, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *root = catalogue_root(catalogue);
    struct offer_subject subject;
    struct owner owner = {0};

    if (!owner_find(root, account, rid, &owner, err))
        return false;
    subject = subject_of(owner, bytes);
    *ret_ru =
        offer_minimum(&catalogue->limits, &subject, owner_offer(owner), owner_offer(owner)->kind);
    return true;
}

static bool offer_apply(const struct definition_limits *limits, struct owner owner,
                        const struct catalogue_offer_change *change, struct offer *offer,
                        struct error *err)
{
    struct offer_subject subject = subject_of(owner, change->bytes);

    if (!catalogue_etag_check(slice_of_text(offer->etag), change->if_match, err))
        return false;
    switch (change->migration) {
    case OFFER_TO_AUTOSCALE:
        return offer_migrate(limits, &subject, OFFER_AUTOSCALE, offer, err);
    case OFFER_TO_MANUAL:
        return offer_migrate(limits, &subject, OFFER_MANUAL, offer, err);
    default:
        return offer_replace(limits, &subject, &change->request, offer, err);
    }
}

/* The owner with its new offer; containers that share it show it too. */
static struct catalogue_state *owner_with(struct owner owner, const struct offer *offer)
{
    struct catalogue_state *state =
        catalogue_state_copy(owner.container ? &owner.container->state : &owner.database->state);

    if (owner.container) {
        catalogue_state_container(state)->offer = *offer;
        return state;
    }
    catalogue_state_database(state)->offer = *offer;
    for (size_t i = 0; i < state->child_count; i++) {
        struct catalogue_state *child = state->children[i];

        if (catalogue_state_container(child)->has_offer)
            continue;
        state->children[i] = catalogue_state_copy(child);
        catalogue_state_container(state->children[i])->offer = *offer;
        catalogue_state_unref(child);
    }
    return state;
}

bool catalogue_offer_replace(struct catalogue *catalogue, struct slice account, struct slice rid,
                             const struct catalogue_offer_change *wanted, struct offer *ret_offer,
                             struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_record_address address = {.kind = RECORD_DATABASE};
    struct owner owner = {0};
    struct offer offer;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !owner_find(change.root, account, rid, &owner, err))
        return false;
    offer = *owner_offer(owner);
    if (!offer_apply(&catalogue->limits, owner, wanted, &offer, err) ||
        (owner.container &&
         !container_throughput_check(&catalogue->limits, owner.container->definition, NULL, &offer,
                                     err)))
        return false;
    address.account = owner.database->account;
    address.database = owner.database->state.info.number;
    if (owner.container) {
        address.kind = RECORD_CONTAINER;
        address.container = owner.container->state.info.number;
    }
    catalogue_change_put_offer(&change, address, &offer);
    if (!catalogue_change_commit(&change, err))
        return false;
    catalogue_offer_stamp(&offer, change.part.stamp.lsn, change.part.stamp.wall_ms);
    *ret_offer = offer;
    catalogue_change_publish(&change, address, owner_with(owner, &offer));
    return true;
}
