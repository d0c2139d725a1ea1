// Queries in SQL: written with completion, run page by page, shown as a table or as JSON, explained, exported.
import { button, check, field, fill, h, select, tabs } from './dom.js';
import { request } from './session.js';
import { attempt, show } from './dialog.js';
import { editor } from './editor.js';
import { header, typed } from './keypath.js';
import { duration, number, ru } from './format.js';
import { tree } from './side.js';
import { explained } from './explain.js';
import { learn, namesOf, past } from './remember.js';
import { resultTable, save, csv } from './results.js';

export const words = {
  keywords: ['SELECT', 'VALUE', 'DISTINCT', 'TOP', 'FROM', 'IN', 'JOIN', 'WHERE', 'AND', 'OR', 'NOT', 'BETWEEN', 'LIKE', 'ESCAPE', 'EXISTS', 'ARRAY', 'GROUP', 'ORDER', 'BY', 'ASC', 'DESC', 'OFFSET', 'LIMIT', 'AS', 'UDF', 'NULL', 'TRUE', 'FALSE', 'UNDEFINED'],
  functions: ['COUNT', 'SUM', 'AVG', 'MIN', 'MAX', 'ABS', 'CEILING', 'FLOOR', 'ROUND', 'SQRT', 'POWER', 'LOG', 'EXP', 'CONCAT', 'CONTAINS', 'STARTSWITH', 'ENDSWITH', 'INDEX_OF', 'LEFT', 'RIGHT', 'LENGTH', 'LOWER', 'UPPER', 'LTRIM', 'RTRIM', 'TRIM', 'REPLACE', 'SUBSTRING', 'StringToNumber', 'StringToArray', 'ToString', 'RegexMatch', 'ARRAY_CONTAINS', 'ARRAY_LENGTH', 'ARRAY_SLICE', 'ARRAY_CONCAT', 'IS_DEFINED', 'IS_NULL', 'IS_NUMBER', 'IS_STRING', 'IS_BOOL', 'IS_ARRAY', 'IS_OBJECT', 'GetCurrentDateTime', 'GetCurrentTimestamp', 'DateTimeAdd', 'DateTimeDiff', 'DateTimePart', 'IIF', 'ST_DISTANCE', 'ST_WITHIN', 'ST_INTERSECTS', 'ST_ISVALID', 'ST_AREA', 'FullTextContains', 'FullTextContainsAll', 'FullTextContainsAny'],
};

const earlier = past('orrery-queries');

function completer(id) {
  return (context) => {
    const word = context.matchBefore(/[\w$]*/);
    const behindDot = context.state.sliceDoc(Math.max(0, word.from - 1), word.from) === '.';
    if (!context.explicit && word.from === word.to && !behindDot) return null;
    const names = namesOf(id).map((label) => ({ label, type: 'property' }));
    if (behindDot) return { from: word.from, options: names };
    const containers = tree.databases.flatMap((one) => one.containers.map((container) => ({ label: container.id, type: 'class', detail: one.id })));
    return { from: word.from, options: [
      ...words.keywords.map((label) => ({ label, type: 'keyword' })),
      ...words.functions.map((label) => ({ label, type: 'function', apply: `${label}(` })),
      ...containers.slice(0, 2000), ...names,
    ] };
  };
}

// Where the server says the text is wrong: {"errors":[{"location":{"start","end"}}]} inside the message.
function faultOf(error) {
  const found = /"location":\{"start":(\d+),"end":(\d+)\}/.exec(error.message);
  return found ? [Number(found[1]), Number(found[2])] : null;
}

