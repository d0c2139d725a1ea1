/* Users: createUser and its family. A user belongs to an account and a database; what it may do is
 * said by its roles (permit.c). Passwords are never kept, only what SCRAM makes of them. */
#include "front/mongo/command/users.h"

#include "base/random.h"

#include <openssl/crypto.h>
#include <utf8proc.h>

enum { PASSWORD_MAX = 1024, SHOWN_MAX = 64 };

#define SHOWN(text) (int)MIN((text).len, (size_t)SHOWN_MAX), (const char *)(text).data

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- Shared ---------------------------------------------------------------------------------- */

static bool role_item_read(const struct mongo_call *call, const struct document_value *value,
                           struct mongo_namespace *ret_role, struct error *err)
{
    struct document_value name, database;

    if (value->type == DOCUMENT_STRING) {
        *ret_role = (struct mongo_namespace){call->message.database, value->text};
        return true;
    }
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("role"), &name) ||
        name.type != DOCUMENT_STRING || !document_find(value->document, SLICE("db"), &database) ||
        database.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Role names must be either strings or objects of role and db");
    *ret_role = (struct mongo_namespace){database.text, name.text};
    return true;
}

static void role_append(struct buf *out, uint32_t index, const struct mongo_namespace *role)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(out, document_index_key(index, text));

    document_append_string(out, SLICE("role"), role->collection);
    document_append_string(out, SLICE("db"), role->database);
    document_end(out, one);
}

bool mongo_roles_read(struct mongo_call *call, const struct mongo_directory *directory,
                      struct slice array, enum mongo_action need, struct slice *ret_roles,
                      struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_namespace role = {0};
    struct document_iter iter;
    uint32_t count = 0;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (!role_item_read(call, &iter.value, &role, err))
            return false;
        if (!mongo_directory_has_role(directory, role.database, role.collection))
            return mongo_error_set(err, MONGO_ROLE_NOT_FOUND, "Could not find role: %.*s@%.*s",
                                   SHOWN(role.collection), SHOWN(role.database));
        if (!mongo_permit_allows(call, need, role.database, SLICE("")))
            return mongo_permit_refuse(call, err);
        role_append(&out, count++, &role);
    }
    document_end(&out, begin);
    *ret_roles = arena_copy(call->arena, buf_slice(&out));
    return true;
}

static bool roles_have(const struct mongo_call *call, struct slice roles,
                       const struct mongo_namespace *wanted)
{
    struct mongo_namespace role = {0};
    struct document_iter iter;
    struct error unused;

    document_iter_init(&iter, roles);
    while (document_iter_next(&iter))
        if (role_item_read(call, &iter.value, &role, &unused) &&
            slice_equal(role.database, wanted->database) &&
            slice_equal(role.collection, wanted->collection))
            return true;
    return false;
}

struct slice mongo_roles_merge(struct mongo_call *call, struct slice roles, struct slice others,
                               bool without)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_namespace role = {0};
    struct document_iter iter;
    struct error unused;
    uint32_t count = 0;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (roles.data) {
        document_iter_init(&iter, roles);
        while (document_iter_next(&iter))
            if (role_item_read(call, &iter.value, &role, &unused) &&
                !(without && roles_have(call, others, &role)))
                role_append(&out, count++, &role);
    }
    if (!without) {
        document_iter_init(&iter, others);
        while (document_iter_next(&iter))
            if (role_item_read(call, &iter.value, &role, &unused) &&
                !(roles.data && roles_have(call, roles, &role)))
                role_append(&out, count++, &role);
    }
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

bool mongo_users_change(struct mongo_call *call, struct mongo_directory **ret_directory,
                        struct error *err)
{
    assert(call->may_block);
    return mongo_directory_change_begin(
        call->mongo->directories, account_info(call->account.account)->number, ret_directory, err);
}

struct slice mongo_record_with(struct mongo_call *call, struct slice record,
                               const struct mongo_member *members, size_t count)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (record.data) {
        document_iter_init(&iter, record);
        while (document_iter_next(&iter)) {
            bool other = false;

            for (size_t i = 0; i < count; i++)
                other = other || slice_equal(members[i].name, iter.key);
            if (!other)
                document_append(&out, iter.key, &iter.value);
        }
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].value.type != DOCUMENT_UNDEFINED)
            document_append(&out, members[i].name, &members[i].value);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

