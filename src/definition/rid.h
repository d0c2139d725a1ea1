/* Rid: the address a resource gets at birth and nobody gets again, as clients see it in `_rid`.
 *
 *     database        4 bytes   number, big-endian
 *     container       8 bytes   database | number, big-endian, top bit set
 *     user            8 bytes   database | number, big-endian, the two top bits clear
 *     encryption key  8 bytes   database | number, big-endian, the two top bits 01
 *     item and kin   16 bytes   container | 60-bit number, little-endian, kind in the top nibble
 *     permission     16 bytes   user | number, little-endian
 *     offer           3 bytes   number, little-endian
 *
 * The text is standard base64 with padding, '-' in place of '/'. Clients order items by their
 * number, never by the text. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

enum rid_kind {
    RID_DATABASE,
    RID_CONTAINER,
    RID_USER,
    RID_ENCRYPTION_KEY,
    RID_ITEM,
    RID_CONFLICT,
    RID_PKRANGE,
    RID_UDF,
    RID_TRIGGER,
    RID_PROCEDURE,
    RID_PERMISSION,
    RID_OFFER,
};

struct rid {
    enum rid_kind kind;
    uint32_t database; /* not of offers */
    uint32_t owner;    /* number of the container or user; of encryption keys the key's own */
    uint64_t number;   /* of what is below the owner, 60 bits; of an offer, 24 bits */
};

enum {
    RID_BYTES_MAX = 16,
    RID_TEXT_SIZE = 25,  /* with the NUL */
    RID_OWNER_BITS = 30, /* a number this small serves containers, users and keys alike */
    RID_NUMBER_BITS = 60,
    RID_OFFER_BITS = 24,
};

static inline struct rid rid_of_database(uint32_t database)
{
    return (struct rid){.kind = RID_DATABASE, .database = database};
}

static inline struct rid rid_of_container(uint32_t database, uint32_t container)
{
    return (struct rid){.kind = RID_CONTAINER, .database = database, .owner = container};
}

/* An item, or any other kind below a container. */
static inline struct rid rid_below_container(enum rid_kind kind, uint32_t database,
                                             uint32_t container, uint64_t number)
{
    return (struct rid){kind, database, container, number};
}

static inline struct rid rid_of_offer(uint32_t number)
{
    return (struct rid){.kind = RID_OFFER, .number = number};
}

/* Writes the bytes and says how many. The numbers must fit their bits. */
size_t rid_encode(struct rid rid, uint8_t ret_bytes[RID_BYTES_MAX]);

/* The text, NUL-terminated; returned as a slice of it. */
struct slice rid_format(struct rid rid, char ret_text[RID_TEXT_SIZE]);

/* False when the text is none of the above: not base64 of such a length, or of no known kind. */
NODISCARD bool rid_parse(struct slice text, struct rid *ret_rid);
