/* A report as JSON for programs and as text for people. */
#include "advise/advise.h"

#include "document/json.h"

#include <math.h>

static void member(struct buf *out, const char *name, double number, int decimals)
{
    if (isfinite(number))
        buf_printf(out, ",\"%s\":%.*f", name, decimals, number);
    else
        buf_printf(out, ",\"%s\":null", name);
}

static void text_member(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, ",\"%s\":", name);
    document_json_write_string(text, out);
}

static void figures_json(const struct advise_figures *f, struct buf *out)
{
    buf_printf(out, "\"figures\":{\"values\":%llu", (unsigned long long)f->keys);
    member(out, "largestShareOfBytes", f->storage_top, 4);
    member(out, "giniOfBytes", f->storage_gini, 4);
    member(out, "largestShareOfRu", f->ru_top, 4);
    member(out, "giniOfRu", f->ru_gini, 4);
    member(out, "largestShareOfRuAtATime", f->window_top, 4);
    member(out, "oneLogicalPartition", f->one_logical, 4);
    member(out, "onePhysicalPartition", f->one_physical, 4);
    member(out, "fanOutShareOfRu", f->fan_out, 4);
    member(out, "asksEveryPartition", f->everywhere, 4);
    member(out, "ruPerRequest", f->ru_each[0], 2);
    member(out, "ruPerRequestAtTenTimes", f->ru_each[1], 2);
    member(out, "ruPerRequestAtAHundredTimes", f->ru_each[2], 2);
    member(out, "growth", f->growth, 3);
    member(out, "withoutValue", f->missing, 4);
    member(out, "changes", f->changed, 0);
    member(out, "transactionsSplit", f->transactions_split, 4);
    member(out, "daysToLogicalLimit", f->days_to_limit, 1);
    member(out, "largestValueOfLogicalLimit", f->full, 4);
    member(out, "bytesOfLargestValue", f->bytes_top, 0);
    member(out, "ruPerSecond", f->ru_per_second, 0);
    member(out, "ruPerSecondIdeal", f->ru_per_second_ideal, 0);
    member(out, "ruPerSecondOfBusiestValue", f->key_ru_per_second, 0);
    buf_printf(out, ",\"movingHotSpot\":%s,\"growsWithTime\":%s,\"countsUp\":%s}",
               f->moves ? "true" : "false", f->grows ? "true" : "false",
               f->counter ? "true" : "false");
}

static void proposal_json(const struct advise_proposal *proposal, struct buf *out)
{
    buf_append_text(out, "{\"key\":");
    document_json_write_string(proposal->name, out);
    buf_printf(out, ",\"kind\":\"%s\",\"score\":%.3f,\"good\":%s",
               advise_key_kind_name(proposal->key.kind), proposal->score,
               proposal->good ? "true" : "false");
    text_member(out, "reason", proposal->reason);
    buf_append_text(out, ",\"definition\":{");
    buf_append_slice(out, proposal->definition);
    buf_append_text(out, "},");
    figures_json(&proposal->figures, out);
    buf_append_byte(out, '}');
}

static void tables_json(const struct advise_report *report, struct buf *out)
{
    buf_append_text(out, ",\"indexTables\":[");
    for (size_t i = 0; i < report->table_count; i++) {
        const struct advise_table *table = &report->tables[i];

        buf_append_text(out, i ? ",{\"key\":" : "{\"key\":");
        document_json_write_string(table->name, out);
        if (table->view.data)
            text_member(out, "view", table->view);
        text_member(out, "reason", table->reason);
        member(out, "shareOfOperations", table->queries, 4);
        member(out, "ruPerSecondSaved", table->saved_ru, 2);
        member(out, "ruPerSecondCost", table->cost_ru, 2);
        member(out, "bytes", table->bytes, 0);
        if (table->definition.data) {
            buf_append_text(out, ",\"definition\":");
            buf_append_slice(out, table->definition);
        }
        buf_append_byte(out, '}');
    }
    buf_append_byte(out, ']');
}

void advise_report_json(const struct advise_workload *workload, const struct advise_report *report,
                        struct buf *out)
{
    buf_printf(out, "{\"recommended\":%s,\"enoughToJudge\":%s",
               report->recommended ? "true" : "false", report->enough ? "true" : "false");
    text_member(out, "summary", report->summary);
    if (report->rekey.len)
        text_member(out, "rekey", report->rekey);
    buf_printf(out, ",\"documents\":%llu,\"operations\":%llu",
               (unsigned long long)advise_workload_items_seen(workload),
               (unsigned long long)advise_workload_operations_seen(workload));
    member(out, "bytes", report->bytes, 0);
    member(out, "ruPerSecond", report->ru_per_second, 0);
    buf_printf(out, ",\"keyMatters\":%s", report->matters ? "true" : "false");
    if (report->has_current) {
        buf_append_text(out, ",\"current\":");
        proposal_json(&report->current, out);
    }
    buf_append_text(out, ",\"proposals\":[");
    for (size_t i = 0; i < report->count; i++) {
        if (i)
            buf_append_byte(out, ',');
        proposal_json(&report->proposals[i], out);
    }
    buf_append_byte(out, ']');
    tables_json(report, out);
    buf_append_byte(out, '}');
}

