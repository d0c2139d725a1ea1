/* Turns of scripts: whose a script is that is to run, and when it may. */
#pragma once

#include "catalogue/child.h"
#include "front/rest/target/items.h"
#include "script/script.h"

/* What tells one version of a script, run for one principal, from all others, for those who keep it
 * compiled; its text; and whose its processes are. In the arena, or borrowed from the child. */
struct slice rest_script_key(const struct rest_call *call, const struct catalogue_child *child,
                             struct arena *arena);
struct slice rest_script_source(const struct catalogue_child *whole);
struct script_party rest_script_party(struct rest_call *call, const struct rest_items *items);

/* Scripts hold a worker of the server for as long as they run, so no more of them run than leave
 * room for everything else, and no more of one account or database than leave room for those of
 * others. ERROR_SCRIPT_BUSY; entered, it is left once. */
NODISCARD bool rest_scripts_enter(struct rest_call *call, const struct rest_items *items,
                                  struct script_place **ret_place, struct error *err);
void rest_scripts_leave(struct rest_call *call, struct script_place *place);

/* What the pool of scripts means by ERROR_BUSY: a 429 that clients try again. False. */
bool rest_script_busy(struct rest_call *call, struct error *err);

/* As rest_items_charged; the wait for a script's turn, if that was the matter, stays. */
void rest_script_charged(struct rest_call *call, const struct metered_call *metered);
