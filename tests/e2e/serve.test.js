// Starting, answering, reloading and stopping.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { join } from 'node:path';
import { Server, emulatorKey, sanitized, scratch } from './server.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The certificate the server shows to a new connection.
async function certificate(port) {
  const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const shown = socket.getPeerCertificate();
  socket.destroy();
  return shown;
}

function makeCertificate(directory, name) {
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-days', '7', '-subj', `/CN=${name}`, '-keyout', join(directory, 'key.pem'),
    '-out', join(directory, 'certificate.pem')], { stdio: 'ignore' });
}

test('an idle server on the embedded engine is small and quiet', async (t) => {
  const server = await Server.start(t, ['--node', `local=rocksdb:${join(scratch(t), 'data')}`]);
  assert.equal((await server.get('/ready')).status, 200);
  const cpuBefore = server.cpuSeconds();
  await pause(2000);
  const cpu = server.cpuSeconds() - cpuBefore;
  const megabytes = server.residentBytes() / 1024 / 1024;
  t.diagnostic(`figure: ready ${server.readyMs.toFixed(0)} ms after exec, first start`);
  t.diagnostic(`figure: ${megabytes.toFixed(1)} MB resident, ${(cpu * 1000).toFixed(0)} ms CPU in 2 s idle`);
  if (sanitized) return;
  assert.ok(server.readyMs < 5000, 'a busy machine may be slow, but not like this');
  assert.ok(megabytes < 48, `${megabytes} MB resident`);
  assert.ok(cpu <= 0.05, `${cpu} s of CPU while idle`);
});

// How often each thread of a process has gone to sleep of its own accord, which is how often it was awake.
function sleeps(pid) {
  const found = new Map();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
    found.set(`${/^Name:\s*(.*)$/m.exec(status)[1]} ${task}`, Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(status)[1]));
  }
  return found;
}

test('no thread of an idle server wakes once a second', async (t) => {
  const server = await Server.start(t, ['--node', `local=rocksdb:${join(scratch(t), 'data')}`]);
  assert.equal((await server.get('/ready')).status, 200);
  await pause(3000); // what the start has left to do
  const before = sleeps(server.process.pid);
  const seconds = 12;
  await pause(seconds * 1000);
  for (const [thread, count] of sleeps(server.process.pid)) {
    const woken = count - (before.get(thread) ?? 0);
    if (woken > 2) t.diagnostic(`figure: ${thread} woke ${woken} times in ${seconds} s`);
    assert.ok(woken <= seconds / 2, `${thread} woke ${woken} times in ${seconds} s`); // once in ten seconds, and room
  }
});

test('a second start of the same directory keeps key and certificate', async (t) => {
  const directory = join(scratch(t), 'data');
  const node = ['--node', `local=rocksdb:${directory}`];
  const first = await Server.start(t, node);
  const shown = await certificate(first.port);
  const key = readFileSync(join(directory, 'keys'), 'utf8');
  assert.deepEqual(await first.stop(), { code: 0, signal: null });
  const second = await Server.start(t, node);
  assert.equal((await certificate(second.port)).fingerprint256, shown.fingerprint256);
  assert.equal(readFileSync(join(directory, 'keys'), 'utf8'), key);
  t.diagnostic(`figure: ready ${second.readyMs.toFixed(0)} ms after exec, second start`);
});

test('secrets are readable by their owner only, and not printed', async (t) => {
  const directory = join(scratch(t), 'data');
  const server = await Server.start(t, ['--node', `local=rocksdb:${directory}`]);
  for (const name of ['keys', 'tls/ca.key', 'tls/server.pem']) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600);
  const lines = readFileSync(join(directory, 'keys'), 'utf8').trim().split('\n').map((line) => line.split(' '));
  assert.deepEqual(lines.map(([name]) => name), ['primary', 'secondary', 'primary-readonly', 'secondary-readonly']);
  for (const [, key] of lines) {
    assert.equal(Buffer.from(key, 'base64').length, 64);
    assert.ok(!(server.out + server.err).includes(key));
  }
  assert.match(server.out, /key +in the file .*keys/);
});

test('the file of keys comes back when it is lost, with --dev too', async (t) => {
  const directory = join(scratch(t), 'data');
  const node = ['--node', `local=rocksdb:${directory}`];
  await (await Server.start(t, node)).stop();
  const keys = readFileSync(join(directory, 'keys'), 'utf8');
  rmSync(join(directory, 'keys'));
  await (await Server.start(t, [...node, '--dev'])).stop();
  assert.equal(readFileSync(join(directory, 'keys'), 'utf8'), keys);
});

test('the banner of --dev holds a connection string that clients take as it is', async (t) => {
  const server = await Server.start(t, ['--dev']);
  assert.ok(server.out.includes(`AccountEndpoint=${server.url}/;AccountKey=${emulatorKey};`));
  assert.match(server.out, /data +local = memory:/);
});

