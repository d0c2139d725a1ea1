#include "front/table/route.h"

#include "document/utf8.h"
#include "front/text.h"

enum { KEY_UNITS_MAX = 512, NAME_MIN = 3, NAME_MAX = 63 };

/* --- Parameters ------------------------------------------------------------------------------ */

static struct slice blanks_of_plus(struct slice text, struct arena *arena)
{
    uint8_t *bytes;

    if (text.len == 0 || !memchr(text.data, '+', text.len))
        return text;
    bytes = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        bytes[i] = text.data[i] == '+' ? ' ' : text.data[i];
    return slice_of(bytes, text.len);
}

static bool parameter_parse(struct slice part, struct arena *arena,
                            struct table_parameter *ret_parameter, struct error *err)
{
    struct slice name = part, value = SLICE("");

    (void)slice_split(part, '=', &name, &value);
    if (!front_percent_decode(name, arena, &ret_parameter->name))
        return error_set(err, ERROR_BAD_REQUEST, "the query string has a broken percent escape");
    if (slice_equal(ret_parameter->name, SLICE("$filter")) ||
        slice_equal(ret_parameter->name, SLICE("$select")))
        value = blanks_of_plus(value, arena);
    if (!front_percent_decode(value, arena, &ret_parameter->value))
        return error_set(err, ERROR_BAD_REQUEST, "the query string has a broken percent escape");
    if (utf8_valid_length(ret_parameter->value) != ret_parameter->value.len)
        return error_set(err, ERROR_BAD_REQUEST, "the query string is not UTF-8");
    return true;
}

bool table_parameters_parse(struct slice query, struct arena *arena,
                            struct table_parameters *ret_parameters, struct error *err)
{
    struct table_parameters parameters = {0};
    struct slice part, rest;

    for (; query.len; query = rest) {
        if (!slice_split(query, '&', &part, &rest)) {
            part = query;
            rest = SLICE_NONE;
        }
        if (part.len == 0)
            continue;
        if (!parameters.list)
            parameters.list = ARENA_ARRAY(arena, struct table_parameter, TABLE_PARAMETERS_MAX);
        if (parameters.count == TABLE_PARAMETERS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "the query string has more than %d parameters",
                             TABLE_PARAMETERS_MAX);
        if (!parameter_parse(part, arena, &parameters.list[parameters.count], err))
            return false;
        parameters.count++;
    }
    *ret_parameters = parameters;
    return true;
}

struct slice table_parameter(const struct table_parameters *parameters, struct slice name)
{
    for (size_t i = 0; i < parameters->count; i++)
        if (slice_equal(parameters->list[i].name, name))
            return parameters->list[i].value;
    return SLICE_NONE;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* Reads 'text' at the start of *text, with two quotes for one inside, and moves *text behind. */
static bool quoted_take(struct slice *text, struct arena *arena, struct slice *ret_value)
{
    uint8_t *bytes;
    size_t len = 0, at = 1;

    if (text->len < 2 || text->data[0] != '\'')
        return false;
    bytes = arena_alloc(arena, text->len);
    for (;;) {
        if (at == text->len)
            return false;
        if (text->data[at] == '\'') {
            if (at + 1 == text->len || text->data[at + 1] != '\'')
                break;
            at++;
        }
        bytes[len++] = text->data[at++];
    }
    *text = slice_skip(*text, at + 1);
    *ret_value = slice_of(bytes, len);
    return true;
}

static bool key_take(struct slice *text, struct arena *arena, struct table_keys *keys)
{
    struct slice *value;

    if (slice_starts_with(*text, SLICE("PartitionKey="))) {
        *text = slice_skip(*text, 13);
        value = &keys->partition;
    } else if (slice_starts_with(*text, SLICE("RowKey="))) {
        *text = slice_skip(*text, 7);
        value = &keys->row;
    } else {
        return false;
    }
    return !value->data && quoted_take(text, arena, value);
}

/* PartitionKey='a',RowKey='b', in either order. */
static bool keys_parse(struct slice text, struct arena *arena, struct table_keys *ret_keys)
{
    struct table_keys keys = {0};

    if (!key_take(&text, arena, &keys) || text.len == 0 || text.data[0] != ',')
        return false;
    text = slice_skip(text, 1);
    while (text.len && text.data[0] == ' ')
        text = slice_skip(text, 1);
    if (!key_take(&text, arena, &keys) || text.len)
        return false;
    *ret_keys = keys;
    return true;
}

size_t table_text_units(struct slice text)
{
    size_t units = 0;

    for (size_t i = 0; i < text.len; i++)
        units += !utf8_continues(text.data[i]) + (text.data[i] >= 0xF0);
    return units;
}

static bool key_check(const char *name, struct slice key, struct error *err)
{
    if (key.len > KEY_UNITS_MAX && table_text_units(key) > KEY_UNITS_MAX)
        return error_set(err, ERROR_TABLE_KEY_TOO_LARGE, "%s has more than %d characters", name,
                         KEY_UNITS_MAX);
    for (size_t i = 0; i < key.len; i++) {
        uint8_t c = key.data[i];

        if (c == '/' || c == '\\' || c == '#' || c == '?' || c < 0x20 || c == 0x7F ||
            (c == 0xC2 && i + 1 < key.len && key.data[i + 1] >= 0x80 && key.data[i + 1] <= 0x9F))
            return error_set(err, ERROR_TABLE_KEY_CHARACTER,
                             "%s has a character no key may have: / \\ # ? or a control character",
                             name);
    }
    return true;
}

bool table_keys_check(const struct table_keys *keys, struct error *err)
{
    return key_check("PartitionKey", keys->partition, err) && key_check("RowKey", keys->row, err);
}

bool table_name_check(struct slice name, struct error *err)
{
    bool good = !slice_equal_nocase(name, SLICE("tables"));

    if (name.len < NAME_MIN || name.len > NAME_MAX)
        return error_set(err, ERROR_TABLE_OUT_OF_RANGE,
                         "the specified resource name length is not within the permissible limits: "
                         "%d to %d characters",
                         NAME_MIN, NAME_MAX);
    for (size_t i = 0; good && i < name.len; i++) {
        uint8_t c = name.data[i], small = c | 0x20;

        good = (small >= 'a' && small <= 'z') || (i > 0 && c >= '0' && c <= '9');
    }
    return good || error_set(err, ERROR_TABLE_NAME,
                             "a table's name is made of letters and digits and begins with a "
                             "letter; \"tables\" is none");
}

/* --- Paths ----------------------------------------------------------------------------------- */

/* The account is there when something may follow it: a slash, or a query about the service. */
static struct slice account_take(struct slice path, const struct table_parameters *parameters,
                                 struct table_route *route)
{
    struct slice first = path, rest = SLICE("");
    bool more = slice_split(path, '/', &first, &rest);

