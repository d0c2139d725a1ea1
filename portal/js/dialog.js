// What is said to people: notices, errors, questions.
import { $, append, button, fill, h } from './dom.js';

export function notice(text, kind = 'good') {
  const element = h('div', { class: `notice ${kind}` }, h('span', null, text), h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => element.remove() }, '×'));
  $('#notices').append(element);
  while ($('#notices').children.length > 4) $('#notices').firstChild.remove();
  setTimeout(() => element.remove(), kind === 'bad' ? 15_000 : 5000);
}

// An error as a panel. Its text comes from the server, and so from data: it is text here as well.
export function show(error, advice) {
  return h('div', { class: 'problem', role: 'alert' },
    h('strong', null, error.title ?? error.name ?? 'Error'),
    h('p', null, error.message),
    error.status === 429 && h('p', null, `Ask again in ${Math.max(1, error.retryAfterMs)} ms, give the container more RU/s, or see under Partitions which key spends them.`),
    advice && h('p', null, advice),
    error.activityId && h('p', { class: 'small dim' }, `Activity ${error.activityId}`, error.substatus ? ` · substatus ${error.substatus}` : ''));
}

// Runs f; what goes wrong is shown in place, or as a notice. Gives what f gives, or undefined.
export async function attempt(place, f) {
  try {
    if (place) fill(place);
    return await f();
  } catch (error) {
    if (error.name === 'AbortError') return undefined;
    if (place) fill(place, show(error));
    else notice(`${error.title ?? 'Error'}: ${error.message}`, 'bad');
    return undefined;
  }
}

// A dialog with buttons: [[text, value, attributes], ...]. Gives the value of the one pressed, or null.
export function ask(title, content, buttons) {
  return new Promise((resolve) => {
    const heading = h('h2', { id: 'dialog-title' }, title);
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, heading, content);
    const end = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      end(null);
    });
    append(dialog, [h('div', { class: 'buttons' },
      buttons.map(([text, value, attributes]) => button(text, async () => {
        const result = typeof value === 'function' ? await value() : value;
        if (result !== undefined) end(result);
      }, attributes)))]);
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector('input, textarea, select, button.main')?.focus();
  });
}

// A question with yes and no; what names what will happen.
export const confirm = (title, what, yes, danger = false) =>
  ask(title, h('div', null, what), [['Cancel', null], [yes, true, { class: danger ? 'danger' : 'main' }]]);

// A form in a dialog: submit() may throw, which is shown; what it gives closes the dialog.
export function form(title, content, yes, submit, danger = false) {
  const problem = h('div', { 'aria-live': 'assertive' });
  return ask(title, h('div', null, content, problem), [
    ['Cancel', null],
    [yes, async () => {
      try {
        fill(problem);
        return (await submit()) ?? true;
      } catch (error) {
        fill(problem, show(error));
        return undefined;
      }
    }, { class: danger ? 'danger' : 'main' }],
  ]);
}
