/* Graph: a container as vertices and edges, for one request or for one transaction of a session.
 *
 * Everything comes and goes in batches: ids, conditions, the edges of many vertices. What is asked
 * becomes plans of query/ and reads of many keys at once, one for each physical partition, in
 * parallel; what is found becomes values on the graph's heap, in the calling thread. Elements know
 * their head (id, label, partition key, ends of edges); their properties are decoded when somebody
 * asks (gremlin_element_properties). Elements that are held
 * show what the graph has written since they were read: `as('a').property('k', 1).select('a')` has
 * k.
 *
 * Writes are gathered in one transaction over all partitions; reads that follow see them.
 * gremlin_graph_commit makes them so, gremlin_graph_free without it leaves nothing behind. Before
 * the first write, and in a graph that is not told to read one moment, each page reads the newest
 * state; from the first write on everything is read at one moment.
 *
 * One thread at a time, which may block. Charges, waits of throttled requests and figures add up in
 * the graph. Errors are rows of base/errors.def with the status that x-ms-status-code shows:
 * ERROR_ITEM_EXISTS 409, ERROR_CONFLICT 412 (another writer was first; gremlin_graph_may_retry),
 * ERROR_ITEM_MISSING 404 (it was deleted meanwhile), ERROR_TOO_MANY_REQUESTS and its kin 429,
 * ERROR_FORBIDDEN 403, ERROR_BAD_REQUEST what cannot be stored, ERROR_TIMED_OUT, ERROR_QUERY_LIMIT,
 * ERROR_NOT_SUPPORTED. */
#pragma once

#include "catalogue/catalogue.h"
#include "front/gremlin/value/pack.h"
#include "front/kit/call.h"
#include "item/reading.h"
#include "partition/key.h"

struct gremlin_graph; /* opaque */

/* --- Opening --------------------------------------------------------------------------------- */

struct gremlin_graph_limits {
    size_t page_rows;             /* of a batch that is handed out, at most; 0: 1,000 */
    size_t page_bytes;            /* of their documents; 0: 4 MB */
    size_t transaction_bytes_max; /* of what is written and not committed; 0: 64 MB */
    int64_t deadline_ms;          /* of the monotonic clock: ERROR_TIMED_OUT; 0: the server's */
};

struct gremlin_graph_options {
    const struct front_services *services;
    struct container *container; /* a reference is taken */
    struct gremlin_heap *heap;   /* of all values handed out; outlives the graph */
    bool readonly;               /* of a read-only key or token: writes are ERROR_FORBIDDEN */
    /* Of a resource token that holds for one partition key: everything else is not there, and
     * cannot be written. NULL: there is no such bound. Copied. */
    const struct partition_key *only;
    bool alone;      /* of a resource token: no other container is read */
    bool strong;     /* reads count twice */
    bool one_moment; /* all reads are of the moment of the first one, writes or not: of tx() */
    struct gremlin_graph_limits limits;
};

/* ERROR_NOT_SUPPORTED: the container's items are MongoDB's documents, or its partition key is one
 * a graph cannot have; the message says which. */
NODISCARD bool gremlin_graph_new(const struct gremlin_graph_options *options,
                                 struct gremlin_graph **ret_graph, struct error *err);
/* What was not committed never was. Values that came from it stay good, as they were read. */
void gremlin_graph_free(struct gremlin_graph *graph); /* NULL is fine */
CLEANUP_FN(struct gremlin_graph *, gremlin_graph_free)

/* The call it works for from now on: whose cancellation, workers and memory meter it uses. NULL:
 * none, between two requests of a session. Before anything is read. */
void gremlin_graph_enter(struct gremlin_graph *graph, struct front_call *call);

/* On an event loop (a call that may not block) the requests of a graph share these bounds, beyond
 * which, as with whatever is not in memory, reading is ERROR_COLD. What was read by then is paid
 * for: a graph that begins anew is told how many of its first reads were, which are not charged
 * again. */
enum { GREMLIN_SHORT_STEPS = 600, GREMLIN_SHORT_BYTES = 64 * 1024 };
void gremlin_graph_set_paid(struct gremlin_graph *graph, uint64_t reads);

/* What only reads, and is no part of a transaction, may be answered by standbys (item/reading.h)
 * until gremlin_graph_look_away, with nothing of it under way by then. */
void gremlin_graph_look(struct gremlin_graph *graph, const struct item_reading_options *options);
void gremlin_graph_look_away(struct gremlin_graph *graph);

/* The request is going to write: everything is read at one moment from now on, that of the
 * transaction it will commit, so that nothing it relies on is of another one. */
