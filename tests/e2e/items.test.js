// Items one by one: ids, keys, bodies, etags, limits and the words of refusals.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { PartitionKeyBuilder } from '@azure/cosmos';
import { shop } from './items.js';

test('ids may be anything but empty, too long, or with slashes and hashes', async (t) => {
  const { container, docs, send } = await shop(t);
  for (const id of [' lead', 'trail ', 'a?b=c', 'a%20b', '100%', 'ünïcødé 🎉', '\u0001', 'a+b&c', 'x'.repeat(1023)]) {
    const { resource } = await container.items.create({ id, tenant: 'x' });
    assert.equal(resource.id, id);
    const path = `${docs}/${encodeURIComponent(id)}`;
    const read = await send('GET', path, { key: ['x'] });
    assert.equal(read.status, 200, `GET of ${JSON.stringify(id)}: ${read.text}`);
    assert.equal(read.json.id, id);
  }
  assert.equal((await container.item('a?b=c', 'x').read()).resource.id, 'a?b=c');
  for (const id of ['', 'a/b', 'a\\b', 'a#b', 'x'.repeat(1024), 7, null, undefined]) {
    const answer = await send('POST', docs, { key: ['x'], body: { id, tenant: 'x' } });
    assert.equal(answer.status, 400, `id ${JSON.stringify(id)}`);
    assert.equal(answer.json.code, 'BadRequest');
  }
  const missing = await send('POST', docs, { key: ['x'], body: { tenant: 'x' } });
  assert.match(missing.json.message, /One of the specified inputs is invalid/);
});

test('the partition key of the header and of the item must agree', async (t) => {
  const { docs, send } = await shop(t);
  const other = await send('POST', docs, { key: ['y'], body: { id: 'a', tenant: 'x' } });
  assert.equal(other.status, 400);
  assert.equal(other.headers['x-ms-substatus'], '1001');
  assert.match(other.json.message, /PartitionKey extracted from document doesn't match the one specified in the header/);
  const none = await send('GET', `${docs}/a`);
  assert.equal(none.status, 400);
  assert.match(none.json.message, /PartitionKey value must be supplied for this operation\./);
  const two = await send('GET', `${docs}/a`, { key: ['x', 'y'] });
  assert.equal(two.status, 400);
  assert.match(two.json.message, /Number of components in partition key value \(2\) does not match definition \(1\)/);
  for (const header of ['x', '{"a":1}', '[', '[[1]]', '["x",'])
    assert.equal((await send('GET', `${docs}/a`, { headers: { 'x-ms-documentdb-partitionkey': header } })).status, 400);
  // Without a header a create takes it from the item.
  assert.equal((await send('POST', docs, { body: { id: 'a', tenant: 'x' } })).status, 201);
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'] })).status, 200);
});

test('null, missing, false, 0 and the empty text are different keys', async (t) => {
  const { docs, send } = await shop(t);
  const keys = [[null], [{}], [false], [0], ['']];
  for (const [i, key] of keys.entries()) {
    const body = { id: 'same', n: i, ...(i === 1 ? {} : { tenant: key[0] }) };
    assert.equal((await send('POST', docs, { key, body })).status, 201);
  }
  for (const [i, key] of keys.entries())
    assert.equal((await send('GET', `${docs}/same`, { key })).json.n, i);
  const nested = await send('POST', docs, { body: { id: 'b', tenant: [1] } });
  assert.equal(nested.status, 400);
});

test('hierarchical keys need all their components', async (t) => {
  const { container, docs, send } = await shop(t, {
    partitionKey: { paths: ['/tenant', '/user', '/session'], kind: 'MultiHash', version: 2 },
  });
  const item = { id: 'a', tenant: 't', user: 'u', session: 7 };
  const { resource } = await container.items.create(item);
  assert.equal(resource.session, 7);
  const key = new PartitionKeyBuilder().addValue('t').addValue('u').addValue(7).build();
  assert.equal((await container.item('a', key).read()).resource.user, 'u');
  const short = await send('GET', `${docs}/a`, { key: ['t', 'u'] });
  assert.equal(short.status, 400);
  assert.match(short.json.message, /^Partition key provided either .* It has 2 of 3 components/);
  // A prefix names a feed.
  await container.items.create({ ...item, id: 'b', user: 'v' });
  await container.items.create({ ...item, id: 'c', tenant: 's' });
  const feed = await send('GET', docs, { key: ['t'] });
  assert.deepEqual(feed.json.Documents.map((d) => d.id).sort(), ['a', 'b']);
  const whole = await send('GET', docs, { key: ['t', 'v', 7] });
  assert.deepEqual(whole.json.Documents.map((d) => d.id), ['b']);
});

test('system properties come last, in order, and are never taken from the client', async (t) => {
  const { resource: definition, docs, send } = await shop(t);
  const body = { _etag: 'mine', z: 1, id: 'a', _ts: 5, tenant: 'x', _rid: 'no', _self: 'no', _attachments: 'no', _mine: 2 };
  const created = await send('POST', docs, { key: ['x'], body });
  assert.equal(created.status, 201);
  assert.deepEqual(Object.keys(created.json), ['z', 'id', 'tenant', '_mine', '_rid', '_self', '_etag', '_attachments', '_ts']);
  assert.equal(created.json._attachments, 'attachments/');
  assert.equal(created.headers.etag, created.json._etag);
  assert.match(created.json._etag, /^"[0-9a-f-]{36}"$/);
  assert.equal(created.json._self, `${definition._self}docs/${created.json._rid}/`);
  assert.ok(Math.abs(created.json._ts - Date.now() / 1000) < 60);
  assert.equal(Buffer.from(created.json._rid.replaceAll('-', '/'), 'base64').length, 16);
});

test('headers of an answer say where it came from and what it cost', async (t) => {
  const { resource: definition, docs, send } = await shop(t);
  const created = await send('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x' } });
  const { headers } = created;
  assert.equal(headers['x-ms-content-path'], definition._rid);
  assert.equal(headers['x-ms-alt-content-path'], 'dbs/shop/colls/orders');
  const range = headers['x-ms-documentdb-partitionkeyrangeid'];
  assert.equal(headers['x-ms-session-token'], `${range}:-1#${headers.lsn}`);
  assert.ok(Number(headers['x-ms-request-charge']) > 5);
  assert.equal(headers['x-ms-item-lsn'], headers.lsn);
  assert.match(headers['x-ms-activity-id'], /^[0-9a-f-]{36}$/);
  const read = await send('GET', `${docs}/a`, { key: ['x'] });
  assert.equal(read.headers['x-ms-request-charge'], '1.00');
  const miss = await send('GET', `${docs}/b`, { key: ['x'] });
  assert.equal(miss.status, 404);
  assert.equal(miss.headers['x-ms-substatus'], undefined);
  assert.equal(miss.headers['x-ms-request-charge'], '1.00');
  assert.match(miss.json.message, /Entity with the specified id does not exist in the system\./);
});

