#include "front/table/operation.h"

static const struct table_operation operations[TABLE_RESOURCE_COUNT][TABLE_VERB_COUNT] = {
#define TABLE_OPERATION(resource, verb, rights_, scope_, place_, function, text)                   \
    [TABLE_##resource][TABLE_##verb] = {.name = #resource "." #verb,                               \
                                        .rights = rights_,                                         \
                                        .scope = TABLE_SCOPE_##scope_,                             \
                                        .place = TABLE_PLACE_##place_,                             \
                                        .run = function,                                           \
                                        .meaning = text},
#define TABLE_REFUSED(resource, verb, text)                                                        \
    [TABLE_##resource][TABLE_##verb] = {.name = #resource "." #verb, .rights = "", .meaning = text},
#include "front/table/operations.def"
#undef TABLE_OPERATION
#undef TABLE_REFUSED
};

const struct table_operation *table_operation_find(enum table_resource resource,
                                                   enum table_verb verb)
{
    const struct table_operation *operation = &operations[resource][verb];

    return operation->name ? operation : NULL;
}

static bool override_check(struct slice method, struct slice instead, struct error *err)
{
    if (!slice_equal(method, SLICE("POST")))
        return error_set(err, ERROR_TABLE_METHOD_NOT_POST,
                         "X-HTTP-Method stands for another method than POST");
    if (!slice_equal(instead, SLICE("MERGE")) && !slice_equal(instead, SLICE("PATCH")) &&
        !slice_equal(instead, SLICE("PUT")) && !slice_equal(instead, SLICE("DELETE")))
        return error_set(err, ERROR_TABLE_METHOD_OVERRIDE,
                         "X-HTTP-Method must be MERGE, PATCH, PUT or DELETE");
    return true;
}

bool table_verb_find(struct slice method, struct slice instead, enum table_resource resource,
                     enum table_verb *ret_verb, struct error *err)
{
    if (instead.data) {
        if (!override_check(method, instead, err))
            return false;
        method = instead;
    }
    if (slice_equal(method, SLICE("GET")))
        *ret_verb = resource == TABLE_ENTITY || resource == TABLE_ONE ? TABLE_READ : TABLE_LIST;
    else if (slice_equal(method, SLICE("POST")))
        *ret_verb = TABLE_CREATE;
    else if (slice_equal(method, SLICE("PUT")))
        *ret_verb = TABLE_REPLACE;
    else if (slice_equal(method, SLICE("MERGE")) || slice_equal(method, SLICE("PATCH")))
        *ret_verb = TABLE_MERGE;
    else if (slice_equal(method, SLICE("DELETE")))
        *ret_verb = TABLE_DELETE;
    else
        return error_set(err, ERROR_METHOD_NOT_ALLOWED, "there is no method %.*s",
                         (int)MIN(method.len, (size_t)16), (const char *)method.data);
    return true;
}
