#include "front/rest/operation.h"

static const struct rest_operation operations[REST_RESOURCE_COUNT][REST_VERB_COUNT] = {
#define REST_OPERATION(resource, verb, access_, place_, function, text)                            \
    [REST_##resource][REST_##verb] = {.name = #resource "." #verb,                                 \
                                      .access = REST_ACCESS_##access_,                             \
                                      .place = REST_PLACE_##place_,                                \
                                      .run = function,                                             \
                                      .meaning = text},
#define REST_REFUSED(resource, verb, text)                                                         \
    [REST_##resource][REST_##verb] = {                                                             \
        .name = #resource "." #verb, .access = REST_ACCESS_OWNER, .meaning = text},
#include "front/rest/operations.def"
#undef REST_OPERATION
#undef REST_REFUSED
};

const struct rest_operation *rest_operation_find(enum rest_resource resource, enum rest_verb verb)
{
    const struct rest_operation *operation = &operations[resource][verb];

    return operation->name ? operation : NULL;
}
