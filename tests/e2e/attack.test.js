// Clients that try to keep the server for themselves: what they ask for ends at a limit that is
// documented, is paid for, and leaves the others what is theirs. No times are asserted: whoever is
// served while an attack goes on is served before it ends, or the test never does.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { Server, emulatorKey, sanitized } from './server.js';
import { signature, signed, signedParts, master } from './rest.js';

const docs = '/dbs/d/colls/c/docs';
const asked = {
  'x-ms-documentdb-isquery': 'true',
  'content-type': 'application/query+json',
  'x-ms-documentdb-query-enablecrosspartition': 'true',
};
const patient = ['--set', 'query.pause_ms=1h', '--set', 'query.deadline_ms=1h'];
const several = ['--dev', '--set', 'account.by_use=true'];

async function make(server, { account, throughput = '1000000', name = 'c' } = {}) {
  await signed(server, 'POST', '/dbs', { account, body: { id: 'd' } });
  const made = await signed(server, 'POST', '/dbs/d/colls', {
    account,
    headers: { 'x-ms-offer-throughput': throughput },
    body: { id: name, partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } },
  });
  assert.equal(made.status, 201, made.text);
}

function query(server, text, parameters = {}, { path = docs, headers, ...options } = {}) {
  const list = Object.entries(parameters).map(([name, value]) => ({ name, value }));
  return signed(server, 'POST', path, {
    headers: { ...asked, ...headers },
    body: { query: text, parameters: list },
    ...options,
  });
}

const charge = (answer) => Number(answer.headers['x-ms-request-charge']);
const forty = Array.from({ length: 40 }, (_, i) => i);
// 40 to the power of count combinations, of an array that comes with the query
const joins = (count) =>
  `SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN @p ${Array.from({ length: count - 1 }, (_, i) => `JOIN j${i} IN @p`).join(' ')})`;


async function metric(server, name) {
  const text = await (await server.get('/metrics')).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

test('a query that reads nothing is paid for like a page, and its joins like the work they are', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.burst_seconds=0']);
  await make(server, { throughput: '400' });
  const plain = await query(server, 'SELECT VALUE 1');
  assert.equal(plain.status, 200);
  assert.equal(charge(plain), 2.3);
  const small = await query(server, joins(2), { '@p': forty });
  assert.deepEqual(small.json.Documents, [1600]);
  assert.equal(charge(small), 2.3);
  const first = await query(server, joins(4), { '@p': forty });
  assert.deepEqual(first.json.Documents, [40 ** 4]);
  assert.ok(charge(first) > 400, `${charge(first)} RU`);
  const next = await query(server, 'SELECT VALUE 1');
  assert.equal(next.status, 429, 'what was spent is owed');
  assert.ok(Number(next.headers['x-ms-retry-after-ms']) > 1);
});

test('the same work costs the same, wherever it stands in the query', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await make(server);
  for (let i = 0; i < 3; i++)
    assert.equal((await signed(server, 'POST', docs, { headers: { 'x-ms-documentdb-partitionkey': '["a"]' }, body: { id: `${i}`, pk: 'a' } })).status, 201);
  for (const text of [
    joins(3),
    `${joins(3)} FROM c`,
    'SELECT VALUE COUNT(1) FROM c JOIN a IN @p JOIN b IN @p JOIN d IN @p',
    'SELECT DISTINCT VALUE a FROM c JOIN a IN @p JOIN b IN @p JOIN d IN @p',
    'SELECT VALUE c.id FROM c WHERE EXISTS (SELECT VALUE a FROM a IN @p JOIN b IN @p JOIN d IN @p WHERE a + b + d > 200 AND c.pk = "a")',
  ]) {
    const answers = [await query(server, text, { '@p': forty }), await query(server, text, { '@p': forty })];
    assert.equal(answers[0].status, 200, answers[0].text);
    assert.ok(charge(answers[0]) > 10, `${text}: ${charge(answers[0])} RU`);
    assert.equal(charge(answers[1]), charge(answers[0]), text);
  }
});

test('joins that cannot end in time are refused at query.deadline_ms, and paid for all the same', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'query.deadline_ms=200ms']);
  await make(server);
  const refused = await query(server, joins(10), { '@p': forty });
  assert.equal(refused.status, 408, refused.text);
  assert.ok(charge(refused) > 10, `${charge(refused)} RU`);
});

