/* What the catalogue's partition holds, format version 1. All numbers in keys are 4 bytes,
 * big-endian; families 'c' and 'm' are group commit's (partition/layout.h).
 *
 *     h                                           -> the head: next numbers, nodes
 *     n                                           -> what is known of the nodes (node.h)
 *     w                                           -> nothing; written to get a write through
 *     a | account                                 -> an account
 *     a | account | 1 | database                  -> a database
 *     a | account | 1 | database | 0              -> its offer
 *     a | account | 1 | database | 2 | container      -> a container
 *     a | account | 1 | database | 2 | container | 0  -> its offer
 *     a | account | 1 | database | 2 | container | 6 | number  -> a stored procedure
 *     a | account | 1 | database | 2 | container | 7 | number  -> a trigger
 *     a | account | 1 | database | 2 | container | 8 | number  -> a user-defined function
 *     a | account | 1 | database | 3 | user           -> a user
 *     a | account | 1 | database | 3 | user | 4 | number  -> a permission
 *     a | account | 1 | database | 5 | number         -> a client encryption key
 *     x | key of a record                         -> that record and all below it are dropped
 *     n | key of a note                           -> a note (catalogue_notes.h)
 *
 * So parents come before what is in them, an offer right behind what it is for, and everything in
 * a scope shares a prefix: dropping is one key, however much is dropped.
 *
 * A value is a header and a BSON document:
 *
 *     1 byte   format, 1
 *     8 bytes  lsn of the commit that wrote it, big-endian
 *     8 bytes  wall clock of that commit in ms, big-endian
 *     then     the document
 *
 * Documents:
 *
 *     head       {accounts, databases, containers, offers, partitions, users, children: the next
 *                 numbers, the last two 1 where they are missing;
 *                 nodes: [node id, ...] by number}
 *     account    {id, properties: {...}, keys: {name: 64 bytes, ...} if it has its own}
 *     database   {id}
 *     container  {definition: {...} as completed, map: {...} as partition_map_append writes it,
 *                 writers: which version of the definition writes, 1 if it is not there,
 *                 policyVersion, before: [{...}, ...] definitions items may still be indexed by,
 *                 migration: {...} as migration_append writes it, if one is under way,
 *                 promotions: [{...}, ...] as promotion_append writes them, if it has any,
 *                 shown, untied: if they are not 0 (container_shown, container_untied),
 *                 lsn, ts: if they are not the header's: the map has changed since, or a migration}
 *     child      {body: {...} without system properties}
 *     offer      {number, kind: 0 manual, 1 autoscale, ru, ruPerMinute, tier, increment,
 *                 ruMaxEver, bytesMaxEver, unstated: true if nobody asked for it; without it, as
 *                 before there was any such, somebody did}
 *
 * Readers take no property for granted, and ignore those they do not know. */
#include "base/bytes.h"
#include "catalogue/catalogue_private.h"
#include "document/bson.h"

#include <openssl/crypto.h>

enum family {
    FAMILY_HEAD = 'h',
    FAMILY_NODES = 'n',
    FAMILY_BARRIER = 'w',
    FAMILY_TREE = 'a',
    FAMILY_TOMBSTONE = 'x'
};
enum tag {
    TAG_OFFER = 0,
    TAG_DATABASE = 1,
    TAG_CONTAINER = 2,
    TAG_USER = 3,
    TAG_PERMISSION = 4,
    TAG_ENCRYPTION_KEY = 5,
    TAG_PROCEDURE = 6,
    TAG_TRIGGER = 7,
    TAG_FUNCTION = 8,
};

static const enum tag child_tags[CHILD_KINDS] = {
    [CHILD_USER] = TAG_USER,
    [CHILD_ENCRYPTION_KEY] = TAG_ENCRYPTION_KEY,
    [CHILD_PERMISSION] = TAG_PERMISSION,
    [CHILD_PROCEDURE] = TAG_PROCEDURE,
    [CHILD_TRIGGER] = TAG_TRIGGER,
    [CHILD_FUNCTION] = TAG_FUNCTION,
};

