import { EventEmitter } from 'node:events'
import pino from 'pino'
import { systemClock } from '../../../../core/runtime/clock.ts'
import type { InboundRequest } from '../../../../signaling/drachtio/types.ts'
import type { DigestAuthenticator } from '../../../../signaling/trunks/digest.ts'
import { Registrar } from '../../../../signaling/trunks/registrar.ts'
import { EMPTY_SNAPSHOT, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

t.test('a Contact with maddr or an invalid URI is refused with 400', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const trunk = { id: 'trk_1', enabled: true, source_validation: 'relaxed' } as TrunkConfig
  const registrar = new Registrar({
    // Authentication has its own tests.
    digest: {
      check: () => ({ kind: 'authenticated', credential_id: 'cred_1', trunk_id: 'trk_1' }),
    } as unknown as DigestAuthenticator,
    state: w.state,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([['trk_1', trunk]]) }),
    domain: 'localhost',
    authToken: () => null,
    ...{ machine_id: 'mac_1', others: null },
  })
  const register = async (contact: string, transport: 'udp' | 'tcp' = 'udp'): Promise<number> => {
    let code = 0
    await registrar.handle({
      ...{ method: 'REGISTER', uri: 'sip:localhost', call_id: '1', headers: {}, body: '' },
      source: { address: '192.0.2.7', port: 49_152, transport },
      header: (name: string) => (name === 'contact' ? contact : null),
      respond: (status: number) => {
        code = status
      },
    } as InboundRequest)
    return code
  }
  for (const contact of [
    '<sip:u@192.0.2.7;maddr=9.9.9.9>',
    '<sip:u@192.0.2.7;MADDR=9.9.9.9;transport=tcp>',
    '<sip:u@192.0.2.7>, <sip:u@192.0.2.7;maddr=9.9.9.9>',
    '<sip:u@192.0.2.7;maddr>',
    '<sip:u@[nonsense]>',
  ])
    t.equal(await register(contact), 400, contact)
  t.same(registrar.contacts('trk_1'), [], 'a refused request adds no contact')

  t.equal(await register('<sip:u@192.0.2.7:5080>'), 200)
  t.equal(await register('<sip:u@10.0.0.1>'), 200)
  t.equal(await register('<sip:v@192.0.2.7>', 'tcp'), 200)
  t.match(
    registrar.contacts('trk_1').map(({ uri, proxy, proven_host }) => [uri, proxy, proven_host]),
    [
      ['sip:v@192.0.2.7', 'sip:192.0.2.7:49152;transport=tcp', '192.0.2.7'],
      ['sip:u@10.0.0.1', 'sip:192.0.2.7:49152', '192.0.2.7'],
      ['sip:u@192.0.2.7:5080', null, '192.0.2.7'],
    ],
    'a connection, or an address behind a NAT, is reached by the way that the REGISTER came',
  )
  t.equal(await register('<sip:u@192.0.2.7:5080>'), 200)
  t.equal(registrar.contacts('trk_1')[0]?.uri, 'sip:u@192.0.2.7:5080', 'the latest registration is called first')
  const called = () => registrar.contacts('trk_1').map(({ uri }) => uri)
  const device = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000a95a0e128>"'
  for (const port of [5091, 5092]) t.equal(await register(`<sip:w@192.0.2.7:${port}>;${device}`), 200)
  t.same(
    called().filter(uri => uri.startsWith('sip:w')),
    ['sip:w@192.0.2.7:5092'],
    'a restarted telephone takes the place of its earlier contact (RFC 5626 §6)',
  )
  await register(`<sip:w@192.0.2.7:5093>;${device};reg-id=1`)
  await register(`<sip:w@192.0.2.7:5094>;${device};reg-id=2`)
  await register(`<sip:w@192.0.2.7:5095>;${device};reg-id=2, <sip:w@192.0.2.7:5096>;${device};reg-id=2`)
  t.same(
    called().slice(0, 4).sort(),
    [5092, 5093, 5095, 5096].map(port => `sip:w@192.0.2.7:${port}`),
    'each flow of a device is replaced alone, and not by a contact beside it',
  )
  t.ok(called().includes('sip:u@10.0.0.1'), 'other contacts stay')
})

