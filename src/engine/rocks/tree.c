/* Entries in a list, and a tree of their user keys that leads into it.
 *
 * RocksDB's own write buffer is a skip list. An insertion compares whole keys some thirty times,
 * and each comparison goes through four functions and a line of memory that nobody has looked at
 * for long: three quarters of what a create cost the committer. Keys of one path of an index are
 * alike for most of their length, so that comparing them from the start is nearly all in vain.
 *
 * Here each node of the tree looks at one byte of the key, the first in which the keys below it
 * differ (a Patricia tree with as many branches as bytes). A way down passes only over bytes that
 * decide something, and one comparison at its end tells where the key belongs.
 *
 *   symbol   what a node tells keys apart by: 0 if the key ends there, else the byte and 1
 *   child    an entry, with its lowest bit set, or a node
 *   anchor   the entry by which the tree knows a user key: the one that was inserted first
 *
 * Why readers need no locks. The list is what counts; the tree only leads near a place in it. A
 * reader checks by comparing on which side of its key it was led to and walks the rest, so a tree
 * that is behind costs a step, and no answer. A node changes in two ways: by one more child, which
 * is written before the number that says so; or by another node in its place. The one before stays
 * as it was, since somebody may be in it. An entry is in the list before it is in the tree, linked
 * forwards before backwards. What a reader may not miss was whole before it began.
 *
 * Versions of one user key are neighbours in the list, newest first. Counters are written by every
 * commit, so there may be very many, and a snapshot wants one in the middle: each version has a
 * jump to an older one, at distances as in skew-binary numbers, so that the way to any is as long
 * as the logarithm of their number. */
#include "engine/rocks/tree.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SYMBOLS = 257, NONE = -1 };

/* Of one user key with more than one version; the anchor's `more`. */
struct versions {
    struct rocks_entry *newest, *oldest;
};

/* `more` of other versions; NULL: came out of turn, has none. */
struct jump {
    const struct rocks_entry *to; /* an older version */
    uint32_t rank, to_rank;       /* how many older ones there are */
};

enum kind { FEW, SOME, MANY, ALL }; /* up to 4, 16, 48, 257 children */

struct node {
    uint16_t depth; /* the place of the byte */
    uint16_t kind;
    uint32_t count; /* of children; read before them, written behind them */
};

struct few {
    struct node node;
    uint16_t symbols[4];
    uintptr_t children[4];
};

struct some {
    struct node node;
    uint16_t symbols[16];
    uintptr_t children[16];
};

struct many {
    struct node node;
    uint16_t bounds[2];      /* the lowest symbol there is, and the highest */
    uint8_t places[SYMBOLS]; /* 0: none, else that of the child and 1 */
    uintptr_t children[48];
};

struct all {
    struct node node;
    uint16_t bounds[2], first; /* first: some symbol there is */
    uintptr_t children[SYMBOLS];
};

#define LOAD(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)

/* --- Keys ------------------------------------------------------------------------------------ */

struct key {
    const uint8_t *data;
    size_t len;   /* of the user's */
    uint64_t tag; /* the higher, the earlier */
};

static struct key internal_key(const uint8_t *data, size_t len)
{
    assert(len >= ROCKS_TREE_TAG);
    return (struct key){data, len - ROCKS_TREE_TAG, bytes_get_le64(data + len - ROCKS_TREE_TAG)};
}

static struct key key_read(const uint8_t *at)
{
    size_t len = *at & 0x7F;

    for (unsigned shift = 7; *at++ & 0x80; shift += 7)
        len |= (size_t)(*at & 0x7F) << shift;
    return internal_key(at, len);
}

static struct key key_of(const struct rocks_entry *entry)
{
    return key_read(entry->bytes);
}

/* The first place where two user keys differ, which may be the end of one; NONE: they are equal. */
static int32_t difference(struct key a, struct key b)
{
    size_t shorter = a.len < b.len ? a.len : b.len, at = 0;

    for (; at + 8 <= shorter; at += 8) {
        uint64_t differ = bytes_get_le64(a.data + at) ^ bytes_get_le64(b.data + at);

        if (differ)
            return (int32_t)(at + (size_t)__builtin_ctzll(differ) / 8);
    }
    for (; at < shorter; at++)
        if (a.data[at] != b.data[at])
            return (int32_t)at;
    return a.len == b.len ? NONE : (int32_t)shorter;
}

