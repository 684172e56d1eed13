import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { VARIABLES } from '../../../core/runtime/config.ts'

// The compose files as Docker reads them: variables put in, as compose-spec §12 says.

interface Service {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly network_mode?: string
  readonly ports?: readonly string[]
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

/** Values of a flag, in order. */
const valuesOf = (command: readonly string[], flag: string): string[] =>
  command.flatMap((word, at) => (word === flag ? [command[at + 1] ?? ''] : []))

t.test('the platform alone asks for its address and nothing of a drachtio-server', async t => {
  t.throws(() => compose('compose.yaml', {}), /STROWGER_HOST/)
  const { strowger } = compose('compose.yaml', BASE)
  t.equal(strowger?.environment?.['STROWGER_HOST'], '203.0.113.10')
  t.notOk('STROWGER_DRACHTIO' in (strowger?.environment ?? {}))
})

t.test('a drachtio-server without a secret, or without a certificate, is not started', async t => {
  for (const missing of ['STROWGER_DRACHTIO_SECRET', 'STROWGER_TLS_DIR'])
    t.throws(() => compose('compose.drachtio.yaml', { ...WHOLE, [missing]: '' }), new RegExp(missing))
})

t.test('its control link is for this machine alone, and it listens where the platform says that it does', async t => {
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
  t.same(valuesOf(command, '--chain-file'), ['/tls/cert.pem'], 'without it the server does not start')
  const mended = compose('compose.drachtio.yaml', { ...WHOLE, STROWGER_DRACHTIO_100REL: 'on' })
  t.equal(mended['strowger']?.environment?.['STROWGER_DRACHTIO_100REL'], 'on')
  const moved = compose('compose.drachtio.yaml', { ...WHOLE, STROWGER_SIP_PORT: '5080' })
  t.match(valuesOf(moved['drachtio']?.command ?? [], '--contact')[0], /:5080;transport=udp,tcp$/)
})

t.test('every variable that the files set is one that the platform reads', async t => {
  const known = new Set(Object.values(VARIABLES).map(({ name }) => name))
  for (const file of ['compose.yaml', 'compose.drachtio.yaml'])
    for (const name of Object.keys(compose(file, WHOLE)['strowger']?.environment ?? {})) t.ok(known.has(name), name)
})
