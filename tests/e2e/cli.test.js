// The command line itself, and the pages of the manual made from it.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { orrery, root } from './server.js';

test('help texts go to standard output with exit code 0', async () => {
  for (const args of [[], ['help'], ['--help'], ['-h'], ['serve', '--help'], ['serve', '-h'], ['version', '--help'],
    ['certificate', '--help'], ['help', '--help'], ['help', 'certificate'], ['help', 'serve'], ['help', 'version'],
    ['help', 'settings'], ['help', 'errors'], ['help', 'api']]) {
    const result = await orrery(args);
    assert.equal(result.code, 0, args.join(' '));
    assert.ok(result.out.length > 50, args.join(' '));
    assert.equal(result.err, '');
  }
});

test('the help of serve lists every option and every setting', async () => {
  const { out } = await orrery(['serve', '--help']);
  for (const word of ['--node', '--rest', '--mongo', '--table', '--gremlin', '--dev', '--no-dev', '--config',
    '--set', 'log.level', 'net.connections_max', 'engine.cache_bytes', 'tls.certificate'])
    assert.ok(out.includes(word), word);
  assert.match(out, /--table ADDR:PORT +where the Table front listens/);
});

test('version says the same in both spellings', async () => {
  const { out } = await orrery(['version']);
  assert.match(out, /^orrery \d+\.\d+\.\d+\n$/);
  assert.equal((await orrery(['--version'])).out, out);
  assert.equal(`orrery ${JSON.parse((await orrery(['version', '--format', 'json'])).out).version}\n`, out);
});

test('wrong usage exits with 2 and a hint', async () => {
  for (const [args, message] of [
    [['help', 'nothing'], /no help on "nothing"/],
    [['help', 'serve', 'version'], /one topic/],
    [['help', 'serve', '--markdown'], /--markdown is for/],
    [['version', 'extra'], /takes no arguments/],
    [['serve', 'extra'], /takes options only, not "extra"/],
    [['serve', '--set'], /option "--set" needs a value/],
    [['serve', '--set', 'x'], /--set takes name=value/],
    [['serve', '--node', 'x'], /--node takes NAME=URL/],
    [['serve', '-x'], /no option "-x"/],
    [['serve', '--config', '/nowhere.conf'], /nowhere\.conf": No such file/],
    [['certificate'], /takes export or show/],
    [['certificate', 'burn'], /takes export or show, not "burn"/],
    [['certificate', 'show', 'export'], /one word too many/],
    [['frobnicate'], /`orrery help` lists them/],
  ]) {
    const result = await orrery(args);
    assert.equal(result.code, 2, args.join(' '));
    assert.match(result.err, message);
    assert.equal(result.out, '');
  }
});

test('words that a command cannot use are named before a server is asked', async () => {
  for (const [args, message] of [
    [['throughput', 'bucket', 'a', 'b', '6', '10'], /"6" is not a whole number up to 5/],
    [['throughput', 'bucket', 'a', 'b', '2', '101'], /"101" is not a whole number up to 100/],
    [['throughput', 'reserve', 'a', 'b', 'k', '1.5'], /"1.5" is not a whole number/],
    [['directory', 'set', 'a', 'b', 'k', '1', 'l'], /a key has no shard behind it/],
    [['directory', 'set', 'a', 'b', 'k', 'x'], /"x" is not the number of a shard/],
  ]) {
    const { code, out, err } = await orrery([...args, '--endpoint', 'http://127.0.0.1:1', '--dev']);
    assert.equal(code, 2, args.join(' '));
    assert.match(err, new RegExp(`^orrery: ${message.source}.*\n$`));
    assert.equal(out, '');
  }
  const missing = await orrery(['key', 'explain', '--definition', '/nowhere.json', '@/nowhere.json']);
  assert.notEqual(missing.code, 0);
  assert.equal(missing.signal, null);
});

for (const [topic, page] of [['settings', 'settings'], ['errors', 'errors'], ['api', 'compatibility'], ['tables', 'compatibility-tables']])
  test(`docs/${page}.md says what the program says (else: make docs)`, async () => {
    const { out } = await orrery(['help', topic, '--markdown']);
    assert.equal(readFileSync(join(root, 'docs', `${page}.md`), 'utf8'), out);
  });
