#include "server/prober.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"

enum {
    REST_FACTOR = 9,   /* of the time an answer took: a tenth of a processor at most */
    REST_MS_MAX = 200, /* but nobody waits much longer than this */
};

struct asking {
    struct asking *next;
    struct net_http_request *request;
};

struct prober {
    struct prober_options options;
    struct thread thread;
    struct mutex lock; /* for what follows */
    struct condition changed;
    struct asking *askings; /* owned */
    bool stopping;
};

static void prober_run(void *context);

struct prober *prober_new(const struct prober_options *options)
{
    struct prober *prober = MEMORY_NEW(struct prober);

    prober->options = *options;
    mutex_init(&prober->lock);
    condition_init(&prober->changed);
    thread_start(&prober->thread, options->name, prober_run, prober);
    return prober;
}

void prober_free(struct prober *prober)
{
    if (!prober)
        return;
    WITH_LOCK (&prober->lock) {
        prober->stopping = true;
        condition_broadcast(&prober->changed);
    }
    thread_join(&prober->thread);
    assert(!prober->askings);
    condition_done(&prober->changed);
    mutex_done(&prober->lock);
    memory_free(prober);
}

void prober_ask(struct prober *prober, struct net_http_request *request)
{
    struct asking *asking = MEMORY_NEW(struct asking);

    net_http_defer(request);
    asking->request = request;
    WITH_LOCK (&prober->lock) {
        asking->next = prober->askings;
        prober->askings = asking;
        condition_broadcast(&prober->changed);
    }
}

/* Those who have asked; NULL: it is time to stop. */
static struct asking *askings_take(struct prober *prober)
{
    struct asking *askings = NULL;

    WITH_LOCK (&prober->lock) {
        while (!prober->askings && !prober->stopping)
            condition_wait(&prober->changed, &prober->lock);
        askings = TAKE(prober->askings);
    }
    return askings;
}

static void answer(const struct prober *prober, struct net_http_request *request, uint16_t status,
                   struct slice body)
{
    char activity[RANDOM_UUID_SIZE];
    const struct net_http_header headers[] = {
        {SLICE("Content-Type"), slice_of_text(prober->options.type)},
        {SLICE("x-ms-activity-id"), slice_of(activity, RANDOM_UUID_SIZE - 1)},
    };

    random_uuid(activity);
    net_http_respond(request, &(struct net_http_response){
                                  .status = status,
                                  .headers = headers,
                                  .header_count = ARRAY_LEN(headers),
                                  .body = body,
                                  .body_kind = NET_HTTP_BODY_COPIED,
                              });
}

static void rest(struct prober *prober, int64_t took_ms)
{
    int64_t until_ms = clock_monotonic_ms() + MIN(took_ms * REST_FACTOR, (int64_t)REST_MS_MAX);
    bool in_time = true;

    WITH_LOCK (&prober->lock) {
        while (in_time && !prober->stopping)
            in_time = condition_wait_until(&prober->changed, &prober->lock, until_ms);
    }
}

static void prober_run(void *context)
{
    struct prober *prober = context;
    CLEANUP(buf_done) struct buf body;
    struct asking *askings, *next;

    buf_init(&body, prober->options.body_max);
    while ((askings = askings_take(prober))) {
        uint64_t begun_ns = clock_monotonic_ns();
        uint16_t status;

        buf_clear(&body);
        status = prober->options.print(prober->options.context, &body);
        for (; askings; askings = next) {
            next = askings->next;
            answer(prober, askings->request, status, buf_slice(&body));
            memory_free(askings);
        }
        /* what took less than a millisecond counts as one */
        rest(prober, (int64_t)((clock_monotonic_ns() - begun_ns) / 1000000) + 1);
    }
}
