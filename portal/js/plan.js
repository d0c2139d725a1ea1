// What the server would do to partitions, tried out: which go, which come, what each holds and may spend.
import { fill, h } from './dom.js';
import { admin } from './session.js';
import { show } from './dialog.js';
import { bytes, duration, number, percent, plural } from './format.js';
import { nodeColour } from './colours.js';

const strip = (name, list, nodes) => h('div', { class: 'plan-strip' }, h('small', null, name), h('div', null, list.map((one) =>
  h('span', { style: { flexGrow: String(Math.max(40, one.share * 1000)), borderColor: nodeColour(nodes.indexOf(one.node)) }, title: `${one.minInclusive || 'the first key'} to ${one.maxExclusive === 'FF' ? 'the last key' : one.maxExclusive}` },
    h('b', null, one.id ?? 'new'), h('small', null, `${bytes(one.bytes)} · ${percent(one.share)}`)))));

export function planned(plan) {
  const nodes = [...new Set([...plan.sources, ...plan.targets].map((one) => one.node))].sort();
  return h('div', { class: 'dry-run', 'aria-label': 'Dry run', role: 'region' },
    h('h3', null, 'Dry run, by the server'),
    strip('now', plan.sources, nodes), strip('then', plan.targets, nodes),
    nodes.length > 1 && h('div', { class: 'legend small' }, nodes.map((node, at) => h('span', null, h('i', { style: { background: nodeColour(at) } }), node))),
    h('p', null, `What will happen: ${plural(plan.items, 'item')} (${bytes(plan.bytes)}) are copied${plan.copyMs > 0 ? `, which the throttle lets take ${duration(plan.copyMs)}` : ''}, those written meanwhile follow, and the map changes once: ${number(plan.partitions)} → ${plural(plan.partitionsAfter, 'physical partition')}. Writers wait some milliseconds; nobody gets an error.`));
}

// A place that shows the dry run of a request, asked for again with ask(). body() gives the request, or null while it is not
// complete; what the server refuses is said here.
export function dryRun(path, body) {
  const place = h('div', { 'aria-live': 'polite' });
  let latest = 0;
  const ask = async () => {
    const mine = ++latest;
    const wanted = body();
    if (!wanted) return fill(place);
    try {
      const { json } = await admin('POST', path, { body: { ...wanted, dryRun: true } });
      if (mine === latest) fill(place, planned(json));
    } catch (error) {
      if (mine === latest) fill(place, show(error));
    }
    return undefined;
  };
  return { place, ask };
}
