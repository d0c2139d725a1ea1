// Attacks that need no key: browsers led here by a page, and what answers give away.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { send, signed } from './rest.js';
import { sendTable, storageAccount, storageKey } from './tables.js';

// A request to the Table port as a browser sends it: nothing is added.
function plain(port, method, path, { headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let text = '';
      response.on('data', (part) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

// An account SAS for everything, with a key of the account.
function accountSas(key = storageKey, account = storageAccount) {
  const fields = { sp: 'rwdlacu', ss: 't', srt: 'sco', st: '', se: new Date(Date.now() + 3600e3).toISOString().replace(/\.\d+/, ''),
    sip: '', spr: '', sv: '2019-02-02' };
  const text = [account, ...Object.values(fields), ''].join('\n');
  const sig = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  return new URLSearchParams({ ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value)), sig }).toString();
}

// A server with keys of its own, and these.
async function withKeys(t, args = []) {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `a=rocksdb:${directory}`, ...args]);
  const lines = readFileSync(join(directory, 'keys'), 'utf8').trim().split('\n').map((line) => line.split(' '));
  return { server, directory, keys: Object.fromEntries(lines) };
}

test('with --dev a name led to this server by DNS is not served, on any port', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'tls.names=db.example', '--set', 'account.host_suffix=accounts.example',
    '--set', 'account.by_use=true']);
  const evil = `evil.example:${server.port}`;
  for (const path of ['/', '/dbs', '/_orrery/accounts/default/keys', '/_orrery/nodes']) {
    const answer = await signed(server, 'GET', path, { host: evil });
    assert.equal(answer.status, 421, path);
    assert.equal(answer.json.code, 'MisdirectedRequest');
    assert.match(answer.json.message, /tls\.names/);
    assert.doesNotMatch(answer.text, /primary/);
  }
  const added = await signed(server, 'POST', '/_orrery/nodes', { host: evil, body: { name: 'b', url: 'memory:' } });
  assert.equal(added.status, 421);
  const nodes = (await signed(server, 'GET', '/_orrery/nodes')).json.nodes;
  assert.deepEqual(nodes.map((node) => node.name), ['local']);
  for (const path of ['/ready', '/metrics', '/_orrery/ca.pem'])
    assert.equal((await send(server, 'GET', path, { host: evil })).status, 421, path);
  const table = await sendTable(server, 'GET', '/Tables', { headers: { host: 'evil.example' } });
  assert.deepEqual([table.status, table.code], [421, 'MisdirectedRequest']);
  assert.equal((await sendTable(server, 'GET', '/Tables', { headers: { host: 'db.example' } })).status, 200);
  for (const host of ['localhost', '127.0.0.1', `[::1]:${server.port}`, 'team-a.localhost', 'db.example', 'orders.accounts.example']) {
    assert.equal((await signed(server, 'GET', '/', { host })).status, 200, host);
    assert.equal((await send(server, 'GET', '/ready', { host })).status, 200, host);
  }
  for (const host of ['localhost.evil.example', '0.0.0.0', '192.0.2.7', 'x.db.example'])
    assert.equal((await signed(server, 'GET', '/', { host })).status, 421, host);
});

test('with real keys any host is served what is signed, and what nobody signs under the hosts of the server', async (t) => {
  const { server, keys: { primary: key } } = await withKeys(t);
  assert.equal((await signed(server, 'GET', '/', { host: 'any.example', key })).status, 200);
  for (const path of ['/ready', '/metrics', '/_orrery/ca.pem']) {
    assert.equal((await send(server, 'GET', path, { host: 'evil.example' })).status, 421, path);
    // an address cannot be led elsewhere; probes of orchestrators ask so
    assert.equal((await send(server, 'GET', path, { host: '10.1.2.3:8081' })).status, 200, path);
  }
});

