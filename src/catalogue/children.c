/* A treap that never changes once published: a binary search tree by id (or number) which is a heap
 * by ranks drawn at random, so that its shape is that of a random tree whatever ids clients choose.
 * A change copies the nodes on one path and shares the rest; nodes that nobody else holds are
 * changed in place, so that loading copies nothing.
 *
 * A sorted array, as containers have, would be half the size; but it is copied whole with every
 * change, and there may be ten thousand users in it. A B-tree would be smaller too, at three times
 * the code. */
#include "base/random.h"
#include "catalogue/catalogue_private.h"
#include "document/bson.h"

/* --- A child --------------------------------------------------------------------------------- */

struct catalogue_child *child_new(enum child_kind kind, uint32_t account, uint32_t database,
                                  uint32_t owner, struct slice body)
{
    struct catalogue_child *child = memory_alloc_zero(sizeof *child + body.len);
    struct document_value id;
    bool found;

    atomic_init(&child->refs, 1);
    child->kind = kind;
    child->account = account;
    child->database = database;
    child->owner = owner;
    random_secret(&child->rank, sizeof child->rank);
    memcpy(child->bytes, body.data, body.len);
    child->body = slice_of(child->bytes, body.len);
    found = document_find(child->body, SLICE("id"), &id);
    assert(found && id.type == DOCUMENT_STRING);
    child->info.id = id.text;
    return child;
}

struct rid catalogue_child_rid(const struct catalogue_child *child)
{
    static const enum rid_kind kinds[CHILD_KINDS] = {
        [CHILD_USER] = RID_USER,
        [CHILD_ENCRYPTION_KEY] = RID_ENCRYPTION_KEY,
        [CHILD_PERMISSION] = RID_PERMISSION,
        [CHILD_PROCEDURE] = RID_PROCEDURE,
        [CHILD_TRIGGER] = RID_TRIGGER,
        [CHILD_FUNCTION] = RID_UDF,
    };
    struct rid rid = {.kind = kinds[child->kind], .database = child->database};

    if (child->owner) {
        rid.owner = child->owner;
        rid.number = child->info.number;
    } else {
        rid.owner = child->info.number;
    }
    return rid;
}

void child_stamp(struct catalogue_child *child, uint32_t number, uint64_t lsn, int64_t ts_ms)
{
    child->info.number = number;
    child->info.lsn = lsn;
    child->info.ts_ms = ts_ms;
    child->info.rid = rid_format(catalogue_child_rid(child), child->rid);
    catalogue_etag_format(lsn, child->etag);
    child->info.etag = slice_of_text(child->etag);
}

struct catalogue_child *child_with_permissions(const struct catalogue_child *user,
                                               struct catalogue_children *permissions)
{
    struct catalogue_child *copy =
        child_new(user->kind, user->account, user->database, user->owner, user->body);

    child_stamp(copy, user->info.number, user->info.lsn, user->info.ts_ms);
    copy->permissions = permissions;
    return copy;
}

struct catalogue_child *child_resident(struct catalogue_child *whole)
{
    static const char *const kept[] = {"id", "triggerType", "triggerOperation"};
    CLEANUP(buf_done) struct buf part;
    struct catalogue_child *child;
    struct document_value value;
    size_t begin;

    buf_init(&part, BUF_DEFAULT_MAX);
    if (whole->kind < CHILD_PROCEDURE || whole->body.len <= CHILD_RESIDENT_BYTES)
        return whole;
    assert(!whole->whole_len);
    begin = document_begin(&part);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (document_find(whole->body, slice_of_text(kept[i]), &value))
            document_append(&part, slice_of_text(kept[i]), &value);
    document_end(&part, begin);
    child = child_new(whole->kind, whole->account, whole->database, whole->owner, buf_slice(&part));
    child->whole_len = (uint32_t)whole->body.len;
    child_stamp(child, whole->info.number, whole->info.lsn, whole->info.ts_ms);
    catalogue_child_unref(whole);
    return child;
}

struct catalogue_child *catalogue_child_ref(struct catalogue_child *child)
{
    atomic_fetch_add_explicit(&child->refs, 1, memory_order_relaxed);
    return child;
}

void catalogue_child_unref(struct catalogue_child *child)
{
    if (!child || atomic_fetch_sub(&child->refs, 1) != 1)
        return;
    catalogue_children_unref(child->permissions);
    memory_free(child);
}

const struct catalogue_info *catalogue_child_info(const struct catalogue_child *child)
{
    return &child->info;
}

