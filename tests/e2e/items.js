// A server with one database and one container, for the tests of items.
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

export async function shop(t, definition = {}, { args = [], client: options = {}, create = {} } = {}) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, ...options });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container, resource } = await database.containers.create(
    { id: 'orders', partitionKey: '/tenant', ...definition },
    create,
  );
  const docs = '/dbs/shop/colls/orders/docs';
  // With the partition key as a header, if one is given.
  const send = (method, path, { key, headers = {}, body, sign } = {}) =>
    signed(server, method, path, {
      headers: {
        ...(key === undefined ? {} : { 'x-ms-documentdb-partitionkey': JSON.stringify(key) }),
        ...headers,
      },
      body,
      sign,
    });
  return { server, client, database, container, resource, docs, send };
}
