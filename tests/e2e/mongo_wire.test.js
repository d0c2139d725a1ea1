// Messages made by hand: what is malformed, what is not answered, what comes in pieces.
import assert from 'node:assert/strict';
import test from 'node:test';
import { deflateSync } from 'node:zlib';
import { BSON } from 'mongodb';
import { Server } from './server.js';
import { command, header, le32, message, mongo, query, Wire } from './mongo.js';

const ping = { ping: 1, $db: 'admin' };

test('the handshake is answered by OP_REPLY, other commands by OP_QUERY are refused', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const hello = await wire.send(query(5, { ismaster: 1, helloOk: true, backpressure: '2', maxTimeMS: 5, client: {}, compression: ['none'] })).reply();
  assert.deepEqual([hello.operation, hello.responseTo], [1, 5]);
  assert.equal(hello.document.ismaster, true);
  assert.equal(hello.document.helloOk, true);
  assert.equal(hello.document.compression, undefined);
  assert.equal(hello.document.topologyVersion.counter, 0);
  const wrapped = await wire.send(query(6, { $query: { isMaster: 1, compression: ['x', 'zlib', 'snappy'] }, $readPreference: {} })).reply();
  assert.deepEqual(wrapped.document.compression, ['zlib', 'snappy']);
  assert.equal(wrapped.document.helloOk, undefined);
  assert.equal((await wire.send(query(7, { find: 'c' }, 'shop.$cmd')).reply()).document.code, 352);
  assert.equal((await wire.send(query(8, {}, 'shop.people')).reply()).document.code, 352);
  assert.equal((await wire.ask({ hello: 1, $db: 'shop', topologyVersion: {} })).code, 31368);
  assert.equal((await wire.ask(ping)).ok, 1);
});

test('a message that wants no answer gets none', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  wire.send(command(1, { insert: 'c', documents: [{ _id: 1 }], $db: 'shop' }, 2), command(2, { nonsense: 1, $db: 'shop' }, 2), command(3, ping));
  assert.equal((await wire.reply()).responseTo, 3);
  assert.deepEqual(await db.collection('c').find().toArray(), [{ _id: 1 }]);
});

test('replies come in the order of their requests, in however many pieces those came', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const sent = Buffer.concat(Array.from({ length: 100 }, (_, i) => command(i + 1, i % 3 ? ping : { find: 'c', $db: 'shop' })));
  wire.send(sent);
  for (let i = 1; i <= 100; i++) assert.equal((await wire.reply()).responseTo, i);
  for (const byte of command(7, ping)) {
    wire.socket.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  assert.equal((await wire.reply()).responseTo, 7);
});

test('document sequences stand for an array of the command', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const documents = [{ _id: 1 }, { _id: 2 }].map((document) => Buffer.from(BSON.serialize(document)));
  const section = (name, parts) => {
    const body = Buffer.concat([Buffer.from(`${name}\0`), ...parts]);
    return Buffer.concat([[1], le32(body.length + 4), body].map((part) => Buffer.from(part)));
  };
  const body = Buffer.concat([Buffer.from([0]), Buffer.from(BSON.serialize({ insert: 'c', $db: 'shop' }))]);
  const ask = async (...sections) => (await wire.send(message(1, 2013, le32(0), ...sections)).reply()).document;
  assert.equal((await ask(body, section('documents', documents))).n, 2);
  assert.equal((await ask(section('documents', [BSON.serialize({ _id: 3 })]), body)).n, 1);
  assert.equal((await ask(body, section('documents', []))).code, 16);
  assert.equal((await ask(body)).code, 40414);
  assert.equal((await ask(body, section('other', documents))).code, 40415);
  assert.equal((await ask(body, section('documents', documents), section('documents', documents))).code, 40413);
  assert.equal(await db.collection('c').estimatedDocumentCount(), 3);
});

