/* Definitions are rewritten as documents and read again, so that a re-key can bring nothing about
 * that could not have been created so. */
#include "definition/rekey.h"

#include "definition/definition_private.h"
#include "document/bson.h"
#include "document/order.h"
#include "partition/synthetic.h"

static const struct slice placing_members[] = {
    SLICE("strategy"), SLICE("synthetic"), SLICE("formerly"), SLICE("rekeyed"), SLICE("placed")};

static bool is_placing(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(placing_members); i++)
        if (slice_equal(name, placing_members[i]))
            return true;
    return false;
}

static struct slice orrery_of(const struct definition *definition)
{
    struct document_value orrery;

    if (!document_find(definition_fields(definition)->document, SLICE("orrery"), &orrery) ||
        orrery.type != DOCUMENT_OBJECT)
        return SLICE_NONE;
    return orrery.document;
}

static void elements_copy(struct slice object, bool placing, struct buf *out)
{
    struct document_iter iter;

    if (!object.data)
        return;
    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        if (is_placing(iter.key) == placing)
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
}

/* The document of a definition with another partition key (BSON) and, in `orrery`, the elements
 * that were written instead of those that place items. */
static bool placed_write(const struct definition *definition, struct slice partition_key,
                         const struct buf *elements, struct definition **ret_definition,
                         struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct document_value key = document_object(partition_key);
    struct document_iter iter;
    size_t begin, object;

    buf_init(&body, BUF_DEFAULT_MAX);
    begin = document_begin(&body);
    document_iter_init(&iter, definition_fields(definition)->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("partitionKey")))
            document_append(&body, iter.key, &key);
        else if (!slice_equal(iter.key, SLICE("orrery")))
            buf_append(&body, iter.element, (size_t)(iter.at - iter.element));
    }
    object = document_append_object_begin(&body, SLICE("orrery"));
    elements_copy(orrery_of(definition), false, &body);
    buf_append_slice(&body, buf_slice(elements));
    document_end(&body, object);
    document_end(&body, begin);
    return definition_new(buf_slice(&body), NULL, ret_definition, err);
}

static struct slice partition_key_of_document(const struct definition *definition)
{
    struct document_value key = {0};

    if (!document_find(definition_fields(definition)->document, SLICE("partitionKey"), &key) ||
        key.type != DOCUMENT_OBJECT)
        return SLICE_NONE;
    return key.document;
}

bool definition_placed_as(const struct definition *definition, const struct definition *placing,
                          struct definition **ret_definition, struct error *err)
{
    CLEANUP(buf_done) struct buf elements;

    buf_init(&elements, BUF_DEFAULT_MAX);
    elements_copy(orrery_of(placing), true, &elements);
    return placed_write(definition, partition_key_of_document(placing), &elements, ret_definition,
                        err);
}

bool definition_grace_ended(const struct definition *before, struct definition **ret_definition,
                            struct error *err)
{
    CLEANUP(buf_done) struct buf elements;
    struct document_iter iter;

    buf_init(&elements, BUF_DEFAULT_MAX);
    if (!definition_fields(before)->key.formerly)
        return error_set(err, ERROR_BAD_REQUEST,
                         "container \"%.*s\" is in no grace period: it answers to one key",
                         SLICE_ARG(definition_fields(before)->id));
    document_iter_init(&iter, orrery_of(before));
    while (document_iter_next(&iter))
        if (is_placing(iter.key) && !slice_equal(iter.key, SLICE("formerly")))
            buf_append(&elements, iter.element, (size_t)(iter.at - iter.element));
    return placed_write(before, partition_key_of_document(before), &elements, ret_definition, err);
}

/* The same with the LSN of a switch in the place of the one before. */
static bool switch_note(const struct definition *definition, struct slice member, uint64_t lsn,
                        struct definition **ret_definition, struct error *err)
{
    CLEANUP(buf_done) struct buf elements;
    struct document_iter iter;

    buf_init(&elements, BUF_DEFAULT_MAX);
    if (orrery_of(definition).data) {
        document_iter_init(&iter, orrery_of(definition));
        while (document_iter_next(&iter))
            if (is_placing(iter.key) && !slice_equal(iter.key, member))
                buf_append(&elements, iter.element, (size_t)(iter.at - iter.element));
    }
    document_append_int64(&elements, member, (int64_t)lsn);
    return placed_write(definition, partition_key_of_document(definition), &elements,
                        ret_definition, err);
}

bool definition_rekeyed_at(const struct definition *definition, uint64_t lsn,
                           struct definition **ret_definition, struct error *err)
{
    return switch_note(definition, SLICE("rekeyed"), lsn, ret_definition, err);
}

