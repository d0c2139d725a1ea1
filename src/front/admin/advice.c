/* Advice on the partition key of a container: from a sample of its items and the record of what was
 * asked of it lately. */
#include "front/admin/call.h"

#include "advise/advise.h"
#include "advise/records.h"
#include "advise/what_if_plot.h"
#include "catalogue/container_space.h"
#include "document/json.h"
#include "item/sample.h"

enum {
    ITEMS_MAX = 20000,
    ENTRIES_MAX = 2000000,
    LINES_MAX = 10000,
    ADVICE_GAP_MS = 60 * 1000,
    WHAT_IF_GAP_MS = 10 * 60 * 1000, /* long enough for all that can be saved for a burst */
};

struct sampling {
    struct traffic *traffic;
    struct advise_workload *workload;
};

static void item_take(void *context, const struct item *item)
{
    struct sampling *sampling = context;

    traffic_item(sampling->traffic, sampling->workload, item->document,
                 (uint32_t)item->document.len, item->header.wall_ms);
}

static bool container_open(struct admin_call *call, struct container **ret_container,
                           struct error *err)
{

    if (!call->services->traffic)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "traffic is not recorded here: start the server with advise.record=true");
    return catalogue_container_open(call->services->catalogue, call->account.id, call->names[0],
                                    call->names[1], ret_container, err);
}

/* What was asked of it lately: as memory has it, and before that as it was written down. */
static bool records_copy(struct admin_call *call, const struct container *container,
                         struct buf *out, struct error *err)
{
    uint64_t number = container_rid(container).owner;

    if (call->services->keeper)
        return keeper_copy(call->services->keeper, number, out, err);
    (void)traffic_copy(call->services->traffic, number, 0, out);
    return true;
}

/* gap_ms_max: how long a time without operations counts at most. */
static bool workload_make(struct admin_call *call, struct container *container, int64_t gap_ms_max,
                          struct advise_workload **ret_workload, struct error *err)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    struct item_space space = container_space(container, call->services->clock, NULL);
    struct sampling sampling = {call->services->traffic, workload};
    CLEANUP(buf_done) struct buf records;
    uint64_t seen;

    buf_init(&records, SIZE_MAX / 2);
    if (!sample_items(&space,
                      &(struct sample_request){.items_max = ITEMS_MAX,
                                               .entries_max = ENTRIES_MAX,
                                               .seed = 1,
                                               .take = item_take,
                                               .context = &sampling},
                      &seen, err))
        return false;
    if (!records_copy(call, container, &records, err))
        return false;
    (void)records_read(buf_slice(&records), workload);
    advise_workload_finish(workload);
    advise_workload_close_gaps(workload, gap_ms_max);
    *ret_workload = TAKE(workload);
    return true;
}

/* The key the container has, as far as items or operations show its paths. */
static bool current_key(const struct container *container, const struct advise_workload *workload,
                        struct advise_key *ret_key)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;

    *ret_key = (struct advise_key){.kind = definition->path_count > 1 ? ADVISE_HIERARCHICAL
                                                                      : ADVISE_PROPERTY};
    for (size_t i = 0; i < definition->path_count; i++) {
        CLEANUP(buf_done) struct buf path;
        int at;

        buf_init(&path, BUF_DEFAULT_MAX);
        document_path_append(&definition->paths[i], &path);
        at = advise_workload_path(workload, buf_slice(&path));
        if (at < 0)
            return false;
        ret_key->paths[ret_key->path_count++] = (uint8_t)at;
    }
    return ret_key->path_count > 0;
}

static uint32_t partitions_of(const struct container *container)
{
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    return (uint32_t)count;
}

/* What requests are held to today; 0: to nothing, for nobody bought anything. */
static uint64_t ru_of(const struct container *container)
{
    return container_is_enforced(container) ? container_offer(container)->ru : 0;
}

/* Views that have the container's items by another property. */
static bool views_find(struct admin_call *call, const struct container *container,
                       struct advise_options *options, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct advise_view *views;

    if (!call->services->view_index_path ||
        !definition_fields(container_definition(container))->followed)
        return true;
    if (!catalogue_database_open(call->services->catalogue, call->account.id, call->names[0],
                                 &database, err))
        return false;
    views = ARENA_ARRAY(call->arena, struct advise_view, database_container_count(database) + 1);
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *view = database_container(database, i);
        const struct definition_view *form = &definition_fields(container_definition(view))->view;
        struct advise_view *to = &views[options->view_count];

        if (!form->source_count ||
            form->source_rids[0].owner != container_info(container)->number ||
            !call->services->view_index_path(view, call->arena, &to->path))
            continue;
        to->name = arena_copy(call->arena, container_info(view)->id);
        options->view_count++;
    }
    options->views = views;
    return true;
}

