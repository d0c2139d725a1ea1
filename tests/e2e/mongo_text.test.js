// MongoDB's text indexes, $text and textScore, through npm `mongodb`.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mongo } from './mongo.js';

const ids = async (cursor) => (await cursor.toArray()).map(({ _id }) => _id).sort();

async function articles(t, key, options = {}, args = []) {
  const { server, db } = await mongo(t, args);
  const collection = db.collection('articles');
  await collection.createIndex(key, options);
  await collection.insertMany([
    { _id: 1, subject: 'coffee', author: 'xyz', views: 50 },
    { _id: 2, subject: 'Coffee Shopping', author: 'efg', views: 5 },
    { _id: 3, subject: 'Baking a cake', author: 'abc', views: 90 },
    { _id: 4, subject: 'baking', author: 'xyz', views: 100 },
    { _id: 5, subject: 'Café Con Leche', author: 'abc', views: 200 },
    { _id: 6, subject: 'Сырники', author: 'jkl', views: 80 },
    { _id: 7, subject: 'coffee and cream', author: 'efg', views: 10 },
    { _id: 8, subject: 'Cafe con Leche', author: 'xyz', views: 10 },
  ]);
  return { server, db, collection };
}

const search = (collection, $search, more = {}) => ids(collection.find({ $text: { $search, ...more } }));

test('words, phrases and negations are found as the manual has them', async (t) => {
  const { collection } = await articles(t, { subject: 'text' });
  assert.deepEqual(await search(collection, 'coffee'), [1, 2, 7]);
  assert.deepEqual(await search(collection, 'bake coffee cake'), [1, 2, 3, 4, 7]);
  assert.deepEqual(await search(collection, '"coffee shop"'), [2]);
  assert.deepEqual(await search(collection, 'coffee -shop'), [1, 7]);
  assert.deepEqual(await search(collection, '-coffee'), []);
  assert.deepEqual(await search(collection, 'coffee -"and cream"'), [1, 2]);
  assert.deepEqual(await search(collection, 'leche', { $language: 'es' }), [5, 8]);
  assert.deepEqual(await search(collection, 'сырники CAFÉS'), [5, 6, 8]);
  assert.deepEqual(await search(collection, 'Coffee', { $caseSensitive: true }), [2]);
  assert.deepEqual(await search(collection, '"Café Con Leche"', { $caseSensitive: true }), [5]);
  assert.deepEqual(await search(collection, 'CAFÉ', { $diacriticSensitive: true }), [5]);
  assert.deepEqual(await search(collection, 'the'), []);
  assert.deepEqual(await search(collection, 'the', { $language: 'none' }), []);
  assert.deepEqual(await ids(collection.find({ $text: { $search: 'coffee' }, views: { $gt: 20 } })), [1]);
  assert.equal(await collection.countDocuments({ $text: { $search: 'coffee' } }), 3);
  assert.deepEqual((await collection.distinct('author', { $text: { $search: 'coffee' } })).sort(), ['efg', 'xyz']);
  assert.equal((await collection.updateMany({ $text: { $search: 'cake' } }, { $set: { seen: true } })).modifiedCount, 1);
  assert.equal((await collection.findOneAndDelete({ $text: { $search: 'cream' } }))._id, 7);
  assert.deepEqual(await search(collection, 'coffee'), [1, 2]);
});

test('scores are those of MongoDB, in projections, orders and pipelines', async (t) => {
  const { collection } = await articles(t, { subject: 'text' });
  const scored = await collection.find({ $text: { $search: 'coffee' } }, { projection: { score: { $meta: 'textScore' } } })
    .sort({ score: { $meta: 'textScore' } }).toArray();
  // by the formula: one word of one, one of two
  assert.deepEqual(scored.map(({ _id, score }) => [_id, Number(score.toFixed(6))]), [[1, 1], [2, 0.75], [7, 0.75]]);
  assert.equal(scored[0].author, 'xyz');
  const some = await collection.find({ $text: { $search: 'coffee' } }, { projection: { _id: 1, subject: 1, score: { $meta: 'textScore' } } }).toArray();
  assert.deepEqual(Object.keys(some[0]).sort(), ['_id', 'score', 'subject']);
  const rows = await collection.aggregate([{ $match: { $text: { $search: 'cake coffee' } } }, { $sort: { score: { $meta: 'textScore' } } },
    { $project: { score: { $meta: 'textScore' } } }, { $limit: 1 }]).toArray();
  assert.deepEqual(rows, [{ _id: 1, score: 1 }]);
  assert.deepEqual((await collection.aggregate([{ $match: { $text: { $search: 'coffee' } } }, { $group: { _id: null, views: { $sum: '$views' } } }]).toArray()), [{ _id: null, views: 65 }]);
  await assert.rejects(collection.aggregate([{ $match: { views: 5 } }, { $match: { $text: { $search: 'a' } } }]).toArray(), { code: 17313 });
  // of a document that is another by now there is no score
  await assert.rejects(collection.aggregate([{ $match: { $text: { $search: 'coffee' } } }, { $project: { views: 1 } }, { $sort: { s: { $meta: 'textScore' } } }]).toArray(), { code: 40218 });
  await assert.rejects(collection.find({}, { projection: { score: { $meta: 'textScore' } } }).toArray(), { code: 40218 });
  await assert.rejects(collection.find({}).sort({ score: { $meta: 'textScore' } }).toArray(), { code: 40218 });
});