/* --- Passwords ------------------------------------------------------------------------------- */

/* SASLprep (RFC 4013) of what is not ASCII: normal form KC, spaces made one kind, and nothing that
 * cannot be typed. */
static bool password_prepare(struct mongo_call *call, struct slice password,
                             struct slice *ret_prepared, struct error *err)
{
    utf8proc_uint8_t *made = NULL;
    utf8proc_ssize_t len;
    bool ascii = true, control = false;

    for (size_t i = 0; i < password.len; i++) {
        ascii = ascii && password.data[i] < 0x80;
        control = control || password.data[i] < 0x20 || password.data[i] == 0x7F;
    }
    if (control)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Error preflighting UTF-8 password: it has control characters");
    *ret_prepared = password;
    if (ascii)
        return true;
    len = utf8proc_map(password.data, (utf8proc_ssize_t)password.len, &made,
                       UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_IGNORE |
                           UTF8PROC_REJECTNA);
    if (len < 0)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Error preflighting UTF-8 password: it is not normal text");
    *ret_prepared = arena_copy(call->arena, slice_of(made, (size_t)len));
    OPENSSL_cleanse(made, (size_t)len);
    free(made);
    return true;
}

static void credential_append(struct buf *out, enum mongo_scram scram, struct slice secret)
{
    bool sha_1 = scram == MONGO_SCRAM_SHA_1;
    uint32_t iterations = mongo_iterations(scram);
    size_t len = mongo_scram_key_len(scram), part;
    struct mongo_scram_keys keys;
    uint8_t salt[MONGO_SALT_MAX];
    struct document_value value = {.type = DOCUMENT_BINARY};

    random_secret(salt, sizeof salt);
    value.binary.bytes = slice_of(salt, mongo_salt_len(scram));
    mongo_scram_derive(scram, secret, value.binary.bytes, iterations, &keys);
    part = document_append_object_begin(out, sha_1 ? SLICE("SCRAM-SHA-1") : SLICE("SCRAM-SHA-256"));
    document_append_int32(out, SLICE("iterationCount"), (int32_t)iterations);
    document_append(out, SLICE("salt"), &value);
    value.binary.bytes = slice_of(keys.stored, len);
    document_append(out, SLICE("storedKey"), &value);
    value.binary.bytes = slice_of(keys.server, len);
    document_append(out, SLICE("serverKey"), &value);
    document_end(out, part);
    OPENSSL_cleanse(&keys, sizeof keys);
}

struct asked {
    struct slice password, roles, mechanisms;
    struct document_value custom, restrictions, digest;
};

static const struct mongo_field user_fields[] = {
    {"pwd", MONGO_FIELD_STRING, offsetof(struct asked, password)},
    {"roles", MONGO_FIELD_ARRAY, offsetof(struct asked, roles)},
    {"mechanisms", MONGO_FIELD_ARRAY, offsetof(struct asked, mechanisms)},
    {"customData", MONGO_FIELD_VALUE, offsetof(struct asked, custom)},
    {"authenticationRestrictions", MONGO_FIELD_VALUE, offsetof(struct asked, restrictions)},
    {"digestPassword", MONGO_FIELD_VALUE, offsetof(struct asked, digest)},
};

static bool mechanisms_read(struct slice array, bool ret_wanted[MONGO_SCRAMS], struct error *err)
{
    struct document_iter iter;

    for (int i = 0; i < MONGO_SCRAMS; i++)
        ret_wanted[i] = !array.data;
    if (!array.data)
        return true;
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        bool sha_1 = iter.value.type == DOCUMENT_STRING &&
                     slice_equal(iter.value.text, SLICE("SCRAM-SHA-1"));
        bool sha_256 = iter.value.type == DOCUMENT_STRING &&
                       slice_equal(iter.value.text, SLICE("SCRAM-SHA-256"));

        if (!sha_1 && !sha_256)
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "mechanisms may be SCRAM-SHA-1 and SCRAM-SHA-256");
        ret_wanted[sha_1 ? MONGO_SCRAM_SHA_1 : MONGO_SCRAM_SHA_256] = true;
    }
    return ret_wanted[0] || ret_wanted[1] ||
           mongo_error_set(err, MONGO_BAD_VALUE, "mechanisms field must not be empty");
}

