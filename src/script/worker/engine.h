/* Engine: the JavaScript machine of a worker: one for its whole life, with a watch on time and
 * memory, and texts in and out of it. */
#pragma once

#include "base/buf.h"

#include <JavaScriptCore/JavaScript.h>

enum engine_end {
    ENGINE_RUNNING,
    ENGINE_OUT_OF_TIME,
    ENGINE_OUT_OF_MEMORY,
};

struct engine {
    JSContextGroupRef group;
    uint64_t memory_max; /* resident bytes at which a script is ended */
    int64_t deadline_ms; /* of what runs now, monotonic */
    unsigned ticks;      /* of the watch, in this run */
    bool gave_way;       /* it has computed for long; another worker is to take its place */
    enum engine_end end; /* why the script was ended; the engine is spent then */
};

void engine_init(struct engine *engine);

/* Watches what is called from now on, until deadline_ms. */
void engine_watch(struct engine *engine, int64_t deadline_ms);

/* Looks at the clock, as the watch does. False: time is up. */
bool engine_in_time(struct engine *engine);

/* Calls a function of JavaScript. NULL: *ret_thrown has what it threw, or NULL when the watch has
 * ended it. */
JSValueRef engine_call(struct engine *engine, JSContextRef context, JSObjectRef function,
                       const JSValueRef *arguments, size_t count, JSValueRef *ret_thrown);

/* Texts. `text` lies in a frame and is ended by a NUL for the moment of the call. */
JSStringRef engine_string(struct slice text);
JSValueRef engine_text(JSContextRef context, struct slice text); /* absent: undefined */
JSValueRef engine_json(JSContextRef context, struct slice text); /* absent or bad: undefined */
JSObjectRef engine_property(JSContextRef context, JSObjectRef object, const char *name);
JSValueRef engine_element(JSContextRef context, JSValueRef array, unsigned index);

/* Appends a value's text as UTF-8; what is no string is nothing. False: it has more than max
 * bytes. */
NODISCARD bool engine_append(JSContextRef context, JSValueRef value, size_t max, struct buf *to);

/* An Error with a number, for scripts to catch. */
JSValueRef engine_fault(JSContextRef context, int number, const char *message);
