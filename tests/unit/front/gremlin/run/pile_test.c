/* Barriers with so little memory that everything they keep goes to disk: the results are those of
 * runs that had enough, a disk that fails ends in an error or in none of it, and who cancels does
 * not wait for a sort. */
#include "front/gremlin/run/run.h"

#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/pack.h"
#include "front/gremlin/value/special.h"
#include "support/check.h"
#include "support/faulty_disk.h"
#include "support/gremlin_runs.h"

/* 2,000 traversers and more, most of them alike, of a graph of six vertices. */
#define MANY "g.V().both().both().both().both().both().both().both()"
#define PATHS "g.V().as('a').both().both().as('b').both().both().both().both().both()"

#define SACKS                                                                                      \
    "g.withSack(1).V().both().both().both().both().both().both().sack(sum).by(constant(2))"

/* The first keep little, however many traversers come, and need no disk. */
enum { SMALL = 7 };
static const char *const scripts[] = {
    PATHS ".group('m').by(label).by(values('name').dedup().count()).select('m').limit(1)"
          ".union(identity(),cap('m'))",
    MANY ".barrier().out().values('name').groupCount()",
    MANY ".repeat(__.order().by('name').limit(200).out()).times(2).values('name')",
    MANY ".group().by(label).by(values('age').sum())",
    PATHS ".properties().dedup().by(key).key()",
    PATHS ".groupCount().by(path().by('name'))",
    MANY ".tree().by('name').count(local)",
    MANY ".order().by('name').values('name')",
    MANY ".order().by('age',desc).by('name').elementMap()",
    MANY ".order().by(id).by(out().count(),desc).id()",
    MANY ".path().order().by(unfold().id().fold()).limit(300)",
    MANY ".values('name').order()",
    PATHS ".order().by(select('a').by('name')).by(select('b').by('name'),desc)"
          ".select('a','b').by('name').limit(500)",
    PATHS ".path().by('name').dedup()",
    PATHS ".as('c').dedup('a','b','c').by('name').select('a','b','c').by(id)",
    PATHS ".path().dedup().by(unfold().values('name').fold()).count()",
    PATHS ".group().by('name').by(path().by('name').dedup().count())",
    PATHS ".group('m').by('name').by(select('a').dedup().values('name').fold()).cap('m')",
    PATHS ".barrier().select('a').values('name').groupCount()",
    MANY ".aggregate('x').by('name').out('knows').where(within('x')).count()",
    PATHS ".aggregate('x').select('a').out('created').values('name').groupCount()",
    MANY ".properties('name').order().by(value).element().values('name').groupCount()",
    MANY ".outE().order().by('weight',desc).by(id).inV().dedup().values('name')",
    MANY ".valueMap().order().by(select('name').unfold(),desc).limit(200)",
    SACKS ".order().by('name').sack().sum()",
};

static struct gremlin_ran run_with(struct graph_bench *bench, const char *script,
                                   struct query_spill *spill)
{
    const struct gremlin_run_options options = {.seed = 7, .spill = spill, .spill_at = 1};

    return gremlin_runs(bench, "modern", script, &options);
}

static struct graph_bench *modern(void **state)
{
    struct graph_bench *bench = *state;

    graph_bench_container(bench, "modern", NULL, 1);
    gremlin_runs_all(bench, "modern", gremlin_runs_modern);
    return bench;
}