/* {mechanism: {...}}, in the arena. */
static bool credentials_make(struct mongo_call *call, struct slice user, const struct asked *asked,
                             struct slice *ret_credentials, struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    char digest[MONGO_SCRAM_DIGEST_LEN];
    bool wanted[MONGO_SCRAMS];
    struct slice prepared;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!mechanisms_read(asked->mechanisms, wanted, err))
        return false;
    if (!asked->password.len || asked->password.len > PASSWORD_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "Password must be of 1 to %d bytes",
                               PASSWORD_MAX);
    if (!password_prepare(call, asked->password, &prepared, err))
        return false;
    begin = document_begin(&out);
    if (wanted[MONGO_SCRAM_SHA_1]) {
        mongo_scram_digest(user, asked->password, digest);
        credential_append(&out, MONGO_SCRAM_SHA_1, slice_of(digest, sizeof digest));
        OPENSSL_cleanse(digest, sizeof digest);
    }
    if (wanted[MONGO_SCRAM_SHA_256])
        credential_append(&out, MONGO_SCRAM_SHA_256, prepared);
    document_end(&out, begin);
    *ret_credentials = arena_copy(call->arena, buf_slice(&out));
    return true;
}

static bool asked_check(const struct asked *asked, struct error *err)
{
    if (is_given(&asked->custom) && asked->custom.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "customData must be an object");
    if (is_given(&asked->restrictions) && (asked->restrictions.type != DOCUMENT_ARRAY ||
                                           document_count(asked->restrictions.document)))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "authenticationRestrictions are not offered");
    return asked->digest.type != DOCUMENT_BOOL || asked->digest.boolean ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "digestPassword: false is not offered: the server makes the digest");
}

/* Users that certificates stand for: they have no password. */
static bool is_external(const struct mongo_call *call)
{
    return slice_equal(call->message.database, SLICE("$external"));
}

static bool name_check(const struct mongo_call *call, struct slice name, struct error *err)
{
    if (!name.len || name.len >= MONGO_USER_NAME_MAX || memchr(name.data, 0, name.len))
        return mongo_error_set(err, MONGO_BAD_VALUE, "names have 1 to %d bytes and no NUL",
                               MONGO_USER_NAME_MAX - 1);
    return is_external(call) || mongo_database_check(call->message.database, err);
}

static bool target_name(const struct mongo_call *call, struct slice *ret_name, struct error *err)
{
    if (call->target.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s' is the wrong type '%s', expected type 'string'",
                               call->command->name, mongo_type_name(call->target.type));
    *ret_name = call->target.text;
    return name_check(call, *ret_name, err);
}

static void mark_make(uint8_t mark[MONGO_MARK_LEN], struct document_value *ret_value)
{
    random_secret(mark, MONGO_MARK_LEN);
    mark[6] = (uint8_t)((mark[6] & 0x0F) | 0x40);
    mark[8] = (uint8_t)((mark[8] & 0x3F) | 0x80);
    *ret_value = (struct document_value){
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(mark, MONGO_MARK_LEN), .subtype = 4}};
}

static bool user_write(struct mongo_call *call, const struct mongo_directory *directory,
                       struct slice name, struct slice record, struct error *err)
{
    const struct mongo_directory_write write = {
        .database = call->message.database, .name = name, .record = record};

    return mongo_directory_write(call->mongo->directories, directory, &write, 1, err);
}

/* --- createUser ------------------------------------------------------------------------------ */

/* A user of the default account may not be called as an account: by that name its keys are known.
 */
static bool name_is_account(struct mongo_call *call, struct slice name)
{
    struct account *account;
    struct error unused;

    if (!slice_equal(call->account.id, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT)))
        return false;
    if (!catalogue_account_open(call->services->catalogue, name, &account, &unused))
        return false;
    account_unref(account);
    return true;
}

static bool create_run(struct mongo_call *call, const struct mongo_directory *directory,
                       struct slice name, const struct asked *asked, struct slice credentials,
                       struct error *err)
{
    struct mongo_member members[7] = {
        {SLICE("v"), {.type = DOCUMENT_INT32, .int32 = 1}},
        {SLICE("user"), document_string(name)},
        {SLICE("db"), document_string(call->message.database)},
        {SLICE("mark"), document_undefined()},
        {SLICE("roles"), document_undefined()},
        {SLICE("credentials"), document_object(credentials)},
        {SLICE("customData"),
         asked->custom.type == DOCUMENT_OBJECT ? asked->custom : document_undefined()},
    };
    uint8_t mark[MONGO_MARK_LEN];
    struct slice roles;

