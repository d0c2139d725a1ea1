// What find says of the entries of indexes: min, max, returnKey, showRecordId.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Long } from 'mongodb';
import { mongo } from './mongo.js';

const failsWith = (code, work) => assert.rejects(work, (error) => error.code === code);
const idsOf = (documents) => documents.map(({ _id }) => _id);

// Values of the documents below in the order of indexes: null, numbers, texts.
const rank = (value) => (value === null ? 0 : typeof value === 'number' ? 1 : 2);
const compare = (left, right) => rank(left) - rank(right) || (left < right ? -1 : left > right ? 1 : 0);

// The entries of a document in an index {a: 1, b: -1}: one for each element of an array.
const entriesOf = ({ a = null, b = null }) => (Array.isArray(a) ? a.map((element) => [element, b]) : [[a, b]]);
const compareEntries = (left, right) => compare(left[0], right[0]) || -compare(left[1], right[1]);

const long = (letter) => letter.repeat(400); // longer than what an entry keeps of a text

function documents() {
  const values = [null, -5, 0, 1, 2.5, 7, 'a', 'b', long('c'), `${long('c')}d`, long('e')];
  const list = [];
  for (const a of values) for (const b of values) list.push({ _id: list.length, a, b });
  list.push({ _id: list.length }, { _id: list.length + 1, a: 1 }, { _id: list.length + 2, a: [1, 7, 'a'], b: 2 }, { _id: list.length + 3, a: [0, 'z'], b: -5 });
  return { values, list };
}

const ways = [{ name: 'unsharded' }, { name: 'hashed', key: { _id: 'hashed' }, chunks: 4 }, { name: 'ranged', key: { b: 1 } }];

for (const way of ways)
  test(`${way.name}: min is the first entry that is looked at, max the first that is not`, async (t) => {
    const { client, db } = await mongo(t);
    const { values, list } = documents();
    const collection = db.collection('pairs');
    if (way.key) await client.db('admin').command({ shardCollection: 'shop.pairs', key: way.key, ...(way.chunks ? { numInitialChunks: way.chunks } : {}) });
    await collection.insertMany(list);
    await collection.createIndex({ a: 1, b: -1 });
    const within = (min, max) => idsOf(list.filter((document) => entriesOf(document).some((entry) =>
      (!min || compareEntries(entry, min) >= 0) && (!max || compareEntries(entry, max) < 0))));
    const bound = (entry) => entry && { a: entry[0], b: entry[1] };
    const bounds = [undefined];
    for (const a of [null, 1, 3, 'b', long('c')]) for (const b of [null, 0, 'a', `${long('c')}d`]) bounds.push([a, b]);
    let asked = 0;
    for (const min of bounds)
      for (const max of bounds) {
        const command = { find: 'pairs', hint: { a: 1, b: -1 }, batchSize: 1000, ...(min && { min: bound(min) }), ...(max && { max: bound(max) }) };
        if (!min && !max) continue;
        if (min && max && compareEntries(min, max) >= 0) {
          await failsWith(51175, db.command(command));
          continue;
        }
        const found = idsOf((await db.command(command)).cursor.firstBatch);
        assert.deepEqual(found.sort((x, y) => x - y), within(min, max), JSON.stringify(command).slice(0, 200));
        asked++;
      }
    assert.ok(asked > 100);
    assert.ok(values.length);

    // with a filter, an order, a limit; in batches
    const options = { hint: 'a_1_b_-1', min: { a: 0, b: 7 }, max: { a: 'b', b: null }, sort: { a: 1, b: -1 }, batchSize: 7 };
    const filter = { b: { $gte: -5 } };
    const expected = list.filter((document) => within([0, 7], ['b', null]).includes(document._id) && typeof document.b === 'number' && document.b >= -5);
    const ordered = (await collection.find(filter, options).toArray());
    assert.deepEqual(idsOf(ordered).sort((x, y) => x - y), idsOf(expected));
    const keys = ordered.filter(({ a }) => !Array.isArray(a)).map(({ a, b }) => [a, b]);
    for (let i = 1; i < keys.length; i++) assert.ok(compareEntries(keys[i - 1], keys[i]) <= 0);
    assert.deepEqual(idsOf(await collection.find(filter, { ...options, limit: 3 }).toArray()), idsOf(ordered).slice(0, 3));
    assert.equal((await collection.find({ b: 'nowhere' }, options).toArray()).length, 0);

    // by _id
    const some = idsOf(await collection.find({}, { hint: { _id: 1 }, min: { _id: 5 }, max: { _id: 9 } }).toArray());
    assert.deepEqual(some.sort((x, y) => x - y), [5, 6, 7, 8]);
  });

test('a walk keeps within the bounds', async (t) => {
  const { db } = await mongo(t);
  await db.collection('many').insertMany(Array.from({ length: 2000 }, (_, i) => ({ _id: i, a: i })));
  await db.collection('many').createIndex({ a: 1 });
  for (const sort of [undefined, { a: 1 }, { a: -1 }]) {
    const plan = await db.collection('many').find({}, { min: { a: 100 }, max: { a: 110 }, hint: { a: 1 }, sort }).explain('executionStats');
    assert.equal(plan.executionStats.nReturned, 10);
    assert.ok(plan.executionStats.totalKeysExamined <= 12, JSON.stringify(plan.executionStats));
    assert.ok(plan.executionStats.totalDocsExamined <= 12, JSON.stringify(plan.executionStats));
  }
});