static bool damaged(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the catalogue holds a damaged %s", what);
}

/* --- Keys ------------------------------------------------------------------------------------ */

struct slice catalogue_record_head_key(void)
{
    static const uint8_t key[] = {FAMILY_HEAD};

    return slice_of(key, sizeof key);
}

struct slice catalogue_record_nodes_key(void)
{
    static const uint8_t key[] = {FAMILY_NODES};

    return slice_of(key, sizeof key);
}

struct slice catalogue_record_barrier_key(void)
{
    static const uint8_t key[] = {FAMILY_BARRIER};

    return slice_of(key, sizeof key);
}

struct engine_range catalogue_record_range(void)
{
    static const uint8_t min[] = {FAMILY_TREE}, max[] = {FAMILY_TREE + 1};

    return (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)};
}

struct engine_range catalogue_record_tombstone_range(void)
{
    static const uint8_t min[] = {FAMILY_TOMBSTONE}, max[] = {FAMILY_TOMBSTONE + 1};

    return (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)};
}

static void number_write(uint8_t *key, size_t *len, enum tag tag, uint32_t number)
{
    assert(*len + 5 <= RECORD_KEY_MAX);
    key[*len] = (uint8_t)tag;
    bytes_put_be32(key + *len + 1, number);
    *len += 5;
}

struct slice catalogue_record_key(struct catalogue_record_address address, struct arena *arena)
{
    uint8_t *key = arena_alloc(arena, RECORD_KEY_MAX);
    size_t len = 5;

    key[0] = FAMILY_TREE;
    bytes_put_be32(key + 1, address.account);
    if (address.database)
        number_write(key, &len, TAG_DATABASE, address.database);
    if (address.container)
        number_write(key, &len, TAG_CONTAINER, address.container);
    if (address.user)
        number_write(key, &len, TAG_USER, address.user);
    if (address.kind == RECORD_CHILD)
        number_write(key, &len, child_tags[address.child_kind], address.child);
    if (address.kind == RECORD_OFFER)
        key[len++] = TAG_OFFER;
    return slice_of(key, len);
}

static bool number_read(struct slice key, size_t at, enum tag tag, uint32_t *ret_number)
{
    if (key.len < at + 5 || key.data[at] != tag)
        return false;
    *ret_number = bytes_get_be32(key.data + at + 1);
    return true;
}

/* A child, if one is at that place of the key: of a container scripts, of a database the others. */
static void child_read(struct slice key, size_t *at, struct catalogue_record_address *address)
{
    enum child_kind first = address->container ? CHILD_PROCEDURE : CHILD_USER;
    enum child_kind last = address->container ? CHILD_FUNCTION : CHILD_ENCRYPTION_KEY;
    uint32_t permission;

    for (enum child_kind kind = first; kind <= last; kind++)
        if (number_read(key, *at, child_tags[kind], &address->child)) {
            address->kind = RECORD_CHILD;
            address->child_kind = kind;
            *at += 5;
            break;
        }
    if (address->kind == RECORD_CHILD && address->child_kind == CHILD_USER &&
        number_read(key, *at, TAG_PERMISSION, &permission)) {
        address->child_kind = CHILD_PERMISSION;
        address->user = address->child;
        address->child = permission;
        *at += 5;
    }
}

static bool key_read(struct slice key, struct catalogue_record_address *ret_address,
                     struct error *err)
{
    struct catalogue_record_address address = {.kind = RECORD_ACCOUNT};
    size_t at = 5;

    if (key.len < 5 || key.data[0] != FAMILY_TREE)
        return damaged(err, "key");
    address.account = bytes_get_be32(key.data + 1);
    if (number_read(key, at, TAG_DATABASE, &address.database)) {
        address.kind = RECORD_DATABASE;
        at += 5;
        if (number_read(key, at, TAG_CONTAINER, &address.container)) {
            address.kind = RECORD_CONTAINER;
            at += 5;
        }
        child_read(key, &at, &address);
        if (key.len == at + 1 && key.data[at] == TAG_OFFER) {
            address.kind = RECORD_OFFER;
            at++;
        }
    }
    if (at != key.len)
        return damaged(err, "key");
    *ret_address = address;
    return true;
}

