// Plans that are kept by text, and queries that loops answer: nothing of either may be seen in rows, and what a plan
// was made from may change between two requests.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

const headers = {
  'x-ms-documentdb-isquery': 'true',
  'content-type': 'application/query+json',
  'x-ms-documentdb-query-enablecrosspartition': 'true',
};

async function filled(t, settings = []) {
  const at = await shop(t, {}, { args: ['--set', 'migration.pause_ms=20ms', ...settings], create: { offerThroughput: 100_000 } });
  for (let i = 0; i < 12; i++) await at.container.items.create({ id: `i${i}`, tenant: `t${i % 4}`, n: i, word: `w${i % 3}` });
  const ask = async (query, parameters = {}, more = {}) => {
    const list = Object.entries(parameters).map(([name, value]) => ({ name, value }));
    const answer = await at.send('POST', at.docs, { headers: { ...headers, ...more.headers }, body: { query, parameters: list }, key: more.key });
    assert.equal(answer.status, 200, answer.text);
    return answer.json.Documents;
  };
  const figure = async (name) => {
    const text = await (await at.server.get('/metrics')).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)[1]);
  };
  return { ...at, ask, figure };
}

// again and again: once compiled, then kept, then by a loop
async function same(ask, expected) {
  for (let i = 0; i < 4; i++) assert.deepEqual(await ask(), expected);
}

test('a text that comes again is not compiled again, whatever the values of its parameters', async (t) => {
  const { ask, figure } = await filled(t);
  await ask('SELECT VALUE c.id FROM c WHERE c.n = @n', { '@n': 1 });
  const before = await figure('orrery_query_plans_missed_total');
  for (let n = 0; n < 12; n++) assert.deepEqual(await ask('SELECT VALUE c.id FROM c WHERE c.n = @n', { '@n': n }), [`i${n}`]);
  const found = await figure('orrery_query_plans_found_total');
  assert.equal(await figure('orrery_query_plans_missed_total'), before);
  assert.ok(found >= 12, `${found}`);
  // another type is another plan
  assert.deepEqual(await ask('SELECT VALUE c.id FROM c WHERE c.n = @n', { '@n': 'text' }), []);
  assert.equal(await figure('orrery_query_plans_missed_total'), before + 2, 'on the loop, and on the worker');
  assert.deepEqual(await ask('SELECT VALUE c.id FROM c WHERE c.n = @n', { '@n': 3 }), ['i3']);
});

test('a query that reads little is answered by the loop, and one that reads more by a worker', async (t) => {
  const { ask, figure, container } = await filled(t);
  const one = () => ask('SELECT VALUE c.n FROM c WHERE c.id = @id', { '@id': 'i5' }, { key: ['t1'] });
  await same(one, [5]);
  const before = await figure('orrery_work_submitted_total');
  await same(one, [5]);
  assert.equal(await figure('orrery_work_submitted_total'), before);
  for (let i = 0; i < 300; i++) await container.items.create({ id: `m${i}`, tenant: 'many', n: -1, text: 'x'.repeat(1000) });
  const many = await ask('SELECT * FROM c WHERE c.n = @n', { '@n': -1 }, { headers: { 'x-ms-max-item-count': '1000' } });
  assert.equal(many.length, 300);
  for (let i = 0; i < 3; i++)
    assert.equal((await ask('SELECT * FROM c WHERE c.n = @n', { '@n': -1 }, { headers: { 'x-ms-max-item-count': '1000' } })).length, 300);
});

test('without room for plans everything is as it was', async (t) => {
  const { ask, figure } = await filled(t, ['--set', 'query.plans_bytes_max=0']);
  await same(() => ask('SELECT VALUE c.n FROM c WHERE c.id = @id', { '@id': 'i5' }), [5]);
  assert.equal(await figure('orrery_query_plans_found_total'), 0);
});

test('computed properties that are changed change what a text means', async (t) => {
  const { ask, container } = await filled(t);
  const text = () => ask('SELECT VALUE c.shown FROM c WHERE c.n = @n', { '@n': 4 });
  await same(text, []);
  for (const [query, expected] of [['SELECT VALUE c.n + 1 FROM c', [5]], ['SELECT VALUE UPPER(c.word) FROM c', ['W1']]]) {
    const { resource } = await container.read();
    await container.replace({ ...resource, computedProperties: [{ name: 'shown', query }] });
    await same(text, expected);
  }
  const { resource } = await container.read();
  await container.replace({ ...resource, computedProperties: [] });
  await same(text, []);
});

test('an index that is dropped or made changes no rows of a plan that is kept', async (t) => {
  const { ask, container } = await filled(t);
  const text = () => ask('SELECT VALUE c.id FROM c WHERE c.word = @w ORDER BY c.n', { '@w': 'w1' });
  const expected = ['i1', 'i4', 'i7', 'i10'];
  await same(text, expected);
  for (const policy of [
    { indexingMode: 'consistent', includedPaths: [{ path: '/n/?' }], excludedPaths: [{ path: '/*' }] },
    { indexingMode: 'consistent', includedPaths: [{ path: '/*' }], excludedPaths: [] },
  ]) {
    const { resource } = await container.read();
    await container.replace({ ...resource, indexingPolicy: policy });
    await same(text, expected);
  }
});

test('a container that gets another partition key is found by plans of before', async (t) => {
  const { ask, send } = await filled(t);
  const path = '/_orrery/containers/shop/orders/rekey';
  const text = () => ask('SELECT VALUE c.n FROM c WHERE c.word = @w AND c.tenant = @t', { '@w': 'w1', '@t': 't1' });
  await same(text, [1]);
  assert.equal((await send('POST', path, { body: { partitionKey: { paths: ['/word'], kind: 'Hash', version: 2 } } })).status, 202);
  for (let underWay = true; underWay; underWay = (await send('GET', path)).json.underWay) assert.deepEqual(await text(), [1]);
  await same(text, [1]);
  assert.equal((await send('POST', `${path}/end-grace`)).status, 204);
  await same(text, [1]);
  await same(() => ask('SELECT VALUE c.n FROM c WHERE c.tenant = @t', { '@t': 't1' }, { key: ['w1'] }), [1]);
});

test('a container made anew under its name is another', async (t) => {
  const { ask, container, database } = await filled(t);
  const text = () => ask('SELECT VALUE c.n FROM c WHERE c.id = @id', { '@id': 'i5' });
  await same(text, [5]);
  await container.delete();
  await database.containers.create({ id: 'orders', partitionKey: '/other' });
  await same(text, []);
});

test('writes are seen by the next query, and a query by a loop pays as one by a worker', async (t) => {
  const { ask, send, docs, container } = await filled(t);
  const body = { query: 'SELECT VALUE c.n FROM c WHERE c.id = @id', parameters: [{ name: '@id', value: 'i5' }] };
  const charges = [];
  for (let i = 0; i < 6; i++) {
    await container.item('i5', 't1').replace({ id: 'i5', tenant: 't1', n: 100 + i });
    const answer = await send('POST', docs, { headers, body });
    assert.deepEqual(answer.json.Documents, [100 + i]);
    charges.push(answer.headers['x-ms-request-charge']);
  }
  assert.equal(new Set(charges).size, 1, `${charges}`);
  assert.deepEqual(await ask('SELECT VALUE COUNT(1) FROM c'), [12]);
});