    if (mongo_directory_user(directory, call->message.database, name) ||
        name_is_account(call, name))
        return mongo_error_set(err, 51003, "User \"%.*s@%.*s\" already exists", SHOWN(name),
                               SHOWN(call->message.database));
    if (!mongo_roles_read(call, directory, asked->roles, MONGO_ACTION_GRANT_ROLE, &roles, err))
        return false;
    mark_make(mark, &members[3].value);
    members[4].value = document_array(roles);
    return user_write(call, directory, name,
                      mongo_record_with(call, SLICE_NONE, members, ARRAY_LEN(members)), err);
}

bool mongo_create_user(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct slice name, credentials;
    struct asked asked = {0};
    bool fine;

    if (!target_name(call, &name, err) ||
        !mongo_arguments_read(call, user_fields, ARRAY_LEN(user_fields), &asked, err) ||
        !asked_check(&asked, err))
        return false;
    if (is_external(call) && (asked.password.data || asked.mechanisms.data))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Cannot set the password for users defined on the '$external' "
                               "database");
    if (!asked.password.data && !is_external(call))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Must provide a 'pwd' field for all user documents, except those "
                               "with '$external' as the user's source db");
    if (!asked.roles.data)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'createUser.roles' is missing but a required field");
    if (is_external(call))
        credentials = SLICE("\5\0\0\0\0");
    else if (!credentials_make(call, name, &asked, &credentials, err))
        return false;
    if (!mongo_users_change(call, &directory, err))
        return false;
    fine = create_run(call, directory, name, &asked, credentials, err);
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

/* --- updateUser ------------------------------------------------------------------------------ */

static bool user_missing(const struct mongo_call *call, struct slice name, struct error *err)
{
    return mongo_error_set(err, MONGO_USER_NOT_FOUND,
                           "Could not find user \"%.*s\" for db \"%.*s\"", SHOWN(name),
                           SHOWN(call->message.database));
}

static bool is_self(const struct mongo_call *call, struct slice name)
{
    return call->session->by_user && slice_equal(name, slice_of_text(call->session->user)) &&
           slice_equal(call->message.database, slice_of_text(call->session->user_database));
}

/* Of others' by changePassword, of one's own by changeOwnPassword. */
static bool update_allowed(const struct mongo_call *call, struct slice name,
                           const struct asked *asked)
{
    struct slice database = call->message.database;
    bool self = is_self(call, name);

#define MAY(action) mongo_permit_allows(call, MONGO_ACTION_##action, database, SLICE(""))
    if ((asked->password.data || asked->mechanisms.data) && !MAY(CHANGE_PASSWORD) &&
        !(self && MAY(CHANGE_OWN_PASSWORD)))
        return false;
    if (is_given(&asked->custom) && !MAY(CHANGE_CUSTOM_DATA) &&
        !(self && MAY(CHANGE_OWN_CUSTOM_DATA)))
        return false;
    /* the roles it has are revoked with that */
    return !asked->roles.data || MAY(REVOKE_ROLE);
#undef MAY
}

static bool update_run(struct mongo_call *call, const struct mongo_directory *directory,
                       struct slice name, const struct asked *asked, struct slice credentials,
                       struct error *err)
{
    const struct mongo_principal *user =
        mongo_directory_user(directory, call->message.database, name);
    struct mongo_member members[4];
    uint8_t mark[MONGO_MARK_LEN];
    struct slice roles;
    size_t count = 0;

    if (!user)
        return user_missing(call, name, err);
    if (asked->roles.data) {
        if (!mongo_roles_read(call, directory, asked->roles, MONGO_ACTION_GRANT_ROLE, &roles, err))
            return false;
        members[count++] = (struct mongo_member){SLICE("roles"), document_array(roles)};
    }
    if (credentials.data) {
        members[count++] =
            (struct mongo_member){SLICE("credentials"), document_object(credentials)};
        members[count].name = SLICE("mark");
        mark_make(mark, &members[count++].value);
    }
    if (asked->custom.type == DOCUMENT_OBJECT)
        members[count++] = (struct mongo_member){SLICE("customData"), asked->custom};
    return user_write(call, directory, name, mongo_record_with(call, user->record, members, count),
                      err);
}

