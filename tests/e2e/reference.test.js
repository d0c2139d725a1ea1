// Reference containers: small ones whose items any query of the account may join, by key, where it runs.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { MongoClient, ObjectId } from 'mongodb';
import { Server, emulatorKey, scratch } from './server.js';
import { shop } from './items.js';
import { signed } from './rest.js';

async function until(what, why = 'waited in vain', limitMs = 120_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, why);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const reference = { orrery: { reference: true } };
const codes = ['DE', 'FR', 'IT', 'JP', 'BR', 'XX'];
const order = (i, more = {}) => ({ id: `o${i}`, tenant: `t${i % 5}`, country: codes[i % codes.length], total: i, ...more });
const country = (id, region, more = {}) => ({ id, name: `land of ${id}`, region, ...more });
const countries = [country('DE', 'EU'), country('FR', 'EU'), country('IT', 'EU'), country('JP', 'ASIA'), country('BR', 'SA')]; // and no XX
const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();
const all = async (container, query, options) => (await container.items.query(query, options).fetchAll()).resources;

// Orders over so many physical partitions, and countries by id and cities by country beside them.
async function world(t, partitions = 1, more = {}) {
  const at = await shop(t, {}, { args: ['--set', 'partition.ru_max=1000', ...(more.args ?? [])], create: { offerThroughput: 1000 * partitions } });
  const { container: lands } = await at.database.containers.create({ id: 'countries', partitionKey: '/id', ...reference });
  const { container: cities } = await at.database.containers.create({ id: 'cities', partitionKey: '/country', ...reference });
  for (const land of countries) await lands.items.create(land);
  for (const [id, of] of [['berlin', 'DE'], ['bonn', 'DE'], ['paris', 'FR'], ['tokyo', 'JP']]) await cities.items.create({ id, country: of });
  for (let i = 0; i < 60; i++) await at.container.items.create(order(i));
  const ask = (query, headers = {}, key) => at.send('POST', at.docs, {
    key, body: typeof query === 'string' ? { query } : query,
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers },
  });
  return { ...at, lands, cities, ask };
}

const byId = 'JOIN r IN REFERENCE("countries") WHERE r.id = c.country';
const landOf = (id, lands = countries) => lands.find((land) => land.id === id);
const orders = Array.from({ length: 60 }, (_, i) => order(i));

