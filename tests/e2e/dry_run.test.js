// Splits, merges, moves, isolations and edits of directories tried out: the server says what would be, begins nothing, refuses what it would refuse, and
// does the same when it is meant.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Server, orrery } from './server.js';
import { signed } from './rest.js';

const json = { 'content-type': 'application/json' };

async function started(t) {
  const server = await Server.start(t, ['--dev', '--node', 'one=memory:', '--node', 'two=memory:', '--set', 'migration.pause_ms=20ms']);
  await signed(server, 'POST', '/dbs', { headers: json, body: { id: 'shop' } });
  await signed(server, 'POST', '/dbs/shop/colls', { headers: { ...json, 'x-ms-offer-throughput': '4000' }, body: { id: 'orders', partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 } } });
  for (let n = 0; n < 40; n++)
    assert.equal((await signed(server, 'POST', '/dbs/shop/colls/orders/docs', { headers: { ...json, 'x-ms-documentdb-partitionkey': `["t${n}"]` }, body: { id: `o${n}`, tenant: `t${n}`, text: 'x'.repeat(100) } })).status, 201);
  return server;
}

const base = '/_orrery/containers/shop/orders';
const post = (server, path, body, options = {}) => signed(server, 'POST', `${base}/${path}`, { headers: json, body, ...options });
const shape = async (server) => (await signed(server, 'GET', `${base}/partitions`)).json;
async function settled(server) {
  let now = await shape(server);
  while (now.migration) now = await shape(server);
  return now.partitions;
}
const ends = (list) => list.map((one) => [one.minInclusive, one.maxExclusive, one.node]);

// Tried out, nothing changes; then done, and it is what was said.
async function same(server, path, body, remaining) {
  const before = await shape(server);
  const tried = await post(server, path, { ...body, dryRun: true });
  assert.equal(tried.status, 200, tried.text);
  assert.equal(tried.json.dryRun, true);
  assert.deepEqual(await shape(server), before);
  assert.equal((await signed(server, 'GET', `${base}/migration`)).status, 404);
  assert.equal(tried.json.partitions, before.partitions.length);
  assert.equal(tried.json.bytes, tried.json.sources.reduce((sum, one) => sum + one.bytes, 0));
  assert.equal(tried.json.targets.reduce((sum, one) => sum + one.bytes, 0), tried.json.bytes);
  const done = await post(server, path, body);
  assert.equal(done.status, 202, done.text);
  const after = await settled(server);
  assert.equal(after.length, tried.json.partitionsAfter);
  const kept = new Set(before.partitions.map((one) => one.id));
  assert.deepEqual(ends(after.filter((one) => !kept.has(one.id))), ends(tried.json.targets));
  assert.deepEqual(before.partitions.filter((one) => !after.some((other) => other.id === one.id)).map((one) => one.id), tried.json.sources.map((one) => one.id));
  assert.equal(after.length, remaining);
  return { tried: tried.json, after };
}

