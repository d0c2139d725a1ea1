/* Realm: a global object of its own for one script, with the API in it and the script compiled.
 *
 * Scripts of one text (rid and etag) share a realm from run to run, and no two texts ever share
 * one. After each run what it put into the global object is removed; a realm whose built-in
 * prototypes were visibly extended is given up. */
#pragma once

#include "script/worker/engine.h"

struct realm {
    struct slice key; /* owned */
    bool functions;   /* of a query: no context, no collection */
    uint64_t used;    /* when last, counted in runs */
    JSGlobalContextRef context;
    JSObjectRef script; /* the function of the text; NULL: not compiled yet */
    JSObjectRef open, begin, step, end, explain, close, calls, program; /* of api.js */
};

enum { REALMS_MAX = 24, REALM_NATIVES_MAX = 8 };

/* A function that C offers to api.js; its object's private data is what it belongs to. */
struct realm_native {
    const char *name;
    JSObjectCallAsFunctionCallback call;
};

struct realms {
    struct engine *engine;
    const struct realm_native *natives;
    size_t native_count;
    JSClassRef classes[REALM_NATIVES_MAX];
    void *self; /* what the natives belong to */
    struct realm *all[REALMS_MAX];
    struct realm *blank; /* made ahead */
    uint64_t clock;
};

void realms_init(struct realms *realms, struct engine *engine, const struct realm_native *natives,
                 size_t count, void *self);

/* The realm of a text. Without `script` it is new, and realm_compile comes next. NULL: the watch
 * has ended it. */
struct realm *realms_find(struct realms *realms, struct slice key, bool functions);

/* Makes the function of the text. False: *ret_thrown has what was thrown, NULL for the watch. */
NODISCARD bool realm_compile(struct realms *realms, struct realm *realm, struct slice name,
                             struct slice source, JSValueRef *ret_thrown);

/* Makes the next blank one, while nobody waits. */
void realms_prepare(struct realms *realms);

/* Gives a realm up. */
void realms_drop(struct realms *realms, struct realm *realm);