test('a form on another page makes no table through a signed URL', async (t) => {
  for (const args of [['--dev'], []]) {
    const { server, keys } = await withKeys(t, args);
    const key = args.length ? storageKey : keys.primary;
    const account = args.length ? storageAccount : 'default';
    const path = (name) => `/${account}/Tables?${accountSas(key, account)}&${name}`;
    const body = JSON.stringify({ TableName: 'stolen' });
    const post = (headers, type) => plain(server.tablePort, 'POST', path('x'), {
      headers: { host: `127.0.0.1:${server.tablePort}`, 'content-type': type, ...headers }, body });
    const form = await post({ origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, 'text/plain');
    assert.equal(form.status, 403, form.text);
    assert.equal((await post({ origin: 'null' }, 'application/json')).status, 403);
    assert.equal((await post({ 'sec-fetch-site': 'cross-site' }, 'application/json')).status, 403);
    // a browser that tells nothing of the page: a form sends no JSON
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      assert.equal((await post({}, type)).status, 400, type);
    const listed = await sendTable(server, 'GET', '/Tables', { account, key });
    assert.deepEqual(listed.json.value, []);
    const own = await post({ origin: `http://127.0.0.1:${server.tablePort}` }, 'application/json');
    assert.equal(own.status, 201, own.text);
    // a CORS rule is the owner's word
    const rule = '<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://app.example</AllowedOrigins>' +
      '<AllowedMethods>POST</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders></ExposedHeaders>' +
      '<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>';
    const set = await sendTable(server, 'PUT', '/?restype=service&comp=properties', { account, key, body: rule });
    assert.equal(set.status, 202, set.text);
    const app = await plain(server.tablePort, 'POST', path('y'), {
      headers: { host: `127.0.0.1:${server.tablePort}`, 'content-type': 'application/json', origin: 'https://app.example',
        'sec-fetch-site': 'cross-site' }, body: JSON.stringify({ TableName: 'wanted' }) });
    assert.equal(app.status, 201, app.text);
    assert.equal(app.headers['access-control-allow-origin'], 'https://app.example');
    assert.equal((await post({ origin: 'https://evil.example' }, 'application/json')).status, 403);
    await server.stop();
  }
});

test('no page of another origin may use the REST API unless its origin is named', async (t) => {
  const origin = 'https://app.example';
  const ask = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,x-ms-date' };
  const closed = await Server.start(t, ['--dev']);
  const refused = await send(closed, 'OPTIONS', '/dbs', { headers: { origin, ...ask } });
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /rest\.cors_origins/);
  for (const name of Object.keys(refused.headers)) assert.doesNotMatch(name, /^access-control/);
  assert.equal((await signed(closed, 'POST', '/dbs', { headers: { origin }, body: { id: 'a' } })).status, 403);
  assert.equal((await signed(closed, 'GET', '/dbs', { headers: { 'sec-fetch-site': 'cross-site' } })).status, 403);
  assert.equal((await signed(closed, 'GET', '/dbs', { headers: { origin: closed.url } })).status, 200);

  const open = await Server.start(t, ['--dev', '--set', `rest.cors_origins=${origin}, http://localhost:3000`]);
  const allowed = await send(open, 'OPTIONS', '/dbs', { headers: { origin, ...ask } });
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers['access-control-allow-origin'], origin);
  assert.equal(allowed.headers['access-control-allow-headers'], 'authorization,x-ms-date');
  assert.match(allowed.headers['access-control-allow-methods'], /PATCH/);
  assert.equal(allowed.headers.vary, 'Origin');
  const made = await signed(open, 'POST', '/dbs', { headers: { origin }, body: { id: 'a' } });
  assert.equal(made.status, 201);
  assert.equal(made.headers['access-control-allow-origin'], origin);
  assert.match(made.headers['access-control-expose-headers'], /x-ms-continuation/);
  assert.equal((await send(open, 'OPTIONS', '/dbs', { headers: { origin: 'https://app.example.evil', ...ask } })).status, 403);
  assert.equal((await send(open, 'OPTIONS', '/_orrery/nodes', { headers: { origin, ...ask } })).status, 403);
  assert.equal((await signed(open, 'GET', '/_orrery/nodes', { headers: { origin } })).status, 403);
  const star = await orrery(['serve', '--dev', '--node', 'a=memory:', '--set', 'rest.cors_origins=*']);
  assert.notEqual(star.code, 0);
  assert.match(star.err, /name origins instead of \*/);
  const none = await orrery(['serve', '--node', 'a=memory:', '--set', 'rest.cors_origins=app.example']);
  assert.match(none.err, /rest\.cors_origins: "app\.example" is no origin/);
});

