// A port for a server that has to be told one. Not one of those that the system gives out by itself, which another server of
// the same test may be given before this one asks for it; each process of the tests looks in another place.
import net from 'node:net';

const first = 11_000, span = 8_000;
let next = (process.pid * 40) % span;

export async function freePort() {
  for (;;) {
    const port = first + (next++ % span);
    const free = await new Promise((resolve) => {
      const listener = net.createServer().once('error', () => resolve(false));
      listener.listen(port, '127.0.0.1', () => listener.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
