/* What the owner of a container makes of its throughput: buckets and key values with RU/s of their
 * own, shown with what they did and edited. They are a part of the container's definition
 * (definition_throughput.h): an edit is a replace of it that says nothing else. */
#include "front/admin/call.h"

#include "document/bson.h"
#include "document/json.h"
#include "load/offer_meters.h"

enum { EDITS_MAX = 1000, ATTEMPTS_MAX = 10 };

/* --- Shown ----------------------------------------------------------------------------------- */

static void use_append(struct buf *out, struct budget_use use)
{
    admin_ru(out, "ru", use.spent_cru);
    admin_number_append(out, "throttled", use.refused);
}

static struct budget *budget_of(struct admin_call *call, uint32_t partition)
{
    struct meter *meter = meters_find(call->services->meters, partition);

    return meter ? meter_budget(meter) : NULL;
}

static void bucket_append(struct admin_call *call, const struct container *container,
                          uint8_t bucket, uint8_t percent)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct budget_use sum = {0};

    for (size_t i = 0; i < count; i++) {
        struct budget *budget = budget_of(call, spans[i].id);
        struct budget_use use = budget ? budget_bucket_use(budget, bucket) : (struct budget_use){0};

        sum.spent_cru = MIN(sum.spent_cru, INT64_MAX / 2) + MIN(use.spent_cru, INT64_MAX / 2);
        sum.refused += use.refused;
    }
    BUF_APPEND(&call->body, "{");
    admin_number_append(&call->body, "id", bucket);
    admin_number_append(&call->body, "maxThroughputPercentage", percent);
    use_append(&call->body, sum);
    BUF_APPEND(&call->body, "}");
}

static void tenant_append(struct admin_call *call, const struct container *container,
                          const struct definition_tenant *tenant)
{
    const struct partition_span *span =
        partition_map_find(container_map(container), tenant->range.min);
    struct budget *budget = budget_of(call, span->id);

    BUF_APPEND(&call->body, "{");
    admin_key(call, container, tenant->pk);
    buf_printf(&call->body, ",\"partition\":\"%u\"", span->id);
    admin_number_append(&call->body, "reserved", tenant->reserved);
    admin_number_append(&call->body, "cap", tenant->cap);
    use_append(&call->body,
               budget ? budget_tenant_use(budget, tenant->pk) : (struct budget_use){0});
    BUF_APPEND(&call->body, "}");
}

void admin_throughput_append(struct admin_call *call, const struct container *container)
{
    const struct definition_throughput *said =
        &definition_fields(container_definition(container))->throughput;
    const char *comma = "";

    BUF_APPEND(&call->body, ",\"buckets\":[");
    for (uint8_t i = 0; i < BUDGET_BUCKETS; i++) {
        if (!said->percent_max[i])
            continue;
        buf_printf(&call->body, "%s", comma);
        bucket_append(call, container, (uint8_t)(i + 1), said->percent_max[i]);
        comma = ",";
    }
    BUF_APPEND(&call->body, "],\"reservations\":[");
    for (size_t i = 0; i < said->tenant_count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        tenant_append(call, container, &said->tenants[i]);
    }
    BUF_APPEND(&call->body, "]");
}

static bool answer(struct admin_call *call, const struct container *container)
{

    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "database", call->names[0]);
    admin_text(&call->body, "container", container_info(container)->id);
    admin_offer_append(call, container_offer(container));
    admin_throughput_append(call, container);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_throughput_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    return admin_container_open(call, &container, err) && answer(call, container);
}

/* --- Edited ---------------------------------------------------------------------------------- */

/* What there shall be. */
struct edited {
    uint8_t percent_max[BUDGET_BUCKETS];
    struct definition_tenant *tenants;
    size_t count;
};

static bool number_take(struct slice edit, const char *name, uint64_t max, uint64_t *number,
                        struct error *err)
{
    struct document_value value;
    int64_t read;

