#include "cluster/placement.h"

#include "document/bson.h"

/* --- Reading --------------------------------------------------------------------------------- */

struct rule_reading {
    struct placement_rule *rule;
    size_t number; /* from 1, for messages */
    size_t path_count;
};

static bool wrong(const struct rule_reading *reading, const char *what, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "rule %zu of orrery.placement: %s", reading->number,
                     what);
}

static bool text_read(const struct rule_reading *reading, const struct document_value *value,
                      const char *what, struct slice *ret_text, struct error *err)
{
    if (value->type != DOCUMENT_STRING || !value->text.len || value->text.len >= NODE_WORD_SIZE)
        return wrong(reading, what, err);
    *ret_text = value->text;
    return true;
}

static bool words_read(const struct rule_reading *reading, const struct document_value *value,
                       const char *what, struct placement_words *words, struct error *err)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return wrong(reading, what, err);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (words->count == PLACEMENT_WORDS_MAX)
            return wrong(reading, "more than 16 tags or nodes", err);
        if (!text_read(reading, &iter.value, what, &words->list[words->count], err))
            return false;
        words->count++;
    }
    return words->count || wrong(reading, what, err);
}

static bool flag_read(const struct rule_reading *reading, const struct document_value *value,
                      const char *what, bool *ret_flag, struct error *err)
{
    if (value->type != DOCUMENT_BOOL)
        return wrong(reading, what, err);
    *ret_flag = value->boolean;
    return true;
}

/* A rule names its key once, as values or as patterns. */
static bool key_read(const struct rule_reading *reading, const struct document_value *value,
                     bool like, struct error *err)
{
    struct placement_rule *rule = reading->rule;
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY || rule->key_count)
        return wrong(reading, "it has one of key and keyLike, an array", err);
    rule->like = like;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        const struct document_value *part = &iter.value;

        if (rule->key_count == reading->path_count)
            return wrong(reading, "its key has more components than the partition key", err);
        if (like && (part->type != DOCUMENT_STRING || part->text.len > PLACEMENT_PATTERN_MAX))
            return wrong(reading, "keyLike is of texts of at most 256 bytes", err);
        if (part->type == DOCUMENT_OBJECT || part->type == DOCUMENT_ARRAY)
            return wrong(reading, "key is of texts, numbers, true, false and null", err);
        rule->key[rule->key_count++] = *part;
    }
    return rule->key_count || wrong(reading, "its key has no components", err);
}

static bool member_read(const struct rule_reading *reading, struct slice name,
                        const struct document_value *value, struct error *err)
{
    struct placement_rule *rule = reading->rule;

    if (slice_equal(name, SLICE("key")))
        return key_read(reading, value, false, err);
    if (slice_equal(name, SLICE("keyLike")))
        return key_read(reading, value, true, err);
    if (slice_equal(name, SLICE("region")))
        return text_read(reading, value, "region is a text", &rule->region, err);
    if (slice_equal(name, SLICE("zone")))
        return text_read(reading, value, "zone is a text", &rule->zone, err);
    if (slice_equal(name, SLICE("tags")))
        return words_read(reading, value, "tags is an array of texts", &rule->tags, err);
    if (slice_equal(name, SLICE("notTags")))
        return words_read(reading, value, "notTags is an array of texts", &rule->not_tags, err);
    if (slice_equal(name, SLICE("nodes")))
        return words_read(reading, value, "nodes is an array of names", &rule->nodes, err);
    if (slice_equal(name, SLICE("resident")))
        return flag_read(reading, value, "resident is true or false", &rule->resident, err);
    if (!slice_equal(name, SLICE("isolate")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "rule %zu of orrery.placement has no member \"%.*s\"", reading->number,
                         (int)MIN(name.len, (size_t)60), (const char *)name.data);
    return flag_read(reading, value, "isolate is true or false", &rule->isolate, err);
}

static bool rule_read(const struct rule_reading *reading, const struct document_value *value,
                      struct error *err)
{
    const struct placement_rule *rule = reading->rule;
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return wrong(reading, "it is an object", err);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!member_read(reading, iter.key, &iter.value, err))
            return false;
    if (!rule->region.len && !rule->zone.len && !rule->tags.count && !rule->not_tags.count &&
        !rule->nodes.count && !rule->isolate)
        return wrong(reading, "it says nothing of nodes", err);
    if (rule->resident && !rule->region.len && !rule->zone.len && !rule->tags.count &&
        !rule->not_tags.count && !rule->nodes.count)
        return wrong(reading, "resident needs a word about nodes", err);
    return !rule->isolate || rule->key_count || wrong(reading, "isolate needs a key", err);
}

bool placement_parse(struct slice array, size_t path_count, struct arena *arena,
                     struct placement *ret_placement, struct error *err)
{
    size_t count = document_count(array), number = 0;
    struct placement placement = {.rules = ARENA_ARRAY(arena, struct placement_rule, count + 1),
                                  .count = count};
    struct document_iter iter;

    if (count > PLACEMENT_RULES_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.placement has more than %d rules",
                         PLACEMENT_RULES_MAX);
    memset(placement.rules, 0, (count + 1) * sizeof *placement.rules);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct rule_reading reading = {&placement.rules[number], number + 1, path_count};

