/* Value: whatever a traversal passes on, takes as an argument or gives as a result.
 *
 * A value is two words, passed by copy. Numbers, truth, dates and enumerations stand in it;
 * everything else is an object on the heap of its request, counted by references. A function that
 * makes a value gives its caller one reference; arguments are borrowed unless a name says `take`.
 * Objects are immutable once a second reference exists; containers grow only while they are being
 * made, or by the one step that owns them (side effects).
 *
 * Counts are not atomic: the values of a request belong to the one thread that runs it at a time.
 * Whatever other threads read for it arrives as BSON and becomes values there. The exception is a
 * shared heap, whose objects are never counted and live as long as it does: traversals kept for
 * several requests.
 *
 * A heap counts what its values take on the account's meter and fails once the request's limit is
 * reached (gremlin_heap_failed), so that a runaway path or group ends in an error, not in the
 * kernel's. Makers never return NULL: past the limit they go on for a bounded while, and the run
 * looks at the heap with every batch.
 *
 * Here: scalars, texts and bytes. container.h has lists, sets, maps; element.h vertices, edges,
 * properties, paths; special.h predicates, strategies and what else is only an argument or a
 * result; traversal.h traversals; compare.h, arithmetic.h and text.h what is done with them. */
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
    GREMLIN_BIG_INTEGER, /* its decimal digits, as text; big.h */
    GREMLIN_BIG_DECIMAL, /* likewise: digits, point, exponent */
    GREMLIN_STRING,
    GREMLIN_UUID,      /* 16 bytes */
    GREMLIN_BINARY,    /* bytes */
    GREMLIN_CLASS,     /* a name, as text */
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
    GREMLIN_GRAPH,     /* what subgraph() collects: vertices and edges */
    GREMLIN_TRAVERSER, /* a value and its bulk: results of bytecode */
    GREMLIN_PREDICATE, /* P and TextP */
    GREMLIN_TRAVERSAL, /* anonymous, as an argument; value/traversal.h */
    GREMLIN_STRATEGY,  /* a name and its configuration, a map */
    GREMLIN_CARDINAL,  /* a cardinality with a value: list('x') */
    GREMLIN_LAMBDA,    /* refused by whoever is to run it */
    GREMLIN_METRICS,   /* of profile(): the map that formats show */
    GREMLIN_EXPLANATION,
    GREMLIN_PROPERTIES, /* never values: what elements hold (element.h) */
    GREMLIN_STORED,
};

#define GREMLIN_FIRST_OBJECT GREMLIN_BIG_INTEGER

/* Enumerations: which one, and which of its words. Rows in enums.def. */
enum gremlin_enum_family {
#define GREMLIN_FAMILY_ROW(family, name, code) GREMLIN_ENUM_##family,
#include "front/gremlin/value/enums.def"
    GREMLIN_ENUM_COUNT
};

/* One list for all families: a word alone says which family it is of. */
enum gremlin_enum_word {
#define GREMLIN_WORD_ROW(family, word, text) GREMLIN_##family##_##word,
#include "front/gremlin/value/enums.def"
    GREMLIN_WORD_COUNT
};

struct gremlin_enum {
    uint16_t family; /* GREMLIN_ENUM_T ... */
    uint16_t word;   /* GREMLIN_T_ID ... */
};

struct gremlin_heap;
struct gremlin_object {
    uint32_t references; /* GREMLIN_FOREVER: not counted */
    uint32_t type;
    struct gremlin_heap *heap;
};

#define GREMLIN_FOREVER UINT32_MAX

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

/* --- The heap --------------------------------------------------------------------------------- */

struct gremlin_heap_options {
    size_t limit;               /* bytes after which it has failed; 0: none */
    struct memory_meter *meter; /* NULL: none; borrowed */
    bool shared;                /* nothing is counted or given back before the heap is freed */
};

