/* A graph from within, as the files of this folder share it. */
#pragma once

#include "catalogue/container_space.h"
#include "front/fan_out.h"
#include "front/gremlin/graph/condition.h"
#include "front/gremlin/graph/graph.h"
#include "front/gremlin/graph/stored.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "query/run.h"
#include "query/run/entries.h"
#include "query/run/fetch.h"

enum {
    GREMLIN_CHUNK = 1024,  /* keys or vertices that are asked for in one go */
    GREMLIN_INTERNED = 64, /* labels and partition keys that are shared by elements */
};

/* What elements know of their graph: on the heap, as long as that lives. graph NULL: it has gone.
 */
struct gremlin_link {
    struct gremlin_graph *graph;
};

/* The item of an element, as it was read. */
struct gremlin_item {
    struct gremlin_stored stored;
    uint32_t len;
    uint8_t document[]; /* BSON; with system properties if the graph shows them */
};

/* An item this graph has written: what it is by now. */
struct gremlin_written {
    struct slice key; /* item key */
    uint64_t hash;
    struct slice document; /* data NULL: dropped */
    struct gremlin_written *next;
};

/* The transaction on one node. */
struct gremlin_part {
    uint32_t node;
    struct engine *engine;
    struct transaction *transaction;    /* the agreement's */
    struct arena *arena;                /* of all parts */
    const struct view_overlay *overlay; /* of the transaction */
    struct gremlin_part *next;
};

struct gremlin_graph {
    struct gremlin_graph_options options; /* container: a reference */
    struct item_space space;
    struct item_reading *reading; /* owned; NULL: the primaries are read */
    struct rid rid;
    struct arena *arena;    /* of names and the bound */
    struct front_call call; /* what queries need of the call it works for */
    struct front_moment moment;
    bool entered;
    struct view_bound left; /* of a request on a loop: what it may still read */
    atomic_ullong paid;     /* so many of the next reads were paid for by an attempt before */

    struct slice keys[PARTITION_PATHS_MAX]; /* names of the partition key's properties */
    size_t key_count;
    bool bound; /* to one partition key: only */
    struct partition_key only;
    uint8_t shown; /* bit n: enum document_system n */
    bool shows_ends;
    bool met_edges;    /* found or written */
    bool reads_moment; /* all reads are of one moment */
    bool several_nodes;

    struct gremlin_link *link;
    struct gremlin_value labels[GREMLIN_INTERNED], partitions[GREMLIN_INTERNED];

    struct gremlin_references *references; /* of the request; NULL: none was read */
    struct agreement *agreement;           /* NULL: nothing was read at one moment */
    struct arena *transact_arena;          /* of it */
    struct gremlin_part *parts;            /* of it, one for each node that was met */
    struct arena *written_arena;
    struct gremlin_written **written; /* by hash */
    size_t written_count, written_size;
    size_t held; /* on the account's meter */

    struct random ids; /* of elements and properties that are given none; of those who write */
    bool ids_begun;
    struct gremlin_graph_figures figures;
};

/* After another map: keys and nodes are looked at again. False: it can be a graph no longer. */
bool gremlin_graph_renewed(struct gremlin_graph *graph);

/* --- Elements (element.c) ----------------------------------------------------------------------
 */

struct gremlin_names gremlin_graph_names(const struct gremlin_graph *graph);

/* The element of a stored item; NULL value: it is none. One reference. */
struct gremlin_value gremlin_element_of(struct gremlin_graph *graph, struct slice document);

/* A vertex as an edge names it. Takes no reference. */
struct gremlin_value gremlin_vertex_head(struct gremlin_graph *graph, struct gremlin_value id,
                                         struct gremlin_value label,
                                         struct gremlin_value partition);

/* Gives an element another item. */
void gremlin_element_fill(struct gremlin_graph *graph, struct gremlin_value element,
                          struct slice document);

/* The document it has, with what the graph has written; data NULL: dropped, or not read. */
struct slice gremlin_element_document(const struct gremlin_element *element);

/* Text and partition key values as values that elements share; borrowed. */
struct gremlin_value gremlin_label_value(struct gremlin_graph *graph, struct slice label);
struct gremlin_value gremlin_partition_value(struct gremlin_graph *graph,
                                             const struct document_value *components, size_t count);

/* The components of a partition key that a value stands for, in the arena. False: it is none. */
bool gremlin_partition_key(const struct gremlin_graph *graph, struct gremlin_value partition,
                           struct arena *arena, struct partition_key *ret_key);
/* Of `_sinkPartition`. */
bool gremlin_partition_key_stored(const struct gremlin_graph *graph,
                                  const struct document_value *stored,
                                  struct partition_key *ret_key);
/* Key and id of an element; false: its partition key is not known. */
bool gremlin_element_key(const struct gremlin_graph *graph, struct gremlin_value element,
                         struct arena *arena, struct partition_key *ret_key, struct slice *ret_id);

