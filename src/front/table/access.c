#include "front/table/access.h"

#include "document/bson.h"
#include "front/table/answer.h"
#include "front/table/edm.h"
#include "front/table/xml.h"
#include "throughput/cost.h"

enum { ID_CHARS_MAX = 64 };

/* --- As they are stored ---------------------------------------------------------------------- */

static struct slice text_of(struct slice object, const char *name)
{
    struct document_value value;

    if (document_find(object, slice_of_text(name), &value) && value.type == DOCUMENT_STRING)
        return value.text;
    return SLICE("");
}

static struct slice definition_document(const struct container *container)
{
    return definition_fields(container_definition(container))->document;
}

size_t table_access_list(const struct container *container,
                         struct table_access_policy ret_policies[TABLE_POLICIES_MAX])
{
    struct document_value orrery, list;
    struct document_iter iter;
    size_t count = 0;

    if (!document_find(definition_document(container), SLICE("orrery"), &orrery) ||
        orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("accessPolicies"), &list))
        return 0;
    document_iter_init(&iter, list.document);
    while (count < TABLE_POLICIES_MAX && document_iter_next(&iter))
        ret_policies[count++] = (struct table_access_policy){
            text_of(iter.value.document, "id"), text_of(iter.value.document, "start"),
            text_of(iter.value.document, "expiry"), text_of(iter.value.document, "permission")};
    return count;
}

bool table_access_find(const struct container *container, struct slice id,
                       struct table_access_policy *ret_policy)
{
    struct table_access_policy policies[TABLE_POLICIES_MAX];
    size_t count = table_access_list(container, policies);

    for (size_t i = 0; i < count; i++)
        if (slice_equal(policies[i].id, id)) {
            *ret_policy = policies[i];
            return true;
        }
    return false;
}

static void text_append(struct buf *out, const char *name, struct slice text)
{
    if (text.len)
        document_append_string(out, slice_of_text(name), text);
}

/* The container's definition with other policies in it. */
static void definition_append(struct buf *out, const struct container *container,
                              const struct table_access_policy *policies, size_t count)
{
    struct slice document = definition_document(container);
    struct document_value orrery;
    struct document_iter iter;
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin = document_begin(out), member, list, one;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("orrery")))
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    member = document_append_object_begin(out, SLICE("orrery"));
    if (document_find(document, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, orrery.document);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("accessPolicies")))
                buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    }
    list = document_append_array_begin(out, SLICE("accessPolicies"));
    for (size_t i = 0; i < count; i++) {
        one = document_append_object_begin(out, document_index_key((uint32_t)i, index));
        document_append_string(out, SLICE("id"), policies[i].id);
        text_append(out, "start", policies[i].start);
        text_append(out, "expiry", policies[i].expiry);
        text_append(out, "permission", policies[i].permission);
        document_end(out, one);
    }
    document_end(out, list);
    document_end(out, member);
    document_end(out, begin);
}

/* --- As XML ---------------------------------------------------------------------------------- */

static struct slice child_text(const struct xml_node *node, const char *name)
{
    const struct xml_node *child = node ? xml_child(node, name) : NULL;

    return child ? child->text : SLICE("");
}

static bool policy_read(const struct xml_node *node, struct table_access_policy *ret_policy,
                        struct error *err)
{
    const struct xml_node *terms = xml_child(node, "AccessPolicy");
    struct table_access_policy policy = {child_text(node, "Id"), child_text(terms, "Start"),
                                         child_text(terms, "Expiry"),
                                         child_text(terms, "Permission")};
    int64_t ticks;

