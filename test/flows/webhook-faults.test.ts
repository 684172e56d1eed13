import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tone, wavBytes } from '../support/audio.ts'
import t, { type Test } from '../support/harness/index.ts'
import { UNHEARD_PORT } from '../support/ports.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { voiceTown } from '../support/voice-town.ts'
import { until } from '../support/wait.ts'

// Faults of a customer's web server during live calls. Each fault has its number on the call, the caller gets the
// documented outcome, and nothing hangs.

t.test('misbehaving web servers', async t => {
  const town = await voiceTown(t, { world: () => sharedWorld(t), addresses: ['127.0.0.71', '127.0.0.72'] })
  const { w, pages, web, told, all, callIn, callOut } = town
  const url = web.url
  const bad = await badServer(t)
  const raw = await rawServer(t)
  const tls = await tlsServer(t)
  pages['/900.wav'] = { type: 'audio/wav', body: wavBytes(8000, tone(900, 3000)) }
  const doc = (inside: string): string => `<Response>${inside}</Response>`
  const text = (value: string): string => value.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const nested = `${'<Say>'.repeat(10_000)}x${'</Say>'.repeat(10_000)}`

  const documents: Record<string, readonly [body: string, number: number]> = {
    '/dtd': ['<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Response><Say>&b;</Say></Response>', 12100],
    '/external': ['<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><Response><Say>&a;</Say></Response>', 12100],
    '/nested': [`<Response>${nested}</Response>`, 11750],
    '/cut': ['<Response><Say>', 12100],
    '/root': ['<html><body>404</body></html>', 12102],
    '/too-big': [`<Response>${' '.repeat(65_537 - 21)}</Response>`, 11750],
  }
  for (const [path, [body]] of Object.entries(documents)) pages[path] = body
  pages['/json'] = { type: 'application/json', body: '{}' }
  pages['/nothing-there'] = { status: 404 }
  const faults: readonly (readonly [url: string, number: number])[] = [
    ...Object.entries(documents).map(([path, [, number]]) => [url + path, number] as const),
    [`${url}/json`, 12300],
    [`${url}/nothing-there`, 11217],
    [`${bad}/error`, 11217],
    [`${bad}/loop`, 11215],
    [`${bad}/nowhere`, 11216],
    [`${bad}/inside`, 11210],
    [`${bad}/gigabyte`, 11750],
    [`${bad}/chunks`, 11750],
    [`${bad}/hang#rt=400`, 11200],
    [`${bad}/drip#tt=600`, 11203],
    [`${raw}/garbage`, 11206],
    [`${raw.replace('http', 'https')}/`, 11220],
    [`${tls}/`, 11237],
    [`http://127.0.0.1:${UNHEARD_PORT}/`, 11202],
    ['http://10.1.2.3/', 11210],
    ['http://[::ffff:10.1.2.3]/', 11210],
    ['http://169.254.169.254/latest/meta-data/', 11210],
    ['http://no-such-host.invalid/', 11210],
    ['ftp://a.test/', 11100],
  ]

  await t.test('an unanswered caller gets 503, and the call records the fault', async t => {
    for (const [fault, number] of faults) {
      const line = await callIn(doc(`<Redirect>${text(fault)}</Redirect>`))
      await line.over()
      t.equal(line.final, 503, fault)
      await town.noted(await town.sidOf(line), number)
    }
  })

  await t.test('accepts a document of 64 KiB, with a byte order mark, in UTF-16 and in Latin-1', async t => {
    const size = 65_536 - '<Response><Hangup/></Response>'.length
    pages['/full'] = `<Response><Hangup/>${' '.repeat(size)}</Response>`
    const utf16 = Buffer.from('\ufeff<Response><Redirect>/mark</Redirect></Response>', 'utf16le')
    pages['/utf16'] = { type: 'text/xml', body: utf16 }
    pages['/mark'] =
      `\ufeff<?xml version="1.0" encoding="UTF-8"?><Response><Redirect>/latin?name=é</Redirect></Response>`
    pages['/latin'] = {
      type: 'text/xml',
      body: Buffer.from(
        '<?xml version="1.0" encoding="ISO-8859-1"?><Response><Redirect>/full?n=é</Redirect></Response>',
        'latin1',
      ),
    }
    const line = await callIn(doc(`<Redirect>${url}/utf16</Redirect>`))
    t.match(await told('/full'), { n: 'é' })
    t.match(await told('/latin'), { name: 'é' })
    await line.over()
    t.equal(line.final, 200, 'answered, then hung up')
  })

  await t.test('an answered caller hears a notice, and the fallback document receives the error', async t => {
    const { sid, line } = await callOut(doc(`<Play>${url}/900.wav</Play><Redirect>${bad}/error</Redirect>`))
    await line.heard(900)
    await line.hearsSomething(900)
    t.equal(await line.over(), 'peer')
    t.equal((await w.ended(sid)).status, 'completed')

    pages['/fallback'] = doc(`<Play>${url}/900.wav</Play>`)
    const saved = await callOut(doc(`<Redirect>${bad}/loop</Redirect>`), { FallbackUrl: `${url}/fallback` })
    t.match(await told('/fallback'), { ErrorCode: '11215', ErrorUrl: `${bad}/loop`, CallSid: saved.sid })
    await saved.line.heard(900)
    await saved.line.over()
  })

  await t.test('a call keeps its fallback when an update gives it another document', async t => {
    for (const [path, update] of [
      ['/after-update', { Url: `${bad}/loop` }],
      ['/given', { Url: `${bad}/loop`, FallbackUrl: `${url}/given` }],
    ] as const) {
      pages[path] = doc(`<Play>${url}/900.wav</Play>`)
      const { sid, line } = await callOut(doc('<Pause length="600"/>'), { FallbackUrl: `${url}/after-update` })
      const at = `/Calls/${sid}.json`
      await until('it talks', async () => (await w.voice('GET', at)).body.status === 'in-progress')
      t.equal((await w.voice('POST', at, update)).status, 200)
      t.match(await told(path), { ErrorUrl: `${bad}/loop`, CallSid: sid })
      await line.heard(900)
      await line.over()
    }
  })

  await t.test('skips a prompt that cannot be fetched, and continues with the document', async t => {
    const prompts = [`${bad}/error`, `${bad}/gigabyte`, `${raw}/garbage`, `${tls}/`, `${url}/json`]
    const line = await callIn(
      doc(`${prompts.map(prompt => `<Play>${prompt}</Play>`).join('')}<Play>${url}/900.wav</Play>`),
    )
    await line.heard(900)
    const sid = await town.sidOf(line)
    await Promise.all([town.noted(sid, 11200, 4), town.noted(sid, 13420)])
    t.equal(await line.over(), 'peer')
  })

  await t.test('a misbehaving callback receiver delays no call', async t => {
    const callbacks = [`${bad}/hang#rt=400`, `${bad}/chunks`, `${raw}/garbage`, 'http://10.1.2.3/']
    for (const StatusCallback of callbacks) {
      const form = { StatusCallback, StatusCallbackEvent: 'initiated' }
      const { sid, line } = await callOut(doc(`<Play>${url}/900.wav</Play>`), form)
      await line.heard(900)
      await line.over()
      t.equal((await w.ended(sid)).status, 'completed', StatusCallback)
    }
    t.same(all('/never'), [])
  })

  await t.test('nothing is left', async t => {
    await w.untilNone('live_calls', 'media_legs')
    t.pass('no call and no leg')
  })
})

