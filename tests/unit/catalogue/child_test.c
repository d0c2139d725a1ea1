#include "catalogue/child.h"

#include "base/thread.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

#include <stdatomic.h>

/* --- Short words for what the stories do ----------------------------------------------------- */

static const struct child_place users = {CHILD_USER, SLICE("acme"), SLICE("shop"), {0}};
static const struct child_place keys = {CHILD_ENCRYPTION_KEY, SLICE("acme"), SLICE("shop"), {0}};
static const struct child_place permissions = {CHILD_PERMISSION, SLICE("acme"), SLICE("shop"),
                                               SLICE("ann")};
static const struct child_place procedures = {CHILD_PROCEDURE, SLICE("acme"), SLICE("shop"),
                                              SLICE("orders")};
static const struct child_place triggers = {CHILD_TRIGGER, SLICE("acme"), SLICE("shop"),
                                            SLICE("orders")};
static const struct child_place functions = {CHILD_FUNCTION, SLICE("acme"), SLICE("shop"),
                                             SLICE("orders")};

#define PERMISSION(id)                                                                             \
    "{\"id\":\"" id "\",\"permissionMode\":\"read\",\"resource\":\"dbs/shop/colls/orders\"}"
#define SCRIPT(id) "{\"id\":\"" id "\",\"body\":\"function () {}\"}"

/* One of each kind, parents first. */
static const struct {
    const struct child_place *place;
    const char *id, *body;
} one_of_each[] = {
    {&users, "ann", "{\"id\":\"ann\"}"},
    {&permissions, "p",
     "{\"id\":\"p\",\"permissionMode\":\"ALL\",\"resource\":\"dbs/shop/colls/orders\","
     "\"resourcePartitionKey\":[\"x\"]}"},
    {&keys, "k",
     "{\"id\":\"k\",\"encryptionAlgorithm\":\"AEAD_AES_256_CBC_HMAC_SHA256\","
     "\"wrappedDataEncryptionKey\":\"AAEC\",\"keyWrapMetadata\":{\"type\":\"t\",\"name\":\"n\"}}"},
    {&procedures, "s", SCRIPT("s")},
    {&triggers, "t",
     "{\"id\":\"t\",\"body\":\"\",\"triggerType\":\"pre\",\"triggerOperation\":\"all\"}"},
    {&functions, "f", SCRIPT("f")},
};

static void world(struct bench *bench)
{
    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
}

static bool try_make(struct bench *bench, const struct child_place *place, const char *json,
                     struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;

    return catalogue_child_create(bench->catalogue, place, document_of(bench->arena, json), &child,
                                  err);
}

static void make(struct bench *bench, const struct child_place *place, const char *json)
{
    struct error err;

    assert_ok(try_make(bench, place, json, &err), &err);
}

static void make_one_of_each(struct bench *bench)
{
    world(bench);
    for (size_t i = 0; i < ARRAY_LEN(one_of_each); i++)
        make(bench, one_of_each[i].place, one_of_each[i].body);
}

static struct catalogue_child *open_child(struct bench *bench, const struct child_place *place,
                                          const char *id)
{
    struct catalogue_child *child;
    struct error err;

    assert_ok(catalogue_child_open(bench->catalogue, place, slice_of_text(id), &child, &err), &err);
    return child;
}

static bool has(struct bench *bench, const struct child_place *place, const char *id)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
    struct error err;

    return catalogue_child_open(bench->catalogue, place, slice_of_text(id), &child, &err);
}

static bool drop(struct bench *bench, const struct child_place *place, const char *id,
                 struct error *err)
{
    return catalogue_child_drop(bench->catalogue, place, slice_of_text(id), SLICE_NONE, err);
}

static bool replace(struct bench *bench, const struct child_place *place, const char *id,
                    const char *json, struct slice if_match, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;

    return catalogue_child_replace(bench->catalogue, place, slice_of_text(id),
                                   document_of(bench->arena, json), if_match, &child, err);
}

static size_t count(struct bench *bench, const struct child_place *place)
{
    CLEANUP(catalogue_children_unref) struct catalogue_children *children = NULL;
    struct error err;

    assert_ok(catalogue_children_open(bench->catalogue, place, &children, &err), &err);
    return catalogue_children_count(children);
}

/* Records of the tree, as they are on disk. */
static size_t record_count(struct bench *bench)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;
    size_t records = 0;

    assert_ok(engine_iterator_new(bench->engine, NULL, 1,
                                  (struct engine_range){SLICE("a"), SLICE("b")}, false,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    for (;; records++) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            return records;
    }
}

/* --- What there is --------------------------------------------------------------------------- */

