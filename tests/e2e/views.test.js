// Views: containers that the server keeps from others by a query, whatever happens to either.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { MongoClient } from 'mongodb';
import { Server, emulatorKey, scratch } from './server.js';
import { shop } from './items.js';

async function until(what, why = 'waited in vain', limitMs = 120_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, why);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const all = async (container) => (await container.items.query('SELECT * FROM c').fetchAll()).resources;
const bare = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !/^_(rid|self|etag|attachments|ts)$/.test(name)));
const sorted = (items) => items.map((item) => JSON.stringify(bare(item))).sort();
const order = (i, more = {}) => ({ id: `o${i}`, tenant: `t${i % 5}`, email: `e${i % 7}@x`, total: i, open: i % 3 === 0, ...more });

// What a view by `SELECT c.id, c.email, c.total` has of a source: its rid is the view's id.
const projected = (items, keep = () => true) =>
  items.filter(keep).map(({ _rid, id, email, total }) => JSON.stringify(Object.fromEntries(
    Object.entries({ id: _rid, _id: id, email, total }).filter(([, value]) => value !== undefined)))).sort();

const seen = async (view) => (await all(view)).map(({ id, _id, email, total }) => JSON.stringify({ id, _id, email, total })).sort();

async function equals(source, view, keep) {
  let now, wanted;
  await until(async () => {
    wanted = projected(await all(source), keep);
    now = await seen(view);
    return JSON.stringify(now) === JSON.stringify(wanted);
  }).catch(() => assert.deepEqual(now, wanted));
}

const byEmail = (definition = {}) => ({
  id: 'by-email',
  partitionKey: { paths: ['/email'], version: 2 },
  materializedViewDefinition: { sourceCollectionId: 'orders', definition: 'SELECT c.id, c.email, c.total FROM c' },
  ...definition,
});

const active = (container) => until(async () => {
  const { resource } = await container.read();
  const said = resource.materializedViewDefinition ?? resource.globalSecondaryIndexDefinition ?? resource.orrery.view;
  return said.status === 'Active' && resource;
}, 'the view is not active');

test('a view has what is there, and follows creates, replaces, patches, moves of its key and deletes', async (t) => {
  const at = await shop(t);
  for (let i = 0; i < 40; i++) await at.container.items.create(order(i));
  const { container: view, resource } = await at.database.containers.create(byEmail());
  const said = resource.materializedViewDefinition;
  assert.equal(said.sourceCollectionId, 'orders');
  assert.equal(said.sourceCollectionRid, at.resource._rid);
  assert.equal(said.definition, 'SELECT c.id, c.email, c.total FROM c');
  assert.equal(said.status, 'Initializing');
  await active(view);
  await equals(at.container, view);

  await at.container.items.create(order(100));
  await at.container.item('o1', 't1').replace(order(1, { total: -1 }));
  await at.container.item('o2', 't2').patch([{ op: 'incr', path: '/total', value: 1000 }]);
  await at.container.item('o3', 't3').replace(order(3, { email: 'moved@x' }));
  await at.container.item('o4', 't4').delete();
  await at.container.item('o5', 't0').delete();
  await at.container.items.create(order(5, { total: 55 })); // another item by the same name
  await at.container.items.create({ id: 'none', tenant: 't9' }); // no value for the view's key
  await at.container.items.create(order(6, { tenant: 'twin' })); // another o6, of another tenant
  await equals(at.container, view);
  const moved = await view.items.query({ query: 'SELECT c._id, c.total FROM c' }, { partitionKey: 'moved@x' }).fetchAll();
  assert.deepEqual(moved.resources, [{ _id: 'o3', total: 3 }]);
  const source = (await at.container.item('o3', 't3').read()).resource;
  const read = await view.item(source._rid, 'moved@x').read();
  assert.deepEqual(bare(read.resource), { id: source._rid, _id: 'o3', email: 'moved@x', total: 3 });
  await until(async () => (await view.item(source._rid, 'moved@x').read()).headers['x-orrery-view-lag-ms'] === '0');

  // who waits reads what it has written, by key and by query
  const path = '/dbs/shop/colls/by-email/docs';
  for (let i = 0; i < 20; i++) {
    await at.container.item('o3', 't3').replace(order(3, { email: 'moved@x', total: 1000 + i }));
    const mine = await at.send('GET', `${path}/${source._rid}`, { key: ['moved@x'], headers: { 'x-orrery-view-wait-ms': '5000' } });
    assert.deepEqual([mine.status, mine.json.total], [200, 1000 + i]);
    await at.container.item('o3', 't3').patch([{ op: 'incr', path: '/total', value: 0.5 }]);
    const asked = await at.send('POST', path, {
      key: ['moved@x'], body: { query: 'SELECT VALUE c.total FROM c' },
      headers: { 'x-orrery-view-wait-ms': '5000', 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json' },
    });
    assert.deepEqual(asked.json.Documents, [1000.5 + i]);
  }
  for (const bad of ['-1', '5001', 'soon', ''])
    assert.equal((await at.send('GET', path, { headers: { 'x-orrery-view-wait-ms': bad } })).status, 400, bad);
  const shown = (await at.send('GET', '/_orrery/containers/shop/by-email')).json.view;
  assert.deepEqual([shown.phase, shown.leftOut, shown.rebuilds], ['follow', 0, 0]);
  assert.ok(shown.written >= 40 && shown.removed >= 2, JSON.stringify(shown));
  assert.match(await (await at.server.get('/metrics')).text(), /orrery_view_lag_milliseconds\{[^}]*container="by-email"[^}]*\} \d+/);
});

