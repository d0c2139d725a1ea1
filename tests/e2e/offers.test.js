// Throughput: what was bought, read and changed through offers.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

async function started(t) {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const offer = async (resource) => {
    const { resources } = await client.offers.readAll().fetchAll();
    return resources.find((offer) => offer.resource === resource._self);
  };
  return { server, client, offer };
}

const rid = (offer) => ({ type: 'offers', link: offer._rid.toLowerCase() });
const put = (server, offer, headers = {}) =>
  signed(server, 'PUT', `/offers/${offer._rid}`, { headers, body: offer, sign: rid(offer) });

test('a container has an offer, which the client reads and replaces', async (t) => {
  const { client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 500 });
  const found = await offer(resource);
  assert.equal(found.offerVersion, 'V2');
  assert.equal(found.offerType, 'Invalid');
  assert.equal(found.offerResourceId, resource._rid);
  assert.equal(found.content.offerThroughput, 500);
  assert.equal(found.content.offerMinimumThroughputParameters.maxThroughputEverProvisioned, 500);
  assert.equal(found._self, `offers/${found._rid}/`);
  const read = await client.offer(found.id).read();
  assert.deepEqual(read.resource, found);
  assert.equal(read.headers['x-ms-cosmos-min-throughput'], '400');
  found.content.offerThroughput = 900;
  const replaced = await client.offer(found.id).replace(found);
  assert.equal(replaced.resource.content.offerThroughput, 900);
  assert.equal(replaced.headers['x-ms-offer-replace-pending'], 'false');
  assert.notEqual(replaced.resource._etag, found._etag);
  await database.container('c').delete();
  assert.equal(await offer(resource), undefined);
});

test('a container that names no throughput gets 400, or shares its database\'s', async (t) => {
  const { client, offer } = await started(t);
  const alone = (await client.databases.create({ id: 'alone' })).database;
  const own = (await alone.containers.create({ id: 'c', partitionKey: '/pk' })).resource;
  assert.equal((await offer(own)).content.offerThroughput, 400);
  const shared = await client.databases.create({ id: 'shared', throughput: 600 });
  const in_it = (await shared.database.containers.create({ id: 'c', partitionKey: '/pk' })).resource;
  assert.equal(await offer(in_it), undefined);
  const bought = await offer(shared.resource);
  assert.equal(bought.content.offerThroughput, 600);
  assert.equal(bought.offerResourceId, shared.resource._rid);
  bought.content.offerThroughput = 800;
  assert.equal((await client.offer(bought.id).replace(bought)).resource.content.offerThroughput, 800);
});

test('autoscale shows its maximum and what it gives now', async (t) => {
  const { server, client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk', maxThroughput: 4000 });
  const found = await offer(resource);
  assert.equal(found.content.offerThroughput, 400);
  assert.deepEqual(found.content.offerAutopilotSettings,
    { tier: 0, maximumTierThroughput: 0, autoUpgrade: false, maxThroughput: 4000 });
  found.content.offerAutopilotSettings.maxThroughput = 6000;
  const replaced = await put(server, found);
  assert.equal(replaced.status, 200, replaced.text);
  assert.equal(replaced.json.content.offerAutopilotSettings.maxThroughput, 6000);
  assert.equal(replaced.headers['x-ms-cosmos-min-throughput'], '1000');
  const odd = structuredClone(replaced.json);
  odd.content.offerAutopilotSettings.maxThroughput = 1500;
  assert.equal((await put(server, odd)).status, 400);
});

test('offers migrate from manual to autoscale and back', async (t) => {
  const { server, client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 1200 });
  const found = await offer(resource);
  const switched = structuredClone(found);
  switched.content = { offerAutopilotSettings: { maxThroughput: 2000 } };
  assert.equal((await put(server, switched)).status, 400); // it takes the header
  switched.content = { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: -1 } };
  const up = await put(server, switched, { 'x-ms-cosmos-migrate-offer-to-autopilot': 'true' });
  assert.equal(up.status, 200, up.text);
  assert.equal(up.json.content.offerAutopilotSettings.maxThroughput, 2000);
  assert.equal((await put(server, up.json, { 'x-ms-cosmos-migrate-offer-to-autopilot': 'true' })).status, 400);
  const down = await put(server, up.json, { 'x-ms-cosmos-migrate-offer-to-manual-throughput': 'true' });
  assert.equal(down.status, 200, down.text);
  assert.equal(down.json.content.offerAutopilotSettings, undefined);
  assert.equal(down.json.content.offerThroughput, 2000);
  const both = await put(server, down.json, {
    'x-ms-cosmos-migrate-offer-to-autopilot': 'true', 'x-ms-cosmos-migrate-offer-to-manual-throughput': 'true',
  });
  assert.equal(both.status, 400);
});

