// `orrery import --graph`: graphs from GraphSON and CSV, as traversals and the NoSQL API see them.
import assert from 'node:assert/strict';
import test from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { client, graph, v3 } from './gremlin.js';
import { orrery, scratch } from './server.js';
import { signed } from './rest.js';

const int = (value) => ({ '@type': 'g:Int32', '@value': value });
const double = (value) => ({ '@type': 'g:Double', '@value': value });
const vertex = (id, name, out = {}) =>
  ({ id: int(id), label: 'person', outE: out, properties: { name: [{ id: { '@type': 'g:Int64', '@value': id }, value: name }], age: [{ value: { '@type': 'g:Int64', '@value': 20 + id } }] } });
const people = [
  vertex(1, 'ann', { knows: [{ id: int(7), inV: int(2), properties: { weight: double(1.0) } }, { id: int(2), inV: int(3), properties: { since: { '@type': 'g:Date', '@value': 1e12 } } }] }),
  vertex(2, 'bob', { knows: [{ id: int(8), inV: int(3) }] }),
  vertex(3, 'cyd'),
];

const imported = (server, file, ...more) =>
  orrery(['import', file, '--graph', '--endpoint', server.url, '--dev', '--database', 'graphs', '--container', 'g', ...more]);

test('a graph in GraphSON keeps its vertices, edges and types', async (t) => {
  const server = await graph(t, [], { throughput: '40000' });
  const g = await client(t, server, '3.7', { traversalSource: 'graphs.g', mimeType: v3 });
  const file = join(scratch(t), 'people.json');
  writeFileSync(file, people.map((record) => JSON.stringify(record)).join('\n'));

  const unkeyed = await imported(server, file);
  assert.equal(unkeyed.code, 1);
  assert.match(unkeyed.err, /people\.json, line 1: .*partition key "pk": --key-from/);

  const done = await imported(server, file, '--key-from', 'name');
  assert.equal(done.code, 0, done.err);
  assert.match(done.err, /^imported 6 items/);
  const values = async (script) => (await g.submit(script)).toArray();
  assert.deepEqual((await values("g.V().has('name','ann').out('knows').values('name')")).sort(), ['bob', 'cyd']);
  assert.deepEqual((await values("g.V(['cyd','3']).in().values('name')")).sort(), ['ann', 'bob']);
  assert.deepEqual(await values("g.E('7').values('weight')"), [1]);
  assert.equal((await values("g.E().has('since').values('since')"))[0].getTime(), 1e12);
  assert.deepEqual(await values('g.V().count()'), [3]);

  const stored = await signed(server, 'GET', '/dbs/graphs/colls/g/docs/7', { headers: { 'x-ms-documentdb-partitionkey': '["ann"]' } });
  assert.equal(stored.status, 200, stored.text);
  const { _vertexId, _sink, _sinkPartition, _isEdge, pk } = JSON.parse(stored.text);
  assert.deepEqual({ _vertexId, _sink, _sinkPartition, _isEdge, pk }, { _vertexId: '1', _sink: '2', _sinkPartition: 'bob', _isEdge: true, pk: 'ann' });
});

test('rows of a CSV file with from and to are edges', async (t) => {
  const server = await graph(t);
  const g = await client(t, server, '3.7', { traversalSource: 'graphs.g' });
  const file = join(scratch(t), 'airports.csv');
  writeFileSync(file, 'id,label,pk,from,to,miles\nfra,airport,DE,,,\nvie,airport,AT,,,\nr1,route,,fra,vie,385\n');
  const done = await imported(server, file);
  assert.equal(done.code, 0, done.err);
  assert.deepEqual((await g.submit("g.V('fra').outE('route').values('miles')")).toArray(), [385]);
  assert.deepEqual((await g.submit("g.V(['AT','vie']).in('route').id()")).toArray(), ['fra']);

  writeFileSync(file, 'id,label,pk,from,to\nx,airport,DE,,\ne,route,,x,nowhere\n');
  const broken = await imported(server, file);
  assert.equal(broken.code, 1);
  assert.match(broken.err, /airports\.csv, line 3: an edge leads to the vertex "nowhere", which is not in the file/);
});
