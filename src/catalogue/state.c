/* A tree whose nodes never change once published. Changing a container copies it, its database, its
 * account and the root: a few hundred pointers, for an account has at most some hundred databases
 * and containers. Readers in return search sorted arrays without any lock.
 *
 * Each state owns an arena with its bytes. Children are shared between the old tree and the new. */
#include "catalogue/catalogue_private.h"
#include "engine/standbys.h"

static size_t state_size(enum catalogue_state_kind kind)
{
    switch (kind) {
    case STATE_ACCOUNT:
        return sizeof(struct account);
    case STATE_DATABASE:
        return sizeof(struct database);
    case STATE_CONTAINER:
        return sizeof(struct container);
    default:
        return sizeof(struct catalogue_state);
    }
}

/* --- Lives of containers --------------------------------------------------------------------- */

static struct container_life *life_new(void)
{
    struct container_life *life = MEMORY_NEW(struct container_life);

    atomic_init(&life->states, 1);
    return life;
}

/* The state goes on with this life instead of its own, which nobody else has yet. */
static void life_share(struct container *container, struct container_life *life)
{
    memory_free(container->life);
    container->life = life;
    atomic_fetch_add_explicit(&life->states, 1, memory_order_relaxed);
}

/* Requests that hold states of the other container may be using it: nobody says when the last of
 * them has gone, so whatever is kept for the partition is kept. */
static bool is_tied(const struct container *container, uint32_t partition)
{
    const struct promotion_list *promotions = &container->promotions;

    for (size_t i = 0; i < promotions->count; i++)
        if (promotions->list[i]->partition == partition)
            return true;
    return false;
}

/* Partitions that left the map while the container lived are the business of whoever moved them. */
static void life_leave(struct container *container)
{
    struct container_life *life = container->life;
    const struct catalogue *catalogue = container->catalogue;
    const struct partition_span *spans;
    size_t count;

    if (atomic_fetch_sub(&life->states, 1) != 1)
        return;
    if (atomic_load(&life->dropped) && catalogue->partition_gone) {
        spans = partition_map_spans(container->map, &count);
        for (size_t i = 0; i < count; i++)
            if (!is_tied(container, spans[i].id))
                catalogue->partition_gone(catalogue->gone_context, spans[i].id);
    }
    memory_free(life);
}

void catalogue_state_mark_dropped(struct catalogue_state *state)
{
    if (state->kind == STATE_CONTAINER)
        atomic_store(&catalogue_state_container(state)->life->dropped, true);
    for (size_t i = 0; i < state->child_count; i++)
        catalogue_state_mark_dropped(state->children[i]);
}

void catalogue_state_adopt_lives(struct catalogue_state *root, const struct catalogue_state *before)
{
    for (size_t i = 0; i < root->child_count; i++) {
        struct catalogue_state *state = root->children[i];
        struct catalogue_state *known = catalogue_state_find_number(before, state->info.number);

        if (!known)
            continue;
        if (state->kind == STATE_CONTAINER)
            life_share(catalogue_state_container(state), catalogue_state_container(known)->life);
        else
            catalogue_state_adopt_lives(state, known);
    }
}

/* --- States ---------------------------------------------------------------------------------- */

/* Is what is stored read the same way by both? */
static bool are_read_alike(const struct container *a, const struct container *b)
{
    return a->map == b->map && a->definition == b->definition &&
           a->policy_version == b->policy_version && a->before_count == b->before_count &&
           a->promotions.count == b->promotions.count &&
           memcmp(a->promotions.list, b->promotions.list,
                  a->promotions.count * sizeof *a->promotions.list) == 0;
}

void catalogue_state_since(struct catalogue_state *state, const struct catalogue_state *root)
{
    const struct catalogue_state *before;
    struct container *container;

    if (!state || state->kind != STATE_CONTAINER)
        return;
    container = catalogue_state_container(state);
    before = root ? catalogue_state_find_number(root, container->account) : NULL;
    before = before ? catalogue_state_find_number(before, container->database) : NULL;
    before = before ? catalogue_state_find_number(before, state->info.number) : NULL;
    if (before && are_read_alike((const struct container *)before, container))
        container->since_ms = ((const struct container *)before)->since_ms;
    else
        container->since_ms = clock_monotonic_ms();
}

