// Bad input at start: a clear message, the right exit code, and nothing lost.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import net from 'node:net';
import { once } from 'node:events';
import { Server, orrery, scratch } from './server.js';

const memory = ['--node', 'local=memory:', '--rest', '127.0.0.1:0'];

// Starting fails with this code and a single line that matches.
async function refused(args, code, message, options) {
  const result = await orrery(['serve', ...args], options);
  assert.equal(result.code, code, result.err);
  const lines = result.err.trim().split('\n').filter((line) => line.startsWith('orrery: '));
  assert.equal(lines.length, 1, result.err);
  assert.match(lines[0], message);
}

test('a port in use is told with the option that changes it', async (t) => {
  const holder = net.createServer().listen(0, '127.0.0.1');
  t.after(() => holder.close());
  await once(holder, 'listening');
  const { port } = holder.address();
  await refused(['--node', 'local=memory:', '--rest', `127.0.0.1:${port}`], 1,
    new RegExp(`port ${port}.* in use.*--rest`));
});

test('an address that is none is refused', async () => {
  for (const address of ['nonsense', '127.0.0.1', '127.0.0.1:99999', ':8081x'])
    await refused(['--node', 'local=memory:', '--rest', address], 1, /^orrery: --rest: /);
});

test('an unknown scheme lists those there are', async () => {
  await refused(['--node', 'a=mysql://x/y', '--rest', '127.0.0.1:0'], 1,
    /node "a": .*unknown scheme "mysql".*rocksdb:DIRECTORY, memory: or postgresql:/);
  await refused(['--node', 'a=nothing', '--rest', '127.0.0.1:0'], 1, /node "a": .*has no scheme/);
});

test('a directory of something else is refused and left alone', async (t) => {
  const directory = scratch(t);
  writeFileSync(join(directory, 'thesis.txt'), 'years of work');
  await refused(['--node', `a=rocksdb:${directory}`, '--rest', '127.0.0.1:0'], 1, /is not an orrery node/);
  assert.deepEqual(readdirSync(directory), ['thesis.txt']);
  assert.equal(readFileSync(join(directory, 'thesis.txt'), 'utf8'), 'years of work');
});

test('a directory in use by another process is refused by its number', async (t) => {
  const node = `a=rocksdb:${join(scratch(t), 'data')}`;
  const first = await Server.start(t, ['--node', node]);
  await refused(['--node', node, '--rest', '127.0.0.1:0'], 1,
    new RegExp(`in use by process ${first.process.pid}`));
  assert.equal((await first.get('/ready')).status, 200);
});

test('a place that cannot hold a directory is refused with the reason', async (t) => {
  const file = join(scratch(t), 'file');
  writeFileSync(file, 'content');
  await refused(['--node', `a=rocksdb:${file}`, '--rest', '127.0.0.1:0'], 1, /^orrery: node "a": .*file.*Not a directory/);
  await refused(['--node', 'a=rocksdb:/proc/orrery', '--rest', '127.0.0.1:0'], 1,
    /^orrery: node "a": .*\/proc\/orrery/);
  assert.equal(readFileSync(file, 'utf8'), 'content');
});

test('a node of a newer format is refused and left alone', async (t) => {
  const directory = join(scratch(t), 'data');
  const server = await Server.start(t, ['--node', `a=rocksdb:${directory}`]);
  await server.stop();
  const marker = join(directory, 'orrery.node');
  const newer = readFileSync(marker, 'utf8').replace('format 1', 'format 99');
  writeFileSync(marker, newer);
  await refused(['--node', `a=rocksdb:${directory}`, '--rest', '127.0.0.1:0'], 1, /format 99/);
  assert.equal(readFileSync(marker, 'utf8'), newer);
});

test('a corrupt store is told as such', async (t) => {
  const directory = join(scratch(t), 'data');
  const server = await Server.start(t, ['--node', `a=rocksdb:${directory}`]);
  await server.stop();
  const store = join(directory, 'store');
  const manifest = readdirSync(store).find((name) => name.startsWith('MANIFEST'));
  writeFileSync(join(store, manifest), Buffer.alloc(4096, 0x5a));
  await refused(['--node', `a=rocksdb:${directory}`, '--rest', '127.0.0.1:0'], 1, /^orrery: node "a": /);
});

