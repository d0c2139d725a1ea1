#include "front/mongo/command/index_uses.h"

#include "base/clock.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/source.h"

#include <sys/utsname.h>
#include <xxhash.h>

enum { PLACES = 16384, LOOKS_MAX = 32 };

struct mongo_index_uses {
    struct {
        atomic_uint_fast64_t name; /* a hash; 0: nobody has the place */
        atomic_uint_fast64_t count;
    } places[PLACES];
};

struct mongo_index_uses *mongo_index_uses_new(void)
{
    return MEMORY_NEW(struct mongo_index_uses);
}

void mongo_index_uses_free(struct mongo_index_uses *uses)
{
    memory_free(uses);
}

/* An index that is dropped and made again has another number. */
static uint64_t name_of(const struct mongo_call *call, const struct rid *rid,
                        const struct index_definition *index)
{
    const uint32_t numbers[] = {call->account.account ? account_info(call->account.account)->number
                                                      : 0,
                                rid->database, rid->owner, index->number};
    uint64_t of = XXH3_64bits(numbers, sizeof numbers);

    of = XXH3_64bits_withSeed(index->name.data, index->name.len, of);
    return of ? of : 1;
}

void mongo_index_uses_add(const struct mongo_call *call, const struct rid *rid,
                          const struct index_definition *index)
{
    struct mongo_index_uses *uses = call->mongo->index_uses;
    uint64_t name = name_of(call, rid, index);

    for (size_t i = 0; i < LOOKS_MAX; i++) {
        size_t at = (name + i) % PLACES;
        uint_fast64_t is = atomic_load_explicit(&uses->places[at].name, memory_order_relaxed);

        if (!is && atomic_compare_exchange_strong(&uses->places[at].name, &is, name))
            is = name;
        if (is == name) {
            atomic_fetch_add_explicit(&uses->places[at].count, 1, memory_order_relaxed);
            return;
        }
    }
}

uint64_t mongo_index_uses_read(const struct mongo_call *call, const struct rid *rid,
                               const struct index_definition *index)
{
    const struct mongo_index_uses *uses = call->mongo->index_uses;
    uint64_t name = name_of(call, rid, index);

    for (size_t i = 0; i < LOOKS_MAX; i++) {
        size_t at = (name + i) % PLACES;

        if (atomic_load_explicit(&uses->places[at].name, memory_order_relaxed) == name)
            return atomic_load_explicit(&uses->places[at].count, memory_order_relaxed);
    }
    return 0;
}

/* --- $indexStats ----------------------------------------------------------------------------- */

static bool row_add(struct mongo_rows *rows, const struct mongo_collection *collection,
                    const struct index_definition *index, struct slice shown, struct error *err)
{
    struct mongo_call *call = rows->call;
    const struct document_value spec = document_object(shown);
    const struct rid rid = container_rid(collection->container);
    int64_t up_ms = clock_read_monotonic_ms(call->services->clock) - call->mongo->started_ms;
    struct document_value value;
    CLEANUP(buf_done) struct buf row;
    struct utsname names = {0};
    size_t begin, part;

    buf_init(&row, BUF_DEFAULT_MAX);
    (void)uname(&names);
    begin = mongo_row_begin(&row);
    if (document_find(shown, SLICE("name"), &value))
        document_append(&row, SLICE("name"), &value);
    if (document_find(shown, SLICE("key"), &value))
        document_append(&row, SLICE("key"), &value);
    document_append_string(&row, SLICE("host"), slice_of_text(names.nodename));
    part = document_append_object_begin(&row, SLICE("accesses"));
    document_append_int64(&row, SLICE("ops"),
                          index ? (int64_t)mongo_index_uses_read(call, &rid, index) : 0);
    document_append_date(&row, SLICE("since"), clock_read_wall_ms(call->services->clock) - up_ms);
    document_end(&row, part);
    document_append(&row, SLICE("spec"), &spec);
    if (index && index->state == INDEX_BUILDING)
        document_append_bool(&row, SLICE("building"), true);
    return mongo_row_end(rows, begin, &row, err);
}

bool mongo_source_index_stats(const struct mongo_source *source, struct mongo_rows *rows,
                              struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct definition_fields *fields;
    size_t count;
    struct slice *shown;

    if (source->specification->type != DOCUMENT_OBJECT ||
        document_count(source->specification->document))
        return mongo_error_set(err, 28803,
                               "The $indexStats stage specification must be an empty "
                               "object");
    if (!mongo_collection_open(rows->call, source->name, &collection, err))
        return false;
    if (!collection.container)
        return true;
    fields = definition_fields(container_definition(collection.container));
    shown = mongo_indexes_shown(rows->call, &collection, &count);
    for (size_t i = 0; i < count; i++) {
        struct document_value name = document_undefined();

        (void)document_find(shown[i], SLICE("name"), &name);
        if (!row_add(rows, &collection, definition_index(fields, name.text), shown[i], err))
            return false;
    }
    return true;
}
