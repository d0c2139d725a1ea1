// The life of an application on mongoose: models with rules and indexes, documents that refer to each other, hooks, arrays
// of sub-documents, reports, transactions, and a stream of changes. Nothing of it knows that this is no MongoDB.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import mongoose from 'mongoose';
import { Server } from './server.js';

async function shop(t) {
  const server = await Server.start(t, ['--dev']);
  const connection = await mongoose.createConnection(server.mongo, { dbName: 'shop' }).asPromise();
  t.after(() => connection.close());
  const { Schema } = mongoose;
  const person = new Schema({
    name: { type: String, required: true, trim: true },
    mail: { type: String, unique: true, lowercase: true },
    age: { type: Number, min: 0, max: 150 },
    joined: { type: Date, default: Date.now },
    address: { street: String, city: { type: String, index: true } },
    tags: [String],
  }, { timestamps: true });
  person.virtual('title').get(function title() {
    return `${this.name} of ${this.address.city}`;
  });
  person.pre('save', function note() {
    this.tags.push('saved');
  });
  const order = new Schema({
    buyer: { type: Schema.Types.ObjectId, ref: 'Person', required: true },
    lines: [{ sku: String, count: { type: Number, default: 1 }, price: Schema.Types.Decimal128 }],
    state: { type: String, enum: ['open', 'paid', 'sent'], default: 'open' },
    notes: Map,
    total: Number,
  }, { optimisticConcurrency: true });
  order.index({ buyer: 1, state: -1 });
  const Person = connection.model('Person', person);
  const Order = connection.model('Order', order);
  await Person.init();
  await Order.init();
  return { server, connection, Person, Order };
}

test('models keep their rules, unique ones in the server', async (t) => {
  const { Person } = await shop(t);
  const ann = await Person.create({ name: ' Ann ', mail: 'ANN@example.org', age: 30, address: { city: 'Oslo' } });
  assert.equal(ann.name, 'Ann');
  assert.equal(ann.mail, 'ann@example.org');
  assert.deepEqual([...ann.tags], ['saved']);
  assert.equal(ann.title, 'Ann of Oslo');
  assert.ok(ann.createdAt instanceof Date);
  await assert.rejects(Person.create({ mail: 'x@example.org' }), /name/);
  await assert.rejects(Person.create({ name: 'Old', mail: 'old@example.org', age: 200 }), /age/);
  const twice = await Person.create({ name: 'Other', mail: 'ann@example.org' }).then(() => undefined, (error) => error);
  assert.equal(twice.code, 11000);
  assert.deepEqual(twice.keyPattern, { mail: 1 });
  assert.deepEqual(twice.keyValue, { mail: 'ann@example.org' });
  const indexes = await Person.collection.indexes();
  assert.deepEqual(indexes.map(({ name }) => name).sort(), ['_id_', 'address.city_1', 'mail_1']);
  assert.equal(indexes.find(({ name }) => name === 'mail_1').unique, true);
});

test('documents are changed where they are, and whoever comes late is told', async (t) => {
  const { Person, Order } = await shop(t);
  const ann = await Person.create({ name: 'Ann', mail: 'ann@example.org', address: { city: 'Oslo' } });
  const made = await Order.create({ buyer: ann._id, lines: [{ sku: 'a', price: '1.10' }, { sku: 'b', count: 2, price: '2.20' }], notes: { gift: true } });
  assert.equal(String(made.lines[1].price), '2.20');

  const [first, second] = [await Order.findById(made._id), await Order.findById(made._id)];
  first.lines.id(made.lines[0]._id).count = 5;
  first.notes.set('hurry', 'yes');
  await first.save();
  second.state = 'paid';
  await assert.rejects(second.save(), { name: 'VersionError' });

  await Order.updateOne({ _id: made._id, 'lines.sku': 'b' }, { $inc: { 'lines.$.count': 1 } });
  await Order.updateOne({ _id: made._id }, { $push: { lines: { sku: 'c', price: '3.30' } } });
  await Order.updateOne({ _id: made._id }, { $set: { 'lines.$[old].count': 9 } }, { arrayFilters: [{ 'old.sku': 'a' }] });
  const now = await Order.findById(made._id).populate('buyer', 'name').lean();
  assert.deepEqual(now.lines.map(({ sku, count }) => [sku, count]), [['a', 9], ['b', 3], ['c', 1]]);
  assert.equal(now.buyer.name, 'Ann');
  assert.equal(now.notes.hurry, 'yes');
  const found = await Order.findOneAndUpdate({ buyer: ann._id, state: 'open' }, { $set: { state: 'paid' } }, { returnDocument: 'after' });
  assert.equal(found.state, 'paid');
  assert.equal(await Order.findOneAndUpdate({ state: 'open' }, { state: 'paid' }), null);
  const upserted = await Person.findOneAndUpdate({ mail: 'new@example.org' }, { $setOnInsert: { name: 'New' } }, { upsert: true, returnDocument: 'after' });
  assert.equal(upserted.name, 'New');
});

