// Queries on a container that one of its views answers: which do, for whom, and that they say what the container says.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { emulatorKey } from './server.js';
import { shop } from './items.js';
import { signed } from './rest.js';

async function until(what, why, limitMs = 120_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, why);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const order = (i, more = {}) => ({
  id: `o${i}`, tenant: `t${i % 50}`, email: `e${i % 7}@x`, total: i, open: i % 2 === 0, tags: [`a${i % 3}`, 'all'], at: { city: `c${i % 4}` }, ...more,
});
const isQuery = { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true' };

// A container of four physical partitions with a view by e-mail address that is Active and has all there is.
async function source(t, { view = {}, args = [], count = 200, definition = {} } = {}) {
  const at = await shop(t, { partitionKey: { paths: ['/tenant'], version: 2 }, ...definition }, { args, create: { offerThroughput: 40_000 } });
  for (let i = 0; i < count; i += 20) await Promise.all(Array.from({ length: 20 }, (_, n) => at.container.items.create(order(i + n))));
  const ranges = (await at.send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges;
  assert.equal(ranges.length, 4);
  const ask = (query, { headers = {}, parameters = [] } = {}) =>
    at.send('POST', at.docs, { body: { query, parameters }, headers: { ...isQuery, 'x-orrery-explain': 'true', ...headers } });
  const plain = (query, more = {}) => ask(query, { ...more, headers: { ...more.headers, 'x-orrery-use-views': 'false' } });
  const make = async (more) => {
    const { container } = await at.database.containers.create({ partitionKey: { paths: ['/email'], version: 2 }, ...more });
    await until(async () => (await container.read()).headers && (await at.send('GET', `/_orrery/containers/shop/${container.id}`)).json.view?.phase === 'follow', 'the view is not active');
    return container;
  };
  const by = await make({
    id: 'by-email', orrery: { view: { sources: ['orders'], query: 'SELECT o.id, o.email, o.total, o.open, o.tags, o.at.city AS town FROM o' } }, ...view,
  });
  // asks until the view has caught up, so that who asks is answered through it
  const through = async (query, more) => {
    let answer;
    await until(async () => (answer = await ask(query, more)).headers['x-orrery-view'] === 'by-email', `not through the view: ${query}`);
    assert.equal(answer.status, 200);
    return answer;
  };
  return { ...at, ask, plain, through, make, by };
}

const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();
const why = (answer, id = 'by-email') => answer.json._explain.viewsNotUsed?.find((view) => view.id === id)?.reason;

test('a query that names the key of a view is answered by one partition of the view, with the same rows', async (t) => {
  const at = await source(t);
  for (const query of [
    'SELECT c.id, c.total FROM c WHERE c.email = "e3@x"',
    'SELECT VALUE c.id FROM c WHERE c.email = "e3@x" AND c.total > 50',
    'SELECT VALUE c.at.city FROM c WHERE c.email = "e3@x"',
    'SELECT c.id AS total, c.total AS id FROM c WHERE c.email = "e3@x"',
    'SELECT c.id, t FROM c JOIN t IN c.tags WHERE c.email = "e3@x" AND t != "all"',
    'SELECT COUNT(1) AS n, SUM(c.total) AS sum FROM c WHERE c.email = "e3@x"',
    'SELECT c.open, COUNT(1) AS n FROM c WHERE c.email = "e3@x" GROUP BY c.open',
    'SELECT DISTINCT VALUE c.at.city FROM c WHERE c.email = "e3@x"',
    'SELECT c.id FROM c WHERE c.email = "e3@x" AND EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = "a1")',
    'SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags) FROM c WHERE c["email"] = "e3@x"',
    'SELECT VALUE c.id FROM c WHERE c.email = "nobody"',
  ]) {
    const [mine, wanted] = [await at.through(query), await at.plain(query)];
    assert.deepEqual(sorted(mine.json.Documents), sorted(wanted.json.Documents), query);
    assert.equal(wanted.headers['x-orrery-view'], undefined);
    assert.equal(mine.headers['x-orrery-view-lag-ms'], '0');
    assert.equal(wanted.headers['x-orrery-view-lag-ms'], undefined);
    const { view, partitions } = mine.json._explain;
    assert.deepEqual([view.id, view.insteadOfPartitions, partitions.read <= 1], ['by-email', 4, true], query);
    assert.ok(Number(mine.headers['x-ms-request-charge']) < Number(wanted.headers['x-ms-request-charge']), query);
    assert.equal(mine.json._rid, at.resource._rid);
    assert.equal(mine.headers['x-ms-session-token'].split(',').length, 4); // the session is that of the container
  }
  const asked = 'SELECT c.id, c.total FROM c WHERE c.email = @e ORDER BY c.total DESC';
  const parameters = [{ name: '@e', value: 'e5@x' }];
  const [mine, wanted] = [await at.through(asked, { parameters }), await at.plain(asked, { parameters })];
  assert.deepEqual(mine.json.Documents, wanted.json.Documents);
  assert.equal(mine.json.Documents[0].total, 194);
});

test('pages go on through the view they began with, and a continuation is good for nothing else', async (t) => {
  const at = await source(t);
  for (const query of ['SELECT c.id FROM c WHERE c.email = "e3@x"', 'SELECT TOP 9 c.id, c.total FROM c WHERE c.email = "e3@x" ORDER BY c.total']) {
    const wanted = (await at.plain(query)).json.Documents, rows = [];
    let headers = { 'x-ms-max-item-count': '4' }, pages = 0;
    await at.through(query, { headers });
    for (let more = true; more; pages++) {
      let page = pages ? await at.ask(query, { headers }) : await at.through(query, { headers });
      while (page.status === 408) page = await at.ask(query, { headers }); // the view has not caught up yet
      assert.equal(page.status, 200, JSON.stringify(page.json));
      assert.equal(page.headers['x-orrery-view'], 'by-email');
      rows.push(...page.json.Documents);
      more = page.headers['x-ms-continuation'];
      headers = { ...headers, 'x-ms-continuation': more };
      if (pages === 0) await at.container.items.upsert(order(1000, { email: 'other@x' })); // the view is behind for a moment
    }
    assert.ok(pages > 2);
    assert.deepEqual(sorted(rows), sorted(wanted));
  }
  const first = await at.through('SELECT c.id FROM c WHERE c.email = "e3@x"', { headers: { 'x-ms-max-item-count': '4' } });
  const token = first.headers['x-ms-continuation'];
  const [{ token: inner }] = JSON.parse(token);
  const [rid, sealed] = inner.split('!');
  const again = (text, query = 'SELECT c.id FROM c WHERE c.email = "e3@x"', headers = {}) => at.ask(query, { headers: { 'x-ms-continuation': text, ...headers } });
  const wrap = (text) => JSON.stringify([{ ...JSON.parse(token)[0], token: text }]);
  assert.equal((await again(token)).status, 200);
  for (const [text, query, headers] of [
    [wrap(sealed)], [wrap(`${at.resource._rid}!${sealed}`)], [wrap(`!${sealed}`)], [wrap(`${rid}!`)], [wrap(`${rid}!${sealed.slice(1)}`)],
    [token, 'SELECT c.id FROM c WHERE c.email = "e4@x"'], [token, undefined, { 'x-orrery-use-views': 'false' }],
    [token, undefined, { 'x-ms-documentdb-partitionkey': '["t1"]' }],
  ])
    assert.equal((await again(text, query, headers)).status, 400, text);
  await at.by.delete();
  assert.equal((await again(token)).status, 400);
});

test('what a view does not have, or does not have alone, the container answers; the explanation says why', async (t) => {
  const at = await source(t);
  await at.through('SELECT c.id FROM c WHERE c.email = "e3@x"');
  const system = /system properties/;
  for (const [query, reason] of [
    ['SELECT * FROM c WHERE c.email = "e3@x"', system],
    ['SELECT c FROM c WHERE c.email = "e3@x"', system],
    ['SELECT c.id FROM c WHERE c.email = "e3@x" AND c._ts > 0', /does not keep "_ts"/],
    ['SELECT c.tenant FROM c WHERE c.email = "e3@x"', /does not keep "tenant"/],
    ['SELECT c.at FROM c WHERE c.email = "e3@x"', /does not keep "at"/],
    ['SELECT c._id FROM c WHERE c.email = "e3@x"', /does not keep "_id"/],
    ['SELECT c.town FROM c WHERE c.email = "e3@x"', /does not keep "town"/],
    ['SELECT c.id FROM c WHERE c.email IN ("e3@x", "e4@x")', /one value/],
    ['SELECT c.id FROM c WHERE c.email = "e3@x" OR c.total = 4', /one value/],
    ['SELECT c.id FROM c WHERE c.email > "e3@x"', /one value/],
    ['SELECT c.id FROM c', /one value/],
    ['SELECT x.id FROM (SELECT c.id FROM c WHERE c.email = "e3@x") AS x', /whole items/],
    ['SELECT c.id FROM c WHERE c.email = "e3@x" ORDER BY c.total, c.open', undefined],
  ]) {
    const answer = await at.ask(query);
    assert.equal(answer.headers['x-orrery-view'], undefined, query);
    if (reason) assert.match(why(answer) ?? '', reason, query);
    assert.deepEqual(sorted(answer.json.Documents ?? []), sorted((await at.plain(query)).json.Documents ?? []), query);
  }
  // who names the container's own key, or a range, is answered there
  const named = await at.ask('SELECT c.id FROM c WHERE c.email = "e3@x" AND c.tenant = "t3"');
  assert.deepEqual([named.headers['x-orrery-view'], why(named)], [undefined, undefined]);
  for (const headers of [{ 'x-ms-documentdb-partitionkey': '["t3"]' }, { 'x-ms-documentdb-partitionkeyrangeid': '0' }]) {
    const answer = await at.ask('SELECT c.id FROM c WHERE c.email = "e3@x"', { headers });
    assert.equal(answer.headers['x-orrery-view'], undefined);
  }
  assert.equal((await at.ask('SELECT c.id FROM c WHERE c.email = "e3@x"', { headers: { 'x-ms-documentdb-query-enablecrosspartition': 'false' } })).status, 400);
});

test('filtered views serve queries with their condition; whole items, groups, unions, expiry and other meanings do not', async (t) => {
  const at = await source(t, { view: { orrery: { view: { sources: ['orders'], query: 'SELECT c.id, c.email FROM c WHERE c.open = true AND c.total >= 10' } } } });
  const { database } = at;
  await database.containers.create({ id: 'other', partitionKey: '/tenant' });
  const views = {
    groups: 'SELECT c.email, COUNT(1) AS n FROM c GROUP BY c.email',
    union: { sources: ['orders', 'other'], query: 'SELECT * FROM c' },
    computed: 'SELECT * FROM c',
  };
  for (const [id, view] of Object.entries(views))
    await at.make({ id, orrery: { view: typeof view === 'string' ? { sources: ['orders'], query: view } : view },
      ...(id === 'computed' ? { computedProperties: [{ name: 'total', query: 'SELECT VALUE 1 FROM c' }] } : {}) });
  const asked = 'SELECT o.id FROM orders o WHERE o.total >= @least AND o.email = "e3@x" AND o.open = true AND o.email != "x"';
  const parameters = [{ name: '@least', value: 10 }];
  const mine = await at.through(asked, { parameters });
  assert.deepEqual(sorted(mine.json.Documents), sorted((await at.plain(asked, { parameters })).json.Documents));
  assert.ok(mine.json.Documents.length);
  const other = await at.ask(asked, { parameters: [{ name: '@least', value: 11 }] });
  assert.match(why(other), /condition/);
  assert.match(why(other, 'groups'), /groups/);
  assert.match(why(other, 'union'), /several sources/);
  assert.match(why(other, 'computed'), /another meaning/);
  assert.ok(other.json.Documents.length);

  await at.container.replace({ ...(await at.container.read()).resource, defaultTtl: -1 });
  await until(async () => !(await at.ask(asked, { parameters })).headers['x-orrery-view'], 'items that expire are not in views');
});

test('a session reads its own writes, whichever way it is answered; strong reads never go through a view', async (t) => {
  const at = await source(t, { count: 40, args: ['--set', 'account.consistency=Strong'] });
  const query = 'SELECT VALUE c.total FROM c WHERE c.email = "mine@x"';
  let through = 0;
  for (let i = 0; i < 60; i++) {
    const written = await at.container.items.upsert(order(5, { email: 'mine@x', total: 1000 + i }));
    const headers = { 'x-ms-consistency-level': 'Session', 'x-ms-session-token': written.headers['x-ms-session-token'] };
    const answer = await at.ask(query, { headers });
    assert.deepEqual(answer.json.Documents, [1000 + i]);
    through += answer.headers['x-orrery-view'] !== undefined;
    // without a token the session has all that is committed
    assert.deepEqual((await at.ask(query, { headers: { 'x-ms-consistency-level': 'Session' } })).json.Documents, [1000 + i]);
    const eventual = await at.ask(query, { headers: { 'x-ms-consistency-level': 'Eventual' } });
    assert.equal(eventual.headers['x-orrery-view'], 'by-email'); // however far it is
    assert.ok(eventual.json.Documents.length <= 1 && (eventual.json.Documents[0] ?? 0) <= 1000 + i);
    const strong = await at.ask(query);
    assert.deepEqual([strong.headers['x-orrery-view'], strong.json.Documents], [undefined, [1000 + i]]);
  }
  t.diagnostic(`${through} of 60 went through the view`);
  await at.through(query, { headers: { 'x-ms-consistency-level': 'Session' } });
  await at.through(query, { headers: { 'x-ms-consistency-level': 'BoundedStaleness' } });
});

test('a resource token opens the view to a query only where it is for the view too', async (t) => {
  const at = await source(t);
  const query = 'SELECT c.id, c.total FROM c WHERE c.email = "e3@x"';
  const wanted = sorted((await at.through(query)).json.Documents);
  const { user } = await at.database.users.create({ id: 'u' });
  const token = async (id, resource, more = {}) => (await user.permissions.create({ id, permissionMode: 'Read', resource, ...more })).resource._token;
  const asked = (text, headers = {}) => signed(at.server, 'POST', at.docs,
    { body: { query }, headers: { ...isQuery, 'x-orrery-explain': 'true', ...headers }, authorization: encodeURIComponent(text) });
  const own = await asked(await token('own', 'dbs/shop/colls/orders'));
  assert.equal(own.status, 200, JSON.stringify(own.json));
  assert.deepEqual([own.headers['x-orrery-view'], sorted(own.json.Documents)], [undefined, wanted]);
  assert.match(why(own), /token/);
  const both = await asked(await token('both', 'dbs/shop'));
  assert.deepEqual([both.headers['x-orrery-view'], sorted(both.json.Documents)], ['by-email', wanted]);
  const bound = await token('bound', 'dbs/shop/colls/orders', { resourcePartitionKey: ['t3'] });
  assert.equal((await asked(bound)).status, 403);
  const keyed = await asked(bound, { 'x-ms-documentdb-partitionkey': '["t3"]' });
  assert.equal(keyed.headers['x-orrery-view'], undefined);
});

test('items that the view had to leave out are not missed, and a setting switches views off', async (t) => {
  const at = await source(t);
  const query = 'SELECT VALUE c.id FROM c WHERE c.email = @e';
  const parameters = [{ name: '@e', value: 'e3@x' }];
  await at.through(query, { parameters });
  await at.container.items.create({ id: 'odd', tenant: 't1', email: ['e3@x'], total: 1 });
  await until(async () => why(await at.ask(query, { parameters }))?.includes('left out'), 'nothing was left out');
  assert.deepEqual((await at.ask(query, { parameters: [{ name: '@e', value: ['e3@x'] }] })).json.Documents, ['odd']);
  // built again without it, the view serves again
  await at.container.item('odd', 't1').delete();
  await at.by.replace({ ...(await at.by.read()).resource, orrery: { view: { sources: ['orders'], query: 'SELECT c.id, c.email FROM c' } } });
  await at.through(query, { parameters });

  const off = await source(t, { args: ['--set', 'query.by_view=false'], count: 20 });
  const answer = await off.ask(query, { parameters });
  assert.deepEqual([answer.headers['x-orrery-view'], why(answer)], [undefined, undefined]);
});

test('advice proposes an index table, and once it is there says what it answers', async (t) => {
  const at = await shop(t, { partitionKey: { paths: ['/tenant'], version: 2 } }, { args: ['--set', 'advise.per_second_max=10000'], create: { offerThroughput: 40_000 } });
  for (let i = 0; i < 100; i++) await at.container.items.create({ id: `o${i}`, tenant: `t${i}`, email: `e${i % 60}@x`, total: i });
  const ask = (query) => at.send('POST', at.docs, { body: { query }, headers: isQuery });
  const queries = async () => {
    for (let i = 0; i < 100; i++) {
      await ask(`SELECT c.id FROM c WHERE c.email = "e${i % 60}@x"`);
      await ask(`SELECT c.id FROM c WHERE c.tenant = "t${i}"`);
    }
  };
  await queries();
  const advice = async () => (await at.send('GET', '/_orrery/containers/shop/orders/advice')).json;
  const { indexTables: [table] } = await advice();
  assert.equal(table.key, '/email');
  assert.ok(table.ruPerSecondSaved > table.ruPerSecondCost && table.ruPerSecondCost > 0 && table.bytes > 0, JSON.stringify(table));
  assert.match(table.reason, /^3\d% of requests are queries that name \/email and not \/tenant: an index table/);
  const { container: view } = await at.database.containers.create(table.definition);
  await until(async () => (await ask('SELECT c.id FROM c WHERE c.email = "e7@x"')).headers['x-orrery-view'] === view.id, 'the view does not answer');
  await queries();
  const { indexTables: [there] } = await advice();
  assert.deepEqual([there.key, there.view, there.definition], ['/email', view.id, undefined]);
  assert.match(there.reason, /the view "orders-by-email" answers/);
  assert.ok(there.ruPerSecondSaved > 0); // what they would cost without it
});

test('the vendor\'s client gets the same rows through the view, plain, in order, in pages and as aggregates', async (t) => {
  const at = await source(t);
  const client = new CosmosClient({ endpoint: at.server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const orders = client.database('shop').container('orders');
  for (const query of [
    'SELECT c.id, c.total FROM c WHERE c.email = "e3@x"', 'SELECT c.id, c.total FROM c WHERE c.email = "e3@x" ORDER BY c.total DESC',
    'SELECT VALUE SUM(c.total) FROM c WHERE c.email = "e3@x"', 'SELECT TOP 3 VALUE c.id FROM c WHERE c.email = "e3@x" ORDER BY c.total',
    'SELECT c.open, COUNT(1) AS n FROM c WHERE c.email = "e3@x" GROUP BY c.open',
  ]) {
    await at.through(query);
    for (const options of [{}, { maxItemCount: 5 }]) {
      const iterator = orders.items.query(query, options), rows = [];
      let charge = 0;
      while (iterator.hasMoreResults()) {
        const { resources, requestCharge } = await iterator.fetchNext();
        rows.push(...(resources ?? []));
        charge += requestCharge ?? 0;
      }
      const wanted = (await at.plain(query)).json.Documents;
      assert.deepEqual(query.includes('ORDER') ? rows : sorted(rows), query.includes('ORDER') ? wanted : sorted(wanted), query);
    }
  }
});
