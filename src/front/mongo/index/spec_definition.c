/* What becomes of a spec: the document that listIndexes shows, and the definition. */
#include "front/mongo/index/spec_private.h"

#include "front/mongo/collation/collation.h"

/* --- Showing --------------------------------------------------------------------------------- */

static void collation_append(const struct document_collator *collator, struct buf *out)
{
    if (collator) {
        const struct document_value shown = document_object(document_collator_document(collator));

        document_append(out, SLICE("collation"), &shown);
    }
}

struct slice mongo_index_id(const struct document_collator *collator, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin, key;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    key = document_append_object_begin(&out, SLICE("key"));
    document_append_int32(&out, SLICE("_id"), 1);
    document_end(&out, key);
    document_append_string(&out, SLICE("name"), MONGO_INDEX_ID);
    collation_append(collator, &out);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

struct slice mongo_index_id_definition(const struct document_collator *collator,
                                       struct arena *arena)
{
    const struct document_value source = document_object(mongo_index_id(collator, arena));
    CLEANUP(buf_done) struct buf out;
    size_t begin, key, part;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("name"), MONGO_INDEX_ID);
    key = document_append_array_begin(&out, SLICE("key"));
    part = document_append_object_begin(&out, SLICE("0"));
    document_append_string(&out, SLICE("path"), SLICE("/_id"));
    document_end(&out, part);
    document_end(&out, key);
    document_append_string(&out, SLICE("order"), SLICE("mongo"));
    collation_append(collator, &out);
    document_append_bool(&out, SLICE("multikey"), true);
    document_append_string(&out, SLICE("arrays"), SLICE("counted"));
    document_append_string(&out, SLICE("unique"), SLICE("logicalPartition"));
    document_append(&out, SLICE("source"), &source);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

void mongo_index_shown_make(struct mongo_index_reading *r)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_index_spec *spec = r->spec;
    const struct document_value key = document_object(spec->key);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    document_append(&out, SLICE("key"), &key);
    document_append_string(&out, SLICE("name"), spec->name);
    if (mongo_index_flag(&r->unique))
        document_append_bool(&out, SLICE("unique"), true);
    if (mongo_index_flag(&r->sparse))
        document_append_bool(&out, SLICE("sparse"), true);
    if (spec->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), spec->expire_after_s);
    if (mongo_index_is_given(&r->filter))
        document_append(&out, SLICE("partialFilterExpression"), &r->filter);
    if (mongo_index_is_given(&r->projection))
        document_append(&out, SLICE("wildcardProjection"), &r->projection);
    if (mongo_index_flag(&r->hidden))
        document_append_bool(&out, SLICE("hidden"), true);
    if (r->texts)
        mongo_index_text_show(r, &out);
    else
        collation_append(r->collator, &out);
    if (r->spheres)
        document_append_int32(&out, SLICE("2dsphereIndexVersion"), 3);
    if (mongo_index_is_given(&r->bits) && r->planes)
        document_append(&out, SLICE("bits"), &r->bits);
    if (mongo_index_is_given(&r->min) && r->planes)
        document_append(&out, SLICE("min"), &r->min);
    if (mongo_index_is_given(&r->max) && r->planes)
        document_append(&out, SLICE("max"), &r->max);
    document_end(&out, begin);
    spec->shown = arena_copy(r->arena, buf_slice(&out));
}

static void dotted_append(const struct document_path *path, struct buf *out)
{
    for (size_t i = 0; i < path->count; i++) {
        if (i)
            BUF_APPEND(out, ".");
        buf_append_slice(out, path->segments[i].name);
    }
}

struct slice mongo_index_show(const struct index_definition *definition, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out, path;
    size_t begin, key;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&path, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    key = document_append_object_begin(&out, SLICE("key"));
    for (size_t i = 0; i < definition->part_count; i++) {
        buf_clear(&path);
        dotted_append(&definition->parts[i].path, &path);
        if (definition->parts[i].hashed)
            document_append_string(&out, buf_slice(&path), SLICE("hashed"));
        else if (definition->parts[i].cells)
            document_append_string(&out, buf_slice(&path),
                                   definition->spatial->rules.surface == SEARCH_PLANE
                                       ? SLICE("2d")
                                       : SLICE("2dsphere"));
        else
            document_append_int32(&out, buf_slice(&path), definition->parts[i].descending ? -1 : 1);
    }
    if (!definition->part_count)
        document_append_int32(&out, SLICE("$**"), 1);
    document_end(&out, key);
    document_append_string(&out, SLICE("name"), definition->name);
    if (definition->unique != INDEX_UNIQUE_NOT)
        document_append_bool(&out, SLICE("unique"), true);
    if (definition->sparse)
        document_append_bool(&out, SLICE("sparse"), true);
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), definition->expire_after_s);
    if (definition->hidden)
        document_append_bool(&out, SLICE("hidden"), true);
    collation_append(definition->collator, &out);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* --- The definition -------------------------------------------------------------------------- */

struct slice mongo_index_path(struct slice dotted, struct arena *arena)
{
    struct document_segment segments[DOCUMENT_PATH_SEGMENTS_MAX];
    struct document_path path = {.segments = segments};
    struct slice rest = dotted, head, tail;
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    while (path.count < DOCUMENT_PATH_SEGMENTS_MAX - 1 && slice_split(rest, '.', &head, &tail)) {
        segments[path.count++] = (struct document_segment){.name = head};
        rest = tail;
    }
    segments[path.count++] = (struct document_segment){.name = rest};
    document_path_append(&path, &out);
    return arena_copy(arena, buf_slice(&out));
}

