import { EventEmitter } from 'node:events'
import pino from 'pino'
import { readAddress } from '../../../../core/domain/sip/address.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import type { InboundRequest } from '../../../../signaling/drachtio/types.ts'
import type { DigestAuthenticator } from '../../../../signaling/trunks/digest.ts'
import { Registrar } from '../../../../signaling/trunks/registrar.ts'
import {
  type DigestCredential,
  EMPTY_SNAPSHOT,
  type Snapshot,
  type TrunkConfig,
} from '../../../../signaling/trunks/snapshot.ts'
import { admissionWorld } from '../../../support/admission-world.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

const trunk = { id: 'trk_1', enabled: true, source_validation: 'relaxed' } as TrunkConfig
const credential = (id: string, valid_until_ms: number | null = null): DigestCredential => ({
  ...{ id, trunk_id: 'trk_1', realm: 'localhost', username: id, ha1_md5: '', ha1_sha256: '', valid_until_ms },
})
const OF_TRUNK: Snapshot = {
  ...EMPTY_SNAPSHOT,
  trunks: new Map([['trk_1', trunk]]),
  credentials: new Map([['cred_1', [credential('cred_1')]]]),
}

t.test('a Contact with maddr or an invalid URI is refused with 400', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const registrar = new Registrar({
    // Authentication has its own tests.
    digest: {
      check: () => ({ kind: 'authenticated', credential_id: 'cred_1', trunk_id: 'trk_1' }),
    } as unknown as DigestAuthenticator,
    state: w.state,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    snapshot: () => OF_TRUNK,
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
      snapshot: () => OF_TRUNK,
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

/** A registrar whose users need no password: a REGISTER of `user` is of that credential, or of that client. */
async function openRegistrar(t: Test, snapshot: () => Snapshot) {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const expires_at_seconds = Math.floor(Date.now() / 1000) + 3600
  const nameOf = (request: InboundRequest): string => readAddress(request.header('to'))?.user ?? ''
  const registrar = new Registrar({
    digest: {
      check: (request: InboundRequest) => ({
        ...{ kind: 'authenticated', credential_id: nameOf(request), trunk_id: 'trk_1' },
      }),
      checkClient: (request: InboundRequest) => ({
        kind: 'authenticated',
        token: { client: nameOf(request), caller: null, expires_at_seconds, allowed: ['in'] },
      }),
    } as unknown as DigestAuthenticator,
    ...{ state: w.state, clock: systemClock, log: pino({ level: 'silent' }), domain: 'localhost' },
    ...{ snapshot, authToken: () => 'a token', machine_id: 'mac_1', others: null },
  })
  const register = async (host: string, user: string, contact = `sip:${user}@192.0.2.7`): Promise<number> => {
    let code = 0
    const headers: Record<string, string> = { contact: `<${contact}>`, to: `<sip:${user}@${host}>` }
    await registrar.handle({
      ...{ method: 'REGISTER', uri: `sip:${host}`, call_id: '1', headers: {}, body: '' },
      source: { address: '192.0.2.7', port: 49_152, transport: 'udp' },
      header: (name: string) => headers[name] ?? null,
      respond: (status: number) => {
        code = status
      },
    } as unknown as InboundRequest)
    return code
  }
  return { registrar, register, state: w.state }
}

const account = (key_id: string, active = true): Snapshot['accounts'] =>
  new Map([['prj_1', { account_sid: 'AC1', project_id: 'prj_1', key_id, active, events: true, auth_token_sealed: '' }]])

t.test('a contact ends with what registered it: a revoked password, or a replaced auth token', async t => {
  let snapshot: Snapshot = EMPTY_SNAPSHOT
  const { registrar, register, state } = await openRegistrar(t, () => snapshot)
  const apply = (credentials: readonly DigestCredential[], accounts: Snapshot['accounts']) => {
    snapshot = {
      ...EMPTY_SNAPSHOT,
      trunks: new Map([['trk_1', trunk]]),
      credentials: new Map([['desk', credentials]]),
      accounts,
    }
  }
  const called = () => registrar.contacts('trk_1').map(({ uri }) => uri)
  const clients = () => registrar.clientContacts('prj_1', 'alice').map(({ uri }) => uri)
  apply([credential('old'), credential('stolen')], account('vak_1'))
  for (const user of ['old', 'stolen']) t.equal(await register('localhost', user), 200)
  t.equal(await register('1.client.localhost', 'alice'), 200)
  t.same(called(), ['sip:stolen@192.0.2.7', 'sip:old@192.0.2.7'])
  t.same(clients(), ['sip:alice@192.0.2.7'])

  apply([credential('old', Date.now() + 3_600_000)], account('vak_1'))
  t.same(called(), ['sip:old@192.0.2.7'], 'a revoked credential gets no calls, and one in its overlap does')
  apply([credential('old', Date.now() - 1)], account('vak_1', false))
  t.same([called(), clients()], [[], []], 'nor does one past its overlap, or a client of a closed account')
  apply([], account('vak_2'))
  t.same(clients(), [], 'nor a client of the replaced token')
  t.equal(await register('1.client.localhost', 'alice', 'sip:new@192.0.2.7'), 200)
  t.same(clients(), ['sip:new@192.0.2.7'], 'a client of the new token does')

  await state.db.updateTable('registration').set({ key_id: '' }).execute()
  await registrar.load()
  t.equal(clients().length, 2, 'rows of an earlier release, without a key, last until they expire')
})

t.test(
  'the clients of a project have at most 1,000 contacts: the oldest goes, and no other project loses one',
  async t => {
    const accounts = new Map([...account('vak_1'), ...[...account('vak_1').values()].map(of => ['prj_2', of] as const)])
    const { registrar, register, state } = await openRegistrar(t, () => ({ ...EMPTY_SNAPSHOT, accounts }))
    await register('2.client.localhost', 'bob')
    for (let n = 0; n <= 1000; n++) await register('1.client.localhost', `name${n}`)
    t.same(registrar.clientContacts('prj_1', 'name0'), [], 'the oldest is gone')
    for (const name of ['name1', 'name1000']) t.equal(registrar.clientContacts('prj_1', name).length, 1, name)
    t.equal(registrar.clientContacts('prj_2', 'bob').length, 1, 'the older one of another project stays')
    t.equal(registrar.size, 1001)
    const { length } = await state.db.selectFrom('registration').select('contact').execute()
    t.equal(length, 1001, 'and so it is in the state')
  },
)
