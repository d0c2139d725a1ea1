/* Every request of the tables is read whole, byte by byte and in random cuts, and must give the
 * same result each time: a summary of all that was understood, or the status it is refused with. */
#include "net/http_read.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/check.h"

enum { HEADERS_MAX = 8, BODY_MAX = 64, LINE_MAX = 64, HEAD_MAX = 256 };

static const struct net_http_settings settings = {
    .request_line_max = LINE_MAX,
    .head_max = HEAD_MAX,
    .header_count_max = HEADERS_MAX,
    .body_max = BODY_MAX,
};

struct reading {
    struct net_http_request request;
    struct net_http_reader reader;
    struct net_http_header headers[HEADERS_MAX];
    size_t taken; /* in all */
};

static void reading_begin(struct reading *reading)
{
    *reading = (struct reading){.request.arena = arena_new()};
    net_http_reader_begin(&reading->reader, &settings, &reading->request, reading->headers);
}

static void reading_done(struct reading *reading)
{
    net_http_reader_done(&reading->reader);
    arena_free(reading->request.arena);
}
CLEANUP_VALUE_FN(struct reading, reading_done)

/* Feeds the text in pieces as a connection would, in memory that moves with every piece, so that a
 * slice left pointing into the old place is caught. */
static enum net_http_progress read_cut(struct reading *reading, struct slice text,
                                       size_t (*cut)(void *context, size_t left), void *context,
                                       uint8_t **ret_memory)
{
    enum net_http_progress progress = NET_HTTP_MORE;
    size_t given = 0;

    *ret_memory = NULL;
    while (progress == NET_HTTP_MORE && given < text.len) {
        size_t taken, len;
        uint8_t *memory;

        given += cut(context, text.len - given);
        len = given - reading->taken;
        memory = memory_alloc(len);
        memcpy(memory, text.data + reading->taken, len);
        memory_free(*ret_memory);
        *ret_memory = memory;
        progress = net_http_read(&reading->reader, slice_of(memory, len), &taken);
        reading->taken += taken;
    }
    return progress;
}

static size_t cut_nothing(void *context UNUSED, size_t left)
{
    return left;
}

static size_t cut_bytes(void *context UNUSED, size_t left UNUSED)
{
    return 1;
}

static size_t cut_randomly(void *context, size_t left)
{
    return 1 + random_below(context, MIN(left, (size_t)40));
}

/* What was understood, as text; after a + what was left over. */
static void summary(const struct reading *reading, enum net_http_progress progress,
                    struct slice text, struct buf *ret_text)
{
    const struct net_http_request *request = &reading->request;

    buf_clear(ret_text);
    if (progress == NET_HTTP_MORE) {
        BUF_APPEND(ret_text, "more");
        return;
    }
    if (progress == NET_HTTP_BAD) {
        buf_printf(ret_text, "%u", reading->reader.status);
        return;
    }
    buf_printf(ret_text, "%.*s %.*s", SLICE_ARG(request->method), SLICE_ARG(request->path));
    if (request->query.data)
        buf_printf(ret_text, " ?%.*s", SLICE_ARG(request->query));
    for (size_t i = 0; i < request->header_count; i++)
        buf_printf(ret_text, "|%.*s=%.*s", SLICE_ARG(request->headers[i].name),
                   SLICE_ARG(request->headers[i].value));
    buf_printf(ret_text, "|%s|", net_http_reader_keeps_alive(&reading->reader) ? "keep" : "close");
    buf_append_slice(ret_text, request->body);
    if (reading->taken < text.len)
        buf_printf(ret_text, "+%.*s", SLICE_ARG(slice_skip(text, reading->taken)));
}

static void read_and_summarise(struct slice text, size_t (*cut)(void *context, size_t left),
                               void *context, struct buf *ret_text)
{
    CLEANUP(reading_done) struct reading reading;
    CLEANUP(memory_free) uint8_t *memory = NULL;

    reading_begin(&reading);
    summary(&reading, read_cut(&reading, text, cut, context, &memory), text, ret_text);
}

