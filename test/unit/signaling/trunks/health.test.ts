import { compileSources } from '../../../../core/domain/identity/sources.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { evidenceOf } from '../../../../core/state/configuration/target-evidence.ts'
import { openState } from '../../../../core/state/index.ts'
import type { RequestOptions, SipResponse, SipStack } from '../../../../signaling/drachtio/types.ts'
import { probeTimes, TargetHealth } from '../../../../signaling/trunks/health.ts'
import { EMPTY_SNAPSHOT, type SealedCredentials, type TrunkConfig } from '../../../../signaling/trunks/snapshot.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

type Options = ConstructorParameters<typeof TargetHealth>[0]

const TRUNK: TrunkConfig = {
  id: 'trk_1',
  name: 'Office',
  project_id: 'prj_1',
  subaccount_id: null,
  revision: 1,
  enabled: true,
  auth_mode: 'digest',
  require_tls: false,
  source_validation: 'relaxed',
  transfers: 'consume',
  security: 'rtp',
  country: 'NG',
  codecs: ['PCMA'],
  max_call_duration_seconds: 3600,
  signaling_fqdn: '1.sip.test',
  sources: [],
  source_index: compileSources([]),
  targets: [
    {
      id: 'tgt_1',
      uri: 'sip:192.0.2.7',
      transport: 'udp',
      priority: 1,
      weight: 1,
      enabled: true,
      tls: { mode: 'required' },
      credentials: null,
      redirects: 'off',
    },
  ],
}

const healthOf = (given: Pick<Options, 'sip' | 'state' | 'clock'> & Partial<Options>) =>
  new TargetHealth({
    log: createLog('signaling', { log_level: 'fatal' }),
    node_id: 'n1',
    random: () => 0,
    peer_addresses: { find: async () => ({ kind: 'found', addresses: [{ proxy: 'sip:192.0.2.7' }] }) as never },
    unseal: sealed => sealed,
    ...given,
  })

t.test(
  'one missed OPTIONS leaves a healthy target healthy; the second degrades it, and any answer mends it',
  async t => {
    const state = await openState({ data_dir: t.testdir(), local: true })
    t.teardown(() => state.close())
    let due: (() => void) | null = null
    const clock = {
      ...systemClock,
      after: (_ms: number, run: () => void) => {
        due = run
        return { cancel: () => undefined }
      },
    }
    let answer: Pick<SipResponse, 'status' | 'source'>
    const sip = { connected: true, request: async () => answer } as unknown as SipStack
    const health = healthOf({ sip, state, clock })
    health.apply({
      ...EMPTY_SNAPSHOT,
      trunks: new Map([[TRUNK.id, TRUNK]]),
      projects: new Map([['prj_1', { id: 'prj_1', active: true, sandbox: false }]]),
    })
    /** Sends the next OPTIONS. `address` is empty when the SIP server made the response up. */
    const after = async (status: number, address: string): Promise<string> => {
      answer = { status, source: { address, port: address === '' ? 0 : 5060 } } as typeof answer
      const ask = due
      due = null
      ask?.()
      await until('the OPTIONS is settled', () => due)
      const [row] = await evidenceOf(state.db, ['tgt_1'])
      return `${row?.state} ${row?.misses}`
    }
    t.equal(await after(503, ''), 'unknown 1', 'a target that never answered stays unknown')
    t.equal(await after(200, '192.0.2.7'), 'healthy 0')
    t.equal(await after(503, ''), 'healthy 1')
    t.equal(await after(408, ''), 'degraded 2')
    t.ok(health.degraded('tgt_1'))
    t.equal(await after(404, '192.0.2.7'), 'healthy 0', 'any answer of its own')
    await health.stop()
  },
)

t.test(
  'a target of a suspended project is asked when that is active again, and with a new password at once',
  async t => {
    const state = await openState({ data_dir: t.testdir(), local: true })
    t.teardown(() => state.close())
    const due = new Set<() => void>()
    const after = (_ms: number, run: () => void) => {
      due.add(run)
      return { cancel: () => void due.delete(run) }
    }
    const asked: (RequestOptions['auth'] | null)[] = []
    const request = async ({ auth }: Pick<RequestOptions, 'auth'>) => {
      asked.push(auth ?? null)
      return { status: 200, source: { address: '192.0.2.7', port: 5060 } }
    }
    const health = healthOf({
      sip: { connected: true, request } as unknown as SipStack,
      state,
      clock: { ...systemClock, after },
    })
    const apply = (active: boolean, credentials: SealedCredentials | null = null) =>
      health.apply({
        ...EMPTY_SNAPSHOT,
        trunks: new Map([[TRUNK.id, { ...TRUNK, targets: TRUNK.targets.map(target => ({ ...target, credentials })) }]]),
        projects: new Map([['prj_1', { id: 'prj_1', active, sandbox: false }]]),
      })
    const runDue = () => {
      for (const run of [...due]) {
        due.delete(run)
        run()
      }
    }
    apply(true)
    runDue()
    await until('the target is asked', () => asked.length === 1 && due.size === 1)
    apply(false)
    t.equal(due.size, 0, 'no OPTIONS is planned')
    apply(true)
    runDue()
    await until('it is asked again', () => asked.length === 2 && due.size === 1)
    apply(true, { username: 'pbx', password_sealed: 'new' })
    runDue()
    await until('its new password is tried', () => asked.length === 3)
    t.same(asked, [null, null, { username: 'pbx', password: 'new' }])
    await health.stop()
  },
)

t.test('one project gets no more than 50 OPTIONS a second from a node, and its targets delay no others', async t => {
  for (const targets of [1, 100, 1500, 1501, 50_000]) {
    const { first_ms, period_ms } = probeTimes(targets)
    t.ok((targets * 1000) / first_ms <= 50 && (targets * 1000) / period_ms <= 50, `${targets} targets`)
  }
  t.same(probeTimes(1500), { first_ms: 30_000, period_ms: 30_000 }, 'up to 1,500 are asked every 30 s')
  const state = await openState({ data_dir: t.testdir(), local: true })
  t.teardown(() => state.close())
  const timers: { readonly ms: number; readonly run: () => void }[] = []
  const after = (ms: number, run: () => void) => {
    timers.push({ ms, run })
    return { cancel: () => undefined }
  }
  const request = async () => ({ status: 200, source: { address: '192.0.2.7', port: 5060 } })
  const health = healthOf({
    sip: { connected: true, request } as unknown as SipStack,
    state,
    clock: { ...systemClock, after },
    random: () => 0.5,
  })
  const trunk = (id: string, project_id: string, targets: number): [string, TrunkConfig] => {
    const made = TRUNK.targets.flatMap(target => Array.from({ length: targets }, (_, n) => ({ ...target, id: id + n })))
    return [id, { ...TRUNK, id, project_id, targets: made }]
  }
  health.apply({
    ...EMPTY_SNAPSHOT,
    trunks: new Map([trunk('many', 'prj_1', 2000), trunk('more', 'prj_1', 1000), trunk('one', 'prj_2', 1)]),
    projects: new Map(['prj_1', 'prj_2'].map(id => [id, { id, active: true, sandbox: false }])),
  })
  const begun = timers.splice(0)
  t.same([begun.length, begun[0]?.ms, begun.at(-1)?.ms], [3001, 30_000, 1000])
  begun[0]?.run()
  begun.at(-1)?.run()
  await until('both are to be asked again', () => timers.length === 2)
  t.same(timers.map(({ ms }) => ms).sort(), [30_000, 60_000])
  await health.stop()
})