        if (!rule_read(&reading, &iter.value, err))
            return false;
        placement.resident |= reading.rule->resident;
        if (!reading.rule->key_count && number + 1 < count)
            return wrong(&reading, "it speaks of all keys, so no rule may follow it", err);
        number++;
    }
    *ret_placement = placement;
    return true;
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static bool is_word(struct slice wanted, const char *word)
{
    return !wanted.len || slice_equal(wanted, slice_of_text(word));
}

bool placement_allows(const struct placement_rule *rule, const struct node_info *node)
{
    bool named = !rule || !rule->nodes.count;

    if (!rule)
        return true;
    if (!is_word(rule->region, node->region) || !is_word(rule->zone, node->zone))
        return false;
    for (size_t i = 0; i < rule->tags.count; i++)
        if (!node_has_tag(node, rule->tags.list[i]))
            return false;
    for (size_t i = 0; i < rule->not_tags.count; i++)
        if (node_has_tag(node, rule->not_tags.list[i]))
            return false;
    for (size_t i = 0; i < rule->nodes.count; i++)
        named = named || slice_equal(rule->nodes.list[i], slice_of_text(node->name));
    return named;
}

uint64_t placement_nodes(const struct placement_rule *rule, const struct node_table *table)
{
    uint64_t nodes = 0;

    for (size_t i = 0; i < table->count; i++)
        if (placement_allows(rule, &table->list[i]))
            nodes |= 1ULL << table->list[i].number;
    return nodes;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* Without recursion: on a mismatch the last star takes one character more. */
bool placement_like(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, resume = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.len && (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.data[p] == '*')
        p++;
    return p == pattern.len;
}

static bool rule_matches(const struct placement_rule *rule, const struct partition_key *key)
{
    struct partition_key prefix = {.count = (uint8_t)rule->key_count};

    if (rule->key_count > key->count)
        return false;
    if (!rule->like) {
        memcpy(prefix.components, rule->key, rule->key_count * sizeof *rule->key);
        return partition_key_starts_with(key, &prefix);
    }
    for (size_t i = 0; i < rule->key_count; i++)
        if (key->components[i].type != DOCUMENT_STRING ||
            !placement_like(rule->key[i].text, key->components[i].text))
            return false;
    return true;
}

const struct placement_rule *placement_match(const struct placement *placement,
                                             const struct partition_key *key)
{
    for (size_t i = 0; i < placement->count; i++)
        if (rule_matches(&placement->rules[i], key))
            return &placement->rules[i];
    return NULL;
}

const struct placement_rule *placement_default(const struct placement *placement)
{
    const struct placement_rule *last =
        placement->count ? &placement->rules[placement->count - 1] : NULL;

    return last && !last->key_count ? last : NULL;
}

/* --- Spans ----------------------------------------------------------------------------------- */

static bool holds(const struct placement_range *claim, const struct partition_span *span)
{
    return slice_compare(claim->range.min, span->min) <= 0 &&
           slice_compare(span->max, claim->range.max) <= 0;
}

static bool overlaps(const struct placement_range *claim, const struct partition_span *span)
{
    return slice_compare(claim->range.min, span->max) < 0 &&
           slice_compare(span->min, claim->range.max) < 0;
}

/* A key that may stay where the rest of its span is needs no span of its own. */
static bool must_leave(const struct placement_range *claim, uint64_t allowed,
                       const struct node_table *table, uint32_t node)
{
    uint64_t both = allowed & placement_nodes(claim->rule, table);

    return claim->rule->isolate || !(both >> node & 1);
}

struct placement_verdict placement_judge(const struct placement *placement,
                                         const struct placement_range *claims, size_t claim_count,
                                         const struct node_table *table,
                                         const struct partition_span *span)
{
    struct placement_verdict verdict = {.rule = placement_default(placement)};
    const struct placement_range *owner = NULL;

    for (size_t i = 0; i < claim_count && !owner; i++)
        if (holds(&claims[i], span))
            owner = &claims[i];
    if (owner)
        verdict.rule = owner->rule;
    verdict.allowed = placement_nodes(verdict.rule, table);
    for (size_t i = 0; i < claim_count; i++) {
        const struct placement_range *claim = &claims[i];

        if (claim == owner || holds(claim, span) || !overlaps(claim, span))
            continue;
        if (owner && claim->rule > owner->rule) /* a later rule has no say here */
            continue;
        if (must_leave(claim, verdict.allowed, table, span->node)) {
            verdict.isolate = verdict.isolate ? verdict.isolate : claim;
            continue; /* what is left of the span is not bound by it */
        }
        verdict.allowed &= placement_nodes(claim->rule, table);
    }
    return verdict;
}

const struct placement_rule *placement_breach(const struct placement *placement,
                                              const struct node_table *table,
                                              const struct partition_span *span)
{
    const struct placement_rule *rule = placement_default(placement);

    if (!placement->resident)
        return NULL;
    for (size_t i = 0; i < placement->range_count; i++) {
        const struct placement_range *claim = &placement->ranges[i];

        if (holds(claim, span)) {
            rule = claim->rule; /* rules behind it have no say here */
            break;
        }
        if (claim->rule->resident && overlaps(claim, span) &&
            !(placement_nodes(claim->rule, table) >> span->node & 1))
            return claim->rule;
    }
    return rule && rule->resident && !(placement_nodes(rule, table) >> span->node & 1) ? rule
                                                                                       : NULL;
}
