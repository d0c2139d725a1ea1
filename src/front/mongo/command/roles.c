/* Roles that were made: createRole and its family. */
#include "front/mongo/command/users.h"

enum { SHOWN_MAX = 64 };

#define SHOWN(text) (int)MIN((text).len, (size_t)SHOWN_MAX), (const char *)(text).data

struct asked {
    struct slice privileges, roles;
    struct document_value restrictions;
};

static const struct mongo_field role_fields[] = {
    {"privileges", MONGO_FIELD_ARRAY, offsetof(struct asked, privileges)},
    {"roles", MONGO_FIELD_ARRAY, offsetof(struct asked, roles)},
    {"authenticationRestrictions", MONGO_FIELD_VALUE, offsetof(struct asked, restrictions)},
};

static bool role_name(const struct mongo_call *call, struct slice *ret_name, struct error *err)
{
    if (call->target.type != DOCUMENT_STRING || !call->target.text.len ||
        call->target.text.len >= MONGO_USER_NAME_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "names of roles have 1 to %d bytes",
                               MONGO_USER_NAME_MAX - 1);
    *ret_name = call->target.text;
    return mongo_database_check(call->message.database, err);
}

static bool role_missing(const struct mongo_call *call, struct slice name, struct error *err)
{
    return mongo_error_set(err, MONGO_ROLE_NOT_FOUND, "Could not find role: %.*s@%.*s", SHOWN(name),
                           SHOWN(call->message.database));
}

/* A role of another database than admin gives nothing outside its database; and nobody gives what
 * it may not grant there. */
static bool privileges_check(struct mongo_call *call, struct slice array, struct error *err)
{
    struct mongo_privileges privileges = {.arena = call->arena};
    bool admin = slice_equal(call->message.database, SLICE("admin"));

    if (!mongo_privileges_read(array, &privileges, err))
        return false;
    for (size_t i = 0; i < privileges.count; i++) {
        const struct mongo_resource *resource = &privileges.list[i].resource;
        bool own = resource->kind == MONGO_RESOURCE_NAMESPACE &&
                   slice_equal(resource->database, call->message.database);
        struct slice granted_on =
            resource->kind == MONGO_RESOURCE_NAMESPACE && resource->database.len
                ? resource->database
                : SLICE("admin");

        if (!admin && !own)
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "Roles on the '%.*s' database cannot be granted privileges that "
                                   "target other databases or the cluster",
                                   SHOWN(call->message.database));
        if (!mongo_permit_allows(call, MONGO_ACTION_GRANT_ROLE, granted_on, SLICE("")))
            return mongo_permit_refuse(call, err);
    }
    return true;
}

/* The members of a record that the command says something of. */
static bool members_read(struct mongo_call *call, const struct mongo_directory *directory,
                         const struct asked *asked, struct mongo_member members[2],
                         size_t *ret_count, struct error *err)
{
    struct slice roles;

    *ret_count = 0;
    if (asked->restrictions.type == DOCUMENT_ARRAY && document_count(asked->restrictions.document))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "authenticationRestrictions are not offered");
    if (asked->privileges.data) {
        if (!privileges_check(call, asked->privileges, err))
            return false;
        members[(*ret_count)++] =
            (struct mongo_member){SLICE("privileges"), document_array(asked->privileges)};
    }
    if (asked->roles.data) {
        if (!mongo_roles_read(call, directory, asked->roles, MONGO_ACTION_GRANT_ROLE, &roles, err))
            return false;
        members[(*ret_count)++] = (struct mongo_member){SLICE("roles"), document_array(roles)};
    }
    return true;
}

static bool role_write(struct mongo_call *call, const struct mongo_directory *directory,
                       struct slice name, bool create, const struct asked *asked, struct error *err)
{
    const struct mongo_principal *before =
        mongo_directory_role(directory, call->message.database, name);
    const struct mongo_member head[] = {
        {SLICE("v"), {.type = DOCUMENT_INT32, .int32 = 1}},
        {SLICE("role"), document_string(name)},
        {SLICE("db"), document_string(call->message.database)},
    };
    struct mongo_directory_write write = {
        .role = true, .database = call->message.database, .name = name};
    struct mongo_member members[2];
    size_t count;

    if (create && mongo_directory_has_role(directory, call->message.database, name))
        return mongo_error_set(err, 51002, "Role \"%.*s@%.*s\" already exists", SHOWN(name),
                               SHOWN(call->message.database));
    if (!create && !before)
        return role_missing(call, name, err);
    if (!members_read(call, directory, asked, members, &count, err))
        return false;
    write.record =
        before ? before->record : mongo_record_with(call, SLICE_NONE, head, ARRAY_LEN(head));
    write.record = mongo_record_with(call, write.record, members, count);
    return mongo_directory_write(call->mongo->directories, directory, &write, 1, err);
}

