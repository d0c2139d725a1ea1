// Several servers on the same nodes, for one test.
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import { Server } from './server.js';
import { Postgres } from './postgres.js';
import { freePort } from './port.js';
import { signed } from './rest.js';

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// On a connection of its own: one that is passed on already would ask the owner.
export async function probe(server, path) {
  const asked = request(`${server.url}${path}`, { agent: false }).end();
  const [answer] = await once(asked, 'response');
  let text = '';
  for await (const bytes of answer) text += bytes;
  return { status: answer.statusCode, text };
}

// Stops it as SIGSTOP does, which is over when each of its threads stands: until then it reads what comes.
export async function halt(server) {
  const tasks = `/proc/${server.process.pid}/task`;
  const stands = (id) => /^State:\s+T/m.test(readFileSync(`${tasks}/${id}/status`, 'utf8'));
  server.process.kill('SIGSTOP');
  while (!readdirSync(tasks).every(stands)) await pause(1);
}

export class Fleet {
  servers = new Map();

  constructor(t, url) {
    this.t = t;
    this.url = url;
  }

  // With the ports of before, if it ran before: it is the same server.
  async start(name, args = [], url = this.url) {
    const ports = this.servers.get(name)?.ports ?? { rest: await freePort(), peers: await freePort() };
    const server = await Server.start(this.t, ['--node', `root=${url}`, '--dev', '--rest', `127.0.0.1:${ports.rest}`,
      '--set', `servers.listen=127.0.0.1:${ports.peers}`, '--set', `servers.name=${name}`,
      '--set', `servers.endpoint=http://127.0.0.1:${ports.rest}/`, '--set', 'servers.region=here',
      '--set', 'servers.wait_ms=60s', ...args]);
    server.ports = ports;
    this.servers.set(name, server);
    return server;
  }

  async list(by) {
    const { json } = await signed(by, 'GET', '/_orrery/servers');
    return json?.servers ?? [];
  }

  // Waits until one of these servers says that this one owns.
  async owned(by, name) {
    await by.until(async () => {
      try {
        return (await this.list(by)).some((one) => one.owns && one.name === name && one.state === 'serving');
      } catch {
        return false;
      }
    });
  }
}

export const fleet = (t, ...names) => fleetWith(t, names, []);

export async function fleetWith(t, names, args) {
  const postgres = await Postgres.start(t);
  const made = new Fleet(t, postgres.url);
  made.postgres = postgres;
  for (const name of names) await made.start(name, args);
  // the one that owns knows of the others by its next beat
  const first = made.servers.get(names[0]);
  await first.until(async () => (await made.list(first)).length === names.length);
  return made;
}
