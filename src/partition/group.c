/* How a group is made:
 *
 *     take      the whole queue at once, oldest first, up to group_bytes_max
 *     admit     each batch: partition open at its epoch? anything it relied on written since? a
 *               counter over its limit? What passes is noted as written, so that later batches of
 *               the same group are judged against it too
 *     assemble  stamp, collect the operations of all batches, add counters and meta, sort
 *     write     one engine batch; on ERROR_FENCED the shut-out batches leave and the rest is
 *               assembled again
 *     finish    publish the moment, then call done()
 *
 * A failed engine write whose outcome is unknown poisons the committer: everything queued and
 * everything later is refused until the engine knows again, or the node is opened anew. */
#include "base/bytes.h"
#include "partition/commit_private.h"
#include "partition/journal.h"
#include "partition/layout.h"

/* Item numbers end a little early, because batches of one group are counted only when stamped. */
#define NUMBER_COUNTER_MAX ((UINT64_C(1) << PARTITION_NUMBER_COUNTER_BITS) - (1 << 28))

/* --- Admitting ------------------------------------------------------------------------------- */

static bool step_is(const struct commit_batch *batch, enum commit_step step)
{
    return batch->agreed && batch->agreed->step == step;
}

static bool part_is_open(const struct commit *commit, const struct commit_batch *batch,
                         const struct commit_part *part, struct error *err)
{
    const struct partition *partition = commit_partition_find(commit, part->partition);

    assert(mutex_is_held(&commit->partitions_lock));
    if (!partition)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "partition %u is not open here",
                         part->partition);
    if (partition->closing || partition->epoch != part->epoch)
        return error_set(err, ERROR_FENCED, "partition %u is at epoch %llu, not %llu",
                         part->partition, (unsigned long long)partition->epoch,
                         (unsigned long long)part->epoch);
    if (part->writers && part->writers < partition->writers)
        return error_set(err, ERROR_FENCED,
                         "partition %u is written by version %u of the definition, not %u",
                         part->partition, partition->writers, part->writers);
    if (partition->unpledged_until_ms && step_is(batch, COMMIT_PROMISE) &&
        clock_monotonic_ms() < partition->unpledged_until_ms)
        return error_set(err, ERROR_FENCED, "partition %u is about to be split, merged or moved",
                         part->partition);
    if (partition->now.counter + part->number_count > NUMBER_COUNTER_MAX &&
        !step_is(batch, COMMIT_END))
        return error_set(err, ERROR_STORE_FULL, "partition %u has given out all its item numbers",
                         part->partition);
    return true;
}

static bool part_is_valid(struct commit *commit, const struct commit_part *part, uint64_t moment,
                          struct error *err)
{
    for (size_t i = 0; i < part->relied_count; i++)
        if (recent_has_key(commit->recent, moment, part->partition, part->relied[i]))
            return error_set(err, ERROR_CONFLICT, "another transaction wrote the same item first");
    for (size_t i = 0; i < part->scanned_count; i++)
        if (recent_has_range(commit->recent, moment, part->partition, part->scanned[i]))
            return error_set(err, ERROR_CONFLICT,
                             "another transaction wrote into a range that was read");
    return true;
}

static bool batch_is_valid(struct commit *commit, const struct commit_batch *batch,
                           struct error *err)
{
    if (batch->moment == COMMIT_NOTHING_RELIED_ON || commit->validation_off)
        return true;
    if (batch->moment < recent_floor(commit->recent)) {
        atomic_fetch_add(&commit->too_old, 1);
        return error_set(err, ERROR_SNAPSHOT_TOO_OLD,
                         "the transaction began %llu commits ago, too many to check",
                         (unsigned long long)(commit->sequence - batch->moment));
    }
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_is_valid(commit, &batch->parts[i], batch->moment, err)) {
            atomic_fetch_add(&commit->conflicts, 1);
            return false;
        }
    return true;
}

