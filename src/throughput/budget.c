/* A budget is a lane (lane.c) with what a product adds to it. In the order a request meets them:
 *
 *   - the lane of its throughput bucket, and of its tenant's cap: each may refuse it;
 *   - the lane of its tenant's reservation: if that has room, the request is admitted whatever the
 *     partition owes. What others have already spent becomes debt, which others wait for: so
 *     reservations need no budget lying idle, and the sum over time stays the rate;
 *   - the partition's lane;
 *   - the RU per minute pool, for what that lane refuses.
 *
 * All are asked before any is taken from, so a refusal leaves nothing to undo. One mutex guards it
 * all: the work under it is some tens of nanoseconds, less than sharing atomics that must change
 * together would cost.
 *
 * Prices up front are often too low (a query's result is not known), and many may be in flight. So
 * the mean of what settlements added lately is reserved on top; it never shows in a charge.
 *
 * Low priority is throttled first: it must leave free, of the current second, what requests of
 * normal priority will ask for if they go on as in the last one. Without any it gets everything.
 *
 * Autoscale needs no reaction time: up to the maximum is admitted at once, and only the value that
 * is shown and billed follows use. */
#include "throughput/budget.h"

#include "base/memory.h"
#include "base/thread.h"
#include "throughput/cost.h"
#include "throughput/tenants_private.h"

#define MS_NS INT64_C(1000000)
#define NOW_MS_MAX (INT64_MAX / MS_NS / 4)

enum {
    MINUTE_MS = 60000,
    HOUR_MS = 3600000,
    EXTRA_SLOWNESS = 8, /* the mean moves by an eighth of the difference */
};

enum { LANE_PARTITION, LANE_BUCKET, LANE_CAP, LANE_RESERVED, LANE_COUNT };

/* Use by whole seconds of the clock, for what is shown and for priorities, not for admission. */
struct use {
    int64_t second;
    int64_t spent_cru, spent_before_cru;   /* in this second and the one before */
    int64_t normal_cru, normal_before_cru; /* asked for with normal priority */
    int64_t hour;
    int64_t peak_cru, peak_before_cru;
};

struct budget {
    struct mutex lock; /* guards everything below */
    struct budget_options options;
    struct lane lane;
    struct lane buckets[BUDGET_BUCKETS];
    uint8_t percent_max[BUDGET_BUCKETS];
    struct budget_use bucket_uses[BUDGET_BUCKETS];
    struct tenants tenants;
    int64_t extra_cru; /* mean of settled - price */
    int64_t minute_end_ms, minute_left_cru;
    struct use use;
};

/* A request on its way through the lanes. */
struct passage {
    const struct budget_request *request;
    struct lane_request asked;
    struct lane *lanes[LANE_COUNT]; /* those it goes through, NULL for others */
    int32_t places[LANE_COUNT];     /* it had there */
    int32_t tenant;                 /* -1: none */
    int64_t together_cru;           /* what is set aside if the partition refuses it */
    bool by_minute;
    int64_t now_ms, now_ns;
};

static enum error_code pass(struct budget *budget, struct passage *passage, int64_t *ret_slot_ns);
static void take(struct budget *budget, const struct passage *passage,
                 struct budget_grant *ret_grant);

static int64_t now_clamped(int64_t now_ms)
{
    return MIN(MAX(now_ms, 0), NOW_MS_MAX);
}

static int64_t rate_clamped(const struct budget_options *options, int64_t rate_cru)
{
    int64_t max = options->rate_max_cru > 0 ? options->rate_max_cru : BUDGET_RATE_MAX_CRU;

    return MIN(MAX(rate_cru, 1), MIN(max, BUDGET_RATE_MAX_CRU));
}

/* Only partitions below the burst rate save. */
static void apply_burst(struct budget *budget)
{
    int64_t rate = budget->lane.rate_cru;
    bool saves = rate < BUDGET_BURST_CRU && budget->options.burst_seconds > 0;

    lane_set_burst(&budget->lane, BUDGET_BURST_CRU,
                   saves ? rate * budget->options.burst_seconds : 0);
}

struct budget *budget_new(const struct budget_options *options)
{
    struct budget *budget = MEMORY_NEW(struct budget);

