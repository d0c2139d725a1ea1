// Reverse edges: entries of edges that lie with the partitions of their targets, by choice (`orrery.graph.reverse`). What is read by
// them is what is read by asking every partition, whoever wrote the edges and whatever became of the partitions.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { attribute, authenticator, client, failure, v2 } from './gremlin.js';
import { signed } from './rest.js';
import { emulatorKey, orrery, Server } from './server.js';

const cloud = (graph) => ({ authenticator: authenticator('3.7', { graph }), path: '/', mimeType: v2 });
const keys = ['a', 'b', 7, true];
const vertices = 12;
const keyOf = (i) => keys[i % keys.length];
const partitionKey = { paths: ['/pk'], kind: 'Hash', version: 2 };

const definition = async (server, name) => (await signed(server, 'GET', `/dbs/graphs/colls/${name}`)).json;
const reverse = async (server, name) => (await definition(server, name)).orrery?.indexes?.find((index) => index.name === 'gremlin_reverse');
async function settled(server, name) {
  await server.until(async () => ['ready', 'failed'].includes((await reverse(server, name))?.state));
  return reverse(server, name);
}
async function choose(server, name, value) {
  const shown = await definition(server, name);
  return signed(server, 'PUT', `/dbs/graphs/colls/${name}`, { body: { ...shown, orrery: { ...shown.orrery, graph: { reverse: value } } } });
}

async function start(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', '--set', 'partition.ru_max=100000', ...args]);
  await signed(server, 'POST', '/dbs', { body: { id: 'graphs' } });
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  return { server, cosmos };
}

async function made(t, at, name, orrery, more = {}) {
  const created = await signed(at.server, 'POST', '/dbs/graphs/colls', {
    headers: { 'x-ms-offer-throughput': '400000' }, body: { id: name, partitionKey, ...(orrery ? { orrery } : {}), ...more } });
  assert.equal(created.status, 201, created.text);
  return { g: await client(t, at.server, '3.7', cloud(name)), items: at.cosmos.database('graphs').container(name).items };
}

const target = (i) => (i * 5 + Math.floor(i / vertices)) % vertices;
async function fill(g) {
  for (let i = 0; i < vertices; i++)
    await g.submit("g.addV('n').property('id', i).property('pk', p).property('name', n)", { i: `v${i}`, p: keyOf(i), n: `name ${i}` });
  for (let i = 0; i < 60; i++)
    await g.submit("g.V([p, i]).addE(l).to(g.V([q, j])).property('id', e).property('w', w)",
      { p: keyOf(i * 7), i: `v${(i * 7) % vertices}`, q: keyOf(target(i)), j: `v${target(i)}`, l: `l${i % 5}`, e: `e${i}`, w: i % 3 });
}

const all = 'g.V().hasLabel("n")';
const questions = [`${all}.in().id()`, `${all}.both().id()`, `${all}.inE().id()`, `${all}.bothE().id()`, `${all}.in('l1','l2').values('name')`,
  `${all}.inE('l3').has('w',2).id()`, `${all}.inE().has('w',1).outV().id()`, `${all}.inE().has('w',1).count()`, `${all}.in().count()`, `${all}.inE('none').count()`,
  `${all}.group().by('name').by(inE().count())`, "g.V(['a','v0']).in().id()", "g.V('v5').inE().values('w')", "g.V(['b','v1']).in().in().dedup().id()",
  "g.V(['b','v1']).in().limit(2).count()", "g.V(['b','v1']).inE().as('e').outV().as('v').select('e','v').by(id).by('name')", "g.V(['a','nobody']).in().id()",
  `${all}.where(inE('l4')).id()`];
async function answers(g) {
  const found = {};
  for (const question of questions) found[question] = [...await g.submit(question)].map((value) => JSON.stringify(value)).sort();
  return found;
}
const way = async (g) => /by (reverse edges|every partition)/.exec(JSON.stringify([...await g.submit("g.V(['a','v0']).in().explain()")]))?.[1];
async function verified(server) {
  const { out } = await orrery(['verify', '--format', 'json', '--endpoint', server.url, '--dev']);
  assert.equal(JSON.parse(out).findings.length, 0, out);
}
const split = async (server, name) => {
  const of = `/_orrery/containers/graphs/${name}/partitions`;
  const { partitions } = (await signed(server, 'GET', of)).json;
  const begun = await signed(server, 'POST', `${of}/${partitions[0].id}/split`, { body: { pieces: 2 } });
  assert.equal(begun.status, 202, begun.text);
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/migrations')).json.migrations.some(({ id }) => id === begun.json.id));
};

