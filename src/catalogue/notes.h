/* Notes: what other parts of the server keep beside the catalogue, on the root node: small entries
 * that are no part of any state, such as the record of heat. They are durable as every commit is;
 * nobody is held up by them.
 *
 * Keys are bytes; the first says whose a note is. Notes of a dropped container stay until whoever
 * wrote them removes them. All functions may block. */
#pragma once

#include "catalogue/catalogue.h"

/* Whose notes: the first byte of their keys. */
enum {
    CATALOGUE_NOTES_AUDIT = 'a', /* observe/audit.h */
    CATALOGUE_NOTES_HEAT = 'h',
    CATALOGUE_NOTES_MONGO =
        'm', /* users and roles: front/mongo/auth/directory.h; command/sampling.h */
    CATALOGUE_NOTES_SERVER = 's',
    CATALOGUE_NOTES_TRAFFIC = 't',
    CATALOGUE_NOTES_VIEWS = 'v',    /* front/rest/views/state.h */
    CATALOGUE_NOTES_WITHHELD = 'w', /* withheld.h */
};

/* The second byte of notes of the server that pauses are (maintain/pauses.h). */
enum { CATALOGUE_NOTES_SERVER_PAUSE = 'p' };

enum { CATALOGUE_NOTE_KEY_MAX = 64 };

/* Writes all of them in one commit. A key occurs at most once. */
NODISCARD bool catalogue_notes_write(struct catalogue *catalogue, const struct engine_op *ops,
                                     size_t count, struct error *err);

/* Where a note is stored, for who has not opened the catalogue. */
struct slice catalogue_notes_place(struct slice key, struct arena *arena, uint32_t *ret_partition);
NODISCARD bool catalogue_notes_get(struct catalogue *catalogue, struct slice key,
                                   struct arena *arena, struct engine_value *ret_value,
                                   struct error *err);

/* Calls visit for each note of a range, in the order of keys, until it says false. Key and value
 * are borrowed for the call. A range has both ends, within the notes of one owner. */
NODISCARD bool catalogue_notes_walk(struct catalogue *catalogue, struct engine_range range,
                                    bool (*visit)(void *context, struct slice key,
                                                  struct slice value),
                                    void *context, struct error *err);
