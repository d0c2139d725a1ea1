// Full text in order: FullTextScore and RRF, ranked by the server and by @azure/cosmos itself, with and without an index.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed } from './rest.js';

const indexed = { indexingMode: 'consistent', includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/text/?' }, { path: '/title/?' }],
  fullTextIndexes: [{ path: '/text' }, { path: '/title' }] };
const fullTextPolicy = { defaultLanguage: 'en-US', fullTextPaths: [{ path: '/text', language: 'en-US' }, { path: '/title', language: 'en-US' }] };

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.enforce=never', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  return { server, client, database };
}

// Words that no stemmer changes, some of them rare; the same for every run.
function makeItems(count) {
  let seed = 7;
  const chance = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const words = (n) => Array.from({ length: n }, () => `k${Math.min(chance(30), chance(30))}`).join(' ');
  return Array.from({ length: count }, (_, i) => ({ id: `${i}`, pk: `p${i % 23}`, n: i, text: words(3 + chance(40)), title: words(1 + chance(5)) }));
}

async function fill(container, items) {
  for (let i = 0; i < items.length; i += 40)
    await Promise.all(items.slice(i, i + 40).map((item) => container.items.create(item)));
}

// BM25, from its definition.
function scores(items, property, phrases) {
  const texts = items.map((item) => (item[property] ?? '').split(' ').filter(Boolean));
  const mean = texts.reduce((sum, text) => sum + text.length, 0) / items.length;
  const often = (text, phrase) => text.filter((word) => word === phrase).length;
  return new Map(items.map((item, i) => [item.id, phrases.reduce((sum, phrase) => {
    const hits = texts.filter((text) => text.includes(phrase)).length;
    const tf = often(texts[i], phrase);
    return sum + Math.log(1 + (items.length - hits + 0.5) / (hits + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * texts[i].length / mean));
  }, 0)]));
}

// Reciprocal ranks of two scores; equal ones have one rank.
function fused(maps, weights) {
  const ranks = maps.map((scored) => {
    const distinct = [...new Set([...scored.values()].map((score) => score.toFixed(9)))].sort((a, b) => b - a);
    return new Map([...scored].map(([id, score]) => [id, 1 + distinct.indexOf(score.toFixed(9))]));
  });
  return new Map([...maps[0].keys()].map((id) => [id, ranks.reduce((sum, rank, i) => sum + weights[i] / (60 + rank.get(id)), 0)]));
}

// Items with equal scores may come in any order.
function assertRanked(ids, expected, top) {
  const best = [...expected.values()].sort((a, b) => b - a).slice(0, top);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(ids.map((id) => expected.get(id).toFixed(9)), best.map((score) => score.toFixed(9)));
}

const ranked = 'SELECT TOP 12 c.id FROM c ORDER BY RANK FullTextScore(c.text, "k20", @word)';
const spec = (query) => ({ query, parameters: [{ name: '@word', value: 'k9' }] });
const ids = async (container, query, options = {}) =>
  (await container.items.query(spec(query), options).fetchAll()).resources.map((row) => row.id);

// Queries with what each item is worth in them, and how many rows are asked for.
function queries(items) {
  const text = scores(items, 'text', ['k12', 'k9']), title = scores(items, 'title', ['k3']);
  const later = new Map([...scores(items, 'text', ['k15', 'k9'])].filter(([id]) => id > 50));
  return [
    [ranked, scores(items, 'text', ['k20', 'k9']), 12],
    ['SELECT TOP 8 c.id FROM c WHERE c.n > 50 ORDER BY RANK FullTextScore(c.text, "k15", @word)', later, 8],
    ['SELECT TOP 8 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "k12", @word), FullTextScore(c.title, "k3"))', fused([text, title], [1, 1]), 8],
    ['SELECT TOP 8 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "k12", @word), FullTextScore(c.title, "k3"), [2, 0.5])', fused([text, title], [2, 0.5]), 8],
  ];
}

