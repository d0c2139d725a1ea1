/* From the path of a request to what it names.
 *
 * A path is a chain of words and names (/dbs/shop/colls/orders/docs/7); one that ends with a word
 * is the feed of all of them. Tables say which words may stand below which resource, so that the
 * depth of the tree is in levels_parse and nothing else knows it. What is meant by the verb and the
 * headers is not looked at here: one path has create, query and batch on it, and the handlers tell
 * them apart.
 *
 * The path is split first and each segment decoded then, so that an escaped slash belongs to a
 * name. Raw and decoded forms are both kept to the end: clients sign the link of a resource, some
 * of them as they sent it and some as they meant it. A first segment that is none of the known
 * words is the name of an account, as the emulator has it; its bytes are kept as the prefix that
 * links in answers begin with.
 *
 * Two habits of clients are met here, so that nobody behind has to know them: JavaScript leaves a
 * question mark in the id of an item as it is, and the deletion of a partition is signed with
 * another type and a shorter link than its path says.
 *
 * A table with patterns of whole paths was weighed. There would be a row for each of some thirty
 * shapes, with the same prefixes over and over, and a worse message for what fits none. */
#include "front/rest/route.h"

enum { SEGMENTS_MAX = 12 };

/* A path as its segments. */
struct segments {
    struct slice raw[SEGMENTS_MAX], decoded[SEGMENTS_MAX];
    size_t count;
};

static bool segments_split(struct slice path, struct arena *arena, struct segments *ret_segments,
                           struct error *err)
{
    ret_segments->count = 0;
    while (path.len) {
        struct slice segment = path, rest = SLICE_NONE;
        bool more = slice_split(path, '/', &segment, &rest);

        if (ret_segments->count == SEGMENTS_MAX)
            return error_set(err, ERROR_NOT_FOUND, "the path has more than %d segments",
                             SEGMENTS_MAX);
        if (segment.len == 0)
            return error_set(err, ERROR_BAD_REQUEST, "the path has an empty segment");
        if (!front_percent_decode(segment, arena, &ret_segments->decoded[ret_segments->count]))
            return error_set(err, ERROR_BAD_REQUEST, "the path has a broken percent escape");
        ret_segments->raw[ret_segments->count++] = segment;
        path = more ? rest : SLICE_NONE;
    }
    return true;
}

static void segments_drop_first(struct segments *segments)
{
    segments->count--;
    memmove(segments->raw, segments->raw + 1, segments->count * sizeof *segments->raw);
    memmove(segments->decoded, segments->decoded + 1, segments->count * sizeof *segments->decoded);
}

static struct slice joined(const struct slice *parts, size_t count, struct arena *arena)
{
    size_t len = 0, at = 0;
    uint8_t *bytes;

    if (count == 0)
        return SLICE("");
    for (size_t i = 0; i < count; i++)
        len += parts[i].len + 1;
    bytes = arena_alloc(arena, len);
    for (size_t i = 0; i < count; i++) {
        if (i)
            bytes[at++] = '/';
        memcpy(bytes + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return slice_of(bytes, at);
}

/* What may stand where in a path. */
struct place {
    const char *word;
    enum rest_resource resource;
};

static const struct place roots[] = {
    {"dbs", REST_DATABASES},       {"offers", REST_OFFERS}, {"_orrery", REST_ADMIN},
    {"addresses", REST_ADDRESSES}, {"media", REST_MEDIA},   {"topology", REST_TOPOLOGY},
};

static const struct place below_database[] = {
    {"colls", REST_CONTAINERS},
    {"users", REST_USERS},
    {"clientencryptionkeys", REST_ENCRYPTION_KEYS},
};

static const struct place below_container[] = {
    {"docs", REST_ITEMS},        {"pkranges", REST_PKRANGES},
    {"sprocs", REST_PROCEDURES}, {"triggers", REST_TRIGGERS},
    {"udfs", REST_FUNCTIONS},    {"conflicts", REST_CONFLICTS},
    {"schemas", REST_SCHEMAS},   {"operations", REST_PARTITION_DELETE},
};

static const struct place below_user[] = {{"permissions", REST_PERMISSIONS}};

static const struct place below_item[] = {{"attachments", REST_ATTACHMENTS}};

static const struct place *place_find(const struct place *places, size_t count, struct slice word)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(word, slice_of_text(places[i].word)))
            return &places[i];
    return NULL;
}

static bool nothing_there(struct slice word, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "the API has no resource \"%.*s\" at this place",
                     (int)MIN(word.len, (size_t)64), (const char *)word.data);
}

