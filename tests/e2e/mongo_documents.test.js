// Documents as both APIs see them, as large as they may be, and what is too much.
import assert from 'node:assert/strict';
import test from 'node:test';
import { BSON, Binary, Long, ObjectId } from 'mongodb';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { command, header, le32, message, mongo, mongoClient, Wire } from './mongo.js';
import { signed } from './rest.js';
import { emulatorKey } from './server.js';

const { EJSON } = BSON;

// One of each type, and several where a type has forms of its own.
const types = EJSON.parse(JSON.stringify({
  double: { $numberDouble: '1.5' }, wholeDouble: { $numberDouble: '5.0' }, negativeZero: { $numberDouble: '-0.0' }, infinite: { $numberDouble: '-Infinity' },
  notANumber: { $numberDouble: 'NaN' }, string: 'ä€𝄞"\\', object: { b: { $numberInt: '1' }, a: { deep: { $numberLong: '7' } } },
  array: [{ $numberInt: '1' }, { $numberLong: '2' }, [], {}], binary: { $binary: { base64: 'AQIDBA==', subType: '80' } },
  uuid: { $binary: { base64: 'tvXxwA8uTD+dfAEjRWeJqw==', subType: '04' } }, objectId: { $oid: '507f1f77bcf86cd799439011' },
  yes: true, no: false, date: { $date: { $numberLong: '1600789292000' } }, dateBefore: { $date: { $numberLong: '-62135596800001' } },
  nothing: null, regex: { $regularExpression: { pattern: '^a/b', options: 'im' } }, code: { $code: 'f()' },
  symbol: { $symbol: 's' }, scoped: { $code: 'g()', $scope: { n: { $numberLong: '1' } } }, int32: { $numberInt: '42' },
  timestamp: { $timestamp: { t: 4294967295, i: 7 } }, int64: { $numberLong: '42' }, largeInt64: { $numberLong: '-9223372036854775808' },
  decimal: { $numberDecimal: '1.10' }, decimalSmall: { $numberDecimal: '-1.234567890123456789012345678901234E-6143' },
  decimalNaN: { $numberDecimal: 'NaN' }, minKey: { $minKey: 1 }, maxKey: { $maxKey: 1 }, empty: '', '': 'no name', 'dotted.name': 1, $dollar: 2,
}), { relaxed: false });

// The bytes of a document, whatever a driver would make of them.
const raw = (document) => Buffer.from(BSON.serialize(document, { ignoreUndefined: false }));

// Elements behind the driver's back: undefined, a DBPointer, and a name that occurs twice.
function withRareTypes(document) {
  const name = (type, text) => Buffer.concat([Buffer.from([type]), Buffer.from(`${text}\0`)]);
  const pointer = Buffer.concat([le32(5), Buffer.from('db.c\0'), Buffer.from('507f1f77bcf86cd799439011', 'hex')]);
  const twice = (value) => Buffer.concat([name(0x10, 'twice'), le32(value)]);
  const body = Buffer.concat([raw(document).subarray(4, -1), name(0x06, 'undefined'), name(0x0c, 'pointer'), pointer, twice(1), twice(2), Buffer.from([0])]);
  return Buffer.concat([le32(body.length + 4), body]);
}

const section = (name, bytes) => {
  const body = Buffer.concat([Buffer.from(`${name}\0`), bytes]);
  return Buffer.concat([Buffer.from([1]), le32(body.length + 4), body]);
};

const without = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;