static void everything_is_there_after_a_restart(void **state)
{
    struct bench *bench = *state;
    struct catalogue_info infos[ARRAY_LEN(one_of_each)];

    make_one_of_each(bench);
    for (size_t i = 0; i < ARRAY_LEN(one_of_each); i++) {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *child = open_child(bench, one_of_each[i].place, one_of_each[i].id);

        infos[i] = *catalogue_child_info(child);
        infos[i].rid = arena_copy(bench->arena, infos[i].rid);
        infos[i].etag = arena_copy(bench->arena, infos[i].etag);
    }
    bench_reopen(bench);
    for (size_t i = 0; i < ARRAY_LEN(one_of_each); i++) {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *child = open_child(bench, one_of_each[i].place, one_of_each[i].id);
        const struct catalogue_info *info = catalogue_child_info(child);

        assert_slice_equal(info->id, slice_of_text(one_of_each[i].id));
        assert_slice_equal(info->rid, infos[i].rid);
        assert_slice_equal(info->etag, infos[i].etag);
        assert_int_equal(info->number, infos[i].number);
        assert_int_equal(info->lsn, infos[i].lsn);
        assert_int_equal(info->ts_ms, infos[i].ts_ms);
        assert_true(slice_equal(catalogue_child_body(child),
                                document_of(bench->arena, one_of_each[i].body)));
    }
}

static void children_open_by_rid_and_below_rids(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(catalogue_child_unref) struct catalogue_child *ann = NULL;
    struct error err;

    make_one_of_each(bench);
    ann = open_child(bench, &users, "ann");
    assert_ok(catalogue_container_open(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("orders"), &container, &err),
              &err);
    for (size_t i = 0; i < ARRAY_LEN(one_of_each); i++) {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *by_name =
            open_child(bench, one_of_each[i].place, one_of_each[i].id);
        CLEANUP(catalogue_child_unref) struct catalogue_child *by_rid = NULL;
        struct child_place place = *one_of_each[i].place;
        char database_rid[RID_TEXT_SIZE];
        struct rid rid;

        place.database =
            rid_format(rid_of_database(container_database_number(container)), database_rid);
        place.parent = place.kind == CHILD_PERMISSION ? catalogue_child_info(ann)->rid
                                                      : container_info(container)->rid;
        assert_ok(catalogue_child_open(bench->catalogue, &place, catalogue_child_info(by_name)->rid,
                                       &by_rid, &err),
                  &err);
        assert_ptr_equal(by_rid, by_name);
        assert_true(rid_parse(catalogue_child_info(by_name)->rid, &rid));
        assert_int_equal(rid.kind, catalogue_child_rid(by_name).kind);
        assert_int_equal(rid.database, container_database_number(container));
    }
    assert_non_null(
        catalogue_children_find(container_children(container, CHILD_TRIGGER), SLICE("t")));
}

static void nothing_is_found_from_another_place(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_child_unref) struct catalogue_child *permission = NULL, *script = NULL;
    struct child_place place;
    struct error err;

    make_one_of_each(bench);
    bench_account(bench, "zenith");
    bench_database(bench, "zenith", "shop", 0);
    bench_database(bench, "acme", "other", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("returns"), 0);
    make(bench, &users, "{\"id\":\"bob\"}");
    permission = open_child(bench, &permissions, "p");
    script = open_child(bench, &procedures, "s");

    place = users;
    place.account = SLICE("zenith");
    assert_false(has(bench, &place, "ann"));
    place = users;
    place.database = SLICE("other");
    assert_false(has(bench, &place, "ann"));
    place = permissions;
    place.parent = SLICE("bob");
    assert_false(has(bench, &place, "p"));
    assert_fails(catalogue_child_open(bench->catalogue, &place,
                                      catalogue_child_info(permission)->rid,
                                      &(struct catalogue_child *){NULL}, &err),
                 &err, ERROR_NOT_FOUND);
    place = procedures;
    place.parent = SLICE("returns");
    assert_fails(catalogue_child_open(bench->catalogue, &place, catalogue_child_info(script)->rid,
                                      &(struct catalogue_child *){NULL}, &err),
                 &err, ERROR_NOT_FOUND);
    assert_false(has(bench, &functions, "s"));

    place.parent = SLICE("none");
    assert_fails(try_make(bench, &place, SCRIPT("x"), &err), &err, ERROR_OWNER_NOT_FOUND);
    place = permissions;
    place.parent = SLICE("none");
    assert_fails(try_make(bench, &place, PERMISSION("x"), &err), &err, ERROR_OWNER_NOT_FOUND);
    place = users;
    place.database = SLICE("none");
    assert_fails(try_make(bench, &place, "{\"id\":\"x\"}", &err), &err, ERROR_OWNER_NOT_FOUND);
    assert_fails(catalogue_children_open(bench->catalogue, &place,
                                         &(struct catalogue_children *){NULL}, &err),
                 &err, ERROR_OWNER_NOT_FOUND);
}

