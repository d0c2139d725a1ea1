// A PostgreSQL server of one test's own, and a stand-in for one of a version nobody supports.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const programs = execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();
const asRoot = process.getuid() === 0;

// PostgreSQL refuses to run as root: then it runs as nobody.
function unprivileged() {
  if (!asRoot) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export class Postgres {
  static async start(t) {
    const postgres = new Postgres();
    postgres.directory = mkdtempSync(join(tmpdir(), 'orrery-pg-'));
    postgres.identity = unprivileged();
    if (asRoot) chownSync(postgres.directory, postgres.identity.uid, postgres.identity.gid);
    execFileSync(join(programs, 'initdb'), ['-D', join(postgres.directory, 'data'), '-U', 'orrery', '-A', 'trust',
      '-E', 'UTF8', '--locale=C', '--no-sync'], { stdio: 'ignore', cwd: postgres.directory, ...postgres.identity });
    t.after(async () => {
      await postgres.stop('SIGQUIT');
      rmSync(postgres.directory, { recursive: true, force: true });
    });
    await postgres.resume();
    postgres.url = `postgresql://orrery@/postgres?host=${encodeURIComponent(postgres.directory)}`;
    return postgres;
  }

  async resume() {
    this.process = spawn(join(programs, 'postgres'), ['-D', join(this.directory, 'data'), '-k', this.directory,
      '-c', 'listen_addresses=', '-c', 'fsync=off'], { cwd: this.directory, stdio: ['ignore', 'ignore', 'pipe'],
      ...this.identity });
    let log = '';
    this.process.stderr.on('data', (bytes) => (log += bytes));
    while (!log.includes('ready to accept connections')) {
      if (this.process.exitCode !== null) throw new Error(log);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async stop(signal = 'SIGINT') {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'close');
    this.process.kill(signal);
    await ended;
  }
}

// Answers the start of a session as a server of that version would, and nothing more.
export async function oldPostgres(t, version) {
  const message = (type, ...parts) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      if (bytes.length === 8) return socket.write('N'); // no TLS, no GSSAPI
      if (bytes[0] !== 0) return; // a query: never answered
      socket.write(Buffer.concat([
        message('R', [0, 0, 0, 0]),
        message('S', `server_version\0${version}\0`),
        message('S', 'standard_conforming_strings\0on\0'),
        message('S', 'client_encoding\0UTF8\0'),
        message('Z', 'I'),
      ]));
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return `postgresql://orrery@127.0.0.1:${server.address().port}/postgres`;
}
