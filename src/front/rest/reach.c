/* Names are looked up at every use, in the published state of the catalogue, so nothing has to be
 * told when a name comes to mean something else. */
#include "front/rest/reach.h"

#include "catalogue/child.h"
#include "front/rest/call.h"
#include "front/rest/child_place.h"

/* --- What is meant --------------------------------------------------------------------------- */

static void database_resolve(struct rest_call *call, struct slice id, struct rest_reach *reach)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct error ignored;

    if (id.data && catalogue_database_open(call->services->catalogue, call->account.id, id,
                                           &database, &ignored))
        reach->database = database_info(database)->number;
}

/* Users, client encryption keys and scripts. */
static void child_resolve(struct rest_call *call, const struct rest_route *route,
                          struct rest_reach *reach)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
    struct child_place place;
    struct error ignored;

    if (!route->single || !rest_child_place(call, route, &place) ||
        !catalogue_child_open(call->services->catalogue, &place, route->id, &child, &ignored))
        return;
    reach->number = catalogue_child_info(child)->number;
    if (place.kind == CHILD_USER || place.kind == CHILD_ENCRYPTION_KEY)
        reach->owner = catalogue_child_info(child)->number;
}

static void container_resolve(struct rest_call *call, const struct rest_route *route,
                              struct slice id, struct rest_reach *reach,
                              struct container **ret_container)
{
    struct error ignored;
    struct rid rid;

    if (!catalogue_container_open(call->services->catalogue, call->account.id, route->database, id,
                                  ret_container, &ignored)) {
        *ret_container = NULL;
        return;
    }
    reach->owner = container_info(*ret_container)->number;
    reach->by_rid = route->resource == REST_ITEMS && route->single &&
                    slice_equal(id, container_info(*ret_container)->rid) &&
                    rid_parse(route->id, &rid) && rid.kind == RID_ITEM;
}

struct rest_reach rest_reach_of_route(struct rest_call *call, const struct rest_route *route,
                                      struct container **ret_container)
{
    struct rest_reach reach = {.resource = route->resource, .single = route->single};

    *ret_container = NULL;
    database_resolve(call, route->resource == REST_DATABASES ? route->id : route->database, &reach);
    if (!reach.database)
        return reach;
    switch (route->resource) {
    case REST_CONTAINERS:
        if (route->single)
            container_resolve(call, route, route->id, &reach, ret_container);
        break;
    case REST_PROCEDURES:
    case REST_TRIGGERS:
    case REST_FUNCTIONS:
        container_resolve(call, route, route->owner, &reach, ret_container);
        child_resolve(call, route, &reach);
        break;
    case REST_ITEMS:
    case REST_PKRANGES:
    case REST_CONFLICTS:
    case REST_PARTITION_DELETE:
    case REST_ATTACHMENTS:
    case REST_SCHEMAS:
        container_resolve(call, route, route->owner, &reach, ret_container);
        reach.id = route->id;
        break;
    case REST_USERS:
    case REST_ENCRYPTION_KEYS:
        child_resolve(call, route, &reach);
        break;
    default:
        break;
    }
    return reach;
}

/* Is what was found something a permission can be given on? */
static bool permittable(const struct rest_reach *reach)
{
    if (!reach->database || !reach->single)
        return false;
    switch (reach->resource) {
    case REST_DATABASES:
        return true;
    case REST_CONTAINERS:
    case REST_USERS:
    case REST_ENCRYPTION_KEYS:
    case REST_ITEMS:
        return reach->owner != 0;
    case REST_PROCEDURES:
    case REST_TRIGGERS:
    case REST_FUNCTIONS:
        return reach->owner != 0 && reach->number != 0;
    default:
        return false;
    }
}

/* What a path means that stands in a permission. */
struct link {
    struct rest_reach reach;
    struct container *container; /* a reference, or NULL */
    bool item;                   /* the path is that of an item */
};

static void link_done(struct link *link)
{
    container_unref(link->container);
}
CLEANUP_VALUE_FN(struct link, link_done)

