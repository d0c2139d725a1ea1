// Random traversals over random graphs: a server has to give what the evaluator of gremlin_model.js gives, over one partition and over
// eight, as script and as bytecode. GREMLIN_RANDOM says how many traversals (300 by default), GREMLIN_SEED where to begin.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Bags, casesClient, makeGraph, sendable, valuesOf } from './gremlin_client.js';
import { Chance, randomGraph, scriptsOf, Writer } from './gremlin_generate.js';
import { Model, plain } from './gremlin_model.js';
import { parseScript, sameList, show } from './gremlin_notation.js';
import { signed } from './rest.js';
import { Server } from './server.js';

const wanted = Number(process.env.GREMLIN_RANDOM ?? 300);
const firstSeed = Number(process.env.GREMLIN_SEED ?? 1);
const perGraph = 100;

const ordered = (script) => /\.order\(\)(\.by\((T\.id(, desc)?|desc)\))?(\.id\(\))?$/.test(script);

// A traversal with its results by the model; too many results are no fun for anybody.
function randomCase(chance, graph, model) {
  for (;;) {
    const script = new Writer(chance, graph).write();
    let results;
    try {
      results = model.run(parseScript(script)).map(plain);
    } catch (error) {
      if (/does not end/.test(error.message)) continue;
      throw new Error(`${script}: ${error.stack}`);
    }
    if (results.length <= 2000) return { script, results };
  }
}

const ways = [
  { name: 'one partition', database: 'one' },
  { name: 'eight partitions', database: 'eight', key: '/name', throughput: 800000 },
];

test(`${wanted} random traversals give what the evaluator in memory gives`, async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=100000']);
  const clients = [];
  for (const way of ways) {
    await signed(server, 'POST', '/dbs', { body: { id: way.database } });
    await makeGraph(server, way, 'random');
    clients.push(casesClient(t, server, way, 'random'));
  }
  const wrong = [];
  for (let done = 0, seed = firstSeed; done < wanted; seed++) {
    const chance = new Chance(seed);
    const graph = randomGraph(chance);
    const model = new Model(graph);
    for (const client of clients) {
      await client.submit('g.V().drop()');
      for (const script of scriptsOf(graph)) await client.submit(script);
    }
    const cases = Array.from({ length: Math.min(perGraph, wanted - done) }, () => randomCase(chance, graph, model));
    done += cases.length;
    for (const [i, client] of clients.entries()) {
      const left = [...cases];
      await Promise.all(Array.from({ length: 8 }, async () => {
        while (left.length) {
          const { script, results } = left.shift();
          const message = (done + left.length) % 2 ? script : sendable(script);
          const found = await client.submit(message).then(valuesOf, (error) => error);
          const same = !(found instanceof Error) && (ordered(script) ? sameList(results, found) : Bags.same(results, found));
          if (!same) {
            wrong.push(`seed ${seed}, ${ways[i].name}: ${script}\n    gives ${found instanceof Error ? found.message : found.map(show).join(', ') || 'nothing'}\n    `
              + `not  ${results.map(show).join(', ') || 'nothing'}`);
          }
        }
      }));
    }
  }
  assert.equal(wrong.length, 0, `${wrong.length} differ:\n${wrong.slice(0, 40).join('\n')}`);
});
