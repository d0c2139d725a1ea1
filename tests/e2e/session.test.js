// Session tokens as the client keeps them.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

test('a session reads its own writes, with tokens of every range it touched', async (t) => {
  const partitionKey = { paths: ['/tenant'], kind: 'Hash', version: 2 };
  const { container } = await shop(t, { partitionKey }, { create: { offerThroughput: 20000 }, client: { consistencyLevel: 'Session' } });
  const tokens = new Set();
  for (let i = 0; i < 20; i++) {
    const { headers } = await container.items.create({ id: 'a', tenant: `t${i}` });
    tokens.add(headers['x-ms-session-token'].split(':')[0]);
    const read = await container.item('a', `t${i}`).read();
    assert.equal(read.statusCode, 200);
    await container.item('a', `t${i}`).patch([{ op: 'set', path: '/n', value: i }]);
    assert.equal((await container.item('a', `t${i}`).read()).resource.n, i);
  }
  assert.equal(tokens.size, 2);
});

test('the lsn of a range grows by one with each transaction', async (t) => {
  const { container } = await shop(t, {}, { create: { offerThroughput: 4000 } });
  const lsn = ({ headers }) => Number(headers['x-ms-session-token'].split('#')[1]);
  const first = lsn(await container.items.create({ id: 'a', tenant: 'x' }));
  const batch = await container.items.batch(
    ['b', 'c'].map((id) => ({ operationType: 'Create', resourceBody: { id, tenant: 'x' } })),
    'x',
  );
  assert.equal(lsn(batch), first + 1);
  assert.equal(lsn(await container.item('a', 'x').delete()), first + 2);
  assert.equal(lsn(await container.item('b', 'x').read()), first + 2);
});