test('global secondary indexes, orrery.view with a filter, expressions and several sources', async (t) => {
  const at = await shop(t);
  const { container: returns } = await at.database.containers.create({ id: 'returns', partitionKey: '/tenant' });
  for (let i = 0; i < 30; i++) await at.container.items.create(order(i));
  for (let i = 0; i < 10; i++) await returns.items.create(order(i, { total: -i }));
  const { container: gsi } = await at.database.containers.create({
    id: 'gsi', partitionKey: '/email',
    globalSecondaryIndexDefinition: { sourceCollectionId: 'orders', definition: 'SELECT * FROM c' },
  });
  const { container: open } = await at.database.containers.create({
    id: 'open', partitionKey: '/who',
    orrery: { view: { sources: ['orders', 'returns'], query: 'SELECT c.id, UPPER(c.email) AS who, c.total * 2 AS twice FROM c WHERE c.open' } },
  });
  const { resource } = await open.read();
  assert.deepEqual(resource.orrery.view.sources, ['orders', 'returns']);
  assert.equal(resource.orrery.view.rids.length, 2);
  const wanted = async () => [...(await all(at.container)), ...(await all(returns))].filter((item) => item.open)
    .map(({ _rid, id, email, total }) => JSON.stringify({ id: _rid, _id: id, who: email.toUpperCase(), twice: total * 2 })).sort();
  const same = () => until(async () => JSON.stringify(sorted(await all(open))) === JSON.stringify(await wanted()));
  await same();
  await at.container.item('o0', 't0').replace(order(0, { open: false })); // leaves the filter
  await at.container.item('o1', 't1').replace(order(1, { open: true })); // comes in
  await returns.item('o3', 't3').delete();
  await same();
  await until(async () => JSON.stringify(sorted(await all(gsi))) ===
    JSON.stringify((await all(at.container)).map((item) => JSON.stringify({ id: item._rid, _id: item.id, ...Object.fromEntries(Object.entries(bare(item)).filter(([name]) => name !== 'id')) })).sort()));
  assert.equal((await active(gsi)).globalSecondaryIndexDefinition.status, 'Active');

  // a view of a view, and no further
  const { container: second } = await at.database.containers.create({
    id: 'second', partitionKey: '/twice', orrery: { view: { sources: ['open'], query: 'SELECT c.who, c.twice FROM c WHERE c.twice >= 0' } },
  });
  await at.container.item('o6', 't1').delete();
  await until(async () => JSON.stringify(sorted((await all(second)).map(({ who, twice }) => ({ who, twice })))) ===
    JSON.stringify((await wanted()).map(JSON.parse).filter((row) => row.twice >= 0).map(({ who, twice }) => JSON.stringify({ who, twice })).sort()));
  await assert.rejects(at.database.containers.create({
    id: 'third', partitionKey: '/who', orrery: { view: { sources: ['second'], query: 'SELECT * FROM c' } },
  }), /two deep/);
});

