// The MongoDB API as PyMongo uses it.
import test from 'node:test';
import { claims, missing } from './python.js';
import { Server } from './server.js';

test('PyMongo', { skip: missing('pymongo') }, async (t) => {
  const server = await Server.start(t, ['--dev']);
  await claims(t, server, 'mongo.py', { mongo: server.mongo });
});
