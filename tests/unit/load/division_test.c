#include "load/division.h"

#include "base/random.h"
#include "support/check.h"

static void assert_near(double got, double wanted)
{
    if (!(got > wanted - 1e-6 && got < wanted + 1e-6))
        fail_msg("%g is not %g", got, wanted);
}

static void an_idle_span_is_divided_evenly(void **state UNUSED)
{
    struct load_use pieces[2] = {{0}};
    double shares[2];

    assert_near(
        load_divide(
            &(struct load_division){
                .ru = 1000, .ru_max = 10000, .share = 1, .pieces = pieces, .piece_count = 2},
            shares),
        1);
    assert_near(shares[0], 0.5);
    assert_near(shares[1], 0.5);
}

static void a_span_that_spends_all_it_has_is_divided_by_what_its_pieces_spend(void **state UNUSED)
{
    struct load_use pieces[2] = {{900, 900}, {100, 100}};
    double shares[2];

    assert_near(
        load_divide(
            &(struct load_division){
                .ru = 1000, .ru_max = 10000, .share = 1, .pieces = pieces, .piece_count = 2},
            shares),
        1);
    assert_near(shares[0], 0.9);
    assert_near(shares[1], 0.1);
}

static void what_is_left_over_is_divided_evenly(void **state UNUSED)
{
    struct load_use pieces[2] = {{400, 400}, {0, 0}};
    double shares[2];

    (void)load_divide(
        &(struct load_division){
            .ru = 1000, .ru_max = 10000, .share = 1, .pieces = pieces, .piece_count = 2},
        shares);
    assert_near(shares[0], 0.75); /* 500 for what it spends, half of the other 500 */
    assert_near(shares[1], 0.25);
}

/* 40,000 RU/s on four partitions; one has a key that wants three times what a partition may give.
 */
static void
a_hot_key_gets_what_a_partition_may_give_from_those_who_can_spare_it(void **state UNUSED)
{
    struct load_use pieces[3] = {{300, 900}, {9400, 30000}, {300, 900}};
    struct load_other others[3] = {
        {0.25, {2000, 2000}}, {0.25, {2000, 2000}}, {0.25, {2000, 2000}}};
    double shares[3];
    double sum = load_divide(&(struct load_division){.ru = 40000,
                                                     .ru_max = 10000,
                                                     .share = 0.25,
                                                     .pieces = pieces,
                                                     .piece_count = 3,
                                                     .others = others,
                                                     .other_count = 3},
                             shares);

    assert_near(shares[1] * 40000, 10000);
    assert_near(shares[0] * 40000, 990); /* what it wants, with room */
    assert_near(shares[2] * 40000, 990);
    assert_near(sum, shares[0] + shares[1] + shares[2]);
    assert_true((1 - sum) / 0.75 * 0.25 * 40000 >= 2500); /* the others have room still */
}

/* Keys were isolated one after the other while another was hot, so little is left of the span. */
static void pieces_without_load_get_a_tenth_of_an_even_share(void **state UNUSED)
{
    struct load_use pieces[2] = {{0, 0}, {0, 0}};
    struct load_other others[1] = {{0.9999, {40, 40}}};
    double shares[2];

    assert_near(load_divide(&(struct load_division){.ru = 400,
                                                    .ru_max = 10000,
                                                    .share = 0.0001,
                                                    .pieces = pieces,
                                                    .piece_count = 2,
                                                    .others = others,
                                                    .other_count = 1},
                            shares),
                0.2 / 3);
    assert_near(shares[0], 0.1 / 3);
}

/* A container whose keys are isolated one after the other, each while it is the hot one, and while
 * everybody else wants all that he has. */
static void who_is_cut_again_and_again_keeps_a_tenth_of_an_even_share(void **state UNUSED)
{
    struct load_other others[64];
    double share = 1;
    size_t count = 0;

    for (unsigned cut = 0; cut < 20; cut++) {
        struct load_use pieces[3] = {{0, 0}, {share * 400, share * 4000}, {0, 0}};
        double shares[3], least = 0.1 / (double)(count + 3), before = 1 - share;
        double sum = load_divide(&(struct load_division){.ru = 400,
                                                         .ru_max = 10000,
                                                         .share = share,
                                                         .pieces = pieces,
                                                         .piece_count = 3,
                                                         .others = others,
                                                         .other_count = count},
                                 shares);

        for (size_t i = 0; i < count; i++) {
            others[i].share *= (1 - sum) / before;
            assert_true(others[i].share >= least * 0.9);
        }
        for (size_t i = 0; i < 3; i++)
            assert_true(shares[i] >= least * 0.999);
        /* the next key is in the last piece, which is quiet until then */
        for (size_t i = 0; i < 2; i++)
            others[count++] = (struct load_other){shares[i], {shares[i] * 400, shares[i] * 4000}};
        share = shares[2];
    }
}

static void nothing_is_taken_from_those_who_need_it(void **state UNUSED)
{
    struct load_use pieces[2] = {{400, 4000}, {100, 1000}};
    struct load_other others[1] = {{0.5, {480, 480}}};
    double shares[2];

    assert_near(load_divide(&(struct load_division){.ru = 1000,
                                                    .ru_max = 10000,
                                                    .share = 0.5,
                                                    .pieces = pieces,
                                                    .piece_count = 2,
                                                    .others = others,
                                                    .other_count = 1},
                            shares),
                0.5);
    assert_near(shares[0], 0.4);
}

