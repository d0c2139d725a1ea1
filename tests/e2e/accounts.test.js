// Accounts: made by use for tests that share a server, or made with keys of their own; and the
// administration of all of them.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

const byUse = ['--dev', '--set', 'account.by_use=true'];
const accountsOf = async (server) => (await signed(server, 'GET', '/_orrery/accounts?max=10000')).json;

test('two hundred tests share a server, each in an account of its own', async (t) => {
  const server = await Server.start(t, byUse);
  const names = Array.from({ length: 200 }, (_, i) => `test-${i}`);
  const clients = names.map((name) => {
    const client = new CosmosClient({ endpoint: `${server.url}/${name}/`, key: emulatorKey });
    t.after(() => client.dispose());
    return client;
  });
  await Promise.all(clients.map(async (client, i) => {
    const { database } = await client.databases.createIfNotExists({ id: 'db' });
    const { container } = await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk' });
    assert.equal((await container.item('a', 'x').read()).statusCode, 404);
    assert.equal((await container.items.create({ id: 'a', pk: 'x', mine: i })).statusCode, 201);
  }));
  await Promise.all(clients.map(async (client, i) => {
    const { resource } = await client.database('db').container('c').item('a', 'x').read();
    assert.equal(resource.mine, i);
    const { resources } = await client.databases.readAll().fetchAll();
    assert.deepEqual(resources.map((database) => database.id), ['db']);
  }));
  assert.equal((await accountsOf(server)).total, 201);
  await Promise.all(names.map(async (name) => {
    const dropped = await signed(server, 'DELETE', `/_orrery/accounts/${name}`);
    assert.equal(dropped.status, 204, dropped.text);
  }));
  assert.deepEqual((await accountsOf(server)).accounts.map((account) => account.id), ['default']);
  const anew = await clients[7].databases.readAll().fetchAll();
  assert.deepEqual(anew.resources, []);
});

test('a host label names an account, in any case, and the account document leads back to it', async (t) => {
  const server = await Server.start(t, [...byUse, '--set', 'account.host_suffix=db.example', '--set', 'tls.names=four.elsewhere']);
  for (const [host, id] of [
    ['one.localhost', 'one'], ['TWO.LOCALHOST', 'two'], ['three.db.example', 'three'],
    ['127.0.0.1', 'default'], ['four.elsewhere', 'default'], // named by tls.names, and no account's host
  ]) {
    const { status, json } = await signed(server, 'GET', '/', { host: `${host}:${server.port}` });
    assert.equal(status, 200);
    assert.equal(json.id, id);
    assert.equal(json.writableLocations[0].databaseAccountEndpoint, `http://${host}:${server.port}/`);
  }
  for (const account of ['one', 'two', 'three', 'five'])
    assert.equal((await signed(server, 'POST', '/dbs', { account, body: { id: 'd' } })).status, 201);
  const prefixed = await signed(server, 'GET', '/', { account: 'five' });
  assert.equal(prefixed.json.writableLocations[0].databaseAccountEndpoint, `http://127.0.0.1:${server.port}/five/`);
  const ids = (await accountsOf(server)).accounts.map((account) => account.id);
  assert.deepEqual(ids, ['default', 'five', 'one', 'three', 'two']);
});

test('without account.by_use an unknown account is refused, and nobody without a key makes one', async (t) => {
  const closed = await Server.start(t, ['--dev']);
  const missing = await signed(closed, 'GET', '/dbs', { account: 'nobody' });
  assert.equal(missing.status, 403);
  assert.equal(missing.headers['x-ms-substatus'], '1008');
  const open = await Server.start(t, byUse);
  const stranger = await signed(open, 'GET', '/dbs', { account: 'nobody', key: Buffer.alloc(64).toString('base64') });
  assert.equal(stranger.status, 401);
  assert.equal((await accountsOf(open)).total, 1);
});

test('there are no more accounts than account.count_max, and a name must do as a host label', async (t) => {
  const server = await Server.start(t, [...byUse, '--set', 'account.count_max=3']);
  const use = (account) => signed(server, 'POST', '/dbs', { account, body: { id: 'd' } });
  assert.equal((await use('a')).status, 201);
  assert.equal((await use('b')).status, 201);
  const over = await use('c');
  assert.equal(over.status, 403);
  assert.match(over.json.message, /3/);
  assert.equal((await signed(server, 'DELETE', '/_orrery/accounts/a')).status, 204);
  assert.equal((await use('c')).status, 201);
  assert.equal((await signed(server, 'GET', '/dbs', { account: '-x' })).status, 400);
  assert.equal((await signed(server, 'GET', '/dbs', { account: 'a%20b' })).status, 400);
  assert.equal((await signed(server, 'GET', '/dbs', { account: 'n'.repeat(64) })).status, 400);
});

