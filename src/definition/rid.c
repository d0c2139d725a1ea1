/* Base64 by hand: the alphabet of the service is its own ('-' for '/'), and ten lines are less than
 * turning somebody else's output around. A text must be the one that its bytes give, so that a rid
 * has one spelling. */
#include "definition/rid.h"

#include "base/bytes.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

enum {
    CONTAINER_MARK = 0x80, /* of byte 4 */
    KEY_MARK = 0x40,
    NIBBLE_SHIFT = 60,
};

/* The top nibble of the number, for kinds below a container; -1 for others. */
static int kind_nibble(enum rid_kind kind)
{
    switch (kind) {
    case RID_ITEM:
        return 0;
    case RID_CONFLICT:
        return 4;
    case RID_PKRANGE:
        return 5;
    case RID_UDF:
        return 6;
    case RID_TRIGGER:
        return 7;
    case RID_PROCEDURE:
        return 8;
    default:
        return -1;
    }
}

static bool nibble_kind(unsigned nibble, enum rid_kind *ret_kind)
{
    for (enum rid_kind kind = RID_ITEM; kind <= RID_PROCEDURE; kind++)
        if (kind_nibble(kind) == (int)nibble) {
            *ret_kind = kind;
            return true;
        }
    return false;
}

static size_t owner_encode(struct rid rid, uint8_t mark, uint8_t *ret_bytes)
{
    assert(rid.owner < 1u << RID_OWNER_BITS);
    bytes_put_be32(ret_bytes, rid.database);
    bytes_put_be32(ret_bytes + 4, rid.owner);
    ret_bytes[4] |= mark;
    return 8;
}

size_t rid_encode(struct rid rid, uint8_t ret_bytes[RID_BYTES_MAX])
{
    assert(rid.number >> RID_NUMBER_BITS == 0);
    switch (rid.kind) {
    case RID_DATABASE:
        bytes_put_be32(ret_bytes, rid.database);
        return 4;
    case RID_CONTAINER:
        return owner_encode(rid, CONTAINER_MARK, ret_bytes);
    case RID_USER:
        return owner_encode(rid, 0, ret_bytes);
    case RID_ENCRYPTION_KEY:
        return owner_encode(rid, KEY_MARK, ret_bytes);
    case RID_PERMISSION:
        bytes_put_le64(ret_bytes + owner_encode(rid, 0, ret_bytes), rid.number);
        return 16;
    case RID_OFFER:
        assert(rid.number >> RID_OFFER_BITS == 0);
        for (int i = 0; i < 3; i++)
            ret_bytes[i] = (uint8_t)(rid.number >> 8 * i);
        return 3;
    default:
        owner_encode(rid, CONTAINER_MARK, ret_bytes);
        bytes_put_le64(ret_bytes + 8, rid.number | (uint64_t)kind_nibble(rid.kind) << NIBBLE_SHIFT);
        return 16;
    }
}

struct slice rid_format(struct rid rid, char ret_text[RID_TEXT_SIZE])
{
    uint8_t bytes[RID_BYTES_MAX + 2] = {0};
    size_t count = rid_encode(rid, bytes), len = 0;

    for (size_t i = 0; i < count; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];

        for (size_t j = 0; j < 4; j++)
            ret_text[len++] = i + j <= count ? alphabet[bits >> (18 - 6 * j) & 63] : '=';
    }
    ret_text[len] = '\0';
    return slice_of(ret_text, len);
}

/* Bytes of a base64 text; 0 when it is none. */
static size_t base64_decode(struct slice text, uint8_t ret_bytes[RID_BYTES_MAX + 2])
{
    size_t len = text.len, count = 0;
    uint32_t bits = 0;

    if (text.len == 0 || text.len % 4 || text.len >= RID_TEXT_SIZE)
        return 0;
    for (int padding = 0; padding < 2 && text.data[len - 1] == '='; padding++)
        len--;
    for (size_t i = 0; i < len; i++) {
        const char *at = text.data[i] ? strchr(alphabet, text.data[i]) : NULL;

        if (!at)
            return 0;
        bits = bits << 6 | (uint32_t)(at - alphabet);
        if (i % 4)
            ret_bytes[count++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return count;
}

static bool bytes_parse(const uint8_t *bytes, size_t count, struct rid *rid)
{
    if (count == 3) {
        *rid =
            rid_of_offer((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16);
        return true;
    }
    if (count != 4 && count != 8 && count != 16)
        return false;
    *rid = rid_of_database(bytes_get_be32(bytes));
    if (count == 4)
        return true;
    rid->owner = bytes_get_be32(bytes + 4) & ((1u << RID_OWNER_BITS) - 1);
    rid->kind = bytes[4] & CONTAINER_MARK ? RID_CONTAINER
                : bytes[4] & KEY_MARK     ? RID_ENCRYPTION_KEY
                                          : RID_USER;
    if (count == 8)
        return true;
    rid->number = bytes_get_le64(bytes + 8) & (((uint64_t)1 << RID_NUMBER_BITS) - 1);
    if (rid->kind == RID_CONTAINER)
        return nibble_kind(bytes[15] >> 4, &rid->kind);
    if (rid->kind != RID_USER)
        return false;
    rid->kind = RID_PERMISSION;
    return true;
}

bool rid_parse(struct slice text, struct rid *ret_rid)
{
    uint8_t bytes[RID_BYTES_MAX + 2] = {0};
    char again[RID_TEXT_SIZE];
    struct rid rid;

    if (!bytes_parse(bytes, base64_decode(text, bytes), &rid) ||
        !slice_equal(rid_format(rid, again), text))
        return false;
    *ret_rid = rid;
    return true;
}