test('a session token ahead of the partition is 404 with substatus 1002', async (t) => {
  const { container, docs, send } = await shop(t);
  const { headers } = await container.items.create({ id: 'a', tenant: 'x' });
  const token = headers['x-ms-session-token'];
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-session-token': token } })).status, 200);
  const ahead = await send('GET', `${docs}/a`, {
    key: ['x'],
    headers: { 'x-ms-session-token': token.replace(/#.*/, '#99999') },
  });
  assert.equal(ahead.status, 404);
  assert.equal(ahead.headers['x-ms-substatus'], '1002');
  const broken = await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-session-token': 'what' } });
  assert.equal(broken.status, 400);
});

test('numbers, Unicode and lone surrogates survive', async (t) => {
  const { docs, send } = await shop(t);
  const numbers = '[0,-0.5,1e-7,9007199254740991,-9007199254740991,1.7976931348623157e308,5e-324,0.1,123456789.125]';
  const text = `{"id":"a","tenant":"x","n":${numbers},"whole":1.0,"s":"\\u2028\\u2029 \\ud83d\\ude00 \\ud83d alone","e":""}`;
  const created = await send('POST', docs, { key: ['x'], body: text });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.json.n, JSON.parse(numbers));
  assert.match(created.text, /"whole":1,/);
  assert.equal(created.json.s, '\u2028\u2029 \u{1f600} \ud83d alone');
  for (const bad of ['{"id":"b","tenant":"x","n":NaN}', '{"id":"b","tenant":"x","n":1e999}', '{"id":"b","tenant":"x",}', '{"id":"b","id":"c"}', 'null', '[]', '', '{"id":"b"} x'])
    assert.equal((await send('POST', docs, { key: ['x'], body: bad })).status, 400, bad);
});

test('items nest 128 levels deep and no deeper', async (t) => {
  const { docs, send } = await shop(t);
  const nested = (levels) => '['.repeat(levels) + ']'.repeat(levels);
  const body = (levels) => `{"id":"a${levels}","tenant":"x","v":${nested(levels - 1)}}`;
  assert.equal((await send('POST', docs, { key: ['x'], body: body(128) })).status, 201);
  assert.equal((await send('POST', docs, { key: ['x'], body: body(129) })).status, 400);
});

test('an item over 2 MB is 413', async (t) => {
  const { docs, send } = await shop(t);
  const fits = await send('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x', v: 'v'.repeat(2 * 1024 * 1024 - 200) } });
  assert.equal(fits.status, 201);
  const large = await send('POST', docs, { key: ['x'], body: { id: 'b', tenant: 'x', v: 'v'.repeat(2 * 1024 * 1024 + 10) } });
  assert.equal(large.status, 413);
  assert.equal(large.json.code, 'RequestEntityTooLarge');
  assert.match(large.json.message, /Request size is too large/);
  const huge = await send('POST', docs, { key: ['x'], body: { id: 'c', tenant: 'x', v: 'v'.repeat(5 * 1024 * 1024) } }).catch((e) => e);
  assert.ok(huge.status === 413 || huge.code === 'EPIPE' || huge.code === 'ECONNRESET');
});

