#include "support/gremlin_runs.h"

#include "front/gremlin/language/script.h"
#include "front/gremlin/value/text.h"
#include "support/check.h"

const char *const gremlin_runs_modern[] = {
    "g.addV('person').property(id,'1').property('name','marko').property('age',29)",
    "g.addV('person').property(id,'2').property('name','vadas').property('age',27)",
    "g.addV('software').property(id,'3').property('name','lop').property('lang','java')",
    "g.addV('person').property(id,'4').property('name','josh').property('age',32)",
    "g.addV('software').property(id,'5').property('name','ripple').property('lang','java')",
    "g.addV('person').property(id,'6').property('name','peter').property('age',35)",
    "g.V('1').addE('knows').to(__.V('2')).property(id,'7').property('weight',0.5d)",
    "g.V('1').addE('knows').to(__.V('4')).property(id,'8').property('weight',1.0d)",
    "g.V('1').addE('created').to(__.V('3')).property(id,'9').property('weight',0.4d)",
    "g.V('4').addE('created').to(__.V('5')).property(id,'10').property('weight',1.0d)",
    "g.V('4').addE('created').to(__.V('3')).property(id,'11').property('weight',0.4d)",
    "g.V('6').addE('created').to(__.V('3')).property(id,'12').property('weight',0.2d)",
    NULL,
};

const char *const gremlin_runs_crew[] = {
    "g.addV('person').property(id,'1').property('name','marko')"
    ".property(list,'location','san diego','startTime',1997,'endTime',2001)"
    ".property(list,'location','santa cruz','startTime',2001,'endTime',2004)"
    ".property(list,'location','santa fe','startTime',2005)",
    "g.addV('person').property(id,'7').property('name','stephen')"
    ".property(list,'location','centreville','startTime',1990,'endTime',2000)"
    ".property(list,'location','purcellville','startTime',2006)",
    "g.addV('software').property(id,'10').property('name','gremlin')",
    "g.V('1').addE('develops').to(__.V('10')).property('since',2009)",
    "g.V('1').addE('uses').to(__.V('10')).property('skill',4)",
    "g.V('7').addE('uses').to(__.V('10')).property('skill',5)",
    NULL,
};

struct gathering {
    struct graph_bench *bench;
    struct buf text;
    size_t count;
};

static bool gather(void *self, const struct gremlin_value *values, const uint64_t *bulks UNUSED,
                   size_t count, struct error *err UNUSED)
{
    struct gathering *gathering = self;

    for (size_t i = 0; i < count; i++) {
        if (gathering->count++)
            BUF_APPEND(&gathering->text, " | ");
        gremlin_value_write_text(values[i], &gathering->text);
    }
    return true;
}

static bool run_statement(struct gremlin_graph *graph, struct graph_bench *bench,
                          const struct gremlin_statement *statement,
                          const struct gremlin_run_options *options, struct gathering *gathering,
                          struct gremlin_ran *ran)
{
    const struct gremlin_sink sink = {.take = gather, .self = gathering};

    if (!statement->traversal)
        return gather(gathering, &statement->value, NULL, 1, &ran->err);
    return gremlin_run(graph, bench->heap, statement->traversal, options, &sink, &ran->outcome,
                       &ran->err);
}

static bool run_script(struct gremlin_graph *graph, struct graph_bench *bench, const char *text,
                       const struct gremlin_run_options *options, struct gathering *gathering,
                       struct gremlin_ran *ran)
{
    const struct gremlin_script_request request = {
        .text = slice_of_text(text), .limits = GREMLIN_SCRIPT_LIMITS, .heap = bench->heap};
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_statement statement;

    if (!gremlin_script_open(&request, &script, &ran->err))
        return false;
    for (;;) {
        if (!gremlin_script_next(script, NULL, &statement, &ran->err))
            return false;
        if (!statement.present)
            return gremlin_graph_commit(graph, &ran->err);
        buf_clear(&gathering->text);
        gathering->count = 0;
        gremlin_outcome_done(&ran->outcome);
        if (!run_statement(graph, bench, &statement, options, gathering, ran))
            return false;
    }
}

struct gremlin_ran gremlin_runs(struct graph_bench *bench, const char *container,
                                const char *script, const struct gremlin_run_options *options)
{
    const struct gremlin_run_options plain = {.seed = 7};
    struct gathering gathering = {.bench = bench};
    struct gremlin_ran ran = {0};
    struct gremlin_graph *graph = graph_bench_graph(bench, container);

    buf_init(&gathering.text, 1 << 20);
    ran.good = run_script(graph, bench, script, options ? options : &plain, &gathering, &ran);
    ran.text = ran.good ? arena_text(bench->arena, buf_slice(&gathering.text)) : ran.err.message;
    if (!ran.good)
        ran.text = arena_text(bench->arena, slice_of_text(ran.err.message));
    gremlin_outcome_done(&ran.outcome);
    buf_done(&gathering.text);
    gremlin_graph_free(graph);
    return ran;
}

void gremlin_runs_all(struct graph_bench *bench, const char *container, const char *const *scripts)
{
    for (; *scripts; scripts++) {
        struct gremlin_ran ran = gremlin_runs(bench, container, *scripts, NULL);

        assert_ok(ran.good, &ran.err);
    }
}
