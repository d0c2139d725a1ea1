// Databases and containers: the unmodified client, and requests as other client libraries send them.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return { server, client };
}

async function fails(promise, code, message) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, code, error.message);
    if (message) assert.match(error.message, message);
    return true;
  });
}

test('databases are created, read, listed and deleted', async (t) => {
  const { client } = await started(t);
  for (const id of ['b', 'a', 'käse & co', 'colls']) {
    const created = await client.databases.create({ id });
    assert.equal(created.statusCode, 201);
    assert.equal(created.resource.id, id);
    const { resource } = await client.database(id).read();
    assert.deepEqual(resource, created.resource);
    assert.equal(resource._self, `dbs/${resource._rid}/`);
    assert.equal(resource._colls, 'colls/');
    assert.equal(resource._users, 'users/');
  }
  await fails(client.databases.create({ id: 'a' }), 409);
  const { resources } = await client.databases.readAll().fetchAll();
  assert.deepEqual(resources.map((database) => database.id), ['b', 'a', 'käse & co', 'colls']);
  const byRid = await client.database(resources[1]._rid).read();
  assert.equal(byRid.resource.id, 'a');
  assert.equal((await client.database('a').delete()).statusCode, 204);
  await fails(client.database('a').read(), 404);
  await fails(client.database('a').delete(), 404);
});

test('names that are none are refused and change nothing', async (t) => {
  const { server, client } = await started(t);
  for (const id of ['a/b', 'a\\b', 'a#b', 'a?b', 'a ', '', 'x'.repeat(256)]) {
    const answer = await signed(server, 'POST', '/dbs', { body: { id } });
    assert.equal(answer.status, 400, JSON.stringify(id));
    assert.equal(answer.json.code, 'BadRequest');
  }
  for (const body of ['', '{', '[]', 'null', '{}', '{"id":1}', '{"id":"a","id":"b"}', '{"id":"a"} x']) {
    const answer = await signed(server, 'POST', '/dbs', { body });
    assert.equal(answer.status, 400, body);
    assert.ok(answer.json.message);
  }
  for (const [name, value] of [
    ['x-ms-offer-throughput', 'many'], ['x-ms-offer-throughput', '399'], ['x-ms-offer-throughput', '-200'],
    ['x-ms-offer-throughput', '450'], ['x-ms-cosmos-offer-autopilot-settings', '{'],
    ['x-ms-cosmos-offer-autopilot-settings', '{"maxThroughput":1500}'],
    ['x-ms-cosmos-offer-autopilot-settings', '{}'],
  ]) {
    const answer = await signed(server, 'POST', '/dbs', { headers: { [name]: value }, body: { id: 'a' } });
    assert.equal(answer.status, 400, `${name}: ${value}`);
  }
  const { resources } = await client.databases.readAll().fetchAll();
  assert.equal(resources.length, 0);
});

test('a feed comes in pages, and a page filled exactly has a continuation', async (t) => {
  const { server, client } = await started(t);
  for (let i = 0; i < 4; i++) await client.databases.create({ id: `d${i}` });
  const pages = [];
  const iterator = client.databases.readAll({ maxItemCount: 2 });
  while (iterator.hasMoreResults()) {
    const page = await iterator.fetchNext();
    pages.push(page.resources.map((database) => database.id));
  }
  assert.deepEqual(pages, [['d0', 'd1'], ['d2', 'd3'], []]);
  const first = await signed(server, 'GET', '/dbs', { headers: { 'x-ms-max-item-count': '3' } });
  assert.equal(first.headers['x-ms-item-count'], '3');
  const continuation = first.headers['x-ms-continuation'];
  assert.ok(continuation.length < 1024);
  await client.database('d2').delete(); // where the page ended
  const rest = await signed(server, 'GET', '/dbs', { headers: { 'x-ms-continuation': continuation } });
  assert.deepEqual(rest.json.Databases.map((database) => database.id), ['d3']);
  assert.equal(rest.headers['x-ms-continuation'], undefined);
  const all = await signed(server, 'GET', '/dbs', { headers: { 'x-ms-max-item-count': '-1' } });
  assert.deepEqual([all.json._rid, all.json._count], ['', 3]);
  assert.equal(all.headers['x-ms-continuation'], undefined);
  for (const bad of ['x', '+RID:~#RT:1#TRC:1', '+RID:~AAAA#RT:1#TRC:1', `${continuation}#`, 'a'.repeat(2000)]) {
    const answer = await signed(server, 'GET', '/dbs', { headers: { 'x-ms-continuation': bad } });
    assert.equal(answer.status, 400, bad);
    assert.match(answer.json.message, /Invalid Continuation Token/);
  }
  const elsewhere = await signed(server, 'GET', '/dbs/d0/colls', { headers: { 'x-ms-continuation': continuation } });
  assert.equal(elsewhere.status, 400);
  for (const bad of ['0', '-2', 'two'])
    assert.equal((await signed(server, 'GET', '/dbs', { headers: { 'x-ms-max-item-count': bad } })).status, 400);
});

