// Resource tokens: what a permission hands out, how far it reaches and when it stops working.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

async function shop(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container: orders } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  const { container: other } = await database.containers.create({ id: 'other', partitionKey: '/tenant' });
  const { user } = await database.users.create({ id: 'ann' });
  for (const tenant of ['x', 'y']) await orders.items.create({ id: 'a', tenant });
  await other.items.create({ id: 'a', tenant: 'x' });
  return { server, database, orders, other, user };
}

const grant = async (user, id, permissionMode, resource, resourcePartitionKey) =>
  (await user.permissions.create({ id, permissionMode, resource, ...(resourcePartitionKey ? { resourcePartitionKey } : {}) })).resource;

// The same request as with a key, but with a token.
const using = (server, token) => (method, path, options = {}) =>
  signed(server, method, path, { ...options, authorization: encodeURIComponent(token) });

const keyed = (value, more = {}) => ({ headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([value]), ...more } });

test('a permission comes with a fresh token whenever it is shown, and keeps the case of its mode', async (t) => {
  const { server, user } = await shop(t);
  const created = await grant(user, 'p', 'all', 'dbs/shop/colls/orders');
  assert.equal(created.permissionMode, 'all');
  assert.match(created._token, /^type=resource&ver=1&sig=[A-Za-z0-9+/]{22}==;[A-Za-z0-9+/]+=*;[A-Za-z0-9+/]+=*;$/);
  assert.match(created._self, /^dbs\/[^/]+\/users\/[^/]+\/permissions\/[^/]+\/$/);
  assert.ok((await user.permission('p').read()).resource._token);
  const { resources } = await user.permissions.readAll().fetchAll();
  assert.ok(resources[0]._token.startsWith('type=resource&ver=1&sig='));
  for (const [seconds, status] of [['599', 400], ['86401', 400], ['x', 400], ['600', 200], ['86400', 200]]) {
    const read = await signed(server, 'GET', '/dbs/shop/users/ann/permissions/p', {
      headers: { 'x-ms-documentdb-expiry-seconds': seconds },
    });
    assert.equal(read.status, status, seconds);
  }
});

test('the client library works with the tokens of a permission feed', async (t) => {
  const { server, user } = await shop(t);
  await grant(user, 'p', 'All', 'dbs/shop/colls/orders');
  const { resources: permissionFeed } = await user.permissions.readAll().fetchAll();
  const client = new CosmosClient({ endpoint: server.url, permissionFeed });
  t.after(() => client.dispose());
  const orders = client.database('shop').container('orders');
  assert.equal((await orders.read()).resource.id, 'orders');
  assert.equal((await orders.item('a', 'x').read()).resource.tenant, 'x');
  assert.equal((await orders.items.create({ id: 'b', tenant: 'x' })).statusCode, 201);
  await orders.item('b', 'x').delete();
  const other = new CosmosClient({
    endpoint: server.url,
    resourceTokens: { 'dbs/shop/colls/other': permissionFeed[0]._token },
  });
  t.after(() => other.dispose());
  await assert.rejects(other.database('shop').container('other').item('a', 'x').read(), { code: 403 });
});

test('a token to read reads, and writes nothing', async (t) => {
  const { server, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'Read', 'dbs/shop/colls/orders');
  const ask = using(server, _token);
  assert.equal((await ask('GET', '/')).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders')).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/sprocs')).status, 200);
  const write = { ...keyed('x'), body: { id: 'n', tenant: 'x' } };
  assert.equal((await ask('POST', '/dbs/shop/colls/orders/docs', write)).status, 403);
  assert.equal((await ask('DELETE', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 403);
  assert.equal((await ask('DELETE', '/dbs/shop/colls/orders')).status, 403);
  assert.equal((await ask('POST', '/dbs/shop/colls/orders/sprocs', { body: { id: 's', body: '' } })).status, 403);
});