/* The claim of all the tables. NULL stands for "as when read whole". */
static void assert_reads(struct slice text, const char *expected)
{
    CLEANUP(buf_done) struct buf whole, pieces;
    struct random random;

    buf_init(&whole, 4096);
    buf_init(&pieces, 4096);
    read_and_summarise(text, cut_nothing, NULL, &whole);
    if (expected && !slice_equal(buf_slice(&whole), slice_of_text(expected)))
        fail_msg("\"%.*s\" reads as \"%.*s\", not \"%s\"", SLICE_ARG(text),
                 SLICE_ARG(buf_slice(&whole)), expected);
    read_and_summarise(text, cut_bytes, NULL, &pieces);
    assert_slice_equal(buf_slice(&pieces), buf_slice(&whole));
    for (uint64_t seed = 0; seed < 20; seed++) {
        random_seed(&random, seed);
        read_and_summarise(text, cut_randomly, &random, &pieces);
        assert_slice_equal(buf_slice(&pieces), buf_slice(&whole));
    }
}

#define READS(text, expected) assert_reads(SLICE(text), expected)
#define HOST "Host: a\r\n"

static void well_formed_requests_are_understood(void **state UNUSED)
{
    READS("GET / HTTP/1.1\r\n" HOST "\r\n", "GET /|Host=a|keep|");
    READS("GET /a/b?x=1&y HTTP/1.1\r\n" HOST "\r\n", "GET /a/b ?x=1&y|Host=a|keep|");
    READS("GET /? HTTP/1.1\r\n" HOST "\r\n", "GET / ?|Host=a|keep|");
    READS("GET / HTTP/1.1\r\nhOST:\t a \t\r\nEmpty:\r\n\r\n", "GET /|hOST=a|Empty=|keep|");
    READS("MERGE /t(P='a',R='b') HTTP/1.1\r\n" HOST "\r\n", "MERGE /t(P='a',R='b')|Host=a|keep|");
    READS("PATCH / HTTP/1.1\r\n" HOST "X-A: \xc3\xa9\tb\r\n\r\n",
          "PATCH /|Host=a|X-A=\xc3\xa9\tb|keep|");
    READS("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS *|Host=a|keep|");
    READS("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET /|Host=a|keep|");
}

static void a_target_with_scheme_and_host_is_its_path(void **state UNUSED)
{
    READS("GET http://x:8081/a?b HTTP/1.1\r\n" HOST "\r\n", "GET /a ?b|Host=a|keep|");
    READS("GET HTTPS://x HTTP/1.1\r\n" HOST "\r\n", "GET /|Host=a|keep|");
    READS("GET http://x?q HTTP/1.1\r\n" HOST "\r\n", "GET / ?q|Host=a|keep|");
}

static void bodies_end_where_their_framing_says(void **state UNUSED)
{
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET",
          "POST /|Host=a|Content-Length=5|keep|hello+GET");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
          "POST /|Host=a|Content-Length=0|keep|");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhell", "more");
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
          "5\r\nhello\r\n0A;ext=\"x\"\r\n, world!!!\r\n0\r\n\r\nGET",
          "POST /|Host=a|Transfer-Encoding=Chunked|keep|hello, world!!!+GET");
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC:\r\n\r\n",
          "POST /|Host=a|Transfer-Encoding=chunked|keep|");
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
          "more");
}

static void the_connection_header_and_version_decide_what_follows(void **state UNUSED)
{
    READS("GET / HTTP/1.0\r\n\r\n", "GET /|close|");
    READS("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET /|Connection=Keep-Alive|keep|");
    READS("GET / HTTP/1.1\r\n" HOST "Connection: upgrade , CLOSE\r\n\r\n",
          "GET /|Host=a|Connection=upgrade , CLOSE|close|");
}

static void what_can_be_read_in_two_ways_is_refused(void **state UNUSED)
{
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
          "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", "400");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\nhello", "400");
    READS("POST / HTTP/1.1\r\n" HOST
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
          "400");
    READS("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A: b\nC: d\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A: b\rC: d\r\n\r\n", "400");
    READS("GET / HTTP/1.1\n" HOST "\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A: eight by\x7f\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\n" HOST "nothing\r\n\r\n", "400");
}

