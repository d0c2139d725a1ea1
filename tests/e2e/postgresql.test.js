// A server whose node is a PostgreSQL server.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import https from 'node:https';
import { Server, orrery } from './server.js';
import { Postgres, oldPostgres } from './postgres.js';
import { signed } from './rest.js';
import { Terminal } from './terminal.js';

const quick = ['--rest', '127.0.0.1:0', '--set', 'engine.connect_ms_max=2s'];

async function refused(node, message) {
  const result = await orrery(['serve', '--node', node, ...quick]);
  assert.equal(result.code, 1, result.err);
  assert.match(result.err.trim().split('\n').at(-1), message);
  return result;
}

test('/ready follows the PostgreSQL server down and up again', async (t) => {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--node', `far=${postgres.url}`, '--node', 'near=memory:', ...quick]);
  assert.equal((await server.get('/ready')).status, 200);
  await postgres.stop();
  await server.until(async () => (await server.get('/ready')).status === 503);
  const body = await (await server.get('/ready')).json();
  assert.equal(body.code, 'ServiceUnavailable');
  assert.match(body.message, /^node "far" does not serve/);
  assert.equal(body.nodes.find((node) => node.name === 'far').state, 'down');
  const metrics = await (await server.get('/metrics')).text();
  assert.match(metrics, /^orrery_node_up\{node="near"\} 1$/m);
  await postgres.resume();
  await server.until(async () => (await server.get('/ready')).status === 200);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

const wholeKey = /[A-Za-z0-9+/]{86}==/;

test('a key without a file to be in is shown once, to a terminal, or asked of the nodes', async (t) => {
  const postgres = await Postgres.start(t);
  const node = ['--node', `a=${postgres.url}`];
  const terminal = Terminal.start(t, ['serve', ...node, '--table', '127.0.0.1:0', '--mongo', '127.0.0.1:0', '--gremlin', '127.0.0.1:0', ...quick]);
  await terminal.until('Stop it with');
  const [key] = wholeKey.exec(terminal.shown);
  assert.match(terminal.shown, /shown this once/);
  terminal.type('\u0003');
  await terminal.ended;
  const server = await Server.start(t, [...node, ...quick]);
  assert.doesNotMatch(server.out + server.err, wholeKey, 'nothing of it in what may be a journal');
  assert.match(server.out, /key +kept with the data: `orrery account keys --node/);
  assert.equal((await signed(server, 'GET', '/dbs', { key })).status, 200, 'the same after a restart');
  const held = await orrery(['account', 'keys', ...node]);
  assert.match(held.err, /holds the node/);
  await server.stop();
  const asked = await orrery(['account', 'keys', ...node]);
  assert.equal(/^primary +(\S+)$/m.exec(asked.out)?.[1], key, asked.err);
  assert.match((await orrery(['account', 'keys', 'nobody', ...node])).err, /nobody/);
});

test('a server that begins in a journal says nothing of its key, and its nodes do', async (t) => {
  const postgres = await Postgres.start(t);
  const node = ['--node', `a=${postgres.url}`];
  let server = await Server.start(t, [...node, ...quick]);
  assert.doesNotMatch(server.out + server.err, wholeKey);
  await server.stop();
  const [key] = wholeKey.exec((await orrery(['account', 'keys', ...node])).out);
  server = await Server.start(t, [...node, ...quick]);
  assert.equal((await signed(server, 'GET', '/dbs', { key })).status, 200);
});

test('the certificate authority of a server without a directory is kept with the data', async (t) => {
  const postgres = await Postgres.start(t);
  const authorities = [];
  for (let start = 0; start < 2; start++) {
    const server = await Server.start(t, ['--node', `a=${postgres.url}`, ...quick]);
    assert.match(server.out, /ca\.pem, kept with the data/);
    authorities.push(await (await server.get('/_orrery/ca.pem')).text());
    const { code, status } = await new Promise((resolve) => {
      https.get({ host: '127.0.0.1', port: server.port, path: '/ready', ca: authorities[0], servername: 'localhost' }, (answer) => resolve({ status: answer.statusCode }))
        .on('error', (error) => resolve(error));
    });
    assert.equal(status, 200, code);
    await server.stop();
  }
  assert.match(authorities[0], /BEGIN CERTIFICATE/);
  assert.equal(authorities[0], authorities[1]);
});

test('a second process on the same PostgreSQL node is refused, and the first goes on', async (t) => {
  const postgres = await Postgres.start(t);
  const first = await Server.start(t, ['--node', `a=${postgres.url}`, ...quick]);
  await refused(`a=${postgres.url}`, new RegExp(`node "a": process ${first.process.pid} on host .* holds the node`));
  assert.equal((await first.get('/ready')).status, 200);
});

test('a PostgreSQL server that is not there is told with the reason', async () => {
  await refused('a=postgresql://127.0.0.1:1/x', /node "a": .*port 1.*(refused|timeout)/i);
});

test('a PostgreSQL server of an old version is refused by its version', async (t) => {
  await refused(`a=${await oldPostgres(t, '9.6.24')}`, /node "a": .*9\.6/);
});

test('a password in a node URL is never printed', async () => {
  const result = await refused('a=postgresql://u:hunter2@127.0.0.1:1/x?nonsense=1', /node "a"/);
  assert.ok(!(result.out + result.err).includes('hunter2'));
});
