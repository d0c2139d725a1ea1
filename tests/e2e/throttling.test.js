// The client's own retries when the throughput is used up.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

test('many writes on 400 RU/s all arrive, with waits the client takes by itself', async (t) => {
  const { container } = await shop(
    t,
    {},
    {
      args: ['--set', 'throughput.burst_seconds=0'],
      client: { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } },
    },
  );
  const answers = await Promise.all(
    Array.from({ length: 150 }, (_, i) => container.items.create({ id: `i${i}`, tenant: 'x', v: i })),
  );
  assert.ok(answers.every((a) => a.statusCode === 201));
  const retries = answers.map((a) => Number(a.headers['x-ms-throttle-retry-count'] ?? 0));
  assert.ok(retries.some((n) => n > 0), 'the budget was never used up');
  for (const i of [0, 75, 149]) assert.equal((await container.item(`i${i}`, 'x').read()).resource.v, i);
});

test('a client that does not retry sees 429 and when to come again', async (t) => {
  const { docs, send } = await shop(t, {}, { args: ['--set', 'throughput.burst_seconds=0'] });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      send('POST', docs, { key: ['x'], body: { id: `i${i}`, tenant: 'x', v: 'v'.repeat(3000) } }),
    ),
  );
  const throttled = answers.filter((a) => a.status === 429);
  assert.ok(throttled.length > 0);
  for (const { headers, json: body } of throttled) {
    assert.ok(Number(headers['x-ms-retry-after-ms']) >= 1);
    assert.equal(headers['x-ms-substatus'], '3200');
    assert.equal(headers['x-ms-request-charge'], '0.00');
    assert.equal(body.code, 'TooManyRequests');
    assert.match(body.message, /Request rate is large/);
  }
});
