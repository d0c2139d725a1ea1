// Another key for a container: the server's dry run first, then, confirmed, the re-key.
import { check, h } from './dom.js';
import { admin } from './session.js';
import { confirm, notice } from './dialog.js';
import { bytes, duration, number } from './format.js';

// definition: partitionKey and orrery as a container is created with; name: what people call the key. Gives whether it has begun;
// what the server refuses is thrown.
export async function rekeyDialog(base, container, definition, name) {
  const wanted = { partitionKey: definition.partitionKey, ...(definition.orrery ? { orrery: definition.orrery } : {}) };
  const missing = check('carry items without a value under “undefined”');
  const { json } = await admin('POST', `${base}/rekey`, { body: { ...wanted, dryRun: true } });
  const conflicts = Object.entries(json.conflicts).filter(([kind, n]) => kind !== 'comparedOneIn' && n > 0);
  const yes = await confirm(`Another key for “${container}”: dry run`, [
    h('div', { class: 'cards' },
      h('div', { class: 'card' }, h('small', null, 'new key'), h('b', null, name)),
      h('div', { class: 'card' }, h('small', null, 'items to copy'), h('b', null, number(json.itemsTotal))),
      h('div', { class: 'card' }, h('small', null, 'about'), h('b', null, duration(json.durationMs))),
      h('div', { class: 'card' }, h('small', null, 'disk needed meanwhile'), h('b', null, bytes(json.bytesNeeded))),
      h('div', { class: `card ${conflicts.length ? 'bad' : 'good'}` }, h('small', null, 'in the way'), h('b', null, conflicts.length ? conflicts.map(([kind, n]) => `${kind} ${n}`).join(', ') : 'nothing'))),
    json.list?.length > 0 && h('details', null, h('summary', null, 'Conflicts'), h('pre', { class: 'json' }, JSON.stringify(json.list, null, 2))),
    conflicts.some(([kind]) => kind === 'missingKey') && missing.element,
    h('p', null, `What will happen: every item of “${container}” is copied to ${number(json.partitions)} partitions of the key ${name} while applications work, what is written meanwhile follows, and then the key switches. Until then it can be taken back; afterwards the old key is understood until the grace period is ended.`)], 'Re-key the container');
  if (!yes) return false;
  await admin('POST', `${base}/rekey`, { body: { ...wanted, allowMissing: missing.input.checked } });
  notice('The re-key has begun.');
  return true;
}
