// The indexes that graphs get of their edges and vertices: what is read from their entries is what is read from the items.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { emulatorKey } from './server.js';
import { attribute, authenticator, client, container, failure, graph, v2 } from './gremlin.js';
import { signed } from './rest.js';

const cloud = (name = 'g') => ({ authenticator: authenticator('3.7', { graph: name }), path: '/', mimeType: v2 });
const long = `long${'x'.repeat(240)}`; // its key is cut in an entry

async function definition(server, name = 'g') {
  return (await signed(server, 'GET', `/dbs/graphs/colls/${name}`)).json;
}

const indexes = async (server, name) => (await definition(server, name)).orrery?.indexes ?? [];
const ready = (server, name) => server.until(async () => {
  const list = await indexes(server, name);
  return list.length === 3 && list.every(({ state }) => state === 'ready');
});

// Vertices with keys of several types, edges of several labels, some of them twice, a loop, and one whose target is gone.
async function fill(g, items) {
  const keys = ['a', 'b', 7, true];
  const ids = ['v0', 'v1', 'v2', 'v3', 'v4', 'v5', `${long}1`, `${long}2`];
  for (const [i, id] of ids.entries())
    await g.submit("g.addV('n').property('id', i).property('pk', p).property('name', n)", { i: id, p: keys[i % keys.length], n: `name ${i}` });
  const edge = (from, to, label) =>
    g.submit("g.V([p, i]).addE(l).to(g.V([q, j])).property('w', 1)",
      { p: keys[from % keys.length], i: ids[from], q: keys[to % keys.length], j: ids[to], l: label });
  for (let i = 0; i < 40; i++) await edge((i * 7) % 8, (i * 5) % 8, `l${i % 12}`);
  await edge(2, 2, 'loop');
  // as another API writes them: one leads nowhere, one does not say the partition of its target
  const bare = { label: 'l1', pk: 'a', _isEdge: true, _vertexId: 'v0', _vertexLabel: 'n', _sinkLabel: 'n' };
  await items.create({ ...bare, id: 'nowhere', _sink: 'gone', _sinkPartition: 'a' });
  await items.create({ ...bare, id: 'unplaced', _sink: 'v1' });
}

const labels = Array.from({ length: 10 }, (_, i) => `'l${i}'`).join();
const questions = ['out()', 'in()', 'both()', "out('l1')", "in('l1','l2')", `out(${labels})`, `in(${labels})`, 'out().in()', "out('none')",
  'out().dedup()', 'in().out().simplePath()'].flatMap((walk) =>
  ['.id()', '.label()', ".values('name')", '.count()'].map((end) => `g.V().hasLabel('n').${walk}${end}`));
const more = ['g.V().hasLabel("n").group().by("name").by(out().count())', 'g.V(["a","v0"]).outE().count()', 'g.V(["b","v1"]).inE("l1").count()',
  'g.V().hasLabel("n").outE("l1").inV().id()', `g.V('${long}1').both().id()`, "g.V().hasLabel('n').where(out('loop')).id()"];

async function answers(g) {
  const all = {};
  for (const question of [...questions, ...more])
    all[question] = (await g.submit(question)).toArray().map((value) => JSON.stringify(value)).sort();
  return all;
}

async function filled(t, args = []) {
  const server = await graph(t, args, { throughput: '40000' });
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const { items } = cosmos.database('graphs').container('g');
  const g = await client(t, server, '3.7', cloud());
  await fill(g, items);
  return { server, g, items };
}

test('answers are the same from edges and from entries, and after splits', async (t) => {
  const { server, g, items } = await filled(t, ['--set', 'migration.pause_ms=20ms']);
  const before = await answers(g); // the first of them has met edges
  await ready(server);
  assert.deepEqual((await indexes(server)).map(({ name }) => name), ['gremlin_out', 'gremlin_in', 'gremlin_vertices']);
  assert.deepEqual(await answers(g), before);

  const { partitions } = (await signed(server, 'GET', '/_orrery/containers/graphs/g/partitions')).json;
  const begun = await signed(server, 'POST', `/_orrery/containers/graphs/g/partitions/${partitions[0].id}/split`, { body: { pieces: 3 } });
  assert.equal(begun.status, 202, begun.text);
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/migrations')).json.migrations.some(({ id }) => id === begun.json.id));
  assert.deepEqual(await answers(g), before);

  // entries go with their edges, whoever drops them
  const loops = async () => (await g.submit("g.V(['', 'v2'], [7, 'v2']).out('loop').count()")).first();
  assert.equal(await loops(), 1);
  await g.submit("g.V([7, 'v2']).outE('loop').drop()");
  assert.equal(await loops(), 0);
  const outs = async () => (await g.submit("g.V(['a', 'v0']).outE('l1').count()")).first();
  const had = await outs();
  await signed(server, 'DELETE', '/dbs/graphs/colls/g/docs/nowhere', { headers: { 'x-ms-documentdb-partitionkey': '["a"]' } });
  assert.equal(await outs(), had - 1);
  assert.ok(items);
});

