/* Index policy: which values of an item are indexed, and the entries an item therefore has.
 *
 * An entry is a path and a value. Its key (layout in index_policy.c, format version 1), without the
 * family byte before it and without routing key and number behind it:
 *
 *     path, escaped and terminated | value, as document_key_append_cut orders it
 *
 * Every scalar leaf has an entry; a leaf inside an array is reached by [] in the path; an empty
 * object or array has one for its type. Composite indexes have entries of their own. A policy
 * never changes once made. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/names.h"
#include "document/path.h"
#include "index/definition.h"
#include "search/analyser.h"

struct index_policy; /* opaque, lives in the arena it was parsed into */

/* Bytes of a value kept in an entry; what is longer is cut and looked up in the item. Bytes of a
 * path; what is longer ends in a hash (index_policy.c). */
enum {
    INDEX_VALUE_MAX = 256,
    INDEX_PATH_MAX = 1024,
    INDEX_ENTRIES_MAX = 20000,
    INDEX_BYTES_MAX = 32 << 20,     /* of the entries of an item: more than any policy can make */
    INDEX_WORK_MAX = 32 << 20,      /* steps to find them (entries.c): a fraction of a second */
    INDEX_PATHS_MAX = 1500,         /* included and excluded ones of a policy */
    INDEX_SPATIAL_MAX = 64,         /* paths of spatial indexes */
    INDEX_TEXTS_MAX = 256,          /* of full-text indexes; those beyond have no entries */
    INDEX_COMPOSITE_PATHS_MAX = 8,  /* in one index */
    INDEX_COMPOSITE_TOTAL_MAX = 100 /* paths in all composite indexes */
};

/* Parses the indexingPolicy of a container (BSON object; SLICE_NONE: the default policy) and
 * appends to completed the policy as the service shows it: defaults filled in, the excluded
 * "_etag" path appended (facts: sections 6 and 19). names: of the container; kept by the policy.
 * ERROR_BAD_REQUEST. */
NODISCARD bool index_policy_parse(struct slice policy, const struct document_names *names,
                                  struct arena *arena, struct buf *completed,
                                  const struct index_policy **ret_policy, struct error *err);

/* The same with definitions besides, which are not copied: the policy then has the entries of them
 * all. */
const struct index_policy *index_policy_with(const struct index_policy *policy,
                                             const struct index_definition *const *definitions,
                                             size_t count, struct arena *arena);

/* The same with the entries of its spatial indexes, which containers of before have not. */
const struct index_policy *index_policy_with_cells(const struct index_policy *policy,
                                                   struct arena *arena);

/* Does it list spatial indexes? */
bool index_policy_has_spatial(const struct index_policy *policy);

/* Its spatial index of what is at this path; NULL: none, or it has no entries. */
const struct index_definition *index_policy_spatial_at(const struct index_policy *policy,
                                                       const struct document_path *path);

/* The common beginning of the entries of a spatial index for this path, in the arena. */
struct slice index_spatial_prefix(const struct document_path *path, struct arena *arena);

/* The same with the entries of its indexes of vectors, which containers of before have not.
 * embeddings: the list of the container's vectorEmbeddingPolicy, which says what the vectors are;
 * an index whose path is not in it has no entries. */
const struct index_policy *index_policy_with_vectors(const struct index_policy *policy,
                                                     struct slice embeddings, struct arena *arena);

/* Does it list indexes of vectors? */
bool index_policy_has_vectors(const struct index_policy *policy);

/* Its index of the vectors at this path; NULL: none, or it has no entries. */
const struct index_definition *index_policy_vector_at(const struct index_policy *policy,
                                                      const struct document_path *path);

/* Bytes of the vector, or its code, in an entry. */
size_t index_vector_size(const struct index_vector *vector);

/* How far the vector of an entry is from what is asked for; value: what stands behind the prefix.
 * False: it is of another index. */
bool index_vector_distance(const struct index_vector *vector, const struct search_asked *asked,
                           struct slice value, double *ret_distance);

/* The value of the entry that an item has in an index of vectors, as it stands behind the prefix:
 * appended to the buffer. False: it has none. */
bool index_vector_value(const struct index_definition *definition, struct slice item,
                        struct buf *to);

/* Of an entry whose value is no value in an order but bytes: so many, their length first. False:
 * that is not all there. */
bool index_vector_length(struct slice bytes, size_t *ret_length);

/* A cell as the value of an entry: its number in text, which sorts like it. */
enum { INDEX_CELL_SIZE = 17 };
struct document_value index_cell_value(uint64_t cell, char text[INDEX_CELL_SIZE]);
/* The cell that the value of an entry begins with. False: it does not, or is turned over. */
bool index_cell_read(struct slice value, uint64_t *ret_cell);

/* The same for full-text indexes, in the languages of the container's fullTextPolicy (BSON; data
 * NULL: none). */
const struct index_policy *index_policy_with_terms(const struct index_policy *policy,
                                                   struct slice full_text, struct arena *arena);
bool index_policy_has_texts(const struct index_policy *policy);
const struct index_definition *index_policy_text_at(const struct index_policy *policy,
                                                    const struct document_path *path);
struct slice index_text_prefix(const struct document_path *path, struct arena *arena);

