// Random graphs and random traversals over them, of steps that gremlin_model.js knows; the same seed gives the same ones.
import { num, str } from './gremlin_notation.js';

// ---- chance that can be had again ----

export class Chance {
  constructor(seed) { this.state = (BigInt(seed) * 0xd1342543de82ef95n ^ 0x5851f42d4c957f2dn) & 0xffffffffffffffffn; }

  next() {
    this.state = this.state + 0x9e3779b97f4a7c15n & 0xffffffffffffffffn;
    let z = this.state;
    z = (z ^ z >> 30n) * 0xbf58476d1ce4e5b9n & 0xffffffffffffffffn;
    z = (z ^ z >> 27n) * 0x94d049bb133111ebn & 0xffffffffffffffffn;
    return z ^ z >> 31n;
  }

  below(n) { return Number(this.next() % BigInt(n)); }

  one(list) { return list[this.below(list.length)]; }

  some(list) { return Array.from({ length: 1 + this.below(2) }, () => this.one(list)); }

  is(percent) { return this.below(100) < percent; }
}

// ---- graphs ----

const vertexLabels = ['p', 'q'];
const edgeLabels = ['k', 'l', 'm'];
const keys = ['a', 'b', 'c'];

const randomValue = (chance, key) => (key === 'a' ? num('i', chance.below(5)) : key === 'c' ? num('d', `${chance.below(4)}.5`)
  : chance.is(70) ? str(chance.one(['x', 'xy', 'y', 'z'])) : num('i', chance.below(3)));

function randomProperties(chance) {
  const properties = new Map();
  for (const key of keys) if (chance.is(60)) properties.set(key, randomValue(chance, key));
  return properties;
}

export function randomGraph(chance) {
  const vertices = Array.from({ length: 3 + chance.below(7) }, (_, i) => ({
    k: 'v', id: str(`v${i}`), label: chance.one(vertexLabels), properties: new Map([['name', str(`n${i}`)], ...randomProperties(chance)]),
  }));
  const edges = Array.from({ length: chance.below(14) }, (_, i) => ({
    k: 'e', id: str(`e${i}`), label: chance.one(edgeLabels), from: chance.one(vertices), to: chance.one(vertices), properties: randomProperties(chance),
  }));
  return { vertices, edges };
}

const literal = (x) => (x.k === 'str' ? `'${x.v}'` : x.t === 'd' ? `${x.v}d` : x.v);
const propertySteps = (properties) => [...properties].map(([key, value]) => `.property('${key}', ${literal(value)})`).join('');

export const scriptsOf = ({ vertices, edges }) => [
  ...vertices.map(({ id, label, properties }) => `g.addV('${label}').property(T.id, '${id.v}')${propertySteps(properties)}`),
  ...edges.map(({ id, label, from, to, properties }) => `g.V('${from.id.v}').addE('${label}').to(__.V('${to.id.v}')).property(T.id, '${id.v}')${propertySteps(properties)}`),
];

// ---- traversals ----

// Writes one traversal. `kind` is what flows: v, e, x (a value that may be of any type), n (a number), map, list, path. Once traversers
// were left out by chance (dedup, limit), nothing may look at paths any more: which of several alike stays is nobody's promise.
export class Writer {
  constructor(chance, graph) {
    Object.assign(this, { chance, graph, cut: false, labels: [], stored: false });
  }

  predicate(key) {
    const { chance } = this;
    const value = () => literal(randomValue(chance, key));
    switch (chance.below(9)) {
      case 0: return `eq(${value()})`;
      case 1: return `neq(${value()})`;
      case 2: return `${chance.one(['gt', 'gte', 'lt', 'lte'])}(${value()})`;
      case 3: return `${chance.one(['between', 'inside', 'outside'])}(${value()}, ${value()})`;
      case 4: return `within(${value()}, ${value()})`;
      case 5: return `without(${value()}, ${value()})`;
      case 6: return `${chance.one(['startingWith', 'containing'])}('${chance.one(['x', 'y', 'n'])}')`;
      case 7: return `P.${chance.one(['gt', 'neq'])}(${value()}).${chance.one(['and', 'or'])}(P.lt(${value()}))`;
      default: return `not(${chance.one(['eq', 'neq'])}(${value()}))`;
    }
  }

  key() { return this.chance.one(keys); }

  edgeLabelsText() { return this.chance.is(60) ? '' : this.chance.some(edgeLabels).map((label) => `'${label}'`).join(', '); }

  // One step that goes from an element to others: [text, kind].
  hop(kind) {
    const { chance } = this;
    if (kind === 'v') {
      const step = chance.one(['out', 'in', 'both', 'outE', 'inE', 'bothE']);
      return [`${step}(${this.edgeLabelsText()})`, step.endsWith('E') ? 'e' : 'v'];
    }
    return [`${chance.one(['outV', 'inV', 'bothV'])}()`, 'v'];
  }

