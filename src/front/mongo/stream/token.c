#include "front/mongo/stream/token.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "front/mongo/error.h"

enum { FIRST = 0x82, TOKEN_LEN = 18, FRAGMENT_LEN = 4, TOKEN_LEN_MAX = TOKEN_LEN + FRAGMENT_LEN };

enum kind { TOLD, INVALIDATED, FRAGMENT };

struct mongo_token mongo_token_behind(uint64_t time)
{
    return (struct mongo_token){
        .place = {.time = time, .origin = UINT32_MAX, .ordinal = UINT32_MAX}};
}

bool mongo_token_is_event(const struct mongo_token *token)
{
    return token->place.origin != UINT32_MAX;
}

void mongo_token_append(struct buf *out, struct slice name, const struct mongo_token *token)
{
    static const char digits[] = "0123456789ABCDEF";
    uint8_t bytes[TOKEN_LEN_MAX] = {FIRST};
    char hex[2 * TOKEN_LEN_MAX];
    size_t begin, len = token->fragment ? TOKEN_LEN_MAX : TOKEN_LEN;

    bytes_put_be64(bytes + 1, token->place.time);
    bytes_put_be32(bytes + 9, token->place.origin);
    bytes_put_be32(bytes + 13, token->place.ordinal);
    bytes[17] = token->fragment ? FRAGMENT : token->invalidated ? INVALIDATED : TOLD;
    bytes_put_be32(bytes + TOKEN_LEN, token->fragment);
    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    begin = document_append_object_begin(out, name);
    document_append_string(out, SLICE("_data"), slice_of(hex, 2 * len));
    document_end(out, begin);
}

static int digit_of(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool mongo_token_read(struct slice document, struct mongo_token *ret_token, struct error *err)
{
    struct document_value data;
    uint8_t bytes[TOKEN_LEN_MAX] = {0};
    bool good = document_find(document, SLICE("_data"), &data) && document_count(document) == 1 &&
                data.type == DOCUMENT_STRING &&
                (data.text.len == 2 * TOKEN_LEN || data.text.len == 2 * TOKEN_LEN_MAX);
    size_t len = good ? data.text.len / 2 : 0;
    uint32_t fragment;

    for (size_t i = 0; good && i < len; i++) {
        int high = digit_of(data.text.data[2 * i]), low = digit_of(data.text.data[2 * i + 1]);

        good = high >= 0 && low >= 0;
        bytes[i] = good ? (uint8_t)(high << 4 | low) : 0;
    }
    fragment = bytes_get_be32(bytes + TOKEN_LEN);
    good = good && bytes[0] == FIRST &&
           (len == TOKEN_LEN ? bytes[17] <= INVALIDATED : bytes[17] == FRAGMENT && fragment);
    if (!good)
        return mongo_error_set(err, MONGO_INVALID_RESUME_TOKEN,
                               "Bad resume token: _data is not one that this server has given");
    *ret_token = (struct mongo_token){.place = {.time = bytes_get_be64(bytes + 1),
                                                .origin = bytes_get_be32(bytes + 9),
                                                .ordinal = bytes_get_be32(bytes + 13)},
                                      .invalidated = bytes[17] == INVALIDATED,
                                      .fragment = fragment};
    return true;
}
