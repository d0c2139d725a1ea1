// Stored procedures, run through the vendor's own client.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { shop } from './items.js';
import { countOf, failure, procedure } from './scripts.js';
import { root } from './server.js';

/* global getContext, __ */

test('a procedure answers with what it sets as body, and takes arguments', async (t) => {
  const { container } = await shop(t);
  const echo = await procedure(container, 'echo', function (a, b) {
    getContext().getResponse().setBody({ a: a, b: b, count: arguments.length });
  });
  const answer = await echo('x', ['é', { deep: [1, null, true] }]);
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(answer.resource, { a: 'é', b: { deep: [1, null, true] }, count: 2 });
  assert.ok(answer.requestCharge > 0);
  const silent = await procedure(container, 'silent', function () {});
  assert.equal((await silent('x')).resource, '');
  const arrow = await procedure(container, 'arrow', '(n) => getContext().getResponse().setBody(n ** 2 ?? 0)');
  assert.equal((await arrow('x', [7])).resource, 49);
});

test('an execution needs a partition key and an array, and its body may be empty', async (t) => {
  const { container, send } = await shop(t);
  await procedure(container, 'p', function (a) { getContext().getResponse().setBody(a === undefined); });
  const path = '/dbs/shop/colls/orders/sprocs/p';
  const missing = await send('POST', path, { body: [] });
  assert.equal(missing.status, 400);
  assert.match(missing.json.message, /PartitionKey value must be supplied/);
  assert.equal((await send('POST', path, { key: ['x'], body: { a: 1 } })).status, 400);
  assert.equal((await send('POST', path, { key: ['x'], body: '[1' })).status, 400);
  const empty = await send('POST', path, { key: ['x'] });
  assert.equal(empty.status, 200);
  assert.equal(empty.json, true);
  assert.equal((await send('POST', '/dbs/shop/colls/orders/sprocs/q', { key: ['x'], body: [] })).status, 404);
});

test('every operation of the collection works, and callbacks keep their order', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'old', tenant: 'x', n: 1 });
  const all = await procedure(container, 'all', function () {
    const c = getContext().getCollection();
    const self = c.getSelfLink();
    const seen = [];
    const note = (name) => (err, doc) => { if (err) throw err; seen.push([name, doc && doc.id, doc && doc.n]); };
    c.createDocument(self, { id: 'new', tenant: 'x', n: 2 }, note('create'));
    c.readDocument(c.getAltLink() + '/docs/new', {}, note('read'));
    c.upsertDocument(self, { id: 'up', tenant: 'x', n: 3 }, note('upsert'));
    c.readDocument(c.getAltLink() + '/docs/old', {}, function (err, doc) {
      if (err) throw err;
      doc.n = 10;
      c.replaceDocument(doc._self, doc, { etag: doc._etag }, function (err, replaced) {
        if (err) throw err;
        note('replace')(null, replaced);
        c.deleteDocument(replaced._self, { etag: replaced._etag }, function (err) {
          if (err) throw err;
          seen.push(['delete']);
          getContext().getResponse().setBody(seen);
        });
      });
    });
  });
  const { resource } = await all('x');
  assert.deepEqual(resource, [
    ['create', 'new', 2], ['read', 'new', 2], ['upsert', 'up', 3], ['replace', 'old', 10], ['delete'],
  ]);
  assert.equal((await container.item('old', 'x').read()).statusCode, 404);
  assert.equal((await container.item('new', 'x').read()).resource.n, 2);
});

test('what a procedure answers of items it wrote carries their real names', async (t) => {
  const { container } = await shop(t);
  const make = await procedure(container, 'make', function () {
    const c = getContext().getCollection();
    c.createDocument(c.getSelfLink(), { tenant: 'x', n: 1 }, function (err, doc) {
      if (err) throw err;
      doc.n = 2;
      c.replaceDocument(doc._self, doc, { etag: doc._etag }, function (err, again) {
        if (err) throw err;
        getContext().getResponse().setBody(again);
      });
    });
  });
  const { resource } = await make('x');
  const read = (await container.item(resource.id, 'x').read()).resource;
  assert.equal(resource._rid, read._rid);
  assert.equal(resource._self, read._self);
  assert.equal(resource._etag, read._etag);
  assert.equal(read.n, 2);
});

