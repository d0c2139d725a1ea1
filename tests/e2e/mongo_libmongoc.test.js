// A program in C with libmongoc, tests/client/mongoc_life.c, as TAP within TAP.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { binary, Server } from './server.js';

const program = join(dirname(binary), 'tests/client/mongoc_life');

test('a program in C lives on libmongoc', { skip: existsSync(program) ? false : 'libmongoc is not installed' }, async (t) => {
  const server = await Server.start(t, ['--dev']);
  const { stdout } = await promisify(execFile)(program, [server.mongo], { timeout: 60_000 }).catch((error) => error);
  for (const [, no, what, why] of stdout.matchAll(/^(not )?ok \d+ - (.*)\n(#.*)?/gm)) await t.test(what, () => assert.equal(no, undefined, why));
  assert.match(stdout, /^1\.\.\d+$/m);
});
