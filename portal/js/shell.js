// What people write for MongoDB, as a command: db.orders.find({total: {$gt: 9}}).sort({total: -1}), db.runCommand({...}), or the
// command itself. The text is read, never run: only literals and the calls named here are understood. Values become extended JSON.

export class ShellError extends Error {
  constructor(message, from, to) {
    super(message);
    this.title = 'This is not understood';
    Object.assign(this, { from, to });
  }
}

// --- Reading ---

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(message, from = this.at, to = from + 1) {
    throw new ShellError(`${message} (at character ${from + 1})`, from, to);
  }

  skip() {
    const blank = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
    blank.lastIndex = this.at;
    blank.exec(this.text);
    this.at = blank.lastIndex;
  }

  get over() {
    this.skip();
    return this.at >= this.text.length;
  }

  peek(mark) {
    this.skip();
    return this.text.startsWith(mark, this.at);
  }

  take(mark) {
    if (!this.peek(mark)) return false;
    this.at += mark.length;
    return true;
  }

  need(mark) {
    if (!this.take(mark)) this.fail(this.at >= this.text.length ? `the text ends where “${mark}” is missing` : `“${mark}” is expected here`);
  }

  match(pattern) {
    this.skip();
    const sticky = new RegExp(pattern, 'yu');
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text);
    if (found) this.at = sticky.lastIndex;
    return found?.[0];
  }

  name() {
    return this.match('[\\p{L}_$][\\p{L}\\p{N}_$]*');
  }

  string() {
    this.skip();
    const begin = this.at;
    const quote = this.text[this.at++];
    let out = '';
    for (;;) {
      if (this.at >= this.text.length) this.fail('the text in quotes does not end', begin, this.text.length);
      const c = this.text[this.at++];
      if (c === quote) return out;
      if (c !== '\\') {
        out += c;
        continue;
      }
      const e = this.text[this.at++];
      const escapes = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', 0: '\0' };
      if (e === 'u' || e === 'x') {
        const hex = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))/.exec(this.text.slice(this.at)) ?? [];
        const code = e === 'x' ? /^[0-9a-fA-F]{2}/.exec(this.text.slice(this.at))?.[0] : hex[1] ?? hex[2];
        if (!code || parseInt(code, 16) > 0x10ffff) this.fail('the escape is not one', this.at - 2);
        this.at += e === 'x' ? 2 : hex[0].length;
        out += String.fromCodePoint(parseInt(code, 16));
      } else out += escapes[e] ?? e ?? '';
    }
  }

  isQuote() {
    this.skip();
    return ['"', "'", '`'].includes(this.text[this.at]);
  }

  arguments() {
    const list = [];
    this.need('(');
    while (!this.take(')')) {
      list.push(this.value());
      if (!this.take(',') && !this.peek(')')) this.fail(this.at >= this.text.length ? 'the text ends where “)” is missing' : '“,” or “)” is expected here');
    }
    return list;
  }

  object() {
    const out = {};
    this.need('{');
    while (!this.take('}')) {
      const from = this.at;
      const key = this.isQuote() ? this.string() : this.name() ?? this.match('\\d+');
      if (key === undefined) this.fail(this.at >= this.text.length ? 'the text ends where “}” is missing' : 'a name is expected here');
      if (Object.hasOwn(out, key)) this.fail(`“${key}” is there twice`, from, this.at);
      this.need(':');
      Object.defineProperty(out, key, { value: this.value(), enumerable: true, writable: true, configurable: true });
      if (!this.take(',') && !this.peek('}')) this.fail(this.at >= this.text.length ? 'the text ends where “}” is missing' : '“,” or “}” is expected here');
    }
    // as other tools write dates
    if (Object.keys(out).length === 1 && typeof out.$date === 'string') return date(out.$date, this);
    return out;
  }

  array() {
    const out = [];
    this.need('[');
    while (!this.take(']')) {
      out.push(this.value());
      if (!this.take(',') && !this.peek(']')) this.fail(this.at >= this.text.length ? 'the text ends where “]” is missing' : '“,” or “]” is expected here');
    }
    return out;
  }

  regex() {
    const begin = this.at;
    let pattern = '';
    let inside = false;
    for (this.at++; ; this.at++) {
      const c = this.text[this.at];
      if (c === undefined || c === '\n') this.fail('the expression between slashes does not end', begin, this.at);
      if (c === '\\') pattern += c + (this.text[++this.at] ?? '');
      else if (c === '/' && !inside) break;
      else {
        if (c === '[') inside = true;
        else if (c === ']') inside = false;
        pattern += c;
      }
    }
    this.at++;
    return regex(pattern, this.match('[a-z]*') ?? '');
  }

  number() {
    const text = this.match('[-+]?(?:0[xX][0-9a-fA-F]+|(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?)');
    if (/^[-+]?\d+$/.test(text) && !Number.isSafeInteger(Number(text))) return { $numberLong: text.replace('+', '') };
    return Number(text);
  }

  value() {
    this.skip();
    const c = this.text[this.at];
    if (c === undefined) this.fail('the text ends where a value is missing');
    if (c === '{') return this.object();
    if (c === '[') return this.array();
    if (c === '/') return this.regex();
    if (this.isQuote()) return this.string();
    if (/[\d.]/.test(c) || (/[-+]/.test(c) && /[\d.]/.test(this.text[this.at + 1] ?? ''))) return this.number();
    const minus = this.take('-');
    const from = this.at;
    const word = this.name();
    if (minus && word !== 'Infinity') this.fail('a value is expected here', from);
    if (word === undefined) this.fail('a value is expected here');
    if (Object.hasOwn(constants, word)) return minus ? { $numberDouble: '-Infinity' } : constants[word];
    const call = word === 'new' ? this.name() : word;
    if (!Object.hasOwn(calls, call ?? '')) this.fail(`“${call ?? word}” is no value that is understood here`, from, this.at);
    return calls[call](this.peek('(') ? this.arguments() : [], this);
  }
}