static bool role_change(struct mongo_call *call, bool create, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct asked asked = {0};
    struct slice name = SLICE_NONE;
    bool fine;

    if (!role_name(call, &name, err) ||
        !mongo_arguments_read(call, role_fields, ARRAY_LEN(role_fields), &asked, err))
        return false;
    if (create && (!asked.privileges.data || !asked.roles.data))
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'createRole.%s' is missing but a required field",
                               asked.privileges.data ? "roles" : "privileges");
    if (!mongo_users_change(call, &directory, err))
        return false;
    fine = role_write(call, directory, name, create, &asked, err);
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

bool mongo_create_role(struct mongo_call *call, struct error *err)
{
    return role_change(call, true, err);
}

bool mongo_update_role(struct mongo_call *call, struct error *err)
{
    return role_change(call, false, err);
}

/* --- grantPrivilegesToRole, grantRolesToRole and their opposites ------------------------------ */

struct granted {
    struct slice privileges, roles;
};

/* The privileges of the role with these, or without them. */
static bool privileges_merge(struct mongo_call *call, const struct mongo_principal *role,
                             struct slice given, bool revoke, struct document_value *ret_merged,
                             struct error *err)
{
    struct mongo_privileges all = {.arena = call->arena}, some = {.arena = call->arena};
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!privileges_check(call, given, err) || !mongo_privileges_read(given, &some, err) ||
        (role->privileges.data && !mongo_privileges_read(role->privileges, &all, err)))
        return false;
    for (size_t i = 0; i < some.count; i++)
        (revoke ? mongo_privileges_remove : mongo_privileges_add)(&all, &some.list[i]);
    begin = document_begin(&out);
    mongo_privileges_append(&all, SLICE("p"), &out);
    document_end(&out, begin);
    return document_find(arena_copy(call->arena, buf_slice(&out)), SLICE("p"), ret_merged);
}

static bool granted_write(struct mongo_call *call, const struct mongo_directory *directory,
                          struct slice name, const struct granted *granted, bool revoke,
                          struct error *err)
{
    const struct mongo_principal *role =
        mongo_directory_role(directory, call->message.database, name);
    enum mongo_action need = revoke ? MONGO_ACTION_REVOKE_ROLE : MONGO_ACTION_GRANT_ROLE;
    struct mongo_directory_write write = {
        .role = true, .database = call->message.database, .name = name};
    struct mongo_member member = {.name = SLICE("roles")};
    struct slice roles;

    if (!role)
        return role_missing(call, name, err);
    if (granted->privileges.data) {
        member.name = SLICE("privileges");
        if (!privileges_merge(call, role, granted->privileges, revoke, &member.value, err))
            return false;
    } else {
        if (!mongo_roles_read(call, directory, granted->roles, need, &roles, err))
            return false;
        member.value = document_array(mongo_roles_merge(
            call, role->roles.data ? role->roles : SLICE("\5\0\0\0\0"), roles, revoke));
    }
    write.record = mongo_record_with(call, role->record, &member, 1);
    return mongo_directory_write(call->mongo->directories, directory, &write, 1, err);
}

