/* Accounts and their keys. An account made here has keys of its own; one made by use has none and
 * is opened by those of the default account. */
#include "front/admin/call.h"

#include "document/json.h"
#include "front/account.h"

#include <openssl/crypto.h>

enum { PAGE_DEFAULT = 1000, PAGE_MAX = 10000 };

static size_t containers_in(const struct account *account)
{
    size_t count = 0;

    for (size_t i = 0; i < account_database_count(account); i++)
        count += database_container_count(account_database(account, i));
    return count;
}

static void account_append(struct buf *out, const struct account *account)
{
    const struct catalogue_info *info = account_info(account);

    BUF_APPEND(out, "{");
    admin_text(out, "id", info->id);
    admin_text(out, "keys", account_keys(account) ? SLICE("own") : SLICE("default"));
    admin_number_append(out, "databases", account_database_count(account));
    admin_number_append(out, "containers", containers_in(account));
    admin_number_append(out, "changed", (uint64_t)(info->ts_ms / 1000));
    BUF_APPEND(out, "}");
}

static void keys_append(struct buf *out, const struct account_keys *keys)
{
    char text[ACCOUNT_KEY_TEXT_SIZE];

    BUF_APPEND(out, ",\"keys\":{");
    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        account_key_format(keys->secrets[i], text);
        admin_text(out, account_key_name((enum account_key)i), slice_of_text(text));
    }
    BUF_APPEND(out, "}");
    OPENSSL_cleanse(text, sizeof text);
}

static void keys_answer(struct admin_call *call, const struct account *account, uint16_t status)
{
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "id", account_info(account)->id);
    keys_append(&call->body, account_keys(account));
    BUF_APPEND(&call->body, "}");
    call->status = status;
}

/* --- The list -------------------------------------------------------------------------------- */

/* The page behind an id, in the order of ids. */
static void page_append(struct admin_call *call, struct account **accounts, size_t count,
                        struct slice after, size_t max)
{
    size_t shown = 0, i = 0;

    while (i < count && after.data && slice_compare(account_info(accounts[i])->id, after) <= 0)
        i++;
    BUF_APPEND(&call->body, "{\"accounts\":[");
    for (; i < count && shown < max; i++, shown++) {
        if (shown)
            BUF_APPEND(&call->body, ",");
        account_append(&call->body, accounts[i]);
    }
    BUF_APPEND(&call->body, "]");
    admin_number_append(&call->body, "total", count);
    if (i < count && shown)
        admin_text(&call->body, "next", account_info(accounts[i - 1])->id);
    BUF_APPEND(&call->body, "}");
}

bool admin_accounts_list(struct admin_call *call, struct error *err)
{
    struct account **accounts = &call->account.account;
    size_t count = 1;
    uint64_t max;

    if (!admin_number(call, SLICE("max"), 1, PAGE_MAX, PAGE_DEFAULT, &max, err))
        return false;
    if (admin_is_owner(call))
        accounts = catalogue_accounts(call->services->catalogue, call->arena, &count);
    page_append(call, accounts, count, admin_parameter(call, SLICE("after")), max);
    for (size_t i = 0; accounts != &call->account.account && i < count; i++)
        account_unref(accounts[i]);
    call->status = 200;
    return true;
}

/* --- One ------------------------------------------------------------------------------------- */

/* The account of the path, if the caller may see it. What it may not see is not there. */
static bool account_open(struct admin_call *call, struct account **ret_account, struct error *err)
{
    struct slice id = call->names[0];

    if ((admin_is_owner(call) || slice_equal(id, call->account.id)) &&
        catalogue_account_open(call->services->catalogue, id, ret_account, err))
        return true;
    return error_set(err, ERROR_NOT_FOUND, "there is no account \"%.*s\"",
                     (int)MIN(id.len, (size_t)100), (const char *)id.data);
}

bool admin_accounts_create(struct admin_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(account_keys_done) struct account_keys keys = {0};
    struct document_value id;
    struct slice body;

    if (!admin_need_owner(call, err) || !front_http_body(&call->over_http, &body, err))
        return false;
    if (!document_find(body, SLICE("id"), &id) || id.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "the account has no id, or it is not a text");
    if (!front_account_name_check(id.text, err))
        return false;
    account_keys_make(&keys);
    if (!catalogue_account_create_keyed(call->services->catalogue, id.text, SLICE_NONE, &keys,
                                        &account, err))
        return false;
    keys_answer(call, account, 201);
    return true;
}

bool admin_accounts_show(struct admin_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;

    if (!account_open(call, &account, err))
        return false;
    account_append(&call->body, account);
    call->status = 200;
    return true;
}

bool admin_accounts_drop(struct admin_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;

    if (!account_open(call, &account, err))
        return false;
    if (slice_equal(call->names[0], SLICE(CATALOGUE_ACCOUNT_DEFAULT)))
        return error_set(err, ERROR_FORBIDDEN,
                         "the account \"" CATALOGUE_ACCOUNT_DEFAULT
                         "\" cannot be dropped: its keys open the server");
    if (!catalogue_account_drop(call->services->catalogue, call->names[0], err))
        return false;
    call->status = 204;
    return true;
}

/* --- Keys ------------------------------------------------------------------------------------ */

static bool keys_needed(const struct account *account, struct error *err)
{
    struct slice id = account_info(account)->id;

    return account_keys(account) ||
           error_set(err, ERROR_NOT_FOUND,
                     "account \"%.*s\" has no keys of its own: those of the account "
                     "\"" CATALOGUE_ACCOUNT_DEFAULT "\" open it",
                     (int)MIN(id.len, (size_t)100), (const char *)id.data);
}

bool admin_keys_show(struct admin_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;

    if (!account_open(call, &account, err) || !keys_needed(account, err))
        return false;
    keys_answer(call, account, 200);
    return true;
}

bool admin_keys_rotate(struct admin_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *before = NULL;
    CLEANUP(account_unref) struct account *account = NULL;
    const struct admin_hooks *hooks = call->hooks;
    enum account_key which;

    if (!account_open(call, &before, err) || !keys_needed(before, err))
        return false;
    if (!account_key_named(call->names[1], &which))
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no such key: they are primary, secondary, primary-readonly and "
                         "secondary-readonly");
    if (!catalogue_account_rotate(call->services->catalogue, call->names[0], which, &account, err))
        return false;
    if (slice_equal(call->names[0], SLICE(CATALOGUE_ACCOUNT_DEFAULT)) && hooks->keys_changed &&
        !hooks->keys_changed(hooks->context, err))
        return error_prefix(err,
                            "the key was rotated, but the file that shows it stayed as it was");
    keys_answer(call, account, 200);
    return true;
}