/* What was promised has been looked at, and is applied whatever came since. */
static bool part_fits(struct commit *commit, const struct commit_batch *batch,
                      const struct commit_part *part, struct error *err)
{
    for (size_t i = 0; i < part->delta_count; i++) {
        const struct commit_delta *delta = &part->deltas[i];
        struct counter *counter;

        assert(delta->key.len && delta->key.data[0] == PARTITION_FAMILY_COUNTER);
        if (!counters_get(commit->counters, part->partition, delta->key, &counter, err))
            return false;
        if (delta->first_max && delta->amounts[0] > 0 && !step_is(batch, COMMIT_END) &&
            counter->now[0] + delta->amounts[0] > delta->first_max)
            return error_set(err, delta->full ? delta->full : ERROR_LOGICAL_PARTITION_FULL,
                             "the %s holds %lld bytes and %lld more would pass its limit of %lld%s",
                             delta->full == ERROR_REFERENCE_FULL ? "reference container"
                             : delta->full                       ? "physical partition"
                                                                 : "logical partition",
                             (long long)counter->now[0], (long long)delta->amounts[0],
                             (long long)delta->first_max,
                             delta->full == ERROR_REFERENCE_FULL
                                 ? ", an equal part of reference.bytes_max for each physical "
                                   "partition"
                                 : "");
    }
    return true;
}

/* A promise says what will be written, and writes nothing but itself. */
static bool batch_writes(const struct commit_batch *batch)
{
    return !step_is(batch, COMMIT_PROMISE) && !step_is(batch, COMMIT_CONFIRM);
}

/* batch_fits has brought the counters into memory, where they stay until the group ends. */
static void batch_add_counters(struct commit *commit, const struct commit_batch *batch)
{
    if (!batch_writes(batch))
        return;
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].delta_count; i++) {
            const struct commit_delta *delta = &batch->parts[p].deltas[i];
            struct counter *counter;
            struct error err;
            bool found = counters_get(commit->counters, batch->parts[p].partition, delta->key,
                                      &counter, &err);

            assert(found);
            counters_add(commit->counters, counter, delta->amounts);
        }
}

static void batch_note(struct commit *commit, struct commit_batch *batch)
{
    assert(batch->part_count > 0);
    batch->sequence = ++commit->sequence;
    if (!batch_writes(batch))
        return;
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].touched_count; i++)
            recent_add(commit->recent, batch->sequence, batch->parts[p].partition,
                       batch->parts[p].touched[i]);
}

/* --- Transactions over several nodes --------------------------------------------------------- */

static void agreed_begin(struct commit *commit, const struct commit_batch *batch)
{
    struct commit_agreed *agreed = batch->agreed;
    uint64_t partitions = 0;

    if (!agreed)
        return;
    agreed->admitted = true;
    if (agreed->step == COMMIT_PROMISE)
        pledges_add(&commit->pledges, TAKE(agreed->pledge));
    if (agreed->step != COMMIT_DECIDE)
        return;
    for (size_t p = 0; p < batch->part_count; p++)
        if (batch->parts[p].op_count || batch->parts[p].delta_count)
            partitions |= pledge_bit(batch->parts[p].partition);
    pledges_window_open(&commit->pledges, agreed->id, partitions);
}

enum outcome { OUTCOME_WRITTEN, OUTCOME_NOT_WRITTEN, OUTCOME_UNKNOWN };

/* What is not known stays as it is, until whoever made the step finds out. */
static void agreed_end(struct commit *commit, struct commit_batch *batches, enum outcome outcome)
{
    for (struct commit_batch *batch = batches; batch; batch = batch->next) {
        struct commit_agreed *agreed = batch->agreed;

        if (!agreed)
            continue;
        pledge_free(TAKE(agreed->pledge)); /* of a promise that was refused */
        agreed->unknown = agreed->admitted && outcome == OUTCOME_UNKNOWN;
        if (!agreed->admitted || agreed->unknown)
            continue;
        if (agreed->step == COMMIT_DECIDE) {
            if (outcome == OUTCOME_WRITTEN)
                agreed->decided(agreed->context);
            pledges_window_close(&commit->pledges, agreed->id);
        }
        if (agreed->step == (outcome == OUTCOME_WRITTEN ? COMMIT_END : COMMIT_PROMISE))
            pledges_remove(&commit->pledges, agreed->id);
    }
}

