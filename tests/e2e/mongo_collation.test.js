// Collations: texts compared as languages order them, in filters, orders, groups and updates.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mongo } from './mongo.js';

const loose = { locale: 'en', strength: 2 };
const names = (documents) => documents.map((document) => document.name);

async function people(db, client, sharded) {
  if (sharded) {
    await client.db('admin').command({ shardCollection: 'shop.people', key: { tenant: 'hashed' }, numInitialChunks: 4 });
  }
  const collection = db.collection('people');
  await collection.insertMany([
    { _id: 1, tenant: 1, name: 'Ann', tags: ['Red', 'blue'], home: { town: 'Köln' } },
    { _id: 2, tenant: 2, name: 'ann', tags: ['green'], home: { town: 'koln' } },
    { _id: 3, tenant: 3, name: 'Änn', tags: ['RED'], home: { town: 'Bonn' } },
    { _id: 4, tenant: 4, name: 'bob', tags: [], home: { town: 'bonn' } },
    { _id: 5, tenant: 5, name: 'Bob', tags: ['x'], home: { town: 'Ulm' } },
    { _id: 6, tenant: 6, name: 7 },
  ]);
  return collection;
}

for (const sharded of [false, true]) {
  const where = sharded ? ' of a sharded collection' : '';
  test(`filters${where} take texts for equal that the collation takes for equal`, async (t) => {
    const { db, client } = await mongo(t);
    const collection = await people(db, client, sharded);
    const ids = async (filter, collation) =>
      (await collection.find(filter, { collation }).sort({ _id: 1 }).toArray()).map((document) => document._id);
    assert.deepEqual(await ids({ name: 'ann' }), [2]);
    assert.deepEqual(await ids({ name: 'ann' }, { locale: 'en' }), [2]);
    assert.deepEqual(await ids({ name: 'ann' }, loose), [1, 2]);
    assert.deepEqual(await ids({ name: 'ann' }, { locale: 'en', strength: 1 }), [1, 2, 3]);
    assert.deepEqual(await ids({ name: 'ann' }, { locale: 'en', strength: 1, caseLevel: true }), [2]);
    assert.deepEqual(await ids({ name: { $ne: 'ann' } }, loose), [3, 4, 5, 6]);
    assert.deepEqual(await ids({ name: { $in: ['ANN', 7] } }, loose), [1, 2, 6]);
    assert.deepEqual(await ids({ name: 7 }, loose), [6]);
    assert.deepEqual(await ids({ name: { $gte: 'B' } }, loose), [4, 5]);
    assert.deepEqual(await ids({ name: { $lt: 'b' } }, { locale: 'simple' }), [1, 2, 5]);
    assert.deepEqual(await ids({ tags: 'red' }, loose), [1, 3]);
    assert.deepEqual(await ids({ tags: { $all: ['RED', 'BLUE'] } }, loose), [1]);
    assert.deepEqual(await ids({ tags: { $elemMatch: { $eq: 'reD' } } }, loose), [1, 3]);
    assert.deepEqual(await ids({ 'home.town': 'BONN' }, loose), [3, 4]);
    assert.deepEqual(await ids({ home: { town: 'BONN' } }, loose), [3, 4]);
    assert.deepEqual(await ids({ name: /^ann/ }, loose), [2]);
    assert.deepEqual(await ids({ $expr: { $eq: ['$name', 'ANN'] } }, loose), [1, 2]);
    assert.deepEqual(await ids({ $expr: { $in: ['$name', ['ANN', 'BOB']] } }, loose), [1, 2, 4, 5]);
    assert.equal(await collection.countDocuments({ name: 'BOB' }, { collation: loose }), 2);
    assert.equal((await db.command({ count: 'people', query: { name: 'BOB' }, collation: loose })).n, 2);
    assert.deepEqual((await collection.find({ tags: 'red' }, { collation: loose, projection: { 'tags.$': 1 } }).sort({ _id: 1 }).toArray()),
      [{ _id: 1, tags: ['Red'] }, { _id: 3, tags: ['RED'] }]);
    assert.deepEqual((await collection.find({ _id: 1 }, { collation: loose, projection: { tags: { $elemMatch: { $eq: 'BLUE' } } } }).toArray()),
      [{ _id: 1, tags: ['blue'] }]);
  });

  test(`documents${where} come in the order of the collation, batch by batch`, async (t) => {
    const { db, client } = await mongo(t);
    const collection = await people(db, client, sharded);
    const text = { name: { $type: 'string' } };
    const sorted = async (collation, direction = 1) =>
      names(await collection.find(text, { collation, batchSize: 2 }).sort({ name: direction }).toArray());
    assert.deepEqual(await sorted(undefined), ['Ann', 'Bob', 'ann', 'bob', 'Änn']);
    assert.deepEqual(await sorted({ locale: 'en' }), ['ann', 'Ann', 'Änn', 'bob', 'Bob']);
    assert.deepEqual(await sorted({ locale: 'en' }, -1), ['Bob', 'bob', 'Änn', 'Ann', 'ann']);
    assert.deepEqual(await sorted({ locale: 'en', caseFirst: 'upper' }), ['Ann', 'ann', 'Änn', 'Bob', 'bob']);
    assert.deepEqual(await sorted({ locale: 'sv' }), ['ann', 'Ann', 'bob', 'Bob', 'Änn']);
  });

  test(`distinct and $group${where} have one of what the collation takes for equal`, async (t) => {
    const { db, client } = await mongo(t);
    const collection = await people(db, client, sharded);
    const distinct = await collection.distinct('name', {}, { collation: loose });
    assert.deepEqual(distinct.map((name) => String(name).toLowerCase()).sort(), ['7', 'ann', 'bob', 'änn']);
    const groups = await collection.aggregate([
      { $match: { name: { $type: 'string' } } },
      { $group: { _id: '$name', count: { $sum: 1 } } },
      { $sort: { _id: -1 } },
    ], { collation: loose }).toArray();
    assert.deepEqual(groups.map((group) => [group._id.toLowerCase(), group.count]), [['bob', 2], ['änn', 1], ['ann', 2]]);
    assert.ok(['Bob', 'bob'].includes(groups[0]._id));
    const ends = [{ $group: { _id: null, least: { $min: '$name' }, most: { $max: '$name' }, last: { $max: '$_id' }, none: { $min: '$nothing' } } }];
    assert.deepEqual(await collection.aggregate(ends, { collation: { locale: 'sv' } }).toArray(), [{ _id: null, least: 7, most: 'Änn', last: 6, none: null }]);
    assert.deepEqual(await collection.aggregate([{ $match: { name: { $type: 'string' } } }, ...ends], { collation: { locale: 'en' } }).toArray(),
      [{ _id: null, least: 'ann', most: 'Bob', last: 5, none: null }]);
    const counts = await collection.aggregate([{ $sortByCount: { $arrayElemAt: ['$tags', 0] } }], { collation: loose }).toArray();
    assert.deepEqual(counts.filter((one) => one.count === 2 && one._id).map((one) => one._id.toLowerCase()), ['red']);
  });

  test(`updates and deletions${where} are for what the collation takes for equal`, async (t) => {
    const { db, client } = await mongo(t);
    const collection = await people(db, client, sharded);
    const updated = await collection.updateMany({ name: 'ANN' }, { $set: { seen: true } }, { collation: loose });
    assert.deepEqual([updated.matchedCount, updated.modifiedCount], [2, 2]);
    await collection.updateOne({ _id: 1, tenant: 1 }, { $pull: { tags: 'BLUE' } }, { collation: loose });
    await collection.updateOne({ _id: 2, tenant: 2 }, { $addToSet: { tags: { $each: ['GREEN', 'pink'] } } }, { collation: loose });
    await collection.updateOne({ _id: 3, tenant: 3 }, { $set: { 'tags.$[t]': 'none' } }, { collation: loose, arrayFilters: [{ t: 'red' }] });
    await collection.updateOne({ _id: 5, tenant: 5 }, { $push: { tags: { $each: ['B', 'a', 'C'], $sort: 1 } } }, { collation: loose });
    assert.deepEqual((await collection.find().sort({ _id: 1 }).toArray()).map((document) => document.tags),
      [['Red'], ['green', 'pink'], ['none'], [], ['a', 'B', 'C', 'x'], undefined]);
    const modified = await collection.findOneAndUpdate({ name: 'BOB', tenant: 4 }, { $set: { name: 'Robert' } }, { collation: loose, returnDocument: 'after' });
    assert.equal(modified.name, 'Robert');
    const upserted = await collection.updateOne({ name: 'CARL', tenant: 9 }, { $set: { a: 1 } }, { collation: loose, upsert: true });
    assert.equal((await collection.findOne({ _id: upserted.upsertedId })).name, 'CARL');
    assert.equal((await collection.updateOne({ name: 'carl', tenant: 9 }, { $set: { a: 2 } }, { collation: loose, upsert: true })).matchedCount, 1);
    assert.equal((await collection.deleteMany({ name: { $in: ['ANN', 'BOB'] } }, { collation: loose })).deletedCount, 3);
    await collection.insertOne({ _id: 'abc', tenant: 'x' });
    assert.equal((await collection.updateOne({ _id: 'ABC', tenant: 'X' }, { $set: { a: 1 } }, { collation: loose })).matchedCount, 1);
    assert.equal((await collection.find({ _id: 'ABC', tenant: 'X' }, { collation: loose }).toArray()).length, 1);
    assert.equal((await collection.deleteOne({ _id: 'ABC', tenant: 'X' }, { collation: loose })).deletedCount, 1);
  });
}

