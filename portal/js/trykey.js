// What key a pasted document would get, and where it would be: also of a synthetic key that the container has.
import { button, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt } from './dialog.js';
import { editor } from './editor.js';
import { bound } from './map.js';
import { key as keyText, number } from './format.js';

export async function view(main, { base, definition }) {
  const host = h('div', { class: 'grow' });
  const out = h('section', { class: 'panel', 'aria-live': 'polite', id: 'tried' }, h('p', { class: 'dim' }, 'Nothing is written.'));
  const problem = h('div');
  const sample = Object.fromEntries((definition.orrery?.synthetic?.sources ?? definition.partitionKey?.paths ?? ['/id']).map((path) => [path.slice(1).split('/')[0], 'example']));
  const go = button('What key does it get?', run, { class: 'main', id: 'try' });
  if (session.readOnly) go.disabled = true;
  fill(main, h('div', { class: 'split short' }, h('section', { class: 'panel detail-panel' }, h('h2', null, 'A document, or a key as an array'), host, h('div', { class: 'buttons' }, go, session.readOnly && h('span', { class: 'dim' }, 'needs a read-write key'))), h('div', null, problem, out)),
    definition.orrery?.synthetic && h('section', { class: 'panel' }, h('h2', null, 'The key is synthetic'), h('pre', { class: 'json' }, JSON.stringify(definition.orrery.synthetic, null, 2))));
  const text = await editor(host, { language: 'json', label: 'Document', value: JSON.stringify({ id: '1', ...sample }, null, 2), run });

  async function run() {
    await attempt(problem, async () => {
      const { json } = await admin('POST', `${base}/key`, { body: JSON.parse(text.value) });
      const at = json.effectivePartitionKey ? bound(json.effectivePartitionKey, 0) : null;
      fill(out, h('h2', null, 'Partition key ', h('code', null, keyText(json.partitionKey))),
        json.open && h('p', null, 'A random suffix is still to be drawn.'),
        h('div', { class: 'cards' },
          h('div', { class: 'card' }, h('small', null, 'physical partition'), h('b', null, json.partition?.id ?? `${json.partitions?.length} of them`)),
          json.partition && h('div', { class: 'card' }, h('small', null, 'node'), h('b', null, json.partition.node)),
          at !== null && h('div', { class: 'card' }, h('small', null, 'place among all keys'), h('b', null, `${(at * 100).toFixed(1)} %`))),
        at !== null && h('div', { class: 'ruler', role: 'img', 'aria-label': `at ${(at * 100).toFixed(1)} percent of the key space` }, h('i', { style: { left: `${at * 100}%` } })),
        h('p', { class: 'small' }, 'Effective partition key ', h('code', null, json.effectivePartitionKey ?? 'open')),
        json.synthetic && [h('h3', null, 'Made of'), h('pre', { class: 'json' }, JSON.stringify(json.synthetic, null, 2))],
        json.partitions && h('ul', null, json.partitions.map((one) => h('li', null, `partition ${one.id}: ${number(one.suffixes)} suffixes`))));
    });
  }
  return () => text.destroy();
}
