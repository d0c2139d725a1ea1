#include "advise/advise.h"

#include "container/definition.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/workloads.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static struct advise_report report_of(const struct advise_workload *workload,
                                      const struct advise_options *options, struct arena *arena)
{
    struct advise_report report;
    struct error err;

    assert_ok(advise_report_make(workload, options, arena, &report, &err), &err);
    return report;
}

static bool key_is(const struct advise_workload *workload, const struct advise_key *key,
                   enum advise_key_kind kind, const char *first, const char *second)
{
    return key->kind == kind &&
           key->paths[0] == advise_workload_path(workload, slice_of_text(first)) &&
           (!second || (kind == ADVISE_COMPUTED_SUFFIX ? key->hashed : key->paths[1]) ==
                           advise_workload_path(workload, slice_of_text(second)));
}

static void explain(const struct advise_workload *workload, const struct advise_report *report)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    advise_report_text(workload, report, &out);
    print_message("%.*s\n", SLICE_ARG(buf_slice(&out)));
}

enum { SEEDS = 3 };

/* One property is planted; three seeds, so that no luck is in it. */
static void planted(struct arena *arena, enum workload_kind kind, const char *which)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(kind, seed, &names);
        struct advise_report report = report_of(workload, NULL, arena);
        const char *path = *which == 'i' ? names.id : *which == 'a' ? names.a : names.b;

        if (!report.recommended ||
            !key_is(workload, &report.proposals[0].key, ADVISE_PROPERTY, path, NULL)) {
            explain(workload, &report);
            fail_msg("kind %d, seed %d: %s was planted", (int)kind, (int)seed, path);
        }
    }
}

static void profiles_are_kept_by_user(void **state)
{
    planted(*state, WORKLOAD_PROFILES, "a");
}

static void readings_are_kept_by_device(void **state)
{
    planted(*state, WORKLOAD_DEVICES, "a");
}

static void what_is_read_by_category_is_kept_by_category(void **state)
{
    planted(*state, WORKLOAD_CATALOGUE, "a");
}

static void a_map_is_kept_by_id(void **state)
{
    planted(*state, WORKLOAD_BY_ID, "i");
}

static void vehicles_are_kept_by_vehicle(void **state)
{
    planted(*state, WORKLOAD_VEHICLES, "b");
}

/* A date is the worst key for what is written by date; any key that spreads a day's writes is good.
 */
static void events_of_a_day_are_spread(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_EVENTS, 1, &names);
    struct advise_key day = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_options options = {.current = &day, .current_partitions = 16};
    struct advise_report report;

    day.paths[0] = (uint8_t)advise_workload_path(workload, slice_of_text(names.a));
    report = report_of(workload, &options, *state);
    assert_true(report.recommended);
    assert_true(report.proposals[0].key.kind == ADVISE_RANDOM_SUFFIX ||
                key_is(workload, &report.proposals[0].key, ADVISE_PROPERTY, names.id, NULL));
    assert_false(report.current.good);
    assert_true(report.current.figures.moves);
    assert_true(report.current.figures.ru_per_second >
                8 * report.proposals[0].figures.ru_per_second);
}

/* A host alone spreads well, but its log grows for ever: below a small limit the day must be in it.
 */
static void logs_that_grow_are_cut_by_day(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(WORKLOAD_LOGS, seed, &names);
        struct advise_options options = {.logical_bytes_max = 25 * 1024};
        struct advise_report report = report_of(workload, &options, *state);
        const struct advise_key *best = &report.proposals[0].key;

        if (!report.recommended ||
            !(key_is(workload, best, ADVISE_CONCATENATION, names.a, names.b) ||
              key_is(workload, best, ADVISE_CONCATENATION, names.b, names.a) ||
              key_is(workload, best, ADVISE_HIERARCHICAL, names.a, names.b) ||
              key_is(workload, best, ADVISE_HIERARCHICAL, names.b, names.a) ||
              key_is(workload, best, ADVISE_COMPUTED_SUFFIX, names.a, names.b))) {
            explain(workload, &report);
            fail_msg("seed %d: day and host were planted", (int)seed);
        }
    }
}

