import { computed, effect, signal, untracked } from '@preact/signals'
import {
  type Invitation,
  Inviter,
  Registerer,
  RegistererState,
  type Session,
  SessionState,
  UserAgent,
  Web,
} from 'sip.js'
import { ask } from '../lib/api.ts'
import type { ClientToken } from '../lib/api-types.ts'
import { projectId, session as signedIn } from '../lib/session.ts'
import { inCall, phoneOpen } from './open.ts'

interface CallState {
  readonly number: string
  readonly incoming: boolean
  readonly state: 'calling' | 'ringing' | 'talking' | 'ended'
  readonly since_ms: number
  readonly muted: boolean
  readonly held: boolean
  /** Why the call ended, in words. */
  readonly note: string
}

interface PhoneState {
  readonly line: 'off' | 'connecting' | 'ready' | 'lost'
  readonly client: string
  readonly caller: string
  readonly problem: string
  readonly call: CallState | null
}

interface Quality {
  readonly jitter_ms: number
  readonly lost_pct: number
  readonly rtt_ms: number
  readonly mos: number
  /** 0 to 1 */
  readonly heard: number
  readonly spoken: number
}

const OFF: PhoneState = { line: 'off', client: '', caller: '', problem: '', call: null }

export const phone = signal<PhoneState>(OFF)
export const quality = signal<Quality | null>(null)

const RENEW_BEFORE_MS = 120_000
const QUALITY_EVERY_MS = 1000
const WAIT_FOR_CANDIDATES_MS = 500
const FIRST_WAIT_MS = 2000
const LONGEST_WAIT_MS = 15_000
/** The registrar takes the token no more: the auth token was rotated. */
const REFUSED_FOR_GOOD: readonly (number | undefined)[] = [401, 403]

let agent: UserAgent | null = null
/** The agent is being made: a second one would stay registered beside it. */
let connecting: { readonly whose: string; readonly done: Promise<void> } | null = null
let registerer: Registerer | null = null
let token: ClientToken | null = null
let session: Session | null = null
let renewal: ReturnType<typeof setTimeout> | undefined
let retry: ReturnType<typeof setTimeout> | undefined
let wait_ms = FIRST_WAIT_MS
let measuring: ReturnType<typeof setInterval> | undefined
let sink: HTMLAudioElement | null = null

const set = (changes: Partial<PhoneState>): void => {
  phone.value = { ...phone.value, ...changes }
}
const setCall = (changes: Partial<CallState>): void => {
  if (phone.value.call) set({ call: { ...phone.value.call, ...changes } })
}

/** Plays the audio of calls in `element`. */
export function playInto(element: HTMLAudioElement | null): void {
  sink = element
  attachAudio()
}