test('bounds that an index cannot have are refused by their code', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('pairs');
  await collection.insertOne({ a: 1, b: 2 });
  await collection.createIndex({ a: 1, b: 1 });
  await collection.createIndex({ h: 'hashed' });
  await collection.createIndex({ '$**': 1 });
  await collection.createIndex({ t: 1 }, { collation: { locale: 'en', strength: 2 } });
  const find = (rest) => db.command({ find: 'pairs', ...rest });
  await failsWith(51173, find({ min: { a: 1, b: 1 } }));
  await failsWith(51173, find({ min: { a: 1, b: 1 }, hint: { $natural: 1 } }));
  await failsWith(51174, find({ min: { a: 1 }, hint: { a: 1, b: 1 } }));
  await failsWith(51174, find({ max: { b: 1, a: 1 }, hint: { a: 1, b: 1 } }));
  await failsWith(51174, find({ max: { a: 1, b: 1, c: 1 }, hint: { a: 1, b: 1 } }));
  await failsWith(51174, find({ max: { h: 1 }, hint: { h: 'hashed' } }));
  await failsWith(51174, find({ max: { '$**': 1 }, hint: '$**_1' }));
  await failsWith(51174, find({ max: { t: 'x' }, hint: { t: 1 } }));
  await failsWith(51176, find({ min: { a: 1, b: 1 }, max: { a: 1 }, hint: { a: 1, b: 1 } }));
  await failsWith(51175, find({ min: { a: 1, b: 1 }, max: { a: 1, b: 1 }, hint: { a: 1, b: 1 } }));
  await failsWith(2, find({ min: { z: 1 }, hint: { z: 1 } }));
  await failsWith(14, find({ min: 1, hint: { a: 1, b: 1 } }));
  const empty = await find({ min: {}, max: {} });
  assert.equal(empty.cursor.firstBatch.length, 1);
  await db.createCollection('seen', { viewOn: 'pairs', pipeline: [] });
  for (const option of [{ min: { a: 1, b: 1 } }, { max: { a: 1, b: 1 } }, { returnKey: true }, { showRecordId: true }])
    await failsWith(168, db.command({ find: 'seen', ...option }));
});

test('bounds compare texts by the collation of index and query', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('words');
  const collation = { locale: 'en', strength: 2 };
  await collection.insertMany(['apple', 'Banana', 'cherry', 'Date'].map((_id) => ({ _id, w: _id })));
  await collection.createIndex({ w: 1 }, { collation });
  const found = await collection.find({}, { min: { w: 'BANANA' }, max: { w: 'date' }, hint: { w: 1 }, collation }).sort({ w: 1 }).toArray();
  assert.deepEqual(idsOf(found), ['Banana', 'cherry']);
});

test('a cursor within bounds ends where its index is gone', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('many');
  await collection.insertMany(Array.from({ length: 50 }, (_, i) => ({ a: i, b: i })));
  await collection.createIndex({ a: 1 }, { name: 'x' });
  const { cursor } = await db.command({ find: 'many', min: { a: 10 }, hint: 'x', batchSize: 5 });
  await collection.dropIndex('x');
  await collection.createIndex({ b: 1 }, { name: 'x' });
  await assert.rejects(db.command({ getMore: cursor.id, collection: 'many' }), (error) => [2, 175].includes(error.code));
});

test('returnKey shows the entry that a document was found by', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('keys');
  await collection.insertMany([
    { _id: 1, a: 5, b: { c: 'x' }, other: 1 }, { _id: 2, a: Long.fromNumber(6), b: { c: null } }, { _id: 3, a: [7, 20, 1] }, { _id: 4, a: long('k'), b: { c: 2 } },
  ]);
  await collection.createIndex({ a: 1, 'b.c': -1 });
  const keys = (filter, options = {}) => collection.find(filter, { returnKey: true, promoteLongs: false, ...options }).toArray();
  assert.deepEqual(await keys({ a: 5 }), [{ a: 5, 'b.c': 'x' }]);
  assert.deepEqual(await keys({ a: 6 }), [{ a: Long.fromNumber(6), 'b.c': null }]);
  assert.deepEqual(await keys({ a: 20 }), [{ a: 20, 'b.c': null }]);
  assert.deepEqual(await keys({ a: { $gt: 6, $lt: 20 } }), [{ a: 7, 'b.c': null }]);
  assert.deepEqual(await keys({ a: long('k') }), [{ a: long('k'), 'b.c': 2 }]);
  // the projection does not count, an order does
  assert.deepEqual(await keys({ a: { $type: 'number' } }, { hint: { a: 1, 'b.c': -1 }, sort: { a: -1 }, projection: { other: 1 } }),
    [{ a: 20, 'b.c': null }, { a: Long.fromNumber(6), 'b.c': null }, { a: 5, 'b.c': 'x' }]);
  assert.deepEqual(await keys({ other: 1 }), [{}]); // no index has it
  assert.deepEqual(await keys({ _id: 2 }), [{ _id: 2 }]);
  assert.deepEqual(await keys({ other: 1 }, { hint: { _id: 1 } }), [{ _id: 1 }]);
});

test('showRecordId adds a number that is a document\'s own and stays', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('numbered');
  await collection.insertMany(Array.from({ length: 20 }, (_, i) => ({ _id: i, a: i })));
  const read = async (options) => collection.find({}, { showRecordId: true, promoteLongs: false, ...options }).sort({ _id: 1 }).toArray();
  const first = await read();
  assert.equal(new Set(first.map(({ $recordId }) => String($recordId))).size, 20);
  assert.ok(first.every(({ $recordId }) => $recordId instanceof Long));
  await collection.updateMany({}, { $inc: { a: 1 } });
  const second = await read({ projection: { a: 1, _id: 0 } });
  assert.deepEqual(second.map(({ $recordId }) => $recordId), first.map(({ $recordId }) => $recordId));
  assert.deepEqual(Object.keys(second[0]), ['a', '$recordId']);
  const [one] = await collection.find({ _id: 3 }, { showRecordId: true }).toArray();
  assert.ok(one.$recordId > 0);
});
