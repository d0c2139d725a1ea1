/* One table made from settings.def drives everything: parsing, defaults, ranges, help and the
 * manual page. A row knows the place of its member in struct settings, so there is no code per
 * setting and none can be listed without being stored. That each is also used is the business of
 * whoever adds a row. */
#include "server/settings.h"

#include "base/memory.h"
#include "base/nearest.h"
#include "cluster/node.h"
#include "document/json.h"

enum kind { KIND_BOOL, KIND_INT, KIND_SIZE, KIND_DURATION, KIND_CHOICE, KIND_TEXT };

struct row {
    const char *section;
    const char *name;     /* "section.name" */
    const char *variable; /* "section_name": what follows ORRERY_, in small letters */
    enum kind kind;
    size_t offset; /* in struct settings */
    int64_t preset, min, max;
    const char *text; /* choices "a|b", or the default of a text */
    const char *meaning;
};

/* clang-format off */
#define ROW(section, name) #section, #section "." #name, #section "_" #name
#define AT(section, name) offsetof(struct settings, section##_##name)
static const struct row rows[] = {
#define SETTING_BOOL(section, name, preset, meaning)                                               \
    {ROW(section, name), KIND_BOOL, AT(section, name), preset, 0, 1, NULL, meaning},
#define SETTING_INT(section, name, preset, min, max, meaning)                                      \
    {ROW(section, name), KIND_INT, AT(section, name), preset, min, max, NULL, meaning},
#define SETTING_SIZE(section, name, preset, min, max, meaning)                                     \
    {ROW(section, name), KIND_SIZE, AT(section, name), preset, min, max, NULL, meaning},
#define SETTING_DURATION(section, name, preset, min, max, meaning)                                 \
    {ROW(section, name), KIND_DURATION, AT(section, name), preset, min, max, NULL, meaning},
#define SETTING_CHOICE(section, name, preset, choices, meaning)                                    \
    {ROW(section, name), KIND_CHOICE, AT(section, name), preset, 0, 0, choices, meaning},
#define SETTING_TEXT(section, name, preset, meaning)                                               \
    {ROW(section, name), KIND_TEXT, AT(section, name), 0, 0, 0, preset, meaning},
#include "server/settings_rows.h"
};
/* clang-format on */

static const struct row *row_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (slice_equal(name, slice_of_text(rows[i].name)))
            return &rows[i];
    return NULL;
}

static void row_store_number(struct settings *settings, const struct row *row, int64_t value)
{
    void *member = (char *)settings + row->offset;

    if (row->kind == KIND_BOOL)
        *(bool *)member = value;
    else
        *(int64_t *)member = value;
}

static void row_store_text(struct settings *settings, const struct row *row, struct slice value)
{
    *(const char **)((char *)settings + row->offset) = arena_text(settings->arena, value);
}

struct settings *settings_new(void)
{
    struct settings *settings = MEMORY_NEW(struct settings);

    settings->arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].kind == KIND_TEXT)
            row_store_text(settings, &rows[i], slice_of_text(rows[i].text));
        else
            row_store_number(settings, &rows[i], rows[i].preset);
    }
    return settings;
}

void settings_free(struct settings *settings)
{
    if (settings)
        arena_free(settings->arena);
    memory_free(settings);
}

/* --- Values ---------------------------------------------------------------------------------- */

struct unit {
    const char *suffix;
    int64_t factor;
};

/* From the largest, so that printing finds the shortest form. */
static const struct unit size_units[] = {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"", 1}};
static const struct unit duration_units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

static bool number_parse(struct slice value, const struct unit *units, size_t count,
                         int64_t *ret_number)
{
    struct slice digits = value, suffix;
    uint64_t number;

    while (digits.len && (digits.data[digits.len - 1] < '0' || digits.data[digits.len - 1] > '9'))
        digits.len--;
    suffix = slice_skip(value, digits.len);
    if (!slice_to_uint64(digits, &number) || number > INT64_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (slice_equal_nocase(suffix, slice_of_text(units[i].suffix)))
            return !__builtin_mul_overflow((int64_t)number, units[i].factor, ret_number);
    *ret_number = 0;
    return number == 0 && suffix.len == 0; /* nothing needs no unit */
}

static bool bool_parse(struct slice value, int64_t *ret_number)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        for (int truth = 0; truth < 2; truth++)
            if (slice_equal(value, slice_of_text(words[i][truth]))) {
                *ret_number = truth;
                return true;
            }
    return false;
}

