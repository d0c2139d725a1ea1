// Several operations on items of one database as one transaction: POST /_orrery/transactions.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

async function bank(t, args = []) {
  const at = await shop(t, {}, { args });
  const { container: stock } = await at.database.containers.create({ id: 'stock', partitionKey: '/sku' });
  at.stock = stock;
  at.run = (operations, database = 'shop') => at.send('POST', '/_orrery/transactions', { body: { database, operations } });
  at.runs = async (operations) => { // as clients do: later, when the throughput is used up
    for (;;) {
      const answer = await at.run(operations);
      if (answer.status !== 429) return answer;
      await new Promise((resolve) => setTimeout(resolve, Number(answer.headers['x-ms-retry-after-ms'])));
    }
  };
  return at;
}

test('operations over containers and keys are done together, with what they were promised', async (t) => {
  const at = await bank(t);
  await at.stock.items.create({ id: 's', sku: 'a', left: 5 });
  const { resource: before } = await at.stock.item('s', 'a').read();
  const answer = await at.run([
    { do: 'read', container: 'stock', partitionKey: ['a'], id: 's' },
    { do: 'create', container: 'orders', item: { id: 'o1', tenant: 't1', sku: 'a' } },
    { do: 'upsert', container: 'orders', item: { id: 'o2', tenant: 't2', sku: 'a' } },
    { do: 'replace', container: 'stock', item: { id: 's', sku: 'a', left: 4 }, ifMatch: JSON.parse(before._etag) },
    { do: 'absent', container: 'stock', partitionKey: ['b'], id: 's' },
  ]);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json.results.map((result) => result.status), [200, 201, 201, 200, 200]);
  assert.deepEqual(answer.json.results[0].item, { id: 's', sku: 'a', left: 5 });
  assert.ok(answer.json.charge > 15);
  const { resource: order } = await at.container.item('o1', 't1').read();
  assert.equal(order._rid, answer.json.results[1].rid);
  assert.equal(JSON.parse(order._etag), answer.json.results[1].etag);
  assert.equal((await at.stock.item('s', 'a').read()).resource.left, 4);
  const gone = await at.run([
    { do: 'check', container: 'orders', partitionKey: ['t1'], id: 'o1', ifMatch: answer.json.results[1].etag },
    { do: 'delete', container: 'orders', partitionKey: ['t2'], id: 'o2' },
    { do: 'delete', container: 'stock', partitionKey: ['a'], id: 's' },
  ]);
  assert.deepEqual(gone.json.results, [{ status: 200 }, { status: 204 }, { status: 204 }]);
  assert.equal((await at.stock.item('s', 'a').read()).statusCode, 404);
});

test('one that cannot be done leaves nothing done', async (t) => {
  const at = await bank(t);
  await at.stock.items.create({ id: 's', sku: 'a', left: 5 });
  const put = { do: 'create', container: 'orders', item: { id: 'x', tenant: 't1' } };
  for (const [operation, status, why] of [
    [{ do: 'create', container: 'stock', item: { id: 's', sku: 'a' } }, 409, /operation 1/],
    [{ do: 'replace', container: 'stock', item: { id: 'none', sku: 'a' } }, 404, /operation 1/],
    [{ do: 'replace', container: 'stock', item: { id: 's', sku: 'a' }, ifMatch: 'other' }, 412, /etag|pre-condition/],
    [{ do: 'check', container: 'stock', partitionKey: ['a'], id: 's', ifMatch: 'other' }, 412, /etag/],
    [{ do: 'check', container: 'stock', partitionKey: ['z'], id: 's' }, 404, /not there/],
    [{ do: 'absent', container: 'stock', partitionKey: ['a'], id: 's' }, 409, /is there/],
    [{ do: 'create', container: 'nowhere', item: { id: 's' } }, 404, /nowhere/],
    [{ do: 'create', container: 'stock', item: { id: '' } }, 400, /./],
    [{ do: 'create', container: 'stock', item: { id: 's/s', sku: 'q' } }, 400, /./],
    [{ do: 'create', container: 'stock', item: { id: 'k', sku: [1] } }, 400, /./],
    [{ do: 'explode', container: 'stock', item: {} }, 400, /an operation is/],
    [{ do: 'delete', container: 'stock', id: 's' }, 400, /an operation is/],
    [{ do: 'delete', container: 'stock', partitionKey: ['a', 'b'], id: 's' }, 400, /./],
    [{ do: 'create', container: 'stock', item: { id: 'q', sku: 'a' }, ifMatch: 'x' }, 400, /no etag/],
    [{ do: 'create', container: 'stock', item: { id: 'q', sku: 'a' }, more: 1 }, 400, /an operation is/],
    ['delete', 400, /an operation is/],
  ]) {
    const answer = await at.run([put, operation]);
    assert.equal(answer.status, status, `${JSON.stringify(operation)} ${answer.text}`);
    assert.match(answer.json.message, why);
  }
  assert.equal((await at.run([])).status, 400);
  assert.equal((await at.run(Array.from({ length: 101 }, () => put))).status, 413);
  assert.equal((await at.run([put], 'none')).status, 404);
  assert.equal((await at.send('POST', '/_orrery/transactions', { body: { operations: [put] } })).status, 400);
  assert.equal((await at.container.item('x', 't1').read()).statusCode, 404);
  assert.equal((await at.stock.item('s', 'a').read()).resource.left, 5);
});