test('a minimal answer has no body', async (t) => {
  const { docs, send } = await shop(t);
  const headers = { prefer: 'return=minimal' };
  const created = await send('POST', docs, { key: ['x'], headers, body: { id: 'a', tenant: 'x' } });
  assert.deepEqual([created.status, created.text], [201, '']);
  assert.ok(created.headers.etag);
  const replaced = await send('PUT', `${docs}/a`, { key: ['x'], headers, body: { id: 'a', tenant: 'x', n: 1 } });
  assert.deepEqual([replaced.status, replaced.text], [200, '']);
  const patched = await send('PATCH', `${docs}/a`, { key: ['x'], headers, body: [{ op: 'incr', path: '/n', value: 1 }] });
  assert.deepEqual([patched.status, patched.text], [200, '']);
  const deleted = await send('DELETE', `${docs}/a`, { key: ['x'], headers });
  assert.deepEqual([deleted.status, deleted.text], [204, '']);
});

test('etags guard reads, replaces, upserts and deletes', async (t) => {
  const { docs, send } = await shop(t);
  const path = `${docs}/a`;
  const body = { id: 'a', tenant: 'x' };
  const first = (await send('POST', docs, { key: ['x'], body })).json._etag;
  assert.equal((await send('GET', path, { key: ['x'], headers: { 'if-none-match': first } })).status, 304);
  const second = (await send('PUT', path, { key: ['x'], headers: { 'if-match': first }, body })).json._etag;
  assert.notEqual(second, first);
  assert.equal((await send('GET', path, { key: ['x'], headers: { 'if-none-match': first } })).status, 200);
  const stale = await send('PUT', path, { key: ['x'], headers: { 'if-match': first }, body });
  assert.equal(stale.status, 412);
  assert.equal(stale.json.code, 'PreconditionFailed');
  // Without its quotes, and any.
  assert.equal((await send('PUT', path, { key: ['x'], headers: { 'if-match': second.slice(1, -1) }, body })).status, 200);
  assert.equal((await send('PUT', path, { key: ['x'], headers: { 'if-match': '*' }, body })).status, 200);
  const upsert = { 'x-ms-documentdb-is-upsert': 'True' };
  assert.equal((await send('POST', docs, { key: ['x'], headers: { ...upsert, 'if-match': first }, body })).status, 412);
  const made = await send('POST', docs, { key: ['x'], headers: { ...upsert, 'if-match': first }, body: { id: 'new', tenant: 'x' } });
  assert.equal(made.status, 201, 'an upsert of a missing item is made whatever if-match says');
  assert.equal((await send('POST', docs, { key: ['x'], headers: { ...upsert, 'if-none-match': '*' }, body })).status, 412);
  assert.equal((await send('POST', docs, { key: ['x'], headers: { 'if-none-match': '*' }, body })).status, 409);
  assert.equal((await send('DELETE', path, { key: ['x'], headers: { 'if-match': first } })).status, 412);
  assert.equal((await send('DELETE', path, { key: ['x'] })).status, 204);
  assert.equal((await send('DELETE', path, { key: ['x'] })).status, 404);
  assert.equal((await send('PUT', path, { key: ['x'], body })).status, 404);
});

