// Indexes of the MongoDB API through npm `mongodb`: made, dropped, listed, refused, and used.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { mongo } from './mongo.js';

const names = async (collection) => (await collection.listIndexes().toArray()).map(({ name }) => name);

test('indexes are made, listed and dropped', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  const created = await db.command({
    createIndexes: 'orders',
    indexes: [
      { key: { a: 1, b: -1 }, name: 'a_1_b_-1' },
      { key: { c: 1 }, name: 'c', unique: true, sparse: true },
      { key: { d: 1 }, name: 'd', expireAfterSeconds: 3600, hidden: true },
      { key: { e: 'hashed' } },
      { key: { '$**': 1 }, name: 'all', wildcardProjection: { x: 1, 'y.z': 1 } },
      { key: { f: 1 }, name: 'f', partialFilterExpression: { g: { $gt: 5 }, $or: [{ h: 1 }, { i: { $exists: true } }] } },
    ],
  });
  assert.deepEqual([created.numIndexesBefore, created.numIndexesAfter, created.createdCollectionAutomatically], [1, 7, true]);
  assert.deepEqual(await orders.listIndexes().toArray(), [
    { v: 2, key: { _id: 1 }, name: '_id_' },
    { v: 2, key: { a: 1, b: -1 }, name: 'a_1_b_-1' },
    { v: 2, key: { c: 1 }, name: 'c', unique: true, sparse: true },
    { v: 2, key: { d: 1 }, name: 'd', expireAfterSeconds: 3600, hidden: true },
    { v: 2, key: { e: 'hashed' }, name: 'e_hashed' },
    { v: 2, key: { '$**': 1 }, name: 'all', wildcardProjection: { x: 1, 'y.z': 1 } },
    { v: 2, key: { f: 1 }, name: 'f', partialFilterExpression: { g: { $gt: 5 }, $or: [{ h: 1 }, { i: { $exists: true } }] } },
  ]);
  const again = await db.command({ createIndexes: 'orders', indexes: [{ key: { a: 1, b: -1 }, name: 'a_1_b_-1' }] });
  assert.equal(again.note, 'all indexes already exist');
  assert.deepEqual([again.numIndexesBefore, again.numIndexesAfter], [7, 7]);

  assert.equal((await db.command({ dropIndexes: 'orders', index: 'c' })).nIndexesWas, 7);
  await db.command({ dropIndexes: 'orders', index: { a: 1, b: -1 } });
  await db.command({ dropIndexes: 'orders', index: ['d', 'f'] });
  assert.deepEqual(await names(orders), ['_id_', 'e_hashed', 'all']);
  assert.equal((await db.command({ dropIndexes: 'orders', index: '*' })).msg, 'non-_id indexes dropped for collection');
  assert.deepEqual(await names(orders), ['_id_']);
});

