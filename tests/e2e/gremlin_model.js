// A naive evaluator of traversals over a graph in memory, written from the semantics of Gremlin alone: every step takes all traversers and
// gives all traversers. It knows the steps that gremlin_random.test.js makes traversals of; what it does not know is an error.
//
// A traverser is { at: value, path: [{ at, labels }], loops: [count, ...] }. Values are those of gremlin_notation.js; vertices and edges are
// the graph's own objects, { k: 'v' | 'e', id: { k: 'str' }, label, properties: Map, from, to }.
import { num, same, str } from './gremlin_notation.js';

const long = (n) => num('l', n);
const real = (n) => num('d', n);
const isNumber = (x) => x?.k === 'num';
const numeric = (x) => Number(x.v);

// ---- comparing ----

const families = ['null', 'boolean', 'num', 'date', 'str', 'uuid', 'v', 'e'];
const familyOf = (x) => (x === null ? 'null' : typeof x === 'boolean' ? 'boolean' : x.k);

// Orderability: over all families, below zero, at it or above.
export function order(a, b) {
  const between = families.indexOf(familyOf(a)) - families.indexOf(familyOf(b));
  if (between) return between;
  if (a === null) return 0;
  if (typeof a === 'boolean') return Number(a) - Number(b);
  if (isNumber(a)) return numeric(a) - numeric(b);
  const [x, y] = a.k === 'v' || a.k === 'e' ? [a.id.v, b.id.v] : [a.v, b.v];
  return x < y ? -1 : x > y ? 1 : 0;
}

const comparable = (a, b) => familyOf(a) === familyOf(b) && a !== null && ['boolean', 'num', 'str'].includes(familyOf(a));

const equal = (a, b) => same(a, b);
// Equivalence: the type of numbers matters.
const keyOf = (x) => (x === null || typeof x === 'boolean' ? String(x) : x.k === 'num' ? `${x.t}${x.v}` : x.k === 'v' || x.k === 'e' ? `${x.k}${x.id.v}`
  : x.items ? `${x.k}[${x.items.map(keyOf).join()}]` : x.e ? `{${x.e.map((pair) => pair.map(keyOf).join(':')).sort().join()}}` : `${x.k}${x.v}`);

export function holds(p, value) {
  const [a, b] = p.args;
  switch (p.name) {
    case 'eq': return equal(a, value);
    case 'neq': return !equal(a, value);
    case 'gt': return comparable(value, a) && order(value, a) > 0;
    case 'gte': return comparable(value, a) && order(value, a) >= 0;
    case 'lt': return comparable(value, a) && order(value, a) < 0;
    case 'lte': return comparable(value, a) && order(value, a) <= 0;
    case 'between': return comparable(value, a) && comparable(value, b) && order(value, a) >= 0 && order(value, b) < 0;
    case 'inside': return comparable(value, a) && comparable(value, b) && order(value, a) > 0 && order(value, b) < 0;
    case 'outside': return (comparable(value, a) && order(value, a) < 0) || (comparable(value, b) && order(value, b) > 0);
    case 'within': return p.args.flatMap((one) => one?.items ?? [one]).some((one) => equal(one, value));
    case 'without': return !p.args.flatMap((one) => one?.items ?? [one]).some((one) => equal(one, value));
    case 'startingWith': return value?.k === 'str' && value.v.startsWith(a.v);
    case 'containing': return value?.k === 'str' && value.v.includes(a.v);
    case 'and': return p.args.every((one) => holds(one, value));
    case 'or': return p.args.some((one) => holds(one, value));
    case 'not': return !holds(a, value);
    default: throw new Error(`no predicate ${p.name}`);
  }
}

const test = (wanted, value) => (wanted?.k === 'p' ? holds(wanted, value) : equal(wanted, value));

// ---- traversers ----

const begin = (at) => ({ at, path: [{ at, labels: [] }], loops: [] });
const move = (t, at) => ({ ...t, at, path: [...t.path, { at, labels: [] }] });
const label = (t, names) => ({ ...t, path: [...t.path.slice(0, -1), { at: t.path.at(-1).at, labels: [...t.path.at(-1).labels, ...names] }] });
const labelled = (t, name) => t.path.filter(({ labels }) => labels.includes(name)).map(({ at }) => at);

const modulators = new Set(['by', 'with', 'times', 'until', 'emit', 'option']);

