/* Index entries. Those of a policy are of format 1. An entry is a path and a value:
 *
 *     path    segments, with 01 between them and 00 behind the last
 *     value   document_key_append_cut, SQL order, at most INDEX_VALUE_MAX bytes
 *
 *     segment of a property    its name, in which 01 is written 02 01 and 02 is written 02 02
 *     segment of []            02 03
 *
 * A name holds no 00. So /a/[]/b is "a" 01 02 03 01 "b" 00; all entries of a path are together
 * (they begin with "a" 00), so are all below it ("a" 01), and both are neighbours. Names are
 * ordered by their bytes.
 *
 * Where a path would take more than INDEX_PATH_MAX bytes, with the byte behind each segment, the
 * segments that fit are written, 01 behind each, and the rest is
 *
 *     02 06 | hash of the segments left (16 bytes) | 00
 *
 * The hash starts as 16 zero bytes and takes in segment by segment: XXH3-128, canonical, of the
 * hash so far, the kind of segment (0 property, 1 elements) and XXH3-128 of the name. Two paths
 * might share a hash; whoever reads such an entry looks at the item.
 *
 * A composite index has one entry for each item:
 *
 *     02 04 | for each path: 01 ascending, 02 descending; path | 00 | values
 *
 * A tuple has one for each element its path leads to:
 *
 *     02 05 | segments before it, 01 behind each | 00 | for each member: 01, path | 00 | values
 *
 * The values stand one after the other, each cut as above, those of descending paths with all bits
 * inverted. A beginning of more than INDEX_PATH_MAX bytes is known by its hash instead:
 *
 *     02 07 composite, 02 08 tuple | XXH3-128 of the beginning | for each path: 01 or 02 | 00 |
 * values
 *
 * A spatial index has an entry for each cell that a figure at the path lies in:
 *
 *     02 0A | path, as above | number of the cell, a text of 16 hexadecimal digits
 *
 * An index of vectors has one entry for each item (vector.c):
 *
 *     02 0B | path, as above | length of what follows (2 bytes) | the vector, or its code
 *
 * A full-text index has an entry for each term of the text at the path, behind the first two
 * letters of its language and a blank; of no term where there are too many (text.c):
 *
 *     02 0C | path, as above | text: language, blank, term
 *
 * No segment begins with 02 04 to 02 0C, so these never mix with plain entries.
 *
 * Definitions besides the policy have entries of format 2, known by the number of the definition:
 *
 *     02 09 | number | shape | directions | path, of a wildcard | values
 *
 *     number       1 byte
 *     shape        1 byte: bits 0 to 5 how many values there are, bit 6 set if they are in
 *                  MongoDB's order, bit 7 set if a path comes before them
 *     directions   for every eight values a byte, the first value in its lowest bit: 1 descending
 *
 * So an entry of two values begins with 5 bytes, however long their paths are, and can be stepped
 * over by who does not know the definition. Nothing is stored with it: where format 1 repeats pk
 * and id of the item, the number at the end leads to them (item/cursor.c).
 *
 * This file reads a policy as clients write it and completes it as the service shows it. */
#include "index/policy_private.h"

#include "document/bson.h"

struct row {
    struct slice text; /* as shown: "/" has become its modern form */
    struct document_path path;
};

struct rows {
    struct row *rows;
    size_t count;
};

struct parser {
    struct arena *arena;
    struct error *err;
    struct index_policy *policy;
    struct slice mode;
    bool automatic;
    struct rows included, excluded;
    const struct index_definition **composite_definitions;
    size_t composite_count;
    const struct index_definition **spatial_definitions;
    size_t spatial_count;
    const struct index_definition **text_definitions;
    size_t text_count;
    const struct index_vector_listed *vectors_listed;
    size_t vector_count;
    struct document_value composites, spatial, vectors, texts; /* undefined: not given */
};

static bool parse(struct parser *p, struct slice policy);
static void show(const struct parser *p, struct buf *buf);

