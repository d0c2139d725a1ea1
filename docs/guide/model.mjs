// A scale model for one scenario: a server with small limits, containers in it, load that comes whether it is
// answered or not, and the orrery command, all of it told as it happens.
import { createRequire } from 'node:module';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, emulatorKey, orrery } from '../../tests/e2e/server.js';

const { CosmosClient } = createRequire(new URL('../../tests/e2e/package.json', import.meta.url))('@azure/cosmos');

const width = 100;
const database = 'guide';

// A physical partition of the model gives 200 RU/s, one of the service 10,000: the scale is 1 to 50.
export const partitionRu = 200;

const settings = {
  'partition.ru_max': partitionRu,
  'throughput.burst_seconds': 0, // what is not used is not saved: the model would live on it for minutes
  'heat.pause_ms': '200ms',
  'advise.per_second_max': 10000, // record every operation, not a sample
  'query.merge': 'server', // a library that merges by itself does not tell all that its ranges were charged
  // Where size is not the point it must not be foretold either: seconds say nothing of years.
  'partition.bytes_max': '1000000G',
  'logical_partition.bytes_max': '1000000G',
};

// Numbers that are the same in every run.
export function dice(seed) {
  let state = seed;
  const roll = (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * limit);
  };
  for (let i = 0; i < 8; i++) roll(2); // the first ones follow the seed
  return roll;
}