test('what cannot be an index is refused with the code and words of MongoDB', async (t) => {
  const { db } = await mongo(t);
  await db.createCollection('orders');
  await db.collection('orders').createIndex({ a: 1 }, { name: 'a' });
  const refused = async (index, code, words) =>
    assert.rejects(db.command({ createIndexes: 'orders', indexes: [index] }), (error) => {
      assert.equal(error.code, code, `${JSON.stringify(index)}: ${error.message}`);
      assert.match(error.message, words);
      return true;
    });
  await refused({ name: 'x' }, 9, /'key' field is a required property/);
  await refused({ key: 'a' }, 14, /must be an object/);
  await refused({ key: {} }, 67, /Index keys cannot be empty/);
  await refused({ key: { x: 0 } }, 67, /cannot be 0/);
  await refused({ key: { x: true } }, 67, /cannot be of type bool/);
  await refused({ key: { x: 'foo' } }, 67, /Unknown index plugin 'foo'/);
  await refused({ key: { '': 1 } }, 67, /empty field/);
  await refused({ key: { $x: 1 } }, 67, /starts with '\$'/);
  await refused({ key: { x: 1 }, name: '*' }, 2, /'\*' is not valid/);
  await refused({ key: { x: 1 }, foo: 1 }, 197, /The field 'foo' is not valid for an index specification/);
  await refused({ key: { x: 1, y: 1 }, expireAfterSeconds: 1 }, 67, /TTL indexes are single-field/);
  await refused({ key: { x: 1 }, expireAfterSeconds: -1 }, 67, /cannot be less than 0/);
  await refused({ key: { x: 1 }, expireAfterSeconds: 'x' }, 67, /must be numeric/);
  await refused({ key: { x: 1 }, sparse: true, partialFilterExpression: { x: 1 } }, 67, /cannot mix/);
  await refused({ key: { x: 1 }, partialFilterExpression: { x: { $ne: 1 } } }, 67, /unsupported expression in partial index/);
  await refused({ key: { x: 'hashed' }, unique: true }, 16764, /cannot guarantee uniqueness/);
  await refused({ key: { x: 'hashed', y: 'hashed' } }, 31303, /maximum of one/);
  await refused({ key: { _id: 1 }, sparse: true }, 197, /'sparse' is not valid for an _id index/);
  await refused({ key: Object.fromEntries([...Array(33).keys()].map((i) => [`f${i}`, 1])) }, 13103, /too many compound keys/);
  await refused({ key: { x: 1, y: 'text' } }, 238, /text indexes with other keys before or behind are not offered yet/);
  await refused({ key: { x: 'geoHaystack' } }, 238, /geoHaystack indexes are not offered yet/);
  await refused({ key: { b: 1 }, name: 'a' }, 86, /same name as the requested index/);
  await refused({ key: { a: 1 }, name: 'b' }, 85, /already exists with a different name: a/);
  await refused({ key: { a: 1 }, name: 'a', unique: true }, 85, /same name but different options/);

  await assert.rejects(db.command({ dropIndexes: 'orders', index: 'nope' }), { code: 27, message: 'index not found with name [nope]' });
  await assert.rejects(db.command({ dropIndexes: 'orders', index: { z: 1 } }), { code: 27 });
  await assert.rejects(db.command({ dropIndexes: 'orders', index: '_id_' }), { code: 72, message: 'cannot drop _id index' });
  await assert.rejects(db.command({ dropIndexes: 'nothing', index: '*' }), { code: 26 });
  await assert.rejects(db.collection('nothing').listIndexes().toArray(), { code: 26 });
});

test('a unique index refuses what is there already, by whichever command', async (t) => {
  const { db } = await mongo(t);
  const people = db.collection('people');
  await people.insertMany([{ _id: 1, mail: 'a' }, { _id: 2, mail: 'b', tags: [1, 2] }]);
  await people.createIndex({ mail: 1 }, { unique: true });
  const duplicate = (mail) => (error) => {
    assert.equal(error.code, 11000);
    assert.match(error.message, /E11000 duplicate key error collection: shop\.people index: mail_1 dup key: \{ mail: "a" \}/);
    assert.deepEqual([error.keyPattern ?? error.writeErrors?.[0].err.keyPattern, error.keyValue ?? error.writeErrors?.[0].err.keyValue], [{ mail: 1 }, { mail }]);
    return true;
  };
  await assert.rejects(people.insertOne({ mail: 'a' }), duplicate('a'));
  await assert.rejects(people.updateOne({ _id: 2 }, { $set: { mail: 'a' } }), duplicate('a'));
  await assert.rejects(people.updateOne({ _id: 3 }, { $set: { mail: 'a' } }, { upsert: true }), duplicate('a'));
  await assert.rejects(people.findOneAndUpdate({ _id: 2 }, { $set: { mail: 'a' } }), duplicate('a'));
  await people.insertOne({ _id: 4 });
  await assert.rejects(people.insertOne({ _id: 5 }), { code: 11000 }); // what is missing is a value
  await people.createIndex({ tags: 1 }, { unique: true, sparse: true });
  await assert.rejects(people.insertOne({ mail: 'c', tags: [3, 2] }), { code: 11000 });
  assert.equal(await db.command({ count: 'people' }).then(({ n }) => n), 3);
});