test('nodes are added with paths only below the directories of nodes.add_paths, and a name is taken once', async (t) => {
  const directory = scratch(t);
  const inside = join(directory, 'nodes');
  mkdirSync(inside);
  const add = (server, name, url) => signed(server, 'POST', '/_orrery/nodes', { body: { name, url } });
  const closed = await Server.start(t, ['--dev']);
  const target = join(directory, 'x');
  const refused = await add(closed, 'b', `rocksdb:${target}`);
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.json.message, /nodes\.add_paths/);
  assert.equal((await add(closed, 'b', 'postgresql://west/db?sslkey=/etc/passwd')).status, 403);
  assert.equal(existsSync(target), false);
  assert.equal((await add(closed, 'b', 'memory:')).status, 201);
  await closed.stop();

  const open = await Server.start(t, ['--dev', '--set', `nodes.add_paths=${inside}`, '--node', `a=rocksdb:${join(inside, 'a')}`]);
  assert.equal((await add(open, 'b', `rocksdb:${target}`)).status, 403);
  assert.equal((await add(open, 'b', `rocksdb:${inside}/../x`)).status, 403);
  assert.equal(existsSync(target), false);
  assert.equal((await add(open, 'b', `rocksdb:${join(inside, 'b')}`)).status, 201);
  for (const url of [`rocksdb:${join(inside, 'b')}`, `rocksdb:${target}`, 'memory:'])
    assert.equal((await add(open, 'b', url)).status, 409, url);
  const twice = await orrery(['node', 'add', 'a', `rocksdb:${join(inside, 'a')}`, '--endpoint', open.url, '--dev']);
  assert.notEqual(twice.code, 0);
  assert.match(twice.err, /there is a node "a" already/);
  assert.equal((await add(open, 'c', `rocksdb:${join(inside, 'a')}`)).status, 400);
});

test('who has no key cannot tell whether an account exists', async (t) => {
  const { server, keys: { primary: key, 'primary-readonly': reader } } = await withKeys(t);
  assert.equal((await signed(server, 'POST', '/_orrery/accounts', { key, body: { id: 'there' } })).status, 201);
  const strange = Buffer.alloc(64, 7).toString('base64');
  const date = new Date().toUTCString();
  const sameButFor = (answer) => {
    const { date: when, 'x-ms-activity-id': id, 'x-ms-request-duration-ms': ms, 'x-ms-request-id': request, ...headers } = answer.headers;
    return { status: answer.status, headers,
      text: answer.text.replaceAll(/there|gone-/g, 'NAME').replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID').replace(/Time:[^"<]*/, '') };
  };
  const token = `type=resource&ver=1&sig=${'A'.repeat(24)};${'A'.repeat(84)};${'A'.repeat(24)};`;
  for (const options of [{ key: strange }, { key: reader }, { authorization: '' }, { authorization: 'nonsense' },
    { authorization: encodeURIComponent(token) }])
    for (const [method, path] of [['GET', '/'], ['GET', '/dbs'], ['POST', '/dbs'], ['GET', '/_orrery/accounts']]) {
      const answers = await Promise.all(['there', 'gone-'].map((account) => signed(server, method, path, { ...options, account, date })));
      assert.equal(answers[0].status, 401, answers[0].text);
      assert.deepEqual(sameButFor(answers[0]), sameButFor(answers[1]));
    }
  for (const method of ['GET', 'POST', 'OPTIONS']) {
    const answers = await Promise.all(['there', 'gone-'].map((account) => sendTable(server, method, '/Tables', { account, key: strange, date,
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'GET' } })));
    assert.equal(answers[0].status, 403, answers[0].text);
    assert.deepEqual(sameButFor(answers[0]), sameButFor(answers[1]));
  }
  // whoever runs the server is told
  const told = await signed(server, 'GET', '/dbs', { account: 'gone-', key });
  assert.deepEqual([told.status, told.headers['x-ms-substatus']], [403, '1008']);
});

