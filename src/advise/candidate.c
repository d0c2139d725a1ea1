/* Every scalar property that could name something is a candidate alone, and measurements, times and
 * texts for people where requests name their values. Combinations grow fast, so that only promising
 * ones are made: a hierarchy below a property that requests name, a concatenation of properties
 * named together, a suffix behind a property that has few values at a time. */
#include "advise/candidate.h"

#include "advise/nature.h"

#include <stdlib.h>
#include <xxhash.h>

enum { SINGLES_MAX = 40, HEADS_MAX = 8, TAILS_MAX = 8 };

static const uint32_t suffix_counts[] = {20, 100, 400};

const char *advise_key_kind_name(enum advise_key_kind kind)
{
    static const char *const names[ADVISE_KEY_KINDS] = {
        "property", "hierarchical", "concatenation", "random suffix", "computed suffix", "one key"};

    return names[kind];
}

static struct slice path_text(const struct advise_workload *workload, size_t path)
{
    size_t count;

    return advise_workload_paths(workload, &count)[path].text;
}

void advise_key_describe(const struct advise_workload *workload, const struct advise_key *key,
                         struct buf *out)
{
    const char *between = key->kind == ADVISE_HIERARCHICAL ? " > " : " + ";

    for (size_t i = 0; i < key->path_count; i++) {
        if (i)
            buf_append_text(out, between);
        buf_append_slice(out, path_text(workload, key->paths[i]));
    }
    if (key->kind == ADVISE_ONE_KEY)
        buf_append_text(out, "one key for all items");
    if (key->kind == ADVISE_RANDOM_SUFFIX)
        buf_printf(out, " + random 1..%u", key->suffixes);
    if (key->kind == ADVISE_COMPUTED_SUFFIX) {
        buf_append_text(out, " + hash of ");
        buf_append_slice(out, path_text(workload, key->hashed));
        buf_printf(out, " 1..%u", key->suffixes);
    }
}

static void json_path(struct slice path, struct buf *out)
{
    buf_append_byte(out, '"');
    for (size_t i = 0; i < path.len; i++) {
        if (path.data[i] == '"' || path.data[i] == '\\')
            buf_append_byte(out, '\\');
        buf_append_byte(out, path.data[i]);
    }
    buf_append_byte(out, '"');
}

static void json_paths(const struct advise_workload *workload, const struct advise_key *key,
                       struct buf *out)
{
    buf_append_byte(out, '[');
    for (size_t i = 0; i < key->path_count; i++) {
        if (i)
            buf_append_byte(out, ',');
        json_path(path_text(workload, key->paths[i]), out);
    }
    buf_append_byte(out, ']');
}

/* As docs/synthetic-keys.md has it. */
static void synthetic_define(const struct advise_workload *workload, const struct advise_key *key,
                             struct buf *out)
{
    buf_append_text(out, "{\"target\":\"/partitionKey\",");
    if (key->kind == ADVISE_CONCATENATION) {
        buf_append_text(out, "\"kind\":\"concatenation\",\"sources\":");
        json_paths(workload, key, out);
    } else {
        buf_append_text(out, key->kind == ADVISE_RANDOM_SUFFIX ? "\"kind\":\"randomSuffix\""
                                                               : "\"kind\":\"computedSuffix\"");
        buf_append_text(out, ",\"base\":");
        json_path(path_text(workload, key->paths[0]), out);
        if (key->kind == ADVISE_COMPUTED_SUFFIX) {
            buf_append_text(out, ",\"hashed\":");
            json_path(path_text(workload, key->hashed), out);
        }
        buf_printf(out, ",\"suffixes\":%u", key->suffixes);
    }
    buf_append_byte(out, '}');
}

