import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { get } from 'node:https'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { HttpChallenges, TlsChallenges } from '../../../control/acme/challenges.ts'
import type { Present } from '../../../control/acme/client.ts'
import { serveHttp } from '../../../control/http/server.ts'
import { type AcmeService, acmeCertificate } from '../../../control/reconcilers/acme-certificate.ts'
import { acmeFile, loadCertificate } from '../../../core/runtime/certificate.ts'
import { type Clock, systemClock } from '../../../core/runtime/clock.ts'
import { createHttpClient } from '../../../core/runtime/http/index.ts'
import { createLog } from '../../../core/runtime/log.ts'
import { Sleeper } from '../../../core/runtime/sleeper.ts'
import { claimOrder, endOrder } from '../../../core/state/nodes/acme.ts'
import { testTls } from '../../conformance/edge/test-tls.ts'
import { acmeAuthority } from '../../support/acme-authority.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

// Certificates by ACME (RFC 8555), from Pebble, which looks for proof as Let's Encrypt does.

const namesOf = ({ subjectAltName = '' }: X509Certificate): string[] =>
  subjectAltName
    .split(', ')
    .map(name => name.replace('DNS:', ''))
    .sort()
/** Asks the authority again soon. */
const clock: Clock = { ...systemClock, after: (delay_ms, run) => systemClock.after(delay_ms / 20, run) }

const folder = t.testdir()
const http_port = await freePort()
const own = await testTls()
const w = await controlPlane(t)
const listening = { host: '127.0.0.1', port: 0, secure: { host: '127.0.0.1', port: 0, tls: own } }
const who = (ctx: { body: unknown }): void => {
  ctx.body = 'we'
}
const server = await serveHttp({ pages: { '/who': who }, below: {} }, w, listening)
t.teardown(() => server.close())
const authority = await acmeAuthority(t, { http_port, tls_port: server.secure_port ?? 0 })
const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test', ca: authority.ca })
t.teardown(() => http.close())
const settings = { directory: authority.directory, email: 'operator@example.test', http_port }

/** What proves the names of one test over HTTP. */
const byHttp = (test: string): AcmeService => ({
  settings: { ...settings, names: [`sip.${test}.example.test`, `voice.${test}.example.test`] },
  ...{ http, type: 'http-01', present: new HttpChallenges('127.0.0.1', http_port).present },
})

/** A machine on the state of this file: its folder, its log, and a run of its task in a process that has started. */
function machine() {
  const data_dir = mkdtempSync(join(folder, 'machine-'))
  const lines: string[] = []
  const log = createLog('control', { log_level: 'info' }, { write: (line: string) => void lines.push(line) })
  const services = { ...w, log, settings: { ...w.settings, data_dir } }
  const run = (service: AcmeService, at: Clock = clock) => acmeCertificate(service).run({ ...services, clock: at })
  return { data_dir, services, lines, run, file: acmeFile(data_dir) }
}

t.test('a name is proved over HTTP, and its certificate is renewed in the last third of its time', async t => {
  const { data_dir, run, file } = machine()
  const service = byHttp('renewed')
  const renew = (at = clock) => run(service, at)
  await renew()
  const acme = service.settings
  const pair = await loadCertificate({ tls: null, acme, data_dir, domain: 'localhost', host: '127.0.0.1' })
  const issued = new X509Certificate(pair.cert)
  t.match(issued.issuer, /Pebble Intermediate/)
  t.same(namesOf(issued), acme.names)
  t.ok(issued.checkPrivateKey(createPrivateKey(pair.key)))
  for (const name of readdirSync(join(data_dir, 'tls')))
    t.equal(statSync(join(data_dir, 'tls', name)).mode & 0o077, 0, name)
  t.same(readdirSync(join(data_dir, 'tls')).sort(), ['acme-account.pem', 'acme.pem'], 'no other key is left')
  const account = readFileSync(join(data_dir, 'tls/acme-account.pem'), 'utf8')

  await renew()
  const life_ms = Date.parse(issued.validTo) - Date.parse(issued.validFrom)
  const at = (share: number) => ({ ...clock, now: () => Date.parse(issued.validFrom) + life_ms * share })
  await renew(at(0.6))
  t.equal(new X509Certificate(readFileSync(file)).serialNumber, issued.serialNumber, 'it is kept until then')
  await renew(at(0.7))
  t.not(new X509Certificate(readFileSync(file)).serialNumber, issued.serialNumber)
  t.equal(readFileSync(join(data_dir, 'tls/acme-account.pem'), 'utf8'), account, 'by the same account')
  await t.rejects(fetch(`http://127.0.0.1:${http_port}/`), 'the port is closed when nothing is asked')
})

