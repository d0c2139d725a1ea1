/* Service properties of an account: logging, metrics and CORS rules, as one XML document that is
 * kept with the account. CORS rules are obeyed (cors.h); the rest is kept as it was given. */
#pragma once

#include "front/table/call.h"
#include "front/table/xml.h"

enum { TABLE_CORS_RULES_MAX = 5 };

/* The document as it was stored; NULL: nothing was ever set. In the arena. */
const struct xml_node *table_properties_stored(struct table_call *call);