const constants = { true: true, false: false, null: null, undefined: { $undefined: true }, Infinity: { $numberDouble: 'Infinity' }, NaN: { $numberDouble: 'NaN' } };

function date(text, reader) {
  const ms = text === undefined ? Date.now() : typeof text === 'number' ? text : Date.parse(text);
  if (Number.isNaN(ms)) reader.fail(`“${text}” is no date`);
  return { $date: { $numberLong: String(ms) } };
}

const regex = (pattern, options) => ({ $regularExpression: { pattern, options: [...options].sort().join('') } });

function objectId(text, reader) {
  if (text === undefined) {
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return { $oid: Math.floor(Date.now() / 1000).toString(16).padStart(8, '0') + hex };
  }
  if (!/^[0-9a-fA-F]{24}$/.test(text)) reader.fail('an ObjectId has 24 hexadecimal digits');
  return { $oid: text.toLowerCase() };
}

function uuid(text, reader) {
  const hex = (text ?? crypto.randomUUID()).replaceAll('-', '');
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) reader.fail('a UUID has 32 hexadecimal digits');
  return { $binary: { base64: btoa(hex.match(/../g).map((byte) => String.fromCharCode(parseInt(byte, 16))).join('')), subType: '04' } };
}

const text = (value) => (value && typeof value === 'object' ? value.$numberLong : String(value ?? 0));
const long = ([value]) => ({ $numberLong: text(value) });
const int = ([value]) => ({ $numberInt: text(value) });
const double = ([value]) => ({ $numberDouble: text(value) });
const decimal = ([value]) => ({ $numberDecimal: text(value) });
const calls = {
  ObjectId: ([value], reader) => objectId(value, reader),
  ISODate: ([value], reader) => date(value, reader),
  Date: ([value], reader) => date(value, reader),
  NumberLong: long, Long: long, NumberInt: int, Int32: int, Double: double, NumberDecimal: decimal, Decimal128: decimal,
  UUID: ([value], reader) => uuid(value, reader),
  BinData: ([subType = 0, base64 = '']) => ({ $binary: { base64, subType: Number(subType).toString(16).padStart(2, '0') } }),
  Timestamp: ([t = 0, i = 0]) => ({ $timestamp: typeof t === 'object' ? t : { t, i } }),
  RegExp: ([pattern = '', options = '']) => regex(pattern, options),
  MinKey: () => ({ $minKey: 1 }),
  MaxKey: () => ({ $maxKey: 1 }),
};

// --- Commands ---

