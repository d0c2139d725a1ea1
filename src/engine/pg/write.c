/* A batch is one change of the owner (owner.c): the fences of its partitions, then per section one
 * merged statement for its puts, one for its deletes. Few large statements are what PostgreSQL is
 * fastest at; a statement is split only where its arrays would pass PG_ARRAY_MAX.
 *
 * The fences are checked first, by a statement that raises an error unless all hold. The server
 * skips the rest of a failed pipeline, so a batch that meets a fence writes nothing, and the tables
 * of dropped partitions are never even looked for. FOR SHARE makes whoever raises a fence wait for
 * us, and us for him. */
#include "engine/pg/pg_private.h"

/* Sections reach the server in pieces of at most this many keys: an array of more would gain
 * nothing. */
enum { KEYS_PER_STATEMENT = 64 * 1024, KEYS_PER_CLEAR = 10000 };

struct batch {
    struct engine_section *sections;
    size_t count;
    struct buf keys, values, ids, epochs; /* reused from statement to statement */
};

static void batch_init(struct batch *batch, struct engine_section *sections, size_t count)
{
    /* One value more than the bound may be in an array; the server takes up to 1 GB. */
    const size_t max = (size_t)PG_ARRAY_MAX + ENGINE_VALUE_MAX + 1024 * 1024;

    assert(count > 0);
    *batch = (struct batch){.sections = sections, .count = count};
    buf_init(&batch->keys, max);
    buf_init(&batch->values, max);
    buf_init(&batch->ids, max);
    buf_init(&batch->epochs, max);
}

static void batch_done(struct batch *batch)
{
    buf_done(&batch->keys);
    buf_done(&batch->values);
    buf_done(&batch->ids);
    buf_done(&batch->epochs);
}
CLEANUP_VALUE_FN(struct batch, batch_done)

/* --- Fences ---------------------------------------------------------------------------------- */

/* "{1,2,3}" with its NUL. */
static struct pg_param ids_print(struct batch *batch)
{
    buf_clear(&batch->ids);
    for (size_t i = 0; i < batch->count; i++) {
        buf_append_byte(&batch->ids, i ? ',' : '{');
        buf_append_uint64(&batch->ids, batch->sections[i].partition);
    }
    buf_append(&batch->ids, "}", 2);
    return (struct pg_param){batch->ids.data, batch->ids.len - 1, false};
}

/* "{7,7,9}": the epochs of the same sections. */
static struct pg_param epochs_print(struct batch *batch)
{
    buf_clear(&batch->epochs);
    for (size_t i = 0; i < batch->count; i++) {
        buf_append_byte(&batch->epochs, i ? ',' : '{');
        buf_append_uint64(&batch->epochs, batch->sections[i].epoch);
    }
    buf_append(&batch->epochs, "}", 2);
    return (struct pg_param){batch->epochs.data, batch->epochs.len - 1, false};
}

static void fences_send(struct pg_connection *connection, struct batch *batch)
{
    struct pg_number count;
    struct pg_param params[] = {ids_print(batch), epochs_print(batch),
                                pg_number(&count, batch->count)};

    pg_send(connection,
            "SELECT orrery.require(count(*) = $3::bigint, '" PG_STATE_FENCED "',"
            " 'a partition of the batch is at another epoch or gone') FROM (SELECT p.id"
            " FROM unnest($1::bigint[], $2::numeric[]) AS given (id, epoch)"
            " JOIN orrery.partition AS p ON p.id = given.id AND p.epoch = given.epoch"
            " AND NOT p.dropped FOR SHARE OF p) AS held",
            params, ARRAY_LEN(params));
}

/* Both are sorted by partition. */
static void fences_compare(struct batch *batch, const PGresult *fences)
{
    int row = 0, rows = PQntuples(fences);

    for (size_t i = 0; i < batch->count; i++) {
        struct engine_section *section = &batch->sections[i];

        while (row < rows && pg_field_uint64(fences, row, 0) < section->partition)
            row++;
        section->fenced = row == rows || pg_field_uint64(fences, row, 0) != section->partition ||
                          pg_field_uint64(fences, row, 1) != section->epoch;
    }
}

/* Which sections were shut out: nobody but us changes fences while we hold the owner's lock. */
static bool fences_read(struct pg_engine *engine, struct batch *batch, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_param ids = ids_print(batch);

    assert(engine->owner.connection); /* it has just answered */
    if (!pg_query(engine->owner.connection,
                  "SELECT id, epoch FROM orrery.partition WHERE id = ANY ($1::bigint[])"
                  " AND NOT dropped ORDER BY id",
                  &ids, 1, &answer, err))
        return false;
    fences_compare(batch, answer.results[0]);
    return true;
}

/* --- Statements ------------------------------------------------------------------------------ */

/* The ops of one kind from *at on that make one statement, as arrays. */
static size_t ops_gather(struct batch *batch, const struct engine_section *section,
                         enum engine_op_kind kind, size_t *at)
{
    size_t count = 0;