bool admin_advice_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(advise_workload_free) struct advise_workload *workload = NULL;
    struct advise_options options = {0};
    struct advise_report report;
    struct advise_key current;
    uint64_t partitions;

    if (!container_open(call, &container, err) ||
        !admin_number(call, SLICE("partitions"), 1, 1024, 16, &partitions, err) ||
        !admin_decimal(call, SLICE("load"), 0.001, 1e9, 1, &options.load, err) ||
        !workload_make(call, container, ADVICE_GAP_MS, &workload, err) ||
        !views_find(call, container, &options, err))
        return false;
    options.partitions = (uint32_t)partitions;
    options.target = (struct advise_target){
        .database = call->names[0],
        .container = call->names[1],
        .fixed =
            container_is_fixed(container) ||
            slice_equal(call->names[0], SLICE(FRONT_TABLE_DATABASE)), /* its key is PartitionKey */
    };
    options.partition_ru_max = container_limits(container)->partition_ru_max;
    options.logical_bytes_max = container_limits(container)->logical_partition_bytes_max;
    if (current_key(container, workload, &current)) {
        options.current = &current;
        options.current_partitions = partitions_of(container);
    }
    report = advise_report_make(workload, &options, call->arena);
    if (slice_equal(admin_parameter(call, SLICE("format")), SLICE("text"))) {
        CLEANUP(buf_done) struct buf text;

        buf_init(&text, BUF_DEFAULT_MAX);
        advise_report_text(workload, &report, &text);
        BUF_APPEND(&call->body, "{");
        admin_text(&call->body, "text", buf_slice(&text));
        BUF_APPEND(&call->body, "}");
    } else {
        advise_report_json(workload, &report, &call->body);
    }
    call->status = 200;
    return true;
}

/* The record itself, for files and other tools: an array of operations. */
bool admin_traffic_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf lines;
    CLEANUP(buf_done) struct buf records;
    uint64_t max;
    bool first = true;

    buf_init(&lines, BUF_DEFAULT_MAX);
    buf_init(&records, SIZE_MAX / 2);
    if (!container_open(call, &container, err) ||
        !admin_number(call, SLICE("max"), 1, LINES_MAX, LINES_MAX, &max, err))
        return false;
    if (!records_copy(call, container, &records, err))
        return false;
    records_lines(buf_slice(&records), (size_t)max, &lines);
    BUF_APPEND(&call->body, "{\"operations\":[");
    for (struct slice rest = buf_slice(&lines), line; slice_split(rest, '\n', &line, &rest);) {
        if (!first)
            BUF_APPEND(&call->body, ",");
        first = false;
        buf_append_slice(&call->body, line);
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

/* --- What if --------------------------------------------------------------------------------- */

static bool strategy_read(const struct admin_call *call, bool *ret_range, struct error *err)
{
    struct slice text = admin_parameter(call, SLICE("strategy"));

    *ret_range = slice_equal(text, SLICE("range"));
    return !text.data || *ret_range || slice_equal(text, SLICE("hash")) ||
           error_set(err, ERROR_BAD_REQUEST, "the strategy is hash or range");
}

static bool what_if_plan_read(struct admin_call *call, struct container *container,
                              const struct advise_workload *workload, struct advise_key *key,
                              struct what_if_plan *plan, struct error *err)
{
    struct slice text = admin_parameter(call, SLICE("key"));
    struct slice computed = admin_parameter(call, SLICE("computed")), path, count;
    uint64_t number, random;
    int at;

    if (!text.data)
        return error_set(err, ERROR_BAD_REQUEST, "the parameter key names the paths to try");
    if (!advise_key_parse(workload, text, key, err) ||
        !admin_number(call, SLICE("partitions"), 1, 1024, partitions_of(container), &number, err))
        return false;
    plan->partitions = (uint32_t)number;
    if (!admin_number(call, SLICE("throughput"), 1, 1000000000, ru_of(container),
                      &plan->ru_per_second, err) ||
        !admin_number(call, SLICE("retries"), 0, 100, WHAT_IF_RETRIES, &number, err) ||
        !admin_number(call, SLICE("random"), 2, 100000, 0, &random, err) ||
        !admin_decimal(call, SLICE("speed"), 1e-6, 1e9, 1, &plan->speed, err) ||
        !strategy_read(call, &plan->range, err))
        return false;
    plan->retries_max = (uint32_t)number;
    plan->retries_recorded = !admin_parameter(call, SLICE("retries")).data;
    plan->burst_seconds = call->services->burst_seconds;
    plan->partition_ru_max = container_limits(container)->partition_ru_max;
    plan->hash_v1 =
        definition_fields(container_definition(container))->key.kind == PARTITION_HASH_V1;
    plan->key = key;
    if ((random || computed.data) && key->path_count > 1)
        return error_set(err, ERROR_BAD_REQUEST, "a suffix goes behind one property");
    if (random) {
        key->kind = ADVISE_RANDOM_SUFFIX;
        key->suffixes = (uint32_t)random;
    } else if (computed.data) {
        if (!slice_split(computed, ':', &path, &count) || !slice_to_uint64(count, &number) ||
            number < 2 || number > 100000 || (at = advise_workload_path(workload, path)) < 0)
            return error_set(err, ERROR_BAD_REQUEST,
                             "computed is PATH:N: a path items have, and a number of suffixes");
        key->kind = ADVISE_COMPUTED_SUFFIX;
        key->hashed = (uint8_t)at;
        key->suffixes = (uint32_t)number;
    }
    return true;
}

static struct slice key_name(const struct advise_workload *workload, const struct advise_key *key,
                             struct arena *arena)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    advise_key_describe(workload, key, &name);
    return arena_copy(arena, buf_slice(&name));
}

