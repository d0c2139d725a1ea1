// Resident placement rules: no byte of an `eu-*` tenant lies outside of Europe, from its first item on. Node `us`
// is the root, with the catalogue; node `eu` is where they belong. Looked at from three sides: where the server says
// a key is, what `orrery verify` proves of every item, and what the files of the other node hold.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { signed } from './rest.js';
import { mongoClient } from './mongo.js';
import { tableClient } from './tables.js';

const europe = { keyLike: ['eu-*'], region: 'eu', resident: true };
const america = { region: 'us' };
const key = { paths: ['/pk'], kind: 'Hash', version: 2 };

async function until(what) {
  const end = Date.now() + 120_000;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

class World {
  static async start(t, { args = [] } = {}) {
    const world = new World();
    world.t = t;
    world.directory = scratch(t);
    world.args = ['--node', `us=rocksdb:${join(world.directory, 'us')}`, '--node', `eu=rocksdb:${join(world.directory, 'eu')}`,
      '--set', 'node.us.region=us', '--set', 'node.eu.region=eu', '--dev', '--set', 'migration.pause_ms=20ms', ...args];
    await world.serve();
    return world;
  }

  async serve() {
    this.server = await Server.start(this.t, this.args);
    this.client = new CosmosClient({ endpoint: this.server.url, key: emulatorKey });
    this.t.after(() => this.client.dispose());
    ({ database: this.database } = await this.client.databases.createIfNotExists({ id: 'd' }));
  }

  async restart() {
    await this.server.stop();
    await this.serve();
  }

  async make(orrery, definition = {}) {
    const { container } = await this.database.containers.create({ id: 'c', partitionKey: key, orrery, ...definition });
    return container;
  }

  async admin(method, path, body) {
    const answer = await signed(this.server, method, `/_orrery/${path}`, { body });
    return { status: answer.status, ...answer.json };
  }

  async verify() {
    const { out, code, err } = await orrery(['verify', '--json', '--endpoint', this.server.url, '--dev']);
    assert.equal(err, '');
    return { code, ...JSON.parse(out) };
  }

  // Every item of a resident key was looked at, and is where it may be.
  async proven(items) {
    const verdict = await this.verify();
    assert.deepEqual(verdict.findings, []);
    assert.equal(verdict.code, 0);
    assert.equal(verdict.resident, items);
  }

  // Do the files of a node hold a text? Stores write what is new as it is, so it is found where it is.
  holds(node, text) {
    const look = (directory) => readdirSync(directory).some((name) => {
      const path = join(directory, name);
      return statSync(path).isDirectory() ? look(path) : readFileSync(path).includes(text);
    });
    return look(join(this.directory, node));
  }

  elsewhere(...texts) {
    for (const text of texts) {
      assert.equal(this.holds('us', text), false, `${text} is in America`);
      assert.equal(this.holds('eu', text), true, `${text} is not in Europe`);
    }
  }
}

const kinds = {
  range: 'range',
  'lookup with a zone': { kind: 'lookup', shards: 32, zones: [{ keyLike: 'eu-*', first: 8, last: 15 }] },
};

for (const [name, strategy] of Object.entries(kinds))
  test(`${name}: the first item of a tenant is where it belongs, and stays there`, async (t) => {
    const world = await World.start(t);
    const container = await world.make({ strategy, placement: [europe, america] });
    const long = `eu-${'langer-name-'.repeat(30)}`;
    await container.items.create({ id: '1', pk: 'eu-zaunkoenig', text: 'amselfelder' });
    world.elsewhere('zaunkoenig', 'amselfelder');
    await container.items.create({ id: '1', pk: long, text: 'blaumeisen' });
    await container.items.create({ id: '1', pk: 'us-robin', text: 'cardinal' });
    await container.items.upsert({ id: '2', pk: 'eu-x', text: 'drosselbart' });
    await container.items.batch([{ operationType: 'Create', resourceBody: { id: '3', pk: 'eu-y', text: 'elsternnest' } }], 'eu-y');
    await container.items.bulk([{ operationType: 'Create', partitionKey: 'eu-z', resourceBody: { id: '4', pk: 'eu-z', text: 'finkenwerder' } }]);
    world.elsewhere('blaumeisen', 'drosselbart', 'elsternnest', 'finkenwerder', 'langer-name-');
    assert.equal(world.holds('us', 'cardinal'), true);
    assert.equal(world.holds('eu', 'cardinal'), false);
    await world.proven(5);

    // A restart, a split, changes and deletes leave it there; what would not is refused. A server that stops writes
    // down what was asked (advice, heat) beside the catalogue, which is in America: nothing of it is of these keys.
    await world.restart();
    world.elsewhere('zaunkoenig', 'amselfelder', 'langer-name-');
    const again = world.database.container('c');
    const { partitions } = await world.admin('GET', 'containers/d/c/partitions');
    const inEurope = partitions.filter((p) => p.node === 'eu'), inAmerica = partitions.filter((p) => p.node === 'us');
    assert.ok(inEurope.length && inAmerica.length);
    for (const { id } of inEurope) {
      const refused = await world.admin('POST', `containers/d/c/partitions/${id}/move`, { node: 'us' });
      assert.equal(refused.status, 409);
      assert.match(refused.message, /rule 1 of orrery.placement makes resident .* on node \\?"us\\?"/);
    }
    const first = partitions.findIndex((p) => p.node === 'eu');
    const merge = await world.admin('POST', 'containers/d/c/partitions/merge', { partitions: [partitions[first - 1].id, partitions[first].id] });
    assert.equal(merge.status, 409);
    assert.equal((await world.admin('POST', `containers/d/c/partitions/${inEurope[0].id}/split`, { pieces: 2 })).status, 202);
    await until(async () => (await world.admin('GET', 'containers/d/c/migration')).status === 404);
    await again.items.create({ id: '9', pk: 'eu-spaet', text: 'gimpelpaar' });
    await again.item('1', 'eu-zaunkoenig').replace({ id: '1', pk: 'eu-zaunkoenig', text: 'haubentaucher' });
    await again.item('2', 'eu-x').delete();
    world.elsewhere('gimpelpaar', 'haubentaucher', 'amselfelder');
    await world.proven(5);
    const { resources } = await again.items.query('SELECT VALUE c.text FROM c ORDER BY c.text').fetchAll();
    assert.deepEqual(resources, ['blaumeisen', 'cardinal', 'elsternnest', 'finkenwerder', 'gimpelpaar', 'haubentaucher']);

    // Nodes that resident keys rely on do not become others while they do.
    const moved = await world.admin('POST', 'nodes/eu', { region: 'us' });
    assert.equal(moved.status, 409, JSON.stringify(moved));
  });

test('a hash knows no patterns, but a first component lies together', async (t) => {
  const world = await World.start(t);
  await assert.rejects(world.make({ placement: [europe, america] }), { code: 400, message: /a hash scatters the keys of a pattern/ });
  const paths = { paths: ['/region', '/tenant'], kind: 'MultiHash', version: 2 };
  const placement = [{ key: ['eu'], region: 'eu', resident: true }, america];
  const container = await world.make({ placement }, { partitionKey: paths });
  await container.items.create({ id: '1', region: 'eu', tenant: 'zaunkoenig', text: 'amselfelder' });
  await container.items.create({ id: '1', region: 'us', tenant: 'robin', text: 'cardinal' });
  world.elsewhere('zaunkoenig', 'amselfelder');
  await world.proven(1);

  // Nothing that has its items elsewhere too.
  await assert.rejects(world.database.containers.create({ id: 'v', partitionKey: { paths: ['/text'] },
    materializedViewDefinition: { sourceCollectionId: 'c', definition: 'SELECT c.text FROM c' } }), { code: 400, message: /its items are resident/ });
  const promoted = await world.admin('POST', 'containers/d/c/promote', { partitionKey: ['eu', 'zaunkoenig'], to: 'own' });
  assert.equal(promoted.status, 409, JSON.stringify(promoted));
  await world.proven(1);
});

test('a rule for keys that are there becomes resident when it holds', async (t) => {
  const world = await World.start(t);
  const container = await world.make({ strategy: 'range', placement: [america] });
  await container.items.create({ id: '1', pk: 'eu-alt', text: 'amselfelder' });
  assert.equal(world.holds('us', 'amselfelder'), true);
  const { resource } = await container.read();
  const replaced = (placement) => container.replace({ ...resource, orrery: { ...resource.orrery, placement } });
  await assert.rejects(replaced([europe, america]), { code: 409, message: /without \\?"resident\\?" first/ });
  await replaced([{ keyLike: ['eu-*'], region: 'eu' }, america]);
  await until(() => replaced([europe, america]).then(() => true, (err) => {
    assert.ok([409, 503].includes(err.code), err.message);
    return false;
  }));
  await world.proven(1);
  await container.items.create({ id: '2', pk: 'eu-neu', text: 'blaumeisen' });
  world.elsewhere('blaumeisen');
  await world.proven(2);
  // A region that is given to a node at the start has the last word: what follows from it is found.
  await world.server.stop();
  const before = world.args;
  world.args = before.map((word) => (word === 'node.eu.region=eu' ? 'node.eu.region=mars' : word));
  await world.serve();
  const broken = await world.verify();
  assert.equal(broken.code, 1);
  assert.ok(broken.findings.some(({ kind, key }) => kind === 'residence' && key === ''), 'of a map');
  assert.equal(broken.findings.filter(({ kind, key }) => kind === 'residence' && key !== '').length, 2, 'and of both items');
  world.args = before;
  await world.restart();
  await world.proven(2);
});

test('a re-key and a directory keep resident keys where they are', async (t) => {
  const world = await World.start(t);
  const container = await world.make({ strategy: 'range', placement: [europe, america] });
  for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, pk: `${i % 2 ? 'eu' : 'us'}-${i}`, text: i % 2 ? `zaunkoenig-${i}` : 'robin' });
  const hashed = await world.admin('POST', 'containers/d/c/rekey', { orrery: { strategy: 'hash' } });
  assert.equal(hashed.status, 400);
  assert.match(hashed.message, /a hash scatters/);
  const strategy = { kind: 'lookup', shards: 16, zones: [{ keyLike: 'eu-*', first: 0, last: 3 }] };
  const begun = await world.admin('POST', 'containers/d/c/rekey', { orrery: { strategy } });
  assert.equal(begun.status, 202, JSON.stringify(begun));
  await until(async () => (await world.admin('GET', 'containers/d/c/migration')).status === 404);
  await container.items.create({ id: '20', pk: 'eu-20', text: 'zaunkoenig-20' });
  world.elsewhere('zaunkoenig-20', 'zaunkoenig-1');
  await world.proven(11);
  const out = await world.admin('POST', 'containers/d/c/directory', { edits: [{ key: ['eu-1'], shard: 9 }] });
  assert.equal(out.status, 400);
  assert.match(out.message, /another zone/);
  const within = await world.admin('POST', 'containers/d/c/directory', { edits: [{ key: ['eu-1'], shard: 3 }, { key: ['eu-neu'], shard: 2 }] });
  assert.equal(within.status, 202, JSON.stringify(within));
  await until(async () => (await world.admin('GET', 'containers/d/c/migration')).status === 404);
  await container.items.create({ id: '21', pk: 'eu-neu', text: 'zaunkoenig-21' });
  world.elsewhere('zaunkoenig-21');
  await world.proven(12);
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 22);
});

