/* Expressions are mostly of the type that their place wants, so that most of them come to
 * something; now and then they are of any type, so that undefined wanders through everything. */
#include "property/sql/queries.h"

enum { DEPTH = 3, ALIASES_MAX = 8 };

struct writer {
    struct random *random;
    struct buf *text;
    const char *aliases[ALIASES_MAX]; /* that may be named here; the first is the item */
    size_t alias_count;
    unsigned made; /* aliases so far, for names of their own */
};

enum want { WANT_NUMBER, WANT_TEXT, WANT_BOOL, WANT_ARRAY, WANT_ANY };

static void write_expr(struct writer *w, enum want want, unsigned depth);

static uint64_t below(struct writer *w, uint64_t limit)
{
    return random_below(w->random, limit);
}

static void put(struct writer *w, const char *text)
{
    buf_append_text(w->text, text);
}

static const char *const numbers[] = {"0", "1", "2", "3", "-1", "0.5", "2.5", "10", "-3"};
static const char *const texts[] = {"\"\"",  "\"a\"",   "\"b\"", "\"ab\"",
                                    "\"B\"", "\"abc\"", "\"zz\""};
static const char *const patterns[] = {"\"a%\"", "\"%b\"",  "\"_\"", "\"%\"",
                                       "\"a_\"", "\"%b%\"", "\"\""};
static const char *const paths[] = {".n", ".s", ".b", ".a", ".o", ".o.x", ".o.y", ".m", ".k", ".u"};
static const char *const number_paths[] = {".n", ".u", ".o.x", ".m"};
static const char *const text_paths[] = {".s", ".id", ".o.y", ".m"};

#define PICK(w, list) ((list)[below((w), ARRAY_LEN(list))])

/* --- Documents ---------------------------------------------------------------------------------
 */

static void write_json(struct writer *w, unsigned depth)
{
    static const char *const plain[] = {"null", "true", "false"};
    uint64_t kind = below(w, depth ? 9 : 7), count = below(w, 4);

    if (kind < 3) {
        put(w, PICK(w, numbers));
    } else if (kind < 6) {
        put(w, PICK(w, texts));
    } else if (kind == 6) {
        put(w, PICK(w, plain));
    } else if (kind == 7) {
        put(w, "[");
        for (uint64_t i = 0; i < count; i++) {
            put(w, i ? "," : "");
            write_json(w, depth - 1);
        }
        put(w, "]");
    } else {
        put(w, "{\"x\":");
        write_json(w, depth - 1);
        put(w, count > 1 ? ",\"y\":" : "}");
        if (count > 1) {
            write_json(w, depth - 1);
            put(w, "}");
        }
    }
}

void random_document(struct random *random, unsigned number, struct buf *text)
{
    struct writer w = {.random = random, .text = text};
    uint64_t count = below(&w, 4);

    buf_printf(text, "{\"id\":\"i%u\",\"pk\":%u,\"u\":%u", number, (unsigned)below(&w, 7), number);
    if (below(&w, 8))
        buf_printf(text, ",\"n\":%s", PICK(&w, numbers));
    if (below(&w, 8))
        buf_printf(text, ",\"s\":%s", PICK(&w, texts));
    if (below(&w, 4))
        buf_printf(text, ",\"b\":%s", below(&w, 2) ? "true" : "false");
    if (below(&w, 4)) {
        put(&w, ",\"m\":");
        write_json(&w, 2);
    }
    buf_printf(text, ",\"o\":{\"x\":%s,\"y\":%s}", PICK(&w, numbers), PICK(&w, texts));
    put(&w, ",\"a\":[");
    for (uint64_t i = 0; i < count; i++) {
        put(&w, i ? "," : "");
        write_json(&w, 0);
    }
    put(&w, "],\"k\":[");
    count = below(&w, 3);
    for (uint64_t i = 0; i < count; i++)
        buf_printf(text, "%s{\"n\":%s,\"s\":%s,\"a\":[%s,%s]}", i ? "," : "", PICK(&w, numbers),
                   PICK(&w, texts), PICK(&w, numbers), PICK(&w, texts));
    put(&w, "]}");
}

/* --- Expressions -------------------------------------------------------------------------------
 */

static void write_path(struct writer *w, enum want want)
{
    const char *alias = w->aliases[below(w, 2) ? 0 : below(w, w->alias_count)];

    put(w, alias);
    if (alias != w->aliases[0] && !below(w, 3))
        return; /* the element itself */
    if (want == WANT_NUMBER)
        put(w, PICK(w, number_paths));
    else if (want == WANT_TEXT)
        put(w, PICK(w, text_paths));
    else if (want == WANT_BOOL)
        put(w, ".b");
    else if (want == WANT_ARRAY)
        put(w, below(w, 3) ? ".a" : ".k");
    else
        put(w, PICK(w, paths));
    if (want == WANT_ANY && !below(w, 6))
        put(w, below(w, 2) ? "[0]" : "[1]");
}

