/* Finds the sub-command and hands over. */
#include "cli/cli.h"

#include "base/nearest.h"

const struct cli_command cli_commands[] = {
    {"serve", "start the server", cli_serve, cli_serve_help},
    {"shell", "queries and commands, at a prompt or from scripts", cli_shell, cli_shell_help},
    {"import", "put the items of a JSON or CSV file into a container", cli_import, cli_import_help},
    {"export", "write items or rows of a query to a JSON or CSV file", cli_export, cli_export_help},
    {"database", "list, create, show and drop databases", cli_database, cli_database_help},
    {"container", "list, create, show, change and drop containers", cli_container,
     cli_container_help},
    {"item", "read, write, patch and delete single items", cli_item, cli_item_help},
    {"query", "one query of a container", cli_query, cli_query_help},
    {"account", "list, create and drop accounts, show and rotate keys", cli_account,
     cli_account_help},
    {"node", "storage nodes: list, add, drain, pause, remove; rebalance", cli_node, cli_node_help},
    {"server", "servers that share the nodes: list, drain, resume, forget", cli_server,
     cli_server_help},
    {"advise", "which partition key fits documents and operations", cli_advise, cli_advise_help},
    {"what-if", "operations run again under another key or throughput", cli_what_if,
     cli_what_if_help},
    {"stats", "what databases and containers hold and who uses them", cli_stats, cli_stats_help},
    {"top", "containers, partitions, hot keys and slow requests, live", cli_top, cli_top_help},
    {"maintenance", "refuse writes or all requests for a time, with a message", cli_maintenance,
     cli_maintenance_help},
    {"snapshot", "keep what all nodes hold under a name, and go back to it", cli_snapshot,
     cli_snapshot_help},
    {"audit", "who did what, and whether the record is whole", cli_audit, cli_audit_help},
    {"throughput", "buckets, and RU/s reserved or capped for key values", cli_throughput,
     cli_throughput_help},
    {"partition", "list, split, merge, move, isolate and spread physical partitions", cli_partition,
     cli_partition_help},
    {"directory", "which shard keys belong to, of containers placed by lookup", cli_directory,
     cli_directory_help},
    {"promote", "a container of its own for a partition key", cli_promote, cli_promote_help},
    {"rekey", "another partition key for a container in use", cli_rekey, cli_rekey_help},
    {"backup", "copy everything at one moment, while clients work", cli_backup, cli_backup_help},
    {"restore", "a backup, or a part of one, back again", cli_restore, cli_restore_help},
    {"verify", "whether what all nodes store agrees with itself", cli_verify, cli_verify_help},
    {"check", "the same of the store of a stopped server", cli_check, cli_check_help},
    {"key", "which partition key a document gets, and which partition", cli_key, cli_key_help},
    {"certificate", "show or export the certificate authority clients have to trust",
     cli_certificate, cli_certificate_help},
    {"version", "print the version", cli_version, cli_version_help},
    {"help", "explain a command, the settings or the errors", cli_help, cli_help_help},
    {NULL},
};

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static int command_unknown(const char *name)
{
    struct nearest nearest = nearest_to(slice_of_text(name));

    if (name[0] == '-')
        return cli_fail(CLI_USAGE,
                        "a command comes before its options, and \"%s\" is none: "
                        "`orrery help` lists them",
                        name);
    for (const struct cli_command *command = cli_commands; command->name; command++)
        nearest_offer(&nearest, command->name);
    if (nearest.name)
        return cli_fail(CLI_USAGE, "there is no command \"%s\": did you mean \"%s\"?", name,
                        nearest.name);
    return cli_fail(CLI_USAGE, "there is no command \"%s\": `orrery help` lists them", name);
}

int main(int argc, char **argv)
{
    const struct cli_command *command;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_overview();
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(1, argv);
    command = cli_command_find(argv[1]);
    if (!command)
        return command_unknown(argv[1]);
    return command->run(argc - 1, argv + 1);
}
