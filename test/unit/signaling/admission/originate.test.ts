import pino from 'pino'
import { inviteParticipant } from '../../../../control/live/invitations.ts'
import { findConference, listParticipants, openConference } from '../../../../core/state/calls/conferences.ts'
import { readConfiguration } from '../../../../core/state/configuration/snapshot.ts'
import type { AdmissionContext } from '../../../../signaling/admission/context.ts'
import { createAdmissionGate } from '../../../../signaling/admission/gate.ts'
import { Originator } from '../../../../signaling/admission/originate.ts'
import { compileSnapshot, EMPTY_SNAPSHOT } from '../../../../signaling/trunks/snapshot.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'

const FROM = '+2342010000001'
const TO = '+2348031234567'
const CONFERENCE = `CF${'1'.repeat(32)}`
const ACCOUNT = `AC${'1'.repeat(32)}`

t.test('who is added to a conference passes policy, ceiling and money: what they refuse is not placed', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { db } = w.state
  const { project_id } = w
  const at = new Date(NOW_MS).toISOString()
  await db
    .insertInto('voice_account')
    .values({
      ...{ project_id, account_sid: ACCOUNT, auth_token_sealed: '', key_id: 'k', status: 'active' },
      ...{ call_event_history: 'enabled', revision: 1, created_at: at },
    })
    .execute()
  await db.updateTable('number').set({ route_kind: 'trunk', route_id: w.trunk_id }).where('e164', '=', FROM).execute()
  const room = { sid: CONFERENCE, project_id, account_sid: ACCOUNT, friendly_name: 'board', node_id: 'node_1' }
  await w.state.transaction(trx => openConference(trx, room, NOW_MS))
  const found = await findConference(db, project_id, CONFERENCE)
  if (!found) throw new Error('the conference is not there')
  const conference = { ...found, live: true }

  const { snapshot } = compileSnapshot(await readConfiguration(w.state), EMPTY_SNAPSHOT)
  const timer = () => ({ cancel: () => undefined })
  const clock = { now: () => NOW_MS, monotonic_ms: () => 0, after: timer, every: timer }
  /** The calls whose media was opened, which comes before an INVITE. */
  const opened: string[] = []
  const originator = new Originator({
    ...{ node_id: 'node_1', clock, state: w.state, gate: createAdmissionGate('node_1', clock) },
    ...{
      log: pino({ level: 'silent' }),
      bus: { ring: () => undefined },
      metrics: { refusals: { inc: () => undefined } },
    },
    ...{ snapshot: () => snapshot, draining: () => false, health: { address: () => null } },
    sip: { connected: true },
    media: {
      connected: true,
      open: async (sid: string) => {
        opened.push(sid)
        return null
      },
    },
  } as unknown as AdmissionContext)

  const how = { label: 'guest', muted: false, start_on_enter: true, end_on_exit: false, timeout_seconds: 60 }
  const asked = () =>
    w.state.transaction(trx => {
      const asking = { trx, services: { settings: {} as never }, project_id, now_ms: NOW_MS }
      return inviteParticipant(asking, conference, { from: FROM, to: TO, ...how })
    })
  const placed = async (made: Awaited<ReturnType<typeof asked>>) => {
    if (!('call_sid' in made)) throw new Error(JSON.stringify(made))
    const call = () => db.selectFrom('call').selectAll().where('sid', '=', made.call_sid).executeTakeFirstOrThrow()
    await originator.originate(await call())
    const leases = await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute()
    const { status, reason } = await call()
    return { status, reason, leases: leases.length, participants: (await listParticipants(db, CONFERENCE)).length }
  }
  const rows = async () => (await db.selectFrom('call').select('sid').execute()).length

  t.match(await placed(await asked()), { reason: 'media_unavailable' }, 'without a bound it is admitted')
  t.equal(opened.splice(0).length, 1, 'and its media is opened')

  const service = { type: 'automation', id: project_id }
  const attached = (changes: object = {}) => w.policy(changes, service)
  const bounds: Readonly<Record<string, () => Promise<unknown>>> = {
    destination_denied: async () => w.rule(await attached(), 'deny', '234803'),
    concurrency_exceeded: () => attached({ concurrency: 0 }),
    daily_spend_exceeded: () => attached({ daily_spend_limit_minor: 0 }),
    balance_exhausted: () => w.prepaid(0),
  }
  for (const [reason, bound] of Object.entries(bounds)) {
    const before = await asked()
    await bound()
    const refused = { status: 'failed', reason, leases: 0, participants: 0 }
    t.strictSame(await placed(before), refused, 'asked for before the bound')
    const known = await rows()
    t.match(
      await asked(),
      { refused: 'validation_failed', errors: [{ pointer: '/to', message: /is refused: / }] },
      reason,
    )
    t.equal(await rows(), known, 'a request that is refused leaves no row')
    await db.deleteFrom('policy_attachment').execute()
  }
  t.strictSame(opened, [], 'no media, and so no INVITE')
})
