// What commands hold: after any of them, and while some wait, the partitions that a migration leaves
// behind can go, which they do when nobody holds a state of the collection from before.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mongo } from './mongo.js';
import { signed } from './rest.js';

const quick = ['--set', 'migration.pause_ms=20ms'];
const looks = 600; // of 50 ms

async function until(what, condition) {
  let found;
  for (let i = 0; i < looks; i++) {
    found = await condition();
    if (found === true) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${what}: ${JSON.stringify(found)}`);
}

const documents = Array.from({ length: 300 }, (_, n) => ({ _id: n, region: `r${n % 7}`, zone: `z${n % 5}`, n, tags: [n, n + 1] }));

async function people(t, options = {}) {
  const at = await mongo(t, [...quick, ...(options.args ?? [])], options.client);
  at.people = at.db.collection('people');
  await at.people.insertMany(documents);
  const path = (name) => `/_orrery/containers/shop/${name}/rekey`;
  at.rekey = async (field, name = 'people') => {
    await signed(at.server, 'POST', `${path(name)}/end-grace`);
    const body = { partitionKey: { paths: [`/${field}`], kind: 'Hash', version: 2 } };
    const { status, text } = await signed(at.server, 'POST', path(name), { body });
    assert.equal(status, 202, text);
  };
  at.state = async (name = 'people') => (await signed(at.server, 'GET', path(name))).json;
  at.ends = (name) => until('the migration ends', async () => {
    const state = await at.state(name);
    return !state.underWay || state.migration;
  });
  return at;
}

const fails = (promise) => assert.rejects(promise, (error) => error.code !== undefined);

// Each on a collection of its own kind, `p`; what may fail, fails.
const paths = {
  'createIndexes on a collection that is there': ({ p }) => p.createIndex({ n: 1 }),
  'createIndexes again, and ones that are refused': async ({ p }) => {
    await p.createIndex({ n: 1 });
    await p.createIndex({ n: 1 });
    await fails(p.createIndex({ n: 1 }, { name: 'other' }));
    await fails(p.createIndex({ n: 'nonsense' }));
    await fails(p.createIndex({ region: 1 }, { unique: true }));
    await fails(p.createIndex({ tags: 'hashed' }));
  },
  'dropIndexes': async ({ p, db }) => {
    await p.createIndexes([{ key: { n: 1 } }, { key: { region: 1, n: -1 } }, { key: { 'x.$**': 1 } }]);
    await fails(p.dropIndex('nope'));
    await fails(p.dropIndex('_id_'));
    await fails(db.command({ dropIndexes: 'people', index: ['n_1', 'nope'] }));
    await p.dropIndex('n_1');
    await p.dropIndexes();
  },
  'collMod and listIndexes': async ({ p, db }) => {
    await p.createIndex({ at: 1 }, { expireAfterSeconds: 1000 });
    await db.command({ collMod: 'people', index: { name: 'at_1', hidden: true, expireAfterSeconds: 500 } });
    await db.command({ collMod: 'people', validator: { n: { $type: 'number' } } });
    await fails(db.command({ collMod: 'people', index: { name: 'nope', hidden: true } }));
    await fails(db.command({ collMod: 'nope', validator: {} }));
    await fails(p.insertOne({ _id: 'x', n: 'text' }));
    await p.indexes();
    await fails(db.command({ listIndexes: 'nope' }));
  },
  'an index over _ts': async ({ p }) => {
    await p.createIndex({ _ts: 1 }, { expireAfterSeconds: 100000 });
    await p.dropIndex('_ts_1');
  },
  'aggregate with $lookup, $unionWith, $out and $merge': async ({ p, db }) => {
    const lookup = { $lookup: { from: 'people', localField: 'n', foreignField: '_id', as: 'same' } };
    await p.aggregate([{ $match: { n: { $lt: 5 } } }, lookup, { $unionWith: 'people' }]).toArray();
    await p.aggregate([{ $match: { n: { $lt: 5 } } }, { $out: 'copy' }]).toArray();
    await p.aggregate([{ $match: { n: { $lt: 5 } } }, { $merge: { into: 'people', whenMatched: 'replace' } }]).toArray();
    await db.collection('indexed').createIndex({ n: 1 });
    await fails(p.aggregate([{ $out: 'indexed' }]).toArray());
    await fails(p.aggregate([{ $project: { _id: { $literal: 1 } } }, { $out: 'copy' }]).toArray());
    await fails(p.aggregate([{ $merge: { into: 'people', on: 'n' } }]).toArray());
    await fails(p.aggregate([{ $match: { n: { $lt: 3 } } }, { $merge: { into: 'people', whenMatched: 'fail' } }]).toArray());
    await fails(p.aggregate([{ $project: { a: { $divide: ['$n', 0] } } }]).toArray());
    await fails(p.aggregate([{ $nope: 1 }]).toArray());
  },
  'explain and hint': async ({ p, db }) => {
    await p.createIndex({ n: 1 });
    for (const verbosity of ['queryPlanner', 'executionStats', 'allPlansExecution']) {
      await p.find({ n: 3 }).explain(verbosity);
      await db.command({ explain: { aggregate: 'people', pipeline: [{ $match: { n: 3 } }], cursor: {} }, verbosity });
    }
    await fails(db.command({ explain: { aggregate: 'people', pipeline: [{ $out: 'x' }], cursor: {} } }));
    await fails(db.command({ explain: { find: 'people', filter: { $nope: 1 } } }));
    await fails(db.command({ explain: { find: 'people' }, verbosity: 'nope' }));
    await p.find({ n: 3 }).hint('n_1').toArray();
    await fails(p.find({ n: 3 }).hint('nope').toArray());
    await fails(p.updateOne({ n: 3 }, { $set: { a: 1 } }, { hint: 'nope' }));
  },
  'views': async ({ p, db }) => {
    await db.command({ create: 'few', viewOn: 'people', pipeline: [{ $match: { n: { $lt: 10 } } }] });
    await db.command({ create: 'fewer', viewOn: 'few', pipeline: [{ $match: { n: { $lt: 5 } } }] });
    await db.collection('fewer').find({ n: 1 }).toArray();
    await db.collection('fewer').aggregate([{ $count: 'all' }]).toArray();
    await db.collection('fewer').countDocuments();
    await db.collection('fewer').distinct('n');
    await fails(db.collection('fewer').insertOne({ a: 1 }));
    await fails(db.collection('fewer').createIndex({ a: 1 }));
    await fails(db.command({ create: 'few', viewOn: 'fewer', pipeline: [] }));
    await fails(db.command({ listIndexes: 'few' }));
    await fails(db.command({ shardCollection: 'shop.few', key: { n: 1 } }));
    await p.findOne();
  },
  'writes of all kinds, and those that fail': async ({ p, db }) => {
    await fails(p.insertOne({ _id: 1 }));
    await fails(p.insertMany([{ _id: 1000, region: 'r1' }, { _id: 1 }, { _id: 1001, region: 'r2' }], { ordered: false }));
    await p.updateOne({ _id: 'new' }, { $set: { region: 'r1', zone: 'z1' } }, { upsert: true });
    await fails(p.updateOne({ _id: 'newer', n: 1 }, { $set: { _id: 2 } }, { upsert: true }));
    await fails(p.updateMany({}, { $inc: { region: 1 } }));
    await fails(p.updateMany({}, { $nope: 1 }));
    await p.findOneAndUpdate({ _id: 3 }, { $inc: { n: 1 } });
    await fails(p.findOneAndUpdate({ _id: 3 }, { $inc: { region: 1 } }));
    await p.findOneAndDelete({ _id: 4 });
    await fails(p.deleteMany({ $nope: 1 }));
    await p.deleteMany({ n: { $gte: 290 } });
    await p.countDocuments({ n: 1 });
    await p.distinct('region');
    await fails(db.command({ distinct: 'people', key: 1 }));
    await db.command({ collStats: 'people' });
    await db.command({ validate: 'people' });
  },
  'cursors that are left, closed and killed': async ({ p, db }) => {
    const left = p.find({}, { batchSize: 2 });
    await left.next();
    const closed = p.find({}, { batchSize: 2 });
    await closed.next();
    await closed.close();
    const { cursor } = await db.command({ find: 'people', batchSize: 3 });
    await fails(db.command({ getMore: cursor.id, collection: 'other' }));
    await db.command({ getMore: cursor.id, collection: 'people', batchSize: 3 });
    await db.command({ killCursors: 'people', cursors: [cursor.id] });
    await fails(db.command({ getMore: cursor.id, collection: 'people' }));
    const sorted = p.aggregate([{ $sort: { n: -1 } }], { batchSize: 2 });
    await sorted.next();
  },
  'transactions that are committed and aborted': async ({ p, client }) => {
    await client.withSession(async (session) => {
      session.startTransaction();
      await p.updateOne({ _id: 5 }, { $inc: { n: 1 } }, { session });
      await p.find({ n: { $lt: 9 } }, { session }).toArray();
      await session.commitTransaction();
      session.startTransaction();
      await p.insertOne({ _id: 'mine', region: 'r1', zone: 'z1' }, { session });
      await p.find({}, { session, batchSize: 2 }).next();
      await session.abortTransaction();
      session.startTransaction();
      await p.insertOne({ _id: 'mine', region: 'r1', zone: 'z1' }, { session });
      await fails(p.insertOne({ _id: 5 }, { session }));
      await session.abortTransaction().catch(() => {});
      session.startTransaction();
      await p.updateOne({ _id: 6 }, { $inc: { n: 1 } }, { session }); // open when its session ends
    });
  },
  'change streams that are closed': async ({ p, db }) => {
    const stream = p.watch([{ $match: { operationType: 'insert' } }], { maxAwaitTimeMS: 100 });
    const seen = stream.next();
    await until('the event comes', async () => {
      await p.insertOne({ region: 'r2', zone: 'z2' });
      return Promise.race([seen.then(() => true), new Promise((resolve) => setTimeout(resolve, 20, false))]);
    });
    await stream.tryNext();
    await stream.close();
    await fails(db.command({ aggregate: 'people', pipeline: [{ $changeStream: { resumeAfter: { _data: 'x' } } }], cursor: {} }));
    await fails(db.command({ aggregate: 'people', pipeline: [{ $changeStream: {} }, { $out: 'x' }], cursor: {} }));
  },
  'names, statistics and sharding': async ({ p, db, client }) => {
    await db.collection('old').insertOne({ a: 1 });
    await db.renameCollection('old', 'new');
    await fails(db.renameCollection('new', 'people'));
    await fails(db.createCollection('people', { capped: true, size: 1000 }));
    await db.collection('new').drop();
    const admin = client.db('admin');
    await fails(admin.command({ shardCollection: 'shop.people', key: {} }));
    await fails(admin.command({ reshardCollection: 'shop.people', key: { n: 1 } }));
    await fails(admin.command({ split: 'shop.people', middle: { n: 1 } }));
    await p.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
    await fails(db.command({ customAction: 'CreateCollection', collection: 'people' }));
    await db.command({ customAction: 'GetCollection', collection: 'people' });
  },
};

for (const [name, run] of Object.entries(paths))
  test(`nothing holds a collection after ${name}`, async (t) => {
    const at = await people(t);
    await run({ ...at, p: at.people });
    await at.rekey('region');
    await at.ends();
    assert.ok(await at.people.findOne({ region: 'r1' }));
    await at.client.close();
    assert.deepEqual(await at.server.stop(), { code: 0, signal: null }, at.server.err);
  });

// A re-key that is held up by a document that cannot be given the key.
async function heldUp(t, options) {
  const at = await people(t, options);
  await at.people.insertOne({ _id: 'odd', region: ['a', 'b'] });
  await at.rekey('region');
  await until('the conflict is seen', async () => (await at.state()).conflicts > 0 || (await at.state()));
  return at;
}

test('createIndexes that waits for another key of its collection does not keep it from coming', async (t) => {
  const at = await heldUp(t);
  let ended = false;
  const made = at.people.createIndex({ n: 1 }).finally(() => (ended = true));
  await until('the index is begun', async () => (await at.people.indexes()).length === 2);
  assert.equal(ended, false);
  await at.people.deleteOne({ _id: 'odd' });
  await at.ends();
  assert.equal(await made, 'n_1');
  assert.equal(await at.people.countDocuments({ n: { $gte: 0 } }), 300);
});

test('a collection whose indexes are being remade is sharded, split and given another key', async (t) => {
  const at = await people(t);
  const admin = at.client.db('admin');
  const change = async (command) => {
    const name = await at.people.createIndex({ n: 1, zone: 1 });
    await at.people.dropIndex(name);
    assert.equal((await admin.command(command)).ok, 1);
  };
  await change({ shardCollection: 'shop.people', key: { region: 'hashed' }, numInitialChunks: 4 });
  await change({ split: 'shop.people', find: { region: 'r1' } });
  await change({ reshardCollection: 'shop.people', key: { zone: 1 } });
  await at.ends();
  await at.people.createIndex({ n: 1 });
  assert.deepEqual((await at.people.find({ n: { $gte: 290 } }).hint('n_1').toArray()).map(({ _id }) => _id).sort(), documents.slice(290).map(({ _id }) => _id));
  assert.equal(await at.people.countDocuments(), 300);
});

test('a change stream that waits holds no collection of its account', async (t) => {
  const at = await people(t);
  const { cursor } = await at.db.command({ aggregate: 'quiet', pipeline: [{ $changeStream: {} }], cursor: {} });
  const more = at.db.command({ getMore: cursor.id, collection: 'quiet', maxTimeMS: 600_000 });
  await until('it waits', async () => {
    await assert.rejects(at.db.command({ getMore: cursor.id, collection: 'nothing' }), (error) => error.code !== undefined);
    return true;
  });
  await at.rekey('region');
  await at.ends();
  await at.db.collection('quiet').insertOne({ _id: 1 });
  assert.equal((await more).cursor.nextBatch[0].documentKey._id, 1);
});

// Answers, and ends as it should, whoever waits.
async function stops({ server, client }, waiting) {
  const stopped = server.stop();
  await waiting;
  assert.deepEqual(await stopped, { code: 0, signal: null }, server.err);
  assert.doesNotMatch(server.err, /cut off/);
  await client.close();
}

const interrupted = (promise) => assert.rejects(promise, { code: 11600, codeName: 'InterruptedAtShutdown' });

test('a server ends while createIndexes waits', async (t) => {
  const at = await heldUp(t);
  const waiting = interrupted(at.people.createIndex({ n: 1 }));
  await until('the index is begun', async () => (await at.people.indexes()).length === 2);
  await stops(at, waiting);
});

for (const command of ['shardCollection', 'reshardCollection'])
  test(`a server ends while ${command} waits for documents to be carried over`, async (t) => {
    const at = await people(t, { args: ['--set', 'migration.bytes_per_second=1K'] });
    const admin = at.client.db('admin');
    const large = at.db.collection('large');
    if (command === 'reshardCollection') await admin.command({ shardCollection: 'shop.large', key: { region: 1 } });
    for (let i = 0; i < 3; i++)
      await large.insertMany(documents.map(({ _id, ...rest }) => ({ _id: `${i}.${_id}`, ...rest, filler: 'x'.repeat(10_000) })));
    const waiting = interrupted(admin.command({ [command]: 'shop.large', key: { zone: 'hashed' } }));
    await until('documents are carried over', async () => (await at.state('large')).underWay || (await at.state('large')));
    await stops(at, waiting);
  });

test('a server ends while a change stream waits', async (t) => {
  const at = await people(t);
  const { cursor } = await at.db.command({ aggregate: 'quiet', pipeline: [{ $changeStream: {} }], cursor: {} });
  const more = at.db.command({ getMore: cursor.id, collection: 'quiet', maxTimeMS: 600_000 });
  await at.people.findOne();
  await stops(at, more.catch(() => {}));
});
