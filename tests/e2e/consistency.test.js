// Consistency levels against a node whose PostgreSQL server has a standby.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { ReadPreference } from 'mongodb';
import { authenticator, client as gremlinClient, container, v2 } from './gremlin.js';
import { mongoClient } from './mongo.js';
import { all, refusal, tableClient } from './tables.js';
import { Server, emulatorKey, orrery } from './server.js';
import { Postgres, urlOf } from './postgres.js';
import { signed } from './rest.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what) {
  for (;;) {
    const result = await what();
    if (result) return result;
    await pause(20);
  }
}

// A primary, its standby that commits wait for, and a server over both, which has patience with a standby that is slow
// because the machine is busy.
const patient = { 'nodes.suspect_ms': '60s', 'nodes.answer_ms': '60s', 'nodes.hang_ms': '600s' };
async function pair(t, settings = {}, args = []) {
  const primary = await Postgres.start(t);
  const standby = await Postgres.standby(t, primary, 's1');
  await primary.synchronous('s1');
  const set = { 'account.consistency': 'Strong', 'nodes.beat_ms': '50ms', 'nodes.failover_ms': '60s', ...patient, ...settings };
  const server = await Server.start(t, ['--dev', '--node', `a=${urlOf(primary, standby)}`, ...args,
    ...Object.entries(set).flatMap(([name, value]) => ['--set', `${name}=${value}`])]);
  return { primary, standby, server };
}

// What the standby shows stays as it is, though it takes and keeps what comes.
async function freeze(standby) {
  standby.query('SELECT pg_wal_replay_pause()');
  await until(() => standby.query('SELECT pg_get_wal_replay_pause_state()') === 'paused');
}

const thaw = (standby) => standby.query('SELECT pg_wal_replay_resume()');

function clientOf(t, server, consistencyLevel) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, consistencyLevel });
  t.after(() => client.dispose());
  return client.database('d').container('c');
}

async function containerOf(t, server) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'd' });
  return (await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk' })).container;
}

const served = (response) => response.headers['x-orrery-served-by'];

async function read(container) {
  const response = await container.item('1', 'p').read();
  const from = /^a(\/standby\d)?;level=(\w+)(?:;age=(\d+))?$/.exec(served(response));
  assert.ok(from, served(response));
  return { v: response.resource?.v, standby: !!from[1], level: from[2], age: Number(from[3]), response };
}

test('each level shows what it promises while a standby does not replay', async (t) => {
  const { standby, server } = await pair(t, { 'account.staleness_ms': '3s', 'account.staleness_operations': 1000 });
  const strong = await containerOf(t, server);
  const bounded = clientOf(t, server, 'BoundedStaleness');
  const session = clientOf(t, server, 'Session');
  const stranger = clientOf(t, server, 'Session');
  const prefix = clientOf(t, server, 'ConsistentPrefix');
  const eventual = clientOf(t, server, 'Eventual');
  await session.items.create({ id: '1', pk: 'p', v: 1 });
  for (const container of [eventual, prefix, bounded, session, stranger])
    await until(async () => { const seen = await read(container); assert.equal(seen.v, 1); return seen.standby; });

  await freeze(standby);
  await session.item('1', 'p').replace({ id: '1', pk: 'p', v: 2 });
  for (const [container, level] of [[eventual, 'Eventual'], [prefix, 'ConsistentPrefix'], [stranger, 'Session']]) {
    const { v, standby, level: given } = await read(container);
    assert.deepEqual({ v, standby, given }, { v: 1, standby: true, given: level }, 'an older state, whole');
  }
  for (let i = 0; i < 20; i++) {
    const { v, standby, level } = await read(session);
    assert.deepEqual({ v, standby, level }, { v: 2, standby: false, level: 'Strong' }, 'its own write');
  }
  assert.deepEqual(await read(strong).then(({ v, level }) => ({ v, level })), { v: 2, level: 'Strong' });
  // Bounded: from the standby while that is young enough, never later.
  await until(async () => {
    const { v, standby, age } = await read(bounded);
    assert.ok(standby ? v === 1 && age <= 3000 : v === 2, `${v} ${standby} ${age}`);
    return !standby;
  });
  // A query, a feed and a change feed are the same.
  const query = async (container) => (await container.items.query('SELECT VALUE c.v FROM c WHERE c.pk = "p"').fetchAll()).resources;
  assert.deepEqual([await query(eventual), await query(session), await query(bounded), await query(strong)], [[1], [2], [2], [2]]);
  const everything = async (container) => (await container.items.readAll().fetchAll()).resources.map(({ v }) => v);
  assert.deepEqual([await everything(prefix), await everything(session), await everything(strong)], [[1], [2], [2]]);
  // A session that has read from the standby knows only what it has seen there.
  const { resource } = await stranger.item('1', 'p').read();
  assert.equal(resource.v, 1);

  thaw(standby);
  await until(async () => { const seen = await read(session); assert.equal(seen.v, 2); return seen.standby; });
  await until(async () => (await read(bounded)).standby);
});