static void write_leaf(struct writer *w, enum want want)
{
    static const char *const any[] = {"null", "undefined", "true", "[]", "[1,\"a\"]", "{\"x\":1}"};

    if (below(w, 3)) {
        write_path(w, want);
        return;
    }
    if (want == WANT_NUMBER)
        put(w, PICK(w, numbers));
    else if (want == WANT_TEXT)
        put(w, PICK(w, texts));
    else if (want == WANT_BOOL)
        put(w, below(w, 2) ? "true" : "false");
    else if (want == WANT_ARRAY)
        put(w, "[1, \"a\", null, 0.5]");
    else
        put(w, PICK(w, any));
}

/* name(expr [, expr]) */
static void write_call(struct writer *w, const char *name, enum want first, enum want second,
                       bool two, unsigned depth)
{
    put(w, name);
    put(w, "(");
    write_expr(w, first, depth);
    if (two) {
        put(w, ", ");
        write_expr(w, second, depth);
    }
    put(w, ")");
}

static void write_binary(struct writer *w, enum want want, const char *op, unsigned depth)
{
    put(w, "(");
    write_expr(w, want, depth);
    put(w, op);
    write_expr(w, want, depth);
    put(w, ")");
}

/* (SELECT VALUE aggregate FROM alias IN array WHERE ...), EXISTS and ARRAY of the like. */
static void write_subquery(struct writer *w, enum want want, unsigned depth)
{
    static const char *const aggregates[] = {"COUNT", "SUM", "MIN", "MAX", "AVG"};
    static const char *const names[] = {"p", "q", "r", "t"};
    const char *alias = names[w->made++ % ARRAY_LEN(names)];
    size_t count = w->alias_count;

    put(w, want == WANT_BOOL    ? "EXISTS(SELECT VALUE "
           : want == WANT_ARRAY ? "ARRAY(SELECT VALUE "
                                : "(SELECT VALUE ");
    w->aliases[w->alias_count++] = alias;
    if (want == WANT_BOOL || want == WANT_ARRAY)
        write_expr(w, WANT_ANY, depth);
    else
        buf_printf(w->text, "%s(%s)", PICK(w, aggregates), alias);
    w->alias_count--;
    buf_printf(w->text, " FROM %s IN ", alias);
    buf_append_text(w->text, w->aliases[0]);
    put(w, below(w, 2) ? ".a" : ".k");
    w->alias_count = count + 1;
    if (below(w, 2)) {
        put(w, " WHERE ");
        write_expr(w, WANT_BOOL, depth);
    }
    if (want == WANT_ARRAY && !below(w, 3))
        put(w, below(w, 2) ? " OFFSET 0 LIMIT 2" : " OFFSET 1 LIMIT 1");
    w->alias_count = count;
    put(w, ")");
}

static void write_number(struct writer *w, unsigned depth)
{
    static const char *const ops[] = {" + ", " - ", " * ", " / ", " % "};

    switch (below(w, 7)) {
    case 0:
    case 1:
        write_binary(w, WANT_NUMBER, PICK(w, ops), depth);
        return;
    case 2:
        write_call(w, below(w, 2) ? "ABS" : "FLOOR", WANT_NUMBER, WANT_ANY, false, depth);
        return;
    case 3:
        write_call(w, "ARRAY_LENGTH", WANT_ARRAY, WANT_ANY, false, depth);
        return;
    case 4:
        write_call(w, "LENGTH", WANT_TEXT, WANT_ANY, false, depth);
        return;
    case 5:
        if (w->alias_count < ALIASES_MAX - 1) {
            write_subquery(w, WANT_NUMBER, depth);
            return;
        }
        break;
    default:
        break;
    }
    put(w, "(- ");
    write_expr(w, WANT_NUMBER, depth);
    put(w, ")");
}

static void write_text(struct writer *w, unsigned depth)
{
    switch (below(w, 3)) {
    case 0:
        write_binary(w, WANT_TEXT, " || ", depth);
        return;
    case 1:
        write_call(w, "LOWER", WANT_TEXT, WANT_ANY, false, depth);
        return;
    default:
        write_call(w, "CONCAT", WANT_TEXT, WANT_TEXT, true, depth);
        return;
    }
}

