import pino from 'pino'
import type { CallEvents, UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import type { IncomingRequest, MessageParts } from '../../signaling/edge/useragent/message-parts.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { tone } from './audio.ts'
import { callUntilDecided } from './busy.ts'
import type { Test } from './harness/index.ts'
import { openRtpPeer, type RtpPeer } from './rtp-peer.ts'
import { PATIENCE_MS, until } from './wait.ts'

/**
 * A test telephone: SIP by the sandbox carrier's user agent, G.711 over its own socket. It sends tones and measures the
 * audio that it receives.
 */
export interface Softphone {
  readonly address: string
  readonly port: number
  /** Calls that reached it, in order. */
  readonly calls: readonly Line[]
  /** Places a call, and places it again while the platform is too busy to decide. Does not wait for an answer. */
  dial(uri: string, options?: { from?: string; headers?: Record<string, string> }): Promise<Line>
  /** Waits for the next call to this user. So far the call has only been answered with 100. */
  incoming(user: string): Promise<Line>
}

type EndedBy = 'peer' | 'us' | 'cancelled' | 'refused' | 'lost'

/** One call of a softphone. */
export class Line {
  rtp: RtpPeer
  /** The address in our SDP instead of the socket's: that of a telephone that does not know it is behind NAT. */
  sdpAddress: string | null = null
  /** Requests within the dialog other than INVITE (REFER, NOTIFY, INFO). */
  readonly requests: IncomingRequest[] = []
  /** Statuses of the provisional responses to our INVITE. */
  readonly progress: number[] = []
  /** Status of the final response to our INVITE; 0 when it failed without one. */
  final: number | null = null
  ended: EndedBy | null = null
  /** How often the platform was too busy to decide, and the call was placed again. */
  refused = 0
  call: UserAgentCall | null = null
  /** Answers requests within the dialog; by default they get 200. */
  onRequest: ((request: IncomingRequest) => void) | null = null
  #version = 1

  constructor(rtp: RtpPeer) {
    this.rtp = rtp
  }

  get events(): CallEvents {
    return {
      progress: response => {
        this.progress.push(response.status)
        this.#takeSdp(Buffer.from(response.body).toString('latin1'))
      },
      answered: response => {
        this.final = response.status
        this.#takeSdp(Buffer.from(response.body).toString('latin1'))
      },
      failed: response => {
        this.final = response?.status ?? 0
        this.ended ??= 'refused'
      },
      request: request => this.#within(request),
      ended: why => {
        this.ended ??= why
      },
    }
  }

  /** Returns a header of the INVITE that we received. */
  header(name: string): string | null {
    return this.call?.invite?.get(name.toLowerCase()) ?? null
  }

  take(call: UserAgentCall, ended: EndedBy | null = null): void {
    this.call = call
    this.ended = ended
    Object.assign(call.events, this.events)
    this.#takeSdp(call.offer)
  }

  ring(): void {
    this.call?.ring(180)
  }

  early(): void {
    this.call?.ring(183, { body: this.sdp() })
  }

  /** Resolves with the ACK. */
  answer(): Promise<void> {
    return new Promise(resolve => {
      if (this.call) this.call.events.acknowledged = () => resolve()
      this.call?.answer({ body: this.sdp() })
    })
  }

  sdp(direction = 'sendrecv'): string {
    return this.rtp.sdp({ version: this.#version++, address: this.sdpAddress ?? this.rtp.address, direction })
  }

  /** Moves media to another socket by a re-INVITE. Resolves with the SDP of the answer. */
  moveTo(rtp: RtpPeer): Promise<string> {
    this.rtp = rtp
    return this.reoffer()
  }

  /** Sends a re-INVITE. Resolves with the SDP of its 200. */
  async reoffer(direction = 'sendrecv'): Promise<string> {
    const answer = await this.send('INVITE', { body: this.sdp(direction) })
    if (answer?.status !== 200) throw new Error(`the re-INVITE was answered with ${answer?.status}`)
    const sdp = Buffer.from(answer.body).toString('latin1')
    this.#takeSdp(sdp)
    return sdp
  }

  /** Opens another socket for this line, for an offer of several streams. */
  second(): Promise<RtpPeer> {
    return openRtpPeer({ address: this.rtp.address, codec: 'PCMU' })
  }

  /** Answers an offer of several streams, each to be received on one of the sockets. */
  answerAs(peers: readonly RtpPeer[]): Promise<void> {
    const body = peers.map((peer, index) => {
      const [head = '', media = ''] = peer.sdp({ address: peer.address, direction: 'recvonly' }).split(/^(?=m=)/m)
      return index === 0 ? head + media : media
    })
    return new Promise(resolve => {
      if (this.call) this.call.events.acknowledged = () => resolve()
      this.call?.answer({ body: body.join('') })
    })
  }

  hangUp(): void {
    this.call?.hangUp()
  }

  send(method: string, parts: MessageParts = {}) {
    if (!this.call) throw new Error('the line has no call')
    return this.call.send(method, parts)
  }

  press(key: string): Promise<void> {
    return this.rtp.sendKey(key)
  }

  /** Sends a tone. Resolves when its last packet has left. */
  say(hz: number, ms: number): Promise<void> {
    return this.rtp.send(tone(hz, ms))
  }

  /** Sends a tone until the call ends or the returned function is called, which resolves after the last packet. */
  hum(hz: number): () => Promise<void> {
    let stopped = false
    const on = async (): Promise<void> => {
      // The first sound may arrive before the SDP that tells where to send.
      await until('an SDP of the peer', () => this.rtp.knows_peer || stopped || this.ended !== null || this.rtp.closed)
      while (!stopped && this.ended === null && !this.rtp.closed) await this.say(hz, 200)
    }
    const humming = on()
    return () => {
      stopped = true
      return humming
    }
  }

  /** Waits until a tone dominates the audio. */
  hears(hz: number): Promise<void> {
    return this.rtp.hears(hz)
  }

  /** Waits until a tone has dominated the audio at some time after the first `from` packets. */
  heard(hz: number, from = 0): Promise<void> {
    return this.rtp.heard(hz, from)
  }

  /** Waits until there is sound and, when `but_hz` is given, that tone is absent. */
  async hearsSomething(but_hz?: number): Promise<void> {
    const heard = (): boolean => this.loudness() > -40 && (but_hz === undefined || this.level(but_hz) < -40)
    await this.rtp.until(heard, PATIENCE_MS, 'sound')
  }

  /** Waits until these keys, and no others, came by RFC 4733. */
  async hearsKeys(keys: string): Promise<void> {
    const pressed = (): string => Array.from(this.rtp.keys(), ({ key }) => key).join('')
    await this.rtp.until(() => pressed() === keys, PATIENCE_MS, `the keys ${keys}`)
  }

  /** Returns the level of the latest 200 ms; -Infinity when nothing came. */
  loudness(): number {
    return this.rtp.loudness()
  }

  /** Returns the level of a tone in the latest 200 ms; -Infinity when nothing came. */
  level(hz: number): number {
    return this.rtp.level(hz)
  }

  answered(): Promise<unknown> {
    return until('the call is answered', () => this.final !== null && this.final < 300)
  }

  over(): Promise<EndedBy> {
    return until('the call is over', () => this.ended ?? undefined)
  }

  #within(request: IncomingRequest): void {
    const { method } = request.message
    if (method === 'INVITE') {
      this.#takeSdp(request.body)
      request.answer(200, { body: this.sdp() })
      return
    }
    this.requests.push(request)
    if (this.onRequest) this.onRequest(request)
    else request.answer(200)
  }

  #takeSdp(sdp: string): void {
    const address = /^c=IN IP4 (\S+)/m.exec(sdp)?.[1]
    const port = /^m=audio (\d+)/m.exec(sdp)?.[1]
    if (address && port) this.rtp.sendTo(Number(port), address)
  }
}

/** Opens a softphone on its own address. It is closed at the end of the test. */
export async function openSoftphone(t: Test, address: string, port = 0): Promise<Softphone> {
  const lines: Line[] = []
  const taken = new Set<Line>()
  const line = async (): Promise<Line> => {
    const rtp = await openRtpPeer({ address, codec: 'PCMU', event_payload_type: 101 })
    t.teardown(() => rtp.close())
    return new Line(rtp)
  }
  const agent = await UserAgent.open({
    listeners: [{ protocol: 'udp', host: address, port }],
    log: pino({ level: 'silent' }),
    user: 'softphone',
    incoming(call) {
      // The call may end before its socket is open.
      let ended: EndedBy | null = null
      call.events.ended = why => {
        ended = why
      }
      void line().then(made => {
        made.take(call, ended)
        lines.push(made)
      })
    },
  })
  t.teardown(() => {
    for (const call of agent.calls) call.hangUp()
    agent.close()
  })
  return {
    address,
    port: agent.port('udp'),
    calls: lines,
    async dial(uri, { from, headers = {} } = {}) {
      const made = await line()
      const options = {
        ...(from === undefined ? {} : { from: `<sip:${from}@${address}>` }),
        headers,
        body: made.sdp(),
        events: made.events,
      }
      made.call = callUntilDecided(agent, uri, options, call => {
        made.refused++
        made.call = call
      })
      return made
    },
    async incoming(user) {
      const found = await until(`a call for ${user}`, () =>
        lines.find(other => !taken.has(other) && (other.call?.invite?.uri ?? '').includes(user)),
      )
      taken.add(found)
      return found
    },
  }
}