for (const partitions of [1, 8])
  test(`rows are joined by key with the vendor's client over ${partitions} partition(s)`, async (t) => {
    const { container, cities } = await world(t, partitions);
    const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(ranges.length, partitions);
    const joined = orders.filter((o) => landOf(o.country));
    assert.deepEqual(sorted(await all(container, `SELECT c.id, r.name FROM c ${byId}`)),
      sorted(joined.map((o) => ({ id: o.id, name: landOf(o.country).name }))));
    // the other way round, with a condition on either side, in pages of three
    assert.deepEqual(sorted(await all(container, { query: `SELECT c.id, r.region FROM c JOIN r IN REFERENCE("countries") WHERE c.country = r.id AND r.region = @region AND c.total > 10`, parameters: [{ name: '@region', value: 'EU' }] }, { maxItemCount: 3 })),
      sorted(joined.filter((o) => o.total > 10 && landOf(o.country).region === 'EU').map((o) => ({ id: o.id, region: 'EU' }))));
    // in an order
    const names = (await all(container, `SELECT c.total, r.name FROM c ${byId} AND c.total < 30 ORDER BY c.total DESC`, { maxItemCount: 7 }));
    assert.deepEqual(names, joined.filter((o) => o.total < 30).sort((a, b) => b.total - a.total).map((o) => ({ total: o.total, name: landOf(o.country).name })));
    // groups of what was joined, and sums
    const groups = {};
    for (const o of joined) groups[landOf(o.country).region] = (groups[landOf(o.country).region] ?? 0) + o.total;
    assert.deepEqual(sorted(await all(container, `SELECT r.region, SUM(c.total) AS total FROM c ${byId} GROUP BY r.region`)),
      sorted(Object.entries(groups).map(([region, total]) => ({ region, total }))));
    assert.deepEqual(await all(container, `SELECT VALUE COUNT(1) FROM c ${byId}`), [joined.length]);
    assert.deepEqual((await all(container, `SELECT DISTINCT VALUE r.region FROM c ${byId}`)).sort(), ['ASIA', 'EU', 'SA']);
    // several items of one key, one of them by its id, and two containers at once
    assert.deepEqual(sorted(await all(container, 'SELECT c.id, t.id AS city FROM c JOIN t IN REFERENCE("cities") WHERE t.country = c.country AND c.total < 8')),
      sorted(orders.slice(0, 8).flatMap((o) => ({ DE: ['berlin', 'bonn'], FR: ['paris'], JP: ['tokyo'] }[o.country] ?? []).map((city) => ({ id: o.id, city })))));
    assert.deepEqual(sorted(await all(container, 'SELECT c.id, t.id AS city FROM c JOIN t IN REFERENCE("cities") WHERE t.country = c.country AND t.id = "bonn" AND c.total < 8')),
      sorted([{ id: 'o0', city: 'bonn' }, { id: 'o6', city: 'bonn' }]));
    assert.deepEqual(sorted(await all(container, 'SELECT c.id, r.name, t.id AS city FROM c JOIN r IN REFERENCE("countries") JOIN t IN REFERENCE("shop", "cities") WHERE r.id = c.country AND t.country = r.id AND c.total = 1')),
      sorted([{ id: 'o1', name: 'land of FR', city: 'paris' }]));
    // those that have none, by a subquery
    assert.deepEqual(sorted(await all(container, 'SELECT VALUE c.id FROM c WHERE NOT EXISTS(SELECT VALUE r FROM r IN REFERENCE("countries") WHERE r.id = c.country)')),
      sorted(orders.filter((o) => !landOf(o.country)).map((o) => o.id)));
    assert.deepEqual(await all(container, 'SELECT c.id, ARRAY(SELECT VALUE t.id FROM t IN REFERENCE("cities") WHERE t.country = c.country) AS cities FROM c WHERE c.id = "o0" AND c.tenant = "t0"'),
      [{ id: 'o0', cities: ['berlin', 'bonn'] }]);
    // one logical partition, and whole items with what the server adds
    const [whole] = await all(container, `SELECT VALUE r FROM c ${byId} AND c.id = "o5" OR false`, { partitionKey: 't0' }).catch(() => [null]);
    assert.equal(whole, null); // the equality is not joined by AND: refused
    const [row] = await all(container, `SELECT VALUE r FROM c ${byId} AND c.id = "o15"`, { partitionKey: 't0' });
    assert.equal(row.id, 'JP');
    assert.ok(row._rid && row._etag && row._ts);
    await cities.item('bonn', 'DE').delete();
    assert.deepEqual(await all(container, 'SELECT VALUE t.id FROM c JOIN t IN REFERENCE("cities") WHERE t.country = c.country AND c.id = "o0"', { partitionKey: 't0' }), ['berlin']);
  });

test('what was written is joined at once, the age of the copy is told, explained and charged', async (t) => {
  const { lands, ask } = await world(t, 2);
  const one = { query: `SELECT VALUE r.name FROM c ${byId} AND c.id = "o0"` };
  for (let i = 0; i < 10; i++) {
    await lands.items.upsert(country('DE', 'EU', { name: `name ${i}` }));
    const answer = await ask(one, {}, ['t0']);
    assert.deepEqual([answer.status, answer.json.Documents, answer.headers['x-orrery-reference-lag-ms']], [200, [`name ${i}`], '0']);
  }
  await lands.item('DE', 'DE').delete();
  assert.deepEqual((await ask(one, {}, ['t0'])).json.Documents, []);
  await lands.items.create(country('DE', 'EU'));
  const charge = (answer) => Number(answer.headers['x-ms-request-charge']);
  const filled = await ask(one, {}, ['t0']), kept = await ask(one, {}, ['t0']);
  assert.ok(charge(filled) > charge(kept) + 1, `${charge(filled)} ${charge(kept)}`); // who finds it out of date pays for the next
  const many = { query: `SELECT VALUE r.name FROM c ${byId}` };
  const twice = await ask({ query: `SELECT VALUE r.name FROM c JOIN q IN REFERENCE("countries") ${byId} AND q.id = c.country` });
  assert.equal(twice.json.Documents.length, 50);
  assert.ok(charge(twice) >= charge(await ask(many)) + 0.25, `joined rows are paid for: ${charge(twice)}`); // 50 of 0.005 RU, and their bytes
  const explained = await ask(many, { 'x-orrery-explain': 'true' });
  assert.deepEqual(explained.json._explain.references.joins, [{ container: 'countries', key: ['/id'] }]);
  assert.equal(explained.json._explain.references.items, 50);
  assert.equal((await ask('SELECT VALUE c.id FROM c')).headers['x-orrery-reference-lag-ms'], undefined);
});