static void write_in(struct writer *w, enum want want, unsigned depth)
{
    uint64_t count = 1 + below(w, 3);

    put(w, "(");
    write_expr(w, want, depth);
    put(w, below(w, 4) ? " IN (" : " NOT IN (");
    for (uint64_t i = 0; i < count; i++) {
        put(w, i ? ", " : "");
        write_expr(w, want, 0);
    }
    put(w, "))");
}

static void write_between(struct writer *w, enum want want, unsigned depth)
{
    put(w, "(");
    write_expr(w, want, depth);
    put(w, below(w, 4) ? " BETWEEN " : " NOT BETWEEN ");
    write_expr(w, want, 0);
    put(w, " AND ");
    write_expr(w, want, 0);
    put(w, ")");
}

static void write_like(struct writer *w, unsigned depth)
{
    put(w, "(");
    write_expr(w, WANT_TEXT, depth);
    put(w, below(w, 4) ? " LIKE " : " NOT LIKE ");
    put(w, PICK(w, patterns));
    put(w, ")");
}

static void write_bool(struct writer *w, unsigned depth)
{
    static const char *const ops[] = {" = ", " != ", " < ", " <= ", " > ", " >= "};
    static const char *const checks[] = {"IS_DEFINED", "IS_NULL",  "IS_NUMBER", "IS_STRING",
                                         "IS_BOOL",    "IS_ARRAY", "IS_OBJECT", "IS_PRIMITIVE"};
    enum want want = (enum want)below(w, 3) == 2 ? WANT_ANY : (enum want)below(w, 2);

    switch (below(w, 12)) {
    case 0:
    case 1:
    case 2:
        write_binary(w, want, PICK(w, ops), depth);
        return;
    case 3:
        write_binary(w, WANT_BOOL, " AND ", depth);
        return;
    case 4:
        write_binary(w, WANT_BOOL, " OR ", depth);
        return;
    case 5:
        put(w, "(NOT ");
        write_expr(w, WANT_BOOL, depth);
        put(w, ")");
        return;
    case 6:
        write_in(w, want, depth);
        return;
    case 7:
        write_between(w, want, depth);
        return;
    case 8:
        write_like(w, depth);
        return;
    case 9:
        write_call(w, PICK(w, checks), WANT_ANY, WANT_ANY, false, depth);
        return;
    case 10:
        if (below(w, 2))
            write_call(w, "ARRAY_CONTAINS", WANT_ARRAY, WANT_ANY, true, depth);
        else
            write_call(w, below(w, 2) ? "CONTAINS" : "STARTSWITH", WANT_TEXT, WANT_TEXT, true,
                       depth);
        return;
    default:
        if (w->alias_count < ALIASES_MAX - 1)
            write_subquery(w, WANT_BOOL, depth);
        else
            put(w, "true");
        return;
    }
}

static void write_array(struct writer *w, unsigned depth)
{
    if (!below(w, 3)) {
        write_call(w, "ARRAY_CONCAT", WANT_ARRAY, WANT_ARRAY, true, depth);
    } else if (below(w, 2) && w->alias_count < ALIASES_MAX - 1) {
        write_subquery(w, WANT_ARRAY, depth);
    } else {
        put(w, "[");
        write_expr(w, WANT_ANY, depth);
        put(w, ", ");
        write_expr(w, WANT_ANY, depth);
        put(w, "]");
    }
}

static void write_any(struct writer *w, unsigned depth)
{
    switch (below(w, 8)) {
    case 0:
        put(w, "{\"x\": ");
        write_expr(w, WANT_ANY, depth);
        put(w, ", \"y\": ");
        write_expr(w, WANT_ANY, depth);
        put(w, "}");
        return;
    case 1:
        put(w, "(");
        write_expr(w, WANT_BOOL, depth);
        put(w, " ? ");
        write_expr(w, WANT_ANY, depth);
        put(w, " : ");
        write_expr(w, WANT_ANY, depth);
        put(w, ")");
        return;
    case 2:
        write_binary(w, WANT_ANY, " ?? ", depth);
        return;
    default:
        write_expr(w, (enum want)below(w, WANT_ANY), depth);
        return;
    }
}

static void write_expr(struct writer *w, enum want want, unsigned depth)
{
    if (!below(w, 12))
        want = WANT_ANY;
    if (!depth || !below(w, 4)) {
        write_leaf(w, want);
        return;
    }
    switch (want) {
    case WANT_NUMBER:
        write_number(w, depth - 1);
        return;
    case WANT_TEXT:
        write_text(w, depth - 1);
        return;
    case WANT_BOOL:
        write_bool(w, depth - 1);
        return;
    case WANT_ARRAY:
        write_array(w, depth - 1);
        return;
    default:
        write_any(w, depth - 1);
        return;
    }
}

