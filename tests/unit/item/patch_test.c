/* The last test compares with a model: the item as a tree of values in which operations are done as
 * the words of the contract say. A failure prints the seed; CONTAINER_SEED=n tries that one again.
 */
#include "item/patch.h"

#include "definition/names.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

static char *json_of(struct arena *arena, struct slice document)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_json_write(document, &buf);
    return arena_text(arena, buf_slice(&buf));
}

static const struct patch *patch_of(struct arena *arena, const char *json)
{
    struct document_value body = value_of(arena, json);
    const struct patch *patch = NULL;
    struct error err;

    assert_ok(
        patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID), NULL, 0, arena, &patch, &err),
        &err);
    return patch;
}

/* One operation on an item; the item after it, or NULL where it is expected to fail. */
struct sample {
    const char *item, *operation, *after;
};

static void assert_samples(const struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(buf_done) struct buf buf;
        char *body = arena_text(arena, arena_printf(arena, "[%s]", samples[i].operation));
        struct error err;
        bool done;

        buf_init(&buf, BUF_DEFAULT_MAX);
        BUF_APPEND(&buf, "before");
        done = patch_apply(patch_of(arena, body), document_of(arena, samples[i].item), &buf, &err);
        if (!done && samples[i].after)
            fail_msg("%s on %s: %s", body, samples[i].item, err.message);
        if (done && !samples[i].after)
            fail_msg("%s on %s was done", body, samples[i].item);
        if (done)
            assert_string_equal(json_of(arena, slice_skip(buf_slice(&buf), 6)), samples[i].after);
        if (!done)
            assert_int_equal(err.code, ERROR_BAD_REQUEST);
        if (!done)
            assert_slice_equal(buf_slice(&buf), SLICE("before"));
    }
}

static void add_sets_properties_and_inserts_elements(void **state UNUSED)
{
    static const struct sample samples[] = {
        {"{}", "{\"op\":\"add\",\"path\":\"/a\",\"value\":1}", "{\"a\":1}"},
        {"{\"a\":0,\"b\":2}", "{\"op\":\"add\",\"path\":\"/a\",\"value\":1}", "{\"a\":1,\"b\":2}"},
        {"{\"a\":{}}", "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":[]}", "{\"a\":{\"b\":[]}}"},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/0\",\"value\":0}", "{\"l\":[0,1,2]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/2\",\"value\":3}", "{\"l\":[1,2,3]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/-\",\"value\":3}", "{\"l\":[1,2,3]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/3\",\"value\":3}", NULL},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/01\",\"value\":3}", NULL},
        {"{\"l\":[1,2]}", "{\"op\":\"add\",\"path\":\"/l/x\",\"value\":3}", NULL},
        {"{}", "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}", NULL},
        {"{\"a\":1}", "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}", NULL},
        {"{}", "{\"op\":\"add\",\"path\":\"/a~1b~0\",\"value\":1}", "{\"a/b~\":1}"},
        {"{}", "{\"op\":\"add\",\"path\":\"/\",\"value\":1}", "{\"\":1}"},
        {"{\"l\":[{\"x\":[0]}],\"z\":9}",
         "{\"op\":\"add\",\"path\":\"/l/0/x/0\",\"value\":{\"y\":1}}",
         "{\"l\":[{\"x\":[{\"y\":1},0]}],\"z\":9}"},
    };

    assert_samples(samples, ARRAY_LEN(samples));
}

static void set_and_replace_overwrite_elements(void **state UNUSED)
{
    static const struct sample samples[] = {
        {"{\"l\":[1,2]}", "{\"op\":\"set\",\"path\":\"/l/0\",\"value\":0}", "{\"l\":[0,2]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"set\",\"path\":\"/l/2\",\"value\":3}", "{\"l\":[1,2,3]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"set\",\"path\":\"/l/-\",\"value\":3}", "{\"l\":[1,2,3]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"set\",\"path\":\"/l/3\",\"value\":3}", NULL},
        {"{}", "{\"op\":\"set\",\"path\":\"/a\",\"value\":null}", "{\"a\":null}"},
        {"{\"l\":[1,2]}", "{\"op\":\"replace\",\"path\":\"/l/1\",\"value\":0}", "{\"l\":[1,0]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"replace\",\"path\":\"/l/2\",\"value\":0}", NULL},
        {"{\"l\":[1,2]}", "{\"op\":\"replace\",\"path\":\"/l/-\",\"value\":0}", NULL},
        {"{\"a\":1}", "{\"op\":\"replace\",\"path\":\"/a\",\"value\":\"x\"}", "{\"a\":\"x\"}"},
        {"{\"a\":1}", "{\"op\":\"replace\",\"path\":\"/b\",\"value\":0}", NULL},
    };

    assert_samples(samples, ARRAY_LEN(samples));
}