test('a request sees its own edges and what it dropped', async (t) => {
  const { server, g } = await filled(t);
  await g.submit('g.V().out().count()');
  await ready(server);
  const ids = (await g.submit(
    "g.V(['a','v0']).as('a').V(['b','v1']).as('b').addE('fresh').from('a').to('b').iterate(); g.V(['a','v0']).out('fresh').id()")).toArray();
  assert.deepEqual(ids, ['v1']);
  assert.deepEqual((await g.submit("g.V(['a','v0']).outE('fresh').drop(); g.V(['a','v0']).out('fresh').id()")).toArray(), []);
  assert.deepEqual((await g.submit("g.V(['b','v1']).in('fresh').id()")).toArray(), []);
});

test('a re-key gives them the new partition key', async (t) => {
  const { server, g, items } = await filled(t);
  await g.submit('g.V().out().count()');
  await ready(server);
  const { resources } = await items.readAll().fetchAll();
  for (const item of resources) await items.upsert({ ...item, twin: item.pk });
  const before = await answers(g);
  const begun = await signed(server, 'POST', '/_orrery/containers/graphs/g/rekey', { body: { partitionKey: { paths: ['/twin'], kind: 'Hash', version: 2 } } });
  assert.equal(begun.status, 202, begun.text);
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/containers/graphs/g/rekey')).json.underWay);
  assert.deepEqual(await answers(g), before);
  await server.until(async () => (await indexes(server)).every(({ state, key }) => state === 'ready' && key.at(-1).path === '/"twin"'));
  assert.deepEqual(await answers(g), before);
});

test('a server that is told not to adds none', async (t) => {
  const { server, g } = await filled(t, ['--set', 'gremlin.indexes=false']);
  await g.submit('g.V().out().count()');
  assert.deepEqual(await indexes(server), []);
});

test('an index of somebody else stays, whatever its name', async (t) => {
  const server = await graph(t);
  const shown = await definition(server);
  const theirs = { name: 'gremlin_out', key: [{ path: '/name' }] };
  const replaced = await signed(server, 'PUT', '/dbs/graphs/colls/g', { body: { ...shown, orrery: { ...shown.orrery, indexes: [theirs] } } });
  assert.equal(replaced.status, 200, replaced.text);
  const g = await client(t, server, '3.7', cloud());
  await g.submit("g.addV('n').property('id','a').property('pk','p').as('a').addV('n').property('id','b').property('pk','p').addE('e').from('a')");
  assert.deepEqual((await g.submit("g.V('a').out().id()")).toArray(), ['b']);
  assert.deepEqual((await indexes(server)).map(({ name, key }) => [name, key.length]), [['gremlin_out', 1]]);
});