test('a token does not reach beyond its resource', async (t) => {
  const { server, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders');
  const ask = using(server, _token);
  for (const [method, path] of [
    ['GET', '/dbs'], ['GET', '/dbs/shop'], ['GET', '/dbs/shop/colls'], ['GET', '/dbs/shop/colls/other'],
    ['DELETE', '/dbs/shop/colls/other'], ['GET', '/dbs/shop/users'], ['GET', '/dbs/shop/users/ann/permissions/p'],
    ['DELETE', '/dbs/shop'], ['GET', '/_orrery/accounts'], ['GET', '/dbs/shop/colls/nowhere/docs/a'],
  ])
    assert.equal((await ask(method, path)).status, 403, `${method} ${path}`);
  assert.equal((await ask('GET', '/dbs/shop/colls/other/docs/a', keyed('x'))).status, 403);
  assert.equal((await ask('POST', '/dbs/shop/colls', { body: { id: 'n', partitionKey: { paths: ['/a'] } } })).status, 403);
});

test('a token bound to a partition key reaches that key alone', async (t) => {
  const { server, orders, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders', ['x']);
  const ask = using(server, _token);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders')).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a', keyed('y'))).status, 403);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a')).status, 403);
  const own = { id: 'n', tenant: 'x' }, foreign = { id: 'n', tenant: 'y' };
  assert.equal((await ask('POST', '/dbs/shop/colls/orders/docs', { ...keyed('x'), body: own })).status, 201);
  assert.equal((await ask('POST', '/dbs/shop/colls/orders/docs', { ...keyed('y'), body: foreign })).status, 403);
  assert.equal((await ask('POST', '/dbs/shop/colls/orders/docs', { body: foreign })).status, 403);
  const sly = await ask('POST', '/dbs/shop/colls/orders/docs', {
    ...keyed('x', { 'x-ms-documentdb-is-upsert': 'true' }), body: foreign,
  });
  assert.ok(sly.status === 400 || sly.status === 403, sly.text);
  assert.equal((await orders.item('n', 'y').read()).statusCode, 404);
  assert.equal((await ask('DELETE', '/dbs/shop/colls/orders')).status, 403);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/sprocs')).status, 403);
  // An item of another key by its _rid, with the right key in the header.
  const { resource: hidden } = await orders.item('a', 'y').read();
  const path = '/' + hidden._self.replace(/\/$/, '');
  assert.equal((await ask('GET', path, keyed('x'))).status, 403);
  assert.equal((await ask('DELETE', path, keyed('x'))).status, 403);
});