static void remove_shifts_later_elements(void **state UNUSED)
{
    static const struct sample samples[] = {
        {"{\"a\":1,\"b\":2}", "{\"op\":\"remove\",\"path\":\"/a\"}", "{\"b\":2}"},
        {"{\"a\":1}", "{\"op\":\"remove\",\"path\":\"/b\"}", NULL},
        {"{\"l\":[1,2,3]}", "{\"op\":\"remove\",\"path\":\"/l/0\"}", "{\"l\":[2,3]}"},
        {"{\"l\":[1]}", "{\"op\":\"remove\",\"path\":\"/l/0\"}", "{\"l\":[]}"},
        {"{\"l\":[1]}", "{\"op\":\"remove\",\"path\":\"/l/1\"}", NULL},
        {"{\"l\":[1]}", "{\"op\":\"remove\",\"path\":\"/l/-\"}", NULL},
    };

    assert_samples(samples, ARRAY_LEN(samples));
}

static void incr_keeps_whole_numbers_whole(void **state UNUSED)
{
    static const struct sample samples[] = {
        {"{\"n\":1}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":-3}", "{\"n\":-2}"},
        {"{\"n\":1}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":0.5}", "{\"n\":1.5}"},
        {"{\"n\":2147483647}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}",
         "{\"n\":2147483648}"},
        {"{\"n\":9007199254740993}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":2}",
         "{\"n\":9007199254740995}"},
        {"{\"n\":9223372036854775807}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}",
         "{\"n\":9223372036854775808}"},
        {"{}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":5}", "{\"n\":5}"},
        {"{\"n\":\"1\"}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":5}", NULL},
        {"{\"n\":null}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":5}", NULL},
        {"{\"n\":1e308}", "{\"op\":\"incr\",\"path\":\"/n\",\"value\":1e308}", NULL},
        {"{\"l\":[1,2]}", "{\"op\":\"incr\",\"path\":\"/l/1\",\"value\":5}", "{\"l\":[1,7]}"},
    };

    assert_samples(samples, ARRAY_LEN(samples));
}

static void move_removes_and_then_adds(void **state UNUSED)
{
    static const struct sample samples[] = {
        {"{\"a\":{\"x\":1},\"b\":2}", "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/c\"}",
         "{\"b\":2,\"c\":{\"x\":1}}"},
        {"{\"a\":1,\"b\":2}", "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}", "{\"b\":1}"},
        {"{\"l\":[1,2,3]}", "{\"op\":\"move\",\"from\":\"/l/0\",\"path\":\"/l/2\"}",
         "{\"l\":[2,3,1]}"},
        {"{\"l\":[1,2,3]}", "{\"op\":\"move\",\"from\":\"/l/2\",\"path\":\"/l/0\"}",
         "{\"l\":[3,1,2]}"},
        {"{\"l\":[1,2]}", "{\"op\":\"move\",\"from\":\"/l/0\",\"path\":\"/l/2\"}", NULL},
        {"{\"a\":1}", "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/c\"}", NULL},
        {"{\"a\":{\"b\":1}}", "{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}", "{\"a\":1}"},
    };

    assert_samples(samples, ARRAY_LEN(samples));
}