test('bulk import with continuation takes all items in the end', async (t) => {
  const { container } = await shop(t, { throughput: 1000 }, {
    args: ['--set', 'script.ru_seconds=1', '--set', 'throughput.burst_seconds=0'],
  });
  const importer = await procedure(container, 'bulkImport', function bulkImport(docs) {
    const collection = getContext().getCollection();
    let count = 0;
    if (!docs) throw new Error('The array is undefined or null.');
    const create = () => {
      if (count >= docs.length) return getContext().getResponse().setBody(count);
      const accepted = collection.createDocument(collection.getSelfLink(), docs[count], (err) => {
        if (err) throw err;
        count++;
        create();
      });
      if (!accepted) getContext().getResponse().setBody(count);
    };
    create();
  });
  const items = Array.from({ length: 300 }, (_, i) => ({ id: `i${i}`, tenant: 'x', n: i }));
  const rounds = [];
  while (items.length) {
    const { resource: taken } = await importer('x', [items]);
    assert.ok(taken > 0);
    rounds.push(taken);
    items.splice(0, taken);
  }
  assert.ok(rounds.length > 1, `${rounds}`);
  assert.equal(await countOf(container, 'x'), 300);
});

test('a bulk delete goes through pages with continuations of queries', async (t) => {
  const { container } = await shop(t);
  await Promise.all(Array.from({ length: 30 }, (_, i) => container.items.create({ id: `i${i}`, tenant: 'x', n: i })));
  await container.items.create({ id: 'i1', tenant: 'y', n: 1 });
  const pages = await procedure(container, 'pages', function (query, continuation) {
    const c = getContext().getCollection();
    const sizes = [];
    let deleted = 0;
    const page = (continuation) => {
      c.queryDocuments(c.getSelfLink(), query, { pageSize: 7, continuation }, (err, feed, options) => {
        if (err) throw err;
        sizes.push(feed.length);
        for (const doc of feed)
          c.deleteDocument(doc._self, { etag: doc._etag }, (err) => { if (err) throw err; deleted++; });
        if (options.continuation) page(options.continuation);
        getContext().getResponse().setBody({ sizes, deleted });
      });
    };
    page(continuation);
    getContext().getResponse().setBody(0);
  });
  const query = { query: 'SELECT * FROM c WHERE c.n >= @n ORDER BY c.n', parameters: [{ name: '@n', value: 10 }] };
  const { resource } = await pages('x', [query]);
  assert.deepEqual(resource.sizes.slice(0, 2), [7, 7]);
  assert.equal(await countOf(container, 'x'), 10);
  assert.equal(await countOf(container, 'y'), 1);
});

test('a conditional update looks before it writes', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'account', tenant: 'x', balance: 100 });
  const withdraw = await procedure(container, 'withdraw', function (id, amount) {
    const c = getContext().getCollection();
    c.readDocument(`${c.getAltLink()}/docs/${id}`, (err, doc) => {
      if (err) throw err;
      if (doc.balance < amount) throw new Error('not enough');
      doc.balance -= amount;
      c.replaceDocument(doc._self, doc, { etag: doc._etag }, (err, now) => {
        if (err) throw err;
        getContext().getResponse().setBody(now.balance);
      });
    });
  });
  assert.equal((await withdraw('x', ['account', 70])).resource, 30);
  const refused = await failure(withdraw('x', ['account', 70]));
  assert.equal(refused.code, 400);
  assert.match(refused.message, /not enough/);
  assert.equal((await container.item('account', 'x').read()).resource.balance, 30);
});

test('two items are swapped, both or neither', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'p1', tenant: 'x', item: 'sword' });
  await container.items.create({ id: 'p2', tenant: 'x', item: 'shield' });
  const swap = await procedure(container, 'swap', function (one, two) {
    const c = getContext().getCollection();
    const find = (id, then) => c.queryDocuments(
      c.getSelfLink(), { query: 'SELECT * FROM p WHERE p.id = @id', parameters: [{ name: '@id', value: id }] }, {},
      (err, found) => { if (err || found.length !== 1) throw err || new Error(`no ${id}`); then(found[0]); });
    find(one, (a) => find(two, (b) => {
      [a.item, b.item] = [b.item, a.item];
      c.replaceDocument(a._self, a, (err) => {
        if (err) throw err;
        c.replaceDocument(b._self, b, (err) => { if (err) throw new Error('rolled back'); });
      });
    }));
  });
  await swap('x', ['p1', 'p2']);
  assert.equal((await container.item('p1', 'x').read()).resource.item, 'shield');
  assert.equal((await container.item('p2', 'x').read()).resource.item, 'sword');
  assert.match((await failure(swap('x', ['p1', 'none']))).message, /no none/);
});

