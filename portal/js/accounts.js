// Accounts and their keys, with rotation.
import { button, field, fill, h, table } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm, form, notice, show } from './dialog.js';
import { moment, number } from './format.js';

const names = { primary: 'primary', secondary: 'secondary', 'primary-readonly': 'primary, read-only', 'secondary-readonly': 'secondary, read-only' };

// A secret is shown on demand, and copied without being shown.
function secret(text) {
  const shown = h('code', { class: 'secret' }, '•'.repeat(24));
  let is = false;
  return h('span', { class: 'row' }, shown,
    button('Show', (event) => { is = !is; fill(shown, is ? text : '•'.repeat(24)); fill(event.target, is ? 'Hide' : 'Show'); }, { class: 'quiet' }),
    button('Copy', async () => { await navigator.clipboard.writeText(text); notice('Copied.'); }, { class: 'quiet' }));
}

export async function view(main) {
  const write = !session.readOnly;
  const problem = h('div');
  const list = h('section', { class: 'panel', 'aria-label': 'Accounts' });
  const keys = h('section', { class: 'panel', hidden: true, 'aria-label': 'Keys', id: 'keys' });
  fill(main, problem, list, keys);
  const path = (id) => `accounts/${encodeURIComponent(id)}`;

  async function showKeys(id, answer) {
    await attempt(problem, async () => {
      const json = answer ?? (await admin('GET', `${path(id)}/keys`)).json;
      keys.hidden = false;
      fill(keys, h('h2', null, `Keys of “${id}”`), table(['Key', 'Value', ''], Object.entries(json.keys).map(([name, value]) => [names[name] ?? name, secret(value),
        button('Rotate…', () => rotate(id, name), { class: 'rotate', data: { key: name } })]), { label: `Keys of ${id}` }),
      h('p', { class: 'small dim' }, 'To change a key without a gap: give clients the secondary one, rotate the primary, give them that, rotate the secondary.'));
    });
  }

  async function rotate(id, name) {
    const yes = await confirm(`Rotate the ${names[name]} key of “${id}”?`, [h('p', null, 'What will happen: a new key takes its place, and the old one is worth nothing at once. Clients that use it are refused (401).'),
      name === 'primary' && h('p', { class: 'warn' }, 'All resource tokens of the account end as well.'),
      id === session.account && h('p', { class: 'dim' }, 'If this page is signed in with it, sign in again with the new one.')], 'Rotate it', true);
    if (!yes) return;
    await attempt(problem, async () => {
      const { json } = await admin('POST', `${path(id)}/keys/${name}/rotate`);
      notice(`The ${names[name]} key of “${id}” is another now.`);
      await showKeys(id, json);
    });
  }

  async function create() {
    const id = h('input', { type: 'text', autocomplete: 'off' });
    const made = await form('New account', [field('Name', id, 'letters, digits, - _ . and at most 63 of them')], 'Create', async () => (await admin('POST', 'accounts', { body: { id: id.value } })).json);
    if (!made) return;
    await look();
    await showKeys(made.id, made);
  }

  async function drop(one) {
    const typed = h('input', { type: 'text', autocomplete: 'off' });
    const done = await form(`Drop the account “${one.id}”`, [h('p', null, `What will happen: ${number(one.databases)} databases, ${number(one.containers)} containers and all their items are gone at once. There is no way back.`), field('Type its name to confirm', typed)], 'Drop it', async () => {
      if (typed.value !== one.id) throw new Error('That is not its name.');
      await admin('DELETE', path(one.id));
    }, true);
    if (done) await look();
  }

  async function look() {
    try {
      const { json } = await admin('GET', 'accounts?max=1000');
      fill(list, h('div', { class: 'head' }, h('h2', null, 'Accounts'), session.owner && write && h('div', { class: 'buttons' }, button('New account', create))),
        table(['Account', 'Databases', 'Containers', 'Changed', ''], json.accounts.map((one) => [h('b', null, one.id), number(one.databases), number(one.containers), moment(one.changed * 1000),
          write && h('div', { class: 'buttons' }, one.keys === 'own' && button('Keys', () => showKeys(one.id), { class: 'show-keys', data: { account: one.id } }), one.id !== 'default' && session.owner && button('Drop…', () => drop(one), { class: 'quiet' }))]), { label: 'Accounts' }),
        json.next && h('p', { class: 'dim' }, `${number(json.total)} accounts in all; the first ${number(json.accounts.length)} are shown.`));
    } catch (error) {
      fill(problem, show(error));
    }
  }
  await look();
}

