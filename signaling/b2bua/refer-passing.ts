import { sameTenant } from '../../core/domain/identity/index.ts'
import { readToken, statusIn } from '../../core/domain/sip/values.ts'
import type { Log } from '../../core/runtime/log.ts'
import { statusText } from '../drachtio/messages.ts'
import type { Dialog, InboundRequest } from '../drachtio/types.ts'
import type { TrunkConfig } from '../trunks/snapshot.ts'
import { notifyReferrer } from './refer-notify.ts'
import type { ReferTarget } from './refer-to.ts'

/**
 * Transfers that are passed on: the other side of the call is asked to call the target itself (RFC 3515), by a call
 * that is admitted when it comes. Only another leg of the same tenant is asked: a carrier and a rival's PBX would call
 * any number for whoever asks.
 */

const SIPFRAG: ReadonlySet<string> = new Set(['message/sipfrag'])

/** A side of a call: what passing on needs of a Party. */
interface Side {
  readonly call: {
    readonly ctx: { snapshot(): { readonly trunks: ReadonlyMap<string, TrunkConfig> } }
    readonly log: Pick<Log, 'info'>
    readonly pairing: { readonly referrers: Map<Side['leg'], Side['leg']> }
    event(kind: 'state', number: null, detail: Readonly<Record<string, unknown>>): void
  }
  readonly leg: { readonly id: string; readonly trunk_id: string | null; readonly sipDialog: Dialog | null }
}

/** Passes a REFER on, and its answer back. */
export async function passRefer(transferor: Side, transferee: Side, request: InboundRequest, target: ReferTarget) {
  const { call, leg } = transferee
  const { trunks } = call.ctx.snapshot()
  const [own, theirs] = [trunks.get(transferor.leg.trunk_id ?? ''), trunks.get(leg.trunk_id ?? '')]
  const dialog = leg.sipDialog
  if (!own || !theirs || !sameTenant(own, theirs) || theirs.transfers === 'refuse' || !dialog) {
    request.respond(603, { headers: { Warning: '399 strowger "the other side is not asked to transfer"' } })
    call.event('state', null, { what: 'transfer_refused', by: transferor.leg.id })
    return
  }
  const by = request.header('referred-by')
  const headers = { 'Refer-To': target.raw, ...(by === null ? {} : { 'Referred-By': by }) }
  const { referrers } = call.pairing
  referrers.set(leg, transferor.leg)
  call.event('state', null, { what: 'transfer_passed', by: transferor.leg.id, refer_to: target.raw })
  try {
    const { status } = await dialog.request('REFER', { headers })
    if (status >= 300) referrers.delete(leg)
    request.respond(status >= 200 && status < 300 ? 202 : status)
  } catch (err) {
    referrers.delete(leg)
    call.log.info({ err }, 'a REFER that was passed on was not answered')
    request.respond(503)
  }
}

/** Passes the NOTIFY of a leg that was asked on to the one who asked; false when the leg was not asked. */
export function passNotify({ call, leg }: Side, request: InboundRequest): boolean {
  const { referrers } = call.pairing
  const referrer = referrers.get(leg)
  if (!referrer || readToken(request.header('event') ?? request.header('o') ?? 'refer') !== 'refer') return false
  request.respond(200)
  const code = statusIn(request.content(SIPFRAG).parts[0]?.content ?? '')
  const over = readToken(request.header('subscription-state')) === 'terminated' || (code !== null && code >= 200)
  if (over) referrers.delete(leg)
  const dialog = referrer.sipDialog
  // Some peers end the subscription without a sipfrag. The outcome is unknown then, and the referrer waits for one.
  const told = code ?? (over ? 503 : null)
  if (!dialog || told === null) return true
  const state = over ? 'terminated;reason=noresource' : 'active;expires=60'
  notifyReferrer(dialog, `${told} ${statusText(told)}`, state).catch(err =>
    call.log.info({ err }, 'a NOTIFY could not be passed on'),
  )
  return true
}
