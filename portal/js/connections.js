// Who is connected, by front.
import { fill, h, table } from './dom.js';
import { admin } from './session.js';
import { attempt } from './dialog.js';
import { repeat } from './live.js';
import { bytes, number } from './format.js';

export async function view(main) {
  const problem = h('div');
  const place = h('section', { class: 'panel' });
  fill(main, problem, place);
  return repeat(() => attempt(problem, async () => {
    const { json } = await admin('GET', 'connections');
    fill(place, h('h2', null, 'Connections'), table(['Front', 'Listens at', 'Open', 'Since the start', 'Refused', 'TLS handshakes', 'TLS failures', 'In', 'Out'],
      json.fronts.map((one) => [one.front, h('code', null, one.address), number(one.open), number(one.accepted), number(one.refused), number(one.tlsHandshakes), number(one.tlsFailures), bytes(one.bytesIn), bytes(one.bytesOut)]), { label: 'Connections' }));
  }), 2000);
}
