// Commands of MongoDB: written as in its shell or as documents, run by the server as on its own port, shown page by page as a table
// or as JSON, explained, exported.
import { button, fill, h, select, tabs } from './dom.js';
import { admin, RequestError, session } from './session.js';
import { attempt, confirm, show } from './dialog.js';
import { editor } from './editor.js';
import { duration, number, ru } from './format.js';
import { tree } from './side.js';
import { resultTable, save, csv } from './results.js';
import { parse, vocabulary } from './shell.js';
import { relaxed, rowOf } from './ejson.js';
import { planPicture } from './mongoplan.js';
import { learn, namesOf, past } from './remember.js';

const operators = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$and', '$or', '$not', '$nor', '$exists', '$type', '$regex', '$elemMatch', '$all', '$size', '$expr', '$mod', '$set', '$unset', '$inc', '$mul', '$min', '$max', '$push', '$pull', '$addToSet', '$rename', '$currentDate', '$setOnInsert',
  '$match', '$group', '$project', '$sort', '$limit', '$skip', '$unwind', '$lookup', '$count', '$facet', '$bucket', '$addFields', '$replaceRoot', '$sample', '$sortByCount', '$unionWith', '$out', '$merge', '$setWindowFields', '$sum', '$avg', '$first', '$last', '$cond', '$ifNull', '$concat', '$dateTrunc', '$toString', '$toInt'];
const writes = new Set(['drop', 'dropDatabase', 'dropIndexes', 'renameCollection', 'dropUser', 'dropRole', 'dropAllUsersFromDatabase', 'dropAllRolesFromDatabase']);
const earlier = past('orrery-commands');