bool definition_placed_at(const struct definition *definition, uint64_t lsn,
                          struct definition **ret_definition, struct error *err)
{
    return switch_note(definition, SLICE("placed"), lsn, ret_definition, err);
}

/* --- Comparing ------------------------------------------------------------------------------- */

bool definition_keys_equal(const struct partition_definition *a,
                           const struct partition_definition *b)
{
    if (a->path_count != b->path_count || !a->synthetic != !b->synthetic)
        return false;
    for (size_t i = 0; i < a->path_count; i++)
        if (!slice_equal(a->texts[i], b->texts[i]))
            return false;
    return !a->synthetic || partition_synthetic_equal(a->synthetic, b->synthetic);
}

static bool placed_equally(const struct definition *a, const struct definition *b)
{
    struct document_value x = document_string(SLICE("hash")), y = x;
    const struct partition_definition *p = &definition_fields(a)->key,
                                      *q = &definition_fields(b)->key;

    (void)document_find(orrery_of(a), SLICE("strategy"), &x);
    (void)document_find(orrery_of(b), SLICE("strategy"), &y);
    return document_compare(DOCUMENT_ORDER_SQL, &x, &y) == 0 && p->kind == q->kind;
}

/* --- Making ---------------------------------------------------------------------------------- */

static void formerly_write(const struct definition *before, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("formerly"));
    struct document_value key = document_object(partition_key_of_document(before)), synthetic;

    document_append(out, SLICE("partitionKey"), &key);
    if (document_find(orrery_of(before), SLICE("synthetic"), &synthetic))
        document_append(out, SLICE("synthetic"), &synthetic);
    document_end(out, object);
}

static void members_write(const struct definition_rekey *rekey, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value;

    if (rekey->strategy.data && document_find(rekey->strategy, SLICE("strategy"), &value))
        document_append(out, SLICE("strategy"), &value);
    if (rekey->synthetic.data) {
        value = document_object(partition_synthetic_fresh(rekey->synthetic, arena));
        document_append(out, SLICE("synthetic"), &value);
    }
}

/* Clients of collections name no keys: nobody speaks of the one before, so that there is no grace
 * period, and a collection without a key can get one. */
static bool names_no_keys(const struct definition_fields *fields)
{
    return fields->identity == DEFINITION_IDENTITY_MONGO;
}

static bool rekeyed_check(const struct definition *before, const struct definition *after,
                          struct error *err)
{
    const struct definition_fields *fields = definition_fields(before);

    if ((fields->key.system_key && !names_no_keys(fields)) ||
        definition_fields(after)->key.system_key)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a container without a partition key cannot be re-keyed");
    if (fields->bound.bytes)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "container \"%.*s\" is bounded, as a capped collection is: its oldest "
                         "items are those of one logical partition, so it can have no partition "
                         "key",
                         SLICE_ARG(fields->id));
    if (definition_keys_equal(&fields->key, &definition_fields(after)->key) &&
        placed_equally(before, after))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the container has that partition key already: nothing would change");
    return true;
}

bool definition_rekeyed(const struct definition *before, const struct definition_rekey *rekey,
                        struct definition **ret_definition, struct error *err)
{
    CLEANUP(definition_unref) struct definition *plain = NULL;
    CLEANUP(buf_done) struct buf elements;
    const struct definition_fields *fields = definition_fields(before);
    struct slice key =
        rekey->partition_key.data ? rekey->partition_key : partition_key_of_document(before);

    buf_init(&elements, BUF_DEFAULT_MAX);
    if (fields->key.formerly)
        return error_set(err, ERROR_BUSY,
                         "container \"%.*s\" still answers to the key before its last re-key: end "
                         "that grace period first",
                         SLICE_ARG(fields->id));
    if (fields->throughput.tenant_count)
        return error_set(
            err, ERROR_BAD_REQUEST,
            "container \"%.*s\" has throughput reserved or capped for values of the key "
            "it has: take that back first",
            SLICE_ARG(fields->id));
    members_write(rekey, &elements);
    if (fields->rekeyed_lsn)
        document_append_int64(&elements, SLICE("rekeyed"), (int64_t)fields->rekeyed_lsn);
    definition_placed_keep(fields, &elements);
    if (!key.data)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a container without a partition key cannot be re-keyed");
    if (!placed_write(before, key, &elements, &plain, err) || !rekeyed_check(before, plain, err))
        return false;
    if (names_no_keys(fields) ||
        definition_keys_equal(&fields->key, &definition_fields(plain)->key)) {
        *ret_definition = TAKE(plain);
        return true;
    }
    formerly_write(before, &elements);
    return placed_write(before, key, &elements, ret_definition, err);
}

