/* Shared access signatures. Of an account: what, where, when and from where, for all tables. Of a
 * table: the same for one table or a range of its keys, and perhaps the name of a policy that is
 * stored with the table and gives what the signature leaves out. A stored policy can be withdrawn,
 * and so can a key; nothing is kept here. */
#include "front/table/access.h"
#include "front/table/authorize_private.h"
#include "front/table/edm.h"
#include "front/text.h"

#include <arpa/inet.h>

/* When and from where a signature is good, whichever kind it is. */
struct terms {
    struct slice start, expiry, letters;
};

static struct slice field(const struct table_call *call, const char *name)
{
    struct slice value = table_parameter(&call->parameters, slice_of_text(name));

    return value.data ? value : SLICE("");
}

/* The same beyond the request's own bytes, which move when it goes to a worker. */
static struct slice kept(const struct table_call *call, const char *name)
{
    struct slice value = table_parameter(&call->parameters, slice_of_text(name));

    return value.data ? arena_copy(call->arena, value) : SLICE_NONE;
}

/* --- Terms ----------------------------------------------------------------------------------- */

static bool time_check(const struct table_call *call, const struct terms *terms, struct error *err)
{
    int64_t now = edm_ticks_of_ms(clock_read_wall_ms(call->services->clock)), at;

    if (terms->start.len && (!edm_date_parse(terms->start, &at) || now < at))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the signature is not valid yet, or its start is no time");
    if (!edm_date_parse(terms->expiry, &at) || now >= at)
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the signature has expired, or its expiry is missing or no time");
    return true;
}

static bool address_parse(struct slice text, uint32_t *ret_address)
{
    char copy[INET_ADDRSTRLEN];
    struct in_addr address;

    if (text.len >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, &address) != 1)
        return false;
    *ret_address = ntohl(address.s_addr);
    return true;
}

/* One address or two with a dash between them. */
static bool source_check(const struct table_call *call, struct error *err)
{
    struct slice text = field(call, "sip"), first = text, last = text;
    const struct net_address *peer = &call->http->peer;
    uint32_t low, high, at;

    if (text.len == 0)
        return true;
    (void)slice_split(text, '-', &first, &last);
    if (address_parse(first, &low) && address_parse(last, &high) && peer->len &&
        peer->any.sa_family == AF_INET) {
        at = ntohl(peer->v4.sin_addr.s_addr);
        if (at >= low && at <= high)
            return true;
    }
    return error_set(err, ERROR_TABLE_SOURCE_IP, "the signature is for %.*s",
                     (int)MIN(text.len, (size_t)40), (const char *)text.data);
}

static bool protocol_check(const struct table_call *call, struct error *err)
{
    struct slice text = field(call, "spr");

    if (text.len == 0 || slice_equal(text, SLICE("https,http")) ||
        (slice_equal(text, SLICE("https")) && call->http->tls))
        return true;
    return error_set(err, ERROR_TABLE_PROTOCOL, "the signature is for %.*s",
                     (int)MIN(text.len, (size_t)40), (const char *)text.data);
}

static bool terms_check(const struct table_call *call, const struct terms *terms, struct error *err)
{
    return time_check(call, terms, err) && source_check(call, err) && protocol_check(call, err);
}

static bool rights_take(struct table_call *call, struct slice letters, bool readonly,
                        struct error *err)
{
    if (!table_rights_parse(letters, &call->identity.rights))
        return error_set(err, ERROR_TABLE_AUTHENTICATION, "sp has letters that mean nothing");
    if (readonly)
        call->identity.rights &= TABLE_RIGHT_READ | TABLE_RIGHT_LIST;
    return true;
}

/* --- Of the account -------------------------------------------------------------------------- */

/* Since 2020-12-06 there is one field more, which tables leave empty. */
static bool account_signed(const struct table_call *call, struct slice sig, bool *ret_readonly)
{
    static const char *const names[] = {"sp", "ss", "srt", "st", "se", "sip", "spr", "sv"};
    struct slice parts[2 * ARRAY_LEN(names) + 3];
    struct front_signed texts[2] = {{parts, 0}, {parts, 0}};
    size_t count = 0;

    parts[count++] = table_call_account(call);
    parts[count++] = SLICE("\n");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        parts[count++] = field(call, names[i]);
        parts[count++] = SLICE("\n");
    }
    texts[0].count = count;
    parts[count++] = SLICE("\n");
    texts[1].count = count;
    return table_signature_check(call, sig, texts, 2, ret_readonly);
}

