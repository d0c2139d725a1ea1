// Reads that a server answers by itself which does not own the nodes: what it may say, and when it asks the owner instead.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { fleetWith, halt, pause, probe } from './fleet.js';
import { signed } from './rest.js';
import { orrery } from './server.js';

const on = ['--set', 'servers.follower_reads=true', '--set', 'servers.beat_ms=100ms', '--set', 'servers.skew_ms_max=10s'];

const eventual = { 'x-ms-consistency-level': 'Eventual' };

const read = (server, id, { headers = eventual, ...options } = {}) => signed(server, 'GET', `/dbs/d/colls/c/docs/${id}`,
  { ...options, headers: { 'x-ms-documentdb-partitionkey': `["${id}"]`, ...headers } });

const write = (server, id, more = {}) => signed(server, 'POST', '/dbs/d/colls/c/docs', { body: { id, pk: id, ...more },
  headers: { 'x-ms-documentdb-partitionkey': `["${id}"]`, 'x-ms-documentdb-is-upsert': 'true' } });

const by = (answer) => /;server=([^;,]+)/.exec(answer.headers['x-orrery-served-by'] ?? '')?.[1];

async function fleetOf(t, names, args = []) {
  const all = await fleetWith(t, names, [...on, ...args]);
  const servers = names.map((name) => all.servers.get(name));
  assert.equal((await signed(servers[0], 'POST', '/dbs', { body: { id: 'd' } })).status, 201);
  assert.equal((await signed(servers[0], 'POST', '/dbs/d/colls', { body: { id: 'c',
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }, headers: { 'x-ms-offer-throughput': '10000' } })).status, 201);
  return { all, servers };
}

// Until it answers by itself; the first reads are passed on, while it gets a lease, the catalogue and throughput.
async function warm(server, name, id = 'warm', options) {
  await server.until(async () => by(await read(server, id, options)) === name);
}

async function figure(server, name) {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec((await probe(server, '/metrics')).text)?.[1]);
}

test('a follower answers reads by itself at the levels that need no owner, and says so', async (t) => {
  const { servers: [a, b] } = await fleetOf(t, ['a', 'b']);
  const made = await write(a, 'warm', { n: 1 });
  assert.equal(made.status, 201);
  assert.equal(by(await read(a, 'warm')), 'a');
  await warm(b, 'b');
  const here = await read(b, 'warm'), there = await read(a, 'warm');
  assert.deepEqual(here.json, there.json);
  assert.equal(here.headers['x-orrery-served-by'], 'root;level=Eventual;server=b');
  for (const name of ['x-ms-session-token', 'etag', 'x-ms-request-charge', 'x-ms-item-lsn', 'x-ms-documentdb-partitionkeyrangeid',
    'x-ms-alt-content-path', 'x-ms-content-path', 'content-type'])
    assert.equal(here.headers[name], there.headers[name], name);
  assert.equal((await read(b, 'warm', { headers: { ...eventual, 'if-none-match': here.headers.etag } })).status, 304);
  assert.equal(by(await read(b, 'warm', { headers: { 'x-ms-consistency-level': 'ConsistentPrefix' } })), 'b');
  // what there is to refuse, the owner does
  const missing = await read(b, 'nobody');
  assert.equal(missing.status, 404);
  assert.equal(by(missing), 'a');
  const unsigned = await read(b, 'warm', { key: Buffer.alloc(64, 1).toString('base64') });
  assert.equal(unsigned.status, 401);
  // a session that says what it has written, and one that does not
  const token = { 'x-ms-session-token': made.headers['x-ms-session-token'] };
  assert.equal(by(await read(b, 'warm', { headers: token })), 'b');
  assert.equal(by(await read(b, 'warm', { headers: {} })), 'a');
  const strange = await read(b, 'warm', { headers: { 'x-ms-session-token': '4000000:-1#7' } });
  assert.equal(strange.status, 404); // 1002, of the owner
  assert.ok(await figure(b, 'orrery_follower_reads_total') > 3);
});