// Steps with the modulators that follow them; what stands before repeat() belongs to it too.
function grouped(steps) {
  const all = [];
  let before = [];
  const ends = ({ name }) => name === 'times' || name === 'until';
  for (const step of steps) {
    const loop = ends(step) || step.name === 'emit';
    const last = all.at(-1);
    const taken = loop && last?.name === 'repeat' && [...last.before, ...last.after].some((one) => (ends(one) ? ends(step) : step.name === 'emit'));
    if (loop && (last?.name !== 'repeat' || taken || before.length)) before.push(step);
    else if (step.name === 'repeat') all.push({ ...step, before, after: [] }), (before = []);
    else if (loop) last.after.push(step);
    else if (modulators.has(step.name)) (all.at(-1).by ??= []).push(step);
    else all.push({ ...step });
  }
  return all;
}

export class Model {
  constructor({ vertices, edges }) {
    this.vertices = vertices;
    this.edges = edges;
    this.effects = new Map();
  }

  // The results of a script's tree.
  run(tree) {
    this.effects = new Map();
    return this.through(tree.steps, [], true).map(({ at }) => at);
  }

  // A child traversal of one traverser: what it ends with.
  child(tree, t) { return this.through(tree.steps, [t]); }

  yields(tree, t) { return this.child(tree, t).length > 0; }

  through(steps, traversers, first = false) {
    let stream = traversers;
    for (const [i, step] of grouped(steps).entries()) stream = this.step(step, stream, first && i === 0);
    return stream;
  }

  // by(): undefined if it yields nothing.
  project(by, value, t) {
    const [what] = by?.args ?? [];
    if (what === undefined || what?.family === 'Order') return value;
    if (what.k === 'str') return value.k === 'map' ? value.e.find(([key]) => equal(key, what))?.[1] : this.property(value, what.v)[0];
    if (what.family === 'T') return this.token(what.word, value);
    if (what.family === 'Column') return what.word === 'keys' ? value.e[0] : value.e[1];
    if (what.k === 'trav') return this.child(what, t ?? begin(value))[0]?.at;
    throw new Error(`by(${what.k})`);
  }

  property(element, key) {
    const value = element.properties.get(key);
    return value === undefined ? [] : [value];
  }

  token(word, element) { return word === 'id' ? element.id : str(element.label); }

  adjacent(t, step) {
    const labels = step.args.map(({ v }) => v);
    const fits = (edge) => !labels.length || labels.includes(edge.label);
    const out = this.edges.filter((edge) => edge.from === t.at && fits(edge));
    const into = this.edges.filter((edge) => edge.to === t.at && fits(edge));
    switch (step.name) {
      case 'out': return out.map(({ to }) => to);
      case 'in': return into.map(({ from }) => from);
      case 'both': return [...out.map(({ to }) => to), ...into.map(({ from }) => from)];
      case 'outE': return out;
      case 'inE': return into;
      default: return [...out, ...into];
    }
  }

  passes(step, t) {
    const { name, args } = step;
    const element = t.at;
    switch (name) {
      case 'hasLabel': return args.some((one) => test(one, str(element.label)));
      case 'hasId': return args.some((one) => test(one, element.id));
      case 'hasNot': return !element.properties.has(args[0].v);
      case 'has': {
        if (args.length === 3) return element.label === args[0].v && this.property(element, args[1].v).some((value) => test(args[2], value));
        if (args[0].family === 'T') return test(args[1], this.token(args[0].word, element));
        if (args.length === 1) return element.properties.has(args[0].v);
        return this.property(element, args[0].v).some((value) => test(args[1], value));
      }
      case 'is': return test(args[0], element);
      case 'filter': return this.yields(args[0], t);
      case 'not': return !this.yields(args[0], t);
      case 'and': return args.every((one) => this.yields(one, t));
      case 'or': return args.some((one) => this.yields(one, t));
      case 'simplePath': return new Set(t.path.map(({ at }) => keyOf(at))).size === t.path.length;
      case 'cyclicPath': return new Set(t.path.map(({ at }) => keyOf(at))).size !== t.path.length;
      case 'where': {
        if (args[0].k === 'trav') return this.yields(args[0], t);
        const [p] = args;
        if (p.name === 'within' || p.name === 'without') {
          const among = (this.effects.get(p.args[0].v) ?? []).some((one) => equal(one, t.at));
          return among === (p.name === 'within');
        }
        return holds({ ...p, args: [labelled(t, p.args[0].v).at(-1)] }, t.at);
      }
      default: return undefined;
    }
  }