    assert(*at <= section->count);
    buf_clear(&batch->keys);
    buf_clear(&batch->values);
    pg_array_begin(&batch->keys, 0);
    pg_array_begin(&batch->values, 0);
    for (; *at < section->count && count < KEYS_PER_STATEMENT; (*at)++) {
        const struct engine_op *op = &section->ops[*at];

        if (op->kind != kind)
            continue;
        if (batch->keys.len + batch->values.len >= PG_ARRAY_MAX)
            break;
        pg_array_add_key(&batch->keys, op->key);
        if (kind == ENGINE_PUT)
            pg_array_add(&batch->values, op->value);
        count++;
    }
    pg_array_end(&batch->keys, count);
    pg_array_end(&batch->values, count);
    return count;
}

/* The marks of the long keys put from *at on that make one statement. A mark is sent once even if
 * many keys share it: they are neighbours in the sorted section. */
static size_t marks_gather(struct batch *batch, const struct engine_section *section, size_t *at)
{
    CLEANUP(buf_done) struct buf mark, before;
    size_t count = 0;

    buf_init(&mark, ENGINE_KEY_MAX);
    buf_init(&before, ENGINE_KEY_MAX);
    buf_clear(&batch->keys);
    pg_array_begin(&batch->keys, 0);
    for (; *at < section->count && batch->keys.len < PG_ARRAY_MAX; (*at)++) {
        const struct engine_op *op = &section->ops[*at];
        size_t marks = op->kind == ENGINE_PUT ? pg_key_marks(op->key) : 0;

        for (size_t level = 0; level < marks; level++) {
            buf_clear(&mark);
            pg_key_mark(op->key, level, &mark);
            if (slice_equal(buf_slice(&mark), buf_slice(&before)))
                continue;
            pg_array_add(&batch->keys, buf_slice(&mark));
            count++;
            buf_clear(&before);
            buf_append_slice(&before, buf_slice(&mark));
        }
    }
    pg_array_end(&batch->keys, count);
    return count;
}

static void section_send(struct pg_connection *connection, struct batch *batch,
                         const struct engine_section *section)
{
    struct pg_param params[2];

    for (size_t at = 0; ops_gather(batch, section, ENGINE_DELETE, &at);) {
        params[0] = pg_bytes(buf_slice(&batch->keys));
        pg_send_statement(connection, PG_DELETE, section->partition, params, 1);
    }
    for (size_t at = 0; ops_gather(batch, section, ENGINE_PUT, &at);) {
        params[0] = pg_bytes(buf_slice(&batch->keys));
        params[1] = pg_bytes(buf_slice(&batch->values));
        pg_send_statement(connection, PG_PUT, section->partition, params, 2);
    }
    for (size_t at = 0; marks_gather(batch, section, &at);) {
        params[0] = pg_bytes(buf_slice(&batch->keys));
        pg_send_statement(connection, PG_MARK, section->partition, params, 1);
    }
}

static void batch_send(struct pg_connection *connection, void *context)
{
    struct batch *batch = context;

    fences_send(connection, batch);
    for (size_t i = 0; i < batch->count; i++)
        section_send(connection, batch, &batch->sections[i]);
}

/* --- Writing --------------------------------------------------------------------------------- */

/* Whatever the server refuses leaves nothing behind, which is what the caller has to know: the
 * other codes of engine_write mean more than that. */
static bool write_failed(struct error *err)
{
    struct error reason = *err;

    switch (err->code) {
    case ERROR_FENCED:
    case ERROR_STORE_FULL:
    case ERROR_STORE_POISONED:
    case ERROR_STORE_IN_USE:
    case ERROR_STORE_UNAVAILABLE:
    case ERROR_STORE_UNREPLICATED:
    case ERROR_STORE_LOST:
        return false;
    default:
        return error_set(err, ERROR_STORE_UNAVAILABLE, "%s", reason.message);
    }
}

/* With the owner's lock. */
static bool batch_commit(struct pg_engine *engine, struct batch *batch, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const struct pg_change change = {batch_send, batch};
    struct error reason;

    assert(mutex_is_held(&engine->owner.lock));
    if (pg_owner_commit(&engine->owner, &change, &answer, err))
        return true;
    if (err->code == ERROR_FENCED && !fences_read(engine, batch, &reason))
        *err = reason;
    return write_failed(err);
}

static uint64_t sections_bytes(const struct engine_section *sections, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sections[i].count; j++)
            bytes += sections[i].ops[j].key.len +
                     (sections[i].ops[j].kind == ENGINE_PUT ? sections[i].ops[j].value.len : 0);
    return bytes;
}

bool pg_write(struct engine *base, struct engine_section *sections, size_t count, struct error *err)
{
    struct pg_engine *engine = pg_engine(base);
    CLEANUP(batch_done) struct batch batch;

    batch_init(&batch, sections, count);
    engine->writes++;
    WITH_LOCK (&engine->owner.lock) {
        if (!batch_commit(engine, &batch, err))
            return false;
    }
    engine->bytes_written += sections_bytes(sections, count);
    return true;
}