test('a replace cannot change the key or leave out the id', async (t) => {
  const { container, docs, send } = await shop(t);
  await container.items.create({ id: 'a', tenant: 'x' });
  assert.equal((await send('PUT', `${docs}/a`, { key: ['x'], body: { id: 'a', tenant: 'y' } })).status, 400);
  assert.equal((await send('PUT', `${docs}/a`, { key: ['x'], body: { tenant: 'x' } })).status, 400);
  assert.equal((await container.item('a', 'x').read()).statusCode, 200);
});

test('an item is found by its _rid', async (t) => {
  const { resource: definition, container, send } = await shop(t);
  const { resource } = await container.items.create({ id: 'a', tenant: 'x' });
  const path = `/${definition._self}docs/${resource._rid}`.replaceAll('//', '/');
  const read = await send('GET', path, { sign: { type: 'docs', link: resource._rid.toLowerCase() } });
  assert.equal(read.status, 200, read.text);
  assert.equal(read.json.id, 'a');
});

test('duplicates and unique keys are 409, and what expired is in nobody\'s way', async (t) => {
  const { container, docs, send } = await shop(t, {
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/email'] }] },
    defaultTtl: -1,
  });
  await container.items.create({ id: 'a', tenant: 'x', email: 'e' });
  const duplicate = await send('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x', email: 'f' } });
  assert.equal(duplicate.status, 409);
  assert.match(duplicate.json.message, /Entity with the specified id already exists in the system\./);
  const taken = await send('POST', docs, { key: ['x'], body: { id: 'b', tenant: 'x', email: 'e' } });
  assert.equal(taken.status, 409);
  assert.equal(taken.headers['x-ms-substatus'], '3301');
  assert.match(taken.json.message, /Unique index constraint violation\./);
  assert.equal((await send('POST', docs, { key: ['y'], body: { id: 'b', tenant: 'y', email: 'e' } })).status, 201);
  await container.items.create({ id: 'c', tenant: 'x', email: 'g', ttl: 1 });
  while ((await container.item('c', 'x').read()).statusCode === 200) await new Promise((r) => setTimeout(r, 50));
  assert.equal((await send('POST', docs, { key: ['x'], body: { id: 'c', tenant: 'x', email: 'g' } })).status, 201);
});

test('a ttl is -1 or a positive whole number', async (t) => {
  const { docs, send } = await shop(t, { defaultTtl: 3600 });
  for (const ttl of [0, -2, null, '5', 1.5, 2147483648, true, {}])
    assert.equal((await send('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x', ttl } })).status, 400, JSON.stringify(ttl));
  for (const ttl of [-1, 1, 2147483647])
    assert.equal((await send('POST', docs, { key: ['x'], body: { id: `i${ttl}`, tenant: 'x', ttl } })).status, 201);
});

test('directives, priorities and consistency levels that do not exist are refused', async (t) => {
  const { docs, send } = await shop(t);
  const post = (headers, id) => send('POST', docs, { key: ['x'], headers, body: { id, tenant: 'x', v: 1 } });
  assert.equal((await post({ 'x-ms-indexing-directive': 'Sometimes' }, 'a')).status, 400);
  const bare = await post({ 'x-ms-indexing-directive': 'Exclude' }, 'a');
  const full = await post({ 'x-ms-indexing-directive': 'Include' }, 'b');
  assert.ok(Number(bare.headers['x-ms-request-charge']) < Number(full.headers['x-ms-request-charge']));
  assert.equal((await post({ 'x-ms-cosmos-priority-level': 'Middle' }, 'c')).status, 400);
  assert.equal((await post({ 'x-ms-cosmos-throughput-bucket': '6' }, 'c')).status, 400);
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-consistency-level': 'Strong' } })).status, 400);
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-consistency-level': 'Eventual' } })).status, 200);
});

test('a container or database that is not there is 404 with substatus 1003', async (t) => {
  const { send } = await shop(t);
  for (const path of ['/dbs/shop/colls/none/docs/a', '/dbs/none/colls/orders/docs/a']) {
    const answer = await send('GET', path, { key: ['x'] });
    assert.equal(answer.status, 404);
    assert.equal(answer.headers['x-ms-substatus'], '1003');
    assert.match(answer.json.message, /Owner resource does not exist/);
  }
});