test('rows of joins within one item come page by page when time is up, and none is lost', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'query.pause_ms=1ms']);
  await make(server);
  await signed(server, 'POST', docs, { headers: { 'x-ms-documentdb-partitionkey': '["a"]' }, body: { id: '1', pk: 'a' } });
  const text =
    'SELECT VALUE (a * 1600 + b * 40 + d) % 64 = 0 ? a * 1600 + b * 40 + d : undefined FROM c JOIN a IN @p JOIN b IN @p JOIN d IN @p';
  const rows = [];
  let continuation, pages = 0;
  do {
    const page = await query(server, text, { '@p': forty }, {
      headers: { 'x-ms-max-item-count': '-1', ...(continuation ? { 'x-ms-continuation': continuation } : {}) },
    });
    assert.equal(page.status, 200, page.text);
    rows.push(...page.json.Documents);
    continuation = page.headers['x-ms-continuation'];
    pages++;
  } while (continuation);
  assert.deepEqual(rows, Array.from({ length: 1000 }, (_, i) => i * 64));
  assert.ok(pages > 2, `${pages} pages`);
});

test('an account that keeps its workers busy leaves some to others, and so does a container; probes need none', async (t) => {
  const server = await Server.start(t, [...several, ...patient, '--set', 'net.workers_max=4']);
  await make(server, { account: 'busy' });
  await make(server, { account: 'busy', name: 'quiet' });
  await make(server, { account: 'other' });
  const leaving = [];
  for (let i = 0; i < 12; i++) leaving.push(begin(server, 'busy', joins(10)));
  await server.until(async () => (await metric(server, 'orrery_work_queued')) >= 9);
  for (let i = 0; i < 5; i++) {
    assert.equal((await server.get('/ready')).status, 200);
    const other = await query(server, joins(2), { '@p': forty }, { account: 'other' });
    assert.equal(other.status, 200, other.text);
    const quiet = await query(server, joins(2), { '@p': forty }, {
      account: 'busy', path: '/dbs/d/colls/quiet/docs',
    });
    assert.equal(quiet.status, 200, quiet.text);
  }
  assert.ok((await metric(server, 'orrery_workers_running')) >= 1, 'the attack still goes on');
  assert.ok((await metric(server, 'orrery_workers_running')) <= 3);
  for (const socket of leaving) socket.destroy();
  await server.until(async () => (await metric(server, 'orrery_workers_running')) === 0);
});

// The bytes of a query, signed for an account.
function bytes(account, text, parameters = { '@p': forty }, key = emulatorKey) {
  const date = new Date().toUTCString();
  const list = Object.entries(parameters).map(([name, value]) => ({ name, value }));
  const body = JSON.stringify({ query: text, parameters: list });
  const head = Object.entries({
    ...asked, host: 'localhost', 'x-ms-version': '2020-07-15', 'x-ms-date': date,
    authorization: master(signature(key, 'POST', signedParts(docs), date)),
    'content-length': Buffer.byteLength(body),
  });
  return `POST /${account}${docs} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${body}`;
}

// Sends a query and never waits for its answer.
function begin(server, account, text) {
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(bytes(account, text));
  return socket;
}

test('a row is bounded while it is made, and an answer by its page', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await make(server);
  const big = 'x'.repeat(6200);
  const whole = await query(server, `SELECT VALUE [${Array(10_000).fill('@p').join(',')}]`, { '@p': big });
  assert.equal(whole.status, 400);
  assert.match(whole.json.message, /more than the \d+ bytes/);
  const replicated = await query(server, `SELECT ${Array.from({ length: 8000 }, (_, i) => `REPLICATE('x', 10000) AS p${i}`).join(',')}`);
  assert.equal(replicated.status, 400);
  const fitting = await query(server, `SELECT VALUE [${Array(600).fill('@p').join(',')}]`, { '@p': big });
  assert.equal(fitting.status, 200);
  assert.ok(fitting.bytes.length > 3_000_000 && fitting.bytes.length < 4_194_304 + 1000);
  assert.ok(charge(fitting) > 50, `${charge(fitting)} RU`);
});

test('what an account holds is bounded, the others are served, and the server holds no more than it may', async (t) => {
  const megabyte = 1024 * 1024;
  const max = 96 * megabyte;
  const server = await Server.start(t, [...several, '--set', `server.memory_bytes_max=${max}`]);
  await make(server, { account: 'greedy' });
  await make(server, { account: 'other' });
  const idle = server.residentBytes();
  const request = bytes('greedy', `SELECT VALUE [${Array(60).fill('@p').join(',')}]`, { '@p': 'x'.repeat(62_000) });
  const sockets = [];
  for (let i = 0; i < 24; i++) {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.pause(); // it never reads an answer
    for (let n = 0; n < 32; n++) socket.write(request);
    sockets.push(socket);
  }
  const held = () => metric(server, 'orrery_memory_held_bytes');
  await server.until(async () => (await held()) >= (max / 4) * 0.5);
  for (let i = 0; i < 20; i++) {
    const other = await query(server, 'SELECT VALUE 1', {}, { account: 'other' });
    assert.equal(other.status, 200, other.text);
    assert.equal((await server.get('/ready')).status, 200);
  }
  const greedy = await query(server, 'SELECT VALUE 1', {}, { account: 'greedy' });
  assert.ok(greedy.status === 200 || greedy.status === 503, greedy.text);
  const peak = await metric(server, 'orrery_memory_held_bytes_peak');
  assert.equal(await metric(server, 'orrery_memory_held_bytes_max'), max);
  assert.ok(peak <= max / 4 + 8 * megabyte, `${peak} bytes were held of ${max / 4}`);
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  const resident = Number(/VmHWM:\s+(\d+) kB/.exec(status)[1]) * 1024;
  t.diagnostic(`resident: ${Math.round(idle / megabyte)} MB idle, ${Math.round(resident / megabyte)} MB at most; held at most ${Math.round(peak / megabyte)} MB of ${max / megabyte}`);
  if (!sanitized) // they keep what was freed for a while
    assert.ok(resident - idle <= 2 * max, `${resident - idle} bytes more than idle`);
  for (const socket of sockets) socket.destroy();
  await server.until(async () => (await held()) < megabyte); // asking holds some, too
});

