// Transactions over several nodes: no half is ever seen, whoever looks and whatever is killed.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { Postgres } from './postgres.js';
import { signed as once } from './rest.js';

const docs = '/dbs/d/colls/c/docs';
const keys = Array.from({ length: 16 }, (_, i) => `k${i}`);

const start = (t, nodes) => Server.start(t, ['--dev', '--set', 'partition.ru_max=50000', '--set', 'throughput.burst_seconds=300', ...nodes]);

/** As clients do it: what is refused with 429 has done nothing, and comes again. */
async function signed(...request) {
  for (;;) {
    const answer = await once(...request);
    if (answer.status !== 429) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const run = (server, operations) => signed(server, 'POST', '/_orrery/transactions', { body: { database: 'd', operations } });
const put = (pk, n) => ({ do: 'upsert', container: 'c', item: { id: 'x', pk, n } });
const look = (pk) => ({ do: 'read', container: 'c', partitionKey: [pk], id: 'x' });
const open = async (server) => (await signed(server, 'GET', '/_orrery/transactions')).json.transactions;

async function until(what) {
  const end = Date.now() + 120_000;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function spread(t, server) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 100000 });
  const { json } = await signed(server, 'GET', '/_orrery/containers/d/c/partitions');
  assert.equal(new Set(json.partitions.map(({ node }) => node)).size, 2, 'a partition on each node');
}

async function read(server, pk) {
  const { status, json } = await signed(server, 'GET', `${docs}/x`, { headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) } });
  if (status === 404) return 0;
  assert.equal(status, 200, JSON.stringify(json));
  return json.n;
}

async function query(server) {
  const { status, json } = await signed(server, 'POST', docs, {
    headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true', 'x-ms-documentdb-query-enablecrosspartition': 'true' },
    body: { query: 'SELECT VALUE c.n FROM c', parameters: [] },
  });
  assert.equal(status, 200, JSON.stringify(json));
  return json.Documents;
}

const places = {
  memory: async () => ['--node', 'a=memory:', '--node', 'b=memory:'],
  rocksdb: async (t) => ['--node', `a=rocksdb:${join(scratch(t), 'a')}`, '--node', `b=rocksdb:${join(scratch(t), 'b')}`],
  postgresql: async (t) => {
    t.postgres = await Postgres.start(t);
    return ['--node', `a=rocksdb:${join(scratch(t), 'a')}`, '--node', `b=${t.postgres.url}`];
  },
};

for (const [name, place] of Object.entries(places))
  test(`${name}: operations on several nodes are done together, or none is`, async (t) => {
    const server = await start(t, await place(t));
    await spread(t, server);
    const answer = await run(server, keys.map((pk) => put(pk, 1)));
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json.results.map(({ status }) => status), keys.map(() => 201));
    assert.ok(answer.json.charge > 5 * keys.length);
    for (const [i, pk] of keys.entries()) {
      const { json } = await signed(server, 'GET', `${docs}/x`, { headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) } });
      assert.equal(json._rid, answer.json.results[i].rid);
      assert.equal(JSON.parse(json._etag), answer.json.results[i].etag);
    }
    const refused = await run(server, [...keys.map((pk) => put(pk, 2)), { do: 'check', container: 'c', partitionKey: ['none'], id: 'x' }]);
    assert.equal(refused.status, 404, refused.text);
    for (const pk of keys) assert.equal(await read(server, pk), 1);
    const stale = await run(server, [put(keys[0], 3), ...keys.slice(1).map((pk) => ({ ...put(pk, 3), ifMatch: 'other' }))]);
    assert.equal(stale.status, 412, stale.text);
    const seen = await run(server, keys.map(look));
    assert.deepEqual(seen.json.results.map(({ item }) => item.n), keys.map(() => 1));
    const gone = await run(server, keys.map((pk) => ({ do: 'delete', container: 'c', partitionKey: [pk], id: 'x' })));
    assert.deepEqual(gone.json.results.map(({ status }) => status), keys.map(() => 204));
    assert.deepEqual(await query(server), []);
    await until(async () => (await open(server)).length === 0);
    assert.match(await (await server.get('/metrics')).text(), /^orrery_transactions_in_doubt 0$/m);
  });

test('an item gets a partition key of another node in one go', async (t) => {
  const server = await start(t, await places.rocksdb(t));
  await spread(t, server);
  const move = (from, to, n) => signed(server, 'POST', '/_orrery/containers/d/c/move-item', {
    body: { id: 'x', partitionKey: [from], document: { id: 'x', pk: to, n } },
  });
  assert.equal((await run(server, [put(keys[0], 1)])).status, 200);
  for (let i = 1; i <= keys.length; i++) {
    const [from, to] = [keys[i - 1], keys[i % keys.length]];
    const moved = await move(from, to, i);
    assert.equal(moved.status, 200, moved.text);
    assert.equal(await read(server, to), i);
    assert.equal(await read(server, from), 0);
  }
  assert.equal((await query(server)).length, 1);
  await until(async () => (await open(server)).length === 0);
});

