// The server-side API of scripts, evaluated once in each realm before any script sees it.
//
// The worker calls this with `native` (what C offers, listed in natives.c) and the realm's global
// object, and keeps the object of entry points that it returns. Built-ins the API itself relies on are captured here,
// so that a script that replaces Array.prototype.push breaks nothing but itself.
(function (native, global) {
  'use strict';

  const { stringify } = JSON;
  const { apply } = Reflect;
  const { freeze, defineProperty, keys: keysOf } = Object;
  const { isArray } = Array;
  const sort = Array.prototype.sort;
  const then = Promise.prototype.then;
  const PromiseOf = Promise;
  const ErrorOf = Error;
  const textOf = String;
  const numberOf = Number;
  const SyntaxErrorOf = SyntaxError;
  const TypeErrorOf = TypeError;
  const FunctionOf = Function;
  const execute = RegExp.prototype.exec;
  const { parse } = JSON;
  const truncate = Math.trunc;

  const PROCEDURE = 0, PRE_TRIGGER = 1, POST_TRIGGER = 2;
  const CREATE = 0, READ = 1, REPLACE = 2, UPSERT = 3, PATCH = 4, DELETE = 5, QUERY = 6, READ_FEED = 7;
  const ID_GIVEN = 1, SCAN_ENABLED = 2;

  const ErrorCodes = freeze({
    BadRequest: 400, Forbidden: 403, NotFound: 404, Conflict: 409, PreconditionFailed: 412,
    RequestEntityTooLarge: 413, RetryWith: 449, InternalServerError: 500,
    // names that scripts written for older libraries use
    BAD_REQUEST: 400, FORBIDDEN: 403, NOT_FOUND: 404, CONFLICT: 409, PRECONDITION_FAILED: 412,
    REQUEST_ENTITY_TOO_LARGE: 413, RETRY_WITH: 449, INTERNAL_SERVER_ERROR: 500,
    NotAccepted: 499, NOT_ACCEPTED: 499,
  });

  function fault(number, message) {
    const error = new ErrorOf(message);
    error.number = number;
    error.body = message;
    return error;
  }

  // What the API puts into the global object stays as it is: an assignment is ignored, or throws in
  // strict code, as with undefined and NaN.
  function hidden(object, name, value) {
    delete object[name];
    defineProperty(object, name, { value, writable: false, configurable: false, enumerable: false });
  }

  // --- The run that is under way ---------------------------------------------------------------

  let run = null;

  function needRun() {
    if (run === null) throw fault(400, 'the context is available only while a script runs');
    return run;
  }

  function message(value) {
    return typeof value === 'string' ? value : isError(value) ? value.message : json(value);
  }

  function isError(value) {
    return value instanceof ErrorOf;
  }

  function json(value) {
    const text = stringify(value);
    return text === undefined ? textOf(value) : text;
  }

  // --- Request and response --------------------------------------------------------------------

  // Both hold a body and named values. `mutable` says whether this kind of script may write.
  function makePart(what, body, values, mutable) {
    const state = { body, changed: false, values, written: false };
    const refuse = (name) => {
      throw fault(400, `${what}.${name} is not available in this kind of script`);
    };
    state.face = {
      getBody() { return state.body; },
      setBody(value) {
        if (!mutable) refuse('setBody');
        state.body = value;
        state.changed = true;
      },
      getValue(name) {
        return textOf(name) === 'Body' ? state.body : state.values[name];
      },
      setValue(name, value) {
        if (!mutable) refuse('setValue');
        if (textOf(name) === 'Body') return this.setBody(value);
        state.values[name] = value;
        state.written = true;
        return undefined;
      },
      appendValue(name, value) {
        if (!mutable) refuse('appendValue');
        const old = this.getValue(name);
        const added = typeof value === 'string' ? value : json(value);
        const before = old === undefined || old === null ? '' : typeof old === 'string' ? old : json(old);
        this.setValue(name, before + added);
      },
      appendBody(value) { this.appendValue('Body', value); },
    };
    return state;
  }

  function makeRequest(info) {
    const body = info.kind === PROCEDURE ? info.arguments : info.requestBody;
    const part = makePart('request', body, info.requestValues, info.kind === PRE_TRIGGER);
    part.face.getOperationType = () => info.operation;
    return part;
  }

  function makeResponse(info) {
    const part = makePart('response', info.responseBody, info.responseValues, info.kind !== PRE_TRIGGER);
    part.face.getMaxResourceQuota = () => part.values['x-ms-resource-quota'] ?? '';
    part.face.getResourceQuotaCurrentUsage = () => part.values['x-ms-resource-usage'] ?? '';
    return part;
  }

  // --- The collection --------------------------------------------------------------------------

  // Callbacks in the order in which their operations were sent; answers come in the same.
  let waiting = [], first = 0;

  function send(verb, link, body, options, callback) {
    let flags = 0, etag, continuation, pageSize = 0, given;

    needRun();
    if (options !== undefined && options !== null) {
      if (options.disableAutomaticIdGeneration) flags |= ID_GIVEN;
      if (options.enableScan) flags |= SCAN_ENABLED;
      if (options.etag !== undefined && options.etag !== null) etag = textOf(options.etag);
      if (options.continuation !== undefined && options.continuation !== null)
        continuation = textOf(options.continuation);
      if (options.pageSize !== undefined) pageSize = truncate(numberOf(options.pageSize)) || 0;
      given = stringify(options);
    }
    if (!native.enqueue(verb, link, body, etag, continuation, pageSize, flags, given)) return false;
    waiting[waiting.length] = callback;
    return true;
  }

  // What a callback gets besides an error and a resource.
  function describe(answer) {
    const options = { requestCharge: answer[2] };
    if (answer[5] !== undefined) options.etag = answer[5];
    if (answer[6] !== undefined) options.continuation = answer[6];
    if (answer[0] === 304) options.notModified = true;
    return options;
  }

  function deliver() {
    const answer = native.answer();
    const callback = waiting[first];
    waiting[first++] = undefined;
    if (first === waiting.length) {
      waiting = [];
      first = 0;
    }
    const failed = answer[0] >= 400;
    if (callback === undefined) {
      if (failed) throw makeError(answer);
      return;
    }
    callback(failed ? makeError(answer) : undefined, failed ? undefined : answer[4], describe(answer));
  }

  function makeError(answer) {
    const error = fault(answer[0], answer[3] === undefined ? 'the operation failed' : answer[3]);
    if (answer[1]) error.subStatus = answer[1];
    return error;
  }

  function needText(value, what) {
    if (typeof value !== 'string' || value === '') throw fault(400, `${what} must be a text`);
    return value;
  }

  function needDocument(body) {
    if (typeof body === 'string') {
      try {
        body = parse(body);
      } catch (error) {
        throw fault(400, 'the document is not valid JSON');
      }
    }
    if (typeof body !== 'object' || body === null || isArray(body))
      throw fault(400, 'the document must be an object');
    return needJson(body);
  }

  function needJson(value) {
    const text = stringify(value);
    if (text === undefined) throw fault(400, 'the body cannot be written as JSON');
    return text;
  }

  // (…, options, callback) with both of them optional.
  function optional(options, callback) {
    if (typeof options === 'function' && callback === undefined) return [undefined, options];
    if (options !== undefined && options !== null && typeof options !== 'object')
      throw fault(400, 'options must be an object');
    if (callback !== undefined && callback !== null && typeof callback !== 'function')
      throw fault(400, 'the callback must be a function');
    return [options, callback === null ? undefined : callback];
  }

  function queryText(query) {
    if (typeof query === 'string') return stringify({ query });
    if (typeof query !== 'object' || query === null)
      throw fault(400, 'the query must be a text or an object');
    const text = query.query !== undefined ? query.query : query.filterQuery;
    needText(text, 'the text of the query');
    return needJson(query.parameters === undefined ? { query: text } : { query: text, parameters: query.parameters });
  }

  const collection = {
    getSelfLink() { return needRun().info.selfLink; },
    getAltLink() { return needRun().info.altLink; },

    createDocument(link, body, options, callback) {
      [options, callback] = optional(options, callback);
      return send(CREATE, needText(link, 'the collection link'), needDocument(body), options, callback);
    },
    upsertDocument(link, body, options, callback) {
      [options, callback] = optional(options, callback);
      return send(UPSERT, needText(link, 'the collection link'), needDocument(body), options, callback);
    },
    readDocument(link, options, callback) {
      [options, callback] = optional(options, callback);
      return send(READ, needText(link, 'the document link'), undefined, options, callback);
    },
    replaceDocument(link, body, options, callback) {
      [options, callback] = optional(options, callback);
      return send(REPLACE, needText(link, 'the document link'), needDocument(body), options, callback);
    },
    patchDocument(link, operations, options, callback) {
      [options, callback] = optional(options, callback);
      if (typeof operations !== 'object' || operations === null)
        throw fault(400, 'the operations of a patch must be an array or an object');
      return send(PATCH, needText(link, 'the document link'), needJson(operations), options, callback);
    },
    deleteDocument(link, options, callback) {
      [options, callback] = optional(options, callback);
      return send(DELETE, needText(link, 'the document link'), undefined, options, callback);
    },
    queryDocuments(link, query, options, callback) {
      [options, callback] = optional(options, callback);
      return send(QUERY, needText(link, 'the collection link'), queryText(query), options, callback);
    },
    readDocuments(link, options, callback) {
      [options, callback] = optional(options, callback);
      return send(READ_FEED, needText(link, 'the collection link'), undefined, options, callback);
    },
  };

  // Attachments are gone from the service; scripts that use them are told so by name.
  const attachments = ['createAttachment', 'deleteAttachment', 'queryAttachments', 'readAttachment',
    'readAttachments', 'replaceAttachment', 'upsertAttachment'];
  for (const name of attachments)
    collection[name] = () => { throw fault(501, `${name} is not supported: attachments are not offered`); };

  // --- Fluent queries --------------------------------------------------------------------------
  //
  // A chain is a list of steps over the documents of the logical partition. Without a sort it is
  // applied page by page, and the callback gets a continuation; a sort needs all of them.

  const PAGE_DEFAULT = 100;

  function needFunction(step, what) {
    if (typeof step !== 'function') throw fault(400, `${what} needs a function`);
    return step;
  }

  function picker(name) {
    if (typeof name === 'function') return name;
    needText(name, 'the property');
    return (item) => (item === undefined || item === null ? undefined : item[name]);
  }

  function keep(rows, predicate) {
    const kept = [];
    for (let i = 0; i < rows.length; i++) if (predicate(rows[i])) kept[kept.length] = rows[i];
    return kept;
  }

  function turn(rows, change) {
    const turned = [];
    for (let i = 0; i < rows.length; i++) {
      const value = change(rows[i]);
      if (value !== undefined) turned[turned.length] = value;
    }
    return turned;
  }

  function flat(rows, shallow, into) {
    for (let i = 0; i < rows.length; i++) {
      if (!isArray(rows[i])) into[into.length] = rows[i];
      else if (shallow) for (let j = 0; j < rows[i].length; j++) into[into.length] = rows[i][j];
      else flat(rows[i], shallow, into);
    }
    return into;
  }

  function unwound(rows, inner, result) {
    const pairs = [];
    for (let i = 0; i < rows.length; i++) {
      const parts = inner(rows[i]);
      if (!isArray(parts)) continue;
      for (let j = 0; j < parts.length; j++)
        pairs[pairs.length] = result === undefined ? { outer: rows[i], inner: parts[j] } : result(rows[i], parts[j]);
    }
    return pairs;
  }

  const ranks = { undefined: 0, boolean: 2, number: 3, bigint: 3, string: 4, object: 6 };

  function rank(value) {
    return value === null ? 1 : isArray(value) ? 5 : ranks[typeof value] ?? 7;
  }

  // Undefined, null, booleans, numbers, texts, arrays, objects: the order of the query language.
  function compare(a, b) {
    const kinds = rank(a) - rank(b);
    if (kinds !== 0) return kinds;
    return a < b ? -1 : a > b ? 1 : 0;
  }

  function sorted(rows, key, sign) {
    const pairs = [];
    for (let i = 0; i < rows.length; i++) pairs[i] = [key(rows[i]), rows[i], i];
    apply(sort, pairs, [(a, b) => sign * compare(a[0], b[0]) || a[2] - b[2]]);
    for (let i = 0; i < pairs.length; i++) pairs[i] = pairs[i][1];
    return pairs;
  }

  function chainOf(steps) {
    const add = (step, whole) => {
      const longer = [];
      for (let i = 0; i < steps.length; i++) longer[i] = steps[i];
      longer[steps.length] = { step, whole };
      return chainOf(longer);
    };
    return {
      filter(predicate) { needFunction(predicate, 'filter'); return add((rows) => keep(rows, predicate)); },
      map(change) { needFunction(change, 'map'); return add((rows) => turn(rows, change)); },
      pluck(name) { const pick = picker(name); return add((rows) => turn(rows, pick)); },
      flatten(shallow) { return add((rows) => flat(rows, !!shallow, [])); },
      unwind(inner, result) {
        if (result !== undefined) needFunction(result, 'unwind');
        const pick = picker(inner);
        return add((rows) => unwound(rows, pick, result));
      },
      sortBy(key) { const pick = picker(key); return add((rows) => sorted(rows, pick, 1), true); },
      sortByDescending(key) { const pick = picker(key); return add((rows) => sorted(rows, pick, -1), true); },
      value(options, callback) {
        [options, callback] = optional(options, callback);
        return { isAccepted: evaluate(steps, options, callback) };
      },
    };
  }

  function through(steps, from, rows) {
    for (let i = from; i < steps.length; i++) rows = steps[i].step(rows);
    return rows;
  }

  // Steps before the first sort are applied to each page, the rest to what all pages gave.
  function evaluate(steps, options, callback) {
    const size = options && options.pageSize !== undefined ? truncate(numberOf(options.pageSize)) || 0 : 0;
    let split = 0;
    while (split < steps.length && !steps[split].whole) split++;
    const whole = split < steps.length;
    const wanted = whole || size === -1 ? Infinity : size > 0 ? size : PAGE_DEFAULT;
    const gathered = [];
    const state = { continuation: options && options.continuation, charge: 0 };

    function finish(error) {
      const rest = { requestCharge: state.charge };
      if (state.continuation !== undefined) rest.continuation = state.continuation;
      if (error) {
        if (callback === undefined) throw error;
        return callback(error, undefined, rest);
      }
      const rows = whole ? through(steps, split, gathered) : gathered;
      if (callback === undefined) return collection.response.setBody(rows);
      return callback(undefined, rows, rest);
    }

    function page() {
      const pageSize = wanted === Infinity ? -1 : wanted - gathered.length;
      return send(READ_FEED, collection.getSelfLink(), undefined, { pageSize, continuation: state.continuation },
        (error, rows, about) => {
          if (error) return finish(error);
          state.charge += about.requestCharge;
          state.continuation = about.continuation;
          const made = steps.length === 0 ? rows : whole ? cut(rows) : through(steps, 0, rows);
          for (let i = 0; i < made.length; i++) gathered[gathered.length] = made[i];
          if (state.continuation === undefined || gathered.length >= wanted) return finish();
          if (page()) return undefined;
          // A sort of a part would look like the sort of all, so it is an error; pages are simply shorter.
          return whole ? finish(fault(408, 'the documents could not all be read in time')) : finish();
        });
    }

    function cut(rows) {
      for (let i = 0; i < split; i++) rows = steps[i].step(rows);
      return rows;
    }
    return page();
  }

  collection.chain = () => chainOf([]);
  for (const name of ['filter', 'map', 'pluck', 'sortBy', 'sortByDescending'])
    collection[name] = (what, options, callback) => chainOf([])[name](what).value(options, callback);
  collection.unwind = (inner, result, options, callback) => chainOf([]).unwind(inner, result).value(options, callback);
  collection.flatten = (shallow, options, callback) => {
    if (typeof shallow === 'boolean' || shallow === undefined) return chainOf([]).flatten(shallow).value(options, callback);
    return chainOf([]).flatten(false).value(shallow, options);
  };
  defineProperty(collection, 'request', { get: () => needRun().request.face, enumerable: true });
  defineProperty(collection, 'response', { get: () => needRun().response.face, enumerable: true });
  freeze(collection);

  // --- The context and the console -------------------------------------------------------------

  const context = freeze({
    getCollection() { needRun(); return collection; },
    getRequest() { return needRun().request.face; },
    getResponse() { return needRun().response.face; },
    // Nothing a script catches brings an aborted run back.
    abort(error) {
      const now = needRun();
      const reason = isError(error) ? error : error !== null && typeof error === 'object'
        ? fault(error.number, error.body === undefined ? message(error) : message(error.body))
        : fault(undefined, error === undefined ? 'the script was aborted' : textOf(error));
      if (now.aborted === undefined) now.aborted = reason;
      throw reason;
    },
  });

  function shown(value) {
    if (typeof value === 'string') return value;
    if (isError(value)) return value.stack ? `${value}\n${value.stack}` : textOf(value);
    if (typeof value !== 'object' || value === null) return textOf(value);
    try {
      return json(value);
    } catch (error) {
      return textOf(value);
    }
  }

  function formatted(values) {
    let at = 0, text = '';
    if (typeof values[0] === 'string') {
      const format = values[0];
      let from = 0;
      at = 1;
      for (let i = 0; i + 1 < format.length; i++) {
        if (format[i] !== '%') continue;
        const letter = format[i + 1];
        let piece;
        if (letter === '%') piece = '%';
        else if (at >= values.length) continue;
        else if (letter === 's') piece = shown(values[at++]);
        else if (letter === 'd' || letter === 'i') piece = textOf(truncate(numberOf(values[at++])));
        else if (letter === 'f') piece = textOf(numberOf(values[at++]));
        else if (letter === 'j' || letter === 'o' || letter === 'O') piece = json(values[at++]);
        else if (letter === 'c') { piece = ''; at++; } else continue;
        for (; from < i; from++) text += format[from];
        text += piece;
        from = i + 2;
        i++;
      }
      for (; from < format.length; from++) text += format[from];
    }
    for (; at < values.length; at++) text += (at > 0 ? ' ' : '') + shown(values[at]);
    return text;
  }

  const print = (...values) => { if (native.logging()) native.log(formatted(values)); };
  hidden(global, 'console', freeze({ log: print, info: print, warn: print, error: print, debug: print }));

  // What has no use without a network, files or threads, and only widens what can go wrong.
  for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'print', 'load', 'readFile', 'quit', 'gc'])
    delete global[name];

  // Prototypes that scripts extend. What is added by assignment can be enumerated; what the language
  // itself has cannot, so there is nothing to find in a clean realm.
  const watched = [Object, Array, String, Function, Number, Boolean, RegExp, Date, Error, Promise, Map, Set, Symbol,
    BigInt, TypeError, RangeError, WeakMap, Uint8Array, ArrayBuffer];
  for (let i = 0; i < watched.length; i++) watched[i] = watched[i].prototype;
  for (const own of [JSON, Math, Reflect, Object, Array, Promise, String, Number, Date]) watched[watched.length] = own;

  // --- Entry points of the worker --------------------------------------------------------------

  return freeze({
    // Procedures and triggers see the collection; functions of queries do not.
    open() {
      hidden(global, 'getContext', () => context);
      hidden(global, '__', collection);
      hidden(global, 'ErrorCodes', ErrorCodes);
      hidden(global, 'HttpStatusCode', ErrorCodes);
    },

    begin(script, kind, args, selfLink, altLink, operation, requestBody, responseBody, requestValues, responseValues) {
      const info = { kind, arguments: args, selfLink, altLink, operation, requestBody, responseBody,
        requestValues, responseValues };
      waiting = [];
      first = 0;
      run = { info, request: makeRequest(info), response: makeResponse(info), aborted: undefined, rejected: undefined };
      const now = run;
      const returned = apply(script, undefined, kind === PROCEDURE ? args : []);
      if (returned instanceof PromiseOf)
        apply(then, returned, [undefined, (reason) => { now.rejected = { reason }; }]);
    },

    // Delivers the answers that are there.
    step(count) {
      for (let i = 0; i < count; i++) deliver();
    },

    // The function of a script's text, which C has evaluated in brackets. Text that is no expression
    // is tried as a program: then it is the first function that it declares.
    program(source, value, thrown) {
      if (typeof value === 'function') return value;
      const found = apply(execute, /\bfunction\s*\*?\s*([\p{ID_Start}$_][\p{ID_Continue}$]*)/u, [source]);
      if (found !== null && (thrown === undefined || thrown instanceof SyntaxErrorOf)) {
        try {
          const first = new FunctionOf(`${source}\nreturn ${found[1]};`)();
          if (typeof first === 'function') return first;
        } catch (error) {
          if (!(error instanceof SyntaxErrorOf)) throw error;
        }
      }
      if (thrown !== undefined) throw thrown;
      throw new TypeErrorOf('the script is not a function');
    },

    // After all callbacks and promises: what the run leaves, as texts.
    end() {
      const now = run;
      if (now.aborted !== undefined) throw now.aborted;
      if (now.rejected !== undefined) throw now.rejected.reason;
      return [
        now.response.body === undefined || (now.info.kind === POST_TRIGGER && !now.response.changed)
          ? undefined : stringify(now.response.body),
        now.request.changed ? stringify(now.request.body) : undefined,
        now.request.written ? stringify(now.request.values) : undefined,
        now.response.written ? stringify(now.response.values) : undefined,
      ];
    },

    // What was thrown, for the server: number, message, stack.
    explain(thrown) {
      const aborted = run !== null && run.aborted !== undefined;
      const error = aborted ? run.aborted : thrown;
      let number = 0, text, stack = '';
      try {
        if (error !== null && typeof error === 'object') {
          number = numberOf(error.number) | 0;
          stack = typeof error.stack === 'string' ? error.stack : '';
          text = isError(error) ? textOf(error) : typeof error.message === 'string' ? error.message
            : typeof error.body === 'string' ? error.body : json(error);
        } else text = textOf(error);
      } catch (unreadable) {
        text = 'an error that cannot be read as text';
      }
      return [number, text, stack];
    },

    // Forgets the run, and removes what it has put into the global object. False: it has changed
    // more than can be put right, and the realm is not used again.
    close() {
      run = null;
      waiting = [];
      first = 0;
      const added = keysOf(global);
      for (let i = 0; i < added.length; i++) {
        if (!delete global[added[i]]) return false;
      }
      for (let i = 0; i < watched.length; i++) {
        if (keysOf(watched[i]).length !== 0) return false;
      }
      return true;
    },

    // A function of queries over rows: [mask of undefined arguments, argument, ...] each.
    calls(script, rows) {
      const results = [];
      for (let i = 0; i < rows.length; i++) {
        const row = rows[i], mask = row[0], args = [];
        for (let j = 1; j < row.length; j++) args[j - 1] = mask !== 0 && (mask >>> (j - 1)) & 1 ? undefined : row[j];
        const value = apply(script, undefined, args);
        if (value instanceof PromiseOf) throw fault(400, 'a user-defined function cannot be asynchronous');
        results[i] = value === undefined || typeof value === 'function' || typeof value === 'symbol' ? [] : [value];
      }
      return stringify(results);
    },
  });
})