struct catalogue_state *catalogue_state_new(enum catalogue_state_kind kind, struct slice id,
                                            uint32_t number)
{
    struct arena *arena = arena_new();
    struct catalogue_state *state = arena_alloc_zero(arena, state_size(kind));

    static_assert(offsetof(struct account, state) == 0 && offsetof(struct database, state) == 0 &&
                      offsetof(struct container, state) == 0,
                  "a state begins what it is the state of");
    atomic_init(&state->refs, 1);
    state->kind = kind;
    state->arena = arena;
    state->info.id = arena_copy(arena, id);
    state->info.number = number;
    if (kind == STATE_CONTAINER) {
        catalogue_state_container(state)->life = life_new();
        catalogue_state_container(state)->promotions.container = number;
        catalogue_state_since(state, NULL);
    }
    return state;
}

static void kind_copy(struct catalogue_state *to, const struct catalogue_state *from)
{
    if (from->kind == STATE_ACCOUNT) {
        struct account *account = catalogue_state_account(to);
        const struct account *old = (const struct account *)from;

        account->properties = arena_copy(to->arena, old->properties);
        account->has_keys = old->has_keys;
        account->keys = old->keys;
    } else if (from->kind == STATE_DATABASE) {
        struct database *database = catalogue_state_database(to);
        const struct database *old = (const struct database *)from;

        database->account = old->account;
        database->has_offer = old->has_offer;
        database->offer = old->offer;
        database->users = catalogue_children_ref(old->users);
        database->keys = catalogue_children_ref(old->keys);
        database->permission_count = old->permission_count;
        database->permission_bytes = old->permission_bytes;
    } else if (from->kind == STATE_CONTAINER) {
        struct container *container = catalogue_state_container(to);
        const struct container *old = (const struct container *)from;

        life_share(container, old->life);
        container->account = old->account;
        container->database = old->database;
        container->database_name = arena_copy(to->arena, old->database_name);
        container->definition = definition_ref(old->definition);
        for (uint32_t i = 0; i < old->before_count; i++)
            container->before[i] = definition_ref(old->before[i]);
        container->before_count = old->before_count;
        container->policy_version = old->policy_version;
        container->writers = old->writers;
        container->map = partition_map_ref(old->map);
        container->shares = container_shares_ref(old->shares);
        container->migration = migration_ref(old->migration);
        container->promotions = old->promotions;
        container->shown = old->shown;
        container->untied = old->untied;
        for (size_t i = 0; i < old->promotions.count; i++)
            (void)promotion_ref(old->promotions.list[i]);
        container->has_offer = old->has_offer;
        container->offer = old->offer;
        container->catalogue = old->catalogue;
        for (size_t i = 0; i < CHILD_SCRIPT_KINDS; i++)
            container->scripts[i] = catalogue_children_ref(old->scripts[i]);
    }
}

static void kind_done(struct catalogue_state *state)
{
    if (state->kind == STATE_ACCOUNT) {
        account_keys_done(&catalogue_state_account(state)->keys);
    } else if (state->kind == STATE_DATABASE) {
        catalogue_children_unref(catalogue_state_database(state)->users);
        catalogue_children_unref(catalogue_state_database(state)->keys);
    } else if (state->kind == STATE_CONTAINER) {
        struct container *container = catalogue_state_container(state);

        life_leave(container);
        definition_unref(container->definition);
        for (uint32_t i = 0; i < container->before_count; i++)
            definition_unref(container->before[i]);
        for (size_t i = 0; i < CHILD_SCRIPT_KINDS; i++)
            catalogue_children_unref(container->scripts[i]);
        partition_map_unref(container->map);
        container_shares_unref(container->shares);
        migration_unref(container->migration);
        for (size_t i = 0; i < container->promotions.count; i++)
            promotion_unref(container->promotions.list[i]);
    }
}

struct catalogue_state *catalogue_state_copy(const struct catalogue_state *state)
{
    struct catalogue_state *copy =
        catalogue_state_new(state->kind, state->info.id, state->info.number);

    copy->info.rid = arena_copy(copy->arena, state->info.rid);
    copy->info.etag = arena_copy(copy->arena, state->info.etag);
    copy->info.lsn = state->info.lsn;
    copy->info.ts_ms = state->info.ts_ms;
    kind_copy(copy, state);
    copy->child_count = copy->child_capacity = state->child_count;
    copy->children = memory_alloc(memory_array_size(state->child_count + 1, sizeof(void *)));
    for (size_t i = 0; i < state->child_count; i++)
        copy->children[i] = catalogue_state_ref(state->children[i]);
    return copy;
}

struct catalogue_state *catalogue_state_ref(struct catalogue_state *state)
{
    atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    return state;
}