/** The certificate that a client of HTTPS sees, and what it reads. */
const visit = (servername: string) =>
  new Promise<{ text: string; serial: string }>((resolve, reject) => {
    const options = { port: server.secure_port, host: '127.0.0.1', path: '/who', servername, rejectUnauthorized: false }
    get({ ...options, agent: false }, answer => {
      const serial = new X509Certificate((answer.socket as ReturnType<typeof connectTls>).getPeerCertificate(true).raw)
      let text = ''
      answer.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      answer.on('end', () => resolve({ text, serial: serial.serialNumber }))
    }).on('error', reject)
  })

/** A connection that hands what it sends to `send`, the first time also. */
const sending = (send: (bytes: Buffer, first: boolean) => Promise<void> | void): Duplex => {
  let first = true
  return new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _encoding, done) {
      const was_first = first
      first = false
      Promise.resolve(send(bytes, was_first)).then(() => done(), done)
    },
  })
}

const asAuthority = (socket: Duplex, servername: string) =>
  connectTls({ socket, servername, ALPNProtocols: ['acme-tls/1'], rejectUnauthorized: false })

/** Asks for a proof by a ClientHello in two packets, between which the port serves somebody else. Returns its names. */
async function proofInTwoParts(name: string): Promise<string> {
  const raw = connect(server.secure_port ?? 0, '127.0.0.1')
  const way = sending(async (bytes, first) => {
    raw.write(first ? bytes.subarray(0, 20) : bytes)
    if (!first) return
    await visit(name)
    raw.write(bytes.subarray(20))
  })
  raw.on('data', bytes => way.push(bytes)).on('end', () => way.push(null))
  try {
    const answered = asAuthority(way, name)
    await new Promise((resolve, reject) => answered.once('secureConnect', resolve).once('error', reject))
    return answered.getPeerCertificate().subjectaltname ?? ''
  } finally {
    raw.destroy()
  }
}

t.test('a name is proved at the HTTPS port, which serves its customers meanwhile', async t => {
  const { run, file } = machine()
  const names = ['sip.alpn.example.test', 'voice.alpn.example.test']
  const visits: { text: string; serial: string }[] = []
  const proofs: string[] = []
  const present: Present = async challenge => {
    const withdraw = await server.challenges.present(challenge)
    visits.push(await visit(challenge.name))
    proofs.push(await proofInTwoParts(challenge.name))
    return withdraw
  }
  await run({ settings: { ...settings, names }, http, type: 'tls-alpn-01', present })
  t.same(namesOf(new X509Certificate(readFileSync(file))), names)
  const expected = { text: 'we', serial: new X509Certificate(own.cert).serialNumber }
  t.same(visits, [expected, expected])
  t.same(
    proofs.sort(),
    names.map(name => `DNS:${name}`),
    'whatever packets a ClientHello comes in',
  )
  const strange = connectTls({ port: server.secure_port ?? 0, host: '127.0.0.1', ALPNProtocols: ['acme-tls/1'] })
  const refused = await new Promise(resolve =>
    strange.once('secureConnect', resolve).once('error', () => resolve(true)),
  )
  t.equal(refused, true, 'without an open challenge nobody gets a proof')
  strange.destroy()
})

