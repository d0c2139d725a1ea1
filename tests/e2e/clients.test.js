// Small things that the vendors' libraries rely on.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { emulatorKey } from './server.js';
import { shop } from './items.js';
import { signed } from './rest.js';

const colls = '/dbs/shop/colls';
const all = { 'a-im': 'Full-Fidelity Feed', 'x-ms-cosmos-changefeed-wire-format-version': '2021-09-15' };

test('version 1 keys have up to 2,048 bytes, equal in their first hundred characters or not', async (t) => {
  const { container, docs, send, resource } = await shop(t, { partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 1 } });
  assert.equal(resource.partitionKey.version, 1);
  const long = 'k'.repeat(2047);
  for (const end of ['a', 'b']) await container.items.create({ id: 'same', tenant: long + end, end });
  for (const end of ['a', 'b']) {
    assert.equal((await container.item('same', long + end).read()).resource.end, end);
    const query = { query: 'SELECT VALUE c.end FROM c WHERE c.tenant = @k', parameters: [{ name: '@k', value: long + end }] };
    assert.deepEqual((await container.items.query(query).fetchAll()).resources, [end]);
  }
  assert.equal((await send('POST', docs, { body: { id: 'c', tenant: `${long}aa` } })).status, 400);
});

test('an object at a key path counts as undefined, at every level', async (t) => {
  const { docs, send } = await shop(t, { partitionKey: { paths: ['/a', '/b/c'], kind: 'MultiHash', version: 2 } });
  const bodies = [{ a: { x: 1 }, b: { c: 'v' } }, { a: 'v', b: { c: { y: 2 } } }, { a: 'w', b: 5 }];
  const keys = [[{}, 'v'], ['v', {}], ['w', {}]];
  for (const [i, body] of bodies.entries()) {
    assert.equal((await send('POST', docs, { body: { id: 'i', ...body } })).status, 201);
    assert.equal((await send('GET', `${docs}/i`, { key: keys[i] })).status, 200);
  }
  assert.equal((await send('POST', docs, { body: { id: 'i', a: [1] } })).status, 400);
});

test('an incomplete key is 400 with substatus 1001 on items and batches', async (t) => {
  const { docs, send } = await shop(t, { partitionKey: { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 } });
  const atomic = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'True' };
  for (const answer of [
    await send('GET', `${docs}/i`, { key: ['x'] }),
    await send('POST', docs, { key: ['x'], body: { id: 'i', a: 'x', b: 'y' } }),
    await send('POST', docs, { key: ['x'], headers: atomic, body: [{ operationType: 'Read', id: 'i' }] }),
  ]) {
    assert.equal(answer.status, 400);
    assert.equal(answer.headers['x-ms-substatus'], '1001');
    assert.match(answer.json.message, /^Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document\./);
  }
});

test('segments of a key path may be in single quotes, and have dashes without any', async (t) => {
  const { database, container } = await shop(t, { partitionKey: { paths: [`/'level" 1*()'/'le/vel2'`] } });
  await container.items.create({ id: 'a', 'level" 1*()': { 'le/vel2': 'v' } });
  assert.equal((await container.item('a', 'v').read()).statusCode, 200);
  const { container: cars } = await database.containers.create({ id: 'cars', partitionKey: '/Vehicle-Identification-Number' });
  await cars.items.create({ id: 'a', 'Vehicle-Identification-Number': 'v1' });
  assert.equal((await cars.item('a', 'v1').read()).statusCode, 200);
  const { resources } = await cars.items.query('SELECT VALUE c.id FROM c WHERE c["Vehicle-Identification-Number"] = "v1"').fetchAll();
  assert.deepEqual(resources, ['a']);
});

