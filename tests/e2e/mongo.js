// Clients of the MongoDB API: the vendor's driver, and messages made by hand.
import { connect } from 'node:net';
import { once } from 'node:events';
import { BSON, MongoClient } from 'mongodb';
import { guest, Server } from './server.js';

// A client that is closed at the end of the test.
export async function mongoClient(t, url, options = {}) {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 15_000, ...options });
  guest(t, () => client.close());
  return client.connect();
}

// A server in development mode and a client of it.
export async function mongo(t, args = [], options = {}) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = await mongoClient(t, server.mongo, options);
  return { server, client, db: client.db('shop') };
}

export const portOf = (server) => Number(new URL(server.mongo).port);

const opMsg = 2013;

export function header(length, id, operation) {
  const bytes = Buffer.alloc(16);
  bytes.writeInt32LE(length, 0);
  bytes.writeInt32LE(id, 4);
  bytes.writeInt32LE(operation, 12);
  return bytes;
}

export function message(id, operation, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([header(16 + body.length, id, operation), body]);
}

export function le32(...numbers) {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, i) => bytes.writeUInt32LE(number >>> 0, 4 * i));
  return bytes;
}

export function command(id, document, flags = 0) {
  return message(id, opMsg, le32(flags), [0], BSON.serialize(document));
}

export function query(id, document, namespace = 'admin.$cmd') {
  return message(id, 2004, le32(0), Buffer.from(`${namespace}\0`), le32(0, -1), BSON.serialize(document));
}

// A socket that sends messages and reads replies.
export class Wire {
  static async open(t, server) {
    const wire = new Wire();
    wire.socket = connect(portOf(server), '127.0.0.1');
    wire.bytes = Buffer.alloc(0);
    // `once` would throw where a server that is killed resets the connection, which is a way of closing it
    wire.happens = (event) => new Promise((resolve) => wire.socket.once(event, resolve));
    wire.closed = wire.happens('close');
    wire.socket.on('data', (part) => (wire.bytes = Buffer.concat([wire.bytes, part])));
    wire.socket.on('error', () => {});
    wire.socket.setMaxListeners(0); // of every reply that is waited for
    t.after(() => wire.socket.destroy());
    await once(wire.socket, 'connect');
    return wire;
  }

  send(...messages) {
    this.socket.write(Buffer.concat(messages));
    return this;
  }

  // The next reply: its header's fields and its document. Undefined: the server closed instead.
  async reply() {
    const whole = () => this.bytes.length >= 16 && this.bytes.length >= this.bytes.readInt32LE(0);
    while (!whole()) {
      if (this.socket.closed || this.socket.readableEnded) return undefined;
      await Promise.race([this.happens('data'), this.happens('end'), this.closed]);
    }
    const length = this.bytes.readInt32LE(0);
    const bytes = this.bytes.subarray(0, length);
    this.bytes = this.bytes.subarray(length);
    const operation = bytes.readInt32LE(12);
    const at = operation === 1 ? 36 : 21;
    return {
      id: bytes.readInt32LE(4),
      responseTo: bytes.readInt32LE(8),
      operation,
      flags: operation === 2013 ? bytes.readUInt32LE(16) : 0,
      bytes,
      document: operation === 2012 ? undefined : BSON.deserialize(bytes.subarray(at), { promoteValues: true }),
    };
  }

  async ask(document, id = 1) {
    return (await this.send(command(id, document)).reply())?.document;
  }
}