test('every type goes through MongoDB, out and in again through Cosmos, and is the same to the byte', async (t) => {
  const { server, client, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const collection = db.collection('types');
  const stream = db.watch([], { promoteValues: false, bsonRegExp: true });
  t.after(() => stream.close());
  assert.equal(await stream.tryNext(), null);
  const document = withRareTypes({ _id: new ObjectId('507f1f77bcf86cd799439099'), tenant: 'a', ...types });
  const inserted = await wire.send(message(1, 2013, le32(0), [0], raw({ insert: 'types', $db: 'shop' }), section('documents', document))).reply();
  assert.equal(inserted.document.n, 1, JSON.stringify(inserted.document));
  const _id = new ObjectId('507f1f77bcf86cd799439099');
  const read = async () => (await wire.send(command(2, { find: 'types', filter: { _id }, $db: 'shop' })).reply()).bytes;
  assert.ok((await read()).includes(document)); // as it was sent

  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const container = cosmos.database('shop').container('types');
  const { resources: [shown] } = await container.items.query('SELECT * FROM c').fetchAll();
  assert.equal(shown.id, '507f1f77bcf86cd799439099');
  assert.deepEqual(shown.decimal, { $numberDecimal: '1.10' });
  // a name that occurs twice is told by its number, which an object of JavaScript keeps
  assert.deepEqual([shown.twice, shown['$again2:twice']], [1, 2]);
  const { resource: replaced } = await container.item(shown.id, undefined).replace(without(shown));
  assert.deepEqual(without(replaced), without(shown));
  assert.ok((await read()).includes(document)); // to the byte
  // and back: what Cosmos writes, MongoDB reads with its types
  const rest = without(shown);
  await container.items.create({ ...rest, _id: { $numberLong: '5' }, id: undefined });
  const fromCosmos = await collection.findOne({ _id: Long.fromNumber(5) }, { promoteValues: false, bsonRegExp: true });
  for (const [name, value] of Object.entries(types))
    assert.equal(EJSON.stringify({ v: fromCosmos[name] }, { relaxed: false }), EJSON.stringify({ v: value }, { relaxed: false }), name);

  // both feeds tell the same documents
  const told = [];
  while (told.length < 3) told.push(await stream.next());
  assert.deepEqual(told.map((event) => String(event.operationType)), ['insert', 'replace', 'insert']);
  const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  const { result } = await feed.readNext();
  assert.deepEqual(result.map((item) => item.id).sort(), ['5', '507f1f77bcf86cd799439099']);
  for (const event of told.slice(1)) {
    const id = event.documentKey._id instanceof ObjectId ? event.documentKey._id.toHexString() : '5';
    const item = result.find((one) => one.id === id);
    for (const name of ['decimal', 'date', 'timestamp', 'binary', 'regex', 'minKey'])
      assert.deepEqual(item[name], JSON.parse(EJSON.stringify({ v: event.fullDocument[name] }, { relaxed: false })).v, name);
  }
  await client.db('shop').dropCollection('types');
});

// An object of BSON by its names and values, whatever names they are.
function repeated(...fields) {
  const body = Buffer.concat([...fields.map(([name, value]) => raw({ [name]: value }).subarray(4, -1)), Buffer.from([0])]);
  return Buffer.concat([le32(body.length + 4), body]);
}

// The element `name` with a document that was made by hand.
const nested = (name, document) => Buffer.concat([Buffer.from([3]), Buffer.from(`${name}\0`), document]);

test('names that occur again go through REST and back to the byte, at every depth and whatever they are', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const many = repeated(...Array.from({ length: 3000 }, (_, i) => [`n${i % 7}`, i]));
  const inner = repeated(['x', 1], ['y', [1, { z: 1 }]], ['x', 'two'], ['', 1], ['', 2], ['x', { x: 1 }]);
  const odd = repeated(['$again2:a', 1], ['a', 1], ['$again2:a', 2], ['a', 2], ['$again', 3], ['$again0:a', 4], ['$again:a', 5], ['$again02:a', 6], ['$again1:b', 7], ['$again1:b', 8]);
  const top = repeated(['_id', 'x'], ['a', 1], ['b', 2], ['a', 3], ['$again7:q', 4], ['a', null]);
  const body = Buffer.concat([top.subarray(4, -1), nested('inner', inner), nested('many', many), nested('odd', odd), nested('inner', inner), Buffer.from([0])]);
  const document = Buffer.concat([le32(body.length + 4), body]);
  const inserted = await wire.send(message(1, 2013, le32(0), [0], raw({ insert: 'types', $db: 'shop' }), section('documents', document))).reply();
  assert.equal(inserted.document.n, 1, JSON.stringify(inserted.document));
  const read = async () => (await wire.send(command(2, { find: 'types', filter: { _id: 'x' }, $db: 'shop' })).reply()).bytes;
  assert.ok((await read()).includes(document));
  const path = '/dbs/shop/colls/types/docs/x', headers = { 'x-ms-documentdb-partitionkey': '[{}]' };
  const shown = await signed(server, 'GET', path, { headers });
  assert.equal(shown.status, 200, shown.text);
  const json = JSON.parse(shown.text);
  assert.deepEqual([json.a, json['$again2:a'], json['$again3:a'], json['$again1:$again7:q']], [1, 3, null, 4]);
  assert.deepEqual([json.inner['$again2:x'], json.inner['$again2:'], json.inner['$again3:x']], ['two', 2, { x: 1 }]);
  assert.deepEqual(Object.keys(json.odd), ['$again1:$again2:a', 'a', '$again2:$again2:a', '$again2:a', '$again', '$again0:a', '$again:a', '$again02:a', '$again1:$again1:b', '$again2:$again1:b']);
  // through an object of JavaScript, as a client would
  const { _rid, _self, _etag, _attachments, _ts, ...item } = json;
  const put = (value) => signed(server, 'PUT', path, { headers, body: JSON.stringify(value) });
  assert.equal((await put({ id: 'x', _id: 'x' })).status, 200);
  const replaced = await put(item);
  assert.equal(replaced.status, 200, replaced.text);
  assert.ok((await read()).includes(document)); // to the byte
  // what means no document is refused, and changes nothing
  for (const [bad, message] of [[{ '$again2:a': 1 }, /\$again2.*"a"/], [{ a: 1, '$again3:a': 1 }, /\$again3/], [{ '$again1:a': 1 }, /\$again1/], [{ o: { '$again5:a': 1 } }, /\$again5/],
    [{ '$again2:_id': 'y' }, /one "_id"/], [{ '$again2:id': 'y' }, /one "id"/]]) {
    const { status, json: told } = await put({ id: 'x', _id: 'x', ...bad });
    assert.equal(status, 400, JSON.stringify(bad));
    assert.match(told.message, message);
  }
  const plain = await signed(server, 'PUT', path, { headers, body: '{"id":"x","_id":"x","a":1,"a":2}' });
  assert.equal(plain.status, 400);
  assert.match(plain.json.message, /property "a" occurs twice/);
  assert.ok((await read()).includes(document));
});