static void lists_are_in_id_order_and_stay_as_they_were(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_children_unref) struct catalogue_children *list = NULL;
    struct error err;

    world(bench);
    make(bench, &users, "{\"id\":\"carl\"}");
    make(bench, &users, "{\"id\":\"ann\"}");
    make(bench, &users, "{\"id\":\"eve\"}");
    assert_ok(catalogue_children_open(bench->catalogue, &users, &list, &err), &err);
    assert_ok(drop(bench, &users, "carl", &err), &err);
    make(bench, &users, "{\"id\":\"bob\"}");

    assert_int_equal(catalogue_children_count(list), 3);
    assert_slice_equal(catalogue_child_info(catalogue_children_at(list, 0))->id, SLICE("ann"));
    assert_slice_equal(catalogue_child_info(catalogue_children_at(list, 1))->id, SLICE("carl"));
    assert_slice_equal(catalogue_child_info(catalogue_children_at(list, 2))->id, SLICE("eve"));
    assert_int_equal(count(bench, &users), 3);
    assert_false(has(bench, &users, "carl"));
}

/* --- Bodies ---------------------------------------------------------------------------------- */

static void a_body_must_have_what_its_kind_needs(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const struct child_place *place;
        const char *body, *named;
    } wrong[] = {
        {&users, "{}", "id"},
        {&users, "{\"id\":1}", "id"},
        {&users, "{\"id\":\"a/b\"}", "a/b"},
        {&users, "{\"id\":\"\"}", "non-empty"},
        {&permissions, "{\"id\":\"p\",\"resource\":\"dbs/d\"}", "permissionMode"},
        {&permissions, "{\"id\":\"p\",\"permissionMode\":\"write\",\"resource\":\"dbs/d\"}",
         "Read|All"},
        {&permissions, "{\"id\":\"p\",\"permissionMode\":\"Read\"}", "resource"},
        {&permissions, "{\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"\"}", "resource"},
        {&permissions,
         "{\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d\","
         "\"resourcePartitionKey\":\"x\"}",
         "resourcePartitionKey"},
        {&keys, "{\"id\":\"k\",\"wrappedDataEncryptionKey\":\"AA\",\"keyWrapMetadata\":{}}",
         "encryptionAlgorithm"},
        {&keys, "{\"id\":\"k\",\"encryptionAlgorithm\":\"A\",\"keyWrapMetadata\":{}}",
         "wrappedDataEncryptionKey"},
        {&keys, "{\"id\":\"k\",\"encryptionAlgorithm\":\"A\",\"wrappedDataEncryptionKey\":\"AA\"}",
         "keyWrapMetadata"},
        {&procedures, "{\"id\":\"s\"}", "body"},
        {&functions, "{\"id\":\"s\",\"body\":7}", "body"},
        {&triggers, "{\"id\":\"t\",\"body\":\"\",\"triggerOperation\":\"All\"}", "triggerType"},
        {&triggers, "{\"id\":\"t\",\"body\":\"\",\"triggerType\":\"Pre\"}", "triggerOperation"},
        {&triggers,
         "{\"id\":\"t\",\"body\":\"\",\"triggerType\":\"Pre\",\"triggerOperation\":\"Al\"}",
         "All|Create|Update|Delete|Replace|Upsert"},
    };
    size_t records;

    world(bench);
    make(bench, &users, "{\"id\":\"ann\"}");
    records = record_count(bench);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err;

        assert_fails(try_make(bench, wrong[i].place, wrong[i].body, &err), &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, wrong[i].named);
    }
    assert_int_equal(record_count(bench), records);
}

static void a_body_is_kept_but_for_system_properties(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_child_unref) struct catalogue_child *user = NULL;

    world(bench);
    make(bench, &users,
         "{\"_rid\":\"x\",\"mine\":{\"_rid\":1},\"id\":\"ann\",\"_self\":\"x\",\"_etag\":\"x\","
         "\"_ts\":1,\"_permissions\":\"permissions/\",\"_token\":\"x\",\"_mine\":2}");
    user = open_child(bench, &users, "ann");
    assert_true(slice_equal(
        catalogue_child_body(user),
        document_of(bench->arena, "{\"mine\":{\"_rid\":1},\"id\":\"ann\",\"_mine\":2}")));
}

