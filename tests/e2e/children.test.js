// Users, permissions, client encryption keys, scripts and conflicts, through the unmodified client.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch, measured } from './server.js';
import { signed } from './rest.js';

async function shop(t) {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  return { server, client, database, container };
}

test('a user is created, read, renamed, upserted, listed and deleted', async (t) => {
  const { database } = await shop(t);
  const created = await database.users.create({ id: 'ann' });
  assert.equal(created.statusCode, 201);
  assert.equal(created.resource._permissions, 'permissions/');
  assert.match(created.resource._self, /^dbs\/[^/]+\/users\/[^/]+\/$/);
  assert.equal((await database.user('ann').read()).resource._rid, created.resource._rid);
  const renamed = await database.user('ann').replace({ id: 'anna' });
  assert.equal(renamed.resource._rid, created.resource._rid);
  await assert.rejects(database.user('ann').read(), { code: 404 });
  assert.equal((await database.users.upsert({ id: 'anna' })).statusCode, 200);
  assert.equal((await database.users.upsert({ id: 'bob' })).statusCode, 201);
  const { resources } = await database.users.readAll().fetchAll();
  assert.deepEqual(resources.map((user) => user.id), ['anna', 'bob']);
  assert.equal((await database.user('bob').delete()).statusCode, 204);
  await assert.rejects(database.users.create({ id: 'anna' }), { code: 409 });
});

test('a list goes on page by page and skips nothing', async (t) => {
  const { server, database } = await shop(t);
  for (let i = 0; i < 7; i++) await database.users.create({ id: `u${i}` });
  const seen = [];
  let continuation;
  do {
    const page = await signed(server, 'GET', '/dbs/shop/users', {
      headers: { 'x-ms-max-item-count': '3', ...(continuation ? { 'x-ms-continuation': continuation } : {}) },
    });
    assert.equal(page.status, 200);
    assert.equal(page.json._count, page.json.Users.length);
    seen.push(...page.json.Users.map((user) => user.id));
    continuation = page.headers['x-ms-continuation'];
  } while (continuation);
  assert.deepEqual(seen, ['u0', 'u1', 'u2', 'u3', 'u4', 'u5', 'u6']);
  const broken = await signed(server, 'GET', '/dbs/shop/users', { headers: { 'x-ms-continuation': 'what' } });
  assert.equal(broken.status, 400);
  const size = await signed(server, 'GET', '/dbs/shop/users', { headers: { 'x-ms-max-item-count': '0' } });
  assert.equal(size.status, 400);
});

test('scripts are stored as they are, listed, and run', async (t) => {
  const { container } = await shop(t);
  const body = 'function () { getContext().getResponse().setBody("hello"); }';
  const { resource: procedure } = await container.scripts.storedProcedures.create({ id: 'p', body });
  assert.equal(procedure.body, body);
  assert.match(procedure._self, /^dbs\/[^/]+\/colls\/[^/]+\/sprocs\/[^/]+\/$/);
  assert.equal((await container.scripts.storedProcedure('p').execute('x', [])).resource, 'hello');
  await container.scripts.triggers.create({ id: 't', body, triggerType: 'Pre', triggerOperation: 'all' });
  assert.equal((await container.scripts.trigger('t').read()).resource.triggerOperation, 'all');
  // a pre-trigger has no response to set
  await assert.rejects(
    container.items.create({ id: 'a', tenant: 'x' }, { preTriggerInclude: ['t'] }),
    { code: 400 },
  );
  await container.scripts.userDefinedFunctions.create({ id: 'f', body: 'not a function' });
  const replaced = await container.scripts.userDefinedFunction('f').replace({ id: 'f', body: 'x => x' });
  assert.equal(replaced.resource.body, 'x => x');
  assert.equal((await container.scripts.storedProcedures.readAll().fetchAll()).resources.length, 1);
  assert.equal((await container.scripts.triggers.readAll().fetchAll()).resources.length, 1);
  assert.equal((await container.scripts.userDefinedFunctions.readAll().fetchAll()).resources.length, 1);
  await container.scripts.storedProcedure('p').delete();
  await assert.rejects(container.scripts.storedProcedure('p').read(), { code: 404 });
});

test('everything is found by _rid as well as by name', async (t) => {
  const { server, database, container } = await shop(t);
  const { resource: user } = await database.users.create({ id: 'ann' });
  const { resource: udf } = await container.scripts.userDefinedFunctions.create({ id: 'f', body: 'x' });
  for (const resource of [user, udf]) {
    const path = '/' + resource._self.replace(/\/$/, '');
    const sign = { type: path.split('/').at(-2), link: resource._rid.toLowerCase() };
    const read = await signed(server, 'GET', path, { sign });
    assert.equal(read.status, 200, read.text);
    assert.equal(read.json._rid, resource._rid);
  }
});