void advise_key_define(const struct advise_workload *workload, const struct advise_key *key,
                       struct buf *out)
{
    buf_append_text(out, "\"partitionKey\":{\"paths\":");
    if (key->kind == ADVISE_PROPERTY || key->kind == ADVISE_HIERARCHICAL) {
        json_paths(workload, key, out);
        buf_append_text(out, key->kind == ADVISE_HIERARCHICAL
                                 ? ",\"kind\":\"MultiHash\",\"version\":2}"
                                 : ",\"kind\":\"Hash\",\"version\":2}");
        return;
    }
    buf_append_text(out, "[\"/partitionKey\"],\"kind\":\"Hash\",\"version\":2}");
    if (key->kind == ADVISE_ONE_KEY)
        return;
    buf_append_text(out, ",\"orrery\":{\"synthetic\":");
    synthetic_define(workload, key, out);
    buf_append_byte(out, '}');
}

/* Within quotes if a shell would see anything in it. */
static void word_append(struct slice word, struct buf *out)
{
    bool plain = word.len > 0;

    for (size_t i = 0; i < word.len; i++) {
        uint8_t c = word.data[i];

        plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '/' || c == '.' || c == ',' || c == '-' || c >= 0x80;
    }
    buf_append_byte(out, ' ');
    if (!plain)
        buf_append_byte(out, '\'');
    for (size_t i = 0; i < word.len; i++)
        if (word.data[i] == '\'')
            buf_append_text(out, "'\\''");
        else
            buf_append_byte(out, word.data[i]);
    if (!plain)
        buf_append_byte(out, '\'');
}

/* False: a path has a comma in it, which the command takes for the end of the path. */
static bool paths_join(const struct advise_workload *workload, const struct advise_key *key,
                       struct buf *out)
{
    for (size_t i = 0; i < key->path_count; i++) {
        struct slice path = path_text(workload, key->paths[i]);

        if (memchr(path.data, ',', path.len))
            return false;
        if (i)
            buf_append_byte(out, ',');
        buf_append_slice(out, path);
    }
    return true;
}

struct slice advise_key_command(const struct advise_workload *workload,
                                const struct advise_key *key, const struct advise_target *target,
                                struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf part;
    bool synthetic = key->kind != ADVISE_PROPERTY && key->kind != ADVISE_HIERARCHICAL;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&part, BUF_DEFAULT_MAX);
    if (target->fixed || key->kind == ADVISE_ONE_KEY) /* clients must write that property first */
        return SLICE_NONE;
    buf_append_text(&out, "orrery rekey");
    word_append(target->database.data ? target->database : SLICE("DATABASE"), &out);
    word_append(target->container.data ? target->container : SLICE("CONTAINER"), &out);
    buf_append_text(&out, " --key");
    if (synthetic)
        buf_append_text(&part, "/partitionKey");
    else if (!paths_join(workload, key, &part))
        return SLICE_NONE;
    word_append(buf_slice(&part), &out);
    if (synthetic) {
        buf_append_text(&out, " --synthetic");
        buf_clear(&part);
        synthetic_define(workload, key, &part);
        word_append(buf_slice(&part), &out);
    }
    return arena_copy(arena, buf_slice(&out));
}

uint64_t advise_key_of(const struct advise_key *key, const advise_value *values, uint64_t chance)
{
    uint64_t parts[ADVISE_KEY_PATHS_MAX + 1];
    size_t count = 0;

    for (size_t i = 0; i < key->path_count; i++)
        parts[count++] = values[key->paths[i]];
    if (key->kind == ADVISE_RANDOM_SUFFIX)
        parts[count++] = chance % key->suffixes;
    if (key->kind == ADVISE_COMPUTED_SUFFIX)
        parts[count++] =
            XXH3_64bits(&values[key->hashed], sizeof values[key->hashed]) % key->suffixes;
    return XXH3_64bits(parts, count * sizeof *parts);
}

enum advise_known advise_key_known(const struct advise_key *key, uint64_t given)
{
    size_t known = 0;

