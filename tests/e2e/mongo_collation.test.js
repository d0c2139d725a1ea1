// Collations: texts compared as languages order them, in filters, orders, groups and updates.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mongo, mongoClient } from './mongo.js';
import { scratch, Server } from './server.js';

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
});

test('windows, fills, gaps and even buckets compare by the collation', async (t) => {
  const { db } = await mongo(t);
  // by bytes: B C a b c; by letters: a b B c C
  await db.collection('words').insertMany(['b', 'B', 'a', 'C', 'c'].map((w, _id) => ({ _id, w, n: _id, at: _id * 10, ...(_id % 2 ? {} : { v: _id }) })));
  const run = (pipeline, collation = loose) => db.collection('words').aggregate(pipeline, { collation }).toArray();
  const simple = { locale: 'simple' };
  const window = (output) => [{ $setWindowFields: { partitionBy: '$w', sortBy: { _id: 1 }, output } }, { $sort: { _id: 1 } }, { $project: { _id: 1, x: 1 } }];
  const x = (documents) => documents.map((document) => document.x);
  const all = { window: { documents: ['unbounded', 'unbounded'] } };
  assert.deepEqual(x(await run(window({ x: { $sum: 1, ...all } }))), [2, 2, 1, 2, 2]);
  assert.deepEqual(x(await run(window({ x: { $sum: 1, ...all } }), simple)), [1, 1, 1, 1, 1]);
  const ranked = (rank) => [{ $setWindowFields: { sortBy: { w: 1 }, output: { x: { [rank]: {} } } } }, { $sort: { _id: 1 } }];
  assert.deepEqual(x(await run(ranked('$rank'))), [2, 2, 1, 4, 4]);
  assert.deepEqual(x(await run(ranked('$denseRank'))), [2, 2, 1, 3, 3]);
  assert.deepEqual(x(await run(ranked('$rank'), simple)), [4, 1, 3, 2, 5]);
  const ends = (what, collation) => run([{ $setWindowFields: { output: { x: { [what]: '$w', ...all } } } }, { $limit: 1 }], collation).then((found) => found[0].x);
  assert.equal(await ends('$min'), 'a');
  assert.equal((await ends('$max')).toLowerCase(), 'c');
  assert.equal(await ends('$min', simple), 'B');
  assert.deepEqual((await ends('$addToSet')).map((w) => w.toLowerCase()).sort(), ['a', 'b', 'c']);
  // what was there before it in its partition
  const filled = (collation) => run([{ $fill: { partitionBy: '$w', sortBy: { _id: 1 }, output: { v: { method: 'locf' } } } }, { $sort: { _id: 1 } }], collation);
  assert.deepEqual((await filled()).map(({ v }) => v), [0, 0, 2, null, 4]);
  assert.deepEqual((await filled(simple)).map(({ v }) => v), [0, null, 2, null, 4]);
  // b and B, 0 and 1, have one between them where they are one partition
  const dense = (collation) => run([{ $match: { w: { $in: ['b', 'B'] } } }, { $densify: { field: 'n', partitionByFields: ['w'], range: { step: 0.5, bounds: 'partition' } } }], collation);
  assert.deepEqual((await dense()).map(({ n }) => n).sort(), [0, 0.5, 1]);
  assert.deepEqual((await dense(simple)).map(({ n }) => n).sort(), [0, 1]);
  const buckets = (collation) => run([{ $bucketAuto: { groupBy: '$w', buckets: 2, output: { n: { $sum: 1 } } } }], collation);
  const [first, second] = await buckets();
  assert.deepEqual([first._id.min, first.n, second.n], ['a', 3, 2]); // b and B stay together
  assert.deepEqual([first._id.max, second._id.max].map((w) => w.toLowerCase()), ['c', 'c']);
  assert.deepEqual((await buckets(simple)).map(({ _id, n }) => [_id.min, _id.max, n]), [['B', 'b', 3], ['b', 'c', 2]]);
});