  has(kind) {
    const { chance } = this;
    const key = this.key();
    switch (chance.below(8)) {
      case 0: return `has('${key}')`;
      case 1: return `hasNot('${key}')`;
      case 2: return `has('${key}', ${literal(randomValue(chance, key))})`;
      case 3: return `hasLabel(${chance.some(kind === 'v' ? vertexLabels : edgeLabels).map((label) => `'${label}'`).join(', ')})`;
      case 4: return `hasId('${kind}${chance.below(6)}', '${kind}${chance.below(6)}')`;
      case 5: return `has(T.label, ${chance.one(['eq', 'neq'])}('${chance.one(kind === 'v' ? vertexLabels : edgeLabels)}'))`;
      case 6: return kind === 'v' ? `has('${chance.one(vertexLabels)}', '${key}', ${this.predicate(key)})` : `has('${key}', ${this.predicate(key)})`;
      default: return `has('${key}', ${this.predicate(key)})`;
    }
  }

  // A child that only asks whether there is something.
  question(kind, depth = 0) {
    const { chance } = this;
    const [hop, to] = this.hop(kind);
    switch (chance.below(depth > 1 ? 3 : 7)) {
      case 0: return `__.${hop}`;
      case 1: return `__.${this.has(kind)}`;
      case 2: return `__.${hop}.${this.has(to)}`;
      case 3: return `__.not(${this.question(kind, depth + 1)})`;
      case 4: return `__.${chance.one(['and', 'or'])}(${this.question(kind, depth + 1)}, ${this.question(kind, depth + 1)})`;
      case 5: return `__.${hop}.count().is(${this.predicateOfCount()})`;
      default: return `__.values('${this.key()}').is(${this.predicate(this.key())})`;
    }
  }

  predicateOfCount() { return `${this.chance.one(['eq', 'neq', 'gt', 'gte', 'lt', 'lte'])}(${this.chance.below(4)})`; }

  // What by() may be told of an element.
  by(kind) {
    const { chance } = this;
    return chance.one([`'${this.key()}'`, `'${kind === 'v' ? 'name' : this.key()}'`, 'T.id', 'T.label', `__.${this.hop(kind)[0]}.count()`, `__.values('${this.key()}')`]);
  }

  filterStep(kind) {
    const { chance } = this;
    const choices = [
      () => this.has(kind), () => this.has(kind),
      () => `${chance.one(['where', 'filter', 'not'])}(${this.question(kind)})`,
      () => `${chance.one(['and', 'or'])}(${this.question(kind)}, ${this.question(kind)})`,
    ];
    if (!this.cut) choices.push(() => chance.one(['simplePath()', 'cyclicPath()']));
    if (!this.cut && this.labels.length) choices.push(() => `where(${chance.one(['eq', 'neq'])}('${chance.one(this.labels)}'))`);
    if (this.stored) choices.push(() => `where(${chance.one(['within', 'without'])}('s'))`);
    return chance.one(choices)();
  }

  // One step, or a few that belong together: [text, kind].
  elementStep(kind, depth) {
    const { chance } = this;
    const choices = [() => this.hop(kind), () => this.hop(kind), () => this.hop(kind), () => [this.filterStep(kind), kind], () => [this.filterStep(kind), kind]];
    choices.push(
      () => { this.cut = true; return [`dedup()`, kind]; },
      () => { this.cut = true; return [`order().by(T.id).${chance.one(['limit(2)', 'skip(1)', 'range(1, 3)', 'tail(2)'])}`, kind]; },
      () => [`order().by(${this.by(kind)}${chance.is(40) ? ', desc' : ''})`, kind],
      () => [`union(${this.branch(kind, 'v')}, ${this.branch(kind, 'v')})`, 'v'],
      () => [`coalesce(${this.branch(kind, 'v')}, ${this.branch(kind, 'v')})`, 'v'],
      () => [`choose(${this.question(kind)}, ${this.branch(kind, 'v')}, ${this.branch(kind, 'v')})`, 'v'],
      () => [`flatMap(__.${kind === 'v' ? 'out()' : 'inV()'})`, 'v'],
    );
    if (kind === 'v' && depth < 2) choices.push(() => [`optional(__.${chance.one(['out', 'in', 'both'])}(${this.edgeLabelsText()}))`, 'v'], () => [this.repeat(), 'v'], () => [this.repeat(), 'v']);
    if (!this.cut && this.labels.length < 2) {
      choices.push(() => { const name = ['m0', 'm1'][this.labels.length]; this.labels.push(name); return [`as('${name}')`, kind]; });
    }
    if (!this.stored && depth === 0) choices.push(() => { this.stored = true; return [`aggregate('s')`, kind]; });
    if (kind === 'v') choices.push(() => [`bothE(${this.edgeLabelsText()}).otherV()`, 'v']);
    return chance.one(choices)();
  }

