// Backups of a server under load, restored elsewhere and compared with a journal of what was acknowledged; chains, encryption,
// commands that are killed, disks that are full; and what `orrery verify` and `orrery check` say before and after.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { mongoClient } from './mongo.js';
import { Postgres } from './postgres.js';
import { Server, binary, environment, orrery, scratch } from './server.js';
import { signed } from './rest.js';

const command = (server, ...args) => orrery([...args, '--endpoint', server.url, '--dev']);

async function good(promise) {
  const result = await promise;
  assert.equal(result.code, 0, `${result.err}${result.out}`);
  return result;
}

const backupOf = async (server, directory, ...args) => JSON.parse((await good(command(server, 'backup', directory, '--format', 'json', ...args))).out);

async function clean(promise) {
  const report = JSON.parse((await promise).out);
  assert.deepEqual(report.findings, []);
  assert.equal(report.found, 0);
  return report;
}

async function containerMake(server, id, more = {}, ru = '20000') {
  await signed(server, 'POST', '/dbs', { body: { id: 'db' } });
  const made = await signed(server, 'POST', '/dbs/db/colls', {
    body: { id, partitionKey: { paths: ['/pk'], kind: 'Hash' }, ...more }, headers: { 'x-ms-offer-throughput': ru } });
  assert.equal(made.status, 201, made.text);
}

const upsert = (server, container, item) => signed(server, 'POST', `/dbs/db/colls/${container}/docs`, {
  body: item, headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([item.pk]), 'x-ms-documentdb-is-upsert': 'true' } });

const remove = (server, container, { id, pk }) => signed(server, 'DELETE', `/dbs/db/colls/${container}/docs/${id}`, {
  headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) } });

// All items of a container by id, without what the server adds.
async function itemsOf(server, container, pk) {
  const items = new Map();
  let continuation;
  do {
    const page = await signed(server, 'GET', `/dbs/db/colls/${container}/docs`, {
      headers: { 'x-ms-max-item-count': '1000', ...(continuation ? { 'x-ms-continuation': continuation } : {}),
        ...(pk === undefined ? {} : { 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) }) } });
    assert.equal(page.status, 200, page.text);
    for (const item of page.json.Documents) {
      for (const name of ['_rid', '_self', '_etag', '_attachments', '_ts']) delete item[name];
      items.set(item.id, item);
    }
    continuation = page.headers['x-ms-continuation'];
  } while (continuation);
  return items;
}

const serve = (t, data, ...args) => Server.start(t, ['--dev', '--node', `local=rocksdb:${data}`, ...args]);

test('a backup under load, a kill, a restore: what was acknowledged, transactions whole', async (t) => {
  const folder = scratch(t);
  const server = await serve(t, `${folder}/data`);
  await containerMake(server, 'c', { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] }, defaultTtl: 100000 });
  const mongo = await mongoClient(t, server.mongo);
  for (const name of ['a', 'b']) await mongo.db('m').createCollection(name);

  let stop = false;
  const lanes = Array.from({ length: 6 }, (_, lane) => ({ lane, acknowledged: [], sent: 0 }));
  const writing = lanes.map(async (state) => {
    for (; !stop; state.sent++) {
      const item = { id: `${state.lane}-${state.sent}`, pk: `k${state.lane}`, mail: `m${state.sent}`, text: randomBytes(20 + (state.sent % 300)).toString('hex') };
      const answer = await upsert(server, 'c', item).catch(() => ({ status: 0 })); // the server is gone
      if (answer.status !== 201) return;
      state.acknowledged.push(item);
    }
  });
  const pairs = (async () => {
    const session = mongo.startSession();
    try {
      for (let i = 0; !stop; i++)
        await session.withTransaction(async () => {
          await mongo.db('m').collection('a').insertOne({ _id: i }, { session });
          await mongo.db('m').collection('b').insertOne({ _id: i }, { session });
        });
    } catch {
      // the server is gone
    }
  })();
  while (lanes.some(({ acknowledged }) => acknowledged.length < 30)) await new Promise((resolve) => setTimeout(resolve, 10));
  const before = lanes.map(({ acknowledged }) => acknowledged.length);
  const told = await backupOf(server, `${folder}/backups`);
  const after = lanes.map(({ sent }) => sent);
  assert.equal(told.kind, 'full');
  await server.stop('SIGKILL');
  stop = true;
  await Promise.allSettled([...writing, pairs]);

  await good(orrery(['restore', `${folder}/backups`, `${folder}/restored`]));
  const checked = await clean(orrery(['check', `${folder}/restored`, '--format', 'json']));
  const again = await serve(t, `${folder}/restored`);
  const items = await itemsOf(again, 'c');
  let count = 0;
  for (const { lane, acknowledged } of lanes) {
    let length = 0;
    while (items.has(`${lane}-${length}`)) length++;
    assert.ok(length >= before[lane], `what was acknowledged before the backup is in it: ${length}, ${before[lane]}`);
    assert.ok(length <= after[lane] + 1, 'and nothing from after it');
    for (const item of acknowledged.slice(0, length)) assert.deepEqual(items.get(item.id), item);
    count += length;
  }
  assert.equal(items.size, count, 'of each logical partition one moment: a write is there only with all before it');
  const restored = await mongoClient(t, again.mongo);
  const ids = async (name) => (await restored.db('m').collection(name).find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  const [a, b] = [await ids('a'), await ids('b')];
  assert.deepEqual(a, b, 'transactions over two containers are whole');
  assert.deepEqual(a, a.map((_, i) => i));
  assert.equal(checked.items, items.size + a.length + b.length);
  for (let lane = 0; lane < 6; lane++) assert.equal((await upsert(again, 'c', { id: 'new', pk: `k${lane}`, mail: 'new' })).status, 201);
  await clean(command(again, 'verify', '--format', 'json'));
});

