/* A container has one of a few places in a small table, by its number; where all of them are taken,
 * the one longest unused is given away, but none that was asked for within the last seconds: with
 * more containers in use than places, some are recorded and the others cost next to nothing. A
 * place has a ring of records, each one BSON document on the heap, and a lock that is held while
 * one is put in or they are copied out. Whether to record is decided without it, from a counter of
 * the present second; only where somebody was refused lately, an attempt is sought among those
 * under the lock.
 *
 * Records have sequence numbers, so that a later attempt finds the record of the first and takes
 * its place in the ring, and so that who copies them knows which are new. They grow over all that
 * one container is ever given: the upper half counts the places given away. */
#include "advise/traffic.h"

#include "advise/nature.h"
#include "advise/records.h"
#include "advise/refusals.h"
#include "base/random.h"
#include "base/thread.h"
#include "document/bson.h"
#include "document/order.h"

#include <stdatomic.h>
#include <xxhash.h>

enum {
    BYTES_PRESET = 8 * 1024 * 1024,
    CONTAINERS_PRESET = 64,
    PER_SECOND_PRESET = 100,
    RECORDS_MAX = 65536, /* of one container */
    SCALARS_MAX = 48,    /* kept of one document */
    TEXT_MAX = 128,
    DEPTH_MAX = 3,
    LOOKS = 8,       /* places a container may have */
    IDLE_MS = 10000, /* after which another may have it */
    GIVING_BITS = 32,
};

struct place {
    atomic_uint_fast64_t container; /* 0: free */
    atomic_int_fast64_t second;     /* that is counted, */
    atomic_uint_fast32_t count;     /* operations in it so far */
    atomic_uint_fast32_t shift;     /* one of 2^shift is recorded, */
    atomic_uint_fast32_t turn;      /* by this count of all operations, so that none is too many */
    atomic_int_fast64_t used;       /* when it was last asked for */
    atomic_int_fast64_t awaits_ms;  /* until when somebody refused may come again */

    struct mutex lock; /* of what follows */
    uint8_t **records;
    size_t first, kept, bytes;
    uint64_t first_sequence;   /* of the record at first */
    struct refusals *refusals; /* NULL: nobody was refused yet */
};

struct traffic {
    struct traffic_options options;
    uint64_t seed;
    struct place *places;
    struct mutex lock; /* of giving places away, and of: */
    uint64_t givings;
};

static void record_drop(struct place *place)
{
    place->bytes -= record_size(place->records[place->first]);
    memory_free(place->records[place->first]);
    place->first = (place->first + 1) % RECORDS_MAX;
    place->first_sequence++;
    place->kept--;
}

static void place_clear(struct place *place)
{
    while (place->kept)
        record_drop(place);
    refusals_free(place->refusals);
    place->refusals = NULL;
    atomic_store(&place->awaits_ms, 0);
}

struct traffic *traffic_new(const struct traffic_options *options)
{
    struct traffic *traffic = MEMORY_NEW(struct traffic);

    if (options)
        traffic->options = *options;
    if (!traffic->options.bytes_max)
        traffic->options.bytes_max = BYTES_PRESET;
    if (!traffic->options.containers_max)
        traffic->options.containers_max = CONTAINERS_PRESET;
    if (!traffic->options.per_second_max)
        traffic->options.per_second_max = PER_SECOND_PRESET;
    traffic->seed = traffic->options.seed;
    if (!traffic->seed)
        random_secret(&traffic->seed, sizeof traffic->seed);
    mutex_init(&traffic->lock);
    traffic->places = memory_alloc_zero(
        memory_array_size(traffic->options.containers_max, sizeof *traffic->places));
    for (size_t i = 0; i < traffic->options.containers_max; i++)
        mutex_init(&traffic->places[i].lock);
    return traffic;
}

void traffic_free(struct traffic *traffic)
{
    if (!traffic)
        return;
    for (size_t i = 0; i < traffic->options.containers_max; i++) {
        place_clear(&traffic->places[i]);
        memory_free(traffic->places[i].records);
        mutex_done(&traffic->places[i].lock);
    }
    mutex_done(&traffic->lock);
    memory_free(traffic->places);
    memory_free(traffic);
}

