#include "catalogue/views.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/resident.h"

static const struct definition_view *view_of(const struct container *container)
{
    return &definition_fields(container->definition)->view;
}

static bool is_view_of(const struct container *container, uint32_t source)
{
    const struct definition_view *view = view_of(container);

    for (size_t i = 0; i < view->source_count; i++)
        if (view->source_rids[i].owner == source)
            return true;
    return false;
}

static size_t views_count(const struct database *database, uint32_t source,
                          const struct container **ret_one)
{
    size_t count = 0;

    for (size_t i = 0; i < database->state.child_count; i++) {
        const struct container *container = catalogue_state_container(database->state.children[i]);

        if (is_view_of(container, source)) {
            *ret_one = container;
            count++;
        }
    }
    return count;
}

bool catalogue_views_let_drop(const struct database *database, const struct container *container,
                              struct error *err)
{
    const struct container *view = NULL;

    if (!views_count(database, container->state.info.number, &view))
        return true;
    return error_set(err, ERROR_VIEW_BOUND,
                     "container \"%.*s\" is the source of the view \"%.*s\": drop the view first",
                     SLICE_ARG(container->state.info.id), SLICE_ARG(view->state.info.id));
}

/* A view has all that its query says of its sources: of what another container has of it, it would
 * not. */
bool catalogue_views_let_promote(const struct container *container, struct error *err)
{
    return !view_of(container)->form ||
           error_set(
               err, ERROR_VIEW_BOUND,
               "no key of container \"%.*s\" is promoted: it is a view, which has all rows of "
               "its query; make another view with that key in its WHERE",
               SLICE_ARG(container->state.info.id));
}

/* --- Those that show the same items ---------------------------------------------------------- */

/* A key's own container, the container it is of, and the own ones of that one's other keys: items
 * may be written through one and shown by another. Either all of them are followed or none. */
struct kin {
    size_t count;
    struct container *list[PROMOTIONS_MAX + 1]; /* borrowed from the database */
};

static struct container *child_find(const struct database *database, uint32_t number)
{
    struct catalogue_state *state = catalogue_state_find_number(&database->state, number);

    return state ? catalogue_state_container(state) : NULL;
}

static struct kin kin_of(const struct database *database, struct container *container)
{
    const struct promotion_list *ties = &container->promotions;
    struct kin kin = {0};

    if (ties->count && ties->list[0]->own == container->state.info.number) {
        struct container *origin = child_find(database, ties->list[0]->origin);

        container = origin ? origin : container;
    }
    kin.list[kin.count++] = container;
    for (size_t i = 0; i < container->promotions.count; i++) {
        struct container *own = child_find(database, container->promotions.list[i]->own);

        if (own && own != container)
            kin.list[kin.count++] = own;
    }
    return kin;
}

static bool kin_has_views(const struct database *database, const struct kin *kin)
{
    const struct container *unused = NULL;

    for (size_t i = 0; i < kin->count; i++)
        if (views_count(database, kin->list[i]->state.info.number, &unused))
            return true;
    return false;
}

bool catalogue_views_need_followed(const struct database *database, struct container *container)
{
    const struct kin kin = kin_of(database, container);

    return kin_has_views(database, &kin);
}

/* While two containers have one partition, the definition of neither can write otherwise. */
static bool kin_shares(const struct kin *kin)
{
    const struct promotion_list *ties = &kin->list[0]->promotions;

    for (size_t i = 0; i < ties->count; i++)
        if (promotion_shares(ties->list[i]))
            return true;
    return false;
}

/* One that is not followed; NULL: all are. */
static struct container *kin_unfollowed(const struct kin *kin)
{
    for (size_t i = 0; i < kin->count; i++)
        if (!definition_fields(kin->list[i]->definition)->followed)
            return kin->list[i];
    return NULL;
}

/* --- Making one ------------------------------------------------------------------------------ */

/* How many views are below one another, this one included. Definitions never change their sources
 * and these are there before them, so there is no circle to be lost in. */