test('what cannot be joined is refused by name', async (t) => {
  const { ask, database, container } = await world(t);
  await database.containers.create({ id: 'plain', partitionKey: '/id' });
  await database.containers.create({ id: 'tree', partitionKey: { paths: ['/a', '/b/c'], kind: 'MultiHash', version: 2 }, ...reference });
  for (const [query, why] of [
    ['SELECT r FROM c JOIN r IN REFERENCE("nobody") WHERE r.id = c.country', /\\"nobody\\" does not exist/],
    ['SELECT r FROM c JOIN r IN REFERENCE("nowhere", "countries") WHERE r.id = c.country', /does not exist/],
    ['SELECT r FROM c JOIN r IN REFERENCE("plain") WHERE r.id = c.country', /no reference container/],
    ['SELECT r FROM c JOIN r IN REFERENCE("orders") WHERE r.tenant = c.tenant', /no reference container/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries")', /needs an equality of r\/id/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries") WHERE r.name = c.country', /needs an equality of r\/id/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries") WHERE r.id = c.country OR c.total = 1', /needs an equality/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries") WHERE r.id != c.country', /needs an equality/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries") WHERE r.id = r.name', /needs an equality/],
    ['SELECT r FROM c JOIN r IN REFERENCE("countries") JOIN x IN c.tags WHERE r.id = x', /needs an equality/],
    ['SELECT r FROM c JOIN r IN REFERENCE("cities") WHERE r.id = c.country', /r\/country/],
    ['SELECT r FROM c JOIN r IN REFERENCE("tree") WHERE r.a = c.country', /r\/b\/c/],
    ['SELECT * FROM r IN REFERENCE("countries") WHERE r.id = "DE"', /can only be joined/],
    ['SELECT r FROM c JOIN r IN REFERENCE() WHERE r.id = c.country', /SC1001/],
    ['SELECT r FROM c JOIN r IN REFERENCE(c.country) WHERE r.id = c.country', /SC1001/],
    ['SELECT r FROM c JOIN r IN REFERENCE("") WHERE r.id = c.country', /SC1001/],
    ['SELECT r FROM c JOIN r IN REFERENCE("a", "b", "c") WHERE r.id = c.country', /./],
    [`SELECT c.id FROM c ${Array.from({ length: 11 }, (_, i) => `JOIN r${i} IN REFERENCE("countries")`).join(' ')} WHERE ${Array.from({ length: 11 }, (_, i) => `r${i}.id = c.country`).join(' AND ')}`, /./],
  ]) {
    const answer = await ask(query);
    assert.equal(answer.status, 400, `${query}: ${answer.text}`);
    assert.match(answer.text, why, query);
  }
  // an alias of that name is one as before
  const named = await ask('SELECT VALUE COUNT(1) FROM c JOIN x IN reference JOIN y IN c.tags WHERE IS_DEFINED(c.id)');
  assert.equal(named.status, 400);
  assert.deepEqual((await ask('SELECT VALUE reference.id FROM reference WHERE reference.id = "o1"')).json.Documents, ['o1']);
  // views, procedures and conditions know no other container
  await assert.rejects(database.containers.create({ id: 'v', partitionKey: '/id', orrery: { view: { sources: ['orders'], query: 'SELECT c.id FROM c WHERE EXISTS(SELECT VALUE r FROM r IN REFERENCE("countries") WHERE r.id = c.country)' } } }), { code: 400 });
  await assert.rejects(container.item('o1', 't1').patch({ condition: `from c WHERE EXISTS(SELECT VALUE r FROM r IN REFERENCE("countries") WHERE r.id = c.country)`, operations: [{ op: 'set', path: '/x', value: 1 }] }), { code: 400 });
});