test('a view is written by nobody, and what it is kept from is not dropped', async (t) => {
  const at = await shop(t);
  await at.container.items.create(order(1));
  const { container: view } = await at.database.containers.create(byEmail());
  await equals(at.container, view);
  const [row] = await all(view);
  const refused = { code: 403 };
  await assert.rejects(view.items.create({ id: 'x', email: 'e' }), refused);
  await assert.rejects(view.items.upsert({ id: 'x', email: 'e' }), refused);
  await assert.rejects(view.item(row.id, row.email).replace({ ...row, total: 9 }), refused);
  await assert.rejects(view.item(row.id, row.email).patch([{ op: 'set', path: '/total', value: 9 }]), refused);
  await assert.rejects(view.item(row.id, row.email).delete(), refused);
  const bulk = await view.items.bulk([{ operationType: 'Upsert', resourceBody: { id: 'x', email: 'e' }, partitionKey: 'e' }]);
  assert.equal(bulk[0].statusCode, 403);
  await assert.rejects(view.items.batch([{ operationType: 'Create', resourceBody: { id: 'x', email: 'e' } }], 'e'), /is a view/);
  await view.deleteAllItemsForPartitionKey(row.email).catch((err) => assert.equal(err.code, 403));
  const mongo = new MongoClient(at.server.mongo);
  t.after(() => mongo.close());
  await assert.rejects(mongo.db('shop').collection('by-email').insertOne({ id: 'x', email: 'e' }));
  await assert.rejects(mongo.db('shop').collection('by-email').deleteMany({}));
  assert.deepEqual(await seen(view), projected(await all(at.container)));

  const { resource } = await view.read();
  await view.replace(resource); // what was read may be said again
  const { materializedViewDefinition: said, ...left } = resource;
  await view.replace(left); // or left out
  await assert.rejects(view.replace({ ...left, materializedViewDefinition: { ...said, definition: 'SELECT * FROM c' } }), { code: 400 });
  await assert.rejects(at.container.replace({ ...(await at.container.read()).resource, materializedViewDefinition: said }), { code: 400 });
  await assert.rejects(at.container.delete(), (err) => err.code === 409 && /by-email/.test(err.message));
  assert.equal((await at.container.read()).resource.orrery.followed, true);
  await view.delete();
  await until(async () => !(await at.container.read()).resource.orrery, 'it is followed without a view');
  await at.container.delete();
});