test('keys and the authority come along, files are for their owner alone', async (t) => {
  const folder = scratch(t);
  const server = await serve(t, `${folder}/data`);
  await backupOf(server, `${folder}/backups`);
  const [id] = readdirSync(`${folder}/backups`).filter((name) => !name.startsWith('.'));
  assert.equal(statSync(`${folder}/backups/${id}`).mode & 0o777, 0o700);
  for (const name of readdirSync(`${folder}/backups/${id}`)) assert.equal(statSync(`${folder}/backups/${id}/${name}`).mode & 0o777, 0o600, name);
  await good(orrery(['restore', `${folder}/backups/${id}`, `${folder}/restored`]));
  for (const name of ['ca.pem', 'ca.key']) assert.deepEqual(readFileSync(`${folder}/restored/tls/${name}`), readFileSync(`${folder}/data/tls/${name}`));
  const again = await serve(t, `${folder}/restored`);
  assert.equal(readFileSync(`${folder}/restored/keys`, 'utf8'), readFileSync(`${folder}/data/keys`, 'utf8'));
  assert.equal((await again.get('/ready')).status, 200);
  const taken = await orrery(['restore', `${folder}/backups`, `${folder}/restored`]);
  assert.equal(taken.code, 1);
  assert.match(taken.err, /is there already/);
});

async function filled(server, container, count, bytes = 2000) {
  const text = () => randomBytes(bytes / 2).toString('hex');
  for (let i = 0; i < count; i++) assert.equal((await upsert(server, container, { id: `i${i}`, pk: `k${i % 20}`, text: text() })).status, 201);
}

test('increments hold what changed, deletes too; a broken link is refused', async (t) => {
  const folder = scratch(t);
  const server = await serve(t, `${folder}/data`);
  await containerMake(server, 'c', {}, '10000');
  await containerMake(server, 'still', {}, '10000');
  await filled(server, 'c', 300);
  await filled(server, 'still', 100);
  const full = await backupOf(server, `${folder}/backups`);
  for (let i = 0; i < 3; i++) await upsert(server, 'c', { id: `new${i}`, pk: 'k1', n: i });
  for (let i = 0; i < 5; i++) assert.equal((await remove(server, 'c', { id: `i${i}`, pk: `k${i}` })).status, 204);
  const second = await backupOf(server, `${folder}/backups`, '--incremental');
  assert.equal(second.kind, 'incremental');
  assert.ok(second.bytesRead >= full.bytesRead / 2);
  assert.ok(second.bytesFetched < full.bytesFetched, `${second.bytesFetched} of ${full.bytesFetched}`);
  await upsert(server, 'c', { id: 'last', pk: 'k1' });
  const third = await backupOf(server, `${folder}/backups`, '--incremental');
  await good(orrery(['restore', `${folder}/backups`, `${folder}/restored`]));
  const expected = [await itemsOf(server, 'c'), await itemsOf(server, 'still')];
  await clean(orrery(['check', `${folder}/restored`, '--format', 'json']));
  const again = await serve(t, `${folder}/restored`);
  assert.deepEqual([await itemsOf(again, 'c'), await itemsOf(again, 'still')], expected);
  const whole = JSON.parse((await good(orrery(['restore', `${folder}/backups/${third.id}`, '--dry-run', '--format', 'json']))).out);
  assert.equal(whole.chain, 3);
  assert.equal(whole.dryRun, true);

  renameSync(`${folder}/backups/${second.id}`, `${folder}/elsewhere`);
  const broken = await orrery(['restore', `${folder}/backups`, `${folder}/never`]);
  assert.equal(broken.code, 1);
  assert.match(broken.err, new RegExp(`the chain is broken: backup "${third.id}" builds on "${second.id}"`));
  assert.equal((await command(server, 'backup', `${folder}/backups`, '--incremental')).code, 1);
  assert.ok(!existsSync(`${folder}/never`));
  await good(orrery(['restore', `${folder}/backups/${full.id}`, '--dry-run']));
  renameSync(`${folder}/elsewhere`, `${folder}/backups/${second.id}`);
  const data = readdirSync(`${folder}/backups/${full.id}`).filter((name) => name.endsWith('.data'))
    .map((name) => `${folder}/backups/${full.id}/${name}`).sort((one, other) => statSync(other).size - statSync(one).size)[0];
  const bytes = readFileSync(data);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(data, bytes);
  const damaged = await orrery(['restore', `${folder}/backups/${full.id}`, '--dry-run']);
  assert.equal(damaged.code, 1);
  assert.match(damaged.err, /holds (a damaged|another) chunk/);
});