test('an index that items stand in the way of is not made', async (t) => {
  const { db } = await mongo(t);
  const people = db.collection('people');
  await people.insertMany([{ _id: 1, mail: 'a', x: [1], y: [1] }, { _id: 2, mail: 'a' }]);
  await assert.rejects(people.createIndex({ mail: 1 }, { unique: true }), (error) => {
    assert.equal(error.code, 11000);
    assert.deepEqual([error.keyPattern, error.keyValue], [{ mail: 1 }, { mail: 'a' }]);
    return true;
  });
  await assert.rejects(people.createIndex({ x: 1, y: 1 }), { code: 171 });
  await assert.rejects(people.createIndex({ x: 'hashed' }), { code: 16766 });
  assert.deepEqual(await names(people), ['_id_']);
  await people.deleteOne({ _id: 1 });
  await people.createIndex({ mail: 1 }, { unique: true });
  await people.createIndex({ x: 1, y: 1 });
  await assert.rejects(people.insertOne({ mail: 'b', x: [1], y: [2] }), { code: 171 });
});

// Documents with arrays here and there, and a filter for every kind of index.
const random = (() => {
  let state = 12345;
  return (n) => (state = (state * 1103515245 + 12345) & 0x7fffffff) % n;
})();

function document(i) {
  const value = () => [random(6), `t${random(4)}`, null, { z: random(3) }, new Date(random(5) * 1000), random(6) + 0.5, true][random(7)];
  const field = () => (random(4) ? value() : [...Array(random(4))].map(value));
  const made = { _id: i };
  for (const name of ['a', 'b', 'c']) if (random(5)) made[name] = field();
  if (random(4)) made.d = random(3) ? { e: field(), f: field() } : [...Array(random(3))].map(() => ({ e: value(), f: value() }));
  return made;
}

const filters = [
  { a: 3 }, { a: null }, { a: 't1' }, { a: { $gt: 2 } }, { a: { $gt: 1, $lt: 4 } }, { a: { $in: [1, 't2', null] } }, { a: { $exists: true } },
  { a: { z: 1 } }, { a: [] }, { a: [1, 2] }, { a: { $all: [1, 2] } }, { a: { $elemMatch: { $gt: 1, $lt: 4 } } }, { a: /^t/ }, { a: { $type: 'date' } },
  { a: 3, b: { $gte: 't1' } }, { a: { $gte: 2 }, b: 3, c: { $ne: 2 } }, { a: 1, b: 1, c: 1 }, { $or: [{ a: 1 }, { b: 2 }] }, { $or: [{ a: 1, b: 1 }, { c: { $gt: 3 } }] },
  { 'd.e': 3 }, { 'd.e': { $gt: 1 }, 'd.f': { $lt: 4 } }, { 'd.e': 2, 'd.f': 2 }, { d: { $elemMatch: { e: 2, f: 2 } } }, { 'd.e': null }, { 'd.f': { $in: [1, 2] } },
  { a: { $gt: 2 }, b: { $gt: 2 } }, { a: { $lte: null } }, { a: { $gte: new Date(2000) } }, { a: { $not: { $gt: 2 } } }, { b: 2, a: { $exists: true } }, { c: 2 }, { c: { $lt: 3 }, a: { $gt: 2 } },
];
const sorts = [{ a: 1 }, { a: -1 }, { b: 1 }, { a: 1, b: 1 }, { a: 1, b: -1 }, { 'd.e': 1 }, { b: -1 }, { c: 1 }];
const indexes = [
  { key: { a: 1 } }, { key: { a: -1 }, sparse: true }, { key: { a: 1, b: 1 } }, { key: { b: 1, a: -1 } }, { key: { 'd.e': 1 } }, { key: { 'd.e': 1, 'd.f': -1 } },
  { key: { c: 1 }, partialFilterExpression: { a: { $gt: 1 } } }, { key: { '$**': 1 } }, { key: { c: 1, a: 1 }, sparse: true },
];