static void bodies_and_counts_are_limited(void **state)
{
    struct bench *bench = *state;
    struct child_place bobs = permissions;
    struct error err;

    bench->limits.users_max = 2;
    bench->limits.permissions_max = 2;
    bench->limits.procedures_max = 1;
    bench->limits.account_children_max = 6;
    bench->limits.resource_bytes_max = 200;
    bench->limits.script_bytes_max = 40;
    bench_reopen(bench);
    world(bench);
    assert_fails(try_make(bench, &procedures, SCRIPT("too-long-by-some-letters"), &err), &err,
                 ERROR_TOO_LARGE);
    make(bench, &procedures, "{\"id\":\"s\",\"body\":\"\"}");
    assert_fails(try_make(bench, &procedures, "{\"id\":\"r\",\"body\":\"\"}", &err), &err,
                 ERROR_LIMIT_REACHED);
    make(bench, &users, "{\"id\":\"ann\"}");
    make(bench, &users, "{\"id\":\"bob\"}");
    assert_fails(try_make(bench, &users, "{\"id\":\"eve\"}", &err), &err, ERROR_LIMIT_REACHED);
    make(bench, &permissions, PERMISSION("p"));
    make(bench, &permissions, PERMISSION("q"));
    assert_fails(try_make(bench, &permissions, PERMISSION("r"), &err), &err, ERROR_LIMIT_REACHED);

    /* Five of six: one more, wherever it is, also after the numbers were read again. */
    bench_reopen(bench);
    bobs.parent = SLICE("bob");
    make(bench, &bobs, PERMISSION("p"));
    assert_fails(try_make(bench, &bobs, PERMISSION("q"), &err), &err, ERROR_LIMIT_REACHED);
    assert_contains(err.message, "acme");
    assert_ok(drop(bench, &users, "ann", &err), &err);
    make(bench, &bobs, PERMISSION("q"));
    make(bench, &functions, "{\"id\":\"f\",\"body\":\"\"}");
    make(bench, &functions, "{\"id\":\"g\",\"body\":\"\"}");
    assert_fails(try_make(bench, &functions, "{\"id\":\"h\",\"body\":\"\"}", &err), &err,
                 ERROR_LIMIT_REACHED);
}

/* --- Changes --------------------------------------------------------------------------------- */

static void a_replace_needs_the_child_and_its_etag(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_child_unref) struct catalogue_child *before = NULL, *after = NULL;
    struct error err;

    make_one_of_each(bench);
    before = open_child(bench, &procedures, "s");
    assert_fails(replace(bench, &procedures, "none", SCRIPT("none"), SLICE_NONE, &err), &err,
                 ERROR_NOT_FOUND);
    assert_fails(replace(bench, &procedures, "s", SCRIPT("s"), SLICE("\"other\""), &err), &err,
                 ERROR_PRECONDITION_FAILED);
    assert_ok(replace(bench, &procedures, "s", "{\"id\":\"s\",\"body\":\"2\"}",
                      catalogue_child_info(before)->etag, &err),
              &err);
    after = open_child(bench, &procedures, "s");
    assert_slice_equal(catalogue_child_info(after)->rid, catalogue_child_info(before)->rid);
    assert_false(
        slice_equal(catalogue_child_info(after)->etag, catalogue_child_info(before)->etag));
    assert_true(slice_equal(catalogue_child_body(before), document_of(bench->arena, SCRIPT("s"))));
    assert_fails(catalogue_child_drop(bench->catalogue, &procedures, SLICE("s"),
                                      catalogue_child_info(before)->etag, &err),
                 &err, ERROR_PRECONDITION_FAILED);
    assert_ok(catalogue_child_drop(bench->catalogue, &procedures, SLICE("s"),
                                   catalogue_child_info(after)->etag, &err),
              &err);
    assert_fails(drop(bench, &procedures, "s", &err), &err, ERROR_NOT_FOUND);
}