    while (known < key->path_count && given >> key->paths[known] & 1)
        known++;
    if (known < key->path_count)
        return known && key->kind == ADVISE_HIERARCHICAL ? ADVISE_KNOWN_PREFIX
                                                         : ADVISE_KNOWN_NOTHING;
    if (key->kind == ADVISE_RANDOM_SUFFIX ||
        (key->kind == ADVISE_COMPUTED_SUFFIX && !(given >> key->hashed & 1)))
        return ADVISE_KNOWN_BASE;
    return ADVISE_KNOWN_WHOLE;
}

/* --- Which are worth it ---------------------------------------------------------------------- */

struct summary {
    uint8_t path;
    bool eligible;
    uint64_t distinct; /* in the sample */
    uint64_t named;    /* operations that name its value besides writes */
    uint64_t queried;  /* of these, queries */
};

static uint64_t distinct_count(const struct advise_workload *workload, size_t path,
                               uint8_t *seen /* a byte for each value */)
{
    size_t count;
    const struct advise_item *items = advise_workload_items(workload, &count);
    uint64_t distinct = 0;

    memset(seen, 0, advise_workload_value_count(workload) + 1);
    for (size_t i = 0; i < count; i++) {
        advise_value value = items[i].values[path];

        distinct += value && !seen[value];
        seen[value] = 1;
    }
    return distinct;
}

/* Every item has one and every client knows it, even if the record does not show it. */
static bool is_id(const struct advise_workload *workload, size_t path)
{
    return slice_equal(path_text(workload, path), SLICE("/id"));
}

/* Do most of its values look as if they named something? */
static bool could_name(const struct advise_workload *workload, size_t path)
{
    size_t count, of[ADVISE_NATURES] = {0}, all = 0, names;
    const struct advise_item *items = advise_workload_items(workload, &count);

    for (size_t i = 0; i < count; i++)
        if (items[i].values[path]) {
            of[advise_nature_of(advise_workload_value(workload, items[i].values[path]))]++;
            all++;
        }
    names = of[ADVISE_NATURE_NAME];
    if (advise_nature_path_numbers(path_text(workload, path)))
        names += of[ADVISE_NATURE_INTEGER];
    return names * 2 > all || is_id(workload, path);
}

static void summaries_make(const struct advise_workload *workload, struct summary *summaries)
{
    size_t path_count, item_count, operation_count;
    const struct advise_path *paths = advise_workload_paths(workload, &path_count);
    const struct advise_operation *operations =
        advise_workload_operations(workload, &operation_count);
    CLEANUP(memory_free) uint8_t *seen = memory_alloc(advise_workload_value_count(workload) + 1);

    (void)advise_workload_items(workload, &item_count);
    for (size_t i = 0; i < path_count; i++) {
        summaries[i] = (struct summary){.path = (uint8_t)i};
        summaries[i].distinct = distinct_count(workload, i, seen);
        summaries[i].eligible =
            !paths[i].nested && summaries[i].distinct > 1 && paths[i].present * 2 >= item_count;
    }
    for (size_t o = 0; o < operation_count; o++) {
        const struct advise_operation *operation = &operations[o];

        if (operation->kind == ADVISE_CREATE || operation->kind == ADVISE_UPSERT ||
            operation->kind == ADVISE_REPLACE)
            continue;
        for (uint64_t bits = operation->given; bits; bits &= bits - 1) {
            summaries[__builtin_ctzll(bits)].named++;
            summaries[__builtin_ctzll(bits)].queried += operation->kind == ADVISE_QUERY;
        }
    }
    for (size_t i = 0; i < path_count; i++)
        summaries[i].eligible &= summaries[i].named || could_name(workload, i);
}

static int by_named(const void *a, const void *b)
{
    const struct summary *x = a, *y = b;

    if (x->named != y->named)
        return x->named < y->named ? 1 : -1;
    if (x->distinct != y->distinct)
        return x->distinct < y->distinct ? 1 : -1;
    return (int)x->path - (int)y->path;
}

struct list {
    struct advise_key *keys;
    size_t count;
};

