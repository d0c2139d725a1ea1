/* Value: whatever a traversal passes on, takes as an argument or gives as a result.
 *
 * A value is two words, passed by copy. Numbers, truth and enumerations stand in it; everything
 * else is an object on the heap of its request, counted by references. A function that makes a
 * value gives its caller one reference; arguments are borrowed unless a name says `take`. Objects
 * are immutable once a second reference exists; containers grow only while they are being made,
 * or by the one step that owns them (side effects).
 *
 * Counts are not atomic: the values of a request belong to the one thread that runs it at a time.
 * Whatever other threads read for it arrives as BSON and becomes values there.
 *
 * A heap counts what its values take on the account's meter and fails once the request's limit is
 * reached (gremlin_heap_failed), so that a runaway path or group ends in an error, not in the
 * kernel's. Makers never return NULL: past the limit they go on for a bounded while, and the run
 * looks at the heap with every batch. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/memory_meter.h"
#include "base/slice.h"

enum gremlin_type {
    GREMLIN_NULL,
    GREMLIN_BOOLEAN,
    GREMLIN_BYTE,
    GREMLIN_SHORT,
    GREMLIN_INT,
    GREMLIN_LONG,
    GREMLIN_FLOAT,
    GREMLIN_DOUBLE,
    GREMLIN_CHAR, /* a code point */
    GREMLIN_DATE, /* milliseconds since 1970 in UTC */
    GREMLIN_TIMESTAMP,
    GREMLIN_ENUM,
    /* objects from here on */
    GREMLIN_BIG_INTEGER, /* its decimal digits, as text */
    GREMLIN_BIG_DECIMAL, /* likewise: digits, point, exponent */
    GREMLIN_STRING,
    GREMLIN_UUID,   /* 16 bytes */
    GREMLIN_BINARY, /* bytes */
    GREMLIN_CLASS,  /* a name, as text */
    GREMLIN_DATE_TIME, /* with an offset */
    GREMLIN_DURATION,
    GREMLIN_TEMPORAL, /* the other java.time types of the formats: a name and its text */
    GREMLIN_LIST,
    GREMLIN_SET,      /* in the order things came, each once by equivalence */
    GREMLIN_BULK_SET, /* items with counts */
    GREMLIN_MAP,      /* in the order keys came; keys by equivalence */
    GREMLIN_ENTRY,    /* a key and its value, as unfold() makes of maps */
    GREMLIN_VERTEX,
    GREMLIN_EDGE,
    GREMLIN_VERTEX_PROPERTY,
    GREMLIN_PROPERTY,
    GREMLIN_PATH,
    GREMLIN_TREE,
    GREMLIN_GRAPH, /* what subgraph() collects: vertices and edges */
    GREMLIN_TRAVERSER, /* a value and its bulk: results of bytecode */
    GREMLIN_PREDICATE, /* P and TextP */
    GREMLIN_TRAVERSAL, /* anonymous, as an argument; value/traversal.h */
    GREMLIN_STRATEGY,  /* a name and its configuration, a map */
    GREMLIN_CARDINAL,  /* a cardinality with a value: list('x') */
    GREMLIN_LAMBDA,    /* refused by whoever is to run it */
    GREMLIN_METRICS,   /* of profile(): the map that formats show */
    GREMLIN_EXPLANATION,
};

/* Enumerations: which one, and which of its words. Rows in enums.def. */
struct gremlin_enum {
    uint16_t family; /* GREMLIN_ENUM_T ... */
    uint16_t word;   /* GREMLIN_T_ID ... */
};

struct gremlin_heap;
struct gremlin_object {
    uint32_t references;
    uint32_t type;
    struct gremlin_heap *heap;
};

struct gremlin_value {
    enum gremlin_type type;
    union {
        bool boolean;
        int64_t integer; /* byte to long, char, date, timestamp */
        double real;     /* float and double */
        struct gremlin_enum word;
        struct gremlin_object *object;
    };
};
