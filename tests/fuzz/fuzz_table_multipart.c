/* The first line is the type of a body, the rest the body of an entity group transaction, as a
 * stranger may send them. Holds that
 *  - what is taken has between one and the most parts, each with a method and a target;
 *  - all of it lies within the body;
 *  - each target and body can be looked at as a request of the API without harm. */
#include "front/table/entity.h"
#include "front/table/multipart.h"
#include "fuzz/fuzz.h"

static bool within(struct slice part, struct slice whole)
{
    return part.len == 0 ||
           (part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
}

static void part_check(const struct table_part *part, struct slice body, struct arena *arena)
{
    struct slice path = part->target, query = SLICE_NONE, document;
    struct table_parameters parameters;
    struct table_route route;
    struct table_keys keys = {0};
    struct error err;

    FUZZ_CHECK(part->method.len > 0 && part->target.len > 0);
    FUZZ_CHECK(within(part->method, body) && within(part->target, body) &&
               within(part->body, body));
    FUZZ_CHECK(part->header_count <= TABLE_PART_HEADERS_MAX);
    for (size_t i = 0; i < part->header_count; i++)
        FUZZ_CHECK(part->headers[i].name.len > 0);
    (void)slice_split(path, '?', &path, &query);
    if (table_parameters_parse(query, arena, &parameters, &err) &&
        table_route_parse(path, &parameters, arena, &route, &err) && route.resource == TABLE_ENTITY)
        FUZZ_CHECK(route.keys.partition.data && route.keys.row.data);
    if (table_entity_read(part->body, &keys, arena, &document, &err))
        FUZZ_CHECK(keys.partition.data && keys.row.data && document.len > 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice type = slice_of(data, size), body = SLICE("");
    struct table_multipart multipart;
    struct error err;

    (void)slice_split(type, '\n', &type, &body);
    if (!table_multipart_read(type, body, arena, &multipart, &err))
        return 0;
    FUZZ_CHECK(multipart.count >= 1 && multipart.count <= TABLE_PARTS_MAX);
    FUZZ_CHECK(multipart.changeset || multipart.count == 1);
    for (size_t i = 0; i < multipart.count; i++)
        part_check(&multipart.parts[i], body, arena);
    return 0;
}