test('answers are the same with every index and with none', async (t) => {
  const { db } = await mongo(t);
  const plain = db.collection('plain');
  const documents = [...Array(400).keys()].map(document).filter(({ a, b, c }) => [a, b, c].filter(Array.isArray).length < 2);
  await plain.insertMany(documents);
  const scalars = documents.map((one) => Object.fromEntries(Object.entries(one).map(([name, value]) => [name, Array.isArray(value) ? value[0] ?? 0 : value])));
  const bare = db.collection('bare');
  await bare.insertMany(scalars);
  const ids = async (cursor) => (await cursor.toArray()).map(({ _id }) => _id);
  const sorted = (list) => list.sort((x, y) => x - y);
  for (const collection of [plain, bare]) {
    const expected = [];
    const ordered = [];
    for (const filter of filters) {
      expected.push(sorted(await ids(collection.find(filter))));
      for (const sort of sorts) ordered.push(await ids(collection.find(filter).sort({ ...sort, _id: 1 })));
    }
    for (const index of indexes) {
      const name = await collection.createIndex(index.key, { ...index, key: undefined });
      for (const [i, filter] of filters.entries()) {
        const told = `${JSON.stringify(filter)} by ${name} ${JSON.stringify(index)}`;
        assert.deepEqual(sorted(await ids(collection.find(filter).batchSize(7))), expected[i], told);
        assert.equal((await db.command({ count: collection.collectionName, query: filter })).n, expected[i].length, `count of ${told}`);
        for (const [n, sort] of sorts.entries()) {
          // Equal values come in any order: the keys have to be in that of the sort by _id behind it.
          const got = await ids(collection.find(filter).sort(sort).batchSize(9));
          assert.deepEqual(sorted([...got]), expected[i], `sorted by ${JSON.stringify(sort)}: ${told}`);
          const places = new Map(ordered[i * sorts.length + n].map((id, place) => [id, place]));
          const again = await ids(collection.find(filter).sort({ ...sort, _id: 1 }).hint({ $natural: 1 }));
          assert.deepEqual(again, ordered[i * sorts.length + n]);
          assert.equal(got.length, places.size);
          const keyed = await keysInOrder(collection, got, sort);
          assert.ok(keyed, `${told} is not in the order ${JSON.stringify(sort)}`);
        }
      }
      await collection.dropIndex(name);
    }
  }
});

// Do documents in this order have ascending sort keys? Asked of the server: pairs that are out of order change places.
async function keysInOrder(collection, ids, sort) {
  const rank = await collection.find({ _id: { $in: ids } }).sort({ ...sort, _id: 1 }).hint({ $natural: 1 }).toArray();
  const key = (one) => JSON.stringify(Object.keys(sort).map((path) => keyOf(one, path, sort[path])));
  const wanted = rank.map(key);
  const byId = new Map(rank.map((one) => [one._id, key(one)]));
  return ids.every((id, i) => byId.get(id) === wanted[i]);
}

// The sort key as text, good enough to tell equal ones: the values that the path leads to.
function keyOf(one, path, direction) {
  const walk = (value, rest) => {
    if (!rest.length) return Array.isArray(value) ? (value.length ? value : ['empty']) : [value === undefined ? null : value];
    if (Array.isArray(value)) return value.length ? value.flatMap((part) => (part && typeof part === 'object' && !Array.isArray(part) && !(part instanceof Date) ? walk(part, rest) : [null])) : [null];
    if (value && typeof value === 'object' && !(value instanceof Date)) return walk(value[rest[0]], rest.slice(1));
    return [null];
  };
  const order = (value) => (value === 'empty' ? 0 : value === null || value === undefined ? 1 : typeof value === 'number' ? 2 : typeof value === 'string' ? 3 : value instanceof Date ? 7 : typeof value === 'boolean' ? 6 : Array.isArray(value) ? 5 : 4);
  const compare = (x, y) => order(x) - order(y) || (order(x) === 4 ? (x.z ?? 0) - (y.z ?? 0) : x < y ? -1 : x > y ? 1 : 0);
  const values = walk(one, path.split('.')).sort(compare);
  return direction > 0 ? values[0] ?? null : values.at(-1) ?? null;
}

test('an update of many by an index that it changes happens once to each', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany([...Array(700).keys()].map((i) => ({ _id: i, n: i })));
  await items.createIndex({ n: 1 });
  const { modifiedCount } = await items.updateMany({ n: { $gte: 100 } }, { $inc: { n: 1 } });
  assert.equal(modifiedCount, 600);
  assert.deepEqual((await items.find({ n: { $gte: 698 } }).sort({ n: 1 }).toArray()).map(({ n }) => n), [698, 699, 700]);
});

