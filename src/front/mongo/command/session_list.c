/* $listLocalSessions and $listSessions: sessions of whoever asks, as far as the server remembers
 * them: those that have numbered their writes, and that of the command itself. There is one server,
 * so what is local is all there is; config.system.sessions, which $listSessions reads elsewhere, is
 * where it is asked for. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/session.h"
#include "front/mongo/command/source.h"

#include <openssl/evp.h>

enum { LISTED_MAX = 10000, USER_HASH_LEN = 32 };

struct listing {
    bool all_users;
    struct slice users;
};

static bool listing_check(const struct mongo_source *source, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"allUsers", MONGO_FIELD_BOOL, offsetof(struct listing, all_users)},
        {"users", MONGO_FIELD_ARRAY, offsetof(struct listing, users)},
    };
    struct listing listing = {0};

    if (slice_equal(source->stage, SLICE("$listSessions")) &&
        (!slice_equal(source->name->database, SLICE("config")) ||
         !slice_equal(source->name->collection, SLICE("system.sessions"))))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "$listSessions may only be run against config.system.sessions");
    if (source->specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(
            err, MONGO_TYPE_MISMATCH, "%.*s options must be specified in an object, but found: %s",
            SLICE_ARG(source->stage), mongo_type_name(source->specification->type));
    if (!mongo_fields_read(source->specification->document, "listSessions", fields,
                           ARRAY_LEN(fields), &listing, err))
        return false;
    return (!listing.all_users && !listing.users.data) ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "%.*s: %s is not offered: sessions are listed to their own user",
                           SLICE_ARG(source->stage), listing.all_users ? "allUsers" : "users");
}

/* What stands for the user in the id of a session: a hash of user@database, or of nothing. */
static void user_hash(const struct mongo_call *call, uint8_t ret_hash[USER_HASH_LEN])
{
    struct slice name = SLICE("");
    bool fine;

    if (call->session->user[0])
        name =
            arena_printf(call->arena, "%s@%s", call->session->user, call->session->user_database);
    fine = EVP_Digest(name.data, name.len, ret_hash, NULL, EVP_sha256(), NULL);
    assert(fine);
}

static bool row_add(struct mongo_rows *rows, const uint8_t *id, const uint8_t *user,
                    int64_t used_ms, struct error *err)
{
    const struct document_value uuid = {.type = DOCUMENT_BINARY,
                                        .binary = {.bytes = slice_of(id, MONGO_SESSION_ID_LEN),
                                                   .subtype = 4}},
                                hash = {.type = DOCUMENT_BINARY,
                                        .binary = {.bytes = slice_of(user, USER_HASH_LEN),
                                                   .subtype = 0}};
    CLEANUP(buf_done) struct buf row;
    size_t begin, part;

    buf_init(&row, BUF_DEFAULT_MAX);
    begin = mongo_row_begin(&row);
    part = document_append_object_begin(&row, SLICE("_id"));
    document_append(&row, SLICE("id"), &uuid);
    document_append(&row, SLICE("uid"), &hash);
    document_end(&row, part);
    document_append_date(&row, SLICE("lastUse"), used_ms);
    return mongo_row_end(rows, begin, &row, err);
}

bool mongo_source_sessions(const struct mongo_source *source, struct mongo_rows *rows,
                           struct error *err)
{
    const struct mongo_call *call = rows->call;
    int64_t now_ms = clock_read_wall_ms(call->services->clock), up_ms = clock_monotonic_ms();
    struct slice own = mongo_session_id(call);
    uint8_t user[USER_HASH_LEN], name[MONGO_SESSION_NAME_LEN];
    struct mongo_session_shown *list;
    size_t count;

    if (!listing_check(source, err))
        return false;
    user_hash(call, user);
    if (own.len == MONGO_SESSION_ID_LEN && !row_add(rows, own.data, user, now_ms, err))
        return false;
    list = ARENA_ARRAY(call->arena, struct mongo_session_shown, LISTED_MAX);
    count = mongo_sessions_list(
        call->mongo->sessions,
        call->account.account ? account_info(call->account.account)->number : 0, list, LISTED_MAX);
    for (size_t i = 0; i < count; i++) {
        struct slice id = slice_of(list[i].id, MONGO_SESSION_ID_LEN);

        mongo_call_session_name(call, id, name);
        if (memcmp(name, list[i].name, sizeof name) != 0 || slice_equal(id, own))
            continue; /* somebody else's, or listed */
        if (!row_add(rows, list[i].id, user, now_ms - (up_ms - list[i].used_ms), err))
            return false;
    }
    return true;
}
