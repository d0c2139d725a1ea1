// The ledger of the Gremlin API is what the server does: every request it lists is sent, and what it refuses is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Server, root } from './server.js';
import { Wire, binaryRequest, evaluation, frame, opcodes } from './gremlin.js';

const page = readFileSync(join(root, 'docs/compatibility-gremlin.md'), 'utf8');
const section = (name) => page.split(`## ${name}\n`)[1].split('\n## ')[0];
const rows = (name) => section(name).split('\n').filter((line) => line.startsWith('| ')).slice(1)
  .map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')));

const id = '2f6f1c1e-0000-4000-8000-00000000abcd';
const bytecode = { '@type': 'g:Bytecode', '@value': { step: [['inject', 1]] } };
const examples = {
  eval: { args: { gremlin: 'g.inject(1)' } },
  bytecode: { processor: 'traversal', args: { gremlin: bytecode, aliases: { g: 'g' } } },
  authentication: { args: { sasl: 'AAAA' } },
  close: { processor: 'session', args: { session: 's' } },
};

test('requests', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  assert.equal(rows('Requests').length, 6);
  for (const [op, fate] of rows('Requests')) {
    const [{ status }] = await wire.ask({ requestId: id, op, processor: '', ...examples[op] });
    if (fate === 'refused') assert.equal(status.code, 498, op);
    else assert.notEqual(status.code, 498, op);
  }
});

test('formats', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  for (const [mimes, fate] of rows('Formats'))
    for (const mime of mimes.match(/application\/[\w.+-]+/g) ?? []) {
      if (mime.includes('graphbinary')) continue; // its requests are no JSON; drivers send them (gremlin.test.js)
      const { status } = await wire.send(frame(opcodes.binary, binaryRequest(evaluation('g.inject(1)'), mime))).answer();
      assert.equal(status.code, fate === 'refused' ? 498 : 200, mime);
    }
});

test('what is refused is refused by name', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  assert.ok(rows('Refused').length > 3);
  for (const [what, example, code] of rows('Refused')) {
    const [{ status }] = await wire.ask(evaluation(example));
    assert.equal(status.code, Number(code), `${what}: ${status.message}`);
  }
});

test('every step is known to scripts and bytecode, and refused ones are refused', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  const [offered, refused] = section('Steps').split('Refused by name:').map((text) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  assert.ok(offered.length > 100);
  for (const name of offered) {
    const gremlin = { '@type': 'g:Bytecode', '@value': { step: [['V'], [name]] } };
    const [{ status }] = await wire.ask({ requestId: id, op: 'bytecode', processor: 'traversal', args: { gremlin, aliases: { g: 'g' } } });
    assert.doesNotMatch(status.message, /Unable to find any method/, name);
  }
  for (const name of refused) {
    const gremlin = { '@type': 'g:Bytecode', '@value': { step: [['V'], [name]] } };
    const [{ status }] = await wire.ask({ requestId: id, op: 'bytecode', processor: 'traversal', args: { gremlin, aliases: { g: 'g' } } });
    assert.equal(status.code, 597, name);
    assert.match(status.message, new RegExp(name));
  }
});
