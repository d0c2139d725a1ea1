/* Where the children are that a route names: users, permissions, client encryption keys, stored
 * procedures, triggers and user-defined functions. */
#pragma once

#include "catalogue/child.h"
#include "front/rest/route.h"

struct rest_call;

/* In the call's account. False: the route names none. */
bool rest_child_place(const struct rest_call *call, const struct rest_route *route,
                      struct child_place *ret_place);