bool mongo_update_user(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct slice name, credentials = SLICE_NONE;
    struct asked asked = {0};
    bool fine;

    if (!target_name(call, &name, err) ||
        !mongo_arguments_read(call, user_fields, ARRAY_LEN(user_fields), &asked, err) ||
        !asked_check(&asked, err))
        return false;
    if (!update_allowed(call, name, &asked))
        return mongo_permit_refuse(call, err);
    if (is_external(call) && asked.password.data)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Cannot set the password for users defined on the '$external' "
                               "database");
    if (asked.mechanisms.data && !asked.password.data)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "mechanisms need the password along with them");
    if (!asked.password.data && !asked.roles.data && !is_given(&asked.custom))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Must specify at least one field to update in updateUser");
    if ((asked.password.data && !credentials_make(call, name, &asked, &credentials, err)) ||
        !mongo_users_change(call, &directory, err))
        return false;
    fine = update_run(call, directory, name, &asked, credentials, err);
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

/* --- dropUser -------------------------------------------------------------------------------- */

bool mongo_drop_user(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct slice name;
    bool fine;

    if (!target_name(call, &name, err) || !mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    fine = mongo_directory_user(directory, call->message.database, name)
               ? user_write(call, directory, name, SLICE_NONE, err)
               : mongo_error_set(err, MONGO_USER_NOT_FOUND, "User '%.*s@%.*s' not found",
                                 SHOWN(name), SHOWN(call->message.database));
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

bool mongo_drop_all_users(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct mongo_directory_write *writes;
    const struct mongo_principal *users;
    size_t all, count = 0;
    bool fine;

    if (!mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    users = mongo_directory_users(directory, &all);
    writes = ARENA_ARRAY(call->arena, struct mongo_directory_write, all + 1);
    for (size_t i = 0; i < all; i++)
        if (slice_equal(users[i].database, call->message.database))
            writes[count++] = (struct mongo_directory_write){.database = users[i].database,
                                                             .name = users[i].name};
    fine = mongo_directory_write(call->mongo->directories, directory, writes, count, err);
    mongo_directory_change_end(call->mongo->directories);
    document_append_int32(&call->reply, SLICE("n"), (int32_t)count);
    return fine;
}

/* --- grantRolesToUser and its opposite -------------------------------------------------------- */

struct granted {
    struct slice roles;
};

static bool roles_change(struct mongo_call *call, bool revoke, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"roles", MONGO_FIELD_ARRAY, offsetof(struct granted, roles), true}};
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    const struct mongo_principal *user;
    struct granted granted = {0};
    struct mongo_member member = {.name = SLICE("roles")};
    struct slice name, roles;
    bool fine;

    if (!target_name(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &granted, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    user = mongo_directory_user(directory, call->message.database, name);
    fine = mongo_roles_read(call, directory, granted.roles,
                            revoke ? MONGO_ACTION_REVOKE_ROLE : MONGO_ACTION_GRANT_ROLE, &roles,
                            err) &&
           (user || user_missing(call, name, err));
    if (fine) {
        member.value = document_array(mongo_roles_merge(call, user->roles, roles, revoke));
        fine = user_write(call, directory, name, mongo_record_with(call, user->record, &member, 1),
                          err);
    }
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

bool mongo_grant_roles(struct mongo_call *call, struct error *err)
{
    return roles_change(call, false, err);
}

bool mongo_revoke_roles(struct mongo_call *call, struct error *err)
{
    return roles_change(call, true, err);
}

/* --- usersInfo ------------------------------------------------------------------------------- */

struct info {
    bool credentials, privileges, custom;
    struct document_value filter;
};

/* 1: of the database; a name; {user, db}; {forAllDBs: true}; or a list of such. */
static bool is_meant(const struct mongo_call *call, const struct document_value *asked,
                     const struct mongo_principal *user)
{
    struct document_value part;
    struct document_iter iter;
    struct slice database = call->message.database;

    switch (asked->type) {
    case DOCUMENT_STRING:
        return slice_equal(user->database, database) && slice_equal(user->name, asked->text);
    case DOCUMENT_OBJECT:
        if (document_find(asked->document, SLICE("forAllDBs"), &part))
            return true;
        if (document_find(asked->document, SLICE("db"), &part) && part.type == DOCUMENT_STRING)
            database = part.text;
        return slice_equal(user->database, database) &&
               document_find(asked->document, SLICE("user"), &part) &&
               part.type == DOCUMENT_STRING && slice_equal(user->name, part.text);
    case DOCUMENT_ARRAY:
        document_iter_init(&iter, asked->document);
        while (document_iter_next(&iter))
            if (iter.value.type != DOCUMENT_ARRAY && is_meant(call, &iter.value, user))
                return true;
        return false;
    default:
        return slice_equal(user->database, database);
    }
}

static void user_show(struct mongo_call *call, const struct mongo_directory *directory,
                      const struct mongo_principal *user, const struct info *info, uint32_t index)
{
    static const char *const mechanisms[MONGO_SCRAMS] = {"SCRAM-SHA-1", "SCRAM-SHA-256"};
    struct buf *out = &call->reply;
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(out, document_index_key(index, text)), list;
    struct document_value value;
    uint32_t count = 0;

    document_append_string(
        out, SLICE("_id"),
        arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(user->database), SLICE_ARG(user->name)));
    value = (struct document_value){
        .type = DOCUMENT_BINARY,
        .binary = {.bytes = slice_of(user->mark, MONGO_MARK_LEN), .subtype = 4}};
    document_append(out, SLICE("userId"), &value);
    document_append_string(out, SLICE("user"), user->name);
    document_append_string(out, SLICE("db"), user->database);
    if (info->custom && document_find(user->record, SLICE("customData"), &value))
        document_append(out, SLICE("customData"), &value);
    value = document_array(user->roles);
    document_append(out, SLICE("roles"), &value);
    list = document_append_array_begin(out, SLICE("mechanisms"));
    for (int i = 0; i < MONGO_SCRAMS; i++)
        if (user->credentials[i].given)
            document_append_string(out, document_index_key(count++, text),
                                   slice_of_text(mechanisms[i]));
    document_end(out, list);
    if (info->credentials && document_find(user->record, SLICE("credentials"), &value))
        document_append(out, SLICE("credentials"), &value);
    if (info->privileges) {
        struct mongo_privileges privileges = {.arena = call->arena};
        CLEANUP(buf_done) struct buf inherited;

        buf_init(&inherited, BUF_DEFAULT_MAX);
        mongo_directory_resolve(directory, user->roles, &privileges, &inherited);
        list = document_append_array_begin(out, SLICE("inheritedRoles"));
        buf_append_slice(out, buf_slice(&inherited));
        document_end(out, list);
        mongo_privileges_append(&privileges, SLICE("inheritedPrivileges"), out);
    }
    document_end(out, one);
}

/* Whoever may not view users sees itself. */
bool mongo_users_info(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"showCredentials", MONGO_FIELD_BOOL, offsetof(struct info, credentials)},
        {"showPrivileges", MONGO_FIELD_BOOL, offsetof(struct info, privileges)},
        {"showCustomData", MONGO_FIELD_BOOL, offsetof(struct info, custom)},
        {"showAuthenticationRestrictions", MONGO_FIELD_ANY}, /* there are none */
        {"filter", MONGO_FIELD_VALUE, offsetof(struct info, filter)},
    };
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct info info = {.custom = true};
    const struct mongo_principal *users;
    uint32_t shown = 0;
    size_t count, list;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &info, err))
        return false;
    if (is_given(&info.filter))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "usersInfo: filter is not offered");
    if (!mongo_directory_open(call->mongo->directories, account_info(call->account.account)->number,
                              true, &directory, err))
        return false;
    users = mongo_directory_users(directory, &count);
    list = document_append_array_begin(&call->reply, SLICE("users"));
    for (size_t i = 0; i < count; i++) {
        bool self = call->session->by_user &&
                    slice_equal(users[i].name, slice_of_text(call->session->user)) &&
                    slice_equal(users[i].database, slice_of_text(call->session->user_database));

        if (!is_meant(call, &call->target, &users[i]))
            continue;
        if (!mongo_permit_allows(call, MONGO_ACTION_VIEW_USER, users[i].database, SLICE("")) &&
            (!self || info.credentials))
            return mongo_permit_refuse(call, err);
        user_show(call, directory, &users[i], &info, shown++);
    }
    document_end(&call->reply, list);
    return true;
}