test('a definition says it, keeps it, takes it back, and refuses what does not fit', async (t) => {
  const { database, lands, container, ask } = await world(t);
  const { resource } = await lands.read();
  assert.deepEqual(resource.orrery, { reference: true });
  const { orrery, ...left } = resource;
  assert.deepEqual((await lands.replace({ ...left, indexingPolicy: resource.indexingPolicy })).resource.orrery, { reference: true });
  assert.deepEqual((await lands.replace({ ...left, orrery: {} })).resource.orrery, { reference: true });
  await lands.replace({ ...left, orrery: { reference: false } });
  assert.equal((await ask(`SELECT r FROM c ${byId}`)).status, 400);
  await lands.replace({ ...left, orrery: { reference: true } });
  assert.equal((await ask(`SELECT r FROM c ${byId}`)).status, 200);
  for (const [definition, why] of [
    [{ orrery: { reference: 1 } }, /true or false/],
    [{ ...reference, defaultTtl: -1 }, /defaultTtl/],
    [{ orrery: { reference: true, synthetic: { kind: 'suffix', suffixes: 4 } }, partitionKey: '/pk' }, /./],
    [{ orrery: { reference: true, view: { sources: ['orders'], query: 'SELECT * FROM c' } } }, /view/],
  ])
    await assert.rejects(database.containers.create({ id: 'bad', partitionKey: '/id', ...definition }), (err) => err.code === 400 && why.test(err.message) || assert.fail(`${err.code} ${err.message}`));
  await assert.rejects(lands.replace({ ...left, defaultTtl: 60, ...reference }), { code: 400 });
  assert.equal((await database.containers.readAll().fetchAll()).resources.length, 3);
  assert.equal((await container.read()).resource.orrery, undefined);
});

test('a reference container is small: larger writes and larger containers are refused by name', async (t) => {
  const { database, lands, container, ask } = await world(t, 1, { args: ['--set', 'reference.bytes_max=4K'] });
  const large = country('ZZ', 'EU', { text: 'x'.repeat(4096) });
  await assert.rejects(lands.items.create(large), (err) => err.code === 403 && /reference container/.test(err.message));
  let made = 0;
  const full = await until(async () => lands.items.create(country(`A${made++}`, 'EU', { text: 'x'.repeat(200) })).then(() => null, (err) => err));
  assert.equal(full.code, 403);
  assert.match(full.message, /reference container holds \d+ bytes and \d+ more would pass its limit of 4096, an equal part of reference\.bytes_max/);
  assert.ok(made > 3 && made < 30);
  assert.equal((await ask(`SELECT r.id FROM c ${byId}`)).status, 200);
  await lands.item('A0', 'A0').delete(); // there is room again
  await lands.items.create(country('A0', 'EU'));
  const { resource } = await container.read();
  await assert.rejects(container.replace({ ...resource, ...reference }), (err) => err.code === 403 && /"orders" holds \d+ bytes.*reference\.bytes_max/.test(err.message) || assert.fail(err.message));
  assert.equal((await container.read()).resource.orrery, undefined);
  await container.items.create(order(1000, { text: 'x'.repeat(5000) })); // others are as large as they like
});

test('every container needs the right of who asks', async (t) => {
  const { server, database, ask } = await world(t);
  const { user } = await database.users.create({ id: 'ann' });
  const grant = async (id, resource, key) => (await user.permissions.create({ id, permissionMode: 'Read', resource, ...(key ? { resourcePartitionKey: [key] } : {}) })).resource._token;
  const query = (path, token, text, key) => signed(server, 'POST', path, {
    authorization: encodeURIComponent(token), body: { query: text },
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true',
      ...(key ? { 'x-ms-documentdb-partitionkey': JSON.stringify([key]) } : {}) },
  });
  const join = `SELECT c.id, r.name FROM c ${byId}`;
  const source = await grant('source', 'dbs/shop/colls/orders');
  assert.equal((await query('/dbs/shop/colls/orders/docs', source, 'SELECT c.id FROM c')).status, 200);
  const refused = await query('/dbs/shop/colls/orders/docs', source, join);
  assert.equal(refused.status, 403, refused.text);
  // whether there is a container of that name is not told either
  const nobody = await query('/dbs/shop/colls/orders/docs', source, join.replace('countries', 'nobody'));
  assert.deepEqual([nobody.status, nobody.json.message.replace(/ActivityId.*/s, '')], [403, refused.json.message.replace(/ActivityId.*/s, '')]);
  const hidden = await query('/dbs/shop/colls/orders/docs', source, 'SELECT c.id FROM c WHERE EXISTS(SELECT VALUE r FROM r IN REFERENCE("countries") WHERE r.id = c.country)');
  assert.equal(hidden.status, 403);
  // its own container may be joined with itself, but not by who is bound to a key
  const own = await grant('own', 'dbs/shop/colls/cities');
  const itself = 'SELECT c.id, r.id AS other FROM c JOIN r IN REFERENCE("cities") WHERE r.country = c.country AND c.id = "paris"';
  assert.deepEqual((await query('/dbs/shop/colls/cities/docs', own, itself)).json.Documents, [{ id: 'paris', other: 'paris' }]);
  const bound = await grant('bound', 'dbs/shop/colls/cities', 'DE');
  assert.equal((await query('/dbs/shop/colls/cities/docs', bound, 'SELECT c.id FROM c', 'DE')).status, 200);
  assert.equal((await query('/dbs/shop/colls/cities/docs', bound, 'SELECT r.id FROM c JOIN r IN REFERENCE("cities") WHERE r.country = "FR"', 'DE')).status, 403);
  assert.equal((await ask(join)).status, 200);
});

