// Promotions of keys whose items are on another node than the catalogue and than those they are written
// together with: the key stays where it is, and transactions over both nodes stay whole through every step.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed as once } from './rest.js';

const keys = Array.from({ length: 16 }, (_, i) => `k${i}`);
const path = '/_orrery/containers/d/c/promote';

async function signed(...request) {
  for (;;) {
    const answer = await once(...request);
    if (answer.status !== 429) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function until(what, why = 'waited in vain') {
  const end = Date.now() + 120_000;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, why);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function placed(t) {
  const directory = scratch(t);
  const args = ['--dev', '--set', 'partition.ru_max=50000', '--set', 'throughput.burst_seconds=300', '--set', 'migration.pause_ms=20ms',
    '--node', `a=rocksdb:${join(directory, 'a')}`, '--node', `b=rocksdb:${join(directory, 'b')}`];
  const at = { server: await Server.start(t, args) };
  at.kill = async () => {
    await at.server.stop('SIGKILL');
    at.server = await Server.start(t, args);
  };
  at.send = (...request) => signed(at.server, ...request);
  at.run = (operations) => at.send('POST', '/_orrery/transactions', { body: { database: 'd', operations } });
  at.open = async () => (await at.send('GET', '/_orrery/transactions')).json.transactions;
  at.partitions = async (id) => (await at.send('GET', `/_orrery/containers/d/${id}/partitions`)).json.partitions;
  at.change = async (what, key, wanted = what === 'forget' ? 204 : 200) => {
    const answer = await until(async () => {
      const got = await at.send('POST', `${path}/${what}`, { body: { partitionKey: [key] } });
      return (got.status === 409 && /under way/.test(got.json.message)) || got.status === 503 ? undefined : got;
    });
    assert.equal(answer.status, wanted, answer.text);
  };
  at.promoted = (key) => until(async () => (await at.send('GET', path)).json.promotions
    .find((one) => one.partitionKey[0] === key && one.state === 'promoted'));
  at.promote = async (key, to = 'own') => {
    const begun = await at.send('POST', path, { body: { partitionKey: [key], to } });
    assert.equal(begun.status, 202, begun.text);
    return at.promoted(key);
  };
  const client = new CosmosClient({ endpoint: at.server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 100000 });
  for (const pk of keys) await container.items.create({ id: 'x', pk, n: 0 });
  assert.equal(new Set((await at.partitions('c')).map(({ node }) => node)).size, 2, 'a partition on each node');
  // where each key is: by the range of the session token of a read
  at.nodeOf = async (pk) => {
    const got = await at.send('GET', '/dbs/d/colls/c/docs/x', { headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) } });
    const token = got.headers.get ? got.headers.get('x-ms-session-token') : got.headers['x-ms-session-token'];
    return (await at.partitions('c')).find((one) => String(one.id) === token.split(':')[0]).node;
  };
  return at;
}

const put = (container, pk, n) => ({ do: 'upsert', container, item: { id: 'x', pk, n } });
const look = (container, pk) => ({ do: 'read', container, partitionKey: [pk], id: 'x' });

test('a key is promoted and demoted on whichever node it is, and its items stay there', async (t) => {
  const at = await placed(t);
  const places = Object.fromEntries(await Promise.all(keys.map(async (pk) => [pk, await at.nodeOf(pk)])));
  for (const node of ['a', 'b']) {
    const key = keys.find((pk) => places[pk] === node), own = `own-${node}`;
    await at.promote(key, own);
    assert.deepEqual((await at.partitions(own)).map((one) => one.node), [node]);
    assert.equal((await at.run([put(own, key, 1), put('c', keys.find((pk) => places[pk] !== node), 1)])).status, 200);
    await at.kill();
    assert.equal((await at.run([look('c', key)])).json.results[0].item.n, 1);
    await at.change('end', key);
    await at.kill();
    assert.equal((await at.run([put('c', key, 2)])).status, 403);
    assert.equal((await at.run([put(own, key, 2)])).status, 200);
    await at.change('demote', key);
    await at.kill();
    await at.change('end', key);
    assert.equal((await at.run([look('c', key)])).json.results[0].item.n, 2);
    await at.change('forget', key);
  }
});

test('transactions over both nodes stay whole while a key of theirs is promoted, demoted and the server killed', async (t) => {
  const at = await placed(t);
  const places = Object.fromEntries(await Promise.all(keys.map(async (pk) => [pk, await at.nodeOf(pk)])));
  // each is promised by one node and decided by the other, whichever the home is
  const pairs = [[keys.find((pk) => places[pk] === 'b'), keys.find((pk) => places[pk] === 'a')]];
  const [key, other] = pairs[0];
  let n = 0, done = 0, elsewhere = 0, stopping = false, looked = 0;
  const failed = [];
  const isGone = (error) => /fetch failed|ECONN|socket|terminated|other side/i.test(`${error.message} ${error.cause?.message ?? ''} ${error.code ?? ''}`);
  const writer = async (name) => {
    while (!stopping) {
      const value = ++n;
      const answer = await at.run([put(name, key, value), put('c', other, value)]).catch((error) => {
        if (!isGone(error)) throw error;
        return undefined;
      });
      if (!answer) { await new Promise((resolve) => setTimeout(resolve, 100)); continue; }
      if (answer.status === 200) done++;
      else if (answer.status === 403 || answer.status === 404) elsewhere++;
      else if (![409, 412, 449, 503].includes(answer.status)) failed.push([answer.status, answer.text]);
    }
  };
  const reader = async (name) => {
    while (!stopping) {
      const answer = await at.run([look(name, key), look('c', other)]).catch((error) => {
        if (!isGone(error)) throw error;
        return undefined;
      });
      if (!answer) { await new Promise((resolve) => setTimeout(resolve, 100)); continue; }
      if (answer.status !== 200) continue;
      const [one, two] = answer.json.results.map(({ item }) => item.n);
      if (one !== two) failed.push(['a half', one, two]);
      looked++;
    }
  };
  await at.promote(key);
  const load = [writer('c'), writer('own'), writer('own'), reader('c'), reader('own')];
  for (let round = 0; round < 6; round++) {
    const before = done;
    await until(() => done > before + 10 || failed.length, 'somebody writes');
    await at.change('end', key); // of what was promised through the first, the rest is done through the second
    if (round % 2) await at.kill();
    await until(() => done > before + 20 || failed.length);
    await at.change('demote', key);
    if (round % 3 === 1) await at.kill();
    await until(() => done > before + 30 || failed.length);
    await at.change('end', key); // and the other way round
    if (round % 3 === 2) await at.kill();
    const begun = await at.send('POST', path, { body: { partitionKey: [key], to: 'own' } });
    assert.equal(begun.status, 202, begun.text);
    await at.promoted(key);
  }
  stopping = true;
  await Promise.all(load);
  assert.deepEqual(failed, []);
  assert.ok(done > 100 && elsewhere > 5 && looked > 20, `${done} done, ${elsewhere} elsewhere, ${looked} looked at`);
  await until(async () => (await at.open()).length === 0, 'none is left open');
  const last = await at.run([look('own', key), look('c', other)]);
  assert.equal(last.status, 200, last.text);
  assert.equal(last.json.results[0].item.n, last.json.results[1].item.n);
});