/* --- Reading (read.c) ---------------------------------------------------------------------------
 */

/* One page of a plan. */
struct gremlin_reading {
    const struct query_plan *plan;
    struct query_entries *entries; /* read instead; NULL: the plan is run */
    struct query_scope scope;
    uint64_t rows_max;
    struct slice continuation; /* in and out; in `arena` */
    struct arena *arena;
    bool (*row)(void *self, const struct document_value *value, struct error *err);
    void *self;

    struct metered_call metered;  /* out */
    struct query_metrics metrics; /* out */
};

/* Runs the page; from any thread where the graph has no moment of its own. */
NODISCARD bool gremlin_reading_run(struct gremlin_graph *graph, struct gremlin_reading *reading,
                                   struct error *err);
/* Adds what it took; by the graph's thread. */
void gremlin_reading_count(struct gremlin_graph *graph, const struct gremlin_reading *reading);

/* All pages, counted. */
NODISCARD bool gremlin_reading_all(struct gremlin_graph *graph, struct gremlin_reading *reading,
                                   struct error *err);

/* The parts of the container that one query can read: one, unless the graph reads one moment and
 * the container is on several nodes. In the arena. */
const struct query_scope *gremlin_graph_scopes(struct gremlin_graph *graph, struct arena *arena,
                                               size_t *ret_count);

/* Documents behind whole keys, in no more than one read for each partition. take as of query_fetch;
 * the document has the system properties that the graph shows. */
struct gremlin_fetch {
    const struct items_reference *references;
    size_t count;
    bool (*take)(void *self, size_t reference, struct slice document, struct error *err);
    void *self;
};
NODISCARD bool gremlin_graph_fetch(struct gremlin_graph *graph, const struct gremlin_fetch *fetch,
                                   struct error *err);

/* What a plan selects: the stored item, with system properties if the graph shows some. */
const struct query_expression *gremlin_item_expression(const struct gremlin_graph *graph,
                                                       struct query_build *build);

/* Threads that help; width 0: none. */
struct query_executor gremlin_graph_executor(const struct gremlin_graph *graph,
                                             struct front_helpers *helpers);

/* Cancelled, too late, or the heap is full? */
NODISCARD bool gremlin_graph_goes_on(const struct gremlin_graph *graph, struct error *err);

/* Elements found: what kinds of searches bring. The structure is the first member of theirs. */
struct gremlin_found {
    struct gremlin_graph *graph;
    bool (*next)(struct gremlin_found *found, size_t want, struct error *err); /* appends rows */
    void (*done)(struct gremlin_found *found);
    struct arena *arena; /* as long as it lives */
    uint64_t left;       /* of the limit */
    bool ended;          /* next has no more */

    /* Rows that wait, and the page that was given last. */
    struct gremlin_value *elements, *edges;
    size_t *inputs;
    size_t count, capacity, at, given;
    bool has_inputs, has_edges;
};
void *gremlin_found_new(struct gremlin_graph *graph, size_t size);
/* Takes the references. */
void gremlin_found_add_take(struct gremlin_found *found, size_t input, struct gremlin_value element,
                            struct gremlin_value edge);

/* --- Reference containers (reference.c) ---------------------------------------------------------
 */

void gremlin_references_let_go(struct gremlin_graph *graph);

/* --- Transactions (transact.c)
 * -------------------------------------------------------------------- */

/* The part of a partition key's node, opened if need be. */
NODISCARD bool gremlin_part_of(struct gremlin_graph *graph, uint32_t node,
                               struct gremlin_part **ret_part, struct error *err);
/* Moves the transaction to a key. */
NODISCARD bool gremlin_part_enter(struct gremlin_graph *graph, const struct partition_key *key,
                                  struct gremlin_part **ret_part, struct error *err);
/* What its queries see; NULL overlay: nothing was written there. */
NODISCARD bool gremlin_part_overlay(struct gremlin_graph *graph, struct gremlin_part *part,
                                    struct error *err);
/* Plans a write. document is in the part's arena; data NULL: it is dropped. */
NODISCARD bool gremlin_graph_put(struct gremlin_graph *graph, const struct partition_key *key,
                                 struct slice id, enum transaction_verb verb, struct slice document,
                                 struct error *err);
/* The item as the transaction has it; *ret_document data NULL: there is none. */
NODISCARD bool gremlin_graph_get(struct gremlin_graph *graph, const struct partition_key *key,
                                 struct slice id, struct slice *ret_document, struct error *err);
/* What it has written of an item; NULL: nothing. */
const struct gremlin_written *gremlin_graph_written(const struct gremlin_graph *graph,
                                                    const struct partition_key *key,
                                                    struct slice id);
void gremlin_graph_let_go(struct gremlin_graph *graph); /* of all transactions */
