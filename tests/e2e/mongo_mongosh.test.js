// mongosh as people use it: scripts on the command line, the helpers of sharding among them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { environment, root, scratch, Server } from './server.js';

const run = promisify(execFile);

// What the script prints. The shell keeps its files where the test does.
async function mongosh(t, server, script, database = 'shop') {
  const home = scratch(t);
  const { stdout } = await run(process.execPath, [
    join(root, 'tests/e2e/node_modules/mongosh/bin/mongosh.js'), '--quiet', '--norc', `${server.mongo.replace(/\/?$/, '/')}${database}`, '--eval', script,
  ], { env: { ...environment({}), HOME: home, MONGOSH_FORCE_DISABLE_TELEMETRY_FOR_TESTING: '1' }, timeout: 120_000 });
  return stdout.trim();
}

const json = async (t, server, script) => JSON.parse(await mongosh(t, server, `print(EJSON.stringify((() => { ${script} })()))`));

test('scripts insert, find, update, count, index and explain', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const told = await json(t, server, `
    db.people.insertMany([{ _id: 1, name: 'Ann', age: 30 }, { _id: 2, name: 'Bob', age: 20 }, { _id: 3, name: 'Cid', age: 25 }]);
    db.people.createIndex({ age: 1 });
    db.people.updateOne({ _id: 2 }, { $inc: { age: 1 } });
    db.people.deleteOne({ name: 'Cid' });
    return {
      people: db.people.find({ age: { $gt: 20 } }).sort({ age: 1 }).toArray(),
      count: db.people.countDocuments(),
      indexes: db.people.getIndexes().map((index) => index.name),
      stage: JSON.stringify(db.people.find({ age: 30 }).explain()).includes('IXSCAN'),
      sum: db.people.aggregate([{ $group: { _id: null, sum: { $sum: '$age' } } }]).toArray(),
      databases: db.adminCommand({ listDatabases: 1, nameOnly: true }).databases.map(({ name }) => name),
      collections: db.getCollectionNames(),
      version: db.version().split('.')[0],
    };`);
  assert.deepEqual(told.people, [{ _id: 2, name: 'Bob', age: 21 }, { _id: 1, name: 'Ann', age: 30 }]);
  assert.equal(told.count, 2);
  assert.deepEqual(told.indexes, ['_id_', 'age_1']);
  assert.equal(told.stage, true);
  assert.deepEqual(told.sum, [{ _id: null, sum: 51 }]);
  assert.ok(told.databases.includes('shop'));
  assert.deepEqual(told.collections, ['people']);
  assert.equal(told.version, '7');
});

test('sh.status() and getShardDistribution() tell where documents are', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const status = await mongosh(t, server, `
    sh.shardCollection('shop.orders', { tenant: 'hashed' });
    db.orders.insertMany(Array.from({ length: 200 }, (_, i) => ({ tenant: 't' + (i % 20), n: i })));
    console.log(sh.status());
    db.orders.getShardDistribution();`);
  assert.match(status, /shards/);
  assert.match(status, /shop\.orders/);
  assert.match(status, /shardKey: \{ tenant: 'hashed' \}/);
  assert.match(status, /docs: 200|200 docs/i);
});

test('an error of a script is the one of the server', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const failed = await mongosh(t, server, "db.people.insertOne({ _id: 1 }); db.people.insertOne({ _id: 1 })").then(() => assert.fail('it does not fail'), (error) => error);
  assert.match(failed.stderr + failed.stdout, /E11000 duplicate key error collection: shop\.people index: _id_ dup key: \{ _id: 1 \}/);
});
