// Whether single items have a history: whether each operation can have happened at one instant between its call and its
// answer. What `tests/isolation/linear.c` asks of clients within one process, asked of clients of several servers.
//
// An operation is { from, to, sees, leaves, name }. `sees` is what it found: { version } (0: not there), { present: true },
// { other: version } (not that one), or nothing. `leaves` is the version it wrote, 0: it deleted; undefined: it read. Whoever
// was not told what became of a write sets `to` to Infinity: it may have happened, at any time, or never.

// For a test that notes: versions that nobody else writes, and a clock that all share.
export class History {
  items = new Map();
  #last = 0;

  version() {
    return ++this.#last;
  }

  note(item, operation) {
    if (!this.items.has(item)) this.items.set(item, []);
    this.items.get(item).push(operation);
  }

  // What is wrong with it, in words, an item each.
  objections() {
    const found = [];
    for (const [item, operations] of this.items) {
      const because = objection(operations);
      if (because) found.push(`${item}: ${because}`);
    }
    return found;
  }
}

const fits = (sees, version) => {
  if (!sees) return true;
  if ('version' in sees) return sees.version === version;
  if ('other' in sees) return sees.other !== version;
  return version !== 0;
};

const worldsMax = 200_000;

// undefined: there is an order of them that explains all answers.
export function objection(operations) {
  const events = [];
  for (const [index, operation] of operations.entries()) {
    events.push({ at: operation.from, index, begins: true });
    if (operation.to !== Infinity) events.push({ at: operation.to, index, begins: false });
  }
  // of one moment: calls before answers, so that both may have been first
  events.sort((a, b) => a.at - b.at || Number(b.begins) - Number(a.begins));
  const running = new Set();
  let worlds = [{ version: 0, happened: new Set() }];
  for (const event of events) {
    if (event.begins) {
      running.add(event.index);
      continue;
    }
    worlds = happens(worlds, running, operations, event.index);
    if (!worlds) return 'too much happened at once to say';
    if (worlds.length === 0) return `${JSON.stringify(operations[event.index])} cannot have happened`;
    running.delete(event.index);
    for (const world of worlds) world.happened.delete(event.index);
  }
  return undefined;
}

// All worlds in which this operation has happened, and others that run as far as may be.
function happens(worlds, running, operations, wanted) {
  const seen = new Set(), ended = [], queue = [...worlds];
  while (queue.length > 0) {
    const world = queue.pop();
    const key = `${world.version} ${[...world.happened].sort((a, b) => a - b).join(' ')}`;
    if (seen.has(key)) continue;
    if (seen.size >= worldsMax) return undefined;
    seen.add(key);
    if (world.happened.has(wanted)) {
      ended.push(world); // what else runs may happen later as well as now
      continue;
    }
    for (const index of running) {
      const { sees, leaves } = operations[index];
      if (world.happened.has(index) || !fits(sees, world.version)) continue;
      queue.push({ version: leaves ?? world.version, happened: new Set(world.happened).add(index) });
    }
  }
  return ended;
}
