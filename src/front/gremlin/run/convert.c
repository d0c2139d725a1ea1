/* asNumber, asBool, asDate, dateAdd, dateDiff. Dates are Dates up to 3.7 and date-times with an
 * offset from 3.8 on. */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/value/arithmetic.h"
#include "front/gremlin/value/big.h"

/* --- Numbers and truth ----------------------------------------------------------------------- */

struct as_number {
    struct gremlin_step step;
    bool typed;
    enum gremlin_type type;
};

static bool number_of_text(struct gremlin_run *run, struct slice text,
                           struct gremlin_value *ret_number, struct error *err)
{
    bool whole = text.len > 0;
    struct gremlin_value made;
    int64_t number;

    for (size_t i = 0; i < text.len; i++)
        whole = whole && ((text.data[i] >= '0' && text.data[i] <= '9') ||
                          (i == 0 && text.len > 1 && (text.data[0] == '-' || text.data[0] == '+')));
    if (whole ? gremlin_big_integer(run->heap, text, &made)
              : gremlin_big_decimal(run->heap, text, &made)) {
        if (whole && gremlin_number_long(made, &number)) {
            *ret_number = gremlin_whole(number);
            gremlin_value_unref(made);
        } else if (whole) {
            *ret_number = made;
        } else {
            *ret_number = gremlin_double(gremlin_number_double(made));
            gremlin_value_unref(made);
        }
        return true;
    }
    return FAIL(err, "Can't parse string '%.*s' as number.", (int)(text.len < 200 ? text.len : 200),
                (const char *)text.data);
}

static bool as_number_one(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                          struct error *err)
{
    const struct as_number *self = (struct as_number *)step;
    struct gremlin_value number, cast, value = traverser->value;
    bool good;

    if (gremlin_is_number(value))
        number = gremlin_value_ref(value);
    else if (value.type == GREMLIN_BOOLEAN)
        number = gremlin_int(value.boolean);
    else if (value.type == GREMLIN_DATE)
        number = gremlin_long(value.integer);
    else if (gremlin_is_string(value)) {
        if (!number_of_text(run, gremlin_bytes(value), &number, err))
            return false;
    } else {
        return FAIL(err, "Can't parse type %s as number.", gremlin_type_name(value.type));
    }
    if (self->typed) {
        good = gremlin_number_cast(run->heap, self->type, number, &cast, err);
        gremlin_value_unref(number);
        if (!good)
            return false;
        number = cast;
    }
    gremlin_walker_set(run, traverser, number, step);
    return true;
}

static const struct gremlin_step_kind step_as_number = {.name = "asNumber", .one = as_number_one};

static bool number_type(enum gremlin_enum_word word, enum gremlin_type *ret_type)
{
    static const struct {
        enum gremlin_enum_word word;
        enum gremlin_type type;
    } types[] = {
        {GREMLIN_GTYPE_BYTE, GREMLIN_BYTE},
        {GREMLIN_GTYPE_SHORT, GREMLIN_SHORT},
        {GREMLIN_GTYPE_INT, GREMLIN_INT},
        {GREMLIN_GTYPE_LONG, GREMLIN_LONG},
        {GREMLIN_GTYPE_FLOAT, GREMLIN_FLOAT},
        {GREMLIN_GTYPE_DOUBLE, GREMLIN_DOUBLE},
        {GREMLIN_GTYPE_BIGINT, GREMLIN_BIG_INTEGER},
        {GREMLIN_GTYPE_BIGDECIMAL, GREMLIN_BIG_DECIMAL},
    };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].word == word) {
            *ret_type = types[i].type;
            return true;
        }
    return false;
}

bool compile_as_number(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    struct as_number *self = STEP_ADD(compiler, raw, &step_as_number, struct as_number);

    if (!raw->count)
        return true;
    self->typed = true;
    if (!gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_GTYPE) ||
        !number_type(raw->arguments[0].word.word, &self->type))
        return gremlin_argument_wrong(raw, 0, "a GType that is a number", err);
    return true;
}

static bool as_bool_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct gremlin_value value = traverser->value;
    bool truth;

    if (value.type == GREMLIN_BOOLEAN) {
        truth = value.boolean;
    } else if (gremlin_is_number(value)) {
        double number = gremlin_number_double(value);

        truth = number != 0 && number == number;
    } else if (gremlin_is_string(value) &&
               slice_equal_nocase(gremlin_bytes(value), SLICE("true"))) {
        truth = true;
    } else if (gremlin_is_string(value) &&
               slice_equal_nocase(gremlin_bytes(value), SLICE("false"))) {
        truth = false;
    } else {
        return FAIL(err, "Can't parse %s as boolean.", gremlin_value_shown(run, value));
    }
    gremlin_walker_set(run, traverser, gremlin_boolean(truth), step);
    return true;
}

static const struct gremlin_step_kind step_as_bool = {.name = "asBool", .one = as_bool_one};

bool compile_as_bool(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                     struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_as_bool, struct gremlin_step);
    return true;
}

/* --- Dates ----------------------------------------------------------------------------------- */

/* Milliseconds of what is a date. */
static bool date_ms(struct gremlin_value value, int64_t *ret_ms)
{
    if (value.type == GREMLIN_DATE || value.type == GREMLIN_TIMESTAMP) {
        *ret_ms = value.integer;
        return true;
    }
    if (value.type != GREMLIN_DATE_TIME)
        return false;
    *ret_ms =
        gremlin_date_time(value)->seconds * 1000 + gremlin_date_time(value)->nanoseconds / 1000000;
    return true;
}

