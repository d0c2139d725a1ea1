// Who is signed in, and requests signed as that one.
//
// A key is imported into WebCrypto as one that cannot be read out again, and lives in this variable alone: not in storage, not
// in a cookie, not in the address. A reload forgets it.

export const session = {
  about: null, // about.json of the server
  account: 'default',
  prefix: '', // '/team-a' in front of every path
  key: null, // a CryptoKey
  token: null, // a resource token, instead of a key
  scope: null, // { database, container } that a token is for
  readOnly: false,
  owner: false, // of the default account: administers the server
  signedIn: false,
};

export class RequestError extends Error {
  constructor(status, message, details = {}) {
    super(message);
    this.status = status;
    Object.assign(this, details);
  }

  // One line for people.
  get title() {
    if (this.status === 0) return 'The server does not answer';
    if (this.status === 401) return 'The key is wrong (401)';
    if (this.status === 403) return 'Not allowed (403)';
    if (this.status === 404) return 'Not found (404)';
    if (this.status === 409) return 'Conflict (409)';
    if (this.status === 412) return 'Changed by somebody else meanwhile (412)';
    if (this.status === 413) return 'Too large (413)';
    if (this.status === 429) return 'Too many requests (429): the throughput is spent';
    return `${this.code ?? 'Error'} (${this.status})`;
  }
}

const feeds = new Set(['dbs', 'colls', 'docs', 'users', 'permissions', 'sprocs', 'triggers', 'udfs', 'conflicts', 'pkranges', 'offers']);

// What is signed of a path: the type of the resource, and its link or that of the feed's parent.
function signedParts(path) {
  const names = path.split('?')[0].split('/').filter(Boolean).map(decodeURIComponent);
  if (names[0] === '_orrery') return ['_orrery', names.slice(1).join('/')];
  if (names.length % 2 === 1 && feeds.has(names.at(-1))) return [names.at(-1), names.slice(0, -1).join('/')];
  return names.length ? [names.at(-2), names.join('/')] : ['', ''];
}

const encoder = new TextEncoder();

async function authorization(who, method, path, date) {
  if (who.token) return encodeURIComponent(who.token);
  const [type, link] = signedParts(path);
  const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const sig = new Uint8Array(await crypto.subtle.sign('HMAC', who.key, encoder.encode(text)));
  return encodeURIComponent(`type=master&ver=1.0&sig=${btoa(String.fromCharCode(...sig))}`);
}

const watchers = new Set();

// Calls f(true) when the server stops answering, f(false) when it answers again.
export function onLost(f) {
  watchers.add(f);
}
let lost = false;
function setLost(is) {
  if (lost === is) return;
  lost = is;
  for (const f of watchers) f(is);
}

function failure(answer, text) {
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    // not ours: the text is all there is
  }
  const message = (body.message ?? text ?? '').split('\r\nActivityId:')[0].trim() || `The server answered ${answer.status}.`;
  return new RequestError(answer.status, message, {
    code: body.code,
    substatus: Number(answer.headers.get('x-ms-substatus') ?? 0),
    retryAfterMs: Number(answer.headers.get('x-ms-retry-after-ms') ?? 0),
    activityId: answer.headers.get('x-ms-activity-id'),
    charge: Number(answer.headers.get('x-ms-request-charge') ?? 0),
  });
}

// One request. Gives { status, json, headers, charge, durationMs, continuation, etag }; throws a RequestError.
export const request = (method, path, options) => requestAs(session, method, path, options);

async function requestAs(who, method, path, { body, headers = {}, signal } = {}) {
  const date = new Date().toUTCString();
  const begun = performance.now();
  let answer, text;
  try {
    answer = await fetch(who.prefix + path, {
      method,
      signal,
      cache: 'no-store',
      headers: {
        authorization: await authorization(who, method, path, date),
        'x-ms-date': date,
        'x-ms-version': '2020-07-15',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    });
    text = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    setLost(true);
    throw new RequestError(0, 'Nothing answers at this address. Is the server still running?');
  }
  setLost(false);
  if (!answer.ok && answer.status !== 304) throw failure(answer, text);
  return {
    status: answer.status,
    text,
    json: text && answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined,
    headers: answer.headers,
    charge: Number(answer.headers.get('x-ms-request-charge') ?? 0),
    durationMs: performance.now() - begun,
    serverMs: Number(answer.headers.get('x-ms-request-duration-ms') ?? 0),
    continuation: answer.headers.get('x-ms-continuation'),
    etag: answer.headers.get('etag'),
  };
}

const name = encodeURIComponent;

// Administration: /_orrery/...
export const admin = (method, path, options) => request(method, `/_orrery/${path}`, options);

export const containerPath = (database, container) => `/dbs/${name(database)}/colls/${name(container)}`;
export const adminContainer = (database, container) => `containers/${name(database)}/${name(container)}`;

export async function about() {
  session.about ??= await (await fetch('about.json', { cache: 'no-store' })).json();
  return session.about;
}

// Whether the server is there again: asked while it is lost.
export async function ping() {
  try {
    await fetch('about.json', { cache: 'no-store' });
    setLost(false);
  } catch {
    setLost(true);
  }
}

async function imported(secret) {
  let raw;
  try {
    raw = Uint8Array.from(atob(secret.trim()), (c) => c.charCodeAt(0));
  } catch {
    throw new RequestError(401, 'This is no key: a key is base64 text, a resource token begins with type=resource.');
  }
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  raw.fill(0);
  return key;
}

// Requests of another account, for what is tried out in one that is thrown away.
export async function signed(account, secret) {
  const who = { prefix: `/${name(account)}`, key: await imported(secret) };
  return (method, path, options) => requestAs(who, method, path, options);
}

export async function signIn({ account, secret, database, container }) {
  if (!globalThis.crypto?.subtle)
    throw new RequestError(0, 'Keys are used only where nobody reads along: open the portal by https, or as localhost.');
  const isToken = /^type=resource&/.test(secret) || /^type%3[dD]resource/.test(secret);
  session.account = account || 'default';
  session.prefix = session.account === 'default' ? '' : `/${name(session.account)}`;
  session.key = session.token = session.scope = null;
  if (isToken) {
    if (!database || !container) throw new RequestError(400, 'A resource token opens one container: say which.');
    session.token = secret.startsWith('type%3') ? decodeURIComponent(secret) : secret;
    session.scope = { database, container };
    await request('GET', containerPath(database, container));
    Object.assign(session, { readOnly: false, owner: false, signedIn: true });
    return;
  }
  session.key = await imported(secret);
  const { json } = await admin('GET', 'session');
  Object.assign(session, { readOnly: json.readOnly, owner: json.owner, signedIn: true });
}

export function signOut() {
  Object.assign(session, { key: null, token: null, scope: null, signedIn: false, readOnly: false, owner: false, prefix: '', account: 'default' });
}