test('an etag that has moved on is refused, and one that is known is not sent again', async (t) => {
  const { server, database } = await shop(t);
  const { resource } = await database.users.create({ id: 'ann' });
  const known = await signed(server, 'GET', '/dbs/shop/users/ann', { headers: { 'if-none-match': resource._etag } });
  assert.equal(known.status, 304);
  await database.user('ann').replace({ id: 'ann' });
  const stale = await signed(server, 'PUT', '/dbs/shop/users/ann', {
    headers: { 'if-match': resource._etag }, body: { id: 'ann' },
  });
  assert.equal(stale.status, 412);
});

test('a client encryption key is kept word for word', async (t) => {
  const { server } = await shop(t);
  const key = {
    id: 'k', encryptionAlgorithm: 'AEAD_AES_256_CBC_HMAC_SHA256', wrappedDataEncryptionKey: 'AAEC',
    keyWrapMetadata: { type: 'AzureKeyVault', name: 'n', value: 'https://vault', algorithm: 'RSA_OAEP' },
  };
  const created = await signed(server, 'POST', '/dbs/shop/clientencryptionkeys', { body: key });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.json.keyWrapMetadata, key.keyWrapMetadata);
  const list = await signed(server, 'GET', '/dbs/shop/clientencryptionkeys');
  assert.equal(list.json.ClientEncryptionKeys[0].wrappedDataEncryptionKey, 'AAEC');
  const bad = await signed(server, 'POST', '/dbs/shop/clientencryptionkeys', { body: { id: 'x' } });
  assert.equal(bad.status, 400);
});

test('conflicts are an empty feed', async (t) => {
  const { server, container } = await shop(t);
  const list = await signed(server, 'GET', '/dbs/shop/colls/orders/conflicts');
  assert.deepEqual(list.json.Conflicts, []);
  assert.equal((await signed(server, 'GET', '/dbs/shop/colls/orders/conflicts/x')).status, 404);
  assert.equal((await signed(server, 'DELETE', '/dbs/shop/colls/orders/conflicts/x')).status, 404);
  const ask = (headers) => signed(server, 'POST', '/dbs/shop/colls/orders/conflicts', {
    headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true', ...headers },
    body: { query: 'SELECT * FROM c' },
  });
  const refused = await ask({});
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /Cross partition query is required but disabled/);
  assert.equal((await ask({ 'x-ms-documentdb-partitionkey': '["a"]' })).status, 200);
  const query = await ask({ 'x-ms-documentdb-query-enablecrosspartition': 'true' });
  assert.equal(query.status, 200);
  assert.deepEqual(query.json.Conflicts, []);
  assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
});

test('texts of scripts are read when they are wanted, and an account has so many bytes of them', async (t) => {
  // what the engine keeps for itself is made small, so that what the server keeps can be seen
  const args = ['--dev', '--node', `local=rocksdb:${scratch(t)}/data`, '--set', 'account.script_bytes_max=32M', '--set', 'engine.write_buffer_bytes=1M', '--set', 'engine.cache_bytes=1M'];
  let server = await Server.start(t, args, measured);
  const emptyBytes = server.residentBytes();
  const send = (method, path, body, more = {}) => signed(server, method, path, { body, ...more });
  const scripts = '/dbs/db/colls/c/sprocs';
  await send('POST', '/dbs', { id: 'db' });
  await send('POST', '/dbs/db/colls', { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash' } });
  const body = (n) => `function () { /* ${String.fromCharCode(97 + (n % 26)).repeat(500_000)} */ getContext().getResponse().setBody(${n}); }`;
  let made = 0, answer;
  while ((answer = await send('POST', scripts, { id: `s${made}`, body: body(made) })).status === 201) made++;
  assert.deepEqual([answer.status, answer.headers['x-ms-substatus']], [403, '1028']);
  assert.match(answer.text, /account\.script_bytes_max/);
  assert.equal(made, 67, 'as many as fit into 32 MiB');
  assert.equal((await send('PUT', `${scripts}/s0`, { id: 's0', body: 'function () {}' })).status, 200, 'less may always be written');
  await server.stop();
  server = await Server.start(t, args, measured);
  const heldBytes = server.residentBytes() - emptyBytes;
  t.diagnostic(`${made} scripts of 500 KB: ${(heldBytes / 1e6).toFixed(1)} MB more than an empty server`);
  assert.ok(heldBytes < 24e6, `${heldBytes} bytes`);
  const { json } = await send('GET', `${scripts}/s5`);
  assert.equal(json.body, body(5));
  const feed = await send('GET', scripts, undefined, { headers: { 'x-ms-max-item-count': '3' } });
  assert.deepEqual(feed.json.StoredProcedures.map((one) => [one.id, one.body.length]), [['s0', 14], ['s1', body(1).length], ['s2', body(2).length]]);
  const ran = await send('POST', `${scripts}/s7`, [], { headers: { 'x-ms-documentdb-partitionkey': '["x"]' } });
  assert.deepEqual([ran.status, ran.json], [200, 7]);
  assert.equal((await send('DELETE', `${scripts}/s7`)).status, 204);
  assert.equal((await send('GET', `${scripts}/s7`)).status, 404);
  assert.equal((await send('POST', scripts, { id: 'again', body: body(1) })).status, 201);
});