test('joins equal the query from scratch through random writes, splits of both sides, a re-key and a restart', async (t) => {
  const data = scratch(t);
  const args = ['--dev', '--node', `a=rocksdb:${data}`, '--set', 'partition.ru_max=1000'];
  let server = await Server.start(t, args), client;
  const open = () => { client = new CosmosClient({ endpoint: server.url, key: emulatorKey }); t.after(() => client.dispose()); };
  open();
  const { database } = await client.databases.create({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: '/tenant' }, { offerThroughput: 4000 });
  await database.containers.create({ id: 'items', partitionKey: '/group', ...reference });
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const source = () => client.database('shop').container('orders'), home = () => client.database('shop').container('items');
  const rows = new Map(), items = new Map(); // the model
  const key = (item) => `${item.group}/${item.id}`;
  const change = async () => {
    const i = random(40);
    if (random(2)) {
      const row = { id: `r${i}`, tenant: `t${i % 7}`, group: [1, 1.5, 'a', 'b', true, null][random(6)], pick: `i${random(4)}` };
      if (random(8) === 0) { await source().item(row.id, row.tenant).delete().catch((err) => assert.equal(err.code, 404)); rows.delete(row.id); }
      else { await source().items.upsert(row); rows.set(row.id, row); }
    } else {
      const item = { id: `i${random(4)}`, group: [1, 1.5, 'a', 'b', true, null, undefined][random(7)], value: random(1000) };
      if (random(4) === 0) { await home().item(item.id, item.group).delete().catch((err) => assert.equal(err.code, 404)); items.delete(key(item)); }
      else { await home().items.upsert(item); items.set(key(item), item); }
    }
  };
  const same = (a, b) => a !== undefined && b !== undefined && typeof a === typeof b && a === b;
  const compare = async () => {
    const pairs = (fit) => sorted([...rows.values()].flatMap((row) => [...items.values()].filter((item) => same(row.group, item.group) && fit(row, item)).map((item) => ({ id: row.id, item: item.id, value: item.value }))));
    const join = 'SELECT c.id, r.id AS item, r.value FROM c JOIN r IN REFERENCE("items") WHERE r.group = c.group';
    assert.deepEqual(sorted(await all(source(), join, { maxItemCount: 5 })), pairs(() => true));
    assert.deepEqual(sorted(await all(source(), `${join} AND c.pick = r.id`)), pairs((row, item) => row.pick === item.id));
    assert.deepEqual(sorted(await all(source(), `${join} AND r.value > 500`)), pairs((row, item) => item.value > 500));
  };
  const split = async (id) => {
    const { partitions } = (await signed(server, 'GET', `/_orrery/containers/shop/${id}/partitions`)).json;
    const answer = await signed(server, 'POST', `/_orrery/containers/shop/${id}/partitions/${partitions[0].id}/split`);
    assert.equal(answer.status, 202, answer.text);
    await until(async () => (await signed(server, 'GET', `/_orrery/containers/shop/${id}/partitions`)).json.partitions.length > partitions.length);
  };
  const steps = async (count) => { for (let i = 0; i < count; i++) { await change(); if (i % 10 === 9) await compare(); } };
  await steps(60);
  await split('items');
  await compare();
  await steps(20);
  await split('orders');
  await steps(20);
  await server.stop('SIGKILL');
  server = await Server.start(t, args);
  open();
  await compare();
  await steps(20);
  // another key: what was joined by the old one is refused, by the new one it is the same
  const rekey = await signed(server, 'POST', '/_orrery/containers/shop/items/rekey', { body: { partitionKey: { paths: ['/id'], version: 2 } } });
  if (rekey.status === 202) {
    await until(async () => (await home().read()).resource.partitionKey.paths[0] === '/id');
    const picked = 'SELECT c.id, r.value FROM c JOIN r IN REFERENCE("items") WHERE r.id = c.pick AND r.group = c.group';
    assert.deepEqual(sorted(await all(source(), picked)), sorted([...rows.values()].flatMap((row) => [...items.values()].filter((item) => same(row.group, item.group) && row.pick === item.id).map((item) => ({ id: row.id, value: item.value })))));
    await assert.rejects(all(source(), 'SELECT c.id FROM c JOIN r IN REFERENCE("items") WHERE r.group = c.group'), { code: 400 });
  } else assert.equal(rekey.status, 400, rekey.text);
});