test('what cannot be a view is refused by name, and nothing is left of it', async (t) => {
  const at = await shop(t);
  await at.container.items.create(order(1));
  const make = (definition) => at.database.containers.create({ ...byEmail(), ...definition });
  const service = (definition, sourceCollectionId = 'orders') => make({ materializedViewDefinition: { sourceCollectionId, definition } });
  const own = (query, sources = ['orders']) => make({ materializedViewDefinition: undefined, orrery: { view: { sources, query } } });
  const because = (what) => (err) => err.code === 400 && what.test(err.message) || assert.fail(`${err.code} ${err.message}`);
  await assert.rejects(service('SELECT c.id FROM c', 'nobody'), because(/none of that name/));
  await assert.rejects(service('SELECT c.id FROM c', 'by-email'), because(/of itself/));
  await assert.rejects(service('SELEKT'), because(/./));
  await assert.rejects(service('SELECT c.id FROM c WHERE c.open'), because(/WHERE/));
  await assert.rejects(service('SELECT c.id AS x FROM c'), because(/AS/));
  await assert.rejects(service('SELECT c.a.b FROM c'), because(/properties/));
  await assert.rejects(service('SELECT UPPER(c.a) FROM c'), because(/expressions/));
  await assert.rejects(service('SELECT c._ts FROM c'), because(/system property/));
  for (const [query, why] of [
    ['SELECT VALUE c.id FROM c', /VALUE/], ['SELECT DISTINCT c.id FROM c', /DISTINCT/], ['SELECT TOP 1 c.id FROM c', /TOP/],
    ['SELECT c.id FROM c ORDER BY c.id', /ORDER BY/], ['SELECT t FROM c JOIN t IN c.tags', /JOIN/], ['SELECT c.id FROM c OFFSET 0 LIMIT 1', /OFFSET/],
    ['SELECT GetCurrentDateTime() AS now FROM c', /GetCurrentDateTime/], ['SELECT RAND() AS r FROM c', /RAND/], ['SELECT udf.f(c) AS r FROM c', /user-defined/],
    ['SELECT c.id FROM c WHERE c.x = @x', /parameters/], ['SELECT ARRAY(SELECT VALUE t FROM t IN c.tags) AS r FROM c', /subqueries/],
    ['SELECT c.x AS _etag FROM c', /_etag/], ['SELECT c.id FROM c WHERE c._ts > 1', /_ts/],
  ])
    await assert.rejects(own(query), because(why), query);
  for (const [query, why] of [
    ['SELECT COUNT(1) AS n FROM c', /without GROUP BY/], ['SELECT c.tenant, MAKELIST(c.id) AS l FROM c GROUP BY c.tenant', /MAKELIST/],
    ['SELECT c.tenant, MAKESET(c.id) AS l FROM c GROUP BY c.tenant', /MAKESET/], ['SELECT c.tenant, MAX(c._ts) AS l FROM c GROUP BY c.tenant', /_ts/],
    ['SELECT c.tenant, MAX(c.email) AS email FROM c GROUP BY c.tenant', /does not depend on an aggregate/], // the view's key is /email
  ])
    await assert.rejects(own(query), because(why), query);
  await assert.rejects(service('SELECT c.tenant FROM c GROUP BY c.tenant'), because(/GROUP BY/));
  await assert.rejects(own('SELECT * FROM c', []), because(/sources/));
  await assert.rejects(own('SELECT * FROM c', ['orders', 'orders']), because(/each once/));
  await assert.rejects(own('SELECT * FROM c', Array.from({ length: 9 }, (_, i) => `c${i}`)), because(/1 to 8/));
  await assert.rejects(make({ orrery: { view: { sources: ['orders'], query: 'SELECT * FROM c' } } }), because(/twice/));
  await assert.rejects(make({ orrery: { view: { sources: ['orders'], query: 'SELECT * FROM c', more: 1 } }, materializedViewDefinition: undefined }), because(/more/));
  await assert.rejects(make({ defaultTtl: 10 }), because(/defaultTtl/));
  await assert.rejects(make({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/total'] }] } }), because(/unique/));
  await assert.rejects(make({ indexingPolicy: { indexingMode: 'none', automatic: false } }), because(/index/));
  await assert.rejects(make({ materializedViewDefinition: 'SELECT' }), because(/object/));
  await assert.rejects(make({ materializedViewDefinition: { sourceCollectionId: 'orders' } }), because(/definition/));
  assert.deepEqual((await at.database.containers.readAll().fetchAll()).resources.map((c) => c.id), ['orders']);
  for (let i = 0; i < 5; i++) await make({ id: `view${i}` });
  await assert.rejects(make({ id: 'view5' }), because(/5 views/));
});

test('a view is waited for by the session token of a write, and says how far it is in LSNs', async (t) => {
  const at = await shop(t);
  for (let i = 0; i < 20; i++) await at.container.items.create(order(i));
  const { container: view } = await at.database.containers.create(byEmail());
  await at.database.containers.create(totals);
  await active(view);
  const source = (await at.container.item('o3', 't3').read()).resource;
  const path = `/dbs/shop/colls/by-email/docs/${source._rid}`, by = { key: [source.email] };
  for (let i = 0; i < 15; i++) {
    const { headers } = await at.container.item('o3', 't3').replace(order(3, { total: 100 + i }));
    const mine = await at.send('GET', path, { ...by, headers: { 'x-orrery-view-session-token': headers['x-ms-session-token'] } });
    assert.deepEqual([mine.status, mine.json.total], [200, 100 + i], mine.text);
  }
  const { headers } = await at.container.item('o3', 't3').replace(order(3, { total: -1 }));
  const [range] = headers['x-ms-session-token'].split(':');
  const ask = (token, more = {}) => at.send('GET', path, { ...by, headers: { 'x-orrery-view-session-token': token, ...more } });
  assert.equal((await ask('soon')).status, 400);
  assert.equal((await ask(`${range}:-1#1`)).status, 200); // long there
  const ahead = await ask(`${range}:-1#99999999`);
  assert.equal(ahead.status, 404, ahead.text);
  assert.match(ahead.json.message, /which stands at/);
  assert.equal((await ask(headers['x-ms-session-token'], { 'x-orrery-view-wait-ms': '9000' })).status, 400);
  // A hundred that wait, while others are served.
  const groupsOf = async () => (await at.send('GET', '/dbs/shop/colls/totals/docs', { headers: { 'x-orrery-view-wait-ms': '5000' } })).status;
  const waiting = [];
  for (let i = 0; i < 100; i++) {
    const { headers: now } = await at.container.item('o3', 't3').replace(order(3, { total: i }));
    waiting.push(ask(now['x-ms-session-token']).then((answer) => [answer.status, answer.json.total >= i]), groupsOf());
  }
  for (const answer of await Promise.all(waiting)) assert.deepEqual(answer, typeof answer === 'number' ? 200 : [200, true]);
  await until(async () => {
    const { headers: said } = await view.item(source._rid, source.email).read();
    return said['x-orrery-view-lag-ms'] === '0' && said['x-orrery-view-lag-lsn'] === '0';
  });
  const shown = (await at.send('GET', '/_orrery/containers/shop/by-email')).json.view;
  assert.equal(typeof shown.lagLsn, 'number');
  assert.match(await (await at.server.get('/metrics')).text(), /orrery_view_lag_lsn\{[^}]*container="by-email"[^}]*\} \d+/);
});

test('a view with another query is built again under the same name, with groups and without', async (t) => {
  const at = await shop(t);
  for (let i = 0; i < 40; i++) await at.container.items.create(order(i));
  const { container: view } = await at.database.containers.create(totals);
  await groups(at.container, view);
  const put = async (query, sources = ['orders']) => {
    const { resource } = await view.read();
    return view.replace({ ...resource, orrery: { view: { sources, query } } });
  };
  const other = 'SELECT c.email, COUNT(1) AS n, MAX(c.total) AS high FROM c GROUP BY c.email';
  const { resource } = await put(other);
  assert.equal(resource.orrery.view.query, other);
  await at.container.items.create(order(77));
  await groups(at.container, view, { query: other });
  await active(view);
  await put('SELECT c.id, c.email, c.total FROM c WHERE c.total > 5');
  await equals(at.container, view, ({ total }) => total > 5);
  await put(totals.orrery.view.query);
  await at.container.item('o7', 't2').delete();
  await groups(at.container, view);
  const refused = (what) => (err) => err.code === 400 && what.test(err.message) || assert.fail(`${err.code} ${err.message}`);
  await assert.rejects(put('SELECT c.tenant, MAX(c.email) AS email FROM c GROUP BY c.tenant'), refused(/aggregate/));
  await assert.rejects(put('SELECT RAND() AS r FROM c'), refused(/RAND/));
  await assert.rejects(put(other, ['totals']), refused(/sources/));
  assert.equal((await view.read()).resource.orrery.view.query, totals.orrery.view.query);
  const rekey = await at.send('POST', '/_orrery/containers/shop/totals/rekey', { body: { partitionKey: { paths: ['/sum'], version: 2 } } });
  assert.equal(rekey.status, 400, rekey.text);
  assert.match(rekey.json.message, /aggregate/);
  await groups(at.container, view);
});

test('items that expire go from the view too', async (t) => {
  const at = await shop(t, { defaultTtl: -1 }, { args: ['--set', 'caretaker.pause_ms=10ms'] });
  const { container: view } = await at.database.containers.create(byEmail());
  await at.container.items.create(order(1, { ttl: 1 }));
  await at.container.items.create(order(2));
  await until(async () => (await all(view)).some((row) => row._id === 'o2'));
  await until(async () => (await all(view)).length === 1 && (await all(at.container)).length === 1);
  await equals(at.container, view);
});

const totals = {
  id: 'totals', partitionKey: { paths: ['/email'], version: 2 },
  orrery: { view: { sources: ['orders'], query:
    'SELECT c.email, c.tenant, COUNT(1) AS n, SUM(c.total) AS sum, MIN(c.total) AS low, MAX(c.total) AS high, AVG(c.total) AS mean FROM c WHERE c.total >= 0 GROUP BY c.email, c.tenant' } },
};

// The same query, asked of the source; the view's rows have an id besides.
async function groups(source, view, { query } = totals.orrery.view) {
  let now, wanted;
  const rows = (items) => items.map((row) => JSON.stringify(Object.entries(bare(row)).filter(([name]) => name !== 'id').sort())).sort();
  await until(async () => {
    wanted = rows((await source.items.query(query).fetchAll()).resources);
    now = rows(await all(view));
    return JSON.stringify(now) === JSON.stringify(wanted);
  }).catch(() => assert.deepEqual(now, wanted));
  return now;
}

test('a view with GROUP BY counts what is there and what changes, and shows groups alone', async (t) => {
  const at = await shop(t);
  for (let i = 0; i < 60; i++) await at.container.items.create(order(i));
  const { container: view } = await at.database.containers.create(totals);
  const { container: kinds } = await at.database.containers.create({
    id: 'kinds', partitionKey: '/open',
    orrery: { view: { sources: ['orders'], query: 'SELECT c.open, COUNT(c.total) AS n, SUM(c.total) AS sum, MAX(c.mixed) AS m FROM c GROUP BY c.open' } },
  });
  const kindsQuery = { query: 'SELECT c.open, COUNT(c.total) AS n, SUM(c.total) AS sum, MAX(c.mixed) AS m FROM c GROUP BY c.open' };
  await active(view);
  assert.equal((await groups(at.container, view)).length, 35);
  await groups(at.container, kinds, kindsQuery);
  await at.container.item('o1', 't1').replace(order(1, { email: 'e2@x' })); // another group
  await at.container.item('o59', 't4').replace(order(59, { total: 1e6 })); // another greatest
  await at.container.item('o0', 't0').delete(); // the least goes
  await at.container.item('o2', 't2').replace(order(2, { total: 'none' })); // leaves the filter
  await at.container.items.create({ id: 'bare', tenant: 'new', total: 0.1 }); // a group without the view's key
  await at.container.items.create(order(7, { id: 'mixed', total: null, mixed: 'text' }));
  await at.container.item('o3', 't3').patch([{ op: 'add', path: '/mixed', value: 5 }]);
  await at.container.item('o4', 't4').patch([{ op: 'add', path: '/mixed', value: [1] }]); // spoils the greatest
  await groups(at.container, view);
  await groups(at.container, kinds, kindsQuery);
  await at.container.item('mixed', 't2').delete(); // the sum is one of numbers again
  await at.container.item('o4', 't4').patch([{ op: 'remove', path: '/mixed' }]);
  await groups(at.container, kinds, kindsQuery);
  const lone = (await all(view)).find((row) => row.tenant === 'new');
  assert.deepEqual(bare(lone), { id: lone.id, tenant: 'new', n: 1, sum: 0.1, low: 0.1, high: 0.1, mean: 0.1 });
  await at.container.item('bare', 'new').delete();
  await until(async () => !(await all(view)).some((row) => row.tenant === 'new'), 'an empty group stays');

  // Nothing of what is kept beside shows anywhere: not in feeds, not in counts.
  const rows = await all(view);
  assert.equal((await view.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll()).resources[0], rows.length);
  const fed = [];
  for await (const page of view.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() }).getAsyncIterator()) {
    if (page.statusCode === 304) break;
    fed.push(...page.result);
  }
  assert.ok(fed.every((row) => rows.some(({ id }) => id === row.id)));
  await assert.rejects(view.items.upsert({ id: 'x', email: 'e' }), { code: 403 });
  const shown = (await at.send('GET', '/_orrery/containers/shop/totals')).json.view;
  assert.deepEqual([shown.phase, shown.leftOut, shown.rebuilds], ['follow', 0, 0]);
});

