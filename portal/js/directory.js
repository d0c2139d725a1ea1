// The directory of a container whose strategy is lookup: which key is in which shard, edited line by line.
import { button, field, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm, form, notice } from './dialog.js';
import { virtualList } from './virtual.js';
import { typed } from './keypath.js';
import { key as keyText, number } from './format.js';

export async function view(main, { base }) {
  const write = !session.readOnly;
  const problem = h('div');
  const about = h('p', { class: 'dim' });
  let shards = 1;
  const list = virtualList({ height: 34, label: 'Directory', render: (line) => h('div', { class: 'setting-row' }, h('b', null, keyText(line.key)), h('span', { class: 'row' }, `shard ${line.shard}`, write && button('Remove…', () => remove(line), { class: 'quiet' }))) });
  list.element.classList.add('tall-list');
  fill(main, problem, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Directory'), write && h('div', { class: 'buttons' }, button('Set a key…', set, { class: 'main', id: 'set-line' }))), about, list.element));

  const edit = async (edits, text) => {
    const { json } = await admin('POST', `${base}/directory`, { body: { edits } });
    notice(json.id ? `${text} Its items are being moved.` : text);
  };

  async function set() {
    const key = h('input', { type: 'text', autocomplete: 'off' });
    const shard = h('input', { type: 'number', min: 0, max: shards - 1, value: 0 });
    const done = await form('Set the shard of a key', [field('Partition key value', key, 'text as it is, or JSON: ["acme"]'), field('Shard', shard, `0 to ${shards - 1}`), h('p', null, 'What will happen: the line is written, and where the key is in another partition now its items are moved there while clients work.')], 'Set it', () => edit([{ key: typed(key.value), shard: Number(shard.value) }], `The key ${key.value} belongs to shard ${shard.value}.`));
    if (done) await look();
  }

  async function remove(line) {
    if (!(await confirm('Remove the line?', h('p', null, `The key ${keyText(line.key)} follows the default of the container from then on; its items are moved if need be.`), 'Remove it', true))) return;
    await attempt(problem, async () => {
      await edit([{ key: line.key, shard: null }], 'The line is gone.');
      await look();
    });
  }

  async function look() {
    await attempt(problem, async () => {
      const { json } = await admin('GET', `${base}/directory`);
      shards = json.shards;
      fill(about, `${number(json.lines)} lines, ${number(json.shards)} shards; keys without a line: ${json.default === 'hash' ? 'spread over all shards' : `shard ${json.default}`}.`);
      list.set(json.directory);
    });
  }
  await look();
}
