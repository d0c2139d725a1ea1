// Requests of the NoSQL API made by hand, as clients other than the JavaScript one send them.
import { createHmac } from 'node:crypto';
import http from 'node:http';
import { emulatorKey } from './server.js';

// What is signed: the type of the resource, and its own link or, of a feed, its parent's.
function resourceOf(path) {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (parts.at(-2) === 'operations') return ['partitionkey', parts.slice(0, -2).join('/')];
  if (parts.length % 2) return [parts.at(-1), parts.slice(0, -1).join('/')];
  return [parts.at(-2) ?? '', parts.join('/')];
}

export function token(method, path, date, key = emulatorKey, rid = undefined) {
  const [type, name] = resourceOf(path);
  const link = rid ? rid.toLowerCase() : name; // of a path made of _rids the last one is signed
  const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const sig = createHmac('sha256', Buffer.from(key, 'base64')).update(text, 'utf8').digest('base64');
  return encodeURIComponent(`type=master&ver=1.0&sig=${sig}`);
}

// Sends a signed request; a body that is neither text nor bytes goes as JSON. Resolves to
// { status, headers, bytes, text, body }, with body parsed if it is JSON.
export function signed(server, method, path, { headers = {}, body, key, rid } = {}) {
  const date = new Date().toUTCString();
  const payload =
    body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        host: '127.0.0.1',
        port: server.port,
        method,
        path,
        headers: {
          'x-ms-date': date,
          'x-ms-version': '2020-07-15',
          authorization: token(method, path, date, key, rid),
          ...(payload === undefined ? {} : { 'content-length': Buffer.byteLength(payload) }),
          ...headers,
        },
      },
      (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString('utf8');
          let parsed;
          try {
            parsed = JSON.parse(text);
          } catch {
            parsed = undefined;
          }
          resolve({ status: response.statusCode, headers: response.headers, bytes, text, body: parsed });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}