test('a dry run says what is done then, and does nothing', async (t) => {
  const server = await started(t);
  const [{ id, node }] = (await shape(server)).partitions;
  const { tried, after } = await same(server, `partitions/${id}/split`, { pieces: 3 }, 3);
  assert.equal(tried.kind, 'split');
  assert.equal(tried.items, 40);
  assert.equal(tried.sources[0].id, id);
  const merged = await same(server, 'partitions/merge', { partitions: [after[0].id, after[1].id] }, 2);
  assert.equal(merged.tried.targets.length, 1);
  const other = node === 'one' ? 'two' : 'one';
  const moved = await same(server, `partitions/${merged.after[0].id}/move`, { node: other }, 2);
  assert.deepEqual([moved.tried.sources[0].node, moved.tried.targets[0].node], [node, other]);
  const isolated = await same(server, 'isolate', { partitionKey: ['t7'] }, 4);
  assert.equal(isolated.tried.kind, 'isolate');
  const { json: count } = await signed(server, 'POST', '/dbs/shop/colls/orders/docs', { headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true', 'x-ms-documentdb-query-enablecrosspartition': 'true' }, body: { query: 'SELECT VALUE COUNT(1) FROM c', parameters: [] } });
  assert.equal(count.Documents.reduce((sum, n) => sum + n, 0), 40);
});

test('what would be refused is refused, and a dry run needs the same rights', async (t) => {
  const server = await started(t);
  const [{ id, node }] = (await shape(server)).partitions;
  const before = await shape(server);
  const refused = async (path, body, status, options) => {
    const answer = await post(server, path, { ...body, dryRun: true }, options);
    assert.equal(answer.status, status, `${path}: ${answer.text}`);
    assert.deepEqual(await shape(server), before);
  };
  await refused(`partitions/${id}/split`, { pieces: 1 }, 400);
  await refused(`partitions/${id}/split`, { pieces: 1000 }, 400);
  await refused(`partitions/${id}/split`, { piece: 2 }, 400);
  await refused('partitions/999/split', {}, 404);
  await refused('partitions/merge', { partitions: [id] }, 400);
  await refused(`partitions/${id}/move`, { node }, 400);
  await refused(`partitions/${id}/move`, { node: 'mars' }, 404);
  await refused('isolate', { partitionKey: ['nobody'] }, 404);
  await refused('isolate', { partitionKey: [] }, 400);
  assert.equal((await post(server, `partitions/${id}/split`, { dryRun: 'yes' })).status, 400);
  assert.equal((await post(server, `partitions/${id}/split`, { dryRun: false, pieces: 0 })).status, 400);
  // nor to a node that does not serve
  const other = node === 'one' ? 'two' : 'one';
  assert.equal((await signed(server, 'POST', `/_orrery/nodes/${other}/pause`, { headers: json })).status, 200);
  await refused(`partitions/${id}/move`, { node: other }, 503);
  assert.equal((await signed(server, 'POST', `/_orrery/nodes/${other}/resume`, { headers: json })).status, 200);
  const keys = (await signed(server, 'GET', '/_orrery/accounts/default/keys')).json.keys;
  await refused(`partitions/${id}/split`, {}, 403, { key: keys['primary-readonly'] });
  await refused(`partitions/${id}/split`, {}, 401, { key: Buffer.alloc(64, 1).toString('base64') });
  const theirs = (await signed(server, 'POST', '/_orrery/accounts', { headers: json, body: { id: 'team-a' } })).json.keys.primary;
  await refused(`partitions/${id}/split`, {}, 404, { account: 'team-a', key: theirs });
});

test('the command line shows it, and refuses it where there is none', async (t) => {
  const server = await started(t);
  const run = (...args) => orrery(['partition', ...args, '--dev'], { env: { ORRERY_ENDPOINT: server.url } });
  const [{ id }] = (await shape(server)).partitions;
  const before = await shape(server);
  const split = await run('split', 'shop', 'orders', id, '--pieces', '4', '--dry-run');
  assert.equal(split.code, 0, split.err);
  assert.equal(split.out.match(/^new /gm).length, 4);
  assert.match(split.out, /split: 40 items would be copied, the container would have 4 physical partitions instead of 1\. Nothing was begun\./);
  const isolate = await run('isolate', 'shop', 'orders', 't7', '--dry-run', '--json');
  assert.equal(JSON.parse(isolate.out).kind, 'isolate');
  assert.equal((await run('isolate', 'shop', 'orders', 'to-come', '--empty', '--dry-run')).code, 0);
  assert.deepEqual(await shape(server), before);
  const list = await run('list', 'shop', 'orders', '--dry-run');
  assert.equal(list.code, 2);
  assert.match(list.err, /--dry-run is for split, merge, move, isolate, spread and gather/);
});

// Keys of a container whose strategy is lookup: two shards in two partitions, one key listed in each.
async function listed(t) {
  const server = await Server.start(t, ['--dev', '--node', 'one=memory:', '--set', 'migration.pause_ms=20ms']);
  await signed(server, 'POST', '/dbs', { headers: json, body: { id: 'shop' } });
  const made = await signed(server, 'POST', '/dbs/shop/colls', { headers: json, body: { id: 'orders', partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 }, orrery: { strategy: { kind: 'lookup', shards: 8, default: 0, directory: [{ key: ['a'], shard: 1 }, { key: ['b'], shard: 6 }] } } } });
  assert.equal(made.status, 201, made.text);
  for (const tenant of ['a', 'b', 'c'])
    for (let n = 0; n < 5; n++)
      assert.equal((await signed(server, 'POST', '/dbs/shop/colls/orders/docs', { headers: { ...json, 'x-ms-documentdb-partitionkey': JSON.stringify([tenant]) }, body: { id: `${tenant}${n}`, tenant } })).status, 201);
  const [{ id }] = (await shape(server)).partitions;
  const split = await post(server, `partitions/${id}/split`, { pieces: 2 });
  assert.equal(split.status, 202, split.text);
  assert.equal((await settled(server)).length, 2);
  return server;
}

test('edits of a directory are tried out: which keys go where, what is copied, and nothing begins', async (t) => {
  const server = await listed(t);
  const before = await shape(server);
  const lines = async () => (await signed(server, 'GET', `${base}/directory`)).json;
  const [low, high] = before.partitions;

  // a key with items: both partitions are copied, and what each holds then is what the dry run said
  const directory = await lines();
  const tried = await post(server, 'directory', { edits: [{ key: ['a'], shard: 7 }], dryRun: true });
  assert.equal(tried.status, 200, tried.text);
  assert.deepEqual([tried.json.dryRun, tried.json.kind, tried.json.partitions, tried.json.partitionsAfter], [true, 'reroute', 2, 2]);
  const [moved] = tried.json.keys;
  assert.deepEqual([moved.key, moved.shard, moved.shardAfter, moved.partitions, moved.partitionsAfter, moved.items], [['a'], 1, 7, [low.id], [high.id], 5]);
  assert.ok(moved.bytes > 0);
  assert.deepEqual(tried.json.sources.map((one) => one.id), [low.id, high.id]);
  assert.equal(tried.json.items, 15);
  assert.deepEqual(await shape(server), before);
  assert.deepEqual(await lines(), directory);
  assert.equal((await post(server, 'directory', { edits: [{ key: ['a'], shard: 7 }] })).status, 202);
  const after = await settled(server);
  assert.deepEqual(ends(after), ends(tried.json.targets));
  assert.deepEqual(after.map((one) => one.bytes), tried.json.targets.map((one) => one.bytes));

  // a key that nobody used: nothing is copied; one that stays: nothing happens but the line
  const fresh = (await post(server, 'directory', { edits: [{ key: ['new'], shard: 5 }], dryRun: true })).json;
  assert.deepEqual([fresh.sources, fresh.targets, fresh.items, fresh.lines, fresh.linesAfter, fresh.keys[0].shardAfter], [[], [], 0, 2, 3, 5]);
  const stays = (await post(server, 'directory', { edits: [{ key: ['c'], shard: 0 }], dryRun: true })).json;
  assert.deepEqual([stays.targets, stays.keys[0].shard, stays.keys[0].shardAfter, stays.keys[0].items], [[], 0, 0, 5]);
  // a removed line follows the default
  const removed = (await post(server, 'directory', { edits: [{ key: ['b'], shard: null }], dryRun: true })).json;
  assert.deepEqual([removed.keys[0].shard, removed.keys[0].shardAfter, removed.linesAfter, removed.targets.length], [6, 0, 1, 2]);
  assert.equal((await lines()).lines, 2);
});

test('edits of a directory that would be refused are refused when tried, and the command line shows them', async (t) => {
  const server = await listed(t);
  const before = await shape(server);
  const refused = async (body, status, options) => {
    const answer = await post(server, 'directory', { ...body, dryRun: true }, options);
    assert.equal(answer.status, status, answer.text);
    assert.deepEqual(await shape(server), before);
  };
  await refused({ edits: [{ key: ['a'], shard: 8 }] }, 400);
  await refused({ edits: [{ key: ['a'], shard: 2 }, { key: ['a'], shard: 3 }] }, 400);
  await refused({ edits: [] }, 400);
  await refused({ edit: [{ key: ['a'], shard: 2 }] }, 400);
  await refused({}, 400);
  assert.equal((await post(server, 'directory', { edits: [{ key: ['a'], shard: 2 }], dryRun: 1 })).status, 400);
  const keys = (await signed(server, 'GET', '/_orrery/accounts/default/keys')).json.keys;
  await refused({ edits: [{ key: ['a'], shard: 2 }] }, 403, { key: keys['primary-readonly'] });

  const run = (...args) => orrery(['directory', ...args, '--dev'], { env: { ORRERY_ENDPOINT: server.url } });
  const set = await run('set', 'shop', 'orders', 'a', '7', '--dry-run');
  assert.equal(set.code, 0, set.err);
  assert.match(set.out, /\["a"\] +1 +7 +5 /);
  assert.match(set.out, /reroute: 15 items would be copied, the container would have 2 physical partitions instead of 2\. Nothing was begun\./);
  const remove = await run('remove', 'shop', 'orders', 'b', '--dry-run', '--json');
  assert.equal(JSON.parse(remove.out).keys[0].shardAfter, 0);
  assert.deepEqual(await shape(server), before);
  const list = await run('list', 'shop', 'orders', '--dry-run');
  assert.deepEqual([list.code, list.err.includes('--dry-run is for set and remove')], [2, true]);
});