  // One hop to vertices, with a condition perhaps.
  branch(kind) {
    const { chance } = this;
    if (kind === 'e') return `__.${chance.one(['outV()', 'inV()', 'bothV()'])}`;
    const hop = `__.${chance.one(['out', 'in', 'both'])}(${this.edgeLabelsText()})`;
    return chance.is(30) ? `${hop}.${this.has('v')}` : hop;
  }

  repeat() {
    const { chance } = this;
    const simple = chance.is(50);
    const body = `__.${chance.one(['out', 'in', 'both'])}(${this.edgeLabelsText()})${simple && !this.cut ? '.simplePath()' : ''}`;
    const times = `.times(${1 + chance.below(3)})`;
    const until = `.until(${this.question('v', 1)})`;
    const emit = chance.is(60) ? '.emit()' : `.emit(${this.question('v', 1)})`;
    const bounded = simple && !this.cut;
    switch (chance.below(bounded ? 7 : 3)) {
      case 0: return `repeat(${body})${times}`;
      case 1: return `repeat(${body})${chance.is(50) ? times + emit : emit + times}`;
      case 2: return `${emit.slice(1)}.repeat(${body})${times}`;
      case 3: return `repeat(${body})${until}`;
      case 4: return `repeat(${body})${emit}`;
      case 5: return `${until.slice(1)}.repeat(${body})`;
      default: return `repeat(${body})${emit}${until}`;
    }
  }

  // The end of a traversal.
  end(kind) {
    const { chance } = this;
    const key = this.key();
    const numbers = () => `values('${chance.one(['a', 'c'])}').${chance.one(['sum', 'min', 'max', 'mean'])}()`;
    const choices = [
      () => '', () => 'count()', () => `values('${key}')`, () => 'id()', () => 'label()', () => `values('${key}', '${this.key()}')`, numbers, numbers,
      () => `groupCount().by(${this.by(kind)})`, () => `group().by(${this.by(kind)}).by(${chance.one(['__.count()', `'${key}'`, `__.values('a').sum()`, 'T.id'])})`,
      () => `valueMap(${chance.is(50) ? '' : `'${key}'`})`, () => 'fold().count(local)', () => `values('${key}').fold()`, () => `values('${key}').dedup()`,
      () => `project('x', 'y').by(${this.by(kind)}).by(${this.by(kind)})`, () => `dedup().by(${chance.one(['T.label', `'${key}'`])}).count()`,
      () => `values('${key}').is(${this.predicate(key)})`, () => `order().by(T.id${chance.is(50) ? ', desc' : ''}).id()`, () => `values('${key}').order()${chance.is(50) ? '.by(desc)' : ''}`,
      () => `local(__.${this.hop(kind)[0]}.count())`, () => `map(__.${this.hop(kind)[0]}.count())`, () => `coalesce(__.values('${key}'), __.constant('none'))`,
      () => `fold().unfold().id()`, () => `values('${key}').constant(1).sum()`,
    ];
    if (!this.cut) choices.push(() => 'path()', () => `path().by(T.id)`, () => `path().by(${kind === 'v' ? `'${key}'` : 'T.id'})`, () => 'path().count(local)');
    if (!this.cut && this.labels.length) choices.push(() => `select('${this.labels[0]}')`, () => `select('${this.labels[0]}').by(T.id)`);
    if (!this.cut && this.labels.length === 2) choices.push(() => `select('m0', 'm1').by(T.label)`, () => `select('m0', 'm1').by('${key}')`);
    if (this.stored) choices.push(() => `cap('s')`, () => `cap('s').unfold().id()`, () => `cap('s').count(local)`);
    return chance.one(choices)();
  }

  start() {
    const { chance } = this;
    switch (chance.below(6)) {
      case 0: return [`g.V('v${chance.below(8)}')`, 'v'];
      case 1: return [`g.V('v${chance.below(8)}', 'v${chance.below(8)}')`, 'v'];
      case 2: return ['g.E()', 'e'];
      case 3: return [`g.V().${this.has('v')}`, 'v'];
      case 4: return [`g.E().${this.has('e')}`, 'e'];
      default: return ['g.V()', 'v'];
    }
  }

  write() {
    let [text, kind] = this.start();
    const steps = this.chance.below(5);
    for (let i = 0; i < steps; i++) {
      const [step, next] = this.elementStep(kind, 0);
      text += `.${step}`;
      kind = next;
    }
    const end = this.end(kind);
    return end ? `${text}.${end}` : text;
  }
}
