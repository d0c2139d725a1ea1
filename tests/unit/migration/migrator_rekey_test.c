/* Re-keys, step by step, with writers in between, and cut off at every write. */
#include "migrator_fixture.h"

#include "catalogue/caretaker.h"
#include "item/feed_read.h"
#include "migration/mover.h"
#include "partition/former.h"

/* Documents are {"id", "pk", "x", "w", "email", "ttl"} (migrator_fixture.h). */
#define PLAIN                                                                                      \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},\"defaultTtl\":-1}"
#define BY_W "{\"paths\":[\"/w\"],\"version\":2}"
#define BY_PK "{\"paths\":[\"/pk\"],\"version\":2}"

static bool rekey_try(struct fixture *fixture, const char *key, const char *orrery, bool missing,
                      struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct definition_rekey rekey = {0};

    if (key)
        rekey.partition_key = document_of(fixture->arena, key);
    if (orrery)
        rekey.strategy = document_of(fixture->arena, orrery);
    return migrator_rekey(fixture->migrator, container, &rekey, missing, err);
}

static void rekey(struct fixture *fixture, const char *key)
{
    struct error err;

    assert_ok(rekey_try(fixture, key, NULL, false, &err), &err);
}

static void grace_end(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct error err;

    assert_ok(migrator_grace_end(fixture->migrator, container, &err), &err);
}

static struct migrator_progress progress(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct migrator_progress progress;

    assert_true(migrator_progress(fixture->migrator, container, &progress));
    return progress;
}

static void rounds(struct fixture *fixture, int count)
{
    struct error err;
    bool busy;

    for (int i = 0; i < count && is_moving(fixture); i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
}

/* By the former key, as a client would that has not heard of another. */
static struct item read_former(struct fixture *fixture, const char *json, const char *id_text)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct item_operation read = {.space = &space,
                                  .arena = fixture->arena,
                                  .verb = ITEM_READ,
                                  .id = document_string(slice_of_text(id_text))};
    struct error err;

    assert_ok(partition_key_parse_either(&space.definition->key, slice_of_text(json),
                                         PARTITION_KEY_WHOLE, fixture->arena, &read.key, &err),
              &err);
    if (!item_operation_run(&read, &err))
        assert_int_equal(err.code, ERROR_ITEM_MISSING);
    return read.result.item;
}

/* Item i of another logical partition, with a mail that may be another's there. */
static void item_with_mail_put(struct fixture *fixture, int i, const char *mail)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice document = document_of(
        fixture->arena,
        arena_text(
            fixture->arena,
            arena_printf(fixture->arena,
                         "{\"id\":\"%d\",\"pk\":\"k%d\",\"x\":%d,\"w\":\"c\",\"email\":\"%s\"}",
                         i + 10, (i + 10) / 10, i + 10, mail)));
    struct partition_key key = partition_key_extract(&space.definition->key, document);
    struct document_value id = document_string(arena_printf(fixture->arena, "%d", i + 10));
    struct error err;

    assert_ok(item_operation_run(&(struct item_operation){.space = &space,
                                                          .arena = fixture->arena,
                                                          .verb = ITEM_UPSERT,
                                                          .key = key,
                                                          .id = id,
                                                          .document = document},
                                 &err),
              &err);
}

static void items_keep_number_etag_and_time_under_the_new_key(void **state)
{
    struct fixture *fixture = *state;
    char before[ITEM_ETAG_LEN], after[ITEM_ETAG_LEN];
    struct item was, is;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 40, "a");
    items_put(fixture, 0, 7, "b");
    was = read_former(fixture, "[\"k0\"]", "5");
    rekey(fixture, BY_W);
    settle(fixture);
    verify(fixture, 40);
    is = read_former(fixture, "[\"b\"]", "5");
    item_etag(&was.header, before);
    item_etag(&is.header, after);
    assert_memory_equal(before, after, ITEM_ETAG_LEN);
    assert_int_equal(was.header.number, is.header.number);
    assert_int_equal(was.header.wall_ms, is.header.wall_ms);
    assert_true(slice_equal(was.document, is.document));
    assert_int_equal(read_former(fixture, "[\"k0\"]", "5").header.number, is.header.number);
    assert_null(read_former(fixture, "[\"k1\"]", "5").document.data);
    grace_end(fixture);
    assert_null(read_former(fixture, "[\"k0\"]", "5").document.data);
    verify(fixture, 40);
}

/* Each write gives some items another new key while they are copied, others go and come again. */
static void copies_follow_items_whose_new_key_changes_meanwhile(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d", "e"};
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 60, "a");
    rekey(fixture, BY_W);
    for (int i = 0; i < 40 && fixture->published == 0; i++) {
        items_put(fixture, i % 50, i % 50 + 3, words[i % 5]);
        item_delete(fixture, (i * 7) % 60);
        items_put(fixture, (i * 7) % 60, (i * 7) % 60 + 1, words[(i + 2) % 5]);
        rounds(fixture, 1);
    }
    settle(fixture);
    verify(fixture, 60);
}

