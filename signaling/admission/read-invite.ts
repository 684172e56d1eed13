import { readCaller, type Verstat } from '../../core/domain/identity/index.ts'
import { DEFAULT_COUNTRY } from '../../core/domain/numbers/default-country.ts'
import { parseNumber } from '../../core/domain/numbers/parse.ts'
import {
  type Dialled,
  dialled,
  readAddress,
  readAddresses,
  readUri,
  type SipAddress,
  unsentParameters,
} from '../../core/domain/sip/address.ts'
import { readDiverters } from '../../core/domain/sip/diversion.ts'
import { readRemoteParty } from '../../core/domain/sip/remote-party.ts'
import { readHops, readPrivacy } from '../../core/domain/sip/values.ts'
import type { InboundInvite } from '../drachtio/types.ts'
import type { Snapshot } from '../trunks/snapshot.ts'
import type { PeerRequest } from './call-row.ts'
import type { AdmissionContext } from './context.ts'
import type { CallingPeer } from './peer.ts'

/** Reads the numbers, names and limits of a peer's INVITE. */

const DEFAULT_MAX_FORWARDS = 70

/**
 * The facts of an INVITE. `foreign_context`: the called number is a local one of this numbering plan, which is not ours
 * (RFC 3966 §5.1.5). Calling it would reach somebody else.
 */
export type Reading = PeerRequest & { readonly foreign_context: string | null }

/** `numbers`: those of the platform. */
export function readInvite(peer: CallingPeer, invite: InboundInvite, numbers: Snapshot['numbers']): Reading {
  const country = peer.kind === 'trunk' ? peer.trunk.country : DEFAULT_COUNTRY
  const called_address = calledOf(peer, invite, numbers)
  const called = called_address ? dialled(called_address, country) : { number: '' }
  const written = called.number ?? called_address?.user ?? ''
  const called_e164 = called.number === null ? null : (parseNumber(called.number, country)?.e164 ?? null)
  const from = readAddress(invite.header('from'))
  const remote_party = readRemoteParty(invite.header('remote-party-id'))
  const asserted = assertedOf(invite, country) ?? remote_party?.address ?? null
  const client = peer.kind === 'client' ? peer : null
  const caller = readCaller(
    {
      from: client?.caller ?? numberIn(from, country),
      asserted: asserted && !client ? numberIn(asserted, country) : null,
      privacy: [...readPrivacy(invite.header('privacy')), ...(remote_party?.restricted ? ['id'] : [])],
    },
    country,
  )
  return {
    peer,
    called: written,
    called_e164,
    foreign_context: called.number === null ? called.context : null,
    caller: caller.number?.e164 ?? caller.given,
    caller_given: caller.given,
    caller_name: (caller.from === 'asserted' ? asserted?.name : null) ?? from?.name ?? null,
    restricted: caller.restricted,
    max_forwards: readHops(invite.header('max-forwards')) ?? DEFAULT_MAX_FORWARDS,
    diverters: readDiverters({
      diversion: invite.header('diversion'),
      history: invite.header('history-info'),
      privacy: invite.header('privacy'),
      called: called_e164 ?? written,
      country,
    }),
    verstat: null,
    notes: [...notesOf('the called number', called_address, called), ...notesOf('the caller', asserted ?? from, null)],
  }
}

/** Verifies a carrier's signature. A customer's PBX is not verified: its numbers decide which caller it may present. */
export async function verstatOf(
  ctx: AdmissionContext,
  invite: InboundInvite,
  asked: PeerRequest,
): Promise<Verstat | null> {
  if (asked.peer.kind !== 'carrier') return null
  const identity = invite.header('identity') ?? invite.header('y')
  return ctx.stir.verify(identity, { caller: asked.caller, called: asked.called_e164 ?? asked.called })
}

/**
 * Returns the address that is called: the request-URI. A carrier that we register with may call our contact instead;
 * then the number is in P-Called-Party-ID (RFC 7315 §4.2), else in To. To of a diverted call has the number that was
 * dialled first: when that is none of ours and our contact is, the contact is called.
 */
function calledOf(peer: CallingPeer, invite: InboundInvite, numbers: Snapshot['numbers']): SipAddress | null {
  const uri = readUri(invite.uri)
  if (peer.kind !== 'carrier' || uri === null || peer.carrier.registration?.contact_user !== uri.user) return uri
  const party = invite.header('p-called-party-id')
  const named = readAddress(party ?? invite.header('to'))
  if (named === null || named.user === '') return uri
  const isOurs = (address: SipAddress): boolean =>
    numbers.has(parseNumber(numberIn(address, DEFAULT_COUNTRY), DEFAULT_COUNTRY)?.e164 ?? '')
  return party === null && isOurs(uri) && !isOurs(named) ? uri : named
}

/** Returns the first P-Asserted-Identity with a number, else the first (RFC 3325 §9.1 allows a sip: and a tel: URI). */
function assertedOf(invite: InboundInvite, country: string): SipAddress | null {
  const all = readAddresses(invite.header('p-asserted-identity'))
  return all.find(address => parseNumber(numberIn(address, country), country) !== null) ?? all[0] ?? null
}

/**
 * Returns a caller's number in its context. One of a foreign plan keeps its context, so that it is shown and never
 * taken for a number of ours.
 */
function numberIn(address: SipAddress | null, country: string): string {
  if (!address) return ''
  const { number } = dialled(address, country)
  return number ?? `${address.user};phone-context=${address.of_number.get('phone-context') ?? ''}`
}

/** Says what was read otherwise than written, and what is not sent on. */
function notesOf(what: string, address: SipAddress | null, read: Dialled | null): string[] {
  if (!address) return []
  const unsent = unsentParameters(address)
  return [
    ...(read?.number != null && read.number !== address.user
      ? [`${what} ${address.user} was read as ${read.number}, in the context that it names`]
      : []),
    ...(unsent.length > 0 ? [`parameters of ${what} are not sent on: ${unsent.join(', ').slice(0, 200)}`] : []),
  ]
}
