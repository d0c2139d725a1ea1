// Users and roles of the MongoDB API: made, changed and dropped, and held to what their roles say.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { mongo, mongoClient } from './mongo.js';
import { missing, python } from './python.js';
import { orrery, scratch, Server } from './server.js';

const code = (number, text) => (error) => {
  assert.equal(error.code, number, error.message);
  if (text) assert.match(error.message, text);
  return true;
};

// 391 tells the driver to authenticate again by itself, which then fails.
const shutOut = (error) => error.code === 391 || error.code === 18;

const url = (server, user, password, source = 'admin', mechanism = 'SCRAM-SHA-256') => {
  const { host } = new URL(server.mongo);
  return `mongodb://${encodeURIComponent(user)}:${encodeURIComponent(password)}@${host}/?authSource=${source}&authMechanism=${mechanism}`;
};

test('a user logs in by either mechanism, and with a wrong password by none', async (t) => {
  const { server, client } = await mongo(t);
  const admin = client.db('admin');
  await admin.command({ createUser: 'ann', pwd: 'secret', roles: ['root'] });
  await client.db('shop').command({ createUser: 'bob', pwd: 'pässwörd Ⅳ', roles: ['readWrite'] });
  for (const mechanism of ['SCRAM-SHA-256', 'SCRAM-SHA-1']) {
    const ann = await mongoClient(t, url(server, 'ann', 'secret', 'admin', mechanism));
    assert.equal((await ann.db('shop').command({ ping: 1 })).ok, 1);
    const bob = await mongoClient(t, url(server, 'bob', 'pässwörd Ⅳ', 'shop', mechanism));
    await bob.db('shop').collection('c').insertOne({});
    await assert.rejects(mongoClient(t, url(server, 'ann', 'wrong', 'admin', mechanism)), code(18, /Authentication failed/));
    await assert.rejects(mongoClient(t, url(server, 'ann', 'secret', 'shop', mechanism)), code(18));
    await assert.rejects(mongoClient(t, url(server, 'nobody', 'secret', 'admin', mechanism)), code(18));
  }
  const plain = await mongoClient(t, url(server, 'ann', 'secret').replace(/&authMechanism=.*/, ''));
  const status = await plain.db('admin').command({ connectionStatus: 1, showPrivileges: true });
  assert.deepEqual(status.authInfo.authenticatedUsers, [{ user: 'ann', db: 'admin' }]);
  assert.deepEqual(status.authInfo.authenticatedUserRoles, [{ role: 'root', db: 'admin' }]);
  assert.ok(status.authInfo.authenticatedUserPrivileges.some((one) => one.resource.cluster && one.actions.includes('serverStatus')));
});

