#include "item/agreement_record.h"

#include "base/bytes.h"
#include "item/transaction_private.h"
#include "item/write_record.h"

enum { FORMAT = 1, WRITE_HEAD = 15, DECISION_LEN = 17 };
enum kind { KIND_PUT, KIND_DELETE, KIND_BESIDE };

/* --- Writes ---------------------------------------------------------------------------------- */

static void bytes_append(struct buf *buf, struct slice bytes)
{
    buf_append_be32(buf, (uint32_t)bytes.len);
    buf_append_slice(buf, bytes);
}

static bool planned_check(const struct transaction *transaction,
                          const struct transaction_planned *planned, struct error *err)
{
    const struct transaction_entity *entity = planned->entity;

    if (!entity)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "items are not expired in a transaction over several nodes");
    if ((entity->stored && entity->stored != planned->seen) ||
        (planned->before != NO_WRITE_BEFORE &&
         transaction->planned[planned->before].seen != planned->seen))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "an item cannot get another id in a transaction over several nodes");
    return true;
}

static void head_append(struct buf *buf, const struct transaction_place *place, enum kind kind,
                        uint8_t flags, bool described)
{
    buf_append_be32(buf, place->scope.history.account);
    buf_append_be32(buf, place->scope.history.database);
    buf_append_be32(buf, place->scope.history.container);
    buf_append_byte(buf, (uint8_t)kind);
    buf_append_byte(buf, flags);
    buf_append_byte(buf, described);
    bytes_append(buf, place->logical);
}

static void beside_append(struct buf *buf, const struct transaction_record *record,
                          struct arena *arena)
{
    struct engine_op op;

    if (record->op)
        op = *record->op;
    else
        op = (struct engine_op){ENGINE_PUT,
                                write_record_key(record->record, record->place->logical, arena),
                                write_record_value(record->record, arena)};
    head_append(buf, record->place, KIND_BESIDE, op.kind == ENGINE_DELETE, false);
    bytes_append(buf, op.key);
    bytes_append(buf, op.value);
    bytes_append(buf, SLICE_NONE);
}

bool agreement_writes_append(const struct transaction *transaction, struct buf *buf,
                             struct error *err)
{
    assert(!transaction->told_count); /* the home tells */
    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct transaction_planned *planned = &transaction->planned[i];
        const struct transaction_place *place = planned->seen->place;

        if (!planned_check(transaction, planned, err))
            return false;
        head_append(buf, place, planned->after.data ? KIND_PUT : KIND_DELETE, planned->flags,
                    planned->description.data != NULL);
        bytes_append(buf, planned->seen->key);
        bytes_append(buf, planned->after);
        bytes_append(buf, planned->description);
    }
    for (const struct transaction_record *r = transaction->records; r; r = r->next)
        beside_append(buf, r, transaction->arena);
    return true;
}

static bool bytes_take(struct slice *rest, struct slice *ret_bytes)
{
    uint32_t len;

    if (rest->len < 4 || (len = bytes_get_be32(rest->data)) > rest->len - 4)
        return false;
    *ret_bytes = slice_of(rest->data + 4, len);
    *rest = slice_skip(*rest, 4 + len);
    return true;
}

/* An item is in its logical partition. */
static bool key_fits(const struct agreement_write *write)
{
    return write->is_beside ||
           (write->key.len > write->logical.len && slice_starts_with(write->key, write->logical));
}

bool agreement_write_next(struct slice *writes, struct agreement_write *ret_write,
                          struct error *err)
{
    struct agreement_write write = {0};
    struct slice rest = *writes;
    bool described;

    if (rest.len < WRITE_HEAD)
        return error_set(err, ERROR_STORE_CORRUPT, "a promised write is cut short");
    write.account = bytes_get_be32(rest.data);
    write.database = bytes_get_be32(rest.data + 4);
    write.container = bytes_get_be32(rest.data + 8);
    write.deletes = rest.data[12] == KIND_DELETE;
    write.is_beside = rest.data[12] == KIND_BESIDE;
    write.flags = rest.data[13];
    if (rest.data[12] > KIND_BESIDE)
        return error_set(err, ERROR_STORE_CORRUPT, "a promised write is of no known kind");
    described = rest.data[14];
    rest = slice_skip(rest, WRITE_HEAD);
    if (!bytes_take(&rest, &write.logical) || !bytes_take(&rest, &write.key) ||
        !bytes_take(&rest, &write.document) || !bytes_take(&rest, &write.description) ||
        !write.logical.len || !write.key.len || !key_fits(&write))
        return error_set(err, ERROR_STORE_CORRUPT, "a promised write is damaged");
    if (!described)
        write.description = SLICE_NONE;
    *writes = rest;
    *ret_write = write;
    return true;
}

/* --- Decisions ------------------------------------------------------------------------------- */

struct slice agreement_decision_encode(struct agreement_decision decision, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, DECISION_LEN);

    bytes[0] = FORMAT;
    bytes_put_be64(bytes + 1, (uint64_t)decision.wall_ms);
    bytes_put_be64(bytes + 9, decision.nodes);
    return slice_of(bytes, DECISION_LEN);
}

bool agreement_decision_decode(struct slice value, struct agreement_decision *ret_decision,
                               struct error *err)
{
    if (value.len && value.data[0] != FORMAT)
        return error_set(err, ERROR_STORE_VERSION,
                         "the decision of a transaction has format %u, newer than %d",
                         value.data[0], FORMAT);
    if (value.len != DECISION_LEN)
        return error_set(err, ERROR_STORE_CORRUPT, "the decision of a transaction is damaged");
    *ret_decision = (struct agreement_decision){.wall_ms = (int64_t)bytes_get_be64(value.data + 1),
                                                .nodes = bytes_get_be64(value.data + 9)};
    return true;
}
