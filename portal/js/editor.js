// A text to edit: with the library where the server was built with it, else a plain field. Both are used alike:
// value, focus(), lock(bool), mark(from, to), destroy().
import { h } from './dom.js';
import { session } from './session.js';

function plain(host, options) {
  const field = h('textarea', { class: 'code', spellcheck: 'false', 'aria-label': options.label, placeholder: options.hint, onkeydown: (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) options.run?.();
  }, oninput: () => options.changed?.() });
  field.value = options.value ?? '';
  field.readOnly = Boolean(options.readOnly);
  host.append(field);
  return {
    get value() { return field.value; },
    set value(text) { field.value = text; },
    focus: () => field.focus(),
    lock: (is) => (field.readOnly = is),
    mark: (from, to) => { field.focus(); field.setSelectionRange(from, to); },
    destroy: () => field.remove(),
  };
}

// Buttons around it do something with what is in it: nothing can be clicked before it is there.
export async function editor(host, options) {
  const around = host.closest('main') ?? host;
  host.classList.add('editor');
  let made;
  if (session.about?.libraries) {
    try {
      around.inert = true;
      const { create } = await import('../libraries/editor.js');
      const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
      root.replaceChildren();
      made = create(root, options);
    } catch (error) {
      console.warn('the editor could not be loaded:', error);
    } finally {
      around.inert = false;
    }
  }
  made ??= plain(host, options);
  host.editor = made; // where tests, and people in a console, find it
  return made;
}