test('nothing remains of a procedure that throws after fifty writes', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'before', tenant: 'x', n: 1 });
  const half = await procedure(container, 'half', function () {
    const c = getContext().getCollection();
    let done = 0;
    for (let i = 0; i < 50; i++)
      c.createDocument(c.getSelfLink(), { id: `i${i}`, tenant: 'x' }, (err) => {
        if (err) throw err;
        if (++done === 50) throw new Error('enough of it');
      });
    c.deleteDocument(`${c.getAltLink()}/docs/before`);
  });
  const error = await failure(half('x'));
  assert.equal(error.code, 400);
  assert.match(error.message, /Encountered exception while executing function/);
  assert.match(error.message, /enough of it/);
  assert.equal(await countOf(container, 'x'), 1);
  assert.equal((await container.item('before', 'x').read()).resource.n, 1);
});

test('an error that is thrown with a number shows it as the substatus', async (t) => {
  const { container } = await shop(t);
  const picky = await procedure(container, 'picky', function () {
    const error = new Error('never on Sundays');
    error.number = 4711;
    throw error;
  });
  const error = await failure(picky('x'));
  assert.equal(error.code, 400);
  assert.equal(Number(error.substatus ?? error.headers['x-ms-substatus']), 4711);
  const broken = await procedure(container, 'broken', 'function ( {');
  const unparsed = await failure(broken('x'));
  assert.equal(unparsed.code, 400);
  assert.equal(Number(unparsed.substatus ?? unparsed.headers['x-ms-substatus']), 65535);
  const none = await procedure(container, 'none', '"only a text"');
  assert.equal((await failure(none('x'))).code, 400);
});

test('refusals of operations reach the callback with their number', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'there', tenant: 'x' });
  await container.items.create({ id: 'away', tenant: 'y' });
  const refused = await procedure(container, 'refused', function () {
    const c = getContext().getCollection();
    const self = c.getSelfLink();
    const numbers = {};
    const note = (name) => (err) => {
      numbers[name] = err ? err.number : 0;
      getContext().getResponse().setBody(numbers);
    };
    c.createDocument(self, { id: 'there', tenant: 'x' }, note('twice'));
    c.createDocument(self, { id: 'z', tenant: 'y' }, note('otherKey'));
    c.createDocument(self, { id: 'z' }, note('noKey'));
    c.readDocument(`${c.getAltLink()}/docs/away`, {}, note('otherItem'));
    c.replaceDocument(`${c.getAltLink()}/docs/there`, { id: 'there', tenant: 'x' }, { etag: '"0"' }, note('etag'));
    c.createDocument(self, { id: 'z', tenant: 'x', bad: 'x'.repeat(2200000) }, note('large'));
    c.queryDocuments(self, 'SELECT * FROM', {}, note('query'));
  });
  const { resource } = await refused('x');
  assert.deepEqual(resource, {
    twice: 409, otherKey: 400, noKey: 400, otherItem: 404, etag: 412, large: 413, query: 400,
  });
  assert.equal(await countOf(container, 'x'), 1);
});

test('a unique key that is taken reaches the callback too', async (t) => {
  const { container } = await shop(t, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] } });
  await container.items.create({ id: 'a', tenant: 'x', mail: 'm' });
  const make = await procedure(container, 'make', function (mails) {
    const c = getContext().getCollection();
    const numbers = [];
    for (const mail of mails)
      c.createDocument(c.getSelfLink(), { tenant: 'x', mail }, (err) => {
        numbers.push(err ? err.number : 0);
        getContext().getResponse().setBody(numbers);
      });
  });
  assert.deepEqual((await make('x', [['m', 'n']])).resource, [409, 0]);
  // a clash among its own writes is seen at the commit, and all of it is refused
  assert.equal((await failure(make('x', [['o', 'o']]))).code, 409);
  assert.equal(await countOf(container, 'x'), 2);
});

test('links that lead out of the collection are refused', async (t) => {
  const { container, database } = await shop(t);
  await database.containers.create({ id: 'other', partitionKey: '/tenant' });
  const out = await procedure(container, 'out', function (link) {
    getContext().getCollection().createDocument(link, { id: 'z', tenant: 'x' }, (err) => { if (err) throw err; });
  });
  const error = await failure(out('x', ['dbs/shop/colls/other']));
  assert.equal(error.code, 400);
});