test('400s are neither cut nor doubled, and say what to do instead', async (t) => {
  const { container, docs, send, resource } = await shop(t, { partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 } });
  const said = async (method, path, options) => {
    const { status, json } = await send(method, path, options);
    return [status, json.message.split('\r\n')[0]];
  };
  const path = `/${'p'.repeat(120)}/`;
  const [bad, text] = await said('POST', colls, { body: { id: 'c', partitionKey: { paths: [path], kind: 'Hash', version: 2 } } });
  assert.equal(bad, 400);
  assert.match(text, /not contain a trailing slash or wildcard character\.$/);
  await container.items.create({ id: 'a', tenant: 'x' });
  const operations = [{ op: 'add', path: `/${'q'.repeat(120)}/r`, value: 1 }];
  const [, patch] = await said('PATCH', `${docs}/a`, { key: ['x'], body: { operations } });
  assert.match(patch, /that holds it is not there$/);
  assert.deepEqual(await said('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x' } }), [409, 'Entity with the specified id already exists in the system.']);
  assert.deepEqual(await said('GET', `${docs}/none`, { key: ['x'] }), [404, 'Entity with the specified id does not exist in the system.']);
  const [changed, rekey] = await said('PUT', `${colls}/orders`, { body: { ...resource, partitionKey: { paths: ['/other'], kind: 'Hash', version: 2 } } });
  assert.equal(changed, 400);
  assert.match(rekey, /orrery rekey/);
  const [moved, move] = await said('PUT', `${docs}/a`, { key: ['x'], body: { id: 'a', tenant: 'y' } });
  assert.equal(moved, 400);
  assert.match(move, /move-item.*orrery rekey/);
  const [, long] = await said('POST', '/dbs', { body: { id: 'n'.repeat(256) } });
  assert.match(long, /less than '255' characters\.$/);
  for (const computedProperties of ['x', [5], [{ name: 5, query: 'SELECT VALUE 1' }]]) {
    const [status, message] = await said('POST', colls, { body: { id: 'c', partitionKey: { paths: ['/x'] }, computedProperties } });
    assert.equal(status, 400);
    assert.match(message, /One of the specified inputs is invalid/);
  }
});

test('a spatial index has a bounding box in a plane and none on the globe', async (t) => {
  const { send } = await shop(t);
  const box = { xmin: 0, ymin: 0, xmax: 10, ymax: 10 };
  const post = (id, type, boundingBox) =>
    send('POST', colls, {
      body: {
        id, partitionKey: { paths: ['/x'] }, ...(type ? { geospatialConfig: { type } } : {}),
        indexingPolicy: { spatialIndexes: [{ path: '/at/*', types: ['Point'], ...(boundingBox ? { boundingBox } : {}) }] },
      },
    });
  assert.equal((await post('a', 'Geometry', box)).status, 201);
  assert.equal((await post('b', 'Geography')).status, 201);
  assert.equal((await post('c')).status, 201);
  for (const [type, given] of [['Geometry'], ['Geography', box], [undefined, box]]) {
    const { status, json } = await post('d', type, given);
    assert.equal(status, 400);
    assert.match(json.message, /boundingBox.*Geo(metry|graphy)/);
  }
});

test('all versions from the beginning are refused by naming the retention period', async (t) => {
  const { docs, send } = await shop(t, { changeFeedPolicy: { retentionDuration: 10 } });
  const { status, json } = await send('GET', docs, { key: ['x'], headers: all });
  assert.equal(status, 400);
  assert.match(json.message, /^You must read the change feed from within the retention period\./);
});

test('incrementPercent comes back as given, also 0', async (t) => {
  const { database } = await shop(t);
  const autopilot = (incrementPercent) => ({ maxThroughput: 4000, ...(incrementPercent === undefined ? {} : { autoUpgradePolicy: { throughputPolicy: { incrementPercent } } }) });
  for (const percent of [0, 7, undefined]) {
    const { container } = await database.containers.create(
      { id: `p${percent}`, partitionKey: '/x' },
      { initialHeaders: { 'x-ms-cosmos-offer-autopilot-settings': JSON.stringify(autopilot(percent)) } },
    );
    const { resource } = await container.readOffer();
    assert.equal(resource.content.offerAutopilotSettings.autoUpgradePolicy?.throughputPolicy.incrementPercent, percent);
  }
});

