// Advice on partition keys, from a live container and from files; what-if against the real thing.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shop } from './items.js';
import { signed } from './rest.js';
import { orrery, scratch, emulatorKey } from './server.js';

// Numbers that are the same in every run.
function dice(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * limit);
  };
}

const vehicle = (roll, i, days) => ({
  id: `e${i}`,
  day: `2018-08-${String(1 + Math.floor(i / days)).padStart(2, '0')}`,
  vin: `VIN${roll(400)}`,
  speed: roll(200),
});

test('a container kept by day is told to be kept by vehicle', async (t) => {
  const { server, container } = await shop(t, { partitionKey: '/day', throughput: 20000 }, {
    args: ['--set', 'advise.per_second_max=10000'],
  });
  const roll = dice(7);
  const all = Array.from({ length: 1800 }, (_, i) => vehicle(roll, i, 200));
  for (let i = 0; i < all.length; i += 30) {
    await Promise.all(
      all.slice(i, i + 30).map((item, n) =>
        n % 5
          ? container.items.create(item)
          : container.items.query(`SELECT * FROM c WHERE c.day = "${item.day}" AND c.vin = "${item.vin}"`).fetchAll(),
      ),
    );
  }
  const answer = await signed(server, 'GET', '/_orrery/containers/shop/orders/advice');
  assert.equal(answer.status, 200);
  assert.equal(answer.json.recommended, true);
  const byVehicle = answer.json.proposals.find((proposal) => proposal.key === '/vin');
  assert.match(answer.json.proposals[0].key, /\/vin/); // alone, or with the day
  assert.equal(byVehicle.good, true);
  assert.equal(answer.json.current.key, '/day');
  assert.equal(answer.json.current.good, false);
  assert.match(answer.json.summary, /^Take .*\/vin/);
  assert.deepEqual(byVehicle.definition.partitionKey.paths, ['/vin']);

  const said = await orrery(['advise', 'shop', 'orders', '--endpoint', server.url, '--dev']);
  assert.equal(said.code, 0, said.err);
  assert.match(said.out, /1\. .*\/vin/);

  const traffic = await signed(server, 'GET', '/_orrery/containers/shop/orders/traffic');
  const ops = traffic.json.operations;
  assert.ok(ops.length > 200);
  const query = ops.find((op) => op.op === 'query');
  assert.deepEqual(Object.keys(query.where).sort(), ['/day', '/vin']);
  assert.ok(ops.find((op) => op.op === 'create').item.vin);
});

test('files are judged as a container is', async (t) => {
  const directory = scratch(t);
  const roll = dice(11);
  const documents = Array.from({ length: 1500 }, (_, i) => vehicle(roll, i, 100));
  const operations = Array.from({ length: 4000 }, (_, i) => {
    const item = vehicle(roll, i, 250);
    return roll(5)
      ? { t: 1700000000000 + i * 20, op: 'create', ru: 6, item }
      : { t: 1700000000000 + i * 20, op: 'query', ru: 3, where: { '/day': item.day, '/vin': item.vin } };
  });
  const lines = (list) => list.map((entry) => JSON.stringify(entry)).join('\n');
  const files = ['--documents', join(directory, 'd'), '--operations', join(directory, 'o')];
  writeFileSync(join(directory, 'd'), lines(documents));
  writeFileSync(join(directory, 'o'), lines(operations));
  const advice = await orrery(['advise', ...files, '--current', '/day', '--json']);
  assert.equal(advice.code, 0, advice.err);
  assert.equal(JSON.parse(advice.out).proposals[0].key, '/vin');

  const plot = join(directory, 'plot.svg');
  const whatIf = await orrery([
    'what-if', ...files, '--current', '/day', '--key', '/vin', '--partitions', '8', '--throughput', '1600', '--out', plot,
  ]);
  assert.equal(whatIf.code, 0, whatIf.err);
  assert.match(whatIf.out, /what if {2}\/vin on 8 partitions/);
  const svg = readFileSync(plot, 'utf8');
  assert.match(svg, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  assert.match(svg, /429s: /);
  assert.match(svg, /<\/svg>\s*$/);

  writeFileSync(join(directory, 'o'), '{"t":1,"op":"fly"}');
  const wrong = await orrery(['advise', ...files]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /line 1 .*no operation/);
  assert.equal((await orrery(['what-if', '--key', '/a'])).code, 2);
});

// The same operations at the same times: recorded where there is enough for all, foretold for less
// and a worse key, then really run there.
test('what-if foretells the share of 429s that the real run then shows', async (t) => {
  const { server, database, container } = await shop(
    t,
    { partitionKey: '/vin', throughput: 10000 },
    {
      args: ['--set', 'throughput.burst_seconds=0', '--set', 'partition.ru_max=2500', '--set', 'advise.per_second_max=10000'],
      client: { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } },
    },
  );
  const roll = dice(3);
  const plan = Array.from({ length: 600 }, (_, i) => ({ at: i * 10, item: vehicle(roll, i, 150) }));
  const run = async (path, key) => {
    const begun = performance.now();
    const answers = await Promise.all(
      plan.map(async ({ at, item }) => {
        await new Promise((resolve) => setTimeout(resolve, begun + at - performance.now()));
        return signed(server, 'POST', `${path}/docs`, {
          headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([item[key]]) },
          body: { ...item, text: 'x'.repeat(600) },
        });
      }),
    );
    return answers.map((answer) => answer.status);
  };
  const recorded = await run('/dbs/shop/colls/orders', 'vin');
  assert.deepEqual([...new Set(recorded)], [201]);
  assert.equal(container.id, 'orders');

  const partitions = 4;
  const throughput = 1600;
  const foretold = await signed(
    server,
    'GET',
    `/_orrery/containers/shop/orders/what-if?key=/day&partitions=${partitions}&throughput=${throughput}&retries=0`,
  );
  assert.equal(foretold.status, 200);
  const share = foretold.json.whatIf.throttledShare;

  // As many partitions as foretold: made with more throughput, then lowered.
  const { container: real } = await database.containers.create(
    { id: 'real', partitionKey: '/day', throughput: 10000 },
  );
  const { resource: offer } = await real.readOffer();
  await database.client.offer(offer.id).replace({ ...offer, content: { ...offer.content, offerThroughput: throughput } });
  const ranges = await real.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.resources.length, partitions);
  const statuses = await run('/dbs/shop/colls/real', 'day');
  const refused = statuses.filter((status) => status === 429).length / statuses.length;
  t.diagnostic(`foretold ${(share * 100).toFixed(1)} %, real ${(refused * 100).toFixed(1)} % refused`);
  assert.ok(refused > 0.2, `only ${refused} were refused: the load says nothing`);
  assert.ok(Math.abs(share - refused) <= 0.1 * refused + 0.01, `foretold ${share}, real ${refused}`);
});

test('a server that records nothing says so', async (t) => {
  const { server } = await shop(t, {}, { args: ['--set', 'advise.record=false'] });
  const answer = await signed(server, 'GET', '/_orrery/containers/shop/orders/advice');
  assert.equal(answer.status, 501);
  assert.match(answer.json.message, /advise\.record/);
  assert.ok(emulatorKey);
});