struct gremlin_heap *gremlin_heap_new(const struct gremlin_heap_options *options);
/* Frees all its values, whatever their counts. NULL is fine. */
void gremlin_heap_free(struct gremlin_heap *heap);
CLEANUP_FN(struct gremlin_heap *, gremlin_heap_free)

/* Another limit from now on (0: none): whether it is passed is told by what is held then. */
void gremlin_heap_set_limit(struct gremlin_heap *heap, size_t limit);

/* Has the limit, or the meter's maximum, been passed? It stays so. */
bool gremlin_heap_failed(const struct gremlin_heap *heap);
/* The error of a heap that failed: ERROR_TOO_LARGE by its own limit, ERROR_MEMORY_FULL by the
 * meter. Returns false. */
bool gremlin_heap_error(const struct gremlin_heap *heap, struct error *err);

/* Bytes held of the machine; bytes of values that live now. */
size_t gremlin_heap_held(const struct gremlin_heap *heap);
size_t gremlin_heap_used(const struct gremlin_heap *heap);

/* A secret of its own, for hashes (compare.h). */
uint64_t gremlin_heap_seed(const struct gremlin_heap *heap);

/* For makers of objects: memory with the header filled, one reference; and memory that belongs to
 * an object (arrays), whose size its owner remembers. */
void *gremlin_object_new(struct gremlin_heap *heap, enum gremlin_type type, size_t size)
    __attribute__((returns_nonnull));
void *gremlin_heap_alloc(struct gremlin_heap *heap, size_t size) __attribute__((returns_nonnull));
void *gremlin_heap_grow(struct gremlin_heap *heap, void *old, size_t old_size, size_t size)
    __attribute__((returns_nonnull));
void gremlin_heap_release(struct gremlin_heap *heap, void *memory, size_t size);

/* --- References ------------------------------------------------------------------------------- */

/* What the last unref calls: frees the object and lets go of what it holds, without recursion. */
void gremlin_object_release(struct gremlin_object *object);

static inline bool gremlin_is_object(struct gremlin_value value)
{
    return value.type >= GREMLIN_FIRST_OBJECT;
}

static inline void *gremlin_object_ref(void *pointer)
{
    struct gremlin_object *object = pointer;

    if (object && object->references != GREMLIN_FOREVER)
        object->references++;
    return pointer;
}

static inline void gremlin_object_unref(void *pointer) /* NULL is fine */
{
    struct gremlin_object *object = pointer;

    if (object && object->references != GREMLIN_FOREVER && !--object->references)
        gremlin_object_release(object);
}

static inline struct gremlin_value gremlin_value_ref(struct gremlin_value value)
{
    if (gremlin_is_object(value))
        gremlin_object_ref(value.object);
    return value;
}

static inline void gremlin_value_unref(struct gremlin_value value)
{
    if (gremlin_is_object(value))
        gremlin_object_unref(value.object);
}

/* CLEANUP(gremlin_value_unref) struct gremlin_value v = ...; give it away with
 * gremlin_value_take(&v). */
static inline void gremlin_value_unref_cleanup_(struct gremlin_value *value)
{
    gremlin_value_unref(*value);
}

static inline struct gremlin_value gremlin_value_take(struct gremlin_value *value)
{
    struct gremlin_value taken = *value;

    *value = (struct gremlin_value){.type = GREMLIN_NULL};
    return taken;
}

/* Puts a value in the place of another, which is let go of. */
static inline void gremlin_value_replace_take(struct gremlin_value *place,
                                              struct gremlin_value value)
{
    struct gremlin_value before = *place;

    *place = value;
    gremlin_value_unref(before);
}

/* The value of an object: takes the caller's reference. */
static inline struct gremlin_value gremlin_value_of_take(void *pointer)
{
    struct gremlin_object *object = pointer;

    return (struct gremlin_value){.type = (enum gremlin_type)object->type, .object = object};
}

