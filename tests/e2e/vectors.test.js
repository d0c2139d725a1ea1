// Vectors: how alike items are, in the order of that, merged by the client and by the server.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed } from './rest.js';

const DIMENSIONS = 24;
const embedding = (path, distanceFunction, change = {}) => ({ path, dataType: 'float32', dimensions: DIMENSIONS, distanceFunction, ...change });
const vectorEmbeddingPolicy = { vectorEmbeddings: [embedding('/v', 'cosine'), embedding('/e', 'euclidean'), embedding('/d', 'dotproduct')] };
const kinds = ['flat', 'quantizedFlat', 'diskANN'];
const indexed = (type) => ({ indexingMode: 'consistent', includedPaths: [{ path: '/*' }],
  excludedPaths: ['/v/*', '/e/*', '/d/*'].map((path) => ({ path })),
  vectorIndexes: ['/v', '/e', '/d'].map((path) => ({ path, type })) });

// The same numbers each time, as single precision has them.
function sequence(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.fround(state / 2 ** 32 - 0.5);
  };
}

function itemsOf(count, seed = 1) {
  const next = sequence(seed);
  const vector = () => Array.from({ length: DIMENSIONS }, next);
  return Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `${i % 13}`, n: i, v: vector(), e: vector(), d: vector() }));
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const scores = {
  v: (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)),
  e: (a, b) => -Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0)),
  d: dot,
};
const expected = (items, path, asked, count, filter = () => true) =>
  items.filter(filter).map((item) => [scores[path](item[path], asked), item.id]).sort((a, b) => b[0] - a[0]).slice(0, count).map(([, id]) => id);

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.enforce=never', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  return { server, client, database };
}

async function fill(container, items) {
  for (let i = 0; i < items.length; i += 50)
    await Promise.all(items.slice(i, i + 50).map((item) => container.items.create(item)));
}

const rows = async (container, query, asked, options = {}) =>
  (await container.items.query({ query, parameters: [{ name: '@v', value: asked }] }, options).fetchAll()).resources;

async function posted(server, container, body, headers = {}) {
  return signed(server, 'POST', `/dbs/shop/colls/${container}/docs`, { body,
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json',
      'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-ms-max-item-count': '-1', ...headers } });
}

for (const type of kinds) {
  for (const throughput of [400, 48_000]) {
    test(`the most alike come first: ${type}, container of ${throughput} RU/s`, async (t) => {
      const { server, database } = await started(t);
      const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', throughput, vectorEmbeddingPolicy, indexingPolicy: indexed(type) });
      const items = itemsOf(300);
      await fill(container, items);
      await container.items.create({ id: 'none', pk: '1' });
      await container.items.create({ id: 'short', pk: '1', v: [1, 2], e: 'no', d: [] });
      const asked = itemsOf(1, 99)[0].v;
      for (const path of ['v', 'e', 'd']) {
        const order = `ORDER BY VectorDistance(c.${path}, @v)`;
        // merged by the library where there are several ranges
        assert.deepEqual(await rows(container, `SELECT TOP 10 VALUE c.id FROM c ${order}`, asked), expected(items, path, asked, 10));
        assert.deepEqual(await rows(container, `SELECT TOP 10 VALUE c.id FROM c ${order}`, asked, { forceQueryPlan: true }), expected(items, path, asked, 10));
        assert.deepEqual((await rows(container, `SELECT TOP 7 c.id, VectorDistance(c.${path}, @v) AS s FROM c ${order}`, asked, { maxItemCount: 2 })).map((row) => row.id), expected(items, path, asked, 7));
        assert.deepEqual(await rows(container, `SELECT VALUE c.id FROM c ${order} OFFSET 3 LIMIT 5`, asked), expected(items, path, asked, 8).slice(3));
        // by the server
        const body = { query: `SELECT TOP 10 VALUE c.id FROM c ${order}`, parameters: [{ name: '@v', value: asked }] };
        const answer = await posted(server, 'things', body);
        assert.deepEqual(answer.json.Documents, expected(items, path, asked, 10), answer.text);
        // before the search, within it, and by brute force
        assert.deepEqual(await rows(container, `SELECT TOP 5 VALUE c.id FROM c WHERE c.n < 40 ${order}`, asked), expected(items, path, asked, 5, (item) => item.n < 40));
        assert.deepEqual(await rows(container, `SELECT TOP 5 VALUE c.id FROM c WHERE c.pk = "3" ${order}`, asked), expected(items, path, asked, 5, (item) => item.pk === '3'));
        assert.deepEqual(await rows(container, `SELECT TOP 9 VALUE c.id FROM c ORDER BY VectorDistance(c.${path}, @v, true)`, asked), expected(items, path, asked, 9));
      }
      // everything that has a vector, however many are asked for
      assert.equal((await rows(container, 'SELECT TOP 1000 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)', asked)).length, 300);
      const [score] = await rows(container, 'SELECT TOP 1 VALUE VectorDistance(c.e, @v) FROM c ORDER BY VectorDistance(c.e, @v)', asked);
      assert.ok(Math.abs(score + scores.e(items[Number(expected(items, 'e', asked, 1)[0])].e, asked)) < 1e-5);
      // what goes, comes and changes
      const [best] = expected(items, 'v', asked, 1);
      const at = items.findIndex((item) => item.id === best);
      await container.item(best, items[at].pk).delete();
      items.splice(at, 1);
      items[0].v = asked;
      await container.items.upsert(items[0]);
      items.push({ ...itemsOf(1, 7)[0], id: 'new', v: asked.map((x) => Math.fround(x * 0.9)) });
      await container.items.create(items.at(-1));
      const found = await rows(container, 'SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)', asked);
      assert.deepEqual(found.slice(0, 2).sort(), [items[0].id, 'new'].sort());
      assert.deepEqual(found.slice(2), expected(items, 'v', asked, 10).slice(2));
    });
  }
}

