// What stands around a function of a filter or a pipeline: C appends ("kind", ["text", ...]) to this
// expression, and what comes out is called once for each row.
//
// A row is one argument, JSON as the server writes documents: types that JSON lacks are extended
// JSON. They become values that JavaScript has, or classes of this file, or stay as they are; the
// result goes the same way back. What is kept here of the built-ins is kept from texts that change them.
(function (kind, texts) {
  'use strict';

  const { apply } = Reflect;
  const { keys, defineProperty } = Object;
  const { isArray } = Array;
  const { parse, stringify } = JSON;
  const evaluate = eval;
  const FunctionOf = Function;
  const DateOf = Date;
  const RegExpOf = RegExp;
  const textOf = String;
  const numberOf = Number;
  const booleanOf = Boolean;
  const SyntaxErrorOf = SyntaxError;
  const ErrorOf = Error;
  const PromiseOf = Promise;
  const execute = RegExp.prototype.exec;
  const timeOf = Date.prototype.getTime;
  const { floor, random } = Math;
  const whole = globalThis;

  // --- Types ---------------------------------------------------------------------------------

  function digits(count) {
    let made = '';
    while (made.length < count) made += floor(random() * 16).toString(16);
    return made;
  }

  class ObjectId {
    constructor(hex) {
      const made = hex === undefined
        ? floor(DateOf.now() / 1000).toString(16).padStart(8, '0') + digits(16)
        : hex instanceof ObjectId ? hex.str : textOf(hex);
      if (apply(execute, /^[0-9a-fA-F]{24}$/, [made]) === null) throw new ErrorOf('an ObjectId has 24 hexadecimal digits');
      defineProperty(this, 'str', { value: made.toLowerCase() });
    }
    toString() { return `ObjectId("${this.str}")`; }
    valueOf() { return this.str; }
    toHexString() { return this.str; }
    equals(other) { return other instanceof ObjectId && other.str === this.str; }
    getTimestamp() { return new DateOf(parseInt(this.str.slice(0, 8), 16) * 1000); }
  }

  class NumberDecimal {
    constructor(value) { defineProperty(this, 'str', { value: textOf(value) }); }
    toString() { return `NumberDecimal("${this.str}")`; }
    valueOf() { return numberOf(this.str); }
  }

  function regularExpression(value) {
    if (apply(execute, /^[ims]*$/, [value.options]) === null) return undefined;
    try {
      return new RegExpOf(value.pattern, value.options);
    } catch (unknown) {
      return undefined;
    }
  }

  const readers = {
    __proto__: null,
    $oid: (value) => new ObjectId(value),
    $date: (value) => new DateOf(numberOf(value.$numberLong)),
    $numberDouble: (value) => numberOf(value),
    $numberLong: (value) => numberOf(value),
    $numberInt: (value) => numberOf(value),
    $numberDecimal: (value) => new NumberDecimal(value),
    $symbol: (value) => value,
    $undefined: () => undefined,
    $regularExpression: regularExpression,
  };

  function decode(value) {
    if (value === null || typeof value !== 'object') return value;
    if (isArray(value)) {
      for (let i = 0; i < value.length; i++) value[i] = decode(value[i]);
      return value;
    }
    const names = keys(value);
    if (names.length === 1 && readers[names[0]] !== undefined) {
      const made = readers[names[0]](value[names[0]]);
      return made === undefined && names[0] !== '$undefined' ? value : made;
    }
    for (let i = 0; i < names.length; i++) value[names[i]] = decode(value[names[i]]);
    return value;
  }

  function encodeObject(value) {
    if (value instanceof ObjectId) return { $oid: value.str };
    if (value instanceof NumberDecimal) return { $numberDecimal: value.str };
    if (value instanceof DateOf) {
      const time = apply(timeOf, value, []);
      return time === time ? { $date: { $numberLong: textOf(time) } } : null;
    }
    if (value instanceof RegExpOf)
      return { $regularExpression: { pattern: value.source, options: (value.ignoreCase ? 'i' : '') + (value.multiline ? 'm' : '') + (value.dotAll ? 's' : '') } };
    if (value instanceof numberOf || value instanceof textOf || value instanceof booleanOf) return encode(value.valueOf());
    if (value instanceof PromiseOf) throw new ErrorOf('a function cannot be asynchronous');
    if (isArray(value)) {
      const made = [];
      for (let i = 0; i < value.length; i++) {
        const one = encode(value[i]);
        made[i] = one === undefined ? null : one;
      }
      return made;
    }
    const made = {}, names = keys(value);
    for (let i = 0; i < names.length; i++) {
      const one = encode(value[names[i]]);
      if (one === undefined) continue;
      if (names[i] === '__proto__') defineProperty(made, names[i], { value: one, enumerable: true });
      else made[names[i]] = one;
    }
    return made;
  }

  function encode(value) {
    switch (typeof value) {
      case 'number':
        return value - value === 0 ? value : { $numberDouble: textOf(value) };
      case 'bigint':
        return { $numberLong: textOf(value) };
      case 'object':
        return value === null ? null : encodeObject(value);
      case 'string':
      case 'boolean':
        return value;
      default:
        return undefined;
    }
  }

  function result(value) {
    const made = encode(value);
    return made === undefined ? null : made;
  }

  // --- What texts find -----------------------------------------------------------------------

  function offer(object, name, value) {
    defineProperty(object, name, { value, writable: false, configurable: false, enumerable: false });
  }

  // Both are called with new and without.
  function caller(type) {
    const made = function (value) { return new type(value); };
    made.prototype = type.prototype;
    return made;
  }

  offer(whole, 'ObjectId', caller(ObjectId));
  offer(whole, 'NumberDecimal', caller(NumberDecimal));
  offer(whole, 'ISODate', (value) => (value === undefined ? new DateOf() : new DateOf(value)));
  offer(whole, 'NumberInt', (value) => numberOf(value) | 0);
  offer(whole, 'NumberLong', (value) => numberOf(value));
  offer(whole, 'tojson', (value) => stringify(encode(value)));
  offer(whole, 'print', () => undefined);
  offer(Array, 'sum', (values) => {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[i];
    return sum;
  });

  // --- Texts ---------------------------------------------------------------------------------

  function trimmed(source) {
    let end = source.length;
    while (end > 0 && (source[end - 1] === ';' || source[end - 1] <= ' ')) end--;
    return source.slice(0, end);
  }

  function compile(source, what) {
    const made = evaluate(`(${trimmed(source)}\n)`);
    if (typeof made !== 'function') throw new ErrorOf(`${what} is not a function`);
    return made;
  }

  // A function, an expression, or the statements of a function.
  function compileWhere(source) {
    if (apply(execute, /^\s*(?:function\b|\(?[\w$\s,]*\)?\s*=>)/, [source]) !== null) return compile(source, '$where');
    try {
      return new FunctionOf(`return (${trimmed(source)}\n);`);
    } catch (error) {
      if (!(error instanceof SyntaxErrorOf)) throw error;
      return new FunctionOf(source);
    }
  }

  const kinds = {
    __proto__: null,

    // The row is the document.
    where() {
      const script = compileWhere(texts[0]);
      return (row) => {
        const document = decode(row);
        whole.obj = document;
        return !!apply(script, document, []);
      };
    },

    // The row is the array of arguments.
    function() {
      const script = compile(texts[0], 'body');
      return (row) => {
        if (!isArray(row)) throw new ErrorOf('args of $function must be an array');
        return result(apply(script, undefined, decode(row)));
      };
    },

    // The row is the list of the arguments of all documents of a group.
    accumulator() {
      const init = compile(texts[0], 'init'), accumulate = compile(texts[1], 'accumulate');
      compile(texts[2], 'merge'); // groups are whole when they come here: there is nothing to merge
      const finalize = texts[3] === null ? null : compile(texts[3], 'finalize');
      return (row) => {
        let state = apply(init, undefined, decode(parse(texts[4])));
        for (let i = 0; i < row.length; i++) {
          if (!isArray(row[i])) throw new ErrorOf('accumulateArgs of $accumulator must be an array');
          state = apply(accumulate, undefined, [state, ...decode(row[i])]);
        }
        return result(finalize === null ? state : apply(finalize, undefined, [state]));
      };
    },
  };
  try {
    return kinds[kind]();
  } catch (error) {
    return () => { throw error; }; // told by whoever calls it
  }
})
