// A migration of a container under way: what it does, how far it is, and stopping it.
import { button, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm, notice } from './dialog.js';
import { bytes, duration, number } from './format.js';

const phases = { planned: 'about to begin', copying: 'copying items', 'catching up': 'bringing over what was written meanwhile', fenced: 'switching: writers wait', dropping: 'done; the sources are removed', cancelled: 'taken back' };

const ids = (list) => (list ?? []).map((one) => one.id ?? one).join(', ');

export function migrationPanel(base, changed) {
  const element = h('section', { class: 'panel migration', 'aria-label': 'Migration under way', hidden: true, id: 'migration' });
  let last = null;
  return {
    element,
    stop() {},
    set(migration) {
      element.hidden = !migration;
      if (last && !migration) notice(`The ${last.kind} is over.`);
      last = migration ?? null;
      if (!migration) return;
      const share = migration.bytesTotal ? Math.min(1, migration.bytes / migration.bytesTotal) : 0;
      fill(element, h('div', { class: 'head' },
        h('h2', null, `${migration.kind}: `, ids(migration.sources), migration.targets?.length > 0 && ` → ${ids(migration.targets)}`),
        h('span', { class: 'badge warn' }, migration.paused ? 'paused' : phases[migration.phase] ?? migration.phase),
        !session.readOnly && h('div', { class: 'buttons' },
          session.owner && button(migration.paused ? 'Resume' : 'Pause', () => attempt(null, async () => {
            await admin('POST', migration.paused ? 'migrations/resume' : 'migrations/pause');
            await changed();
          })),
          button('Cancel…', async () => {
            if (!(await confirm('Take it back?', h('p', null, 'What was copied is removed and the partitions are as they were. After the switch it cannot be taken back.'), 'Take it back', true))) return;
            await attempt(null, () => admin('DELETE', `${base}/migration`));
            await changed();
          }))),
      h('progress', { max: '1', value: share, 'aria-label': 'Copied' }),
      h('div', { class: 'figures small' }, h('span', null, `${bytes(migration.bytes)} of ${bytes(migration.bytesTotal)}`), h('span', null, `${number(migration.items)} items`),
        h('span', null, `${number(migration.keys)} written meanwhile`), h('span', null, duration(migration.elapsedMs)), migration.error && h('span', { class: 'bad' }, migration.error)));
    },
  };
}