test('strings that are not UTF-8 are refused by name, and nothing of them is stored', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const bytes = raw({ insert: 'c', documents: [{ _id: 1, text: 'caf€' }], $db: 'shop' });
  bytes[bytes.indexOf('€')] = 0xff;
  const reply = (await wire.send(message(1, 2013, le32(0), [0], bytes)).reply()).document;
  assert.equal(reply.code, 22);
  assert.match(reply.errmsg, /UTF-8/);
  assert.equal(await db.collection('c').countDocuments(), 0);
  await db.collection('c').insertOne({ _id: 1, bytes: new Binary(Buffer.from([0xff, 0xfe])) });
});

test('documents of 16 MiB are inserted, updated, aggregated, watched and read', async (t) => {
  const { db } = await mongo(t);
  const c = await db.createCollection('c', { changeStreamPreAndPostImages: { enabled: true } });
  const limit = 16 * 1024 * 1024;
  const overhead = BSON.calculateObjectSize({ _id: 1, n: 1, text: '' });
  const text = 'x'.repeat(limit - overhead);
  const stream = c.watch([], { fullDocument: 'required', fullDocumentBeforeChange: 'required' });
  t.after(() => stream.close());
  assert.equal(await stream.tryNext(), null);
  await c.insertOne({ _id: 1, n: 1, text });
  assert.equal((await stream.next()).fullDocument.text.length, text.length);
  assert.equal(BSON.calculateObjectSize(await c.findOne({ _id: 1 })), limit);
  assert.equal((await c.updateOne({ _id: 1 }, { $inc: { n: 1 } })).modifiedCount, 1);
  assert.equal((await c.find({ n: 2 }).toArray())[0].text.length, text.length);
  const [{ length }] = await c.aggregate([{ $match: { n: 2 } }, { $project: { length: { $strLenBytes: '$text' } } }]).toArray();
  assert.equal(length, text.length);
  await assert.rejects(c.updateOne({ _id: 1 }, { $set: { more: 1 } }), { code: 17419 });
  await assert.rejects(c.insertOne({ _id: 2, n: 1, text: `${text}x` }), { code: 10334 });
  await c.insertOne({ _id: 3, n: 1, text });
  assert.equal((await c.find().sort({ _id: 1 }).toArray()).length, 2);
  assert.equal(await c.countDocuments({ text: { $exists: true } }), 2);
  await assert.rejects(stream.next(), { code: 10334 }); // the document before and after the update are too much for one event
  assert.equal((await c.deleteMany({})).deletedCount, 2);
});

