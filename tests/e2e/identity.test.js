// Containers whose identity is `_id`, of any type, as clients of the NoSQL API see them: `id` is its
// text, and types that JSON lacks are canonical extended JSON that becomes the type again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shop } from './items.js';

const mongo = { orrery: { identity: '_id' } };

// Every BSON type, as canonical extended JSON.
const types = {
  double: 1.5,
  wholeDouble: { $numberDouble: '5.0' },
  notANumber: { $numberDouble: 'NaN' },
  string: 'text',
  object: { b: 1, a: { deep: { $numberLong: '7' } } },
  array: [1, { $numberLong: '2' }, { $oid: '507f1f77bcf86cd799439012' }],
  binary: { $binary: { base64: 'AQIDBA==', subType: '80' } },
  undefined: { $undefined: true },
  objectId: { $oid: '507f1f77bcf86cd799439011' },
  yes: true,
  date: { $date: { $numberLong: '1600789292000' } },
  dateBefore: { $date: { $numberLong: '-5' } },
  nothing: null,
  regex: { $regularExpression: { pattern: '^a/b', options: 'im' } },
  pointer: { $dbPointer: { $ref: 'db.c', $id: { $oid: '507f1f77bcf86cd799439011' } } },
  code: { $code: 'f()' },
  symbol: { $symbol: 's' },
  scoped: { $code: 'g()', $scope: { n: { $numberLong: '1' } } },
  int32: 42,
  timestamp: { $timestamp: { t: 4294967295, i: 7 } },
  int64: { $numberLong: '42' },
  plainInt64: 5000000000,
  largeInt64: { $numberLong: '9007199254740993' },
  decimal: { $numberDecimal: '1.10' },
  decimalSmall: { $numberDecimal: '-1.234567890123456789012345678901234E-6143' },
  minKey: { $minKey: 1 },
  maxKey: { $maxKey: 1 },
};

// [_id as it is written, id as it is shown]
const identities = [
  [{ $oid: '507f1f77bcf86cd799439011' }, '507f1f77bcf86cd799439011'],
  [7, '7'],
  [{ $numberLong: '8' }, '8'],
  [2.5, '2.5'],
  [{ $numberDecimal: '3.25' }, '{"$numberDecimal":"3.25"}'],
  ['plain', 'plain'],
  ['9', '"9"'],
  ['507f1f77bcf86cd799439019', '"507f1f77bcf86cd799439019"'],
  [true, 'true'],
  [null, 'null'],
  [{ $date: { $numberLong: '0' } }, '{"$date":{"$numberLong":"0"}}'],
  [{ b: 1, a: 2 }, '{"b":1,"a":2}'],
  [{ a: 2, b: 1 }, '{"a":2,"b":1}'],
  [{ $minKey: 1 }, '{"$minKey":1}'],
];

// What clients see besides the system properties.
const bare = ({ _rid, _self, _etag, _attachments, _ts, ...item }) => item;

test('every type survives reading, replacing and querying', async (t) => {
  const { container } = await shop(t, mongo);
  const written = { _id: { $oid: '507f1f77bcf86cd799439011' }, tenant: 'a', ...types };
  const shown = { id: '507f1f77bcf86cd799439011', ...written };

  const { resource: created } = await container.items.create(written);
  assert.deepEqual(bare(created), shown);
  const item = container.item(shown.id, 'a');
  assert.deepEqual(bare((await item.read()).resource), shown);

  const { resource: replaced } = await item.replace({ ...(await item.read()).resource, more: 1 });
  assert.deepEqual(bare(replaced), { ...shown, more: 1 });
  const { resources } = await container.items.query('SELECT * FROM c').fetchAll();
  assert.deepEqual(resources.map(bare), [{ ...shown, more: 1 }]);
  const { resource: again } = await container.items.upsert(resources[0]);
  assert.deepEqual(bare(again), { ...shown, more: 1 });
  const ordered = await container.items.query('SELECT * FROM c ORDER BY c.int32').fetchAll();
  assert.deepEqual(ordered.resources.map(bare), [{ ...shown, more: 1 }]);
  assert.deepEqual((await container.items.readAll().fetchAll()).resources.map(bare), [
    { ...shown, more: 1 },
  ]);
});

