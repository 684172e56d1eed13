import {
  SERVICE_TYPES,
  type Service,
  type ServiceType,
  WAYS,
  type WayName,
} from '../../../core/domain/admission/index.ts'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  releaseAdmission,
  takeAdmission,
} from '../../../core/state/calls/leases.ts'
import { acceptRecordingConsent } from '../../../core/state/calls/recording-consent.ts'
import type { OutboundPolicyTable } from '../../../core/state/index.ts'
import { admissionWorld, NOW_MS } from '../../support/admission-world.ts'
import t from '../../support/harness/index.ts'

// Tests that the policy of a service holds on each way in which a call leaves: a loop over the registry of ways, their
// services, and everything that a policy bounds.

const DENIED = '23480'
const w = await admissionWorld()
t.teardown(() => w.close())
const { db } = w.state

const subtrunk_id = await w.subtrunk()
const trunk_number = '+2342010000001'
const subtrunk_number = '+2342010000002'
await w.number(subtrunk_number, { route_kind: 'subtrunk', route_id: subtrunk_id })
await db
  .updateTable('number')
  .set({ route_kind: 'trunk', route_id: w.trunk_id })
  .where('e164', '=', trunk_number)
  .execute()

const SERVICES: Readonly<Record<ServiceType, Service>> = {
  trunk: { type: 'trunk', id: w.trunk_id },
  subtrunk: { type: 'subtrunk', id: subtrunk_id },
  voice_application: { type: 'voice_application', id: 'AP1' },
  automation: { type: 'automation', id: w.project_id },
}

interface Bound {
  readonly policy?: Partial<OutboundPolicyTable>
  readonly denies?: string
  /** The called number; an ordinary one when absent. */
  readonly called?: string
  readonly outbound_enabled?: 0 | 1
  /** The reason that refuses a call under this bound. */
  readonly refuses?: string
  /** How many calls at once pass before. */
  readonly passes?: number
  readonly holds?: (outcome: AdmissionOutcome) => boolean
}

const BOUNDS: Readonly<Record<string, Bound>> = {
  'concurrency 0': { policy: { concurrency: 0 }, refuses: 'concurrency_exceeded' },
  'concurrency 1': { policy: { concurrency: 1 }, refuses: 'concurrency_exceeded', passes: 1 },
  'one call per second': { policy: { cps: 1 }, refuses: 'cps_exceeded', passes: 1 },
  'daily spend': { policy: { daily_spend_limit_minor: 0 }, refuses: 'daily_spend_exceeded' },
  'destination rate': { policy: { max_destination_rate_minor: 0 }, refuses: 'rate_above_ceiling' },
  'no duration': { policy: { max_call_duration_seconds: 0 }, refuses: 'max_duration' },
  duration: {
    policy: { max_call_duration_seconds: 61 },
    holds: outcome => outcome.admitted && outcome.max_duration_seconds === 61,
  },
  'destination rules': { denies: DENIED, refuses: 'destination_denied' },
  'high-risk destination': { called: '+881612345678', refuses: 'destination_high_risk' },
  'outbound calls switched off': { outbound_enabled: 0, refuses: 'outbound_disabled' },
  recording: {
    policy: { recording_mode: 'all', recording_retention_days: 90 },
    holds: ({ recording }) => recording?.mode === 'all' && !recording.consented && recording.retention_days === 90,
  },
}

let store_ms = 100_000
/** A call of a way and service, one second after the last. */
function request(way: WayName, service: Service, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  const caller = service.type === 'subtrunk' ? subtrunk_number : trunk_number
  return w.request({ way, service, caller, transport: null, offer: null, store_ms, ...changes })
}

const release = (call_sid: string) =>
  releaseAdmission(db, { call_sid, answered: false, duration_seconds: 0, now_ms: NOW_MS })

/** Attaches a policy of this bound to a service for as long as `work` takes. */
async function under(bound: Bound, service: Service, work: () => Promise<void>): Promise<void> {
  const id = await w.policy(bound.policy, service)
  if (bound.denies) await w.rule(id, 'deny', bound.denies)
  const of_policy = db.updateTable('policy_attachment').where('policy_id', '=', id)
  await of_policy.set({ outbound_enabled: bound.outbound_enabled ?? 1 }).execute()
  await work()
  await db.deleteFrom('policy_attachment').where('policy_id', '=', id).execute()
  store_ms += 2000
}

const ways = Object.entries(WAYS) as [WayName, (typeof WAYS)[WayName]][]

t.test('the calls of every type of service have a way', async t => {
  const used = new Set(ways.flatMap(([, { services }]) => services as readonly ServiceType[]))
  t.same(
    SERVICE_TYPES.filter(type => !used.has(type)),
    [],
  )
})

for (const [way, { services }] of ways)
  for (const type of services)
    t.test(`${way} of a service of type ${type}: its policy holds`, async t => {
      const service = SERVICES[type]
      for (const [name, bound] of Object.entries(BOUNDS))
        await under(bound, service, async () => {
          const taken: string[] = []
          for (let count = bound.passes ?? 0; count > 0; count--) {
            const passing = request(way, service)
            t.ok((await takeAdmission(db, passing)).admitted, `${name}: a call within it passes`)
            taken.push(passing.call_sid)
          }
          const asked = request(way, service, bound.called === undefined ? {} : { called: bound.called })
          const outcome = await takeAdmission(db, asked)
          if (bound.refuses) t.match(outcome, { admitted: false, reason: bound.refuses }, name)
          if (bound.holds) t.ok(bound.holds(outcome), `${name}: ${JSON.stringify(outcome)}`)
          const held = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
          t.same(
            held.map(({ call_sid }) => call_sid),
            outcome.admitted ? [...taken, asked.call_sid] : taken,
            `${name}: a refused call holds nothing`,
          )
          for (const sid of [...taken, asked.call_sid]) await release(sid)
        })
    })

