/* Children over REST: users, permissions, client encryption keys, stored procedures, triggers and
 * user-defined functions. */
#pragma once

#include "catalogue/child.h"
#include "front/rest/route.h"

struct rest_call;

/* Where the children are that a route names, in the call's account. False: it names none. */
bool rest_children_place(const struct rest_call *call, const struct rest_route *route,
                         struct child_place *ret_place);