/* --- One batch ------------------------------------------------------------------------------- */

static bool batch_admit(struct commit *commit, struct commit_batch *batch, struct error *err)
{
    if (atomic_load(&commit->poisoned))
        return error_set(err, ERROR_STORE_POISONED,
                         "a write of this node failed; it refuses writes until it is reopened");
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_is_open(commit, batch, &batch->parts[i], err))
            return false;
    if (!batch_is_valid(commit, batch, err))
        return false;
    if (batch->agreed && batch->agreed->step != COMMIT_END && pledges_meet(&commit->pledges, batch))
        return error_set(err, ERROR_CONFLICT,
                         "another transaction over several nodes has promised the same item");
    for (size_t i = 0; i < batch->part_count; i++)
        if (!part_fits(commit, batch, &batch->parts[i], err))
            return false;
    batch_add_counters(commit, batch);
    batch_note(commit, batch);
    agreed_begin(commit, batch);
    return true;
}

/* --- Assembling ------------------------------------------------------------------------------ */

static void op_place(struct commit *commit, size_t at, uint32_t partition, uint32_t age,
                     const struct engine_op *op)
{
    uint8_t head[16] = {0};

    assert(at <= commit->placed_capacity && op->key.len > 0);
    if (at == commit->placed_capacity) {
        commit->placed_capacity = commit->placed_capacity ? commit->placed_capacity * 2 : 256;
        commit->placed = memory_realloc(
            commit->placed, memory_array_size(2 * commit->placed_capacity, sizeof *commit->placed));
    }
    memcpy(head, op->key.data, MIN(op->key.len, sizeof head));
    commit->placed[at] = (struct commit_placed_op){.key_head = bytes_get_be64(head),
                                                   .key_next = bytes_get_be64(head + 8),
                                                   .partition = partition,
                                                   .age = age,
                                                   .op = op};
}

/* Zeros behind a short key sort as its end does, so heads that differ tell the order. */
static inline bool placed_before(const struct commit_placed_op *a, const struct commit_placed_op *b)
{
    int order;

    if (a->partition != b->partition)
        return a->partition < b->partition;
    if (a->key_head != b->key_head)
        return a->key_head < b->key_head;
    if (a->key_next != b->key_next)
        return a->key_next < b->key_next;
    order = slice_compare(a->op->key, b->op->key);
    return order < 0 || (order == 0 && a->age < b->age);
}

static void placed_sort_few(struct commit_placed_op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct commit_placed_op op = ops[i];
        size_t at = i;

        for (; at > 0 && placed_before(&op, &ops[at - 1]); at--)
            ops[at] = ops[at - 1];
        ops[at] = op;
    }
}

/* By merging: half of a group's time before it is written was spent in qsort, which calls back for
 * every comparison. Operations of one batch mostly come sorted; halves that are in order already
 * are not merged. */
static void placed_sort(struct commit_placed_op *ops, size_t count, struct commit_placed_op *spare)
{
    enum { FEW = 12 };
    size_t half = count / 2, left = 0, right = half, at = 0;

    if (count <= FEW) {
        placed_sort_few(ops, count);
        return;
    }
    placed_sort(ops, half, spare);
    placed_sort(ops + half, count - half, spare);
    if (!placed_before(&ops[half], &ops[half - 1]))
        return;
    memcpy(spare, ops, half * sizeof *ops);
    while (left < half && right < count)
        ops[at++] = placed_before(&ops[right], &spare[left]) ? ops[right++] : spare[left++];
    memcpy(&ops[at], &spare[left], (half - left) * sizeof *ops);
}

/* Cluster time of a batch; readers go no further than before the first of the group, until it is
 * visible. */
static uint64_t time_take(struct commit *commit)
{
    assert(commit->times);
    if (!commit->timed)
        commit_clock_begin(commit->times, commit->member);
    commit->timed = true;
    return commit_clock_tick(commit->times);
}

static void times_settle(struct commit *commit)
{
    if (commit->timed)
        commit_clock_end(commit->times, commit->member);
    commit->timed = false;
}

