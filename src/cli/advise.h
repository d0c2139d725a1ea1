/* What `orrery advise` and `orrery what-if` share: a workload, from files or from a container. */
#pragma once

#include "advise/advise.h"
#include "cli/client.h"

struct cli_workload_options {
    const char *documents, *operations; /* files of JSON lines; "-" is standard input */
};

enum { CLI_WORKLOAD_OPTION = 2100 };

#define CLI_WORKLOAD_OPTION_ROWS                                                                   \
    {"documents", required_argument, NULL, CLI_WORKLOAD_OPTION},                                   \
    {                                                                                              \
        "operations", required_argument, NULL, CLI_WORKLOAD_OPTION + 1                             \
    }

/* Takes one of those options. False: it is another. */
bool cli_workload_take(struct cli_workload_options *options, int option, const char *value);

/* Reads the files. The message says what to do. */
NODISCARD bool cli_workload_read(const struct cli_workload_options *options,
                                 struct advise_workload **ret_workload, struct error *err);

/* A number above 0 of an option; says what is wrong otherwise. */
bool cli_number_take(const char *option, const char *value, double min, double max,
                     double *ret_number);
