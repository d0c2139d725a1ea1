/* The one fail point is a copy of the data it was set with, read anew for each command while it is
 * on. Commands look at one flag while it is off. */
#include "front/mongo/session/fail_points.h"

#include "base/thread.h"
#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/text.h"

enum { BLOCK_MS_MAX = 60000, NAME_SHOWN_MAX = 64 };

enum mode { MODE_OFF, MODE_ALWAYS, MODE_TIMES, MODE_SKIP };

struct mongo_fail_points {
    atomic_bool on; /* written under the lock */
    struct mutex lock;
    enum mode mode;
    int64_t left; /* times to fail, or to pass */
    int64_t met;
    struct arena *arena; /* of data; NULL: none was given */
    struct slice data;
};

struct mongo_fail_points *mongo_fail_points_new(void)
{
    struct mongo_fail_points *points = MEMORY_NEW(struct mongo_fail_points);

    mutex_init(&points->lock);
    return points;
}

void mongo_fail_points_free(struct mongo_fail_points *points)
{
    if (!points)
        return;
    arena_free(points->arena);
    mutex_done(&points->lock);
    memory_free(points);
}

/* --- Setting --------------------------------------------------------------------------------- */

static bool is_given(struct slice document, const char *name, struct document_value *ret_value)
{
    return document_find(document, slice_of_text(name), ret_value) &&
           ret_value->type != DOCUMENT_NULL && ret_value->type != DOCUMENT_UNDEFINED;
}

static bool mode_number(struct slice document, enum mode *ret_mode, int64_t *ret_left,
                        struct error *err)
{
    struct document_value value;

    if (is_given(document, "times", &value))
        *ret_mode = MODE_TIMES;
    else if (is_given(document, "skip", &value))
        *ret_mode = MODE_SKIP;
    else
        return mongo_error_set(
            err, MONGO_BAD_VALUE,
            "failpoint mode must be one of 'off', 'alwaysOn', 'times' and 'skip'");
    if (!document_to_int64(&value, ret_left) || *ret_left < 0)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "'times' and 'skip' of a failpoint mode must be positive numbers");
    if (*ret_mode == MODE_TIMES && *ret_left == 0)
        *ret_mode = MODE_OFF;
    return true;
}

static bool mode_read(const struct document_value *value, enum mode *ret_mode, int64_t *ret_left,
                      struct error *err)
{
    *ret_left = 0;
    if (value->type == DOCUMENT_OBJECT)
        return mode_number(value->document, ret_mode, ret_left, err);
    if (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("alwaysOn")))
        *ret_mode = MODE_ALWAYS;
    else if (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("off")))
        *ret_mode = MODE_OFF;
    else
        return mongo_error_set(err, MONGO_BAD_VALUE, "unknown mode of a failpoint");
    return true;
}

/* What is not known would be a fault that a test believes it has set. */
static bool field_check(struct slice name, const struct document_value *value, struct error *err)
{
    static const struct {
        const char *name;
        enum document_type type; /* int32 for any number */
    } fields[] = {{"failCommands", DOCUMENT_ARRAY},   {"errorCode", DOCUMENT_INT32},
                  {"closeConnection", DOCUMENT_BOOL}, {"blockConnection", DOCUMENT_BOOL},
                  {"blockTimeMS", DOCUMENT_INT32},    {"writeConcernError", DOCUMENT_OBJECT},
                  {"errorLabels", DOCUMENT_ARRAY},    {"appName", DOCUMENT_STRING},
                  {"namespace", DOCUMENT_STRING},     {"failInternalCommands", DOCUMENT_BOOL},
                  {"failAllCommands", DOCUMENT_BOOL}};
    size_t i = 0;

    while (i < ARRAY_LEN(fields) && !slice_equal(name, slice_of_text(fields[i].name)))
        i++;
    if (i == ARRAY_LEN(fields))
        return mongo_error_set(err, MONGO_IDL_UNKNOWN_FIELD,
                               "BSON field 'configureFailPoint.data.%.*s' is an unknown field.",
                               (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
    if (fields[i].type == DOCUMENT_INT32 ? document_is_number(value)
                                         : value->type == fields[i].type)
        return true;
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field 'configureFailPoint.data.%s' is the wrong type '%s'",
                           fields[i].name, mongo_type_name(value->type));
}

static bool data_check(struct slice data, struct error *err)
{
    struct document_value value, block;
    struct document_iter iter;
    int64_t ms = 0;

    document_iter_init(&iter, data);
    while (document_iter_next(&iter))
        if (!field_check(iter.key, &iter.value, err))
            return false;
    if (!is_given(data, "failCommands", &value) && !is_given(data, "failAllCommands", &value))
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'configureFailPoint.data.failCommands' is missing but a "
                               "required field");
    if (is_given(data, "blockConnection", &block) && block.boolean &&
        (!is_given(data, "blockTimeMS", &value) || !document_to_int64(&value, &ms)))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "must specify 'blockTimeMS' when 'blockConnection' is true");
    return (ms >= 0 && ms <= BLOCK_MS_MAX) ||
           mongo_error_set(err, MONGO_BAD_VALUE, "'blockTimeMS' must be between 0 and %d",
                           BLOCK_MS_MAX);
}