test('hints choose the index, or none', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany([...Array(50).keys()].map((i) => ({ _id: 50 - i, n: i, s: i % 2 ? i : undefined })));
  await items.createIndex({ n: 1 });
  await items.createIndex({ s: 1 }, { name: 'sparse', sparse: true });
  const ids = async (cursor) => (await cursor.toArray()).map(({ _id }) => _id);
  assert.equal((await ids(items.find({ n: { $gte: 40 } }).hint('n_1'))).length, 10);
  assert.equal((await ids(items.find({ n: { $gte: 40 } }).hint({ n: 1 }))).length, 10);
  assert.deepEqual((await ids(items.find().hint({ $natural: -1 }))).slice(0, 3), [1, 2, 3]);
  assert.deepEqual((await ids(items.find().hint({ $natural: 1 }))).slice(0, 3), [50, 49, 48]);
  for (const run of [
    () => items.find({}).hint('nope').toArray(),
    () => items.find({}).hint({ zzz: 1 }).toArray(),
    () => items.updateOne({ n: 1 }, { $set: { x: 1 } }, { hint: 'nope' }),
    () => items.deleteOne({ n: 1 }, { hint: 'nope' }),
    () => items.findOneAndUpdate({ n: 1 }, { $set: { x: 1 } }, { hint: 'nope' }),
    () => db.command({ count: 'items', query: {}, hint: 'nope' }),
  ])
    await assert.rejects(run, { code: 2 });
  await items.updateOne({ n: 3 }, { $set: { x: 1 } }, { hint: 'n_1' });
  assert.equal((await ids(items.find({ x: 1 }))).length, 1);
});

