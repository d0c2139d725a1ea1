// Views of containers whose keys are promoted: at a quiet moment a view is what its query says of the items
// that its source shows, through whichever of the two containers they were written.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { shop } from './items.js';
import { signed } from './rest.js';

async function until(what, why = 'waited in vain', limitMs = 60_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, why);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const path = (id = 'orders') => `/_orrery/containers/shop/${id}/promote`;
const all = async (container, query = 'SELECT * FROM c') => (await container.items.query(query).fetchAll()).resources;
const order = (i, more = {}) => ({ id: `o${i}`, tenant: i % 2 ? 'big' : `t${i % 5}`, email: `e${i % 7}@x`, total: i, ...more });

const rowQuery = 'SELECT c.id, c.email, c.total FROM c';
const groupQuery = 'SELECT c.email, COUNT(1) AS n, SUM(c.total) AS sum, MIN(c.total) AS least, MAX(c.total) AS most FROM c GROUP BY c.email';
const rows = (id, sources) => ({ id, partitionKey: '/email', orrery: { view: { sources, query: rowQuery } } });
const groups = (id, sources) => ({ id, partitionKey: '/email', orrery: { view: { sources, query: groupQuery } } });

const wantedRows = async (sources) => (await Promise.all(sources.map((source) => all(source)))).flat()
  .map(({ _rid, id, email, total }) => JSON.stringify([_rid, id, email, total])).sort();
const seenRows = async (view) => (await all(view)).map(({ id, _id, email, total }) => JSON.stringify([id, _id, email, total])).sort();
const line = ({ email, n, sum, least, most }) => JSON.stringify([email, n, sum, least, most]);

async function rowsEqual(view, ...sources) {
  let now, wanted;
  await until(async () => {
    wanted = await wantedRows(sources);
    now = await seenRows(view);
    return JSON.stringify(now) === JSON.stringify(wanted);
  }).catch(() => assert.deepEqual(now, wanted));
  return now.length;
}

async function groupsEqual(view, source) {
  let now, wanted;
  await until(async () => {
    wanted = (await all(source, groupQuery)).map(line).sort();
    now = (await all(view)).map(line).sort();
    return JSON.stringify(now) === JSON.stringify(wanted);
  }).catch(() => assert.deepEqual(now, wanted));
}

function promoting(send) {
  const change = async (what, key = ['big'], wanted = what === 'forget' ? 204 : 200) => {
    const answer = await until(async () => {
      const got = await send('POST', `${path()}/${what}`, { body: { partitionKey: key } });
      return got.status === 409 && /under way/.test(got.json.message) ? undefined : got;
    });
    assert.equal(answer.status, wanted, answer.text);
  };
  const promote = async (key = ['big'], to = 'big-own') => {
    const begun = await send('POST', path(), { body: { partitionKey: key, to } });
    assert.equal(begun.status, 202, begun.text);
    await until(async () => (await send('GET', path())).json.promotions
      .some((one) => JSON.stringify(one.partitionKey) === JSON.stringify(key) && one.state === 'promoted'));
  };
  return { change, promote };
}

async function placed(t, args = []) {
  const at = await shop(t, {}, { args: ['--set', 'migration.pause_ms=20ms', ...args] });
  for (let i = 0; i < 60; i++) await at.container.items.create(order(i));
  return { ...at, ...promoting(at.send) };
}

const rebuilds = async (at, id) => (await at.send('GET', `/_orrery/containers/shop/${id}`)).json.view.rebuilds;