test('the log of a server without a terminal is JSON, one object a line', async (t) => {
  const server = await Server.start(t);
  await server.stop();
  const lines = server.err.trim().split('\n').map((line) => JSON.parse(line));
  assert.ok(lines.some((line) => line.event === 'listening' && line.port === server.port));
  assert.ok(lines.every((line) => line.time && line.level && line.event));
});

test('log.format=human is for people wherever it goes', async (t) => {
  const server = await Server.start(t, ['--set', 'log.format=human']);
  await server.stop();
  assert.match(server.err, /^\d\d:\d\d:\d\d\.\d{3} listening front=rest /m);
});

test('/ready, /metrics and the authority can only be read', async (t) => {
  const server = await Server.start(t);
  for (const path of ['/ready', '/metrics', '/_orrery/ca.pem']) {
    const answer = await server.get(path, { method: 'POST', body: 'x' });
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), 'GET, HEAD');
    assert.equal((await answer.json()).code, 'MethodNotAllowed');
    assert.equal((await server.get(path, { method: 'HEAD' })).status, 200);
  }
});

test('what does not exist is a named error in JSON with an activity id', async (t) => {
  const server = await Server.start(t);
  for (const [path, status, code] of [
    ['/nowhere/"quoted"', 404, 'NotFound'],
    ['/readyx', 401, 'Unauthorized'], // no account of that name, which is not told
    ['/', 401, 'Unauthorized'],
    ['/dbs', 401, 'Unauthorized'],
    ['/dbs/', 401, 'Unauthorized'], // slashes at the end mean nothing
    ['/dbs//colls', 400, 'BadRequest'],
    ['/dbs/d/nothing', 404, 'NotFound'],
    ['/dbs/d/colls/c/docs', 401, 'Unauthorized'],
    ['/offers', 401, 'Unauthorized'],
  ]) {
    const answer = await server.get(path);
    assert.equal(answer.status, status, path);
    assert.match(answer.headers.get('content-type'), /^application\/json/);
    assert.match(answer.headers.get('x-ms-activity-id'), /^[0-9a-f-]{36}$/);
    const body = await answer.json();
    assert.equal(body.code, code);
    assert.ok(body.message.length > 10);
  }
});

test('/metrics is well-formed and counts', async (t) => {
  const server = await Server.start(t, ['--node', 'a=memory:', '--node', 'b=memory:']);
  const value = async (series) => {
    const text = await (await server.get('/metrics')).text();
    for (const line of text.trim().split('\n'))
      assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? (\d+(\.\d+)?|\+Inf))$/);
    const line = text.split('\n').find((candidate) => candidate.startsWith(series + ' '));
    assert.ok(line, `${series} is missing`);
    return Number(line.slice(series.length + 1));
  };
  const before = await value('orrery_requests_total{front="rest",answer="4xx"}');
  await server.get('/nowhere');
  assert.equal(await value('orrery_requests_total{front="rest",answer="4xx"}'), before + 1);
  assert.equal(await value('orrery_node_up{node="a"}'), 1);
  assert.equal(await value('orrery_node_up{node="b"}'), 1);
  assert.ok((await value('orrery_connections{front="rest"}')) >= 1);
  const refused = await value('orrery_requests_total{front="table",answer="4xx"}');
  await fetch(`http://127.0.0.1:${server.tablePort}/nowhere`);
  assert.equal(await value('orrery_requests_total{front="table",answer="4xx"}'), refused + 1);
  assert.ok((await value('process_resident_memory_bytes')) > 1e6);
  assert.ok((await value('orrery_request_seconds_count{front="rest"}')) >= 3);
});

// A client that asks for more than fits into the sockets' buffers and reads nothing, so that the
// server has answers left to give for as long as the test likes.
async function clientThatDoesNotRead(t, server) {
  const socket = net.connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  socket.pause();
  await once(socket, 'connect');
  socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(5000));
  let sent = -1;
  // the counter grows only by our own questions once the socket is full
  await server.until(async () => {
    const before = sent;
    const text = await (await server.get('/metrics')).text();
    sent = Number(/^orrery_sent_bytes_total\S* (\d+)/m.exec(text)[1]);
    await pause(100);
    return before >= 0 && sent > 100_000 && sent - before < 2 * text.length;
  });
  return socket;
}

test('SIGTERM answers every request that was taken, whole, and exits with 0', async (t) => {
  const server = await Server.start(t);
  const socket = await clientThatDoesNotRead(t, server);
  server.process.kill('SIGTERM');
  await server.until(() => server.events().some((event) => event.event === 'stopping'));
  let text = '';
  socket.on('data', (bytes) => (text += bytes));
  socket.resume();
  await once(socket, 'close');
  assert.deepEqual(await server.ended, { code: 0, signal: null }, server.err);
  assert.ok(server.events().some((event) => event.event === 'stopped' && event.drained));
  let count = 0;
  while (text.length > 0) {
    const head = text.indexOf('\r\n\r\n') + 4;
    const body = Number(/Content-Length: (\d+)/i.exec(text.slice(0, head))[1]);
    assert.ok(text.length >= head + body, 'the last answer is whole');
    text = text.slice(head + body);
    count++;
  }
  assert.ok(count > 10, `${count} answers`);
});

