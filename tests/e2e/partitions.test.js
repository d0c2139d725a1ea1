// Physical partitions by an operator's word: the endpoints of administration and `orrery partition`.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery } from './server.js';
import { signed } from './rest.js';
import { Terminal } from './terminal.js';

const at = (server, ...words) => [...words, '--endpoint', server.url, '--dev'];

// A container with items in some logical partitions, on the first of two nodes.
async function orders(t, { args = [], items = 60, filler = 100 } = {}) {
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', 'far=memory:',
    '--set', 'migration.pause_ms=20ms', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant', throughput: 10000 });
  for (let from = 0; from < items; from += 50)
    await container.items.bulk(Array.from({ length: Math.min(50, items - from) }, (_, i) => ({
      operationType: 'Create', resourceBody: { id: `${from + i}`, tenant: `t${(from + i) % 20}`, filler: 'x'.repeat(filler) },
    })));
  const ask = async (method, path, body) => signed(server, method, `/_orrery/${path}`, body === undefined ? {} : { body });
  const of = (rest) => `containers/shop/orders/${rest}`;
  const partitions = async () => (await ask('GET', of('partitions'))).json.partitions;
  const settled = async (id) => {
    for (;;) {
      const all = (await ask('GET', 'migrations')).json;
      if (!all.migrations.some((migration) => migration.id === id)) return all.recent.find((outcome) => outcome.id === id);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return { server, container, ask, of, partitions, settled, items };
}

async function countOf(container) {
  const { resources } = await container.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll();
  return resources[0];
}

test('a partition is split, moved, isolated and merged on request', async (t) => {
  const { container, ask, of, partitions, settled, items } = await orders(t);
  const [first] = await partitions();
  assert.equal(first.minInclusive, '');
  assert.equal(first.maxExclusive, 'FF');
  assert.equal(first.node, 'near');
  assert.equal(first.items, items);
  const split = await ask('POST', of(`partitions/${first.id}/split`), { pieces: 3 });
  assert.equal(split.status, 202, split.text);
  assert.equal(split.json.kind, 'split');
  assert.deepEqual(split.json.sources, [first.id]);
  assert.equal(split.json.targets.length, 3);
  const done = await settled(split.json.id);
  assert.equal(done.outcome, 'done');
  assert.equal(done.items, items);
  assert.ok(done.pauseMs >= 0);
  const three = await partitions();
  assert.deepEqual(three.map((partition) => partition.parents), [[first.id], [first.id], [first.id]]);
  assert.equal(three.reduce((sum, partition) => sum + partition.items, 0), items);
  assert.ok(Math.abs(three.reduce((sum, partition) => sum + partition.share, 0) - 1) < 1e-3);

  const move = await ask('POST', of(`partitions/${three[1].id}/move`), { node: 'far' });
  assert.equal(move.status, 202, move.text);
  await settled(move.json.id);
  assert.deepEqual((await partitions()).map((partition) => partition.node), ['near', 'far', 'near']);

  const isolate = await ask('POST', of('isolate'), { partitionKey: ['t7'] });
  assert.equal(isolate.status, 202, isolate.text);
  await settled(isolate.json.id);
  const after = await partitions();
  assert.ok(after.length >= 4);
  assert.ok(after.some((partition) => partition.items === items / 20));
  const again = await ask('POST', of('isolate'), { partitionKey: ['t7'] });
  assert.equal(again.status, 400);
  assert.match(again.json.message, /for itself/);

  const merge = await ask('POST', of('partitions/merge'), { partitions: after.map((partition) => partition.id) });
  assert.equal(merge.status, 202, merge.text);
  await settled(merge.json.id);
  assert.equal((await partitions()).length, 1);
  assert.equal(await countOf(container), items);
  const { statistics } = (await ask('GET', 'migrations')).json;
  assert.deepEqual([statistics.split, statistics.move, statistics.isolate, statistics.merge], [1, 1, 1, 1]);
});

test('what cannot be done is refused by name and changes nothing', async (t) => {
  const { ask, of, partitions } = await orders(t);
  const before = await partitions();
  const id = before[0].id;
  for (const [path, body, status, message] of [
    ['partitions/999/split', {}, 404, /no partition 999/],
    ['partitions/x/split', {}, 400, /is not the id of a partition/],
    [`partitions/${id}/split`, { pieces: 1 }, 400, /from 2 to 64/],
    [`partitions/${id}/split`, { peices: 2 }, 400, /"peices": it takes "pieces"/],
    [`partitions/${id}/move`, { node: 'nowhere' }, 404, /no node "nowhere"/],
    [`partitions/${id}/move`, { node: 'near' }, 400, /./],
    [`partitions/${id}/move`, {}, 400, /no member "node"/],
    ['partitions/merge', { partitions: [id] }, 400, /two partitions or more/],
    ['partitions/merge', { partitions: 'all' }, 400, /array of ids/],
    ['isolate', { partitionKey: [] }, 400, /needs a value/],
    ['isolate', { partitionKey: ['a', 'b'] }, 400, /./],
    ['isolate', undefined, 400, /no body/],
  ]) {
    const answer = await ask('POST', of(path), body);
    assert.equal(answer.status, status, `${path} ${JSON.stringify(body)}: ${answer.text}`);
    assert.match(answer.json.message, message);
  }
  assert.equal((await ask('GET', of('migration'))).status, 404);
  assert.equal((await ask('DELETE', of('migration'))).status, 404);
  assert.equal((await ask('GET', 'containers/shop/none/partitions')).status, 404);
  assert.deepEqual(await partitions(), before);
});

test('a paused migration waits, is shown and can be cancelled; another is refused meanwhile', async (t) => {
  const { ask, of, partitions, settled } = await orders(t);
  const [{ id }] = await partitions();
  assert.deepEqual((await ask('POST', 'migrations/pause')).json, { paused: true });
  const split = await ask('POST', of(`partitions/${id}/split`));
  assert.equal(split.status, 202, split.text);
  const shown = await ask('GET', of('migration'));
  assert.equal(shown.status, 200);
  assert.equal(shown.json.id, split.json.id);
  assert.equal(shown.json.paused, true);
  assert.equal((await partitions())[0].underWay, 'split');
  const second = await ask('POST', of(`partitions/${id}/split`));
  assert.equal(second.status, 409);
  assert.match(second.json.message, /another migration .* under way: a split/);
  assert.equal((await ask('DELETE', of('migration'))).status, 204);
  assert.equal((await settled(split.json.id)).outcome, 'cancelled');
  assert.deepEqual((await partitions()).map((partition) => partition.id), [id]);
  await ask('POST', 'migrations/resume');
  const third = await ask('POST', of(`partitions/${id}/split`));
  assert.equal((await settled(third.json.id)).outcome, 'done');
});

test('an account sees and splits its own, and moves nothing', async (t) => {
  const { server, ask, partitions } = await orders(t);
  const { keys } = (await ask('POST', 'accounts', { id: 'team' })).json;
  const asTeam = (method, path, body) => signed(server, method, path, { account: 'team', key: keys.primary, body });
  await asTeam('POST', '/dbs', { id: 'shop' });
  await asTeam('POST', '/dbs/shop/colls', { id: 'orders', partitionKey: { paths: ['/k'], kind: 'Hash', version: 2 } });
  const own = (await asTeam('GET', '/_orrery/containers/shop/orders/partitions')).json.partitions;
  assert.notEqual(own[0].id, (await partitions())[0].id);
  assert.equal((await asTeam('POST', `/_orrery/containers/shop/orders/partitions/${own[0].id}/move`, { node: 'far' })).status, 403);
  assert.equal((await asTeam('POST', '/_orrery/migrations/pause')).status, 403);
  assert.equal((await asTeam('GET', '/_orrery/containers/shop/orders/partitions?account=default')).status, 403);
  assert.equal((await asTeam('POST', `/_orrery/containers/shop/orders/partitions/${own[0].id}/split`)).status, 202);
  const theirs = await ask('GET', 'containers/shop/orders/partitions?account=team');
  assert.equal(theirs.status, 200, theirs.text);
  assert.equal((await asTeam('GET', '/_orrery/migrations')).json.statistics, undefined);
});

test('the shard list has an etag that lasts as long as the map', async (t) => {
  const { server, ask, of, partitions, settled } = await orders(t);
  const list = await ask('GET', of('shards'));
  assert.equal(list.status, 200);
  assert.equal(list.json.strategy, 'hash');
  assert.deepEqual(list.json.partitionKey.paths, ['/tenant']);
  const [shard] = list.json.shards;
  assert.equal(shard.node, 'near');
  assert.equal(shard.endpoint, `${server.url}/`);
  assert.equal(shard.rangeId, shard.id);
  const etag = list.headers.etag;
  const unchanged = () => signed(server, 'GET', `/_orrery/${of('shards')}`, { headers: { 'if-none-match': etag } });
  const same = await unchanged();
  assert.equal(same.status, 304);
  assert.equal(same.headers.etag, etag);
  const split = await ask('POST', of(`partitions/${(await partitions())[0].id}/split`));
  await settled(split.json.id);
  const other = await unchanged();
  assert.equal(other.status, 200);
  assert.equal(other.json.shards.length, 2);
  assert.equal(other.json.version, list.json.version + 1);
});

test('the command line lists, splits, moves, isolates and merges', async (t) => {
  const { server, partitions } = await orders(t);
  const partition = (...words) => orrery(at(server, 'partition', ...words));
  const list = await partition('list', 'shop', 'orders');
  assert.match(list.out, /^PARTITION +NODE +FROM +TO +ITEMS +BYTES +SHARE % +UNDER WAY\n\d+ +near +end +60 +\S+ K?B +100\.0 +-\n$/, list.err);
  const [{ id }] = await partitions();
  const split = await partition('split', 'shop', 'orders', id, '--pieces', '3');
  assert.equal(split.code, 0, split.err);
  assert.match(split.out, /^(split: [a-z ]+\n)*split done after \d+\.\d s: .* copied, writers waited \d+ ms\n$/);
  const three = await partitions();
  assert.equal(three.length, 3);
  const move = await partition('move', 'shop', 'orders', three[0].id, 'far');
  assert.equal(move.code, 0, move.err);
  assert.equal((await partitions())[0].node, 'far');
  assert.equal((await partition('isolate', 'shop', 'orders', 't3')).code, 0);
  const parts = (await partitions()).map((found) => found.id);
  const merge = await partition('merge', 'shop', 'orders', ...parts);
  assert.equal(merge.code, 0, merge.err);
  assert.equal((await partitions()).length, 1);
  const begun = await partition('split', 'shop', 'orders', (await partitions())[0].id, '--no-wait');
  assert.match(begun.out, /^split begun: `orrery partition watch shop orders` shows how it goes\n$/);
  const none = await partition('split', 'shop', 'orders', '9999');
  assert.equal(none.code, 1);
  assert.match(none.err, /no partition 9999.*\(404\)/);
  assert.match((await partition('watch')).out, /^(ACCOUNT +DATABASE +CONTAINER +WHAT +PHASE +BYTES +OF|nothing is under way)\n/);
});

test('a wrong call of the command says what would be right', async () => {
  for (const [words, message] of [
    [['partition'], /needs to be told what to do/], [['partition', 'splt'], /did you mean "split"\?/],
    [['partition', 'split', 'a', 'b'], /orrery partition split DATABASE CONTAINER ID/],
    [['partition', 'watch', 'a'], /a database and a container, or neither/],
    [['partition', 'split', 'a', 'b', '1', '--pieces', '1'], /from 2 to 64/],
    [['partition', 'list', 'a', 'b', '--pieces', '2'], /--pieces is for split/],
  ]) {
    const answer = await orrery(words);
    assert.equal(answer.code, 2, words.join(' '));
    assert.match(answer.err, message);
  }
});

test('on a terminal a bar is shown; Ctrl-C leaves the migration, and says how to go on', async (t) => {
  const { server, ask, of, partitions, settled } = await orders(t);
  await ask('POST', 'migrations/pause');
  const [{ id }] = await partitions();
  const terminal = Terminal.start(t, at(server, 'partition', 'split', 'shop', 'orders', id));
  await terminal.until('split [........................]');
  await terminal.until('paused');
  terminal.type('\x03');
  await terminal.until('orrery partition watch shop orders');
  await terminal.until('orrery partition cancel shop orders');
  assert.equal(await terminal.ended, 1);
  const under = await ask('GET', of('migration'));
  assert.equal(under.status, 200);
  const cancel = await orrery(at(server, 'partition', 'cancel', 'shop', 'orders'));
  assert.equal(cancel.out, 'cancelled: the partitions are as they were\n');
  assert.equal((await settled(under.json.id)).outcome, 'cancelled');
  assert.match((await orrery(at(server, 'partition', 'resume'))).out, /^goes on\n$/);
});
