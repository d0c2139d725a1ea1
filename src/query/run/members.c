/* A hash table of chains and a list by the time of use, under one lock, as lists.c has them.
 * Numbers of items are dense where one partition has given them, so a set is pages of bits, found
 * by hash and never moved: looking takes no lock. A bit that is set tells something of the LSN of
 * its set, which never changes; a later LSN has a set of its own, copied from the one before it. */
#include "query/run/members.h"

#include "base/memory.h"
#include "base/thread.h"
#include "item/feed_read.h"
#include "partition/layout.h"

#include <stdatomic.h>
#include <xxhash.h>

enum {
    CHAINS = 1024,
    PAGE_BITS = 12, /* numbers of a page: 4096 */
    WORDS = (1 << PAGE_BITS) / 64,
    PAGES_MAX = 512, /* of a set: two million numbers */
    SLOTS = 2 * PAGES_MAX,
    WRITTEN_MAX = 256, /* items that were written since; of more a set is begun anew */
};

struct page {
    uint64_t at; /* number >> PAGE_BITS */
    _Atomic uint64_t known[WORDS], in[WORDS];
};

struct query_member_set {
    atomic_uint refs;
    struct query_members *owner;
    struct query_member_key key; /* its slices are owned */
    uint64_t hash;
    struct query_member_set *chained, *newer, *older;
    bool found; /* by the table: its bytes count */
    size_t page_count;
    _Atomic(struct page *) pages[SLOTS]; /* owned */
};

struct query_members {
    struct mutex lock;
    size_t bytes_max, bytes;
    struct query_member_set *chains[CHAINS];
    struct query_member_set *newest, *oldest;
};

struct query_members *query_members_new(size_t bytes_max)
{
    struct query_members *members = MEMORY_NEW(struct query_members);

    mutex_init(&members->lock);
    members->bytes_max = bytes_max;
    return members;
}

static void set_free(struct query_member_set *set)
{
    for (size_t i = 0; i < SLOTS; i++)
        memory_free(set->pages[i]);
    memory_free((void *)set->key.prefix.data);
    memory_free(set);
}

void query_member_set_unref(struct query_member_set *set)
{
    if (set && atomic_fetch_sub(&set->refs, 1) == 1)
        set_free(set);
}

static size_t set_bytes(const struct query_member_set *set)
{
    return sizeof *set + set->key.prefix.len + set->key.min.len + set->key.max.len +
           set->page_count * sizeof(struct page);
}

/* --- The table, with its lock ---------------------------------------------------------------- */

static void set_unlink(struct query_members *members, struct query_member_set *set)
{
    *(set->newer ? &set->newer->older : &members->newest) = set->older;
    *(set->older ? &set->older->newer : &members->oldest) = set->newer;
    set->newer = set->older = NULL;
}

static void set_link(struct query_members *members, struct query_member_set *set)
{
    set->older = members->newest;
    *(members->newest ? &members->newest->newer : &members->oldest) = set;
    members->newest = set;
}

/* Takes it off; its reference goes to the chain that starts at *gone. */
static void set_drop(struct query_members *members, struct query_member_set *set,
                     struct query_member_set **gone)
{
    struct query_member_set **at = &members->chains[set->hash % CHAINS];

    while (*at != set)
        at = &(*at)->chained;
    *at = set->chained;
    set_unlink(members, set);
    set->found = false;
    members->bytes -= set_bytes(set);
    set->chained = *gone;
    *gone = set;
}

static void gone_unref(struct query_member_set *gone)
{
    while (gone) {
        struct query_member_set *next = gone->chained;

        query_member_set_unref(gone);
        gone = next;
    }
}

void query_members_free(struct query_members *members)
{
    struct query_member_set *gone = NULL;

    if (!members)
        return;
    while (members->newest)
        set_drop(members, members->newest, &gone);
    gone_unref(gone);
    assert(!members->bytes);
    mutex_done(&members->lock);
    memory_free(members);
}

static uint64_t hash_of(const struct query_member_key *key)
{
    uint64_t hash = XXH3_64bits_withSeed(key->prefix.data, key->prefix.len,
                                         ((uint64_t)key->node << 32 | key->partition) + key->order);

    return XXH3_64bits_withSeed(key->min.data, key->min.len, hash);
}