/* The word at an even place and, behind it, perhaps the name of one. */
static bool level_enter(struct rest_route *route, const struct segments *segments, size_t at,
                        const struct place *places, size_t place_count, struct error *err)
{
    const struct place *place = place_find(places, place_count, segments->decoded[at]);

    if (!place)
        return nothing_there(segments->decoded[at], err);
    route->resource = place->resource;
    route->type = segments->decoded[at];
    route->single = segments->count > at + 1;
    route->id = route->single ? segments->decoded[at + 1] : SLICE_NONE;
    return true;
}

static bool levels_parse(struct rest_route *route, const struct segments *segments,
                         struct error *err)
{
    if (!level_enter(route, segments, 0, roots, ARRAY_LEN(roots), err))
        return false;
    if (route->resource != REST_DATABASES || segments->count <= 2)
        return segments->count <= 2 || nothing_there(segments->decoded[2], err);
    route->database = route->id;
    if (!level_enter(route, segments, 2, below_database, ARRAY_LEN(below_database), err))
        return false;
    if (segments->count <= 4)
        return true;
    route->owner = route->id;
    if (route->resource == REST_CONTAINERS) {
        if (!level_enter(route, segments, 4, below_container, ARRAY_LEN(below_container), err))
            return false;
    } else if (route->resource == REST_USERS) {
        if (!level_enter(route, segments, 4, below_user, ARRAY_LEN(below_user), err))
            return false;
    } else {
        return nothing_there(segments->decoded[4], err);
    }
    if (segments->count <= 6)
        return true;
    if (route->resource != REST_ITEMS || segments->count > 8)
        return nothing_there(segments->decoded[6], err);
    return level_enter(route, segments, 6, below_item, ARRAY_LEN(below_item), err);
}

/* What a client signs besides verb, type and date. */
static void link_make(struct rest_route *route, const struct segments *segments,
                      struct arena *arena)
{
    size_t count = segments->count;

    if (route->resource == REST_PARTITION_DELETE) {
        route->type = SLICE("partitionkey");
        count -= 2;
    } else if (!route->single) {
        count--;
    }
    route->link = joined(segments->decoded, count, arena);
    route->link_raw = joined(segments->raw, count, arena);
}

/* JavaScript leaves a ? in an item's id as it is, so what looks like a query belongs to the id. */
static bool id_take_query(struct segments *segments, struct slice query, struct arena *arena,
                          struct error *err)
{
    size_t last = segments->count - 1;
    struct slice parts[] = {segments->raw[last], query};
    uint8_t *bytes = arena_alloc(arena, parts[0].len + 1 + query.len);

    memcpy(bytes, parts[0].data, parts[0].len);
    bytes[parts[0].len] = '?';
    if (query.len)
        memcpy(bytes + parts[0].len + 1, query.data, query.len);
    segments->raw[last] = slice_of(bytes, parts[0].len + 1 + query.len);
    if (!front_percent_decode(segments->raw[last], arena, &segments->decoded[last]))
        return error_set(err, ERROR_BAD_REQUEST, "the path has a broken percent escape");
    return true;
}

bool rest_route_parse(struct slice path, struct slice query, struct arena *arena,
                      struct rest_route *ret_route, struct error *err)
{
    struct rest_route route = {.resource = REST_ACCOUNT, .single = true, .link = SLICE("")};
    struct segments segments;

    if (path.len == 0 || path.data[0] != '/')
        return error_set(err, ERROR_BAD_REQUEST, "the path does not begin with a slash");
    path = slice_skip(path, 1);
    path = front_slashes_drop(path);
    if (!segments_split(path, arena, &segments, err))
        return false;
    if (segments.count && !place_find(roots, ARRAY_LEN(roots), segments.decoded[0])) {
        route.account = segments.decoded[0];
        route.prefix = slice_of(segments.raw[0].data - 1, segments.raw[0].len + 1);
        segments_drop_first(&segments);
    }
    if (segments.count == 0) {
        *ret_route = route;
        return true;
    }
    if (slice_equal(segments.decoded[0], SLICE("_orrery"))) {
        route.resource = REST_ADMIN;
        route.type = SLICE("_orrery");
        route.id = joined(segments.decoded + 1, segments.count - 1, arena);
        route.link = route.id;
        route.link_raw = joined(segments.raw + 1, segments.count - 1, arena);
        *ret_route = route;
        return true;
    }
    if (query.data && segments.count == 6 && !id_take_query(&segments, query, arena, err))
        return false;
    if (!levels_parse(&route, &segments, err))
        return false;
    if (route.resource == REST_PARTITION_DELETE &&
        !slice_equal(route.id, SLICE("partitionkeydelete")))
        return nothing_there(route.single ? route.id : SLICE("operations"), err);
    link_make(&route, &segments, arena);
    *ret_route = route;
    return true;
}
