// Snapshots of all nodes: made while clients work, gone back to by a restart in place, dropped.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { freePort } from './port.js';
import { Server, emulatorKey, orrery, scratch } from './server.js';

// The port stays the same over the restart; another process may take it first, so a test begins anew with another then.
async function started(t, nodes) {
  for (let tries = 0; ; tries++) {
    const port = await freePort();
    try {
      return await begun(t, nodes, port);
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

async function begun(t, nodes, port) {
  const server = await Server.start(t, ['--dev', ...nodes, '--rest', `127.0.0.1:${port}`]);
  const client = new CosmosClient({ endpoint: `http://127.0.0.1:${port}`, key: emulatorKey });
  const run = (...words) => orrery([...words, '--endpoint', `http://127.0.0.1:${port}`, '--dev']);
  const good = async (...words) => {
    const result = await run(...words);
    assert.equal(result.code, 0, result.err);
    return result.out;
  };
  return { server, client, run, good };
}

const all = async (container) => (await container.items.query('SELECT c.id, c.tenant, c.n, c._ts, c._etag, c._rid FROM c').fetchAll()).resources
  .sort((a, b) => (a.tenant + a.id).localeCompare(b.tenant + b.id));

test('two nodes go back to a snapshot as they were, times and etags included, again and again', async (t) => {
  const directory = scratch(t);
  const { server, client, run, good } = await started(t, ['one', 'two'].flatMap((name) => ['--node', `${name}=rocksdb:${join(directory, name)}`]));
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant', throughput: 20000 });
  for (let i = 0; i < 40; i++) await container.items.create({ id: `${i}`, tenant: `t${i % 8}`, n: i });
  const before = await all(container);
  assert.equal(before.length, 40);
  assert.match(await good('snapshot', 'create', 'clean'), /snapshot "clean" is made/);
  assert.match((await run('snapshot', 'create', 'clean')).err, /already/);
  assert.match((await run('snapshot', 'create', '../up')).err, /small letters/);
  for (const name of ['one', 'two']) {
    const copied = join(directory, name, 'snapshots', 'clean', 'store');
    for (const table of readdirSync(copied).filter((file) => file.endsWith('.sst')))
      assert.ok(statSync(join(copied, table)).nlink >= 2, 'tables are linked, not copied');
  }
  for (let round = 0; round < 2; round++) {
    await container.items.upsert({ id: '0', tenant: 't0', n: -1 });
    await container.item('1', 't1').delete();
    await container.items.create({ id: `new${round}`, tenant: 't3' });
    await database.containers.create({ id: `later${round}`, partitionKey: '/x' });
    assert.notDeepEqual(await all(container), before);
    assert.match(await good('snapshot', 'reset', 'clean'), /is what snapshot "clean" was/);
    assert.deepEqual(await all(container), before);
    assert.equal((await database.containers.readAll().fetchAll()).resources.length, 1);
    assert.match(await good('verify'), / 0 findings/);
  }
  await container.items.create({ id: 'after', tenant: 't1' }); // it serves on
  const listed = JSON.parse(await good('snapshot', 'list', '--format', 'json'));
  assert.deepEqual(listed.snapshots.map(({ name, nodes }) => [name, nodes]), [['clean', ['one', 'two']]]);
  assert.match(await good('snapshot', 'list'), /NAME +MADE +NODES\nclean +\d{4}-.*Z +one,two/);
  assert.equal((await run('snapshot', 'reset', 'dirty')).code, 1);
  await good('snapshot', 'drop', 'clean');
  for (const name of ['one', 'two']) assert.equal(existsSync(join(directory, name, 'snapshots', 'clean')), false);
  assert.equal((await run('snapshot', 'drop', 'clean')).code, 1);
  assert.equal((await all(container)).length, 41, 'what was linked is not lost with the snapshot');
  assert.equal((await server.stop()).code, 0);
});

test('what holds no files on this machine keeps no snapshots, and says so', async (t) => {
  const { run } = await started(t, []);
  const refused = await run('snapshot', 'create', 'clean');
  assert.equal(refused.code, 1);
  assert.match(refused.err, /snapshots are of rocksdb: nodes/);
});

test('a node that came after a snapshot was made is in the way of going back, and nothing is changed', async (t) => {
  const directory = scratch(t);
  const { client, run, good } = await started(t, ['--node', `one=rocksdb:${join(directory, 'one')}`, '--set', `nodes.add_paths=${directory}`]);
  await client.databases.create({ id: 'shop' });
  await good('snapshot', 'create', 'alone');
  await good('node', 'add', 'two', `rocksdb:${join(directory, 'two')}`);
  await client.databases.create({ id: 'later' });
  const refused = await run('snapshot', 'reset', 'alone');
  assert.equal(refused.code, 1);
  assert.match(refused.err, /node "two" has no part in snapshot "alone"/);
  assert.equal((await client.databases.readAll().fetchAll()).resources.length, 2);
  assert.equal(existsSync(join(directory, 'one', 'reset')), false);
});
