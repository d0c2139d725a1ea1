/* Scripts as they are run: stored procedures, and triggers around the writes of items. */
#pragma once

#include "front/rest/procedure/script_host.h"
#include "front/rest/script/turn.h"

/* Bounds of re-running: a script whose transaction loses to others is run again this often, and not
 * later than this many times its time limit after it began. */
enum { REST_SCRIPT_ATTEMPTS_MAX = 10, REST_SCRIPT_TIMES_MAX = 3 };

/* Runs a script within the host's attempt, with what request says beyond the names and limits that
 * are the same for all, and adds what it cost to the host's figures. A failure becomes the message
 * of the answer. */
NODISCARD bool rest_script_run(struct rest_script_host *host, struct catalogue_child *script,
                               struct script_request request, struct script_result *ret_result,
                               struct error *err);

/* Answers the log of the scripts of the call, if that was asked for. */
void rest_script_log(struct rest_call *call, struct slice log);

/* --- Triggers -------------------------------------------------------------------------------- */

/* Does the request name triggers? */
static inline bool rest_triggers_named(const struct rest_call *call)
{
    return rest_call_header(call, REST_HEADER_PRE_TRIGGER).len ||
           rest_call_header(call, REST_HEADER_POST_TRIGGER).len;
}

/* Does the write of an item that the call asks for, with the triggers it names: all of it is one
 * transaction. ERROR_BAD_REQUEST: a trigger that is not there, or not for this operation. */
NODISCARD bool rest_triggers_write(struct rest_call *call, struct error *err);
