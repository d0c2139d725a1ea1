// Advice on partition keys, from a live container and from files; what-if against the real thing.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shop } from './items.js';
import { signed } from './rest.js';
import { Server, orrery, scratch, emulatorKey } from './server.js';

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

// Readings of 400 devices, all as busy, and now and then somebody looks at one of them.
async function readings(container, count, name = 'r') {
  const roll = dice(23);
  for (let i = 0; i < count; i += 40)
    await Promise.all(
      Array.from({ length: Math.min(40, count - i) }, (_, n) => {
        const device = `dev-${roll(400)}`;
        const item = { id: `${name}${i + n}`, device, at: new Date(1700000000000 + i * 1000).toISOString(), degrees: roll(4000) / 97 };
        return (i + n) % 50 === 49
          ? container.items.query(`SELECT * FROM c WHERE c.device = "${device}"`).fetchAll()
          : container.items.create(item);
      }),
    );
}

test('advice is by device where queries name it, says when it knows too little, and outlives a restart', async (t) => {
  const node = `local=rocksdb:${scratch(t)}`;
  const args = ['--node', node, '--set', 'advise.per_second_max=10000'];
  const { server, container } = await shop(t, { partitionKey: '/id', throughput: 20000 }, { args });
  const say = (from) => orrery(['advise', 'shop', 'orders', '--endpoint', from.url, '--dev']);
  const ask = async (from) => (await signed(from, 'GET', '/_orrery/containers/shop/orders/advice')).json;

  await readings(container, 40);
  const early = await ask(server);
  assert.equal(early.enoughToJudge, false);
  assert.equal(early.recommended, false);
  assert.equal(early.rekey, undefined);
  assert.match((await say(server)).out, /^There is too little to judge by: 40 documents and 40 operations\./m);

  await readings(container, 1500, 'more');
  const before = await ask(server);
  assert.equal(before.recommended, true);
  assert.equal(before.proposals[0].key, '/device');
  assert.equal(before.rekey, 'orrery rekey shop orders --key /device');
  assert.match(before.proposals[0].reason, /at ten and a hundred times the data/);
  assert.match(before.current.reason, /must ask all partitions: 16 here, 160 at ten times the data, 1600 at a hundred/);
  for (const proposal of before.proposals) assert.doesNotMatch(proposal.key, /degrees|at$/);

  await server.stop();
  const again = await Server.start(t, ['--dev', ...args]);
  const after = await ask(again);
  assert.ok(after.operations >= before.operations - 60, `${before.operations} operations, then ${after.operations}`);
  assert.equal(after.proposals[0].key, '/device');
  assert.equal(after.rekey, before.rekey);

  // The last line is a command that works.
  const said = (await say(again)).out.trimEnd().split('\n').pop().trim();
  assert.equal(said, before.rekey);
  const done = await orrery([...said.split(' ').slice(1), '--endpoint', again.url, '--dev']);
  assert.equal(done.code, 0, done.err);
  assert.match((await ask(again)).summary, /^Keep \/device/);
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
  assert.match(whatIf.out, /what if {2}\/vin, 1600 RU\/s over 8 partitions/);
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

// Requests at random times, the same to several containers.
function load(seed, perSecond, seconds) {
  const roll = dice(seed);
  const plan = [];
  for (let at = 0; at < seconds * 1000; at += (-Math.log(1 - roll(100000) / 100000) * 1000) / perSecond) {
    const i = plan.length;
    plan.push({ at, item: { ...vehicle(roll, i, perSecond * 2), id: `s${seed}e${i}`, text: 'x'.repeat(300 + roll(600)) } });
  }
  return plan;
}

// A container of four physical partitions whatever its throughput: made with more, then lowered.
async function quartered(database, id, key, throughput) {
  const { container } = await database.containers.create({ id, partitionKey: `/${key}`, throughput: 10000 });
  const { resource: offer } = await container.readOffer();
  await database.client.offer(offer.id).replace({ ...offer, content: { ...offer.content, offerThroughput: throughput } });
  const ranges = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.resources.length, 4);
  return { id, key, throughput };
}

// Sends a load and returns the share of answers that were 429. Nobody comes again.
async function send(server, plan, { id, key }) {
  const begun = performance.now();
  const statuses = await Promise.all(
    plan.map(async ({ at, item }) => {
      await new Promise((resolve) => setTimeout(resolve, begun + at - performance.now()));
      const answer = await signed(server, 'POST', `/dbs/shop/colls/${id}/docs`, {
        headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([item[key]]) },
        body: item,
      });
      return answer.status;
    }),
  );
  assert.deepEqual([...new Set(statuses)].sort(), [201, 429]);
  return statuses.filter((status) => status === 429).length / statuses.length;
}

async function foretell(server, recorded, { key, throughput }) {
  const path = `/_orrery/containers/shop/${recorded.id}/what-if?key=/${key}&partitions=4&throughput=${throughput}`;
  const answer = await signed(server, 'GET', path);
  assert.equal(answer.status, 200);
  return answer.json;
}

