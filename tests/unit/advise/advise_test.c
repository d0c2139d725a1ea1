#include "advise/advise.h"

#include "definition/definition.h"
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

static bool key_is(const struct advise_workload *workload, const struct advise_key *key,
                   enum advise_key_kind kind, const char *first, const char *second)
{
    return key->kind == kind &&
           key->paths[0] == advise_workload_path(workload, slice_of_text(first)) &&
           (!second || (kind == ADVISE_COMPUTED_SUFFIX ? key->hashed : key->paths[1]) ==
                           advise_workload_path(workload, slice_of_text(second)));
}

static bool says(struct slice text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part));
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
        struct advise_report report = advise_report_make(workload, NULL, arena);
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

/* --- What fits when there is more ------------------------------------------------------------ */

static const char *path_of(const struct workload_names *names, char which)
{
    return which == 'i' ? names->id : which == 'a' ? names->a : which == 'n' ? names->d : names->b;
}

static const struct advise_proposal *proposal_of(const struct advise_workload *workload,
                                                 const struct advise_report *report,
                                                 enum advise_key_kind kind, const char *path)
{
    for (size_t i = 0; i < report->count; i++)
        if (key_is(workload, &report->proposals[i].key, kind, path, NULL))
            return &report->proposals[i];
    return NULL;
}

/* At few partitions asking all of them costs next to nothing, today. */
static void grown(struct arena *arena, enum workload_kind kind, char which)
{
    for (uint32_t partitions = 4; partitions <= 64; partitions *= 16) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(kind, partitions, &names);
        struct advise_options options = {.partitions = partitions};
        struct advise_report report = advise_report_make(workload, &options, arena);

        if (!report.recommended || !key_is(workload, &report.proposals[0].key, ADVISE_PROPERTY,
                                           path_of(&names, which), NULL)) {
            explain(workload, &report);
            fail_msg("kind %d at %u partitions: %s fits", (int)kind, partitions,
                     path_of(&names, which));
        }
        for (size_t i = 0; i < report.count; i++)
            for (size_t p = 0; p < report.proposals[i].key.path_count; p++) {
                int path = report.proposals[i].key.paths[p];

                assert_int_not_equal(path,
                                     advise_workload_path(workload, slice_of_text(names.measure)));
                assert_int_not_equal(path,
                                     advise_workload_path(workload, slice_of_text(names.time)));
                assert_int_not_equal(path,
                                     advise_workload_path(workload, slice_of_text(names.text)));
            }
    }
}

static void readings_are_kept_by_device_however_few_are_asked_for(void **state)
{
    grown(*state, WORKLOAD_READINGS, 'a');
    grown(*state, WORKLOAD_SELDOM, 'a');
}

static void orders_are_kept_by_customer(void **state)
{
    grown(*state, WORKLOAD_ORDERS, 'a');
}

static void what_is_said_in_rooms_is_kept_by_room(void **state)
{
    grown(*state, WORKLOAD_ROOMS, 'a');
}

static void what_is_read_one_by_one_and_listed_by_user_is_kept_by_user(void **state)
{
    grown(*state, WORKLOAD_MIXED, 'a');
}

static void a_number_that_queries_name_is_a_key(void **state)
{
    grown(*state, WORKLOAD_NUMBERED, 'n');
}

static void what_is_only_asked_for_by_id_is_kept_by_id(void **state)
{
    grown(*state, WORKLOAD_SESSIONS, 'i');
}

/* A listing asks everywhere, and would with every key that spreads the rest. */
static void the_id_stays_where_no_good_key_is_named_by_queries(void **state)
{
    grown(*state, WORKLOAD_LISTED, 'i');
}

static void a_large_tenant_is_divided_although_it_is_asked_for_as_a_whole(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make(WORKLOAD_SKEWED, seed, &names);
        struct advise_report report = advise_report_make(workload, NULL, *state);

        if (!report.recommended ||
            !key_is(workload, &report.proposals[0].key, ADVISE_HIERARCHICAL, names.a, NULL)) {
            explain(workload, &report);
            fail_msg("seed %d: tenant and something below was planted", (int)seed);
        }
    }
}