// What is sent, and what comes of it: the code of a reply, after which the connection is closed; or no reply at all.
const malformed = {
  'a length below the header': [header(15, 1, 2013), undefined],
  'a length above the limit': [header(48_000_001, 1, 2013), undefined],
  'a negative length': [header(-1, 1, 2013), undefined],
  'an unknown operation': [message(1, 4711, le32(0)), undefined],
  'a removed operation': [message(1, 2002, le32(0), Buffer.from('a.b\0'), BSON.serialize({})), undefined],
  'no sections': [message(1, 2013, le32(0)), undefined],
  'a document cut short': [message(1, 2013, le32(0), [0], BSON.serialize(ping).subarray(0, -1)), undefined],
  'a sequence cut short': [message(1, 2013, le32(0), [0], BSON.serialize(ping), [1], le32(100), Buffer.from('x\0')), undefined],
  'an unknown kind of section': [message(1, 2013, le32(0), [2], BSON.serialize(ping)), 2],
  'two commands': [message(1, 2013, le32(0), [0], BSON.serialize(ping), [0], BSON.serialize(ping)), 2],
  'an unknown required flag': [command(1, ping, 4), 223],
  'a checksum that does not match': [message(1, 2013, le32(1), [0], BSON.serialize(ping), le32(1)), 288],
  'a compressor nobody has': [message(1, 2012, le32(2013, 100), [9], Buffer.from('x')), undefined],
  'compressed bytes that are none': [message(1, 2012, le32(2013, 100), [2], Buffer.from('nonsense')), undefined],
  'compressed bytes of another size': [message(1, 2012, le32(2013, 5), [2], deflateSync(command(1, ping).subarray(16))), undefined],
  'a claim of more than a message may be': [message(1, 2012, le32(2013, 0x7fffffff), [3], Buffer.from('x')), undefined],
};

test('malformed messages end their connection, and no other', async (t) => {
  const { server, db } = await mongo(t);
  for (const [name, [bytes, code]] of Object.entries(malformed)) {
    const wire = await Wire.open(t, server);
    assert.equal((await wire.ask(ping)).ok, 1);
    wire.send(bytes);
    assert.equal((await wire.reply())?.document.code, code, name);
    if (code) assert.equal(await wire.reply(), undefined, name);
    wire.socket.end();
    await wire.closed;
  }
  assert.equal((await db.command({ ping: 1 })).ok, 1);
});

test('bad BSON in a good frame is refused, and the connection goes on', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const bad = Buffer.from(BSON.serialize({ ping: 1, $db: 'admin' }));
  bad[4] = 0x77;
  assert.equal((await wire.send(message(1, 2013, le32(0), [0], bad)).reply()).document.code, 22);
  let deep = { a: 1 };
  for (let i = 0; i < 250; i++) deep = { a: deep };
  assert.equal((await wire.ask({ find: 'c', filter: deep, $db: 'shop' })).code, 15);
  assert.equal((await wire.ask({ ping: 1 })).code, 40414);
  assert.equal((await wire.ask({ ping: 1, $db: 5 })).code, 14);
  assert.equal((await wire.ask({ $db: 'admin' })).code, 59);
  assert.equal((await wire.ask(ping)).ok, 1);
});

test('compressed messages are answered in kind', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const inner = command(1, { listCommands: 1, $db: 'admin' }).subarray(16);
  const reply = await wire.send(message(4, 2012, le32(2013, inner.length), [2], deflateSync(inner))).reply();
  assert.deepEqual([reply.operation, reply.responseTo], [2012, 4]);
  assert.equal(reply.bytes[24], 2);
});

test('large messages are read, and strangers may not send any', async (t) => {
  const { server, db } = await mongo(t);
  const text = 'x'.repeat(1_000_000);
  await db.collection('c').insertMany(Array.from({ length: 20 }, (_, i) => ({ _id: i, text })));
  assert.equal((await db.collection('c').find().toArray()).length, 20);
  assert.equal((await db.collection('c').findOne({ _id: 3 })).text.length, 1_000_000);
  await assert.rejects(db.collection('c').insertOne({ text: 'x'.repeat(16 * 1024 * 1024) }), { code: 10334 });
  const closed = await Server.start(t, []);
  const wire = await Wire.open(t, { mongo: closed.mongo.replace(/\/\/\S+@/, '//') });
  wire.send(header(65 * 1024, 1, 2013));
  assert.equal(await wire.reply(), undefined);
  assert.equal((await (await Wire.open(t, server)).ask(ping)).ok, 1);
});

test('half a message, and a client that leaves while it is served, harm nobody', async (t) => {
  const { server, db } = await mongo(t);
  for (let i = 0; i < 20; i++) {
    const half = await Wire.open(t, server);
    half.send(header(1_000_000, 1, 2013), Buffer.alloc(10_000));
    const gone = await Wire.open(t, server);
    gone.send(command(1, { insert: 'c', documents: [{ _id: i }], $db: 'shop' }));
    gone.socket.destroy();
    half.socket.destroy();
  }
  assert.equal((await db.command({ ping: 1 })).ok, 1);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test('a server that stops finishes what it was asked', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  assert.equal((await wire.ask(ping)).ok, 1);
  wire.send(command(9, { insert: 'c', documents: Array.from({ length: 2000 }, (_, i) => ({ _id: i })), ordered: false, $db: 'shop' }));
  await new Promise((resolve) => setTimeout(resolve, 5));
  const stopped = server.stop();
  const reply = await wire.reply();
  if (reply) assert.equal(reply.document.n, 2000);
  assert.deepEqual(await stopped, { code: 0, signal: null });
});
