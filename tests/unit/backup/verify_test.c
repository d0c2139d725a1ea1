/* 200 planted inconsistencies, each found and each taken back: after every one the store is clean
 * again. They are planted below group commit, as a broken disk or a bug would. */
#include "backup/verify.h"

#include "base/bytes.h"
#include "base/random.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "item/feed.h"
#include "item/operation.h"
#include "partition/history.h"
#include "partition/layout.h"
#include "support/check.h"
#include "support/documents.h"

enum { ITEMS = 60 };

struct fixture {
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct container *container;
    struct arena *arena;
    struct random random;
};

/* --- A server's rooms with a container that has everything that is derived -------------------- */

static void item_write(struct fixture *f, enum item_verb verb, int nth, int round)
{
    struct item_space space = container_space(f->container, &clock_system, NULL);
    struct slice text = arena_printf(
        f->arena, "{\"id\":\"%d\",\"pk\":\"k%d\",\"mail\":\"m%d\",\"n\":%d,\"list\":[1,\"two\"]%s}",
        nth, nth % 7, nth, nth * 1000 + round, nth % 5 ? "" : ",\"ttl\":100000");
    struct slice document = document_of(f->arena, arena_text(f->arena, text));
    struct error err;

    assert_ok(
        item_operation_run(
            &(struct item_operation){.space = &space,
                                     .arena = f->arena,
                                     .verb = verb,
                                     .key = partition_key_extract(&space.definition->key, document),
                                     .id = document_string(arena_printf(f->arena, "%d", nth)),
                                     .document = document},
            &err),
        &err);
}

static int setup_with(void **state, const char *body)
{
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct offer_request request = {.given = true, .ru = 25000}; /* three partitions */
    struct account *account;
    struct database *database;
    struct error err;

    f->arena = arena_new();
    random_seed(&f->random, 2200);
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &f->engine, &err), &err);
    f->cluster = cluster_new(NULL);
    assert_ok(cluster_add(f->cluster, "local", f->engine, &err), &err);
    assert_ok(
        catalogue_open(&(struct catalogue_options){.cluster = f->cluster, .purge_by_hand = true},
                       &f->catalogue, &err),
        &err);
    assert_ok(catalogue_account_create(f->catalogue, SLICE("acme"), document_of(f->arena, "{}"),
                                       &account, &err),
              &err);
    account_unref(account);
    assert_ok(catalogue_database_create(f->catalogue, SLICE("acme"), SLICE("shop"), NULL, &database,
                                        &err),
              &err);
    database_unref(database);
    assert_ok(catalogue_container_create(f->catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(f->arena, body), &request, &f->container,
                                         &err),
              &err);
    for (int i = 0; i < ITEMS; i++)
        item_write(f, ITEM_CREATE, i, 0);
    for (int i = 0; i < ITEMS; i += 3)
        item_write(f, ITEM_REPLACE, i, 1);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state,
                      "{\"id\":\"orders\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"},"
                      "\"defaultTtl\":1000000,"
                      "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/mail\"]}]}}");
}

static int setup_versions(void **state)
{
    return setup_with(state,
                      "{\"id\":\"orders\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"},"
                      "\"changeFeedPolicy\":{\"retentionDuration\":60}}");
}

/* Half of the entries lie with another key than their item's. */
static int setup_placed(void **state)
{
    return setup_with(
        state, "{\"id\":\"orders\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"},"
               "\"indexingPolicy\":{\"includedPaths\":[],\"excludedPaths\":[{\"path\":\"/*\"}]},"
               "\"orrery\":{\"indexes\":[{\"name\":\"to\",\"placed\":\"/mail\","
               "\"key\":[{\"path\":\"/n\"},{\"path\":\"/id\"}]}]}}");
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    container_unref(f->container);
    catalogue_close(f->catalogue);
    cluster_free(f->cluster);
    engine_close(f->engine);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

/* --- Verifying ------------------------------------------------------------------------------- */