    mutex_init(&budget->lock);
    budget->options = *options;
    budget->options.rate_cru = rate_clamped(options, options->rate_cru);
    if (budget->options.refusal == ERROR_NONE)
        budget->options.refusal = ERROR_TOO_MANY_REQUESTS;
    lane_init(&budget->lane, budget->options.rate_cru);
    apply_burst(budget);
    for (size_t i = 0; i < BUDGET_BUCKETS; i++) {
        lane_init(&budget->buckets[i], budget->options.rate_cru);
        budget->percent_max[i] = 100;
    }
    tenants_init(&budget->tenants);
    return budget;
}

void budget_free(struct budget *budget)
{
    if (!budget)
        return;
    lane_done(&budget->lane);
    for (size_t i = 0; i < BUDGET_BUCKETS; i++)
        lane_done(&budget->buckets[i]);
    tenants_done(&budget->tenants);
    mutex_done(&budget->lock);
    memory_free(budget);
}

/* What an offer shows of autoscale. */
static int64_t current_rate(const struct budget *budget)
{
    int64_t rate = budget->options.rate_cru;
    int64_t used = MAX(budget->use.spent_cru, budget->use.spent_before_cru);

    if (!budget->options.autoscale)
        return rate;
    return MIN(MAX(used, (rate * BUDGET_AUTOSCALE_FLOOR + 99) / 100), rate);
}

static void use_advance(struct budget *budget, int64_t now_ms)
{
    struct use *use = &budget->use;
    int64_t second = now_ms / 1000;
    int64_t hour = now_ms / HOUR_MS;

    if (second > use->second) {
        bool next = second == use->second + 1;

        use->spent_before_cru = next ? use->spent_cru : 0;
        use->normal_before_cru = next ? use->normal_cru : 0;
        use->spent_cru = use->normal_cru = 0;
        use->second = second;
    }
    if (hour > use->hour) {
        use->peak_before_cru = hour == use->hour + 1 ? use->peak_cru : 0;
        use->peak_cru = 0;
        use->hour = hour;
    }
}

static void use_spend(struct budget *budget, int64_t cru)
{
    budget->use.spent_cru = MIN(MAX(budget->use.spent_cru + cru, 0), COST_MAX_CRU);
    budget->use.peak_cru = MAX(budget->use.peak_cru, current_rate(budget));
}

/* Is there something in the RU per minute pool for this request? */
static bool minute_ready(struct budget *budget, const struct budget_request *request,
                         int64_t now_ms)
{
    if (!budget->options.minute_pool)
        return false;
    if (now_ms >= budget->minute_end_ms) {
        /* A minute, too, begins with its first request and inherits debt but not savings. */
        budget->minute_left_cru =
            MIN(budget->minute_left_cru, 0) + budget->options.rate_cru * BUDGET_MINUTE_SECONDS;
        budget->minute_end_ms = now_ms + MINUTE_MS;
    }
    return !request->minute_pool_off && budget->minute_left_cru > 0;
}

/* What a request of low priority must leave to others, and whether it may keep a place. */
static void give_way(const struct budget *budget, struct passage *passage)
{
    int64_t normal_cru = MAX(budget->use.normal_cru, budget->use.normal_before_cru);
    int64_t rest_ms = (budget->lane.second_end_ns - passage->now_ns) / MS_NS;

    if (normal_cru == 0)
        return;
    normal_cru = MIN(normal_cru, budget->lane.rate_cru);
    passage->asked.ahead_cru = MAX(normal_cru * MAX(rest_ms, 0) / 1000, 1);
    passage->asked.keeps_place = false;
}

/* Asks one of the lanes; the passage goes through it when it agrees. */
static bool lane_agrees(struct lane *lane, struct passage *passage, int which, int64_t *ret_slot_ns)
{
    struct lane_answer answer;

    lane_advance(lane, passage->now_ns);
    answer = lane_ask(lane, &passage->asked, passage->now_ns);
    if (!answer.admitted) {
        *ret_slot_ns = answer.slot_ns;
        return false;
    }
    passage->lanes[which] = lane;
    passage->places[which] = answer.place;
    return true;
}

/* Bucket and cap: bounds within the partition's budget. */
static enum error_code pass_bounds(struct budget *budget, struct passage *passage,
                                   int64_t *ret_slot_ns)
{
    uint8_t bucket = passage->request->bucket;
    struct tenant *tenant = passage->tenant < 0 ? NULL : budget->tenants.all[passage->tenant];

    if (bucket && budget->percent_max[bucket - 1] < 100 &&
        !lane_agrees(&budget->buckets[bucket - 1], passage, LANE_BUCKET, ret_slot_ns))
        return ERROR_BUCKET_THROTTLED;
    if (tenant && tenant->cap_cru > 0 && !lane_agrees(&tenant->cap, passage, LANE_CAP, ret_slot_ns))
        return ERROR_KEY_THROTTLED;
    return ERROR_NONE;
}

