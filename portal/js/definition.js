// What a container is: throughput, expiry, index policy and the rest of its definition, changed with checks; and dropping it.
import { button, field, fill, h, select } from './dom.js';
import { request, session } from './session.js';
import { attempt, form, notice } from './dialog.js';
import { editor } from './editor.js';
import { go } from './route.js';
import { reload } from './side.js';
import { number } from './format.js';

async function offerOf(rid) {
  let continuation = null;
  do {
    const answer = await request('GET', '/offers', { headers: continuation ? { 'x-ms-continuation': continuation } : {} });
    const found = answer.json.Offers.find((one) => one.offerResourceId === rid);
    if (found) return found;
    continuation = answer.continuation;
  } while (continuation);
  return null;
}

// What the service would refuse, said before it is asked.
function policyProblem(policy) {
  if (policy === undefined) return null;
  if (!policy || typeof policy !== 'object' || Array.isArray(policy)) return 'the index policy is an object';
  if (policy.indexingMode && !['consistent', 'none'].includes(String(policy.indexingMode).toLowerCase())) return 'indexingMode is consistent or none';
  const paths = [...(policy.includedPaths ?? []), ...(policy.excludedPaths ?? [])].map((one) => one.path);
  const bad = paths.find((path) => typeof path !== 'string' || !path.startsWith('/') || !(/[*?]$/.test(path) || path === '/'));
  if (bad !== undefined) return `the path ${JSON.stringify(bad)} has to begin with / and end in /? or /*`;
  if (policy.indexingMode !== 'none' && !paths.includes('/*')) return 'either includedPaths or excludedPaths has to have "/*"';
  return null;
}

export async function view(main, { path, definition, database, container }) {
  const write = !session.readOnly;
  const problem = h('div');
  const throughput = h('section', { class: 'panel', 'aria-label': 'Throughput' });
  const host = h('div', { class: 'definition' });
  const saveButton = button('Save the definition', save, { class: 'main', id: 'save-definition' });
  const ttl = h('input', { type: 'number', min: -1, value: definition.defaultTtl ?? '', placeholder: 'items stay' });
  fill(main, problem, throughput, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Definition'), write && h('div', { class: 'buttons' }, saveButton)),
    field('Items expire after seconds', ttl, 'empty: they stay; -1: only those that say so themselves (ttl)'),
    h('p', { class: 'small dim' }, 'Index policy, unique keys, computed properties, strategy, placement. The partition key is changed under Keys.'), host),
  write && h('section', { class: 'panel' }, h('h2', null, 'Drop the container'), h('p', null, 'Everything in it is gone at once.'), button('Drop…', drop, { class: 'danger' })));
  const shown = { ...definition };
  for (const name of Object.keys(shown)) if (name.startsWith('_') || name === 'defaultTtl') delete shown[name];
  const text = await editor(host, { language: 'json', label: 'Definition as JSON', readOnly: !write, value: JSON.stringify(shown, null, 2), run: () => write && save() });

  async function save() {
    await attempt(problem, async () => {
      const wanted = JSON.parse(text.value);
      const wrong = policyProblem(wanted.indexingPolicy);
      if (wrong) throw Object.assign(new Error(wrong), { title: 'The index policy does not fit' });
      if (ttl.value !== '') {
        if (Number(ttl.value) === 0 || Number(ttl.value) < -1) throw Object.assign(new Error('it is -1 or at least 1'), { title: 'The time to live does not fit' });
        wanted.defaultTtl = Number(ttl.value);
      }
      const answer = await request('PUT', path, { body: wanted });
      notice(`The definition is saved${answer.headers.get('x-ms-documentdb-collection-index-transformation-progress') === '100' ? '' : '; indexes follow in the background'}.`);
    });
  }

  async function showThroughput() {
    const offer = await attempt(throughput, () => offerOf(definition._rid));
    if (!offer) {
      fill(throughput, h('h2', null, 'Throughput'), h('p', { class: 'dim' }, 'It has none of its own: the database’s is shared, or none is stated and nobody is held back.'));
      return;
    }
    const auto = offer.content.offerAutopilotSettings?.maxThroughput;
    const kind = select([['manual', 'fixed'], ['auto', 'autoscale up to']], { chosen: auto ? 'auto' : 'manual', disabled: true });
    const ru = h('input', { type: 'number', min: 400, step: 100, value: auto ?? offer.content.offerThroughput, id: 'offer' });
    fill(throughput, h('h2', null, 'Throughput'), h('div', { class: 'row' }, field('Kind', kind), field('RU/s', ru),
      write && button('Set', () => attempt(problem, async () => {
        const content = auto ? { ...offer.content, offerAutopilotSettings: { maxThroughput: Number(ru.value) } } : { ...offer.content, offerThroughput: Number(ru.value) };
        const answer = await request('PUT', `/${offer._self.replace(/\/$/, '')}`, { body: { ...offer, content } });
        notice(answer.headers.get('x-ms-offer-replace-pending') === 'true' ? 'Set: partitions are split for it in the background.' : `It has ${number(Number(ru.value))} RU/s now.`);
        await showThroughput();
      }), { id: 'set-offer' })));
  }

  async function drop() {
    const typed = h('input', { type: 'text', autocomplete: 'off' });
    const done = await form(`Drop the container “${container}”`, [h('p', null, 'The container and all its items are gone at once. There is no way back.'), field('Type its name to confirm', typed)], 'Drop it', async () => {
      if (typed.value !== container) throw new Error('That is not its name.');
      await request('DELETE', path);
    }, true);
    if (!done) return;
    await reload();
    go();
    notice(`“${database} / ${container}” is gone.`);
  }

  await showThroughput();
  return () => text.destroy();
}