struct findings {
    size_t count, repaired;
    bool kinds[VERIFY_NUMBERING + 1];
    char last[200];
};

static void finding_note(void *context, const struct verify_finding *finding)
{
    struct findings *findings = context;

    findings->count++;
    findings->kinds[finding->kind] = true;
    snprintf(findings->last, sizeof findings->last, "%s %c: %.*s", verify_kind_name(finding->kind),
             finding->key.len ? finding->key.data[0] : '-', SLICE_ARG(finding->message));
}

static struct findings verify_all(struct fixture *f, bool repair)
{
    CLEANUP(backup_moment_free) struct backup_moment *moment = NULL;
    struct findings findings = {0};
    struct verify_sink sink = {finding_note, &findings};
    struct error err;
    size_t ignored;

    assert_ok(backup_moment_take(f->catalogue, &moment, &err), &err);
    assert_ok(verify_catalogue(moment, &sink, &ignored, &err), &err);
    for (size_t i = 0; i < moment->partition_count; i++) {
        CLEANUP(verify_free)
        struct verify *verify = verify_new(moment, &moment->partitions[i], repair);
        bool finished = false;

        while (!finished) /* in small steps, so that each phase is cut */
            assert_ok(verify_step(verify, 50, &sink, &finished, &err), &err);
        findings.repaired += verify_figures(verify).repaired;
    }
    return findings;
}

static void assert_clean(struct fixture *f)
{
    struct findings findings = verify_all(f, false);

    if (findings.count)
        fail_msg("%zu findings; the last: %s", findings.count, findings.last);
}

/* --- Planting -------------------------------------------------------------------------------- */

static void write_below(struct fixture *f, const struct partition_span *span, struct engine_op op)
{
    struct engine_section section = {
        .partition = span->id, .epoch = span->epoch, .ops = &op, .count = 1};
    struct error err;

    assert_ok(engine_write(f->engine, &section, 1, &err), &err);
}

/* Some entry of a family. */
static struct engine_op entry_draw(struct fixture *f, uint8_t family,
                                   const struct partition_span **ret_span)
{
    size_t span_count, most = 1;
    const struct partition_span *spans =
        partition_map_spans(container_map(f->container), &span_count);
    struct engine_op drawn = {0};

    for (size_t s = 0; s < span_count; s++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        uint8_t behind = (uint8_t)(family + 1);
        struct error err;

        assert_ok(
            engine_iterator_new(f->engine, NULL, spans[s].id,
                                (struct engine_range){slice_of(&family, 1), slice_of(&behind, 1)},
                                false, ENGINE_READ_ANY, &iterator, &err),
            &err);
        for (;;) {
            struct engine_entry entry;

            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            if (entry.found != ENGINE_FOUND)
                break;
            if (random_below(&f->random, most++) != 0)
                continue;
            *ret_span = &spans[s];
            drawn = (struct engine_op){ENGINE_PUT, arena_copy(f->arena, entry.key),
                                       arena_copy(f->arena, entry.value)};
        }
    }
    assert_non_null(drawn.key.data);
    return drawn;
}

static struct slice flipped(struct fixture *f, struct slice bytes, size_t from, size_t to)
{
    struct slice copy = arena_copy(f->arena, bytes);
    size_t at = from + random_below(&f->random, MIN(to, bytes.len) - from);

    ((uint8_t *)copy.data)[at] ^= (uint8_t)(1u << random_below(&f->random, 8));
    return copy;
}

static void assert_found(struct fixture *f, const char *what, uint8_t family)
{
    if (!verify_all(f, false).count)
        fail_msg("%s in family %c was not found", what, family);
}

/* Each gives back whether it planted anything. */

