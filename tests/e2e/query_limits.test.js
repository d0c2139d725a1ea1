// What queries may use: memory, disk and time, and what becomes of them when their client leaves.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { scratch } from './server.js';
import { shop } from './items.js';

const unindexed = { indexingPolicy: { indexingMode: 'none', automatic: false } };
const throughput = { create: { offerThroughput: 50_000 } };

async function fill(container, count, more = () => ({})) {
  const items = Array.from({ length: count }, (_, i) => ({
    id: `i${i}`,
    tenant: `t${i % 7}`,
    n: (i * 7919) % count,
    text: 'x'.repeat(400),
    ...more(i),
  }));
  for (let i = 0; i < count; i += 100)
    await Promise.all(items.slice(i, i + 100).map((item) => container.items.create(item)));
  return items;
}

const all = (container, query, maxItemCount) =>
  container.items.query(query, { maxItemCount }).fetchAll().then((answer) => answer.resources);

async function metric(server, name) {
  const text = await (await server.get('/metrics')).text();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)?.[1]);
}

const sorted = 'SELECT c.n, c.text FROM c ORDER BY c.n';
const here = ['--set', 'query.merge=server', '--set', 'query.order_unindexed=true'];
const small = ['--set', 'query.memory_bytes_max=65536', ...here];

test('a sort that does not fit its memory is spilled to disk, and its pages read on from there', async (t) => {
  const directory = scratch(t);
  const { server, container } = await shop(t, unindexed, {
    ...throughput,
    args: ['--node', `local=rocksdb:${directory}`, ...small],
  });
  await fill(container, 700);
  const rows = await all(container, sorted, 100);
  assert.deepEqual(rows.map((row) => row.n), Array.from({ length: 700 }, (_, i) => i));
  const written = await metric(server, 'orrery_query_spilled_bytes_total');
  assert.ok(written > 700 * 400, `${written} bytes were spilled`);
  assert.equal(await metric(server, 'orrery_query_spill_failures_total'), 0);
  assert.equal(await metric(server, 'orrery_query_spilled_bytes'), 0);
  assert.deepEqual(readdirSync(join(directory, 'tmp')), []);
});

test('without disk the same rows come from several passes', async (t) => {
  for (const args of [['--set', 'query.spill_bytes_max=0'], ['--set', 'query.spill_directory=/proc/none']]) {
    const { server, container } = await shop(t, unindexed, { ...throughput, args: [...small, ...args] });
    await fill(container, 500);
    const rows = await all(container, sorted, 100);
    assert.deepEqual(rows.map((row) => row.n), Array.from({ length: 500 }, (_, i) => i));
    assert.equal(await metric(server, 'orrery_query_spilled_bytes_total'), 0);
  }
});

const endless =
  'SELECT VALUE COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list JOIN e IN c.list JOIN f IN c.list';
const patient = ['--set', 'query.pause_ms=1h', '--set', 'query.deadline_ms=1h'];
const list = () => ({ list: Array.from({ length: 100 }, (_, i) => i) });

test('a page ends at query.pause_ms, and the rest comes with the next', async (t) => {
  const { container } = await shop(t, unindexed, { ...throughput, args: ['--set', 'query.pause_ms=1ms', ...here] });
  await fill(container, 200, list);
  const pages = container.items.query('SELECT VALUE COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list');
  const rows = [];
  let count = 0;
  for (; pages.hasMoreResults(); count++) rows.push(...((await pages.fetchNext()).resources ?? []));
  assert.deepEqual(rows, [200 * 100 * 100]);
  assert.ok(count > 1, `${count} pages`); // each item takes a good part of a millisecond
});

test('a query stops soon after its client has gone', async (t) => {
  const { server, container } = await shop(t, unindexed, { ...throughput, args: patient });
  await fill(container, 3, list);
  const running = () => metric(server, 'orrery_workers_running');
  const idle = await running(); // what counts them may be one of them
  const leaving = new AbortController();
  const asked = container.items.query(endless, { abortSignal: leaving.signal }).fetchAll();
  await server.until(async () => (await running()) > idle);
  leaving.abort();
  await assert.rejects(asked);
  await server.until(async () => (await running()) === idle);
  assert.equal((await all(container, 'SELECT * FROM c')).length, 3);
});

test('a query that takes longer than query.deadline_ms is refused', async (t) => {
  const { container } = await shop(t, unindexed, {
    ...throughput,
    args: ['--set', 'query.pause_ms=1h', '--set', 'query.deadline_ms=50ms'],
  });
  await fill(container, 3, list);
  await assert.rejects(all(container, endless), { code: 408 });
});
