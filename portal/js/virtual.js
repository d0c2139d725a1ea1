// Long lists: only the rows in view exist. All rows are of one height.
import { fill, h } from './dom.js';

// render(row, index) gives an element; set(rows) shows others.
export function virtualList({ height, render, label, role = 'list' }) {
  const inner = h('div', { class: 'virtual-inner', role, 'aria-label': label });
  const element = h('div', { class: 'virtual', tabindex: '0' }, inner);
  let rows = [];
  let first = -1;
  let last = -1;
  const draw = () => {
    const from = Math.max(0, Math.floor(element.scrollTop / height) - 8);
    const to = Math.min(rows.length, Math.ceil((element.scrollTop + (element.clientHeight || 600)) / height) + 8);
    if (from === first && to === last) return;
    [first, last] = [from, to];
    const focused = document.activeElement?.dataset?.row;
    fill(inner, rows.slice(from, to).map((row, at) => {
      const one = render(row, from + at);
      one.style.position = 'absolute';
      one.style.top = `${(from + at) * height}px`;
      one.style.height = `${height}px`;
      one.style.left = one.style.right = '0';
      if (role === 'list') {
        one.setAttribute('role', 'listitem');
        one.setAttribute('aria-setsize', rows.length);
        one.setAttribute('aria-posinset', from + at + 1);
      }
      return one;
    }));
    if (focused) inner.querySelector(`[data-row="${CSS.escape(focused)}"]`)?.focus();
  };
  element.addEventListener('scroll', draw);
  new ResizeObserver(() => {
    first = -1;
    draw();
  }).observe(element);
  return {
    element,
    set(next) {
      rows = next;
      first = -1;
      inner.style.height = `${rows.length * height}px`;
      draw();
    },
    reveal(index) {
      if (index < 0) return;
      const top = index * height;
      if (top < element.scrollTop || top + height > element.scrollTop + element.clientHeight) element.scrollTop = Math.max(0, top - 3 * height);
      draw();
    },
  };
}