test('an identity of any type is found, patched and deleted by its text', async (t) => {
  const { container } = await shop(t, mongo);

  for (const [_id, id] of identities) {
    const { resource } = await container.items.create({ _id, tenant: 'a', n: 1 });
    assert.deepEqual(bare(resource), { id, _id, tenant: 'a', n: 1 });
  }
  for (const [_id, id] of identities) {
    const item = container.item(id, 'a');
    assert.deepEqual(bare((await item.read()).resource), { id, _id, tenant: 'a', n: 1 });
    for (const text of ['SELECT * FROM c WHERE c.id = @id', 'SELECT VALUE c FROM c WHERE @id = c.id']) {
      const { resources } = await container.items
        .query({ query: text, parameters: [{ name: '@id', value: id }] }, { partitionKey: 'a' })
        .fetchAll();
      assert.deepEqual(resources.map((one) => one.id), [id]);
    }
    const { resource } = await item.patch([
      { op: 'add', path: '/when', value: { $date: { $numberLong: '5' } } },
      { op: 'incr', path: '/n', value: 1 },
    ]);
    assert.deepEqual(bare(resource), {
      id,
      _id,
      tenant: 'a',
      n: 2,
      when: { $date: { $numberLong: '5' } },
    });
  }
  const ids = await container.items.query('SELECT VALUE c.id FROM c').fetchAll();
  assert.deepEqual(ids.resources.sort(), identities.map(([, id]) => id).sort());
  for (const [, id] of identities) {
    assert.equal((await container.item(id, 'a').delete()).statusCode, 204);
    assert.equal((await container.item(id, 'a').read()).statusCode, 404);
  }
});

test('equal numbers of different types are one identity, objects with another order are two', async (t) => {
  const { container } = await shop(t, mongo);
  const create = (_id) => container.items.create({ _id, tenant: 'a' });

  await create(1);
  for (const same of [1, { $numberDouble: '1.0' }, { $numberLong: '1' }, { $numberDecimal: '1.00' }])
    await assert.rejects(create(same), { code: 409 });
  await create({ $numberDecimal: '1.5' });
  await assert.rejects(create(1.5), { code: 409 });
  for (const other of ['1', true, { x: 1, y: 2 }, { y: 2, x: 1 }, { $numberDecimal: '1.000000001' }])
    await create(other);
  await assert.rejects(create({ y: { $numberLong: '2' }, x: 1 }), { code: 409 });
  const { resource } = await container.item('1', 'a').read();
  assert.equal(resource._id, 1);
  for (const none of [[1], { $undefined: true }, { $regularExpression: { pattern: 'a', options: '' } }])
    await assert.rejects(create(none), { code: 400 });
});

test('an id alone becomes the identity that it is the text of', async (t) => {
  const { container, docs, send } = await shop(t, mongo);

  for (const [_id, id] of identities) {
    const { resource } = await container.items.create({ id, tenant: 'a' });
    const same = _id?.$numberLong ? Number(_id.$numberLong) : _id; // a number has the least type
    assert.deepEqual(bare(resource), { id, _id: same, tenant: 'a' });
  }
  // Nothing of it is stored beside the identity.
  const { resources } = await container.items
    .query({ query: 'SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c["_id"])' })
    .fetchAll();
  assert.deepEqual(resources, [identities.length]);
  // A replace names it by the path; another identity in the body is a new one.
  const { resource: moved } = await container
    .item('plain', 'a')
    .replace({ id: 'renamed', tenant: 'a', n: 1 });
  assert.equal(moved._id, 'renamed');
  assert.equal((await container.item('plain', 'a').read()).statusCode, 404);
  // Without either there is nothing to be named by.
  const answer = await send('POST', docs, { key: ['a'], body: JSON.stringify({ tenant: 'a' }) });
  assert.equal(answer.status, 400);
});