static unsigned level_of(const struct database *database, const struct container *container)
{
    const struct definition_view *view = view_of(container);
    unsigned level = 0;

    if (!view->form)
        return 0;
    for (size_t i = 0; i < view->source_count; i++) {
        struct catalogue_state *source =
            catalogue_state_find_number(&database->state, view->source_rids[i].owner);

        if (source)
            level = MAX(level, level_of(database, catalogue_state_container(source)));
    }
    return level + 1;
}

static bool unfit(struct slice source, const char *why, struct error *err)
{
    return error_set(err, ERROR_VIEW_UNFIT, "container \"%.*s\" cannot be the source of a view: %s",
                     (int)MIN(source.len, (size_t)100), (const char *)source.data, why);
}

static bool source_check(const struct database *database, struct container *source,
                         struct error *err)
{
    const struct definition_fields *fields = definition_fields(source->definition);
    const struct kin kin = kin_of(database, source);
    const struct container *unused = NULL;
    struct slice id = source->state.info.id;

    if (fields->identity != DEFINITION_IDENTITY_ID)
        return unfit(id, "its items are known by \"_id\"", err);
    if (kin_unfollowed(&kin) && kin_shares(&kin))
        return unfit(id,
                     "a key of it, or of the container it was promoted from, is served by two "
                     "containers: end the grace period of that promotion first",
                     err);
    if (level_of(database, source) >= CATALOGUE_VIEW_LEVELS_MAX)
        return unfit(id, "it is a view of a view, and views are kept two deep at most", err);
    if (views_count(database, source->state.info.number, &unused) >= CATALOGUE_VIEWS_MAX)
        return error_set(err, ERROR_VIEW_UNFIT,
                         "container \"%.*s\" has %d views, as many as may be", SLICE_ARG(id),
                         CATALOGUE_VIEWS_MAX);
    return true;
}

static bool source_find(const struct database *database, const struct definition_fields *fields,
                        size_t nth, struct container **ret_source, struct error *err)
{
    struct slice name = fields->view.sources[nth];
    struct catalogue_state *state = catalogue_state_find(&database->state, name);

    if (slice_equal(name, fields->id))
        return unfit(name, "it would be a view of itself", err);
    if (!state)
        return unfit(name, "there is none of that name in the database", err);
    *ret_source = catalogue_state_container(state);
    return source_check(database, *ret_source, err) &&
           catalogue_resident_lets_view(*ret_source, fields, err);
}

bool catalogue_view_complete(const struct catalogue_found *found, struct definition *definition,
                             struct arena *arena, struct definition **ret_definition,
                             bool *ret_followed, struct error *err)
{
    const struct definition_fields *fields = definition_fields(definition);
    struct rid rids[DEFINITION_VIEW_SOURCES_MAX];

    *ret_followed = true;
    for (size_t i = 0; i < fields->view.source_count; i++) {
        struct container *source = NULL;
        struct kin kin;

        if (!source_find(found->database, fields, i, &source, err))
            return false;
        kin = kin_of(found->database, source);
        *ret_followed &= !kin_unfollowed(&kin);
        rids[i] = container_rid(source);
    }
    return !*ret_followed ||
           definition_new(definition_with_view(fields, rids, DEFINITION_VIEW_INITIALIZING, arena),
                          NULL, ret_definition, err);
}

/* --- Those they are kept from ---------------------------------------------------------------- */

static bool followed_set(struct catalogue_change *change, const struct catalogue_found *found,
                         bool followed, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct definition_fields *fields = definition_fields(found->container->definition);

    return definition_new(definition_with_followed(fields, followed, change->arena), NULL,
                          &definition, err) &&
           catalogue_container_redefine(change, found, definition, CONTAINER_POLICIES_ASKED_MAX,
                                        &container, err);
}