/* --- Places ---------------------------------------------------------------------------------- */

/* The first looks are the likely ones. */
static struct place *place_find(struct traffic *traffic, uint64_t container)
{
    size_t count = traffic->options.containers_max, at = (size_t)(container % count);

    for (size_t i = 0; i < MIN(count, (size_t)LOOKS); i++) {
        struct place *place = &traffic->places[(at + i) % count];

        if (atomic_load_explicit(&place->container, memory_order_acquire) == container)
            return place;
    }
    return NULL;
}

static bool place_is_idle(const struct place *place, int64_t now_ms)
{
    return !atomic_load(&place->container) || now_ms - atomic_load(&place->used) >= IDLE_MS;
}

/* NULL: all it could have are in use. */
static struct place *place_choose(struct traffic *traffic, uint64_t container, int64_t now_ms)
{
    size_t count = traffic->options.containers_max, at = (size_t)(container % count);
    struct place *oldest = NULL;

    for (size_t i = 0; i < MIN(count, (size_t)LOOKS); i++) {
        struct place *place = &traffic->places[(at + i) % count];

        if (!place_is_idle(place, now_ms))
            continue;
        if (!atomic_load(&place->container))
            return place;
        if (!oldest || atomic_load(&place->used) < atomic_load(&oldest->used))
            oldest = place;
    }
    return oldest;
}

/* Under the lock of all. */
static void place_give(struct traffic *traffic, struct place *place, uint64_t container,
                       int64_t now_ms)
{
    mutex_lock(&place->lock);
    place_clear(place);
    place->first_sequence = ++traffic->givings << GIVING_BITS;
    if (!place->records)
        place->records = memory_alloc(RECORDS_MAX * sizeof *place->records);
    atomic_store(&place->shift, 0);
    atomic_store(&place->count, 0);
    atomic_store(&place->turn, 0);
    atomic_store(&place->used, now_ms);
    atomic_store_explicit(&place->container, container, memory_order_release);
    mutex_unlock(&place->lock);
}

static struct place *place_take(struct traffic *traffic, uint64_t container, int64_t now_ms)
{
    struct place *place;

    if (!place_choose(traffic, container, now_ms)) /* without the lock: most often there is none */
        return NULL;
    mutex_lock(&traffic->lock);
    place = place_find(traffic, container);
    if (!place) {
        place = place_choose(traffic, container, now_ms);
        if (place)
            place_give(traffic, place, container, now_ms);
    }
    mutex_unlock(&traffic->lock);
    return place;
}

/* A second is over: by what it brought, how many of the next one's are recorded. */
static void second_begin(const struct traffic *traffic, struct place *place, int64_t second)
{
    uint32_t count = (uint32_t)atomic_exchange(&place->count, 0), shift = 0;

    while (count >> shift > traffic->options.per_second_max)
        shift++;
    atomic_store(&place->shift, shift);
    atomic_store(&place->second, second);
}

/* What the next operation counts for; 0: it is not recorded. That a second is a rush is known when
 * it is over: until then each doubling of what came doubles what is left out. */
static uint32_t sample(const struct traffic *traffic, struct place *place, int64_t now_ms)
{
    int64_t second = now_ms / 1000;
    uint32_t shift, count, turn;

    if (atomic_load_explicit(&place->second, memory_order_relaxed) != second) {
        second_begin(traffic, place, second);
        atomic_store_explicit(&place->used, now_ms, memory_order_relaxed);
    }
    shift = (uint32_t)atomic_load_explicit(&place->shift, memory_order_relaxed);
    count = (uint32_t)atomic_fetch_add_explicit(&place->count, 1, memory_order_relaxed);
    turn = (uint32_t)atomic_fetch_add_explicit(&place->turn, 1, memory_order_relaxed);
    while (count >> shift >= 2 * traffic->options.per_second_max)
        shift++;
    return turn & ((1u << shift) - 1) ? 0 : 1u << shift;
}