async function listening(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** Starts a web server on which every page has a different fault. */
async function badServer(t: Test): Promise<string> {
  const forever = (response: ServerResponse, piece: string, every_ms: number): void => {
    const timer = setInterval(() => response.write(piece), every_ms)
    response.on('close', () => clearInterval(timer))
  }
  const pages: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
    '/error': response => response.writeHead(500).end('<Response/>'),
    '/loop': response => response.writeHead(307, { location: '/loop' }).end(),
    '/nowhere': response => response.writeHead(302).end(),
    '/inside': response => response.writeHead(302, { location: 'http://10.1.2.3/' }).end(),
    '/gigabyte': response => {
      response.writeHead(200, { 'content-type': 'text/xml', 'content-length': String(1e9) })
      forever(response, '<'.repeat(1000), 1)
    },
    '/chunks': response => {
      response.writeHead(200, { 'content-type': 'text/xml' })
      forever(response, ' '.repeat(10_000), 1)
    },
    '/drip': response => {
      response.writeHead(200, { 'content-type': 'text/xml' })
      forever(response, ' ', 50)
    },
    '/hang': () => undefined,
  }
  const server = createHttpServer((request, response) => {
    request.resume()
    pages[(request.url ?? '').split('?')[0] ?? '']?.(response, request)
  })
  return `http://127.0.0.1:${await listening(t, server)}`
}

/** A server of another protocol. */
async function rawServer(t: Test): Promise<string> {
  // Closes after the request. Closing earlier would be a failed connection.
  const server = createServer(socket => socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
  return `http://127.0.0.1:${await listening(t, server)}`
}

/** Starts an HTTPS server whose certificate has an untrusted root. */
async function tlsServer(t: Test): Promise<string> {
  const [key, cert] = ['leaf.key', 'good.pem'].map(name => readFileSync(`fixtures/tls/${name}`, 'utf8'))
  const server = createHttpsServer({ key, cert }, (_request, response) => response.end('<Response/>'))
  return `https://127.0.0.1:${await listening(t, server)}`
}