test('looking makes no account, nor does a read-only key', async (t) => {
  const { server, keys: { primary: key, 'primary-readonly': reader } } = await withKeys(t, ['--set', 'account.by_use=true']);
  const query = { headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true' }, body: { query: 'SELECT * FROM c' } };
  for (const by of [key, reader]) {
    const answers = [
      ['GET', '/', 200], ['GET', '/dbs', 200], ['GET', '/dbs/d', 404], ['GET', '/offers', 200], ['GET', '/dbs/d/colls', 404],
      ['GET', '/dbs/d/colls/c/docs/1', 404], ['GET', '/dbs/d/users', 404], ['HEAD', '/', 200],
      ['POST', '/dbs', 200, query], ['POST', '/offers', 200, query], ['POST', '/dbs/d/colls/c/docs', 404, query],
    ];
    for (const [method, path, status, options = {}] of answers) {
      const answer = await signed(server, method, path, { account: 'looked-at', key: by, ...options });
      assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
    }
    assert.equal((await sendTable(server, 'GET', '/Tables', { account: 'looked-at', key: by })).status, 200);
    assert.equal((await sendTable(server, 'GET', '/people()', { account: 'looked-at', key: by })).status, 404);
  }
  assert.equal((await signed(server, 'GET', '/_orrery/accounts', { account: 'looked-at', key })).status, 404);
  assert.equal((await signed(server, 'POST', '/dbs', { account: 'looked-at', key: reader, body: { id: 'd' } })).status, 403);
  const table = await sendTable(server, 'POST', '/Tables', { account: 'looked-at', key: reader, body: { TableName: 'people' } });
  assert.equal(table.status, 403);
  const accounts = async () => (await signed(server, 'GET', '/_orrery/accounts', { key })).json.accounts.map(({ id }) => id);
  assert.deepEqual(await accounts(), ['default']);
  assert.equal((await signed(server, 'POST', '/dbs', { account: 'used', key, body: { id: 'd' } })).status, 201);
  assert.deepEqual(await accounts(), ['default', 'used']);
});

test('values that concatenate alike are two keys, and a token for the one does not read the other', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { user } = await database.users.create({ id: 'ann' });
  const definition = (more) => ({ partitionKey: { paths: ['/pk'], version: 2 },
    orrery: { synthetic: { kind: 'concatenation', target: '/pk', sources: ['/tenant', '/user'], separator: '-', ...more } } });
  const rows = [{ id: '1', tenant: 'acme', user: 'eu-bob' }, { id: '1', tenant: 'acme-eu', user: 'bob' }];
  const read = (token, name, key) => signed(server, 'GET', `/dbs/shop/colls/${name}/docs/1`, {
    authorization: encodeURIComponent(token), headers: { 'x-ms-documentdb-partitionkey': JSON.stringify(key) } });
  const bound = async (name, key) => (await user.permissions.create({ id: `${name}-${key}`, permissionMode: 'All',
    resource: `dbs/shop/colls/${name}`, resourcePartitionKey: key })).resource._token;

  const { container } = await database.containers.create({ id: 'new', ...definition({}) });
  assert.equal((await container.read()).resource.orrery.synthetic.escape, true);
  for (const row of rows) assert.equal((await container.items.create(row)).statusCode, 201);
  const own = await bound('new', ['acme', 'eu-bob']);
  assert.equal((await read(own, 'new', ['acme', 'eu-bob'])).json.pk, 'acme-eu%2Dbob');
  for (const key of [['acme-eu', 'bob'], ['acme-eu-bob']]) assert.equal((await read(own, 'new', key)).status, 403);
  const { resources } = await container.items.query("SELECT VALUE c.user FROM c WHERE c.tenant = 'acme' AND c.user = 'eu-bob'").fetchAll();
  assert.deepEqual(resources, ['eu-bob']);
  const told = await orrery(['key', 'explain', 'shop', 'new', JSON.stringify(rows[0]), '--endpoint', server.url, '--dev']);
  assert.match(told.out, /acme-eu%2Dbob/);
  // a replace that does not say it keeps it
  await container.replace({ id: 'new', ...definition({}), defaultTtl: -1 });
  await assert.rejects(container.replace({ id: 'new', ...definition({ escape: false }) }), { code: 400 });

  // without escapes, as containers from before have it: no token for a key that may be another's
  const { container: old } = await database.containers.create({ id: 'old', ...definition({ escape: false }) });
  assert.equal((await old.items.create(rows[0])).resource.pk, 'acme-eu-bob');
  assert.equal((await old.items.create({ id: '1', tenant: 'acme', user: 'bob' })).statusCode, 201);
  await old.replace({ id: 'old', ...definition({}), defaultTtl: -1 });
  assert.equal((await old.read()).resource.orrery.synthetic.escape, false);
  for (const key of [['acme', 'eu-bob'], ['acme-eu', 'bob'], ['acme-eu-bob']]) {
    const refused = await read(await bound('old', key), 'old', key);
    assert.equal(refused.status, 403);
    assert.match(refused.json.message, /other values/);
  }
  assert.equal((await read(await bound('old', ['acme', 'bob']), 'old', ['acme', 'bob'])).status, 200);
  await assert.rejects(database.containers.create({ id: 'bad', ...definition({ separator: '' }) }), { code: 400 });
});

