/* Random updates of random documents: what a description says, done to the document before, gives
 * the document after. */
#include "front/mongo/update/update.h"

#include "base/random.h"
#include "document/json.h"
#include "support/check.h"

struct fixture {
    struct arena *arena;
    struct query_context context;
    struct random random;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->arena = arena_new();
    query_context_init(&f->context, f->arena, NULL, NULL);
    random_seed(&f->random, 23);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_context_done(&f->context);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void append_random(struct random *random, struct buf *buf, struct slice key, unsigned depth)
{
    static const char *const names[] = {"x", "y", "0"};
    size_t begin, kind = depth ? random_below(random, 4) : 9;
    char text[DOCUMENT_INDEX_SIZE];

    if (kind == 0) {
        begin = document_append_array_begin(buf, key);
        for (uint32_t i = 0, n = (uint32_t)random_below(random, 4); i < n; i++)
            append_random(random, buf, document_index_key(i, text), depth - 1);
        document_end(buf, begin);
    } else if (kind == 1) {
        begin = document_append_object_begin(buf, key);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (random_below(random, 2))
                append_random(random, buf, slice_of_text(names[i]), depth - 1);
        document_end(buf, begin);
    } else {
        document_append_int32(buf, key, (int32_t)random_below(random, 5));
    }
}

static struct slice document_random(struct fixture *f)
{
    static const char *const names[] = {"a", "b", "c"};
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_int32(&buf, SLICE("_id"), 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (random_below(&f->random, 4))
            append_random(&f->random, &buf, slice_of_text(names[i]), 3);
    document_end(&buf, begin);
    return arena_copy(f->arena, buf_slice(&buf));
}

static const char *const paths[] = {"a",   "b",   "c",     "a.x",   "a.0",     "a.1",   "b.x",
                                    "b.y", "b.0", "a.x.y", "a.0.x", "a.$[].x", "b.$[]", "c.x.0"};
static const char *const operators[] = {"$set",  "$unset",    "$inc", "$push",
                                        "$pull", "$addToSet", "$pop", "$rename"};

static void operand_append(struct fixture *f, struct buf *buf, size_t which)
{
    struct slice path = slice_of_text(paths[random_below(&f->random, ARRAY_LEN(paths))]);

    if (which == 6)
        document_append_int32(buf, path, random_below(&f->random, 2) ? 1 : -1);
    else if (which == 7)
        document_append_string(buf, path, random_below(&f->random, 2) ? SLICE("d") : SLICE("c.z"));
    else if (which == 2)
        document_append_int32(buf, path, (int32_t)random_below(&f->random, 3));
    else
        append_random(&f->random, buf, path, 2);
}

static struct slice update_random(struct fixture *f)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin, inner;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = 0, n = 1 + random_below(&f->random, 3); i < n; i++) {
        size_t which = random_below(&f->random, ARRAY_LEN(operators));

        inner = document_append_object_begin(&buf, slice_of_text(operators[which]));
        operand_append(f, &buf, which);
        document_end(&buf, inner);
    }
    document_end(&buf, begin);
    return arena_copy(f->arena, buf_slice(&buf));
}

static bool apply(struct fixture *f, struct slice update, struct slice before,
                  struct mongo_update_result *ret_result, struct error *err)
{
    struct query_build build = {.arena = f->arena};
    struct document_value value = document_object(update);
    struct mongo_update_input input = {
        .document = before, .position = -1, .now_ms = 1, .context = &f->context};
    const struct mongo_update *compiled;

    return mongo_update_compile(&value, NULL, &build, &compiled, err) &&
           mongo_update_apply(compiled, &input, f->arena, ret_result, err);
}

static struct slice applied(struct fixture *f, struct buf *update, struct slice before)
{
    struct mongo_update_result result;
    struct error err;

    assert_ok(apply(f, arena_copy(f->arena, buf_slice(update)), before, &result, &err), &err);
    return result.document;
}

/* Each array as long as it became. */
static struct slice truncate(struct fixture *f, struct slice document, struct slice arrays)
{
    struct document_iter iter;

    document_iter_init(&iter, arrays);
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf buf;
        struct document_value field, size;
        size_t begin, push, each;

        assert_true(document_find(iter.value.document, SLICE("field"), &field));
        assert_true(document_find(iter.value.document, SLICE("newSize"), &size));
        buf_init(&buf, BUF_DEFAULT_MAX);
        begin = document_begin(&buf);
        push = document_append_object_begin(&buf, SLICE("$push"));
        each = document_append_object_begin(&buf, field.text);
        document_end(&buf, document_append_array_begin(&buf, SLICE("$each")));
        document_append(&buf, SLICE("$slice"), &size);
        document_end(&buf, each);
        document_end(&buf, push);
        document_end(&buf, begin);
        document = applied(f, &buf, document);
    }
    return document;
}

static struct slice set(struct fixture *f, struct slice document, struct slice fields)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value = document_object(fields);
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("$set"), &value);
    document_end(&buf, begin);
    return applied(f, &buf, document);
}

static struct slice unset(struct fixture *f, struct slice document, struct slice fields)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin, inner;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    inner = document_append_object_begin(&buf, SLICE("$unset"));
    document_iter_init(&iter, fields);
    while (document_iter_next(&iter))
        document_append_bool(&buf, iter.value.text, true);
    document_end(&buf, inner);
    document_end(&buf, begin);
    return applied(f, &buf, document);
}

static const char *shown(struct arena *arena, struct slice document)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_json_write(document, &buf);
    return arena_text(arena, buf_slice(&buf));
}

static void a_description_leads_from_before_to_after(void **state)
{
    struct fixture *f = *state;
    size_t changed = 0, truncated = 0, removed = 0;

    for (size_t round = 0; round < 10000; round++) {
        struct slice before = document_random(f), update = update_random(f), again;
        struct mongo_update_result result;
        struct document_value a, b;
        struct error err;

        if (!apply(f, update, before, &result, &err) || !result.changed)
            continue;
        again = truncate(f, before, result.truncated_arrays);
        again = set(f, again, result.updated_fields);
        again = unset(f, again, result.removed_fields);
        /* The order of fields is not told. */
        a = document_object(again);
        b = document_object(result.document);
        if (document_compare(DOCUMENT_ORDER_SQL, &a, &b) != 0)
            fail_msg("%s with %s: %s, told as %s", shown(f->arena, before), shown(f->arena, update),
                     shown(f->arena, result.document), shown(f->arena, again));
        changed++;
        truncated += document_count(result.truncated_arrays) > 0;
        removed += document_count(result.removed_fields) > 0;
    }
    assert_true(changed > 1000);
    assert_true(truncated > 20);
    assert_true(removed > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_description_leads_from_before_to_after, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
