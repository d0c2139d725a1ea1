// Random writes and reads within one transaction, against a model of plain objects: what a transaction has written is laid over what
// is stored, write by write, and whatever is read in between, by id, by index or along edges, has to show it. Then it is committed or
// rolled back, and looked at from outside. GREMLIN_WRITES says how many transactions (12 by default), GREMLIN_SEED where to begin.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Wire, evaluation } from './gremlin.js';
import { Chance } from './gremlin_generate.js';
import { signed } from './rest.js';
import { Server } from './server.js';

const transactions = Number(process.env.GREMLIN_WRITES ?? 12);
const firstSeed = Number(process.env.GREMLIN_SEED ?? 1);

const keyOf = (vertex) => `p${vertex % 7}`;
const place = (vertex) => `['${keyOf(vertex)}','v${vertex}']`;

class Graph {
  constructor(from) {
    this.vertices = new Map(from ? [...from.vertices].map(([id, v]) => [id, { ...v }]) : []); // number -> {label, k}
    this.edges = new Map(from ? [...from.edges].map(([id, e]) => [id, { ...e }]) : []); // 'from-to' -> {from, to, w}
  }

  put(vertex, more) {
    this.vertices.set(vertex, { ...this.vertices.get(vertex), ...more });
  }

  drop(vertex) {
    this.vertices.delete(vertex);
    for (const [id, edge] of this.edges) if (edge.from === vertex || edge.to === vertex) this.edges.delete(id);
  }
}

// One write: the script, and what it does to the model. Vertices are found by what was written before as often as by their ids.
function writing(chance, graph) {
  const vertex = chance.below(30);
  const there = [...graph.vertices.keys()];
  const some = there.length ? there[chance.below(there.length)] : vertex;
  const other = there.length ? there[chance.below(there.length)] : vertex;
  const k = chance.below(5);
  const label = chance.below(2) ? 'a' : 'b';
  switch (there.length ? chance.below(9) : 0) {
    case 0:
    case 1:
    case 2: {
      const create = `[(T.label):'${label}',(T.id):'v${vertex}',pk:'${keyOf(vertex)}',k:${k}]`;
      return [`g.mergeV([(T.id):'v${vertex}',pk:'${keyOf(vertex)}']).option(onCreate,${create}).option(onMatch,[k:${k}])`,
        () => graph.put(vertex, { label: graph.vertices.get(vertex)?.label ?? label, k })];
    }
    case 3:
      return [`g.V(${place(some)}).property('k',${k})`, () => graph.put(some, { k })];
    case 4: // all that have a value, whatever wrote it
      return [`g.V().has('${label}','k',${k}).property('k',${k + 10})`, () => {
        for (const [id, v] of graph.vertices) if (v.label === label && v.k === k) graph.put(id, { k: k + 10 });
      }];
    case 5:
      return [`g.V(${place(some)}).drop()`, () => graph.drop(some)];
    case 6:
    case 7: {
      const id = `${some}-${other}`;
      if (graph.edges.has(id)) return [`g.E('e${id}').property('w',${k})`, () => (graph.edges.get(id).w = k)];
      return [`g.V(${place(some)}).addE('e').to(g.V(${place(other)})).property(T.id,'e${id}').property('w',${k})`,
        () => graph.edges.set(id, { from: some, to: other, w: k })];
    }
    default: {
      const edges = [...graph.edges.keys()];
      const id = edges.length ? edges[chance.below(edges.length)] : 'none';
      return [`g.E('e${id}').drop()`, () => graph.edges.delete(id)];
    }
  }
}

// Questions, each with what the model says.
function questions(chance, graph) {
  const there = [...graph.vertices.keys()];
  const some = there.length ? there[chance.below(there.length)] : 0;
  const label = chance.below(2) ? 'a' : 'b';
  const k = chance.below(15);
  const ids = (filter) => [...graph.vertices].filter(([, v]) => filter(v)).map(([id]) => `v${id}`);
  const edges = [...graph.edges.values()];
  return [
    [`g.V().count()`, [graph.vertices.size]],
    [`g.E().count()`, [graph.edges.size]],
    [`g.V().has('${label}','k',${k}).id()`, ids((v) => v.label === label && v.k === k)],
    [`g.V().has('k',gte(${k})).count()`, [ids((v) => v.k >= k).length]],
    [`g.V().hasLabel('${label}').count()`, [ids((v) => v.label === label).length]],
    [`g.V(${place(some)}).out('e').id()`, edges.filter((e) => e.from === some).map((e) => `v${e.to}`)],
    [`g.V(${place(some)}).in('e').id()`, edges.filter((e) => e.to === some).map((e) => `v${e.from}`)],
    [`g.V(${place(some)}).bothE().values('w')`, edges.flatMap((e) => [e.from, e.to].filter((end) => end === some).map(() => e.w))],
    [`g.V(${place(some)}).values('k')`, graph.vertices.has(some) ? [graph.vertices.get(some).k] : []],
  ];
}

