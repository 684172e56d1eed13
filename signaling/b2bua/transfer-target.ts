import { parseNumber } from '../../core/domain/numbers/parse.ts'
import { type Reason, sipRefusal } from '../../core/domain/reasons/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { type CallRow, type Decided, NOTHING_YET } from '../../core/state/running-calls.ts'
import type { Ask } from '../admission/gate.ts'
import { hopsToWorld, limitsOf, notAdmitted } from '../admission/place.ts'
import type { ScriptEntry } from '../scripts/script.ts'
import type { NumberConfig, TrunkConfig } from '../trunks/snapshot.ts'
import type { Party } from './call.ts'
import type { Context } from './context.ts'
import type { HuntHop } from './hunt.ts'
import { OutboundCall, type OutboundWatcher } from './outbound-call.ts'
import type { ReferTarget } from './refer-to.ts'
import { deliveryHops, type Outgoing, ownTargets } from './routes.ts'

/** Where a transfer goes: the same ways, and the same gate, as an INVITE of the transferor's trunk. */

export type Transferred = OutboundCall

export type Placed =
  | { readonly kind: 'placed' }
  /** The number is an application's: its document runs on the leg that stays. */
  | { readonly kind: 'script'; readonly entry: ScriptEntry }
  | { readonly kind: 'refused'; readonly sip_code: number; readonly reason: Reason }

interface Asked {
  readonly target: ReferTarget
  readonly transferor: Party
  readonly transferee: Party
  readonly trunk_id: string
  readonly watcher: OutboundWatcher
  readonly created: (child: OutboundCall) => void
}

type TransferAsk = Omit<Ask, 'call_sid'>

const COUNTRY = 'NG'
const RING_LIMIT_MS = 60_000
const HOPS_OF_OUR_OWN = 70

export async function placeTransferred(asked: Asked): Promise<Placed> {
  const { ctx } = asked.transferee.call
  const trunk = ctx.snapshot().trunks.get(asked.trunk_id)
  if (!trunk) return refused('trunk_disabled')
  const e164 = parseNumber(asked.target.number, COUNTRY)?.e164 ?? null
  const number = e164 === null ? undefined : ctx.snapshot().numbers.get(e164)
  if (!number || number.status === 'available') return toWorld(asked, trunk)
  if (number.status === 'quarantined') return refused('number_quarantined')
  if (number.route_kind === 'voice_application') return toApplication(asked, number)
  return toTrunk(asked, trunk, number)
}

async function toWorld(asked: Asked, trunk: TrunkConfig): Promise<Placed> {
  const { ctx } = asked.transferee.call
  const { target } = asked
  const shown = presented(ctx, asked)
  const ask: TransferAsk = {
    part: 'outbound',
    project_id: trunk.project_id,
    service: { type: 'trunk', id: trunk.id },
    called: target.number,
    caller: shown.caller,
    forwarded_caller: shown.forwarded,
    transport: null,
    offer: null,
    own_targets: ownTargets(ctx, trunk),
  }
  return place(asked, trunk, 'outbound', [ask], (sid, outcome) =>
    hopsToWorld(ctx, {
      project_id: trunk.project_id,
      trunk,
      outgoing: outgoing(asked, sid, outcome, shown.diversion),
    }),
  )
}

async function toTrunk(asked: Asked, trunk: TrunkConfig, number: NumberConfig): Promise<Placed> {
  const { ctx } = asked.transferee.call
  const snapshot = ctx.snapshot()
  const { route_kind, route_id, project_id } = number
  if (route_id === null || project_id === null || (route_kind !== 'trunk' && route_kind !== 'subtrunk'))
    return refused('number_unrouted')
  const to = snapshot.trunks.get(route_kind === 'trunk' ? route_id : (snapshot.trunk_of_subtrunk.get(route_id) ?? ''))
  if (!to) return refused('number_unrouted')
  const shown = presented(ctx, asked)
  const common = {
    called: asked.target.number,
    caller: shown.caller,
    forwarded_caller: shown.forwarded,
    transport: null,
    offer: null,
  }
  const asks: TransferAsk[] = [
    {
      ...common,
      part: 'on_net',
      project_id: trunk.project_id,
      service: { type: 'trunk', id: trunk.id },
      own_targets: ownTargets(ctx, trunk),
    },
    { ...common, part: 'inbound', project_id, service: { type: route_kind, id: route_id }, own_targets: null },
  ]
  return place(asked, trunk, 'inbound', asks, (sid, outcome) =>
    deliveryHops(ctx, to, outgoing(asked, sid, outcome, shown.diversion)),
  )
}