    if (!document_find(edit, slice_of_text(name), &value))
        return true;
    if (!document_to_int64(&value, &read) || read < 0 || (uint64_t)read > max)
        return error_set(err, ERROR_BAD_REQUEST, "%s must be a whole number from 0 to %llu", name,
                         (unsigned long long)max);
    *number = (uint64_t)read;
    return true;
}

static bool bucket_edit(const struct document_value *edit, struct edited *edited, struct error *err)
{
    uint64_t id = 0, percent = 0;

    if (edit->type != DOCUMENT_OBJECT ||
        !number_take(edit->document, "id", BUDGET_BUCKETS, &id, err) || id == 0)
        return error_set(err, ERROR_BAD_REQUEST, "a bucket needs an id from 1 to %d",
                         BUDGET_BUCKETS);
    if (!number_take(edit->document, "maxThroughputPercentage", 100, &percent, err))
        return false;
    if (percent == 0)
        return error_set(err, ERROR_BAD_REQUEST,
                         "bucket %llu needs a maxThroughputPercentage from 1 to 100",
                         (unsigned long long)id);
    edited->percent_max[id - 1] = percent == 100 ? 0 : (uint8_t)percent;
    return true;
}

/* The one there is of that key, or a new one behind the others. */
static struct definition_tenant *tenant_place(struct edited *edited,
                                              const struct definition_tenant *wanted)
{
    for (size_t i = 0; i < edited->count; i++)
        if (slice_equal(edited->tenants[i].pk, wanted->pk))
            return &edited->tenants[i];
    edited->tenants[edited->count] = *wanted;
    return &edited->tenants[edited->count++];
}

static bool tenant_edit(const struct partition_definition *definition,
                        const struct document_value *edit, struct arena *arena,
                        struct edited *edited, struct error *err)
{
    struct definition_tenant wanted = {0}, *tenant;
    struct document_value key;

    if (edit->type != DOCUMENT_OBJECT || !document_find(edit->document, SLICE("key"), &key))
        return error_set(
            err, ERROR_BAD_REQUEST,
            "a key value needs \"key\", as {\"key\": [\"tenant-7\"], \"reserved\": 200}");
    if (!definition_tenant_key_read(definition, &key, arena, &wanted, err))
        return false;
    tenant = tenant_place(edited, &wanted);
    return number_take(edit->document, "reserved", BUDGET_RATE_MAX_CRU / 100, &tenant->reserved,
                       err) &&
           number_take(edit->document, "cap", BUDGET_RATE_MAX_CRU / 100, &tenant->cap, err);
}

static bool list_of(struct slice body, const char *name, struct slice *ret_list, struct error *err)
{
    struct document_value value;

    *ret_list = SLICE_NONE;
    if (!document_find(body, slice_of_text(name), &value))
        return true;
    if (value.type != DOCUMENT_ARRAY || document_count(value.document) > EDITS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "%s must be an array of at most %d", name,
                         EDITS_MAX);
    *ret_list = value.document;
    return true;
}

static bool edits_apply(const struct container *container, struct slice body, struct arena *arena,
                        struct edited *ret_edited, struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct slice buckets, keys;
    struct document_iter iter;

    if (!list_of(body, "buckets", &buckets, err) || !list_of(body, "keys", &keys, err))
        return false;
    if (!buckets.data && !keys.data)
        return error_set(err, ERROR_BAD_REQUEST, "the body needs buckets, keys, or both");
    memcpy(ret_edited->percent_max, fields->throughput.percent_max, BUDGET_BUCKETS);
    ret_edited->count = fields->throughput.tenant_count;
    ret_edited->tenants =
        ARENA_ARRAY(arena, struct definition_tenant, ret_edited->count + EDITS_MAX);
    if (ret_edited->count)
        memcpy(ret_edited->tenants, fields->throughput.tenants,
               ret_edited->count * sizeof *ret_edited->tenants);
    if (buckets.data) {
        document_iter_init(&iter, buckets);
        while (document_iter_next(&iter))
            if (!bucket_edit(&iter.value, ret_edited, err))
                return false;
    }
    if (keys.data) {
        document_iter_init(&iter, keys);
        while (document_iter_next(&iter))
            if (!tenant_edit(&fields->key, &iter.value, arena, ret_edited, err))
                return false;
    }
    return true;
}