test('an account made with keys is opened by them alone and sees only itself', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'tenant' } });
  assert.equal(made.status, 201, made.text);
  const key = made.json.keys.primary;
  assert.equal((await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'tenant' } })).status, 409);
  assert.equal((await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'dbs' } })).status, 400);
  assert.equal((await signed(server, 'POST', '/_orrery/accounts', { body: {} })).status, 400);
  const own = { account: 'tenant', key };
  assert.equal((await signed(server, 'POST', '/dbs', { ...own, body: { id: 'd' } })).status, 201);
  assert.equal((await signed(server, 'GET', '/dbs', { key })).status, 401);
  const { json } = await signed(server, 'GET', '/_orrery/accounts', own);
  assert.deepEqual(json.accounts.map((account) => account.id), ['tenant']);
  assert.equal((await signed(server, 'GET', '/_orrery/accounts/tenant/keys', own)).json.keys.primary, key);
  for (const path of ['/_orrery/accounts/default', '/_orrery/accounts/default/keys'])
    assert.equal((await signed(server, 'GET', path, own)).status, 404, path);
  for (const path of ['/_orrery/settings', '/_orrery/nodes'])
    assert.equal((await signed(server, 'GET', path, own)).status, 403, path);
  assert.equal((await signed(server, 'POST', '/_orrery/accounts', { ...own, body: { id: 'more' } })).status, 403);
  assert.equal((await signed(server, 'DELETE', '/_orrery/accounts/default', own)).status, 404);
  assert.equal((await signed(server, 'DELETE', '/_orrery/accounts/default')).status, 403);
  assert.equal((await signed(server, 'DELETE', '/_orrery/accounts/tenant', own)).status, 204);
  assert.equal((await signed(server, 'GET', '/dbs', own)).status, 401); // as with a key that never was one
});

test('settings and nodes are shown to the default account', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'item.bytes_max=1M']);
  const { json: settings } = await signed(server, 'GET', '/_orrery/settings');
  assert.equal(settings['item.bytes_max'], 1048576);
  assert.equal(settings['account.consistency'], 'Session');
  assert.equal(settings['server.dev'], true);
  assert.equal(settings['server.drain_ms'], 10000);
  const { json } = await signed(server, 'GET', '/_orrery/nodes');
  assert.equal(json.nodes.length, 1);
  assert.equal(json.nodes[0].name, 'local');
  assert.equal(json.nodes[0].url, 'memory:');
  assert.equal((await signed(server, 'GET', '/_orrery/nothing')).status, 404);
  assert.equal((await signed(server, 'DELETE', '/_orrery/settings')).status, 405);
});

test('a container shows its physical partitions and who uses it most', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create(
    { id: 'orders', partitionKey: { paths: ['/tenant'], version: 2 } }, { offerThroughput: 20000 });
  for (let i = 0; i < 30; i++) await container.items.create({ id: `${i}`, tenant: i % 3 ? 'busy' : `quiet-${i}` });
  const overview = (await signed(server, 'GET', '/_orrery/databases')).json;
  assert.equal(overview.databases[0].containers[0].partitions, 2);
  assert.equal(overview.databases[0].containers[0].throughput.ruPerSecond, 20000);
  const { json } = await signed(server, 'GET', '/_orrery/containers/shop/orders');
  assert.equal(json.items, 30);
  assert.equal(json.partitions.length, 2);
  assert.equal(json.partitions[0].minInclusive, '');
  assert.equal(json.partitions[0].maxExclusive, json.partitions[1].minInclusive);
  assert.equal(json.partitions.reduce((sum, partition) => sum + partition.items, 0), 30);
  assert.equal(json.partitions[0].ruPerSecond, 10000);
  assert.equal(json.partitions[0].node, 'local');
  assert.ok(json.bytes > 30 * 20);
  assert.equal(json.statistics.hour.requests, 30);
  assert.deepEqual(json.partitionKey.paths, ['/tenant']);
  const { json: hot } = await signed(server, 'GET', '/_orrery/containers/shop/orders/keys?minutes=60&max=3');
  assert.equal(hot.keys.length, 3);
  assert.deepEqual(hot.keys[0].partitionKey, ['busy']);
  assert.equal(hot.keys[0].hour.requests, 20);
  assert.equal((await signed(server, 'GET', '/_orrery/containers/shop/orders/keys?minutes=61')).status, 400);
  assert.equal((await signed(server, 'GET', '/_orrery/containers/shop/none')).status, 404);
});
