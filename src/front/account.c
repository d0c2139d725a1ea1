#include "front/account.h"

#include "front/text.h"

enum { NAME_CHARS_MAX = 63 };

bool front_path_is_root(struct slice word)
{
    static const char *const roots[] = {"dbs",       "offers", "_orrery",
                                        "addresses", "media",  "topology"};

    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (slice_equal(word, slice_of_text(roots[i])))
            return true;
    return false;
}

bool front_account_name_check(struct slice name, struct error *err)
{
    bool good = name.len > 0 && name.len <= NAME_CHARS_MAX && !front_path_is_root(name) &&
                !slice_equal(name, SLICE("ready")) && !slice_equal(name, SLICE("metrics"));

    for (size_t i = 0; good && i < name.len; i++) {
        uint8_t c = name.data[i], small = c | 0x20;

        good = (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
               (i > 0 && (c == '-' || c == '_' || c == '.'));
    }
    return good || error_set(err, ERROR_BAD_REQUEST,
                             "an account cannot be called \"%.*s\": its name is up to %d letters, "
                             "digits, '-', '_' and '.', begins with a letter or digit and is no "
                             "word of the API",
                             (int)MIN(name.len, (size_t)NAME_CHARS_MAX), (const char *)name.data,
                             NAME_CHARS_MAX);
}

/* Host names have no case; the account is the one in small letters. */
struct slice front_account_of_host(struct slice host, const char *suffix, struct arena *arena)
{
    struct slice known = slice_of_text(suffix ? suffix : ""), label, rest, port;

    if (!slice_split(host, '.', &label, &rest))
        return SLICE_NONE;
    (void)(slice_split(rest, ':', &rest, &port));
    if (slice_equal_nocase(rest, SLICE("localhost")) ||
        (known.len && slice_equal_nocase(rest, known)))
        return front_lower(label, arena);
    return SLICE_NONE;
}

void front_account_done(struct front_account *account)
{
    account_unref(account->account);
    account_unref(account->keys_account);
    *account = (struct front_account){0};
}

bool front_account_find(const struct front_services *services, struct slice name, bool by_use,
                        struct arena *arena, struct front_account *ret_account, struct error *err)
{
    struct front_account found = {.id = arena_copy(arena, name)};

    if (!catalogue_account_open(services->catalogue, name, &found.account, err)) {
        if (err->code != ERROR_NOT_FOUND)
            return false;
        found.missing = !by_use;
        if (by_use && !front_account_name_check(name, err))
            return false;
    }
    found.keys = found.account ? account_keys(found.account) : NULL;
    if (!found.keys) {
        if (!catalogue_account_open(services->catalogue, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT),
                                    &found.keys_account, err)) {
            front_account_done(&found);
            return false;
        }
        found.keys = account_keys(found.keys_account);
    }
    *ret_account = found;
    return true;
}

bool front_account_check(bool missing, struct slice id, struct error *err)
{
    return !missing || error_set(err, ERROR_ACCOUNT_MISSING,
                                 "account \"%.*s\" does not exist: create it with orrery account "
                                 "create, or let accounts be made by use with account.by_use",
                                 (int)MIN(id.len, (size_t)64), (const char *)id.data);
}

bool front_account_make(const struct front_services *services, struct slice id,
                        struct account **account, struct error *err)
{
    if (*account || catalogue_account_create(services->catalogue, id, SLICE_NONE, account, err))
        return true;
    return err->code == ERROR_NAME_TAKEN &&
           catalogue_account_open(services->catalogue, id, account, err);
}