function completer(database, id) {
  const list = (labels, type, apply) => labels.map((label) => ({ label, type, ...(apply ? { apply: apply(label) } : {}) }));
  const call = (label) => `${label}(`;
  return (context) => {
    const word = context.matchBefore(/[\w$]*/);
    const line = context.state.sliceDoc(Math.max(0, word.from - 200), word.from);
    const collections = (tree.databases.find((one) => one.id === database)?.containers ?? []).slice(0, 2000).map((one) => one.id);
    if (/\bdb\.$/.test(line)) return { from: word.from, options: [...list(collections.filter((one) => /^[\w$]+$/.test(one)), 'class'), ...list(vocabulary.database, 'method', call)] };
    if (/\)\.$/.test(line)) return { from: word.from, options: list(vocabulary.cursor, 'method', call) };
    if (/\bdb(?:\.[\w$]+|\["[^"]*"\])+\.$/.test(line)) return { from: word.from, options: list(vocabulary.methods, 'method', call) };
    if (!context.explicit && word.from === word.to) return null;
    return { from: word.from, options: [...(context.state.sliceDoc(word.from, word.to).startsWith('$') ? [] : [{ label: 'db', type: 'keyword' }]), ...list(operators, 'keyword'), ...list(namesOf(id), 'property'), ...list(vocabulary.values, 'function', call)] };
  };
}

// The reply of the server; one that says it failed is an error with a status as REST has it.
async function send(database, command, signal) {
  const answer = await admin('POST', `mongo/${encodeURIComponent(database)}`, { body: command, signal });
  const reply = answer.json;
  if (relaxed(reply.ok) === 1) return { reply, charge: answer.charge, serverMs: answer.serverMs, durationMs: answer.durationMs };
  const code = relaxed(reply.code);
  throw Object.assign(new RequestError(code === 16500 ? 429 : 400, reply.errmsg ?? 'The command failed.', { code: `${reply.codeName ?? 'Error'}, ${code}`, charge: answer.charge, retryAfterMs: Number(/RetryAfterMs=(\d+)/.exec(reply.errmsg)?.[1] ?? 0) }), {});
}

const isZero = (id) => String(relaxed(id ?? 0)) === '0';
const cleaned = ({ $clusterTime, operationTime, ...reply }) => reply;

export async function view(main, { database, container }) {
  const id = `${database}/${container}`;
  const run = { pages: [], at: 0, cursor: null, charge: 0, controller: null, asked: null, plan: null };
  const host = h('div', { class: 'query-text' });
  const problem = h('div');
  const size = select(['10', '50', '100', '500', '1000'].map((n) => [n, `${n} documents a page`]), { 'aria-label': 'Documents a page', chosen: '100' });
  const figures = h('div', { class: 'figures', role: 'status' });
  const body = h('div', { class: 'results' });
  const before = button('‹ Page', () => turn(-1), { class: 'quiet', 'aria-label': 'Page before' });
  const after = button('Page ›', () => turn(1), { class: 'quiet', id: 'next-page', 'aria-label': 'Next page' });
  const pageText = h('span', { class: 'dim' });
  const runButton = button('Run', start, { class: 'main', id: 'run-mongo', title: 'Ctrl+Enter' });
  const stopButton = button('Stop', () => run.controller?.abort(), { hidden: true });
  const again = h('select', { 'aria-label': 'Commands of before', onchange: () => { if (again.value) text.value = again.value; again.value = ''; } });
  let how = 'table';
  const bar = tabs([['table', 'Table'], ['json', 'JSON'], ['plan', 'Plan and advice']], how, (chosen) => { how = chosen; draw(); }, 'How results are shown');
  const name = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(container) ? `db.${container}` : `db[${JSON.stringify(container)}]`;
  const examples = select([['', 'Examples…'], [`${name}.find({})`, 'find'], [`${name}.find({ _id: { $exists: true } }).sort({ _id: -1 }).limit(10)`, 'find, sorted'],
    [`${name}.aggregate([\n  { $group: { _id: "$_id", n: { $sum: 1 } } },\n  { $sort: { n: -1 } }\n])`, 'aggregate'], [`${name}.insertOne({ name: "Ann", at: new Date() })`, 'insertOne'],
    [`${name}.updateMany({}, { $set: { seen: true } })`, 'updateMany'], [`${name}.getIndexes()`, 'indexes'], [`${name}.createIndex({ name: 1 })`, 'a new index'], ['show collections', 'collections'], ['{ dbStats: 1 }', 'a command']],
  { 'aria-label': 'Examples', onchange: () => { if (examples.value) text.value = examples.value; examples.value = ''; text.focus(); } });

  fill(main, host, h('div', { class: 'row tools' }, runButton, stopButton, size, examples, again), problem, figures,
    h('div', { class: 'row between' }, bar, h('div', { class: 'buttons' }, before, pageText, after,
      button('Export JSON', () => save(`${container}.json`, JSON.stringify(all().map(relaxed), null, 2), 'application/json'), { class: 'quiet' }),
      button('Export CSV', () => save(`${container}.csv`, csv(all().map(rowOf)), 'text/csv'), { class: 'quiet' }))), body);
  const text = await editor(host, { language: 'javascript', label: 'Command', value: `${name}.find({})`, run: start, complete: completer(database, id) });
  history();
  draw();

  function history() {
    fill(again, h('option', { value: '' }, 'History…'), earlier.all().map((one) => h('option', { value: one }, one.replace(/\s+/g, ' ').slice(0, 80))));
  }
  const all = () => run.pages.flatMap((page) => page.documents ?? [page.reply]);

  // A page as long as is wished, unless the command says so itself.
  function sized({ database: where, command }) {
    const n = Number(size.value);
    if (command.find !== undefined && command.batchSize === undefined && !command.singleBatch) return { database: where, command: { ...command, batchSize: n } };
    if (command.aggregate !== undefined && command.cursor && command.cursor.batchSize === undefined) return { database: where, command: { ...command, cursor: { ...command.cursor, batchSize: n } } };
    return { database: where, command };
  }

  async function start() {
    fill(problem);
    let asked;
    try {
      asked = parse(text.value, database);
    } catch (error) {
      fill(problem, show(error));
      if (error.from !== undefined) text.mark(Math.min(error.from, text.value.length), Math.min(error.to, text.value.length));
      return;
    }
    const verb = Object.keys(asked.command)[0];
    if (writes.has(verb) && !(await confirm(`Run ${verb}?`, h('p', null, 'What will happen: ', h('code', null, JSON.stringify(asked.command)), ` is carried out on “${asked.database}”. What it drops is gone.`), 'Run it', true))) return;
    close();
    Object.assign(run, { pages: [], at: 0, cursor: null, charge: 0, asked, plan: asked.command.explain ? null : undefined });
    earlier.add(text.value);
    history();
    await fetchPage(sized(asked));
  }

  // What is left of a cursor is given back.
  function close() {
    const open = run.cursor;
    run.cursor = null;
    if (open) attempt(null, () => send(open.database, { killCursors: open.collection, cursors: [open.id] })).catch(() => {});
  }

  async function turn(step) {
    if (run.at + step < run.pages.length) {
      run.at = Math.max(0, run.at + step);
      draw();
    } else if (run.cursor) await fetchPage({ database: run.cursor.database, command: { getMore: run.cursor.id, collection: run.cursor.collection, batchSize: Number(size.value) } });
  }

  async function fetchPage({ database: where, command }) {
    run.controller = new AbortController();
    stopButton.hidden = false;
    runButton.disabled = true;
    fill(problem);
    try {
      const { reply, ...cost } = await send(where, command, run.controller.signal);
      const cursor = reply.cursor;
      const documents = cursor?.firstBatch ?? cursor?.nextBatch ?? (Array.isArray(reply.values) ? reply.values : undefined);
      run.cursor = cursor && !isZero(cursor.id) ? { database: where, id: cursor.id, collection: cursor.ns.slice(cursor.ns.indexOf('.') + 1) } : null;
      run.pages.push({ documents, reply: cleaned(reply), ...cost });
      run.at = run.pages.length - 1;
      run.charge += cost.charge;
      if (command.explain) run.plan = reply;
      if (documents) learn(id, documents.filter((one) => one && typeof one === 'object'));
    } catch (error) {
      if (error.name !== 'AbortError') fill(problem, show(error), error.status === 429 && button('Try again', () => fetchPage({ database: where, command })));
    } finally {
      stopButton.hidden = true;
      runButton.disabled = false;
      draw();
    }
  }

  // The plan of what was run, asked for when it is looked at.
  async function plan() {
    const command = run.asked?.command;
    if (run.plan === undefined && command && ['find', 'aggregate', 'count', 'distinct', 'update', 'delete', 'findAndModify'].includes(Object.keys(command)[0])) {
      fill(body, h('p', { class: 'dim' }, 'Asking for the plan…'));
      const changes = ['update', 'delete', 'findAndModify'].includes(Object.keys(command)[0]);
      const answer = await attempt(body, () => send(run.asked.database, { explain: command, verbosity: changes ? 'queryPlanner' : 'executionStats' }));
      if (!answer) return;
      run.plan = answer.reply;
    }
    if (how === 'plan') fill(body, run.plan ? planPicture(run.plan, run.asked.command, name) : h('p', { class: 'dim' }, 'This command has no plan: find, aggregate, count, distinct, updates and deletes do.'));
  }

  function draw() {
    const page = run.pages[run.at];
    fill(figures, page && [
      page.documents && h('span', null, h('b', null, number(page.documents.length)), ' documents'),
      h('span', { id: 'charge' }, h('b', null, ru(page.charge)), run.pages.length > 1 && `, ${ru(run.charge)} in all`),
      h('span', null, h('b', null, duration(page.serverMs)), ' in the server, ', duration(page.durationMs), ' until here')]);
    fill(pageText, page ? `page ${run.at + 1}${run.cursor ? ' of more' : ` of ${run.pages.length}`}` : '');
    before.disabled = run.at === 0;
    after.disabled = run.at + 1 >= run.pages.length && !run.cursor;
    if (!page) fill(body, h('p', { class: 'dim' }, 'Ctrl+Enter runs the command, with the rights of the key you are signed in with', session.readOnly ? ', which may only read.' : '.'));
    else if (how === 'plan') plan();
    else if (how === 'json') fill(body, h('pre', { class: 'json', tabindex: '0', 'aria-label': 'Results as JSON' }, JSON.stringify((page.documents ?? page.reply) && relaxed(page.documents ?? page.reply), null, 2)));
    else if (page.documents) fill(body, resultTable(page.documents.map((one) => (one && typeof one === 'object' && !Array.isArray(one) ? rowOf(one) : relaxed(one)))));
    else fill(body, resultTable(Object.entries(relaxed(page.reply)).map(([field, value]) => ({ field, value }))));
  }

  return () => {
    run.controller?.abort();
    close();
    text.destroy();
  };
}
