import { sameTenant } from '../../core/domain/identity/index.ts'
import type { Call, Party, RingingLeg } from './call.ts'
import type { CallContext } from './context.ts'
import type { Leg } from './leg.ts'
import { MediaRefusal } from './media.ts'
import type { DialogTags } from './refer-to.ts'

/** Legs of different calls: finds one by its dialog, and joins one with another. */

/** Finds an answered leg of the tenant of a trunk by its dialog, in any call. */
export function findDialog(ctx: CallContext, trunk_id: string, isIt: (dialog: DialogTags) => boolean): Party | null {
  for (const call of ctx.calls.all())
    for (const party of call.parties) {
      const dialog = party.leg.sipDialog
      if (dialog && isOfTenant(ctx, party.leg, trunk_id) && isIt(dialog)) return party
    }
  return null
}

/**
 * Waits until a call of the tenant of a trunk is answered at both ends or over, if one of its dialogs has this Call-ID.
 * A PBX that transfers as soon as its consultation is answered names a dialog that we still answer.
 */
export async function whenSettled(ctx: CallContext, trunk_id: string, call_id: string): Promise<void> {
  const isIt = (leg: Leg): boolean => leg.sip_call_id === call_id && isOfTenant(ctx, leg, trunk_id)
  const settling = ctx.calls.all().filter(call => call.settling.some(isIt))
  await Promise.all(settling.map(call => call.settled))
}

/** Finds a target of the tenant of a trunk that rings, by the early dialog of our INVITE. */
export function findRinging(
  ctx: CallContext,
  trunk_id: string,
  isIt: (dialog: DialogTags) => boolean,
): { readonly call: Call; readonly leg: RingingLeg } | null {
  for (const call of ctx.calls.all()) {
    const leg = call.ringingLeg
    if (leg && isOfTenant(ctx, leg, trunk_id) && leg.earlyDialogs.some(isIt)) return { call, leg }
  }
  return null
}

function isOfTenant({ snapshot }: CallContext, leg: Leg, trunk_id: string): boolean {
  const { trunks } = snapshot()
  const [own, theirs] = [trunks.get(trunk_id), trunks.get(leg.trunk_id ?? '')]
  return own !== undefined && theirs !== undefined && sameTenant(own, theirs)
}

/**
 * Joins a leg that stays with one that comes. Returns whether a mixer joins them.
 * @throws MediaRefusal
 */
export async function joinLegs(stays: Leg, comes: Leg, conference_id: string): Promise<boolean> {
  const { hub } = stays.session
  if (stays.session === comes.session) {
    try {
      await hub.request('bridge', { a: stays.id, b: comes.id })
    } catch (error) {
      if (!(error instanceof MediaRefusal) || error.reason !== 'transcode_unavailable') throw error
      // We cannot transcode between their codecs: re-INVITE the leg that stays with the other's codec first.
      stays.prefer = comes
      if (!(await stays.reoffer())) throw error
      await hub.request('bridge', { a: stays.id, b: comes.id })
    }
    return false
  }
  // Streams of two sessions may run on different threads, so a mixer joins them.
  for (const leg_id of [stays.id, comes.id])
    await hub.request('conference.join', { conference_id, leg_id, muted: false, deaf: false })
  return true
}

/** Makes two joined legs of different calls one conversation: the end of one call ends the other. */
export function pairLegs(one: Party, other: Party, mixed: boolean): void {
  one.call.pairing.pairWith({ ...other, mixed })
  other.call.pairing.pairWith({ ...one, mixed })
  one.leg.prefer = other.leg
  other.leg.prefer = one.leg
}
