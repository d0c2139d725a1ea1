#include "front/table/call.h"

#include "maintain/pauses.h"
#include "partition/synthetic.h"

struct slice table_call_account(const struct table_call *call)
{
    return call->route.account.data ? call->route.account : call->account.id;
}

struct slice table_call_root(struct table_call *call)
{
    struct slice host = net_http_header(call->batch ? call->batch : call->http, SLICE("host"));

    return arena_printf(call->arena, "%s://%.*s%.*s", call->http->tls ? "https" : "http",
                        SLICE_ARG(host), SLICE_ARG(call->route.prefix));
}

static bool contains(struct slice text, const char *part)
{
    return text.len && memmem(text.data, text.len, part, strlen(part));
}

bool table_call_level(struct table_call *call, struct error *err)
{
    struct slice wanted = table_parameter(&call->parameters, SLICE("$format"));

    if (!wanted.data)
        wanted = table_call_header(call, SLICE("accept"));
    call->level = contains(wanted, "odata=nometadata")     ? TABLE_LEVEL_NONE
                  : contains(wanted, "odata=fullmetadata") ? TABLE_LEVEL_FULL
                                                           : TABLE_LEVEL_MINIMAL;
    if (contains(wanted, "application/atom+xml") && !contains(wanted, "json") &&
        !contains(wanted, "*/*"))
        return error_set(err, ERROR_TABLE_ATOM, "ask for application/json");
    return true;
}

bool table_container_fits(const struct container *container)
{
    const struct partition_definition *key =
        &definition_fields(container_definition(container))->key;

    return !partition_synthetic_is_random(key) && key->path_count == 1 &&
           key->paths[0].count == 1 &&
           slice_equal(key->paths[0].segments[0].name, SLICE("PartitionKey"));
}

struct container *table_container_find(struct database *database, struct slice name)
{
    for (size_t i = 0; i < database_container_count(database); i++) {
        struct container *container = database_container(database, i);

        if (slice_equal_nocase(container_info(container)->id, name))
            return container;
    }
    return NULL;
}

static bool missing(struct slice name, struct error *err)
{
    return error_set(err, ERROR_TABLE_MISSING, "table \"%.*s\" does not exist",
                     (int)MIN(name.len, (size_t)64), (const char *)name.data);
}

/* By the name as it is; where there is none, by one that differs in letter case. */
static bool container_open(struct table_call *call, struct slice name,
                           struct container **ret_container, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct catalogue *catalogue = call->services->catalogue;
    struct container *found;
    struct error unused;

    if (catalogue_container_open(catalogue, call->account.id, SLICE(FRONT_TABLE_DATABASE), name,
                                 ret_container, err)) {
        if (slice_equal(container_info(*ret_container)->id, name))
            return true;
        container_unref(*ret_container); /* by its _rid, which is no name of a table */
    } else if (err->code != ERROR_NOT_FOUND && err->code != ERROR_OWNER_NOT_FOUND) {
        return false;
    }
    if (!catalogue_database_open(catalogue, call->account.id, SLICE(FRONT_TABLE_DATABASE),
                                 &database, &unused))
        return missing(name, err);
    found = table_container_find(database, name);
    if (!found)
        return missing(name, err);
    *ret_container = container_ref(found);
    return true;
}

bool table_space_open(struct table_call *call, struct slice name, struct table_space *ret_space,
                      struct error *err)
{
    struct container *container;

    if (!container_open(call, name, &container, err))
        return false;
    if (!table_container_fits(container)) {
        container_unref(container);
        return missing(name, err);
    }
    front_call_observe(&call->front, container);
    if (!pauses_check(call->services->pauses, container,
                      observed_operation_changes(call->observed.operation), &call->wait_ms, err)) {
        container_unref(container);
        return false;
    }
    *ret_space = (struct table_space){
        .container = container,
        .name = container_info(container)->id,
        .space = container_space(container, call->services->clock, call->services->gates)};
    /* keys have limits of their own here, in characters and not in bytes */
    ret_space->space.id_bytes_max = 0;
    return true;
}

bool table_space_look(const struct table_call *call, struct table_space *space, struct error *err)
{
    const struct front_consistency *own = &call->services->consistency;
    struct item_reading_options options;
    enum item_level level;

    assert(!space->reading && space->container);
    if (!table_call_consistency(call, &level, err))
        return false;
    options = front_consistency_reading(own, level);
    if (!call->primary)
        space->reading = item_reading_begin(&space->space, &options);
    return true;
}

void table_space_served(struct table_call *call, const struct table_space *space,
                        const struct partition_span *spans, size_t count)
{
    CLEANUP(buf_done) struct buf list;

    buf_init(&list, BUF_DEFAULT_MAX);
    front_served_append(space->container, space->reading, spans, count, &list);
    table_answer_header(call, SLICE("x-orrery-served-by"), buf_slice(&list));
}

bool table_call_consistency(const struct table_call *call, enum item_level *ret_level,
                            struct error *err)
{
    return front_consistency_find(&call->services->consistency,
                                  table_call_header(call, SLICE("x-ms-consistency-level")),
                                  ret_level, err);
}

void table_space_close(struct table_space *space)
{
    item_reading_end(TAKE(space->reading));
    space->space.reading = NULL;
    container_unref(space->container);
    space->container = NULL;
}
