import type { CodecName } from '../../core/domain/codecs/codec.ts'
import {
  type AnswerRefusal,
  answerOffer,
  type Continuity,
  codecOrder,
  type LocalSide,
  makeOffer,
  NO_CONTINUITY,
  numberNotes,
  type Offer,
  type OfferRefusal,
  type OtherLeg,
  readAnswer,
  readOffer,
  type SdpRefused,
  type Settled,
} from '../../core/domain/codecs/negotiate.ts'
import { type Direction, type Locate, type OwnSdp, readSdp, type Sdp, writeSdp } from '../../core/domain/codecs/sdp.ts'

interface Settlement {
  readonly settled: Settled | null
  readonly continuity: Continuity
  readonly wish: Direction
}

/** What an exchange changes. */
interface Exchange {
  readonly state: Settlement
  readonly remoteOffer: Offer | null
  readonly answered: OwnSdp | null
  readonly localOffer: { readonly local: OwnSdp; readonly continuity: Continuity; readonly wish: Direction } | null
}

/** Addresses by host name of a c= line; '' for a missing one. */
type Places = Readonly<Record<string, string>>

const placedBy =
  (places: Places | null): Locate =>
  host =>
    places?.[host ?? ''] ?? null

const unknownIf = <R extends string>(sdp: Sdp, refused: SdpRefused<R>): SdpRefused<R | 'address_unknown'> =>
  sdp.unplaced.length > 0 ? { refused: 'address_unknown', detail: refused.detail } : refused

/**
 * The state of one leg's offers and answers. core/domain/codecs/negotiate.ts holds the rules.
 */
export class Negotiation {
  readonly #side: Omit<LocalSide, 'direction'>
  #state: Settlement = { settled: null, continuity: NO_CONTINUITY, wish: 'sendrecv' }
  #remoteOffer: Exchange['remoteOffer'] = null
  /** Our answer to the last remote offer, so that it can be repeated. */
  #answered: Exchange['answered'] = null
  #localOffer: Exchange['localOffer'] = null
  /** What `rollback` restores. */
  #before = this.#exchange
  #noted: readonly string[] = []

  constructor(side: Omit<LocalSide, 'direction'>) {
    this.#side = side
  }

  /** What the reader forgave in the peer's last description. */
  get noted(): readonly string[] {
    return this.#noted
  }

  get settled(): Settled | null {
    return this.#state.settled
  }

  get #exchange(): Exchange {
    const [remoteOffer, answered, localOffer] = [this.#remoteOffer, this.#answered, this.#localOffer]
    return { state: this.#state, remoteOffer, answered, localOffer }
  }

  /** The codecs in which this leg can be bridged: the settled one, otherwise those of the offer that we must answer. */
  get possible(): readonly CodecName[] {
    const { settled } = this.#state
    if (settled) return [settled.codec]
    return this.#remoteOffer?.choices.map(({ codec }) => codec.name) ?? []
  }

  /** The properties of this leg that matter to the leg to be bridged with it. */
  get asOther(): OtherLeg {
    const { settled } = this.#state
    const pauses = settled ?? this.#remoteOffer
    return {
      codecs: this.possible,
      comfort_noise: Boolean(pauses?.comfort_noise),
      silence_frames: pauses?.silence_frames ?? false,
    }
  }

  /**
   * Orders the codecs. Those of `other`, the leg to be bridged with, come first; without one, this leg's settled codec.
   */
  #order(other: OtherLeg | null, decodable: readonly CodecName[]): CodecName[] {
    const { settled } = this.#state
    return codecOrder(this.#side.policy, other?.codecs ?? (settled ? [settled.codec] : []), decodable)
  }

  /**
   * `places`: addresses of host names in c=, which we do not resolve; null asks for them. A refused offer is rolled
   * back like any other, and leaves even an open exchange of the INVITE as it was.
   */
  remoteOffer(text: string, places: Places | null = {}): Offer | SdpRefused<OfferRefusal | 'address_unknown'> {
    this.#before = this.#exchange
    const reading = readSdp(text, placedBy(places))
    if ('refused' in reading) return reading
    const offer = readOffer(reading.sdp, this.#side.policy, this.#state.continuity)
    if ('refused' in offer) return places === null ? unknownIf(reading.sdp, offer) : offer
    this.#noted = reading.sdp.notes
    this.#remoteOffer = offer
    this.#answered = null
    return offer
  }

  /** Answers the remote offer. A further call returns the same text and ignores the parameters. */
  localAnswer(
    other: OtherLeg | null,
    decodable: readonly CodecName[],
  ): { sdp: string; settled: Settled; fresh: boolean } | SdpRefused<AnswerRefusal | 'offer_missing'> {
    const { settled } = this.#state
    if (this.#answered && settled) return { sdp: writeSdp(this.#answered), settled, fresh: false }
    if (!this.#remoteOffer) return { refused: 'offer_missing', detail: 'there is no offer to answer' }
    const { continuity, wish } = this.#state
    const side = { ...this.#side, direction: wish }
    const answer = answerOffer(this.#remoteOffer, side, continuity, this.#order(other, decodable), other)
    if ('refused' in answer) return answer
    this.#state = { settled: answer.settled, continuity: answer.continuity, wish }
    this.#answered = answer.local
    this.#remoteOffer = null
    return { sdp: writeSdp(answer.local), settled: answer.settled, fresh: true }
  }

  localOffer(other: OtherLeg | null, decodable: readonly CodecName[], direction: Direction | null): string {
    const wish = direction ?? this.#state.wish
    const { local, continuity } = makeOffer(
      { ...this.#side, direction: wish },
      this.#state.continuity,
      this.#order(other, decodable),
      this.#state.settled,
      other,
    )
    this.#before = this.#exchange
    this.#localOffer = { local, continuity, wish }
    return writeSdp(local)
  }

  /**
   * Takes the answer to our offer. May be called again: 183 then 200, or answers of several forks; the last one counts.
   */
  remoteAnswer(
    text: string,
    places: Places | null = {},
  ): Settled | SdpRefused<AnswerRefusal | 'offer_missing' | 'address_unknown'> {
    const offered = this.#localOffer
    if (!offered) return { refused: 'offer_missing', detail: 'we have made no offer' }
    const reading = readSdp(text, placedBy(places))
    if ('refused' in reading) return reading
    const { local, continuity, wish } = offered
    const settled = readAnswer(reading.sdp, local, { ...this.#side, direction: wish }, continuity)
    if ('refused' in settled) return places === null ? unknownIf(reading.sdp, settled) : settled
    this.#noted = [...reading.sdp.notes, ...numberNotes(settled)]
    this.#state = { settled, continuity, wish }
    this.#answered = null
    return settled
  }

  /** Restores the state before the last offer. The o= version of our description never repeats. */
  rollback(): Settled | null {
    const said = this.#localOffer?.local.version ?? this.#state.continuity.local?.version ?? 0
    const { state, remoteOffer, answered, localOffer } = this.#before
    const { continuity } = state
    const local = continuity.local && { ...continuity.local, version: Math.max(said, continuity.local.version) }
    this.#state = { ...state, continuity: { ...continuity, local } }
    this.#remoteOffer = remoteOffer
    this.#answered = answered
    this.#localOffer = localOffer
    this.#before = this.#exchange
    return this.#state.settled
  }
}
