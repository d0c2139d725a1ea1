// Batches as the .NET library sends them: hybrid rows, written here by hand.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { crc32 as crc } from './crc32.js';
import { shop } from './items.js';

const headers = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'True' };
const types = { Create: 0, Patch: 1, Read: 2, Delete: 4, Replace: 5, Upsert: 20 };

const int32 = (n) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(n >>> 0);
  return bytes;
};
const varuint = (n) => Buffer.from(n < 0x80 ? [n] : [(n & 0x7f) | 0x80, ...varuint(n >>> 7)]);
const bytesOf = (text) => {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([varuint(bytes.length), bytes]);
};
const row = (schema, ...parts) => Buffer.concat([Buffer.from([0x81]), int32(schema), ...parts]);
const record = (body) => Buffer.concat([row(2147473649, int32(body.length), int32(crc(body))), body]);

function operation({ type, key, id, body, ifMatch, minimal }) {
  const present = 3 | (key ? 4 : 0) | (id ? 16 : 0) | (body ? 64 : 0);
  return row(
    2145473648,
    Buffer.from([present]),
    int32(types[type]),
    int32(2),
    ...(key ? [bytesOf(JSON.stringify(key))] : []),
    ...(id ? [bytesOf(id)] : []),
    ...(body ? [bytesOf(JSON.stringify(body))] : []),
    ...(ifMatch ? [Buffer.from([20, 9]), bytesOf(ifMatch)] : []),
    ...(minimal ? [Buffer.from([3, 12])] : []),
  );
}

const request = (operations) =>
  Buffer.concat([row(2147473648, Buffer.from([1]), int32(10)), ...operations.map((o) => record(operation(o)))]);

// The results, read as the library reads them.
function results(bytes) {
  assert.deepEqual([...bytes.subarray(0, 10)], [...row(2147473648, Buffer.from([1]), int32(10))]);
  const found = [];
  for (let at = 10; at < bytes.length; ) {
    assert.equal(bytes[at], 0x81);
    assert.equal(bytes.readUInt32LE(at + 1), 2147473649);
    const length = bytes.readUInt32LE(at + 5);
    const body = bytes.subarray(at + 13, at + 13 + length);
    assert.equal(bytes.readUInt32LE(at + 9), crc(body));
    found.push(result(body));
    at += 13 + length;
  }
  return found;
}

function result(body) {
  assert.equal(body.readUInt32LE(1), 2145473649);
  const present = body[5];
  const found = { status: body.readInt32LE(6), substatus: body.readInt32LE(10) };
  let at = 14;
  const text = () => {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      length |= (body[at] & 0x7f) << shift;
      if (!(body[at++] & 0x80)) break;
    }
    at += length;
    return body.toString('utf8', at - length, at);
  };
  if (present & 4) found.etag = text();
  if (present & 8) found.body = JSON.parse(text());
  while (at < body.length) {
    const [type, path] = [body[at], body[at + 1]];
    at += 2;
    if (type === 11 && path === 5) found.retryAfter = body.readUInt32LE((at += 4) - 4);
    else if (type === 16 && path === 6) found.charge = body.readDoubleLE((at += 8) - 8);
    else assert.fail(`type ${type} at path ${path}`);
  }
  return found;
}

test('a binary batch is answered in kind', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  const body = request([
    { type: 'Create', body: { id: 'a', tenant: 'x', text: 'é'.repeat(200) } },
    { type: 'Upsert', body: { id: 'b', tenant: 'x' }, minimal: true },
    { type: 'Patch', id: 'a', body: { operations: [{ op: 'set', path: '/n', value: 1 }] } },
    { type: 'Read', id: 'a' },
    { type: 'Delete', id: 'b' },
  ]);
  const answer = await send('POST', docs, { key: ['x'], headers, body });
  assert.equal(answer.status, 200, answer.text);
  const found = results(answer.bytes);
  assert.deepEqual(found.map((r) => r.status), [201, 201, 200, 200, 204]);
  assert.equal(found[3].body.n, 1);
  assert.equal(found[1].body, undefined);
  assert.equal(found[2].etag, found[3].etag);
  assert.notEqual(found[0].etag, found[3].etag);
  const sum = found.reduce((total, r) => total + r.charge, 0);
  assert.equal(sum.toFixed(2), answer.headers['x-ms-request-charge']);
  assert.equal((await container.item('a', 'x').read()).resource._etag, found[3].etag);
});

test('a failing operation of a binary batch', async (t) => {
  const { docs, send } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  const body = request([
    { type: 'Create', body: { id: 'a', tenant: 'x' } },
    { type: 'Delete', id: 'none', ifMatch: '"e"' },
  ]);
  const answer = await send('POST', docs, { key: ['x'], headers, body });
  assert.equal(answer.status, 207);
  assert.deepEqual(results(answer.bytes).map((r) => r.status), [424, 404]);
});

test('binary bulk has the key in every operation', async (t) => {
  const { docs, send } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  const body = request(['x', 'y'].map((tenant) => ({ type: 'Create', key: [tenant], body: { id: 'a', tenant } })));
  const answer = await send('POST', docs, {
    headers: { ...headers, 'x-ms-cosmos-batch-atomic': 'False', 'x-ms-cosmos-batch-continue-on-error': 'True' },
    body,
  });
  assert.deepEqual(results(answer.bytes).map((r) => r.status), [201, 201]);
});

test('binary bulk that is refused has the wait in every operation', async (t) => {
  const { docs, send } = await shop(t, {}, { create: { offerThroughput: 400 }, args: ['--set', 'throughput.burst_seconds=0'] });
  const bulk = { ...headers, 'x-ms-cosmos-batch-atomic': 'False', 'x-ms-cosmos-batch-continue-on-error': 'True' };
  const creates = (count, prefix) =>
    request(Array.from({ length: count }, (_, i) => ({ type: 'Create', key: ['x'], body: { id: `${prefix}${i}`, tenant: 'x', v: 'v'.repeat(1000) } })));
  const first = await send('POST', docs, { headers: bulk, body: creates(100, 'a') });
  assert.ok(results(first.bytes).every((r) => r.status === 201));
  const second = await send('POST', docs, { headers: bulk, body: creates(5, 'b') });
  assert.equal(second.status, 207);
  assert.ok(results(second.bytes).every((r) => r.status === 429 && r.retryAfter > 0));
});

test('a binary batch that is broken is 400 in JSON', async (t) => {
  const { docs, send } = await shop(t);
  const good = request([{ type: 'Read', id: 'a' }]);
  const wrong = Buffer.from(good);
  wrong[wrong.length - 1] ^= 1;
  for (const body of [wrong, good.subarray(0, 20), Buffer.from([0x81]), request([])]) {
    const answer = await send('POST', docs, { key: ['x'], headers, body });
    assert.equal(answer.status, 400);
    assert.equal(answer.json.code, 'BadRequest');
  }
});
