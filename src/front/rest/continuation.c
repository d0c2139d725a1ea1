#include "front/rest/continuation.h"

static struct front_seal seal_of(const struct rest_call *call, struct slice rid,
                                 struct slice purpose)
{
    return (struct front_seal){slice_of(call->options->seal, REST_SEAL_BYTES), rid, purpose};
}

struct slice rest_continuation_seal(struct rest_call *call, struct slice rid, struct slice purpose,
                                    struct slice bytes)
{
    struct front_seal seal = seal_of(call, rid, purpose);

    return front_seal_close(&seal, bytes, call->arena);
}

bool rest_continuation_open(struct rest_call *call, struct slice rid, struct slice purpose,
                            struct slice text, struct slice *ret_bytes, struct error *err)
{
    struct front_seal seal = seal_of(call, rid, purpose);

    return front_seal_open(&seal, text, call->arena, ret_bytes) ||
           error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
}

void rest_continuation_answer(struct rest_call *call, struct slice text)
{
    rest_answer_header(call, SLICE("x-ms-continuation"), text);
}

bool rest_continuation_limit_check(const struct rest_call *call, struct error *err)
{
    struct slice limit = rest_call_header(call, REST_HEADER_CONTINUATION_LIMIT_KB);
    uint64_t kb;

    if (limit.data && (!slice_to_uint64(limit, &kb) || kb < 1))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-documentdb-responsecontinuationtokenlimitinkb must be 1 or more");
    return true;
}
