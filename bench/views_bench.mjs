// What views cost and give: writes to containers with no, one and three views, in turns, so that what else the machine does falls on all of
// them alike; how far views are behind meanwhile; a query by the view's key as the view answers it, and as all partitions of the container do.
// VIEWS_WRITES writes (6,000) to each container. Goals: p99 of writes at most 1.1 times that without views, lag p99 at most 100 ms, a fifth of the RU.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const writes = Number(process.env.VIEWS_WRITES ?? 6000);
const writers = 8, partitions = 16, emails = 500, turns = 20;
const root = fileURLToPath(new URL('..', import.meta.url));

execFileSync(join(root, 'scripts/e2e-packages'));
process.env.E2E_SERVER ??= join(root, 'build-bench/orrery');
const { emulatorKey, Server } = await import('../tests/e2e/server.js');
const { CosmosClient } = await import('../tests/e2e/rekey_load.js');
const { signed } = await import('../tests/e2e/rest.js');

const ends = [];
const t = { after: (end) => ends.unshift(end) };
const at = (list, part) => { const sorted = [...list].sort((a, b) => a - b); return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0; };
const shown = (list) => `p50 ${at(list, 0.5).toFixed(2)} ms, p99 ${at(list, 0.99).toFixed(2)} ms`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const order = (i) => ({ id: `o${i}`, tenant: `t${i % 1000}`, email: `e${i % emails}@x`, total: i, filler: 'x'.repeat(200) });

async function main() {
  const directory = mkdtempSync(join(tmpdir(), 'orrery-bench-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${directory}`]);
  const { database } = await new CosmosClient({ endpoint: server.url, key: emulatorKey }).databases.create({ id: 'shop' });
  const lag = async (view) => Number((await signed(server, 'GET', `/_orrery/containers/shop/${view}`)).json.view.lagMs);
  const sides = [];
  for (const views of [0, 1, 3]) {
    const id = `orders${views}`;
    const { container } = await database.containers.create({ id, partitionKey: { paths: ['/tenant'], version: 2 } }, { offerThroughput: partitions * 10_000 });
    for (let i = 0; i < views; i++)
      await database.containers.create({
        id: `${id}-view${i}`, partitionKey: { paths: ['/email'], version: 2 },
        materializedViewDefinition: { sourceCollectionId: id, definition: 'SELECT c.id, c.email, c.total FROM c' },
      });
    sides.push({ id, views, container, times: [], lags: [], next: 0 });
  }

  // one turn of one container: its writers, and who looks how far its first view is behind
  const turn = async (side, until) => {
    let busy = true;
    const looking = (async () => { while (side.views && busy) { side.lags.push(await lag(`${side.id}-view0`)); await pause(10); } })();
    await Promise.all(Array.from({ length: writers }, async () => {
      for (let i = side.next++; i < until; i = side.next++) {
        const begun = performance.now();
        await side.container.items.upsert(order(i));
        side.times.push(performance.now() - begun);
      }
    }));
    side.next = until;
    busy = false;
    await looking;
  };
  for (let round = 1; round <= turns; round++)
    for (const side of sides) await turn(side, Math.floor((writes * round) / turns));

  for (const side of sides) {
    const ratio = at(side.times, 0.99) / at(sides[0].times, 0.99);
    console.log(`  ${side.views} views: ${side.times.length} upserts by ${writers} clients, ${shown(side.times)}` +
      (side.views ? ` (${ratio.toFixed(2)} x without views; goal 1.10); lag of a view ${shown(side.lags)} (goal 100 ms)` : ''));
  }

  const source = '/dbs/shop/colls/orders1/docs';
  const ask = async (headers) => {
    let charge = 0, rows = 0, view, more;
    do {
      const page = await signed(server, 'POST', source, {
        body: { query: 'SELECT c.id, c.total FROM c WHERE c.email = @e', parameters: [{ name: '@e', value: 'e7@x' }] },
        headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers,
          ...(more ? { 'x-ms-continuation': more } : {}) },
      });
      if (page.status !== 200) throw new Error(page.text);
      charge += Number(page.headers['x-ms-request-charge']);
      rows += page.json.Documents.length;
      view ??= page.headers['x-orrery-view'];
      more = page.headers['x-ms-continuation'];
    } while (more);
    return { charge, rows, view };
  };
  let through;
  do through = await ask({}); while (!through.view); // once it has caught up
  const fanned = await ask({ 'x-orrery-use-views': 'false' });
  console.log(`  ${through.rows} of ${fanned.rows} rows: ${fanned.charge.toFixed(2)} RU over ${partitions} partitions, ` +
    `${through.charge.toFixed(2)} RU through the view that the query uses by itself (${(fanned.charge / through.charge).toFixed(1)} x fewer; goal 5 x)`);
}

try {
  await main();
} finally {
  for (const end of ends) await end();
}
process.exit(0);