void catalogue_state_unref(struct catalogue_state *state)
{
    if (!state || atomic_fetch_sub(&state->refs, 1) != 1)
        return;
    for (size_t i = 0; i < state->child_count; i++)
        catalogue_state_unref(state->children[i]);
    memory_free(state->children);
    kind_done(state);
    arena_free(state->arena);
}

void catalogue_etag_format(uint64_t lsn, char ret_text[OFFER_ETAG_SIZE])
{
    snprintf(ret_text, OFFER_ETAG_SIZE, "\"%08x-0000-0000-%04x-%012llx\"", CATALOGUE_PARTITION,
             (unsigned)(lsn >> 48), (unsigned long long)(lsn & 0xFFFFFFFFFFFF));
}

void catalogue_state_stamp(struct catalogue_state *state, struct rid rid, uint64_t lsn,
                           int64_t ts_ms)
{
    char etag[OFFER_ETAG_SIZE], text[RID_TEXT_SIZE];

    catalogue_etag_format(lsn, etag);
    state->info.etag = arena_copy(state->arena, slice_of_text(etag));
    state->info.rid = state->kind == STATE_ACCOUNT
                          ? state->info.id
                          : arena_copy(state->arena, rid_format(rid, text));
    state->info.lsn = lsn;
    state->info.ts_ms = ts_ms;
}

void catalogue_offer_stamp(struct offer *offer, uint64_t lsn, int64_t ts_ms)
{
    rid_format(rid_of_offer(offer->number), offer->rid);
    catalogue_etag_format(lsn, offer->etag);
    offer->ts_ms = ts_ms;
}