/* --- For people ------------------------------------------------------------------------------ */

enum { WIDTH = 92 };

static void wrapped(struct slice text, const char *indent, struct buf *out)
{
    while (text.len) {
        size_t end = MIN(text.len, (size_t)WIDTH);

        if (end < text.len)
            while (end > WIDTH / 2 && text.data[end] != ' ')
                end--;
        buf_append_text(out, indent);
        buf_append_slice(out, slice_first(text, end));
        buf_append_byte(out, '\n');
        text = slice_skip(text, end);
        while (text.len && text.data[0] == ' ')
            text = slice_skip(text, 1);
    }
}

static void proposal_text(const struct advise_proposal *proposal, const char *place,
                          struct buf *out)
{
    buf_printf(out, "\n%s  %.*s  (%s; score %.2f%s)\n", place, SLICE_ARG(proposal->name),
               advise_key_kind_name(proposal->key.kind), proposal->score,
               proposal->good ? "" : "; not recommended");
    wrapped(proposal->reason, "    ", out);
}

enum { NAME_WIDTH = 34 };

static void row(const struct advise_proposal *proposal, const char *place, struct buf *out)
{
    const struct advise_figures *f = &proposal->figures;
    char name[NAME_WIDTH + 1];

    (void)snprintf(name, sizeof name, "%.*s", SLICE_ARG(proposal->name));
    buf_printf(out,
               "%3s  %-*s %6.2f %7.0f %7llu  %4.0f%% %4.2f  %4.0f%% %4.2f  %4.0f%% %4.0f%% %4.0f%% "
               "%6.1fx\n",
               place, NAME_WIDTH, name, proposal->score, f->ru_per_second,
               (unsigned long long)f->keys, f->storage_top * 100, f->storage_gini, f->ru_top * 100,
               f->ru_gini, f->one_logical * 100, f->one_physical * 100, f->fan_out * 100,
               f->ru_each[0] > 0 ? f->ru_each[ADVISE_SCALES - 1] / f->ru_each[0] : 1);
}

/* The figures side by side, before they are put in words. */
static void table(const struct advise_report *report, struct buf *out)
{
    buf_printf(
        out,
        "\n     %-*s  score    RU/s  values      bytes         RU    answered by    RU of  RU "
        "each\n"
        "     %-*s                        most Gini  most Gini  1 log 1 phy fan-out at 100x\n",
        NAME_WIDTH, "key", NAME_WIDTH, "");
    if (report->has_current)
        row(&report->current, "now", out);
    for (size_t i = 0; i < report->count; i++) {
        char place[24];

        (void)snprintf(place, sizeof place, "%zu.", i + 1);
        row(&report->proposals[i], place, out);
    }
    buf_append_text(out,
                    "\nA score is the RU/s needed over the least that could be, times what "
                    "else speaks against a key: 1 is\nideal, above 2.5 none is recommended. Where "
                    "a good key is as cheap at ten and a hundred times the\ndata, one whose "
                    "requests then ask more partitions counts for as much more.\n");
}

static void tables_text(const struct advise_report *report, struct buf *out)
{
    for (size_t i = 0; i < report->table_count; i++) {
        const struct advise_table *table = &report->tables[i];

        buf_printf(out, "\n%s by %.*s\n",
                   table->view.data ? "Index table there is," : "Index table,",
                   SLICE_ARG(table->name));
        wrapped(table->reason, "    ", out);
        if (table->definition.data)
            buf_printf(out, "    %.*s\n", SLICE_ARG(table->definition));
    }
}

void advise_report_text(const struct advise_workload *workload, const struct advise_report *report,
                        struct buf *out)
{
    uint64_t items = advise_workload_items_seen(workload);
    uint64_t operations = advise_workload_operations_seen(workload);

    buf_printf(out, "Judged by %llu document%s and %llu operation%s.\n\n",
               (unsigned long long)items, PLURAL(items), (unsigned long long)operations,
               PLURAL(operations));
    wrapped(report->summary, "", out);
    if (report->count)
        table(report, out);
    if (report->has_current)
        proposal_text(&report->current, "now", out);
    for (size_t i = 0; i < report->count; i++) {
        char place[24];

        (void)snprintf(place, sizeof place, "%zu. ", i + 1);
        proposal_text(&report->proposals[i], place, out);
    }
    tables_text(report, out);
    if (report->recommended) {
        buf_append_text(out, "\nDefinition of the first:\n    {\"id\":\"...\",");
        buf_append_slice(out, report->proposals[0].definition);
        buf_append_text(out, "}\n");
    }
    if (report->rekey.len) {
        buf_append_text(out, "\nTo give it to a container in use (add --dry-run to see what is in "
                             "the way first):\n    ");
        buf_append_slice(out, report->rekey);
        buf_append_byte(out, '\n');
    }
}
