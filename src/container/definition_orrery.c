/* `orrery`: what a container is beyond what the service knows. Client libraries that know nothing
 * of it leave it out when they replace a container; then it stays as it is.
 *
 *     {"strategy": "hash"}    how keys are placed; hash is what a container has that says nothing
 *     {"accessPolicies": [{"id": "x", "start": "...", "expiry": "...", "permission": "raud"}]}
 *                             of a table, for shared access signatures (front/table/access.h)
 */
#include "container/definition_private.h"

#include "document/bson.h"

struct reading {
    struct definition_fields *fields;
    const struct definition_fields *before; /* NULL: it is created */
    struct arena *arena;
    struct buf *out;
};

static bool strategy_read(struct reading *reading, const struct document_value *value,
                          struct error *err)
{
    if (value->type != DOCUMENT_STRING || !slice_equal(value->text, SLICE("hash")))
        return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy must be \"hash\"");
    reading->fields->key.strategy = PARTITION_STRATEGY_HASH;
    document_append_string(reading->out, SLICE("strategy"), value->text);
    return true;
}

enum { ACCESS_POLICIES_MAX = 5, ACCESS_TEXT_MAX = 256 };

/* Texts all of them; what they mean is the Table API's to check. */
static bool access_policy_check(const struct document_value *policy)
{
    static const char *const names[] = {"id", "start", "expiry", "permission"};
    struct document_iter iter;
    bool named = false;

    if (policy->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, policy->document);
    while (document_iter_next(&iter)) {
        size_t known = 0;

        while (known < ARRAY_LEN(names) && !slice_equal(iter.key, slice_of_text(names[known])))
            known++;
        if (known == ARRAY_LEN(names) || iter.value.type != DOCUMENT_STRING ||
            iter.value.text.len > ACCESS_TEXT_MAX)
            return false;
        named = named || (known == 0 && iter.value.text.len > 0);
    }
    return named;
}

static bool access_policies_read(struct reading *reading, const struct document_value *value,
                                 struct error *err)
{
    struct document_iter iter;
    bool good =
        value->type == DOCUMENT_ARRAY && document_count(value->document) <= ACCESS_POLICIES_MAX;

    if (good) {
        document_iter_init(&iter, value->document);
        while (good && document_iter_next(&iter))
            good = access_policy_check(&iter.value);
    }
    if (!good)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.accessPolicies must be up to %d objects of an id and perhaps "
                         "start, expiry and permission, all of them texts",
                         ACCESS_POLICIES_MAX);
    document_append(reading->out, SLICE("accessPolicies"), value);
    return true;
}

static const struct member {
    struct slice name;
    bool (*read)(struct reading *reading, const struct document_value *value, struct error *err);
} members[] = {
    {SLICE("strategy"), strategy_read},
    {SLICE("accessPolicies"), access_policies_read},
};

static const struct member *member_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (slice_equal(members[i].name, name))
            return &members[i];
    return NULL;
}

static bool names_check(struct slice object, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        if (!member_find(iter.key))
            return error_set(err, ERROR_BAD_REQUEST, "orrery has no member \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)100), (const char *)iter.key.data);
    return true;
}

/* In the order of the table, so that the same said otherwise is the same bytes. */
bool definition_orrery_read(struct definition_fields *fields, struct slice object,
                            const struct definition_fields *before, struct arena *arena,
                            struct buf *out, struct error *err)
{
    struct reading reading = {fields, before, arena, out};
    struct document_value value;

    if (!object.data)
        return true;
    if (!names_check(object, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (document_find(object, members[i].name, &value) &&
            !members[i].read(&reading, &value, err))
            return false;
    return true;
}