test('bounded staleness counts commits, too', async (t) => {
  const { standby, server } = await pair(t, { 'account.staleness_ms': '1h', 'account.staleness_operations': 2 });
  await containerOf(t, server);
  const bounded = clientOf(t, server, 'BoundedStaleness');
  await bounded.items.create({ id: '1', pk: 'p', v: 0 });
  await until(async () => (await read(bounded)).standby);
  await freeze(standby);
  for (let v = 1; v <= 5; v++) {
    await bounded.item('1', 'p').replace({ id: '1', pk: 'p', v });
    const seen = await read(bounded);
    assert.ok(v - seen.v <= 2 && (seen.standby || seen.v === v), `${v} ${seen.v} ${seen.standby}`);
    assert.equal(seen.standby, v <= 2);
  }
});

test('the account says its level, and a request may only weaken it', async (t) => {
  const { server } = await pair(t, {
    'account.consistency': 'BoundedStaleness', 'account.staleness_ms': '7s', 'account.staleness_operations': 20 });
  await containerOf(t, server);
  const account = await signed(server, 'GET', '/');
  assert.deepEqual(account.json.userConsistencyPolicy,
    { defaultConsistencyLevel: 'BoundedStaleness', maxStalenessPrefix: 20, maxIntervalInSeconds: 7 });
  const container = clientOf(t, server);
  await container.items.create({ id: '1', pk: 'p', v: 1 });
  await until(async () => (await read(container)).standby);
  const get = (level) => signed(server, 'GET', '/dbs/d/colls/c/docs/1', { headers: {
    'x-ms-documentdb-partitionkey': '["p"]', 'x-ms-consistency-level': level } });
  assert.equal((await get('Eventual')).status, 200);
  const refused = await get('Strong');
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /stronger than the account's, which is BoundedStaleness/);
  assert.equal((await get('Sometimes')).status, 400);
});

test('a session token of a range that nobody has given out is not passed over', async (t) => {
  const { server } = await pair(t);
  const container = await containerOf(t, server);
  await container.items.create({ id: '1', pk: 'p', v: 1 });
  const get = (token) => signed(server, 'GET', '/dbs/d/colls/c/docs/1', { headers: {
    'x-ms-documentdb-partitionkey': '["p"]', 'x-ms-session-token': token } });
  const own = (await get('')).headers['x-ms-session-token'];
  assert.equal((await get(own)).status, 200);
  const [range, lsn] = [Number(own.split(':')[0]), Number(own.split('#')[1])];
  const unknown = await get(`${range + 1000000}:-1#1`);
  assert.deepEqual([unknown.status, unknown.headers['x-ms-substatus']], [404, '1002']);
  const ahead = await get(`${range}:-1#${lsn + 1000}`);
  assert.deepEqual([ahead.status, ahead.headers['x-ms-substatus']], [404, '1002']);
});

test('a standby that hangs or dies slows nobody, and reads go on while there is no primary', async (t) => {
  const { primary, standby, server } = await pair(t, { 'account.consistency': 'Eventual', 'nodes.failover_ms': '0ms',
    'nodes.suspect_ms': '100ms', 'nodes.answer_ms': '80ms', 'nodes.hang_ms': '1s' });
  // Nobody is waited for long here, and on a busy machine whoever answers may be too slow too: 503, or 408 of a write. Then it is asked again.
  const patiently = (what) => until(() => what().catch((error) => { assert.ok([503, 408].includes(error.code), error.message); }));
  const container = await patiently(() => containerOf(t, server));
  const write = (v) => patiently(() => container.items.upsert({ id: '1', pk: 'p', v }));
  const seen = () => patiently(() => read(container));
  await write(1);
  await until(async () => (await seen()).standby);
  await primary.synchronous('');
  await standby.hang();
  await until(async () => { const { v, standby } = await seen(); assert.equal(v, 1); return !standby; });
  // It is passed over from now on: many reads are answered while it stands still.
  for (let i = 0; i < 200; i++) assert.equal((await seen()).v, 1);
  await write(2);
  standby.goOn();
  await until(async () => { const { v, standby } = await seen(); return standby && v === 2; });
  await primary.synchronous('s1');
  await until(async () => (await seen()).standby);
  await primary.stop('SIGKILL');
  for (let i = 0; i < 20; i++) {
    const { v, standby } = await seen();
    assert.deepEqual({ v, standby }, { v: 2, standby: true }, 'nobody waits for a primary');
  }
  standby.promote();
  await write(3);
  const after = await seen();
  assert.deepEqual([after.v, after.standby], [3, false]);
});

