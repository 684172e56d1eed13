import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveHttp } from '../../../../control/http/server.ts'
import { type Clock, systemClock } from '../../../../core/runtime/clock.ts'
import { type ControlPlane, controlPlane } from '../../../support/control-plane.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

// Sockets that no time limit of HTTP applies to: those of upgrades, and those whose last answer was sent.

/** A client that never closes its side. */
async function halfOpen(t: Test, w: ControlPlane, bytes: string): Promise<{ socket: Socket; answer: string }> {
  const { hostname, port } = new URL(w.base_url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  let answer = ''
  socket.on('data', chunk => {
    answer += chunk
  })
  socket.write(bytes)
  await once(socket, 'end')
  return { socket, answer }
}

const upgrade = (target: string): string =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

/** Makes short the grace period of a socket whose last answer was sent. */
const hasty: Clock = { ...systemClock, after: (ms, run) => systemClock.after(Math.min(ms, 50), run) }

/** The sockets of this process that are open: those of the clients and those of the server. */
const openSockets = (): number => process.getActiveResourcesInfo().filter(kind => kind === 'TCPSocketWrap').length

t.test('an upgrade to what is no URL gets a 404, and throws nothing that the process does not expect', async t => {
  const w = await controlPlane(t)
  for (const target of [
    '//',
    '///',
    '//a:b',
    '//[/v1/events',
    'http://',
    'ws://x:99999/v1/events',
    '/v1/nothing',
    '*',
  ]) {
    const { socket, answer } = await halfOpen(t, w, upgrade(target))
    t.match(answer, /^HTTP\/1\.1 404 /, target)
    t.match(answer, /application\/problem\+json/, target)
    socket.destroy()
  }
})

t.test('a client may reset its connection after the upgrade: nothing throws', async t => {
  const w = await controlPlane(t)
  const { hostname, port } = new URL(w.base_url)
  for (const target of ['//', '/v1/nothing', '/v1/events', '/v1/listeners/lsn_00000000-0000-0000-0000-000000000000']) {
    const before = openSockets()
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(upgrade(target), () => socket.resetAndDestroy())
    await until('both ends are gone', () => openSockets() <= before)
  }
  t.equal((await w.ask('GET', '/v1/projects')).status, 200)
})

t.test('a client that was refused and never closes its side is cut', async t => {
  const w = await controlPlane(t, { clock: hasty, patience: { headers_ms: 500, request_ms: 500, look_ms: 20 } })
  const refused = {
    'an upgrade': upgrade('/v1/nothing'),
    'an upgrade without a credential, with bytes after it': `${upgrade('/v1/events')}more`,
    'not a request': 'SIP/2.0 200 OK\r\n\r\n',
    'headers that end too late': 'GET /v1/projects HTTP/1.1\r\nHost: x\r\nX-Slow:',
    'an answer that is the last': 'GET /v1/projects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  }
  for (const [what, bytes] of Object.entries(refused)) {
    const before = openSockets()
    const { socket, answer } = await halfOpen(t, w, bytes)
    t.match(answer, /^HTTP\/1\.1 4/, what)
    await until(`the server has no socket for it: ${what}`, () => openSockets() <= before + 1)
    socket.destroy()
    await until('the client has none either', () => openSockets() <= before)
  }
})

t.test('one source has only its share of the sockets, and a trusted proxy has those of its clients', async t => {
  const w = await controlPlane(t)
  const serve = (trusted_proxies: readonly string[]) =>
    serveHttp(
      { pages: { '/who': ctx => ctx.redirect('/') }, below: {} },
      { ...w, settings: { ...w.settings, trusted_proxies } },
      {
        host: '127.0.0.1',
        port: 0,
        sockets_of_source: 3,
      },
    )
  const [strict, proxied] = [await serve([]), await serve(['loopback'])]
  t.teardown(() => Promise.all([strict.close(), proxied.close()]))
  /** Resolves with the socket when it is served; with null when it is closed instead. */
  const open = (port: number, localAddress: string) =>
    new Promise<Socket | null>(resolve => {
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      t.teardown(() => socket.destroy())
      socket.on('error', () => undefined)
      socket.once('data', () => resolve(socket))
      socket.once('close', () => resolve(null))
      socket.write('GET /who HTTP/1.1\r\nHost: x\r\n\r\n')
    })
  const first = await open(strict.port, '127.0.0.1')
  for (const _ of [2, 3]) t.ok(await open(strict.port, '127.0.0.1'))
  t.equal(await open(strict.port, '127.0.0.1'), null, 'the fourth is closed')
  t.ok(await open(strict.port, '127.0.0.2'), 'another source is served')
  first?.destroy()
  await until('its place is free', async () => (await open(strict.port, '127.0.0.1')) !== null)
  for (const _ of [1, 2, 3, 4]) t.ok(await open(proxied.port, '127.0.0.1'))
})
