// Sessions of the MongoDB API: cluster time, cursors that end with their session, versions of the API, and faults that tests set.
import assert from 'node:assert/strict';
import test from 'node:test';
import { MongoServerError, Timestamp, UUID } from 'mongodb';
import { mongo, mongoClient, Wire } from './mongo.js';

const testing = ['--set', 'mongo.test_commands=true'];

test('replies carry a cluster time that never goes back', async (t) => {
  const { client, db } = await mongo(t);
  const first = await db.command({ ping: 1 });
  const second = await db.command({ insert: 'c', documents: [{ _id: 1 }] });
  const third = await db.command({ ping: 1 });
  assert.ok(first.$clusterTime.clusterTime instanceof Timestamp);
  assert.ok(second.operationTime.greaterThan(first.operationTime));
  assert.ok(third.operationTime.greaterThanOrEqual(second.operationTime));
  const session = client.startSession({ causalConsistency: true });
  await db.collection('c').insertOne({ _id: 2 }, { session });
  assert.deepEqual(await db.collection('c').findOne({ _id: 2 }, { session }), { _id: 2 });
  const future = new Timestamp({ t: third.operationTime.getHighBits() + 3600, i: 1 });
  await assert.rejects(db.command({ find: 'c', readConcern: { afterClusterTime: future } }), { code: 72 });
  await session.endSession();
});

test('cursors end with their session, and are no other session\'s', async (t) => {
  const { server, db } = await mongo(t);
  await db.collection('c').insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id })));
  const wire = await Wire.open(t, server);
  const ask = (document, database = db.databaseName) => wire.ask({ ...document, $db: database });
  const lsid = { id: new UUID() };
  const { cursor } = await ask({ find: 'c', batchSize: 2, lsid });
  assert.equal((await ask({ getMore: cursor.id, collection: 'c', lsid: { id: new UUID() } })).code, 13);
  assert.equal((await ask({ endSessions: [lsid] }, 'admin')).ok, 1);
  assert.equal((await ask({ getMore: cursor.id, collection: 'c', lsid })).code, 43);
  const started = await ask({ startSession: 1 }, 'admin');
  assert.equal(started.timeoutMinutes, 30);
  assert.equal((await ask({ refreshSessions: [started.id] }, 'admin')).ok, 1);
  for (const kill of [{ killAllSessions: [] }, { killSessions: [started.id] }, { killAllSessionsByPattern: [{ lsid: started.id }] }]) {
    const other = await ask({ find: 'c', batchSize: 2, lsid: started.id });
    assert.equal((await ask({ getMore: other.cursor.id, collection: 'c', batchSize: 2, lsid: started.id })).ok, 1);
    assert.equal((await ask(kill, 'admin')).ok, 1);
    assert.equal((await ask({ getMore: other.cursor.id, collection: 'c', lsid: started.id })).code, 43);
  }
  assert.equal((await ask({ endSessions: [{ id: 1 }] }, 'admin')).code, 207);
});

test('the versions of the API that are declared are checked', async (t) => {
  const { db } = await mongo(t);
  assert.equal((await db.command({ ping: 1, apiVersion: '1' })).ok, 1);
  await assert.rejects(db.command({ ping: 1, apiVersion: '2' }), { code: 322 });
  await assert.rejects(db.command({ ping: 1, apiStrict: true }), { code: 322 });
  await assert.rejects(db.command({ distinct: 'c', key: 'a', apiVersion: '1', apiStrict: true }), { code: 323 });
});

test('read concerns that are not known are refused', async (t) => {
  const { db } = await mongo(t);
  for (const level of ['local', 'available', 'majority', 'linearizable'])
    assert.equal((await db.command({ find: 'c', readConcern: { level } })).ok, 1);
  await assert.rejects(db.command({ find: 'c', readConcern: { level: 'perhaps' } }), { code: 9 });
  await assert.rejects(db.command({ find: 'c', readConcern: { level: 'local', atClusterTime: new Timestamp({ t: 1, i: 1 }) } }), { code: 72 });
});

test('without test commands there are no fail points', async (t) => {
  const { client } = await mongo(t);
  await assert.rejects(client.db('admin').command({ configureFailPoint: 'failCommand', mode: 'off' }), { code: 59 });
});

test('a fail point fails so many commands, with its code and labels', async (t) => {
  const { client, db } = await mongo(t, testing, { retryWrites: false, retryReads: false });
  const set = (mode, data) => client.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
  await set({ times: 2 }, { failCommands: ['insert'], errorCode: 8 });
  for (let i = 0; i < 2; i++) await assert.rejects(db.command({ insert: 'c', documents: [{ _id: 1 }] }), { code: 8, codeName: 'UnknownError' });
  await db.command({ insert: 'c', documents: [{ _id: 1 }] });
  await set({ skip: 1 }, { failCommands: ['find'], errorCode: 91, errorLabels: ['Own'] });
  await db.command({ find: 'c' });
  await assert.rejects(db.command({ find: 'c' }), (err) => err.code === 91 && err.hasErrorLabel('Own'));
  const off = await set('off');
  assert.equal(Number(off.count), 1);
  await db.command({ find: 'c' });
  await set('alwaysOn', { failCommands: ['insert'], errorCode: 8, namespace: `${db.databaseName}.other` });
  await db.command({ insert: 'c', documents: [{ _id: 3 }] });
  await assert.rejects(db.command({ insert: 'other', documents: [{}] }), { code: 8 });
  await set('off');
  await assert.rejects(set('alwaysOn', { failCommands: ['insert'], wish: 1 }), { code: 40415 });
  await assert.rejects(set('sometimes', { failCommands: ['insert'] }), { code: 2 });
});

test('a fail point closes connections, waits, and tells of a write concern', async (t) => {
  const { server, client, db } = await mongo(t, testing, { retryWrites: false, retryReads: false });
  const set = (mode, data) => client.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
  await set({ times: 1 }, { failCommands: ['ping'], closeConnection: true });
  await assert.rejects(db.command({ ping: 1 }), (err) => !(err instanceof MongoServerError));
  await db.command({ ping: 1 });
  await set({ times: 1 }, { failCommands: ['insert'], writeConcernError: { code: 91, errmsg: 'slow', errorLabels: ['RetryableWriteError'] } });
  const reply = await db.command({ insert: 'c', documents: [{ _id: 1 }] }).catch((err) => err.result ?? err.errorResponse);
  assert.equal(reply.writeConcernError.code, 91);
  assert.deepEqual(reply.errorLabels, ['RetryableWriteError']);
  assert.deepEqual(await db.collection('c').find().toArray(), [{ _id: 1 }]);
  const named = await mongoClient(t, server.mongo, { appName: 'tested', retryReads: false });
  await set('alwaysOn', { failCommands: ['find'], blockConnection: true, blockTimeMS: 300, errorCode: 50, appName: 'tested' });
  const begun = performance.now();
  await assert.rejects(named.db('d').command({ find: 'c' }), { code: 50 });
  assert.ok(performance.now() - begun >= 290);
  await db.command({ find: 'c' });
  await set('off');
});

test('retryable codes are labelled where a write can be sent again', async (t) => {
  const { client, db } = await mongo(t, testing);
  await client.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data: { failCommands: ['insert'], errorCode: 91 } });
  await db.collection('c').insertOne({ _id: 1 }); // by the second attempt
  assert.deepEqual(await db.collection('c').find().toArray(), [{ _id: 1 }]);
});
