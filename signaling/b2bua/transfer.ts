import type { Ending } from '../../core/domain/calls/endings.ts'
import { sameTenant } from '../../core/domain/identity/index.ts'
import { statusText } from '../drachtio/messages.ts'
import type { Dialog, InboundRequest } from '../drachtio/types.ts'
import type { Call, LegWaiter, Party } from './call.ts'
import type { CallContext } from './context.ts'
import type { Leg } from './leg.ts'
import { MediaRefusal } from './media.ts'
import { notifyReferrer } from './refer-notify.ts'
import { type ReferTarget, type ReplacedDialog, readReferTo } from './refer-to.ts'
import { refusalCode } from './refusal.ts'
import { Ringback } from './ringback.ts'

/**
 * Transfers that a trunk's peer asks for by REFER within a call of two legs (RFC 3515, RFC 5589). We are the one who is
 * referred: the target is called, or a dialog taken over (RFC 3891), and its media joined to the leg that stays, whose
 * own dialog is not touched. The transferor hears of it by NOTIFY and is then released.
 */

/** How long a subscription lives that we tell in the first NOTIFY: longer than any target may ring. */
const SUBSCRIPTION_SECONDS = 90

/** Answers the REFER, and begins the transfer when it can be one. */
export function transferAsked(transferor: Party, request: InboundRequest): void {
  const { call, leg } = transferor
  const reading = readReferTo(request.header('refer-to') ?? request.header('r'))
  const transferee = call.peerOf(leg)
  const refused = 'refused' in reading ? reading.refused : refusal(transferor, transferee)
  if ('refused' in reading || !transferee || leg.trunk_id === null || refused !== null) {
    request.respond(refused ?? 603, refused === 503 ? { headers: { 'Retry-After': '10' } } : {})
    return
  }
  // RFC 4488: a transferor that wants no subscription gets none.
  const silent = /^\s*false\b/i.test(request.header('refer-sub') ?? '')
  request.respond(202, silent ? { headers: { 'Refer-Sub': 'false' } } : {})
  const { target } = reading
  const by = request.header('referred-by')
  transferee.call.event('state', null, {
    what: 'transfer_asked',
    by: leg.id,
    // Another tenant's peer says whom it knows, and where.
    ...(leg.foreign ? {} : { refer_to: target.raw }),
    ...(by === null || leg.foreign ? {} : { referred_by: by }),
  })
  new Transfer(transferor, transferee, leg.trunk_id, silent).begin(target)
}

/** Carriers, clients and SIP addresses may transfer nobody; there must be somebody to transfer, and once at a time. */
function refusal({ call, leg }: Party, transferee: Party | null): 603 | 491 | 503 | null {
  if (leg.trunk_id === null || !transferee || !leg.answered) return 603
  if (call.transfer || transferee.call.transfer) return 491
  return call.ctx.draining() ? 503 : null
}

class Transfer implements LegWaiter {
  readonly #transferor: Party
  readonly #transferee: Party
  readonly #trunk_id: string
  readonly #silent: boolean
  #child: Call | null = null
  /** The transferor has hung up: nobody is to be told, and nobody to go back to. */
  #left = false
  #over = false
  readonly #ringback: Ringback
  #called = ''
  /** One NOTIFY after the other. */
  #telling: Promise<boolean> = Promise.resolve(true)