/* Does anything happen to the partition, or was it only relied on? Sums alone are a change: of a
 * key that is spread they lie with its first part, wherever the item is. */
static bool part_writes(const struct commit_batch *batch, const struct commit_part *part)
{
    return part->op_count || (part->delta_count && batch_writes(batch));
}

static void part_stamp(struct commit *commit, const struct commit_batch *batch,
                       struct commit_part *part, int64_t now_ms)
{
    struct partition *partition = commit_partition_find(commit, part->partition);
    struct commit_numbers *now = &partition->now;

    if (!part_writes(batch, part))
        return;
    assert(partition->epoch == part->epoch); /* it was admitted under it */
    if (!partition->in_group) {
        partition->in_group = true;
        partition->next_in_group = commit->in_group;
        commit->in_group = partition;
    }
    if (part->numbering) {
        now->lsn = part->numbering->lsn;
        now->wall_ms = part->numbering->wall_ms;
    }
    now->lsn++;
    now->wall_ms = MAX(now->wall_ms, now_ms);
    part->stamp = (struct commit_stamp){
        .lsn = now->lsn,
        .first_number = partition_number((uint32_t)now->source, now->counter),
        .wall_ms = now->wall_ms,
    };
    now->counter += part->number_count;
    if (part->partition == PARTITION_HISTORY)
        part->stamp.time = time_take(commit);
}

static size_t batches_place(struct commit *commit, struct commit_batch *batches)
{
    int64_t now_ms = clock_read_wall_ms(commit->clock);
    size_t count = 0;

    for (struct commit_batch *batch = batches; batch; batch = batch->next) {
        for (size_t p = 0; p < batch->part_count; p++)
            part_stamp(commit, batch, &batch->parts[p], now_ms);
        if (batch->stamp)
            batch->stamp(batch);
        for (size_t p = 0; p < batch->part_count; p++)
            for (size_t i = 0; i < batch->parts[p].op_count; i++, count++)
                op_place(commit, count, batch->parts[p].partition, (uint32_t)count,
                         &batch->parts[p].ops[i]);
    }
    return count;
}

static const struct engine_op *put_new(struct commit *commit, struct slice key, const void *value,
                                       size_t len)
{
    struct engine_op *op = ARENA_NEW(commit->arena, struct engine_op);

    *op = (struct engine_op){ENGINE_PUT, key, slice_of(value, len)};
    return op;
}

/* Meta and counters of the group, once each however many batches there are. */
static size_t sums_place(struct commit *commit, size_t count)
{
    for (struct partition *p = commit->in_group; p; p = p->next_in_group) {
        commit_meta_encode(p);
        op_place(commit, count++, p->id, UINT32_MAX,
                 put_new(commit, commit_meta_key(), p->meta, COMMIT_META_LEN));
    }
    for (struct counter *c = counters_changed(commit->counters); c; c = c->next_changed) {
        uint8_t *bytes = arena_alloc(commit->arena, COUNTER_BYTES);

        counter_encode(c, bytes);
        op_place(commit, count++, c->partition, UINT32_MAX,
                 put_new(commit, c->key, bytes, COUNTER_BYTES));
    }
    return count;
}

static size_t journal_put(struct commit *commit, const struct partition *partition, uint32_t nth,
                          struct buf *value, size_t count)
{
    uint8_t *key = arena_alloc(commit->arena, JOURNAL_KEY_LEN);
    struct slice bytes = arena_copy(commit->arena, buf_slice(value));

    assert(value->len > 0 && partition->tapped);
    journal_key_encode((struct journal_position){.lsn = partition->now.lsn, .nth = nth}, key);
    op_place(commit, count++, partition->id, UINT32_MAX,
             put_new(commit, slice_of(key, JOURNAL_KEY_LEN), bytes.data, bytes.len));
    buf_clear(value);
    return count;
}