static struct link path_resolve(struct rest_call *call, struct slice path)
{
    struct link link = {0};
    struct rest_route route;
    struct error ignored;

    if (!rest_route_parse(path, SLICE_NONE, call->arena, &route, &ignored) || route.account.data)
        return link;
    link.item = route.resource == REST_ITEMS && route.single;
    link.reach = rest_reach_of_route(call, &route, &link.container);
    if (!permittable(&link.reach))
        link.reach = (struct rest_reach){0};
    return link;
}

static struct slice percent_escaped(struct slice text, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, text.len * 3 + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        bytes[len++] = text.data[i];
        if (text.data[i] == '%') {
            bytes[len++] = '2';
            bytes[len++] = '5';
        }
    }
    return slice_of(bytes, len);
}

/* Clients disagree on whether names in links have escapes: one that has a percent sign is first
 * looked for as it stands. */
static struct link link_resolve(struct rest_call *call, struct slice text)
{
    struct link link, escaped;
    struct slice path;

    while (text.len && text.data[0] == '/')
        text = slice_skip(text, 1);
    text = front_slashes_drop(text);
    path = arena_printf(call->arena, "/%.*s", SLICE_ARG(text));
    link = path_resolve(call, percent_escaped(path, call->arena));
    if (link.reach.database || !text.len || !memchr(text.data, '%', text.len))
        return link;
    escaped = path_resolve(call, path);
    escaped.item |= link.item;
    link_done(&link);
    return escaped;
}

struct rest_reach rest_reach_of_link(struct rest_call *call, struct slice text)
{
    CLEANUP(link_done) struct link link = link_resolve(call, text);

    return link.reach;
}

struct rest_reach rest_reach_of_item_link(struct rest_call *call, struct slice text,
                                          struct container **ret_container, bool *ret_item)
{
    CLEANUP(link_done) struct link link = link_resolve(call, text);

    *ret_item = link.item;
    *ret_container = link.item ? TAKE(link.container) : NULL;
    return link.reach;
}

/* --- What covers what ------------------------------------------------------------------------ */

static bool below_container(enum rest_resource resource)
{
    switch (resource) {
    case REST_CONTAINERS:
    case REST_ITEMS:
    case REST_PKRANGES:
    case REST_PROCEDURES:
    case REST_TRIGGERS:
    case REST_FUNCTIONS:
    case REST_CONFLICTS:
    case REST_PARTITION_DELETE:
    case REST_ATTACHMENTS:
    case REST_SCHEMAS:
        return true;
    default:
        return false;
    }
}

/* Below a container, and that container. */
static bool same_owner(const struct rest_reach *a, const struct rest_reach *b)
{
    return a->owner && a->owner == b->owner;
}

static bool one_covers(const struct rest_reach *permitted, const struct rest_reach *wanted,
                       const struct rest_operation *operation)
{
    if (!same_owner(permitted, wanted))
        return false;
    if ((wanted->resource == REST_CONTAINERS && wanted->single) ||
        wanted->resource == REST_PKRANGES)
        return operation->access == REST_ACCESS_READ && below_container(permitted->resource);
    if (wanted->resource != permitted->resource || !wanted->single)
        return false;
    if (wanted->resource == REST_ITEMS)
        return wanted->by_rid == permitted->by_rid && slice_equal(wanted->id, permitted->id);
    return wanted->number == permitted->number;
}

bool rest_reach_covers(const struct rest_reach *permitted, const struct rest_reach *wanted,
                       const struct rest_operation *operation)
{
    if (!permitted->database || permitted->database != wanted->database ||
        wanted->resource == REST_PERMISSIONS)
        return false;
    switch (permitted->resource) {
    case REST_DATABASES:
        return true;
    case REST_CONTAINERS:
        return below_container(wanted->resource) && same_owner(permitted, wanted);
    default:
        return one_covers(permitted, wanted, operation);
    }
}
