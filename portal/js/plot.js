// Curves over time: drawn by the library where the server was built with it, else the latest figures as a table.
import { fill, h, table } from './dom.js';
import { session } from './session.js';
import { css } from './colours.js';
import { number, time } from './format.js';

let library = null;
async function load() {
  if (!session.about?.libraries) return null;
  if (!library) {
    document.head.append(h('link', { rel: 'stylesheet', href: 'libraries/plot.css' }));
    library = (await import('../libraries/plot.js')).default;
  }
  return library;
}

// series: [{ label, colour, values }], at: seconds since 1970. set(at, lists) shows others.
export async function plot(place, { title, series, format = number }) {
  const UPlot = await load().catch(() => null);
  let drawn = null;
  let last = null;
  const draw = () => {
    if (!last) return;
    const [at, lists] = last;
    if (!UPlot) {
      fill(place, h('h3', null, title), table(['Time', ...series.map((one) => one.label)], at.slice(-5).map((when, i) => [time(when * 1000), ...lists.map((list) => format(list[at.length - Math.min(5, at.length) + i]))])));
      return;
    }
    drawn?.destroy();
    const wide = Math.max(240, place.clientWidth - 4);
    const axis = { stroke: css('--dim'), grid: { stroke: css('--line'), width: 1 }, ticks: { stroke: css('--line') }, font: '11px system-ui' };
    const canvasPlace = h('div', { role: 'img', 'aria-label': `${title}: now ${lists.map((list, i) => `${series[i].label} ${format(list.at(-1))}`).join(', ')}` });
    fill(place, h('h3', null, title), canvasPlace);
    drawn = new UPlot({
      width: wide, height: 170, legend: { show: series.length > 1, live: false }, cursor: { drag: { x: false, y: false } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((n) => time(n * 1000).slice(0, 5)) }, { ...axis, size: 58, values: (_, ticks) => ticks.map((n) => format(n)) }],
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      series: [{}, ...series.map((one) => ({ label: one.label, stroke: one.colour(), fill: `${one.colour()}22`, width: 2, points: { show: false } }))],
    }, [at, ...lists], canvasPlace);
  };
  const observer = new ResizeObserver(() => requestAnimationFrame(() => { if (drawn && Math.abs(drawn.width - Math.max(240, place.clientWidth - 4)) > 2) draw(); }));
  observer.observe(place);
  window.addEventListener('themechange', draw);
  return {
    set(at, lists) {
      last = [at, lists];
      if (drawn && UPlot) drawn.setData([at, ...lists]);
      else draw();
    },
    stop() {
      observer.disconnect();
      window.removeEventListener('themechange', draw);
      drawn?.destroy();
    },
  };
}
