// The server's own certificate authority, and who may be reached in development mode.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import https from 'node:https';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { Server, orrery, scratch } from './server.js';

// GET /ready as a client that trusts nobody but this authority, asking for this host, wherever the
// host's name may lead: the connection goes to the server.
async function verified(server, ca, host) {
  const request = https.get({
    host, port: server.port, path: '/ready', ca, agent: false,
    lookup: (name, options, done) => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }])
      : done(null, '127.0.0.1', 4)),
  });
  const [answer] = await once(request, 'response');
  const shown = new X509Certificate(answer.socket.getPeerCertificate().raw);
  answer.resume();
  await once(answer, 'end');
  assert.equal(answer.statusCode, 200);
  return shown;
}

const authorityOf = async (server) => (await server.get('/_orrery/ca.pem')).text();

function kept(t) {
  const directory = join(scratch(t), 'data');
  return { directory, node: ['--node', `local=rocksdb:${directory}`] };
}

test('clients that trust the exported authority accept localhost, addresses and extra names', async (t) => {
  const { directory, node } = kept(t);
  const server = await Server.start(t, [...node, '--set', 'tls.names=db.example, *.db.example, 10.0.0.7',
    '--set', 'account.host_suffix=accounts.example']);
  const { code, out: ca } = await orrery(['certificate', 'export', '--directory', directory]);
  assert.equal(code, 0);
  for (const host of ['localhost', '127.0.0.1', 'db.example', 'orders.db.example', 'orders.accounts.example'])
    await verified(server, ca, host);
  await assert.rejects(verified(server, ca, 'elsewhere.example'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  await assert.rejects(verified(server, undefined, 'localhost'), { code: /SELF_SIGNED|UNABLE_TO/ });
});

test('the authority is handed out to whoever asks', async (t) => {
  const { directory, node } = kept(t);
  const server = await Server.start(t, node);
  const answer = await server.get('/_orrery/ca.pem');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/pem-certificate-chain');
  const pem = await answer.text();
  assert.equal(pem, readFileSync(join(directory, 'tls/ca.pem'), 'utf8'));
  const authority = new X509Certificate(pem);
  assert.ok(authority.ca);
  assert.match(authority.subject, /CN=Orrery local CA [0-9a-f]{8}/);
  assert.ok(authority.verify(authority.publicKey));
});

test('an authority in memory serves its run', async (t) => {
  const server = await Server.start(t);
  const ca = await authorityOf(server);
  await verified(server, ca, 'localhost');
  server.process.kill('SIGHUP');
  await server.until(() => server.events().some((event) => event.event === 'certificate read again'));
  assert.equal(await authorityOf(server), ca);
  await verified(server, ca, 'localhost');
});

test('the authority survives restarts, and the certificate changes with tls.names', async (t) => {
  const { node } = kept(t);
  const first = await Server.start(t, node);
  const ca = await authorityOf(first);
  const shown = await verified(first, ca, 'localhost');
  await assert.rejects(verified(first, ca, 'db.example'));
  await first.stop();
  const second = await Server.start(t, [...node, '--set', 'tls.names=db.example']);
  assert.equal(await authorityOf(second), ca);
  const renewed = await verified(second, ca, 'db.example');
  assert.notEqual(renewed.fingerprint256, shown.fingerprint256);
  assert.ok(second.events().some((event) => event.event === 'server certificate made'
    && event.because === 'the names are others'));
  await second.stop();
  const third = await Server.start(t, [...node, '--set', 'tls.names=db.example']);
  assert.equal((await verified(third, ca, 'db.example')).fingerprint256, renewed.fingerprint256);
});

test('SIGHUP takes an authority put in place of the old one', async (t) => {
  const { directory, node } = kept(t);
  const other = kept(t);
  const donor = await Server.start(t, other.node);
  const ca = await authorityOf(donor);
  await donor.stop();
  const server = await Server.start(t, node);
  assert.notEqual(await authorityOf(server), ca);
  for (const name of ['ca.pem', 'ca.key'])
    renameSync(join(other.directory, 'tls', name), join(directory, 'tls', name));
  server.process.kill('SIGHUP');
  await server.until(() => server.events().some((event) => event.event === 'certificate read again'));
  assert.equal(await authorityOf(server), ca);
  await verified(server, ca, 'localhost');
});

test('SIGHUP with half an authority leaves the certificate in service', async (t) => {
  const { directory, node } = kept(t);
  const server = await Server.start(t, node);
  const ca = await authorityOf(server);
  rmSync(join(directory, 'tls/ca.key'));
  server.process.kill('SIGHUP');
  await server.until(() => server.events().some((event) => event.event === 'the certificate stays as it was'));
  assert.equal(await authorityOf(server), ca);
  await verified(server, ca, 'localhost');
});

test('a self-signed pair of an earlier version is replaced with a notice', async (t) => {
  const { directory, node } = kept(t);
  const before = await Server.start(t, node);
  await before.stop();
  rmSync(join(directory, 'tls'), { recursive: true });
  mkdirSync(join(directory, 'tls'), { mode: 0o700 });
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '7',
    '-subj', '/CN=localhost/O=Orrery', '-addext', 'basicConstraints=critical,CA:FALSE',
    '-keyout', join(directory, 'tls/key.pem'), '-out', join(directory, 'tls/certificate.pem')], { stdio: 'ignore' });
  const server = await Server.start(t, node);
  assert.ok(server.events().some((event) => event.event === 'self-signed certificate replaced' && event.level === 'warning'));
  assert.ok(!existsSync(join(directory, 'tls/key.pem')));
  await verified(server, await authorityOf(server), 'localhost');
});

