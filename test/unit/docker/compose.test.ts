import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { VARIABLES } from '../../../core/runtime/config.ts'
import t from '../../support/harness/index.ts'

// Reads the compose files like Docker, with variables interpolated (compose-spec §12).

interface Service {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly network_mode?: string
  readonly ports?: readonly string[]
  readonly logging?: { readonly driver?: string; readonly options?: Readonly<Record<string, string>> }
}

type Environment = Readonly<Record<string, string>>

const PLACE = /\$\{(\w+)(?::([-?])([^}]*))?\}/g

function compose(file: string, env: Environment): Readonly<Record<string, Service>> {
  const text = readFileSync(`docker/${file}`, 'utf8').replace(PLACE, (_, name: string, kind?: string, rest = '') => {
    const value = env[name] ?? ''
    if (value === '' && kind === '?') throw new Error(`${name}: ${rest}`)
    return value === '' && kind === '-' ? rest : value
  })
  return (parse(text) as { services: Record<string, Service> }).services
}

const BASE: Environment = { STROWGER_HOST: '203.0.113.10' }
const WHOLE: Environment = { ...BASE, STROWGER_DRACHTIO_SECRET: 's3cret', STROWGER_TLS_DIR: '/etc/strowger/tls' }

/** Returns the values of a flag, in order. */
const valuesOf = (command: readonly string[], flag: string): string[] =>
  command.flatMap((word, at) => (word === flag ? [command[at + 1] ?? ''] : []))

t.test('compose.yaml requires STROWGER_HOST and sets up no drachtio-server', async t => {
  t.throws(() => compose('compose.yaml', {}), /STROWGER_HOST/)
  const { strowger } = compose('compose.yaml', BASE)
  t.equal(strowger?.environment?.['STROWGER_HOST'], '203.0.113.10')
  t.notOk('STROWGER_DRACHTIO' in (strowger?.environment ?? {}))
})

t.test('the logs of containers have an end', async t => {
  const services = { ...compose('compose.yaml', BASE), ...compose('compose.drachtio.yaml', WHOLE) }
  // That file adds to the first one's service.
  services['strowger'] = compose('compose.yaml', BASE)['strowger'] ?? {}
  for (const [name, { logging }] of Object.entries(services)) t.match(logging?.options?.['max-size'], /^\d+m$/, name)
})

t.test('compose.drachtio.yaml requires a secret and a certificate', async t => {
  for (const missing of ['STROWGER_DRACHTIO_SECRET', 'STROWGER_TLS_DIR'])
    t.throws(() => compose('compose.drachtio.yaml', { ...WHOLE, [missing]: '' }), new RegExp(missing))
})

t.test('drachtio-server has a local control link and the contacts that the platform gives to peers', async t => {
  const { drachtio, strowger } = compose('compose.drachtio.yaml', WHOLE)
  const command = drachtio?.command ?? []
  t.same(valuesOf(command, '--address'), ['127.0.0.1'])
  t.same(valuesOf(command, '--secret'), ['s3cret'])
  t.equal(strowger?.environment?.['STROWGER_DRACHTIO'], `127.0.0.1:${valuesOf(command, '--port')[0]}`)
  t.equal(strowger?.environment?.['STROWGER_DRACHTIO_SECRET'], 's3cret')
  t.equal(strowger?.environment?.['STROWGER_DRACHTIO_100REL'], 'off')
  t.same(valuesOf(command, '--contact'), [
    'sip:203.0.113.10:5060;transport=udp,tcp',
    'sips:203.0.113.10:5061;transport=tls',
    'sip:203.0.113.10:5066;transport=ws',
    'sips:203.0.113.10:5067;transport=wss',
  ])
  t.same([...valuesOf(command, '--key-file'), ...valuesOf(command, '--cert-file')], ['/tls/key.pem', '/tls/cert.pem'])
  t.same(valuesOf(command, '--chain-file'), ['/tls/cert.pem'], 'the server does not start without a chain file')
  const mended = compose('compose.drachtio.yaml', { ...WHOLE, STROWGER_DRACHTIO_100REL: 'on' })
  t.equal(mended['strowger']?.environment?.['STROWGER_DRACHTIO_100REL'], 'on')
  const moved = compose('compose.drachtio.yaml', { ...WHOLE, STROWGER_SIP_PORT: '5080' })
  t.match(valuesOf(moved['drachtio']?.command ?? [], '--contact')[0], /:5080;transport=udp,tcp$/)
})

t.test('the platform reads every variable that the compose files set', async t => {
  const known = new Set(Object.values(VARIABLES).map(({ name }) => name))
  for (const file of ['compose.yaml', 'compose.drachtio.yaml'])
    for (const name of Object.keys(compose(file, WHOLE)['strowger']?.environment ?? {})) t.ok(known.has(name), name)
})