test('a container shows its defaults, is replaced and deleted', async (t) => {
  const { client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource, container } = await database.containers.create({ id: 'c', partitionKey: { paths: ['/pk'] } });
  assert.deepEqual(resource.partitionKey, { paths: ['/pk'], kind: 'Hash' });
  assert.deepEqual(resource.indexingPolicy, {
    indexingMode: 'consistent', automatic: true, includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/"_etag"/?' }],
  });
  assert.deepEqual(resource.geospatialConfig, { type: 'Geography' });
  assert.deepEqual(resource.uniqueKeyPolicy, { uniqueKeys: [] });
  assert.equal(resource.conflictResolutionPolicy.mode, 'LastWriterWins');
  for (const [name, value] of Object.entries({
    _docs: 'docs/', _sprocs: 'sprocs/', _triggers: 'triggers/', _udfs: 'udfs/', _conflicts: 'conflicts/',
  }))
    assert.equal(resource[name], value);
  const fresh = await container.read();
  assert.equal(fresh.headers['x-ms-documentdb-collection-index-transformation-progress'], '100');
  await fails(database.containers.create({ id: 'c', partitionKey: '/pk' }), 409);
  const replaced = await container.replace({ id: 'c', partitionKey: { paths: ['/pk'] }, defaultTtl: 60 });
  assert.equal(replaced.resource.defaultTtl, 60);
  assert.notEqual(replaced.resource._etag, resource._etag);
  const off = await container.replace({ id: 'c', partitionKey: { paths: ['/pk'] } });
  assert.equal(off.resource.defaultTtl, undefined);
  await fails(container.replace({ id: 'c', partitionKey: { paths: ['/other'] } }), 400);
  await fails(container.replace({ id: 'other', partitionKey: { paths: ['/pk'] } }), 400);
  const read = await container.read();
  assert.equal(read.headers['etag'], read.resource._etag);
  await container.delete();
  await fails(container.read(), 404);
  const again = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  assert.notEqual(again.resource._rid, resource._rid);
});