test('digits count as numbers, accents from behind, and punctuation not at all where that is asked for', async (t) => {
  const { db } = await mongo(t);
  const words = db.collection('words');
  const sorted = async (list, collation) => {
    await words.deleteMany({});
    await words.insertMany(list.map((word) => ({ word })));
    return (await words.find({}, { collation }).sort({ word: 1 }).toArray()).map((document) => document.word);
  };
  assert.deepEqual(await sorted(['a10', 'a9', 'a1'], { locale: 'en' }), ['a1', 'a10', 'a9']);
  assert.deepEqual(await sorted(['a10', 'a9', 'a1'], { locale: 'en', numericOrdering: true }), ['a1', 'a9', 'a10']);
  const french = ['coté', 'cote', 'côté', 'côte'];
  assert.deepEqual(await sorted(french, { locale: 'fr' }), ['cote', 'coté', 'côte', 'côté']);
  assert.deepEqual(await sorted(french, { locale: 'fr', backwards: true }), ['cote', 'côte', 'coté', 'côté']);
  assert.deepEqual(await sorted(french, { locale: 'fr_CA' }), ['cote', 'côte', 'coté', 'côté']);
  await sorted(['re-do', 'redo'], { locale: 'en' });
  assert.equal(await words.countDocuments({ word: 'redo' }, { collation: { locale: 'en', alternate: 'shifted', strength: 1 } }), 2);
  const long = 'é'.repeat(3000);
  await words.insertOne({ word: long });
  assert.equal(await words.countDocuments({ word: 'E'.repeat(3000) }, { collation: { locale: 'en', strength: 1 } }), 1);
});