test('a session sees its writes, whichever server it asks', async (t) => {
  const { servers } = await fleetOf(t, ['a', 'b', 'c']);
  await write(servers[0], 'warm');
  await warm(servers[1], 'b');
  await warm(servers[2], 'c');
  let alone = 0;
  for (let n = 1; n <= 300; n++) {
    const written = await write(servers[n % 3], `s${n % 7}`, { n });
    assert.ok(written.status < 300);
    const seen = await read(servers[(n * 5) % 3], `s${n % 7}`, { headers: { 'x-ms-session-token': written.headers['x-ms-session-token'] } });
    assert.equal(seen.json.n, n);
    alone += by(seen) !== 'a';
  }
  t.diagnostic(`figure: ${alone} of 200 reads at followers were answered there`);
  assert.ok(alone > 100);
});

test('a session sees its writes while partitions are split, and afterwards', async (t) => {
  const { servers } = await fleetOf(t, ['a', 'b']);
  await write(servers[0], 'warm');
  await warm(servers[1], 'b');
  const ranges = async () => (await signed(servers[0], 'GET', '/dbs/d/colls/c/pkranges')).json.PartitionKeyRanges;
  const before = await ranges();
  let stopping = false, splits = 0;
  const splitter = (async () => {
    for (const { id } of before.slice(0, 2)) {
      await pause(300);
      const split = await orrery(['partition', 'split', 'd', 'c', id, '--pieces', '2', '--endpoint', servers[0].url, '--dev']);
      assert.equal(split.code, 0, split.err);
      await servers[0].until(async () => (await ranges()).length === before.length + ++splits || (--splits, false));
    }
    await pause(500);
    stopping = true;
  })();
  let alone = 0, ahead = 0, n = 0;
  for (; !stopping || n < 200; n++) {
    const written = await write(servers[n % 2], `s${n % 11}`, { n });
    assert.ok(written.status < 300, `${written.status} ${written.text}`);
    const seen = await read(servers[1], `s${n % 11}`, { headers: { 'x-ms-session-token': written.headers['x-ms-session-token'] } });
    // A write that waited for the split is told with the LSN of a child and the id of its parent, which the owner takes to be
    // ahead of the other child: docs/design/open-ends.md. It is told so, and never shown something old.
    if (seen.headers['x-ms-substatus'] === '1002') {
      ahead++;
      continue;
    }
    assert.equal(seen.json?.n, n, `${seen.status} ${seen.text}`);
    alone += by(seen) === 'b';
  }
  await splitter;
  await warm(servers[1], 'b', 's1');
  t.diagnostic(`figure: ${splits} splits, ${n} writes and reads, ${alone} of them by the follower, ${ahead} told to be ahead`);
  assert.ok(ahead <= 2);
  assert.ok(alone > 20);
});

test('a key that was rotated is refused by every server when the rotation is answered', async (t) => {
  const { servers: [a, b, c] } = await fleetOf(t, ['a', 'b', 'c']);
  const order = async (args) => {
    const made = await orrery([...args, '--endpoint', a.url, '--dev']);
    assert.equal(made.code, 0, made.err);
    return made.out;
  };
  await order(['account', 'create', 'acme']);
  const keyOf = async () => /^primary\s+(\S+)/m.exec(await order(["account", "keys", "acme"]))[1];
  let key = await keyOf();
  const at = (server, options) => read(server, 'warm', { account: 'acme', ...options });
  assert.equal((await signed(a, 'POST', '/dbs', { account: 'acme', key, body: { id: 'd' } })).status, 201);
  assert.equal((await signed(a, 'POST', '/dbs/d/colls', { account: 'acme', key, body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } } })).status, 201);
  assert.equal((await signed(a, 'POST', '/dbs/d/colls/c/docs', { account: 'acme', key, body: { id: 'warm', pk: 'warm' },
    headers: { 'x-ms-documentdb-partitionkey': '["warm"]' } })).status, 201);
  let wrong = 0, alone = 0, slowest = 0;
  for (let round = 0; round < 15; round++) {
    for (const [server, name] of [[b, 'b'], [c, 'c']]) await server.until(async () => by(await at(server, { key })) === name);
    const from = performance.now();
    await order(["account", "rotate", "acme", "primary"]);
    slowest = Math.max(slowest, performance.now() - from);
    const old = await Promise.all([b, c, b, c].map((server) => at(server, { key })));
    wrong += old.filter((answer) => answer.status !== 401).length;
    key = await keyOf();
    const fresh = await Promise.all([b, c].map((server) => at(server, { key })));
    for (const answer of fresh) assert.equal(answer.status, 200);
    alone += fresh.filter((answer) => by(answer) !== 'a').length;
  }
  t.diagnostic(`figure: 15 rotations, the slowest took ${Math.round(slowest)} ms with the command; ${alone} of 30 reads at once behind one were answered by followers`);
  assert.equal(wrong, 0);
});