/* Where the child of that id is, or would be. */
static size_t child_place(const struct catalogue_state *parent, struct slice id)
{
    size_t low = 0, high = parent->child_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (slice_compare(parent->children[middle]->info.id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct catalogue_state *catalogue_state_find(const struct catalogue_state *parent, struct slice id)
{
    size_t place = child_place(parent, id);

    if (place == parent->child_count || !slice_equal(parent->children[place]->info.id, id))
        return NULL;
    return parent->children[place];
}

struct catalogue_state *catalogue_state_find_number(const struct catalogue_state *parent,
                                                    uint32_t number)
{
    for (size_t i = 0; i < parent->child_count; i++)
        if (parent->children[i]->info.number == number)
            return parent->children[i];
    return NULL;
}

static void child_insert(struct catalogue_state *parent, size_t place,
                         struct catalogue_state *child)
{
    if (parent->child_count == parent->child_capacity) {
        parent->child_capacity = parent->child_capacity ? parent->child_capacity * 2 : 8;
        parent->children = memory_realloc(
            parent->children, memory_array_size(parent->child_capacity, sizeof(void *)));
    }
    memmove(&parent->children[place + 1], &parent->children[place],
            (parent->child_count - place) * sizeof(void *));
    parent->children[place] = child;
    parent->child_count++;
}

void catalogue_state_child_set(struct catalogue_state *parent, struct catalogue_state *child)
{
    catalogue_state_child_remove(parent, child->info.number);
    child_insert(parent, child_place(parent, child->info.id), child);
}

void catalogue_state_child_remove(struct catalogue_state *parent, uint32_t number)
{
    for (size_t i = 0; i < parent->child_count; i++)
        if (parent->children[i]->info.number == number) {
            catalogue_state_unref(parent->children[i]);
            parent->child_count--;
            memmove(&parent->children[i], &parent->children[i + 1],
                    (parent->child_count - i) * sizeof(void *));
            return;
        }
}

void catalogue_state_child_append(struct catalogue_state *parent, struct catalogue_state *child)
{
    child_insert(parent, parent->child_count, child);
}

static int by_id(const void *a, const void *b)
{
    const struct catalogue_state *const *left = a, *const *right = b;

    return slice_compare((*left)->info.id, (*right)->info.id);
}

void catalogue_state_sort(struct catalogue_state *parent)
{
    if (parent->child_count)
        qsort(parent->children, parent->child_count, sizeof(void *), by_id);
}

/* --- What readers ask ------------------------------------------------------------------------ */

struct account *account_ref(struct account *account)
{
    return catalogue_state_account(catalogue_state_ref(&account->state));
}

void account_unref(struct account *account)
{
    if (account)
        catalogue_state_unref(&account->state);
}

const struct catalogue_info *account_info(const struct account *account)
{
    return &account->state.info;
}

struct slice account_properties(const struct account *account)
{
    return account->properties;
}

const struct account_keys *account_keys(const struct account *account)
{
    return account->has_keys ? &account->keys : NULL;
}

size_t account_database_count(const struct account *account)
{
    return account->state.child_count;
}

struct database *account_database(const struct account *account, size_t index)
{
    assert(index < account->state.child_count);
    return catalogue_state_database(account->state.children[index]);
}

struct database *database_ref(struct database *database)
{
    return catalogue_state_database(catalogue_state_ref(&database->state));
}

void database_unref(struct database *database)
{
    if (database)
        catalogue_state_unref(&database->state);
}

const struct catalogue_info *database_info(const struct database *database)
{
    return &database->state.info;
}

const struct offer *database_offer(const struct database *database)
{
    return database->has_offer ? &database->offer : NULL;
}

size_t database_container_count(const struct database *database)
{
    return database->state.child_count;
}

struct container *database_container(const struct database *database, size_t index)
{
    assert(index < database->state.child_count);
    return catalogue_state_container(database->state.children[index]);
}

struct container *container_ref(struct container *container)
{
    return catalogue_state_container(catalogue_state_ref(&container->state));
}

void container_unref(struct container *container)
{
    if (container)
        catalogue_state_unref(&container->state);
}

const struct catalogue_info *container_info(const struct container *container)
{
    return &container->state.info;
}

uint32_t container_policy_version(const struct container *container)
{
    return container->policy_version;
}

int64_t container_since(const struct container *container)
{
    const struct cluster *cluster = container->catalogue->cluster;

    for (size_t i = 0; i < cluster_count(cluster); i++)
        if (engine_standbys_of(cluster_at(cluster, i)->engine))
            return container->since_ms;
    return INT64_MAX;
}

uint32_t container_writers(const struct container *container)
{
    return container->writers;
}

size_t container_policies_before(const struct container *container,
                                 struct definition *const **ret_definitions)
{
    *ret_definitions = container->before;
    return container->before_count;
}

struct definition *container_definition(const struct container *container)
{
    return container->definition;
}

struct partition_map *container_map(const struct container *container)
{
    return container->map;
}

struct migration *container_migration(const struct container *container)
{
    return container->migration;
}

const struct promotion_list *container_promotions(const struct container *container)
{
    return &container->promotions;
}

uint64_t container_shown(const struct container *container)
{
    return container->shown;
}

uint64_t container_untied(const struct container *container)
{
    return container->untied;
}

struct history_origin container_history(const struct container *container)
{
    const struct definition_fields *fields = definition_fields(container->definition);

    return (struct history_origin){
        .kept = container->catalogue->history && fields->identity == DEFINITION_IDENTITY_MONGO,
        .images = fields->change_images,
        .followed = fields->followed,
        .account = container->account,
        .database = container->database,
        .container = container->state.info.number,
        .database_name = container->database_name,
        .container_name = container->state.info.id,
    };
}

uint32_t container_account_number(const struct container *container)
{
    return container->account;
}

uint32_t container_database_number(const struct container *container)
{
    return container->database;
}

struct rid container_rid(const struct container *container)
{
    return rid_of_container(container->database, container->state.info.number);
}

struct rid container_rid_below(const struct container *container, enum rid_kind kind,
                               uint64_t number)
{
    return rid_below_container(kind, container->database, container->state.info.number, number);
}

bool container_is_fixed(const struct container *container)
{
    return definition_fields(container->definition)->key.system_key;
}

uint64_t container_bytes_max(const struct container *container)
{
    return container_is_fixed(container) ? container->catalogue->limits.fixed_bytes_max
                                         : UINT64_MAX;
}

const struct offer *container_offer(const struct container *container)
{
    return &container->offer;
}

bool container_is_enforced(const struct container *container)
{
    return offer_is_enforced(&container->catalogue->limits, &container->offer);
}

const struct definition_limits *container_limits(const struct container *container)
{
    return &container->catalogue->limits;
}

/* A container is only loaded or made where all its nodes are. */
static const struct cluster_node *container_node(const struct container *container, uint32_t number)
{
    const struct cluster_node *node = cluster_find(container->catalogue->cluster, number);

    assert(node);
    return node;
}

struct engine *container_engine(const struct container *container, uint32_t node)
{
    return container_node(container, node)->engine;
}

const char *container_node_name(const struct container *container, uint32_t node)
{
    return container_node(container, node)->name;
}

struct commit *container_commit(const struct container *container, uint32_t node)
{
    return container_node(container, node)->commit;
}
