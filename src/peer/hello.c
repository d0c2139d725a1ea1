#include "peer/hello.h"

#include "base/bytes.h"

enum { HEAD_BYTES = 12, FLAG_TLS = 1, FLAG_REQUESTS = 2, FLAG_LEASES = 4 };

static const uint8_t magic[4] = {'O', 'R', 'R', 'P'};

void peer_hello_append(struct buf *out, const struct peer_hello *hello)
{
    char address[NET_ADDRESS_TEXT_SIZE] = "";
    uint8_t lengths[4];

    assert(hello->front < PEER_FRONTS && hello->subject.len <= PEER_SUBJECT_BYTES_MAX);
    if (hello->client.len)
        net_address_text(&hello->client, address);
    buf_append(out, magic, sizeof magic);
    buf_append_byte(out, PEER_VERSION);
    buf_append_byte(out, (uint8_t)hello->front);
    buf_append_byte(out,
                    (uint8_t)((hello->tls ? FLAG_TLS : 0) | (hello->requests ? FLAG_REQUESTS : 0) |
                              (hello->leases ? FLAG_LEASES : 0)));
    buf_append_byte(out, hello->hops);
    bytes_put_be16(lengths, (uint16_t)strlen(address));
    bytes_put_be16(lengths + 2, (uint16_t)hello->subject.len);
    buf_append(out, lengths, sizeof lengths);
    buf_append_text(out, address);
    buf_append_slice(out, hello->subject);
}

/* What is known of it before it is whole. */
static bool head_check(struct slice bytes, enum peer_verdict *ret_verdict, struct error *err)
{
    *ret_verdict = PEER_OTHER_VERSION;
    if (memcmp(bytes.data, magic, MIN(bytes.len, sizeof magic)) != 0)
        return error_set(err, ERROR_BAD_REQUEST, "it is no server of ours");
    if (bytes.len > 4 && bytes.data[4] != PEER_VERSION)
        return error_set(err, ERROR_BAD_REQUEST,
                         "it passes connections on by version %u, this server takes version %d",
                         bytes.data[4], PEER_VERSION);
    if (bytes.len > 5 && bytes.data[5] >= PEER_FRONTS) {
        *ret_verdict = PEER_FRONT_OFF;
        return error_set(err, ERROR_BAD_REQUEST, "there is no front %u", bytes.data[5]);
    }
    if (bytes.len > 7 && bytes.data[7] > PEER_HOPS_MAX) {
        *ret_verdict = PEER_TOO_MANY_HOPS;
        return error_set(err, ERROR_BAD_REQUEST, "it was passed on %u times", bytes.data[7]);
    }
    return true;
}

bool peer_hello_read(struct slice bytes, struct peer_hello *ret_hello, size_t *ret_taken,
                     enum peer_verdict *ret_verdict, struct error *err)
{
    struct peer_hello hello = {0};
    size_t address_len, subject_len;
    struct slice address;

    *ret_taken = 0;
    if (!head_check(bytes, ret_verdict, err))
        return false;
    if (bytes.len < HEAD_BYTES)
        return true;
    address_len = bytes_get_be16(bytes.data + 8);
    subject_len = bytes_get_be16(bytes.data + 10);
    if (address_len >= NET_ADDRESS_TEXT_SIZE || subject_len > PEER_SUBJECT_BYTES_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "its address or subject is too long");
    if (bytes.len < HEAD_BYTES + address_len + subject_len)
        return true;
    address = slice_of(bytes.data + HEAD_BYTES, address_len);
    if (address_len && !net_address_parse(address, &hello.client, err))
        return false;
    hello.front = (enum peer_front)bytes.data[5];
    hello.tls = bytes.data[6] & FLAG_TLS;
    hello.requests = bytes.data[6] & FLAG_REQUESTS;
    hello.leases = bytes.data[6] & FLAG_LEASES;
    hello.hops = bytes.data[7];
    hello.subject = slice_of(bytes.data + HEAD_BYTES + address_len, subject_len);
    *ret_hello = hello;
    *ret_taken = HEAD_BYTES + address_len + subject_len;
    *ret_verdict = PEER_TAKEN;
    return true;
}

void peer_answer_write(enum peer_verdict verdict, uint8_t ret_bytes[PEER_ANSWER_BYTES])
{
    memset(ret_bytes, 0, PEER_ANSWER_BYTES);
    memcpy(ret_bytes, magic, sizeof magic);
    ret_bytes[4] = PEER_VERSION;
    ret_bytes[5] = (uint8_t)verdict;
}

bool peer_answer_read(const uint8_t bytes[PEER_ANSWER_BYTES], enum peer_verdict *ret_verdict)
{
    if (memcmp(bytes, magic, sizeof magic) != 0 || bytes[5] > PEER_TOO_MANY_HOPS)
        return false;
    *ret_verdict = (enum peer_verdict)bytes[5];
    return true;
}