bool index_policy_parse(struct slice policy, const struct document_names *names,
                        struct arena *arena, struct buf *completed,
                        const struct index_policy **ret_policy, struct error *err)
{
    struct parser p = {.arena = arena, .err = err, .policy = ARENA_NEW(arena, struct index_policy)};

    p.policy->tree = ARENA_NEW(arena, struct index_tree);
    p.policy->tree->names = names;
    if (!parse(&p, policy))
        return error_prefix(err, "indexing policy");
    show(&p, completed);
    *ret_policy = p.policy;
    return true;
}

static void composites_find(struct index_policy *policy, struct arena *arena);

const struct index_policy *index_policy_with(const struct index_policy *policy,
                                             const struct index_definition *const *definitions,
                                             size_t count, struct arena *arena)
{
    struct index_policy *with = ARENA_NEW(arena, struct index_policy);
    const struct index_definition **all =
        ARENA_ARRAY(arena, const struct index_definition *, policy->definition_count + count);

    *with = *policy;
    memcpy(all, policy->definitions, policy->definition_count * sizeof *all);
    if (count)
        memcpy(all + policy->definition_count, definitions, count * sizeof *all);
    with->definitions = all;
    with->definition_count = policy->definition_count + count;
    with->besides_count = policy->besides_count + count;
    for (size_t i = 0; i < count; i++)
        with->places |= definitions[i]->placed != NULL;
    composites_find(with, arena);
    return with;
}

const struct index_policy *index_policy_insert(const struct index_policy *policy,
                                               const struct index_definition *const *definitions,
                                               size_t count, struct arena *arena)
{
    struct index_policy *with = ARENA_NEW(arena, struct index_policy);
    size_t own = policy->definition_count - policy->besides_count;
    const struct index_definition **all =
        ARENA_ARRAY(arena, const struct index_definition *, policy->definition_count + count);

    if (policy->none || !count)
        return policy;
    *with = *policy;
    memcpy(all, policy->definitions, own * sizeof *all);
    memcpy(all + own, definitions, count * sizeof *all);
    if (policy->besides_count)
        memcpy(all + own + count, policy->definitions + own, policy->besides_count * sizeof *all);
    with->definitions = all;
    with->definition_count += count;
    return with;
}

const struct index_definition *const *index_policy_definitions(const struct index_policy *policy,
                                                               size_t *ret_count)
{
    *ret_count = policy->definition_count;
    return policy->definitions;
}

const struct index_definition *const *index_policy_besides(const struct index_policy *policy,
                                                           size_t *ret_count)
{
    *ret_count = policy->besides_count;
    return policy->definitions + policy->definition_count - policy->besides_count;
}

bool index_policy_places(const struct index_policy *policy)
{
    return policy->places;
}

const struct index_definition *index_policy_placed(const struct index_policy *policy,
                                                   struct slice entry)
{
    const struct index_definition *const *besides =
        policy->definitions + policy->definition_count - policy->besides_count;

    for (size_t i = 0; policy->places && i < policy->besides_count; i++)
        if (besides[i]->placed && slice_starts_with(entry, besides[i]->prefix))
            return besides[i];
    return NULL;
}

bool index_policy_is_none(const struct index_policy *policy)
{
    return policy->none;
}

/* The prefix says the paths in format 1, but only a number in format 2. */
bool index_composite_same(const struct index_composite *a, const struct index_composite *b)
{
    if (!slice_equal(a->prefix, b->prefix) || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->paths[i].count != b->paths[i].count)
            return false;
        for (size_t s = 0; s < a->paths[i].count; s++)
            if (!slice_equal(a->paths[i].segments[s].name, b->paths[i].segments[s].name))
                return false;
    }
    return true;
}

const struct index_composite *index_policy_composites(const struct index_policy *policy,
                                                      size_t *ret_count)
{
    *ret_count = policy->composite_count;
    return policy->composites;
}

/* --- Reading --------------------------------------------------------------------------------- */

