// A data directory that the version before index definitions wrote (tests/e2e/former/README.md says how) opens,
// and items, index, unique keys, feeds and sums agree with what was written, before and after more is written.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'node:test';
import { signed } from './rest.js';
import { root, scratch, Server } from './server.js';

const archive = join(root, 'tests/e2e/former/data.tar.xz');
const count = 30;

const containers = {
  plain: {
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
    indexingPolicy: {
      includedPaths: [{ path: '/*' }],
      compositeIndexes: [[{ path: '/a', order: 'ascending' }, { path: '/b', order: 'descending' }]],
    },
  },
  narrow: {
    partitionKey: { paths: ['/pk'], kind: 'Hash' },
    defaultTtl: 1000000000,
    indexingPolicy: { includedPaths: [{ path: '/a/?' }, { path: '/tags/[]/?' }], excludedPaths: [{ path: '/*' }] },
  },
  unique: {
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/email'] }, { paths: ['/a', '/b'] }] },
    changeFeedPolicy: { retentionDuration: 10000 },
  },
  hierarchical: { partitionKey: { paths: ['/pk', '/u', '/v'], kind: 'MultiHash', version: 2 } },
  ranged: { partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 }, orrery: { strategy: 'range' } },
};

function item(i) {
  return {
    id: `item ${i}`, pk: `p${i % 4}`, u: i % 3, v: i % 2 === 0, a: i % 5, b: i, email: `${i}@x`,
    tags: [`t${i % 3}`, i % 7], deep: { long: 'x'.repeat(i * 10), nothing: null }, ...(i % 6 === 0 ? { ttl: 900000000 } : {}),
  };
}

function keyOf(name, { pk, u, v }) {
  return { 'x-ms-documentdb-partitionkey': JSON.stringify(name === 'hierarchical' ? [pk, u, v] : [pk]) };
}

async function call(server, expected, method, path, options) {
  const answer = await signed(server, method, path, options);
  assert.equal(answer.status, expected, `${method} ${path}: ${answer.text}`);
  return answer;
}

const create = (server, name, document, expected = 201) =>
  call(server, expected, 'POST', `/dbs/d/colls/${name}/docs`, { body: document, headers: keyOf(name, document) });
const path = (name, id) => `/dbs/d/colls/${name}/docs/${encodeURIComponent(id)}`;

// Every third is written again, every fifth deleted.
async function write(server) {
  await call(server, 201, 'POST', '/dbs', { body: { id: 'd' } });
  for (const [name, definition] of Object.entries(containers)) {
    await call(server, 201, 'POST', '/dbs/d/colls', { body: { id: name, ...definition } });
    for (let i = 0; i < count; i++) await create(server, name, item(i));
    for (let i = 0; i < count; i += 3)
      await call(server, 200, 'PUT', path(name, item(i).id), { body: changed(i), headers: keyOf(name, item(i)) });
    for (let i = 0; i < count; i += 5) await call(server, 204, 'DELETE', path(name, item(i).id), { headers: keyOf(name, item(i)) });
  }
}

const changed = (i) => ({ ...item(i), b: 1000 + i, tags: ['changed'] });
const bare = ({ _rid, _self, _etag, _attachments, _ts, ...own }) => own;
const byB = (a, b) => a.b - b.b;

function written() {
  const items = [];
  for (let i = 0; i < count; i++) if (i % 5 !== 0) items.push(i % 3 === 0 ? changed(i) : item(i));
  return items.sort(byB);
}

async function query(server, name, text) {
  const rows = [];
  let continuation;
  do {
    const answer = await call(server, 200, 'POST', `/dbs/d/colls/${name}/docs`, {
      body: { query: text, parameters: [] },
      headers: {
        'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true',
        'x-ms-documentdb-query-enablecrosspartition': 'true', ...(continuation ? { 'x-ms-continuation': continuation } : {}),
      },
    });
    rows.push(...answer.json.Documents);
    continuation = answer.headers['x-ms-continuation'];
  } while (continuation);
  return rows;
}

// What is asked of an index must be what a walk over all items gives.
async function agree(server, name, items) {
  const all = (await query(server, name, 'SELECT * FROM c')).map(bare).sort(byB);
  assert.deepEqual(all, items, name);
  const ids = async (where) => (await query(server, name, `SELECT VALUE c.b FROM c WHERE ${where}`)).sort((a, b) => a - b);
  const of = (wanted) => items.filter(wanted).map(({ b }) => b);
  assert.deepEqual(await ids('c.a = 2'), of(({ a }) => a === 2));
  assert.deepEqual(await ids('c.a > 1 AND c.a <= 3'), of(({ a }) => a > 1 && a <= 3));
  assert.deepEqual(await ids("ARRAY_CONTAINS(c.tags, 't1')"), of(({ tags }) => tags.includes('t1')));
  assert.deepEqual(await ids("c.pk = 'p1' AND c.a = 4"), of(({ pk, a }) => pk === 'p1' && a === 4));
  assert.deepEqual(await ids('c.deep.nothing = null'), of(() => true));
  assert.deepEqual(await query(server, name, 'SELECT VALUE COUNT(1) FROM c WHERE c.a >= 3'), [of(({ a }) => a >= 3).length]);
  for (const { id, pk, u, v, b } of items) {
    const read = await call(server, 200, 'GET', path(name, id), { headers: keyOf(name, { pk, u, v }) });
    assert.equal(read.json.b, b);
  }
  const feed = await call(server, 200, 'GET', `/dbs/d/colls/${name}/docs`, { headers: { 'a-im': 'Incremental feed', 'x-ms-max-item-count': '1000', 'x-ms-documentdb-partitionkeyrangeid': await onlyRange(server, name) } });
  assert.deepEqual(feed.json.Documents.map(({ _lsn, ...own }) => bare(own)).sort(byB), items);
}

