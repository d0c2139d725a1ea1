/* The engine's own time limit counts processor time, stops ticking when it has struck and must be
 * armed again from within. So it is a tick of a few milliseconds at which the wall clock and the
 * memory are looked at. What it cannot interrupt (one long call into the engine, an endless chain
 * of promises) the server ends from outside. */
#include "script/worker/engine.h"

#include "base/clock.h"
#include "script/worker/sandbox.h"

/* Exported by the library, declared in a header that is not installed. */
typedef bool (*JSShouldTerminateCallback)(JSContextRef context, void *self);
void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double seconds,
                                         JSShouldTerminateCallback callback, void *self);

#define TICK_SECONDS 0.005
enum { TICKS_LONG = 20 }; /* a tenth of a second of computing */

static bool tick(JSContextRef context UNUSED, void *self)
{
    struct engine *engine = self;

    if (engine->end == ENGINE_RUNNING && sandbox_memory_used() > engine->memory_max)
        engine->end = ENGINE_OUT_OF_MEMORY;
    if (engine->end == ENGINE_RUNNING)
        engine_in_time(engine);
    if (engine->end != ENGINE_RUNNING)
        return true;
    if (++engine->ticks == TICKS_LONG) {
        sandbox_give_way();
        engine->gave_way = true;
    }
    JSContextGroupSetExecutionTimeLimit(engine->group, TICK_SECONDS, tick, engine);
    return false;
}

void engine_init(struct engine *engine)
{
    *engine = (struct engine){.group = JSContextGroupCreate(), .memory_max = UINT64_MAX};
}

void engine_watch(struct engine *engine, int64_t deadline_ms)
{
    engine->deadline_ms = deadline_ms;
    engine->ticks = 0;
    JSContextGroupSetExecutionTimeLimit(engine->group, TICK_SECONDS, tick, engine);
}

bool engine_in_time(struct engine *engine)
{
    if (engine->end == ENGINE_RUNNING && clock_monotonic_ms() >= engine->deadline_ms)
        engine->end = ENGINE_OUT_OF_TIME;
    return engine->end == ENGINE_RUNNING;
}

JSValueRef engine_call(struct engine *engine, JSContextRef context, JSObjectRef function,
                       const JSValueRef *arguments, size_t count, JSValueRef *ret_thrown)
{
    JSValueRef thrown = NULL;
    JSValueRef value = JSObjectCallAsFunction(context, function, NULL, count, arguments, &thrown);

    *ret_thrown = NULL;
    if (engine->end != ENGINE_RUNNING)
        return NULL;
    if (!value || thrown) {
        *ret_thrown = thrown ? thrown : JSValueMakeUndefined(context);
        return NULL;
    }
    return value;
}

/* The byte behind the text is the next field's, or the NUL behind the frame; it is put back. */
JSStringRef engine_string(struct slice text)
{
    uint8_t *end = (uint8_t *)(uintptr_t)text.data + text.len, kept;
    JSStringRef string;

    if (!text.len)
        return JSStringCreateWithUTF8CString("");
    kept = *end;
    *end = 0;
    string = JSStringCreateWithUTF8CString((const char *)text.data);
    *end = kept;
    return string;
}

JSValueRef engine_text(JSContextRef context, struct slice text)
{
    JSStringRef string;
    JSValueRef value;

    if (!text.data)
        return JSValueMakeUndefined(context);
    string = engine_string(text);
    value = JSValueMakeString(context, string);
    JSStringRelease(string);
    return value;
}

JSValueRef engine_json(JSContextRef context, struct slice text)
{
    JSStringRef string;
    JSValueRef value;

    if (!text.data)
        return JSValueMakeUndefined(context);
    string = engine_string(text);
    value = JSValueMakeFromJSONString(context, string);
    JSStringRelease(string);
    return value ? value : JSValueMakeUndefined(context);
}

JSObjectRef engine_property(JSContextRef context, JSObjectRef object, const char *name)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSValueRef value = JSObjectGetProperty(context, object, key, NULL);

    JSStringRelease(key);
    return JSValueToObject(context, value, NULL);
}

JSValueRef engine_element(JSContextRef context, JSValueRef array, unsigned index)
{
    return JSObjectGetPropertyAtIndex(context, (JSObjectRef)(uintptr_t)array, index, NULL);
}

bool engine_append(JSContextRef context, JSValueRef value, size_t max, struct buf *to)
{
    JSStringRef string;
    size_t most, len;
    bool fits;

    if (!JSValueIsString(context, value))
        return true;
    string = JSValueToStringCopy(context, value, NULL);
    if (!string)
        return false;
    /* Each unit takes at least one byte, so this ends what is far too long before it is copied. */
    fits = JSStringGetLength(string) <= max;
    most = JSStringGetMaximumUTF8CStringSize(string);
    fits = fits && buf_reserve(to, most);
    if (fits) {
        len = JSStringGetUTF8CString(string, (char *)to->data + to->len, most);
        len = len ? len - 1 : 0;
        fits = len <= max;
        to->len += fits ? len : 0;
    }
    JSStringRelease(string);
    return fits;
}

JSValueRef engine_fault(JSContextRef context, int number, const char *message)
{
    JSStringRef text = JSStringCreateWithUTF8CString(message);
    JSStringRef names[] = {JSStringCreateWithUTF8CString("number"),
                           JSStringCreateWithUTF8CString("body")};
    JSValueRef value = JSValueMakeString(context, text);
    JSObjectRef error = JSObjectMakeError(context, 1, &value, NULL);

    if (error) {
        JSObjectSetProperty(context, error, names[0], JSValueMakeNumber(context, number), 0, NULL);
        JSObjectSetProperty(context, error, names[1], value, 0, NULL);
    }
    JSStringRelease(text);
    JSStringRelease(names[0]);
    JSStringRelease(names[1]);
    return error ? (JSValueRef)error : value;
}