  constructor(transferor: Party, transferee: Party, trunk_id: string, silent: boolean) {
    this.#transferor = transferor
    this.#transferee = transferee
    this.#trunk_id = trunk_id
    this.#silent = silent
    this.#ringback = new Ringback(transferee.leg)
    for (const { call } of [transferor, transferee]) call.transfer = this
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
    if (leg !== this.#transferor.leg || this.#over) return false
    this.#left = true
    this.#ringback.start(this.#called)
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

  /** Early media of the target is for a transferee who hears nobody else. */
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
    const replaced = findDialog(call.ctx, this.#trunk_id, replaces)
    const newcomer = replaced && replaced.leg !== this.#transferor.leg ? replaced.call.peerOf(replaced.leg) : null
    if (!replaced || !newcomer || newcomer.leg === this.#transferee.leg || replaced.call.transfer)
      return this.#failed(481)
    await this.#finish(newcomer, replaced)
  }

  // ------------------------------------------------------------------------------------------------------------ both

  /** The two that remain are joined, paired, and who brought them together leaves. */
  async #finish(newcomer: Party, replaced: Party | null = null): Promise<void> {
    const { leg } = this.#transferee
    await this.#ringback.stop()
    let mixed: boolean
    try {
      mixed = await this.#join(newcomer.leg)
    } catch (error) {
      leg.log.info({ err: error }, 'the legs of a transfer could not be joined')
      if (!replaced) void newcomer.call.end({ cause: 'script' })
      return this.#failed(refusalCode(error))
    }
    if (this.#over || leg.ended || newcomer.leg.ended) return
    this.#transferee.call.pairWith({ ...newcomer, mixed })
    newcomer.call.pairWith({ ...this.#transferee, mixed })
    leg.prefer = newcomer.leg
    newcomer.leg.prefer = leg
    this.#succeeded(newcomer.call)
    replaced?.call.depart(replaced.leg)
  }

  /** Whether a mixer joins them. @throws MediaRefusal */
  async #join(newcomer: Leg): Promise<boolean> {
    const { leg } = this.#transferee
    const { hub } = leg.session
    if (leg.session === newcomer.session) {
      try {
        await hub.request('bridge', { a: leg.id, b: newcomer.id })
      } catch (error) {
        if (!(error instanceof MediaRefusal) || error.reason !== 'transcode_unavailable') throw error
        // Their codecs cannot be changed into each other here: the one who stays is asked for the newcomer's.
        leg.prefer = newcomer
        if (!(await leg.reoffer())) throw error
        await hub.request('bridge', { a: leg.id, b: newcomer.id })
      }
      return false
    }
    // Two calls of their own: their streams may live on different threads, so that a mixer joins them.
    const conference_id = `transfer-${this.#transferee.call.sid}`
    for (const leg_id of [leg.id, newcomer.id])
      await hub.request('conference.join', { conference_id, leg_id, muted: false, deaf: false })
    return true
  }

  #succeeded(by: Call | null): void {
    this.#close()
    this.#transferee.call.event('state', null, {
      what: 'transferred',
      by: this.#transferor.leg.id,
      sip_code: 200,
      // What belongs to another project is none of this one's.
      ...(by?.project_id === this.#transferee.call.project_id ? { call_sid: by.sid } : {}),
    })
    this.#tell('200 OK', 'terminated;reason=noresource')
    const { call, leg } = this.#transferor
    if (!this.#left) void this.#telling.then(() => call.depart(leg))
  }

  /** The target would not: the transferor hears why, and goes on talking if it is still there. */
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

  /** The one who was to be transferred is gone. */
  #cancelled(): void {
    if (this.#over) return
    this.#close()
    void this.#child?.end({ cause: 'caller_hung_up' })
  }

  #close(): void {
    this.#over = true
    for (const { call } of [this.#transferor, this.#transferee]) if (call.transfer === this) call.transfer = null
  }

  #tell(status: string, state: string): void {
    const dialog = this.#transferor.leg.sipDialog
    if (this.#silent || this.#left || !dialog) return
    this.#telling = this.#telling.then(async heard => heard && !this.#left && (await notify(dialog, status, state)))
    this.#telling.catch(() => undefined)
  }
}

/** Whether it was heard: a transferor that answers 481 or nothing hears nothing more (RFC 6665 §4.2.2). */
async function notify(dialog: Dialog, status: string, state: string): Promise<boolean> {
  try {
    return (await notifyReferrer(dialog, status, state)).status < 300
  } catch {
    // The link to the SIP server is lost, and the call with it.
    return false
  }
}

/**
 * A dialog of the transferor's tenant, in whosever call. Some write the tags as they see them themselves, so that
 * either order is one.
 */
function findDialog(ctx: CallContext, trunk_id: string, { call_id, to_tag, from_tag }: ReplacedDialog): Party | null {
  const { trunks } = ctx.snapshot()
  const own = trunks.get(trunk_id)
  for (const call of ctx.calls.all()) {
    for (const party of call.parties) {
      const trunk = trunks.get(party.leg.trunk_id ?? '')
      if (!own || !trunk || !sameTenant(trunk, own)) continue
      const dialog = party.leg.sipDialog
      if (dialog?.call_id !== call_id) continue
      const tags = [dialog.local_tag, dialog.remote_tag]
      if ((tags[0] === to_tag && tags[1] === from_tag) || (tags[0] === from_tag && tags[1] === to_tag)) return party
    }
  }
  return null
}