/* The same, or what was decided for its transaction. */
static uint32_t attempt_sample(const struct traffic *traffic, struct place *place,
                               const struct traffic_attempt *attempt)
{
    if (!attempt->weight)
        return sample(traffic, place, attempt->now_ms);
    if (*attempt->weight == TRAFFIC_UNDECIDED)
        *attempt->weight = sample(traffic, place, attempt->now_ms);
    return *attempt->weight;
}

static bool place_awaits(const struct place *place, int64_t now_ms)
{
    return now_ms <= atomic_load_explicit(&place->awaits_ms, memory_order_relaxed);
}

bool traffic_awaits(struct traffic *traffic, uint64_t container, int64_t now_ms)
{
    const struct place *place = place_find(traffic, container);

    return place && place_awaits(place, now_ms);
}

/* Under the lock: is it a second attempt? */
static bool attempt_find(const struct place *place, const struct traffic_attempt *attempt,
                         struct traffic_wish *wish)
{
    struct refusal before;

    if (!place->refusals ||
        !refusals_take(place->refusals, attempt->ticket, attempt->now_ms, &before))
        return false;
    *wish = (struct traffic_wish){.weight = before.weight,
                                  .refused = before.count,
                                  .first_ms = before.first_ms,
                                  .sequence = before.sequence};
    return true;
}

/* Under the lock: it may come again. */
static void attempt_await(struct place *place, const struct traffic_attempt *attempt,
                          struct traffic_wish *wish)
{
    int64_t due_ms = attempt->now_ms + attempt->wait_ms;

    if (!place->refusals)
        place->refusals = refusals_new();
    wish->refused++;
    wish->ticket = attempt->ticket;
    wish->place = refusals_add(place->refusals,
                               &(struct refusal){.ticket = attempt->ticket,
                                                 .sequence = wish->sequence,
                                                 .first_ms = wish->first_ms,
                                                 .due_ms = due_ms,
                                                 .weight = wish->weight,
                                                 .count = wish->refused},
                               attempt->now_ms);
    if (due_ms + REFUSALS_LATE_MS > atomic_load(&place->awaits_ms))
        atomic_store(&place->awaits_ms, due_ms + REFUSALS_LATE_MS);
}

struct traffic_wish traffic_wants(struct traffic *traffic, uint64_t container,
                                  const struct traffic_attempt *attempt)
{
    struct place *place = place_find(traffic, container);
    struct traffic_wish wish = {.first_ms = attempt->now_ms};

    if (!place) {
        place = place_take(traffic, container, attempt->now_ms);
        if (!place)
            return wish;
    }
    if (!attempt->ticket || (!attempt->refused && !place_awaits(place, attempt->now_ms))) {
        wish.weight = attempt_sample(traffic, place, attempt);
        wish.refused = attempt->refused;
        return wish;
    }
    mutex_lock(&place->lock);
    if (atomic_load(&place->container) == container) {
        if (!attempt_find(place, attempt, &wish))
            wish.weight = attempt_sample(traffic, place, attempt);
        if (attempt->refused)
            attempt_await(place, attempt, &wish);
    }
    mutex_unlock(&place->lock);
    return wish;
}

void traffic_forget(struct traffic *traffic, uint64_t container)
{
    struct place *place;

    mutex_lock(&traffic->lock);
    place = place_find(traffic, container);
    if (place) {
        mutex_lock(&place->lock);
        place_clear(place);
        atomic_store(&place->container, 0);
        mutex_unlock(&place->lock);
    }
    mutex_unlock(&traffic->lock);
}

/* --- Records --------------------------------------------------------------------------------- */

