// The transport of the Gremlin API: WebSocket frames as clients send them, and as attackers do.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Server, emulatorKey } from './server.js';
import { Wire, binaryRequest, closeCode, evaluation, frame, opcodes, v2, v3 } from './gremlin.js';

const dev = (t, ...args) => Server.start(t, ['--dev', ...args]);

test('a connection of HTTP becomes one of WebSocket, at any path', async (t) => {
  const server = await dev(t);
  for (const path of ['/gremlin', '/', '/x/y?z=1']) {
    const wire = await Wire.open(t, server, { path });
    assert.match(wire.head, /^HTTP\/1\.1 101 /);
    assert.match(wire.head, /\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/); // of RFC 6455, 1.3
    assert.doesNotMatch(wire.head, /Extensions/i);
  }
  const offered = await Wire.open(t, server, { headers: { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' } });
  const [{ status, result }] = await offered.ask(evaluation('g.inject(1)'));
  assert.equal(status.code, 200);
  assert.deepEqual(result.data, [1]);
});

test('what is no handshake is refused, and told why', async (t) => {
  const server = await dev(t);
  for (const [headers, head] of [
    [{ 'Sec-WebSocket-Version': '8' }, /^HTTP\/1\.1 426 [\s\S]*Sec-WebSocket-Version: 13/],
    [{ 'Sec-WebSocket-Key': 'short' }, /^HTTP\/1\.1 400 /],
    [{ Connection: 'close' }, /^HTTP\/1\.1 400 /],
    [{ Upgrade: undefined, Connection: 'keep-alive' }, /^HTTP\/1\.1 405 [\s\S]*application\/json/],
  ])
    assert.match((await Wire.open(t, server, { headers })).head, head);
});

test('text frames and binary ones, in pieces and with pings between them', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  const [text] = await wire.ask(evaluation('g.inject(1, 2)'));
  assert.deepEqual([text.opcode, text.status.code, text.result.data], [opcodes.text, 200, [1, 2]]);
  wire.send(frame(opcodes.binary, binaryRequest(evaluation('g.inject(3)'))));
  const answer = await wire.answer();
  assert.deepEqual([answer.opcode, answer.result.data], [opcodes.binary, [3]]);
  const bytes = binaryRequest(evaluation("g.inject('" + 'x'.repeat(5000) + "')"));
  wire.send(frame(opcodes.binary, bytes.subarray(0, 10), { fin: false }), frame(opcodes.ping, 'between'));
  for (let at = 10; at < bytes.length; at += 700) wire.send(frame(opcodes.more, bytes.subarray(at, at + 700), { fin: at + 700 >= bytes.length }));
  const pong = await wire.next();
  assert.deepEqual([pong.opcode, pong.payload.toString()], [opcodes.pong, 'between']);
  assert.equal((await wire.answer()).result.data[0].length, 5000);
});

test('a byte at a time is as good', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  wire.socket.setNoDelay(true);
  for (const byte of frame(opcodes.text, JSON.stringify(evaluation('g.inject(7)')))) wire.send(Buffer.from([byte]));
  assert.deepEqual((await wire.answer()).result.data, [7]);
});

test('pings are answered while requests run', async (t) => {
  const server = await dev(t, '--set', 'gremlin.loops_max=1000000000');
  const wire = await Wire.open(t, server);
  wire.text(evaluation('g.inject(0).repeat(identity()).until(constant(1).is(2))', { evaluationTimeout: 600000 }));
  wire.send(frame(opcodes.ping, 'there?'));
  const pong = await wire.next();
  assert.deepEqual([pong.opcode, pong.payload.toString()], [opcodes.pong, 'there?']);
  wire.text(evaluation('g.inject(5)'));
  assert.deepEqual((await wire.answer()).result.data, [5], 'nor does it hold up other requests');
  wire.socket.destroy(); // and its work goes with the client
  const other = await Wire.open(t, server);
  await server.until(async () => Number(/^orrery_workers_running (\d+)$/m.exec(await (await server.get('/metrics')).text())[1]) <= 1);
  assert.deepEqual((await other.ask(evaluation('g.inject(6)')))[0].result.data, [6]);
});

test('a message over the limit closes the connection with 1009, whole or in pieces', async (t) => {
  const server = await dev(t, '--set', 'gremlin.message_bytes_max=100000');
  const long = 'x'.repeat(100001);
  const whole = await Wire.open(t, server);
  assert.equal(closeCode(await whole.send(frame(opcodes.text, long)).next()), 1009);
  await whole.closed;
  const pieces = await Wire.open(t, server);
  pieces.send(frame(opcodes.text, long.slice(0, 60000), { fin: false }), frame(opcodes.more, long.slice(0, 60000)));
  assert.equal(closeCode(await pieces.next()), 1009);
  await pieces.closed;
});

test('a broken protocol closes the connection', async (t) => {
  const server = await dev(t);
  for (const [bytes, code] of [
    [frame(opcodes.text, '{}', { masked: false }), 1002],
    [frame(opcodes.more, '{}'), 1002],
    [frame(3, 'what?'), 1002],
    [frame(opcodes.text, Buffer.from([0xff, 0xfe])), 1007],
    [Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002], // a compressed frame nobody agreed on
  ]) {
    const wire = await Wire.open(t, server);
    const found = await wire.send(bytes).next();
    if (found) assert.equal(closeCode(found), code);
    await wire.closed;
  }
});

test('a close is echoed', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  await wire.ask(evaluation('g.inject(1)'));
  wire.send(frame(opcodes.close, Buffer.from([0x03, 0xe8])));
  assert.equal(closeCode(await wire.next()), 1000);
  wire.socket.end();
  await wire.closed;
});