test('accumulators and expressions compare by the collation', async (t) => {
  const { db } = await mongo(t);
  await db.collection('words').insertMany(['b', 'A', 'B', 'a', 'c'].map((w, _id) => ({ _id, w, list: ['b', 'A', 'B', 'a', 'c'], rows: [{ k: 'B' }, { k: 'a' }, { k: 'C' }] })));
  const run = async (pipeline, collation = loose) => db.collection('words').aggregate([{ $sort: { _id: 1 } }, ...pipeline], { collation }).toArray();
  const group = async (accumulator) => (await run([{ $group: { _id: null, x: accumulator } }]))[0].x;
  assert.deepEqual((await group({ $addToSet: '$w' })).map((w) => w.toLowerCase()).sort(), ['a', 'b', 'c']);
  assert.deepEqual((await group({ $minN: { input: '$w', n: 2 } })).map((w) => w.toLowerCase()), ['a', 'a']);
  assert.deepEqual((await group({ $maxN: { input: '$w', n: 3 } })).map((w) => w.toLowerCase()), ['c', 'b', 'b']);
  assert.equal(await group({ $top: { sortBy: { w: -1 }, output: '$_id' } }), 4);
  assert.deepEqual((await group({ $bottomN: { sortBy: { w: -1 }, output: '$w', n: 2 } })).map((w) => w.toLowerCase()), ['a', 'a']);
  const value = async (expression, collation) => (await run([{ $limit: 1 }, { $project: { x: expression } }], collation))[0].x;
  assert.deepEqual(await value({ $setUnion: ['$list', ['C', 'd']] }), ['A', 'b', 'c', 'd']);
  assert.deepEqual(await value({ $setUnion: ['$list', ['C', 'd']] }, { locale: 'simple' }), ['A', 'B', 'C', 'a', 'b', 'c', 'd']);
  assert.deepEqual(await value({ $setIntersection: ['$list', ['a', 'C', 'x']] }), ['A', 'c']);
  assert.deepEqual(await value({ $setDifference: ['$list', ['B']] }), ['A', 'c']);
  assert.equal(await value({ $setEquals: ['$list', ['A', 'B', 'C']] }), true);
  assert.equal(await value({ $setIsSubset: [['B', 'C'], '$list'] }), true);
  assert.equal(await value({ $setIsSubset: [['B', 'C'], '$list'] }, { locale: 'simple' }), false);
  assert.deepEqual(await value({ $sortArray: { input: '$list', sortBy: 1 } }), ['A', 'a', 'b', 'B', 'c']);
  assert.deepEqual(await value({ $sortArray: { input: '$rows', sortBy: { k: -1 } } }), [{ k: 'C' }, { k: 'B' }, { k: 'a' }]);
  assert.equal(await value({ $max: ['b', 'A', 'C'] }), 'C');
  assert.equal(await value({ $min: '$list' }), 'A');
  assert.deepEqual(await value({ $minN: { input: '$list', n: 1 } }), ['A']);
});