struct slice catalogue_record_tombstone_key(struct slice scope, struct arena *arena)
{
    uint8_t *key = arena_alloc(arena, scope.len + 1);

    key[0] = FAMILY_TOMBSTONE;
    memcpy(key + 1, scope.data, scope.len);
    return slice_of(key, scope.len + 1);
}

struct slice catalogue_record_tombstone_scope(struct slice key)
{
    return slice_skip(key, 1);
}

/* --- Values ---------------------------------------------------------------------------------- */

struct slice catalogue_record_value(struct slice document, struct arena *arena)
{
    uint8_t *value = arena_alloc(arena, RECORD_HEADER_LEN + document.len);

    memset(value, 0, RECORD_HEADER_LEN);
    value[0] = CATALOGUE_FORMAT;
    if (document.len)
        memcpy(value + RECORD_HEADER_LEN, document.data, document.len);
    return slice_of(value, RECORD_HEADER_LEN + document.len);
}

/* The value was made by catalogue_record_value, in memory that is the change's own. */
void catalogue_record_stamp(struct slice value, const struct commit_stamp *stamp)
{
    uint8_t *bytes = (uint8_t *)value.data;

    bytes_put_be64(bytes + 1, stamp->lsn);
    bytes_put_be64(bytes + 9, (uint64_t)stamp->wall_ms);
}

bool catalogue_record_value_read(struct slice value, struct catalogue_record *record,
                                 struct error *err)
{
    if (value.len < RECORD_HEADER_LEN)
        return damaged(err, "record");
    if (value.data[0] > CATALOGUE_FORMAT)
        return error_set(err, ERROR_STORE_VERSION,
                         "the catalogue was written by a newer Orrery: format %u", value.data[0]);
    record->lsn = bytes_get_be64(value.data + 1);
    record->ts_ms = (int64_t)bytes_get_be64(value.data + 9);
    record->document = slice_skip(value, RECORD_HEADER_LEN);
    return document_validate(record->document, NULL, err) || damaged(err, "record");
}

bool catalogue_record_read(struct slice key, struct slice value,
                           struct catalogue_record *ret_record, struct error *err)
{
    return key_read(key, &ret_record->address, err) &&
           catalogue_record_value_read(value, ret_record, err);
}

/* --- Documents ------------------------------------------------------------------------------- */

/* Every document is opened in a buffer and ends up in the arena. */
static struct slice document_finish(struct buf *buf, size_t begin, struct arena *arena)
{
    document_end(buf, begin);
    assert(!buf_overflowed(buf)); /* what is in it was limited on its way in */
    return arena_copy(arena, buf_slice(buf));
}

static bool get_number(struct slice document, struct slice name, uint64_t max, uint64_t *ret_number)
{
    struct document_value value;
    int64_t number;

    if (!document_find(document, name, &value) || !document_to_int64(&value, &number) ||
        number < 0 || (uint64_t)number > max)
        return false;
    *ret_number = (uint64_t)number;
    return true;
}

