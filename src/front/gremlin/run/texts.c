/* Steps on strings. null stays null; other values are an error that names the step; with local the
 * strings of a list are changed one by one. */
#include "front/gremlin/run/compile_private.h"
#include "query/value/text.h"

enum text_operation {
    TEXT_UPPER,
    TEXT_LOWER,
    TEXT_TRIM,
    TEXT_TRIM_LEFT,
    TEXT_TRIM_RIGHT,
    TEXT_LENGTH,
    TEXT_SUBSTRING,
    TEXT_REPLACE,
    TEXT_SPLIT,
    TEXT_AS_STRING,
};

struct text_step {
    struct gremlin_step step;
    enum text_operation operation;
    const char *name;
    bool local;
    struct slice first, second; /* data NULL: null */
    int64_t start, end;
    bool has_end;
};

/* --- One string ------------------------------------------------------------------------------ */

static size_t blank_at(struct slice text, size_t at, bool last)
{
    size_t len;
    uint32_t c;

    if (last) {
        size_t begin = text.len - 1;

        while (begin > 0 && (text.data[begin] & 0xC0) == 0x80)
            begin--;
        at = begin;
    }
    c = query_text_decode(text.data + at, text.data + text.len, &len);
    if ((c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x1680 ||
        (c >= 0x2000 && c <= 0x200A && c != 0x2007) || c == 0x2028 || c == 0x2029 || c == 0x205F ||
        c == 0x3000)
        return len;
    return 0;
}

static struct slice trimmed(struct slice text, bool left, bool right)
{
    size_t len;

    while (left && text.len && (len = blank_at(text, 0, false)))
        text = slice_skip(text, len);
    while (right && text.len && (len = blank_at(text, 0, true)))
        text = slice_first(text, text.len - len);
    return text;
}

/* Negative positions count from the end. */
static bool substring(struct gremlin_run *run, const struct text_step *self, struct slice text,
                      struct slice *ret_text, struct error *err)
{
    int64_t units = (int64_t)query_text_units(text);
    int64_t start = self->start < 0 ? self->start + units : self->start;
    int64_t end = !self->has_end ? units : self->end < 0 ? self->end + units : self->end;

    start = start < 0 ? 0 : start > units ? units : start;
    end = end < 0 ? 0 : end > units ? units : end;
    if (start >= end) {
        *ret_text = SLICE("");
        return true;
    }
    return query_text_cut(text, (uint64_t)start, (uint64_t)(end - start), &run->context, ret_text,
                          err);
}

static bool replace(struct gremlin_run *run, const struct text_step *self, struct slice text,
                    struct gremlin_value *ret_value, struct error *err)
{
    struct buf made;
    bool good = true;

    if (!self->first.data || !self->second.data) {
        *ret_value = gremlin_string(run->heap, text);
        return true;
    }
    buf_init(&made, TEXT_MAX);
    while (text.len) {
        size_t at = self->first.len ? query_text_find(text, self->first) : 0;

        if (at == SIZE_MAX)
            break;
        buf_append_slice(&made, slice_first(text, at));
        buf_append_slice(&made, self->second);
        text = slice_skip(text, at + self->first.len);
        if (!self->first.len) {
            size_t len;

            query_text_decode(text.data, text.data + text.len, &len);
            buf_append_slice(&made, slice_first(text, len));
            text = slice_skip(text, len);
            if (!text.len)
                buf_append_slice(&made, self->second);
        }
    }
    buf_append_slice(&made, text);
    if (buf_overflowed(&made))
        good = error_set(err, ERROR_QUERY_LIMIT, "replace(): a text of more than %d bytes",
                         (int)TEXT_MAX);
    else
        *ret_value = gremlin_string(run->heap, buf_slice(&made));
    buf_done(&made);
    return good;
}

static void list_text(struct gremlin_run *run, struct gremlin_value list, struct slice text)
{
    gremlin_list_add_take(list, gremlin_string(run->heap, text));
}

/* Without a separator at white space; with an empty one into characters. */
static struct gremlin_value split(struct gremlin_run *run, const struct text_step *self,
                                  struct slice text)
{
    struct gremlin_value list = gremlin_list_new(run->heap, 0);

    if (!self->first.data) {
        size_t at = 0;

        text = trimmed(text, true, true);
        while (at < text.len) {
            size_t len;

            if (!blank_at(text, at, false)) {
                query_text_decode(text.data + at, text.data + text.len, &len);
                at += len;
                continue;
            }
            list_text(run, list, slice_first(text, at));
            text = trimmed(slice_skip(text, at), true, false);
            at = 0;
        }
        if (text.len)
            list_text(run, list, text);
        return list;
    }
    while (self->first.len) {
        size_t at = query_text_find(text, self->first);

        if (at == SIZE_MAX)
            break;
        list_text(run, list, slice_first(text, at));
        text = slice_skip(text, at + self->first.len);
    }
    while (!self->first.len && text.len) {
        size_t len;

        query_text_decode(text.data, text.data + text.len, &len);
        list_text(run, list, slice_first(text, len));
        text = slice_skip(text, len);
    }
    if (self->first.len)
        list_text(run, list, text);
    return list;
}

static bool text_compute(struct gremlin_run *run, const struct text_step *self, struct slice text,
                         struct gremlin_value *ret_value, struct error *err)
{
    struct slice made = text;

    switch (self->operation) {
    case TEXT_UPPER:
    case TEXT_LOWER:
        if (!query_text_convert(text,
                                self->operation == TEXT_UPPER ? QUERY_CASE_UPPER : QUERY_CASE_LOWER,
                                &run->context, &made, err))
            return false;
        break;
    case TEXT_TRIM:
        made = trimmed(text, true, true);
        break;
    case TEXT_TRIM_LEFT:
        made = trimmed(text, true, false);
        break;
    case TEXT_TRIM_RIGHT:
        made = trimmed(text, false, true);
        break;
    case TEXT_LENGTH:
        *ret_value = gremlin_int((int32_t)query_text_units(text));
        return true;
    case TEXT_SUBSTRING:
        if (!substring(run, self, text, &made, err))
            return false;
        break;
    case TEXT_REPLACE:
        return replace(run, self, text, ret_value, err);
    case TEXT_SPLIT:
        *ret_value = split(run, self, text);
        return true;
    case TEXT_AS_STRING:
        break;
    }
    *ret_value = gremlin_string(run->heap, made);
    return true;
}

/* --- The step -------------------------------------------------------------------------------- */

static bool value_compute(struct gremlin_run *run, const struct text_step *self,
                          struct gremlin_value value, struct gremlin_value *ret_value,
                          struct error *err)
{
    bool good;

    if (gremlin_is_null(value)) {
        *ret_value = value;
        return true;
    }
    if (self->operation == TEXT_AS_STRING) {
        *ret_value = gremlin_value_text(run->heap, value);
        return true;
    }
    if (!gremlin_is_string(value))
        return self->local
                   ? FAIL(err, "The %s(local) step can only take string or list of strings",
                          self->name)
                   : FAIL(err, "The %s() step can only take string as argument, encountered %s",
                          self->name, gremlin_type_name(value.type));
    good = text_compute(run, self, gremlin_bytes(value), ret_value, err);
    arena_reset(run->scratch);
    return good;
}

static bool text_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    const struct text_step *self = (struct text_step *)step;
    struct gremlin_value result, items;

    if (!self->local ||
        !(gremlin_value_iterates(traverser->value) || traverser->value.type == GREMLIN_PATH)) {
        if (!value_compute(run, self, traverser->value, &result, err))
            return false;
        gremlin_walker_set(run, traverser, result, step);
        return true;
    }
    items = gremlin_value_listed(run, traverser->value);
    result = gremlin_list_new(run->heap, gremlin_list(items)->count);
    for (size_t i = 0; i < gremlin_list(items)->count; i++) {
        struct gremlin_value item;

        if (!value_compute(run, self, gremlin_list(items)->items[i], &item, err)) {
            gremlin_value_unref(items);
            gremlin_value_unref(result);
            return false;
        }
        gremlin_list_add_take(result, item);
    }
    gremlin_value_unref(items);
    gremlin_walker_set(run, traverser, result, step);
    return true;
}