/* The keys the group touches in a partition of which a journal is kept. */
static size_t journal_place(struct commit *commit, const struct partition *partition, size_t count)
{
    CLEANUP(buf_done) struct buf value;
    size_t touched = count;
    uint32_t nth = 0;

    buf_init(&value, JOURNAL_VALUE_USUAL + JOURNAL_NOTE_MAX);
    for (size_t i = 0; i < touched; i++) {
        const struct engine_op *op = commit->placed[i].op;

        if (commit->placed[i].partition != partition->id || !journal_notes(op->key))
            continue;
        journal_append(op, &value);
        if (value.len >= JOURNAL_VALUE_USUAL)
            count = journal_put(commit, partition, nth++, &value, count);
    }
    return value.len ? journal_put(commit, partition, nth, &value, count) : count;
}

static size_t journals_place(struct commit *commit, size_t count)
{
    for (const struct partition *p = commit->in_group; p; p = p->next_in_group)
        if (p->tapped)
            count = journal_place(commit, p, count);
    return count;
}

/* Sorted, one operation per key (the last one), cut into sections by partition. */
static size_t sections_make(struct commit *commit, size_t placed_count,
                            struct engine_section **ret_sections)
{
    struct engine_op *ops = ARENA_ARRAY(commit->arena, struct engine_op, placed_count);
    struct engine_section *sections =
        ARENA_ARRAY(commit->arena, struct engine_section, commit->partition_count);
    size_t op_count = 0, section_count = 0;

    if (!placed_count) /* steps that only ask */
        return 0;
    placed_sort(commit->placed, placed_count, commit->placed + placed_count);
    for (size_t i = 0; i < placed_count; i++) {
        const struct commit_placed_op *placed = &commit->placed[i];
        struct engine_section *section = section_count ? &sections[section_count - 1] : NULL;

        if (!section || section->partition != placed->partition) {
            assert(section_count < commit->partition_count);
            section = &sections[section_count++];
            *section = (struct engine_section){
                .partition = placed->partition,
                .epoch = commit_partition_find(commit, placed->partition)->epoch,
                .ops = &ops[op_count],
            };
        } else if (slice_equal(section->ops[section->count - 1].key, placed->op->key)) {
            section->ops[section->count - 1] = *placed->op;
            continue;
        }
        ops[op_count++] = *placed->op;
        section->count++;
    }
    assert(op_count <= placed_count);
    *ret_sections = sections;
    return section_count;
}

static size_t group_assemble(struct commit *commit, struct commit_batch *batches,
                             struct engine_section **ret_sections)
{
    size_t count = batches_place(commit, batches);

    count = journals_place(commit, sums_place(commit, count));
    return sections_make(commit, count, ret_sections);
}

/* --- One group ------------------------------------------------------------------------------- */

/* A list of batches that grows at its end. */
struct batch_list {
    struct commit_batch *first, **end;
};

static void list_init(struct batch_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_add(struct batch_list *list, struct commit_batch *batch)
{
    batch->next = NULL;
    *list->end = batch;
    list->end = &batch->next;
}

/* The partitions of the group go back to where they stood, or forward to where they are. */
static void group_leave(struct commit *commit, bool durable)
{
    assert(mutex_is_held(&commit->partitions_lock));
    while (commit->in_group) {
        struct partition *partition = commit->in_group;

        if (durable)
            WITH_LOCK (&commit->durable_lock)
                partition->durable = partition->now;
        else
            partition->now = partition->durable;
        partition->in_group = false;
        commit->in_group = partition->next_in_group;
    }
    if (durable)
        counters_keep(commit->counters);
    else
        counters_undo(commit->counters);
    assert(!counters_changed(commit->counters));
}

static bool batch_is_fenced(const struct commit_batch *batch, const struct engine_section *sections,
                            size_t count)
{
    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t s = 0; s < count; s++)
            if (sections[s].fenced && sections[s].partition == batch->parts[p].partition)
                return true;
    return false;
}