/* The language that a fullTextPolicy has for a path; NULL: for what is none. Borrowed. */
struct slice index_text_language(struct slice policy, const struct document_path *path,
                                 struct arena *arena);

/* The sums of a full-text index: how many texts there are, and how many terms they have. The name
 * they are kept by, in the arena. */
enum { INDEX_TEXT_TEXTS, INDEX_TEXT_WORDS };
struct slice index_text_sum_name(const struct index_definition *definition, struct arena *arena);

/* A term as the value of an entry. Empty: of texts with so many that any may be among them. */
enum { INDEX_TERM_SIZE = 3 + SEARCH_TERM_MAX };

/* What the entry of a term says: how often the text has it, and how many terms the text has, three
 * bytes each, the higher first. More is said as the most that fits. */
enum { INDEX_TERM_SAID = 6 };
void index_term_said(struct slice said, uint32_t *ret_often, uint32_t *ret_terms);

struct document_value index_term_value(struct slice language, struct slice term,
                                       uint8_t bytes[INDEX_TERM_SIZE]);

/* All its definitions: the wildcard of its paths, its composites, then those besides. */
const struct index_definition *const *index_policy_definitions(const struct index_policy *policy,
                                                               size_t *ret_count);

/* Those besides alone. */
const struct index_definition *const *index_policy_besides(const struct index_policy *policy,
                                                           size_t *ret_count);

/* Has one of them entries that lie elsewhere than their item? */
bool index_policy_places(const struct index_policy *policy);
/* The definition of such an entry; NULL: it lies with its item. */
const struct index_definition *index_policy_placed(const struct index_policy *policy,
                                                   struct slice entry);

bool index_policy_is_none(const struct index_policy *policy); /* nothing but id and _ts */

/* A definition that plans can walk in the order of its values, one entry for each item: neither
 * sparse nor partial nor multikey, not hashed, not hidden. For a policy, a composite
 * index: one entry for each item, of the values at its paths one after the other, cut
 * at INDEX_VALUE_MAX each. A path that leads nowhere has undefined there. */
struct index_composite {
    const struct index_definition *definition; /* its order is that of the values */
    const struct document_path *paths;
    const bool *descending; /* one for each path */
    size_t count;
    struct slice prefix; /* the beginning of its entries; the values follow */
};

/* Do items have the same entries in both? */
bool index_composite_same(const struct index_composite *a, const struct index_composite *b);

const struct index_composite *index_policy_composites(const struct index_policy *policy,
                                                      size_t *ret_count);

/* All entries of an item (its valid BSON without system properties), sorted, without repetition. id
 * is always indexed; _ts is not in the item, and whoever stamps it adds its entry. Besides its
 * values an item has an entry of undefined for every scalar path that was included by name and
 * leads nowhere in it. ERROR_TOO_LARGE: more than INDEX_ENTRIES_MAX or INDEX_BYTES_MAX of them, or
 * INDEX_WORK_MAX was not enough to find them. */
NODISCARD bool index_entries(const struct index_policy *policy, struct slice item,
                             struct arena *arena, struct index_entry **ret_entries,
                             size_t *ret_count, struct error *err);

/* Is this path (a scalar, or everything below) served by the index? Then every item that has a
 * value there has its entry. A path of properties alone does not see the elements of an array: they
 * are at []. System properties are not in the item and not covered; a tuple is covered if the very
 * same one is included. */
bool index_policy_covers(const struct index_policy *policy, const struct document_path *path);

/* Does the policy leave this scalar path out, as the service reads it? Whatever is not covered, but
 * of system properties only _etag and, where all that is not named is excluded, all but _ts. */
bool index_policy_excludes(const struct index_policy *policy, const struct document_path *path);

/* Is undefined indexed at this scalar path, so that items without a value there are found too? */
bool index_policy_covers_undefined(const struct index_policy *policy,
                                   const struct document_path *path);

/* The common beginning of all entries of a path, for scans: appended to buf. Of at least one
 * segment; a tuple may be the last. */
void index_path_append(const struct document_path *path, struct buf *buf);

/* The common beginning of all entries below a path, which no entry of the path itself has. Below a
 * path longer than INDEX_PATH_MAX there may be others among them. */
void index_path_append_below(const struct document_path *path, struct buf *buf);

/* Is it an entry of format 2? Such a one is stored without the key of its item, which is found by
 * the number behind it. */
bool index_entry_is_numbered(struct slice entry);

/* Of an entry of format 2 with several values, the first a text that was not cut: the bytes up to
 * the end of that text, which entries share that begin with the same. 0: it is none. */
size_t index_entry_group(struct slice entry);

/* How many bytes stand behind the key of the item in what is stored with an entry: what it says of
 * the item besides that the item has it. */
size_t index_entry_said_len(struct slice entry);

/* Moves *bytes behind the entry at their start: to the routing key, in a stored one.
 * ERROR_STORE_CORRUPT: these are not the bytes of an entry. */
NODISCARD bool index_entry_skip(struct slice *bytes, struct error *err);

/* Does the same and appends the entry for people: /tags/[] = "new". Composites are printed as
 * (/a asc, /b desc) = 1, "x"; a value that was cut ends in three points. */
NODISCARD bool index_entry_print(struct slice *bytes, struct buf *buf, struct error *err);