test('what createUser is told wrong is refused, and passwords are nowhere', async (t) => {
  const { client, server } = await mongo(t);
  const admin = client.db('admin');
  await admin.command({ createUser: 'ann', pwd: 'very-secret-word', roles: [], customData: { team: 1 } });
  const refused = [
    [{ createUser: 'ann', pwd: 'x', roles: [] }, 51003, /already exists/],
    [{ createUser: 'x', roles: [] }, 2, /pwd/],
    [{ createUser: 'x', pwd: '', roles: [] }, 2],
    [{ createUser: 'x', pwd: 'x' }, 40414],
    [{ createUser: '', pwd: 'x', roles: [] }, 2],
    [{ createUser: 'x', pwd: 'x', roles: ['nothing'] }, 31, /Could not find role: nothing@admin/],
    [{ createUser: 'x', pwd: 'x', roles: [{ role: 'root', db: 'shop' }] }, 31],
    [{ createUser: 'x', pwd: 'x', roles: [], mechanisms: ['MD5'] }, 2],
    [{ createUser: 'x', pwd: 'x', roles: [], authenticationRestrictions: [{ clientSource: ['10.0.0.1'] }] }, 238],
    [{ createUser: 'x', pwd: 'x', roles: [], digestPassword: false }, 238],
    [{ createUser: 'default', pwd: 'x', roles: [] }, 51003],
    [{ updateUser: 'x', pwd: 'x' }, 11],
    [{ dropUser: 'x' }, 11],
    [{ grantRolesToUser: 'x', roles: ['root'] }, 11],
  ];
  for (const [command, number, text] of refused) await assert.rejects(admin.command(command), code(number, text), JSON.stringify(command));
  const { users } = await admin.command({ usersInfo: 'ann', showCredentials: true });
  assert.deepEqual([users[0]._id, users[0].user, users[0].customData, users[0].mechanisms], ['admin.ann', 'ann', { team: 1 }, ['SCRAM-SHA-1', 'SCRAM-SHA-256']]);
  assert.equal(users[0].credentials['SCRAM-SHA-256'].iterationCount, 15000);
  assert.equal(users[0].credentials['SCRAM-SHA-1'].iterationCount, 10000);
  assert.doesNotMatch(JSON.stringify(users), /very-secret/);
  assert.equal((await admin.command({ usersInfo: 1 })).users[0].credentials, undefined);
  assert.doesNotMatch(server.err + server.out, /very-secret/);
});

test('a new password or a dropped user ends what its connections may do', async (t) => {
  const { client, server } = await mongo(t);
  const admin = client.db('admin');
  await admin.command({ createUser: 'ann', pwd: 'one', roles: ['readWriteAnyDatabase'] });
  const ann = await mongoClient(t, url(server, 'ann', 'one'), { maxPoolSize: 1, retryReads: false });
  await ann.db('shop').collection('c').insertOne({ _id: 1 });
  await admin.command({ revokeRolesFromUser: 'ann', roles: ['readWriteAnyDatabase'] });
  await assert.rejects(ann.db('shop').collection('c').insertOne({ _id: 2 }), code(13, /not authorized on shop to execute command/));
  await admin.command({ grantRolesToUser: 'ann', roles: [{ role: 'read', db: 'shop' }] });
  assert.equal((await ann.db('shop').collection('c').find().toArray()).length, 1);
  await assert.rejects(ann.db('shop').collection('c').insertOne({ _id: 2 }), code(13));
  await admin.command({ updateUser: 'ann', pwd: 'two' });
  await assert.rejects(ann.db('shop').collection('c').findOne(), shutOut);
  await assert.rejects(mongoClient(t, url(server, 'ann', 'one')), code(18));
  const again = await mongoClient(t, url(server, 'ann', 'two'), { maxPoolSize: 1, retryReads: false });
  assert.ok(await again.db('shop').collection('c').findOne());
  await admin.command({ dropUser: 'ann' });
  await assert.rejects(again.db('shop').collection('c').findOne(), shutOut);
  await assert.rejects(mongoClient(t, url(server, 'ann', 'two')), code(18));
});

