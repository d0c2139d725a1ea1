// `orrery key` and the question behind it: which key a document gets, without writing it.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shop } from './items.js';
import { orrery, scratch } from './server.js';

const days = { kind: 'randomSuffix', target: '/partitionKey', base: '/date', suffixes: 400 };
const cars = { kind: 'computedSuffix', target: '/partitionKey', base: '/date', hashed: '/vin', suffixes: 400 };
const definition = (synthetic) => ({ partitionKey: { paths: ['/partitionKey'], version: 2 }, orrery: { synthetic } });
const car = { date: '2018-08-09', vin: '1HGCM82633A004352' };

test('the server explains what a document would get, and writes nothing', async (t) => {
  const { server, container, send } = await shop(t, { ...definition(cars), throughput: 40000 });
  const { status, json } = await send('POST', '/_orrery/containers/shop/orders/key', { body: car });
  assert.equal(status, 200);
  assert.deepEqual(json.partitionKey, ['2018-08-09.353']);
  assert.deepEqual(json.synthetic, {
    kind: 'computedSuffix',
    target: '/partitionKey',
    sources: [{ path: '/date', value: car.date }, { path: '/vin', value: car.vin }],
    suffix: 353,
    suffixes: 400,
  });
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.ok(ranges.some((r) => r.id === json.partition.id && r.minInclusive === json.partition.minInclusive));
  assert.ok(json.effectivePartitionKey >= json.partition.minInclusive && json.effectivePartitionKey < json.partition.maxExclusive);
  assert.equal((await container.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll()).resources[0], 0);
  for (const [body, why] of [[{ date: 1 }, /\/vin/], [{ ...car, partitionKey: 'x' }, /made by the server/], [7, /document, or a partition key/]]) {
    const refused = await send('POST', '/_orrery/containers/shop/orders/key', { body });
    assert.equal(refused.status, 400);
    assert.match(refused.json.message, why);
  }
  assert.equal((await send('POST', '/_orrery/containers/shop/none/key', { body: car })).status, 404);

  const asked = await orrery(['key', 'explain', 'shop', 'orders', JSON.stringify(car), '--endpoint', server.url, '--dev']);
  assert.equal(asked.code, 0, asked.err);
  assert.match(asked.out, /partition key +\["2018-08-09\.353"\]/);
  assert.match(asked.out, new RegExp(`partition +${json.partition.id},`));
  const routed = await orrery(['key', 'route', 'shop', 'orders', '["2018-08-09","1HGCM82633A004352"]', '--endpoint', server.url, '--dev', '--json']);
  assert.deepEqual(JSON.parse(routed.out).partition, json.partition);
});

test('of a random suffix it tells where the suffixes are', async (t) => {
  const { send } = await shop(t, { ...definition(days), throughput: 40000 });
  const { json } = await send('POST', '/_orrery/containers/shop/orders/key', { body: { date: '2018-08-09' } });
  assert.equal(json.open, true);
  assert.deepEqual(json.partitionKey, ['2018-08-09']);
  assert.equal(json.partitions.reduce((sum, p) => sum + p.suffixes, 0), 400);
});

test('without a server the command computes the same from a file', async (t) => {
  const file = join(scratch(t), 'cars.json');
  writeFileSync(file, JSON.stringify(definition(cars)));
  const computed = await orrery(['key', 'compute', '--definition', file, `${JSON.stringify(car)}\n${JSON.stringify({ ...car, date: 2019 })}`]);
  assert.equal(computed.out, '["2018-08-09.353"]\n["2019.353"]\n');
  const explained = await orrery(['key', 'explain', '--definition', file, JSON.stringify(car), '--json']);
  assert.equal(JSON.parse(explained.out).synthetic.suffix, 353);
  const routed = await orrery(['key', 'route', '--definition', file, '--partitions', '16', '["2018-08-09.353"]']);
  assert.equal(routed.out, '6\n');
  const refused = await orrery(['key', 'compute', '--definition', file, '{"date":1}']);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /^orrery: .*\/vin/);
  for (const wrong of [[], ['explan'], ['explain'], ['compute', '{}'], ['route', '--definition', file, '["a"]']])
    assert.equal((await orrery(['key', ...wrong])).code, 2, wrong.join(' '));
});