test('feeds, batches and patches obey the partition key of a token, and bulk requests need a free one', async (t) => {
  const { server, orders, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders', ['x']);
  const free = using(server, (await grant(user, 'q', 'All', 'dbs/shop/colls/orders'))._token);
  const ask = using(server, _token), docs = '/dbs/shop/colls/orders/docs';
  const ranges = (await ask('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges;
  const changes = { 'a-im': 'Incremental Feed' };
  for (const more of [{}, changes]) {
    const own = await ask('GET', docs, keyed('x', more));
    assert.equal(own.status, 200, own.text);
    assert.deepEqual(own.json.Documents.map((item) => item.tenant), ['x']);
    const ranged = await ask('GET', docs, keyed('x', { ...more, 'x-ms-documentdb-partitionkeyrangeid': ranges[0].id }));
    assert.deepEqual(ranged.json.Documents.map((item) => item.tenant), ['x']);
    for (const foreign of [keyed('y', more), { headers: more }, { headers: { ...more, 'x-ms-documentdb-partitionkey': '[]' } },
      { headers: { ...more, 'x-ms-documentdb-partitionkeyrangeid': ranges[0].id } },
      { headers: { ...more, 'x-ms-start-epk': '', 'x-ms-end-epk': 'FF' } }])
      assert.equal((await ask('GET', docs, foreign)).status, 403, JSON.stringify(foreign));
    assert.equal((await free('GET', docs, { headers: more })).status, 200);
  }
  const batch = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'True' };
  const create = (id, tenant) => [{ operationType: 'Create', resourceBody: { id, tenant } }];
  assert.equal((await ask('POST', docs, { ...keyed('x', batch), body: create('b', 'x') })).status, 200);
  assert.equal((await ask('POST', docs, { ...keyed('y', batch), body: create('b', 'y') })).status, 403);
  await ask('POST', docs, { ...keyed('x', batch), body: create('c', 'y') });
  await ask('POST', docs, { ...keyed('x', batch), body: [{ operationType: 'Create', partitionKey: '["y"]', resourceBody: { id: 'c', tenant: 'y' } }] });
  assert.equal((await orders.item('c', 'y').read()).statusCode, 404);
  const bulk = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False', 'x-ms-documentdb-partitionkeyrangeid': ranges[0].id };
  const row = [{ operationType: 'Create', partitionKey: '["y"]', resourceBody: { id: 'd', tenant: 'y' } }];
  assert.equal((await ask('POST', docs, { headers: bulk, body: row })).status, 403);
  assert.equal((await ask('POST', docs, { ...keyed('x', bulk), body: row })).status, 403);
  assert.equal((await free('POST', docs, { headers: bulk, body: row })).status, 200);
  const patch = { operations: [{ op: 'add', path: '/n', value: 1 }] };
  assert.equal((await ask('PATCH', `${docs}/a`, { ...keyed('x'), body: patch })).status, 200);
  assert.equal((await ask('PATCH', `${docs}/a`, { ...keyed('y'), body: patch })).status, 403);
  const wipe = (key) => ask('POST', '/dbs/shop/colls/orders/operations/partitionkeydelete', keyed(key));
  assert.equal((await wipe('y')).status, 403);
  assert.equal((await wipe('x')).status, 200);
  assert.equal((await orders.item('a', 'y').read()).statusCode, 200);
});

test('a token of an item reaches it, its container and nothing beside it', async (t) => {
  const { server, orders, user } = await shop(t);
  await orders.items.create({ id: 'b', tenant: 'x' });
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders/docs/a', ['x']);
  const ask = using(server, _token);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 200);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders')).status, 200);
  assert.equal((await ask('DELETE', '/dbs/shop/colls/orders')).status, 403);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/b', keyed('x'))).status, 403);
  assert.equal((await ask('GET', '/dbs/shop/colls/orders/docs/a', keyed('y'))).status, 403);
  assert.equal((await ask('PUT', '/dbs/shop/colls/orders/docs/a', { ...keyed('x'), body: { id: 'a', tenant: 'x', n: 1 } })).status, 200);
});

test('a permission by _rid is as good as one by name', async (t) => {
  const { server, orders, user } = await shop(t);
  const { resource } = await orders.read();
  const { _token } = await grant(user, 'p', 'Read', resource._self);
  assert.equal((await using(server, _token)('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 200);
});

test('a token stops working with its permission', async (t) => {
  const { server, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders');
  const read = () => using(server, _token)('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'));
  assert.equal((await read()).status, 200);
  await user.permission('p').replace({ id: 'p', permissionMode: 'Read', resource: 'dbs/shop/colls/orders' });
  assert.equal((await read()).status, 403);
  const { resource } = await user.permission('p').read();
  const again = using(server, resource._token);
  assert.equal((await again('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 200);
  await user.permission('p').delete();
  assert.equal((await again('GET', '/dbs/shop/colls/orders/docs/a', keyed('x'))).status, 403);
});

test('a token stops working when its container is made anew or the primary key is rotated', async (t) => {
  const { server, database, orders, other, user } = await shop(t);
  const first = await grant(user, 'p', 'All', 'dbs/shop/colls/orders');
  const second = await grant(user, 'q', 'All', 'dbs/shop/colls/other');
  await orders.delete();
  const gone = await using(server, first._token)('GET', '/dbs/shop/colls/orders');
  assert.equal(gone.status, 403);
  await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  assert.equal((await using(server, first._token)('GET', '/dbs/shop/colls/orders')).status, 403);
  assert.equal((await using(server, second._token)('GET', '/dbs/shop/colls/other')).status, 200);
  await signed(server, 'POST', '/_orrery/accounts/default/keys/secondary/rotate');
  assert.equal((await using(server, second._token)('GET', '/dbs/shop/colls/other')).status, 200);
  await signed(server, 'POST', '/_orrery/accounts/default/keys/primary/rotate');
  assert.equal((await using(server, second._token)('GET', '/dbs/shop/colls/other')).status, 401);
  assert.equal((await other.read()).statusCode, 200);
});

test('a token of one account is worth nothing in another', async (t) => {
  const { server, user } = await shop(t, ['--set', 'account.by_use=true']);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/orders');
  await signed(server, 'POST', '/dbs', { account: 'twin', body: { id: 'shop' } });
  await signed(server, 'POST', '/dbs/shop/colls', { account: 'twin', body: { id: 'orders', partitionKey: { paths: ['/tenant'] } } });
  assert.equal((await using(server, _token)('GET', '/dbs/shop/colls/orders', { account: 'twin' })).status, 401);
  assert.equal((await using(server, _token)('GET', '/dbs/shop/colls/orders', { account: 'never-was' })).status, 401);
  const { json } = await signed(server, 'GET', '/_orrery/accounts');
  assert.deepEqual(json.accounts.map((account) => account.id), ['default', 'twin']);
});

test('a token that was tampered with is refused', async (t) => {
  const { server, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'Read', 'dbs/shop/colls/orders');
  const sig = _token.slice('type=resource&ver=1&sig='.length);
  for (const bad of [
    sig.slice(1), sig.slice(0, -1), '', ';;;', sig + 'A;', sig.toLowerCase(),
    ...[3, 30, 60, 90, 120].map((at) => sig.slice(0, at) + (sig[at] === 'A' ? 'B' : 'A') + sig.slice(at + 1)),
  ]) {
    const answer = await using(server, `type=resource&ver=1&sig=${bad}`)('GET', '/dbs/shop/colls/orders');
    assert.equal(answer.status, 401, bad);
  }
});

test('a permission on what does not exist opens nothing', async (t) => {
  const { server, database, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'All', 'dbs/shop/colls/later');
  await database.containers.create({ id: 'later', partitionKey: '/tenant' });
  assert.equal((await using(server, _token)('GET', '/dbs/shop/colls/later')).status, 403);
  const { resource } = await user.permission('p').read();
  assert.equal((await using(server, resource._token)('GET', '/dbs/shop/colls/later')).status, 200);
});

test('a token bound to a key asks queries of that key alone, whatever the text says', async (t) => {
  const { server, user } = await shop(t);
  const { _token } = await grant(user, 'p', 'Read', 'dbs/shop/colls/orders', ['x']);
  const query = (headers, text) => using(server, _token)('POST', '/dbs/shop/colls/orders/docs', {
    headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true',
      'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers },
    body: { query: text },
  });
  assert.equal((await query({}, 'SELECT * FROM c')).status, 403);
  assert.equal((await query({ 'x-ms-documentdb-partitionkey': '["y"]' }, 'SELECT * FROM c')).status, 403);
  for (const text of ['SELECT VALUE c.tenant FROM c', "SELECT VALUE c.tenant FROM c WHERE c.tenant IN ('x', 'y')",
    'SELECT VALUE c.tenant FROM c WHERE true OR c.id = "a" ORDER BY c.tenant DESC'])
    assert.deepEqual((await query({ 'x-ms-documentdb-partitionkey': '["x"]' }, text)).json.Documents, ['x'], text);
  assert.deepEqual((await query({ 'x-ms-documentdb-partitionkey': '["x"]' }, 'SELECT VALUE COUNT(1) FROM c')).json.Documents, [1]);
});

test('a permission on an item without a key is bound to the one item of that id', async (t) => {
  const { server, orders, user } = await shop(t); // has the id "a" for the tenants x and y
  await orders.items.create({ id: 'only', tenant: 'x' });
  const item = (id) => `dbs/shop/colls/orders/docs/${id}`;
  const made = await grant(user, 'p', 'All', item('only'));
  assert.deepEqual(made.resourcePartitionKey, ['x']);
  const ask = using(server, made._token);
  // the same id under another key, made afterwards
  await orders.items.create({ id: 'only', tenant: 'y' });
  assert.equal((await ask('GET', `/${item('only')}`, keyed('x'))).status, 200);
  assert.equal((await ask('GET', `/${item('only')}`, keyed('y'))).status, 403);
  assert.equal((await ask('DELETE', `/${item('only')}`, keyed('y'))).status, 403);
  assert.equal((await ask('PUT', `/${item('only')}`, { ...keyed('y'), body: { id: 'only', tenant: 'y' } })).status, 403);
  for (const [id, why] of [['a', /several items/], ['nobody', /no item/]]) {
    await assert.rejects(grant(user, 'q', 'Read', item(id)), (error) => error.code === 400 && why.test(error.body.message));
    await assert.rejects(user.permission('p').replace({ id: 'p', permissionMode: 'Read', resource: item(id) }), { code: 400 });
    await assert.rejects(user.permissions.upsert({ id: 'p', permissionMode: 'Read', resource: item(id) }), { code: 400 });
  }
  await assert.rejects(grant(user, 'q', 'Read', 'dbs/shop/colls/nowhere/docs/a'), { code: 400 });
  // an item without a value of the key, and one by its _rid
  await orders.items.create({ id: 'bare' });
  assert.deepEqual((await grant(user, 'bare', 'Read', item('bare'))).resourcePartitionKey, [{}]);
  const { resource: hidden } = await orders.item('a', 'y').read();
  assert.equal((await grant(user, 'rid', 'Read', hidden._self)).resourcePartitionKey, undefined);
});
