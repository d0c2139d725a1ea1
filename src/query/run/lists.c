/* A hash table of chains and a list by the time of use, under one lock, which is held for a few
 * steps. A list is found by partition and term, so that one of a later LSN takes the place of the
 * one before it. */
#include "query/run/lists.h"

#include "base/memory.h"
#include "base/thread.h"
#include "index/policy.h"

#include <stdatomic.h>
#include <xxhash.h>

enum {
    CHAINS = 4096,
    SEEN = 1024, /* partitions whose last LSN is known */
    ENTRIES_FIRST = 64,
    ENTRIES_MAX = 65536,              /* of a list; longer ones are walked */
    LIST_BYTES_MAX = 4 * 1024 * 1024, /* the same */
};

struct posting {
    uint64_t number;
    uint32_t key; /* where its key begins */
    uint16_t key_len, routing_len;
    uint8_t said[INDEX_TERM_SAID];
};

struct query_list {
    atomic_uint refs;
    struct query_list_key key; /* its slices are owned */
    uint64_t hash;
    struct query_list *chained, *newer, *older;
    bool is_long;
    size_t tried;
    struct query_list_sum sum;
    size_t count, capacity;
    struct posting *postings; /* owned */
    uint8_t *keys;            /* owned */
    size_t keys_len, keys_capacity;
    size_t bytes; /* once it is put */
};

struct seen {
    uint32_t node, partition;
    uint64_t lsn;
};

struct query_lists {
    struct mutex lock;
    size_t bytes_max, bytes;
    struct query_list *chains[CHAINS];
    struct query_list *newest, *oldest;
    struct seen seen[SEEN];
};

struct query_lists *query_lists_new(size_t bytes_max)
{
    struct query_lists *lists = MEMORY_NEW(struct query_lists);

    mutex_init(&lists->lock);
    lists->bytes_max = bytes_max;
    return lists;
}

static void list_free(struct query_list *list)
{
    memory_free((void *)list->key.prefix.data);
    memory_free((void *)list->key.value.data);
    memory_free(list->postings);
    memory_free(list->keys);
    memory_free(list);
}

void query_list_unref(struct query_list *list)
{
    if (list && atomic_fetch_sub(&list->refs, 1) == 1)
        list_free(list);
}

/* --- The table, with its lock ---------------------------------------------------------------- */

static void list_unlink(struct query_lists *lists, struct query_list *list)
{
    *(list->newer ? &list->newer->older : &lists->newest) = list->older;
    *(list->older ? &list->older->newer : &lists->oldest) = list->newer;
    list->newer = list->older = NULL;
}

static void list_link(struct query_lists *lists, struct query_list *list)
{
    list->older = lists->newest;
    *(lists->newest ? &lists->newest->newer : &lists->oldest) = list;
    lists->newest = list;
}

/* Takes it off; its reference goes to the chain that starts at *gone. */
static void list_drop(struct query_lists *lists, struct query_list *list, struct query_list **gone)
{
    struct query_list **at = &lists->chains[list->hash % CHAINS];

    while (*at != list)
        at = &(*at)->chained;
    *at = list->chained;
    list_unlink(lists, list);
    lists->bytes -= list->bytes;
    list->chained = *gone;
    *gone = list;
}

static void gone_unref(struct query_list *gone)
{
    while (gone) {
        struct query_list *next = gone->chained;

        query_list_unref(gone);
        gone = next;
    }
}

void query_lists_free(struct query_lists *lists)
{
    struct query_list *gone = NULL;

    if (!lists)
        return;
    while (lists->newest)
        list_drop(lists, lists->newest, &gone);
    gone_unref(gone);
    assert(!lists->bytes);
    mutex_done(&lists->lock);
    memory_free(lists);
}

static uint64_t hash_of(const struct query_list_key *key)
{
    uint64_t hash = XXH3_64bits_withSeed(key->prefix.data, key->prefix.len,
                                         (uint64_t)key->node << 32 | key->partition);

    return XXH3_64bits_withSeed(key->value.data, key->value.len, hash);
}

/* One of the same term, of whichever LSN. */
static struct query_list *list_of(const struct query_lists *lists, const struct query_list_key *key,
                                  uint64_t hash)
{
    struct query_list *list = lists->chains[hash % CHAINS];

    while (list &&
           (list->hash != hash || list->key.node != key->node ||
            list->key.partition != key->partition || !slice_equal(list->key.prefix, key->prefix) ||
            !slice_equal(list->key.value, key->value)))
        list = list->chained;
    return list;
}

/* --- Finding --------------------------------------------------------------------------------- */

bool query_lists_again(struct query_lists *lists, const struct query_list_key *key)
{
    uint32_t names[] = {key->node, key->partition};
    struct seen now = {key->node, key->partition, key->lsn};
    bool again = false;

    WITH_LOCK (&lists->lock) {
        struct seen *seen = &lists->seen[XXH3_64bits(names, sizeof names) % SEEN];

        again = seen->node == now.node && seen->partition == now.partition && seen->lsn == now.lsn;
        *seen = now;
    }
    return again && lists->bytes_max;
}