test('plans say that rows come in no order, which way it goes, and what a client needs', async (t) => {
  const { server, database } = await started(t);
  await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy });
  const plan = async (query, features = 'NonStreamingOrderBy,OrderBy,Top,OffsetAndLimit') => posted(server, 'things', { query },
    { 'x-ms-cosmos-is-query-plan-request': 'True', 'x-ms-cosmos-supported-query-features': features });
  for (const [path, direction] of [['v', 'Descending'], ['e', 'Ascending'], ['d', 'Descending']]) {
    const { json, text } = await plan(`SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.${path}, [1])`);
    assert.equal(json.queryInfo.hasNonStreamingOrderBy, true, text);
    assert.deepEqual(json.queryInfo.orderBy, [direction]);
    assert.equal(json.queryInfo.top, 5);
    assert.match(json.queryInfo.rewrittenQuery, /ORDER BY VectorDistance\(c\.[ved], \[1\]\)$/);
  }
  const { json } = await plan('SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.v, [1], true, {"distanceFunction": "euclidean"})');
  assert.deepEqual(json.queryInfo.orderBy, ['Ascending']);
  const lacking = await plan('SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.v, [1])', 'OrderBy,Top');
  assert.equal(lacking.status, 400);
  assert.match(lacking.text, /does not support: NonStreamingOrderBy/);
});

for (const throughput of [400, 48_000]) {
  test(`clients bound such a query, the server bears one without an end: container of ${throughput} RU/s`, async (t) => {
    const { server, database } = await started(t);
    const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', throughput, vectorEmbeddingPolicy });
    const items = itemsOf(60);
    await fill(container, items);
    const asked = itemsOf(1, 5)[0].v;
    const order = 'ORDER BY VectorDistance(c.v, @v)';
    await assert.rejects(rows(container, `SELECT c.id FROM c ${order}`, asked), /without TOP or LIMIT can consume a large number of RUs/);
    await assert.rejects(rows(container, `SELECT TOP 50001 c.id FROM c ${order}`, asked), /larger than the vectorSearchBufferSize 50000/);
    await assert.rejects(rows(container, `SELECT TOP 5 c.id FROM c ${order} DESC`, asked), /Specifying a sort order \(ASC or DESC\)/);
    assert.deepEqual(await rows(container, `SELECT VALUE c.id FROM c ${order}`, asked, { allowUnboundedNonStreamingQueries: true }), expected(items, 'v', asked, 60));
    // page by page, by the server
    const found = [];
    let continuation;
    do {
      const answer = await posted(server, 'things', { query: `SELECT VALUE c.id FROM c ${order}`, parameters: [{ name: '@v', value: asked }] },
        { 'x-ms-max-item-count': '7', ...(continuation ? { 'x-ms-continuation': continuation } : {}) });
      assert.equal(answer.status, 200, answer.text);
      found.push(...answer.json.Documents);
      continuation = answer.headers['x-ms-continuation'];
    } while (continuation);
    assert.deepEqual(found, expected(items, 'v', asked, 60));
    assert.deepEqual(await rows(container, `SELECT DISTINCT TOP 3 VALUE c.pk FROM c WHERE c.n < 3 ${order}`, asked), expected(items, 'v', asked, 3, (item) => item.n < 3));
  });
}

