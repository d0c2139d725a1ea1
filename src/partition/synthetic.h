/* Synthetic keys: one component of a container's partition key is made by the server, out of other
 * properties of the item.
 *
 *     concatenation    deviceId "abc-123" and date 2018 give "abc-123-2018"; so that no other
 *                      values give the same, what is in the separator, and the percent sign, are
 *                      escaped in every source but the first: "abc" and "123-2018" give
 *                      "abc-123%2D2018"
 *     random suffix    date "2018-08-09" gives one of "2018-08-09.1" to "2018-08-09.400", drawn
 * when the item is created: writes of one day are spread computed suffix  the same, but the number
 * follows from a property that readers know, so that they can compute the one key: 1 +
 * murmur_32(its text, seed 0) mod 400
 *
 * A source is made text so: a string as it is; a number in decimal, a whole one without point or
 * exponent below 1e21, another with the fewest digits that give it back; true, false and null by
 * their names. 1 and 1.0 are one number and one text; so are 0 and -0. Other values are refused.
 *
 * All of it is pure: the number of a random suffix is handed in. The layout of a key follows from
 * the definition alone, so clients can compute it (include/orrery/key.h). */
#pragma once

#include "partition/key.h"

enum {
    PARTITION_SOURCES_MAX = 8,
    PARTITION_SUFFIXES_MIN = 2,
    PARTITION_SUFFIXES_MAX = 1000, /* a query of the base alone looks at each of them */
    PARTITION_SEPARATOR_MAX = 16,  /* bytes */
    /* The longest way to write a key: other components, and all sources of the one that is made. */
    PARTITION_COMPONENTS_MAX = PARTITION_PATHS_MAX - 1 + PARTITION_SOURCES_MAX,
};

enum partition_synthetic_kind {
    PARTITION_CONCATENATION,   /* sources: two or more */
    PARTITION_RANDOM_SUFFIX,   /* sources: the base */
    PARTITION_COMPUTED_SUFFIX, /* sources: the base, and what is hashed */
};

/* What becomes of an item that lacks a source. */
enum partition_missing {
    PARTITION_MISSING_REFUSE,
    PARTITION_MISSING_UNDEFINED, /* its key is undefined */
    PARTITION_MISSING_EMPTY,     /* the source counts as the empty text */
};

struct partition_synthetic {
    enum partition_synthetic_kind kind;
    enum partition_missing missing;
    uint8_t target; /* which path of the definition is made */
    uint8_t source_count;
    struct document_path sources[PARTITION_SOURCES_MAX];
    struct slice texts[PARTITION_SOURCES_MAX]; /* the sources as they were given */
    struct slice separator;
    bool escapes;      /* a concatenation of these values is one of no others */
    uint32_t suffixes; /* 0: it is a concatenation */
};

/* --- Definitions ----------------------------------------------------------------------------- */

/* From the BSON of {"kind": "concatenation", "target": "/partitionKey", "sources": ["/deviceId",
 * "/date"], "separator": "-", "escape": true, "missing": "refuse"}; the others have "base",
 * "suffixes" and, the computed one, "hashed" instead of "sources". escapes: what holds where
 * "escape" is not said. Lives in the arena. Names with a meaning in the container are not looked
 * for (definition/names.h). ERROR_BAD_REQUEST says what cannot be so. */
NODISCARD bool partition_synthetic_read(struct slice object,
                                        const struct partition_definition *definition, bool escapes,
                                        struct arena *arena,
                                        const struct partition_synthetic **ret_synthetic,
                                        struct error *err);

/* Appends that object, complete, as the element key of the BSON document being written. */
void partition_synthetic_append(const struct partition_synthetic *synthetic,
                                const struct partition_definition *definition, struct slice key,
                                struct buf *buf);

/* The object as it is meant where a key is defined today: a concatenation that does not say
 * "escape" escapes. Those from before escaping did not say it either and do not. In the arena, or
 * the object itself. */
struct slice partition_synthetic_fresh(struct slice object, struct arena *arena);

/* Can the text of a concatenation without escapes be made of other values too? */
bool partition_synthetic_is_ambiguous(const struct partition_synthetic *synthetic,
                                      struct slice text);

/* Whether the same items get the same keys. */
bool partition_synthetic_equal(const struct partition_synthetic *a,
                               const struct partition_synthetic *b);

/* "concatenation", "randomSuffix", "computedSuffix". */
const char *partition_synthetic_kind_name(enum partition_synthetic_kind kind);

static inline bool partition_synthetic_is_random(const struct partition_definition *definition)
{
    return definition->synthetic && definition->synthetic->kind == PARTITION_RANDOM_SUFFIX;
}

/* --- Values ---------------------------------------------------------------------------------- */

