// Gremlin as tests read it, with a parser of their own: scripts of cases become trees, trees become the bytecode that drivers send,
// expected results are literals of the same notation, and answers in GraphSON 3 become values that can be compared with them.
//
// A value is null, true, false, or { k: kind, ... }: num (t: type, v: text), str, list, set, map (e: pairs), enum, p, trav, strategy,
// card, date, uuid, v, e, vp, p (property), path, tree.

// ---- parsing ----

const words = {};
const families = {
  T: 'id label key value', Order: 'asc desc shuffle incr decr', Scope: 'local global', Cardinality: 'single list set', Column: 'keys values',
  Pop: 'first last all mixed', Direction: 'IN OUT BOTH from to', Operator: 'sum minus mult div min max assign and or addAll sumLong', Barrier: 'normSack',
  Pick: 'any none unproductive', Merge: 'onCreate onMatch outV inV', DT: 'second minute hour day', GType: 'INT LONG DOUBLE STRING BOOLEAN NUMBER',
};
for (const [family, list] of Object.entries(families)) for (const word of list.split(' ')) words[word] = family;
const predicates = new Set(('eq neq lt lte gt gte inside outside between within without typeOf containing notContaining startingWith notStartingWith endingWith '
  + 'notEndingWith regex notRegex').split(' '));
const textual = new Set('containing notContaining startingWith notStartingWith endingWith notEndingWith regex notRegex'.split(' '));
const options = { tokens: '~tinkerpop.valueMap.tokens', none: 0, ids: 1, labels: 2, keys: 4, values: 8, all: 15, indexer: '~tinkerpop.index.indexer', list: 0, map: 1 };
const terminals = new Set(['next', 'toList', 'toSet', 'iterate', 'hasNext', 'tryNext', 'explain', 'toBulkSet']);

export const num = (t, v) => ({ k: 'num', t, v: String(v) });
export const str = (v) => ({ k: 'str', v });

const token = /\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[bsilLnfFdDmM]?)(?![\w])|([A-Za-z_$][\w$]*)|(\.\.|[()[\]{},:.;=+-]))/y;

function tokens(text) {
  const all = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.trimEnd().length) {
    const at = token.lastIndex;
    const found = token.exec(text);
    if (!found) throw new Error(`cannot read ${text.slice(at)}`);
    const [, string, number, name, mark] = found;
    all.push(string !== undefined ? { string: unescape(string.slice(1, -1)) } : number !== undefined ? { number } : name !== undefined ? { name } : { mark });
  }
  return all;
}