static bool account_sas(struct table_call *call, struct slice sig, struct error *err)
{
    const struct terms terms = {field(call, "st"), field(call, "se"), field(call, "sp")};
    struct slice services = field(call, "ss"), types = field(call, "srt");
    bool readonly;

    if (!account_signed(call, sig, &readonly))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the signature did not match that of the account's keys");
    if (!terms_check(call, &terms, err) || !rights_take(call, terms.letters, readonly, err))
        return false;
    if (!memchr(services.data, 't', services.len))
        return error_set(err, ERROR_TABLE_SERVICE, "ss has no t");
    for (size_t i = 0; i < types.len; i++) {
        const char *at = types.data[i] ? strchr("sco", types.data[i]) : NULL;

        if (!at)
            return error_set(err, ERROR_TABLE_AUTHENTICATION, "srt is made of s, c and o");
        call->identity.scopes |= 1u << (at - "sco");
    }
    return true;
}

/* --- Of a table ------------------------------------------------------------------------------ */

static bool table_signed(struct table_call *call, struct slice table, struct slice sig,
                         bool *ret_readonly)
{
    static const char *const before[] = {"sp", "st", "se"};
    static const char *const behind[] = {"si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"};
    struct slice parts[2 * (ARRAY_LEN(before) + ARRAY_LEN(behind)) + 8];
    struct front_signed text = {parts, 0};

    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        parts[text.count++] = field(call, before[i]);
        parts[text.count++] = SLICE("\n");
    }
    parts[text.count++] = SLICE("/table/");
    parts[text.count++] = table_call_account(call);
    parts[text.count++] = SLICE("/");
    parts[text.count++] = front_lower(table, call->arena);
    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        parts[text.count++] = SLICE("\n");
        parts[text.count++] = field(call, behind[i]);
    }
    return table_signature_check(call, sig, &text, 1, ret_readonly);
}

/* What the signature leaves out comes from the policy; what both say is refused. */
static bool policy_take(struct table_call *call, struct slice table, struct terms *terms,
                        struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    struct table_access_policy policy;
    struct slice id = field(call, "si");
    struct error missing;

    if (id.len == 0)
        return true;
    if (!table_space_open(call, table, &space, &missing) ||
        !table_access_find(space.container, id, &policy))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the table has no access policy of the name in si");
    if ((terms->start.len && policy.start.len) || (terms->expiry.len && policy.expiry.len) ||
        (terms->letters.len && policy.permission.len))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the signature and its access policy both say the same");
    if (!terms->start.len)
        terms->start = arena_copy(call->arena, policy.start);
    if (!terms->expiry.len)
        terms->expiry = arena_copy(call->arena, policy.expiry);
    if (!terms->letters.len)
        terms->letters = arena_copy(call->arena, policy.permission);
    return true;
}

static bool table_sas(struct table_call *call, struct slice table, struct slice sig,
                      struct error *err)
{
    struct terms terms = {field(call, "st"), field(call, "se"), field(call, "sp")};
    bool readonly;

    if (!table_signed(call, table, sig, &readonly))
        return error_set(err, ERROR_TABLE_AUTHENTICATION,
                         "the signature did not match that of the account's keys");
    if (!policy_take(call, table, &terms, err) || !terms_check(call, &terms, err) ||
        !rights_take(call, terms.letters, readonly, err))
        return false;
    call->identity.scopes = 1u << TABLE_SCOPE_OBJECT;
    call->identity.table = arena_copy(call->arena, table);
    call->identity.first = (struct table_bound){kept(call, "spk"), kept(call, "srk")};
    call->identity.last = (struct table_bound){kept(call, "epk"), kept(call, "erk")};
    return true;
}

bool table_sas_authorize(struct table_call *call, struct slice sig, struct error *err)
{
    struct slice table = table_parameter(&call->parameters, SLICE("tn"));

    for (size_t i = 0, seen = 0; i < call->parameters.count; i++) {
        seen += slice_equal(call->parameters.list[i].name, SLICE("sig"));
        if (seen > 1)
            return error_set(err, ERROR_TABLE_AUTHENTICATION, "sig is there more than once");
    }
    /* a stored policy is a table's own, so that si alone says that the path names it */
    if (!table.data && field(call, "si").len)
        table = call->route.table;
    if (field(call, "sv").len == 0)
        return error_set(err, ERROR_TABLE_AUTHENTICATION, "sv is missing");
    call->identity = (struct table_identity){.shared = true};
    return table.data ? table_sas(call, table, sig, err) : account_sas(call, sig, err);
}
