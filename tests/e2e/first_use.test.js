// What somebody meets who has just started a server and types commands beside it.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, orrery, scratch } from './server.js';
import { signed } from './rest.js';

const pk = (value) => ({ 'x-ms-documentdb-partitionkey': JSON.stringify([value]) });

// A server, and commands that know nothing but where notes are.
async function alone(t, args) {
  const env = { XDG_STATE_HOME: scratch(t), XDG_DATA_HOME: scratch(t) };
  const server = await Server.start(t, args, { env });
  return { server, env, say: (words, more = {}) => orrery(words, { env: { ...env, ...more } }) };
}

async function container(server, id = 'orders', extra = {}, key) {
  await signed(server, 'POST', '/dbs', { body: { id: 'shop' }, key });
  const made = await signed(server, 'POST', '/dbs/shop/colls', { body: { id, partitionKey: { paths: ['/tenant'], version: 2 }, ...extra }, key });
  assert.equal(made.status, 201, made.text);
  for (const tenant of ['a', 'b', 'c']) {
    const put = await signed(server, 'POST', `/dbs/shop/colls/${id}/docs`, { headers: pk(tenant), body: { id: tenant, tenant }, key });
    assert.equal(put.status, 201);
  }
}

test('a command finds the server that runs here, its data and its key', async (t) => {
  const directory = scratch(t);
  const { server, env, say } = await alone(t, ['--node', `local=rocksdb:${directory}`]);
  const nodes = await say(['node', 'list']);
  assert.equal(nodes.code, 0, nodes.err);
  assert.ok(nodes.out.includes(directory));
  assert.match((await say(['certificate', 'show'])).out, /Orrery local CA/);
  const notes = join(env.XDG_STATE_HOME, 'orrery/servers');
  const [note] = readdirSync(notes);
  assert.equal(statSync(join(notes, note)).mode & 0o777, 0o600);

  await server.stop();
  assert.deepEqual(readdirSync(notes), []);
  const after = await say(['node', 'list']);
  assert.equal(after.code, 1);
  assert.match(after.err, /no server of this user runs here/);
});

test('the public key is used for a server in development mode, on loopback alone', async (t) => {
  const { server, say } = await alone(t, ['--dev']);
  assert.equal((await say(['stats'])).code, 0);
  assert.equal((await say(['stats', '--endpoint', `http://localhost:${server.port}`])).code, 0);
  const nowhere = { XDG_STATE_HOME: scratch(t), ORRERY_ENDPOINT: server.url };
  assert.equal((await say(['stats'], nowhere)).code, 1);
  assert.equal((await say(['stats'], { ...nowhere, ORRERY_SERVER_DEV: 'true' })).code, 0);
  const elsewhere = await say(['stats'], { ...nowhere, ORRERY_SERVER_DEV: 'true', ORRERY_ENDPOINT: `http://db.example:${server.port}` });
  assert.match(elsewhere.err, /no key is known/);
  assert.match((await say(['stats'], { ORRERY_SERVER_DEV: 'perhaps' })).err, /ORRERY_SERVER_DEV/);
});

test('a server that takes https alone is found with its authority', async (t) => {
  const { say } = await alone(t, ['--node', `local=rocksdb:${scratch(t)}`, '--set', 'tls.required=true']);
  const listed = await say(['account', 'list']);
  assert.equal(listed.code, 0, listed.err);
});

test('the note of a killed server is not believed', async (t) => {
  const { server, env, say } = await alone(t, ['--dev']);
  await server.stop('SIGKILL');
  assert.equal(readdirSync(join(env.XDG_STATE_HOME, 'orrery/servers')).length, 1);
  assert.match((await say(['stats'])).err, /no server of this user runs here/);
  const next = await Server.start(t, ['--dev'], { env });
  assert.equal((await say(['stats'])).code, 0);
  await next.stop();
});

test('a server without a place for its note runs all the same', async (t) => {
  const file = join(scratch(t), 'file');
  writeFileSync(file, '');
  const server = await Server.start(t, ['--dev'], { env: { XDG_STATE_HOME: file } });
  assert.equal((await server.get('/ready')).status, 200);
  assert.ok(server.events().some(({ event }) => event === 'commands have to be told where the server is'));
});

test('watching a container that nothing happens to is fine, one that is not there is not', async (t) => {
  const { server, say } = await alone(t, ['--dev']);
  await container(server);
  for (const words of [['partition', 'watch'], ['partition', 'watch', 'shop', 'orders']]) {
    const { code, out } = await say(words);
    assert.equal(code, 0);
    assert.equal(out, 'nothing is under way\n');
  }
  assert.match((await say(['partition', 'watch', 'shop', 'nothing'])).err, /container "nothing" does not exist/);
});