const ways = [
  { name: 'one partition', database: 'one' },
  { name: 'eight partitions', database: 'eight', key: '/pk', throughput: '800000' },
  { name: 'eight partitions with reverse edges', database: 'reverse', key: '/pk', throughput: '800000', orrery: { graph: { reverse: true } } },
];

for (const way of ways) {
  test(`${transactions} transactions read what they have written, ${way.name}`, async (t) => {
    const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=100000']);
    await signed(server, 'POST', '/dbs', { body: { id: way.database } });
    const made = await signed(server, 'POST', `/dbs/${way.database}/colls`, {
      headers: way.throughput ? { 'x-ms-offer-throughput': way.throughput } : {},
      body: { id: 'writes', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 }, ...(way.orrery ? { orrery: way.orrery } : {}) } });
    assert.equal(made.status, 201, made.text);
    const wire = await Wire.open(t, server);
    const ask = async (script, args, processor) => {
      const answers = await wire.ask(evaluation(script, { aliases: { g: `${way.database}.writes` }, batchSize: 1000, ...args }, processor ? { processor } : {}));
      const { status } = answers.at(-1);
      assert.ok(status.code === 200 || status.code === 204, `${script}: ${status.code} ${status.message}`);
      return answers.flatMap(({ result }) => result.data ?? []);
    };
    const check = async (graph, chance, args, processor, when) => {
      for (const [script, expected] of questions(chance, graph))
        assert.deepEqual((await ask(script, args, processor)).map(String).sort(), expected.map(String).sort(), `${script} ${when}`);
    };
    // edges first, so that the graph has its indexes of them before a transaction that they would end is open
    await ask("g.addV('a').property(T.id,'v0').property('pk','p0').property('k',0).as('x').addE('e').to('x').property(T.id,'e0-0').property('w',0)");
    await ask("g.V(['p0','v0']).out().count()");
    await server.until(async () => {
      const { json } = await signed(server, 'GET', `/dbs/${way.database}/colls/writes`);
      const states = (json.orrery?.indexes ?? []).map(({ state }) => state);
      return states.length > 1 && states.every((state) => state === 'ready');
    });
    let stored = new Graph();
    stored.put(0, { label: 'a', k: 0 });
    stored.edges.set('0-0', { from: 0, to: 0, w: 0 });
    for (let n = 0; n < transactions; n++) {
      const seed = firstSeed + n;
      const chance = new Chance(seed);
      const graph = new Graph(stored);
      const session = { session: `s${seed}`, manageTransaction: false };
      const steps = [];
      for (let i = 5 + chance.below(25); i > 0; i--) {
        const [script, apply] = writing(chance, graph);
        steps.push(script);
        await ask(`${script}.iterate()`, session, 'session');
        apply();
        if (chance.below(3) === 0) await check(graph, chance, session, 'session', `within seed ${seed}, after\n${steps.join('\n')}`);
      }
      const kept = chance.below(4) > 0;
      await ask(kept ? 'g.tx().commit()' : 'g.tx().rollback()', session, 'session');
      if (kept) stored = graph;
      await check(stored, chance, {}, '', `behind seed ${seed}, ${kept ? 'committed' : 'rolled back'}, after\n${steps.join('\n')}`);
    }
  });
}

test('many merge steps of one request each see what those before them wrote', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.operators_max=5000']);
  const wire = await Wire.open(t, server);
  const merges = Array.from({ length: 600 }, (_, n) => `g.mergeV([(T.label):'n',nr:${(n * 7) % 90}]).property('n',${n}).iterate()`);
  const ask = async (script) => {
    const [{ status, result }] = await wire.ask(evaluation(script, { batchSize: 1000 }));
    assert.ok(status.code === 200 || status.code === 204, status.message);
    return result.data;
  };
  await ask(merges.join(';'));
  assert.deepEqual(await ask('g.V().count()'), [90]);
  const last = new Map(merges.map((_, n) => [(n * 7) % 90, n]));
  assert.deepEqual((await ask("g.V().values('n')")).sort((a, b) => a - b), [...last.values()].sort((a, b) => a - b));
});
