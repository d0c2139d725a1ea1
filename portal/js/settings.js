// Settings in force.
import { fill, h } from './dom.js';
import { admin } from './session.js';
import { virtualList } from './virtual.js';

export async function view(main) {
  const { json } = await admin('GET', 'settings');
  const all = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1));
  const list = virtualList({ height: 30, label: 'Settings', render: ([name, value]) => h('div', { class: 'setting-row' }, h('code', null, name), h('span', null, typeof value === 'string' ? value || '(empty)' : JSON.stringify(value))) });
  list.element.classList.add('tall-list');
  const input = h('input', { type: 'search', placeholder: 'Filter…', 'aria-label': 'Filter settings', oninput: () => list.set(all.filter(([name]) => name.includes(input.value.toLowerCase()))) });
  fill(main, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Settings in force'), input, h('span', { class: 'dim small' }, 'They come from a file, the environment or the command line, and hold until the next start.')), list.element));
  list.set(all);
}