/* ERROR_NONE: it may spend. Otherwise who refuses it, and until when. */
static enum error_code pass(struct budget *budget, struct passage *passage, int64_t *ret_slot_ns)
{
    const struct budget_request *request = passage->request;
    struct tenant *tenant = passage->tenant < 0 ? NULL : budget->tenants.all[passage->tenant];
    enum error_code code = pass_bounds(budget, passage, ret_slot_ns);
    int64_t reserved_slot_ns = INT64_MAX;
    bool minute;

    if (code != ERROR_NONE)
        return code;
    lane_advance(&budget->lane, passage->now_ns);
    if (tenant && tenant->reserved_cru > 0) {
        if (lane_agrees(&tenant->reserved, passage, LANE_RESERVED, &reserved_slot_ns)) {
            passage->lanes[LANE_PARTITION] = &budget->lane;
            passage->places[LANE_PARTITION] = -1;
            return ERROR_NONE;
        }
    }
    minute = minute_ready(budget, request, passage->now_ms);
    passage->asked.keeps_place = !minute;
    if (request->low_priority)
        give_way(budget, passage);
    passage->asked.expected_cru = passage->together_cru;
    if (lane_agrees(&budget->lane, passage, LANE_PARTITION, ret_slot_ns))
        return ERROR_NONE;
    passage->by_minute = minute;
    *ret_slot_ns = MIN(*ret_slot_ns, reserved_slot_ns);
    return minute ? ERROR_NONE : budget->options.refusal;
}

/* The price of a request and what such ones lately cost above theirs. */
static int64_t expected(const struct budget *budget, const struct budget_request *request)
{
    int64_t operations = MAX(request->operations, 1U);

    return cost_add(request->price_cru,
                    MIN(budget->extra_cru, COST_MAX_CRU / operations) * operations);
}

/* The tenant of a grant, if it is still that one. */
static struct tenant *tenant_of_grant(struct budget *budget, const struct budget_grant *grant)
{
    struct tenant *tenant =
        (uint32_t)grant->tenant < budget->tenants.size ? budget->tenants.all[grant->tenant] : NULL;

    return tenant && grant->tenant_generation && tenant->generation == grant->tenant_generation
               ? tenant
               : NULL;
}

/* cru is below 0 where less was spent than reserved. */
static void spent_add(struct budget_use *use, int64_t cru)
{
    use->spent_cru = MIN(MAX(use->spent_cru + cru, 0), COST_MAX_CRU);
}

static void bounds_spend(struct budget *budget, const struct budget_grant *grant, int64_t cru)
{
    struct tenant *tenant = tenant_of_grant(budget, grant);

    if (grant->bucket)
        spent_add(&budget->bucket_uses[grant->bucket - 1], cru);
    if (tenant)
        spent_add(&tenant->use, cru);
}

static void take(struct budget *budget, const struct passage *passage, struct budget_grant *grant)
{
    int64_t cru = expected(budget, passage->request);

    *grant =
        (struct budget_grant){.reserved_cru = cru,
                              .extra_cru = cru - passage->request->price_cru,
                              .operations = MAX(passage->request->operations, 1U),
                              .minute_used = passage->by_minute,
                              .bucket = passage->lanes[LANE_BUCKET] ? passage->request->bucket : 0};
    if (passage->tenant >= 0) {
        grant->tenant = passage->tenant;
        grant->tenant_generation = budget->tenants.all[passage->tenant]->generation;
    }
    for (int i = 0; i < LANE_COUNT; i++) {
        if (!passage->lanes[i])
            continue;
        grant->lanes |= (uint8_t)(1 << i);
        grant->spent[i] = lane_take(passage->lanes[i], passage->places[i], cru, passage->now_ns);
    }
    if (passage->by_minute)
        budget->minute_left_cru -= cru;
    use_spend(budget, cru);
    bounds_spend(budget, grant, cru);
}