/* One of the same entries, of whichever LSN. */
static struct query_member_set *set_of(const struct query_members *members,
                                       const struct query_member_key *key, uint64_t hash)
{
    struct query_member_set *set = members->chains[hash % CHAINS];

    while (set && (set->hash != hash || set->key.node != key->node ||
                   set->key.partition != key->partition || set->key.order != key->order ||
                   !slice_equal(set->key.prefix, key->prefix) ||
                   !slice_equal(set->key.min, key->min) || !slice_equal(set->key.max, key->max)))
        set = set->chained;
    return set;
}

/* Room for so many bytes more, if others than the newest can make it. */
static bool room_make(struct query_members *members, size_t bytes, struct query_member_set **gone)
{
    while (members->oldest && members->oldest != members->newest &&
           members->bytes + bytes > members->bytes_max)
        set_drop(members, members->oldest, gone);
    return members->bytes + bytes <= members->bytes_max;
}

/* Others may find it, unless there is one of a later LSN. */
static void set_put(struct query_members *members, struct query_member_set *set)
{
    struct query_member_set *gone = NULL, *before;

    WITH_LOCK (&members->lock) {
        before = set_of(members, &set->key, set->hash);
        if (!before || before->key.epoch != set->key.epoch || before->key.lsn < set->key.lsn) {
            if (before)
                set_drop(members, before, &gone);
            while (members->oldest && members->bytes + set_bytes(set) > members->bytes_max)
                set_drop(members, members->oldest, &gone);
            if (members->bytes + set_bytes(set) <= members->bytes_max) {
                atomic_fetch_add(&set->refs, 1);
                set->chained = members->chains[set->hash % CHAINS];
                members->chains[set->hash % CHAINS] = set;
                set_link(members, set);
                set->found = true;
                members->bytes += set_bytes(set);
            }
        }
    }
    gone_unref(gone);
}

size_t query_members_bytes(struct query_members *members)
{
    size_t bytes = 0;

    WITH_LOCK (&members->lock)
        bytes = members->bytes;
    return bytes;
}

/* --- Bits ------------------------------------------------------------------------------------ */

static size_t slot_first(uint64_t at)
{
    return (size_t)(at * UINT64_C(0x9E3779B97F4A7C15) >> 40) % SLOTS;
}

/* The page of a number, or NULL; *ret_slot: where it is, or would be. */
static struct page *page_find(const struct query_member_set *set, uint64_t number, size_t *ret_slot)
{
    uint64_t at = number >> PAGE_BITS;
    size_t slot = slot_first(at);
    struct page *page;

    for (;; slot = (slot + 1) % SLOTS) {
        page = atomic_load_explicit(&set->pages[slot], memory_order_acquire);
        if (!page || page->at == at)
            break;
    }
    *ret_slot = slot;
    return page;
}

enum query_member query_member_look(const struct query_member_set *set, uint64_t number)
{
    size_t slot, word = number / 64 % WORDS;
    uint64_t bit = (uint64_t)1 << number % 64;
    const struct page *page = page_find(set, number, &slot);

    if (!page || !(atomic_load_explicit(&page->known[word], memory_order_acquire) & bit))
        return QUERY_MEMBER_UNKNOWN;
    return atomic_load_explicit(&page->in[word], memory_order_relaxed) & bit ? QUERY_MEMBER_IN
                                                                             : QUERY_MEMBER_OUT;
}

/* NULL: there is no room for one more. */
static struct page *page_add(struct query_member_set *set, uint64_t number)
{
    struct query_member_set *gone = NULL;
    struct page *page = NULL;
    size_t slot;

    WITH_LOCK (&set->owner->lock) {
        page = page_find(set, number, &slot); /* another may have added it */
        if (!page && set->page_count < PAGES_MAX &&
            (!set->found || room_make(set->owner, sizeof *page, &gone))) {
            page = MEMORY_NEW(struct page);
            page->at = number >> PAGE_BITS;
            set->page_count++;
            if (set->found) /* room_make may have dropped this one */
                set->owner->bytes += sizeof *page;
            atomic_store_explicit(&set->pages[slot], page, memory_order_release);
        }
    }
    gone_unref(gone);
    return page;
}

void query_member_note(struct query_member_set *set, uint64_t number, bool in)
{
    size_t slot, word = number / 64 % WORDS;
    uint64_t bit = (uint64_t)1 << number % 64;
    struct page *page = page_find(set, number, &slot);

    if (!page)
        page = page_add(set, number);
    if (!page)
        return;
    if (in)
        atomic_fetch_or_explicit(&page->in[word], bit, memory_order_relaxed);
    atomic_fetch_or_explicit(&page->known[word], bit, memory_order_release);
}