static void a_tenant_far_larger_than_others_is_divided_by_user(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(WORKLOAD_TENANTS, seed, &names);
        struct advise_report report = report_of(workload, NULL, *state);

        if (!report.recommended ||
            !key_is(workload, &report.proposals[0].key, ADVISE_HIERARCHICAL, names.a, names.b)) {
            explain(workload, &report);
            fail_msg("seed %d: tenant and user were planted", (int)seed);
        }
    }
}

static void what_is_small_and_changed_together_is_kept_under_one_key(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_LEDGER, 1, &names);
    struct advise_report report = report_of(workload, NULL, *state);

    if (!report.recommended || report.proposals[0].key.kind != ADVISE_ONE_KEY) {
        explain(workload, &report);
        fail_msg("one key was planted");
    }
}

static void where_no_key_is_good_none_is_recommended(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_HOPELESS, 1, &names);
    struct advise_options options = {.load = 2000000}; /* too much for one partition */
    struct advise_report report = report_of(workload, &options, *state);

    if (report.recommended)
        explain(workload, &report);
    assert_false(report.recommended);
    assert_true(slice_starts_with(report.summary, SLICE("No key can be recommended")));
}

/* What is full grows no more, and so never passes the limit: that does not make it good. */
static void a_value_that_is_full_is_a_fault(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_CATALOGUE, 1, &names);
    struct advise_key category = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_options options = {.current = &category, .logical_bytes_max = 13 * 1024};
    struct advise_report report;

    category.paths[0] = (uint8_t)advise_workload_path(workload, slice_of_text(names.a));
    report = report_of(workload, &options, *state);
    assert_true(report.current.figures.full > 0.8);
    assert_false(report.current.good);
}

static void a_report_is_json(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_TENANTS, 1, &names);
    struct advise_report report = report_of(workload, NULL, *state);
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf bson;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    advise_report_json(workload, &report, &out);
    assert_ok(document_json_read(buf_slice(&out), NULL, &bson, &err), &err);
}

/* Whatever is proposed can be made. */
static void every_proposal_is_a_definition(void **state)
{
    for (int kind = 0; kind < WORKLOAD_KINDS; kind++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make((enum workload_kind)kind, 2, &names);
        struct advise_report report = report_of(workload, NULL, *state);

        for (size_t i = 0; i < report.count; i++) {
            CLEANUP(definition_unref) struct definition *definition = NULL;
            struct slice json = arena_printf(*state, "{\"id\":\"c\",%.*s}",
                                             SLICE_ARG(report.proposals[i].definition));
            struct error err;

            assert_ok(definition_new(document_of(*state, arena_text(*state, json)), NULL,
                                     &definition, &err),
                      &err);
        }
    }
}

static void the_same_workload_gets_the_same_advice(void **state)
{
    double scores[2];

    for (size_t i = 0; i < 2; i++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(WORKLOAD_VEHICLES, 5, &names);

        scores[i] = report_of(workload, NULL, *state).proposals[3].score;
    }
    assert_true(scores[0] == scores[1]);
}

/* Orders of tenants, the first of which has a third of them; every request names the tenant. */
static struct advise_workload *orders(struct arena *arena)
{
    struct advise_workload *workload = advise_workload_new();
    struct random random;
    char item[120];