static void all_operations_apply_or_none(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct slice item = document_of(arena, "{\"id\":\"a\",\"n\":1}");
    const struct patch *patch =
        patch_of(arena, "{\"operations\":[{\"op\":\"set\",\"path\":\"/a\",\"value\":1},"
                        "{\"op\":\"incr\",\"path\":\"/n\",\"value\":1},"
                        "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}],"
                        "\"condition\":\"from c where c.n = 1\"}");
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_slice_equal(patch->condition, SLICE("from c where c.n = 1"));
    assert_ok(patch_apply(patch, item, &buf, &err), &err);
    assert_string_equal(json_of(arena, buf_slice(&buf)), "{\"id\":\"a\",\"n\":2,\"b\":1}");
    buf_clear(&buf);
    patch = patch_of(arena, "[{\"op\":\"set\",\"path\":\"/a\",\"value\":1},"
                            "{\"op\":\"remove\",\"path\":\"/gone\"}]");
    assert_null(patch->condition.data);
    assert_fails(patch_apply(patch, item, &buf, &err), &err, ERROR_BAD_REQUEST);
    assert_string_equal(err.message, "patch operation 2: path '/gone': there is nothing");
    assert_int_equal(buf.len, 0);
}

static void patches_that_can_never_apply_are_refused_when_parsed(void **state UNUSED)
{
    static const struct {
        const char *body, *message;
    } samples[] = {
        {"[]", "0 operations"},
        {"1", "not an array"},
        {"{}", "no \"operations\""},
        {"{\"operations\":[{\"op\":\"remove\",\"path\":\"/a\"}],\"condition\":1}", "condition"},
        {"[1]", "not an object"},
        {"[{\"path\":\"/a\"}]", "\"op\" is missing"},
        {"[{\"op\":\"test\",\"path\":\"/a\"}]", "\"op\" is \"test\""},
        {"[{\"op\":\"remove\"}]", "\"path\" is missing"},
        {"[{\"op\":\"remove\",\"path\":\"\"}]", "slash"},
        {"[{\"op\":\"remove\",\"path\":\"a\"}]", "slash"},
        {"[{\"op\":\"remove\",\"path\":\"/a~2\"}]", "~"},
        {"[{\"op\":\"remove\",\"path\":\"/a~\"}]", "~"},
        {"[{\"op\":\"remove\",\"path\":\"/a\\u0000\"}]", "NUL"},
        {"[{\"op\":\"set\",\"path\":\"/a\"}]", "\"value\" is missing"},
        {"[{\"op\":\"incr\",\"path\":\"/a\",\"value\":\"1\"}]", "not a number"},
        {"[{\"op\":\"move\",\"path\":\"/a\"}]", "\"from\" is missing"},
        {"[{\"op\":\"move\",\"path\":\"/a/b/c\",\"from\":\"/a/b\"}]", "below"},
        {"[{\"op\":\"remove\",\"path\":\"/id\"}]", "id cannot"},
        {"[{\"op\":\"remove\",\"path\":\"/_ts\"}]", "\"_ts\""},
        {"[{\"op\":\"set\",\"path\":\"/_etag\",\"value\":1}]", "\"_etag\""},
        {"[{\"op\":\"move\",\"path\":\"/a\",\"from\":\"/id\"}]", "id cannot"},
        {"[{\"op\":\"remove\",\"path\":\"/pk/tenant\"}]", "partition key"},
        {"[{\"op\":\"remove\",\"path\":\"/pk\"}]", "partition key"},
        {"[{\"op\":\"set\",\"path\":\"/pk/tenant/x\",\"value\":1}]", "partition key"},
        {"[{\"op\":\"move\",\"path\":\"/pk/tenant\",\"from\":\"/a\"}]", "partition key"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path key;
    const struct patch *patch;
    struct error err;

    assert_ok(document_path_parse(SLICE("/pk/tenant"), DOCUMENT_PATH_KEY, arena, &key, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct document_value body = value_of(arena, samples[i].body);

        assert_fails(patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID), &key, 1, arena,
                                 &patch, &err),
                     &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, samples[i].message);
    }
}

static void ten_operations_are_taken_and_eleven_are_not(void **state UNUSED)
{
    for (int count = PATCH_OPERATIONS_MAX; count <= PATCH_OPERATIONS_MAX + 1; count++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(buf_done) struct buf buf;
        struct document_value body;
        const struct patch *patch;
        struct error err;

        buf_init(&buf, BUF_DEFAULT_MAX);
        for (int i = 0; i < count; i++)
            buf_printf(&buf, "%c{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}", i ? ',' : '[');
        buf_append_byte(&buf, ']');
        body = value_of(arena, arena_text(arena, buf_slice(&buf)));
        if (count > PATCH_OPERATIONS_MAX) {
            assert_fails(patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID), NULL, 0,
                                     arena, &patch, &err),
                         &err, ERROR_BAD_REQUEST);
            continue;
        }
        assert_ok(patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID), NULL, 0, arena,
                              &patch, &err),
                  &err);
        buf_clear(&buf);
        assert_ok(patch_apply(patch, document_of(arena, "{\"n\":1,\"ttl\":5}"), &buf, &err), &err);
        assert_string_equal(json_of(arena, buf_slice(&buf)), "{\"n\":11,\"ttl\":5}");
    }
}