static void users_and_permissions_are_renamed_and_scripts_are_not(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_child_unref) struct catalogue_child *before = NULL, *after = NULL;
    struct child_place annas = permissions;
    struct error err;

    make_one_of_each(bench);
    make(bench, &users, "{\"id\":\"bob\"}");
    before = open_child(bench, &users, "ann");
    assert_fails(replace(bench, &users, "ann", "{\"id\":\"bob\"}", SLICE_NONE, &err), &err,
                 ERROR_NAME_TAKEN);
    assert_fails(replace(bench, &procedures, "s", SCRIPT("r"), SLICE_NONE, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(replace(bench, &users, "ann", "{\"id\":\"anna\"}", SLICE_NONE, &err), &err);
    annas.parent = SLICE("anna");
    assert_ok(replace(bench, &annas, "p", PERMISSION("q"), SLICE_NONE, &err), &err);
    for (int reopened = 0; reopened < 2; reopened++) {
        after = open_child(bench, &users, "anna");
        assert_int_equal(catalogue_child_info(after)->number, catalogue_child_info(before)->number);
        assert_false(has(bench, &users, "ann"));
        assert_true(has(bench, &annas, "q"));
        assert_false(has(bench, &annas, "p"));
        assert_int_equal(count(bench, &annas), 1);
        assert_int_equal(count(bench, &users), 2);
        catalogue_child_unref(TAKE(after));
        bench_reopen(bench);
    }
}

static void an_upsert_creates_or_replaces(void **state)
{
    struct bench *bench = *state;
    CLEANUP(catalogue_child_unref) struct catalogue_child *first = NULL, *second = NULL;
    struct slice body = document_of(bench->arena, SCRIPT("s"));
    bool created;
    struct error err;

    world(bench);
    assert_ok(catalogue_child_upsert(bench->catalogue, &procedures, body, SLICE("\"any\""), &first,
                                     &created, &err),
              &err);
    assert_true(created);
    assert_fails(catalogue_child_upsert(bench->catalogue, &procedures, body, SLICE("\"any\""),
                                        &second, &created, &err),
                 &err, ERROR_PRECONDITION_FAILED);
    assert_ok(catalogue_child_upsert(bench->catalogue, &procedures, body,
                                     catalogue_child_info(first)->etag, &second, &created, &err),
              &err);
    assert_false(created);
    assert_slice_equal(catalogue_child_info(first)->rid, catalogue_child_info(second)->rid);
    assert_int_equal(count(bench, &procedures), 1);
    assert_fails(try_make(bench, &procedures, SCRIPT("s"), &err), &err, ERROR_NAME_TAKEN);
}

static void a_container_is_the_same_whatever_its_scripts(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *before = NULL, *after = NULL, *replaced = NULL;
    struct error err;

    world(bench);
    assert_ok(catalogue_container_open(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("orders"), &before, &err),
              &err);
    make(bench, &procedures, SCRIPT("s"));
    assert_ok(catalogue_container_open(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("orders"), &after, &err),
              &err);
    assert_slice_equal(container_info(before)->etag, container_info(after)->etag);
    assert_int_equal(catalogue_children_count(container_children(before, CHILD_PROCEDURE)), 0);
    assert_int_equal(catalogue_children_count(container_children(after, CHILD_PROCEDURE)), 1);
    assert_ok(catalogue_container_replace(
                  bench->catalogue, SLICE("acme"), SLICE("shop"), SLICE("orders"),
                  document_of(bench->arena, BENCH_BODY("orders")), SLICE_NONE, &replaced, &err),
              &err);
    assert_true(has(bench, &procedures, "s"));
}

static void a_recreated_child_has_another_rid(void **state)
{
    struct bench *bench = *state;

    make_one_of_each(bench);
    for (size_t i = ARRAY_LEN(one_of_each); i-- > 1;) {
        CLEANUP(catalogue_child_unref) struct catalogue_child *first = NULL, *second = NULL;
        struct error err;

        first = open_child(bench, one_of_each[i].place, one_of_each[i].id);
        assert_ok(drop(bench, one_of_each[i].place, one_of_each[i].id, &err), &err);
        assert_false(has(bench, one_of_each[i].place, one_of_each[i].id));
        bench_reopen(bench);
        make(bench, one_of_each[i].place, one_of_each[i].body);
        second = open_child(bench, one_of_each[i].place, one_of_each[i].id);
        assert_false(
            slice_equal(catalogue_child_info(first)->rid, catalogue_child_info(second)->rid));
    }
}

static void dropping_a_parent_drops_the_children(void **state)
{
    struct bench *bench = *state;
    struct error err;
    size_t empty;

    world(bench);
    empty = record_count(bench);
    make(bench, &users, "{\"id\":\"ann\"}");
    make(bench, &permissions, PERMISSION("p"));
    make(bench, &permissions, PERMISSION("q"));
    assert_ok(drop(bench, &users, "ann", &err), &err);
    make(bench, &users, "{\"id\":\"ann\"}");
    assert_int_equal(count(bench, &permissions), 0);
    make(bench, &permissions, PERMISSION("p"));
    bench_reopen(bench);
    assert_int_equal(count(bench, &permissions), 1);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(record_count(bench), empty + 2);

    /* A user without permissions goes with its record, a container with its scripts. */
    assert_ok(drop(bench, &permissions, "p", &err), &err);
    assert_ok(drop(bench, &users, "ann", &err), &err);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 0);
    assert_int_equal(record_count(bench), empty);
    make(bench, &procedures, SCRIPT("s"));
    make(bench, &functions, SCRIPT("f"));
    assert_ok(catalogue_container_drop(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("orders"), SLICE_NONE, &err),
              &err);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    assert_int_equal(count(bench, &procedures), 0);
    bench_reopen(bench);
    assert_int_equal(count(bench, &functions), 0);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(record_count(bench), empty);

    make(bench, &users, "{\"id\":\"ann\"}");
    make(bench, &permissions, PERMISSION("p"));
    assert_ok(
        catalogue_database_drop(bench->catalogue, SLICE("acme"), SLICE("shop"), SLICE_NONE, &err),
        &err);
    assert_false(has(bench, &users, "ann"));
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    bench_reopen(bench);
    assert_int_equal(record_count(bench), 1);
}