test('messages that cannot be read are told by 498, and the id of the request is found where it can be', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  wire.send(frame(opcodes.text, 'no json'));
  assert.deepEqual((({ requestId, status }) => [requestId, status.code])(await wire.answer()), [null, 498]);
  wire.send(frame(opcodes.binary, Buffer.from([])));
  assert.equal((await wire.answer()).status.code, 498);
  wire.send(frame(opcodes.binary, Buffer.from([200, 65, 66])));
  assert.equal((await wire.answer()).status.code, 498);
  const id = '2f6f1c1e-0000-4000-8000-00000000abcd';
  const [unknown] = await wire.ask({ requestId: id, op: 'fly', processor: '', args: {} });
  assert.deepEqual([unknown.requestId, unknown.status.code], [id, 498]);
  const [gryo] = [wire.send(frame(opcodes.binary, binaryRequest(evaluation('1'), 'application/vnd.gremlin-v3.0+gryo'))) && await wire.answer()];
  assert.equal(gryo.status.code, 498);
  assert.match(gryo.status.message, /gryo/);
});

test('arguments that are missing or contradict one another are told by 499', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  for (const [request, message] of [
    [{ op: 'eval', args: {} }, /requires a \[gremlin\] argument/],
    [{ op: 'eval', args: { gremlin: 5 } }, /must be a string/],
    [{ op: 'eval', args: { gremlin: 'g.V()', bindings: [] } }, /\[bindings\] must be a map/],
    [{ op: 'eval', args: { gremlin: 'g.V()', aliases: { g: 'nothing' } } }, /could not alias \[g\] to \[nothing\]/],
    [{ op: 'eval', args: { gremlin: 'g.V()', batchSize: 0 } }, /batchSize/],
    [{ op: 'eval', args: { gremlin: 'g.V()', evaluationTimeout: 'soon' } }, /evaluationTimeout/],
    [{ op: 'eval', args: { gremlin: 'g.V()', language: 'sql' } }, /language "sql"/],
    [{ op: 'eval', args: { gremlin: 'g.V()', materializeProperties: 'some' } }, /materializeProperties/],
    [{ op: 'eval', processor: 'session', args: { gremlin: 'g.V()' } }, /\[session\]/],
    [{ op: 'bytecode', processor: 'traversal', args: { gremlin: 'g.V()', aliases: { g: 'g' } } }, /must be bytecode/],
    [{ op: 'bytecode', processor: 'traversal', args: { gremlin: { '@type': 'g:Bytecode', '@value': { step: [['V']] } } } }, /\[aliases\]/],
  ]) {
    const [{ status }] = await wire.ask({ requestId: '2f6f1c1e-0000-4000-8000-00000000abcd', processor: '', ...request });
    assert.equal(status.code, 499, JSON.stringify(request));
    assert.match(status.message, message);
  }
});

test('every frame has the status attributes of the service', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  await wire.ask(evaluation("g.addV('a')"));
  const answers = await wire.ask(evaluation('g.V().union(identity(), identity(), identity())', { batchSize: 1 }));
  assert.deepEqual(answers.map(({ status }) => status.code), [206, 206, 200]);
  let total = 0;
  for (const { status: { attributes } } of answers) {
    assert.equal(attributes['x-ms-status-code'], 200);
    assert.match(attributes['x-ms-activity-id'], /^[0-9a-f-]{36}$/);
    total += attributes['x-ms-request-charge'];
    assert.ok(Math.abs(attributes['x-ms-total-request-charge'] - total) < 1e-6);
    assert.ok(attributes['x-ms-total-server-time-ms'] >= attributes['x-ms-server-time-ms']);
  }
  assert.ok(total > 0);
  const [none] = await wire.ask(evaluation("g.V('nobody')"));
  assert.deepEqual([none.status.code, none.result.data], [204, null]);
});

