// Stored procedures, triggers and functions: edited, and procedures run.
import { button, field, fill, h, select } from './dom.js';
import { request, session } from './session.js';
import { attempt, confirm, notice } from './dialog.js';
import { editor } from './editor.js';
import { header, typed } from './keypath.js';
import { ru } from './format.js';

const kinds = {
  sprocs: ['Procedure', 'StoredProcedures', 'function (name) {\n  const answer = getContext().getResponse();\n  answer.setBody("hello, " + name);\n}'],
  triggers: ['Trigger', 'Triggers', 'function () {\n  const item = getContext().getRequest().getBody();\n  item.seen = true;\n  getContext().getRequest().setBody(item);\n}'],
  udfs: ['Function', 'UserDefinedFunctions', 'function (price) {\n  return price * 1.25;\n}'],
};

export async function view(main, { path }) {
  const write = !session.readOnly;
  const state = { kind: 'sprocs', chosen: null };
  const list = h('div', { class: 'script-list' });
  const problem = h('div');
  const id = h('input', { type: 'text', autocomplete: 'off' });
  const when = select([['Pre', 'before the write'], ['Post', 'after it']]);
  const what = select(['All', 'Create', 'Replace', 'Delete', 'Upsert']);
  const trigger = h('div', { class: 'row', hidden: true }, field('Runs', when), field('On', what));
  const host = h('div', { class: 'script-text' });
  const key = h('input', { type: 'text', placeholder: 'partition key value', autocomplete: 'off' });
  const parameters = h('input', { type: 'text', value: '["world"]', spellcheck: 'false' });
  const result = h('pre', { class: 'json', hidden: true, tabindex: '0', 'aria-label': 'Answer' });
  const runner = h('section', { class: 'panel', 'aria-label': 'Run' }, h('h2', null, 'Run'), h('div', { class: 'row' }, field('Partition key', key), field('Parameters, as a JSON array', parameters), button('Run', run, { class: 'main', id: 'run-script' })), result);
  fill(main, problem, h('div', { class: 'split scripts' },
    h('section', { class: 'panel list-panel', 'aria-label': 'Scripts' }, write && h('div', { class: 'buttons' }, Object.entries(kinds).map(([kind, [text]]) => button(`New ${text.toLowerCase()}`, () => fresh(kind), { class: 'quiet' }))), list),
    h('section', { class: 'panel detail-panel', 'aria-label': 'Script' }, field('Name', id), trigger, host,
      h('div', { class: 'buttons' }, write && button('Save', save, { class: 'main', id: 'save-script' }), write && button('Delete', drop)))), runner);
  const text = await editor(host, { language: 'javascript', label: 'Script', readOnly: !write, value: kinds.sprocs[2] });

  function pick(kind, script) {
    Object.assign(state, { kind, chosen: script });
    id.value = script?.id ?? '';
    text.value = script?.body ?? kinds[kind][2];
    trigger.hidden = kind !== 'triggers';
    if (kind === 'triggers' && script) {
      when.value = script.triggerType;
      what.value = script.triggerOperation;
    }
    runner.hidden = kind !== 'sprocs' || !script || !write;
  }
  const fresh = (kind) => { pick(kind, null); id.focus(); };

  async function look() {
    await attempt(problem, async () => {
      const all = await Promise.all(Object.keys(kinds).map((kind) => request('GET', `${path}/${kind}`)));
      fill(list, Object.entries(kinds).map(([kind, [title, member]], at) => [h('h3', null, `${title}s`), all[at].json[member].length
        ? all[at].json[member].map((script) => h('button', { type: 'button', class: 'quiet wide', onclick: () => pick(kind, script) }, script.id)) : h('p', { class: 'dim small' }, 'none')]));
    });
  }

  async function save() {
    await attempt(problem, async () => {
      const body = { id: id.value, body: text.value, ...(state.kind === 'triggers' ? { triggerType: when.value, triggerOperation: what.value } : {}) };
      const answer = state.chosen ? await request('PUT', `${path}/${state.kind}/${encodeURIComponent(state.chosen.id)}`, { body }) : await request('POST', `${path}/${state.kind}`, { body });
      pick(state.kind, answer.json);
      notice(`Saved “${answer.json.id}”.`);
      await look();
    });
  }

  async function drop() {
    if (!state.chosen || !(await confirm('Delete the script?', h('p', null, h('code', null, state.chosen.id)), 'Delete it', true))) return;
    await attempt(problem, async () => {
      await request('DELETE', `${path}/${state.kind}/${encodeURIComponent(state.chosen.id)}`);
      pick(state.kind, null);
      await look();
    });
  }

  async function run() {
    result.hidden = true;
    await attempt(problem, async () => {
      const answer = await request('POST', `${path}/sprocs/${encodeURIComponent(state.chosen.id)}`, { body: JSON.parse(parameters.value), headers: { 'x-ms-documentdb-partitionkey': header(typed(key.value)), 'x-ms-documentdb-script-enable-logging': 'true' } });
      const log = decodeURIComponent(answer.headers.get('x-ms-documentdb-script-log-results') ?? '');
      result.hidden = false;
      fill(result, answer.text || '(nothing)', `\n\n${ru(answer.charge)}`, log && `\nlog: ${log}`);
    });
  }

  pick('sprocs', null);
  await look();
  return () => text.destroy();
}