/* A user with more permissions than the purger takes in one go. */
static void a_user_with_many_permissions_is_purged_whole(void **state)
{
    struct bench *bench = *state;
    struct error err;
    size_t before;

    world(bench);
    before = record_count(bench);
    make(bench, &users, "{\"id\":\"ann\"}");
    for (int i = 0; i < 600; i++)
        make(bench, &permissions,
             arena_text(bench->arena, arena_printf(bench->arena,
                                                   "{\"id\":\"p%d\",\"permissionMode\":\"Read\","
                                                   "\"resource\":\"dbs/shop\"}",
                                                   i)));
    assert_int_equal(count(bench, &permissions), 600);
    bench_reopen(bench);
    assert_int_equal(count(bench, &permissions), 600);
    assert_true(has(bench, &permissions, "p599"));
    assert_ok(drop(bench, &users, "ann", &err), &err);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(record_count(bench), before);
}

/* --- Crashes --------------------------------------------------------------------------------- */

/* Each change is one write: it happened or it did not, and the rest is as it was. */
enum cut { CUT_CREATE, CUT_REPLACE, CUT_RENAME, CUT_DROP, CUT_DROP_WITH_PERMISSIONS, CUTS };

static bool cut_change(struct bench *bench, enum cut cut, struct error *err)
{
    switch (cut) {
    case CUT_CREATE:
        return try_make(bench, &users, "{\"id\":\"bob\"}", err);
    case CUT_REPLACE:
        return replace(bench, &procedures, "s", "{\"id\":\"s\",\"body\":\"2\"}", SLICE_NONE, err);
    case CUT_RENAME:
        return replace(bench, &permissions, "p", PERMISSION("renamed"), SLICE_NONE, err);
    case CUT_DROP:
        return drop(bench, &procedures, "s", err);
    default:
        return drop(bench, &users, "ann", err);
    }
}

static bool cut_happened(struct bench *bench, enum cut cut)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *script = NULL;

    switch (cut) {
    case CUT_CREATE:
        return has(bench, &users, "bob");
    case CUT_REPLACE:
        script = open_child(bench, &procedures, "s");
        return !slice_equal(catalogue_child_body(script), document_of(bench->arena, SCRIPT("s")));
    case CUT_RENAME:
        assert_int_equal(count(bench, &permissions), 1);
        return has(bench, &permissions, "renamed");
    case CUT_DROP:
        return !has(bench, &procedures, "s");
    default:
        return !has(bench, &users, "ann");
    }
}

static void a_change_cut_off_happened_or_did_not(void **state)
{
    struct bench *bench = *state;
    struct error err;

    for (enum cut cut = 0; cut < CUTS; cut++)
        for (int restart = 0; restart < 2; restart++)
            for (int written = 0; written < 2; written++) {
                make_one_of_each(bench);
                fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_IO,
                                      written ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
                assert_false(cut_change(bench, cut, &err));
                assert_false(cut_happened(bench, cut)); /* not known, so not published */
                if (restart)
                    bench_close(bench);
                fault_engine_heal(bench->engine);
                if (restart)
                    bench_open(bench);
                while (!try_make(bench, &functions, SCRIPT("next"), &err))
                    assert_int_equal(err.code, ERROR_STORE_POISONED);
                assert_int_equal(cut_happened(bench, cut), written);
                assert_true(has(bench, &keys, "k"));
                assert_ok(catalogue_account_drop(bench->catalogue, SLICE("acme"), &err), &err);
                assert_ok(catalogue_purge(bench->catalogue, &err), &err);
                assert_int_equal(record_count(bench), 0);
            }
}

/* --- Threads --------------------------------------------------------------------------------- */

struct reader {
    struct bench *bench;
    atomic_bool *stop;
    struct thread thread;
};

/* Of two names that are swapped one is always there, and lists are whole. */
static void reader_run(void *context)
{
    struct reader *reader = context;

    while (!atomic_load(reader->stop)) {
        CLEANUP(catalogue_children_unref) struct catalogue_children *list = NULL;
        CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
        struct error err;

        if (!catalogue_children_open(reader->bench->catalogue, &users, &list, &err))
            abort();
        for (size_t i = 1; i < catalogue_children_count(list); i++)
            if (slice_compare(catalogue_child_info(catalogue_children_at(list, i - 1))->id,
                              catalogue_child_info(catalogue_children_at(list, i))->id) >= 0)
                abort();
        if (!!catalogue_children_find(list, SLICE("left")) ==
            !!catalogue_children_find(list, SLICE("right")))
            abort();
        if (catalogue_child_open(reader->bench->catalogue, &users, SLICE("left"), &child, &err) &&
            !slice_equal(catalogue_child_info(child)->id, SLICE("left")))
            abort();
    }
}