static const struct gremlin_step_kind step_text = {.name = "text", .one = text_one};

static bool text_or_null(const struct gremlin_raw *raw, size_t index, struct slice *ret_text,
                         struct error *err)
{
    if (index < raw->count && gremlin_is_null(raw->arguments[index])) {
        *ret_text = SLICE_NONE;
        return true;
    }
    return gremlin_argument_text(raw, index, ret_text, err);
}

static bool text_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         enum text_operation operation, struct error *err)
{
    struct text_step *self = STEP_ADD(compiler, raw, &step_text, struct text_step);
    size_t from, most;

    self->operation = operation;
    self->name = raw->row->name;
    self->local = gremlin_argument_local(raw, &from);
    if (operation == TEXT_SUBSTRING) {
        self->has_end = raw->count > from + 1;
        return gremlin_argument_whole(raw, from, &self->start, err) &&
               (!self->has_end || gremlin_argument_whole(raw, from + 1, &self->end, err));
    }
    most = operation == TEXT_REPLACE ? 2 : operation == TEXT_SPLIT ? 1 : 0;
    if (raw->count - from != most)
        return REFUSE(err, "%s() does not take %zu arguments", raw->row->name, raw->count);
    return (most < 1 || text_or_null(raw, from, &self->first, err)) &&
           (most < 2 || text_or_null(raw, from + 1, &self->second, err));
}

#define TEXT_STEP(name, operation)                                                                 \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)       \
    {                                                                                              \
        return text_compile(compiler, raw, operation, err);                                        \
    }
