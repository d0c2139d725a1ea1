/* The bytes are a script, as a stranger may send it. Holds that
 *  - what is refused says so with an error of scripts;
 *  - a statement written as text parses to a statement that is written just so;
 *  - memory is given back, statement by statement. */
#include "front/gremlin/language/script.h"
#include "front/gremlin/value/container.h"
#include "fuzz/fuzz.h"
#include "support/gremlin_text.h"

static bool opens(struct gremlin_heap *heap, struct slice text,
                  const struct gremlin_value *bindings, struct gremlin_script **ret_script)
{
    struct gremlin_script_request request = {.text = text,
                                             .limits = {65536, 64, 400},
                                             .heap = heap,
                                             .bindings = bindings,
                                             .now_ms = 1700000000000};
    struct error err;

    if (gremlin_script_open(&request, ret_script, &err))
        return true;
    FUZZ_CHECK(err.code == ERROR_GREMLIN_SCRIPT || err.code == ERROR_GREMLIN_SCRIPT_LIMIT ||
               err.code == ERROR_TOO_LARGE);
    return false;
}

static void statement_write(const struct gremlin_statement *statement, struct buf *buf)
{
    if (statement->traversal)
        gremlin_text_traversal(statement->traversal, buf);
    else
        gremlin_text_value(statement->value, buf);
}

/* Written text is larger than the script: what no longer fits the limits is left alone. */
static void round_trip(struct gremlin_heap *heap, const struct gremlin_statement *statement)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_statement again;
    CLEANUP(buf_done) struct buf first;
    CLEANUP(buf_done) struct buf second;
    struct error err;

    buf_init(&first, 65536);
    buf_init(&second, 65536);
    statement_write(statement, &first);
    if (buf_overflowed(&first) || !opens(heap, buf_slice(&first), NULL, &script))
        return;
    FUZZ_CHECK(gremlin_script_next(script, NULL, &again, &err) && again.present);
    statement_write(&again, &second);
    FUZZ_CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(gremlin_heap_free)
    struct gremlin_heap *heap =
        gremlin_heap_new(&(struct gremlin_heap_options){.limit = 64 * 1024 * 1024});
    CLEANUP(gremlin_value_unref) struct gremlin_value bindings = gremlin_map_new(heap);
    CLEANUP(gremlin_value_unref) struct gremlin_value name = gremlin_string(heap, SLICE("x"));
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    size_t used;

    gremlin_map_put(bindings, name, gremlin_int(1));
    used = gremlin_heap_used(heap);
    if (opens(heap, slice_of(data, size), &bindings, &script)) {
        struct gremlin_statement statement;
        struct error err;

        while (gremlin_script_next(script, &bindings, &statement, &err) && statement.present)
            round_trip(heap, &statement);
        gremlin_script_free(TAKE(script));
    }
    FUZZ_CHECK(gremlin_heap_used(heap) == used);
    return 0;
}