static struct slice nested(struct arena *arena, unsigned depth)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (unsigned i = 0; i < depth; i++)
        BUF_APPEND(&buf, "[");
    for (unsigned i = 0; i < depth; i++)
        BUF_APPEND(&buf, "]");
    return arena_copy(arena, buf_slice(&buf));
}

static const struct patch *patch_with_depth(struct arena *arena, unsigned depth)
{
    struct slice text = arena_printf(arena, "[{\"op\":\"set\",\"path\":\"/a/b/c\",\"value\":%.*s}]",
                                     SLICE_ARG(nested(arena, depth)));

    return patch_of(arena, arena_text(arena, text));
}

static void results_too_deep_or_too_large_are_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf, small;
    struct slice item = document_of(arena, "{\"a\":{\"b\":{}}}");
    const struct patch *deep = patch_with_depth(arena, DOCUMENT_DEPTH_DEFAULT - 3);
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_init(&small, 40);
    assert_ok(patch_apply(deep, item, &buf, &err), &err);
    assert_ok(document_validate(buf_slice(&buf), NULL, &err), &err);
    assert_fails(patch_apply(deep, item, &small, &err), &err, ERROR_TOO_LARGE);
    assert_false(buf_overflowed(&small));
    deep = patch_with_depth(arena, DOCUMENT_DEPTH_DEFAULT - 2);
    assert_fails(patch_apply(deep, item, &buf, &err), &err, ERROR_TOO_DEEP);
}

/* --- A model --------------------------------------------------------------------------------- */

/* A value as a tree: elements in order, with names in an object. */
struct tree {
    struct document_value value; /* of a leaf; the type alone of an object or array */
    struct slice name;
    size_t count;
    struct tree **elements; /* with room for what a patch adds */
};

static struct tree *tree_of(struct arena *arena, struct document_value value, struct slice name)
{
    struct tree *tree = ARENA_NEW(arena, struct tree);
    struct document_iter iter;

    tree->value = value;
    tree->name = name;
    if (value.type != DOCUMENT_OBJECT && value.type != DOCUMENT_ARRAY)
        return tree;
    tree->elements =
        ARENA_ARRAY(arena, struct tree *, document_count(value.document) + PATCH_OPERATIONS_MAX);
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        tree->elements[tree->count++] = tree_of(arena, iter.value, iter.key);
    return tree;
}

static void tree_write(const struct tree *tree, struct slice name, struct buf *buf)
{
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin;

    if (tree->value.type != DOCUMENT_OBJECT && tree->value.type != DOCUMENT_ARRAY) {
        document_append(buf, name, &tree->value);
        return;
    }
    begin = !name.data                            ? document_begin(buf)
            : tree->value.type == DOCUMENT_OBJECT ? document_append_object_begin(buf, name)
                                                  : document_append_array_begin(buf, name);
    for (size_t i = 0; i < tree->count; i++)
        tree_write(tree->elements[i],
                   tree->value.type == DOCUMENT_OBJECT ? tree->elements[i]->name
                                                       : document_index_key((uint32_t)i, index),
                   buf);
    document_end(buf, begin);
}

/* The place of a step in its parent; count if it is where a new one goes, -1 if it is no place. */
static int tree_place(const struct tree *parent, struct slice step)
{
    size_t i = 0;

    if (parent->value.type == DOCUMENT_OBJECT) {
        while (i < parent->count && !slice_equal(parent->elements[i]->name, step))
            i++;
        return (int)i;
    }
    if (parent->value.type != DOCUMENT_ARRAY)
        return -1;
    if (slice_equal(step, SLICE("-")))
        return (int)parent->count;
    for (; i <= parent->count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        if (slice_equal(document_index_key((uint32_t)i, text), step))
            return (int)i;
    }
    return -1;
}

