#include "front/mongo/command/ledger.h"

#include "front/mongo/command/command.h"
#include "front/mongo/expression/accumulate.h"
#include "front/mongo/pipeline/pipeline.h"

static const char *needs(const struct mongo_command *command)
{
    static const char *const texts[] = {[MONGO_NEED_NOTHING] = "nothing",
                                        [MONGO_NEED_KNOWN] = "any key",
                                        [MONGO_NEED_READ] = "any key",
                                        [MONGO_NEED_WRITE] = "a key that may write"};

    return texts[command->need];
}

static void expressions_print(struct buf *out)
{
    const char *name;
    bool refused;

    BUF_APPEND(out, "\n## Expressions\n\nIn pipelines, `$expr` and projections:");
    for (size_t i = 0; (name = mongo_expression_name(i, &refused)); i++)
        if (!refused)
            buf_printf(out, " `%s`", name);
    BUF_APPEND(out, ".\n\nRefused by name:");
    for (size_t i = 0; (name = mongo_expression_name(i, &refused)); i++)
        if (refused)
            buf_printf(out, " `%s`", name);
    BUF_APPEND(out, ".\n\nAccumulators:");
    for (size_t i = 0; (name = mongo_accumulator_name(i)); i++)
        buf_printf(out, " `%s`", name);
    BUF_APPEND(out, ".\n");
}

void mongo_ledger_print(struct buf *out)
{
    size_t count;
    const struct mongo_command *commands = mongo_commands(&count);
    const char *stage, *why;

    BUF_APPEND(out, "# Compatibility: the MongoDB API\n\n"
                    "Made by `orrery help mongo --markdown` from "
                    "`src/front/mongo/command/commands.def` and\n`src/front/mongo/codes.def`; a "
                    "test sends each command and keeps this page true. What is refused "
                    "answers\n238 NotImplemented with the reason; a command that is not listed "
                    "59 CommandNotFound.\n\n"
                    "## Commands\n\n| command | | needs | what |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const struct mongo_command *command = &commands[i];

        buf_printf(out, "| `%s` | %s | %s | %s%s |\n", command->name,
                   command->run ? "yes" : "refused", needs(command), command->meaning,
                   command->admin ? "; on admin" : "");
    }
    BUF_APPEND(out, "\n## Stages of pipelines\n\n| stage | | why |\n|---|---|---|\n");
    for (size_t i = 0; (stage = mongo_pipeline_stage(i, &why)); i++)
        buf_printf(out, "| `%s` | %s | %s |\n", stage, why ? "refused" : "yes", why ? why : "");
    expressions_print(out);
    BUF_APPEND(out, "\n## Error codes\n\nBesides these and the codes of [errors.md](errors.md), a "
                    "code without a name is called `Location` and its number.\n\n"
                    "| code | name |\n|---|---|\n");
#define MONGO_CODE(constant, code, name) buf_printf(out, "| %d | %s |\n", code, name);
#include "front/mongo/codes.def"
#undef MONGO_CODE
}
