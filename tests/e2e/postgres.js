// A PostgreSQL server of one test's own, and a stand-in for one of a version nobody supports.
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
    const postgres = Postgres.#place(t);
    postgres.#run('initdb', ['-D', join(postgres.directory, 'data'), '-U', 'orrery', '-A', 'trust', '-E', 'UTF8',
      '--locale=C', '--no-sync']);
    await postgres.resume();
    return postgres;
  }

  // A server that follows another by streaming; commits of the other wait for it if it is named there.
  static async standby(t, of, name) {
    const postgres = Postgres.#place(t);
    await postgres.follow(of, name);
    return postgres;
  }

  static #place(t) {
    const postgres = new Postgres();
    postgres.directory = mkdtempSync(join(tmpdir(), 'orrery-pg-'));
    postgres.identity = unprivileged();
    if (asRoot) chownSync(postgres.directory, postgres.identity.uid, postgres.identity.gid);
    postgres.url = `postgresql://orrery@/postgres?host=${encodeURIComponent(postgres.directory)}`;
    t.after(async () => {
      await postgres.stop('SIGQUIT');
      rmSync(postgres.directory, { recursive: true, force: true });
    });
    return postgres;
  }

  #run(program, args) {
    return execFileSync(join(programs, program), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.directory, ...this.identity }).trim();
  }

  // Made anew from another server, at its own place.
  async follow(of, name) {
    rmSync(join(this.directory, 'data'), { recursive: true, force: true });
    this.#run('pg_basebackup', ['-D', join(this.directory, 'data'), '-R', '-c', 'fast', '--no-sync',
      '-d', `host=${of.directory} user=orrery application_name=${name}`]);
    await this.resume();
  }

  // The first field of the first row.
  query(sql) {
    return this.#run('psql', ['-h', this.directory, '-U', 'orrery', '-d', 'postgres', '-qAtX', '-c', sql]);
  }

  // Sets something while the server runs, and waits until it holds.
  async set(name, value) {
    this.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    this.query('SELECT pg_reload_conf()');
    while (this.query(`SHOW ${name}`) !== value) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  // Commits wait for the standby of this name from now on.
  async synchronous(name) {
    await this.set('synchronous_standby_names', name);
    while (name && this.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state <> 'async'") === '0')
      await new Promise((resolve) => setTimeout(resolve, 10));
  }

  promote() {
    this.#run('pg_ctl', ['promote', '-D', join(this.directory, 'data')]);
  }

  async resume() {
    this.process = spawn(join(programs, 'postgres'), ['-D', join(this.directory, 'data'), '-k', this.directory,
      '-c', 'listen_addresses=', '-c', 'fsync=off'], { cwd: this.directory, stdio: ['ignore', 'ignore', 'pipe'],
      ...this.identity });
    let log = '';
    this.process.stderr.on('data', (bytes) => (log += bytes));
    while (!/ready to accept (read-only )?connections/.test(log)) {
      if (this.process.exitCode !== null) throw new Error(log);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  // All of it stands still, as if its machine did. The process that makes the others has to stand before they are counted: one that it made meanwhile
  // would go on answering.
  async hang() {
    const { pid } = this.process;
    this.process.kill('SIGSTOP');
    while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await new Promise((resolve) => setTimeout(resolve, 1));
    this.#children = execFileSync('pgrep', ['-P', `${pid}`], { encoding: 'utf8' }).trim().split('\n').map(Number);
    this.#signal('SIGSTOP');
  }

  goOn() {
    this.#signal('SIGCONT');
    this.process.kill('SIGCONT');
  }

  #children = [];

  #signal(signal) {
    for (const pid of this.#children) {
      try { process.kill(pid, signal); } catch { /* it has ended */ }
    }
  }

  async stop(signal = 'SIGINT') {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'close');
    this.process.kill(signal);
    this.goOn(); // one that a test has stopped, and then failed, would never hear of it
    await ended;
  }
}

// The URL of a node that any of these servers may be the primary of.
export function urlOf(...servers) {
  return `postgresql://orrery@/postgres?host=${servers.map((server) => encodeURIComponent(server.directory)).join(',')}`;
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