test('vertices are found without the edges between them, whatever says what an edge is', async (t) => {
  const server = await graph(t, [], { throughput: '40000' });
  const g = await client(t, server, '3.7', cloud());
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const { items } = cosmos.database('graphs').container('g');
  for (let i = 0; i < 30; i++)
    await g.submit(`g.addV('n').property('id','v${i}').property('pk','p${i % 4}').property('k',${i})`);
  for (let i = 0; i < 300; i++)
    await g.submit(`g.V(['p${i % 30 % 4}','v${i % 30}']).addE('e').to(g.V(['p${(i * 7) % 30 % 4}','v${(i * 7) % 30}']))`);
  // no edge but for `_isEdge: true`: without a label, without a key, and with an id that does not fit an entry
  for (const item of [{ id: 'no', pk: 'p0', _isEdge: false }, { id: 'list', pk: 'p1', _isEdge: [true] }, { id: 'text', pk: 'p2', _isEdge: 'true' }, { id: 'bare' }, { id: long, pk: 'p3' }])
    await items.create(item);
  const questions = ["g.V().id()", "g.V().hasNot('k').id()", "g.V().has('k').id()", "g.V().has('k',neq(3)).id()", "g.V().has('k',without(3,4)).count()", "g.V().not(hasLabel('n')).id()",
    "g.V().values('k')", "g.V().hasNot('k').count()", "g.V().count()", "g.V().limit(7).count()", "g.V().range(5,200).count()", "g.V().bothE().count()"];
  const all = async () => {
    const found = [];
    for (const question of questions) found.push([...await g.submit(question)].map(String).sort());
    return found;
  };
  const before = await all();
  assert.equal(before[0].length, 35);
  await ready(server);
  assert.deepEqual(await all(), before);
  // what was changed since, and what a transaction has changed
  await g.submit("g.V('v1').drop()");
  assert.equal((await g.submit("g.V().id()")).toArray().includes('v1'), false);
  assert.equal((await g.submit("g.addV('n').property('id','x').property('pk','p0').iterate(); g.V().has('k',3).drop().iterate(); g.V().hasNot('none').count()")).first(), 34);
});

test('the default graph is made with them', async (t) => {
  const server = await graph(t, [], { plain: true });
  const g = await client(t, server);
  await g.submit("g.addV('n').property('id','a').as('a').addV('n').property('id','b').addE('e').from('a')");
  const all = (await signed(server, 'GET', '/dbs')).json.Databases.map(({ id }) => id).filter((id) => id !== 'graphs');
  const [made] = (await signed(server, 'GET', `/dbs/${all[0]}/colls`)).json.DocumentCollections;
  assert.deepEqual(made.orrery.indexes.map(({ name }) => name), ['gremlin_out', 'gremlin_in', 'gremlin_vertices']);
  assert.deepEqual((await g.submit("g.V('a').out().id()")).toArray(), ['b']);
  assert.deepEqual((await g.submit("g.V('b').in().id()")).toArray(), ['a']);
});

test('many merge steps in one request', async (t) => {
  const server = await graph(t, ['--set', 'gremlin.operators_max=2000'], { throughput: '40000' });
  const g = await client(t, server, '3.7', cloud());
  const merge = (n) => `g.mergeV([(T.label): 'n', 'pk': 'a', 'key': ${n % 40}]).iterate()`;
  await g.submit(Array.from({ length: 300 }, (_, n) => merge(n)).join(';'));
  assert.equal((await g.submit('g.V().count()')).first(), 40);
  // found by what an earlier step of the same request wrote anew
  await g.submit("g.mergeV([(T.label): 'm', 'pk': 'a', 'key': 1]).property('key', 2).iterate(); g.mergeV([(T.label): 'm', 'pk': 'a', 'key': 2]).property('seen', true).iterate()");
  assert.deepEqual((await g.submit("g.V().hasLabel('m').values('seen')")).toArray(), [true]);
});

test('g.with() in scripts: batchSize and materializeProperties', async (t) => {
  const server = await graph(t);
  await container(server, 'graphs', 'other');
  const g = await client(t, server, '3.7', cloud());
  for (let i = 0; i < 7; i++) await g.submit("g.addV('n').property('id', i).property('pk', 'a').property('name', 'x')", { i: `v${i}` });
  const frames = async (script) => {
    const sizes = [];
    for await (const result of g.stream(script)) sizes.push(result.toArray().length);
    return sizes;
  };
  assert.deepEqual(await frames("g.with('batchSize', 3).V().id()"), [3, 3, 1]);
  assert.deepEqual(await frames('g.V().id()'), [7]);
  const [bare] = (await g.submit("g.with('materializeProperties', 'tokens').V(['a','v1'])")).toArray();
  assert.equal(bare.properties, undefined);
  const [whole] = (await g.submit("g.with('materializeProperties', 'all').V(['a','v1'])")).toArray();
  assert.equal(whole.properties.name[0].value, 'x');
  for (const script of ["g.with('batchSize', 0).V()", "g.with('batchSize', 'x').V()", "g.with('materializeProperties', 'some').V()"]) {
    const error = await failure(g.submit(script));
    assert.equal(error.statusCode, 597, script);
    assert.ok(attribute(error, 'x-ms-status-code') >= 400);
  }
});