/* The same value on another heap, with all that hangs on it (variables of sessions). Elements are
 * copied with the properties they have now. Not for predicates, traversals and other arguments.
 * Fails as sources do, and with ERROR_TOO_DEEP. */
NODISCARD bool gremlin_value_copy(struct gremlin_heap *heap, struct gremlin_value value,
                                  struct gremlin_value *ret_value, struct error *err);

/* --- Scalars ---------------------------------------------------------------------------------- */

#define GREMLIN_NOTHING ((struct gremlin_value){.type = GREMLIN_NULL})

static inline struct gremlin_value gremlin_boolean(bool boolean)
{
    return (struct gremlin_value){.type = GREMLIN_BOOLEAN, .integer = boolean};
}

/* Of type byte, short, int, long, char, date, timestamp; the caller sees to the range. */
static inline struct gremlin_value gremlin_integer(enum gremlin_type type, int64_t number)
{
    return (struct gremlin_value){.type = type, .integer = number};
}

static inline struct gremlin_value gremlin_int(int32_t number)
{
    return gremlin_integer(GREMLIN_INT, number);
}

static inline struct gremlin_value gremlin_long(int64_t number)
{
    return gremlin_integer(GREMLIN_LONG, number);
}

static inline struct gremlin_value gremlin_double(double number)
{
    return (struct gremlin_value){.type = GREMLIN_DOUBLE, .real = number};
}

static inline struct gremlin_value gremlin_float(float number)
{
    return (struct gremlin_value){.type = GREMLIN_FLOAT, .real = (double)number};
}

static inline struct gremlin_value gremlin_date(int64_t ms)
{
    return gremlin_integer(GREMLIN_DATE, ms);
}

/* An int where it fits, else a long: bare numbers of JSON and scripts. */
static inline struct gremlin_value gremlin_whole(int64_t number)
{
    return gremlin_integer(number == (int32_t)number ? GREMLIN_INT : GREMLIN_LONG, number);
}

static inline bool gremlin_is_null(struct gremlin_value value)
{
    return value.type == GREMLIN_NULL;
}

static inline bool gremlin_is_whole(struct gremlin_value value) /* byte to long */
{
    return value.type >= GREMLIN_BYTE && value.type <= GREMLIN_LONG;
}

static inline bool gremlin_is_number(struct gremlin_value value)
{
    return (value.type >= GREMLIN_BYTE && value.type <= GREMLIN_DOUBLE) ||
           value.type == GREMLIN_BIG_INTEGER || value.type == GREMLIN_BIG_DECIMAL;
}

/* Numbers as the nearest double; as a whole number of 64 bits, cut if real, false if it is none or
 * does not fit. */
double gremlin_number_double(struct gremlin_value number);
NODISCARD bool gremlin_number_long(struct gremlin_value number, int64_t *ret_number);

/* --- Enumerations ----------------------------------------------------------------------------- */

struct gremlin_value gremlin_word(enum gremlin_enum_word word);
/* The word of a text in a family. False: it has none such. */
NODISCARD bool gremlin_word_find(enum gremlin_enum_family family, struct slice text,
                                 struct gremlin_value *ret_value);
/* The family of a name ("T", "Order"). */
NODISCARD bool gremlin_family_find(struct slice name, enum gremlin_enum_family *ret_family);
struct slice gremlin_family_name(enum gremlin_enum_family family);
uint8_t gremlin_family_code(enum gremlin_enum_family family); /* in GraphBinary */
struct slice gremlin_word_text(struct gremlin_enum word);
/* desc for decr, OUT for from, and so on. */
enum gremlin_enum_word gremlin_word_canonical(enum gremlin_enum_word word);

static inline bool gremlin_is_word(struct gremlin_value value, enum gremlin_enum_word word)
{
    return value.type == GREMLIN_ENUM && value.word.word == word;
}

/* --- Texts and bytes -------------------------------------------------------------------------- */