static struct tree *tree_parent(struct tree *root, const struct patch_pointer *pointer)
{
    for (size_t i = 0; i + 1 < pointer->count && root; i++) {
        int place = tree_place(root, pointer->steps[i]);

        root = place >= 0 && (size_t)place < root->count ? root->elements[place] : NULL;
    }
    return root;
}

static struct tree *tree_remove(struct tree *root, const struct patch_pointer *pointer)
{
    struct tree *parent = tree_parent(root, pointer), *removed;
    int place = parent ? tree_place(parent, pointer->steps[pointer->count - 1]) : -1;

    if (place < 0 || (size_t)place == parent->count)
        return NULL;
    removed = parent->elements[place];
    parent->count--;
    for (size_t i = (size_t)place; i < parent->count; i++)
        parent->elements[i] = parent->elements[i + 1];
    return removed;
}

static bool tree_put(struct tree *root, const struct patch_pointer *pointer, struct tree *value,
                     enum patch_kind kind)
{
    struct tree *parent = tree_parent(root, pointer);
    int place = parent ? tree_place(parent, pointer->steps[pointer->count - 1]) : -1;
    bool there = place >= 0 && (size_t)place < parent->count;

    if (place < 0 || (kind == PATCH_REPLACE && !there))
        return false;
    value->name = pointer->steps[pointer->count - 1];
    if (!there || (kind == PATCH_ADD && parent->value.type == DOCUMENT_ARRAY)) {
        for (size_t i = parent->count++; i > (size_t)place; i--)
            parent->elements[i] = parent->elements[i - 1];
    }
    parent->elements[place] = value;
    return true;
}

/* The random numbers to add are small and whole, so their sums need no care. */
static bool tree_increment(struct tree *root, const struct patch_operation *operation,
                           struct arena *arena)
{
    struct tree *parent = tree_parent(root, &operation->path);
    int place = parent ? tree_place(parent, operation->path.steps[operation->path.count - 1]) : -1;
    struct document_value *target;

    if (place < 0)
        return false;
    if ((size_t)place == parent->count)
        return tree_put(root, &operation->path, tree_of(arena, operation->value, SLICE_NONE),
                        PATCH_SET);
    target = &parent->elements[place]->value;
    if (target->type == DOCUMENT_INT32)
        target->int32 += operation->value.int32;
    else if (target->type == DOCUMENT_DOUBLE)
        target->number += operation->value.int32;
    else if (target->type == DOCUMENT_INT64 &&
             __builtin_add_overflow(target->int64, operation->value.int32, &target->int64))
        *target = document_double(operation->value.int32 > 0 ? 0x1p63 : -0x1p63);
    return document_is_number(target);
}

static bool tree_apply(struct tree *root, const struct patch_operation *operation,
                       struct arena *arena)
{
    struct tree *moved;

    switch (operation->kind) {
    case PATCH_REMOVE:
        return tree_remove(root, &operation->path) != NULL;
    case PATCH_INCR:
        return tree_increment(root, operation, arena);
    case PATCH_MOVE:
        moved = tree_remove(root, &operation->from);
        return moved && tree_put(root, &operation->path, moved, PATCH_ADD);
    default:
        return tree_put(root, &operation->path, tree_of(arena, operation->value, SLICE_NONE),
                        operation->kind);
    }
}

/* Steps that mostly lead somewhere: names and places of the item, sometimes something else. */
static struct slice pointer_random(struct random *random, const struct tree *tree,
                                   struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    do {
        size_t at = tree->count ? random_below(random, tree->count) : 0;

        buf_append_byte(&buf, '/');
        if (!tree->count || random_below(random, 6) == 0) {
            const char *const others[] = {"a0", "b1", "-", "0", "3", "new", "00"};

            buf_append_text(&buf, others[random_below(random, ARRAY_LEN(others))]);
            break;
        }
        if (tree->value.type == DOCUMENT_OBJECT)
            buf_append_slice(&buf, tree->elements[at]->name);
        else
            buf_append_uint64(&buf, at);
        tree = tree->elements[at];
    } while (random_below(random, 3));
    return arena_copy(arena, buf_slice(&buf));
}

