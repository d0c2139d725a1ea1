/* Nodes: shown, added, changed, drained, paused and removed; and how partitions are spread over
 * them. What opens and closes a store is the server's (hooks.h); all else is in the catalogue. */
#include "front/admin/call.h"

#include "balance/balancer.h"
#include "base/memory.h"
#include "catalogue/node.h"
#include "document/json.h"
#include "engine/guard.h"
#include "engine/standbys.h"

/* --- Showing --------------------------------------------------------------------------------- */

static void flag_append(struct buf *out, const char *name, bool flag)
{
    buf_printf(out, ",\"%s\":%s", name, flag ? "true" : "false");
}

static void figures_append(struct engine *engine, struct buf *out)
{
    struct engine_statistics figures;
    struct error ignored;

    if (!engine_statistics(engine, &figures, &ignored))
        return;
    flag_append(out, "durable", figures.durable);
    flag_append(out, "poisoned", figures.poisoned);
    admin_number_append(out, "bytesStored", figures.bytes_stored);
    if (figures.bytes_free != UINT64_MAX)
        admin_number_append(out, "bytesFree", figures.bytes_free);
    admin_number_append(out, "bytesResident", figures.bytes_resident);
    admin_number_append(out, "reads", figures.reads);
    admin_number_append(out, "writes", figures.writes);
    admin_number_append(out, "reconnects", figures.reconnects);
    if (figures.timeline) {
        flag_append(out, "replicated", figures.replicated);
        admin_number_append(out, "timeline", figures.timeline);
    }
}

static void state_append(const struct engine *engine, struct buf *out)
{
    struct engine_guard_status status;

    if (!engine_guard_status(engine, &status))
        return;
    admin_text(out, "state",
               slice_of_text(status.lost                         ? "lost"
                             : status.state == ENGINE_GUARD_DOWN ? "down"
                             : status.paused                     ? "paused"
                                             : engine_guard_state_name(status.state)));
    if (status.state == ENGINE_GUARD_DOWN)
        admin_text(out, "because", slice_of_text(status.reason));
    admin_number_append(out, "since", (uint64_t)(status.since_ms / 1000));
    admin_number_append(out, "downs", status.downs);
    admin_number_append(out, "refused", status.refused);
    admin_number_append(out, "heldBack", status.waited);
    admin_number_append(out, "calls", status.inside);
}