/* Takes the batches out that meet a fence; the rest starts over and adds its counters anew. */
static void fenced_remove(struct commit *commit, struct batch_list *group,
                          const struct engine_section *sections, size_t count,
                          const struct error *err, struct batch_list *refused)
{
    struct commit_batch *batch = group->first, *next;

    group_leave(commit, false);
    list_init(group);
    for (; batch; batch = next) {
        next = batch->next;
        if (batch_is_fenced(batch, sections, count)) {
            batch->err = *err;
            list_add(refused, batch);
        } else {
            batch_add_counters(commit, batch);
            list_add(group, batch);
        }
    }
}

static size_t batch_bytes(const struct commit_batch *batch)
{
    size_t bytes = 0;

    for (size_t p = 0; p < batch->part_count; p++)
        for (size_t i = 0; i < batch->parts[p].op_count; i++)
            bytes += batch->parts[p].ops[i].key.len + batch->parts[p].ops[i].value.len;
    return bytes;
}

/* Does somebody catch up with a partition it goes to? A server that stops holds nobody. */
static bool batch_is_held(const struct commit *commit, const struct commit_batch *batch,
                          int64_t now_ms)
{
    for (size_t p = 0; p < batch->part_count; p++) {
        const struct partition *partition =
            commit_partition_find(commit, batch->parts[p].partition);

        if (partition && partition->held_until_ms > now_ms &&
            partition->epoch == batch->parts[p].epoch)
            return true;
    }
    return false;
}

static bool holds_any(const struct commit *commit, int64_t *ret_now_ms)
{
    if (!commit->hold_until_ms || atomic_load(&commit->stopping))
        return false;
    *ret_now_ms = clock_read_monotonic_ms(commit->clock);
    return *ret_now_ms < commit->hold_until_ms;
}

static void batch_hold(struct commit *commit, struct commit_batch *batch)
{
    assert(!*commit->held_end);
    batch->next = NULL;
    *commit->held_end = batch;
    commit->held_end = &batch->next;
}

/* Must it wait for a key that is kept? False with err set: it has waited long enough, and so is
 * refused; nobody waits for a server that stops. */
static bool batch_awaits_pledge(struct commit *commit, struct commit_batch *batch, bool *ret_waits,
                                struct error *err)
{
    *ret_waits = false;
    if (batch->agreed || !pledges_meet(&commit->pledges, batch))
        return true;
    if (!batch->waits_since_ms)
        batch->waits_since_ms = clock_monotonic_ms();
    *ret_waits = !atomic_load(&commit->stopping) &&
                 clock_monotonic_ms() - batch->waits_since_ms < PLEDGE_WAIT_MS;
    return *ret_waits ||
           error_set(err, ERROR_PLEDGED,
                     "the item is kept for a transaction over several nodes that is not settled");
}

/* Admits batches from the front of *queue until the group is full. */
static void group_admit(struct commit *commit, struct commit_batch **queue,
                        struct batch_list *group, struct batch_list *refused)
{
    size_t bytes = 0;
    int64_t now_ms = 0;
    bool holding = holds_any(commit, &now_ms);

    assert(mutex_is_held(&commit->partitions_lock));
    while (*queue && bytes < commit->group_bytes_max) {
        struct commit_batch *batch = *queue;
        bool waits = false;
        bool passes = !atomic_load_explicit(&commit->pledges.count, memory_order_relaxed) ||
                      batch_awaits_pledge(commit, batch, &waits, &batch->err);

        *queue = batch->next;
        if (waits || (holding && batch_is_held(commit, batch, now_ms))) {
            batch_hold(commit, batch);
            continue;
        }
        if (passes && batch_admit(commit, batch, &batch->err)) {
            bytes += batch_bytes(batch);
            list_add(group, batch);
        } else {
            list_add(refused, batch);
        }
    }
}

/* Comes and goes with partitions_lock held, but writes without it: the partitions of a group stay,
 * because open and close wait for in_group. */
static bool group_write(struct commit *commit, struct batch_list *group, struct batch_list *refused,
                        struct error *err)
{
    while (group->first) {
        struct engine_section *sections;
        size_t count = group_assemble(commit, group->first, &sections);
        bool written;

        mutex_unlock(&commit->partitions_lock);
        written = count == 0 || engine_write(commit->engine, sections, count, err);
        mutex_lock(&commit->partitions_lock);
        if (written || err->code != ERROR_FENCED)
            return written;
        fenced_remove(commit, group, sections, count, err, refused);
    }
    return true;
}

