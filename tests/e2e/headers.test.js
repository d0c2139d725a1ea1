// Request headers that no client library of ours sends by itself.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Server } from './server.js';
import { signed } from './rest.js';

const docs = '/dbs/d/colls/c/docs';

async function started(t, { args = [], headers = {} } = {}) {
  const server = await Server.start(t, ['--dev', ...args]);
  await signed(server, 'POST', '/dbs', { body: { id: 'd' } });
  const made = await signed(server, 'POST', '/dbs/d/colls', {
    headers, body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } },
  });
  assert.equal(made.status, 201, made.text);
  return { server, container: made.json };
}

test('the correlated activity id comes back', async (t) => {
  const { server } = await started(t);
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  const answer = await signed(server, 'GET', '/dbs/d', { headers: { 'x-ms-cosmos-correlated-activityid': id } });
  assert.equal(answer.headers['x-ms-cosmos-correlated-activityid'], id);
});

test('a request meant for the container before this one is told so', async (t) => {
  const { server, container } = await started(t);
  const create = (rid, id) => signed(server, 'POST', docs,
    { headers: { 'x-ms-cosmos-intended-collection-rid': rid }, body: { id, pk: 'x' } });
  assert.equal((await create(container._rid, 'a')).status, 201);
  const other = await create('AAAAAIAAAAE=', 'b');
  assert.equal(other.status, 400);
  assert.equal(other.headers['x-ms-substatus'], '1024');
});

test('a trigger that is not there is refused, and nothing is written', async (t) => {
  const { server } = await started(t);
  for (const header of ['x-ms-documentdb-pre-trigger-include', 'x-ms-documentdb-post-trigger-include']) {
    const answer = await signed(server, 'POST', docs, { headers: { [header]: 't' }, body: { id: 'a', pk: 'x' } });
    assert.equal(answer.status, 400, answer.text);
  }
  assert.equal((await signed(server, 'GET', docs)).json._count, 0);
});

test('a procedure shows its log where that is asked for, and only there', async (t) => {
  const { server } = await started(t);
  await signed(server, 'POST', '/dbs/d/colls/c/sprocs', { body: { id: 'p', body: 'function () { console.log("a b"); }' } });
  const run = (headers) => signed(server, 'POST', '/dbs/d/colls/c/sprocs/p', {
    headers: { 'x-ms-documentdb-partitionkey': '["x"]', ...headers }, body: [],
  });
  const told = await run({ 'x-ms-documentdb-script-enable-logging': 'true' });
  assert.equal(told.status, 200);
  assert.match(told.headers['x-ms-documentdb-script-log-results'], /^a%20b/);
  assert.equal((await run({})).headers['x-ms-documentdb-script-log-results'], undefined);
});

test('RU per minute helps out when the second is used up, unless the request declines', async (t) => {
  const { server } = await started(t, {
    args: ['--set', 'throughput.burst_seconds=0'],
    headers: { 'x-ms-offer-throughput': '400', 'x-ms-offer-is-ru-per-minute-throughput-enabled': 'true' },
  });
  const offer = (await signed(server, 'GET', '/offers')).json.Offers[0];
  assert.equal(offer.content.offerIsRUPerMinuteThroughputEnabled, true);
  const pad = 'p'.repeat(50_000);
  const round = (name, headers) => Promise.all(Array.from({ length: 40 }, (_, n) =>
    signed(server, 'POST', docs, { headers, body: { id: `${name}${n}`, pk: `${n}`, pad } })));
  const helped = await round('a', {});
  assert.ok(helped.some((answer) => answer.headers['x-ms-documentdb-is-ru-per-minute-used'] === 'true'));
  const declined = await round('b', { 'x-ms-documentdb-disable-ru-per-minute-usage': 'true' });
  assert.ok(declined.some((answer) => answer.status === 429));
  assert.ok(declined.every((answer) => !answer.headers['x-ms-documentdb-is-ru-per-minute-used']));
});
