// Every block of the manual does what the page says, on a server that was started as the README has it, and does so
// a second time.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Machine, blocksOf, readPage } from './documents.js';
import { missing } from './python.js';
import { root, scratch } from './server.js';

const modules = ['azure.cosmos.aio', 'azure.cosmos', 'azure.data.tables', 'pymongo'];
const absent = Object.fromEntries(modules.map((name) => [name, missing(name)]));
const compiler = spawnSync('cc', ['--version']).status === 0;

const pages = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
const first = blocksOf(readPage('README.md')).find((block) => block.file === 'app.mjs');

function skipped(block) {
  const module = block.language === 'python' && modules.find((name) => block.text.includes(`from ${name} `));
  if (module && absent[module]) return absent[module];
  if (/^cc /m.test(block.text) && !compiler) return 'there is no cc';
  return block.notRun;
}

test('every block of the manual runs, twice', { concurrency: 2 }, async (t) => {
  const told = (name) =>
    t.test(name, async (t) => {
      const blocks = blocksOf(readPage(name));
      const machine = await Machine.make(scratch(t));
      t.after(() => machine.stop());
      if (name !== 'README.md' && blocks.some((block) => !skipped(block))) {
        // what the README leaves behind
        machine.env.PATH = `${machine.root}/build:${machine.env.PATH}`;
        await machine.serve('./run');
        await machine.run(first);
        if (blocks.some((block) => /\bshop orders\b|--container orders\b/.test(block.text))) await machine.shell('node app.mjs');
      }
      let failed = false; // what follows would fail for the same reason
      for (const time of ['first', 'second'])
        for (const block of blocks)
          await t.test(`${name}:${block.line} ${block.language}, the ${time} time`, { skip: skipped(block) }, async (t) => {
            if (failed || (time === 'second' && block.once)) return t.skip(failed ? 'a block before it failed' : block.once);
            failed = true;
            await machine.run(block);
            failed = false;
          });
    });
  await Promise.all(pages.map(told));
});

test('what is not run says why, and every block is of a kind that is known', () => {
  const guide = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md')).map((name) => `docs/guide/${name}`);
  for (const name of [...pages, ...guide])
    for (const block of blocksOf(readPage(name))) {
      const place = `${name}:${block.line}`;
      assert.notEqual(block.notRun, true, `${place}: a reason is missing`);
      assert.notEqual(block.once, true, `${place}: a reason is missing`);
      // commands of the guide are run by their scenarios (guide.test.js)
      const known = name.startsWith('docs/guide/') ? /^(sh|console)$/ : /^(sh|console|js|python|json)$/;
      assert.ok(block.notRun || block.file || block.output || known.test(block.language), `${place}: ${block.language} is neither run nor marked`);
    }
});