test('one bad node among good ones stops the start', async (t) => {
  const directory = join(scratch(t), 'data');
  await refused(['--node', `a=rocksdb:${directory}`, '--node', 'b=what:', '--rest', '127.0.0.1:0'], 1, /node "b"/);
  const server = await Server.start(t, ['--node', `a=rocksdb:${directory}`]);
  assert.equal((await server.get('/ready')).status, 200);
});

test('two nodes of one name are refused', async () => {
  await refused(['--node', 'a=memory:', '--node', 'a=memory:'], 2, /node "a" is named twice/);
});

test('--dev beyond loopback is refused', async () => {
  for (const address of ['0.0.0.0:0', '*:0', '[::]:0'])
    await refused(['--node', 'a=memory:', '--dev', '--rest', address], 1, /--dev .*loopback/);
});

test('--dev on loopback is fine, IPv6 too', async (t) => {
  const server = await Server.start(t, ['--dev', '--rest', 'localhost:0']);
  assert.equal((await fetch(new URL('/ready', server.url))).status, 200);
});

test('unknown settings, options and commands suggest the nearest', async (t) => {
  await refused([...memory, '--set', 'log.levle=info'], 2, /there is no setting "log.levle": did you mean "log.level"\?/);
  await refused([...memory, '--nodes', 'a=memory:'], 2, /no option "--nodes": did you mean "--node"\?/);
  await refused(memory, 2, /ORRERY_LOG_LEVLE names no setting: did you mean ORRERY_LOG_LEVEL\?/,
    { env: { ORRERY_LOG_LEVLE: 'info' } });
  const command = await orrery(['serrve']);
  assert.equal(command.code, 2);
  assert.match(command.err, /no command "serrve": did you mean "serve"\?/);
  const file = join(scratch(t), 'orrery.conf');
  writeFileSync(file, '[net]\nlops = 2\n');
  await refused([...memory, '--config', file], 2, /orrery\.conf:2: there is no setting "net.lops": did you mean "net.loops"\?/);
});

test('a value out of range is told with its range', async () => {
  await refused([...memory, '--set', 'net.loops=5000'], 2, /"net.loops" cannot be "5000": it takes 0 to 1024/);
  await refused([...memory, '--set', 'server.drain_ms=5'], 2, /it takes 0 to 1h \(500ms, 30s, 5m\)/);
});

test('a certificate without its key, or with another, is refused', async (t) => {
  const directory = scratch(t);
  writeFileSync(join(directory, 'c.pem'), 'nothing\n');
  await refused([...memory, '--set', `tls.certificate=${directory}/c.pem`], 1, /tls.key is not set/);
  await refused([...memory, '--set', `tls.certificate=${directory}/c.pem`, '--set', `tls.key=${directory}/c.pem`],
    1, /c\.pem/);
});

test('file, environment and command line win in that order', async (t) => {
  const directory = scratch(t);
  const file = join(directory, 'orrery.conf');
  writeFileSync(file, '[rest]\nlisten = 127.0.0.1:1\n[log]\nlevel = error\n[node]\nfrom-file = memory:\n');
  const server = await Server.start(t, ['--node', 'from-line=memory:', '--config', file],
    { env: { ORRERY_LOG_LEVEL: 'debug', ORRERY_NODE_VARIABLE: 'memory:' } });
  const metrics = await (await server.get('/metrics')).text();
  for (const name of ['from-file', 'variable', 'from-line'])
    assert.ok(metrics.includes(`orrery_node_up{node="${name}"} 1`), name);
});

test('without a node the data goes where the XDG directories say', async (t) => {
  const home = scratch(t);
  mkdirSync(join(home, 'xdg'));
  const run = (env) => orrery(['serve', '--rest', 'nonsense'], { env });
  assert.equal((await run({ XDG_DATA_HOME: join(home, 'xdg') })).code, 1);
  assert.deepEqual(readdirSync(join(home, 'xdg')), [], 'a wrong address is seen before data is touched');
});