async function onlyRange(server, name) {
  const { json } = await call(server, 200, 'GET', `/dbs/d/colls/${name}/pkranges`);
  assert.equal(json.PartitionKeyRanges.length, 1);
  return json.PartitionKeyRanges[0].id;
}

async function usage(server, name) {
  const answer = await call(server, 200, 'GET', `/dbs/d/colls/${name}`, { headers: { 'x-ms-documentdb-populatequotainfo': 'true' } });
  return Number(/documentsCount=(\d+)/.exec(answer.headers['x-ms-resource-usage'])?.[1]);
}

if (process.env.FORMER_MAKE)
  test('make', async (t) => {
    const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${process.env.FORMER_MAKE}`]);
    await write(server);
    for (const name of Object.keys(containers)) await agree(server, name, written());
    await server.stop();
  });
else
  test('a data directory of the version before opens and everything in it agrees', async (t) => {
    const directory = scratch(t);
    execFileSync('tar', ['-xJf', archive, '-C', directory]);
    const node = ['--dev', '--node', `local=rocksdb:${join(directory, 'data')}`];
    let server = await Server.start(t, node);
    for (const name of Object.keys(containers)) {
      const items = written();
      await agree(server, name, items);
      assert.equal(await usage(server, name), items.length);
      if (name === 'plain') {
        const rows = await query(server, name, "SELECT VALUE c.b FROM c WHERE c.pk = 'p1' ORDER BY c.a, c.b DESC");
        assert.deepEqual(rows, items.filter(({ pk }) => pk === 'p1').sort((x, y) => x.a - y.a || y.b - x.b).map(({ b }) => b));
      }
      if (name === 'unique') {
        const { pk, email } = items[0];
        await create(server, name, { id: 'another', pk, email, a: 77, b: 5000 }, 409);
        await create(server, name, { id: 'one more', pk, email: 'new', a: items[0].a, b: items[0].b }, 409);
        await create(server, name, item(0)); // who had these is deleted
        await call(server, 204, 'DELETE', path(name, item(0).id), { headers: keyOf(name, item(0)) });
      }
      // Written over by this version, entries of before must go.
      const next = items.map((own) => ({ ...own, a: own.a + 1, tags: ['t1'] }));
      for (const own of next) await call(server, 200, 'PUT', path(name, own.id), { body: own, headers: keyOf(name, own) });
      await agree(server, name, next);
      assert.equal(await usage(server, name), next.length);
    }
    await server.stop();
    server = await Server.start(t, node);
    for (const name of Object.keys(containers))
      await agree(server, name, written().map((own) => ({ ...own, a: own.a + 1, tags: ['t1'] })));
    await searched(server);
    await server.stop();
    server = await Server.start(t, node);
    await found(server, written());
  });

// Words and places of items that the version before wrote, by indexes that it knew nothing of.
async function searched(server) {
  const definition = (await call(server, 200, 'GET', '/dbs/d/colls/narrow')).json;
  assert.equal(definition.orrery?.fullText, undefined);
  await call(server, 200, 'PUT', '/dbs/d/colls/narrow', {
    body: {
      ...definition, fullTextPolicy: { defaultLanguage: 'en-US', fullTextPaths: [{ path: '/email', language: 'en-US' }] },
      indexingPolicy: {
        ...definition.indexingPolicy, fullTextIndexes: [{ path: '/email' }], spatialIndexes: [{ path: '/at/?', types: ['Point'] }],
      },
    },
  });
  for (;;) {
    const { headers } = await call(server, 200, 'GET', '/dbs/d/colls/narrow', { headers: { 'x-ms-documentdb-populatequotainfo': 'true' } });
    if (Number(headers['x-ms-documentdb-collection-index-transformation-progress']) === 100) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { orrery } = (await call(server, 200, 'GET', '/dbs/d/colls/narrow')).json;
  assert.deepEqual([orrery.fullText, orrery.spatial], [1, 1]);
  for (const own of written())
    await call(server, 200, 'PUT', path('narrow', own.id), {
      body: { ...own, at: { type: 'Point', coordinates: [own.b % 30, 1] } }, headers: keyOf('narrow', own),
    });
  await found(server, written());
}

async function found(server, items) {
  const ids = async (where) => (await query(server, 'narrow', `SELECT VALUE c.b FROM c WHERE ${where}`)).sort((a, b) => a - b);
  for (const { email, b } of items) assert.deepEqual(await ids(`FullTextContains(c.email, "${email.split('@')[0]}")`), [b]);
  assert.deepEqual(await ids('FullTextContains(c.email, "x")'), items.map(({ b }) => b));
  const near = 'ST_DISTANCE(c.at, {"type":"Point","coordinates":[7,1]}) < 1000';
  assert.deepEqual(await ids(near), items.filter(({ b }) => b % 30 === 7).map(({ b }) => b));
  const best = await query(server, 'narrow', 'SELECT TOP 1 VALUE c.b FROM c ORDER BY RANK FullTextScore(c.email, "7")');
  assert.deepEqual(best, [items.find(({ email }) => email === '7@x').b]);
}