test('without standbys every level is strong, and says so', async (t) => {
  const server = await Server.start(t, ['--dev', '--node', 'a=memory:', '--set', 'account.consistency=Strong']);
  await containerOf(t, server);
  for (const level of ['Strong', 'BoundedStaleness', 'Session', 'ConsistentPrefix', 'Eventual']) {
    const container = clientOf(t, server, level);
    await container.items.upsert({ id: '1', pk: 'p', v: level });
    const seen = await read(container);
    assert.deepEqual([seen.v, seen.standby, seen.level], [level, false, 'Strong']);
  }
});

test('node list and figures show standbys and how old they are', async (t) => {
  const { standby, server } = await pair(t, { 'account.consistency': 'Eventual' });
  const container = await containerOf(t, server);
  await container.items.create({ id: '1', pk: 'p', v: 1 });
  await until(async () => (await read(container)).standby);
  const show = async () => (await signed(server, 'GET', '/_orrery/nodes/a')).json;
  const { standbys } = await until(async () => {
    const shown = await show();
    return shown.standbys.some(({ ageMs }) => ageMs >= 0) && shown;
  });
  assert.equal(standbys.length, 2, 'a place for each host');
  assert.deepEqual(standbys.map(({ state }) => state).sort(), ['down', 'serving']);
  const serving = standbys.find(({ state }) => state === 'serving');
  assert.ok(serving.ageMs >= 0 && serving.reads > 0, JSON.stringify(serving));
  await freeze(standby);
  await until(async () => (await show()).standbys.some(({ ageMs }) => ageMs > 500));
  const listed = await orrery(['node', 'list', '--endpoint', server.url, '--dev']);
  assert.match(listed.out, /^NODE.*STANDBYS/m);
  assert.match(listed.out, /^a .* 1 \(\d+ ms\)/m);
  const figures = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(figures, /^orrery_standby_reads_total\{node="a",standby="[^"]+"\} [1-9]/m);
  assert.match(figures, /^orrery_standby_age_seconds\{node="a",standby="[^"]+"\} \d/m);
  assert.match(figures, /^orrery_read_fallbacks_total\{node="a",reason="away"\} \d/m);
});

// How many partitions standbys have read, for APIs that do not say who answered.
async function readByStandbys(server) {
  const { standbys } = (await signed(server, 'GET', '/_orrery/nodes/a')).json;
  return standbys.reduce((sum, { reads }) => sum + reads, 0);
}

async function untilByStandby(server, what) {
  await until(async () => {
    const before = await readByStandbys(server);
    await what();
    return (await readByStandbys(server)) > before;
  });
}

test('MongoDB: a read preference lets a standby answer, and nothing else does', async (t) => {
  const { standby, server } = await pair(t);
  const client = await mongoClient(t, server.mongo);
  const things = client.db('d').collection('things');
  await things.insertOne({ _id: 1, v: 1 });
  const find = async (options) => (await things.findOne({ _id: 1 }, options))?.v;
  await untilByStandby(server, () => find({ readPreference: 'secondary' }));
  await freeze(standby);
  await things.updateOne({ _id: 1 }, { $set: { v: 2 } });
  assert.equal(await find(), 2);
  for (const readPreference of ['secondary', 'secondaryPreferred', 'nearest', new ReadPreference('secondary', [{}]),
    new ReadPreference('secondary', undefined, { maxStalenessSeconds: 90 })])
    assert.equal(await find({ readPreference }), 1, JSON.stringify(readPreference));
  assert.equal(await find({ readPreference: 'primaryPreferred' }), 2);
  assert.equal(await find({ readPreference: 'secondary', readConcern: 'majority' }), 1);
  assert.equal(await find({ readPreference: 'secondary', readConcern: 'linearizable' }), 2);
  const sum = async (options) => (await things.aggregate([{ $group: { _id: null, v: { $sum: '$v' } } }], options).toArray())[0].v;
  assert.deepEqual([await sum({ readPreference: 'secondary' }), await sum()], [1, 2]);
  assert.deepEqual(await things.distinct('v', {}, { readPreference: 'secondary' }), [1]);
  await things.aggregate([{ $out: 'copy' }], { readPreference: 'secondary' }).toArray();
  assert.equal((await client.db('d').collection('copy').findOne()).v, 2, 'what a command writes it reads from the primary');
  await client.withSession({ causalConsistency: true }, async (session) => {
    await things.updateOne({ _id: 1 }, { $set: { v: 3 } }, { session });
    assert.equal(await find({ session, readPreference: 'secondary' }), 3, 'a causal session sees its own write');
  });
  const refused = (preference) => client.db('d').command({ find: 'things', $readPreference: preference }).then(
    () => assert.fail('it was taken'), ({ code }) => code);
  assert.equal(await refused({ mode: 'sometimes' }), 9);
  assert.equal(await refused({ mode: 'secondary', tags: [{ dc: 'east' }] }), 133);
  assert.equal(await refused({ mode: 'secondary', maxStalenessSeconds: 10 }), 160);
});

test('Tables: a request may weaken the level of the account', async (t) => {
  const { standby, server } = await pair(t);
  const table = tableClient(server, 'people');
  await table.createTable();
  await table.createEntity({ partitionKey: 'p', rowKey: '1', v: 1 });
  const get = async (level) => {
    let from;
    const { v } = await table.getEntity('p', '1', {
      requestOptions: { customHeaders: level ? { 'x-ms-consistency-level': level } : {} },
      onResponse: ({ headers }) => (from = headers.get('x-orrery-served-by')) });
    return { v, standby: /^a\//.test(from) };
  };
  await until(async () => (await get('Eventual')).standby);
  await freeze(standby);
  await table.updateEntity({ partitionKey: 'p', rowKey: '1', v: 2 }, 'Merge');
  assert.deepEqual(await get('Eventual'), { v: 1, standby: true });
  assert.deepEqual(await get('ConsistentPrefix'), { v: 1, standby: true });
  assert.deepEqual(await get('Session'), { v: 2, standby: false }, 'there are no tokens to prove it by');
  assert.deepEqual(await get(), { v: 2, standby: false });
  const list = async (level) => (await all(table.listEntities({
    requestOptions: { customHeaders: level ? { 'x-ms-consistency-level': level } : {} } }))).map(({ v }) => v);
  assert.deepEqual([await list('Eventual'), await list()], [[1], [2]]);
  assert.equal((await refusal(get('Sometimes'))).status, 400);
});

test('Gremlin: a traversal that only reads may ask for a weaker level', async (t) => {
  const { standby, server } = await pair(t);
  await container(server, 'graphs', 'g');
  const g = await gremlinClient(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
  const count = async (options = '') => (await g.submit(`g${options}.V().count()`)).first();
  const add = (id) => g.submit(`g.addV('n').property('id','${id}').property('pk','p')`);
  const eventual = ".with('consistencyLevel', 'Eventual')";
  await add('1');
  await untilByStandby(server, () => count(eventual));
  await freeze(standby);
  await add('2');
  assert.deepEqual([await count(eventual), await count()], [1, 2]);
  const both = await g.submit(`g${eventual}.addV('n').property('id','3').property('pk','p').V().count()`);
  assert.equal(both.first(), 3, 'what writes reads from the primary');
  await assert.rejects(count(".with('consistencyLevel', 'Sometimes')"), /no such consistency level/);
});

test('a change feed is read from a standby without a gap, and waits where the standby is behind', async (t) => {
  const { standby, server } = await pair(t);
  const items = await containerOf(t, server);
  const changes = async (level, etag) => {
    const answer = await signed(server, 'GET', '/dbs/d/colls/c/docs', { headers: {
      'a-im': 'Incremental feed', 'x-ms-documentdb-partitionkey': '["p"]', 'x-ms-consistency-level': level,
      ...(etag ? { 'if-none-match': etag } : {}) } });
    return { status: answer.status, etag: answer.headers.etag, ids: answer.json?.Documents?.map(({ id }) => id) ?? [],
      standby: /^a\/standby/.test(answer.headers['x-orrery-served-by']) };
  };
  for (const id of ['1', '2', '3']) await items.items.create({ id, pk: 'p' });
  const first = await until(async () => { const seen = await changes('Eventual'); return seen.standby && seen.ids.length === 3 && seen; });
  assert.deepEqual(first.ids, ['1', '2', '3']);
  await freeze(standby);
  for (const id of ['4', '5', '6']) await items.items.create({ id, pk: 'p' });
  assert.deepEqual(await changes('Eventual', first.etag), { status: 304, etag: first.etag, ids: [], standby: true });
  const strong = await changes('Strong', first.etag);
  assert.deepEqual([strong.ids, strong.standby], [['4', '5', '6'], false]);
  assert.deepEqual(await changes('Eventual', strong.etag), { status: 304, etag: strong.etag, ids: [], standby: true },
    'a position ahead of the standby stays');
  thaw(standby);
  const seen = [];
  let etag = first.etag;
  await until(async () => {
    const page = await changes('Eventual', etag);
    seen.push(...page.ids);
    etag = page.etag;
    return seen.length >= 3;
  });
  assert.deepEqual(seen, ['4', '5', '6']);
});