// What each role lets its user do: rows are commands, in the database shop unless they say otherwise.
const deeds = {
  find: { find: 'c' },
  insert: { insert: 'c', documents: [{}] },
  update: { update: 'c', updates: [{ q: {}, u: { $set: { a: 1 } } }] },
  remove: { delete: 'c', deletes: [{ q: { a: 'none' }, limit: 1 }] },
  create: { create: 'made' },
  drop: { drop: 'made' },
  collMod: { collMod: 'c', validationLevel: 'strict' },
  stats: { collStats: 'c' },
  validate: { validate: 'c' },
  list: { listCollections: 1 },
  users: { usersInfo: { user: 'target', db: 'shop' } },
  createUser: { createUser: 'made', pwd: 'x', roles: [] },
  dropUser: { dropUser: 'made' },
  otherFind: { find: 'c', $db: 'other' },
  otherInsert: { insert: 'c', documents: [{}], $db: 'other' },
  serverStatus: { serverStatus: 1, $db: 'admin' },
  hostInfo: { hostInfo: 1, $db: 'admin' },
  fsync: { fsync: 1, $db: 'admin' },
  sharding: { enableSharding: 'shop', $db: 'admin' },
};
const all = Object.keys(deeds);
const matrix = {
  read: ['find', 'stats', 'list'],
  readWrite: ['find', 'insert', 'update', 'remove', 'create', 'drop', 'stats', 'list'],
  dbAdmin: ['create', 'drop', 'collMod', 'stats', 'validate', 'list'],
  userAdmin: ['users', 'createUser', 'dropUser'],
  dbOwner: ['find', 'insert', 'update', 'remove', 'create', 'drop', 'collMod', 'stats', 'validate', 'list', 'users', 'createUser', 'dropUser'],
  clusterMonitor: ['stats', 'serverStatus', 'hostInfo'],
  clusterManager: ['sharding'],
  hostManager: ['fsync'],
  clusterAdmin: ['stats', 'serverStatus', 'hostInfo', 'fsync', 'sharding'],
  backup: ['find', 'stats', 'list', 'otherFind', 'serverStatus'],
  restore: ['insert', 'create', 'drop', 'collMod', 'list', 'users', 'createUser', 'dropUser', 'otherInsert'],
  readAnyDatabase: ['find', 'stats', 'list', 'otherFind'],
  readWriteAnyDatabase: ['find', 'insert', 'update', 'remove', 'create', 'drop', 'stats', 'list', 'otherFind', 'otherInsert'],
  userAdminAnyDatabase: ['users', 'createUser', 'dropUser'],
  dbAdminAnyDatabase: ['create', 'drop', 'collMod', 'stats', 'validate', 'list'],
  root: all,
};
const ofDatabase = new Set(['read', 'readWrite', 'dbAdmin', 'userAdmin', 'dbOwner']);

test('each built-in role allows its commands where it holds, and no others', async (t) => {
  const { client, server } = await mongo(t);
  const admin = client.db('admin');
  await client.db('shop').collection('c').insertOne({ _id: 0 });
  await client.db('other').collection('c').insertOne({ _id: 0 });
  await client.db('shop').command({ createUser: 'target', pwd: 'x', roles: [] });
  for (const [role, allowed] of Object.entries(matrix)) {
    await admin.command({ createUser: `u-${role}`, pwd: 'x', roles: [{ role, db: ofDatabase.has(role) ? 'shop' : 'admin' }] });
    const user = await mongoClient(t, url(server, `u-${role}`, 'x'), { maxPoolSize: 1 });
    const said = [];
    for (const [deed, { $db = 'shop', ...command }] of Object.entries(deeds)) {
      const outcome = await user.db($db).command(command).then(() => undefined, (error) => error);
      if (outcome) assert.equal(outcome.code, 13, `${role} ${deed}: ${outcome}`);
      else said.push(deed);
    }
    assert.deepEqual(said, all.filter((deed) => allowed.includes(deed)), role);
    await user.close();
  }
});

