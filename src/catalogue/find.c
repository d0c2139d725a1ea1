/* Finding by name or rid, and the checks of names and etags that every change begins with. */
#include "catalogue/catalogue_private.h"
#include "document/utf8.h"

/* Of a name in a message: a client may send anything. */
enum { NAME_SHOWN_MAX = 64 };
#define NAME_ARG(name) (int)MIN((name).len, (size_t)NAME_SHOWN_MAX), (const char *)(name).data

bool catalogue_not_found(struct error *err, bool as_owner, const char *kind, struct slice name)
{
    return error_set(err, as_owner ? ERROR_OWNER_NOT_FOUND : ERROR_NOT_FOUND,
                     "%s \"%.*s\" does not exist", kind, NAME_ARG(name));
}

bool catalogue_name_taken(struct error *err, const char *kind, struct slice name)
{
    return error_set(err, ERROR_NAME_TAKEN, "%s \"%.*s\" exists already", kind, NAME_ARG(name));
}

bool catalogue_find_account(struct catalogue_state *root, struct slice account, bool as_owner,
                            struct catalogue_found *found, struct error *err)
{
    struct catalogue_state *state = catalogue_state_find(root, account);

    if (!state)
        return catalogue_not_found(err, as_owner, "account", account);
    *found = (struct catalogue_found){.account = catalogue_state_account(state)};
    return true;
}

bool catalogue_find_database(struct catalogue_state *root, struct slice account,
                             struct slice database, bool as_owner, struct catalogue_found *found,
                             struct error *err)
{
    struct catalogue_state *state;
    struct rid rid;

    if (!catalogue_find_account(root, account, true, found, err))
        return false;
    state = catalogue_state_find(&found->account->state, database);
    if (!state && rid_parse(database, &rid) && rid.kind == RID_DATABASE)
        state = catalogue_state_find_number(&found->account->state, rid.database);
    if (!state)
        return catalogue_not_found(err, as_owner, "database", database);
    found->database = catalogue_state_database(state);
    return true;
}

bool catalogue_find_container(struct catalogue_state *root, struct slice account,
                              struct slice database, struct slice container, bool as_owner,
                              struct catalogue_found *found, struct error *err)
{
    struct catalogue_state *state;
    struct rid rid;

    if (!catalogue_find_database(root, account, database, true, found, err))
        return false;
    state = catalogue_state_find(&found->database->state, container);
    if (!state && rid_parse(container, &rid) && rid.kind == RID_CONTAINER &&
        rid.database == found->database->state.info.number)
        state = catalogue_state_find_number(&found->database->state, rid.owner);
    if (!state)
        return catalogue_not_found(err, as_owner, "container", container);
    found->container = catalogue_state_container(state);
    return true;
}

bool catalogue_etag_check(struct slice etag, struct slice if_match, struct error *err)
{
    struct slice bare = slice_of(etag.data + 1, etag.len - 2);

    if (!if_match.data || slice_equal(if_match, SLICE("*")) || slice_equal(if_match, etag) ||
        slice_equal(if_match, bare))
        return true;
    return error_set(err, ERROR_PRECONDITION_FAILED,
                     "One of the specified pre-condition is not met: the etag is %.*s",
                     SLICE_ARG(etag));
}

static size_t characters(struct slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !utf8_continues(text.data[i]);
    return count;
}

bool catalogue_id_check(const struct definition_limits *limits, struct slice id, struct error *err)
{
    if (id.len == 0 || characters(id) > limits->id_chars_max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "The input name '%.*s' is invalid. Ensure to provide a unique non-empty "
                         "string less than '%u' characters.",
                         NAME_ARG(id), limits->id_chars_max);
    if (utf8_valid_length(id) != id.len)
        return error_set(err, ERROR_BAD_REQUEST, "the name is not UTF-8 at byte %zu",
                         utf8_valid_length(id));
    for (size_t i = 0; i < id.len; i++)
        if (strchr("/\\#?", id.data[i])) /* finds a NUL too */
            return error_set(err, ERROR_BAD_REQUEST,
                             "The input name '%.*s' is invalid: it has a forbidden character at "
                             "byte %zu",
                             NAME_ARG(id), i);
    if (id.data[id.len - 1] == ' ')
        return error_set(err, ERROR_BAD_REQUEST,
                         "The input name '%.*s' is invalid: it ends with a blank", NAME_ARG(id));
    return true;
}

bool catalogue_name_free(const struct catalogue_state *parent, const char *kind, struct slice id,
                         struct error *err)
{
    return !catalogue_state_find(parent, id) || catalogue_name_taken(err, kind, id);
}

struct container *catalogue_find_container_number(struct catalogue_state *root, uint32_t account,
                                                  uint32_t database, uint32_t container)
{
    struct catalogue_state *state = root ? catalogue_state_find_number(root, account) : NULL;

    state = state ? catalogue_state_find_number(state, database) : NULL;
    state = state ? catalogue_state_find_number(state, container) : NULL;
    return state ? catalogue_state_container(state) : NULL;
}