test('an index serves numbers under a collation, and misleads no text', async (t) => {
  const { db } = await mongo(t);
  const collection = db.collection('indexed');
  await collection.createIndex({ a: 1 });
  await collection.insertMany([{ _id: 1, a: 'x' }, { _id: 2, a: 'X' }, { _id: 3, a: 5 }, { _id: 4, a: [5, 'x'] }]);
  const ids = async (filter) => (await collection.find(filter, { collation: loose, hint: 'a_1' }).sort({ _id: 1 }).toArray()).map((one) => one._id);
  assert.deepEqual(await ids({ a: 'X' }), [1, 2, 4]);
  assert.deepEqual(await ids({ a: 5 }), [3, 4]);
  assert.deepEqual(await ids({ a: { $gte: 'W' } }), [1, 2, 4]);
  const plan = JSON.stringify(await collection.find({ a: 5 }, { collation: loose }).explain('queryPlanner'));
  assert.match(plan, /a_1/);
  assert.equal(await collection.countDocuments({ _id: 'nobody' }, { collation: loose }), 0);
});

test('stages of pipelines compare by the collation', async (t) => {
  const { db } = await mongo(t);
  await db.collection('orders').insertMany([{ _id: 1, who: 'ANN', size: 'b' }, { _id: 2, who: 'bob', size: 'D' }]);
  await db.collection('people').insertMany([{ _id: 1, name: 'ann' }, { _id: 2, name: 'Bob' }, { _id: 3, name: 'carl' }]);
  const run = (pipeline, collation = loose) => db.collection('orders').aggregate(pipeline, { collation }).toArray();
  const joined = await run([{ $lookup: { from: 'people', localField: 'who', foreignField: 'name', as: 'found' } }, { $sort: { who: 1 } }]);
  assert.deepEqual(joined.map((order) => order.found.map((person) => person._id)), [[1], [2]]);
  await db.collection('chain').insertMany([{ _id: 'a', next: 'B' }, { _id: 'b', next: 'C' }, { _id: 'c', next: 'A' }, { _id: 'd' }]);
  const walk = [{ $limit: 1 }, { $graphLookup: { from: 'chain', startWith: 'A', connectFromField: 'next', connectToField: '_id', as: 'way' } }];
  assert.deepEqual((await run(walk))[0].way.map((one) => one._id).sort(), ['a', 'b', 'c']);
  assert.deepEqual((await run(walk, { locale: 'simple' }))[0].way, []);
  assert.deepEqual(await run([{ $bucket: { groupBy: '$size', boundaries: ['A', 'c', 'E'] } }]), [{ _id: 'A', count: 1 }, { _id: 'c', count: 1 }]);
  assert.deepEqual(await run([{ $sort: { _id: 1 } }, { $project: { is: { $eq: ['$who', 'ann'] }, less: { $lt: ['$size', 'C'] } } }]),
    [{ _id: 1, is: true, less: true }, { _id: 2, is: false, less: false }]);
  assert.deepEqual(await run([{ $facet: { few: [{ $match: { who: 'BOB' } }, { $project: { _id: 1 } }] } }]), [{ few: [{ _id: 2 }] }]);
  for (const pipeline of [
    [{ $group: { _id: null, all: { $addToSet: '$who' } } }],
    [{ $project: { all: { $setUnion: [['a'], ['$who']] } } }],
    [{ $bucketAuto: { groupBy: '$who', buckets: 2 } }],
  ]) {
    await assert.rejects(run(pipeline), { code: 238, message: /collation other than simple is not offered yet/ });
    await run(pipeline, { locale: 'simple' });
  }
});

