// A real server process for one test: started on a free port with nothing of the caller's
// settings, and gone at the end of the test whatever happens.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const binary = process.env.E2E_SERVER ?? join(root, 'build/orrery');
export const sanitized = process.env.E2E_SANITIZED === '1';
export const emulatorKey =
  'C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==';

// For a server whose memory is measured: AddressSanitizer keeps what was freed, 256 MB of it unless told otherwise.
export const measured = sanitized
  ? { env: { ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'quarantine_size_mb=1:thread_local_quarantine_size_kb=64'].filter(Boolean).join(':') } } : {};

const startLimitMs = 30_000;

// Servers leave word of themselves there, and commands look there: not where those of the caller do.
let state;
function stateDirectory() {
  if (!state) {
    state = mkdtempSync(join(tmpdir(), 'orrery-e2e-state-'));
    process.on('exit', () => rmSync(state, { recursive: true, force: true }));
  }
  return state;
}

// The environment without anybody's ORRERY_ settings.
export function environment(extra) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('ORRERY_'));
  return { ...Object.fromEntries(own), XDG_STATE_HOME: stateDirectory(), ...extra };
}

const running = new WeakMap(); // the servers of a test
const guests = new WeakMap(); // how clients of a test take their leave

// A client that says goodbye is heard while its server is there: left for later, some look for it for as long as they may.
export function guest(t, leave) {
  if (!guests.has(t)) guests.set(t, []);
  guests.get(t).push(leave);
  t.after(() => guestsLeave(t));
}

async function guestsLeave(t) {
  for (const leave of guests.get(t)?.splice(0) ?? []) await leave();
}

export function scratch(t) {
  const path = mkdtempSync(join(tmpdir(), 'orrery-e2e-'));
  // what is made first is taken away first: a server that still writes there would make the directory anew
  t.after(async () => {
    await guestsLeave(t);
    for (const server of running.get(t) ?? []) await server.stop('SIGKILL');
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

// Runs `orrery ...` to its end.
export async function orrery(args, { env = {}, uid } = {}) {
  const child = spawn(binary, args, { env: environment(env), uid, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { out: '', err: '' };
  child.stdout.on('data', (bytes) => (text.out += bytes));
  child.stderr.on('data', (bytes) => (text.err += bytes));
  const limit = setTimeout(() => child.kill('SIGKILL'), startLimitMs);
  const [code, signal] = await once(child, 'close');
  clearTimeout(limit);
  return { code, signal, ...text };
}

export class Server {
  // Starts `orrery serve` and waits until it says that it listens. Without a node it has memory:.
  static async start(t, args = [], { env = {} } = {}) {
    const server = new Server();
    const nodes = args.some((arg) => arg.startsWith('--node')) ? [] : ['--node', 'local=memory:'];
    const rest = args.includes('--rest') ? [] : ['--rest', '127.0.0.1:0'];
    const table = args.includes('--table') ? [] : ['--table', '127.0.0.1:0'];
    const mongo = args.includes('--mongo') ? [] : ['--mongo', '127.0.0.1:0'];
    const gremlin = args.includes('--gremlin') ? [] : ['--gremlin', '127.0.0.1:0'];
    const set = args.includes('--mongo-replica-set') ? [] : ['--mongo-replica-set', 'off'];
    server.begunMs = performance.now();
    server.process = spawn(binary, ['serve', ...nodes, ...rest, ...table, ...mongo, ...gremlin, ...set, ...args], {
      env: environment(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    server.out = '';
    server.err = '';
    server.process.stdout.on('data', (bytes) => (server.out += bytes));
    server.process.stderr.on('data', (bytes) => (server.err += bytes));
    server.ended = once(server.process, 'close').then(([code, signal]) => ({ code, signal }));
    running.set(t, [...(running.get(t) ?? []), server]);
    t.after(async () => {
      await guestsLeave(t);
      server.process.kill('SIGKILL');
    });
    await server.until(() => server.out.includes('is ready.'));
    server.readyMs = performance.now() - server.begunMs; // it listens before it says so
    server.port = Number(/REST +https?:\/\/\S+:(\d+)\//.exec(server.out)?.[1]); // NaN: off
    server.tablePort = Number(/TableEndpoint=https?:\/\/\S+:(\d+)\//.exec(server.out)?.[1]); // NaN: off
    server.mongo = /MongoDB +(mongodb:\S+)\/\S*\n/.exec(server.out)?.[1]; // undefined: off
    server.gremlinPort = Number(/Gremlin +wss?:\/\/\S+:(\d+)\//.exec(server.out)?.[1]); // NaN: off
    server.url = `http://127.0.0.1:${server.port}`;
    return server;
  }

  // Waits for something the server will show in its output or behaviour.
  async until(condition) {
    const limit = performance.now() + startLimitMs;
    while (!(await condition())) {
      if (this.process.exitCode !== null || this.process.signalCode !== null)
        throw new Error(`the server ended with ${this.process.exitCode}: ${this.err}`);
      if (performance.now() > limit) throw new Error(`the server did not get there: ${this.err}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  // The log lines so far; only for a server that logs JSON, as it does without a terminal.
  events() {
    return this.err.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  }

  get(path, options) {
    return fetch(this.url + path, options);
  }

  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    return this.ended;
  }

  residentBytes() {
    const pages = Number(readFileSync(`/proc/${this.process.pid}/statm`, 'utf8').split(' ')[1]);
    return pages * 4096;
  }

  // User and system time in seconds, from clock ticks of 10 ms.
  cpuSeconds() {
    const fields = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }
}
