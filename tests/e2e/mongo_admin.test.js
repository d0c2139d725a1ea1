// Commands of administrators and tools, through the driver.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mongo } from './mongo.js';

const code = (number, text) => (error) => {
  assert.equal(error.code, number, error.message);
  if (text) assert.match(error.message, text);
  return true;
};

test('what Compass and mongosh ask at the start is answered, and Atlas is denied', async (t) => {
  const { client } = await mongo(t);
  const admin = client.db('admin');
  await assert.rejects(admin.command({ atlasVersion: 1 }), code(59));
  await assert.rejects(admin.command({ getParameter: 'foo' }), code(72));
  assert.equal((await admin.command({ getParameter: 1, featureCompatibilityVersion: 1 })).featureCompatibilityVersion.version, '7.0');
  assert.deepEqual((await admin.command({ getLog: 'startupWarnings' })).log, []);
  const status = await admin.command({ connectionStatus: 1, showPrivileges: true });
  assert.deepEqual(status.authInfo, { authenticatedUsers: [], authenticatedUserRoles: [], authenticatedUserPrivileges: [] });
  assert.ok(Number.isInteger((await admin.command({ serverStatus: 1 })).uptime));
  assert.equal((await admin.command({ hostInfo: 1 })).system.cpuAddrSize, 64);
});

test('settings of a server are told as they are, and cannot be made others', async (t) => {
  const { client, db } = await mongo(t);
  const admin = client.db('admin');
  assert.deepEqual((await admin.command({ getDefaultRWConcern: 1 })).defaultWriteConcern, { w: 'majority', wtimeout: 0 });
  await admin.command({ setFeatureCompatibilityVersion: '7.0' });
  await assert.rejects(admin.command({ setFeatureCompatibilityVersion: '6.0' }), code(2));
  assert.deepEqual(await db.command({ profile: -1 }).then(({ was, slowms }) => [was, slowms]), [0, 100]);
  await assert.rejects(db.command({ profile: 2 }), code(238));
  await assert.rejects(db.command({ profile: 7 }), code(2));
  await assert.rejects(admin.command({ replSetGetStatus: 1 }), code(76));
  for (const name of ['shutdown', 'setParameter', 'logRotate', 'top', 'setDefaultRWConcern']) {
    await assert.rejects(admin.command({ [name]: 1 }), code(238), name);
  }
});