const within = (levels, wrap) => {
  let value = 1;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
};

test('nesting bombs and pipelines that are too long are refused, and harm nobody', async (t) => {
  const { server, db } = await mongo(t);
  await db.collection('c').insertOne({ _id: 1 });
  const wire = await Wire.open(t, server);
  const ask = (document) => wire.ask({ ...document, $db: 'shop' });
  const other = mongoClient(t, server.mongo);
  const bombs = [ // undefined: it is carried out
    [{ find: 'c', filter: within(80, (x) => ({ $and: [x === 1 ? { a: 1 } : x] })) }, undefined],
    [{ find: 'c', filter: within(170, (x) => ({ $and: [x === 1 ? { a: 1 } : x] })) }, 15],
    [{ find: 'c', filter: within(190, (x) => ({ a: x })) }, 15],
    [{ aggregate: 'c', pipeline: [{ $project: { a: within(60, (x) => ({ $add: [x, 1] })) } }], cursor: {} }, undefined],
    [{ aggregate: 'c', pipeline: [{ $project: { a: within(150, (x) => ({ $add: [x, 1] })) } }], cursor: {} }, 15],
    [{ aggregate: 'c', pipeline: within(15, (x) => [{ $lookup: { from: 'c', as: 'a', pipeline: x === 1 ? [] : x } }]), cursor: {} }, undefined],
    [{ aggregate: 'c', pipeline: within(60, (x) => [{ $lookup: { from: 'c', as: 'a', pipeline: x === 1 ? [] : x } }]), cursor: {} }, 232],
    [{ aggregate: 'c', pipeline: Array.from({ length: 1000 }, () => ({ $match: {} })), cursor: {} }, undefined],
    [{ aggregate: 'c', pipeline: Array.from({ length: 1001 }, () => ({ $match: {} })), cursor: {} }, 7749501],
    [{ update: 'c', updates: [{ q: {}, u: { $set: { [Array(300).fill('a').join('.')]: 1 } } }] }, 15],
    [{ insert: 'c', documents: [{ _id: 2, a: within(185, (x) => ({ a: x })) }] }, 15],
    [{ insert: 'c', documents: [{ _id: 3, a: within(170, (x) => ({ a: x })) }] }, undefined],
  ];
  for (const [document, code] of bombs) {
    const reply = await ask(document);
    assert.equal(reply.code ?? reply.writeErrors?.[0].code, code, `${JSON.stringify(document).slice(0, 80)}: ${reply.errmsg}`);
    assert.equal((await ask({ ping: 1 })).ok, 1);
  }
  assert.deepEqual((await db.collection('c').find({}, { projection: { _id: 1 } }).toArray()), [{ _id: 1 }, { _id: 3 }]);
  // a pipeline that takes all of a message, and one that takes more than that
  const stages = Array.from({ length: 900 }, (_, i) => ({ $match: { [`f${i}`]: 'x'.repeat(17_000) } }));
  assert.deepEqual((await ask({ aggregate: 'c', pipeline: stages, cursor: {} })).cursor.firstBatch, []);
  const text = Buffer.alloc(40_000_000, 'x');
  const match = Buffer.concat([Buffer.from([2]), Buffer.from('comment\0'), le32(text.length + 1), text, Buffer.from([0])]);
  const body = Buffer.concat([raw({ aggregate: 'c', pipeline: [], cursor: {}, $db: 'shop' }).subarray(4, -1), match, Buffer.from([0])]);
  const tooLong = await wire.send(message(4, 2013, le32(0), [0], le32(body.length + 4), body)).reply();
  assert.equal(tooLong.document.code, 10334, JSON.stringify(tooLong.document));
  assert.equal((await ask({ ping: 1 })).ok, 1);
  wire.send(header(100_000_000, 5, 2013), Buffer.alloc(1000));
  assert.equal(await wire.reply(), undefined); // the connection ends
  assert.equal((await (await other).db('shop').collection('c').findOne({ _id: 1 }))._id, 1);
});