static void what_went_to_disk_comes_back_as_it_was(void **state)
{
    struct graph_bench *bench = modern(state);
    uint64_t written = 0;
    size_t idle = 0;

    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct faulty_disk disk;
        CLEANUP(query_spill_free) struct query_spill *spill = NULL;
        struct gremlin_ran whole, spilled;
        struct query_spill_metrics metrics;

        faulty_disk_init(&disk);
        disk.write_max = 777;
        spill = faulty_disk_spill(&disk, 1 << 28);
        whole = run_with(bench, scripts[i], NULL);
        assert_ok(whole.good, &whole.err);
        spilled = run_with(bench, scripts[i], spill);
        assert_ok(spilled.good, &spilled.err);
        if (strcmp(whole.text, spilled.text) != 0)
            fail_msg("%s\n  gives %.2000s\n  not   %.2000s", scripts[i], spilled.text, whole.text);
        query_spill_metrics(spill, &metrics);
        assert_int_equal(metrics.bytes, 0); /* nothing stays behind */
        if (!disk.written && i >= SMALL) {
            print_message("%s\n  has put nothing aside\n", scripts[i]);
            idle++;
        }
        written += disk.written;
    }
    assert_int_equal(idle, 0);
    assert_true(written > 1 << 20);
}

/* Nothing is lost where it cannot be written: it stays in memory. */
static void a_full_disk_changes_no_result(void **state)
{
    struct graph_bench *bench = modern(state);

    for (uint64_t full_at = 1; full_at < 1 << 20; full_at = full_at * 7 + 100) {
        struct faulty_disk disk;
        CLEANUP(query_spill_free) struct query_spill *spill = NULL;
        struct gremlin_ran whole = run_with(bench, scripts[SMALL], NULL), spilled;

        faulty_disk_init(&disk);
        spill = faulty_disk_spill(&disk, 1 << 28);
        disk.full_at = full_at;
        spilled = run_with(bench, scripts[SMALL], spill);
        if (spilled.good)
            assert_string_equal(whole.text, spilled.text);
        else
            assert_int_equal(spilled.err.code, ERROR_SPILL); /* runs could not be united */
    }
}

static void a_disk_that_cannot_be_read_ends_the_run(void **state)
{
    struct graph_bench *bench = modern(state);

    for (size_t i = SMALL; i < ARRAY_LEN(scripts); i += 3) {
        size_t reads = 0;

        for (size_t at = 1; at <= 16; at *= 4) {
            struct faulty_disk disk;
            CLEANUP(query_spill_free) struct query_spill *spill = NULL;
            struct query_spill_metrics metrics;
            struct gremlin_ran ran;

            faulty_disk_init(&disk);
            spill = faulty_disk_spill(&disk, 1 << 28);
            disk.reads_until = at * at;
            ran = run_with(bench, scripts[i], spill);
            reads = disk.reads;
            if (!ran.good)
                assert_int_equal(ran.err.code, ERROR_SPILL);
            assert_true(ran.good == (reads < at * at));
            query_spill_metrics(spill, &metrics);
            assert_int_equal(metrics.bytes, 0);
        }
    }
}

static void without_room_the_heap_ends_it(void **state)
{
    struct graph_bench *bench = modern(state);
    struct faulty_disk disk;
    CLEANUP(query_spill_free) struct query_spill *spill = NULL;
    struct gremlin_ran ran;

    faulty_disk_init(&disk);
    disk.cannot_open = true;
    spill = faulty_disk_spill(&disk, 1 << 28);
    ran = run_with(bench, scripts[SMALL], spill);
    assert_ok(ran.good, &ran.err); /* this heap has no limit */
}

static void who_cancels_or_runs_out_of_work_does_not_wait(void **state)
{
    struct graph_bench *bench = modern(state);
    struct faulty_disk disk;
    CLEANUP(query_spill_free) struct query_spill *spill = NULL;

    faulty_disk_init(&disk);
    spill = faulty_disk_spill(&disk, 1 << 28);
    for (size_t i = 0; i < ARRAY_LEN(scripts); i += 2) {
        uint64_t all;
        struct gremlin_ran ran = run_with(bench, scripts[i], spill);

        assert_ok(ran.good, &ran.err);
        all = ran.outcome.work;
        for (uint64_t part = 1; part < 8; part += 2) {
            const struct gremlin_run_options options = {
                .seed = 7, .spill = spill, .spill_at = 1, .limits = {.work_max = all * part / 8}};
            struct query_spill_metrics metrics;

            ran = gremlin_runs(bench, "modern", scripts[i], &options);
            assert_false(ran.good);
            assert_int_equal(ran.err.code, ERROR_QUERY_LIMIT);
            query_spill_metrics(spill, &metrics);
            assert_int_equal(metrics.bytes, 0);
        }
    }
}