test('a request that has only half arrived at SIGTERM is told to come again', async (t) => {
  const server = await Server.start(t);
  const socket = net.connect(server.port, '127.0.0.1');
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes));
  const closed = once(socket, 'close');
  socket.write('POST /dbs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345');
  await pause(50); // for the head to be read
  server.process.kill('SIGTERM');
  await closed;
  assert.match(answer, /^HTTP\/1\.1 503 /);
  assert.match(answer, /"code":"ServiceUnavailable"/);
  assert.deepEqual(await server.ended, { code: 0, signal: null });
});

test('an idle connection does not hold up SIGTERM', async (t) => {
  const server = await Server.start(t);
  const socket = net.connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  socket.destroy();
});

test('answers nobody takes are cut off after server.drain_ms', async (t) => {
  const server = await Server.start(t, ['--set', 'server.drain_ms=100ms']);
  await clientThatDoesNotRead(t, server);
  assert.deepEqual(await server.stop(), { code: 1, signal: null });
  assert.ok(server.events().some((event) => event.event === 'requests were cut off'));
});

test('a second signal ends a server that drains', async (t) => {
  const server = await Server.start(t, ['--set', 'server.drain_ms=1h']);
  await clientThatDoesNotRead(t, server);
  server.process.kill('SIGTERM');
  await server.until(() => server.events().some((event) => event.event === 'stopping'));
  await pause(50); // the handler is set just after the line
  assert.deepEqual(await server.stop('SIGINT'), { code: 130, signal: null });
});

test('a port takes https too, with a certificate for localhost', async (t) => {
  const server = await Server.start(t);
  const shown = await certificate(server.port);
  assert.equal(shown.subject.CN, 'localhost');
  assert.match(shown.subjectaltname, /DNS:localhost, DNS:\*\.localhost, IP Address:127\.0\.0\.1, IP Address:0:0:0:0:0:0:0:1/);
  assert.equal(shown.bits, 256);
});

test('SIGHUP serves the new certificate to new connections', async (t) => {
  const directory = scratch(t);
  makeCertificate(directory, 'first');
  const server = await Server.start(t, ['--set', `tls.certificate=${directory}/certificate.pem`,
    '--set', `tls.key=${directory}/key.pem`]);
  assert.equal((await certificate(server.port)).subject.CN, 'first');
  makeCertificate(directory, 'second');
  assert.equal((await certificate(server.port)).subject.CN, 'first');
  server.process.kill('SIGHUP');
  await server.until(() => server.events().some((event) => event.event === 'certificate read again'));
  assert.equal((await certificate(server.port)).subject.CN, 'second');
});

test('a broken certificate at SIGHUP leaves the old one in service', async (t) => {
  const directory = scratch(t);
  makeCertificate(directory, 'good');
  const server = await Server.start(t, ['--set', `tls.certificate=${directory}/certificate.pem`,
    '--set', `tls.key=${directory}/key.pem`]);
  writeFileSync(join(directory, 'key.pem'), 'not a key\n');
  server.process.kill('SIGHUP');
  await server.until(() => server.events().some((event) => event.event === 'the certificate stays as it was'));
  assert.equal((await certificate(server.port)).subject.CN, 'good');
  assert.equal((await server.get('/ready')).status, 200);
});

test('tls.required closes plain connections', async (t) => {
  const server = await Server.start(t, ['--set', 'tls.required=true']);
  await assert.rejects(server.get('/ready'));
  assert.equal((await certificate(server.port)).subject.CN, 'localhost');
});

test('a front that is off does not listen', async (t) => {
  const server = await Server.start(t, ['--mongo', 'off', '--table', 'off', '--gremlin', 'off']);
  assert.equal((await server.get('/ready')).status, 200);
  const closed = await Server.start(t, ['--rest', 'off', '--table', 'off', '--mongo', 'off', '--gremlin', 'off']);
  assert.match(closed.out, /REST +off/);
  assert.match(closed.out, /MongoDB +off/);
  assert.match(closed.out, /Tables +off/);
  assert.ok(!closed.events().some((event) => event.event === 'listening'));
  assert.deepEqual(await closed.stop(), { code: 0, signal: null });
});

test('a service manager is told when the server is ready', async (t) => {
  const path = join(scratch(t), 'notify');
  // node has no datagram sockets of this family, so python3, which Meson needs anyway, listens
  const script = 'import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n' +
    's.bind(sys.argv[1])\ns.settimeout(20)\nprint(s.recv(100).decode())';
  const { spawn } = await import('node:child_process');
  const manager = spawn('python3', ['-c', script, path]);
  let heard = '';
  manager.stdout.on('data', (bytes) => (heard += bytes));
  while (!existsSync(path)) await pause(5);
  await Server.start(t, [], { env: { NOTIFY_SOCKET: path } });
  await once(manager, 'close');
  assert.equal(heard.trim(), 'READY=1');
});