test('an encrypted backup shows nothing and opens with its key or passphrase alone', async (t) => {
  const folder = scratch(t);
  const server = await serve(t, `${folder}/data`);
  await containerMake(server, 'c', {}, '400');
  await upsert(server, 'c', { id: 'i', pk: 'k', text: 'a very plain word' });
  writeFileSync(`${folder}/key`, randomBytes(32));
  writeFileSync(`${folder}/other`, randomBytes(32));
  writeFileSync(`${folder}/words`, 'correct horse battery\n');
  writeFileSync(`${folder}/other-words`, 'correct horse staple\n');
  for (const [option, file, wrong] of [['--key', 'key', 'other'], ['--passphrase', 'words', 'other-words']]) {
    const backups = `${folder}/backups-${file}`;
    await backupOf(server, backups, option, `${folder}/${file}`);
    await upsert(server, 'c', { id: file, pk: 'k' });
    await backupOf(server, backups, '--incremental', option, `${folder}/${file}`);
    assert.equal(spawnSync('grep', ['-rqa', 'very plain', backups]).status, 1);
    assert.equal((await orrery(['restore', backups, '--dry-run'])).code, 1);
    const refused = await orrery(['restore', backups, '--dry-run', option, `${folder}/${wrong}`]);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /does not open the backup/);
    await good(orrery(['restore', backups, `${folder}/from-${file}`, option, `${folder}/${file}`]));
    await clean(orrery(['check', `${folder}/from-${file}`, '--format', 'json']));
  }
});

test('a command that is killed leaves the last backup, and nothing for long', async (t) => {
  const folder = scratch(t);
  const server = await serve(t, `${folder}/data`);
  await containerMake(server, 'c', { indexingPolicy: { indexingMode: 'none' } }, '10000');
  await filled(server, 'c', 150, 60_000);
  const full = await backupOf(server, `${folder}/backups`);
  const child = spawn(binary, ['backup', `${folder}/backups`, '--endpoint', server.url, '--dev', '--rate', '1'], { env: environment(), stdio: 'ignore' });
  const ended = once(child, 'close');
  const partial = () => readdirSync(`${folder}/backups`).filter((name) => name.startsWith('.partial-'));
  while (!partial().length) await new Promise((resolve) => setTimeout(resolve, 5));
  const busy = await command(server, 'backup', `${folder}/backups`);
  assert.match(busy.err, /another backup into .* is under way/);
  child.kill('SIGKILL');
  await ended;
  assert.equal(partial().length, 1);
  assert.equal(JSON.parse((await good(orrery(['restore', `${folder}/backups`, '--dry-run', '--format', 'json']))).out).id, full.id);
  await backupOf(server, `${folder}/backups`);
  assert.equal(partial().length, 0);
  assert.equal((await signed(server, 'GET', '/_orrery/moments')).json.held, 1, 'of the one that was killed: it ends by itself');
  // what is dropped while a moment is held is purged after it
  assert.equal((await signed(server, 'DELETE', '/dbs/db/colls/c')).status, 204);
});

