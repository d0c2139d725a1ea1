/* Privileges: which resource covers which, and what the built-in roles give. */
#include "support/check.h"

#include "front/mongo/auth/privilege.h"

static bool allows(const char *role, const char *role_database, enum mongo_action action,
                   const char *database, const char *collection)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_privileges privileges = {.arena = arena};
    const struct mongo_resource resource = {MONGO_RESOURCE_NAMESPACE, slice_of_text(database),
                                            slice_of_text(collection)};

    assert_true(mongo_role_builtin(slice_of_text(role), slice_of_text(role_database), &privileges));
    return mongo_privileges_allow(&privileges, action, &resource);
}

static void a_role_of_a_database_holds_in_it_alone(void **state UNUSED)
{
    assert_true(allows("read", "shop", MONGO_ACTION_FIND, "shop", "c"));
    assert_false(allows("read", "shop", MONGO_ACTION_FIND, "other", "c"));
    assert_false(allows("read", "shop", MONGO_ACTION_FIND, "", ""));
    assert_false(allows("read", "shop", MONGO_ACTION_INSERT, "shop", "c"));
    assert_true(allows("dbOwner", "shop", MONGO_ACTION_GRANT_ROLE, "shop", ""));
    assert_false(allows("dbOwner", "shop", MONGO_ACTION_GRANT_ROLE, "admin", ""));
}

static void a_role_of_all_databases_is_of_admin_alone(void **state UNUSED)
{
    assert_true(allows("readAnyDatabase", "admin", MONGO_ACTION_FIND, "shop", "c"));
    assert_false(mongo_role_builtin(SLICE("readAnyDatabase"), SLICE("shop"), NULL));
    assert_false(mongo_role_builtin(SLICE("root"), SLICE("shop"), NULL));
    assert_false(mongo_role_builtin(SLICE("enableSharding"), SLICE("shop"), NULL));
    assert_false(mongo_role_builtin(SLICE("nothing"), SLICE("admin"), NULL));
}

static void a_collection_of_a_privilege_is_not_its_database(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_privileges privileges = {.arena = arena};
    struct mongo_privilege one = {
        .resource = {MONGO_RESOURCE_NAMESPACE, SLICE("shop"), SLICE("c")}};
    const struct mongo_resource same = {MONGO_RESOURCE_NAMESPACE, SLICE("shop"), SLICE("c")},
                                whole = {MONGO_RESOURCE_NAMESPACE, SLICE("shop"), SLICE("")},
                                cluster = {.kind = MONGO_RESOURCE_CLUSTER};

    mongo_actions_add(&one.actions, MONGO_ACTION_FIND);
    mongo_privileges_add(&privileges, &one);
    mongo_privileges_add(&privileges, &one);
    assert_int_equal(privileges.count, 1);
    assert_true(mongo_privileges_allow(&privileges, MONGO_ACTION_FIND, &same));
    assert_false(mongo_privileges_allow(&privileges, MONGO_ACTION_FIND, &whole));
    assert_false(mongo_privileges_allow(&privileges, MONGO_ACTION_FIND, &cluster));
    assert_true(mongo_privileges_touch(&privileges, SLICE("shop")));
    assert_false(mongo_privileges_touch(&privileges, SLICE("other")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_role_of_a_database_holds_in_it_alone),
        cmocka_unit_test(a_role_of_all_databases_is_of_admin_alone),
        cmocka_unit_test(a_collection_of_a_privilege_is_not_its_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