  step(step, stream, first) {
    const { name, args, by = [] } = step;
    const each = (f) => stream.flatMap((t) => f(t).map((at) => move(t, at)));
    const one = (f) => each((t) => { const at = f(t); return at === undefined ? [] : [at]; });
    const reduce = (at) => [begin(at)];
    switch (name) {
      case 'V': case 'E': {
        const all = name === 'V' ? this.vertices : this.edges;
        const found = args.length ? args.flatMap(({ v }) => all.filter(({ id }) => id.v === v)) : all;
        return first ? found.map(begin) : each(() => found);
      }
      case 'inject': return [...args.map(begin), ...stream];
      case 'out': case 'in': case 'both': case 'outE': case 'inE': case 'bothE': return each((t) => this.adjacent(t, step));
      case 'outV': return each((t) => [t.at.from]);
      case 'inV': return each((t) => [t.at.to]);
      case 'bothV': return each((t) => [t.at.from, t.at.to]);
      case 'otherV': return each((t) => [t.path.at(-2).at === t.at.from ? t.at.to : t.at.from]);
      case 'id': return each((t) => [t.at.id]);
      case 'label': return each((t) => [str(t.at.label)]);
      case 'values': return each((t) => [...t.at.properties].filter(([key]) => !args.length || args.some(({ v }) => v === key)).map(([, value]) => value));
      case 'constant': return each(() => [args[0]]);
      case 'identity': return stream;
      case 'as': return stream.map((t) => label(t, args.map(({ v }) => v)));
      case 'map': return one((t) => this.child(args[0], t)[0]?.at);
      case 'flatMap': return each((t) => this.child(args[0], t).map(({ at }) => at));
      case 'local': return stream.flatMap((t) => this.child(args[0], t));
      case 'union': return args.flatMap((branch) => this.through(branch.steps, stream));
      case 'coalesce': return stream.flatMap((t) => args.map((branch) => this.child(branch, t)).find((found) => found.length) ?? []);
      case 'optional': return stream.flatMap((t) => { const found = this.child(args[0], t); return found.length ? found : [t]; });
      case 'choose': {
        const yes = stream.filter((t) => this.yields(args[0], t));
        const no = stream.filter((t) => !yes.includes(t));
        return [...this.through(args[1].steps, yes), ...(args[2] ? this.through(args[2].steps, no) : no)];
      }
      case 'repeat': return this.repeat(step, stream);
      case 'loops': return each((t) => [num('i', t.loops.at(-1) ?? 0)]);
      case 'count': return args[0]?.word === 'local' ? one(({ at }) => long(at?.items?.length ?? at?.e?.length ?? 1)) : reduce(long(stream.length));
      case 'sum': case 'min': case 'max': case 'mean': {
        if (args[0]?.word === 'local') return one(({ at }) => this.total(name, at.items));
        const total = this.total(name, stream.map(({ at }) => at));
        return total === undefined ? [] : reduce(total);
      }
      case 'fold': return reduce({ k: 'list', items: stream.map(({ at }) => at) });
      case 'unfold': return each(({ at }) => at?.items ?? at?.e?.map(([key, value]) => ({ k: 'map', e: [[key, value]], entry: true })) ?? [at]);
      case 'dedup': {
        const seen = new Set();
        return stream.filter((t) => {
          const value = this.project(by[0], t.at, t);
          if (value === undefined || seen.has(keyOf(value))) return false;
          return seen.add(keyOf(value));
        });
      }
      case 'order': return this.sorted(by, stream);
      case 'limit': return stream.slice(0, Number(args[0].v));
      case 'skip': return stream.slice(Number(args[0].v));
      case 'range': return stream.slice(Number(args[0].v), Number(args[1].v));
      case 'tail': return stream.slice(-Number(args[0].v));
      case 'path': return one((t) => {
        const items = t.path.map(({ at }, i) => this.project(by[i % (by.length || 1)], at));
        return items.includes(undefined) ? undefined : { k: 'path', items };
      });
      case 'select': return this.select(step, stream);
      case 'project': return one((t) => ({
        k: 'map', e: args.map((key, i) => [key, this.project(by[i % (by.length || 1)], t.at, t)]).filter(([, value]) => value !== undefined),
      }));
      case 'valueMap': return one((t) => {
        const keys = args.length ? args.map(({ v }) => v).filter((key) => t.at.properties.has(key)) : [...t.at.properties.keys()];
        return { k: 'map', e: keys.map((key) => [str(key), t.at.k === 'v' ? { k: 'list', items: this.property(t.at, key) } : this.property(t.at, key)[0]]) };
      });
      case 'groupCount': case 'group': return reduce(this.group(name, by, stream));
      case 'aggregate': {
        const values = stream.map((t) => this.project(by[0], t.at, t)).filter((value) => value !== undefined);
        this.effects.set(args[0].v, [...(this.effects.get(args[0].v) ?? []), ...values]);
        return stream;
      }
      case 'cap': return reduce({ k: 'list', items: this.effects.get(args[0].v) ?? [] });
      default: {
        return stream.filter((t) => {
          const passed = this.passes(step, t);
          if (passed === undefined) throw new Error(`the model does not know ${name}()`);
          return passed;
        });
      }
    }
  }

