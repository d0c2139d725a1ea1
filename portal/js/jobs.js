// What the server does in the background: migrations under way and over.
import { button, fill, h, table } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm } from './dialog.js';
import { repeat } from './live.js';
import { address } from './route.js';
import { bytes, duration, moment, number, plural } from './format.js';
import { relaxed } from './ejson.js';

export async function view(main) {
  const problem = h('div');
  const now = h('section', { class: 'panel', 'aria-label': 'Under way' });
  const past = h('section', { class: 'panel', 'aria-label': 'Over' });
  const builds = h('section', { class: 'panel', 'aria-label': 'Index builds' });
  const backups = h('section', { class: 'panel', 'aria-label': 'Backups', hidden: !session.owner });
  fill(main, problem, now, builds, backups, past);
  const link = (one) => h('a', { href: address('partitions', one.database, one.container) }, `${one.database} / ${one.container}`);

  // Builds of indexes are listed by the operations of MongoDB's API, of whatever API the container is.
  async function lookBuilds() {
    builds.hidden = !session.about.apis.mongo;
    if (builds.hidden) return;
    const { json } = await admin('POST', 'mongo/admin', { body: { currentOp: 1 } });
    const list = (json.inprog ?? []).filter((one) => one.progress);
    fill(builds, h('h2', null, 'Index builds'), list.length ? table(['Container', 'What', 'Progress'], list.map((one) => [one.ns, one.msg ?? one.desc ?? 'index build',
      [h('progress', { max: 1, value: relaxed(one.progress.total) ? relaxed(one.progress.done) / relaxed(one.progress.total) : 0, 'aria-label': 'Built' }), ` ${number(relaxed(one.progress.done))} of ${number(relaxed(one.progress.total))}`]]), { label: 'Index builds' })
      : h('p', { class: 'dim' }, 'No index is being built.'));
  }

  // A backup, and a check of what is stored, holds a moment of all nodes while it reads.
  async function lookBackups() {
    if (!session.owner) return;
    const { json } = await admin('GET', 'moments');
    fill(backups, h('h2', null, 'Backups and checks'), json.held ? h('p', null, h('span', { class: 'badge warn' }, plural(json.held, 'moment')), ' of all nodes held: a backup or a check reads them.')
      : h('p', { class: 'dim' }, 'None is reading. ', h('code', null, 'orrery backup'), ' makes one while the server runs, ', h('code', null, 'orrery verify'), ' checks what is stored.'));
  }

  async function look() {
    await attempt(problem, lookBuilds);
    await attempt(problem.firstChild ? null : problem, lookBackups);
    await attempt(problem, async () => {
      const { json } = await admin('GET', 'migrations');
      fill(now, h('div', { class: 'head' }, h('h2', null, 'Under way'), json.paused && h('span', { class: 'badge warn' }, 'all are paused'),
        session.owner && !session.readOnly && h('div', { class: 'buttons' }, button(json.paused ? 'Resume all' : 'Pause all…', async () => {
          if (!json.paused && !(await confirm('Pause all migrations?', h('p', null, 'Each waits before its next step, and none begins by itself, until they are resumed or the server is started again.'), 'Pause'))) return;
          await attempt(null, async () => { await admin('POST', json.paused ? 'migrations/resume' : 'migrations/pause'); await look(); });
        }))),
      json.migrations.length ? table(['Kind', 'Container', 'Phase', 'Progress', 'Written meanwhile', 'Time'], json.migrations.map((one) => [one.kind, link(one), one.phase, [h('progress', { max: 1, value: one.bytesTotal ? one.bytes / one.bytesTotal : 0, 'aria-label': 'Copied' }), ` ${bytes(one.bytes)} of ${bytes(one.bytesTotal)}`], number(one.keys), duration(one.elapsedMs)]), { label: 'Migrations under way' })
        : h('p', { class: 'dim' }, 'No migration, index build or re-key is under way.'));
      fill(past, h('h2', null, 'Over'), h('div', { class: 'figures small' }, Object.entries(json.statistics).map(([name, n]) => h('span', null, `${name} `, h('b', null, name === 'bytes' ? bytes(n) : number(n))))),
        json.recent.length > 0 && table(['Ended', 'Kind', 'Container', 'Outcome', 'Copied', 'Writers waited', 'Time'], json.recent.map((one) => [moment(one.ended * 1000), one.kind, link(one), one.outcome, bytes(one.bytes), duration(one.pauseMs), duration(one.elapsedMs)]), { label: 'Migrations that are over' }));
    });
  }
  return repeat(look, 2000);
}
