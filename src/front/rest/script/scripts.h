/* Scripts as they are run: stored procedures, and triggers around the writes of items. */
#pragma once

#include "catalogue/child.h"
#include "front/rest/script/script_host.h"

/* What tells one version of a script, run for one principal, from all others, for those who keep it
 * compiled; its text; and whose its processes are. In the arena, or borrowed from the child. */
struct slice rest_script_key(const struct rest_call *call, const struct catalogue_child *child,
                             struct arena *arena);
struct slice rest_script_source(const struct catalogue_child *whole);
struct script_party rest_script_party(struct rest_call *call, const struct rest_items *items);

/* Bounds of re-running: a script whose transaction loses to others is run again this often, and not
 * later than this many times its time limit after it began. */
enum { REST_SCRIPT_ATTEMPTS_MAX = 10, REST_SCRIPT_TIMES_MAX = 3 };

/* Scripts hold a worker of the server for as long as they run, so no more of them run than leave
 * room for everything else, and no more of one account or database than leave room for those of
 * others. ERROR_SCRIPT_BUSY; entered, it is left once. */
NODISCARD bool rest_scripts_enter(struct rest_call *call, const struct rest_items *items,
                                  struct script_place **ret_place, struct error *err);
void rest_scripts_leave(struct rest_call *call, struct script_place *place);

/* What the pool of scripts means by ERROR_BUSY: a 429 that clients try again. False. */
bool rest_script_busy(struct rest_call *call, struct error *err);

/* Runs a script within the host's attempt, with what request says beyond the names and limits that
 * are the same for all, and adds what it cost to the host's figures. A failure becomes the message
 * of the answer. */
NODISCARD bool rest_script_run(struct rest_script_host *host, struct catalogue_child *script,
                               struct script_request request, struct script_result *ret_result,
                               struct error *err);

/* As rest_items_charged; the wait for a script's turn, if that was the matter, stays. */
void rest_script_charged(struct rest_call *call, const struct metered_call *metered);

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