/* Whatever the figures: shares are parts of a whole, and no piece is slower than it was. */
static void nobody_is_slower_afterwards(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 42);
    for (int round = 0; round < 5000; round++) {
        struct load_use pieces[4];
        struct load_other others[3];
        double shares[4], sum, rate, spent = 0,
                                     share = 0.1 + (double)random_below(&random, 80) / 100;

        rate = MIN(1000 * share, 600.0);
        for (int i = 0; i < 4; i++) {
            pieces[i].used = (double)random_below(&random, 1000);
            spent += pieces[i].used;
        }
        for (int i = 0; i < 4; i++) { /* together at most what the span was given */
            pieces[i].used *=
                spent > 0 ? rate / spent * (double)random_below(&random, 100) / 100 : 0;
            pieces[i].wanted = pieces[i].used * (1 + (double)random_below(&random, 30) / 10);
        }
        for (int i = 0; i < 3; i++) {
            others[i].share = (1 - share) / 3;
            others[i].use.used = (double)random_below(&random, 100) / 100 * others[i].share * 1000;
            others[i].use.wanted = others[i].use.used;
        }
        sum = load_divide(&(struct load_division){.ru = 1000,
                                                  .ru_max = 600,
                                                  .share = share,
                                                  .pieces = pieces,
                                                  .piece_count = 4,
                                                  .others = others,
                                                  .other_count = 3},
                          shares);
        assert_true(sum >= share - 1e-9 && sum < 1);
        for (int i = 0; i < 4; i++)
            assert_true(shares[i] * 1000 >= pieces[i].used * 0.95);
        for (int i = 0; i < 3; i++)
            assert_true((1 - sum) / 3 * 1000 >= others[i].use.used - 1e-6);
    }
}

/* Likewise where shares follow without a cut. */
static void nobody_is_slower_when_shares_follow(void **state UNUSED)
{
    struct random random;
    int changed = 0;

    random_seed(&random, 43);
    for (int round = 0; round < 5000; round++) {
        struct load_follower spans[5];
        double shares[5], sum = 0, before = 0;
        size_t count = 2 + random_below(&random, 4);

        for (size_t i = 0; i < count; i++) {
            spans[i].share = 0.02 + (double)random_below(&random, 100) / 100;
            before += spans[i].share;
        }
        for (size_t i = 0; i < count; i++) {
            spans[i].share /= before;
            spans[i].starved = random_below(&random, 3) == 0;
            spans[i].use.used = spans[i].share * 1000 *
                                (spans[i].starved ? 1 : (double)random_below(&random, 100) / 100);
            spans[i].use.wanted = spans[i].use.used * (spans[i].starved ? 1.5 : 1);
        }
        if (!load_follow(spans, count, 1000, 600, shares))
            continue;
        changed++;
        for (size_t i = 0; i < count; i++) {
            sum += shares[i];
            assert_true(shares[i] > 0);
            if (spans[i].starved)
                assert_true(shares[i] >= spans[i].share - 1e-9 && shares[i] <= 1);
            else
                assert_true(shares[i] >= spans[i].share - 1e-9 ||
                            shares[i] * 1000 >= spans[i].use.wanted * 1.25 - 1e-6);
            assert_true(shares[i] >= spans[i].share / 2 - 1e-9);
            assert_true(shares[i] * 1000 <= MAX(600.0, spans[i].share * 1000) + 1e-6);
        }
        assert_near(sum, 1);
    }
    assert_true(changed > 1000);
}

static void a_change_that_is_too_small_is_not_made(void **state UNUSED)
{
    struct load_follower spans[] = {{.share = 0.5, .use = {500, 1000}, .starved = true},
                                    {.share = 0.5, .use = {385, 385}}};
    double shares[2];

    assert_false(load_follow(spans, 2, 1000, 10000, shares)); /* 0.019 could be spared */
    spans[1].use.wanted = 300;
    assert_true(load_follow(spans, 2, 1000, 10000, shares));
    assert_near(shares[0], 0.625);
    spans[0].starved = false;
    assert_false(load_follow(spans, 2, 1000, 10000, shares)); /* nobody needs it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_span_is_divided_evenly),
        cmocka_unit_test(a_span_that_spends_all_it_has_is_divided_by_what_its_pieces_spend),
        cmocka_unit_test(what_is_left_over_is_divided_evenly),
        cmocka_unit_test(a_hot_key_gets_what_a_partition_may_give_from_those_who_can_spare_it),
        cmocka_unit_test(pieces_without_load_get_a_tenth_of_an_even_share),
        cmocka_unit_test(who_is_cut_again_and_again_keeps_a_tenth_of_an_even_share),
        cmocka_unit_test(nothing_is_taken_from_those_who_need_it),
        cmocka_unit_test(nobody_is_slower_afterwards),
        cmocka_unit_test(nobody_is_slower_when_shares_follow),
        cmocka_unit_test(a_change_that_is_too_small_is_not_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