// With a space that no line ends at.
export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u00a0%`;
export const padding = (bytes) => 'x'.repeat(bytes);
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The same load once more, for a container that holds what came of the first.
export function again(operations) {
  return operations.map((operation) =>
    operation.create ? { ...operation, create: { ...operation.create, id: `again-${operation.create.id}` } } : operation,
  );
}

// A query by the values of some properties.
export function ask(values) {
  const names = Object.keys(values);
  return {
    query: {
      query: `SELECT TOP 5 * FROM c WHERE ${names.map((name) => `c.${name} = @${name}`).join(' AND ')}`,
      parameters: names.map((name) => ({ name: `@${name}`, value: values[name] })),
    },
    where: Object.fromEntries(names.map((name) => [`/${name}`, values[name]])),
  };
}

function wrapped(text, indent) {
  const lines = [];
  let line = '';
  for (const word of text.split(/[ \n]+/).filter(Boolean)) {
    if (line && indent.length + line.length + 1 + word.length > width) {
      lines.push(indent + line);
      line = '';
    }
    line += (line ? ' ' : '') + word;
  }
  return [...lines, indent + line].join('\n');
}

export class Model {
  // `write` takes the story; logs and pictures are kept in `directory`, if one is given.
  constructor({ write = (text) => process.stdout.write(text), directory } = {}) {
    this.write = write;
    this.endings = [];
    this.directory = directory ?? mkdtempSync(join(tmpdir(), 'orrery-guide-'));
    if (directory) mkdirSync(directory, { recursive: true });
    else this.after(() => rmSync(this.directory, { recursive: true, force: true }));
  }

  after(ending) {
    this.endings.unshift(ending);
  }

  async end() {
    for (const ending of this.endings) await ending();
    this.endings = [];
  }

  // --- Telling -------------------------------------------------------------------------------

  chapter(text) {
    this.write(`\n${text}\n${'-'.repeat(text.length)}\n\n`);
  }

  say(text) {
    this.write(`${wrapped(text, '')}\n`);
  }

  // --- The server ----------------------------------------------------------------------------

  // more: further arguments, as nodes.
  async start(extra = {}, more = []) {
    const args = Object.entries({ ...settings, ...extra }).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    this.server = await Server.start(this, ['--dev', ...args, ...more]);
    // Who is refused is counted, and does not come again; but what is only being laid out does.
    this.client = this.connect({ maxRetryAttemptCount: 0 });
    this.patient = this.connect({ maxRetryAttemptCount: 1000, maxWaitTimeInSeconds: 30 });
    this.database = (await this.client.databases.create({ id: database })).database;
  }

  connect(retryOptions) {
    const client = new CosmosClient({ endpoint: this.server.url, key: emulatorKey, connectionPolicy: { retryOptions } });
    this.after(() => client.dispose());
    return client;
  }

  // A container of as many physical partitions as its throughput needs.
  async container(id, key, { partitions = 8, throughput = partitions * partitionRu, ...extra } = {}) {
    const partitionKey = typeof key === 'string' ? key : { paths: key, version: 2, kind: key.length > 1 ? 'MultiHash' : 'Hash' };
    const { container } = await this.database.containers.create({ id, partitionKey, throughput, ...extra });
    const keys = [].concat(key).join(', ');
    const how = extra.orrery?.synthetic ? `, made by the server: ${extra.orrery.synthetic.kind}` : '';
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    this.write(`  container "${id}": key ${keys}${how}; ${throughput} RU/s on ${ranges} physical partition${ranges > 1 ? 's' : ''}\n`);
    return container;
  }

  // Items that are there before the story begins.
  async fill(container, items) {
    const { items: into } = this.patient.database(database).container(container.id);
    await Promise.all(items.map((item) => into.create(item)));
    await pause(1000); // until nobody owes anything
  }

  file(name) {
    return join(this.directory, name);
  }

  // Runs `orrery ...` on the model, and shows the first lines of what it says.
  async command(args, { lines = 12 } = {}) {
    const out = await this.orrery(args);
    const shown = args.map((arg) => (/^[\w./:,@=-]+$/.test(arg) ? arg : `'${arg}'`)).join(' ');
    const all = out.trimEnd().split('\n').filter((line, i, list) => list.length > 1 || line);
    const told = [`$ orrery ${shown}`, ...all.slice(0, lines)];
    if (all.length > lines) told.push(`... ${all.length - lines} more lines`);
    const text = told.map((line) => `  ${line}`.trimEnd()).join('\n');
    this.write(`\n${text.replaceAll(`${this.directory}/`, '')}\n\n`);
    return out;
  }

  // The same, tried again while something that will be over soon is in its way.
  async retried(args, options) {
    for (let i = 0; ; i++) {
      try {
        return await this.command(args, options);
      } catch (error) {
        if (i === 100 || !/under way/.test(error.message)) throw error;
        await pause(100);
      }
    }
  }

  async throughput(container, ru) {
    const { resource: offer } = await this.patient.database(database).container(container).readOffer();
    await this.patient.offer(offer.id).replace({ ...offer, content: { offerThroughput: ru } });
    this.write(`  container "${container}" has ${ru} RU/s from now on\n`);
  }

  // The same for a program: the answer as JSON, without a word.
  async answer(args) {
    return JSON.parse(await this.orrery([...args, '--json']));
  }

  async orrery(args) {
    const { code, out, err } = await orrery([...args, '--dev'], { env: { ORRERY_ENDPOINT: this.server.url } });
    if (code !== 0) throw new Error(`orrery ${args.join(' ')} ended with ${code}: ${err}`);
    return out;
  }

  // Carries what one container holds over into another, and says how many there were and are.
  async copy(from, to) {
    const place = (container) => ['--database', database, '--container', container, '--quiet'];
    await this.command(['export', this.file('items.jsonl'), ...place(from)]);
    await this.command(['import', this.file('items.jsonl'), ...place(to)]);
    await pause(1000); // until nobody owes anything
    const copied = { had: await this.count(from), have: await this.count(to) };
    this.write(`  of ${copied.had} items in "${from}" there are ${copied.have} in "${to}"\n`);
    return copied;
  }

  async count(container, where = '') {
    const { items } = this.patient.database(database).container(container);
    return (await items.query(`SELECT VALUE COUNT(1) FROM c ${where}`).fetchAll()).resources[0];
  }

  // --- Load ----------------------------------------------------------------------------------

  // Operations at fixed times, as from many clients that do not wait for each other. Each is { create },
  // { upsert }, { read: [id, key] } or { query, where }; `container` in it takes it elsewhere.
  async rush(what, container, operations, { perSecond = 150 } = {}) {
    const begun = performance.now();
    const results = await Promise.all(
      operations.map(async (operation, i) => {
        await pause(begun + (i * 1000) / perSecond - performance.now());
        const at = Date.now();
        try {
          const ru = await perform(operation.container ?? container, operation);
          return { operation, at, ru };
        } catch (error) {
          if (error.code !== 429 && error.code !== 403) throw error;
          return { operation, at, refused: error.code };
        }
      }),
    );
    const seconds = (performance.now() - begun) / 1000;
    const rush = new Rush(results, seconds, (seconds * perSecond) / operations.length);
    this.write(`${wrapped(`${what}: ${rush}`, '  ')}\n`);
    return rush;
  }

  // --- Looking -------------------------------------------------------------------------------

  // Physical partitions, or with keys the values that spend the most.
  async stats(container, { keys = false, lines = 14 } = {}) {
    await this.command(['stats', database, container, ...(keys ? ['--keys'] : [])], { lines });
  }

  // Waits until a key is reported, and shows the report. The server judges by some ten seconds of load, so the load goes
  // on meanwhile: `more` gives the operations of another second.
  async hot(container, wanted, more) {
    const { items: into } = this.database.container(container);
    let going = true;
    const load = (async () => {
      for (let second = 0; going && more; second++) {
        await Promise.all(more(second).map((item, i) => pause(i * 10).then(() => into.create(item).catch(throttled))));
      }
    })();
    try {
      for (let i = 0; i < 200; i++) {
        const { keys } = await this.answer(['partition', 'hot', database, container]);
        const found = keys.find(wanted);
        if (found) {
          await this.command(['partition', 'hot', database, container], { lines: 4 });
          return found;
        }
        await pause(200);
      }
    } finally {
      going = false;
      await load;
    }
    throw new Error(`no key of ${container} is reported`);
  }

  // Advice on a container, by the server's record of it.
  async advise(container, { lines = 22 } = {}) {
    const args = ['advise', database, container, '--partitions', '8'];
    await this.command(args, { lines });
    return advised(await this.answer(args));
  }

  // The same by the application's own log, which knows what was refused too: the server's record holds what was carried
  // out, and of a container in trouble that is the smaller part. At fifty times the load it is judged at full size.
  async adviseLog(rush, current, { lines = 22 } = {}) {
    const args = ['advise', ...this.log(rush), '--current', current, '--load', '50'];
    await this.command(args, { lines });
    return advised(await this.answer(args));
  }

  // What would have become of this rush under another key.
  async whatIf(rush, { current, key, partitions = 8, throughput = partitions * partitionRu, more = [] }) {
    const args = [
      'what-if', ...this.log(rush), '--current', current, '--key', key, ...more,
      '--partitions', `${partitions}`, '--throughput', `${throughput}`, '--retries', '0',
    ];
    await this.command([...args, '--out', this.file('what-if.svg')]);
    const { today, whatIf } = await this.answer(args);
    return { today: today.throttledShare, whatIf: whatIf.throttledShare };
  }

  log(rush) {
    const files = { documents: rush.documents(), operations: rush.log() };
    return Object.entries(files).flatMap(([name, list]) => {
      writeFileSync(this.file(`${name}.jsonl`), list.map((entry) => JSON.stringify(entry)).join('\n'));
      return [`--${name}`, this.file(`${name}.jsonl`)];
    });
  }
}

function throttled(error) {
  if (error.code !== 429) throw error;
}

// Of an advice what a scenario promises.
function advised({ recommended, current, proposals }) {
  return {
    recommended,
    currentGood: current.good,
    currentScore: current.score,
    good: proposals.filter((proposal) => proposal.good).map((proposal) => proposal.key),
  };
}

async function perform(container, { create, upsert, read, query }) {
  if (create) return (await container.items.create(create)).requestCharge;
  if (upsert) return (await container.items.upsert(upsert)).requestCharge;
  if (read) {
    const answer = await container.item(...read).read();
    if (answer.statusCode !== 200) throw new Error(`${JSON.stringify(read)} is not there`);
    return answer.requestCharge;
  }
  return (await container.items.query(query).fetchAll()).requestCharge;
}

const kind = (operation) => ['create', 'upsert', 'read', 'query'].find((name) => operation[name] !== undefined);

// What came of a rush.
class Rush {
  // late: how many times as long it took as it should have.
  constructor(results, seconds, late) {
    this.results = results;
    this.seconds = seconds;
    this.late = late;
    this.count = (wanted) => results.filter(wanted).length;
    this.offered = results.length;
    this.throttled = this.count((r) => r.refused === 429);
    this.full = this.count((r) => r.refused === 403);
    this.accepted = this.offered - this.throttled - this.full;
    this.ru = results.reduce((sum, r) => sum + (r.ru ?? 0), 0);
    this.throttledShare = this.throttled / this.offered;
    this.ruEach = this.ru / Math.max(this.accepted, 1);
  }

  // The same of some of its operations.
  only(wanted) {
    return new Rush(this.results.filter((r) => wanted(r.operation)), this.seconds, this.late);
  }

  figures() {
    const { offered, accepted, throttled, full, throttledShare, late } = this;
    return { offered, accepted, throttled, full, throttledShare, late: Number(late.toFixed(2)), ru: Math.round(this.ru), ruEach: Number(this.ruEach.toFixed(2)) };
  }

  toString() {
    const full = this.full ? `, ${this.full} refused as too much for one key (403)` : '';
    return (
      `${this.offered} operations in ${this.seconds.toFixed(1)} s, ${this.accepted} done at ${this.ruEach.toFixed(1)} RU each, ` +
      `${this.throttled} refused with 429 (${percent(this.throttledShare)})${full}`
    );
  }

  documents() {
    return this.results.map((r) => r.operation.create ?? r.operation.upsert).filter(Boolean);
  }

  // As docs/advise.md describes it; who was refused would have cost what the others did.
  log() {
    const mean = {};
    for (const name of ['create', 'upsert', 'read', 'query']) {
      const done = this.results.filter((r) => kind(r.operation) === name && r.ru !== undefined);
      mean[name] = done.length ? done.reduce((sum, r) => sum + r.ru, 0) / done.length : 1;
    }
    return this.results.map(({ operation, at, ru }) => {
      const op = kind(operation);
      const item = operation.create ?? operation.upsert;
      return { t: at, op, ru: ru ?? mean[op], ...(item ? { item } : { where: operation.where }) };
    });
  }
}