for (const [name, place] of Object.entries(places))
  test(`${name}: nobody sees a half, by one request or by several`, async (t) => {
    const server = await start(t, await place(t));
    await spread(t, server);
    assert.equal((await run(server, keys.map((pk) => put(pk, 1)))).status, 200);
    const state = { stop: false, looks: 0 };
    const atOnce = async () => {
      for (; !state.stop; state.looks++) {
        const { status, json, text } = await run(server, keys.map(look));
        if (status === 449) continue; // it lost too many races
        assert.equal(status, 200, text);
        assert.equal(new Set(json.results.map(({ item }) => item.n)).size, 1, text);
      }
    };
    const oneByOne = async (first) => { // whoever has seen a version finds none before it, on whichever node
      for (let seen = 1, i = first; !state.stop; i++, state.looks++) {
        const now = i % 5 ? [await read(server, keys[(i * 7) % keys.length])] : await query(server);
        for (const n of now) assert.ok(n >= seen, `${n} was found behind ${seen}`);
        seen = Math.max(seen, ...now);
      }
    };
    const looking = [atOnce(), oneByOne(0), oneByOne(3), oneByOne(8)];
    let n = 2;
    try {
      for (; n < 120 || state.looks < 200; n++) {
        const { status, text } = await run(server, keys.map((pk) => put(pk, n)));
        assert.ok(status === 200 || status === 449, text);
      }
    } finally {
      state.stop = true;
    }
    await Promise.all(looking);
    t.diagnostic(`figure: ${n} transactions over two nodes, ${state.looks} looks beside them`);
  });

for (const name of ['rocksdb', 'postgresql'])
  test(`${name}: a server that is killed under load leaves whole transactions and none open`, async (t) => {
    const nodes = await places[name](t);
    let server = await start(t, nodes);
    await spread(t, server);
    const acknowledged = keys.map(() => 0), tried = keys.map(() => 0);
    for (let round = 0; round < 3; round++) {
      let dead = false, done = 0;
      const work = async (w) => { // each has two keys of its own; pairs of them are on both nodes, or not
        for (;;) {
          const n = (tried[w] += 1);
          let answer;
          try {
            answer = await run(server, [put(keys[w], n), put(keys[w + 8], n)]);
          } catch (error) {
            assert.ok(dead, error);
            return;
          }
          assert.equal(answer.status, 200, answer.text);
          acknowledged[w] = n;
          done++;
        }
      };
      const workers = Array.from({ length: 8 }, (_, w) => work(w));
      await Promise.race([server.until(() => done >= 60), Promise.all(workers)]);
      dead = true;
      await server.stop('SIGKILL');
      await Promise.all(workers);
      server = await start(t, nodes);
      for (let w = 0; w < 8; w++) {
        const [a, b] = [await read(server, keys[w]), await read(server, keys[w + 8])];
        assert.equal(a, b);
        assert.ok(a >= acknowledged[w] && a <= tried[w], `${a} of ${acknowledged[w]} to ${tried[w]}`);
      }
      await until(async () => (await open(server)).length === 0);
    }
    const verified = await signed(server, 'GET', '/_orrery/transactions');
    assert.deepEqual(verified.json, { transactions: [] });
  });

test('a PostgreSQL node that is killed under load leaves whole transactions and none open', async (t) => {
  const server = await start(t, await places.postgresql(t));
  await spread(t, server);
  const acknowledged = keys.map(() => 0), tried = keys.map(() => 0);
  for (let round = 0; round < 2; round++) {
    const state = { stop: false, done: 0 };
    const workers = Array.from({ length: 8 }, async (_, w) => {
      while (!state.stop) {
        const n = (tried[w] += 1);
        const answer = await run(server, [put(keys[w], n), put(keys[w + 8], n)]);
        assert.ok([200, 408, 449, 503].includes(answer.status), answer.text);
        if (answer.status === 200) {
          acknowledged[w] = n;
          state.done++;
        }
      }
    });
    await until(() => state.done >= 40);
    await t.postgres.stop('SIGQUIT');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await t.postgres.resume();
    const before = state.done;
    await until(() => state.done > before + 20);
    await until(async () => (await server.get('/ready')).status === 200); // some of those were on the other node alone
    state.stop = true;
    await Promise.all(workers);
    await until(async () => (await open(server)).length === 0);
    for (let w = 0; w < 8; w++) {
      const [a, b] = [await read(server, keys[w]), await read(server, keys[w + 8])];
      assert.equal(a, b);
      assert.ok(a >= acknowledged[w] && a <= tried[w], `${a} of ${acknowledged[w]} to ${tried[w]}`);
    }
  }
});
