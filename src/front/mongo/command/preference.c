#include "front/mongo/command/preference.h"

#include "front/mongo/command/snapshot.h"

enum { STALENESS_SECONDS_LEAST = 90 }; /* as in the specification of drivers */

enum mode {
    MODE_PRIMARY,
    MODE_PRIMARY_PREFERRED,
    MODE_SECONDARY,
    MODE_SECONDARY_PREFERRED,
    MODE_NEAREST,
    MODE_COUNT
};

static bool is_given(struct slice document, const char *name, struct document_value *ret_value)
{
    return document_find(document, slice_of_text(name), ret_value) &&
           ret_value->type != DOCUMENT_NULL && ret_value->type != DOCUMENT_UNDEFINED;
}

static bool mode_read(struct slice preference, enum mode *ret_mode, struct error *err)
{
    static const char *const names[] = {
        [MODE_PRIMARY] = "primary",     [MODE_PRIMARY_PREFERRED] = "primaryPreferred",
        [MODE_SECONDARY] = "secondary", [MODE_SECONDARY_PREFERRED] = "secondaryPreferred",
        [MODE_NEAREST] = "nearest",
    };
    struct document_value mode;

    if (!is_given(preference, "mode", &mode) || mode.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$readPreference has to have a mode, which is a string");
    for (*ret_mode = MODE_PRIMARY; *ret_mode < MODE_COUNT; (*ret_mode)++)
        if (slice_equal(mode.text, slice_of_text(names[*ret_mode])))
            return true;
    return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "Unknown $readPreference mode: %.*s",
                           (int)MIN(mode.text.len, (size_t)64), (const char *)mode.text.data);
}

/* Sets are tried in their order, and the empty one fits every server. */
static bool tags_check(struct slice preference, enum mode mode, struct error *err)
{
    struct document_value tags;
    struct document_iter iter;
    bool any = true;

    if (!is_given(preference, "tags", &tags))
        return true;
    if (tags.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "$readPreference.tags has to be an array");
    document_iter_init(&iter, tags.document);
    for (any = document_count(tags.document) == 0; document_iter_next(&iter);) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "a set of $readPreference.tags has to be an object");
        any = any || document_count(iter.value.document) == 0;
    }
    if (any)
        return true;
    if (mode == MODE_PRIMARY)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Only empty tags are allowed with primary read preference");
    return mongo_error_set(err, MONGO_READ_PREFERENCE,
                           "no server has tags: a list of $readPreference.tags needs an empty set");
}

static bool staleness_check(struct slice preference, enum mode mode, struct error *err)
{
    struct document_value staleness;
    int64_t seconds;

    if (!is_given(preference, "maxStalenessSeconds", &staleness))
        return true;
    if (!document_is_number(&staleness) || !document_to_int64(&staleness, &seconds))
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "$readPreference.maxStalenessSeconds has to be a whole number");
    if (seconds == -1)
        return true; /* none */
    if (mode == MODE_PRIMARY)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "maxStalenessSeconds cannot be with primary read preference");
    if (seconds < STALENESS_SECONDS_LEAST || seconds > INT32_MAX)
        return mongo_error_set(err, MONGO_MAX_STALENESS_OUT_OF_RANGE,
                               "$readPreference.maxStalenessSeconds is %d at least",
                               STALENESS_SECONDS_LEAST);
    return true;
}

static bool preference_find(const struct mongo_call *call, struct slice *ret_preference)
{
    struct document_value preference;

    if (!is_given(call->message.body, "$readPreference", &preference) ||
        preference.type != DOCUMENT_OBJECT)
        return false;
    *ret_preference = preference.document;
    return true;
}

bool mongo_preference_check(const struct mongo_call *call, struct error *err)
{
    struct document_value value;
    struct slice preference;
    enum mode mode;

    if (!preference_find(call, &preference))
        return !is_given(call->message.body, "$readPreference", &value) ||
               mongo_error_set(err, MONGO_TYPE_MISMATCH, "$readPreference has to be an object");
    return mode_read(preference, &mode, err) && tags_check(preference, mode, err) &&
           staleness_check(preference, mode, err);
}

/* --- Reading --------------------------------------------------------------------------------- */

/* Whatever only the primary can give. A cursor goes on there, too: one that waits for what is added
 * has to find the place it stands at. */
static bool needs_primary(const struct mongo_call *call)
{
    struct document_value concern, value, pipeline;
    struct document_iter iter, stage;

    if (!call->command || call->command->need == MONGO_NEED_WRITE || call->transact ||
        call->moment || call->primary || mongo_snapshot_is_asked(call) ||
        strcmp(call->command->name, "getMore") == 0 ||
        (is_given(call->message.body, "tailable", &value) &&
         (value.type != DOCUMENT_BOOL || value.boolean)))
        return true;
    if (is_given(call->message.body, "readConcern", &concern) && concern.type == DOCUMENT_OBJECT &&
        (is_given(concern.document, "afterClusterTime", &value) ||
         (is_given(concern.document, "level", &value) && value.type == DOCUMENT_STRING &&
          slice_equal(value.text, SLICE("linearizable")))))
        return true;
    if (!is_given(call->message.body, "pipeline", &pipeline) || pipeline.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, pipeline.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&stage, iter.value.document);
        if (document_iter_next(&stage) &&
            (slice_equal(stage.key, SLICE("$out")) || slice_equal(stage.key, SLICE("$merge"))))
            return true;
    }
    return false;
}

/* What is asked for here is weaker than, or as strong as, what the account has: a preference for
 * standbys says that the command does with less. */
void mongo_preference_read(const struct mongo_call *call, struct item_reading_options *ret_options)
{
    const struct front_consistency *own = &call->services->consistency;
    struct document_value staleness;
    struct slice preference;
    struct error ignored;
    enum mode mode;
    int64_t seconds;

    *ret_options = front_consistency_reading(own, own->level);
    if (!preference_find(call, &preference) || !mode_read(preference, &mode, &ignored))
        return;
    if (mode <= MODE_PRIMARY_PREFERRED) {
        ret_options->level = ITEM_STRONG;
        return;
    }
    ret_options->level = own->level == ITEM_EVENTUAL ? ITEM_EVENTUAL : ITEM_PREFIX;
    if (is_given(preference, "maxStalenessSeconds", &staleness) &&
        document_to_int64(&staleness, &seconds) && seconds > 0) {
        ret_options->level = ITEM_BOUNDED;
        ret_options->staleness_ms = seconds * 1000;
        ret_options->staleness_lsns = UINT64_MAX;
    }
}

void mongo_preference_look(const struct mongo_call *call, struct mongo_collection *collection)
{
    struct item_reading_options options;

    if (needs_primary(call))
        return;
    mongo_preference_read(call, &options);
    collection->reading = item_reading_begin(&collection->space, &options);
}
