// A key that is spread over several partitions, through the vendor's own client: it is what it was, but for where it lies.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient, ChangeFeedStartFrom } from '@azure/cosmos';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { signed } from './rest.js';
import { mongoClient } from './mongo.js';
import { all as entities, tableClient } from './tables.js';
import { authenticator, client as gremlinClient, container } from './gremlin.js';

const json = { 'content-type': 'application/json' };
const base = '/_orrery/containers/d/c';
const post = (server, path, body) => signed(server, 'POST', `${base}/${path}`, { headers: json, body });

async function settled(server) {
  for (let i = 0; i < 3000; i++) {
    const now = (await signed(server, 'GET', `${base}/partitions`)).json;
    if (!now.migration) return now.partitions;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`it does not end: ${JSON.stringify((await signed(server, 'GET', `${base}/migration`)).json)} ${server.err}`);
}

async function done(server, path, body) {
  const answer = await post(server, path, body);
  assert.equal(answer.status, 202, answer.text);
  return settled(server);
}

// The library keeps the ranges it has read, and asks those that are gone again without end (4.4): whoever asks behind a migration is new.
function clientOf(t, server) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return client;
}

const fresh = (t, server) => clientOf(t, server).database('d').container('c');

async function started(t, args = [], definition = {}) {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', ...args]);
  const client = clientOf(t, server);
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
    // As objects: the library leaves out a value of 0 where it makes rows of several ranges distinct (4.4).
    assert.deepEqual((await run('SELECT DISTINCT c.n FROM c', o)).map(({ n }) => n).sort(), [0, 1, 2, 3, 4, 5, 6], what);
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
  await looks(fresh(t, server), 'spread');
  await verified(server);
  const stats = await orrery(['stats', 'd', 'c', '--endpoint', server.url, '--dev']);
  assert.match(stats.out, /SPREAD KEY .*\n\["hot"\] +\d+, \d+, \d+, \d+ +60 /);

  // A batch over parts is all or nothing.
  const upsert = (id, n) => ({ operationType: 'Upsert', resourceBody: { id, pk: 'hot', n, text: 'batch' } });
  const batch = await container.items.batch([upsert('i000', 0), upsert('i059', 3), upsert('i030', 2)], 'hot');
  assert.deepEqual(batch.result.map((one) => one.statusCode), [200, 200, 200]);
  const refused = await container.items.batch([upsert('i001', 6), { operationType: 'Create', resourceBody: { id: 'i058', pk: 'hot' } }], 'hot');
  assert.equal(refused.result[1].statusCode, 409);
  assert.equal((await container.item('i001', 'hot').read()).resource.n, 1);

  // A stored procedure writes to any part, and its queries see all of them as they were when it began.
  await container.scripts.storedProcedures.create({
    id: 'count',
    body: `function () { const c = getContext().getCollection(); c.createDocument(c.getSelfLink(), { id: 'i0305', pk: 'hot', n: 99 }, (err) => { if (err) throw err;
      c.queryDocuments(c.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', {}, (e, rows) => { if (e) throw e; c.queryDocuments(c.getSelfLink(), 'SELECT * FROM c WHERE c.id IN ("i000", "i059") ORDER BY c.id', {}, (f, found) => {
        if (f) throw f; c.replaceDocument(found[1]._self, { ...found[1], text: 'procedure' }, {}, (g) => { if (g) throw g; getContext().getResponse().setBody([rows[0], found.length]); }); }); }); }); }`,
  });
  assert.deepEqual((await container.scripts.storedProcedure('count').execute('hot', [])).resource, [60, 2]);
  assert.equal((await container.item('i059', 'hot').read()).resource.text, 'procedure');
  await container.item('i0305', 'hot').delete();

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
  await looks(fresh(t, server), 'gathered');
  assert.deepEqual((await signed(server, 'GET', base)).json.spread, []);
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

test('composite indexes order a spread key, page by page', async (t) => {
  const compositeIndexes = [[{ path: '/n', order: 'ascending' }, { path: '/id', order: 'descending' }]];
  const { server, container } = await started(t, [], { indexingPolicy: { compositeIndexes } });
  await fill(container);
  const wanted = many(60, 'hot').sort((a, b) => a.n - b.n || (a.id < b.id ? 1 : -1)).map(({ id }) => id);
  const ordered = async (what) => {
    const rows = async (order) =>
      (await fresh(t, server).items.query(`SELECT c.id FROM c ORDER BY ${order}`, { partitionKey: 'hot', maxItemCount: 7 }).fetchAll()).resources.map(({ id }) => id);
    assert.deepEqual(await rows('c.n ASC, c.id DESC'), wanted, what);
    assert.deepEqual(await rows('c.n DESC, c.id ASC'), [...wanted].reverse(), what);
  };
  await ordered('before');
  await done(server, 'spread', { partitionKey: ['hot'], parts: 4 });
  await ordered('spread');
  await verified(server);
  await done(server, 'gather', { partitionKey: ['hot'] });
  await ordered('gathered');
  await verified(server);
});

test('a key beside a spread one has to fit one partition still', async (t) => {
  const { server, container } = await started(t, ['--set', 'partition.bytes_max=64K', '--set', 'logical_partition.bytes_max=160K']);
  const item = (n, pk) => ({ id: `i${String(n).padStart(3, '0')}`, pk, text: 'x'.repeat(2000) });
  for (let n = 0; n < 10; n++) await container.items.create(item(n, 'hot'));
  await done(server, 'spread', { partitionKey: ['hot'], parts: 4 });
  for (let n = 10; n < 50; n++) await container.items.create(item(n, 'hot')); // more than one may have
  await assert.rejects(async () => {
    for (let n = 0; n < 50; n++) await container.items.create(item(n, 'other'));
  }, { code: 403 });
  assert.match((await post(server, 'gather', { partitionKey: ['hot'] })).text, /more than the \d+ a physical partition may have/);
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

test('what cannot be spread or gathered is said by name', async (t) => {
  const { server, client, container } = await started(t);
  const refused = async (path, body, status, text) => {
    const answer = await post(server, path, body);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, text);
  };
  await refused('spread', { partitionKey: ['none'] }, 404, /no item has the partition key/);
  await refused('spread?empty=true', { partitionKey: ['none'] }, 400, /too few items/);
  await refused('gather', { partitionKey: ['none'] }, 400, /not spread/);
  await container.items.create({ id: 'one', pk: 'hot' });
  await refused('spread', { partitionKey: ['hot'] }, 400, /too few items/);
  await refused('gather', { partitionKey: ['hot'] }, 400, /not spread/);
  for (const parts of [0, 1, 63, 2.5, '2']) await refused('spread', { partitionKey: ['hot'], parts }, 400, /parts must be a whole number from 2 to 62/);
  await refused('spread', { partitionKey: ['hot'], part: 2 }, 400, /part/);
  await refused('spread', { parts: 2 }, 400, /partitionKey/);
  await container.item('one', 'hot').delete();
  await refused('spread', { partitionKey: ['hot'] }, 404, /no item has/);
  for (const item of many(10, 'hot')) await container.items.create(item);

  // Two items, with ids of which one begins the other.
  await container.items.create({ id: 'a', pk: 'two' });
  await container.items.create({ id: 'ab', pk: 'two' });
  await refused('spread', { partitionKey: ['two'], parts: 3 }, 400, /too few items/);
  await done(server, 'spread', { partitionKey: ['two'] });
  await container.items.create({ id: 'a!', pk: 'two' });
  await container.items.create({ id: 'aa', pk: 'two' });
  assert.deepEqual(ids((await fresh(t, server).items.query('SELECT c.id FROM c', { partitionKey: 'two' }).fetchAll()).resources), ['a', 'a!', 'aa', 'ab']);
  for (const id of ['a', 'a!', 'aa', 'ab']) await container.item(id, 'two').delete();
  await verified(server);
  await done(server, 'gather', { partitionKey: ['two'] }); // without any items left

  // By the command, and only tried out.
  const command = (...args) => orrery(['partition', ...args, '--endpoint', server.url, '--dev']);
  assert.match((await command('spread', 'd', 'c', 'hot', '--parts', '1')).err, /--parts takes a whole number from 2 to 62/);
  assert.match((await command('gather', 'd', 'c', 'hot', '--parts', '2')).err, /--parts is for spread/);
  const tried = await command('spread', 'd', 'c', 'hot', '--parts', '3', '--dry-run');
  assert.equal(tried.code, 0, tried.err);
  assert.equal((await signed(server, 'GET', `${base}/partitions`)).json.partitions.filter(({ cut }) => cut === 'spread').length, 0);
  assert.equal((await command('spread', 'd', 'c', 'hot', '--parts', '3')).code, 0);
  await refused('spread', { partitionKey: ['hot'] }, 400, /spread over 3 parts already: gather it first/);
  const gather = await command('gather', 'd', 'c', 'hot', '--dry-run');
  assert.equal(gather.code, 0, gather.err);

  // While it is spread.
  await refused('copy', { to: 'other' }, 501, /gather the key first/);
  await refused('isolate', { partitionKey: ['hot'] }, 501, /gather the key first/);
  const rekey = await signed(server, 'POST', `${base}/rekey`, { headers: json, body: { partitionKey: { paths: ['/id'], kind: 'Hash' } } });
  assert.equal(rekey.status, 501, rekey.text);
  await assert.rejects(client.database('d').containers.create({
    id: 'v', partitionKey: { paths: ['/n'] }, materializedViewDefinition: { sourceCollectionId: 'c', definition: 'SELECT c.id, c.n FROM c' } }), /is spread, so it cannot have views/);

  // Another key beside it is split off, moved about and spread as ever.
  await done(server, 'isolate?empty=true', { partitionKey: ['a'] });
  for (const item of many(10, 'a')) await container.items.create(item);
  await done(server, 'spread', { partitionKey: ['a'], parts: 2 });
  const { spread } = (await signed(server, 'GET', base)).json;
  assert.deepEqual(spread.map(({ partitionKey, partitions, items }) => [partitionKey[0], partitions.length, items]).sort(), [['a', 2, 10], ['hot', 3, 10]]);
  await verified(server);
});

test('a key with throughput of its own is not spread, nor given some while it is', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms']);
  const client = clientOf(t, server);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 4000 });
  for (const item of many(10, 'hot')) await container.items.create(item);
  const throughput = (...args) => orrery(['throughput', ...args, '--endpoint', server.url, '--dev']);
  const reserved = await throughput('reserve', 'd', 'c', 'hot', '100');
  assert.equal(reserved.code, 0, reserved.err);
  const refused = await post(server, 'spread', { partitionKey: ['hot'] });
  assert.equal(refused.status, 501, refused.text);
  assert.match(refused.text, /throughput of its own/);
  assert.equal((await throughput('reserve', 'd', 'c', 'hot', '0')).code, 0);
  await done(server, 'spread', { partitionKey: ['hot'] });
  assert.match((await throughput('reserve', 'd', 'c', 'hot', '100')).err, /throughput reserved for that key/);
});