// What a traversal of one step has read of items, in bytes.
async function loaded(g, script) {
  const [found] = [...await g.submit(`${script}.executionProfile()`)];
  const plain = JSON.parse(JSON.stringify(found, (_, value) => (value instanceof Map ? Object.fromEntries(value) : value)));
  return plain.metrics.flatMap(({ storeOps }) => storeOps ?? []).reduce((sum, { size }) => sum + size, 0);
}

test('the shorter of several long indexes is taken, and a count by label and value reads no vertices', async (t) => {
  const server = await graph(t, ['--set', 'partition.ru_max=1000000', '--set', 'gremlin.indexes=false'], { throughput: '1000000' });
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const { items } = cosmos.database('graphs').container('g');
  const g = await client(t, server, '3.7', cloud());
  const listed = (i, value) => [{ id: `x${i}`, _value: value }];
  const vertices = Array.from({ length: 1500 }, (_, i) => ({ id: `v${i}`, label: i % 50 ? 'person' : 'robot', pk: `p${i % 5}`, age: i % 7 ? listed(i, i % 5) : i % 5, rank: listed(i, i) }));
  const edges = Array.from({ length: 20 }, (_, i) => ({ id: `e${i}`, label: 'person', pk: 'p0', age: 1, _isEdge: true, _vertexId: 'v0', _vertexLabel: 'robot', _sink: `v${i}`, _sinkLabel: 'person', _sinkPartition: `p${i % 5}` }));
  // as nobody writes them here: an array of values and others, and one that has a value twice
  const strange = [{ id: 's0', label: 'person', pk: 'p0', age: [{ id: 'y', _value: 1 }, 5] }, { id: 's1', label: 'person', pk: 'p0', age: [{ id: 'y', _value: 1 }, { id: 'z', _value: 1 }, { id: 'w', _value: 2 }] }];
  for (let left = [...vertices, ...edges, ...strange]; left.length; ) { // again where the throughput of a key was used up
    const part = left.slice(0, 100);
    const answers = await items.bulk(part.map((resourceBody) => ({ operationType: 'Create', resourceBody })));
    for (const { statusCode } of answers) assert.ok(statusCode === 201 || statusCode === 429, `${statusCode}`);
    left = [...part.filter((_, i) => answers[i].statusCode === 429), ...left.slice(100)];
  }
  const person = ({ label }) => label === 'person';
  const ids = async (script) => [...await g.submit(`${script}.id()`)].sort();
  const count = async (script) => (await g.submit(`${script}.count()`)).first();
  const all = await loaded(g, "g.V().hasLabel('person').id()");
  for (const [script, right] of [
    ["has('person','age',1)", [...vertices.filter((v, i) => person(v) && i % 5 === 1), ...strange]],
    ["has('age',1).hasLabel('person')", [...vertices.filter((v, i) => person(v) && i % 5 === 1), ...strange]],
    ["has('person','rank',lt(300))", vertices.filter((v, i) => person(v) && i < 300)],
    ["has('rank',lt(300)).has('age',within(1,2))", vertices.filter((_, i) => i < 300 && [1, 2].includes(i % 5))],
  ]) {
    assert.deepEqual(await ids(`g.V().${script}`), right.map(({ id }) => id).sort(), script);
    assert.equal(await count(`g.V().${script}`), right.length, script);
    assert.ok(await loaded(g, `g.V().${script}.id()`) < all / 3, script);
  }
  for (const script of ["g.V().has('person','age',1)", "g.V().has('age',1)", "g.V().has('age',within(1,2)).hasLabel('person')", "g.E().has('person','age',1)"])
    assert.equal(await loaded(g, `${script}.count()`), 0, script);
  assert.equal(await count("g.E().has('person','age',1)"), edges.length);
  assert.equal(await count("g.V().has('age',1)"), 300 + strange.length);
  // a request counts what it has written itself
  assert.equal((await g.submit("g.V(['p1','v1']).property('age', 3).iterate(); g.V().has('person','age',1).count()")).first(), await count("g.V().has('person','age',1)"));
  assert.equal(await count("g.V().has('person','age',1)"), vertices.filter((v, i) => person(v) && i % 5 === 1).length + strange.length - 1);
});