function unescape(text) {
  return text.replace(/\\(u[0-9a-fA-F]{4}|[0-7]{1,3}|.)/g, (_, c) => {
    if (c[0] === 'u') return String.fromCharCode(parseInt(c.slice(1), 16));
    if (/[0-7]/.test(c[0])) return String.fromCharCode(parseInt(c, 8));
    return { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r' }[c] ?? c;
  });
}

export function numberOf(text) {
  const suffix = /[a-zA-Z]$/.exec(text)?.[0].toLowerCase();
  const digits = suffix && suffix !== 'e' ? text.slice(0, -1) : text;
  if (suffix && suffix !== 'e') return { ...num(suffix, digits), exact: true };
  if (/[.eE]/.test(digits)) return num('d', digits);
  const whole = BigInt(digits);
  return num(whole <= 2147483647n ? 'i' : whole <= 9223372036854775807n ? 'l' : 'n', digits);
}

class Parser {
  constructor(text) {
    this.all = tokens(text);
    this.at = 0;
  }

  peek() { return this.all[this.at] ?? {}; }

  is(mark) { return this.peek().mark === mark; }

  take(mark) {
    if (!this.is(mark)) throw new Error(`expected ${mark}, found ${JSON.stringify(this.peek())}`);
    this.at++;
  }

  list(end, one) {
    const all = [];
    if (this.is(end)) return this.take(end), all;
    for (;;) {
      all.push(one());
      if (this.is(end)) return this.take(end), all;
      this.take(',');
    }
  }

  value() {
    const first = this.operand();
    if (!this.is('..')) return first;
    this.take('..');
    const last = this.operand();
    if (!isFinite(first.v)) throw new Error('a range of letters');
    const items = [];
    for (let i = Number(first.v); i <= Number(last.v); i++) items.push(num('i', i));
    return { k: 'list', items };
  }

  operand() {
    const one = this.peek();
    if (one.mark === '-' || one.mark === '+') {
      this.at++;
      const operand = this.operand();
      if (one.mark === '+') return operand;
      const plain = { ...operand, v: `-${operand.v}` };
      return operand.t === 'l' && plain.v === '-2147483648' && !operand.exact ? num('i', plain.v) : plain;
    }
    if (one.string !== undefined) return this.at++, str(one.string);
    if (one.number !== undefined) return this.at++, numberOf(one.number);
    if (one.mark === '[') return this.bracket();
    if (one.mark === '{') return this.at++, { k: 'set', items: this.list('}', () => this.value()) };
    if (one.mark === '(') {
      this.take('(');
      const inner = this.value();
      this.take(')');
      return inner;
    }
    if (one.name !== undefined) return this.chain();
    throw new Error(`unexpected ${JSON.stringify(one)}`);
  }

  bracket() {
    this.take('[');
    if (this.is(':')) return this.take(':'), this.take(']'), { k: 'map', e: [] };
    const pairs = [];
    const items = this.list(']', () => {
      const bare = this.peek().name !== undefined && this.all[this.at + 1]?.mark === ':';
      const key = bare ? str(this.all[this.at++].name) : this.value();
      if (!this.is(':')) return key;
      this.take(':');
      pairs.push([key, this.value()]);
      return key;
    });
    return pairs.length ? { k: 'map', e: pairs } : { k: 'list', items };
  }

  // name[(arguments)] {. name[(arguments)]}
  chain() {
    const links = [];
    const made = this.peek().name === 'new' && this.all[this.at + 1]?.name !== undefined;
    if (made) this.at++;
    do {
      if (links.length) this.take('.');
      const { name } = this.all[this.at++] ?? {};
      if (name === undefined) throw new Error('expected a name');
      const link = { name };
      if (this.is('(')) {
        this.take('(');
        link.args = this.list(')', () => {
          if (this.peek().name === undefined || this.all[this.at + 1]?.mark !== ':') return this.value();
          const named = this.all[this.at++].name;
          this.take(':');
          return { k: 'named', name: named, value: this.value() };
        });
      }
      links.push(link);
    } while (this.is('.'));
    return meaning(links);
  }
}

function predicateOf(links) {
  const [{ name, args }, ...rest] = links;
  let p = { k: 'p', name, args };
  for (const { name: join, args: others } of rest) p = join === 'negate' ? { k: 'p', name: 'not', args: [p] } : { k: 'p', name: join, args: [p, ...others] };
  return p;
}

const stepsOf = (links) => links.map(({ name, args }) => {
  if (!args) throw new Error(`${name} needs parentheses`);
  return { name, args };
});

function meaning(links) {
  const [{ name, args }, ...rest] = links;
  if (!args && !rest.length) {
    if (name === 'null') return null;
    if (name === 'true' || name === 'false') return name === 'true';
    if (name === 'NaN' || name === 'Infinity') return num('d', name);
    if (words[name]) return { k: 'enum', family: words[name], word: name };
    if (name.endsWith('Strategy')) return { k: 'strategy', name, conf: [] };
    throw new Error(`unknown word ${name}`);
  }
  if (!args) {
    if (name === 'g') return { k: 'trav', spawned: true, steps: stepsOf(rest) };
    if (name === '__') return { k: 'trav', steps: stepsOf(rest) };
    if (name === 'P' || name === 'TextP') return predicateOf(rest);
    if (name === 'WithOptions') return typeof options[rest[0].name] === 'number' ? num('i', options[rest[0].name]) : str(options[rest[0].name]);
    if (name === 'VertexProperty') return meaning(rest);
    if (families[name]) {
      if (rest[0].args) return { k: 'card', card: rest[0].name, value: rest[0].args[0] };
      return { k: 'enum', family: name, word: rest[0].name };
    }
    if (name.endsWith('Strategy')) {
      const conf = rest.slice(1, -1).map(({ name: key, args: [value] }) => [key, value]);
      return { k: 'strategy', name, conf };
    }
    throw new Error(`unknown name ${name}`);
  }
  if (predicates.has(name) || (name === 'not' && args[0]?.k === 'p' && args[0].name)) return predicateOf(links);
  if (name.endsWith('Strategy')) return { k: 'strategy', name, conf: args.map(({ name: key, value }) => [key, value]) };
  switch (rest.length ? '' : name) {
    case 'datetime': return { k: 'date', ms: Date.parse(args[0].v) };
    case 'UUID': return { k: 'uuid', v: args[0].v.toLowerCase() };
    case 'list': case 'set': case 'single': return { k: 'card', card: name, value: args[0] };
    // of expected results
    case 'v': return { k: 'v', id: args[0] };
    case 'e': return { k: 'e', id: args[0] };
    case 'vp': return { k: 'vp', key: args[0].v, value: args[1] };
    case 'prop': return { k: 'prop', key: args[0].v, value: args[1] };
    case 'path': if (args.length && args[0]?.k !== undefined) return { k: 'path', items: args };
    // falls through: path() is a step
    default: return { k: 'trav', steps: stepsOf(links) };
  }
}

// The results that a line expects: a list of values.
export function parseValues(text) {
  const parser = new Parser(`[${text}]`);
  parser.take('[');
  return parser.list(']', () => parser.value());
}

// A script of one statement that begins with g; its terminal is apart.
export function parseScript(text) {
  const parser = new Parser(text);
  const tree = parser.value();
  if (parser.is(';')) parser.take(';');
  if (parser.at < parser.all.length) throw new Error('more than one statement');
  if (tree.k !== 'trav' || !tree.spawned) throw new Error('no traversal that begins with g');
  const last = tree.steps.at(-1);
  if (terminals.has(last.name)) {
    tree.terminal = last;
    tree.steps.pop();
  }
  return tree;
}

// ---- bytecode ----

const sources = new Set(['with', 'withSideEffect', 'withSack', 'withStrategies', 'withoutStrategies', 'withBulk', 'withPath', 'tx']);
const typeNames = { i: 'g:Int32', l: 'g:Int64', f: 'g:Float', d: 'g:Double', b: 'gx:Byte', s: 'gx:Int16', n: 'gx:BigInteger', m: 'gx:BigDecimal' };
const typed = (type, value) => ({ '@type': type, '@value': value });
const strategyPackage = 'org.apache.tinkerpop.gremlin.process.traversal.strategy.';

// A value in GraphSON 3, as drivers write it.
export function graphson(x) {
  if (x === null || typeof x === 'boolean') return x;
  switch (x.k) {
    case 'str': return x.v;
    case 'num':
      if (/^-?\d+$/.test(x.v) && !Number.isSafeInteger(Number(x.v))) throw new Error(`${x.v} is no number of JavaScript`);
      return typed(typeNames[x.t], /^-?Infinity|NaN/.test(x.v) ? x.v : Number(x.v));
    case 'list': return typed('g:List', x.items.map(graphson));
    case 'set': return typed('g:Set', x.items.map(graphson));
    case 'map': return typed('g:Map', x.e.flat().map(graphson));
    case 'enum': return typed(`g:${x.family}`, x.word);
    case 'date': return typed('g:Date', x.ms);
    case 'uuid': return typed('g:UUID', x.v);
    case 'card': return typed('g:CardinalityValueTraversal', { cardinality: x.card, value: graphson(x.value) });
    case 'p': {
      const values = x.args.map(graphson);
      if (x.name === 'within' || x.name === 'without') {
        const listed = x.args.length === 1 && (x.args[0]?.k === 'list' || x.args[0]?.k === 'set');
        return typed('g:P', { predicate: x.name, value: typed('g:List', listed ? values[0]['@value'] : values) });
      }
      const joined = ['and', 'or', 'between', 'inside', 'outside'].includes(x.name);
      return typed(textual.has(x.name) ? 'g:TextP' : 'g:P', { predicate: x.name, value: joined ? values : values[0] });
    }
    case 'strategy': return typed(`g:${x.name}`, { fqcn: strategyPackage + x.name, conf: Object.fromEntries(x.conf.map(([key, value]) => [key, graphson(value)])) });
    case 'trav': return typed('g:Bytecode', bytecodeOf(x));
    default: throw new Error(`no bytecode for ${x.k}`);
  }
}

// What a driver makes of it in source and step instructions.
export function bytecodeOf(tree) {
  const source = [];
  const step = [];
  let spawned = !tree.spawned;
  for (const { name, args } of tree.steps) {
    spawned ||= !sources.has(name);
    if (spawned) {
      step.push([name, ...args.map(graphson)]);
    } else if (name === 'with') {
      source.push(['withStrategies', graphson({ k: 'strategy', name: 'OptionsStrategy', conf: [[args[0].v, args[1] ?? true]] })]);
    } else if (name === 'withoutStrategies') {
      source.push([name, ...args.map((one) => typed('g:Class', strategyPackage + one.name))]);
    } else {
      source.push([name, ...args.map(graphson)]);
    }
  }
  return { ...(source.length ? { source } : {}), step };
}

// ---- answers ----

// Reads GraphSON 3 for a client of the npm driver, keeping the types of numbers.
export class TypedReader {
  readResponse(buffer) {
    const { requestId, status, result } = JSON.parse(buffer.toString());
    const items = result.data === null ? null : read(result.data).items;
    return { requestId, status: { ...status, attributes: new Map(read(status.attributes)?.e.map(([key, value]) => [key.v, value])) }, result: { data: items, meta: {} } };
  }
}

const letters = Object.fromEntries(Object.entries(typeNames).map(([letter, name]) => [name, letter]));

export function read(x) {
  if (x === null || x === undefined) return null;
  if (typeof x === 'boolean') return x;
  if (typeof x === 'string') return str(x);
  if (typeof x === 'number') return num('?', x);
  if (Array.isArray(x)) return { k: 'list', items: x.map(read) };
  const type = x['@type'];
  const value = x['@value'];
  if (letters[type]) return num(letters[type], value);
  switch (type) {
    case 'g:List': return { k: 'list', items: value.map(read) };
    case 'g:Set': return { k: 'set', items: value.map(read) };
    case 'g:BulkSet': return { k: 'list', items: pairs(value).flatMap(([item, count]) => Array(Number(count.v)).fill(item)) };
    case 'g:Map': return { k: 'map', e: pairs(value) };
    case 'g:Vertex': return { k: 'v', id: read(value.id), label: value.label, properties: value.properties };
    case 'g:Edge': return { k: 'e', id: read(value.id), label: value.label };
    case 'g:VertexProperty': return { k: 'vp', key: value.label, value: read(value.value) };
    case 'g:Property': return { k: 'prop', key: value.key, value: read(value.value) };
    case 'g:Path': return { k: 'path', items: read(value.objects).items, labels: read(value.labels) };
    case 'g:Tree': return { k: 'map', e: value.map(({ key, value: below }) => [read(key), read(below)]) };
    case 'g:Date': case 'g:Timestamp': return { k: 'date', ms: Number(value) };
    case 'gx:OffsetDateTime': return { k: 'date', ms: Date.parse(value) };
    case 'g:UUID': return { k: 'uuid', v: value.toLowerCase() };
    case 'g:Traverser': return { k: 'traverser', bulk: Number(read(value.bulk).v), value: read(value.value) };
    case 'gx:Char': return str(value);
    default: return type ? words[value] ? { k: 'enum', family: type.slice(2), word: value } : { k: 'other', type, value } : { k: 'other', type: 'untyped', value: x };
  }
}

function pairs(flat) {
  const all = [];
  for (let i = 0; i < flat.length; i += 2) all.push([read(flat[i]), read(flat[i + 1])]);
  return all;
}

// ---- comparing ----

const directions = { from: 'OUT', to: 'IN' };

function sameNumber(want, got) {
  if (want.exact && want.t !== got.t) return false;
  if (want.v === got.v) return true;
  const whole = /^[-+]?\d+$/;
  if (whole.test(want.v) && whole.test(got.v)) return BigInt(want.v) === BigInt(got.v);
  const a = Number(want.v);
  const b = Number(got.v);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  return a === b || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
}

export function sameList(want, got) {
  return want.length === got.length && want.every((one, i) => same(one, got[i]));
}

export function sameBag(want, got) {
  if (want.length !== got.length) return false;
  const left = [...got];
  return want.every((one) => {
    const i = left.findIndex((other) => same(one, other));
    if (i < 0) return false;
    left.splice(i, 1);
    return true;
  });
}

const idText = (id) => (id?.k ? id.v : String(id));

// Numbers with a suffix in a case are compared with their type, others by value.
export function same(want, got) {
  if (want === null || got === null || typeof want === 'boolean' || typeof got === 'boolean') return want === got;
  if (want.k === 'num' && got.k === 'num') return sameNumber(want, got);
  if (want.k !== got.k) return false;
  switch (want.k) {
    case 'str': case 'uuid': return want.v === got.v;
    case 'list': case 'path': return sameList(want.items, got.items);
    case 'set': return sameBag(want.items, got.items);
    case 'map': return sameBag(want.e.map(([key, value]) => ({ k: 'list', items: [key, value] })), got.e.map(([key, value]) => ({ k: 'list', items: [key, value] })));
    case 'enum': return (directions[want.word] ?? want.word) === (directions[got.word] ?? got.word);
    case 'v': case 'e': return idText(want.id) === idText(got.id);
    case 'vp': case 'prop': return want.key === got.key && same(want.value, got.value);
    case 'date': return want.ms === got.ms;
    default: return JSON.stringify(want) === JSON.stringify(got);
  }
}

// Maps of trees are read as maps, and lists whose order nobody promises are compared as bags where a case says so.
export function show(x) {
  if (x === null || typeof x === 'boolean') return String(x);
  switch (x.k) {
    case 'num': return x.v + (x.t === 'i' ? '' : x.t);
    case 'str': return `'${x.v}'`;
    case 'list': return `[${x.items.map(show).join(', ')}]`;
    case 'set': return `{${x.items.map(show).join(', ')}}`;
    case 'map': return `[${x.e.map(([key, value]) => `${show(key)}: ${show(value)}`).join(', ') || ':'}]`;
    case 'path': return `path(${x.items.map(show).join(', ')})`;
    case 'v': case 'e': return `${x.k}('${idText(x.id)}')`;
    case 'vp': case 'prop': return `${x.k}('${x.key}', ${show(x.value)})`;
    case 'enum': return `${x.family}.${x.word}`;
    default: return JSON.stringify(x);
  }
}
