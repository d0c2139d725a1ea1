/* Commands: what can be asked for, by name, and who does it. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct mongo_call;

/* What a command needs of whoever sends it. */
enum mongo_need {
    MONGO_NEED_NOTHING, /* not even to be known */
    MONGO_NEED_KNOWN,   /* to be known */
    MONGO_NEED_READ,    /* the same: every key may read */
    MONGO_NEED_WRITE,   /* a key that may write */
};

enum mongo_place { MONGO_PLACE_LOOP, MONGO_PLACE_WORKER };

/* How serverStatus counts it. */
enum mongo_tally {
    MONGO_TALLY_INSERT,
    MONGO_TALLY_QUERY,
    MONGO_TALLY_UPDATE,
    MONGO_TALLY_DELETE,
    MONGO_TALLY_GETMORE,
    MONGO_TALLY_COMMAND,
    MONGO_TALLIES
};

/* One row of commands.def. */
struct mongo_command {
    const char *name, *alias; /* alias "": none */
    enum mongo_need need;
    enum mongo_place place;
    enum mongo_tally tally;
    bool admin;                                              /* on the database admin alone */
    bool legacy;                                             /* by OP_QUERY as well */
    bool (*run)(struct mongo_call *call, struct error *err); /* NULL: refused */
    const char *meaning;                                     /* of a refused one: why */
};

/* NULL: there is none. */
const struct mongo_command *mongo_command_find(struct slice name);
const struct mongo_command *mongo_commands(size_t *ret_count);

#define MONGO_COMMAND(name, alias, need, place, count, flags, function, meaning)                   \
    bool function(struct mongo_call *call, struct error *err);
#define MONGO_REFUSED(name, meaning)
#include "front/mongo/command/commands.def"
#undef MONGO_COMMAND
#undef MONGO_REFUSED
