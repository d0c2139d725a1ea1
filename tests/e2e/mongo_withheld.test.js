// Collections that an open transaction has made: nobody else sees them, by whichever API, and a server that ends takes them along.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { mongoClient } from './mongo.js';
import { emulatorKey, scratch, Server } from './server.js';
import { signed } from './rest.js';

async function started(t, path) {
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${join(path, 'node')}`]);
  const client = await mongoClient(t, server.mongo);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  return { server, client, db: client.db('shop'), cosmos: cosmos.database('shop') };
}

const idsOf = async (database) => (await database.containers.readAll().fetchAll()).resources.map(({ id }) => id).sort();
const names = async (db) => (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();

// As the operator sees them.
async function listed(server) {
  const { json } = await signed(server, 'GET', '/_orrery/databases');
  return json.databases.find(({ id }) => id === 'shop').containers.map(({ id }) => id).sort();
}

// What the client has open is gone with its server. Left to itself it would look for that for as long as it may, to abort what it began.
async function killed({ server, client }) {
  server.process.kill('SIGKILL');
  await server.ended;
  client.s.activeSessions.clear();
  await client.close();
}

test('a collection of an open transaction is seen by no other client of any API before the commit', async (t) => {
  const { server, client, db, cosmos } = await started(t, scratch(t));
  await db.createCollection('there');
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  await db.collection('made').insertOne({ _id: 1 }, { session });
  assert.deepEqual(await names(db), ['there']);
  assert.deepEqual(await idsOf(cosmos), ['there']);
  assert.deepEqual(await listed(server), ['there']);
  await assert.rejects(cosmos.container('made').read(), { code: 404 });
  await assert.rejects(cosmos.container('made').item('1', undefined).read(), { code: 404 });
  await assert.rejects(cosmos.container('made').delete(), { code: 404 });
  await assert.rejects(cosmos.containers.create({ id: 'made', partitionKey: '/pk' }), { code: 409 });
  assert.equal(await db.collection('made').countDocuments({}, { session }), 1);
  await session.commitTransaction();
  assert.deepEqual(await idsOf(cosmos), ['made', 'there']);
  assert.deepEqual(await listed(server), ['made', 'there']);
  assert.deepEqual(await names(db), ['made', 'there']);

  session.startTransaction();
  await db.collection('again').insertOne({ _id: 1 }, { session });
  await session.abortTransaction();
  assert.deepEqual(await idsOf(cosmos), ['made', 'there']);
  await cosmos.containers.create({ id: 'again', partitionKey: '/pk' });
});

test('what a transaction made and did not commit is gone after a crash, what it committed is not', async (t) => {
  const path = scratch(t);
  const first = await started(t, path);
  await first.db.collection('there').insertOne({ _id: 1 });
  const open = first.client.startSession(), done = first.client.startSession();
  done.startTransaction();
  await first.db.collection('kept').insertOne({ _id: 1 }, { session: done });
  await first.db.createCollection('empty', { session: done });
  await done.commitTransaction();
  open.startTransaction();
  await first.db.collection('one').insertOne({ _id: 1 }, { session: open });
  await first.db.collection('two').insertOne({ _id: 1 }, { session: open });
  await first.db.collection('there').insertOne({ _id: 2 }, { session: open });
  await killed(first);

  const second = await started(t, path);
  assert.deepEqual(await names(second.db), ['empty', 'kept', 'there']);
  assert.deepEqual(await idsOf(second.cosmos), ['empty', 'kept', 'there']);
  assert.equal(await second.db.collection('there').countDocuments(), 1);
  assert.equal(await second.db.collection('kept').countDocuments(), 1);
  // the names are free
  await second.db.collection('one').insertOne({ _id: 7 });
  await second.cosmos.containers.create({ id: 'two', partitionKey: '/pk' });
  await killed(second);
  const third = await started(t, path);
  assert.deepEqual(await idsOf(third.cosmos), ['empty', 'kept', 'one', 'there', 'two']);
});

test('two collections of one transaction, killed at any moment around its commit, are both there or neither', async (t) => {
  const path = scratch(t);
  let both = 0, neither = 0;
  for (let round = 0; round < 6; round++) {
    const { server, client, db, cosmos } = await started(t, path);
    for (let earlier = 0; earlier < round; earlier++) {
      const there = (await names(db)).filter((name) => name.endsWith(`-${earlier}`));
      assert.ok(there.length === 0 || there.length === 2, `${there}`);
      if (there.length) for (const name of there) assert.equal(await db.collection(name).countDocuments(), 1, name);
      if (earlier === round - 1) there.length ? both++ : neither++;
    }
    assert.deepEqual(await names(db), await idsOf(cosmos).catch(() => []));
    const session = client.startSession();
    session.startTransaction();
    await db.collection(`a-${round}`).insertOne({ _id: 1 }, { session });
    await db.collection(`b-${round}`).insertOne({ _id: 1 }, { session });
    const commit = session.commitTransaction().then(() => true, () => false);
    if (round % 3 === 1) await commit;
    if (round % 3 === 2) await new Promise((resolve) => setTimeout(resolve, round));
    await killed({ server, client });
    await commit;
  }
  assert.ok(both + neither === 5 && both > 0);
});
