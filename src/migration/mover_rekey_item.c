/* The key an item gets by another definition. */
#include "migration/mover_private.h"

#include "document/bson.h"
#include "document/order.h"
#include "partition/synthetic.h"

#include <xxhash.h>

const char *mover_obstacle_name(enum mover_obstacle obstacle)
{
    static const char *const names[] = {
        [MOVER_FINE] = "none",
        [MOVER_KEY_INVALID] = "invalidKey",
        [MOVER_KEY_MISSING] = "missingKey",
        [MOVER_KEY_TAKEN] = "sameKeyAndId",
        [MOVER_UNIQUE_TAKEN] = "sameUniqueKey",
    };

    return names[obstacle];
}

/* A document without the value at a path of objects. */
static void value_drop(struct slice document, const struct document_path *path, size_t step,
                       struct buf *out)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        bool met = slice_equal(iter.key, path->segments[step].name);
        size_t object;

        if (met && step + 1 == path->count)
            continue;
        if (!met || iter.value.type != DOCUMENT_OBJECT) {
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
            continue;
        }
        object = document_append_object_begin(out, iter.key);
        value_drop(iter.value.document, path, step + 1, out);
        document_end(out, object);
    }
}

/* What the definition before has made the new one makes again. */
static struct slice made_drop(const struct partition_definition *from,
                              const struct partition_definition *to, struct slice document,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!from->synthetic || !to->synthetic ||
        !slice_equal(from->texts[from->synthetic->target], to->texts[to->synthetic->target]))
        return document;
    begin = document_begin(&out);
    value_drop(document, &to->paths[to->synthetic->target], 0, &out);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* A suffix by chance must be the same however often the item is carried, and the same for two items
 * with one base and id: so that they meet, and are found. */
static bool key_close(const struct partition_definition *to, struct slice id,
                      struct partition_key *key, struct arena *arena, struct error *err)
{
    const struct partition_synthetic *synthetic = to->synthetic;
    struct document_value *made = &key->components[synthetic->target];
    struct document_value base = *made;
    uint64_t hash =
        XXH3_64bits_withSeed(id.data, id.len, XXH3_64bits(base.text.data, base.text.len));

    key->open = false;
    return partition_synthetic_suffixed(
        synthetic, &base, (uint32_t)(hash % synthetic->suffixes) + 1, arena, made, err);
}

static bool key_is_missing(const struct partition_key *key)
{
    for (size_t i = 0; i < key->count; i++)
        if (key->components[i].type == DOCUMENT_UNDEFINED)
            return true;
    return false;
}

static bool invalid(struct mover_rekeyed *rekeyed, const struct error *why)
{
    rekeyed->obstacle = MOVER_KEY_INVALID;
    (void)snprintf(rekeyed->why, sizeof rekeyed->why, "%s", why->message);
    return true;
}

bool mover_rekey_item(const struct partition_definition *from,
                      const struct partition_definition *to, bool allows_missing,
                      const struct partition_key_limits *limits, const struct item *item,
                      struct arena *arena, struct mover_rekeyed *ret_rekeyed, struct error *err)
{
    struct mover_rekeyed rekeyed = {.document = made_drop(from, to, item->document, arena)};
    struct partition_key *key = &rekeyed.key;
    struct item_key_parts parts;
    struct error why;

    if (!item_key_split(from, item->key, &parts, err))
        return false;
    if (!partition_key_derive(to, rekeyed.document, NULL, arena, key, &why) ||
        (key->open && !key_close(to, parts.id, key, arena, &why)) ||
        (to->synthetic && !partition_synthetic_fill(to, key, SLICE_NONE, rekeyed.document, arena,
                                                    &rekeyed.document, &why)) ||
        !partition_key_check(to, key, limits, &why)) {
        *ret_rekeyed = rekeyed;
        return invalid(ret_rekeyed, &why);
    }
    if (!allows_missing && key_is_missing(key))
        rekeyed.obstacle = MOVER_KEY_MISSING;
    rekeyed.item_key =
        arena_join(arena, (const struct slice[]){item_logical(to, key, arena), parts.id}, 2);
    *ret_rekeyed = rekeyed;
    return true;
}