static bool choice_parse(struct slice value, const char *choices, int64_t *ret_number)
{
    struct slice rest = slice_of_text(choices), choice;

    for (int64_t i = 0;; i++) {
        bool last = !slice_split(rest, '|', &choice, &rest);

        if (slice_equal(value, last ? rest : choice)) {
            *ret_number = i;
            return true;
        }
        if (last)
            return false;
    }
}

static bool row_parse(const struct row *row, struct slice value, int64_t *ret_number)
{
    static const struct unit plain[] = {{"", 1}};

    switch (row->kind) {
    case KIND_BOOL:
        return bool_parse(value, ret_number);
    case KIND_INT:
        return number_parse(value, plain, ARRAY_LEN(plain), ret_number);
    case KIND_SIZE:
        return number_parse(value, size_units, ARRAY_LEN(size_units), ret_number);
    case KIND_DURATION:
        return number_parse(value, duration_units, ARRAY_LEN(duration_units), ret_number);
    case KIND_CHOICE:
        return choice_parse(value, row->text, ret_number);
    case KIND_TEXT:
        break;
    }
    assert(!"texts have no number");
    return false;
}

/* Prints a number as row_parse reads it: "16M", "30s". */
static void number_print(struct buf *out, enum kind kind, int64_t number)
{
    const struct unit *units = kind == KIND_SIZE ? size_units : duration_units;
    size_t i = 0;

    if (kind == KIND_INT || number == 0) {
        buf_append_int64(out, number);
        return;
    }
    while (number % units[i].factor)
        i++;
    buf_append_int64(out, number / units[i].factor);
    buf_append_text(out, units[i].suffix);
}

/* What a value may look like: "4K to 1G", "true or false". */
static void range_print(struct buf *out, const struct row *row)
{
    switch (row->kind) {
    case KIND_BOOL:
        BUF_APPEND(out, "true or false");
        break;
    case KIND_CHOICE:
        for (const char *c = row->text; *c; c++)
            if (*c == '|')
                BUF_APPEND(out, ", ");
            else
                buf_append_byte(out, (uint8_t)*c);
        break;
    case KIND_TEXT:
        BUF_APPEND(out, "text");
        break;
    case KIND_INT:
    case KIND_SIZE:
    case KIND_DURATION:
        number_print(out, row->kind, row->min);
        BUF_APPEND(out, " to ");
        number_print(out, row->kind, row->max);
        break;
    }
}

static void preset_print(struct buf *out, const struct row *row)
{
    struct slice choices = slice_of_text(row->text ? row->text : ""), choice = choices;

    switch (row->kind) {
    case KIND_BOOL:
        buf_append_text(out, row->preset ? "true" : "false");
        break;
    case KIND_CHOICE:
        for (int64_t i = 0; i <= row->preset; i++)
            if (!slice_split(choices, '|', &choice, &choices))
                choice = choices;
        buf_append_slice(out, choice);
        break;
    case KIND_TEXT:
        buf_append_text(out, row->text[0] ? row->text : "empty");
        break;
    case KIND_INT:
    case KIND_SIZE:
    case KIND_DURATION:
        number_print(out, row->kind, row->preset);
        break;
    }
}

/* --- Setting one ----------------------------------------------------------------------------- */

/* Names the place a fault was seen at: `orrery.conf:12`, `ORRERY_LOG_LEVEL`, `--set`. */
static bool blame(const struct settings_source *source, struct error *err)
{
    if (source->line)
        return error_prefix(err, "%s:%u", source->place, source->line);
    return error_prefix(err, "%s", source->place);
}

static bool value_wrong(const struct row *row, struct slice value, struct error *err)
{
    CLEANUP(buf_done) struct buf range;
    const char *hint = row->kind == KIND_DURATION ? " (500ms, 30s, 5m)"
                       : row->kind == KIND_SIZE   ? " (4096, 64K, 16M, 1G)"
                                                  : "";

    buf_init(&range, 1024);
    range_print(&range, row);
    return error_set(err, ERROR_CONFIGURATION, "setting \"%s\" cannot be \"%.*s\": it takes %.*s%s",
                     row->name, (int)MIN(value.len, (size_t)80), (const char *)value.data,
                     SLICE_ARG(buf_slice(&range)), hint);
}

