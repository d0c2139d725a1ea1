/* Expands settings.def with the SETTING_ macros the includer has defined, and undefines them. No
 * pragma once: it is meant to be included again. */
#include "server/settings.def"
#undef SETTING_BOOL
#undef SETTING_INT
#undef SETTING_SIZE
#undef SETTING_DURATION
#undef SETTING_CHOICE
#undef SETTING_TEXT