test('a store that cannot be read tells its path to the log, and to no client', async (t) => {
  const directory = scratch(t);
  const args = ['--dev', '--node', `a=rocksdb:${directory}`, '--set', 'engine.write_buffer_bytes=65536'];
  const first = await Server.start(t, args);
  const client = new CosmosClient({ endpoint: first.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const ids = Array.from({ length: 100 }, (_, i) => `${i}`);
  for (const id of ids) await container.items.create({ id, pk: id, text: randomBytes(4000).toString('hex') });
  await first.stop();
  const server = await Server.start(t, args);
  // every file of sorted runs, from its beginning to two thirds; its index is at the end
  const files = readdirSync(directory, { recursive: true }).map((name) => join(directory, name)).filter((name) => name.endsWith('.sst'));
  for (const path of files) {
    const file = openSync(path, 'r+');
    const { size } = fstatSync(file);
    writeSync(file, Buffer.alloc(Math.floor(size * 2 / 3), 0xAA), 0, Math.floor(size * 2 / 3), 0);
    closeSync(file);
  }
  const failed = [];
  for (const id of ids) {
    const answer = await signed(server, 'GET', `/dbs/d/colls/c/docs/${id}`, { headers: { 'x-ms-documentdb-partitionkey': `["${id}"]` } });
    if (answer.status >= 500) failed.push(answer);
  }
  assert.ok(failed.length > 0, `${files.length} files`);
  for (const answer of failed) {
    assert.equal(answer.text.includes(directory), false, answer.text);
    assert.doesNotMatch(answer.text, /\.sst/);
  }
  t.diagnostic(`figure: ${failed.length} of ${ids.length} reads failed: ${failed[0].text}`);
  const line = server.events().find((event) => event.event === 'request failed');
  assert.ok(JSON.stringify(line).includes(directory), JSON.stringify(line));
});

test('a mistyped key changes nothing', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  for (const tenant of ['acme', 'beta']) await container.items.create({ id: '1', tenant });
  const run = (...args) => orrery([...args, '--endpoint', server.url, '--dev']);
  const state = async () => [
    (await database.containers.readAll().fetchAll()).resources.map(({ id }) => id),
    (await signed(server, 'GET', '/_orrery/containers/shop/orders/partitions')).json.partitions.map(({ id }) => id),
    (await signed(server, 'GET', '/_orrery/containers/shop/orders/promote')).json.promotions,
  ];
  const before = await state();
  for (const key of ['acmee', '["acmee"]', '["acme"', '[“acme”]', '[5]', '5', ''])
    for (const args of [['promote', 'shop', 'orders', '--key', key, '--to', 'orders-acme'], ['partition', 'isolate', 'shop', 'orders', key]]) {
      const { code, err } = await run(...args);
      assert.notEqual(code, 0, `${args.join(' ')}: ${err}`);
      assert.deepEqual(await state(), before);
    }
  for (const what of ['--demote', '--end', '--forget'])
    assert.match((await run('promote', 'shop', 'orders', '--key', 'acmee', what)).err, /is not promoted/);
  assert.deepEqual(await state(), before);
  // a key that is to come is said to be so
  const early = await run('partition', 'isolate', 'shop', 'orders', 'tomorrow', '--empty');
  assert.equal(early.code, 0, early.err);
  const done = await run('promote', 'shop', 'orders', '--key', 'acme', '--to', 'orders-acme');
  assert.equal(done.code, 0, done.err);
});
