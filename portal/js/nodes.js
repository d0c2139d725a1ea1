// Nodes: room, region, state; draining, pausing, adding, removing, rebalancing.
import { button, field, fill, h, table } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm, form, notice } from './dialog.js';
import { repeat } from './live.js';
import { bytes, number } from './format.js';

const states = { serving: 'good', suspect: 'warn', down: 'bad', paused: 'warn', full: 'bad', unreadable: 'bad', lost: 'bad' };

export async function view(main) {
  const write = !session.readOnly;
  const problem = h('div');
  const list = h('div', { class: 'node-cards' });
  const plan = h('section', { class: 'panel', 'aria-label': 'Rebalancing' });
  fill(main, problem, h('div', { class: 'head' }, h('h2', null, 'Nodes'), write && h('div', { class: 'buttons' }, button('Add a node…', add))), list, plan);
  const path = (name) => `nodes/${encodeURIComponent(name)}`;

  async function add() {
    const name = h('input', { type: 'text' });
    const url = h('input', { type: 'text', placeholder: 'postgresql://orrery@west/orrery', spellcheck: 'false' });
    const region = h('input', { type: 'text' });
    const done = await form('Add a node', [field('Name', name), field('Store', url, 'It must be empty. Directories of the server have to be allowed by nodes.add_paths.'), field('Region', region)], 'Add it', () => admin('POST', 'nodes', { body: { name: name.value, url: url.value, region: region.value } }));
    if (done) await look();
  }

  async function change(node) {
    const said = ['region', 'zone'].map((name) => [name, h('input', { type: 'text', value: node[name] ?? '' })]);
    const tags = h('input', { type: 'text', value: (node.tags ?? []).join(', ') });
    const capacity = h('input', { type: 'text', value: String(node.capacity ?? 0) });
    const reserve = h('input', { type: 'number', min: 0, max: 100, value: node.reserve ?? 0 });
    const done = await form(`What is said of the node “${node.name}”`, [said.map(([name, input]) => field(name === 'region' ? 'Region' : 'Zone', input)),
      field('Tags', tags, 'with commas; placement rules of containers name them'), field('Capacity', capacity, 'bytes, or 500GB; 0: what its disk has'), field('Reserve', reserve, 'percent of it that stay free'),
      h('p', null, 'What will happen: it is remembered, and partitions that a placement rule of their container no longer lets stay are moved away.')], 'Change it',
    () => admin('POST', path(node.name), { body: { ...Object.fromEntries(said.map(([name, input]) => [name, input.value])), tags: tags.value.split(',').map((one) => one.trim()).filter(Boolean), capacity: /^\d+$/.test(capacity.value) ? Number(capacity.value) : capacity.value, reserve: Number(reserve.value) } }));
    if (done) {
      notice(`${node.name} is changed.`);
      await look();
    }
  }

  async function act(node, verb, what, danger) {
    if (!(await confirm(`${verb[0].toUpperCase()}${verb.slice(1)} the node “${node.name}”?`, h('p', null, `What will happen: ${what}`), 'Do it', danger))) return;
    await attempt(null, async () => {
      if (verb === 'remove') await admin('DELETE', path(node.name));
      else await admin('POST', `${path(node.name)}/${verb}`);
      notice(`${node.name}: ${verb} done.`);
      await look();
    });
  }

  function card(node) {
    const stored = node.bytesStored ?? 0;
    const room = stored + (node.bytesFree ?? 0);
    return h('article', { class: 'panel', 'aria-label': node.name },
      h('div', { class: 'head' }, h('h2', null, node.name), h('span', { class: `badge ${states[node.state] ?? ''}` }, node.state), node.root && h('span', { class: 'badge' }, 'root'), node.draining && h('span', { class: 'badge warn' }, 'draining')),
      h('p', { class: 'small dim' }, h('code', null, node.url), node.region && ` · ${node.region}`, node.zone && ` · ${node.zone}`, node.tags?.length > 0 && ` · ${node.tags.join(', ')}`),
      room > 0 && h('div', { class: 'meter-row' }, h('span', null, `${bytes(stored)} stored, ${bytes(node.bytesFree)} free`), h('span', { class: `meter ${stored / room > 0.9 ? 'bad' : 'good'}` }, h('i', { style: { width: `${(stored / room) * 100}%` } })), h('b', null, '')),
      h('div', { class: 'figures small' }, h('span', null, h('b', null, number(node.partitions)), ' partitions'), h('span', null, h('b', null, bytes(node.bytes)), ' of items'), h('span', null, h('b', null, number(node.ruPerSecond)), ' RU/s')),
      node.because && h('p', { class: 'bad small' }, node.because),
      write && h('div', { class: 'buttons' },
        node.draining ? button('Undrain…', () => act(node, 'undrain', 'it may get partitions again.')) : button('Drain…', () => act(node, 'drain', `it gets no new partitions, and its ${number(node.partitions)} move away.`)),
        node.state === 'paused' ? button('Resume…', () => act(node, 'resume', 'its partitions are served again.')) : button('Pause…', () => act(node, 'pause', `its ${number(node.partitions)} partitions answer 503 until it is resumed.`, true)),
        button('Change…', () => change(node)),
        node.state === 'lost' && button('Accept the loss…', () => act(node, 'accept-loss', 'it serves again, without the acknowledged writes that a failover of its server has lost.', true)),
        !node.root && button('Remove…', () => act(node, 'remove', 'the store is closed. It must hold no partitions.', true))));
  }

  async function look() {
    await attempt(problem, async () => {
      const [nodes, moves] = await Promise.all([admin('GET', 'nodes'), admin('GET', 'rebalance')]);
      fill(list, nodes.json.nodes.map(card));
      const planned = moves.json;
      fill(plan, h('div', { class: 'head' }, h('h2', null, 'Rebalancing'), planned.rebalancing && h('span', { class: 'badge warn' }, `${planned.movesDone} of ${planned.movesPlanned} moves done`),
        write && h('div', { class: 'buttons' }, planned.rebalancing ? button('Stop', () => attempt(null, async () => { await admin('DELETE', 'rebalance'); await look(); }))
          : planned.moves.length > 0 && button('Carry it out…', async () => {
            if (!(await confirm('Rebalance?', h('p', null, `${number(planned.moves.length)} partitions move. The spread goes from ${planned.spreadBefore} to ${planned.spreadAfter}.`), 'Rebalance'))) return;
            await attempt(null, async () => { await admin('POST', 'rebalance'); await look(); });
          }))),
      planned.moves.length ? table(['Container', 'Partition', 'From', 'To', 'Bytes', 'RU/s', 'Reason'], planned.moves.slice(0, 200).map((one) => [one.container, one.partition, one.from, one.to, bytes(one.bytes), number(one.ruPerSecond), one.reason]), { label: 'Planned moves' })
        : h('p', { class: 'dim' }, 'Nothing would be gained by moving partitions.'),
      (planned.problems ?? []).length > 0 && h('ul', null, planned.problems.map((one) => h('li', { class: 'warn' }, typeof one === 'string' ? one : JSON.stringify(one)))));
    });
  }
  return repeat(async () => { if (!document.querySelector('dialog')) await look(); }, 3000);
}
