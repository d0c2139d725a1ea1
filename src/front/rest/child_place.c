#include "front/rest/child_place.h"

#include "front/rest/call.h"

static const struct {
    enum rest_resource resource;
    enum child_kind kind;
} kinds[] = {
    {REST_USERS, CHILD_USER},
    {REST_PERMISSIONS, CHILD_PERMISSION},
    {REST_ENCRYPTION_KEYS, CHILD_ENCRYPTION_KEY},
    {REST_PROCEDURES, CHILD_PROCEDURE},
    {REST_TRIGGERS, CHILD_TRIGGER},
    {REST_FUNCTIONS, CHILD_FUNCTION},
};

bool rest_child_place(const struct rest_call *call, const struct rest_route *route,
                      struct child_place *ret_place)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].resource == route->resource) {
            *ret_place = (struct child_place){.kind = kinds[i].kind,
                                              .account = call->account.id,
                                              .database = route->database,
                                              .parent = route->owner};
            return true;
        }
    return false;
}