/* What asking everywhere becomes is said, in RU and in partitions to wait for. */
static void reasons_say_what_growth_does(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_READINGS, 1, &names);
    struct advise_report report = advise_report_make(workload, NULL, *state);
    const struct advise_proposal *device = &report.proposals[0],
                                 *id = proposal_of(workload, &report, ADVISE_PROPERTY, "/id");

    assert_non_null(id);
    assert_true(device->figures.growth == 1);
    assert_true(device->figures.ru_each[2] == device->figures.ru_each[0]);
    assert_true(says(device->reason, "at ten and a hundred times the data"));
    assert_true(id->figures.ru_each[1] > 1.5 * id->figures.ru_each[0]);
    assert_true(id->figures.ru_each[2] > 6 * id->figures.ru_each[0]);
    assert_true(id->score > id->figures.growth);
    assert_true(says(id->reason, "16 here, 160 at ten times the data, 1600 at a hundred"));
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
    report = advise_report_make(workload, &options, *state);
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
        struct advise_report report = advise_report_make(workload, &options, *state);
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
        struct advise_report report = advise_report_make(workload, NULL, *state);

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
    struct advise_report report = advise_report_make(workload, NULL, *state);

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
    struct advise_report report = advise_report_make(workload, &options, *state);

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
    report = advise_report_make(workload, &options, *state);
    assert_true(report.current.figures.full > 0.8);
    assert_false(report.current.good);
}

static void a_report_is_json(void **state)
{
    struct workload_names names;
    CLEANUP(advise_workload_free)
    struct advise_workload *workload = workload_make(WORKLOAD_TENANTS, 1, &names);
    struct advise_report report = advise_report_make(workload, NULL, *state);
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf bson;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    advise_report_json(workload, &report, &out);
    assert_ok(document_json_read(buf_slice(&out), NULL, &bson, &err), &err);
}