/* --- The member ------------------------------------------------------------------------------ */

static bool formerly_parse(struct slice object, struct arena *arena,
                           const struct partition_definition **ret_formerly, struct error *err)
{
    struct partition_definition *formerly = ARENA_NEW(arena, struct partition_definition);
    struct document_value key, synthetic;

    if (!document_find(object, SLICE("partitionKey"), &key) || key.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.formerly has no partition key");
    if (!partition_definition_read(key.document, arena, formerly, err))
        return false;
    if (document_find(object, SLICE("synthetic"), &synthetic) &&
        (synthetic.type != DOCUMENT_OBJECT ||
         !partition_synthetic_read(synthetic.document, formerly, false, arena, &formerly->synthetic,
                                   err)))
        return false;
    *ret_formerly = formerly;
    return true;
}

bool definition_formerly_read(struct definition_fields *fields, const struct document_value *value,
                              const struct definition_fields *before, struct arena *arena,
                              struct buf *out, struct error *err)
{
    struct document_value orrery, was;

    if (value->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.formerly must be an object");
    if (before && (!document_find(before->document, SLICE("orrery"), &orrery) ||
                   orrery.type != DOCUMENT_OBJECT ||
                   !document_find(orrery.document, SLICE("formerly"), &was) ||
                   document_compare(DOCUMENT_ORDER_SQL, value, &was) != 0))
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.formerly is set by a re-key and removed when its grace period is "
                         "ended, not by a replace");
    if (!formerly_parse(arena_copy(arena, value->document), arena, &fields->key.formerly, err))
        return false;
    document_append(out, SLICE("formerly"), value);
    return true;
}

bool definition_formerly_keep(struct definition_fields *fields,
                              const struct definition_fields *before, struct arena *arena,
                              struct buf *out, struct error *err)
{
    struct document_value orrery, was;

    if (!before->key.formerly || !document_find(before->document, SLICE("orrery"), &orrery) ||
        !document_find(orrery.document, SLICE("formerly"), &was))
        return true;
    return definition_formerly_read(fields, &was, before, arena, out, err);
}

static bool member_is(struct slice document, struct slice member,
                      const struct document_value *value)
{
    struct document_value orrery, was;

    return document_find(document, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT &&
           document_find(orrery.document, member, &was) &&
           document_compare(DOCUMENT_ORDER_SQL, value, &was) == 0;
}

static bool switch_read(const struct document_value *value, struct slice member,
                        const struct definition_fields *before, struct buf *out, uint64_t *ret_lsn,
                        struct error *err)
{
    double number;

    if (!document_to_double(value, &number) || !(number > 0 && number < 9e15))
        return error_set(err, ERROR_BAD_REQUEST, "orrery.%.*s must be a number above 0",
                         SLICE_ARG(member));
    if (before && !member_is(before->document, member, value))
        return error_set(err, ERROR_BAD_REQUEST, "orrery.%.*s is set by a re-key, not by a replace",
                         SLICE_ARG(member));
    document_append_int64(out, member, (int64_t)number);
    *ret_lsn = (uint64_t)number;
    return true;
}

bool definition_rekeyed_read(struct definition_fields *fields, const struct document_value *value,
                             const struct definition_fields *before, struct buf *out,
                             struct error *err)
{
    return switch_read(value, SLICE("rekeyed"), before, out, &fields->rekeyed_lsn, err);
}

void definition_rekeyed_keep(struct definition_fields *fields,
                             const struct definition_fields *before, struct buf *out)
{
    fields->rekeyed_lsn = before->rekeyed_lsn;
    if (before->rekeyed_lsn)
        document_append_int64(out, SLICE("rekeyed"), (int64_t)before->rekeyed_lsn);
}

uint64_t definition_placed_lsn(const struct definition_fields *fields)
{
    struct document_value orrery, placed;
    int64_t lsn;

    return document_find(fields->document, SLICE("orrery"), &orrery) &&
                   orrery.type == DOCUMENT_OBJECT &&
                   document_find(orrery.document, SLICE("placed"), &placed) &&
                   document_to_int64(&placed, &lsn)
               ? (uint64_t)lsn
               : 0;
}

bool definition_placed_read(const struct document_value *value,
                            const struct definition_fields *before, struct buf *out,
                            struct error *err)
{
    uint64_t lsn;

    return switch_read(value, SLICE("placed"), before, out, &lsn, err);
}

void definition_placed_keep(const struct definition_fields *before, struct buf *out)
{
    uint64_t lsn = definition_placed_lsn(before);

    if (lsn)
        document_append_int64(out, SLICE("placed"), (int64_t)lsn);
}