test('refusals say where the partition stands', async (t) => {
  const { docs, send } = await shop(t);
  const body = { id: 'a', tenant: 'x' };
  const { headers } = await send('POST', docs, { key: ['x'], body });
  for (const answer of [
    await send('POST', docs, { key: ['x'], body }),
    await send('PUT', `${docs}/a`, { key: ['x'], headers: { 'if-match': '"other"' }, body }),
    await send('DELETE', `${docs}/none`, { key: ['x'] }),
    await send('PATCH', `${docs}/none`, { key: ['x'], body: [{ op: 'set', path: '/n', value: 1 }] }),
  ]) {
    assert.ok([404, 409, 412].includes(answer.status));
    assert.equal(answer.headers['x-ms-session-token'], headers['x-ms-session-token']);
    assert.equal(answer.headers['x-ms-request-charge'], '1.00');
  }
});

test('a container without a partition key takes [] and [{}] for its one', async (t) => {
  const { server } = await shop(t);
  const { signed } = await import('./rest.js');
  const old = { 'x-ms-version': '2017-02-22' };
  const made = await signed(server, 'POST', '/dbs/shop/colls', { headers: old, body: { id: 'fixed' } });
  assert.equal(made.status, 201, made.text);
  const docs = '/dbs/shop/colls/fixed/docs';
  assert.equal((await signed(server, 'POST', docs, { headers: old, body: { id: 'a' } })).status, 201);
  assert.equal((await signed(server, 'GET', `${docs}/a`, { headers: old })).status, 200);
  assert.equal((await signed(server, 'PUT', `${docs}/a`, { headers: old, body: { id: 'a', n: 1 } })).status, 200);
  for (const key of ['[]', '[{}]'])
    assert.equal((await signed(server, 'GET', `${docs}/a`, { headers: { 'x-ms-documentdb-partitionkey': key } })).status, 200, key);
});

test('of fifty writers that hold one etag exactly one wins', async (t) => {
  const { container } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  await container.items.create({ id: 'a', tenant: 'x', n: 0 });
  for (let round = 0; round < 5; round++) {
    const { resource } = await container.item('a', 'x').read();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        container
          .item('a', 'x')
          .replace({ ...resource, n: i }, { accessCondition: { type: 'IfMatch', condition: resource._etag } })
          .then(() => 200, (error) => error.code),
      ),
    );
    assert.equal(outcomes.filter((code) => code === 200).length, 1);
    assert.equal(outcomes.filter((code) => code === 412).length, 49);
  }
});

test('a partition key of more items than a transaction takes goes whole', async (t) => {
  const args = ['--set', 'partition.ru_max=1000000', '--set', 'throughput.ru_max=1000000'];
  const { docs, send } = await shop(t, { indexingPolicy: { indexingMode: 'none', automatic: false } }, { args, create: { offerThroughput: 1000000 } });
  const headers = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False' };
  for (let i = 0; i < 41; i++) {
    const body = Array.from({ length: 100 }, (_, j) => ({
      operationType: 'Create',
      partitionKey: '["x"]',
      resourceBody: { id: `${i}-${j}`, tenant: 'x' },
    }));
    assert.equal((await send('POST', docs, { headers, body })).status, 200);
  }
  const path = '/dbs/shop/colls/orders/operations/partitionkeydelete';
  assert.equal((await send('POST', path, { key: ['x'] })).status, 200);
  assert.equal((await send('GET', docs, { key: ['x'] })).json._count, 0);
});

test('delete by partition key takes all items of the key and no other', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  for (let i = 0; i < 30; i++) await container.items.create({ id: `i${i}`, tenant: i % 3 ? 'x' : 'y' });
  const path = '/dbs/shop/colls/orders/operations/partitionkeydelete';
  const answer = await send('POST', path, { key: ['x'] });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['x-ms-cosmos-is-partition-key-delete-pending'], 'false');
  assert.ok(Number(answer.headers['x-ms-request-charge']) > 20);
  assert.equal((await send('GET', docs, { key: ['x'] })).json._count, 0);
  assert.equal((await send('GET', docs, { key: ['y'] })).json._count, 10);
  assert.equal((await send('POST', path)).status, 400);
  assert.equal((await send('POST', path, { key: ['none'] })).status, 200);
  await container.deleteAllItemsForPartitionKey('y');
  assert.equal((await send('GET', docs)).json._count, 0);
});