export async function view(main, { path, database, container }) {
  const id = `${database}/${container}`;
  const run = { pages: [], at: 0, text: '', continuation: null, charge: 0, controller: null };
  const host = h('div', { class: 'query-text' });
  const problem = h('div');
  const size = select(['10', '50', '100', '500', '1000'].map((n) => [n, `${n} rows a page`]), { 'aria-label': 'Rows a page', chosen: '100' });
  const onlyKey = h('input', { type: 'text', placeholder: 'all partition keys', 'aria-label': 'Partition key value', autocomplete: 'off' });
  const parameters = h('input', { type: 'text', placeholder: '{"@city": "Oslo"}', 'aria-label': 'Parameters as JSON', autocomplete: 'off', spellcheck: 'false' });
  const plan = check('Explain', { checked: true });
  const figures = h('div', { class: 'figures', role: 'status' });
  const body = h('div', { class: 'results' });
  const before = button('‹ Page', () => turn(-1), { class: 'quiet', 'aria-label': 'Page before' });
  const after = button('Page ›', () => turn(1), { class: 'quiet', id: 'next-page', 'aria-label': 'Next page' });
  const pageText = h('span', { class: 'dim' });
  const runButton = button('Run', start, { class: 'main', id: 'run', title: 'Ctrl+Enter' });
  const stopButton = button('Stop', () => run.controller?.abort(), { hidden: true });
  const again = h('select', { 'aria-label': 'Queries of before', onchange: () => { if (again.value) text.value = again.value; again.value = ''; } });
  let how = 'table';
  const bar = tabs([['table', 'Table'], ['json', 'JSON'], ['plan', 'Plan and advice']], how, (chosen) => { how = chosen; draw(); }, 'How results are shown');

  fill(main, host,
    h('div', { class: 'row tools' }, runButton, stopButton, onlyKey, size, plan.element, again),
    h('details', null, h('summary', null, 'Parameters'), field('Values by name', parameters)),
    problem, figures, h('div', { class: 'row between' }, bar, h('div', { class: 'buttons' }, before, pageText, after,
      button('Export JSON', () => save(`${container}.json`, JSON.stringify(rows(true), null, 2), 'application/json'), { class: 'quiet' }),
      button('Export CSV', () => save(`${container}.csv`, csv(rows(true)), 'text/csv'), { class: 'quiet' }))), body);
  const text = await editor(host, { language: 'sql', words, value: earlier.all()[0] ?? 'SELECT * FROM c', label: 'Query', run: start, complete: completer(id) });
  history();
  draw();

  function history() {
    fill(again, h('option', { value: '' }, 'History…'), earlier.all().map((one) => h('option', { value: one }, one.replace(/\s+/g, ' ').slice(0, 80))));
  }

  const rows = (all) => (all ? run.pages.flatMap((page) => page.rows) : run.pages[run.at]?.rows ?? []);

  async function start() {
    Object.assign(run, { pages: [], at: 0, text: text.value, continuation: null, charge: 0 });
    earlier.add(run.text);
    history();
    await fetchPage();
  }

  async function turn(step) {
    if (run.at + step < run.pages.length) {
      run.at = Math.max(0, run.at + step);
      draw();
    } else if (run.continuation) await fetchPage();
  }

  async function fetchPage() {
    run.controller = new AbortController();
    stopButton.hidden = false;
    runButton.disabled = true;
    fill(problem);
    try {
      const given = parameters.value.trim() ? JSON.parse(parameters.value) : {};
      const answer = await request('POST', `${path}/docs`, {
        signal: run.controller.signal,
        body: { query: run.text, parameters: Object.entries(given).map(([name, value]) => ({ name: name.startsWith('@') ? name : `@${name}`, value })) },
        headers: {
          'content-type': 'application/query+json',
          'x-ms-documentdb-isquery': 'true',
          'x-ms-max-item-count': size.value,
          ...(onlyKey.value ? { 'x-ms-documentdb-partitionkey': header(typed(onlyKey.value)) } : { 'x-ms-documentdb-query-enablecrosspartition': 'true' }),
          ...(plan.input.checked ? { 'x-orrery-explain': 'true' } : {}),
          ...(run.continuation ? { 'x-ms-continuation': run.continuation } : {}),
        },
      });
      run.pages.push({ rows: answer.json.Documents, explain: answer.json._explain, charge: answer.charge, serverMs: answer.serverMs, durationMs: answer.durationMs });
      run.at = run.pages.length - 1;
      run.continuation = answer.continuation;
      run.charge += answer.charge;
      learn(id, answer.json.Documents);
    } catch (error) {
      if (error.name !== 'AbortError') {
        fill(problem, show(error), error.status === 429 && button('Try again', fetchPage));
        const fault = faultOf(error);
        if (fault) text.mark(fault[0], Math.max(fault[1], fault[0] + 1));
      }
    } finally {
      stopButton.hidden = true;
      runButton.disabled = false;
      draw();
    }
  }

  function draw() {
    const page = run.pages[run.at];
    fill(figures, page && [
      h('span', null, h('b', null, number(page.rows.length)), ' rows'),
      h('span', { id: 'charge' }, h('b', null, ru(page.charge)), run.pages.length > 1 && `, ${ru(run.charge)} in all`),
      h('span', null, h('b', null, duration(page.serverMs)), ' in the server, ', duration(page.durationMs), ' until here')]);
    fill(pageText, page ? `page ${run.at + 1}${run.continuation ? ' of more' : ` of ${run.pages.length}`}` : '');
    before.disabled = run.at === 0;
    after.disabled = run.at + 1 >= run.pages.length && !run.continuation;
    if (!page) fill(body, h('p', { class: 'dim' }, 'Ctrl+Enter runs the query.'));
    else if (how === 'plan') fill(body, explained(page.explain));
    else if (how === 'json') fill(body, h('pre', { class: 'json', tabindex: '0', 'aria-label': 'Results as JSON' }, JSON.stringify(page.rows, null, 2)));
    else fill(body, resultTable(page.rows));
  }

  attempt(null, async () => learn(id, (await request('GET', `${path}/docs`, { headers: { 'x-ms-max-item-count': '10' } })).json.Documents));
  return () => {
    run.controller?.abort();
    text.destroy();
  };
}