void gremlin_graph_begin(struct gremlin_graph *graph);

/* Another deadline; 0: the server's own. */
void gremlin_graph_set_deadline(struct gremlin_graph *graph, int64_t deadline_ms);

/* What a container for a graph is made with (catalogue_container_create), where nobody says
 * otherwise: BSON of a definition without partition key, every path indexed, with the indexes of
 * walk.h or without. */
void gremlin_graph_definition(struct slice id, bool indexes, struct buf *out);

/* The number of its container. */
uint64_t gremlin_graph_number(const struct gremlin_graph *graph);

struct gremlin_heap *gremlin_graph_heap(const struct gremlin_graph *graph);

/* For putting values aside whose elements are this graph's. */
void gremlin_graph_packing(struct gremlin_graph *graph, struct gremlin_packing *ret_packing);

/* The name of the property that is the partition key ("pk"); data NULL: the container has none, or
 * one of several paths (gremlin_graph_key_is tells of each). */
struct slice gremlin_graph_key(const struct gremlin_graph *graph);
bool gremlin_graph_key_is(const struct gremlin_graph *graph, struct slice name);
/* How many values the partition key has: 0 of a fixed container, 1, or up to 3. */
size_t gremlin_graph_key_count(const struct gremlin_graph *graph);

/* System properties (_ts, _etag, _rid, _self, and on edges inVPartition, outVPartition) that
 * elements show among their properties from now on; ProjectionStrategy. Copied. ERROR_BAD_REQUEST:
 * there is no such. */
NODISCARD bool gremlin_graph_show_system(struct gremlin_graph *graph, const struct slice *names,
                                         size_t count, struct error *err);

/* Has the graph met edges, and would it read them from entries if it had the indexes of walk.h?
 * Then whoever may add them does, on a worker, once the request is over: they are built online.
 * ERROR_BUSY and others of catalogue_indexes_change. */
bool gremlin_graph_wants_indexes(const struct gremlin_graph *graph);
NODISCARD bool gremlin_graph_add_indexes(const struct gremlin_graph *graph, struct slice account,
                                         struct slice database, struct error *err);

/* --- What is read ---------------------------------------------------------------------------- */

enum gremlin_element_kind { GREMLIN_ELEMENT_VERTEX, GREMLIN_ELEMENT_EDGE };

/* An id as V() and E() take it. Ids are texts: numbers, UUIDs and the like are turned into theirs;
 * a pair is [partition key, id], a triple or more [key, key, id] where the key has several paths.
 */
struct gremlin_reference {
    struct gremlin_value id;        /* string, number, UUID; borrowed */
    struct gremlin_value partition; /* a value, a list of them; GREMLIN_NULL: not known */
};

/* Reads what V() or E() was given: an id, an element, or, with pairs, a list of key and id. False:
 * it can be none (null, a map, ...), which finds nothing or is the caller's error. Borrowed. */
bool gremlin_reference_of(const struct gremlin_graph *graph, const struct gremlin_value *value,
                          struct gremlin_reference *ret_reference);

/* The text that an id is stored as, as a string value (one reference). False: it can be none. */
bool gremlin_id_text(struct gremlin_heap *heap, const struct gremlin_value *id,
                     struct gremlin_value *ret_text);

/* What an element has to satisfy; several: all of them. */
enum gremlin_condition_kind {
    GREMLIN_CONDITION_LABEL,    /* operand: a string, a predicate */
    GREMLIN_CONDITION_ID,       /* the same, of the id's text */
    GREMLIN_CONDITION_PROPERTY, /* a value of the property satisfies the operand */
    GREMLIN_CONDITION_HAS_KEY,  /* the property is there; no operand */
    GREMLIN_CONDITION_HAS_NOT,  /* it is not */
};

struct gremlin_condition {
    enum gremlin_condition_kind kind;
    struct slice key;             /* of properties; the partition key's name routes */
    struct gremlin_value operand; /* a value that is to be equal, or GREMLIN_PREDICATE; borrowed */
};

/* Whether the graph evaluates the condition, by an index or not, just as the run would: then it may
 * be handed in. Not so: regex, typeOf, values that have no stored form, traversals; the run filters
 * by those itself. */
bool gremlin_condition_is_stored(const struct gremlin_condition *condition);

/* Elements found, page by page. */
struct gremlin_found; /* opaque; owned; freed before the graph is */

