// What key a pasted document would get, and where it would be: of the container's own key, or of another that is written here. The
// server says it either way, by the rules it would make keys by; nothing is worked out in this page.
import { button, field, fill, h, select } from './dom.js';
import { admin, session } from './session.js';
import { attempt } from './dialog.js';
import { editor } from './editor.js';
import { bound } from './map.js';
import { key as keyText, number } from './format.js';
import { go as goTo } from './route.js';
import { rekeyDialog } from './rekey.js';

const made = '/partitionKey';
const target = (synthetic) => ({ partitionKey: { paths: [made], kind: 'Hash', version: 2 }, orrery: { synthetic: { ...synthetic, target: made } } });

// Definitions to begin with, of some paths that the container's documents have.
const templates = {
  concatenation: (paths) => target({ kind: 'concatenation', sources: [paths[0], paths[1] ?? '/id'], separator: '-' }),
  randomSuffix: (paths) => target({ kind: 'randomSuffix', base: paths[0], suffixes: 20 }),
  computedSuffix: (paths) => target({ kind: 'computedSuffix', base: paths[0], hashed: paths[1] ?? '/id', suffixes: 20 }),
  plain: (paths) => ({ partitionKey: { paths: [paths[0]], kind: 'Hash', version: 2 } }),
  hierarchical: (paths) => ({ partitionKey: { paths: [paths[0], paths[1] ?? '/id'], kind: 'MultiHash', version: 2 } }),
};

function answer(json, thought) {
  const at = json.effectivePartitionKey ? bound(json.effectivePartitionKey, 0) : null;
  return [h('h2', null, 'Partition key ', h('code', null, keyText(json.partitionKey))),
    thought && h('p', { class: 'small dim' }, `Of ${number(thought)} physical partitions of a container that is only thought of, from 0 on.`),
    json.open && h('p', null, 'A random suffix is still to be drawn.'),
    h('div', { class: 'cards' },
      h('div', { class: 'card' }, h('small', null, 'physical partition'), h('b', null, json.partition?.id ?? (json.partitions ? `${json.partitions.length} of them` : 'open'))),
      json.partition?.node !== undefined && h('div', { class: 'card' }, h('small', null, 'node'), h('b', null, json.partition.node)),
      at !== null && h('div', { class: 'card' }, h('small', null, 'place among all keys'), h('b', null, `${(at * 100).toFixed(1)} %`))),
    at !== null && h('div', { class: 'ruler', role: 'img', 'aria-label': `at ${(at * 100).toFixed(1)} percent of the key space` }, h('i', { style: { left: `${at * 100}%` } })),
    h('p', { class: 'small' }, 'Effective partition key ', h('code', null, json.effectivePartitionKey ?? 'open')),
    json.synthetic && [h('h3', null, 'Made of'), h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(json.synthetic, null, 2))],
    json.partitions && h('ul', null, json.partitions.map((one) => h('li', null, `partition ${one.id}: ${number(one.suffixes)} suffixes`)))];
}

// JSON that a person wrote; what is wrong with it is said with the name of the field.
function parsed(name, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error(error.message), { title: `${name} is no JSON` });
  }
}

export async function view(main, { base, definition, database, container }) {
  const synthetic = definition.orrery?.synthetic;
  const known = (synthetic?.sources ?? (synthetic ? [synthetic.base, synthetic.hashed].filter(Boolean) : definition.partitionKey?.paths)) ?? ['/id'];
  const host = h('div', { class: 'grow' });
  const keyHost = h('div');
  const out = h('section', { class: 'panel', 'aria-live': 'polite', id: 'tried' }, h('p', { class: 'dim' }, 'Nothing is written.'));
  const problem = h('div');
  const sample = Object.fromEntries(known.map((path) => [path.slice(1).split('/')[0], 'example']));
  const which = select([['own', 'the key of this container'], ['concatenation', 'another: several values in one'], ['computedSuffix', 'another: a value and a number computed'], ['randomSuffix', 'another: a value and a random number'], ['plain', 'another: one value'], ['hierarchical', 'another: hierarchical']], { id: 'try-which', onchange: choose });
  const partitions = h('input', { type: 'number', min: 1, max: 1000, value: 1, id: 'try-partitions' });
  const other = h('div', { hidden: true, class: 'other-key' }, h('h3', null, 'The other key, as a container is created with it'), keyHost, field('Physical partitions', partitions),
    !session.readOnly && h('div', { class: 'buttons' }, button('Re-key to it: dry run…', rekey, { id: 'try-rekey' })));
  const go = button('What key does it get?', run, { class: 'main', id: 'try' });
  if (session.readOnly) go.disabled = true;
  fill(main, h('div', { class: 'split short' },
    h('section', { class: 'panel detail-panel' }, field('Try it with', which), other, h('h2', null, 'A document, or a key as an array'), host, h('div', { class: 'buttons' }, go, session.readOnly && h('span', { class: 'dim' }, 'needs a read-write key'))),
    h('div', null, problem, out)),
  synthetic && h('section', { class: 'panel' }, h('h2', null, 'The key of this container is synthetic'), h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(synthetic, null, 2))));
  const text = await editor(host, { language: 'json', label: 'Document', value: JSON.stringify({ id: '1', ...sample }, null, 2), run });
  const definitionText = await editor(keyHost, { language: 'json', label: 'Definition of the other key', value: '', run });
  partitions.value = (await attempt(problem, async () => (await admin('GET', base)).json.partitions.length)) ?? 1;

  function choose() {
    other.hidden = which.value === 'own';
    if (!other.hidden) definitionText.value = JSON.stringify(templates[which.value](known), null, 2);
  }

  async function rekey() {
    await attempt(problem, async () => {
      const wanted = parsed('The definition', definitionText.value);
      const name = wanted.orrery?.synthetic ? `${wanted.orrery.synthetic.kind} in ${wanted.orrery.synthetic.target}` : (wanted.partitionKey?.paths ?? []).join(', ');
      if (await rekeyDialog(base, container, wanted, name)) goTo('keys', database, container, 'advice');
    });
  }

  async function run() {
    await attempt(problem, async () => {
      fill(out, h('p', { class: 'dim' }, 'Nothing is written.'));
      const document = parsed('The document', text.value);
      const own = which.value === 'own';
      const { json } = own ? await admin('POST', `${base}/key`, { body: document })
        : await admin('POST', 'key', { body: { definition: parsed('The definition', definitionText.value), document, partitions: Number(partitions.value) } });
      fill(out, answer(json, own ? 0 : Number(partitions.value)));
    });
  }
  return () => {
    text.destroy();
    definitionText.destroy();
  };
}
