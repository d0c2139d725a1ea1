// A key that is spread over several partitions, through the vendor's own client: it is what it was, but for where it lies.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient, ChangeFeedStartFrom } from '@azure/cosmos';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { signed } from './rest.js';

const json = { 'content-type': 'application/json' };
const base = '/_orrery/containers/d/c';
const post = (server, path, body) => signed(server, 'POST', `${base}/${path}`, { headers: json, body });

async function settled(server) {
  for (;;) {
    const now = (await signed(server, 'GET', `${base}/partitions`)).json;
    if (!now.migration) return now.partitions;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function done(server, path, body) {
  const answer = await post(server, path, body);
  assert.equal(answer.status, 202, answer.text);
  return settled(server);
}

async function started(t, args = [], definition = {}) {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'd' });
  const { container } = await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk', ...definition });
  return { server, client, container };
}

const many = (count, pk) => Array.from({ length: count }, (_, n) => ({ id: `i${String(n).padStart(3, '0')}`, pk, n: n % 7, text: 'x'.repeat(100) }));

async function fill(container) {
  for (const item of [...many(60, 'hot'), ...many(5, 'a'), ...many(5, 'b')]) await container.items.create(item);
}

async function verified(server) {
  const { code, out } = await orrery(['verify', '--format', 'json', '--endpoint', server.url, '--dev']);
  assert.equal(code, 0, out);
}

const ids = (rows) => rows.map((row) => row.id ?? row).sort();
const all = many(60, 'hot').map((item) => item.id);

// Everything one can ask of the key, whichever way it lies.
async function looks(container, what) {
  const options = { partitionKey: 'hot', maxItemCount: 7 };
  const run = async (query, o = options) => (await container.items.query(query, o).fetchAll()).resources;
  for (const id of ['i000', 'i029', 'i059']) assert.equal((await container.item(id, 'hot').read()).resource.pk, 'hot', what);
  assert.deepEqual(ids(await run('SELECT c.id FROM c')), all, what);
  assert.deepEqual((await run('SELECT c.id, c.n FROM c ORDER BY c.n')).map((row) => row.n), all.map((_, n) => n % 7).sort(), what);
  assert.deepEqual(await run('SELECT VALUE COUNT(1) FROM c'), [60], what);
  assert.deepEqual(ids(await run('SELECT c.id FROM c WHERE c.n = 3')), all.filter((_, n) => n % 7 === 3), what);
  assert.deepEqual(ids(await run("SELECT c.id FROM c WHERE c.id = 'i040'")), ['i040'], what);
  // Without the key in the header: the library asks range by range.
  for (const o of [{ maxItemCount: 7 }, {}]) {
    assert.deepEqual(ids(await run("SELECT c.id FROM c WHERE c.pk = 'hot'", o)), all, what);
    assert.deepEqual(await run("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'hot'", o), [60], what);
    assert.deepEqual(await run('SELECT VALUE COUNT(1) FROM c', o), [70], what);
    assert.equal((await run('SELECT c.id FROM c WHERE c.n >= 2 ORDER BY c.n DESC', o)).length, [...Array(60).keys(), ...Array(5).keys(), ...Array(5).keys()].filter((n) => n % 7 >= 2).length, what);
    assert.deepEqual([...await run("SELECT DISTINCT VALUE c.n FROM c", o)].sort(), [0, 1, 2, 3, 4, 5, 6], what);
  }
  assert.equal((await container.items.readAll({ maxItemCount: 9 }).fetchAll()).resources.length, 70, what);
  const { resources } = await container.items.readAll({ partitionKey: 'hot', maxItemCount: 9 }).fetchAll();
  assert.deepEqual(ids(resources), all, what);
}

async function changes(container, options) {
  const seen = [];
  const iterator = container.items.getChangeFeedIterator(options);
  for await (const page of iterator.getAsyncIterator()) {
    if (page.statusCode === 304) return { seen, token: page.continuationToken };
    seen.push(...page.result);
  }
  return { seen };
}

