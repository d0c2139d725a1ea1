/* The first line is a path with perhaps a query, the rest an authorization header, as a stranger
 * may send them. Holds that
 *  - a route that is taken has what its resource needs, and no empty name;
 *  - the link that is signed has no slash at its ends;
 *  - a path made of the decoded names, escaped again, is the same route. */
#include "front/kit/authorize.h"
#include "front/rest/route.h"
#include "fuzz/fuzz.h"

static void check_names(const struct rest_route *route, bool has_query)
{
    bool below = route->resource != REST_ACCOUNT && route->resource != REST_DATABASES &&
                 route->resource != REST_OFFERS && route->resource != REST_ADDRESSES &&
                 route->resource != REST_MEDIA && route->resource != REST_TOPOLOGY;

    FUZZ_CHECK(route->resource < REST_RESOURCE_COUNT);
    FUZZ_CHECK(!below || route->database.len > 0);
    FUZZ_CHECK(!route->account.data || route->prefix.len > 1);
    if (route->resource == REST_ITEMS || route->resource == REST_PERMISSIONS)
        FUZZ_CHECK(route->owner.len > 0);
    if (route->resource != REST_ACCOUNT)
        FUZZ_CHECK(!route->single || route->id.len > 0);
    if (route->link_raw.len && !has_query) /* what looks like a query may belong to an item's id */
        FUZZ_CHECK(route->link_raw.data[0] != '/' &&
                   route->link_raw.data[route->link_raw.len - 1] != '/');
}

/* Every byte of a name as an escape. */
static struct slice escaped(struct slice name, struct arena *arena)
{
    uint8_t *text = arena_alloc(arena, name.len * 3 + 1);

    for (size_t i = 0; i < name.len; i++)
        snprintf((char *)text + i * 3, 4, "%%%02X", name.data[i]);
    return slice_of(text, name.len * 3);
}

static void check_item_again(const struct rest_route *route, struct arena *arena)
{
    struct slice database = escaped(route->database, arena), owner = escaped(route->owner, arena);
    struct slice id = escaped(route->id, arena);
    struct slice path = arena_printf(arena, "/dbs/%.*s/colls/%.*s/docs/%.*s", SLICE_ARG(database),
                                     SLICE_ARG(owner), SLICE_ARG(id));
    struct rest_route again;
    struct error err;

    FUZZ_CHECK(rest_route_parse(path, SLICE_NONE, arena, &again, &err));
    FUZZ_CHECK(again.resource == REST_ITEMS && again.single);
    FUZZ_CHECK(slice_equal(again.database, route->database));
    FUZZ_CHECK(slice_equal(again.owner, route->owner));
    FUZZ_CHECK(slice_equal(again.id, route->id));
    FUZZ_CHECK(slice_equal(again.link, route->link));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice line = slice_of(data, size), header = SLICE(""), path, query = SLICE_NONE;
    struct front_authorization authorization;
    struct rest_route route;
    struct error err;

    (void)slice_split(line, '\n', &line, &header);
    path = line;
    (void)slice_split(line, '?', &path, &query);
    if (rest_route_parse(path, query, arena, &route, &err)) {
        check_names(&route, query.data != NULL);
        if (route.resource == REST_ITEMS && route.single)
            check_item_again(&route, arena);
    }
    if (front_authorization_parse(header, arena, &authorization))
        FUZZ_CHECK(authorization.type.data && authorization.sig.data);
    return 0;
}
