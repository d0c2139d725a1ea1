#include "peer/hello.h"

#include "support/check.h"

static struct peer_hello example(void)
{
    struct peer_hello hello = {
        .front = PEER_MONGO, .tls = true, .hops = 1, .subject = SLICE("CN=app,O=Example")};
    struct error err;

    assert_ok(net_address_parse(SLICE("10.1.2.3:4567"), &hello.client, &err), &err);
    return hello;
}

static void a_hello_is_read_as_it_was_written_from_any_pieces(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bytes;
    struct peer_hello hello = example(), got;
    char address[NET_ADDRESS_TEXT_SIZE];
    enum peer_verdict verdict;
    struct error err;
    size_t taken;

    buf_init(&bytes, PEER_HELLO_BYTES_MAX + 8);
    peer_hello_append(&bytes, &hello);
    for (size_t len = 0; len < bytes.len; len++) {
        assert_ok(peer_hello_read(slice_of(bytes.data, len), &got, &taken, &verdict, &err), &err);
        assert_int_equal(taken, 0);
    }
    BUF_APPEND(&bytes, "GET /");
    assert_ok(peer_hello_read(buf_slice(&bytes), &got, &taken, &verdict, &err), &err);
    assert_int_equal(taken, bytes.len - 5);
    assert_int_equal(got.front, PEER_MONGO);
    assert_true(got.tls);
    assert_false(got.requests);
    assert_int_equal(got.hops, 1);
    net_address_text(&got.client, address);
    assert_string_equal(address, "10.1.2.3:4567");
    assert_true(slice_equal(got.subject, hello.subject));
}

static void what_is_no_hello_is_refused_at_its_first_wrong_byte(void **state UNUSED)
{
    struct peer_hello got;
    enum peer_verdict verdict;
    struct error err;
    size_t taken;

    assert_fails(peer_hello_read(SLICE("GET"), &got, &taken, &verdict, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(peer_hello_read(SLICE("ORRP\x01"), &got, &taken, &verdict, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_int_equal(verdict, PEER_OTHER_VERSION);
    assert_fails(peer_hello_read(SLICE("ORRP\x02\x09"), &got, &taken, &verdict, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_int_equal(verdict, PEER_FRONT_OFF);
    assert_fails(peer_hello_read(SLICE("ORRP\x02\x01\x01\x03"), &got, &taken, &verdict, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_int_equal(verdict, PEER_TOO_MANY_HOPS);
}

static void a_hello_with_lengths_of_more_than_there_may_be_is_refused(void **state UNUSED)
{
    static const uint8_t long_subject[] = {'O', 'R', 'R', 'P', 2, 0, 0, 1, 0, 0, 0xFF, 0xFF};
    static const uint8_t long_address[] = {'O', 'R', 'R', 'P', 2, 0, 0, 1, 0xFF, 0xFF, 0, 0};
    static const uint8_t no_address[] = {'O', 'R', 'R', 'P', 2, 0, 0, 1, 0, 3, 0, 0, 'x', 'y', 'z'};
    struct peer_hello got;
    enum peer_verdict verdict;
    struct error err;
    size_t taken;

    assert_false(
        peer_hello_read(slice_of(long_subject, sizeof long_subject), &got, &taken, &verdict, &err));
    assert_false(
        peer_hello_read(slice_of(long_address, sizeof long_address), &got, &taken, &verdict, &err));
    assert_false(
        peer_hello_read(slice_of(no_address, sizeof no_address), &got, &taken, &verdict, &err));
}

static void a_hello_says_that_requests_follow(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf bytes;
    struct peer_hello hello = {.front = PEER_TABLE, .requests = true, .hops = 1}, got;
    enum peer_verdict verdict;
    struct error err;
    size_t taken;

    buf_init(&bytes, PEER_HELLO_BYTES_MAX);
    peer_hello_append(&bytes, &hello);
    assert_ok(peer_hello_read(buf_slice(&bytes), &got, &taken, &verdict, &err), &err);
    assert_int_equal(taken, bytes.len);
    assert_true(got.requests);
    assert_false(got.tls);
    assert_int_equal(got.front, PEER_TABLE);
}

static void an_answer_is_read_as_it_was_written(void **state UNUSED)
{
    uint8_t bytes[PEER_ANSWER_BYTES];
    enum peer_verdict verdict;

    peer_answer_write(PEER_NOT_OWNER, bytes);
    assert_true(peer_answer_read(bytes, &verdict));
    assert_int_equal(verdict, PEER_NOT_OWNER);
    bytes[5] = 200;
    assert_false(peer_answer_read(bytes, &verdict));
    bytes[0] = 'x';
    assert_false(peer_answer_read(bytes, &verdict));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_is_read_as_it_was_written_from_any_pieces),
        cmocka_unit_test(what_is_no_hello_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(a_hello_with_lengths_of_more_than_there_may_be_is_refused),
        cmocka_unit_test(a_hello_says_that_requests_follow),
        cmocka_unit_test(an_answer_is_read_as_it_was_written),
    };

    return cmocka_run_group_tests_name("peer/hello", tests, NULL, NULL);
}