// Light: by vehicle, a little short of throughput: some 5 percent are refused. Heavy: by day, all of
// it on one partition at a time: almost half. (On a machine that is busy otherwise requests come in
// heaps, and both are more.) What is recorded in one, refused or not, foretells the other.
test('what-if foretells the share of 429s of another run, from a record of an overloaded one', async (t) => {
  const { server, database } = await shop(t, { throughput: 400 }, {
    args: ['--set', 'throughput.burst_seconds=0', '--set', 'partition.ru_max=2500', '--set', 'advise.per_second_max=10000'],
  });
  const loads = [1, 2, 3].map((n) => ({ n, perSecond: 50 + 25 * n, plan: load(n, 50 + 25 * n, 6) }));
  const rows = await Promise.all(
    loads.map(async ({ n, perSecond, plan }) => {
      const light = await quartered(database, `light${n}`, 'vin', perSecond * 8);
      const heavy = await quartered(database, `heavy${n}`, 'day', perSecond * 16);
      [light.real, heavy.real] = await Promise.all([send(server, plan, light), send(server, plan, heavy)]);
      const fromLight = await foretell(server, light, heavy);
      const fromHeavy = await foretell(server, heavy, light);
      return [
        ['heavy', n, heavy.real, fromLight.whatIf.throttledShare, fromHeavy.today.throttledShare],
        ['light', n, light.real, fromHeavy.whatIf.throttledShare, fromLight.today.throttledShare],
      ];
    }),
  );
  for (const [regime, n, real, foretold, again] of rows.flat()) {
    const percent = [real, foretold, again].map((share) => `${(share * 100).toFixed(1)} %`);
    t.diagnostic(`${regime} load ${n}: real ${percent[0]}, foretold ${percent[1]}, run again ${percent[2]}`);
    assert.ok(real > 0.01, `the load says nothing: ${percent[0]}`);
    // A record has milliseconds, a budget sees less: on a busy machine a handful of the few refusals differ.
    assert.ok(Math.abs(again - real) <= 0.1 * real + 0.015, `${regime} ${n}: run again ${percent[2]}, real ${percent[0]}`);
    // Two runs do not meet the same milliseconds.
    assert.ok(Math.abs(foretold - real) <= 0.1 * real + 0.015, `${regime} ${n}: foretold ${percent[1]}, real ${percent[0]}`);
  }
});

test('attempts of one operation are one record, and what-if has its clients come again as they did', async (t) => {
  const { server, container } = await shop(t, { partitionKey: '/vin', throughput: 400 }, {
    args: ['--set', 'throughput.burst_seconds=0', '--set', 'advise.per_second_max=10000'],
  });
  const plan = load(9, 120, 3);
  const begun = performance.now();
  const retries = await Promise.all(
    plan.map(async ({ at, item }) => {
      await new Promise((resolve) => setTimeout(resolve, begun + at - performance.now()));
      const { statusCode, headers } = await container.items.create(item);
      assert.equal(statusCode, 201);
      return headers['x-ms-throttle-retry-count'];
    }),
  );
  const refused = retries.reduce((sum, count) => sum + count, 0);
  const { operations } = (await signed(server, 'GET', '/_orrery/containers/shop/orders/traffic')).json;
  assert.equal(operations.length, plan.length);
  assert.equal(operations.reduce((sum, op) => sum + (op.refused ?? 0), 0), refused);
  assert.equal(operations.filter((op) => op.failed).length, 0);
  assert.ok(refused > plan.length / 10, `only ${refused} were refused: the load says nothing`);

  const { today, whatIf } = await foretell(server, container, { key: 'vin', throughput: 200 });
  const real = refused / (plan.length + refused);
  t.diagnostic(`real ${refused} of ${plan.length + refused} attempts refused, run again ${today.throttled} of ${today.attempts}`);
  // Who comes when it is told to is refused once. Where the machine was too busy for that, clients
  // were refused more often than those of what-if, who are punctual.
  const late = refused / retries.filter((count) => count > 0).length > 1.05;
  assert.ok(late || Math.abs(today.throttledShare - real) <= 0.1 * real, `run again ${today.throttledShare}, real ${real}`);
  assert.ok(today.throttledShare <= 1.1 * real);
  assert.equal(today.givenUp, 0);
  assert.ok(whatIf.waitMsMean > today.waitMsMean);

  const said = await orrery(['what-if', 'shop', 'orders', '--key', '/vin', '--speed', '0.1', '--json', '--endpoint', server.url, '--dev']);
  assert.equal(said.code, 0, said.err);
  const slow = JSON.parse(said.out);
  assert.ok(slow.whatIf.windowMs * slow.whatIf.heat.length > 2 * today.windowMs * today.heat.length); // ten times as long
  assert.ok(slow.whatIf.throttled <= today.throttled);
});

test('a container whose throughput nobody stated is not measured against the default', async (t) => {
  const { server, container } = await shop(t, { partitionKey: '/device' }, { args: ['--set', 'advise.per_second_max=10000'] });
  await readings(container, 600); // some 4,000 RU within a second or two
  const { today, whatIf } = (await signed(server, 'GET', '/_orrery/containers/shop/orders/what-if?key=/id')).json;
  for (const run of [today, whatIf]) assert.deepEqual([run.throttled, run.ruPerSecond], [0, 0]);
  const args = ['what-if', 'shop', 'orders', '--key', '/id', '--endpoint', server.url, '--dev'];
  assert.match((await orrery(args)).out, /today {4}\/device, no limit over 1 partition\n/);
  const limited = (await orrery([...args, '--throughput', '400'])).out;
  assert.match(limited, /today {4}\/device, no limit over 1 partition\n/);
  assert.match(limited, /what if {2}\/id, 400 RU\/s over 1 partition\n/);
});

test('a server that records nothing says so', async (t) => {
  const { server } = await shop(t, {}, { args: ['--set', 'advise.record=false'] });
  const answer = await signed(server, 'GET', '/_orrery/containers/shop/orders/advice');
  assert.equal(answer.status, 501);
  assert.match(answer.json.message, /advise\.record/);
  assert.ok(emulatorKey);
});