test('queries of a procedure see the moment it began, reads what it wrote', async (t) => {
  const { container } = await shop(t);
  const looking = await procedure(container, 'looking', function () {
    const c = getContext().getCollection();
    c.createDocument(c.getSelfLink(), { id: 'a', tenant: 'x' }, (err) => {
      if (err) throw err;
      c.queryDocuments(c.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', (err, found) => {
        if (err) throw err;
        c.readDocument(`${c.getAltLink()}/docs/a`, (err, doc) => {
          getContext().getResponse().setBody([found[0], doc.id]);
        });
      });
    });
  });
  assert.deepEqual((await looking('x')).resource, [0, 'a']);
});

test('console.log comes back when it is asked for, also after a failure', async (t) => {
  const { container, send } = await shop(t);
  const talking = await procedure(container, 'talking', function (fails) {
    console.log('one %s', 'two');
    console.log({ three: 3 });
    if (fails) throw new Error('stop');
  });
  const header = 'x-ms-documentdb-script-log-results';
  const told = await talking('x', [false], { enableScriptLogging: true });
  assert.match(decodeURIComponent(told.headers[header]), /one two\n/);
  assert.equal((await talking('x', [false])).headers[header], undefined);
  const failed = await send('POST', '/dbs/shop/colls/orders/sprocs/talking', {
    key: ['x'], body: [true], headers: { 'x-ms-documentdb-script-enable-logging': 'true' },
  });
  assert.equal(failed.status, 400);
  assert.match(decodeURIComponent(failed.headers[header]), /one two\n/);
  const chatty = await procedure(container, 'chatty', function () {
    for (let i = 0; i < 100000; i++) console.log('all work and no play');
  });
  const cut = await chatty('x', [], { enableScriptLogging: true });
  assert.ok(decodeURIComponent(cut.headers[header]).length <= 4096 + 200);
});

test('a procedure that takes too long is stopped with 408, and leaves nothing', async (t) => {
  const { container } = await shop(t, {}, { args: ['--set', 'script.time_ms=300ms'] });
  const forever = await procedure(container, 'forever', function () {
    const c = getContext().getCollection();
    c.createDocument(c.getSelfLink(), { id: 'a', tenant: 'x' }, () => { for (;;); });
  });
  const error = await failure(forever('x'));
  assert.equal(error.code, 408);
  assert.equal(await countOf(container, 'x'), 0);
  const fine = await procedure(container, 'fine', function () { getContext().getResponse().setBody(1); });
  assert.equal((await fine('x')).resource, 1);
});

test('two procedures that race for an item both count', async (t) => {
  const { container } = await shop(t);
  await container.items.create({ id: 'counter', tenant: 'x', n: 0 });
  const add = await procedure(container, 'add', function (ms) {
    const c = getContext().getCollection();
    c.readDocument(`${c.getAltLink()}/docs/counter`, (err, doc) => {
      if (err) throw err;
      const end = Date.now() + ms;
      while (Date.now() < end);
      doc.n++;
      c.replaceDocument(doc._self, doc, (err, now) => {
        if (err) throw err;
        getContext().getResponse().setBody(now.n);
      });
    });
  });
  const answers = await Promise.all([add('x', [200]), add('x', [200]), add('x', [200])]);
  assert.deepEqual(answers.map(({ resource }) => resource).sort(), [1, 2, 3]);
  assert.equal((await container.item('counter', 'x').read()).resource.n, 3);
  // a lost attempt costs nothing
  assert.equal(new Set(answers.map(({ requestCharge }) => requestCharge)).size, 1);
});

test('a split during a long procedure leaves all of it or nothing', async (t) => {
  const { client, container, resource } = await shop(t, { throughput: 400 }, { args: ['--set', 'migration.pause_ms=20ms'] });
  const slow = await procedure(container, 'slow', function (count, ms) {
    const c = getContext().getCollection();
    for (let i = 0; i < count; i++)
      c.createDocument(c.getSelfLink(), { id: `i${i}`, tenant: 'x' }, (err) => { if (err) throw err; });
    const end = Date.now() + ms;
    while (Date.now() < end);
    getContext().getResponse().setBody(count);
  });
  const running = slow('x', [40, 1500]).catch((error) => error);
  const { resources } = await client.offers.readAll().fetchAll();
  const offer = resources.find((found) => found.resource === resource._self);
  offer.content.offerThroughput = 35000;
  await client.offer(offer.id).replace(offer);
  const answer = await running;
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.ok(ranges.length > 1, 'it was not split');
  if (answer.statusCode === 200) {
    assert.equal(answer.resource, 40);
    assert.equal(await countOf(container, 'x'), 40);
  } else {
    assert.equal(answer.code, 449);
    assert.equal(await countOf(container, 'x'), 0);
  }
});

