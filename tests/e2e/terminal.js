// A program on a pseudo-terminal: what it shows, and keys for it. The terminal is made by a few
// lines of Python, since node has none; it is 100 columns wide and 20 rows high.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { binary } from './server.js';

const helper = `
import fcntl, os, pty, select, signal, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 20, 100, 0, 0))
while True:
    ready, _, _ = select.select([0, fd], [], [])
    try:
        if fd in ready:
            data = os.read(fd, 65536)
            if not data:
                break
            os.write(1, data)
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                os.kill(pid, signal.SIGKILL)
                break
            os.write(fd, data)
    except OSError:
        break
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
`;

const limitMs = 30_000;

export class Terminal {
  static start(t, args, env = {}) {
    const terminal = new Terminal();
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('ORRERY_'));
    terminal.process = spawn('python3', ['-c', helper, binary, ...args], {
      env: { ...Object.fromEntries(own), TERM: 'xterm', LC_ALL: 'C.UTF-8', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    terminal.shown = '';
    terminal.at = 0;
    terminal.process.stdout.on('data', (bytes) => (terminal.shown += bytes));
    terminal.ended = once(terminal.process, 'close').then(([code]) => code);
    t.after(() => terminal.process.kill('SIGKILL'));
    return terminal;
  }

  type(keys) {
    this.process.stdin.write(keys);
  }

  // Waits for something to be shown behind what was waited for before, and gives what lies between.
  async until(text) {
    const limit = performance.now() + limitMs;
    for (;;) {
      const found = this.shown.indexOf(text, this.at);
      if (found >= 0) {
        const between = this.shown.slice(this.at, found);
        this.at = found + text.length;
        return between;
      }
      if (performance.now() > limit || this.process.exitCode !== null)
        throw new Error(`${JSON.stringify(text)} did not come: ${JSON.stringify(this.shown.slice(this.at))}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  // Types a line and waits for what it shows up to the next prompt.
  async line(text, prompt) {
    this.type(`${text}\n`);
    await this.until(text.slice(-8));
    return this.until(prompt);
  }
}
