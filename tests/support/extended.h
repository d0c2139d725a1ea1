/* Test cases as JSON files in which values of other types are canonical extended JSON. Objects
 * whose names are operators, {"$gt": 1}, stay as they are. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

/* The document of a JSON text; what is below tests/ in a file. Both fail the test on errors. */
struct slice extended_document(struct arena *arena, struct slice json);
struct slice extended_file(struct arena *arena, const char *path);
