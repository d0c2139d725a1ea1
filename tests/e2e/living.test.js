// An application on the vendor's own client while its container's partitions split by themselves and
// are merged, moved and isolated by an operator. No error reaches the application, and what it
// reads is what it wrote: checked against a journal it keeps.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, sanitized } from './server.js';
import { signed } from './rest.js';

const writers = 16;
const keysOfWriter = 12;
const megabytes = sanitized ? 3 : 16; // past partition.bytes_max=1M many times
const filler = 'x'.repeat(3000);
const rounds = Math.ceil((megabytes * 1e6) / (writers * filler.length));

// What the application knows: id -> { pk, n } of items that are there, and the last n of all ever.
class Journal {
  items = new Map();
  last = new Map();

  wrote(item) {
    this.items.set(item.id, { pk: item.pk, n: item.n });
    this.last.set(item.id, item.n);
  }

  deleted(id) {
    this.items.delete(id);
  }

  some() {
    const all = [...this.items.keys()];
    return all[Math.floor(Math.random() * all.length)];
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Creates, replaces under an etag, patches, upserts, deletes and batches, each read again at once.
async function write(container, journal, writer) {
  let serial = 0;
  for (let round = 0; round < rounds; round++) {
    const pk = `w${writer}.${round % keysOfWriter}`;
    const item = { id: `${writer}-${round}`, pk, n: ++serial, filler };
    const created = await container.items.create(item);
    journal.wrote(item);
    if (round % 3 === 0) {
      item.n = ++serial;
      await container.item(item.id, pk).replace(item, {
        accessCondition: { type: 'IfMatch', condition: created.resource._etag },
      });
      journal.wrote(item);
    }
    if (round % 4 === 0) {
      item.n = ++serial;
      await container.item(item.id, pk).patch([{ op: 'set', path: '/n', value: item.n }]);
      journal.wrote(item);
    }
    if (round % 5 === 0) {
      const pair = [0, 1].map((nth) => ({ id: `${writer}-${round}-${nth}`, pk, n: ++serial, filler: 'y' }));
      const answer = await container.items.batch(
        pair.map((resourceBody) => ({ operationType: 'Upsert', resourceBody })), pk);
      assert.deepEqual(answer.result.map((result) => result.statusCode), [201, 201]);
      pair.forEach((one) => journal.wrote(one));
    }
    if (round % 7 === 6) {
      const old = `${writer}-${round - 5}`;
      await container.item(old, journal.items.get(old).pk).delete();
      journal.deleted(old);
    }
    const { resource } = await container.item(item.id, pk).read();
    assert.equal(resource?.n, item.n, `${item.id} right after it was written`);
  }
}

async function writeInBulk(container, journal, state) {
  for (let round = 0; state.writing; round++) {
    const items = Array.from({ length: 40 }, (_, i) => ({ id: `bulk-${round % 5}-${i}`, pk: `b${i}`, n: round + 1 }));
    const answers = await container.items.executeBulkOperations(
      items.map((resourceBody) => ({ operationType: 'Upsert', partitionKey: resourceBody.pk, resourceBody })));
    answers.forEach((answer, i) => {
      assert.ok(answer.response, `bulk: ${JSON.stringify(answer.error)}`);
      assert.ok([200, 201].includes(answer.response.statusCode));
      journal.wrote(items[i]);
    });
    state.bulks = round + 1;
  }
}

// What was acknowledged before a read began is what it finds, or something later.
async function read(container, journal, state) {
  while (state.writing) {
    const id = journal.some();
    if (!id) {
      await pause(5);
      continue;
    }
    const known = { ...journal.items.get(id) };
    const { resource, statusCode } = await container.item(id, known.pk).read();
    if (statusCode === 404) {
      await pause(20); // its delete may be acknowledged a moment later
      assert.ok(!journal.items.has(id), `${id} is lost`);
    } else {
      assert.ok(resource.n >= known.n, `${id}: read ${resource.n} after ${known.n}`);
    }
    state.reads++;
  }
}

// Items that stay as they are come exactly once in every result, in order where one is asked for,
// also when the query is taken up from a continuation.
async function page(container, still, state) {
  const wanted = still.map((item) => item.id).sort();
  while (state.writing || state.queries === 0) {
    const found = [];
    let continuationToken;
    do {
      const answer = await container.items.query('SELECT VALUE c.id FROM c WHERE c.still = true', {
        maxItemCount: 7, enableQueryControl: true, continuationToken,
      }).fetchNext();
      found.push(...(answer.resources ?? []));
      continuationToken = answer.continuationToken;
      state.pages++;
    } while (continuationToken);
    assert.deepEqual(found.sort(), wanted);
    const ordered = await container.items
      .query('SELECT VALUE c.id FROM c WHERE c.still = true ORDER BY c.id', { maxItemCount: 9 }).fetchAll();
    assert.deepEqual(ordered.resources, wanted);
    state.queries++;
  }
}

// Every item's versions in the order they were written; at the end, the last one of each.
async function follow(container, journal, state) {
  const iterator = container.items.getChangeFeedIterator({
    changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount: 50,
  });
  const seen = new Map();
  let quiet = 0;
  while (state.busy || quiet < 40) {
    const answer = await iterator.readNext();
    for (const change of answer.result ?? []) {
      assert.ok(change.n >= (seen.get(change.id) ?? 0), `${change.id}: ${change.n} behind ${seen.get(change.id)}`);
      seen.set(change.id, change.n);
    }
    quiet = answer.result?.length ? 0 : quiet + 1;
    if (quiet) await pause(5);
  }
  for (const [id, { n }] of journal.items) assert.equal(seen.get(id), n, `the feed has ${id}`);
}

// Merges, moves and isolations while partitions split by themselves. One at a time, so some are
// refused, and a partition may be gone by the time it is asked for; that is the operator's to see,
// not the application's.
async function operate(server, state) {
  const ask = (method, path, body) => signed(server, method, `/_orrery/containers/d/c/${path}`, body ? { body } : {});
  const done = { merge: 0, move: 0, isolate: 0 };
  for (let turn = 0; state.writing || Object.values(done).some((count) => count < 3); turn++) {
    const { partitions } = (await ask('GET', 'partitions')).json;
    const at = Math.floor(Math.random() * partitions.length);
    const kind = ['merge', 'move', 'isolate'][turn % 3];
    let answer;
    if (kind === 'merge') {
      if (partitions.length < 3 || at === 0) continue;
      answer = await ask('POST', 'partitions/merge', { partitions: [partitions[at - 1].id, partitions[at].id] });
    } else if (kind === 'move') {
      answer = await ask('POST', `partitions/${partitions[at].id}/move`, { node: partitions[at].node === 'near' ? 'far' : 'near' });
    } else {
      answer = await ask('POST', 'isolate', { partitionKey: [`w${turn % writers}.${turn % keysOfWriter}`] });
    }
    assert.ok([202, 400, 404, 409].includes(answer.status), `${kind}: ${answer.text}`);
    if (answer.status === 202) {
      done[kind]++;
      while ((await ask('GET', 'migration')).status === 200) await pause(10);
    }
    await pause(30);
  }
}

async function settled(server) {
  for (let calm = 0; calm < 5;) {
    const { migrations } = (await signed(server, 'GET', '/_orrery/migrations')).json;
    calm = migrations.length ? 0 : calm + 1;
    await pause(30);
  }
}

async function verify(container, journal, still) {
  const expected = new Map([...journal.items].map(([id, { n }]) => [id, n]));
  for (const item of still) expected.set(item.id, item.n);
  const { resources } = await container.items.query('SELECT c.id, c.n FROM c').fetchAll();
  const found = new Map(resources.map(({ id, n }) => [id, n]));
  assert.equal(resources.length, found.size, 'an item came twice');
  for (const [id, n] of expected) assert.equal(found.get(id), n, `${id} in a query`);
  assert.equal(found.size, expected.size, 'something is there that was never written, or was deleted');
  for (const [id, { pk, n }] of journal.items) {
    if (Math.random() > 0.1) continue;
    const { resource } = await container.item(id, pk).read();
    assert.equal(resource?.n, n, `${id} by itself`);
  }
}

async function living(t, body) {
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', 'far=memory:',
    '--set', `partition.bytes_max=${sanitized ? '256K' : '1M'}`, '--set', 'migration.pause_ms=20ms', '--set', 'partition.ru_max=1000000']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 1000000, ...body });
  const still = Array.from({ length: 60 }, (_, i) => ({ id: `still${String(i).padStart(2, '0')}`, pk: `s${i}`, n: 1, still: true }));
  for (const item of still) await container.items.create(item);
  const journal = new Journal();
  const state = { writing: true, busy: true, reads: 0, queries: 0, pages: 0, bulks: 0 };
  const writing = Promise.all(Array.from({ length: writers }, (_, writer) => write(container, journal, writer)))
    .finally(() => (state.writing = false));
  const others = Promise.all([
    writing, writeInBulk(container, journal, state), page(container, still, state), operate(server, state),
    ...Array.from({ length: 4 }, () => read(container, journal, state)),
  ]).finally(() => (state.writing = state.busy = false));
  await Promise.all([others, follow(container, journal, state)]);
  await settled(server);
  await verify(container, journal, still);
  const { statistics } = (await signed(server, 'GET', '/_orrery/migrations')).json;
  delete state.writing;
  delete state.busy;
  t.diagnostic(JSON.stringify({ ...state, ...statistics, writes: rounds * writers }));
  assert.ok(statistics.split >= (sanitized ? 2 : 4), `${statistics.split} splits`);
  assert.ok(statistics.merge >= 3 && statistics.move >= 3 && statistics.isolate >= 3);
  assert.ok(state.reads > 0 && state.queries > 0 && state.bulks > 0);
}

test('hashed: nothing is lost, doubled or out of order while partitions live', (t) => living(t, {}));

test('by range: the same', (t) => living(t, { orrery: { strategy: 'range' } }));

test('by lookup: the same', (t) => living(t, { orrery: { strategy: { kind: 'lookup', shards: 16, default: 'hash' } } }));