static bool node_name_valid(struct slice name)
{
    if (name.len == 0 || name.len > SETTINGS_NODE_NAME_MAX || name.data[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return true;
}

static bool node_name_set(struct settings *settings, struct slice name, struct slice url,
                          enum settings_layer layer, struct error *err)
{
    struct settings_node *node = NULL;

    if (!node_name_valid(name))
        return error_set(err, ERROR_CONFIGURATION,
                         "node name \"%.*s\" is not one to %d small letters, digits and hyphens",
                         (int)MIN(name.len, (size_t)80), (const char *)name.data,
                         SETTINGS_NODE_NAME_MAX);
    if (url.len == 0)
        return error_set(err, ERROR_CONFIGURATION, "node \"%.*s\" has no url", SLICE_ARG(name));
    for (size_t i = 0; i < settings->node_count; i++)
        if (slice_equal(name, slice_of_text(settings->nodes[i].name)))
            node = &settings->nodes[i];
    if (node && node->layer == layer)
        return error_set(err, ERROR_CONFIGURATION, "node \"%.*s\" is named twice", SLICE_ARG(name));
    if (!node && settings->node_count == SETTINGS_NODES_MAX)
        return error_set(err, ERROR_CONFIGURATION, "more than %d nodes are named",
                         SETTINGS_NODES_MAX);
    if (!node)
        node = &settings->nodes[settings->node_count++];
    node->name = arena_text(settings->arena, name);
    node->url = arena_text(settings->arena, url);
    node->layer = layer;
    return true;
}

/* The value is tried on a node nobody has. */
static bool attribute_set(struct settings *settings, struct slice node, struct slice name,
                          struct slice value, enum settings_layer layer, struct error *err)
{
    CLEANUP(memory_free) struct node_info *trial = MEMORY_NEW(struct node_info);
    struct settings_attribute *attribute = NULL;

    if (!node_set(trial, name, value, err)) {
        struct error reason = *err;

        return error_set(err, ERROR_CONFIGURATION, "node \"%.*s\": %s", SLICE_ARG(node),
                         reason.message);
    }
    for (size_t i = 0; i < settings->attribute_count; i++)
        if (slice_equal(node, slice_of_text(settings->attributes[i].node)) &&
            slice_equal(name, slice_of_text(settings->attributes[i].name)))
            attribute = &settings->attributes[i];
    if (attribute && attribute->layer == layer)
        return error_set(err, ERROR_CONFIGURATION, "the %.*s of node \"%.*s\" is said twice",
                         SLICE_ARG(name), SLICE_ARG(node));
    if (!attribute && settings->attribute_count == SETTINGS_ATTRIBUTES_MAX)
        return error_set(err, ERROR_CONFIGURATION, "more than %d things are said of nodes",
                         SETTINGS_ATTRIBUTES_MAX);
    if (!attribute)
        attribute = &settings->attributes[settings->attribute_count++];
    *attribute = (struct settings_attribute){arena_text(settings->arena, node),
                                             arena_text(settings->arena, name),
                                             arena_text(settings->arena, value), layer};
    return true;
}

/* NAME, or NAME.ATTRIBUTE. */
static bool node_value_set(struct settings *settings, struct slice name, struct slice value,
                           enum settings_layer layer, struct error *err)
{
    struct slice node, attribute;

    if (slice_split(name, '.', &node, &attribute) && node_name_valid(node))
        return attribute_set(settings, node, attribute, value, layer, err);
    return node_name_set(settings, name, value, layer, err);
}

static bool name_unknown(struct slice name, struct error *err)
{
    struct nearest nearest = nearest_to(name);
    struct slice section, rest;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        nearest_offer(&nearest, rows[i].name);
        /* the section may be what was left out */
        if (slice_split(slice_of_text(rows[i].name), '.', &section, &rest) &&
            slice_equal(name, rest))
            nearest = (struct nearest){.name = rows[i].name};
    }
    if (nearest.name)
        return error_set(err, ERROR_CONFIGURATION,
                         "there is no setting \"%.*s\": did you mean \"%s\"?", SLICE_ARG(name),
                         nearest.name);
    return error_set(err, ERROR_CONFIGURATION,
                     "there is no setting \"%.*s\": `orrery help settings` lists them",
                     (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

static bool value_set(struct settings *settings, struct slice name, struct slice value,
                      enum settings_layer layer, struct error *err)
{
    const struct row *row = row_find(name);
    int64_t number;

    if (value.len > SETTINGS_VALUE_MAX || (value.len && memchr(value.data, '\0', value.len)))
        return error_set(
            err, ERROR_CONFIGURATION, "the value of \"%.*s\" holds a NUL or more than %d bytes",
            (int)MIN(name.len, (size_t)80), (const char *)name.data, SETTINGS_VALUE_MAX);
    if (slice_starts_with(name, SLICE("node.")))
        return node_value_set(settings, slice_skip(name, 5), value, layer, err);
    if (!row)
        return name_unknown(name, err);
    if (row->kind == KIND_TEXT) {
        row_store_text(settings, row, value);
        return true;
    }
    if (!row_parse(row, value, &number))
        return value_wrong(row, value, err);
    if ((row->kind == KIND_INT || row->kind == KIND_SIZE || row->kind == KIND_DURATION) &&
        (number < row->min || number > row->max))
        return value_wrong(row, value, err);
    row_store_number(settings, row, number);
    return true;
}

bool settings_set(struct settings *settings, struct slice name, struct slice value,
                  const struct settings_source *source, struct error *err)
{
    if (!value_set(settings, name, value, source->layer, err))
        return blame(source, err);
    return true;
}

bool settings_assign(struct settings *settings, struct slice assignment, struct error *err)
{
    const struct settings_source source = {SETTINGS_COMMAND_LINE, "--set", 0};
    struct slice name, value;

    if (!slice_split(assignment, '=', &name, &value))
        return error_set(err, ERROR_CONFIGURATION, "--set takes name=value, not \"%.*s\"",
                         (int)MIN(assignment.len, (size_t)80), (const char *)assignment.data);
    return settings_set(settings, slice_trim(name), slice_trim(value), &source, err);
}

/* --- The environment ------------------------------------------------------------------------- */

enum { VARIABLE_PREFIX_LEN = 7 }; /* "ORRERY_" */

/* Letters in one case; a text too long for ret_text is cut. */
static struct slice folded(struct slice s, bool upper, char *ret_text, size_t size)
{
    size_t len = MIN(s.len, size);

    for (size_t i = 0; i < len; i++) {
        uint8_t c = s.data[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';

        ret_text[i] = (char)(!letter ? c : upper ? c & ~0x20 : c | 0x20);
    }
    return slice_of(ret_text, len);
}

static bool variable_unknown(struct slice variable, struct nearest nearest, struct error *err)
{
    char meant[NEAREST_NAME_MAX];
    struct slice name;

    variable.len = MIN(variable.len, (size_t)80);
    if (!nearest.name)
        return error_set(err, ERROR_CONFIGURATION,
                         "the environment variable %.*s names no setting: `orrery help settings` "
                         "lists them",
                         SLICE_ARG(variable));
    name = folded(slice_of_text(nearest.name), true, meant, sizeof meant);
    return error_set(err, ERROR_CONFIGURATION,
                     "the environment variable %.*s names no setting: did you mean ORRERY_%.*s?",
                     SLICE_ARG(variable), SLICE_ARG(name));
}

/* ORRERY_LOG_LEVEL names log.level, ORRERY_NODE_A names node.a. */
static bool variable_set(struct settings *settings, struct slice variable, struct slice value,
                         struct error *err)
{
    char lower[NEAREST_NAME_MAX + 1], place[80];
    const struct settings_source source = {SETTINGS_ENVIRONMENT, place, 0};
    struct slice name =
        folded(slice_skip(variable, VARIABLE_PREFIX_LEN), false, lower, sizeof lower);
    struct nearest nearest = nearest_to(name);

    snprintf(place, sizeof place, "%.*s", SLICE_ARG(variable));
    if (slice_starts_with(name, SLICE("node_"))) {
        lower[4] = '.';
        return settings_set(settings, name, value, &source, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        nearest_offer(&nearest, rows[i].variable);
        if (slice_equal(name, slice_of_text(rows[i].variable)))
            return settings_set(settings, slice_of_text(rows[i].name), value, &source, err);
    }
    return variable_unknown(variable, nearest, err);
}

/* What the commands that ask a server read: no business of the server's. */
static bool of_clients(struct slice name)
{
    return slice_equal(name, SLICE("ORRERY_KEY")) || slice_equal(name, SLICE("ORRERY_ENDPOINT")) ||
           slice_equal(name, SLICE("ORRERY_DEV")) || slice_equal(name, SLICE("ORRERY_PROFILE"));
}

bool settings_read_environment(struct settings *settings, char *const *environment,
                               struct error *err)
{
    for (; environment && *environment; environment++) {
        struct slice name, value;

        if (slice_split(slice_of_text(*environment), '=', &name, &value) &&
            slice_starts_with(name, SLICE("ORRERY_")) && !of_clients(name) &&
            !variable_set(settings, name, value, err))
            return false;
    }
    return true;
}

/* --- Showing --------------------------------------------------------------------------------- */

static void value_print_json(const struct settings *settings, const struct row *row,
                             struct buf *out)
{
    const void *member = (const char *)settings + row->offset;

    switch (row->kind) {
    case KIND_BOOL:
        buf_append_text(out, *(const bool *)member ? "true" : "false");
        break;
    case KIND_TEXT:
        document_json_write_string(slice_of_text(*(const char *const *)member), out);
        break;
    case KIND_CHOICE: {
        struct slice rest = slice_of_text(row->text), choice = rest;

        for (int64_t i = *(const int64_t *)member; i >= 0; i--)
            if (!slice_split(rest, '|', &choice, &rest))
                choice = rest;
        document_json_write_string(choice, out);
        break;
    }
    default:
        buf_append_int64(out, *(const int64_t *)member);
    }
}

void settings_print_json(const struct settings *settings, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_printf(out, "%s\"%s\":", i ? "," : "", rows[i].name);
        value_print_json(settings, &rows[i], out);
    }
}

/* --- Help ------------------------------------------------------------------------------------ */

/* Breaks text at blanks so that lines stay within the width, each begun by the indent. */
static void wrap(struct buf *out, const char *text, size_t indent, size_t width)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column == 0 || column + 1 + word > width) {
            buf_printf(out, "%s%*s", column ? "\n" : "", (int)indent, "");
            column = indent;
        } else {
            buf_append_byte(out, ' ');
            column++;
        }
        buf_append(out, text, word);
        column += word;
        text += word + (text[word] == ' ');
    }
    buf_append_byte(out, '\n');
}

void settings_describe(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_printf(out, "  %s = ", rows[i].name);
        preset_print(out, &rows[i]);
        BUF_APPEND(out, "  (");
        range_print(out, &rows[i]);
        BUF_APPEND(out, ")\n");
        wrap(out, rows[i].meaning, 6, 80);
    }
    BUF_APPEND(out, "  node.NAME = URL\n");
    wrap(out,
         "A storage node: rocksdb:DIRECTORY, memory: or postgresql://HOST/DATABASE. May be given "
         "for many names of small letters, digits and hyphens. Short: --node NAME=URL.",
         6, 80);
    BUF_APPEND(out, "  node.NAME.ATTRIBUTE = VALUE\n");
    wrap(out,
         "What a node is like: region, zone, tags (separated by commas), capacity (10GB; 0: what "
         "its disk has), reserve (10%: what rebalancing leaves free of it). Placement rules speak "
         "of the first three.",
         6, 80);
}

void settings_describe_markdown(struct buf *out)
{
    const char *section = "";

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(section, rows[i].section) != 0) {
            section = rows[i].section;
            buf_printf(out,
                       "\n## %s\n\n| setting | default | takes | meaning |\n|---|---|---|---|\n",
                       section);
        }
        buf_printf(out, "| `%s` | ", rows[i].name);
        preset_print(out, &rows[i]);
        BUF_APPEND(out, " | ");
        range_print(out, &rows[i]);
        buf_printf(out, " | %s |\n", rows[i].meaning);
    }
}