static bool get_uint32(struct slice document, struct slice name, uint32_t *ret_number)
{
    uint64_t number;

    if (!get_number(document, name, UINT32_MAX, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool get_text(struct slice document, struct slice name, struct slice *ret_text)
{
    struct document_value value;

    if (!document_find(document, name, &value) || value.type != DOCUMENT_STRING)
        return false;
    *ret_text = value.text;
    return true;
}

static bool get_document(struct slice document, struct slice name, enum document_type type,
                         struct slice *ret_document)
{
    struct document_value value;

    if (!document_find(document, name, &value) || value.type != type)
        return false;
    *ret_document = value.document;
    return true;
}

struct slice catalogue_record_head_write(const struct catalogue_head *head, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, nodes;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_int64(&buf, SLICE("accounts"), head->next_account);
    document_append_int64(&buf, SLICE("databases"), head->next_database);
    document_append_int64(&buf, SLICE("containers"), head->next_container);
    document_append_int64(&buf, SLICE("offers"), head->next_offer);
    document_append_int64(&buf, SLICE("partitions"), head->next_partition);
    document_append_int64(&buf, SLICE("users"), head->next_user);
    document_append_int64(&buf, SLICE("children"), head->next_child);
    nodes = document_append_array_begin(&buf, SLICE("nodes"));
    for (uint32_t i = 0; i < head->node_count; i++)
        document_append_string(&buf, document_index_key(i, text), slice_of_text(head->nodes[i]));
    document_end(&buf, nodes);
    return document_finish(&buf, begin, arena);
}

bool catalogue_record_head_read(struct slice document, struct catalogue_head *ret_head,
                                struct error *err)
{
    struct document_iter iter;
    struct slice nodes;

    *ret_head = (struct catalogue_head){.next_user = 1, .next_child = 1};
    if (!get_uint32(document, SLICE("accounts"), &ret_head->next_account) ||
        !get_uint32(document, SLICE("databases"), &ret_head->next_database) ||
        !get_uint32(document, SLICE("containers"), &ret_head->next_container) ||
        !get_uint32(document, SLICE("offers"), &ret_head->next_offer) ||
        !get_uint32(document, SLICE("partitions"), &ret_head->next_partition) ||
        !get_document(document, SLICE("nodes"), DOCUMENT_ARRAY, &nodes))
        return damaged(err, "head");
    (void)get_uint32(document, SLICE("users"), &ret_head->next_user);
    (void)get_uint32(document, SLICE("children"), &ret_head->next_child);
    document_iter_init(&iter, nodes);
    while (document_iter_next(&iter)) {
        if (ret_head->node_count == CLUSTER_NODES_MAX || iter.value.type != DOCUMENT_STRING ||
            iter.value.text.len != sizeof ret_head->nodes[0] - 1)
            return damaged(err, "head");
        memcpy(ret_head->nodes[ret_head->node_count++], iter.value.text.data, iter.value.text.len);
    }
    return true;
}

struct slice catalogue_record_account_write(const struct account *account, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value properties = document_object(account->properties);
    struct slice document;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), account->state.info.id);
    if (account->properties.len)
        document_append(&buf, SLICE("properties"), &properties);
    if (account->has_keys)
        account_keys_append(&buf, SLICE("keys"), &account->keys);
    document = document_finish(&buf, begin, arena);
    OPENSSL_cleanse(buf.data, buf.len);
    return document;
}

bool catalogue_record_account_read(const struct catalogue_record *record,
                                   struct catalogue_state **ret_state, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct slice id, keys, properties = SLICE_NONE;
    struct account *account;

    if (!get_text(record->document, SLICE("id"), &id))
        return damaged(err, "account");
    (void)get_document(record->document, SLICE("properties"), DOCUMENT_OBJECT, &properties);
    state = catalogue_state_new(STATE_ACCOUNT, id, record->address.account);
    account = catalogue_state_account(state);
    account->properties = arena_copy(state->arena, properties);
    account->has_keys = get_document(record->document, SLICE("keys"), DOCUMENT_OBJECT, &keys);
    if (account->has_keys && !account_keys_read(keys, &account->keys, err))
        return false;
    catalogue_state_stamp(state, (struct rid){0}, record->lsn, record->ts_ms);
    *ret_state = TAKE(state);
    return true;
}

struct slice catalogue_record_database_write(const struct database *database, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), database->state.info.id);
    return document_finish(&buf, begin, arena);
}

bool catalogue_record_database_read(const struct catalogue_record *record,
                                    struct catalogue_state **ret_state, struct error *err)
{
    struct catalogue_state *state;
    struct slice id;

    if (!get_text(record->document, SLICE("id"), &id))
        return damaged(err, "database");
    state = catalogue_state_new(STATE_DATABASE, id, record->address.database);
    catalogue_state_database(state)->account = record->address.account;
    catalogue_state_stamp(state, rid_of_database(record->address.database), record->lsn,
                          record->ts_ms);
    *ret_state = state;
    return true;
}