static void what_if_answer(struct admin_call *call, const struct what_if_panel *panels,
                           size_t count)
{
    CLEANUP(buf_done) struct buf svg;

    buf_init(&svg, BUF_DEFAULT_MAX);
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "key", panels[count - 1].title);
    if (count > 1) {
        admin_text(&call->body, "currentKey", panels[0].title);
        BUF_APPEND(&call->body, ",\"today\":");
        what_if_json(panels[0].result, &call->body);
    }
    BUF_APPEND(&call->body, ",\"whatIf\":");
    what_if_json(panels[count - 1].result, &call->body);
    if (slice_equal(admin_parameter(call, SLICE("plot")), SLICE("true"))) {
        what_if_plot(panels, count, &svg);
        admin_text(&call->body, "svg", buf_slice(&svg));
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
}

/* Where the container has its keys. */
static void plan_as_it_is(struct what_if_plan *plan, const struct container *container)
{
    plan->range = false;
    plan->definition = &definition_fields(container_definition(container))->key;
    plan->map = container_map(container);
    plan->partitions = partitions_of(container);
}

static bool is_same_key(const struct advise_key *a, const struct advise_key *b)
{
    return a->kind == b->kind && a->path_count == b->path_count &&
           memcmp(a->paths, b->paths, a->path_count) == 0;
}

bool admin_what_if(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(advise_workload_free) struct advise_workload *workload = NULL;
    struct what_if_plan plan = {0}, today;
    struct what_if_result results[2];
    struct what_if_panel panels[2];
    struct advise_key key, current;
    size_t count = 0;

    if (!container_open(call, &container, err) ||
        !workload_make(call, container, WHAT_IF_GAP_MS, &workload, err) ||
        !what_if_plan_read(call, container, workload, &key, &plan, err))
        return false;
    if (current_key(container, workload, &current)) {
        plan.current = &current;
        plan.current_partitions = partitions_of(container);
        today = plan;
        today.key = &current;
        today.ru_per_second = ru_of(container);
        plan_as_it_is(&today, container);
        if (is_same_key(&key, &current) && !admin_parameter(call, SLICE("strategy")).data &&
            plan.partitions == today.partitions) /* only the throughput or the load is another */
            plan_as_it_is(&plan, container);
        if (!what_if_run(workload, &today, call->arena, &results[0], err))
            return false;
        panels[count++] =
            (struct what_if_panel){true, key_name(workload, &current, call->arena), &results[0]};
    }
    if (!what_if_run(workload, &plan, call->arena, &results[1], err))
        return false;
    panels[count++] =
        (struct what_if_panel){false, key_name(workload, &key, call->arena), &results[1]};
    what_if_answer(call, panels, count);
    return true;
}
