/* Withheld: containers that whoever makes them has not let go of yet, such as the collections of an
 * open transaction of MongoDB. For others they are not there: catalogue_container_open does not
 * find them, and lists leave them out.
 *
 * What is withheld is noted beside the catalogue (notes.h) before it is made, under the tag of its
 * maker. A process that finds such notes when it starts asks whether an item was written into any
 * container of that tag: then all of them stay, for items come with the commit alone; else all of
 * them go. */
#pragma once

#include "catalogue/catalogue.h"

enum { CATALOGUE_TAG_LEN = 16 };

struct catalogue_name {
    struct slice account, database, container;
};

/* Before it is made; durable on return. */
NODISCARD bool catalogue_withhold(struct catalogue *catalogue, const struct catalogue_name *name,
                                  const uint8_t tag[CATALOGUE_TAG_LEN], struct error *err);

/* Everything of this tag is there for all from now on, or dropped already. What cannot be noted now
 * is found at the next start. */
void catalogue_release(struct catalogue *catalogue, const uint8_t tag[CATALOGUE_TAG_LEN]);

/* The same of one container, which somebody else has made before. Should the process end between
 * catalogue_withhold and this, it goes if it is empty. */
void catalogue_release_one(struct catalogue *catalogue, const struct catalogue_name *name,
                           const uint8_t tag[CATALOGUE_TAG_LEN]);

/* What was to be told of containers of this tag since they are withheld, in that order, for who
 * releases them: others hear of it when they are there. In the arena. */
const struct history_record *catalogue_withheld_tellings(struct catalogue *catalogue,
                                                         const uint8_t tag[CATALOGUE_TAG_LEN],
                                                         struct arena *arena, size_t *ret_count);

bool catalogue_is_withheld(struct catalogue *catalogue, const struct catalogue_name *name);

/* The same as catalogue_container_open, also of one that is withheld: for its maker. */
NODISCARD bool catalogue_container_open_withheld(struct catalogue *catalogue, struct slice account,
                                                 struct slice database, struct slice id,
                                                 struct container **ret_container,
                                                 struct error *err);

/* At the start: what the process before has left behind goes, or stays. */
void catalogue_withheld_recover(struct catalogue *catalogue);