/* A page: values are good until the next one (take a reference to keep one). */
struct gremlin_page {
    struct gremlin_value *elements; /* vertices, or edges */
    /* Of an expansion: which of the vertices asked for; ascending within a page, and where nothing
     * is limited by memory over all pages. NULL: it is none. */
    const size_t *inputs;
    /* Of an expansion to neighbours with edges: the edge each was reached by; NULL: it is none. */
    struct gremlin_value *edges;
    size_t count; /* 0: there are no more */
};
/* want: so many would do for now (of limit(1): 1), a hint; 0: a page as large as may be. */
NODISCARD bool gremlin_found_next(struct gremlin_found *found, size_t want,
                                  struct gremlin_page *ret_page, struct error *err);
void gremlin_found_free(struct gremlin_found *found); /* NULL is fine */
CLEANUP_FN(struct gremlin_found *, gremlin_found_free)

/* Elements of a kind that satisfy all conditions. */
struct gremlin_search {
    enum gremlin_element_kind kind;
    const struct gremlin_reference *references; /* NULL: any; else these, in their order, where
                                                 * both id and key are known */
    size_t reference_count;
    const struct gremlin_condition *conditions;
    size_t condition_count;
    uint64_t limit; /* so many are enough; 0: all */
};
NODISCARD bool gremlin_graph_search(struct gremlin_graph *graph,
                                    const struct gremlin_search *search,
                                    struct gremlin_found **ret_found, struct error *err);
/* How many there are, without loading where an index tells. */
NODISCARD bool gremlin_graph_count(struct gremlin_graph *graph, const struct gremlin_search *search,
                                   uint64_t *ret_count, struct error *err);

enum gremlin_reach { GREMLIN_REACH_OUT, GREMLIN_REACH_IN, GREMLIN_REACH_BOTH };
enum gremlin_want {
    GREMLIN_WANT_EDGES,
    GREMLIN_WANT_VERTICES, /* neighbours; edges whose other end is gone give none */
    GREMLIN_WANT_VERTICES_AND_EDGES,
};

/* Edges of many vertices at once, or the vertices at their other ends. With BOTH, those out of a
 * vertex come before those into it, and a loop comes twice. */
struct gremlin_expansion {
    const struct gremlin_value *vertices; /* GREMLIN_VERTEX; kept by reference while it runs */
    size_t vertex_count;
    enum gremlin_reach reach;
    enum gremlin_want want;
    const struct slice *labels; /* of edges: any of these; none: all. Copied */
    size_t label_count;
    const struct gremlin_condition *edge_conditions;
    size_t edge_condition_count;
    const struct gremlin_condition *vertex_conditions; /* of neighbours */
    size_t vertex_condition_count;
    /* Neighbours are made of what their edges say of them (id, label, partition key) and not read:
     * for whoever goes on to their edges or counts them. They may be gone. Not with conditions on
     * vertices. */
    bool heads;
    uint64_t limit; /* so many in all are enough; 0: all */
};
NODISCARD bool gremlin_graph_expand(struct gremlin_graph *graph,
                                    const struct gremlin_expansion *expansion,
                                    struct gremlin_found **ret_found, struct error *err);
/* How many edges each of the vertices has: counts[i]; without loading where an index tells. For
 * want EDGES alone. */
NODISCARD bool gremlin_graph_count_edges(struct gremlin_graph *graph,
                                         const struct gremlin_expansion *expansion,
                                         uint64_t *counts, struct error *err);

/* The vertices at the ends of edges, in their order: OUT the source, IN the target, BOTH the two
 * one after the other (2 * count). GREMLIN_NULL where there is none any more; with heads nothing is
 * read, as above. One reference each. */
NODISCARD bool gremlin_graph_ends(struct gremlin_graph *graph, const struct gremlin_value *edges,
                                  size_t count, enum gremlin_reach which, bool heads,
                                  struct gremlin_value *ret_vertices, struct error *err);

/* Reads in one go what is not read yet of these elements: heads, and references that clients have
 * sent. Other values are passed over. *ret_gone (may be NULL): gone[i] says that there is no such
 * element. Properties of an element that is not read are read one by one when asked for. */
NODISCARD bool gremlin_graph_load(struct gremlin_graph *graph, const struct gremlin_value *elements,
                                  size_t count, bool *ret_gone, struct error *err);

/* --- Reference containers -------------------------------------------------------------------- */

/* Items of a reference container of the same database, by key. */
struct gremlin_lookup {
    struct slice container;
    struct gremlin_value key; /* a value, or a list where the partition key has several paths; null
                                 where it has none; borrowed */
    struct gremlin_value id;  /* null: all of the key */
};

/* Those that have the key, as maps in a list (one reference), from the copy that the server has of
 * the container: no store is read. ERROR_FORBIDDEN: the token is for the graph alone.
 * ERROR_BAD_QUERY: there is no such container. ERROR_GREMLIN_RUN: a key that it cannot have. */