static bool refuse(enum error_code code, int64_t wait_ms, struct error *err)
{
    switch (code) {
    case ERROR_BUCKET_THROTTLED:
        return error_set(err, code,
                         "throughput bucket has used up its share; come again in %lld ms",
                         (long long)wait_ms);
    case ERROR_KEY_THROTTLED:
        return error_set(
            err, code, "partition key value has used up its own throughput; come again in %lld ms",
            (long long)wait_ms);
    case ERROR_METADATA_THROTTLED:
        return error_set(err, code,
                         "account has used up its throughput for metadata; come again in %lld ms",
                         (long long)wait_ms);
    default:
        return error_set(err, code,
                         "request rate is large: partition has used up its throughput; "
                         "come again in %lld ms",
                         (long long)wait_ms);
    }
}

bool budget_admit(struct budget *budget, const struct budget_request *request, int64_t now_ms,
                  struct budget_grant *ret_grant, int64_t *ret_wait_ms, struct error *err)
{
    return budget_admit_all(budget, request, 1, now_ms, ret_grant, ret_wait_ms, err);
}

/* Asks for each of them; under the lock. ERROR_NONE: all may spend. */
static enum error_code pass_all(struct budget *budget, struct passage *passages, size_t count,
                                int64_t *ret_slot_ns)
{
    int64_t together_cru = 0;
    enum error_code code = ERROR_NONE;

    for (size_t i = 0; i < count; i++)
        together_cru = cost_add(together_cru, expected(budget, passages[i].request));
    for (size_t i = 0; i < count && code == ERROR_NONE; i++) {
        const struct budget_request *request = passages[i].request;
        int64_t expected_cru = expected(budget, request);

        passages[i].together_cru = MIN(together_cru, budget->lane.rate_cru);
        passages[i].asked = (struct lane_request){
            .ticket = request->ticket,
            .expected_cru = MIN(expected_cru, budget->lane.rate_cru),
            .low = request->low_priority,
            .keeps_place = true,
        };
        if (!request->low_priority)
            budget->use.normal_cru = cost_add(budget->use.normal_cru, expected_cru);
        if (request->key.data)
            passages[i].tenant = tenants_find(&budget->tenants, request->key);
        code = pass(budget, &passages[i], ret_slot_ns);
        if (code == ERROR_BUCKET_THROTTLED)
            budget->bucket_uses[request->bucket - 1].refused++;
        else if (code == ERROR_KEY_THROTTLED)
            budget->tenants.all[passages[i].tenant]->use.refused++;
    }
    return code;
}

bool budget_admit_all(struct budget *budget, const struct budget_request *requests, size_t count,
                      int64_t now_ms, struct budget_grant *ret_grants, int64_t *ret_wait_ms,
                      struct error *err)
{
    struct passage one,
        *passages =
            count == 1 ? &one : memory_alloc_zero(memory_array_size(count, sizeof(struct passage)));
    enum error_code code = ERROR_NONE;
    int64_t now_ns, slot_ns = 0;

    now_ms = now_clamped(now_ms);
    now_ns = now_ms * MS_NS;
    for (size_t i = 0; i < count; i++) {
        assert(requests[i].bucket <= BUDGET_BUCKETS);
        assert(requests[i].price_cru >= 0 && requests[i].price_cru <= COST_MAX_CRU);
        passages[i] = (struct passage){
            .request = &requests[i], .tenant = -1, .now_ms = now_ms, .now_ns = now_ns};
    }
    WITH_LOCK (&budget->lock) {
        use_advance(budget, now_ms);
        code = pass_all(budget, passages, count, &slot_ns);
        for (size_t i = 0; i < count && code == ERROR_NONE; i++)
            take(budget, &passages[i], &ret_grants[i]);
    }
    if (passages != &one)
        memory_free(passages);
    if (code == ERROR_NONE)
        return true;
    *ret_wait_ms = (slot_ns - now_ns + MS_NS - 1) / MS_NS;
    return refuse(code, *ret_wait_ms, err);
}

/* The lanes a grant went through, as far as they are still there. */
static struct lane *lane_of_grant(struct budget *budget, const struct budget_grant *grant,
                                  int which)
{
    struct tenant *tenant;

    if (!(grant->lanes & 1 << which))
        return NULL;
    if (which == LANE_PARTITION)
        return &budget->lane;
    if (which == LANE_BUCKET)
        return &budget->buckets[grant->bucket - 1];
    tenant = tenant_of_grant(budget, grant);
    if (!tenant)
        return NULL;
    return which == LANE_CAP ? &tenant->cap : &tenant->reserved;
}