/** Derives the name of a member's telephone from the local part of the email address. */
function clientNameOf(email: string): string {
  const name = (email.split('@')[0] ?? '').replaceAll(/[^A-Za-z0-9_.+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  return name === '' ? 'console' : name
}

/** Whose telephone this is: a member's, in one project. Empty while nobody is signed in. */
const owner = computed(() => (signedIn.value ? `${signedIn.value.member.email} ${projectId.value}` : ''))

/** Fetches a token, connects and registers, so that calls to `client:<name>` ring here. */
export function connectPhone(): Promise<void> {
  const whose = owner.peek()
  if (connecting?.whose === whose) return connecting.done
  if (agent || whose === '') return Promise.resolve()
  const mine = { whose, done: connect(whose) }
  connecting = mine
  return mine.done.finally(() => {
    if (connecting === mine) connecting = null
  })
}

async function connect(whose: string): Promise<void> {
  set({ line: 'connecting', problem: '' })
  const identity = clientNameOf(signedIn.value?.member.email ?? '')
  const made = await ask<ClientToken>('POST', '/v1/client-tokens', { body: { identity } }).catch(error => {
    if (owner.peek() === whose) set({ line: 'off' })
    throw error
  })
  if (owner.peek() !== whose || agent) return
  token = made
  const uri = UserAgent.makeURI(made.sip_uri)
  if (!uri) throw new Error('the address of the telephone is not one')
  const secure = location.protocol === 'https:'
  const mine = new UserAgent({
    uri,
    authorizationUsername: made.username,
    authorizationPassword: made.password ?? '',
    transportConstructor: Web.Transport,
    transportOptions: { server: `${secure ? 'wss' : 'ws'}://${location.hostname}:${made.ws_port}` },
    sessionDescriptionHandlerFactory: Web.defaultSessionDescriptionHandlerFactory(),
    sessionDescriptionHandlerFactoryOptions: {
      // No STUN or TURN server: the browser reaches the platform directly.
      peerConnectionConfiguration: { iceServers: [] },
      iceGatheringTimeout: WAIT_FOR_CANDIDATES_MS,
    },
    logBuiltinEnabled: false,
    delegate: {
      onInvite: invitation => receive(invitation),
      onDisconnect: error => {
        if (error) lost(mine, 'The line to the platform is lost; connecting again.', again)
      },
      onConnect: () => set({ problem: '' }),
    },
  })
  agent = mine
  try {
    await mine.start()
    if (agent !== mine) return
    registerer = new Registerer(mine)
    registerer.stateChange.addListener(state => {
      // Only this tells of a refresh that was refused: sip.js sends it by itself.
      if (state === RegistererState.Unregistered)
        lost(mine, 'The platform does not know this telephone now; registering again.', again)
    })
    await register(mine)
  } catch (error) {
    if (agent !== mine) return
    await disconnectPhone()
    throw error
  }
  if (agent !== mine) return
  clearTimeout(renewal)
  renewal = setTimeout(() => void renew(), Math.max(30_000, Date.parse(made.expires_at) - Date.now() - RENEW_BEFORE_MS))
}

async function register(mine: UserAgent): Promise<void> {
  await registerer?.register({
    requestDelegate: {
      onAccept: () => {
        if (agent !== mine) return
        clearTimeout(retry)
        wait_ms = FIRST_WAIT_MS
        set({ line: 'ready', client: token?.identity ?? '', caller: token?.caller ?? '', problem: '' })
      },
      onReject: ({ message: { statusCode, reasonPhrase } }) => {
        const problem = `The platform refused the registration: ${statusCode} ${reasonPhrase}`
        lost(mine, problem, REFUSED_FOR_GOOD.includes(statusCode) ? renew : again)
      },
    },
  })
}

/** Shows that nobody can call here, and mends it after a while. */
function lost(mine: UserAgent, problem: string, mend: (mine: UserAgent) => Promise<void>): void {
  if (agent !== mine) return
  set({ line: 'lost', problem })
  clearTimeout(retry)
  retry = setTimeout(() => void mend(mine), wait_ms)
}

/** Connects and registers again. sip.js itself tells of no failure to connect. */
async function again(mine: UserAgent): Promise<void> {
  if (agent !== mine) return
  wait_ms = Math.min(LONGEST_WAIT_MS, wait_ms * 2)
  try {
    await mine.reconnect()
    if (agent === mine) await register(mine)
  } catch {
    lost(mine, 'The line to the platform is lost; connecting again.', again)
  }
}

/** Fetches a new token before the old one expires, or when it is refused. A running call is not affected. */
async function renew(): Promise<void> {
  clearTimeout(renewal)
  if (session) {
    renewal = setTimeout(() => void renew(), 20_000)
    return
  }
  const whose = owner.peek()
  await disconnectPhone()
  wait_ms = Math.min(LONGEST_WAIT_MS, wait_ms * 2)
  await connectPhone().catch(error => {
    if (owner.peek() !== whose || agent) return
    set({ line: 'lost', problem: String(error) })
    renewal = setTimeout(() => void renew(), wait_ms)
  })
}

async function disconnectPhone(): Promise<void> {
  clearTimeout(renewal)
  clearTimeout(retry)
  const [old, binding] = [agent, registerer]
  agent = null
  registerer = null
  // The next agent may be connecting before this one has gone.
  set({ line: 'off' })
  await binding?.unregister().catch(() => undefined)
  await old?.stop().catch(() => undefined)
}

/** Ends the call and the registration: they belong to a member or a project that the page has left. */
function leave(): void {
  const now = session
  session = null
  inCall.value = false
  clearInterval(measuring)
  void now?.dispose().catch(() => undefined)
  void disconnectPhone()
  phone.value = OFF
  quality.value = null
}

effect(() => {
  owner.value
  untracked(leave)
})

const targetOf = (number: string): string => {
  const digits = number.replaceAll(/[^\d+*#A-Za-z._-]/g, '')
  return `sip:${digits}@${token?.domain ?? ''}`
}

export async function call(number: string): Promise<void> {
  if (session) return
  await connectPhone()
  const target = UserAgent.makeURI(targetOf(number))
  if (!agent || !target) throw new Error(`${number} is no number`)
  const inviter = new Inviter(agent, target, {
    earlyMedia: true,
    sessionDescriptionHandlerOptions: { constraints: { audio: true, video: false } },
  })
  begin(inviter, {
    number,
    incoming: false,
    state: 'calling',
    since_ms: Date.now(),
    muted: false,
    held: false,
    note: '',
  })
  await inviter.invite({
    requestDelegate: {
      onProgress: answer => {
        if (answer.message.statusCode === 180) setCall({ state: 'ringing' })
        attachAudio()
      },
      onReject: answer => {
        const reason = answer.message.getHeader('Warning')?.replace(/^\d+ \S+ "?|"$/g, '')
        setCall({
          note: `${answer.message.statusCode} ${answer.message.reasonPhrase ?? ''}${reason ? `: ${reason}` : ''}`,
        })
      },
    },
  })
}

function receive(invitation: Invitation): void {
  if (session) {
    void invitation.reject({ statusCode: 486 })
    return
  }
  const from = invitation.remoteIdentity.displayName || invitation.remoteIdentity.uri.user || 'unknown'
  phoneOpen.value = true
  begin(invitation, {
    number: from,
    incoming: true,
    state: 'ringing',
    since_ms: Date.now(),
    muted: false,
    held: false,
    note: '',
  })
}

export async function answer(): Promise<void> {
  const incoming = session as Invitation | null
  await incoming?.accept?.({ sessionDescriptionHandlerOptions: { constraints: { audio: true, video: false } } })
}

function begin(next: Session, state: CallState): void {
  session = next
  inCall.value = true
  set({ call: state })
  next.stateChange.addListener(change => {
    if (session !== next) return
    if (change === SessionState.Established) {
      setCall({ state: 'talking', since_ms: Date.now() })
      attachAudio()
      startMeasuring()
    }
    if (change === SessionState.Terminated) {
      session = null
      inCall.value = false
      clearInterval(measuring)
      quality.value = null
      setCall({ state: 'ended' })
    }
  })
}

const handler = (): Web.SessionDescriptionHandler | undefined =>
  session?.sessionDescriptionHandler as Web.SessionDescriptionHandler | undefined

function attachAudio(): void {
  const media = handler()?.remoteMediaStream
  if (!sink || !media || sink.srcObject === media) return
  sink.srcObject = media
  void sink.play().catch((error: Error) => {
    // The next call interrupts the play of one that had no sound.
    if (error.name !== 'AbortError') set({ problem: 'The browser plays no sound before you click into the page.' })
  })
}

export async function hangUp(): Promise<void> {
  const now = session
  if (!now) {
    set({ call: null })
    return
  }
  if (now.state === SessionState.Established) await now.bye()
  else if (now instanceof Inviter) await now.cancel()
  else await (now as Invitation).reject()
}

export const clearCall = (): void => set({ call: null })

export function mute(muted: boolean): void {
  for (const sender of handler()?.peerConnection?.getSenders() ?? []) if (sender.track) sender.track.enabled = !muted
  setCall({ muted })
}

export async function hold(held: boolean): Promise<void> {
  if (!session) return
  session.sessionDescriptionHandlerOptionsReInvite = { hold: held } as Web.SessionDescriptionHandlerOptions
  await session.invite({
    requestDelegate: {
      onAccept: () => setCall({ held }),
      onReject: answer => set({ problem: `Hold was refused: ${answer.message.statusCode}` }),
    },
  })
}

export function sendKey(key: string): boolean {
  return handler()?.sendDtmf(key) ?? false
}

function startMeasuring(): void {
  clearInterval(measuring)
  measuring = setInterval(() => void measure(), QUALITY_EVERY_MS)
}

async function measure(): Promise<void> {
  const stats = await handler()?.peerConnection?.getStats()
  if (!stats) return
  const found = { jitter_ms: 0, lost_pct: 0, rtt_ms: 0, heard: 0, spoken: 0 }
  for (const report of stats.values()) {
    if (report.type === 'inbound-rtp' && report.kind === 'audio') {
      found.jitter_ms = (report.jitter ?? 0) * 1000
      const expected = (report.packetsReceived ?? 0) + (report.packetsLost ?? 0)
      found.lost_pct = expected === 0 ? 0 : ((report.packetsLost ?? 0) / expected) * 100
      found.heard = report.audioLevel ?? 0
    }
    if (report.type === 'media-source' && report.kind === 'audio') found.spoken = report.audioLevel ?? 0
    if (report.type === 'candidate-pair' && report.nominated) found.rtt_ms = (report.currentRoundTripTime ?? 0) * 1000
  }
  quality.value = { ...found, mos: mosOf(found) }
}

/** Computes the MOS by the E-model (ITU-T G.107, simplified for a wide-band codec without concealment). */
function mosOf({ jitter_ms, lost_pct, rtt_ms }: { jitter_ms: number; lost_pct: number; rtt_ms: number }): number {
  const delay = rtt_ms / 2 + 2 * jitter_ms + 40
  const r = 93.2 - delay / 40 - (delay > 177 ? (delay - 177) * 0.11 : 0) - 30 * Math.log(1 + 0.15 * lost_pct)
  const bounded = Math.max(0, Math.min(100, r))
  return 1 + 0.035 * bounded + 7e-6 * bounded * (bounded - 60) * (100 - bounded)
}