test('a collection of MongoDB is joined by _id, and $lookup reads a reference container as it is', async (t) => {
  const at = await shop(t);
  const mongo = new MongoClient(at.server.mongo);
  t.after(() => mongo.close());
  const lands = mongo.db('shop').collection('lands');
  await lands.insertMany([{ _id: 'DE', name: 'Germany' }, { _id: 'FR', name: 'France' }]);
  const definition = (await at.database.container('lands').read()).resource;
  await at.database.container('lands').replace({ ...definition, orrery: { ...definition.orrery, reference: true } });
  await at.container.items.create({ id: 'o1', tenant: 't', country: 'DE' });
  await at.container.items.create({ id: 'o2', tenant: 't', country: 'XX' });
  const joined = () => all(at.container, 'SELECT c.id, r.name FROM c JOIN r IN REFERENCE("lands") WHERE r._id = c.country', { partitionKey: 't' });
  assert.deepEqual(await joined(), [{ id: 'o1', name: 'Germany' }]);
  const orders = mongo.db('shop').collection('sales');
  await orders.insertMany([{ _id: 1, country: 'DE' }, { _id: 2, country: 'XX' }]);
  const looked = () => orders.aggregate([{ $lookup: { from: 'lands', localField: 'country', foreignField: '_id', as: 'land' } }, { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(await looked(), [{ _id: 1, country: 'DE', land: [{ _id: 'DE', name: 'Germany' }] }, { _id: 2, country: 'XX', land: [] }]);
  const found = async () => Number(/orrery_reference_copies_found_total (\d+)/.exec(await (await at.server.get('/metrics')).text())[1]);
  const before = await found();
  await looked();
  assert.ok(await found() > before, 'it is looked at in its copy');
  // stages within, arrays, what is missing, and from it to itself
  await lands.insertMany([{ _id: 'NL', name: 'Netherlands', beside: ['DE', 'BE'] }, { _id: 'BE', name: 'Belgium', beside: ['NL', 'FR'] }]);
  await orders.insertOne({ _id: 3, country: ['FR', 'BE'] });
  await orders.insertOne({ _id: 4 });
  assert.deepEqual((await looked()).map(({ _id, land }) => [_id, land.map((one) => one._id).sort()]), [[1, ['DE']], [2, []], [3, ['BE', 'FR']], [4, []]]);
  const inner = await orders.aggregate([{ $lookup: { from: 'lands', let: { of: '$country' }, pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$of'] } } }, { $project: { _id: 0, name: { $toUpper: '$name' } } }], as: 'land' } }, { $match: { _id: 1 } }]).toArray();
  assert.deepEqual(inner[0].land, [{ name: 'GERMANY' }]);
  const graph = await orders.aggregate([{ $match: { _id: 3 } }, { $graphLookup: { from: 'lands', startWith: 'NL', connectFromField: 'beside', connectToField: '_id', as: 'way' } }]).toArray();
  assert.deepEqual(graph[0].way.map((one) => one._id).sort(), ['BE', 'DE', 'FR', 'NL']);
  const united = await orders.aggregate([{ $unionWith: { coll: 'lands', pipeline: [{ $match: { name: /^G/ } }] } }, { $match: { name: { $exists: true } } }]).toArray();
  assert.deepEqual(united, [{ _id: 'DE', name: 'Germany' }]);
  // types that JSON lacks
  const id = new ObjectId(), when = new Date(1000);
  await lands.insertOne({ _id: id, name: 'by number', when });
  await orders.insertOne({ _id: 5, country: id });
  assert.deepEqual((await looked())[4].land, [{ _id: id, name: 'by number', when }]);
  for (let i = 0; i < 5; i++) {
    await lands.updateOne({ _id: 'DE' }, { $set: { name: `name ${i}` } });
    assert.deepEqual(await joined(), [{ id: 'o1', name: `name ${i}` }]);
    assert.equal((await looked())[0].land[0].name, `name ${i}`);
  }
  await assert.rejects(lands.insertOne({ _id: 'large', text: 'x'.repeat(5_000_000) }), /reference container|larger|limit/);
});

test('$lookup finds by _id and by the shard key in copies of any number of documents, by the rules of collections', async (t) => {
  const at = await shop(t);
  const mongo = new MongoClient(at.server.mongo);
  t.after(() => mongo.close());
  const db = mongo.db('shop');
  const { Long, Decimal128, Double } = await import('mongodb');
  // the same documents in a reference container, in one that is none, and in both by a shard key
  const odd = [
    { _id: 5, code: 'n5' }, { _id: new Double(7.5), code: 7 }, { _id: Long.fromString('9007199254740993'), code: Decimal128.fromString('8.50') },
    { _id: true, code: true }, { _id: null, code: null }, { _id: new Date(5), code: new Date(5) }, { _id: { a: 1, b: 'x' }, code: { a: 1, b: 'x' } },
    { _id: '', code: '' }, { _id: new ObjectId('0123456789abcdef01234567'), code: new ObjectId('0123456789abcdef01234567') },
  ];
  const many = Array.from({ length: 2500 }, (_, i) => ({ _id: `l${i}`, code: `c${i % 900}`, n: i }));
  for (const [name, key] of [['plain', null], ['lands', null], ['plainSharded', 'code'], ['landsSharded', 'code']]) {
    if (key) await mongo.db('admin').command({ shardCollection: `shop.${name}`, key: { [key]: 'hashed' } });
    await db.collection(name).insertMany([...many, ...odd]);
    if (!name.startsWith('lands')) continue;
    const definition = (await at.database.container(name).read()).resource;
    await at.database.container(name).replace({ ...definition, orrery: { ...definition.orrery, reference: true } });
  }
  const locals = [
    'l3', 'l2499', 'c3', 'c899', 'none', 5, Long.fromNumber(5), new Double(5), Decimal128.fromString('5.0'), 7, Decimal128.fromString('7.5'), 8.5,
    Long.fromString('9007199254740993'), 9007199254740992, true, 1, false, null, new Date(5), 5.5, { a: 1, b: 'x' }, { b: 'x', a: 1 }, '', /l3/,
    new ObjectId('0123456789abcdef01234567'), [], ['l1', 'l2', 'l1'], ['c1', null], [['l1'], 'l4'], [5, '5', { a: 1, b: 'x' }], [[]], NaN,
  ];
  const sales = db.collection('sales');
  await sales.insertMany([...locals.map((of, i) => ({ _id: i, of, in: [{ of }, { of: 'l9' }] })), { _id: 1000 }]);
  const found = async () => Number(/orrery_reference_copies_found_total (\d+)/.exec(await (await at.server.get('/metrics')).text())[1]);
  const key = (one) => JSON.stringify(one._id) + typeof one._id;
  const looked = async (from, localField, foreignField, more = {}, options = {}) =>
    (await sales.aggregate([{ $lookup: { from, localField, foreignField, as: 'found', ...more } }, { $sort: { _id: 1 } }], options).toArray())
      .map(({ _id, found: list }) => [_id, list.sort((a, b) => (key(a) < key(b) ? -1 : 1))]);
  for (const [copied, plain, foreign] of [['lands', 'plain', '_id'], ['lands', 'plain', 'code'], ['landsSharded', 'plainSharded', 'code'], ['landsSharded', 'plainSharded', '_id']])
    for (const local of ['of', 'in.of', 'absent']) {
      const before = await found();
      assert.deepEqual(await looked(copied, local, foreign), await looked(plain, local, foreign), `${copied} ${local} ${foreign}`);
      const inner = { pipeline: [{ $match: { n: { $gte: 2 } } }, { $project: { n: 1 } }, { $sort: { n: -1 } }, { $limit: 2 }] };
      assert.deepEqual(await looked(copied, local, foreign, inner), await looked(plain, local, foreign, inner), `${copied} ${local} ${foreign}, with stages`);
      assert.ok(await found() > before, 'the copy is used');
    }
  const loosely = { collation: { locale: 'en', strength: 2 } };
  await sales.insertOne({ _id: 1001, of: 'L3' });
  assert.deepEqual(await looked('lands', 'of', '_id', {}, loosely), await looked('plain', 'of', '_id', {}, loosely));
  assert.equal((await looked('lands', 'of', '_id', {}, loosely)).at(-1)[1].length, 1);
  await db.collection('lands').updateOne({ _id: 'l3' }, { $set: { n: -1 } });
  assert.equal((await looked('lands', 'of', '_id'))[0][1][0].n, -1, 'as it is now');
  await db.collection('lands').deleteOne({ _id: 'l3' });
  assert.deepEqual((await looked('lands', 'of', '_id'))[0][1], []);
});

test('$lookup by _id goes on in a copy of more than a thousand documents while its home does not serve', async (t) => {
  const server = await Server.start(t, ['--dev', '--node', 'a=memory:', '--node', 'b=memory:', '--set', 'node.a.region=here', '--set', 'node.b.region=there', '--set', 'migration.pause_ms=20ms']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const mongo = new MongoClient(server.mongo);
  t.after(() => mongo.close());
  const db = mongo.db('shop');
  for (const id of ['lands', 'sales']) await mongo.db('admin').command({ shardCollection: `shop.${id}`, key: { _id: 'hashed' } });
  await db.collection('lands').insertMany(Array.from({ length: 1500 }, (_, i) => ({ _id: i, name: `land ${i}` })));
  await db.collection('sales').insertMany([{ _id: 'a', of: 3 }, { _id: 'b', of: [1499, 7] }, { _id: 'c' }]);
  for (const [id, region, more] of [['lands', 'there', { reference: true }], ['sales', 'here', {}]]) {
    const container = client.database('shop').container(id);
    const { resource } = await container.read();
    await container.replace({ ...resource, orrery: { ...resource.orrery, ...more, placement: [{ region }] } });
    await until(async () => (await signed(server, 'GET', `/_orrery/containers/shop/${id}/partitions`)).json.partitions
      .every((one) => one.node === (region === 'here' ? 'a' : 'b')));
  }
  const looked = async (foreignField = '_id') => (await db.collection('sales').aggregate([
    { $lookup: { from: 'lands', localField: 'of', foreignField, as: 'land' } }, { $sort: { _id: 1 } },
  ]).toArray()).map(({ land }) => land.map((one) => one.name).sort());
  const wanted = [['land 3'], ['land 1499', 'land 7'], []];
  assert.deepEqual(await looked(), wanted);
  assert.equal((await signed(server, 'POST', '/_orrery/nodes/b/pause')).status, 200);
  await assert.rejects(db.collection('lands').findOne({ _id: 3 }));
  assert.deepEqual(await looked(), wanted);
  await assert.rejects(looked('name')); // by anything else so many are not walked: they are read where they are
  assert.equal((await signed(server, 'POST', '/_orrery/nodes/b/resume')).status, 200);
  assert.deepEqual(await looked('name'), [[], [], []]);
});

test('joins go on while the home of the reference container does not serve, and say how old their copy may be', async (t) => {
  const server = await Server.start(t, ['--dev', '--node', 'a=memory:', '--node', 'b=memory:', '--set', 'node.a.region=here', '--set', 'node.b.region=there', '--set', 'migration.pause_ms=20ms']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const placed = (region) => [{ region }];
  const { container: source } = await database.containers.create({ id: 'orders', partitionKey: '/tenant', orrery: { placement: placed('here') } });
  const { container: lands } = await database.containers.create({ id: 'countries', partitionKey: '/id', orrery: { reference: true, placement: placed('there') } });
  for (const land of countries) await lands.items.create(land);
  await source.items.create(order(0));
  const ask = () => signed(server, 'POST', '/dbs/shop/colls/orders/docs', {
    body: { query: `SELECT VALUE r.name FROM c ${byId}` },
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true' },
  });
  const lag = (answer) => Number(answer.headers['x-orrery-reference-lag-ms']);
  const node = async (what) => assert.equal((await signed(server, 'POST', `/_orrery/nodes/b/${what}`)).status, 200);
  await node('pause');
  assert.equal((await ask()).status, 503); // there is no copy yet
  await node('resume');
  assert.deepEqual((await ask()).json.Documents, ['land of DE']);
  await node('pause');
  await assert.rejects(lands.item('DE', 'DE').read(), { code: 503 });
  const exact = await ask(); // nothing was written since, so nothing is missing
  assert.deepEqual([exact.status, exact.json.Documents, lag(exact)], [200, ['land of DE'], 0]);
  await node('resume');
  await lands.items.upsert(country('DE', 'EU', { name: 'another name' })); // that no copy has yet
  await node('pause');
  const old = await ask();
  assert.deepEqual([old.status, old.json.Documents], [200, ['land of DE']], old.text);
  assert.ok(lag(old) > 0, `${lag(old)}`);
  await node('resume');
  const now = await ask();
  assert.deepEqual([now.json.Documents, lag(now)], [['another name'], 0]);
});