const update = (multi, replaces) => (collection, [q = {}, u = {}, options = {}], reader) => {
  const first = Object.keys(u)[0] ?? '';
  if (replaces && first.startsWith('$')) reader.fail('a replacement is a document, without operators');
  if (!replaces && !Array.isArray(u) && !first.startsWith('$')) reader.fail('an update has operators such as $set; replaceOne replaces the document');
  return { update: collection, updates: [{ q, u, multi, ...options }] };
};
const indexName = (key) => Object.entries(key).map(([name, way]) => `${name}_${way}`).join('_');

const methods = {
  find: (collection, [filter = {}, projection, options = {}]) => ({ find: collection, filter, ...(projection ? { projection } : {}), ...options }),
  findOne: (collection, [filter = {}, projection]) => ({ find: collection, filter, ...(projection ? { projection } : {}), limit: 1, singleBatch: true }),
  aggregate: (collection, [pipeline = [], options = {}]) => ({ aggregate: collection, pipeline: Array.isArray(pipeline) ? pipeline : [pipeline], cursor: {}, ...options }),
  countDocuments: (collection, [query = {}, options = {}]) => ({ count: collection, query, ...options }),
  count: (collection, [query = {}]) => ({ count: collection, query }),
  estimatedDocumentCount: (collection) => ({ count: collection }),
  distinct: (collection, [key, query = {}]) => ({ distinct: collection, key, query }),
  insertOne: (collection, [document = {}]) => ({ insert: collection, documents: [document] }),
  insertMany: (collection, [documents = [], options = {}]) => ({ insert: collection, documents, ...options }),
  insert: (collection, [documents = {}]) => ({ insert: collection, documents: Array.isArray(documents) ? documents : [documents] }),
  updateOne: update(false, false),
  updateMany: update(true, false),
  replaceOne: update(false, true),
  deleteOne: (collection, [q = {}, options = {}]) => ({ delete: collection, deletes: [{ q, limit: 1, ...options }] }),
  deleteMany: (collection, [q = {}, options = {}]) => ({ delete: collection, deletes: [{ q, limit: 0, ...options }] }),
  findOneAndUpdate: (collection, [query = {}, change = {}, { returnDocument, projection, ...options } = {}]) => ({ findAndModify: collection, query, update: change, ...(returnDocument === 'after' ? { new: true } : {}), ...(projection ? { fields: projection } : {}), ...options }),
  findOneAndDelete: (collection, [query = {}, options = {}]) => ({ findAndModify: collection, query, remove: true, ...options }),
  createIndex: (collection, [key = {}, options = {}]) => ({ createIndexes: collection, indexes: [{ key, name: indexName(key), ...options }] }),
  getIndexes: (collection) => ({ listIndexes: collection }),
  dropIndex: (collection, [index]) => ({ dropIndexes: collection, index }),
  drop: (collection) => ({ drop: collection }),
  stats: (collection) => ({ collStats: collection }),
  validate: (collection) => ({ validate: collection }),
  renameCollection: (collection, [to], reader, database) => ({ renameCollection: `${database}.${collection}`, to: `${database}.${to}` }),
};
const onAdmin = new Set(['renameCollection']);

const ofDatabase = {
  runCommand: ([command]) => (typeof command === 'string' ? { [command]: 1 } : command),
  adminCommand: ([command]) => (typeof command === 'string' ? { [command]: 1 } : command),
  aggregate: ([pipeline = []]) => ({ aggregate: 1, pipeline, cursor: {} }),
  createCollection: ([name, options = {}]) => ({ create: name, ...options }),
  dropDatabase: () => ({ dropDatabase: 1 }),
  getCollectionNames: () => ({ listCollections: 1, nameOnly: true }),
  getCollectionInfos: () => ({ listCollections: 1 }),
  stats: () => ({ dbStats: 1 }),
  hello: () => ({ hello: 1 }),
  serverStatus: () => ({ serverStatus: 1 }),
  currentOp: () => ({ currentOp: 1 }),
  version: () => ({ buildInfo: 1 }),
};
const databaseOnAdmin = new Set(['adminCommand', 'currentOp']);

// What may follow find: a field of its command.
const fields = { sort: 'sort', limit: 'limit', skip: 'skip', hint: 'hint', project: 'projection', projection: 'projection', batchSize: 'batchSize', collation: 'collation', maxTimeMS: 'maxTimeMS', comment: 'comment', min: 'min', max: 'max', returnKey: 'returnKey', showRecordId: 'showRecordId', allowDiskUse: 'allowDiskUse', readConcern: 'readConcern' };
const asIs = new Set(['toArray', 'pretty']);
const shows = { dbs: ['admin', { listDatabases: 1 }], databases: ['admin', { listDatabases: 1 }], collections: [null, { listCollections: 1, nameOnly: true }], users: [null, { usersInfo: 1 }], roles: [null, { rolesInfo: 1 }] };

