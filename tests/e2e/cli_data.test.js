// `orrery database|container|item|query` against a server, as somebody types them.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, orrery } from './server.js';

async function started(t) {
  const server = await Server.start(t, ['--dev', '--node', 'local=memory:']);
  const run = (...args) => orrery([...args, '--endpoint', server.url, '--dev']);
  const good = async (...args) => {
    const result = await run(...args);
    assert.equal(result.code, 0, `${args.join(' ')}: ${result.err}`);
    return result.out;
  };
  const json = async (...args) => JSON.parse(await good(...args, '--format', 'json'));
  return { run, good, json };
}

test('a database, a container and items are made, changed and dropped', async (t) => {
  const { good, json, run } = await started(t);
  assert.equal(await good('database', 'create', 'shop'), 'database "shop" was created\n');
  assert.match(await good('database', 'list'), /^DATABASE +_RID\nshop /);
  await good('container', 'create', 'shop', 'orders', '--partition-key', '/city', '--unique', '/number', '--ttl', '60');
  const made = await json('container', 'show', 'shop', 'orders');
  assert.deepEqual(made.partitionKey, { paths: ['/city'], kind: 'Hash', version: 2 });
  assert.equal(made.defaultTtl, 60);
  assert.deepEqual(made.uniqueKeyPolicy.uniqueKeys, [{ paths: ['/number'] }]);
  assert.match(await good('container', 'list', 'shop'), /orders +\/city +60 s/);
  await good('item', 'put', 'shop', 'orders', '{"id":"1","city":"Oslo","number":7,"n":1}');
  await good('item', 'put', 'shop', 'orders', '{"id":"1","city":"Oslo","number":7,"n":2}');
  const patched = await json('item', 'patch', 'shop', 'orders', 'Oslo', '1', '[{"op":"incr","path":"/n","value":3}]');
  assert.equal(patched.n, 5);
  assert.equal((await json('item', 'get', 'shop', 'orders', '["Oslo"]', '1')).n, 5);
  assert.equal((await run('item', 'create', 'shop', 'orders', '{"id":"1","city":"Oslo"}')).code, 1);
  const overtaken = await run('item', 'delete', 'shop', 'orders', 'Oslo', '1', '--if-match', '"another"');
  assert.match(overtaken.err, /\(412\)/);
  assert.equal(await good('query', 'shop', 'orders', 'SELECT VALUE c.n FROM c', '--quiet'), '5\n');
  await good('item', 'delete', 'shop', 'orders', 'Oslo', '1', '--if-match', patched._etag);
  assert.match((await run('item', 'get', 'shop', 'orders', 'Oslo', '1')).err, /has no item with the partition key \["Oslo"\] and the id "1"/);
  await good('container', 'drop', 'shop', 'orders');
  await good('database', 'drop', 'shop');
  assert.equal(await good('database', 'list'), 'DATABASE  _RID\n');
});

