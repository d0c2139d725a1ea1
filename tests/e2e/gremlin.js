// Clients of the Gremlin API: the npm driver in several versions side by side, and WebSocket frames made by hand.
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import gremlin34 from 'gremlin34';
import gremlin35 from 'gremlin35';
import gremlin36 from 'gremlin36';
import gremlin37 from 'gremlin';
import gremlin38 from 'gremlin38';
import { emulatorKey, Server } from './server.js';
import { signed } from './rest.js';

export const drivers = { 3.4: gremlin34, 3.5: gremlin35, 3.6: gremlin36, 3.7: gremlin37, 3.8: gremlin38 };
export const versions = Object.keys(drivers);
export const v2 = 'application/vnd.gremlin-v2.0+json';
export const v3 = 'application/vnd.gremlin-v3.0+json';
export const binary = 'application/vnd.graphbinary-v1.0';

export const url = (server, path = '/gremlin') => `ws://127.0.0.1:${server.gremlinPort}${path}`;

export function authenticator(version, { database = 'graphs', graph = 'g', key = emulatorKey } = {}) {
  return new drivers[version].driver.auth.PlainTextSaslAuthenticator(`/dbs/${database}/colls/${graph}`, key);
}

// A client for scripts, closed at the end of the test.
export async function client(t, server, version = '3.7', options = {}) {
  const { path, ...rest } = options;
  const made = new drivers[version].driver.Client(url(server, path), { traversalSource: 'g', mimeType: v2, ...rest });
  t.after(() => made.close().catch(() => {}));
  await made.open();
  return made;
}

// A traversal source over a connection for bytecode.
export function source(t, server, version = '3.7', options = {}) {
  const { driver, process } = drivers[version];
  const connection = new driver.DriverRemoteConnection(url(server, options.path), { traversalSource: 'g', ...options });
  t.after(() => connection.close().catch(() => {}));
  return process.AnonymousTraversalSource.traversal().withRemote(connection);
}

// A server with a partitioned container as a graph; with `plain` the default graph is there before it, so that whoever comes without
// credentials is let in there.
export async function graph(t, args = [], { throughput = '4000', partitionKey = '/pk', plain = false } = {}) {
  const server = await Server.start(t, ['--dev', ...args]);
  if (plain) await (await client(t, server)).submit('g.V().count()');
  await container(server, 'graphs', 'g', { throughput, partitionKey });
  return server;
}

export async function container(server, database, id, { throughput = '4000', partitionKey = '/pk', ...options } = {}) {
  await signed(server, 'POST', '/dbs', { body: { id: database }, ...options });
  const made = await signed(server, 'POST', `/dbs/${database}/colls`, {
    headers: partitionKey ? { 'x-ms-offer-throughput': throughput } : {},
    body: { id, ...(partitionKey ? { partitionKey: { paths: [partitionKey], kind: 'Hash', version: 2 } } : {}) }, ...options,
  });
  if (made.status !== 201) throw new Error(made.text);
}

export const failure = (promise) => promise.then((value) => { throw new Error(`no error but ${JSON.stringify(value)}`); }, (error) => error);
export const attribute = (error, name) =>
  (error.statusAttributes instanceof Map ? error.statusAttributes.get(name) : error.statusAttributes?.[name]);

// --- Frames by hand ------------------------------------------------------------------------------

export const opcodes = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

export function frame(opcode, payload, { fin = true, masked = true } = {}) {
  const bytes = Buffer.from(payload);
  const length = bytes.length < 126 ? Buffer.from([bytes.length]) : bytes.length < 65536 ? Buffer.alloc(3) : Buffer.alloc(9);
  if (length.length === 3) { length[0] = 126; length.writeUInt16BE(bytes.length, 1); }
  if (length.length === 9) { length[0] = 127; length.writeBigUInt64BE(BigInt(bytes.length), 1); }
  if (masked) length[0] |= 0x80;
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  const body = masked ? Buffer.from(bytes.map((byte, i) => byte ^ mask[i % 4])) : bytes;
  return Buffer.concat([Buffer.from([(fin ? 0x80 : 0) | opcode]), length, mask, body]);
}

// A request as a binary frame has it: the length of the mime type, the mime type, the text.
export const binaryRequest = (request, mime = v2) =>
  Buffer.concat([Buffer.from([mime.length]), Buffer.from(mime), Buffer.from(JSON.stringify(request))]);

export const evaluation = (script, args = {}, more = {}) =>
  ({ requestId: randomUUID(), op: 'eval', processor: '', args: { gremlin: script, language: 'gremlin-groovy', ...args }, ...more });

export class Wire {
  static async open(t, server, { path = '/gremlin', headers = {} } = {}) {
    const wire = new Wire();
    wire.socket = connect(server.gremlinPort, '127.0.0.1');
    wire.bytes = Buffer.alloc(0);
    wire.frames = [];
    wire.closed = once(wire.socket, 'close');
    wire.socket.on('error', () => {});
    wire.socket.on('data', (part) => (wire.bytes = Buffer.concat([wire.bytes, part])));
    t.after(() => wire.socket.destroy());
    const lines = { Host: `127.0.0.1:${server.gremlinPort}`, Upgrade: 'websocket', Connection: 'Upgrade',
      'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', ...headers };
    wire.socket.write(`GET ${path} HTTP/1.1\r\n${Object.entries(lines).filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
    while (!wire.bytes.includes('\r\n\r\n')) await Promise.race([once(wire.socket, 'data'), wire.closed]);
    const end = wire.bytes.indexOf('\r\n\r\n') + 4;
    wire.head = wire.bytes.subarray(0, end).toString();
    wire.bytes = wire.bytes.subarray(end);
    return wire;
  }

  send(...frames) {
    for (const each of frames) this.socket.write(each);
    return this;
  }

  text(request) {
    return this.send(frame(opcodes.text, JSON.stringify(request)));
  }

  take() {
    const [first, second] = this.bytes;
    let [length, at] = [second & 0x7f, 2];
    if (this.bytes.length < 2) return undefined;
    if (length === 126) { if (this.bytes.length < 4) return undefined; length = this.bytes.readUInt16BE(2); at = 4; }
    else if (length === 127) { if (this.bytes.length < 10) return undefined; length = Number(this.bytes.readBigUInt64BE(2)); at = 10; }
    if (this.bytes.length < at + length) return undefined;
    const payload = this.bytes.subarray(at, at + length);
    this.bytes = this.bytes.subarray(at + length);
    return { opcode: first & 0x0f, fin: (first & 0x80) !== 0, payload };
  }

  // The next frame; undefined: the connection is closed.
  async next() {
    for (;;) {
      const found = this.take();
      if (found) return found;
      if (this.socket.destroyed || this.socket.readableEnded) return undefined;
      await Promise.race([once(this.socket, 'data').catch(() => {}), this.closed]);
    }
  }

  // The next answer, as JSON.
  async answer() {
    const { opcode, payload } = await this.next();
    return { opcode, ...JSON.parse(payload.toString()) };
  }

  // All answers to one request.
  async ask(request) {
    this.text(request);
    const answers = [];
    do answers.push(await this.answer());
    while (answers.at(-1).status.code === 206);
    return answers;
  }
}

export const closeCode = (found) => found?.opcode === opcodes.close && found.payload.readUInt16BE(0);
