/* Documents for tests: from JSON text, or at random from a seed. */
#pragma once

#include "base/arena.h"
#include "base/random.h"
#include "document/bson.h"

/* The BSON of a JSON object or the value of any JSON text, in the arena. Fails the test if the text
 * is not JSON. */
struct slice document_of(struct arena *arena, const char *json);
struct document_value value_of(struct arena *arena, const char *json);

/* A value of any type, nested up to depth more levels, in the arena. Numbers are often close to
 * each other, texts short and alike, so that equal and nearly equal values are common. */
struct document_value value_random(struct random *random, struct arena *arena, unsigned depth);

/* The same, but only what JSON can hold. */
struct document_value value_random_json(struct random *random, struct arena *arena, unsigned depth);