/* A field that may be left out or null; of that type otherwise. */
static bool field(const struct parser *p, struct slice policy, struct slice name,
                  enum document_type type, const char *what, struct document_value *ret_value)
{
    *ret_value = document_undefined();
    if (!policy.data || !document_find(policy, name, ret_value))
        return true;
    if (ret_value->type == DOCUMENT_NULL)
        *ret_value = document_undefined();
    if (ret_value->type != type && ret_value->type != DOCUMENT_UNDEFINED)
        return error_set(p->err, ERROR_BAD_REQUEST, "\"%.*s\" is not %s", SLICE_ARG(name), what);
    return true;
}

static bool parse_mode(struct parser *p, struct slice policy)
{
    static const char *const modes[] = {"consistent", "lazy", "none"};
    struct document_value mode, automatic;

    if (!field(p, policy, SLICE("indexingMode"), DOCUMENT_STRING, "a string", &mode) ||
        !field(p, policy, SLICE("automatic"), DOCUMENT_BOOL, "a boolean", &automatic))
        return false;
    if (mode.type == DOCUMENT_UNDEFINED)
        mode = document_string(SLICE("consistent"));
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (slice_equal_nocase(mode.text, slice_of_text(modes[i])))
            p->mode = slice_of_text(modes[i]);
    }
    if (!p->mode.data)
        return error_set(p->err, ERROR_BAD_REQUEST, "\"indexingMode\" is \"%.*s\"",
                         (int)MIN(mode.text.len, (size_t)60), (const char *)mode.text.data);
    p->policy->none = slice_equal(p->mode, SLICE("none"));
    p->automatic = !p->policy->none && (automatic.type == DOCUMENT_UNDEFINED || automatic.boolean);
    return true;
}

static bool is_root(const struct row *row)
{
    return row->path.count == 0 && row->path.end == DOCUMENT_PATH_END_ALL;
}

static bool tuple_check(const struct parser *p, const struct document_path *path, bool include)
{
    const struct document_segment *last = path->count ? &path->segments[path->count - 1] : NULL;

    if (!last || last->kind != DOCUMENT_SEGMENT_TUPLE)
        return true;
    if (!include)
        return error_set(p->err, ERROR_BAD_REQUEST, "a tuple cannot be excluded");
    if (last->member_count > INDEX_COMPOSITE_PATHS_MAX)
        return error_set(p->err, ERROR_BAD_REQUEST, "a tuple has more than %d members",
                         INDEX_COMPOSITE_PATHS_MAX);
    return true;
}

static bool parse_row(struct parser *p, const struct document_value *value, bool include,
                      struct row *ret_row)
{
    struct document_value text;
    struct row row;

    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("path"), &text) ||
        text.type != DOCUMENT_STRING)
        return error_set(p->err, ERROR_BAD_REQUEST, "an %s path has no \"path\"",
                         include ? "included" : "excluded");
    if (!document_path_parse(text.text, DOCUMENT_PATH_INDEX, p->arena, &row.path, p->err))
        return false;
    if (row.path.end == DOCUMENT_PATH_END_NONE)
        return error_set(p->err, ERROR_BAD_REQUEST, "path '%.*s' does not end in /? or /*",
                         (int)MIN(text.text.len, (size_t)100), (const char *)text.text.data);
    if (!tuple_check(p, &row.path, include))
        return false;
    row.text = is_root(&row) ? SLICE("/*") : arena_copy(p->arena, text.text);
    *ret_row = row;
    return true;
}

/* Included ones are read first; the limit counts both. */
static bool parse_rows(struct parser *p, struct slice policy, struct slice name, bool include,
                       struct rows *ret_rows)
{
    struct rows rows = {0};
    struct document_value list;
    struct document_iter iter;
    size_t count;

    if (!field(p, policy, name, DOCUMENT_ARRAY, "an array", &list))
        return false;
    count = list.type == DOCUMENT_ARRAY ? document_count(list.document) : 0;
    if (p->included.count + count > INDEX_PATHS_MAX)
        return error_set(p->err, ERROR_BAD_REQUEST, "%zu paths are over the limit of %d",
                         p->included.count + count, INDEX_PATHS_MAX);
    rows.rows = ARENA_ARRAY(p->arena, struct row, count + 1); /* one may be appended */
    if (count)
        document_iter_init(&iter, list.document);
    for (; rows.count < count && document_iter_next(&iter); rows.count++) {
        if (!parse_row(p, &iter.value, include, &rows.rows[rows.count]))
            return false;
    }
    *ret_rows = rows;
    return true;
}