test('a follower that hangs delays a change by its lease and no more, and shows nothing old behind it', async (t) => {
  const { servers: [a, b] } = await fleetOf(t, ['a', 'b'], ['--set', 'servers.lease_ms=3s']);
  await write(a, 'warm');
  await warm(b, 'b');
  await halt(b);
  const from = performance.now();
  assert.equal((await signed(a, 'DELETE', '/dbs/d/colls/c')).status, 204);
  const took = performance.now() - from;
  b.process.kill('SIGCONT');
  t.diagnostic(`figure: the change took ${Math.round(took)} ms`);
  assert.ok(took < 3000, `${took} ms`);
  for (let i = 0; i < 50; i++) assert.equal((await read(b, 'warm')).status, 404);
});

test('reads at followers stay within what was bought, and what is lent is spent', async (t) => {
  const { servers: [a, b] } = await fleetOf(t, ['a', 'b'], ['--set', 'throughput.burst_seconds=0']);
  assert.equal((await signed(a, 'POST', '/dbs/d/colls', { body: { id: 'small',
    partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } }, headers: { 'x-ms-offer-throughput': '400' } })).status, 201);
  const path = '/dbs/d/colls/small/docs', key = { 'x-ms-documentdb-partitionkey': '["1"]' };
  assert.equal((await signed(a, 'POST', path, { body: { id: '1', pk: '1', text: 'x'.repeat(25_000) }, headers: key })).status, 201);
  const seconds = 10;
  const course = { even: () => [a, b], 'nine to one': (i) => (i % 10 ? [b] : [a]), swapping: () => [Math.floor(performance.now() / 1000) % 2 ? a : b] };
  for (const [name, choose] of Object.entries(course)) {
    let spent = 0, refused = 0, beside = 0, stopping = false;
    const worker = async (number) => {
      for (let i = number; !stopping; i++) {
        const servers = choose(i);
        const answer = await signed(servers[i % servers.length], 'GET', `${path}/1`, { headers: { ...key, ...eventual } });
        if (answer.status === 200) {
          spent += Number(answer.headers['x-ms-request-charge']);
          beside += by(answer) === 'b';
        } else {
          assert.equal(answer.status, 429);
          refused++;
          await pause(Math.min(Number(answer.headers['x-ms-retry-after-ms'] ?? 5), 50));
        }
      }
    };
    const workers = Array.from({ length: 12 }, (_, i) => worker(i));
    await pause(2000); // both have begun
    const before = spent, from = performance.now();
    await pause(seconds * 1000);
    const rate = (spent - before) / ((performance.now() - from) / 1000);
    stopping = true;
    await Promise.all(workers);
    t.diagnostic(`figure: ${name}: ${rate.toFixed(1)} RU/s of 400, ${beside} reads at the follower, ${refused} refused`);
    assert.ok(rate > 380 && rate < 420, `${name}: ${rate} RU/s`);
    assert.ok(beside > 0);
  }
});
