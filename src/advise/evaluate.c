/* Operations are dealt to physical partitions by the hash of their key, time cut into windows; what
 * the fullest partition of a window gets, times their number, is what would have to be provisioned.
 * The same with every operation put anywhere by chance is the ideal: it has the same noise of small
 * numbers, so that the ratio of the two says what the key does and not how small the sample is. */
#include "advise/evaluate.h"

#include "base/random.h"
#include "document/order.h"
#include "throughput/cost.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    WINDOWS = 32,
    DEALS = 8, /* each with another hash: what is common to them is the key's doing */
    PARTITIONS_MAX = 1024,
    DAY_MS = 24 * 60 * 60 * 1000,
    FORECAST_MS_MIN = 60 * 60 * 1000, /* what came within less says nothing of months */
    OPERATIONS_PER_WINDOW_MIN = 256,  /* fewer say nothing of a spread */
};

const uint32_t advise_scales[ADVISE_SCALES] = {1, 10, 100};

struct advise_options advise_options_complete(const struct advise_options *options)
{
    struct advise_options full = options ? *options : (struct advise_options){0};

    if (!full.partitions)
        full.partitions = 16;
    full.partitions = MIN(full.partitions, (uint32_t)PARTITIONS_MAX);
    if (!full.partition_ru_max)
        full.partition_ru_max = 10000;
    if (!full.logical_bytes_max)
        full.logical_bytes_max = UINT64_C(20) * 1000 * 1000 * 1000;
    if (!full.current_partitions)
        full.current_partitions = 1;
    if (!(full.load > 0))
        full.load = 1;
    return full;
}

/* --- Counting by key ------------------------------------------------------------------------- */

struct tally {
    struct tally_slot {
        uint64_t key; /* 0: free */
        double amount, late;
        const advise_value *values; /* of one of them */
    } * slots;
    size_t capacity, count;
};

static void tally_init(struct tally *tally, size_t expected)
{
    tally->capacity = 64;
    while (tally->capacity < expected * 2)
        tally->capacity *= 2;
    tally->count = 0;
    tally->slots = memory_alloc_zero(memory_array_size(tally->capacity, sizeof *tally->slots));
}

static void tally_done(struct tally *tally)
{
    memory_free(tally->slots);
}
CLEANUP_VALUE_FN(struct tally, tally_done)

static struct tally_slot *tally_find(struct tally *tally, uint64_t key)
{
    size_t at;

    key += !key;
    at = key & (tally->capacity - 1);
    while (tally->slots[at].key && tally->slots[at].key != key)
        at = (at + 1) & (tally->capacity - 1);
    if (!tally->slots[at].key) {
        tally->slots[at].key = key;
        tally->count++;
    }
    return &tally->slots[at];
}

static int descending(const void *a, const void *b)
{
    const struct tally_slot *x = a, *y = b;

    return (x->amount < y->amount) - (x->amount > y->amount);
}

/* The largest first. It is no table any more then, only a list. */
static void tally_sort(struct tally *tally)
{
    size_t count = 0;

    for (size_t i = 0; i < tally->capacity; i++)
        if (tally->slots[i].key)
            tally->slots[count++] = tally->slots[i];
    assert(count == tally->count);
    qsort(tally->slots, count, sizeof *tally->slots, descending);
}

static double tally_sum(const struct tally *tally)
{
    double sum = 0;

    for (size_t i = 0; i < tally->count; i++)
        sum += tally->slots[i].amount;
    return sum;
}