async function explained(server, query, name) {
  const answer = await signed(server, 'POST', `/dbs/shop/colls/${name}/docs`, {
    body: spec(query),
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json',
      'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-orrery-explain': 'true' } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

for (const throughput of [400, 80_000]) {
  test(`scores are those of the whole container, of ${throughput} RU/s`, async (t) => {
    const { server, database } = await started(t);
    const items = makeItems(160);
    const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', throughput, fullTextPolicy, indexingPolicy: indexed });
    const { container: plain } = await database.containers.create({ id: 'plain', partitionKey: '/pk', throughput });
    await fill(container, items);
    await fill(plain, items);
    assertRanked(await ids(container, ranked), scores(items, 'text', ['k20', 'k9']), 12);
    assertRanked(await ids(plain, ranked), scores(items, 'text', ['k20', 'k9']), 12);
    // one logical partition, by the statistics of all
    const some = [...scores(items, 'text', ['k20', 'k9'])].filter(([id]) => id % 23 === 5);
    assertRanked(await ids(container, 'SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, "k20", @word)', { partitionKey: 'p5' }), new Map(some), 3);
    for (const [query, expected, top] of queries(items))
      for (const searched of [container, plain])
        for (const forceQueryPlan of [false, true]) // by the server, and by the library itself
          assertRanked(await ids(searched, query, { forceQueryPlan }), expected, top);
    const middle = await ids(container, 'SELECT c.id FROM c ORDER BY RANK FullTextScore(c.text, "k20", @word) OFFSET 3 LIMIT 5');
    const whole = scores(items, 'text', ['k20', 'k9']);
    assert.deepEqual(middle.map((id) => whole.get(id).toFixed(9)), [...whole.values()].sort((a, b) => b - a).slice(3, 8).map((score) => score.toFixed(9)));
    // the index leads to the texts, and pages go on behind each other
    const contains = 'SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, "k20", @word)';
    const expected = items.filter((item) => item.text.split(' ').includes('k20') && item.text.split(' ').includes('k9')).map((item) => item.id).sort();
    assert.deepEqual((await container.items.query(spec(contains), { maxItemCount: 2 }).fetchAll()).resources.sort(), expected);
    const { _explain } = await explained(server, contains, 'texts');
    assert.equal(_explain.access.kind, 'index', JSON.stringify(_explain));
    assert.match(JSON.stringify(_explain.access), /terms of \/text/);
    assert.equal((await explained(server, contains, 'plain'))._explain.access.kind, 'scan');
    const any = (await container.items.query(spec('SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, "k20", @word)'), { maxItemCount: 3 }).fetchAll()).resources;
    assert.deepEqual(any.sort(), items.filter((item) => /\bk(20|9)\b/.test(item.text)).map((item) => item.id).sort());
    const pages = [];
    const iterator = container.items.query(spec(ranked), { maxItemCount: 5 });
    while (iterator.hasMoreResults()) pages.push((await iterator.fetchNext()).resources.map((row) => row.id));
    assert.deepEqual(pages.filter((page) => page.length).map((page) => page.length), [5, 5, 2]);
    assertRanked(pages.flat(), scores(items, 'text', ['k20', 'k9']), 12);
    // what changes is found as it is
    await container.item('3', 'p3').replace({ id: '3', pk: 'p3', n: 3, text: 'k20 k20 k9', title: '' });
    await container.item('4', 'p4').delete();
    const later = items.filter((item) => item.id !== '4').map((item) => (item.id === '3' ? { ...item, text: 'k20 k20 k9' } : item));
    assertRanked(await ids(container, ranked), scores(later, 'text', ['k20', 'k9']), 12);
    assert.equal((await ids(container, ranked))[0], '3');
  });
}

test('scores of texts and of vectors are ranked together, by the server and by the library', async (t) => {
  for (const throughput of [400, 80_000])
    for (const distanceFunction of ['cosine', 'euclidean']) {
      const { database } = await started(t);
      const items = makeItems(150).map((item, i) => ({ ...item, v: [Math.cos(i / 40), Math.sin(i / 40) * 2] }));
      const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', throughput, fullTextPolicy,
        vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: '/v', dataType: 'float32', dimensions: 2, distanceFunction }] },
        indexingPolicy: { ...indexed, excludedPaths: [...indexed.excludedPaths, { path: '/v/*' }], vectorIndexes: [{ path: '/v', type: 'flat' }] } });
      await fill(container, items);
      const alike = new Map(items.map(({ id, v: [x, y] }) => [id, distanceFunction === 'cosine' ? x / Math.hypot(x, y) : -Math.hypot(x - 1, y)]));
      const expected = fused([scores(items, 'text', ['k12', 'k9']), alike], [1, 1]);
      const query = 'SELECT TOP 6 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "k12", @word), VectorDistance(c.v, [1, 0]))';
      for (const forceQueryPlan of [false, true]) assertRanked(await ids(container, query, { forceQueryPlan }), expected, 6);
    }
});