static unsigned symbol_at(struct key key, size_t place)
{
    return place < key.len ? key.data[place] + 1u : 0;
}

static bool is_at(const struct rocks_entry *entry, struct key key)
{
    struct key own = key_of(entry);

    return own.tag == key.tag && difference(own, key) == NONE;
}

static bool is_before(const struct rocks_entry *entry, struct key key)
{
    struct key own = key_of(entry);
    int32_t differ = difference(own, key);

    if (differ == NONE)
        return own.tag > key.tag;
    return symbol_at(own, (size_t)differ) < symbol_at(key, (size_t)differ);
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static uintptr_t child_of(const struct rocks_entry *entry)
{
    return (uintptr_t)entry | 1;
}

/* NULL: it is a node. */
static struct rocks_entry *entry_of(uintptr_t child)
{
    return child & 1 ? (struct rocks_entry *)(child & ~(uintptr_t)1) : NULL;
}

/* The parts of the small kinds, which differ in their lengths alone. */
static uint16_t *symbols_of(struct node *node)
{
    return node->kind == FEW ? ((struct few *)node)->symbols : ((struct some *)node)->symbols;
}

static uintptr_t *children_of(struct node *node)
{
    return node->kind == FEW ? ((struct few *)node)->children : ((struct some *)node)->children;
}

/* Where the child with this symbol is; NULL: there is none. */
static uintptr_t *child_find(struct node *node, unsigned symbol)
{
    if (node->kind <= SOME) {
        uint32_t count = LOAD(&node->count);
        const uint16_t *symbols = symbols_of(node);

        for (uint32_t i = 0; i < count; i++)
            if (symbols[i] == symbol)
                return &children_of(node)[i];
        return NULL;
    }
    if (node->kind == MANY) {
        struct many *many = (struct many *)node;
        uint8_t place = LOAD(&many->places[symbol]);

        return place ? &many->children[place - 1] : NULL;
    }
    return LOAD(&((struct all *)node)->children[symbol]) ? &((struct all *)node)->children[symbol]
                                                         : NULL;
}

static uintptr_t *child_any(struct node *node)
{
    if (node->kind <= SOME)
        return &children_of(node)[0];
    if (node->kind == MANY)
        return &((struct many *)node)->children[0];
    return &((struct all *)node)->children[((struct all *)node)->first];
}

static uintptr_t small_nearest(struct node *node, int from, bool below)
{
    uint32_t count = LOAD(&node->count);
    const uint16_t *symbols = symbols_of(node);
    int best = NONE;

    for (uint32_t i = 0; i < count; i++) {
        int symbol = symbols[i];

        if (below ? symbol < from && (best == NONE || symbol > symbols[best])
                  : symbol > from && (best == NONE || symbol < symbols[best]))
            best = (int)i;
    }
    return best == NONE ? 0 : LOAD(&children_of(node)[best]);
}

static uintptr_t large_nearest(struct node *node, int from, bool below)
{
    const uint16_t *bounds =
        node->kind == MANY ? ((struct many *)node)->bounds : ((struct all *)node)->bounds;
    int low = __atomic_load_n(&bounds[0], __ATOMIC_RELAXED);
    int high = __atomic_load_n(&bounds[1], __ATOMIC_RELAXED);
    int step = below ? -1 : 1;

    for (int symbol = below ? MIN(from - 1, high) : MAX(from + 1, low);
         symbol >= low && symbol <= high; symbol += step) {
        uintptr_t *found = child_find(node, (unsigned)symbol);

        if (found)
            return LOAD(found);
    }
    return 0;
}

/* The child with the symbol nearest to this one, below or above it; 0: there is none. */
static uintptr_t child_nearest(struct node *node, int from, bool below)
{
    return node->kind <= SOME ? small_nearest(node, from, below) : large_nearest(node, from, below);
}

/* The anchor of the last user key below a child, or of the first. */
static struct rocks_entry *outermost(uintptr_t child, bool last)
{
    struct rocks_entry *entry;

    while (!(entry = entry_of(child)))
        child = child_nearest((struct node *)child, last ? SYMBOLS : NONE, last);
    return entry;
}

static struct node *node_new(struct rocks_tree *tree, enum kind kind, uint16_t depth)
{
    static const size_t sizes[] = {sizeof(struct few), sizeof(struct some), sizeof(struct many),
                                   sizeof(struct all)};
    struct node *node = tree->give(tree->context, sizes[kind]);

    memset(node, 0, sizes[kind]);
    node->depth = depth;
    node->kind = (uint16_t)kind;
    return node;
}

static bool is_full(const struct node *node)
{
    static const uint32_t sizes[] = {4, 16, 48, SYMBOLS};

    return node->count == sizes[node->kind];
}

static void bounds_widen(uint16_t bounds[2], uint32_t count, unsigned symbol)
{
    if (!count || symbol < bounds[0])
        __atomic_store_n(&bounds[0], (uint16_t)symbol, __ATOMIC_RELAXED);
    if (!count || symbol > bounds[1])
        __atomic_store_n(&bounds[1], (uint16_t)symbol, __ATOMIC_RELAXED);
}

/* One more child of a node that has room. */
static void child_add(struct node *node, unsigned symbol, uintptr_t child)
{
    uint32_t count = node->count;

    assert(!is_full(node) && symbol < SYMBOLS);
    if (node->kind <= SOME) {
        symbols_of(node)[count] = (uint16_t)symbol;
        STORE(&children_of(node)[count], child);
    } else if (node->kind == MANY) {
        struct many *many = (struct many *)node;

        STORE(&many->children[count], child);
        STORE(&many->places[symbol], (uint8_t)(count + 1));
        bounds_widen(many->bounds, count, symbol);
    } else {
        struct all *all = (struct all *)node;

        if (!count)
            all->first = (uint16_t)symbol;
        STORE(&all->children[symbol], child);
        bounds_widen(all->bounds, count, symbol);
    }
    STORE(&node->count, count + 1);
}

/* The same node with more room, not yet in the tree. */
static struct node *node_grow(struct rocks_tree *tree, struct node *node)
{
    struct node *grown = node_new(tree, (enum kind)(node->kind + 1), node->depth);

    assert(node->kind < ALL);
    if (node->kind <= SOME) {
        for (uint32_t i = 0; i < node->count; i++)
            child_add(grown, symbols_of(node)[i], children_of(node)[i]);
        return grown;
    }
    for (unsigned symbol = 0; symbol < SYMBOLS; symbol++) {
        const uintptr_t *child = child_find(node, symbol);

        if (child)
            child_add(grown, symbol, *child);
    }
    return grown;
}

/* --- Ways ------------------------------------------------------------------------------------ */

/* Some anchor whose key has as many bytes in common with this one as any in the tree. */
static struct rocks_entry *alike_find(const struct rocks_tree *tree, struct key key)
{
    uintptr_t child = LOAD(&tree->root);
    struct rocks_entry *entry;

    if (!child)
        return NULL;
    while (!(entry = entry_of(child))) {
        struct node *node = (struct node *)child;
        uintptr_t *next = child_find(node, symbol_at(key, node->depth));

        child = LOAD(next ? next : child_any(node));
    }
    return entry;
}

/* Where the way to this key has passed the first places bytes: at an entry, or at a node of that
 * depth or more. */
static uintptr_t *way_find(const struct rocks_tree *tree, struct key key, size_t places)
{
    uintptr_t *at = (uintptr_t *)&tree->root;

    for (;;) {
        uintptr_t child = LOAD(at);
        struct node *node = (struct node *)child;

        if (entry_of(child) || node->depth >= places)
            return at;
        at = child_find(node, symbol_at(key, node->depth));
        assert(at); /* keys that are alike so far are below it, and stay there */
    }
}

static struct rocks_entry *newest_of(const struct rocks_entry *anchor)
{
    struct versions *versions = LOAD(&anchor->more);

    return versions ? LOAD(&versions->newest) : (struct rocks_entry *)anchor;
}

static struct rocks_entry *oldest_of(const struct rocks_entry *anchor)
{
    struct versions *versions = LOAD(&anchor->more);

    return versions ? LOAD(&versions->oldest) : (struct rocks_entry *)anchor;
}

/* A neighbour of a key that is not there, which differs from its likest first at this place: the
 * last entry before it (ret_before) or the first behind it, but for those that are inserted
 * meanwhile. */
static struct rocks_entry *neighbour_find(uintptr_t child, struct key key, size_t place,
                                          struct key alike, bool *ret_before)
{
    int symbol = (int)symbol_at(key, place);
    struct node *node = entry_of(child) ? NULL : (struct node *)child;

    if (node && node->depth == place) {
        uintptr_t below = child_nearest(node, symbol, true);

        *ret_before = below != 0;
        return below ? oldest_of(outermost(below, true))
                     : newest_of(outermost(child_nearest(node, NONE, false), false));
    }
    *ret_before = symbol > (int)symbol_at(alike, place);
    return *ret_before ? oldest_of(outermost(child, true)) : newest_of(outermost(child, false));
}

/* --- Inserting ------------------------------------------------------------------------------- */

void rocks_tree_init(struct rocks_tree *tree, void *(*give)(void *context, size_t bytes),
                     void *context)
{
    *tree = (struct rocks_tree){.give = give, .context = context};
    tree->ends.next = tree->ends.prev = &tree->ends;
}

struct rocks_entry *rocks_tree_entry_new(struct rocks_tree *tree, size_t bytes)
{
    struct rocks_entry *entry = tree->give(tree->context, sizeof *entry + bytes);

    entry->more = NULL;
    return entry;
}

static void list_insert_behind(struct rocks_entry *before, struct rocks_entry *entry)
{
    struct rocks_entry *behind = before->next;

    entry->prev = before;
    entry->next = behind;
    STORE(&before->next, entry);
    STORE(&behind->prev, entry);
}

/* The jump of a version that is put before the newest. */
static struct jump *jump_new(struct rocks_tree *tree, const struct rocks_entry *anchor,
                             const struct rocks_entry *newest)
{
    struct jump *jump = tree->give(tree->context, sizeof *jump);
    const struct jump *last = newest == anchor ? NULL : newest->more, *far;

    if (!last) { /* the first behind the anchor, or behind one that came out of turn */
        *jump = (struct jump){.to = newest, .rank = 1, .to_rank = 0};
        return jump;
    }
    far = last->to == anchor ? NULL : last->to->more;
    if (last->rank - last->to_rank == last->to_rank - (far ? far->to_rank : 0))
        *jump = (struct jump){.to = far ? far->to : last->to,
                              .rank = last->rank + 1,
                              .to_rank = far ? far->to_rank : last->to_rank};
    else
        *jump = (struct jump){.to = newest, .rank = last->rank + 1, .to_rank = last->rank};
    return jump;
}

static bool version_insert(struct rocks_tree *tree, struct rocks_entry *anchor,
                           struct rocks_entry *entry, uint64_t tag)
{
    struct versions *versions = anchor->more;
    struct rocks_entry *at = newest_of(anchor), *oldest = oldest_of(anchor);

    if (!versions) {
        versions = tree->give(tree->context, sizeof *versions);
        *versions = (struct versions){.newest = anchor, .oldest = anchor};
    }
    if (tag > key_of(at).tag) {
        entry->more = jump_new(tree, anchor, at);
        list_insert_behind(at->prev, entry);
        STORE(&versions->newest, entry);
        STORE(&anchor->more, versions);
        return true;
    }
    /* Sequence numbers rise, so this is for completeness: in its turn, without a jump. */
    while (at != oldest && key_of(at->next).tag >= tag)
        at = at->next;
    if (key_of(at).tag == tag)
        return false;
    list_insert_behind(at, entry);
    if (at == oldest)
        STORE(&versions->oldest, entry);
    STORE(&anchor->more, versions);
    return true;
}

bool rocks_tree_insert(struct rocks_tree *tree, struct rocks_entry *entry)
{
    struct key key = key_of(entry), alike;
    struct rocks_entry *anchor = alike_find(tree, key), *neighbour;
    struct node *node;
    uintptr_t *way;
    int32_t place;
    bool before;

    assert(key.len <= ROCKS_TREE_KEY_MAX);
    if (!anchor) {
        list_insert_behind(&tree->ends, entry);
        STORE(&tree->root, child_of(entry));
        return true;
    }
    alike = key_of(anchor);
    place = difference(key, alike);
    if (place == NONE)
        return version_insert(tree, anchor, entry, key.tag);
    way = way_find(tree, key, (size_t)place);
    neighbour = neighbour_find(*way, key, (size_t)place, alike, &before);
    list_insert_behind(before ? neighbour : neighbour->prev, entry);

    node = entry_of(*way) ? NULL : (struct node *)*way;
    if (node && node->depth == place && !is_full(node)) {
        child_add(node, symbol_at(key, (size_t)place), child_of(entry));
        return true;
    }
    if (node && node->depth == place) {
        node = node_grow(tree, node);
    } else {
        node = node_new(tree, FEW, (uint16_t)place);
        child_add(node, symbol_at(alike, (size_t)place), *way);
    }
    child_add(node, symbol_at(key, (size_t)place), child_of(entry));
    STORE(way, (uintptr_t)node);
    return true;
}

/* --- Reading --------------------------------------------------------------------------------- */

const struct rocks_entry *rocks_tree_next(const struct rocks_tree *tree,
                                          const struct rocks_entry *entry)
{
    const struct rocks_entry *next = LOAD(&(entry ? entry : &tree->ends)->next);

    return next == &tree->ends ? NULL : next;
}

const struct rocks_entry *rocks_tree_prev(const struct rocks_tree *tree,
                                          const struct rocks_entry *entry)
{
    const struct rocks_entry *prev = LOAD(&(entry ? entry : &tree->ends)->prev);

    return prev == &tree->ends ? NULL : prev;
}

/* The first version of a user key with this tag or a lower one, or what is behind them all. */
static const struct rocks_entry *version_seek(const struct rocks_tree *tree,
                                              const struct rocks_entry *anchor, uint64_t tag)
{
    const struct rocks_entry *at = newest_of(anchor), *oldest = oldest_of(anchor);

    while (key_of(at).tag > tag) {
        const struct jump *jump = at == anchor ? NULL : at->more;

        if (at == oldest)
            return rocks_tree_next(tree, at);
        at = jump && key_of(jump->to).tag > tag ? jump->to : rocks_tree_next(tree, at);
    }
    return at;
}

static const struct rocks_entry *seek(const struct rocks_tree *tree, struct key key)
{
    const struct rocks_entry *anchor = alike_find(tree, key), *at, *prev;
    struct key alike;
    int32_t place;
    bool before;

    if (!anchor)
        return NULL;
    alike = key_of(anchor);
    place = difference(key, alike);
    if (place == NONE)
        return version_seek(tree, anchor, key.tag);
    at = neighbour_find(LOAD(way_find(tree, key, (size_t)place)), key, (size_t)place, alike,
                        &before);
    if (is_before(at, key)) {
        do
            at = rocks_tree_next(tree, at);
        while (at && is_before(at, key));
        return at;
    }
    while ((prev = rocks_tree_prev(tree, at)) && !is_before(prev, key))
        at = prev;
    return at;
}

const struct rocks_entry *rocks_tree_seek(const struct rocks_tree *tree, const uint8_t *data,
                                          size_t len)
{
    return seek(tree, internal_key(data, len));
}

const struct rocks_entry *rocks_tree_seek_back(const struct rocks_tree *tree, const uint8_t *data,
                                               size_t len)
{
    struct key key = internal_key(data, len);
    const struct rocks_entry *at = seek(tree, key);

    if (at && is_at(at, key))
        return at;
    /* From the end on it may have to pass over what was put there meanwhile. */
    do
        at = rocks_tree_prev(tree, at);
    while (at && !is_before(at, key));
    return at;
}

bool rocks_tree_contains(const struct rocks_tree *tree, const uint8_t *bytes)
{
    struct key key = key_read(bytes);
    const struct rocks_entry *at = seek(tree, key);

    return at && is_at(at, key);
}