test('one that fails is charged for what it looked at', async (t) => {
  const at = await bank(t);
  await at.stock.items.create({ id: 's', sku: 'a', left: 5 });
  const look = { do: 'check', container: 'stock', partitionKey: ['a'], id: 's' };
  const charged = (answer) => Number(answer.headers['x-ms-request-charge']);
  const missing = { do: 'check', container: 'stock', partitionKey: ['a'], id: 'none' };
  const one = await at.run([missing]), five = await at.run([look, look, look, look, missing]);
  assert.deepEqual([one.status, charged(one)], [404, 1]);
  assert.deepEqual([five.status, charged(five)], [404, 5]);
  const exists = await at.run([look, { do: 'create', container: 'stock', item: { id: 's', sku: 'a' } }]);
  assert.deepEqual([exists.status, charged(exists)], [409, 2]);
  assert.equal(charged(await at.run([look, look])), 2);
  assert.equal(charged(await at.run([{ do: 'explode' }])), 0);
});

test('whoever only fails is held back by the throughput too', async (t) => {
  const at = await bank(t, ['--set', 'throughput.burst_seconds=0']);
  const { container: small } = await at.database.containers.create({ id: 'small', partitionKey: '/sku', throughput: 400 });
  await small.items.create({ id: 's', sku: 'a', filler: 'x'.repeat(100_000) });
  const look = { do: 'check', container: 'small', partitionKey: ['a'], id: 's' };
  const many = [...Array.from({ length: 99 }, () => look), { ...look, id: 'none' }]; // about 1,000 RU
  const asked = () => Promise.all(Array.from({ length: 40 }, () => at.run(many)));
  const answers = [...(await asked()), ...(await asked())]; // the first owe a hundred seconds
  const refused = answers.filter((answer) => answer.status === 429);
  for (const answer of answers) assert.ok([404, 429].includes(answer.status), answer.text);
  assert.ok(refused.length > 0, 'none was refused');
  assert.ok(refused.every(({ headers }) => Number(headers['x-ms-retry-after-ms']) > 0 && Number(headers['x-ms-request-charge']) === 0));
});

test('concurrent transfers lose nothing and show no half', async (t) => {
  const at = await bank(t);
  const accounts = 4;
  for (let i = 0; i < accounts; i++) await at.stock.items.create({ id: 'sum', sku: `${i}`, left: 100 });
  const move = async (from, to) => {
    for (;;) {
      const seen = await at.runs([from, to].map((i) => ({ do: 'read', container: 'stock', partitionKey: [`${i}`], id: 'sum' })));
      const [a, b] = seen.json.results;
      const done = await at.runs([
        { do: 'replace', container: 'stock', item: { ...a.item, left: a.item.left - 1 }, ifMatch: a.etag },
        { do: 'replace', container: 'stock', item: { ...b.item, left: b.item.left + 1 }, ifMatch: b.etag },
      ]);
      if (done.status === 200) return;
      assert.equal(done.status, 412, done.text);
    }
  };
  const watch = { stop: false };
  const watching = (async () => {
    for (; !watch.stop; ) {
      const seen = await at.runs(Array.from({ length: accounts }, (_, i) => ({ do: 'read', container: 'stock', partitionKey: [`${i}`], id: 'sum' })));
      assert.equal(seen.status, 200, seen.text);
      assert.equal(seen.json.results.reduce((sum, { item }) => sum + item.left, 0), 100 * accounts);
    }
  })();
  await Promise.all(Array.from({ length: 6 }, async (_, w) => {
    for (let i = 0; i < 15; i++) await move((w + i) % accounts, (w + i + 1 + (i % 3)) % accounts);
  }));
  watch.stop = true;
  await watching;
});

test('views are refused by name', async (t) => {
  const at = await bank(t);
  await at.database.containers.create({ id: 'v', partitionKey: '/sku', materializedViewDefinition: { sourceCollectionId: 'stock', definition: 'SELECT * FROM c' } });
  assert.equal((await at.run([{ do: 'create', container: 'v', item: { id: '1', sku: 'a' } }])).status, 403);
});