test('a full disk in the middle leaves the last good backup', async (t) => {
  const folder = scratch(t);
  const may = spawnSync('unshare', ['-m', 'sh', '-c', `mount -t tmpfs -o size=1m tmpfs ${folder}`]).status === 0;
  if (!may) return t.skip('no mount namespace of its own may be made here');
  const server = await serve(t, `${folder}/data`);
  await containerMake(server, 'c', { indexingPolicy: { indexingMode: 'none' } }, '10000');
  const disk = `${folder}/disk`;
  const script = `mkdir -p ${disk} && mount -t tmpfs -o size=4m tmpfs ${disk} && ${binary} backup ${disk}/b --endpoint ${server.url} --dev && echo small-done && read line
    ${binary} backup ${disk}/b --endpoint ${server.url} --dev; echo "code $?"; ls -A ${disk}/b | wc -l; ${binary} restore ${disk}/b --dry-run && echo whole`;
  const child = spawn('unshare', ['-m', 'sh', '-c', script], { env: environment(), stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '', err = '';
  child.stdout.on('data', (bytes) => (out += bytes));
  child.stderr.on('data', (bytes) => (err += bytes));
  while (!out.includes('small-done') && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 10));
  await filled(server, 'c', 120, 100_000); // hex of random bytes: about 6 MB when compressed
  child.stdin.end('\n');
  await once(child, 'close');
  assert.match(out, /code 1\n2\n/, `${out}${err}`); // the lock and the small one
  assert.match(err, /No space left on device/);
  assert.match(out, /is whole, nothing was written[^]*whole\n$/);
});

test('nodes on RocksDB and PostgreSQL are one backup, restored to any engine', async (t) => {
  const folder = scratch(t);
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--dev', '--node', `one=rocksdb:${folder}/one`, '--node', `two=${postgres.url}`]);
  await containerMake(server, 'c', { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/text'] }] } }, '40000');
  await filled(server, 'c', 200);
  const nodes = new Set((await signed(server, 'GET', '/_orrery/containers/db/c/partitions')).json.partitions.map(({ node }) => node));
  assert.deepEqual(nodes, new Set(['one', 'two']));
  const backups = `${folder}/backups`;
  await backupOf(server, backups);
  await upsert(server, 'c', { id: 'late', pk: 'k1', text: 'late' });
  await backupOf(server, backups, '--incremental');
  await clean(command(server, 'verify', '--format', 'json'));
  const expected = await itemsOf(server, 'c');
  const lacking = await orrery(['restore', backups, '--node', `one=rocksdb:${folder}/x`]);
  assert.equal(lacking.code, 1);
  assert.match(lacking.err, /has a node "two": say with --node where it goes/);
  rmSync(`${folder}/x.restoring`, { recursive: true, force: true });
  await server.stop();
  await good(orrery(['restore', backups, '--node', `one=rocksdb:${folder}/r1`, '--node', `two=rocksdb:${folder}/r2`]));
  await clean(orrery(['check', `${folder}/r1`, `${folder}/r2`, '--format', 'json']));
  const again = await Server.start(t, ['--dev', '--node', `one=rocksdb:${folder}/r1`, '--node', `two=rocksdb:${folder}/r2`]);
  assert.deepEqual(await itemsOf(again, 'c'), expected);
  await again.stop();
  const other = await Postgres.start(t);
  await good(orrery(['restore', backups, '--node', `one=${other.url}`, '--node', `two=rocksdb:${folder}/r3`]));
  const third = await Server.start(t, ['--dev', '--node', `one=${other.url}`, '--node', `two=rocksdb:${folder}/r3`]);
  assert.deepEqual(await itemsOf(third, 'c'), expected);
  await clean(command(third, 'verify', '--format', 'json'));
});

test('moments are the owner\'s, few, and refuse what they do not know', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const begin = () => signed(server, 'POST', '/_orrery/moments', { body: {} });
  const held = [await begin(), await begin(), await begin(), await begin()];
  for (const answer of held) assert.equal(answer.status, 201, answer.text);
  assert.equal((await begin()).status, 403);
  const [{ id, partitions: [first] }] = held.map(({ json }) => json);
  const page = (path, body) => signed(server, 'POST', path, { body, headers: { 'content-type': 'application/octet-stream' } });
  const read = await page(`/_orrery/moments/${id}/pages/${first.node}/${first.partition}`, Buffer.from([0, 0]));
  assert.equal(read.status, 200);
  assert.equal(read.headers['content-type'], 'application/octet-stream');
  assert.equal((await page(`/_orrery/moments/${id}/pages/0/999`, Buffer.from([0, 0]))).status, 404);
  assert.equal((await page(`/_orrery/moments/${id}/pages/0/1`, Buffer.from([9, 9]))).status, 400);
  assert.equal((await page(`/_orrery/moments/${id}/pages/0/1`, Buffer.from([0, 0, 1]))).status, 400);
  assert.equal((await page('/_orrery/moments/none/pages/0/1', Buffer.from([0, 0]))).status, 404);
  assert.equal((await signed(server, 'DELETE', `/_orrery/moments/${id}`)).status, 204);
  assert.equal((await signed(server, 'DELETE', `/_orrery/moments/${id}`)).status, 404);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'tenant' } });
  assert.equal((await signed(server, 'POST', '/_orrery/moments', { body: {}, account: 'tenant', key: made.json.keys.primary })).status, 403);
});
