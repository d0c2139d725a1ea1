// What views cost and give: writes to a source with no, one and three views; how far views are behind meanwhile; a
// query by the view's key through the view and through all partitions of its source. VIEWS_WRITES writes (5,000) for each.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const writes = Number(process.env.VIEWS_WRITES ?? 5000);
const writers = 8, partitions = 16, emails = 500;
const root = fileURLToPath(new URL('..', import.meta.url));

execFileSync(join(root, 'scripts/e2e-packages'));
process.env.E2E_SERVER ??= join(root, 'build-bench/orrery');
const { emulatorKey, Server } = await import('../tests/e2e/server.js');
const { CosmosClient } = await import('../tests/e2e/rekey_load.js');
const { signed } = await import('../tests/e2e/rest.js');

const ends = [];
const t = { after: (end) => ends.unshift(end) };
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
const shown = (list) => { const sorted = [...list].sort((a, b) => a - b); return `p50 ${at(sorted, 0.5).toFixed(2)} ms, p99 ${at(sorted, 0.99).toFixed(2)} ms`; };

async function main() {
  const directory = mkdtempSync(join(tmpdir(), 'orrery-bench-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${directory}`]);
  const { database } = await new CosmosClient({ endpoint: server.url, key: emulatorKey }).databases.create({ id: 'shop' });
  const orders = (await database.containers.create({ id: 'orders', partitionKey: { paths: ['/tenant'], version: 2 } }, { offerThroughput: partitions * 10_000 })).container;
  const order = (i) => ({ id: `o${i}`, tenant: `t${i % 1000}`, email: `e${i % emails}@x`, total: i, filler: 'x'.repeat(200) });
  const lag = async () => Number((await signed(server, 'GET', '/_orrery/containers/shop/v0')).json.view.lagMs);

  for (const views of [0, 1, 3]) {
    for (let i = 0; i < views; i++)
      await database.containers.createIfNotExists({
        id: `v${i}`, partitionKey: { paths: ['/email'], version: 2 },
        materializedViewDefinition: { sourceCollectionId: 'orders', definition: 'SELECT c.id, c.email, c.total FROM c' },
      });
    const times = [], lags = [];
    let next = 0;
    const sampling = (async () => { while (views && next < writes) { lags.push(await lag()); await new Promise((done) => setTimeout(done, 10)); } })();
    await Promise.all(Array.from({ length: writers }, async () => {
      for (let i = next++; i < writes; i = next++) {
        const begun = performance.now();
        await orders.items.upsert(order(i));
        times.push(performance.now() - begun);
      }
    }));
    await sampling;
    console.log(`  ${views} views: ${writes} upserts by ${writers} clients, ${shown(times)}${views ? `; lag of a view ${shown(lags)}` : ''}`);
  }
  while (await lag()) await new Promise((done) => setTimeout(done, 10));
  const spec = { query: 'SELECT c.total FROM c WHERE c.email = @e', parameters: [{ name: '@e', value: 'e7@x' }] };
  const fanned = await orders.items.query(spec).fetchAll();
  const direct = await database.container('v0').items.query(spec, { partitionKey: 'e7@x' }).fetchAll();
  console.log(`  ${direct.resources.length} of ${fanned.resources.length} rows: ${fanned.requestCharge.toFixed(2)} RU over ${partitions} partitions, ` +
    `${direct.requestCharge.toFixed(2)} RU through the view (${(fanned.requestCharge / direct.requestCharge).toFixed(1)} x)`);
}

try {
  await main();
} finally {
  for (const end of ends) await end();
}
process.exit(0);