struct query_list *query_lists_find(struct query_lists *lists, const struct query_list_key *key)
{
    uint64_t hash = hash_of(key);
    struct query_list *found = NULL;

    WITH_LOCK (&lists->lock) {
        found = list_of(lists, key, hash);
        if (found && (found->key.epoch != key->epoch || found->key.lsn != key->lsn))
            found = NULL;
        if (found) {
            atomic_fetch_add(&found->refs, 1);
            list_unlink(lists, found);
            list_link(lists, found);
        }
    }
    return found;
}

bool query_list_is_long(const struct query_list *list)
{
    return list->is_long;
}

void query_list_set_sum(struct query_list *list, struct query_list_sum sum)
{
    list->sum = sum;
}

struct query_list_sum query_list_sum(const struct query_list *list)
{
    return list->sum;
}

size_t query_list_tried(const struct query_list *list)
{
    return list->tried;
}

size_t query_list_count(const struct query_list *list)
{
    return list->count;
}

void query_list_at(const struct query_list *list, size_t place, struct cursor_hit *ret_hit)
{
    const struct posting *posting = &list->postings[place];
    const uint8_t *key = list->keys + posting->key;

    assert(place < list->count);
    *ret_hit = (struct cursor_hit){.routing = slice_of(key, posting->routing_len),
                                   .number = posting->number,
                                   .key = slice_of(key, posting->key_len),
                                   .said = slice_of(posting->said, INDEX_TERM_SAID)};
}

/* --- Making ---------------------------------------------------------------------------------- */

static struct slice bytes_copy(struct slice bytes)
{
    uint8_t *copy = memory_alloc(bytes.len + 1);

    memcpy(copy, bytes.data, bytes.len);
    return slice_of(copy, bytes.len);
}

struct query_list *query_list_begin(const struct query_list_key *key)
{
    struct query_list *list = MEMORY_NEW(struct query_list);

    list->refs = 1;
    list->key = *key;
    list->key.prefix = bytes_copy(key->prefix);
    list->key.value = bytes_copy(key->value);
    list->hash = hash_of(key);
    return list;
}

static size_t list_bytes(const struct query_list *list)
{
    return sizeof *list + list->key.prefix.len + list->key.value.len +
           list->capacity * sizeof *list->postings + list->keys_capacity;
}

void query_list_give_up(struct query_list *list)
{
    list->tried = list->count;
    memory_free(list->postings);
    memory_free(list->keys);
    list->postings = NULL;
    list->keys = NULL;
    list->count = list->capacity = list->keys_len = list->keys_capacity = 0;
    list->is_long = true;
}

static void list_grow(struct query_list *list, size_t key_len)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : ENTRIES_FIRST;
        list->postings = memory_realloc(list->postings,
                                        memory_array_size(list->capacity, sizeof *list->postings));
    }
    if (list->keys_capacity - list->keys_len < key_len) {
        list->keys_capacity = 2 * list->keys_capacity + 16 * key_len;
        list->keys = memory_realloc(list->keys, list->keys_capacity);
    }
}

bool query_list_add(struct query_list *list, const struct cursor_hit *hit)
{
    struct posting *posting;

    assert(hit->said.len == INDEX_TERM_SAID && hit->routing.len <= hit->key.len);
    if (list->is_long || list->count == ENTRIES_MAX || hit->key.len > UINT16_MAX ||
        list_bytes(list) > LIST_BYTES_MAX) {
        query_list_give_up(list);
        list->tried = SIZE_MAX; /* nobody need try again */
        return false;
    }
    list_grow(list, hit->key.len);
    posting = &list->postings[list->count++];
    *posting = (struct posting){.number = hit->number,
                                .key = (uint32_t)list->keys_len,
                                .key_len = (uint16_t)hit->key.len,
                                .routing_len = (uint16_t)hit->routing.len};
    memcpy(posting->said, hit->said.data, INDEX_TERM_SAID);
    memcpy(list->keys + list->keys_len, hit->key.data, hit->key.len);
    list->keys_len += hit->key.len;
    return true;
}

void query_lists_put(struct query_lists *lists, struct query_list *list)
{
    struct query_list *gone = NULL, *before;

    list->bytes = list_bytes(list);
    WITH_LOCK (&lists->lock) {
        before = list_of(lists, &list->key, list->hash);
        if (before)
            list_drop(lists, before, &gone);
        while (lists->oldest && lists->bytes + list->bytes > lists->bytes_max)
            list_drop(lists, lists->oldest, &gone);
        if (lists->bytes + list->bytes <= lists->bytes_max) {
            atomic_fetch_add(&list->refs, 1);
            list->chained = lists->chains[list->hash % CHAINS];
            lists->chains[list->hash % CHAINS] = list;
            list_link(lists, list);
            lists->bytes += list->bytes;
        }
    }
    gone_unref(gone);
}

size_t query_lists_bytes(struct query_lists *lists)
{
    size_t bytes = 0;

    WITH_LOCK (&lists->lock)
        bytes = lists->bytes;
    return bytes;
}
