/* Functions: user-defined functions of a container, as queries call them.
 *
 *     rest_functions_init(&functions, call, items);
 *     rest_functions_offer(&functions, &options);            compiling notes which are called
 *     request.udf = rest_functions_host(&functions);
 *     ... run ...
 *     rest_functions_done(&functions);
 *
 * A query without such calls costs nothing here. */
#pragma once

#include "front/rest/sql/compile.h"
#include "front/rest/target/items.h"
#include "script/script.h"

struct rest_functions {
    struct rest_call *call;
    const struct rest_items *items;
    struct script_function *used;    /* in the call's arena */
    struct catalogue_child **wholes; /* that they borrow from: a reference each */
    size_t count, room;
    struct error failure; /* of reading one, told by rest_functions_host; code 0: none */
    struct script_functions *functions; /* owned; NULL: none is called */
    bool within;                        /* a script that is running anyway; set by its host */
    struct script_place *place;         /* owned; NULL: none is needed, or taken yet */
};

void rest_functions_init(struct rest_functions *functions, struct rest_call *call,
                         const struct rest_items *items);
void rest_functions_done(struct rest_functions *functions);

/* Lets the compiler ask for them. */
void rest_functions_offer(struct rest_functions *functions, struct sql_compile_options *options);

/* After compiling. call NULL: there are none. ERROR_SCRIPT_BUSY. */
NODISCARD bool rest_functions_host(struct rest_functions *functions,
                                   struct query_udf_host *ret_host, struct error *err);