/* Charges a grant with another amount than was reserved. */
static void grant_correct(struct budget *budget, const struct budget_grant *grant,
                          int64_t charge_cru, int64_t now_ms)
{
    int64_t more_cru = charge_cru - grant->reserved_cru;

    for (int i = 0; i < LANE_COUNT; i++) {
        struct lane *lane = lane_of_grant(budget, grant, i);

        if (!lane)
            continue;
        lane_give_back(lane, grant->spent[i]);
        lane_take(lane, -1, charge_cru, now_ms * MS_NS);
    }
    if (grant->minute_used)
        budget->minute_left_cru -= more_cru;
    use_advance(budget, now_ms);
    use_spend(budget, more_cru);
    bounds_spend(budget, grant, more_cru);
}

void budget_settle(struct budget *budget, struct budget_grant *grant, int64_t charge_cru,
                   int64_t now_ms)
{
    assert(charge_cru >= 0 && charge_cru <= COST_MAX_CRU);
    now_ms = now_clamped(now_ms);
    if ((charge_cru != grant->reserved_cru || grant->extra_cru != 0) &&
        (grant->lanes || grant->minute_used)) {
        WITH_LOCK (&budget->lock) {
            int64_t off_cru = (charge_cru - (grant->reserved_cru - grant->extra_cru)) /
                              (int64_t)MAX(grant->operations, 1U);
            int64_t step_cru = (off_cru - budget->extra_cru) / EXTRA_SLOWNESS;

            budget->extra_cru = MAX(budget->extra_cru + step_cru, 0);
            grant_correct(budget, grant, charge_cru, now_ms);
        }
    }
    *grant = (struct budget_grant){0};
}

/* What requests cost above their price is not learned from one that did nothing. */
void budget_drop(struct budget *budget, struct budget_grant *grant, int64_t now_ms)
{
    if (grant->lanes || grant->minute_used) {
        WITH_LOCK (&budget->lock) {
            grant_correct(budget, grant, 0, now_clamped(now_ms));
        }
    }
    *grant = (struct budget_grant){0};
}

void budget_charge(struct budget *budget, int64_t charge_cru, int64_t now_ms)
{
    assert(charge_cru >= 0 && charge_cru <= COST_MAX_CRU);
    now_ms = now_clamped(now_ms);
    WITH_LOCK (&budget->lock) {
        use_advance(budget, now_ms);
        (void)lane_take(&budget->lane, -1, charge_cru, now_ms * MS_NS);
        use_spend(budget, charge_cru);
    }
}

void budget_set_throughput(struct budget *budget, int64_t rate_cru, bool autoscale,
                           bool minute_pool, int64_t now_ms)
{
    now_ms = now_clamped(now_ms);
    WITH_LOCK (&budget->lock) {
        struct budget_options *options = &budget->options;

        use_advance(budget, now_ms);
        options->rate_cru = rate_clamped(options, rate_cru);
        options->autoscale = autoscale;
        options->minute_pool = minute_pool;
        lane_set_rate(&budget->lane, options->rate_cru, now_ms * MS_NS);
        apply_burst(budget);
        budget->minute_left_cru =
            MIN(budget->minute_left_cru, options->rate_cru * BUDGET_MINUTE_SECONDS);
        for (size_t i = 0; i < BUDGET_BUCKETS; i++)
            lane_set_rate(&budget->buckets[i], options->rate_cru * budget->percent_max[i] / 100,
                          now_ms * MS_NS);
    }
}

void budget_set_bucket(struct budget *budget, uint8_t bucket, uint8_t percent_max, int64_t now_ms)
{
    assert(bucket >= 1 && bucket <= BUDGET_BUCKETS && percent_max >= 1 && percent_max <= 100);
    WITH_LOCK (&budget->lock) {
        budget->percent_max[bucket - 1] = percent_max;
        lane_set_rate(&budget->buckets[bucket - 1], budget->options.rate_cru * percent_max / 100,
                      now_clamped(now_ms) * MS_NS);
    }
}

static bool is_among(const struct budget_tenant *tenants, size_t count, struct slice key)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(tenants[i].key, key))
            return true;
    return false;
}