struct slice catalogue_child_body(const struct catalogue_child *child)
{
    assert(!child->whole_len); /* catalogue_child_whole has it */
    return child->body;
}

/* --- Nodes ----------------------------------------------------------------------------------- */

struct node {
    atomic_uint refs;
    size_t count;   /* of nodes, this one included */
    uint64_t bytes; /* of their bodies */
    struct node *left, *right;
    struct catalogue_child *child; /* a reference */
};

/* Both trees are searched by a key: an id, or a number. */
struct key {
    bool by_number;
    uint32_t number;
    struct slice id;
};

static struct key key_of(const struct catalogue_child *child, bool by_number)
{
    return (struct key){by_number, child->info.number, child->info.id};
}

static int key_compare(const struct key *key, const struct catalogue_child *child)
{
    if (key->by_number)
        return (key->number > child->info.number) - (key->number < child->info.number);
    return slice_compare(key->id, child->info.id);
}

/* No node has one below it of a higher rank. */
static uint32_t rank(const struct node *node)
{
    return node->child->rank;
}

static size_t node_count(const struct node *node)
{
    return node ? node->count : 0;
}

static uint64_t node_bytes(const struct node *node)
{
    return node ? node->bytes : 0;
}

static void node_recount(struct node *node)
{
    node->count = 1 + node_count(node->left) + node_count(node->right);
    node->bytes = child_body_len(node->child) + node_bytes(node->left) + node_bytes(node->right);
}

static struct node *node_ref(struct node *node)
{
    if (node)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

static void node_unref(struct node *node)
{
    if (!node || atomic_fetch_sub(&node->refs, 1) != 1)
        return;
    node_unref(node->left);
    node_unref(node->right);
    catalogue_child_unref(node->child);
    memory_free(node);
}

static struct node *node_new(struct catalogue_child *child, struct node *left, struct node *right)
{
    struct node *node = MEMORY_NEW(struct node);

    atomic_init(&node->refs, 1);
    node->left = left;
    node->right = right;
    node->child = catalogue_child_ref(child);
    node_recount(node);
    return node;
}

/* The node itself if nobody else holds it, else a copy in its place. */
static struct node *node_own(struct node *node)
{
    struct node *copy;

    if (atomic_load(&node->refs) == 1)
        return node;
    copy = node_new(node->child, node_ref(node->left), node_ref(node->right));
    node_unref(node);
    return copy;
}

/* Takes a node over whose left or right may rank higher, and gives the one that then is on top. */
static struct node *node_settle(struct node *node)
{
    struct node *top = NULL;

    if (node->left && rank(node->left) > rank(node)) {
        top = node->left; /* just put, so it is ours alone */
        node->left = top->right;
        top->right = node;
    } else if (node->right && rank(node->right) > rank(node)) {
        top = node->right;
        node->right = top->left;
        top->left = node;
    }
    node_recount(node);
    if (!top)
        return node;
    node_recount(top);
    return top;
}

/* Takes the tree over and gives it with the child, which is not in it. */
static struct node *node_put(struct node *node, struct catalogue_child *child, bool by_number)
{
    struct key key = key_of(child, by_number);

    if (!node)
        return node_new(child, NULL, NULL);
    node = node_own(node);
    if (key_compare(&key, node->child) < 0)
        node->left = node_put(node->left, child, by_number);
    else
        node->right = node_put(node->right, child, by_number);
    return node_settle(node);
}

/* Two trees, all of the left before all of the right, as one. */
static struct node *node_join(struct node *left, struct node *right)
{
    struct node *top;

    if (!left || !right)
        return left ? left : right;
    if (rank(left) > rank(right)) {
        top = node_own(left);
        top->right = node_join(top->right, right);
    } else {
        top = node_own(right);
        top->left = node_join(left, top->left);
    }
    node_recount(top);
    return top;
}

/* Takes the tree over and gives it without the child of that key, which is in it. */
static struct node *node_remove(struct node *node, const struct key *key)
{
    int order;