/* The host that is the primary just now is among them, and does not serve as a standby. */
static void standbys_append(const struct engine *engine, struct buf *out)
{
    const struct engine_standbys *standbys = engine_standbys_of(engine);

    if (!standbys)
        return;
    BUF_APPEND(out, ",\"standbys\":[");
    for (size_t i = 0; i < engine_standbys_count(standbys); i++) {
        struct engine_guard_status status;
        int64_t age_ms;

        buf_append_text(out, i ? ",{\"host\":" : "{\"host\":");
        document_json_write_string(slice_of_text(engine_standbys_name(standbys, i)), out);
        if (engine_guard_status(engine_standbys_at(standbys, i), &status)) {
            admin_text(out, "state", slice_of_text(engine_guard_state_name(status.state)));
            if (status.state == ENGINE_GUARD_DOWN)
                admin_text(out, "because", slice_of_text(status.reason));
        }
        if (engine_standbys_age(standbys, i, clock_monotonic_ms(), &age_ms))
            admin_number_append(out, "ageMs", (uint64_t)age_ms);
        admin_number_append(out, "reads", engine_standbys_reads(standbys, i));
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

static void attributes_append(const struct node_info *info, struct buf *out)
{
    admin_text(out, "region", slice_of_text(info->region));
    admin_text(out, "zone", slice_of_text(info->zone));
    BUF_APPEND(out, ",\"tags\":[");
    for (size_t i = 0; i < info->tag_count; i++)
        buf_printf(out, "%s\"%s\"", i ? "," : "", info->tags[i]);
    BUF_APPEND(out, "]");
    admin_number_append(out, "capacity", info->capacity_bytes);
    admin_number_append(out, "reserve", info->reserve_percent);
    flag_append(out, "draining", info->draining);
    flag_append(out, "pausedItself", info->paused);
    flag_append(out, "remembered", info->remembered);
}

/* What is on the node, or on its way to it. */
static void spans_append(const struct balancer_world *world, uint32_t number, struct buf *out)
{
    uint64_t bytes = 0;
    size_t count = 0;
    double heat = 0;

    for (size_t i = 0; i < world->span_count; i++)
        if (world->spans[i].span->node == number) {
            count++;
            bytes += world->figures[i].bytes;
            heat += world->figures[i].heat;
        }
    admin_number_append(out, "partitions", count);
    admin_number_append(out, "bytes", bytes);
    buf_printf(out, ",\"ruPerSecond\":%.2f", heat);
}

static void node_append(const struct balancer_world *world, const struct cluster *cluster,
                        const struct node_info *info, struct buf *out)
{
    const struct cluster_node *node = cluster_find(cluster, info->number);
    bool here = node && cluster_node_is_member(node);

    BUF_APPEND(out, "{");
    admin_text(out, "name", slice_of_text(info->name));
    if (here)
        admin_text(out, "url", engine_name(node->engine));
    flag_append(out, "root", here && node == cluster_at(cluster, 0));
    attributes_append(info, out);
    spans_append(world, info->number, out);
    if (here) {
        state_append(node->engine, out);
        figures_append(node->engine, out);
        standbys_append(node->engine, out);
    } else {
        admin_text(out, "state", SLICE("unknown"));
    }
    BUF_APPEND(out, "}");
}

static bool world_read(struct admin_call *call, struct balancer_world *world, struct error *err)
{
    struct balancer *balancer = call->services->balancer;

    if (!admin_need_owner(call, err))
        return false;
    if (!balancer)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server does not show its nodes");
    return balancer_world_read(balancer, world, err);
}

bool admin_nodes_list(struct admin_call *call, struct error *err)
{
    CLEANUP(balancer_world_done) struct balancer_world world = {0};
    const struct cluster *cluster = catalogue_cluster(call->services->catalogue);

    if (!world_read(call, &world, err))
        return false;
    BUF_APPEND(&call->body, "{\"nodes\":[");
    for (size_t i = 0; i < world.table->count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        node_append(&world, cluster, &world.table->list[i], &call->body);
    }
    BUF_APPEND(&call->body, "],\"pausedRegions\":[");
    for (size_t i = 0; i < world.table->region_count; i++)
        buf_printf(&call->body, "%s\"%s\"", i ? "," : "", world.table->regions[i]);
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

static bool node_answer(struct admin_call *call, struct slice name, uint16_t status,
                        struct error *err)
{
    CLEANUP(balancer_world_done) struct balancer_world world = {0};
    const struct node_info *info;

    if (!world_read(call, &world, err))
        return false;
    info = node_table_find(world.table, name);
    if (!info)
        return error_set(err, ERROR_NOT_FOUND, "there is no node \"%.*s\"",
                         (int)MIN(name.len, (size_t)NODE_NAME_SIZE), (const char *)name.data);
    node_append(&world, catalogue_cluster(call->services->catalogue), info, &call->body);
    call->status = status;
    return true;
}

bool admin_nodes_show(struct admin_call *call, struct error *err)
{
    return node_answer(call, call->names[0], 200, err);
}

/* --- Changing -------------------------------------------------------------------------------- */

static bool tags_text(const struct document_value *value, struct buf *text, struct error *err)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_STRING) {
        buf_append_slice(text, value->text);
        return true;
    }
    if (value->type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "tags is an array of texts");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return error_set(err, ERROR_BAD_REQUEST, "tags is an array of texts");
        buf_printf(text, "%s%.*s", text->len ? "," : "", SLICE_ARG(iter.value.text));
    }
    return true;
}

/* An attribute of the body as the text node_set takes; numbers as they are. */
static bool attribute_set(struct node_info *info, struct slice name,
                          const struct document_value *value, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    int64_t number;

    buf_init(&text, 4096);
    if (slice_equal(name, SLICE("tags"))) {
        if (!tags_text(value, &text, err))
            return false;
    } else if (value->type == DOCUMENT_STRING) {
        buf_append_slice(&text, value->text);
    } else if (document_to_int64(value, &number) && number >= 0) {
        buf_append_uint64(&text, (uint64_t)number);
    } else {
        return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" is a text or a number",
                         (int)MIN(name.len, (size_t)60), (const char *)name.data);
    }
    return node_set(info, name, buf_slice(&text), err);
}

