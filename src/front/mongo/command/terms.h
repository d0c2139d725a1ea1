/* Terms of a collection: what its creator said of it beyond its name, kept in the definition of its
 * container as orrery.mongo:
 *
 *     {v: 1, options: {capped, size, max, validator, validationLevel, validationAction, viewOn,
 *                      pipeline, collation, changeStreamPreAndPostImages}}
 *
 * The options are those of `create` and are shown by listCollections as they are. A container
 * without the property, as made by an insert or by a version before, has none of them. A version
 * that is not known here is of a later server: the collection is refused, not misread. */
#pragma once

#include "catalogue/catalogue.h"
#include "document/bson.h"
#include "front/mongo/error.h"

enum { MONGO_TERMS_VERSION = 1, MONGO_TERMS_BYTES_MAX = 240 * 1024 };

enum mongo_validation_level { MONGO_LEVEL_STRICT, MONGO_LEVEL_MODERATE, MONGO_LEVEL_OFF };

/* Slices are borrowed from where they were read. */
struct mongo_terms {
    struct slice options; /* all of them; data NULL: none */

    struct slice validator; /* a filter; data NULL: none */
    enum mongo_validation_level level;
    bool warn; /* what fails is written all the same */

    struct slice view_on; /* a collection of the same database; data NULL: it is no view */
    struct slice pipeline;

    bool capped;
    int64_t size, max; /* max 0: none */

    struct slice collation;
    bool images; /* changes are kept with the documents before and after them */
};

/* Of a container. ERROR_STORE_VERSION: it is a later server's. */
NODISCARD bool mongo_terms_of(const struct container *container, struct mongo_terms *ret_terms,
                              struct error *err);

/* Of options as `create` and `collMod` have them, checked: types, values and which go together.
 * What is not offered is refused by name. */
NODISCARD bool mongo_terms_read(struct slice options, struct mongo_terms *ret_terms,
                                struct error *err);

/* What orrery.mongo becomes; in the arena. */
struct slice mongo_terms_stored(struct slice options, struct arena *arena);