static void operation_random(struct random *random, const struct tree *tree, struct arena *arena,
                             struct slice key, struct buf *buf)
{
    static const char *const names[] = {"add", "set", "replace", "remove", "incr", "move"};
    size_t kind = random_below(random, ARRAY_LEN(names));
    size_t begin = document_append_object_begin(buf, key);
    struct document_value value = value_random_json(random, arena, 2);

    if (kind == PATCH_INCR)
        value = document_int32((int32_t)random_below(random, 7) - 3);
    document_append_string(buf, SLICE("op"), slice_of_text(names[kind]));
    document_append_string(buf, SLICE("path"), pointer_random(random, tree, arena));
    document_append_string(buf, SLICE("from"), pointer_random(random, tree, arena));
    document_append(buf, SLICE("value"), &value);
    document_end(buf, begin);
}

static struct document_value body_random(struct random *random, const struct tree *tree,
                                         struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin, count = 1 + random_below(random, 4);

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = 0; i < count; i++)
        operation_random(random, tree, arena, document_index_key((uint32_t)i, index), &buf);
    document_end(&buf, begin);
    return document_array(arena_copy(arena, buf_slice(&buf)));
}

static struct document_value item_random(struct random *random, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin, count = random_below(random, 6);

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = 0; i < count; i++) {
        struct document_value value = value_random_json(random, arena, 3);

        while (random_below(random, 2) && value.type != DOCUMENT_ARRAY &&
               value.type != DOCUMENT_OBJECT)
            value = value_random_json(random, arena, 3);
        document_append(&buf, arena_printf(arena, "%c%zu", "ab"[i % 2], i), &value);
    }
    document_end(&buf, begin);
    return document_object(arena_copy(arena, buf_slice(&buf)));
}

/* Returns whether the patch was applied. */
static bool compare_once(struct random *random, uint64_t seed)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf got, expected;
    struct document_value item = item_random(random, arena), body;
    const struct patch *patch;
    struct tree *tree;
    struct error err;
    bool done = true, model = true;

    buf_init(&got, BUF_DEFAULT_MAX);
    buf_init(&expected, BUF_DEFAULT_MAX);
    tree = tree_of(arena, item, SLICE_NONE);
    body = body_random(random, tree, arena);
    if (!patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID), NULL, 0, arena, &patch, &err))
        return false; /* a move below itself */
    done = patch_apply(patch, item.document, &got, &err);
    for (size_t i = 0; i < patch->count && model; i++)
        model = tree_apply(tree, &patch->operations[i], arena);
    if (model)
        tree_write(tree, SLICE_NONE, &expected);
    if (done != model || !slice_equal(buf_slice(&got), buf_slice(&expected)))
        fail_msg("seed %llu: %s with %s gives %s, the model %s", (unsigned long long)seed,
                 json_of(arena, item.document), json_of(arena, body.document),
                 done ? json_of(arena, buf_slice(&got)) : err.message,
                 model ? json_of(arena, buf_slice(&expected)) : "refuses");
    return done;
}

static void patches_do_what_the_model_does(void **state UNUSED)
{
    const char *text = getenv("CONTAINER_SEED");
    uint64_t seed;
    struct random random;
    int applied = 0;

    if (!text || !slice_to_uint64(slice_of_text(text), &seed)) {
        random_secret(&seed, sizeof seed);
        seed >>= 20;
    }
    print_message("# seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    for (int i = 0; i < 20000; i++)
        applied += compare_once(&random, seed);
    assert_true(applied > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_sets_properties_and_inserts_elements),
        cmocka_unit_test(set_and_replace_overwrite_elements),
        cmocka_unit_test(remove_shifts_later_elements),
        cmocka_unit_test(incr_keeps_whole_numbers_whole),
        cmocka_unit_test(move_removes_and_then_adds),
        cmocka_unit_test(all_operations_apply_or_none),
        cmocka_unit_test(patches_that_can_never_apply_are_refused_when_parsed),
        cmocka_unit_test(ten_operations_are_taken_and_eleven_are_not),
        cmocka_unit_test(results_too_deep_or_too_large_are_refused),
        cmocka_unit_test(patches_do_what_the_model_does),
    };
    return cmocka_run_group_tests_name("item/patch", tests, NULL, NULL);
}
