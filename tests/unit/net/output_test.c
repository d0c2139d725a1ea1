#include "net/output.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/check.h"

static void count_release(void *context)
{
    ++*(int *)context;
}

/* All that is queued, taken in steps of at most step bytes. */
static void output_take(struct net_output *output, size_t step, struct buf *ret_bytes)
{
    while (output->len) {
        struct iovec pieces[3];
        size_t count = net_output_pieces(output, pieces, ARRAY_LEN(pieces)), taken = 0;

        assert_true(count > 0);
        for (size_t i = 0; i < count && taken < step; i++) {
            size_t part = MIN(step - taken, pieces[i].iov_len);

            buf_append(ret_bytes, pieces[i].iov_base, part);
            taken += part;
        }
        net_output_consume(output, taken);
    }
}

static void bytes_come_out_in_the_order_they_went_in(void **state UNUSED)
{
    static const size_t steps[] = {1, 7, 1000, 16384, 1000000};
    struct net_chunk_pool pool = {0};

    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        CLEANUP(buf_done) struct buf expected, got;
        struct net_output output;
        struct random random;
        int released = 0, handed = 0;

        buf_init(&expected, BUF_DEFAULT_MAX);
        buf_init(&got, BUF_DEFAULT_MAX);
        net_output_init(&output, &pool);
        random_seed(&random, s);
        for (int i = 0; i < 40; i++) {
            size_t len = random_below(&random, i % 5 ? 3000 : 40000);
            uint8_t *bytes = memory_alloc(len);

            memset(bytes, i, len);
            buf_append(&expected, bytes, len);
            if (i % 2) {
                net_output_append(&output, slice_of(bytes, len));
                memory_free(bytes);
            } else if (i % 4) {
                net_output_append_owned(&output, slice_of(bytes, len), (struct net_release){0});
            } else {
                static uint8_t constant[40000];

                memset(constant, i, len);
                memory_free(bytes);
                bytes = NULL;
                handed++;
                net_output_append_owned(
                    &output, slice_of(constant, 0),
                    (struct net_release){.fn = count_release, .context = &released});
                net_output_append(&output, slice_of(constant, len));
            }
        }
        assert_int_equal(output.len, expected.len);
        output_take(&output, steps[s], &got);
        assert_true(slice_equal(buf_slice(&got), buf_slice(&expected)));
        assert_int_equal(released, handed);
        net_output_done(&output);
    }
    net_chunk_pool_done(&pool);
}

static void large_pieces_travel_without_a_copy_and_come_back_once(void **state UNUSED)
{
    static const uint8_t large[100000];
    struct net_chunk_pool pool = {0};
    struct net_output output;
    struct iovec piece;
    int released = 0;

    net_output_init(&output, &pool);
    net_output_append_owned(&output, slice_of(large, sizeof large),
                            (struct net_release){.fn = count_release, .context = &released});
    assert_int_equal(net_output_pieces(&output, &piece, 1), 1);
    assert_ptr_equal(piece.iov_base, large);
    net_output_consume(&output, sizeof large - 1);
    assert_int_equal(released, 0);
    net_output_consume(&output, 1);
    assert_int_equal(released, 1);
    net_output_append_owned(&output, slice_of(large, sizeof large),
                            (struct net_release){.fn = count_release, .context = &released});
    net_output_done(&output); /* what was never sent comes back as well */
    assert_int_equal(released, 2);
    net_chunk_pool_done(&pool);
}

static void small_pieces_share_a_chunk(void **state UNUSED)
{
    struct net_chunk_pool pool = {0};
    struct net_output output;
    struct iovec pieces[4];

    net_output_init(&output, &pool);
    for (int i = 0; i < 100; i++)
        net_output_append(&output, SLICE("HTTP/1.1 200 OK\r\n"));
    assert_int_equal(net_output_pieces(&output, pieces, 4), 1);
    net_output_consume(&output, output.len);
    assert_int_equal(pool.count, 1); /* kept for the next writer */
    net_output_done(&output);
    net_chunk_pool_done(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_in_the_order_they_went_in),
        cmocka_unit_test(large_pieces_travel_without_a_copy_and_come_back_once),
        cmocka_unit_test(small_pieces_share_a_chunk),
    };
    return cmocka_run_group_tests_name("net/output", tests, NULL, NULL);
}