static void set(struct mongo_fail_points *points, enum mode mode, int64_t left, struct slice data,
                int64_t *ret_count)
{
    WITH_LOCK (&points->lock) {
        *ret_count = points->met;
        points->met = 0;
        points->mode = mode;
        points->left = left;
        if (data.data) {
            arena_free(points->arena);
            points->arena = arena_new();
            points->data = arena_copy(points->arena, data);
        }
        atomic_store(&points->on, mode != MODE_OFF && points->data.data);
    }
}

bool mongo_fail_points_configure(struct mongo_fail_points *points, struct slice command,
                                 int64_t *ret_count, struct error *err)
{
    struct document_value value;
    struct slice data = SLICE_NONE;
    enum mode mode = MODE_OFF;
    int64_t left = 0;

    if (!is_given(command, "configureFailPoint", &value) || value.type != DOCUMENT_STRING ||
        !slice_equal(value.text, SLICE("failCommand")))
        return mongo_error_set(err, MONGO_INTERNAL_ERROR,
                               "the only failpoint that is offered is 'failCommand'");
    if (!is_given(command, "mode", &value))
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'configureFailPoint.mode' is missing but a required "
                               "field");
    if (!mode_read(&value, &mode, &left, err))
        return false;
    if (is_given(command, "data", &value)) {
        if (value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "the 'data' option of a failpoint must be an object");
        data = value.document;
    }
    if (mode != MODE_OFF && !data_check(data.data ? data : SLICE("\5\0\0\0\0"), err))
        return false;
    set(points, mode, left, data, ret_count);
    return true;
}

/* --- Meeting --------------------------------------------------------------------------------- */

static bool names_command(struct slice data, struct slice command)
{
    struct document_value value;
    struct document_iter iter;

    if (is_given(data, "failAllCommands", &value) && value.boolean)
        return true;
    if (!is_given(data, "failCommands", &value))
        return false;
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING && slice_equal(iter.value.text, command))
            return true;
    return false;
}

static bool is_namespace(struct slice text, const struct mongo_fail_subject *subject)
{
    size_t len = subject->database.len;

    return text.len == len + 1 + subject->collection.len && text.data[len] == '.' &&
           slice_equal(slice_first(text, len), subject->database) &&
           slice_equal(slice_skip(text, len + 1), subject->collection);
}

static bool fits(struct slice data, const struct mongo_fail_subject *subject)
{
    struct document_value value;

    /* else it could not be taken back */
    if (slice_equal(subject->command, SLICE("configureFailPoint")) ||
        !names_command(data, subject->command))
        return false;
    if (is_given(data, "appName", &value) && !slice_equal(value.text, subject->application))
        return false;
    return !is_given(data, "namespace", &value) || is_namespace(value.text, subject);
}

static bool bool_of(struct slice data, const char *name)
{
    struct document_value value;

    return is_given(data, name, &value) && value.boolean;
}

static int64_t number_of(struct slice data, const char *name)
{
    struct document_value value;
    int64_t number = 0;

    if (is_given(data, name, &value))
        (void)document_to_int64(&value, &number);
    return number;
}

static struct mongo_fail fail_of(struct slice data, struct arena *arena)
{
    struct mongo_fail fail = {.close = bool_of(data, "closeConnection")};
    struct document_value value, labels;

    if (bool_of(data, "blockConnection"))
        fail.block_ms = number_of(data, "blockTimeMS");
    fail.fails = is_given(data, "errorCode", &value);
    fail.code = (int32_t)number_of(data, "errorCode");
    if (is_given(data, "writeConcernError", &value)) {
        fail.concern = arena_copy(arena, value.document);
        if (is_given(value.document, "errorLabels", &labels) && labels.type == DOCUMENT_ARRAY) {
            fail.labelled = true;
            fail.labels = arena_copy(arena, labels.document);
        }
    }
    if (is_given(data, "errorLabels", &value)) {
        fail.labelled = true;
        fail.labels = arena_copy(arena, value.document);
    }
    return fail;
}

/* True: this one fails. */
static bool count_down(struct mongo_fail_points *points)
{
    if (points->mode == MODE_SKIP && points->left > 0) {
        points->left--;
        return false;
    }
    points->met++;
    if (points->mode == MODE_TIMES && --points->left == 0) {
        points->mode = MODE_OFF;
        atomic_store(&points->on, false);
    }
    return true;
}

bool mongo_fail_points_meet(struct mongo_fail_points *points,
                            const struct mongo_fail_subject *subject, struct arena *arena,
                            struct mongo_fail *ret_fail)
{
    bool met = false;

    if (!atomic_load_explicit(&points->on, memory_order_relaxed))
        return false;
    WITH_LOCK (&points->lock) {
        met = points->mode != MODE_OFF && points->data.data && fits(points->data, subject) &&
              count_down(points);
        if (met)
            *ret_fail = fail_of(points->data, arena);
    }
    return met;
}
