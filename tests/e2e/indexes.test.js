// Indexes besides the indexing policy: `orrery.indexes` of a container.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed } from './rest.js';

const excluded = { indexingMode: 'consistent', includedPaths: [], excludedPaths: [{ path: '/*' }] };
const byRank = { name: 'by rank', key: [{ path: '/rank', order: 'descending' }, { path: '/name' }] };
const oneMail = { name: 'one mail', key: [{ path: '/mail' }], unique: 'logicalPartition', sparse: true };

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return { server, client };
}

async function made(client, definition = {}) {
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  const { container } = await database.containers.create({
    id: 'people', partitionKey: { paths: ['/team'] }, indexingPolicy: excluded, ...definition });
  return container;
}

async function people(container, count, from = 0) {
  for (let i = from; i < from + count; i += 50)
    await Promise.all(Array.from({ length: Math.min(50, from + count - i) }, (_, n) => container.items.create({
      id: `${i + n}`, team: `t${(i + n) % 3}`, name: `n${i + n}`, rank: (i + n) % 10, mail: `m${i + n}` })));
}

// As libraries do it: what was read, with another list.
async function define(container, indexes) {
  const { resource } = await container.read();
  await container.replace({ ...resource, orrery: { ...resource.orrery, indexes } });
}

async function settled(container) {
  for (;;) {
    const { resource } = await container.read();
    const indexes = resource.orrery?.indexes ?? [];
    if (indexes.every(({ state }) => state !== 'building')) return Object.fromEntries(indexes.map((index) => [index.name, index]));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function explained(server, query) {
  const answer = await signed(server, 'POST', '/dbs/shop/colls/people/docs', {
    body: { query, parameters: [] },
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json',
      'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-orrery-explain': 'true' } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

test('an index of an empty container is there at once, is shown, and serves queries', async (t) => {
  const { server, client } = await started(t);
  const container = await made(client, { orrery: { indexes: [byRank] } });
  const { resource } = await container.read();
  assert.deepEqual(resource.orrery.indexes, [{ name: 'by rank', number: 0, format: 2, key: byRank.key, state: 'ready' }]);
  await people(container, 60);
  const query = 'SELECT VALUE c.id FROM c WHERE c.rank = 4 AND c.name > "n3"';
  const found = await explained(server, query);
  assert.deepEqual(found.Documents.sort(), ['34', '4', '44', '54']);
  assert.equal(found._explain.access.kind, 'index', JSON.stringify(found._explain));
  assert.match(JSON.stringify(found._explain.access), /by rank/);
  assert.equal(found._explain.actual.itemsLoaded, 4);
  const one = await explained(server, 'SELECT VALUE c.id FROM c WHERE c.rank = 4'); // the policy has no path
  assert.equal(one.Documents.length, 6);
  assert.equal(one._explain.access.kind, 'index');
  const { resources } = await container.items.query('SELECT VALUE c.id FROM c ORDER BY c.rank DESC, c.name ASC').fetchAll();
  assert.equal(resources.length, 60);
  assert.deepEqual(resources.slice(0, 2), ['19', '29']);
});

test('a hidden index is kept and never used', async (t) => {
  const { server, client } = await started(t);
  const container = await made(client, { orrery: { indexes: [{ ...byRank, hidden: true }] } });
  await people(container, 30);
  const query = 'SELECT VALUE c.id FROM c WHERE c.rank = 4 AND c.name > "n"';
  const scanned = await explained(server, query);
  assert.equal(scanned.Documents.length, 3);
  assert.equal(scanned._explain.access.kind, 'scan');
  await define(container, [byRank]); // nothing is built for that
  assert.equal((await settled(container))['by rank'].state, 'ready');
  const used = await explained(server, query);
  assert.deepEqual(used.Documents.sort(), scanned.Documents.sort());
  assert.equal(used._explain.access.kind, 'index');
});

test('an index is built behind its items, goes on after a restart, and is dropped', async (t) => {
  const data = scratch(t);
  let { server, client } = await started(t, ['--node', `local=rocksdb:${data}/node`]);
  let container = await made(client);
  await people(container, 1500);
  await define(container, [byRank, oneMail]);
  const begun = await container.read();
  assert.deepEqual(begun.resource.orrery.indexes.map(({ state }) => state), ['building', 'building']);
  assert.ok(Number(begun.headers['x-ms-documentdb-collection-index-transformation-progress']) < 100);
  await people(container, 50, 1500);
  await server.stop('SIGKILL');
  ({ server, client } = await started(t, ['--node', `local=rocksdb:${data}/node`]));
  container = client.database('shop').container('people');
  await people(container, 50, 1550);
  const indexes = await settled(container);
  assert.deepEqual(Object.values(indexes).map(({ state }) => state), ['ready', 'ready']);
  const query = 'SELECT VALUE COUNT(1) FROM c WHERE c.rank = 4 AND c.name > "n"';
  assert.deepEqual((await explained(server, query)).Documents, [160]);
  await assert.rejects(container.items.create({ id: 'x', team: 't1', mail: 'm1' }), { code: 409 });
  await container.items.create({ id: 'x', team: 't2', mail: 'm1' }); // another logical partition
  await container.items.create({ id: 'y', team: 't1' }); // sparse
  await container.items.create({ id: 'z', team: 't1' });
  await define(container, []);
  await container.items.create({ id: 'x', team: 't1', mail: 'm1' });
  for (let progress = 0; progress < 100;)
    progress = Number((await container.read()).headers['x-ms-documentdb-collection-index-transformation-progress']);
  assert.deepEqual((await explained(server, query)).Documents, [160]);
});

test('conflicts of a unique index are listed, and nothing of it is held', async (t) => {
  const { client } = await started(t);
  const container = await made(client);
  await people(container, 20);
  await container.items.create({ id: 'twin', team: 't1', mail: 'm7' });
  await define(container, [oneMail]);
  await container.items.create({ id: 'late', team: 't2', mail: 'm8' }); // refused by nobody
  const { 'one mail': index } = await settled(container);
  assert.equal(index.state, 'failed');
  assert.match(index.failure.reason, /same values/);
  const twin = index.failure.conflicts.find(({ values }) => values[0] === 'm7');
  assert.deepEqual(twin.partitionKey, ['t1']);
  assert.deepEqual(twin.items.sort(), ['7', 'twin']);
  await container.items.create({ id: 'third', team: 't1', mail: 'm7' });
  await define(container, [index]); // what failed stays so until it is dropped
  assert.equal((await settled(container))['one mail'].state, 'failed');
  for (const id of ['twin', 'third']) await container.item(id, 't1').delete();
  await container.item('late', 't2').delete();
  await define(container, []);
  await define(container, [oneMail]);
  assert.equal((await settled(container))['one mail'].state, 'ready');
});

test('items go so long after the date at the path of an index', async (t) => {
  const { client } = await started(t);
  const container = await made(client, { orrery: { indexes: [
    { name: 'old', key: [{ path: '/seen' }], expireAfterSeconds: 3600, filter: [{ path: '/kind', comparison: 'equal', value: 'visit' }] }] } });
  const now = Math.floor(Date.now() / 1000);
  for (const [id, seen, kind] of [['old', now - 4000, 'visit'], ['new', now, 'visit'], ['kept', now - 4000, 'order'], ['none', 'x', 'visit']])
    await container.items.create({ id, team: 't', seen, kind });
  for (;;) {
    const { resources } = await container.items.query('SELECT VALUE c.id FROM c').fetchAll();
    if (!resources.includes('old')) {
      assert.deepEqual(resources.sort(), ['kept', 'new', 'none']);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

test('what cannot be is refused by name', async (t) => {
  const { client } = await started(t);
  const { database } = await client.databases.create({ id: 'shop' });
  const key = [{ path: '/a' }];
  for (const [indexes, message] of [
    [{}, /must be an array/], [[1], /not an object/], [[{ key }], /needs a name/], [[{ name: 'a' }], /either a/],
    [[{ name: 'a', key, wat: 1 }], /no member/], [[{ name: 'a', key }, { name: 'a', key }], /two are named/],
    [[{ name: 'a', key, unique: 'container' }], /logicalPartition/], [[{ name: 'a', key, collation: 'de' }], /collation is neither/], [[{ name: 'a', key, collation: { locale: 'de' } }], /a collation takes/],
    [[{ name: 'a', key: [{ path: '/a', hashed: true }], unique: 'logicalPartition' }], /cannot be unique/],
    [[{ name: 'a', key: [{ path: '/_ts' }] }], /system property/],
    [[{ name: 'a', wildcard: {}, expireAfterSeconds: 1 }], /cannot expire/],
    [[{ name: 'a', key, sparse: true, filter: [{ path: '/a', comparison: 'exists' }] }], /sparse and partial/],
    [Array.from({ length: 65 }, (_, i) => ({ name: `${i}`, key })), /more than 64/],
  ])
    await assert.rejects(database.containers.create({ id: 'c', partitionKey: { paths: ['/team'] }, orrery: { indexes } }), (error) => {
      assert.match(error.message, message);
      assert.ok([400, 501].includes(error.code), `${error.code}`);
      return true;
    });
});