static void list_add(struct list *list, struct advise_key key)
{
    if (list->count < ADVISE_CANDIDATES_MAX - (key.kind != ADVISE_ONE_KEY))
        list->keys[list->count++] = key;
}

/* Something below a head, so that a large value of the head can be divided. */
static void pairs_add(struct list *list, const struct summary *head, const struct summary *tail)
{
    struct advise_key key = {
        .path_count = 2, .paths = {head->path, tail->path}, .unnamed = !tail->named};

    key.kind = ADVISE_HIERARCHICAL;
    list_add(list, key);
    if (tail->named) { /* who does not know it could never ask for one key */
        key.kind = ADVISE_CONCATENATION;
        list_add(list, key);
        key.kind = ADVISE_COMPUTED_SUFFIX;
        key.path_count = 1;
        key.hashed = tail->path;
        for (size_t i = 0; i < ARRAY_LEN(suffix_counts); i++) {
            key.suffixes = suffix_counts[i];
            list_add(list, key);
        }
    }
}

size_t advise_candidates(const struct advise_workload *workload, struct arena *arena,
                         struct advise_key **ret_keys)
{
    struct summary summaries[ADVISE_PATHS_MAX];
    struct list list = {.keys = ARENA_ARRAY(arena, struct advise_key, ADVISE_CANDIDATES_MAX)};
    size_t path_count, eligible = 0;

    (void)advise_workload_paths(workload, &path_count);
    summaries_make(workload, summaries);
    for (size_t i = 0; i < path_count; i++)
        if (summaries[i].eligible)
            summaries[eligible++] = summaries[i];
    qsort(summaries, eligible, sizeof *summaries, by_named);

    for (size_t i = 0; i < MIN(eligible, (size_t)SINGLES_MAX); i++)
        list_add(&list, (struct advise_key){.kind = ADVISE_PROPERTY,
                                            .path_count = 1,
                                            .paths = {summaries[i].path},
                                            .unnamed = !summaries[i].named &&
                                                       !is_id(workload, summaries[i].path)});
    for (size_t i = 0; i < MIN(eligible, (size_t)HEADS_MAX); i++)
        for (size_t n = 0; n < ARRAY_LEN(suffix_counts); n++)
            list_add(&list, (struct advise_key){.kind = ADVISE_RANDOM_SUFFIX,
                                                .path_count = 1,
                                                .paths = {summaries[i].path},
                                                .suffixes = suffix_counts[n]});
    for (size_t i = 0; i < MIN(eligible, (size_t)HEADS_MAX) && summaries[i].named; i++)
        for (size_t j = 0; j < MIN(eligible, (size_t)TAILS_MAX); j++)
            if (i != j)
                pairs_add(&list, &summaries[i], &summaries[j]);
    list_add(&list, (struct advise_key){.kind = ADVISE_ONE_KEY});
    *ret_keys = list.keys;
    return list.count;
}

bool advise_key_parse(const struct advise_workload *workload, struct slice text,
                      struct advise_key *ret_key, struct error *err)
{
    struct advise_key key = {0};
    struct slice rest = text, part;

    while (rest.len) {
        int at;

        if (!slice_split(rest, ',', &part, &rest)) {
            part = rest;
            rest = SLICE_NONE;
        }
        at = advise_workload_path(workload, slice_trim(part));
        if (at < 0)
            return error_set(err, ERROR_BAD_REQUEST, "no document or operation has \"%.*s\"",
                             (int)MIN(part.len, (size_t)100), (const char *)part.data);
        if (key.path_count == ADVISE_KEY_PATHS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a key has at most %d paths",
                             ADVISE_KEY_PATHS_MAX);
        key.paths[key.path_count++] = (uint8_t)at;
    }
    if (!key.path_count)
        return error_set(err, ERROR_BAD_REQUEST, "the key has no path");
    key.kind = key.path_count > 1 ? ADVISE_HIERARCHICAL : ADVISE_PROPERTY;
    *ret_key = key;
    return true;
}