test('MongoDB and Tables write to the same places', async (t) => {
  const world = await World.start(t);
  const client = await mongoClient(t, world.server.mongo);
  await client.db('admin').command({ shardCollection: 'd.people', key: { pk: 1 } });
  const container = world.database.container('people');
  const { resource } = await container.read();
  const replaced = (placement) => container.replace({ ...resource, orrery: { ...resource.orrery, placement } });
  await replaced([{ keyLike: ['eu-*'], region: 'eu' }, america]);
  await until(() => replaced([europe, america]).then(() => true, () => false));
  const people = client.db('d').collection('people');
  await people.insertMany([{ _id: 1, pk: 'eu-a', text: 'zaunkoenig' }, { _id: 2, pk: 'us-a', text: 'robin' }]);
  await people.updateOne({ _id: 1, pk: 'eu-a' }, { $set: { more: 'amselfelder' } });
  await people.findOneAndUpdate({ _id: 3, pk: 'eu-b' }, { $set: { text: 'blaumeisen' } }, { upsert: true });
  world.elsewhere('zaunkoenig', 'amselfelder', 'blaumeisen');
  await world.proven(2);

  // A container of TablesDB with this key is a table.
  const { database } = await world.client.databases.createIfNotExists({ id: 'TablesDB' });
  await database.containers.create({ id: 'people', partitionKey: { paths: ['/PartitionKey'], version: 2 },
    orrery: { strategy: 'range', placement: [europe, america] } });
  const table = tableClient(world.server, 'people');
  await table.createEntity({ partitionKey: 'eu-c', rowKey: '1', text: 'drosselbart' });
  await table.createEntity({ partitionKey: 'us-c', rowKey: '1', text: 'cardinal' });
  await table.upsertEntity({ partitionKey: 'eu-c', rowKey: '2', text: 'elsternnest' });
  world.elsewhere('drosselbart', 'elsternnest');
  await world.proven(4);
});