test('probes are answered afresh however many ask', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'net.workers_max=1']);
  const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => server.get(i % 2 ? '/ready' : '/metrics')));
  assert.ok(answers.every((answer) => answer.status === 200));
  const before = await metric(server, 'orrery_work_submitted_total');
  await make(server);
  assert.ok((await metric(server, 'orrery_work_submitted_total')) > before, 'what is shown is what is now');
});

test('a long text of a query is held on the meter while it is read, and paid for, whatever comes of it', async (t) => {
  const max = 64 * 1024 * 1024;
  const server = await Server.start(t, [...several, '--set', `server.memory_bytes_max=${max}`, '--set', 'throughput.burst_seconds=0']);
  await make(server, { account: 'wordy', throughput: '400' });
  await make(server, { account: 'idle', throughput: '400' });
  // what is spent is owed, and whoever owes is told before the text is read
  const isRefused = async (name, text, headers, account) => {
    if (sanitized) return true; // too slow to spend 400 RU in a second
    for (let i = 0; i < 50; i++)
      if ((await query(server, text, {}, { account, path: `/dbs/d/colls/${name}/docs`, headers })).status === 429) return true;
    return false;
  };
  const of = (parts) => `SELECT VALUE [${Array(parts).fill('1+1').join(',')}]`;
  const plain = await query(server, of(100), {}, { account: 'idle' });
  assert.ok(charge(plain) < 3, `${charge(plain)} RU`);
  const long = await query(server, of(30_000), {}, { account: 'wordy' });
  assert.equal(long.status, 200, long.text);
  assert.ok(charge(long) > 20, `${charge(long)} RU`);
  assert.ok(await isRefused('c', of(30_000), {}, 'wordy'));
  for (const [text, headers] of [[`${of(30_000)} nonsense`, {}], [of(30_000), { 'x-ms-cosmos-is-query-plan-request': 'True' }]]) {
    const name = `c${Object.keys(headers).length}`;
    await make(server, { account: 'idle', throughput: '400', name });
    const answer = await query(server, text, {}, { account: 'idle', path: `/dbs/d/colls/${name}/docs`, headers });
    assert.ok(charge(answer) > 20, `${answer.status}, ${charge(answer)} RU`);
    assert.ok(await isRefused(name, text, headers, 'idle'));
  }
  // more than may be held for an account
  const narrow = await Server.start(t, [...several, '--set', 'account.memory_bytes_max=1M']);
  await make(narrow, { account: 'many' });
  assert.equal((await query(narrow, of(100), {}, { account: 'many' })).status, 200);
  const refused = await query(narrow, of(30_000), {}, { account: 'many' });
  assert.equal(refused.status, 503, refused.text);
});