/* Of a sorted one. */
static double tally_gini(const struct tally *tally)
{
    double sum = tally_sum(tally), weighted = 0;
    size_t n = tally->count;

    if (n < 2 || sum <= 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        weighted += (double)(n - i) * tally->slots[i].amount;
    return 2 * weighted / ((double)n * sum) - ((double)n + 1) / (double)n;
}

/* --- What one operation costs ---------------------------------------------------------------- */

/* What it would cost if one partition answered: what asking others added under the key it ran with
 * is taken off. */
static int64_t work_cru(const struct advise_operation *operation,
                        const struct advise_options *options)
{
    int64_t asked = cost_model.query_partition / 10000, extra = 0;

    if (operation->kind == ADVISE_QUERY && options->current &&
        advise_key_known(options->current, operation->given) != ADVISE_KNOWN_WHOLE)
        extra = asked * (options->current_partitions - 1);
    return MAX(operation->cru - extra, MIN(operation->cru, (int64_t)100));
}

struct advise_visit advise_visit_of(const struct advise_key *key,
                                    const struct advise_operation *operation,
                                    const struct advise_options *options, uint64_t chance)
{
    int64_t asked = cost_model.query_partition / 10000; /* millionths to hundredths */
    struct advise_visit visit = {.partitions = 1,
                                 .cru = work_cru(operation, options),
                                 .key = advise_key_of(key, operation->values, chance)};
    bool is_write = operation->kind == ADVISE_CREATE ||
                    (operation->kind == ADVISE_UPSERT && key->kind != ADVISE_RANDOM_SUFFIX);

    /* Whoever creates an item has all of it, and where the suffix is random it is chosen now. */
    visit.known = is_write ? ADVISE_KNOWN_WHOLE : advise_key_known(key, operation->given);
    if (visit.known == ADVISE_KNOWN_WHOLE || visit.known == ADVISE_KNOWN_PREFIX)
        return visit;
    visit.partitions = visit.known == ADVISE_KNOWN_BASE && operation->kind == ADVISE_QUERY
                           ? MIN(key->suffixes, options->partitions)
                           : options->partitions;
    if (operation->kind != ADVISE_QUERY && visit.known == ADVISE_KNOWN_BASE)
        asked = 100; /* the server seeks the id in each */
    visit.grows_cru = asked * visit.partitions;
    visit.cru += visit.grows_cru;
    if (operation->kind == ADVISE_QUERY) /* else the client must query for it first */
        visit.cru -= asked;
    return visit;
}

/* --- Load ------------------------------------------------------------------------------------ */

struct load {
    double *cru; /* window x deal x partition */
    size_t windows;
    uint32_t partitions;
    int64_t begin_ms, window_ms;
};

static void load_init(struct load *load, const struct advise_workload *workload,
                      uint32_t partitions)
{
    size_t count;
    const struct advise_operation *operations = advise_workload_operations(workload, &count);
    int64_t length = count ? operations[count - 1].time_ms - operations[0].time_ms + 1 : 1;

    *load = (struct load){.partitions = partitions, .begin_ms = count ? operations[0].time_ms : 0};
    load->windows = MAX(MIN(count / OPERATIONS_PER_WINDOW_MIN, (size_t)WINDOWS), (size_t)1);
    load->window_ms = (length + (int64_t)load->windows - 1) / (int64_t)load->windows;
    load->cru = memory_alloc_zero(load->windows * DEALS * partitions * sizeof *load->cru);
}

static void load_done(struct load *load)
{
    memory_free(load->cru);
}

static size_t load_window(const struct load *load, int64_t time_ms)
{
    return MIN((size_t)((time_ms - load->begin_ms) / load->window_ms), load->windows - 1);
}

/* Operations of the fullest window. */
static size_t load_window_most(const struct load *load, const struct advise_workload *workload)
{
    size_t count, most = 0, here = 0, window = 0;
    const struct advise_operation *operations = advise_workload_operations(workload, &count);

    for (size_t i = 0; i < count; i++) {
        size_t at = load_window(load, operations[i].time_ms);

        here = at == window ? here + 1 : 1;
        window = at;
        most = MAX(most, here);
    }
    return most;
}

/* Puts what one operation costs where its key is, the same to each of its partitions. */
static void load_deal(struct load *load, int64_t time_ms, uint64_t place, uint64_t beside,
                      uint32_t partitions, double cru)
{
    double *window = load->cru + load_window(load, time_ms) * DEALS * load->partitions;

    for (uint64_t deal = 0; deal < DEALS; deal++, window += load->partitions) {
        uint64_t first = XXH3_64bits_withSeed(&place, sizeof place, deal) % load->partitions;

        for (uint32_t i = 0; i < partitions; i++)
            window[(first + beside + i) % load->partitions] += cru / partitions;
    }
}

/* Puts it anywhere. */
static void load_scatter(struct load *load, int64_t time_ms, double cru, struct random *random)
{
    double *window = load->cru + load_window(load, time_ms) * DEALS * load->partitions;

    for (size_t deal = 0; deal < DEALS; deal++, window += load->partitions)
        window[random_below(random, load->partitions)] += cru;
}

/* RU/s needed by the fullest partition at the busiest time, for all of them. A window's imbalance
 * counts by its RU: one quiet window decides nothing. */
static double load_needed(const struct load *load)
{
    double busiest = 0, all = 0, uneven = 0;

    for (size_t w = 0; w < load->windows * DEALS; w++) {
        double sum = 0, top = 0;

        for (uint32_t p = 0; p < load->partitions; p++) {
            sum += load->cru[w * load->partitions + p];
            top = fmax(top, load->cru[w * load->partitions + p]);
        }
        busiest = fmax(busiest, sum);
        all += sum;
        uneven += top * load->partitions;
    }
    if (all <= 0)
        return 0;
    return busiest / 100 / ((double)load->window_ms / 1000) * (uneven / all);
}

/* What the load of the kept operations is to be multiplied by. */
static double load_scale(const struct advise_workload *workload,
                         const struct advise_options *options)
{
    size_t count;
    const struct advise_operation *operations = advise_workload_operations(workload, &count);
    double weight = 0;

    for (size_t i = 0; i < count; i++)
        weight += operations[i].weight;
    return options->load *
           (weight > 0 ? (double)advise_workload_operations_seen(workload) / weight : 1);
}

double advise_ideal(const struct advise_workload *workload, const struct advise_options *options)
{
    struct advise_options full = advise_options_complete(options);
    size_t count;
    const struct advise_operation *operations = advise_workload_operations(workload, &count);
    struct random random;
    struct load load;
    double needed;

    random_seed(&random, 7);
    load_init(&load, workload, full.partitions);
    for (size_t i = 0; i < count; i++)
        load_scatter(&load, operations[i].time_ms,
                     (double)operations[i].weight * (double)work_cru(&operations[i], &full),
                     &random);
    needed = load_scale(workload, &full) * load_needed(&load);
    load_done(&load);
    return needed;
}

/* Where a hierarchical key is: all of one first value together, over as many partitions as its part
 * of what was stored by then has split it into. A value that is new is in one, however busy. */
struct heads {
    struct tally bytes; /* by first value */
    double all;
    size_t items; /* of the workload, added so far */
};

struct walk {
    const struct advise_workload *workload;
    const struct advise_key *key;
    struct advise_options options;
    struct load load;
    struct tally by_key, by_window;
    struct heads heads;
    struct advise_figures *figures;
    double windows_top, windows_all; /* cru */
    double weight;                   /* of all operations */
    double cru, fan_out_cru;         /* of all of them; of it, for asking several */
    double scaled[ADVISE_SCALES];    /* cru at each scale */
    double key_top;                  /* cru of one key in one window */
};

/* A window is over: how much of it went to one key. */
static void window_close(struct walk *walk)
{
    double top = 0, sum = 0;

    for (size_t i = 0; i < walk->by_window.capacity; i++) {
        top = fmax(top, walk->by_window.slots[i].amount);
        sum += walk->by_window.slots[i].amount;
    }
    walk->windows_top += top;
    walk->windows_all += sum;
    walk->key_top = fmax(walk->key_top, top);
    memset(walk->by_window.slots, 0, walk->by_window.capacity * sizeof *walk->by_window.slots);
    walk->by_window.count = 0;
}

static uint64_t head_of(const struct walk *walk, const advise_value *values)
{
    struct advise_key head = {
        .kind = ADVISE_PROPERTY, .path_count = 1, .paths = {walk->key->paths[0]}};

    return advise_key_of(&head, values, 0);
}

static void heads_advance(struct walk *walk, int64_t time_ms)
{
    size_t count;
    const struct advise_item *items = advise_workload_items(walk->workload, &count);
    struct heads *heads = &walk->heads;

    for (; heads->items < count && items[heads->items].time_ms <= time_ms; heads->items++) {
        tally_find(&heads->bytes, head_of(walk, items[heads->items].values))->amount +=
            items[heads->items].bytes;
        heads->all += items[heads->items].bytes;
    }
}

static double spread_of(double share, double partitions)
{
    return fmin(floor(share * partitions * 1.5) + 1, partitions);
}

/* More than the part of one partition, and not by the luck of a small sample of so many. */
static bool is_large(double share, double count, double partitions)
{
    return count > 0 && share - 2 * sqrt(share / count) > 1 / partitions;
}

/* Where a first value of a hierarchical key lies. */
struct head {
    uint64_t first;  /* names its first partition */
    uint32_t spread; /* how many it has, */
    double share;    /* by this part of what is stored, */
    bool large;      /* which it keeps however much there is */
};

static struct head head_find(struct walk *walk, const advise_value *values)
{
    struct head head = {.first = head_of(walk, values)};
    double partitions = walk->load.partitions;

    if (walk->heads.all > 0)
        head.share = tally_find(&walk->heads.bytes, head.first)->amount / walk->heads.all;
    head.spread = (uint32_t)spread_of(head.share, partitions);
    head.large = is_large(head.share, (double)walk->heads.items, partitions);
    return head;
}

/* What an operation costs at each scale. head: what it asks of a hierarchical key; NULL: else. */
static void scales_add(struct walk *walk, const struct advise_visit *visit, const struct head *head,
                       double weight)
{
    double asked = (double)cost_model.query_partition / 10000, partitions = walk->load.partitions;

    for (size_t i = 0; i < ADVISE_SCALES; i++) {
        double scale = advise_scales[i],
               cru = (double)visit->cru + (scale - 1) * (double)visit->grows_cru;

        if (head && head->large)
            cru += asked * (spread_of(head->share, partitions * scale) - head->spread);
        walk->scaled[i] += weight * cru;
    }
}

static void operation_add(struct walk *walk, const struct advise_operation *operation,
                          struct random *random)
{
    struct advise_visit visit =
        advise_visit_of(walk->key, operation, &walk->options, random_next(random));
    struct load *load = &walk->load;
    int64_t work = work_cru(operation, &walk->options);
    double weight = operation->weight;
    bool prefix = visit.known == ADVISE_KNOWN_PREFIX;
    uint64_t place = visit.key, beside = 0;
    struct head head;

    if (walk->key->kind == ADVISE_HIERARCHICAL && visit.known >= ADVISE_KNOWN_PREFIX) {
        head = head_find(walk, operation->values);
        place = head.first;
        if (prefix) {
            visit.partitions = head.spread;
            visit.cru += (int64_t)(head.spread - 1) * (cost_model.query_partition / 10000);
        } else {
            beside = visit.key % head.spread;
        }
    }
    scales_add(walk, &visit, prefix ? &head : NULL, weight);
    load_deal(load, operation->time_ms, place, beside, visit.partitions,
              weight * (double)visit.cru);
    walk->cru += weight * (double)visit.cru;
    walk->fan_out_cru += weight * (double)(visit.cru - work);
    walk->weight += weight;
    walk->figures->everywhere += visit.grows_cru ? weight : 0;
    if (visit.partitions == 1) {
        struct tally_slot *slot = tally_find(&walk->by_key, visit.key);

        slot->amount += weight * (double)visit.cru;
        slot->values = operation->values;
        tally_find(&walk->by_window, visit.key)->amount += weight * (double)visit.cru;
        walk->figures->one_physical += weight;
        walk->figures->one_logical += visit.known == ADVISE_KNOWN_WHOLE ? weight : 0;
    }
}

static void operations_walk(struct walk *walk)
{
    size_t count, window = 0;
    const struct advise_operation *operations = advise_workload_operations(walk->workload, &count);
    struct random random;

    random_seed(&random, 7);
    for (size_t i = 0; i < count; i++) {
        size_t at = load_window(&walk->load, operations[i].time_ms);

        if (at != window)
            window_close(walk);
        window = at;
        if (walk->key->kind == ADVISE_HIERARCHICAL)
            heads_advance(walk, operations[i].time_ms);
        operation_add(walk, &operations[i], &random);
    }
    window_close(walk);
    if (!count)
        return;
    walk->figures->one_physical /= walk->weight;
    walk->figures->one_logical /= walk->weight;
    walk->figures->everywhere /= walk->weight;
    walk->figures->fan_out = walk->cru > 0 ? walk->fan_out_cru / walk->cru : 0;
    for (size_t i = 0; i < ADVISE_SCALES; i++)
        walk->figures->ru_each[i] = walk->scaled[i] / walk->weight / 100;
}

/* The geometric mean over the scales of what is needed there, over what is needed today for as much
 * as there is then: what asking more partitions adds, and what a value adds that is too large for
 * its partition already. */
static double growth_of_needs(const struct walk *walk)
{
    const struct advise_figures *f = walk->figures;
    double partitions = walk->load.partitions, product = 1, today;
    size_t count;

    (void)advise_workload_operations(walk->workload, &count);
    if (!(f->ru_each[0] > 0) || !(f->ru_per_second_ideal > 0))
        return 1;
    today = fmax(f->ru_per_second / f->ru_per_second_ideal, 1);
    for (size_t i = 0; i < ADVISE_SCALES; i++) {
        product *= f->ru_each[i] / f->ru_each[0];
        if (is_large(f->ru_top, (double)count, partitions))
            product *= fmax(today, f->ru_top * partitions * advise_scales[i]) / today;
    }
    return pow(product, 1.0 / ADVISE_SCALES);
}

/* --- Storage --------------------------------------------------------------------------------- */

/* The largest value's bytes, and how they grow: by what came in the last quarter of the time. */
static void growth_judge(const struct advise_workload *workload, const struct tally_slot *top,
                         const struct advise_options *options, struct advise_figures *figures)
{
    size_t count;
    const struct advise_item *items = advise_workload_items(workload, &count);
    double scale = (double)advise_workload_items_seen(workload) / (double)count;
    int64_t begin = items[0].time_ms, end = items[count - 1].time_ms;
    double quarter_days = (double)(end - begin) / 4 / DAY_MS, limit;

    figures->bytes_top = top->amount * scale;
    figures->full = figures->bytes_top / (double)options->logical_bytes_max;
    figures->days_to_limit = HUGE_VAL;
    limit = (double)options->logical_bytes_max - figures->bytes_top;
    if (limit <= 0)
        figures->days_to_limit = 0;
    else if (begin > 0 && quarter_days * 4 * DAY_MS >= FORECAST_MS_MIN && top->late > 0)
        figures->days_to_limit = limit / (top->late * scale / quarter_days * options->load);
}

static void items_walk(const struct walk *walk)
{
    CLEANUP(tally_done) struct tally tally;
    size_t count, missing = 0;
    const struct advise_item *items = advise_workload_items(walk->workload, &count);
    int64_t late_ms =
        count ? items[count - 1].time_ms - (items[count - 1].time_ms - items[0].time_ms) / 4 : 0;
    struct random random;

    random_seed(&random, 11);
    tally_init(&tally, count);
    for (size_t i = 0; i < count; i++) {
        struct tally_slot *slot =
            tally_find(&tally, advise_key_of(walk->key, items[i].values, random_next(&random)));
        bool is_missing = false;

        slot->amount += items[i].bytes;
        slot->late += items[i].time_ms > late_ms ? items[i].bytes : 0;
        slot->values = items[i].values;
        for (size_t p = 0; p < walk->key->path_count; p++)
            is_missing |= !items[i].values[walk->key->paths[p]];
        missing += is_missing;
    }
    walk->figures->keys = tally.count;
    if (!count)
        return;
    tally_sort(&tally);
    walk->figures->storage_top = tally.slots[0].amount / tally_sum(&tally);
    walk->figures->storage_gini = tally_gini(&tally);
    walk->figures->top_storage = tally.slots[0].values;
    walk->figures->missing = (double)missing / (double)count;
    growth_judge(walk->workload, &tally.slots[0], &walk->options, walk->figures);
}

/* --- Transactions and counters --------------------------------------------------------------- */

struct member {
    uint32_t transaction;
    uint64_t key;
};

static int by_transaction(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return (x->transaction > y->transaction) - (x->transaction < y->transaction);
}

static double transactions_split(const struct walk *walk)
{
    size_t count, members_count = 0, total = 0, split = 0;
    const struct advise_operation *operations = advise_workload_operations(walk->workload, &count);
    CLEANUP(memory_free)
    struct member *members = memory_alloc(memory_array_size(count + 1, sizeof *members));
    struct random random;

    random_seed(&random, 13);
    for (size_t i = 0; i < count; i++)
        if (operations[i].transaction)
            members[members_count++] = (struct member){
                operations[i].transaction,
                advise_key_of(walk->key, operations[i].values, random_next(&random))};
    qsort(members, members_count, sizeof *members, by_transaction);
    for (size_t i = 0; i < members_count;) {
        size_t next = i + 1;
        bool whole = true;

        for (; next < members_count && members[next].transaction == members[i].transaction; next++)
            whole &= members[next].key == members[i].key;
        total++;
        split += !whole;
        i = next;
    }
    return total ? (double)split / (double)total : 0;
}

/* A number, or the one a text ends in: what an order number is besides its prefix. */
static bool number_of(const struct document_value *value, int64_t *ret_number)
{
    size_t digits = 0;

    if (document_is_number(value))
        return document_to_int64(value, ret_number);
    if (value->type != DOCUMENT_STRING)
        return false;
    *ret_number = 0;
    while (digits < value->text.len && digits < 18 &&
           value->text.data[value->text.len - 1 - digits] >= '0' &&
           value->text.data[value->text.len - 1 - digits] <= '9')
        digits++;
    for (size_t i = value->text.len - digits; i < value->text.len; i++)
        *ret_number = *ret_number * 10 + (value->text.data[i] - '0');
    return digits > 0;
}

enum { GROWTH_ITEMS_MIN = 8, GROWTH_PERCENT = 95 };

/* Do values become larger in the order of creation, and is each a number of its own? Equal values
 * that follow one another say nothing: a day has many items. */
static void growth_of_values(const struct walk *walk)
{
    size_t count, follows = 0, counts = 0, numbers = 0, bare = 0, steps = 0;
    const struct advise_item *items = advise_workload_items(walk->workload, &count);
    CLEANUP(buf_done) struct buf last;
    CLEANUP(buf_done) struct buf next;
    int64_t last_number = 0, number;

    buf_init(&last, BUF_DEFAULT_MAX);
    buf_init(&next, BUF_DEFAULT_MAX);
    if (walk->key->kind != ADVISE_PROPERTY || count < GROWTH_ITEMS_MIN)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct document_value *value =
            advise_workload_value(walk->workload, items[i].values[walk->key->paths[0]]);

        buf_clear(&next);
        document_key_append(DOCUMENT_ORDER_SQL, value, &next);
        if (number_of(value, &number)) {
            bare += document_is_number(value);
            counts += numbers && number > last_number;
            numbers++;
            last_number = number;
        }
        if (i && items[i].time_ms && !slice_equal(buf_slice(&last), buf_slice(&next))) {
            steps++;
            follows += slice_compare(buf_slice(&last), buf_slice(&next)) < 0;
        }
        buf_clear(&last);
        buf_append_slice(&last, buf_slice(&next));
    }
    walk->figures->grows = steps >= 2 && follows * 100 >= steps * GROWTH_PERCENT;
    walk->figures->counter = numbers == count && walk->figures->keys + 1 >= count &&
                             counts * 100 >= (numbers - 1) * GROWTH_PERCENT;
    walk->figures->counter_bare = walk->figures->counter && bare == count;
}

