// Items: browsed page by page, read, changed with their etag, made, deleted.
import { button, fill, h } from './dom.js';
import { request, session } from './session.js';
import { attempt, confirm, notice } from './dialog.js';
import { editor } from './editor.js';
import { virtualList } from './virtual.js';
import { header, keyOf, typed } from './keypath.js';
import { key as keyText, ru } from './format.js';

const pageSize = 100;

export async function view(main, { path, definition }) {
  const write = !session.readOnly;
  const collection = definition.orrery?.identity === '_id'; // of MongoDB
  const keyShown = (item) => (definition.partitionKey?.systemKey ? '' : keyText(keyOf(item, definition)));
  const state = { rows: [], continuation: null, chosen: null, etag: null, charge: 0 };
  const problem = h('div');
  const status = h('span', { class: 'dim', role: 'status' });
  const more = button('More', () => load(false), { class: 'quiet' });
  const filterKey = h('input', { type: 'search', placeholder: 'partition key value', 'aria-label': 'Only this partition key value', onkeydown: (event) => event.key === 'Enter' && load(true) });
  const list = virtualList({ height: 44, label: 'Items', render: (item) => h('div', { class: `item-row${item === state.chosen ? ' current' : ''}` },
    h('button', { type: 'button', class: 'quiet', data: { row: item._rid ?? item.id }, onclick: () => open(item) }, h('strong', null, item.id), h('span', { class: 'dim' }, keyShown(item)))) });
  const title = h('h2', null, 'No item chosen');
  const saved = h('span', { class: 'dim', role: 'status' });
  const host = h('div', { class: 'grow' });
  const detailProblem = h('div');
  const saveButton = button('Save', save, { class: 'main', id: 'save' });
  const dropButton = button('Delete', drop, { id: 'delete' });

  fill(main, problem, h('div', { class: 'split' },
    h('section', { class: 'panel list-panel', 'aria-label': 'Items' },
      h('div', { class: 'row tools' }, filterKey, button('Show', () => load(true)), write && button('New item', fresh, { class: 'main', id: 'new-item' })),
      list.element, h('div', { class: 'row foot' }, status, more)),
    h('section', { class: 'panel detail-panel', 'aria-label': 'Item' },
      h('div', { class: 'head' }, title, h('div', { class: 'buttons' }, saved, write && saveButton, write && dropButton)),
      detailProblem, host)));
  const text = await editor(host, { language: 'json', label: 'Item as JSON', run: () => write && !saveButton.disabled && save(), changed: () => fill(saved) });
  saveButton.disabled = dropButton.disabled = true;

  async function load(anew) {
    if (anew) Object.assign(state, { rows: [], continuation: null, charge: 0 });
    await attempt(problem, async () => {
      const headers = { 'x-ms-max-item-count': String(pageSize) };
      if (state.continuation) headers['x-ms-continuation'] = state.continuation;
      if (filterKey.value) headers['x-ms-documentdb-partitionkey'] = header(typed(filterKey.value));
      const answer = await request('GET', `${path}/docs`, { headers });
      state.rows = state.rows.concat(answer.json.Documents);
      state.continuation = answer.continuation;
      state.charge += answer.charge;
    });
    list.set(state.rows);
    more.hidden = !state.continuation;
    fill(status, `${state.rows.length}${state.continuation ? '+' : ''} items · ${ru(state.charge)}`);
  }

  function show1(item, etag) {
    Object.assign(state, { chosen: item, etag });
    fill(title, item ? item.id : 'New item');
    fill(detailProblem);
    fill(saved);
    saveButton.disabled = false;
    dropButton.disabled = !item;
    list.set(state.rows);
  }

  async function open(item) {
    await attempt(detailProblem, async () => {
      const answer = await request('GET', `${path}/docs/${encodeURIComponent(item.id)}`, { headers: { 'x-ms-documentdb-partitionkey': header(keyOf(item, definition)) } });
      text.value = JSON.stringify(answer.json, null, 2);
      show1(state.rows.find((one) => one._rid === item._rid) ?? item, answer.json._etag);
      fill(saved, ru(answer.charge));
    });
  }

  function fresh() {
    const sample = collection ? { _id: crypto.randomUUID() } : { id: crypto.randomUUID() };
    for (const one of definition.partitionKey?.systemKey ? [] : definition.partitionKey?.paths ?? []) {
      const steps = one.split('/').slice(1);
      let at = sample;
      steps.forEach((step, i) => { at = i === steps.length - 1 ? (at[step] ??= '') : (at[step] ??= {}); });
    }
    text.value = JSON.stringify(sample, null, 2);
    show1(null, null);
    text.focus();
  }

  async function save() {
    await attempt(detailProblem, async () => {
      const body = JSON.parse(text.value);
      const synthetic = definition.orrery?.synthetic;
      const headers = synthetic ? {} : { 'x-ms-documentdb-partitionkey': header(keyOf(body, definition)) };
      let answer;
      if (state.chosen) {
        headers['x-ms-documentdb-partitionkey'] = header(keyOf(state.chosen, definition));
        headers['if-match'] = state.etag;
        answer = await request('PUT', `${path}/docs/${encodeURIComponent(state.chosen.id)}`, { body, headers });
        state.rows = state.rows.map((one) => (one._rid === state.chosen._rid ? answer.json : one));
      } else {
        answer = await request('POST', `${path}/docs`, { body, headers });
        state.rows = [answer.json, ...state.rows];
      }
      text.value = JSON.stringify(answer.json, null, 2);
      show1(answer.json, answer.json._etag);
      fill(saved, `Saved · ${ru(answer.charge)}`);
    });
  }

  async function drop() {
    const item = state.chosen;
    if (!(await confirm('Delete the item?', ['The item ', h('code', null, item.id), keyShown(item) && [' with the key ', h('code', null, keyShown(item))], ' is deleted.'], 'Delete it', true))) return;
    await attempt(detailProblem, async () => {
      const answer = await request('DELETE', `${path}/docs/${encodeURIComponent(item.id)}`, { headers: { 'x-ms-documentdb-partitionkey': header(keyOf(item, definition)), 'if-match': state.etag } });
      state.rows = state.rows.filter((one) => one !== item);
      text.value = '';
      fill(title, 'No item chosen');
      state.chosen = null;
      saveButton.disabled = dropButton.disabled = true;
      list.set(state.rows);
      notice(`Deleted “${item.id}” for ${ru(answer.charge)}.`);
    });
  }

  await load(true);
  return () => text.destroy();
}