test('reads of items say where they were read; one partition has room for 10 GB', async (t) => {
  const { container, docs, send, server } = await shop(t);
  await container.items.create({ id: 'a b', tenant: 'x' });
  const read = await send('GET', `${docs}/a%20b`, { key: ['x'] });
  assert.equal(read.headers['content-location'], `http://127.0.0.1:${server.port}${docs}/a%20b`);
  const quota = (await send('GET', `${colls}/orders`, { headers: { 'x-ms-documentdb-populatequotainfo': 'True' } })).headers['x-ms-resource-quota'];
  assert.match(quota, /;collectionSize=10485760;/);
});

test('a batch that is too large is 413 in the words of the service', async (t) => {
  const { container, docs, send } = await shop(t);
  const headers = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False' };
  for (const bytes of [2_500_000, 5_000_000]) { // beyond 4 MiB it is refused before it is known to be a batch
    const body = [{ operationType: 'Create', partitionKey: '["x"]', resourceBody: { id: 'a', tenant: 'x', v: 'v'.repeat(bytes) } }];
    const { status, json } = await send('POST', docs, { headers, body });
    assert.deepEqual([status, json.code], [413, 'RequestEntityTooLarge']);
    assert.match(json.message, /^Message: \{"Errors":\["Request size is too large"\]\}/);
  }
  const large = { id: 'a', tenant: 'x', v: 'v'.repeat(2_200_000) };
  const [one] = await container.items.executeBulkOperations([{ operationType: 'Create', partitionKey: 'x', resourceBody: large }]);
  assert.equal(one.error.code, 413);
  assert.match(one.error.message, /^Message: \{"Errors":\["Request size is too large"\]\}\r\nan item of \d+ bytes/, 'an operation too');
});

test('the log of a script has no line end behind its last line', async (t) => {
  const { container } = await shop(t);
  const body = function () {
    console.log('one');
    console.log('two');
    getContext().getResponse().setBody(1);
  };
  await container.scripts.storedProcedures.create({ id: 'p', body });
  const { headers } = await container.scripts.storedProcedure('p').execute('x', [], { enableScriptLogging: true });
  assert.equal(decodeURIComponent(headers['x-ms-documentdb-script-log-results']), 'one\ntwo');
});

test('in development mode the account names 127.0.0.1 to who came by localhost', async (t) => {
  const { server } = await shop(t);
  const endpoint = async (host) =>
    (await signed(server, 'GET', '/', { host, sign: { type: '', link: '' } })).json.writableLocations[0].databaseAccountEndpoint;
  assert.equal(await endpoint(`localhost:${server.port}`), `http://127.0.0.1:${server.port}/`);
  assert.equal(await endpoint('LOCALHOST'), 'http://127.0.0.1/');
  assert.equal(await endpoint(`127.0.0.1:${server.port}`), `http://127.0.0.1:${server.port}/`);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  assert.equal((await client.databases.readAll().fetchAll()).resources.length, 1);
});

test('libraries of before 2018-06-18 get simple session tokens', async (t) => {
  const { docs, send } = await shop(t, {}, { create: { offerThroughput: 30000 } });
  const token = async (version) =>
    (await send('POST', docs, { key: ['x'], headers: { 'x-ms-version': version, 'x-ms-documentdb-is-upsert': 'True' }, body: { id: 'a', tenant: 'x' } })).headers['x-ms-session-token'];
  assert.match(await token('2017-02-22'), /^\d+:\d+$/);
  assert.match(await token('2018-06-18'), /^\d+:-1#\d+$/);
  const simple = await token('2016-07-11');
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-session-token': simple } })).status, 200);
  const everywhere = { 'x-ms-documentdb-isquery': 'True', 'x-ms-documentdb-query-enablecrosspartition': 'True', 'content-type': 'application/query+json' };
  const queried = async (headers) =>
    (await send('POST', docs, { headers: { ...everywhere, ...headers }, body: { query: 'SELECT * FROM c' } })).headers['x-ms-session-token'];
  assert.match(await queried({ 'x-ms-version': '2017-02-22' }), /^\d+:\d+(,\d+:\d+){2}$/, 'a query over three ranges');
  assert.match(await queried({}), /^\d+:-1#\d+(,\d+:-1#\d+){2}$/);
  assert.equal((await send('GET', `${docs}/a`, { key: ['x'], headers: { 'x-ms-session-token': await queried({ 'x-ms-version': '2017-02-22' }) } })).status, 200);
});