/* Strings, uuids, binaries, class names, big numbers: bytes in one piece with their header. Text
 * is UTF-8 as documents hold it (document/utf8.h). */
struct gremlin_bytes {
    struct gremlin_object object;
    uint32_t len;
    uint8_t data[];
};

enum { GREMLIN_BYTES_MAX = 1 << 30 };

/* type is one of those above; at most GREMLIN_BYTES_MAX bytes. */
struct gremlin_value gremlin_bytes_new(struct gremlin_heap *heap, enum gremlin_type type,
                                       struct slice bytes);
/* Room for len bytes that the caller fills through ret_data before anybody sees them. */
struct gremlin_value gremlin_bytes_room(struct gremlin_heap *heap, enum gremlin_type type,
                                        size_t len, uint8_t **ret_data);

static inline struct gremlin_value gremlin_string(struct gremlin_heap *heap, struct slice text)
{
    return gremlin_bytes_new(heap, GREMLIN_STRING, text);
}

/* Of any value that is bytes; borrowed while the value is held. */
static inline struct slice gremlin_bytes(struct gremlin_value value)
{
    const struct gremlin_bytes *bytes = (const struct gremlin_bytes *)value.object;

    return slice_of(bytes->data, bytes->len);
}

static inline bool gremlin_is_string(struct gremlin_value value)
{
    return value.type == GREMLIN_STRING;
}

static inline bool gremlin_is_text(struct gremlin_value value, struct slice text)
{
    return value.type == GREMLIN_STRING && slice_equal(gremlin_bytes(value), text);
}

/* The 16 bytes of text in the usual form with dashes, and back in lower case. */
enum { GREMLIN_UUID_TEXT = 36 };
NODISCARD bool gremlin_uuid_parse(struct slice text, uint8_t ret_bytes[16]);
void gremlin_uuid_format(const uint8_t bytes[16], char ret_text[GREMLIN_UUID_TEXT]);

/* --- Time ------------------------------------------------------------------------------------- */

struct gremlin_date_time {
    struct gremlin_object object;
    int64_t seconds; /* since 1970 in UTC */
    int32_t nanoseconds;
    int32_t offset; /* seconds east of UTC */
};

struct gremlin_duration {
    struct gremlin_object object;
    int64_t seconds; /* floored */
    int32_t nanoseconds;
};

/* Instant, LocalDate, LocalTime, LocalDateTime, MonthDay, OffsetTime, Period, Year, YearMonth,
 * ZonedDateTime, ZoneOffset: the name and the ISO text, as formats write them. */
struct gremlin_temporal {
    struct gremlin_object object;
    uint32_t name_len, len;
    uint8_t data[]; /* name, then text */
};

struct gremlin_value gremlin_date_time_new(struct gremlin_heap *heap, int64_t seconds,
                                           int32_t nanoseconds, int32_t offset);
struct gremlin_value gremlin_duration_new(struct gremlin_heap *heap, int64_t seconds,
                                          int32_t nanoseconds);
struct gremlin_value gremlin_temporal_new(struct gremlin_heap *heap, struct slice name,
                                          struct slice text);

static inline const struct gremlin_date_time *gremlin_date_time(struct gremlin_value value)
{
    return (const struct gremlin_date_time *)value.object;
}

static inline const struct gremlin_duration *gremlin_duration(struct gremlin_value value)
{
    return (const struct gremlin_duration *)value.object;
}

static inline struct slice gremlin_temporal_name(struct gremlin_value value)
{
    const struct gremlin_temporal *temporal = (const struct gremlin_temporal *)value.object;

    return slice_of(temporal->data, temporal->name_len);
}

static inline struct slice gremlin_temporal_text(struct gremlin_value value)
{
    const struct gremlin_temporal *temporal = (const struct gremlin_temporal *)value.object;

    return slice_of(temporal->data + temporal->name_len, temporal->len);
}
