// The frame around every view: who is signed in, sections, the list of containers, and which view the address names.
import { $, button, fill, h } from './dom.js';
import { about, onLost, ping, session, signOut } from './session.js';
import { address, go, place } from './route.js';
import { side } from './side.js';
import { show as showError, notice } from './dialog.js';

const views = {
  home: () => import('./home.js'),
  data: () => import('./data.js'),
  partitions: () => import('./partitions.js'),
  keys: () => import('./keys.js'),
  operations: () => import('./operations.js'),
};

const sections = [['data', 'Data'], ['partitions', 'Partitions'], ['keys', 'Keys'], ['operations', 'Operations']];

// --- Light and dark: as the system has it, unless chosen; a choice holds until the page is left. -----------------------

function themeButton() {
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const element = h('button', { type: 'button', class: 'quiet', 'aria-label': 'Light or dark', title: 'Light or dark', onclick: () => {
    document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
    window.dispatchEvent(new Event('themechange'));
  } }, '◐');
  return element;
}

// --- What is shown -----------------------------------------------------------------------------------------------------

let leave = null; // ends what the view before does in the background
let shown = 0;

async function render() {
  const turn = ++shown;
  const main = $('#main');
  leave?.();
  leave = null;
  bar();
  if (!session.signedIn) {
    $('#side').hidden = true;
    const { signInView } = await import('./signin.js');
    if (turn === shown) await signInView(main, signedIn);
    return;
  }
  const where = place();
  side(where);
  $('#side').classList.remove('open');
  try {
    const module = await (views[where.section] ?? views.home)();
    if (turn !== shown) return;
    fill(main);
    const end = await module.view(main, where);
    if (turn === shown) leave = end ?? null;
    else end?.();
  } catch (error) {
    if (turn === shown) fill(main, showError(error));
  }
  document.title = [where.container ?? where.tab, 'Orrery'].filter(Boolean).join(' · ');
}

function bar() {
  const where = place();
  fill($('#sections'), session.signedIn && sections.filter(([id]) => !session.token || id === 'data').map(([id, text]) => h('a', {
    href: id === 'operations' ? '#/operations' : address(id, where.database, where.container),
    'aria-current': where.section === id || (id === 'data' && where.section === 'home') ? 'page' : undefined,
  }, text)));
  $('#menu').hidden = !session.signedIn;
  fill($('#who'),
    session.signedIn && h('span', { class: 'account', title: 'account' }, session.account, session.readOnly && h('span', { class: 'badge' }, 'read-only'), session.token && h('span', { class: 'badge' }, 'token')),
    themeButton(),
    session.signedIn && button('Sign out', () => {
      signOut();
      location.hash = '#/';
      render();
    }, { class: 'quiet' }));
}

async function signedIn() {
  if (session.scope) go('data', session.scope.database, session.scope.container);
  await render();
  notice(`Signed in to the account “${session.account}”${session.readOnly ? ', for reading only' : ''}.`);
}

// --- Start ---------------------------------------------------------------------------------------------------------------

let asking = null;
onLost((is) => {
  const banner = $('#lost');
  banner.hidden = !is;
  fill(banner, is && 'The server does not answer. Nothing that is shown is up to date. It is asked again every two seconds…');
  clearInterval(asking);
  if (is) asking = setInterval(ping, 2000);
  else if (session.signedIn) {
    notice('The server answers again.');
    render();
  }
});

window.addEventListener('hashchange', () => {
  for (const dialog of document.querySelectorAll('dialog')) dialog.dispatchEvent(new Event('cancel', { cancelable: true })); // of the view that is left
  render();
});
$('#menu').addEventListener('click', () => {
  const open = $('#side').classList.toggle('open');
  $('#menu').setAttribute('aria-expanded', open);
});

about().catch((error) => fill($('#main'), showError(error))).then(render);