test('a collation that is none is refused with the words of MongoDB', async (t) => {
  const { db } = await mongo(t);
  await db.collection('people').insertOne({ a: 'x' });
  const find = (collation) => db.command({ find: 'people', filter: { a: 'x' }, collation });
  await assert.rejects(find({ locale: 'xx' }), { code: 2, message: 'Field \'locale\' is invalid in: { locale: "xx" }' });
  await assert.rejects(find({ locale: 'de@collation=nobody' }), { code: 2 });
  await assert.rejects(find({ locale: 'en', strength: 6 }), { code: 2 });
  await assert.rejects(find({ locale: 'en', caseFirst: 'both' }), { code: 2 });
  await assert.rejects(find({ locale: 'en', backwards: true, strength: 1 }), { code: 2 });
  await assert.rejects(find({ locale: 'en', caseFirst: 'upper', strength: 1 }), { code: 2 });
  await assert.rejects(find({ locale: 'simple', strength: 1 }), { code: 2 });
  await assert.rejects(find({ locale: 5 }), { code: 14 });
  await assert.rejects(find({ locale: 'en', numericOrdering: 1 }), { code: 14 });
  await assert.rejects(find({ strength: 1 }), { code: 40414 });
  await assert.rejects(find({ locale: 'en', strenght: 1 }), { code: 40415 });
  await assert.rejects(find({ locale: 'en', version: '1' }), { code: 161 });
  await assert.rejects(find('en'), { code: 14 });
  assert.equal((await find({ locale: 'de@collation=phonebook' })).cursor.firstBatch.length, 1);
  await db.createCollection('seen', { viewOn: 'people', pipeline: [] });
  await assert.rejects(db.command({ find: 'seen', collation: loose }), { code: 167 });
  await assert.rejects(db.command({ count: 'seen', collation: loose }), { code: 167 });
  await assert.rejects(db.collection('seen').aggregate([], { collation: loose }).toArray(), { code: 167 });
  assert.equal((await find({})).cursor.firstBatch.length, 1);
});
