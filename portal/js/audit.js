// Who changed what: the server's record, and whether it is whole.
import { button, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt, show } from './dialog.js';
import { recordTable } from './slow.js';
import { number } from './format.js';

export async function view(main) {
  const problem = h('div');
  const verdict = h('span', { role: 'status' });
  const place = h('div');
  const more = button('Older', () => look(true), { hidden: true });
  let rows = [];
  let next = 0;
  fill(main, problem, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Audit'), session.owner && h('div', { class: 'buttons' }, verdict, button('Is it whole?', verify))), place, more));

  async function look(older) {
    try {
      const { json } = await admin('GET', `audit?max=100${older && next ? `&before=${next}` : ''}`);
      rows = older ? rows.concat(json.records) : json.records;
      next = json.next;
      more.hidden = !next;
      fill(place, rows.length ? recordTable(rows, 'Audit') : h('p', { class: 'dim' }, 'Nothing is recorded yet.'));
    } catch (error) {
      fill(problem, error.status === 404 ? h('p', { class: 'dim' }, 'This server keeps no audit record.') : show(error));
    }
  }

  async function verify() {
    await attempt(problem, async () => {
      const { json } = await admin('GET', 'audit/verify');
      fill(verdict, json.whole ? h('span', { class: 'badge good' }, `whole: ${number(json.records)} records`) : h('span', { class: 'badge bad' }, `broken at ${json.brokenAt}: ${json.because}`));
    });
  }
  await look(false);
}
