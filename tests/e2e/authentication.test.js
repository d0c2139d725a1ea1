// Who may come in: keys, clocks, spellings and what is refused by name.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Server, emulatorKey, scratch } from './server.js';
import { master, send, signature, signed } from './rest.js';

async function keysOf(server, account = 'default') {
  return (await signed(server, 'GET', `/_orrery/accounts/${account}/keys`)).json.keys;
}

async function shop(server) {
  await signed(server, 'POST', '/dbs', { body: { id: 'shop' } });
  await signed(server, 'POST', '/dbs/shop/colls', { body: { id: 'orders', partitionKey: { paths: ['/tenant'] } } });
  await signed(server, 'POST', '/dbs/shop/colls/orders/docs', {
    headers: { 'x-ms-documentdb-partitionkey': '["x"]' }, body: { id: 'a', tenant: 'x' },
  });
}

test('all four keys open the account, and those to read write nothing', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await shop(server);
  const keys = await keysOf(server);
  assert.deepEqual(Object.keys(keys), ['primary', 'secondary', 'primary-readonly', 'secondary-readonly']);
  for (const [name, key] of Object.entries(keys)) {
    assert.equal((await signed(server, 'GET', '/dbs/shop', { key })).status, 200, name);
    const created = await signed(server, 'POST', '/dbs', { key, body: { id: name } });
    assert.equal(created.status, name.includes('readonly') ? 403 : 201, name);
  }
  const key = keys['primary-readonly'];
  const pk = { 'x-ms-documentdb-partitionkey': '["x"]' };
  for (const [method, path, headers] of [
    ['POST', '/dbs'], ['DELETE', '/dbs/shop'], ['POST', '/dbs/shop/colls'], ['PUT', '/dbs/shop/colls/orders'],
    ['DELETE', '/dbs/shop/colls/orders'], ['POST', '/dbs/shop/colls/orders/docs', pk],
    ['POST', '/dbs/shop/colls/orders/docs', { ...pk, 'x-ms-documentdb-is-upsert': 'true' }],
    ['PUT', '/dbs/shop/colls/orders/docs/a', pk], ['DELETE', '/dbs/shop/colls/orders/docs/a', pk],
    ['POST', '/dbs/shop/users'], ['DELETE', '/dbs/shop/users/u'], ['POST', '/dbs/shop/colls/orders/sprocs'], ['POST', '/dbs/shop/colls/orders/sprocs/p'],
    ['GET', '/dbs/shop/users/u/permissions'], ['GET', '/_orrery/accounts/default/keys'],
    ['DELETE', '/_orrery/accounts/x'],
  ]) {
    const answer = await signed(server, method, path, { key, headers, body: method === 'GET' || method === 'DELETE' ? undefined : {} });
    assert.equal(answer.status, 403, `${method} ${path}: ${answer.text}`);
  }
  assert.equal((await signed(server, 'GET', '/dbs/shop/colls/orders/docs/a', { key, headers: pk })).status, 200);
});

test('the public emulator key opens a server for development and no other', async (t) => {
  const server = await Server.start(t);
  assert.equal((await signed(server, 'GET', '/dbs')).status, 401);
  const key = /AccountKey=([^;]+);/.exec(server.out)[1];
  assert.equal((await signed(server, 'GET', '/dbs', { key })).status, 200);
});

test('a wrong signature is answered with the text that should have been signed', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const key = Buffer.alloc(64, 7).toString('base64');
  const date = new Date().toUTCString();
  const wrong = await signed(server, 'GET', '/dbs/d/colls/C', { key, date });
  assert.equal(wrong.status, 401);
  assert.equal(wrong.json.code, 'Unauthorized');
  assert.ok(wrong.json.message.includes(
    `Server used the following payload to sign: 'get\\ncolls\\ndbs/d/colls/C\\n${date.toLowerCase()}\\n\\n'`), wrong.json.message);
});

test('a missing, malformed or foreign token is 401 and says what is wrong', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const date = { 'x-ms-date': new Date().toUTCString() };
  const missing = await send(server, 'GET', '/dbs', { headers: date });
  assert.equal(missing.status, 401);
  assert.ok(missing.json.message.startsWith('Required Header authorization is missing. Ensure a valid Authorization token is passed.'));
  for (const [authorization, words] of [
    ['nonsense', 'malformed'], ['type=master', 'malformed'], ['%zz', 'malformed'], [master(''), 'payload'],
    [master('AAAA'), 'payload'], [master('!'.repeat(44)), 'payload'],
    ['type%3Daad%26ver%3D1.0%26sig%3Dx', 'directory token is none'],
    ['type=aad&ver=1.0&sig=eyJ', 'directory token is none'],
    ['type=sas&ver=1.0&sig=a;b', 'SAS tokens are not supported'],
    ['type=other&ver=1.0&sig=a', 'unknown'], ['type=resource&ver=1&sig=a', 'malformed'],
  ]) {
    const answer = await send(server, 'GET', '/dbs', { headers: { ...date, authorization } });
    assert.equal(answer.status, 401, authorization);
    assert.ok(answer.json.message.includes(words), `${authorization}: ${answer.json.message}`);
  }
});