export const vocabulary = {
  methods: Object.keys(methods),
  database: [...Object.keys(ofDatabase), 'getCollection', 'getSiblingDB'],
  cursor: [...Object.keys(fields), 'explain', 'count', ...asIs],
  values: Object.keys(calls),
};

function follow(reader, command) {
  while (reader.take('.')) {
    const from = reader.at;
    const name = reader.name();
    const args = reader.arguments();
    if (asIs.has(name)) continue;
    if (name === 'explain') return { explain: command, verbosity: args[0] ?? 'executionStats' };
    if (name === 'count' && command.find) return { count: command.find, query: command.filter };
    if (!command.find || !Object.hasOwn(fields, name ?? '')) {
      if (!(command.aggregate && ['hint', 'collation', 'maxTimeMS', 'allowDiskUse', 'comment'].includes(name))) reader.fail(`“${name ?? ''}” cannot follow here`, from, reader.at);
    }
    command[fields[name]] = name === 'readConcern' && typeof args[0] === 'string' ? { level: args[0] } : args[0] ?? true;
  }
  return command;
}

function chain(reader, state) {
  const names = [];
  let explains = null;
  for (;;) {
    if (reader.take('[')) {
      if (!reader.isQuote()) reader.fail('a name in quotes is expected here');
      names.push(reader.string());
      reader.need(']');
      continue;
    }
    const from = reader.at;
    if (!reader.take('.')) reader.fail(reader.over ? 'a method is missing: db.NAME.find()' : '“.” is expected here');
    const name = reader.name() ?? reader.match('[^\\s.()\\[\\]{}"\';,]+');
    if (name === undefined) reader.fail('a name is expected here');
    if (!reader.peek('(')) {
      names.push(name);
      continue;
    }
    const args = reader.arguments();
    if (!names.length && (name === 'getCollection' || name === 'getSiblingDB')) {
      if (typeof args[0] !== 'string') reader.fail(`${name} takes a name`, from, reader.at);
      if (name === 'getCollection') names.push(args[0]);
      else state.database = args[0];
      continue;
    }
    if (names.length && name === 'explain') {
      explains = args[0] ?? 'executionStats';
      continue;
    }
    if (!names.length) {
      if (!Object.hasOwn(ofDatabase, name)) reader.fail(`db has no method “${name}” here`, from + 1, from + 1 + name.length);
      const command = ofDatabase[name](args);
      if (!command || typeof command !== 'object' || Array.isArray(command)) reader.fail(`${name} takes a command: {ping: 1}`, from, reader.at);
      return { database: databaseOnAdmin.has(name) ? 'admin' : state.database, command: follow(reader, command) };
    }
    if (!Object.hasOwn(methods, name)) reader.fail(`collections have no method “${name}” here`, from + 1, from + 1 + name.length);
    const command = follow(reader, methods[name](names.join('.'), args, reader, state.database));
    return { database: onAdmin.has(name) ? 'admin' : state.database, command: explains ? { explain: command, verbosity: explains } : command };
  }
}

// { database, command }: what is to be sent where.
export function parse(source, database) {
  const reader = new Reader(source);
  let found;
  if (reader.over) reader.fail('there is nothing to run');
  if (reader.peek('{')) found = { database, command: reader.object() };
  else {
    const word = reader.name();
    if (word === 'show') {
      const what = reader.name();
      if (!Object.hasOwn(shows, what ?? '')) reader.fail(`show ${Object.keys(shows).join(', show ')}`);
      found = { database: shows[what][0] ?? database, command: { ...shows[what][1] } };
    } else if (word === 'use') reader.fail('the database is the one above; db.getSiblingDB("name") reaches another', 0, reader.text.length);
    else if (word !== 'db') reader.fail('it begins with “db.”, “show”, or is a command: {find: "orders"}', 0);
    else found = chain(reader, { database });
  }
  reader.take(';');
  if (!reader.over) reader.fail('one statement at a time: this follows it', reader.at, reader.text.length);
  if (!Object.keys(found.command).length) reader.fail('the command is empty', 0);
  return found;
}