test('clients write while a key is spread and gathered again and again, and the server is killed', async (t) => {
  const directory = join(scratch(t), 'data');
  const args = ['--node', `local=rocksdb:${directory}`, '--set', 'throughput.ru_default=100000', '--set', 'partition.ru_max=100000'];
  let { server, container } = await started(t, args);
  for (const item of many(200, 'hot')) await container.items.create(item);
  const last = new Map(all.slice(0, 40).map((id) => [id, 0])), unknown = new Map();
  const ids40 = [...last.keys()];
  let feed = (await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning('hot') })).token;
  const told = new Map();
  for (let round = 0; round < 6; round++) {
    const kill = round % 2 === 1;
    let over = false;
    const writers = [0, 1, 2].map(async (lane) => {
      for (let n = 0; !over; n++) {
        // Items of all parts in one batch, the same number in each.
        const own = ids40.filter((_, i) => i % 3 === lane), number = (round + 1) * 100000 + n;
        for (const id of own) unknown.set(id, number);
        const body = own.map((id) => ({ operationType: 'Upsert', resourceBody: { id, pk: 'hot', number } }));
        const batch = await container.items.batch(body, 'hot').catch(() => null);
        if (!batch) return;
        if (batch.result.every(({ statusCode }) => statusCode === 200)) for (const id of own) last.set(id, number);
      }
    });
    const verb = (await signed(server, 'GET', base)).json.spread.length ? 'gather' : 'spread';
    const asked = await post(server, verb, { partitionKey: ['hot'], ...(verb === 'spread' ? { parts: 2 + (round % 3) } : {}) });
    assert.equal(asked.status, 202, asked.text);
    if (kill) {
      await new Promise((resolve) => setTimeout(resolve, round * 15));
      await server.stop('SIGKILL');
      over = true;
      await Promise.all(writers);
      ({ server, container } = await started(t, args));
    }
    await settled(server);
    over = true;
    await Promise.all(writers);
    container = fresh(t, server);
    const seen = (await container.items.query('SELECT c.id, c.number FROM c WHERE IS_DEFINED(c.number)', { partitionKey: 'hot' }).fetchAll()).resources;
    const numbers = [0, 1, 2].map((lane) => new Set(seen.filter(({ id }) => ids40.indexOf(id) % 3 === lane).map(({ number }) => number)));
    for (const set of numbers) assert.ok(set.size <= 1, `a batch is whole: ${[...set]}`);
    for (const { id, number } of seen) assert.ok(number === last.get(id) || number === unknown.get(id), `${id}: ${number}, ${last.get(id)}, ${unknown.get(id)}`);
    const { seen: changed, token } = await changes(container, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(feed) });
    feed = token;
    for (const { id, number } of changed) {
      assert.ok(number === undefined || number >= (told.get(id) ?? 0), 'the feed is ordered per item');
      told.set(id, number ?? 0);
    }
    for (const { id, number } of seen) assert.equal(told.get(id), number, 'the feed tells the last version');
    await verified(server);
  }
});