test('the same run on the same data is charged the same', async (t) => {
  const { container } = await shop(t);
  await Promise.all(Array.from({ length: 20 }, (_, i) => container.items.create({ id: `i${i}`, tenant: 'x', n: i })));
  const read = await procedure(container, 'read', function () {
    const c = getContext().getCollection();
    c.queryDocuments(c.getSelfLink(), 'SELECT * FROM c WHERE c.n > 3', (err, found) => {
      if (err) throw err;
      for (const doc of found) c.readDocument(doc._self);
      getContext().getResponse().setBody(found.length);
    });
  });
  const charges = [];
  for (let i = 0; i < 3; i++) charges.push((await read('x')).requestCharge);
  assert.equal(new Set(charges).size, 1, `${charges}`);
  assert.ok(charges[0] > 16, `${charges}`);
});

test('a procedure is refused for lack of throughput before it runs', async (t) => {
  const { container, send } = await shop(t, { throughput: 400 }, { args: ['--set', 'throughput.burst_seconds=0'] });
  await procedure(container, 'spend', function () {
    const c = getContext().getCollection();
    for (let i = 0; i < 200; i++) c.upsertDocument(c.getSelfLink(), { id: `i${i}`, tenant: 'x' });
  });
  const path = '/dbs/shop/colls/orders/sprocs/spend';
  const first = await send('POST', path, { key: ['x'], body: [] });
  assert.equal(first.status, 200, first.text);
  assert.ok(Number(first.headers['x-ms-request-charge']) > 400);
  const second = await send('POST', path, { key: ['x'], body: [] });
  assert.equal(second.status, 429);
  assert.ok(Number(second.headers['x-ms-retry-after-ms']) > 0);
});

test('fluent queries answer by themselves', async (t) => {
  const { container } = await shop(t);
  for (const [id, n] of [['a', 3], ['b', 1], ['c', 2]]) await container.items.create({ id, tenant: 'x', n, tags: [id, 'all'] });
  const chain = await procedure(container, 'chain', function () {
    const result = __.chain().filter((doc) => doc.n > 1).sortBy((doc) => doc.n).map((doc) => doc.id).value();
    if (!result.isAccepted) throw new Error('not accepted');
  });
  assert.deepEqual((await chain('x')).resource, ['c', 'a']);
});

test('items of other keys are not there, whatever is asked', async (t) => {
  const { container } = await shop(t);
  const { resource: away } = await container.items.create({ id: 'away', tenant: 'y' });
  await container.items.create({ id: 'here', tenant: 'x' });
  const peek = await procedure(container, 'peek', function (link) {
    const c = getContext().getCollection();
    c.queryDocuments(c.getSelfLink(), "SELECT VALUE c.id FROM c WHERE c.tenant = 'y' OR true", (err, found) => {
      if (err) throw err;
      c.readDocument(link, (err) => getContext().getResponse().setBody([found, err && err.number]));
    });
  });
  assert.deepEqual((await peek('x', [away._self])).resource, [['here'], 404]);
});

test('the example of the manual runs and says what it says it does', async (t) => {
  const { server } = await shop(t);
  const manual = readFileSync(join(root, 'docs/scripts.md'), 'utf8');
  const example = /```js\n([\s\S]*?)```/.exec(manual)[1];
  const child = spawn(process.execPath, ['--input-type=module', '-', server.url], {
    cwd: import.meta.dirname, stdio: ['pipe', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (bytes) => (out += bytes));
  child.stdin.end(example);
  await once(child, 'close');
  const said = [...example.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map((match) => match[1]);
  assert.equal(said.length, 3);
  assert.deepEqual(out.trim().split('\n'), said);
});

test('a procedure works on one value of a synthetic key, which the server makes', async (t) => {
  const synthetic = { kind: 'concatenation', target: '/pk', sources: ['/device', '/day'], separator: '-' };
  const { container } = await shop(t, { partitionKey: '/pk', orrery: { synthetic } });
  const make = await procedure(container, 'make', function (device, day) {
    const c = getContext().getCollection();
    c.createDocument(c.getSelfLink(), { id: 'a', device, day }, (err) => { if (err) throw err; });
  });
  await make('d1-mon', ['d1', 'mon']);
  assert.equal((await container.item('a', 'd1-mon').read()).resource.pk, 'd1-mon');
  const other = await failure(make('d1-mon', ['d1', 'tue']));
  assert.equal(other.code, 400);
  assert.match(other.message, /partition key/);
});