static void host_is_wanted_once_and_plain(void **state UNUSED)
{
    READS("GET / HTTP/1.1\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400");
    READS("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET /|Host=[::1]:80|keep|");
}

static void request_lines_are_taken_literally(void **state UNUSED)
{
    READS(" GET / HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET  / HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET / HTTP/1.1 \r\n" HOST "\r\n", "400");
    READS("GET /\r\n" HOST "\r\n", "400");
    READS("GET\r\n\r\n", "400");
    READS("G(T / HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET a HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET * HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET /#f HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET /\0 HTTP/1.1\r\n" HOST "\r\n", "400");
    READS("GET / http/1.1\r\n" HOST "\r\n", "400");
    READS("GET / HTTP/1.12\r\n" HOST "\r\n", "400");
    READS("GET / HTTP/2.0\r\n" HOST "\r\n", "505");
    READS("GET / HTTP/1.2\r\n" HOST "\r\n", "505");
    READS("\x16\x03\x01\x02\n", "400");
}

static void what_is_not_offered_is_refused_by_name(void **state UNUSED)
{
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", "501");
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "501");
    READS("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "501");
    READS("POST / HTTP/1.1\r\n" HOST "Expect: tea\r\n\r\n", "417");
}

static void malformed_chunks_are_refused(void **state UNUSED)
{
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
    READS(CHUNKED "\r\n", "400");
    READS(CHUNKED "g\r\n", "400");
    READS(CHUNKED "-1\r\n", "400");
    READS(CHUNKED "5 \r\nhello\r\n", "400");
    READS(CHUNKED "5\nhello\r\n", "400");
    READS(CHUNKED "5\r\rhello\r\n", "400");
    READS(CHUNKED "5\r\nhelloo\r\n", "400");
    READS(CHUNKED "5\r\nhello\n", "400");
    READS(CHUNKED "5;a\nb\r\nhello\r\n", "400");
    READS(CHUNKED "0\r\n A: b\r\n\r\n", "400");
    READS(CHUNKED "0\r\nA : b\r\n\r\n", "400");
    READS(CHUNKED "0\r\nA: b\n\r\n", "400");
    READS(CHUNKED "0\r\n\rx", "400");
    READS(CHUNKED "ffffffffffffffff1\r\n", "413");
}

/* before, then count times byte, then after. */
static void assert_reads_long(const char *before, char byte, size_t count, const char *after,
                              const char *expected)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, 4096);
    buf_append_text(&text, before);
    for (size_t i = 0; i < count; i++)
        buf_append_byte(&text, (uint8_t)byte);
    buf_append_text(&text, after);
    assert_reads(buf_slice(&text), expected);
}