static void list_done(struct commit *commit, struct batch_list *list, bool written)
{
    struct commit_batch *batch = list->first, *next;

    for (; batch; batch = next) {
        size_t queued = atomic_fetch_sub(&commit->queued, 1);

        assert(queued > 0);
        next = batch->next;
        batch->done(batch, written ? NULL : &batch->err);
    }
}

static void group_count(struct commit *commit, const struct batch_list *group)
{
    uint64_t count = 0;

    for (const struct commit_batch *batch = group->first; batch; batch = batch->next)
        count++;
    if (count)
        atomic_fetch_add(&commit->groups, 1);
    atomic_fetch_add(&commit->batches, count);
}

static bool nothing_was_written(const struct error *err)
{
    return err->code == ERROR_STORE_FULL || err->code == ERROR_STORE_UNAVAILABLE ||
           err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED ||
           err->code == ERROR_STORE_LOST || err->code == ERROR_STORE_UNREPLICATED;
}

static void group_failed(struct commit *commit, struct batch_list *group, const struct error *err)
{
    for (struct commit_batch *batch = group->first; batch; batch = batch->next) {
        batch->err = *err;
        if (err->code == ERROR_STORE_POISONED) /* it was, by this very group */
            error_set(&batch->err, ERROR_WRITE_IN_DOUBT, "%s", err->message);
    }
    if (!nothing_was_written(err) && !atomic_exchange(&commit->poisoned, true))
        log_error(commit->log, "node refuses writes until it is reopened", err);
}

/* An engine that finds out by itself what became of its last write says so in its statistics. Then
 * the numbering is read anew, since it may be either way. */
static void poison_recover(struct commit *commit)
{
    struct engine_statistics statistics;
    struct error err;

    if (!engine_statistics(commit->engine, &statistics, &err) || statistics.poisoned ||
        !commit_partitions_reload(commit, &err))
        return;
    atomic_store(&commit->poisoned, false);
    times_settle(commit);
    log_event(commit->log, LOG_INFO, "node takes writes again",
              LOG_SLICE("node", engine_name(commit->engine)));
}

void commit_recover(struct commit *commit)
{
    mutex_lock(&commit->partitions_lock);
    arena_reset(commit->arena);
    if (atomic_load(&commit->poisoned))
        poison_recover(commit);
    mutex_unlock(&commit->partitions_lock);
}

void commit_group_run(struct commit *commit, struct commit_batch **queue)
{
    struct batch_list group, refused;
    struct error err;
    bool written;

    assert(*queue && !commit->in_group);
    list_init(&group);
    list_init(&refused);
    commit_busy_begin(commit);
    mutex_lock(&commit->partitions_lock);
    arena_reset(commit->arena);
    if (atomic_load(&commit->poisoned))
        poison_recover(commit);
    group_admit(commit, queue, &group, &refused);
    written = group_write(commit, &group, &refused, &err);
    group_leave(commit, written);
    commit->groups_left++;
    condition_broadcast(&commit->group_left);
    mutex_unlock(&commit->partitions_lock);

    /* Before anybody is told of the group, in whatever way. */
    agreed_end(commit, group.first,
               written                     ? OUTCOME_WRITTEN
               : nothing_was_written(&err) ? OUTCOME_NOT_WRITTEN
                                           : OUTCOME_UNKNOWN);
    agreed_end(commit, refused.first, OUTCOME_NOT_WRITTEN);

    /* Also after a failure: what was noted as written but is not must not conflict for ever. */
    atomic_store_explicit(&commit->moment, commit->sequence, memory_order_release);
    commit_busy_end(commit);
    if (written)
        group_count(commit, &group);
    else
        group_failed(commit, &group, &err);
    if (!atomic_load(&commit->poisoned)) /* else it may appear yet, with the times it has */
        times_settle(commit);
    list_done(commit, &group, written);
    list_done(commit, &refused, false);
    if (written)
        bell_ring(commit->bell);
}