/* As the definition has it, in JSON. */
static void edited_write(const struct partition_definition *definition, const struct edited *edited,
                         struct buf *out)
{
    const char *comma = "";

    BUF_APPEND(out, "{\"buckets\":[");
    for (size_t i = 0; i < BUDGET_BUCKETS; i++)
        if (edited->percent_max[i]) {
            buf_printf(out, "%s{\"id\":%zu,\"maxThroughputPercentage\":%u}", comma, i + 1,
                       edited->percent_max[i]);
            comma = ",";
        }
    BUF_APPEND(out, "],\"keys\":[");
    comma = "";
    for (size_t i = 0; i < edited->count; i++) {
        const struct definition_tenant *tenant = &edited->tenants[i];

        if (!tenant->reserved && !tenant->cap)
            continue; /* taken back */
        buf_printf(out, "%s{\"key\":", comma);
        partition_key_json(definition, &tenant->key, out);
        buf_printf(out, ",\"reserved\":%llu,\"cap\":%llu}", (unsigned long long)tenant->reserved,
                   (unsigned long long)tenant->cap);
        comma = ",";
    }
    BUF_APPEND(out, "]}");
}

/* The definition with that in place of what it says of throughput. */
static bool body_write(const struct container *container, struct slice throughput, struct buf *out)
{
    struct slice document = definition_fields(container_definition(container))->document;
    struct document_value orrery = {0}, value = document_object(throughput);
    struct document_iter iter;
    size_t begin = document_begin(out), object;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("orrery")))
            document_append(out, iter.key, &iter.value);
    object = document_append_object_begin(out, SLICE("orrery"));
    if (document_find(document, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, orrery.document);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("throughput")))
                document_append(out, iter.key, &iter.value);
    }
    document_append(out, SLICE("throughput"), &value);
    document_end(out, object);
    document_end(out, begin);
    return !buf_overflowed(out);
}

static bool edit_once(struct admin_call *call, struct slice edits, struct container **ret_container,
                      struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf said;
    CLEANUP(buf_done) struct buf body;
    struct slice account = admin_parameter(call, SLICE("account"));
    struct edited edited = {0};

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&said, BUF_DEFAULT_MAX);
    buf_init(&body, BUF_DEFAULT_MAX);
    if (!admin_container_open(call, &container, err) ||
        !edits_apply(container, edits, call->arena, &edited, err))
        return false;
    edited_write(&definition_fields(container_definition(container))->key, &edited, &text);
    if (!document_json_read(buf_slice(&text), NULL, &said, err))
        return false;
    if (!body_write(container, buf_slice(&said), &body))
        return error_set(err, ERROR_TOO_LARGE, "the container's definition would be too large");
    return catalogue_container_replace(
        call->services->catalogue, account.data ? account : call->account.id, call->names[0],
        call->names[1], buf_slice(&body), container_info(container)->etag, ret_container, err);
}

bool admin_throughput_edit(struct admin_call *call, struct error *err)
{
    static const char *const names[] = {"buckets", "keys"};
    CLEANUP(container_unref) struct container *container = NULL;
    struct document_iter iter;
    struct slice edits;

    if (!front_http_body(&call->over_http, &edits, err))
        return false;
    document_iter_init(&iter, edits);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, slice_of_text(names[0])) &&
            !slice_equal(iter.key, slice_of_text(names[1])))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the body has a member \"%.*s\": it takes \"buckets\" and \"keys\"",
                             (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
    for (int i = 0; i < ATTEMPTS_MAX && !container; i++)
        if (!edit_once(call, edits, &container, err) && err->code != ERROR_PRECONDITION_FAILED)
            return false;
    return container &&
           load_meters_apply(call->services->meters, container, call->services->burst_seconds,
                             err) &&
           answer(call, container);
}
