// A container is given another partition key under clients of the vendor's own library: what they notice of it, and
// whether every item is afterwards what their journal says. 100,000 items of 1 KB, all paths indexed;
// REKEY_SDK_ITEMS=1000000 for more, REKEY_SDK_REST_MS for the rest of a client between two operations.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const items = Number(process.env.REKEY_SDK_ITEMS ?? 100_000);
const restMs = Number(process.env.REKEY_SDK_REST_MS ?? 5);
const root = fileURLToPath(new URL('..', import.meta.url));
const importers = 16;
const calmMs = 10_000;

execFileSync(join(root, 'scripts/e2e-packages'));
process.env.E2E_SERVER ??= join(root, 'build-bench/orrery');
const { binary, emulatorKey, Server } = await import('../tests/e2e/server.js');
const { signed } = await import('../tests/e2e/rest.js');
const { CosmosClient, Load, order } = await import('../tests/e2e/rekey_load.js');

const ends = [];
const t = { after: (end) => ends.unshift(end) };
const seconds = (sinceMs) => ((performance.now() - sinceMs) / 1000).toFixed(1);

// Several files' worth, each through `orrery import`.
async function fill(server) {
  const importer = async (nth) => {
    const child = spawn(binary, ['import', '-', '--as', 'json', '--database', 'shop', '--container', 'orders', '--quiet', '--dev', '--endpoint', server.url],
      { stdio: ['pipe', 'ignore', 'inherit'] });
    const ended = once(child, 'close');
    for (let n = nth; n < items; n += importers * 100) {
      let text = '';
      for (let i = n; i < Math.min(items, n + importers * 100); i += importers) text += `${JSON.stringify(order(i, true))}\n`;
      if (!child.stdin.write(text)) await once(child.stdin, 'drain');
    }
    child.stdin.end();
    const [code] = await ended;
    if (code !== 0) throw new Error(`orrery import ended with ${code}`);
  };
  await Promise.all(Array.from({ length: importers }, (_, nth) => importer(nth)));
}

async function main() {
  const directory = mkdtempSync(join(tmpdir(), 'orrery-bench-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${directory}`, '--set', 'migration.bytes_per_second=0',
    '--set', 'migration.pause_ms=100ms', '--set', 'partition.ru_max=1000000']);
  const client = () => new CosmosClient({ endpoint: server.url, key: emulatorKey }).database('shop').container('orders');
  const admin = async (method, path, body) => (await signed(server, method, path, { body })).json;
  const { database } = await new CosmosClient({ endpoint: server.url, key: emulatorKey }).databases.create({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 } }, { offerThroughput: 1_000_000 });

  let begun = performance.now();
  console.error(`  filling with ${items} items`);
  await fill(server);
  console.log(`  filled with ${items} items in ${seconds(begun)} s`);
  const load = new Load({ filled: items, wide: true, touchedMax: 5000, restMs });
  const old = [client(), client(), client(), client()];
  load.start(old, (item) => item.tenant);
  await sleep(calmMs / 2); // until definitions are cached and the store is calm
  const before = load.phase();
  await sleep(calmMs);

  const rekey = '/_orrery/containers/shop/orders/rekey';
  const partitionKey = { paths: ['/user'], kind: 'Hash', version: 2 };
  const dry = await admin('POST', rekey, { partitionKey, dryRun: true });
  console.log(`  dry run: ${dry.items} of ${dry.itemsTotal} items looked at, ${dry.partitions} partition(s), ` +
    `${(dry.bytesNeeded / 2 ** 20).toFixed(0)} MB, about ${(dry.durationMs / 1000).toFixed(0)} s, conflicts ${JSON.stringify(dry.conflicts)}`);
  const during = load.phase();
  begun = performance.now();
  const cpu = server.cpuSeconds();
  await admin('POST', rekey, { partitionKey });
  for (let state, told = begun; (state = await admin('GET', rekey)).underWay; await sleep(20)) {
    if (performance.now() - told < 10_000) continue;
    told = performance.now();
    console.error(`  ${seconds(begun)} s: ${state.migration.phase}, ${state.migration.items} items, ${load.steps()} operations`);
  }
  const took = seconds(begun);
  const cpuUsed = (server.cpuSeconds() - cpu).toFixed(0);
  load.phase(); // what was begun before the switch belongs to neither
  load.start([client(), client()], (item) => item.user);
  await sleep(calmMs / 2);
  const after = load.phase();
  await sleep(calmMs);
  await load.stop();

  const outcome = (await admin('GET', '/_orrery/migrations')).recent.find((one) => one.kind === 'rekey');
  begun = performance.now();
  const found = await load.check(client());
  const counted = await client().items.query('SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.user)').fetchAll();
  const failed = load.failures();
  console.log(`  re-keyed ${outcome.items} items, ${(outcome.bytes / 2 ** 20).toFixed(0)} MB, in ${took} s ` +
    `(${cpuUsed} s of the server's CPU time, clients and all); pause ${outcome.pauseMs} ms (goal: under 100 ms)`);
  console.log(`  before  ${before}\n  during  ${during}\n  after   ${after}`);
  console.log(`  ${load.steps()} operations, ${load.journal.size} items touched; ${found.items} items checked in ${seconds(begun)} s: ` +
    `failed ${failed.length}, lost ${found.lost}, doubled ${found.doubled}, wrong ${found.wrong.length}`);
  console.log(`p99 in ms while a container is re-keyed through @azure/cosmos, less is better: ${during.quantile(0.99).toFixed(1)} / ` +
    `${before.quantile(0.99).toFixed(1)} = ${(during.quantile(0.99) / before.quantile(0.99)).toFixed(2)} (against before it)`);
  for (const error of failed.slice(0, 3)) console.error(error);
  for (const one of found.wrong.slice(0, 3)) console.error(JSON.stringify(one));
  return failed.length + found.lost + found.doubled + found.wrong.length + (counted.resources[0] !== found.items);
}

let bad = 1;
try {
  bad = await main();
} finally {
  for (const end of ends) end();
}
process.exit(bad ? 1 : 0);
