import type { SessionDescriptionHandler } from 'sip.js'
import {
  type Core,
  type Invitation,
  Inviter,
  Registerer,
  type Session,
  type SessionState,
  UserAgent,
  Web,
} from 'sip.js'
import { MediaStreamTrack, RTCPeerConnection, RtpHeader, RtpPacket, usePCMU } from 'werift'
import { WebSocket } from 'ws'
import { decodeG711, encodeG711 } from './audio.ts'
import { busyFor } from './busy.ts'
import { takeRepeats } from './dtls-client.ts'
import type { Test } from './harness/index.ts'
import { PATIENCE_MS, until } from './wait.ts'

/**
 * A softphone as browsers run it: sip.js over a WebSocket; werift does ICE, DTLS and SRTP. It offers only PCMU, so that
 * tests can measure the audio.
 */
class Softphone {
  readonly agent: UserAgent
  readonly media: BrowserMedia[] = []
  readonly invitations: Invitation[] = []

  /** Use `openSoftphone`. */
  constructor(options: SoftphoneOptions) {
    this.agent = new UserAgent({
      uri: uriOf(options.uri ?? `sip:${options.user}@${options.host}`),
      transportConstructor: Web.Transport,
      transportOptions: { server: `ws://${options.host}:${options.ws_port}` },
      sessionDescriptionHandlerFactory: () => this.#newMedia(),
      logBuiltinEnabled: false,
      ...(options.password === undefined
        ? {}
        : { authorizationUsername: options.user, authorizationPassword: options.password }),
      delegate: { onInvite: invitation => void this.invitations.push(invitation) },
    })
  }

  /** Calls, and calls again while the platform is too busy to decide. Resolves when it rings or is answered. */
  async call(target: string): Promise<Session> {
    for (const begun_ms = performance.now(); ; ) {
      const inviter = new Inviter(this.agent, uriOf(target))
      const again_ms = await new Promise<number | null>((resolve, reject) => {
        const requestDelegate = {
          onProgress: () => resolve(null),
          onAccept: () => resolve(null),
          onReject: ({ message }: Core.IncomingResponse) => {
            const said = (name: string): string => message.getHeader(name) ?? ''
            resolve(busyFor(message.statusCode ?? 0, said('reason'), said('retry-after')))
          },
        }
        inviter.invite({ requestDelegate }).catch(reject)
      })
      if (again_ms === null || performance.now() - begun_ms > PATIENCE_MS) return inviter
      this.media.pop()?.close()
      await new Promise(resolve => setTimeout(resolve, again_ms))
    }
  }

  async register(): Promise<void> {
    const registerer = new Registerer(this.agent)
    await registerer.register()
    await until('the registration is accepted', () => registerer.state === 'Registered')
  }

  #newMedia(): SessionDescriptionHandler {
    const media = new BrowserMedia()
    this.media.push(media)
    return media
  }
}

interface SoftphoneOptions {
  readonly host: string
  readonly ws_port: number
  readonly user: string
  readonly password?: string
  /** Its address of record; default `sip:user@host`. */
  readonly uri?: string
  /** Local address of its WebSocket. */
  readonly local_ip?: string
}

export async function openSoftphone(t: Test, options: SoftphoneOptions): Promise<Softphone> {
  const { local_ip } = options
  class FromAddress extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, local_ip === undefined ? {} : { localAddress: local_ip })
    }
  }
  Object.assign(globalThis, { WebSocket: FromAddress })
  const phone = new Softphone(options)
  await phone.agent.start()
  t.teardown(async () => {
    await phone.agent.stop()
    for (const media of phone.media) media.close()
  })
  return phone
}

export const reached = (session: Session, state: SessionState): Promise<unknown> =>
  until(`the session is ${state}`, () => session.state === state)

/** One call's media. */
class BrowserMedia implements SessionDescriptionHandler {
  readonly connection = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ['127.0.0.1'],
    codecs: { audio: [usePCMU()] },
  })
  readonly #track = new MediaStreamTrack({ kind: 'audio' })
  readonly #heard: Buffer[] = []
  #offered = false
  #sequence = 1000

  constructor() {
    this.connection.addTransceiver(this.#track, { direction: 'sendrecv' })
  }

  /** The number of packets received so far. */
  get packets(): number {
    return this.#heard.length
  }

  audio(from = 0): Int16Array {
    return decodeG711('PCMU', Buffer.concat(this.#heard.slice(from)))
  }

  async send(samples: Int16Array): Promise<void> {
    const start_ms = performance.now()
    for (let at = 0; at + 160 <= samples.length; at += 160) {
      const wait_ms = start_ms + at / 8 - performance.now()
      if (wait_ms > 0) await new Promise(resolve => setTimeout(resolve, wait_ms))
      const header = new RtpHeader({
        payloadType: 0,
        sequenceNumber: this.#sequence,
        timestamp: this.#sequence * 160,
        ssrc: 77,
      })
      this.#sequence++
      this.#track.writeRtp(new RtpPacket(header, encodeG711('PCMU', samples.subarray(at, at + 160))))
    }
  }

  connected(): Promise<unknown> {
    return until('DTLS is up', () => this.connection.connectionState === 'connected')
  }

  close(): void {
    void this.connection.close()
  }

  hasDescription(type: string): boolean {
    return type === 'application/sdp'
  }

  async getDescription() {
    const { connection } = this
    if (connection.signalingState === 'have-remote-offer')
      await connection.setLocalDescription(await connection.createAnswer())
    else {
      this.#offered = true
      await connection.setLocalDescription(await connection.createOffer())
    }
    return { body: connection.localDescription?.sdp ?? '', contentType: 'application/sdp' }
  }

  async setDescription(sdp: string): Promise<void> {
    await this.connection.setRemoteDescription({ type: this.#offered ? 'answer' : 'offer', sdp })
    takeRepeats(this.connection)
    // werift gives a track only packets whose SSRC the SDP announced; browsers match the payload type instead.
    this.connection.dtlsTransports[0]?.onRtp.subscribe(packet => this.#heard.push(packet.payload))
  }

  sendDtmf(): boolean {
    return false
  }
}

function uriOf(text: string) {
  const made = UserAgent.makeURI(text)
  if (!made) throw new Error(`${text} is not a URI`)
  return made
}
