/* Format 1. Numbers are of 7 bits a byte, the lowest first, the top bit set in all but the last.
 *
 *     1 byte  1
 *     number of partitions; for each
 *         partition, figures, number of classes of times that are not empty; for each class
 *             1 byte class, count
 *     number of keys; for each
 *         partition, 2 x length + 1 if it is cut, the bytes, figures
 *
 * Figures: charge in hundredths of an RU, requests, throttled, bytes in, bytes out, time in us, the
 * longest in us. */
#include "heat/record.h"

enum { FORMAT = 1, NUMBER_BYTES_MAX = 10 };

void heat_record_init(struct heat_record *record, struct arena *arena)
{
    *record = (struct heat_record){.arena = arena};
}

/* --- Building -------------------------------------------------------------------------------- */

/* Room for one more at a place of an array in the arena. */
static void *array_open(struct arena *arena, void *array, size_t *count, size_t *capacity,
                        size_t size, size_t place)
{
    uint8_t *bytes = array;

    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 8;
        bytes = arena_alloc(arena, memory_array_size(*capacity, size));
        if (*count)
            memcpy(bytes, array, *count * size);
    }
    if (place < *count)
        memmove(bytes + (place + 1) * size, bytes + place * size, (*count - place) * size);
    memset(bytes + place * size, 0, size);
    ++*count;
    return bytes;
}

static void numbers_again(struct statistics_numbers *to, const struct statistics_numbers *from)
{
    to->cru = MAX(to->cru, from->cru);
    to->requests = MAX(to->requests, from->requests);
    to->throttled = MAX(to->throttled, from->throttled);
    to->bytes_in = MAX(to->bytes_in, from->bytes_in);
    to->bytes_out = MAX(to->bytes_out, from->bytes_out);
    to->time_us = MAX(to->time_us, from->time_us);
    to->time_us_max = MAX(to->time_us_max, from->time_us_max);
}

static void numbers_meet(struct statistics_numbers *to, const struct statistics_numbers *from,
                         enum heat_meeting meeting)
{
    if (meeting == HEAT_SUM)
        statistics_numbers_add(to, from);
    else
        numbers_again(to, from);
}

static void times_meet(struct statistics_times *to, const struct statistics_times *from,
                       enum heat_meeting meeting)
{
    for (size_t i = 0; i < STATISTICS_TIMES; i++) {
        uint32_t a = to->counts[i], b = from->counts[i];

        if (meeting == HEAT_AGAIN)
            to->counts[i] = MAX(a, b);
        else
            to->counts[i] = a > UINT32_MAX - b ? UINT32_MAX : a + b;
    }
}

void heat_record_put_span(struct heat_record *record, const struct heat_span *span,
                          enum heat_meeting meeting)
{
    size_t low = 0, high = record->span_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (record->spans[middle].partition < span->partition)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == record->span_count || record->spans[low].partition != span->partition) {
        record->spans = array_open(record->arena, record->spans, &record->span_count,
                                   &record->span_capacity, sizeof *record->spans, low);
        record->spans[low].partition = span->partition;
    }
    numbers_meet(&record->spans[low].numbers, &span->numbers, meeting);
    times_meet(&record->spans[low].times, &span->times, meeting);
}

static int key_order(const struct heat_key *a, const struct heat_key *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return slice_compare(a->key, b->key);
}

void heat_record_put_key(struct heat_record *record, const struct heat_key *key,
                         enum heat_meeting meeting)
{
    struct heat_key kept = *key;
    size_t place = 0;

    kept.cut = key->cut || key->key.len > HEAT_KEY_BYTES_MAX;
    kept.key = slice_first(key->key, MIN(key->key.len, (size_t)HEAT_KEY_BYTES_MAX));
    while (place < record->key_count && key_order(&record->keys[place], &kept) < 0)
        place++;
    if (place == record->key_count || key_order(&record->keys[place], &kept) != 0) {
        record->keys = array_open(record->arena, record->keys, &record->key_count,
                                  &record->key_capacity, sizeof *record->keys, place);
        record->keys[place] = (struct heat_key){.partition = kept.partition,
                                                .key = arena_copy(record->arena, kept.key),
                                                .cut = kept.cut};
    }
    numbers_meet(&record->keys[place].numbers, &kept.numbers, meeting);
}

void heat_record_put_all(struct heat_record *record, const struct heat_record *from,
                         enum heat_meeting meeting)
{
    for (size_t i = 0; i < from->span_count; i++)
        heat_record_put_span(record, &from->spans[i], meeting);
    for (size_t i = 0; i < from->key_count; i++)
        heat_record_put_key(record, &from->keys[i], meeting);
}

static int hotter_first(const void *left, const void *right)
{
    const struct heat_key *a = left, *b = right;

    if (a->numbers.cru != b->numbers.cru)
        return a->numbers.cru > b->numbers.cru ? -1 : 1;
    if (a->numbers.throttled != b->numbers.throttled)
        return a->numbers.throttled > b->numbers.throttled ? -1 : 1;
    return key_order(a, b);
}

static int by_key(const void *left, const void *right)
{
    return key_order(left, right);
}

void heat_record_trim(struct heat_record *record)
{
    if (record->key_count <= HEAT_KEYS_MAX)
        return;
    qsort(record->keys, record->key_count, sizeof *record->keys, hotter_first);
    record->key_count = HEAT_KEYS_MAX;
    qsort(record->keys, record->key_count, sizeof *record->keys, by_key);
}

