// The blocks of a page of the manual, and a machine in small to run them on.
//
// A block is fenced, with its language, or indented by four blanks, which means sh. A comment before it, which no
// reader sees, says what is special about it:
//
//   <!-- not run: REASON -->   it cannot be run here
//   <!-- once: REASON -->      it cannot be run a second time
//   <!-- file: NAME -->        it is saved under that name, as the text around it says
//   <!-- output -->            what the block before it prints
//
// sh is run by a shell in the root of the project, one block after the other with the same environment; a command
// behind `$ ` is followed by lines that must be in its output, `...` standing for anything. js and python are whole
// programs, or go on where the last block of that language ended. json must be JSON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync, chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from './port.js';
import { python } from './python.js';
import { binary, environment, root, sanitized } from './server.js';

// --- Pages -----------------------------------------------------------------------------------

const marker = /^<!-- (not run|once|file|output)(?:: (.+?))? -->$/;

function language(info, lines) {
  if (lines.some((line) => line.startsWith('$ '))) return 'console';
  return info || 'sh';
}

// [{ line, language, text, notRun, once, file, output }]
export function blocksOf(markdown) {
  const lines = markdown.split('\n');
  const blocks = [];
  let marks = {};
  for (let at = 0; at < lines.length; ) {
    const fence = /^(```+|~~~+)\s*(\w*)/.exec(lines[at]);
    const mark = marker.exec(lines[at]);
    const begin = at;
    if (mark) {
      marks[mark[1] === 'not run' ? 'notRun' : mark[1]] = mark[2] ?? true;
      at++;
    } else if (fence) {
      for (at++; at < lines.length && !lines[at].startsWith(fence[1]); at++);
      const body = lines.slice(begin + 1, at++);
      blocks.push({ line: begin + 1, language: language(fence[2], body), text: `${body.join('\n')}\n`, ...marks });
      marks = {};
    } else if (/^ {4}\S/.test(lines[at]) && (begin === 0 || lines[begin - 1].trim() === '' || marker.test(lines[begin - 1]))) {
      for (at++; at < lines.length && (/^ {4}/.test(lines[at]) || lines[at].trim() === ''); at++);
      const body = lines.slice(begin, at).map((line) => line.slice(4));
      while (body.at(-1) === '') body.pop();
      blocks.push({ line: begin + 1, language: language('', body), text: `${body.join('\n')}\n`, ...marks });
      marks = {};
    } else {
      if (lines[at].trim() !== '') marks = {};
      at++;
    }
  }
  return blocks;
}

// --- A machine -------------------------------------------------------------------------------

// What a shell line starts and leaves running.
const serves = /^(?:\.\/run|orrery serve)\b/;

const limitMs = 300_000; // a block that hangs fails by name instead of hanging the run

export class Machine {
  // A copy of the project as far as the manual needs it, in an empty directory: what is built is the server under
  // test, and nothing is installed or built.
  static async make(directory) {
    const machine = new Machine();
    machine.root = directory;
    machine.programs = { js: '', python: '' };
    machine.ports = {};
    for (const port of [8081, 10002, 27017, 10255, 8182]) machine.ports[port] = await freePort();
    for (const name of ['run', 'docs', 'include', 'meson.build', 'meson_options.txt']) cpSync(join(root, name), join(directory, name), { recursive: true });
    mkdirSync(join(directory, 'scripts'));
    for (const name of ['setup', 'build']) {
      writeFileSync(join(directory, 'scripts', name), '#!/bin/sh\n');
      chmodSync(join(directory, 'scripts', name), 0o755);
    }
    for (const name of ['replicated', 'cluster']) cpSync(join(root, 'scripts', name), join(directory, 'scripts', name));
    symlinkSync(dirname(binary), join(directory, 'build'));
    symlinkSync(join(root, 'tests/e2e/node_modules'), join(directory, 'node_modules'));
    for (const name of ['home', 'state']) mkdirSync(join(directory, name));
    machine.env = environment({
      HOME: join(directory, 'home'), XDG_STATE_HOME: join(directory, 'state'), NODE_NO_WARNINGS: '1',
    });
    if (sanitized) machine.compileSanitized();
    return machine;
  }

  // A program links the library of a build with sanitizers only with the compiler and the runtimes of that build.
  compileSanitized() {
    const folder = join(this.root, 'home', 'bin');
    mkdirSync(folder);
    writeFileSync(join(folder, 'cc'), '#!/bin/sh\nexec clang -fsanitize=address,undefined "$@"\n');
    chmodSync(join(folder, 'cc'), 0o755);
    this.env.PATH = `${folder}:${this.env.PATH}`;
  }

  // The documented ports may be taken on this machine: others stand for them, on loopback.
  here(text) {
    text = text.replaceAll('0.0.0.0', '127.0.0.1');
    return Object.entries(this.ports).reduce((whole, [port, ours]) => whole.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), ours), text);
  }

  async spawned(command, args) {
    const child = spawn(command, args, { cwd: this.root, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    child.stdout.on('data', (bytes) => (out += bytes));
    child.stderr.on('data', (bytes) => (out += bytes));
    const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
    const [code] = await once(child, 'close');
    clearTimeout(limit);
    if (code !== 0) throw new Error(`it ended with ${code}:\n${out}`);
    return out;
  }

  async shell(text) {
    const env = join(this.root, 'home', '.environment');
    writeFileSync(join(this.root, 'home', '.block'), `${text}\nexport -p > '${env}'\n`);
    const script = `[ ! -e '${env}' ] || . '${env}'\nset -eu -o pipefail\n. '${join(this.root, 'home', '.block')}'`;
    return this.spawned('bash', ['-c', script]);
  }

  // Starts a server in place of the one that runs.
  async serve(line) {
    await this.stop();
    const fronts = { '--rest': 8081, '--table': 10002, '--mongo': 27017, '--mongo-replica-set': 10255,
      '--gremlin': 8182 };
    const listen = Object.entries(fronts).filter(([option]) => !new RegExp(`${option}\\s`).test(line))
      .map(([option, port]) => ` ${option} 127.0.0.1:${this.ports[port]}`).join('');
    const env = join(this.root, 'home', '.environment');
    const script = `[ ! -e '${env}' ] || . '${env}'\nexec ${line}${listen}`;
    const child = spawn('bash', ['-c', script], { cwd: this.root, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    child.stdout.on('data', (bytes) => (out += bytes));
    child.stderr.on('data', (bytes) => (err += bytes));
    this.server = { child, ended: once(child, 'close') };
    for (const begun = performance.now(); !out.includes('Stop it with'); ) {
      if (child.exitCode !== null || performance.now() - begun > limitMs) throw new Error(`the server did not start: ${out}${err}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return out;
  }

  async stop() {
    if (!this.server) return;
    this.server.child.kill('SIGTERM');
    const limit = setTimeout(() => this.server.child.kill('SIGKILL'), limitMs / 2);
    await this.server.ended;
    clearTimeout(limit);
    this.server = undefined;
  }

  async commands(text) {
    const plain = text.replace(/ +#.*$/, '').trim();
    return serves.test(plain) ? this.serve(plain) : this.shell(text);
  }

  async console(text) {
    let out = '';
    for (const part of text.split(/^\$ /m).slice(1)) {
      const [command, ...expected] = part.split('\n');
      const said = await this.commands(command);
      prints(said, expected.join('\n'));
      out += said;
    }
    return out;
  }

  async program(kind, command, ending, text) {
    const whole = kind === 'js' ? /^import /m.test(text) : /^(?:import|from) /m.test(text);
    this.programs[kind] = (whole ? '' : this.programs[kind]) + text;
    const name = join(this.root, `block.${ending}`);
    writeFileSync(name, this.programs[kind]);
    return this.spawned(command, [name]);
  }

  // Runs a block, and gives what it printed.
  async run(block) {
    const text = this.here(block.text);
    if (block.file) {
      writeFileSync(join(this.root, block.file), text);
      if (this.programs[block.language] !== undefined) this.programs[block.language] = text;
      return '';
    }
    if (block.output) {
      prints(this.printed, text);
      return this.printed;
    }
    const kinds = {
      sh: () => this.commands(text),
      console: () => this.console(text),
      js: () => this.program('js', process.execPath, 'mjs', text),
      python: () => this.program('python', python, 'py', text),
      json: () => JSON.stringify(JSON.parse(text)),
    };
    if (!kinds[block.language]) throw new Error(`nobody knows how to run ${block.language}: say why it is not run`);
    this.printed = await kinds[block.language]();
    return this.printed;
  }
}

// Every expected line is in what was printed, in that order; blanks do not count, and `...` is anything.
function prints(printed, expected) {
  const flat = (line) => line.trim().split(/\s+/).join(' ');
  const lines = printed.split('\n').map(flat);
  let at = 0;
  for (const wanted of expected.split('\n').map(flat).filter((line) => line && line !== '...')) {
    const pattern = new RegExp(`^${wanted.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
    while (at < lines.length && !pattern.test(lines[at])) at++;
    if (at++ === lines.length) throw new Error(`"${wanted}" is not in what it printed:\n${printed}`);
  }
}

export function readPage(name) {
  return readFileSync(join(root, name), 'utf8');
}
