// Clients of the Table API for one server: the account of the storage emulator in the path, as
// Azurite's connection strings have it, or another account.
import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { TableClient, TableServiceClient } from '@azure/data-tables';
import { Server } from './server.js';

export const storageKey =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
export const storageAccount = 'devstoreaccount1';

export function connectionString(server, { account = storageAccount, key = storageKey, path = `/${account}` } = {}) {
  return `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};` +
    `TableEndpoint=http://127.0.0.1:${server.tablePort}${path};`;
}

const plain = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

export function serviceClient(server, options = {}) {
  return TableServiceClient.fromConnectionString(connectionString(server, options), { ...plain, ...options.client });
}

export function tableClient(server, name, options = {}) {
  return TableClient.fromConnectionString(connectionString(server, options), name, { ...plain, ...options.client });
}

// A server with one table.
export async function tables(t, { args = [], name = 'people', client } = {}) {
  const rich = ['--set', 'throughput.ru_default=100000', '--set', 'partition.ru_max=100000'];
  const server = await Server.start(t, ['--dev', ...rich, ...args]);
  const table = tableClient(server, name, { client });
  await table.createTable();
  return { server, table, service: serviceClient(server, { client }) };
}

export async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

// The error a call ends with, as clients see it.
export async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return { status: error.statusCode, code: error.details?.odataError?.code ?? error.code, message: error.message };
  }
  throw new Error('it was not refused');
}

// Sends one request signed by hand, as other client libraries do: { status, headers, text, json }.
// `scheme` is SharedKeyLite or SharedKey; path is that behind the account.
export function sendTable(server, method, path, options = {}) {
  const { account = storageAccount, key = storageKey, scheme = 'SharedKeyLite', headers = {}, body } = options;
  const date = options.date ?? new Date().toUTCString();
  const whole = options.whole ?? `/${account}${path}`;
  const comp = /[?&]comp=([^&]*)/.exec(whole);
  const resource = `/${account}${whole.split('?')[0]}${comp ? `?comp=${comp[1]}` : ''}`;
  const type = headers['content-type'] ?? '';
  const text = scheme === 'SharedKey' ? `${method}\n\n${type}\n${date}\n${resource}` : `${date}\n${resource}`;
  const sig = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  const authorization = options.authorization === undefined ? `${scheme} ${account}:${sig}` : options.authorization;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: server.tablePort,
        method,
        path: whole,
        headers: {
          'x-ms-date': date,
          'x-ms-version': '2019-02-02',
          accept: 'application/json;odata=minimalmetadata',
          ...(authorization ? { authorization } : {}),
          ...headers,
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          let json;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({ status: response.statusCode, headers: response.headers, text, json, code: json?.['odata.error']?.code });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  });
}
