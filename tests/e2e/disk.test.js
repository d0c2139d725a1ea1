// What becomes of the store under a server: logs that are gone, blocks that cannot be read, no room left. Each is said
// once in the log, by /ready and by a metric.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { Server, orrery, scratch } from './server.js';
import { signed } from './rest.js';

const docs = '/dbs/db/colls/c/docs';

async function filled(server, items, bytes) {
  await signed(server, 'POST', '/dbs', { body: { id: 'db' } });
  await signed(server, 'POST', '/dbs/db/colls', { body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash' }, indexingPolicy: { indexingMode: 'none' } }, headers: { 'x-ms-offer-throughput': '10000' } });
  for (let i = 0; i < items; i++) assert.equal((await put(server, `i${i}`, bytes)).status, 201);
}

const put = (server, id, bytes) =>
  signed(server, 'POST', docs, { body: { id, pk: 'x', text: randomBytes(bytes / 2).toString('hex') }, headers: { 'x-ms-documentdb-partitionkey': '["x"]' } });

const read = (server, id) => signed(server, 'GET', `${docs}/${id}`, { headers: { 'x-ms-documentdb-partitionkey': '["x"]' } });

const metric = async (server, name) => Number(new RegExp(`^${name}{node="local"} (\\d+)$`, 'm').exec(await (await server.get('/metrics')).text())?.[1]);

const files = (folder, ending) => readdirSync(folder).filter((name) => name.endsWith(ending)).map((name) => join(folder, name)).sort((a, b) => statSync(b).size - statSync(a).size);

test('a log that was removed or cut short keeps the server from starting', async (t) => {
  const data = `${scratch(t)}/data`;
  const args = ['--dev', '--node', `local=rocksdb:${data}`];
  const server = await Server.start(t, args);
  await filled(server, 5, 1024);
  await server.stop('SIGKILL');
  const again = () => orrery(['serve', '--rest', '127.0.0.1:0', '--table', '127.0.0.1:0', '--mongo', '127.0.0.1:0', '--gremlin', '127.0.0.1:0', ...args]);
  const [log] = files(join(data, 'store'), '.log');
  // Behind its last record are zeros that were prepared.
  const end = readFileSync(log).findLastIndex((byte) => byte !== 0) + 1;
  assert.ok(end > 5 * 1024 && end < statSync(log).size);
  truncateSync(log, end - 20);
  const cut = await again();
  assert.notEqual(cut.code, 0);
  assert.match(cut.err, /acknowledged writes are missing: the log was removed or cut short; restore the files, or remove/);
  rmSync(log);
  assert.match((await again()).err, /acknowledged writes are missing/);
});

test('a node without room is told of by /ready, a metric and one line of the log, until there is room', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'engine.memory_bytes_max=12M', '--set', 'throughput.ru_default=100000', '--set', 'partition.ru_max=100000']);
  await filled(server, 1, 1024);
  assert.equal((await server.get('/ready')).status, 200);
  let kept = 0;
  for (; (await put(server, `large${kept}`, 1_000_000)).status === 201; kept++);
  for (let i = 0; i < 5; i++) assert.equal((await put(server, 'more', 1_000_000)).status, 507);
  const ready = await server.get('/ready');
  assert.equal(ready.status, 503);
  const told = await ready.json();
  assert.match(told.message, /is full/);
  assert.equal(told.nodes[0].state, 'full');
  assert.equal(await metric(server, 'orrery_node_up'), 0);
  assert.equal(await metric(server, 'orrery_node_full_total'), 6);
  assert.equal(server.events().filter((event) => event.event === 'node full').length, 1);
  assert.equal((await read(server, 'i0')).status, 200, 'reads go on');
  assert.equal((await put(server, 'small', 1024)).status, 201);
  assert.equal((await server.get('/ready')).status, 200);
  assert.equal(await metric(server, 'orrery_node_up'), 1);
});

test('blocks that cannot be read are told of by /ready, a metric and one line of the log', async (t) => {
  const data = `${scratch(t)}/data`;
  const args = ['--dev', '--node', `local=rocksdb:${data}`, '--set', 'engine.write_buffer_bytes=1M', '--set', 'throughput.ru_default=100000', '--set', 'partition.ru_max=100000'];
  let server = await Server.start(t, args);
  await filled(server, 60, 64 * 1024);
  await server.stop();
  const [file] = files(join(data, 'store'), '.sst');
  const fd = openSync(file, 'r+');
  for (let part = 30; part <= 70; part += 2) writeSync(fd, Buffer.from('damage!!'), 0, 8, Math.floor((statSync(file).size * part) / 100));
  closeSync(fd);
  server = await Server.start(t, args);
  let bad = 0;
  for (let round = 0; round < 2; round++)
    for (let i = 0; i < 60; i++) bad += (await read(server, `i${i}`)).status === 500;
  assert.ok(bad >= 2, 'some were hit');
  const ready = await server.get('/ready');
  assert.equal(ready.status, 503);
  assert.equal((await ready.json()).nodes[0].state, 'unreadable');
  assert.equal(await metric(server, 'orrery_node_up'), 0);
  assert.ok((await metric(server, 'orrery_node_unreadable_total')) >= bad);
  assert.equal(server.events().filter((event) => event.event === 'node has unreadable blocks').length, 1);
});