static void readers_see_whole_lists_while_everything_changes(void **state)
{
    struct bench *bench = *state;
    atomic_bool stop = false;
    struct reader readers[2];
    struct error err;

    world(bench);
    make(bench, &users, "{\"id\":\"left\"}");
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        readers[i] = (struct reader){.bench = bench, .stop = &stop};
        thread_start(&readers[i].thread, "reader", reader_run, &readers[i]);
    }
    for (int i = 0; i < 300; i++) {
        char id[40];

        snprintf(id, sizeof id, "{\"id\":\"user%d\"}", i * 7919 % 300);
        make(bench, &users, id);
        assert_ok(replace(bench, &users, i % 2 ? "right" : "left",
                          i % 2 ? "{\"id\":\"left\"}" : "{\"id\":\"right\"}", SLICE_NONE, &err),
                  &err);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        thread_join(&readers[i].thread);
    assert_int_equal(count(bench, &users), 301);
}

/* --- Texts of scripts ------------------------------------------------------------------------ */

static const char *trigger_of(struct bench *bench, const char *id, size_t bytes, char letter)
{
    char *text = arena_alloc(bench->arena, bytes + 1);

    memset(text, letter, bytes);
    text[bytes] = '\0';
    return arena_text(bench->arena,
                      arena_printf(bench->arena,
                                   "{\"id\":\"%s\",\"body\":\"%s\",\"triggerType\":\"Pre\","
                                   "\"triggerOperation\":\"All\",\"own\":1}",
                                   id, text));
}

static struct catalogue_child *whole_of(struct bench *bench, struct catalogue_child *child)
{
    struct catalogue_child *whole;
    struct error err;

    assert_ok(catalogue_child_whole(bench->catalogue, child, &whole, &err), &err);
    return whole;
}

static void a_long_script_is_read_when_it_is_wanted(void **state)
{
    struct bench *bench = *state;
    const char *json, *other;
    struct error err;

    bench->limits.script_cache_bytes = 150000; /* one of the two */
    bench_reopen(bench);
    world(bench);
    json = trigger_of(bench, "long", 100000, 'a');
    other = trigger_of(bench, "other", 100000, 'b');
    make(bench, &triggers, json);
    make(bench, &triggers, other);
    for (int restart = 0; restart < 2; restart++) {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *child = open_child(bench, &triggers, "long");

        assert_slice_equal(catalogue_child_trait(child, SLICE("triggerOperation")), SLICE("All"));
        for (int again = 0; again < 3; again++) {
            CLEANUP(catalogue_child_unref) struct catalogue_child *whole = whole_of(bench, child);
            CLEANUP(catalogue_child_unref)
            struct catalogue_child *second = open_child(bench, &triggers, "other");
            CLEANUP(catalogue_child_unref)
            struct catalogue_child *second_whole = whole_of(bench, second);

            assert_true(slice_equal(catalogue_child_body(whole), document_of(bench->arena, json)));
            assert_true(
                slice_equal(catalogue_child_body(second_whole), document_of(bench->arena, other)));
            assert_slice_equal(catalogue_child_info(whole)->etag,
                               catalogue_child_info(child)->etag);
        }
        bench_reopen(bench);
    }
    {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *before = open_child(bench, &triggers, "long");
        CLEANUP(catalogue_child_unref) struct catalogue_child *now = NULL;
        const char *shorter = trigger_of(bench, "long", 2000, 'c');

        assert_ok(replace(bench, &triggers, "long", shorter, SLICE_NONE, &err), &err);
        now = whole_of(bench, before);
        assert_true(slice_equal(catalogue_child_body(now), document_of(bench->arena, shorter)));
        assert_false(
            slice_equal(catalogue_child_info(now)->etag, catalogue_child_info(before)->etag));
        assert_ok(drop(bench, &triggers, "long", &err), &err);
        assert_fails(catalogue_child_whole(bench->catalogue, before,
                                           &(struct catalogue_child *){NULL}, &err),
                     &err, ERROR_NOT_FOUND);
    }
}

static void scripts_of_an_account_have_so_many_bytes(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench->limits.account_script_bytes_max = 10000;
    bench_reopen(bench);
    world(bench);
    bench_container(bench, "acme", "shop", BENCH_BODY("other"), 0);
    make(bench, &triggers, trigger_of(bench, "one", 6000, 'a'));
    assert_fails(try_make(bench, &procedures, trigger_of(bench, "two", 6000, 'a'), &err), &err,
                 ERROR_LIMIT_REACHED);
    assert_contains(err.message, "account.script_bytes_max");
    make(bench, &procedures, trigger_of(bench, "two", 3000, 'a'));
    bench_reopen(bench);
    assert_fails(
        replace(bench, &procedures, "two", trigger_of(bench, "two", 4000, 'a'), SLICE_NONE, &err),
        &err, ERROR_LIMIT_REACHED);
    assert_ok(
        replace(bench, &triggers, "one", trigger_of(bench, "one", 5000, 'a'), SLICE_NONE, &err),
        &err);
    assert_ok(
        replace(bench, &procedures, "two", trigger_of(bench, "two", 4000, 'a'), SLICE_NONE, &err),
        &err);
    bench->limits.account_script_bytes_max = 100; /* lowered below what is there */
    bench_reopen(bench);
    assert_ok(
        replace(bench, &procedures, "two", trigger_of(bench, "two", 3000, 'a'), SLICE_NONE, &err),
        &err);
    assert_fails(try_make(bench, &functions, SCRIPT("f"), &err), &err, ERROR_LIMIT_REACHED);
}