    assert(node);
    node = node_own(node);
    order = key_compare(key, node->child);
    if (order == 0) {
        struct node *rest = node_join(TAKE(node->left), TAKE(node->right));

        node_unref(node);
        return rest;
    }
    if (order < 0)
        node->left = node_remove(node->left, key);
    else
        node->right = node_remove(node->right, key);
    node_recount(node);
    return node;
}

static struct catalogue_child *node_find(const struct node *node, const struct key *key)
{
    while (node) {
        int order = key_compare(key, node->child);

        if (order == 0)
            return node->child;
        node = order < 0 ? node->left : node->right;
    }
    return NULL;
}

/* --- Both trees ------------------------------------------------------------------------------ */

struct catalogue_children {
    atomic_uint refs;
    struct node *by_id, *by_number;
};

struct catalogue_children *catalogue_children_ref(struct catalogue_children *children)
{
    if (children)
        atomic_fetch_add_explicit(&children->refs, 1, memory_order_relaxed);
    return children;
}

void catalogue_children_unref(struct catalogue_children *children)
{
    if (!children || atomic_fetch_sub(&children->refs, 1) != 1)
        return;
    node_unref(children->by_id);
    node_unref(children->by_number);
    memory_free(children);
}

static struct catalogue_children *children_copy(const struct catalogue_children *children)
{
    struct catalogue_children *copy = MEMORY_NEW(struct catalogue_children);

    atomic_init(&copy->refs, 1);
    if (children) {
        copy->by_id = node_ref(children->by_id);
        copy->by_number = node_ref(children->by_number);
    }
    return copy;
}

static void children_put(struct catalogue_children *children, struct catalogue_child *child)
{
    children->by_id = node_put(children->by_id, child, false);
    children->by_number = node_put(children->by_number, child, true);
}

static void children_remove(struct catalogue_children *children,
                            const struct catalogue_child *child)
{
    struct key id = key_of(child, false), number = key_of(child, true);

    children->by_id = node_remove(children->by_id, &id);
    children->by_number = node_remove(children->by_number, &number);
}

struct catalogue_children *children_with(const struct catalogue_children *children,
                                         struct catalogue_child *child)
{
    struct catalogue_children *copy = children_copy(children);
    const struct catalogue_child *before = children_find_number(children, child->info.number);

    if (before)
        children_remove(copy, before);
    children_put(copy, child);
    return copy;
}

struct catalogue_children *children_without(const struct catalogue_children *children,
                                            const struct catalogue_child *child)
{
    struct catalogue_children *copy = children_copy(children);

    children_remove(copy, child);
    return copy;
}

void children_load(struct catalogue_children **children, struct catalogue_child *child)
{
    if (!*children)
        *children = children_copy(NULL);
    children_put(*children, child);
    catalogue_child_unref(child);
}

struct catalogue_child *children_find_id(const struct catalogue_children *children, struct slice id)
{
    return children ? node_find(children->by_id, &(struct key){.id = id}) : NULL;
}

struct catalogue_child *children_find_number(const struct catalogue_children *children,
                                             uint32_t number)
{
    struct key key = {.by_number = true, .number = number};

    return children ? node_find(children->by_number, &key) : NULL;
}

/* The rid is compared as text: that settles kind, database and owner too. */
struct catalogue_child *catalogue_children_find(const struct catalogue_children *children,
                                                struct slice id)
{
    struct catalogue_child *child = children_find_id(children, id);
    struct rid rid;

    if (child || !rid_parse(id, &rid))
        return child;
    child = children_find_number(children, rid.kind == RID_USER || rid.kind == RID_ENCRYPTION_KEY
                                               ? rid.owner
                                               : (uint32_t)rid.number);
    return child && slice_equal(child->info.rid, id) ? child : NULL;
}

uint64_t children_bytes(const struct catalogue_children *children)
{
    return children ? node_bytes(children->by_id) : 0;
}

size_t catalogue_children_count(const struct catalogue_children *children)
{
    return children ? node_count(children->by_id) : 0;
}

struct catalogue_child *catalogue_children_at(const struct catalogue_children *children,
                                              size_t index)
{
    const struct node *node = children ? children->by_id : NULL;

    assert(index < node_count(node));
    for (;;) {
        size_t before = node_count(node->left);

        if (index == before)
            return node->child;
        if (index < before) {
            node = node->left;
        } else {
            index -= before + 1;
            node = node->right;
        }
    }
}

const struct catalogue_children *database_children(const struct database *database,
                                                   enum child_kind kind)
{
    assert(kind == CHILD_USER || kind == CHILD_ENCRYPTION_KEY);
    return kind == CHILD_USER ? database->users : database->keys;
}

const struct catalogue_children *container_children(const struct container *container,
                                                    enum child_kind kind)
{
    assert(kind >= CHILD_PROCEDURE);
    return container->scripts[kind - CHILD_PROCEDURE];
}