/* Added to a percentage that was given, so that 0 can be; records of before have none of it. */
enum { INCREMENT_GIVEN = 1000 };

struct slice catalogue_record_offer_write(const struct offer *offer, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_int64(&buf, SLICE("number"), offer->number);
    document_append_int32(&buf, SLICE("kind"), offer->kind);
    document_append_int64(&buf, SLICE("ru"), (int64_t)offer->ru);
    document_append_bool(&buf, SLICE("ruPerMinute"), offer->ru_per_minute);
    document_append_int32(&buf, SLICE("tier"), offer->tier);
    document_append_int64(&buf, SLICE("increment"),
                          offer->increment_given ? INCREMENT_GIVEN + offer->increment_percent : 0);
    document_append_int64(&buf, SLICE("ruMaxEver"), (int64_t)offer->ru_max_ever);
    document_append_int64(&buf, SLICE("bytesMaxEver"), (int64_t)offer->bytes_max_ever);
    if (offer->unstated)
        document_append_bool(&buf, SLICE("unstated"), true);
    return document_finish(&buf, begin, arena);
}

bool catalogue_record_offer_read(const struct catalogue_record *record, struct offer *ret_offer,
                                 struct error *err)
{
    struct slice document = record->document;
    struct document_value per_minute, unstated;
    uint64_t kind, tier, number;
    struct offer offer = {0};

    if (!get_number(document, SLICE("number"), (1u << RID_OFFER_BITS) - 1, &number) ||
        !get_number(document, SLICE("kind"), OFFER_AUTOSCALE, &kind) ||
        !get_number(document, SLICE("tier"), 3, &tier) ||
        !get_number(document, SLICE("ru"), INT64_MAX, &offer.ru) ||
        !get_uint32(document, SLICE("increment"), &offer.increment_percent) ||
        !get_number(document, SLICE("ruMaxEver"), INT64_MAX, &offer.ru_max_ever) ||
        !get_number(document, SLICE("bytesMaxEver"), INT64_MAX, &offer.bytes_max_ever) ||
        !document_find(document, SLICE("ruPerMinute"), &per_minute) ||
        per_minute.type != DOCUMENT_BOOL)
        return damaged(err, "offer");
    offer.increment_given = offer.increment_percent > 0;
    if (offer.increment_percent >= INCREMENT_GIVEN)
        offer.increment_percent -= INCREMENT_GIVEN;
    offer.number = (uint32_t)number;
    offer.kind = (enum offer_kind)kind;
    offer.tier = (uint8_t)tier;
    offer.ru_per_minute = per_minute.boolean;
    offer.unstated = document_find(document, SLICE("unstated"), &unstated) &&
                     unstated.type == DOCUMENT_BOOL && unstated.boolean;
    offer.shared = !record->address.container;
    offer.database = record->address.database;
    offer.container = record->address.container;
    catalogue_offer_stamp(&offer, record->lsn, record->ts_ms);
    *ret_offer = offer;
    return true;
}

struct slice catalogue_record_child_write(const struct catalogue_child *child, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value body = document_object(child->body);
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("body"), &body);
    return document_finish(&buf, begin, arena);
}

bool catalogue_record_child_read(const struct catalogue_record *record,
                                 struct catalogue_child **ret_child, struct error *err)
{
    const struct catalogue_record_address *address = &record->address;
    struct catalogue_child *child;
    struct slice body, id;

    if (!get_document(record->document, SLICE("body"), DOCUMENT_OBJECT, &body) ||
        !get_text(body, SLICE("id"), &id))
        return damaged(err, child_kind_name(address->child_kind));
    child = child_new(address->child_kind, address->account, address->database,
                      address->container ? address->container : address->user, body);
    child_stamp(child, address->child, record->lsn, record->ts_ms);
    *ret_child = child;
    return true;
}

