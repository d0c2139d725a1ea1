/* What a claim's kind stands for is REST's own: the kinds of its resources, + 1; those that other
 * fronts know are the kit's. Since the permission must be looked up anyway to see whether it still
 * stands, the link and the partition key are read from there: the same state has the same ones. */
#include "front/rest/token.h"

#include "front/kit/token.h"
#include "front/rest/call.h"
#include "front/rest/permission.h"
#include "front/rest/reach.h"
#include "partition/synthetic.h"

/* The kinds are stored in claims, which are gone within a day of an update that changes them. */
static_assert(REST_RESOURCE_COUNT < 255, "a kind fits a byte");
static_assert((int)REST_CONTAINERS + 1 == (int)FRONT_TOKEN_CONTAINER, "as other fronts know it");

/* --- Making ---------------------------------------------------------------------------------- */

bool rest_token_seconds(const struct rest_call *call, uint32_t *ret_seconds, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_EXPIRY_SECONDS);
    uint64_t seconds = REST_TOKEN_SECONDS_DEFAULT;

    if (text.data && (!slice_to_uint64(text, &seconds) || seconds < REST_TOKEN_SECONDS_MIN ||
                      seconds > REST_TOKEN_SECONDS_MAX))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-documentdb-expiry-seconds must be a whole number from %d to %d",
                         REST_TOKEN_SECONDS_MIN, REST_TOKEN_SECONDS_MAX);
    *ret_seconds = (uint32_t)seconds;
    return true;
}

static struct slice text_of(struct slice body, struct slice property)
{
    struct document_value value;

    return document_find(body, property, &value) && value.type == DOCUMENT_STRING ? value.text
                                                                                  : SLICE_NONE;
}

static bool mode_is_all(const struct catalogue_child *permission)
{
    return slice_equal_nocase(text_of(catalogue_child_body(permission), SLICE("permissionMode")),
                              SLICE("all"));
}

static struct rest_reach reach_of(struct rest_call *call, const struct catalogue_child *permission)
{
    return rest_reach_of_link(call, text_of(catalogue_child_body(permission), SLICE("resource")));
}

struct slice rest_token_make(struct rest_call *call, const struct catalogue_child *permission,
                             uint32_t seconds)
{
    const struct rest_reach reach = reach_of(call, permission);
    const struct rid rid = catalogue_child_rid(permission);
    const int64_t now_s = clock_read_wall_ms(call->services->clock) / 1000;
    const struct front_claim claim = {
        .account = account_info(call->account.account)->number,
        .database = rid.database,
        .user = rid.owner,
        .permission = rid.number,
        .lsn = catalogue_child_info(permission)->lsn,
        .all = mode_is_all(permission),
        .kind = reach.database ? (uint8_t)(reach.resource + 1) : 0,
        .resource_database = reach.database,
        .resource_owner = reach.owner,
        .resource_number = reach.number,
        .start_s = now_s,
        .expiry_s = now_s + seconds,
    };

    return front_token_make(call->account.keys, &claim, call->arena);
}

/* --- Checking -------------------------------------------------------------------------------- */

static bool stopped(struct error *err, const char *why)
{
    return front_token_stopped(err, why);
}

static bool claim_still_means(const struct front_claim *claim, const struct rest_reach *reach,
                              struct error *err)
{
    if (reach->database && claim->kind == reach->resource + 1 &&
        claim->resource_database == reach->database && claim->resource_owner == reach->owner &&
        claim->resource_number == reach->number)
        return true;
    return stopped(err, "the resource of its permission does not exist, or was made anew");
}

static bool insufficient(const struct rest_call *call, struct error *err, const char *why)
{
    return error_set(err, ERROR_FORBIDDEN,
                     "Insufficient permissions provided in the authorization header for %s: %s",
                     call->operation->name, why);
}

/* A limit may name the base of a suffix alone: then all suffixes are within. A key that leaves open
 * what the limit names is not. */
static bool key_within(const struct partition_definition *definition,
                       const struct partition_key *key, const struct partition_key *limit)
{
    if (!definition->synthetic || (!limit->open && !key->open))
        return partition_key_starts_with(key, limit);
    if (key->count < limit->count || !limit->open || limit->partial)
        return false;
    if (key->open)
        return partition_key_starts_with(key, limit);
    return partition_key_closes(definition, key, limit);
}

bool rest_token_check_key(struct rest_call *call, const struct partition_definition *definition,
                          const struct partition_key *key, struct error *err)
{
    struct partition_key limit;

    if (!call->identity.key.data)
        return true;
    if (!partition_key_parse(definition, call->identity.key, PARTITION_KEY_ANY, call->arena, &limit,
                             err))
        return stopped(err, "the partition key of its permission does not fit the container");
    if (limit.count == 0) /* the prefix of every key is no limit */
        return stopped(err, "the partition key of its permission is empty");
    if (definition->synthetic && limit.count > definition->synthetic->target &&
        limit.components[definition->synthetic->target].type == DOCUMENT_STRING &&
        partition_synthetic_is_ambiguous(definition->synthetic,
                                         limit.components[definition->synthetic->target].text))
        return stopped(err, "its partition key can be made of other values too, since the "
                            "container's synthetic key does not escape its separator: re-key it");
    return key_within(definition, key, &limit) ||
           insufficient(call, err, "the token is for another partition key");
}

