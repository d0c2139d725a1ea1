/* What the machine has. */
#pragma once

#include <stddef.h>

/* Bytes of memory that this process may use: the machine's, or what its control group is limited
 * to, if that is less. */
size_t machine_memory(void);