/* The sources of an item; undefined where it has none. Borrowed from it. */
void partition_synthetic_sources(const struct partition_synthetic *synthetic, struct slice document,
                                 struct document_value ret_values[PARTITION_SOURCES_MAX]);

/* The component made of source values. number: of a random suffix, 1 to suffixes; else ignored. In
 * the arena. ERROR_BAD_REQUEST: a source is missing and must not be, or is no scalar. */
NODISCARD bool partition_synthetic_compute(const struct partition_synthetic *synthetic,
                                           const struct document_value *values, uint32_t number,
                                           struct arena *arena, struct document_value *ret_value,
                                           struct error *err);

/* The number that a value gets as suffix, of a computed one. ERROR_BAD_REQUEST: it is no scalar. */
NODISCARD bool partition_synthetic_number(const struct partition_synthetic *synthetic,
                                          const struct document_value *hashed, uint32_t *ret_number,
                                          struct error *err);

/* The base and a number, 1 to suffixes. */
NODISCARD bool partition_synthetic_suffixed(const struct partition_synthetic *synthetic,
                                            const struct document_value *base, uint32_t number,
                                            struct arena *arena, struct document_value *ret_value,
                                            struct error *err);

/* Is the text a base, the separator and a number from 1 to suffixes? Borrowed from it. */
bool partition_synthetic_split(const struct partition_synthetic *synthetic, struct slice text,
                               struct slice *ret_base, uint32_t *ret_number);

/* --- Keys ------------------------------------------------------------------------------------ */

/* The components of a request made a key (partition_key_parse of a container with such a key): as
 * many as the definition has paths, or with the sources instead of what is made of them. Of
 * suffixes the base alone, and undefined where the key must be whole, make the key open (key.h). */
NODISCARD bool partition_synthetic_take(const struct partition_definition *definition,
                                        const struct document_value *values, size_t count,
                                        enum partition_key_need need, struct arena *arena,
                                        struct partition_key *ret_key, struct error *err);

/* The key of a request that names none at all: open, where that is enough to go by. False: the
 * container has no synthetic key, or other components besides. */
NODISCARD bool partition_key_unnamed(const struct partition_definition *definition,
                                     struct partition_key *ret_key);

/* The key of an item that is to be written, for containers of every kind; named is what the
 * request says it is, NULL: nothing. Open, if a suffix is still to be drawn or found. In the arena
 * or borrowed. ERROR_KEY_MISMATCH: it is another than the one named. ERROR_BAD_REQUEST: the item
 * says something else than its sources, or lacks one. */
NODISCARD bool partition_key_derive(const struct partition_definition *definition,
                                    struct slice document, const struct partition_key *named,
                                    struct arena *arena, struct partition_key *ret_key,
                                    struct error *err);

/* Can the whole key be what an open one stands for? */
bool partition_key_closes(const struct partition_definition *definition,
                          const struct partition_key *key, const struct partition_key *open);

/* Checks an item that is to be stored under a whole key, and fills in what is made if it lacks
 * that: *ret_document is the item itself or in the arena. before: the item it replaces, data NULL:
 * none; its sources cannot change. ERROR_KEY_MISMATCH: they do. ERROR_BAD_REQUEST. */
NODISCARD bool partition_synthetic_fill(const struct partition_definition *definition,
                                        const struct partition_key *key, struct slice before,
                                        struct slice document, struct arena *arena,
                                        struct slice *ret_document, struct error *err);

/* The keys that an open one with a base stands for, one for each suffix; in the arena. */
NODISCARD bool partition_synthetic_keys(const struct partition_definition *definition,
                                        const struct partition_key *open, struct arena *arena,
                                        struct partition_key **ret_keys, size_t *ret_count,
                                        struct error *err);

/* --- For people and programs ----------------------------------------------------------------- */

/* Appends, as members of a JSON object that was begun, what the key of a document is and why:
 *
 *     "partitionKey":["2018-08-09.17"], "open":false, "effectivePartitionKey":"0F3A...",
 *     "synthetic":{"kind":"computedSuffix","target":"/pk",
 *                  "sources":[{"path":"/date","value":"2018-08-09"}, ...],
 *                  "suffix":17,"suffixes":400}
 *
 * Open, the key shows the base and there is neither an effective key nor a suffix; a container
 * without a synthetic key has no such member. ERROR_BAD_REQUEST as partition_key_derive. */
NODISCARD bool partition_key_explain(const struct partition_definition *definition,
                                     struct slice document, struct arena *arena, struct buf *json,
                                     struct partition_key *ret_key, struct error *err);

/* The members about a key at hand. */
void partition_key_show(const struct partition_definition *definition,
                        const struct partition_key *key, struct buf *json);