test('metadata answers to If-Match and If-None-Match', async (t) => {
  const { server, client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const path = '/dbs/d/colls/c';
  for (const etag of [resource._etag, resource._etag.slice(1, -1), '*']) {
    const seen = await signed(server, 'GET', path, { headers: { 'if-none-match': etag } });
    assert.deepEqual([seen.status, seen.text, seen.headers.etag], [304, '', resource._etag]);
  }
  assert.equal((await signed(server, 'GET', path, { headers: { 'if-none-match': '"x"' } })).status, 200);
  const body = { id: 'c', partitionKey: { paths: ['/pk'] } };
  const stale = { headers: { 'if-match': '"x"' } };
  assert.equal((await signed(server, 'PUT', path, { ...stale, body })).status, 412);
  assert.equal((await signed(server, 'DELETE', path, stale)).status, 412);
  assert.equal((await signed(server, 'DELETE', '/dbs/d', stale)).status, 412);
  const fresh = { headers: { 'if-match': resource._etag } };
  assert.equal((await signed(server, 'PUT', path, { ...fresh, body })).status, 200);
  assert.equal((await signed(server, 'DELETE', path, fresh)).status, 412); // it has another by now
});

test('policies are kept, and wrong ones refused in the words of the service', async (t) => {
  const { client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const embedding = { path: '/v', dataType: 'float32', dimensions: 1536, distanceFunction: 'cosine' };
  const vectors = { vectorEmbeddings: [embedding] };
  const texts = { defaultLanguage: 'en-US', fullTextPaths: [{ path: '/text', language: 'en-US' }] };
  const encryption = {
    includedPaths: [{
      path: '/ssn', clientEncryptionKeyId: 'k', encryptionType: 'Deterministic',
      encryptionAlgorithm: 'AEAD_AES_256_CBC_HMAC_SHA256',
    }],
    policyFormatVersion: 1,
  };
  const { resource } = await database.containers.create({
    id: 'all', partitionKey: '/pk', vectorEmbeddingPolicy: vectors, fullTextPolicy: texts,
    clientEncryptionPolicy: encryption, uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/a', '/b'] }] },
    geospatialConfig: { type: 'Geometry' },
    indexingPolicy: {
      excludedPaths: [{ path: '/v/*' }], vectorIndexes: [{ path: '/v', type: 'diskANN' }],
      fullTextIndexes: [{ path: '/text' }], spatialIndexes: [{ path: '/place/*', types: ['Point'], boundingBox: { xmin: 0, ymin: 0, xmax: 9, ymax: 9 } }],
      compositeIndexes: [[{ path: '/a', order: 'ascending' }, { path: '/b', order: 'descending' }]],
    },
  });
  assert.deepEqual(resource.vectorEmbeddingPolicy, vectors);
  assert.deepEqual(resource.fullTextPolicy, texts);
  assert.deepEqual(resource.clientEncryptionPolicy, encryption);
  assert.deepEqual(resource.geospatialConfig, { type: 'Geometry' });
  assert.equal(resource.indexingPolicy.excludedPaths.length, 2); // _etag besides
  const vector = (change, indexes) => ({
    vectorEmbeddingPolicy: { vectorEmbeddings: [{ ...embedding, ...change }] },
    ...(indexes ? { indexingPolicy: { vectorIndexes: indexes } } : {}),
  });
  const refused = [
    [vector({ dimensions: -1 }), /invalid Dimensions:-1, it should be positive integer/],
    [vector({ dimensions: 5000 }), /Dimensions:5000 which is more than max:4096/],
    [vector({}, [{ path: '/v', type: 'flat' }]), /Dimensions:1536 which is more than max:505/],
    [vector({ dataType: 'float64' }), /invalid DataType/],
    [vector({ distanceFunction: 'x' }), /invalid DistanceFunction:x/],
    [vector({}, [{ path: '/vector2', type: 'diskANN' }]), /vector2 not matching in Embedding's path/],
    [vector({}, [{ path: '/v', type: 'notFlat' }]), /Index Type::notFlat is invalid/],
    [{ indexingPolicy: { fullTextIndexes: [{ path: '/text' }] } }, /not in the full text policy/],
    [{ defaultTtl: 0 }, /defaultTtl/],
    [{ partitionKey: { paths: ['/a/'] } }, /trailing slash or wildcard/],
    [{ partitionKey: { paths: ['/a', '/b'] } }, /Too many partition key paths/],
    [{ partitionKey: { paths: ['/a', '/b', '/c', '/d'], kind: 'MultiHash', version: 2 } }, /Too many partition key paths/],
    [{ uniqueKeyPolicy: { uniqueKeys: [{ paths: [] }] } }, /no paths/],
    [{ clientEncryptionPolicy: { includedPaths: [{ path: '/x' }] } }, /clientEncryptionKeyId/],
  ];
  for (const [part, message] of refused)
    await fails(database.containers.create({ id: 'bad', partitionKey: { paths: ['/pk'] }, ...part }), 400, message);
  await fails(database.containers.create({
    id: 'bad', partitionKey: '/pk',
    conflictResolutionPolicy: { mode: 'Custom', conflictResolutionProcedure: 'dbs/d/colls/bad/sprocs/x' },
  }), 501, /stored procedures/);
  const { resources } = await database.containers.readAll().fetchAll();
  assert.deepEqual(resources.map((container) => container.id), ['all']);
});

test('only old clients make a container without a partition key', async (t) => {
  const { server, client } = await started(t);
  await client.databases.create({ id: 'd' });
  const body = { id: 'fixed' };
  const modern = await signed(server, 'POST', '/dbs/d/colls', { body });
  assert.equal(modern.status, 400);
  assert.equal(modern.headers['x-ms-substatus'], '1018');
  const old = { 'x-ms-version': '2018-06-18' };
  const created = await signed(server, 'POST', '/dbs/d/colls', { headers: old, body });
  assert.equal(created.status, 201);
  assert.equal(created.json.partitionKey, undefined);
  const { resource } = await client.database('d').container('fixed').read();
  assert.deepEqual(resource.partitionKey, { paths: ['/_partitionKey'], kind: 'Hash', systemKey: true });
  const javascript = await client.database('d').containers.create({ id: 'js' });
  assert.deepEqual(javascript.resource.partitionKey.paths, ['/_partitionKey']);
  assert.equal(javascript.resource.partitionKey.systemKey, undefined);
});

test('a container tells what it stores', async (t) => {
  const { server, client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  for (let i = 0; i < 10; i++)
    await container.items.create({ id: `${i}`, pk: i < 7 ? 'big' : `small${i}`, text: 'x'.repeat(2000) });
  const read = await signed(server, 'GET', '/dbs/d/colls/c', {
    headers: { 'x-ms-documentdb-populatequotainfo': 'True', 'x-ms-documentdb-populatepartitionstatistics': 'True' },
  });
  assert.match(read.headers['x-ms-resource-quota'], /documentsCount=-1;collectionSize=10485760;/);
  const used = Number(/collectionSize=(\d+);/.exec(read.headers['x-ms-resource-usage'])[1]);
  assert.ok(used >= 20 && used <= 25, read.headers['x-ms-resource-usage']);
  assert.match(read.headers['x-ms-resource-usage'], /documentsCount=10;/);
  const [range] = read.json.statistics;
  assert.equal(range.documentCount, 10);
  assert.equal(range.sizeInKB, used);
  assert.equal(range.partitionKeys.length, 3);
  assert.deepEqual(range.partitionKeys[0].partitionKey, ['big']);
  assert.ok(range.partitionKeys[0].sizeInKB >= 14);
  const plain = await signed(server, 'GET', '/dbs/d/colls/c');
  assert.equal(plain.json.statistics, undefined);
  assert.equal(plain.headers['x-ms-resource-usage'], undefined);
});

test('a changed index policy shows its progress', async (t) => {
  const { client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  await container.items.create({ id: '1', pk: 'x' });
  const indexingPolicy = { includedPaths: [{ path: '/a/?' }], excludedPaths: [{ path: '/*' }] };
  await container.replace({ id: 'c', partitionKey: { paths: ['/pk'] }, indexingPolicy });
  let progress;
  do {
    const { headers } = await container.read();
    progress = Number(headers['x-ms-documentdb-collection-index-transformation-progress']);
    assert.ok(progress >= 0 && progress <= 100);
  } while (progress < 100);
});

test('what is missing says which part of the path it is', async (t) => {
  const { server, client } = await started(t);
  await client.databases.create({ id: 'd' });
  const substatus = async (method, path, body) => {
    const answer = await signed(server, method, path, { body });
    return [answer.status, answer.headers['x-ms-substatus'], answer.json?.code];
  };
  assert.deepEqual(await substatus('GET', '/dbs/none'), [404, undefined, 'NotFound']);
  assert.deepEqual(await substatus('GET', '/dbs/d/colls/none'), [404, undefined, 'NotFound']);
  assert.deepEqual(await substatus('GET', '/dbs/none/colls'), [404, '1003', 'NotFound']);
  assert.deepEqual(await substatus('GET', '/dbs/none/colls/c'), [404, '1003', 'NotFound']);
  assert.deepEqual(await substatus('POST', '/dbs/none/colls', { id: 'c', partitionKey: { paths: ['/a'] } }),
    [404, '1003', 'NotFound']);
  assert.deepEqual(await substatus('GET', '/dbs/d/colls/none/pkranges'), [404, '1003', 'NotFound']);
});

test('every metadata answer has its headers', async (t) => {
  const { server, client } = await started(t);
  const { database } = await client.databases.create({ id: 'my db' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const read = await signed(server, 'GET', '/dbs/my%20db/colls/c', {
    headers: { 'x-ms-activity-id': '0ca2d2ea-6a47-4a86-9a1c-a2b8e9aa4c1e' },
  });
  assert.equal(read.headers['x-ms-activity-id'], '0ca2d2ea-6a47-4a86-9a1c-a2b8e9aa4c1e');
  for (const name of ['date', 'x-ms-request-charge', 'x-ms-schemaversion', 'x-ms-serviceversion',
    'x-ms-gatewayversion', 'x-ms-last-state-change-utc', 'x-ms-request-duration-ms', 'lsn', 'etag'])
    assert.ok(read.headers[name], name);
  assert.match(read.headers['content-type'], /^application\/json/);
  assert.equal(read.headers['x-ms-content-path'], database ? (await database.read()).resource._rid : '');
  assert.equal(read.headers['x-ms-alt-content-path'], 'dbs/my%20db');
  // By rid the names are told all the same: clients keep their session tokens by them.
  const item = await signed(server, 'POST', `/${resource._self}docs`, {
    headers: { 'x-ms-documentdb-partitionkey': '["x"]' }, body: { id: '1', pk: 'x' },
    sign: { type: 'docs', link: resource._rid.toLowerCase() },
  });
  assert.equal(item.status, 201, item.text);
  assert.equal(item.headers['x-ms-alt-content-path'], 'dbs/my%20db/colls/c');
  assert.equal(item.headers['x-ms-content-path'], resource._rid);
});

test('a thousand containers live in one server', async (t) => {
  const { client } = await started(t, ['--set', 'account.resources_max=2000']);
  const { database } = await client.databases.create({ id: 'd' });
  const ids = Array.from({ length: 1000 }, (_, i) => `c${i}`);
  for (let at = 0; at < ids.length; at += 50)
    await Promise.all(ids.slice(at, at + 50).map((id) => database.containers.create({ id, partitionKey: '/pk' })));
  const { resources } = await database.containers.readAll().fetchAll();
  assert.deepEqual(new Set(resources.map((container) => container.id)), new Set(ids));
  assert.equal(resources.length, 1000);
  await database.container('c999').items.create({ id: '1', pk: 'x' });
  await database.delete();
});

test('an account has as many resources as it may', async (t) => {
  const { client } = await started(t, ['--set', 'account.resources_max=2']);
  const { database } = await client.databases.create({ id: 'd' });
  await database.containers.create({ id: 'c', partitionKey: '/pk' });
  await fails(client.databases.create({ id: 'e' }), 403);
});

test('metadata has a budget of its own when it is set', async (t) => {
  const { server } = await started(t, ['--set', 'account.metadata_ru=10']);
  const answers = await Promise.all(Array.from({ length: 40 }, () => signed(server, 'GET', '/dbs')));
  const refused = answers.filter((answer) => answer.status === 429);
  assert.ok(refused.length > 0 && refused.length < 40);
  for (const answer of refused) {
    assert.equal(answer.headers['x-ms-substatus'], '3210');
    assert.ok(Number(answer.headers['x-ms-retry-after-ms']) >= 1);
    assert.equal(answer.json.code, 'TooManyRequests');
  }
  assert.equal((await signed(server, 'GET', '/')).status, 200);
});

test('the client finds its session token again, whatever the names', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const sent = [];
  const client = new CosmosClient({
    endpoint: server.url, key: emulatorKey, consistencyLevel: 'Session',
    plugins: [{
      on: 'request',
      plugin: async (context, diagnostics, next) => {
        if (context.resourceType === 'docs' && context.operationType === 'read') sent.push(context.headers['x-ms-session-token']);
        return next(context);
      },
    }],
  });
  t.after(() => client.dispose());
  for (const [databaseId, containerId] of [['plain', 'c'], ['my db', 'größe'], ['a+b', "it's (50%)"]]) {
    const { database } = await client.databases.create({ id: databaseId });
    const { container } = await database.containers.create({ id: containerId, partitionKey: '/pk' });
    await container.items.create({ id: '1', pk: 'x' });
    await container.item('1', 'x').read();
    assert.match(sent.at(-1) ?? '', /^\d+:-1#\d+$/, `${databaseId} / ${containerId}`);
  }
});

// Bodies and headers as these libraries send them when they make a container.
const makers = {
  '.NET': {
    headers: { 'x-ms-version': '2020-07-15', 'x-ms-cosmos-sdk-supportedcapabilities': '3', 'x-ms-offer-throughput': '400' },
    body: {
      id: 'c',
      indexingPolicy: { automatic: true, indexingMode: 'Consistent', includedPaths: [], excludedPaths: [], compositeIndexes: [], spatialIndexes: [] },
      partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
      conflictResolutionPolicy: { mode: 'LastWriterWins', conflictResolutionPath: null, conflictResolutionProcedure: null },
      uniqueKeyPolicy: { uniqueKeys: [] }, geospatialConfig: { type: 'Geography' },
    },
  },
  Java: {
    headers: { 'x-ms-version': '2020-07-15', 'x-ms-cosmos-sdk-supportedcapabilities': '1', 'x-ms-cosmos-offer-autopilot-settings': '{"maxThroughput":4000}' },
    body: {
      id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 },
      indexingPolicy: { indexingMode: 'consistent', automatic: true, includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/"_etag"/?' }], spatialIndexes: null },
    },
  },
  Python: {
    headers: { 'x-ms-version': '2020-07-15', 'x-ms-documentdb-populatequerymetrics': 'False' },
    body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } },
  },
  Go: {
    headers: { 'x-ms-version': '2020-11-05', 'content-type': 'application/json' },
    body: { id: 'c', partitionKey: { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 } },
  },
};

for (const [name, { headers, body }] of Object.entries(makers))
  test(`a container is made as ${name} makes it, and replaced by what was read`, async (t) => {
    const server = await Server.start(t, ['--dev']);
    assert.equal((await signed(server, 'POST', '/dbs', { headers: { 'x-ms-version': headers['x-ms-version'] }, body: { id: 'd' } })).status, 201);
    const created = await signed(server, 'POST', '/dbs/d/colls', { headers, body });
    assert.equal(created.status, 201, created.text);
    assert.deepEqual(created.json.partitionKey, body.partitionKey);
    assert.deepEqual(created.json.indexingPolicy.includedPaths, [{ path: '/*' }]);
    assert.deepEqual(created.json.indexingPolicy.excludedPaths, [{ path: '/"_etag"/?' }]);
    assert.equal(created.json.indexingPolicy.indexingMode, 'consistent');
    const replaced = await signed(server, 'PUT', '/dbs/d/colls/c', { headers, body: { ...created.json, defaultTtl: -1 } });
    assert.equal(replaced.status, 200, replaced.text);
    const { _etag, ...rest } = replaced.json;
    assert.notEqual(_etag, created.json._etag);
    const read = await signed(server, 'GET', '/dbs/d/colls/c', { headers });
    assert.deepEqual(read.json, { ...rest, _etag });
    assert.equal((await signed(server, 'DELETE', '/dbs/d/colls/c', { headers })).status, 204);
  });
