/* `orrery partition heat` and `orrery partition hot`; argv[0] is the verb. */
#pragma once

int cli_partition_heat(int argc, char **argv);
void cli_partition_heat_help(void);
int cli_partition_hot(int argc, char **argv);
void cli_partition_hot_help(void);