/* Appends a scalar as it is kept. */
static void scalar_append(const struct traffic *traffic, struct slice key,
                          const struct document_value *value, struct buf *out)
{
    if (traffic->options.hashed) {
        CLEANUP(buf_done) struct buf bytes;
        CLEANUP(buf_done) struct buf mark;

        buf_init(&bytes, BUF_DEFAULT_MAX);
        buf_init(&mark, BUF_DEFAULT_MAX);
        document_key_append(DOCUMENT_ORDER_SQL, value, &bytes);
        advise_nature_mark(advise_nature_of(value),
                           XXH3_64bits_withSeed(bytes.data, bytes.len, traffic->seed), &mark);
        document_append_string(out, key, buf_slice(&mark));
    } else if (value->type == DOCUMENT_STRING && value->text.len > TEXT_MAX) {
        size_t len = TEXT_MAX;

        while (len && (value->text.data[len] & 0xC0) == 0x80) /* between characters */
            len--;
        document_append_string(out, key, slice_first(value->text, len));
    } else {
        document_append(out, key, value);
    }
}

/* The scalars of a document, objects as they nest; arrays stand as empty ones, for they cannot be
 * keys and the advisor should know. */
static void scalars_append(const struct traffic *traffic, struct slice document, unsigned depth,
                           size_t *left, struct buf *out)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (*left && document_iter_next(&iter)) {
        size_t begin;

        if (depth == 0 && iter.key.len && iter.key.data[0] == '_')
            continue;
        --*left;
        if (iter.value.type == DOCUMENT_ARRAY) {
            begin = document_append_array_begin(out, iter.key);
            document_end(out, begin);
        } else if (iter.value.type == DOCUMENT_OBJECT) {
            begin = document_append_object_begin(out, iter.key);
            if (depth + 1 < DEPTH_MAX)
                scalars_append(traffic, iter.value.document, depth + 1, left, out);
            document_end(out, begin);
        } else {
            scalar_append(traffic, iter.key, &iter.value, out);
        }
    }
}

static void document_part(const struct traffic *traffic, struct slice name, struct slice document,
                          struct buf *out)
{
    size_t left = SCALARS_MAX, begin;

    if (!document.data)
        return;
    begin = document_append_object_begin(out, name);
    scalars_append(traffic, document, 0, &left, out);
    document_end(out, begin);
}

static void array_part(struct slice name, struct slice array, struct buf *out)
{
    struct document_value value = document_array(array);

    if (array.data)
        document_append(out, name, &value);
}

/* The names are those of a line of operations, so that a record is one. */
static void record_write(const struct traffic *traffic, const struct traffic_wish *wish,
                         const struct advise_operation_parts *parts, struct buf *out)
{
    size_t begin = document_begin(out);
    char identity[17];

    document_append_int64(out, SLICE("t"), wish->first_ms);
    document_append_string(out, SLICE("op"),
                           slice_of_text(advise_operation_kind_name(parts->kind)));
    document_append_double(out, SLICE("ru"), (double)parts->cru / 100);
    if (parts->ms > 0)
        document_append_double(out, SLICE("ms"), parts->ms);
    document_append_int64(out, SLICE("bytes"), parts->bytes);
    if (wish->weight > 1)
        document_append_int64(out, SLICE("weight"), wish->weight);
    if (wish->refused)
        document_append_int64(out, SLICE("refused"), wish->refused);
    if (parts->failed) {
        document_append_bool(out, SLICE("failed"), true);
        document_append_int64(out, SLICE("due"), parts->due_ms);
    }
    if (parts->identity) {
        (void)snprintf(identity, sizeof identity, "%016llx", (unsigned long long)parts->identity);
        document_append_string(out, SLICE("identity"), slice_of_text(identity));
    }
    document_part(traffic, SLICE("item"), parts->item, out);
    document_part(traffic, SLICE("before"), parts->before, out);
    document_part(traffic, SLICE("where"), parts->where, out);
    array_part(SLICE("ranges"), parts->ranges, out);
    array_part(SLICE("changed"), parts->changed, out);
    if (parts->transaction.len)
        document_append_string(out, SLICE("transaction"), parts->transaction);
    document_end(out, begin);
}

/* Under the lock; takes the record over. */
static void record_append(const struct traffic *traffic, struct place *place,
                          const struct traffic_wish *wish, uint8_t *record)
{
    uint32_t size = record_size(record);

    while (place->kept == RECORDS_MAX ||
           (place->kept && place->bytes + size > traffic->options.bytes_max))
        record_drop(place);
    if (wish->ticket && place->refusals)
        refusals_set_sequence(place->refusals, wish->place, wish->ticket,
                              place->first_sequence + place->kept);
    place->records[(place->first + place->kept++) % RECORDS_MAX] = record;
    place->bytes += size;
}

