#include "front/gremlin/command/ledger.h"

#include "front/gremlin/value/value.h"

static void requests_print(struct buf *out)
{
    BUF_APPEND(out, "\n## Requests\n\n| op | | processors | what |\n|---|---|---|---|\n");
#define GREMLIN_OP(name, constant, processors, meaning)                                            \
    buf_printf(out, "| `%s` | yes | %s | %s |\n", name, processors, meaning);
#define GREMLIN_OP_REFUSED(name, processors, why)                                                  \
    buf_printf(out, "| `%s` | refused | %s | %s |\n", name, processors, why);
#include "front/gremlin/command/ops.def"
#undef GREMLIN_OP
#undef GREMLIN_OP_REFUSED
    BUF_APPEND(out,
               "\nArguments: `gremlin`, `bindings`, `language` (gremlin-groovy, gremlin-lang), "
               "`aliases` (or `rebindings`), `batchSize`, `evaluationTimeout` (or "
               "`scriptEvaluationTimeout`), `materializeProperties` (all, tokens), `session`, "
               "`manageTransaction`, `sasl`. `userAgent`, `accept`, "
               "`maintainStateAfterException`, `saslMechanism` and others are passed over.\n");
}

static void formats_print(struct buf *out)
{
    BUF_APPEND(out, "\n## Formats\n\n| mime type | | answered as |\n|---|---|---|\n"
                    "| `application/vnd.gremlin-v1.0+json` | yes | GraphSON 1 |\n"
                    "| `application/vnd.gremlin-v2.0+json` | yes | untyped, as the hosted service "
                    "answers; with `gremlin.typed` GraphSON 2 |\n"
                    "| `application/vnd.gremlin-v3.0+json` | yes | GraphSON 3 |\n"
                    "| `application/vnd.graphbinary-v1.0` | yes | GraphBinary 1.0 |\n"
                    "| `application/json`, text frames, HTTP | yes | untyped; with `gremlin.typed` "
                    "GraphSON 3 |\n"
                    "| `application/vnd.gremlin-v3.0+gryo` | refused | it is Java's own |\n"
                    "| others | yes | GraphSON 3, as the reference server does |\n");
}

static void words_print(struct buf *out)
{
    BUF_APPEND(out, "\n## Steps\n\nIn scripts and bytecode:");
#define STEP_ROW(name, compiler, ...)                                                              \
    if (strcmp(#compiler, "compile_refused") != 0)                                                 \
        buf_printf(out, " `%s`", name);
#include "front/gremlin/run/steps.def"
#undef STEP_ROW
    BUF_APPEND(out, ".\n\nRefused by name:");
#define STEP_ROW(name, compiler, ...)                                                              \
    if (strcmp(#compiler, "compile_refused") == 0)                                                 \
        buf_printf(out, " `%s`", name);
#include "front/gremlin/run/steps.def"
#undef STEP_ROW
    BUF_APPEND(out, ".\n\n## Predicates\n\nOf `P` and `TextP`:");
#define GREMLIN_PREDICATE_ROW(name, text, of_text)                                                 \
    buf_printf(out, " `%s.%s`", of_text ? "TextP" : "P", text);
#include "front/gremlin/value/predicates.def"
#undef GREMLIN_PREDICATE_ROW
    BUF_APPEND(out, ".\n\n## Words\n");
#define GREMLIN_FAMILY_ROW(family, name, code) BUF_APPEND(out, "\n- `" name "`:");
#define GREMLIN_WORD_ROW(family, word, text) buf_printf(out, " `%s`", text);
#include "front/gremlin/value/enums.def"
#undef GREMLIN_FAMILY_ROW
#undef GREMLIN_WORD_ROW
    BUF_APPEND(out, "\n");
}

static void codes_print(struct buf *out)
{
    BUF_APPEND(out,
               "\n## Status codes\n\nWhat the frame says, and `x-ms-status-code` besides: the "
               "status the NoSQL API has for it, or of the service's own 1000 (the query), 1001 "
               "(no such form), 1003 (memory), 1004 (the script), 1009 (time). "
               "[errors.md](errors.md) has every error.\n\n"
               "| code | when |\n|---|---|\n"
               "| 200 | the last results |\n| 204 | there are none |\n| 206 | more follow |\n"
               "| 401 | the credentials are wrong, or the key was replaced |\n"
               "| 403 | a read-only key or token would write |\n"
               "| 407 | who is it? |\n"
               "| 498 | the message cannot be read, or asks for nothing known |\n"
               "| 499 | arguments are missing or contradict one another |\n"
               "| 500 | the traversal failed, or the store refused (404, 409, 412, 429 in "
               "`x-ms-status-code`) |\n"
               "| 595 | `fail()` |\n| 597 | the script is none, or is over a limit |\n"
               "| 598 | it took too long |\n| 599 | a result has no form in the format |\n"
               "\nAttributes on every frame: `x-ms-status-code`, `x-ms-activity-id`, "
               "`x-ms-request-charge`, `x-ms-total-request-charge`, `x-ms-server-time-ms`, "
               "`x-ms-total-server-time-ms`; on errors `x-ms-substatus-code`, "
               "`x-ms-retry-after-ms`, `x-ms-source`, `exceptions`, `failStepMessage`; and "
               "`x-orrery-reference-lag-ms` where `call('reference')` has read a copy "
               "that is not known to be exact.\n");
}

void gremlin_ledger_print(struct buf *out)
{
    BUF_APPEND(out, "# Compatibility: the Gremlin API\n\n"
                    "Made by `orrery help gremlin --markdown` from "
                    "`src/front/gremlin/command/ops.def`, `refused.def`,\n"
                    "`src/front/gremlin/run/steps.def` and tables of `value/`; a test sends each "
                    "request and keeps this page true.\n");
    requests_print(out);
    formats_print(out);
    words_print(out);
    BUF_APPEND(out, "\n## Refused\n\n| what | example | code | why |\n|---|---|---|---|\n");
#define GREMLIN_REFUSED(what, example, code, why)                                                  \
    buf_printf(out, "| %s | `%s` | %d | %s |\n", what, example, code, why);
#include "front/gremlin/command/refused.def"
#undef GREMLIN_REFUSED
    codes_print(out);
}