    if (!slice_equal(node->name, SLICE("SignedIdentifier")) || policy.id.len == 0 ||
        table_text_units(policy.id) > ID_CHARS_MAX)
        return error_set(err, ERROR_TABLE_XML,
                         "a SignedIdentifier with an Id of 1 to %d characters was expected",
                         ID_CHARS_MAX);
    if ((policy.start.len && !edm_date_parse(policy.start, &ticks)) ||
        (policy.expiry.len && !edm_date_parse(policy.expiry, &ticks)))
        return error_set(err, ERROR_TABLE_XML, "Start and Expiry must be times in ISO 8601");
    for (size_t i = 0; i < policy.permission.len; i++)
        if (!memchr("raud", policy.permission.data[i], 4))
            return error_set(err, ERROR_TABLE_XML,
                             "Permission is made of the letters r, a, u and d");
    *ret_policy = policy;
    return true;
}

static bool policies_read(struct table_call *call, struct table_access_policy *policies,
                          size_t *ret_count, struct error *err)
{
    struct xml_node *root;

    *ret_count = 0;
    if (call->http->body.len == 0)
        return true;
    if (!xml_read(call->http->body, call->arena, &root, err))
        return false;
    if (!slice_equal(root->name, SLICE("SignedIdentifiers")))
        return error_set(err, ERROR_TABLE_XML, "SignedIdentifiers was expected");
    for (const struct xml_node *node = root->first; node; node = node->next) {
        if (*ret_count == TABLE_POLICIES_MAX)
            return error_set(err, ERROR_TABLE_XML, "a table has at most %d access policies",
                             TABLE_POLICIES_MAX);
        if (!policy_read(node, &policies[*ret_count], err))
            return false;
        for (size_t i = 0; i < *ret_count; i++)
            if (slice_equal(policies[i].id, policies[*ret_count].id))
                return error_set(err, ERROR_TABLE_XML, "two access policies have the same Id");
        ++*ret_count;
    }
    return true;
}

static void element_append(struct buf *out, const char *name, struct slice text)
{
    if (text.len == 0)
        return;
    buf_printf(out, "<%s>", name);
    xml_append_text(out, text);
    buf_printf(out, "</%s>", name);
}

/* A policy without terms has no element: clients tell one that says nothing from one with empty
 * terms by that. */
static void terms_append(struct buf *out, const struct table_access_policy *policy)
{
    if (policy->start.len + policy->expiry.len + policy->permission.len == 0)
        return;
    BUF_APPEND(out, "<AccessPolicy>");
    element_append(out, "Start", policy->start);
    element_append(out, "Expiry", policy->expiry);
    element_append(out, "Permission", policy->permission);
    BUF_APPEND(out, "</AccessPolicy>");
}

/* --- Operations ------------------------------------------------------------------------------ */

bool table_access_read(struct table_call *call, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    struct table_access_policy policies[TABLE_POLICIES_MAX];
    struct buf *out = &call->body;
    size_t count;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!table_space_open(call, call->route.table, &space, err))
        return false;
    count = table_access_list(space.container, policies);
    BUF_APPEND(out, XML_HEAD "<SignedIdentifiers>");
    for (size_t i = 0; i < count; i++) {
        BUF_APPEND(out, "<SignedIdentifier>");
        element_append(out, "Id", policies[i].id);
        terms_append(out, &policies[i]);
        BUF_APPEND(out, "</SignedIdentifier>");
    }
    BUF_APPEND(out, "</SignedIdentifiers>");
    call->format = TABLE_FORMAT_XML;
    call->status = 200;
    return true;
}

bool table_access_write(struct table_call *call, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    CLEANUP(container_unref) struct container *changed = NULL;
    CLEANUP(buf_done) struct buf body;
    struct table_access_policy policies[TABLE_POLICIES_MAX];
    size_t count;

    buf_init(&body, BUF_DEFAULT_MAX);
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!table_space_open(call, call->route.table, &space, err) ||
        !policies_read(call, policies, &count, err))
        return false;
    definition_append(&body, space.container, policies, count);
    if (!catalogue_container_replace(call->services->catalogue, call->account.id,
                                     SLICE(FRONT_TABLE_DATABASE), space.name, buf_slice(&body),
                                     SLICE_NONE, &changed, err))
        return false;
    call->status = 204;
    return true;
}
