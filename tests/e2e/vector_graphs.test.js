// Graphs of vectors (diskANN): built in the background, asked as soon as they are there, and never a reason for a wrong row.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed } from './rest.js';

const DIMENSIONS = 16;
const COUNT = 1500;
const vectorEmbeddingPolicy = { vectorEmbeddings: [{ path: '/v', dataType: 'float32', dimensions: DIMENSIONS, distanceFunction: 'euclidean' }] };
const indexingPolicy = (change = {}) => ({ includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/v/*' }],
  vectorIndexes: [{ path: '/v', type: 'diskANN', ...change }] });
const query = 'SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)';

// The same numbers each time, as single precision has them.
function sequence(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.fround(state / 2 ** 32 - 0.5);
  };
}

// Around some places, as embeddings are.
function vectorsOf(count, seed) {
  const place = sequence(77);
  const places = Array.from({ length: 20 }, () => Array.from({ length: DIMENSIONS }, place));
  const next = sequence(seed);
  return Array.from({ length: count }, (_, i) => places[i % 20].map((x) => Math.fround(x + 0.4 * next())));
}

const itemsOf = (count, seed = 1, name = '') => vectorsOf(count, seed).map((v, i) => ({ id: `${name}${i}`, pk: `${i % 7}`, n: i, v }));
const distance = (a, b) => Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0));
const expected = (items, asked, count = 10, filter = () => true) =>
  items.filter(filter).map((item) => [distance(item.v, asked), item.id]).sort((a, b) => a[0] - b[0]).slice(0, count).map(([, id]) => id);

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.enforce=never', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  return { server, database };
}

async function fill(container, items, operationType = 'Upsert') {
  for (let i = 0; i < items.length; i += 100)
    await container.items.executeBulkOperations(items.slice(i, i + 100).map((item) => ({ operationType, partitionKey: item.pk, resourceBody: item })));
}

async function searched(server, asked, { text = query, headers = {} } = {}) {
  const answer = await signed(server, 'POST', '/dbs/shop/colls/things/docs', { body: { query: text, parameters: [{ name: '@v', value: asked }] },
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-orrery-explain': 'true',
      'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-ms-max-item-count': '-1', ...headers } });
  assert.equal(answer.status, 200, answer.text);
  return { rows: answer.json.Documents, explain: answer.json._explain, charge: Number(answer.headers['x-ms-request-charge']) };
}

// Searches until so many graphs are there, none is being built, and so says the explanation.
async function ready(server, graphs = 1, asked = vectorsOf(1, 5)[0]) {
  for (;;) {
    const { explain } = await searched(server, asked);
    if (explain.graphs.ready === graphs && !explain.graphs.building) return explain.graphs;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// How many of the best are found, of all that are asked for.
async function recall(server, items, options) {
  let found = 0;
  const asked = vectorsOf(20, 99);
  for (const vector of asked) {
    const best = new Set(expected(items, vector));
    const { rows } = await searched(server, vector, options);
    assert.equal(new Set(rows).size, 10);
    found += rows.filter((id) => best.has(id)).length;
  }
  return found / (10 * asked.length);
}

const metric = async (server, name) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec((await (await fetch(`${server.url}/metrics`)).text()))?.[1]);

test('a graph is built behind the first search, finds what is the most alike, and looks at less', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexingPolicy({ indexingSearchListSize: 60 }) });
  const items = itemsOf(COUNT);
  await fill(container, items);
  const asked = vectorsOf(1, 5)[0];
  const first = await searched(server, asked);
  assert.deepEqual(first.rows, expected(items, asked));
  assert.equal(first.explain.access.kind, 'index');
  const graphs = await ready(server);
  assert.deepEqual(graphs, { ready: 1, building: 0, pointsIn: COUNT, points: COUNT, changes: 0 });
  const second = await searched(server, asked);
  assert.deepEqual(second.rows, first.rows);
  assert.ok(second.explain.actual.indexEntries < first.explain.actual.indexEntries, JSON.stringify([first.explain.actual, second.explain.actual]));
  assert.ok(second.charge <= first.charge);
  assert.ok(await recall(server, items) >= 0.97);
  // a longer list looks at more, a shorter one finds no more than it has
  const tuned = (options, rest = '') => searched(server, asked, { text: `SELECT TOP 10 VALUE c.id FROM c ${rest} ORDER BY VectorDistance(c.v, @v, false, ${JSON.stringify(options)})` });
  const long = await tuned({ searchListSizeMultiplier: 60 });
  assert.deepEqual(long.rows, first.rows);
  assert.ok(long.explain.actual.indexEntries > second.explain.actual.indexEntries, JSON.stringify([long.explain.actual, second.explain.actual]));
  assert.equal((await tuned({ searchListSizeMultiplier: 1 })).explain.actual.itemsLoaded, 10);
  assert.equal((await tuned({ quantizedVectorListMultiplier: 7 })).explain.actual.itemsLoaded, 70);
  // filters are met by the candidates of the graph, or by all others; the more so the more they count
  const half = 'WHERE ENDSWITH(c.id, "1") OR ENDSWITH(c.id, "2")';
  const loaded = [];
  for (const filterPriority of [0, 0.5, 1]) {
    const { rows, explain } = await tuned({ filterPriority }, half);
    assert.deepEqual(rows, expected(items, asked, 10, ({ id }) => /[12]$/.test(id)));
    loaded.push(explain.actual.itemsLoaded);
  }
  assert.ok(new Set(loaded).size > 1, `${loaded}`);
  for (const rare of ['1499', '7', '731'])
    assert.deepEqual((await searched(server, asked, { text: `SELECT TOP 10 VALUE c.id FROM c WHERE ENDSWITH(c.id, "${rare}") ORDER BY VectorDistance(c.v, @v)` })).rows,
      expected(items, asked, 10, ({ id }) => id.endsWith(rare)));
  // another metric than the graph's: all are gone through
  const cosine = await tuned({ distanceFunction: 'cosine' });
  const norm = (a) => Math.hypot(...a);
  const cosines = items.map(({ id, v }) => [v.reduce((sum, x, i) => sum + x * asked[i], 0) / norm(v) / norm(asked), id]).sort((a, b) => b[0] - a[0]);
  assert.deepEqual(cosine.rows, cosines.slice(0, 10).map(([, id]) => id));
  // a page full of them
  assert.equal(new Set((await searched(server, asked, { text: 'SELECT TOP 1000 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)' })).rows).size, 1000);
  // for the operator
  assert.equal(await metric(server, 'orrery_query_vector_graphs'), 1);
  assert.equal(await metric(server, 'orrery_query_vector_graphs_building'), 0);
  assert.equal(await metric(server, 'orrery_query_vector_graph_points'), COUNT);
  assert.ok(await metric(server, 'orrery_query_vectors_bytes') > COUNT * (DIMENSIONS + 100));
  assert.ok(await metric(server, 'orrery_query_vector_graphs_built_total') >= 1);
});

test('what is written behind a graph is found as it is, and too much of it makes another', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexingPolicy() });
  const items = itemsOf(COUNT);
  await fill(container, items);
  await searched(server, items[0].v);
  await ready(server);
  const built = await metric(server, 'orrery_query_vector_graphs_built_total');
  const asked = vectorsOf(1, 31)[0];
  const at = (id) => items.findIndex((item) => item.id === id);
  // the best goes, is put far away, comes back; another takes its place
  const order = expected(items, asked, 12);
  await container.item(order[0], items[at(order[0])].pk).delete();
  items.splice(at(order[0]), 1);
  items[at(order[1])].v = asked.map((x) => Math.fround(x + 3));
  await container.items.upsert(items[at(order[1])]);
  items.push({ id: 'new', pk: '1', v: asked });
  await container.items.create(items.at(-1));
  let found = await searched(server, asked);
  assert.deepEqual(found.rows, expected(items, asked));
  assert.equal(found.rows[0], 'new');
  assert.equal(found.explain.graphs.changes, 2);
  items[at('new')].v = asked.map((x) => Math.fround(x - 3));
  await container.items.upsert(items[at('new')]);
  items[at(order[1])].v = asked;
  await container.items.upsert(items[at(order[1])]);
  found = await searched(server, asked);
  assert.deepEqual(found.rows, expected(items, asked));
  assert.equal(found.rows[0], order[1]);
  // a vector that is none any more, and an item of the same name
  await container.items.upsert({ id: order[2], pk: items[at(order[2])].pk, v: 'none' });
  const gone = items.splice(at(order[2]), 1)[0];
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  await container.item(gone.id, gone.pk).delete();
  items.push({ ...gone, v: asked.map((x) => Math.fround(x + 0.001)) });
  await container.items.create(items.at(-1));
  found = await searched(server, asked);
  assert.deepEqual(found.rows, expected(items, asked));
  assert.equal(await metric(server, 'orrery_query_vector_graphs_built_total'), built);
  assert.ok(await recall(server, items) >= 0.97);
  // many are deleted around one place: the next graph has none of them
  for (const id of expected(items, asked, 60)) {
    await container.item(id, items[at(id)].pk).delete();
    items.splice(at(id), 1);
  }
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  await ready(server);
  // and so many are written that it is built anew
  const more = itemsOf(700, 8, 'more');
  await fill(container, more);
  items.push(...more);
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  const graphs = await ready(server);
  assert.equal(graphs.points, items.length);
  assert.equal(graphs.changes, 0);
  assert.ok(await recall(server, items) >= 0.97);
});

test('while items are written by others each search sees all that was acknowledged before', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexingPolicy() });
  await fill(container, itemsOf(COUNT));
  await ready(server);
  const far = (k) => Array.from({ length: DIMENSIONS }, (_, i) => (i ? k : 50 + k));
  let stopped = false;
  const noise = (async () => {
    for (let i = 0; !stopped; i += 1) await container.items.upsert({ id: `noise${i % 40}`, pk: `${i % 7}`, v: vectorsOf(1, i + 1)[0] });
  })();
  const writers = [0, 1, 2].map(async (writer) => {
    for (let i = 0; i < 25; i += 1) {
      const v = far(writer * 100 + i);
      await container.items.upsert({ id: `mine${writer}`, pk: `${writer}`, v });
      const { rows } = await searched(server, v, { text: 'SELECT TOP 1 c.id, c.v FROM c ORDER BY VectorDistance(c.v, @v)' });
      assert.deepEqual(rows, [{ id: `mine${writer}`, v }]);
    }
  });
  await Promise.all(writers);
  stopped = true;
  await noise;
});

test('a graph goes with its process and its partition, and rows are the same', async (t) => {
  const args = ['--node', `local=rocksdb:${scratch(t)}`];
  const first = await started(t, args);
  const { container } = await first.database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexingPolicy({ quantizationByteSize: 8 }) });
  const items = itemsOf(2600); // half of them are enough for a graph
  await fill(container, items);
  await ready(first.server);
  assert.ok(await recall(first.server, items) >= 0.95);
  await first.server.stop();
  const { server } = await started(t, args);
  const asked = vectorsOf(1, 12)[0];
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  await ready(server);
  const list = '/_orrery/containers/shop/things/partitions';
  const [partition] = (await signed(server, 'GET', list)).json.partitions;
  assert.equal((await signed(server, 'POST', `${list}/${partition.id}/split`)).status, 202);
  for (;;) {
    assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
    const { partitions, migration } = (await signed(server, 'GET', list)).json;
    if (partitions.length === 2 && !migration) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const graphs = await ready(server, 2);
  assert.equal(graphs.points, items.length);
  assert.deepEqual((await searched(server, asked)).rows, expected(items, asked));
  assert.ok(await recall(server, items) >= 0.95);
});

test('without memory there are no graphs, and the rows are the same', async (t) => {
  const { server, database } = await started(t, ['--set', 'query.vectors_bytes_max=0']);
  const { container } = await database.containers.create({ id: 'things', partitionKey: '/pk', vectorEmbeddingPolicy, indexingPolicy: indexingPolicy() });
  const items = itemsOf(1200);
  await fill(container, items);
  const asked = vectorsOf(1, 5)[0];
  for (let i = 0; i < 3; i += 1) {
    const { rows, explain } = await searched(server, asked);
    assert.deepEqual(rows, expected(items, asked));
    assert.deepEqual(explain.graphs, { ready: 0, building: 0, pointsIn: 0, points: 0, changes: 0 });
  }
});

test('options of an index tune what they say, or are refused by name', async (t) => {
  const { server } = await started(t);
  const made = (index) => signed(server, 'POST', '/dbs/shop/colls', { body: { id: 'things', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
    vectorEmbeddingPolicy, indexingPolicy: { vectorIndexes: [{ path: '/v', type: 'diskANN', ...index }] } } });
  const refused = async (index, status, message) => {
    const answer = await made(index);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.json.message, message);
  };
  await refused({ vectorIndexShardKey: ['/pk'] }, 501, /vectorIndexShardKey/);
  await refused({ type: 'quantizedFlat', indexingSearchListSize: 100 }, 400, /indexingSearchListSize/);
  await refused({ type: 'flat', indexingSearchListSize: 100 }, 400, /indexingSearchListSize/);
  await refused({ type: 'flat', quantizationByteSize: 8 }, 400, /quantizationByteSize/);
  for (const indexingSearchListSize of [9, 501, 10.5, '100']) await refused({ indexingSearchListSize }, 400, /indexingSearchListSize/);
  assert.equal((await made({ indexingSearchListSize: 500, quantizationByteSize: 8 })).status, 201);
});