test('vectors are found after a restart, and through a split', async (t) => {
  const args = ['--node', `local=rocksdb:${scratch(t)}`];
  const first = await started(t, args);
  const { container } = await first.database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexed('quantizedFlat') });
  const items = itemsOf(400);
  await fill(container, items);
  const asked = itemsOf(1, 3)[0].v;
  const query = 'SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)';
  const best = expected(items, 'v', asked, 10);
  assert.deepEqual(await rows(container, query, asked), best);
  await first.server.stop();
  const second = await started(t, args);
  const again = second.database.container('things');
  assert.deepEqual(await rows(again, query, asked), best);
  const list = '/_orrery/containers/shop/things/partitions';
  const [partition] = (await signed(second.server, 'GET', list)).json.partitions;
  assert.equal((await signed(second.server, 'POST', `${list}/${partition.id}/split`)).status, 202);
  for (;;) {
    assert.deepEqual(await rows(again, query, asked), best);
    const { partitions, migration } = (await signed(second.server, 'GET', list)).json;
    if (partitions.length === 2 && !migration) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(await rows(again, query, asked), best);
});

test('other types of numbers', async (t) => {
  const { database } = await started(t);
  const policy = { vectorEmbeddings: ['float16', 'int8', 'uint8'].map((dataType) => ({ path: `/${dataType}`, dataType, dimensions: 3, distanceFunction: 'dotproduct' })) };
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy: policy,
    indexingPolicy: { vectorIndexes: policy.vectorEmbeddings.map(({ path }) => ({ path, type: 'flat' })) } });
  await container.items.create({ id: '1', pk: 'a', float16: [0.1, 0, 0], int8: [-128, 0, 1], uint8: [255, 1, 0] });
  await container.items.create({ id: '2', pk: 'a', float16: [65504, 0, 0], int8: [127, 0, 0], uint8: [0, 1, 0] });
  await container.items.create({ id: '3', pk: 'a', float16: [65520, 0, 0], int8: [128, 0, 0], uint8: [-1, 1, 0] });
  for (const [path, best] of [['float16', [65504, 0.0999755859375]], ['int8', [127, -128]], ['uint8', [255, 0]]])
    assert.deepEqual(await rows(container, `SELECT TOP 5 VALUE VectorDistance(c.${path}, @v) FROM c ORDER BY VectorDistance(c.${path}, @v)`, [1, 0, 0]), best);
});

test('what is long, no number or of the wrong length costs what it costs and finds nothing', async (t) => {
  const { server, database } = await started(t);
  const policy = { vectorEmbeddings: [{ path: '/v', dataType: 'float32', dimensions: 4096, distanceFunction: 'cosine' }] };
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy: policy, indexingPolicy: { excludedPaths: [{ path: '/v/*' }], includedPaths: [{ path: '/*' }], vectorIndexes: [{ path: '/v', type: 'quantizedFlat' }] } });
  const long = Array.from({ length: 4096 }, (_, i) => Math.fround(Math.sin(i)));
  for (let i = 0; i < 20; i += 1) await container.items.create({ id: `${i}`, pk: 'a', v: long });
  await container.items.create({ id: 'longer', pk: 'a', v: [...long, 1] });
  await container.items.create({ id: 'far', pk: 'a', v: long.with(5, 1e300) });
  await container.items.create({ id: 'nested', pk: 'a', v: long.with(5, [1]) });
  await container.items.create({ id: 'huge', pk: 'a', v: Array.from({ length: 100_000 }, (_, i) => i) });
  const query = 'SELECT TOP 100 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)';
  const answer = await posted(server, 'things', { query, parameters: [{ name: '@v', value: long }] });
  assert.equal(answer.json.Documents.length, 20, answer.text);
  for (const value of [[...long, 1], [1], [], 'x', null, long.with(0, 1e39), long.with(0, 'x'), Array(200_000).fill(1)])
    assert.deepEqual(await rows(container, query, value), []);
  // NaN and infinities are no JSON
  const broken = await posted(server, 'things', `{"query":${JSON.stringify(query)},"parameters":[{"name":"@v","value":[NaN]}]}`);
  assert.equal(broken.status, 400);
  // many calls in one query are work, and work has an end
  const calls = Array.from({ length: 400 }, (_, i) => `VectorDistance(c.v, @v, true, {"distanceFunction":"euclidean"}) > ${i - 500}`).join(' AND ');
  const many = await posted(server, 'things', { query: `SELECT VALUE COUNT(1) FROM c WHERE ${calls}`, parameters: [{ name: '@v', value: long }] });
  assert.equal(many.status, 200, many.text);
  const once = await posted(server, 'things', { query: 'SELECT VALUE COUNT(1) FROM c WHERE VectorDistance(c.v, @v) > -5', parameters: [{ name: '@v', value: long }] });
  const charge = (answered) => Number(answered.headers['x-ms-request-charge']);
  assert.ok(charge(many) > charge(once), `${charge(many)} against ${charge(once)}`);
});