    if (first.len == 0 || memchr(first.data, '(', first.len) || first.data[0] == '$' ||
        (!more && !slice_equal(table_parameter(parameters, SLICE("restype")), SLICE("service"))))
        return path;
    route->account = first;
    route->prefix = slice_of(first.data - 1, first.len + 1);
    return rest;
}

/* The Python library names the account of a secondary location twice: acme-secondary/acme/people().
 * A table of that name is asked for as it is anywhere. */
static struct slice twice_skip(struct slice path, const struct table_parameters *parameters,
                               struct table_route *route)
{
    struct table_route again = {0};
    struct slice rest;

    if (!route->secondary)
        return path;
    rest = account_take(path, parameters, &again);
    if (!slice_equal(again.account, route->account))
        return path;
    route->prefix.len += again.prefix.len;
    return rest;
}

static bool account_clean(struct table_route *route, struct arena *arena, struct error *err)
{
    static const struct slice ending = SLICE("-secondary");
    struct slice *name = &route->account;

    if (!front_percent_decode(*name, arena, name))
        return error_set(err, ERROR_BAD_REQUEST, "the path has a broken percent escape");
    route->secondary =
        name->len > ending.len && slice_equal(slice_skip(*name, name->len - ending.len), ending);
    if (route->secondary)
        *name = slice_first(*name, name->len - ending.len);
    return true;
}

static bool service_parse(const struct table_parameters *parameters, struct table_route *route,
                          struct error *err)
{
    struct slice comp = table_parameter(parameters, SLICE("comp"));

    if (slice_equal(comp, SLICE("properties")))
        route->resource = TABLE_PROPERTIES;
    else if (slice_equal(comp, SLICE("stats")))
        route->resource = TABLE_STATS;
    else if (comp.data)
        return error_set(err, ERROR_TABLE_PARAMETER, "comp must be properties or stats");
    return true;
}

/* name, name(), name(keys), Tables, Tables(), Tables('name'). */
static bool resource_parse(struct slice text, const struct table_parameters *parameters,
                           struct arena *arena, struct table_route *route, struct error *err)
{
    struct slice name = text, inside = SLICE_NONE;
    bool called = slice_split(text, '(', &name, &inside);
    bool tables;

    if (called) {
        if (inside.len == 0 || inside.data[inside.len - 1] != ')')
            return error_set(err, ERROR_BAD_REQUEST, "the path has an open parenthesis");
        inside.len--;
    }
    tables = slice_equal(name, SLICE("Tables"));
    if (inside.len == 0) {
        struct slice comp = table_parameter(parameters, SLICE("comp"));

        route->resource = tables ? TABLE_TABLES : TABLE_ENTITIES;
        route->table = tables ? SLICE_NONE : name;
        if (comp.data && (tables || !slice_equal(comp, SLICE("acl"))))
            return error_set(err, ERROR_TABLE_PARAMETER, "comp of a table must be acl");
        if (comp.data)
            route->resource = TABLE_ACCESS;
        return true;
    }
    if (tables) {
        route->resource = TABLE_ONE;
        if (quoted_take(&inside, arena, &route->table) && inside.len == 0)
            return true;
    } else {
        route->resource = TABLE_ENTITY;
        route->table = name;
        if (keys_parse(inside, arena, &route->keys))
            return true;
    }
    return error_set(err, ERROR_BAD_REQUEST,
                     "the path names no table or entity: Tables('name') or "
                     "name(PartitionKey='a',RowKey='b')");
}

bool table_route_parse(struct slice path, const struct table_parameters *parameters,
                       struct arena *arena, struct table_route *ret_route, struct error *err)
{
    struct table_route route = {.resource = TABLE_SERVICE};
    struct slice text;

    if (path.len == 0 || path.data[0] != '/')
        return error_set(err, ERROR_BAD_REQUEST, "the path does not begin with a slash");
    path = account_take(front_slashes_drop(slice_skip(path, 1)), parameters, &route);
    if (route.account.data && !account_clean(&route, arena, err))
        return false;
    path = twice_skip(path, parameters, &route);
    if (path.len == 0) {
        *ret_route = route;
        return service_parse(parameters, ret_route, err);
    }
    if (!front_percent_decode(path, arena, &text) || utf8_valid_length(text) != text.len)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the path has a broken percent escape or is not UTF-8");
    if (slice_equal(text, SLICE("$batch")))
        route.resource = TABLE_BATCH;
    else if (slice_equal(text, SLICE("$metadata")))
        route.resource = TABLE_METADATA;
    else if (!resource_parse(text, parameters, arena, &route, err))
        return false;
    *ret_route = route;
    return true;
}