static void conflicts_block_and_are_tried_again(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf json;
    struct error err;
    size_t count;

    /* Unique within /pk; the same word and mail meet under /w. */
    buf_init(&json, BUF_DEFAULT_MAX);
    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 30, "a");
    rekey(fixture, "{\"paths\":[\"/none\"],\"version\":2}");
    rounds(fixture, 200);
    assert_true(is_moving(fixture));
    assert_int_equal(progress(fixture).conflicts, 30);
    container = opened(fixture);
    assert_ok(mover_conflicts_show(fixture->cluster, container_migration(container), 2, &json,
                                   &count, &err),
              &err);
    assert_int_equal(count, 30);
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    verify(fixture, 30);
    assert_ok(rekey_try(fixture, "{\"paths\":[\"/none\"],\"version\":2}", NULL, true, &err), &err);
    settle(fixture);
    verify(fixture, 30);
}

/* Fences with much of the journal still to be read. */
static void hurry(struct fixture *fixture)
{
    migrator_free(fixture->migrator);
    fixture->migrator = migrator_new(&(struct migrator_options){.clock = &fixture->clock,
                                                                .catalogue = fixture->catalogue,
                                                                .chunk_bytes = 2000,
                                                                .round_keys = 4,
                                                                .lag_keys = 100000,
                                                                .pause_ms = 1,
                                                                .by_hand = true,
                                                                .published = on_published,
                                                                .dropped = on_dropped,
                                                                .context = fixture});
}

/* Writers are let go on, and it waits until the conflict is resolved. */
static void a_conflict_behind_the_fence_opens_it_again(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 20, "a");
    rekey(fixture, "{\"paths\":[\"/w\"],\"version\":2}");
    while (progress(fixture).phase != MIGRATOR_CATCHING_UP)
        rounds(fixture, 1);
    items_put(fixture, 0, 20, "b");
    items_put(fixture, 0, 20, "c");
    item_with_mail_put(fixture, 1, "c2"); /* c2 is what item 2 has: unique in k0, not in "c" */
    hurry(fixture);
    rounds(fixture, 50);
    assert_true(is_moving(fixture));
    assert_int_equal(fixture->published, 0);
    assert_int_equal(progress(fixture).conflicts, 1);
    assert_int_equal(progress(fixture).failures, 0);
    items_put(fixture, 0, 20, "d"); /* nobody waits at a fence, and item 1 has a mail of its own */
    settle(fixture);
    verify(fixture, 20);
    grace_end(fixture);
    assert_fails(rekey_try(fixture, "{\"paths\":[\"/w\"],\"version\":2}", NULL, false, &err), &err,
                 ERROR_BAD_REQUEST);
}

static void the_index_policy_may_change_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(caretaker_free)
    struct caretaker *caretaker = caretaker_new(
        &(struct caretaker_options){.catalogue = fixture->catalogue, .slice = 3, .by_hand = true});
    struct error err;
    size_t done;

    container_make(fixture, PLAIN, 20000);
    items_put(fixture, 0, 40, "a");
    rekey(fixture, BY_W);
    rounds(fixture, 3);
    assert_ok(catalogue_container_replace(
                  fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                  document_of(fixture->arena,
                              "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"
                              "\"defaultTtl\":-1,\"indexingPolicy\":{\"excludedPaths\":[{\"path\":"
                              "\"/x/?\"}]}}"),
                  SLICE_NONE, &container, &err),
              &err);
    container_unref(TAKE(container));
    rounds(fixture, 1);
    assert_ok(caretaker_round(caretaker, &done, &err), &err);
    settle(fixture);
    do
        assert_ok(caretaker_round(caretaker, &done, &err), &err);
    while (done);
    verify(fixture, 40);
    container = opened(fixture);
    assert_true(
        slice_equal(definition_fields(container_definition(container))->key.texts[0], SLICE("/w")));
}

static void a_reader_of_all_versions_is_told_what_is_gone(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *span;
    struct item_space space;
    struct item_scope scope;
    struct feed_page page;
    struct error err;
    size_t count;

    container_make(fixture,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"
                   "\"defaultTtl\":-1,\"changeFeedPolicy\":{\"retentionDuration\":60}}",
                   400);
    items_put(fixture, 0, 10, "a");
    rekey(fixture, BY_W);
    settle(fixture);
    container = opened(fixture);
    space = container_space(container, &clock_system, fixture->gates);
    span = partition_map_spans(container_map(container), &count);
    scope = item_space_span_scope(&space, span);
    assert_fails(feed_read(&scope,
                           &(struct feed_request){.mode = FEED_ALL_VERSIONS, .after_lsn = 3},
                           fixture->arena, &page, &err),
                 &err, ERROR_FEED_RETENTION);
    assert_ok(feed_read(&scope, &(struct feed_request){.mode = FEED_LATEST, .after_lsn = 3},
                        fixture->arena, &page, &err),
              &err);
    assert_int_equal(page.count, 10);
}

