import type { Ending } from '../../core/domain/calls/endings.ts'
import { sipRefusal } from '../../core/domain/reasons/index.ts'
import { readToken } from '../../core/domain/sip/values.ts'
import { statusText } from '../drachtio/messages.ts'
import type { Dialog, InboundRequest } from '../drachtio/types.ts'
import type { Call, Party } from './call.ts'
import type { Leg } from './leg.ts'
import type { LegWaiter } from './pairing.ts'
import { findDialog, joinLegs, pairLegs, whenSettled } from './partners.ts'
import { notifyReferrer } from './refer-notify.ts'
import { passRefer } from './refer-passing.ts'
import { isNamed, type ReferTarget, type ReplacedDialog, readReferTo } from './refer-to.ts'
import { refusalCode } from './refusal.ts'
import { Ringback } from './ringback.ts'

/**
 * Transfers that a trunk's peer requests by REFER within a call of two legs (RFC 3515, RFC 5589). We carry out the
 * REFER: we call the target or take over a dialog (RFC 3891), and join its media to the leg that stays. That leg's
 * dialog does not change. The transferor is notified by NOTIFY and then released.
 */

/** The lifetime of the subscription, which the first NOTIFY states: longer than any target may ring. */
const SUBSCRIPTION_SECONDS = 90

/**
 * Answers the REFER, and begins the transfer unless it is refused. A PBX that answers and transfers at once sends its
 * REFER while we still answer the caller: that REFER waits until there is a caller to transfer.
 */
export function transferAsked(transferor: Party, request: InboundRequest): void {
  const { call, leg } = transferor
  if (transfersRefused(transferor, request)) return
  if (call.answered || call.ended || !leg.accepted) {
    consider(transferor, request)
    return
  }
  call.settled
    .then(() => (leg.ended ? request.respond(481) : consider(transferor, request)))
    .catch(err => call.log.error({ err }, 'a REFER could not be answered'))
}

/** Refuses a REFER of a peer whose trunk has no transfers, also in the calls of scripts. */
export function transfersRefused({ call, leg }: Party, request: InboundRequest): boolean {
  const trunk = leg.trunk_id === null ? undefined : call.ctx.snapshot().trunks.get(leg.trunk_id)
  if (trunk?.transfers !== 'refuse') return false
  request.respond(603, { headers: { Warning: '399 strowger "the trunk refuses transfers"' } })
  call.event('state', null, { what: 'transfer_refused', by: leg.id })
  return true
}

function consider(transferor: Party, request: InboundRequest): void {
  const { call, leg } = transferor
  const trunk = call.ctx.snapshot().trunks.get(leg.trunk_id ?? '')
  const reading = readReferTo(request.header('refer-to') ?? request.header('r'), trunk?.country)
  const transferee = call.pairing.peerOf(leg)
  const refused = 'refused' in reading ? reading.refused : refusal(transferor, transferee)
  if ('refused' in reading || !transferee || leg.trunk_id === null || refused !== null) {
    request.respond(refused ?? 603, { headers: headersOf(refused, reading) })
    return
  }
  // A Refer-To with Replaces names a dialog with us, which the other side does not know.
  if (trunk?.transfers === 'pass' && reading.target.replaces === null) {
    void passRefer(transferor, transferee, request, reading.target)
    return
  }
  // RFC 4488: the transferor may ask for no subscription.
  const silent = readToken(request.header('refer-sub')) === 'false'
  request.respond(202, silent ? { headers: { 'Refer-Sub': 'false' } } : {})
  const { target } = reading
  const by = request.header('referred-by')
  transferee.call.event('state', null, {
    what: 'transfer_asked',
    by: leg.id,
    // The Refer-To of another tenant's peer would reveal that tenant's contacts and addresses.
    ...(leg.foreign ? {} : { refer_to: target.raw }),
    ...(by === null || leg.foreign ? {} : { referred_by: by }),
  })
  new Transfer(transferor, transferee, leg.trunk_id, silent).begin(target)
}

const headersOf = (
  refused: number | null,
  reading: ReturnType<typeof readReferTo>,
): Readonly<Record<string, string>> =>
  'context' in reading
    ? sipRefusal('number_incomplete', { value: reading.number, limit: reading.context }).headers
    : refused === 503
      ? { 'Retry-After': '10' }
      : {}

