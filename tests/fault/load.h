/* What the killed load writes and the checker expects: one layout, two programs. */
#pragma once

#include "base/bytes.h"
#include "base/slice.h"

enum {
    LOAD_PARTITION = 1,
    LOAD_ENTRIES = 12,
    LOAD_KEY_LEN = 13,
    LOAD_VALUE_LEN = 128,
};

#define LOAD_COUNTER_KEY "cload"

/* 'e' | client | batch | entry, and 'l' | client | 0 | 0 for the client's last batch. */
static inline void load_key(uint8_t family, uint32_t client, uint32_t batch, uint32_t entry,
                            uint8_t ret_key[LOAD_KEY_LEN])
{
    ret_key[0] = family;
    bytes_put_be32(ret_key + 1, client);
    bytes_put_be32(ret_key + 5, batch);
    bytes_put_be32(ret_key + 9, entry);
}

/* The client, the batch, and bytes that follow from both. */
static inline void load_value(uint32_t client, uint32_t batch, uint8_t ret_value[LOAD_VALUE_LEN])
{
    bytes_put_be32(ret_value, client);
    bytes_put_be32(ret_value + 4, batch);
    for (uint32_t i = 8; i < LOAD_VALUE_LEN; i++)
        ret_value[i] = (uint8_t)(client * 31 + batch * 7 + i);
}