test('pipelines need what their stages read and write, views what they are made of', async (t) => {
  const { client, server } = await mongo(t);
  const shop = client.db('shop');
  await shop.collection('open').insertOne({ _id: 1 });
  await shop.collection('closed').insertOne({ _id: 1, secret: true });
  await shop.command({
    createRole: 'some',
    privileges: [
      { resource: { db: 'shop', collection: 'open' }, actions: ['find'] },
      { resource: { db: 'shop', collection: 'mine' }, actions: ['find', 'createCollection', 'collMod'] },
    ],
    roles: [],
  });
  await shop.command({ createUser: 'eve', pwd: 'x', roles: ['some'] });
  const eve = (await mongoClient(t, url(server, 'eve', 'x', 'shop'))).db('shop');
  assert.equal((await eve.collection('open').aggregate([{ $match: {} }]).toArray()).length, 1);
  const refused = [
    [{ $lookup: { from: 'closed', as: 'x', localField: '_id', foreignField: '_id' } }],
    [{ $unionWith: 'closed' }],
    [{ $unionWith: { coll: 'closed', pipeline: [] } }],
    [{ $facet: { a: [{ $unionWith: 'closed' }] } }],
    [{ $lookup: { from: 'open', as: 'x', pipeline: [{ $unionWith: 'closed' }] } }],
    [{ $graphLookup: { from: 'closed', as: 'x', startWith: '$_id', connectFromField: '_id', connectToField: '_id' } }],
    [{ $out: 'mine' }],
    [{ $merge: { into: 'closed' } }],
    [{ $merge: 'mine' }],
  ];
  for (const pipeline of refused) await assert.rejects(eve.collection('open').aggregate(pipeline).toArray(), code(13), JSON.stringify(pipeline));
  await assert.rejects(eve.collection('closed').find().toArray(), code(13));
  await assert.rejects(eve.command({ create: 'mine', viewOn: 'closed', pipeline: [] }), code(13));
  await assert.rejects(eve.command({ create: 'mine', viewOn: 'open', pipeline: [{ $unionWith: 'closed' }] }), code(13));
  await eve.command({ create: 'mine', viewOn: 'open', pipeline: [] });
  await assert.rejects(eve.command({ collMod: 'mine', viewOn: 'closed', pipeline: [] }), code(13));
  await assert.rejects(eve.command({ explain: { find: 'closed' } }), (error) => error.code === 13 || error.code === 238);
  assert.deepEqual((await eve.admin().listDatabases()).databases.map((one) => one.name), ['shop']);
});

test('nobody gives more than it may grant', async (t) => {
  const { client, server } = await mongo(t);
  const shop = client.db('shop');
  await shop.command({ createUser: 'boss', pwd: 'x', roles: ['userAdmin'] });
  await client.db('admin').command({ createUser: 'victim', pwd: 'x', roles: ['root'] });
  const boss = await mongoClient(t, url(server, 'boss', 'x', 'shop'), { maxPoolSize: 1 });
  const mine = boss.db('shop');
  await mine.command({ createUser: 'own', pwd: 'x', roles: ['dbOwner'] });
  const refused = [
    { createUser: 'a', pwd: 'x', roles: [{ role: 'root', db: 'admin' }] },
    { createUser: 'a', pwd: 'x', roles: [{ role: 'read', db: 'other' }] },
    { grantRolesToUser: 'boss', roles: [{ role: 'root', db: 'admin' }] },
    { updateUser: 'boss', roles: [{ role: 'readAnyDatabase', db: 'admin' }] },
  ];
  for (const command of refused) await assert.rejects(mine.command(command), code(13), JSON.stringify(command));
  await assert.rejects(mine.command({ createRole: 'r', roles: [], privileges: [{ resource: { cluster: true }, actions: ['serverStatus'] }] }), code(2));
  await assert.rejects(mine.command({ createRole: 'r', roles: [], privileges: [{ resource: { db: '', collection: '' }, actions: ['find'] }] }), code(2));
  await assert.rejects(boss.db('admin').command({ updateUser: 'victim', pwd: 'mine' }), code(13));
  await assert.rejects(boss.db('admin').command({ dropUser: 'victim' }), code(13));
  await assert.rejects(boss.db('admin').command({ usersInfo: 'victim', showCredentials: true }), code(13));
});