/* --- Completing ------------------------------------------------------------------------------ */

static bool rows_have_root(const struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (is_root(&rows->rows[i]))
            return true;
    }
    return false;
}

static bool rows_have_etag(const struct rows *rows, const struct document_names *names)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct document_path *path = &rows->rows[i].path;

        if (path->count == 1 && path->end == DOCUMENT_PATH_END_SCALAR &&
            slice_equal(path->segments[0].name, names->system[DOCUMENT_SYSTEM_ETAG]))
            return true;
    }
    return false;
}

/* The root path is included where no path is, and "_etag" excluded where nothing is said of it. */
static bool complete_paths(struct parser *p)
{
    const struct document_names *names = p->policy->tree->names;
    struct document_segment *etag = ARENA_NEW(p->arena, struct document_segment);

    *etag = (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY,
                                      .name = names->system[DOCUMENT_SYSTEM_ETAG]};
    if (p->policy->none)
        return true;
    if (!p->included.count && !rows_have_root(&p->excluded))
        p->included.rows[p->included.count++] =
            (struct row){.text = SLICE("/*"), .path = {.end = DOCUMENT_PATH_END_ALL}};
    if (!rows_have_root(&p->included) && !rows_have_root(&p->excluded))
        return error_set(p->err, ERROR_BAD_REQUEST,
                         "The special mandatory indexing path \"/\" is not provided in any of the "
                         "path type sets. Please provide this path in one of the sets.");
    if (!rows_have_etag(&p->included, names) && !rows_have_etag(&p->excluded, names))
        p->excluded.rows[p->excluded.count++] = (struct row){
            .text =
                arena_join(p->arena, (struct slice[]){SLICE("/\""), etag->name, SLICE("\"/?")}, 3),
            .path = {.segments = etag, .count = 1, .end = DOCUMENT_PATH_END_SCALAR}};
    return true;
}

static bool build_rows(struct parser *p, const struct rows *rows, enum index_rule rule)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (!index_tree_add(p->policy->tree, &rows->rows[i].path, rule, p->arena, p->err))
            return error_prefix(p->err, "path '%.*s'",
                                (int)MIN(rows->rows[i].text.len, (size_t)100),
                                (const char *)rows->rows[i].text.data);
    }
    return true;
}

static const struct index_definition *wildcard_of(const struct parser *p)
{
    struct index_definition *wildcard = ARENA_NEW(p->arena, struct index_definition);

    *wildcard = (struct index_definition){.format = INDEX_FORMAT_POLICY,
                                          .kind = &index_kind_wildcard,
                                          .tree = p->policy->tree,
                                          .order = DOCUMENT_ORDER_SQL,
                                          .expire_after_s = INDEX_EXPIRES_NEVER};
    return wildcard;
}

/* Which definitions plans may walk as composites. */
static void composites_find(struct index_policy *policy, struct arena *arena)
{
    struct index_composite *composites =
        ARENA_ARRAY(arena, struct index_composite, policy->definition_count);
    size_t count = 0;

    for (size_t i = 0; i < policy->definition_count; i++) {
        const struct index_definition *definition = policy->definitions[i];
        struct document_path *paths;
        bool *descending, hashed = false;

        if (definition->kind != &index_kind_ordered || definition->multikey || definition->hidden ||
            definition->sparse || definition->filter_count || definition->state != INDEX_READY)
            continue;
        paths = ARENA_ARRAY(arena, struct document_path, definition->part_count);
        descending = ARENA_ARRAY(arena, bool, definition->part_count);
        for (size_t at = 0; at < definition->part_count; at++) {
            paths[at] = definition->parts[at].path;
            descending[at] = definition->parts[at].descending;
            hashed = hashed || definition->parts[at].hashed;
        }
        if (!hashed)
            composites[count++] = (struct index_composite){.definition = definition,
                                                           .paths = paths,
                                                           .descending = descending,
                                                           .count = definition->part_count,
                                                           .prefix = definition->prefix};
    }
    policy->composites = composites;
    policy->composite_count = count;
}