test('a hierarchical key, a policy from a file and what else a definition has', async (t) => {
  const { good, json } = await started(t);
  const directory = mkdtempSync(join(tmpdir(), 'cli_data.'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'policy.json');
  writeFileSync(file, JSON.stringify({ indexingMode: 'consistent', includedPaths: [{ path: '/a/?' }], excludedPaths: [{ path: '/*' }] }));
  await good('database', 'create', 'shop');
  await good('container', 'create', 'shop', 'c', '--partition-key', '/tenant, /user', '--index-policy', `@${file}`,
    '--definition', '{"id":"ignored","computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.a) FROM c"}]}');
  const made = await json('container', 'show', 'shop', 'c');
  assert.deepEqual(made.partitionKey.paths, ['/tenant', '/user']);
  assert.equal(made.partitionKey.kind, 'MultiHash');
  assert.equal(made.computedProperties[0].name, 'low');
  assert.equal(made.indexingPolicy.includedPaths[0].path, '/a/?');
  await good('container', 'change', 'shop', 'c', '--ttl', 'on');
  const changed = await json('container', 'show', 'shop', 'c');
  assert.equal(changed.defaultTtl, -1);
  assert.equal(changed.indexingPolicy.includedPaths[0].path, '/a/?');
  await good('container', 'change', 'shop', 'c', '--ttl', 'off');
  assert.equal((await json('container', 'show', 'shop', 'c')).defaultTtl, undefined);
  await good('item', 'put', 'shop', 'c', '{"id":"1","tenant":"t","user":3}');
  assert.equal((await json('item', 'get', 'shop', 'c', '["t",3]', '1')).user, 3);
});

test('throughput is shown, raised, and changed between its two kinds', async (t) => {
  const { good } = await started(t);
  await good('database', 'create', 'shop', '--ru', '1000');
  assert.equal(await good('database', 'throughput', 'shop'), '1000 RU/s\n');
  await good('container', 'create', 'shop', 'c', '--partition-key', '/pk', '--autoscale', '4000');
  assert.equal(await good('container', 'throughput', 'shop', 'c'), 'autoscale, up to 4000 RU/s\n');
  assert.equal(await good('container', 'throughput', 'shop', 'c', '--ru', '800'), '800 RU/s\n');
  assert.equal(await good('container', 'throughput', 'shop', 'c', '--ru', '900'), '900 RU/s\n');
  assert.equal(await good('container', 'throughput', 'shop', 'c', '--autoscale', '8000'), 'autoscale, up to 8000 RU/s\n');
});

test('what is wrong is told before anything is sent, or in the server\'s words, and nothing is made', async (t) => {
  const { run, good } = await started(t);
  await good('database', 'create', 'shop');
  for (const [args, code, message] of [
    [['container', 'create', 'shop', 'c'], 2, /needs --partition-key/],
    [['container', 'create', 'nowhere', 'c', '--partition-key', '/pk'], 1, /database "nowhere" does not exist/],
    [['container', 'create', 'shop', 'c', '--partition-key', 'pk'], 1, /\(400\)/],
    [['container', 'create', 'shop', 'c', '--partition-key', '/pk', '--ru', '400', '--autoscale', '1000'], 2, /not both/],
    [['container', 'create', 'shop', 'c', '--partition-key', '/pk', '--ttl', 'soon'], 2, /--ttl takes seconds, on or off/],
    [['container', 'create', 'shop', 'c', '--partition-key', '/pk', '--index-policy', '@/nowhere'], 1, /nowhere" cannot be opened/],
    [['container', 'change', 'shop', 'c'], 2, /nothing is to be changed/],
    [['container', 'change', 'shop', 'c', '--partition-key', '/x'], 2, /orrery rekey/],
    [['container', 'drop', 'shop', 'c'], 1, /container "c" does not exist/],
    [['database', 'list', '--ru', '400'], 2, /--ru and --autoscale are for/],
    [['database', 'throughput', 'shop'], 1, /no throughput of its own/],
    [['item', 'put', 'shop', 'c', '{bad'], 1, /no JSON/],
    [['item', 'put', 'shop', 'c', '[1]'], 1, /no JSON object/],
    [['item', 'put', 'shop', 'nope', '{"id":"1"}'], 1, /\(404\)/],
    [['item', 'get', 'shop', 'c', 'k', '1', '--if-match', 'x'], 2, /--if-match is for/],
    [['item', 'fetch', 'shop'], 2, /knows no "fetch"/],
    [['query', 'shop'], 2, /orrery query DATABASE CONTAINER TEXT/],
  ]) {
    const result = await run(...args);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`);
    assert.match(result.err, message);
  }
  assert.equal(await good('container', 'list', 'shop'), 'CONTAINER  PARTITION KEY  TTL\n');
});

test('items that a condition holds for are deleted and patched, each once, and others are left alone', async (t) => {
  const { good, json, run } = await started(t);
  await good('database', 'create', 'shop');
  await good('container', 'create', 'shop', 'orders', '--partition-key', '/address/city');
  const directory = mkdtempSync(join(tmpdir(), 'cli_data.'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'items.json');
  writeFileSync(file, Array.from({ length: 250 }, (_, i) =>
    JSON.stringify({ id: `${i}`, n: i, ...(i % 5 ? { address: { city: `c${i % 7}` } } : {}) })).join('\n'));
  await good('import', file, '--database', 'shop', '--container', 'orders', '--quiet');
  assert.deepEqual(await json('item', 'delete-where', 'shop', 'orders', 'c.n >= 200', '--dry-run'), { found: 50 });
  // raised above the condition's bound and below it: nobody is met twice
  const patched = await json('item', 'patch-where', 'shop', 'orders', 'c.n < 100', '[{"op":"incr","path":"/n","value":50}]');
  assert.deepEqual([patched.items, patched.failed], [100, 0]);
  assert.equal(await good('query', 'shop', 'orders', 'SELECT VALUE SUM(c.n) FROM c', '--quiet'), `${(249 * 250) / 2 + 100 * 50}\n`);
  const deleted = await json('item', 'delete-where', 'shop', 'orders', 'c.n >= 200');
  assert.equal(deleted.items, 50);
  assert.equal(await good('query', 'shop', 'orders', 'SELECT VALUE COUNT(1) FROM c', '--quiet'), '200\n');
  assert.match((await run('item', 'delete-where', 'shop', 'orders', 'c.n =')).err, /orrery: /);
  assert.equal((await run('item', 'delete-where', 'shop', 'ordres', 'true')).code, 1);
  await good('shell', '--database', 'shop', '--container', 'orders', '--command', '.delete c.n < 100', '--quiet');
  assert.equal(await good('query', 'shop', 'orders', 'SELECT VALUE COUNT(1) FROM c WHERE c.n < 100', '--quiet'), '0\n');
});

test('import makes what it is told to make, and nothing else', async (t) => {
  const { good, json, run } = await started(t);
  const directory = mkdtempSync(join(tmpdir(), 'cli_data.'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'items.json');
  writeFileSync(file, '{"id":"1","tenant":"a","user":"u"}\n');
  assert.equal((await run('import', file, '--database', 'shop', '--container', 'orders')).code, 1);
  assert.match((await run('import', file, '--database', 'shop', '--container', 'orders', '--create')).err, /go together/);
  await good('import', file, '--database', 'shop', '--container', 'orders', '--create', '--partition-key', '/tenant, /user', '--quiet');
  assert.deepEqual((await json('container', 'show', 'shop', 'orders')).partitionKey.paths, ['/tenant', '/user']);
  await good('import', file, '--database', 'shop', '--container', 'orders', '--create', '--partition-key', '/tenant', '--upsert', '--quiet');
  assert.deepEqual((await json('container', 'show', 'shop', 'orders')).partitionKey.paths, ['/tenant', '/user']);
});
