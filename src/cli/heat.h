/* `orrery partition heat` and `orrery partition hot`; argv[0] is the verb. */
#pragma once

int cli_partition_heat(int argc, char **argv);
int cli_partition_hot(int argc, char **argv);
