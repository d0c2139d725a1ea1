#include "catalogue/children_private.h"

#include "base/random.h"
#include "document/bson.h"
#include "support/check.h"

enum { NUMBERS = 200, STEPS = 5000 };

/* What a tree must hold: an id by number, or 0. */
struct model {
    unsigned ids[NUMBERS + 1];
};

static struct catalogue_child *child_make(uint32_t number, unsigned id)
{
    CLEANUP(buf_done) struct buf body;
    struct catalogue_child *child;
    char text[16];
    size_t begin;

    buf_init(&body, BUF_DEFAULT_MAX);
    snprintf(text, sizeof text, "%04u", id);
    begin = document_begin(&body);
    document_append_string(&body, SLICE("id"), slice_of_text(text));
    document_end(&body, begin);
    child = child_new(CHILD_USER, 1, 2, 0, buf_slice(&body));
    child_stamp(child, number, 1, 1);
    return child;
}

static unsigned id_of(const struct catalogue_child *child)
{
    uint64_t id;

    assert_true(slice_to_uint64(catalogue_child_info(child)->id, &id));
    return (unsigned)id;
}

/* Everything a tree can be asked, against the model. */
static void assert_agree(const struct catalogue_children *children, const struct model *model)
{
    bool taken[10000] = {false};
    size_t count = 0, index = 0;

    for (uint32_t number = 1; number <= NUMBERS; number++) {
        struct catalogue_child *child = children_find_number(children, number);

        assert_int_equal(child ? id_of(child) : 0, model->ids[number]);
        if (!child)
            continue;
        count++;
        taken[model->ids[number]] = true;
        assert_ptr_equal(children_find_id(children, child->info.id), child);
        assert_ptr_equal(catalogue_children_find(children, child->info.rid), child);
    }
    assert_int_equal(catalogue_children_count(children), count);
    for (unsigned id = 0; id < ARRAY_LEN(taken); id++) {
        if (taken[id])
            assert_int_equal(id_of(catalogue_children_at(children, index++)), id);
    }
}

static bool is_taken(const struct model *model, unsigned id)
{
    for (uint32_t number = 1; number <= NUMBERS; number++)
        if (model->ids[number] == id)
            return true;
    return false;
}

/* Puts, renames and removes at random; versions of before stay as they were. */
static void any_sequence_of_changes_gives_what_a_list_would(void **state UNUSED)
{
    CLEANUP(catalogue_children_unref) struct catalogue_children *children = NULL, *kept = NULL;
    struct model model = {0}, kept_model = {0};
    struct random random;

    random_seed(&random, 7);
    for (int step = 0; step < STEPS; step++) {
        uint32_t number = 1 + (uint32_t)random_below(&random, NUMBERS);
        unsigned id = 1 + (unsigned)random_below(&random, 9999);
        struct catalogue_children *next;

        if (model.ids[number] && random_below(&random, 2)) {
            next = children_without(children, children_find_number(children, number));
            model.ids[number] = 0;
        } else if (!is_taken(&model, id)) {
            CLEANUP(catalogue_child_unref) struct catalogue_child *child = child_make(number, id);

            next = children_with(children, child);
            model.ids[number] = id;
        } else {
            continue;
        }
        catalogue_children_unref(children);
        children = next;
        if (step % 250 == 0) {
            assert_agree(children, &model);
            assert_agree(kept, &kept_model);
            catalogue_children_unref(kept);
            kept = catalogue_children_ref(children);
            kept_model = model;
        }
    }
    assert_agree(children, &model);
}

/* Ids that come in order, as many as an account may have. A list would be a tree of that depth. */
static void a_hundred_thousand_in_order_are_loaded_and_found(void **state UNUSED)
{
    CLEANUP(catalogue_children_unref) struct catalogue_children *children = NULL;
    enum { MANY = 100000 };

    for (uint32_t i = 1; i <= MANY; i++)
        children_load(&children, child_make(i, i));
    assert_int_equal(catalogue_children_count(children), MANY);
    for (uint32_t i = 1; i <= MANY; i++)
        assert_int_equal(children_find_number(children, i)->info.number, i);
    assert_int_equal(id_of(catalogue_children_at(children, 0)), 1);
    assert_non_null(children_find_id(children, SLICE("9999")));
}

static void none_at_all_can_be_asked_everything(void **state UNUSED)
{
    CLEANUP(catalogue_children_unref) struct catalogue_children *emptied = NULL, *one = NULL;
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = child_make(1, 1);

    assert_int_equal(catalogue_children_count(NULL), 0);
    assert_null(catalogue_children_find(NULL, SLICE("x")));
    assert_null(catalogue_children_ref(NULL));
    one = children_with(NULL, child);
    emptied = children_without(one, child);
    assert_int_equal(catalogue_children_count(emptied), 0);
    assert_int_equal(catalogue_children_count(one), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_of_changes_gives_what_a_list_would),
        cmocka_unit_test(a_hundred_thousand_in_order_are_loaded_and_found),
        cmocka_unit_test(none_at_all_can_be_asked_everything),
    };
    return cmocka_run_group_tests_name("catalogue/children", tests, NULL, NULL);
}
