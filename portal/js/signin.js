// Signing in: with a key, a resource token, or one click where everybody knows the key.
import { button, field, fill, h } from './dom.js';
import { session, signIn } from './session.js';
import { show } from './dialog.js';

export async function signInView(main, done) {
  const account = h('input', { type: 'text', value: 'default', autocomplete: 'off', spellcheck: 'false' });
  const secret = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', required: true });
  const database = h('input', { type: 'text', autocomplete: 'off' });
  const container = h('input', { type: 'text', autocomplete: 'off' });
  const scope = h('div', { class: 'row', hidden: true }, field('Database', database), field('Container', container));
  const problem = h('div', { 'aria-live': 'assertive' });
  secret.addEventListener('input', () => (scope.hidden = !/^type(=|%3[dD])resource/.test(secret.value)));

  const attempt = async (choice) => {
    fill(problem);
    try {
      await signIn(choice);
    } catch (error) {
      fill(problem, show(error, error.status === 401
        ? 'Keys are in the file keys beside the data, or shown by `orrery account keys`.' : undefined));
      return;
    }
    await done();
  };

  fill(main, h('section', { class: 'signin panel' },
    h('img', { src: 'favicon.svg', alt: '', width: 56, height: 56 }),
    h('h1', null, 'Orrery'),
    h('p', { class: 'dim' }, 'See the partitions live, explore data, choose keys.'),
    session.about?.dev && [
      button('Sign in with the development key', () => attempt({ account: 'default', secret: session.about.key }), { class: 'main wide', id: 'dev' }),
      h('p', { class: 'or' }, h('span', null, 'or')),
    ],
    h('form', { onsubmit: (event) => {
      event.preventDefault();
      return attempt({ account: account.value.trim(), secret: secret.value.trim(), database: database.value.trim(), container: container.value.trim() });
    } },
      field('Account', account),
      field('Account key or resource token', secret, 'Kept in this page’s memory only. A reload forgets it.'),
      scope,
      h('button', { type: 'submit', class: session.about?.dev ? 'wide' : 'main wide' }, 'Sign in')),
    problem,
    h('p', { class: 'dim small' }, `Version ${session.about?.version ?? '?'}`, session.about?.libraries === false && ' · built without the editor, curves and drawings')));
  (session.about?.dev ? main.querySelector('#dev') : secret).focus();
}