for (const [way, { services }] of ways)
  t.test(`${way}: a call is bound by its own service’s policy, not by another’s`, async t => {
    for (const type of services)
      for (const other of Object.values(SERVICES)) {
        const inherits = type === 'subtrunk' && other.type === 'trunk'
        if (other.type === type || inherits) continue
        await under({ policy: { concurrency: 0 } }, other, async () => {
          const asked = request(way, SERVICES[type])
          t.ok((await takeAdmission(db, asked)).admitted, `a policy of ${other.type} does not bind ${type}`)
          await release(asked.call_sid)
        })
      }
  })

t.test('no leg leaves without a way, or by a way of another kind of service', async t => {
  await t.rejects(takeAdmission(db, w.request({ way: null })), /no trunk makes a call by null/)
  for (const [way, { services }] of ways)
    for (const service of Object.values(SERVICES))
      if (!(services as readonly ServiceType[]).includes(service.type))
        await t.rejects(takeAdmission(db, request(way, service)), /makes a call by/, `${way} of ${service.type}`)
})

t.test('ceilings of a policy neither refuse nor count calls that are not outbound', async t => {
  for (const service of [SERVICES.trunk, SERVICES.subtrunk, SERVICES.voice_application])
    await under({ policy: { concurrency: 1, cps: 1 } }, service, async () => {
      const own = service.type === 'subtrunk' ? subtrunk_number : trunk_number
      const sids: string[] = []
      for (const part of ['inbound', 'on_net', 'inbound'] as const) {
        if (part === 'on_net' && service.type === 'voice_application') continue
        const ends = part === 'inbound' ? { called: own, caller: '+2348031234567' } : { caller: own, called: own }
        const asked = request('peer', service, { part, way: null, ...ends })
        t.ok((await takeAdmission(db, asked)).admitted, `${part} of ${service.type}`)
        sids.push(asked.call_sid)
      }
      const out = request(service.type === 'voice_application' ? 'create' : 'peer', service)
      t.ok((await takeAdmission(db, out)).admitted, 'the first outbound call has the slot')
      for (const sid of [...sids, out.call_sid]) await release(sid)
    })
})

t.test('a service without an attachment has the default policy of its project', async t => {
  const standard = await w.policy({ system_default: 1, concurrency: 0 }, null)
  for (const [way, { services }] of ways)
    for (const type of services) {
      t.match(
        await takeAdmission(db, request(way, SERVICES[type])),
        { reason: 'concurrency_exceeded' },
        `${way}, ${type}`,
      )
      if (type === 'subtrunk') continue
      await under({ policy: {} }, SERVICES[type], async () => {
        const asked = request(way, SERVICES[type])
        t.ok((await takeAdmission(db, asked)).admitted, `${way}, ${type} with its own`)
        await release(asked.call_sid)
      })
    }
  await db.updateTable('outbound_policy').set({ status: 'archived' }).where('id', '=', standard).execute()
})

t.test('a policy records with the consent of the project', async t => {
  const consent = { project_id: w.project_id, accepted_at: 'x', accepted_by: 'x', terms_version: '1' }
  await w.state.transaction(trx => acceptRecordingConsent(trx, consent))
  for (const [way, { services }] of ways)
    for (const type of services)
      await under({ policy: { recording_mode: 'all' } }, SERVICES[type], async () => {
        const asked = request(way, SERVICES[type])
        t.match(await takeAdmission(db, asked), { recording: { mode: 'all', consented: true } }, `${way}, ${type}`)
        await release(asked.call_sid)
      })
})

t.test('a number that was taken back or released is presented no more, on any way, whatever is configured', async t => {
  const set = (e164: string, changes: object) =>
    db.updateTable('number').set(changes).where('e164', '=', e164).execute()
  const other = { project_id: 'prj_other', status: 'held' }
  const lost = {
    'taken back': { project_id: null, status: 'available' },
    released: { project_id: null, status: 'quarantined' },
    'given to another project': other,
  }
  await db
    .insertInto('trunk_setting')
    .values({ trunk_id: w.trunk_id, country: 'NG', default_caller: trunk_number })
    .execute()
  const stranger = { caller: '+442071234567' }
  const standing = await takeAdmission(db, request('peer', SERVICES.trunk, stranger), { dry_run: true })
  t.match(standing, { admitted: true, caller_e164: trunk_number }, 'the default caller stands in for a stranger')
  for (const [how, changes] of Object.entries(lost)) {
    for (const number of [trunk_number, subtrunk_number]) await set(number, changes)
    for (const [way, { over, services }] of ways)
      for (const type of over === 'network' ? services : [])
        for (const more of [{}, stranger]) {
          const outcome = await takeAdmission(db, request(way, SERVICES[type], more), { dry_run: true })
          t.match(outcome, { admitted: false, reason: 'caller_not_owned' }, `${how}: ${way} of ${type}`)
        }
    for (const number of [trunk_number, subtrunk_number])
      await set(number, { project_id: w.project_id, status: 'held' })
  }
})