static bool header_key_check(struct rest_call *call, const struct container *container,
                             struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    const struct partition_definition *definition = &fields->key;
    struct slice header = rest_call_header(call, REST_HEADER_PARTITION_KEY);
    struct partition_key key;

    /* The same value would let it at other items. */
    if (call->identity.key_lsn <= fields->rekeyed_lsn)
        return stopped(err, "its permission names a key from before the container was re-keyed; "
                            "replace the permission by one for a key of now");
    if (!header.data)
        return insufficient(call, err,
                            "the token is for one partition key, which the request must name");
    if (!partition_key_parse(definition, header, PARTITION_KEY_ANY, call->arena, &key, err))
        return false;
    /* Elsewhere it means: find out. Nothing may be found for who is bound to one key. */
    if (definition->synthetic && key.count > definition->synthetic->target &&
        key.components[definition->synthetic->target].type == DOCUMENT_UNDEFINED)
        return insufficient(call, err,
                            "the token is for one partition key, which the request must name");
    return rest_token_check_key(call, definition, &key, err);
}

/* What a token bound to a partition key may do: whatever names that key in its header, which every
 * operation on items obeys, and what clients must read to get there. The operations of a bulk
 * request name keys of their own, so it is out. */
static bool bound_check(struct rest_call *call, const struct container *container,
                        struct error *err)
{
    switch (call->route.resource) {
    case REST_CONTAINERS:
    case REST_PKRANGES:
        return (container && call->operation->access == REST_ACCESS_READ) ||
               insufficient(call, err, "the token is for one partition key only");
    case REST_ITEMS:
        if (call->verb == REST_PLAN)
            return true; /* it reads nothing */
        if (call->verb == REST_BATCH &&
            !rest_headers_true(&call->headers, REST_HEADER_BATCH_ATOMIC))
            return insufficient(call, err, "bulk requests need a token for the whole container");
        break;
    case REST_PARTITION_DELETE:
        break;
    case REST_PROCEDURES:
        if (call->verb == REST_EXECUTE)
            break;
        return insufficient(call, err, "the token is for one partition key only");
    default:
        return insufficient(call, err, "the token is for one partition key only");
    }
    return container ? header_key_check(call, container, err)
                     : insufficient(call, err, "the container does not exist");
}

static bool claim_allows(struct rest_call *call, const struct front_claim *claim,
                         const struct rest_reach *permitted, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct rest_reach wanted;

    if (call->route.resource == REST_ACCOUNT && call->operation->access == REST_ACCESS_READ)
        return true;
    wanted = rest_reach_of_route(call, &call->route, &container);
    if (!rest_reach_covers(permitted, &wanted, call->operation))
        return insufficient(call, err, "the token is for another resource");
    if (container && !call->identity.key.data && rest_permission_needs_key(permitted, container)) {
        log_event(call->services->log, LOG_WARNING, "token refused: its permission names no key",
                  LOG_INT("database", claim->database), LOG_INT("user", claim->user),
                  LOG_INT("permission", (int64_t)claim->permission),
                  LOG_SLICE("item", permitted->id));
        return stopped(err, "its permission is on an item and names no partition key, which would "
                            "open that id under every key: replace the permission");
    }
    if (call->identity.key.data && !bound_check(call, container, err))
        return false;
    if (container)
        call->identity.container = container_info(container)->number;
    call->identity.database = permitted->resource == REST_DATABASES;
    call->identity.one_item = permitted->resource == REST_ITEMS && permitted->single;
    if (call->operation->access == REST_ACCESS_OWNER)
        return insufficient(call, err, "it needs a read-write key of the account");
    return call->operation->access == REST_ACCESS_READ || claim->all ||
           insufficient(call, err, "the token may only read");
}

bool rest_token_authorize(struct rest_call *call, struct slice sig, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *permission = NULL;
    struct rest_reach permitted;
    struct front_claim claim;

    if (!front_token_open(&call->account, sig, &claim, err) ||
        !front_token_permission(call->services, call->account.id, &claim, &permission, err))
        return false;
    permitted = reach_of(call, permission);
    if (!claim_still_means(&claim, &permitted, err))
        return false;
    call->identity = (struct rest_identity){.kind = REST_IDENTITY_TOKEN,
                                            .key = front_token_key(permission, call->arena),
                                            .key_lsn = catalogue_child_info(permission)->lsn};
    return claim_allows(call, &claim, &permitted, err);
}

bool rest_token_check_rename(struct rest_call *call, struct error *err)
{
    return !call->identity.one_item ||
           insufficient(call, err, "the token is for the item under the id it has");
}