NODISCARD bool gremlin_graph_look_up(struct gremlin_graph *graph,
                                     const struct gremlin_lookup *lookup,
                                     struct gremlin_value *ret_items, struct error *err);

/* --- Writing --------------------------------------------------------------------------------- */

struct gremlin_pair {
    struct slice key;
    struct gremlin_value value; /* borrowed */
};

/* A property to be written; all is borrowed for the call. */
struct gremlin_assignment {
    enum gremlin_enum_word cardinality; /* GREMLIN_CARDINALITY_...; 0: not said, which is single */
    struct slice key;
    struct gremlin_value value; /* GREMLIN_NULL: single removes the property, as 3.7 does */
    const struct gremlin_pair *meta;
    size_t meta_count;
};

/* Which names a new element cannot have, and what each value may be, is said by errors. */
struct gremlin_new_vertex {
    struct slice label;                          /* empty: "vertex" */
    struct gremlin_value id;                     /* GREMLIN_NULL: one is made up */
    const struct gremlin_assignment *properties; /* with the partition key among them */
    size_t property_count;
};
/* ERROR_BAD_REQUEST: "Gremlin Query Execution Error: Cannot add a vertex where the partition key
 * property has value 'null'." and what else cannot be stored. ERROR_ITEM_EXISTS. */
NODISCARD bool gremlin_graph_add_vertex(struct gremlin_graph *graph,
                                        const struct gremlin_new_vertex *vertex,
                                        struct gremlin_value *ret_vertex, struct error *err);

struct gremlin_new_edge {
    struct slice label;
    struct gremlin_value id;       /* GREMLIN_NULL: one is made up */
    struct gremlin_value from, to; /* vertices */
    const struct gremlin_assignment *properties;
    size_t property_count;
};
NODISCARD bool gremlin_graph_add_edge(struct gremlin_graph *graph,
                                      const struct gremlin_new_edge *edge,
                                      struct gremlin_value *ret_edge, struct error *err);

/* Sets, appends or removes properties of a vertex, an edge or a vertex property (its
 * meta-properties). The value itself shows them from then on. ERROR_BAD_REQUEST: id, label and
 * partition key never change. ERROR_ITEM_MISSING: it was dropped. */
NODISCARD bool gremlin_graph_assign(struct gremlin_graph *graph,
                                    const struct gremlin_value *element,
                                    const struct gremlin_assignment *properties,
                                    size_t property_count, struct error *err);

/* Removes vertices with all their edges, edges, vertex properties and properties, each once. What
 * is gone already is passed over. */
NODISCARD bool gremlin_graph_drop(struct gremlin_graph *graph, const struct gremlin_value *things,
                                  size_t count, struct error *err);

/* --- The end of a request -------------------------------------------------------------------- */

/* Has it written anything that is not committed? */
bool gremlin_graph_is_written(const struct gremlin_graph *graph);

/* Commits; without writes it succeeds. The graph is as new afterwards. ERROR_CONFLICT: another
 * writer was first, nothing was written (of several nodes: what the message says). */
NODISCARD bool gremlin_graph_commit(struct gremlin_graph *graph, struct error *err);

/* Forgets what was written and not committed, and the moment that was read. */
void gremlin_graph_rollback(struct gremlin_graph *graph);

/* After an error: may the whole request be run again from its beginning, after a rollback? It lost
 * against another writer or a migration, and nothing of it was kept. May block briefly, for the
 * next map of partitions. */
bool gremlin_graph_may_retry(struct gremlin_graph *graph, const struct error *err);

/* --- What it took ---------------------------------------------------------------------------- */

/* Since the graph was made, added up. */
/* How edges into vertices are found: "reverse edges", by the partitions of the vertices, or "every
 * partition". */
const char *gremlin_graph_way_in(const struct gremlin_graph *graph);

struct gremlin_graph_figures {
    int64_t charge_cru;    /* hundredths of an RU; of writes: with the commit */
    int64_t wait_ms;       /* of the last refusal for lack of throughput */
    uint64_t reads;        /* plans run and batches of keys read ("storeOps") */
    uint64_t charged;      /* those of them that were charged for */
    uint64_t partitions;   /* physical partitions read from, over all reads */
    uint64_t items, bytes; /* loaded */
    uint64_t index_entries;
    uint64_t written;         /* items, by writes that are planned or committed */
    uint64_t conflicts;       /* commits that lost */
    int64_t reference_lag_ms; /* the longest since when a copy is not known to be exact */
};
struct gremlin_graph_figures gremlin_graph_figures(const struct gremlin_graph *graph);