/* One change for each container. *ret_more: there may be others that show the same items. */
static bool source_follow(struct catalogue *catalogue, struct slice account, struct slice database,
                          const struct definition_fields *fields, size_t nth, bool *ret_more,
                          struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct kin kin;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_database(change.root, account, database, true, &found, err) ||
        !source_find(found.database, fields, nth, &found.container, err))
        return false;
    kin = kin_of(found.database, found.container);
    found.container = kin_unfollowed(&kin);
    *ret_more = found.container != NULL;
    return !found.container || followed_set(&change, &found, true, err);
}

bool catalogue_view_follow(struct catalogue *catalogue, struct slice account, struct slice database,
                           const struct definition *definition, struct error *err)
{
    const struct definition_fields *fields = definition_fields(definition);

    for (size_t i = 0; i < fields->view.source_count; i++) {
        bool more = true;

        while (more)
            if (!source_follow(catalogue, account, database, fields, i, &more, err))
                return false;
    }
    return true;
}

/* By number, for it may have another name by now. False: it is gone. */
static bool found_of(struct catalogue_state *root, const struct container *container,
                     struct catalogue_found *ret_found)
{
    struct catalogue_state *account = catalogue_state_find_number(root, container->account), *state;

    if (!account)
        return false;
    ret_found->account = catalogue_state_account(account);
    state = catalogue_state_find_number(account, container->database);
    if (!state)
        return false;
    ret_found->database = catalogue_state_database(state);
    state = catalogue_state_find_number(state, container->state.info.number);
    if (!state)
        return false;
    ret_found->container = catalogue_state_container(state);
    return true;
}

bool catalogue_view_release(struct catalogue *catalogue, const struct container *container,
                            struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct kin kin;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    if (!found_of(change.root, container, &found) ||
        !definition_fields(found.container->definition)->followed)
        return true;
    kin = kin_of(found.database, found.container);
    return kin_has_views(found.database, &kin) || kin_shares(&kin) ||
           followed_set(&change, &found, false, err);
}

/* *ret_more: it was not, or others that show the same items may not be. */
static bool container_follow(struct catalogue *catalogue, const struct container *container,
                             bool *ret_more, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct kin kin;

    *ret_more = false;
    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    if (!found_of(change.root, container, &found))
        return true;
    kin = kin_of(found.database, found.container);
    found.container = kin_unfollowed(&kin);
    *ret_more = found.container != NULL;
    if (!found.container)
        return true;
    if (kin_shares(&kin))
        return error_set(err, ERROR_VIEW_BOUND,
                         "views are kept from the other container, and another key of container "
                         "\"%.*s\" is served by two: end the grace period of that promotion first",
                         SLICE_ARG(container->state.info.id));
    return followed_set(&change, &found, true, err);
}

bool catalogue_views_join(struct catalogue *catalogue, const struct container *origin,
                          const struct container *own, struct error *err)
{
    const struct container *both[] = {origin, own};

    if (!definition_fields(origin->definition)->followed &&
        !definition_fields(own->definition)->followed)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        bool more = true;

        while (more)
            if (!container_follow(catalogue, both[i], &more, err))
                return false;
    }
    return true;
}

bool catalogue_view_settle(struct catalogue *catalogue, const struct container *view,
                           enum definition_view_status status, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct definition_fields *fields;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    if (!found_of(change.root, view, &found))
        return true;
    fields = definition_fields(found.container->definition);
    if (fields->view.status == status)
        return true;
    return definition_new(
               definition_with_view(fields, fields->view.source_rids, status, change.arena), NULL,
               &definition, err) &&
           catalogue_container_redefine(&change, &found, definition, CONTAINER_POLICIES_MAX,
                                        &container, err);
}

void catalogue_container_by_number(struct catalogue *catalogue, uint32_t account, uint32_t database,
                                   uint32_t number, struct container **ret_container)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct container *container =
        catalogue_find_container_number(look.root, account, database, number);

    *ret_container = container ? container_ref(container) : NULL;
}