// Every answer by an index is the answer without one.
for (const sharded of [false, true]) {
  test(`an index with a collation serves its own collation alone${sharded ? ', sharded' : ''}`, async (t) => {
    const { db, client } = await mongo(t);
    if (sharded) await client.db('admin').command({ shardCollection: 'shop.words', key: { n: 'hashed' }, numInitialChunks: 4 });
    const words = db.collection('words');
    const texts = ['ann', 'Ann', 'ANN', 'änn', 'bob', 'Bob', 'carl', 'CARL', 'é'.repeat(400), 'É'.repeat(400)];
    await words.insertMany(texts.flatMap((word, i) => [
      { _id: i, n: i, word, label: word, other: i % 3 }, { _id: 100 + i, n: i, word: [word, i], label: word, other: 'X' },
      { _id: 200 + i, n: i, word: { in: word }, label: word, other: 'x' }]));
    await words.insertOne({ _id: 999, n: 9 });
    const filters = [
      { word: 'ANN' }, { word: { $in: ['ann', 'BOB'] } }, { word: { $gte: 'B', $lt: 'C' } }, { word: { $gt: 'bob' } }, { word: { $ne: 'ann' } },
      { word: { in: 'CARL' } }, { word: 5 }, { word: null }, { word: /^ann/ }, { word: { $in: [/^b/, 'ANN'] } }, { word: 'É'.repeat(400) },
      { word: 'ann', other: 'x' }, { $or: [{ word: 'ANN' }, { other: 'x' }] }, { word: { $exists: true }, other: 1 }, { word: { $type: 'string' } },
      { $expr: { $eq: ['$word', 'ANN'] } }, { 'word.in': 'ann' }, { word: { $elemMatch: { $eq: 'BOB' } } },
    ];
    const sorts = [{ word: 1, _id: 1 }, { word: -1, _id: 1 }, { _id: 1 }, { other: 1, word: -1, _id: 1 }, { other: 1, label: -1, _id: 1 }];
    const collations = [undefined, loose, { locale: 'en', strength: 1 }, { locale: 'sv' }];
    const answers = async () => {
      const all = [];
      for (const filter of filters) for (const collation of collations) for (const sort of sorts) {
        all.push((await words.find(filter, { collation }).sort(sort).batchSize(7).toArray()).map((one) => one._id));
      }
      return all;
    };
    const before = await answers();
    await words.createIndex({ word: 1 }, { collation: loose });
    await words.createIndex({ word: 1 }, { name: 'simple' });
    await words.createIndex({ other: 1, word: -1 }, { collation: loose });
    await words.createIndex({ other: 1, label: -1 }, { collation: loose });
    await words.createIndex({ word: 1, _id: 1 }, { name: 'partial', collation: { locale: 'en', strength: 1 }, partialFilterExpression: { other: 'X' } });
    await words.createIndex({ '$**': 1 }, { name: 'wild', collation: { locale: 'sv' } });
    assert.deepEqual(await answers(), before);

    const used = async (filter, options) => JSON.stringify((await words.find(filter, options).explain('queryPlanner')).queryPlanner.winningPlan ?? (await words.find(filter, options).explain('queryPlanner')).queryPlanner);
    assert.match(await used({ word: 'ANN' }, { collation: loose }), /"indexName":"word_1"/);
    assert.match(await used({ word: 'ANN' }), /"indexName":"simple"/);
    assert.doesNotMatch(await used({ word: 'ANN' }, { collation: { locale: 'de' } }), /IXSCAN/);
    assert.match(await used({}, { collation: loose, sort: { other: 1, label: -1 } }), /"indexName":"other_1_label_-1"/);
    assert.doesNotMatch(await used({}, { sort: { other: 1, label: -1 } }), /IXSCAN/);
    const shown = (await words.listIndexes().toArray()).find((index) => index.name === 'word_1');
    assert.deepEqual(shown.collation, { locale: 'en', caseLevel: false, caseFirst: 'off', strength: 2, numericOrdering: false,
      alternate: 'non-ignorable', maxVariable: 'punct', normalization: false, backwards: false, version: '57.1' });
    await words.updateMany({ word: 'ANN' }, { $set: { word: 'dora' } }, { collation: loose });
    await words.deleteMany({ word: 'BOB' }, { collation: loose });
    assert.equal((await words.find({ word: 'DORA' }, { collation: loose, hint: 'word_1' }).toArray()).length, 6);
    assert.equal((await words.find({ word: 'bob' }, { collation: loose, hint: 'word_1' }).toArray()).length, 0);
  });
}

test('a unique index with a collation refuses what it takes for equal', async (t) => {
  const { db } = await mongo(t);
  const users = db.collection('users');
  await users.createIndex({ mail: 1 }, { unique: true, collation: loose });
  await users.insertOne({ _id: 1, mail: 'Ann@example.org' });
  await assert.rejects(users.insertOne({ mail: 'ann@EXAMPLE.org' }), { code: 11000, message: /E11000.*mail_1 dup key: \{ mail: "ann@EXAMPLE.org" \}/ });
  await users.insertOne({ _id: 2, mail: 'bob@example.org' });
  await assert.rejects(users.updateOne({ _id: 2 }, { $set: { mail: 'ANN@example.org' } }), { code: 11000 });
  await users.insertOne({ _id: 3, mail: 'Bob@example.com' });
  await db.collection('late').insertMany([{ a: 'x' }, { a: 'X' }]);
  await assert.rejects(db.collection('late').createIndex({ a: 1 }, { unique: true, collation: loose }), { code: 11000 });
  await db.collection('late').createIndex({ a: 1 }, { unique: true });
});