/* A user or permission with a text of so many bytes. */
static const char *padded(struct bench *bench, const char *json, size_t bytes)
{
    char *text = arena_alloc(bench->arena, bytes + 1);

    memset(text, 'a', bytes);
    text[bytes] = '\0';
    return arena_text(bench->arena, arena_printf(bench->arena, "{%s,\"pad\":\"%s\"}", json, text));
}

static bool try_container(struct bench *bench, size_t bytes, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {0};
    char *path = arena_alloc(bench->arena, bytes + 1);
    struct slice json;

    memset(path, 'a', bytes);
    path[bytes] = '\0';
    json = arena_printf(bench->arena,
                        "{\"id\":\"long\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                        "\"indexingPolicy\":{\"excludedPaths\":[{\"path\":\"/%s/?\"}],"
                        "\"includedPaths\":[{\"path\":\"/*\"}]}}",
                        path);
    return catalogue_container_create(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                      document_of(bench->arena, arena_text(bench->arena, json)),
                                      &request, &container, err);
}

static void what_else_an_account_has_in_memory_has_so_many_bytes(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench->limits.account_metadata_bytes_max = 20000;
    bench_reopen(bench);
    world(bench);
    make(bench, &users, padded(bench, "\"id\":\"ann\"", 5000));
    make(bench, &permissions,
         padded(bench,
                "\"id\":\"p\",\"permissionMode\":\"Read\",\"resource\":\"dbs/shop/colls/orders\"",
                5000));
    assert_fails(try_make(bench, &users, padded(bench, "\"id\":\"bob\"", 12000), &err), &err,
                 ERROR_LIMIT_REACHED);
    assert_contains(err.message, "account.metadata_bytes_max");
    bench_reopen(bench);
    assert_fails(try_make(bench, &users, padded(bench, "\"id\":\"bob\"", 12000), &err), &err,
                 ERROR_LIMIT_REACHED);
    make(bench, &users, padded(bench, "\"id\":\"bob\"", 6000));
    assert_fails(try_container(bench, 4000, &err), &err, ERROR_LIMIT_REACHED);
    assert_ok(drop(bench, &users, "ann", &err), &err); /* and the permission with her */
    make(bench, &users, padded(bench, "\"id\":\"carl\"", 9000));
    bench->limits.account_metadata_bytes_max = 100; /* lowered below what is there */
    bench_reopen(bench);
    assert_ok(
        replace(bench, &users, "carl", padded(bench, "\"id\":\"carl\"", 8000), SLICE_NONE, &err),
        &err);
    assert_fails(try_make(bench, &users, "{\"id\":\"eve\"}", &err), &err, ERROR_LIMIT_REACHED);
}

int main(void)
{
    CLEANUP(postgres_free) struct postgres *server = postgres_start(false);
    const struct CMUnitTest tests[] = {
        ON_BOTH(everything_is_there_after_a_restart),
        ON(memory, children_open_by_rid_and_below_rids),
        ON(memory, nothing_is_found_from_another_place),
        ON(memory, lists_are_in_id_order_and_stay_as_they_were),
        ON(memory, a_body_must_have_what_its_kind_needs),
        ON(memory, a_body_is_kept_but_for_system_properties),
        ON(memory, bodies_and_counts_are_limited),
        ON(memory, a_replace_needs_the_child_and_its_etag),
        ON(memory, users_and_permissions_are_renamed_and_scripts_are_not),
        ON(memory, an_upsert_creates_or_replaces),
        ON(memory, a_container_is_the_same_whatever_its_scripts),
        ON(memory, a_recreated_child_has_another_rid),
        ON_BOTH(dropping_a_parent_drops_the_children),
        ON(memory, a_user_with_many_permissions_is_purged_whole),
        ON(memory, a_change_cut_off_happened_or_did_not),
        ON(memory, readers_see_whole_lists_while_everything_changes),
        ON_BOTH(a_long_script_is_read_when_it_is_wanted),
        ON(memory, scripts_of_an_account_have_so_many_bytes),
        ON(memory, what_else_an_account_has_in_memory_has_so_many_bytes),
        ON_POSTGRESQL(everything_is_there_after_a_restart),
        ON_POSTGRESQL(dropping_a_parent_drops_the_children),
    };

    return cmocka_run_group_tests_name("catalogue/child", tests, NULL, NULL);
}
