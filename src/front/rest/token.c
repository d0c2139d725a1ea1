#include "front/rest/token.h"

bool rest_token_authorize(struct rest_call *call UNUSED, struct slice sig UNUSED, struct error *err)
{
    return error_set(err, ERROR_UNAUTHORIZED, "the resource token was not made by this server");
}