test('a container is dropped while a key of it is spread, and a spread is taken back', async (t) => {
  const { server, container } = await started(t);
  for (const item of many(60, 'hot')) await container.items.create(item);
  const held = (verb) => orrery(['partition', verb, '--endpoint', server.url, '--dev']);
  assert.equal((await held('pause')).code, 0);
  const asked = await post(server, 'spread', { partitionKey: ['hot'], parts: 3 });
  assert.equal(asked.status, 202, asked.text);
  assert.equal((await post(server, 'gather', { partitionKey: ['hot'] })).status, 400);
  const views = await signed(server, 'GET', `${base}/partitions`);
  assert.equal(views.json.migration.kind, 'spread');
  assert.equal((await signed(server, 'DELETE', `${base}/migration`)).status, 204);
  assert.equal((await held('resume')).code, 0);
  assert.equal((await settled(server)).length, 1);
  await verified(server);
  assert.equal((await held('pause')).code, 0);
  assert.equal((await post(server, 'spread', { partitionKey: ['hot'], parts: 3 })).status, 202);
  await container.delete();
  assert.equal((await held('resume')).code, 0);
  await verified(server);
  await clientOf(t, server).database('d').containers.create({ id: 'c', partitionKey: '/pk' });
  await fill(fresh(t, server));
  await looks(fresh(t, server), 'made anew');
});