TEXT_STEP(compile_to_upper, TEXT_UPPER)
TEXT_STEP(compile_to_lower, TEXT_LOWER)
TEXT_STEP(compile_trim, TEXT_TRIM)
TEXT_STEP(compile_l_trim, TEXT_TRIM_LEFT)
TEXT_STEP(compile_r_trim, TEXT_TRIM_RIGHT)
TEXT_STEP(compile_length, TEXT_LENGTH)
TEXT_STEP(compile_substring, TEXT_SUBSTRING)
TEXT_STEP(compile_replace, TEXT_REPLACE)
TEXT_STEP(compile_split, TEXT_SPLIT)
TEXT_STEP(compile_as_string, TEXT_AS_STRING)

/* --- reverse --------------------------------------------------------------------------------- */

static struct gremlin_value text_reversed(struct gremlin_run *run, struct slice text)
{
    uint8_t *data;
    struct gremlin_value reversed = gremlin_bytes_room(run->heap, GREMLIN_STRING, text.len, &data);
    size_t at = 0;

    while (at < text.len) {
        size_t len;

        query_text_decode(text.data + at, text.data + text.len, &len);
        memcpy(data + text.len - at - len, text.data + at, len);
        at += len;
    }
    return reversed;
}

static bool reverse_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                        struct error *err UNUSED)
{
    struct gremlin_value items, result, value = traverser->value;

    if (gremlin_is_string(value)) {
        result = text_reversed(run, gremlin_bytes(value));
    } else if (gremlin_value_iterates(value) || value.type == GREMLIN_PATH) {
        items = gremlin_value_listed(run, value);
        result = gremlin_list_new(run->heap, gremlin_list(items)->count);
        for (size_t i = gremlin_list(items)->count; i-- > 0;)
            gremlin_list_add(result, gremlin_list(items)->items[i]);
        gremlin_value_unref(items);
    } else {
        result = gremlin_value_ref(value);
    }
    gremlin_walker_set(run, traverser, result, step);
    return true;
}

static const struct gremlin_step_kind step_reverse = {.name = "reverse", .one = reverse_one};

bool compile_reverse(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                     struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_reverse, struct gremlin_step);
    return true;
}

/* --- concat ---------------------------------------------------------------------------------- */

struct concat {
    struct gremlin_step step;
    const struct gremlin_value *texts;
    size_t count;
};

static bool concat_add(struct buf *text, struct gremlin_value value, bool *any, struct error *err)
{
    if (gremlin_is_null(value))
        return true;
    if (!gremlin_is_string(value))
        return FAIL(err, "String concat() can only take string as argument, encountered %s",
                    gremlin_type_name(value.type));
    *any = true;
    buf_append_slice(text, gremlin_bytes(value));
    return true;
}

static bool concat_all(struct gremlin_run *run, struct gremlin_step *step,
                       const struct gremlin_walker *traverser, struct buf *text, bool *any,
                       struct error *err)
{
    const struct concat *concat = (struct concat *)step;

    if (!concat_add(text, traverser->value, any, err))
        return false;
    for (size_t i = 0; i < concat->count; i++)
        if (!concat_add(text, concat->texts[i], any, err))
            return false;
    for (size_t i = 0; i < step->part_count; i++) {
        struct gremlin_value value;
        bool found, good;

        if (!gremlin_part_value(run, step->parts[i], traverser, &value, &found, err))
            return false;
        if (!found)
            continue;
        good = concat_add(text, value, any, err);
        gremlin_value_unref(value);
        if (!good)
            return false;
    }
    return true;
}

static bool concat_one(struct gremlin_run *run, struct gremlin_step *step,
                       struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct buf text;
    bool any = false, good;

    buf_init(&text, TEXT_MAX);
    good = concat_all(run, step, traverser, &text, &any, err);
    if (good && buf_overflowed(&text))
        good = error_set(err, ERROR_QUERY_LIMIT, "concat(): a text of more than %d bytes",
                         (int)TEXT_MAX);
    if (good)
        gremlin_walker_set(run, traverser,
                           any ? gremlin_string(run->heap, buf_slice(&text)) : GREMLIN_NOTHING,
                           step);
    buf_done(&text);
    return good;
}

static const struct gremlin_step_kind step_concat = {.name = "concat", .one = concat_one};

bool compile_concat(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct concat *concat = STEP_ADD(compiler, raw, &step_concat, struct concat);

    concat->step.local = true;
    if (raw->count && gremlin_argument_is_traversal(raw->arguments[0])) {
        for (size_t i = 0; i < raw->count; i++) {
            struct gremlin_part *part;

            if (!gremlin_argument_is_traversal(raw->arguments[i]))
                return gremlin_argument_wrong(raw, i, "a traversal", err);
            if (!gremlin_step_child(compiler, &concat->step, raw->arguments[i],
                                    (struct gremlin_part_options){0}, &part, err))
                return false;
        }
        return true;
    }
    concat->texts = raw->arguments;
    concat->count = raw->count;
    for (size_t i = 0; i < raw->count; i++)
        if (!gremlin_is_string(raw->arguments[i]) && !gremlin_is_null(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a string", err);
    return true;
}