test('a collection compares by its collation, and so do its indexes and its _id', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${scratch(t)}`];
  const server = await Server.start(t, args);
  const client = await mongoClient(t, server.mongo);
  const db = client.db('shop');
  const people = await db.createCollection('people', { collation: loose });
  await people.createIndex({ name: 1 });
  await people.createIndex({ name: -1 }, { collation: { locale: 'simple' } });
  await people.insertMany([{ _id: 'a', name: 'Ann', tags: ['X'] }, { _id: 'b', name: 'ann' }, { _id: 'C', name: 'bob' }]);
  const [listed] = await db.listCollections({ name: 'people' }).toArray();
  assert.equal(listed.options.collation.strength, 2);
  const indexes = Object.fromEntries((await people.listIndexes().toArray()).map((index) => [index.name, index.collation?.strength]));
  assert.deepEqual(indexes, { _id_: 2, name_1: 2, 'name_-1': undefined });
  assert.equal(await people.countDocuments({ name: 'ANN' }), 2);
  assert.equal(await people.countDocuments({ name: 'ANN' }, { collation: { locale: 'simple' } }), 0);
  assert.equal((await db.command({ count: 'people', query: { name: 'ANN' } })).n, 2);
  assert.equal((await people.distinct('name')).length, 2);
  assert.equal((await people.findOne({ _id: 'A' })).name, 'Ann');
  assert.equal((await people.findOne({ _id: 'A' }, { collation: { locale: 'simple' } })), null);
  await assert.rejects(people.insertOne({ _id: 'c' }), { code: 11000, message: /_id_ dup key: \{ _id: "c" \}/ });
  assert.equal((await people.updateOne({ _id: 'B' }, { $set: { seen: true } })).modifiedCount, 1);
  assert.equal((await people.updateOne({ _id: 'a' }, { $addToSet: { tags: 'x' } })).modifiedCount, 0);
  assert.deepEqual((await people.aggregate([{ $match: { name: 'ANN' } }, { $group: { _id: '$name', n: { $sum: 1 } } }]).toArray()).map((one) => one.n), [2]);
  assert.match(JSON.stringify(await people.find({ name: 'ANN' }).explain()), /"indexName":"name_1"/);
  await assert.rejects(people.createIndex({ _id: 1 }, { collation: { locale: 'de' } }), { code: 2 });
  await assert.rejects(client.db('admin').command({ shardCollection: 'shop.people', key: { _id: 'hashed' } }), { code: 2, message: /collation/ });

  await db.createCollection('loosely', { viewOn: 'people', pipeline: [], collation: loose });
  await db.createCollection('strictly', { viewOn: 'people', pipeline: [] });
  assert.equal(await db.collection('loosely').countDocuments({ name: 'ANN' }), 2);
  assert.equal(await db.collection('strictly').countDocuments({ name: 'ANN' }), 0);
  assert.equal((await db.collection('loosely').find({ name: 'ANN' }, { collation: loose }).toArray()).length, 2);
  await assert.rejects(db.collection('loosely').find({}, { collation: { locale: 'de' } }).toArray(), { code: 167 });
  await assert.rejects(db.createCollection('mixed', { viewOn: 'loosely', pipeline: [] }), { code: 167 });
  await assert.rejects(people.aggregate([{ $lookup: { from: 'strictly', localField: 'name', foreignField: 'name', as: 'x' } }]).toArray(), { code: 167 });

  await assert.rejects(db.collection('people').dropIndex('_id_'), { code: 72 });
  await people.dropIndexes();
  assert.deepEqual((await people.listIndexes().toArray()).map((index) => index.name), ['_id_']);
  await assert.rejects(people.insertOne({ _id: 'B' }), { code: 11000 });
  await client.close();
  await server.stop();
  const again = (await mongoClient(t, (await Server.start(t, args)).mongo)).db('shop').collection('people');
  assert.equal(await again.countDocuments({ name: 'ANN' }), 2);
  await assert.rejects(again.insertOne({ _id: 'A' }), { code: 11000 });
  await again.deleteOne({ _id: 'A' });
  await again.insertOne({ _id: 'A', name: 'new' });
  assert.equal((await again.findOne({ _id: 'a' })).name, 'new');
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
