#include "script/worker/realm.h"

#include "api.h"
#include "base/memory.h"

void realms_init(struct realms *realms, struct engine *engine, const struct realm_native *natives,
                 size_t count, void *self)
{
    assert(count <= REALM_NATIVES_MAX);
    *realms =
        (struct realms){.engine = engine, .natives = natives, .native_count = count, .self = self};
    for (size_t i = 0; i < count; i++) {
        JSClassDefinition definition = kJSClassDefinitionEmpty;

        definition.className = natives[i].name;
        definition.callAsFunction = natives[i].call;
        realms->classes[i] = JSClassCreate(&definition);
    }
}

static JSObjectRef natives_make(const struct realms *realms, JSContextRef context)
{
    JSObjectRef object = JSObjectMake(context, NULL, NULL);

    for (size_t i = 0; i < realms->native_count; i++) {
        JSStringRef name = JSStringCreateWithUTF8CString(realms->natives[i].name);
        JSObjectRef function = JSObjectMake(context, realms->classes[i], realms->self);

        JSObjectSetProperty(context, object, name, function,
                            kJSPropertyAttributeReadOnly | kJSPropertyAttributeDontDelete, NULL);
        JSStringRelease(name);
    }
    return object;
}

static JSObjectRef entry(JSContextRef context, JSObjectRef entries, const char *name)
{
    JSObjectRef function = engine_property(context, entries, name);

    JSValueProtect(context, function);
    return function;
}

static void forget(JSContextRef context, JSObjectRef object)
{
    if (object)
        JSValueUnprotect(context, object);
}

/* A protected object would keep its whole realm alive. */
static void realm_free(struct realm *realm)
{
    JSContextRef context = realm->context;

    forget(context, realm->script);
    forget(context, realm->open);
    forget(context, realm->begin);
    forget(context, realm->step);
    forget(context, realm->end);
    forget(context, realm->explain);
    forget(context, realm->close);
    forget(context, realm->calls);
    forget(context, realm->program);
    JSGlobalContextRelease(realm->context);
    memory_free((void *)(uintptr_t)realm->key.data);
    memory_free(realm);
}

/* NULL: the watch has struck in the middle. The API itself cannot fail. */
static struct realm *realm_new(struct realms *realms)
{
    struct realm *realm = MEMORY_NEW(struct realm);
    JSContextRef context = realm->context =
        JSGlobalContextCreateInGroup(realms->engine->group, NULL);
    JSStringRef text = JSStringCreateWithUTF8CString(script_api_text);
    JSStringRef url = JSStringCreateWithUTF8CString("api");
    JSValueRef arguments[2], thrown = NULL;
    JSValueRef made = JSEvaluateScript(context, text, NULL, url, 1, &thrown);
    JSObjectRef entries;

    JSStringRelease(text);
    JSStringRelease(url);
    arguments[0] = natives_make(realms, context);
    arguments[1] = JSContextGetGlobalObject(context);
    if (made)
        made = engine_call(realms->engine, context, (JSObjectRef)(uintptr_t)made, arguments, 2,
                           &thrown);
    if (!made) {
        realm_free(realm);
        return NULL;
    }
    entries = (JSObjectRef)(uintptr_t)made;
    realm->open = entry(context, entries, "open");
    realm->begin = entry(context, entries, "begin");
    realm->step = entry(context, entries, "step");
    realm->end = entry(context, entries, "end");
    realm->explain = entry(context, entries, "explain");
    realm->close = entry(context, entries, "close");
    realm->calls = entry(context, entries, "calls");
    realm->program = entry(context, entries, "program");
    return realm;
}

/* The place of a realm to come: a free one, or that of the one unused for longest. */
static struct realm **place_for(struct realms *realms)
{
    struct realm **oldest = &realms->all[0];

    for (size_t i = 0; i < REALMS_MAX; i++) {
        if (!realms->all[i])
            return &realms->all[i];
        if (realms->all[i]->used < (*oldest)->used)
            oldest = &realms->all[i];
    }
    realm_free(TAKE(*oldest));
    return oldest;
}

struct realm *realms_find(struct realms *realms, struct slice key, bool functions)
{
    struct realm *realm, **place;
    uint8_t *copy;

    realms->clock++;
    for (size_t i = 0; i < REALMS_MAX; i++) {
        realm = realms->all[i];
        if (realm && realm->functions == functions && slice_equal(realm->key, key)) {
            realm->used = realms->clock;
            return realm;
        }
    }
    realm = realms->blank ? TAKE(realms->blank) : realm_new(realms);
    if (!realm)
        return NULL;
    place = place_for(realms);
    copy = memory_alloc(key.len);
    if (key.len)
        memcpy(copy, key.data, key.len);
    realm->key = slice_of(copy, key.len);
    realm->functions = functions;
    realm->used = realms->clock;
    *place = realm;
    if (!functions) {
        JSValueRef thrown;

        if (!engine_call(realms->engine, realm->context, realm->open, NULL, 0, &thrown))
            return NULL;
    }
    return realm;
}

/* As an expression, in brackets: what a body commonly is. */
static JSValueRef evaluate_bracketed(JSContextRef context, struct slice name, struct slice source,
                                     JSValueRef *ret_thrown)
{
    CLEANUP(buf_done) struct buf text;
    JSStringRef string, url;
    JSValueRef value;

    while (source.len && strchr("; \t\r\n", source.data[source.len - 1]))
        source.len--;
    buf_init(&text, source.len + 16);
    BUF_APPEND(&text, "(");
    buf_append_slice(&text, source);
    BUF_APPEND(&text, "\n)");
    buf_append_byte(&text, 0);
    string = JSStringCreateWithUTF8CString((const char *)text.data);
    url = engine_string(name);
    *ret_thrown = NULL;
    value = JSEvaluateScript(context, string, NULL, url, 1, ret_thrown);
    JSStringRelease(string);
    JSStringRelease(url);
    return value;
}

bool realm_compile(struct realms *realms, struct realm *realm, struct slice name,
                   struct slice source, JSValueRef *ret_thrown)
{
    JSContextRef context = realm->context;
    JSValueRef arguments[2], value, thrown;

    value = evaluate_bracketed(context, name, source, &thrown);
    *ret_thrown = NULL;
    if (realms->engine->end != ENGINE_RUNNING)
        return false;
    /* api.js looks at what came out, and tries the text as a program where it was no expression. */
    arguments[0] = engine_text(context, source);
    arguments[1] = value ? value : JSValueMakeUndefined(context);
    value = engine_call(
        realms->engine, context, realm->program,
        (JSValueRef[]){arguments[0], arguments[1], thrown ? thrown : JSValueMakeUndefined(context)},
        3, ret_thrown);
    if (!value)
        return false;
    realm->script = (JSObjectRef)(uintptr_t)value;
    JSValueProtect(context, realm->script);
    return true;
}

void realms_prepare(struct realms *realms)
{
    if (!realms->blank)
        realms->blank = realm_new(realms);
}

void realms_drop(struct realms *realms, struct realm *realm)
{
    for (size_t i = 0; i < REALMS_MAX; i++) {
        if (realms->all[i] == realm) {
            realms->all[i] = NULL;
            realm_free(realm);
            return;
        }
    }
}