void budget_set_tenants(struct budget *budget, const struct budget_tenant *tenants, size_t count,
                        int64_t now_ms)
{
    int64_t now_ns = now_clamped(now_ms) * MS_NS, reserved_cru = 0;

    assert(count <= BUDGET_TENANTS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(tenants[i].reserved_cru >= 0 && tenants[i].reserved_cru <= BUDGET_RATE_MAX_CRU);
        assert(tenants[i].cap_cru >= 0 && tenants[i].cap_cru <= BUDGET_RATE_MAX_CRU);
        reserved_cru += tenants[i].reserved_cru;
    }
    WITH_LOCK (&budget->lock) {
        double part = reserved_cru > budget->options.rate_cru
                          ? (double)budget->options.rate_cru / (double)reserved_cru
                          : 1;

        for (uint32_t i = 0; i < budget->tenants.size; i++)
            if (budget->tenants.all[i] && !is_among(tenants, count, budget->tenants.all[i]->key))
                (void)tenants_set(&budget->tenants, budget->tenants.all[i]->key, 0, 0, now_ns);
        for (size_t i = 0; i < count; i++)
            if (!tenants_set(&budget->tenants, tenants[i].key,
                             (int64_t)((double)tenants[i].reserved_cru * part), tenants[i].cap_cru,
                             now_ns))
                assert(!"there are as many places as tenants");
    }
}

struct budget_use budget_bucket_use(struct budget *budget, uint8_t bucket)
{
    struct budget_use use = {0};

    assert(bucket >= 1 && bucket <= BUDGET_BUCKETS);
    WITH_LOCK (&budget->lock)
        use = budget->bucket_uses[bucket - 1];
    return use;
}

struct budget_use budget_tenant_use(struct budget *budget, struct slice key)
{
    struct budget_use use = {0};

    WITH_LOCK (&budget->lock) {
        int32_t position = tenants_find(&budget->tenants, key);

        if (position >= 0)
            use = budget->tenants.all[position]->use;
    }
    return use;
}

static int64_t part_of(int64_t amount, double part)
{
    return (int64_t)((double)amount * part);
}

static void use_take_over(struct use *use, const struct use *from, double part)
{
    use->spent_cru += part_of(from->spent_cru, part);
    use->spent_before_cru += part_of(from->spent_before_cru, part);
    use->normal_cru += part_of(from->normal_cru, part);
    use->normal_before_cru += part_of(from->normal_before_cru, part);
    use->peak_cru += part_of(from->peak_cru, part);
    use->peak_before_cru += part_of(from->peak_before_cru, part);
}

/* One lock after the other: two budgets are never locked at once. */
void budget_take_over(struct budget *budget, struct budget *from, double part, int64_t now_ms)
{
    int64_t now_ns, extra_cru = 0, minute_left_cru = 0, minute_end_ms = 0;
    struct lane lane = {0};
    struct use use = {0};

    now_ms = now_clamped(now_ms);
    now_ns = now_ms * MS_NS;
    WITH_LOCK (&from->lock) {
        use_advance(from, now_ms);
        lane_advance(&from->lane, now_ns);
        lane = from->lane;
        use = from->use;
        extra_cru = from->extra_cru;
        minute_left_cru = from->minute_left_cru;
        minute_end_ms = from->minute_end_ms;
    }
    WITH_LOCK (&budget->lock) {
        use_advance(budget, now_ms);
        lane_advance(&budget->lane, now_ns);
        lane_take_over(&budget->lane, &lane, part, now_ns);
        use_take_over(&budget->use, &use, part);
        budget->extra_cru = MAX(budget->extra_cru, extra_cru);
        budget->minute_left_cru += part_of(minute_left_cru, part);
        budget->minute_end_ms = MAX(budget->minute_end_ms, minute_end_ms);
    }
}

void budget_get_state(struct budget *budget, int64_t now_ms, struct budget_state *ret_state)
{
    now_ms = now_clamped(now_ms);
    WITH_LOCK (&budget->lock) {
        const struct budget_options *options = &budget->options;
        struct lane_request nobody = {0};
        struct lane_answer answer;

        use_advance(budget, now_ms);
        lane_advance(&budget->lane, now_ms * MS_NS);
        budget->use.peak_cru = MAX(budget->use.peak_cru, current_rate(budget));
        answer = lane_ask(&budget->lane, &nobody, now_ms * MS_NS);
        *ret_state = (struct budget_state){
            .rate_cru = options->rate_cru,
            .current_cru = current_rate(budget),
            .hour_peak_cru = budget->use.peak_cru,
            .hour_before_cru = budget->use.peak_before_cru,
            .credit_cru = budget->lane.credit_milli / 1000,
            .minute_left_cru = minute_ready(budget, &(struct budget_request){0}, now_ms)
                                   ? budget->minute_left_cru
                                   : 0,
            .owed_ms = answer.admitted ? 0 : (answer.slot_ns - now_ms * MS_NS + MS_NS - 1) / MS_NS,
            .waiting = lane_waiting(&budget->lane),
        };
    }
}
