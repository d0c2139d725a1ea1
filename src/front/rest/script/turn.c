#include "front/rest/script/turn.h"

#include <inttypes.h>

/* Owner and reader of an account, and each permission as it was when its token was made. What a
 * script keeps in variables beyond its run must not be met by somebody who may see less. */
static struct slice principal_of(const struct rest_call *call, struct arena *arena)
{
    const struct rest_identity *identity = &call->identity;

    return arena_printf(arena, "%d %" PRIu64 " %.*s", (int)identity->kind, identity->key_lsn,
                        SLICE_ARG(identity->key));
}

struct slice rest_script_key(const struct rest_call *call, const struct catalogue_child *child,
                             struct arena *arena)
{
    const struct catalogue_info *info = catalogue_child_info(child);
    struct slice blank = SLICE(" ");

    return arena_join(
        arena, (struct slice[]){info->rid, blank, info->etag, blank, principal_of(call, arena)}, 5);
}

struct slice rest_script_source(const struct catalogue_child *whole)
{
    struct document_value body;

    if (!document_find(catalogue_child_body(whole), SLICE("body"), &body) ||
        body.type != DOCUMENT_STRING)
        return SLICE_NONE;
    return body.text;
}

struct script_party rest_script_party(struct rest_call *call, const struct rest_items *items)
{
    char text[RID_TEXT_SIZE];
    struct rid database = rid_of_database(container_database_number(items->container));

    return (struct script_party){.account = call->account.id,
                                 .database = arena_copy(call->arena, rid_format(database, text))};
}

enum { BUSY_WAIT_MS = 200 };

bool rest_script_busy(struct rest_call *call, struct error *err)
{
    call->wait_ms = BUSY_WAIT_MS;
    return error_set(err, ERROR_SCRIPT_BUSY, "as many scripts run as may at one time");
}

bool rest_scripts_enter(struct rest_call *call, const struct rest_items *items,
                        struct script_place **ret_place, struct error *err)
{
    struct script_party who = rest_script_party(call, items);

    return script_place_take(call->services->scripts, &who, ret_place, err) ||
           rest_script_busy(call, err);
}

void rest_scripts_leave(struct rest_call *call, struct script_place *place)
{
    script_place_give(call->services->scripts, place);
}

void rest_script_charged(struct rest_call *call, const struct metered_call *metered)
{
    int64_t wait_ms = MAX(call->wait_ms, metered->wait_ms);

    rest_items_charged(call, metered);
    call->wait_ms = wait_ms;
}