test('queries are built, counted, walked and told apart', async (t) => {
  const { Person } = await shop(t);
  const cities = ['Oslo', 'Rome', 'Lima'];
  await Person.insertMany(Array.from({ length: 300 }, (_, i) => ({ name: `p${i}`, mail: `p${i}@example.org`, age: i % 90, address: { city: cities[i % 3] }, tags: [`t${i % 5}`] })));
  assert.equal(await Person.countDocuments({ 'address.city': 'Rome' }), 100);
  assert.equal(await Person.estimatedDocumentCount(), 300);
  assert.deepEqual((await Person.distinct('address.city')).sort(), ['Lima', 'Oslo', 'Rome']);
  const page = await Person.find({ age: { $gte: 10, $lt: 20 }, tags: { $in: ['t1', 't2'] } }).sort({ age: -1, name: 1 }).skip(2).limit(5).select('name age -_id').lean();
  const all = Array.from({ length: 300 }, (_, i) => ({ name: `p${i}`, age: i % 90, tag: i % 5 })).filter(({ age, tag }) => age >= 10 && age < 20 && (tag === 1 || tag === 2))
    .sort((a, b) => b.age - a.age || (a.name < b.name ? -1 : 1)).slice(2, 7).map(({ name, age }) => ({ name, age }));
  assert.deepEqual(page, all);
  let seen = 0;
  for await (const person of Person.find({ 'address.city': 'Lima' }).cursor({ batchSize: 7 })) seen += person.address.city === 'Lima' ? 1 : 0;
  assert.equal(seen, 100);
  assert.ok(await Person.exists({ name: 'p7' }));
  assert.equal(await Person.exists({ name: 'nobody' }), null);
  const result = await Person.bulkWrite([
    { insertOne: { document: { name: 'bulk', mail: 'bulk@example.org' } } },
    { updateMany: { filter: { age: 5 }, update: { $addToSet: { tags: 'five' } } } },
    { deleteOne: { filter: { name: 'p299' } } },
  ]);
  assert.deepEqual([result.insertedCount, result.modifiedCount, result.deletedCount], [1, 4, 1]);
  const removed = await Person.deleteMany({ 'address.city': 'Oslo' });
  assert.equal(removed.deletedCount, 100);
});

test('reports are pipelines', async (t) => {
  const { Person, Order } = await shop(t);
  const people = await Person.insertMany(['Ann', 'Bob'].map((name) => ({ name, mail: `${name}@example.org`, address: { city: name === 'Ann' ? 'Oslo' : 'Rome' } })));
  await Order.insertMany(Array.from({ length: 20 }, (_, i) => ({ buyer: people[i % 2]._id, total: i, state: i % 4 === 0 ? 'paid' : 'open', lines: [{ sku: `s${i % 3}`, count: i, price: '0.10' }] })));
  const report = await Order.aggregate([
    { $match: { state: 'open' } },
    { $lookup: { from: 'people', localField: 'buyer', foreignField: '_id', as: 'who' } },
    { $unwind: '$who' },
    { $group: { _id: '$who.address.city', sum: { $sum: '$total' }, n: { $sum: 1 }, most: { $max: '$total' } } },
    { $sort: { sum: -1 } },
    { $project: { _id: 0, city: '$_id', sum: 1, n: 1, most: 1, average: { $divide: ['$sum', '$n'] } } },
  ]);
  assert.deepEqual(report, [
    { sum: 100, n: 10, most: 19, city: 'Rome', average: 10 },
    { sum: 50, n: 5, most: 18, city: 'Oslo', average: 10 },
  ]);
  const [facets] = await Order.aggregate([{ $unwind: '$lines' }, { $facet: { skus: [{ $sortByCount: '$lines.sku' }, { $limit: 1 }], all: [{ $count: 'n' }] } }]);
  assert.deepEqual(facets, { skus: [{ _id: 's0', count: 7 }], all: [{ n: 20 }] });
});

test('a transaction is all or nothing, and a stream tells what happened', async (t) => {
  const { connection, Person, Order } = await shop(t);
  const stream = Person.watch([{ $match: { 'ns.coll': 'people' } }], { fullDocument: 'updateLookup' });
  const events = [];
  stream.on('change', (event) => events.push(event));
  // a stream begins when the server has heard of it: what comes before is not told
  for (let i = 0; !events.length; i++) {
    await Person.collection.insertOne({ mail: `marker ${i}` });
    await Promise.race([once(stream, 'change'), new Promise((wait) => setTimeout(wait, 50))]);
  }
  const told = () => events.filter(({ fullDocument }) => !fullDocument?.mail?.startsWith('marker'));
  const ann = await Person.create({ name: 'Ann', mail: 'ann@example.org', address: { city: 'Oslo' } });
  await connection.transaction(async (session) => {
    await Order.create([{ buyer: ann._id, total: 5 }], { session });
    await Person.updateOne({ _id: ann._id }, { $inc: { age: 1 } }, { session });
  });
  assert.equal(await Order.countDocuments({ buyer: ann._id }), 1);
  await assert.rejects(connection.transaction(async (session) => {
    await Order.create([{ buyer: ann._id, total: 7 }], { session });
    assert.equal(await Order.countDocuments({ buyer: ann._id }).session(session), 2);
    throw new Error('no');
  }), /no/);
  assert.equal(await Order.countDocuments({ buyer: ann._id }), 1);
  await Person.deleteOne({ _id: ann._id });
  while (told().length < 3) await once(stream, 'change');
  assert.deepEqual(told().map(({ operationType }) => operationType), ['insert', 'update', 'delete']);
  assert.equal(told()[1].updateDescription.updatedFields.age, 1);
  await stream.close();
});