test('pages and batches of large items are held on the meter, and those that do not fit are refused', async (t) => {
  const megabyte = 1024 * 1024;
  const max = 64 * megabyte;
  const key = { 'x-ms-documentdb-partitionkey': '["a"]' };
  const reads = Array.from({ length: 100 }, (_, i) => ({ operationType: 'Read', id: `${i % 8}`, partitionKey: '["a"]' }));
  const bulk = { ...key, 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False' };
  const asks = [
    (server) => signed(server, 'GET', docs, { account: 'greedy', headers: { 'x-ms-max-item-count': '-1' } }),
    (server) => signed(server, 'GET', docs, { account: 'greedy', headers: { ...key, 'a-im': 'Incremental Feed', 'x-ms-max-item-count': '-1' } }),
    (server) => signed(server, 'POST', docs, { account: 'greedy', headers: bulk, body: reads }),
  ];
  const filled = async (length, options) => {
    const server = await Server.start(t, [...several, ...options]);
    await make(server, { account: 'greedy' });
    for (let i = 0; i < 8; i++)
      assert.equal((await signed(server, 'POST', docs, { account: 'greedy', headers: key, body: { id: `${i}`, pk: 'a', text: 'x'.repeat(length) } })).status, 201);
    return server;
  };
  const settled = async (server) => {
    await server.until(async () => (await metric(server, 'orrery_memory_held_bytes')) < megabyte);
    // what was served is owed; then it goes on
    await server.until(async () => (await signed(server, 'GET', `${docs}/1`, { account: 'greedy', headers: key })).status === 200);
  };
  // one that is more than its account may hold
  const narrow = await filled(400_000, ['--set', 'account.memory_bytes_max=2M']);
  for (const ask of asks) {
    const { status, text } = await ask(narrow);
    assert.ok(status === 503 || text.includes('"statusCode":503'), `${status}`);
    await settled(narrow);
  }
  // many at a time: how many are refused depends on who reads how fast; what is held does not
  const server = await filled(1_800_000, ['--set', `server.memory_bytes_max=${max}`]);
  for (const ask of asks) {
    const answers = await Promise.all(Array.from({ length: 24 }, () => ask(server)));
    for (const { status, text } of answers) assert.ok([200, 207, 503].includes(status), text);
    await settled(server);
  }
  const peak = await metric(server, 'orrery_memory_held_bytes_peak');
  assert.ok(peak <= max / 4 + 8 * megabyte, `${peak} bytes were held`);
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  t.diagnostic(`resident at most ${Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)[1]) / 1024)} MB`);
});

test('what takes long to show is not shown by the loops, which everybody shares', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=1000']);
  await make(server, { throughput: '40000' });
  const key = { 'x-ms-documentdb-partitionkey': '["a"]' };
  for (const [id, length] of [['small', 100], ['large', 1_000_000]])
    assert.equal((await signed(server, 'POST', docs, { headers: key, body: { id, pk: 'a', text: 'x'.repeat(length) } })).status, 201);
  const work = async (path, headers) => {
    const before = await metric(server, 'orrery_work_submitted_total');
    assert.equal((await signed(server, 'GET', path, { headers })).status, 200, path);
    return (await metric(server, 'orrery_work_submitted_total')) - before;
  };
  await work(`${docs}/small`, key); // reads its blocks
  assert.equal(await work(`${docs}/small`, key), 0);
  assert.equal(await work(`${docs}/large`, key), 1);
  assert.equal(await work('/dbs/d/colls'), 1);
  assert.equal(await work('/dbs'), 1);
  assert.equal(await work('/dbs/d/colls/c/pkranges'), 1);
  assert.equal(await work('/dbs/d/colls/c/pkranges', { 'a-im': 'Incremental feed' }), 1);
});

test('requests half sent take room from each other, and from nobody who sends the whole', async (t) => {
  const megabyte = 1024 * 1024;
  const max = 64 * megabyte;
  const server = await Server.start(t, ['--dev', '--set', `server.memory_bytes_max=${max}`]);
  await make(server);
  const sockets = [];
  const head = `POST ${docs} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${2 * megabyte}\r\n\r\n`;
  for (let i = 0; i < 60; i++) {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(head + 'x'.repeat(megabyte)); // and no more
    sockets.push(socket);
  }
  const held = () => metric(server, 'orrery_memory_held_bytes');
  await server.until(async () => (await held()) >= (max / 4) * 0.7);
  for (let i = 0; i < 10; i++) {
    const body = JSON.stringify({ id: `${i}`, pk: 'a', text: 'x'.repeat(megabyte) });
    const made = await inTwo(server, body);
    assert.match(made, /^HTTP\/1\.1 201 /, made);
  }
  assert.ok((await metric(server, 'orrery_memory_held_bytes_peak')) <= max / 4 + 8 * megabyte);
  for (const socket of sockets) socket.destroy();
  await server.until(async () => (await held()) < megabyte);
});

// An item in two pieces, the second when the first has long been read: the beginning of the answer.
function inTwo(server, body) {
  const date = new Date().toUTCString();
  const lines = Object.entries({
    host: 'localhost', 'x-ms-version': '2020-07-15', 'x-ms-date': date, 'x-ms-documentdb-partitionkey': '["a"]',
    authorization: master(signature(emulatorKey, 'POST', signedParts(docs), date)), 'content-length': Buffer.byteLength(body),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, '127.0.0.1', () => {
      socket.write(`POST ${docs} HTTP/1.1\r\n${lines.join('')}\r\n${body.slice(0, body.length / 2)}`);
      setTimeout(() => socket.write(body.slice(body.length / 2)), 20);
    });
    socket.on('error', reject);
    socket.once('data', (data) => {
      resolve(`${data.subarray(0, 200)}`);
      socket.destroy();
    });
  });
}