test('clocks may differ by a quarter of an hour, not more', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const at = (minutes) => new Date(Date.now() + minutes * 60_000).toUTCString();
  for (const [minutes, status] of [[-16, 403], [-14, 200], [14, 200], [16, 403]])
    assert.equal((await signed(server, 'GET', '/dbs', { date: at(minutes) })).status, status, `${minutes}`);
  const sig = signature(emulatorKey, 'GET', { type: 'dbs', link: '' }, 'yesterday');
  const odd = await send(server, 'GET', '/dbs', { headers: { 'x-ms-date': 'yesterday', authorization: master(sig) } });
  assert.equal(odd.status, 401);
});

test('a Date header stands in for x-ms-date', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const date = new Date().toUTCString();
  const payload = `get\ndbs\n\n\n${date.toLowerCase()}\n`;
  const sig = createHmac('sha256', Buffer.from(emulatorKey, 'base64')).update(payload).digest('base64');
  const answer = await send(server, 'GET', '/dbs', { headers: { date, authorization: master(sig) } });
  assert.equal(answer.status, 200, answer.text);
});

test('every spelling of a token and of an id that client libraries use is understood', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await shop(server);
  const pk = { 'x-ms-documentdb-partitionkey': '["x"]' };
  for (const id of ['plain', 'a b', 'a+b', 'ä', '100%', '%41', 'x?y', "it's", 'a&b=c', 'end '])
    assert.equal(
      (await signed(server, 'POST', '/dbs/shop/colls/orders/docs', { headers: pk, body: { id, tenant: 'x' } })).status, 201, id);
  const path = '/dbs/shop/colls/orders/docs/';
  const link = (id) => ({ type: 'docs', link: `dbs/shop/colls/orders/docs/${id}` });
  const lower = (text) => text.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
  const dotnet = (text) => lower(encodeURIComponent(text)); // HttpUtility.UrlEncode: small hex digits
  for (const [id, sent, signedId] of [
    ['a b', 'a%20b', 'a b'], ['ä', '%C3%A4', 'ä'], ['ä', '%c3%a4', 'ä'], ['100%', '100%25', '100%'], ['%41', '%2541', '%41'],
    ['x?y', 'x?y', 'x?y'] /* JavaScript */, ['x?y', 'x%3Fy', 'x?y'], ["it's", "it's", "it's"], ["it's", 'it%27s', "it's"],
    ['a+b', 'a+b', 'a+b'], ['a+b', 'a%2Bb', 'a+b'], ['a&b=c', 'a%26b%3Dc', 'a&b=c'], ['end ', 'end%20', 'end '],
    ['a b', 'a%20b', 'a%20b'] /* signed as it was sent */, ['plain', 'plain', 'plain'],
  ]) {
    const date = new Date().toUTCString();
    const token = `type=master&ver=1.0&sig=${signature(emulatorKey, 'GET', link(signedId), date)}`;
    for (const authorization of [encodeURIComponent(token), dotnet(token), token]) {
      const answer = await send(server, 'GET', path + sent, { headers: { 'x-ms-date': date, authorization, ...pk } });
      assert.equal(answer.status, 200, `${sent}: ${answer.text}`);
      assert.equal(answer.json.id, id);
    }
  }
});

test('a link made of _rids is signed by its last rid in small letters', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await shop(server);
  const { json: container } = await signed(server, 'GET', '/dbs/shop/colls/orders');
  const path = '/' + container._self.replace(/\/$/, '');
  assert.equal((await signed(server, 'GET', path, { sign: { type: 'colls', link: container._rid.toLowerCase() } })).status, 200);
  const feed = await signed(server, 'POST', `${path}/docs`, {
    sign: { type: 'docs', link: container._rid.toLowerCase() },
    headers: { 'x-ms-documentdb-partitionkey': '["x"]' }, body: { id: 'r', tenant: 'x' },
  });
  assert.equal(feed.status, 201, feed.text);
});

test('a rotated key is worth nothing at once, and the file of keys shows the new one', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `local=rocksdb:${directory}`]);
  const read = () => Object.fromEntries(readFileSync(`${directory}/keys`, 'utf8').trim().split('\n').map((line) => line.split(' ')));
  const before = read();
  const rotated = await signed(server, 'POST', '/_orrery/accounts/default/keys/secondary/rotate', { key: before.primary });
  assert.equal(rotated.status, 200, rotated.text);
  assert.notEqual(rotated.json.keys.secondary, before.secondary);
  assert.equal(rotated.json.keys.primary, before.primary);
  assert.deepEqual(read(), rotated.json.keys);
  assert.equal((await signed(server, 'GET', '/dbs', { key: before.secondary })).status, 401);
  assert.equal((await signed(server, 'GET', '/dbs', { key: rotated.json.keys.secondary })).status, 200);
  assert.ok(!server.err.includes(before.primary) && !server.err.includes(rotated.json.keys.secondary));
});