test('documents expire by dates, by the earliest of an array, and by _ts', async (t) => {
  const { db } = await mongo(t, ['--set', 'caretaker.pause_ms=50ms']);
  const visits = db.collection('visits');
  const past = new Date(Date.now() - 3600_000), future = new Date(Date.now() + 3600_000);
  await visits.insertMany([{ _id: 1, at: past }, { _id: 2, at: future }, { _id: 3, at: [future, past] }, { _id: 4, at: 'past' }, { _id: 5, at: 12 }, { _id: 6 }]);
  await visits.createIndex({ at: 1 }, { expireAfterSeconds: 60 });
  const left = async (wanted) => {
    for (;;) {
      const ids = (await visits.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
      if (ids.length <= wanted.length) return assert.deepEqual(ids, wanted);
      await new Promise((done) => setTimeout(done, 20));
    }
  };
  await left([2, 4, 5, 6]);
  const kept = db.collection('kept');
  await kept.insertOne({ _id: 1 });
  await kept.createIndex({ _ts: 1 }, { expireAfterSeconds: 3600 });
  assert.deepEqual((await kept.listIndexes().toArray())[1], { v: 2, key: { _ts: 1 }, name: '_ts_1', expireAfterSeconds: 3600 });
  await kept.dropIndex('_ts_1');
  assert.deepEqual(await names(kept), ['_id_']);
});

const stagesOf = (plan) => (plan ? [plan.stage, ...(plan.inputStages ? plan.inputStages.flatMap(stagesOf) : stagesOf(plan.inputStage))] : []);

test('explain tells the plan and the work that was done', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany([...Array(1000).keys()].map((i) => ({ _id: i, n: i, m: i % 10, tags: [`t${i % 4}`, 'all'] })));
  await items.createIndexes([{ key: { n: 1 } }, { key: { m: 1, n: -1 } }, { key: { tags: 1 } }]);
  const explain = (cursor) => cursor.explain('executionStats');

  let told = await explain(items.find({ n: { $gte: 10, $lt: 20 } }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['FETCH', 'IXSCAN']);
  let scan = told.queryPlanner.winningPlan.inputStage;
  assert.deepEqual([scan.indexName, scan.keyPattern, scan.isMultiKey, scan.direction, scan.indexBounds], ['n_1', { n: 1 }, false, 'forward', { n: ['[10, 20)'] }]);
  assert.deepEqual([told.executionStats.nReturned, told.executionStats.totalKeysExamined, told.executionStats.totalDocsExamined], [10, 10, 10]);
  assert.ok(told.executionStats.requestCharge > 0);
  assert.equal(told.queryPlanner.namespace, 'shop.items');

  told = await explain(items.find({ m: 3 }).sort({ n: 1 }).limit(5));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['LIMIT', 'FETCH', 'IXSCAN']);
  scan = told.queryPlanner.winningPlan.inputStage.inputStage;
  assert.deepEqual([scan.indexName, scan.direction, scan.indexBounds], ['m_1_n_-1', 'backward', { m: ['[3, 3]'], n: ['[MinKey, MaxKey]'] }]);
  assert.equal(told.executionStats.nReturned, 5);
  assert.ok(told.executionStats.totalDocsExamined < 20);

  told = await explain(items.find({ tags: 't1' }));
  scan = told.queryPlanner.winningPlan.inputStage;
  assert.deepEqual([scan.indexName, scan.isMultiKey, scan.multiKeyPaths], ['tags_1', true, { tags: ['tags'] }]);
  assert.deepEqual([told.executionStats.nReturned, told.executionStats.totalDocsExamined], [250, 250]);

  told = await explain(items.find({ x: 1 }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['COLLSCAN']);
  assert.equal(told.executionStats.totalDocsExamined, 1000);
  told = await explain(items.find({ _id: 5 }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['IDHACK']);
  told = await explain(items.find({ x: 1 }).sort({ y: 1 }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['SORT', 'COLLSCAN']);
  told = await explain(items.find({ n: { $gte: 10 }, m: 1 }).hint({ $natural: 1 }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['COLLSCAN']);
  told = await explain(items.find({ $or: [{ n: 5 }, { m: 7 }] }));
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['FETCH', 'OR', 'IXSCAN', 'IXSCAN']);
  assert.equal(told.executionStats.nReturned, 101);

  told = await db.command({ explain: { count: 'items', query: { m: 3 } }, verbosity: 'executionStats' });
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['COUNT', 'COUNT_SCAN', 'IXSCAN']);
  assert.equal(told.executionStats.totalDocsExamined, 0);
  told = await db.command({ explain: { update: 'items', updates: [{ q: { n: 5 }, u: { $set: { n: 6000 } } }] }, verbosity: 'queryPlanner' });
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['UPDATE', 'FETCH', 'IXSCAN']);
  assert.equal(told.executionStats, undefined);
  await db.command({ explain: { delete: 'items', deletes: [{ q: { n: 5 }, limit: 0 }] } });
  await db.command({ explain: { findAndModify: 'items', query: { n: 5 }, remove: true } });
  await db.command({ explain: { distinct: 'items', key: 'm', query: {} } });
  assert.equal((await db.command({ count: 'items', query: { n: 5 } })).n, 1);
  told = await items.aggregate([{ $match: { n: { $lt: 5 } } }, { $group: { _id: '$m', n: { $sum: 1 } } }]).explain();
  const plan = told.queryPlanner ?? told.stages[0].$cursor.queryPlanner;
  assert.ok(stagesOf(plan.winningPlan).includes('IXSCAN'));
  told = await db.command({ explain: { find: 'nothing' } });
  assert.deepEqual(stagesOf(told.queryPlanner.winningPlan), ['EOF']);
  await assert.rejects(db.command({ explain: { find: 'items' }, verbosity: 'loud' }), { code: 2 });
  await assert.rejects(db.command({ explain: { ping: 1 } }));
});

test('collMod changes when documents expire, and hides an index', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.createIndex({ at: 1 }, { expireAfterSeconds: 100 });
  await items.createIndex({ n: 1 });
  const changed = await db.command({ collMod: 'items', index: { name: 'at_1', expireAfterSeconds: 200 } });
  assert.deepEqual([changed.expireAfterSeconds_old, changed.expireAfterSeconds_new], [100, 200]);
  const hidden = await db.command({ collMod: 'items', index: { keyPattern: { n: 1 }, hidden: true } });
  assert.deepEqual([hidden.hidden_old, hidden.hidden_new], [false, true]);
  assert.deepEqual((await items.listIndexes().toArray()).slice(1), [
    { v: 2, key: { at: 1 }, name: 'at_1', expireAfterSeconds: 200 },
    { v: 2, key: { n: 1 }, name: 'n_1', hidden: true },
  ]);
  await items.insertMany([...Array(100).keys()].map((n) => ({ n })));
  const stages = async () => stagesOf((await items.find({ n: 5 }).explain('queryPlanner')).queryPlanner.winningPlan);
  assert.deepEqual(await stages(), ['COLLSCAN']);
  await assert.rejects(items.find({ n: 5 }).hint('n_1').toArray(), { code: 2 });
  await db.command({ collMod: 'items', index: { name: 'n_1', hidden: false } });
  assert.deepEqual(await stages(), ['FETCH', 'IXSCAN']);
  await assert.rejects(db.command({ collMod: 'items', index: { name: 'zzz', hidden: true } }), { code: 27 });
  await assert.rejects(db.command({ collMod: 'items', index: { name: 'n_1', unique: true } }), { code: 238 });
});

