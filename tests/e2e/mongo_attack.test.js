// What an ordinary user of one account may try against the MongoDB front: nothing of another account is reached, and what is
// asked is bounded while it runs.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Long } from 'mongodb';
import { mongo, mongoClient } from './mongo.js';
import { emulatorKey, Server } from './server.js';
import { signed } from './rest.js';

async function two(t) {
  const server = await Server.start(t, ['--dev']);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'eve' } });
  const url = (user, key) => server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${user}:${encodeURIComponent(key)}@`);
  const victim = await mongoClient(t, url('default', emulatorKey));
  const eve = await mongoClient(t, url('eve', made.json.keys.primary));
  await victim.db('shop').collection('secrets').insertMany(Array.from({ length: 300 }, (_, _id) => ({ _id, secret: `s${_id}` })));
  await eve.db('shop').collection('own').insertOne({ _id: 1 });
  return { server, victim, eve };
}

test('cursors and sessions of another account are out of reach, and so are its transactions', async (t) => {
  const { victim, eve } = await two(t);
  const shop = victim.db('shop');
  const reading = victim.startSession();
  t.after(() => reading.endSession());
  const { cursor } = await shop.command({ find: 'secrets', batchSize: 1 }, { session: reading });
  const id = Long.fromValue(cursor.id);
  await assert.rejects(eve.db('shop').command({ getMore: id, collection: 'secrets' }), { code: 43 });
  assert.deepEqual((await eve.db('shop').command({ killCursors: 'secrets', cursors: [id] })).cursorsKilled, []);

  const session = victim.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  await shop.collection('secrets').insertOne({ _id: 'open' }, { session });
  await eve.db('admin').command({ killSessions: [{ id: session.id.id }] });
  await eve.db('admin').command({ endSessions: [{ id: session.id.id }] });
  await eve.db('admin').command({ killAllSessions: [] });
  await eve.db('admin').command({ killAllSessionsByPattern: [] });
  await session.commitTransaction();
  assert.equal(await shop.collection('secrets').countDocuments({ _id: 'open' }), 1);
  assert.ok((await shop.command({ getMore: id, collection: 'secrets' }, { session: reading })).cursor.nextBatch.length > 0);
});

test('no stage and no command reads or writes another account', async (t) => {
  const { victim, eve } = await two(t);
  const own = eve.db('shop').collection('own');
  const found = async (pipeline) => (await own.aggregate(pipeline).toArray())[0];
  assert.deepEqual((await found([{ $lookup: { from: 'secrets', pipeline: [], as: 'x' } }])).x, []);
  assert.deepEqual((await found([{ $graphLookup: { from: 'secrets', startWith: 1, connectFromField: '_id', connectToField: '_id', as: 'x' } }])).x, []);
  assert.equal((await own.aggregate([{ $unionWith: 'secrets' }]).toArray()).length, 1);
  await own.aggregate([{ $out: 'secrets' }]).toArray();
  await own.aggregate([{ $merge: { into: { db: 'shop', coll: 'secrets' } } }]).toArray();
  await eve.db('shop').dropDatabase();
  assert.equal(await victim.db('shop').collection('secrets').countDocuments(), 300);
  assert.deepEqual((await eve.db('admin').command({ listDatabases: 1 })).databases.filter(({ name }) => name === 'shop'), []);
  for (const name of ['collections', 'chunks', 'databases']) {
    const seen = JSON.stringify(await eve.db('config').collection(name).find().toArray());
    assert.doesNotMatch(seen, /secrets/, name);
  }
  for (const stage of [{ $listLocalSessions: {} }, { $currentOp: { allUsers: true } }, { $shardedDataDistribution: {} }])
    assert.doesNotMatch(JSON.stringify(await eve.db('admin').aggregate([stage]).toArray()), /secrets/, JSON.stringify(stage));
  const stream = eve.watch([], { maxAwaitTimeMS: 300 });
  t.after(() => stream.close());
  await stream.tryNext();
  await victim.db('shop').collection('secrets').insertOne({ _id: 'told' });
  assert.equal(await stream.tryNext(), null);
  for (const command of [{ addShardToZone: 'local', zone: 'z' }, { balancerStop: 1 }, { moveChunk: 'shop.own', find: { _id: 1 }, to: 'local' }])
    await assert.rejects(eve.db('admin').command(command), { code: 13 }, JSON.stringify(command));
});

// Each of these is refused or ends; the server answers others meanwhile and afterwards.
test('bombs are bounded', async (t) => {
  const { client, db, server } = await mongo(t, ['--set', 'query.deadline_ms=3s']);
  const c = db.collection('c');
  await c.insertMany(Array.from({ length: 200 }, (_, i) => ({ _id: i, next: (i + 1) % 200, text: 'a'.repeat(3000), list: Array.from({ length: 50 }, (_, n) => n) })));
  const nest = (depth, make, inner) => (depth ? make(nest(depth - 1, make, inner)) : inner);
  const other = await mongoClient(t, server.mongo);
  const bombs = {
    'a regex that backtracks': () => c.find({ text: { $regex: '^(a+)+$|(a|aa)+b' } }).toArray(),
    'a regex in every row of a join': () => c.aggregate([{ $unwind: '$list' }, { $match: { $expr: { $regexMatch: { input: '$text', regex: '(a*)*b' } } } }]).toArray(),
    'unwinds of unwinds': () => c.aggregate([{ $set: { b: '$list', d: '$list', e: '$list' } }, { $unwind: '$list' }, { $unwind: '$b' }, { $unwind: '$d' }, { $unwind: '$e' }, { $sort: { e: 1, text: 1 } }]).toArray(),
    'a text that doubles': () => c.aggregate([{ $project: { x: { $reduce: { input: { $range: [0, 60] }, initialValue: 'x', in: { $concat: ['$$value', '$$value'] } } } } }]).toArray(),
    'an array that multiplies': () => c.aggregate([{ $project: { x: { $reduce: { input: { $range: [0, 40] }, initialValue: [1], in: { $concatArrays: ['$$value', '$$value'] } } } } }]).toArray(),
    'a range without an end': () => c.aggregate([{ $project: { x: { $size: { $range: [0, 2_000_000_000] } } } }]).toArray(),
    'lookups of lookups': () => c.aggregate([nest(8, (inner) => ({ $lookup: { from: 'c', pipeline: [inner], as: 'x' } }), { $match: {} })]).toArray(),
    'everything pushed into one': () => c.aggregate([{ $lookup: { from: 'c', pipeline: [], as: 'x' } }, { $unwind: '$x' }, { $group: { _id: null, all: { $push: '$$ROOT' } } }]).toArray(),
    'a graph from every document to every other': () => c.aggregate([{ $graphLookup: { from: 'c', startWith: '$_id', connectFromField: 'next', connectToField: '_id', as: 'way' } }]).toArray(),
    'a filter nested deep': () => c.find(nest(150, (inner) => ({ $and: [inner] }), { a: 1 })).toArray(),
    'an expression nested deep': () => c.aggregate([{ $project: { x: nest(150, (inner) => ({ $add: [1, inner] }), 1) } }]).toArray(),
    'facets of facets of work': () => c.aggregate([{ $facet: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, [{ $unwind: '$list' }, { $sort: { text: 1, list: -1 } }]])) }]).toArray(),
    'a large $in': () => c.find({ text: { $in: Array.from({ length: 200_000 }, (_, i) => `t${i}`) } }).toArray(),
    'sets of everything': () => c.aggregate([{ $group: { _id: null, all: { $push: '$list' } } }, { $project: { x: { $reduce: { input: '$all', initialValue: [], in: { $setUnion: ['$$value', '$$this'] } } } } }], { collation: { locale: 'en', strength: 1 } }).toArray(),
    'a sort of long texts by a collation': () => c.find({}, { collation: { locale: 'en', strength: 1 } }).sort({ text: 1 }).toArray(),
  };
  for (const [name, bomb] of Object.entries(bombs)) {
    const outcome = await bomb().then(() => null, (error) => error);
    assert.ok(!outcome || (outcome.code > 0 && outcome.code !== 1), `${name}: ${outcome}`);
    assert.equal((await other.db('shop').collection('c').findOne({ _id: 1 }))._id, 1, name);
  }
  await client.db('admin').command({ ping: 1 });
});