test('groups through splits of both sides, a re-key of the view, and a view of groups', async (t) => {
  const at = await shop(t, {}, { args: ['--set', 'migration.pause_ms=20ms'], create: { offerThroughput: 40000 } });
  const { container: view } = await at.database.containers.create(totals, { offerThroughput: 40000 });
  const { container: few } = await at.database.containers.create({
    id: 'few', partitionKey: '/tenant', orrery: { view: { sources: ['totals'], query: 'SELECT c.tenant, SUM(c.n) AS n, MAX(c.high) AS high FROM c GROUP BY c.tenant' } },
  });
  const load = writer(at.container, 11);
  const split = async (id) => {
    const partitions = await migrated(at, id);
    const answer = await at.send('POST', `/_orrery/containers/shop/${id}/partitions/${partitions[0].id}/split`);
    assert.equal(answer.status, 202, answer.text);
    await until(async () => (await migrated(at, id)).length > partitions.length);
  };
  await until(() => load.count() > 100);
  await split('orders');
  await split('totals');
  const wrote = load.count();
  await until(() => load.count() > wrote + 100);
  await load.stop();
  await groups(at.container, view);
  const again = await at.send('POST', '/_orrery/containers/shop/totals/rekey', { body: { partitionKey: { paths: ['/tenant'], version: 2 } } });
  assert.equal(again.status, 202, again.text);
  await until(async () => (await view.read()).resource.partitionKey.paths[0] === '/tenant');
  const client = new CosmosClient({ endpoint: at.server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const anew = client.database('shop').container('totals');
  await at.container.items.upsert(order(999));
  await at.container.item('o999', 't4').replace(order(999, { total: 1 }));
  await groups(at.container, anew);
  await groups(anew, few, { query: 'SELECT c.tenant, SUM(c.n) AS n, MAX(c.high) AS high FROM c GROUP BY c.tenant' });
});

// Writes at random until told to stop; gives what it was refused, which must be nothing.
function writer(container, seed) {
  let stop = false, n = seed, writes = 0;
  const next = () => (n = (n * 1103515245 + 12345) % 2147483648) / 2147483648;
  const running = (async () => {
    while (!stop) {
      const i = Math.floor(next() * 60), tenant = `t${i % 5}`, what = next();
      try {
        if (what < 0.7) await container.items.upsert(order(i, { total: Math.floor(next() * 1000), email: `e${Math.floor(next() * 9)}@x` }), {});
        else await container.item(`o${i}`, tenant).delete();
      } catch (err) {
        if (err.code !== 404) { if (stop) return writes; throw err; }
      }
      writes++;
    }
    return writes;
  })();
  return { stop: () => { stop = true; return running; }, count: () => writes };
}

const migrated = (at, id) => until(async () => {
  const answer = await at.send('GET', `/_orrery/containers/shop/${id}/partitions`);
  return answer.json.partitions && !answer.json.migration && answer.json.partitions;
});

test('splits, merges and re-keys of both sides under writers: the view ends up what the query says', async (t) => {
  const at = await shop(t, {}, { args: ['--set', 'migration.pause_ms=20ms'], create: { offerThroughput: 40000 } });
  const { container: view } = await at.database.containers.create(byEmail(), { offerThroughput: 40000 });
  const load = writer(at.container, 7);
  const split = async (id) => {
    const partitions = await migrated(at, id);
    const answer = await at.send('POST', `/_orrery/containers/shop/${id}/partitions/${partitions[0].id}/split`);
    assert.equal(answer.status, 202, answer.text);
    await until(async () => (await migrated(at, id)).length > partitions.length);
  };
  await until(() => load.count() > 100);
  await split('orders');
  await split('by-email');
  const wrote = load.count();
  await until(() => load.count() > wrote + 100);
  await split('orders');
  await load.stop();
  await equals(at.container, view);
  const rekey = await at.send('POST', '/_orrery/containers/shop/orders/rekey', { body: { partitionKey: { paths: ['/id'], version: 2 } } });
  assert.equal(rekey.status, 202, rekey.text);
  await until(async () => (await at.container.read()).resource.partitionKey.paths[0] === '/id');
  const client = new CosmosClient({ endpoint: at.server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const orders = client.database('shop').container('orders');
  await orders.items.upsert(order(999));
  await orders.item('o999', 'o999').replace(order(999, { total: 1 }));
  for (const item of (await all(orders)).slice(0, 5)) await orders.item(item.id, item.id).delete();
  await equals(orders, view);
  const again = await at.send('POST', '/_orrery/containers/shop/by-email/rekey', { body: { partitionKey: { paths: ['/total'], version: 2 } } });
  assert.equal(again.status, 202, again.text);
  await until(async () => (await view.read()).resource.partitionKey.paths[0] === '/total');
  await orders.item('o999', 'o999').replace(order(999, { total: 2 }));
  await equals(orders, client.database('shop').container('by-email'));
});

test('kill -9 at any moment: what was acknowledged is in the view, once', async (t) => {
  const directory = scratch(t);
  const args = ['--dev', '--node', `local=rocksdb:${directory}/store`];
  let server = await Server.start(t, args);
  // One attempt each: what was in flight when the server was killed is not asked again.
  const connect = () => {
    const client = new CosmosClient({
      endpoint: server.url, key: emulatorKey, connectionPolicy: { requestTimeout: 30_000, retryOptions: { maxRetryAttemptCount: 0 } },
    });
    t.after(() => client.dispose());
    return client.database('shop');
  };
  const first = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => first.dispose());
  const { database } = await first.databases.create({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  for (let i = 0; i < 60; i++) await database.container('orders').items.create(order(i));
  await database.containers.create(byEmail());
  await database.containers.create(totals);
  for (let life = 0; life < 4; life++) {
    const shopping = connect();
    const load = writer(shopping.container('orders'), 100 + life);
    await until(() => load.count() > 30 * (life + 1));
    load.stop().catch(() => 0); // whatever it hears of its last write
    await server.stop('SIGKILL');
    server = await Server.start(t, args);
    await equals(connect().container('orders'), connect().container('by-email'));
    await groups(connect().container('orders'), connect().container('totals'));
  }
  await active(connect().container('by-email'));
});

test('a view with little throughput falls behind, says so, and gets there; its source is not slowed', async (t) => {
  const at = await shop(t, {}, { create: { offerThroughput: 10000 }, client: { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 1000, maxWaitTimeInSeconds: 600 } } } });
  const { container: view } = await at.database.containers.create(byEmail(), { offerThroughput: 400 });
  await active(view);
  const operations = Array.from({ length: 100 }, (_, i) => ({ operationType: 'Upsert', resourceBody: order(i, { filler: 'x'.repeat(20) }) }));
  for (let round = 0; round < 3; round++)
    for (const answer of await at.container.items.bulk(operations)) assert.ok(answer.statusCode < 300, `${answer.statusCode}`);
  await equals(at.container, view);
});