/** The application's document for the leg that stays; it counts against the application like a call to it. */
async function toApplication(asked: Asked, number: NumberConfig): Promise<Placed> {
  const { call } = asked.transferee
  const { ctx } = call
  const application = number.route_id === null ? undefined : ctx.snapshot().applications.get(number.route_id)
  if (!application) return refused('number_unrouted')
  const outcome = await ctx.gate.take(ctx.state.db, {
    call_sid: call.sid,
    part: 'inbound',
    project_id: application.project_id,
    service: { type: 'voice_application', id: application.id },
    called: number.e164,
    caller: presented(ctx, asked).caller,
    transport: null,
    offer: null,
    own_targets: null,
  })
  if (!outcome.admitted) return refused(outcome.reason)
  const { voice_url: url, voice_method: method, fallback_url, fallback_method } = application
  const fallback = fallback_url ? { url: fallback_url, method: fallback_method } : null
  return { kind: 'script', entry: { kind: 'call', entry: { kind: 'request', url, method }, fallback } }
}

async function place(
  asked: Asked,
  trunk: TrunkConfig,
  direction: 'outbound' | 'inbound',
  asks: readonly TransferAsk[],
  hopsOf: (sid: string, outcome: Decided) => HuntHop[],
): Promise<Placed> {
  const { call, leg } = asked.transferee
  const { ctx } = call
  const row = rowOf(asked, trunk, direction)
  const { sid: call_sid } = row
  const wanted = { call: row, asks: asks.map(ask => ({ ...ask, call_sid })) }
  const { row: inserted, decided, told } = await ctx.gate.admitCall(ctx.state.db, wanted)
  if (!decided.admitted) {
    notAdmitted(ctx, call_sid, decided.reason, told)
    return refused(decided.reason)
  }
  leg.session.hold()
  const child = new OutboundCall(ctx, {
    row: inserted,
    session: leg.session,
    limits: limitsOf(decided, trunk.max_call_duration_seconds || null),
    watcher: asked.watcher,
  })
  asked.created(child)
  child.begin(hopsOf(call_sid, decided), { ring_ms: RING_LIMIT_MS, prefer: leg })
  return { kind: 'placed' }
}

interface Presented {
  readonly caller: string
  /** The caller of an inbound call, whom its trunk forwards (design section 4, "Caller identity when forwarding"). */
  readonly forwarded: boolean
  /** Who transfers: the number that was called first (RFC 5806). */
  readonly diversion: string | null
}

/** Whom the target sees: of a call that came in, its caller; else the transferor's own number. */
function presented(ctx: Context, { transferor, transferee, trunk_id }: Asked): Presented {
  const { numbers, trunks } = ctx.snapshot()
  const project_id = trunks.get(trunk_id)?.project_id
  const { from_number, to_number, direction } = transferor.call.row_now
  const isOwn = (number: string): boolean => {
    const known = numbers.get(parseNumber(number, COUNTRY)?.e164 ?? number)
    return known?.project_id === project_id
  }
  const inbound = direction === 'inbound' && transferor.call === transferee.call && isOwn(to_number)
  if (inbound && !isOwn(from_number)) return { caller: from_number, forwarded: true, diversion: to_number }
  const own = [from_number, to_number].find(isOwn) ?? from_number
  return { caller: own, forwarded: false, diversion: isOwn(own) ? own : null }
}

function outgoing(asked: Asked, sid: string, outcome: Decided, diversion: string | null): Outgoing {
  const { target } = asked
  return {
    call_sid: sid,
    called_e164: outcome.called?.e164 ?? target.number,
    caller_e164: outcome.caller_e164 ?? presented(asked.transferee.call.ctx, asked).caller,
    restricted: false,
    caller_name: null,
    max_forwards: HOPS_OF_OUR_OWN,
    diversion: diversion === null ? null : (parseNumber(diversion, COUNTRY)?.e164 ?? null),
    passed: target.headers,
  }
}

function rowOf(asked: Asked, trunk: TrunkConfig, direction: 'outbound' | 'inbound') {
  const { call } = asked.transferee
  const { ctx } = call
  const at = iso(ctx.clock.now())
  return {
    sid: newId.call(),
    project_id: trunk.project_id,
    account_sid: ctx.snapshot().accounts.get(trunk.project_id)?.account_sid ?? null,
    parent_call_sid: asked.transferor.call.sid,
    origin: 'trunk' as const,
    direction,
    from_number: presented(ctx, asked).caller,
    to_number: parseNumber(asked.target.number, COUNTRY)?.e164 ?? asked.target.number,
    status: 'ringing' as const,
    trunk_id: trunk.id,
    carrier_id: null,
    number_id: null,
    application_id: null,
    sip_call_id: null,
    request: null,
    node_id: ctx.node_id,
    queued_at: at,
    ...NOTHING_YET,
  } satisfies Omit<CallRow, 'position' | 'updated_at'>
}

const refused = (reason: Reason): Placed => ({ kind: 'refused', sip_code: sipRefusal(reason).code, reason })