test('a search reads vectors, not items; a filter that refuses most of the best is exact', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexed('quantizedFlat') });
  const items = itemsOf(600);
  const asked = itemsOf(1, 21)[0].v;
  const order = expected(items, 'v', asked, 600);
  for (const [place, id] of order.entries()) items[Number(id)].text = place >= 450 ? 'far' : 'near';
  await fill(container, items);
  const explained = async (query) => (await posted(server, 'things', { query, parameters: [{ name: '@v', value: asked }] }, { 'x-orrery-explain': 'true' })).json;
  const search = 'SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)';
  const indexedAnswer = await explained(search);
  assert.deepEqual(indexedAnswer.Documents, order.slice(0, 5));
  assert.equal(indexedAnswer._explain.access.kind, 'index', JSON.stringify(indexedAnswer._explain));
  assert.match(JSON.stringify(indexedAnswer._explain.access), /vectors of \/v/);
  assert.equal(indexedAnswer._explain.actual.itemsLoaded, 10);
  const brute = await explained('SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, true)');
  assert.deepEqual(brute.Documents, order.slice(0, 5));
  assert.equal(brute._explain.access.kind, 'scan');
  assert.equal(brute._explain.actual.itemsLoaded, 600);
  const one = await explained('SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, false, {"searchListSizeMultiplier": 1})');
  assert.equal(one._explain.actual.itemsLoaded, 5);
  const twenty = await explained('SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, false, {"quantizedVectorListMultiplier": 20})');
  assert.equal(twenty._explain.actual.itemsLoaded, 100);
  // no index knows the ends of texts: the best are read on and on
  const far = await explained('SELECT TOP 5 VALUE c.id FROM c WHERE ENDSWITH(c.text, "ar") AND NOT ENDSWITH(c.text, "ear") ORDER BY VectorDistance(c.v, @v)');
  assert.deepEqual(far.Documents, order.slice(450, 455));
  assert.equal(far._explain.access.kind, 'index', JSON.stringify(far._explain));
  const none = await explained('SELECT TOP 5 VALUE c.id FROM c WHERE ENDSWITH(c.text, "nowhere") ORDER BY VectorDistance(c.v, @v)');
  assert.deepEqual(none.Documents, []);
  // a filter with an index goes first
  const few = await explained('SELECT TOP 5 VALUE c.id FROM c WHERE c.n < 10 ORDER BY VectorDistance(c.v, @v)');
  assert.deepEqual(few.Documents, expected(items, 'v', asked, 5, (item) => item.n < 10));
  assert.ok(few._explain.actual.itemsLoaded <= 10, JSON.stringify(few._explain));
  // the metric of the call counts, not that of the policy; another type of numbers is compared one by one
  const other = await explained('SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, false, {"distanceFunction": "euclidean"})');
  assert.deepEqual(other.Documents, items.map((item) => [-scores.e(item.v, asked), item.id]).sort((a, b) => a[0] - b[0]).slice(0, 5).map(([, id]) => id));
  assert.equal(other._explain.access.kind, 'index');
  assert.equal((await explained('SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v, false, {"dataType": "float16"})'))._explain.access.kind, 'scan');
});
