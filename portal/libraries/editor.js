// The editor: CodeMirror, put together for SQL, JSON and JavaScript. Bundled when the server is built; js/editor.js uses it.
import { EditorState, Compartment } from '@codemirror/state';
import { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection, placeholder } from '@codemirror/view';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, indentOnInput, foldGutter, foldKeymap, syntaxHighlighting, HighlightStyle } from '@codemirror/language';
import { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete';
import { sql, SQLDialect } from '@codemirror/lang-sql';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { javascript } from '@codemirror/lang-javascript';
import { linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { tags } from '@lezer/highlight';

// Colours are those of the page, which has them as custom properties and changes them with its theme.
const look = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--field)', height: '100%', fontSize: '13px' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--accent)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selection)' },
  '.cm-gutters': { backgroundColor: 'var(--field)', color: 'var(--dim)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-tooltip': { backgroundColor: 'var(--panel)', color: 'var(--ink)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-scroller': { overflow: 'auto' },
});
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--code-keyword)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--code-name)' },
  { tag: tags.comment, color: 'var(--dim)', fontStyle: 'italic' },
  { tag: tags.function(tags.variableName), color: 'var(--code-name)' },
]);

const cosmos = (words) => sql({
  dialect: SQLDialect.define({ keywords: words.keywords.join(' ').toLowerCase(), builtin: words.functions.join(' ').toLowerCase(), doubleQuotedStrings: true, backslashEscapes: true }),
  upperCaseKeywords: true,
});

const parse = jsonParseLinter();
const languages = {
  sql: (options) => [cosmos(options.words)],
  json: () => [json(), linter((view) => (view.state.doc.length ? parse(view) : []), { delay: 300 }), lintGutter()],
  javascript: () => [javascript()],
  text: () => [],
};

// parent is a shadow root, so that styles come as adopted sheets, which the page's Content-Security-Policy lets through.
export function create(parent, options) {
  const readOnly = new Compartment();
  const view = new EditorView({
    parent,
    root: parent,
    state: EditorState.create({
      doc: options.value ?? '',
      extensions: [
        lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
        highlightActiveLine(), highlightActiveLineGutter(), EditorView.lineWrapping,
        autocompletion(options.complete ? { override: [options.complete] } : {}),
        keymap.of([
          { key: 'Mod-Enter', run: () => { options.run?.(); return Boolean(options.run); } },
          ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap,
        ]),
        look, syntaxHighlighting(colours), languages[options.language ?? 'text'](options),
        readOnly.of([EditorState.readOnly.of(Boolean(options.readOnly))]),
        EditorView.contentAttributes.of({ 'aria-label': options.label ?? 'editor', tabindex: '0' }),
        options.hint ? placeholder(options.hint) : [],
        EditorView.updateListener.of((update) => { if (update.docChanged) options.changed?.(); }),
      ],
    }),
  });
  return {
    get value() { return view.state.doc.toString(); },
    set value(text) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }); },
    focus: () => view.focus(),
    lock: (locked) => view.dispatch({ effects: readOnly.reconfigure([EditorState.readOnly.of(locked)]) }),
    mark: (from, to) => view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true }),
    destroy: () => view.destroy(),
  };
}