t.test('strangers that stand still while a proof is open do not keep their connections', async t => {
  const challenges = new TlsChallenges(50)
  const name = 'sip.still.example.test'
  const withdraw = await challenges.present({ name, token: 'a', key_authorization: 'a.b' })
  const port = await freePort()
  const others = createServer(socket => challenges.take(socket, () => socket.end('served')))
  await new Promise<void>(resolve => others.listen(port, '127.0.0.1', resolve))
  t.teardown(() => others.close())
  const hello = await new Promise<Buffer>(resolve => asAuthority(sending(resolve), name).on('error', () => undefined))
  for (const [what, bytes] of [
    ['nothing', Buffer.alloc(0)],
    ['a part', hello.subarray(0, 20)],
    ['a ClientHello', hello],
  ] as const) {
    const stranger = connect(port, '127.0.0.1').on('error', () => undefined)
    stranger.write(bytes)
    stranger.resume()
    await new Promise(resolve => stranger.once('close', resolve))
    t.pass(`one that sends ${what} is closed`)
  }
  await withdraw()
})

t.test('an authority that finds another server at a name issues no certificate, and the log says why', async t => {
  const { lines, run, file } = machine()
  const service = byHttp('elsewhere')
  const elsewhere = new HttpChallenges('127.0.0.1', await freePort()).present
  await run({ ...service, present: elsewhere })
  t.notOk(existsSync(file))
  t.match(lines.join(), /the authority did not find (voice|sip)\.elsewhere\.example\.test here/)
  const directory = authority.directory.replace('/dir', '/nowhere')
  await run({ ...service, settings: { ...service.settings, directory } })
  t.match(lines.at(-1), /answers 404 without JSON/)
  const none = { ...service.settings, directory: `https://127.0.0.1:${await freePort()}/dir` }
  await run({ ...service, settings: none })
  t.match(lines.at(-1), /the authority cannot be reached/)
  await run(service)
  t.ok(existsSync(file), `the next attempt succeeds: ${lines.at(-1)}`)
})

t.test('machines with the same names share a certificate, and show the proofs of each other', async t => {
  const names = byHttp('shared').settings.names
  const [a, b] = [machine(), machine()]
  /** The names lead to the port of b: what a shows, the authority does not see. */
  const [of_a, of_b] = await Promise.all([
    { ...byHttp('shared'), present: new HttpChallenges('127.0.0.1', await freePort()).present },
    byHttp('shared'),
  ])
  // Machine a orders while machine b does not run. The name leads to b, so the authority gets no answer.
  await a.run(of_a)
  t.notOk(existsSync(a.file))
  const [task_a, task_b] = [acmeCertificate(of_a), acmeCertificate(of_b)]
  const runs_b = new Sleeper({
    work: () => task_b.run({ ...b.services, clock }),
    failed: err => t.fail(String(err)),
  })
  const unhear = w.bus.on('certificates', () => void runs_b.wake())
  // b is there, and leaves the order to a, whose process has just started.
  const claim = { machine_id: 'mac_other', started: true, seen: '' }
  const key = { directory: settings.directory, names: [...names].sort().join(' ') }
  t.equal(await claimOrder(w.state, key, claim), true)
  await runs_b.wake()
  await endOrder(w.state, key, null)
  await task_a.run({ ...a.services, clock })
  t.ok(existsSync(a.file), `the proof of a was found at b: ${a.lines.join('')} ${b.lines.join('')}`)
  await until('b has the certificate, too', () => existsSync(b.file))
  t.equal(readFileSync(b.file, 'utf8'), readFileSync(a.file, 'utf8'))
  t.notMatch(b.lines.join(), 'a certificate was issued', 'one order for both')
  t.equal(await claimOrder(w.state, key, claim), false, 'nor does one that looked before the order of a had ended')
  await until('b closes the port', () =>
    fetch(`http://127.0.0.1:${http_port}/`).then(
      () => false,
      () => true,
    ),
  )
  const rows = await w.state.db.selectFrom('acme_certificate').select('pem').where('pem', '!=', '').execute()
  t.notMatch(JSON.stringify(rows), 'PRIVATE KEY', 'the rows tell no key')
  unhear()
  await runs_b.stop()
  await Promise.all([task_a.stop?.(), task_b.stop?.()])
})
