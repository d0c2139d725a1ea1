// The shell: queries and commands without a terminal and with one, import and export.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, binary, orrery, scratch } from './server.js';
import { signed } from './rest.js';
import { Terminal } from './terminal.js';

const place = ['--database', 'shop', '--container', 'orders'];

// A server with the container shop/orders, whose property `note` has no index.
async function shop(t, { throughput = 400, args = [] } = {}) {
  const server = await Server.start(t, ['--dev', ...args]);
  assert.equal((await signed(server, 'POST', '/dbs', { body: { id: 'shop' } })).status, 201);
  const made = await signed(server, 'POST', '/dbs/shop/colls', {
    body: {
      id: 'orders',
      partitionKey: { paths: ['/city'], kind: 'Hash', version: 2 },
      indexingPolicy: { includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/note/?' }] },
    },
    headers: { 'x-ms-offer-throughput': String(throughput) },
  });
  assert.equal(made.status, 201, made.text);
  server.shell = (args, input) => piped(['shell', '--endpoint', server.url, '--dev', ...place, ...args], input);
  server.orrery = (args) => orrery([...args, '--endpoint', server.url, '--dev', ...place]);
  return server;
}

// Runs a command with something on standard input.
async function piped(args, input = '') {
  const child = spawn(binary, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const text = { out: '', err: '' };
  child.stdout.on('data', (bytes) => (text.out += bytes));
  child.stderr.on('data', (bytes) => (text.err += bytes));
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  return { code, ...text };
}

const lines = (items) => items.map((item) => JSON.stringify(item)).join('\n') + '\n';

function orders(count) {
  const texts = ['plain', 'a,b', 'say "hi"', 'two\nlines', '007', 'true', '', '[1]', '"q"', 'ü日本😀'];
  return Array.from({ length: count }, (_, i) => ({
    id: `o${i}`,
    city: ['Rome', 'Oslo', 'Zürich'][i % 3],
    total: i / 4,
    note: `n${i % 50}`,
    text: texts[i % texts.length],
    ...(i % 2 ? { flag: i % 4 === 1 } : {}),
    ...(i % 5 ? {} : { none: null, lines: [{ sku: 'a"b', n: i }], big: 9007199254740991 }),
  }));
}

const byId = (items) => [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
const own = ({ _rid, _self, _etag, _attachments, _ts, ...rest }) => rest;

test('rows go to standard output, one JSON value a line, and the charge to standard error', async (t) => {
  const server = await shop(t);
  const items = join(scratch(t), 'items.jsonl');
  writeFileSync(items, lines(orders(6)));
  assert.equal((await server.orrery(['import', items])).code, 0);
  const command = await server.shell(['--command', 'SELECT c.id, c.total FROM c WHERE c.city = "Rome" ORDER BY c.total']);
  assert.equal(command.out, '{"id":"o0","total":0}\n{"id":"o3","total":0.75}\n');
  assert.match(command.err, /^\(2 rows, \d+\.\d\d RU, \d+ ms\)\n$/);
  assert.equal(command.code, 0);
  const quiet = await server.shell(['--quiet'], 'SELECT VALUE COUNT(1)\n\nFROM c;\nSELECT VALUE 2; .quit\nnever');
  assert.deepEqual([quiet.out, quiet.code], ['6\n2\n', 0]);
  const read = await server.shell(['--quiet', '--format', 'json'], '.set @min 1\nSELECT c.id FROM c WHERE c.total > @min');
  assert.deepEqual(JSON.parse(read.out), [{ id: 'o5' }]);
  const table = await server.shell(['--format', 'table', '--quiet', '--command', 'SELECT c.id, c.total, c.flag FROM c WHERE c.total < 0.5 ORDER BY c.total']);
  assert.equal(table.out, 'id  total  flag\no0      0  \no1   0.25  true\n');
});

test('commands tell of databases, containers, partitions and what is stored', async (t) => {
  const server = await shop(t);
  const script = join(scratch(t), 'all.sql');
  writeFileSync(script, '.databases\n.containers\n.ranges\n.stats\n.schema\n.help\n.set @a {"b":1}\n.set\n.quit\nnever');
  const { out, err, code } = await server.shell(['--file', script]);
  assert.equal(code, 0, err);
  assert.match(out, /^DATABASE\nshop\nCONTAINER +PARTITION KEY\norders +\/city\nRANGE +FROM/);
  assert.match(out, /PARTITION +FROM +TO +NODE/);
  assert.match(out, /"excludedPaths": \[/);
  assert.match(out, /\.use DATABASE\[\/CONTAINER\]/);
  assert.match(out, /@a \{"b":1\}\n$/);
});

test('what is wrong with a query is shown below it, and ends a script with 1', async (t) => {
  const server = await shop(t);
  const syntax = await server.shell([], 'SELECT *\nFORM c;\nSELECT 1;\n');
  assert.equal(syntax.code, 1);
  assert.equal(syntax.out, '');
  assert.match(syntax.err, /^orrery: Syntax error, incorrect syntax near 'FORM'\. \(SC1001\)\n  FORM c\n  \^~~~\n$/);
  const unknown = await server.shell(['--command', "SELECT 'ü😀', @nope FROM c"]);
  assert.match(unknown.err, /\n  SELECT 'ü😀', @nope FROM c\n {16}\^~~~~\n$/);
  const nowhere = await piped(['shell', '--endpoint', server.url, '--dev', '--command', 'SELECT 1']);
  assert.deepEqual([nowhere.code, nowhere.err], [1, 'orrery: no container is chosen: --database NAME --container NAME\n']);
  for (const [input, words] of [
    ['.usee shop', 'there is no command ".usee": did you mean .use?'],
    ['.use nope', 'there is no database "nope": .databases lists them'],
    ['.use shop/nope', 'there is no container "shop/nope"'],
    ['.format xml', 'there is no format "xml": table, json or lines'],
    ['.set @a {', 'the value of @a is not JSON'],
    ['.explain maybe', '.explain takes on or off'],
    ['.import', 'it is used as .import FILE'],
    ['.read /nonexistent', 'file "/nonexistent" cannot be opened'],
    ["SELECT 'a", 'the input ends within a text'],
  ]) {
    const { code, err } = await server.shell([], input);
    assert.equal(code, 1, input);
    assert.ok(err.includes(words), `${input}: ${err}`);
  }
  const usage = await orrery(['shell', '--fromat', 'json']);
  assert.equal(usage.code, 2);
  assert.match(usage.err, /did you mean "--format"/);
  const gone = await orrery(['shell', '--dev', '--endpoint', 'http://127.0.0.1:1', '--command', '.databases']);
  assert.equal(gone.code, 1);
  assert.match(gone.err, /no server answers at 127\.0\.0\.1 port 1/);
});

test('a file that reads itself is told so', async (t) => {
  const server = await shop(t);
  const script = join(scratch(t), 'loop.sql');
  writeFileSync(script, `.read ${script}\n`);
  const { code, err } = await server.shell(['--file', script]);
  assert.equal(code, 1);
  assert.match(err, /is read by files that are 16 deep: is it one of them\?/);
});

for (const kind of ['jsonl', 'csv'])
  test(`five thousand items go out and come in again as ${kind}, throttled on the way`, async (t) => {
    const server = await shop(t, { throughput: 20_000 });
    const folder = scratch(t);
    const items = orders(5000);
    const first = join(folder, 'first.jsonl');
    writeFileSync(first, lines(items));
    const imported = await server.orrery(['import', first]);
    assert.equal(imported.code, 0, imported.err);
    assert.match(imported.err, /^imported 5,000 items in .* RU, waited \d+ times? for throughput\n$/);
    const file = join(folder, `second.${kind}`);
    const exported = await server.shell(['--command', `.export ${file}`]);
    assert.equal(exported.code, 0, exported.err);
    assert.match(exported.err, /exported 5,000 items/);

    const anew = await signed(server, 'POST', '/dbs/shop/colls', {
      body: { id: 'copy', partitionKey: { paths: ['/city'], kind: 'Hash', version: 2 } },
      headers: { 'x-ms-offer-throughput': '100000' },
    });
    assert.equal(anew.status, 201);
    const copied = await orrery(['import', file, '--endpoint', server.url, '--dev', '--database', 'shop', '--container', 'copy']);
    assert.equal(copied.code, 0, copied.err);
    const third = join(folder, 'third.jsonl');
    const back = await orrery(['export', third, '--endpoint', server.url, '--dev', '--database', 'shop', '--container', 'copy', '--quiet']);
    assert.deepEqual([back.code, back.err], [0, '']);
    const got = readFileSync(third, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(byId(got), byId(items));
  });

test('items that exist are refused by line, or replaced on request', async (t) => {
  const server = await shop(t);
  const file = join(scratch(t), 'items.json');
  writeFileSync(file, JSON.stringify([{ id: 'a', city: 'Rome', n: 1 }, { id: 'b', city: 'Rome', n: 1 }], null, 2));
  assert.equal((await server.orrery(['import', file])).code, 0);
  writeFileSync(file, lines([{ id: 'a', city: 'Rome', n: 2 }, { id: 'c', city: 'Rome', n: 2 }]));
  const refused = await server.orrery(['import', file]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /items\.json, line 1: .*\(409\)\nimported 1 item in .*, 1 failed\n$/);
  const replaced = await server.shell(['--command', `.import "${file}" --upsert`]);
  assert.equal(replaced.code, 0, replaced.err);
  const { out } = await server.shell(['--quiet', '--command', 'SELECT VALUE {i: c.id, n: c.n} FROM c ORDER BY c.id']);
  assert.equal(out, '{"i":"a","n":2}\n{"i":"b","n":1}\n{"i":"c","n":2}\n');
});

test('a file that is broken at its end changes nothing', async (t) => {
  const server = await shop(t);
  const folder = scratch(t);
  for (const [name, text, words] of [
    ['broken.jsonl', lines(orders(300)) + '{"id":\n', /broken\.jsonl, line 301: /],
    ['broken.csv', 'id,city\n' + 'a,Rome\n'.repeat(200) + '"b\n', /broken\.csv, line 202: a quoted field does not end/],
    ['narrow.csv', 'id,city\na\n', /narrow\.csv, line 2: the row has 1 fields, the header 2/],
  ]) {
    writeFileSync(join(folder, name), text);
    const { code, err } = await server.orrery(['import', join(folder, name)]);
    assert.equal(code, 1);
    assert.match(err, words);
  }
  const { out } = await server.shell(['--quiet', '--command', 'SELECT VALUE COUNT(1) FROM c']);
  assert.equal(out, '0\n');
});

test('items without an id get one, columns named by --text stay text', async (t) => {
  const server = await shop(t);
  const read = await piped(
    ['import', '-', '--as', 'csv', '--text', 'zip,phone', '--endpoint', server.url, '--dev', ...place],
    'city,zip,phone,n\r\nRome,12345,007,12345\r\nRome,,,\r\n',
  );
  assert.equal(read.code, 0, read.err);
  const { out } = await server.shell(['--quiet', '--command', 'SELECT * FROM c']);
  const items = out.trim().split('\n').map((line) => own(JSON.parse(line)));
  for (const item of items) assert.match(item.id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(items.map(({ id, ...rest }) => rest), [{ city: 'Rome', zip: '12345', phone: '007', n: 12345 }, { city: 'Rome' }]);
});

test('an export that fails leaves the file of before alone, and a good one replaces it', async (t) => {
  const server = await shop(t);
  const folder = scratch(t);
  const file = join(folder, 'out.csv');
  writeFileSync(file, 'before');
  chmodSync(file, 0o640);
  const wrong = await server.orrery(['export', file, '--query', 'SELECT * FORM c']);
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /\n  SELECT \* FORM c\n {11}\^~~~\n$/);
  assert.equal(readFileSync(file, 'utf8'), 'before');
  writeFileSync(join(folder, 'in.jsonl'), lines(orders(2)));
  assert.equal((await server.orrery(['import', join(folder, 'in.jsonl')])).code, 0);
  const values = await server.orrery(['export', file, '--query', 'SELECT VALUE c.id FROM c']);
  assert.match(values.err, /row 1 is no object: CSV takes queries whose rows have columns/);
  assert.equal(readFileSync(file, 'utf8'), 'before');
  const good = await server.orrery(['export', file, '--query', 'SELECT c.id, c.text, c.lines FROM c ORDER BY c.id']);
  assert.equal(good.code, 0, good.err);
  assert.equal(readFileSync(file, 'utf8'), 'id,text,lines\r\no0,plain,"[{""sku"":""a\\""b"",""n"":0}]"\r\no1,"a,b",\r\n');
  const system = await server.orrery(['export', '-', '--system', '--quiet']);
  assert.equal(JSON.parse(system.out.split('\n')[0])._attachments, 'attachments/');
});

test('an explanation has access, figures by step and advice with what it would save', async (t) => {
  const server = await shop(t, { throughput: 20_000 });
  const file = join(scratch(t), 'items.jsonl');
  writeFileSync(file, lines(orders(300)));
  assert.equal((await server.orrery(['import', file])).code, 0);
  const query = 'SELECT VALUE COUNT(1) FROM c WHERE c.note = "n7"';
  const { out, err, code } = await server.shell(['--explain', '--command', query]);
  assert.equal(code, 0);
  assert.equal(out, '6\n');
  assert.match(err, /\nplan\n  access: scan\n  operator: aggregate\n  partitions: (\d+) of \1\n/);
  assert.match(err, /\n  read: 0 index entries, 300 items, of which 6 match\n  rows: 1\n  charge: /);
  assert.match(err, /an index on \/note\/\? would have spared up to 294 of the 300 items loaded, and so up to \d+\.\d\d of \d+\.\d\d RU; it costs 0\.38 RU with each item written\n$/);

  const chain = await server.shell(['--explain', '--command', 'SELECT c.note, COUNT(1) AS n FROM c GROUP BY c.note ORDER BY COUNT(1), c.note']);
  assert.equal(chain.code, 0);
  assert.match(chain.err, /\n  operator: group\n[^]*\n  stages behind it\n    sort {7}(\d+) rows in, \1 out, \d+\.\d\d ms\n/);

  const ask = (headers) => signed(server, 'POST', '/dbs/shop/colls/orders/docs', {
    body: { query },
    headers: {
      'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'True',
      'x-ms-documentdb-query-enablecrosspartition': 'True', ...headers,
    },
  });
  const explained = await ask({ 'x-orrery-explain': 'true' });
  assert.equal(explained.status, 200);
  const { access, actual, charge, advice } = explained.json._explain;
  assert.equal(access.kind, 'scan');
  assert.equal(actual.itemsMatched, 6);
  assert.equal(charge.total, Number(explained.headers['x-ms-request-charge']));
  assert.equal(advice[0].path, '/note/?');
  assert.ok(advice[0].saved > 0 && Math.abs(advice[0].charge + advice[0].saved - charge.total) < 0.011);
  for (const headers of [{}, { 'x-orrery-explain': 'false' }])
    assert.equal((await ask(headers)).json._explain, undefined);
  // An index on the path gives about what was promised.
  const replaced = await signed(server, 'PUT', '/dbs/shop/colls/orders', {
    body: { id: 'orders', partitionKey: { paths: ['/city'], kind: 'Hash', version: 2 }, indexingPolicy: { includedPaths: [{ path: '/*' }] } },
  });
  assert.equal(replaced.status, 200, replaced.text);
  await server.until(async () => (await ask({ 'x-orrery-explain': 'true' })).json._explain.access.kind === 'index');
  const indexed = await ask({ 'x-orrery-explain': 'true' });
  assert.deepEqual(indexed.json._explain.advice, []);
  assert.ok(indexed.json._explain.charge.total <= advice[0].charge + 0.01);
});

const prompt = 'shop/orders> ';

function shellAt(t, server, state) {
  return Terminal.start(t, ['shell', '--endpoint', server.url, '--dev'], { XDG_STATE_HOME: state });
}

test('the prompt completes names, keeps a query open over lines and its history over sessions', async (t) => {
  const server = await shop(t);
  const folder = scratch(t);
  writeFileSync(join(folder, 'items.jsonl'), lines(orders(3)));
  const first = shellAt(t, server, folder);
  await first.until('orrery> ');
  first.type('.us\t');
  await first.until('e ');
  first.type('sh\t');
  await first.until('op');
  first.type('/o\t\n');
  await first.until(prompt);
  assert.match(await first.line(`.import ${folder}/items.jsonl`, prompt), /imported 3 items/);
  first.type('select c.id,\n');
  await first.until('...> ');
  first.type('c.text from c order by c.id\n');
  await first.until('...> ');
  first.type('\n');
  assert.match(await first.until(prompt), /id  text\r\no0  plain\r\no1  a,b\r\no2  say "hi"\r\n\(3 rows, /);
  first.type('select c.te\t');
  await first.until('xt');
  first.type(' from c where c.id = "o1" and stringe\t');
  await first.until('quals(');
  first.type('c.text, "A,B", true);\n');
  assert.match(await first.until(prompt), /text\r\na,b\r\n\(1 row, /);
  assert.match(await first.line('SELECT * FORM c;', prompt), /near 'FORM'\. \(SC1001\)\r\n  SELECT \* FORM c\r\n {11}\^~~~\r\n/);
  first.type('half a query');
  await first.until('half a query');
  first.type('\x03');
  await first.until('^C');
  await first.until(prompt);
  first.type('.quit\n');
  assert.equal(await first.ended, 0);

  const file = join(folder, 'orrery', 'history');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readFileSync(file, 'utf8').split('\n').slice(0, 3), [
    '.use shop/orders', `.import ${folder}/items.jsonl`, 'select c.id, c.text from c order by c.id;',
  ]);
  const second = shellAt(t, server, folder);
  await second.until('orrery> ');
  second.type('\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A'); // up, up, ...
  await second.until('use shop/orders'); // the dot is on the screen already
  second.type('\n');
  await second.until(prompt);
  second.type('\x04');
  assert.equal(await second.ended, 0);
});

test('output longer than the screen stops and asks', async (t) => {
  const server = await shop(t);
  const folder = scratch(t);
  writeFileSync(join(folder, 'items.jsonl'), lines(orders(60)));
  assert.equal((await server.orrery(['import', join(folder, 'items.jsonl')])).code, 0);
  const terminal = shellAt(t, server, folder);
  await terminal.until('orrery> ');
  await terminal.line('.use shop/orders', prompt);
  terminal.type('SELECT c.id FROM c;\n');
  const rows = (text) => text.match(/^o\d+\r$/gm)?.length ?? 0;
  assert.equal(rows(await terminal.until('-- more')), 17); // 20 rows less heading, question and one of context
  terminal.type('\n');
  assert.equal(rows((await terminal.until('-- more')).split('\r').slice(-2).join('\r') + '\r'), 1);
  terminal.type(' ');
  await terminal.until('-- more');
  terminal.type('q');
  assert.match(await terminal.until(prompt), /\(stopped after reading 60 rows, /);
  terminal.type('\x04');
  assert.equal(await terminal.ended, 0);
});

test('Ctrl-C ends the query that runs, not the shell', async (t) => {
  // A server that takes requests and never answers.
  const asked = [];
  const silent = createServer((socket) => {
    const seen = { closed: false };
    asked.push(seen);
    socket.on('data', () => (seen.data = true));
    socket.on('error', () => {});
    socket.on('close', () => (seen.closed = true));
  });
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => silent.close());
  const terminal = Terminal.start(t, ['shell', '--endpoint', `http://127.0.0.1:${silent.address().port}`, '--dev', ...place], {
    XDG_STATE_HOME: scratch(t),
  });
  await terminal.until(prompt);
  terminal.type('SELECT * FROM c;\n');
  while (!asked[0]?.data) await new Promise((resolve) => setTimeout(resolve, 5));
  terminal.type('\x03');
  await terminal.until('cancelled');
  await terminal.until(prompt);
  while (!asked[0].closed) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.match(await terminal.line('.set @a 1', prompt), /^\r\n|^$/);
  assert.match(await terminal.line('.set', prompt), /@a 1/);
  terminal.type('.quit\n');
  assert.equal(await terminal.ended, 0);
  assert.equal(asked.length, 1);
});

test('a query whose client has gone ends at once', async (t) => {
  const server = await shop(t);
  const file = join(scratch(t), 'items.jsonl');
  writeFileSync(file, lines([{ id: 'a', city: 'Rome', t: Array.from({ length: 300 }, (_, i) => i) }]));
  assert.equal((await server.orrery(['import', file])).code, 0);
  // Billions of rows: left alone it would run into its deadline, twice as far away as this test waits.
  const query = 'SELECT a, COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t JOIN d IN c.t JOIN e IN c.t GROUP BY a';
  const inFlight = async () => Number(/^orrery_requests_in_flight\{front="rest"\} (\d+)$/m.exec(await (await server.get('/metrics')).text())[1]);
  const child = spawn(binary, ['shell', '--endpoint', server.url, '--dev', ...place, '--command', query], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  await server.until(async () => (await inFlight()) === 2);
  child.kill('SIGINT');
  const [, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGINT');
  await server.until(async () => (await inFlight()) === 1);
});