test('answers are those of a graph that asks every partition, after writes by other APIs and a split too', async (t) => {
  const at = await start(t);
  const plain = await made(t, at, 'plain'), chosen = await made(t, at, 'chosen', { graph: { reverse: true } });
  const index = await reverse(at.server, 'chosen');
  assert.equal(index.state, 'ready'); // there was nothing to build
  assert.equal(index.placed, '/_sinkPartition');
  assert.equal((await definition(at.server, 'chosen')).orrery.graph, undefined);
  for (const { g } of [plain, chosen]) await fill(g);
  assert.equal(await way(plain.g), 'every partition');
  assert.equal(await way(chosen.g), 'reverse edges');
  assert.deepEqual(await answers(chosen.g), await answers(plain.g));

  const change = async ({ g, items }) => {
    const bare = { pk: 'b', label: 'l1', _isEdge: true, _vertexId: 'v1', _vertexLabel: 'n', _sinkLabel: 'n', w: 2 };
    await items.create({ ...bare, id: 'x1', _sink: 'v0', _sinkPartition: 'a' });
    await items.create({ ...bare, id: 'x2', _sink: 'v2', _sinkPartition: 7 });
    await items.upsert({ ...bare, id: 'x2', _sink: 'v3', _sinkPartition: true }); // it leads elsewhere
    await items.create({ ...bare, id: 'x3', _sink: 'gone', _sinkPartition: 'a' });
    await items.batch?.([{ operationType: 'Create', resourceBody: { ...bare, id: 'x4', _sink: 'v4', _sinkPartition: 'a' } },
      { operationType: 'Create', resourceBody: { ...bare, id: 'x5', _sink: 'v4', _sinkPartition: 'a' } },
      { operationType: 'Delete', id: 'x1' }], 'b');
    await g.submit("g.E('e7').drop()");
    await g.submit("g.V(['b','v5']).drop()");
  };
  for (const graph of [plain, chosen]) await change(graph);
  const expected = await answers(plain.g);
  assert.deepEqual(await answers(chosen.g), expected);
  await verified(at.server);
  for (let i = 0; i < 2; i++) {
    await split(at.server, 'chosen');
    assert.deepEqual(await answers(chosen.g), expected);
  }
  await verified(at.server);
  const [profile] = [...await chosen.g.submit("g.V(['a','v0']).in().profile()")];
  assert.match(JSON.stringify(profile instanceof Map ? Object.fromEntries(profile) : profile, (_, v) => (v instanceof Map ? Object.fromEntries(v) : v)), /reverse edges/);
  // a request sees what it has written itself
  assert.deepEqual([...await chosen.g.submit("g.V(['a','v0']).addE('own').to(g.V(['b','v1'])).iterate(); g.V(['b','v1']).in('own').id()")], ['v0']);
  assert.deepEqual([...await chosen.g.submit("g.V(['a','v0']).outE('own').drop(); g.V(['b','v1']).inE('own').count()")], [0]);
});

test('a graph gets them while it is in use, and lets them go', async (t) => {
  const at = await start(t);
  const { g, items } = await made(t, at, 'g');
  await fill(g);
  const before = await answers(g);
  await items.create({ id: 'unplaced', pk: 'a', label: 'l9', _isEdge: true, _vertexId: 'v0', _sink: 'v1' });
  assert.equal((await choose(at.server, 'g', true)).status, 200);
  // an edge that does not say where its target is cannot be found by that
  const failed = await settled(at.server, 'g');
  assert.equal(failed.state, 'failed');
  assert.match(failed.failure.reason, /no partition key/);
  assert.equal(await way(g), 'every partition');
  await g.submit("g.E('unplaced').drop()");
  assert.equal((await choose(at.server, 'g', false)).status, 200);
  assert.equal(await reverse(at.server, 'g'), undefined);

  assert.equal((await choose(at.server, 'g', true)).status, 200);
  assert.equal((await settled(at.server, 'g')).state, 'ready');
  await at.server.until(async () => (await way(g)) === 'reverse edges');
  assert.deepEqual(await answers(g), before);
  await verified(at.server);
  const refused = await failure(items.create({ id: 'unplaced', pk: 'a', label: 'l9', _isEdge: true, _vertexId: 'v0', _sink: 'v1' }));
  assert.equal(refused.code, 400);
  assert.match(refused.message, /gremlin_reverse.*no partition key/s);
  const long = await failure(g.submit("g.V(['a','v0']).addE(l).to(g.V(['b','v1']))", { l: 'x'.repeat(300) }));
  assert.match(long.message, /at most 256 bytes/);
  assert.deepEqual(await answers(g), before);

  assert.equal((await choose(at.server, 'g', false)).status, 200);
  assert.equal(await way(g), 'every partition');
  assert.deepEqual(await answers(g), before);
  await at.server.until(async () => {
    const { headers } = await signed(at.server, 'GET', '/dbs/graphs/colls/g', { headers: { 'x-ms-documentdb-populatequotainfo': 'true' } });
    return headers['x-ms-documentdb-collection-index-transformation-progress'] === '100';
  });
  await verified(at.server);
});

