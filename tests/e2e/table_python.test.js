// The Table API as the vendor's Python client uses it.
import test from 'node:test';
import { claims, missing } from './python.js';
import { connectionString, storageAccount, storageKey, tables } from './tables.js';

test('azure.data.tables, blocking and asynchronous', { skip: missing('azure.data.tables', 'aiohttp') }, async (t) => {
  const { server } = await tables(t);
  await claims(t, server, 'tables.py', {
    tables: connectionString(server),
    tables_url: `http://127.0.0.1:${server.tablePort}/${storageAccount}`,
    account: storageAccount,
    storage_key: storageKey,
  });
});