static void cells_append(const struct mongo_index_reading *r, struct buf *out)
{
    size_t box;

    if (r->spheres) {
        document_append_string(out, SLICE("cells"), SLICE("earth"));
        return;
    }
    box = document_append_object_begin(out, SLICE("cells"));
    document_append_double(out, SLICE("min"), r->low);
    document_append_double(out, SLICE("max"), r->high);
    document_end(out, box);
}

static void parts_append(const struct mongo_index_reading *r, struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("key"));
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    document_iter_init(&iter, r->spec->key);
    while (document_iter_next(&iter)) {
        size_t part = document_append_object_begin(out, document_index_key(count++, text));
        double number = 0;

        document_append_string(out, SLICE("path"), mongo_index_path(iter.key, r->arena));
        if (iter.value.type == DOCUMENT_STRING && slice_equal(iter.value.text, SLICE("hashed")))
            document_append_bool(out, SLICE("hashed"), true);
        else if (iter.value.type == DOCUMENT_STRING)
            cells_append(r, out);
        else if (document_to_double(&iter.value, &number) && number < 0)
            document_append_string(out, SLICE("order"), SLICE("descending"));
        document_end(out, part);
    }
    document_end(out, list);
}

/* {a: 1, "b.c": 1} includes, {a: 0} excludes; _id is as it is said. */
static bool projection_append(const struct mongo_index_reading *r, struct buf *out)
{
    CLEANUP(buf_done) struct buf exclude, included;
    struct buf *lists[] = {&exclude, &included};
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t counts[2] = {0};
    struct document_iter iter;
    size_t begins[2];
    bool fine = true;

    for (size_t i = 0; i < 2; i++) {
        buf_init(lists[i], BUF_DEFAULT_MAX);
        begins[i] = document_begin(lists[i]);
    }
    document_iter_init(&iter, r->projection.document);
    while (fine && document_iter_next(&iter)) {
        bool include = mongo_index_flag(&iter.value);
        struct slice path = mongo_index_path(iter.key, r->arena);

        fine = iter.value.type == DOCUMENT_BOOL || document_is_number(&iter.value);
        document_append_string(lists[include], document_index_key(counts[include]++, text),
                               arena_join(r->arena, (struct slice[]){path, SLICE("/*")}, 2));
    }
    for (size_t i = 0; i < 2; i++) {
        struct document_value value;

        document_end(lists[i], begins[i]);
        value = document_array(buf_slice(lists[i]));
        if (counts[i])
            document_append(out, i ? SLICE("include") : SLICE("exclude"), &value);
    }
    if (!fine)
        return mongo_error_set(r->err, MONGO_FAILED_TO_PARSE,
                               "wildcardProjection takes fields that are 0 or 1");
    if (counts[0] + counts[1] > INDEX_PROJECTION_MAX)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "wildcardProjection has more than %d fields", INDEX_PROJECTION_MAX);
    return true;
}

static bool wildcard_append(const struct mongo_index_reading *r, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("wildcard")), list;
    struct document_iter iter;

    document_iter_init(&iter, r->spec->key);
    (void)document_iter_next(&iter);
    if (mongo_index_is_given(&r->projection)) {
        if (!projection_append(r, out))
            return false;
    } else if (!slice_equal(iter.key, SLICE("$**"))) {
        struct slice path = mongo_index_path(slice_first(iter.key, iter.key.len - 4), r->arena);

        list = document_append_array_begin(out, SLICE("include"));
        document_append_string(out, SLICE("0"),
                               arena_join(r->arena, (struct slice[]){path, SLICE("/*")}, 2));
        document_end(out, list);
    } else { /* _id has its own */
        list = document_append_array_begin(out, SLICE("exclude"));
        document_append_string(out, SLICE("0"), SLICE("/_id/*"));
        document_end(out, list);
    }
    document_end(out, object);
    return true;
}

bool mongo_index_definition_make(struct mongo_index_reading *r)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_index_spec *spec = r->spec;
    const struct document_value source = document_object(spec->shown);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("name"), spec->name);
    if (r->texts)
        mongo_index_text_append(r, &out);
    else if (!r->wildcards)
        parts_append(r, &out);
    else if (!wildcard_append(r, &out))
        return false;
    document_append_string(&out, SLICE("order"), SLICE("mongo"));
    if (!r->texts)
        collation_append(r->collator, &out);
    document_append_bool(&out, SLICE("multikey"), true);
    if (!r->wildcards && !r->texts && !r->spheres && !r->planes)
        document_append_string(&out, SLICE("arrays"), SLICE("counted"));
    if (mongo_index_flag(&r->hidden))
        document_append_bool(&out, SLICE("hidden"), true);
    if (mongo_index_flag(&r->sparse) && !r->spheres && !r->planes) /* such an index always is */
        document_append_bool(&out, SLICE("sparse"), true);
    if (spec->unique)
        document_append_string(&out, SLICE("unique"), SLICE("logicalPartition"));
    if (spec->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), spec->expire_after_s);
    if (mongo_index_is_given(&r->filter) &&
        !mongo_index_filter_append(r->filter.document, &out, r->arena, r->err))
        return false;
    document_append(&out, SLICE("source"), &source);
    document_end(&out, begin);
    spec->definition = arena_copy(r->arena, buf_slice(&out));
    return true;
}
