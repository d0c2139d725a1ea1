// Indexes besides the policy, as somebody uses them who means no good: too much of everything, and containers of others.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Server, measured, sanitized } from './server.js';
import { signed } from './rest.js';

const people = '/dbs/shop/colls/people';
const definition = (indexes) => ({ id: 'people', partitionKey: { paths: ['/team'], kind: 'Hash', version: 2 },
  indexingPolicy: { indexingMode: 'consistent', includedPaths: [], excludedPaths: [{ path: '/*' }] }, orrery: { indexes } });
const item = (more, id = '1') => ({ id, team: 't', ...more });
const ofTeam = { 'x-ms-documentdb-partitionkey': '["t"]' };

// A server with a database, and requests of one account.
async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args], measured);
  const send = (method, path, body, more = {}) => signed(server, method, path, { body, ...more });
  await send('POST', '/dbs', { id: 'shop' });
  return { server, send };
}

async function made(send, indexes) {
  const answer = await send('POST', '/dbs/shop/colls', definition(indexes));
  assert.equal(answer.status, 201, answer.text);
}

const put = (send, body) => send('POST', `${people}/docs`, body, { headers: ofTeam });

test('each limit of a definition is refused by name', async (t) => {
  const { send } = await started(t);
  const key = [{ path: '/a' }], many = (count, one) => Array.from({ length: count }, (_, i) => one(i));
  const deep = (levels) => { let value = 1; for (let i = 0; i < levels; i++) value = { a: value }; return value; };
  const condition = (value) => ({ path: '/a', comparison: 'equal', value });
  for (const [indexes, status, message] of [
    [[{ name: 'x'.repeat(256), key }], 400, /at most 255 bytes/],
    [[{ name: '', key }], 400, /needs a name/],
    [[{ name: 'a', key: [] }], 400, /1 to 32 paths/],
    [[{ name: 'a', key: many(33, (i) => ({ path: `/p${i}` })) }], 400, /1 to 32 paths/],
    [[{ name: 'a', key, filter: many(33, condition) }], 400, /1 to 32 conditions/],
    [[{ name: 'a', wildcard: { include: many(65, (i) => `/p${i}/*`) } }], 400, /1 to 64 paths/],
    [[{ name: 'a', wildcard: { include: many(40, (i) => `/p${i}/*`), exclude: many(40, (i) => `/q${i}/*`) } }], 400, /more than 64 paths/],
    [[{ name: 'a', key: [{ path: `/${'x'.repeat(100_000)}` }] }], 400, /path/],
    [[{ name: 'a', key: [{ path: '/x'.repeat(5_000) }] }], 400, /path/],
    [[{ name: 'a', key: [{ path: '/a/*' }] }], 400, /path/],
    [[{ name: 'a', key, filter: [condition(deep(1000))] }], 400, /./],
    [[{ name: 'a', key, filter: [condition('x'.repeat(1_100_000))] }], 413, /definition/],
    [many(65, (i) => ({ name: `${i}`, key })), 400, /more than 64/],
    [[{ name: 'a', key, expireAfterSeconds: 1e12 }], 400, /expireAfterSeconds/],
  ]) {
    const answer = await send('POST', '/dbs/shop/colls', definition(indexes));
    assert.equal(answer.status, status, `${message}: ${answer.text.slice(0, 400)}`);
    assert.match(answer.text, message);
    assert.ok(answer.text.length < 4000, 'what was sent does not come back');
  }
});

test('an item with more in its indexes than may be is refused by name, and little memory is held for it', async (t) => {
  const { server, send } = await started(t);
  const wide = { name: 'wide', multikey: true, key: [{ path: '/l' }, ...Array.from({ length: 31 }, (_, i) => ({ path: `/t${i}` }))] };
  await made(send, [wide]);
  const texts = Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`t${i}`, 'x'.repeat(300)]));
  const numbers = (count, different = count) => Array.from({ length: count }, (_, i) => i % different);
  const before = server.residentBytes();
  for (const [body, message] of [
    [item({ l: numbers(20_000), ...texts }), /index entries of more than 33554432 bytes/],
    [item({ l: numbers(20_001) }), /more than 20000 index entries/],
  ]) {
    const answer = await put(send, body);
    assert.equal(answer.status, 413, answer.text);
    assert.match(answer.text, message);
  }
  assert.equal((await put(send, item({ l: numbers(2_000), ...texts }))).status, 201);
  const heldBytes = server.residentBytes() - before;
  t.diagnostic(`held ${(heldBytes / 1e6).toFixed(0)} MB more`);
  assert.ok(heldBytes < (sanitized ? 600e6 : 200e6), `${heldBytes} bytes`);
});

