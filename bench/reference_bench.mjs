// A join with a reference container against what an application does without it: a query, and a second one for the items
// it names. REFERENCE_ROUNDS of each (300), of the rows of one logical partition and of all partitions.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const rounds = Number(process.env.REFERENCE_ROUNDS ?? 300);
const countries = 250, orders = 4000, tenants = 100, partitions = 8;
const root = fileURLToPath(new URL('..', import.meta.url));

execFileSync(join(root, 'scripts/e2e-packages'));
process.env.E2E_SERVER ??= join(root, 'build-bench/orrery');
const { emulatorKey, Server } = await import('../tests/e2e/server.js');
const { CosmosClient } = await import('../tests/e2e/rekey_load.js');

const ends = [];
const t = { after: (end) => ends.unshift(end) };
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

async function main() {
  const directory = mkdtempSync(join(tmpdir(), 'orrery-bench-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${directory}`, '--set', 'query.merge=server']);
  const { database } = await new CosmosClient({ endpoint: server.url, key: emulatorKey }).databases.create({ id: 'shop' });
  const source = (await database.containers.create({ id: 'orders', partitionKey: { paths: ['/tenant'], version: 2 } }, { offerThroughput: partitions * 10_000 })).container;
  const lands = (await database.containers.create({ id: 'countries', partitionKey: { paths: ['/id'], version: 2 }, orrery: { reference: true } }, { offerThroughput: 10_000 })).container;
  const put = async (container, items) => {
    for (let i = 0; i < items.length; i += 100)
      for (const answer of await container.items.bulk(items.slice(i, i + 100).map((resourceBody) => ({ operationType: 'Upsert', resourceBody }))))
        if (answer.statusCode >= 300) throw new Error(`${answer.statusCode}`);
  };
  await put(lands, Array.from({ length: countries }, (_, i) => ({ id: `c${i}`, name: `country ${i}`, zone: i % 7, filler: 'x'.repeat(100) })));
  await put(source, Array.from({ length: orders }, (_, i) => ({ id: `o${i}`, tenant: `t${i % tenants}`, country: `c${(i * 7) % countries}`, total: i })));

  const joined = 'SELECT c.id, r.name FROM c JOIN r IN REFERENCE("countries") WHERE r.id = c.country';
  const own = 'SELECT c.id, c.country FROM c';
  const run = async (what) => {
    const times = [];
    let rows, charge;
    for (let i = 0; i < rounds; i++) {
      const begun = performance.now();
      ({ rows, charge } = await what(`t${i % tenants}`));
      times.push(performance.now() - begun);
    }
    times.sort((a, b) => a - b);
    return { rows, charge, p50: at(times, 0.5), p99: at(times, 0.99) };
  };
  const asked = (container, query, partitionKey) => container.items.query(query, { partitionKey, maxItemCount: -1 }).fetchAll();
  const once = async (tenant) => {
    const answer = await asked(source, joined, tenant);
    return { rows: answer.resources.length, charge: answer.requestCharge };
  };
  const twice = async (tenant) => {
    const first = await asked(source, own, tenant);
    const wanted = [...new Set(first.resources.map((row) => row.country))];
    const second = await lands.items.query({ query: 'SELECT r.id, r.name FROM r WHERE ARRAY_CONTAINS(@ids, r.id)', parameters: [{ name: '@ids', value: wanted }] }, { maxItemCount: -1 }).fetchAll();
    const names = new Map(second.resources.map((land) => [land.id, land.name]));
    return { rows: first.resources.map((row) => ({ id: row.id, name: names.get(row.country) })).length, charge: first.requestCharge + second.requestCharge };
  };
  await once('t0');
  const a = await run(once), b = await run(twice);
  const told = (r) => `${r.rows} rows, ${r.charge.toFixed(2)} RU, p50 ${r.p50.toFixed(2)} ms, p99 ${r.p99.toFixed(2)} ms`;
  console.log(`  by REFERENCE: ${told(a)}`);
  console.log(`  by a second query: ${told(b)} (${(b.p50 / a.p50).toFixed(2)} x the time, ${(b.charge / a.charge).toFixed(2)} x the RU)`);
}

try {
  await main();
} finally {
  for (const end of ends) await end();
}
process.exit(0);
