#include "definition/throughput.h"

#include "document/json.h"

static bool refused(struct error *err, const char *why)
{
    return error_set(err, ERROR_BAD_REQUEST, "orrery.throughput %s", why);
}

/* Every member of an object must be known: what is misspelt would be ignored else. */
static bool members_known(struct slice object, const char *const *names, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (names[i] && !slice_equal(iter.key, slice_of_text(names[i])))
            i++;
        if (!names[i])
            return error_set(err, ERROR_BAD_REQUEST, "orrery.throughput has no member \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
    }
    return true;
}

/* A whole number that may be left out: 0. */
static bool number_read(struct slice object, const char *name, int64_t max, uint64_t *ret_number)
{
    struct document_value value;
    int64_t number = 0;

    if (document_find(object, slice_of_text(name), &value) &&
        (!document_to_int64(&value, &number) || number < 0 || number > max))
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static bool bucket_read(const struct document_value *value, struct definition_throughput *said,
                        struct error *err)
{
    static const char *const names[] = {"id", "maxThroughputPercentage", NULL};
    uint64_t id, percent;

    if (value->type != DOCUMENT_OBJECT)
        return refused(err, "has a bucket that is no object");
    if (!members_known(value->document, names, err))
        return false;
    if (!number_read(value->document, "id", BUDGET_BUCKETS, &id) || id == 0 ||
        !number_read(value->document, "maxThroughputPercentage", 100, &percent) || percent == 0)
        return refused(err, "has a bucket without an id from 1 to 5 or a maxThroughputPercentage "
                            "from 1 to 100");
    if (said->percent_max[id - 1])
        return refused(err, "has a bucket twice");
    said->percent_max[id - 1] = (uint8_t)percent;
    return true;
}

bool definition_tenant_key_read(const struct partition_definition *definition,
                                const struct document_value *value, struct arena *arena,
                                struct definition_tenant *ret_tenant, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf bytes;
    struct partition_key *key = &ret_tenant->key;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_ARRAY) {
        document_json_write_value(value, &text);
    } else {
        BUF_APPEND(&text, "[");
        document_json_write_value(value, &text);
        BUF_APPEND(&text, "]");
    }
    if (!partition_key_parse(definition, arena_copy(arena, buf_slice(&text)), PARTITION_KEY_WHOLE,
                             arena, key, err))
        return error_prefix(err, "orrery.throughput");
    if (key->open)
        return refused(err, "takes whole keys: this one has a suffix that is not said");
    partition_key_append(key, &bytes);
    ret_tenant->pk = arena_copy(arena, buf_slice(&bytes));
    ret_tenant->range = partition_route_range(definition, key, arena);
    return true;
}

static bool tenant_read(const struct partition_definition *definition,
                        const struct document_value *value, struct arena *arena,
                        struct definition_tenant *ret_tenant, struct error *err)
{
    static const char *const names[] = {"key", "reserved", "cap", NULL};
    struct document_value key;

    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("key"), &key))
        return refused(err, "has a key value without \"key\", as {\"key\": [\"tenant-7\"], "
                            "\"reserved\": 200}");
    if (!members_known(value->document, names, err) ||
        !definition_tenant_key_read(definition, &key, arena, ret_tenant, err))
        return false;
    if (!number_read(value->document, "reserved", BUDGET_RATE_MAX_CRU / 100,
                     &ret_tenant->reserved) ||
        !number_read(value->document, "cap", BUDGET_RATE_MAX_CRU / 100, &ret_tenant->cap))
        return refused(err, "has a key value whose reserved or cap is no whole number of RU/s");
    if (ret_tenant->reserved == 0 && ret_tenant->cap == 0)
        return refused(err, "has a key value with neither reserved nor cap");
    if (ret_tenant->cap && ret_tenant->reserved > ret_tenant->cap)
        return refused(err, "reserves more for a key value than its cap");
    return true;
}

static bool tenants_read(const struct partition_definition *definition, struct slice array,
                         struct arena *arena, struct definition_throughput *said, struct error *err)
{
    size_t count = document_count(array), at = 0;
    struct definition_tenant *tenants;
    struct document_iter iter;

    if (count > DEFINITION_TENANTS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.throughput has %zu key values; the limit is %d", count,
                         DEFINITION_TENANTS_MAX);
    tenants = arena_alloc_zero(arena, memory_array_size(MAX(count, (size_t)1), sizeof *tenants));
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (!tenant_read(definition, &iter.value, arena, &tenants[at], err))
            return false;
        for (size_t i = 0; i < at; i++)
            if (slice_equal(tenants[i].pk, tenants[at].pk))
                return refused(err, "has a key value twice");
        at++;
    }
    said->tenants = tenants;
    said->tenant_count = count;
    return true;
}

bool definition_throughput_read(const struct partition_definition *key,
                                const struct document_value *value, struct arena *arena,
                                struct definition_throughput *ret_throughput, struct error *err)
{
    static const char *const names[] = {"buckets", "keys", NULL};
    struct definition_throughput said = {0};
    struct document_value buckets, keys;
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return refused(err, "must be an object");
    if (!members_known(value->document, names, err))
        return false;
    if (document_find(value->document, SLICE("buckets"), &buckets)) {
        if (buckets.type != DOCUMENT_ARRAY)
            return refused(err, "has buckets that are no array");
        document_iter_init(&iter, buckets.document);
        while (document_iter_next(&iter))
            if (!bucket_read(&iter.value, &said, err))
                return false;
    }
    if (document_find(value->document, SLICE("keys"), &keys)) {
        if (keys.type != DOCUMENT_ARRAY)
            return refused(err, "has keys that are no array");
        if (!tenants_read(key, keys.document, arena, &said, err))
            return false;
    }
    *ret_throughput = said;
    return true;
}

bool definition_throughput_is_said(const struct definition_throughput *throughput)
{
    for (size_t i = 0; i < BUDGET_BUCKETS; i++)
        if (throughput->percent_max[i])
            return true;
    return throughput->tenant_count > 0;
}

uint64_t definition_throughput_within(const struct definition_throughput *throughput,
                                      struct slice min, struct slice max,
                                      const struct definition_tenant **ret_alone)
{
    uint64_t reserved = 0;

    *ret_alone = NULL;
    for (size_t i = 0; i < throughput->tenant_count; i++) {
        const struct definition_tenant *tenant = &throughput->tenants[i];

        if (slice_compare(tenant->range.min, min) < 0 || slice_compare(tenant->range.min, max) >= 0)
            continue;
        reserved += tenant->reserved;
        if (slice_equal(tenant->range.min, min) && slice_equal(tenant->range.max, max))
            *ret_alone = tenant;
    }
    return reserved;
}