static struct gremlin_value date_new(struct gremlin_run *run, int64_t seconds, int32_t nanoseconds,
                                     int32_t offset)
{
    if (run->v38)
        return gremlin_date_time_new(run->heap, seconds, nanoseconds, offset);
    return gremlin_date(seconds * 1000 + nanoseconds / 1000000);
}

static bool as_date_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct gremlin_value value = traverser->value;
    int64_t seconds, ms;
    int32_t nanoseconds, offset;

    if (date_ms(value, &ms))
        return true;
    if (gremlin_is_whole(value)) {
        seconds = value.integer / 1000 - (value.integer % 1000 < 0);
        nanoseconds = (int32_t)((value.integer - seconds * 1000) * 1000000);
        offset = 0;
    } else if (!gremlin_is_string(value) ||
               !gremlin_date_time_parse(gremlin_bytes(value), &seconds, &nanoseconds, &offset)) {
        return FAIL(err, "Can't parse %s as Date.", gremlin_value_shown(run, value));
    }
    gremlin_walker_set(run, traverser, date_new(run, seconds, nanoseconds, offset), step);
    return true;
}

static const struct gremlin_step_kind step_as_date = {.name = "asDate", .one = as_date_one};

bool compile_as_date(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                     struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_as_date, struct gremlin_step);
    return true;
}

struct date_step {
    struct gremlin_step step;
    int64_t seconds; /* of dateAdd */
    struct gremlin_value other;
    struct gremlin_part *part;
};

static bool date_add_one(struct gremlin_run *run, struct gremlin_step *step,
                         struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    int64_t added = ((struct date_step *)step)->seconds, sum;
    struct gremlin_value value = traverser->value;

    if (value.type == GREMLIN_DATE_TIME) {
        const struct gremlin_date_time *date = gremlin_date_time(value);

        if (__builtin_add_overflow(date->seconds, added, &sum))
            return FAIL(err, "dateAdd(): the date is out of range");
        gremlin_walker_set(run, traverser,
                           gremlin_date_time_new(run->heap, sum, date->nanoseconds, date->offset),
                           step);
        return true;
    }
    if (value.type != GREMLIN_DATE && value.type != GREMLIN_TIMESTAMP)
        return FAIL(err, "dateAdd accept only Date or OffsetDateTime, encountered %s",
                    gremlin_type_name(value.type));
    if (__builtin_mul_overflow(added, 1000, &added) ||
        __builtin_add_overflow(value.integer, added, &sum))
        return FAIL(err, "dateAdd(): the date is out of range");
    gremlin_walker_set(run, traverser, gremlin_integer(value.type, sum), step);
    return true;
}

static const struct gremlin_step_kind step_date_add = {.name = "dateAdd", .one = date_add_one};

bool compile_date_add(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    static const struct {
        enum gremlin_enum_word word;
        int64_t seconds;
    } units[] = {{GREMLIN_DT_SECOND, 1},
                 {GREMLIN_DT_MINUTE, 60},
                 {GREMLIN_DT_HOUR, 3600},
                 {GREMLIN_DT_DAY, 86400}};
    struct date_step *self = STEP_ADD(compiler, raw, &step_date_add, struct date_step);
    int64_t count;

    if (!gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_DT))
        return gremlin_argument_wrong(raw, 0, "a DT", err);
    if (!gremlin_argument_whole(raw, 1, &count, err))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (raw->arguments[0].word.word == units[i].word &&
            __builtin_mul_overflow(count, units[i].seconds, &self->seconds))
            return REFUSE(err, "dateAdd(): the number is too large");
    return true;
}

static bool date_diff_one(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                          struct error *err)
{
    struct date_step *self = (struct date_step *)step;
    struct gremlin_value other = gremlin_value_ref(self->other);
    int64_t a, b;
    bool found = true, good;

    if (!date_ms(traverser->value, &a))
        return FAIL(err, "dateDiff accept only Date or OffsetDateTime, encountered %s",
                    gremlin_type_name(traverser->value.type));
    if (self->part && !gremlin_part_value(run, self->part, traverser, &other, &found, err))
        return false;
    if (!found || gremlin_is_null(other)) {
        b = 0;
        good = true;
    } else {
        good = date_ms(other, &b);
    }
    if (!good)
        FAIL(err, "dateDiff accept only Date or OffsetDateTime as argument, encountered %s",
             gremlin_type_name(other.type));
    gremlin_value_unref(other);
    if (!good)
        return false;
    a -= b;
    if (!run->v38)
        a = a / 1000 - (a % 1000 < 0);
    gremlin_walker_set(run, traverser, gremlin_long(a), step);
    return true;
}

static const struct gremlin_step_kind step_date_diff = {.name = "dateDiff", .one = date_diff_one};

bool compile_date_diff(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    struct date_step *self = STEP_ADD(compiler, raw, &step_date_diff, struct date_step);
    int64_t ms;

    self->step.local = true;
    self->other = raw->arguments[0];
    if (gremlin_argument_is_traversal(self->other)) {
        struct gremlin_value child = self->other;

        self->other = GREMLIN_NOTHING;
        return gremlin_step_child(compiler, &self->step, child, (struct gremlin_part_options){0},
                                  &self->part, err);
    }
    if (!gremlin_is_null(self->other) && !date_ms(self->other, &ms))
        return gremlin_argument_wrong(raw, 0, "a date", err);
    return true;
}