static bool granted_change(struct mongo_call *call, const struct mongo_field *field, bool revoke,
                           struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct granted granted = {0};
    struct slice name = SLICE_NONE;
    bool fine;

    if (!role_name(call, &name, err) || !mongo_arguments_read(call, field, 1, &granted, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    fine = granted_write(call, directory, name, &granted, revoke, err);
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

static const struct mongo_field privileges_field = {"privileges", MONGO_FIELD_ARRAY,
                                                    offsetof(struct granted, privileges), true};
static const struct mongo_field roles_field = {"roles", MONGO_FIELD_ARRAY,
                                               offsetof(struct granted, roles), true};

bool mongo_grant_privileges_to_role(struct mongo_call *call, struct error *err)
{
    return granted_change(call, &privileges_field, false, err);
}

bool mongo_revoke_privileges_from_role(struct mongo_call *call, struct error *err)
{
    return granted_change(call, &privileges_field, true, err);
}

bool mongo_grant_roles_to_role(struct mongo_call *call, struct error *err)
{
    return granted_change(call, &roles_field, false, err);
}

bool mongo_revoke_roles_from_role(struct mongo_call *call, struct error *err)
{
    return granted_change(call, &roles_field, true, err);
}

/* --- dropRole -------------------------------------------------------------------------------- */

struct dropping {
    struct mongo_directory_write *writes;
    size_t count;
    struct slice roles; /* that go: [{role, db}] */
};

/* Whoever has a role that goes has it no more. */
static void holders_change(struct mongo_call *call, const struct mongo_principal *list,
                           size_t count, bool role, struct dropping *dropping)
{
    for (size_t i = 0; i < count; i++) {
        struct slice kept;
        struct mongo_member member;

        if (!list[i].roles.data)
            continue;
        kept = mongo_roles_merge(call, list[i].roles, dropping->roles, true);
        if (document_count(kept) == document_count(list[i].roles))
            continue;
        member = (struct mongo_member){SLICE("roles"), document_array(kept)};
        dropping->writes[dropping->count++] = (struct mongo_directory_write){
            .role = role,
            .database = list[i].database,
            .name = list[i].name,
            .record = mongo_record_with(call, list[i].record, &member, 1)};
    }
}

/* name data NULL: all of the database. */
static bool roles_drop(struct mongo_call *call, const struct mongo_directory *directory,
                       struct slice name, int32_t *ret_count, struct error *err)
{
    CLEANUP(buf_done) struct buf gone;
    struct dropping dropping = {0};
    const struct mongo_principal *users, *roles;
    size_t user_count, role_count, begin, one;
    char text[DOCUMENT_INDEX_SIZE];

    users = mongo_directory_users(directory, &user_count);
    roles = mongo_directory_roles(directory, &role_count);
    dropping.writes =
        ARENA_ARRAY(call->arena, struct mongo_directory_write, user_count + 2 * role_count + 1);
    buf_init(&gone, BUF_DEFAULT_MAX);
    begin = document_begin(&gone);
    for (size_t i = 0; i < role_count; i++) {
        if (!slice_equal(roles[i].database, call->message.database) ||
            (name.data && !slice_equal(roles[i].name, name)))
            continue;
        one =
            document_append_object_begin(&gone, document_index_key((uint32_t)dropping.count, text));
        document_append_string(&gone, SLICE("role"), roles[i].name);
        document_append_string(&gone, SLICE("db"), roles[i].database);
        document_end(&gone, one);
        dropping.writes[dropping.count++] = (struct mongo_directory_write){
            .role = true, .database = roles[i].database, .name = roles[i].name};
    }
    document_end(&gone, begin);
    *ret_count = (int32_t)dropping.count;
    if (name.data && !dropping.count)
        return role_missing(call, name, err);
    dropping.roles = buf_slice(&gone);
    holders_change(call, users, user_count, false, &dropping);
    for (size_t i = 0; i < role_count; i++) /* one key is written once */
        if (!(slice_equal(roles[i].database, call->message.database) &&
              (!name.data || slice_equal(roles[i].name, name))))
            holders_change(call, &roles[i], 1, true, &dropping);
    return mongo_directory_write(call->mongo->directories, directory, dropping.writes,
                                 dropping.count, err);
}

bool mongo_drop_role(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct slice name = SLICE_NONE;
    int32_t unused;
    bool fine;

    if (!role_name(call, &name, err) || !mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    fine = roles_drop(call, directory, name, &unused, err);
    mongo_directory_change_end(call->mongo->directories);
    return fine;
}

bool mongo_drop_all_roles(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    int32_t count = 0;
    bool fine;

    if (!mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_users_change(call, &directory, err))
        return false;
    fine = roles_drop(call, directory, SLICE_NONE, &count, err);
    mongo_directory_change_end(call->mongo->directories);
    document_append_int32(&call->reply, SLICE("n"), count);
    return fine;
}

/* --- rolesInfo ------------------------------------------------------------------------------- */

struct info {
    bool builtin;
    struct document_value privileges;
};

static void role_show(struct mongo_call *call, const struct mongo_directory *directory,
                      const struct mongo_namespace *name, bool privileges, uint32_t index)
{
    const struct mongo_principal *made =
        mongo_directory_role(directory, name->database, name->collection);
    struct mongo_privileges own = {.arena = call->arena}, all = {.arena = call->arena};
    CLEANUP(buf_done) struct buf inherited;
    struct buf *out = &call->reply;
    char text[DOCUMENT_INDEX_SIZE];
    size_t one = document_append_object_begin(out, document_index_key(index, text)), list;
    struct document_value value;
    struct error unused;

    buf_init(&inherited, BUF_DEFAULT_MAX);
    document_append_string(out, SLICE("_id"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name->database),
                                        SLICE_ARG(name->collection)));
    document_append_string(out, SLICE("role"), name->collection);
    document_append_string(out, SLICE("db"), name->database);
    document_append_bool(out, SLICE("isBuiltin"), !made);
    if (made) {
        bool read =
            !made->privileges.data || mongo_privileges_read(made->privileges, &own, &unused);

        (void)read;
        value = document_array(made->roles.data ? made->roles : SLICE("\5\0\0\0\0"));
        document_append(out, SLICE("roles"), &value);
        mongo_directory_resolve(directory, made->roles, &all, &inherited);
    } else {
        (void)mongo_role_builtin(name->collection, name->database, &own);
        document_end(out, document_append_array_begin(out, SLICE("roles")));
    }
    list = document_append_array_begin(out, SLICE("inheritedRoles"));
    buf_append_slice(out, buf_slice(&inherited));
    document_end(out, list);
    if (privileges) {
        mongo_privileges_append(&own, SLICE("privileges"), out);
        for (size_t i = 0; i < own.count; i++)
            mongo_privileges_add(&all, &own.list[i]);
        mongo_privileges_append(&all, SLICE("inheritedPrivileges"), out);
    }
    document_end(out, one);
}

static bool asked_show(struct mongo_call *call, const struct mongo_directory *directory,
                       const struct document_value *asked, bool privileges, uint32_t *shown,
                       struct error *err)
{
    struct mongo_namespace name = {call->message.database, SLICE("")};
    struct document_value part;

    if (asked->type == DOCUMENT_STRING)
        name.collection = asked->text;
    if (asked->type == DOCUMENT_OBJECT) {
        if (document_find(asked->document, SLICE("role"), &part) && part.type == DOCUMENT_STRING)
            name.collection = part.text;
        if (document_find(asked->document, SLICE("db"), &part) && part.type == DOCUMENT_STRING)
            name.database = part.text;
    }
    if (!mongo_permit_allows(call, MONGO_ACTION_VIEW_ROLE, name.database, SLICE("")))
        return mongo_permit_refuse(call, err);
    if (mongo_directory_has_role(directory, name.database, name.collection))
        role_show(call, directory, &name, privileges, (*shown)++);
    return true;
}

static bool database_show(struct mongo_call *call, const struct mongo_directory *directory,
                          const struct info *info, bool privileges, uint32_t *shown,
                          struct error *err)
{
    size_t count;
    const struct mongo_principal *roles = mongo_directory_roles(directory, &count);
    struct mongo_namespace name = {call->message.database, SLICE("")};
    const char *builtin;

    if (!mongo_permit_allows(call, MONGO_ACTION_VIEW_ROLE, name.database, SLICE("")))
        return mongo_permit_refuse(call, err);
    for (size_t i = 0; i < count; i++) {
        name.collection = roles[i].name;
        if (slice_equal(roles[i].database, name.database))
            role_show(call, directory, &name, privileges, (*shown)++);
    }
    for (size_t i = 0; info->builtin && (builtin = mongo_role_builtin_name(i, name.database));
         i++) {
        name.collection = slice_of_text(builtin);
        role_show(call, directory, &name, privileges, (*shown)++);
    }
    return true;
}

bool mongo_roles_info(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"showBuiltinRoles", MONGO_FIELD_BOOL, offsetof(struct info, builtin)},
        {"showPrivileges", MONGO_FIELD_VALUE, offsetof(struct info, privileges)},
        {"showAuthenticationRestrictions", MONGO_FIELD_ANY},
    };
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct document_iter iter;
    struct info info = {0};
    uint32_t shown = 0;
    bool fine = true, privileges;
    size_t list;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &info, err) ||
        !mongo_directory_open(call->mongo->directories, account_info(call->account.account)->number,
                              true, &directory, err))
        return false;
    if (info.privileges.type == DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "rolesInfo: showPrivileges may be true or false");
    privileges = info.privileges.type == DOCUMENT_BOOL && info.privileges.boolean;
    list = document_append_array_begin(&call->reply, SLICE("roles"));
    if (call->target.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, call->target.document);
        while (fine && document_iter_next(&iter))
            fine = asked_show(call, directory, &iter.value, privileges, &shown, err);
    } else if (call->target.type == DOCUMENT_STRING || call->target.type == DOCUMENT_OBJECT) {
        fine = asked_show(call, directory, &call->target, privileges, &shown, err);
    } else {
        fine = database_show(call, directory, &info, privileges, &shown, err);
    }
    document_end(&call->reply, list);
    return fine;
}