test('weights, wildcards and languages of documents', async (t) => {
  const { db } = await mongo(t);
  const blog = db.collection('blog');
  await blog.createIndex({ content: 'text', keywords: 'text', about: 'text' }, { weights: { content: 10, keywords: 5 }, name: 'TextIndex' });
  await blog.insertMany([
    { _id: 1, content: 'This morning I had a cup of coffee.', about: 'beverage', keywords: ['coffee'] },
    { _id: 2, content: 'Who likes chocolate ice cream for dessert?', about: 'food', keywords: ['poll'] },
    { _id: 3, content: 'My favorite flavors are strawberry and coffee', about: 'ice cream', keywords: ['food', 'dessert'] },
  ]);
  assert.deepEqual((await blog.find({ $text: { $search: 'ice cream' } }).sort({ s: { $meta: 'textScore' } }).toArray()).map(({ _id }) => _id), [2, 3]);
  assert.deepEqual((await blog.listIndexes().toArray())[1], { v: 2, key: { _fts: 'text', _ftsx: 1 }, name: 'TextIndex',
    weights: { content: 10, keywords: 5, about: 1 }, default_language: 'english', language_override: 'language', textIndexVersion: 3 });
  const quotes = db.collection('quotes');
  await quotes.createIndex({ '$**': 'text' }, { default_language: 'english' });
  await quotes.insertMany([
    { _id: 1, language: 'portuguese', original: 'A sorte protege os audazes.', translation: [{ language: 'english', quote: 'Fortune favors the bold.' }, { language: 'spanish', quote: 'La suerte protege a los audaces.' }] },
    { _id: 2, language: 'spanish', original: 'Nada hay más surrealista que la realidad.', deep: { er: { quote: 'There is nothing more surreal than reality.', language: 'english' } } },
  ]);
  assert.deepEqual(await ids(quotes.find({ $text: { $search: 'fortunes' } })), [1]);
  assert.deepEqual(await ids(quotes.find({ $text: { $search: 'realidad', $language: 'spanish' } })), [2]);
  assert.deepEqual(await ids(quotes.find({ $text: { $search: 'realities' } })), [2]);
  await assert.rejects(quotes.insertOne({ _id: 3, language: 'klingon', original: 'x' }), /language override unsupported/);
});

test('an index leads to the documents, is built over those there are, and what is not offered is refused', async (t) => {
  const { db } = await mongo(t);
  const texts = db.collection('texts');
  await texts.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, text: i % 50 ? `common word${i}` : `common needle${i} rare` })));
  await assert.rejects(texts.find({ $text: { $search: 'rare' } }).toArray(), { code: 27, codeName: 'IndexNotFound' });
  await assert.rejects(texts.aggregate([{ $match: { $text: { $search: 'rare' } } }]).toArray(), { code: 27 });
  await texts.createIndex({ text: 'text' });
  assert.deepEqual(await ids(texts.find({ $text: { $search: 'rare' } })), [0, 100, 150, 200, 250, 50].sort());
  const explained = await texts.find({ $text: { $search: 'rare' } }).explain('executionStats');
  assert.equal(explained.executionStats.nReturned, 6);
  assert.ok(explained.executionStats.totalDocsExamined < 20, JSON.stringify(explained.executionStats));
  await texts.updateOne({ _id: 100 }, { $set: { text: 'common' } });
  await texts.deleteOne({ _id: 150 });
  assert.deepEqual(await ids(texts.find({ $text: { $search: 'rare' } })), [0, 200, 250, 50].sort());
  await assert.rejects(texts.createIndex({ other: 'text' }), (error) => error.code === 85 || error.code === 67);
  await assert.rejects(db.collection('x').createIndex({ a: 1, b: 'text' }), { code: 238 });
  await assert.rejects(db.collection('x').createIndex({ a: 'text' }, { default_language: 'klingon' }), { code: 67 });
  await assert.rejects(db.collection('x').createIndex({ a: 'text' }, { unique: true }), { code: 67 });
  await assert.rejects(texts.find({ $text: { $search: 5 } }).toArray(), { code: 14 });
  await assert.rejects(texts.find({ $text: { $search: 'a', $other: 1 } }).toArray(), { code: 2 });
  await assert.rejects(texts.find({ $text: { $search: 'a', $language: 'klingon' } }).toArray(), { code: 2 });
  await assert.rejects(texts.find({ $and: [{ $text: { $search: 'a' } }, { $text: { $search: 'b' } }] }).toArray(), { code: 2 });
  await texts.insertOne({ _id: 'long', text: 'x'.repeat(1_500_000) });
  await texts.insertOne({ _id: 'many', text: Array.from({ length: 50_000 }, (_, i) => `v${i}`).join(' ') });
  assert.deepEqual(await ids(texts.find({ $text: { $search: 'v49999' } })), ['many']);
  await texts.dropIndex('text_text');
  await assert.rejects(texts.find({ $text: { $search: 'rare' } }).toArray(), { code: 27 });
});
