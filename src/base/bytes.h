/* Fixed-width numbers in bytes: big-endian where the order of the bytes must be the order of the
 * numbers (keys), little-endian where a format says so (BSON, _rid). Any alignment. */
#pragma once

#include "base/attrs.h"

#include <endian.h>

static inline void bytes_put_be16(uint8_t *to, uint16_t value)
{
    value = htobe16(value);
    memcpy(to, &value, sizeof value);
}

static inline void bytes_put_be32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof value);
}

static inline void bytes_put_be64(uint8_t *to, uint64_t value)
{
    value = htobe64(value);
    memcpy(to, &value, sizeof value);
}

static inline void bytes_put_le32(uint8_t *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, sizeof value);
}

static inline void bytes_put_le64(uint8_t *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, sizeof value);
}

static inline uint16_t bytes_get_be16(const uint8_t *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof value);
    return be16toh(value);
}

static inline uint32_t bytes_get_be32(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return be32toh(value);
}

static inline uint64_t bytes_get_be64(const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof value);
    return be64toh(value);
}

static inline uint32_t bytes_get_le32(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

static inline uint64_t bytes_get_le64(const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof value);
    return le64toh(value);
}
