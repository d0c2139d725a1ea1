// Nodes that fail, come back, join, leave and are paused, while clients work.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, sanitized, scratch } from './server.js';
import { Postgres } from './postgres.js';
import { signed } from './rest.js';

const quick = ['--dev', '--set', 'migration.pause_ms=20ms'];

// The limit is for what hangs: a busy machine is none of that. `told` is what is known then.
async function until(what, told = () => '') {
  const end = Date.now() + 120_000;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, `waited in vain: ${told()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function connected(t, server) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return client;
}

// A container with a partition on each of three nodes, and 60 items spread over them.
async function spread(t, server, definition = {}) {
  const client = await connected(t, server);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 30000, ...definition });
  for (let i = 0; i < 60; i++) await container.items.create({ id: `${i}`, pk: `p${i}`, n: i });
  return { client, database, container };
}

const docs = '/dbs/d/colls/c/docs';

function read(server, i, headers = {}) {
  return signed(server, 'GET', `${docs}/${i}`, {
    headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([`p${i}`]), ...headers },
  });
}

function query(server, headers = {}, text = 'SELECT VALUE c.n FROM c') {
  return signed(server, 'POST', docs, {
    headers: {
      'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true',
      'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers,
    },
    body: { query: text, parameters: [] },
  });
}

async function admin(server, method, path, body) {
  const answer = await signed(server, method, `/_orrery/${path}`, { body });
  return { status: answer.status, ...answer.json };
}

const show = (server, name) => admin(server, 'GET', `nodes/${name}`);

// Which of the items answer 200, by number.
async function answering(server) {
  const found = { served: [], away: [] };
  for (let i = 0; i < 60; i++) {
    const { status, json } = await read(server, i);
    if (status === 200) found.served.push(i);
    else {
      assert.equal(status, 503, JSON.stringify(json));
      found.away.push({ i, message: json.message });
    }
  }
  return found;
}

test('a PostgreSQL node that is killed takes down its own partition alone, and rejoins by itself', async (t) => {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--node', `near=rocksdb:${join(scratch(t), 'near')}`, '--node', `far=${postgres.url}`,
    '--node', 'mem=memory:', ...quick]);
  const { container } = await spread(t, server);
  assert.equal((await show(server, 'far')).partitions, 1);
  await postgres.stop('SIGQUIT');
  const down = await until(async () => {
    const now = await answering(server);
    return now.away.length > 0 && now;
  });
  assert.ok(down.served.length > 20);
  assert.match(down.away[0].message, /node \\?"far\\?" is down \(.*\): partition \d+ does not serve/);
  const begin = performance.now();
  for (const { i } of down.away) assert.equal((await read(server, i)).status, 503);
  t.diagnostic(`figure: ${((performance.now() - begin) / down.away.length).toFixed(1)} ms to the 503 of a node that is down`);

  // A write is refused as well, and leaves nothing behind.
  const refused = await signed(server, 'POST', docs, {
    headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([`p${down.away[0].i}`]) },
    body: { id: 'new', pk: `p${down.away[0].i}` },
  });
  assert.equal(refused.status, 503);

  // Fan-out names what is missing, or passes over it when that is asked for.
  const whole = await query(server);
  assert.equal(whole.status, 503);
  assert.match(whole.json.message, /partition \d+ of 3 not serving: node \\?"far\\?" is down/);
  const missing = /partition (\d+) of/.exec(whole.json.message)[1];
  const partial = await query(server, { 'x-orrery-allow-partial': 'true' });
  assert.equal(partial.status, 200);
  assert.equal(partial.headers['x-orrery-partial'], 'true');
  assert.equal(partial.headers['x-orrery-missing-partitions'], missing);
  assert.deepEqual(partial.json.Documents.toSorted((a, b) => a - b), down.served);
  const sum = await query(server, { 'x-orrery-allow-partial': 'true' }, 'SELECT VALUE COUNT(1) FROM c');
  assert.deepEqual(sum.json.Documents, [down.served.length]);
  const sorted = await query(server, { 'x-orrery-allow-partial': 'true' }, 'SELECT VALUE c.n FROM c ORDER BY c.n DESC');
  assert.deepEqual(sorted.json.Documents, down.served.toReversed());

  const ready = await server.get('/ready');
  assert.equal(ready.status, 503);
  const body = await ready.json();
  assert.deepEqual(body.partitions, [Number(missing)]);
  assert.equal(body.nodes.find((node) => node.name === 'far').state, 'down');
  assert.match(await (await server.get('/metrics')).text(), /^orrery_node_up\{node="far"\} 0$/m);

  // Containers that are made now are made elsewhere.
  const { database } = container;
  const { container: other } = await database.containers.create({ id: 'other', partitionKey: '/pk', throughput: 30000 });
  await other.items.create({ id: '1', pk: 'a' });

  await postgres.resume();
  await until(async () => (await answering(server)).away.length === 0);
  assert.equal((await server.get('/ready')).status, 200);
  const again = await query(server);
  assert.equal(again.json.Documents.length, 60);
  assert.equal(again.headers['x-orrery-partial'], undefined);
  for (const { i } of down.away) await container.item(`${i}`, `p${i}`).replace({ id: `${i}`, pk: `p${i}`, n: -i });
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test('a PostgreSQL node that hangs is let go of, and others keep answering', async (t) => {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--node', 'near=memory:', '--node', `far=${postgres.url}`, '--node', 'mem=memory:',
    '--set', 'nodes.hang_ms=300ms', ...quick]);
  await spread(t, server);
  const far = (await show(server, 'far'));
  assert.equal(far.partitions, 1);
  await postgres.hang();
  // All at once, more than there are workers: the hanging node must not take them all.
  const answers = await Promise.all(Array.from({ length: 240 }, async (_, n) => {
    const begin = performance.now();
    const { status } = await read(server, n % 60);
    return { status, ms: performance.now() - begin, i: n % 60 };
  }));
  const away = new Set(answers.filter(({ status }) => status === 503).map(({ i }) => i));
  assert.ok(away.size > 0 && away.size < 40, `${away.size} items away`);
  for (const { status, i } of answers) assert.equal(status, away.has(i) ? 503 : 200);
  t.diagnostic(`figure: served in at most ${Math.max(...answers.filter((a) => a.status === 200).map((a) => a.ms)).toFixed(0)} ms, ` +
    `refused in at most ${Math.max(...answers.filter((a) => a.status === 503).map((a) => a.ms)).toFixed(0)} ms while a node hangs`);
  await until(async () => (await show(server, 'far')).state === 'down');
  const begin = performance.now();
  assert.equal((await read(server, [...away][0])).status, 503);
  t.diagnostic(`figure: ${(performance.now() - begin).toFixed(1)} ms to the 503 once it is known`);
  postgres.goOn();
  await until(async () => (await answering(server)).away.length === 0);
});

test('whoever waits for a node that hangs or dies is answered, and a write that is not known to have failed says so', async (t) => {
  const postgres = await Postgres.start(t);
  // Ten minutes: nobody is let go because the node is known to be down.
  const server = await Server.start(t, ['--node', 'near=memory:', '--node', `far=${postgres.url}`, '--node', 'mem=memory:',
    '--set', 'nodes.hang_ms=10m', ...quick]);
  await spread(t, server);
  assert.equal((await admin(server, 'POST', 'nodes/far/pause')).state, 'paused');
  const keys = (await answering(server)).away.map(({ i }) => i);
  assert.equal((await admin(server, 'POST', 'nodes/far/resume')).state, 'serving');
  const statuses = {};
  // What each item may be: what was acknowledged last, or any value of unknown outcome since.
  const possible = new Map(keys.map((i) => [i, new Set([i])]));
  const told = () => `${JSON.stringify(statuses)}\n${server.err}`;
  let working = true;
  let n = 1000;
  const write = async (i) => {
    const value = n++;
    const { status, json, text } = await signed(server, 'PUT', `${docs}/${i}`, {
      headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([`p${i}`]) }, body: { id: `${i}`, pk: `p${i}`, n: value },
    });
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status === 200) possible.set(i, new Set([value]));
    else if (status === 408) possible.get(i).add(value);
    else assert.equal(status, 503, text);
    if (status !== 200) assert.match(json.message, /node \\?"far\\?"|refuses writes/);
  };
  const load = Promise.all(keys.slice(0, 6).map(async (i) => {
    while (working) await write(i);
  }));
  await until(() => statuses[200] > 20, told);
  await postgres.hang();
  // Everybody inside is let go, and later ones are told at once, although the node is not down.
  await until(() => (statuses[503] ?? 0) > 20, told);
  assert.equal((await show(server, 'far')).state, 'suspect');
  assert.equal((await read(server, keys[0])).status, 503);
  postgres.goOn();
  let served = statuses[200];
  await until(() => statuses[200] > served + 20, told);
  await postgres.stop('SIGQUIT');
  let refused = statuses[503];
  await until(() => statuses[503] > refused + 20, told);
  await postgres.resume();
  served = statuses[200];
  await until(() => statuses[200] > served + 20, told);
  working = false;
  await load;
  for (const i of keys) {
    const { json } = await read(server, i);
    assert.ok(possible.get(i).has(json.n), `item ${i} is ${json.n}, and may be ${[...possible.get(i)]}`);
  }
  t.diagnostic(`figure: answers by status ${JSON.stringify(statuses)}`);
});

test('nodes are added, drained and removed while a client reads and writes without an error', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `a=rocksdb:${join(directory, 'a')}`, '--set', `nodes.add_paths=${directory}`, ...quick]);
  const { container } = await spread(t, server);
  const expected = new Map(Array.from({ length: 60 }, (_, i) => [`${i}`, i]));
  let working = true;
  let operations = 0;
  const load = Promise.all(Array.from({ length: 4 }, async (_, w) => {
    for (let n = 0; working; n++) {
      const i = (n * 4 + w) % 60;
      const value = 1000 + n;
      await container.items.upsert({ id: `${i}`, pk: `p${i}`, n: value });
      expected.set(`${i}`, value);
      const { resource } = await container.item(`${i}`, `p${i}`).read();
      assert.equal(resource.n, value);
      operations += 2;
    }
  }));
  const added = await orrery(['node', 'add', 'b', `rocksdb:${join(directory, 'b')}`, '--region', 'eu', '--tags', 'ssd,new',
    '--endpoint', server.url, '--dev']);
  assert.equal(added.code, 0, added.err);
  assert.equal((await admin(server, 'POST', 'nodes', { name: 'c', url: 'memory:', capacity: '1GB', reserve: 5 })).status, 201);
  assert.equal((await admin(server, 'POST', 'nodes', { name: 'c', url: 'memory:' })).status, 409);

  // Rebalancing spreads the three partitions over the three nodes.
  const plan = await orrery(['node', 'rebalance', '--plan', '--endpoint', server.url, '--dev']);
  assert.match(plan.out, /d\/c .* a .* balance/);
  const rebalanced = await orrery(['node', 'rebalance', '--endpoint', server.url, '--dev']);
  assert.equal(rebalanced.code, 0, rebalanced.err);
  for (const name of ['a', 'b', 'c']) assert.equal((await show(server, name)).partitions, 1, name);
  assert.deepEqual((await admin(server, 'GET', 'rebalance')).moves, []);

  const full = await admin(server, 'DELETE', 'nodes/c');
  assert.equal(full.status, 503);
  assert.match(full.message, /node \\?"c\\?" holds 1 partition: drain it first/);
  const drained = await orrery(['node', 'drain', 'c', '--endpoint', server.url, '--dev']);
  assert.equal(drained.code, 0, drained.err);
  assert.match(drained.out, /holds nothing any more/);
  assert.equal((await show(server, 'c')).partitions, 0);
  await until(async () => (await admin(server, 'DELETE', 'nodes/c')).status === 204);
  assert.equal((await show(server, 'c')).status, 404);
  assert.equal((await admin(server, 'DELETE', 'nodes/a')).status, 403); // the root
  working = false;
  await load;
  t.diagnostic(`figure: ${operations} operations without an error while nodes came and went`);
  const { resources } = await container.items.readAll().fetchAll();
  assert.equal(resources.length, 60);
  for (const item of resources) assert.equal(item.n, expected.get(item.id));

  // The node that was added is there again after a restart that does not name it.
  await server.stop();
  const again = await Server.start(t, ['--node', `a=rocksdb:${join(directory, 'a')}`, ...quick]);
  const b = await show(again, 'b');
  assert.equal(b.state, 'serving');
  assert.equal(b.region, 'eu');
  assert.deepEqual(b.tags, ['ssd', 'new']);
  assert.equal((await answering(again)).served.length, 60);
});

test('a paused node and a paused region answer 503 until they are resumed, after a restart too', async (t) => {
  const directory = scratch(t);
  const args = ['--node', `a=rocksdb:${join(directory, 'a')}`, '--node', `b=rocksdb:${join(directory, 'b')}`, '--node',
    `c=rocksdb:${join(directory, 'c')}`, '--set', 'node.b.region=eu', '--set', 'node.c.region=eu', ...quick];
  const server = await Server.start(t, args);
  await spread(t, server);
  assert.equal((await admin(server, 'POST', 'nodes/b/pause')).state, 'paused');
  const one = await answering(server);
  assert.match(one.away[0].message, /node \\?"b\\?" is paused by the operator/);
  assert.equal((await admin(server, 'POST', 'regions/eu/pause')).status, 200);
  const both = await answering(server);
  assert.ok(both.away.length > one.away.length);
  assert.equal((await admin(server, 'POST', 'regions/mars/pause')).status, 404);
  assert.equal((await admin(server, 'POST', 'nodes/b/resume')).state, 'paused'); // its region still is
  await server.stop();
  const again = await Server.start(t, args);
  assert.deepEqual((await answering(again)).served, both.served);
  assert.equal((await again.get('/ready')).status, 503);
  assert.equal((await admin(again, 'POST', 'regions/eu/resume')).status, 200);
  assert.equal((await answering(again)).away.length, 0);
  // The root may be paused as well: its catalogue stays open, so that it can be resumed.
  assert.equal((await admin(again, 'POST', 'nodes/a/pause')).state, 'paused');
  assert.ok((await answering(again)).away.length > 0);
  assert.equal((await admin(again, 'POST', 'nodes/a/resume')).state, 'serving');
  assert.equal((await answering(again)).away.length, 0);
});

test('a server starts while a node is away, and takes it in when it comes', async (t) => {
  const directory = scratch(t);
  const postgres = await Postgres.start(t);
  const args = ['--node', `near=rocksdb:${join(directory, 'near')}`, '--node', `far=${postgres.url}`, '--node',
    `third=rocksdb:${join(directory, 'third')}`, ...quick];
  const server = await Server.start(t, args);
  await spread(t, server);
  await server.stop();
  await postgres.stop();
  const again = await Server.start(t, args);
  assert.match(again.out, /far = .*\(down\)/);
  const away = await answering(again);
  assert.ok(away.away.length > 0 && away.served.length > 0);
  assert.match(away.away[0].message, /node \\?"far\\?" is down/);
  // The client library still finds its way: ranges are listed, other keys are served.
  const client = await connected(t, again);
  const container = client.database('d').container('c');
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 3);
  const i = away.served[0];
  await container.item(`${i}`, `p${i}`).replace({ id: `${i}`, pk: `p${i}`, n: 77 });
  await postgres.resume();
  await until(async () => (await answering(again)).away.length === 0);
  const j = away.away[0].i;
  await container.item(`${j}`, `p${j}`).replace({ id: `${j}`, pk: `p${j}`, n: 78 });
  const { resources } = await container.items.query('SELECT VALUE c.n FROM c WHERE c.n > 70').fetchAll();
  assert.deepEqual(resources.toSorted(), [77, 78]);
  // A node nobody has ever seen must be there.
  const unknown = await orrery(['serve', '--node', 'a=memory:', '--node', 'b=postgresql://127.0.0.1:1/x', '--rest', '127.0.0.1:0']);
  assert.equal(unknown.code, 1);
  assert.match(unknown.err, /node "b": /);
});

test('placement rules put a tenant on its own shard, and regions where they belong', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `a=rocksdb:${join(directory, 'a')}`, '--node', 'b=memory:', '--node', 'c=memory:',
    '--set', 'node.a.region=us', '--set', 'node.b.region=eu', '--set', 'node.c.tags=quiet', ...quick]);
  const client = await connected(t, server);
  const { database } = await client.databases.create({ id: 'd' });
  const placement = [
    { key: ['acme'], isolate: true, tags: ['quiet'] },
    { keyLike: ['eu-*'], region: 'eu' },
    { region: 'us' },
  ];
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 400, orrery: { placement } });
  for (const pk of ['acme', 'eu-1', 'eu-2', 'us-1', 'us-2', 'us-3'])
    for (let i = 0; i < 5; i++) await container.items.create({ id: `${pk}-${i}`, pk });
  const nodeOf = async () => {
    const shown = await admin(server, 'GET', 'containers/d/c');
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    const by = {};
    for (const pk of ['acme', 'eu-1', 'eu-2', 'us-1']) {
      const answer = await signed(server, 'GET', `${docs}/${pk}-0`, { headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) } });
      if (answer.status !== 200) return undefined;
      const id = answer.headers['x-ms-session-token'].split(':')[0];
      by[pk] = shown.partitions.find((partition) => `${partition.id}` === id)?.node;
    }
    return { by, count: resources.length };
  };
  const settled = await until(async () => {
    const now = await nodeOf();
    return now?.by.acme === 'c' && now.by['eu-1'] === 'b' && now.by['eu-2'] === 'b' && now.by['us-1'] === 'a' && now;
  });
  t.diagnostic(`figure: ${settled.count} partitions hold the rules`);
  const { resources } = await container.items.readAll().fetchAll();
  assert.equal(resources.length, 30);

  // What cannot be satisfied is told, and nothing is moved for it.
  const { resource } = await container.read();
  assert.deepEqual(resource.orrery.placement, placement);
  await container.replace({ ...resource, orrery: { placement: [{ key: ['acme'], region: 'mars' }, { region: 'us' }] } });
  await until(async () => (await admin(server, 'GET', 'rebalance')).problems.some(({ problem }) => /placement/.test(problem)));
  for (const [rules, message] of [
    [[{ zone: 'x' }, { region: 'us' }], /no rule may follow/],
    [[{ key: ['a', 'b'], zone: 'x' }], /more components/],
    [[{ key: ['a'] }], /says nothing of nodes/],
    [[{ isolate: true, zone: 'x' }], /isolate needs a key/],
    [[{ colour: 'red' }], /no member \\?"colour/],
  ])
    await assert.rejects(container.replace({ ...resource, orrery: { placement: rules } }), message);
});

test('a URL with a password is kept, and never shown', async (t) => {
  const directory = scratch(t);
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--node', `a=rocksdb:${join(directory, 'a')}`, '--set',
    `nodes.add_paths=${dirname(postgres.directory)}`, ...quick]);
  const failed = await admin(server, 'POST', 'nodes', { name: 'pg', url: 'postgresql://u:topsecret@127.0.0.1:1/x' });
  assert.ok(failed.status >= 500);
  const url = postgres.url.replace('orrery@', 'orrery:topsecret@');
  assert.equal((await admin(server, 'POST', 'nodes', { name: 'pg', url })).status, 201);
  const listed = await orrery(['node', 'list', '--json', '--endpoint', server.url, '--dev']);
  assert.match(listed.out, /orrery:\*\*\*@/);
  for (const text of [listed.out, server.out, server.err, JSON.stringify(failed)]) assert.doesNotMatch(text, /topsecret/);
});
