// The routing library, through the example of its manual page: what it says of a key is where the
// server has put it.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, binary, emulatorKey } from './server.js';
import { signed } from './rest.js';

const program = join(dirname(binary), 'route');

// Range id by key, as the library says.
function routed(list, keys) {
  const out = execFileSync(program, keys.map((key) => JSON.stringify(key)), { input: list, encoding: 'utf8' });
  return out.trim().split('\n').map((line) => line.slice(0, line.lastIndexOf(' '))).map((line) => line.slice(line.lastIndexOf(' ') + 1));
}

async function agrees(t, definition, keys) {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const names = definition.partitionKey.paths.map((path) => path.slice(1));
  let container;
  try {
    ({ container } = await database.containers.create({ id: 'c', throughput: 60000, ...definition }));
  } catch (error) {
    if (error.code === 400 && definition.orrery && /strategy/.test(error.message)) return t.skip('this server has no such strategy');
    throw error;
  }
  for (const [i, key] of keys.entries()) {
    const item = { id: `${i}` };
    names.forEach((name, at) => (item[name] = key[at]));
    await container.items.create(item);
  }
  const list = await signed(server, 'GET', '/_orrery/containers/d/c/shards');
  assert.equal(list.status, 200, list.text);
  const where = new Map();
  for (const shard of list.json.shards) {
    const answer = await signed(server, 'GET', '/dbs/d/colls/c/docs', {
      headers: { 'x-ms-documentdb-partitionkeyrangeid': shard.rangeId, 'x-ms-max-item-count': '1000' },
    });
    assert.equal(answer.status, 200, answer.text);
    for (const item of answer.json.Documents) where.set(item.id, shard.rangeId);
  }
  assert.equal(where.size, keys.length);
  assert.deepEqual(routed(list.text, keys), keys.map((_, i) => where.get(`${i}`)));
  return list.json.shards.length;
}

const values = [...Array.from({ length: 80 }, (_, i) => `tenant-${i}`), 'ü', '', 0, 1, -1.5, 1e21, true, false, null];

test('of hashed keys', async (t) => {
  assert.equal(await agrees(t, { partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }, values.map((value) => [value])), 6);
});

test('of hashed keys of version 1', async (t) => {
  await agrees(t, { partitionKey: { paths: ['/pk'], kind: 'Hash' } }, values.map((value) => [value]));
});

test('of hierarchical keys', async (t) => {
  await agrees(t, { partitionKey: { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 } }, values.map((value, i) => [value, i]));
});

test('of keys placed by range', async (t) => {
  await agrees(t, {
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
    orrery: { strategy: { kind: 'range', bounds: [[1], ['tenant-3'], ['tenant-5']] } },
  }, values.map((value) => [value]));
});

test('of keys placed by lookup', async (t) => {
  await agrees(t, {
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
    orrery: { strategy: { kind: 'lookup', shards: 16, default: 'hash', directory: [{ key: ['tenant-7'], shard: 3 }] } },
  }, values.map((value) => [value]));
});