static void migration_write(const struct container *container, struct buf *buf)
{
    CLEANUP(buf_done) struct buf migration;
    struct document_value value;

    buf_init(&migration, BUF_DEFAULT_MAX);
    migration_append(container->migration, &migration);
    value = document_object(buf_slice(&migration));
    document_append(buf, SLICE("migration"), &value);
}

static void promotions_write(const struct promotion_list *promotions, struct buf *buf)
{
    size_t array = document_append_array_begin(buf, SLICE("promotions"));

    for (size_t i = 0; i < promotions->count; i++) {
        CLEANUP(buf_done) struct buf promotion;
        char index[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        buf_init(&promotion, BUF_DEFAULT_MAX);
        promotion_append(promotions->list[i], &promotion);
        value = document_object(buf_slice(&promotion));
        document_append(buf, document_index_key((uint32_t)i, index), &value);
    }
    document_end(buf, array);
}

struct slice catalogue_record_container_write(const struct container *container, bool keeps_stamp,
                                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    CLEANUP(buf_done) struct buf map;
    CLEANUP(partition_map_unref)
    struct partition_map *now = container_map_now(container);
    struct document_value definition =
        document_object(definition_fields(container->definition)->document);
    struct document_value map_value;
    size_t begin, before;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_init(&map, BUF_DEFAULT_MAX);
    partition_map_append(now, &map);
    map_value = document_object(buf_slice(&map));
    begin = document_begin(&buf);
    document_append(&buf, SLICE("definition"), &definition);
    document_append(&buf, SLICE("map"), &map_value);
    document_append_int64(&buf, SLICE("policyVersion"), container->policy_version);
    if (container->writers > 1)
        document_append_int64(&buf, SLICE("writers"), container->writers);
    before = document_append_array_begin(&buf, SLICE("before"));
    for (uint32_t i = 0; i < container->before_count; i++) {
        char index[DOCUMENT_INDEX_SIZE];

        definition = document_object(definition_fields(container->before[i])->document);
        document_append(&buf, document_index_key(i, index), &definition);
    }
    document_end(&buf, before);
    if (container->migration)
        migration_write(container, &buf);
    if (container->promotions.count)
        promotions_write(&container->promotions, &buf);
    if (container->shown) {
        document_append_int64(&buf, SLICE("shown"), (int64_t)container->shown);
        document_append_int64(&buf, SLICE("untied"), (int64_t)container->untied);
    }
    if (keeps_stamp) {
        document_append_int64(&buf, SLICE("lsn"), (int64_t)container->state.info.lsn);
        document_append_int64(&buf, SLICE("ts"), container->state.info.ts_ms);
    }
    return document_finish(&buf, begin, arena);
}

/* *ret_migration NULL: none is under way. */
static bool container_map_read(const struct catalogue_record *record,
                               struct partition_map **ret_map, struct migration **ret_migration,
                               struct error *err)
{
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    struct slice document;

    if (!get_document(record->document, SLICE("map"), DOCUMENT_OBJECT, &document))
        return damaged(err, "container");
    *ret_migration = NULL;
    if (!partition_map_read(document, &map, err) ||
        (get_document(record->document, SLICE("migration"), DOCUMENT_OBJECT, &document) &&
         !migration_parse(document, ret_migration, err)))
        return false;
    *ret_map = TAKE(map);
    return true;
}

bool catalogue_record_container_partitions(const struct catalogue_record *record,
                                           struct arena *arena,
                                           struct catalogue_record_partition **ret_partitions,
                                           size_t *ret_count, struct error *err)
{
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    CLEANUP(migration_unref) struct migration *migration = NULL;
    const struct migration_source *sources = NULL;
    const struct partition_span *spans, *targets = NULL;
    size_t span_count, source_count = 0, target_count = 0, count = 0;
    struct catalogue_record_partition *partitions;

    if (!container_map_read(record, &map, &migration, err))
        return false;
    spans = partition_map_spans(map, &span_count);
    if (migration) {
        sources = migration_sources(migration, &source_count);
        targets = migration_targets(migration, &target_count);
        if (migration_kind(migration) == MIGRATION_COPY &&
            migration_state(migration) == MIGRATION_DROPPING)
            target_count = 0; /* they are in the map of the copy */
    }
    partitions = ARENA_ARRAY(arena, struct catalogue_record_partition,
                             span_count + source_count + target_count);
    for (size_t i = 0; i < span_count; i++)
        partitions[count++] = (struct catalogue_record_partition){spans[i].id, spans[i].node};
    for (size_t i = 0; i < source_count; i++)
        partitions[count++] = (struct catalogue_record_partition){sources[i].id, sources[i].node};
    for (size_t i = 0; i < target_count; i++)
        partitions[count++] = (struct catalogue_record_partition){targets[i].id, targets[i].node};
    *ret_partitions = partitions;
    *ret_count = count;
    return true;
}

/* Records from before policies had versions are of version 1. */
static bool container_policies_read(const struct catalogue_record *record,
                                    struct container *container, struct error *err)
{
    struct document_iter iter;
    struct slice before;

    container->policy_version = container->writers = 1;
    (void)get_uint32(record->document, SLICE("writers"), &container->writers);
    (void)get_uint32(record->document, SLICE("policyVersion"), &container->policy_version);
    if (!get_document(record->document, SLICE("before"), DOCUMENT_ARRAY, &before))
        return true;
    document_iter_init(&iter, before);
    while (document_iter_next(&iter)) {
        if (container->before_count == CONTAINER_POLICIES_MAX || iter.value.type != DOCUMENT_OBJECT)
            return damaged(err, "container");
        if (!definition_new(iter.value.document, NULL, &container->before[container->before_count],
                            err))
            return false;
        container->before_count++;
    }
    return true;
}

static bool container_promotions_read(const struct catalogue_record *record,
                                      struct container *container, struct error *err)
{
    struct promotion_list *promotions = &container->promotions;
    struct document_iter iter;
    struct slice list;

    (void)get_number(record->document, SLICE("shown"), INT64_MAX, &container->shown);
    (void)get_number(record->document, SLICE("untied"), INT64_MAX, &container->untied);
    if (!get_document(record->document, SLICE("promotions"), DOCUMENT_ARRAY, &list))
        return true;
    document_iter_init(&iter, list);
    while (document_iter_next(&iter)) {
        if (promotions->count == PROMOTIONS_MAX || iter.value.type != DOCUMENT_OBJECT)
            return damaged(err, "container");
        if (!promotion_parse(iter.value.document, &promotions->list[promotions->count], err))
            return false;
        promotions->count++;
    }
    return true;
}

bool catalogue_record_container_read(const struct catalogue_record *record,
                                     struct catalogue *catalogue,
                                     struct catalogue_state **ret_state, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    CLEANUP(migration_unref) struct migration *migration = NULL;
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    uint64_t lsn = record->lsn, ts = (uint64_t)record->ts_ms;
    struct container *container;
    struct slice document;

    if (!get_document(record->document, SLICE("definition"), DOCUMENT_OBJECT, &document))
        return damaged(err, "container");
    if (!container_map_read(record, &map, &migration, err) ||
        !definition_new(document, NULL, &definition, err))
        return false;
    state = catalogue_state_new(STATE_CONTAINER, definition_fields(definition)->id,
                                record->address.container);
    container = catalogue_state_container(state);
    container->account = record->address.account;
    container->database = record->address.database;
    container->definition = TAKE(definition);
    container->map = TAKE(map);
    container->migration = TAKE(migration);
    container->catalogue = catalogue;
    if (!container_policies_read(record, container, err) ||
        !container_promotions_read(record, container, err))
        return false;
    (void)get_number(record->document, SLICE("lsn"), INT64_MAX, &lsn);
    (void)get_number(record->document, SLICE("ts"), INT64_MAX, &ts);
    catalogue_state_stamp(state, container_rid(container), lsn, (int64_t)ts);
    *ret_state = TAKE(state);
    return true;
}