  total(name, values) {
    if (!values.length) return undefined;
    if (name === 'min' || name === 'max') return values.reduce((best, one) => ((name === 'min' ? order(one, best) < 0 : order(one, best) > 0) ? one : best));
    const sum = values.reduce((all, one) => all + numeric(one), 0);
    if (name === 'mean') return real(sum / values.length);
    return values.some(({ t }) => t === 'd') ? real(sum) : long(sum);
  }

  sorted(by, stream) {
    const keys = by.length ? by : [{ args: [] }];
    const rows = stream.map((t) => ({ t, keys: keys.map((one) => this.project(one, t.at, t)) })).filter((row) => !row.keys.includes(undefined));
    const descending = keys.map(({ args }) => ['desc', 'decr'].includes(args.at(-1)?.word));
    rows.sort((a, b) => a.keys.map((key, i) => order(key, b.keys[i]) * (descending[i] ? -1 : 1)).find((found) => found) ?? 0);
    return rows.map(({ t }) => t);
  }

  select({ args, by = [] }, stream) {
    const [pop, names] = args[0].family === 'Pop' ? [args[0].word, args.slice(1)] : ['last', args];
    const found = (t, name) => {
      if (t.at?.k === 'map') {
        const entry = t.at.e.find(([key]) => equal(key, name));
        if (entry) return entry[1];
      }
      const all = labelled(t, name.v);
      if (!all.length) return undefined;
      return pop === 'all' ? { k: 'list', items: all } : pop === 'first' ? all[0] : all.at(-1);
    };
    return stream.flatMap((t) => {
      const values = names.map((name, i) => {
        const value = found(t, name);
        return value === undefined ? undefined : this.project(by[i % (by.length || 1)], value);
      });
      if (values.includes(undefined)) return [];
      return [move(t, names.length === 1 ? values[0] : { k: 'map', e: names.map((name, i) => [name, values[i]]) })];
    });
  }

  group(name, by, stream) {
    const groups = new Map();
    for (const t of stream) {
      const key = this.project(by[0], t.at, t);
      if (key === undefined) continue;
      if (!groups.has(keyOf(key))) groups.set(keyOf(key), { key, members: [] });
      groups.get(keyOf(key)).members.push(t);
    }
    const pairs = [...groups.values()].map(({ key, members }) => {
      if (name === 'groupCount') return [key, long(members.length)];
      const what = by[1]?.args[0];
      if (what?.k === 'trav') return [key, this.through(what.steps, members)[0]?.at];
      return [key, { k: 'list', items: members.map((t) => this.project(by[1], t.at, t)).filter((value) => value !== undefined) }];
    });
    return { k: 'map', e: pairs.filter(([, value]) => value !== undefined) };
  }

  // Before the first pass what stands before repeat() is asked, after each pass what stands behind it.
  repeat({ args, before, after }, stream) {
    const body = args.at(-1);
    const results = [];
    const reached = (modulators_, t) => modulators_.some(({ name, args: [wanted] }) => (name === 'times' ? t.loops.at(-1) >= Number(wanted.v)
      : name === 'until' && this.yields(wanted, t)));
    const emits = (modulators_, t) => modulators_.some(({ name, args: [wanted] }) => name === 'emit' && (!wanted || this.yields(wanted, t)));
    const leave = (t) => results.push({ ...t, loops: t.loops.slice(0, -1) });
    let round = stream.map((t) => ({ ...t, loops: [...t.loops, 0] }));
    for (let passes = 0; round.length; passes++) {
      if (passes > 40) throw new Error('the traversal does not end');
      const going = [];
      for (const t of round) {
        if (reached(before, t)) { leave(t); continue; }
        if (emits(before, t)) leave(t);
        going.push(t);
      }
      round = [];
      for (const t of this.through(body.steps, going)) {
        const next = { ...t, loops: [...t.loops.slice(0, -1), t.loops.at(-1) + 1] };
        if (reached(after, next)) { leave(next); continue; }
        if (emits(after, next)) leave(next);
        round.push(next);
      }
    }
    return results;
  }
}

// A result as it comes from a server: elements by their kind and id alone.
export function plain(x) {
  if (x === null || typeof x === 'boolean') return x;
  if (x.k === 'v' || x.k === 'e') return { k: x.k, id: x.id };
  if (x.items) return { ...x, items: x.items.map(plain) };
  if (x.e) return { ...x, e: x.e.map((pair) => pair.map(plain)) };
  return x;
}