/* The same, in the place of the one before, unless that has made way for newer ones already. */
static void record_replace(struct place *place, uint64_t sequence, uint8_t *record)
{
    size_t at;

    if (sequence < place->first_sequence || sequence >= place->first_sequence + place->kept) {
        memory_free(record);
        return;
    }
    at = (place->first + (size_t)(sequence - place->first_sequence)) % RECORDS_MAX;
    place->bytes -= record_size(place->records[at]);
    place->bytes += record_size(record);
    memory_free(place->records[at]);
    place->records[at] = record;
}

void traffic_note(struct traffic *traffic, uint64_t container, const struct traffic_wish *wish,
                  const struct advise_operation_parts *parts)
{
    CLEANUP(buf_done) struct buf record;
    struct place *place = place_find(traffic, container);
    uint8_t *bytes;
    size_t size;

    buf_init(&record, 64 * 1024);
    record_write(traffic, wish, parts, &record);
    if (!place || buf_overflowed(&record))
        return;
    bytes = buf_take(&record, &size);
    mutex_lock(&place->lock);
    if (atomic_load(&place->container) != container) /* it was given away just now */
        memory_free(bytes);
    else if (wish->sequence)
        record_replace(place, wish->sequence, bytes);
    else
        record_append(traffic, place, wish, bytes);
    mutex_unlock(&place->lock);
}

/* --- Reading --------------------------------------------------------------------------------- */

uint64_t traffic_copy(struct traffic *traffic, uint64_t container, uint64_t after, struct buf *out)
{
    struct place *place = place_find(traffic, container);
    uint64_t last = after;

    if (!place)
        return last;
    mutex_lock(&place->lock);
    if (atomic_load(&place->container) == container) {
        size_t skipped = 0;

        if (after >= place->first_sequence)
            skipped = MIN((size_t)(after - place->first_sequence) + 1, place->kept);
        for (size_t i = skipped; i < place->kept; i++) {
            const uint8_t *record = place->records[(place->first + i) % RECORDS_MAX];

            buf_append(out, record, record_size(record));
        }
        if (place->kept > skipped)
            last = place->first_sequence + place->kept - 1;
    }
    mutex_unlock(&place->lock);
    return last;
}

size_t traffic_read(struct traffic *traffic, uint64_t container, struct advise_workload *workload)
{
    CLEANUP(buf_done) struct buf copy;

    buf_init(&copy, SIZE_MAX / 2);
    (void)traffic_copy(traffic, container, 0, &copy);
    return records_read(buf_slice(&copy), workload);
}

size_t traffic_containers(struct traffic *traffic, uint64_t *ret_containers, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < traffic->options.containers_max && count < max; i++) {
        uint64_t container = atomic_load(&traffic->places[i].container);

        if (container)
            ret_containers[count++] = container;
    }
    return count;
}

size_t traffic_containers_max(const struct traffic *traffic)
{
    return traffic->options.containers_max;
}

void traffic_item(struct traffic *traffic, struct advise_workload *workload, struct slice document,
                  uint32_t bytes, int64_t time_ms)
{
    CLEANUP(buf_done) struct buf kept;
    size_t left = SCALARS_MAX, begin;

    buf_init(&kept, 64 * 1024);
    begin = document_begin(&kept);
    scalars_append(traffic, document, 0, &left, &kept);
    document_end(&kept, begin);
    if (!buf_overflowed(&kept))
        advise_workload_item(workload, buf_slice(&kept), bytes, time_ms);
}

void traffic_lines(struct traffic *traffic, uint64_t container, size_t max, struct buf *out)
{
    CLEANUP(buf_done) struct buf copy;

    buf_init(&copy, SIZE_MAX / 2);
    (void)traffic_copy(traffic, container, 0, &copy);
    records_lines(buf_slice(&copy), max, out);
}