test('roles inherit, change and go for those who have them', async (t) => {
  const { client, server } = await mongo(t);
  const shop = client.db('shop');
  await shop.collection('c').insertOne({ _id: 1 });
  await shop.command({ createRole: 'inner', roles: [], privileges: [{ resource: { db: 'shop', collection: 'c' }, actions: ['find'] }] });
  await shop.command({ createRole: 'outer', roles: ['inner'], privileges: [] });
  await shop.command({ updateRole: 'inner', roles: ['outer'] });
  await shop.command({ createUser: 'ann', pwd: 'x', roles: ['outer'] });
  const ann = await mongoClient(t, url(server, 'ann', 'x', 'shop'), { maxPoolSize: 1 });
  assert.equal((await ann.db('shop').collection('c').find().toArray()).length, 1);
  const [outer] = (await shop.command({ rolesInfo: 'outer', showPrivileges: true })).roles;
  assert.equal(outer.isBuiltin, false);
  assert.deepEqual(outer.inheritedPrivileges, [{ resource: { db: 'shop', collection: 'c' }, actions: ['find'] }]);
  await assert.rejects(shop.command({ createRole: 'outer', roles: [], privileges: [] }), code(51002));
  await assert.rejects(shop.command({ createRole: 'read', roles: [], privileges: [] }), code(51002));
  await assert.rejects(shop.command({ createRole: 'x', roles: [], privileges: [{ resource: { db: 'shop', collection: '' }, actions: ['fly'] }] }), code(9));
  await shop.command({ dropRole: 'inner' });
  await assert.rejects(ann.db('shop').collection('c').find().toArray(), code(13));
  assert.deepEqual((await shop.command({ rolesInfo: 'outer' })).roles[0].roles, []);
  assert.equal((await shop.command({ dropAllRolesFromDatabase: 1 })).n, 1);
  assert.deepEqual((await shop.command({ usersInfo: 'ann' })).users[0].roles, []);
  assert.equal((await shop.command({ dropAllUsersFromDatabase: 1 })).n, 1);
  assert.ok((await client.db('admin').command({ rolesInfo: 1, showBuiltinRoles: true })).roles.some((one) => one.role === 'root' && one.isBuiltin));
});