test('values of types are found by queries, with parameters in extended JSON', async (t) => {
  const { container } = await shop(t, mongo);
  const found = async (where, value) =>
    (
      await container.items
        .query({ query: `SELECT VALUE c.id FROM c WHERE ${where}`, parameters: [{ name: '@v', value }] })
        .fetchAll()
    ).resources;

  for (let i = 0; i < 20; i++)
    await container.items.create({
      _id: { $oid: `507f1f77bcf86cd7994390${10 + i}` },
      tenant: `t${i % 3}`,
      at: { $date: { $numberLong: String(1000 * i) } },
      big: { $numberLong: String(i) },
    });
  assert.deepEqual(await found('c._id = @v', { $oid: '507f1f77bcf86cd799439013' }), [
    '507f1f77bcf86cd799439013',
  ]);
  assert.deepEqual((await found('c.at > @v', { $date: { $numberLong: '17000' } })).sort(), [
    '507f1f77bcf86cd799439028',
    '507f1f77bcf86cd799439029',
  ]);
  assert.deepEqual(await found('c.big = @v', 4), ['507f1f77bcf86cd799439014']);
  assert.deepEqual(await found('c.id = @v', '507f1f77bcf86cd799439015'), [
    '507f1f77bcf86cd799439015',
  ]);
  assert.deepEqual((await found('c.id IN (@v, "507f1f77bcf86cd799439016")', '507f1f77bcf86cd799439010')).sort(), [
    '507f1f77bcf86cd799439010',
    '507f1f77bcf86cd799439016',
  ]);
});

test('batches, bulk and the change feed speak of items in the same way', async (t) => {
  const { container } = await shop(t, mongo);
  const oid = { $oid: '507f1f77bcf86cd799439011' };
  const id = oid.$oid;

  const batch = await container.items.batch(
    [
      { operationType: 'Create', resourceBody: { _id: oid, tenant: 'a', n: { $numberLong: '1' } } },
      { operationType: 'Read', id },
      { operationType: 'Patch', id, resourceBody: { operations: [{ op: 'set', path: '/m', value: oid }] } },
      { operationType: 'Replace', id, resourceBody: { id, tenant: 'a', n: { $numberLong: '2' } } },
    ],
    'a',
  );
  assert.deepEqual(batch.result.map((one) => one.statusCode), [201, 200, 200, 200]);
  assert.deepEqual(bare(batch.result[1].resourceBody), { id, _id: oid, tenant: 'a', n: { $numberLong: '1' } });
  const [bulk] = await container.items.executeBulkOperations([
    { operationType: 'Upsert', partitionKey: 'a', resourceBody: { id, _id: oid, tenant: 'a', n: 3 } },
  ]);
  assert.equal(bulk.response?.statusCode, 200, JSON.stringify(bulk.error ?? bulk));
  const changes = [];
  const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom: (await import('@azure/cosmos')).ChangeFeedStartFrom.Beginning() });
  for await (const page of iterator.getAsyncIterator()) {
    if (page.statusCode === 304) break;
    changes.push(...page.result);
  }
  assert.deepEqual(changes.map(({ _lsn, ...item }) => bare(item)), [{ id, _id: oid, tenant: 'a', n: 3 }]);
});

test('a container with the usual identity takes extended JSON for what it is: objects', async (t) => {
  const { container } = await shop(t);
  const { resource } = await container.items.create({
    id: '1',
    tenant: 'a',
    _id: { $oid: 'x' },
    n: { $numberLong: 'none' },
    wide: 5000000000,
  });
  assert.deepEqual(bare(resource), {
    id: '1',
    tenant: 'a',
    _id: { $oid: 'x' },
    n: { $numberLong: 'none' },
    wide: 5000000000,
  });
});