void advise_evaluate(const struct advise_workload *workload, const struct advise_key *key,
                     const struct advise_options *options, struct advise_figures *ret_figures)
{
    struct walk walk = {.workload = workload,
                        .key = key,
                        .options = advise_options_complete(options),
                        .figures = ret_figures};
    size_t count, path_count, item_count;
    const struct advise_path *paths = advise_workload_paths(workload, &path_count);
    double scale;

    *ret_figures = (struct advise_figures){.days_to_limit = HUGE_VAL, .growth = 1};
    (void)advise_workload_operations(workload, &count);
    load_init(&walk.load, workload, walk.options.partitions);
    tally_init(&walk.by_key, count);
    tally_init(&walk.by_window, load_window_most(&walk.load, workload));
    (void)advise_workload_items(workload, &item_count);
    tally_init(&walk.heads.bytes, item_count + count); /* operations may bring other values */
    operations_walk(&walk);
    items_walk(&walk);
    tally_sort(&walk.by_key);
    if (walk.by_key.count && tally_sum(&walk.by_key) > 0) {
        ret_figures->ru_top = walk.by_key.slots[0].amount / tally_sum(&walk.by_key);
        ret_figures->top_ru = walk.by_key.slots[0].values;
        ret_figures->ru_gini = tally_gini(&walk.by_key);
        ret_figures->window_top = walk.windows_top / walk.windows_all;
        ret_figures->moves =
            ret_figures->window_top > 0.1 && ret_figures->window_top > 3 * ret_figures->ru_top;
    }
    scale = load_scale(workload, &walk.options);
    ret_figures->ru_per_second_ideal = walk.options.ru_per_second_ideal > 0
                                           ? walk.options.ru_per_second_ideal
                                           : advise_ideal(workload, &walk.options);
    /* A key that was luckier than chance needs no less. */
    ret_figures->ru_per_second =
        fmax(scale * load_needed(&walk.load), ret_figures->ru_per_second_ideal);
    ret_figures->growth = growth_of_needs(&walk);
    ret_figures->key_ru_per_second =
        scale * walk.key_top / 100 / ((double)walk.load.window_ms / 1000);
    for (size_t i = 0; i < key->path_count; i++)
        ret_figures->changed += (double)paths[key->paths[i]].changed;
    if (key->kind == ADVISE_COMPUTED_SUFFIX)
        ret_figures->changed += (double)paths[key->hashed].changed;
    ret_figures->transactions_split = transactions_split(&walk);
    growth_of_values(&walk);
    load_done(&walk.load);
    tally_done(&walk.by_key);
    tally_done(&walk.by_window);
    tally_done(&walk.heads.bytes);
}