    random_seed(&random, 3);
    for (unsigned i = 0; i < 600; i++) {
        unsigned tenant = random_below(&random, 3) ? (unsigned)random_below(&random, 40) : 0;

        (void)snprintf(item, sizeof item,
                       "{\"id\":\"ORD-%06u\",\"tenant\":\"t%u\",\"day\":\"2018-08-%02u\",\"n\":%u}",
                       i, tenant, 1 + i / 60, i);
        advise_workload_item(workload, document_of(arena, item), 300, 1000 + i * INT64_C(1000));
        advise_workload_operation(
            workload, &(struct advise_operation_parts){.kind = ADVISE_CREATE,
                                                       .time_ms = 1000 + i * INT64_C(1000),
                                                       .cru = 700,
                                                       .bytes = 300,
                                                       .item = document_of(arena, item)});
        (void)snprintf(item, sizeof item, "{\"/tenant\":\"t%u\"}", tenant);
        advise_workload_operation(
            workload, &(struct advise_operation_parts){.kind = ADVISE_QUERY,
                                                       .time_ms = 1000 + i * INT64_C(1000),
                                                       .cru = 300,
                                                       .where = document_of(arena, item)});
    }
    advise_workload_finish(workload);
    return workload;
}

static struct advise_figures figures_of(const struct advise_workload *workload, const char *path)
{
    struct advise_key key = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_figures figures;

    key.paths[0] = (uint8_t)advise_workload_path(workload, slice_of_text(path));
    advise_evaluate(workload, &key, NULL, &figures);
    return figures;
}

static void one_key_for_all_is_nothing_where_another_does_the_same_and_can_grow(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(*state);
    struct advise_key tenant = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_options options = {.current = &tenant, .current_partitions = 1};
    struct advise_report report;

    tenant.paths[0] = (uint8_t)advise_workload_path(workload, SLICE("/tenant"));
    report = report_of(workload, &options, *state);
    assert_false(report.matters);
    for (size_t i = 0; i < report.count; i++)
        if (report.proposals[i].key.kind == ADVISE_ONE_KEY)
            assert_false(report.proposals[i].good);
    if (!report.recommended)
        assert_true(slice_starts_with(report.summary, SLICE("Keep /tenant for now")));
}

static void what_counts_up_or_grows_is_said(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(*state);

    assert_true(figures_of(workload, "/n").counter_bare);
    assert_true(figures_of(workload, "/id").counter); /* a number behind a text */
    assert_false(figures_of(workload, "/id").counter_bare);
    assert_true(figures_of(workload, "/day").grows);
    assert_false(figures_of(workload, "/day").counter);
    assert_false(figures_of(workload, "/tenant").grows);
}

static void the_text_shows_the_figures_side_by_side(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(*state);
    struct advise_report report = report_of(workload, NULL, *state);
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    advise_report_text(workload, &report, &out);
    buf_append_byte(&out, 0);
    assert_non_null(strstr((const char *)out.data, "Gini"));
    assert_non_null(strstr((const char *)out.data, "/tenant"));
}

static void nothing_to_judge_by_is_said(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    struct advise_report report;
    struct error err;

    advise_workload_finish(workload);
    assert_fails(advise_report_make(workload, NULL, *state, &report, &err), &err,
                 ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_kept_by_user),
        cmocka_unit_test(readings_are_kept_by_device),
        cmocka_unit_test(what_is_read_by_category_is_kept_by_category),
        cmocka_unit_test(a_map_is_kept_by_id),
        cmocka_unit_test(vehicles_are_kept_by_vehicle),
        cmocka_unit_test(events_of_a_day_are_spread),
        cmocka_unit_test(logs_that_grow_are_cut_by_day),
        cmocka_unit_test(a_tenant_far_larger_than_others_is_divided_by_user),
        cmocka_unit_test(what_is_small_and_changed_together_is_kept_under_one_key),
        cmocka_unit_test(where_no_key_is_good_none_is_recommended),
        cmocka_unit_test(a_value_that_is_full_is_a_fault),
        cmocka_unit_test(a_report_is_json),
        cmocka_unit_test(every_proposal_is_a_definition),
        cmocka_unit_test(the_same_workload_gets_the_same_advice),
        cmocka_unit_test(one_key_for_all_is_nothing_where_another_does_the_same_and_can_grow),
        cmocka_unit_test(what_counts_up_or_grows_is_said),
        cmocka_unit_test(the_text_shows_the_figures_side_by_side),
        cmocka_unit_test(nothing_to_judge_by_is_said),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
