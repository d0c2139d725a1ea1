/* Strategy of a container: the member `strategy` of its property `orrery`, and its directory. */
#pragma once

#include "base/buf.h"
#include "definition/definition.h"

/* Reads the member, whose form is at the top of definition_strategy.c, and appends it completed to
 * the body of a BSON document. before: what a replace begins with, else NULL. ERROR_BAD_REQUEST: it
 * cannot be so, or is another than before. */
NODISCARD bool definition_strategy_read(struct definition_fields *fields,
                                        const struct document_value *value,
                                        const struct definition_fields *before, struct arena *arena,
                                        struct buf *out, struct error *err);

/* The same where a replace does not speak of it: it stays. */
NODISCARD bool definition_strategy_keep(struct definition_fields *fields,
                                        const struct definition_fields *before, struct arena *arena,
                                        struct buf *out, struct error *err);

/* The lines of a directory by key, a BSON array of {key: [value], shard: number}; none: the
 * strategy is another. Borrowed. */
struct slice definition_directory(const struct definition_fields *fields);

/* Appends `orrery` as clients see it in the container: without the lines of a directory, which has
 * an address of its own. */
void definition_orrery_show(struct slice orrery, struct buf *out);

/* One line of a directory to be set, or removed. */
struct definition_directory_change {
    struct document_value value; /* of the first component */
    uint32_t shard;
    bool removes;
};

/* Another definition, with some lines of the directory changed. ERROR_BAD_REQUEST: there is no
 * directory, or no such shard, or a key is named twice. */
NODISCARD bool definition_directory_edit(const struct definition *before,
                                         const struct definition_directory_change *edits,
                                         size_t count, struct definition **ret_definition,
                                         struct error *err);