static void limits_hold_to_the_byte(void **state UNUSED)
{
    /* "GET " and " HTTP/1.1" are 13 bytes of the line. */
    assert_reads_long("GET ", '/', LINE_MAX - 13, " HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                      NULL);
    assert_reads_long("GET ", '/', LINE_MAX - 12, " HTTP/1.1\r\n" HOST "\r\n", "414");
    assert_reads_long("", 'G', LINE_MAX + 10, "", "414");
    /* Request line, Host, "A: ", CRLF and the empty line are 32 bytes. */
    assert_reads_long("GET / HTTP/1.1\r\n" HOST "A: ", 'x', HEAD_MAX - 31, "\r\n\r\n", "431");
    assert_reads_long("GET / HTTP/1.1\r\n" HOST "A: ", 'x', HEAD_MAX + 10, "", "431");
    READS("GET / HTTP/1.1\r\n" HOST "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n\r\n", NULL);
    READS("GET / HTTP/1.1\r\n" HOST "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n\r\n", "431");
    READS("POST / HTTP/1.1\r\n" HOST "Content-Length: 65\r\n\r\n", "413");
    assert_reads_long("POST / HTTP/1.1\r\n" HOST "Content-Length: 64\r\n\r\n", 'x', 64, "", NULL);
    READS(CHUNKED "41\r\n", "413");
    READS(CHUNKED "3f\r\n000000000000000000000000000000000000000000000000000000000000000\r\n2\r\n",
          "413");
    assert_reads_long(CHUNKED "1;", 'x', 1100, "\r\n", "400");
    assert_reads_long(CHUNKED "0\r\nA: ", 'x', HEAD_MAX, "\r\n\r\n", "431");
}

/* The longest line and head that are allowed. */
static void what_reaches_a_limit_exactly_is_still_read(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text, summary_text;

    buf_init(&text, 4096);
    buf_init(&summary_text, 4096);
    BUF_APPEND(&text, "GET / HTTP/1.1\r\n" HOST "A: ");
    while (text.len < HEAD_MAX - 4)
        buf_append_byte(&text, 'x');
    BUF_APPEND(&text, "\r\n\r\n");
    read_and_summarise(buf_slice(&text), cut_bytes, NULL, &summary_text);
    assert_true(slice_starts_with(buf_slice(&summary_text), SLICE("GET /|Host=a|A=xxx")));
}

static void pipelined_requests_are_taken_one_at_a_time(void **state UNUSED)
{
    struct slice text = SLICE("POST /1 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
                              "GET /2 HTTP/1.1\r\n" HOST "\r\n");
    CLEANUP(reading_done) struct reading first;
    CLEANUP(reading_done) struct reading second;
    size_t taken;

    reading_begin(&first);
    assert_int_equal(net_http_read(&first.reader, text, &taken), NET_HTTP_DONE);
    assert_slice_equal(first.request.body, SLICE("hi"));
    reading_begin(&second);
    text = slice_skip(text, taken);
    assert_int_equal(net_http_read(&second.reader, text, &taken), NET_HTTP_DONE);
    assert_slice_equal(second.request.path, SLICE("/2"));
    assert_int_equal(taken, text.len);
}

static void a_kept_request_no_longer_needs_the_input(void **state UNUSED)
{
    struct slice text = SLICE("POST http://h HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi");
    CLEANUP(reading_done) struct reading reading;
    uint8_t *input = memory_alloc(text.len);
    size_t taken;

    memcpy(input, text.data, text.len);
    reading_begin(&reading);
    assert_int_equal(net_http_read(&reading.reader, slice_of(input, text.len), &taken),
                     NET_HTTP_DONE);
    net_http_reader_keep(&reading.reader);
    memset(input, '?', text.len);
    memory_free(input);
    assert_slice_equal(reading.request.method, SLICE("POST"));
    assert_slice_equal(reading.request.path, SLICE("/"));
    assert_slice_equal(reading.request.headers[1].value, SLICE("2"));
    assert_slice_equal(reading.request.body, SLICE("hi"));
}

static void a_client_that_waits_for_continue_is_noticed(void **state UNUSED)
{
    struct slice head =
        SLICE("PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
    CLEANUP(reading_done) struct reading reading;
    size_t taken;

    reading_begin(&reading);
    assert_int_equal(net_http_read(&reading.reader, head, &taken), NET_HTTP_MORE);
    assert_int_equal(taken, head.len);
    assert_true(reading.reader.expects);
    assert_int_equal(net_http_read(&reading.reader, SLICE("hi"), &taken), NET_HTTP_DONE);
    assert_slice_equal(reading.request.body, SLICE("hi"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_requests_are_understood),
        cmocka_unit_test(a_target_with_scheme_and_host_is_its_path),
        cmocka_unit_test(bodies_end_where_their_framing_says),
        cmocka_unit_test(the_connection_header_and_version_decide_what_follows),
        cmocka_unit_test(what_can_be_read_in_two_ways_is_refused),
        cmocka_unit_test(host_is_wanted_once_and_plain),
        cmocka_unit_test(request_lines_are_taken_literally),
        cmocka_unit_test(what_is_not_offered_is_refused_by_name),
        cmocka_unit_test(malformed_chunks_are_refused),
        cmocka_unit_test(limits_hold_to_the_byte),
        cmocka_unit_test(what_reaches_a_limit_exactly_is_still_read),
        cmocka_unit_test(pipelined_requests_are_taken_one_at_a_time),
        cmocka_unit_test(a_kept_request_no_longer_needs_the_input),
        cmocka_unit_test(a_client_that_waits_for_continue_is_noticed),
    };
    return cmocka_run_group_tests_name("net/http_read", tests, NULL, NULL);
}