/* --- Packing ---------------------------------------------------------------------------------- */

static struct gremlin_value through(struct gremlin_packing *packing, struct gremlin_value value)
{
    struct error err = {0};
    struct gremlin_value back;
    struct slice bytes;
    struct buf buf;

    buf_init(&buf, 1 << 20);
    gremlin_pack(packing, value, &buf);
    bytes = buf_slice(&buf);
    assert_ok(gremlin_unpack(packing, &bytes, &back, &err), &err);
    assert_int_equal(bytes.len, 0);
    /* cut anywhere, it is refused */
    for (size_t len = 0; len < buf.len; len++) {
        struct gremlin_value broken;

        bytes = slice_of(buf.data, len);
        assert_false(gremlin_unpack(packing, &bytes, &broken, &err));
        assert_int_equal(err.code, ERROR_SPILL);
    }
    buf_done(&buf);
    return back;
}

static void every_type_packs_and_what_has_no_form_stays(void **state)
{
    struct graph_bench *bench = *state;
    struct gremlin_heap *heap = bench->heap;
    struct gremlin_packing packing;
    struct error err = {0};
    struct gremlin_value deep = gremlin_list_new(heap, 0), predicate, one = gremlin_int(1);
    const struct gremlin_value plain[] = {
        GREMLIN_NOTHING,
        gremlin_boolean(true),
        gremlin_int(-1),
        gremlin_double(0.1),
        gremlin_integer(GREMLIN_CHAR, 'x'),
        gremlin_word(GREMLIN_T_LABEL),
        gremlin_string(heap, SLICE("text")),
        gremlin_bytes_new(heap, GREMLIN_BIG_INTEGER, SLICE("123456789012345678901234567890")),
        gremlin_bytes_new(heap, GREMLIN_UUID, SLICE("0123456789abcdef")),
        gremlin_date_time_new(heap, -5, 7, 3600),
        gremlin_duration_new(heap, -5, 7),
        gremlin_temporal_new(heap, SLICE("Year"), SLICE("2020")),
    };
    struct gremlin_value list = gremlin_list_new(heap, 0), map = gremlin_map_new(heap);

    gremlin_packing_init(&packing, heap, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        gremlin_list_add(list, plain[i]);
        gremlin_map_put(map, plain[i], plain[ARRAY_LEN(plain) - 1 - i]);
    }
    assert_true(gremlin_equivalent(list, through(&packing, list)));
    assert_true(gremlin_equivalent(map, through(&packing, map)));
    assert_true(gremlin_is_null(packing.kept));
    assert_ok(gremlin_predicate_new(heap, SLICE("gt"), &one, 1, &predicate, &err), &err);
    assert_ptr_equal(through(&packing, predicate).object, predicate.object);
    for (int i = 0; i < 100; i++) {
        struct gremlin_value outer = gremlin_list_new(heap, 1);

        gremlin_list_add_take(outer, deep);
        deep = outer;
    }
    assert_true(gremlin_equivalent(deep, through(&packing, deep)));
    gremlin_packing_done(&packing);
}

int main(void)
{
#define ON_A_BENCH(test)                                                                           \
    cmocka_unit_test_setup_teardown(test, graph_bench_setup, graph_bench_teardown)
    const struct CMUnitTest tests[] = {
        ON_A_BENCH(what_went_to_disk_comes_back_as_it_was),
        ON_A_BENCH(a_full_disk_changes_no_result),
        ON_A_BENCH(a_disk_that_cannot_be_read_ends_the_run),
        ON_A_BENCH(without_room_the_heap_ends_it),
        ON_A_BENCH(who_cancels_or_runs_out_of_work_does_not_wait),
        ON_A_BENCH(every_type_packs_and_what_has_no_form_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
