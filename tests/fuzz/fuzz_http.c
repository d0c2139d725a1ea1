/* The HTTP reader on any bytes, as a row of pipelined requests. Holds that
 *  - requests read the same whatever the pieces they come in;
 *  - what is accepted has the shape it promises: names are tokens, no value holds CR, LF or NUL,
 *    limits are kept, and exactly one kind of framing was given. */
#include "net/http_read.h"

#include "base/memory.h"
#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 12, REQUESTS_MAX = 32 };

static const struct net_http_settings settings = {
    .request_line_max = 200,
    .head_max = 1000,
    .header_count_max = HEADERS_MAX,
    .body_max = 300,
};

struct reading {
    struct net_http_request request;
    struct net_http_reader reader;
    struct net_http_header headers[HEADERS_MAX];
};

static void reading_begin(struct reading *reading)
{
    reading->request = (struct net_http_request){.arena = arena_new()};
    net_http_reader_begin(&reading->reader, &settings, &reading->request, reading->headers);
}

static void reading_done(struct reading *reading)
{
    net_http_reader_done(&reading->reader);
    arena_free(reading->request.arena);
}

static void check_clean(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        assert(s.data[i] != '\r' && s.data[i] != '\n' && s.data[i] != '\0');
}

static void check_accepted(const struct net_http_request *request)
{
    size_t lengths = 0, encodings = 0;

    assert(request->method.len > 0 && request->target.len > 0 && request->path.len > 0);
    assert(request->path.data[0] == '/' || request->path.data[0] == '*');
    assert(request->header_count <= settings.header_count_max);
    assert(request->body.len <= settings.body_max);
    check_clean(request->method);
    check_clean(request->target);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct net_http_header *header = &request->headers[i];

        assert(header->name.len > 0);
        assert(!memchr(header->name.data, ' ', header->name.len));
        check_clean(header->name);
        check_clean(header->value);
        lengths += slice_equal_nocase(header->name, SLICE("content-length"));
        encodings += slice_equal_nocase(header->name, SLICE("transfer-encoding"));
    }
    assert(lengths + encodings <= 1);
}

static void check_same(const struct net_http_request *a, const struct net_http_request *b)
{
    assert(slice_equal(a->method, b->method));
    assert(slice_equal(a->target, b->target));
    assert(slice_equal(a->path, b->path));
    assert(slice_equal(a->query, b->query) && !a->query.data == !b->query.data);
    assert(a->http_10 == b->http_10);
    assert(slice_equal(a->body, b->body));
    assert(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        assert(slice_equal(a->headers[i].name, b->headers[i].name));
        assert(slice_equal(a->headers[i].value, b->headers[i].value));
    }
}

/* Reads one request from the front in pieces, each time in fresh memory of just its size; the last
 * piece of memory is the caller's, for the request may point into it. */
static enum net_http_progress read_in_pieces(struct reading *reading, struct slice input,
                                             struct random *random, size_t *ret_taken,
                                             uint8_t **ret_memory)
{
    enum net_http_progress progress = NET_HTTP_MORE;
    size_t given = 0, taken = 0;

    *ret_memory = NULL;
    while (progress == NET_HTTP_MORE && given < input.len) {
        size_t count, len;

        given += 1 + random_below(random, MIN(input.len - given, (size_t)64));
        len = given - taken;
        memory_free(*ret_memory);
        *ret_memory = memory_alloc(len);
        memcpy(*ret_memory, input.data + taken, len);
        progress = net_http_read(&reading->reader, slice_of(*ret_memory, len), &count);
        assert(count <= len);
        taken += count;
    }
    *ret_taken = taken;
    return progress;
}

/* One request from the front; returns whether another may follow it. */
static bool compare_one(struct slice *input, struct random *random)
{
    struct reading whole, pieces;
    enum net_http_progress progress, progress_pieces;
    uint8_t *memory;
    size_t taken, taken_pieces;
    bool done;

    reading_begin(&whole);
    reading_begin(&pieces);
    progress = net_http_read(&whole.reader, *input, &taken);
    progress_pieces = read_in_pieces(&pieces, *input, random, &taken_pieces, &memory);
    assert(progress == progress_pieces);
    done = progress == NET_HTTP_DONE;
    if (progress == NET_HTTP_BAD) {
        assert(whole.reader.status == pieces.reader.status && whole.reader.status >= 400);
        assert(whole.reader.reason == pieces.reader.reason);
    }
    if (done) {
        assert(taken == taken_pieces && taken > 0);
        check_accepted(&whole.request);
        check_same(&whole.request, &pieces.request);
        net_http_reader_keep(&pieces.reader);
        memset(memory, 0, 1);
        memory_free(memory);
        memory = NULL;
        check_same(&whole.request, &pieces.request);
        *input = slice_skip(*input, taken);
    }
    memory_free(memory);
    reading_done(&whole);
    reading_done(&pieces);
    return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    struct random random;
    uint64_t seed = size;

    for (size_t i = 0; i < size; i++)
        seed = seed * 31 + data[i];
    random_seed(&random, seed);
    for (int i = 0; i < REQUESTS_MAX && input.len; i++)
        if (!compare_one(&input, &random))
            break;
    return 0;
}
