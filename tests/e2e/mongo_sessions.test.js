// Sessions of the MongoDB API: cluster time, cursors that end with their session, versions of the API, and faults that tests set.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Long, MongoServerError, Timestamp, UUID } from 'mongodb';
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

test('reads of a snapshot see one moment, in whatever session its time is named', async (t) => {
  const { client, db } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany(Array.from({ length: 10 }, (_, _id) => ({ _id, v: 0 })));
  const session = client.startSession({ snapshot: true });
  const cursor = c.find({}, { session, batchSize: 2, sort: { _id: 1 } });
  assert.deepEqual(await cursor.next(), { _id: 0, v: 0 });
  await c.updateMany({}, { $set: { v: 1 } });
  await c.insertOne({ _id: 10, v: 1 });
  assert.equal((await cursor.toArray()).filter(({ v }) => v === 0).length, 9);
  assert.deepEqual(await c.findOne({ _id: 3 }, { session }), { _id: 3, v: 0 });
  assert.deepEqual(await c.distinct('v', {}, { session }), [0]);
  assert.deepEqual(await c.aggregate([{ $group: { _id: '$v', n: { $sum: 1 } } }], { session }).toArray(), [{ _id: 0, n: 10 }]);
  const concern = { level: 'snapshot', atClusterTime: session.snapshotTime };
  const other = await db.command({ find: 'c', filter: { _id: 1 }, readConcern: concern });
  assert.deepEqual(other.cursor.firstBatch, [{ _id: 1, v: 0 }]);
  assert.ok(other.cursor.atClusterTime.equals(session.snapshotTime));
  await assert.rejects(db.command({ find: 'c', filter: { $no: 1 }, readConcern: concern }), { code: 2 });
  assert.deepEqual((await db.command({ distinct: 'c', key: 'v', readConcern: concern })).values, [0]);
  assert.deepEqual((await db.command({ distinct: 'c', key: 'v', readConcern: { level: 'snapshot' } })).values, [1]);
  assert.equal(await c.countDocuments({ v: 1 }), 11);
  await session.endSession();
});

test('a snapshot that is not held, or would be written, is refused', async (t) => {
  const { db } = await mongo(t, ['--set', 'mongo.transactions_max=4']);
  await db.collection('c').insertOne({ _id: 1 });
  const at = (atClusterTime) => db.command({ find: 'c', readConcern: { level: 'snapshot', atClusterTime } });
  const first = (await db.command({ find: 'c', readConcern: { level: 'snapshot' } })).cursor.atClusterTime;
  assert.equal((await at(first)).cursor.firstBatch.length, 1);
  // a quarter of mongo.transactions_max is held: the next one takes its place
  const second = (await db.command({ find: 'c', readConcern: { level: 'snapshot' } })).cursor.atClusterTime;
  await assert.rejects(at(first), { code: 239, codeName: 'SnapshotTooOld' });
  assert.equal((await at(second)).cursor.firstBatch.length, 1);
  await assert.rejects(at(new Timestamp({ t: second.getHighBits() + 3600, i: 1 })), { code: 72 });
  await assert.rejects(at(5), { code: 14 });
  const snapshot = { level: 'snapshot' };
  await assert.rejects(db.command({ insert: 'c', documents: [{ _id: 2 }], readConcern: snapshot, lsid: { id: new UUID() }, txnNumber: new Long(1) }), { code: 72 });
  await assert.rejects(db.command({ count: 'c', readConcern: snapshot }), { code: 72, message: /count/ });
  await assert.rejects(db.command({ aggregate: 'c', pipeline: [{ $out: 'd' }], cursor: {}, readConcern: snapshot }), { code: 72, message: /\$out/ });
  await assert.rejects(db.command({ aggregate: 'c', pipeline: [{ $out: 'd' }], cursor: {}, readConcern: { level: 'linearizable' } }), { code: 72 });
  assert.deepEqual(await db.listCollections({}, { nameOnly: true }).toArray().then((all) => all.map(({ name }) => name)), ['c']);
});

test('$listSessions lists the same where MongoDB keeps them', async (t) => {
  const { client } = await mongo(t);
  const session = client.startSession();
  t.after(() => session.endSession());
  await client.db('shop').collection('c').insertOne({ _id: 1 }, { session });
  const rows = await client.db('config').collection('system.sessions').aggregate([{ $listSessions: {} }], { session }).toArray();
  assert.ok(rows.some(({ _id }) => _id.id.toString('hex') === session.id.id.toString('hex')));
  await assert.rejects(client.db('config').collection('system.sessions').aggregate([{ $listSessions: { allUsers: true } }]).toArray(), { code: 238 });
  await assert.rejects(client.db('shop').collection('c').aggregate([{ $listSessions: {} }]).toArray(), { code: 73 });
});

test('$listLocalSessions lists the sessions of whoever asks that have numbered writes, and its own', async (t) => {
  const { server, client } = await mongo(t);
  const admin = client.db('admin');
  const wire = await Wire.open(t, server); // the driver puts a session of its own in place
  const list = async (lsid) => (await wire.ask({ aggregate: 1, pipeline: [{ $listLocalSessions: {} }], cursor: {}, lsid, $db: 'admin' })).cursor.firstBatch;
  const written = { id: new UUID() }, own = { id: new UUID() }, read = { id: new UUID() };
  assert.equal((await wire.ask({ insert: 'c', documents: [{ _id: 1 }], lsid: written, txnNumber: new Long(1), $db: 'd' })).ok, 1);
  assert.equal((await wire.ask({ find: 'c', lsid: read, $db: 'd' })).ok, 1);
  const rows = await list(own);
  const ids = rows.map(({ _id }) => _id.id.toString());
  assert.equal(ids[0], own.id.toString());
  assert.ok(ids.includes(written.id.toString()) && !ids.includes(read.id.toString()));
  assert.ok(rows.every(({ _id, lastUse }) => _id.uid.length() === 32 && Math.abs(lastUse - Date.now()) < 60000));
  await wire.ask({ endSessions: [written], $db: 'admin' });
  assert.ok(!(await list(own)).some(({ _id }) => _id.id.toString() === written.id.toString()));
  const asked = (stage, of = 1) => admin.command({ aggregate: of, pipeline: [{ $listLocalSessions: stage }], cursor: {} });
  await assert.rejects(asked({ allUsers: true }), { code: 238, message: /allUsers/ });
  await assert.rejects(asked({ users: [] }), { code: 238, message: /users/ });
  await assert.rejects(asked({ other: 1 }), { code: 40415 });
  await assert.rejects(asked(1), { code: 14 });
  await assert.rejects(asked({}, 'c'), { code: 73 });
});
