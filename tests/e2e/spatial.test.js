// Where things are: the functions over GeoJSON, and spatial indexes, through @azure/cosmos.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { signed } from './rest.js';

const types = ['Point', 'LineString', 'Polygon', 'MultiPolygon'];
const indexed = { indexingMode: 'consistent', includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/at/*' }],
  spatialIndexes: [{ path: '/at/?', types }] };
const area = { type: 'Polygon', coordinates: [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]] };
const within = { query: 'SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, @area)', parameters: [{ name: '@area', value: area }] };
const near = { query: 'SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @at) < @far',
  parameters: [{ name: '@at', value: { type: 'Point', coordinates: [3, 3] } }, { name: '@far', value: 150_000 }] };

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  return { server, client, database };
}

// A grid of points, a degree apart: 11 by 11 of them are in the area, edges included.
async function fill(container) {
  const items = [];
  for (let x = -10; x < 20; x += 1)
    for (let y = -10; y < 20; y += 1)
      items.push({ id: `${x},${y}`, pk: `${(items.length % 7)}`, at: { type: 'Point', coordinates: [x, y] } });
  for (let i = 0; i < items.length; i += 50)
    await Promise.all(items.slice(i, i + 50).map((item) => container.items.create(item)));
}

async function explained(server, spec, name = 'places') {
  const answer = await signed(server, 'POST', `/dbs/shop/colls/${name}/docs`, {
    body: spec,
    headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json',
      'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-orrery-explain': 'true', 'x-ms-max-item-count': '-1' } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const all = async (container, spec) => (await container.items.query(spec, { maxItemCount: 50 }).fetchAll()).resources.sort();

for (const throughput of [400, 48_000]) {
  test(`an index and a scan find the same, container of ${throughput} RU/s`, async (t) => {
    const { server, database } = await started(t, ['--set', 'throughput.enforce=never']);
    const { container: places } = await database.containers.create({ id: 'places', partitionKey: '/pk', indexingPolicy: indexed, throughput });
    const { container: plain } = await database.containers.create({ id: 'plain', partitionKey: '/pk', throughput });
    await fill(places);
    await fill(plain);
    for (const spec of [within, near]) {
      const found = await all(places, spec);
      assert.deepEqual(found, await all(plain, spec));
      assert.ok(found.length > 2);
      const { _explain } = await explained(server, spec);
      assert.equal(_explain.access.kind, 'index', JSON.stringify(_explain));
      assert.match(JSON.stringify(_explain.access), /cells of \/at/);
      assert.equal((await explained(server, spec, 'plain'))._explain.access.kind, 'scan');
    }
    assert.ok((await explained(server, near))._explain.actual.itemsLoaded < 60);
    // what moves, goes or comes is found where it is
    await places.item('5,5', (await all(places, 'SELECT VALUE c.pk FROM c WHERE c.id = "5,5"'))[0])
      .replace({ id: '5,5', pk: (await all(places, 'SELECT VALUE c.pk FROM c WHERE c.id = "5,5"'))[0], at: { type: 'Point', coordinates: [100, 50] } });
    assert.ok(!(await all(places, within)).includes('5,5'));
    assert.deepEqual(await all(places, 'SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, {"type":"Point","coordinates":[100,50]}) <= 1'), ['5,5']);
  });
}

test('a container that has items gets its spatial index while it is used', async (t) => {
  const { server, database } = await started(t, ['--set', 'throughput.enforce=never']);
  const { container } = await database.containers.create({ id: 'places', partitionKey: '/pk' });
  await fill(container);
  const before = await all(container, within);
  assert.equal((await explained(server, within))._explain.access.kind, 'scan');
  const { resource } = await container.read();
  await container.replace({ ...resource, indexingPolicy: indexed });
  for (;;) {
    assert.deepEqual(await all(container, within), before);
    const { headers } = await container.read({ populateQuotaInfo: true });
    if (Number(headers['x-ms-documentdb-collection-index-transformation-progress']) === 100) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(await all(container, within), before);
  assert.equal((await explained(server, within))._explain.access.kind, 'index');
  assert.equal((await container.read()).resource.orrery.spatial, 1);
  await container.replace({ ...(await container.read()).resource, indexingPolicy: undefined });
  assert.deepEqual(await all(container, within), before);
});

test('the index is there after a restart, and through a split', async (t) => {
  const data = scratch(t);
  const args = ['--node', `local=rocksdb:${data}`, '--set', 'throughput.enforce=never'];
  const first = await started(t, args);
  const { container } = await first.database.containers.create({ id: 'places', partitionKey: '/pk', indexingPolicy: indexed });
  await fill(container);
  const before = await all(container, within);
  await first.server.stop();
  const second = await started(t, args);
  const again = second.database.container('places');
  assert.deepEqual(await all(again, within), before);
  const list = '/_orrery/containers/shop/places/partitions';
  const [partition] = (await signed(second.server, 'GET', list)).json.partitions;
  assert.equal((await signed(second.server, 'POST', `${list}/${partition.id}/split`)).status, 202);
  for (;;) {
    assert.deepEqual(await all(again, within), before);
    const { partitions, migration } = (await signed(second.server, 'GET', list)).json;
    if (partitions.length === 2 && !migration) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal((await explained(second.server, within))._explain.access.kind, 'index');
});

test('coordinates of a plane are what their numbers say', async (t) => {
  const { server, database } = await started(t);
  const boundingBox = { xmin: -100, ymin: -100, xmax: 1000, ymax: 1000 };
  const { container } = await database.containers.create({ id: 'places', partitionKey: '/pk', geospatialConfig: { type: 'Geometry' },
    indexingPolicy: { ...indexed, spatialIndexes: [{ path: '/at/?', types, boundingBox }] } });
  for (const [id, coordinates] of [['in', [300, 400]], ['out', [700, 400]], ['far', [5000, 5000]]])
    await container.items.create({ id, pk: id, at: { type: 'Point', coordinates } });
  const { resources } = await container.items.query(
    'SELECT VALUE {id: c.id, far: ST_DISTANCE(c.at, {"type":"Point","coordinates":[0,0]})} FROM c WHERE c.id = "in"').fetchAll();
  assert.deepEqual(resources, [{ id: 'in', far: 500 }]);
  const spec = { query: 'SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, {"type":"Polygon","coordinates":[[[0,0],[500,0],[500,500],[0,500],[0,0]]]})', parameters: [] };
  assert.deepEqual(await all(container, spec), ['in']);
  assert.equal((await explained(server, spec))._explain.access.kind, 'index');
  // outside the box too
  assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, {"type":"Point","coordinates":[5000,5001]}) <= 1'), ['far']);
  assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, {"type":"Point","coordinates":[5000,5001]}) < 1'), []);
});

test('large figures are bounded, and are no failure', async (t) => {
  const { database } = await started(t, ['--set', 'throughput.enforce=never']);
  const { container } = await database.containers.create({ id: 'places', partitionKey: '/pk', indexingPolicy: indexed });
  const ring = (count) => {
    const corners = Array.from({ length: count }, (_, i) => [40 * Math.cos((2 * Math.PI * i) / count), 40 * Math.sin((2 * Math.PI * i) / count)]);
    return { type: 'Polygon', coordinates: [[...corners, corners[0]]] };
  };
  await container.items.create({ id: 'most', pk: 'a', at: ring(4095) });
  await container.items.create({ id: 'more', pk: 'a', at: ring(30_000) });
  const point = { name: '@at', value: { type: 'Point', coordinates: [1, 1] } };
  assert.deepEqual(await all(container, { query: 'SELECT VALUE c.id FROM c WHERE ST_WITHIN(@at, c.at)', parameters: [point] }), ['most']);
  const { resources } = await container.items.query('SELECT VALUE ST_ISVALIDDETAILED(c.at).reason FROM c WHERE c.id = "more"').fetchAll();
  assert.match(resources[0], /more than 4096 points/);
});