test('a promoted key stays in the views of its container until the grace period ends, and is back when it is', async (t) => {
  const at = await placed(t);
  const { container: view } = await at.database.containers.create(rows('by-email', ['orders']));
  const { container: sums } = await at.database.containers.create(groups('sums', ['orders']));
  const same = async () => { const n = await rowsEqual(view, at.container); await groupsEqual(sums, at.container); return n; };
  assert.equal(await same(), 60);
  await at.promote();
  const own = at.database.container('big-own');
  assert.equal((await own.read()).resource.orrery?.followed, true, 'what is written through it is noted too');
  assert.equal(await same(), 60);

  // through either name
  await own.items.create(order(101));
  await own.item('o1', 'big').replace(order(1, { total: 1000 }));
  await own.item('o3', 'big').replace(order(3, { email: 'moved@x' }));
  await own.item('o5', 'big').delete();
  await at.container.item('o7', 'big').patch([{ op: 'incr', path: '/total', value: 5000 }]);
  await at.container.items.create(order(103));
  assert.equal(await same(), 61);
  // who waits has what was written through the other name
  for (let i = 0; i < 20; i++) {
    const { resource } = await own.items.upsert(order(3, { email: 'moved@x', total: 2000 + i }));
    const waited = await at.send('POST', '/dbs/shop/colls/by-email/docs', {
      key: ['moved@x'], body: { query: 'SELECT VALUE c.total FROM c WHERE c._id = "o3"' },
      headers: { 'x-orrery-view-wait-ms': '5000', 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json' },
    });
    assert.deepEqual(waited.json.Documents, [resource.total]);
  }

  // behind the end the container shows the key no more, and neither do its views
  await at.change('end');
  assert.equal(await same(), 30);
  await own.items.create(order(105));
  await own.item('o9', 'big').delete();
  await own.item('o11', 'big').replace(order(11, { total: -11 }));
  await at.container.items.create(order(106));
  assert.equal(await same(), 31);

  // back, with what became of it
  await at.change('demote');
  assert.equal(await same(), 62);
  await own.item('o11', 'big').replace(order(11, { total: -12 }));
  await at.container.item('o13', 'big').delete();
  assert.equal(await same(), 61);
  await at.change('end');
  await at.container.item('o15', 'big').delete();
  assert.equal(await same(), 60);
  assert.deepEqual([await rebuilds(at, 'by-email'), await rebuilds(at, 'sums')], [0, 0], 'the key alone was walked');

  // out again by the same tie, and the tie cut: what was not heard of is looked for anew
  await at.change('forget');
  assert.equal(await same(), 60);
  await at.container.item('o17', 'big').delete();
  assert.equal(await same(), 59);
  await until(async () => !(await own.read()).resource.orrery?.followed, 'it is followed no more');
});

test('a container of its own has views too, of what it shows; a view of both has the rows of either', async (t) => {
  const at = await placed(t);
  await at.database.containers.create({ id: 'big-own', partitionKey: '/tenant' });
  const own = at.database.container('big-own');
  const { container: view } = await at.database.containers.create(rows('of-own', ['big-own']));
  const { container: sums } = await at.database.containers.create(groups('sums', ['big-own']));
  assert.equal((await at.container.read()).resource.orrery?.followed, undefined);
  const same = async () => { const n = await rowsEqual(view, own); await groupsEqual(sums, own); return n; };
  assert.equal(await same(), 0);
  await at.promote();
  assert.equal((await at.container.read()).resource.orrery?.followed, true);
  assert.equal(await same(), 30);
  await at.container.item('o1', 'big').replace(order(1, { total: 1000 }));
  await at.container.item('o3', 'big').delete();
  await at.container.items.create(order(2, { id: 'other' }));
  await own.items.create(order(101));
  assert.equal(await same(), 30);

  const { container: both } = await at.database.containers.create(rows('of-both', ['orders', 'big-own']));
  assert.equal(await rowsEqual(both, at.container, own), 61 + 30, 'two names, two rows');
  await own.item('o5', 'big').delete();
  await at.container.item('o7', 'big').replace(order(7, { total: 7000 }));
  assert.equal(await rowsEqual(both, at.container, own), 60 + 29);

  await at.change('end');
  assert.equal(await rowsEqual(both, at.container, own), 31 + 29);
  assert.equal(await same(), 29);
  await own.item('o9', 'big').delete();
  await at.change('demote');
  assert.equal(await rowsEqual(both, at.container, own), 59 + 28);
  await at.container.item('o11', 'big').delete();
  assert.equal(await same(), 27);
  await at.change('end');
  assert.equal(await same(), 0, 'the key has left it');
  assert.equal(await rowsEqual(both, at.container, own), 58);
  assert.equal(await rebuilds(at, 'of-both'), 0);
});

test('queries that a view answers are those of what the source shows', async (t) => {
  const at = await shop(t, {}, { args: ['--set', 'migration.pause_ms=20ms'], create: { offerThroughput: 20000 } });
  Object.assign(at, promoting(at.send));
  for (let i = 0; i < 60; i++) await at.container.items.create(order(i));
  const { container: view } = await at.database.containers.create(rows('by-email', ['orders']));
  await rowsEqual(view, at.container);
  const ask = async (useViews) => {
    const got = await at.send('POST', at.docs, {
      body: { query: 'SELECT VALUE c.id FROM c WHERE c.email = "e1@x"' },
      headers: {
        'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true',
        'x-ms-consistency-level': 'Session', ...(useViews ? {} : { 'x-orrery-use-views': 'false' }),
      },
    });
    assert.equal(got.status, 200, got.text);
    return [got.json.Documents.sort(), got.headers.get?.('x-orrery-view') ?? got.headers['x-orrery-view']];
  };
  const check = async () => {
    for (let i = 0; i < 10; i++) assert.deepEqual((await ask(true))[0], (await ask(false))[0]);
  };
  await until(async () => (await ask(true))[1] === 'by-email', 'the view answers');
  await at.promote();
  const own = at.database.container('big-own');
  for (const [what, through] of [[null, own], ['end', null], ['demote', own], ['end', null]]) {
    if (what) await at.change(what);
    await check(); // at once: a view that has not seen the change does not answer
    if (through) await through.item('o1', 'big').replace(order(1, { email: what ? 'e1@x' : 'gone@x' }));
    await check();
    await until(async () => (await ask(true))[1] === 'by-email', 'the view answers again');
    await check();
  }
});

test('what cannot be had is refused by name, with the way out', async (t) => {
  const at = await placed(t);
  const { container: view } = await at.database.containers.create(rows('by-email', ['orders']));
  await rowsEqual(view, at.container);
  const ofView = await at.send('POST', path('by-email'), { body: { partitionKey: ['e1@x'], to: 'own' } });
  assert.equal(ofView.status, 409, ofView.text);
  assert.match(ofView.json.message, /it is a view.*WHERE/);
  const toView = await at.send('POST', path(), { body: { partitionKey: ['big'], to: 'by-email' } });
  assert.equal(toView.status, 409, toView.text);
  assert.match(toView.json.message, /it is a view/);
  await view.delete();
  await until(async () => !(await at.container.read()).resource.orrery?.followed);

  // while two containers have one partition it cannot be begun to note what is written to it
  await at.promote();
  for (const source of ['orders', 'big-own'])
    await assert.rejects(at.database.containers.create(rows('late', [source])), (error) => {
      assert.equal(error.code, 400);
      assert.match(error.message, /served by two containers: end the grace period/);
      return true;
    });
  const spare = await at.database.containers.create({ id: 'spare', partitionKey: '/tenant' });
  const { container: ofSpare } = await at.database.containers.create(rows('of-spare', ['spare']));
  const bound = await at.send('POST', path(), { body: { partitionKey: ['t0'], to: 'spare' } });
  assert.equal(bound.status, 409, bound.text);
  assert.match(bound.json.message, /another key of container "orders" is served by two: end the grace period/);
  await ofSpare.delete();
  await spare.container.delete();

  // behind the end it can
  await at.change('end');
  const { container: late } = await at.database.containers.create(rows('late', ['orders']));
  const own = at.database.container('big-own');
  assert.equal((await own.read()).resource.orrery?.followed, true);
  assert.equal(await rowsEqual(late, at.container), 30);
  await at.change('demote');
  await own.item('o1', 'big').delete();
  assert.equal(await rowsEqual(late, at.container), 59);

  // a view that is dropped in a grace period is forgotten when that is over
  await late.delete();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal((await at.container.read()).resource.orrery?.followed, true);
  await own.items.create(order(201)); // both still write
  await at.container.items.create(order(203));
  await at.change('end');
  await until(async () => !(await at.container.read()).resource.orrery?.followed && !(await own.read()).resource.orrery?.followed);
  const { container: again } = await at.database.containers.create(groups('again', ['orders']));
  await groupsEqual(again, at.container);

  // the items of a key that went with its container are in no view
  await at.change('forget');
  await own.delete();
  await at.promote(['big'], 'own2');
  await groupsEqual(again, at.container);
  await at.change('end');
  await at.database.container('own2').delete();
  await groupsEqual(again, at.container);
  await at.change('forget');
  await at.container.items.create(order(301));
  await groupsEqual(again, at.container);
});

// Somebody who writes to the key through one of the two names; refused where the key is elsewhere.
function writer(container, seed) {
  let n = 0, stopping = false;
  const done = (async () => {
    while (!stopping) {
      const i = (seed * 7919 + n * 104729) % 40;
      const id = `w${i}`;
      const item = { id, tenant: 'big', email: `e${(n * 31) % 7}@x`, total: n };
      const what = n % 5 === 4 ? container.item(id, 'big').delete() : container.items.upsert(item);
      await what.catch((error) => { if (![404, 403, 429, 409].includes(error.code)) throw error; });
      n++;
    }
  })();
  done.catch(() => 0);
  return { count: () => n, stop: async () => { stopping = true; await done; } };
}

test('kill -9 between and within the steps of promotions, with writers through both names', async (t) => {
  const directory = scratch(t);
  const args = ['--dev', '--node', `local=rocksdb:${directory}/store`, '--set', 'migration.pause_ms=20ms'];
  let server = await Server.start(t, args);
  const connect = () => {
    const client = new CosmosClient({
      endpoint: server.url, key: emulatorKey, connectionPolicy: { requestTimeout: 30_000, retryOptions: { maxRetryAttemptCount: 0 } },
    });
    t.after(() => client.dispose());
    return client.database('shop');
  };
  const send = (method, at, options = {}) => signed(server, method, at, options);
  const first = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => first.dispose());
  const { database } = await first.databases.create({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  await database.containers.create({ id: 'big-own', partitionKey: '/tenant' });
  for (let i = 0; i < 300; i++) await database.container('orders').items.create(order(i));
  await database.containers.create(rows('by-email', ['orders']));
  await database.containers.create(groups('sums', ['orders']));
  await database.containers.create(rows('of-own', ['big-own']));
  const { change, promote } = promoting(send);
  const check = async () => {
    const now = connect();
    await rowsEqual(now.container('by-email'), now.container('orders'));
    await groupsEqual(now.container('sums'), now.container('orders'));
    await rowsEqual(now.container('of-own'), now.container('big-own'));
  };
  await check();
  const steps = [() => promote(), () => change('end'), () => change('demote'), () => change('end'), () => change('forget')];
  for (let life = 0; life < steps.length; life++) {
    const now = connect();
    const writers = [writer(now.container('orders'), life)];
    if (life) writers.push(writer(now.container('big-own'), life + 50)); // before, it is one that nobody ever wrote to
    await until(() => writers.every((one) => one.count() > 20));
    await steps[life]();
    if (!life) writers.push(writer(now.container('big-own'), 50));
    await new Promise((resolve) => setTimeout(resolve, life % 2 ? 0 : 15)); // the views are at it, or have not begun
    for (const one of writers) one.stop().catch(() => 0);
    await server.stop('SIGKILL');
    server = await Server.start(t, args);
    await check();
  }
});