test('pages of other origins, and hosts that somebody else can lead here, are refused', async (t) => {
  const server = await dev(t, '--set', 'gremlin.origins=https://console.example');
  for (const [headers, status] of [
    [{ Origin: 'https://evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ Host: 'evil.example' }, 421],
    [{ Host: `evil.example:${server.gremlinPort}`, Origin: `http://evil.example:${server.gremlinPort}` }, 421],
    [{ Origin: 'https://console.example' }, 101],
    [{ Origin: `http://127.0.0.1:${server.gremlinPort}` }, 101],
    [{}, 101],
  ])
    assert.match((await Wire.open(t, server, { headers })).head, new RegExp(`^HTTP/1\\.1 ${status} `), JSON.stringify(headers));
  const post = (headers) => fetch(`http://127.0.0.1:${server.gremlinPort}/`, { method: 'POST', headers, body: '{"gremlin":"g.inject(1)"}' });
  assert.equal((await post({ origin: 'https://evil.example', 'content-type': 'text/plain' })).status, 403);
  assert.equal((await post({ origin: 'https://console.example' })).status, 200);
  assert.equal((await post({})).status, 200);
});

test('scripts by POST', async (t) => {
  const server = await dev(t);
  const post = async (body, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${server.gremlinPort}/gremlin`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, type: answer.headers.get('content-type'), json: await answer.json() };
  };
  const counted = await post({ gremlin: 'g.inject(x, y)', bindings: { x: 1, y: 'two' }, language: 'gremlin-groovy', aliases: { g: 'g' } });
  assert.equal(counted.status, 200);
  assert.match(counted.json.requestId, /^[0-9a-f-]{36}$/);
  assert.equal(counted.json.status.code, 200);
  assert.deepEqual(counted.json.result.data, [1, 'two']);
  const typed = await post({ gremlin: 'g.inject(1)' }, { accept: v3 });
  assert.deepEqual(typed.json.result.data, { '@type': 'g:List', '@value': [{ '@type': 'g:Int32', '@value': 1 }] });
  assert.equal((await post({})).status, 400);
  const wrong = await post({ gremlin: 'g.fly()' });
  assert.equal(wrong.status, 400);
  assert.match(wrong.json.message, /fly/);
  const basic = (user, key) => ({ authorization: `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}` });
  assert.equal((await post({ gremlin: 'g.V()' }, basic('/dbs/a/colls/b', 'wrong'))).status, 401);
  const missing = await post({ gremlin: 'g.V()' }, basic('/dbs/a/colls/b', emulatorKey));
  assert.equal(missing.status, 404);
  assert.match(missing.json.message, /Owner resource does not exist/);
  const got = await fetch(`http://127.0.0.1:${server.gremlinPort}/?gremlin=g.V()`);
  assert.equal(got.status, 405);
  assert.match((await got.json()).message, /WebSocket/);
});

test('a client that does not read stops its own requests, and nobody else\'s', async (t) => {
  const server = await dev(t, '--set', 'net.output_bytes_high=65536', '--set', 'account.memory_bytes_max=64M');
  const wire = await Wire.open(t, server);
  wire.socket.pause();
  const big = `g.inject('${'x'.repeat(1000)}').repeat(union(identity(), identity())).times(16)`;
  for (let i = 0; i < 4; i++) wire.text(evaluation(big));
  const other = await Wire.open(t, server);
  for (let i = 0; i < 20; i++) assert.deepEqual((await other.ask(evaluation(`g.inject(${i})`)))[0].result.data, [i]);
  wire.socket.resume();
  const counts = new Map();
  for (let open = 4; open > 0; ) {
    const { requestId, status, result } = await wire.answer();
    assert.ok(status.code === 206 || status.code === 200, status.message);
    counts.set(requestId, (counts.get(requestId) ?? 0) + result.data.length);
    if (status.code === 200) open--;
  }
  assert.deepEqual([...counts.values()], [65536, 65536, 65536, 65536]);
});

test('metrics and the drain', async (t) => {
  const server = await dev(t);
  const wire = await Wire.open(t, server);
  await wire.ask(evaluation('g.inject(1)'));
  await wire.ask(evaluation('g.fly()'));
  const text = await (await server.get('/metrics')).text();
  assert.match(text, /^orrery_gremlin_requests_total\{kind="script"\} 2$/m);
  assert.match(text, /^orrery_gremlin_requests_failed_total 1$/m);
  assert.match(text, /^orrery_gremlin_websockets 1$/m);
  server.process.kill('SIGTERM');
  assert.equal(closeCode(await wire.next()), 1001);
  assert.equal((await server.ended).code, 0);
});

// A driver that cannot answer leaves its connection open, as gremlin_python does.
test('who was asked who it is and does not say is let go when nothing else is under way', async (t) => {
  const server = await Server.start(t, ['--set', 'gremlin.idle_ms_max=1s']);
  const left = await Wire.open(t, server, { path: '/' });
  left.text(evaluation('g.V()'));
  assert.equal((await left.answer()).status.code, 407);
  assert.equal(closeCode(await left.next()), 1001, 'nothing was asked for a long time');
  const stopped = await Server.start(t);
  const wire = await Wire.open(t, stopped, { path: '/' });
  wire.text(evaluation('g.V()'));
  assert.equal((await wire.answer()).status.code, 407);
  stopped.process.kill('SIGTERM');
  assert.equal(closeCode(await wire.next()), 1001);
  assert.equal((await stopped.ended).code, 0, 'it does not wait for it');
});