/* --- Queries -----------------------------------------------------------------------------------
 */

static void write_where(struct writer *w)
{
    if (!below(w, 3))
        return;
    put(w, " WHERE ");
    write_expr(w, WANT_BOOL, DEPTH);
}

/* FROM the item, an array of it, or with arrays joined to it. */
static void write_from(struct writer *w, struct buf *from)
{
    uint64_t kind = below(w, 6);

    w->aliases[w->alias_count++] = "c";
    if (kind == 0) {
        buf_append_text(from, " FROM c JOIN x IN c.a");
        w->aliases[w->alias_count++] = "x";
    } else if (kind == 1) {
        buf_append_text(from, " FROM c JOIN y IN c.k JOIN z IN y.a");
        w->aliases[w->alias_count++] = "y";
        w->aliases[w->alias_count++] = "z";
    } else if (kind == 2) {
        buf_append_text(from, " FROM c JOIN (SELECT VALUE v FROM v IN c.a WHERE IS_NUMBER(v)) x");
        w->aliases[w->alias_count++] = "x";
    } else {
        buf_append_text(from, " FROM c");
    }
}

static bool write_cut(struct writer *w)
{
    if (below(w, 4))
        return false;
    buf_printf(w->text, " OFFSET %u LIMIT %u", (unsigned)below(w, 6), (unsigned)below(w, 9));
    return true;
}

static enum random_promise write_ordered(struct writer *w)
{
    static const char *const keys[] = {".n", ".s", ".o.x", ".m", ".u", ".id"};
    uint64_t key = below(w, ARRAY_LEN(keys));
    bool unique = key >= 4;

    w->aliases[w->alias_count++] = "c";
    buf_printf(w->text, "SELECT VALUE [c%s, c.u] FROM c WHERE IS_DEFINED(c%s)", keys[key],
               keys[key]);
    if (below(w, 2)) {
        put(w, " AND ");
        write_expr(w, WANT_BOOL, DEPTH);
    }
    buf_printf(w->text, " ORDER BY c%s%s", keys[key], below(w, 2) ? " DESC" : "");
    write_cut(w);
    return unique ? RANDOM_SEQUENCE : RANDOM_KEYS;
}

static void write_aggregates(struct writer *w)
{
    static const char *const names[] = {"COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF"};
    uint64_t count = 1 + below(w, 3);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t name = below(w, ARRAY_LEN(names));
        size_t aliases = w->alias_count;

        buf_printf(w->text, "%s%s(", i ? ", " : "", names[name]);
        w->alias_count = ALIASES_MAX; /* no subquery may stand in an aggregate */
        for (size_t j = aliases; j < ALIASES_MAX; j++)
            w->aliases[j] = w->aliases[j % aliases];
        write_leaf(w, name == 5 ? WANT_BOOL : name < 3 ? WANT_NUMBER : WANT_ANY);
        w->alias_count = aliases;
        buf_printf(w->text, ") AS a%u", (unsigned)i);
    }
}

static enum random_promise write_grouped(struct writer *w, struct buf *from)
{
    static const char *const keys[] = {"c.n", "c.s",     "c.b",       "c.o.y",
                                       "c.m", "c.n > 1", "LOWER(c.s)"};
    const char *first = PICK(w, keys), *second = PICK(w, keys);
    bool two = first != second && below(w, 2);

    buf_printf(w->text, "SELECT %s AS k0, ", first);
    if (two)
        buf_printf(w->text, "%s AS k1, ", second);
    write_aggregates(w);
    buf_append_slice(w->text, buf_slice(from));
    write_where(w);
    buf_printf(w->text, " GROUP BY %s", first);
    if (two)
        buf_printf(w->text, ", %s", second);
    return RANDOM_ROWS;
}

enum random_promise random_query(struct random *random, struct buf *text)
{
    CLEANUP(buf_done) struct buf from;
    struct writer w = {.random = random, .text = text};
    uint64_t kind = below(&w, 10);

    buf_init(&from, BUF_DEFAULT_MAX);
    if (kind < 3)
        return write_ordered(&w);
    write_from(&w, &from);
    if (kind == 3)
        return write_grouped(&w, &from);
    put(&w, kind == 5 ? "SELECT DISTINCT VALUE " : kind == 4 ? "SELECT " : "SELECT VALUE ");
    if (kind == 4)
        write_aggregates(&w);
    else
        write_expr(&w, WANT_ANY, DEPTH);
    buf_append_slice(text, buf_slice(&from));
    write_where(&w);
    if (kind == 4)
        return RANDOM_ROWS;
    return write_cut(&w) ? RANDOM_COUNT : RANDOM_ROWS;
}