static bool plant_flip(struct fixture *f, uint8_t family)
{
    const struct partition_span *span;
    struct engine_op right = entry_draw(f, family, &span), wrong = right;
    size_t from = 0, to = SIZE_MAX;

    /* which version came before only the record itself knows */
    if (family == PARTITION_FAMILY_FEED && random_below(&f->random, 2))
        to = FEED_VALUE_PREVIOUS_AT;
    else if (family == PARTITION_FAMILY_FEED)
        from = FEED_VALUE_PREVIOUS_AT + 16;
    if (right.value.len == 0)
        return false;
    wrong.value = flipped(f, right.value, from, to);
    write_below(f, span, wrong);
    assert_found(f, "a flipped bit", family);
    write_below(f, span, right);
    return true;
}

static bool plant_missing(struct fixture *f, uint8_t family)
{
    const struct partition_span *span;
    struct engine_op right = entry_draw(f, family, &span);

    write_below(f, span, (struct engine_op){ENGINE_DELETE, right.key, SLICE_NONE});
    assert_found(f, "a missing entry", family);
    write_below(f, span, right);
    return true;
}

/* The last bytes of a key are a number, an id or a value. */
static bool plant_surplus(struct fixture *f, uint8_t family)
{
    const struct partition_span *span;
    struct engine_op right = entry_draw(f, family, &span), surplus = right;
    struct engine_value there;
    struct error err;

    surplus.key = flipped(f, right.key, right.key.len - 4, right.key.len);
    assert_ok(
        engine_get(f->engine, NULL, span->id, surplus.key, ENGINE_READ_ANY, f->arena, &there, &err),
        &err);
    if (there.found == ENGINE_FOUND)
        return false;
    write_below(f, span, surplus);
    assert_found(f, "a surplus entry", family);
    write_below(f, span, (struct engine_op){ENGINE_DELETE, surplus.key, SLICE_NONE});
    return true;
}

static bool plant_sum(struct fixture *f)
{
    const struct partition_span *span;
    struct engine_op right = entry_draw(f, PARTITION_FAMILY_COUNTER, &span), wrong = right;

    wrong.value = arena_copy(f->arena, right.value);
    bytes_put_be64((uint8_t *)wrong.value.data,
                   bytes_get_be64(right.value.data) + 1 + random_below(&f->random, 100));
    write_below(f, span, wrong);
    assert_found(f, "a wrong sum", PARTITION_FAMILY_COUNTER);
    write_below(f, span, right);
    return true;
}

static void every_one_of_200_planted_inconsistencies_is_found(void **state)
{
    static const uint8_t families[] = {PARTITION_FAMILY_ITEM,   PARTITION_FAMILY_NUMBER,
                                       PARTITION_FAMILY_INDEX,  PARTITION_FAMILY_FEED,
                                       PARTITION_FAMILY_EXPIRY, PARTITION_FAMILY_UNIQUE,
                                       PARTITION_FAMILY_COUNTER};
    struct fixture *f = *state;
    size_t planted = 0;

    assert_clean(f);
    for (size_t round = 0; planted < 200; round++) {
        uint8_t family = families[round % ARRAY_LEN(families)];

        planted += plant_flip(f, family);
        planted += plant_missing(f, family);
        planted += plant_surplus(f, family);
        planted += plant_sum(f);
    }
    assert_clean(f);
}

static void images_of_kept_versions_are_compared_with_their_items(void **state)
{
    struct fixture *f = *state;

    assert_clean(f);
    for (int i = 0; i < 20; i++) {
        plant_flip(f, PARTITION_FAMILY_ITEM);
        plant_missing(f, PARTITION_FAMILY_ITEM);
    }
    assert_clean(f);
}

/* --- Maps ------------------------------------------------------------------------------------ */

