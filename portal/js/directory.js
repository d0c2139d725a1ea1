// The directory of a container whose strategy is lookup: which key is in which shard, edited line by line.
import { button, field, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt, notice } from './dialog.js';
import { virtualList } from './virtual.js';
import { typed } from './keypath.js';
import { key as keyText, plural } from './format.js';
import { tried } from './plan.js';

export async function view(main, { base }) {
  const write = !session.readOnly;
  const problem = h('div');
  const about = h('p', { class: 'dim' });
  let shards = 1;
  const list = virtualList({ height: 34, label: 'Directory', render: (line) => h('div', { class: 'setting-row' }, h('b', null, keyText(line.key)), h('span', { class: 'row' }, `shard ${line.shard}`, write && button('Remove…', () => remove(line), { class: 'quiet' }))) });
  list.element.classList.add('tall-list');
  fill(main, problem, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Directory'), write && h('div', { class: 'buttons' }, button('Set a key…', set, { class: 'main', id: 'set-line' }))), about, list.element));

  async function edit(title, content, inputs, yes, edits, text, danger = false) {
    const body = () => (edits() ? { edits: edits() } : null);
    const done = await tried(title, { content, inputs, yes, path: `${base}/directory`, body, danger });
    if (!done) return;
    notice(done.id ? `${text()} Its items are being moved.` : text());
    await look();
  }

  function set() {
    const key = h('input', { type: 'text', autocomplete: 'off', id: 'line-key' });
    const shard = h('input', { type: 'number', min: 0, max: shards - 1, value: 0, id: 'line-shard' });
    return edit('Set the shard of a key', [field('Partition key value', key, 'text as it is, or JSON: ["acme"]'), field('Shard', shard, `0 to ${shards - 1}`)], [key, shard], 'Set it',
      () => (key.value ? [{ key: typed(key.value), shard: Number(shard.value) }] : null), () => `The key ${key.value} belongs to shard ${shard.value}.`);
  }

  const remove = (line) => edit('Remove the line?', h('p', null, `The key ${keyText(line.key)} follows the default of the container from then on.`), [], 'Remove it',
    () => [{ key: line.key, shard: null }], () => 'The line is gone.', true);

  async function look() {
    await attempt(problem, async () => {
      const { json } = await admin('GET', `${base}/directory`);
      shards = json.shards;
      fill(about, `${plural(json.lines, 'line')}, ${plural(json.shards, 'shard')}; keys without a line: ${json.default === 'hash' ? 'spread over all shards' : `shard ${json.default}`}.`);
      list.set(json.directory);
    });
  }
  await look();
}