/* With mode "none" what the paths say does not count. */
static bool build(struct parser *p)
{
    const struct index_definition **definitions;

    if (p->policy->none)
        p->composite_count = 0;
    else if (!build_rows(p, &p->included, INDEX_RULE_INCLUDE) ||
             !build_rows(p, &p->excluded, INDEX_RULE_EXCLUDE))
        return false;
    index_tree_finish(p->policy->tree, p->arena);
    definitions = ARENA_ARRAY(p->arena, const struct index_definition *, 1 + p->composite_count);
    definitions[0] = wildcard_of(p);
    if (p->composite_count)
        memcpy(definitions + 1, p->composite_definitions, p->composite_count * sizeof *definitions);
    p->policy->definitions = definitions;
    p->policy->definition_count = 1 + p->composite_count;
    p->policy->spatial = p->spatial_definitions;
    p->policy->spatial_count = p->spatial_count;
    p->policy->texts = p->text_definitions;
    p->policy->text_count = p->text_count;
    p->policy->vectors = p->vectors_listed;
    p->policy->vector_count = p->vector_count;
    composites_find(p->policy, p->arena);
    return true;
}

static bool parse_kinds(struct parser *p, struct slice policy)
{
    return field(p, policy, SLICE("compositeIndexes"), DOCUMENT_ARRAY, "an array",
                 &p->composites) &&
           field(p, policy, SLICE("spatialIndexes"), DOCUMENT_ARRAY, "an array", &p->spatial) &&
           field(p, policy, SLICE("vectorIndexes"), DOCUMENT_ARRAY, "an array", &p->vectors) &&
           field(p, policy, SLICE("fullTextIndexes"), DOCUMENT_ARRAY, "an array", &p->texts) &&
           index_composites_parse(&p->composites, p->arena, &p->composite_definitions,
                                  &p->composite_count, p->err) &&
           index_spatial_parse(&p->spatial, p->arena, &p->spatial_definitions, &p->spatial_count,
                               p->err) &&
           index_vectors_parse(&p->vectors, p->arena, &p->vectors_listed, &p->vector_count,
                               p->err) &&
           index_texts_parse(&p->texts, p->arena, &p->text_definitions, &p->text_count, p->err);
}

static bool parse(struct parser *p, struct slice policy)
{
    return parse_mode(p, policy) &&
           parse_rows(p, policy, SLICE("includedPaths"), true, &p->included) &&
           parse_rows(p, policy, SLICE("excludedPaths"), false, &p->excluded) &&
           parse_kinds(p, policy) && complete_paths(p) && build(p);
}

/* --- Showing --------------------------------------------------------------------------------- */

static void show_rows(const struct rows *rows, struct slice name, struct buf *buf)
{
    size_t list = document_append_array_begin(buf, name);
    char index[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < rows->count; i++) {
        size_t row = document_append_object_begin(buf, document_index_key((uint32_t)i, index));

        document_append_string(buf, SLICE("path"), rows->rows[i].text);
        document_end(buf, row);
    }
    document_end(buf, list);
}

static void show_given(const struct document_value *value, struct slice name, struct buf *buf)
{
    if (value->type != DOCUMENT_UNDEFINED)
        document_append(buf, name, value);
}

static void show(const struct parser *p, struct buf *buf)
{
    size_t policy = document_begin(buf);

    document_append_string(buf, SLICE("indexingMode"), p->mode);
    document_append_bool(buf, SLICE("automatic"), p->automatic);
    show_rows(&p->included, SLICE("includedPaths"), buf);
    show_rows(&p->excluded, SLICE("excludedPaths"), buf);
    if (p->composites.type != DOCUMENT_UNDEFINED)
        index_composites_show(&p->composites, buf);
    show_given(&p->spatial, SLICE("spatialIndexes"), buf);
    show_given(&p->vectors, SLICE("vectorIndexes"), buf);
    show_given(&p->texts, SLICE("fullTextIndexes"), buf);
    document_end(buf, policy);
}
