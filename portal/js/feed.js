// The change feed, watched live: every change of the container as it comes.
import { button, fill, h } from './dom.js';
import { request } from './session.js';
import { attempt } from './dialog.js';
import { repeat } from './live.js';
import { virtualList } from './virtual.js';
import { keyOf } from './keypath.js';
import { key as keyText, time } from './format.js';

const most = 5000; // kept and shown

export async function view(main, { path, definition }) {
  const problem = h('div');
  const detail = h('pre', { class: 'json', tabindex: '0', 'aria-label': 'The change' }, 'Choose a change.');
  const count = h('span', { class: 'dim', role: 'status' });
  const state = { rows: [], etag: null, paused: false, seen: 0 };
  const list = virtualList({ height: 34, label: 'Changes', render: (one) => h('div', { class: 'item-row feed-row' }, h('button', { type: 'button', class: 'quiet', data: { row: one._rid + one._etag }, onclick: () => fill(detail, JSON.stringify(one, null, 2)) }, h('span', null, time(one._ts * 1000), ' ', h('b', null, one.id), ' ', keyText(keyOf(one, definition))))) });
  list.element.classList.add('tall-list');
  const pause = button('Pause', () => { state.paused = !state.paused; fill(pause, state.paused ? 'Go on' : 'Pause'); });
  const beginning = button('From the beginning', () => { Object.assign(state, { rows: [], etag: null, seen: 0, all: true }); return look(); });
  fill(main, problem, h('div', { class: 'row' }, pause, beginning, button('Clear', () => { state.rows = []; list.set([]); }, { class: 'quiet' }), count), h('div', { class: 'split short' }, h('section', { class: 'panel list-panel' }, list.element), h('section', { class: 'panel' }, detail)));

  async function look() {
    if (state.paused) return;
    await attempt(problem, async () => {
      for (let pages = 0; pages < 20; pages++) {
        const headers = { 'a-im': 'Incremental Feed', 'x-ms-max-item-count': '100' };
        if (state.etag) headers['if-none-match'] = state.etag;
        else if (!state.all) headers['if-none-match'] = '*';
        const answer = await request('GET', `${path}/docs`, { headers });
        state.etag = answer.etag ?? state.etag;
        const changes = answer.json?.Documents ?? [];
        state.seen += changes.length;
        state.rows = changes.reverse().concat(state.rows).slice(0, most);
        if (changes.length < 100) break;
      }
      list.set(state.rows);
      fill(count, `${state.seen} changes since the watch began; deletes are not in this feed`);
    });
  }
  return repeat(look, 1000);
}