test('a backup of a container with a spread key is restored as it was', async (t) => {
  const folder = scratch(t);
  const { server, container } = await started(t, ['--node', `local=rocksdb:${folder}/data`], { changeFeedPolicy: { retentionDuration: 60 } });
  await fill(container);
  const spread = await done(server, 'spread', { partitionKey: ['hot'], parts: 4 });
  await container.item('i007', 'hot').delete();
  await container.items.create(many(8, 'hot')[7]);
  const good = async (...args) => {
    const result = await orrery(args);
    assert.equal(result.code, 0, `${args}: ${result.err}${result.out}`);
    return result;
  };
  await good('backup', `${folder}/backups`, '--endpoint', server.url, '--dev');
  await good('restore', `${folder}/backups`, `${folder}/restored`);
  await good('check', `${folder}/restored`);
  const again = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', '--node', `local=rocksdb:${folder}/restored`]);
  await looks(fresh(t, again), 'restored');
  assert.equal((await signed(again, 'GET', base)).json.spread[0].partitions.length, 4);
  await done(again, 'gather', { partitionKey: ['hot'] });
  await looks(fresh(t, again), 'restored and gathered');
  await verified(again);
  assert.equal(spread.filter((one) => one.cut === 'spread').length, 3);
});

test('transactions over nodes and over the parts of a key are whole', async (t) => {
  const folder = scratch(t);
  const nodes = ['--node', `local=rocksdb:${folder}/a`, '--node', `other=rocksdb:${folder}/b`, '--set', 'partition.ru_max=50000'];
  let server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', ...nodes]);
  const { database } = await clientOf(t, server).databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 100000 });
  const { partitions } = (await signed(server, 'GET', `${base}/partitions`)).json;
  assert.equal(new Set(partitions.map(({ node }) => node)).size, 2);
  for (const pk of ['k0', 'k1', 'k2', 'k3', 'k4', 'k5']) for (const item of many(6, pk)) await container.items.create(item);
  for (const pk of ['k0', 'k1', 'k2', 'k3', 'k4', 'k5']) await done(server, 'spread', { partitionKey: [pk], parts: 3 });
  const run = (operations) => signed(server, 'POST', '/_orrery/transactions', { headers: json, body: { database: 'd', operations } });
  const keys = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5'];
  const put = (number) => keys.flatMap((pk) => ['i000', 'i005', `new${number}`].map((id) => ({ do: 'upsert', container: 'c', item: { id, pk, number } })));
  for (let n = 1; n <= 20; n++) {
    let answer;
    do answer = await run(put(n)); while (answer.status === 429 || answer.status === 409);
    assert.equal(answer.status, 200, answer.text);
  }
  const refused = await run([...put(99), { do: 'create', container: 'c', item: { id: 'i001', pk: 'k3' } }]);
  assert.equal(refused.status, 409, refused.text);
  const count = async (pk) => (await fresh(t, server).items.query('SELECT VALUE COUNT(1) FROM c', { partitionKey: pk }).fetchAll()).resources[0];
  for (const pk of keys) {
    assert.equal(await count(pk), 26);
    for (const id of ['i000', 'i005', 'new20']) assert.equal((await container.item(id, pk).read()).resource.number, 20);
  }
  await verified(server);
  // Some are under way when the server is killed.
  const under = Array.from({ length: 4 }, (_, i) => run(put(100 + i)).catch(() => null));
  await new Promise((resolve) => setTimeout(resolve, 8));
  await server.stop('SIGKILL');
  await Promise.all(under);
  server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', ...nodes]);
  await server.until(async () => (await signed(server, 'GET', '/_orrery/transactions')).json.transactions.length === 0);
  const looked = fresh(t, server);
  const found = new Set();
  for (const pk of keys) for (const id of ['i000', 'i005']) found.add((await looked.item(id, pk).read()).resource.number);
  assert.equal(found.size, 1, [...found].join());
  for (const pk of keys) await done(server, 'gather', { partitionKey: [pk] });
  await verified(server);
});