/* --- Opening --------------------------------------------------------------------------------- */

static struct query_member_set *set_new(struct query_members *members,
                                        const struct query_member_key *key)
{
    struct query_member_set *set = MEMORY_NEW(struct query_member_set);
    uint8_t *bytes = memory_alloc(key->prefix.len + key->min.len + key->max.len + 1);

    memcpy(bytes, key->prefix.data, key->prefix.len);
    memcpy(bytes + key->prefix.len, key->min.data, key->min.len);
    memcpy(bytes + key->prefix.len + key->min.len, key->max.data, key->max.len);
    set->refs = 1;
    set->owner = members;
    set->key = *key;
    set->key.prefix = slice_of(bytes, key->prefix.len);
    set->key.min = slice_of(bytes + key->prefix.len, key->min.len);
    set->key.max = slice_of(bytes + key->prefix.len + key->min.len, key->max.len);
    set->hash = hash_of(key);
    return set;
}

/* What is known of the items of another set; `known` before `in`, so that nothing is known whose
 * other bit was not seen. */
static void pages_copy(struct query_member_set *set, const struct query_member_set *from)
{
    for (size_t i = 0; i < SLOTS; i++) {
        const struct page *page = atomic_load_explicit(&from->pages[i], memory_order_acquire);
        struct page *copy;

        if (!page)
            continue;
        copy = MEMORY_NEW(struct page);
        copy->at = page->at;
        for (size_t word = 0; word < WORDS; word++) {
            copy->known[word] = atomic_load_explicit(&page->known[word], memory_order_acquire);
            copy->in[word] = atomic_load_explicit(&page->in[word], memory_order_relaxed);
        }
        set->pages[i] = copy;
        set->page_count++;
    }
}

static void number_forget(struct query_member_set *set, uint64_t number)
{
    size_t slot, word = number / 64 % WORDS;
    struct page *page = page_find(set, number, &slot);

    if (!page)
        return;
    page->known[word] &= ~((uint64_t)1 << number % 64);
    page->in[word] &= ~((uint64_t)1 << number % 64);
}

/* The set as it is at a later LSN. NULL in *ret_set: too much was written since. */
static bool set_follow(const struct query_member_set *before, const struct view *view,
                       const struct query_member_key *key, struct query_member_set **ret_set,
                       struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct feed_record *records;
    struct query_member_set *set;
    size_t count;
    bool more;

    *ret_set = NULL;
    if (!feed_written(&view->scope, view->snapshot, before->key.lsn, WRITTEN_MAX, arena, &records,
                      &count, &more, err))
        return false;
    if (more)
        return true;
    set = set_new(before->owner, key);
    pages_copy(set, before);
    for (size_t i = 0; i < count; i++)
        number_forget(set, records[i].number);
    set_put(set->owner, set);
    *ret_set = set;
    return true;
}

/* An LSN of another era is of another history. */
static bool may_follow(const struct query_member_key *before, const struct query_member_key *key)
{
    return before->epoch == key->epoch && before->lsn < key->lsn &&
           partition_lsn_era(before->lsn) == partition_lsn_era(key->lsn);
}

bool query_members_open(struct query_members *members, const struct view *view,
                        const struct query_member_key *key, bool makes,
                        struct query_member_set **ret_set, struct error *err)
{
    uint64_t hash = hash_of(key);
    struct query_member_set *set = NULL, *followed = NULL;

    *ret_set = NULL;
    if (!members->bytes_max)
        return true;
    WITH_LOCK (&members->lock) {
        set = set_of(members, key, hash);
        if (set) {
            atomic_fetch_add(&set->refs, 1);
            set_unlink(members, set);
            set_link(members, set);
        }
    }
    if (set && set->key.epoch == key->epoch && set->key.lsn == key->lsn) {
        *ret_set = set;
        return true;
    }
    if (set && may_follow(&set->key, key) && !view->bound &&
        !set_follow(set, view, key, &followed, err)) {
        query_member_set_unref(set);
        return false;
    }
    /* a search that is older than the set has none */
    makes = makes && !followed && !view->bound &&
            (!set || set->key.epoch != key->epoch || set->key.lsn < key->lsn);
    query_member_set_unref(set);
    if (makes) {
        followed = set_new(members, key);
        set_put(members, followed);
    }
    *ret_set = followed;
    return true;
}