test('a sharded collection has its indexes in every partition, and unique ones begin with the shard key', async (t) => {
  const { client, db } = await mongo(t);
  await client.db('admin').command({ shardCollection: 'shop.events', key: { tenant: 'hashed' }, numInitialChunks: 4 });
  const events = db.collection('events');
  await events.insertMany([...Array(600).keys()].map((i) => ({ _id: i, tenant: `t${i % 30}`, n: i % 50, tags: i % 7 ? i % 5 : [i % 5, 'many'] })));
  await assert.rejects(events.createIndex({ n: 1 }, { unique: true }), (error) => {
    assert.equal(error.code, 67);
    assert.match(error.message, /cannot create unique index over \{ n: 1 \} with shard key pattern \{ tenant: /);
    return true;
  });
  const filters = [{ n: 7 }, { n: { $gte: 40, $lt: 45 } }, { tags: 3 }, { tags: 'many' }, { tenant: 't3', n: { $lt: 10 } }, { $or: [{ n: 1 }, { tags: 'many' }] }];
  const ids = async (cursor) => (await cursor.toArray()).map(({ _id }) => _id);
  const sorted = (list) => list.sort((x, y) => x - y);
  const expected = await Promise.all(filters.map(async (filter) => sorted(await ids(events.find(filter)))));
  await events.createIndexes([{ key: { n: 1 } }, { key: { tags: -1, n: 1 } }, { key: { tenant: 1, _id: 1 }, unique: true }]);
  for (const [i, filter] of filters.entries()) {
    assert.deepEqual(sorted(await ids(events.find(filter).batchSize(11))), expected[i], JSON.stringify(filter));
    const order = (await events.find(filter).sort({ n: -1 }).batchSize(13).toArray()).map(({ n }) => n);
    assert.deepEqual(order, [...order].sort((x, y) => y - x));
    assert.equal(order.length, expected[i].length);
  }
  const told = await events.find({ n: 7 }).explain('executionStats');
  assert.deepEqual([told.executionStats.nReturned, told.executionStats.totalDocsExamined], [12, 12]);
  assert.ok(stagesOf(told.queryPlanner.winningPlan).includes('IXSCAN'));
});

test('indexes are there after a restart, and one that was being built is finished', async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'orrery-mongo-indexes-'));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const { server, db } = await mongo(t, ['--node', `local=rocksdb:${data}/node`]);
  const items = db.collection('items');
  await items.insertMany([...Array(3000).keys()].map((n) => ({ _id: n, n, tags: [n % 3, n % 5] })));
  await items.createIndex({ tags: 1, n: -1 });
  const building = db.command({ createIndexes: 'items', indexes: [{ key: { n: 1 } }], maxTimeMS: 1 }).catch(({ code }) => assert.equal(code, 50));
  await building;
  await server.stop('SIGKILL');
  const again = (await mongo(t, ['--node', `local=rocksdb:${data}/node`])).db.collection('items');
  for (;;) {
    const told = await again.find({ n: 77 }).explain('executionStats');
    if (stagesOf(told.queryPlanner.winningPlan).includes('IXSCAN')) {
      assert.equal(told.executionStats.totalDocsExamined, 1);
      break;
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  assert.deepEqual(await names(again), ['_id_', 'tags_1_n_-1', 'n_1']);
  assert.deepEqual((await again.find({ tags: 4 }).sort({ n: -1 }).limit(3).toArray()).map(({ n }) => n), [2999, 2994, 2989]);
});

test('a cursor whose index is dropped ends with QueryPlanKilled, one that can sort goes on', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany([...Array(2000).keys()].map((n) => ({ _id: n, n })));
  await items.createIndex({ n: 1 });
  const walking = items.find({ n: { $gte: 1000 } }).batchSize(10), sorting = items.find({ n: { $gte: 1990 } }).sort({ n: 1 }).batchSize(4);
  await walking.next();
  const first = (await sorting.next()).n;
  await items.dropIndex('n_1');
  await assert.rejects(walking.toArray(), { code: 175 });
  assert.deepEqual([first, ...(await sorting.toArray()).map(({ n }) => n)], [...Array(10).keys()].map((i) => 1990 + i));
});