test('MongoDB reads and writes a collection with a spread key, also in transactions', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms']);
  const client = await mongoClient(t, server.mongo);
  await client.db('admin').command({ shardCollection: 'd.c', key: { pk: 1 } });
  const c = client.db('d').collection('c');
  await c.insertMany(Array.from({ length: 40 }, (_, n) => ({ _id: n, pk: 'hot', n: n % 5 })));
  await c.insertMany(Array.from({ length: 5 }, (_, n) => ({ _id: `s${n}`, pk: 'b', n })));
  const asked = async (verb, body) => {
    const answer = await post(server, verb, { partitionKey: ['hot'], ...body });
    assert.equal(answer.status, 202, answer.text);
    return settled(server);
  };
  const check = async (what, count = 40) => {
    assert.equal(await c.countDocuments({ pk: 'hot' }), count, what);
    assert.deepEqual((await c.find({ pk: 'hot', _id: 33 }).toArray()).map(({ n }) => n), [3], what);
    assert.deepEqual((await c.find({ pk: 'hot' }).sort({ n: 1, _id: 1 }).toArray()).map(({ _id }) => _id % 5), Array.from({ length: count }, (_, i) => Math.floor(i / (count / 5))), what);
    assert.deepEqual((await c.aggregate([{ $match: { pk: 'hot' } }, { $group: { _id: '$n', count: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray()).map((row) => row.count), Array(5).fill(count / 5), what);
    assert.equal(await c.countDocuments({}), count + 5, what);
    assert.deepEqual((await c.distinct('n')).sort(), [0, 1, 2, 3, 4], what);
  };
  await check('before');
  await asked('spread', { parts: 3 });
  await check('spread');
  await assert.rejects(c.insertOne({ _id: 17, pk: 'hot' }), { code: 11000 });
  assert.equal((await c.updateMany({ pk: 'hot', n: 2 }, { $set: { seen: true } })).modifiedCount, 8);
  const session = client.startSession();
  await session.withTransaction(async () => {
    await c.updateOne({ pk: 'hot', _id: 0 }, { $set: { t: 1 } }, { session });
    await c.updateOne({ pk: 'hot', _id: 39 }, { $set: { t: 1 } }, { session });
    await c.insertOne({ _id: 100, pk: 'hot', n: 0, t: 1 }, { session });
    assert.equal((await c.find({ pk: 'hot', t: 1 }, { session }).toArray()).length, 3);
    assert.equal(await c.countDocuments({ pk: 'hot' }, { session }), 41);
    await c.deleteOne({ pk: 'hot', _id: 100 }, { session });
  });
  session.startTransaction();
  await c.updateMany({ pk: 'hot' }, { $set: { gone: true } }, { session });
  await session.abortTransaction();
  await session.endSession();
  assert.equal(await c.countDocuments({ pk: 'hot', gone: true }), 0);
  assert.equal(await c.countDocuments({ pk: 'hot', t: 1 }), 2);
  await assert.rejects(c.createIndex({ n: 1 }), /is spread, so it cannot have/);
  const chunks = await client.db('config').collection('chunks').find().toArray();
  assert.ok(chunks.length >= 1);
  await verified(server);
  await asked('gather', {});
  await check('gathered');
  await verified(server);
});

test('a table with a spread partition, and a graph that is refused', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms']);
  await signed(server, 'POST', '/dbs', { body: { id: 'TablesDB' } });
  const made = await signed(server, 'POST', '/dbs/TablesDB/colls', { body: { id: 'people', partitionKey: { paths: ['/PartitionKey'], kind: 'Hash', version: 2 } } });
  assert.equal(made.status, 201, made.text);
  const table = tableClient(server, 'people');
  for (let n = 0; n < 30; n++) await table.createEntity({ partitionKey: 'hot', rowKey: `r${String(n).padStart(2, '0')}`, n });
  const at = '/_orrery/containers/TablesDB/people';
  const asked = async (verb, body = {}) => {
    const answer = await signed(server, 'POST', `${at}/${verb}`, { headers: json, body: { partitionKey: ['hot'], ...body } });
    assert.equal(answer.status, 202, answer.text);
    await server.until(async () => !(await signed(server, 'GET', `${at}/partitions`)).json.migration);
  };
  const rows = async (filter) => (await entities(table.listEntities(filter ? { queryOptions: { filter } } : {}))).map(({ rowKey }) => rowKey);
  await asked('spread', { parts: 3 });
  assert.equal((await rows()).length, 30);
  assert.deepEqual(await rows("PartitionKey eq 'hot' and RowKey ge 'r08' and RowKey lt 'r12'"), ['r08', 'r09', 'r10', 'r11']);
  await table.submitTransaction([['upsert', { partitionKey: 'hot', rowKey: 'r00', n: 100 }], ['upsert', { partitionKey: 'hot', rowKey: 'r29', n: 100 }], ['delete', { partitionKey: 'hot', rowKey: 'r15' }]]);
  await assert.rejects(table.submitTransaction([['upsert', { partitionKey: 'hot', rowKey: 'r01', n: 200 }], ['create', { partitionKey: 'hot', rowKey: 'r28' }]]));
  assert.deepEqual([(await table.getEntity('hot', 'r00')).n, (await table.getEntity('hot', 'r29')).n, (await table.getEntity('hot', 'r01')).n], [100, 100, 1]);
  assert.equal((await rows()).length, 29);
  await asked('gather');
  assert.equal((await rows()).length, 29);

  // One that the Table API has made: its order over partitions is a composite index.
  const own = tableClient(server, 'own');
  await own.createTable();
  for (const partitionKey of ['a', 'hot', 'z']) for (let n = 0; n < 5; n++) await own.createEntity({ partitionKey, rowKey: `r${n}` });
  const inOrder = async () => (await entities(own.listEntities())).map(({ partitionKey, rowKey }) => partitionKey + rowKey);
  const before = await inOrder();
  assert.deepEqual(before, [...before].sort());
  for (const verb of ['spread', 'gather']) {
    const answer = await signed(server, 'POST', `/_orrery/containers/TablesDB/own/${verb}`, { headers: json, body: { partitionKey: ['hot'] } });
    assert.equal(answer.status, 202, answer.text);
    await server.until(async () => !(await signed(server, 'GET', '/_orrery/containers/TablesDB/own/partitions')).json.migration);
    assert.deepEqual(await inOrder(), before, verb);
  }

  await container(server, 'graphs', 'g');
  const traversals = await gremlinClient(t, server, '3.7', { authenticator: authenticator('3.7') });
  for (let n = 0; n < 10; n++) await traversals.submit(`g.addV('person').property('id', 'v${n}').property('pk', 'hot')`);
  const spread = await signed(server, 'POST', '/_orrery/containers/graphs/g/spread', { headers: json, body: { partitionKey: ['hot'] } });
  assert.equal(spread.status, 202, spread.text);
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/containers/graphs/g/partitions')).json.migration);
  await assert.rejects(traversals.submit('g.V().count()'), /spread over several partitions/);
  assert.equal((await signed(server, 'POST', '/_orrery/containers/graphs/g/gather', { headers: json, body: { partitionKey: ['hot'] } })).status, 202);
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/containers/graphs/g/partitions')).json.migration);
  assert.deepEqual((await traversals.submit('g.V().count()')).toArray(), [10]);
  await verified(server);
});

test('a sum over all parts is of one moment, whatever is written meanwhile', async (t) => {
  const { server, container } = await started(t, ['--set', 'partition.ru_max=1000000'], { throughput: 400000 });
  const items = Array.from({ length: 2400 }, (_, n) => ({ id: `i${String(n).padStart(4, '0')}`, pk: 'hot', n: 100 }));
  const create = (resourceBody) => ({ operationType: 'Create', resourceBody });
  for (let at = 0; at < items.length; at += 100) await container.items.batch(items.slice(at, at + 100).map(create), 'hot');
  await done(server, 'spread', { partitionKey: ['hot'], parts: 4 });
  let stopping = false;
  // What one item gives another one of another part gets, in one batch.
  const giver = (async () => {
    for (let round = 0; !stopping; round++) {
      const [from, to] = [items[(round * 7) % 1200], items[1200 + ((round * 11) % 1200)]];
      const { result } = await container.items.batch([[from, -1], [to, 1]].map(([{ id }, value]) => (
        { operationType: 'Patch', id, resourceBody: { operations: [{ op: 'incr', path: '/n', value }] } })), 'hot');
      for (const { statusCode } of result) assert.equal(statusCode, 200);
    }
  })();
  t.after(() => { stopping = true; return giver; });
  const sum = async (query) => (await container.items.query(query, { partitionKey: 'hot' }).fetchAll()).resources[0];
  for (let round = 0; round < 40; round++) {
    assert.equal(await sum('SELECT VALUE SUM(c.n) FROM c'), 240_000);
    assert.equal(await sum('SELECT VALUE SUM(c.n) FROM c WHERE c.n >= 0 OR c.n < 0'), 240_000);
  }
  stopping = true;
  await giver;
  await verified(server);
});

test('bounds within a key are given back by whoever was told them, of containers by hash, range and lookup', async (t) => {
  for (const definition of [{}, { orrery: { strategy: 'range' } }, { orrery: { strategy: { kind: 'lookup', shards: 4, default: 'hash' } } }]) {
    const { server, container } = await started(t, [], definition);
    for (const item of [...many(30, 'hot'), ...many(5, 'a'), ...many(5, 'z')]) await container.items.create(item);
    await done(server, 'spread', { partitionKey: ['hot'], parts: 3 });
    const { json: { PartitionKeyRanges: ranges } } = await signed(server, 'GET', '/dbs/d/colls/c/pkranges');
    assert.ok(ranges.length >= 3, JSON.stringify(ranges));
    const seen = [];
    for (const { minInclusive, maxExclusive } of ranges) {
      const answer = await signed(server, 'GET', '/dbs/d/colls/c/docs', { headers: {
        'x-ms-start-epk': minInclusive, 'x-ms-end-epk': maxExclusive, 'x-ms-read-key-type': 'EffectivePartitionKeyRange' } });
      assert.equal(answer.status, 200, `${JSON.stringify(definition)} ${answer.text}`);
      seen.push(...answer.json.Documents.map(({ pk, id }) => pk + id));
    }
    assert.equal(seen.length, 40);
    assert.equal(new Set(seen).size, 40);
    await server.stop();
  }
});

test('a node with parts of a key says that they keep it from being drained', async (t) => {
  const directory = scratch(t);
  const { server, container } = await started(t, ['--node', `one=rocksdb:${join(directory, 'one')}`, '--node', `two=rocksdb:${join(directory, 'two')}`]);
  await fill(container);
  const [{ node }] = await done(server, 'spread', { partitionKey: ['hot'], parts: 2 });
  const command = (...args) => orrery([...args, '--endpoint', server.url, '--dev']);
  const drain = command('node', 'drain', node); // waits
  const problems = async () => (await signed(server, 'GET', '/_orrery/rebalance')).json.problems.map(({ problem }) => problem);
  await server.until(async () => (await problems()).some((problem) => /part of a key that is spread/.test(problem)));
  await server.until(async () => (await settled(server)).filter((one) => one.node === node).length === 2); // all others have gone
  await done(server, 'gather', { partitionKey: ['hot'] });
  await server.until(async () => (await settled(server)).every((one) => one.node !== node));
  assert.equal((await drain).code, 0);
  assert.deepEqual(await problems(), []);
  await verified(server);
});