/* Members of the body but name and url. */
static bool attributes_read(struct slice body, struct node_info *info, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("name")) && !slice_equal(iter.key, SLICE("url")) &&
            !attribute_set(info, iter.key, &iter.value, err))
            return false;
    return true;
}

static bool text_member(struct slice body, struct slice name, char *ret_text, size_t size,
                        struct error *err)
{
    struct document_value value;

    if (!document_find(body, name, &value) || value.type != DOCUMENT_STRING || !value.text.len ||
        value.text.len >= size || memchr(value.text.data, '\0', value.text.len))
        return error_set(err, ERROR_BAD_REQUEST, "the node has no %.*s, or it is no text that fits",
                         SLICE_ARG(name));
    memcpy(ret_text, value.text.data, value.text.len);
    return true;
}

static void balancer_tell(const struct admin_call *call)
{
    if (call->services->balancer)
        balancer_wake(call->services->balancer);
}

bool admin_nodes_add(struct admin_call *call, struct error *err)
{
    CLEANUP(memory_free) struct node_info *info = MEMORY_NEW(struct node_info);
    const struct admin_hooks *hooks = call->hooks;
    struct slice body;

    if (!admin_need_owner(call, err) || !front_http_body(&call->over_http, &body, err))
        return false;
    if (!hooks->node_add)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server takes no nodes");
    info->reserve_percent = NODE_RESERVE_DEFAULT;
    info->remembered = true;
    if (!text_member(body, SLICE("name"), info->name, sizeof info->name, err) ||
        !node_name_check(slice_of_text(info->name), err) ||
        !text_member(body, SLICE("url"), info->url, sizeof info->url, err) ||
        !attributes_read(body, info, err) || !hooks->node_add(hooks->context, info, err))
        return false;
    explicit_bzero(info->url, sizeof info->url);
    balancer_tell(call);
    return node_answer(call, slice_of_text(info->name), 201, err);
}

bool admin_nodes_change(struct admin_call *call, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    struct node_info *info;
    struct slice body;

    if (!admin_need_owner(call, err) || !front_http_body(&call->over_http, &body, err))
        return false;
    table = catalogue_nodes(call->services->catalogue);
    info = node_table_find(table, call->names[0]);
    if (info &&
        (!attributes_read(body, info, err) ||
         !catalogue_node_change(call->services->catalogue, call->names[0],
                                &(struct catalogue_node_settings){.attributes = info}, err)))
        return false;
    balancer_tell(call);
    return node_answer(call, call->names[0], 200, err);
}

bool admin_nodes_remove(struct admin_call *call, struct error *err)
{
    const struct admin_hooks *hooks = call->hooks;

    if (!admin_need_owner(call, err))
        return false;
    if (!hooks->node_remove)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server keeps its nodes");
    if (!hooks->node_remove(hooks->context, call->names[0], err))
        return false;
    call->status = 204;
    return true;
}

static bool node_flag(struct admin_call *call, const struct catalogue_node_settings *change,
                      struct error *err)
{

    if (!admin_need_owner(call, err) ||
        !catalogue_node_change(call->services->catalogue, call->names[0], change, err))
        return false;
    balancer_tell(call);
    return node_answer(call, call->names[0], 200, err);
}

static const bool yes = true, no = false;

bool admin_nodes_drain(struct admin_call *call, struct error *err)
{
    return node_flag(call, &(struct catalogue_node_settings){.draining = &yes}, err);
}

bool admin_nodes_undrain(struct admin_call *call, struct error *err)
{
    return node_flag(call, &(struct catalogue_node_settings){.draining = &no}, err);
}

bool admin_nodes_pause(struct admin_call *call, struct error *err)
{
    return node_flag(call, &(struct catalogue_node_settings){.paused = &yes}, err);
}

