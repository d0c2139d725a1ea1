// Load on a container while it is re-keyed, by clients that keep a journal of what they did; and the check of
// every item against it afterwards. Its memory does not grow with the container: what an untouched item must be
// follows from its number, and of those seen a bit is kept.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

export { CosmosClient } from '@azure/cosmos'; // for whoever is in another folder

// Values of item number n; `wide` makes it a kilobyte with twenty of them.
export function order(n, wide = false) {
  const item = { id: `o${n}`, tenant: `t${n % 701}`, user: `u${n % 9973}`, n };
  if (!wide) return { ...item, filler: 'x'.repeat(40) };
  const mixed = (salt) => (Math.imul(n + salt, 2654435761) ^ Math.imul(n, 40503 * (salt + 1))) >>> 0;
  const word = (salt, length) => `${mixed(salt).toString(36)}${mixed(salt + 50).toString(36)}`.repeat(12).slice(0, length);
  return {
    ...item,
    name: word(1, 24), street: word(2, 26), city: word(3, 28), mail: word(4, 30), phone: word(5, 32), company: word(6, 34),
    kind: 'order', open: n % 3 === 0, created: 1_600_000_000 + n, count: n % 100, updated: 1_600_000_000 + (mixed(7) % 1_000_000),
    amount: (mixed(8) % 1_000_000) / 100, place: { latitude: (mixed(9) % 180_000) / 1000, longitude: (mixed(10) % 360_000) / 1000 },
    tags: [word(11, 8), word(12, 8), word(13, 8)], notes: word(14, 140).repeat(3),
  };
}

// What of an item has to be as it was written.
const system = new Set(['_rid', '_self', '_etag', '_attachments', '_ts']);
function same(stored, written) {
  const names = Object.keys(stored).filter((name) => !system.has(name));
  return names.length === Object.keys(written).length &&
    names.every((name) => stored[name] === written[name] ||
      (typeof stored[name] === 'object' && JSON.stringify(stored[name]) === JSON.stringify(written[name])));
}

// How long operations took, in classes of 5 %.
export class Latencies {
  constructor() {
    Object.assign(this, { classes: new Uint32Array(400), count: 0, longestMs: 0 });
  }
  add(ms) {
    this.count++;
    this.longestMs = Math.max(this.longestMs, ms);
    this.classes[Math.min(399, Math.max(0, Math.ceil(Math.log(Math.max(ms, 0.01) / 0.01) / Math.log(1.05))))]++;
  }
  quantile(part) {
    let left = this.count * part;
    for (let i = 0; i < 400; i++) if ((left -= this.classes[i]) <= 0) return 0.01 * 1.05 ** i;
    return this.longestMs;
  }
  toString() {
    return `${this.count} operations, p50 ${this.quantile(0.5).toFixed(2)} ms, p99 ${this.quantile(0.99).toFixed(2)} ms, ` +
      `longest ${this.longestMs.toFixed(0)} ms`;
  }
}

// Works on the items whose number is its own modulo the number of workers, one operation at a time.
class Worker {
  constructor(load, container, keyOf, nth) {
    Object.assign(this, { load, container, keyOf, nth, done: 0, failures: [], running: true, seed: nth * 7919 + 17 });
  }
  random(n) {
    this.seed = (Math.imul(this.seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.seed / 2 ** 32) * n);
  }
  // A number of its own; half of the time one that it has changed before.
  pick() {
    const { load } = this;
    const own = Math.floor((load.total - 1 - this.nth) / load.slots) + 1;
    const n = this.random(2) ? this.random(own) : this.random(Math.min(own, load.touchedMax));
    return n * load.slots + this.nth;
  }
  async step() {
    const { load, container } = this;
    const n = this.pick();
    const known = load.expected(n);
    const mayChange = load.journal.has(n) || load.journal.size < load.slots * load.touchedMax;
    if (known === null) {
      const item = { ...order(n, load.wide), user: `u${this.random(9973)}` };
      const { resource } = await (this.random(2) ? container.items.create(item) : container.items.upsert(item));
      assert.equal(resource.n, item.n);
      load.journal.set(n, item);
      return;
    }
    const at = container.item(known.id, this.keyOf(known));
    const next = { ...known, n: this.random(1_000_000) };
    switch (mayChange ? this.random(8) : 7) {
      case 0:
        await at.delete();
        load.journal.set(n, null);
        break;
      case 1:
        assert.equal((await at.replace(next)).resource.n, next.n);
        load.journal.set(n, next);
        break;
      case 2:
        next.n = known.n + 1;
        assert.equal((await at.patch([{ op: 'incr', path: '/n', value: 1 }])).resource.n, next.n);
        load.journal.set(n, next);
        break;
      case 3:
        await container.items.upsert(next);
        load.journal.set(n, next);
        break;
      default: {
        const { resource, statusCode } = await at.read();
        assert.equal(statusCode, 200, `${known.id} is read`);
        assert.ok(same(resource, known), `${known.id} is ${JSON.stringify(resource)}, not ${JSON.stringify(known)}`);
      }
    }
  }
  async run() {
    while (this.running) {
      const begun = performance.now();
      try {
        await this.step();
        this.done++;
      } catch (error) {
        this.failures.push(error);
        if (this.failures.length > 3) return;
      }
      this.load.latencies.add(performance.now() - begun);
      if (this.load.restMs) await sleep(this.load.restMs);
    }
  }
}

// Numbers 0 to filled - 1 are there at the beginning; those up to total - 1 come and go.
export class Load {
  constructor({ filled, wide = false, slots = 6, touchedMax = 1000, restMs = 0 }) {
    Object.assign(this, { filled, wide, slots, touchedMax, restMs, total: filled + 100 * slots, journal: new Map(), workers: [], running: [] });
    this.phase();
  }
  // What number n must be; null: it is not there.
  expected(n) {
    const known = this.journal.get(n);
    if (known !== undefined) return known;
    return n < this.filled ? order(n, this.wide) : null;
  }
  isExpected(n) {
    return this.journal.has(n) ? this.journal.get(n) !== null : n < this.filled;
  }
  phase() {
    this.latencies = new Latencies();
    return this.latencies;
  }
  start(containers, keyOf) {
    for (const container of containers) {
      const worker = new Worker(this, container, keyOf, this.workers.length);
      this.workers.push(worker);
      this.running.push(worker.run());
    }
  }
  steps() {
    return this.workers.reduce((sum, worker) => sum + worker.done, 0);
  }
  failures() {
    return this.workers.flatMap((worker) => worker.failures);
  }
  async stop() {
    for (const worker of this.workers) worker.running = false;
    await Promise.all(this.running);
  }
  // Every item of the container, against the journal.
  async check(container) {
    const seen = new Uint8Array((this.total >> 3) + 1);
    const found = { items: 0, doubled: 0, lost: 0, wrong: [] };
    const feed = container.items.readAll({ maxItemCount: 1000 });
    while (feed.hasMoreResults()) {
      for (const item of (await feed.fetchNext()).resources ?? []) {
        const n = Number(item.id.slice(1));
        found.items++;
        if (seen[n >> 3] & (1 << (n & 7))) found.doubled++;
        seen[n >> 3] |= 1 << (n & 7);
        const expected = this.expected(n);
        if ((!expected || !same(item, expected)) && found.wrong.length < 5) found.wrong.push({ item, expected });
      }
    }
    for (let n = 0; n < this.total; n++) if (this.isExpected(n) && !(seen[n >> 3] & (1 << (n & 7)))) found.lost++;
    return found;
  }
}
