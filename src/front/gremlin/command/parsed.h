/* Parsed: scripts as trees, kept by their text for the next request of the account that says the
 * same (kit/plans.h). Bindings and variables are put in when a script is opened, so one tree serves
 * them all. */
#pragma once

#include "front/gremlin/language/script.h"
#include "front/kit/call.h"
#include "front/kit/plans.h"

struct gremlin_parsed {
    struct front_plan plan;
    const struct gremlin_syntax *syntax; /* borrowed until it is given back */
    struct slice key_first;              /* until it is kept; in the arena of its first call */
};

/* The text parsed, now or before; the caller's until it is given back. Errors of
 * gremlin_script_parse. */
NODISCARD bool gremlin_parsed_take(struct front_call *call, struct slice text,
                                   const struct gremlin_script_limits *limits,
                                   struct gremlin_parsed **ret_parsed, struct error *err);
void gremlin_parsed_give(struct front_call *call, struct gremlin_parsed *parsed);
