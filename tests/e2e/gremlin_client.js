// What tests of cases and of random traversals share: graphs over one and several partitions, and a client that keeps the types of results
// and sends bytecode made of scripts.
import assert from 'node:assert/strict';
import { drivers, url, v3 } from './gremlin.js';
import { bytecodeOf, parseScript, sameBag, TypedReader } from './gremlin_notation.js';
import { signed } from './rest.js';

// A container without a partition key, or with way.key over eight partitions, which is what way.throughput has to be for.
export async function makeGraph(server, way, graph) {
  const made = await signed(server, 'POST', `/dbs/${way.database}/colls`, {
    headers: way.key ? { 'x-ms-offer-throughput': String(way.throughput) } : { 'x-ms-version': '2018-06-18' },
    body: { id: graph, ...(way.key ? { partitionKey: { paths: [way.key], kind: 'Hash', version: 2 } } : {}) },
  });
  assert.equal(made.status, 201, made.text);
  if (!way.key) return;
  const ranges = await signed(server, 'GET', `/dbs/${way.database}/colls/${graph}/pkranges`);
  assert.equal(ranges.json.PartitionKeyRanges.length, 8);
}

// GraphSON that is ready to be sent.
class Raw {
  constructor(json) { this.json = json; }
}

export function casesClient(t, server, way, graph) {
  const { driver, structure } = drivers['3.7'];
  const writer = new structure.io.GraphSON3Writer({ serializers: { raw: { canBeUsedFor: (value) => value instanceof Raw, serialize: ({ json }) => json } } });
  const client = new driver.Client(url(server), {
    traversalSource: `${way.database}.${graph}`, mimeType: v3, reader: new TypedReader(), writer,
  });
  t.after(() => client.close().catch(() => {}));
  return client;
}

// The bytecode of a script; null: it ends as bytecode cannot.
export function sendable(script) {
  const tree = parseScript(script);
  if (tree.terminal && tree.terminal.name !== 'toList') return null;
  const { source = [], step } = bytecodeOf(tree);
  const code = new drivers['3.7'].process.Bytecode();
  for (const [name, ...args] of source) code.addSource(name, args.map((arg) => new Raw(arg)));
  for (const [name, ...args] of step) code.addStep(name, args.map((arg) => new Raw(arg)));
  return code;
}

// Results, each as often as its bulk says.
export const valuesOf = (results) => results.toArray().flatMap((one) => (one?.k === 'traverser' ? Array(one.bulk).fill(one.value) : [one]));

// Comparing where nobody promises an order: lists that fold() and group() make are bags, too. Paths stay in order.
const loose = (x) => {
  if (x === null || typeof x === 'boolean') return x;
  if (x.k === 'list') return { k: 'set', items: x.items.map(loose) };
  if (x.items) return { ...x, items: x.items.map(loose) };
  if (x.e) return { ...x, e: x.e.map((pair) => pair.map(loose)) };
  return x;
};
export const Bags = { same: (want, got) => sameBag(want.map(loose), got.map(loose)) };
