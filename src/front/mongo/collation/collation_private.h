/* Collators from within the folder. */
#pragma once

#include "front/mongo/collation/collation.h"

#include <unicode/ucol.h>

struct mongo_collator {
    UCollator *icu; /* not changed any more: its const calls may be made by all threads */
    struct slice document;
};