test("the operator's certificate wins and has no authority of ours", async (t) => {
  const { node } = kept(t);
  const directory = scratch(t);
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '7',
    '-subj', '/CN=mine', '-addext', 'subjectAltName=DNS:mine.example',
    '-keyout', join(directory, 'key.pem'), '-out', join(directory, 'certificate.pem')], { stdio: 'ignore' });
  const own = ['--set', `tls.certificate=${directory}/certificate.pem`, '--set', `tls.key=${directory}/key.pem`];
  const server = await Server.start(t, [...node, ...own, '--set', 'tls.names=mine.example']); // for Host
  await verified(server, readFileSync(join(directory, 'certificate.pem')), 'mine.example');
  const answer = await server.get('/_orrery/ca.pem');
  assert.equal(answer.status, 404);
  assert.match((await answer.json()).message, /tls\.certificate/);
});

test('names that are none stop the start before anything is made', async (t) => {
  const { directory, node } = kept(t);
  const result = await orrery(['serve', ...node, '--set', 'tls.names=a.example,not a name']);
  assert.equal(result.code, 1);
  assert.match(result.err, /tls\.names: "not a name" is neither/);
  assert.ok(!existsSync(directory));
});

test('orrery certificate shows what is there, and says so when nothing is', async (t) => {
  const { directory, node } = kept(t);
  const nothing = await orrery(['certificate', 'show', '--directory', directory]);
  assert.equal(nothing.code, 1);
  assert.match(nothing.err, /there is no certificate authority in /);
  const server = await Server.start(t, [...node, '--set', 'tls.names=db.example']);
  const shown = await verified(server, await authorityOf(server), 'db.example');
  await server.stop();
  const { code, out } = await orrery(['certificate', '--directory', directory, 'show']);
  assert.equal(code, 0);
  assert.match(out, /^authority\n {2}name +Orrery local CA [0-9a-f]{8}\n/);
  assert.match(out, /for +localhost, \*\.localhost, 127\.0\.0\.1, ::1, .*db\.example\n/);
  assert.ok(out.includes(shown.fingerprint256));
  const exported = await orrery(['certificate', 'export'], { env: { ORRERY_SERVER_DIRECTORY: directory } });
  assert.equal(exported.out, readFileSync(join(directory, 'tls/ca.pem'), 'utf8'));
  writeFileSync(join(directory, 'tls/ca.pem'), 'nonsense');
  const broken = await orrery(['certificate', 'export', '--directory', directory]);
  assert.equal(broken.code, 1);
  assert.equal(broken.out, '');
});

test('development mode listens beyond loopback only when told twice', async (t) => {
  for (const [option, address] of [['--rest', '0.0.0.0:0'], ['--rest', '[::]:0'], ['--mongo', '0.0.0.0:10255'],
    ['--table', '*:8902'], ['--gremlin', '0.0.0.0:8901']]) {
    const rest = option === '--rest' ? [] : ['--rest', '127.0.0.1:0'];
    const result = await orrery(['serve', '--dev', '--node', 'local=memory:', ...rest, option, address]);
    assert.equal(result.code, 1, `${option} ${address}`);
    assert.match(result.err, new RegExp(`${option} has to be a loopback address.*server\\.dev_anywhere=true`));
  }
  const server = await Server.start(t, ['--dev', '--rest', '0.0.0.0:0', '--set', 'server.dev_anywhere=true']);
  assert.equal((await server.get('/ready')).status, 200);
  assert.ok(server.events().some((event) => event.level === 'warning' && /can read and change everything/.test(event.event)));
  const quiet = await Server.start(t, ['--dev', '--set', 'server.dev_anywhere=true']);
  assert.ok(!quiet.events().some((event) => event.level === 'warning'));
  const closed = await Server.start(t, ['--rest', '0.0.0.0:0']);
  assert.ok(!closed.events().some((event) => event.level === 'warning'));
});