test('an item that takes too long to look through is refused by name, and others are served meanwhile', async (t) => {
  const { server, send } = await started(t);
  const { json: { keys } } = await send('POST', '/_orrery/accounts', { id: 'other' });
  const other = (method, path, body, headers) => signed(server, method, path, { key: keys.primary, account: 'other', body, headers });
  await other('POST', '/dbs', { id: 'd' });
  await other('POST', '/dbs/d/colls', { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash' } });
  await other('POST', '/dbs/d/colls/c/docs', { id: '1', pk: 'x' }, { 'x-ms-documentdb-partitionkey': '["x"]' });
  await made(send, Array.from({ length: 64 }, (_, n) => ({ name: `${n}`, multikey: true,
    key: [{ path: '/l' }, ...Array.from({ length: 31 }, (_, i) => ({ path: `/t${n}_${i}` }))] })));
  const before = server.residentBytes();
  const attacks = Array.from({ length: 8 }, (_, i) => put(send, item({ l: Array(150_000).fill(1) }, `${i}`)));
  for (let i = 0; i < 20; i++) {
    const read = await other('GET', '/dbs/d/colls/c/docs/1', undefined, { 'x-ms-documentdb-partitionkey': '["x"]' });
    assert.equal(read.status, 200, read.text);
  }
  for (const answer of await Promise.all(attacks)) {
    assert.equal(answer.status, 413, answer.text);
    assert.match(answer.text, /steps to find its index entries/);
  }
  const heldBytes = server.residentBytes() - before;
  t.diagnostic(`held ${(heldBytes / 1e6).toFixed(0)} MB more`);
  assert.ok(heldBytes < (sanitized ? 1200e6 : 400e6), `${heldBytes} bytes`);
});

test('an item has at most 1000 values in unique indexes, a transaction 8000', async (t) => {
  const { send } = await started(t);
  await made(send, [{ name: 'tags', multikey: true, key: [{ path: '/tags' }], unique: 'logicalPartition' }]);
  const tags = (from, count) => Array.from({ length: count }, (_, i) => from + i);
  const refused = await put(send, item({ tags: tags(0, 1001) }));
  assert.equal(refused.status, 413, refused.text);
  assert.match(refused.text, /more than 1000 values in unique indexes/);
  assert.equal((await put(send, item({ tags: tags(0, 1000) }))).status, 201);
  const changed = await send('PUT', `${people}/docs/1`, item({ tags: tags(5000, 1000) }), { headers: ofTeam });
  assert.equal(changed.status, 200, changed.text); // as many before and after
  const batch = (count, from) => send('POST', `${people}/docs`,
    tags(0, count).map((i) => ({ operationType: 'Create', resourceBody: item({ tags: tags(from + 1000 * i, 1000) }, `b${from}-${i}`) })),
    { headers: { ...ofTeam, 'x-ms-cosmos-is-batch-request': 'true', 'x-ms-cosmos-batch-atomic': 'true' } });
  const nine = await batch(9, 100_000);
  assert.ok(nine.status === 413 || nine.json.some(({ statusCode }) => statusCode === 413), nine.text.slice(0, 400));
  const eight = await batch(8, 200_000);
  assert.deepEqual(eight.json.map(({ statusCode }) => statusCode), Array(8).fill(201));
});

test('changes of indexes one after the other are refused while eight are under way, and all come to an end', async (t) => {
  const { send } = await started(t);
  await made(send, []);
  for (let i = 0; i < 50; i++) assert.equal((await put(send, item({ a: i }, `${i}`))).status, 201);
  const statuses = [];
  for (let i = 0; i < 40; i++)
    statuses.push((await send('PUT', people, definition([{ name: `n${i}`, key: [{ path: `/a${i}` }] }]))).status);
  assert.ok(statuses.every((status) => status === 200 || status === 503), `${statuses}`);
  assert.ok(statuses.includes(503), 'nobody can have more than eight under way');
  for (;;) {
    const { headers, json } = await send('GET', people);
    if (headers['x-ms-documentdb-collection-index-transformation-progress'] === '100') {
      assert.deepEqual(json.orrery.indexes.map(({ state }) => state), ['ready']);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

test('read-only keys, tokens and other accounts neither make nor drop an index', async (t) => {
  const { send } = await started(t);
  const { json: { keys } } = await send('POST', '/_orrery/accounts', { id: 'other' });
  await made(send, [{ name: 'mine', key: [{ path: '/a' }] }]);
  const { json: own } = await send('GET', '/_orrery/accounts/default/keys');
  await send('POST', '/dbs/shop/users', { id: 'ann' });
  const token = async (id, permissionMode, more = {}) => {
    const made = await send('POST', '/dbs/shop/users/ann/permissions', { id, permissionMode, resource: 'dbs/shop/colls/people', ...more });
    assert.equal(made.status, 201, made.text);
    return { authorization: encodeURIComponent(made.json._token) };
  };
  const attempts = [
    ['a read-only key', { key: own.keys?.['primary-readonly'] ?? own['primary-readonly'] }, 403],
    ['a token to read', await token('read', 'Read'), 403],
    ['a token for one key', await token('one', 'All', { resourcePartitionKey: ['t'] }), 403],
    ['a key of another account', { key: keys.primary }, 401],
    ['another account', { key: keys.primary, account: 'other' }, 404],
  ];
  for (const [who, how, status] of attempts)
    for (const indexes of [[], [{ name: 'mine', key: [{ path: '/a' }] }, { name: 'theirs', key: [{ path: '/b' }] }]]) {
      const answer = await send('PUT', people, definition(indexes), how);
      assert.equal(answer.status, status, `${who}: ${answer.status} ${answer.text}`);
    }
  for (const [who, how, status] of attempts.slice(0, 4))
    assert.equal((await send('POST', '/dbs/shop/colls', { ...definition([]), id: 'more' }, how)).status, status, who);
  const { json } = await send('GET', people);
  assert.deepEqual(json.orrery.indexes.map(({ name, state }) => [name, state]), [['mine', 'ready']]);
});