/* --- Bytes ----------------------------------------------------------------------------------- */

static void number_append(struct buf *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(out, (uint8_t)(number | 0x80));
    buf_append_byte(out, (uint8_t)number);
}

static void figures_append(struct buf *out, const struct statistics_numbers *numbers)
{
    number_append(out, (uint64_t)numbers->cru);
    number_append(out, numbers->requests);
    number_append(out, numbers->throttled);
    number_append(out, numbers->bytes_in);
    number_append(out, numbers->bytes_out);
    number_append(out, numbers->time_us);
    number_append(out, numbers->time_us_max);
}

static void times_append(struct buf *out, const struct statistics_times *times)
{
    unsigned used = 0;

    for (unsigned i = 0; i < STATISTICS_TIMES; i++)
        used += times->counts[i] != 0;
    number_append(out, used);
    for (unsigned i = 0; i < STATISTICS_TIMES; i++)
        if (times->counts[i]) {
            buf_append_byte(out, (uint8_t)i);
            number_append(out, times->counts[i]);
        }
}

void heat_record_append(const struct heat_record *record, struct buf *out)
{
    buf_append_byte(out, FORMAT);
    number_append(out, record->span_count);
    for (size_t i = 0; i < record->span_count; i++) {
        number_append(out, record->spans[i].partition);
        figures_append(out, &record->spans[i].numbers);
        times_append(out, &record->spans[i].times);
    }
    number_append(out, record->key_count);
    for (size_t i = 0; i < record->key_count; i++) {
        const struct heat_key *key = &record->keys[i];

        number_append(out, key->partition);
        number_append(out, key->key.len * 2 + key->cut);
        buf_append_slice(out, key->key);
        figures_append(out, &key->numbers);
    }
}

static bool damaged(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a record of heat is damaged");
}

/* False: it ends too early, or is above max. */
static bool number_take(struct slice *bytes, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < MIN(bytes->len, (size_t)NUMBER_BYTES_MAX); i++) {
        uint64_t part = bytes->data[i] & 0x7F;

        if (i == NUMBER_BYTES_MAX - 1 && part > 1)
            return false;
        number |= part << (7 * i);
        if (bytes->data[i] & 0x80)
            continue;
        *bytes = slice_skip(*bytes, i + 1);
        *ret_number = number;
        return number <= max;
    }
    return false;
}

static bool figures_take(struct slice *bytes, struct statistics_numbers *ret_numbers)
{
    uint64_t cru;

    if (!number_take(bytes, INT64_MAX, &cru) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->requests) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->throttled) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->bytes_in) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->bytes_out) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->time_us) ||
        !number_take(bytes, UINT64_MAX, &ret_numbers->time_us_max))
        return false;
    ret_numbers->cru = (int64_t)cru;
    return true;
}

static bool span_take(struct slice *bytes, struct heat_span *ret_span)
{
    uint64_t partition, used, class, count;

    *ret_span = (struct heat_span){0};
    if (!number_take(bytes, UINT32_MAX, &partition) || !figures_take(bytes, &ret_span->numbers) ||
        !number_take(bytes, STATISTICS_TIMES, &used))
        return false;
    ret_span->partition = (uint32_t)partition;
    for (uint64_t i = 0; i < used; i++) {
        if (!number_take(bytes, STATISTICS_TIMES - 1, &class) ||
            !number_take(bytes, UINT32_MAX, &count))
            return false;
        ret_span->times.counts[class] = (uint32_t)count;
    }
    return true;
}

static bool key_take(struct slice *bytes, struct heat_key *ret_key)
{
    uint64_t partition, length;

    *ret_key = (struct heat_key){0};
    if (!number_take(bytes, UINT32_MAX, &partition) ||
        !number_take(bytes, HEAT_KEY_BYTES_MAX * 2 + 1, &length) || length / 2 > bytes->len)
        return false;
    ret_key->partition = (uint32_t)partition;
    ret_key->cut = length % 2;
    ret_key->key = slice_first(*bytes, length / 2);
    *bytes = slice_skip(*bytes, length / 2);
    return figures_take(bytes, &ret_key->numbers);
}

bool heat_record_parse(struct slice bytes, struct heat_record *record, struct error *err)
{
    uint64_t spans, keys;

    if (bytes.len == 0)
        return damaged(err);
    if (bytes.data[0] > FORMAT)
        return error_set(err, ERROR_STORE_VERSION, "a record of heat of format %u is newer than %d",
                         bytes.data[0], FORMAT);
    bytes = slice_skip(bytes, 1);
    if (!number_take(&bytes, HEAT_RECORD_SPANS_MAX, &spans))
        return damaged(err);
    for (uint64_t i = 0; i < spans; i++) {
        struct heat_span span;

        if (!span_take(&bytes, &span))
            return damaged(err);
        heat_record_put_span(record, &span, HEAT_SUM);
    }
    if (!number_take(&bytes, HEAT_KEYS_MAX, &keys))
        return damaged(err);
    for (uint64_t i = 0; i < keys; i++) {
        struct heat_key key;

        if (!key_take(&bytes, &key))
            return damaged(err);
        heat_record_put_key(record, &key, HEAT_SUM);
    }
    return bytes.len == 0 || damaged(err);
}
