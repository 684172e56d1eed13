import { attestationOf } from '../../core/domain/identity/index.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import { userOrHost } from '../../core/domain/sip/address.ts'
import {
  type CallOutcome,
  judgeCall,
  judgeHeard,
  judgeSent,
  type MediaFacts,
} from '../../core/domain/trunk-tests/index.ts'
import { delay, iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { takeAdmission } from '../../core/state/calls/leases.ts'
import { type CallRow, insertCall, type NewCall, NOTHING_YET } from '../../core/state/calls/running-calls.ts'
import type { TestRunRow } from '../../core/state/configuration/trunk-tests.ts'
import { admitQueued, limitsOf } from '../admission/admit-queued.ts'
import type { AdmissionContext } from '../admission/context.ts'
import type { Ask } from '../admission/gate.ts'
import { endUnplaced } from '../admission/unplaced.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import type { Leg } from '../b2bua/leg.ts'
import { OutboundCall } from '../b2bua/outbound-call.ts'
import { deliveryHops, egressHops, type Outgoing, ownTargets } from '../b2bua/routes.ts'
import { holdsNumber, type Target, type TrunkConfig } from '../trunks/snapshot.ts'
import type { TestReport } from './report.ts'
import { targetFault } from './target-faults.ts'

/**
 * Calls that test a trunk. They are marked, and left out of the customer's metrics (design section 4). Admission treats
 * them like any other call: they take slots and cost money, so that tests cannot bypass a trunk's ceilings.
 */

const RING_MS = 20_000
const LISTEN_MS = 3000
/** The maximum duration of a test call. */
const MAX_SECONDS = 30
const MAX_TARGETS = 10

export interface TestCall {
  readonly sid: string
  readonly summary: string
}

/** Places a short call to each target, and measures media both ways. */
export async function probeTargets(
  ctx: AdmissionContext,
  trunk: TrunkConfig,
  run: TestRunRow,
  report: TestReport,
): Promise<TestCall | null> {
  const caller = await presented(ctx, trunk)
  const called = run.destination ?? caller
  const { direction } = await ctx.state.db
    .selectFrom('trunk')
    .select('direction')
    .where('id', '=', trunk.id)
    .executeTakeFirstOrThrow()
  const planned = []
  for (const target of trunk.targets.filter(target => target.enabled).slice(0, MAX_TARGETS))
    planned.push({ target, checks: await planCall(report, target.uri, target.id) })
  let last: TestCall | null = null
  for (const { target, checks } of planned) {
    const hops = (outgoing: Outgoing) => deliveryHops(ctx, trunk, outgoing).filter(hop => hop.target_id === target.id)
    const ask: TestAsk = {
      ...(direction === 'outbound' ? { part: 'outbound', way: 'target_test' } : { part: 'inbound', way: null }),
      called: userOrHost(target.uri),
      caller,
      own_targets: null,
    }
    last = await probe(ctx, { trunk, called, caller, hops, ask, targets: [target], where: target.uri, checks })
  }
  return last
}

/** Places one call to the destination, by the same route as any call of the trunk to the public network. */
export async function testCall(
  ctx: AdmissionContext,
  trunk: TrunkConfig,
  run: TestRunRow,
  report: TestReport,
): Promise<TestCall | null> {
  const admission = await report.plan('the destination may be called', null)
  const called = run.destination ?? ''
  const caller = await presented(ctx, trunk)
  const checks = await planCall(report, called, null)
  const ask: TestAsk = { part: 'outbound', way: 'trunk_test', called, caller, own_targets: ownTargets(ctx, trunk) }
  const request = { ...whole(trunk, ask), call_sid: `test-${run.id}`, node_id: ctx.node_id, now_ms: ctx.clock.now() }
  const outcome = await takeAdmission(ctx.state.db, request, { dry_run: true })
  const verdict = await admission(async () =>
    outcome.admitted
      ? { state: 'passed', summary: `A call of the trunk to ${called} is admitted.` }
      : { state: 'failed', summary: `${outcome.sentence} (${outcome.reason}).`, mend: 'Mend that first.' },
  )
  const project = ctx.snapshot().projects.get(trunk.project_id)
  if (verdict.state === 'failed' || !project) {
    for (const check of Object.values(checks)) await check(async () => NOT_CALLED)
    return null
  }
  const hops = (outgoing: Outgoing) => egressHops(ctx, { project, trunk, outgoing })
  const targets = trunk.targets.filter(target => target.enabled).slice(0, MAX_TARGETS)
  return probe(ctx, { trunk, called, caller, hops, ask, targets, where: called, checks })
}

/** The part of a test call's admission request that does not follow from its trunk. */
type TestAsk = Pick<Ask, 'part' | 'way' | 'called' | 'caller' | 'own_targets'>

const whole = (trunk: TrunkConfig, ask: TestAsk): Omit<Ask, 'call_sid'> => ({
  ...ask,
  project_id: trunk.project_id,
  service: { type: 'trunk', id: trunk.id },
  transport: null,
  offer: null,
})

const NOT_CALLED = { state: 'skipped', summary: 'Not called.' } as const
const NO_MEDIA = { state: 'skipped', summary: 'There was no call to measure.' } as const

const planCall = async (report: TestReport, where: string, target_ref: string | null) => ({
  answered: await report.plan(`${where} answers a call`, target_ref),
  heard: await report.plan(`media from ${where}`, target_ref),
  sent: await report.plan(`media to ${where}`, target_ref),
})

/** Returns the number that test calls present: the trunk's default caller, else a number of the trunk or project. */
async function presented(ctx: AdmissionContext, trunk: TrunkConfig): Promise<string> {
  const own = [...ctx.snapshot().numbers.values()].filter(
    number => number.project_id === trunk.project_id && number.status === 'held',
  )
  const setting = await ctx.state.db
    .selectFrom('trunk_setting')
    .select('default_caller')
    .where('trunk_id', '=', trunk.id)
    .executeTakeFirst()
  const standard = setting?.default_caller ?? null
  return (
    (holdsNumber(ctx.snapshot(), trunk.project_id, standard) ? standard : null) ??
    own.find(number => number.route_kind === 'trunk' && number.route_id === trunk.id)?.e164 ??
    own[0]?.e164 ??
    '+999'
  )
}

async function probe(
  ctx: AdmissionContext,
  options: {
    readonly trunk: TrunkConfig
    readonly called: string
    readonly caller: string
    readonly hops: (outgoing: Outgoing) => HuntHop[]
    readonly ask: TestAsk
    /** The targets that such a call tries first. */
    readonly targets: readonly Target[]
    readonly where: string
    readonly checks: Awaited<ReturnType<typeof planCall>>
  },
): Promise<TestCall> {
  const { where, checks } = options
  let media: MediaFacts | null = null
  let outcome: CallOutcome = { answered: false, sip_code: null, reason: null, detail: 'not called' }
  const sid = newId.call()
  const signaling = await checks.answered(async () => {
    const done = await place(ctx, sid, options)
    media = done.media
    outcome = done.outcome
    // Our own side reports an unreachable peer as silence or 503. Then the finding is why it is unreachable.
    return (mayBeUnreached(outcome) ? await targetFault(ctx, options.targets) : null) ?? judgeCall(where, outcome)
  })
  const heard = media as MediaFacts | null
  const first = await checks.heard(async () => (heard ? judgeHeard(where, heard) : NO_MEDIA))
  await checks.sent(async () => (heard ? judgeSent(where, heard) : NO_MEDIA))
  const told = outcome as CallOutcome
  const summary = told.answered ? `Answered with ${told.codec ?? 'no codec'}. ${first.summary}` : signaling.summary
  return { sid, summary }
}

const mayBeUnreached = (outcome: CallOutcome): boolean =>
  !outcome.answered && (outcome.sip_code === null || outcome.sip_code === 408 || outcome.sip_code === 503)

interface Done {
  readonly outcome: CallOutcome
  readonly media: MediaFacts | null
}

async function place(
  ctx: AdmissionContext,
  sid: string,
  options: {
    readonly trunk: TrunkConfig
    readonly called: string
    readonly caller: string
    readonly hops: (outgoing: Outgoing) => HuntHop[]
    readonly ask: TestAsk
  },
): Promise<Done> {
  const { called, caller } = options
  const row = await insertTestCall(ctx, sid, options)
  const decided = await admitQueued(ctx, row, [whole(options.trunk, options.ask)])
  if (!decided.admitted) {
    const { reason, sentence: detail } = decided
    return { outcome: { answered: false, sip_code: sipRefusal(reason).code, reason, detail }, media: null }
  }
  const session = await ctx.media.open(sid, row.project_id)
  if (!session) {
    await endUnplaced(ctx, row, { cause: 'media_unavailable' })
    const detail = 'our media worker is not there'
    return { outcome: { answered: false, sip_code: null, reason: 'media_unavailable', detail }, media: null }
  }
  const hops = options.hops({
    call_sid: sid,
    called_e164: called,
    caller_e164: caller,
    restricted: false,
    caller_name: 'Strowger test',
    max_forwards: 70,
    diverters: [],
    passed: {},
    attest: attestationOf(decided.caller_ownership, null),
  })
  return new Promise(resolve => {
    let media: MediaFacts | null = null
    let codec: string | null = null
    let answered = false
    const call: OutboundCall = new OutboundCall(ctx, {
      row,
      session,
      limits: limitsOf(decided, MAX_SECONDS),
      watcher: {
        answered: leg => {
          answered = true
          codec = leg.codec
          measure(ctx, leg)
            .then(facts => {
              media = facts
            })
            .catch(err => call.log.info({ err }, 'a test call could not be measured'))
            .finally(() => void call.end({ cause: 'api' }))
        },
        ended: ({ sip_code, reason }) => {
          const detail = call.detail ?? reason ?? String(sip_code)
          const outcome = answered ? { answered, codec } : { answered, sip_code, reason, detail }
          resolve({ outcome: outcome as CallOutcome, media })
        },
      },
    })
    call.begin(hops, { ring_ms: RING_MS, prefer: null })
  })
}

function insertTestCall(
  ctx: AdmissionContext,
  sid: string,
  { trunk, called, caller }: { readonly trunk: TrunkConfig; readonly called: string; readonly caller: string },
): Promise<CallRow> {
  const now_ms = ctx.clock.now()
  const call: NewCall = {
    sid,
    project_id: trunk.project_id,
    account_sid: ctx.snapshot().accounts.get(trunk.project_id)?.account_sid ?? null,
    parent_call_sid: null,
    origin: 'test',
    direction: 'outbound',
    from_number: caller,
    to_number: called,
    status: 'queued',
    trunk_id: trunk.id,
    carrier_id: null,
    number_id: null,
    application_id: null,
    sip_call_id: null,
    request: '{}',
    node_id: ctx.node_id,
    queued_at: iso(now_ms),
    ...NOTHING_YET,
  }
  return insertCall(ctx.state.db, call, now_ms)
}

/** Plays a tone for 3 s and measures the media both ways. */
async function measure(ctx: AdmissionContext, leg: Leg): Promise<MediaFacts> {
  const begun_ms = ctx.clock.monotonic_ms()
  await ctx.media.request('play.start', {
    leg_id: leg.id,
    play_id: `${leg.id}-test`,
    sources: [{ kind: 'tone', hz: [440], on_ms: 1000, off_ms: 0, total_ms: LISTEN_MS + 2000 }],
    loop: 1,
  })
  await delay(ctx.clock, LISTEN_MS)
  const stats = await ctx.media.request('leg.stats', { leg_id: leg.id })
  const address = (host: string | null, port: number | null) => (host === null ? null : `${host}:${port ?? ''}`)
  return {
    seconds: Math.round((ctx.clock.monotonic_ms() - begun_ms) / 1000),
    packets_received: stats.packets_received,
    packets_sent: stats.packets_sent,
    packets_lost: stats.packets_lost,
    jitter_ms: stats.jitter_ms,
    mos: stats.mos,
    remote_packets_lost: stats.remote_packets_lost,
    remote: address(stats.remote_address, stats.remote_port),
    signalled: address(stats.signalled_address, stats.signalled_port),
  }
}