/* Whatever is proposed can be made, and does not beat chance. */
static void every_proposal_is_a_definition_and_needs_no_less_than_the_least(void **state)
{
    for (int kind = 0; kind < WORKLOAD_READINGS; kind++) {
        struct workload_names names;
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = workload_make((enum workload_kind)kind, 2, &names);
        struct advise_report report = advise_report_make(workload, NULL, *state);

        for (size_t i = 0; i < report.count; i++) {
            CLEANUP(definition_unref) struct definition *definition = NULL;
            struct slice json = arena_printf(*state, "{\"id\":\"c\",%.*s}",
                                             SLICE_ARG(report.proposals[i].definition));
            struct error err;

            assert_ok(definition_new(document_of(*state, arena_text(*state, json)), NULL,
                                     &definition, &err),
                      &err);
            assert_true(report.proposals[i].figures.ru_per_second >=
                        report.proposals[i].figures.ru_per_second_ideal);
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

        scores[i] = advise_report_make(workload, NULL, *state).proposals[3].score;
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
    report = advise_report_make(workload, &options, *state);
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
    struct advise_report report = advise_report_make(workload, NULL, *state);
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
    CLEANUP(buf_done) struct buf out;
    struct advise_report report;

    buf_init(&out, BUF_DEFAULT_MAX);
    advise_workload_finish(workload);
    report = advise_report_make(workload, NULL, *state);
    assert_false(report.enough);
    assert_int_equal(report.count, 0);
    advise_report_text(workload, &report, &out);
    assert_true(says(buf_slice(&out), "too little to judge by: 0 documents and 0 operations"));
}

/* --- What there is to judge by --------------------------------------------------------------- */

/* Items of so many customers, and operations that each name one. */
static struct advise_workload *sparse(struct arena *arena, size_t items, size_t operations,
                                      unsigned customers)
{
    struct advise_workload *workload = advise_workload_new();
    char text[120];

    for (size_t i = 0; i < items; i++) {
        (void)snprintf(text, sizeof text, "{\"id\":\"%zu\",\"customer\":\"c%zu\"}", i,
                       i % customers);
        advise_workload_item(workload, document_of(arena, text), 300, 1000 + (int64_t)i * 1000);
    }
    for (size_t i = 0; i < operations; i++) {
        (void)snprintf(text, sizeof text, "{\"/customer\":\"c%zu\"}", i % customers);
        advise_workload_operation(
            workload, &(struct advise_operation_parts){.kind = ADVISE_QUERY,
                                                       .time_ms = 1000 + (int64_t)i * 1000,
                                                       .cru = 300,
                                                       .weight = 64,
                                                       .where = document_of(arena, text)});
    }
    advise_workload_finish(workload);
    return workload;
}

static void one_is_not_told_as_several(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = sparse(*state, 1, 1, 1);
    struct advise_report report = advise_report_make(workload, NULL, *state);
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    advise_report_text(workload, &report, &out);
    assert_true(says(buf_slice(&out), "Judged by 1 document and "));
    assert_true(says(buf_slice(&out), "too little to judge by: 1 document and 1 operation."));
}

/* What one operation stands for does not make it more than one. */
static void one_operation_is_no_traffic(void **state)
{
    static const size_t little[][2] = {{600, 0}, {600, 1}, {600, 49}, {19, 600}};

    for (size_t i = 0; i < ARRAY_LEN(little); i++) {
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = sparse(*state, little[i][0], little[i][1], 400);
        struct advise_report report = advise_report_make(workload, NULL, *state);

        assert_false(report.enough);
        assert_false(report.recommended);
        assert_int_equal(report.rekey.len, 0);
        assert_true(slice_starts_with(report.summary, SLICE("There is too little to judge by")));
    }
    {
        CLEANUP(advise_workload_free)
        struct advise_workload *workload = sparse(*state, 600, 600, 400);
        struct advise_report report = advise_report_make(workload, NULL, *state);

        assert_true(report.enough && report.recommended);
        assert_true(slice_starts_with(report.summary, SLICE("Take /customer.")));
    }
}

static void few_values_are_warned_of(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *few = sparse(*state, 900, 900, 200);
    CLEANUP(advise_workload_free) struct advise_workload *many = sparse(*state, 900, 900, 400);
    struct advise_report report = advise_report_make(few, NULL, *state);

    assert_true(says(report.summary, "It has few values (200)"));
    assert_true(says(report.proposals[0].reason, "few values, 200 in the sample"));
    report = advise_report_make(many, NULL, *state);
    assert_false(says(report.summary, "few values"));
    assert_false(says(report.proposals[0].reason, "few values"));
}

/* Half of the load is one tenant's: with that key 30,000 RU/s are passed long before an even spread
 * would need them. */
static void a_key_matters_by_what_it_needs_and_not_by_what_would_be_ideal(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(*state);
    struct advise_key tenant = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_options options = {.current = &tenant, .current_partitions = 16};
    struct advise_report report;

    tenant.paths[0] = (uint8_t)advise_workload_path(workload, SLICE("/tenant"));
    report = advise_report_make(workload, &options, *state);
    options.load = 31000 / report.current.figures.ru_per_second;
    report = advise_report_make(workload, &options, *state);
    assert_true(report.current.figures.ru_per_second_ideal < 20000);
    assert_true(report.current.figures.ru_per_second > 30000);
    assert_true(report.matters);
    assert_false(says(report.summary, "hardly matters"));
    options.load *= 0.9;
    report = advise_report_make(workload, &options, *state);
    assert_false(report.matters);
    assert_true(says(report.summary, "hardly matters"));
}

static void a_report_ends_with_the_command_that_does_it(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = sparse(*state, 900, 900, 400);
    struct advise_options options = {.target = {SLICE("my shop"), SLICE("orders")}};
    struct advise_report report = advise_report_make(workload, &options, *state);
    struct advise_key key = {.kind = ADVISE_PROPERTY, .path_count = 1};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert_slice_equal(report.rekey, SLICE("orrery rekey 'my shop' orders --key /customer"));
    advise_report_text(workload, &report, &out);
    assert_true(out.len > report.rekey.len + 1);
    assert_slice_equal(slice_of(out.data + out.len - 1 - report.rekey.len, report.rekey.len),
                       report.rekey);
    /* Who has it already has nothing to do. */
    key.paths[0] = (uint8_t)advise_workload_path(workload, SLICE("/customer"));
    options.current = &key;
    assert_int_equal(advise_report_make(workload, &options, *state).rekey.len, 0);
}

static void commands_name_synthetic_keys_as_rekey_takes_them(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = sparse(*state, 30, 60, 10);
    struct advise_key key = {.kind = ADVISE_COMPUTED_SUFFIX, .path_count = 1, .suffixes = 20};
    struct advise_target nobody = {0};

    key.paths[0] = (uint8_t)advise_workload_path(workload, SLICE("/customer"));
    key.hashed = (uint8_t)advise_workload_path(workload, SLICE("/id"));
    assert_slice_equal(
        advise_key_command(workload, &key, &nobody, *state),
        SLICE("orrery rekey DATABASE CONTAINER --key /partitionKey --synthetic "
              "'{\"target\":\"/partitionKey\",\"kind\":\"computedSuffix\",\"base\":\"/"
              "customer\",\"hashed\":\"/id\",\"suffixes\":20}'"));
    key = (struct advise_key){
        .kind = ADVISE_HIERARCHICAL, .path_count = 2, .paths = {key.paths[0], key.hashed}};
    assert_slice_equal(advise_key_command(workload, &key, &nobody, *state),
                       SLICE("orrery rekey DATABASE CONTAINER --key /customer,/id"));
    nobody.fixed = true;
    assert_int_equal(advise_key_command(workload, &key, &nobody, *state).len, 0);
    nobody.fixed = false;
    key.kind = ADVISE_ONE_KEY;
    assert_int_equal(advise_key_command(workload, &key, &nobody, *state).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_kept_by_user),
        cmocka_unit_test(readings_are_kept_by_device),
        cmocka_unit_test(what_is_read_by_category_is_kept_by_category),
        cmocka_unit_test(a_map_is_kept_by_id),
        cmocka_unit_test(vehicles_are_kept_by_vehicle),
        cmocka_unit_test(readings_are_kept_by_device_however_few_are_asked_for),
        cmocka_unit_test(orders_are_kept_by_customer),
        cmocka_unit_test(what_is_said_in_rooms_is_kept_by_room),
        cmocka_unit_test(what_is_read_one_by_one_and_listed_by_user_is_kept_by_user),
        cmocka_unit_test(a_number_that_queries_name_is_a_key),
        cmocka_unit_test(what_is_only_asked_for_by_id_is_kept_by_id),
        cmocka_unit_test(the_id_stays_where_no_good_key_is_named_by_queries),
        cmocka_unit_test(a_large_tenant_is_divided_although_it_is_asked_for_as_a_whole),
        cmocka_unit_test(reasons_say_what_growth_does),
        cmocka_unit_test(events_of_a_day_are_spread),
        cmocka_unit_test(logs_that_grow_are_cut_by_day),
        cmocka_unit_test(a_tenant_far_larger_than_others_is_divided_by_user),
        cmocka_unit_test(what_is_small_and_changed_together_is_kept_under_one_key),
        cmocka_unit_test(where_no_key_is_good_none_is_recommended),
        cmocka_unit_test(a_value_that_is_full_is_a_fault),
        cmocka_unit_test(a_report_is_json),
        cmocka_unit_test(every_proposal_is_a_definition_and_needs_no_less_than_the_least),
        cmocka_unit_test(the_same_workload_gets_the_same_advice),
        cmocka_unit_test(one_key_for_all_is_nothing_where_another_does_the_same_and_can_grow),
        cmocka_unit_test(what_counts_up_or_grows_is_said),
        cmocka_unit_test(the_text_shows_the_figures_side_by_side),
        cmocka_unit_test(nothing_to_judge_by_is_said),
        cmocka_unit_test(one_is_not_told_as_several),
        cmocka_unit_test(one_operation_is_no_traffic),
        cmocka_unit_test(few_values_are_warned_of),
        cmocka_unit_test(a_key_matters_by_what_it_needs_and_not_by_what_would_be_ideal),
        cmocka_unit_test(a_report_ends_with_the_command_that_does_it),
        cmocka_unit_test(commands_name_synthetic_keys_as_rekey_takes_them),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
