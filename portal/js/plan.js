// What the server would do to partitions, tried out: which go, which come, what each holds and may spend.
import { fill, h } from './dom.js';
import { admin } from './session.js';
import { form, show } from './dialog.js';
import { bytes, duration, key as keyText, number, percent, plural } from './format.js';
import { nodeColour } from './colours.js';

const strip = (name, list, nodes) => h('div', { class: 'plan-strip' }, h('small', null, name), h('div', null, list.map((one) =>
  h('span', { style: { flexGrow: String(Math.max(40, one.share * 1000)), borderColor: nodeColour(nodes.indexOf(one.node)) }, title: `${one.minInclusive || 'the first key'} to ${one.maxExclusive === 'FF' ? 'the last key' : one.maxExclusive}` },
    h('b', null, one.id ?? 'new'), h('small', null, `${bytes(one.bytes)} · ${percent(one.share)}`)))));

// Lines of a directory: where each key is, where it would be, and what it takes along.
const lines = (keys) => h('ul', { class: 'small' }, keys.slice(0, 20).map((one) => h('li', null, h('b', null, keyText(one.key)),
  one.shard === one.shardAfter ? ` stays in shard ${one.shard}` : ` goes from shard ${one.shard} to shard ${one.shardAfter}, ${String(one.partitions) === String(one.partitionsAfter) ? `within partition ${one.partitions.join(', ')}` : `from partition ${one.partitions.join(', ')} to ${one.partitionsAfter.join(', ')}`}`,
  `, with ${plural(one.items, 'item')} (${bytes(one.bytes)})`)), keys.length > 20 && h('li', null, `and ${number(keys.length - 20)} more`));

function happens(plan) {
  if (!plan.targets.length) return `What will happen: the directory changes (${number(plan.lines)} → ${plural(plan.linesAfter, 'line')}), and nothing is copied: ${plan.keys.every((one) => one.shard === one.shardAfter) ? 'every key stays where it is' : 'no such key was used yet'}.`;
  const copied = `What will happen: ${plural(plan.items, 'item')} (${bytes(plan.bytes)}) are copied${plan.keys ? ', for partitions are copied whole' : ''}${plan.copyMs > 0 ? `, which the throttle lets take ${duration(plan.copyMs)}` : ''}, those written meanwhile follow, and `;
  return plan.keys ? `${copied}map and directory change at once (${number(plan.lines)} → ${plural(plan.linesAfter, 'line')}). Writers wait some milliseconds; nobody gets an error.`
    : `${copied}the map changes once: ${number(plan.partitions)} → ${plural(plan.partitionsAfter, 'physical partition')}. Writers wait some milliseconds; nobody gets an error.`;
}

export function planned(plan) {
  const nodes = [...new Set([...plan.sources, ...plan.targets].map((one) => one.node))].sort();
  return h('div', { class: 'dry-run', 'aria-label': 'Dry run', role: 'region' },
    h('h3', null, 'Dry run, by the server'),
    plan.keys && lines(plan.keys),
    plan.targets.length > 0 && [strip('now', plan.sources, nodes), strip('then', plan.targets, nodes)],
    nodes.length > 1 && h('div', { class: 'legend small' }, nodes.map((node, at) => h('span', null, h('i', { style: { background: nodeColour(at) } }), node))),
    h('p', null, happens(plan)));
}

// A place that shows the dry run of a request. body() gives the request, or null while it is not complete.
function dryRun(path, body) {
  const place = h('div', { 'aria-live': 'polite' });
  let latest = 0;
  let shown = null; // the request that stands there
  const text = () => JSON.stringify(body());
  async function ask() {
    const mine = ++latest;
    try {
      const wanted = body();
      if (!wanted) return fill(place);
      const { json } = await admin('POST', path, { body: { ...wanted, dryRun: true } });
      if (mine !== latest) return undefined;
      shown = JSON.stringify(wanted);
      fill(place, planned(json));
    } catch (error) {
      if (mine === latest) fill(place, show(error));
    }
    return undefined;
  }
  // Nothing is done whose dry run was not to be seen.
  async function need() {
    if (!body()) throw Object.assign(new Error('say what it is about'), { title: 'Something is missing' });
    if (shown === text()) return;
    await ask();
    if (shown === text()) throw Object.assign(new Error('this is what the server would do: look at it, and press again'), { title: 'Changed since the dry run' });
    throw Object.assign(new Error('the server refuses it'), { title: 'Not begun' });
  }
  return { place, ask, need };
}

// A form with the server's dry run in it, asked for again whenever one of the inputs changes. What is confirmed is done; gives the
// answer, or null.
export function tried(title, { content, inputs = [], yes, path, body, danger = false }) {
  const dry = dryRun(path, body);
  for (const input of inputs) input.addEventListener('change', dry.ask);
  dry.ask();
  return form(title, [content, dry.place], yes, async () => {
    await dry.need();
    return (await admin('POST', path, { body: body() })).json ?? {};
  }, danger);
}