test('a key is spread, is what it was, and is gathered', async (t) => {
  const directory = join(scratch(t), 'data');
  const first = await started(t, ['--node', `local=rocksdb:${directory}`]);
  let { server, container } = first;
  await fill(container);
  const feed = await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning('hot'), maxItemCount: 11 });
  assert.equal(feed.seen.length, 60);
  await looks(container, 'before');

  const tried = await post(server, 'spread', { partitionKey: ['hot'], parts: 4, dryRun: true });
  assert.equal(tried.status, 200, tried.text);
  assert.equal(tried.json.kind, 'spread');
  const spread = await done(server, 'spread', { partitionKey: ['hot'], parts: 4 });
  assert.equal(spread.filter((one) => one.cut === 'spread').length, 3);
  for (let i = 1; i < spread.length; i++) assert.equal(spread[i].minInclusive, spread[i - 1].maxExclusive);
  assert.equal(spread.reduce((sum, one) => sum + one.items, 0), 70);
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, spread.length);
  await looks(container, 'spread');
  await verified(server);

  // A batch over parts is all or nothing.
  const upsert = (id, n) => ({ operationType: 'Upsert', resourceBody: { id, pk: 'hot', n, text: 'batch' } });
  const batch = await container.items.batch([upsert('i000', 0), upsert('i059', 3), upsert('i030', 2)], 'hot');
  assert.deepEqual(batch.result.map((one) => one.statusCode), [200, 200, 200]);
  const refused = await container.items.batch([upsert('i001', 6), { operationType: 'Create', resourceBody: { id: 'i058', pk: 'hot' } }], 'hot');
  assert.equal(refused.result[1].statusCode, 409);
  assert.equal((await container.item('i001', 'hot').read()).resource.n, 1);

  // A stored procedure sees all of it, and what it writes.
  await container.scripts.storedProcedures.create({
    id: 'count',
    body: `function () { const c = getContext().getCollection(); c.createDocument(c.getSelfLink(), { id: 'i0305', pk: 'hot', n: 99 }, (err) => { if (err) throw err;
      c.queryDocuments(c.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', {}, (e, rows) => { if (e) throw e; c.queryDocuments(c.getSelfLink(), 'SELECT c.id FROM c WHERE c.n = 99', {}, (f, found) => {
        if (f) throw f; c.deleteDocument(found[0]._self ?? c.getAltLink() + '/docs/i0305', {}, (g) => { if (g) throw g; getContext().getResponse().setBody([rows[0], found.length]); }); }); }); }); }`,
  });
  assert.deepEqual((await container.scripts.storedProcedure('count').execute('hot', [])).resource, [61, 1]);

  // The feed of the key goes on from where it was; each item is seen once.
  const later = await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(feed.token), maxItemCount: 11 });
  assert.deepEqual(ids(later.seen), ['i000', 'i030', 'i059']);
  await container.item('i020', 'hot').replace({ id: 'i020', pk: 'hot', n: 6 });

  // What takes whole keys is refused by name, and so is to move, split or merge a part.
  const part = spread.find((one) => one.cut === 'spread');
  for (const [path, body] of [[`partitions/${part.id}/split`, { pieces: 2 }], ['partitions/merge', { partitions: [part.id, spread[spread.indexOf(part) - 1].id] }]]) {
    const answer = await post(server, path, body);
    assert.equal(answer.status, 501, answer.text);
    assert.match(answer.text, /part of a key that is spread/);
  }
  const again = await post(server, 'spread', { partitionKey: ['hot'] });
  assert.equal(again.status, 400);
  assert.match(again.text, /gather it first/);
  await assert.rejects(container.item('i000', 'hot').replace({ id: 'i0599', pk: 'hot' }), /another part/);

  // A restart, with kill -9.
  await server.stop('SIGKILL');
  ({ server, container } = await started(t, ['--node', `local=rocksdb:${directory}`]));
  await looks(container, 'restarted');

  const more = await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(later.token), maxItemCount: 11 });
  assert.deepEqual(ids(more.seen), ['i020']);
  const gathered = await done(server, 'gather', { partitionKey: ['hot'] });
  assert.equal(gathered.filter((one) => one.cut === 'spread').length, 0);
  await container.item('i021', 'hot').replace({ id: 'i021', pk: 'hot', n: 0 });
  await looks(container, 'gathered');
  await verified(server);
  const last = await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(more.token), maxItemCount: 11 });
  assert.deepEqual(ids(last.seen), ['i021']);
  assert.equal((await post(server, 'gather', { partitionKey: ['hot'] })).status, 400);
});

test('the limit of a logical partition counts over all parts', async (t) => {
  const { server, container } = await started(t, ['--set', 'logical_partition.bytes_max=64K']);
  const item = (n) => ({ id: `i${String(n).padStart(3, '0')}`, pk: 'hot', text: 'x'.repeat(2000) });
  let n = 0;
  for (; n < 20; n++) await container.items.create(item(n));
  await done(server, 'spread', { partitionKey: ['hot'], parts: 3 });
  await assert.rejects(async () => {
    for (; n < 60; n++) await container.items.create(item(n));
  }, { code: 403 });
  assert.ok(n > 25 && n < 35, `${n} items fit`);
  await container.item('i000', 'hot').delete(); // of the first part: there is room in the last again
  await container.items.create(item(n));
  await verified(server);
});

test('a container that has something for whole keys does not spread one, and the other way round', async (t) => {
  const { server, client, container } = await started(t, [], { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/n2'] }] } });
  for (let n = 0; n < 10; n++) await container.items.create({ id: `i${n}`, pk: 'hot', n2: n });
  const refused = await post(server, 'spread', { partitionKey: ['hot'] });
  assert.equal(refused.status, 501, refused.text);
  assert.match(refused.text, /unique keys/);
  const { container: other } = await client.database('d').containers.create({ id: 'o', partitionKey: '/pk' });
  for (let n = 0; n < 10; n++) await other.items.create({ id: `i${n}`, pk: 'hot' });
  assert.equal((await signed(server, 'POST', '/_orrery/containers/d/o/spread', { headers: json, body: { partitionKey: ['hot'], parts: 2 } })).status, 202);
  const { resource } = await other.read();
  await assert.rejects(other.replace({ ...resource, orrery: { indexes: [{ name: 'n', key: [{ path: '/n' }] }] } }), /is spread/);
});