/**
 * Returns the code that refuses a REFER, or null: 603 when the leg is unanswered, has no trunk or has no peer to
 * transfer; 491 while another transfer runs; 503 while the node drains.
 */
function refusal({ call, leg }: Party, transferee: Party | null): 603 | 491 | 503 | null {
  if (leg.trunk_id === null || !transferee || !leg.answered) return 603
  if (call.pairing.transfer || transferee.call.pairing.transfer) return 491
  return call.ctx.draining() ? 503 : null
}

class Transfer implements LegWaiter {
  readonly #transferor: Party
  readonly #transferee: Party
  readonly #trunk_id: string
  readonly #silent: boolean
  #child: Call | null = null
  /** The transferor has hung up: it gets no NOTIFY, and a failed transfer cannot return to it. */
  #left = false
  #over = false
  readonly #claimed = new Set<Call>()
  readonly #ringback: Ringback
  #called = ''
  /** The transferor's other leg, whose dialog the Refer-To names. */
  #replaced: Party | null = null
  /** Sends the NOTIFYs one after the other. */
  #telling: Promise<boolean> = Promise.resolve(true)

  constructor(transferor: Party, transferee: Party, trunk_id: string, silent: boolean) {
    this.#transferor = transferor
    this.#transferee = transferee
    this.#trunk_id = trunk_id
    this.#silent = silent
    this.#ringback = new Ringback(transferee.leg)
    for (const { call } of [transferor, transferee]) this.#claim(call)
    transferee.call.onEnd(() => this.#cancelled())
  }

  begin(target: ReferTarget): void {
    this.#called = target.number
    this.#tell('100 Trying', `active;expires=${SUBSCRIPTION_SECONDS}`)
    const work = target.replaces ? this.#takeOver(target.replaces) : this.#call(target)
    work.catch(err => {
      this.#transferee.call.log.error({ err }, 'a transfer failed')
      this.#failed(500)
    })
  }

  gone(leg: Leg): boolean {
    if (this.#over) return false
    // RFC 5589 §7: the transferor may also end the dialog that the target takes over, as soon as we accept the REFER.
    if (leg === this.#replaced?.leg) return true
    if (leg !== this.#transferor.leg) return false
    this.#left = true
    const { ctx } = this.#transferee.call
    this.#ringback.start(this.#called, ctx.snapshot().trunks.get(this.#trunk_id)?.country)
    return true
  }

  // ----------------------------------------------------------------------------------------------------------- blind

  async #call(target: ReferTarget): Promise<void> {
    const placed = await this.#transferee.call.ctx.transfers.place({
      target,
      transferor: this.#transferor,
      transferee: this.#transferee,
      trunk_id: this.#trunk_id,
      watcher: {
        early: early => void this.#early(early),
        answered: answered => void this.#answered(answered),
        ended: final => this.#childEnded(final),
      },
      created: child => {
        this.#child = child
      },
    })
    if (placed.kind === 'refused') return this.#failed(placed.sip_code, placed.reason)
    if (this.#over) void this.#child?.end({ cause: 'caller_hung_up' })
  }

  /** Joins the target's early media to the transferee, but only after the transferor has left. */
  async #early(early: Leg): Promise<void> {
    if (!this.#left || this.#over) return
    await this.#ringback.stop()
    await this.#join(early).catch(err => this.#transferee.call.log.info({ err }, 'early media could not be passed on'))
  }

  async #answered(answered: Leg): Promise<void> {
    const child = this.#child
    if (!child) return
    if (this.#over || this.#transferee.leg.ended) {
      void child.end({ cause: 'caller_hung_up' })
      return
    }
    await this.#finish({ call: child, leg: answered })
  }

  #childEnded(final: Ending): void {
    if (!this.#over) this.#failed(final.sip_code, final.reason)
  }

  // -------------------------------------------------------------------------------------------------------- attended

  async #takeOver(replaces: ReplacedDialog): Promise<void> {
    const { call } = this.#transferor
    // Some peers write the tags from their own point of view, so either order matches.
    const { call_id, to_tag, from_tag } = replaces
    const isIt = [replaces, { call_id, to_tag: from_tag, from_tag: to_tag, early_only: false }].map(isNamed)
    await whenSettled(call.ctx, this.#trunk_id, call_id)
    if (this.#over) return
    const replaced = findDialog(call.ctx, this.#trunk_id, dialog => isIt.some(is => is(dialog)))
    const other = replaced?.leg === this.#transferor.leg ? null : replaced
    const newcomer = other?.call.pairing.peerOf(other.leg) ?? null
    const theirs = newcomer?.call.pairing.transfer
    const busy = replaced?.call.pairing.transfer || (theirs && theirs !== this)
    if (!replaced || !newcomer || newcomer.leg === this.#transferee.leg || busy) return this.#failed(481)
    this.#replaced = replaced
    for (const { call } of [replaced, newcomer]) this.#claim(call)
    await this.#finish(newcomer)
  }

  // ------------------------------------------------------------------------------------------------------------ both

  /** Joins and pairs the two legs that remain, and releases the transferor. */
  async #finish(newcomer: Party): Promise<void> {
    const { leg } = this.#transferee
    const replaced = this.#replaced
    await this.#ringback.stop()
    let mixed: boolean
    try {
      mixed = await this.#join(newcomer.leg)
    } catch (error) {
      leg.log.info({ err: error }, 'the legs of a transfer could not be joined')
      if (!replaced) void newcomer.call.end({ cause: 'script' })
      return this.#failed(refusalCode(error))
    }
    if (this.#over || leg.ended) return
    if (newcomer.leg.ended) return this.#failed(480)
    pairLegs(this.#transferee, newcomer, mixed)
    replaced?.call.depart(replaced.leg)
    this.#succeeded(newcomer.call)
  }

  /** Joins the media of both legs. Returns whether a mixer joins them. @throws MediaRefusal */
  #join(newcomer: Leg): Promise<boolean> {
    return joinLegs(this.#transferee.leg, newcomer, `transfer-${this.#transferee.call.sid}`)
  }

  #succeeded(by: Call | null): void {
    this.#close()
    const { call, leg } = this.#transferor
    // The transferor may hang up as soon as it knows of the success, before it answers our NOTIFY (RFC 5589 §6.1).
    call.pairing.leave(leg)
    this.#transferee.call.event('state', null, {
      what: 'transferred',
      by: this.#transferor.leg.id,
      sip_code: 200,
      // A call sid of another project is not shown.
      ...(by?.project_id === this.#transferee.call.project_id ? { call_sid: by.sid } : {}),
    })
    this.#tell('200 OK', 'terminated;reason=noresource')
    if (!this.#left) void this.#telling.then(() => call.depart(leg))
  }

  /** Reports a failed transfer to the transferor, whose call continues. If it has left, the transferee's call ends. */
  #failed(sip_code: number, reason: string | null = null): void {
    if (this.#over) return
    this.#close()
    const code = sip_code < 300 ? 500 : sip_code
    this.#transferee.call.event('state', null, {
      what: 'transfer_failed',
      by: this.#transferor.leg.id,
      sip_code: code,
      ...(reason === null ? {} : { reason }),
    })
    this.#tell(`${code} ${statusText(code)}`, 'terminated;reason=noresource')
    if (this.#left) this.#transferee.call.partnerLeft()
  }

  /** The transferee's call has ended: abandons the transfer. */
  #cancelled(): void {
    if (this.#over) return
    this.#close()
    void this.#child?.end({ cause: 'caller_hung_up' })
  }

  #close(): void {
    this.#over = true
    for (const call of this.#claimed) if (call.pairing.transfer === this) call.pairing.transfer = null
  }

  /** Until the transfer is over, no other transfer and no INVITE with Replaces may have this call. */
  #claim(call: Call): void {
    call.pairing.transfer = this
    this.#claimed.add(call)
  }

  #tell(status: string, state: string): void {
    const dialog = this.#transferor.leg.sipDialog
    if (this.#silent || this.#left || !dialog) return
    this.#telling = this.#telling.then(async heard => heard && !this.#left && (await notify(dialog, status, state)))
    this.#telling.catch(() => undefined)
  }
}

/** Sends a NOTIFY. False ends the subscription: the transferor refused it or did not answer (RFC 6665 §4.2.2). */
async function notify(dialog: Dialog, status: string, state: string): Promise<boolean> {
  try {
    return (await notifyReferrer(dialog, status, state)).status < 300
  } catch {
    // The link to the SIP server is lost; the call ends with it.
    return false
  }
}