bool admin_nodes_resume(struct admin_call *call, struct error *err)
{
    return node_flag(call, &(struct catalogue_node_settings){.paused = &no}, err);
}

bool admin_nodes_accept_loss(struct admin_call *call, struct error *err)
{
    return admin_need_owner(call, err) &&
           catalogue_node_accept_loss(call->services->catalogue, call->names[0], err) &&
           node_answer(call, call->names[0], 200, err);
}

bool admin_regions_pause(struct admin_call *call, struct error *err)
{
    return admin_need_owner(call, err) &&
           catalogue_region_pause(call->services->catalogue, call->names[0], true, err) &&
           admin_nodes_list(call, err);
}

bool admin_regions_resume(struct admin_call *call, struct error *err)
{
    return admin_need_owner(call, err) &&
           catalogue_region_pause(call->services->catalogue, call->names[0], false, err) &&
           admin_nodes_list(call, err);
}

/* --- Rebalancing ----------------------------------------------------------------------------- */

static const char *name_of(const struct balancer_world *world, uint32_t number)
{
    const struct node_info *info = node_table_find_number(world->table, number);

    return info ? info->name : "?";
}

static void move_append(const struct balancer_world *world, const struct rebalance_move *move,
                        struct buf *out)
{
    const struct balancer_span *span = &world->spans[move->span];

    BUF_APPEND(out, "{");
    admin_text(out, "account", span->account);
    admin_text(out, "database", span->database);
    admin_text(out, "container", container_info(span->container)->id);
    admin_number_append(out, "partition", span->span->id);
    admin_text(out, "from", slice_of_text(name_of(world, move->from)));
    admin_text(out, "to", slice_of_text(name_of(world, move->to)));
    admin_number_append(out, "bytes", span->figures.bytes);
    buf_printf(out, ",\"ruPerSecond\":%.2f", span->figures.heat);
    admin_text(out, "reason", slice_of_text(rebalance_reason_name(move->reason)));
    BUF_APPEND(out, "}");
}

static void status_append(const struct balancer_status *status, struct buf *out)
{
    flag_append(out, "rebalancing", status->rebalancing);
    admin_number_append(out, "movesDone", status->moves_done);
    admin_number_append(out, "movesPlanned", status->moves_planned);
    BUF_APPEND(out, ",\"problems\":[");
    for (size_t i = 0; i < status->problem_count; i++) {
        const struct balancer_problem *problem = &status->problems[i];

        buf_printf(out, "%s{", i ? "," : "");
        admin_text(out, "container", slice_of_text(problem->container));
        admin_number_append(out, "partition", problem->partition);
        admin_text(out, "problem", slice_of_text(problem->text));
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

bool admin_rebalance_show(struct admin_call *call, struct error *err)
{
    CLEANUP(balancer_world_done) struct balancer_world world = {0};
    CLEANUP(memory_free) struct balancer_status *status = NULL;
    struct buf *out = &call->body;
    struct rebalance_plan plan;

    if (!world_read(call, &world, err))
        return false;
    status = balancer_status(call->services->balancer);
    balancer_world_plan(&world, false, &plan);
    BUF_APPEND(out, "{\"moves\":[");
    for (size_t i = 0; i < plan.count; i++) {
        if (i)
            BUF_APPEND(out, ",");
        move_append(&world, &plan.moves[i], out);
    }
    buf_printf(out, "],\"spreadBefore\":%.4f,\"spreadAfter\":%.4f,\"migrating\":%zu",
               plan.spread_before, plan.spread_after, world.migrating);
    status_append(status, out);
    BUF_APPEND(out, "}");
    call->status = 200;
    return true;
}

static bool rebalance_set(struct admin_call *call, bool on, struct error *err)
{
    struct balancer *balancer = call->services->balancer;

    if (!admin_need_owner(call, err))
        return false;
    if (!balancer)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server does not move partitions");
    return balancer_rebalance(balancer, on, err) && admin_rebalance_show(call, err);
}

bool admin_rebalance_begin(struct admin_call *call, struct error *err)
{
    return rebalance_set(call, true, err);
}

bool admin_rebalance_cancel(struct admin_call *call, struct error *err)
{
    return rebalance_set(call, false, err);
}
