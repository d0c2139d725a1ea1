// Tables and entities through @azure/data-tables.
import assert from 'node:assert/strict';
import test from 'node:test';
import { all, refusal, tables } from './tables.js';

test('an entity comes back as it was inserted', async (t) => {
  const { table } = await tables(t);
  const inserted = await table.createEntity({ partitionKey: 'a', rowKey: '1', name: 'Ann', age: 5 });
  assert.match(inserted.etag, /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d\.\d{7}Z'"$/);
  const got = await table.getEntity('a', '1');
  assert.equal(got.name, 'Ann');
  assert.equal(got.age, 5);
  assert.equal(got.etag, inserted.etag);
});