test('a re-key builds them again', async (t) => {
  const at = await start(t);
  const { g, items } = await made(t, at, 'g', { graph: { reverse: true } });
  await fill(g);
  for (const item of (await items.readAll().fetchAll()).resources) await items.upsert({ ...item, twin: item.pk });
  const before = await answers(g);
  const begun = await signed(at.server, 'POST', '/_orrery/containers/graphs/g/rekey', { body: { partitionKey: { paths: ['/twin'], kind: 'Hash', version: 2 } } });
  assert.equal(begun.status, 202, begun.text);
  await at.server.until(async () => !(await signed(at.server, 'GET', '/_orrery/containers/graphs/g/rekey')).json.underWay);
  assert.deepEqual(await answers(g), before);
  await at.server.until(async () => {
    const index = await reverse(at.server, 'g');
    return index.state === 'ready' && index.key.at(-2).path.includes('twin') && (await way(g)) === 'reverse edges';
  });
  assert.deepEqual(await answers(g), before);
  await verified(at.server);
});

test('what they cannot be had with is refused by name', async (t) => {
  const at = await start(t, ['--node', 'near=memory:', '--node', 'far=memory:']);
  const create = (body) => signed(at.server, 'POST', '/dbs/graphs/colls', { headers: { 'x-ms-offer-throughput': '400000' },
    body: { id: 'no', partitionKey, orrery: { graph: { reverse: true } }, ...body } });
  for (const [body, why] of [
    [{ partitionKey: { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 } }, /partition key of one path/],
    [{ defaultTtl: -1 }, /do not expire/],
    [{ orrery: { graph: { reverse: 'yes' } } }, /true or false/],
    [{ orrery: { graph: { reverse: true, forward: true } } }, /true or false/],
    [{ orrery: { indexes: [{ name: 'p', placed: '/to', multikey: true, key: [{ path: '/x' }] }] } }, /"placed"/],
  ]) {
    const { status, text } = await create(body);
    assert.ok(status === 400 || status === 501, text);
    assert.match(text.replaceAll('\\"', '"'), why);
  }
  const { g } = await made(t, at, 'g', { graph: { reverse: true } });
  await fill(g);
  const { partitions } = (await signed(at.server, 'GET', '/_orrery/containers/graphs/g/partitions')).json;
  assert.ok(partitions.length > 1);
  assert.equal(new Set(partitions.map(({ node }) => node)).size, 1);
  const moved = await signed(at.server, 'POST', `/_orrery/containers/graphs/g/partitions/${partitions[0].id}/move`, { body: { node: partitions[0].node === 'near' ? 'far' : 'near' } });
  assert.equal(moved.status, 501, moved.text);
  assert.match(moved.text, /one node/);
  const expiring = await signed(at.server, 'PUT', '/dbs/graphs/colls/g', { body: { ...await definition(at.server, 'g'), defaultTtl: 60 } });
  assert.equal(expiring.status, 501, expiring.text);
  const rekeyed = await signed(at.server, 'POST', '/_orrery/containers/graphs/g/rekey', { body: { partitionKey: { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 } } });
  assert.equal(rekeyed.status, 501, rekeyed.text);
  assert.match(rekeyed.text, /one path/);
  await made(t, at, 'spread');
  const spread = await choose(at.server, 'spread', true);
  assert.equal(spread.status, 501, spread.text);
  assert.match(spread.text, /several nodes/);
});

test('a token for one partition key does not see edges of others', async (t) => {
  const at = await start(t);
  const { g } = await made(t, at, 'g', { graph: { reverse: true } });
  await fill(g);
  await signed(at.server, 'POST', '/dbs/graphs/users', { body: { id: 'u' } });
  const { json } = await signed(at.server, 'POST', '/dbs/graphs/users/u/permissions',
    { body: { id: 'p', permissionMode: 'Read', resource: 'dbs/graphs/colls/g', resourcePartitionKey: ['a'] } });
  const bound = await client(t, at.server, '3.7', { authenticator: authenticator('3.7', { key: json._token }), path: '/', mimeType: v2 });
  const seen = [...await bound.submit("g.V('v0').inE().outV().id()")];
  const there = [...await g.submit("g.V(['a','v0']).inE().outV().id()")];
  assert.ok(there.some((id) => Number(id.slice(1)) % 4 !== 0));
  assert.ok(seen.every((id) => Number(id.slice(1)) % 4 === 0), seen.join());
  assert.equal(attribute(await failure(bound.submit("g.V('v0').drop()")), 'x-ms-status-code'), 403);
});
