// Health, and the last hour of the account.
import { fill, h, table } from './dom.js';
import { admin, session } from './session.js';
import { attempt } from './dialog.js';
import { repeat } from './live.js';
import { plot } from './plot.js';
import { css } from './colours.js';
import { bytes, duration, key as keyText, number } from './format.js';

// The lines of /metrics as a map: name{labels} to number.
function figures(text) {
  const all = new Map();
  for (const line of text.split('\n')) {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (found) all.set(found[2] ? `${found[1]}{${found[2]}}` : found[1], Number(found[3]));
  }
  return all;
}
const sum = (all, name) => [...all].reduce((n, [id, value]) => (id === name || id.startsWith(`${name}{`) ? n + value : n), 0);

const card = (label, value, kind = '') => h('div', { class: `card ${kind}` }, h('small', null, label), h('b', null, value));

export async function view(main) {
  const health = h('div', { class: 'cards', id: 'health' });
  const trouble = h('section', { class: 'panel', hidden: true, 'aria-label': 'Keys in trouble' });
  const problem = h('div');
  const places = [0, 1, 2, 3].map(() => h('section', { class: 'panel plot' }));
  fill(main, problem, health, h('div', { class: 'plots' }, places), trouble);
  const plots = await Promise.all([
    plot(places[0], { title: 'Request units a second', series: [{ label: 'RU/s', colour: () => css('--accent') }] }),
    plot(places[1], { title: 'Requests and 429s a second', series: [{ label: 'requests', colour: () => css('--teal') }, { label: '429', colour: () => css('--bad') }] }),
    plot(places[2], { title: 'Time in the server, mean and longest', series: [{ label: 'mean', colour: () => css('--teal') }, { label: 'longest', colour: () => css('--warn') }], format: (n) => duration(n) }),
    plot(places[3], { title: 'Bytes a second', series: [{ label: 'in', colour: () => css('--accent') }, { label: 'out', colour: () => css('--warn') }], format: bytes }),
  ]);

  async function look() {
    await attempt(problem, async () => {
      const [usage, hot, ready, metrics] = await Promise.all([
        admin('GET', 'usage'), admin('GET', 'hot'),
        fetch('/ready', { cache: 'no-store' }).then((answer) => answer.json()),
        fetch('/metrics', { cache: 'no-store' }).then((answer) => answer.text())]);
      const all = figures(metrics);
      const { minutes } = usage.json;
      const at = minutes.map((one) => one.at);
      const begun = Math.max(1, Date.now() / 1000 - at.at(-1)); // of the present minute
      const rate = (name) => minutes.map((one, i) => one[name] / (i === minutes.length - 1 ? begun : 60));
      plots[0].set(at, [rate('ru')]);
      plots[1].set(at, [rate('requests'), rate('throttled')]);
      plots[2].set(at, [minutes.map((one) => (one.requests > one.throttled ? one.timeUs / (one.requests - one.throttled) / 1000 : 0)), minutes.map((one) => one.timeUsMax / 1000)]);
      plots[3].set(at, [rate('bytesIn'), rate('bytesOut')]);
      const hour = (name) => minutes.reduce((n, one) => n + one[name], 0);
      fill(health,
        card('server', ready.status === 'ready' ? 'ready' : ready.status, ready.status === 'ready' ? 'good' : 'bad'),
        card('nodes serving', `${ready.nodes.filter((one) => one.state === 'serving').length} of ${ready.nodes.length}`, ready.nodes.every((one) => one.state === 'serving') ? 'good' : 'bad'),
        card('RU in the hour', number(Math.round(hour('ru')))),
        card('429 in the hour', number(hour('throttled')), hour('throttled') ? 'warn' : ''),
        card('connections', number(sum(all, 'orrery_connections'))),
        card('memory', bytes(all.get('process_resident_memory_bytes'))),
        card('up for', duration(Date.now() - all.get('process_start_time_seconds') * 1000)),
        card('version', session.about.version));
      trouble.hidden = !hot.json.keys.length;
      fill(trouble, h('h2', null, 'Keys too hot or too large'), table(['Container', 'Key', 'Trouble', 'Advice'], hot.json.keys.slice(0, 50).map((one) => [`${one.database} / ${one.container}`, keyText(one.partitionKey), one.trouble, one.advice ?? one.do]), { label: 'Keys in trouble' }));
    });
  }
  const stop = repeat(look, 5000);
  return () => {
    stop();
    plots.forEach((one) => one.stop());
  };
}
