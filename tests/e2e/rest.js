// Requests as other client libraries send them: signed by hand, sent with fetch.
import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { emulatorKey } from './server.js';

const feeds = new Set([
  'dbs', 'colls', 'docs', 'users', 'permissions', 'sprocs', 'triggers', 'udfs', 'conflicts',
  'pkranges', 'offers', 'clientencryptionkeys',
]);

// What is signed for a path: the type, and the link of the resource or of the feed's parent.
export function signedParts(path) {
  const segments = path.split('?')[0].split('/').filter((segment) => segment !== '');
  if (segments[0] === '_orrery') return { type: '_orrery', link: segments.slice(1).map(decodeURIComponent).join('/') };
  const names = segments.map(decodeURIComponent);
  if (names.at(-2) === 'operations') return { type: 'partitionkey', link: names.slice(0, -2).join('/') };
  if (names.length % 2 === 1 && feeds.has(names.at(-1)))
    return { type: names.at(-1), link: names.slice(0, -1).join('/') };
  if (names.length === 0) return { type: '', link: '' };
  return { type: names.at(-2), link: names.join('/') };
}

export function signature(key, method, { type, link }, date) {
  const payload = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  return createHmac('sha256', Buffer.from(key, 'base64')).update(payload).digest('base64');
}

export function master(sig) {
  return encodeURIComponent(`type=master&ver=1.0&sig=${sig}`);
}

// Sends one request and gives { status, headers, bytes, text, json }; body is another name of json.
// `account` is a path prefix, `authorization` replaces the signature, `sign` what is signed, `date`
// the time of signing, `rid` the one that is signed where a path is made of _rids, `agent` whose connections it takes.
export async function signed(server, method, path, options = {}) {
  const { key = emulatorKey, headers = {}, body, account, authorization, host } = options;
  const date = options.date ?? new Date().toUTCString();
  const parts = signedParts(path);
  if (options.rid) parts.link = options.rid.toLowerCase();
  const sig = signature(key, method, options.sign ?? parts, date);
  const answer = await send(server, method, (account ? `/${account}` : '') + path, {
    host,
    agent: options.agent,
    headers: { 'x-ms-date': date, authorization: authorization ?? master(sig), 'x-ms-version': '2020-07-15', ...headers },
    body: body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  return answer;
}

// The path goes out as it is written here; fetch would tidy it up.
export function send(server, method, path, { headers = {}, body, host, agent } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port: server.port, agent, method, path, headers: { ...headers, ...(host ? { host } : {}) } },
      (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString('utf8');
          let json;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({ status: response.statusCode, headers: response.headers, bytes, text, json, body: json });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