test('every command that prints prints JSON when asked to', async (t) => {
  const directory = scratch(t);
  const { server, say } = await alone(t, ['--dev', '--node', `local=rocksdb:${directory}`, '--set', 'migration.pause_ms=100ms']);
  await container(server);
  await container(server, 'placed', { orrery: { strategy: { kind: 'lookup', shards: 4, default: 'hash' } } });
  const file = join(directory, 'out.jsonl');
  const partition = JSON.parse((await say(['partition', 'list', 'shop', 'orders', '--format', 'json'])).out).partitions[0].id;
  const where = ['--database', 'shop', '--container', 'orders'];
  const items = join(directory, 'items.jsonl');
  writeFileSync(items, '{"id":"d","tenant":"d"}\n');
  for (const words of [
    ['version'], ['certificate', 'show'], ['certificate', 'export'], ['node', 'list'], ['node', 'show', 'local'], ['node', 'rebalance', '--plan'],
    ['node', 'rebalance', '--no-wait'], ['account', 'create', 'team'], ['account', 'list'], ['account', 'show'], ['account', 'keys', 'team'],
    ['account', 'rotate', 'team', 'secondary'], ['account', 'drop', 'team', '--yes'], ['stats'], ['stats', 'shop'], ['stats', 'shop', 'orders'],
    ['stats', 'shop', 'orders', '--keys'], ['throughput', 'show', 'shop', 'orders'], ['partition', 'list', 'shop', 'orders'], ['partition', 'shards', 'shop', 'orders'], ['partition', 'watch'],
    ['partition', 'watch', 'shop', 'orders'], ['partition', 'pause'], ['partition', 'resume'], ['partition', 'hot'],
    ['partition', 'heat', 'shop', 'orders'], ['partition', 'split', 'shop', 'orders', partition], ['directory', 'list', 'shop', 'placed'],
    ['directory', 'find', 'shop', 'placed', 'a'], ['directory', 'set', 'shop', 'placed', 'a', '1'], ['key', 'explain', 'shop', 'orders', '{"tenant":"a"}'],
    ['key', 'route', 'shop', 'orders', '["a"]'], ['advise', 'shop', 'orders'], ['what-if', 'shop', 'orders', '--key', '/id'],
    ['promote', 'shop', 'orders', '--key', 'a', '--to', 'own', '--dry-run'], ['promote', 'shop', 'orders', '--key', 'a', '--to', 'own'],
    ['promote', 'shop', 'orders', '--status'], ['promote', 'shop', 'orders', '--key', 'a', '--end'], ['promote', 'shop', 'orders', '--key', 'a', '--forget'],
    ['rekey', 'shop', 'placed', '--key', '/id', '--dry-run'], ['rekey', 'shop', 'placed', '--key', '/id'], ['rekey', 'shop', 'placed', '--status'],
    ['rekey', 'shop', 'placed', '--end-grace'], ['import', items, ...where], ['export', file, ...where],
    ['shell', ...where, '--command', 'SELECT VALUE COUNT(1) FROM c'],
  ]) {
    const { code, out, err } = await say([...words, '--format', 'json']);
    assert.equal(code, 0, `${words.join(' ')}: ${err}`);
    assert.doesNotThrow(() => JSON.parse(out), `${words.join(' ')}: ${out}`);
  }
  for (const words of [['stats'], ['throughput', 'show', 'shop', 'orders'], ['version']])
    assert.equal((await say([...words, '--format', 'xml'])).code, 2);
});

test('an import into a container that is not there is one error', async (t) => {
  const { server, say } = await alone(t, ['--dev']);
  await signed(server, 'POST', '/dbs', { body: { id: 'shop' } });
  const file = join(scratch(t), 'items.jsonl');
  writeFileSync(file, Array.from({ length: 300 }, (_, i) => `{"id":"${i}","tenant":"a"}\n`).join(''));
  const { code, out, err } = await say(['import', file, '--database', 'shop', '--container', 'orders']);
  assert.equal(code, 1);
  assert.equal(out, '');
  assert.match(err, /^orrery: [^\n]*container "orders" does not exist[^\n]*\n$/);
});

test('log lines of migrations and promotions name account, database and container', async (t) => {
  const { server, say } = await alone(t, ['--dev', '--set', 'migration.pause_ms=100ms']);
  await container(server);
  assert.equal((await say(['promote', 'shop', 'orders', '--key', 'a', '--to', 'own'])).code, 0);
  for (const event of ['migration begun', 'migration done', 'promotion begun', 'key promoted']) {
    await server.until(() => server.events().some((line) => line.event === event));
    const line = server.events().find((one) => one.event === event);
    assert.deepEqual([line.account, line.database, line.container], ['default', 'shop', 'orders'], event);
  }
});

test('messages say things once, and to their end', async (t) => {
  const { server } = await alone(t, ['--dev']);
  await container(server);
  const message = async (method, path, options) => JSON.parse((await signed(server, method, path, options)).text).message.split('\r')[0];
  const twice = await message('POST', '/dbs/shop/colls/orders/docs', { headers: pk('a'), body: { id: 'a', tenant: 'a' } });
  assert.equal(twice.match(/already exists/gi).length, 1, twice);
  const path = `/${'x'.repeat(250)}/`;
  const wrong = await message('POST', '/dbs/shop/colls', { body: { id: 'wrong', partitionKey: { paths: [path] } } });
  assert.match(wrong, /trailing slash/);
  const long = 'n'.repeat(200);
  assert.match(await message('GET', `/dbs/${long}/colls/${long}`), /does not exist$/);
});

test('heat tells by which value a range begins and which key has a partition for itself', async (t) => {
  const { server, say } = await alone(t, ['--dev', '--set', 'migration.pause_ms=100ms']);
  await container(server);
  await container(server, 'ranged', { orrery: { strategy: { kind: 'range', bounds: ['b'] } } });
  assert.equal((await say(['partition', 'isolate', 'shop', 'orders', 'a'])).code, 0);
  const partitions = async (id) => JSON.parse((await say(['partition', 'heat', 'shop', id, '--format', 'json'])).out).partitions;
  assert.ok((await partitions('orders')).some(({ key }) => JSON.stringify(key) === '["a"]'));
  assert.ok((await partitions('ranged')).some(({ minKey }) => minKey === 'b'));
  const { out } = await say(['partition', 'heat', 'shop', 'orders']);
  assert.match(out, />\d+: \[&quot;a&quot;\]</);
  assert.match(out, /K re-key/);
});