test('an offer that is wrong is refused and changes nothing', async (t) => {
  const { server, client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const found = await offer(resource);
  const wrong = async (change, status, message) => {
    const body = structuredClone(found);
    change(body);
    const answer = await signed(server, 'PUT', `/offers/${found._rid}`, { body, sign: rid(found) });
    assert.equal(answer.status, status, answer.text);
    if (message) assert.match(answer.json.message, message);
  };
  await wrong((o) => (o.content.offerThroughput = -200), 400,
    /Requested throughput -200 is less than required minimum throughput 400/);
  await wrong((o) => (o.content.offerThroughput = 450), 400, /increments of 100/);
  await wrong((o) => (o.content.offerThroughput = 'x'), 400);
  await wrong((o) => (o.content.offerThroughput = 1.5), 400);
  await wrong((o) => delete o.content, 400);
  await wrong((o) => (o.content = []), 400);
  await wrong((o) => (o._rid = 'AAAA'), 400);
  await wrong((o) => (o.id = 'x'), 400);
  await wrong((o) => (o.resource = 'dbs/x/'), 400);
  const stale = await signed(server, 'PUT', `/offers/${found._rid}`, {
    body: found, sign: rid(found), headers: { 'if-match': '"x"' },
  });
  assert.equal(stale.status, 412);
  assert.deepEqual(await offer(resource), found);
  const other = { _rid: '-AAA' };
  assert.equal((await signed(server, 'GET', `/offers/${other._rid}`, { sign: rid(other) })).status, 404);
  const none = { _rid: 'nonsense' };
  assert.equal((await signed(server, 'GET', `/offers/${none._rid}`, { sign: rid(none) })).status, 400);
});

test('legacy tiers are offers of version 1', async (t) => {
  const { server, client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const created = await signed(server, 'POST', '/dbs/d/colls', {
    headers: { 'x-ms-offer-type': 'S1', 'x-ms-version': '2015-12-16' }, body: { id: 'c' },
  });
  assert.equal(created.status, 201, created.text);
  const found = await offer(created.json);
  assert.deepEqual([found.offerVersion, found.offerType, found.content.offerThroughput], ['V1', 'S1', 250]);
  const up = await put(server, { ...found, offerType: 'S2' });
  assert.deepEqual([up.json.offerVersion, up.json.offerType, up.json.content.offerThroughput], ['V1', 'S2', 1000]);
  const own = await put(server, { ...up.json, offerVersion: 'V2', offerType: 'Invalid' });
  assert.deepEqual([own.json.offerVersion, own.json.offerType, own.json.content.offerThroughput], ['V2', 'Invalid', 1000]);
  assert.ok(database);
});

test('more throughput holds requests back less, at once', async (t) => {
  const { server, client, offer } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  const { resource, container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const found = await offer(resource);
  await container.items.create({ id: '1', pk: 'x' });
  found.content.offerThroughput = 10000;
  assert.equal((await put(server, found)).status, 200);
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) =>
    signed(server, 'POST', '/dbs/d/colls/c/docs', {
      headers: { 'x-ms-documentdb-partitionkey': '["x"]' }, body: { id: `n${i}`, pk: 'x' },
    })));
  assert.ok(answers.every((answer) => answer.status === 201));
});

test('metadata is queried as every library spells a query', async (t) => {
  const { server, client } = await started(t);
  await client.databases.create({ id: 'd' });
  for (const [path, name, count] of [['/dbs', 'Databases', 1], ['/dbs/d/colls', 'DocumentCollections', 0], ['/offers', 'Offers', 0]])
    for (const headers of [
      { 'x-ms-documentdb-isquery': 'True', 'content-type': 'application/query+json' }, { 'x-ms-documentdb-query': 'True' },
    ]) {
      const answer = await signed(server, 'POST', path, {
        headers, body: { query: 'SELECT * FROM root r WHERE r.id=@id', parameters: [{ name: '@id', value: 'd' }] },
      });
      assert.equal(answer.status, 200);
      assert.equal(answer.json[name].length, count);
      assert.equal(answer.json._count, count);
    }
});
