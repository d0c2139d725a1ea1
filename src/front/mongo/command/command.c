#include "front/mongo/command/command.h"

enum { ADMIN = 1, LEGACY = 2 };

static const struct mongo_command commands[] = {
#define MONGO_COMMAND(name, alias, need, place, tally, flags, function, meaning)                   \
    {name,                                                                                         \
     alias,                                                                                        \
     MONGO_NEED_##need,                                                                            \
     MONGO_PLACE_##place,                                                                          \
     MONGO_TALLY_##tally,                                                                          \
     ((flags)&ADMIN) != 0,                                                                         \
     ((flags)&LEGACY) != 0,                                                                        \
     function,                                                                                     \
     meaning},
#define MONGO_REFUSED(name, meaning)                                                               \
    {name,  "",   MONGO_NEED_KNOWN, MONGO_PLACE_LOOP, MONGO_TALLY_COMMAND, false,                  \
     false, NULL, meaning},
#include "front/mongo/command/commands.def"
#undef MONGO_COMMAND
#undef MONGO_REFUSED
};

/* A few dozen short names: looking through them costs less than what surrounds it. */
const struct mongo_command *mongo_command_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (slice_equal(name, slice_of_text(commands[i].name)) ||
            (commands[i].alias[0] && slice_equal(name, slice_of_text(commands[i].alias))))
            return &commands[i];
    return NULL;
}

const struct mongo_command *mongo_commands(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(commands);
    return commands;
}