/* --- Dropping a range ------------------------------------------------------------------------ */

/* In steps of KEYS_PER_CLEAR, each a change of its own: other writers get in between, and no
 * statement runs into its time limit. Nodes below a mark come first, then the rest of the node
 * without its marks, which an iterator skips (key.c). */
struct clearing {
    struct pg_engine *engine;
    uint32_t partition;
    uint64_t epoch;
    struct engine_range range;
    struct slice low, high; /* of the present step */
    size_t kept_len;        /* of the marks, which stay; 0: they go as well */
};

static void clear_send(struct pg_connection *connection, void *context)
{
    const struct clearing *clearing = context;
    struct pg_number kept;
    struct pg_param params[] = {pg_bytes(clearing->low), pg_bytes(clearing->high),
                                pg_number(&kept, clearing->kept_len)};

    pg_fence_send(connection, clearing->partition, clearing->epoch);
    pg_send_statement(connection, PG_CLEAR, clearing->partition, params, ARRAY_LEN(params));
}

/* One key in the low to high of a clearing, found by a statement with a number; absent if none. */
static bool key_find(struct clearing *clearing, enum pg_statement statement, uint64_t number,
                     struct buf *ret_key, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_number digits;
    struct pg_param params[] = {pg_bytes(clearing->low), pg_bytes(clearing->high),
                                pg_number(&digits, number)};
    struct pg_ask ask = {statement, clearing->partition, params, ARRAY_LEN(params)};

    buf_clear(ret_key);
    if (!pg_pool_ask(&clearing->engine->pool, &ask, &answer, err))
        return false;
    if (PQntuples(answer.results[0]) > 0)
        buf_append_slice(ret_key, pg_field(answer.results[0], 0, 0));
    return true;
}

static bool clear_step(struct clearing *clearing, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const struct pg_change change = {clear_send, clearing};

    WITH_LOCK (&clearing->engine->owner.lock) {
        if (!pg_owner_commit(&clearing->engine->owner, &change, &answer, err))
            return false;
    }
    return true;
}

/* Everything from low to high, in steps. */
static bool clear_stored(struct clearing *clearing, struct slice low, struct slice high,
                         struct error *err)
{
    CLEANUP(buf_done) struct buf step, from;

    buf_init(&step, ENGINE_KEY_MAX);
    buf_init(&from, ENGINE_KEY_MAX);
    buf_append_slice(&from, low);
    do {
        clearing->low = buf_slice(&from);
        clearing->high = high;
        if (!key_find(clearing, PG_STEP, KEYS_PER_CLEAR, &step, err))
            return false;
        if (step.len)
            clearing->high = buf_slice(&step);
        if (!clear_step(clearing, err))
            return false;
        buf_clear(&from);
        buf_append_slice(&from, buf_slice(&step));
    } while (step.len);
    return true;
}

/* The node at path, below it first. As deep as the longest key has heads. */
static bool clear_node(struct clearing *clearing, struct slice path, struct error *err)
{
    CLEANUP(buf_done) struct buf low, high, mark, below;

    assert(path.len % PG_HEAD == 0 && path.len < ENGINE_KEY_MAX + PG_HEAD);
    buf_init(&low, ENGINE_KEY_MAX);
    buf_init(&high, ENGINE_KEY_MAX);
    buf_init(&mark, ENGINE_KEY_MAX);
    buf_init(&below, 2 * ENGINE_KEY_MAX);
    pg_key_low(path, clearing->range.min, &low);
    pg_key_high(path, clearing->range.max, &high);
    for (;;) {
        clearing->low = buf_slice(&low);
        clearing->high = buf_slice(&high);
        if (!key_find(clearing, PG_NEXT_MARK, pg_key_mark_len(path), &mark, err))
            return false;
        if (mark.len == 0)
            break;
        buf_clear(&below);
        buf_append_slice(&below, path);
        buf_append_slice(&below, pg_key_piece(path, buf_slice(&mark)));
        if (!clear_node(clearing, buf_slice(&below), err))
            return false;
        buf_clear(&low);
        pg_key_beside_mark(path, slice_skip(buf_slice(&below), path.len), false, &low);
    }
    buf_clear(&low);
    pg_key_low(path, clearing->range.min, &low);
    clearing->kept_len = pg_key_mark_len(path);
    return clear_stored(clearing, buf_slice(&low), buf_slice(&high), err);
}

bool pg_range_drop(struct engine *base, uint32_t partition, uint64_t epoch,
                   struct engine_range range, struct error *err)
{
    struct clearing clearing = {
        .engine = pg_engine(base), .partition = partition, .epoch = epoch, .range = range};

    if (!range.min.data && !range.max.data) /* all there is, of all nodes */
        return clear_stored(&clearing, SLICE(""), SLICE("\xFF"), err);
    return clear_node(&clearing, SLICE_NONE, err);
}