/* The record of the container in the catalogue's partition, with its map damaged. */
static void a_gap_in_a_map_is_found(void **state)
{
    struct fixture *f = *state;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct partition_span catalogue = {.id = CATALOGUE_KEPT_PARTITION, .epoch = 1};
    size_t gaps = 0;
    struct error err;

    assert_ok(engine_iterator_new(f->engine, NULL, CATALOGUE_KEPT_PARTITION,
                                  (struct engine_range){SLICE("a"), SLICE("b")}, false,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    for (;;) {
        struct engine_entry entry;
        struct engine_op right, wrong;
        uint8_t *spans;

        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            break;
        right = (struct engine_op){ENGINE_PUT, arena_copy(f->arena, entry.key),
                                   arena_copy(f->arena, entry.value)};
        spans = memmem(right.value.data, right.value.len, "\3map\0", 5);
        if (!spans)
            continue;
        /* binary bounds follow: another byte of each makes a gap or an overlap */
        for (size_t at = (size_t)(spans - right.value.data) + 5; at + 12 < right.value.len; at++) {
            if (memcmp(right.value.data + at, "\5min\0", 5) != 0 || right.value.data[at + 5] == 0)
                continue;
            wrong = right;
            wrong.value = arena_copy(f->arena, right.value);
            ((uint8_t *)wrong.value.data)[at + 10] ^= 0x11;
            write_below(f, &catalogue, wrong);
            assert_true(verify_all(f, false).kinds[VERIFY_RECORD]);
            write_below(f, &catalogue, right);
            gaps++;
        }
    }
    assert_true(gaps > 0);
    assert_clean(f);
}

static void partitions_that_are_missing_or_belong_to_nobody_are_found(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(f->container), &count);
    struct error err;

    assert_ok(engine_partition_create(f->engine, 4711, 1, &err), &err);
    assert_true(verify_all(f, false).kinds[VERIFY_PARTITION]);
    assert_ok(engine_partition_drop(f->engine, 4711, &err), &err);
    assert_clean(f);
    assert_ok(engine_partition_drop(f->engine, spans[0].id, &err), &err);
    assert_true(verify_all(f, false).kinds[VERIFY_PARTITION]);
}

/* --- Repairing ------------------------------------------------------------------------------- */

static void what_is_derived_is_made_anew(void **state)
{
    static const uint8_t families[] = {PARTITION_FAMILY_NUMBER, PARTITION_FAMILY_INDEX,
                                       PARTITION_FAMILY_FEED,   PARTITION_FAMILY_EXPIRY,
                                       PARTITION_FAMILY_UNIQUE, PARTITION_FAMILY_COUNTER};
    struct fixture *f = *state;

    for (size_t i = 0; i < 4 * ARRAY_LEN(families); i++) {
        uint8_t family = families[i % ARRAY_LEN(families)];
        const struct partition_span *span;
        struct engine_op op = entry_draw(f, family, &span);

        if (i % 2)
            write_below(f, span, (struct engine_op){ENGINE_DELETE, op.key, SLICE_NONE});
        if (family == PARTITION_FAMILY_COUNTER)
            continue;
        op.key = flipped(f, op.key, op.key.len - 4, op.key.len);
        write_below(f, span, op);
    }
    assert_true(verify_all(f, true).repaired > 0);
    (void)verify_all(f, true); /* what two findings together hid */
    assert_clean(f);
}

static void entries_that_lie_elsewhere_are_compared_with_their_items_and_made_anew(void **state)
{
    struct fixture *f = *state;

    assert_clean(f);
    for (int i = 0; i < 30; i++) {
        plant_flip(f, PARTITION_FAMILY_INDEX);
        plant_missing(f, PARTITION_FAMILY_INDEX);
        plant_surplus(f, PARTITION_FAMILY_INDEX);
    }
    assert_clean(f);
    for (int i = 0; i < 20; i++) {
        const struct partition_span *span;
        struct engine_op op = entry_draw(f, PARTITION_FAMILY_INDEX, &span);

        if (i % 2)
            write_below(f, span, (struct engine_op){ENGINE_DELETE, op.key, SLICE_NONE});
        op.key = flipped(f, op.key, op.key.len - 4, op.key.len);
        write_below(f, span, op);
    }
    assert_true(verify_all(f, true).repaired > 0);
    (void)verify_all(f, true);
    assert_clean(f);
}

/* One record, through the committer as any other, so that it is counted. */
static struct engine_op history_write(struct fixture *f, uint64_t time, enum history_kind kind,
                                      struct slice payload)
{
    const struct history_record record = {
        .place = {.time = time, .origin = 3, .ordinal = 1},
        .kind = kind,
        .wall_ms = 1000,
        .origin = {.account = 1, .database = 2, .container = 3, .container_name = SLICE("c")},
        .payload = payload,
    };
    struct engine_op op = {ENGINE_PUT, history_key_encode(record.place, f->arena),
                           history_record_encode(&record, f->arena)};
    struct commit_part part = history_part(&op, 1, f->arena);
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
    struct error err;

    assert_ok(commit_run(cluster_at(f->cluster, 0)->commit, &batch, &err), &err);
    return op;
}

static void damage_of_the_history_is_found(void **state)
{
    struct fixture *f = *state;
    const struct partition_span history = {.id = PARTITION_HISTORY, .epoch = HISTORY_EPOCH};
    const struct engine_op whole =
        history_write(f, 77, HISTORY_INSERT, document_of(f->arena, "{\"k\":{\"_id\":1}}"));
    const struct engine_op touched =
        history_write(f, 78, HISTORY_TOUCHED, SLICE("\0\0\0\0\0\0\0\7")); /* a number alone */
    struct engine_op damaged;

    assert_clean(f);
    damaged = touched;
    damaged.value = slice_first(touched.value, touched.value.len - 1);
    write_below(f, &history, damaged);
    assert_found(f, "a number cut short", PARTITION_FAMILY_HISTORY);
    write_below(f, &history, touched);
    assert_clean(f);

    write_below(f, &history, (struct engine_op){ENGINE_DELETE, whole.key, SLICE_NONE});
    assert_found(f, "a missing record", PARTITION_FAMILY_HISTORY);
    damaged = whole;
    damaged.value = slice_first(whole.value, whole.value.len - 1);
    write_below(f, &history, damaged);
    assert_found(f, "a record cut short", PARTITION_FAMILY_HISTORY);
    damaged.value = flipped(f, whole.value, 0, 1);
    write_below(f, &history, damaged);
    assert_found(f, "a damaged record", PARTITION_FAMILY_HISTORY);
    damaged.value = arena_copy(f->arena, whole.value);
    ((uint8_t *)damaged.value.data)[1] = 99; /* its kind */
    write_below(f, &history, damaged);
    assert_found(f, "a record of no kind", PARTITION_FAMILY_HISTORY);
    damaged.value = flipped(f, whole.value, whole.value.len - 1, whole.value.len);
    write_below(f, &history, damaged);
    assert_found(f, "a damaged document", PARTITION_FAMILY_HISTORY);
    write_below(f, &history, whole);
    assert_clean(f);
    damaged = whole;
    damaged.key = flipped(f, whole.key, whole.key.len - 4, whole.key.len);
    write_below(f, &history, damaged);
    assert_found(f, "a record twice", PARTITION_FAMILY_HISTORY);
    write_below(f, &history, (struct engine_op){ENGINE_DELETE, damaged.key, SLICE_NONE});
    assert_clean(f);
    damaged.key = SLICE("x");
    write_below(f, &history, damaged);
    assert_found(f, "an entry of no kind", PARTITION_FAMILY_HISTORY);
    write_below(f, &history, (struct engine_op){ENGINE_DELETE, damaged.key, SLICE_NONE});
    assert_clean(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_one_of_200_planted_inconsistencies_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(images_of_kept_versions_are_compared_with_their_items,
                                        setup_versions, teardown),
        cmocka_unit_test_setup_teardown(a_gap_in_a_map_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(partitions_that_are_missing_or_belong_to_nobody_are_found,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_derived_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(
            entries_that_lie_elsewhere_are_compared_with_their_items_and_made_anew, setup_placed,
            teardown),
        cmocka_unit_test_setup_teardown(damage_of_the_history_is_found, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