test('a plan has what libraries fill in', async (t) => {
  const { server, database } = await started(t);
  await database.containers.create({ id: 'texts', partitionKey: '/pk' });
  const plan = async (query, features) => signed(server, 'POST', '/dbs/shop/colls/texts/docs', {
    body: spec(query), headers: { 'x-ms-cosmos-is-query-plan-request': 'True', 'x-ms-cosmos-supported-query-features': features,
      'x-ms-cosmos-query-version': '1.4', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true' } });
  const all = 'NonStreamingOrderBy, HybridSearch, WeightedRankFusion';
  const { json } = await plan('SELECT TOP 5 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"), FullTextScore(c.title, "b", "c"), [1, -2])', all);
  const info = json.hybridSearchQueryInfo;
  assert.equal(info.requiresGlobalStatistics, true);
  assert.match(info.globalStatisticsQuery, /COUNT\(1\) AS documentCount.*_FullTextWordCount\(c\.text\).*AS fullTextStatistics/);
  assert.deepEqual(info.componentWeights, [1, 2]);
  assert.deepEqual([info.skip, info.take], [0, 5]);
  assert.deepEqual(info.componentQueryInfos.map((query) => query.orderBy), [['Descending'], ['Ascending']]);
  assert.equal(info.componentWithoutPayloadQueryInfos.length, 2);
  assert.match(info.componentQueryInfos[1].rewrittenQuery, /\{documentdb-formattablehybridsearchquery-hitcountsarray-1\}/);
  assert.match(info.componentQueryInfos[1].rewrittenQuery, /\{documentdb-formattableorderbyquery-filter\}/);
  assert.ok(!json.queryInfo);
  const lacking = await plan('SELECT TOP 5 c.id FROM c ORDER BY RANK FullTextScore(c.text, "a")', 'OrderBy, Top');
  assert.equal(lacking.status, 400);
  assert.match(lacking.text, /HybridSearch/);
});

test('what cannot be ranked is refused', async (t) => {
  const { database } = await started(t);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk' });
  const refused = (query, words) => assert.rejects(container.items.query(query).fetchAll(), (error) => error.code === 400 && words.test(error.message), query);
  await refused('SELECT * FROM c ORDER BY RANK FullTextScore(c.text, "a")', /without Top or Limit/);
  await refused('SELECT TOP 50001 * FROM c ORDER BY RANK FullTextScore(c.text, "a")', /larger than 50000/);
  await refused('SELECT TOP 1 FullTextScore(c.text, "a") FROM c', /ORDER BY RANK/);
  await refused('SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.text, "a"), FullTextScore(c.text, "b"), [1])', /number of weights/);
  assert.deepEqual((await container.items.query('SELECT TOP 3 * FROM c ORDER BY RANK FullTextScore(c.text, "a")').fetchAll()).resources, []);
});

test('the index is built while a container is used, is there after a restart and through a split', async (t) => {
  const args = ['--node', `local=rocksdb:${scratch(t)}`];
  const first = await started(t, args);
  const items = makeItems(120);
  const { container } = await first.database.containers.create({ id: 'texts', partitionKey: '/pk', fullTextPolicy });
  await fill(container, items);
  const expected = scores(items, 'text', ['k20', 'k9']);
  const contains = 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @word)';
  assert.equal((await explained(first.server, contains, 'texts'))._explain.access.kind, 'scan');
  await container.replace({ ...(await container.read()).resource, indexingPolicy: indexed });
  for (;;) {
    assertRanked(await ids(container, ranked), expected, 12);
    const { headers } = await container.read({ populateQuotaInfo: true });
    if (Number(headers['x-ms-documentdb-collection-index-transformation-progress']) === 100) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal((await explained(first.server, contains, 'texts'))._explain.access.kind, 'index');
  assert.equal((await container.read()).resource.orrery.fullText, 1);
  await first.server.stop();
  const second = await started(t, args);
  const again = second.database.container('texts');
  assertRanked(await ids(again, ranked), expected, 12);
  const list = '/_orrery/containers/shop/texts/partitions';
  const [partition] = (await signed(second.server, 'GET', list)).json.partitions;
  assert.equal((await signed(second.server, 'POST', `${list}/${partition.id}/split`)).status, 202);
  for (;;) {
    assertRanked(await ids(again, ranked), expected, 12);
    assertRanked(await ids(again, ranked, { forceQueryPlan: true }), expected, 12);
    const { partitions, migration } = (await signed(second.server, 'GET', list)).json;
    if (partitions.length === 2 && !migration) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assertRanked(await ids(again, ranked), expected, 12);
  assert.equal((await explained(second.server, contains, 'texts'))._explain.access.kind, 'index');
});

// What a query cost, by the server's own figures.
const actual = async (server, query, name = 'texts') => (await explained(server, query, name))._explain.actual;

test('entries tell scores, hits and sums: texts are read where rows are made of them', async (t) => {
  const { server, database } = await started(t);
  const items = makeItems(300);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', fullTextPolicy, indexingPolicy: indexed });
  await fill(container, items);
  const has = (item, ...words) => words.every((word) => item.text.split(' ').includes(word));
  const both = items.filter((item) => has(item, 'k14', 'k9')).length;
  assert.ok(both > 0 && both < items.filter((item) => has(item, 'k9')).length);
  const all = await actual(server, 'SELECT c.n FROM c WHERE FullTextContainsAll(c.text, "k14", @word)');
  assert.deepEqual([all.itemsLoaded, all.itemsMatched], [both, both]);
  // the id stands in the entry
  const keys = await actual(server, 'SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, "k14", @word)');
  assert.deepEqual([keys.itemsLoaded, keys.rows], [0, both]);
  const counted = await actual(server, 'SELECT VALUE COUNT(1) FROM c WHERE FullTextContainsAny(c.text, "k14", @word)');
  assert.equal(counted.itemsLoaded, 0);
  const best = await actual(server, 'SELECT TOP 5 c.id FROM c ORDER BY RANK FullTextScore(c.text, "k14", @word)');
  assert.equal(best.itemsLoaded, 5);
  const sums = 'SELECT COUNT(1) AS n, SUM(_FullTextWordCount(c.text)) AS words, COUNTIF(FullTextContains(c.text, "k14")) AS hits FROM c';
  assert.equal((await actual(server, sums)).itemsLoaded, 0);
  assert.deepEqual((await container.items.query(sums).fetchAll()).resources, [{ n: 300,
    words: items.reduce((sum, item) => sum + item.text.split(' ').length, 0), hits: items.filter((item) => has(item, 'k14')).length }]);
  // a phrase of two words is looked for in what has both, and found where they stand together
  const together = items.filter((item) => / k14 k9 /.test(` ${item.text} `)).length;
  const phrase = await actual(server, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "k14 k9")');
  assert.deepEqual([phrase.itemsLoaded, phrase.itemsMatched], [both, together]);
});

test('entries that are kept in memory give the same rows for the same charge, and a write makes them useless', async (t) => {
  const { database } = await started(t);
  const items = makeItems(200);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', throughput: 80_000, fullTextPolicy, indexingPolicy: indexed });
  await fill(container, items);
  const filters = ['FullTextContains(c.text, @word)', 'FullTextContainsAll(c.text, "k14", @word)', 'FullTextContainsAll(c.text, "k28", "k0", "k1")',
    'FullTextContainsAny(c.text, "k28", "k25", @word)', 'FullTextContains(c.text, "k1 k2")'];
  const matches = [(has) => has('k9'), (has) => has('k14') && has('k9'), (has) => has('k28') && has('k0') && has('k1'),
    (has) => has('k28') || has('k25') || has('k9'), (has, text) => / k1 k2 /.test(` ${text} `)];
  const check = async () => {
    for (const [i, filter] of filters.entries()) {
      const expected = items.filter((item) => matches[i]((word) => item.text.split(' ').includes(word), item.text)).map((item) => item.id).sort();
      const charges = new Set();
      for (let times = 0; times < 3; times++) { // walked, put into memory, found there
        const { resources, requestCharge } = await container.items.query(spec(`SELECT VALUE c.id FROM c WHERE ${filter}`)).fetchAll();
        assert.deepEqual(resources.sort(), expected, filter);
        charges.add(requestCharge.toFixed(2));
      }
      assert.equal(charges.size, 1, `${filter}: ${[...charges]}`);
      const pages = await container.items.query(spec(`SELECT VALUE c.id FROM c WHERE ${filter}`), { maxItemCount: 7 }).fetchAll();
      assert.deepEqual(pages.resources.sort(), expected, filter);
    }
    assertRanked(await ids(container, ranked), scores(items, 'text', ['k20', 'k9']), 12);
  };
  await check();
  for (const [i, text] of ['k9 k14', 'k28 k25 k1 k2', 'k0'].entries()) {
    items[i].text = text;
    await container.item(items[i].id, items[i].pk).replace(items[i]);
    await check();
  }
});

test('items that expire and texts of very many words are ranked as by their texts', async (t) => {
  const { database } = await started(t);
  const long = Array.from({ length: 5000 }, (_, i) => `w${i}`).join(' ');
  const items = [...makeItems(60), { id: 'long', pk: 'p1', n: 60, text: `${long} ${'k9 '.repeat(4000)}`, title: 'k3' }, { id: 'other', pk: 'p2', n: 61, text: long, title: '' }];
  for (const defaultTtl of [undefined, -1]) {
    const { container } = await database.containers.create({ id: `texts${defaultTtl ?? ''}`, partitionKey: '/pk', throughput: 80_000, fullTextPolicy, indexingPolicy: indexed, defaultTtl });
    await fill(container, items);
    // one that is over the second it is written
    if (defaultTtl) {
      await container.items.create({ id: 'gone', pk: 'p1', text: 'k9 k9 k9 k20', ttl: 1 });
      while ((await container.item('gone', 'p1').read()).statusCode !== 404) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (const forceQueryPlan of [false, true]) {
      assertRanked(await ids(container, ranked, { forceQueryPlan }), scores(items, 'text', ['k20', 'k9']), 12);
      assertRanked(await ids(container, 'SELECT TOP 70 c.id FROM c ORDER BY RANK FullTextScore(c.text, @word)', { forceQueryPlan }), scores(items, 'text', ['k9']), 70);
    }
    const count = async (filter) => (await container.items.query(spec(`SELECT VALUE COUNT(1) FROM c WHERE ${filter}`)).fetchAll()).resources[0];
    const having = (...words) => items.filter((item) => words.every((word) => item.text.split(' ').includes(word))).length;
    assert.equal(await count('FullTextContains(c.text, @word)'), having('k9'));
    assert.equal(await count('FullTextContainsAll(c.text, @word, "w77")'), having('k9', 'w77'));
    assert.equal(await count('FullTextContainsAll(c.text, @word, "k20")'), having('k9', 'k20'));
  }
});

test('another language of a path makes other entries', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', fullTextPolicy, indexingPolicy: indexed });
  await container.items.create({ id: '1', pk: 'a', text: 'Die Häuser am See' });
  const found = async () => (await container.items.query('SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "haus")').fetchAll()).resources;
  assert.deepEqual(await found(), []);
  await container.replace({ ...(await container.read()).resource,
    fullTextPolicy: { defaultLanguage: 'de-DE', fullTextPaths: [{ path: '/text', language: 'de-DE' }, { path: '/title', language: 'de-DE' }] } });
  for (;;) {
    assert.deepEqual(await found(), ['1']);
    const { headers } = await container.read({ populateQuotaInfo: true });
    if (Number(headers['x-ms-documentdb-collection-index-transformation-progress']) === 100) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal((await explained(server, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "haus")', 'texts'))._explain.access.kind, 'index');
  assert.deepEqual(await found(), ['1']);
});

test('texts of any length are written, indexed and ranked', async (t) => {
  const { database } = await started(t);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', fullTextPolicy, indexingPolicy: indexed });
  await container.items.create({ id: 'unbroken', pk: 'a', text: 'x'.repeat(1_900_000) });
  await container.items.create({ id: 'words', pk: 'a', text: Array.from({ length: 100_000 }, (_, i) => `w${i}`).join(' ') });
  await container.items.create({ id: 'few', pk: 'a', text: 'w77777 and others' });
  const found = async (query) => (await container.items.query(query).fetchAll()).resources;
  assert.deepEqual((await found('SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "w77777")')).sort(), ['few', 'words']);
  assert.deepEqual((await found('SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, "w99999", "other")')).sort(), ['few', 'words']);
  assert.deepEqual(await found('SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "w100000")'), []);
  assert.deepEqual((await found('SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, "w77777")')).map((row) => row.id), ['few', 'words']);
});
