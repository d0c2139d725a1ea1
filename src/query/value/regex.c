/* The cache is a small array searched by hash; when it is full the entry unused for longest goes.
 *
 * Patterns are compiled for machine code where PCRE2 can. Text may hold single surrogates, which
 * PCRE2 calls invalid UTF-8: it is told to step around them instead of refusing the text. */
#include "query/value/regex.h"

#include <xxhash.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
    CACHE_ENTRIES = 32,
    PATTERN_BYTES_MAX = 16 * 1024,
    MATCH_STEPS_MAX = 100000,
    MATCH_HEAP_KB = 8 * 1024,
    JIT_STACK_START = 32 * 1024,
    JIT_STACK_MAX = 512 * 1024,
    COMPILE_WORK = 1000,      /* and one for each byte: compiling takes tens of microseconds */
    STEPS_PER_BYTE_SHIFT = 2, /* work counted for a match: a fourth of the bytes looked at */
};

struct query_regex {
    uint64_t hash;
    uint64_t used; /* tick of the last use */
    struct slice pattern;
    uint32_t options;
    pcre2_code *code; /* NULL: the pattern is none, and need not be compiled again */
    pcre2_match_data *match;
};

struct query_regex_cache {
    struct query_regex entries[CACHE_ENTRIES];
    size_t count;
    uint64_t tick;
    pcre2_compile_context *compile;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
};

static void regex_done(struct query_regex *regex)
{
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    memory_free((void *)regex->pattern.data);
}

void query_regex_cache_free(struct query_regex_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->count; i++)
        regex_done(&cache->entries[i]);
    pcre2_jit_stack_free(cache->stack);
    pcre2_match_context_free(cache->limits);
    pcre2_compile_context_free(cache->compile);
    memory_free(cache);
}

/* PCRE2 gives NULL only when memory is exhausted, which is no state we go on from. */
static void *must(void *made)
{
    if (!made)
        memory_exhausted(0);
    return made;
}

static struct query_regex_cache *cache_of(struct query_context *context)
{
    struct query_regex_cache *cache = context->regexes;

    if (cache)
        return cache;
    cache = MEMORY_NEW(struct query_regex_cache);
    cache->compile = must(pcre2_compile_context_create(NULL));
    cache->limits = must(pcre2_match_context_create(NULL));
    pcre2_set_max_pattern_length(cache->compile, PATTERN_BYTES_MAX);
    pcre2_set_match_limit(cache->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(cache->limits, MATCH_STEPS_MAX);
    pcre2_set_heap_limit(cache->limits, MATCH_HEAP_KB);
    cache->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
    if (cache->stack)
        pcre2_jit_stack_assign(cache->limits, NULL, cache->stack);
    context->regexes = cache;
    return cache;
}

static bool options_of(struct slice modifiers, uint32_t *ret_options)
{
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;

    for (size_t i = 0; i < modifiers.len; i++) {
        switch (modifiers.data[i]) {
        case 'm':
            options |= PCRE2_MULTILINE;
            break;
        case 's':
            options |= PCRE2_DOTALL;
            break;
        case 'i':
            options |= PCRE2_CASELESS;
            break;
        case 'x':
            options |= PCRE2_EXTENDED;
            break;
        default:
            return false;
        }
    }
    *ret_options = options;
    return true;
}

/* A free entry, or that of the one unused for longest. */
static struct query_regex *entry_take(struct query_regex_cache *cache)
{
    struct query_regex *oldest = &cache->entries[0];

    if (cache->count < CACHE_ENTRIES)
        return &cache->entries[cache->count++];
    for (size_t i = 1; i < CACHE_ENTRIES; i++) {
        if (cache->entries[i].used < oldest->used)
            oldest = &cache->entries[i];
    }
    regex_done(oldest);
    return oldest;
}

static struct query_regex *regex_compile(struct query_regex_cache *cache, struct slice pattern,
                                         uint32_t options, uint64_t hash)
{
    struct query_regex *regex = entry_take(cache);
    int code;
    PCRE2_SIZE at;

    *regex = (struct query_regex){.hash = hash, .options = options};
    regex->pattern = slice_of(slice_to_text(pattern), pattern.len);
    regex->code =
        pcre2_compile(regex->pattern.data, pattern.len, options, &code, &at, cache->compile);
    if (regex->code) {
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without it, it is only slower */
        regex->match = must(pcre2_match_data_create_from_pattern(regex->code, NULL));
    }
    return regex;
}

struct query_regex *query_regex_get(struct query_context *context, struct slice pattern,
                                    struct slice modifiers)
{
    struct query_regex_cache *cache = cache_of(context);
    struct query_regex *regex = NULL;
    uint32_t options;
    uint64_t hash;

    if (pattern.len > PATTERN_BYTES_MAX || !options_of(modifiers, &options))
        return NULL;
    hash = XXH3_64bits_withSeed(pattern.len ? pattern.data : (const uint8_t *)"", pattern.len,
                                options);
    for (size_t i = 0; i < cache->count && !regex; i++) {
        if (cache->entries[i].hash == hash && cache->entries[i].options == options &&
            slice_equal(cache->entries[i].pattern, pattern))
            regex = &cache->entries[i];
    }
    if (!regex) {
        regex = regex_compile(cache, pattern, options, hash);
        context->work += COMPILE_WORK + pattern.len; /* looked at before the match */
    }
    regex->used = ++cache->tick;
    return regex->code ? regex : NULL;
}

bool query_regex_find(struct query_context *context, struct query_regex *regex, struct slice text,
                      size_t from, bool *ret_found, struct query_regex_match *ret_match,
                      struct error *err)
{
    int result;

    if (!query_work(context, (text.len - from) >> STEPS_PER_BYTE_SHIFT, err))
        return false;
    result = pcre2_match(regex->code, text.data ? text.data : (const uint8_t *)"", text.len, from,
                         0, regex->match, context->regexes->limits);
    if (result == PCRE2_ERROR_NOMATCH) {
        *ret_found = false;
        return true;
    }
    if (result < 0) {
        context->work += MATCH_STEPS_MAX;
        return error_set(err, ERROR_QUERY_LIMIT,
                         "the regular expression \"%.*s\" takes more steps than a match may use",
                         (int)MIN(regex->pattern.len, (size_t)100),
                         (const char *)regex->pattern.data);
    }
    *ret_found = true;
    ret_match->group_count = pcre2_get_ovector_count(regex->match);
    ret_match->places = pcre2_get_ovector_pointer(regex->match);
    return true;
}
