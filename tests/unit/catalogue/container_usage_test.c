#include "catalogue/container_usage.h"

#include "catalogue/container_space.h"
#include "item/operation.h"
#include "partition/strategy.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

static struct container *container_made(struct bench *bench, int64_t ru)
{
    struct container *container;
    struct error err;

    bench_account(bench, "a");
    bench_database(bench, "a", "d", 0);
    bench_container(bench, "a", "d", BENCH_BODY("c"), ru);
    assert_ok(catalogue_container_open(bench->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                       &container, &err),
              &err);
    return container;
}

static void item_write(struct bench *bench, struct container *container, enum transaction_verb verb,
                       const char *pk, const char *id, size_t len)
{
    struct item_space space = container_space(container, &clock_system, NULL);
    const struct definition_fields *fields = definition_fields(container_definition(container));
    const struct transaction_options options = {0};
    struct document_value id_value = document_string(slice_of_text(id));
    char text[4096], filler[2048];
    struct partition_key key;
    struct error err;

    assert_true(len < sizeof filler);
    memset(filler, 'x', len);
    filler[len] = '\0';
    snprintf(text, sizeof text, "[\"%s\"]", pk);
    assert_ok(partition_key_parse(&fields->key, slice_of_text(text), PARTITION_KEY_WHOLE,
                                  bench->arena, &key, &err),
              &err);
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"pk\":\"%s\",\"f\":\"%s\"}", id, pk, filler);
    assert_ok(
        item_operation_run(&(struct item_operation){.space = &space,
                                                    .arena = bench->arena,
                                                    .verb = item_verb_of(verb),
                                                    .key = key,
                                                    .id = id_value,
                                                    .document = document_of(bench->arena, text),
                                                    .options = options},
                           &err),
        &err);
}

static void usage_follows_what_is_written(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_made(bench, 30000);
    struct container_usage usage;
    struct error err;

    assert_ok(container_usage_all(container, bench->arena, &usage, &err), &err);
    assert_int_equal(usage.items, 0);
    assert_int_equal(usage.bytes, 0);
    for (int i = 0; i < 20; i++) {
        char name[8];

        snprintf(name, sizeof name, "k%d", i);
        item_write(bench, container, TRANSACTION_CREATE, name, "1", 1000);
    }
    assert_ok(container_usage_all(container, bench->arena, &usage, &err), &err);
    assert_int_equal(usage.items, 20);
    assert_true(usage.bytes > 20000 && usage.bytes < 30000);
    item_write(bench, container, TRANSACTION_DELETE, "k3", "1", 0);
    assert_ok(container_usage_all(container, bench->arena, &usage, &err), &err);
    assert_int_equal(usage.items, 19);
}

static void the_largest_logical_partitions_come_first(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_made(bench, 400);
    size_t count, seen, spans;
    const struct partition_span *span = partition_map_spans(container_map(container), &spans);
    struct container_usage_key *keys;
    struct error err;

    item_write(bench, container, TRANSACTION_CREATE, "small", "1", 10);
    item_write(bench, container, TRANSACTION_CREATE, "large", "1", 1500);
    item_write(bench, container, TRANSACTION_CREATE, "large", "2", 1500);
    item_write(bench, container, TRANSACTION_CREATE, "middle", "1", 1000);
    item_write(bench, container, TRANSACTION_CREATE, "gone", "1", 1900);
    item_write(bench, container, TRANSACTION_DELETE, "gone", "1", 0);
    assert_ok(
        container_usage_largest(container, span, 2, 1000, bench->arena, &keys, &count, &seen, &err),
        &err);
    assert_int_equal(count, 2);
    assert_true(seen >= 3);
    assert_slice_equal(keys[0].key.components[0].text, SLICE("large"));
    assert_int_equal(keys[0].usage.items, 2);
    assert_slice_equal(keys[1].key.components[0].text, SLICE("middle"));
    assert_ok(
        container_usage_largest(container, span, 9, 1000, bench->arena, &keys, &count, &seen, &err),
        &err);
    assert_int_equal(count, 3);
    assert_ok(
        container_usage_largest(container, span, 9, 1, bench->arena, &keys, &count, &seen, &err),
        &err);
    assert_int_equal(seen, 1);
    assert_true(count <= 1);
}

/* Of the key that is there twice, of one with a single item, and of one that nobody has. */
static void the_usage_of_a_range_is_that_of_its_keys(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = container_made(bench, 400);
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    const char *keys[] = {"two", "one", "none"};
    struct container_usage all, sum = {0};
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);
    struct error err;

    item_write(bench, container, TRANSACTION_CREATE, "two", "1", 100);
    item_write(bench, container, TRANSACTION_CREATE, "two", "2", 100);
    item_write(bench, container, TRANSACTION_CREATE, "one", "1", 100);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct document_value value = document_string(slice_of_text(keys[i]));
        struct partition_key key = partition_key_of(definition, &value, 1);
        struct container_usage usage;

        assert_ok(container_usage_range(container, span,
                                        partition_route_range(definition, &key, bench->arena),
                                        bench->arena, &usage, &err),
                  &err);
        assert_int_equal(usage.items, 2 - i);
        sum.items += usage.items;
        sum.bytes += usage.bytes;
    }
    assert_ok(container_usage_all(container, bench->arena, &all, &err), &err);
    assert_int_equal(sum.items, all.items);
    assert_int_equal(sum.bytes, all.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(usage_follows_what_is_written),
        ON_BOTH(the_largest_logical_partitions_come_first),
        ON_BOTH(the_usage_of_a_range_is_that_of_its_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