test('users outlive a restart and belong to one account', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${scratch(t)}`];
  const first = await Server.start(t, args);
  const made = await orrery(['account', 'create', 'acme', '--endpoint', first.url, '--dev']);
  assert.equal(made.code ?? 0, 0, made.err);
  const key = 'C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==';
  const owner = await mongoClient(t, url(first, 'acme', key));
  await owner.db('admin').command({ createUser: 'ann', pwd: 'x', roles: ['root'] });
  await owner.db('shop').collection('c').insertOne({ _id: 'of acme' });
  const root = await mongoClient(t, first.mongo);
  await root.db('shop').collection('c').insertOne({ _id: 'of default' });
  assert.deepEqual((await root.db('admin').command({ usersInfo: 1 })).users, []);
  await assert.rejects(mongoClient(t, url(first, 'ann', 'x')), code(18));
  for (const client of [owner, root]) await client.close();
  await first.stop();
  const again = await Server.start(t, args);
  const ann = await mongoClient(t, url(again, 'ann@acme', 'x'));
  assert.deepEqual(await ann.db('shop').collection('c').find().toArray(), [{ _id: 'of acme' }]);
  await assert.rejects(mongoClient(t, url(again, 'ann', 'x')), code(18));
  await assert.rejects(mongoClient(t, url(again, 'ann@default', 'x')), code(18));
});

test('PyMongo logs in as a user and is held to its roles', { skip: missing('pymongo') }, async (t) => {
  const { client, server } = await mongo(t);
  await client.db('shop').command({ createUser: 'py', pwd: 'x', roles: ['read'] });
  await client.db('shop').collection('c').insertOne({ _id: 1 });
  const script = `
import sys, pymongo
for mechanism in ('SCRAM-SHA-256', 'SCRAM-SHA-1'):
    db = pymongo.MongoClient(sys.argv[1], authMechanism=mechanism, serverSelectionTimeoutMS=15000).shop
    assert db.c.find_one() == {'_id': 1}
    try:
        db.c.insert_one({})
        raise SystemExit('inserted')
    except pymongo.errors.OperationFailure as error:
        assert error.code == 13, error
print('held')
`;
  const { stdout } = await promisify(execFile)(python, ['-c', script, url(server, 'py', 'x', 'shop').replace(/&authMechanism=.*/, '')]);
  assert.equal(stdout.trim(), 'held');
});

test('privileges and roles are given to roles, and taken from them', async (t) => {
  const { server, client } = await mongo(t);
  const shop = client.db('shop');
  await shop.collection('c').insertOne({ _id: 1 });
  await shop.command({ createRole: 'r', roles: [], privileges: [] });
  await shop.command({ createUser: 'ann', pwd: 'x', roles: ['r'] });
  const ann = (await mongoClient(t, url(server, 'ann', 'x', 'shop'), { maxPoolSize: 1 })).db('shop').collection('c');
  const on = (actions) => [{ resource: { db: 'shop', collection: 'c' }, actions }];
  await assert.rejects(ann.findOne(), code(13));
  await shop.command({ grantPrivilegesToRole: 'r', privileges: on(['find', 'insert']) });
  assert.equal((await ann.findOne())._id, 1);
  await ann.insertOne({ _id: 2 });
  await shop.command({ revokePrivilegesFromRole: 'r', privileges: on(['insert', 'remove']) });
  await assert.rejects(ann.insertOne({ _id: 3 }), code(13));
  assert.deepEqual((await shop.command({ rolesInfo: 'r', showPrivileges: true })).roles[0].privileges, on(['find']));
  await shop.command({ grantRolesToRole: 'r', roles: ['readWrite'] });
  await ann.insertOne({ _id: 3 });
  await shop.command({ revokeRolesFromRole: 'r', roles: [{ role: 'readWrite', db: 'shop' }] });
  await assert.rejects(ann.insertOne({ _id: 4 }), code(13));
  await assert.rejects(shop.command({ grantPrivilegesToRole: 'none', privileges: [] }), code(31));
  await assert.rejects(shop.command({ grantRolesToRole: 'r', roles: ['none'] }), code(31));
  await assert.rejects(shop.command({ grantPrivilegesToRole: 'r', privileges: [{ resource: { db: 'other', collection: '' }, actions: ['find'] }] }), code(2));
  await assert.rejects(shop.command({ grantPrivilegesToRole: 'r' }), code(40414));
  // who may not grant may not
  const own = (await mongoClient(t, url(server, 'ann', 'x', 'shop'))).db('shop');
  await assert.rejects(own.command({ grantPrivilegesToRole: 'r', privileges: on(['remove']) }), code(13));
  await assert.rejects(own.command({ grantRolesToRole: 'r', roles: ['dbOwner'] }), code(13));
});

test('a user that may not list collections is told the names of those it may do something with', async (t) => {
  const { client, server } = await mongo(t);
  const shop = client.db('shop');
  for (const name of ['one', 'two', 'three']) await shop.collection(name).insertOne({ _id: 1 });
  await shop.command({
    createRole: 'some', roles: [],
    privileges: [{ resource: { db: 'shop', collection: 'one' }, actions: ['find'] }, { resource: { db: 'shop', collection: 'three' }, actions: ['insert'] }],
  });
  await shop.command({ createUser: 'ann', pwd: 'x', roles: ['some'] });
  const ann = (await mongoClient(t, url(server, 'ann', 'x', 'shop'))).db('shop');
  const names = async (options) => (await ann.command({ listCollections: 1, ...options })).cursor.firstBatch.map(({ name }) => name).sort();
  assert.deepEqual(await names({ nameOnly: true, authorizedCollections: true }), ['one', 'three']);
  await assert.rejects(names({ nameOnly: true }), { code: 13 });
  await assert.rejects(names({ authorizedCollections: true }), { code: 13 });
  assert.deepEqual((await shop.command({ listCollections: 1, nameOnly: true, authorizedCollections: true })).cursor.firstBatch.length, 3);
});