static void begin_rekey(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    bool ranged = definition_fields(container_definition(container))->key.strategy ==
                  PARTITION_STRATEGY_RANGE;
    struct error err;

    assert_ok(rekey_try(fixture, NULL,
                        ranged ? "{\"strategy\":\"hash\"}" : "{\"strategy\":\"range\"}", false,
                        &err),
              &err);
}

static void a_rekey_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, BODY, 20000);
    cut_off_everywhere(*state, begin_rekey);
}

/* A chunk reached one node and not the other; then its items get another new key, and it is copied
 * again. */
static void chunk_done_again(struct fixture *fixture, size_t node, unsigned nth, const char *first,
                             const char *second)
{
    struct error err;
    bool busy, fine = true;

    items_put(fixture, 0, 30, first);
    rekey(fixture, BY_W);
    fault_engine_fail_nth(fixture->engines[node], FAULT_WRITES, nth, ERROR_STORE_IO,
                          FAULT_NOT_WRITTEN);
    for (int i = 0; i < 1000 && fine && is_moving(fixture); i++)
        fine = migrator_round(fixture->migrator, &busy, &err);
    if (is_moving(fixture) && progress(fixture).items < 30) {
        restart(fixture);
        items_put(fixture, 0, 15, second);
    } else { /* that node had no such write while it copied */
        restart(fixture);
    }
    settle(fixture);
    verify(fixture, 30);
    grace_end(fixture);
    rekey(fixture, BY_PK);
    settle(fixture);
    verify(fixture, 30);
    grace_end(fixture);
}

static void a_chunk_done_again_leaves_one_copy_of_each_item(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d"};
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 20000);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        for (size_t j = 0; j < ARRAY_LEN(words); j++)
            for (unsigned nth = 1; i != j && nth <= 2; nth++) {
                arena_reset(fixture->arena);
                chunk_done_again(fixture, 0, nth, words[i], words[j]);
                chunk_done_again(fixture, 1, nth, words[i], words[j]);
            }
}

/* Where a key is to be, by the migration under way. */
static uint32_t target_node(struct fixture *fixture, const char *json)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    const struct migration *migration = container_migration(container);
    const struct partition_definition *to =
        &definition_fields(migration_definition(migration))->key;
    struct partition_key key;
    struct error err;

    assert_ok(partition_key_parse(to, slice_of_text(json), PARTITION_KEY_WHOLE, fixture->arena,
                                  &key, &err),
              &err);
    return partition_map_find(migration_map(migration), item_logical(to, &key, fixture->arena))
        ->node;
}

static void targets_are_where_placement_rules_allow_them(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    container_make(fixture,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"
                   "\"defaultTtl\":-1,\"orrery\":{\"placement\":[{\"key\":[\"k1\"],\"nodes\":"
                   "[\"b\"]},{\"nodes\":[\"a\"]}]}}",
                   20000);
    items_put(fixture, 0, 40, "a");
    assert_fails(rekey_try(fixture, BY_W, NULL, false, &err), &err, ERROR_BAD_REQUEST);
    rekey(fixture, "{\"paths\":[\"/pk\",\"/w\"],\"kind\":\"MultiHash\",\"version\":2}");
    assert_int_equal(target_node(fixture, "[\"k1\",\"a\"]"), 1);
    assert_int_equal(target_node(fixture, "[\"k1\",\"z\"]"), 1);
    assert_int_equal(target_node(fixture, "[\"k0\",\"a\"]"), 0);
    assert_int_equal(target_node(fixture, "[\"k3\",\"a\"]"), 0);
    settle(fixture);
    verify(fixture, 40);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(items_keep_number_etag_and_time_under_the_new_key),
        STORY(copies_follow_items_whose_new_key_changes_meanwhile),
        STORY(conflicts_block_and_are_tried_again),
        STORY(a_conflict_behind_the_fence_opens_it_again),
        STORY(the_index_policy_may_change_meanwhile),
        STORY(a_reader_of_all_versions_is_told_what_is_gone),
        STORY(a_rekey_cut_off_at_any_write_is_taken_up_again),
        STORY(a_chunk_done_again_leaves_one_copy_of_each_item),
        STORY(targets_are_where_placement_rules_allow_them),
    };

    return cmocka_run_group_tests_name("migration/migrator_rekey", tests, NULL, NULL);
}