test('idle cursors are bounded, and are nobody else\'s', async (t) => {
  const { server, client, db } = await mongo(t, ['--set', 'mongo.cursors_max=20000']);
  const c = db.collection('c');
  await c.insertMany(Array.from({ length: 3 }, (_, _id) => ({ _id })));
  const wire = await Wire.open(t, server);
  let opened = 0, refused;
  for (let i = 0; i < 9_900 && !refused; i += 100) {
    wire.send(...Array.from({ length: 100 }, (_, k) => command(i + k, { find: 'c', batchSize: 1, $db: 'shop' })));
    for (let k = 0; k < 100; k++) {
      const { document } = await wire.reply();
      if (document.ok && document.cursor.id.toString() !== '0') opened++;
      else refused = document;
    }
  }
  assert.equal(opened, 9_900, JSON.stringify(refused));
  const owner = client.startSession(), session = client.startSession();
  t.after(() => Promise.all([owner.endSession(), session.endSession()]));
  const first = await db.command({ find: 'c', batchSize: 1 }, { session: owner });
  const more = (who, id) => who.command({ getMore: Long.fromValue(id), collection: 'c' });
  await assert.rejects(db.command({ getMore: Long.fromValue(first.cursor.id), collection: 'c' }, { session }), { code: 13 });
  await assert.rejects(more(db, Long.fromNumber(12345)), { code: 43 });
  assert.equal((await db.collection('other').insertOne({ _id: 1 })).acknowledged, true);
  assert.equal(await c.countDocuments(), 3);
  // half of all is one account's: then it is told so, and others go on
  for (let i = 0; i < 200 && !refused; i++) {
    const document = await wire.ask({ find: 'c', batchSize: 1, $db: 'shop' });
    if (!document.ok) refused = document;
  }
  assert.equal(refused.code, 202);
  assert.equal(await c.countDocuments(), 3);
});

test('a cursor is of its user', async (t) => {
  const { server, client, db } = await mongo(t);
  await db.collection('c').insertMany([{ _id: 1 }, { _id: 2 }]);
  await client.db('admin').command({ createUser: 'ann', pwd: 'secret', roles: ['readWriteAnyDatabase'] });
  const { cursor } = await db.command({ find: 'c', batchSize: 1 });
  const ann = await mongoClient(t, `mongodb://ann:secret@${new URL(server.mongo).host}/?authSource=admin`);
  await assert.rejects(ann.db('shop').command({ getMore: Long.fromValue(cursor.id), collection: 'c' }), { code: 13 });
  assert.deepEqual((await db.command({ getMore: Long.fromValue(cursor.id), collection: 'c' })).cursor.nextBatch, [{ _id: 2 }]);
});