t.test('a contact that registers at one machine is called by another, by way of the first', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const heard = new EventEmitter()
  const others = {
    ring: (topic: string) => void heard.emit(topic),
    on: (topic: string, listener: () => void) => {
      heard.on(topic, listener)
      return () => void heard.off(topic, listener)
    },
    close: async () => undefined,
  }
  const trunk = { id: 'trk_1', enabled: true, source_validation: 'relaxed' } as TrunkConfig
  const machine = async (machine_id: string) => {
    const registrar = new Registrar({
      digest: {
        check: async () => ({ kind: 'authenticated', credential_id: 'cred_1', trunk_id: 'trk_1' }),
      } as unknown as DigestAuthenticator,
      ...{
        state: w.state,
        clock: systemClock,
        log: pino({ level: 'silent' }),
        domain: 'localhost',
        machine_id,
        others,
      },
      snapshot: () => ({ ...EMPTY_SNAPSHOT, trunks: new Map([['trk_1', trunk]]) }),
      authToken: () => null,
    })
    await registrar.load()
    t.teardown(() => registrar.stop())
    const register = async (contact: string, transport: 'udp' | 'wss' = 'udp', expires = '3600'): Promise<string> =>
      new Promise(resolve => {
        void registrar.handle({
          ...{ method: 'REGISTER', uri: 'sip:localhost', call_id: '1', headers: {}, body: '' },
          source: { address: '192.0.2.7', port: 49_152, transport },
          header: (name: string) => ({ contact, expires })[name] ?? null,
          respond: (status: number, options?: { headers?: Record<string, string> }) =>
            resolve(`${status} ${options?.headers?.['Contact'] ?? ''}`),
        } as InboundRequest)
      })
    const called = () =>
      registrar
        .contacts('trk_1')
        .map(({ uri, proxy }) => [uri, proxy] as const)
        .sort(([one], [other]) => (one < other ? -1 : 1))
    return { registrar, register, called }
  }
  const [a, b] = [await machine('mac_a'), await machine('mac_b')]
  await a.register('<sip:u@192.0.2.7:5080>')
  await a.register('<sip:v@browser.invalid>', 'wss')
  await until('the other machine knows both', () => b.called().length === 2)
  t.same(b.called(), [
    ['sip:u@192.0.2.7:5080', 'sip:192.0.2.7:5080;x-machine=mac_a'],
    ['sip:v@browser.invalid', 'sip:192.0.2.7:49152;transport=wss;x-machine=mac_a'],
  ])
  t.same(a.called()[0], ['sip:u@192.0.2.7:5080', null], 'at its own machine it is called as ever')
  const [nat, tcp] = ['sip:n@10.0.0.1', 'sip:t@192.0.2.7:5080;transport=tcp']
  await a.register(`<${nat}>, <${tcp}>`)
  await until('the other machine knows all', () => b.called().length === 4)
  t.same(
    b.called().slice(0, 2),
    [
      [nat, 'sip:192.0.2.7:49152;x-machine=mac_a'],
      [tcp, null],
    ],
    'by what each needs',
  )
  await a.register(`<${nat}>, <${tcp}>`, 'udp', '0')
  await until('they are gone', () => b.called().length === 2)
  t.equal(b.registrar.size, 0, 'each contact counts at one machine')

  t.match(await b.register('<sip:v@browser.invalid>', 'wss'), /u@192.*v@browser/, 'the answer has all contacts')
  t.same(b.called()[1], ['sip:v@browser.invalid', 'sip:192.0.2.7:49152;transport=wss'], 'the browser has moved')
  await until('the first machine knows', () => a.called()[1]?.[1]?.endsWith(';x-machine=mac_b'))
  await b.register('<sip:u@192.0.2.7:5080>', 'udp', '0')
  await until('what was removed at one is gone at the other', () => a.called().length === 1)
  const late = await machine('mac_c')
  t.equal(late.called().length, 1, 'a machine that comes later has read the rows')
})
